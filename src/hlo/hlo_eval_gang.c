/* The evaluator over all participants at once.  Each instruction has a value a
 * participant; all that run it run it together, so a collective finds its
 * members there, or tells who is missing.  A loop goes on with those whose
 * condition holds, a branch with those that take it. */
#include "hlo_eval.h"

typedef struct {
    hlo_ev *e;
    int64_t n;
} crew;

static sd_status run(crew *w, const hlo_comp *c, const bool *here,
                     hlo_value *const *arg, hlo_value *out);

static bool *same_crew(crew *w, const bool *here)
{
    return sd_arena_copy(w->e->arena, here, sizeof *here * (size_t)w->n);
}

static hlo_value **one_each(crew *w, hlo_value *v)
{
    hlo_value **to = sd_arena_array(w->e->arena, hlo_value *, w->n);

    for (int64_t p = 0; p < w->n; p++)
        to[p] = &v[p];
    return to;
}

/* ---- control ---- */

/* Runs c on the states in an arena of its own; what it gives goes to `to`. */
static sd_status step(crew *w, const hlo_comp *c, const bool *here,
                      hlo_value *state, sd_arena *to, hlo_value *out)
{
    hlo_ev *e = w->e;
    sd_arena *back = e->arena;
    double bytes = e->bytes;
    hlo_value *v;
    sd_status st;

    e->arena = sd_arena_create();
    v = sd_arena_array(e->arena, hlo_value, w->n);
    st = run(w, c, here, one_each(w, state), v);
    for (int64_t p = 0; !st && p < w->n; p++)
        if (here[p])
            out[p] = hlo_value_copy(to, &v[p]);
    sd_arena_destroy(e->arena);
    e->arena = back;
    e->bytes = bytes;
    return st;
}

static bool anybody(const crew *w, const bool *here)
{
    for (int64_t p = 0; p < w->n; p++)
        if (here[p])
            return true;
    return false;
}

/* States of those that have left stay: no arena goes before the end. */
static sd_status loop(crew *w, const hlo_inst *in, const hlo_gang *g)
{
    bool *here = same_crew(w, g->here);
    hlo_value *state = sd_arena_array(w->e->arena, hlo_value, w->n);
    hlo_value *go = sd_arena_array(w->e->arena, hlo_value, w->n);
    sd_status st;

    for (int64_t p = 0; p < w->n; p++)
        if (here[p])
            state[p] = g->in[p][0];
    for (;;) {
        if ((st = step(w, in->comp[0], here, state, w->e->arena, go)))
            return st;
        for (int64_t p = 0; p < w->n; p++)
            if (here[p] && !*(char *)go[p].data) {
                g->out[p] = state[p];
                here[p] = false;
            }
        if (!anybody(w, here))
            return NULL;
        if ((st = hlo_afford_turn(w->e)) ||
            (st = step(w, in->comp[1], here, state, w->e->arena, state)))
            return st;
    }
}

static sd_status branch(crew *w, const hlo_inst *in, const hlo_gang *g)
{
    hlo_value **arg = sd_arena_array(w->e->arena, hlo_value *, w->n);
    bool *here = same_crew(w, g->here);
    sd_status st;

    for (int k = 0; k < in->ncomp; k++) {
        for (int64_t p = 0; p < w->n; p++) {
            here[p] = g->here[p] && hlo_branch_taken(in, g->in[p]) == k;
            if (here[p])
                arg[p] = &g->in[p][1 + k];
        }
        if (anybody(w, here) && (st = run(w, in->comp[k], here, arg, g->out)))
            return st;
    }
    return NULL;
}

static sd_status control(crew *w, const hlo_inst *in, const hlo_gang *g)
{
    if (in->op == HLO_WHILE)
        return loop(w, in, g);
    if (in->op == HLO_CONDITIONAL)
        return branch(w, in, g);
    return run(w, in->comp[0], g->here, g->in, g->out); /* call, fusion */
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

static sd_status together(crew *w, const hlo_inst *in, const hlo_gang *g)
{
    sd_status st;

    if (in->op == HLO_PARTITION_ID || in->op == HLO_REPLICA_ID)
        return number(in, g);
    if (hlo_info(in)->cls == HLO_C_COLLECTIVE)
        return hlo_eval_join(w->e, in, g);
    if (hlo_info(in)->cls == HLO_C_CONTROL)
        return control(w, in, g);
    if (hlo_is_joint(in))
        return hlo_eval_joint(w->e, in, g);
    for (int64_t p = 0; p < g->n; p++)
        if (g->here[p] && (st = hlo_eval_one(w->e, in, g->in[p], &g->out[p])))
            return st;
    return NULL;
}

/* Operands of instruction i, and room for what it gives. */
static sd_status gather_operands(crew *w, const hlo_frame *f, int i,
                                 hlo_value *const *val, hlo_gang *g,
                                 hlo_value **in)
{
    const hlo_inst *x = f->inst[i];
    sd_status st;

    for (int64_t p = 0; p < w->n; p++) {
        if (!g->here[p])
            continue;
        for (int k = 0; k < x->narg; k++)
            in[p][k] = val[f->arg[i][k]][p];
        if ((st = hlo_afford(w->e, x, in[p])))
            return st;
        if (hlo_passes_on(x) && !hlo_is_joint(x))
            g->out[p].shape = x->shape;
        else
            g->out[p] = hlo_value_make(w->e->arena, x->shape);
    }
    g->in = in;
    return NULL;
}

static sd_status run(crew *w, const hlo_comp *c, const bool *here,
                     hlo_value *const *arg, hlo_value *out)
{
    hlo_frame *f = hlo_open_frame(w->e, c);
    sd_arena *a = w->e->arena;
    hlo_value **val = sd_arena_array(a, hlo_value *, f->n + 1);
    hlo_value **in = sd_arena_array(a, hlo_value *, w->n);
    sd_status st;

    for (int64_t p = 0; p < w->n; p++)
        in[p] = sd_arena_array(a, hlo_value, f->most + 1);
    for (int i = 0; i < f->n; i++) {
        const hlo_inst *x = f->inst[i];
        hlo_gang g = {.n = w->n, .here = here};

        g.out = val[i] = sd_arena_array(a, hlo_value, w->n);
        if (x->op == HLO_PARAMETER) {
            for (int64_t p = 0; p < w->n; p++)
                if (here[p])
                    val[i][p] = arg[p][x->u.param.index];
            continue;
        }
        if ((st = gather_operands(w, f, i, val, &g, in)) ||
            (st = together(w, x, &g)))
            return sd_note(st, "%s", x->name);
    }
    for (int64_t p = 0; p < w->n; p++)
        if (here[p])
            out[p] = val[f->root][p];
    return NULL;
}

sd_status hlo_eval_all(sd_arena *a, const hlo_comp *c,
                       const hlo_value *const *arg, int narg, hlo_value *out)
{
    sd_arena *scratch = sd_arena_create();
    hlo_ev e = {.arena = scratch, .keep = scratch};
    crew w = {&e, hlo_participants(c->module)};
    bool *here = sd_arena_array(scratch, bool, w.n);
    hlo_value *v = sd_arena_array(scratch, hlo_value, w.n);
    sd_status st;

    e.frames = sd_map_create(scratch);
    for (int64_t p = 0; p < w.n; p++)
        here[p] = true;
    st = narg == c->nparam
             ? run(&w, c, here, (hlo_value *const *)arg, v)
             : sd_error(SD_INVALID, "%s takes %d arguments, not %d", c->name,
                        c->nparam, narg);
    for (int64_t p = 0; !st && p < w.n; p++)
        out[p] = hlo_value_copy(a, &v[p]);
    sd_arena_destroy(scratch);
    return st;
}
