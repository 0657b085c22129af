/* GPU: runs of updates that go to one place, of a list that is sorted by places
 * (plan_runs).  Whoever stands where a run begins takes all of it. */
#include "emit.h"

typedef struct {
    emit *e;
    const plan_runs *r;
    LLVMValueRef base; /* of the batch, in both lists */
    LLVMValueRef at, n; /* position in the list; how many there are */
} finder;

static LLVMValueRef read_list(const finder *f, int slot, LLVMValueRef i)
{
    emit *e = f->e;

    i = LLVMBuildAdd(e->b, f->base, i, "");
    return emit_mem_read(e, e->k->slot[slot].dtype, e->slot[slot], i, 1).re;
}

static LLVMValueRef same_place(const finder *f, LLVMValueRef i,
                               LLVMValueRef key)
{
    return LLVMBuildICmp(f->e->b, LLVMIntEQ, read_list(f, f->r->key, i), key,
                         "");
}

/* Those that are left out begin no run. */
static LLVMValueRef begins_run(const finder *f, LLVMValueRef key)
{
    emit *e = f->e;
    LLVMValueRef first =
        LLVMBuildICmp(e->b, LLVMIntEQ, f->at, emit_si(e, 0), "");
    LLVMValueRef before =
        LLVMBuildSelect(e->b, first, f->at, emit_plus(e, f->at, -1), "");
    LLVMValueRef begins, in;

    begins = LLVMBuildOr(
        e->b, first, LLVMBuildNot(e->b, same_place(f, before, key), ""), "");
    in = LLVMBuildICmp(e->b, LLVMIntNE, key, LLVMConstAllOnes(LLVMTypeOf(key)),
                       "");
    return LLVMBuildAnd(e->b, begins, in, "");
}

/* Where the run ends: most are short, so steps double; then by bisection. */
static LLVMValueRef end_of_run(const finder *f, LLVMValueRef key,
                               LLVMValueRef begins)
{
    emit *e = f->e;
    LLVMValueRef lo = emit_variable(e, emit_plus(e, f->at, 1)), hi, step, mid;
    LLVMBasicBlockRef look;
    emit_while w;

    hi = emit_variable(
        e, LLVMBuildSelect(e->b, begins, emit_get(e, lo), f->n, ""));
    step = emit_variable(e, emit_si(e, 1));
    w = emit_while_begin(e);
    look = emit_block(e, "look");
    LLVMBuildCondBr(e->b, emit_below(e, emit_get(e, hi), f->n), look, w.done);
    LLVMPositionBuilderAtEnd(e->b, look);
    emit_while_test(e, &w, same_place(f, emit_get(e, hi), key));
    LLVMBuildStore(e->b, emit_plus(e, emit_get(e, hi), 1), lo);
    mid = LLVMBuildAdd(e->b, emit_get(e, step), emit_get(e, step), "");
    LLVMBuildStore(e->b, mid, step);
    LLVMBuildStore(e->b, LLVMBuildAdd(e->b, f->at, mid, ""), hi);
    emit_while_end(e, &w);
    hi = emit_variable(
        e, LLVMBuildSelect(e->b, begins, emit_smaller(e, emit_get(e, hi), f->n),
                           emit_get(e, lo), ""));
    w = emit_while_begin(e);
    emit_while_test(e, &w, emit_below(e, emit_get(e, lo), emit_get(e, hi)));
    mid = LLVMBuildAdd(e->b, emit_get(e, lo), emit_get(e, hi), "");
    mid = LLVMBuildLShr(e->b, mid, emit_si(e, 1), "");
    begins = same_place(f, mid, key);
    LLVMBuildStore(e->b,
                   LLVMBuildSelect(e->b, begins, emit_plus(e, mid, 1),
                                   emit_get(e, lo), ""),
                   lo);
    LLVMBuildStore(e->b,
                   LLVMBuildSelect(e->b, begins, emit_get(e, hi), mid, ""), hi);
    emit_while_end(e, &w);
    return emit_get(e, lo);
}

void emit_run_open(emit *e, emit_loop *l)
{
    const plan_runs *r = e->k->runs;
    emit_axis *x = &e->axis[r->axis];
    int64_t n = e->k->axis[r->axis].extent;
    finder f = {e, r, emit_si(e, 0), x->at, emit_si(e, n)};
    LLVMValueRef key, begins, from = x->at, to;

    if (r->batch >= 0)
        f.base = LLVMBuildMul(e->b, e->axis[r->batch].at, f.n, "");
    key = read_list(&f, r->key, f.at);
    begins = begins_run(&f, key);
    to = end_of_run(&f, key, begins);
    if (r->last)
        from = emit_plus(e, to, -1);
    to = LLVMBuildSelect(e->b, begins, to, from, "");
    emit_axis_open(e, r->axis, l, from, to, 1);
    x->at = LLVMBuildIntCast2(e->b, read_list(&f, r->update, l->at), e->si,
                              true, "");
}
