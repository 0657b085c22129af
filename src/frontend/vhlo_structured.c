/* Operations with dimension numbers, windows or a computation on scalars. */
#include "vhlo_import.h"

/* The element type of the reducer's argument i: since 0.17 it may be wider
 * than the operand's, and the operand is then converted first. */
static hlo_inst *widen(vhlo_import *im, hlo_comp *c, int i, hlo_inst *x)
{
    if (i >= c->nparam || !sd_shape_is_array(c->param[i]->shape))
        return x;
    return vhlo_convert(im, x, c->param[i]->shape->dtype);
}

/* ---- reductions ---- */

/* Inputs, then as many start values, of a region (acc.., x..) -> acc.. */
static hlo_inst *reducer(vhlo_import *im, mlir_op *op, hlo_inst **arg,
                         hlo_op to, hlo_comp **body)
{
    const sd_shape *s = vhlo_shape(im, op);
    int n = op->noperand / 2;
    hlo_inst *in;

    *body = vhlo_reducer(im, op, 0, "region");
    if (!s || im->r->st)
        return NULL;
    for (int i = 0; i < op->noperand; i++)
        arg[i] = widen(im, *body, n ? i % n : i, arg[i]);
    in = vhlo_emit(im, to, s, op->noperand, arg);
    hlo_set_comps(in, 1, body);
    return in;
}

void op_reduce(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_comp *body;
    hlo_dims d = vhlo_ints(im, op, "dimensions", SD_MAX_RANK);
    hlo_inst *in = reducer(im, op, arg, HLO_REDUCE, &body);

    if (in)
        in->dims = d;
    vhlo_bind(im, op, in);
}

void op_map(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_dims d = vhlo_ints(im, op, "dimensions", SD_MAX_RANK);
    const sd_shape *s = vhlo_shape(im, op);
    hlo_comp *body = vhlo_reducer(im, op, 0, "map");
    hlo_inst *in;

    if (!s || im->r->st)
        return;
    in = vhlo_emit(im, HLO_MAP, s, op->noperand, arg);
    in->dims = d;
    hlo_set_comps(in, 1, &body);
    vhlo_bind(im, op, in);
}

void op_sort(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    int64_t d = vhlo_int(im, op, "dimension");
    bool stable = vhlo_int(im, op, "is_stable") != 0;
    const sd_shape *s = vhlo_shape(im, op);
    hlo_comp *body = vhlo_reducer(im, op, 0, "compare");
    hlo_inst *in;

    if (!s || im->r->st)
        return;
    if (!vhlo_has_operands(im, op))
        return;
    if (d < 0)
        d += arg[0]->shape->rank;
    in = vhlo_emit(im, HLO_SORT, s, op->noperand, arg);
    in->dims = hlo_dims_copy(im->a, &d, 1);
    in->u.sort.stable = stable;
    hlo_set_comps(in, 1, &body);
    vhlo_bind(im, op, in);
}

/* ---- windows ---- */

static hlo_window_dim *window(vhlo_import *im, mlir_op *op, int n,
                              const int64_t *size, const char *base,
                              const char *dilation, const int64_t *pad)
{
    const int64_t *stride = vhlo_ints_of(im, op, "window_strides", n);
    const int64_t *b = base ? vhlo_ints_of(im, op, base, n) : NULL;
    const int64_t *w = dilation ? vhlo_ints_of(im, op, dilation, n) : NULL;
    hlo_window_dim *win = sd_arena_array(im->a, hlo_window_dim, n + 1);

    for (int i = 0; i < n; i++)
        win[i] = (hlo_window_dim){.size = size[i],
                                  .stride = stride[i],
                                  .pad_low = pad[2 * i],
                                  .pad_high = pad[2 * i + 1],
                                  .base_dilation = b ? b[i] : 1,
                                  .window_dilation = w ? w[i] : 1};
    return win;
}

void op_reduce_window(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    int n = op->noperand ? arg[0]->shape->rank : 0;
    const int64_t *size = vhlo_ints_of(im, op, "window_dimensions", n);
    const int64_t *pad = vhlo_ints_of(im, op, "padding", 2 * n);
    hlo_window_dim *win =
        window(im, op, n, size, "base_dilations", "window_dilations", pad);
    hlo_comp *body;
    hlo_inst *in = reducer(im, op, arg, HLO_REDUCE_WINDOW, &body);

    if (in) {
        in->u.window.dim = win;
        in->u.window.n = n;
    }
    vhlo_bind(im, op, in);
}

void op_select_and_scatter(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    int n = arg[0]->shape->rank;
    const sd_shape *s = vhlo_shape(im, op);
    const int64_t *size = vhlo_ints_of(im, op, "window_dimensions", n);
    const int64_t *pad = vhlo_ints_of(im, op, "padding", 2 * n);
    hlo_window_dim *win = window(im, op, n, size, NULL, NULL, pad);
    hlo_comp *c[2] = {vhlo_reducer(im, op, 0, "select"), NULL};
    hlo_inst *in;

    if (!im->r->st)
        c[1] = vhlo_reducer(im, op, 1, "scatter");
    if (!s || im->r->st)
        return;
    for (int i = 1; i < 3; i++)
        arg[i] = widen(im, c[1], 0, arg[i]);
    in = vhlo_emit(im, HLO_SELECT_AND_SCATTER, s, 3, arg);
    in->u.window.dim = win;
    in->u.window.n = n;
    hlo_set_comps(in, 2, c);
    vhlo_bind(im, op, in);
}

/* ---- gather, scatter ---- */

void op_gather(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = vhlo_shape(im, op);
    hlo_inst *in;

    if (!s || im->r->st)
        return;
    in = vhlo_emit(im, HLO_GATHER, s, 2, arg);
    vhlo_set_attributes(im, op, in);
    if (op->noperand == 3) { /* dynamic_gather */
        hlo_gather g = *in->u.gather;

        g.slice_sizes = vhlo_const_ints(im, op, 2, SD_MAX_RANK);
        in->u.gather = sd_arena_copy(im->a, &g, sizeof g);
    }
    vhlo_bind(im, op, in);
}

void op_scatter(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = vhlo_shape(im, op);
    hlo_comp *body = vhlo_reducer(im, op, 0, "update");
    int n = (op->noperand - 1) / 2;
    hlo_inst *in;

    if (!s || im->r->st)
        return;
    for (int i = 0; i < n; i++) {
        arg[i] = widen(im, body, i, arg[i]);
        arg[n + 1 + i] = widen(im, body, i, arg[n + 1 + i]);
    }
    in = vhlo_emit(im, HLO_SCATTER, s, op->noperand, arg);
    vhlo_set_attributes(im, op, in);
    hlo_set_comps(in, 1, &body);
    vhlo_bind(im, op, in);
}

/* ---- dot ---- */

void vhlo_precision(vhlo_import *im, mlir_op *op, hlo_prec *prec)
{
    hlo_dims d = vhlo_ints(im, op, "precision_config", 2);

    for (int i = 0; i < d.n; i++) {
        if (d.at[i] < 0 || d.at[i] > HLO_PREC_HIGHEST) {
            vhlo_fail(im, op, SD_INVALID,
                      "precision_config holds %" PRId64
                      ", which should be 0 to %d",
                      d.at[i], HLO_PREC_HIGHEST);
            return;
        }
        prec[i] = (hlo_prec)d.at[i];
    }
}

/* A precision type: an element type, or tf32, which is none; NULL: absent. */
static const char *precision_type(vhlo_import *im, mlir_op *op,
                                  const char *name)
{
    const mlir_attr *at = vhlo_attr(im, op, name);
    const mlir_type *t;

    if (at->kind != MLIR_A_TYPE)
        return NULL;
    t = mlir_type_at(im->r, at->type);
    if (t->kind == MLIR_T_ELEM)
        return sd_dtype_name(t->dtype);
    return t->kind == MLIR_T_OTHER ? t->what : NULL;
}

/* XLA's name of the algorithm.  Any float8 goes as any, with whatever
 * accumulator: their sums are made in f32. */
static const char *algorithm(vhlo_import *im, mlir_op *op)
{
    const char *l = precision_type(im, op, "lhs_precision_type");
    const char *r = precision_type(im, op, "rhs_precision_type");
    const char *acc = precision_type(im, op, "accumulation_type");
    const hlo_algorithm *a;
    const char *name;
    int64_t n;

    if (!l || !r || !acc || im->r->st)
        return NULL;
    n = vhlo_int(im, op, "num_primitive_operations");
    if (strncmp(l, "f8", 2) == 0 && strncmp(r, "f8", 2) == 0) {
        l = r = "any_f8";
        acc = "f32";
    }
    name = sd_arena_fmt(im->a, "dot_%s_%s_%s", l, r, acc);
    if (n != 1)
        name = sd_arena_fmt(im->a, "%s_x%" PRId64, name, n);
    if (vhlo_int(im, op, "allow_imprecise_accumulation"))
        name = sd_arena_fmt(im->a, "%s_fast_accum", name);
    a = hlo_algorithm_of(name);
    if (a)
        return a->name;
    vhlo_fail(im, op, SD_UNIMPLEMENTED, "algorithm %s: it is none of XLA's",
              name);
    return NULL;
}

/* The type in which products of x and y are summed that become t's: their own
 * where t cannot hold them (a float's sum as an integer, which JAX's
 * preferred_element_type may ask for), and the part's of a complex t where no
 * operand is complex.  XLA, too, converts such a sum when it is complete. */
static sd_dtype sum_type(sd_dtype x, sd_dtype y, sd_dtype t)
{
    sd_kind k = sd_dtype_kind(x), l = sd_dtype_kind(y);
    bool holds = true;

    if (l > k || (l == k && sd_dtype_bytes(y) > sd_dtype_bytes(x))) {
        x = y;
        k = l;
    }
    if (k == SD_K_COMPLEX)
        holds = sd_is_complex(t);
    else if (sd_is_complex(t))
        return t == SD_C64 ? SD_F32 : SD_F64;
    else if (k == SD_K_FLOAT)
        holds = sd_is_float(t);
    return holds ? t : x;
}

hlo_inst *vhlo_product(vhlo_import *im, const sd_shape *s, hlo_inst *const *arg)
{
    const sd_shape *x = arg[0]->shape, *y = arg[1]->shape;

    if (sd_shape_is_array(s) && sd_shape_is_array(x) && sd_shape_is_array(y))
        s = sd_shape_with(im->a, s, sum_type(x->dtype, y->dtype, s->dtype));
    return vhlo_emit(im, HLO_DOT, s, 2, arg);
}

void vhlo_bind_product(vhlo_import *im, mlir_op *op, const sd_shape *s,
                       hlo_inst *in)
{
    if (vhlo_check(im, in))
        vhlo_bind(im, op, vhlo_convert(im, in, s->dtype));
}

void op_dot(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = vhlo_shape(im, op);
    int64_t last = arg[0]->shape->rank - 1, first = 0;
    hlo_inst *in;
    hlo_dot *d;

    if (!s || im->r->st)
        return;
    in = vhlo_product(im, s, arg);
    vhlo_set_attributes(im, op, in);
    d = (hlo_dot *)(uintptr_t)in->u.dot;
    vhlo_precision(im, op, d->prec);
    if (strcmp(im->r->name.at[op->name].row->name, "dot_v1") == 0) {
        d->lhs_contract = hlo_dims_copy(im->a, &last, 1);
        d->rhs_contract = hlo_dims_copy(im->a, &first, 1);
    } else {
        d->algorithm = algorithm(im, op);
    }
    vhlo_bind_product(im, op, s, in);
}

/* ---- convolution ---- */

static void check_spatial(vhlo_import *im, mlir_op *op, const hlo_conv *v)
{
    if (v->in_spatial.n != v->nspatial || v->out_spatial.n != v->nspatial)
        vhlo_fail(im, op, SD_INVALID,
                  "input, kernel and output have %d, %d and %d spatial "
                  "dimensions, which should be as many",
                  v->in_spatial.n, v->nspatial, v->out_spatial.n);
}

static void conv_window(vhlo_import *im, mlir_op *op, hlo_conv *v,
                        const sd_shape *k)
{
    int n = v->nspatial;
    int64_t size[SD_MAX_RANK] = {0};
    const int64_t *pad, *flip = vhlo_ints_of(im, op, "window_reversal", n);
    hlo_dims d;

    for (int i = 0; i < n; i++) {
        if (v->k_spatial.at[i] < 0 || v->k_spatial.at[i] >= k->rank) {
            vhlo_fail(im, op, SD_INVALID,
                      "spatial dimension %" PRId64 " of a kernel of rank %d",
                      v->k_spatial.at[i], k->rank);
            return;
        }
        size[i] = k->dim[v->k_spatial.at[i]];
    }
    if (op->noperand == 3) { /* dynamic_conv; v1 has an attribute too */
        d = vhlo_const_ints(im, op, 2, 2 * SD_MAX_RANK);
        if (d.n != 2 * n) {
            vhlo_fail(im, op, SD_INVALID, "operand 2 has %d entries, not %d",
                      d.n, 2 * n);
            return;
        }
        pad = d.at;
    } else {
        pad = vhlo_ints_of(im, op, "padding", 2 * n);
    }
    v->win = window(im, op, n, size, "lhs_dilation", "rhs_dilation", pad);
    for (int i = 0; i < n; i++)
        v->win[i].reversal = flip[i] != 0;
}

void op_convolution(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = vhlo_shape(im, op);
    hlo_inst *in;
    hlo_conv *v;

    if (!s || im->r->st)
        return;
    in = vhlo_emit(im, HLO_CONVOLUTION, s, 2, arg);
    vhlo_set_attributes(im, op, in);
    v = (hlo_conv *)(uintptr_t)in->u.conv;
    v->nspatial = v->k_spatial.n;
    vhlo_precision(im, op, v->prec);
    check_spatial(im, op, v);
    if (!im->r->st)
        conv_window(im, op, v, arg[1]->shape);
    vhlo_bind(im, op, in);
}
