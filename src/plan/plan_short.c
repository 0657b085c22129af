/* Axes too short for LANE.  A vector along the three channels of an image, or
 * along two coordinates, is mostly empty.  Where such an axis is the last of a
 * kernel and cannot be joined with the one before (x - mean of each channel, an
 * image reversed along its rows), there are two ways:
 *
 *   - Where a vector is a whole number of its rows, it is joined all the same,
 *     if each vector of it reads one vector of memory in an order that is
 *     always the same (plan_expr_ordered).
 *   - Else each of its positions becomes nodes of its own, and LANE is the axis
 *     before: a strand reads and computes for one channel, and the stores of
 *     all are woven into whole vectors (emit_strided.c).
 *
 * Strands, too, are for such an axis further out, where what is read has it
 * last: channels that are put apart. */
#include "plan_lower.h"
#include "plan_mapping.h"

enum {
    MOST_SHORT = 4,    /* positions that become nodes; */
    MOST_MOVED = 8,    /* where all is only put in another order, or joined */
    LEAST_BESIDE = 16, /* of the axis that LANE is then */
    MOST_NODES = 256,  /* of the kernel that comes out */
    GATHERED_BYTES = 4, /* the least that an instruction gathers */
    MOST_ASKED = 200   /* terms of an expression that is looked through */
};

typedef struct {
    plan_kernel *k;
    plan_px *px;
    int axis, n; /* which, and its positions */
    plan_node **of; /* [node * n + position]: what computes it there */
    sd_vec(plan_node *) made;
} shorter;

/* Does e read a node that is another one at each position?  Yes, too, where e
 * is too long to be looked through. */
static bool reads_node(const plan_expr *e, int axis)
{
    if (!(e->varies >> axis & 1))
        return false;
    return e->kind == PX_NODE || e->size > MOST_ASKED ||
           (e->a && reads_node(e->a, axis)) || (e->b && reads_node(e->b, axis));
}

/* Is n as easily computed at one position as at all? */
static bool is_plain(const plan_node *n, int axis)
{
    if (n->kind != PN_LOAD && n->kind != PN_STORE && n->kind != PN_ELT &&
        n->kind != PN_CONST && n->kind != PN_INDEX)
        return false;
    for (int i = 0; i < n->nguard; i++)
        if (reads_node(n->guard[i].e, axis))
            return false;
    return !n->off || !reads_node(n->off, axis);
}

/* Has e rows of n positions, side by side in either order? */
static bool has_rows(const plan_expr *e, int axis, int64_t n)
{
    int64_t step, before;

    return plan_expr_stride(e, axis, &step) && (step == 1 || step == -1) &&
           plan_expr_stride(e, axis - 1, &before) &&
           (before == n || before == -n);
}

/* Are bytes only put in another order, within rows and by rows?  emit_move does
 * that for any number of them.  Without AVX-512 words of five and more are
 * moved as fast one row after the other. */
static bool only_moves(const plan_kernel *k, int axis)
{
    plan_for_each_node(n, k)
        if ((n->kind != PN_LOAD && n->kind != PN_STORE) || n->nguard ||
            sd_dtype_bytes(n->dtype) != 1 ||
            !has_rows(n->off, axis, k->axis[axis].extent))
            return false;
    return true;
}

/* Do the stores at all positions fill what lies between two of the axis before?
 */
static bool is_filled(const plan_kernel *k, const plan_node *store, int axis)
{
    int64_t n = k->axis[axis].extent, step, before;
    int parts = sd_is_complex(store->dtype) ? 2 : 1;

    return plan_expr_stride(store->off, axis, &step) && step == 1 &&
           plan_expr_stride(store->off, axis - 1, &before) && before == n &&
           (n == 3 ? parts == 1 : plan_is_turn(n) || only_moves(k, axis));
}

static bool computes(const plan_kernel *k)
{
    plan_for_each_node(n, k)
        if (n->kind != PN_LOAD && n->kind != PN_STORE)
            return true;
    return false;
}

/* Is n a row that lies by itself?  It is as soon read at once as each of its
 * numbers: four that the axis before picks, and of words that no instruction
 * gathers three, too, and those of a column, if nothing is computed and no
 * vector has several of them. */
static bool is_alone(const plan_kernel *k, const plan_node *n, int axis)
{
    int64_t row = k->axis[axis].extent, step;
    bool narrow = sd_dtype_bytes(n->dtype) < GATHERED_BYTES;

    if (n->kind != PN_LOAD || !plan_expr_stride(n->off, axis, &step) ||
        step != 1 || row < MOST_SHORT - narrow)
        return false;
    if (reads_node(n->off, axis - 1))
        return true;
    return narrow && !computes(k) &&
           plan_expr_stride(n->off, axis - 1, &step) &&
           (step > 2 * row || step < -2 * row);
}

/* Do its positions fill a vector register? */
static bool is_vector(const plan_kernel *k, const plan_node *n, int axis,
                      const device_desc *dev)
{
    int64_t bytes = (int64_t)sd_dtype_bytes(sd_dtype_part(n->dtype));

    return (n->kind == PN_LOAD || n->kind == PN_STORE) &&
           k->axis[axis].extent * bytes >= 4 * (int64_t)dev->lanes;
}

static bool has_short(const plan_kernel *k)
{
    int axis = k->naxis - 1;

    return k->cls == PLAN_LOOP && k->naxis == k->nouter && k->naxis > 1 &&
           k->nstage == 1 && k->axis[axis].extent > 1 &&
           k->axis[axis - 1].extent >= LEAST_BESIDE &&
           k->axis[axis].extent <= MOST_MOVED;
}

/* ---- joined ---- */

/* Places of n where the last two axes are one. */
static void place_joined(plan_kernel *k, plan_px *px, plan_node *n)
{
    const plan_expr *with[64], *both;
    int axis = k->naxis - 1;
    int64_t row = k->axis[axis].extent;

    for (int i = 0; i < axis - 1; i++)
        with[i] = plan_px_axis(px, i, k->axis[i].extent);
    both = plan_px_axis(px, axis - 1, k->axis[axis - 1].extent * row);
    with[axis - 1] = plan_px_div(px, both, row);
    with[axis] = plan_px_mod(px, both, row);
    plan_place_node(k, px, n, with);
}

/* Does a vector of both axes read or write one of memory? */
static bool is_joined(plan_kernel *k, plan_px *px, const plan_node *n,
                      int lanes)
{
    int axis = k->naxis - 1;
    uint64_t both = 1ull << axis | 1ull << (axis - 1);
    plan_node x = *n;
    plan_ordered s;
    int64_t step;

    for (int i = 0; i < n->nguard; i++)
        if (n->guard[i].e->varies & both)
            return false;
    if (!n->off || !(n->off->varies & both))
        return true;
    if (reads_node(n->off, axis) || reads_node(n->off, axis - 1))
        return false;
    place_joined(k, px, &x);
    if (n->kind == PN_STORE)
        return plan_expr_stride(x.off, axis - 1, &step) && step == 1;
    return n->kind == PN_LOAD && !sd_is_complex(n->dtype) &&
           plan_expr_ordered(x.off, axis - 1, k->axis[axis].extent, lanes, &s);
}

/* Rows of five and more only where they leave half of a register empty. */
static bool can_join(plan_kernel *k, plan_px *px, const device_desc *dev)
{
    int axis = k->naxis - 1;
    int64_t row = k->axis[axis].extent;

    if (dev->lanes % row || dev->lanes == row)
        return false;
    plan_for_each_node(n, k)
        if (!is_joined(k, px, n, dev->lanes) ||
            (row > MOST_SHORT && is_vector(k, n, axis, dev)))
            return false;
    return true;
}

static void join(plan_kernel *k, plan_px *px)
{
    int axis = k->naxis - 1;
    uint64_t last = 1ull << axis;

    plan_for_each_node(n, k) {
        place_joined(k, px, n);
        if (n->varies & last)
            n->varies = (n->varies & ~last) | last >> 1;
    }
    k->axis[axis - 1].extent *= k->axis[axis].extent;
    k->axis[axis - 1].tile = k->axis[axis - 1].extent;
    k->naxis = --k->nouter;
    k->stage[0].axes &= ~last;
}

/* ---- a strand a position ---- */

static bool has_strands(const plan_kernel *k, const device_desc *dev)
{
    int axis = k->naxis - 1;

    if (k->axis[axis].extent * k->nnode > MOST_NODES ||
        (k->axis[axis].extent > MOST_SHORT && !only_moves(k, axis)))
        return false;
    plan_for_each_node(n, k)
        if (!is_plain(n, axis) || is_vector(k, n, axis, dev) ||
            is_alone(k, n, axis) ||
            (n->kind == PN_STORE && (n->nguard || !is_filled(k, n, axis))))
            return false;
    return true;
}

/* A set of axes without `axis`, which those behind it move up to. */
static uint64_t leave_out(uint64_t axes, int axis)
{
    uint64_t before = (1ull << axis) - 1;

    return (axes & before) | (axes >> 1 & ~before);
}

/* n's places and operands where the axis stands at `at`. */
static void place(shorter *s, plan_node *n, int at)
{
    sd_arena *a = s->k->arena;
    const plan_expr *with[64];

    for (int i = 0; i < s->k->naxis; i++)
        with[i] = i == s->axis ? plan_px_const(s->px, at)
                               : plan_px_axis(s->px, i - (i > s->axis),
                                              s->k->axis[i].extent);
    n->varies = leave_out(n->varies, s->axis);
    plan_place_node(s->k, s->px, n, with);
    if (n->narg)
        n->arg = sd_arena_copy(a, n->arg, n->narg * sizeof(plan_node *));
    for (int i = 0; i < n->narg; i++)
        n->arg[i] = s->of[n->arg[i]->id * s->n + at];
}

static void take_node(shorter *s, plan_node *n)
{
    bool varies = n->varies >> s->axis & 1;

    for (int at = 0; at < s->n; at++) {
        plan_node *x = n;

        if (at > 0 && varies)
            x = sd_arena_copy(s->k->arena, n, sizeof *n);
        s->of[n->id * s->n + at] = x;
        if (at == 0 || varies)
            *sd_push(s->k->arena, &s->made) = x;
    }
}

static void part(plan_kernel *k, plan_px *px, int axis)
{
    shorter s = {.k = k, .px = px, .axis = axis};

    s.n = (int)k->axis[s.axis].extent;
    s.of = sd_arena_array(k->arena, plan_node *, k->nnode * s.n);
    plan_for_each_node(n, k)
        take_node(&s, n);
    for (int i = 0, at = 0; i < s.made.n; i++) {
        at = i && s.made.at[i]->id == s.made.at[i - 1]->id ? at + 1 : 0;
        place(&s, s.made.at[i], at);
    }
    for (int i = 0; i < s.made.n; i++)
        s.made.at[i]->id = i;
    k->node = s.made.at;
    k->nnode = s.made.n;
    k->naxis = --k->nouter;
    for (int i = axis; i < k->naxis; i++)
        k->axis[i] = k->axis[i + 1];
    k->stage[0].axes = leave_out(k->stage[0].axes, axis);
}

/* ---- channels that are put apart ---- */

/* Does n read rows along `axis`, which lie one after the other along LANE? */
static bool reads_rows(const plan_kernel *k, const plan_node *n, int axis)
{
    int64_t step, before;

    return n->kind == PN_LOAD && plan_expr_stride(n->off, axis, &step) &&
           step == 1 && plan_expr_stride(n->off, k->naxis - 1, &before) &&
           before == k->axis[axis].extent;
}

/* Is each position along `axis` a line of what is written, and a part of the
 * rows that are read? */
static bool puts_apart(const plan_kernel *k, int axis)
{
    bool any = false;
    int64_t step;

    if (k->axis[axis].extent < 2 || k->axis[axis].extent > MOST_SHORT ||
        k->axis[axis].extent * k->nnode > MOST_NODES)
        return false;
    plan_for_each_node(n, k) {
        if (!is_plain(n, axis) ||
            (n->kind == PN_STORE &&
             (n->nguard || !plan_expr_stride(n->off, k->naxis - 1, &step) ||
              step != 1)))
            return false;
        any |= reads_rows(k, n, axis);
    }
    return any;
}

/* Else a vector of one channel would read what has all of them, once for each.
 */
static bool part_apart(plan_kernel *k)
{
    if (k->cls != PLAN_LOOP || k->naxis != k->nouter || k->nstage != 1 ||
        k->axis[k->naxis - 1].extent < LEAST_BESIDE)
        return false;
    for (int axis = k->naxis - 2; axis >= 0; axis--)
        if (puts_apart(k, axis)) {
            part(k, plan_px_create(k->arena), axis);
            return true;
        }
    return false;
}

void plan_part_short(plan_kernel *k, const device_desc *dev)
{
    plan_px *px;

    if (part_apart(k) || !has_short(k))
        return;
    px = plan_px_create(k->arena);
    if (can_join(k, px, dev))
        join(k, px);
    else if (has_strands(k, dev))
        part(k, px, k->naxis - 1);
}
