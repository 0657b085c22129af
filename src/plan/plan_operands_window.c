/* The gradient of a window for a GPU's matrix engine (plan_operands.c): sums
 * over all positions of all images.  In the copies the images of one position
 * lie side by side, then the next position's, a row of the image after the
 * other, framed by the window's zeros; where the window has holes (of a stride)
 * the positions between them are rows of their own.  There are few such sums:
 * they are taken in `groups` of images, as a convolution in groups of features
 * is, and added.
 *
 * Of a wide engine (wgmma) the pass split-products has made these groups.  Its
 * lines are read by themselves where they have no guards and divide a row, so
 * rows of the window get zeros behind them.  What meets these must be 0, too:
 * an infinity of the image would make NaN of it.  Each position along a row of
 * the result then has its own copy of the image's rows, cut and filled
 * likewise. Lines lie along the sum, or, of 16 bits, across it, which copies
 * nothing to another place of a line. */
#include "plan_operands.h"

enum { FEW_IMAGES = 32 };

typedef struct {
    int64_t images, groups, apart; /* apart: of the window's positions */
    int64_t row; /* positions of a row of the window, with zeros behind it */
    bool wide, across; /* across: lines of the copies lie across the sum */
    bool filled;       /* there are such zeros */
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
                    .apart = c->win[c->nspatial - 1].window_dilation,
                    .row = c->win[c->nspatial - 1].size};
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

/* Dimensions of an array in some order. */
typedef struct {
    int64_t at[SD_MAX_RANK];
    int n;
} order;

static void add(order *o, int64_t d)
{
    o->at[o->n++] = d;
}

/* The order `to` of an array that has the order `is`. */
static hlo_inst *ordered(hlo_at p, hlo_inst *x, const order *is,
                         const order *to)
{
    int64_t perm[SD_MAX_RANK] = {0};

    for (int i = 0; i < to->n; i++)
        for (int j = 0; j < is->n; j++)
            if (is->at[j] == to->at[i])
                perm[i] = j;
    return plan_turned(p, x, perm);
}

/* A copy of x, in memory in the order `lies`, as the array of order `want`.
 * Few images along the sum have two copies: the first one moves whole lines, of
 * x's last dimension, and the second is a transpose of matrices (f32 on an
 * H200, 32 images of 28 x 28 x 128 by fours: one copy 70 us, two 19 each). */
static hlo_inst *written(hlo_at p, hlo_inst *x, const gradient *g,
                         const order *lies, const order *want)
{
    int last = x->shape->rank - 1;
    order is = {0}, first = {0};

    for (int d = 0; d <= last; d++) {
        add(&is, d);
        if (lies->at[d] != last)
            add(&first, lies->at[d]);
    }
    add(&first, last);
    if (g->wide && !g->across && g->images / g->groups < FEW_IMAGES) {
        x = plan_copy_of(p, ordered(p, x, &is, &first));
        is = first;
    }
    x = plan_copy_of(p, ordered(p, x, &is, lies));
    return ordered(p, x, lies, want);
}

/* [groups, images, positions, own] of the image, with the window's zeros around
 * it. */
static hlo_inst *framed(hlo_inst *in, const gradient *g)
{
    hlo_at p = {in->parent, in, in};
    const hlo_conv *c = in->u.conv;
    int64_t low[SD_MAX_RANK] = {0}, high[SD_MAX_RANK] = {0};
    hlo_inst *x =
        in_groups(p, in->arg[0], c->in_feature, c->in_spatial, c->in_batch, g);

    for (int i = 0; i < c->nspatial; i++) {
        low[2 + i] = c->win[i].pad_low;
        high[2 + i] = c->win[i].pad_high;
    }
    return hlo_make_pad(p, x, hlo_make_scalar(p, x->shape->dtype, 0), low, high,
                        NULL);
}

/* [positions, own, positions of the last dimension, images], *more of them than
 * the window wants. */
static hlo_inst *image_of(hlo_inst *in, const gradient *g, int64_t *more)
{
    hlo_at p = {in->parent, in, in};
    hlo_inst *x = framed(in, g);
    int n = in->u.conv->nspatial, last = n + 1, phases = n + 2, own = n + 3;
    int64_t wide = plan_round_up(x->shape->dim[last], g->apart);
    order lies = {0}, want = {0};

    *more = wide - x->shape->dim[last];
    x = hlo_make_split(p, plan_padded(p, x, last, wide), last, wide / g->apart,
                       g->apart);
    add(&lies, 0);
    for (int d = 2; d < last; d++) {
        add(&lies, d);
        add(&want, d);
    }
    if (!g->across)
        add(&lies, own);
    add(&lies, phases);
    add(&lies, last);
    add(&lies, 1);
    if (g->across)
        add(&lies, own);
    add(&want, own);
    add(&want, last);
    add(&want, phases);
    add(&want, 0);
    add(&want, 1);
    x = written(p, x, g, &lies, &want);
    return hlo_make_join(p, hlo_make_join(p, x, n + 2), n);
}

/* Of [groups, images, positions, own] those rows, filled, that each position of
 * the result's last dimension asks for: [groups, images, positions but the
 * last, places, row, own]. */
static hlo_inst *rows_of_places(hlo_inst *in, hlo_inst *x, const gradient *g)
{
    hlo_at p = {in->parent, in, in};
    const hlo_conv *c = in->u.conv;
    const hlo_window_dim *w = &c->win[c->nspatial - 1];
    int last = c->nspatial + 1, row = last + 2;

    x = hlo_make_moved(p, x, last, last + 1);
    x = plan_pieces(p, x, in->shape->dim[c->out_spatial.at[c->nspatial - 1]],
                    w->stride, (w->size - 1) * g->apart + 1);
    x = hlo_make_split(p, plan_padded(p, x, row, w->size * g->apart), row,
                       w->size, g->apart);
    x = hlo_make_join(p, hlo_make_cut(p, x, row + 1, 0, 1), row);
    return hlo_make_moved(p, plan_padded(p, x, row, g->row), last, row);
}

/* [positions but the last, places and own, row, images] */
static hlo_inst *image_in_places(hlo_inst *in, const gradient *g)
{
    hlo_at p = {in->parent, in, in};
    hlo_inst *x = rows_of_places(in, framed(in, g), g);
    int n = in->u.conv->nspatial, places = n + 1, row = n + 2, own = n + 3;
    order lies = {0}, want = {0};

    add(&lies, 0);
    for (int d = 2; d < places; d++) {
        add(&lies, d);
        add(&want, d);
    }
    add(&lies, g->across ? row : places);
    add(&lies, g->across ? 1 : own);
    add(&lies, g->across ? places : row);
    add(&lies, g->across ? own : 1);
    add(&want, places);
    add(&want, own);
    add(&want, row);
    add(&want, 0);
    add(&want, 1);
    x = written(p, x, g, &lies, &want);
    return hlo_make_join(p, hlo_make_join(p, x, n + 2), n - 1);
}

/* [positions, images of a group, groups and own] of y, which has all images. */
static hlo_inst *window_of(hlo_inst *in, hlo_inst *y, const gradient *g)
{
    hlo_at p = {in->parent, in, in};
    const hlo_conv *c = in->u.conv;
    int n = c->nspatial, own = n + 2;
    order lies = {0}, want = {0};

    y = in_groups(p, y, c->k_in, c->k_spatial, c->k_out, g);
    y = plan_padded(p, y, n + 1, g->row);
    if (g->wide)
        add(&lies, 0);
    if (g->wide && !g->across)
        add(&lies, own);
    for (int d = 2; d < own; d++) {
        add(&lies, d);
        add(&want, d);
    }
    add(&lies, 1);
    if (!g->wide)
        add(&lies, 0);
    if (!g->wide || g->across)
        add(&lies, own);
    add(&want, 1);
    add(&want, 0);
    add(&want, own);
    return hlo_make_join(p, written(p, y, g, &lies, &want), n + 1);
}

static hlo_dims first_dims(sd_arena *a, int n)
{
    int64_t at[SD_MAX_RANK];

    for (int i = 0; i < n; i++)
        at[i] = i;
    return hlo_dims_copy(a, at, n);
}

/* [positions, own, ...] of sums [positions but the last, 1, places and own,
 * ...] */
static hlo_inst *in_places(hlo_inst *in, hlo_inst *sum)
{
    hlo_at p = {in->parent, in, in};
    const hlo_conv *c = in->u.conv;
    int n = c->nspatial;

    sum = hlo_make_split(p, sum, n, in->shape->dim[c->out_spatial.at[n - 1]],
                         in->shape->dim[c->out_batch]);
    return hlo_make_join(p, sum, n - 1);
}

/* The sums [positions, own of x, groups and own of y], y having all images. */
static hlo_inst *sums_of(hlo_inst *in, hlo_inst *y, const gradient *g)
{
    sd_arena *a = in->parent->module->arena;
    const hlo_conv *was = in->u.conv;
    hlo_conv *c = sd_arena_copy(a, was, sizeof *c);
    int n = c->nspatial;
    sd_dtype t = sd_is_float(in->shape->dtype) ? SD_F32 : SD_S32;
    int64_t dim[SD_MAX_RANK], at[SD_MAX_RANK], more = 0;
    hlo_inst *arg[2], *sum;

    arg[0] = g->filled ? image_in_places(in, g) : image_of(in, g, &more);
    arg[1] = window_of(in, y, g);
    c->win = sd_arena_copy(a, c->win, (size_t)n * sizeof *c->win);
    for (int i = 0; i < n; i++) {
        c->win[i].pad_low = 0;
        c->win[i].pad_high = i == n - 1 ? -more : 0;
        dim[i] = in->shape->dim[was->out_spatial.at[i]];
    }
    dim[n] = in->shape->dim[was->out_batch];
    if (g->filled) {
        c->win[n - 1] = (hlo_window_dim){.size = g->row,
                                         .stride = 1,
                                         .base_dilation = 1,
                                         .window_dilation = 1};
        dim[n] *= dim[n - 1];
        dim[n - 1] = 1;
    }
    dim[n + 1] = g->groups * y->shape->dim[was->k_out];
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
    return g->filled ? in_places(in, sum) : sum;
}

static hlo_inst *added(hlo_at p, hlo_inst *sum, int64_t groups)
{
    int last = sum->shape->rank - 1;
    int64_t over = last;

    if (groups == 1)
        return sum;
    return hlo_make_sum(
        p, hlo_make_split(p, sum, last, groups, sum->shape->dim[last] / groups),
        &over, 1);
}

static void put_back(hlo_inst *in, hlo_inst *sum)
{
    hlo_at p = {in->parent, in, in};
    const hlo_conv *c = in->u.conv;
    int64_t from[SD_MAX_RANK], back[SD_MAX_RANK];

    if (sum->shape->dtype != in->shape->dtype)
        sum = hlo_make_convert(p, in->shape->dtype, sum);
    plan_order_dims(from, c->out_batch, c->out_spatial, c->out_feature, true);
    for (int i = 0; i < in->shape->rank; i++)
        back[from[i]] = i;
    hlo_replace(in, plan_turned(p, sum, back));
    hlo_remove(in);
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
    gradient g;

    if (!has_one_place(in) && find_gradient(in, dev, &g) &&
        (all || plan_copy_pays(in, dev, bytes_of_gradient(in, &g),
                               PLAN_WORK_OF_WOVEN)))
        put_back(in, added(p, sums_of(in, in->arg[1], &g), g.groups));
}

/* ---- of a wide engine ---- */

/* Lines of 16 bits lie across the sum where features fill accesses, others
 * along it, where the images of a group do. */
static bool find_wide_gradient(const hlo_inst *in, const device_desc *dev,
                               gradient *g)
{
    const hlo_conv *c = in->u.conv;
    const hlo_inst *x = in->arg[0], *y = in->arg[1];
    int64_t bytes = (int64_t)sd_dtype_bytes(x->shape->dtype),
            each = y->shape->dim[c->k_in],
            own = y->shape->dim[c->k_out] / c->feature_groups,
            line = PLAN_LINE / bytes;
    const hlo_window_dim *w = &c->win[c->nspatial - 1];

    *g = (gradient){.images = each * c->feature_groups,
                    .groups = c->feature_groups,
                    .apart = w->window_dilation,
                    .row = device_wide_row(w->size, each, line),
                    .wide = true,
                    .across = bytes == 2};
    for (int i = 0; i < c->nspatial; i++)
        if (c->win[i].base_dilation > 1 || c->win[i].reversal)
            return false;
    g->filled = g->row > w->size;
    return g->row && c->batch_groups == 1 && c->nspatial + 5 <= SD_MAX_RANK &&
           x->shape->dim[c->in_feature] > 1 &&
           (bytes == 2
                ? x->shape->dim[c->in_batch] * bytes % dev->access == 0 &&
                      own * bytes % dev->access == 0
                : each * bytes % dev->access == 0);
}

bool plan_copy_wide_gradient(hlo_inst *in, const device_desc *dev, bool all)
{
    hlo_at p = {in->parent, in, in};
    const hlo_conv *c = in->u.conv;
    gradient g;

    if (has_one_place(in) || !find_wide_gradient(in, dev, &g) ||
        !(all || plan_copy_pays(in, dev,
                                plan_copied_bytes(in->arg[0]) +
                                    plan_copied_bytes(in->arg[1]),
                                PLAN_WORK_OF_WOVEN)))
        return false;
    put_back(in, sums_of(in,
                         hlo_make_parts_along(p, in->arg[1], c->k_out, g.groups,
                                              c->k_in),
                         &g));
    return true;
}
