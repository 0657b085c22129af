/* Sorts in parts: what those that merge (plan_parts.c) and those by digits
 * (plan_digits.c) share.  All is in the arena of the whole kernel. */
#ifndef PLAN_PARTS_H
#define PLAN_PARTS_H

#include "plan_room.h"

/* Buffers in which all operands lie: two of the work space, the results where
 * they are that, and what the whole is given. */
enum { PLAN_WORK_0, PLAN_WORK_1, PLAN_RESULTS, PLAN_OPERANDS };

typedef struct {
    plan_kernel *k;
    const device_desc *dev;
    size_t *at;     /* of an operand, in a buffer of the work space */
    size_t bytes;   /* of such a buffer */
    int64_t piece;
} plan_parts;

/* Of rows of n elements. */
size_t plan_part_bytes(const plan_sort *s, int o, int64_t n);
/* A kernel for a part of p, with a sort of its own and no slots. */
plan_kernel *plan_part_kernel(const plan_parts *p, const char *what, int nslot);
/* Slot i of k is that. */
void plan_part_slot(plan_kernel *k, plan_part_arg *arg, int i,
                    plan_part_arg from, sd_dtype t, plan_access access);
/* Operand o in a buffer, in rows of n elements. */
plan_part_arg plan_part_in(const plan_parts *p, int buffer, int o, int64_t n);
/* All operands of s are results, in full. */
void plan_part_want_all(const plan_parts *p, plan_sort *s);
/* The first slots: the whole's operands, or those in a buffer, rows of n
 * elements side by side. */
void plan_part_operands(const plan_parts *p, plan_kernel *k,
                        plan_part_arg *arg);
void plan_part_buffer(const plan_parts *p, plan_kernel *k, plan_part_arg *arg,
                      int buffer, int64_t n);
/* The whole's work space: so many buffers with rows of n elements, and `more`
 * bytes behind them. */
void plan_part_work(plan_parts *p, int64_t n, int buffers, size_t more);
void plan_part_add(plan_kernel *k, plan_part part);

/* plan_digits.c: false where merging is quicker. */
bool plan_sort_by_digits(plan_parts *p);

#endif
