/* Operands that a GPU's matrix engine takes from panels or blocks (ADR 25) and
 * that do not lie as it wants them.  Its loops are short where the terms of a
 * sum lie side by side, in rows that begin at even places: else items read
 * single elements and weave them, which takes ten times the instructions.  So
 * where a product is long enough such an operand is copied once, by a kernel of
 * its own, and the product reads the copy:
 *
 *   - an image whose features are not its last dimension (NCHW), and a window
 *     whose are nowhere last; a result whose are not is turned afterwards;
 *   - an image of few features, as rows of the window;
 *   - both operands of a window's gradient, whose features are the images;
 *   - of a dot operands whose rows begin at odd places.
 *
 * A copy is an HLO copy, as in plan_alias.c: what comes before it is not fused
 * with what comes after, and it is no step.  Views that meet at a copy cancel:
 * between two convolutions NCHW there is one kernel at most. */
#include "plan_operands.h"

enum {
    LAUNCH_WORK = 1 << 21, /* operations of a unit in the time of a launch */
    BLOCK_BYTES = 8 /* rows are a multiple of so many for messages that read
                       blocks */
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
double plan_copied_bytes(const hlo_inst *x)
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

bool plan_copy_pays(const hlo_inst *in, const device_desc *dev, double bytes,
                    int work_of_byte)
{
    double work = work_of(in);

    return work >= (double)LAUNCH_WORK * dev->units &&
           work >= work_of_byte * bytes;
}

/* ---- copies ---- */

static bool is_same(const int64_t *perm, int n)
{
    for (int i = 0; i < n; i++)
        if (perm[i] != i)
            return false;
    return true;
}

hlo_inst *plan_turned(hlo_at p, hlo_inst *x, const int64_t *perm)
{
    return is_same(perm, x->shape->rank) ? x : hlo_make_transpose(p, x, perm);
}

/* The copy of x turned so that another product has asked for, or NULL. */
static hlo_inst *found_copy(const hlo_inst *x, const int64_t *perm)
{
    size_t bytes = (size_t)x->shape->rank * sizeof *perm;

    hlo_for_each_user(t, x) {
        if (t->op == HLO_TRANSPOSE && memcmp(t->dims.at, perm, bytes) == 0 &&
            t->nuse == 1 && t->user[0]->op == HLO_COPY)
            return t->user[0];
    }
    return NULL;
}

hlo_inst *plan_copy_of(hlo_at p, hlo_inst *x)
{
    hlo_inst *copy = hlo_inst_create(p.c, p.before, HLO_COPY, x->shape, 1, &x);

    hlo_take_source(copy, p.like);
    return copy;
}

hlo_inst *plan_turned_copy(hlo_at p, hlo_inst *x, const int64_t *perm)
{
    hlo_inst *copy = found_copy(x, perm);

    return copy ? copy : plan_copy_of(p, plan_turned(p, x, perm));
}

/* ---- dimensions ---- */

void plan_order_dims(int64_t *to, int64_t a, hlo_dims spatial, int64_t b,
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

hlo_inst *plan_padded(hlo_at p, hlo_inst *x, int d, int64_t n)
{
    return hlo_make_pad_dim(p, x, NULL, d, 0, n - x->shape->dim[d]);
}

/* n elements as whole rows. */
static int64_t full_rows(int64_t n, sd_dtype t)
{
    return plan_round_up(n, PLAN_ROW_BYTES / (int64_t)sd_dtype_bytes(t));
}

/* ---- rows that begin at odd places ---- */

/* An operand of a dot, which has one dimension of its own and one that is
 * summed. */
typedef struct {
    hlo_inst *x;
    hlo_dims batch;
    int64_t own, deep;
    bool odd; /* its rows are no multiple of what an access is */
    bool copied;
} side;

static side side_of(hlo_inst *x, hlo_dims batch, hlo_dims deep,
                    const device_desc *dev)
{
    const sd_shape *s = x->shape;
    int64_t row = s->dim[s->rank - 1] * (int64_t)sd_dtype_bytes(s->dtype);
    side of = {.x = x, .batch = batch, .deep = deep.at[0]};

    for (int d = 0; d < s->rank; d++)
        if (d != of.deep && !hlo_dims_hold(batch, d))
            of.own = d;
    of.odd = row % (dev->features & DEVICE_HAS_BLOCK2D ? BLOCK_BYTES
                                                       : dev->access) !=
             0;
    of.copied = of.odd;
    return of;
}

static bool lies_deep(const side *s)
{
    return s->deep == s->x->shape->rank - 1;
}

/* A copy with k terms, the last ones zeros, which lie side by side unless its
 * rows are its own dimension and not odd. */
static void even(hlo_at p, side *s, int64_t k)
{
    int64_t perm[SD_MAX_RANK], at[SD_MAX_RANK];
    int n = s->batch.n;
    bool across = !lies_deep(s) && !s->odd;

    for (int i = 0; i < n; i++) {
        perm[i] = s->batch.at[i];
        at[i] = i;
    }
    perm[n + across] = s->own;
    perm[n + !across] = s->deep;
    s->x = plan_copy_of(
        p, plan_padded(p, plan_turned(p, s->x, perm), n + !across, k));
    s->batch = hlo_dims_copy(p.c->module->arena, at, n);
    s->deep = n + !across;
}

static void copy_rows(hlo_inst *in, const device_desc *dev, bool all)
{
    hlo_at p = {in->parent, in, in};
    hlo_dot d = *in->u.dot;
    side s[2] = {side_of(in->arg[0], d.lhs_batch, d.lhs_contract, dev),
                 side_of(in->arg[1], d.rhs_batch, d.rhs_contract, dev)};
    int64_t k = s[0].x->shape->dim[s[0].deep];
    double bytes = 0;

    if ((s[0].odd && lies_deep(&s[0])) || (s[1].odd && lies_deep(&s[1]))) {
        k = full_rows(k, s[0].x->shape->dtype);
        s[0].copied = s[1].copied = true;
    }
    for (int i = 0; i < 2; i++)
        bytes += s[i].copied ? plan_copied_bytes(s[i].x) : 0;
    if (bytes == 0 ||
        !(all || plan_copy_pays(in, dev, bytes, PLAN_WORK_OF_ODD)))
        return;
    for (int i = 0; i < 2; i++)
        if (s[i].copied)
            even(p, &s[i], k);
    d.lhs_batch = s[0].batch;
    d.rhs_batch = s[1].batch;
    d.lhs_contract = hlo_dims_copy(p.c->module->arena, &s[0].deep, 1);
    d.rhs_contract = hlo_dims_copy(p.c->module->arena, &s[1].deep, 1);
    hlo_replace(in, hlo_make_dot(p, s[0].x, s[1].x, in->shape->dtype, &d));
    hlo_remove(in);
}

/* One dimension of each kind, as nearly all have after lower-dot. */
static bool is_plain(const hlo_inst *in)
{
    const hlo_dot *d = in->u.dot;

    return d->lhs_contract.n == 1 &&
           in->arg[0]->shape->rank == d->lhs_batch.n + 2 &&
           in->arg[1]->shape->rank == d->rhs_batch.n + 2;
}

void plan_copy_operands(hlo_module *m, const device_desc *dev, bool all)
{
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            if (in->op != HLO_CONVOLUTION &&
                !(in->op == HLO_DOT && is_plain(in)))
                continue;
            if (plan_is_for_wide(in, dev))
                plan_copy_for_wide(in, dev, all);
            else if (has_engine(in, dev) && in->op == HLO_DOT)
                copy_rows(in, dev, all);
            else if (has_engine(in, dev))
                plan_copy_image(in, dev, all);
        }
}
