/* The reference: values of whole programs, slow and obviously right, which
 * devices and passes are judged by.  No product has it: folding needs no more
 * than hlo_eval.h, on which this stands. */
#ifndef REF_H
#define REF_H

#include "hlo.h"

sd_status ref_eval(sd_arena *a, const hlo_comp *c, const hlo_value *arg,
                   int narg, hlo_value *out);
/* Runs all participants of the module at once: arg[p][i] is parameter i of
 * participant p, out[p] its result.  It is an error if some members of a group
 * come to a collective and others, in another branch, do not. */
sd_status ref_eval_all(sd_arena *a, const hlo_comp *c,
                       const hlo_value *const *arg, int narg, hlo_value *out);
/* One instruction. */
sd_status ref_eval_inst(sd_arena *a, const hlo_inst *in, const hlo_value *arg,
                        hlo_value *out);

#endif
