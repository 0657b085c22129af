/* Makers of what moves data, by indices known and not. */
#include "random.h"

#include <math.h>

static const random_need anything = {INFINITY, false, false};

static hlo_inst *some(random_gen *g)
{
    return random_pick(g, HLO_T_ANY, anything);
}

void random_make_broadcast(random_gen *g)
{
    hlo_inst *x = some(g);
    int64_t dim[SD_MAX_RANK], dims[SD_MAX_RANK], n = sd_shape_count(x->shape);
    int rank = 0, k = 0;

    if (x->shape->rank > 5)
        return;
    for (int i = 0; i <= x->shape->rank; i++) {
        if (random_chance(g, 40) || (i == 0 && x->shape->rank == 0)) {
            dim[rank] = 1 + random_below(g, 5);
            if (n * dim[rank] <= 3000)
                n *= dim[rank++];
        }
        if (i < x->shape->rank) {
            dim[rank] = x->shape->dim[i];
            dims[k++] = rank++;
        }
    }
    random_keep(g,
                hlo_make_broadcast(random_at(g), x,
                                   random_dims(g, x->shape->dtype, rank, dim),
                                   dims, k),
                *random_fact_of(x));
}

/* Factors of the count, in any order. */
void random_make_reshape(random_gen *g)
{
    hlo_inst *x = some(g);
    int64_t dim[SD_MAX_RANK], n = sd_shape_count(x->shape);
    int rank = (int)random_below(g, 6);

    if (n != 1 && rank == 0)
        rank = 1;
    for (int i = 0; i < rank; i++) {
        static const int64_t by[] = {1, 2, 3, 4, 5, 8, 13};
        int64_t f = by[random_below(g, SD_COUNTOF(by))];

        dim[i] = i == rank - 1 ? n : n && n % f == 0 ? f : 1;
        n /= i == rank - 1 ? 1 : dim[i];
    }
    random_keep(g, hlo_make_reshape(random_at(g), x, rank, dim),
                *random_fact_of(x));
}

void random_make_transpose(random_gen *g)
{
    hlo_inst *x = some(g);
    int64_t perm[SD_MAX_RANK];
    int rank = x->shape->rank;

    for (int i = 0; i < rank; i++) {
        int64_t k = random_below(g, i + 1);

        perm[i] = perm[k];
        perm[k] = i;
    }
    random_keep(g, hlo_make_transpose(random_at(g), x, perm),
                *random_fact_of(x));
}

void random_make_reverse(random_gen *g)
{
    hlo_inst *x = some(g);
    int64_t dims[SD_MAX_RANK];
    int n = 0;

    for (int i = 0; i < x->shape->rank; i++)
        if (random_chance(g, 50))
            dims[n++] = i;
    random_keep(g, hlo_make_reverse(random_at(g), x, dims, n),
                *random_fact_of(x));
}

void random_make_slice(random_gen *g)
{
    hlo_inst *x = some(g);
    int64_t start[SD_MAX_RANK], limit[SD_MAX_RANK], stride[SD_MAX_RANK];

    for (int i = 0; i < x->shape->rank; i++) {
        int64_t n = x->shape->dim[i], a = random_below(g, n + 1),
                b = random_below(g, n + 1);

        start[i] = SD_MIN(a, b) / (1 + random_below(g, 3));
        limit[i] = random_chance(g, 2) ? SD_MAX(a, b) : n;
        stride[i] = random_chance(g, 30) ? 1 + random_below(g, 4) : 1;
        if (g->even && n > 1 && random_chance(g, 50)) { /* half of it */
            stride[i] = 1 + random_below(g, 2);
            start[i] = random_below(g, stride[i] == 1 ? n / 2 + 1 : 2);
            limit[i] = stride[i] == 1 ? start[i] + n / 2 : n;
        }
    }
    random_keep(g, hlo_make_slice(random_at(g), x, start, limit, stride),
                *random_fact_of(x));
}

void random_make_pad(random_gen *g)
{
    hlo_inst *arg[2] = {some(g), NULL};
    const sd_shape *s = arg[0]->shape;
    int64_t low[SD_MAX_RANK], high[SD_MAX_RANK], interior[SD_MAX_RANK], n = 1;

    for (int i = 0; i < s->rank; i++) {
        int64_t extent;

        low[i] = random_chance(g, 50) ? random_below(g, 6) - 2 : 0;
        high[i] = random_chance(g, 50) ? random_below(g, 6) - 2 : 0;
        interior[i] = random_chance(g, 20) ? random_below(g, 3) : 0;
        if (g->even && random_chance(g, 50)) { /* twice, or as much */
            bool twice = random_chance(g, 50);

            interior[i] = twice && random_chance(g, 50);
            low[i] = interior[i] ? random_below(g, 2) : random_below(g, 4) - 1;
            high[i] = (interior[i] ? 1 : twice ? s->dim[i] : 0) - low[i];
        }
        extent = s->dim[i] + low[i] + high[i] +
                 SD_MAX(s->dim[i] - 1, 0) * interior[i];
        if (extent < 0 || (n *= SD_MAX(extent, 1)) > 4000)
            return;
    }
    arg[1] = random_want(g, random_dims(g, s->dtype, 0, NULL), anything);
    random_keep(g,
                hlo_make_pad(random_at(g), arg[0], arg[1], low, high, interior),
                random_worst(2, arg));
}

void random_make_concatenate(random_gen *g)
{
    hlo_inst *arg[4] = {some(g)};
    const sd_shape *s = arg[0]->shape;
    int64_t dim[SD_MAX_RANK], d;
    int n = 1 + (int)random_below(g, 4);

    if (s->rank == 0 || sd_shape_count(s) > 1500)
        return;
    d = random_below(g, s->rank);
    for (int i = 1; i < n; i++) {
        memcpy(dim, s->dim, sizeof *dim * (size_t)s->rank);
        if (random_chance(g, 50))
            dim[d] = random_below(g, 9);
        arg[i] =
            random_want(g, random_dims(g, s->dtype, s->rank, dim), anything);
    }
    random_keep(g, hlo_make_concatenate(random_at(g), n, arg, d),
                random_worst(n, arg));
}

void random_make_iota(random_gen *g)
{
    sd_dtype t = random_dtype(g, HLO_T_NUM);
    const sd_shape *s = random_shape(g, t);
    random_fact f = {0, 0, true, true};
    int64_t d;

    if (s->rank == 0)
        return;
    d = random_below(g, s->rank);
    f.bound = (double)s->dim[d];
    if (sd_dtype_kind(sd_dtype_part(t)) == SD_K_FLOAT &&
        (f.bound > random_type_of(t).whole || t == SD_F8E8M0FNU))
        return;
    random_keep(g, hlo_make_iota(random_at(g), s, d), f);
}

/* ---- indexed at run time ---- */

void random_make_dynamic_slice(random_gen *g)
{
    hlo_inst *arg[1 + SD_MAX_RANK] = {some(g)}, *in;
    const sd_shape *s = arg[0]->shape;
    sd_dtype t = random_dtype(g, HLO_T_INT);
    int64_t size[SD_MAX_RANK];

    for (int i = 0; i < s->rank; i++) {
        size[i] = s->dim[i] - (s->dim[i] && random_chance(g, 70)
                                   ? random_below(g, s->dim[i])
                                   : 0);
        arg[1 + i] = random_index(g, t, s->dim[i]);
    }
    in = random_inst(g, HLO_DYNAMIC_SLICE, NULL, 1 + s->rank, arg);
    in->dims = hlo_dims_copy(g->a, size, s->rank);
    random_infer(g, in);
    random_keep(g, in, *random_fact_of(arg[0]));
}

/* A slice of an array beside itself: what jnp.roll by an argument is. */
void random_make_roll(random_gen *g)
{
    hlo_inst *x = some(g), *arg[1 + SD_MAX_RANK], *in;
    const sd_shape *s = x->shape;
    sd_dtype t = random_dtype(g, HLO_T_INT);

    if (s->rank == 0 || sd_shape_count(s) > 1500)
        return;
    arg[0] = hlo_make_concatenate(random_at(g), 2, (hlo_inst *[]){x, x},
                                  random_below(g, s->rank));
    for (int i = 0; i < s->rank; i++)
        arg[1 + i] = random_index(g, t, s->dim[i]);
    in = random_inst(g, HLO_DYNAMIC_SLICE, NULL, 1 + s->rank, arg);
    in->dims = hlo_dims_copy(g->a, s->dim, s->rank);
    random_infer(g, in);
    random_keep(g, in, *random_fact_of(x));
}

/* x with its ends exchanged along a dimension: what jnp.roll by a number is. */
static hlo_inst *turned(random_gen *g, hlo_inst *x)
{
    const sd_shape *s = x->shape;
    int64_t d = random_below(g, s->rank), cut = random_below(g, s->dim[d] + 1);
    int64_t start[SD_MAX_RANK] = {0}, limit[SD_MAX_RANK], stride[SD_MAX_RANK];
    hlo_inst *part[2];

    for (int i = 0; i < s->rank; i++) {
        limit[i] = s->dim[i];
        stride[i] = 1;
    }
    start[d] = cut;
    part[0] = hlo_make_slice(random_at(g), x, start, limit, stride);
    start[d] = 0;
    limit[d] = cut;
    part[1] = hlo_make_slice(random_at(g), x, start, limit, stride);
    return hlo_make_concatenate(random_at(g), 2, part, d);
}

/* Turned along one or two dimensions, or where a turned mask picks it. */
void random_make_turn(random_gen *g)
{
    hlo_inst *x = some(g), *y;
    const sd_shape *s = x->shape;

    if (s->rank == 0)
        return;
    y = turned(g, x);
    if (random_chance(g, 40))
        y = turned(g, y);
    if (random_chance(g, 50)) {
        const sd_shape *bits = random_dims(g, SD_PRED, s->rank, s->dim);
        hlo_inst *mask = turned(g, random_want(g, bits, anything));

        y = hlo_make_select(random_at(g), mask, y, x);
    }
    random_keep(g, y, *random_fact_of(x));
}

void random_make_dynamic_update(random_gen *g)
{
    hlo_inst *arg[2 + SD_MAX_RANK] = {some(g)}, *in;
    const sd_shape *s = arg[0]->shape;
    sd_dtype t = random_dtype(g, HLO_T_INT);
    int64_t dim[SD_MAX_RANK];

    for (int i = 0; i < s->rank; i++) {
        dim[i] = random_below(g, s->dim[i] + 1);
        arg[2 + i] = random_index(g, t, s->dim[i]);
    }
    arg[1] = random_want(g, random_dims(g, s->dtype, s->rank, dim), anything);
    in = random_inst(g, HLO_DYNAMIC_UPDATE_SLICE, s, 2 + s->rank, arg);
    random_infer(g, in);
    random_keep(g, in, random_worst(2, arg));
}

/* How indices lead into an operand: which dimensions are indexed, batched,
 * collapsed or windows.  extent: of the window along each dimension. */
typedef struct {
    hlo_gather g;
    int64_t map[SD_MAX_RANK], batch[SD_MAX_RANK], ibatch[SD_MAX_RANK],
        collapsed[SD_MAX_RANK], offset[16], extent[SD_MAX_RANK];
    int64_t ix_dim[SD_MAX_RANK];
    int ix_rank, nwindow;
} index_plan;

static void plan_indices(random_gen *g, const sd_shape *x, bool scatter,
                         index_plan *p)
{
    int nmap = 0, nbatch = 0, ncollapsed = 0, w = 0, k = 0;
    int64_t lead = random_below(g, 3), batch_dims[SD_MAX_RANK];

    *p = (index_plan){0};
    for (int i = 0; i < x->rank; i++) {
        int64_t n = x->dim[i], role = random_below(g, 10);

        p->extent[i] = n ? 1 + random_below(g, n) : 0;
        if (role == 0 && n <= 8 && nbatch < 2 && n > 0) {
            p->batch[nbatch] = i;
            batch_dims[nbatch++] = n;
            p->extent[i] = 1;
            continue;
        }
        if (role < 6)
            p->map[nmap++] = i;
        else if (!scatter || random_chance(g, 50))
            p->extent[i] = n;
        if (role < 4 && n > 0) {
            p->collapsed[ncollapsed++] = i;
            p->extent[i] = 1;
        }
    }
    for (int i = 0; i < nbatch; i++) {
        p->ibatch[i] = p->ix_rank;
        p->ix_dim[p->ix_rank++] = batch_dims[i];
    }
    for (int i = 0; i < lead; i++)
        p->ix_dim[p->ix_rank++] = 1 + random_below(g, 5);
    p->g.index_vector_dim = p->ix_rank;
    if (nmap != 1 || random_chance(g, 50))
        p->ix_dim[p->ix_rank++] = nmap;
    p->nwindow = x->rank - ncollapsed - nbatch;
    /* windows come last, or first */
    w = random_chance(g, 30) ? 0 : (int)lead + nbatch;
    for (k = 0; k < p->nwindow; k++)
        p->offset[k] = w + k;
    for (int i = nmap - 1; i > 0; i--) { /* the map in any order */
        int64_t j = random_below(g, i + 1), v = p->map[i];

        p->map[i] = p->map[j];
        p->map[j] = v;
    }
    p->g.index_map = hlo_dims_copy(g->a, p->map, nmap);
    p->g.operand_batch = hlo_dims_copy(g->a, p->batch, nbatch);
    p->g.indices_batch = hlo_dims_copy(g->a, p->ibatch, nbatch);
    p->g.collapsed = hlo_dims_copy(g->a, p->collapsed, ncollapsed);
    p->g.offset_dims = hlo_dims_copy(g->a, p->offset, p->nwindow);
}

static hlo_inst *indices(random_gen *g, const index_plan *p)
{
    sd_dtype t = random_chance(g, 70) ? SD_S32 : random_dtype(g, HLO_T_INT);

    return random_want(
        g, random_dims(g, t, p->ix_rank, p->ix_dim),
        (random_need){random_chance(g, 70) ? 8 : INFINITY, true, true});
}

void random_make_gather(random_gen *g)
{
    hlo_inst *arg[2] = {some(g), NULL}, *in;
    const sd_shape *x = arg[0]->shape;
    index_plan p;
    int64_t n = 1;

    if (x->rank > 5)
        return;
    plan_indices(g, x, false, &p);
    p.g.slice_sizes = hlo_dims_copy(g->a, p.extent, x->rank);
    for (int i = 0; i < x->rank; i++)
        n *= SD_MAX(p.extent[i], 1);
    for (int i = 0; i < p.ix_rank; i++)
        n *= SD_MAX(p.ix_dim[i], 1);
    if (n > 20000)
        return;
    arg[1] = indices(g, &p);
    in = random_inst(g, HLO_GATHER, NULL, 2, arg);
    in->u.gather = sd_arena_copy(g->a, &p.g, sizeof p.g);
    random_infer(g, in);
    if (sd_shape_count(in->shape) > 5000) {
        hlo_remove(in);
        return;
    }
    random_keep(g, in, *random_fact_of(arg[0]));
}

/* What combines old and new: sums stay whole, the rest moves. */
static bool combiner(random_gen *g, sd_dtype t, hlo_op *op)
{
    static const hlo_op any[] = {HLO_ADD,      HLO_MAXIMUM, HLO_MINIMUM,
                                 HLO_MULTIPLY, HLO_AND,     HLO_XOR};
    bool is_int = sd_dtype_kind(t) == SD_K_SINT ||
                  sd_dtype_kind(t) == SD_K_UINT || t == SD_PRED;

    *op = sd_dtype_kind(t) == SD_K_COMPLEX
              ? HLO_ADD
              : any[random_below(g, is_int ? 6 : 3)];
    return t != SD_F8E8M0FNU || *op != HLO_ADD;
}

static const sd_shape *updates_shape(random_gen *g, const sd_shape *x,
                                     const index_plan *p)
{
    int64_t dim[16], window[SD_MAX_RANK];
    int rank = p->nwindow, w = 0, b = 0;

    for (int i = 0; i < p->ix_rank; i++)
        rank += i != p->g.index_vector_dim;
    for (int i = 0, k = 0; i < x->rank; i++) {
        bool gone = false;

        for (int j = 0; j < p->g.collapsed.n; j++)
            gone = gone || p->g.collapsed.at[j] == i;
        for (int j = 0; j < p->g.operand_batch.n; j++)
            gone = gone || p->g.operand_batch.at[j] == i;
        if (!gone)
            window[k++] = p->extent[i];
    }
    for (int i = 0; i < rank; i++) {
        bool in_window = w < p->nwindow && p->offset[w] == i;

        if (!in_window && b == p->g.index_vector_dim)
            b++;
        dim[i] = in_window ? window[w++] : p->ix_dim[b++];
    }
    return random_dims(g, x->dtype, rank, dim);
}

void random_make_scatter(random_gen *g)
{
    hlo_inst *arg[3] = {some(g)}, *in;
    const sd_shape *x = arg[0]->shape, *u;
    bool is_float = random_is_float(x->dtype);
    random_type t = random_type_of(x->dtype);
    random_fact f;
    index_plan p;
    hlo_comp *c;
    hlo_op op;

    if (x->rank > 5 || !combiner(g, x->dtype, &op))
        return;
    plan_indices(g, x, true, &p);
    u = updates_shape(g, x, &p);
    if (sd_shape_count(u) > 1500)
        return;
    if (is_float && op == HLO_ADD) {
        arg[0] = random_want(g, x, (random_need){t.small * 2, true, true});
        if (t.small * (double)(2 + sd_shape_count(u)) > t.whole)
            return;
    }
    arg[1] = indices(g, &p);
    arg[2] = random_want(g, u,
                         is_float && op == HLO_ADD
                             ? (random_need){t.small, true, true}
                             : anything);
    in = random_inst(g, HLO_SCATTER, x, 3, arg);
    in->u.gather = sd_arena_copy(g->a, &p.g, sizeof p.g);
    c = random_scalar_body(g, x->dtype, op);
    hlo_set_comps(in, 1, &c);
    random_infer(g, in);
    f.bound = 0;
    f = random_worst(2, (hlo_inst *[]){arg[0], arg[2]});
    f.bits = false;
    if (is_float && op == HLO_ADD)
        f.bound = t.small * (double)(2 + sd_shape_count(u));
    random_keep(g, in, f);
}
