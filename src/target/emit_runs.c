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

    i = emit_sum(e, f->base, i);
    return emit_mem_read(e, e->k->slot[slot].dtype, e->slot[slot], i, 1).re;
}

static LLVMValueRef same_place(const finder *f, LLVMValueRef i,
                               LLVMValueRef key)
{
    return emit_equal(f->e, read_list(f, f->r->key, i), key);
}

/* The place at which the group stands in the list. */
static finder find_here(emit *e)
{
    const plan_runs *r = e->k->runs;
    finder f = {e, r, emit_si(e, 0), e->axis[r->axis].at,
                emit_si(e, e->k->axis[r->axis].extent)};

    if (r->batch >= 0)
        f.base = emit_product(e, e->axis[r->batch].at, f.n);
    return f;
}

static LLVMValueRef begins_run(const finder *f, LLVMValueRef key)
{
    emit *e = f->e;
    LLVMValueRef first = emit_equal(e, f->at, emit_si(e, 0));
    LLVMValueRef before = emit_select(e, first, f->at, emit_plus(e, f->at, -1));

    return emit_or(e, first, emit_not(e, same_place(f, before, key)));
}

/* ---- updates that are in the list ---- */

static LLVMValueRef ends_run(const finder *f, LLVMValueRef key)
{
    emit *e = f->e;
    LLVMValueRef next = emit_plus(e, f->at, 1), ends;

    ends = emit_not(e, emit_below(e, next, f->n));
    next = emit_select(e, ends, f->at, next);
    return emit_or(e, ends, emit_not(e, same_place(f, next, key)));
}

/* Does who stands there take the run?  Those that are left out are none. */
static LLVMValueRef takes_run(const finder *f, LLVMValueRef key)
{
    LLVMBuilderRef b = f->e->b;
    LLVMValueRef is_one =
        LLVMBuildICmp(b, LLVMIntNE, key, LLVMConstAllOnes(LLVMTypeOf(key)), "");

    return LLVMBuildAnd(b, f->r->last ? ends_run(f, key) : begins_run(f, key),
                        is_one, "");
}

static emit_value combined(emit *e, const plan_node *n, emit_value old,
                           emit_value by)
{
    emit_value arg[2] = {old, by}, root[1];

    emit_body(e, n->body, arg, root);
    return root[0];
}

/* All of the run that begins there, in a register. */
static LLVMValueRef sum_run(const finder *f, const plan_node *n,
                            LLVMValueRef key, LLVMValueRef old)
{
    emit *e = f->e;
    LLVMValueRef at = emit_variable(e, f->at), sum = emit_variable(e, old);
    LLVMValueRef last = emit_plus(e, f->n, -1), goes, look;
    emit_while w = emit_while_begin(e);
    emit_value v;

    look = emit_smaller(e, emit_get(e, at), last);
    goes = emit_and(e, emit_below(e, emit_get(e, at), f->n),
                    same_place(f, look, key));
    emit_while_test(e, &w, goes);
    look = emit_get(e, at);
    old = LLVMBuildLoad2(e->b, LLVMTypeOf(old), sum, "");
    v = combined(e, n, (emit_value){old, NULL},
                 (emit_value){read_list(f, f->r->update, look), NULL});
    emit_put(e, v.re, sum);
    emit_put(e, emit_plus(e, look, 1), at);
    emit_while_end(e, &w);
    return LLVMBuildLoad2(e->b, LLVMTypeOf(old), sum, "");
}

void emit_run_listed(emit *e)
{
    const plan_runs *r = e->k->runs;
    const plan_node *n = plan_scatter_of(e->k);
    finder f = find_here(e);
    LLVMValueRef key = read_list(&f, r->key, f.at), takes, place, v;
    LLVMBasicBlockRef no;

    takes = takes_run(&f, key);
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

enum {
    AT_ONCE = 2, /* updates whose reading does not wait for another's */
    MOST_NEAR = 16 /* neighbours of an item */
};

/* The runs' axis stands at the update of that number. */
static void open_update(const finder *f, LLVMValueRef number, emit_loop *l)
{
    emit *e = f->e;
    emit_axis *x = &e->axis[f->r->axis];

    emit_once_open(e, l);
    x->level = e->depth;
    x->at = LLVMBuildIntCast2(e->b, number, e->si, true, "");
}

/* The item's neighbours along LANE of the update of that number. */
static void values_of(const finder *f, const plan_node *n, LLVMValueRef number,
                      emit_value *v)
{
    emit *e = f->e;
    const plan_node *arg = n->arg[0];
    emit_loop l;

    open_update(f, number, &l);
    for (int c = 0; c < e->k->vector; c++)
        v[c] = emit_node_value(
            e, arg, emit_canon(e, c * e->axis[e->lane].stride, arg->varies));
    emit_level_loop_close(e, &l);
}

static LLVMValueRef place_of(const finder *f, const plan_node *n,
                             LLVMValueRef number)
{
    LLVMValueRef at;
    emit_loop l;

    open_update(f, number, &l);
    at = emit_expr(f->e, n->off, 0, false);
    emit_level_loop_close(f->e, &l);
    return at;
}

/* What the places of the item's neighbours hold, the first of them at `at`. */
static void read_places(emit *e, const plan_node *n, LLVMValueRef at,
                        emit_value *v)
{
    int w = e->k->vector;
    LLVMValueRef all;

    if (w == 1) {
        v[0] = emit_mem_read(e, n->dtype, e->slot[n->slot], at, 1);
        return;
    }
    all = emit_vector_read(
        e, n->dtype, emit_element(e, n->dtype, e->slot[n->slot], at), NULL, w);
    LLVMSetAlignment(all, (unsigned)w * (unsigned)sd_dtype_bytes(n->dtype));
    for (int c = 0; c < w; c++)
        v[c] = (emit_value){
            emit_of_memory(e, n->dtype, emit_extract(e, all, c, 1)), NULL};
}

static void write_places(emit *e, const plan_node *n, LLVMValueRef at,
                         const emit_value *v)
{
    int w = e->k->vector;
    LLVMValueRef all = LLVMGetPoison(emit_widen(emit_mem_type(e, n->dtype), w));

    if (w == 1) {
        emit_mem_write(e, n->dtype, e->slot[n->slot], at, v[0]);
        return;
    }
    for (int c = 0; c < w; c++)
        all = LLVMBuildInsertElement(e->b, all,
                                     emit_to_memory(e, n->dtype, v[c].re),
                                     LLVMConstInt(e->i32, (unsigned)c, 0), "");
    all = LLVMBuildStore(e->b, all,
                         emit_element(e, n->dtype, e->slot[n->slot], at));
    LLVMSetAlignment(all, (unsigned)w * (unsigned)sd_dtype_bytes(n->dtype));
}

/* Is position i of the list there, and of that run?  *number: of the update
 * there, or of the last. */
static LLVMValueRef is_of_run(const finder *f, LLVMValueRef i, LLVMValueRef key,
                              LLVMValueRef *number)
{
    emit *e = f->e;
    LLVMValueRef look = emit_smaller(e, i, emit_plus(e, f->n, -1));

    *number = read_list(f, f->r->update, look);
    return emit_and(e, emit_below(e, i, f->n), same_place(f, look, key));
}

/* To sum, the updates behind the first of the run, in turn.  Where there are
 * fewer of these than are read at once the first is read again, which is near.
 */
static void sum_behind(const finder *f, const plan_node *n, LLVMValueRef key,
                       LLVMValueRef first, LLVMTypeRef t, const emit_value *sum)
{
    emit *e = f->e;
    LLVMValueRef at = emit_variable(e, emit_plus(e, f->at, 1));
    LLVMValueRef on[AT_ONCE], number[AT_ONCE];
    emit_value v[AT_ONCE][MOST_NEAR], s;
    emit_while w = emit_while_begin(e);

    for (int j = 0; j < AT_ONCE; j++) {
        on[j] = is_of_run(f, emit_plus(e, emit_get(e, at), j), key, &number[j]);
        if (j)
            on[j] = emit_and(e, on[j - 1], on[j]);
    }
    emit_while_test(e, &w, on[0]);
    for (int j = 0; j < AT_ONCE; j++)
        values_of(f, n, j ? emit_select(e, on[j], number[j], first) : number[j],
                  v[j]);
    for (int c = 0; c < e->k->vector; c++) {
        s = emit_value_get(e, t, sum[c], NULL);
        for (int j = 0; j < AT_ONCE; j++)
            s = j ? emit_select_value(e, on[j], combined(e, n, s, v[j][c]), s)
                  : combined(e, n, s, v[j][c]);
        emit_value_set(e, sum[c], NULL, s);
    }
    emit_put(e, emit_plus(e, emit_get(e, at), AT_ONCE), at);
    emit_while_end(e, &w);
}

/* old, the first of a run and those behind it, in turn: to v. */
static void sum_rows(const finder *f, const plan_node *n, LLVMValueRef key,
                     LLVMValueRef first, const emit_value *old, emit_value *v)
{
    emit *e = f->e;
    LLVMTypeRef t = LLVMTypeOf(old[0].re);
    emit_value sum[MOST_NEAR];

    values_of(f, n, first, v);
    for (int c = 0; c < e->k->vector; c++)
        sum[c] = emit_value_variable(e, combined(e, n, old[c], v[c]));
    sum_behind(f, n, key, first, t, sum);
    for (int c = 0; c < e->k->vector; c++)
        v[c] = emit_value_get(e, t, sum[c], NULL);
}

void emit_run_rows(emit *e)
{
    const plan_runs *r = e->k->runs;
    const plan_node *n = plan_scatter_of(e->k);
    emit_axis *x = &e->axis[r->axis], was = *x;
    finder f = find_here(e);
    LLVMValueRef key = read_list(&f, r->key, f.at), takes, first, place;
    emit_value v[MOST_NEAR], old[MOST_NEAR];
    LLVMBasicBlockRef no;

    assert(e->k->vector <= MOST_NEAR);
    takes = takes_run(&f, key);
    no = emit_when(e, emit_and(e, takes, e->item_valid));
    first = read_list(&f, r->update, f.at);
    place = place_of(&f, n, first);
    if (r->last) {
        values_of(&f, n, first, v);
    } else {
        read_places(e, n, place, old);
        sum_rows(&f, n, key, first, old, v);
    }
    write_places(e, n, place, v);
    emit_when_end(e, no);
    *x = was;
}
