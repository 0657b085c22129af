/* Loops and branches in parts.  Every element of what a loop carries has one
 * sharding, in which it comes in, goes from turn to turn and comes out; what a
 * branch takes it takes as it is, and all branches give a result by the same.
 *
 * What a body would do is guessed without doing it: which parts it gives for
 * the parts that it gets, and how many bytes it moves.  An element that starts
 * whole takes what the body gives.  Where the body gives other parts than it
 * got, either those it got are kept, or what both have in common; the fewer
 * bytes a turn, the better.  What only adds up sums (of gradients, a part of
 * the batch a turn) is itself a sum that waits. */
#include "spmd_flow.h"
#include "spmd_rule.h"

enum { MOST_ROUNDS = 8, MOST_DEPTH = 3 };

typedef const hlo_sharding *const *shardings;

/* How dimensions are cut and no more; NULL: not at all. */
static const hlo_sharding *cuts(spmd_flow *f, const hlo_sharding *s)
{
    return s && hlo_sharding_used(s)
               ? hlo_sharding_unreduced(f->m, s, 0, HLO_SUM_OF)
               : NULL;
}

static const hlo_sharding **list(spmd_flow *f, int n)
{
    return sd_arena_array(f->a, const hlo_sharding *, n + 1);
}

static const hlo_sharding **what_is_had(spmd_flow *f, const hlo_inst *x)
{
    int n = hlo_nresult(x);
    const hlo_sharding **s = list(f, n);

    for (int i = 0; i < n; i++)
        s[i] = cuts(f, spmd_now_at(f, x, i));
    return s;
}

static bool any_of(int n, shardings s)
{
    for (int i = 0; i < n; i++)
        if (s[i])
            return true;
    return false;
}

/* ---- guesses ---- */

/* What c gives for that, with what is still to be summed. */
static const hlo_sharding **guess_comp(spmd_flow *f, const hlo_comp *c,
                                       shardings s)
{
    const hlo_inst *p = c->param[0];
    int n = hlo_nresult(c->root);
    const hlo_sharding **out = list(f, n);
    bool before = f->guessing;

    f->guessing = true;
    if (p->shape->dtype == SD_TUPLE)
        spmd_see(f, p, NULL, s);
    else
        spmd_see(f, p, s[0], NULL);
    hlo_for_each_inst(in, c)
        if (in->op != HLO_PARAMETER)
            spmd_guess(f, in);
    for (int i = 0; i < n; i++)
        out[i] = spmd_now_at(f, c->root, i);
    f->guessing = before;
    return out;
}

/* Bytes of a turn that carries its state by s, and what its body gives. */
static double turn(spmd_flow *f, const hlo_inst *in, shardings s,
                   const hlo_sharding ***out)
{
    double before = f->cost, bytes;

    f->cost = 0;
    guess_comp(f, in->comp[0], s);
    *out = guess_comp(f, in->comp[1], s);
    for (int i = 0; i < hlo_nresult(in); i++)
        f->cost += spmd_move_bytes(hlo_result_shape(in, i), (*out)[i], s[i]);
    bytes = f->cost;
    f->cost = before;
    return bytes;
}

/* What starts whole, as the body gives it. */
static bool grow(spmd_flow *f, int n, const hlo_sharding **s, shardings out)
{
    bool any = false;

    for (int i = 0; i < n; i++)
        if (!s[i] && (s[i] = cuts(f, out[i])))
            any = true;
    return any;
}

static bool shrink(spmd_flow *f, int n, const hlo_sharding **s, shardings out)
{
    bool any = false;

    for (int i = 0; i < n; i++) {
        const hlo_sharding *less =
            s[i] ? cuts(f, spmd_common(f->m, s[i], out[i])) : NULL;

        any |= less != s[i];
        s[i] = less;
    }
    return any;
}

/* What is had, and what is whole as whoever takes it out wants it. */
static const hlo_sharding **start(spmd_flow *f, const hlo_inst *in)
{
    const hlo_sharding **s = what_is_had(f, in->arg[0]);
    const sd_shape *local;

    hlo_for_each_user(u, in) {
        int i = u->op == HLO_GET_TUPLE_ELEMENT ? (int)u->u.tuple.index : -1;
        const hlo_sharding *w = i >= 0 && !s[i] ? spmd_wanted(f, u) : NULL;
        sd_status st =
            w ? spmd_local_shape(f->m, u->shape, w, HLO_ALL_ATOMS, &local)
              : NULL;

        if (w && !st)
            s[i] = w;
        sd_status_free(st);
    }
    return s;
}

/* As all who use x in a body that was just guessed take it; NULL: otherwise, or
 * not all alike. */
static const hlo_sharding *taken_by(spmd_flow *f, const hlo_inst *x,
                                    const hlo_inst *root)
{
    const hlo_sharding *arg[SPMD_MOST_ARGS], *all = NULL;

    hlo_for_each_user(u, x) {
        if (u == root)
            continue;
        if (spmd_needs(f, u, arg) != SPMD_CUT)
            return NULL;
        for (int k = 0; k < u->narg; k++) {
            if (u->arg[k] != x)
                continue;
            if (!arg[k] || arg[k]->unreduced)
                return NULL;
            all = all ? spmd_common(f->m, all, arg[k]) : arg[k];
        }
    }
    return cuts(f, all);
}

/* What is made of numbers alone and goes through a loop as it is, is made in
 * the parts that the body wants. */
static bool take_constants(spmd_flow *f, const hlo_inst *in,
                           const hlo_sharding **s)
{
    const hlo_inst *x = in->arg[0], *p = in->comp[1]->param[0];
    const hlo_inst *root = in->comp[1]->root;
    bool any = false, before = f->guessing;

    if (x->op != HLO_TUPLE || root->op != HLO_TUPLE)
        return false;
    hlo_for_each_user(g, p) {
        int i = g->op == HLO_GET_TUPLE_ELEMENT ? (int)g->u.tuple.index : -1;

        if (i < 0 || s[i] || root->arg[i] != g || !spmd_was_anew(f, x->arg[i]))
            continue;
        f->guessing = true;
        s[i] = taken_by(f, g, root);
        f->guessing = before;
        any |= s[i] != NULL;
    }
    return any;
}

/* Does nothing of the loop but `add` read element i? */
static bool is_only_read_by(const hlo_inst *in, int i, const hlo_inst *add)
{
    for (int k = 0; k < in->ncomp; k++) {
        const hlo_inst *p = in->comp[k]->param[0];

        for (int u = 0; u < p->nuse; u++) {
            const hlo_inst *g = p->user[u];

            if (g->op != HLO_GET_TUPLE_ELEMENT)
                return false;
            if (g->u.tuple.index != i)
                continue;
            while (g->nuse == 1 && spmd_mark_of(g->user[0]) == SPMD_CONSTRAINT)
                g = g->user[0];
            if (g->nuse > 1 || (g->nuse && g->user[0] != add))
                return false;
        }
    }
    return true;
}

/* What x is, but for constraints of it alone. */
static const hlo_inst *constrained(const hlo_inst *x)
{
    while (x->nuse == 1 && spmd_mark_of(x) == SPMD_CONSTRAINT)
        x = x->arg[0];
    return x;
}

/* What a turn adds to element i, or puts into it, where that is all that is
 * done with it: NULL: it is not. */
static const hlo_inst *added(const hlo_inst *in, int i)
{
    const hlo_inst *root = in->comp[1]->root, *x;

    if (root->op != HLO_TUPLE)
        return NULL;
    x = constrained(root->arg[i]);
    if ((x->op != HLO_ADD && x->op != HLO_DYNAMIC_UPDATE_SLICE) || x->nuse > 1)
        return NULL;
    for (int k = 0; k < (x->op == HLO_ADD ? 2 : 1); k++) {
        const hlo_inst *g = constrained(x->arg[k]);

        if (g->op == HLO_GET_TUPLE_ELEMENT && g->u.tuple.index == i &&
            g->arg[0] == in->comp[1]->param[0] && is_only_read_by(in, i, x))
            return x->arg[1 - k];
    }
    return NULL;
}

/* What every turn adds sums to that wait is carried as such a sum: they meet
 * once, behind the loop.  After a guess of its body. */
static bool gather_sums(spmd_flow *f, const hlo_inst *in,
                        const hlo_sharding **s)
{
    bool any = false, before = f->guessing;

    f->guessing = true;
    for (int i = 0; i < hlo_nresult(in); i++) {
        const hlo_inst *x = added(in, i);
        const hlo_sharding *now = x && x->nuse == 1 ? spmd_now(f, x) : NULL;

        if (!now || !now->unreduced || now->partial != HLO_SUM_OF ||
            pass_dtype(x) == SD_PRED || cuts(f, now) != s[i])
            continue;
        s[i] = now;
        any = true;
    }
    f->guessing = before;
    return any;
}

typedef struct {
    shardings start;
    const hlo_sharding **s;
    double bytes; /* of a turn */
} carried;

static const carried *decide(spmd_flow *f, const hlo_inst *in,
                             const hlo_sharding **s)
{
    int n = hlo_nresult(in);
    const hlo_sharding **less = list(f, n), **sums = list(f, n), **out;
    carried *to = sd_arena_new(f->a, carried);
    double bytes, fewer;

    to->start = memcpy(list(f, n), s, sizeof *s * (size_t)n);
    to->s = s;
    if (f->depth >= MOST_DEPTH)
        return to;
    f->depth++;
    bytes = turn(f, in, s, &out);
    for (int k = 0; k < MOST_ROUNDS && grow(f, n, s, out); k++)
        bytes = turn(f, in, s, &out);
    if (take_constants(f, in, s))
        bytes = turn(f, in, s, &out);
    memcpy(less, s, sizeof *s * (size_t)n);
    memcpy(sums, s, sizeof *s * (size_t)n);
    if (gather_sums(f, in, sums) && (fewer = turn(f, in, sums, &out)) < bytes) {
        bytes = fewer;
        s = sums;
    }
    fewer = bytes;
    for (int k = 0; k < MOST_ROUNDS && shrink(f, n, less, out); k++)
        fewer = turn(f, in, less, &out);
    f->depth--;
    to->s = fewer < bytes ? less : s;
    to->bytes = SD_MIN(fewer, bytes);
    return to;
}

/* Guesses come back to the same loop with the same state. */
static const carried *carry(spmd_flow *f, const hlo_inst *in)
{
    const hlo_sharding **s = start(f, in);
    const carried *was = sd_map_get(f->carried, sd_key(in));

    if (!was || !f->guessing ||
        memcmp(was->start, s, sizeof *s * (size_t)hlo_nresult(in))) {
        was = decide(f, in, s);
        sd_map_set(f->carried, sd_key(in), (void *)was);
    }
    return was;
}

/* What moves the fewest bytes of those that a branch gives; of several the one
 * that cuts most. */
static const hlo_sharding *best_of(spmd_flow *f, const hlo_inst *in, int i,
                                   const hlo_sharding ***out)
{
    const sd_shape *whole = hlo_result_shape(in, i);
    const hlo_sharding *best = NULL;
    double fewest = 0;

    for (int k = 0; k < in->ncomp; k++) {
        const hlo_sharding *s = cuts(f, out[k][i]);
        double bytes = 0;

        for (int j = 0; s && j < in->ncomp; j++)
            bytes += spmd_move_bytes(whole, out[j][i], s);
        if (s && (!best || bytes < fewest ||
                  (bytes <= fewest && spmd_nparts(s) > spmd_nparts(best)))) {
            best = s;
            fewest = bytes;
        }
    }
    return best;
}

static const hlo_sharding **branches(spmd_flow *f, const hlo_inst *in)
{
    int n = hlo_nresult(in);
    const hlo_sharding **s = list(f, n);
    const hlo_sharding ***out =
        sd_arena_array(f->a, const hlo_sharding **, in->ncomp + 1);

    for (int k = 0; k < in->ncomp; k++)
        out[k] = guess_comp(f, in->comp[k], what_is_had(f, in->arg[1 + k]));
    for (int i = 0; i < n; i++)
        s[i] = best_of(f, in, i, out);
    return s;
}

void spmd_guess_flow(spmd_flow *f, const hlo_inst *in)
{
    const hlo_sharding **s;

    if (in->op == HLO_WHILE) {
        const carried *x = carry(f, in);

        s = x->s;
        f->cost += x->bytes;
    } else {
        s = branches(f, in);
    }
    if (in->shape->dtype == SD_TUPLE)
        spmd_see(f, in, NULL, s);
    else
        spmd_see(f, in, s[0], NULL);
}

/* ---- the same done ---- */

static const sd_shape *local_shape(spmd_flow *f, const hlo_inst *x, shardings s)
{
    int n = hlo_nresult(x);
    const sd_shape **e = sd_arena_array(f->a, const sd_shape *, n + 1);

    for (int i = 0; i < n; i++) {
        e[i] = hlo_result_shape(x, i);
        if (s[i])
            e[i] = spmd_part_shape(f->m, e[i], s[i]);
    }
    return sd_shape_of_results(f->m->arena, x->shape, e);
}

/* x by s, a tuple again if it is one. */
static hlo_inst *parts_of(spmd_flow *f, hlo_at p, hlo_inst *x, shardings s)
{
    int n = hlo_nresult(x);
    hlo_inst **e = sd_arena_array(f->a, hlo_inst *, n + 1);

    for (int i = 0; i < n; i++) {
        e[i] = spmd_element(f, p, x, i);
        e[i] = s[i] ? spmd_as(f, p, e[i], s[i]) : spmd_whole(f, e[i]);
    }
    return pass_results(p, x->shape, e);
}

/* c's parameter becomes what is had by s; a copy stands for the whole. */
static void open_param(spmd_flow *f, hlo_comp *c, shardings s)
{
    hlo_inst *p = c->param[0], *x;
    const sd_shape *whole = p->shape;

    x = hlo_inst_create(c, p->next, HLO_COPY, whole, 1, &p);
    hlo_replace(p, x);
    hlo_set_arg(x, 0, p);
    p->shape = local_shape(f, x, s);
    if (whole->dtype == SD_TUPLE)
        spmd_set_parts(f, x, p, s);
    else
        spmd_set_part(f, x, p, s[0]);
}

static void drop_tuple(hlo_inst *x)
{
    if (x->op == HLO_TUPLE && x->nuse == 0 && x != x->parent->root)
        hlo_remove(x);
}

static void close_root(spmd_flow *f, hlo_comp *c, shardings s)
{
    hlo_inst *root = c->root;

    hlo_set_root(c, parts_of(f, (hlo_at){c, NULL, root}, root, s));
    drop_tuple(root);
}

/* `to` does what in did, on parts: in stands for what it gives. */
static void take_over(spmd_flow *f, hlo_inst *in, hlo_inst *to, shardings s)
{
    hlo_comp **c = sd_arena_array(f->a, hlo_comp *, in->ncomp + 1);
    int n = in->ncomp;

    memcpy(c, in->comp, sizeof *c * (size_t)n);
    hlo_set_comps(in, 0, NULL);
    hlo_set_comps(to, n, c);
    hlo_take_source(to, in);
    for (int k = 0; k < in->narg; k++) {
        hlo_inst *was = in->arg[k];

        hlo_set_arg(in, k, to->arg[k]);
        drop_tuple(was);
    }
    if (in->shape->dtype == SD_TUPLE)
        spmd_set_parts(f, in, to, s);
    else if (s[0])
        spmd_set_part(f, in, to, s[0]);
    else
        pass_replace(in, to);
}

static sd_status cut_all(spmd_flow *f, const hlo_inst *in)
{
    sd_status st = NULL;

    for (int k = 0; k < in->ncomp && !st; k++)
        st = f->owner->cut(f->ctx, in->comp[k]);
    return st;
}

/* What came in in more parts than it is carried in goes on in those. */
static void show_as(spmd_flow *f, hlo_inst *in, hlo_inst *to, shardings s,
                    shardings came)
{
    for (int k = 0; k < in->nuse; k++) {
        hlo_inst *u = in->user[k];
        int i = u->op == HLO_GET_TUPLE_ELEMENT ? (int)u->u.tuple.index : -1;

        if (i >= 0 && came[i] && came[i] != s[i] &&
            (!s[i] || spmd_moves_evenly(u->shape, s[i], came[i])))
            spmd_set_finer(f, u, hlo_make_gte(pass_at(u), to, i), s[i],
                           came[i]);
    }
}

static sd_status loop(spmd_flow *f, hlo_inst *in)
{
    const hlo_sharding **came = what_is_had(f, in->arg[0]);
    const hlo_sharding **s = carry(f, in)->s;
    hlo_comp *cond, *body;
    hlo_inst *x;
    sd_status st;

    if (!any_of(hlo_nresult(in), s) && !any_of(hlo_nresult(in), came)) {
        spmd_want(f, in->comp[1], s);
        return cut_all(f, in);
    }
    pass_own_comps(in); /* they are cut as this caller is */
    cond = in->comp[0];
    body = in->comp[1];
    open_param(f, cond, s);
    open_param(f, body, s);
    spmd_want(f, body, s);
    if ((st = cut_all(f, in)))
        return st;
    hlo_set_root(cond, spmd_whole(f, cond->root));
    close_root(f, body, s);
    x = parts_of(f, pass_at(in), in->arg[0], s);
    x = hlo_inst_create(in->parent, in, HLO_WHILE, x->shape, 1, &x);
    take_over(f, in, x, s);
    if (in->shape->dtype == SD_TUPLE)
        show_as(f, in, x, s, came);
    return NULL;
}

static sd_status conditional(spmd_flow *f, hlo_inst *in)
{
    const hlo_sharding **s = branches(f, in);
    hlo_inst **arg = sd_arena_array(f->a, hlo_inst *, in->narg + 1);
    bool any = any_of(hlo_nresult(in), s);
    sd_status st;

    for (int k = 1; k < in->narg; k++)
        any |= any_of(hlo_nresult(in->arg[k]), what_is_had(f, in->arg[k]));
    if (!any) {
        for (int k = 0; k < in->ncomp; k++)
            spmd_want(f, in->comp[k], s);
        return cut_all(f, in);
    }
    pass_own_comps(in); /* they are cut as this caller is */
    arg[0] = spmd_whole(f, in->arg[0]);
    for (int k = 1; k < in->narg; k++) {
        const hlo_sharding **had = what_is_had(f, in->arg[k]);

        arg[k] = parts_of(f, pass_at(in), in->arg[k], had);
        if (any_of(hlo_nresult(in->arg[k]), had))
            open_param(f, in->comp[k - 1], had);
        spmd_want(f, in->comp[k - 1], s);
    }
    if ((st = cut_all(f, in)))
        return st;
    for (int k = 0; k < in->ncomp; k++)
        close_root(f, in->comp[k], s);
    take_over(f, in,
              hlo_inst_create(in->parent, in, HLO_CONDITIONAL,
                              local_shape(f, in, s), in->narg, arg),
              s);
    return NULL;
}

sd_status spmd_cut_flow(spmd_flow *f, hlo_inst *in)
{
    return in->op == HLO_WHILE ? loop(f, in) : conditional(f, in);
}
