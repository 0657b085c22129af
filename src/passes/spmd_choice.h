/* spmd_choice: which atoms cut which factors of an operation that has a rule;
 * see spmd_choice.c.  For the files of spmd_flow.h. */
#ifndef SPMD_CHOICE_H
#define SPMD_CHOICE_H

#include "spmd_flow.h"
#include "spmd_rule.h"

typedef struct {
    const hlo_sharding *like; /* of the same grid; NULL: nothing is cut */
    hlo_atoms cut[SPMD_MOST_FACTORS]; /* atoms that cut each factor */
    uint32_t used;  /* all of these atoms */
    uint32_t sums;  /* atoms along which operands are still to be summed, and the
                       result instead of them: the operation is linear */
    uint32_t moved; /* atoms that cut another dimension of an operand before,
                       which the operation needs whole */
} spmd_choice;

/* False: nothing is cut. */
bool spmd_choose(const spmd_flow *f, const hlo_inst *in, const spmd_rule *r,
                 spmd_choice *c);
/* The sharding of a value whose dimension d belongs to factor[d] (-1: none). */
const hlo_sharding *spmd_factors_sharding(const spmd_flow *f,
                                          const spmd_choice *c,
                                          const int8_t *factor, int rank);
/* Dimensions of operand 0 that are cut and need more than the parts: masks of
 * those in which other parts are read, and of those with places known at run
 * time; the one of a running reduction, or -1. */
typedef struct {
    uint32_t across, picked;
    int running;
} spmd_special;
spmd_special spmd_special_of(const spmd_rule *r, const spmd_choice *c,
                             int rank);
/* The atoms along which partial results are still to be combined. */
hlo_atoms spmd_partial_along(const spmd_rule *r, const spmd_choice *c);
/* s as the sharding of a result whose combining can wait until somebody wants
 * it; s itself if it cannot. */
const hlo_sharding *spmd_waiting(const spmd_flow *f, const spmd_rule *r,
                                 const spmd_choice *c, const hlo_sharding *s);
/* The sharding that the result is given: as spmd_waiting, but a sum that users
 * want in smaller parts is made in these at once. */
const hlo_sharding *spmd_result_by(const spmd_flow *f, const hlo_inst *in,
                                   const spmd_rule *r, const spmd_choice *c,
                                   const hlo_sharding *s);
/* The sharding that the operation takes operand k in. */
const hlo_sharding *spmd_operand_by(const spmd_flow *f, const hlo_inst *in,
                                    const spmd_rule *r, const spmd_choice *c,
                                    int k);
/* The shape of this participant's results, whose shardings go to s[]; NULL:
 * parts would not be equal.  Results of a tuple are cut in the same
 * dimensions. */
const sd_shape *spmd_results_of(const spmd_flow *f, const hlo_inst *in,
                                const spmd_rule *r, const spmd_choice *c,
                                const hlo_sharding **s);

#endif
