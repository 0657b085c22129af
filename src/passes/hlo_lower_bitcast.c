/* bitcast-convert of complex numbers and of pred, as ones of other types: a
 * complex number is its parts side by side, and a pred one bit of a number. */
#include "terms.h"

static int bits_of(sd_dtype t)
{
    return sd_dtype_table[t].bits;
}

/* ---- pred ---- */

/* 0, 1, .. along the last dimension. */
static hlo_inst *bit_numbers(hlo_at p, const sd_shape *s, sd_dtype t)
{
    return hlo_make_iota(p, sd_shape_with(p.c->module->arena, s, t),
                         s->rank - 1);
}

/* [d, k] of pred: d of k bits. */
static hlo_inst *join_preds(hlo_at p, hlo_inst *x, sd_dtype to)
{
    sd_dtype t = sd_dtype_unsigned(bits_of(to));
    int64_t last = x->shape->rank - 1;
    hlo_inst *y = t_convert(p, t, x);

    y = t_binary(p, HLO_SHL, y, bit_numbers(p, x->shape, t));
    y = hlo_make_reduce(p, y, hlo_make_scalar_s64(p, t, 0), &last, 1,
                        hlo_scalar_comp(p.c->module, HLO_OR, t));
    return t_bitcast(p, to, y);
}

/* d of k bits: [d, k] of pred. */
static hlo_inst *split_to_preds(hlo_at p, hlo_inst *x)
{
    int bits = bits_of(pass_dtype(x)), rank = x->shape->rank;
    sd_dtype t = sd_dtype_unsigned(bits);
    int64_t dim[SD_MAX_RANK], at[SD_MAX_RANK];
    const sd_shape *s;

    for (int i = 0; i < rank; i++) {
        dim[i] = x->shape->dim[i];
        at[i] = i;
    }
    dim[rank] = bits;
    s = sd_shape_make(p.c->module->arena, t, rank + 1, dim);
    x = t_bitcast(p, t, x);
    x = hlo_make_broadcast(p, x, s, at, rank);
    x = t_binary(p, HLO_SHR_LOGIC, x, bit_numbers(p, s, t));
    x = t_and(p, x, hlo_make_fill_s64(p, s, t, 1));
    return t_convert(p, SD_PRED, x);
}

/* The bits of reals as another type's, with the dimensions that this gives;
 * whole: a pred is a byte. */
static hlo_inst *real_bits(hlo_at p, hlo_inst *x, sd_dtype to, bool whole)
{
    sd_dtype from = pass_dtype(x);

    if (from == to)
        return x;
    if (from == SD_PRED && whole)
        return t_bitcast(p, to, t_convert(p, SD_U8, x));
    if (to == SD_PRED && whole)
        return t_convert(p, to, t_bitcast(p, SD_U8, x));
    if (from == SD_PRED)
        return join_preds(p, x, to);
    if (to == SD_PRED)
        return split_to_preds(p, x);
    return t_bitcast(p, to, x);
}

/* ---- complex ---- */

/* With a dimension of 1 last. */
static hlo_inst *with_last(hlo_at p, hlo_inst *x)
{
    int64_t dim[SD_MAX_RANK];
    int rank = x->shape->rank;

    for (int i = 0; i < rank; i++)
        dim[i] = x->shape->dim[i];
    dim[rank] = 1;
    return hlo_make_reshape(p, x, rank + 1, dim);
}

/* [d]: [d, 2] of its parts. */
static hlo_inst *split_complex(hlo_at p, hlo_inst *x)
{
    hlo_inst *part[] = {
        with_last(p, t_unary(p, HLO_REAL, x)),
        with_last(p, t_unary(p, HLO_IMAG, x)),
    };

    return hlo_make_concatenate(p, 2, part, x->shape->rank);
}

/* [d, 2] of parts: [d]. */
static hlo_inst *join_complex(hlo_at p, hlo_inst *x)
{
    int last = x->shape->rank - 1;
    hlo_inst *part[2];

    for (int k = 0; k < 2; k++)
        part[k] = hlo_make_reshape(p, hlo_make_cut(p, x, last, k, k + 1), last,
                                   x->shape->dim);
    return t_binary(p, HLO_COMPLEX, part[0], part[1]);
}

/* From reals whose last dimension holds all of a complex number, unless one
 * real does: to [d, 2, k], k of them a part. */
static hlo_inst *in_two(hlo_at p, hlo_inst *x, const sd_shape *d, int k)
{
    int64_t dim[SD_MAX_RANK];

    for (int i = 0; i < d->rank; i++)
        dim[i] = d->dim[i];
    dim[d->rank] = 2;
    dim[d->rank + 1] = k;
    return hlo_make_reshape(p, x, d->rank + 2, dim);
}

static hlo_inst *lower_bitcast(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst *x = in->arg[0];
    sd_dtype to = pass_dtype(in), part = sd_dtype_part(to);
    bool whole = sd_shape_same_dims(x->shape, in->shape);
    int from_bits;

    if (sd_is_complex(pass_dtype(x)) && to != pass_dtype(x)) {
        x = split_complex(p, x);
        whole = false;
    }
    from_bits = bits_of(pass_dtype(x));
    if (part != to && from_bits < bits_of(part) && x == in->arg[0])
        x = in_two(p, x, in->shape, bits_of(part) / from_bits);
    x = real_bits(p, x, part, whole);
    if (part != to)
        x = join_complex(p, x);
    return pass_reshape(p, x, in->shape->rank, in->shape->dim);
}

bool pass_is_plain_bitcast(const hlo_inst *in)
{
    sd_dtype to = pass_dtype(in), from = pass_dtype(in->arg[0]);

    return from == to || (sd_dtype_part(to) == to && to != SD_PRED &&
                          sd_dtype_part(from) == from && from != SD_PRED);
}

/* Two dimensions more than the result has are needed on the way. */
hlo_inst *hlo_lower_bitcast(hlo_inst *in)
{
    int rank = SD_MAX(in->shape->rank, in->arg[0]->shape->rank);

    return pass_is_plain_bitcast(in) || rank + 2 > SD_MAX_RANK
               ? NULL
               : lower_bitcast(in);
}
