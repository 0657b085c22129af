/* xpu_engine: what runs library calls.  An engine is one library that was
 * found at run time; xpu_lib.c has the table of those that are looked for.
 * Inside xpu_lib only: xpu_lib.h is what others see. */
#ifndef XPU_ENGINE_H
#define XPU_ENGINE_H

#include "xpu_lib.h"

typedef struct xpu_engine_row xpu_engine_row;

/* The engines of one library, which share their code. */
typedef struct {
    /* `said` (SAID bytes) is what was found, "onednn 2.6.3", or why nothing:
     * then *out stays NULL.  pool: xpu_lib_open's.  An error: host memory is gone. */
    sd_status (*open)(const xpu_engine_row *row, sd_pool *pool, void **out,
                      char *said);
    void (*close)(void *engine);
    /* Beside its row's, the device_lib bits of what it can here. */
    uint64_t (*can)(const void *engine);
    /* Results are written on return; any thread. */
    sd_status (*run)(void *engine, const thunk *t, void *const *ptr);
} xpu_engine_kind;
extern const xpu_engine_kind xpu_onednn, xpu_lapack;

enum { XPU_ENGINE_SAID = 80 };

struct xpu_engine_row {
    uint64_t lib; /* device_lib bit: the first row that opens is its engine */
    const xpu_engine_kind *kind;
    const char *name;
    const char *file;    /* soname; or, with a `*`, a pattern of files beside
                            Python's packages */
    int version;         /* oneDNN: of its API */
    const char *prefix;  /* LAPACK: of its symbols */
    const char *threads; /* LAPACK: function that sets their number; or NULL */
};

/* The row's file: by its name as the loader finds it, or in a Python
 * environment. */
void *xpu_engine_find(const xpu_engine_row *row);

/* What OpenMP's runtime is to find in the environment when an engine loads it;
 * `all` NULL: nothing was lent. */
typedef struct { char **all; size_t at; } xpu_engine_env;
xpu_engine_env xpu_engine_env_lend(void);
void xpu_engine_env_take_back(xpu_engine_env e);

#endif
