/* The mapping: all of a kernel that depends on the device.  plan_tile chooses the
 * places of axes and their tiles, then copies, passes and areas follow.  What
 * plan_tile*.c share with plan_copies.c, plan_passes.c, plan_areas.c and the
 * files that are named below. */
#ifndef PLAN_MAPPING_H
#define PLAN_MAPPING_H

#include "plan_room.h"

/* So many operations make a tile worth its call. */
enum { PLAN_TILE_WORK = 32768 };

/* ---- places and tiles (plan_tile*.c) ---- */

/* Before all: one tile, the device's group. */
void plan_tile_begin(plan_kernel *k, const device_desc *dev);
/* Places and tiles, and which values are parked. */
void plan_tile_host(plan_kernel *k, const device_desc *dev);
void plan_tile_gpu(plan_kernel *k, const device_desc *dev);
/* The axis that is best LANE. */
int plan_lane_axis(const plan_kernel *k, const device_desc *dev);
/* How good that would be, by what is read and written side by side. */
double plan_lane_score(const plan_kernel *k, int axis, int width);
/* Items that a GPU's group has at least. */
int plan_least_group(const device_desc *dev);
/* The outer axis along which a large operand lies that is read (or written)
 * across the LANE axis, or -1. */
int plan_crossing_axis(const plan_kernel *k, int lane);
/* The scan whose elements take turns along LANE, or NULL. */
const plan_node *plan_scan_along(const plan_kernel *k, int lane);
/* An axis in tiles of at most so many positions. */
void plan_cut_axis(plan_axis *x, int64_t tile);
/* UNROLLs an axis along which the inner loops read the same, or rows that are
 * better read several at once, if there is one (plan_unroll.c). */
void plan_unroll_rows(plan_kernel *k, int lane, const device_desc *dev);
/* Of v neighbouring positions of an axis, so many are one access of n of at
 * most `most` bytes, on a GPU. */
int plan_wide_run(const plan_kernel *k, const plan_node *n, int lane, int v,
                  int64_t most);
/* Are v neighbours along LANE that n reads or writes one access, the first as
 * aligned as they are long? */
bool plan_places_are_wide(const plan_kernel *k, const plan_node *n, int lane,
                          int v);

/* ---- axes made anew (plan_collapse.c, plan_short.c) ---- */

/* An axis of a CONTRACT's groups, of so many features each at least. */
void plan_split_groups(plan_kernel *k, int64_t least);
/* An axis of ranges of what guard `which` of scatter n bounds:
 * plan_kernel.ranges. */
void plan_split_places(plan_kernel *k, plan_node *n, int which, int64_t ranges);
/* Outer axes that all nodes read as one become one. */
void plan_collapse(plan_kernel *k);
/* n's offset and guards, made again in px, with axis i being with[i]. */
void plan_place_node(plan_kernel *k, plan_px *px, plan_node *n,
                     const plan_expr *const *with);
/* A last axis that is too short for LANE. */
void plan_part_short(plan_kernel *k, const device_desc *dev);

/* ---- GPUs: rows that stay in registers (plan_kept.c) ---- */

enum { PLAN_ROW_LANES = 64 }; /* strided lanes of a sum along a row */
/* Is n read for a position of LANE in this row alone? */
bool plan_is_of_row(const plan_kernel *k, const plan_node *n, int lane);
/* How many nodes an item makes for a position of LANE. */
int64_t plan_made(const plan_kernel *k, int lane);
/* How many stages have loops over LANE. */
int plan_stages_along(const plan_kernel *k, int lane);
/* Decides whether rows stay in registers, by how many neighbours (v at most) and
 * teams an item then has of one. */
bool plan_keep_row(plan_kernel *k, int lane, int v, const device_desc *dev);
/* How many groups of such rows share a unit. */
void plan_share_unit(plan_kernel *k, int lane, const device_desc *dev);

/* ---- nest, copies and passes (plan_copies.c, plan_passes.c) ---- */

/* Nest, copies and passes of a kernel whose axes have places. */
void plan_choose_copies(plan_kernel *k, int lane, const device_desc *dev);
/* The last of these alone. */
void plan_choose_passes(plan_kernel *k, int lane, const device_desc *dev);
/* Rows a whole number of pages apart have the same few places in the first level
 * of cache: what is fetched of those ahead puts out what the next step reads
 * (sums over 2,048 x 2,048 f32 take 0.76 ms so and 0.55 without, on Zen 3). */
bool plan_rows_compete(const plan_kernel *k);
/* Does a pass over `axis` read or write rows that lie along it, across LANE, and
 * is it better to turn them in registers (plan_across.c)? */
bool plan_has_rows_across(const plan_kernel *k, int lane, int axis);
/* Makes p a pass that does, PLAN_LANES_ACROSS, if that is so. */
void plan_find_across(plan_kernel *k, plan_pass *p, int lane);
/* Makes p one that takes all positions of its loop at once,
 * PLAN_LANES_SHIFTED, if its rows lie one after the other (plan_shifted.c). */
void plan_find_shifted(const plan_kernel *k, plan_pass *p, int lane);
/* Where pass number `pass` ends early, or NULL (plan_ends.c). */
const plan_end *plan_find_end(const plan_kernel *k, int pass, uint64_t nest);
/* Where axes are cut, on the host: plan_kernel.cut (plan_cuts.c). */
void plan_find_cuts(plan_kernel *k, int lane);

/* Which loads and stores go to memory together, on the host (plan_woven.c). */
void plan_find_woven(plan_kernel *k);

/* ---- areas (plan_areas.c) ---- */

/* Parks what is dear to compute again, in at most `limit` bytes beside what
 * joins take. */
void plan_park(plan_kernel *k, int lane, size_t limit, bool host);
/* The same of rows across LANE on the host, and what several stages read of
 * them, which is turned once. */
void plan_park_across(plan_kernel *k, int lane, size_t limit);
/* Lanes of a sum in a kernel by rows. */
int plan_row_lanes(const plan_node *n);
/* Areas of a kernel that has passes. */
void plan_lay_out(plan_kernel *k, int lane);
/* The area of one that sorts or calls: its work space, of so many bytes. */
void plan_add_work(plan_kernel *k, size_t bytes);
/* A slot after the results: work space that no group's memory holds
 * (plan_tile.c). */
void plan_add_work_slot(plan_kernel *k, int64_t bytes);

#endif
