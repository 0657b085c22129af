/* passes: HLO -> HLO.  Each pass is one function in one file, named in
 * passes.def; pipeline.c says in what order they run.  A pass cannot fail. */
#ifndef PASSES_H
#define PASSES_H

#include "base.h"
#include "device_desc.h"
#include "hlo.h"

typedef struct {
    const char *name;
    /* Was anything changed? */
    bool (*run)(hlo_module *m, const device_desc *dev);
    const char *help;
    bool needed; /* plan counts on it: SUNDOG_DISABLE_PASSES leaves it in */
} hlo_pass;
extern const hlo_pass hlo_pass_table[];
extern const int hlo_pass_count;
const hlo_pass *hlo_pass_of_name(const char *name);

/* Called before the first and after each pass that changed something; for
 * dumps.  May be NULL.  Where the verifier refuses what a pass left, it is called
 * once more, under this name instead of a pass's. */
#define HLO_LEFT_WRONG "left-wrong"
typedef void (*hlo_pass_hook)(void *ctx, const char *pass, const hlo_module *m);

/* The whole pipeline, to what plan takes: see pipeline.c for what holds of
 * the result.  UNIMPLEMENTED lists every op that nothing below can do. */
sd_status hlo_optimize(hlo_module *m, const device_desc *dev,
                       const sd_options *opt, hlo_pass_hook hook, void *ctx);

/* Cuts a module of several participants into what each runs: hlo_optimize
 * begins so, and what is cut already stays.  The hook is told after each
 * stage: spmd-import, spmd-local. */
sd_status hlo_spmd(hlo_module *m, hlo_pass_hook hook, void *ctx);

#endif
