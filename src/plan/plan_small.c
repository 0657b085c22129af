/* Small sums side by side.  A product of matrices of two or three rows, of
 * which there are thousands, has no axis that fills a vector.  Where what a
 * kernel makes for one position of its first axes are few numbers, and each is
 * a sum of few terms, every number is a strand (plan_strands.c), every term a
 * node, and LANE is the axis before: there is no loop left inside.
 *
 * So are a few powers of one number (columns of a Vandermonde matrix, features
 * of a polynomial): all take the one logarithm of it, and no lane is idle. */
#include "plan_lower.h"

enum {
    MOST_PLACES = 25, /* numbers for one position, */
    MOST_TERMS = 7,   /* terms of each, */
    MOST_WORK = 256,  /* and operations for all of them; */
    MOST_POWERS = 8,  /* each is some hundred instructions */
    MOST_LANES = 7,   /* of the last axis: more fill a vector, */
    LEAST_BESIDE = 64 /* and of the axes before */
};

/* What lies side by side is summed as it is read, without strands. */
static bool is_read_along(const hlo_inst *in)
{
    return in->dims.at[0] == in->arg[0]->shape->rank - 1 &&
           !hlo_is_elementwise(in->arg[0]);
}

static bool is_small_sum(const hlo_inst *in, const hlo_inst *root)
{
    hlo_op op;
    sd_dtype t = in->shape->dtype;
    const sd_shape *s = in->arg[0]->shape;

    return in->narg == 2 && in->dims.n == 1 && !sd_is_complex(t) &&
           sd_dtype_bytes(t) >= 4 &&
           sd_shape_same_dims(in->shape, root->shape) &&
           s->dim[in->dims.at[0]] <= MOST_TERMS && !is_read_along(in) &&
           hlo_comp_is_binary(in->comp[0], &op) &&
           (op == HLO_ADD || op == HLO_MULTIPLY || op == HLO_MAXIMUM ||
            op == HLO_MINIMUM);
}

static bool is_power_of_one(const hlo_inst *in, const hlo_inst *root)
{
    const hlo_inst *x = in->arg[0];

    if (sd_is_complex(in->shape->dtype) || x->op != HLO_BROADCAST ||
        !sd_shape_same_dims(in->shape, root->shape))
        return false;
    return !x->dims.n || x->dims.at[x->dims.n - 1] < x->shape->rank - 1;
}

static bool is_simple(const hlo_inst *in, const hlo_inst *root)
{
    switch (in->op) {
    case HLO_REDUCE:
        return is_small_sum(in, root);
    case HLO_POWER:
        return is_power_of_one(in, root);
    case HLO_IOTA:
    case HLO_PARAMETER:
    case HLO_CONSTANT:
    case HLO_BROADCAST:
    case HLO_SLICE:
    case HLO_TRANSPOSE:
    case HLO_RESHAPE:
    case HLO_BITCAST:
        return true;
    default:
        return hlo_is_elementwise(in) && !(hlo_info(in)->props & HLO_P_HEAVY);
    }
}

/* The last axes of s that are few places together; *n: how many places. */
static int first_of_places(const sd_shape *s, int64_t *n)
{
    int d = s->rank;

    for (*n = 1; d > 0 && *n * s->dim[d - 1] <= MOST_PLACES; d--)
        *n *= s->dim[d - 1];
    return d;
}

/* Is all that c does simple, not too much for its n numbers, and what strands
 * are for? */
static bool is_for_strands(const hlo_comp *c, int64_t n)
{
    const sd_shape *s = c->root->shape;
    double work = 0, beside = (double)sd_shape_count(s) / (double)n;
    bool sums = false, powers = false;

    hlo_for_each_inst(in, c) {
        if (!is_simple(in, c->root))
            return false;
        sums |= in->op == HLO_REDUCE;
        powers |= in->op == HLO_POWER;
        if (hlo_is_elementwise(in))
            work += (double)sd_shape_count(in->shape) / beside;
    }
    if (powers)
        return n <= MOST_POWERS;
    return sums && work <= MOST_WORK && s->dim[s->rank - 1] <= MOST_LANES;
}

bool plan_small_strands(const hlo_comp *c, plan_strands *out)
{
    const sd_shape *s = c->root->shape;
    int64_t n;
    int first, axis = 0;

    *out = (plan_strands){.all = 1};
    if (!sd_shape_is_array(s))
        return false;
    first = first_of_places(s, &n);
    if (n < 2 || sd_shape_count(s) / n < LEAST_BESIDE || !is_for_strands(c, n))
        return false;
    for (int d = 0; d < s->rank; d++)
        if (s->dim[d] != 1) {
            out->extent[axis] = s->dim[d];
            out->n[axis++] = d < first ? 1 : (int)s->dim[d];
        }
    out->all = (int)n;
    return true;
}
