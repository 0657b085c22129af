/* What the tests of the plugin share.  They see it as a framework does:
 * libsundog.so opened by path, every call through the table.  Between the tests
 * and the plugin stands a table of our own (plugin_test.c) that passes each
 * struct on at the size of the present mode, with a canary behind it and
 * rubbish in the fields that are to be written, and counts calls. */
#ifndef PLUGIN_TEST_H
#define PLUGIN_TEST_H

#include "pjrt_abi.h"
#include "saved_by_hand.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

extern const char *library;       /* its path */
extern const PJRT_Api *plugin;    /* its own table */
extern const PJRT_Api *api;       /* what tests call */
extern PJRT_Client *client;
extern PJRT_Device *device;
extern PJRT_Memory *memory, *pinned, *unpinned;

typedef enum { SIZE_NOW, SIZE_0_112, SIZE_LEAST, SIZE_LONG, SIZE_COUNT } size_mode;
extern size_mode mode;

/* ---- the functions ---- */

typedef struct { const char *name; size_t at, bytes; } field;
/* What a second call with the same arguments does. */
typedef enum { SAME, AGAIN, NEW, ONCE, ENDS, NEVER } repeat;
typedef enum { NONE, FINE, REFUSED } when_deleted;
typedef PJRT_Error *(*function)(void *);
typedef struct {
    const char *name;
    size_t least, v112, now;
    field needs[6], gives[32];
    struct { const char *name; size_t at, count_at; int nempty; } lists[8];
    bool tells; /* returns nothing */
    const char *row; /* its name in test_plugin.def; NULL: not there */
    repeat repeat;
    when_deleted deleted;
    function call; /* the plugin's */
    int nok, nfailed;
} function_row;
extern function_row functions[];
extern const int nfunction;

/* Fills `plugin`, `api` and the rows. */
void plugin_test_open(const PJRT_Api *a);
const void *plugin_extension(PJRT_Extension_Type type); /* with checks, too */

/* ---- calling ---- */

/* NULL of a function that returns nothing. */
PJRT_Error *call_plugin(const function_row *f, void *args);

/* v: its arguments; fails the test unless it succeeds. */
#define DO(v, name, ...) \
    PJRT_##name##_Args v = {.struct_size = PJRT_##name##_Args_STRUCT_SIZE, \
                            __VA_ARGS__}; \
    ok(api->PJRT_##name(&v), #name)
/* Fails unless it fails so. */
#define BAD(code, says, name, ...) \
    wrong(api->PJRT_##name(&(PJRT_##name##_Args){ \
              .struct_size = PJRT_##name##_Args_STRUCT_SIZE, __VA_ARGS__}), \
          PJRT_Error_Code_##code, says)

void ok(PJRT_Error *e, const char *what);
/* An error of that code whose message holds `says`; takes it. */
void wrong(PJRT_Error *e, PJRT_Error_Code code, const char *says);
void await(PJRT_Event *event); /* both take it */
void await_error(PJRT_Event *event, PJRT_Error_Code code, const char *says);
bool is_ready(PJRT_Event *event);

/* ---- buffers ---- */

PJRT_Error *put(PJRT_Buffer_Type type, const void *data, const int64_t *dims,
                size_t rank, const int64_t *strides, int semantics,
                PJRT_Buffer **out);
PJRT_Buffer *put_f32(const float *data, int64_t n);
PJRT_Error *get(PJRT_Buffer *b, void *dst, size_t bytes,
                PJRT_Buffer_MemoryLayout *layout);
void holds_f32(PJRT_Buffer *b, const float *want, int n);
/* Its ready event (fresh). */
PJRT_Event *ready_event(PJRT_Buffer *b);
void destroy(PJRT_Buffer *b);
void delete(PJRT_Buffer *b);
bool is_deleted(PJRT_Buffer *b);
bool is_read_in_place(PJRT_Buffer *b);
PJRT_Buffer_MemoryLayout tiled(const int64_t *minor_to_major, size_t rank);

/* ---- programs ---- */

PJRT_Error *load(const sd_buf *b, PJRT_LoadedExecutable **out);
PJRT_LoadedExecutable *program(int n, bool donate);
void unload(PJRT_LoadedExecutable *l);
/* One run on one device; waits for its end. */
PJRT_Error *execute(PJRT_LoadedExecutable *l, PJRT_Buffer **arg, size_t n,
                    PJRT_Buffer **out, int64_t keep);
/* The same without waiting. */
PJRT_Error *run(PJRT_LoadedExecutable *l, PJRT_Buffer **arg, size_t n,
                PJRT_Buffer **out, PJRT_ExecuteOptions *o, PJRT_Event **done);
PJRT_Error *start(PJRT_LoadedExecutable *l, PJRT_Buffer **arg, size_t n,
                  PJRT_Buffer **out, int launch, PJRT_Event **done);

/* ---- the themes: each file's tests ---- */

#define THEMES(X) \
    X(table) X(client) X(buffer) X(create) X(async) X(event) X(run) X(stream) \
    X(executable) X(options) X(topology) X(extension) X(own) X(profiler) X(empty) \
    X(life)
#define X(name) \
    const struct CMUnitTest *theme_##name(size_t *n);
THEMES(X)
#undef X
#define TESTS(name, ...) \
    const struct CMUnitTest *theme_##name(size_t *n) \
    { \
        static const struct CMUnitTest tests[] = {__VA_ARGS__}; \
        *n = SD_COUNTOF(tests); \
        return tests; \
    }
#define T(f) cmocka_unit_test(f)

#endif
