/* Pairs of points, a point being a few numbers side by side: their differences
 * are an array of n x n x 3.  The sums over the 3 (distances) and those over
 * one n (forces) run in different spaces, so they would meet in memory, in an
 * array of n x n.  Two rewrites let them meet in registers:
 *
 *   - a reduce of at most 8 elements whose result only reduces read becomes
 *     its combiner, in the order in which plans add such a row (plan_order);
 *   - a reduce that keeps a last dimension of 2 to 7, the columns, with an
 *     operand that is in part the same for all of them, becomes one reduce a
 *     column.  These have one space, and share a kernel.
 *
 * A third is for reduces of several operands of which one stacks a few arrays
 * (jnp.select and piecewise ask where the first of some conditions holds): it
 * becomes its combiner, applied to these arrays and to their numbers.  As a
 * loop over the stack it would choose an array for each element anew.
 *
 * Decided from the shapes alone, so the order of a sum is the same on every
 * device.  Needs: one dimension a reduce. */
#include "passes_priv.h"

enum {
    SHORT = 8,   /* elements of a row that become operations; */
    MADE_OF = 32, /* instructions that make such an element */
    COLUMNS = 7, /* eight are a vector as they lie; */
    WIDE = 16,   /* elements beside them, for vectors */
    ASKED = 100  /* instructions looked at for one reduce */
};

static bool is_short(const hlo_inst *in)
{
    return in->op == HLO_REDUCE && in->dims.n == 1 && in->narg == 2 &&
           in->arg[0]->shape->dim[in->dims.at[0]] <= SHORT &&
           pass_can_vectorize(in->comp[0]);
}

/* What passes a value on, element by element or unchanged. */
static bool passes_on(const hlo_inst *in)
{
    return hlo_is_elementwise(in) || in->op == HLO_BROADCAST ||
           in->op == HLO_RESHAPE || in->op == HLO_TRANSPOSE;
}

/* Is a result needed before another reduce can read n elements or more?  A
 * softmax goes over its rows again, and would compute them again. */
static bool is_waited_for(const hlo_inst *in, int64_t n, int *asked)
{
    hlo_for_each_user(u, in) {
        if (++*asked > ASKED ||
            (u->op == HLO_REDUCE && sd_shape_count(u->arg[0]->shape) >= n) ||
            (passes_on(u) && is_waited_for(u, n, asked)))
            return true;
    }
    return false;
}

/* Do reduces alone read `in`, element by element, of rows that one pass over
 * them is enough for?  What others read is in memory in any case. */
static bool feeds_reduces(const hlo_inst *in, int *asked)
{
    hlo_for_each_user(u, in) {
        if (++*asked > ASKED)
            return false;
        if (u->op == HLO_REDUCE && !is_short(u)
                ? is_waited_for(u, sd_shape_count(u->arg[0]->shape), asked)
                : !(passes_on(u) || is_short(u)) || !feeds_reduces(u, asked))
            return false;
    }
    return in->nuse && in != in->parent->root;
}

/* Is x better kept in memory than computed at each element's turn?  It is where
 * much makes it (random bits), or a function of which somebody else wants the
 * values, too. */
static bool is_better_kept(const hlo_inst *x, int *made_of)
{
    if (hlo_info(x)->cls > HLO_C_INDEXED || hlo_info(x)->cls == HLO_C_LEAF)
        return false;
    if (++*made_of > MADE_OF ||
        ((hlo_info(x)->props & HLO_P_HEAVY) && x->nuse > 1))
        return true;
    for (int i = 0; i < x->narg; i++)
        if (is_better_kept(x->arg[i], made_of))
            return true;
    return false;
}

static hlo_inst *combine(hlo_inst *in, hlo_inst *x, hlo_inst *y)
{
    hlo_inst *arg[2] = {x, y};

    return pass_vectorize(pass_at(in), in->comp[0], arg, in->shape);
}

/* The elements at position k of dimension d, which goes. */
static hlo_inst *take(hlo_at p, hlo_inst *x, int64_t d, int64_t k)
{
    int64_t dim[SD_MAX_RANK];
    int n = 0;

    for (int i = 0; i < x->shape->rank; i++)
        if (i != d)
            dim[n++] = x->shape->dim[i];
    return pass_reshape(p, hlo_make_cut(p, x, d, k, k + 1), n, dim);
}

static hlo_inst *as_operations(hlo_inst *in)
{
    int64_t d = in->dims.at[0];
    hlo_inst *x = in->arg[0], *y = take(pass_at(in), x, d, 0);

    for (int64_t k = 1; k < x->shape->dim[d]; k++)
        y = combine(in, y, take(pass_at(in), x, d, k));
    return combine(in, hlo_make_spread(pass_at(in), in->arg[1], in->shape), y);
}

/* Is each position along d of x an array of its own, or a number? */
static bool is_stack(const hlo_inst *x, int64_t d)
{
    return x->op == HLO_CONCATENATE && x->dims.at[0] == d &&
           x->narg == x->shape->dim[d];
}

static bool is_count(const hlo_inst *x, int64_t d)
{
    return x->op == HLO_IOTA && x->dims.at[0] == d;
}

/* A stack of several operands, and what counts its arrays. */
static bool takes_stacks(const hlo_inst *in)
{
    int n = in->narg / 2, stacks = 0;

    if (n < 2 || in->dims.n != 1 ||
        in->arg[0]->shape->dim[in->dims.at[0]] > SHORT ||
        !pass_can_vectorize(in->comp[0]))
        return false;
    for (int i = 0; i < n; i++) {
        bool stack = is_stack(in->arg[i], in->dims.at[0]);

        if (!stack && !is_count(in->arg[i], in->dims.at[0]))
            return false;
        stacks += stack;
    }
    return stacks > 0;
}

/* What `in` has of each operand at position k. */
static void take_all(hlo_inst *in, int64_t k, hlo_inst **y)
{
    hlo_at p = pass_at(in);
    int64_t d = in->dims.at[0];

    for (int i = 0; i < in->narg / 2; i++) {
        hlo_inst *x = in->arg[i];
        const sd_shape *s = in->shape->elem[i];

        y[i] = is_stack(x, d) ? pass_reshape(p, x->arg[k], s->rank, s->dim)
                              : hlo_make_fill_s64(p, s, s->dtype, k);
    }
}

static hlo_inst *stacks_as_operations(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    int n = in->narg / 2;
    hlo_inst **x = sd_arena_array(p.c->module->arena, hlo_inst *, in->narg);
    hlo_inst *all;

    take_all(in, 0, x);
    for (int64_t k = 1; k < in->arg[0]->shape->dim[in->dims.at[0]]; k++) {
        take_all(in, k, x + n);
        all = pass_vectorize(p, in->comp[0], x, in->shape->elem[0]);
        memcpy(x, all->arg, (size_t)n * sizeof(*x));
    }
    memcpy(x + n, x, (size_t)n * sizeof(*x));
    for (int i = 0; i < n; i++)
        x[i] = hlo_make_spread(p, in->arg[n + i], in->shape->elem[i]);
    return pass_vectorize(p, in->comp[0], x, in->shape->elem[0]);
}

/* What an operand with columns is made of. */
typedef struct {
    int64_t extent; /* the extent of its last dimension */
    bool same; /* in part of what all columns read, an array that has all
                  other dimensions */
    bool whole; /* in part of an array with all dimensions */
    int asked;
} columns;

static void look_at(const hlo_inst *x, columns *m)
{
    const sd_shape *s = x->shape;

    if (++m->asked > ASKED || !s->rank || s->dim[s->rank - 1] != m->extent)
        return;
    if (x->op == HLO_BROADCAST)
        m->same |=
            !hlo_dims_hold(x->dims, s->rank - 1) &&
            sd_shape_count(x->arg[0]->shape) * m->extent == sd_shape_count(s);
    else if (!hlo_is_elementwise(x) && x->op != HLO_RESHAPE)
        m->whole = true;
    else
        for (int i = 0; i < x->narg; i++)
            look_at(x->arg[i], m);
}

/* Columns of an array are read by shuffles or one by one.  That is dearer than
 * a vector that holds a row but for rows of 3, which fit vectors badly. */
static bool has_columns(const hlo_inst *in)
{
    const sd_shape *s = in->arg[0]->shape;
    columns m = {.extent = s->rank ? s->dim[s->rank - 1] : 0};

    if (in->dims.n != 1 || in->narg != 2 || in->dims.at[0] == s->rank - 1 ||
        m.extent < 2 || m.extent > COLUMNS || s->dim[s->rank - 2] < WIDE)
        return false;
    look_at(in->arg[0], &m);
    return m.same && (!m.whole || m.extent == 3);
}

static hlo_inst *column_by_column(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    const sd_shape *s = in->shape;
    int last = s->rank - 1;
    const sd_shape *one = sd_shape_with_dim(p.c->module->arena, s, last, 1);
    hlo_inst *y[COLUMNS];

    for (int64_t k = 0; k < s->dim[last]; k++)
        y[k] = pass_reshape(p,
                            hlo_make_reduce(p, take(p, in->arg[0], last + 1, k),
                                            in->arg[1], in->dims.at, 1,
                                            in->comp[0]),
                            s->rank, one->dim);
    return hlo_make_concatenate(p, (int)s->dim[last], y, last);
}

hlo_inst *hlo_split_columns(hlo_inst *in)
{
    int asked = 0, made_of = 0;

    if (sd_shape_count(in->arg[0]->shape) == 0)
        return NULL;
    if (is_short(in))
        return feeds_reduces(in, &asked) &&
                       !is_better_kept(in->arg[0], &made_of)
                   ? as_operations(in)
                   : NULL;
    if (takes_stacks(in))
        return stacks_as_operations(in);
    return has_columns(in) ? column_by_column(in) : NULL;
}
