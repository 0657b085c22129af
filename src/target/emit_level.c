/* Levels, loops and copies: see emit.h. */
#include <llvm-c/DebugInfo.h>

#include "emit.h"

emit_mark emit_go_to(emit *e, int level)
{
    emit_mark m = {LLVMGetInsertBlock(e->b), e->standing};

    if (level < e->standing) {
        emit_return_to(e, e->level[level + 1].pre);
        e->standing = level;
    }
    return m;
}

void emit_back(emit *e, emit_mark m)
{
    if (m.standing == e->standing)
        return;
    e->standing = m.standing;
    emit_return_to(e, m.block);
}

/* What is made in the one step of a row that is kept stands before the steps of
 * the passes that follow, too. */
void emit_remember(emit *e, emit_slot *s, emit_value v, int level)
{
    bool kept = e->k->keeps && level > e->outer_depth &&
                level == e->axis[e->lane].level;

    s->v = v;
    s->set = true;
    s->level = level;
    *sd_push(e->a, &e->level[kept ? e->outer_depth : level].made) = s;
}

LLVMBasicBlockRef emit_block(emit *e, const char *name)
{
    return LLVMAppendBasicBlockInContext(e->cx, e->fn, name);
}

void emit_level_open(emit *e, LLVMBasicBlockRef pre)
{
    assert(e->depth + 1 < EMIT_MAX_LEVELS && e->standing == e->depth);
    e->depth++;
    e->standing = e->depth;
    e->level[e->depth].pre = pre;
    e->level[e->depth].made.n = 0;
}

void emit_level_close(emit *e)
{
    for (int i = 0; i < e->level[e->depth].made.n; i++)
        e->level[e->depth].made.at[i]->set = false;
    e->depth--;
    e->standing = e->depth;
}

/* y - x, or -1: not known. */
static int64_t known_distance(LLVMValueRef x, LLVMValueRef y)
{
    if (!LLVMIsAConstantInt(x) || !LLVMIsAConstantInt(y))
        return -1;
    return LLVMConstIntGetSExtValue(y) - LLVMConstIntGetSExtValue(x);
}

/* The block it is called in ends in an unconditional branch, so that what is
 * hoisted there also serves the loops after this one.  One step is no loop: its
 * position, and so the masks of a short row, are constants. */
void emit_loop_open(emit *e, emit_loop *l, LLVMValueRef from, LLVMValueRef to,
                    int64_t step)
{
    LLVMBasicBlockRef enter;
    int64_t n = known_distance(from, to);

    l->body = emit_block(e, "loop");
    l->exit = emit_block(e, "done");
    l->to = to;
    l->step = step;
    l->once = n > 0 && n <= step;
    l->rolled = false;
    if (n > 0) {
        enter = LLVMGetInsertBlock(e->b);
        LLVMBuildBr(e->b, l->body);
    } else {
        enter = emit_block(e, "enter");
        LLVMBuildBr(e->b, enter);
        LLVMPositionBuilderAtEnd(e->b, enter);
        LLVMBuildCondBr(e->b, emit_below(e, from, to), l->body, l->exit);
    }
    LLVMPositionBuilderAtEnd(e->b, l->body);
    l->at = from;
    if (l->once)
        return;
    l->at = LLVMBuildPhi(e->b, LLVMTypeOf(from), "");
    LLVMAddIncoming(l->at, &from, &enter, 1);
}

LLVMValueRef emit_rolled(LLVMContextRef cx)
{
    static const char disable[] = "llvm.loop.unroll.disable";
    LLVMMetadataRef self = LLVMTemporaryMDNode(cx, NULL, 0), list[2];

    list[0] = LLVMMDStringInContext2(cx, disable, sizeof disable - 1);
    list[1] = LLVMMDNodeInContext2(cx, list, 1);
    list[0] = self;
    list[0] = LLVMMDNodeInContext2(cx, list, 2);
    LLVMMetadataReplaceAllUsesWith(self, list[0]);
    return LLVMMetadataAsValue(cx, list[0]);
}

/* ptxas takes a second and more for a product whose twelve turns it unrolls,
 * and a tenth of that for one of 48, which it does not. */
static void keep_rolled(emit *e, LLVMValueRef branch)
{
    static const char loop[] = "llvm.loop";

    LLVMSetMetadata(branch,
                    LLVMGetMDKindIDInContext(e->cx, loop, sizeof loop - 1),
                    emit_rolled(e->cx));
}

void emit_loop_close(emit *e, emit_loop *l)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
    LLVMValueRef next, branch;

    if (l->once) {
        LLVMBuildBr(e->b, l->exit);
    } else {
        next = emit_add(e, l->at, emit_int_like(l->at, l->step));
        branch =
            LLVMBuildCondBr(e->b, emit_below(e, next, l->to), l->body, l->exit);
        if (l->rolled)
            keep_rolled(e, branch);
        LLVMAddIncoming(l->at, &next, &here, 1);
    }
    LLVMPositionBuilderAtEnd(e->b, l->exit);
}

void emit_level_loop_open(emit *e, emit_loop *l, LLVMValueRef from,
                          LLVMValueRef to, int64_t step)
{
    LLVMBasicBlockRef pre = LLVMGetInsertBlock(e->b);

    emit_loop_open(e, l, from, to, step);
    emit_level_open(e, pre);
}

void emit_open_turns(emit *e, emit_loop *l, int64_t from, int64_t to,
                     int64_t step)
{
    LLVMValueRef end = emit_si(e, to);

    if (e->abi->zero)
        end = emit_add(e, end, e->abi->zero(e));
    emit_level_loop_open(e, l, emit_si(e, from), emit_si(e, to), step);
    l->to = end; /* opened with the number, which is known not to be 0 */
    l->rolled = !e->abi->zero;
}

void emit_level_loop_close(emit *e, emit_loop *l)
{
    emit_loop_close(e, l);
    emit_level_close(e);
}

void emit_once_open(emit *e, emit_loop *l)
{
    emit_level_loop_open(e, l, emit_si(e, 0), emit_si(e, 1), 1);
}

LLVMValueRef emit_variable(emit *e, LLVMValueRef v)
{
    LLVMValueRef p = emit_alloca(e, LLVMTypeOf(v));

    emit_put(e, v, p);
    return p;
}

LLVMValueRef emit_get(emit *e, LLVMValueRef p)
{
    return LLVMBuildLoad2(e->b, e->si, p, "");
}

emit_while emit_while_begin(emit *e)
{
    emit_while l = {emit_block(e, "while"), emit_block(e, "do"),
                    emit_block(e, "done")};

    LLVMBuildBr(e->b, l.test);
    LLVMPositionBuilderAtEnd(e->b, l.test);
    return l;
}

void emit_while_test(emit *e, const emit_while *l, LLVMValueRef c)
{
    LLVMBuildCondBr(e->b, c, l->body, l->done);
    LLVMPositionBuilderAtEnd(e->b, l->body);
}

void emit_while_end(emit *e, const emit_while *l)
{
    LLVMBuildBr(e->b, l->test);
    LLVMPositionBuilderAtEnd(e->b, l->done);
}

LLVMBasicBlockRef emit_when(emit *e, LLVMValueRef c)
{
    LLVMBasicBlockRef yes, no;

    if (!c)
        return NULL;
    yes = emit_block(e, "when");
    no = emit_block(e, "after");
    LLVMBuildCondBr(e->b, c, yes, no);
    LLVMPositionBuilderAtEnd(e->b, yes);
    return no;
}

void emit_when_end(emit *e, LLVMBasicBlockRef no)
{
    if (!no)
        return;
    LLVMBuildBr(e->b, no);
    LLVMPositionBuilderAtEnd(e->b, no);
}

int emit_digit(const emit *e, int copy, int axis)
{
    const emit_axis *x = &e->axis[axis];

    return x->n > 1 ? copy / x->stride % x->radix : 0;
}

int emit_canon(const emit *e, int copy, uint64_t varies)
{
    int c = 0;

    plan_for_each_axis(i, varies)
        if (e->axis[i].n > 1)
            c += emit_digit(e, copy, i) * e->axis[i].stride;
    return c;
}

bool emit_is_copy(const emit *e, int copy, uint64_t varies)
{
    if (emit_canon(e, copy, varies) != copy)
        return false;
    for (int i = 0; i < e->k->naxis; i++)
        if (emit_digit(e, copy, i) >= SD_MAX(e->axis[i].n, 1))
            return false;
    return true;
}

LLVMValueRef emit_mask(emit *e, uint64_t axes, int copy)
{
    LLVMValueRef v = NULL;

    plan_for_each_axis(i, axes)
        v = emit_and(e, v, e->axis[i].mask[emit_digit(e, copy, i)]);
    return v;
}
