/* The gradient of a window for a GPU's matrix engine (plan_operands.c): sums
 * over all positions of all images.  In the copies the images of one position
 * lie side by side, then the next position's, a row of the image after the
 * other, framed by the window's zeros; where the window has holes (of a stride)
 * the positions between them are rows of their own.  There are few such sums:
 * they are taken in `groups` of images, as a convolution in groups of features
 * is, and added. */
#include "plan_operands.h"

typedef struct {
    int64_t images, groups, apart; /* apart: of the window's positions */
} gradient;

/* Rows are whole steps. */
static bool is_whole(const hlo_inst *in, int64_t images)
{
    const hlo_conv *c = in->u.conv;
    int64_t bytes = (int64_t)sd_dtype_bytes(in->arg[0]->shape->dtype);

    return images * c->win[c->nspatial - 1].size * bytes % PLAN_ROW_BYTES == 0;
}

/* As many groups as there are sub-groups for, so that rows are whole steps if
 * any are; none: positions do not begin where they could be read. */
static bool find_gradient(const hlo_inst *in, const device_desc *dev,
                          gradient *g)
{
    enum { SUMS = 2048 /* of a sub-group */ };
    const hlo_conv *c = in->u.conv;
    int64_t bytes = (int64_t)sd_dtype_bytes(in->arg[0]->shape->dtype),
            most = dev->units * (int64_t)SUMS /
                   SD_MAX(sd_shape_count(in->shape), 1),
            unit = dev->features & DEVICE_HAS_BLOCK2D ? PLAN_WORD : dev->access;

    for (int i = 0; i < c->nspatial; i++)
        if (c->win[i].base_dilation > 1 || c->win[i].reversal)
            return false;
    *g = (gradient){.images = in->arg[1]->shape->dim[c->k_in],
                    .apart = c->win[c->nspatial - 1].window_dilation};
    for (int64_t n = 1; g->images % n == 0 && n <= SD_MAX(most, 1); n *= 2)
        if (g->images / n * bytes % unit == 0 &&
            (!g->groups || is_whole(in, g->images / n) ||
             !is_whole(in, g->images / g->groups)))
            g->groups = n;
    return g->groups > 0 && c->nspatial + 4 <= SD_MAX_RANK &&
           c->feature_groups == 1;
}

/* [groups, images, positions, own] of an operand. */
static hlo_inst *in_groups(hlo_at p, hlo_inst *x, int64_t images,
                           hlo_dims spatial, int64_t own, const gradient *g)
{
    int64_t perm[SD_MAX_RANK], dim[SD_MAX_RANK];

    plan_order_dims(perm, images, spatial, own, false);
    x = plan_turned(p, x, perm);
    dim[0] = g->groups;
    dim[1] = g->images / g->groups;
    memcpy(dim + 2, x->shape->dim + 1,
           (size_t)(x->shape->rank - 1) * sizeof *dim);
    return hlo_make_reshape(p, x, x->shape->rank + 1, dim);
}

/* [positions, own, positions of the last dimension, images], *more of them than
 * the window wants. */
static hlo_inst *image_of(hlo_at p, const hlo_conv *c, hlo_inst *x,
                          const gradient *g, int64_t *more)
{
    int n = c->nspatial, rank = n + 4;
    int64_t low[SD_MAX_RANK] = {0}, high[SD_MAX_RANK] = {0}, dim[SD_MAX_RANK],
            perm[SD_MAX_RANK], wide;

    x = in_groups(p, x, c->in_feature, c->in_spatial, c->in_batch, g);
    for (int i = 0; i < n; i++) {
        low[2 + i] = c->win[i].pad_low;
        high[2 + i] = c->win[i].pad_high;
    }
    wide = x->shape->dim[n + 1] + low[n + 1] + high[n + 1];
    *more = plan_round_up(wide, g->apart) - wide;
    high[n + 1] += *more;
    wide += *more;
    x = hlo_make_pad(p, x, hlo_make_scalar(p, x->shape->dtype, 0), low, high,
                     NULL);
    memcpy(dim, x->shape->dim, (size_t)(n + 1) * sizeof *dim);
    dim[n + 1] = wide / g->apart;
    dim[n + 2] = g->apart;
    dim[n + 3] = x->shape->dim[n + 2];
    x = hlo_make_reshape(p, x, rank, dim);
    /* groups, rows, own, phases, positions, images */
    perm[0] = 0;
    for (int i = 1; i < n; i++)
        perm[i] = 1 + i;
    perm[n] = n + 3;
    perm[n + 1] = n + 2;
    perm[n + 2] = n + 1;
    perm[n + 3] = 1;
    x = plan_copy_of(p, hlo_make_transpose(p, x, perm));
    /* rows, own, positions, phases, groups, images */
    for (int i = 0; i < n; i++)
        perm[i] = 1 + i;
    perm[n] = n + 2;
    perm[n + 1] = n + 1;
    perm[n + 2] = 0;
    perm[n + 3] = n + 3;
    x = hlo_make_transpose(p, x, perm);
    memcpy(dim, x->shape->dim, (size_t)n * sizeof *dim);
    dim[n] = wide;
    dim[n + 1] = g->images;
    return hlo_make_reshape(p, x, n + 2, dim);
}

/* [positions, images of a group, groups and own] */
static hlo_inst *window_of(hlo_at p, const hlo_conv *c, hlo_inst *y,
                           const gradient *g)
{
    int n = c->nspatial;
    int64_t dim[SD_MAX_RANK], perm[SD_MAX_RANK];

    y = in_groups(p, y, c->k_in, c->k_spatial, c->k_out, g);
    for (int i = 0; i < n; i++)
        perm[i] = 2 + i;
    perm[n] = 1;
    perm[n + 1] = 0;
    perm[n + 2] = n + 2;
    y = plan_copy_of(p, plan_turned(p, y, perm));
    memcpy(dim, y->shape->dim, (size_t)(n + 1) * sizeof *dim);
    dim[n + 1] = g->groups * y->shape->dim[n + 2];
    return hlo_make_reshape(p, y, n + 2, dim);
}

static hlo_dims first_dims(sd_arena *a, int n)
{
    int64_t at[SD_MAX_RANK];

    for (int i = 0; i < n; i++)
        at[i] = i;
    return hlo_dims_copy(a, at, n);
}

/* The sums [positions, own of x, own of y] of all groups. */
static hlo_inst *sums_of(hlo_inst *in, const gradient *g)
{
    hlo_at p = {in->parent, in, in};
    sd_arena *a = p.c->module->arena;
    const hlo_conv *was = in->u.conv;
    hlo_conv *c = sd_arena_copy(a, was, sizeof *c);
    int n = c->nspatial;
    sd_dtype t = sd_is_float(in->shape->dtype) ? SD_F32 : SD_S32;
    int64_t dim[SD_MAX_RANK], at[SD_MAX_RANK], more, over = n + 1;
    hlo_inst *arg[2], *sum;

    arg[0] = image_of(p, was, in->arg[0], g, &more);
    arg[1] = window_of(p, was, in->arg[1], g);
    c->win = sd_arena_copy(a, c->win, (size_t)n * sizeof *c->win);
    for (int i = 0; i < n; i++) {
        c->win[i].pad_low = 0;
        c->win[i].pad_high = i == n - 1 ? -more : 0;
        dim[i] = in->shape->dim[was->out_spatial.at[i]];
    }
    dim[n] = in->shape->dim[was->out_batch];
    dim[n + 1] = g->groups * in->shape->dim[was->out_feature];
    c->feature_groups = g->groups;
    c->out_spatial = c->k_spatial = first_dims(a, n);
    c->out_batch = c->k_in = n;
    c->out_feature = c->k_out = c->in_feature = n + 1;
    c->in_batch = n - 1;
    for (int i = 0; i < n; i++)
        at[i] = i + (i == n - 1);
    c->in_spatial = hlo_dims_copy(a, at, n);
    sum = hlo_inst_clone(in->parent, in, in, arg);
    sum->u.conv = c;
    sum->shape = sd_shape_make(a, t, n + 2, dim);
    if (g->groups == 1)
        return sum;
    dim[n + 1] = g->groups;
    dim[n + 2] = in->shape->dim[was->out_feature];
    return hlo_make_sum(p, hlo_make_reshape(p, sum, n + 3, dim), &over, 1);
}

static double bytes_of_gradient(const hlo_inst *in, const gradient *g)
{
    double sums = (double)(sd_shape_count(in->shape) * g->groups) * 4;

    return plan_copied_bytes(in->arg[0]) + plan_copied_bytes(in->arg[1]) +
           (g->groups > 1 ? 2 * sums : 0);
}

/* Of a window of one position it is a product. */
static bool has_one_place(const hlo_inst *in)
{
    const hlo_conv *c = in->u.conv;

    return sd_shape_count(in->shape) ==
           in->shape->dim[c->out_batch] * in->shape->dim[c->out_feature];
}

void plan_copy_gradient(hlo_inst *in, const device_desc *dev, bool all)
{
    hlo_at p = {in->parent, in, in};
    const hlo_conv *c = in->u.conv;
    int64_t from[SD_MAX_RANK], back[SD_MAX_RANK];
    hlo_inst *sum;
    gradient g;

    if (has_one_place(in) || !find_gradient(in, dev, &g) ||
        !(all || plan_copy_pays(in, dev, bytes_of_gradient(in, &g),
                                PLAN_WORK_OF_WOVEN)))
        return;
    sum = sums_of(in, &g);
    if (sum->shape->dtype != in->shape->dtype)
        sum = hlo_make_convert(p, in->shape->dtype, sum);
    plan_order_dims(from, c->out_batch, c->out_spatial, c->out_feature, true);
    for (int i = 0; i < in->shape->rank; i++)
        back[from[i]] = i;
    hlo_replace(in, plan_turned(p, sum, back));
    hlo_remove(in);
}
