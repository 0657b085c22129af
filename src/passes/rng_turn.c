/* Which turn it is, for the random numbers that loops draw: a count that only
 * grows goes through every loop and branch that draws, as one more element of
 * what they carry, so that no two runs of an instruction see the same.  A
 * loop's condition gives nothing back, so loops inside one count above 2^32
 * times the condition's own count. */
#include "passes_priv.h"

/* A computation's mark. */
enum { DRAWS = 1, CARRIES = 2 };

/* ---- who draws ---- */

static bool can_carry(const hlo_inst *in)
{
    if (in->op != HLO_WHILE && in->op != HLO_CONDITIONAL)
        return false;
    for (int i = 0; i < in->ncomp; i++)
        if (in->comp[i]->ncaller != 1 || in->comp[i]->nparam != 1)
            return false;
    return true;
}

static bool calls_drawing(const hlo_inst *in)
{
    for (int i = 0; i < in->ncomp; i++)
        if (in->comp[i]->mark & DRAWS)
            return can_carry(in);
    return false;
}

/* Callees come first. */
static void mark_drawing(hlo_module *m)
{
    hlo_for_each_comp(c, m) {
        c->mark = 0;
        hlo_for_each_inst(in, c)
            if (in->op == HLO_RNG || calls_drawing(in))
                c->mark = DRAWS;
    }
}

/* ---- one element more ---- */

static const sd_shape *count_shape(sd_arena *a)
{
    return sd_shape_make(a, SD_U64, 0, NULL);
}

static const sd_shape *longer_shape(sd_arena *a, const sd_shape *s)
{
    int n = sd_shape_nresult(s);
    const sd_shape **elem = sd_arena_array(a, const sd_shape *, n + 1);

    for (int i = 0; i < n; i++)
        elem[i] = sd_shape_result(s, i);
    elem[n] = count_shape(a);
    return sd_shape_tuple(a, n + 1, elem);
}

/* x, or its elements, and the count */
static hlo_inst *longer(hlo_at p, hlo_inst *x, hlo_inst *count)
{
    int n = hlo_nresult(x);
    hlo_inst **all = sd_arena_array(p.c->module->arena, hlo_inst *, n + 1);

    for (int i = 0; i < n; i++)
        all[i] = pass_result(p, x, i);
    all[n] = count;
    return hlo_make_tuple(p, n + 1, all);
}

/* What x was before it got longer: of shape s. */
static hlo_inst *shorter(hlo_at p, hlo_inst *x, const sd_shape *s)
{
    hlo_inst **all;

    if (s->dtype != SD_TUPLE)
        return hlo_make_gte(p, x, 0);
    all = sd_arena_array(p.c->module->arena, hlo_inst *, s->nelem + 1);
    for (int i = 0; i < s->nelem; i++)
        all[i] = hlo_make_gte(p, x, i);
    return hlo_make_tuple(p, s->nelem, all);
}

static hlo_inst *last_of(hlo_at p, hlo_inst *x)
{
    return hlo_make_gte(p, x, x->shape->nelem - 1);
}

/* ---- computations ---- */

/* The count that a computation comes with, now that it comes with one. */
static hlo_inst *lengthen_param(hlo_comp *c)
{
    hlo_inst *old = c->param[0], *p;
    const sd_shape *s = old->shape;
    hlo_at at = {c, old->next, NULL};

    p = hlo_make_param(c, longer_shape(c->module->arena, s), old->name);
    at.before = p->next;
    hlo_replace(old, shorter(at, p, s));
    hlo_remove(old);
    return last_of(at, p);
}

/* The loop or branch with the count; gives what the count is after it. */
static hlo_inst *lengthen_call(hlo_inst *in, hlo_inst *count)
{
    hlo_at p = pass_at(in);
    int first = in->op == HLO_WHILE ? 0 : 1;
    hlo_inst **arg =
        sd_arena_array(p.c->module->arena, hlo_inst *, in->narg + 1);
    hlo_inst *y, *after;

    for (int i = 0; i < in->narg; i++)
        arg[i] = i < first ? in->arg[i] : longer(p, in->arg[i], count);
    for (int i = 0; i < in->ncomp; i++)
        in->comp[i]->mark |= CARRIES;
    y = hlo_inst_clone(p.c, in, in, arg);
    y->shape = longer_shape(p.c->module->arena, in->shape);
    after = last_of(p, y);
    hlo_replace(in, shorter(p, y, in->shape));
    hlo_remove(in);
    hlo_set_comps(y, y->ncomp, y->comp); /* it alone calls them now */
    return after;
}

/* What tells this run of c's instructions from others; NULL: nothing can. */
static hlo_inst *count_of(hlo_comp *c)
{
    hlo_at p = {c, c->first, NULL};
    hlo_inst *count, *by, *caller = c->caller;
    bool is_cond;

    if (c == c->module->entry)
        return hlo_make_scalar_s64(p, SD_U64, 0);
    if (!(c->mark & CARRIES))
        return NULL;
    count = lengthen_param(c);
    if (caller->op != HLO_WHILE)
        return count;
    is_cond = caller->comp[0] == c;
    p.before = count->next;
    by = hlo_make_scalar_s64(p, SD_U64, is_cond ? 32 : 1);
    return hlo_make_binary(p, is_cond ? HLO_SHL : HLO_ADD, count, by);
}

static bool is_condition(const hlo_comp *c)
{
    return c->caller && c->caller->op == HLO_WHILE && c->caller->comp[0] == c;
}

static bool visit(hlo_comp *c, pass_draw *draw, void *ctx)
{
    hlo_inst *first = count_of(c), *count = first;

    if (!first) /* a function of elements */
        return false;
    hlo_for_each_inst(in, c) {
        if (in->op == HLO_RNG)
            draw(in, c == c->module->entry ? NULL : first, ctx);
        else if (calls_drawing(in))
            count = lengthen_call(in, count);
    }
    if (c != c->module->entry && !is_condition(c))
        hlo_set_root(c, longer((hlo_at){c, NULL, NULL}, c->root, count));
    return true;
}

bool pass_for_each_draw(hlo_module *m, pass_draw *draw, void *ctx)
{
    bool changed = false;

    mark_drawing(m);
    for (hlo_comp *c = m->last; c; c = c->prev) /* callers first */
        if (c->mark)
            changed |= visit(c, draw, ctx);
    return changed;
}
