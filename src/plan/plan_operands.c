/* Operands that a GPU's matrix engine takes from panels or blocks (ADR 25) and
 * that do not lie as it wants them.  Its loops are short where the terms of a
 * sum lie side by side: else items read single elements and weave them, which
 * takes ten times the instructions.  So where a product is long enough such an
 * operand is copied once, by a kernel of its own, and the product reads the
 * copy:
 *
 *   - an image whose features are not its last dimension (NCHW), and a window
 *     whose are nowhere last; a result whose are not is turned afterwards.
 *
 * A copy is an HLO copy, as in plan_alias.c: what comes before it is not fused
 * with what comes after, and it is no step.  Views that meet at a copy cancel:
 * between two convolutions NCHW there is one kernel at most. */
#include "plan_room.h"

enum {
    /* An engine does about 250 operations in the time of a byte, and a loop of
     * operands as it likes them is done in a third of the time or less. */
    WORK_OF_BYTE = 80,
    LAUNCH_WORK = 1 << 21, /* operations of a unit in the time of a launch */
    FEW_ROWS = 8 /* of an instruction */
};

/* ---- is it worth it? ---- */

static bool has_engine(const hlo_inst *in, const device_desc *dev)
{
    sd_dtype t = in->arg[0]->shape->dtype;

    for (int i = 0; i < PLAN_ENGINE_COUNT; i++) {
        const plan_engine_info *e = &plan_engine_table[i];

        if (e->panels && !(e->needs & ~dev->features) && e->part == t &&
            in->arg[1]->shape->dtype == t)
            return true;
    }
    return false;
}

/* An array that is copied is read and written. */
static double copied(const hlo_inst *x)
{
    return 2 * (double)sd_shape_bytes(x->shape);
}

static double work_of(const hlo_inst *in)
{
    int64_t extent[SD_MAX_RANK];
    double work = 2 * (double)sd_shape_count(in->shape);

    for (int i = plan_inner_extents(in, extent) - 1; i >= 0; i--)
        work *= (double)extent[i];
    return work;
}

static bool pays(const hlo_inst *in, const device_desc *dev, double bytes)
{
    double work = work_of(in);

    return work >= (double)LAUNCH_WORK * dev->units &&
           work >= WORK_OF_BYTE * bytes;
}

/* ---- copies ---- */

static bool is_same(const int64_t *perm, int n)
{
    for (int i = 0; i < n; i++)
        if (perm[i] != i)
            return false;
    return true;
}

static hlo_inst *turned(hlo_at p, hlo_inst *x, const int64_t *perm)
{
    return is_same(perm, x->shape->rank) ? x : hlo_make_transpose(p, x, perm);
}

/* The copy of x turned so that another product has asked for, or NULL. */
static hlo_inst *found_copy(const hlo_inst *x, const int64_t *perm)
{
    size_t bytes = (size_t)x->shape->rank * sizeof *perm;

    for (int i = 0; i < x->nuse; i++) {
        const hlo_inst *t = x->user[i];

        if (t->op == HLO_TRANSPOSE && memcmp(t->dims.at, perm, bytes) == 0 &&
            t->nuse == 1 && t->user[0]->op == HLO_COPY)
            return t->user[0];
    }
    return NULL;
}

static hlo_inst *copy_of(hlo_at p, hlo_inst *x)
{
    hlo_inst *copy = hlo_inst_create(p.c, p.before, HLO_COPY, x->shape, 1, &x);

    hlo_take_source(copy, p.like);
    return copy;
}

static hlo_inst *turned_copy(hlo_at p, hlo_inst *x, const int64_t *perm)
{
    hlo_inst *copy = found_copy(x, perm);

    return copy ? copy : copy_of(p, turned(p, x, perm));
}

/* ---- features last ---- */

typedef struct {
    int64_t x[SD_MAX_RANK], y[SD_MAX_RANK], sum[SD_MAX_RANK]; /* from where */
    bool copies_x, turns_y, copies_y, turns_sum;
} order;

/* Dimension a, those of `spatial` and b; or a before b. */
static void set_order(int64_t *to, int64_t a, hlo_dims spatial, int64_t b,
                      bool spatial_first)
{
    int n = 0;

    if (!spatial_first)
        to[n++] = a;
    for (int i = 0; i < spatial.n; i++)
        to[n++] = spatial.at[i];
    if (spatial_first)
        to[n++] = a;
    to[n] = b;
}

/* Do the features that are summed come after the positions of the window?  Then
 * they are the last axis of K. */
static bool is_behind(const hlo_conv *c)
{
    for (int i = 0; i < c->nspatial; i++)
        if (c->k_spatial.at[i] > c->k_in)
            return false;
    return true;
}

/* Rows of the engine's instructions are positions of the result's last
 * dimension but one: where an image has few, they are images. */
static order find_order(const hlo_inst *in)
{
    const hlo_conv *c = in->u.conv;
    const int64_t *dim = in->shape->dim;
    int64_t last = in->shape->rank - 1;
    bool few = dim[c->out_spatial.at[c->nspatial - 1]] < FEW_ROWS &&
               dim[c->out_batch] >= FEW_ROWS;
    order o = {.copies_x = c->in_feature != last,
               .turns_sum = c->out_feature != last,
               .turns_y =
                   !is_behind(c) || (c->k_in != last && c->k_out != last),
               .copies_y = c->k_in != last && c->k_out != last};

    if (!o.turns_sum)
        few = c->out_batch == last - 1;
    set_order(o.x, c->in_batch, c->in_spatial, c->in_feature, few);
    set_order(o.y, c->k_in, c->k_spatial, c->k_out, true);
    set_order(o.sum, c->out_batch, c->out_spatial, c->out_feature, few);
    return o;
}

/* Numbers of dimensions as they are behind `perm`. */
static int64_t place_in(const int64_t *perm, int64_t d)
{
    int64_t i = 0;

    while (perm[i] != d)
        i++;
    return i;
}

static hlo_dims places_in(sd_arena *a, const int64_t *perm, hlo_dims d)
{
    int64_t to[SD_MAX_RANK];

    for (int i = 0; i < d.n; i++)
        to[i] = place_in(perm, d.at[i]);
    return hlo_dims_copy(a, to, d.n);
}

static void turn_x(hlo_at p, hlo_conv *c, hlo_inst **x, const int64_t *perm)
{
    *x = turned_copy(p, *x, perm);
    c->in_batch = place_in(perm, c->in_batch);
    c->in_feature = place_in(perm, c->in_feature);
    c->in_spatial = places_in(p.c->module->arena, perm, c->in_spatial);
}

static void turn_y(hlo_at p, hlo_conv *c, hlo_inst **y, const order *o)
{
    *y = o->copies_y ? turned_copy(p, *y, o->y) : turned(p, *y, o->y);
    c->k_in = place_in(o->y, c->k_in);
    c->k_out = place_in(o->y, c->k_out);
    c->k_spatial = places_in(p.c->module->arena, o->y, c->k_spatial);
}

static const sd_shape *turn_sum(hlo_at p, hlo_conv *c, const sd_shape *s,
                                const int64_t *perm)
{
    int64_t dim[SD_MAX_RANK];

    for (int i = 0; i < s->rank; i++)
        dim[i] = s->dim[perm[i]];
    c->out_batch = place_in(perm, c->out_batch);
    c->out_feature = place_in(perm, c->out_feature);
    c->out_spatial = places_in(p.c->module->arena, perm, c->out_spatial);
    return sd_shape_make(p.c->module->arena, s->dtype, s->rank, dim);
}

/* One position that is not moved: a product, which has its own ways. */
static bool is_product(const hlo_conv *c)
{
    for (int i = 0; i < c->nspatial; i++)
        if (c->win[i].size > 1 || c->win[i].stride > 1 || c->win[i].pad_low ||
            c->win[i].pad_high)
            return false;
    return true;
}

/* Does the window have more positions than the result?  It is a gradient, whose
 * sums run over the image. */
static bool has_long_window(const hlo_inst *in)
{
    const hlo_conv *c = in->u.conv;
    double more = 1;

    for (int i = 0; i < c->nspatial; i++)
        more *= (double)c->win[i].size /
                (double)SD_MAX(in->shape->dim[c->out_spatial.at[i]], 1);
    return more > 1;
}

static double bytes_of(const hlo_inst *in, const order *o)
{
    return (o->copies_x ? copied(in->arg[0]) : 0) +
           (o->copies_y ? copied(in->arg[1]) : 0) +
           (o->turns_sum ? copied(in) : 0);
}

static void put_features_last(hlo_inst *in, const order *o)
{
    hlo_at p = {in->parent, in, in};
    hlo_conv *c = sd_arena_copy(p.c->module->arena, in->u.conv, sizeof *c);
    hlo_inst *arg[2] = {in->arg[0], in->arg[1]}, *sum;
    int64_t back[SD_MAX_RANK];

    if (o->copies_x)
        turn_x(p, c, &arg[0], o->x);
    if (o->turns_y)
        turn_y(p, c, &arg[1], o);
    sum = hlo_inst_clone(in->parent, in, in, arg);
    sum->u.conv = c;
    if (o->turns_sum)
        sum->shape = turn_sum(p, c, in->shape, o->sum);
    for (int i = 0; i < in->shape->rank; i++)
        back[o->sum[i]] = i;
    hlo_replace(in, o->turns_sum ? turned(p, sum, back) : sum);
    hlo_remove(in);
}

static void copy_image(hlo_inst *in, const device_desc *dev, bool all)
{
    order o = find_order(in);

    if (!is_product(in->u.conv) && in->u.conv->batch_groups == 1 &&
        !has_long_window(in) && (o.copies_x || o.turns_y || o.turns_sum) &&
        (all || pays(in, dev, bytes_of(in, &o))))
        put_features_last(in, &o);
}

void plan_copy_operands(hlo_module *m, const device_desc *dev, bool all)
{
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c)
            if (in->op == HLO_CONVOLUTION && has_engine(in, dev))
                copy_image(in, dev, all);
}
