/* fft into sums, products and constants.  A line of n = r m numbers is, for
 * every factor r of n up to MOST_RADIX, r times a transform of m (Cooley and
 * Tukey, 1965, in Stockham's order, which needs no shuffle):
 *
 *   y[j, k, c] = w(n, j k) * sum over i of w(r, i k) x[i, j, c]
 *
 * with x[r, m, c], y[m, r, c], w(n, e) the e-th power of a root of 1, and
 * [r, c] the columns of what comes next.  A line with a larger prime factor
 * is a convolution with a chirp, done by transforms of a power of two
 * (Bluestein, 1970).  Several dimensions go one after the other. */
#include "matrix.h"

#include <math.h>

enum {
    MOST_RADIX = 16,   /* of several primes */
    MOST_PRIME = 127,  /* what is larger takes three other transforms */
    MOST_FACTORS = 64, /* of a length */
    MOST_ROOTS = 4096  /* of a table; longer ones are made of two */
};

typedef struct {
    hlo_at p;
    sd_dtype type; /* complex */
    bool inverse;
} fft;

static hlo_inst *bin(const fft *f, hlo_op op, hlo_inst *x, hlo_inst *y)
{
    return hlo_make_binary(f->p, op, x, y);
}

static hlo_inst *reshaped(const fft *f, hlo_inst *x, int64_t b, int64_t n,
                          int64_t c)
{
    return pass_reshape(f->p, x, 3, (int64_t[]){b, n, c});
}

/* ---- roots of 1 ---- */

/* exp(pi i e / n), 0 <= e < 2 n, by what is exact of it: halves, quarters and
 * eighths of a turn. */
static void half_root(int64_t e, int64_t n, long double v[2])
{
    const long double pi = 3.141592653589793238462643383279502884L;
    bool below = e > n, left, steep;
    long double a;

    if (below)
        e = 2 * n - e;
    left = 2 * e > n;
    if (left)
        e = n - e;
    steep = 4 * e > n;
    a = steep ? pi * (long double)(n - 2 * e) / (long double)(2 * n)
              : pi * (long double)e / (long double)n;
    v[0] = steep ? sinl(a) : cosl(a);
    v[1] = steep ? cosl(a) : sinl(a);
    if (left)
        v[0] = -v[0];
    if (below)
        v[1] = -v[1];
}

/* The constant [rows, cols] of half_root(e(i, j)), turning as f does; the
 * exponent of row i and column j is step * i * j, or the row's square where
 * there is one column.  No part is -0. */
static hlo_inst *roots(const fft *f, int64_t rows, int64_t cols, int64_t step,
                       int64_t n, bool squares)
{
    sd_arena *a = f->p.c->module->arena;
    sd_dtype part = sd_dtype_part(f->type);
    size_t size = sd_dtype_bytes(part);
    int64_t dim[] = {rows, cols};
    const sd_shape *s = sd_shape_make(a, f->type, squares ? 1 : 2, dim);
    char *to = sd_arena_alloc(a, sd_shape_bytes(s));

    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            __int128 e = squares ? (__int128)i * i : (__int128)step * i * j;
            char *at = to + (size_t)(i * cols + j) * 2 * size;
            long double v[2];

            half_root((int64_t)(e % (2 * n)), n, v);
            sd_scalar_of_f64(part, (double)v[0], at);
            sd_scalar_of_f64(part, (double)(f->inverse ? v[1] : 0 - v[1]),
                             at + size);
        }
    return hlo_make_constant(f->p, s, to);
}

/* ---- mixed radix ---- */

/* The largest divisor of n up to MOST_RADIX, else a prime; 0: too large. */
static int64_t factor(int64_t n)
{
    for (int64_t r = MOST_RADIX; r > 1; r--)
        if (n % r == 0)
            return r;
    for (int64_t r = MOST_RADIX + 1; r <= MOST_PRIME; r++)
        if (n % r == 0)
            return r;
    return 0;
}

/* The first factor is also how many columns the next sums have for lanes: it
 * had better fill a vector. */
static int64_t first_factor(int64_t n)
{
    for (int64_t r = MOST_RADIX; r <= MOST_PRIME; r++)
        if (n % r == 0)
            return r;
    return factor(n);
}

/* How many factors; 0: a prime is too large. */
static int factors(int64_t n, int64_t *to)
{
    int k = 0;

    while (n > 1) {
        int64_t r = k ? factor(n) : first_factor(n);

        if (!r)
            return 0;
        to[k++] = r;
        n /= r;
    }
    return k;
}

/* x * w(r m, j k) for x [b, m, r, c]: with m = mh * ml and j = jh * ml + jl it
 * is w(.., jh ml k) * w(.., jl k), two short tables. */
static hlo_inst *twiddle(const fft *f, hlo_inst *x, int64_t ml)
{
    const int64_t *d = x->shape->dim;
    int64_t b = d[0], m = d[1], r = d[2], c = d[3], mh = m / ml;
    int64_t dim[] = {b, mh, ml, r, c};
    hlo_inst *w;

    if (m == 1)
        return x;
    x = hlo_make_reshape(f->p, x, 5, dim);
    w = roots(f, ml, r, 2, m * r, false);
    w = hlo_make_broadcast(f->p, w, x->shape, (int64_t[]){2, 3}, 2);
    x = bin(f, HLO_MULTIPLY, x, w);
    if (mh == 1)
        return x;
    w = roots(f, mh, r, 2 * ml, m * r, false);
    w = hlo_make_broadcast(f->p, w, x->shape, (int64_t[]){1, 3}, 2);
    return bin(f, HLO_MULTIPLY, x, w);
}

/* One factor: [b, r m, c] -> [b, m, r c], of which m is still to do. */
static hlo_inst *stage(const fft *f, hlo_inst *x, int64_t r, int64_t ml)
{
    const int64_t *d = x->shape->dim;
    int64_t b = d[0], m = d[1] / r, c = d[2], over = 1;
    int64_t all[] = {b, r, m, r, c}, from[] = {b, r, m, c};
    const sd_shape *s = sd_shape_make(f->p.c->module->arena, f->type, 5, all);
    hlo_inst *w = roots(f, r, r, 2, r, false);

    x = hlo_make_reshape(f->p, x, 4, from);
    x = hlo_make_broadcast(f->p, x, s, (int64_t[]){0, 1, 2, 4}, 4);
    w = hlo_make_broadcast(f->p, w, s, (int64_t[]){1, 3}, 2);
    x = hlo_make_reduce(f->p, bin(f, HLO_MULTIPLY, x, w),
                        hlo_make_scalar(f->p, f->type, 0), &over, 1,
                        hlo_scalar_comp(f->p.c->module, HLO_ADD, f->type));
    return reshaped(f, twiddle(f, x, ml), b, m, r * c);
}

static hlo_inst *mixed_radix(const fft *f, hlo_inst *x, const int64_t *r, int n)
{
    int64_t b = x->shape->dim[0], len = x->shape->dim[1], c = x->shape->dim[2];
    int64_t m = len;

    for (int i = 0; i < n; i++) {
        int64_t ml = 1;

        m /= r[i];
        for (int k = i + 1; k < n && (ml * ml < m || m * r[i] <= MOST_ROOTS);
             k++)
            ml *= r[k];
        x = stage(f, x, r[i], ml);
    }
    return reshaped(f, x, b, len, c);
}

/* ---- any length ---- */

static hlo_inst *transform(const fft *f, hlo_inst *x);

/* [n] over x [b, n, c] */
static hlo_inst *times_column(const fft *f, hlo_inst *x, hlo_inst *v)
{
    return bin(f, HLO_MULTIPLY, x,
               hlo_make_broadcast(f->p, v, x->shape, (int64_t[]){1}, 1));
}

/* The chirp's conjugate, [n], at 0, 1, .. and at len - 1, len - 2, ..: what
 * the convolution wraps around. */
static hlo_inst *wrapped_chirp(const fft *f, hlo_inst *chirp, int64_t len)
{
    int64_t n = chirp->shape->dim[0], zero = 0, one = 1, gap = len - 2 * n + 1;
    hlo_inst *x = matrix_conj(f->p, chirp), *part[2];

    part[1] = hlo_make_slice(f->p, x, &one, &n, NULL);
    part[1] = hlo_make_reverse(f->p, part[1], &zero, 1);
    part[0] = hlo_make_pad(f->p, x, hlo_make_scalar(f->p, f->type, 0), &zero,
                           &gap, NULL);
    return reshaped(f, hlo_make_concatenate(f->p, 2, part, 0), 1, len, 1);
}

static hlo_inst *bluestein(const fft *f, hlo_inst *x)
{
    fft forward = *f, back = *f;
    int64_t b = x->shape->dim[0], n = x->shape->dim[1], c = x->shape->dim[2];
    int64_t len = 1, zero[3] = {0}, limit[] = {b, n, c};
    hlo_inst *chirp = roots(f, n, 1, 1, n, true), *with;

    while (len < 2 * n - 1)
        len *= 2;
    forward.inverse = false;
    back.inverse = true;
    with = transform(&forward, wrapped_chirp(f, chirp, len));
    with = hlo_make_reshape(f->p, with, 1, &len);
    x = matrix_pad(f->p, times_column(f, x, chirp), len, c);
    x = times_column(f, transform(&forward, x), with);
    x = hlo_make_slice(f->p, transform(&back, x), zero, limit, NULL);
    with = hlo_make_fill(f->p, x->shape, 1 / (double)len);
    return times_column(f, bin(f, HLO_MULTIPLY, x, with), chirp);
}

/* The lines of [b, n, c] along n, not divided by n. */
static hlo_inst *transform(const fft *f, hlo_inst *x)
{
    int64_t r[MOST_FACTORS], n = x->shape->dim[1];
    int k = factors(n, r);

    return n == 1 ? x : k ? mixed_radix(f, x, r, k) : bluestein(f, x);
}

static hlo_inst *transform_dim(const fft *f, hlo_inst *x, int dim)
{
    const sd_shape *s = x->shape;
    int64_t b = 1, c = 1;

    for (int i = 0; i < dim; i++)
        b *= s->dim[i];
    for (int i = dim + 1; i < s->rank; i++)
        c *= s->dim[i];
    x = transform(f, reshaped(f, x, b, s->dim[dim], c));
    return pass_reshape(f->p, x, s->rank, s->dim);
}

/* ---- real lines ---- */

static hlo_inst *cut_last(const fft *f, hlo_inst *x, int64_t from, int64_t to)
{
    int64_t start[SD_MAX_RANK] = {0}, limit[SD_MAX_RANK];
    int last = x->shape->rank - 1;

    memcpy(limit, x->shape->dim, sizeof *limit * (size_t)x->shape->rank);
    start[last] = from;
    limit[last] = to;
    return hlo_make_slice(f->p, x, start, limit, NULL);
}

/* The half that a real line's transform leaves out: bin n - k is the conjugate
 * of bin k. */
static hlo_inst *with_mirror(const fft *f, hlo_inst *x, int64_t n)
{
    int64_t last = x->shape->rank - 1;
    hlo_inst *part[2] = {x};

    part[1] = cut_last(f, x, 1, (n + 1) / 2);
    part[1] = hlo_make_reverse(f->p, matrix_conj(f->p, part[1]), &last, 1);
    return hlo_make_concatenate(f->p, 2, part, last);
}

static hlo_inst *lower(hlo_inst *in)
{
    hlo_fft_type type = in->u.fft.type;
    fft f = {pass_at(in), sd_dtype_complex(sd_dtype_part(pass_dtype(in))),
             type == HLO_FFT_IFFT || type == HLO_FFT_IRFFT};
    int rank = in->shape->rank, n = in->u.fft.n, last = rank - 1;
    hlo_inst *x = in->arg[0];
    double count = 1;

    if (sd_shape_count(in->shape) == 0 || sd_shape_count(x->shape) == 0)
        return hlo_make_fill(f.p, in->shape, 0);
    for (int i = 0; i < n; i++)
        count *= (double)in->u.fft.length[i];
    if (type == HLO_FFT_RFFT) {
        x = bin(&f, HLO_COMPLEX, x, hlo_make_fill(f.p, x->shape, 0));
        x = transform_dim(&f, x, last);
        x = cut_last(&f, x, 0, in->shape->dim[last]);
    }
    for (int d = rank - n; d < last; d++)
        x = transform_dim(&f, x, d);
    if (type == HLO_FFT_IRFFT)
        x = with_mirror(&f, x, in->u.fft.length[n - 1]);
    if (type != HLO_FFT_RFFT)
        x = transform_dim(&f, x, last);
    if (type == HLO_FFT_IRFFT)
        x = hlo_make_unary(f.p, HLO_REAL, x);
    return f.inverse ? bin(&f, HLO_MULTIPLY, x,
                           hlo_make_fill(f.p, x->shape, 1 / count))
                     : x;
}

bool hlo_lower_fft(hlo_module *m, const device_desc *dev)
{
    (void)dev;
    return pass_rewrite(m, HLO_FFT, lower);
}
