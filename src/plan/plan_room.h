/* What the files of this room share.  Nobody else includes it. */
#ifndef PLAN_ROOM_H
#define PLAN_ROOM_H

#include "plan.h"

/* Of one kernel; more are refused.  plan_fuse stays below it (plan_worth.c), so
 * that only one operation of hundreds of operands can come to it. */
enum { PLAN_MOST_NODES = 4000 };

/* ---- expressions (plan_expr.c) ---- */

typedef struct plan_px plan_px; /* the table of one kernel or one analysis */
plan_px *plan_px_create(sd_arena *a);
const plan_expr *plan_px_const(plan_px *p, int64_t c);
const plan_expr *plan_px_axis(plan_px *p, int axis, int64_t extent);
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
enum { PLAN_ROW_LANES = 64 }; /* strided lanes of a sum along a row */

/* Is n read for a position of LANE in this row alone? */
bool plan_is_of_row(const plan_kernel *k, const plan_node *n, int lane);
/* How many nodes an item makes for a position of LANE. */
int64_t plan_made(const plan_kernel *k, int lane);
int plan_stages_along(const plan_kernel *k, int lane);
/* Decides whether rows stay in registers, by how many neighbours (v at most) and
 * teams an item then has of one. */
bool plan_keep_row(plan_kernel *k, int lane, int v, const device_desc *dev);

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
void plan_view_of(plan_viewer *v, const hlo_inst *in, int k, int which,
                  const plan_expr *const *index, plan_view *out);
/* The inner axes that one element of in runs over: extents into out (at most
 * SD_MAX_RANK), 0 for what is not a reduction. */
int plan_inner_extents(const hlo_inst *in, int64_t *out);
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
int plan_order_lanes(int64_t extent, bool minor);

/* ---- lowering (plan_lower*.c) ---- */

typedef struct {
    plan_guard *g;
    int n;
} plan_guards;

bool plan_guards_same(plan_guards x, plan_guards y);

/* Strands of a kernel, and of an axis: powers of two, or all 3 positions. */
enum { PLAN_MOST_STRANDS = 8 };
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

/* Of a kernel that chooses by the remainder of an outer position, as where
 * lists are interleaved: strands in which nothing is left to choose. */
bool plan_find_strands(const plan_kernel *k, plan_strands *out);
/* Of a fusion that computes whole rows (plan_rows.c) each position of its last
 * axis is a strand. */
bool plan_row_strands(const hlo_comp *c, plan_strands *out);
/* So are the numbers of a fusion that makes small sums (plan_small.c). */
bool plan_small_strands(const hlo_comp *c, plan_strands *out);
/* How many numbers such a row has; 1: c is no such fusion. */
int64_t plan_whole_rows(const hlo_comp *c);
/* A fusion's root, or the first of several. */
const hlo_inst *plan_first_root(const hlo_comp *c);
/* An index under the whole axes, for strand number `which`; and guards that its
 * position exists. */
plan_guards plan_strand(plan_lowering *lw, int which, int rank,
                        const plan_expr *const *index, const plan_expr **out);

/* Element `index` of result `out` of in, used only where guards hold. */
plan_node *plan_value(plan_lowering *lw, const hlo_inst *in, int out,
                      const plan_expr *const *index, plan_guards guards);
plan_node *plan_lower_reducing(plan_lowering *lw, const hlo_inst *in, int out,
                               const plan_expr *const *index,
                               plan_guards guards);
plan_node *plan_node_const(plan_lowering *lw, sd_dtype t, int64_t v);
plan_node *plan_node_data(plan_lowering *lw, sd_dtype t, const void *data);
plan_node *plan_node_index(plan_lowering *lw, sd_dtype t, const plan_expr *e);
plan_node *plan_node_elt(plan_lowering *lw, int op, sd_dtype t,
                         const hlo_inst *in, int narg, plan_node *const *arg);
plan_node *plan_node_convert(plan_lowering *lw, sd_dtype t, plan_node *x);
plan_node *plan_node_new(plan_lowering *lw, plan_node n);
/* Attributes of an elementwise op that its operands do not tell. */
uint64_t plan_node_attributes(const plan_node *n);
/* x, computed under `outside`, where the guards of g hold too, else fill. */
plan_node *plan_node_filled(plan_lowering *lw, plan_node *x,
                            const plan_guard *g, int n, plan_guards outside,
                            plan_node *fill);
/* pred: all guards of g hold; NULL when that is known. */
plan_node *plan_node_holds(plan_lowering *lw, const plan_guard *g, int n);
/* An instruction in no computation, for the attributes of an ELT. */
hlo_inst *plan_compare_inst(sd_arena *a, hlo_cmp_dir dir, sd_dtype t);
plan_guards plan_guards_join(sd_arena *a, plan_guards x, const plan_guard *g,
                             int n);
const plan_expr *plan_axis_add(plan_lowering *lw, int64_t extent,
                               plan_role role, bool outer);
plan_node *plan_lower_fail(plan_lowering *lw, sd_status st, sd_dtype t);
/* The function of a reducer or comparator; NULL with *st set when it has ops
 * that are not elementwise. */
plan_body *plan_body_of(sd_arena *a, const hlo_comp *c, sd_status *st);
/* Its nodes as nodes of the kernel, parameters given. */
plan_node *plan_body_inline(plan_lowering *lw, const plan_body *b, int root,
                            plan_node *const *param);
/* Dead nodes out, stages in, axes and figures filled (plan_stage.c). */
void plan_finish_kernel(plan_lowering *lw);
/* plan_collapse.c, for plan_tile */
enum { PLAN_LEAST_GROUP = 8 }; /* features: fewer fill no vector */
/* Rows and columns of a tile of a product on the host, where nothing is known
 * that makes larger ones better (limit_tile in plan_blocks.c). */
enum { PLAN_BLOCK_SIDE = 256 };
/* Of M, N and K on a GPU: below, most of a tile is in vain. */
enum { PLAN_LEAST_BLOCK = 16 };
/* An axis of a CONTRACT's groups, of so many features each at least. */
void plan_split_groups(plan_kernel *k, int64_t least);
/* An axis of ranges of what a scatter's guard bounds: plan_kernel.ranges. */
void plan_split_places(plan_kernel *k, plan_node *n, int which, int64_t ranges);
void plan_collapse(plan_kernel *k);
/* n's offset and guards, made again in px, with axis i being with[i]. */
void plan_place_node(plan_kernel *k, plan_px *px, plan_node *n,
                     const plan_expr *const *with);
/* A last axis that is too short for LANE. */
void plan_part_short(plan_kernel *k, const device_desc *dev);
/* plan_blocks.c, for plan_tile: blocks and tiles of a kernel whose sum is a
 * CONTRACT that is worth them; false when it has none. */
bool plan_find_blocks(plan_kernel *k, int lane, const device_desc *dev);
/* plan_blocks_gpu.c: the same on a GPU, with its group. */
bool plan_find_group_blocks(plan_kernel *k, int lane, const device_desc *dev);
/* The lane, or the other side's last axis, where results lie along that and a
 * wide engine takes the product so. */
int plan_lane_of_wide(const plan_kernel *k, int lane, const device_desc *dev);

/* ---- engines (plan_engines.c); n: an operand of the CONTRACT c ---- */

/* n, or what a convert made it of, where that is of type t; or NULL. */
const plan_node *plan_narrow(const plan_node *n, sd_dtype t);
/* The same, as engine e of the host takes it. */
const plan_node *plan_taken_by(const plan_engine_info *e, const plan_node *n);
/* May an engine that multiplies t do c?  Floats that the program multiplies in
 * another type stay in that, also where what they are made of is of t. */
bool plan_asks_for(const plan_node *c, sd_dtype t);
bool plan_may_round(const hlo_inst *in); /* its f32 operands, to tf32 */
/* Has n tf32's digits before it is copied? */
bool plan_is_trimmed(const plan_node *c, const plan_node *n);

/* ---- blocks (plan_blocks*.c) ---- */

/* plan_blocks_copies.c: for these, of cut tiles, which become k's; and, once
 * plain operands are found, whether copies need no registers. */
void plan_choose_block_copies(plan_kernel *k, plan_blocks *b, int lane,
                              const device_desc *dev);
void plan_copy_by_itself(plan_kernel *k, plan_blocks *b,
                         const device_desc *dev);
/* Operands in panels that are read as they lie, and the slot of zeros that they
 * need; is n, copied so, one? */
void plan_find_plain(plan_kernel *k, plan_blocks *b);
/* What a LOAD gives where its guards fail is 0, or nobody asks. */
bool plan_fills_zeros(const plan_node *n);
/* Fills x_reads, y_reads, slides and m_whole; false: an operand is read
 * otherwise. */
enum { PLAN_DIRECT_STEPS = 2 }; /* instructions' depths that a step has */
bool plan_find_reads(const plan_kernel *k, plan_blocks *b);
void plan_give_up_reads(plan_blocks *b);
/* Are 16 rows of x's tile, from a multiple of 16 on, rows of one matrix? */
bool plan_reads_squares(const plan_kernel *k, const plan_blocks *b);
bool plan_is_plain(const plan_kernel *k, const plan_node *n, int along,
                   int wide);
/* Do positions of these axes, the last one fastest, follow each other at one
 * distance? */
bool plan_lies_in_row(const plan_kernel *k, const plan_expr *off,
                      uint64_t axes);
/* May x be copied once for all of a window (plan_blocks.window)? */
bool plan_find_window(const plan_kernel *k, const plan_blocks *b);
/* May x of a wide engine slide? */
bool plan_find_slide(const plan_kernel *k, const plan_blocks *b);
/* Bytes of an item's registers for x while it is on its way, in steps of so many
 * positions; areas that y has. */
double plan_window_registers(const plan_kernel *k, const plan_blocks *b,
                             int step);
int plan_areas_of_y(const plan_kernel *k, const plan_blocks *b);
static inline size_t plan_areas_bytes(const plan_blocks *b)
{
    return (size_t)b->pairs * b->buffer +
           (b->window || plan_slides_in_area(b) ? b->y_at : 0);
}
/* Of a GPU's tile (plan_blocks_cost.c): do the sums of m x n positions take half
 * of a sub-group's registers at most? */
bool plan_holds_squares(const plan_kernel *k, const plan_blocks *b, int m,
                        int n, const device_desc *dev);
/* Do vectors on their way, in steps of so many positions, leave registers for
 * the sums and for what multiplies? */
bool plan_holds_step(const plan_kernel *k, const plan_blocks *b, int step,
                     const device_desc *dev);
/* What all tiles cost, in whole turns of all units; of panels a sub-group takes
 * a unit. */
double plan_tile_cost(const plan_kernel *k, const plan_blocks *b,
                      const device_desc *dev);
/* Of hosts and GPUs (plan_blocks.c): the one sum of the kernel, where it is a
 * CONTRACT in a stage of its own; or NULL. */
const plan_node *plan_only_contract(const plan_kernel *k);
bool plan_has_blocks_of(sd_dtype t); /* the type of such a sum */
/* Which operand is x and which y, and which axes are M's, N's and K's, where a tile
 * has up to `most` positions of each side; false: it has no such sides. */
bool plan_find_sides(const plan_kernel *k, int lane, int64_t most,
                     plan_blocks *b);
/* Are vectors of n better read along axis a than along b? */
bool plan_lies_along(const plan_kernel *k, const plan_node *n, int a, int b);
/* The order of the sums of CONTRACTs, for all devices. */
void plan_cut_chains(plan_kernel *k);

/* ---- the mapping (plan_tile*.c, plan_copies.c, plan_areas.c) ---- */

/* So many operations make a tile worth its call. */
enum { PLAN_TILE_WORK = 32768 };
/* Places and tiles, and which values are parked. */
void plan_tile_host(plan_kernel *k, const device_desc *dev);
void plan_tile_gpu(plan_kernel *k, const device_desc *dev);
/* The axis that is best LANE. */
int plan_lane_axis(const plan_kernel *k, const device_desc *dev);
/* Items that a GPU's group has at least. */
int plan_least_group(const device_desc *dev);
/* The outer axis along which a large operand lies that is read (or written)
 * across the LANE axis, or -1. */
int plan_crossing_axis(const plan_kernel *k, int lane);
/* The scan whose elements take turns along LANE, or NULL. */
const plan_node *plan_scan_along(const plan_kernel *k, int lane);
/* UNROLLs an axis along which the inner loops read the same, or rows that are
 * better read several at once, if there is one. */
void plan_unroll_rows(plan_kernel *k, int lane, const device_desc *dev);
/* Of v neighbouring positions of an axis, so many are one access of n of at
 * most `most` bytes, on a GPU. */
int plan_wide_run(const plan_kernel *k, const plan_node *n, int lane, int v,
                  int64_t most);
/* Are places v neighbours along LANE, the first as aligned as they are long? */
bool plan_places_are_wide(const plan_kernel *k, const plan_node *n, int lane,
                          int v);
/* An axis in tiles of at most so many positions. */
void plan_cut_axis(plan_axis *x, int64_t tile);
int64_t plan_round_up(int64_t n, int64_t to);
/* Of a cache: where buffers and areas begin. */
size_t plan_whole_lines(size_t bytes);
/* Parks what is dear to compute again, in at most `limit` bytes beside what
 * joins take. */
void plan_park(plan_kernel *k, int lane, size_t limit, bool host);
void plan_park_across(plan_kernel *k, int lane, size_t limit);
/* Rows a whole number of pages apart have the same few places in the first level
 * of cache: what is fetched of those ahead puts out what the next step reads
 * (sums over 2,048 x 2,048 f32 take 0.76 ms so and 0.55 without, on Zen 3). */
bool plan_rows_compete(const plan_kernel *k);
/* Lanes of a sum in a kernel by rows. */
int plan_row_lanes(const plan_node *n);
/* Nest, copies and passes of a kernel whose axes have places. */
void plan_choose_copies(plan_kernel *k, int lane, const device_desc *dev);
void plan_choose_passes(plan_kernel *k, int lane, const device_desc *dev); /* plan_passes.c */
/* plan_across.c, plan_sliding.c: passes that become ACROSS or SLIDING. */
bool plan_has_rows_across(const plan_kernel *k, int lane, int axis);
void plan_find_across(plan_kernel *k, plan_pass *p, int lane);
void plan_find_sliding(const plan_kernel *k, plan_pass *p, int lane);
/* plan_ends.c: where pass number `pass` ends early, or NULL. */
const plan_end *plan_find_end(const plan_kernel *k, int pass, uint64_t nest);
/* Where axes are cut, on the host: plan_kernel.cut. */
void plan_find_cuts(plan_kernel *k, int lane);
/* Areas of a kernel that has passes; of one that sorts or calls. */
void plan_lay_out(plan_kernel *k, int lane);
void plan_add_work(plan_kernel *k, size_t bytes);
/* A slot after the results: work space that no group's memory holds. */
void plan_add_work_slot(plan_kernel *k, int64_t bytes);
/* plan_scatter.c: as plan_tile, of a GPU's kernel that is a scatter. */
sd_status plan_tile_scatter(plan_kernel *k, hlo_inst *fusion,
                            const device_desc *dev);
/* plan_buckets.c: how many, of batches, n, places and body; false: the updates
 * are better sorted.  The kernel, of updates of that type; room: positions that a
 * bucket has in local memory (plan.h). */
bool plan_choose_buckets(plan_buckets *b, const device_desc *dev);
plan_kernel *plan_bucket_kernel(const plan_kernel *whole, const char *name,
                                const plan_buckets *b, sd_dtype type,
                                const device_desc *dev);
sd_status plan_verify_buckets(const plan_kernel *k, const device_desc *dev);
/* A slot of a list in the work space. */
plan_slot plan_work_slot(sd_dtype t, int64_t n, plan_access access);
/* plan_fill.c: can each tile of a scatter set its places, and no others? */
bool plan_tiles_own_places(const plan_kernel *k);
/* As plan_tile, of a host's kernel that is a scatter; it may get
 * another fusion and kernel, which need no array to begin with. */
sd_status plan_tile_filled(plan_kernel **k, hlo_inst **fusion,
                           const device_desc *dev);
/* What plan_tile begins with. */
void plan_tile_begin(plan_kernel *k, const device_desc *dev);
/* plan_digits.c: elements in order by `bits` bits of their codes alone, from bit
 * `from` on.  false: a group has no counters for so many. */
bool plan_sort_by_digit(plan_kernel *k, int bits, int from,
                        const device_desc *dev);
/* plan_parts.c, for plan_tile: false where its rows are short. */
bool plan_sort_in_parts(plan_kernel *k, const device_desc *dev);
/* Items of a group that sorts n elements. */
int plan_sort_group(int64_t n, const device_desc *dev);
/* A row, or a piece, of up to n elements in the registers of a team of items;
 * false: they are too many, or their order is none of numbers. */
bool plan_sort_in_items(plan_kernel *k, int64_t n, const device_desc *dev);

/* The sort becomes a fusion, with the slices of its results (plan_fuse_sort.c).
 */
void plan_fuse_sort(hlo_inst *in);
/* Fusions that read what other members have in place (plan_peers.c): slices of
 * an all-gather or an all-to-all are their first operands then, one of each
 * member.  Is it such a slice, or what it is cut from?  Neither is memory. */
void plan_peers(hlo_module *m, const device_desc *dev);
bool plan_is_peers(const hlo_inst *in);
/* The comparator of s as keys, if it is an order by numbers of 64 bits in all
 * (plan_sort_key.c). */
void plan_find_sort_keys(sd_arena *a, plan_sort *s);
/* plan_equal.c: all but the name. */
bool plan_kernel_equal(const plan_kernel *x, const plan_kernel *y);
uint64_t plan_kernel_hash(const plan_kernel *k); /* equal for equal ones */
/* plan_verify.c: an error that names kernel and node (or NULL). */
sd_status plan_bad(const plan_kernel *k, const plan_node *n, const char *what);
/* plan_verify_sort.c, for plan_verify */
sd_status plan_verify_sort(const plan_kernel *k, const device_desc *dev);
sd_status plan_verify_scatter(const plan_kernel *k, const device_desc *dev);
sd_status plan_verify_steps(const plan *p, const thunk_seq *seq);
/* Whole kernels of one instruction. */
sd_status plan_lower_call(plan_lowering *lw, const hlo_inst *in);
sd_status plan_lower_attend(plan_lowering *lw, const hlo_inst *in);
void plan_tile_attend(plan_kernel *k, const device_desc *dev);
bool plan_same_attend(const plan_attend *x, const plan_attend *y);
bool plan_same_body(const plan_body *x, const plan_body *y);
void plan_print_body(sd_buf *b, const plan_body *body); /* plan_print.c */
void plan_print_attend(sd_buf *b, const plan_kernel *k);
sd_status plan_verify_attend(const plan_kernel *k, const device_desc *dev);
sd_status plan_lower_placing(plan_lowering *lw, const hlo_inst *in);
void plan_tile_places(plan_kernel *k, const device_desc *dev);
bool plan_same_places(const plan_places *x, const plan_places *y);
void plan_print_places(sd_buf *b, const plan_kernel *k);
sd_status plan_verify_places(const plan_kernel *k, const device_desc *dev);
sd_status plan_lower_sort(plan_lowering *lw, const hlo_inst *in);
sd_status plan_lower_scatter(plan_lowering *lw, const hlo_inst *in);
/* A kernel of a part of fusion's scatter, whose lists are slots after the
 * fusion's. */
typedef sd_status (*plan_scatter_part)(plan_lowering *lw, const hlo_inst *in,
                                       sd_dtype type);
sd_status plan_lower_part(sd_arena *a, hlo_inst *fusion, plan_scatter_part part,
                          sd_dtype type, plan_kernel **out);
/* Windows of a scatter begin a whole number of these apart. */
int64_t plan_place_unit(const hlo_inst *in);
/* Parts.  Where updates go, by batch: the place of a window's first element
 * within its batch, in such units, or all ones where the window is not inside;
 * the place itself, and the updates, of one element each; the scatter of such
 * lists. */
sd_status plan_lower_places(plan_lowering *lw, const hlo_inst *in,
                            sd_dtype type);
sd_status plan_lower_updates(plan_lowering *lw, const hlo_inst *in,
                             sd_dtype type);
sd_status plan_lower_listed(plan_lowering *lw, const hlo_inst *in,
                            sd_dtype type);
sd_status plan_lower_update(plan_lowering *lw, const hlo_inst *in);
sd_status plan_lower_scan(plan_lowering *lw, const hlo_inst *in);

#endif
