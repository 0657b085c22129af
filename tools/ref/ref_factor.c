/* Evaluating factorizations: the textbook's loops, in long double.  What
 * LAPACK packs is packed as it does. */
#include "ref_la.h"

#include <math.h>

static long double square(hlo_wide x)
{
    return creall(x) * creall(x) + cimagl(x) * cimagl(x);
}

static hlo_wide *copy_of(ref_la *l, const hlo_wide *x, int64_t n)
{
    hlo_wide *y = sd_arena_array(l->a, hlo_wide, n + 1);

    for (int64_t i = 0; i < n; i++)
        y[i] = x[i];
    return y;
}

/* ---- reflectors ---- */

hlo_wide ref_la_reflect(hlo_wide *x, int64_t n, int64_t step)
{
    hlo_wide alpha, tau;
    long double below = 0, beta;

    if (n < 1)
        return 0;
    alpha = x[0];
    for (int64_t i = 1; i < n; i++)
        below += square(x[i * step]);
    if (below == 0 && cimagl(alpha) == 0)
        return 0;
    beta = -copysignl(hypotl(cabsl(alpha), sqrtl(below)), creall(alpha));
    tau = (beta - alpha) / beta;
    for (int64_t i = 1; i < n; i++)
        x[i * step] /= alpha - beta;
    x[0] = beta;
    return tau;
}

static hlo_wide part_of(const hlo_wide *v, int64_t step, int64_t i)
{
    return i ? v[i * step] : 1;
}

void ref_la_apply_left(const hlo_wide *v, int64_t step, hlo_wide tau,
                       hlo_wide *to, int64_t rows, int64_t cols, int64_t ld)
{
    for (int64_t j = 0; j < cols; j++) {
        hlo_wide dot = 0;

        for (int64_t i = 0; i < rows; i++)
            dot += conjl(part_of(v, step, i)) * to[i * ld + j];
        for (int64_t i = 0; i < rows; i++)
            to[i * ld + j] -= part_of(v, step, i) * (tau * dot);
    }
}

void ref_la_apply_right(const hlo_wide *v, int64_t step, hlo_wide tau,
                        hlo_wide *to, int64_t rows, int64_t cols, int64_t ld)
{
    for (int64_t i = 0; i < rows; i++) {
        hlo_wide dot = 0;

        for (int64_t j = 0; j < cols; j++)
            dot += to[i * ld + j] * part_of(v, step, j);
        for (int64_t j = 0; j < cols; j++)
            to[i * ld + j] -= tau * dot * conjl(part_of(v, step, j));
    }
}

/* Column j of a, m x n, from row `from` on, and what is right of it. */
static hlo_wide reduce_column(hlo_wide *a, int64_t m, int64_t n, int64_t from,
                              int64_t j)
{
    hlo_wide *v = a + from * n + j, tau = ref_la_reflect(v, m - from, n);

    ref_la_apply_left(v, n, conjl(tau), v + 1, m - from, n - j - 1, n);
    return tau;
}

void ref_la_qr(ref_la *l)
{
    int64_t m = l->c->m, n = l->c->n;
    hlo_wide *a = l->out[0];

    memcpy(a, l->in[0], sizeof *a * (size_t)(m * n));
    for (int64_t j = 0; j < SD_MIN(m, n); j++)
        l->out[1][j] = reduce_column(a, m, n, j, j);
}

void ref_la_swap(hlo_wide *x, hlo_wide *y, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++) {
        hlo_wide t = x[i * step];

        x[i * step] = y[i * step];
        y[i * step] = t;
    }
}

/* Of the columns from j on the one that is longest below row j. */
static int64_t longest(const hlo_wide *a, int64_t m, int64_t n, int64_t j)
{
    int64_t best = j;
    long double most = -1;

    for (int64_t c = j; c < n; c++) {
        long double sum = 0;

        for (int64_t i = j; i < m; i++)
            sum += square(a[i * n + c]);
        if (sum > most) {
            most = sum;
            best = c;
        }
    }
    return best;
}

/* Columns whose entry in jpvt is not 0 come first, and stay there. */
void ref_la_geqp3(ref_la *l)
{
    int64_t m = l->c->m, n = l->c->n, fixed = 0;
    hlo_wide *a = l->out[0], *at = l->out[1];

    memcpy(a, l->in[0], sizeof *a * (size_t)(m * n));
    for (int64_t j = 0; j < n; j++)
        at[j] = j + 1;
    for (int64_t j = 0; j < n; j++)
        if (l->in[1][j] != 0) {
            ref_la_swap(a + j, a + fixed, m, n);
            ref_la_swap(at + j, at + fixed++, 1, 1);
        }
    for (int64_t j = 0; j < SD_MIN(m, n); j++) {
        int64_t best = j < fixed ? j : longest(a, m, n, j);

        ref_la_swap(a + j, a + best, m, n);
        ref_la_swap(at + j, at + best, 1, 1);
        l->out[2][j] = reduce_column(a, m, n, j, j);
    }
}

void ref_la_householder(ref_la *l)
{
    int64_t m = l->c->m, n = l->c->n;
    hlo_wide *q = l->out[0];

    for (int64_t i = 0; i < m * n; i++)
        q[i] = i / n == i % n;
    for (int64_t j = l->c->t - 1; j >= 0; j--)
        ref_la_apply_left(l->in[0] + j * n + j, n, l->in[1][j], q + j * n,
                          m - j, n, n);
}

void ref_la_ormqr(ref_la *l)
{
    int64_t n = l->c->n, p = l->c->p, q = l->c->q, t = l->c->t;
    bool left = l->c->attr[0], adjoint = l->c->attr[1];
    hlo_wide *c = l->out[0];

    memcpy(c, l->in[2], sizeof *c * (size_t)(p * q));
    for (int64_t k = 0; k < t; k++) {
        /* Q = H0 H1 ...: the one next to c comes first */
        int64_t j = left == adjoint ? k : t - 1 - k;
        const hlo_wide *v = l->in[0] + j * n + j;
        hlo_wide tau = adjoint ? conjl(l->in[1][j]) : l->in[1][j];

        if (left)
            ref_la_apply_left(v, n, tau, c + j * q, p - j, q, q);
        else
            ref_la_apply_right(v, n, tau, c + j, p, q - j, q);
    }
}

/* ---- two-sided reductions ---- */

void ref_la_hessenberg(ref_la *l)
{
    int64_t n = l->c->n;
    hlo_wide *a = l->out[0];

    memcpy(a, l->in[0], sizeof *a * (size_t)(n * n));
    for (int64_t j = 0; j + 1 < n; j++) {
        hlo_wide *v = a + (j + 1) * n + j, tau;

        tau = ref_la_reflect(v, n - j - 1, n);
        ref_la_apply_left(v, n, conjl(tau), v + 1, n - j - 1, n - j - 1, n);
        ref_la_apply_right(v, n, tau, a + j + 1, n, n - j - 1, n);
        l->out[1][j] = tau;
    }
}

hlo_wide *ref_la_hermitian(ref_la *l, bool lower)
{
    int64_t n = l->c->n;
    hlo_wide *a = copy_of(l, l->in[0], n * n);

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            if (lower)
                a[j * n + i] = conjl(a[i * n + j]);
            else
                a[i * n + j] = conjl(a[j * n + i]);
            if (i == j)
                a[i * n + i] = creall(a[i * n + i]);
        }
    return a;
}

/* A from below; from above it is the same with rows and columns counted from
 * the end: what LAPACK calls U stores v above the diagonal. */
void ref_la_tridiagonal(ref_la *l)
{
    int64_t n = l->c->n;
    bool lower = l->c->attr[0];
    hlo_wide *a = ref_la_hermitian(l, lower), *x = copy_of(l, a, n),
             *out = l->out[0];

    memcpy(out, l->in[0], sizeof *out * (size_t)(n * n));
    for (int64_t k = 0; k + 1 < n; k++) {
        /* column j is left with its diagonal and the element beside it */
        int64_t j = lower ? k : n - 1 - k, m = n - 1 - k;
        int64_t first = lower ? k + 1 : m - 1, step = lower ? 1 : -1;
        int64_t at = lower ? k : m - 1;
        hlo_wide tau;

        for (int64_t i = 0; i < m; i++)
            x[i] = a[(first + i * step) * n + j];
        tau = ref_la_reflect(x, m, 1);
        ref_la_apply_left(x, 1, conjl(tau), a + first * n, m, n, step * n);
        for (int64_t i = 0; i < n; i++) {
            hlo_wide dot = 0;

            for (int64_t c = 0; c < m; c++)
                dot += a[i * n + first + c * step] * part_of(x, 1, c);
            for (int64_t c = 0; c < m; c++)
                a[i * n + first + c * step] -=
                    tau * dot * conjl(part_of(x, 1, c));
        }
        for (int64_t i = 0; i < m; i++)
            out[(first + i * step) * n + j] = x[i];
        l->out[2][at] = x[0];
        l->out[3][at] = tau;
    }
    for (int64_t i = 0; i < n; i++)
        l->out[1][i] = out[i * n + i] = creall(a[i * n + i]);
}

/* ---- elimination ---- */

/* In place; pivot[j]: the row that was swapped with row j.  False: a pivot is
 * zero. */
static bool eliminate(hlo_wide *a, int64_t m, int64_t n, hlo_wide *pivot)
{
    bool regular = true;

    for (int64_t j = 0; j < SD_MIN(m, n); j++) {
        int64_t best = j;

        for (int64_t i = j + 1; i < m; i++)
            if (ref_la_size(a[i * n + j]) > ref_la_size(a[best * n + j]))
                best = i;
        pivot[j] = best;
        ref_la_swap(a + j * n, a + best * n, n, 1);
        if (a[j * n + j] == 0) {
            regular = false;
            continue;
        }
        for (int64_t i = j + 1; i < m; i++) {
            a[i * n + j] /= a[j * n + j];
            for (int64_t c = j + 1; c < n; c++)
                a[i * n + c] -= a[i * n + j] * a[j * n + c];
        }
    }
    return regular;
}

void ref_la_lu(ref_la *l)
{
    int64_t m = l->c->m, n = l->c->n;

    memcpy(l->out[0], l->in[0], sizeof(hlo_wide) * (size_t)(m * n));
    eliminate(l->out[0], m, n, l->out[1]);
    for (int64_t i = 0; i < m; i++)
        l->out[2][i] = i;
    for (int64_t j = 0; j < SD_MIN(m, n); j++)
        ref_la_swap(l->out[2] + j, l->out[2] + (int64_t)creall(l->out[1][j]), 1,
                    1);
}

/* x of a x = b, both overwritten; b: n x p.  False: a pivot is zero. */
static bool solve(ref_la *l, hlo_wide *a, hlo_wide *b, int64_t n, int64_t p)
{
    hlo_wide *pivot = sd_arena_array(l->a, hlo_wide, n + 1);
    bool regular = eliminate(a, n, n, pivot);

    for (int64_t i = 0; i < n; i++)
        ref_la_swap(b + i * p, b + (int64_t)creall(pivot[i]) * p, p, 1);
    for (int64_t c = 0; c < p; c++) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < i; j++)
                b[i * p + c] -= a[i * n + j] * b[j * p + c];
        for (int64_t i = n - 1; i >= 0; i--) {
            for (int64_t j = i + 1; j < n; j++)
                b[i * p + c] -= a[i * n + j] * b[j * p + c];
            b[i * p + c] /= a[i * n + i];
        }
    }
    return regular;
}

void ref_la_tridiagonal_solve(ref_la *l)
{
    int64_t n = l->c->n, p = l->c->p;
    hlo_wide *a = sd_arena_array(l->a, hlo_wide, n * n + 1);

    for (int64_t i = 0; i < n; i++) {
        a[i * n + i] = l->in[1][i];
        if (i)
            a[i * n + i - 1] = l->in[0][i];
        if (i + 1 < n)
            a[i * n + i + 1] = l->in[2][i];
    }
    memcpy(l->out[0], l->in[3], sizeof *a * (size_t)(n * p));
    l->failed = !solve(l, a, l->out[0], n, p);
}

/* Entries of one place add up. */
void ref_la_spsolve(ref_la *l)
{
    int64_t n = l->c->n;
    hlo_wide *a = sd_arena_array(l->a, hlo_wide, n * n + 1);

    for (int64_t i = 0; i < n; i++) {
        int64_t from = (int64_t)creall(l->in[2][i]);
        int64_t to = (int64_t)creall(l->in[2][i + 1]);

        for (int64_t k = SD_MAX(from, 0); k < SD_MIN(to, l->c->z); k++) {
            int64_t j = (int64_t)creall(l->in[1][k]);

            if (j >= 0 && j < n)
                a[i * n + j] += l->in[0][k];
        }
    }
    memcpy(l->out[0], l->in[3], sizeof *a * (size_t)n);
    l->failed = !solve(l, a, l->out[0], n, 1);
}

/* ---- triangles ---- */

/* The lower factor of its lower triangle; false: not positive. */
static bool cholesky(hlo_wide *a, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        long double d = creall(a[j * n + j]);

        for (int64_t k = 0; k < j; k++)
            d -= square(a[j * n + k]);
        if (!(d > 0))
            return false;
        d = sqrtl(d);
        a[j * n + j] = d;
        for (int64_t i = j + 1; i < n; i++) {
            hlo_wide v = a[i * n + j];

            for (int64_t k = 0; k < j; k++)
                v -= a[i * n + k] * conjl(a[j * n + k]);
            a[i * n + j] = v / d;
        }
        for (int64_t i = 0; i < j; i++)
            a[i * n + j] = 0;
    }
    return true;
}

void ref_la_call_cholesky(ref_la *l)
{
    int64_t n = l->c->n;
    bool lower = l->c->attr[0], good;
    hlo_wide *x = l->in[0], *a;

    for (int64_t i = 0; l->c->attr[1] && i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            hlo_wide v = (x[i * n + j] + conjl(x[j * n + i])) / 2;

            x[i * n + j] = v;
            x[j * n + i] = conjl(v);
        }
    a = ref_la_hermitian(l, lower);
    good = cholesky(a, n);
    for (int64_t i = 0; i < n; i++)
        good &= isfinite(creall(a[i * n + i]));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            hlo_wide v = good ? a[i * n + j] : CMPLXL(NAN, NAN);

            l->out[0][lower ? i * n + j : j * n + i] = lower ? v : conjl(v);
        }
}

/* Element (i, j) of op(a). */
static hlo_wide triangle_at(const ref_la *l, int64_t i, int64_t j)
{
    int64_t n = l->c->n, trans = l->c->attr[3];
    hlo_wide v = l->in[0][trans == HLO_TRANSPOSE_NONE ? i * n + j : j * n + i];

    if (i == j && l->c->attr[2])
        return 1;
    return trans == HLO_TRANSPOSE_ADJOINT ? conjl(v) : v;
}

/* op(a) x = b, or x op(a) = b, which is the same with rows for columns. */
void ref_la_triangular_solve(ref_la *l)
{
    int64_t n = l->c->n, q = l->c->q;
    bool left = l->c->attr[0];
    bool lower = (l->c->attr[1] != 0) == (l->c->attr[3] == HLO_TRANSPOSE_NONE);
    int64_t step = left ? q : 1, next = left ? 1 : q;

    memcpy(l->out[0], l->in[1], sizeof(hlo_wide) * (size_t)(l->c->p * q));
    for (int64_t v = 0; v < (left ? q : l->c->p); v++) {
        hlo_wide *x = l->out[0] + v * next;

        for (int64_t k = 0; k < n; k++) {
            int64_t i = lower == left ? k : n - 1 - k;

            for (int64_t c = 0; c < k; c++) {
                int64_t j = lower == left ? c : n - 1 - c;

                x[i * step] -=
                    (left ? triangle_at(l, i, j) : triangle_at(l, j, i)) *
                    x[j * step];
            }
            x[i * step] /= triangle_at(l, i, i);
        }
    }
}
