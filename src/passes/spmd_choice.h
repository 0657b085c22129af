/* How an operation that has a rule is done on parts; see spmd_choice.c.  Of the
 * files of spmd_flow.h alone. */
#ifndef SPMD_CHOICE_H
#define SPMD_CHOICE_H

#include "spmd_flow.h"
#include "spmd_rule.h"

typedef struct { /* by factor: the atoms that cut it */
    const hlo_sharding *like;
    hlo_atoms cut[SPMD_MOST_FACTORS];
    uint32_t used;
    uint32_t sums;  /* along which operands are summed after it, not before */
    uint32_t moved; /* those that cut a line, and cut another dimension now */
} spmd_choice;

/* False: nothing is cut. */
bool spmd_choose(const spmd_flow *f, const hlo_inst *in, const spmd_rule *r,
                 spmd_choice *c);
/* Of a value whose dimensions belong to these factors. */
const hlo_sharding *spmd_factors_sharding(const spmd_flow *f,
                                          const spmd_choice *c,
                                          const int8_t *factor, int rank);
/* Dimensions of operand 0 that are cut: masks of those that are gone across, and
 * picked from; the one that runs, or -1. */
typedef struct {
    uint32_t across, picked;
    int running;
} spmd_special;
spmd_special spmd_special_of(const spmd_rule *r, const spmd_choice *c,
                             int rank);
/* The atoms along which the parts of a result are still to be made one. */
hlo_atoms spmd_partial_along(const spmd_rule *r, const spmd_choice *c);
/* A result by s, where that can wait until somebody wants it; else s. */
const hlo_sharding *spmd_waiting(const spmd_flow *f, const spmd_rule *r,
                                 const spmd_choice *c, const hlo_sharding *s);
/* The same, but that a sum that all users want in shares is shared out at once:
 * those that want nothing get along with shares. */
const hlo_sharding *spmd_result_by(const spmd_flow *f, const hlo_inst *in,
                                   const spmd_rule *r, const spmd_choice *c,
                                   const hlo_sharding *s);
const hlo_sharding *spmd_operand_by(const spmd_flow *f, const hlo_inst *in,
                                    const spmd_rule *r, const spmd_choice *c,
                                    int k);
/* The shape of this participant's results, by s; NULL: they are not of equal
 * parts.  Results in a tuple are cut in the same dimensions. */
const sd_shape *spmd_results_of(const spmd_flow *f, const hlo_inst *in,
                                const spmd_rule *r, const spmd_choice *c,
                                const hlo_sharding **s);

#endif
