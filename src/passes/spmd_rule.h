/* spmd_rule: which dimensions of an operation's operands and result are cut
 * together; see spmd_rule.c.  Such dimensions are a factor: of a product of
 * [m, k] and [k, n] there are three, m, n and k. */
#ifndef SPMD_RULE_H
#define SPMD_RULE_H

#include "spmd.h"

enum { SPMD_MOST_ARGS = 40, SPMD_MOST_FACTORS = 3 * SD_MAX_RANK };

typedef struct {
    int64_t size; /* it may be cut into n parts if n divides this */
    int64_t any;  /* not 0: into n unequal parts of so many elements, too */
    bool partial; /* operands have it and the result has not: results of parts
                     are to be combined */
    bool across;  /* other parts of operand 0 are read, too (spmd_halo.c) */
    bool picked;  /* places that are known at run time are read or written
                     (spmd_pick.c) */
    bool running; /* what all parts before come to is read (spmd_lines.c) */
    bool again;   /* partial results are combined by the operation itself */
} spmd_factor;

typedef struct {
    int n;
    spmd_factor factor[SPMD_MOST_FACTORS];
    /* The factor that each dimension belongs to; -1: none. */
    int8_t arg[SPMD_MOST_ARGS][SD_MAX_RANK], result[SD_MAX_RANK];
    hlo_op combine; /* combines partial results */
} spmd_rule;

/* Can it be cut in n? */
bool spmd_fits(const spmd_factor *f, int64_t n);
/* False: the operation needs its operands whole. */
bool spmd_rule_of(const hlo_inst *in, spmd_rule *out);
/* The operation on parts arg[], giving a part of shape s; NULL: it cannot.  In
 * the dimensions of `across` operand 0 is an interval: see spmd_intervals. */
hlo_inst *spmd_on_parts(hlo_inst *in, const sd_shape *s, hlo_inst *const *arg,
                        uint32_t across);

#endif
