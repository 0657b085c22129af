/* Products and convolutions of 8-bit integers in f32: while every sum stays
 * below 2^24 it is exact there, whatever the order, and the library's f32 is
 * several times faster than our loops over bytes, where these have no engine.
 * What it does exactly in bytes was taken before. */
#include "plan_library.h"

enum { EXACT = 1 << 24 };

/* The largest absolute value; 0: none that fits. */
static int64_t largest(sd_dtype t)
{
    return t == SD_S8 ? 128 : t == SD_U8 ? 255 : 0;
}

/* How many products a sum has. */
static int64_t terms_of(const hlo_inst *in)
{
    const sd_shape *x = in->arg[0]->shape, *w = in->arg[1]->shape;
    int64_t n = 1;

    if (in->op == HLO_CONVOLUTION)
        return sd_shape_count(w) / SD_MAX(w->dim[in->u.conv->k_out], 1);
    for (int i = 0; i < in->u.dot->lhs_contract.n; i++)
        n *= x->dim[in->u.dot->lhs_contract.at[i]];
    return n;
}

static bool is_exact(const hlo_inst *in)
{
    int64_t x = largest(in->arg[0]->shape->dtype);
    int64_t y = largest(in->arg[1]->shape->dtype);

    return x && y && terms_of(in) <= EXACT / (x * y);
}

/* vpdpbusd in blocks of our own is two to three times faster than f32, but for
 * groups that are too narrow for blocks; of products vpmaddwd is 1.2 to 2.4
 * times faster than f32 in vectors of 8. */
static bool has_engine(const hlo_inst *in, const device_desc *dev)
{
    const hlo_conv *c = in->op == HLO_CONVOLUTION ? in->u.conv : NULL;
    int64_t groups = c ? SD_MAX(c->feature_groups, c->batch_groups) : 1;

    if (!c && !(dev->features & DEVICE_HAS_AVX512))
        return true;
    return dev->features & DEVICE_HAS_VNNI &&
           (groups == 1 ||
            in->shape->dim[c->out_feature] / groups >= PLAN_LEAST_GROUP);
}

bool plan_library_bytes(hlo_inst *in, const device_desc *dev)
{
    sd_arena *a = in->parent->module->arena;
    hlo_at at = {in->parent, in, in};
    hlo_inst *arg[2], *wide, *back;
    sd_dtype t = in->shape->dtype;

    if ((t != SD_S32 && t != SD_S8 && t != SD_U8) || !is_exact(in) ||
        (t == SD_S32 && has_engine(in, dev)))
        return false;
    for (int i = 0; i < 2; i++)
        arg[i] = hlo_make_convert(at, SD_F32, in->arg[i]);
    wide = hlo_inst_create(in->parent, in, in->op,
                           sd_shape_with(a, in->shape, SD_F32), 2, arg);
    wide->u = in->u;
    hlo_take_source(wide, in);
    /* by s32, so that narrower types wrap as integers do */
    back = hlo_make_convert(at, t, hlo_make_convert(at, SD_S32, wide));
    hlo_replace(in, back);
    if (in->op == HLO_DOT ? plan_library_matmul(wide, dev)
                          : plan_library_conv(wide, dev))
        return true;
    hlo_replace(back, in); /* too little work: as it was */
    return false;
}
