/* Operands of large products and convolutions, on GPUs whose matrix
 * instructions read them from local memory (wgmma): those of bytes and of f32
 * as tf32 must lie along the summed dimension there, and f32 must have been
 * rounded.  Doing that while they are copied takes registers, and the copies
 * then bound the product.  So an operand that is read often enough is written
 * anew first, with that dimension last, and rounded, and copies go by
 * themselves (docs/adr/0025, 0033).  The operand of a result's rows need only
 * lie so: the instructions also take it from registers, where it is rounded. */
#include "passes_priv.h"

enum {
    LINE = 128, /* bytes along the sum that a step reads of an operand */
    LEAST_USE = 256, /* products of an element, for each of its bytes: fewer
                        are done as fast as it is written and read again */
    MOST_PLACES = 31 /* of a window, as plan_plain.c has them */
};

/* One operand: which dimension is summed last, and the order that puts it
 * last. */
typedef struct {
    hlo_inst *x;
    int64_t perm[SD_MAX_RANK];
    bool turns, rounds;
} side;

static double count(const sd_shape *s)
{
    return (double)sd_shape_count(s);
}

static bool takes(const device_desc *dev, sd_dtype t, const hlo_inst *in)
{
    return t == SD_S8 || t == SD_U8 || (t == SD_F32 && pass_may_round(dev, in));
}

/* x has its dimension `last` last, and the others in order. */
static void find_side(side *s, hlo_inst *x, int64_t last, hlo_prec prec,
                      bool rows)
{
    int n = 0;

    s->x = x;
    for (int d = 0; d < x->shape->rank; d++)
        if (d != last)
            s->perm[n++] = d;
    s->perm[n] = last;
    s->turns = last != n;
    s->rounds = x->shape->dtype == SD_F32 && prec != HLO_PREC_TF32 &&
                (s->turns || !rows);
}

/* Is each of them either right or used so often that it may be made so, and
 * is there one that is to be made? */
static bool is_worth(const device_desc *dev, const hlo_inst *in, const side *s,
                     int64_t depth, double products)
{
    sd_dtype t = s[0].x->shape->dtype;
    size_t bytes = sd_dtype_bytes(t);
    bool any = false;

    if (!takes(dev, t, in) || s[1].x->shape->dtype != t ||
        !device_fills_wide(dev, count(in->shape)) ||
        depth * (int64_t)bytes % LINE)
        return false;
    for (int i = 0; i < 2; i++) {
        bool made = s[i].turns || s[i].rounds;

        any |= made;
        if (made && products < count(s[i].x->shape) * (double)bytes * LEAST_USE)
            return false;
    }
    return any;
}

static hlo_inst *make(hlo_at p, const side *s)
{
    hlo_inst *x = s->x;

    if (s->turns)
        x = hlo_make_transpose(p, x, s->perm);
    return s->rounds ? hlo_make_trimmed(p, x) : x;
}

/* ---- products ---- */

static hlo_inst *make_dot(hlo_inst *in, const device_desc *dev)
{
    sd_arena *a = in->parent->module->arena;
    hlo_at p = pass_at(in);
    hlo_dot d = *in->u.dot;
    hlo_dims *dims[2][2] = {{&d.lhs_batch, &d.lhs_contract},
                            {&d.rhs_batch, &d.rhs_contract}};
    hlo_inst *x[2];
    side s[2];
    int64_t depth;

    if (d.lhs_contract.n != 1)
        return NULL;
    for (int i = 0; i < 2; i++)
        find_side(&s[i], in->arg[i], dims[i][1]->at[0], d.prec[i], i == 0);
    depth = in->arg[0]->shape->dim[d.lhs_contract.at[0]];
    if (!is_worth(dev, in, s, depth, count(in->shape) * (double)depth))
        return NULL;
    for (int i = 0; i < 2; i++) {
        x[i] = make(p, &s[i]);
        for (int k = 0; k < 2; k++)
            *dims[i][k] = hlo_dims_turned(a, s[i].perm, *dims[i][k]);
        if (s[i].rounds)
            d.prec[i] = HLO_PREC_TF32;
    }
    return hlo_make_dot(p, x[0], x[1], pass_dtype(in), &d);
}

/* ---- convolutions ---- */

static bool has_small_window(const hlo_conv *c)
{
    int64_t places = 0;

    for (int i = 0; i < c->nspatial; i++) {
        places += c->win[i].size;
        if (c->win[i].base_dilation != 1)
            return false;
    }
    return places <= MOST_PLACES && c->feature_groups == 1 &&
           c->batch_groups == 1;
}

static hlo_inst *make_conv(hlo_inst *in, const device_desc *dev)
{
    sd_arena *a = in->parent->module->arena;
    hlo_at p = pass_at(in);
    hlo_conv c = *in->u.conv;
    hlo_inst *x[2], *out;
    const sd_shape *k = in->arg[1]->shape;
    bool features_last = c.out_feature == in->shape->rank - 1;
    side s[2];
    double depth;

    if (!has_small_window(&c))
        return NULL;
    find_side(&s[0], in->arg[0], c.in_feature, c.prec[0], features_last);
    find_side(&s[1], in->arg[1], c.k_in, c.prec[1], !features_last);
    depth = count(k) / (double)k->dim[c.k_out];
    if (!is_worth(dev, in, s, k->dim[c.k_in], count(in->shape) * depth))
        return NULL;
    for (int i = 0; i < 2; i++) {
        x[i] = make(p, &s[i]);
        if (s[i].rounds)
            c.prec[i] = HLO_PREC_TF32;
    }
    c.in_batch = hlo_dim_turned(s[0].perm, c.in_batch);
    c.in_feature = hlo_dim_turned(s[0].perm, c.in_feature);
    c.in_spatial = hlo_dims_turned(a, s[0].perm, c.in_spatial);
    c.k_in = hlo_dim_turned(s[1].perm, c.k_in);
    c.k_out = hlo_dim_turned(s[1].perm, c.k_out);
    c.k_spatial = hlo_dims_turned(a, s[1].perm, c.k_spatial);
    out = hlo_inst_clone(in->parent, in, in, x);
    out->u.conv = sd_arena_copy(a, &c, sizeof c);
    return out;
}

static hlo_inst *make_product(hlo_inst *in, const device_desc *dev)
{
    return in->op == HLO_DOT           ? make_dot(in, dev)
           : in->op == HLO_CONVOLUTION ? make_conv(in, dev)
                                       : NULL;
}

bool hlo_opt_operands(hlo_module *m, const device_desc *dev)
{
    return dev->features & DEVICE_HAS_WGMMA &&
           pass_rewrite_for(m, dev, make_product);
}
