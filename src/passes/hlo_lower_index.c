/* Ops that read or write where indices say, in one form:
 *   - indices are signed and of 32 bits at least, since plans extend the sign;
 *   - a gather of one slice is a dynamic-slice;
 *   - a scatter has indices [n, k] and updates [n, window..] with a window
 *     dimension for each of the operand's.  Where the operand's batch
 *     dimensions come first they are one dimension before n and before the
 *     operand's others; elsewhere they are more columns of indices;
 *   - one that writes a window at a known place inside is a
 *     dynamic-update-slice. */
#include "passes_priv.h"

/* ---- index types ---- */

static hlo_inst *signed_index(hlo_at p, hlo_inst *x)
{
    switch (pass_dtype(x)) {
    case SD_S32:
    case SD_S64:
        return x;
    case SD_U64: /* beyond s64 is beyond any dimension, and must stay so */
        x = hlo_make_binary(p, HLO_MINIMUM, x,
                            hlo_make_fill_s64(p, x->shape, SD_U64, INT64_MAX));
        return hlo_make_convert(p, SD_S64, x);
    case SD_U32:
        return hlo_make_convert(p, SD_S64, x);
    default:
        return sd_is_int(pass_dtype(x)) ? hlo_make_convert(p, SD_S32, x) : x;
    }
}

static bool sign_indices(hlo_inst *in)
{
    int from, to;
    bool changed = false;

    switch (in->op) {
    case HLO_DYNAMIC_SLICE:
        from = 1, to = in->narg;
        break;
    case HLO_DYNAMIC_UPDATE_SLICE:
        from = 2, to = in->narg;
        break;
    case HLO_GATHER:
        from = 1, to = 2;
        break;
    case HLO_SCATTER:
        from = hlo_ninput(in), to = from + 1;
        break;
    default:
        return false;
    }
    for (int i = from; i < to; i++) {
        hlo_inst *x = signed_index(pass_at(in), in->arg[i]);

        changed |= x != in->arg[i];
        hlo_set_arg(in, i, x);
    }
    return changed;
}

/* ---- gather ---- */

static hlo_inst *lower_gather(hlo_inst *in)
{
    const hlo_gather *g = in->u.gather;
    hlo_inst *x = in->arg[0], *at = in->arg[1];
    hlo_at p = pass_at(in);
    int64_t k = g->index_map.n;
    hlo_inst *start[SD_MAX_RANK], *zero, *y;

    for (int i = 0; i < at->shape->rank; i++) /* one index vector, no batch */
        if (i != g->index_vector_dim && at->shape->dim[i] != 1)
            return NULL;
    if (sd_shape_count(at->shape) != k || g->operand_batch.n)
        return NULL;
    at = pass_reshape(p, at, 1, &k);
    zero = hlo_make_scalar_s64(p, pass_dtype(at), 0);
    for (int i = 0; i < x->shape->rank; i++)
        start[i] = zero;
    for (int64_t i = 0; i < k; i++) {
        y = hlo_make_cut(p, at, 0, i, i + 1);
        start[g->index_map.at[i]] = hlo_make_reshape(p, y, 0, NULL);
    }
    y = hlo_make_dynamic_slice(p, x, start, g->slice_sizes.at);
    return pass_reshape(p, y, in->shape->rank, in->shape->dim);
}

/* ---- scatter ---- */

typedef struct {
    hlo_inst *in;
    hlo_at p;
    const hlo_gather *g;
    int n;             /* operands */
    int nbatch;        /* of the operand's dimensions, kept as one batch */
    int64_t batch;     /* their product */
    int64_t count;     /* windows of a batch */
    const sd_shape *x; /* of an operand */
} scatter;

/* One more column of indices: the place along dimension d of `of`, which are
 * the dimensions of the indices without the index vector. */
static hlo_inst *batch_column(const scatter *s, const sd_shape *of, int64_t d,
                              sd_dtype t)
{
    int64_t dim[] = {s->count, 1};
    const sd_shape *shape = sd_shape_with(s->in->parent->module->arena, of, t);

    return hlo_make_reshape(s->p, hlo_make_iota(s->p, shape, d), 2, dim);
}

/* The dimensions of the indices but the index vector, kept batches first. */
static int index_order(const scatter *s, int64_t *perm)
{
    const hlo_gather *g = s->g;
    int n = 0;

    for (; n < s->nbatch; n++)
        perm[n] = g->indices_batch.at[n];
    for (int k = 0; k < s->in->arg[s->n]->shape->rank; k++)
        if (k != g->index_vector_dim &&
            !(s->nbatch && hlo_dims_hold(g->indices_batch, k)))
            perm[n++] = k;
    return n;
}

/* Batch and count before the n dimensions of dim, the batch if there is one. */
static hlo_inst *in_rows(const scatter *s, hlo_inst *x, int n,
                         const int64_t *dim)
{
    int64_t all[SD_MAX_RANK + 2] = {s->batch, s->count};

    memcpy(all + 2, dim, (size_t)n * sizeof *dim);
    return s->nbatch ? pass_reshape(s->p, x, n + 2, all)
                     : pass_reshape(s->p, x, n + 1, all + 1);
}

/* [batch, count, k]; other batches are columns, last. */
static hlo_inst *index_matrix(scatter *s)
{
    hlo_inst *at = s->in->arg[s->n], *col[SD_MAX_RANK + 1];
    const sd_shape *i = at->shape, *of;
    int64_t v = s->g->index_vector_dim, perm[SD_MAX_RANK], dim[SD_MAX_RANK];
    int n = index_order(s, perm), ncol = 0;

    for (int k = 0; k < n; k++)
        dim[k] = i->dim[perm[k]];
    of = sd_shape_make(s->in->parent->module->arena, i->dtype, n, dim);
    s->batch = 1;
    for (int k = 0; k < s->nbatch; k++)
        s->batch *= dim[k];
    s->count = sd_shape_count(of) / SD_MAX(s->batch, 1);
    if (v < i->rank)
        perm[n++] = v;
    at = hlo_make_transpose(s->p, at, perm);
    dim[0] = s->g->index_map.n;
    col[ncol++] = in_rows(s, at, 1, dim);
    for (int k = s->nbatch; k < s->g->indices_batch.n; k++) {
        int64_t d = s->g->indices_batch.at[k];

        col[ncol++] = batch_column(s, of, d > v ? d - 1 : d, i->dtype);
    }
    return ncol > 1 ? hlo_make_concatenate(s->p, ncol, col, 1) : col[0];
}

/* [batch, count, window..] with ones where the operand's dimension has no
 * window. */
static hlo_inst *update_windows(const scatter *s, hlo_inst *u)
{
    int64_t perm[SD_MAX_RANK], place[SD_MAX_RANK], dim[SD_MAX_RANK];
    const hlo_gather *g = s->g;
    int n = index_order(s, perm), m = 0, w = 0;

    for (int i = 0; i < u->shape->rank; i++)
        if (!hlo_dims_hold(g->offset_dims, i))
            place[m++] = i;
    for (int i = 0; i < n; i++)
        perm[i] = place[perm[i] - (perm[i] > g->index_vector_dim)];
    for (int i = 0; i < u->shape->rank; i++)
        if (hlo_dims_hold(g->offset_dims, i))
            perm[n++] = i;
    m = 0;
    for (int i = s->nbatch; i < s->x->rank; i++)
        dim[m++] =
            hlo_dims_hold(g->collapsed, i) || hlo_dims_hold(g->operand_batch, i)
                ? 1
                : u->shape->dim[g->offset_dims.at[w++]];
    if (u->shape->rank)
        u = hlo_make_transpose(s->p, u, perm);
    return in_rows(s, u, m, dim);
}

/* The operand with its batches as one. */
static hlo_inst *in_batches(const scatter *s, hlo_inst *x)
{
    int64_t dim[SD_MAX_RANK + 1] = {s->batch};

    if (!s->nbatch)
        return x;
    memcpy(dim + 1, s->x->dim + s->nbatch,
           (size_t)(s->x->rank - s->nbatch) * sizeof *dim);
    return pass_reshape(s->p, x, s->x->rank - s->nbatch + 1, dim);
}

static bool first_dims(hlo_dims d)
{
    for (int i = 0; i < d.n; i++)
        if (d.at[i] != i)
            return false;
    return true;
}

bool pass_is_canonical_scatter(const hlo_inst *in)
{
    const hlo_gather *g = in->u.gather;
    int batch = g->operand_batch.n;

    if (g->collapsed.n || batch > (hlo_ninput(in) == 1) ||
        g->index_vector_dim != 1 + batch || !first_dims(g->operand_batch) ||
        !first_dims(g->indices_batch) ||
        in->arg[hlo_ninput(in)]->shape->rank != 2 + batch)
        return false;
    for (int i = 0; i < g->offset_dims.n; i++)
        if (g->offset_dims.at[i] != i + 1 + batch)
            return false;
    return true;
}

static const hlo_gather *canonical_numbers(const scatter *s)
{
    sd_arena *a = s->in->parent->module->arena;
    hlo_gather *g = sd_arena_new(a, hlo_gather);
    int64_t at[SD_MAX_RANK + 1], zero = 0;
    int n = 0, b = s->nbatch > 0, gone = s->nbatch - b;

    for (int i = b; i < s->x->rank - gone; i++)
        at[i - b] = i + 1;
    g->offset_dims = hlo_dims_copy(a, at, s->x->rank - s->nbatch);
    for (int i = 0; i < s->g->index_map.n; i++)
        at[n++] = s->g->index_map.at[i] - gone;
    for (int i = s->nbatch; i < s->g->operand_batch.n; i++)
        at[n++] = s->g->operand_batch.at[i];
    g->index_map = hlo_dims_copy(a, at, n);
    g->operand_batch = g->indices_batch = hlo_dims_copy(a, &zero, b);
    g->index_vector_dim = 1 + b;
    g->sorted = s->g->sorted && s->g->operand_batch.n == s->nbatch;
    g->unique = s->g->unique;
    return g;
}

static hlo_inst *canonical_scatter(scatter *s)
{
    hlo_inst *in = s->in, *y;
    hlo_inst **arg;

    if (pass_is_canonical_scatter(in) || s->x->rank >= SD_MAX_RANK)
        return NULL;
    if (s->n == 1 && first_dims(s->g->operand_batch))
        s->nbatch = s->g->operand_batch.n;
    arg = sd_arena_array(in->parent->module->arena, hlo_inst *, in->narg);
    arg[s->n] = index_matrix(s);
    for (int i = 0; i < s->n; i++) {
        arg[i] = in_batches(s, in->arg[i]);
        arg[s->n + 1 + i] = update_windows(s, in->arg[s->n + 1 + i]);
    }
    y = hlo_inst_clone(in->parent, in, in, arg);
    y->u.gather = canonical_numbers(s);
    if (s->nbatch)
        y->shape = arg[0]->shape;
    return s->nbatch ? pass_reshape(s->p, y, s->x->rank, s->x->dim) : y;
}

/* A canonical scatter of one window, known to be inside, that replaces. */
static hlo_inst *as_update_slice(const scatter *s)
{
    hlo_inst *in = s->in, *at = in->arg[s->n], *start[SD_MAX_RANK], *part;
    hlo_comp *body = in->comp[0];
    sd_dtype t = pass_dtype(at);
    int64_t place[SD_MAX_RANK] = {0};
    const sd_shape *u;

    if (s->n != 1 || at->shape->rank != 2 || at->shape->dim[0] != 1 ||
        body->root != body->param[1] || !pass_is_canonical_scatter(in))
        return NULL;
    u = in->arg[2]->shape;
    for (int i = 0; i < s->g->index_map.n; i++) {
        int64_t d = s->g->index_map.at[i], v;

        if (at->op == HLO_CONSTANT)
            v = sd_scalar_to_s64(t, (const char *)at->u.literal.data +
                                        sd_dtype_bytes(t) * (size_t)i);
        else if (!pass_int_const(at, &v))
            return NULL;
        if (v < 0 || v > s->x->dim[d] - u->dim[d + 1])
            return NULL;
        place[d] = v;
    }
    part = hlo_make_reshape(s->p, in->arg[2], s->x->rank, u->dim + 1);
    for (int i = 0; i < s->x->rank; i++)
        start[i] = hlo_make_scalar_s64(s->p, t, place[i]);
    return hlo_make_dynamic_update(s->p, in->arg[0], part, start);
}

static hlo_inst *lower_scatter(hlo_inst *in)
{
    scatter s = {.in = in,
                 .p = pass_at(in),
                 .g = in->u.gather,
                 .n = hlo_ninput(in),
                 .x = in->arg[0]->shape};
    hlo_inst *to;

    if (!sd_shape_count(s.x)) /* no place to scatter to */
        return s.n == 1 ? in->arg[0] : hlo_make_tuple(s.p, s.n, in->arg);
    to = as_update_slice(&s);
    return to ? to : canonical_scatter(&s);
}

bool hlo_lower_index(hlo_module *m)
{
    bool changed = false;

    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            hlo_inst *to = NULL;

            changed |= sign_indices(in);
            if (in->op == HLO_GATHER)
                to = lower_gather(in);
            else if (in->op == HLO_SCATTER)
                to = lower_scatter(in);
            if (to) {
                pass_replace(in, to);
                changed = true;
            }
        }
    return changed;
}
