/* Attention as one instruction: a product, a function of each of its elements,
 * softmax over a row of them, and a product with that, which becomes the call
 * "sundog.attend" (src/hlo/hlo.h), one kernel without an array of all scores.
 *
 * It is found from the second product back to the first, whatever stands
 * between: reshapes, transposes and broadcasts only move what a dimension is.
 * Each dimension of the probabilities is an *axis*, and a *view* says which
 * axes a value's dimensions are.  Scores are then a scalar function: of the
 * product, of row and key where the graph has iotas, of elements of other
 * arrays.
 *
 * Where a large value is used elsewhere, all stays, but for gradients
 * (attend_gradient.c).  Needs: dots as the program wrote them; comes before
 * `slices`. */
#include <math.h>

#include "attend.h"

enum {
    LEAST_ROWS = 64,   /* fewer fill no instruction of the engine */
    LEAST_KEYS = 64,
    MOST_ALONE = 4096, /* keys, */
    ROWS = 128,        /* and rows of a group; */
    FEW = 8            /* so many times fewer groups than units are few */
};

/* ---- the pattern ---- */

static bool is_float_convert(const hlo_inst *in)
{
    return in->op == HLO_CONVERT && sd_is_float(pass_dtype(in)) &&
           sd_is_float(pass_dtype(in->arg[0]));
}

hlo_inst *attend_strip(attend_pattern *p, hlo_inst *x, attend_view *v)
{
    attend_view o;

    for (;; x = x->arg[0]) {
        if (is_float_convert(x))
            o = *v;
        else if (!attend_moved_view(p, x, v, &o))
            return x;
        if (!attend_see(p, x))
            return x;
        *v = o;
    }
}

/* What x, of view v, sums or finds the largest of over keys, by `op`; NULL: it
 * is no such thing. */
static hlo_inst *reduced(attend_pattern *p, hlo_inst *x, attend_view v,
                         hlo_op op, attend_view *out)
{
    hlo_op is;
    attend_view o = {0};
    int at = 0;

    x = attend_strip(p, x, &v);
    if (x->op != HLO_REDUCE || x->narg != 2 || x->dims.n != 1 ||
        !hlo_comp_is_binary(x->comp[0], &is) || is != op ||
        attend_view_has(&v, x->shape->rank, p->key) || !attend_see(p, x))
        return NULL;
    for (int i = 0; i < x->arg[0]->shape->rank; i++)
        if (i == x->dims.at[0])
            attend_add_axis(&o, i, p->key);
        else
            attend_take_axes(&o, i, &v, at++);
    *out = o;
    x = x->arg[0];
    return attend_strip(p, x, out);
}

static bool begins_with(const hlo_inst *reduce, double want)
{
    double v;

    return hlo_is_scalar_const(reduce->arg[1], &v) && v == want;
}

/* Do all reductions that were seen begin with nothing? */
static bool begin_with_nothing(const attend_pattern *p)
{
    hlo_op op;

    for (int i = 0; i < p->nseen; i++)
        if (p->seen[i]->op == HLO_REDUCE &&
            hlo_comp_is_binary(p->seen[i]->comp[0], &op) &&
            !begins_with(p->seen[i], op == HLO_ADD ? 0 : -INFINITY))
            return false;
    return true;
}

/* exp(s - max(s)) / sum(exp(s - max(s))) of rows. */
static bool find_softmax(attend_pattern *p)
{
    attend_view v = p->p_view, w;
    hlo_inst *x = attend_strip(p, p->p, &v), *s;

    if (x->op != HLO_DIVIDE || !attend_see(p, x))
        return false;
    p->exp_view = v;
    p->exp = attend_strip(p, x->arg[0], &p->exp_view);
    p->total_view = v;
    p->total = attend_strip(p, x->arg[1], &p->total_view);
    if (p->exp->op != HLO_EXP || !attend_see(p, p->exp) ||
        reduced(p, x->arg[1], v, HLO_ADD, &w) != p->exp ||
        !attend_same_view(&w, &p->exp_view))
        return false;
    v = p->exp_view;
    x = attend_strip(p, p->exp->arg[0], &v);
    if (x->op != HLO_SUBTRACT || !attend_see(p, x))
        return false;
    p->score = x->arg[0];
    p->score_view = v;
    s = attend_strip(p, p->score, &v);
    return reduced(p, x->arg[1], p->score_view, HLO_MAXIMUM, &w) == s &&
           attend_same_view(&v, &w) && begin_with_nothing(p);
}

/* The first product among what x is made of. */
static bool find_dot(attend_pattern *p, hlo_inst *x, attend_view v)
{
    attend_view o;

    if (!attend_see(p, x))
        return false;
    if (x->op == HLO_DOT && attend_view_has(&v, x->shape->rank, p->key)) {
        p->dot = x;
        p->dot_view = v;
        return true;
    }
    if (attend_moved_view(p, x, &v, &o))
        return find_dot(p, x->arg[0], o);
    if (!hlo_is_elementwise(x))
        return false;
    for (int i = 0; i < x->narg; i++)
        if (x->arg[i]->shape->rank && find_dot(p, x->arg[i], v))
            return true;
    return false;
}

/* ---- who has which axis ---- */

static bool has_axis(const attend_pattern *p, int k, int axis)
{
    attend_view v = attend_operand_view(p->dot, k, &p->dot_view, ATTEND_AXES);

    return attend_view_has(&v, p->dot->arg[k]->shape->rank, axis);
}

/* Keys are one operand's; rows are the largest axis that it has not. */
static bool find_rows(attend_pattern *p)
{
    const hlo_dot *d = p->dot->u.dot;
    attend_view v;

    if (d->lhs_contract.n != 1)
        return false;
    v = attend_operand_view(p->dot, 0, &p->dot_view, ATTEND_AXES);
    p->q = attend_view_has(&v, p->dot->arg[0]->shape->rank, p->key);
    if (has_axis(p, p->q, p->key))
        return false;
    p->row = -1;
    for (int i = 0; i < p->naxis; i++)
        if (i != p->key && !has_axis(p, 1 - p->q, i) &&
            (p->row < 0 || p->extent[i] > p->extent[p->row]))
            p->row = i;
    return p->row >= 0;
}

/* Axes are the dimensions of the probabilities. */
static bool open_pattern(attend_pattern *p, hlo_inst *dot, int k)
{
    const hlo_dot *d = dot->u.dot;
    const sd_shape *s = dot->arg[k]->shape;

    *p = (attend_pattern){.last = dot,
                          .p = dot->arg[k],
                          .value = dot->arg[1 - k],
                          .weights = k,
                          .key = -1};
    if (attend_contract(d, k)->n != 1)
        return false;
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] == 1)
            continue;
        if (p->naxis == ATTEND_AXES)
            return false;
        if (i == attend_contract(d, k)->at[0])
            p->key = p->naxis;
        p->extent[p->naxis] = s->dim[i];
        attend_add_axis(&p->p_view, i, p->naxis++);
    }
    return p->key >= 0;
}

static bool was_seen(const attend_pattern *p, const hlo_inst *x)
{
    for (int i = 0; i < p->nseen; i++)
        if (p->seen[i] == x)
            return true;
    return false;
}

/* Large, and made by the program. */
static bool is_made(const attend_pattern *p, const hlo_inst *x)
{
    return sd_shape_is_array(x->shape) && attend_is_whole(p, x) &&
           x->op != HLO_PARAMETER && x->op != HLO_GET_TUPLE_ELEMENT &&
           x->op != HLO_BROADCAST && x->op != HLO_IOTA && x->op != HLO_CONSTANT;
}

/* Everything that was seen between the products has its users among that, and
 * the products of g, which may be NULL. */
static bool is_closed(const attend_pattern *p, const attend_gradient *g)
{
    for (int i = 0; i < p->nseen; i++) {
        const hlo_inst *x = p->seen[i];

        if (!is_made(p, x))
            continue;
        if (x == x->parent->root)
            return false;
        for (int j = 0; j < x->nuse; j++) {
            const hlo_inst *u = x->user[j];

            if (u != p->last && !was_seen(p, u) &&
                (!g || (u != g->dq.dot && u != g->dk.dot && u != g->dv.dot)))
                return false;
        }
    }
    return true;
}

/* ---- what the kernel takes ---- */

static bool fits_depth(int64_t n)
{
    return n >= HLO_ATTEND_LEAST && n <= HLO_ATTEND_MOST &&
           n % HLO_ATTEND_PART == 0;
}

static bool fits_types(const attend_pattern *p)
{
    sd_dtype t = pass_dtype(p->value);

    return (t == SD_BF16 || t == SD_F16) && pass_dtype(p->p) == t &&
           pass_dtype(p->dot->arg[0]) == t && pass_dtype(p->dot->arg[1]) == t &&
           sd_is_float(pass_dtype(p->dot)) &&
           (pass_dtype(p->last) == t || pass_dtype(p->last) == SD_F32);
}

/* Indices are of 32 bits. */
static bool fits_index(const hlo_inst *x)
{
    return sd_shape_count(x->shape) < INT32_MAX;
}

/* A group goes through all keys by itself: a few groups with many keys leave
 * most of the device idle. */
static bool fills_device(const attend_pattern *p, const device_desc *dev)
{
    double rows = (double)p->extent[p->row];

    for (int i = 0; i < p->naxis; i++)
        rows *= i == p->row || i == p->key ? 1 : (double)p->extent[i];
    return p->extent[p->key] <= MOST_ALONE ||
           rows * FEW >= (double)dev->units * ROWS;
}

/* Has each row a v of its own?  Kernels have one of all rows. */
static bool has_rows(const attend_pattern *p)
{
    attend_view v = attend_value_view(p);

    return attend_view_has(&v, p->value->shape->rank, p->row);
}

/* As hlo_attend_is_matrices has it, in whatever order the axes come. */
static bool fits_matrices(const attend_pattern *p)
{
    int64_t d = p->extent[ATTEND_D], e = p->extent[ATTEND_E], batch = 1;

    for (int i = 0; i < p->naxis; i++)
        batch *= i == p->row || i == p->key ? 1 : p->extent[i];
    return hlo_attend_fits_blocks(d, e) &&
           hlo_attend_fits_matrix(
               batch * SD_MAX(p->extent[p->row], p->extent[p->key]),
               batch * SD_MAX(d, e));
}

/* Turned, v has whole blocks of keys (attend_call.c). */
static bool fits_turned(const attend_pattern *p)
{
    enum { BLOCK = HLO_ATTEND_KEYS_GATHERED };
    int64_t keys = p->extent[p->key], blocks = (keys + BLOCK - 1) / BLOCK;

    return p->extent[ATTEND_E] <= HLO_ATTEND_MOST_READ &&
           sd_shape_count(p->value->shape) / keys * blocks * BLOCK < INT32_MAX;
}

static bool fits(attend_pattern *p, const device_desc *dev)
{
    const hlo_dot *d = p->dot->u.dot;
    int64_t depth = p->dot->arg[0]->shape->dim[d->lhs_contract.at[0]];
    int own = attend_own_dim(p);

    if (own < 0 || has_rows(p))
        return false;
    p->turned = pass_gathers_attention(dev);
    p->extent[ATTEND_D] = depth;
    p->extent[ATTEND_E] = p->value->shape->dim[own];
    return fits_types(p) && p->extent[p->row] >= LEAST_ROWS &&
           p->extent[p->key] >= LEAST_KEYS && fits_depth(depth) &&
           fits_depth(p->extent[ATTEND_E]) && fits_index(p->dot->arg[0]) &&
           fits_index(p->dot->arg[1]) && fits_index(p->value) &&
           fits_index(p->last) && fills_device(p, dev) &&
           (dev->features & DEVICE_HAS_WGMMA ||
            (p->turned ? fits_turned(p) : fits_matrices(p)));
}

static bool find(attend_pattern *p, hlo_inst *dot, int k,
                 const device_desc *dev)
{
    return open_pattern(p, dot, k) && find_softmax(p) &&
           find_dot(p, p->score, p->score_view) && p->dot != dot &&
           find_rows(p) && fits(p, dev) && attend_make_score(p);
}

/* Puts calls in place of the pattern, or of it and its gradient. */
static bool put(attend_pattern *p, const device_desc *dev)
{
    attend_gradient g = {.p = p, .dev = dev, .score = p->comp};

    if (is_closed(p, NULL)) {
        attend_call(p);
        return true;
    }
    if (!p->turned && attend_find_gradient(&g)) {
        if (is_closed(p, &g)) {
            attend_call_gradient(&g);
            return true;
        }
        hlo_comp_remove(g.comp);
    }
    hlo_comp_remove(g.score);
    return false;
}

static bool attend(hlo_inst *dot, const device_desc *dev)
{
    sd_arena *a = sd_arena_create();
    attend_pattern *p = sd_arena_new(a, attend_pattern);
    bool done = false;

    for (int k = 0; k < 2 && !done; k++)
        done = find(p, dot, k, dev) && put(p, dev);
    sd_arena_destroy(a);
    return done;
}

bool hlo_opt_attend(hlo_module *m, const device_desc *dev)
{
    bool changed = false;

    if ((!(dev->features & DEVICE_HAS_WGMMA) && !pass_attends_matrices(dev) &&
         !pass_gathers_attention(dev)) ||
        !m->made[HLO_DOT])
        return false;
    hlo_for_each_comp(c, m) {
        bool more = true;

        while (more) {
            more = false;
            hlo_for_each_inst_backward(in, c)
                if (in->op == HLO_DOT && attend(in, dev)) {
                    more = changed = true;
                    hlo_comp_sweep(c);
                    break;
                }
        }
    }
    return changed;
}
