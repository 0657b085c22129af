/* A scatter of many updates into few places waits for each place: it becomes
 * one of pieces of the updates, each into a table of its own, and a reduce of
 * the tables.  How many pieces there are follows from the shape alone, so that
 * a sum has one order on every device and for any number of threads.  Comes
 * after lower_index, whose form has a batch dimension for this. */
#include "passes_priv.h"

enum {
    MOST_PIECES = 64,
    LEAST_WORK = 4096, /* elements of a piece */
    LEAST_EACH = 8     /* of them, for a place of a table */
};

typedef struct {
    hlo_inst *in;
    hlo_at p;
    hlo_op op;
    int64_t batch, count, npiece, piece; /* count: windows of a batch */
} split;

/* Tables are filled, and read again: of the first few, n of them, a place has n
 * updates in each, of more it has 8. */
static int64_t pieces_of(const split *s, int64_t updates, int64_t places)
{
    int64_t each = updates / places, n = 1;
    int64_t most = SD_MIN(updates / LEAST_WORK, s->count);

    most = SD_MIN(most, MOST_PIECES / s->batch);
    while (2 * n <= most && 2 * n * SD_MIN(2 * n, LEAST_EACH) <= each)
        n *= 2;
    return n;
}

static bool plan_split(hlo_inst *in, split *s)
{
    const sd_shape *x = in->arg[0]->shape, *u;
    bool batched;
    int64_t all;

    if (hlo_ninput(in) != 1 || !pass_is_canonical_scatter(in) ||
        in->u.gather->index_map.n == 0)
        return false;
    *s = (split){.in = in, .p = pass_at(in)};
    u = in->arg[2]->shape;
    batched = in->u.gather->operand_batch.n > 0;
    s->batch = batched ? u->dim[0] : 1;
    s->count = u->dim[batched];
    all = sd_shape_count(u);
    if (all == 0 || (!batched && x->rank >= SD_MAX_RANK - 1) ||
        !hlo_comp_is_binary(in->comp[0], &s->op) ||
        !pass_has_identity(s->op, x->dtype))
        return false;
    s->npiece = pieces_of(s, all / s->batch, sd_shape_count(x) / s->batch);
    s->piece = s->count / s->npiece;
    return s->npiece > 1;
}

/* Windows [from, to) of x, [batch, count, ..] or [count, ..]. */
static hlo_inst *windows(const split *s, hlo_inst *x, int64_t from, int64_t to)
{
    return hlo_make_cut(s->p, x, s->in->u.gather->operand_batch.n, from, to);
}

/* What divides into pieces, as [batch * npiece, piece, ..]. */
static hlo_inst *in_pieces(const split *s, hlo_inst *x)
{
    int64_t dim[SD_MAX_RANK] = {s->batch * s->npiece, s->piece};
    int at = s->in->u.gather->operand_batch.n, rank = 2;

    for (int i = at + 1; i < x->shape->rank; i++)
        dim[rank++] = x->shape->dim[i];
    x = windows(s, x, 0, s->npiece * s->piece);
    return hlo_make_reshape(s->p, x, rank, dim);
}

static const hlo_gather *batched_numbers(const split *s)
{
    sd_arena *a = s->in->parent->module->arena;
    hlo_gather *g = sd_arena_copy(a, s->in->u.gather, sizeof *g);
    int64_t at[SD_MAX_RANK + 1], zero = 0;
    int n = s->in->arg[0]->shape->rank;

    if (g->operand_batch.n)
        return g;
    for (int i = 0; i < n; i++)
        at[i] = i + 2;
    g->offset_dims = hlo_dims_copy(a, at, n);
    for (int i = 0; i < g->index_map.n; i++)
        at[i] = g->index_map.at[i] + 1;
    g->index_map = hlo_dims_copy(a, at, g->index_map.n);
    g->operand_batch = g->indices_batch = hlo_dims_copy(a, &zero, 1);
    g->index_vector_dim = 2;
    return g;
}

/* An operand of dimension 0 for each piece, started with the identity. */
static hlo_inst *scatter_pieces(const split *s)
{
    const sd_shape *x = s->in->arg[0]->shape, *t;
    int64_t dim[SD_MAX_RANK] = {s->batch * s->npiece};
    int rank = 1;
    hlo_inst *arg[3], *y;

    for (int i = s->in->u.gather->operand_batch.n; i < x->rank; i++)
        dim[rank++] = x->dim[i];
    t = sd_shape_make(s->in->parent->module->arena, x->dtype, rank, dim);
    arg[0] = hlo_make_spread(s->p, pass_identity(s->p, s->op, x->dtype), t);
    arg[1] = in_pieces(s, s->in->arg[1]);
    arg[2] = in_pieces(s, s->in->arg[2]);
    y = hlo_inst_clone(s->in->parent, s->in, s->in, arg);
    y->shape = t;
    y->u.gather = batched_numbers(s);
    return y;
}

static hlo_inst *reduce_pieces(const split *s, hlo_inst *x)
{
    int64_t dim[SD_MAX_RANK], at = s->in->u.gather->operand_batch.n;
    int rank = 0;

    if (at)
        dim[rank++] = s->batch;
    dim[rank++] = s->npiece;
    for (int i = 1; i < x->shape->rank; i++)
        dim[rank++] = x->shape->dim[i];
    x = hlo_make_reshape(s->p, x, rank, dim);
    return hlo_make_reduce(s->p, x,
                           pass_identity(s->p, s->op, pass_dtype(s->in)), &at,
                           1, s->in->comp[0]);
}

/* The few windows that no piece has come last. */
hlo_inst *hlo_split_scatter(hlo_inst *in)
{
    split s;
    hlo_inst *y, *arg[3];

    if (!plan_split(in, &s))
        return NULL;
    y = reduce_pieces(&s, scatter_pieces(&s));
    y = hlo_make_binary(s.p, s.op, in->arg[0], y);
    if (s.npiece * s.piece == s.count)
        return y;
    arg[0] = y;
    for (int i = 1; i < 3; i++)
        arg[i] = windows(&s, in->arg[i], s.npiece * s.piece, s.count);
    return hlo_inst_clone(in->parent, in, in, arg);
}
