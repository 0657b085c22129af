/* Singular values: to two diagonals by reflectors from both sides, and these
 * to one by implicit QR steps, with a step less where a value is zero (Golub
 * and Reinsch, "Singular value decomposition and least squares solutions",
 * 1970; Dongarra et al., "LINPACK users' guide", chapter 11). */
#ifndef DL_LA_SVD_H
#define DL_LA_SVD_H

#include "dl_la.h"

enum { MOST_SVD_TURNS = 100 };

typedef struct { /* d and e: the diagonal and what is above it */
    DL_GLOBAL R *d, *e;
    DL_GLOBAL T *u, *v; /* rows: columns of U and V; NULL: not wanted */
    int64_t m, n;       /* length of those rows */
} two_diagonals;

typedef struct { R c, s; } turn;

/* The rotation that makes (f, g) to (r, 0). */
DL_INLINE R rotation(R f, R g, turn *t)
{
    R r = length2(f, g);

    *t = r == 0 ? (turn){1, 0} : (turn){f / r, g / r};
    return r;
}
DL_INLINE void turn_u(two_diagonals *b, turn t, int64_t i, int64_t j)
{
    if (b->u)
        turn_rows(b->m, t.c, t.s, b->u + i * b->m, b->u + j * b->m);
}
DL_INLINE void turn_v(two_diagonals *b, turn t, int64_t i, int64_t j)
{
    if (b->v)
        turn_rows(b->n, t.c, t.s, b->v + i * b->n, b->v + j * b->n);
}

/* d[p-1] is zero: e[p-2] goes, and what that leaves above. */
DL_PART void chase_up(two_diagonals *b, int64_t k, int64_t p)
{
    R f = b->e[p - 2];

    b->e[p - 2] = 0;
    for (int64_t j = p - 2; j >= k; j--) {
        turn t;

        b->d[j] = rotation(b->d[j], f, &t);
        if (j != k) {
            f = -t.s * b->e[j - 1];
            b->e[j - 1] *= t.c;
        }
        turn_v(b, t, j, p - 1);
    }
}

/* d[k-1] is zero: e[k-1] goes. */
DL_PART void chase_down(two_diagonals *b, int64_t k, int64_t p)
{
    R f = b->e[k - 1];

    b->e[k - 1] = 0;
    for (int64_t j = k; j < p; j++) {
        turn t;

        b->d[j] = rotation(b->d[j], f, &t);
        f = -t.s * b->e[j];
        b->e[j] *= t.c;
        turn_u(b, t, j, k - 1);
    }
}

/* Of the last two rows' product with their transpose; f of the first turn. */
DL_INLINE R first_f(const two_diagonals *b, int64_t k, int64_t p)
{
    R by = max_of(ABS(b->d[p - 1]), ABS(b->d[p - 2])), x, y, e, q, c, shift = 0;

    by = max_of(max_of(by, ABS(b->e[p - 2])),
                max_of(ABS(b->d[k]), ABS(b->e[k])));
    x = b->d[p - 1] / by;
    y = b->d[p - 2] / by;
    e = b->e[p - 2] / by;
    q = FMA(y + x, y - x, e * e) / 2;
    c = (x * e) * (x * e);
    if (q != 0 || c != 0)
        shift = c / (q + with_sign(SQRT(FMA(q, q, c)), q));
    /* over d[k], so that g is e[k]: only their ratio counts */
    y = b->d[k] / by;
    return (FMA(y + x, y - x, shift) / y) * by;
}

DL_PART void qr_step(two_diagonals *b, int64_t k, int64_t p)
{
    R f = first_f(b, k, p), g = b->e[k];

    for (int64_t j = k; j < p - 1; j++) {
        turn t;
        R r = rotation(f, g, &t), d = b->d[j], e = b->e[j];

        if (j != k)
            b->e[j - 1] = r;
        f = FMA(t.c, d, t.s * e);
        b->e[j] = FMA(t.c, e, -(t.s * d));
        g = t.s * b->d[j + 1];
        b->d[j + 1] *= t.c;
        turn_v(b, t, j, j + 1);
        b->d[j] = rotation(f, g, &t);
        d = b->d[j + 1];
        e = b->e[j];
        f = FMA(t.c, e, t.s * d);
        b->d[j + 1] = FMA(t.c, d, -(t.s * e));
        g = t.s * b->e[j + 1];
        b->e[j + 1] *= t.c;
        turn_u(b, t, j, j + 1);
    }
    b->e[p - 2] = f;
}

/* 0: it did not converge.  Values come out of either sign, in no order. */
DL_PART int diagonalise(two_diagonals *b)
{
    int64_t p = b->n, k, z;
    int turns = 0;
    R least = 0; /* the square of a rounding error of the largest */

    for (int64_t i = 0; i < p; i++)
        least = max_of(least, max_of(ABS(b->d[i]), ABS(b->e[i])));
    least *= EPS * EPS;
    while (p > 0) {
        for (k = p - 2; k >= 0; k--)
            if (ABS(b->e[k]) <=
                least + EPS / 2 * (ABS(b->d[k]) + ABS(b->d[k + 1])))
                break;
        if (k >= 0)
            b->e[k] = 0;
        if (k == p - 2) {
            p--;
            turns = 0;
            continue;
        }
        if (turns++ == MOST_SVD_TURNS)
            return 0;
        for (z = p - 1; z > k; z--) {
            R near = (z < p - 1 ? ABS(b->e[z]) : 0) +
                     (z != k + 1 ? ABS(b->e[z - 1]) : 0);

            if (ABS(b->d[z]) <= least + EPS / 2 * near)
                break;
        }
        if (z == k) {
            qr_step(b, k + 1, p);
            continue;
        }
        b->d[z] = 0;
        if (z == p - 1)
            chase_up(b, k + 1, p);
        else
            chase_down(b, z + 1, p);
    }
    return 1;
}

/* Values positive and falling, with their rows. */
DL_PART void order_values(two_diagonals *b)
{
    for (int64_t i = 0; i < b->n; i++)
        if (b->d[i] < 0 || 1 / b->d[i] < 0) {
            b->d[i] = -b->d[i];
            if (b->v)
                scale_row(b->n, -1, b->v + i * b->n);
        }
    for (int64_t i = 0; i + 1 < b->n; i++) {
        int64_t best = i;
        R t = b->d[i];

        for (int64_t j = i + 1; j < b->n; j++)
            if (b->d[j] > b->d[best])
                best = j;
        b->d[i] = b->d[best];
        b->d[best] = t;
        if (b->u)
            swap_rows(b->m, b->u + i * b->m, b->u + best * b->m);
        if (b->v)
            swap_rows(b->n, b->v + i * b->n, b->v + best * b->n);
    }
}

/* g, m x n with m >= n: reflectors below the diagonal and right of the one
 * above it; w: m numbers. */
DL_PART void to_two_diagonals(TP g, RP d, RP e, TP tau_q, TP tau_p, TP w,
                             int64_t m, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        DL_GLOBAL T *x = g + j * n + j + 1;
        int64_t right = n - j - 1;

        tau_q[j] = reflect(m - j, x - 1, n);
        d[j] = re(x[-1]);
        reflect_left(x - 1, n, conj_of(tau_q[j]), x, m - j, right, n, w);
        e[j] = 0;
        tau_p[j] = make(0);
        if (!right)
            continue;
        for (int64_t i = 0; i < right; i++)
            x[i] = conj_of(x[i]);
        tau_p[j] = reflect(right, x, 1);
        e[j] = re(x[0]);
        reflect_right(x, tau_p[j], x + n, m - j - 1, right, n);
    }
}

/* How many numbers of work space; with vectors: of a tall matrix m x n and
 * `more` columns of U.  Said here and in src/hlo/hlo_linalg_call.c:
 * m n + 6 m + (vectors: 2 m more + 2 n n). */
DL_PART void svd_of(TP g, RP s, TP work, int64_t m, int64_t n, int64_t more,
                   int vectors, R by, TP *ut, TP *vt)
{
    TP tau_q = work;
    TP tau_p = work + m;
    RP e = (RP)(work + 2 * m);
    TP w = work + 3 * m;
    TP q = work + 6 * m;
    TP u = q + m * more;
    TP p = u + m * more;
    TP v = p + n * n;
    two_diagonals b = {s, e, 0, 0, m, n};
    int good = is_finite(by);

    to_two_diagonals(g, s, e, tau_q, tau_p, w, m, n);
    if (vectors) {
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < more; j++)
                q[i * more + j] = make(i == j);
        for (int64_t j = n - 1; j >= 0; j--)
            reflect_left(g + j * n + j, n, tau_q[j], q + j * more + j, m - j,
                         more - j, more, w);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                p[i * n + j] = make(i == j);
        for (int64_t j = n - 2; j >= 0; j--)
            reflect_left(g + j * n + j + 1, 1, tau_p[j],
                         p + (j + 1) * n + j + 1, n - j - 1, n - j - 1, n, w);
        transpose(m, more, q, u);
        transpose(n, n, p, v);
        b.u = u;
        b.v = v;
    }
    good = good && diagonalise(&b);
    order_values(&b);
    for (int64_t i = 0; i < n; i++)
        s[i] = good ? s[i] / by : NOT_A_NUMBER;
    if (vectors && !good) {
        fill_row(m * more, make(NOT_A_NUMBER), u);
        fill_row(n * n, make(NOT_A_NUMBER), v);
    }
    *ut = u;
    *vt = v;
}

/* The matrix, or its adjoint where it is wide, times by. */
DL_INLINE R tall_copy(CONST_TP a, TP g, int64_t m, int64_t n)
{
    R most = largest(m * n, a), by = safe_factor(most);

    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            if (m < n)
                g[j * m + i] = scale(conj_of(a[i * n + j]), by);
            else
                g[i * n + j] = scale(a[i * n + j], by);
        }
    return is_finite(most) ? by : most - most;
}

void DL_LA(svd_values)(CONST_TP a, RP s, TP work, int64_t m, int64_t n)
{
    TP g = work;
    TP u;
    TP v;
    int64_t rows = most_of(m, n), cols = least_of(m, n);
    R by = tall_copy(a, g, m, n);

    svd_of(g, s, work + m * n, rows, cols, 0, 0, by, &u, &v);
}

void DL_LA(svd)(CONST_TP a, RP s, TP u, TP vt, TP work, int64_t m, int64_t n,
                int64_t full)
{
    TP g = work;
    TP x;
    TP y;
    int64_t rows = most_of(m, n), cols = least_of(m, n);
    int64_t more = full ? rows : cols;
    R by = tall_copy(a, g, m, n);

    svd_of(g, s, work + m * n, rows, cols, more, 1, by, &x, &y);
    if (m < n) { /* a^H = x s y^H, so a = y s x^H */
        transpose(cols, cols, y, u);
        for (int64_t i = 0; i < more * rows; i++)
            vt[i] = conj_of(x[i]);
        return;
    }
    transpose(more, rows, x, u);
    for (int64_t i = 0; i < cols * cols; i++)
        vt[i] = conj_of(y[i]);
}

#endif
