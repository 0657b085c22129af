/* The tables of roots of 1 that src/devlib/dl_fft.h reads, in its order.  Each
 * is rounded once, from long double. */
#include "fft_table.h"

#include <assert.h>
#include <math.h>

typedef struct {
    sd_dtype part;
    char *at;
} writer;

static void put(writer *w, long double v)
{
    sd_scalar_of_f64(w->part, (double)v, w->at);
    w->at += sd_dtype_bytes(w->part);
}

/* exp(pi i e / n), 0 <= e < 2 n, by what is exact of it: halves, quarters and
 * eighths of a turn. */
void fft_half_root(int64_t e, int64_t n, long double v[2])
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

/* w(n, e) = exp(-2 pi i e / n) for all e < n, by their eighth of a turn.  What
 * a length shares is asked for often. */
typedef struct {
    int64_t n;
    long double (*at)[2];
} roots;

static roots roots_of(sd_arena *a, int64_t n)
{
    roots r = {n, sd_arena_alloc(a, (size_t)n * sizeof *r.at)};

    for (int64_t e = 0; 2 * e <= n; e++) {
        fft_half_root(2 * e, n, r.at[e]);
        r.at[e][1] = 0 - r.at[e][1];
        if (e == 0 || 2 * e == n)
            continue;
        r.at[n - e][0] = r.at[e][0];
        r.at[n - e][1] = -r.at[e][1];
    }
    return r;
}

static void put_root(writer *w, const roots *r, int64_t e)
{
    put(w, r->at[e][0]);
    put(w, r->at[e][1]);
}

static void put_roots(writer *w, const roots *all, int64_t r)
{
    for (int64_t e = 0; e < r; e++)
        put_root(w, all, e * (all->n / r));
}

/* Of a stage with radix r over m rows, of which the first `results` are
 * wanted: w(r m, p k).  all: roots of a multiple. */
static void put_stage(writer *w, const roots *all, int64_t r, int64_t m,
                      int64_t results)
{
    int64_t step = all->n / (r * m);

    for (int64_t p = 0; p < m; p++)
        for (int64_t k = 1; k < results; k++)
            put_root(w, all, p * k * step);
}

static void put_stages(writer *w, const roots *all, const hlo_fft_plan *p)
{
    int64_t m = p->across ? p->n / p->across : p->n;

    if (p->real) {
        m /= p->real;
        put_roots(w, all, p->real);
        put_stage(w, all, p->real, m, p->real / 2 + 1);
    }
    for (int i = 0; i < p->nradix; i++) {
        int64_t r = p->radix[i];

        m /= r;
        if (hlo_fft_has_roots(r))
            put_roots(w, all, r);
        put_stage(w, all, r, m, r);
    }
}

/* Real parts and imaginary parts apart, column by column. */
static void put_across(writer *w, const roots *all, int64_t r, int64_t rows)
{
    if (r % 2)
        put_roots(w, all, r);
    for (int part = 0; part < 2; part++)
        for (int64_t j = 1; j < r; j++)
            for (int64_t k = 0; k < rows; k++)
                put(w, all->at[j * k % all->n][part]);
}

/* ---- a chirp ---- */

/* In place, by definition where n is odd, else from both halves. */
static void transform(long double (*x)[2], long double (*tmp)[2], int64_t n,
                      int64_t step, const roots *w)
{
    int64_t h = n / 2;

    if (n == 1)
        return;
    if (n % 2) {
        for (int64_t k = 0; k < n; k++) {
            tmp[k][0] = tmp[k][1] = 0;
            for (int64_t j = 0; j < n; j++) {
                const long double *r = w->at[j * k % n * step];

                tmp[k][0] += x[j][0] * r[0] - x[j][1] * r[1];
                tmp[k][1] += x[j][0] * r[1] + x[j][1] * r[0];
            }
        }
        memcpy(x, tmp, (size_t)n * sizeof *x);
        return;
    }
    for (int64_t i = 0; i < h; i++) {
        memcpy(tmp[i], x[2 * i], sizeof *x);
        memcpy(tmp[h + i], x[2 * i + 1], sizeof *x);
    }
    transform(tmp, x, h, 2 * step, w);
    transform(tmp + h, x + h, h, 2 * step, w);
    for (int64_t k = 0; k < h; k++) {
        const long double *r = w->at[k * step], *o = tmp[h + k];
        long double re = o[0] * r[0] - o[1] * r[1];
        long double im = o[0] * r[1] + o[1] * r[0];

        x[k][0] = tmp[k][0] + re;
        x[k][1] = tmp[k][1] + im;
        x[h + k][0] = tmp[k][0] - re;
        x[h + k][1] = tmp[k][1] - im;
    }
}

/* exp(-pi i j^2 / n), j < n, and the transform of its conjugate, wrapped around
 * len numbers as far as the difference of `up` results' numbers and `down`
 * numbers' goes, divided by len. */
static void put_chirp(writer *w, sd_arena *a, int64_t n, int64_t up,
                      int64_t down, int64_t len)
{
    size_t bytes = (size_t)len * 2 * sizeof(long double);
    long double (*x)[2] = sd_arena_alloc(a, bytes), v[2];
    long double (*tmp)[2] = sd_arena_alloc(a, bytes);
    roots r = roots_of(a, len);

    for (int64_t j = 0; j < n; j++) {
        fft_half_root((int64_t)((__int128)j * j % (2 * n)), n, v);
        put(w, v[0]);
        put(w, 0 - v[1]);
        if (j < up)
            memcpy(x[j], v, sizeof v);
        if (j && j < down)
            memcpy(x[len - j], v, sizeof v);
    }
    transform(x, tmp, len, 1, &r);
    for (int64_t k = 0; k < len; k++) {
        put(w, x[k][0] / (long double)len);
        put(w, x[k][1] / (long double)len);
    }
}

/* ---- the table ---- */

static void put_extra(writer *w, sd_arena *a, const hlo_fft_lines *f,
                      const hlo_fft_plan *p)
{
    bool of_real = f->type == HLO_FFT_RFFT;
    bool odd = (of_real || f->type == HLO_FFT_IRFFT) && !p->halves;
    int shift = hlo_fft_shift(f->turn);
    long double v[2];

    if (p->chirp)
        put_chirp(w, a, p->length, odd && of_real ? f->n / 2 + 1 : p->length,
                  odd && !of_real ? f->n / 2 + 1 : p->length, p->n);
    for (int64_t k = 0; p->halves && k < p->length; k++) {
        fft_half_root(k, p->length, v);
        put(w, v[0]);
        put(w, 0 - v[1]);
    }
    for (int64_t e = 0; f->turn && e < (int64_t)1 << shift; e++) {
        fft_half_root(2 * e % (2 * f->turn), f->turn, v);
        put(w, v[0]);
        put(w, 0 - v[1]);
    }
    for (int64_t e = 0; f->turn && e << shift < f->turn; e++) {
        fft_half_root(2 * (e << shift), f->turn, v);
        put(w, v[0]);
        put(w, 0 - v[1]);
    }
}

hlo_inst *fft_table(hlo_at p, const hlo_fft_lines *f)
{
    sd_arena *a = sd_arena_create();
    hlo_fft_plan plan;
    const sd_shape *s;
    hlo_inst *in;
    writer w;
    roots all;
    char *data;

    hlo_fft_plan_of(f, &plan);
    s = sd_shape_make(p.c->module->arena, f->part, 1, &plan.table);
    data = sd_arena_alloc(a, sd_shape_bytes(s));
    w = (writer){f->part, data};
    all = roots_of(a, plan.n);
    put_stages(&w, &all, &plan);
    if (plan.across)
        put_across(&w, &all, plan.across, plan.n / plan.across);
    assert(w.at == data + plan.extra * (int64_t)sd_dtype_bytes(f->part));
    put_extra(&w, a, f, &plan);
    in = hlo_make_constant(p, s, data);
    sd_arena_destroy(a);
    return in;
}
