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

/* For dumps: called before the first pass, and after each pass that changed
 * something.  May be NULL.  If the verifier refuses what a pass left, the hook
 * is called once more with this name instead of the pass's. */
#define HLO_LEFT_WRONG "left-wrong"
typedef void (*hlo_pass_hook)(void *ctx, const char *pass, const hlo_module *m);

/* The whole pipeline, to what plan takes: see pipeline.c for what holds of
 * the result.  UNIMPLEMENTED lists every op that nothing below can do. */
sd_status hlo_optimize(hlo_module *m, const device_desc *dev,
                       const sd_options *opt, hlo_pass_hook hook, void *ctx);

/* Cuts a module of several participants into the program that each of them
 * runs. hlo_optimize begins with it, and it leaves a module alone that is cut
 * already. The hook is called after each stage: spmd-import, spmd-local. */
sd_status hlo_spmd(hlo_module *m, hlo_pass_hook hook, void *ctx);

#endif
