/* Inference of contractions, random numbers, FFT, factorizations, norms. */
#include "hlo_infer.h"

/* ---- contractions ---- */

/* What is asked for, or the left operand's type: complex when an operand is,
 * bool when both are. */
static sd_status product_type(hlo_module *m, const hlo_inst *in, sd_dtype *t)
{
    sd_kind k = sd_dtype_kind(in->arg[0]->shape->dtype);
    sd_kind l = sd_dtype_kind(in->arg[1]->shape->dtype), to;

    *t = in->arg[0]->shape->dtype;
    if (in->shape && !sd_shape_is_array(in->shape))
        return hlo_bad(m, in, "gives an array");
    if (in->shape)
        *t = in->shape->dtype;
    to = sd_dtype_kind(*t);
    if ((k == SD_K_COMPLEX || l == SD_K_COMPLEX) != (to == SD_K_COMPLEX) ||
        ((k == SD_K_PRED) != (l == SD_K_PRED)) ||
        (to == SD_K_PRED && k != SD_K_PRED) ||
        ((k == SD_K_FLOAT || l == SD_K_FLOAT) && to != SD_K_FLOAT &&
         to != SD_K_COMPLEX))
        return hlo_bad(m, in, "products are not summed in %s",
                       sd_dtype_name(*t));
    return NULL;
}

/* ---- dot ---- */

static sd_status want_pairs(hlo_module *m, const hlo_inst *in, const char *what,
                            hlo_dims l, hlo_dims r)
{
    const sd_shape *x = in->arg[0]->shape, *y = in->arg[1]->shape;
    sd_status st;

    if (l.n != r.n)
        return hlo_bad(m, in, "%d and %d %s dimensions", l.n, r.n, what);
    if ((st = hlo_want_dims(m, in, what, l, x->rank)) ||
        (st = hlo_want_dims(m, in, what, r, y->rank)))
        return st;
    for (int i = 0; i < l.n; i++)
        if ((st = hlo_want_pair(m, in, what, x, l.at[i], y, r.at[i])))
            return st;
    return NULL;
}

static sd_status no_overlap(hlo_module *m, const hlo_inst *in, hlo_dims a,
                            hlo_dims b)
{
    for (int i = 0; i < a.n; i++)
        if (hlo_dims_hold(b, a.at[i]))
            return hlo_bad(m, in,
                           "dimension %" PRId64 " is batch and contracted",
                           a.at[i]);
    return NULL;
}

static bool is_f8(sd_dtype t)
{
    return sd_is_float(t) && sd_dtype_table[t].bits == 8;
}

static sd_status want_algorithm(hlo_module *m, const hlo_inst *in, sd_dtype to)
{
    const char *name = in->u.dot->algorithm;
    sd_dtype l = in->arg[0]->shape->dtype, r = in->arg[1]->shape->dtype;
    const hlo_algorithm *a;

    if (!name)
        return NULL;
    a = hlo_algorithm_of(name);
    if (!a)
        return hlo_bad(m, in, "algorithm %s is none of XLA's", name);
    if (!sd_is_float(l) || !sd_is_float(r) || !sd_is_float(to))
        return hlo_bad(m, in, "algorithm %s is for floats, not for %s by %s",
                       name, sd_dtype_name(l), sd_dtype_name(r));
    if (a->operand == HLO_AS_IS && a->sum != HLO_AS_IS &&
        (!is_f8(l) || !is_f8(r)))
        return hlo_bad(m, in, "algorithm %s is for f8 types, not for %s by %s",
                       name, sd_dtype_name(l), sd_dtype_name(r));
    return NULL;
}

sd_status hlo_infer_dot(hlo_module *m, const hlo_inst *in, const sd_shape **out)
{
    const hlo_dot *d = in->u.dot;
    int64_t dim[3 * SD_MAX_RANK];
    int rank = 0;
    sd_dtype t;
    sd_status st;

    if ((st = hlo_want_args(m, in, 2)) || (st = hlo_want_array(m, in, 0)) ||
        (st = hlo_want_array(m, in, 1)) ||
        (st = want_pairs(m, in, "batch", d->lhs_batch, d->rhs_batch)) ||
        (st = want_pairs(m, in, "contracting", d->lhs_contract,
                         d->rhs_contract)) ||
        (st = no_overlap(m, in, d->lhs_batch, d->lhs_contract)) ||
        (st = no_overlap(m, in, d->rhs_batch, d->rhs_contract)) ||
        (st = product_type(m, in, &t)) || (st = want_algorithm(m, in, t)))
        return st;
    const sd_shape *x = in->arg[0]->shape, *y = in->arg[1]->shape;

    for (int i = 0; i < d->lhs_batch.n; i++)
        dim[rank++] = x->dim[d->lhs_batch.at[i]];
    for (int i = 0; i < x->rank; i++)
        if (!hlo_dims_hold(d->lhs_batch, i) &&
            !hlo_dims_hold(d->lhs_contract, i))
            dim[rank++] = x->dim[i];
    for (int i = 0; i < y->rank; i++)
        if (!hlo_dims_hold(d->rhs_batch, i) &&
            !hlo_dims_hold(d->rhs_contract, i))
            dim[rank++] = y->dim[i];
    return hlo_result(m, in, t, rank, dim, out);
}

/* ---- convolution ---- */

/* Batch, feature and spatial dimensions are all of them, each once. */
static sd_status want_numbers(hlo_module *m, const hlo_inst *in,
                              const char *what, int64_t a, int64_t b,
                              hlo_dims spatial, int rank)
{
    int64_t all[SD_MAX_RANK + 2];

    if (spatial.n > SD_MAX_RANK || spatial.n + 2 != rank)
        return hlo_bad(m, in, "%s of rank %d for %d spatial dimensions", what,
                       rank, spatial.n);
    all[0] = a;
    all[1] = b;
    for (int i = 0; i < spatial.n; i++)
        all[2 + i] = spatial.at[i];
    return hlo_want_dims(m, in, what, (hlo_dims){all, rank}, rank);
}

static sd_status check_groups(hlo_module *m, const hlo_inst *in)
{
    const hlo_conv *c = in->u.conv;
    const sd_shape *x = in->arg[0]->shape, *k = in->arg[1]->shape;
    int64_t features = x->dim[c->in_feature], outs = k->dim[c->k_out];
    int64_t fg = c->feature_groups, bg = c->batch_groups;

    if (fg < 1 || bg < 1 || (fg > 1 && bg > 1))
        return hlo_bad(
            m, in, "%" PRId64 " feature and %" PRId64 " batch groups", fg, bg);
    if (features % fg || k->dim[c->k_in] != features / fg)
        return hlo_bad(m, in,
                       "%" PRId64 " features in %" PRId64
                       " groups do not fit the kernel's %" PRId64,
                       features, fg, k->dim[c->k_in]);
    if (outs % fg || outs % bg || x->dim[c->in_batch] % bg)
        return hlo_bad(m, in,
                       "groups do not divide %" PRId64
                       " output features or the batch",
                       outs);
    return NULL;
}

sd_status hlo_infer_conv(hlo_module *m, const hlo_inst *in,
                         const sd_shape **out)
{
    const hlo_conv *c = in->u.conv;
    int64_t dim[SD_MAX_RANK], padded[SD_MAX_RANK + 2];
    sd_dtype t;
    sd_status st;

    if ((st = hlo_want_args(m, in, 2)) || (st = hlo_want_array(m, in, 0)) ||
        (st = hlo_want_array(m, in, 1)))
        return st;
    const sd_shape *x = in->arg[0]->shape, *k = in->arg[1]->shape;

    if (c->in_spatial.n != c->nspatial || c->k_spatial.n != c->nspatial ||
        c->out_spatial.n != c->nspatial)
        return hlo_bad(m, in, "spatial dimensions differ in number");
    if ((st = want_numbers(m, in, "input", c->in_batch, c->in_feature,
                           c->in_spatial, x->rank)) ||
        (st = want_numbers(m, in, "kernel", c->k_in, c->k_out, c->k_spatial,
                           k->rank)) ||
        (st = want_numbers(m, in, "output", c->out_batch, c->out_feature,
                           c->out_spatial, x->rank)) ||
        (st = check_groups(m, in)) || (st = product_type(m, in, &t)))
        return st;
    for (int i = 0; i < c->nspatial; i++) {
        hlo_window_dim w = c->win[i];
        int64_t size = k->dim[c->k_spatial.at[i]];

        if (w.size != size)
            return hlo_bad(m, in,
                           "window of %" PRId64 " over a kernel of %" PRId64,
                           w.size, size);
        if (w.size == 0)
            w.size = 1; /* an empty kernel still slides: sums of nothing */
        if (!hlo_window_count(&w, x->dim[c->in_spatial.at[i]], &padded[i],
                              &dim[c->out_spatial.at[i]]))
            return hlo_bad(m, in, "window's dimension %d is out of range", i);
    }
    padded[c->nspatial] = x->dim[c->in_batch];
    padded[c->nspatial + 1] = x->dim[c->in_feature];
    if ((st = hlo_want_volume(m, in, "padded, the input has", padded,
                              c->nspatial + 2)))
        return st;
    dim[c->out_batch] = x->dim[c->in_batch] / c->batch_groups;
    dim[c->out_feature] = k->dim[c->k_out];
    return hlo_result(m, in, t, x->rank, dim, out);
}

/* ---- random numbers ---- */

sd_status hlo_infer_rng(hlo_module *m, const hlo_inst *in, const sd_shape **out)
{
    sd_status st = hlo_want_declared(m, in);

    if (st)
        return st;
    *out = in->shape;
    if (in->op == HLO_RNG) {
        if ((st = hlo_want_args(m, in, 2)) ||
            (st = hlo_want_scalar(m, in, 0, in->shape->dtype)) ||
            (st = hlo_want_scalar(m, in, 1, in->shape->dtype)))
            return st;
        sd_kind k = sd_dtype_kind(in->shape->dtype);
        hlo_rng_distribution d = in->u.rng.distribution;

        if (k == SD_K_COMPLEX || d < HLO_RNG_UNIFORM || d > HLO_RNG_NORMAL ||
            (d == HLO_RNG_NORMAL && k != SD_K_FLOAT))
            return hlo_bad(m, in, "has no such distribution of %s",
                           sd_dtype_name(in->shape->dtype));
        return NULL;
    }
    if ((st = hlo_want_args(m, in, 1)) || (st = hlo_want_array(m, in, 0)))
        return st;
    const sd_shape *x = in->arg[0]->shape, *s = in->shape;

    if (x->dtype != SD_U64 || x->rank != 1 || x->dim[0] < 2 || x->dim[0] > 3)
        return hlo_bad(m, in, "the state must be u64[2] or u64[3]");
    if (x->dim[0] == 3 && in->u.rng.algo == HLO_RNG_THREEFRY)
        return hlo_bad(m, in, "threefry's state is u64[2]");
    if (s->dtype != SD_TUPLE || s->nelem != 2 ||
        !sd_shape_equal(s->elem[0], x) || !sd_shape_is_array(s->elem[1]) ||
        !sd_is_int(s->elem[1]->dtype))
        return hlo_bad(m, in, "gives the state and an array of integers");
    return NULL;
}

/* ---- FFT ---- */

sd_status hlo_infer_fft(hlo_module *m, const hlo_inst *in, const sd_shape **out)
{
    hlo_fft_type type = in->u.fft.type;
    int n = in->u.fft.length.n;
    int64_t dim[SD_MAX_RANK], last;
    sd_status st;

    if ((st = hlo_want_args(m, in, 1)) || (st = hlo_want_array(m, in, 0)))
        return st;
    const sd_shape *x = in->arg[0]->shape;
    sd_dtype t = x->dtype;

    if (n < 1 || n > 3 || n > x->rank)
        return hlo_bad(m, in, "%d lengths for rank %d", n, x->rank);
    if (type == HLO_FFT_RFFT ? t != SD_F32 && t != SD_F64
                             : t != SD_C64 && t != SD_C128)
        return hlo_bad(m, in, "this transform does not take %s",
                       sd_dtype_name(t));
    memcpy(dim, x->dim, sizeof *dim * (size_t)x->rank);
    for (int i = 0; i < n; i++) {
        int64_t want = in->u.fft.length.at[i];

        if (want < 0)
            return hlo_bad(m, in, "length %" PRId64 " is negative", want);
        if (i == n - 1 && type == HLO_FFT_IRFFT && (want || dim[x->rank - 1]))
            want = want / 2 + 1; /* a line of none may come of one or none */
        if (dim[x->rank - n + i] != want)
            return hlo_bad(m, in, "dimension %d must be %" PRId64,
                           x->rank - n + i, want);
    }
    last = in->u.fft.length.at[n - 1];
    if (type == HLO_FFT_RFFT) {
        t = sd_dtype_complex(t);
        dim[x->rank - 1] = last ? last / 2 + 1 : 0;
    } else if (type == HLO_FFT_IRFFT) {
        t = sd_dtype_part(t);
        dim[x->rank - 1] = last;
    }
    return hlo_result(m, in, t, x->rank, dim, out);
}

/* ---- factorizations ---- */

sd_status hlo_infer_linalg(hlo_module *m, const hlo_inst *in,
                           const sd_shape **out)
{
    bool solve = in->op == HLO_TRIANGULAR_SOLVE;
    sd_status st;

    if ((st = hlo_want_args(m, in, solve ? 2 : 1)))
        return st;
    for (int i = 0; i < in->narg; i++)
        if ((st = hlo_want_array(m, in, i)))
            return st;
    const sd_shape *a = in->arg[0]->shape, *b = in->arg[in->narg - 1]->shape;
    int r = a->rank;

    if (r < 2 || a->dim[r - 1] != a->dim[r - 2])
        return hlo_bad(m, in, "operand 0 must be square matrices");
    if (solve) {
        if (b->rank != r || b->dtype != a->dtype)
            return hlo_bad(m, in, "operands differ in rank or type");
        for (int i = 0; i < r - 2; i++)
            if ((st = hlo_want_pair(m, in, "batch", a, i, b, i)))
                return st;
        if (b->dim[in->u.linalg.left ? r - 2 : r - 1] != a->dim[r - 1])
            return hlo_bad(m, in, "the matrices do not fit");
    }
    return hlo_result(m, in, b->dtype, b->rank, b->dim, out);
}

/* ---- norms ---- */

sd_status hlo_infer_norm(hlo_module *m, const hlo_inst *in,
                         const sd_shape **out)
{
    bool train = in->op == HLO_BATCH_NORM_TRAINING;
    bool grad = in->op == HLO_BATCH_NORM_GRAD;
    const sd_shape *x, *part[3];
    int64_t f = in->u.norm.feature;
    sd_status st;

    if ((st = hlo_want_args(m, in, train ? 3 : 5)) ||
        (st = hlo_want_array(m, in, 0)))
        return st;
    x = in->arg[0]->shape;
    if (f < 0 || f >= x->rank)
        return hlo_bad(m, in, "no dimension %" PRId64, f);
    for (int i = 1; i < in->narg; i++) {
        const sd_shape *s = in->arg[i]->shape;

        if (grad && i == 4 ? !sd_shape_equal(s, x)
                           : !sd_shape_is_array(s) || s->dtype != x->dtype ||
                                 s->rank != 1 || s->dim[0] != x->dim[f])
            return hlo_bad(m, in, "operand %d does not fit operand 0", i);
    }
    if ((st = hlo_result(m, in, x->dtype, x->rank, x->dim, &part[0])) ||
        (st = hlo_result(m, in, x->dtype, 1, &x->dim[f], &part[1])))
        return st;
    part[2] = part[1];
    *out = train || grad ? sd_shape_tuple(m->arena, 3, part) : part[0];
    return NULL;
}
