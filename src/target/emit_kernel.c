/* A kernel: its function and the loop over tiles.  The loops of a tile's nest
 * are emit_outer.c.
 *
 * A kernel that is cut along one axis needs no loop over tiles: tiles [first,
 * last) are one range of positions.  One whose areas hold a tile, by rows or in
 * blocks, has the loop nevertheless. */
#include "emit_outer.h"

/* ---- tiles ---- */

/* Of a group of a GPU first is its one tile. */
static emit_range tile_range(emit *e, const plan_axis *x, LLVMValueRef first,
                             LLVMValueRef last)
{
    emit_range r = {.most = e->gpu ? x->tile : 0};

    r.lo = emit_product(e, first, emit_si(e, x->tile));
    r.hi = emit_product(e, last, emit_si(e, x->tile));
    if (x->extent % x->tile)
        r.hi = emit_at_most(e, r.hi, x->extent);
    return r;
}

/* The ranges of all grid axes in tile t, the last axis fastest, but that those
 * of a band of blocks stand side by side. */
static void decode_tile(emit_nest *n, LLVMValueRef t)
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
static void fill_places(const emit_nest *t, int which)
{
    emit *e = t->e;
    const plan_node *n = e->gpu ? NULL : plan_scatter_of(e->k);
    emit_range r = {emit_si(e, 0), emit_si(e, 1), 0};
    int64_t count, own;

    if (!n || n->narg == 1)
        return;
    own = count = e->k->slot[n->slot].count;
    if (which >= 0) {
        own = plan_places_of_position(e->k, which);
        r = t->range[which];
    }
    emit_fill(e, n, emit_times(e, r.lo, own),
              emit_at_most(e, emit_times(e, r.hi, own), count));
}

static void tiles(emit_nest *t, LLVMValueRef first, LLVMValueRef last)
{
    emit *e = t->e;
    int cut = 0, which = -1;
    emit_loop l;

    for (int a = 0; a < e->k->naxis; a++) {
        const plan_axis *x = &e->k->axis[a];

        t->range[a] = (emit_range){emit_si(e, 0), emit_si(e, x->extent), 0};
        if (x->outer && x->grid && x->tile < x->extent) {
            cut++;
            which = a;
        }
    }
    if (cut <= 1 && !e->k->blocks && !(e->k->rows && which == e->lane)) {
        if (cut)
            t->range[which] = tile_range(e, &e->k->axis[which], first, last);
        fill_places(t, which);
        emit_outer(t, 0);
        return;
    }
    if (e->gpu) {
        decode_tile(t, first);
        emit_outer(t, 0);
        return;
    }
    emit_level_loop_open(e, &l, first, last, 1);
    decode_tile(t, l.at);
    emit_outer(t, 0);
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
    emit_index_init(e);
}

/* Items along LANE are neighbours in their group, of which others are further
 * rows, or a row's other teams. */
static void number_items(emit *e)
{
    LLVMValueRef n = emit_si(e, e->k->items);
    bool several = e->k->items < e->k->group;
    LLVMValueRef above = several ? emit_udiv(e, e->lid, n) : emit_si(e, 0);

    e->item = several ? emit_urem(e, e->lid, n) : e->lid;
    e->row = e->k->teams ? emit_si(e, 0) : above;
    e->team = e->k->teams ? above : NULL;
    e->item_valid = NULL;
}

sd_status emit_kernel(emit *e, const plan_kernel *k)
{
    emit_nest t = {.e = e, .cut = k->cut};
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
