/* Running reductions: the loop over the axis runs in order, so the value so
 * far is one accumulator, set to init where that loop is entered.  On the host
 * the axis may be LANE: then the elements of a vector take their turns. */
#include "emit.h"

typedef struct {
    emit_value *at; /* a result: where it is */
    LLVMTypeRef *type;
    int opening; /* of the axis it was started for */
} running;

static int only_axis(uint64_t axes)
{
    return __builtin_ctzll(axes);
}

static void start(emit *e, const plan_node *n, int copy, int w, running *r)
{
    int level = e->axis[only_axis(n->over)].level - 1;
    emit_mark m;

    r->at = emit_values(e, n->nout);
    r->type = sd_arena_array(e->a, LLVMTypeRef, n->nout);
    for (int o = 0; o < n->nout; o++) {
        const plan_node *a = n->arg[n->nout + o];
        emit_value init = emit_node_value(e, a, emit_canon(e, copy, a->varies));

        r->type[o] = emit_widen(emit_type(e, a->dtype), w);
        r->at[o] = emit_value_alloca(e, r->type[o], init.im);
        m = emit_go_to(e, level);
        emit_value_set(e, r->at[o], NULL, emit_splat_value(e, init, w));
        emit_back(e, m);
    }
}

static void step(emit *e, const plan_node *n, running *r, const emit_value *x,
                 int w, LLVMValueRef valid, emit_value *out)
{
    int k = n->nout;
    emit_value *arg = emit_values(e, 2 * k), *root = emit_values(e, k);

    for (int o = 0; o < k; o++) {
        arg[o] = emit_value_get(e, r->type[o], r->at[o], NULL);
        arg[k + o] = emit_splat_value(e, x[o], w);
    }
    emit_body(e, n->body, arg, root);
    for (int o = 0; o < k; o++) {
        if (valid)
            root[o] = emit_select_value(e, valid, root[o], arg[o]);
        emit_value_set(e, r->at[o], NULL, emit_splat_value(e, root[o], w));
        out[o] = n->exclusive ? arg[o] : root[o];
    }
}

static LLVMValueRef insert(emit *e, LLVMValueRef into, LLVMValueRef v, int at,
                           int w)
{
    if (!into)
        into = LLVMGetPoison(emit_widen(LLVMTypeOf(v), w));
    return emit_insert(e, into, v, at);
}

/* Element after element. */
static void piece_steps(emit *e, const plan_node *n, running *r,
                        const emit_value *x, LLVMValueRef valid, int w,
                        emit_value *out)
{
    for (int o = 0; o < n->nout; o++)
        out[o] = (emit_value){NULL, NULL};
    for (int i = 0; i < w; i++) {
        emit_value *one = emit_values(e, n->nout);
        emit_value *got = emit_values(e, n->nout);

        for (int o = 0; o < n->nout; o++)
            one[o] = emit_extract_value(e, x[o], i, 1);
        step(e, n, r, one, 1, valid ? emit_extract(e, valid, i, 1) : NULL, got);
        for (int o = 0; o < n->nout; o++) {
            out[o].re = insert(e, out[o].re, got[o].re, i, w);
            if (got[o].im)
                out[o].im = insert(e, out[o].im, got[o].im, i, w);
        }
    }
}

/* x, then y. */
static LLVMValueRef both(emit *e, LLVMValueRef x, LLVMValueRef y)
{
    int lane[EMIT_MAX_LANES], w = emit_width(x) * 2;

    for (int i = 0; i < w; i++)
        lane[i] = i;
    return emit_shuffle(e, x, y, lane, w);
}

/* The axis is LANE.  In halves down to 4 lanes, which code generation takes for
 * vectors of their own: 16 elements out of one and into another take it twice
 * as long. */
static void lane_steps(emit *e, const plan_node *n, running *r,
                       const emit_value *x, LLVMValueRef valid, int w,
                       emit_value *out)
{
    emit_value *half[2], *part = emit_values(e, n->nout);

    if (w <= 4) {
        for (int o = 0; o < n->nout; o++)
            part[o] = emit_hide_value(e, x[o]);
        piece_steps(e, n, r, part, valid, w, out);
        for (int o = 0; o < n->nout; o++)
            out[o] = emit_hide_value(e, out[o]);
        return;
    }
    for (int k = 0; k < 2; k++) {
        half[k] = emit_values(e, n->nout);
        for (int o = 0; o < n->nout; o++)
            part[o] = emit_extract_value(e, x[o], k * w / 2, w / 2);
        lane_steps(e, n, r, part,
                   valid ? emit_extract(e, valid, k * w / 2, w / 2) : NULL,
                   w / 2, half[k]);
    }
    for (int o = 0; o < n->nout; o++) {
        out[o].re = both(e, half[0][o].re, half[1][o].re);
        out[o].im =
            half[0][o].im ? both(e, half[0][o].im, half[1][o].im) : NULL;
    }
}

/* All results at once; result number `out` is the answer. */
emit_value emit_scan(emit *e, const plan_node *n, int copy, int out)
{
    bool on_lane = e->lane >= 0 && (n->over >> e->lane & 1);
    int w = !on_lane && e->lane >= 0 && (n->varies >> e->lane & 1) ? e->w : 1;
    emit_value *x = emit_values(e, n->nout), *v = emit_values(e, n->nout);
    emit_value **several = &e->several[n->id];
    emit_slot *s = &e->value[n->id * e->ncopy + copy];
    const emit_axis *axis;
    running *r;

    if (s->set) /* asked by a PICK */
        return (*several)[out * e->ncopy + copy];
    assert(!on_lane || !e->gpu); /* plan_tile: work items take no turns */
    axis = &e->axis[only_axis(n->over)];
    if (!e->running[n->id])
        e->running[n->id] = sd_arena_array(e->a, running, e->ncopy);
    r = (running *)e->running[n->id] +
        emit_canon(e, copy, n->varies & ~n->over);
    if (r->opening != axis->opening) /* not the rest of the same loop */
        start(e, n, copy, w, r);
    r->opening = axis->opening;
    for (int o = 0; o < n->nout; o++)
        x[o] = emit_node_value(e, n->arg[o],
                               emit_canon(e, copy, n->arg[o]->varies));
    if (on_lane) {
        for (int o = 0; o < n->nout; o++)
            x[o] = emit_splat_value(e, x[o], e->w);
        lane_steps(e, n, r, x, emit_mask(e, n->over, copy), e->w, v);
    } else {
        step(e, n, r, x, w, NULL, v);
    }
    if (!*several)
        *several = sd_arena_array(e->a, emit_value, n->nout * e->ncopy);
    for (int o = 0; o < n->nout; o++)
        (*several)[o * e->ncopy + copy] = v[o];
    return v[out];
}
