/* The table between the tests and the plugin, and what the tests share. */
#include "plugin_test.h"

#include "pjrt_sundog.h"

#include <assert.h>

const char *library;
const PJRT_Api *plugin, *api;
PJRT_Client *client;
PJRT_Device *device;
PJRT_Memory *memory, *pinned, *unpinned;
size_mode mode;

/* ---- the rows ---- */

function_row functions[] = {
#define NEEDS(...) {__VA_ARGS__}
#define GIVES(...) {__VA_ARGS__}
#define LISTS(...) {__VA_ARGS__}
#define CALL(n, end, end112, end_now, in, out, list) \
    {.name = #n, \
     .least = end, \
     .v112 = end112, \
     .now = end_now, \
     .needs = in, \
     .gives = out, \
     .lists = list},
#define EXTRA CALL
#define TELL(n, end, end112, end_now, in, out, list) \
    {.name = #n, \
     .least = end, \
     .v112 = end112, \
     .now = end_now, \
     .gives = out, \
     .tells = true},
#include "pjrt_calls.def"
#undef CALL
#undef EXTRA
#undef TELL
};
const int nfunction = SD_COUNTOF(functions);

enum {
#define CALL(n, ...) AT_##n,
#define EXTRA        CALL
#define TELL         CALL
#include "pjrt_calls.def"
#undef CALL
#undef EXTRA
#undef TELL
};

static const struct {
    const char *name;
    repeat repeat;
    when_deleted deleted;
} rows[] = {
#define ROW(name, repeat, deleted) {#name, repeat, deleted},
#include "test_plugin.def"
#undef ROW
};

/* ---- one call ---- */

enum { MOST = 320, GUARD = 64, CANARY = 0xa5 };

static size_t size_of(const function_row *f)
{
    switch (mode) {
    case SIZE_0_112:
        return f->v112;
    case SIZE_LEAST:
        return f->least;
    case SIZE_LONG:
        return f->now + GUARD / 2; /* of a caller to come */
    default:
        return f->now;
    }
}

static void prepare(const function_row *f, uint8_t *room, const void *args)
{
    size_t size = size_of(f), known = SD_MIN(size, f->now);

    assert_true(f->now + GUARD <= MOST);
    memset(room, CANARY, MOST);
    memcpy(room, args, known);
    memcpy(room, &size, sizeof size);
    for (const field *g = f->gives; g->name; g++)
        if (g->at + g->bytes <= known)
            memset(room + g->at, CANARY, g->bytes);
}

/* A list of length 0 need not be anywhere. */
static void forget_empty_lists(function_row *f, uint8_t *room)
{
    size_t count, size = SD_MIN(size_of(f), f->now);

    for (int i = 0; i < (int)SD_COUNTOF(f->lists) && f->lists[i].name; i++) {
        if (f->lists[i].at + sizeof(void *) > size ||
            f->lists[i].count_at + sizeof count > size)
            continue;
        memcpy(&count, room + f->lists[i].count_at, sizeof count);
        if (count)
            continue;
        memset(room + f->lists[i].at, 0, sizeof(void *));
        f->lists[i].nempty++;
    }
}

static void check_canary(const function_row *f, const uint8_t *room)
{
    for (size_t i = SD_MIN(size_of(f), f->now); i < MOST; i++)
        if (room[i] != CANARY)
            fail_msg("%s wrote byte %zu of a struct of %zu", f->name, i,
                     size_of(f));
}

static void check_written(const function_row *f, const uint8_t *room)
{
    for (const field *g = f->gives; g->name; g++) {
        size_t i = 0;

        if (g->at + g->bytes > SD_MIN(size_of(f), f->now))
            continue;
        while (i < g->bytes && room[g->at + i] == CANARY)
            i++;
        if (i == g->bytes)
            fail_msg("%s did not write %s", f->name, g->name);
    }
}

PJRT_Error *call_plugin(const function_row *f, void *args)
{
    void (*tell)(void *);

    if (!f->tells)
        return f->call(args);
    memcpy(&tell, &f->call, sizeof tell);
    tell(args);
    return NULL;
}

/* The same question again has the same answer. */
static void ask_again(const function_row *f, const void *args,
                      const uint8_t *first)
{
    _Alignas(16) uint8_t room[MOST];

    prepare(f, room, args);
    ok(call_plugin(f, room), f->name);
    for (const field *g = f->gives; g->name; g++)
        if (memcmp(room + g->at, first + g->at, g->bytes))
            fail_msg("%s answers %s differently the second time", f->name,
                     g->name);
}

static PJRT_Error *guarded(int at, void *args)
{
    function_row *f = &functions[at];
    _Alignas(16) uint8_t room[MOST];
    PJRT_Error *e;

    prepare(f, room, args);
    forget_empty_lists(f, room);
    e = call_plugin(f, room);
    check_canary(f, room);
    if (e) {
        f->nfailed++;
        return e;
    }
    f->nok++;
    check_written(f, room);
    if (f->repeat == SAME)
        ask_again(f, args, room);
    memcpy((uint8_t *)args + sizeof(size_t), room + sizeof(size_t),
           SD_MIN(size_of(f), f->now) - sizeof(size_t));
    return NULL;
}

#define CALL(n, ...) \
    static PJRT_Error *guarded_##n(void *a) \
    { \
        return guarded(AT_##n, a); \
    }
#define EXTRA CALL
#define TELL(n, ...) \
    static void guarded_##n(void *a) \
    { \
        guarded(AT_##n, a); \
    }
#include "pjrt_calls.def"
#undef CALL
#undef EXTRA
#undef TELL

static void *const guards[] = {
#define CALL(n, ...) guarded_##n,
#define EXTRA        CALL
#define TELL         CALL
#include "pjrt_calls.def"
#undef CALL
#undef EXTRA
#undef TELL
};

/* ---- the tables ---- */

enum {
    FIRST_SLOT = 40,
    API_SLOTS = (sizeof(PJRT_Api) - FIRST_SLOT) / 8,
    MOST_EXTENSIONS = 16
};

static struct {
    PJRT_Extension_Base base;
    void *slot[32];
} extensions[MOST_EXTENSIONS];

static void take_row(function_row *f, void *real)
{
    memcpy(&f->call, &real, sizeof real);
    for (size_t i = 0; i < SD_COUNTOF(rows); i++)
        if (!strcmp(rows[i].name, f->name)) {
            f->row = rows[i].name;
            f->repeat = rows[i].repeat;
            f->deleted = rows[i].deleted;
        }
}

void plugin_test_open(const PJRT_Api *a)
{
    static PJRT_Api table;
    int at = 0, n = 0;

    plugin = a;
    table = *a;
    for (; at < API_SLOTS; at++) {
        void **slot = (void **)((char *)&table + FIRST_SLOT) + at;

        take_row(&functions[at], *slot);
        *slot = guards[at];
    }
    for (const PJRT_Extension_Base *e = a->extension_start; e; e = e->next) {
        size_t slots = (e->struct_size - sizeof *e) / sizeof(void *);

        if (e->type == PJRT_Extension_Type_Profiler ||
            e->type == PJRT_SUNDOG_TYPE)
            slots = 0; /* test_plugin_profiler.c; our own: test_plugin_own.c */
        assert(n < MOST_EXTENSIONS);
        memcpy(&extensions[n], e, e->struct_size);
        for (size_t i = 0; i < slots; i++, at++) {
            take_row(&functions[at], extensions[n].slot[i]);
            extensions[n].slot[i] = guards[at];
        }
        n++;
    }
    assert(at == nfunction);
    api = &table;
}

const void *plugin_extension(PJRT_Extension_Type type)
{
    for (int i = 0; i < MOST_EXTENSIONS; i++)
        if (extensions[i].base.struct_size && extensions[i].base.type == type)
            return &extensions[i];
    fail_msg("no extension %d", (int)type);
    return NULL;
}

/* ---- errors, events ---- */

void ok(PJRT_Error *e, const char *what)
{
    PJRT_Error_Message_Args a = {
        .struct_size = PJRT_Error_Message_Args_STRUCT_SIZE, .error = e};

    if (!e)
        return;
    plugin->PJRT_Error_Message(&a);
    fail_msg("%s: %.*s", what, (int)a.message_size, a.message);
}

void wrong(PJRT_Error *e, PJRT_Error_Code code, const char *says)
{
    char text[1000];

    if (!e)
        fail_msg("success, where an error should say '%s'", says);
    DO(c, Error_GetCode, .error = e);
    PJRT_Error_Message_Args m = {
        .struct_size = PJRT_Error_Message_Args_STRUCT_SIZE, .error = e};
    PJRT_Error_Destroy_Args d = {
        .struct_size = PJRT_Error_Destroy_Args_STRUCT_SIZE, .error = e};

    api->PJRT_Error_Message(&m);
    snprintf(text, sizeof text, "%.*s", (int)m.message_size, m.message);
    if (!strstr(text, says))
        fail_msg("'%s' does not say '%s'", text, says);
    if (c.code != code)
        fail_msg("'%s' has code %d, not %d", text, (int)c.code, (int)code);
    api->PJRT_Error_Destroy(&d);
}

void await(PJRT_Event *event)
{
    DO(w, Event_Await, .event = event);
    DO(d, Event_Destroy, .event = event);
}

void await_error(PJRT_Event *event, PJRT_Error_Code code, const char *says)
{
    PJRT_Event_Await_Args w = {.struct_size = PJRT_Event_Await_Args_STRUCT_SIZE,
                               .event = event};

    wrong(api->PJRT_Event_Await(&w), code, says);
    DO(d, Event_Destroy, .event = event);
}

bool is_ready(PJRT_Event *event)
{
    DO(a, Event_IsReady, .event = event);
    return a.is_ready;
}

/* ---- buffers ---- */

PJRT_Error *put(PJRT_Buffer_Type type, const void *data, const int64_t *dims,
                size_t rank, const int64_t *strides, int semantics,
                PJRT_Buffer **out)
{
    PJRT_Client_BufferFromHostBuffer_Args a = {
        .struct_size = PJRT_Client_BufferFromHostBuffer_Args_STRUCT_SIZE,
        .client = client,
        .data = data,
        .type = type,
        .dims = dims,
        .num_dims = rank,
        .byte_strides = strides,
        .num_byte_strides = strides ? rank : 0,
        .host_buffer_semantics = (PJRT_HostBufferSemantics)semantics,
        .memory = memory};
    PJRT_Error *e = api->PJRT_Client_BufferFromHostBuffer(&a);

    if (!e) {
        await(a.done_with_host_buffer);
        *out = a.buffer;
    }
    return e;
}

PJRT_Buffer *put_f32(const float *data, int64_t n)
{
    PJRT_Buffer *b = NULL;

    ok(put(PJRT_Buffer_Type_F32, data, &n, 1, NULL, 0, &b), "put");
    return b;
}

PJRT_Error *get(PJRT_Buffer *b, void *dst, size_t bytes,
                PJRT_Buffer_MemoryLayout *layout)
{
    PJRT_Buffer_ToHostBuffer_Args a = {
        .struct_size = PJRT_Buffer_ToHostBuffer_Args_STRUCT_SIZE,
        .src = b,
        .host_layout = layout,
        .dst = dst,
        .dst_size = bytes};
    PJRT_Error *e = api->PJRT_Buffer_ToHostBuffer(&a);

    if (!e)
        await(a.event);
    return e;
}

void holds_f32(PJRT_Buffer *b, const float *want, int n)
{
    float is[64] = {0};

    assert_true(n <= 64);
    ok(get(b, is, (size_t)n * sizeof *is, NULL), "get");
    assert_memory_equal(is, want, (size_t)n * sizeof *is);
}

PJRT_Event *ready_event(PJRT_Buffer *b)
{
    DO(a, Buffer_ReadyEvent, .buffer = b);
    return a.event;
}

void destroy(PJRT_Buffer *b)
{
    DO(a, Buffer_Destroy, .buffer = b);
}

void delete(PJRT_Buffer *b)
{
    DO(a, Buffer_Delete, .buffer = b);
}

bool is_deleted(PJRT_Buffer *b)
{
    DO(a, Buffer_IsDeleted, .buffer = b);
    return a.is_deleted;
}

bool is_read_in_place(PJRT_Buffer *b)
{
    DO(a, Buffer_IsOnCpu, .buffer = b);
    return a.is_on_cpu;
}

PJRT_Buffer_MemoryLayout tiled(const int64_t *minor_to_major, size_t rank)
{
    return (PJRT_Buffer_MemoryLayout){
        .struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE,
        .type = PJRT_Buffer_MemoryLayout_Type_Tiled,
        .tiled = {.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE,
                  .minor_to_major = minor_to_major,
                  .minor_to_major_size = rank}};
}

/* ---- programs ---- */

PJRT_Error *load(const sd_buf *b, PJRT_LoadedExecutable **out)
{
    PJRT_Executable_DeserializeAndLoad_Args a = {
        .struct_size = PJRT_Executable_DeserializeAndLoad_Args_STRUCT_SIZE,
        .client = client,
        .serialized_executable = b->at,
        .serialized_executable_size = b->len};
    PJRT_Error *e = api->PJRT_Executable_DeserializeAndLoad(&a);

    if (!e)
        *out = a.loaded_executable;
    return e;
}

PJRT_LoadedExecutable *program(int n, bool donate)
{
    sd_buf b = saved(n, donate);
    PJRT_LoadedExecutable *l = NULL;

    ok(load(&b, &l), "load");
    sd_buf_finish(&b);
    return l;
}

void unload(PJRT_LoadedExecutable *l)
{
    DO(a, LoadedExecutable_Destroy, .executable = l);
}

PJRT_Error *run(PJRT_LoadedExecutable *l, PJRT_Buffer **arg, size_t n,
                PJRT_Buffer **out, PJRT_ExecuteOptions *o, PJRT_Event **done)
{
    PJRT_Buffer *const *args[] = {arg};
    PJRT_Buffer **outs[] = {out};
    PJRT_LoadedExecutable_Execute_Args a = {
        .struct_size = PJRT_LoadedExecutable_Execute_Args_STRUCT_SIZE,
        .executable = l,
        .options = o,
        .argument_lists = args,
        .num_devices = 1,
        .num_args = n,
        .output_lists = outs,
        .device_complete_events = done};

    return api->PJRT_LoadedExecutable_Execute(&a);
}

PJRT_Error *execute(PJRT_LoadedExecutable *l, PJRT_Buffer **arg, size_t n,
                    PJRT_Buffer **out, int64_t keep)
{
    PJRT_Event *done[1] = {NULL};
    PJRT_ExecuteOptions o = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE,
                             .non_donatable_input_indices = &keep,
                             .num_non_donatable_input_indices = keep >= 0};
    PJRT_Error *e = run(l, arg, n, out, &o, done);

    if (!e)
        await(done[0]);
    return e;
}

PJRT_Error *start(PJRT_LoadedExecutable *l, PJRT_Buffer **arg, size_t n,
                  PJRT_Buffer **out, int launch, PJRT_Event **done)
{
    PJRT_ExecuteOptions o = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE,
                             .launch_id = launch};

    return run(l, arg, n, out, &o, done);
}
