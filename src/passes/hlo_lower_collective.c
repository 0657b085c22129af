/* Collectives into those that only move: what is left is an all-gather, an
 * all-to-all, a permute or a broadcast of one array with explicit groups, and
 * the numbers of the participant.  What is computed of what came is ordinary
 * instructions, which all devices have, with the members' parts in the order of
 * their group: the same bits in every run.
 *
 *   all-reduce      a gather of all and a chain of reductions; of what is
 *                   large each member reduces a share (all-to-all), and the
 *                   shares are gathered
 *   reduce-scatter  an all-to-all and that chain
 *   several arrays  one collective each; small ones that are summed lie side by
 *                   side in one
 *
 * Sums and products of narrow floats are computed in f32 and rounded once. */
#include "hlo_sharding.h"
#include "passes_priv.h"

#define SMALL_BYTES \
    (64 << 10)   /* of one array: a meeting is dearer than a copy */
#define SHARE 16 /* bytes, whole ones: kernels read so many at once */

/* ---- the number of the participant ---- */

hlo_inst *pass_participant(hlo_at p)
{
    const hlo_module *m = p.c->module;
    const sd_shape *u32 = sd_shape_make(m->arena, SD_U32, 0, NULL);
    hlo_op op = m->npartition > 1 ? HLO_PARTITION_ID : HLO_REPLICA_ID;
    hlo_inst *id = hlo_inst_create(p.c, p.before, op, u32, 0, NULL);

    hlo_take_source(id, p.like);
    return id;
}

hlo_inst *pass_own_entry(hlo_at p, const int32_t *table)
{
    sd_arena *a = p.c->module->arena;
    int64_t n = hlo_participants(p.c->module), one = 1;
    hlo_inst *id = pass_participant(p), *x;

    x = hlo_make_constant(p, sd_shape_make(a, SD_S32, 1, &n), table);
    return hlo_make_reshape(p, hlo_make_dynamic_slice(p, x, &id, &one), 0,
                            NULL);
}

typedef struct {
    const hlo_collective *coll; /* with groups of participants */
    int64_t n;                  /* places in a group */
    bool uneven;                /* some are empty */
    double meet;                /* device_kinds.def */
} team;

/* Participants are replicas or partitions: both at once are nobody's here. */
static bool is_mixed(const hlo_module *m)
{
    return m->nreplica > 1 && m->npartition > 1;
}

static team team_of(hlo_inst *in, const device_desc *dev)
{
    hlo_collective c = hlo_explicit_groups(in->parent->module->arena, in);
    team t = {.coll = sd_arena_copy(in->parent->module->arena, &c, sizeof c)};

    t.n = t.coll->group_size;
    t.meet = device_kind_table[dev->kind].meet;
    for (int64_t i = 0; i < t.coll->ngroup * t.n; i++)
        t.uneven |= t.coll->groups[i] < 0;
    return t;
}

/* ---- moves ---- */

static hlo_inst *move(hlo_at p, hlo_op op, const team *t, hlo_inst *x,
                      int64_t dim)
{
    sd_arena *a = p.c->module->arena;
    const sd_shape *s = x->shape;
    hlo_collective *c = sd_arena_copy(a, t->coll, sizeof *c);
    hlo_inst *in;

    s = op == HLO_ALL_GATHER
            ? sd_shape_with_dim(a, s, dim, s->dim[dim] * t->n)
            : sd_shape_make(a, s->dtype, s->rank, s->dim); /* no layout */
    in = hlo_inst_create(p.c, p.before, op, s, 1, &x);
    hlo_take_source(in, p.like);
    c->dim = dim;
    c->split_count = t->n;
    in->u.coll = c;
    if (op == HLO_ALL_GATHER || op == HLO_ALL_TO_ALL)
        in->dims = hlo_dims_copy(a, &dim, 1);
    return in;
}

/* ---- what is computed of the members' parts ---- */

static hlo_inst *combine(hlo_at p, hlo_comp *body, hlo_inst *x, hlo_inst *y)
{
    hlo_inst *arg[2] = {x, y};
    hlo_op op;

    if (hlo_comp_is_binary(body, &op))
        return hlo_make_binary(p, op, x, y);
    return pass_vectorize(p, body, arg, x->shape);
}

static bool is_rounded_once(const hlo_comp *body, sd_dtype t)
{
    hlo_op op;

    return pass_is_narrow(t) && hlo_comp_is_binary(body, &op) &&
           (op == HLO_ADD || op == HLO_MULTIPLY);
}

/* The members' parts lie side by side along dim of x: their reduction. */
static hlo_inst *chain(hlo_at p, const team *t, hlo_comp *body, hlo_inst *x,
                       int64_t dim)
{
    const sd_shape *s = x->shape;
    int64_t each = s->dim[dim] / t->n;
    bool wide = is_rounded_once(body, s->dtype);
    hlo_inst *sum = NULL;

    for (int64_t i = 0; i < t->n; i++) {
        hlo_inst *part = hlo_make_cut(p, x, dim, i * each, (i + 1) * each);

        if (wide)
            part = pass_widened(p, part);
        sum = sum ? combine(p, body, sum, part) : part;
    }
    return pass_convert(p, s->dtype, sum);
}

/* ---- groups of unequal size ---- */

/* For each participant the members of its group (itself where it has none), in
 * their order, then -1. */
static int32_t *member_table(const hlo_module *m, const team *t)
{
    int64_t n = hlo_participants(m), all = n * t->n;
    int32_t *at = sd_arena_array(m->arena, int32_t, all);
    const int64_t *member = t->coll->groups;

    for (int64_t i = 0; i < all; i++)
        at[i] = i % t->n ? -1 : (int32_t)(i / t->n);
    for (int64_t i = 0; i < t->coll->ngroup * t->n; i++) {
        int64_t first = i / t->n * t->n, j = 0;

        for (int64_t k = first; member[i] >= 0 && k < first + t->n; k++)
            if (member[k] >= 0)
                at[member[i] * t->n + j++] = (int32_t)member[k];
    }
    return at;
}

/* Column i of this participant's row of the table, as a scalar. */
static hlo_inst *entry_of(hlo_at p, const int32_t *table, int64_t n, int64_t i)
{
    hlo_module *m = p.c->module;
    int64_t count = hlo_participants(m);
    int32_t *column = sd_arena_array(m->arena, int32_t, count);

    for (int64_t k = 0; k < count; k++)
        column[k] = table[k * n + i];
    return pass_own_entry(p, column);
}

static hlo_inst *gather_from_all(hlo_at p, const team *t, hlo_inst *x)
{
    hlo_module *m = p.c->module;
    int64_t n = hlo_participants(m);
    int64_t *member = sd_arena_array(m->arena, int64_t, n);
    hlo_collective all = *t->coll;
    team everybody = {.coll = &all, .n = n};

    for (int64_t i = 0; i < n; i++)
        member[i] = i;
    all.groups = member;
    all.ngroup = 1;
    all.group_size = n;
    return move(p, HLO_ALL_GATHER, &everybody, x, 0);
}

/* Everybody's x is gathered, and each takes those of its group: as many as the
 * largest has, of which those past its own count for nothing. */
static hlo_inst *reduce_unequal(hlo_at p, const team *t, hlo_comp *body,
                                hlo_inst *x)
{
    const int32_t *table = member_table(p.c->module, t);
    int64_t k = x->shape->dim[0], dim[] = {hlo_participants(p.c->module), k};
    bool wide = is_rounded_once(body, pass_dtype(x));
    hlo_inst *sum = NULL;

    x = hlo_make_reshape(p, gather_from_all(p, t, x), 2, dim);
    for (int64_t i = 0; i < t->n; i++) {
        hlo_inst *at = entry_of(p, table, t->n, i), *is, *more;
        hlo_inst *part = pass_slice_at(p, x, 0, at, 1);

        part = hlo_make_reshape(p, part, 1, &k);
        if (wide)
            part = pass_widened(p, part);
        if (!sum) {
            sum = part;
            continue;
        }
        more = combine(p, body, sum, part);
        is = hlo_make_compare(p, HLO_GE, at, hlo_make_scalar_s64(p, SD_S32, 0));
        sum =
            hlo_make_select(p, hlo_make_spread(p, is, more->shape), more, sum);
    }
    return pass_convert(p, pass_dtype(x), sum);
}

/* ---- all-reduce ---- */

static hlo_inst *reduce_in_shares(hlo_at p, const team *t, hlo_comp *body,
                                  hlo_inst *x)
{
    int64_t unit = SD_MAX(SHARE / (int64_t)sd_dtype_bytes(pass_dtype(x)), 1);
    int64_t k = x->shape->dim[0], all = t->n * unit;
    int64_t each = (k + all - 1) / all * unit;
    hlo_inst *y = hlo_make_pad_dim(p, x, NULL, 0, 0, each * t->n - k);

    y = chain(p, t, body, move(p, HLO_ALL_TO_ALL, t, y, 0), 0);
    y = move(p, HLO_ALL_GATHER, t, y, 0);
    return hlo_make_cut(p, y, 0, 0, k);
}

/* Each member reads n - 1 parts of all others and makes the whole sum, or two
 * times n - 1 shares of an nth and meets once more. */
static bool pays_in_shares(const team *t, const sd_shape *s)
{
    double n = (double)t->n, bytes = (double)sd_shape_bytes(s);

    return (n - 1) * bytes > 2 * (n - 1) / n * bytes + t->meet;
}

static hlo_inst *reduce_one(hlo_at p, const team *t, hlo_comp *body,
                            hlo_inst *x)
{
    const sd_shape *s = x->shape;
    int64_t k = sd_shape_count(s);

    if (t->n == 1 || !k)
        return x;
    x = pass_reshape(p, x, 1, &k);
    if (t->uneven)
        x = reduce_unequal(p, t, body, x);
    else if (pays_in_shares(t, s))
        x = reduce_in_shares(p, t, body, x);
    else
        x = chain(p, t, body, move(p, HLO_ALL_GATHER, t, x, 0), 0);
    return pass_reshape(p, x, s->rank, s->dim);
}

/* ---- one of an instruction's arrays ---- */

static hlo_inst *lower_array(hlo_inst *in, const team *t, int i)
{
    hlo_at p = pass_at(in);
    hlo_inst *x = in->arg[i];
    const sd_shape *to = in->narg == 1 ? in->shape : in->shape->elem[i];

    switch (in->op) {
    case HLO_ALL_REDUCE:
        return reduce_one(p, t, in->comp[0], pass_convert(p, to->dtype, x));
    case HLO_REDUCE_SCATTER:
        x = pass_convert(p, to->dtype, x);
        if (t->n == 1 || !sd_shape_count(x->shape))
            return x;
        return chain(p, t, in->comp[0],
                     move(p, HLO_ALL_TO_ALL, t, x, hlo_collective_dim(in)),
                     hlo_collective_dim(in));
    default:
        return move(p, in->op, t, x, hlo_collective_dim(in));
    }
}

static bool goes_with(const hlo_inst *in, const team *t, int i, sd_dtype type)
{
    const sd_shape *s = in->shape->elem[i];

    return in->op == HLO_ALL_REDUCE && !t->uneven && s->dtype == type &&
           sd_shape_bytes(s) <= SMALL_BYTES;
}

/* All small arrays of the i-th's type, it is the first, into their places of
 * part; false: it is alone. */
static bool lower_together(hlo_inst *in, const team *t, int i, hlo_inst **part)
{
    hlo_at p = pass_at(in);
    sd_dtype type = in->shape->elem[i]->dtype;
    hlo_inst **x = sd_arena_array(p.c->module->arena, hlo_inst *, in->narg);
    int64_t from = 0, to;
    int n = 0;

    for (int k = i; k < in->narg; k++)
        if (goes_with(in, t, k, type)) {
            int64_t count = sd_shape_count(in->shape->elem[k]);

            x[n++] =
                pass_reshape(p, pass_convert(p, type, in->arg[k]), 1, &count);
        }
    if (n < 2)
        return false;
    x[0] = reduce_one(p, t, in->comp[0], hlo_make_concatenate(p, n, x, 0));
    for (int k = i; k < in->narg; k++)
        if (goes_with(in, t, k, type)) {
            const sd_shape *s = in->shape->elem[k];

            to = from + sd_shape_count(s);
            part[k] = pass_reshape(p, hlo_make_cut(p, x[0], 0, from, to),
                                   s->rank, s->dim);
            from = to;
        }
    return true;
}

static bool is_reduction(const hlo_inst *in)
{
    return in->op == HLO_ALL_REDUCE || in->op == HLO_REDUCE_SCATTER;
}

/* Parts of unequal groups are of unequal size, but those of an all-reduce. */
static bool can_lower(const hlo_inst *in, const team *t)
{
    if (is_reduction(in) && !pass_can_vectorize(in->comp[0]))
        return false;
    return !t->uneven || in->op == HLO_ALL_REDUCE ||
           in->op == HLO_COLLECTIVE_BROADCAST;
}

static hlo_inst *lower_moves(hlo_inst *in, const device_desc *dev)
{
    team t = team_of(in, dev);
    hlo_inst **part;

    if (!can_lower(in, &t))
        return NULL;
    if (t.n == 1 && in->op != HLO_COLLECTIVE_PERMUTE && !is_reduction(in))
        return in->narg == 1 ? in->arg[0]
                             : hlo_make_tuple(pass_at(in), in->narg, in->arg);
    part = sd_arena_array(in->parent->module->arena, hlo_inst *, in->narg);
    for (int i = 0; i < in->narg; i++)
        if (!part[i] &&
            !(in->narg > 1 && goes_with(in, &t, i, in->shape->elem[i]->dtype) &&
              lower_together(in, &t, i, part)))
            part[i] = lower_array(in, &t, i);
    return in->narg == 1 ? part[0]
                         : hlo_make_tuple(pass_at(in), in->narg, part);
}

/* ---- all ---- */

/* One array, explicit groups: it is a move, and stays. */
bool pass_is_move(const hlo_inst *in)
{
    const hlo_module *m = in->parent->module;

    if (hlo_participants(m) < 2 || is_mixed(m))
        return false;
    switch (in->op) {
    case HLO_PARTITION_ID:
    case HLO_REPLICA_ID:
        return true;
    case HLO_ALL_GATHER:
    case HLO_ALL_TO_ALL:
    case HLO_COLLECTIVE_PERMUTE:
    case HLO_COLLECTIVE_BROADCAST:
        return in->narg == 1 && sd_shape_is_array(in->shape) && in->u.coll &&
               in->u.coll->ngroup && in->u.coll->use_global_ids &&
               (in->u.coll->group_size > 1 || in->op == HLO_COLLECTIVE_PERMUTE);
    default:
        return false;
    }
}

static hlo_inst *lower_collective(hlo_inst *in, const device_desc *dev)
{
    const hlo_module *m = in->parent->module;

    if (hlo_info(in)->cls != HLO_C_COLLECTIVE || is_mixed(m))
        return NULL;
    if (in->op == HLO_COLLECTIVE_PERMUTE && !(in->u.coll && in->u.coll->ngroup))
        return sd_shape_is_array(in->shape)
                   ? hlo_make_fill(pass_at(in), in->shape, 0)
                   : NULL;
    return pass_is_move(in) ? NULL : lower_moves(in, dev);
}

bool hlo_lower_collective(hlo_module *m, const device_desc *dev)
{
    return hlo_participants(m) > 1 &&
           pass_rewrite_for(m, dev, lower_collective);
}
