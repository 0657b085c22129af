/* Evaluating eigenproblems, in long double: Jacobi's rotations for Hermitian
 * matrices and singular values; QR steps with explicit shifts for the others,
 * real ones with the two shifts of a block at once, so that all stays real.
 * Golub and Van Loan, "Matrix Computations", chapters 7 and 8. */
#include "ref_la.h"

#include <float.h>
#include <math.h>

enum { MOST_SWEEPS = 100, MOST_STEPS = 60 };

static hlo_wide *identity(sd_arena *a, int64_t n)
{
    hlo_wide *q = sd_arena_array(a, hlo_wide, n * n + 1);

    for (int64_t i = 0; i < n; i++)
        q[i * n + i] = 1;
    return q;
}

typedef struct { /* [c s; -conj(s) c], c real */
    long double c;
    hlo_wide s;
} rotation;

/* That which makes [app apq; conj(apq) aqq] diagonal from both sides. */
static rotation jacobi(long double app, long double aqq, hlo_wide apq)
{
    long double size = cabsl(apq), tau = (aqq - app) / (2 * size), t;
    rotation r = {1, 0};

    if (size == 0)
        return r;
    t = copysignl(1, tau) / (fabsl(tau) + hypotl(1, tau));
    r.c = 1 / hypotl(1, t);
    r.s = t * r.c * (apq / size);
    return r;
}

/* Columns p and q of n rows times the rotation. */
static void turn_columns(hlo_wide *a, int64_t n, int64_t ld, int64_t p,
                         int64_t q, rotation r)
{
    for (int64_t i = 0; i < n; i++) {
        hlo_wide x = a[i * ld + p], y = a[i * ld + q];

        a[i * ld + p] = r.c * x - conjl(r.s) * y;
        a[i * ld + q] = r.s * x + r.c * y;
    }
}

/* Rows p and q times the adjoint of it. */
static void turn_rows(hlo_wide *a, int64_t n, int64_t ld, int64_t p, int64_t q,
                      rotation r)
{
    for (int64_t j = 0; j < n; j++) {
        hlo_wide x = a[p * ld + j], y = a[q * ld + j];

        a[p * ld + j] = r.c * x - r.s * y;
        a[q * ld + j] = conjl(r.s) * x + r.c * y;
    }
}

/* ---- Hermitian matrices ---- */

static bool sweep(hlo_wide *a, hlo_wide *v, int64_t n)
{
    bool turned = false;

    for (int64_t p = 0; p < n; p++)
        for (int64_t q = p + 1; q < n; q++) {
            long double x = creall(a[p * n + p]), y = creall(a[q * n + q]);
            rotation r;

            if (cabsl(a[p * n + q]) <=
                    LDBL_EPSILON / 16 * (fabsl(x) + fabsl(y)) ||
                cabsl(a[p * n + q]) < LDBL_MIN)
                continue;
            r = jacobi(x, y, a[p * n + q]);
            turn_columns(a, n, n, p, q, r);
            turn_rows(a, n, n, p, q, r);
            turn_columns(v, n, n, p, q, r);
            turned = true;
        }
    return turned;
}

/* Columns in an order of values that rises (sign 1) or falls (-1). */
static void order(long double *w, int64_t n, long double sign, hlo_wide *u,
                  int64_t rows, hlo_wide *v)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t best = i;
        long double t;

        for (int64_t j = i + 1; j < n; j++)
            if (sign * w[j] < sign * w[best])
                best = j;
        t = w[i];
        w[i] = w[best];
        w[best] = t;
        ref_la_swap(u + i, u + best, rows, n);
        if (v)
            ref_la_swap(v + i, v + best, n, n);
    }
}

void ref_la_eigh(ref_la *l)
{
    int64_t n = l->c->n;
    hlo_wide *a = ref_la_hermitian(l, l->c->attr[0]);
    hlo_wide *v = identity(l->a, n);
    long double *w = sd_arena_array(l->a, long double, n + 1);

    for (int64_t i = 0; i < n * n; i++)
        l->failed |= !isfinite(cabsl(a[i]));
    if (l->failed)
        return;
    for (int k = 0; k < MOST_SWEEPS && sweep(a, v, n); k++)
        ;
    for (int64_t i = 0; i < n; i++)
        w[i] = creall(a[i * n + i]);
    order(w, n, 1, v, n, NULL);
    memcpy(l->out[0], v, sizeof *v * (size_t)(n * n));
    for (int64_t i = 0; i < n; i++)
        l->out[1][i] = w[i];
}

/* ---- singular values ---- */

/* One-sided: rotations make all columns orthogonal to each other. */
static bool sweep_columns(hlo_wide *a, int64_t m, int64_t n, hlo_wide *v)
{
    bool turned = false;

    for (int64_t p = 0; p < n; p++)
        for (int64_t q = p + 1; q < n; q++) {
            long double x = 0, y = 0;
            hlo_wide dot = 0;
            rotation r;

            for (int64_t i = 0; i < m; i++) {
                hlo_wide s = a[i * n + p], t = a[i * n + q];

                x += creall(s * conjl(s));
                y += creall(t * conjl(t));
                dot += conjl(s) * t;
            }
            if (cabsl(dot) <= 4 * LDBL_EPSILON * sqrtl(x) * sqrtl(y) ||
                cabsl(dot) < LDBL_MIN)
                continue;
            r = jacobi(x, y, dot);
            turn_columns(a, m, n, p, q, r);
            turn_columns(v, n, n, p, q, r);
            turned = true;
        }
    return turned;
}

/* Column j of u, m rows of ld, from a unit vector that the others leave. */
static void complete(hlo_wide *u, int64_t m, int64_t ld, int64_t j)
{
    for (int64_t e = 0; e < m; e++) {
        long double length = 0;

        for (int64_t i = 0; i < m; i++)
            u[i * ld + j] = i == e;
        for (int twice = 0; twice < 2; twice++)
            for (int64_t c = 0; c < j; c++) {
                hlo_wide dot = 0;

                for (int64_t i = 0; i < m; i++)
                    dot += conjl(u[i * ld + c]) * u[i * ld + j];
                for (int64_t i = 0; i < m; i++)
                    u[i * ld + j] -= dot * u[i * ld + c];
            }
        for (int64_t i = 0; i < m; i++)
            length += creall(u[i * ld + j] * conjl(u[i * ld + j]));
        length = sqrtl(length);
        for (int64_t i = 0; i < m; i++)
            u[i * ld + j] /= length;
        /* of m unit vectors one leaves at least 1/sqrt(m) */
        if (length * sqrtl((long double)m) > 0.5L)
            return;
    }
}

/* a: m x n with m >= n, overwritten; u: m x more, v: n x n. */
static void svd_tall(hlo_wide *a, int64_t m, int64_t n, int64_t more,
                     hlo_wide *u, hlo_wide *v, long double *s)
{
    for (int k = 0; k < MOST_SWEEPS && sweep_columns(a, m, n, v); k++)
        ;
    for (int64_t j = 0; j < n; j++) {
        long double sum = 0;

        for (int64_t i = 0; i < m; i++)
            sum += creall(a[i * n + j] * conjl(a[i * n + j]));
        s[j] = sqrtl(sum);
    }
    order(s, n, -1, a, m, v);
    for (int64_t j = 0; j < more; j++) {
        bool has = j < n && s[j] > (long double)m * LDBL_EPSILON * s[0];

        for (int64_t i = 0; has && i < m; i++)
            u[i * more + j] = a[i * n + j] / s[j];
        if (!has)
            complete(u, m, more, j);
    }
}

void ref_la_svd(ref_la *l)
{
    int64_t m = l->c->m, n = l->c->n, k = SD_MIN(m, n);
    bool wide = m < n, full = l->c->attr[0];
    int64_t rows = SD_MAX(m, n), more = full ? rows : k;
    hlo_wide *a = sd_arena_array(l->a, hlo_wide, m * n + 1);
    hlo_wide *u = sd_arena_array(l->a, hlo_wide, rows * more + 1);
    hlo_wide *v = identity(l->a, k);
    long double *s = sd_arena_array(l->a, long double, k + 1);

    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            hlo_wide x = l->in[0][i * n + j];

            a[wide ? j * m + i : i * n + j] = wide ? conjl(x) : x;
        }
    svd_tall(a, rows, k, more, u, v, s);
    for (int64_t i = 0; i < k; i++)
        l->out[0][i] = s[i];
    if (!l->c->attr[1])
        return;
    if (wide) { /* a^H = u s v^H, so a = v s u^H */
        memcpy(l->out[1], v, sizeof *v * (size_t)(k * k));
        for (int64_t i = 0; i < more; i++)
            for (int64_t j = 0; j < n; j++)
                l->out[2][i * n + j] = conjl(u[j * more + i]);
        return;
    }
    memcpy(l->out[1], u, sizeof *u * (size_t)(m * more));
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < k; j++)
            l->out[2][i * n + j] = conjl(v[j * k + i]);
}

/* ---- Schur's form ---- */

typedef struct {
    sd_arena *a;
    int64_t n;
    hlo_wide *h, *z; /* z: NULL, or what the transformations come to */
    bool real;
} schur;

/* The similarity by a reflector on rows and columns from `at` on. */
static void reflect_both(schur *s, const hlo_wide *v, int64_t size,
                         hlo_wide tau, int64_t at)
{
    int64_t n = s->n;

    ref_la_apply_left(v, 1, conjl(tau), s->h + at * n, size, n, n);
    ref_la_apply_right(v, 1, tau, s->h + at, n, size, n);
    if (s->z)
        ref_la_apply_right(v, 1, tau, s->z + at, n, size, n);
}

static void to_hessenberg(schur *s)
{
    int64_t n = s->n;
    hlo_wide *v = sd_arena_array(s->a, hlo_wide, n + 1);

    for (int64_t j = 0; j + 2 < n; j++) {
        hlo_wide tau;

        for (int64_t i = j + 1; i < n; i++)
            v[i - j - 1] = s->h[i * n + j];
        tau = ref_la_reflect(v, n - j - 1, 1);
        reflect_both(s, v, n - j - 1, tau, j + 1);
        for (int64_t i = j + 2; i < n; i++)
            s->h[i * n + j] = 0;
    }
}

/* The first column of (h - x)(h - y) of the block that begins at lo, for the
 * two shifts whose sum and product are given; one shift when real is false. */
static int64_t first_column(const schur *s, int64_t lo, int64_t hi,
                            hlo_wide sum, hlo_wide product, hlo_wide *v)
{
    int64_t n = s->n;
    const hlo_wide *h = s->h + lo * n + lo;

    if (!s->real) {
        v[0] = h[0] - sum;
        v[1] = h[n];
        return 2;
    }
    v[0] = h[0] * h[0] + h[1] * h[n] - sum * h[0] + product;
    v[1] = h[n] * (h[0] + h[n + 1] - sum);
    if (hi - lo < 2)
        return 2;
    v[2] = h[n] * h[2 * n + 1];
    return 3;
}

/* A QR step on rows lo..hi: a reflector on the first rows, then the form is
 * restored downwards. */
static void step(schur *s, int64_t lo, int64_t hi, hlo_wide sum,
                 hlo_wide product)
{
    int64_t n = s->n, size;
    hlo_wide v[3];

    size = first_column(s, lo, hi, sum, product, v);
    for (int64_t k = lo; k < hi; k++) {
        hlo_wide tau = ref_la_reflect(v, size, 1);

        reflect_both(s, v, size, tau, k);
        for (int64_t i = k + 1; k > lo && i < k + size; i++)
            s->h[i * n + k - 1] = 0;
        size = SD_MIN(s->real ? 3 : 2, hi - k);
        for (int64_t i = 0; i < size; i++)
            v[i] = s->h[(k + 1 + i) * n + k];
    }
}

/* Of the block [a b; c d]: the eigenvalue that is nearer to d. */
static hlo_wide near_shift(hlo_wide a, hlo_wide b, hlo_wide c, hlo_wide d)
{
    hlo_wide half = (a - d) / 2, root = csqrtl(half * half + b * c);
    hlo_wide x = d + half + root, y = d + half - root;

    return cabsl(x - d) < cabsl(y - d) ? x : y;
}

static void take_shifts(const schur *s, int64_t hi, int turn, hlo_wide *sum,
                        hlo_wide *product)
{
    int64_t n = s->n;
    const hlo_wide *h = s->h + (hi - 1) * n + hi - 1;
    long double odd = ref_la_size(h[n]);

    if (s->real) {
        *sum = h[0] + h[n + 1];
        *product = h[0] * h[n + 1] - h[1] * h[n];
        if (turn % 10 == 9) { /* one that no cycle has */
            *sum = 1.5L * odd + creall(h[n + 1]);
            *product = odd * odd + creall(h[n + 1]);
        }
        return;
    }
    *sum = near_shift(h[0], h[1], h[n], h[n + 1]);
    if (turn % 10 == 9)
        *sum = h[n + 1] + odd;
}

/* A real block of two rows at k: real eigenvalues become two blocks of one,
 * others get equal diagonal elements and off-diagonal ones of unlike sign. */
static void standardise(schur *s, int64_t k)
{
    int64_t n = s->n;
    hlo_wide *h = s->h + k * n + k;
    long double a = creall(h[0]), b = creall(h[1]), c = creall(h[n]),
                d = creall(h[n + 1]), half = (a - d) / 2, x, y, size;
    long double disc = half * half + b * c;
    rotation r;

    if (c == 0)
        return;
    if (disc >= 0) { /* (x, y): the eigenvector of a root */
        x = half + copysignl(sqrtl(disc), half);
        y = c;
    } else { /* tan of twice the angle is (d - a) / (b + c) */
        long double angle = atan2l(d - a, b + c) / 2;

        x = cosl(angle);
        y = sinl(angle);
    }
    size = hypotl(x, y);
    if (size == 0)
        return;
    r = (rotation){x / size, -y / size};
    turn_columns(s->h, n, n, k, k + 1, r);
    turn_rows(s->h, n, n, k, k + 1, r);
    if (s->z)
        turn_columns(s->z, n, n, k, k + 1, r);
    if (disc >= 0)
        h[n] = 0;
    else
        h[0] = h[n + 1] = (h[0] + h[n + 1]) / 2;
}

static bool is_small(const schur *s, int64_t i)
{
    int64_t n = s->n;
    long double by =
        ref_la_size(s->h[i * n + i]) + ref_la_size(s->h[(i - 1) * n + i - 1]);

    return ref_la_size(s->h[i * n + i - 1]) <=
           LDBL_EPSILON * (by > 0 ? by : LDBL_MIN / LDBL_EPSILON);
}

/* False: it did not converge. */
static bool to_schur(schur *s)
{
    int64_t n = s->n, hi = n - 1, lo;
    hlo_wide sum, product = 0;
    int turn = 0;

    to_hessenberg(s);
    while (hi > 0) {
        for (lo = hi; lo > 0 && !is_small(s, lo); lo--)
            ;
        if (lo > 0)
            s->h[lo * n + lo - 1] = 0;
        if (lo == hi) {
            hi--;
            turn = 0;
        } else if (s->real && lo == hi - 1) {
            standardise(s, lo);
            hi -= 2;
            turn = 0;
        } else {
            if (turn++ == MOST_STEPS)
                return false;
            take_shifts(s, hi, turn, &sum, &product);
            step(s, lo, hi, sum, product);
        }
    }
    return true;
}

static schur schur_of(ref_la *l, bool vectors)
{
    int64_t n = l->c->n;
    schur s = {l->a, n, sd_arena_array(l->a, hlo_wide, n * n + 1),
               vectors ? identity(l->a, n) : NULL, sd_is_float(l->c->type)};

    memcpy(s.h, l->in[0], sizeof *s.h * (size_t)(n * n));
    l->failed = !to_schur(&s);
    return s;
}

void ref_la_schur(ref_la *l)
{
    size_t bytes = sizeof(hlo_wide) * (size_t)(l->c->n * l->c->n);
    schur s = schur_of(l, l->c->attr[0]);

    memcpy(l->out[0], s.h, bytes);
    if (s.z)
        memcpy(l->out[1], s.z, bytes);
}

/* ---- eigenvectors ---- */

/* The blocks of two of a real form become triangular too, the value with the
 * positive imaginary part first. */
static void to_triangular(schur *s)
{
    int64_t n = s->n;

    for (int64_t k = 0; k + 1 < n; k++) {
        hlo_wide *h = s->h + k * n + k, w, x, y;
        long double size;
        rotation r;

        if (!s->real || h[n] == 0)
            continue;
        w = h[0] + I * sqrtl(fabsl(creall(h[1]))) * sqrtl(fabsl(creall(h[n])));
        x = w - h[n + 1];
        y = h[n];
        size = hypotl(cabsl(x), cabsl(y));
        /* c is real: the vector with a phase that makes x so */
        y *= conjl(x) / cabsl(x);
        r = (rotation){cabsl(x) / size, -conjl(y) / size};
        turn_columns(s->h, n, n, k, k + 1, r);
        turn_rows(s->h, n, n, k, k + 1, r);
        turn_columns(s->z, n, n, k, k + 1, r);
        h[n] = 0;
    }
}

/* Length 1, the largest component real; column j of v. */
static void normalise(hlo_wide *v, int64_t n, int64_t j)
{
    long double sum = 0, most = 0;
    hlo_wide turn = 1;

    for (int64_t i = 0; i < n; i++) {
        hlo_wide x = v[i * n + j];

        sum += creall(x * conjl(x));
        if (cabsl(x) > most) {
            most = cabsl(x);
            turn = conjl(x) / most;
        }
    }
    for (int64_t i = 0; i < n; i++)
        v[i * n + j] *= turn / sqrtl(sum);
}

/* t x = t[j, j] x with x[j] = 1, from the triangle: right for `right`, else
 * x^H t = t[j, j] x^H. */
static void triangle_vector(const schur *s, int64_t j, bool right, hlo_wide *x)
{
    int64_t n = s->n;
    const hlo_wide *t = s->h;
    long double least = 0;

    for (int64_t i = 0; i < n * n; i++)
        least = fmaxl(least, ref_la_size(t[i]));
    least = fmaxl(least * LDBL_EPSILON, LDBL_MIN);
    for (int64_t i = 0; i < n; i++)
        x[i] = i == j;
    for (int64_t k = 1; k < n; k++) {
        int64_t i = right ? j - k : j + k;
        hlo_wide sum = 0, by;

        if (i < 0 || i >= n)
            break;
        for (int64_t c = 0; c < n; c++)
            if (right ? c > i && c <= j : c >= j && c < i)
                sum += right ? t[i * n + c] * x[c] : conjl(t[c * n + i]) * x[c];
        by = t[i * n + i] - t[j * n + j];
        if (ref_la_size(by) < least)
            by = least;
        x[i] = -sum / (right ? by : conjl(by));
    }
}

static void vectors_of(const schur *s, bool right, hlo_wide *v)
{
    int64_t n = s->n;
    hlo_wide *x = sd_arena_array(s->a, hlo_wide, n + 1);

    for (int64_t j = 0; j < n; j++) {
        bool second = s->real && j > 0 && cimagl(s->h[j * n + j]) < 0;

        if (second) { /* of a real matrix: the conjugate of the first */
            for (int64_t i = 0; i < n; i++)
                v[i * n + j] = conjl(v[i * n + j - 1]);
            continue;
        }
        triangle_vector(s, j, right, x);
        for (int64_t i = 0; i < n; i++) {
            v[i * n + j] = 0;
            for (int64_t k = 0; k < n; k++)
                v[i * n + j] += s->z[i * n + k] * x[k];
            if (s->real && cimagl(s->h[j * n + j]) == 0)
                v[i * n + j] = creall(v[i * n + j]);
        }
        normalise(v, n, j);
    }
}

void ref_la_eig(ref_la *l)
{
    int64_t n = l->c->n;
    int at = 1;
    schur s = schur_of(l, true);

    to_triangular(&s);
    for (int64_t i = 0; i < n; i++)
        l->out[0][i] = s.h[i * n + i];
    if (l->c->attr[0])
        vectors_of(&s, false, l->out[at++]);
    if (l->c->attr[1])
        vectors_of(&s, true, l->out[at]);
}
