/* A loop that one group of a GPU runs: each step is done by all of its items,
 * which then wait for each other, so that a step sees what those before it
 * wrote.  Memory stays where it is: what a group reads again lies in its cache.
 *
 * A kernel of several groups has them side by side as far as the items go, the
 * rest one after the other; one whose items wait for each other has them all
 * one after the other, by the first items. */
#include "emit_loop.h"

/* A slot for each cell, and the address of the word that ends the loop, where
 * one does. */
void emit_loop_begin_group(emit_looper *l)
{
    emit *e = l->e;
    unsigned n = (unsigned)l->k->nslot;
    bool told = l->k->loop->told;
    LLVMTypeRef *t = sd_arena_array(e->a, LLVMTypeRef, n + 1);

    for (unsigned i = 0; i <= n; i++)
        t[i] = e->ptr;
    e->k = l->k;
    e->si = e->i32;
    e->fn = LLVMAddFunction(
        e->m, l->k->name,
        LLVMFunctionType(LLVMVoidTypeInContext(e->cx), t, n + told, 0));
    LLVMSetFunctionCallConv(e->fn, e->abi->kernel_cc);
    emit_attribute(e, e->fn, LLVMAttributeFunctionIndex, "nounwind");
    e->abi->mark(e);
    emit_start_function(e);
    for (unsigned i = 0; i < n; i++) {
        l->cell[i] = LLVMGetParam(e->fn, i);
        l->base[i] = l->k->loop->cell.at[i].slice.offset;
    }
    l->item =
        LLVMBuildIntCast2(e->b, e->abi->id(e, EMIT_ITEM), e->i32, false, "");
    l->done = emit_block(e, "done");
    if (!told)
        return;
    l->stop = LLVMGetParam(e->fn, n);
    l->turns = emit_alloca(e, e->i32);
    emit_put(e, LLVMConstNull(e->i32), l->turns);
}

void emit_loop_meet(emit_looper *l)
{
    emit_fence(l->e, EMIT_LOCAL | EMIT_GLOBAL);
}

/* ---- a kernel ---- */

typedef struct {
    LLVMBasicBlockRef head, after;
    LLVMValueRef at;
} stride;

/* for (at = from; at < to; at += by) */
static stride open_stride(emit *e, LLVMValueRef from, int64_t to)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b),
                      body = emit_block(e, "body");
    stride s = {.head = emit_block(e, "each"), .after = emit_block(e, "after")};

    LLVMBuildBr(e->b, s.head);
    LLVMPositionBuilderAtEnd(e->b, s.head);
    s.at = LLVMBuildPhi(e->b, LLVMTypeOf(from), "");
    LLVMAddIncoming(s.at, &from, &before, 1);
    LLVMBuildCondBr(e->b, emit_below(e, s.at, emit_int_like(s.at, to)), body,
                    s.after);
    LLVMPositionBuilderAtEnd(e->b, body);
    return s;
}

static void close_stride(emit *e, const stride *s, int64_t by)
{
    LLVMValueRef next = emit_plus(e, s->at, by);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);

    LLVMAddIncoming(s->at, &next, &here, 1);
    LLVMBuildBr(e->b, s->head);
    LLVMPositionBuilderAtEnd(e->b, s->after);
}

static void call(emit_looper *l, const plan_kernel *k, LLVMValueRef *slot,
                 LLVMValueRef item, LLVMValueRef group)
{
    LLVMValueRef fn = sd_map_get(l->made, sd_key(k));

    slot[k->nslot] = item;
    slot[k->nslot + 1] = group;
    LLVMSetInstructionCallConv(
        LLVMBuildCall2(l->e->b, LLVMGlobalGetValueType(fn), fn, slot,
                       (unsigned)k->nslot + EMIT_LOOP_NUMBERS, ""),
        l->e->abi->function_cc);
}

/* NULL: they are all. */
static LLVMBasicBlockRef first_items(emit_looper *l, int64_t n)
{
    emit *e = l->e;

    return n == l->k->group
               ? NULL
               : emit_when(e, emit_below(e, l->item, emit_si(e, n)));
}

/* Items of one group of k make the same turns, so they may hand each other
 * values. */
static void call_beside(emit_looper *l, const plan_kernel *k,
                        LLVMValueRef *slot)
{
    emit *e = l->e;
    LLVMValueRef item = emit_rest(e, l->item, k->group),
                 first = emit_over(e, l->item, k->group);
    LLVMBasicBlockRef no;
    stride s;

    if (k->tiles * k->group > l->k->group) {
        s = open_stride(e, first, k->tiles);
        call(l, k, slot, item, s.at);
        close_stride(e, &s, l->k->group / k->group);
        return;
    }
    no = first_items(l, k->tiles * k->group);
    call(l, k, slot, item, first);
    emit_when_end(e, no);
}

/* The items of a group of k wait for each other. */
static void meet_of(emit_looper *l, const plan_kernel *k)
{
    l->e->k = k;
    l->e->loop_items = l->k->group;
    emit_loop_meet(l);
    l->e->loop_items = 0;
    l->e->k = l->k;
}

/* A group may write to local memory what the one before it still reads. */
static void call_in_turn(emit_looper *l, const plan_kernel *k,
                         LLVMValueRef *slot)
{
    emit *e = l->e;
    LLVMBasicBlockRef no = first_items(l, k->group);

    assert(e->abi->any || !no); /* target_loop.c: all of them meet, or none */
    for (int i = 0; i < k->tiles; i++) {
        if (i)
            meet_of(l, k);
        call(l, k, slot, l->item, emit_si(e, i));
    }
    emit_when_end(e, no);
}

void emit_loop_call_group(emit_looper *l, const plan_kernel *k,
                          LLVMValueRef *slot)
{
    if (k->local_bytes)
        call_in_turn(l, k, slot);
    else
        call_beside(l, k, slot);
}

/* ---- the rest ---- */

/* By words as wide as the addresses allow: memory begins where 16 bytes do. */
static int64_t word_of(uint64_t to, uint64_t from, uint64_t bytes)
{
    int64_t word = 8;

    while ((to | from | bytes) % (uint64_t)word)
        word /= 2;
    return word;
}

void emit_loop_copy_group(emit_looper *l, const thunk *t, LLVMValueRef to,
                          LLVMValueRef from)
{
    emit *e = l->e;
    uint64_t bytes = t->arg[1].bytes;
    int64_t word = word_of(t->arg[1].offset, t->arg[0].offset, bytes);
    LLVMTypeRef type = LLVMIntTypeInContext(e->cx, 8 * (unsigned)word);
    stride s = open_stride(e, l->item, (int64_t)bytes / word);
    LLVMValueRef v;

    from = emit_behind(e, type, from, s.at);
    to = emit_behind(e, type, to, s.at);
    v = LLVMBuildLoad2(e->b, type, from, "");
    emit_put(e, v, to);
    close_stride(e, &s, l->k->group);
}

/* To read the word takes as long as a short turn.  All items go the same way.
 */
void emit_loop_look_group(emit_looper *l)
{
    emit *e = l->e;
    LLVMBasicBlockRef look = emit_block(e, "look"),
                      next = emit_block(e, "turn");
    LLVMValueRef n = LLVMBuildLoad2(e->b, e->i32, l->turns, ""), word;
    int each = l->k->loop->unasked;

    emit_put(e, emit_plus(e, n, 1), l->turns);
    LLVMBuildCondBr(
        e->b, emit_equal(e, emit_rest(e, n, each), emit_int_like(n, each - 1)),
        look, next);
    LLVMPositionBuilderAtEnd(e->b, look);
    word = LLVMBuildLoad2(e->b, e->i32, l->stop, "");
    LLVMSetVolatile(word, true);
    word = emit_unequal(e, word, LLVMConstNull(e->i32));
    LLVMBuildCondBr(e->b, e->abi->any(e, word), l->done, next);
    LLVMPositionBuilderAtEnd(e->b, next);
}
