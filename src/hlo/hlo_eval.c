/* The evaluator: one instruction after the other, each on dense row-major
 * arrays.  Slow and obviously right.  Here: values, tuples, what an
 * evaluation may take, computations, and which function an operation has; whole
 * programs are tools/ref's. */
#include "hlo_eval.h"

enum { PER_INST = 64 /* steps on top of an instruction's own, about */ };
#define MAX_BYTES ((double)(UINT64_C(1) << 31)) /* of values at a time */
#define MAX_STEPS ((double)(UINT64_C(1) << 34)) /* some minutes */

/* ---- values and indices ---- */

hlo_value hlo_value_make(sd_arena *a, const sd_shape *s)
{
    hlo_value v = {.shape = s};
    size_t n;

    if (s->dtype == SD_TUPLE) {
        v.elem = sd_arena_array(a, hlo_value, s->nelem + 1);
        for (int i = 0; i < s->nelem; i++)
            v.elem[i] = hlo_value_make(a, s->elem[i]);
    } else if (s->dtype != SD_TOKEN) {
        n = sd_shape_bytes(s);
        v.data = sd_arena_alloc(a, n ? n : 1);
    }
    return v;
}

hlo_value hlo_value_copy(sd_arena *a, const hlo_value *v)
{
    hlo_value to = hlo_value_make(a, v->shape);

    if (v->shape->dtype == SD_TUPLE)
        for (int i = 0; i < v->shape->nelem; i++)
            to.elem[i] = hlo_value_copy(a, &v->elem[i]);
    else if (v->data)
        memcpy(to.data, v->data, sd_shape_bytes(v->shape));
    return to;
}

bool hlo_step(int rank, const int64_t *dim, int64_t *ix)
{
    for (int i = rank - 1; i >= 0; i--) {
        if (++ix[i] < dim[i])
            return true;
        ix[i] = 0;
    }
    return false;
}

/* ---- computations with operands as numbers ---- */

hlo_frame *hlo_open_frame(hlo_ev *e, const hlo_comp *c)
{
    hlo_frame *f = sd_map_get(e->frames, sd_key(c));
    int i = 0;

    if (f)
        return f;
    sd_map *at = sd_map_create(e->keep);

    f = sd_arena_new(e->keep, hlo_frame);
    f->c = c;
    f->n = hlo_comp_count(c);
    f->inst = sd_arena_array(e->keep, const hlo_inst *, f->n + 1);
    f->arg = sd_arena_array(e->keep, const int *, f->n + 1);
    hlo_for_each_inst(in, c) {
        int *arg = sd_arena_array(e->keep, int, in->narg + 1);

        for (int k = 0; k < in->narg; k++)
            arg[k] = (int)(intptr_t)sd_map_get(at, sd_key(in->arg[k])) - 1;
        f->most = SD_MAX(f->most, in->narg);
        f->inst[i] = in;
        f->arg[i] = arg;
        if (in == c->root)
            f->root = i;
        i++;
        sd_map_set(at, sd_key(in), (void *)(intptr_t)i);
    }
    sd_map_set(e->frames, sd_key(c), f);
    return f;
}

bool hlo_passes_on(const hlo_inst *in)
{
    switch (in->op) {
    case HLO_PARAMETER:
    case HLO_CONSTANT:
    case HLO_RESHAPE:
    case HLO_BITCAST:
    case HLO_COPY:
    case HLO_AFTER_ALL:
    case HLO_SET_DIMENSION_SIZE:
        return true;
    default:
        return hlo_info(in)->cls == HLO_C_TUPLE ||
               hlo_info(in)->cls == HLO_C_CONTROL;
    }
}

/* ---- what is too much ---- */

static double count_of(const hlo_value *v)
{
    return sd_shape_is_array(v->shape) ? (double)sd_shape_count(v->shape) : 0;
}

static double bytes_of(const sd_shape *s)
{
    double n = (double)sd_shape_bytes(s);

    for (int i = 0; s->dtype == SD_TUPLE && i < s->nelem; i++)
        n += bytes_of(s->elem[i]);
    return n;
}

/* How many steps of its innermost loop an instruction takes, about. */
static double steps_of(const hlo_ev *e, const hlo_inst *in,
                       const hlo_value *arg)
{
    double n =
        sd_shape_is_array(in->shape) ? (double)sd_shape_count(in->shape) : 0;

    for (int i = 0; i < in->narg; i++)
        n = SD_MAX(n, count_of(&arg[i]));
    return e->more ? e->more->steps(in, arg, n) : n;
}

sd_status hlo_spend(hlo_ev *e, double steps)
{
    e->steps += steps;
    return e->steps > MAX_STEPS
               ? sd_error(SD_EXHAUSTED, "evaluating more than 2^34 steps, or "
                                        "an endless loop")
               : NULL;
}

/* A generated or hostile program ends in a status, not in a day's work. */
sd_status hlo_afford(hlo_ev *e, const hlo_inst *in, const hlo_value *arg)
{
    e->bytes += hlo_passes_on(in) ? 0 : bytes_of(in->shape);
    if (e->bytes > MAX_BYTES)
        return sd_error(SD_EXHAUSTED,
                        "evaluating values of more than 2^31 bytes");
    return hlo_spend(e, PER_INST + steps_of(e, in, arg));
}

/* ---- tuples ---- */

static sd_status eval_tuple(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                            hlo_value *out)
{
    if (in->op == HLO_GET_TUPLE_ELEMENT) {
        *out = arg[0].elem[in->u.tuple.index];
    } else if (in->op == HLO_OPT_BARRIER) {
        *out = arg[0];
    } else {
        out->elem = sd_arena_array(e->arena, hlo_value, in->narg + 1);
        memcpy(out->elem, arg, sizeof *arg * (size_t)in->narg);
    }
    return NULL;
}

/* ---- computations ---- */

static sd_status run(hlo_ev *e, const hlo_comp *c, const hlo_value *arg,
                     hlo_value *out)
{
    hlo_frame *f = hlo_open_frame(e, c);
    hlo_value *val = sd_arena_array(e->arena, hlo_value, f->n + 1);
    hlo_value *in = sd_arena_array(e->arena, hlo_value, f->most + 1);
    sd_status st;

    for (int i = 0; i < f->n; i++) {
        const hlo_inst *x = f->inst[i];

        if (x->op == HLO_PARAMETER) {
            val[i] = arg[x->u.param.index];
            continue;
        }
        for (int k = 0; k < x->narg; k++)
            in[k] = val[f->arg[i][k]];
        if ((st = hlo_afford(e, x, in)))
            return st;
        val[i].shape = x->shape;
        if (!hlo_passes_on(x))
            val[i] = hlo_value_make(e->arena, x->shape);
        if ((st = hlo_eval_one(e, x, in, &val[i])))
            return sd_note(st, "%s", x->name);
    }
    *out = val[f->root];
    return NULL;
}

/* Loops and branches in functions of elements are the reference's.  What a
 * function makes goes with its arena, but for its result: where each of n
 * functions calls the next one twice, the last runs 2^n times. */
static sd_status eval_call(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                           hlo_value *out)
{
    sd_arena *back = e->arena;
    double bytes = e->bytes;
    hlo_value v;
    sd_status st;

    if (in->op != HLO_CALL && in->op != HLO_FUSION)
        return hlo_unevaluated(in);
    e->arena = sd_arena_create();
    if (!(st = run(e, in->comp[0], arg, &v)))
        *out = hlo_value_copy(back, &v);
    sd_arena_destroy(e->arena);
    e->arena = back;
    e->bytes = bytes + bytes_of(in->shape);
    return st;
}

/* ---- dispatch ---- */

static hlo_eval_fn *const eval_class[HLO_CLASS_COUNT] = {
    [HLO_C_UNARY] = hlo_eval_unary_or_binary,
    [HLO_C_BINARY] = hlo_eval_unary_or_binary,
    [HLO_C_TERNARY] = hlo_eval_ternary,
    [HLO_C_COMPARE] = hlo_eval_compare,
    [HLO_C_CONVERT] = hlo_eval_convert,
    [HLO_C_BITCAST] = hlo_eval_bitcast_convert,
    [HLO_C_LEAF] = hlo_eval_leaf,
    [HLO_C_SHAPE] = hlo_eval_shape,
    [HLO_C_INDEXED] = hlo_eval_indexed,
    [HLO_C_TUPLE] = eval_tuple,
    [HLO_C_CONTROL] = eval_call,
};

sd_status hlo_unevaluated(const hlo_inst *in)
{
    return sd_error(SD_UNIMPLEMENTED, "evaluating %s", hlo_info(in)->name);
}

sd_status hlo_eval_one(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                       hlo_value *out)
{
    int cls = hlo_info(in)->cls;
    hlo_eval_fn *fn = e->more ? e->more->of_class[cls] : NULL;

    if (!fn)
        fn = eval_class[cls];
    return fn ? fn(e, in, arg, out) : hlo_unevaluated(in);
}

sd_status hlo_eval_inst_more(const hlo_evaluator *more, sd_arena *a,
                             const hlo_inst *in, const hlo_value *arg,
                             hlo_value *out)
{
    sd_arena *scratch = sd_arena_create();
    hlo_ev e = {.more = more, .arena = scratch, .keep = scratch};
    hlo_value v = {.shape = in->shape};
    sd_status st;

    e.frames = sd_map_create(scratch);
    if (!hlo_passes_on(in))
        v = hlo_value_make(scratch, in->shape);
    st = hlo_eval_one(&e, in, arg, &v);
    if (!st)
        *out = hlo_value_copy(a, &v);
    sd_arena_destroy(scratch);
    return st;
}

sd_status hlo_eval_inst(sd_arena *a, const hlo_inst *in, const hlo_value *arg,
                        hlo_value *out)
{
    return hlo_eval_inst_more(NULL, a, in, arg, out);
}

sd_status hlo_eval(sd_arena *a, const hlo_comp *c, const hlo_value *arg,
                   hlo_value *out)
{
    sd_arena *scratch = sd_arena_create();
    hlo_ev e = {.arena = scratch, .keep = scratch};
    hlo_value v;
    sd_status st;

    e.frames = sd_map_create(scratch);
    if (!(st = run(&e, c, arg, &v)))
        *out = hlo_value_copy(a, &v);
    sd_arena_destroy(scratch);
    return st;
}
