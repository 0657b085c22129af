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

/* ---- updates that are in the list ---- */

/* Those that are left out end no run. */
static LLVMValueRef ends_run(const finder *f, LLVMValueRef key)
{
    emit *e = f->e;
    LLVMValueRef next = emit_plus(e, f->at, 1), ends, in;

    ends = LLVMBuildNot(e->b, emit_below(e, next, f->n), "");
    next = LLVMBuildSelect(e->b, ends, f->at, next, "");
    ends = LLVMBuildOr(e->b, ends,
                       LLVMBuildNot(e->b, same_place(f, next, key), ""), "");
    in = LLVMBuildICmp(e->b, LLVMIntNE, key, LLVMConstAllOnes(LLVMTypeOf(key)),
                       "");
    return LLVMBuildAnd(e->b, ends, in, "");
}

static LLVMValueRef updated(emit *e, const plan_node *n, LLVMValueRef old,
                            LLVMValueRef by)
{
    emit_value arg[2] = {{old, NULL}, {by, NULL}}, root[1];

    emit_body(e, n->body, arg, root);
    return root[0].re;
}

/* All of the run that begins there, in a register. */
static LLVMValueRef sum_run(const finder *f, const plan_node *n,
                            LLVMValueRef key, LLVMValueRef old)
{
    emit *e = f->e;
    LLVMValueRef at = emit_variable(e, f->at), sum = emit_variable(e, old);
    LLVMValueRef last = emit_plus(e, f->n, -1), goes, look;
    emit_while w = emit_while_begin(e);

    look = emit_smaller(e, emit_get(e, at), last);
    goes = LLVMBuildAnd(e->b, emit_below(e, emit_get(e, at), f->n),
                        same_place(f, look, key), "");
    emit_while_test(e, &w, goes);
    look = emit_get(e, at);
    old = LLVMBuildLoad2(e->b, LLVMTypeOf(old), sum, "");
    LLVMBuildStore(e->b, updated(e, n, old, read_list(f, f->r->update, look)),
                   sum);
    LLVMBuildStore(e->b, emit_plus(e, look, 1), at);
    emit_while_end(e, &w);
    return LLVMBuildLoad2(e->b, LLVMTypeOf(old), sum, "");
}

void emit_run_listed(emit *e)
{
    const plan_runs *r = e->k->runs;
    const plan_node *n = plan_scatter_of(e->k);
    finder f = {e, r, emit_si(e, 0), e->axis[r->axis].at,
                emit_si(e, e->k->axis[r->axis].extent)};
    LLVMValueRef key, takes, place, v;
    LLVMBasicBlockRef no;

    if (r->batch >= 0)
        f.base = LLVMBuildMul(e->b, e->axis[r->batch].at, f.n, "");
    key = read_list(&f, r->key, f.at);
    takes = r->last ? ends_run(&f, key) : begins_run(&f, key);
    place = emit_expr(e, n->off, 0, false);
    no = emit_when(e, emit_and(e, takes, e->item_valid));
    if (r->last)
        v = read_list(&f, r->update, f.at);
    else
        v = sum_run(&f, n, key,
                    emit_mem_read(e, n->dtype, e->slot[n->slot], place, 1).re);
    emit_mem_write(e, n->dtype, e->slot[n->slot], place, (emit_value){v, NULL});
    emit_when_end(e, no);
}

/* ---- updates where they lie ---- */

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
