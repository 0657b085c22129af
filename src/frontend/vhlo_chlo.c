/* CHLO's operations, which only text brings: JAX prints them, and what sends
 * bytecode has them expanded.  Those that HLO has, or says in a few words. */
#include "vhlo_chlo_terms.h"

#include <math.h>

void chlo_bind(vhlo_import *im, mlir_op *op, hlo_inst *in)
{
    const sd_shape *s = vhlo_shape(im, op);

    if (!s || im->r->st)
        return;
    if (sd_shape_equal(s, in->shape))
        vhlo_bind(im, op, in);
    else
        vhlo_fail(im, op, SD_INVALID, "gives %s, and its type says %s",
                  hlo_shape_str(im->m, in->shape), hlo_shape_str(im->m, s));
}

bool chlo_spread(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *to = vhlo_shape(im, op);
    bool declared = op->noperand == 2;
    hlo_dims d = {0};

    if (declared)
        d = vhlo_ints(im, op, "broadcast_dimensions", SD_MAX_RANK);
    if (!to || im->r->st)
        return false;
    for (int i = 0; i < op->noperand; i++) {
        const sd_shape *s = arg[i]->shape;
        int64_t at[SD_MAX_RANK], last = to->rank - s->rank;
        hlo_dims bd = {at, s->rank};

        if (sd_shape_is_array(s) && sd_shape_same_dims(s, to))
            continue;
        for (int k = 0; k < s->rank; k++)
            at[k] = last + k;
        if (d.n && d.n == s->rank && s->rank < to->rank)
            bd = d;
        arg[i] = vhlo_broadcast_to(im, op, arg[i], bd,
                                   sd_shape_with(im->a, to, s->dtype));
        if (im->r->st)
            return false;
    }
    return true;
}

void op_chlo_broadcast(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    if (chlo_spread(im, op, arg))
        op_simple(im, op, arg);
}

void op_chlo_compare(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    if (chlo_spread(im, op, arg))
        op_compare(im, op, arg);
}

void op_constant_like(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const mlir_attr *at = vhlo_need(im, op, "value");
    const sd_shape *s = arg[0]->shape;
    hlo_at p = {im->c, NULL, NULL};
    hlo_inst *x;

    if (im->r->st)
        return;
    if (at->kind == MLIR_A_INT)
        x = hlo_make_scalar_s64(p, s->dtype, mlir_int(im->r, at));
    else
        x = hlo_make_scalar(p, s->dtype, vhlo_float(im, op, "value"));
    if (!im->r->st)
        chlo_bind(im, op, vhlo_fill(im, x, s));
}

/* Of the type itself: a type without infinities has none. */
void op_is_inf(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const char *name = im->r->name.at[op->name].row->name;
    double inf = strstr(name, "neg") ? -INFINITY : INFINITY;
    hlo_inst *x;
    chlo_fn f;

    if (!chlo_is_float(im, op, arg[0]))
        return;
    x = chlo_worked(im, arg[0]);
    f = (chlo_fn){im, x->shape};
    if (strcmp(name, "chlo.is_inf") == 0)
        x = fn1(&f, HLO_ABS, x);
    chlo_bind(im, op, is(&f, HLO_EQ, x, num(&f, inf)));
}

/* ---- whole numbers ---- */

static hlo_inst *as_word(hlo_at p, sd_dtype t, hlo_inst *x)
{
    return x->shape->dtype == t ? x : hlo_make_bitcast_convert(p, t, x);
}

/* The high half of what 64 bits by 64 give, from products of halves. */
static hlo_inst *high_half(vhlo_import *im, hlo_inst *x, hlo_inst *y)
{
    hlo_at p = {im->c, NULL, NULL};
    const sd_shape *s = sd_shape_with(im->a, x->shape, SD_U64);
    hlo_inst *by = vhlo_fill(im, hlo_make_scalar_s64(p, SD_U64, 32), s);
    hlo_inst *mask =
        vhlo_fill(im, hlo_make_scalar_s64(p, SD_U64, UINT32_MAX), s);
    hlo_inst *part[2][2], *low, *one, *two, *carry, *high;

    for (int i = 0; i < 2; i++) {
        hlo_inst *v = i ? y : x;

        part[i][0] = hlo_make_binary(p, HLO_AND, v, mask);
        part[i][1] = hlo_make_binary(p, HLO_SHR_LOGIC, v, by);
    }
    low = hlo_make_binary(p, HLO_MULTIPLY, part[0][0], part[1][0]);
    one = hlo_make_binary(p, HLO_MULTIPLY, part[0][1], part[1][0]);
    two = hlo_make_binary(p, HLO_MULTIPLY, part[0][0], part[1][1]);
    high = hlo_make_binary(p, HLO_MULTIPLY, part[0][1], part[1][1]);
    carry = hlo_make_binary(p, HLO_SHR_LOGIC, low, by);
    carry = hlo_make_binary(p, HLO_ADD, carry,
                            hlo_make_binary(p, HLO_AND, one, mask));
    carry = hlo_make_binary(p, HLO_ADD, carry,
                            hlo_make_binary(p, HLO_AND, two, mask));
    high = hlo_make_binary(p, HLO_ADD, high,
                           hlo_make_binary(p, HLO_SHR_LOGIC, carry, by));
    high = hlo_make_binary(p, HLO_ADD, high,
                           hlo_make_binary(p, HLO_SHR_LOGIC, one, by));
    return hlo_make_binary(p, HLO_ADD, high,
                           hlo_make_binary(p, HLO_SHR_LOGIC, two, by));
}

/* Unsigned's, less the other number for each that is negative. */
static hlo_inst *high_half_signed(vhlo_import *im, hlo_inst *x, hlo_inst *y)
{
    hlo_at p = {im->c, NULL, NULL};
    hlo_inst *zero = vhlo_fill(im, hlo_make_scalar_s64(p, SD_S64, 0), x->shape);
    hlo_inst *high = as_word(
        p, SD_S64, high_half(im, as_word(p, SD_U64, x), as_word(p, SD_U64, y)));

    for (int i = 0; i < 2; i++) {
        hlo_inst *is = hlo_make_compare(p, HLO_LT, i ? y : x, zero);

        high = hlo_make_binary(p, HLO_SUBTRACT, high,
                               hlo_make_select(p, is, i ? x : y, zero));
    }
    return high;
}

void op_mulhi(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_at p = {im->c, NULL, NULL};
    sd_dtype t = arg[0]->shape->dtype;
    bool is_signed = sd_is_signed(t);
    int bits = sd_dtype_table[t].bits;
    sd_dtype wide = is_signed ? SD_S64 : SD_U64;
    hlo_inst *x = arg[0], *y = arg[1], *by;

    if ((!is_signed && sd_dtype_kind(t) != SD_K_UINT) ||
        !sd_shape_equal(x->shape, y->shape)) {
        vhlo_fail(im, op, SD_INVALID,
                  "of %s and %s, which should be integers of one shape",
                  hlo_shape_str(im->m, x->shape),
                  hlo_shape_str(im->m, y->shape));
        return;
    }
    if (bits == 64) {
        chlo_bind(im, op,
                  is_signed ? high_half_signed(im, x, y) : high_half(im, x, y));
        return;
    }
    x = hlo_make_binary(p, HLO_MULTIPLY, vhlo_convert(im, x, wide),
                        vhlo_convert(im, y, wide));
    by = vhlo_fill(im, hlo_make_scalar_s64(p, wide, bits), x->shape);
    x = hlo_make_binary(p, is_signed ? HLO_SHR_ARITH : HLO_SHR_LOGIC, x, by);
    chlo_bind(im, op, vhlo_convert(im, x, t));
}

/* ---- neighbours ---- */

/* The number next to x towards y, by x's bits, which are in the order of
 * sizes: away from zero when y is farther out on x's side, else towards it. */
static hlo_inst *next_after(hlo_at p, hlo_inst *x, hlo_inst *y, sd_dtype word,
                            const sd_shape *s, vhlo_import *im)
{
    sd_dtype t = x->shape->dtype;
    uint64_t top = UINT64_C(1) << (sd_dtype_table[t].bits - 1);
    hlo_inst *one = vhlo_fill(im, hlo_make_scalar_s64(p, word, 1), s);
    hlo_inst *mask =
        vhlo_fill(im, hlo_make_scalar_s64(p, word, (int64_t)top), s);
    hlo_inst *bits = hlo_make_bitcast_convert(p, word, x), *sign, *out, *is;

    sign = hlo_make_bitcast_convert(p, word, y);
    sign = hlo_make_binary(p, HLO_AND, mask, sign);
    is = hlo_make_binary(p, HLO_AND, bits, mask);
    is = hlo_make_compare(p, HLO_EQ, is, sign);
    out = hlo_make_compare(p, HLO_LT, hlo_make_unary(p, HLO_ABS, x),
                           hlo_make_unary(p, HLO_ABS, y));
    out = hlo_make_binary(p, HLO_AND, is, out);
    bits = hlo_make_select(p, out, hlo_make_binary(p, HLO_ADD, bits, one),
                           hlo_make_binary(p, HLO_SUBTRACT, bits, one));
    is = hlo_make_compare(p, HLO_EQ, x, hlo_make_fill(p, x->shape, 0));
    bits = hlo_make_select(p, is, hlo_make_binary(p, HLO_OR, sign, one), bits);
    return hlo_make_bitcast_convert(p, t, bits);
}

void op_next_after(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_at p = {im->c, NULL, NULL};
    sd_dtype t = arg[0]->shape->dtype;
    sd_dtype word = sd_dtype_unsigned(sd_dtype_table[t].bits);
    hlo_inst *out;

    if (!chlo_spread(im, op, arg) || !chlo_is_float(im, op, arg[0]))
        return;
    if (sd_dtype_table[t].bits < 8 || t == SD_F8E8M0FNU ||
        arg[1]->shape->dtype != t) {
        vhlo_fail(im, op, SD_UNIMPLEMENTED,
                  "of %s and %s: floats of one type, with a sign and of a "
                  "byte or more, are done",
                  sd_dtype_name(t), sd_dtype_name(arg[1]->shape->dtype));
        return;
    }
    out = next_after(p, arg[0], arg[1], word,
                     sd_shape_with(im->a, arg[0]->shape, word), im);
    out = hlo_make_select(p, hlo_make_compare(p, HLO_EQ, arg[0], arg[1]),
                          arg[1], out);
    for (int i = 0; i < 2; i++) /* NaN of either */
        out = hlo_make_select(p, hlo_make_compare(p, HLO_NE, arg[i], arg[i]),
                              arg[i], out);
    chlo_bind(im, op, out);
}

/* ---- those of HLO ---- */

void op_square(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_inst *two[2] = {arg[0], arg[0]};
    const sd_shape *s = vhlo_shape(im, op);

    if (s)
        vhlo_bind(im, op, vhlo_emit(im, HLO_MULTIPLY, s, 2, two));
}

void op_conj(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = vhlo_shape(im, op), *part;
    hlo_inst *two[2];

    if (!s)
        return;
    if (!sd_is_complex(s->dtype)) {
        op->result[0].inst = arg[0];
        return;
    }
    part = sd_shape_with(im->a, s, sd_dtype_part(s->dtype));
    two[0] = vhlo_emit(im, HLO_REAL, part, 1, arg);
    two[1] = vhlo_emit(im, HLO_IMAG, part, 1, arg);
    two[1] = vhlo_emit(im, HLO_NEGATE, part, 1, &two[1]);
    vhlo_bind(im, op, vhlo_emit(im, HLO_COMPLEX, s, 2, two));
}

void op_top_k(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = vhlo_shape(im, op);
    int64_t k = vhlo_int(im, op, "k");
    hlo_inst *in;

    if (!s || im->r->st)
        return;
    in = vhlo_emit(im, HLO_TOPK, s, 1, arg);
    in->dims = hlo_dims_copy(im->a, &k, 1);
    in->u.sort.stable = true;
    vhlo_bind(im, op, in);
}
