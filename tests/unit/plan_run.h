/* Runs a plan without any code generator: slow, and by the letter of
 * docs/adr/0001-kernel-form.md, so that planning is tested by itself. */
#ifndef PLAN_RUN_H
#define PLAN_RUN_H

#include "plan.h"

/* arg[i], out[i]: dense arrays.  backward: outer points in falling order, which
 * must not matter. */
sd_status plan_run(const plan *p, void *const *arg, void *const *out,
                   bool backward);
sd_status plan_run_kernel(const plan_kernel *k, char **slot, bool backward);
void plan_run_sort(const plan_kernel *k, char **slot, sd_arena *a);
void plan_run_buckets(const plan_kernel *k, char **slot);
/* Function b on param[0 .. nparam) into out[0 .. nroot). */
typedef struct {
    uint8_t b[16];
} plan_run_value;
void plan_run_body(const plan_body *b, const plan_run_value *param,
                   plan_run_value *out);
/* ptr: operands, then results. */
void plan_run_libcall(const thunk *t, char **ptr);

#endif
