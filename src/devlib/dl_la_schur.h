/* General matrices: to Hessenberg's form by reflectors, to Schur's by implicit
 * QR steps, of two shifts at once where numbers are real (Francis, "The QR
 * transformation", 1961), and eigenvectors from that triangle.  Z is kept as
 * rows, its transpose. */
#ifndef DL_LA_SCHUR_H
#define DL_LA_SCHUR_H

#include "dl_la_reflect.h"

enum { MOST_STEPS = 90, FEW = DL_IS_COMPLEX ? 2 : 3 };

/* ---- Hessenberg ---- */

/* In place; work: n. */
DL_PART void to_hessenberg(TP h, TP tau, TP work, int64_t n)
{
    for (int64_t j = 0; j + 1 < n; j++) {
        DL_GLOBAL T *v = h + (j + 1) * n + j;
        int64_t m = n - j - 1;

        tau[j] = reflect(m, v, n, 0);
        reflect_left(v, n, conj_of(tau[j]), v + 1, m, m, n, 0);
        for (int64_t i = 0; i < m; i++)
            work[i] = v[i * n];
        reflect_right(work, tau[j], h + j + 1, n, m, n);
    }
}

void DL_LA(hessenberg)(CONST_TP a, TP h, TP tau, TP work, int64_t n)
{
    copy_row(n * n, a, h);
    to_hessenberg(h, tau, work, n);
}

/* ---- Schur ---- */

typedef struct {
    DL_GLOBAL T *h, *z; /* z: NULL, or Z's columns as rows */
    int64_t n;
    R least; /* the square of a rounding error of the largest */
} schur_form;

/* Up to three numbers become (beta, v1, v2). */
DL_INLINE T reflect_few(int n, T *v)
{
    R most = 0, below = 0, beta;
    T alpha, by;

    for (int i = 0; i < n; i++)
        most = max_of(most, size(v[i]));
    if (!(most > 0))
        return make(0);
    for (int i = 0; i < n; i++)
        v[i] = over(v[i], most);
    alpha = v[0];
    for (int i = 1; i < n; i++)
        below += square(v[i]);
    if (below == 0 && im(alpha) == 0) {
        v[0] = scale(v[0], most);
        return make(0);
    }
    beta = -with_sign(length2(abs_of(alpha), SQRT(below)), re(alpha));
    by = minus(alpha, make(beta));
    for (int i = 1; i < n; i++)
        v[i] = divide(v[i], by);
    v[0] = make(beta * most);
    return over(neg(by), beta);
}

/* Rows x0, x1 (and x2): minus by v (w . x); v[0] = w[0] = 1. */
DL_INLINE void few_rows(int few, const T *v, const T *w, T by, int64_t n,
                        DL_GLOBAL T *x, int64_t ld)
{
    TP x0 = x;
    TP x1 = x + ld;
    TP x2 = x + 2 * ld;
    T b1 = mul(by, v[1]), b2 = few == 3 ? mul(by, v[2]) : make(0);

    if (few == 3) {
        for (int64_t c = 0; c < n; c++) {
            T s = mac(mac(x0[c], w[1], x1[c]), w[2], x2[c]);

            x0[c] = mac(x0[c], by, s);
            x1[c] = mac(x1[c], b1, s);
            x2[c] = mac(x2[c], b2, s);
        }
        return;
    }
    for (int64_t c = 0; c < n; c++) {
        T s = mac(x0[c], w[1], x1[c]);

        x0[c] = mac(x0[c], by, s);
        x1[c] = mac(x1[c], b1, s);
    }
}

/* The similarity of a reflector on rows and columns k, k + 1 (and k + 2);
 * left of column `from` and below row `to` there is nothing. */
DL_PART void reflect_both(schur_form *s, int few, const T *v, T tau, int64_t k,
                         int64_t from, int64_t to)
{
    int64_t n = s->n;
    T w[3], minus_tau = neg(tau);

    w[0] = make(1);
    for (int i = 1; i < few; i++)
        w[i] = conj_of(v[i]);
    few_rows(few, v, w, conj_of(minus_tau), n - from, s->h + k * n + from, n);
    for (int64_t r = 0; r < to; r++) {
        DL_GLOBAL T *x = s->h + r * n + k;
        T sum = x[0];

        for (int i = 1; i < few; i++)
            sum = mac(sum, x[i], v[i]);
        sum = mul(sum, minus_tau);
        x[0] += sum;
        for (int i = 1; i < few; i++)
            x[i] = mac(x[i], sum, w[i]);
    }
    if (s->z)
        few_rows(few, w, v, minus_tau, n, s->z + k * n, n);
}

typedef struct { T sum, product; } shifts;

#if DL_IS_COMPLEX
/* The root of [a b; c d] that is nearer to d. */
DL_INLINE C root_of(C a, C b, C c, C d)
{
    C half = c_scale(c_sub(a, d), (R)0.5), q = c_mac(c_mul(half, half), b, c);
    R len = c_abs(q), x, y;
    C r;

    /* the square root of q, then d - b c / (half +- it) */
    x = SQRT(max_of((len + ABS(__real__ q)) / 2, 0));
    y = x == 0 ? 0 : __imag__ q / (2 * x);
    r = __real__ q >= 0 ? c_make(x, y) : c_make(ABS(y), with_sign(x, __imag__ q));
    if (__real__ half * __real__ r + __imag__ half * __imag__ r < 0)
        r = c_scale(r, -1);
    r = half + r;
    if (c_size(r) == 0)
        return d;
    return c_sub(d, c_div(c_mul(b, c), r));
}
DL_INLINE shifts shifts_of(const schur_form *s, int64_t hi, int turn)
{
    const DL_GLOBAL T *h = s->h + (hi - 1) * s->n + hi - 1;
    shifts r = {root_of(h[0], h[1], h[s->n], h[s->n + 1]), 0};

    if (turn % 10 == 9) /* one that no cycle has */
        r.sum = h[s->n + 1] + c_size(h[s->n]);
    return r;
}
DL_INLINE int first_column(const schur_form *s, int64_t lo, int64_t hi,
                           shifts by, T *v)
{
    const DL_GLOBAL T *h = s->h + lo * s->n + lo;

    (void)hi;
    v[0] = c_sub(h[0], by.sum);
    v[1] = h[s->n];
    return 2;
}
#else
DL_INLINE shifts shifts_of(const schur_form *s, int64_t hi, int turn)
{
    const DL_GLOBAL T *h = s->h + (hi - 1) * s->n + hi - 1;
    R odd = ABS(h[s->n]), d = h[s->n + 1];

    if (turn % 10 == 9) /* LAPACK's, of a block that no cycle has */
        return (shifts){2 * (d + (R)0.75 * odd),
                        (d + (R)0.75 * odd) * (d + (R)0.75 * odd) +
                            (R)0.4375 * odd * odd};
    return (shifts){h[0] + d, FMA(h[0], d, -(h[1] * h[s->n]))};
}
/* Of (h - x)(h - y), over h[lo+1, lo]. */
DL_INLINE int first_column(const schur_form *s, int64_t lo, int64_t hi,
                           shifts by, T *v)
{
    int64_t n = s->n;
    const DL_GLOBAL T *h = s->h + lo * n + lo;

    v[0] = (h[0] * (h[0] - by.sum) + by.product) / h[n] + h[1];
    v[1] = h[0] + h[n + 1] - by.sum;
    if (hi - lo < 2)
        return 2;
    v[2] = h[2 * n + 1];
    return 3;
}
#endif

DL_PART void schur_step(schur_form *s, int64_t lo, int64_t hi, shifts by)
{
    int64_t n = s->n;
    T v[3];
    int few = first_column(s, lo, hi, by, v);

    for (int64_t k = lo; k < hi; k++) {
        T tau = reflect_few(few, v);
        int64_t from = k > lo ? k - 1 : k;

        if (few == 3)
            reflect_both(s, 3, v, tau, k, from, least_of(k + 4, hi + 1));
        else
            reflect_both(s, 2, v, tau, k, from, least_of(k + 4, hi + 1));
        for (int64_t i = k + 1; k > lo && i < k + few; i++)
            s->h[i * n + k - 1] = make(0);
        few = (int)least_of(FEW, hi - k);
        for (int i = 0; i < few; i++)
            v[i] = s->h[(k + 1 + i) * n + k];
    }
}

#if !DL_IS_COMPLEX
/* Columns and rows k and k + 1 turned by the unit vector (x, y), which
 * becomes the first of them. */
DL_PART void turn_block(schur_form *s, int64_t k, R x, R y)
{
    int64_t n = s->n;

    for (int64_t i = 0; i < k + 2; i++) {
        R a = s->h[i * n + k], b = s->h[i * n + k + 1];

        s->h[i * n + k] = FMA(x, a, y * b);
        s->h[i * n + k + 1] = FMA(x, b, -(y * a));
    }
    turn_rows(n - k, x, y, s->h + k * n + k, s->h + (k + 1) * n + k);
    if (s->z)
        turn_rows(n, x, y, s->z + k * n, s->z + (k + 1) * n);
}

/* A block of two at k: two of one where the eigenvalues are real, else equal
 * diagonal elements and off-diagonal ones of unlike sign. */
DL_PART void standardise(schur_form *s, int64_t k)
{
    int64_t n = s->n;
    DL_GLOBAL R *h = s->h + k * n + k;
    R a = h[0], b = h[1], c = h[n], d = h[n + 1], half = (a - d) / 2, x, y, r;
    R disc = FMA(half, half, b * c);

    if (c == 0)
        return;
    if (disc >= 0) { /* (x, c) is the eigenvector of a root */
        x = half + with_sign(SQRT(disc), half);
        r = length2(x, c);
        turn_block(s, k, x / r, c / r);
        h[n] = 0;
        return;
    }
    r = length2(b + c, d - a); /* twice the angle has these as cos and sin */
    if (r > 0 && b + c >= 0) {
        x = SQRT((1 + (b + c) / r) / 2);
        y = (d - a) / r / (2 * x);
        turn_block(s, k, x, y);
    } else if (r > 0) {
        y = with_sign(SQRT((1 - (b + c) / r) / 2), d - a);
        x = (d - a) / r / (2 * y);
        turn_block(s, k, x, y);
    }
    h[0] = h[n + 1] = (h[0] + h[n + 1]) / 2;
    if ((h[1] < 0) != (h[n] < 0) && h[1] != 0 && h[n] != 0)
        return;
    if (ABS(h[1]) < ABS(h[n])) /* rounded to real eigenvalues */
        turn_block(s, k, 0, 1);
    h[n] = 0;
}
#else
DL_INLINE void standardise(schur_form *s, int64_t k)
{
    (void)s;
    (void)k;
}
#endif

DL_INLINE int is_small(const schur_form *s, int64_t i)
{
    int64_t n = s->n;
    R by = size(s->h[i * n + i]) + size(s->h[(i - 1) * n + i - 1]);

    return size(s->h[i * n + i - 1]) <= max_of(EPS * by, s->least);
}

/* h to Schur's form; tau, work: n numbers each.  0: no convergence. */
DL_PART int to_schur(schur_form *s, TP tau, TP work)
{
    int64_t n = s->n, hi = n - 1, lo;
    int turn = 0;

    s->least = largest(n * n, s->h) * EPS * EPS;
    to_hessenberg(s->h, tau, work, n);
    if (s->z) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                s->z[i * n + j] = make(i == j);
        for (int64_t j = 0; j + 1 < n; j++) {
            for (int64_t i = 0; i < n - j - 1; i++)
                work[i] = conj_of(s->h[(j + 1 + i) * n + j]);
            reflect_left(work, 1, tau[j], s->z + (j + 1) * n, n - j - 1, n, n,
                         0);
        }
    }
    for (int64_t i = 2; i < n; i++)
        fill_row(i - 1, make(0), s->h + i * n);
    while (hi > 0) {
        for (lo = hi; lo > 0 && !is_small(s, lo); lo--)
            ;
        if (lo > 0)
            s->h[lo * n + lo - 1] = make(0);
        if (lo == hi) {
            hi--;
            turn = 0;
        } else if (!DL_IS_COMPLEX && lo == hi - 1) {
            standardise(s, lo);
            hi -= 2;
            turn = 0;
        } else {
            if (turn++ == MOST_STEPS)
                return 0;
            schur_step(s, lo, hi, shifts_of(s, hi, turn));
        }
    }
    return 1;
}

/* a times a factor that keeps products in range; the factor, or NaN. */
DL_INLINE R scaled_copy(CONST_TP a, TP h, int64_t n)
{
    R most = largest(n * n, a), by = safe_factor(most);

    for (int64_t i = 0; i < n * n; i++)
        h[i] = scale(a[i], by);
    return is_finite(most) ? by : most - most;
}

DL_INLINE int finish_schur(schur_form *s, R by, TP work)
{
    int good = is_finite(by) && to_schur(s, work, work + s->n);

    for (int64_t i = 0; i < s->n * s->n; i++)
        s->h[i] = good ? over(s->h[i], by) : make(NOT_A_NUMBER);
    return good;
}

/* work: 2 n. */
void DL_LA(schur_values)(CONST_TP a, TP t, TP work, int64_t n)
{
    schur_form s = {t, 0, n, 0};

    finish_schur(&s, scaled_copy(a, t, n), work);
}

/* work: n x n + 2 n. */
void DL_LA(schur)(CONST_TP a, TP t, TP z, TP work, int64_t n)
{
    schur_form s = {t, work + 2 * n, n, 0};
    int good = finish_schur(&s, scaled_copy(a, t, n), work);

    transpose(n, n, s.z, z);
    if (!good)
        fill_row(n * n, make(NOT_A_NUMBER), z);
}

/* ---- eigenvectors ---- */

DL_INLINE C c_dot(int64_t n, const DL_GLOBAL C *x, const DL_GLOBAL C *y)
{
    C s[4] = {0};
    int64_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++)
            s[k] = c_mac(s[k], x[i + k], y[i + k]);
    s[0] = (s[0] + s[2]) + (s[1] + s[3]);
    for (; i < n; i++)
        s[0] = c_mac(s[0], x[i], y[i]);
    return s[0];
}

DL_INLINE void keep_in_range(CP x, int64_t from, int64_t to, C last)
{
    R most = c_size(last);

    if (most > LARGE)
        for (int64_t i = from; i <= to; i++)
            x[i] = c_scale(x[i], 1 / most);
}

/* t x = t[j, j] x; x beyond j is nothing. */
DL_INLINE void right_vector(CP t, CP x, int64_t n, int64_t j, R least)
{
    C w = t[j * n + j];

    x[j] = c_make(1, 0);
    for (int64_t i = j - 1; i >= 0; i--) {
        C by = c_sub(w, t[i * n + i]);

        if (c_size(by) < least)
            by = c_make(least, 0);
        x[i] = c_div(c_dot(j - i, t + i * n + i + 1, x + i + 1), by);
        keep_in_range(x, i, j, x[i]);
    }
}

/* x^H t = t[j, j] x^H; x before j is nothing. */
DL_INLINE void left_vector(CP t, CP x, int64_t n, int64_t j, R least)
{
    C w = t[j * n + j];

    for (int64_t i = j; i < n; i++)
        x[i] = c_make(i == j, 0);
    for (int64_t i = j; i < n; i++) {
        C by = c_sub(w, t[i * n + i]);

        if (c_size(by) < least)
            by = c_make(least, 0);
        if (i > j)
            x[i] = c_div(x[i], c_conj(by));
        keep_in_range(x, j, n - 1, x[i]);
        for (int64_t c = i + 1; c < n; c++)
            x[c] = c_mac(x[c], x[i], c_conj(t[i * n + c]));
    }
}

/* Length 1 and the largest component real. */
DL_INLINE void normalise(CP y, int64_t n)
{
    R sum = 0, most = 0, by;
    int64_t at = 0;
    C turn;

    for (int64_t i = 0; i < n; i++)
        most = max_of(most, c_size(y[i]));
    by = most > 0 ? 1 / most : 1;
    most = 0;
    for (int64_t i = 0; i < n; i++) {
        R x;

        y[i] = c_scale(y[i], by);
        x = FMA(__real__ y[i], __real__ y[i], __imag__ y[i] * __imag__ y[i]);
        sum += x;
        if (x > most) {
            most = x;
            at = i;
        }
    }
    turn = c_scale(c_conj(y[at]), 1 / (SQRT(most) * SQRT(sum)));
    for (int64_t i = 0; i < n; i++)
        y[i] = c_mul(y[i], turn);
    y[at] = c_make(__real__ y[at], 0);
}

/* v's columns from the triangle t and the rows z; x: 2 n numbers. */
DL_PART void vectors_of(CP t, CP z, CP v, CP x, int64_t n, int right, R least)
{
    CP y = x + n;

    for (int64_t j = 0; j < n; j++) {
        R part = __imag__ t[j * n + j];

        if (!DL_IS_COMPLEX && part < 0) { /* the conjugate of the one before */
            for (int64_t i = 0; i < n; i++)
                v[i * n + j] = c_conj(v[i * n + j - 1]);
            continue;
        }
        if (right)
            right_vector(t, x, n, j, least);
        else
            left_vector(t, x, n, j, least);
        for (int64_t i = 0; i < n; i++)
            y[i] = c_make(0, 0);
        for (int64_t k = right ? 0 : j; k <= (right ? j : n - 1); k++)
            for (int64_t i = 0; i < n; i++)
                y[i] = c_mac(y[i], x[k], z[k * n + i]);
        for (int64_t i = 0; !DL_IS_COMPLEX && part == 0 && i < n; i++)
            y[i] = c_make(__real__ y[i], 0);
        normalise(y, n);
        for (int64_t i = 0; i < n; i++)
            v[i * n + j] = y[i];
    }
}

#if !DL_IS_COMPLEX
/* The unit vector (c, y), c real, becomes the first of columns, rows and rows
 * of z at k. */
DL_PART void turn_complex(CP t, CP z, int64_t n, int64_t k, R c, C y)
{
    C yc = c_conj(y), my = c_scale(y, -1), myc = c_scale(yc, -1);

    for (int64_t i = 0; i < k + 2; i++) {
        C a = t[i * n + k], b = t[i * n + k + 1];

        t[i * n + k] = c_mac(c_scale(a, c), y, b);
        t[i * n + k + 1] = c_mac(c_scale(b, c), myc, a);
    }
    for (int64_t i = k; i < n; i++) {
        C a = t[k * n + i], b = t[(k + 1) * n + i];

        t[k * n + i] = c_mac(c_scale(a, c), yc, b);
        t[(k + 1) * n + i] = c_mac(c_scale(b, c), my, a);
    }
    for (int64_t i = 0; i < n; i++) {
        C a = z[k * n + i], b = z[(k + 1) * n + i];

        z[k * n + i] = c_mac(c_scale(a, c), y, b);
        z[(k + 1) * n + i] = c_mac(c_scale(b, c), myc, a);
    }
}

/* Blocks of two become triangular, the value with the positive imaginary part
 * first. */
DL_PART void to_triangle(CP t, CP z, int64_t n)
{
    for (int64_t k = 0; k + 1 < n; k++) {
        DL_GLOBAL C *h = t + k * n + k;
        R part, x, y, len, a = __real__ h[0];

        if (__real__ h[n] == 0 && __imag__ h[n] == 0)
            continue;
        part = SQRT(ABS(__real__ h[1])) * SQRT(ABS(__real__ h[n]));
        x = part; /* the vector (i part, y), turned to (part, -i y) */
        y = __real__ h[n];
        len = length2(x, y);
        turn_complex(t, z, n, k, x / len, c_make(0, -y / len));
        h[0] = c_make(a, part);
        h[n + 1] = c_make(a, -part);
        h[n] = c_make(0, 0);
    }
}
#endif

/* work, in numbers of T: real 7 n n + 6 n, complex 2 n n + 6 n. */
DL_PART void eig_of(CONST_TP a, CP w, DL_GLOBAL C *left, DL_GLOBAL C *right,
                   TP work, int64_t n)
{
    CP x = (CP)work;
    TP rest = work + 4 * n;
    schur_form s = {rest + 2 * n, rest + 2 * n + n * n, n, 0};
    R by = scaled_copy(a, s.h, n), least;
    int good = is_finite(by) && to_schur(&s, rest, rest + n);
#if DL_IS_COMPLEX
    CP t = s.h;
    CP z = s.z;
#else
    CP t = (CP)(s.z + n * n);
    CP z = t + n * n;

    for (int64_t i = 0; i < n * n; i++) {
        t[i] = c_make(s.h[i], 0);
        z[i] = c_make(s.z[i], 0);
    }
    if (good)
        to_triangle(t, z, n);
#endif
    least = max_of(largest(n * n, s.h) * EPS, LEAST / EPS);
    if (good && left)
        vectors_of(t, z, left, x, n, 0, least);
    if (good && right)
        vectors_of(t, z, right, x, n, 1, least);
    for (int64_t i = 0; i < n; i++)
        w[i] = c_scale(t[i * n + i], 1 / by);
    for (int64_t i = 0; !good && i < n; i++)
        w[i] = c_make(NOT_A_NUMBER, NOT_A_NUMBER);
    for (int64_t i = 0; !good && i < n * n; i++) {
        if (left)
            left[i] = c_make(NOT_A_NUMBER, NOT_A_NUMBER);
        if (right)
            right[i] = c_make(NOT_A_NUMBER, NOT_A_NUMBER);
    }
}

void DL_LA(eig)(CONST_TP a, CP w, CP left, CP right, TP work, int64_t n)
{
    eig_of(a, w, left, right, work, n);
}
void DL_LA(eig_left)(CONST_TP a, CP w, CP left, TP work, int64_t n)
{
    eig_of(a, w, left, 0, work, n);
}
void DL_LA(eig_right)(CONST_TP a, CP w, CP right, TP work, int64_t n)
{
    eig_of(a, w, 0, right, work, n);
}
void DL_LA(eig_values)(CONST_TP a, CP w, TP work, int64_t n)
{
    eig_of(a, w, 0, 0, work, n);
}

#endif
