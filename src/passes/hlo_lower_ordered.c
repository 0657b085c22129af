/* Reductions by a function whose operands may not change places, such as a
 * product of matrices or "the last that is not 0".  StableHLO and JAX ask of
 * the function that it is associative, not that it commutes, and plan's lanes
 * hold every 64th element of a row.  Neighbours are joined, then those of what
 * they come to, until one is left:
 *
 *     x:  1 2 3 4 5       1 2 | 3 4 | 5 init
 *                         12    34    5         12 34 | 5 init
 *                                               1234    5
 *
 * The end is filled up with the initial value, which is the function's
 * identity. */
#include "passes_priv.h"

hlo_comp *pass_swapped(hlo_comp *c)
{
    hlo_comp *to = hlo_comp_create(c->module, c->name);
    int n = c->nparam / 2;
    hlo_inst **arg = sd_arena_array(c->module->arena, hlo_inst *, 2 * n);

    for (int i = 0; i < 2 * n; i++) {
        int from = (i + n) % (2 * n);

        arg[from] = hlo_make_param(to, c->param[from]->shape, "x");
    }
    hlo_set_root(to, pass_splice((hlo_at){to, NULL, NULL}, c, arg));
    return to;
}

/* ---- the reduction ---- */

typedef struct {
    hlo_inst *in;
    hlo_at p;
    hlo_inst **x; /* n arrays, whose dimension d is reduced */
    int n, d;
} ordered;

/* Dimensions that are reduced and are no neighbours come first. */
static bool are_neighbours(const hlo_inst *in)
{
    int first = SD_MAX_RANK, last = 0;

    for (int i = 0; i < in->dims.n; i++) {
        first = SD_MIN(first, (int)in->dims.at[i]);
        last = SD_MAX(last, (int)in->dims.at[i]);
    }
    return last - first + 1 == in->dims.n;
}

static hlo_inst *brought_to_front(const ordered *o, hlo_inst *x)
{
    int64_t perm[SD_MAX_RANK];
    int n = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < x->shape->rank; d++)
            if (hlo_dims_hold(o->in->dims, d) == (pass == 0))
                perm[n++] = d;
    return hlo_make_transpose(o->p, x, perm);
}

/* The dimensions that are reduced become one, which is `count` long. */
static void make_one_dimension(ordered *o, int64_t count)
{
    const sd_shape *kept = hlo_result_shape(o->in, 0);
    bool stay = are_neighbours(o->in);
    int64_t dim[SD_MAX_RANK];

    while (stay && !hlo_dims_hold(o->in->dims, o->d))
        o->d++;
    for (int i = 0; i <= kept->rank; i++)
        dim[i] = i == o->d ? count : kept->dim[i - (i > o->d)];
    for (int i = 0; i < o->n; i++) {
        hlo_inst *x = o->in->arg[i];

        x = stay ? x : brought_to_front(o, x);
        o->x[i] = pass_reshape(o->p, x, kept->rank + 1, dim);
    }
}

/* Every second element of x along d, from `first` on. */
static hlo_inst *every_second(hlo_at p, hlo_inst *x, int d, int64_t first)
{
    int64_t start[SD_MAX_RANK] = {0}, stride[SD_MAX_RANK];

    for (int i = 0; i < x->shape->rank; i++)
        stride[i] = i == d ? 2 : 1;
    start[d] = first;
    return hlo_make_slice(p, x, start, x->shape->dim, stride);
}

static void join_neighbours(ordered *o)
{
    hlo_inst **arg =
        sd_arena_array(o->p.c->module->arena, hlo_inst *, 2 * o->n);
    hlo_inst *y;

    for (int i = 0; i < o->n; i++) {
        hlo_inst *x = o->x[i];

        x = hlo_make_pad_dim(o->p, x, o->in->arg[o->n + i], o->d, 0,
                             x->shape->dim[o->d] % 2);
        arg[i] = every_second(o->p, x, o->d, 0);
        arg[o->n + i] = every_second(o->p, x, o->d, 1);
    }
    y = pass_vectorize(o->p, o->in->comp[0], arg, arg[0]->shape);
    for (int i = 0; i < o->n; i++)
        o->x[i] = pass_result(o->p, y, i);
}

hlo_inst *hlo_lower_ordered(hlo_inst *in)
{
    const sd_shape *s = in->arg[0]->shape, *kept = hlo_result_shape(in, 0);
    ordered o = {.in = in, .p = pass_at(in), .n = in->narg / 2};
    sd_arena *a = in->parent->module->arena;
    int64_t count = 1;
    hlo_inst **arg;

    for (int i = 0; i < in->dims.n; i++)
        count *= s->dim[in->dims.at[i]];
    if (count <= 1 || kept->rank + 1 > SD_MAX_RANK ||
        !pass_can_vectorize(in->comp[0]) || pass_commutes(in->comp[0]))
        return NULL;
    o.x = sd_arena_array(a, hlo_inst *, o.n);
    make_one_dimension(&o, count);
    while (o.x[0]->shape->dim[o.d] > 1)
        join_neighbours(&o);
    arg = sd_arena_array(a, hlo_inst *, 2 * o.n);
    for (int i = 0; i < o.n; i++) {
        o.x[i] = pass_reshape(o.p, o.x[i], kept->rank, kept->dim);
        arg[i] = hlo_make_spread(o.p, in->arg[o.n + i], o.x[i]->shape);
        arg[o.n + i] = o.x[i];
    }
    return pass_vectorize(o.p, in->comp[0], arg, kept);
}
