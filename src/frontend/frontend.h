/* frontend: bytes -> HLO.  Reads untrusted bytes; whatever they hold, the
 * answer is a module or a status with an offset and what was expected.  Names
 * and constants are copied into the arena: the bytes live only for the call. */
#ifndef FRONTEND_H
#define FRONTEND_H

#include "base.h"
#include "hlo.h"

/* What a compile is asked for (CompileOptionsProto), decoded. */
typedef struct {
    int nreplica, npartition;
    hlo_dims open_param, open_output; /* as a module has them */
    bool portable;
    sd_options options; /* the caller's (the environment's), overlaid with
                           debug_options and overrides */
} frontend_options;

/* format: "mlir" (VHLO bytecode or StableHLO text), "hlo" and
 * "hlo_with_config" (HloModuleProto and with its config), "hlo_text".  VHLO is
 * read from version 0.9.0 to 1.20.0, which plugin/pjrt_api.c tells frameworks. */
sd_status frontend_read(sd_arena *a, const char *format, size_t format_len,
                        sd_bytes program, hlo_module **out);
/* What each of whole's participants runs, of format "mlir"; its own number of
 * participants is not asked. */
sd_status frontend_read_part(sd_arena *a, sd_bytes program,
                             const hlo_module *whole, hlo_module **out);
sd_status frontend_read_options(sd_arena *a, sd_bytes proto,
                                frontend_options *out);

#endif
