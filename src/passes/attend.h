/* What hlo_opt_attend.c (finds the pattern and makes the call), attend_view.c
 * (what dimensions are) and attend_score.c (the function of a score) share.  See
 * hlo_opt_attend.c for the idea. */
#ifndef ATTEND_H
#define ATTEND_H

#include <string.h>

#include "passes_priv.h"

enum {
    ATTEND_AXES = HLO_ATTEND_BATCH + 2,
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
    hlo_inst *dot, *score, *exp; /* the first product; softmax's operand and its
                                    exponentials */
    attend_view p_view, score_view, exp_view, dot_view;
    int64_t extent[ATTEND_AXES];
    int naxis, key, row; /* axes */
    int q; /* which operand of the first product has rows */
    hlo_inst *seen[ATTEND_SEEN];
    int nseen;
    hlo_comp *comp; /* the function of a score */
    attend_made made[ATTEND_MADE]; /* of it: what each instruction became */
    int nmade;
    attend_leaf leaf[HLO_ATTEND_MORE]; /* arrays that it reads */
    int nleaf;
} attend_pattern;

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

/* ---- attend_call.c ---- */

/* The dimension that v alone has; -1: there is none, or several. */
int attend_own_dim(const attend_pattern *p);
/* Puts the call in place of the second product, whose operand k are weights. */
void attend_call(attend_pattern *p, int k);

#endif
