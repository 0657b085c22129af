/* Running computations, of n participants at once (one, where nobody asks for
 * more).  Each instruction has a value a participant; all that run it run it
 * together, so a collective finds its members there, or tells who is missing.
 * A loop goes on with those whose condition holds, a branch with those that
 * take it. */
#include "ref_priv.h"

enum { A_TURN = 1024 /* steps on top of its instructions', about */ };

static sd_status run(hlo_ev *e, int64_t n, const hlo_comp *c, const bool *here,
                     hlo_value *const *arg, hlo_value *out);

static bool *same_crew(hlo_ev *e, const hlo_gang *g)
{
    return sd_arena_copy(e->arena, g->here, sizeof *g->here * (size_t)g->n);
}

static bool anybody(int64_t n, const bool *here)
{
    for (int64_t p = 0; p < n; p++)
        if (here[p])
            return true;
    return false;
}

/* ---- control ---- */

/* One step in an arena of its own: c may read the states, and what it makes
 * goes, but for copies of the results, which live in `to`. */
static sd_status step(hlo_ev *e, int64_t n, const hlo_comp *c, const bool *here,
                      hlo_value *state, sd_arena *to, hlo_value *out)
{
    sd_arena *back = e->arena;
    double bytes = e->bytes;
    hlo_value *v, **arg;
    sd_status st;

    e->arena = sd_arena_create();
    v = sd_arena_array(e->arena, hlo_value, n);
    arg = sd_arena_array(e->arena, hlo_value *, n);
    for (int64_t p = 0; p < n; p++)
        arg[p] = &state[p];
    st = run(e, n, c, here, arg, v);
    for (int64_t p = 0; !st && p < n; p++)
        if (here[p])
            out[p] = hlo_value_copy(to, &v[p]);
    sd_arena_destroy(e->arena);
    e->arena = back;
    e->bytes = bytes;
    return st;
}

/* States live for a turn; those that leave keep a copy of theirs. */
static sd_status loop(hlo_ev *e, const hlo_inst *in, const hlo_gang *g)
{
    sd_arena *now = sd_arena_create(), *next;
    bool *here = same_crew(e, g);
    hlo_value *state = sd_arena_array(e->arena, hlo_value, g->n);
    hlo_value *go = sd_arena_array(e->arena, hlo_value, g->n);
    sd_status st;

    for (int64_t p = 0; p < g->n; p++)
        if (here[p])
            state[p] = g->in[p][0];
    for (;;) {
        next = sd_arena_create();
        if ((st = step(e, g->n, in->comp[0], here, state, next, go)))
            break;
        for (int64_t p = 0; p < g->n; p++)
            if (here[p] && !*(char *)go[p].data) {
                g->out[p] = hlo_value_copy(e->arena, &state[p]);
                here[p] = false;
            }
        if (!anybody(g->n, here) || (st = hlo_spend(e, A_TURN)) ||
            (st = step(e, g->n, in->comp[1], here, state, next, state)))
            break;
        sd_arena_destroy(now);
        now = next;
    }
    sd_arena_destroy(now);
    sd_arena_destroy(next);
    return st;
}

static int64_t branch_taken(const hlo_inst *in, const hlo_value *arg)
{
    sd_dtype t = arg[0].shape->dtype;
    int64_t i = sd_scalar_to_s64(t, arg[0].data);

    if (t == SD_PRED)
        i = !i; /* the branch for true stands first */
    return i < 0 || i >= in->ncomp ? in->ncomp - 1 : i;
}

static sd_status branch(hlo_ev *e, const hlo_inst *in, const hlo_gang *g)
{
    hlo_value **arg = sd_arena_array(e->arena, hlo_value *, g->n);
    bool *here = same_crew(e, g);
    sd_status st;

    for (int k = 0; k < in->ncomp; k++) {
        for (int64_t p = 0; p < g->n; p++) {
            here[p] = g->here[p] && branch_taken(in, g->in[p]) == k;
            if (here[p])
                arg[p] = &g->in[p][1 + k];
        }
        if (anybody(g->n, here) &&
            (st = run(e, g->n, in->comp[k], here, arg, g->out)))
            return st;
    }
    return NULL;
}

static sd_status control(hlo_ev *e, const hlo_inst *in, const hlo_gang *g)
{
    if (in->op == HLO_WHILE)
        return loop(e, in, g);
    if (in->op == HLO_CONDITIONAL)
        return branch(e, in, g);
    return run(e, g->n, in->comp[0], g->here, g->in, g->out); /* call, fusion */
}

/* In a function of elements. */
sd_status ref_control(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                      hlo_value *out)
{
    hlo_value *one = (hlo_value *)(uintptr_t)arg;

    return control(e, in, &(hlo_gang){1, &(bool){true}, &one, out});
}

/* ---- computations ---- */

static sd_status number(const hlo_inst *in, const hlo_gang *g)
{
    int64_t np = in->parent->module->npartition;

    for (int64_t p = 0; p < g->n; p++)
        if (g->here[p])
            sd_scalar_of_s64(in->shape->dtype,
                             in->op == HLO_PARTITION_ID ? p % np : p / np,
                             g->out[p].data);
    return NULL;
}

static sd_status together(hlo_ev *e, const hlo_inst *in, const hlo_gang *g)
{
    uint8_t cls = hlo_info(in)->cls;
    sd_status st;

    if (cls == HLO_C_CONTROL)
        return control(e, in, g);
    if (g->n > 1 && (in->op == HLO_PARTITION_ID || in->op == HLO_REPLICA_ID))
        return number(in, g);
    if (g->n > 1 && cls == HLO_C_COLLECTIVE)
        return ref_join(e, in, g);
    if (g->n > 1 && ref_is_joint(in))
        return ref_joint(e, in, g);
    for (int64_t p = 0; p < g->n; p++)
        if (g->here[p] && (st = hlo_eval_one(e, in, g->in[p], &g->out[p])))
            return st;
    return NULL;
}

/* Operands of instruction i, and room for what it gives. */
static sd_status gather_operands(hlo_ev *e, const hlo_frame *f, int i,
                                 hlo_value *const *val, const hlo_gang *g)
{
    const hlo_inst *x = f->inst[i];
    sd_status st;

    for (int64_t p = 0; p < g->n; p++) {
        if (!g->here[p])
            continue;
        for (int k = 0; k < x->narg; k++)
            g->in[p][k] = val[f->arg[i][k]][p];
        if ((st = hlo_afford(e, x, g->in[p])))
            return st;
        if (hlo_passes_on(x))
            g->out[p].shape = x->shape;
        else
            g->out[p] = hlo_value_make(e->arena, x->shape);
    }
    return NULL;
}

static sd_status run(hlo_ev *e, int64_t n, const hlo_comp *c, const bool *here,
                     hlo_value *const *arg, hlo_value *out)
{
    hlo_frame *f = hlo_open_frame(e, c);
    hlo_value **val = sd_arena_array(e->arena, hlo_value *, f->n + 1);
    hlo_value **in = sd_arena_array(e->arena, hlo_value *, n);
    sd_status st;

    e->bytes += (double)((f->n + f->most) * n) * sizeof(hlo_value);
    for (int64_t p = 0; p < n; p++)
        in[p] = sd_arena_array(e->arena, hlo_value, f->most + 1);
    for (int i = 0; i < f->n; i++) {
        const hlo_inst *x = f->inst[i];
        hlo_gang g = {n, here, in, sd_arena_array(e->arena, hlo_value, n)};

        val[i] = g.out;
        if (x->op == HLO_PARAMETER) {
            for (int64_t p = 0; p < n; p++)
                if (here[p])
                    val[i][p] = arg[p][x->u.param.index];
            continue;
        }
        if ((st = gather_operands(e, f, i, val, &g)) ||
            (st = together(e, x, &g)))
            return sd_note(st, "%s", x->name);
    }
    for (int64_t p = 0; p < n; p++)
        if (here[p])
            out[p] = val[f->root][p];
    return NULL;
}

/* ---- from outside ---- */

static sd_status eval(sd_arena *a, int64_t n, const hlo_comp *c,
                      const hlo_value *const *arg, int narg, hlo_value *out)
{
    sd_arena *scratch = sd_arena_create();
    hlo_ev e = {.more = &ref_evaluator, .arena = scratch, .keep = scratch};
    bool *here = sd_arena_array(scratch, bool, n);
    hlo_value *v = sd_arena_array(scratch, hlo_value, n);
    sd_status st;

    e.frames = sd_map_create(scratch);
    for (int64_t p = 0; p < n; p++)
        here[p] = true;
    st = narg == c->nparam
             ? run(&e, n, c, here, (hlo_value *const *)arg, v)
             : sd_error(SD_INVALID, "%s takes %d arguments, not %d", c->name,
                        c->nparam, narg);
    for (int64_t p = 0; !st && p < n; p++)
        out[p] = hlo_value_copy(a, &v[p]);
    sd_arena_destroy(scratch);
    return st;
}

sd_status ref_eval(sd_arena *a, const hlo_comp *c, const hlo_value *arg,
                   int narg, hlo_value *out)
{
    return eval(a, 1, c, &arg, narg, out);
}

sd_status ref_eval_all(sd_arena *a, const hlo_comp *c,
                       const hlo_value *const *arg, int narg, hlo_value *out)
{
    return eval(a, hlo_participants(c->module), c, arg, narg, out);
}
