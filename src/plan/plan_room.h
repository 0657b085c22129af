/* What all files of this room may share: index expressions, views of operands,
 * the space of a fusion, and small things.  Nobody else includes it.  What groups
 * of files share beside it:
 *
 *   plan_cluster.h   which instructions become one fusion (plan_fuse*.c)
 *   plan_library.h   which are a library's calls (plan_library*.c)
 *   plan_operands.h  copies of operands that pay (plan_operands*.c)
 *   plan_lower.h     a fusion's axes and nodes (plan_lower*.c, plan_node.c)
 *   plan_mapping.h   places, tiles, passes and areas (plan_tile*.c)
 *   plan_blocks.h    a product in blocks (plan_blocks*.c)
 *   plan_whole.h     kernels that are one sort, scatter, call or attention
 *   plan_parts.h     sorts in parts
 *   plan_mem.h       order, storage and steps (plan_schedule.c, plan_buffers.c)
 */
#ifndef PLAN_ROOM_H
#define PLAN_ROOM_H

#include "plan.h"

/* Of one kernel; more are refused.  plan_fuse stays below it (plan_worth.c), so
 * that only one operation of hundreds of operands can come to it. */
enum { PLAN_MOST_NODES = 4000 };
/* Features of a group of a product that is worth a call or an axis: fewer fill no
 * vector. */
enum { PLAN_LEAST_GROUP = 8 };

/* The least multiple of `to` that is n or more. */
int64_t plan_round_up(int64_t n, int64_t to);
/* So many bytes as whole lines of a cache, at which buffers and areas begin. */
size_t plan_whole_lines(size_t bytes);

/* ---- expressions (plan_expr.c, plan_expr_index.c) ---- */

typedef struct plan_px plan_px; /* the table of one kernel or one analysis */
plan_px *plan_px_create(sd_arena *a);
const plan_expr *plan_px_const(plan_px *p, int64_t c);
const plan_expr *plan_px_axis(plan_px *p, int axis, int64_t extent);
/* The value of integer node n, which is known to be from lo to hi. */
const plan_expr *plan_px_node(plan_px *p, plan_node *n, int64_t lo, int64_t hi);
const plan_expr *plan_px_add(plan_px *p, const plan_expr *a,
                             const plan_expr *b);
/* a + c * b */
const plan_expr *plan_px_mad(plan_px *p, const plan_expr *a, int64_t c,
                             const plan_expr *b);
const plan_expr *plan_px_mul(plan_px *p, const plan_expr *a, int64_t c);
const plan_expr *plan_px_div(plan_px *p, const plan_expr *a, int64_t k);
const plan_expr *plan_px_mod(plan_px *p, const plan_expr *a, int64_t k);
/* The row-major offset of index in an array of those dimensions. */
const plan_expr *plan_px_linear(plan_px *p, int rank, const int64_t *dim,
                                const plan_expr *const *index);
/* The index whose offset e is. */
void plan_px_delinear(plan_px *p, const plan_expr *e, int rank,
                      const int64_t *dim, const plan_expr **index);
/* The index into `to` of the element that has `index` in `from`; groups of
 * dimensions that hold the same elements are treated one by one. */
void plan_px_reshape(plan_px *p, const sd_shape *from,
                     const plan_expr *const *index, const sd_shape *to,
                     const plan_expr **out);
/* e of any table made again in p, axis i being with[i]. */
const plan_expr *plan_px_subst(plan_px *p, const plan_expr *e,
                               const plan_expr *const *with);
/* Of a sum, one term after the other, times *c: *rest starts as the whole and
 * ends as NULL. */
const plan_expr *plan_px_next_term(const plan_expr **rest, int64_t *c);
/* If joining axes a and b (extent eb) to one keeps e as simple as it is. */
bool plan_px_joins(const plan_expr *e, int a, int b, int64_t eb);
/* If a place in e is read from memory, or computed. */
bool plan_px_names_node(const plan_expr *e);

/* ---- views (plan_view.c): which elements of its operands a value needs ----
 */

/* Supplies the expressions that depend on data: the starts of dynamic slices
 * and the coordinates of gathers, already clamped. */
typedef struct plan_viewer plan_viewer;
struct plan_viewer {
    plan_px *px;
    /* The value of integer operand k of in at index (NULL: scalar), clamped
     * to [0, hi]. */
    const plan_expr *(*dynamic)(plan_viewer *v, const hlo_inst *in, int k,
                                const plan_expr *const *index, int64_t hi);
    const plan_expr **axis; /* inner axes of a reduction over nred dims */
};
typedef struct {
    const plan_expr *index[SD_MAX_RANK]; /* of the operand */
    plan_guard guard[3 * SD_MAX_RANK];   /* where it may be read */
    int nguard;
} plan_view;
/* How many views of operand k one element of in needs: 1 but for the indices
 * of a gather (one a component) and a widening bitcast-convert. */
int plan_view_count(const hlo_inst *in, int k);
/* View number `which` of operand k, of the element of in that has `index`. */
void plan_view_of(plan_viewer *v, const hlo_inst *in, int k, int which,
                  const plan_expr *const *index, plan_view *out);
/* The inner axes that one element of in runs over: extents into out (at most
 * SD_MAX_RANK), 0 for what is not a reduction. */
int plan_inner_extents(const hlo_inst *in, int64_t *out);
/* Has an element of in loops of its own? */
static inline bool plan_is_reducing(const hlo_inst *in)
{
    return in->op == HLO_REDUCE || in->op == HLO_REDUCE_WINDOW ||
           in->op == HLO_DOT || in->op == HLO_CONVOLUTION;
}

/* ---- the space of a fusion (plan_space.c) ---- */

/* Outer axes, then at most one shared inner axis, for what reads and writes
 * full rows.  It follows from the roots and any one of the reductions, so that
 * plan_fuse, which asks whether instructions have a common space, and
 * plan_lower, which builds on it, agree. */
typedef struct {
    const sd_shape *outer;  /* its dimensions are the outer axes in order */
    const sd_shape *full;   /* outer with the row; NULL: no row */
    int row_at;             /* dimension of full */
    int64_t pre, row, post; /* full as [pre][row][post] */
} plan_space;
/* red: a REDUCE over one dimension that is in the fusion, or NULL. */
void plan_space_of(const hlo_inst *root, const hlo_inst *red, plan_space *out);
bool plan_space_equal(const plan_space *x, const plan_space *y);
/* The index of a root under the space's axes (numbered outer, then row);
 * false when its elements are neither the outer ones nor the full ones. */
bool plan_space_index(plan_px *px, const plan_space *s, const sd_shape *root,
                      const plan_expr **out);
/* The row's axis as an expression. */
const plan_expr *plan_space_row(plan_px *px, const plan_space *s);
/* The axes of the space; those of a member's own loops come after them. */
int plan_space_naxis(const plan_space *s);
static inline uint64_t plan_space_axes(const plan_space *s)
{
    return (1ull << plan_space_naxis(s)) - 1;
}
/* The row-major number of the outer point: what a reduction's index must be
 * linearised to. */
const plan_expr *plan_space_outer(plan_px *px, const plan_space *s);

/* ---- fusions ---- */

/* A fusion's root, or the first of several (plan_rows.c). */
const hlo_inst *plan_first_root(const hlo_comp *c);
/* The sort becomes a fusion, with the slices of its results (plan_fuse_sort.c).
 */
void plan_fuse_sort(hlo_inst *in);
/* Fusions that read what other members have in place (plan_peers.c): slices of
 * an all-gather or an all-to-all are their first operands then, one of each
 * member. */
void plan_peers(hlo_module *m, const device_desc *dev);
/* Is it such a slice, or what it is cut from?  Neither is memory. */
bool plan_is_peers(const hlo_inst *in);

/* ---- kernels that are equal (plan_equal.c): in all but the name ---- */

bool plan_kernel_equal(const plan_kernel *x, const plan_kernel *y);
uint64_t plan_kernel_hash(const plan_kernel *k); /* equal for equal ones */
bool plan_same_body(const plan_body *x, const plan_body *y);

/* An error that names kernel and node, which may be NULL (plan_verify.c). */
sd_status plan_bad(const plan_kernel *k, const plan_node *n, const char *what);
void plan_print_body(sd_buf *b, const plan_body *body); /* plan_print.c */

#endif
