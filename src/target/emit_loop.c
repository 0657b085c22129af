/* A loop as one kernel: the kernels of its steps become functions of their own,
 * the small ones inlined, and around them go the branches that the steps say.
 *
 * What is small of the loop's memory is kept in local variables while it runs,
 * so that a loop of scalars has them in registers; they are filled before the
 * first turn and written back after the last.
 *
 * The scratch starts with the address of the run's mark: each turn looks at it
 * and ends the loop when somebody wants the run to end. */
#include "emit.h"
#include "target_room.h"

enum { SMALL_CELL = 64, INLINE_NODES = 80, MOST_INLINED = 600 };
#define INLINE_NS 100.0

typedef struct {
    emit *e;
    const plan_kernel *k;
    LLVMTypeRef type; /* of every kernel's function */
    LLVMValueRef *cell; /* addresses; small ones: of the variable */
    uint64_t *base; /* [cell]: the offset in the buffer that it is of */
    sd_map *made; /* plan_kernel -> function */
    int inlined; /* nodes so far */
    LLVMValueRef stop; /* address of the run's mark */
    LLVMValueRef inner; /* scratch of the kernels */
    LLVMBasicBlockRef done;
    sd_status st;
} looper;

/* ---- the kernels of the steps ---- */

static void add_attribute(emit *e, LLVMValueRef fn, const char *name)
{
    unsigned id = LLVMGetEnumAttributeKindForName(name, strlen(name));

    LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(e->cx, id, 0));
}

static bool is_inlined(const looper *l, const plan_kernel *k)
{
    return !k->sort && !k->call && k->tiles == 1 && k->nnode <= INLINE_NODES &&
           target_guess_ns(k) <= INLINE_NS &&
           l->inlined + k->nnode <= MOST_INLINED;
}

static void make_kernel(looper *l, const plan_kernel *k)
{
    emit *e = l->e;
    plan_kernel *own;

    if (sd_map_get(l->made, sd_key(k)) || l->st)
        return;
    own = sd_arena_copy(e->a, k, sizeof *k);
    own->name = sd_arena_fmt(e->a, "%s.%s", l->k->name, k->name);
    e->keeps_memory = is_inlined(l, k);
    l->st = emit_kernel(e, own);
    LLVMSetLinkage(e->fn, LLVMInternalLinkage);
    add_attribute(e, e->fn, is_inlined(l, k) ? "alwaysinline" : "noinline");
    sd_map_set(l->made, sd_key(k), e->fn);
}

static void make_kernels(looper *l, const thunk *t)
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
    LLVMValueRef off = emit_i64(e, (int64_t)bytes);

    return bytes ? LLVMBuildGEP2(e->b, e->i8, p, &off, 1, "") : p;
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
static void open_cell(looper *l, int i)
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

static void close_cell(looper *l, int i)
{
    const plan_cell *c = &l->k->loop->cell.at[i];

    if (is_small(c) && c->written)
        copy(l->e, slot_of(l->e, i),
             behind(l->e, l->cell[i], c->slice.offset - l->base[i]),
             c->slice.bytes);
}

static LLVMValueRef address(looper *l, const thunk_slice *s)
{
    const plan_loop *loop = l->k->loop;

    for (int i = 0; i < loop->cell.n; i++)
        if (thunk_slices_overlap(loop->cell.at[i].slice, *s))
            return behind(l->e, l->cell[i], s->offset - l->base[i]);
    return LLVMConstNull(l->e->ptr); /* of no bytes */
}

/* ---- the steps ---- */

static void run_seq(looper *l, const thunk_seq *seq);

/* The array of slots is filled once, before the first turn. */
static void run_kernel(looper *l, const thunk *t)
{
    emit *e = l->e;
    const plan_kernel *k = l->k->loop->kernel[t->kernel];
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

static void run_copy(looper *l, const thunk *t)
{
    emit *e = l->e;
    LLVMValueRef from = address(l, &t->arg[0]), to = address(l, &t->arg[1]);

    if (t->arg[1].bytes)
        LLVMBuildMemMove(e->b, to, 1, from, 1,
                         emit_i64(e, (int64_t)t->arg[1].bytes));
}

static void go_on_unless_stopped(looper *l)
{
    emit *e = l->e;
    LLVMBasicBlockRef next = emit_block(e, "turn");
    LLVMValueRef mark = LLVMBuildLoad2(e->b, e->i8, l->stop, "");

    LLVMSetOrdering(mark, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(mark, 1);
    LLVMBuildCondBr(
        e->b, LLVMBuildICmp(e->b, LLVMIntEQ, mark, LLVMConstNull(e->i8), ""),
        next, l->done);
    LLVMPositionBuilderAtEnd(e->b, next);
}

static LLVMValueRef read_flag(looper *l, const thunk_slice *s)
{
    emit *e = l->e;
    LLVMValueRef v = LLVMBuildLoad2(e->b, e->i8, address(l, s), "");

    return LLVMBuildICmp(e->b, LLVMIntNE, v, LLVMConstNull(e->i8), "");
}

/* Its condition is asked also where its turns are known: a comparison in
 * registers, from which LLVM knows what the counter can be. */
static void run_while(looper *l, const thunk *t)
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
static void run_cond(looper *l, const thunk *t)
{
    emit *e = l->e;
    LLVMBasicBlockRef after = emit_block(e, "after");
    LLVMValueRef which, sw;
    LLVMBasicBlockRef last = emit_block(e, "branch");

    if (t->arg[0].bytes == 1)
        which = LLVMBuildSelect(e->b, read_flag(l, &t->arg[0]),
                                LLVMConstNull(e->i32),
                                LLVMConstInt(e->i32, 1, 0), "");
    else
        which = LLVMBuildLoad2(e->b, e->i32, address(l, &t->arg[0]), "");
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

static void run_step(looper *l, const thunk *t)
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

static void run_seq(looper *l, const thunk_seq *seq)
{
    for (int i = 0; i < seq->n; i++)
        run_step(l, &seq->at[i]);
}

/* ---- the function ---- */

static void begin(looper *l)
{
    emit *e = l->e;
    LLVMBasicBlockRef start;

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
    LLVMTypeRef t[4] = {e->ptr, e->i64, e->i64, e->ptr};
    looper l = {.e = e, .k = k, .made = sd_map_create(e->a)};

    l.type = LLVMFunctionType(LLVMVoidTypeInContext(e->cx), t, 4, 0);
    l.cell = sd_arena_array(e->a, LLVMValueRef, k->nslot + 1);
    l.base = sd_arena_array(e->a, uint64_t, k->nslot + 1);
    make_kernels(&l, k->loop->step);
    if (l.st)
        return l.st;
    begin(&l);
    run_while(&l, k->loop->step);
    LLVMBuildBr(e->b, l.done);
    LLVMPositionBuilderAtEnd(e->b, l.done);
    for (int i = 0; i < k->nslot; i++)
        close_cell(&l, i);
    LLVMBuildRetVoid(e->b);
    e->loops = true;
    return NULL;
}
