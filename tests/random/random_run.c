/* One program: the evaluator's values against a device's. */
#include "random.h"

#include "frontend.h"
#include "guarded.h"
#include "passes.h"
#include "plan.h"
#include "ref.h"
#include "target.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_ARGS = GUARDED_MOST };

sd_status random_world_open(random_world *w, const char *device)
{
    sd_status st;

    *w = (random_world){.name = device};
    sd_options_from_env(&w->options);
    if (device_desc_of_name(device, &w->described))
        return NULL;
    w->options.value[SD_OPT_DEVICE] = device;
    if ((st = xpu_client_create(&w->options, &w->client)))
        return st;
    w->device = xpu_client_device(w->client, 0);
    w->described = *xpu_device_desc(w->device);
    return NULL;
}

void random_world_close(random_world *w)
{
    if (w->client)
        xpu_client_destroy(w->client);
    w->client = NULL;
}

/* ---- running ---- */

typedef struct {
    const random_world *w;
    const random_program *p;
    sd_arena *a;
    hlo_value arg[MOST_ARGS];
    int narg;
    hlo_value want;
} run;

static sd_status read_program(const run *r, hlo_module **out)
{
    sd_status st = frontend_read(r->a, r->p->format, strlen(r->p->format),
                                 r->p->bytes, out);

    return st ? st : hlo_verify(*out);
}

/* Each operation's value passes a barrier; constants and what is spread of them
 * stay known, as they are to one operation by itself. */
static bool is_kept_apart(const hlo_inst *in)
{
    bool known = in->op == HLO_BROADCAST && in->arg[0]->op == HLO_CONSTANT;

    return in->op != HLO_CONSTANT && in->op != HLO_OPT_BARRIER && !known &&
           sd_shape_is_array(in->shape);
}

/* Along which dimension of a transposed array a sum runs decides its order: no
 * pass moves a sum or what is between across these. */
static bool is_transpose(const hlo_inst *in)
{
    return in->op == HLO_TRANSPOSE;
}

static void build_walls(hlo_module *m, bool (*is_behind)(const hlo_inst *in))
{
    hlo_comp *c = m->entry;

    hlo_for_each_inst(in, c) {
        hlo_inst *wall;

        if (in == c->root || !is_behind(in))
            continue;
        wall = hlo_inst_create(c, in->next, HLO_OPT_BARRIER, in->shape, 1, &in);
        hlo_replace(in, wall);
        hlo_set_arg(wall, 0, in);
    }
}

/* Operations share kernels, or each has its own. */
typedef enum { AS_IT_IS, TOGETHER, APART } how_compiled;

/* The pass `tails` makes 0 of products of exponentials that would be subnormal
 * (docs/adr/0037), which it cannot see of one operation. */
static void set_apart(hlo_module *m, sd_options *opt, how_compiled how)
{
    opt->value[SD_OPT_PASSES_OFF] = "tails";
    build_walls(m, how == APART ? is_kept_apart : is_transpose);
    if (how == APART)
        opt->value[SD_OPT_FUSE] = "0";
}

static sd_status compile(const run *r, how_compiled how, thunk_program **out)
{
    const device_desc *dev = &r->w->described;
    sd_options opt = r->w->options;
    hlo_module *m;
    plan *p = NULL;
    sd_status st;

    if ((st = read_program(r, &m)))
        return st;
    if (how != AS_IT_IS)
        set_apart(m, &opt, how);
    if ((st = hlo_optimize(m, dev, &opt, NULL, NULL)) ||
        (st = plan_make(r->a, m, dev, &opt, &p)))
        return st;
    if (!(st = plan_verify(p)) &&
        !(st = target_build(p, &opt, NULL, NULL, NULL, NULL)) &&
        !(st = thunk_verify(p->program)))
        *out = thunk_program_retain(p->program);
    plan_destroy(p);
    return st;
}

static sd_status take(const run *r, xpu_buffer *b, const sd_shape *s,
                      hlo_value *out)
{
    xpu_event *done;
    sd_status st;

    *out = hlo_value_make(r->a, s);
    if ((st = xpu_buffer_to_host(b, 0, out->data, sd_shape_bytes(s), &done)))
        return st;
    st = xpu_event_wait(done);
    xpu_event_release(done);
    return st;
}

static sd_status give(const run *r, int i, guarded_call *c)
{
    const hlo_value *v = &r->arg[i];
    const sd_shape *s = v->shape;

    if (r->w->described.kind != DEVICE_HOST)
        return xpu_buffer_from_host(r->w->device, XPU_MEM_DEVICE, s->dtype,
                                    s->rank, s->dim, v->data, NULL, true,
                                    &c->in[i], NULL);
    return guarded_argument(c, i, r->w->device, s->dtype, s->rank, s->dim,
                            v->data, sd_shape_bytes(s));
}

static int count_results(const run *r)
{
    return r->want.shape->dtype == SD_TUPLE ? r->want.shape->nelem : 1;
}

static sd_status execute(const run *r, thunk_program *t, hlo_value *got)
{
    guarded_call c = {0};
    xpu_call call = {.arg = c.in, .narg = r->narg};
    xpu_program *x = NULL;
    xpu_event *done = NULL;
    sd_status st = xpu_program_load(r->w->device, t, &x);

    for (int i = 0; i < r->narg && !st; i++)
        st = give(r, i, &c);
    if (!st && !(st = xpu_execute(x, &call, c.out, &done)))
        st = xpu_event_wait(done);
    for (int i = 0; i < count_results(r) && !st; i++)
        st =
            take(r, c.out[i],
                 r->want.elem ? r->want.elem[i].shape : r->want.shape, &got[i]);
    xpu_event_release(done);
    guarded_finish(&c);
    xpu_program_release(x);
    return st;
}

static double error_of(const run *r, int out, const hlo_value *want)
{
    return r->p->error ? r->p->error[out]
                       : r->p->relative * random_largest(want);
}

/* How many elements in's window has, if it is one. */
static double window_of(const hlo_inst *in)
{
    const hlo_window_dim *w = NULL;
    double size = 1;
    int n = 0;

    if (hlo_info(in)->cls == HLO_C_WINDOW) {
        w = in->u.window.dim;
        n = in->u.window.n;
    } else if (in->op == HLO_CONVOLUTION) {
        w = in->u.conv->win;
        n = in->u.conv->nspatial;
    }
    for (int i = 0; i < n; i++)
        size *= (double)SD_MAX(w[i].size, 1);
    return size;
}

/* One participant's, small enough to be evaluated and run, element by element?
 * Of damaged programs many are not, and there are many of them. */
static bool is_small(const run *r, const hlo_module *m)
{
    enum { MOST_OF_DAMAGED = 1 << 20, MOST = 1 << 24 };
    double sum = 0;

    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c)
            sum += sd_shape_is_array(in->shape)
                       ? (double)sd_shape_count(in->shape) * window_of(in)
                       : 0;
    return hlo_participants(m) == 1 && m->entry->nparam <= MOST_ARGS &&
           sum <= (r->p->hostile ? MOST_OF_DAMAGED : MOST);
}

/* Is c a strict order of one pair of parameters? */
static bool is_order(const hlo_comp *c)
{
    const hlo_inst *r = c->root;
    int64_t x, y;

    if (r->op != HLO_COMPARE || r->arg[0]->op != HLO_PARAMETER ||
        r->arg[1]->op != HLO_PARAMETER)
        return false;
    x = r->arg[0]->u.param.index;
    y = r->arg[1]->u.param.index;
    return (r->u.compare.dir == HLO_LT || r->u.compare.dir == HLO_GT) &&
           x != y && x / 2 == y / 2;
}

/* Does a program say what its values are?  A sort by what is no order does
 * not, nor a reduction by what gives different sums in different orders. */
static bool is_determined(const hlo_module *m)
{
    hlo_op op;

    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            if (in->op == HLO_SORT && !is_order(in->comp[0]))
                return false;
            if ((in->op == HLO_REDUCE || in->op == HLO_REDUCE_WINDOW ||
                 in->op == HLO_SCATTER) &&
                !(hlo_comp_is_binary(in->comp[0], &op) &&
                  hlo_op_table[op].props & HLO_P_ASSOC))
                return false;
        }
    return true;
}

static sd_status evaluate(run *r, bool *small)
{
    hlo_module *m;
    sd_status st = read_program(r, &m);

    if (st)
        return st;
    *small = is_small(r, m) && (m->entry->root->shape->dtype != SD_TUPLE ||
                                m->entry->root->shape->nelem <= MOST_ARGS);
    if (!*small)
        return r->p->hostile
                   ? NULL
                   : sd_error(SD_INVALID, "it is too large to be evaluated");
    r->narg = m->entry->nparam;
    for (int i = 0; i < r->narg; i++) {
        const sd_shape *s = m->entry->param[i]->shape;

        if (!sd_shape_is_array(s))
            return sd_error(SD_UNIMPLEMENTED, "an argument that is no array");
        r->arg[i] = hlo_value_make(r->a, s);
        random_fill(&r->arg[i], m->entry->param[i]->name, i);
    }
    st = ref_eval(r->a, m->entry, r->arg, r->narg, &r->want);
    if (st && r->p->hostile) { /* an endless loop, say: not for a device */
        *small = false;
        sd_status_free(st);
        return NULL;
    }
    *small = !r->p->hostile || is_determined(m);
    return sd_note(st, "evaluator");
}

/* Of a program that may be anything a refusal is right, whatever its code,
 * but never blame on ourselves. */
static random_verdict verdict_of(const run *r, sd_status st, sd_buf *why)
{
    bool refused =
        r->p->hostile ? st->code != SD_INTERNAL : st->code == SD_UNIMPLEMENTED;

    sd_buf_fmt(why, "%s: %s", r->w->name, st->message);
    sd_status_free(st);
    return refused ? RANDOM_REFUSED : RANDOM_WRONG;
}

static random_verdict run_it(run *r, sd_buf *why)
{
    hlo_value got[MOST_ARGS];
    thunk_program *t = NULL;
    bool small = false;
    sd_status st = evaluate(r, &small);

    if (r->p->evaluated)
        r->p->evaluated();
    if (!st)
        st = compile(r, AS_IT_IS, &t);
    small = small && r->w->device;
    if (!st && small)
        st = execute(r, t, got);
    thunk_program_release(t);
    if (st)
        return verdict_of(r, st, why);
    for (int i = 0; small && i < count_results(r); i++) {
        const hlo_value *want = r->want.elem ? &r->want.elem[i] : &r->want;

        if (random_differs(r->w->name, i, &got[i], want, error_of(r, i, want),
                           why))
            return RANDOM_WRONG;
    }
    return RANDOM_AGREES;
}

/* Of two NaNs the sum is either, as the instruction has its operands. */
static bool both_nan(sd_dtype t, const void *x, const void *y)
{
    return sd_dtype_kind(t) == SD_K_FLOAT && isnan(sd_scalar_to_f64(t, x)) &&
           isnan(sd_scalar_to_f64(t, y));
}

static bool has_other_bits(const run *r, int out, const hlo_value *got,
                           const hlo_value *want, sd_buf *why)
{
    sd_dtype t = want->shape->dtype;
    size_t size = sd_dtype_bytes(t);

    for (int64_t i = 0; i < sd_shape_count(want->shape); i++) {
        const void *x = (char *)got->data + (size_t)i * size;
        const void *y = (char *)want->data + (size_t)i * size;

        if (!memcmp(x, y, size) || both_nan(t, x, y))
            continue;
        if (sd_dtype_kind(t) == SD_K_FLOAT)
            sd_buf_fmt(why,
                       "%s: result %d, %s, element %" PRId64
                       ": %.17g, apart %.17g",
                       r->w->name, out, sd_dtype_name(t), i,
                       sd_scalar_to_f64(t, x), sd_scalar_to_f64(t, y));
        else
            sd_buf_fmt(why,
                       "%s: result %d, %s, element %" PRId64 ": %" PRId64
                       ", apart %" PRId64,
                       r->w->name, out, sd_dtype_name(t), i,
                       sd_scalar_to_s64(t, x), sd_scalar_to_s64(t, y));
        return true;
    }
    return false;
}

static random_verdict run_both(run *r, sd_buf *why)
{
    hlo_value got[2][MOST_ARGS];
    bool small = false;
    sd_status st = evaluate(r, &small);

    for (int k = 0; k < 2 && !st; k++) {
        thunk_program *t = NULL;

        if (!(st = compile(r, k ? APART : TOGETHER, &t)) && r->w->device)
            st = execute(r, t, got[k]);
        thunk_program_release(t);
    }
    if (st)
        return verdict_of(r, st, why);
    for (int i = 0; i < count_results(r) && r->w->device; i++)
        if (has_other_bits(r, i, &got[0][i], &got[1][i], why))
            return RANDOM_WRONG;
    return RANDOM_AGREES;
}

random_verdict random_run_apart(const random_world *w, const char *text,
                                size_t len, sd_buf *why)
{
    random_program p = {.format = "hlo_text",
                        .bytes = {(const uint8_t *)text, len}};
    run r = {.w = w, .p = &p, .a = sd_arena_create()};
    random_verdict v = run_both(&r, why);

    sd_arena_destroy(r.a);
    return v;
}

random_verdict random_run_program(const random_world *w,
                                  const random_program *p, sd_buf *why)
{
    run r = {.w = w, .p = p, .a = sd_arena_create()};
    random_verdict v = run_it(&r, why);

    sd_arena_destroy(r.a);
    return v;
}

random_verdict random_run(const random_world *w, const char *text, size_t len,
                          sd_buf *why)
{
    sd_arena *a = sd_arena_create();
    random_program p = {.format = "hlo_text",
                        .bytes = {(const uint8_t *)text, len},
                        .error = random_errors(a, text, len)};
    random_verdict v = random_run_program(w, &p, why);

    sd_arena_destroy(a);
    return v;
}

random_verdict random_run_odd(const random_world *w, const char *text,
                              size_t len, sd_buf *why)
{
    random_program p = {.format = "hlo_text",
                        .bytes = {(const uint8_t *)text, len},
                        .hostile = true};

    return random_run_program(w, &p, why);
}
