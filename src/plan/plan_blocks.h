/* A product in blocks (plan_contract.h has what that is): which engine takes it,
 * in which tiles, and how its operands come to where they are multiplied.  What
 * plan_blocks*.c share with plan_engines.c, plan_plain.c, plan_direct.c and
 * plan_window.c, and what plan_tile*.c and plan_verify.c ask them. */
#ifndef PLAN_BLOCKS_H
#define PLAN_BLOCKS_H

#include "plan_room.h"

/* Rows and columns of a tile of a product on the host, where nothing is known
 * that makes larger ones better (limit_tile in plan_blocks.c). */
enum { PLAN_BLOCK_SIDE = 256 };
/* Of M, N and K on a GPU: below, most of a tile is in vain. */
enum { PLAN_LEAST_BLOCK = 16 };
enum { PLAN_DIRECT_STEPS = 2 }; /* instructions' depths that a direct step has */

/* ---- for plan_tile ---- */

/* The order of the sums of CONTRACTs, for all devices. */
void plan_cut_chains(plan_kernel *k);
/* Blocks and tiles of a kernel whose sum is a CONTRACT that is worth them; false
 * when it has none. */
bool plan_find_blocks(plan_kernel *k, int lane, const device_desc *dev);
/* The same on a GPU, with its group (plan_blocks_gpu.c). */
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
bool plan_may_multiply(const plan_node *c, sd_dtype t);
/* Has n tf32's digits before it is copied? */
bool plan_is_trimmed(const plan_node *c, const plan_node *n);

/* ---- what can be in blocks (plan_blocks.c) ---- */

/* The one sum of the kernel, where it is a CONTRACT in a stage of its own; or
 * NULL. */
const plan_node *plan_only_contract(const plan_kernel *k);
/* Are there blocks for sums of type t? */
bool plan_has_blocks_of(sd_dtype t);
/* Which operand is x and which y, and which axes are M's, N's and K's, where a
 * tile has up to `most` positions of each side; false: it has no such sides. */
bool plan_find_sides(const plan_kernel *k, int lane, int64_t most,
                     plan_blocks *b);
/* Are vectors of n better read along axis a than along b? */
bool plan_lies_along(const plan_kernel *k, const plan_node *n, int a, int b);
/* Do positions of these axes, the last one fastest, follow each other at one
 * distance (plan_plain.c)? */
bool plan_lies_in_row(const plan_kernel *k, const plan_expr *off,
                      uint64_t axes);

/* ---- GPUs: copies (plan_blocks_copies.c, plan_plain.c) ---- */

/* How operands are copied, for b of cut tiles, which become k's. */
void plan_choose_block_copies(plan_kernel *k, plan_blocks *b, int lane,
                              const device_desc *dev);
/* Which operands are read as they lie, x_plain and y_plain, and the slot of
 * zeros that they need. */
void plan_find_plain(plan_kernel *k, plan_blocks *b);
/* Which of these are loose, x_loose and y_loose, and their vectors. */
void plan_find_loose(plan_kernel *k, plan_blocks *b, const device_desc *dev);
/* May n, copied along that axis, be loose if it is plain?  And how many of its
 * elements does one access then read, `most` at most? */
bool plan_may_be_loose(const plan_kernel *k, const plan_blocks *b,
                       const plan_node *n, int along);
int plan_loose_run(const plan_kernel *k, const plan_blocks *b,
                   const plan_node *n, int along, int most);
/* Once these are found: whether copies need no registers, `by_itself`. */
void plan_copy_by_itself(plan_kernel *k, plan_blocks *b,
                         const device_desc *dev);
/* Is n, copied along that axis by so many neighbours, plain? */
bool plan_is_plain(const plan_kernel *k, const plan_node *n, int along,
                   int wide);
/* What a LOAD gives where its guards fail is 0, or nobody asks. */
bool plan_fills_zeros(const plan_node *n);
/* Bytes of all areas. */
static inline size_t plan_areas_bytes(const plan_blocks *b)
{
    return (size_t)b->pairs * b->buffer +
           (b->window || plan_slides_in_area(b) ? b->y_at : 0);
}

/* ---- GPUs: operands read by blocks (plan_direct.c) ---- */

/* Fills x_reads, y_reads, slides and m_whole; false: an operand is read
 * otherwise. */
bool plan_find_reads(const plan_kernel *k, plan_blocks *b);
/* They are not read so after all. */
void plan_give_up_reads(plan_blocks *b);
/* Are 16 rows of x's tile, from a multiple of 16 on, rows of one matrix? */
bool plan_reads_squares(const plan_kernel *k, const plan_blocks *b);

/* ---- GPUs: windows (plan_window.c) ---- */

/* May x be copied once for all of a window (plan_blocks.window)? */
bool plan_find_window(const plan_kernel *k, const plan_blocks *b);
/* May x of a wide engine slide? */
bool plan_find_slide(const plan_kernel *k, const plan_blocks *b);
/* Bytes of an item's registers for x while it is on its way, in steps of so many
 * positions. */
double plan_window_registers(const plan_kernel *k, const plan_blocks *b,
                             int step);
/* How many areas y has. */
int plan_areas_of_y(const plan_kernel *k, const plan_blocks *b);

/* ---- GPUs: what a tile takes (plan_blocks_cost.c) ---- */

/* Do the sums of m x n positions take half of a sub-group's registers at most? */
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

#endif
