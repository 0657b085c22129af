/* Operations whose import is little more than a change of names: elementwise,
 * data movement, and what has a handful of attributes. */
#include "vhlo_import.h"

#include <assert.h>

#include "hlo_attr.h"

static hlo_op op_of(vhlo_import *im, const mlir_op *op)
{
    return im->r->name.at[op->name].row->op;
}

/* The row's op on the operands as they are. */
static hlo_inst *emit(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = vhlo_shape(im, op);

    if (!s || im->r->st)
        return NULL;
    return vhlo_emit(im, op_of(im, op), s, op->noperand, arg);
}

void op_simple(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    vhlo_bind(im, op, emit(im, op, arg));
}

/* select's predicate and clamp's bounds may be scalars. */
void op_scalars(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = vhlo_shape(im, op);

    if (!s || im->r->st)
        return;
    arg[0] = vhlo_fill(im, arg[0], s);
    if (op_of(im, op) == HLO_CLAMP)
        arg[2] = vhlo_fill(im, arg[2], s);
    vhlo_bind(im, op, emit(im, op, arg));
}

static hlo_cmp_type compare_type(sd_dtype t, bool total)
{
    switch (sd_dtype_kind(t)) {
    case SD_K_FLOAT:
        return total ? HLO_CMP_TOTAL : HLO_CMP_FLOAT;
    case SD_K_COMPLEX:
        return HLO_CMP_FLOAT;
    case SD_K_SINT:
        return HLO_CMP_SIGNED;
    default:
        return HLO_CMP_UNSIGNED;
    }
}

void op_compare(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    int64_t dir = vhlo_int(im, op, "comparison_direction");
    int64_t type = vhlo_int(im, op, "compare_type"); /* 0: by the operands */
    hlo_inst *in = emit(im, op, arg);

    if (!in || im->r->st)
        return;
    in->u.compare.dir = (hlo_cmp_dir)dir;
    in->u.compare.type = compare_type(arg[0]->shape->dtype, type == 2);
    if (dir < 0 || dir > HLO_LT ||
        (type && type != (int64_t)in->u.compare.type + 1))
        vhlo_fail(im, op, SD_INVALID,
                  "comparison_direction %" PRId64 " and compare_type %" PRId64
                  " do not fit %s",
                  dir, type, sd_dtype_name(arg[0]->shape->dtype));
    vhlo_bind(im, op, in);
}

/* ---- constants ---- */

static hlo_inst *literal(vhlo_import *im, const sd_shape *s, void *data)
{
    hlo_inst *in = vhlo_emit(im, HLO_CONSTANT, s, 0, NULL);

    in->u.literal.data = data;
    in->u.literal.bytes = sd_shape_bytes(s);
    return in;
}

/* One element for all becomes a scalar, broadcast: a byte of program can ask
 * for any amount of memory otherwise. */
void op_constant(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = vhlo_shape(im, op);
    const mlir_attr *at = vhlo_need(im, op, "value");
    mlir_dense d;
    char *data;

    (void)arg;
    if (!s || im->r->st)
        return;
    if (!sd_shape_is_array(s)) {
        vhlo_fail(im, op, SD_INVALID,
                  "a constant of type %s, which should be a tensor",
                  sd_dtype_name(s->dtype));
        return;
    }
    if (!mlir_dense_of(im->r, at, s->dtype, sd_shape_count(s), &d))
        return;
    if (d.splat) {
        data = sd_arena_alloc(im->a, d.width);
        mlir_dense_elem(&d, 0, data);
        if (s->dtype == SD_PRED)
            *data = *data != 0;
        hlo_inst *x =
            literal(im, sd_shape_make(im->a, s->dtype, 0, NULL), data);

        vhlo_bind(im, op, vhlo_fill(im, x, s));
        return;
    }
    data = sd_arena_alloc(im->a, sd_shape_bytes(s));
    if (d.n && !d.bits)
        memcpy(data, d.at, (size_t)d.n * d.width);
    for (int64_t i = 0; d.bits && i < d.n; i++)
        mlir_dense_elem(&d, i, data + i);
    for (int64_t i = 0; s->dtype == SD_PRED && i < d.n; i++)
        data[i] = data[i] != 0;
    vhlo_bind(im, op, literal(im, s, data));
}

/* ---- dimensions ---- */

/* New dimensions in front. */
void op_broadcast(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_inst *in = emit(im, op, arg);
    int64_t dim[SD_MAX_RANK];
    int k, n = arg[0]->shape->rank;

    if (!in)
        return;
    k = in->shape->rank - n;
    if (k < 0) {
        vhlo_fail(im, op, SD_INVALID,
                  "the result has %d dimensions, the operand %d",
                  in->shape->rank, n);
        return;
    }
    for (int i = 0; i < n; i++)
        dim[i] = k + i;
    in->dims = hlo_dims_copy(im->a, dim, n);
    vhlo_bind(im, op, in);
}

/* The operand's dimensions in the order of the result's. */
static hlo_inst *sort_dims(vhlo_import *im, hlo_inst *x, int64_t *to)
{
    int n = x->shape->rank;
    int64_t perm[SD_MAX_RANK], dim[SD_MAX_RANK], sorted[SD_MAX_RANK];
    bool changed = false;
    hlo_inst *in;

    for (int i = 0; i < n; i++) {
        int k = 0; /* how many go before it */

        for (int j = 0; j < n; j++)
            k += to[j] < to[i];
        perm[k] = i;
        sorted[k] = to[i];
        dim[k] = x->shape->dim[i];
        changed |= k != i;
    }
    if (!changed)
        return x;
    memcpy(to, sorted, sizeof *to * (size_t)n);
    in = vhlo_emit(im, HLO_TRANSPOSE,
                   sd_shape_make(im->a, x->shape->dtype, n, dim), 1, &x);
    in->dims = hlo_dims_copy(im->a, perm, n);
    return in;
}

/* HLO broadcasts equal sizes only and in rising order: dimensions of one
 * that grow are dropped first, a permutation is a transpose. */
hlo_inst *vhlo_broadcast_to(vhlo_import *im, mlir_op *op, hlo_inst *x,
                            hlo_dims bd, const sd_shape *to)
{
    const sd_shape *s = x->shape;
    int64_t keep[SD_MAX_RANK], dim[SD_MAX_RANK];
    int n = 0;
    hlo_inst *in;

    if (!sd_shape_is_array(s) || !sd_shape_is_array(to) || bd.n != s->rank ||
        !hlo_dims_fit(bd, to->rank)) {
        vhlo_fail(im, op, SD_INVALID,
                  "broadcast_dimensions do not map rank %d to %d", s->rank,
                  to->rank);
        return NULL;
    }
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] == 1 && to->dim[bd.at[i]] != 1)
            continue;
        keep[n] = bd.at[i];
        dim[n++] = s->dim[i];
    }
    if (n < s->rank)
        x = vhlo_emit(im, HLO_RESHAPE, sd_shape_make(im->a, s->dtype, n, dim),
                      1, &x);
    x = sort_dims(im, x, keep);
    in = vhlo_emit(im, HLO_BROADCAST, to, 1, &x);
    in->dims = hlo_dims_copy(im->a, keep, n);
    return in;
}

/* The declared shape or, where that is dynamic, the one in the constant
 * operand k. */
static const sd_shape *shape_or_const(vhlo_import *im, mlir_op *op, int k)
{
    const mlir_type *t = mlir_type_at(im->r, op->result[0].type);
    bool dynamic = false;
    hlo_dims d;
    sd_dtype e;
    sd_status st;

    for (int i = 0; t->kind == MLIR_T_TENSOR && i < t->rank; i++)
        dynamic |= t->dim[i] == INT64_MIN;
    if (!dynamic)
        return vhlo_shape(im, op);
    d = vhlo_const_ints(im, op, k, SD_MAX_RANK);
    if (im->r->st)
        return NULL;
    if (!mlir_dtype(im->r, t->elem, &e)) {
        vhlo_fail(im, op, SD_INVALID, "a result without an element type");
        return NULL;
    }
    if (d.n != t->rank) {
        vhlo_fail(im, op, SD_INVALID,
                  "operand %d has %d sizes for a result of rank %d", k, d.n,
                  t->rank);
        return NULL;
    }
    if ((st = sd_shape_check(e, d.n, d.at))) {
        im->r->st = st;
        return NULL;
    }
    return sd_shape_make(im->a, e, d.n, d.at);
}

void op_broadcast_in_dim(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_dims bd = vhlo_ints(im, op, "broadcast_dimensions", SD_MAX_RANK);
    const sd_shape *to =
        op->noperand == 2 ? shape_or_const(im, op, 1) : vhlo_shape(im, op);

    if (to && !im->r->st)
        vhlo_bind(im, op, vhlo_broadcast_to(im, op, arg[0], bd, to));
}

/* slice, pad: three numbers for each dimension.  They are attributes or, in the
 * dynamic forms, the last three operands, which must be constants. */
void op_by_dim(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    static const char *const of_slice[] = {"start_indices", "limit_indices",
                                           "strides"};
    static const char *const of_pad[] = {
        "edge_padding_low", "edge_padding_high", "interior_padding"};
    bool is_pad = op_of(im, op) == HLO_PAD;
    int n = arg[0]->shape->rank, narg = is_pad ? 2 : 1;
    const sd_shape *s = vhlo_shape(im, op);
    hlo_dims d[3];
    hlo_inst *in;

    for (int i = 0; i < 3; i++)
        d[i] = op->noperand > narg
                   ? vhlo_const_ints(im, op, narg + i, SD_MAX_RANK)
                   : vhlo_ints(im, op, (is_pad ? of_pad : of_slice)[i],
                               SD_MAX_RANK);
    if (!s || im->r->st)
        return;
    if (d[0].n != n || d[1].n != n || d[2].n != n) {
        vhlo_fail(im, op, SD_INVALID,
                  is_pad ? "%d low, %d high and %d interior paddings for an "
                           "operand of rank %d"
                         : "%d starts, %d limits and %d strides for an operand "
                           "of rank %d",
                  d[0].n, d[1].n, d[2].n, n);
        return;
    }
    in = vhlo_emit(im, op_of(im, op), s, narg, arg);
    for (int i = 0; i < 3; i++)
        in->u.by_dim[i] = (int64_t *)d[i].at;
    vhlo_bind(im, op, in);
}

/* ---- dynamic forms with constant operands ---- */

void op_dynamic_reshape(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = shape_or_const(im, op, 1);

    if (s && !im->r->st)
        vhlo_bind(im, op, vhlo_emit(im, HLO_RESHAPE, s, 1, arg));
}

void op_dynamic_iota(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = shape_or_const(im, op, 0);
    int64_t d = vhlo_int(im, op, "iota_dimension");
    hlo_inst *in;

    (void)arg;
    if (!s || im->r->st)
        return;
    in = vhlo_emit(im, HLO_IOTA, s, 0, NULL);
    in->dims = hlo_dims_copy(im->a, &d, 1);
    vhlo_bind(im, op, in);
}

/* The shape is static, so the size is known. */
void op_get_dimension_size(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    int64_t d = vhlo_int(im, op, "dimension");
    const sd_shape *s = arg[0]->shape, *to = vhlo_shape(im, op);
    int32_t *size;

    if (!to || im->r->st)
        return;
    if (to->dtype != SD_S32 || to->rank != 0)
        vhlo_fail(im, op, SD_INVALID, "the result should be a tensor<i32>");
    else if (!sd_shape_is_array(s) || d < 0 || d >= s->rank ||
             s->dim[d] > INT32_MAX)
        vhlo_fail(im, op, SD_INVALID,
                  "dimension %" PRId64 " of %d has no size that an i32 holds",
                  d, s->rank);
    if (im->r->st)
        return;
    size = sd_arena_new(im->a, int32_t);
    *size = (int32_t)s->dim[d];
    vhlo_bind(im, op, literal(im, to, size));
}

void op_set_dimension_size(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    int64_t d = vhlo_int(im, op, "dimension");
    hlo_dims size = vhlo_const_ints(im, op, 1, 1);
    const sd_shape *s = arg[0]->shape;

    if (im->r->st)
        return;
    if (!sd_shape_is_array(s) || d < 0 || d >= s->rank || size.n != 1 ||
        size.at[0] != s->dim[d]) {
        vhlo_fail(im, op, SD_UNIMPLEMENTED,
                  "a size other than that of dimension %" PRId64
                  " of the operand: dimensions that are filled in part are not "
                  "done",
                  d);
        return;
    }
    op->result[0].inst = arg[0];
}

/* ---- attributes that HLO has, too ---- */

static hlo_dims one_dim(vhlo_import *im, mlir_op *op, const char *name)
{
    int64_t d = vhlo_int(im, op, name);

    return hlo_dims_copy(im->a, &d, 1);
}

static void set_attribute(vhlo_import *im, mlir_op *op, const hlo_attr_row *r,
                          const char *name, void *field)
{
    int n = 0;

    switch (r->kind) {
    case HLO_A_DIM:
        *(hlo_dims *)field = one_dim(im, op, name);
        break;
    case HLO_A_DIMS:
        *(hlo_dims *)field = r->flags & HLO_A_ONE
                                 ? one_dim(im, op, name)
                                 : vhlo_ints(im, op, name, SD_MAX_RANK);
        break;
    case HLO_A_INT:
        *(int64_t *)field = vhlo_int(im, op, name);
        break;
    case HLO_A_FLAG:
        *(bool *)field = vhlo_int(im, op, name) != 0;
        break;
    case HLO_A_REAL:
        *(double *)field = vhlo_float(im, op, name);
        break;
    case HLO_A_CHOICE: /* by the same numbers */
        while (r->names[n])
            n++;
        *(int *)field = vhlo_choice(im, op, name, (int)r->least, n - 1);
        break;
    default:
        assert(false);
    }
}

void vhlo_set_attributes(vhlo_import *im, mlir_op *op, hlo_inst *in)
{
    const vhlo_row *row = im->r->name.at[op->name].row;
    vhlo_prop p;

    hlo_attr_begin(im->a, in);
    hlo_for_each_attr(r, in->op) {
        const char *name = r->stablehlo ? r->stablehlo : r->key;

        if (name && vhlo_prop_index(row, name, strlen(name), &p) >= 0)
            set_attribute(im, op, r, name, hlo_attr_field(r, in));
    }
}

void op_attributes(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_inst *in = emit(im, op, arg);

    if (in)
        vhlo_set_attributes(im, op, in);
    vhlo_bind(im, op, in);
}

/* ---- random numbers, precision ---- */

void op_rng(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = shape_or_const(im, op, 2);
    hlo_inst *in;

    if (!s || im->r->st)
        return;
    in = vhlo_emit(im, HLO_RNG, s, 2, arg);
    in->u.rng.distribution = (hlo_rng_distribution)vhlo_choice(
        im, op, "rng_distribution", HLO_RNG_UNIFORM, HLO_RNG_NORMAL);
    vhlo_bind(im, op, in);
}

void op_reduce_precision(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    int64_t e = vhlo_int(im, op, "exponent_bits");
    int64_t m = vhlo_int(im, op, "mantissa_bits");
    hlo_inst *in = emit(im, op, arg);

    if (!in)
        return;
    if (e < 1 || e > 64 || m < 0 || m > 64)
        vhlo_fail(im, op, SD_INVALID,
                  "%" PRId64 " exponent and %" PRId64
                  " mantissa bits, which should be 1 to 64 and 0 to 64",
                  e, m);
    in->u.precision.exponent = (int)e;
    in->u.precision.mantissa = (int)m;
    vhlo_bind(im, op, in);
}

/* ---- tuples ---- */

void op_barrier(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_inst *x;

    if (!vhlo_as_many(im, op))
        return;
    x = vhlo_one_or_tuple(im, op->noperand, arg);
    vhlo_bind(im, op, vhlo_emit(im, HLO_OPT_BARRIER, x->shape, 1, &x));
}
