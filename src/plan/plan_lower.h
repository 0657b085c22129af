/* Lowering: a fusion becomes the axes and nodes of a kernel.  What plan_lower*.c
 * share with what makes nodes (plan_node.c), strands (plan_strands.c) and stages
 * (plan_stage.c). */
#ifndef PLAN_LOWER_H
#define PLAN_LOWER_H

#include "plan_room.h"

typedef struct {
    plan_guard *g;
    int n;
} plan_guards;
bool plan_guards_same(plan_guards x, plan_guards y);
/* Those of x, then n of g. */
plan_guards plan_guards_join(sd_arena *a, plan_guards x, const plan_guard *g,
                             int n);

/* Strands of a kernel, and of an axis: powers of two, or all 3 positions. */
enum { PLAN_MOST_STRANDS = 8 };
/* May strands take turns of n positions? */
static inline bool plan_is_turn(int64_t n)
{
    return n > 1 && n <= PLAN_MOST_STRANDS && (n & (n - 1)) == 0;
}

/* Loops over outer axes that take several positions at a time, each with code
 * of its own (plan_strands.c): axis i = n[i] * loop + digit i of the strand's
 * number, the last axis fastest. */
typedef struct {
    int all; /* product of n; 1: nothing is in strands */
    int n[SD_MAX_RANK];
    int64_t extent[SD_MAX_RANK]; /* of the whole */
} plan_strands;

typedef struct plan_lowering {
    plan_viewer viewer; /* first: it is found again from there */
    sd_arena *a;
    plan_px *px;
    hlo_inst *fusion;
    plan_kernel *k;
    plan_space space;
    sd_vec(plan_node *) node;
    sd_vec(plan_axis) axis;
    sd_map *memo, *unique;
    plan_guards guards;   /* of the value that is being made */
    const plan_expr *row; /* the shared inner axis */
    uint64_t outer;       /* mask of the outer axes */
    plan_strands strands;
    sd_status st; /* the first error */
} plan_lowering;

/* ---- strands ---- */

/* Of a kernel that chooses by the remainder of an outer position, as where
 * lists are interleaved: strands in which nothing is left to choose. */
bool plan_find_strands(const plan_kernel *k, plan_strands *out);
/* Of a fusion that computes whole rows (plan_rows.c) each position of its last
 * axis is a strand. */
bool plan_row_strands(const hlo_comp *c, plan_strands *out);
/* So are the numbers of a fusion that makes small sums (plan_small.c). */
bool plan_small_strands(const hlo_comp *c, plan_strands *out);
/* How many numbers a row of a fusion that computes whole rows has; 1: c is no
 * such fusion. */
int64_t plan_whole_rows(const hlo_comp *c);
/* An index under the whole axes, for strand number `which`; and guards that its
 * position exists. */
plan_guards plan_strand(plan_lowering *lw, int which, int rank,
                        const plan_expr *const *index, const plan_expr **out);

/* ---- values ---- */

/* Element `index` of result `out` of in, used only where guards hold. */
plan_node *plan_value(plan_lowering *lw, const hlo_inst *in, int out,
                      const plan_expr *const *index, plan_guards guards);
/* The same of an instruction that has loops of its own: reductions, products,
 * windows. */
plan_node *plan_lower_reducing(plan_lowering *lw, const hlo_inst *in, int out,
                               const plan_expr *const *index,
                               plan_guards guards);

/* ---- nodes (plan_node.c); one that was made before is not made again ---- */

plan_node *plan_node_new(plan_lowering *lw, plan_node n);
plan_node *plan_node_const(plan_lowering *lw, sd_dtype t, int64_t v);
/* A constant whose bytes lie at data. */
plan_node *plan_node_data(plan_lowering *lw, sd_dtype t, const void *data);
plan_node *plan_node_index(plan_lowering *lw, sd_dtype t, const plan_expr *e);
/* Elementwise op on arg; in: where its attributes are, or NULL. */
plan_node *plan_node_elt(plan_lowering *lw, int op, sd_dtype t,
                         const hlo_inst *in, int narg, plan_node *const *arg);
plan_node *plan_node_convert(plan_lowering *lw, sd_dtype t, plan_node *x);
/* x, computed under `outside`, where the guards of g hold too, else fill. */
plan_node *plan_node_filled(plan_lowering *lw, plan_node *x,
                            const plan_guard *g, int n, plan_guards outside,
                            plan_node *fill);
/* pred: all guards of g hold; NULL when that is known. */
plan_node *plan_node_holds(plan_lowering *lw, const plan_guard *g, int n);
/* Attributes of an elementwise op that its operands do not tell. */
uint64_t plan_node_attributes(const plan_node *n);
/* An instruction in no computation, for the attributes of an ELT. */
hlo_inst *plan_compare_inst(sd_arena *a, hlo_cmp_dir dir, sd_dtype t);
/* One more axis of the kernel, as an expression. */
const plan_expr *plan_axis_add(plan_lowering *lw, int64_t extent,
                               plan_role role, bool outer);
/* Keeps the first error and gives a node of type t to go on with. */
plan_node *plan_lower_fail(plan_lowering *lw, sd_status st, sd_dtype t);

/* ---- functions of reducers, comparators, combiners ---- */

/* The function of c; NULL with *st set when it has ops that are not
 * elementwise. */
plan_body *plan_body_of(sd_arena *a, const hlo_comp *c, sd_status *st);
/* Its nodes as nodes of the kernel, parameters given. */
plan_node *plan_body_inline(plan_lowering *lw, const plan_body *b, int root,
                            plan_node *const *param);

/* Dead nodes out, stages in, axes and figures filled (plan_stage.c). */
void plan_finish_kernel(plan_lowering *lw);

/* ---- whole kernels of one instruction (plan_lower_whole.c) ---- */

sd_status plan_lower_call(plan_lowering *lw, const hlo_inst *in);
sd_status plan_lower_sort(plan_lowering *lw, const hlo_inst *in);
sd_status plan_lower_scatter(plan_lowering *lw, const hlo_inst *in);
sd_status plan_lower_update(plan_lowering *lw, const hlo_inst *in);
sd_status plan_lower_scan(plan_lowering *lw, const hlo_inst *in);
sd_status plan_lower_attend(plan_lowering *lw, const hlo_inst *in); /* plan_attend.c */
sd_status plan_lower_placing(plan_lowering *lw, const hlo_inst *in); /* plan_places.c */

/* A kernel of a part of fusion's scatter, whose lists are slots after the
 * fusion's; type: that of the list's elements. */
typedef sd_status (*plan_scatter_part)(plan_lowering *lw, const hlo_inst *in,
                                       sd_dtype type);
sd_status plan_lower_part(sd_arena *a, hlo_inst *fusion, plan_scatter_part part,
                          sd_dtype type, plan_kernel **out);
/* Parts.  Where updates go, by batch: the place of a window's first element
 * within its batch, in units of plan_place_unit, or all ones where the window is
 * not inside. */
sd_status plan_lower_places(plan_lowering *lw, const hlo_inst *in,
                            sd_dtype type);
/* The place itself, and the updates, of one element each. */
sd_status plan_lower_updates(plan_lowering *lw, const hlo_inst *in,
                             sd_dtype type);
/* The scatter of such lists. */
sd_status plan_lower_listed(plan_lowering *lw, const hlo_inst *in,
                            sd_dtype type);
/* Windows of a scatter begin a whole number of these apart. */
int64_t plan_place_unit(const hlo_inst *in);

#endif
