/* A kernel: its function, the tiles and the outer loops.  What happens inside
 * of them is emit_stage.c.
 *
 * One grid axis needs no loop over tiles: tiles [first, last) of it are one
 * range of positions; unless a tile is what local memory holds. */
#include "emit.h"

typedef struct {
    LLVMValueRef lo, hi;
} range;

typedef struct {
    emit *e;
    int order[EMIT_AXES], norder; /* outer axes, LANE last */
    range range[EMIT_AXES];
} nest;

static void outer(nest *t, int i);

static void add_attribute(emit *e, LLVMValueRef fn, unsigned at,
                          const char *name)
{
    unsigned id = LLVMGetEnumAttributeKindForName(name, strlen(name));

    LLVMAddAttributeAtIndex(fn, at, LLVMCreateEnumAttribute(e->cx, id, 0));
}

static LLVMValueRef min_of(emit *e, LLVMValueRef x, int64_t limit)
{
    LLVMValueRef y = emit_int_like(x, limit);

    return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, x, y, ""), x,
                           y, "");
}

/* ---- outer loops ---- */

void emit_axis_open(emit *e, int a, emit_loop *l, LLVMValueRef from,
                    LLVMValueRef to, int64_t step)
{
    LLVMBasicBlockRef pre = LLVMGetInsertBlock(e->b);

    emit_loop_open(e, l, from, to, step);
    emit_level_open(e, pre);
    e->axis[a].level = e->depth;
    e->axis[a].at = l->at;
}

static void open_axis(emit *e, int a, emit_loop *l, range r, int64_t step)
{
    emit_axis_open(e, a, l, r.lo, r.hi, step);
}

void emit_axis_close(emit *e, int a, emit_loop *l)
{
    emit_loop_close(e, l);
    emit_level_close(e);
    e->axis[a].level = 0;
    e->axis[a].n = 1;
    memset(e->axis[a].mask, 0, sizeof e->axis[a].mask);
}

static bool divides(const plan_axis *x, int64_t by)
{
    return x->extent % by == 0 && (!x->grid || x->tile % by == 0);
}

static void outer_unroll(nest *t, int i)
{
    emit *e = t->e;
    int a = t->order[i];
    const plan_axis *x = &e->k->axis[a];
    emit_loop l;

    open_axis(e, a, &l, t->range[a], e->axis[a].radix);
    e->axis[a].n = e->axis[a].radix;
    e->axis[a].step = 1;
    for (int c = 1; !divides(x, e->axis[a].radix) && c < e->axis[a].n; c++)
        e->axis[a].mask[c] = LLVMBuildICmp(
            e->b, LLVMIntSLT, emit_position(e, a, c * e->axis[a].stride, false),
            t->range[a].hi, "");
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

        e->axis[e->lane].mask[0] =
            LLVMBuildICmp(e->b, LLVMIntSLT, at, emit_splat(e, end, e->w), "");
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

/* Every work item takes every step: one past the end computes at another's
 * position and writes nothing.  A branch around it would make the compilers
 * serialise the items of a partly full vector, and Intel's for CPUs then adds
 * in another order than the one that is written.  The last group of an axis
 * that has room for one begins early, so that items stay neighbours and their
 * reads are vectors; on a shorter axis they take the last position. */
static LLVMValueRef item_position(emit *e, LLVMValueRef from)
{
    int64_t group = e->k->group, extent = e->k->axis[e->lane].extent;
    LLVMValueRef at;

    if (divides(&e->k->axis[e->lane], group))
        return LLVMBuildAdd(e->b, from, e->lid, "");
    if (extent >= group) {
        at = LLVMBuildAdd(e->b, min_of(e, from, extent - group), e->lid, "");
        e->item_valid = LLVMBuildICmp(e->b, LLVMIntSGE, at, from, "");
        return at;
    }
    at = LLVMBuildAdd(e->b, from, e->lid, "");
    e->item_valid = LLVMBuildICmp(e->b, LLVMIntSLT, at, emit_si(e, extent), "");
    return min_of(e, at, extent - 1);
}

static void outer_items(nest *t, int i, range r)
{
    emit *e = t->e;
    emit_loop l;

    open_axis(e, e->lane, &l, r, e->k->group);
    e->axis[e->lane].at = item_position(e, l.at);
    outer(t, i + 1);
    e->item_valid = NULL;
    emit_axis_close(e, e->lane, &l);
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

/* Vectors side by side where a block's sums are used. */
enum { BLOCK_COPIES = 2 };

static void outer_lane(nest *t, int i)
{
    emit *e = t->e;
    range r = t->range[e->lane];
    inside in = {t, i + 1};

    if (e->gpu) {
        outer_items(t, i, r);
        return;
    }
    if (e->k->rows)
        emit_rows(e, r.lo, r.hi);
    emit_lane_loops(e, r.lo, r.hi,
                    e->k->blocks ? BLOCK_COPIES : e->axis[e->lane].radix,
                    go_inside, &in);
}

/* Is axis a the outermost of those that a tile of blocks has? */
static bool begins_blocks(const emit *e, int a)
{
    const plan_blocks *b = e->k->blocks;
    uint64_t outer = (1ull << e->k->nouter) - 1;

    return b && a == __builtin_ctzll(outer & ~(b->rest | 1ull << e->lane));
}

static void outer(nest *t, int i)
{
    emit *e = t->e;
    const plan_blocks *b = e->k->blocks;
    emit_loop l;
    int a;

    if (i == t->norder) {
        e->outer_depth = e->depth;
        emit_stages(e);
        return;
    }
    a = t->order[i];
    if (begins_blocks(e, a))
        emit_blocks(e, t->range[b->m].lo, t->range[b->m].hi, t->range[b->n].lo,
                    t->range[b->n].hi);
    if (a == e->lane) {
        outer_lane(t, i);
    } else if (e->k->axis[a].place == PLAN_UNROLL) {
        outer_unroll(t, i);
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

/* The ranges of all grid axes in tile t, the last axis fastest. */
static void decode_tile(nest *n, LLVMValueRef t)
{
    emit *e = n->e;
    LLVMValueRef count, i;

    for (int a = e->k->naxis - 1; a >= 0; a--) {
        const plan_axis *x = &e->k->axis[a];
        int64_t tiles = x->grid ? (x->extent + x->tile - 1) / x->tile : 1;

        if (tiles == 1)
            continue;
        count = emit_si(e, tiles);
        i = LLVMBuildURem(e->b, t, count, "");
        t = LLVMBuildUDiv(e->b, t, count, "");
        n->range[a] =
            tile_range(e, x, i, LLVMBuildAdd(e->b, i, emit_si(e, 1), ""));
    }
}

static void tiles(nest *t, LLVMValueRef first, LLVMValueRef last)
{
    emit *e = t->e;
    int cut = 0, which = -1;
    LLVMBasicBlockRef pre;
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
        outer(t, 0);
        return;
    }
    if (e->gpu) {
        decode_tile(t, first);
        outer(t, 0);
        return;
    }
    pre = LLVMGetInsertBlock(e->b);
    emit_loop_open(e, &l, first, last, 1);
    emit_level_open(e, pre);
    decode_tile(t, l.at);
    outer(t, 0);
    emit_loop_close(e, &l);
    emit_level_close(e);
}

/* ---- copies ---- */

/* Vectors side by side while inner axes run: whole lines and neighbouring ones
 * are read of each row (a column sum of 2048 x 4096 f32 takes 0.4 ms with 8,
 * 5 ms with one), as long as the code stays small. */
static int column_copies(const emit *e)
{
    const plan_kernel *k = e->k;
    int body = 0;

    for (int i = 0; i < k->nnode; i++) {
        const plan_node *n = k->node[i];

        if (n->kind == PN_SCAN || n->kind == PN_SCATTER)
            return 1;
        if (plan_is_sum(n)) /* a product's two, as multiply and add */
            body += n->narg;
        else if (n->varies & ~e->outer)
            body++;
        if (n->kind == PN_ELT && (hlo_op_table[n->op].props & HLO_P_HEAVY))
            body += 8;
    }
    return body <= 5 ? 8 : body <= 12 ? 4 : body <= 24 ? 2 : 1;
}

/* Narrow floats are rounded after each operation, which makes an element's
 * chain of instructions longer than a core looks ahead: vectors side by side
 * keep it busy (gelu of 512 x 1024 bf16 takes 0.84 ms with one, 0.73 with two,
 * 0.59 with four, f16 0.60 with four, 0.53 with eight; silu of bf16 0.32 with
 * four, 0.29 with eight: Zen 4).  AVX2 has half the registers. */
static int chain_copies(const emit *e)
{
    const plan_kernel *k = e->k;
    int n = 0;

    for (int i = 0; i < k->nnode; i++)
        n += plan_is_rounding(k->node[i]);
    if (n < 2 || k->nnode > 160)
        return 1;
    return k->nnode > 80 ? 2 : k->nnode > 40 || e->w < 16 ? 4 : 8;
}

/* Vectors in a step of LANE. */
static int lane_copies(const emit *e)
{
    const plan_kernel *k = e->k;
    int n = k->nnode <= 6 ? 2 : chain_copies(e);

    if (e->gpu || e->lane < 0 || k->rows)
        return 1;
    if (k->blocks) /* a square of an operand is as many copies */
        return k->blocks->y_along == e->lane ? BLOCK_COPIES : e->w;
    if (!k->axis[e->lane].outer) /* a scatter applies a vector at a time */
        return k->cls == PLAN_SCATTERING ? 1 : 64 / e->w;
    if (e->w < e->dev->lanes) /* a scatter's narrow window as a whole */
        return (int)SD_MIN((k->axis[e->lane].extent + e->w - 1) / e->w, 4);
    for (int i = 0; i < k->nstage; i++)
        if (k->stage[i].axes)
            n = column_copies(e);
    while (n > 1 && k->axis[e->lane].extent < (int64_t)n * e->w)
        n /= 2;
    return n;
}

static bool has_strided(const plan_kernel *k, int axis)
{
    for (int i = 0; i < k->nnode; i++)
        if (k->node[i]->kind == PN_REDUCE && k->node[i]->order.lanes == 8 &&
            k->node[i]->over == (uint64_t)1 << axis)
            return true;
    return false;
}

/* Which axes are copied.  Inner axes share a digit: never two at once. */
static void plan_copies(emit *e)
{
    const plan_kernel *k = e->k;
    bool wide = e->lane >= 0 && k->axis[e->lane].outer && lane_copies(e) >= 4;
    bool strided = false;

    e->ncopy = 1;
    for (int a = 0; a < k->naxis; a++) {
        const plan_axis *p = &k->axis[a];
        emit_axis *x = &e->axis[a];

        x->n = x->radix = 1;
        if (a == e->lane)
            x->radix = lane_copies(e);
        else if (p->place == PLAN_UNROLL && p->outer)
            x->radix = (int)SD_MIN(p->grid ? p->tile : p->extent,
                                   (int64_t)EMIT_AXIS_COPIES);
        else if (!p->outer && has_strided(k, a))
            strided =
                k->rows || !wide; /* else one after the other: EMIT_R_MAJOR */
        if (x->radix > 1) {
            x->stride = e->ncopy;
            e->ncopy *= x->radix;
        }
    }
    for (int a = 0; strided && a < k->naxis; a++)
        if (a != e->lane && !k->axis[a].outer && has_strided(k, a)) {
            e->axis[a].stride = e->ncopy;
            e->axis[a].radix = 8;
        }
    if (strided)
        e->ncopy *= 8;
}

/* ---- the function ---- */

static void place_areas(emit *e)
{
    size_t at = 0;

    e->park = sd_arena_array(e->a, size_t, e->k->nnode + 1);
    for (int i = 0; i < e->k->nnode; i++) {
        const plan_node *n = e->k->node[i];
        size_t count = 1;

        if (!n->parked)
            continue;
        for (int a = 0; a < e->k->naxis; a++)
            if ((n->varies & ~e->outer) >> a & 1)
                count *= (size_t)e->k->axis[a].extent;
        e->park[i] = at;
        at += (count * sd_dtype_bytes(n->dtype) + 63) / 64 * 64;
    }
    for (int i = 0; e->k->rows && i < e->k->nnode; i++)
        if (e->k->node[i]->kind == PN_REDUCE) {
            e->park[i] = at;
            at += plan_rows_bytes(e->k, e->k->node[i]);
        }
    for (int i = 0; e->gpu && i < e->k->nnode; i++) {
        const plan_node *n = e->k->node[i];

        if (n->kind != PN_REDUCE || e->lane < 0 || !(n->over >> e->lane & 1))
            continue;
        e->park[i] = at;
        for (int o = 0; o < n->nout; o++)
            at += 64 * sd_dtype_bytes(n->arg[o]->dtype);
    }
    e->local_bytes = at;
}

static LLVMValueRef builtin_id(emit *e, const char *name)
{
    LLVMTypeRef t = LLVMFunctionType(e->i64, &e->i32, 1, 0);
    LLVMValueRef fn = LLVMGetNamedFunction(e->m, name), zero, v;

    if (!fn) {
        fn = LLVMAddFunction(e->m, name, t);
        LLVMSetFunctionCallConv(fn, LLVMSPIRFUNCCallConv);
        add_attribute(e, fn, LLVMAttributeFunctionIndex, "nounwind");
        add_attribute(e, fn, LLVMAttributeFunctionIndex, "willreturn");
    }
    zero = LLVMConstInt(e->i32, 0, 0);
    v = LLVMBuildCall2(e->b, t, fn, &zero, 1, "");
    LLVMSetInstructionCallConv(v, LLVMSPIRFUNCCallConv);
    return e->si == e->i64 ? v : LLVMBuildTrunc(e->b, v, e->si, "");
}

LLVMValueRef emit_local_array(emit *e, size_t bytes)
{
    LLVMTypeRef t = LLVMArrayType2(e->i8, bytes);
    LLVMValueRef v = LLVMAddGlobalInAddressSpace(
        e->m, t, sd_arena_fmt(e->a, "%s.local", e->k->name), e->local_as);

    LLVMSetLinkage(v, LLVMInternalLinkage);
    LLVMSetInitializer(v, LLVMGetUndef(t));
    LLVMSetAlignment(v, 64);
    return v;
}

void emit_barrier(emit *e)
{
    emit_fence(e, 1);
}

void emit_fence(emit *e, int flags)
{
    LLVMTypeRef t =
        LLVMFunctionType(LLVMVoidTypeInContext(e->cx), &e->i32, 1, 0);
    LLVMValueRef fn = LLVMGetNamedFunction(e->m, "_Z7barrierj"), v, local;

    if (!fn) {
        fn = LLVMAddFunction(e->m, "_Z7barrierj", t);
        LLVMSetFunctionCallConv(fn, LLVMSPIRFUNCCallConv);
        add_attribute(e, fn, LLVMAttributeFunctionIndex, "convergent");
        add_attribute(e, fn, LLVMAttributeFunctionIndex, "nounwind");
    }
    local = LLVMConstInt(e->i32, (unsigned)flags, 0);
    v = LLVMBuildCall2(e->b, t, fn, &local, 1, "");
    LLVMSetInstructionCallConv(v, LLVMSPIRFUNCCallConv);
}

static void start_function(emit *e)
{
    LLVMBasicBlockRef start;

    e->entry = emit_block(e, "entry");
    start = emit_block(e, "start");
    LLVMPositionBuilderAtEnd(e->b, e->entry);
    LLVMBuildBr(e->b, start);
    LLVMPositionBuilderAtEnd(e->b, start);
}

static void size_metadata(emit *e, const char *name, int n, const int *size)
{
    LLVMMetadataRef at[3];

    for (int i = 0; i < n; i++)
        at[i] = LLVMValueAsMetadata(LLVMConstInt(e->i32, (unsigned)size[i], 0));
    LLVMGlobalSetMetadata(
        e->fn, LLVMGetMDKindIDInContext(e->cx, name, (unsigned)strlen(name)),
        LLVMMDNodeInContext2(e->cx, at, (size_t)n));
}

static void begin_gpu(emit *e)
{
    LLVMTypeRef *t = sd_arena_array(e->a, LLVMTypeRef, e->k->nslot + 1);
    int size[3] = {e->k->group, 1, 1};

    for (int i = 0; i < e->k->nslot; i++)
        t[i] = e->ptr;
    e->fn = LLVMAddFunction(e->m, e->k->name,
                            LLVMFunctionType(LLVMVoidTypeInContext(e->cx), t,
                                             (unsigned)e->k->nslot, 0));
    LLVMSetFunctionCallConv(e->fn, LLVMSPIRKERNELCallConv);
    add_attribute(e, e->fn, LLVMAttributeFunctionIndex, "nounwind");
    size_metadata(e, "reqd_work_group_size", 3, size);
    if (e->dev->subgroup)
        size_metadata(e, "intel_reqd_sub_group_size", 1, &e->dev->subgroup);
    start_function(e);
    e->lid = builtin_id(e, "_Z12get_local_idj");
    e->first = builtin_id(e, "_Z12get_group_idj");
    e->last = LLVMBuildAdd(e->b, e->first, emit_si(e, 1), "");
    for (int i = 0; i < e->k->nslot; i++)
        e->slot[i] = LLVMGetParam(e->fn, (unsigned)i);
    if (e->local_bytes)
        e->local = emit_local_array(e, e->local_bytes);
}

/* One function: pointers that were noalias arguments of a body of its own
 * bought nothing (what does not vary is hoisted already) and cost a third of
 * the compile time of small kernels. */
static void begin_host(emit *e)
{
    LLVMTypeRef t[4] = {e->ptr, e->i64, e->i64, e->ptr};
    LLVMValueRef index, at;

    e->fn = LLVMAddFunction(
        e->m, e->k->name,
        LLVMFunctionType(LLVMVoidTypeInContext(e->cx), t, 4, 0));
    add_attribute(e, e->fn, LLVMAttributeFunctionIndex, "nounwind");
    start_function(e);
    for (int i = 0; i < e->k->nslot; i++) {
        index = emit_i64(e, i);
        at = LLVMBuildGEP2(e->b, e->ptr, LLVMGetParam(e->fn, 0), &index, 1, "");
        e->slot[i] = LLVMBuildLoad2(e->b, e->ptr, at, "");
    }
    e->first = LLVMGetParam(e->fn, 1);
    e->last = LLVMGetParam(e->fn, 2);
    e->scratch = LLVMGetParam(e->fn, 3);
}

static void emit_init(emit *e, const plan_kernel *k)
{
    e->k = k;
    e->gpu = e->dev->kind != DEVICE_HOST;
    e->w = SD_MAX(k->lanes, 1);
    e->lane = -1;
    e->outer = 0;
    for (int i = 0; i < k->naxis; i++) {
        if (k->axis[i].place == PLAN_LANE)
            e->lane = i;
        /* Updates on the host go window by window, not element by element of
         * the window: their order at one place is the same. */
        if (k->axis[i].outer ||
            (k->cls == PLAN_SCATTERING && !e->gpu && k->nstage == 1))
            e->outer |= (uint64_t)1 << i;
    }
    memset(e->axis, 0, sizeof e->axis);
    memset(e->level, 0, sizeof e->level);
    e->depth = e->standing = e->outer_depth = 0;
    plan_copies(e);
    e->value = sd_arena_array(e->a, emit_slot, (k->nnode + 1) * e->ncopy);
    e->several = sd_arena_array(e->a, emit_value *, k->nnode + 1);
    e->running = sd_arena_array(e->a, void *, k->nnode + 1);
    e->needed = sd_arena_array(e->a, bool, k->nnode + 1);
    e->parked = sd_arena_array(e->a, bool, k->nnode + 1);
    e->slot = sd_arena_array(e->a, LLVMValueRef, k->nslot + 1);
    emit_note_uses(e);
    emit_find_woven(e);
    emit_index_init(e);
    place_areas(e);
}

static sd_status check_type(const emit *e, sd_dtype t)
{
    if (sd_dtype_part(t) == SD_F64 && !(e->dev->features & DEVICE_HAS_F64))
        return sd_error(SD_UNIMPLEMENTED,
                        "f64 on %s, which has none: use f32 (JAX without "
                        "jax_enable_x64) or SUNDOG_DEVICE=host",
                        e->dev->name);
    return NULL;
}

static sd_status check_kernel(const emit *e)
{
    const plan_kernel *k = e->k;
    sd_status st = NULL;

    assert(k->naxis <= EMIT_AXES); /* a mask has no more bits */
    for (int i = 0; i < k->nnode && !st; i++)
        st = check_type(e, k->node[i]->dtype);
    for (int i = 0; k->call && i < k->nslot && !st; i++)
        st = check_type(e, k->slot[i].dtype);
    return st;
}

/* The rows of blocks come last; a scatter's batches, then axes that are outer
 * though the plan has them inner (see emit_init), then the other outer ones. */
static int rank_of(const emit *e, int axis)
{
    const plan_axis *x = &e->k->axis[axis];

    if (!x->outer)
        return 1;
    if (e->k->blocks)
        return e->k->blocks->rest >> axis & 1 ? 1 : 2;
    return e->k->cls == PLAN_SCATTERING && x->place == PLAN_UNROLL ? 0 : 2;
}

/* LANE innermost. */
static void order_axes(nest *t)
{
    emit *e = t->e;

    for (int r = 0; r < 3; r++)
        for (int i = 0; i < e->k->naxis; i++)
            if ((e->outer >> i & 1) && i != e->lane && rank_of(e, i) == r)
                t->order[t->norder++] = i;
    if (e->lane >= 0 && (e->outer >> e->lane & 1))
        t->order[t->norder++] = e->lane;
}

sd_status emit_kernel(emit *e, const plan_kernel *k)
{
    nest t = {.e = e};
    sd_status st;

    if (k->loop)
        return sd_note(emit_whole_loop(e, k), "kernel %s", k->name);
    e->k = k;
    st = check_kernel(e);
    if (st)
        return sd_note(st, "kernel %s", k->name);
    emit_init(e, k);
    if (e->gpu)
        begin_gpu(e);
    else
        begin_host(e);
    order_axes(&t);
    if (k->sort)
        emit_sort(e);
    else if (k->call)
        emit_device_call(e);
    else
        tiles(&t, e->first, e->last);
    LLVMBuildRetVoid(e->b);
    st = e->st;
    e->st = NULL;
    return sd_note(st, "kernel %s", k->name);
}
