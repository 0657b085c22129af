/* The command-line tool: one function a command, and what they share. */
#ifndef TOOLS_SUNDOG_H
#define TOOLS_SUNDOG_H

#include "base.h"
#include "compile.h"
#include "hlo.h"
#include "xpu.h"

typedef struct {
    const char *target; /* --target=NAME, NULL: none given */
    const char *passes; /* --passes=a,b */
    const char *to;     /* --to=FORMAT */
    const char *out;    /* --out=PATH */
    uint64_t seed;      /* --seed=N */
    const char *json;   /* --json=FILE */
    const char *only;   /* --only=a,b */
    const char *stage;  /* --stage=NAME */
    uint64_t devices;   /* --devices=N; 0: as the program says */
    uint64_t random;    /* --random=N; 0: none */
    bool check;         /* --check */
    bool plan;          /* --plan */
    bool quick;         /* --quick */
    bool time;          /* --time */
    bool *bad;          /* what was looked for is there, and is bad: exit
                           status 1 without another message */
    int nfile;
    char **file;
} tool_args;

sd_status tool_opt(const tool_args *t);
sd_status tool_passes(const tool_args *t);
sd_status tool_dump(const tool_args *t);
sd_status tool_mlir(const tool_args *t);
sd_status tool_compile(const tool_args *t);
sd_status tool_run(const tool_args *t);
sd_status tool_spmd(const tool_args *t);
sd_status tool_devices(const tool_args *t);
sd_status tool_selftest(const tool_args *t);

/* Which build this is, for whoever reads a report: compiler.c. */
extern const char tool_build[];
/* The path of one of our shared objects: compiler.c. */
void tool_library(const char *name, char *path, size_t size);
/* sundog_compile of the library that belongs to this tool. */
sd_status tool_compiler(compile_fn *out);

sd_status tool_module(sd_arena *a, const char *path, hlo_module **out);
/* The module in a file: MLIR (as text it is NAME.mlir), HLO text or protobuf,
 * told apart by its first bytes.  *format gets what PJRT would call it. */
sd_status tool_read(const char *path, sd_buf *bytes, const char **format);

/* .npy, version 1.0, C order. */
sd_status npy_write(const char *path, sd_dtype t, int rank, const int64_t *dim,
                    const void *data, size_t bytes);
/* The data start at *at in file; shape in dim (SD_MAX_RANK). */
sd_status npy_read(const char *path, sd_buf *file, size_t *at, sd_dtype *t,
                   int *rank, int64_t *dim);

#endif
