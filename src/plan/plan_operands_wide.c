/* Operands of a wide engine (ADR 25) that do not lie as it reads them by
 * itself: in lines of 128 bytes that begin at 16, a number of them along the
 * sum.  Else items compute elements on their way to local memory, each as often
 * as there are tiles that need it: a product of 8192 x 768 x 2304 on an H200
 * takes 541 us where one operand is put together of three, and 65 where it is
 * copied before.
 *
 * An operand is a view of an array: reshapes, transposes and slices are
 * followed to it, and what is left is asked of its index.  It does not lie so
 * if it is put together (concatenates, pads, gathers), if memory has wider
 * numbers, or if a step along the sum is no one number, as of a [8192, 768]
 * that is [8, 768, 1024] in memory.  Copies serve all products that want the
 * same.
 *
 * What is not a multiple of a line is filled with zeros: the terms of a sum in
 * both operands, and the columns of one that lies across the sum, whose results
 * are cut off again. */
#include "plan_operands.h"

/* ---- does it lie so? ---- */

static const plan_expr *any_place(plan_viewer *v, const hlo_inst *in, int k,
                                  const plan_expr *const *index, int64_t hi)
{
    (void)in, (void)k, (void)index, (void)hi;
    return plan_px_const(v->px, 0); /* it moves the whole operand */
}

/* A value that is computed has a kernel that writes it as it is wanted. */
static bool is_computed(const hlo_inst *x)
{
    return hlo_is_elementwise(x) || plan_is_reducing(x);
}

static bool is_view(const hlo_inst *x)
{
    return x->op == HLO_RESHAPE || x->op == HLO_BITCAST ||
           x->op == HLO_TRANSPOSE || x->op == HLO_SLICE ||
           x->op == HLO_DYNAMIC_SLICE || x->op == HLO_BROADCAST;
}

/* What is computed is narrow in memory if it was rounded to that, as f8 is that
 * bf16 is made of. */
static bool is_put_together(const hlo_inst *x)
{
    const hlo_inst *from = x->op == HLO_CONVERT ? x->arg[0] : NULL;
    size_t bytes = sd_dtype_bytes(x->shape->dtype);

    while (from && (from->op == HLO_RESHAPE || from->op == HLO_BITCAST))
        from = from->arg[0];
    return x->op == HLO_CONCATENATE || x->op == HLO_PAD ||
           x->op == HLO_GATHER || x->op == HLO_REVERSE ||
           (from &&
            (!is_computed(from) || sd_dtype_bytes(from->shape->dtype) < bytes));
}

/* How far the place of position 1 of dimension d is from that of position 0. */
static int64_t first_step(plan_px *px, const plan_expr *off, int rank, int d)
{
    const plan_expr *at[SD_MAX_RANK];
    int64_t place[2];

    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < rank; k++)
            at[k] = plan_px_const(px, k == d ? i : 0);
        place[i] = plan_px_subst(px, off, at)->lo;
    }
    return place[1] - place[0];
}

/* Is x in memory so that each of the dimensions `steps`, a mask, moves a place
 * in it by one number, and one of them or `own` by 1? */
static bool lies_as_read(const hlo_inst *x, uint64_t steps, int own)
{
    sd_arena *a = sd_arena_create();
    plan_px *px = plan_px_create(a);
    plan_viewer viewer = {.px = px, .dynamic = any_place};
    const plan_expr *index[SD_MAX_RANK], *off;
    int rank = x->shape->rank;
    bool lies = true, along;

    for (int d = 0; d < rank; d++)
        index[d] = plan_px_axis(px, d, x->shape->dim[d]);
    for (; is_view(x); x = x->arg[0]) {
        plan_view v = {.nguard = 0};

        plan_view_of(&viewer, x, 0, 0, index, &v);
        memcpy(index, v.index, sizeof index);
    }
    off = plan_px_linear(px, x->shape->rank, x->shape->dim, index);
    along = first_step(px, off, rank, own) == 1;
    for (int d = 0; d < rank && lies; d++)
        if (steps >> d & 1) {
            int64_t step;

            lies = plan_expr_stride(off, d, &step);
            along |= step == 1;
        }
    sd_arena_destroy(a);
    return lies && along && !is_put_together(x);
}

/* ---- copies ---- */

/* The copy of x, padded or not, that another product asked for, or NULL. */
static hlo_inst *found_copy(const hlo_inst *x, const sd_shape *s)
{
    hlo_for_each_user(user, x) {
        if (user->op == HLO_PAD && user->nuse == 1)
            user = user->user[0];
        if (user->op == HLO_COPY && sd_shape_equal(user->shape, s))
            return user;
    }
    return NULL;
}

/* A copy of x whose dimensions have so many elements, the last ones zeros. */
static hlo_inst *filled_copy(hlo_at p, hlo_inst *x, const int64_t *dim)
{
    const sd_shape *s =
        sd_shape_make(p.c->module->arena, x->shape->dtype, x->shape->rank, dim);
    int64_t none[SD_MAX_RANK] = {0}, more[SD_MAX_RANK];
    hlo_inst *copy = found_copy(x, s);

    if (copy)
        return copy;
    for (int d = 0; d < s->rank; d++)
        more[d] = dim[d] - x->shape->dim[d];
    if (!sd_shape_same_dims(s, x->shape))
        x = hlo_make_pad(p, x, hlo_make_scalar(p, s->dtype, 0), none, more,
                         NULL);
    return plan_copy_of(p, x);
}

static int64_t step_of(const hlo_inst *in)
{
    return PLAN_LINE / (int64_t)sd_dtype_bytes(in->arg[0]->shape->dtype);
}

/* ---- products ---- */

typedef struct {
    hlo_inst *x;
    int own, deep;
    int64_t dim[SD_MAX_RANK]; /* as it is to be */
    bool copied, filled; /* filled: along `own` */
} side;

/* Is it a result of the program, as it is or a function of it? */
static bool is_given_out(const hlo_inst *in)
{
    while (in->nuse == 1 &&
           (in->user[0]->op == HLO_RESHAPE || hlo_is_elementwise(in->user[0])))
        in = in->user[0];
    return in->nuse == 0 || (in->nuse == 1 && in->user[0]->op == HLO_TUPLE);
}

/* Columns are filled up for those who read the result, too. */
static side side_of(const hlo_inst *in, int i, const device_desc *dev)
{
    const hlo_dot *d = in->u.dot;
    side s = {.x = in->arg[i],
              .deep = (int)(i ? d->rhs_contract : d->lhs_contract).at[0]};
    const sd_shape *of = s.x->shape;
    int64_t each = (int64_t)sd_dtype_bytes(of->dtype),
            result = (int64_t)sd_dtype_bytes(in->shape->dtype);

    for (int k = 0; k < of->rank; k++) {
        s.dim[k] = of->dim[k];
        if (k != s.deep && !hlo_dims_hold(i ? d->rhs_batch : d->lhs_batch, k))
            s.own = k;
    }
    s.dim[s.deep] = plan_round_up(s.dim[s.deep], step_of(in));
    s.filled =
        (s.own == of->rank - 1 && of->dim[s.own] * each % dev->access) ||
        (i == 1 && of->dim[s.own] * result % dev->access && !is_given_out(in));
    if (s.filled)
        s.dim[s.own] = plan_round_up(s.dim[s.own], step_of(in));
    s.copied = s.filled || s.dim[s.deep] != of->dim[s.deep] ||
               !lies_as_read(s.x, 1ull << s.deep, s.own);
    return s;
}

/* x, or a result that has more rows and columns than are wanted. */
static hlo_inst *cut_to(hlo_at p, hlo_inst *x, const sd_shape *s)
{
    if (sd_shape_same_dims(x->shape, s))
        return x;
    x = plan_copy_of(p, x); /* a product that is cut is none in blocks */
    for (int d = 0; d < s->rank; d++)
        x = hlo_make_cut(p, x, d, 0, s->dim[d]);
    return x;
}

static void copy_dot(hlo_inst *in, const device_desc *dev, bool all)
{
    hlo_at p = {in->parent, in, in};
    side s[2] = {side_of(in, 0, dev), side_of(in, 1, dev)};
    double bytes = s[0].filled || s[1].filled ? plan_copied_bytes(in) : 0;
    hlo_inst *x[2], *to;

    for (int i = 0; i < 2; i++)
        bytes += s[i].copied ? plan_copied_bytes(s[i].x) : 0;
    if (bytes == 0 ||
        !(all || plan_copy_pays(in, dev, bytes, PLAN_WORK_OF_WIDE)))
        return;
    for (int i = 0; i < 2; i++)
        x[i] = s[i].copied ? filled_copy(p, s[i].x, s[i].dim) : s[i].x;
    to = hlo_make_dot(p, x[0], x[1], in->shape->dtype, in->u.dot);
    hlo_replace(in, cut_to(p, to, in->shape));
    hlo_remove(in);
}

/* ---- convolutions ---- */

static uint64_t mask_of(hlo_dims spatial, int64_t d)
{
    uint64_t m = 1ull << d;

    for (int i = 0; i < spatial.n; i++)
        m |= 1ull << spatial.at[i];
    return m;
}

static void copy_conv(hlo_inst *in, const device_desc *dev, bool all)
{
    const hlo_conv *c = in->u.conv;
    hlo_at p = {in->parent, in, in};
    uint64_t steps[2] = {mask_of(c->in_spatial, c->in_feature),
                         mask_of(c->k_spatial, c->k_in)};
    int own[2] = {(int)c->in_feature, (int)c->k_out};

    if (plan_has_long_window(in) && plan_copy_wide_gradient(in, dev, all))
        return;
    if (plan_copy_rows_for_wide(in, dev, all) ||
        in->arg[1]->shape->dim[c->k_in] % step_of(in))
        return;
    for (int i = 0; i < 2; i++) {
        hlo_inst *x = in->arg[i];

        if (!lies_as_read(x, steps[i], own[i]) &&
            (all ||
             plan_copy_pays(in, dev, plan_copied_bytes(x), PLAN_WORK_OF_WIDE)))
            hlo_set_arg(in, i, filled_copy(p, x, x->shape->dim));
    }
}

/* ---- which products ---- */

/* Those that fill half of the units with large tiles. */
bool plan_is_for_wide(const hlo_inst *in, const device_desc *dev)
{
    sd_dtype t = in->arg[0]->shape->dtype;

    if (in->arg[1]->shape->dtype != t || (t == SD_F32 && !hlo_may_round(in)) ||
        !device_fills_wide(dev, (double)sd_shape_count(in->shape)))
        return false;
    for (int i = 0; i < PLAN_ENGINE_COUNT; i++) {
        const plan_engine_info *e = &plan_engine_table[i];

        if (e->several && e->part == t && !(e->needs & ~dev->features))
            return true;
    }
    return false;
}

void plan_copy_for_wide(hlo_inst *in, const device_desc *dev, bool all)
{
    if (in->op == HLO_CONVOLUTION)
        copy_conv(in, dev, all);
    else
        copy_dot(in, dev, all);
}
