/* Kernels that are not passes over a box: sorts, scatters by buckets or filled
 * first, attention, gradients of windows.  How plan_tile maps them, and what
 * plan_print.c, plan_equal.c and plan_verify.c call for them.  plan_lower.h has
 * how they are lowered. */
#ifndef PLAN_WHOLE_H
#define PLAN_WHOLE_H

#include "plan_room.h"

/* ---- scatters (plan_scatter.c, plan_buckets.c, plan_fill.c) ---- */

/* As plan_tile, of a GPU's kernel that is a scatter. */
sd_status plan_tile_scatter(plan_kernel *k, hlo_inst *fusion,
                            const device_desc *dev);
/* How many buckets, of batches, n, places and body; false: the updates are better
 * sorted. */
bool plan_choose_buckets(plan_buckets *b, const device_desc *dev);
/* The kernel that takes them, of updates of that type. */
plan_kernel *plan_bucket_kernel(const plan_kernel *whole, const char *name,
                                const plan_buckets *b, sd_dtype type,
                                const device_desc *dev);
/* A slot of a list in the work space. */
plan_slot plan_work_slot(sd_dtype t, int64_t n, plan_access access);
/* Can each tile of a scatter set its places, and no others? */
bool plan_tiles_own_places(const plan_kernel *k);
/* As plan_tile, of a host's kernel that is a scatter; it may get another fusion
 * and kernel, which need no array to begin with. */
sd_status plan_tile_filled(plan_kernel **k, hlo_inst **fusion,
                           const device_desc *dev);

/* ---- sorts (plan_sort_key.c, plan_parts.c, plan_digits.c) ---- */

/* The comparator of s as keys, if it is an order by numbers of 64 bits in all. */
void plan_find_sort_keys(sd_arena *a, plan_sort *s);
/* Items of a group that sorts n elements. */
int plan_sort_group(int64_t n, const device_desc *dev);
/* A row, or a piece, of up to n elements in the registers of a team of items;
 * false: they are too many, or their order is none of numbers. */
bool plan_sort_in_items(plan_kernel *k, int64_t n, const device_desc *dev);
/* Smaller sub-groups, where elements of their items want the registers. */
void plan_sort_narrow(plan_kernel *k, const device_desc *dev);
/* Rows that no group's memory holds, in pieces; false where they are short. */
bool plan_sort_in_parts(plan_kernel *k, const device_desc *dev);
/* Elements in order by `bits` bits of their codes alone, from bit `from` on;
 * false: a group has no counters for so many. */
bool plan_sort_by_digit(plan_kernel *k, int bits, int from,
                        const device_desc *dev);

/* ---- attention (plan_attend.c) ---- */

void plan_tile_attend(plan_kernel *k, const device_desc *dev);
bool plan_same_attend(const plan_attend *x, const plan_attend *y);
void plan_print_attend(sd_buf *b, const plan_kernel *k);
sd_status plan_verify_attend(const plan_kernel *k, const device_desc *dev);

/* ---- gradients of windows (plan_places.c) ---- */

void plan_tile_places(plan_kernel *k, const device_desc *dev);
bool plan_same_places(const plan_places *x, const plan_places *y);
void plan_print_places(sd_buf *b, const plan_kernel *k);
sd_status plan_verify_places(const plan_kernel *k, const device_desc *dev);

/* ---- verified ---- */

sd_status plan_verify_sort(const plan_kernel *k, const device_desc *dev);
sd_status plan_verify_scatter(const plan_kernel *k, const device_desc *dev);
sd_status plan_verify_buckets(const plan_kernel *k, const device_desc *dev);
/* Of the kernels that steps launch: is their memory as large as their slots? */
sd_status plan_verify_steps(const plan *p, const thunk_seq *seq);

#endif
