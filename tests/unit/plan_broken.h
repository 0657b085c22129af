/* Plans that are made well, broken by hand and refused. */
#ifndef PLAN_BROKEN_H
#define PLAN_BROKEN_H

#include "plan_made.h"
#include "plan_mem.h"

static inline void want_broken(const char *text, const char *device,
                               void (*break_it)(plan *p), const char *why)
{
    sd_arena *a = sd_arena_create();
    plan *p = plan_on(a, text, device);

    break_it(p);
    want_refusal(plan_verify(p), SD_INTERNAL, why);
    plan_destroy(p);
    sd_arena_destroy(a);
}

#endif
