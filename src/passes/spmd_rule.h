/* Which dimensions go together; see spmd_rule.c. */
#ifndef SPMD_RULE_H
#define SPMD_RULE_H

#include "spmd.h"

enum { SPMD_MOST_ARGS = 40, SPMD_MOST_FACTORS = 3 * SD_MAX_RANK };

typedef struct {
    int64_t size; /* in what it may be cut divides this */
    int64_t any;  /* or, where not 0, goes into this: in unequal parts */
    bool partial; /* of operands alone: results are to be combined */
    bool across;  /* of operand 0 other parts are read, too (spmd_halo.c) */
    bool picked;  /* or what is read or written is known when it runs */
    bool running; /* or what all parts before come to (spmd_lines.c) */
    bool again;   /* partial results are reduced as the operands were */
} spmd_factor;

typedef struct {
    int n;
    spmd_factor factor[SPMD_MOST_FACTORS];
    int8_t arg[SPMD_MOST_ARGS][SD_MAX_RANK], result[SD_MAX_RANK]; /* or -1 */
    hlo_op combine; /* of partial results */
} spmd_rule;

/* Can it be cut in n? */
bool spmd_fits(const spmd_factor *f, int64_t n);
/* False: the operation needs its operands whole. */
bool spmd_rule_of(const hlo_inst *in, spmd_rule *out);
/* in of operands that are parts, giving a part of shape s; NULL: it cannot.
 * Of operand 0 intervals are given in the dimensions of `across`. */
hlo_inst *spmd_on_parts(hlo_inst *in, const sd_shape *s, hlo_inst *const *arg,
                        uint32_t across);

#endif
