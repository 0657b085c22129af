/* What passes build most: one function an op, the shape worked out from the
 * operands.  Callers hold the op's rules; debug builds assert them and the
 * verifier checks the result. */
#include <math.h>

#include "hlo_priv.h"

#include <assert.h>
#include <stdio.h>

static sd_arena *arena_of(hlo_at p)
{
    return p.c->module->arena;
}

static hlo_inst *make(hlo_at p, hlo_op op, const sd_shape *s, int narg,
                      hlo_inst *const *arg)
{
    hlo_inst *in = hlo_inst_create(p.c, p.before, op, s, narg, arg);

    hlo_take_source(in, p.like);
    return in;
}

/* The operand's dimensions under another element type, row-major. */
static const sd_shape *as_type(hlo_at p, const sd_shape *s, sd_dtype t)
{
    return s->dtype == t && !s->layout
               ? s
               : sd_shape_make(arena_of(p), t, s->rank, s->dim);
}

hlo_inst *hlo_make_unary(hlo_at p, hlo_op op, hlo_inst *x)
{
    sd_dtype t = x->shape->dtype;

    if (op == HLO_IS_FINITE)
        t = SD_PRED;
    else if (op == HLO_ABS || op == HLO_REAL || op == HLO_IMAG)
        t = sd_dtype_part(t);
    return make(p, op, as_type(p, x->shape, t), 1, &x);
}

hlo_inst *hlo_make_binary(hlo_at p, hlo_op op, hlo_inst *x, hlo_inst *y)
{
    hlo_inst *arg[] = {x, y};
    sd_dtype t = x->shape->dtype;

    assert(sd_shape_equal(x->shape, y->shape));
    if (op == HLO_COMPLEX)
        t = sd_dtype_complex(t);
    return make(p, op, as_type(p, x->shape, t), 2, arg);
}

hlo_inst *hlo_make_compare(hlo_at p, hlo_cmp_dir dir, hlo_inst *x, hlo_inst *y)
{
    hlo_inst *arg[] = {x, y};
    sd_kind k = sd_dtype_kind(x->shape->dtype);
    hlo_inst *in;

    assert(sd_shape_equal(x->shape, y->shape));
    in = make(p, HLO_COMPARE, as_type(p, x->shape, SD_PRED), 2, arg);
    in->u.compare.dir = dir;
    in->u.compare.type = k == SD_K_SINT                     ? HLO_CMP_SIGNED
                         : k == SD_K_UINT || k == SD_K_PRED ? HLO_CMP_UNSIGNED
                                                            : HLO_CMP_FLOAT;
    return in;
}

hlo_inst *hlo_make_select(hlo_at p, hlo_inst *pred, hlo_inst *x, hlo_inst *y)
{
    hlo_inst *arg[] = {pred, x, y};

    assert(sd_shape_equal(x->shape, y->shape));
    return make(p, HLO_SELECT, as_type(p, x->shape, x->shape->dtype), 3, arg);
}

hlo_inst *hlo_make_convert(hlo_at p, sd_dtype t, hlo_inst *x)
{
    return make(p, HLO_CONVERT, as_type(p, x->shape, t), 1, &x);
}

hlo_inst *hlo_make_bitcast_convert(hlo_at p, sd_dtype t, hlo_inst *x)
{
    const sd_shape *s = x->shape;
    int from = sd_dtype_table[s->dtype].bits, to = sd_dtype_table[t].bits;
    int rank = s->rank;
    int64_t dim[SD_MAX_RANK];

    if (rank)
        memcpy(dim, s->dim, sizeof *dim * (size_t)rank);
    if (from > to) {
        assert(rank < SD_MAX_RANK && from % to == 0);
        dim[rank++] = from / to;
    } else if (from < to) {
        assert(rank > 0 && dim[rank - 1] == to / from);
        rank--;
    }
    return make(p, HLO_BITCAST_CONVERT,
                sd_shape_make(arena_of(p), t, rank, dim), 1, &x);
}

hlo_inst *hlo_make_constant(hlo_at p, const sd_shape *s, const void *data)
{
    hlo_inst *in = make(p, HLO_CONSTANT, as_type(p, s, s->dtype), 0, NULL);
    size_t n = sd_shape_bytes(s);

    in->u.literal.data = n ? sd_arena_copy(arena_of(p), data, n)
                           : sd_arena_alloc(arena_of(p), 1);
    in->u.literal.bytes = n;
    return in;
}

hlo_inst *hlo_make_scalar(hlo_at p, sd_dtype t, double v)
{
    char bits[16] = {0};

    /* the real part comes first in memory, the imaginary part stays 0 */
    sd_scalar_of_f64(sd_dtype_part(t), v, bits);
    return hlo_make_constant(p, sd_shape_make(arena_of(p), t, 0, NULL), bits);
}

hlo_inst *hlo_make_scalar_s64(hlo_at p, sd_dtype t, int64_t v)
{
    char bits[16] = {0};

    sd_scalar_of_s64(t, v, bits);
    return hlo_make_constant(p, sd_shape_make(arena_of(p), t, 0, NULL), bits);
}

hlo_inst *hlo_make_spread(hlo_at p, hlo_inst *x, const sd_shape *s)
{
    return s->rank ? hlo_make_broadcast(p, x, s, NULL, 0) : x;
}

hlo_inst *hlo_make_fill(hlo_at p, const sd_shape *s, double v)
{
    return hlo_make_spread(p, hlo_make_scalar(p, s->dtype, v), s);
}

hlo_inst *hlo_make_fill_s64(hlo_at p, const sd_shape *s, sd_dtype t, int64_t v)
{
    return hlo_make_spread(p, hlo_make_scalar_s64(p, t, v), s);
}

hlo_inst *hlo_make_broadcast(hlo_at p, hlo_inst *x, const sd_shape *to,
                             const int64_t *dims, int n)
{
    hlo_inst *in;

    assert(n == x->shape->rank);
    in = make(p, HLO_BROADCAST, as_type(p, to, x->shape->dtype), 1, &x);
    in->dims = hlo_dims_copy(arena_of(p), dims, n);
    return in;
}

hlo_inst *hlo_make_reshape(hlo_at p, hlo_inst *x, int rank, const int64_t *dim)
{
    const sd_shape *s = sd_shape_make(arena_of(p), x->shape->dtype, rank, dim);

    assert(sd_shape_count(s) == sd_shape_count(x->shape));
    return make(p, HLO_RESHAPE, s, 1, &x);
}

hlo_inst *hlo_make_transpose(hlo_at p, hlo_inst *x, const int64_t *perm)
{
    const sd_shape *s = x->shape;
    int64_t dim[SD_MAX_RANK];
    hlo_inst *in;

    for (int i = 0; i < s->rank; i++)
        dim[i] = s->dim[perm[i]];
    in = make(p, HLO_TRANSPOSE,
              sd_shape_make(arena_of(p), s->dtype, s->rank, dim), 1, &x);
    in->dims = hlo_dims_copy(arena_of(p), perm, s->rank);
    return in;
}

hlo_inst *hlo_make_reverse(hlo_at p, hlo_inst *x, const int64_t *dims, int n)
{
    hlo_inst *in =
        make(p, HLO_REVERSE, as_type(p, x->shape, x->shape->dtype), 1, &x);

    in->dims = hlo_dims_copy(arena_of(p), dims, n);
    return in;
}

static int64_t *copy_or_fill(hlo_at p, const int64_t *v, int n, int64_t fill)
{
    int64_t *to = sd_arena_array(arena_of(p), int64_t, n ? n : 1);

    for (int i = 0; i < n; i++)
        to[i] = v ? v[i] : fill;
    return to;
}

hlo_inst *hlo_make_slice(hlo_at p, hlo_inst *x, const int64_t *start,
                         const int64_t *limit, const int64_t *stride)
{
    const sd_shape *s = x->shape;
    int64_t dim[SD_MAX_RANK];
    hlo_inst *in;

    for (int i = 0; i < s->rank; i++) {
        int64_t by = stride ? stride[i] : 1;

        assert(0 <= start[i] && start[i] <= limit[i] && limit[i] <= s->dim[i]);
        dim[i] = (limit[i] - start[i] + by - 1) / by;
    }
    in = make(p, HLO_SLICE, sd_shape_make(arena_of(p), s->dtype, s->rank, dim),
              1, &x);
    in->u.slice.start = copy_or_fill(p, start, s->rank, 0);
    in->u.slice.limit = copy_or_fill(p, limit, s->rank, 0);
    in->u.slice.stride = copy_or_fill(p, stride, s->rank, 1);
    return in;
}

hlo_inst *hlo_make_cut(hlo_at p, hlo_inst *x, int64_t d, int64_t from,
                       int64_t to)
{
    int64_t start[SD_MAX_RANK] = {0}, limit[SD_MAX_RANK];

    if (from == 0 && to == x->shape->dim[d])
        return x;
    memcpy(limit, x->shape->dim, sizeof *limit * (size_t)x->shape->rank);
    start[d] = from;
    limit[d] = to;
    return hlo_make_slice(p, x, start, limit, NULL);
}

hlo_inst *hlo_make_dynamic_slice(hlo_at p, hlo_inst *x, hlo_inst *const *start,
                                 const int64_t *size)
{
    hlo_inst *arg[SD_MAX_RANK + 1] = {x}, *in;
    int rank = x->shape->rank;
    const sd_shape *s = sd_shape_make(arena_of(p), x->shape->dtype, rank, size);

    for (int i = 0; i < rank; i++)
        arg[1 + i] = start[i];
    in = make(p, HLO_DYNAMIC_SLICE, s, 1 + rank, arg);
    in->dims = hlo_dims_copy(arena_of(p), size, rank);
    return in;
}

hlo_inst *hlo_make_dynamic_update(hlo_at p, hlo_inst *x, hlo_inst *part,
                                  hlo_inst *const *start)
{
    hlo_inst *arg[SD_MAX_RANK + 2] = {x, part};
    int rank = x->shape->rank;

    for (int i = 0; i < rank; i++)
        arg[2 + i] = start[i];
    return make(p, HLO_DYNAMIC_UPDATE_SLICE, x->shape, 2 + rank, arg);
}

hlo_inst *hlo_make_pad(hlo_at p, hlo_inst *x, hlo_inst *value,
                       const int64_t *low, const int64_t *high,
                       const int64_t *interior)
{
    const sd_shape *s = x->shape;
    hlo_inst *arg[] = {x, value}, *in;
    int64_t dim[SD_MAX_RANK];

    for (int i = 0; i < s->rank; i++) {
        int64_t gaps = s->dim[i] > 0 ? s->dim[i] - 1 : 0;

        dim[i] =
            s->dim[i] + low[i] + high[i] + gaps * (interior ? interior[i] : 0);
        assert(dim[i] >= 0);
    }
    in = make(p, HLO_PAD, sd_shape_make(arena_of(p), s->dtype, s->rank, dim), 2,
              arg);
    in->u.pad.low = copy_or_fill(p, low, s->rank, 0);
    in->u.pad.high = copy_or_fill(p, high, s->rank, 0);
    in->u.pad.interior = copy_or_fill(p, interior, s->rank, 0);
    return in;
}

hlo_inst *hlo_make_pad_dim(hlo_at p, hlo_inst *x, hlo_inst *value, int64_t d,
                           int64_t low, int64_t high)
{
    int64_t before[SD_MAX_RANK] = {0}, behind[SD_MAX_RANK] = {0};

    if (!low && !high)
        return x;
    before[d] = low;
    behind[d] = high;
    if (!value)
        value = hlo_make_scalar(p, x->shape->dtype, 0);
    return hlo_make_pad(p, x, value, before, behind, NULL);
}

hlo_inst *hlo_make_split(hlo_at p, hlo_inst *x, int64_t d, int64_t n,
                         int64_t each)
{
    int64_t dim[SD_MAX_RANK];
    int rank = x->shape->rank + 1;

    assert(rank <= SD_MAX_RANK);
    for (int i = 0; i < rank; i++)
        dim[i] = i == d ? n : i == d + 1 ? each : x->shape->dim[i - (i > d)];
    return hlo_make_reshape(p, x, rank, dim);
}

hlo_inst *hlo_make_join(hlo_at p, hlo_inst *x, int64_t d)
{
    int64_t dim[SD_MAX_RANK];
    int rank = x->shape->rank - 1;

    for (int i = 0; i < rank; i++)
        dim[i] = x->shape->dim[i + (i > d)];
    dim[d] *= x->shape->dim[d + 1];
    return hlo_make_reshape(p, x, rank, dim);
}

hlo_inst *hlo_make_moved(hlo_at p, hlo_inst *x, int64_t from, int64_t to)
{
    int64_t perm[SD_MAX_RANK], other = 0;

    for (int i = 0; i < x->shape->rank; i++) {
        other += other == from;
        perm[i] = i == to ? from : other++;
    }
    return hlo_make_transpose(p, x, perm);
}

hlo_inst *hlo_make_parts_along(hlo_at p, hlo_inst *x, int64_t from, int64_t n,
                               int64_t to)
{
    x = hlo_make_split(p, x, from, n, x->shape->dim[from] / n);
    return hlo_make_join(p, hlo_make_moved(p, x, from, to), to);
}

hlo_inst *hlo_make_concatenate(hlo_at p, int n, hlo_inst *const *x, int64_t dim)
{
    const sd_shape *s = x[0]->shape;
    int64_t all = 0;
    hlo_inst *in;

    for (int i = 0; i < n; i++)
        all += x[i]->shape->dim[dim];
    in = make(p, HLO_CONCATENATE, sd_shape_with_dim(arena_of(p), s, dim, all),
              n, x);
    in->dims = hlo_dims_copy(arena_of(p), &dim, 1);
    return in;
}

hlo_inst *hlo_make_iota(hlo_at p, const sd_shape *s, int64_t dim)
{
    hlo_inst *in = make(p, HLO_IOTA, as_type(p, s, s->dtype), 0, NULL);

    assert(dim >= 0 && dim < s->rank);
    in->dims = hlo_dims_copy(arena_of(p), &dim, 1);
    return in;
}

static bool holds(const int64_t *v, int n, int64_t x)
{
    for (int i = 0; i < n; i++)
        if (v[i] == x)
            return true;
    return false;
}

hlo_inst *hlo_make_reduce(hlo_at p, hlo_inst *x, hlo_inst *init,
                          const int64_t *dims, int n, hlo_comp *body)
{
    const sd_shape *s = x->shape;
    hlo_inst *arg[] = {x, init}, *in;
    int64_t dim[SD_MAX_RANK];
    int rank = 0;

    for (int i = 0; i < s->rank; i++)
        if (!holds(dims, n, i))
            dim[rank++] = s->dim[i];
    in =
        make(p, HLO_REDUCE,
             sd_shape_make(arena_of(p), init->shape->dtype, rank, dim), 2, arg);
    in->dims = hlo_dims_copy(arena_of(p), dims, n);
    hlo_set_comps(in, 1, &body);
    return in;
}

hlo_inst *hlo_make_sum(hlo_at p, hlo_inst *x, const int64_t *dims, int n)
{
    sd_dtype t = x->shape->dtype;

    return hlo_make_reduce(p, x, hlo_make_scalar(p, t, 0), dims, n,
                           hlo_scalar_comp(p.c->module, HLO_ADD, t));
}

hlo_inst *hlo_make_dot(hlo_at p, hlo_inst *x, hlo_inst *y, sd_dtype t,
                       const hlo_dot *d)
{
    const sd_shape *l = x->shape, *r = y->shape;
    hlo_inst *arg[] = {x, y}, *in;
    int64_t dim[2 * SD_MAX_RANK];
    int rank = 0;

    for (int i = 0; i < d->lhs_batch.n; i++)
        dim[rank++] = l->dim[d->lhs_batch.at[i]];
    for (int i = 0; i < l->rank; i++)
        if (!holds(d->lhs_batch.at, d->lhs_batch.n, i) &&
            !holds(d->lhs_contract.at, d->lhs_contract.n, i))
            dim[rank++] = l->dim[i];
    for (int i = 0; i < r->rank; i++)
        if (!holds(d->rhs_batch.at, d->rhs_batch.n, i) &&
            !holds(d->rhs_contract.at, d->rhs_contract.n, i))
            dim[rank++] = r->dim[i];
    assert(rank <= SD_MAX_RANK);
    in = make(p, HLO_DOT, sd_shape_make(arena_of(p), t, rank, dim), 2, arg);
    in->u.dot = sd_arena_copy(arena_of(p), d, sizeof *d);
    return in;
}

hlo_inst *hlo_make_tuple(hlo_at p, int n, hlo_inst *const *x)
{
    const sd_shape **s = sd_arena_array(arena_of(p), const sd_shape *, n + 1);

    for (int i = 0; i < n; i++)
        s[i] = x[i]->shape;
    return make(p, HLO_TUPLE, sd_shape_tuple(arena_of(p), n, s), n, x);
}

hlo_inst *hlo_make_gte(hlo_at p, hlo_inst *x, int64_t index)
{
    hlo_inst *in;

    assert(x->shape->dtype == SD_TUPLE && index >= 0 &&
           index < x->shape->nelem);
    in = make(p, HLO_GET_TUPLE_ELEMENT, x->shape->elem[index], 1, &x);
    in->u.tuple.index = index;
    return in;
}

hlo_inst *hlo_make_param(hlo_comp *c, const sd_shape *s, const char *name)
{
    /* before what stands there already: parameters are used everywhere */
    hlo_inst *after = c->nparam ? c->param[c->nparam - 1] : NULL;
    hlo_inst *in =
        hlo_inst_create_named(c, after ? after->next : c->first, HLO_PARAMETER,
                              name ? name : "parameter", s, 0, NULL);

    in->u.param.index = c->nparam;
    hlo_comp_put_param(c, in);
    return in;
}

hlo_comp *hlo_scalar_comp(hlo_module *m, hlo_op op, sd_dtype t)
{
    char name[64];
    hlo_op is;

    snprintf(name, sizeof name, "%s_%s", hlo_op_table[op].name,
             sd_dtype_name(t));
    hlo_for_each_comp(c, m)
        if (strcmp(c->name, name) == 0 && hlo_comp_is_binary(c, &is) &&
            is == op && c->param[0]->shape->dtype == t &&
            c->root->arg[0] == c->param[0])
            return c;
    hlo_comp *c = hlo_comp_create(m, name);
    const sd_shape *s = sd_shape_make(m->arena, t, 0, NULL);
    hlo_inst *x = hlo_make_param(c, s, "x"), *y = hlo_make_param(c, s, "y");

    c->root = hlo_make_binary((hlo_at){c, NULL, NULL}, op, x, y);
    return c;
}

static hlo_inst *bits(hlo_at p, hlo_op op, hlo_inst *x, uint32_t v)
{
    return hlo_make_binary(p, op, x,
                           hlo_make_fill_s64(p, x->shape, SD_U32, (int64_t)v));
}

hlo_inst *hlo_make_trimmed(hlo_at p, hlo_inst *x)
{
    enum { DROPPED = 13 };
    hlo_inst *y = hlo_make_bitcast_convert(p, SD_U32, x);

    y = bits(p, HLO_ADD, y, 1u << (DROPPED - 1));
    y = bits(p, HLO_AND, y, ~0u << DROPPED);
    return hlo_make_select(p, hlo_make_compare(p, HLO_NE, x, x),
                           hlo_make_fill(p, x->shape, NAN),
                           hlo_make_bitcast_convert(p, SD_F32, y));
}
