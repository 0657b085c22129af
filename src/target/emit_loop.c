/* A loop as one kernel: the kernels of its steps become functions of their own,
 * the small ones inlined, and around them go the branches that the steps say.
 *
 * On the host, what is small of the loop's memory is kept in local variables
 * while it runs, so that a loop of scalars has them in registers; they are
 * filled before the first turn and written back after the last.  The scratch
 * starts with the address of the run's mark: each turn looks at it and ends the
 * loop when somebody wants the run to end.  What differs where a group of a GPU
 * runs the loop is in emit_loop_group.c. */
#include "emit_loop.h"
#include "target_room.h"

enum { SMALL_CELL = 64 };
#define INLINE_NS 100.0

/* ---- the kernels of the steps ---- */

static void add_attribute(emit *e, LLVMValueRef fn, const char *name)
{
    unsigned id = LLVMGetEnumAttributeKindForName(name, strlen(name));

    LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(e->cx, id, 0));
}

/* A GPU's group does few tiles, and calls are dear there. */
static bool is_inlined(const emit_looper *l, const plan_kernel *k)
{
    bool brief =
        l->e->gpu || (k->tiles == 1 && target_guess_ns(k) <= INLINE_NS);

    return !k->sort && !k->call && brief && k->nnode <= EMIT_INLINE_NODES &&
           l->inlined + k->nnode <= EMIT_MOST_INLINED;
}

static void make_kernel(emit_looper *l, const plan_kernel *k)
{
    emit *e = l->e;
    plan_kernel *own;

    if (sd_map_get(l->made, sd_key(k)) || l->st)
        return;
    own = sd_arena_copy(e->a, k, sizeof *k);
    own->name = sd_arena_fmt(e->a, "%s$%s", l->k->name, k->name);
    e->keeps_memory = is_inlined(l, k);
    e->loop_items = l->k->group;
    l->st = emit_kernel(e, own);
    e->loop_items = 0;
    LLVMSetLinkage(e->fn, LLVMInternalLinkage);
    add_attribute(e, e->fn, is_inlined(l, k) ? "alwaysinline" : "noinline");
    sd_map_set(l->made, sd_key(k), e->fn);
}

static void make_kernels(emit_looper *l, const thunk *t)
{
    const plan_kernel *k;

    if (t->kind == THUNK_KERNEL) {
        k = l->k->loop->kernel[t->kernel];
        make_kernel(l, k);
        l->inlined += is_inlined(l, k) ? k->nnode : 0;
    }
    for (int i = 0; i < t->nseq; i++)
        for (int j = 0; j < t->seq[i].n; j++)
            make_kernels(l, &t->seq[i].at[j]);
}

/* ---- memory ---- */

static LLVMValueRef behind(emit *e, LLVMValueRef p, uint64_t bytes)
{
    return bytes ? emit_behind(e, e->i8, p, emit_i64(e, (int64_t)bytes)) : p;
}

static LLVMValueRef slot_of(emit *e, int i)
{
    LLVMValueRef at = behind(e, LLVMGetParam(e->fn, 0), 8 * (uint64_t)i);

    return LLVMBuildLoad2(e->b, e->ptr, at, "");
}

static bool is_small(const plan_cell *c)
{
    return c->slice.offset % SMALL_CELL + c->slice.bytes <= SMALL_CELL;
}

static void copy(emit *e, LLVMValueRef to, LLVMValueRef from, uint64_t bytes)
{
    LLVMBuildMemCpy(e->b, to, 1, from, 1, emit_i64(e, (int64_t)bytes));
}

/* A variable lies in its 64 bytes as it lies in memory, so that what kernels
 * know of alignment holds. */
static void open_cell(emit_looper *l, int i)
{
    emit *e = l->e;
    const plan_cell *c = &l->k->loop->cell.at[i];
    LLVMValueRef from = slot_of(e, i);

    if (!is_small(c)) {
        l->cell[i] = from;
        l->base[i] = c->slice.offset;
        return;
    }
    l->base[i] = c->slice.offset / SMALL_CELL * SMALL_CELL;
    l->cell[i] = emit_alloca(e, LLVMArrayType2(e->i8, SMALL_CELL));
    LLVMSetAlignment(l->cell[i], SMALL_CELL);
    copy(e, behind(e, l->cell[i], c->slice.offset - l->base[i]), from,
         c->slice.bytes);
}

static void close_cell(emit_looper *l, int i)
{
    const plan_cell *c = &l->k->loop->cell.at[i];

    if (is_small(c) && c->written)
        copy(l->e, slot_of(l->e, i),
             behind(l->e, l->cell[i], c->slice.offset - l->base[i]),
             c->slice.bytes);
}

static LLVMValueRef address(emit_looper *l, const thunk_slice *s)
{
    const plan_loop *loop = l->k->loop;

    for (int i = 0; i < loop->cell.n; i++)
        if (thunk_slices_overlap(loop->cell.at[i].slice, *s))
            return behind(l->e, l->cell[i], s->offset - l->base[i]);
    return LLVMConstNull(l->e->ptr); /* of no bytes */
}

/* ---- the steps ---- */

static void run_seq(emit_looper *l, const thunk_seq *seq);

/* The array of slots is filled once, before the first turn. */
static void call_on_host(emit_looper *l, const thunk *t, const plan_kernel *k)
{
    emit *e = l->e;
    LLVMTypeRef array = LLVMArrayType2(e->ptr, (uint64_t)SD_MAX(t->narg, 1));
    LLVMValueRef slots = emit_alloca(e, array);
    LLVMValueRef arg[4] = {slots, emit_i64(e, 0), emit_i64(e, k->tiles),
                           l->inner};
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);

    emit_return_to(e, e->entry);
    for (int i = 0; i < t->narg; i++)
        LLVMBuildStore(e->b, address(l, &t->arg[i]),
                       behind(e, slots, 8 * (uint64_t)i));
    emit_return_to(e, here);
    LLVMBuildCall2(e->b, l->type, sd_map_get(l->made, sd_key(k)), arg, 4, "");
}

static void run_kernel(emit_looper *l, const thunk *t)
{
    const plan_kernel *k = l->k->loop->kernel[t->kernel];
    LLVMValueRef *slot;

    if (!l->e->gpu) {
        call_on_host(l, t, k);
        return;
    }
    slot = sd_arena_array(l->e->a, LLVMValueRef, t->narg + EMIT_LOOP_NUMBERS);
    for (int i = 0; i < t->narg; i++)
        slot[i] = address(l, &t->arg[i]);
    emit_loop_call_group(l, k, slot);
}

static void run_copy(emit_looper *l, const thunk *t)
{
    emit *e = l->e;
    LLVMValueRef from = address(l, &t->arg[0]), to = address(l, &t->arg[1]);

    if (!t->arg[1].bytes)
        return;
    if (e->gpu)
        emit_loop_copy_group(l, t, to, from);
    else
        LLVMBuildMemMove(e->b, to, 1, from, 1,
                         emit_i64(e, (int64_t)t->arg[1].bytes));
}

static void go_on_unless_stopped(emit_looper *l)
{
    emit *e = l->e;
    LLVMBasicBlockRef next;
    LLVMValueRef mark;

    if (e->gpu) {
        if (l->k->loop->told)
            emit_loop_look_group(l);
        return;
    }
    next = emit_block(e, "turn");
    mark = LLVMBuildLoad2(e->b, e->i8, l->stop, "");
    LLVMSetOrdering(mark, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(mark, 1);
    LLVMBuildCondBr(e->b, emit_equal(e, mark, LLVMConstNull(e->i8)), next,
                    l->done);
    LLVMPositionBuilderAtEnd(e->b, next);
}

/* What follows may write over it: no item goes on before all have read it. */
static LLVMValueRef read_number(emit_looper *l, LLVMTypeRef t,
                                const thunk_slice *s)
{
    LLVMValueRef v = LLVMBuildLoad2(l->e->b, t, address(l, s), "");

    if (l->e->gpu)
        emit_loop_meet(l);
    return v;
}

static LLVMValueRef read_flag(emit_looper *l, const thunk_slice *s)
{
    emit *e = l->e;

    return emit_unequal(e, read_number(l, e->i8, s), LLVMConstNull(e->i8));
}

/* Its condition is asked also where its turns are known: a comparison in
 * registers, from which LLVM knows what the counter can be. */
static void run_while(emit_looper *l, const thunk *t)
{
    emit *e = l->e;
    LLVMBasicBlockRef head = emit_block(e, "while"),
                      body = emit_block(e, "body"),
                      after = emit_block(e, "after");

    LLVMBuildBr(e->b, head);
    LLVMPositionBuilderAtEnd(e->b, head);
    go_on_unless_stopped(l);
    run_seq(l, &t->seq[0]);
    LLVMBuildCondBr(e->b, read_flag(l, &t->arg[0]), body, after);
    LLVMPositionBuilderAtEnd(e->b, body);
    run_seq(l, &t->seq[1]);
    LLVMBuildBr(e->b, head);
    LLVMPositionBuilderAtEnd(e->b, after);
}

/* A predicate takes branch 0 when true; an index out of range the last. */
static void run_cond(emit_looper *l, const thunk *t)
{
    emit *e = l->e;
    LLVMBasicBlockRef after = emit_block(e, "after");
    LLVMValueRef which, sw;
    LLVMBasicBlockRef last = emit_block(e, "branch");

    if (t->arg[0].bytes == 1)
        which = emit_select(e, read_flag(l, &t->arg[0]), LLVMConstNull(e->i32),
                            LLVMConstInt(e->i32, 1, 0));
    else
        which = read_number(l, e->i32, &t->arg[0]);
    sw = LLVMBuildSwitch(e->b, which, last, (unsigned)t->nseq);
    for (int i = 0; i < t->nseq; i++) {
        LLVMBasicBlockRef b = i == t->nseq - 1 ? last : emit_block(e, "branch");

        if (b != last)
            LLVMAddCase(sw, LLVMConstInt(e->i32, (unsigned)i, 0), b);
        LLVMPositionBuilderAtEnd(e->b, b);
        run_seq(l, &t->seq[i]);
        LLVMBuildBr(e->b, after);
    }
    LLVMPositionBuilderAtEnd(e->b, after);
}

static void run_step(emit_looper *l, const thunk *t)
{
    switch (t->kind) {
    case THUNK_KERNEL:
        run_kernel(l, t);
        break;
    case THUNK_COPY:
        run_copy(l, t);
        break;
    case THUNK_WHILE:
        run_while(l, t);
        break;
    default:
        assert(t->kind == THUNK_COND); /* others do not fit: target_loop.c */
        run_cond(l, t);
    }
}

static void run_seq(emit_looper *l, const thunk_seq *seq)
{
    for (int i = 0; i < seq->n; i++) {
        run_step(l, &seq->at[i]);
        if (l->e->gpu)
            emit_loop_meet(l);
    }
}

/* ---- the function ---- */

static void begin_on_host(emit_looper *l)
{
    emit *e = l->e;
    LLVMTypeRef t[4] = {e->ptr, e->i64, e->i64, e->ptr};
    LLVMBasicBlockRef start;

    l->type = LLVMFunctionType(LLVMVoidTypeInContext(e->cx), t, 4, 0);
    e->fn = LLVMAddFunction(e->m, l->k->name, l->type);
    add_attribute(e, e->fn, "nounwind");
    e->entry = emit_block(e, "entry");
    start = emit_block(e, "start");
    l->done = emit_block(e, "done");
    LLVMPositionBuilderAtEnd(e->b, e->entry);
    LLVMBuildBr(e->b, start);
    emit_return_to(e, e->entry);
    for (int i = 0; i < l->k->nslot; i++)
        open_cell(l, i);
    l->stop = LLVMBuildLoad2(e->b, e->ptr, LLVMGetParam(e->fn, 3), "");
    l->inner = behind(e, LLVMGetParam(e->fn, 3), PLAN_LOOP_HEAD);
    LLVMPositionBuilderAtEnd(e->b, start);
}

sd_status emit_whole_loop(emit *e, const plan_kernel *k)
{
    emit_looper l = {.e = e, .k = k, .made = sd_map_create(e->a)};

    l.cell = sd_arena_array(e->a, LLVMValueRef, k->nslot + 1);
    l.base = sd_arena_array(e->a, uint64_t, k->nslot + 1);
    make_kernels(&l, k->loop->step);
    if (l.st)
        return l.st;
    if (e->gpu)
        emit_loop_begin_group(&l);
    else
        begin_on_host(&l);
    run_step(&l, k->loop->step);
    LLVMBuildBr(e->b, l.done);
    LLVMPositionBuilderAtEnd(e->b, l.done);
    for (int i = 0; i < k->nslot && !e->gpu; i++)
        close_cell(&l, i);
    LLVMBuildRetVoid(e->b);
    e->loops = true;
    return NULL;
}
