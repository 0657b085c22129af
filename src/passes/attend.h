/* What hlo_opt_attend.c (finds the pattern), attend_view.c (what dimensions are),
 * attend_score.c (functions of a score), attend_gradient.c (finds a gradient
 * behind the pattern) and attend_call.c (makes the calls) share.  See
 * hlo_opt_attend.c for the idea. */
#ifndef ATTEND_H
#define ATTEND_H

#include <string.h>

#include "passes_priv.h"

enum {
    ATTEND_AXES = HLO_ATTEND_BATCH + 2,
    ATTEND_D = ATTEND_AXES, /* axes that no score has */
    ATTEND_E,
    ATTEND_ALL,
    ATTEND_MADE = 96, /* instructions of a function of scores */
    ATTEND_SEEN = 256 /* of a pattern */
};

/* The axes of a value's dimensions, of each the outermost first; one of a
 * single position has none. */
typedef struct {
    int8_t n[SD_MAX_RANK];
    int8_t axis[SD_MAX_RANK][ATTEND_AXES];
} attend_view;

typedef struct { hlo_inst *in, *made; attend_view v; } attend_made;
typedef struct { hlo_inst *in; attend_view v; } attend_leaf;

typedef struct {
    hlo_inst *last, *p, *value; /* the second product; of its operands */
    int weights; /* which of these p is */
    hlo_inst *dot, *score, *exp; /* the first product; softmax's operand and its
                                    exponentials */
    hlo_inst *total; /* softmax's sum of these */
    attend_view p_view, score_view, exp_view, total_view, dot_view;
    int64_t extent[ATTEND_ALL];
    int naxis, key, row; /* axes */
    int q; /* which operand of the first product has rows */
    bool turned; /* kernels want v with keys last */
    hlo_inst *seen[ATTEND_SEEN];
    int nseen;
    hlo_comp *comp; /* the function of a score; then of its gradient */
    bool is_slope;
    attend_made made[ATTEND_MADE]; /* of it: what each instruction became */
    int nmade;
    attend_leaf leaf[HLO_ATTEND_MORE]; /* arrays that it reads */
    int nleaf;
} attend_pattern;

/* A product in the place of which a call's result comes. */
typedef struct {
    hlo_inst *dot;
    attend_view v;
} attend_product;

/* What comes behind the pattern where its gradient is asked for: see
 * attend_gradient.c. */
typedef struct {
    attend_pattern *p;
    const device_desc *dev;
    hlo_inst *o, *slope; /* the result's cotangent, times v */
    attend_view o_view, slope_view;
    hlo_inst *ds, *dx; /* the gradient of a score, of the first product */
    attend_view ds_view, dx_view;
    attend_product dq, dk, dv;
    unsigned shared; /* axes of the batch that q has and k and v have not: heads
                        of k that several of q share, over which dk and dv sum */
    hlo_comp *score, *comp; /* functions of a score: it, and its gradient */
} attend_gradient;

static inline bool attend_same_view(const attend_view *x, const attend_view *y)
{
    return memcmp(x, y, sizeof *x) == 0;
}
static inline void attend_add_axis(attend_view *v, int dim, int axis)
{
    v->axis[dim][v->n[dim]++] = (int8_t)axis;
}
/* The axes of dimension `from` of x are those of dimension `to` of v. */
static inline void attend_take_axes(attend_view *v, int to,
                                    const attend_view *x, int64_t from)
{
    v->n[to] = x->n[from];
    memcpy(v->axis[to], x->axis[from], sizeof v->axis[to]);
}

/* Notes that in belongs to the pattern; false: there is too much of it. */
static inline bool attend_see(attend_pattern *p, hlo_inst *in)
{
    if (p->nseen == ATTEND_SEEN)
        return false;
    p->seen[p->nseen++] = in;
    return true;
}

/* ---- attend_view.c ---- */

bool attend_view_has(const attend_view *v, int rank, int axis);
/* Of the operand of `in`, which only moves or repeats elements; false: `in` is
 * something else, or an axis would be cut. */
bool attend_moved_view(const attend_pattern *p, const hlo_inst *in,
                       const attend_view *v, attend_view *out);
/* The other way: of `user`, which moves in or converts it. */
bool attend_user_view(const attend_pattern *p, const hlo_inst *in,
                      const attend_view *v, const hlo_inst *user,
                      attend_view *out);
/* Of operand k of a product, from that of the result; what it sums over is the
 * axis `own`. */
attend_view attend_operand_view(const hlo_inst *dot, int k,
                                const attend_view *result, int own);
/* The dimension of the result that dimension i of operand k is; -1: none. */
int attend_result_dim(const hlo_inst *dot, int k, int64_t i);
static inline const hlo_dims *attend_batch(const hlo_dot *d, int k)
{
    return k ? &d->rhs_batch : &d->lhs_batch;
}
static inline const hlo_dims *attend_contract(const hlo_dot *d, int k)
{
    return k ? &d->rhs_contract : &d->lhs_contract;
}

/* ---- attend_score.c ---- */

/* Has x as many elements as there are scores? */
bool attend_is_whole(const attend_pattern *p, const hlo_inst *x);
/* Makes p->comp, of p->score; false: it cannot be said element by element. */
bool attend_make_score(attend_pattern *p);
/* The same of g->comp, of g->dx, from what g->ds is and what the score reads. */
bool attend_make_slope(attend_gradient *g);

/* ---- hlo_opt_attend.c ---- */

/* Through conversions between floats and what moves elements, which are noted
 * as seen. */
hlo_inst *attend_strip(attend_pattern *p, hlo_inst *x, attend_view *v);

/* ---- attend_gradient.c ---- */

/* Is all that is asked of the pattern beside its result its gradient, of q, k
 * and v? */
bool attend_find_gradient(attend_gradient *g);

/* ---- attend_call.c ---- */

/* The dimension that v alone has; -1: there is none, or several. */
int attend_own_dim(const attend_pattern *p);
attend_view attend_value_view(const attend_pattern *p);
/* Puts the call in place of the second product; and calls in place of all
 * products of a gradient. */
void attend_call(attend_pattern *p);
void attend_call_gradient(attend_gradient *g);

#endif
