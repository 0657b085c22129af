/* Planning, stage by stage. */
#include "plan_mem.h"
#include "plan_whole.h"

/* Computations that are steps: the entry, bodies, conditions, branches; and how
 * often the loops around them turn in one run. */
typedef struct {
    hlo_comp *c;
    double turns;
} run_comp;
typedef sd_vec(run_comp) comp_list;

static double turns_inside(const plan_mem *pm, const hlo_inst *in, double turns)
{
    const int64_t *trip = sd_map_get(pm->trip, sd_key(in));

    return in->op == HLO_WHILE && trip ? thunk_turns_inside(*trip, turns)
                                       : turns;
}

static void collect(const plan_mem *pm, hlo_comp *c, double turns,
                    comp_list *out)
{
    *sd_push(pm->a, out) = (run_comp){c, turns};
    hlo_for_each_inst(in, c)
        if (in->op == HLO_WHILE || in->op == HLO_CONDITIONAL)
            for (int i = 0; i < in->ncomp; i++)
                collect(pm, in->comp[i], turns_inside(pm, in, turns), out);
}

/* What a condition does besides must be done. */
static bool may_be_left_out(const hlo_comp *cond)
{
    hlo_for_each_inst(x, cond)
        if (x->op != HLO_PARAMETER && hlo_has_effect(x))
            return false;
    return true;
}

/* Where a loop's counter is still to be seen. */
static void note_trips(plan_mem *pm)
{
    comp_list comps = {0};

    pm->trip = sd_map_create(pm->a);
    collect(pm, pm->m->entry, 1, &comps);
    for (int i = 0; i < comps.n; i++)
        hlo_for_each_inst(in, comps.at[i].c)
            if (in->op == HLO_WHILE) {
                int64_t n = may_be_left_out(in->comp[0]) ? hlo_turns(in) : -1;

                sd_map_set(pm->trip, sd_key(in),
                           sd_arena_copy(pm->a, &n, sizeof n));
            }
}

static sd_status lower_all(plan_mem *pm, const run_comp *rc)
{
    sd_status st;

    hlo_for_each_inst(in, rc->c) {
        plan_kernel *k;

        if (in->op != HLO_FUSION)
            continue;
        if ((st = plan_lower(pm->p->arena, in, &k)))
            return st;
        k->turns = rc->turns;
        if (!plan_scatter_of(k))
            plan_tile(k, pm->p->dev);
        else if ((st = pm->p->dev->kind == DEVICE_HOST
                           ? plan_tile_filled(&k, &in, pm->p->dev)
                           : plan_tile_scatter(k, in, pm->p->dev)))
            return st;
        sd_map_set(pm->kernels, sd_key(in), k);
    }
    return NULL;
}

/* A program asks for an engine's processor only where it has the engine. */
static void drop_features(plan *p)
{
    uint64_t all = 0, used = 0;

    for (int i = 0; i < PLAN_ENGINE_COUNT; i++)
        all |= plan_engine_table[i].needs;
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernel[i]->blocks)
            used |= plan_engine_table[p->kernel[i]->blocks->engine].needs;
        else if (p->kernel[i]->attend)
            used |= plan_engine_table[p->kernel[i]->attend->engine].needs;
        else if (p->kernel[i]->places)
            used |= plan_engine_table[p->kernel[i]->places->engine].needs;
    p->program->device.features &= ~all | used;
}

/* Copies that became one place with what they copy are no steps: gone from
 * the module as well, which dumps show. */
static void drop_copies(hlo_comp *c)
{
    hlo_for_each_inst(in, c) {
        storage *s, *x;

        if (in->op != HLO_COPY)
            continue;
        s = storage_of(home_of(in)->at[0]);
        x = storage_of(home_of(in->arg[0])->at[0]);
        if (s != x)
            continue;
        hlo_replace(in, in->arg[0]);
        hlo_remove(in);
    }
}

static sd_status make_program(plan_mem *pm)
{
    comp_list comps = {0};
    sd_status st;

    collect(pm, pm->m->entry, 1, &comps);
    for (int i = 0; i < comps.n; i++) {
        if ((st = plan_schedule(comps.at[i].c, pm->p->dev)) ||
            (st = lower_all(pm, &comps.at[i])))
            return st;
    }
    if ((st = plan_buffers(pm)))
        return st;
    st = plan_steps(pm);
    for (int i = 0; i < comps.n; i++)
        drop_copies(comps.at[i].c);
    for (int i = 0; i < comps.n; i++)
        hlo_for_each_inst(in, comps.at[i].c)
            in->tag = NULL;
    return st;
}

static bool is_whole_use(const hlo_inst *in, const hlo_inst *user)
{
    return user->op != HLO_GET_TUPLE_ELEMENT && plan_is_reducing(in) &&
           in->shape->dtype == SD_TUPLE;
}

/* A kernel writes the elements of a reduction of several results: who wants all
 * of them as one (a loop, a branch) gets a tuple that is built of them. */
static void build_whole(hlo_comp *c, hlo_inst *in)
{
    int n = in->shape->nelem, k = 0;
    hlo_at at = {c, in->next, in};
    hlo_inst **x, *all = NULL;

    while (k < in->nuse) {
        hlo_inst *user = in->user[k];

        if (!is_whole_use(in, user)) {
            k++;
            continue;
        }
        if (!all) {
            x = sd_arena_array(c->module->arena, hlo_inst *, n);
            for (int i = 0; i < n; i++)
                x[i] = hlo_make_gte(at, in, i);
            all = hlo_make_tuple(at, n, x);
        }
        hlo_replace_use(user, in, all);
    }
}

sd_status plan_make(sd_arena *a, hlo_module *m, const device_desc *dev,
                    const sd_options *opt, plan **out)
{
    plan *p = sd_arena_new(a, plan);
    const device_desc wanted = device_as_wanted(dev, opt);
    plan_mem pm = {.m = m, .p = p};
    sd_status st;

    p->arena = a;
    p->m = m;
    p->dev = sd_arena_copy(a, &wanted, sizeof wanted);
    pm.a = sd_arena_create();
    note_trips(&pm);
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c)
            build_whole(c, in);
    if (!(st = plan_library(m, p->dev, opt))) {
        plan_split_phases(m);
        plan_copy_operands(m, p->dev, false);
    }
    if (!st && !(st = plan_alias(m)) && !(st = plan_fuse(m, opt))) {
        plan_peers(m, dev);
        p->program = thunk_program_create(m->name, dev);
        pm.kernels = sd_map_create(pm.a);
        st = make_program(&pm);
        /* the list of kernels outlives the scratch */
        p->kernel =
            sd_arena_copy(a, p->kernel, (size_t)p->nkernel * sizeof *p->kernel);
        drop_features(p);
    }
    sd_arena_destroy(pm.a);
#ifndef NDEBUG
    if (!st)
        st = plan_verify(p);
#endif
    if (st) {
        plan_destroy(p);
        return st;
    }
    *out = p;
    return NULL;
}

void plan_destroy(plan *p)
{
    if (!p)
        return;
    thunk_program_release(p->program);
    p->program = NULL;
}
