/* target: plan -> LLVM IR -> device binaries.  Fills the plan's thunk program
 * with its binaries and entry points.  Emitters decide nothing: axes, places
 * and orders come from the plan.  One LLVM context a worker, disposed with
 * its batch. */
#ifndef TARGET_H
#define TARGET_H

#include "base.h"
#include "plan.h"

/* Receives the texts that dumps want: kind is "ir-no-opt.ll",
 * "ir-with-opt.ll", "s", "spv" or "ptx".  May be NULL; serialised by target. */
typedef void (*target_hook)(void *ctx, const char *kind, const void *data,
                            size_t bytes);

/* On success p->program is complete.  shelf: LLVM's machines, for the next
 * build; NULL: each build makes its own. */
sd_status target_build(plan *p, const sd_options *opt, sd_shelf *shelf,
                       sd_pool *pool, target_hook hook, void *ctx);
/* The IR of every kernel, built, verified and dropped: what can go wrong in
 * the emitters without the time that LLVM takes.  For fuzzers. */
sd_status target_check(const plan *p);
/* Optimised and compiled again from IR text alone (a test uses it on a dumped
 * ir-no-opt.ll): binary of the device in out. */
sd_status target_compile_ir(const device_desc *dev, const char *ir, size_t len,
                            sd_buf *out);

#endif
