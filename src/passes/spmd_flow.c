/* Values in parts.  A value of a module that is being cut may be had as this
 * participant's part, with the sharding that says which part it is.  Parts
 * begin at parameters, at manual computations' results and at constraints, and
 * go on through the operations that have a rule (spmd_rule.c); where one has
 * none, or wants another sharding, the part is moved or gathered. */
#include "spmd_flow.h"
#include "spmd_rule.h"

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

spmd_part *spmd_part_of(const spmd_flow *f, const hlo_inst *in)
{
    return sd_map_get(f->parts, sd_key(in));
}

void spmd_set_part(spmd_flow *f, const hlo_inst *in, hlo_inst *local,
                   const hlo_sharding *s)
{
    spmd_part *x = sd_arena_new(f->a, spmd_part);

    *x = (spmd_part){.local = local, .s = s};
    sd_map_set(f->parts, sd_key(in), x);
}

void spmd_set_finer(spmd_flow *f, hlo_inst *in, hlo_inst *local,
                    const hlo_sharding *s, const hlo_sharding *finer)
{
    hlo_at p = pass_at(in);
    hlo_inst *to =
        s ? spmd_move(p, local, s, finer) : spmd_cut(p, local, finer);
    spmd_part *x;

    spmd_set_part(f, in, to, finer);
    x = spmd_part_of(f, in);
    x->as = sd_map_create(f->a);
    if (s)
        sd_map_set(x->as, sd_key(s), local);
    else
        x->whole = local;
}

bool spmd_is_part(const spmd_flow *f, const hlo_inst *in)
{
    return spmd_part_of(f, in) != NULL;
}

const hlo_sharding *spmd_part_sharding(const spmd_flow *f, const hlo_inst *in)
{
    const spmd_part *x = spmd_part_of(f, in);

    return x && !x->is_tuple ? x->s : NULL;
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
static hlo_inst *total_of(hlo_inst *in, spmd_part *x)
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
    for (int d = 0; d < now->rank; d++) {
        const hlo_atoms *a = &s->dim[d].cut, *b = &now->dim[d].cut;

        if (hlo_atoms_common(a, b) < b->n)
            return false;
    }
    return true;
}

/* Sums that are wanted in parts, in shares: in front of whoever wants the
 * total later. */
static hlo_inst *shares_of(hlo_inst *in, spmd_part *x, const hlo_sharding *s)
{
    hlo_inst *to = spmd_move(pass_at(in), x->local, x->s, s);

    if (!x->shares && !s->unreduced && refines(s, x->s)) {
        x->shares = to;
        x->share = s;
    }
    return to;
}

static hlo_inst *whole_tuple(hlo_inst *in, const spmd_part *x)
{
    hlo_at p = pass_at(in);
    int n = in->shape->nelem;
    hlo_inst **e = sd_arena_array(p.c->module->arena, hlo_inst *, n);

    for (int i = 0; i < n; i++) {
        e[i] = hlo_make_gte(p, x->local, i);
        if (!x->each[i])
            continue;
        e[i] = spmd_total(p, e[i], x->each[i], HLO_ALL_ATOMS);
        e[i] = spmd_shortened(p, spmd_join(p, e[i], x->each[i]),
                              in->shape->elem[i]);
    }
    return hlo_make_tuple(p, n, e);
}

/* The whole of what only lies elsewhere is made of the whole that it is of,
 * which others may want, too, and a broadcast's is less to move. */
static bool is_moved(const hlo_inst *in, const spmd_part *x)
{
    return (in->op == HLO_BROADCAST || in->op == HLO_TRANSPOSE ||
            in->op == HLO_RESHAPE) &&
           x && !x->whole && !x->s->unreduced;
}

static void move_whole(spmd_flow *f, hlo_inst *in)
{
    sd_vec(hlo_inst *) chain = {0};
    hlo_inst *x;

    for (; is_moved(in, spmd_part_of(f, in)); in = in->arg[0])
        *sd_push(f->a, &chain) = in;
    x = spmd_whole(f, in);
    while (x && chain.n) {
        in = chain.at[--chain.n];
        if ((x = spmd_on_parts(in, in->shape, &x, 0)))
            spmd_part_of(f, in)->whole = x;
    }
}

hlo_inst *spmd_whole(spmd_flow *f, hlo_inst *in)
{
    spmd_part *x = spmd_part_of(f, in);

    if (!x)
        return in;
    if (!x->whole && x->is_tuple)
        x->whole = whole_tuple(in, x);
    if (is_moved(in, x))
        move_whole(f, in);
    if (!x->whole)
        x->whole = spmd_shortened(pass_at(in),
                                  spmd_join(pass_at(in), total_of(in, x), x->s),
                                  in->shape);
    return x->whole;
}

static hlo_inst *cut_whole(spmd_flow *f, hlo_at p, hlo_inst *in,
                           const hlo_sharding *s)
{
    if (sd_map_get(f->anew, sd_key(in)))
        in = spmd_made_anew(f, in,
                            hlo_sharding_unreduced(f->m, s, 0, HLO_SUM_OF));
    else
        in = spmd_cut(p, in, s);
    return spmd_share(p, in, s, HLO_ALL_ATOMS);
}

hlo_inst *spmd_as(spmd_flow *f, hlo_at p, hlo_inst *in, const hlo_sharding *s)
{
    spmd_part *x = spmd_part_of(f, in);
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
    if (!spmd_moves_evenly(in->shape, x->s, s))
        to = cut_whole(f, p, spmd_whole(f, in), s);
    else if (!x->total && spmd_scatters(x->s, s))
        to = shares_of(in, x, s);
    else if (in->op != HLO_BROADCAST || !(to = spmd_spread_again(f, in, s)))
        to =
            now->grid == s->grid && now->partial == s->partial
                ? spmd_move(p, now == x->s ? x->local : total_of(in, x), now, s)
                : cut_whole(f, p, spmd_whole(f, in), s);
    sd_map_set(x->as, sd_key(s), to);
    return to;
}

void spmd_set_parts(spmd_flow *f, const hlo_inst *in, hlo_inst *local,
                    const hlo_sharding *const *each)
{
    spmd_part *x = sd_arena_new(f->a, spmd_part);

    *x = (spmd_part){.is_tuple = true, .local = local, .each = each};
    sd_map_set(f->parts, sd_key(in), x);
}

hlo_inst *spmd_element(spmd_flow *f, hlo_at p, hlo_inst *x, int i)
{
    const spmd_part *had = spmd_part_of(f, x);
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

/* Who still reads a value that is had in parts gets it gathered; then nobody
 * reads those, and they go. */
void spmd_settle(spmd_flow *f)
{
    hlo_for_each_comp(c, f->m) {
        hlo_for_each_inst(in, c)
            for (int i = 0; !spmd_part_of(f, in) && i < in->narg; i++)
                if (spmd_part_of(f, in->arg[i]))
                    hlo_set_arg(in, i, spmd_whole(f, in->arg[i]));
        if (spmd_part_of(f, c->root))
            hlo_set_root(c, spmd_whole(f, c->root));
        hlo_for_each_inst_backward(in, c)
            if (spmd_part_of(f, in) && in->nuse == 0 && in != c->root)
                hlo_remove(in);
    }
}
