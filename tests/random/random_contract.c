/* Makers of contractions, norms and random bits. */
#include "random.h"

#include <math.h>

static const random_need anything = {INFINITY, false, false};

/* What a product of sums is in, and of what: whole numbers that fit. */
static bool product_types(random_gen *g, int64_t n, sd_dtype *in, sd_dtype *out,
                          random_need *need)
{
    sd_dtype t = random_dtype(g, HLO_T_ANY), to = t;
    double most;

    if (t == SD_F8E8M0FNU || (t == SD_PRED && random_chance(g, 90)))
        return false;
    if (random_is_float(t) && sd_dtype_table[t].bits <= 16)
        to = random_chance(g, 60) ? SD_F32 : t;
    if (!random_is_float(t) && sd_dtype_table[t].bits <= 16 && t != SD_PRED)
        to = random_chance(g, 60) ? SD_S32 : t;
    most = floor(sqrt(random_type_of(to).whole / (2 * (double)(n + 1))));
    if (random_is_float(t) && most < 1)
        return false;
    *need = random_is_float(t) ? (random_need){SD_MIN(most, 16), true, true}
                               : anything;
    *in = t;
    *out = to;
    return true;
}

static random_fact product_fact(sd_dtype t, int64_t n, hlo_inst *x, hlo_inst *y)
{
    random_fact f = {0, 0, true, false};

    if (!random_is_float(t))
        return random_exact_int(t);
    f.bound = 2 * (double)(n + 1) * random_fact_of(x)->bound *
              random_fact_of(y)->bound;
    return f;
}

static void set_dims(random_gen *g, hlo_dims *d, const int64_t *at, int n)
{
    *d = hlo_dims_copy(g->a, at, n);
}

/* Each side has batch, free and contracted dimensions, shuffled. */
typedef struct {
    int64_t dim[8], batch[2], contract[2];
    int rank;
} dot_side;

static void shuffle_side(random_gen *g, int nb, int nk, int nfree,
                         const int64_t *b, const int64_t *k, dot_side *s)
{
    int n = nb + nk + nfree, perm[8];

    s->rank = n;
    for (int i = 0; i < n; i++)
        perm[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)random_below(g, i + 1), v = perm[i];

        perm[i] = perm[j];
        perm[j] = v;
    }
    for (int i = 0; i < n; i++) {
        int what = perm[i];

        if (what < nb) {
            s->dim[i] = b[what];
            s->batch[what] = i;
        } else if (what < nb + nk) {
            s->dim[i] = k[what - nb];
            s->contract[what - nb] = i;
        } else {
            s->dim[i] = random_chance(g, 3) ? 0 : 1 + random_below(g, 12);
        }
    }
}

void random_make_dot(random_gen *g)
{
    int nb = random_chance(g, 60) ? 0 : 1 + (int)random_below(g, 2);
    int nk = random_chance(g, 80) ? 1 : (int)random_below(g, 3);
    int64_t b[2], k[2], n = 1;
    hlo_dot *d = sd_arena_new(g->a, hlo_dot);
    dot_side l, r;
    hlo_inst *arg[2], *in;
    random_need need;
    sd_dtype t, to;

    for (int i = 0; i < nb; i++)
        b[i] = 1 + random_below(g, 4);
    for (int i = 0; i < nk; i++) {
        k[i] = random_chance(g, 3) ? 0 : 1 + random_below(g, nk > 1 ? 5 : 40);
        n *= k[i];
    }
    if (!product_types(g, n, &t, &to, &need))
        return;
    /* whole numbers have up to 24 bits, more than tf32 */
    d->prec[0] = d->prec[1] = HLO_PREC_HIGHEST;
    shuffle_side(g, nb, nk, (int)random_below(g, 3), b, k, &l);
    shuffle_side(g, nb, nk, (int)random_below(g, 3), b, k, &r);
    set_dims(g, &d->lhs_batch, l.batch, nb);
    set_dims(g, &d->rhs_batch, r.batch, nb);
    set_dims(g, &d->lhs_contract, l.contract, nk);
    set_dims(g, &d->rhs_contract, r.contract, nk);
    arg[0] = random_want(g, random_dims(g, t, l.rank, l.dim), need);
    arg[1] = random_want(g, random_dims(g, t, r.rank, r.dim), need);
    in = random_inst(g, HLO_DOT, random_dims(g, to, 0, NULL), 2, arg);
    in->u.dot = d;
    random_infer(g, in);
    if (sd_shape_count(in->shape) * SD_MAX(n, 1) > 40000) {
        hlo_remove(in);
        return;
    }
    random_keep(g, in, product_fact(to, n, arg[0], arg[1]));
}

static void number_dims(random_gen *g, int rank, int64_t *a, int64_t *b,
                        hlo_dims *spatial)
{
    int64_t perm[5];

    for (int i = 0; i < rank; i++) {
        int64_t k = random_below(g, i + 1);

        perm[i] = perm[k];
        perm[k] = i;
    }
    *a = perm[0];
    *b = perm[1];
    *spatial = hlo_dims_copy(g->a, perm + 2, rank - 2);
}

static void conv_windows(random_gen *g, hlo_conv *c, int64_t *n)
{
    c->win = sd_arena_array(g->a, hlo_window_dim, c->nspatial + 1);
    for (int i = 0; i < c->nspatial; i++) {
        c->win[i] = (hlo_window_dim){
            1 + random_below(g, 4),       1 + random_below(g, 2),
            random_below(g, 4) - 1,       random_below(g, 4) - 1,
            random_chance(g, 20) ? 2 : 1, random_chance(g, 20) ? 2 : 1,
            random_chance(g, 15)};
        *n *= c->win[i].size;
    }
}

void random_make_conv(random_gen *g)
{
    hlo_conv *c = sd_arena_new(g->a, hlo_conv);
    int64_t xd[5], kd[5], n, groups = random_chance(g, 70) ? 1 : 2;
    bool batch_groups = random_chance(g, 30);
    int64_t features = (1 + random_below(g, 4)) * groups, each;
    int rank;
    hlo_inst *arg[2], *in;
    random_need need;
    sd_dtype t, to;

    c->nspatial = (int)random_below(g, 4);
    rank = c->nspatial + 2;
    c->feature_groups = batch_groups ? 1 : groups;
    c->batch_groups = batch_groups ? groups : 1;
    each = features / c->feature_groups;
    n = each;
    conv_windows(g, c, &n);
    if (!product_types(g, n, &t, &to, &need) || t == SD_PRED)
        return;
    number_dims(g, rank, &c->in_batch, &c->in_feature, &c->in_spatial);
    number_dims(g, rank, &c->k_in, &c->k_out, &c->k_spatial);
    number_dims(g, rank, &c->out_batch, &c->out_feature, &c->out_spatial);
    xd[c->in_batch] = (1 + random_below(g, 3)) * groups;
    xd[c->in_feature] = features;
    kd[c->k_in] = each;
    kd[c->k_out] = (1 + random_below(g, 4)) * groups;
    for (int i = 0; i < c->nspatial; i++) {
        int64_t extent =
            g->even ? INT64_C(2) << random_below(g, 3) : 1 + random_below(g, 7);

        random_even_out(g, &c->win[i], extent);
        xd[c->in_spatial.at[i]] = extent;
        kd[c->k_spatial.at[i]] = c->win[i].size;
    }
    c->prec[0] = c->prec[1] = HLO_PREC_HIGHEST;
    arg[0] = random_want(g, random_dims(g, t, rank, xd), need);
    arg[1] = random_want(g, random_dims(g, t, rank, kd), need);
    in = random_inst(g, HLO_CONVOLUTION, random_dims(g, to, 0, NULL), 2, arg);
    in->u.conv = c;
    random_infer(g, in);
    if (sd_shape_count(in->shape) * n > 60000) {
        hlo_remove(in);
        return;
    }
    random_keep(g, in, product_fact(to, n, arg[0], arg[1]));
}

/* ---- norms and random bits ---- */

void random_make_norm(random_gen *g)
{
    bool train = random_chance(g, 50);
    sd_dtype t = random_chance(g, 70) ? SD_F32 : SD_F64;
    const sd_shape *s = random_shape(g, t);
    random_need small = {4, true, true};
    hlo_inst *arg[5], *in;
    int64_t f;
    double n;
    random_fact fact = {64, 0, false, false};

    if (s->rank == 0 || sd_shape_count(s) == 0)
        return;
    f = random_below(g, s->rank);
    n = (double)sd_shape_count(s);
    arg[0] = random_want(g, s, small);
    for (int i = 1; i < (train ? 3 : 5); i++)
        arg[i] = random_want(g, random_dims(g, t, 1, &s->dim[f]), small);
    if (!train) { /* a variance is not negative */
        arg[4] = hlo_make_unary(random_at(g), HLO_ABS, arg[4]);
    }
    in = random_inst(g,
                     train ? HLO_BATCH_NORM_TRAINING : HLO_BATCH_NORM_INFERENCE,
                     NULL, train ? 3 : 5, arg);
    in->u.norm.epsilon = 1;
    in->u.norm.feature = f;
    random_infer(g, in);
    fact.error = 64 * random_type_of(t).ulp * (4 + n);
    if (!train) {
        random_keep(g, in, fact);
        return;
    }
    for (int i = 0; i < 3; i++)
        random_keep(g, hlo_make_gte(random_at(g), in, i), fact);
}

void random_make_rng(random_gen *g)
{
    sd_dtype t = random_dtype(g, HLO_T_INT);
    const sd_shape *s = random_shape(g, t), *parts[2];
    bool three = random_chance(g, 50);
    int64_t words = three ? 3 : 2;
    hlo_inst *x, *in;

    if (sd_dtype_table[t].bits < 8)
        return;
    parts[0] = random_dims(g, SD_U64, 1, &words);
    parts[1] = s;
    x = random_want(g, parts[0], anything);
    in = random_inst(g, HLO_RNG_BIT_GENERATOR, sd_shape_tuple(g->a, 2, parts),
                     1, &x);
    in->u.rng.algo = three ? HLO_RNG_PHILOX : HLO_RNG_THREEFRY;
    random_infer(g, in);
    random_keep(g, hlo_make_gte(random_at(g), in, 0), random_exact_int(SD_U64));
    random_keep(g, hlo_make_gte(random_at(g), in, 1), random_exact_int(t));
}

/* ---- Fourier transforms: for modules of even extents (random_parts.c) ---- */

static const sd_shape *transformed(random_gen *g, hlo_fft_type type,
                                   const sd_shape *s)
{
    int64_t dim[SD_MAX_RANK];
    sd_dtype part = sd_dtype_part(s->dtype);

    memcpy(dim, s->dim, sizeof *dim * (size_t)s->rank);
    if (type == HLO_FFT_RFFT)
        dim[s->rank - 1] = dim[s->rank - 1] / 2 + 1;
    return random_dims(g, type == HLO_FFT_IRFFT ? part : sd_dtype_complex(part),
                       s->rank, dim);
}

void random_make_fft(random_gen *g)
{
    sd_dtype part = random_chance(g, 70) ? SD_F32 : SD_F64;
    bool real = random_chance(g, 30);
    hlo_fft_type type = real                   ? HLO_FFT_RFFT
                        : random_chance(g, 50) ? HLO_FFT_FFT
                                               : HLO_FFT_IFFT;
    const sd_shape *s = random_shape(g, real ? part : sd_dtype_complex(part));
    random_type k = random_type_of(part);
    hlo_inst *x, *in;
    int64_t n = 1;
    int lines = 1 + (int)random_below(g, 2);

    if (s->rank < lines || sd_shape_count(s) == 0)
        return;
    for (int d = s->rank - lines; d < s->rank; d++)
        n *= s->dim[d];
    x = random_want(g, s, (random_need){64, true, false});
    in = random_inst(g, HLO_FFT, transformed(g, type, s), 1, &x);
    in->u.fft.type = type;
    in->u.fft.length = hlo_dims_copy(g->a, s->dim + s->rank - lines, lines);
    random_infer(g, in);
    /* each part of a sum of n products of parts with turns, in log n steps */
    random_keep(g, in,
                (random_fact){2 * 64 * (double)n, 64 * (double)n * k.ulp * 16,
                              false, false});
}
