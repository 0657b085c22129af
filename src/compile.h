/* The cut: program bytes in, thunk program out.  libsundog-compiler.so exports
 * sundog_compile alone; libsundog.so opens it at the first compile and never
 * closes it. */
#ifndef COMPILE_H
#define COMPILE_H

#include "base.h"
#include "device_desc.h"
#include "thunk.h"

typedef struct {
    sd_bytes program;
    const char *format; /* "mlir", "hlo", "hlo_with_config", "hlo_text" */
    size_t format_len;
    sd_bytes options;   /* CompileOptionsProto; empty: defaults */
    const device_desc *device;
} compile_request;

typedef struct {
    sd_pool *pool;      /* NULL: this thread alone */
    sd_shelf *shelf;    /* for what compiles may share; NULL: nothing */
    const sd_options *env; /* NULL: read from the environment */
    sd_stop stop;       /* asked NULL: nobody ends it */
    int64_t memory;     /* of the machine; 0: asked for, which reads a file */
} compile_services;

typedef sd_status (*compile_fn)(const compile_request *rq,
                                const compile_services *sv,
                                thunk_program **out);
__attribute__((visibility("default")))
sd_status sundog_compile(const compile_request *rq, const compile_services *sv,
                         thunk_program **out);
/* Which build this is; libsundog.so asks before its first call. */
__attribute__((visibility("default"))) extern const char sundog_interface[];

#endif
