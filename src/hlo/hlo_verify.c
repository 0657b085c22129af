/* What must hold of every module between passes: lists, use lists, order,
 * names, parents, callers, shapes.  A broken graph is our own mistake, so the
 * code is INTERNAL; a wrong shape keeps the message of inference. */
#include "hlo_infer.h"

enum { MAX_CALLS = 2000 }; /* in calls: walkers go down by recursion */

typedef struct {
    const hlo_module *m;
    hlo_module scratch; /* m with an arena of our own: verifying leaves m be */
    sd_map *seen; /* instruction or computation -> itself */
} checker;

static sd_status broken(const hlo_inst *in, const char *what)
{
    return sd_error(
        SD_INTERNAL, "broken graph: %s of %s: %s", in->name ? in->name : "?",
        in->parent && in->parent->name ? in->parent->name : "?", what);
}

static int count_uses(const hlo_inst *user, const hlo_inst *of)
{
    int n = 0;

    for (int i = 0; i < user->narg; i++)
        n += user->arg[i] == of;
    return n;
}

static int count_users(const hlo_inst *of, const hlo_inst *user)
{
    int n = 0;

    hlo_for_each_user(u, of)
        n += u == user;
    return n;
}

/* Long lists are held against each other by their sums only: comparing all
 * pairs of a constant with thousands of users would take forever. */
static sd_status check_edges(const hlo_inst *in)
{
    for (int i = 0; i < in->narg; i++) {
        const hlo_inst *x = in->arg[i];

        if (x->parent != in->parent)
            return broken(in, "an operand is of another computation");
        if (x->nuse <= 64 && in->narg <= 64 &&
            count_users(x, in) != count_uses(in, x))
            return broken(in, "its operand does not list it as a user");
    }
    hlo_for_each_user(u, in) {
        if (!u || u->parent != in->parent)
            return broken(in, "a user is of another computation");
        if (u->narg <= 64 && count_uses(u, in) == 0)
            return broken(in, "a user does not use it");
    }
    return NULL;
}

static sd_status check_inst(checker *k, const hlo_inst *in)
{
    sd_status st;

    if (in->op >= HLO_OP_COUNT || !in->name || !in->shape)
        return broken(in, "op, name or shape is missing");
    for (int i = 0; i < in->narg; i++)
        if (!in->arg[i] || !sd_map_has(k->seen, sd_key(in->arg[i])))
            return broken(in, "stands before an operand");
    sd_map_set(k->seen, sd_key(in), (void *)(uintptr_t)1);
    if ((st = check_edges(in)))
        return st;
    for (int i = 0; i < in->ncomp; i++) {
        if (!in->comp[i] || in->comp[i]->module != k->m)
            return broken(in, "calls a computation of another module");
        if (in->comp[i]->ncaller < 1)
            return broken(in, "is not counted as a caller");
        if (in->comp[i]->ncaller == 1 && in->comp[i]->caller &&
            in->comp[i]->caller != in)
            return broken(in, "calls what has another caller");
    }
    return hlo_verify_inst(&k->scratch, in);
}

static sd_status check_params(const hlo_comp *c)
{
    int n = 0;

    hlo_for_each_inst(in, c)
        if (in->op == HLO_PARAMETER) {
            int64_t i = in->u.param.index;

            n++;
            if (i < 0 || i >= c->nparam || c->param[i] != in)
                return broken(in, "is not in the parameter list");
        }
    if (n != c->nparam)
        return sd_error(SD_INTERNAL,
                        "broken graph: %s lists %d parameters, has %d", c->name,
                        c->nparam, n);
    return NULL;
}

static sd_status check_comp(checker *k, const hlo_comp *c)
{
    const hlo_inst *prev = NULL;
    int64_t uses = 0, args = 0;
    sd_status st;

    if (!c->root || c->root->parent != c || c->module != k->m)
        return sd_error(SD_INTERNAL, "broken graph: root or module of %s",
                        c->name);
    for (const hlo_inst *in = c->first; in; prev = in, in = in->next) {
        if (in->prev != prev || in->parent != c)
            return broken(in, "links or parent");
        if ((st = check_inst(k, in)))
            return st;
        uses += in->nuse;
        args += in->narg;
    }
    if (c->last != prev)
        return sd_error(SD_INTERNAL, "broken graph: last of %s", c->name);
    if (uses != args)
        return sd_error(SD_INTERNAL,
                        "broken graph: %s has %" PRId64 " operands and %" PRId64
                        " uses",
                        c->name, args, uses);
    if (!sd_map_has(k->seen, sd_key(c->root)))
        return broken(c->root, "the root is not in its computation");
    return check_params(c);
}

/* ---- over all computations ---- */

/* state: computation -> 1 while below it, 2 when done */
static sd_status check_recursion(sd_map *state, const hlo_comp *c, int depth)
{
    uintptr_t s = (uintptr_t)sd_map_get(state, sd_key(c));
    sd_status st;

    if (s == 2)
        return NULL;
    if (s == 1)
        return sd_error(SD_INVALID, "%s calls itself", c->name);
    if (depth > MAX_CALLS)
        return sd_error(SD_INVALID, "%s: calls nest deeper than %d", c->name,
                        MAX_CALLS);
    sd_map_set(state, sd_key(c), (void *)(uintptr_t)1);
    hlo_for_each_inst(in, c)
        for (int i = 0; i < in->ncomp; i++)
            if ((st = check_recursion(state, in->comp[i], depth + 1)))
                return st;
    sd_map_set(state, sd_key(c), (void *)(uintptr_t)2);
    return NULL;
}

static sd_status check_unique(sd_arena *a, const hlo_module *m)
{
    sd_map *ids = sd_map_create(a);

    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            if (in->id < 0 || in->id >= m->next_id ||
                sd_map_has(ids, (uint64_t)in->id + 1))
                return broken(in, "its id is not its own");
            sd_map_set(ids, (uint64_t)in->id + 1, (void *)(uintptr_t)1);
        }
    return NULL;
}

static sd_status check_entry(const hlo_module *m)
{
    if (!m->entry)
        return sd_error(SD_INTERNAL, "broken graph: %s has no entry", m->name);
    return hlo_check_entry(m, (hlo_dims){0});
}

static sd_status check_module(checker *k)
{
    sd_arena *a = k->scratch.arena;
    const hlo_comp *prev = NULL;
    sd_map *state = sd_map_create(a);
    sd_status st;

    for (const hlo_comp *c = k->m->first; c; prev = c, c = c->next) {
        if (c->prev != prev)
            return sd_error(SD_INTERNAL, "broken graph: links of %s", c->name);
        if ((st = check_comp(k, c)))
            return st;
    }
    hlo_for_each_comp(c, k->m)
        if ((st = check_recursion(state, c, 0)))
            return st;
    if ((st = check_unique(a, k->m)))
        return st;
    return check_entry(k->m);
}

sd_status hlo_verify(const hlo_module *m)
{
    checker k = {.m = m, .scratch = *m};
    sd_status st;

    k.scratch.arena = sd_arena_create();
    k.seen = sd_map_create(k.scratch.arena);
    st = check_module(&k);
    sd_arena_destroy(k.scratch.arena);
    return st;
}
