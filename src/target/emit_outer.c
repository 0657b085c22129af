/* The loops of a kernel's nest, over the outer axes: plain ones, rows that are
 * unrolled, LANE in vectors or items, the crowd, and axes in stretches
 * (plan_cut).  What happens inside of them is emit_stage.c. */
#include "emit_outer.h"

void emit_axis_open(emit *e, int a, emit_loop *l, LLVMValueRef from,
                    LLVMValueRef to, int64_t step)
{
    emit_level_loop_open(e, l, from, to, step);
    e->axis[a].level = e->depth;
    e->axis[a].at = l->at;
}

/* What a tile has of an axis may be one step, which is no loop: compilers for
 * GPUs would unroll it. */
static void open_axis(emit *e, int a, emit_loop *l, emit_range r, int64_t step)
{
    if (!r.most || r.most > step) {
        emit_axis_open(e, a, l, r.lo, r.hi, step);
        return;
    }
    emit_once_open(e, l);
    e->axis[a].level = e->depth;
    l->at = e->axis[a].at = r.lo;
}

void emit_axis_close(emit *e, int a, emit_loop *l)
{
    emit_level_loop_close(e, l);
    e->axis[a].level = 0;
    e->axis[a].n = 1;
    memset(e->axis[a].mask, 0, sizeof e->axis[a].mask);
}

static bool divides(const plan_axis *x, int64_t by)
{
    return x->extent % by == 0 && (!x->grid || x->tile % by == 0);
}

/* On the host what is left of an axis for the last copies begins early, so that
 * there are positions for all; or copies have masks, which cost a GPU's item
 * fewer registers (convolutions of 9 x 9 kept 12 bytes in memory without). */
static void outer_unroll(emit_nest *t, int i)
{
    emit *e = t->e;
    int a = e->k->nest[i];
    const plan_axis *x = &e->k->axis[a];
    int n = e->axis[a].radix;
    bool whole = divides(x, n);
    bool early = !e->gpu && x->extent >= n && plan_may_repeat(e->k);
    emit_loop l;

    open_axis(e, a, &l, t->range[a], n);
    e->axis[a].n = n;
    e->axis[a].step = 1;
    if (!whole && early)
        e->axis[a].at = emit_at_most(e, l.at, x->extent - n);
    for (int c = 1; !whole && !early && c < n; c++)
        e->axis[a].mask[c] =
            emit_below(e, emit_position(e, a, c * e->axis[a].stride, false),
                       t->range[a].hi);
    emit_outer(t, i + 1);
    emit_axis_close(e, a, &l);
}

static void lane_steps(emit *e, emit_range r, int copies, bool masked,
                       emit_lane_body body, void *ctx)
{
    emit_loop l;

    open_axis(e, e->lane, &l, r, (int64_t)copies * e->w);
    e->axis[e->lane].n = copies;
    e->axis[e->lane].step = e->w;
    if (masked) {
        LLVMValueRef at = emit_position(e, e->lane, 0, true);
        LLVMValueRef end = e->vi == e->si ? r.hi : emit_trunc(e, r.hi, e->vi);

        e->axis[e->lane].mask[0] = emit_below(e, at, emit_splat(e, end, e->w));
    }
    body(e, ctx);
    emit_axis_close(e, e->lane, &l);
}

void emit_lane_loops(emit *e, LLVMValueRef from, LLVMValueRef to, int copies,
                     emit_lane_body body, void *ctx)
{
    const plan_axis *x = &e->k->axis[e->lane];
    int64_t step = (int64_t)copies * e->w;
    emit_range whole = {from, to, 0}, rest = whole;
    LLVMValueRef n;

    if (x->extent >= step) {
        n = emit_minus(e, to, from);
        n = step & (step - 1)
                ? emit_minus(e, n, emit_urem(e, n, emit_si(e, step)))
                : emit_and(e, n, emit_si(e, -step));
        rest.lo = emit_sum(e, from, n);
        whole.hi = rest.lo;
        lane_steps(e, whole, copies, false, body, ctx);
    }
    if (!divides(x, step))
        lane_steps(e, rest, 1, !divides(x, e->w), body, ctx);
}

/* Whole steps of so many copies, as far as they go; *lo moves on. */
static void whole_steps(emit *e, LLVMValueRef *lo, LLVMValueRef hi, int copies,
                        emit_lane_body body, void *ctx)
{
    LLVMValueRef step = emit_si(e, (int64_t)copies * e->w);
    LLVMValueRef n = emit_minus(e, hi, *lo), to;

    n = emit_minus(e, n, emit_urem(e, n, step));
    to = emit_sum(e, *lo, n);
    lane_steps(e, (emit_range){*lo, to, 0}, copies, false, body, ctx);
    *lo = to;
}

/* r, in an extent of LANE that is not shorter than a vector. */
static void lane_repeats_end(emit *e, emit_range r, int64_t extent,
                             emit_lane_body body, void *ctx)
{
    int copies = e->k->axis[e->lane].copies;
    LLVMValueRef lo = r.lo, last;

    if (copies > 1 && extent >= (int64_t)copies * e->w)
        whole_steps(e, &lo, r.hi, copies, body, ctx);
    whole_steps(e, &lo, r.hi, 1, body, ctx);
    last = emit_select(e, emit_below(e, lo, r.hi),
                       emit_minus(e, r.hi, emit_si(e, e->w)), r.hi);
    lane_steps(e, (emit_range){last, r.hi, 0}, 1, false, body, ctx);
}

static void not_valid_before(emit *e, LLVMValueRef at, LLVMValueRef first)
{
    e->item_valid = emit_and(e, e->item_valid, emit_not_below(e, at, first));
}

static void not_valid_from(emit *e, LLVMValueRef at, int64_t end)
{
    e->item_valid =
        emit_and(e, e->item_valid, emit_below(e, at, emit_si(e, end)));
}

/* Every work item takes every step: one past the end computes at another's
 * position and writes nothing.  A branch around it would make the compilers
 * serialise the items of a partly full vector, and Intel's for CPUs then adds
 * in another order than the one that is written.  The last group of an axis
 * that has room for one begins early, so that items stay neighbours and their
 * reads are vectors; on a shorter axis they take the last position. */
static LLVMValueRef item_position(emit *e, LLVMValueRef from)
{
    int64_t all = (int64_t)e->k->items * e->k->vector;
    int64_t extent = e->k->axis[e->lane].extent;
    LLVMValueRef own = emit_item_start(e), at;

    if (divides(&e->k->axis[e->lane], all))
        return emit_add(e, from, own);
    if (extent >= all) {
        at = emit_add(e, emit_at_most(e, from, extent - all), own);
        not_valid_before(e, at, from);
        return at;
    }
    at = emit_add(e, from, own);
    not_valid_from(e, at, extent);
    return emit_at_most(e, at, extent - e->k->vector);
}

LLVMValueRef emit_item_start(emit *e)
{
    return e->k->vector == 1
               ? e->item
               : LLVMBuildNSWMul(e->b, e->item, emit_si(e, e->k->vector), "");
}

static void outer_items(emit_nest *t, int i, emit_range r)
{
    emit *e = t->e;
    LLVMValueRef valid = e->item_valid;
    emit_loop l;

    open_axis(e, e->lane, &l, r, (int64_t)e->k->items * e->k->vector);
    e->axis[e->lane].at = item_position(e, l.at);
    e->axis[e->lane].n = e->k->vector;
    emit_outer(t, i + 1);
    e->item_valid = valid;
    emit_axis_close(e, e->lane, &l);
}

/* One position an item, or several as copies.  One past the end is the last
 * position too; a tile that reaches beyond the end begins early. */
static void outer_crowd(emit_nest *t, int i)
{
    emit *e = t->e;
    int a = e->k->nest[i];
    const plan_axis *x = &e->k->axis[a];
    LLVMValueRef lo = t->range[a].lo, valid = e->item_valid, at;
    bool partly = x->extent % x->tile, several = x->copies > 1;

    at = several && partly ? emit_at_most(e, lo, x->extent - x->tile) : lo;
    at = emit_add(e, at, e->row);
    if (!several && partly) {
        not_valid_from(e, at, x->extent);
        at = emit_at_most(e, at, x->extent - 1);
    }
    e->axis[a].at = at;
    e->axis[a].level = e->depth;
    e->axis[a].n = x->copies;
    e->axis[a].step = e->k->group / e->k->items;
    for (int c = 0; several && partly && c < x->copies; c++)
        e->axis[a].mask[c] = emit_not_below(
            e, emit_position(e, a, c * e->axis[a].stride, false), lo);
    emit_outer(t, i + 1);
    memset(e->axis[a].mask, 0, sizeof e->axis[a].mask);
    e->axis[a].n = 1;
    e->axis[a].level = 0;
    e->item_valid = valid;
}

typedef struct {
    emit_nest *nest;
    int next; /* of its axes */
} inside;

static void go_inside(emit *e, void *ctx)
{
    const inside *in = ctx;

    (void)e;
    emit_outer(in->nest, in->next);
}

/* A window that goes nowhere is left out before its loop, which would read what
 * goes into it: by the guards of the scatter, where they hold for all of it.
 * NULL: they are asked inside. */
static LLVMBasicBlockRef begin_window(emit *e)
{
    const plan_node *n = e->gpu ? NULL : plan_scatter_of(e->k);

    if (!n || emit_guards_vary(n->guard, n->nguard) >> e->lane & 1 ||
        e->ncopy > e->k->axis[e->lane].copies)
        return NULL;
    return emit_when(e, emit_guards(e, n->guard, n->nguard, 0, false));
}

/* LANE from one position to another, both unknown here: whole steps if there
 * may be any, and vectors under a mask. */
static void stretch_steps(emit *e, emit_range r, bool whole, inside *in)
{
    if (whole)
        whole_steps(e, &r.lo, r.hi, e->k->axis[e->lane].copies, go_inside, in);
    lane_steps(e, r, 1, true, go_inside, in);
}

typedef struct {
    emit_range r; /* what the tile has of it */
    int64_t n; /* all positions */
    bool known;
} part;

static void row_part(emit_nest *t, int i, const part *p)
{
    int a = t->e->k->nest[i];
    emit_loop l;

    open_axis(t->e, a, &l, p->r, 1);
    emit_outer(t, i + 1);
    emit_axis_close(t->e, a, &l);
}

static void lane_part(emit_nest *t, int i, const part *p)
{
    emit *e = t->e;
    inside in = {t, i + 1};
    const plan_axis *l = &e->k->axis[e->lane];

    if (p->known && !l->grid && p->n >= e->w && plan_repeats_end(e->k))
        lane_repeats_end(e, p->r, p->n, go_inside, &in);
    else
        stretch_steps(e, p->r, p->known && p->n >= l->copies * e->w, &in);
}

/* The loop over axis number i of the nest, which is cut.  A tile has parts of
 * some stretches, and nothing of others. */
static void each_stretch(emit_nest *t, int i)
{
    emit *e = t->e;
    const plan_within *outside = e->within;
    const plan_cut *c = t->cut;
    emit_range r = t->range[c->axis];

    for (int j = 0; j < c->n; j++) {
        const plan_stretch *s = &c->stretch[j];
        int64_t extent = e->k->axis[c->axis].extent;
        int64_t end = j + 1 < c->n ? s[1].from : extent;
        plan_within in = {outside, c->axis, s->from, end, extent};
        part p = {.n = end - s->from, .known = s->known};

        p.r.lo = emit_larger(e, r.lo, emit_si(e, s->from));
        p.r.hi = emit_larger(e, p.r.lo, emit_smaller(e, r.hi, emit_si(e, end)));
        e->within = s->known ? &in : outside;
        plan_look(e->k, e->within, e->answer, e->wanted);
        t->cut = s->inside;
        t->asks = !s->known; /* short: no vectors side by side */
        (c->axis == e->lane ? lane_part : row_part)(t, i, &p);
    }
    t->cut = c;
    t->asks = false;
    e->within = outside;
    plan_look(e->k, e->within, e->answer, e->wanted);
}

static void outer_lane(emit_nest *t, int i)
{
    emit *e = t->e;
    emit_range r = t->range[e->lane];
    inside in = {t, i + 1};
    LLVMBasicBlockRef no;
    const plan_axis *l = &e->k->axis[e->lane];

    if (e->gpu) {
        outer_items(t, i, r);
        return;
    }
    if (e->k->rows)
        emit_rows(e, r.lo, r.hi);
    no = begin_window(e);
    emit_pick_begin(e);
    if (t->cut)
        each_stretch(t, i);
    else if (plan_repeats_end(e->k) && l->extent >= e->w && !divides(l, e->w))
        lane_repeats_end(e, r, l->extent, go_inside, &in);
    else
        emit_lane_loops(e, r.lo, r.hi, t->asks ? 1 : l->copies, go_inside, &in);
    emit_pick_end(e);
    emit_when_end(e, no);
}

/* Is axis a the outermost of those that a tile of blocks has? */
static bool begins_blocks(const emit *e, int a)
{
    const plan_blocks *b = e->k->blocks;
    uint64_t outer = (1ull << e->k->nouter) - 1;

    return b && a == __builtin_ctzll(outer & ~(b->rest | 1ull << e->lane));
}

static void innermost(emit *e)
{
    const plan_runs *r = e->k->runs;

    if (e->gpu && !r)
        emit_stage_loads(e);
    e->outer_depth = e->depth;
    if (!r)
        emit_stages(e);
    else if (r->moved)
        emit_run_listed(e);
    else
        emit_run_rows(e);
}

void emit_outer(emit_nest *t, int i)
{
    emit *e = t->e;
    const plan_blocks *b = e->k->blocks;
    emit_loop l;
    int a;

    if (i == e->k->nnest) {
        innermost(e);
        return;
    }
    a = e->k->nest[i];
    if (e->gpu && begins_blocks(e, a)) {
        emit_group_blocks(e, t->range[b->m].lo, t->range[b->n].lo);
        return;
    }
    if (begins_blocks(e, a))
        emit_blocks(e, t->range[b->m].lo, t->range[b->m].hi, t->range[b->n].lo,
                    t->range[b->n].hi);
    if (a == e->lane) {
        outer_lane(t, i);
    } else if (e->k->axis[a].place == PLAN_UNROLL) {
        outer_unroll(t, i);
    } else if (e->k->axis[a].place == PLAN_CROWD) {
        outer_crowd(t, i);
    } else if (t->cut && t->cut->axis == a) {
        each_stretch(t, i);
    } else {
        open_axis(e, a, &l, t->range[a], 1);
        emit_outer(t, i + 1);
        emit_axis_close(e, a, &l);
    }
}
