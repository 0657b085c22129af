/* Every reduce has one dimension: transposes before it, and before elementwise
 * operations between, are folded away, stacks of few parts combined part by
 * part, dimensions of extent 1 dropped, reduced neighbours collapsed unless the
 * operand is computed from arrays that have only one of them; reduced
 * dimensions that are apart are peeled, fastest first but for short rows, all
 * but the last starting from the combiner's identity.  A combiner without one
 * gets its dimensions side by side by a transpose. */
#include "passes_priv.h"

typedef struct {
    hlo_inst *in;
    hlo_at p;
    hlo_comp *body;
    hlo_inst **x, **init; /* n of each */
    int n, rank;
    int64_t dim[SD_MAX_RANK];
    bool over[SD_MAX_RANK];
    hlo_op op; /* of a body with an identity */
    bool known;
} reduce;

static void see_operands(reduce *r)
{
    const sd_shape *s = r->x[0]->shape;

    r->rank = s->rank;
    if (s->rank)
        memcpy(r->dim, s->dim, sizeof *s->dim * (size_t)s->rank);
}

static void read_reduce(hlo_inst *in, reduce *r)
{
    sd_arena *a = in->parent->module->arena;

    memset(r, 0, sizeof *r);
    r->in = in;
    r->p = pass_at(in);
    r->body = in->comp[0];
    r->n = in->narg / 2;
    r->x = sd_arena_array(a, hlo_inst *, r->n);
    memcpy(r->x, in->arg, sizeof *r->x * (size_t)r->n);
    r->init = in->arg + r->n;
    see_operands(r);
    for (int i = 0; i < in->dims.n; i++)
        r->over[in->dims.at[i]] = true;
    r->known = r->n == 1 && hlo_comp_is_binary(r->body, &r->op) &&
               pass_has_identity(r->op, pass_dtype(r->x[0]));
}

/* Runs of reduced dimensions, those of extent 1 not counted. */
static int count_runs(const bool *over, const int64_t *dim, int rank)
{
    bool inside = false;
    int n = 0;

    for (int i = 0; i < rank; i++) {
        if (dim[i] == 1)
            continue;
        n += over[i] && !inside;
        inside = over[i];
    }
    return n;
}

/* ---- results: one value or a tuple ---- */

static hlo_inst *result(const reduce *r, int i, hlo_inst *x)
{
    return r->n == 1 ? x : hlo_make_gte(r->p, x, i);
}

static hlo_inst *as_result(const reduce *r, hlo_inst **y)
{
    return r->n == 1 ? y[0] : hlo_make_tuple(r->p, r->n, y);
}

/* Reduces r's operands over one dimension; the results become its operands. */
static void reduce_over(reduce *r, int d, hlo_inst **init)
{
    sd_arena *a = r->p.c->module->arena;
    const sd_shape **s = sd_arena_array(a, const sd_shape *, r->n);
    hlo_inst **arg = sd_arena_array(a, hlo_inst *, 2 * r->n), *y;
    int64_t dim = d;

    for (int i = d; i + 1 < r->rank; i++) {
        r->dim[i] = r->dim[i + 1];
        r->over[i] = r->over[i + 1];
    }
    r->rank--;
    for (int i = 0; i < r->n; i++) {
        arg[i] = r->x[i];
        arg[r->n + i] = init[i];
        s[i] = sd_shape_make(a, pass_dtype(init[i]), r->rank, r->dim);
    }
    y = hlo_inst_create(r->p.c, r->p.before, HLO_REDUCE,
                        r->n == 1 ? s[0] : sd_shape_tuple(a, r->n, s), 2 * r->n,
                        arg);
    y->dims = hlo_dims_copy(a, &dim, 1);
    hlo_take_source(y, r->in);
    hlo_set_comps(y, 1, &r->body);
    for (int i = 0; i < r->n; i++)
        r->x[i] = result(r, i, y);
}

static hlo_inst *reshaped_results(reduce *r, int rank, const int64_t *dim)
{
    for (int i = 0; i < r->n; i++)
        r->x[i] = pass_reshape(r->p, r->x[i], rank, dim);
    return as_result(r, r->x);
}

/* ---- special cases ---- */

/* Nothing is summed: body(init, x), element by element. */
static hlo_inst *combine_once(reduce *r)
{
    const sd_shape *s = hlo_result_shape(r->in, 0);
    hlo_inst **arg =
        sd_arena_array(r->p.c->module->arena, hlo_inst *, 2 * r->n);

    for (int i = 0; i < r->n; i++) {
        arg[i] = hlo_make_spread(
            r->p, r->init[i],
            sd_shape_with(r->p.c->module->arena, s, pass_dtype(r->init[i])));
        arg[r->n + i] = pass_reshape(r->p, r->x[i], s->rank, s->dim);
    }
    return pass_vectorize(r->p, r->body, arg, s);
}

enum { MOST_PARTS = 16 };

/* It is put together for this reduce alone, of parts of one row each, as
 * jnp.stack([a, b, c]).sum(0) is. */
static bool is_stack(const reduce *r)
{
    const hlo_inst *x = r->x[0];
    int64_t d;

    if (r->n != 1 || x->op != HLO_CONCATENATE || x->nuse != 1 ||
        x->narg > MOST_PARTS || !pass_can_vectorize(r->body) ||
        sd_is_complex(pass_dtype(x))) /* 1 * x is not x where x is infinite */
        return false;
    d = x->dims.at[0];
    for (int i = 0; i < r->rank; i++)
        if (r->over[i] != (i == d) && r->dim[i] != 1)
            return false;
    for (int i = 0; i < x->narg; i++)
        if (x->arg[i]->shape->dim[d] != 1)
            return false;
    return true;
}

/* body(body(init, part 0), part 1), and so on: an element of a stack is one of
 * one part, but would ask each whether it is in it. */
static hlo_inst *combine_parts(reduce *r)
{
    const sd_shape *s = r->in->shape;
    const hlo_inst *x = r->x[0];
    hlo_inst *arg[2] = {hlo_make_spread(r->p, r->init[0], s), NULL};

    for (int i = 0; i < x->narg; i++) {
        arg[1] = pass_reshape(r->p, x->arg[i], s->rank, s->dim);
        arg[0] = pass_vectorize(r->p, r->body, arg, s);
    }
    return arg[0];
}

static hlo_inst *only_init(reduce *r)
{
    const sd_shape *s = hlo_result_shape(r->in, 0);

    for (int i = 0; i < r->n; i++)
        r->x[i] = hlo_make_spread(r->p, r->init[i], s);
    return as_result(r, r->x);
}

/* ---- transposes ---- */

/* Reduces what was transposed, and transposes the smaller result. */
static hlo_inst *fold_transpose(hlo_inst *in)
{
    int64_t dims[SD_MAX_RANK], at[SD_MAX_RANK], perm[SD_MAX_RANK];
    int64_t shape[SD_MAX_RANK];
    bool over[SD_MAX_RANK] = {false};
    hlo_inst *y, **arg;
    reduce r;
    pass_turn t;
    int n = 0;

    if (!pass_turn_find(&t, in, in->narg / 2))
        return NULL;
    read_reduce(in, &r);
    for (int i = 0; i < in->dims.n; i++) {
        dims[i] = t.perm.at[in->dims.at[i]];
        over[dims[i]] = true;
    }
    for (int i = 0; i < r.rank; i++)
        shape[t.perm.at[i]] = r.dim[i];
    if (!r.known && count_runs(over, shape, r.rank) > 1)
        return NULL;
    for (int i = 0; i < r.rank; i++)
        at[i] = over[i] ? -1 : n++;
    n = 0;
    for (int i = 0; i < r.rank; i++)
        if (!r.over[i])
            perm[n++] = at[t.perm.at[i]];
    arg = sd_arena_array(r.p.c->module->arena, hlo_inst *, in->narg);
    for (int i = 0; i < in->narg; i++)
        arg[i] = i < r.n ? pass_turn_make(&t, in->arg[i]) : in->arg[i];
    y = hlo_inst_clone(in->parent, in, in, arg);
    y->dims = hlo_dims_copy(r.p.c->module->arena, dims, in->dims.n);
    /* its own dimensions are those of the result, put back */
    const sd_shape **s =
        sd_arena_array(r.p.c->module->arena, const sd_shape *, r.n);
    int64_t dim[SD_MAX_RANK];

    for (int i = 0; i < n; i++)
        dim[perm[i]] = hlo_result_shape(in, 0)->dim[i];
    for (int i = 0; i < r.n; i++)
        s[i] =
            sd_shape_make(r.p.c->module->arena, pass_dtype(r.init[i]), n, dim);
    y->shape = r.n == 1 ? s[0] : sd_shape_tuple(r.p.c->module->arena, r.n, s);
    for (int i = 0; i < r.n; i++) {
        r.x[i] = result(&r, i, y);
        if (n > 1)
            r.x[i] = hlo_make_transpose(r.p, r.x[i], perm);
    }
    hlo_inst *out = as_result(&r, r.x);

    hlo_replace(in, out);
    return y;
}

/* A combiner without identity: reduced dimensions last, side by side. */
static void bring_together(reduce *r)
{
    int64_t perm[SD_MAX_RANK];
    bool over[SD_MAX_RANK];
    int n = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < r->rank; i++)
            if (r->over[i] == (pass == 1)) {
                over[n] = pass == 1;
                perm[n++] = i;
            }
    for (int i = 0; i < r->n; i++)
        r->x[i] = hlo_make_transpose(r->p, r->x[i], perm);
    memcpy(r->over, over, sizeof over);
    see_operands(r);
}

enum { MOST_ASKED = 100 /* instructions looked at for one reduce */ };

/* Which dimension of a broadcast's or a reduce's operand is its dimension d?
 * -1: none. */
static int dim_of_operand(const hlo_inst *x, int d)
{
    if (x->op == HLO_BROADCAST)
        return hlo_dims_find(x->dims, d);
    return x->op == HLO_REDUCE && d >= x->dims.at[0] ? d + 1 : d;
}

/* Is x, element by element, made of an array that has dimension i and not j, or
 * j and not i?  Places in the two as one dimension would have to be divided for
 * each element. */
static bool is_made_across(const hlo_inst *x, int i, int j, int *asked)
{
    if (++*asked > MOST_ASKED)
        return false;
    if (x->op == HLO_IOTA)
        return x->dims.at[0] == i || x->dims.at[0] == j;
    if (!hlo_is_elementwise(x) && x->op != HLO_BROADCAST &&
        (x->op != HLO_REDUCE || x->dims.n != 1 || x->narg != 2))
        return false;
    i = dim_of_operand(x, i);
    j = dim_of_operand(x, j);
    if (i < 0 || j < 0)
        return i != j;
    for (int k = 0; k < x->narg; k++)
        if (x->arg[k]->shape->rank && is_made_across(x->arg[k], i, j, asked))
            return true;
    return false;
}

/* Drops ones and collapses reduced neighbours; says how many reduced dimensions
 * are left. */
static int collapse(reduce *r)
{
    int n = 0, left = 0, before = 0, asked = 0;
    bool inside = false;

    for (int i = 0; i < r->rank; i++) {
        if (r->dim[i] == 1)
            continue;
        if (inside && r->over[i] &&
            !(r->known && is_made_across(r->x[0], before, i, &asked))) {
            r->dim[n - 1] *= r->dim[i];
            continue;
        }
        before = i;
        inside = r->over[i];
        left += inside;
        r->over[n] = inside;
        r->dim[n++] = r->dim[i];
    }
    r->rank = n;
    for (int i = 0; i < r->n; i++)
        r->x[i] = pass_reshape(r->p, r->x[i], n, r->dim);
    return left;
}

/* Elements of a short row, and least elements beside which rows are added. */
enum { SHORT_ROW = 128, WIDE = 64 };

/* The reduced dimension that goes next: the fastest.  Only rows that are short
 * come after a longer dimension outside of them (the channels of a group after
 * the places of a picture): what lies side by side is then added as vectors,
 * where a short row each would be read by gathers. */
static int next_dim(const reduce *r)
{
    int64_t beside = 1;
    int last = r->rank - 1, d;

    while (!r->over[last])
        last--;
    if (last < r->rank - 1 || r->dim[last] >= SHORT_ROW)
        return last;
    for (d = last; d > 0 && (d == last || !r->over[d]); d--)
        beside *= r->dim[d];
    return r->over[d] && r->dim[d] > r->dim[last] && beside >= WIDE ? d : last;
}

static hlo_inst *lower_reduce(hlo_inst *in)
{
    reduce r;
    int64_t count = 1;
    int runs;

    read_reduce(in, &r);
    for (int i = 0; i < r.rank; i++)
        count *= r.over[i] ? r.dim[i] : 1;
    if (count == 0)
        return only_init(&r);
    if (count == 1 && pass_can_vectorize(r.body))
        return combine_once(&r);
    if (is_stack(&r))
        return combine_parts(&r);
    if (in->dims.n <= 1 || count == 1)
        return NULL;
    if (!r.known && count_runs(r.over, r.dim, r.rank) > 1)
        bring_together(&r);
    runs = collapse(&r);
    while (runs-- > 0) {
        hlo_inst *start = r.known && runs
                              ? pass_identity(r.p, r.op, pass_dtype(r.x[0]))
                              : NULL;

        reduce_over(&r, next_dim(&r), start ? &start : r.init);
    }
    return reshaped_results(&r, hlo_result_shape(in, 0)->rank,
                            hlo_result_shape(in, 0)->dim);
}

bool hlo_lower_reduce(hlo_module *m)
{
    bool changed = false;

    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            hlo_inst *to, *x = in;

            if (in->op != HLO_REDUCE)
                continue;
            while ((to = fold_transpose(x))) {
                x = to;
                changed = true;
            }
            if ((to = lower_reduce(x))) {
                hlo_replace(x, to);
                changed = true;
            }
        }
    return changed;
}
