/* Plans that are made well, broken by hand and refused. */
#ifndef PLAN_BROKEN_H
#define PLAN_BROKEN_H

#include "hlo_written.h"
#include "passes.h"
#include "plan_mem.h"
#include "want_error.h"

static inline plan *plan_on(sd_arena *a, const char *text, const char *device)
{
    device_desc *dev = sd_arena_new(a, device_desc);
    sd_options opt = {0};
    hlo_module *m = parse_text(a, text);
    plan *p;

    assert_true(device_desc_of_name(device, dev));
    want_success(hlo_optimize(m, dev, &opt, NULL, NULL));
    want_success(plan_make(a, m, dev, &opt, &p));
    want_success(plan_verify(p));
    return p;
}

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
