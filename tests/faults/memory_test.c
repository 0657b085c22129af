/* Scenes, what ends with them, and the usual calls. */
#include "memory_test.h"

#include "fail_alloc.h"

#include <unistd.h>

enum { MOST_KEPT = 128 };

const PJRT_Api *api;
PJRT_Client *client;
PJRT_Device *device, *last;
const float numbers[1024] = {1, 2, 3, 4};
bool computes;

static struct {
    void *what;
    void (*end)(void *what);
} kept[MOST_KEPT];
static int nkept;

/* ---- errors ---- */

static PJRT_Error_Code code_of(PJRT_Error *e)
{
    ARGS(a, Error_GetCode, .error = e);

    api->PJRT_Error_GetCode(&a);
    return a.code;
}

static void end_error(PJRT_Error *e)
{
    ARGS(a, Error_Destroy, .error = e);

    api->PJRT_Error_Destroy(&a);
}

void take_error(PJRT_Error *e, const char *what)
{
    ARGS(text, Error_Message, .error = e);

    api->PJRT_Error_Message(&text);
    if (code_of(e) != PJRT_Error_Code_RESOURCE_EXHAUSTED || !text.message_size)
        fail_msg("%s: code %d: %.*s", what, (int)code_of(e),
                 (int)text.message_size, text.message);
    end_error(e);
}

PJRT_Error *meant(PJRT_Error *e, PJRT_Error_Code code)
{
    if (!e || code_of(e) != code)
        return e;
    end_error(e);
    return NULL;
}

/* ---- events: told once, and awaited ---- */

static void on_ready(PJRT_Error *e, void *told)
{
    if (e)
        end_error(e);
    ++*(_Atomic int *)told;
}

PJRT_Error *await(PJRT_Event *event)
{
    _Atomic int told = 0;
    ARGS(then, Event_OnReady, .event = event, .callback = on_ready,
         .user_arg = (void *)&told);
    ARGS(wait, Event_Await, .event = event);
    ARGS(end, Event_Destroy, .event = event);
    PJRT_Error *e = api->PJRT_Event_OnReady(&then), *st;
    int expected = e ? 0 : 1;

    st = api->PJRT_Event_Await(&wait);
    while (told < expected)
        usleep(100);
    assert_int_equal(told, expected);
    api->PJRT_Event_Destroy(&end);
    if (e && st) {
        take_error(e, "OnReady");
        return st;
    }
    return e ? e : st;
}

/* ---- scenes ---- */

void keep(void *what, void (*end)(void *what))
{
    if (!what)
        return;
    assert_true(nkept < MOST_KEPT);
    kept[nkept].what = what;
    kept[nkept++].end = end;
}

static PJRT_Error *play(scene fn, const void *ctx, uint64_t *sum)
{
    PJRT_Error *e;

    *sum = 0;
    e = fn(ctx, sum);
    while (nkept) {
        nkept--;
        kept[nkept].end(kept[nkept].what);
    }
    return e;
}

static void nothing_is_left(const char *name, long n)
{
    for (int i = 0; i < client->n; i++) {
        ARGS(a, Device_MemoryStats, .device = client->devices[i]);

        xpu_device_sync(xpu_client_device(client->x, i));
        assert_null(api->PJRT_Device_MemoryStats(&a));
        if (a.bytes_in_use)
            fail_msg("%s, request %ld: %" PRId64 " bytes are still in use",
                     name, n, a.bytes_in_use);
    }
}

static long fail_once(const char *name, scene fn, const void *ctx, bool on)
{
    uint64_t want, got;
    long n = 0, nrequest;
    PJRT_Error *e = play(fn, ctx, &want);

    if (e)
        take_error(e, name);
    assert_null(e);
    do {
        fail_alloc_arm(++n, on);
        e = play(fn, ctx, &got);
        nrequest = fail_alloc_disarm();
        if (e)
            take_error(e, name);
        else if (got != want)
            fail_msg("%s, request %ld: another result", name, n);
        nothing_is_left(name, n);
    } while (n <= nrequest);
    assert_null(play(fn, ctx, &got));
    assert_true(got == want);
    return n - 1;
}

long fail_each(const char *name, scene fn, const void *ctx)
{
    return fail_once(name, fn, ctx, false) + fail_once(name, fn, ctx, true);
}

/* ---- clients ---- */

/* A setting of each kind; the last is another plugin's. */
PJRT_Error *open_client(PJRT_Client **out)
{
    PJRT_NamedValue o[] = {
        {.name = "SUNDOG_THREADS", .type = PJRT_NamedValue_kInt64},
        {.name = "SUNDOG_PERF_MAP", .type = PJRT_NamedValue_kBool},
        {.name = "SUNDOG_LOG", .type = PJRT_NamedValue_kString},
        {.name = "of_others", .type = PJRT_NamedValue_kFloat},
    };
    ARGS(a, Client_Create, .create_options = o, .num_options = SD_COUNTOF(o));
    PJRT_Error *e;

    for (size_t i = 0; i < SD_COUNTOF(o); i++)
        o[i].name_size = strlen(o[i].name);
    o[0].int64_value = 2;
    o[2].string_value = "error";
    o[2].value_size = 5;
    e = api->PJRT_Client_Create(&a);
    *out = a.client;
    return e;
}

void close_client(void *c)
{
    ARGS(a, Client_Destroy, .client = c);

    assert_null(api->PJRT_Client_Destroy(&a));
}

typedef struct {
    scene fn;
    const void *ctx;
} lone_scene;

static PJRT_Error *play_alone(const void *ctx, uint64_t *sum)
{
    const lone_scene *s = ctx;
    PJRT_Client *whole = client, *mine;
    PJRT_Error *e = open_client(&mine);

    if (e)
        return e;
    keep(mine, close_client);
    use_client(mine);
    e = s->fn(s->ctx, sum);
    use_client(whole);
    return e;
}

long fail_each_alone(const char *name, scene fn, const void *ctx)
{
    return fail_once(name, play_alone, &(lone_scene){fn, ctx}, false);
}

void use_client(PJRT_Client *c)
{
    client = c;
    device = c->devices[0];
    last = c->devices[c->n - 1];
}

/* ---- the usual calls ---- */

static void end_buffer(void *b)
{
    ARGS(a, Buffer_Destroy, .buffer = b);

    assert_null(api->PJRT_Buffer_Destroy(&a));
}

static void end_executable(void *e)
{
    ARGS(a, Executable_Destroy, .executable = e);

    assert_null(api->PJRT_Executable_Destroy(&a));
}

static void end_loaded(void *l)
{
    ARGS(a, LoadedExecutable_Destroy, .executable = l);

    assert_null(api->PJRT_LoadedExecutable_Destroy(&a));
}

static void end_event(void *e)
{
    ARGS(a, Event_Destroy, .event = e);

    assert_null(api->PJRT_Event_Destroy(&a));
}

void keep_event(PJRT_Event *e)
{
    keep(e, end_event);
}

void keep_buffer(PJRT_Buffer *b)
{
    keep(b, end_buffer);
}

void keep_executable(PJRT_Executable *e)
{
    keep(e, end_executable);
}

PJRT_Error *put(sd_dtype t, int rank, const int64_t *dim, const void *data,
                PJRT_HostBufferSemantics semantics, PJRT_Buffer **out)
{
    ARGS(a, Client_BufferFromHostBuffer, .client = client, .data = data,
         .type = (PJRT_Buffer_Type)sd_dtype_table[t].pjrt, .dims = dim,
         .num_dims = (size_t)rank, .device = device,
         .host_buffer_semantics = semantics);
    PJRT_Error *e = api->PJRT_Client_BufferFromHostBuffer(&a);

    if (e)
        return e;
    keep_buffer(*out = a.buffer);
    return await(a.done_with_host_buffer);
}

PJRT_Error *get(PJRT_Buffer *b, uint64_t bytes, uint64_t *sum)
{
    static char room[1 << 22];
    ARGS(a, Buffer_ToHostBuffer, .src = b, .dst = room, .dst_size = bytes);
    PJRT_Error *e;

    assert_true(bytes <= sizeof room);
    if ((e = api->PJRT_Buffer_ToHostBuffer(&a)) || (e = await(a.event)))
        return e;
    *sum = sd_hash(room, bytes, *sum);
    return NULL;
}

PJRT_Error *get_result(PJRT_Buffer *b, uint64_t bytes, uint64_t *sum)
{
    uint64_t whatever = 0;

    return get(b, bytes, computes ? sum : &whatever);
}

PJRT_Error *ready(PJRT_Buffer *b)
{
    ARGS(a, Buffer_ReadyEvent, .buffer = b);
    PJRT_Error *e = api->PJRT_Buffer_ReadyEvent(&a);

    return e ? e : await(a.event);
}

PJRT_Error *load(const sd_buf *saved, PJRT_LoadedExecutable **out)
{
    ARGS(a, Executable_DeserializeAndLoad, .client = client,
         .serialized_executable = saved->at,
         .serialized_executable_size = saved->len);
    PJRT_Error *e = api->PJRT_Executable_DeserializeAndLoad(&a);

    if (!e)
        keep(*out = a.loaded_executable, end_loaded);
    return e;
}

PJRT_Error *start(PJRT_LoadedExecutable *l, PJRT_Buffer **args, size_t narg,
                  PJRT_Buffer **outs, size_t nout, PJRT_ExecuteOptions *o,
                  PJRT_Event **done)
{
    PJRT_ExecuteOptions plain = {.struct_size =
                                     PJRT_ExecuteOptions_STRUCT_SIZE};
    PJRT_Buffer *const *list = args;
    ARGS(a, LoadedExecutable_Execute, .executable = l,
         .options = o ? o : &plain, .argument_lists = &list, .num_devices = 1,
         .num_args = narg, .output_lists = &outs,
         .device_complete_events = done);
    PJRT_Error *e = api->PJRT_LoadedExecutable_Execute(&a);

    for (size_t i = 0; !e && i < nout; i++) /* a failed call gives nothing */
        keep_buffer(outs[i]);
    return e;
}

PJRT_Error *execute(PJRT_LoadedExecutable *l, PJRT_Buffer **args, size_t narg,
                    PJRT_Buffer **outs, size_t nout, PJRT_ExecuteOptions *o)
{
    PJRT_Event *done = NULL;
    PJRT_Error *e = start(l, args, narg, outs, nout, o, &done);

    return e ? e : await(done);
}

const void *extension(PJRT_Extension_Type type)
{
    for (PJRT_Extension_Base *x = api->extension_start; x; x = x->next)
        if (x->type == type)
            return x;
    fail_msg("no extension %d", (int)type);
    return NULL;
}
