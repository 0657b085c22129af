/* Simplification of conversions, and of complex numbers made of their parts and
 * taken apart. */
#include "simplify.h"

/* Does every value of type a exist in type b?  f8e8m0fnu has no zero. */
static bool fits(sd_dtype a, sd_dtype b)
{
    sd_kind ka = sd_dtype_kind(a), kb = sd_dtype_kind(b);
    int na = sd_dtype_table[a].bits, nb = sd_dtype_table[b].bits;
    bool int_a = ka == SD_K_SINT || ka == SD_K_UINT;

    if (a == b)
        return true;
    if (ka == SD_K_PRED)
        return b != SD_F8E8M0FNU;
    if (int_a && (kb == SD_K_SINT || kb == SD_K_UINT))
        return ka == kb ? na <= nb : ka == SD_K_UINT && na < nb;
    if (int_a && kb == SD_K_FLOAT)
        return (b == SD_F32 && na <= 16) || (b == SD_F64 && na <= 32);
    if (ka == SD_K_FLOAT && kb == SD_K_FLOAT)
        return b == SD_F64 || (b == SD_F32 && a != SD_F64);
    return false;
}

/* The middle type of a chain goes where it holds every value of the source and
 * the step that is left does what both did.  Integers are cut to a narrower
 * integer but held at its ends when they come from a float: s8 -> f32 -> u8 of
 * -56 is 0, s8 -> u8 is 200. */
static hlo_inst *convert_chain(hlo_inst *in)
{
    hlo_inst *x = in->arg[0];
    sd_dtype to = pass_dtype(in), middle = pass_dtype(x), from;

    if (middle == to)
        return x;
    if (x->op != HLO_CONVERT || sd_is_complex(to))
        return NULL;
    x = x->arg[0];
    from = pass_dtype(x);
    if (!fits(from, middle) || (sd_is_int(from) && sd_is_float(middle) &&
                                sd_is_int(to) && !fits(from, to)))
        return NULL;
    return pass_convert(pass_at(in), to, x);
}

/* Do the low bits of the result depend on the low bits of what is reduced? */
static bool keeps_low_bits(const hlo_inst *reduce)
{
    hlo_op op;

    return hlo_comp_is_binary(reduce->comp[0], &op) &&
           (op == HLO_ADD || op == HLO_MULTIPLY || op == HLO_AND ||
            op == HLO_OR || op == HLO_XOR);
}

/* JAX sums bytes as 32-bit numbers and cuts the sum to a byte (packbits): bytes
 * give the same bits, and a vector has four times as many. */
static hlo_inst *convert_reduce(hlo_inst *in)
{
    hlo_inst *r = in->arg[0], *x, *init;
    sd_dtype to = pass_dtype(in), wide = pass_dtype(r);
    hlo_op op;

    if (r->op != HLO_REDUCE || r->narg != 2 || r->nuse > 1 || !sd_is_int(to) ||
        !sd_is_int(wide) || !keeps_low_bits(r) ||
        sd_dtype_table[to].bits >= sd_dtype_table[wide].bits)
        return NULL;
    x = r->arg[0];
    if (x->op != HLO_CONVERT || !sd_is_int(pass_dtype(x->arg[0])) ||
        sd_dtype_table[pass_dtype(x->arg[0])].bits > sd_dtype_table[to].bits)
        return NULL;
    hlo_comp_is_binary(r->comp[0], &op);
    x = pass_convert(pass_at(in), to, x->arg[0]);
    init = pass_convert(pass_at(in), to, r->arg[1]);
    return hlo_make_reduce(pass_at(in), x, init, r->dims.at, r->dims.n,
                           hlo_scalar_comp(in->parent->module, op, to));
}

/* What becomes narrower is so before it is moved: fewer bytes move, and who
 * computes it writes it as narrow as it is wanted. */
static hlo_inst *convert_moved(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    sd_dtype to = pass_dtype(in);
    hlo_inst *moved = in->arg[0], *arg[2], *x;

    if (moved->nuse > 1 ||
        sd_dtype_bytes(to) >= sd_dtype_bytes(pass_dtype(moved)))
        return NULL;
    if (moved->op != HLO_PAD && moved->op != HLO_TRANSPOSE)
        return NULL;
    for (int i = 0; i < moved->narg; i++)
        arg[i] = pass_convert(p, to, moved->arg[i]);
    x = hlo_inst_clone(in->parent, in, moved, arg);
    x->shape = in->shape;
    return x;
}

hlo_inst *simplify_convert(hlo_inst *in)
{
    hlo_inst *to = convert_chain(in);

    if (!to)
        to = convert_reduce(in);
    return to ? to : convert_moved(in);
}

hlo_inst *simplify_bitcast_convert(hlo_inst *in)
{
    hlo_inst *x = in->arg[0];

    while (x->op == HLO_BITCAST_CONVERT &&
           sd_shape_same_dims(x->shape, x->arg[0]->shape))
        x = x->arg[0];
    if (sd_shape_equal(x->shape, in->shape))
        return x;
    if (x == in->arg[0] || !sd_shape_same_dims(x->shape, in->shape))
        return NULL;
    return hlo_make_bitcast_convert(pass_at(in), pass_dtype(in), x);
}

hlo_inst *simplify_part_of_complex(hlo_inst *in)
{
    hlo_inst *x = in->arg[0];

    if (x->op == HLO_COMPLEX)
        return x->arg[in->op == HLO_IMAG];
    if (sd_is_complex(pass_dtype(x)))
        return NULL;
    return in->op == HLO_REAL ? x : hlo_make_fill(pass_at(in), in->shape, 0);
}

hlo_inst *simplify_complex(hlo_inst *in)
{
    hlo_inst *re = in->arg[0], *im = in->arg[1];

    return re->op == HLO_REAL && im->op == HLO_IMAG &&
                   re->arg[0] == im->arg[0] &&
                   sd_is_complex(pass_dtype(re->arg[0]))
               ? re->arg[0]
               : NULL;
}
