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

/* A custom call that is to be partitioned: its operands and results (of one
 * tuple, if it is one) by ShapeProto, and OpSharding, in which they would be
 * cut; in a program of several participants. */
typedef struct { sd_bytes shape, sharding; } compile_aval;
typedef struct {
    const char *target;
    sd_bytes config;
    int narg;
    const compile_aval *arg;
    compile_aval result;
} compile_partition;
typedef struct {
    sd_bytes body;       /* "mlir": what each participant runs of its parts */
    const sd_bytes *arg; /* in which it wants them: OpSharding */
    sd_bytes result;
} compile_parted;
typedef sd_status (*compile_parted_fn)(void *ctx, const compile_parted *p);
typedef struct {
    bool (*knows)(const char *target);
    /* Hands the answer to `take`; it lives as long as that call. */
    sd_status (*partition)(const compile_partition *c, compile_parted_fn take,
                           void *ctx);
} compile_partitioner;

typedef struct {
    sd_pool *pool;      /* NULL: this thread alone */
    sd_shelf *shelf;    /* for what compiles may share; NULL: nothing */
    const sd_options *env; /* NULL: read from the environment */
    sd_stop stop;       /* asked NULL: nobody ends it */
    int64_t memory;     /* of the machine; 0: asked for, which reads a file */
    const compile_partitioner *partitioner; /* NULL: there is none */
    bool *undumped;     /* did a dump file stay unwritten?  NULL: nobody asks */
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
