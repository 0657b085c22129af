/* xpu_engine: an engine is a library that was found at run time and does
 * library calls.  xpu_lib.c has the table of those that are looked for.  For
 * the files of xpu_lib only: others include xpu_lib.h. */
#ifndef XPU_ENGINE_H
#define XPU_ENGINE_H

#include "xpu_lib.h"

typedef struct xpu_engine_row xpu_engine_row;

/* The engines of one library, which share their code. */
typedef struct {
    /* Opens the row's library.  `said` (XPU_ENGINE_SAID bytes) gets what was
     * found, "onednn 2.6.3", or why nothing was, and then *out stays NULL.  An
     * error: host memory is gone. */
    sd_status (*open)(const xpu_engine_row *row, sd_pool *pool, void **out,
                      char *said);
    void (*close)(void *engine);
    /* device_lib bits of what else it can do on this machine. */
    uint64_t (*can)(const void *engine);
    /* Does a call: results are written on return; any thread. */
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

/* Opens the row's file, as the loader finds it or in a Python environment;
 * NULL: there is none. */
void *xpu_engine_find(const xpu_engine_row *row);

/* Variables that OpenMP's runtime is to find in the environment while an engine
 * loads it.  `all` NULL: the environment was not changed. */
typedef struct { char **all; size_t at; } xpu_engine_env;
xpu_engine_env xpu_engine_env_lend(void);
void xpu_engine_env_take_back(xpu_engine_env e);

#endif
