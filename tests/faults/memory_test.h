/* Memory that runs out: what the files of test_memory share.
 *
 * A scene is a function that uses the plugin.  It runs once as it is, and then
 * once for each request of memory that it makes, which fails.  It returns the
 * first error that it meets, which must be a lack of memory; without one its
 * results are those of the first run.  What it makes goes to keep(), which ends
 * it after the scene, however far that came. */
#ifndef MEMORY_TEST_H
#define MEMORY_TEST_H

#include "pjrt.h"

#include <setjmp.h>

#include <cmocka.h>

extern const PJRT_Api *api;
extern const float numbers[1024]; /* to put */
extern bool computes; /* a fake device's kernels leave memory as it was */
extern PJRT_Client *client;
extern PJRT_Device *device, *last; /* the client's first and its last */

#define ARGS(name, type, ...) \
    PJRT_##type##_Args name = {.struct_size = PJRT_##type##_Args_STRUCT_SIZE, \
                               __VA_ARGS__}

/* ---- scenes ---- */

typedef PJRT_Error *(*scene)(const void *ctx, uint64_t *sum);
/* How many requests failed in turn, alone and with all after them. */
long fail_each(const char *name, scene fn, const void *ctx);
/* The same in a client of its own, where every thread, list and scratch is the
 * first; alone only. */
long fail_each_alone(const char *name, scene fn, const void *ctx);
PJRT_Error *open_client(PJRT_Client **out);
void close_client(void *c);
void use_client(PJRT_Client *c);

void take_error(PJRT_Error *e, const char *what); /* a lack of memory */
/* The same error, but one of that code is as it should be: NULL. */
PJRT_Error *meant(PJRT_Error *e, PJRT_Error_Code code);
PJRT_Error *await(PJRT_Event *event); /* takes it */

/* ---- what ends with its scene, the last first ---- */

void keep(void *what, void (*end)(void *what)); /* what may be NULL */
void keep_buffer(PJRT_Buffer *b);
void keep_executable(PJRT_Executable *e);
void keep_event(PJRT_Event *e);

/* ---- the usual calls; what they make is kept ---- */

PJRT_Error *put(sd_dtype t, int rank, const int64_t *dim, const void *data,
                PJRT_HostBufferSemantics semantics, PJRT_Buffer **out);
PJRT_Error *get(PJRT_Buffer *b, uint64_t bytes, uint64_t *sum);
/* Of kernels: counts where they compute. */
PJRT_Error *get_result(PJRT_Buffer *b, uint64_t bytes, uint64_t *sum);
PJRT_Error *ready(PJRT_Buffer *b); /* awaits its event */
PJRT_Error *load(const sd_buf *saved, PJRT_LoadedExecutable **out);
PJRT_Error *start(PJRT_LoadedExecutable *l, PJRT_Buffer **args, size_t narg,
                  PJRT_Buffer **outs, size_t nout, PJRT_ExecuteOptions *o,
                  PJRT_Event **done);
PJRT_Error *execute(PJRT_LoadedExecutable *l, PJRT_Buffer **args, size_t narg,
                    PJRT_Buffer **outs, size_t nout, PJRT_ExecuteOptions *o);
const void *extension(PJRT_Extension_Type type);

/* ---- test_memory_buffers.c ---- */

/* A buffer f32[1024] that is there already, and one that waits for another. */
typedef struct { PJRT_FulfillAliasBufferCallback *open; } promise;
PJRT_Error *put_thousand(PJRT_Buffer **out);
PJRT_Error *promise_buffer(PJRT_Buffer **out, promise *p); /* p: static */
PJRT_Error *fulfil(promise *p, PJRT_Buffer *with);

long fail_each_buffer_call(void);

/* ---- test_memory_programs.c ---- */

/* plain: saved, f32[1024] -> f32[1024], for the client's devices. */
long fail_each_program_call(const sd_buf *plain);

#endif
