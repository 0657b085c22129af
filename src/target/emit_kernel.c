/* A kernel: its function, the loop over tiles, and the loops of the nest.  What
 * happens inside of them is emit_stage.c.
 *
 * A kernel that is cut along one axis needs no loop over tiles: tiles [first,
 * last) are one range of positions.  One whose areas hold a tile, by rows or in
 * blocks, has the loop nevertheless. */
#include "emit.h"

typedef struct {
    LLVMValueRef lo, hi;
} range;

typedef struct {
    emit *e;
    range range[EMIT_AXES];
    const plan_cut *cut; /* of the axes that are not open yet, or NULL */
    bool asks; /* the stretch that is open is none that is known */
} nest;

static void outer(nest *t, int i);

static LLVMValueRef min_of(emit *e, LLVMValueRef x, int64_t limit)
{
    return emit_smaller(e, x, emit_int_like(x, limit));
}

/* ---- outer loops ---- */

void emit_axis_open(emit *e, int a, emit_loop *l, LLVMValueRef from,
                    LLVMValueRef to, int64_t step)
{
    emit_level_loop_open(e, l, from, to, step);
    e->axis[a].level = e->depth;
    e->axis[a].at = l->at;
}

static void open_axis(emit *e, int a, emit_loop *l, range r, int64_t step)
{
    emit_axis_open(e, a, l, r.lo, r.hi, step);
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
static void outer_unroll(nest *t, int i)
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
        e->axis[a].at = min_of(e, l.at, x->extent - n);
    for (int c = 1; !whole && !early && c < n; c++)
        e->axis[a].mask[c] =
            emit_below(e, emit_position(e, a, c * e->axis[a].stride, false),
                       t->range[a].hi);
    outer(t, i + 1);
    emit_axis_close(e, a, &l);
}

static void lane_steps(emit *e, range r, int copies, bool masked,
                       emit_lane_body body, void *ctx)
{
    emit_loop l;

    open_axis(e, e->lane, &l, r, (int64_t)copies * e->w);
    e->axis[e->lane].n = copies;
    e->axis[e->lane].step = e->w;
    if (masked) {
        LLVMValueRef at = emit_position(e, e->lane, 0, true);
        LLVMValueRef end =
            e->vi == e->si ? r.hi : LLVMBuildTrunc(e->b, r.hi, e->vi, "");

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
    range whole = {from, to}, rest = whole;
    LLVMValueRef n;

    if (x->extent >= step) {
        n = LLVMBuildSub(e->b, to, from, "");
        n = step & (step - 1)
                ? LLVMBuildSub(e->b, n,
                               LLVMBuildURem(e->b, n, emit_si(e, step), ""), "")
                : LLVMBuildAnd(e->b, n, emit_si(e, -step), "");
        rest.lo = LLVMBuildAdd(e->b, from, n, "");
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
    LLVMValueRef n = LLVMBuildSub(e->b, hi, *lo, ""), to;

    n = LLVMBuildSub(e->b, n, LLVMBuildURem(e->b, n, step, ""), "");
    to = LLVMBuildAdd(e->b, *lo, n, "");
    lane_steps(e, (range){*lo, to}, copies, false, body, ctx);
    *lo = to;
}

/* r, in an extent of LANE that is not shorter than a vector. */
static void lane_repeats_end(emit *e, range r, int64_t extent,
                             emit_lane_body body, void *ctx)
{
    int copies = e->k->axis[e->lane].copies;
    LLVMValueRef lo = r.lo, last;

    if (copies > 1 && extent >= (int64_t)copies * e->w)
        whole_steps(e, &lo, r.hi, copies, body, ctx);
    whole_steps(e, &lo, r.hi, 1, body, ctx);
    last = LLVMBuildSelect(e->b, emit_below(e, lo, r.hi),
                           LLVMBuildSub(e->b, r.hi, emit_si(e, e->w), ""), r.hi,
                           "");
    lane_steps(e, (range){last, r.hi}, 1, false, body, ctx);
}

static void not_valid_before(emit *e, LLVMValueRef at, LLVMValueRef first)
{
    e->item_valid = emit_and(e, e->item_valid,
                             LLVMBuildICmp(e->b, LLVMIntSGE, at, first, ""));
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
        at = emit_add(e, min_of(e, from, extent - all), own);
        not_valid_before(e, at, from);
        return at;
    }
    at = emit_add(e, from, own);
    not_valid_from(e, at, extent);
    return min_of(e, at, extent - e->k->vector);
}

LLVMValueRef emit_item_start(emit *e)
{
    return e->k->vector == 1
               ? e->item
               : LLVMBuildNSWMul(e->b, e->item, emit_si(e, e->k->vector), "");
}

static void outer_items(nest *t, int i, range r)
{
    emit *e = t->e;
    LLVMValueRef valid = e->item_valid;
    emit_loop l;

    open_axis(e, e->lane, &l, r, (int64_t)e->k->items * e->k->vector);
    e->axis[e->lane].at = item_position(e, l.at);
    e->axis[e->lane].n = e->k->vector;
    outer(t, i + 1);
    e->item_valid = valid;
    emit_axis_close(e, e->lane, &l);
}

/* One position an item, or several as copies.  One past the end is the last
 * position too; a tile that reaches beyond the end begins early. */
static void outer_crowd(nest *t, int i)
{
    emit *e = t->e;
    int a = e->k->nest[i];
    const plan_axis *x = &e->k->axis[a];
    LLVMValueRef lo = t->range[a].lo, valid = e->item_valid, at;
    bool partly = x->extent % x->tile, several = x->copies > 1;

    at = several && partly ? min_of(e, lo, x->extent - x->tile) : lo;
    at = emit_add(e, at, e->row);
    if (!several && partly) {
        not_valid_from(e, at, x->extent);
        at = min_of(e, at, x->extent - 1);
    }
    e->axis[a].at = at;
    e->axis[a].level = e->depth;
    e->axis[a].n = x->copies;
    e->axis[a].step = e->k->group / e->k->items;
    for (int c = 0; several && partly && c < x->copies; c++)
        e->axis[a].mask[c] = LLVMBuildICmp(
            e->b, LLVMIntSGE, emit_position(e, a, c * e->axis[a].stride, false),
            lo, "");
    outer(t, i + 1);
    memset(e->axis[a].mask, 0, sizeof e->axis[a].mask);
    e->axis[a].n = 1;
    e->axis[a].level = 0;
    e->item_valid = valid;
}

typedef struct {
    nest *nest;
    int next; /* of its axes */
} inside;

static void go_inside(emit *e, void *ctx)
{
    const inside *in = ctx;

    (void)e;
    outer(in->nest, in->next);
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
static void stretch_steps(emit *e, range r, bool whole, inside *in)
{
    if (whole)
        whole_steps(e, &r.lo, r.hi, e->k->axis[e->lane].copies, go_inside, in);
    lane_steps(e, r, 1, true, go_inside, in);
}

typedef struct {
    range r; /* what the tile has of it */
    int64_t n; /* all positions */
    bool known;
} part;

static void row_part(nest *t, int i, const part *p)
{
    int a = t->e->k->nest[i];
    emit_loop l;

    open_axis(t->e, a, &l, p->r, 1);
    outer(t, i + 1);
    emit_axis_close(t->e, a, &l);
}

static void lane_part(nest *t, int i, const part *p)
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
static void each_stretch(nest *t, int i)
{
    emit *e = t->e;
    const plan_within *outside = e->within;
    const plan_cut *c = t->cut;
    range r = t->range[c->axis];

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

static void outer_lane(nest *t, int i)
{
    emit *e = t->e;
    range r = t->range[e->lane];
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

static void outer(nest *t, int i)
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
        outer(t, i + 1);
        emit_axis_close(e, a, &l);
    }
}

/* ---- tiles ---- */

static range tile_range(emit *e, const plan_axis *x, LLVMValueRef first,
                        LLVMValueRef last)
{
    range r;

    r.lo = LLVMBuildMul(e->b, first, emit_si(e, x->tile), "");
    r.hi = LLVMBuildMul(e->b, last, emit_si(e, x->tile), "");
    if (x->extent % x->tile)
        r.hi = min_of(e, r.hi, x->extent);
    return r;
}

/* The ranges of all grid axes in tile t, the last axis fastest, but that those
 * of a band of blocks stand side by side. */
static void decode_tile(nest *n, LLVMValueRef t)
{
    emit *e = n->e;
    const plan_blocks *b = e->k->blocks;
    int64_t band = b && b->band > 1 ? b->band : 1;
    LLVMValueRef in_band = NULL, i;

    if (band > 1) {
        in_band = emit_rest(e, t, band);
        t = emit_over(e, t, band);
    }
    for (int a = e->k->naxis - 1; a >= 0; a--) {
        const plan_axis *x = &e->k->axis[a];
        int64_t tiles = plan_axis_tiles(x);

        if (tiles == 1)
            continue;
        if (band > 1 && a == b->m)
            tiles /= band;
        i = emit_rest(e, t, tiles);
        t = emit_over(e, t, tiles);
        if (band > 1 && a == b->m)
            i = emit_add(e, emit_times(e, i, band), in_band);
        n->range[a] = tile_range(e, x, i, emit_plus(e, i, 1));
    }
}

/* A tile of a scatter begins with its places; `which` axis is cut, or none. */
static void fill_places(const nest *t, int which)
{
    emit *e = t->e;
    const plan_node *n = e->gpu ? NULL : plan_scatter_of(e->k);
    range r = {emit_si(e, 0), emit_si(e, 1)};
    int64_t count, own;

    if (!n || n->narg == 1)
        return;
    own = count = e->k->slot[n->slot].count;
    if (which >= 0) {
        own = plan_places_of_position(e->k, which);
        r = t->range[which];
    }
    emit_fill(e, n, emit_times(e, r.lo, own),
              min_of(e, emit_times(e, r.hi, own), count));
}

static void tiles(nest *t, LLVMValueRef first, LLVMValueRef last)
{
    emit *e = t->e;
    int cut = 0, which = -1;
    emit_loop l;

    for (int a = 0; a < e->k->naxis; a++) {
        const plan_axis *x = &e->k->axis[a];

        t->range[a] = (range){emit_si(e, 0), emit_si(e, x->extent)};
        if (x->outer && x->grid && x->tile < x->extent) {
            cut++;
            which = a;
        }
    }
    if (cut <= 1 && !e->k->blocks && !(e->k->rows && which == e->lane)) {
        if (cut)
            t->range[which] = tile_range(e, &e->k->axis[which], first, last);
        fill_places(t, which);
        outer(t, 0);
        return;
    }
    if (e->gpu) {
        decode_tile(t, first);
        outer(t, 0);
        return;
    }
    emit_level_loop_open(e, &l, first, last, 1);
    decode_tile(t, l.at);
    outer(t, 0);
    emit_level_loop_close(e, &l);
}

/* ---- copies ---- */

/* Neighbours along axis a that are copied at once of an operand of blocks. */
static int copied_along(const plan_blocks *b, int a)
{
    return SD_MAX(a == b->x_along ? b->x_wide : 1,
                  a == b->y_along ? b->y_wide : 1);
}

/* Copy numbers of the axes that are copied.  Inner axes share a digit: they are
 * never copied two at once. */
static void number_copies(emit *e)
{
    const plan_kernel *k = e->k;
    int shared = 1;

    e->ncopy = 1;
    for (int a = 0; a < k->naxis; a++) {
        emit_axis *x = &e->axis[a];

        x->n = 1;
        x->near = e->gpu && a == e->lane ? SD_MAX(k->vector, 1) : 1;
        x->radix = k->axis[a].copies;
        if (k->blocks && e->gpu)
            x->radix = SD_MAX(x->radix, copied_along(k->blocks, a));
        else if (a == e->lane && k->blocks && k->blocks->y_along != a)
            x->radix = SD_MAX(x->radix, e->w); /* a square of an operand */
        else if (k->blocks && k->blocks->weaves &&
                 a == plan_last_axis(plan_block_chain(k->blocks)))
            x->radix = SD_MAX(x->radix, EMIT_WORD); /* rows of a word */
        if (a != e->lane && !k->axis[a].outer) {
            shared = SD_MAX(shared, x->radix);
        } else if (x->radix > 1) {
            x->stride = e->ncopy;
            e->ncopy *= x->radix;
        }
    }
    for (int a = k->nouter; a < k->naxis; a++)
        if (a != e->lane && e->axis[a].radix > 1)
            e->axis[a].stride = e->ncopy;
    e->ncopy *= shared;
}

/* ---- the function ---- */

void emit_start_function(emit *e)
{
    LLVMBasicBlockRef start;

    e->entry = emit_block(e, "entry");
    start = emit_block(e, "start");
    LLVMPositionBuilderAtEnd(e->b, e->entry);
    LLVMBuildBr(e->b, start);
    LLVMPositionBuilderAtEnd(e->b, start);
}

/* One function: pointers that were noalias arguments of a body of its own
 * bought nothing (what does not vary is hoisted already) and cost a third of
 * the compile time of small kernels. */
static void begin_host(emit *e)
{
    LLVMTypeRef t[4] = {e->ptr, e->i64, e->i64, e->ptr};
    LLVMValueRef at;

    e->fn = LLVMAddFunction(
        e->m, e->k->name,
        LLVMFunctionType(LLVMVoidTypeInContext(e->cx), t, 4, 0));
    emit_attribute(e, e->fn, LLVMAttributeFunctionIndex, "nounwind");
    emit_start_function(e);
    for (int i = 0; i < e->k->nslot; i++) {
        at = emit_behind(e, e->ptr, LLVMGetParam(e->fn, 0), emit_i64(e, i));
        e->slot[i] = LLVMBuildLoad2(e->b, e->ptr, at, "");
    }
    e->first = LLVMGetParam(e->fn, 1);
    e->last = LLVMGetParam(e->fn, 2);
    e->local = LLVMGetParam(e->fn, 3);
}

static void emit_init(emit *e, const plan_kernel *k)
{
    assert(k->naxis <= EMIT_AXES); /* a mask has no more bits */
    e->k = k;
    e->w = SD_MAX(k->lanes, 1);
    e->lane = plan_lane_of(k);
    e->outer = plan_nest_axes(k);
    memset(e->axis, 0, sizeof e->axis);
    memset(e->level, 0, sizeof e->level);
    e->depth = e->standing = e->outer_depth = 0;
    e->pass = 0;
    number_copies(e);
    e->value = sd_arena_array(e->a, emit_slot, (k->nnode + 1) * e->ncopy);
    e->several = sd_arena_array(e->a, emit_value *, k->nnode + 1);
    e->running = sd_arena_array(e->a, void *, k->nnode + 1);
    e->answer = sd_arena_array(e->a, plan_answer, k->nnode + 1);
    e->wanted = sd_arena_array(e->a, bool, k->nnode + 1);
    plan_look(k, NULL, e->answer, e->wanted);
    e->slot = sd_arena_array(e->a, LLVMValueRef, k->nslot + 1);
    emit_find_woven(e);
    emit_index_init(e);
}

/* Items along LANE are neighbours in their group, of which others are further
 * rows, or a row's other teams. */
static void number_items(emit *e)
{
    LLVMValueRef n = emit_si(e, e->k->items);
    bool several = e->k->items < e->k->group;
    LLVMValueRef above =
        several ? LLVMBuildUDiv(e->b, e->lid, n, "") : emit_si(e, 0);

    e->item = several ? LLVMBuildURem(e->b, e->lid, n, "") : e->lid;
    e->row = e->k->teams ? emit_si(e, 0) : above;
    e->team = e->k->teams ? above : NULL;
    e->item_valid = NULL;
}

sd_status emit_kernel(emit *e, const plan_kernel *k)
{
    nest t = {.e = e, .cut = k->cut};
    sd_status st;

    if (k->loop)
        return sd_note(emit_whole_loop(e, k), "kernel %s", k->name);
    emit_init(e, k);
    if (e->gpu)
        emit_begin_gpu(e);
    else
        begin_host(e);
    if (e->gpu)
        number_items(e);
    if (k->sort)
        emit_sort(e);
    else if (k->call)
        emit_device_call(e);
    else if (k->attend)
        emit_attend(e);
    else if (k->places)
        emit_places(e);
    else if (k->buckets)
        emit_buckets(e);
    else
        tiles(&t, e->first, e->last);
    LLVMBuildRetVoid(e->b);
    st = e->st;
    e->st = NULL;
    return sd_note(st, "kernel %s", k->name);
}
