/* Values in parts.  A value of a module that is being cut may be had as this
 * participant's part, with the sharding that says which part it is.  Parts
 * begin at parameters, at manual computations' results and at constraints, and
 * go on through the operations that have a rule (spmd_rule.c); where one has
 * none, or wants another sharding, the part is moved or gathered. */
#include "spmd_flow.h"
#include "spmd_rule.h"

typedef struct {
    hlo_inst *local;
    hlo_inst *total, *whole; /* once somebody wanted them */
    hlo_inst *shares;        /* the total, shared out by share */
    const hlo_sharding *s, *share;
    const hlo_sharding *const *each; /* of a tuple's elements; s is NULL */
    sd_map *as;                /* sharding -> the part by it */
} part;

spmd_flow *spmd_flow_create(sd_arena *a, hlo_module *m)
{
    spmd_flow *f = sd_arena_new(a, spmd_flow);

    *f = (spmd_flow){.a = a,
                     .m = m,
                     .parts = sd_map_create(a),
                     .anew = sd_map_create(a),
                     .guess = sd_map_create(a),
                     .wants = sd_map_create(a),
                     .carried = sd_map_create(a)};
    return f;
}

static part *part_of(const spmd_flow *f, const hlo_inst *in)
{
    return sd_map_get(f->parts, sd_key(in));
}

void spmd_set_part(spmd_flow *f, const hlo_inst *in, hlo_inst *local,
                   const hlo_sharding *s)
{
    part *x = sd_arena_new(f->a, part);

    *x = (part){.local = local, .s = s};
    sd_map_set(f->parts, sd_key(in), x);
}

void spmd_set_finer(spmd_flow *f, hlo_inst *in, hlo_inst *local,
                    const hlo_sharding *s, const hlo_sharding *finer)
{
    hlo_at p = pass_at(in);
    hlo_inst *to = s ? spmd_move(p, local, s, finer)
                     : spmd_cut(p, local, finer, HLO_ALL_ATOMS);
    part *x;

    spmd_set_part(f, in, to, finer);
    x = part_of(f, in);
    x->as = sd_map_create(f->a);
    if (s)
        sd_map_set(x->as, sd_key(s), local);
    else
        x->whole = local;
}

bool spmd_is_part(const spmd_flow *f, const hlo_inst *in)
{
    return part_of(f, in) != NULL;
}

const hlo_sharding *spmd_part_sharding(const spmd_flow *f, const hlo_inst *in)
{
    const part *x = part_of(f, in);

    return x ? x->s : NULL;
}

const hlo_sharding *spmd_cuts(hlo_module *m, const hlo_sharding *s, int rank,
                              uint32_t mask)
{
    const hlo_sharding *to = hlo_sharding_blank(m, s, rank);

    for (int d = 0; d < SD_MIN(rank, s->rank); d++)
        to = hlo_sharding_with(m, to, d, hlo_atoms_in(&s->dim[d].cut, mask));
    return hlo_sharding_unreduced(m, to, s->unreduced & mask, s->partial);
}

/* The part with nothing left to be summed: what was summed in shares is
 * gathered, which moves as much as the other half of a sum would. */
static hlo_inst *total_of(hlo_inst *in, part *x)
{
    hlo_module *m = in->parent->module;

    if (!x->total)
        x->total =
            x->shares
                ? spmd_move(pass_at(in), x->shares, x->share,
                            hlo_sharding_unreduced(m, x->s, 0, HLO_SUM_OF))
                : spmd_total(pass_at(in), x->local, x->s, HLO_ALL_ATOMS);
    return x->total;
}

/* Does s cut all that now cuts, and more? */
static bool refines(const hlo_sharding *s, const hlo_sharding *now)
{
    for (int d = 0; d < now->rank; d++)
        if (memcmp(s->dim[d].cut.at, now->dim[d].cut.at, now->dim[d].cut.n))
            return false;
    return true;
}

/* Sums that are wanted in parts, in shares: in front of whoever wants the
 * total later. */
static hlo_inst *shares_of(hlo_inst *in, part *x, const hlo_sharding *s)
{
    hlo_inst *to = spmd_move(pass_at(in), x->local, x->s, s);

    if (!x->shares && !s->unreduced && refines(s, x->s)) {
        x->shares = to;
        x->share = s;
    }
    return to;
}

static hlo_inst *whole_tuple(hlo_inst *in, const part *x)
{
    hlo_at p = pass_at(in);
    int n = in->shape->nelem;
    hlo_inst **e = sd_arena_array(p.c->module->arena, hlo_inst *, n);

    for (int i = 0; i < n; i++) {
        e[i] = hlo_make_gte(p, x->local, i);
        if (x->each[i])
            e[i] = spmd_join(p, e[i], x->each[i], HLO_ALL_ATOMS);
    }
    return hlo_make_tuple(p, n, e);
}

/* The whole of what only lies elsewhere is made of the whole that it is of,
 * which others may want, too, and a broadcast's is less to move. */
static bool is_moved(const hlo_inst *in, const part *x)
{
    return (in->op == HLO_BROADCAST || in->op == HLO_TRANSPOSE ||
            in->op == HLO_RESHAPE) &&
           x && !x->whole && !x->s->unreduced;
}

static void move_whole(spmd_flow *f, hlo_inst *in)
{
    sd_vec(hlo_inst *) chain = {0};
    hlo_inst *x;

    for (; is_moved(in, part_of(f, in)); in = in->arg[0])
        *sd_push(f->a, &chain) = in;
    x = spmd_whole(f, in);
    while (x && chain.n) {
        in = chain.at[--chain.n];
        if ((x = spmd_on_parts(in, in->shape, &x)))
            part_of(f, in)->whole = x;
    }
}

static hlo_inst *spread_again(spmd_flow *f, hlo_inst *in,
                              const hlo_sharding *s);

hlo_inst *spmd_whole(spmd_flow *f, hlo_inst *in)
{
    part *x = part_of(f, in);

    if (!x)
        return in;
    if (!x->whole && x->each)
        x->whole = whole_tuple(in, x);
    if (is_moved(in, x))
        move_whole(f, in);
    if (!x->whole)
        x->whole = spmd_join(pass_at(in), total_of(in, x), x->s, HLO_ALL_ATOMS);
    return x->whole;
}

static hlo_inst *made_anew(spmd_flow *f, hlo_inst *in, const hlo_sharding *s);

static hlo_inst *cut_whole(spmd_flow *f, hlo_at p, hlo_inst *in,
                           const hlo_sharding *s)
{
    if (sd_map_get(f->anew, sd_key(in)))
        in = made_anew(f, in, hlo_sharding_unreduced(f->m, s, 0, HLO_SUM_OF));
    else
        in = spmd_cut(p, in, s, HLO_ALL_ATOMS);
    return spmd_share(p, in, s, HLO_ALL_ATOMS);
}

hlo_inst *spmd_as(spmd_flow *f, hlo_at p, hlo_inst *in, const hlo_sharding *s)
{
    part *x = part_of(f, in);
    const hlo_sharding *now;
    hlo_inst *to;

    if (!x)
        return cut_whole(f, p, in, s);
    p = pass_at(in); /* in front of every user */
    if (x->s == s)
        return x->local;
    if (hlo_sharding_is_whole(s))
        return spmd_whole(f, in);
    now = x->s->unreduced & s->unreduced
              ? x->s
              : hlo_sharding_unreduced(f->m, x->s, 0, HLO_SUM_OF);
    if (now == s)
        return total_of(in, x);
    if (!x->as)
        x->as = sd_map_create(f->a);
    if ((to = sd_map_get(x->as, sd_key(s))))
        return to;
    if (!x->total && spmd_scatters(x->s, s))
        to = shares_of(in, x, s);
    else if (in->op != HLO_BROADCAST || !(to = spread_again(f, in, s)))
        to =
            now->grid == s->grid && now->partial == s->partial
                ? spmd_move(p, now == x->s ? x->local : total_of(in, x), now, s)
                : cut_whole(f, p, spmd_whole(f, in), s);
    sd_map_set(x->as, sd_key(s), to);
    return to;
}

/* ---- operations ---- */

typedef struct { /* by factor: the atoms that cut it */
    const hlo_sharding *like;
    hlo_atoms cut[SPMD_MOST_FACTORS];
    uint32_t used;
    uint32_t sums; /* along which operands are summed after it, not before */
} choice;

/* Takes what operand k's part is cut by, where nothing stands against it. */
static void take(const spmd_rule *r, int k, const hlo_sharding *s, choice *c)
{
    if (!c->like)
        c->like = s;
    if (c->like->grid != s->grid)
        return;
    for (int d = 0; d < s->rank; d++) {
        const hlo_atoms *a = &s->dim[d].cut;
        int f = r->arg[k][d];
        uint32_t mask = hlo_atoms_mask(a);

        if (!a->n || f < 0 || c->cut[f].n || (mask & c->used) ||
            r->factor[f].size % hlo_atoms_size(s->grid, a))
            continue;
        c->cut[f] = *a;
        c->used |= mask;
    }
}

typedef struct { /* guessed */
    const hlo_sharding *s;
    const hlo_sharding *const *each;
    bool anew;
} seen;

static bool was_anew(const spmd_flow *f, const hlo_inst *in)
{
    const seen *g;

    if (!f->guessing)
        return sd_map_has(f->anew, sd_key(in));
    g = sd_map_get(f->guess, sd_key(in));
    return g && g->anew;
}

static bool is_anew(const spmd_flow *f, const hlo_inst *in);

/* What operands leave open, as users want it. */
static void take_want(const spmd_flow *f, const hlo_inst *in,
                      const spmd_rule *r, choice *c)
{
    const hlo_sharding *w = spmd_wanted(f, in);

    if (!w || is_anew(f, in) || (c->like && c->like->grid != w->grid))
        return;
    c->like = w;
    for (int d = 0; d < w->rank; d++) {
        const hlo_atoms *a = &w->dim[d].cut;
        int k = r->result[d];
        uint32_t mask = hlo_atoms_mask(a);

        if (!a->n || k < 0 || c->cut[k].n || (mask & (c->used | c->sums)) ||
            r->factor[k].size % hlo_atoms_size(w->grid, a))
            continue;
        c->cut[k] = *a;
        c->used |= mask;
    }
}

/* The sum of sums is the sum of parts' sums, and what only moves them waits,
 * too: what nobody else uses meets once, behind all of it. */
static uint32_t sums_of(const spmd_flow *f, const hlo_inst *in, uint32_t used)
{
    bool adds = in->op == HLO_ADD || in->op == HLO_SUBTRACT;
    const hlo_sharding *s = NULL;
    uint32_t sums = 0;

    if (!adds && in->op != HLO_NEGATE && in->op != HLO_TRANSPOSE &&
        in->op != HLO_RESHAPE)
        return 0;
    for (int k = 0; k < in->narg; k++) {
        s = spmd_now(f, in->arg[k]);
        if (!s || s->partial != HLO_SUM_OF || in->arg[k]->nuse > 1 ||
            pass_dtype(in) == SD_PRED || (k && s->unreduced != sums))
            return 0;
        sums = s->unreduced;
    }
    return sums & used ? 0 : sums;
}

/* The largest operand first: it is the dearest to move. */
static bool choose(const spmd_flow *f, const hlo_inst *in, const spmd_rule *r,
                   choice *c)
{
    uint64_t done = 0;

    *c = (choice){0};
    for (;;) {
        int best = -1;

        for (int k = 0; k < in->narg; k++)
            if (!(done >> k & 1) && spmd_now(f, in->arg[k]) &&
                (best < 0 || sd_shape_bytes(in->arg[k]->shape) >
                                 sd_shape_bytes(in->arg[best]->shape)))
                best = k;
        if (best < 0)
            break;
        done |= UINT64_C(1) << best;
        take(r, best, spmd_now(f, in->arg[best]), c);
    }
    c->sums = sums_of(f, in, c->used);
    take_want(f, in, r, c);
    return c->used || c->sums;
}

static const hlo_sharding *sharding_of(const spmd_flow *f, const choice *c,
                                       const int8_t *factor, int rank)
{
    const hlo_sharding *s = hlo_sharding_blank(f->m, c->like, rank);

    for (int d = 0; d < rank; d++)
        if (factor[d] >= 0 && c->cut[factor[d]].n)
            s = hlo_sharding_with(f->m, s, d, c->cut[factor[d]]);
    return s;
}

/* The atoms along which the parts of a result are still to be made one. */
static hlo_atoms partial_along(const spmd_rule *r, const choice *c)
{
    hlo_atoms along = {0};

    for (int i = 0; i < r->n; i++)
        for (int k = 0; r->factor[i].partial && k < c->cut[i].n; k++)
            along.at[along.n++] = c->cut[i].at[k];
    return along;
}

/* A result by s, where that can wait until somebody wants it; else s. */
static const hlo_sharding *waiting(const spmd_flow *f, const spmd_rule *r,
                                   const choice *c, const hlo_sharding *s)
{
    hlo_atoms along = partial_along(r, c);
    uint32_t mask = hlo_atoms_mask(&along);

    if (c->sums)
        return hlo_sharding_unreduced(f->m, s, c->sums, HLO_SUM_OF);
    if (!mask)
        return s;
    if (r->combine == HLO_ADD)
        return hlo_sharding_unreduced(f->m, s, mask, HLO_SUM_OF);
    if (r->combine == HLO_MAXIMUM)
        return hlo_sharding_unreduced(f->m, s, mask, HLO_MAX_OF);
    if (r->combine == HLO_MINIMUM)
        return hlo_sharding_unreduced(f->m, s, mask, HLO_MIN_OF);
    return s;
}

/* The same, but that a sum that all users want in shares is shared out at once:
 * those that want nothing get along with shares. */
static const hlo_sharding *result_by(const spmd_flow *f, const hlo_inst *in,
                                     const spmd_rule *r, const choice *c,
                                     const hlo_sharding *s)
{
    const hlo_sharding *to = waiting(f, r, c, s), *w = spmd_wanted(f, in);

    return w && to->unreduced && spmd_scatters(to, w) ? w : to;
}

/* How operand k is taken: sums that wait stay so, and what a scatter adds to is
 * one participant's alone to bring. */
static const hlo_sharding *operand_by(const spmd_flow *f, const hlo_inst *in,
                                      const spmd_rule *r, const choice *c,
                                      int k)
{
    const hlo_sharding *s =
        sharding_of(f, c, r->arg[k], in->arg[k]->shape->rank);
    hlo_atoms along = partial_along(r, c);

    if (c->sums)
        return hlo_sharding_unreduced(f->m, s, c->sums, HLO_SUM_OF);
    if (in->op == HLO_SCATTER && k == 0 && along.n && r->combine == HLO_ADD)
        return hlo_sharding_unreduced(f->m, s, hlo_atoms_mask(&along),
                                      HLO_SUM_OF);
    return s;
}

/* The shape of this participant's results; NULL: they are not of equal parts.
 * Results in a tuple are cut in the same dimensions. */
static const sd_shape *shape_of(const spmd_flow *f, const hlo_inst *in,
                                const spmd_rule *r, const choice *c,
                                const hlo_sharding **s)
{
    int n = spmd_nresult(in);
    const sd_shape **local = sd_arena_array(f->a, const sd_shape *, n + 1);

    for (int i = 0; i < n; i++) {
        const sd_shape *whole = spmd_result(in, i);
        sd_status st;

        s[i] = sharding_of(f, c, r->result, whole->rank);
        st = spmd_local_shape(f->m, whole, s[i], HLO_ALL_ATOMS, &local[i]);
        sd_status_free(st);
        if (st)
            return NULL;
    }
    return in->shape->dtype == SD_TUPLE ? sd_shape_tuple(f->m->arena, n, local)
                                        : local[0];
}

void spmd_set_parts(spmd_flow *f, const hlo_inst *in, hlo_inst *local,
                    const hlo_sharding *const *each)
{
    spmd_set_part(f, in, local, NULL);
    part_of(f, in)->each = each;
}

hlo_inst *spmd_element(spmd_flow *f, hlo_at p, hlo_inst *x, int i)
{
    const part *had = part_of(f, x);
    hlo_inst *e;

    if (x->shape->dtype != SD_TUPLE)
        return x;
    if (x->op == HLO_TUPLE)
        return x->arg[i];
    if (had && !had->each[i])
        return hlo_make_gte(p, had->local, i);
    e = hlo_make_gte(p, x, i);
    if (had)
        spmd_set_part(f, e,
                      hlo_make_gte((hlo_at){p.c, e, p.like}, had->local, i),
                      had->each[i]);
    return e;
}

static bool take_element(spmd_flow *f, hlo_inst *in)
{
    const part *x = part_of(f, in->arg[0]);
    int i = (int)in->u.tuple.index;
    hlo_inst *to;

    if (!x)
        return false;
    to = hlo_make_gte(pass_at(in), x->local, i);
    if (x->each[i])
        spmd_set_part(f, in, to, x->each[i]);
    else
        pass_replace(in, to);
    return true;
}

/* What is passed through, in the parts that it is had in. */
static bool pass_barrier(spmd_flow *f, hlo_inst *in)
{
    hlo_inst *x = in->arg[0], *to;
    const part *had = part_of(f, x);
    const hlo_sharding **each;
    hlo_inst **e;
    bool any = false;

    if (x->op != HLO_TUPLE) {
        if (!had)
            return false;
        to = hlo_inst_create(in->parent, in, in->op, had->local->shape, 1,
                             (hlo_inst *[]){had->local});
        spmd_set_part(f, in, to, had->s);
        part_of(f, in)->each = had->each;
        return true;
    }
    each = sd_arena_array(f->a, const hlo_sharding *, x->narg + 1);
    e = sd_arena_array(f->a, hlo_inst *, x->narg + 1);
    for (int i = 0; i < x->narg; i++) {
        each[i] = spmd_now(f, x->arg[i]);
        e[i] = each[i] ? spmd_as(f, pass_at(in), x->arg[i], each[i])
                       : spmd_whole(f, x->arg[i]);
        any |= each[i] != NULL;
    }
    if (!any)
        return false;
    to = hlo_make_tuple(pass_at(in), x->narg, e);
    to = hlo_inst_create(in->parent, in, in->op, to->shape, 1, &to);
    hlo_take_source(to, in);
    spmd_set_parts(f, in, to, each);
    hlo_set_arg(in, 0, to);
    if (!x->nuse && x != in->parent->root)
        hlo_remove(x);
    return true;
}

static bool apply_rule(spmd_flow *f, hlo_inst *in)
{
    hlo_at p = pass_at(in);
    const hlo_sharding **s =
        sd_arena_array(f->a, const hlo_sharding *, spmd_nresult(in) + 1);
    const sd_shape *local;
    const hlo_sharding *to, *w;
    hlo_inst *arg[SPMD_MOST_ARGS], *x;
    hlo_atoms along;
    spmd_rule r;
    choice c;

    if (!spmd_rule_of(in, &r) || !choose(f, in, &r, &c) ||
        !(local = shape_of(f, in, &r, &c, s)))
        return false;
    for (int k = 0; k < in->narg; k++)
        arg[k] = spmd_as(f, p, in->arg[k], operand_by(f, in, &r, &c, k));
    if (!(x = spmd_on_parts(in, local, arg)))
        return false;
    if (local->dtype == SD_TUPLE) {
        spmd_set_parts(f, in, x, s);
        return true;
    }
    along = partial_along(&r, &c);
    to = waiting(f, &r, &c, s[0]);
    if (along.n && to == s[0])
        x = spmd_all_reduce(p, x, c.like->grid, &along, r.combine);
    w = result_by(f, in, &r, &c, s[0]);
    if (w != to)
        x = spmd_move(p, x, to, w);
    spmd_set_part(f, in, x, w);
    return true;
}

/* Whole, and computed of numbers alone, an element at a time. */
static bool is_anew(const spmd_flow *f, const hlo_inst *in)
{
    bool ok = in->op == HLO_BROADCAST || in->op == HLO_TRANSPOSE ||
              in->op == HLO_RESHAPE || in->op == HLO_IOTA ||
              in->op == HLO_CONSTANT || hlo_info(in)->cls <= HLO_C_CONVERT;

    ok &= sd_shape_is_array(in->shape) && in->shape->rank;
    for (int i = 0; ok && i < in->narg; i++)
        ok = sd_shape_is_array(in->arg[i]->shape) &&
             (!in->arg[i]->shape->rank || was_anew(f, in->arg[i]));
    return ok;
}

/* For whoever asks why a program is slow (SUNDOG_LOG): what gathers operands to
 * be done whole by everybody. */
static void note_whole(const spmd_flow *f, const hlo_inst *in)
{
    spmd_rule r;

    for (int k = 0; k < in->narg && in->op != HLO_TUPLE; k++) {
        const hlo_sharding *s = spmd_part_sharding(f, in->arg[k]);

        if (!s || !hlo_sharding_used(s))
            continue;
        sd_log(SD_LOG_INFO, "spmd: %s is computed whole on each device: %s",
               hlo_describe(f->m, in),
               spmd_rule_of(in, &r)
                   ? "its operands are cut where it goes across"
                   : "it has no rule");
        return;
    }
}

bool spmd_apply(spmd_flow *f, hlo_inst *in)
{
    if (in->op == HLO_GET_TUPLE_ELEMENT)
        return take_element(f, in);
    if (in->op == HLO_OPT_BARRIER)
        return pass_barrier(f, in);
    if (apply_rule(f, in))
        return true;
    note_whole(f, in);
    if (!is_anew(f, in))
        return false;
    sd_map_set(f->anew, sd_key(in), sd_map_create(f->a));
    return false;
}

/* ---- guesses ---- */

void spmd_see(spmd_flow *f, const hlo_inst *in, const hlo_sharding *s,
              const hlo_sharding *const *each)
{
    seen *x = sd_map_get(f->guess, sd_key(in));

    if (!x) {
        x = sd_arena_new(f->a, seen);
        sd_map_set(f->guess, sd_key(in), x);
    }
    *x = (seen){s, each, false};
}

const hlo_sharding *spmd_now(const spmd_flow *f, const hlo_inst *x)
{
    const seen *g;

    if (!f->guessing)
        return spmd_part_sharding(f, x);
    g = sd_map_get(f->guess, sd_key(x));
    return g ? g->s : NULL;
}

const hlo_sharding *spmd_now_at(const spmd_flow *f, const hlo_inst *x, int i)
{
    const hlo_sharding *const *each;

    if (x->shape->dtype != SD_TUPLE)
        return spmd_now(f, x);
    if (x->op == HLO_TUPLE)
        return spmd_now(f, x->arg[i]);
    if (f->guessing) {
        const seen *g = sd_map_get(f->guess, sd_key(x));

        each = g ? g->each : NULL;
    } else {
        const part *had = part_of(f, x);

        each = had ? had->each : NULL;
    }
    return each ? each[i] : NULL;
}

bool spmd_see_part(spmd_flow *f, const hlo_inst *in)
{
    const part *x = part_of(f, in);

    if (x)
        spmd_see(f, in, x->s, x->each);
    return x != NULL;
}

spmd_need spmd_needs(spmd_flow *f, const hlo_inst *in, const hlo_sharding **arg)
{
    const hlo_sharding **s =
        sd_arena_array(f->a, const hlo_sharding *, spmd_nresult(in) + 1);
    spmd_rule r;
    choice c;

    if (!spmd_rule_of(in, &r))
        return SPMD_WHOLE;
    if (!choose(f, in, &r, &c))
        return SPMD_ANY;
    if (!shape_of(f, in, &r, &c, s))
        return SPMD_WHOLE;
    for (int k = 0; k < in->narg; k++) {
        arg[k] = operand_by(f, in, &r, &c, k);
        if (hlo_sharding_is_whole(arg[k]))
            arg[k] = NULL;
    }
    return SPMD_CUT;
}

static void guess_result(spmd_flow *f, const hlo_inst *in,
                         const hlo_sharding *s, const hlo_sharding *to)
{
    if (s != to)
        f->cost += spmd_move_bytes(in->shape, s, to);
    spmd_see(f, in, to, NULL);
}

static void guess_rule(spmd_flow *f, const hlo_inst *in)
{
    const hlo_sharding **s =
        sd_arena_array(f->a, const hlo_sharding *, spmd_nresult(in) + 1);
    spmd_rule r;
    choice c;
    bool ok = spmd_rule_of(in, &r) && choose(f, in, &r, &c) &&
              shape_of(f, in, &r, &c, s);

    for (int k = 0; k < in->narg; k++) {
        const sd_shape *whole = in->arg[k]->shape;

        f->cost += spmd_move_bytes(whole, spmd_now(f, in->arg[k]),
                                   ok ? operand_by(f, in, &r, &c, k) : NULL);
    }
    if (!ok)
        spmd_see(f, in, NULL, NULL);
    else if (in->shape->dtype == SD_TUPLE)
        spmd_see(f, in, NULL, s);
    else
        guess_result(f, in, waiting(f, &r, &c, s[0]),
                     result_by(f, in, &r, &c, s[0]));
}

static bool guess_mark(spmd_flow *f, const hlo_inst *in)
{
    int n = spmd_nresult(in);
    const hlo_sharding **s = sd_arena_array(f->a, const hlo_sharding *, n + 1);
    const hlo_sharding *now = in->narg ? spmd_now(f, in->arg[0]) : NULL;

    for (int i = 0; i < n; i++)
        if (!f->mark(in, i, now, &s[i]))
            return false;
    if (in->shape->dtype == SD_TUPLE) {
        spmd_see(f, in, NULL, s);
    } else {
        f->cost += spmd_move_bytes(in->shape, now, s[0]);
        spmd_see(f, in, s[0], NULL);
    }
    return true;
}

static void guess_barrier(spmd_flow *f, const hlo_inst *in)
{
    const hlo_inst *x = in->arg[0];
    int n = x->shape->dtype == SD_TUPLE ? x->shape->nelem : 0;
    const hlo_sharding **s = sd_arena_array(f->a, const hlo_sharding *, n + 1);

    for (int i = 0; i < n; i++)
        s[i] = spmd_now_at(f, x, i);
    spmd_see(f, in, n ? NULL : spmd_now(f, x), n ? s : NULL);
}

void spmd_guess(spmd_flow *f, const hlo_inst *in)
{
    switch (in->op) {
    case HLO_GET_TUPLE_ELEMENT:
        spmd_see(f, in, spmd_now_at(f, in->arg[0], (int)in->u.tuple.index),
                 NULL);
        break;
    case HLO_OPT_BARRIER:
        guess_barrier(f, in);
        break;
    case HLO_WHILE:
    case HLO_CONDITIONAL:
        spmd_guess_flow(f, in);
        break;
    default:
        if (in->op == HLO_CUSTOM_CALL && guess_mark(f, in))
            break;
        if (!is_anew(f, in)) {
            guess_rule(f, in);
        } else {
            spmd_see(f, in, NULL, NULL);
            ((seen *)sd_map_get(f->guess, sd_key(in)))->anew = true;
        }
    }
}

/* ---- made anew ---- */

/* What everybody can compute of numbers alone (random bits are) is computed
 * for a user that wants a part as that part, of such parts: no element of the
 * whole is made that nobody wants. */

static hlo_inst *cut_iota(hlo_inst *in, const sd_shape *local,
                          const hlo_sharding *s)
{
    hlo_at p = pass_at(in);
    int d = (int)in->dims.at[0];
    const sd_shape *ints =
        sd_shape_make(p.c->module->arena, SD_S32, local->rank, local->dim);
    hlo_inst *from;

    if (local->dim[d] == in->shape->dim[d])
        return hlo_make_iota(p, local, d);
    if (in->shape->dim[d] > INT32_MAX)
        return NULL;
    /* numbers of few bits are rounded once, as those of the whole are */
    from =
        hlo_make_binary(p, HLO_MULTIPLY, spmd_index(p, s->grid, &s->dim[d].cut),
                        hlo_make_scalar_s64(p, SD_S32, local->dim[d]));
    return pass_convert(
        p, local->dtype,
        hlo_make_binary(p, HLO_ADD, hlo_make_iota(p, ints, d),
                        hlo_make_broadcast(p, from, ints, NULL, 0)));
}

/* The operands' shardings that give a result by s; false: none do. */
static bool operands_for(const spmd_flow *f, const hlo_inst *in,
                         const hlo_sharding *s, const hlo_sharding **arg)
{
    choice c = {.like = s};
    spmd_rule r;

    if (!spmd_rule_of(in, &r))
        return false;
    for (int d = 0; d < s->rank; d++) {
        const hlo_atoms *a = &s->dim[d].cut;
        int k = r.result[d];

        if (a->n && k >= 0) {
            if (r.factor[k].size % hlo_atoms_size(s->grid, a))
                return false;
            c.cut[k] = *a;
        } else if (a->n && in->op != HLO_BROADCAST) {
            return false;
        }
    }
    for (int k = 0; k < in->narg; k++)
        arg[k] = sharding_of(f, &c, r.arg[k], in->arg[k]->shape->rank);
    return true;
}

/* A broadcast by another sharding: its operand is less to move. */
static hlo_inst *spread_again(spmd_flow *f, hlo_inst *in, const hlo_sharding *s)
{
    const hlo_sharding *by;
    const sd_shape *local;
    hlo_inst *x;
    sd_status st = spmd_local_shape(f->m, in->shape, s, HLO_ALL_ATOMS, &local);

    sd_status_free(st);
    if (st || s->unreduced || !operands_for(f, in, s, &by))
        return NULL;
    x = in->arg[0];
    x = hlo_sharding_used(by) ? spmd_as(f, pass_at(in), x, by)
                              : spmd_whole(f, x);
    return spmd_on_parts(in, local, &x);
}

typedef struct {
    hlo_inst *in;
    const hlo_sharding *s;
} want;
typedef sd_vec(want) want_list;

static hlo_inst *known_as(const spmd_flow *f, const hlo_inst *in,
                          const hlo_sharding *s)
{
    sd_map *as = sd_map_get(f->anew, sd_key(in));

    return as ? sd_map_get(as, sd_key(s)) : NULL;
}

/* in by s of operands that are there; NULL: there are operands to be made
 * first, which have been put on the list. */
static hlo_inst *make_part(spmd_flow *f, want w, want_list *todo)
{
    const hlo_sharding *by[SPMD_MOST_ARGS];
    hlo_inst *arg[SPMD_MOST_ARGS], *x = NULL;
    hlo_at p = pass_at(w.in);
    int before = todo->n;
    const sd_shape *local;
    sd_status st =
        spmd_local_shape(f->m, w.in->shape, w.s, HLO_ALL_ATOMS, &local);

    sd_status_free(st);
    if (!st && w.in->op == HLO_IOTA) {
        x = cut_iota(w.in, local, w.s);
    } else if (!st && w.in->op != HLO_CONSTANT &&
               operands_for(f, w.in, w.s, by)) {
        for (int k = 0; k < w.in->narg; k++) {
            arg[k] = w.in->arg[k];
            if (!arg[k]->shape->rank)
                arg[k] = spmd_whole(f, arg[k]);
            else if (hlo_sharding_used(by[k]) &&
                     !(arg[k] = known_as(f, w.in->arg[k], by[k])))
                *sd_push(f->a, todo) = (want){w.in->arg[k], by[k]};
        }
        if (todo->n > before)
            return NULL;
        x = spmd_on_parts(w.in, local, arg);
    }
    return x ? x
             : spmd_cut((hlo_at){p.c, w.in->next, w.in}, w.in, w.s,
                        HLO_ALL_ATOMS);
}

/* With a list: programs are deeper than the stack. */
static hlo_inst *made_anew(spmd_flow *f, hlo_inst *in, const hlo_sharding *s)
{
    want_list todo = {0};

    *sd_push(f->a, &todo) = (want){in, s};
    while (todo.n) {
        want w = todo.at[todo.n - 1];
        hlo_inst *x = known_as(f, w.in, w.s);

        if (!x && (x = make_part(f, w, &todo)))
            sd_map_set(sd_map_get(f->anew, sd_key(w.in)), sd_key(w.s), x);
        if (x)
            todo.n--;
    }
    return known_as(f, in, s);
}

/* ---- the end ---- */

/* Who still reads a value that is had in parts gets it gathered; then nobody
 * reads those, and they go. */
void spmd_settle(spmd_flow *f)
{
    hlo_for_each_comp(c, f->m) {
        hlo_for_each_inst(in, c)
            for (int i = 0; !part_of(f, in) && i < in->narg; i++)
                if (part_of(f, in->arg[i]))
                    hlo_set_arg(in, i, spmd_whole(f, in->arg[i]));
        if (part_of(f, c->root))
            hlo_set_root(c, spmd_whole(f, c->root));
        hlo_for_each_inst_backward(in, c)
            if (part_of(f, in) && in->nuse == 0 && in != c->root)
                hlo_remove(in);
    }
}
