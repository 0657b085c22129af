/* How parts of arrays become other parts: slices at this participant's place,
 * and collectives among those that differ along some atoms. */
#include "spmd_moves.h"

/* ---- collectives ---- */

static hlo_collective *among(hlo_module *m, const hlo_grid *g,
                             const hlo_atoms *along)
{
    hlo_collective *c = sd_arena_new(m->arena, hlo_collective);

    c->groups = hlo_grid_groups(m->arena, g, along, &c->ngroup, &c->group_size);
    c->channel = 1;
    c->use_global_ids = true;
    c->dim = -1;
    return c;
}

static hlo_inst *made(hlo_at p, hlo_op op, const sd_shape *s, hlo_inst *x,
                      const hlo_collective *c)
{
    hlo_inst *in = hlo_inst_create(p.c, p.before, op, s, 1, &x);

    in->u.coll = c;
    if (c->dim >= 0)
        in->dims = hlo_dims_copy(p.c->module->arena, &c->dim, 1);
    hlo_take_source(in, p.like);
    return in;
}

hlo_inst *spmd_shift(hlo_at p, hlo_inst *x, const hlo_grid *g,
                     const hlo_atoms *along, int64_t by, const bool *who)
{
    hlo_module *m = p.c->module;
    hlo_collective *c = among(m, g, along);
    int64_t size = c->group_size, n = c->ngroup * size, k = 0;
    int64_t *pair = sd_arena_array(m->arena, int64_t, 2 * n + 1);

    for (int64_t i = 0; i < n; i++) {
        int64_t place = i % size;

        if (!who[place] || place + by < 0 || place + by >= size)
            continue;
        pair[k++] = c->groups[i + by];
        pair[k++] = c->groups[i];
    }
    c->groups = pair;
    c->ngroup = k / 2;
    c->group_size = 2;
    return k ? made(p, HLO_COLLECTIVE_PERMUTE, x->shape, x, c)
             : hlo_make_fill(p, x->shape, 0);
}

hlo_inst *spmd_of_place(hlo_at p, hlo_inst *x, const hlo_grid *g,
                        const hlo_atoms *along, int64_t place)
{
    hlo_module *m = p.c->module;
    hlo_collective *c = among(m, g, along);
    int64_t size = c->group_size, n = c->ngroup * size;
    int64_t *to = sd_arena_array(m->arena, int64_t, n);

    for (int64_t i = 0; i < n; i++) /* the first is who sends */
        to[i] = c->groups[i / size * size + (i + place) % size];
    c->groups = to;
    return made(p, HLO_COLLECTIVE_BROADCAST, x->shape, x, c);
}

hlo_inst *spmd_turn(hlo_at p, hlo_inst *x, const hlo_grid *g,
                    const hlo_atoms *along)
{
    hlo_module *m = p.c->module;
    hlo_collective *c = among(m, g, along);
    int64_t size = c->group_size, n = c->ngroup * size;
    int64_t *pair = sd_arena_array(m->arena, int64_t, 2 * n);

    for (int64_t i = 0; i < n; i++) {
        int64_t of = i / size * size;

        pair[2 * i] = c->groups[i];
        pair[2 * i + 1] = c->groups[of + size - 1 - (i - of)];
    }
    c->groups = pair;
    c->ngroup = n;
    c->group_size = 2;
    return made(p, HLO_COLLECTIVE_PERMUTE, x->shape, x, c);
}

static hlo_inst *gathered(hlo_at p, hlo_inst *x, const hlo_grid *g, int d,
                          const hlo_atoms *along)
{
    hlo_module *m = p.c->module;
    hlo_collective *c;

    if (!along->n)
        return x;
    c = among(m, g, along);
    c->dim = d;
    return made(p, HLO_ALL_GATHER,
                sd_shape_with_dim(m->arena, x->shape, d,
                                  x->shape->dim[d] * c->group_size),
                x, c);
}

hlo_inst *spmd_join(hlo_at p, hlo_inst *x, const hlo_sharding *s)
{
    for (int i = 0; i < s->rank && sd_shape_is_array(x->shape); i++)
        x = gathered(p, x, s->grid, i, &s->dim[i].cut);
    return x;
}

static hlo_op combiner(const hlo_sharding *s, sd_dtype t)
{
    if (s->partial == HLO_MAX_OF)
        return HLO_MAXIMUM;
    if (s->partial == HLO_MIN_OF)
        return HLO_MINIMUM;
    return t == SD_PRED ? HLO_OR : HLO_ADD;
}

static hlo_inst *reduced(hlo_at p, hlo_op how, const sd_shape *s, hlo_inst *x,
                         const hlo_collective *c, hlo_op op)
{
    hlo_comp *body = hlo_scalar_comp(p.c->module, op, pass_dtype(x));

    x = made(p, how, s, x, c);
    hlo_set_comps(x, 1, &body);
    return x;
}

hlo_inst *spmd_all_reduce(hlo_at p, hlo_inst *x, const hlo_grid *g,
                          const hlo_atoms *along, hlo_op op)
{
    return reduced(p, HLO_ALL_REDUCE, x->shape, x, among(p.c->module, g, along),
                   op);
}

/* Each of those that differ along these atoms gets its share, in dimension d,
 * of the sum that all of them would have. */
static hlo_inst *reduce_scatter(hlo_at p, hlo_inst *x, const hlo_sharding *s,
                                const hlo_atoms *along, int d)
{
    hlo_module *m = p.c->module;
    hlo_collective *c = among(m, s->grid, along);

    c->dim = d;
    return reduced(p, HLO_REDUCE_SCATTER,
                   sd_shape_with_dim(m->arena, x->shape, d,
                                     x->shape->dim[d] / c->group_size),
                   x, c, combiner(s, pass_dtype(x)));
}

hlo_inst *spmd_total(hlo_at p, hlo_inst *x, const hlo_sharding *s,
                     uint32_t mask)
{
    hlo_atoms a = hlo_grid_rest(s->grid, ~(s->unreduced & mask));

    if (!a.n || !sd_shape_is_array(x->shape))
        return x;
    return spmd_all_reduce(p, x, s->grid, &a, combiner(s, pass_dtype(x)));
}

hlo_inst *spmd_share(hlo_at p, hlo_inst *x, const hlo_sharding *s,
                     uint32_t mask)
{
    hlo_atoms a = hlo_grid_rest(s->grid, ~(s->unreduced & mask));
    hlo_inst *first;

    if (!a.n || s->partial != HLO_SUM_OF || !sd_shape_is_array(x->shape))
        return x;
    first = hlo_make_compare(p, HLO_EQ, spmd_index(p, s->grid, &a),
                             hlo_make_scalar_s64(p, SD_S32, 0));
    return hlo_make_select(p, hlo_make_spread(p, first, x->shape), x,
                           hlo_make_fill(p, x->shape, 0));
}

/* A part at its place among zeros, along what cuts s. */
static hlo_inst *among_zeros(hlo_at p, hlo_inst *x, const hlo_sharding *s)
{
    hlo_inst *start[SD_MAX_RANK], *zero;
    int64_t dim[SD_MAX_RANK];
    const sd_shape *to;
    sd_dtype t;

    if (!hlo_sharding_used(s))
        return x;
    for (int d = 0; d < s->rank; d++)
        dim[d] = x->shape->dim[d] * hlo_atoms_size(s->grid, &s->dim[d].cut);
    to = sd_shape_make(p.c->module->arena, pass_dtype(x), s->rank, dim);
    t = spmd_counts(to);
    zero = hlo_make_scalar_s64(p, t, 0);
    for (int d = 0; d < s->rank; d++) {
        const hlo_atoms *a = &s->dim[d].cut;

        start[d] = a->n ? spmd_begin(p, s->grid, a, x->shape->dim[d], t) : zero;
    }
    return hlo_make_dynamic_update(p, hlo_make_fill(p, to, 0), x, start);
}

/* Dimension d of x by atoms a, in runs of those along which x is summed, too,
 * and of others. */
static hlo_inst *cut_sums(hlo_at p, hlo_inst *x, const hlo_sharding *s, int d,
                          const hlo_atoms *a, uint32_t sums)
{
    hlo_module *m = p.c->module;

    for (int i = 0; i < a->n;) {
        bool sum = sums >> a->at[i] & 1;
        hlo_atoms run = {0};

        while (i < a->n && (sums >> a->at[i] & 1) == sum)
            run.at[run.n++] = a->at[i++];
        if (sum)
            x = reduce_scatter(p, x, s, &run, d);
        else
            x = spmd_cut(p, x,
                         hlo_sharding_with(m, hlo_sharding_blank(m, s, s->rank),
                                           d, run));
    }
    return x;
}

/* Those that differ along these atoms, the last that dimension `from` is cut
 * by, send each other their parts: it is cut by them no more, dimension `to`
 * is. */
static hlo_inst *exchange(hlo_at p, hlo_inst *x, const hlo_grid *g,
                          const hlo_atoms *along, int from, int to)
{
    hlo_collective *c = among(p.c->module, g, along);
    int64_t n = c->group_size;

    x = hlo_make_split(p, x, to, n, x->shape->dim[to] / n);
    x = hlo_make_moved(p, x, to, 0);
    c->dim = 0;
    c->split_count = n;
    x = made(p, HLO_ALL_TO_ALL, x->shape, x, c);
    return hlo_make_join(p, hlo_make_moved(p, x, 0, from), from);
}

/* Atoms of a grid, those last that cut an array, the k-th of whose parts is the
 * k-th participant's of these.  First come atoms that cut neither that nor
 * `other`, then those of `other` alone. */
static hlo_atoms in_order(const hlo_sharding *s, const hlo_sharding *other)
{
    uint32_t own = hlo_sharding_used(s), all = own | hlo_sharding_used(other);
    hlo_atoms a = hlo_grid_rest(s->grid, all),
              free = hlo_grid_rest(s->grid, ~all | own);

    hlo_atoms_add(&a, &free);
    for (int d = 0; d < s->rank; d++)
        hlo_atoms_add(&a, &s->dim[d].cut);
    return a;
}

/* Each sends its part to the one who is to have it, and who stands where he
 * does along atoms that cut neither array: what is there need not be the same,
 * in a manual computation. */
static hlo_inst *permuted(hlo_at p, hlo_inst *x, const hlo_sharding *s,
                          const hlo_sharding *to)
{
    hlo_module *m = p.c->module;
    hlo_atoms a = in_order(s, to), b = in_order(to, s);
    hlo_collective *c = among(m, s->grid, &a), *goes = among(m, s->grid, &b);
    int64_t n = c->group_size, *pair = sd_arena_array(m->arena, int64_t, 2 * n);

    for (int64_t i = 0; i < n; i++) {
        pair[2 * i] = c->groups[i];
        pair[2 * i + 1] = goes->groups[i];
    }
    c->groups = pair;
    c->ngroup = n;
    c->group_size = 2;
    return made(p, HLO_COLLECTIVE_PERMUTE, x->shape, x, c);
}

static const hlo_sharding *cut_by(hlo_module *m, const hlo_sharding *like,
                                  const hlo_atoms *cut)
{
    const hlo_sharding *s = hlo_sharding_blank(m, like, like->rank);

    for (int d = 0; d < like->rank; d++)
        s = hlo_sharding_with(m, s, d, cut[d]);
    return s;
}

static hlo_inst *take_turn(hlo_at p, hlo_inst *x, const hlo_sharding *to,
                           const spmd_move_turn *now)
{
    hlo_module *m = p.c->module;

    if (now->from == SPMD_NOWHERE)
        return spmd_cut(p, x,
                        hlo_sharding_with(m,
                                          hlo_sharding_blank(m, to, to->rank),
                                          now->to, now->along));
    if (now->from == now->to)
        return gathered(p, x, to->grid, now->to, &now->along);
    return exchange(p, x, to->grid, &now->along, now->from, now->to);
}

/* What both begin with stays, in each dimension; where everybody's part is what
 * another has, that is sent.  Else what leaves one dimension for another is
 * exchanged, the rest of the one is gathered and the rest of the other sliced,
 * before what it need not wait for.  What is to be summed in both is left as it
 * is, and parts that are to be summed are put among zeros. */
hlo_inst *spmd_move(hlo_at p, hlo_inst *x, const hlo_sharding *s,
                    const hlo_sharding *to)
{
    hlo_module *m = p.c->module;
    spmd_rest t = spmd_rest_of(s, to);
    const hlo_sharding *spread = cut_by(m, s, t.spread);
    uint32_t done = s->unreduced | hlo_sharding_used(spread), shared = 0;

    for (int d = 0; d < s->rank; d++) {
        hlo_atoms more = hlo_atoms_from(
            &to->dim[d].cut, hlo_atoms_common(&s->dim[d].cut, &to->dim[d].cut));
        hlo_atoms now = hlo_atoms_first(&more, spmd_nshared(s, to, d));

        if (now.n)
            x = cut_sums(p, x, s, d, &now, s->unreduced & ~to->unreduced);
        shared |= hlo_atoms_mask(&now);
    }
    x = spmd_total(p, x, s, ~(to->unreduced | shared));
    if (spmd_is_permuted(s, to))
        return permuted(p, x, s, to);
    for (spmd_move_turn now; spmd_next_turn(s->grid, &t, &now);)
        x = take_turn(p, x, to, &now);
    x = spmd_join(p, x, cut_by(m, s, t.gather));
    x = among_zeros(p, x, spread);
    x = spmd_cut(p, x, cut_by(m, to, t.slice));
    return spmd_share(p, x, to, ~done);
}

hlo_inst *spmd_from(hlo_at p, hlo_inst *x, int64_t from)
{
    hlo_module *m = p.c->module;
    hlo_collective *c = sd_arena_new(m->arena, hlo_collective);
    int64_t n = hlo_participants(m), *at = sd_arena_array(m->arena, int64_t, n);

    at[0] = from;
    for (int64_t i = 0, k = 1; i < n; i++)
        if (i != from)
            at[k++] = i;
    *c = (hlo_collective){.channel = 1,
                          .groups = at,
                          .ngroup = 1,
                          .group_size = n,
                          .dim = -1,
                          .use_global_ids = true};
    return made(p, HLO_COLLECTIVE_BROADCAST, x->shape, x, c);
}

hlo_inst *spmd_stack(hlo_at p, hlo_inst *x, const hlo_collective *groups)
{
    hlo_module *m = p.c->module;
    hlo_collective *c = sd_arena_copy(m->arena, groups, sizeof *c);
    int64_t dim[SD_MAX_RANK];
    int rank = x->shape->rank + 1;

    dim[0] = 1;
    if (rank > 1)
        memcpy(dim + 1, x->shape->dim, sizeof *dim * (size_t)(rank - 1));
    x = hlo_make_reshape(p, x, rank, dim);
    dim[0] = c->group_size;
    c->dim = 0;
    return made(p, HLO_ALL_GATHER,
                sd_shape_make(m->arena, pass_dtype(x), rank, dim), x, c);
}

/* ---- groups ---- */

void spmd_groups(hlo_module *m)
{
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c)
            if (hlo_info(in)->cls == HLO_C_COLLECTIVE &&
                in->op != HLO_PARTITION_ID && in->op != HLO_REPLICA_ID) {
                hlo_collective g = hlo_explicit_groups(m->arena, in);

                in->u.coll = sd_arena_copy(m->arena, &g, sizeof g);
            }
}
