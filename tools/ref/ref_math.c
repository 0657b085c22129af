/* Evaluating contractions, Fourier transforms and norms, each by its
 * definition, in long double. */
#include "hlo_fft.h"
#include "hlo_scalar.h"
#include "ref_priv.h"

#include <math.h>

/* ---- sums of products ---- */

typedef struct { /* of numbers in one of two forms */
    bool whole;  /* integers: wrap in 64 bits */
    uint64_t i;
    hlo_wide w;
} sum;

static bool is_whole(sd_dtype t)
{
    return sd_dtype_kind(t) <= SD_K_UINT;
}

static sum sum_for(const hlo_value *x, const hlo_value *y, const hlo_value *z)
{
    return (sum){.whole = is_whole(x->shape->dtype) &&
                          is_whole(y->shape->dtype) &&
                          is_whole(z->shape->dtype)};
}

static void sum_add(sum *s, const hlo_value *x, int64_t i, const hlo_value *y,
                    int64_t k)
{
    sd_dtype tx = x->shape->dtype, ty = y->shape->dtype;
    const char *a = hlo_at_elem(x, i), *b = hlo_at_elem(y, k);

    if (s->whole) {
        s->i += (uint64_t)sd_scalar_to_s64(tx, a) *
                (uint64_t)sd_scalar_to_s64(ty, b);
        return;
    }
    hlo_wide v = hlo_wide_load(tx, a), w = hlo_wide_load(ty, b);
    long double re = creall(v) * creall(w), im = 0;

    if (sd_is_complex(tx) || sd_is_complex(ty)) {
        re -= cimagl(v) * cimagl(w);
        im = creall(v) * cimagl(w) + cimagl(v) * creall(w);
    }
    s->w = CMPLXL(creall(s->w) + re, cimagl(s->w) + im);
}

static void sum_put(const sum *s, hlo_value *out, int64_t i)
{
    sd_dtype t = out->shape->dtype;

    if (!s->whole)
        hlo_wide_store(t, s->w, hlo_at_elem(out, i));
    else if (t == SD_PRED) /* or of ands */
        *hlo_at_elem(out, i) = s->i != 0;
    else
        sd_scalar_of_s64(t, (int64_t)s->i, hlo_at_elem(out, i));
}

static void round_to(const hlo_value *x, bool tf32, hlo_value *y)
{
    sd_dtype from = x->shape->dtype, to = y->shape->dtype;

    for (int64_t i = 0; i < sd_shape_count(x->shape); i++) {
        hlo_scalar_convert(from, hlo_at_elem(x, i), to, hlo_at_elem(y, i));
        if (tf32)
            hlo_scalar_precision(to, 8, 10, hlo_at_elem(y, i),
                                 hlo_at_elem(y, i));
    }
}

/* The dot of rounded operands, in the accumulator's type. */
static sd_status by_algorithm(hlo_ev *e, const hlo_inst *in,
                              const hlo_value *arg, hlo_value *out)
{
    const hlo_algorithm *a = hlo_algorithm_of(in->u.dot->algorithm);
    hlo_dot d = *in->u.dot;
    hlo_inst plain = *in;
    hlo_value x[2], total = *out;
    sd_status st;

    d.algorithm = NULL;
    plain.u.dot = &d;
    for (int k = 0; k < 2; k++) {
        x[k] = arg[k];
        if (a->operand == HLO_AS_IS)
            continue;
        x[k] = hlo_value_make(e->arena, sd_shape_with(e->arena, arg[k].shape,
                                                      (sd_dtype)a->operand));
        round_to(&arg[k], a->tf32, &x[k]);
    }
    if (a->sum != HLO_AS_IS)
        total = hlo_value_make(
            e->arena, sd_shape_with(e->arena, out->shape, (sd_dtype)a->sum));
    if ((st = ref_dot(e, &plain, x, &total)))
        return st;
    if (a->sum != HLO_AS_IS)
        round_to(&total, false, out);
    return NULL;
}

sd_status ref_dot(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                  hlo_value *out)
{
    const hlo_dot *d = in->u.dot;
    const sd_shape *l = arg[0].shape, *r = arg[1].shape;
    int64_t ls[SD_MAX_RANK], rs[SD_MAX_RANK], size[SD_MAX_RANK];
    int64_t lmove[SD_MAX_RANK] = {0}, rmove[SD_MAX_RANK] = {0};
    int64_t ix[SD_MAX_RANK] = {0}, i = 0, depth = 1;
    int n = 0;

    if (d->algorithm)
        return by_algorithm(e, in, arg, out);
    sd_shape_strides(l, ls);
    sd_shape_strides(r, rs);
    for (int k = 0; k < d->lhs_batch.n; k++, n++) {
        lmove[n] = ls[d->lhs_batch.at[k]];
        rmove[n] = rs[d->rhs_batch.at[k]];
    }
    for (int k = 0; k < l->rank; k++)
        if (!hlo_dims_hold(d->lhs_batch, k) &&
            !hlo_dims_hold(d->lhs_contract, k))
            lmove[n++] = ls[k];
    for (int k = 0; k < r->rank; k++)
        if (!hlo_dims_hold(d->rhs_batch, k) &&
            !hlo_dims_hold(d->rhs_contract, k))
            rmove[n++] = rs[k];
    for (int k = 0; k < d->lhs_contract.n; k++) {
        size[k] = l->dim[d->lhs_contract.at[k]];
        depth *= size[k];
    }
    if (sd_shape_count(out->shape) == 0)
        return NULL;
    do {
        sum s = sum_for(&arg[0], &arg[1], out);
        int64_t cx[SD_MAX_RANK] = {0}, lb = 0, rb = 0;

        if (depth == 1) /* one product is itself, -0 too */
            s.w = CMPLXL(-0.0L, -0.0L);
        for (int k = 0; k < n; k++) {
            lb += ix[k] * lmove[k];
            rb += ix[k] * rmove[k];
        }
        if (depth > 0)
            do {
                int64_t la = lb, ra = rb;

                for (int k = 0; k < d->lhs_contract.n; k++) {
                    la += cx[k] * ls[d->lhs_contract.at[k]];
                    ra += cx[k] * rs[d->rhs_contract.at[k]];
                }
                sum_add(&s, &arg[0], la, &arg[1], ra);
            } while (hlo_step(d->lhs_contract.n, size, cx));
        sum_put(&s, out, i++);
    } while (hlo_step(n, out->shape->dim, ix));
    return NULL;
}

/* ---- convolution ---- */

/* Where the input is read for output ix and kernel tap w; -1: a zero. */
static int64_t conv_input(const hlo_conv *c, const sd_shape *x,
                          const int64_t *stride, const int64_t *ix,
                          const int64_t *w)
{
    int64_t at = 0;

    for (int d = 0; d < c->nspatial; d++) {
        const hlo_window_dim *win = &c->win[d];
        int64_t p = ix[c->out_spatial.at[d]] * win->stride +
                    w[d] * win->window_dilation - win->pad_low;

        if (p < 0 || p % win->base_dilation ||
            p / win->base_dilation >= x->dim[c->in_spatial.at[d]])
            return -1;
        at += p / win->base_dilation * stride[c->in_spatial.at[d]];
    }
    return at;
}

static void conv_one(const hlo_conv *c, const hlo_value *arg, const int64_t *ix,
                     const int64_t *xs, const int64_t *ks, sum *s)
{
    const sd_shape *x = arg[0].shape, *k = arg[1].shape;
    int64_t fo = ix[c->out_feature], nb = x->dim[c->in_batch];
    int64_t fin = k->dim[c->k_in], outs = k->dim[c->k_out];
    int64_t w[SD_MAX_RANK] = {0}, size[SD_MAX_RANK], taps = 1;
    /* the group that this output feature belongs to */
    int64_t fgroup = fo / (outs / c->feature_groups);
    int64_t bgroup = fo / (outs / c->batch_groups);
    int64_t batch = ix[c->out_batch] + bgroup * (nb / c->batch_groups);

    for (int d = 0; d < c->nspatial; d++) {
        size[d] = k->dim[c->k_spatial.at[d]];
        taps *= size[d];
    }
    if (taps == 0)
        return;
    do {
        int64_t at = conv_input(c, x, xs, ix, w);
        int64_t kat = fo * ks[c->k_out];

        if (at < 0)
            continue;
        for (int d = 0; d < c->nspatial; d++)
            kat += (c->win[d].reversal ? size[d] - 1 - w[d] : w[d]) *
                   ks[c->k_spatial.at[d]];
        at += batch * xs[c->in_batch];
        for (int64_t f = 0; f < fin; f++)
            sum_add(s, &arg[0], at + (fgroup * fin + f) * xs[c->in_feature],
                    &arg[1], kat + f * ks[c->k_in]);
    } while (hlo_step(c->nspatial, size, w));
}

sd_status ref_conv(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                   hlo_value *out)
{
    int64_t ix[SD_MAX_RANK] = {0}, xs[SD_MAX_RANK], ks[SD_MAX_RANK], i = 0;

    (void)e;
    if (sd_shape_count(out->shape) == 0)
        return NULL;
    sd_shape_strides(arg[0].shape, xs);
    sd_shape_strides(arg[1].shape, ks);
    do {
        sum s = sum_for(&arg[0], &arg[1], out);

        conv_one(in->u.conv, arg, ix, xs, ks, &s);
        sum_put(&s, out, i++);
    } while (hlo_step(out->shape->rank, out->shape->dim, ix));
    return NULL;
}

/* ---- Fourier transforms ---- */

/* The n-th roots of 1, clockwise or not. */
static void make_roots(hlo_wide *root, int64_t n, bool inverse)
{
    const long double pi = 3.141592653589793238462643383279502884L;

    for (int64_t k = 0; k < n; k++) {
        long double a = 2 * pi * (long double)k / (long double)n;

        root[k] = CMPLXL(cosl(a), inverse ? sinl(a) : -sinl(a));
    }
}

/* One line of n numbers, `step` apart, by the definition. */
static void transform_line(hlo_wide *x, int64_t n, int64_t step, bool inverse,
                           const hlo_wide *root, hlo_wide *tmp)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t e = 0; /* j k mod n */

        tmp[k] = 0;
        for (int64_t j = 0; j < n; j++) {
            tmp[k] += x[j * step] * root[e];
            e += k;
            e -= e >= n ? n : 0;
        }
        if (inverse)
            tmp[k] /= (long double)n;
    }
    for (int64_t k = 0; k < n; k++)
        x[k * step] = tmp[k];
}

/* irfft's other half: bin n - k is the conjugate of bin k, over all of the
 * transformed dimensions. */
static hlo_wide mirrored(const hlo_value *x, const int64_t *full, int n,
                         const int64_t *ix)
{
    const sd_shape *s = x->shape;
    int64_t stride[SD_MAX_RANK], at = 0, last = s->rank - 1;
    bool flip = ix[last] >= s->dim[last];

    sd_shape_strides(s, stride);
    for (int d = 0; d < s->rank; d++) {
        bool moved = flip && d >= s->rank - n;

        at += (moved ? (full[d] - ix[d]) % full[d] : ix[d]) * stride[d];
    }
    hlo_wide v = hlo_wide_load(s->dtype, hlo_at_elem(x, at));

    return flip ? conjl(v) : v;
}

sd_status ref_fft(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                  hlo_value *out)
{
    hlo_fft_type type = in->u.fft.type;
    bool inverse = type == HLO_FFT_IFFT || type == HLO_FFT_IRFFT;
    int rank = arg[0].shape->rank, n = in->u.fft.length.n;
    int64_t full[SD_MAX_RANK], ix[SD_MAX_RANK] = {0}, at = 0, i = 0, m = 0;
    const sd_shape *all;

    if (sd_shape_count(out->shape) == 0 || sd_shape_count(arg[0].shape) == 0)
        return NULL;
    memcpy(full, arg[0].shape->dim, sizeof *full * (size_t)rank);
    full[rank - 1] = in->u.fft.length.at[n - 1];
    for (int d = 0; d < rank; d++)
        m = SD_MAX(m, full[d]);
    all = sd_shape_make(e->arena, SD_C128, rank, full);
    hlo_wide *x = sd_arena_array(e->arena, hlo_wide, sd_shape_count(all));
    hlo_wide *tmp = sd_arena_array(e->arena, hlo_wide, m);
    hlo_wide *root = sd_arena_array(e->arena, hlo_wide, m);

    do
        x[at++] = mirrored(&arg[0], full, n, ix);
    while (hlo_step(rank, full, ix));
    int64_t stride[SD_MAX_RANK];

    sd_shape_strides(all, stride);
    for (int d = rank - n; d < rank; d++) {
        make_roots(root, full[d], inverse);
        for (int64_t k = 0; k < sd_shape_count(all) / full[d]; k++)
            transform_line(x + k / stride[d] * stride[d] * full[d] +
                               k % stride[d],
                           full[d], stride[d], inverse, root, tmp);
    }
    do {
        at = 0;
        for (int d = 0; d < rank; d++)
            at += ix[d] * stride[d];
        hlo_wide_store(out->shape->dtype, x[at], hlo_at_elem(out, i++));
    } while (hlo_step(rank, out->shape->dim, ix));
    return NULL;
}

/* ---- norms ---- */

typedef struct {
    const hlo_value *x;
    int64_t feature, count, stride, features;
} channel;

static long double real_at(const hlo_value *v, int64_t i)
{
    return creall(hlo_wide_load(v->shape->dtype, hlo_at_elem(v, i)));
}

static int64_t channel_of(const channel *c, int64_t i)
{
    return i / c->stride % c->features;
}

static void put_real(hlo_value *v, int64_t i, long double r)
{
    hlo_wide_store(v->shape->dtype, r, hlo_at_elem(v, i));
}

static void norm_training(hlo_ev *e, const channel *c, const hlo_inst *in,
                          const hlo_value *arg, hlo_value *out)
{
    long double *mean = sd_arena_array(e->arena, long double, c->features);
    long double *var = sd_arena_array(e->arena, long double, c->features);
    long double n = (long double)c->count / (long double)c->features;

    for (int64_t i = 0; i < c->count; i++)
        mean[channel_of(c, i)] += real_at(c->x, i) / n;
    for (int64_t i = 0; i < c->count; i++) {
        long double d = real_at(c->x, i) - mean[channel_of(c, i)];

        var[channel_of(c, i)] += d * d / n;
    }
    for (int64_t i = 0; i < c->count; i++) {
        int64_t f = channel_of(c, i);

        put_real(&out->elem[0], i,
                 real_at(&arg[1], f) * (real_at(c->x, i) - mean[f]) /
                         sqrtl(var[f] + in->u.norm.epsilon) +
                     real_at(&arg[2], f));
    }
    for (int64_t f = 0; f < c->features; f++) {
        put_real(&out->elem[1], f, mean[f]);
        put_real(&out->elem[2], f, var[f]);
    }
}

static void norm_inference(const channel *c, const hlo_inst *in,
                           const hlo_value *arg, hlo_value *out)
{
    for (int64_t i = 0; i < c->count; i++) {
        int64_t f = channel_of(c, i);

        put_real(out, i,
                 real_at(&arg[1], f) *
                         (real_at(c->x, i) - real_at(&arg[3], f)) /
                         sqrtl(real_at(&arg[4], f) + in->u.norm.epsilon) +
                     real_at(&arg[2], f));
    }
}

/* operands: x, scale, mean, variance, the output's gradient */
static void norm_grad(hlo_ev *e, const channel *c, const hlo_inst *in,
                      const hlo_value *arg, hlo_value *out)
{
    long double *dy = sd_arena_array(e->arena, long double, c->features);
    long double *dyx = sd_arena_array(e->arena, long double, c->features);
    long double n = (long double)c->count / (long double)c->features;

    for (int64_t i = 0; i < c->count; i++) {
        int64_t f = channel_of(c, i);
        long double g = real_at(&arg[4], i);

        dy[f] += g;
        dyx[f] += g * (real_at(c->x, i) - real_at(&arg[2], f));
    }
    for (int64_t i = 0; i < c->count; i++) {
        int64_t f = channel_of(c, i);
        long double v = real_at(&arg[3], f) + in->u.norm.epsilon;
        long double d = real_at(c->x, i) - real_at(&arg[2], f);

        put_real(&out->elem[0], i,
                 real_at(&arg[1], f) / sqrtl(v) / n *
                     (n * real_at(&arg[4], i) - dy[f] - d * dyx[f] / v));
    }
    for (int64_t f = 0; f < c->features; f++) {
        put_real(&out->elem[1], f,
                 dyx[f] / sqrtl(real_at(&arg[3], f) + in->u.norm.epsilon));
        put_real(&out->elem[2], f, dy[f]);
    }
}

sd_status ref_norm(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                   hlo_value *out)
{
    const sd_shape *s = arg[0].shape;
    int64_t stride[SD_MAX_RANK], f = in->u.norm.feature;
    channel c = {&arg[0], f, sd_shape_count(s), 0, s->dim[f]};

    if (c.count == 0)
        return NULL;
    sd_shape_strides(s, stride);
    c.stride = stride[f];
    if (in->op == HLO_BATCH_NORM_TRAINING)
        norm_training(e, &c, in, arg, out);
    else if (in->op == HLO_BATCH_NORM_INFERENCE)
        norm_inference(&c, in, arg, out);
    else
        norm_grad(e, &c, in, arg, out);
    return NULL;
}

/* ---- custom-call "sundog.fft", by the definition in hlo_fft.c ---- */

typedef struct {
    hlo_fft_lines f;
    hlo_wide *line, *tmp, *root, *turn;
    int64_t o, i, c; /* the line */
} fft_call;

/* Number j of the line in an array whose lines have n of them. */
static int64_t fft_at(const fft_call *l, int64_t j, int64_t n, bool moves)
{
    const hlo_fft_lines *f = &l->f;

    return moves ? ((l->o * n + j) * f->moved + l->i) * f->inner + l->c
                 : ((l->o * f->moved + l->i) * n + j) * f->inner + l->c;
}

/* Number j, of which half may be by mirror. */
static hlo_wide fft_in(const fft_call *l, const hlo_value *x, int64_t j)
{
    const hlo_fft_lines *f = &l->f;
    bool real = f->type == HLO_FFT_IRFFT;
    bool rows = f->type == HLO_FFT_IFFT && f->whole, half = real || rows;
    int64_t n = rows ? f->whole : f->n, k = rows ? l->c + n / f->n * j : j;
    bool flip = half && k > n / 2;
    int64_t at = flip ? n - k : k;
    hlo_wide v;

    at = rows ? l->o * (n / 2 + 1) + at
              : fft_at(l, at, real ? n / 2 + 1 : n, false);
    v = hlo_wide_load(x->shape->dtype, hlo_at_elem(x, at));
    /* what a real line's transform cannot have is not read */
    if (half && 2 * k % n == 0)
        v = creall(v);
    return flip ? conjl(v) : v;
}

static void fft_out(const fft_call *l, int64_t k, hlo_wide v, hlo_value *out)
{
    const hlo_fft_lines *f = &l->f;
    int64_t n = f->type == HLO_FFT_RFFT ? f->n / 2 + 1 : f->n, at;

    if (f->whole && f->type == HLO_FFT_FFT) {
        at = l->i + f->whole / f->n * k; /* of a line that is its own mirror
                                            both halves are the same */
        if (at > f->whole / 2) {
            at = f->whole - at;
            v = conjl(v);
        }
        at += l->o * (f->whole / 2 + 1);
    } else if (f->whole) {
        at = (l->o * f->inner + l->c) * f->n + k;
    } else {
        at = fft_at(l, k, n, true);
    }
    hlo_wide_store(out->shape->dtype, v, hlo_at_elem(out, at));
}

/* The table is not asked. */
sd_status ref_fft_lines(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                        hlo_value *out)
{
    fft_call l = {0};
    const hlo_fft_lines *f = &l.f;
    hlo_fft_plan p;
    int64_t out_n, nline;
    bool inverse;

    if (!hlo_fft_read(in, &l.f, &p))
        return ref_misfit(in);
    nline = f->outer * f->moved * f->inner;
    inverse = f->type == HLO_FFT_IFFT || f->type == HLO_FFT_IRFFT;
    out_n = f->type == HLO_FFT_RFFT ? f->n / 2 + 1 : f->n;
    l.line = sd_arena_array(e->arena, hlo_wide, 3 * f->n + f->turn);
    l.tmp = l.line + f->n;
    l.root = l.tmp + f->n;
    l.turn = l.root + f->n;
    make_roots(l.root, f->n, inverse);
    make_roots(l.turn, f->turn, inverse);
    for (int64_t t = 0; t < nline; t++) {
        l.c = t % f->inner;
        l.i = t / f->inner % f->moved;
        l.o = t / f->inner / f->moved;
        for (int64_t j = 0; j < f->n; j++)
            l.line[j] = fft_in(&l, &arg[0], j);
        transform_line(l.line, f->n, 1, inverse, l.root, l.tmp);
        for (int64_t k = 0; k < out_n; k++) {
            hlo_wide v = l.line[k] / (long double)f->count;

            if (inverse) /* that divided by n */
                v *= (long double)f->n;
            if (f->turn)
                v *= l.turn[(__int128)k * (l.c / f->each) % f->turn];
            fft_out(&l, k, v, out);
        }
    }
    return NULL;
}
