/* Memory runs out at every place in turn: compiling, the client's start, and a
 * whole life of each skeleton program through PJRT.  Always a status, nothing
 * leaks (LeakSanitizer looks at the end, the device's count after each life),
 * and the next run is right.
 *   test_memory FOLDER    of *.hlo programs */
#include "compile.h"
#include "fail_alloc.h"
#include "pjrt.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST_PARAMS = 32, MOST_OUTPUTS = 32 };

const PJRT_Api *GetPjrtApi(void);

static const char *folder;
static const PJRT_Api *api;
static PJRT_Client *client;
static PJRT_Device *device;

#define ARGS(name, type, ...) \
    PJRT_##type##_Args name = {.struct_size = PJRT_##type##_Args_STRUCT_SIZE, \
                               __VA_ARGS__}

/* The only error that a lack of memory may end in. */
static void take_error(PJRT_Error *e, const char *what)
{
    ARGS(code, Error_GetCode, .error = e);
    ARGS(text, Error_Message, .error = e);
    ARGS(end, Error_Destroy, .error = e);

    api->PJRT_Error_GetCode(&code);
    api->PJRT_Error_Message(&text);
    if (code.code != PJRT_Error_Code_RESOURCE_EXHAUSTED || !text.message_size)
        fail_msg("%s: code %d: %.*s", what, (int)code.code,
                 (int)text.message_size, text.message);
    api->PJRT_Error_Destroy(&end);
}

/* ---- programs ---- */

static sd_status compile_text(const sd_buf *text, thunk_program **out)
{
    sd_options env = {0};
    device_desc dev;
    compile_request rq = {.program = {(const uint8_t *)text->at, text->len},
                          .format = "hlo_text",
                          .format_len = 8,
                          .device = &dev};
    compile_services sv = {.env = &env};

    if (client)
        dev = *xpu_device_desc(xpu_client_device(client->x, 0));
    else
        device_desc_of_name("host:v3", &dev);
    return sundog_compile(&rq, &sv, out);
}

static void read_text(const char *name, sd_buf *text)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_null(sd_file_read(path, text));
}

/* As PJRT_Executable_Serialize writes it. */
static void save(const char *name, sd_buf *out)
{
    PJRT_Executable *e;
    thunk_program *p;
    sd_buf text = {0};
    sd_status st;

    read_text(name, &text);
    if ((st = compile_text(&text, &p)))
        fail_msg("%s: %s", name, st->message);
    assert_null(pjrt_executable_make(p, (sd_bytes){0}, &e));
    assert_null(pjrt_executable_save(e, out));
    pjrt_executable_release(e);
    sd_buf_finish(&text);
}

/* ---- a life through PJRT ---- */

typedef struct {
    PJRT_LoadedExecutable *exe;
    PJRT_Buffer *arg[MOST_PARAMS], *out[MOST_OUTPUTS];
    PJRT_Event *event;
    uint64_t sum; /* over all outputs */
    _Atomic int told;
} life;

static void on_ready(PJRT_Error *e, void *arg)
{
    ARGS(end, Error_Destroy, .error = e);

    if (e)
        api->PJRT_Error_Destroy(&end);
    ++*(_Atomic int *)arg;
}

/* Takes the event: told once, and awaited. */
static PJRT_Error *await(life *l, PJRT_Event *event)
{
    ARGS(then, Event_OnReady, .event = event, .callback = on_ready,
         .user_arg = &l->told);
    ARGS(wait, Event_Await, .event = event);
    ARGS(end, Event_Destroy, .event = event);
    PJRT_Error *e = api->PJRT_Event_OnReady(&then), *st;
    int expected = e ? 0 : 1;

    st = api->PJRT_Event_Await(&wait);
    while (l->told < expected)
        usleep(100);
    l->told = 0;
    api->PJRT_Event_Destroy(&end);
    if (e && st) {
        take_error(e, "OnReady");
        return st;
    }
    return e ? e : st;
}

static PJRT_Error *put(life *l, int i, const thunk_type *t, const void *data)
{
    ARGS(a, Client_BufferFromHostBuffer, .client = client, .data = data,
         .type = (PJRT_Buffer_Type)sd_dtype_table[t->dtype].pjrt,
         .dims = t->dim, .num_dims = (size_t)t->rank, .device = device,
         .host_buffer_semantics = (PJRT_HostBufferSemantics)(i % 2));
    PJRT_Error *e = api->PJRT_Client_BufferFromHostBuffer(&a);

    if (e)
        return e;
    l->arg[i] = a.buffer;
    return await(l, a.done_with_host_buffer);
}

static PJRT_Error *get(life *l, PJRT_Buffer *b, uint64_t bytes)
{
    static char room[1 << 22];
    ARGS(a, Buffer_ToHostBuffer, .src = b, .dst = room, .dst_size = bytes);
    PJRT_Error *e;

    assert_true(bytes <= sizeof room);
    if ((e = api->PJRT_Buffer_ToHostBuffer(&a)) || (e = await(l, a.event)))
        return e;
    l->sum = sd_hash(room, bytes, l->sum);
    return NULL;
}

static PJRT_Error *execute(life *l, size_t narg)
{
    PJRT_ExecuteOptions options = {.struct_size =
                                       PJRT_ExecuteOptions_STRUCT_SIZE};
    PJRT_Buffer *const *args = l->arg;
    PJRT_Buffer **outs = l->out;
    PJRT_Event *done = NULL;
    ARGS(a, LoadedExecutable_Execute, .executable = l->exe, .options = &options,
         .argument_lists = &args, .num_devices = 1, .num_args = narg,
         .output_lists = &outs, .device_complete_events = &done);
    PJRT_Error *e = api->PJRT_LoadedExecutable_Execute(&a);

    if (e)
        memset(l->out, 0, sizeof l->out); /* a failed call gives nothing */
    return e ? e : await(l, done);
}

static PJRT_Error *live(life *l, const sd_buf *saved, const thunk_program *p)
{
    static const uint8_t zeros[1 << 22];
    ARGS(load, Executable_DeserializeAndLoad, .client = client,
         .serialized_executable = saved->at,
         .serialized_executable_size = saved->len);
    PJRT_Error *e = api->PJRT_Executable_DeserializeAndLoad(&load);

    if (e)
        return e;
    l->exe = load.loaded_executable;
    for (int i = 0; i < p->nparam; i++) {
        assert_true(p->param[i].bytes <= sizeof zeros);
        if ((e = put(l, i, &p->param[i], zeros)))
            return e;
    }
    if ((e = execute(l, (size_t)p->nparam)))
        return e;
    for (int i = 0; i < p->noutput; i++)
        if ((e = get(l, l->out[i], p->output[i].bytes)))
            return e;
    return NULL;
}

static void drop(PJRT_Buffer **list, int n)
{
    for (int i = 0; i < n; i++) {
        ARGS(a, Buffer_Destroy, .buffer = list[i]);

        if (list[i])
            assert_null(api->PJRT_Buffer_Destroy(&a));
    }
}

static PJRT_Error *whole_life(const sd_buf *saved, const thunk_program *p,
                              uint64_t *sum)
{
    life l = {0};
    PJRT_Error *e = live(&l, saved, p);
    ARGS(a, LoadedExecutable_Destroy, .executable = l.exe);

    drop(l.arg, MOST_PARAMS);
    drop(l.out, MOST_OUTPUTS);
    if (l.exe)
        assert_null(api->PJRT_LoadedExecutable_Destroy(&a));
    *sum = l.sum;
    return e;
}

static void nothing_is_left(const char *name, long n)
{
    ARGS(a, Device_MemoryStats, .device = device);

    xpu_device_sync(xpu_client_device(client->x, 0));
    assert_null(api->PJRT_Device_MemoryStats(&a));
    if (a.bytes_in_use)
        fail_msg("%s, request %ld: %" PRId64 " bytes are still in use", name, n,
                 a.bytes_in_use);
}

/* ---- tests ---- */

static long fail_each(const char *name, const sd_buf *saved,
                      const thunk_program *p, bool on)
{
    uint64_t want, got;
    long n = 0, nrequest;
    PJRT_Error *e = whole_life(saved, p, &want);

    if (e)
        take_error(e, name);
    assert_null(e);
    do {
        fail_alloc_arm(++n, on);
        e = whole_life(saved, p, &got);
        nrequest = fail_alloc_disarm();
        if (e)
            take_error(e, name);
        else if (got != want)
            fail_msg("%s, request %ld: another result", name, n);
        nothing_is_left(name, n);
    } while (n <= nrequest);
    assert_null(whole_life(saved, p, &got));
    assert_true(got == want);
    return n - 1;
}

static void each_request_of_a_life_fails(void **state)
{
    DIR *d = opendir(folder);
    struct dirent *f;
    long total = 0, programs = 0;

    (void)state;
    assert_non_null(d);
    while ((f = readdir(d))) {
        size_t n = strlen(f->d_name);
        sd_buf saved = {0};
        PJRT_Executable *e;

        if (n < 4 || strcmp(f->d_name + n - 4, ".hlo"))
            continue;
        save(f->d_name, &saved);
        assert_null(pjrt_executable_restore(
            (sd_bytes){(uint8_t *)saved.at, saved.len}, &e));
        total += fail_each(f->d_name, &saved, e->p, false);
        total += fail_each(f->d_name, &saved, e->p, true);
        pjrt_executable_release(e);
        sd_buf_finish(&saved);
        programs++;
    }
    closedir(d);
    printf("%ld programs, %ld requests failed in turn\n", programs, total);
    assert_true(programs > 30 && total > 1000);
}

static PJRT_Error *start(PJRT_Client **out)
{
    ARGS(a, Client_Create, .create_options = NULL);
    PJRT_Error *e = api->PJRT_Client_Create(&a);

    *out = a.client;
    return e;
}

static void stop(PJRT_Client *c)
{
    ARGS(a, Client_Destroy, .client = c);

    assert_null(api->PJRT_Client_Destroy(&a));
}

static void each_request_of_the_start_fails(void **state)
{
    long n = 0, nrequest;

    (void)state;
    do {
        PJRT_Client *c;
        PJRT_Error *e;

        n++;
        fail_alloc_arm(n, n % 2);
        e = start(&c);
        nrequest = fail_alloc_disarm();
        if (e)
            take_error(e, "starting");
        else
            stop(c);
    } while (n <= nrequest);
    printf("%ld requests of a start\n", n - 1);
    assert_true(n > 10);
}

static void each_request_of_compiling_fails(void **state)
{
    static const char *const name[] = {"square.hlo", "softmax.hlo", "sort.hlo",
                                       "while_rows.hlo"};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(name); i++) {
        sd_buf text = {0};
        long n = 0, nrequest;

        read_text(name[i], &text);
        do {
            thunk_program *p = NULL;
            sd_status st;

            fail_alloc_arm(++n, false);
            st = compile_text(&text, &p);
            nrequest = fail_alloc_disarm();
            if (st && st->code != SD_EXHAUSTED)
                fail_msg("%s, request %ld: %s", name[i], n, st->message);
            sd_status_free(st);
            thunk_program_release(p);
        } while (n <= nrequest);
        printf("%s: %ld requests\n", name[i], n - 1);
        sd_buf_finish(&text);
    }
}

/* A program larger than its limit is refused by number, and the next one is
 * compiled. */
static void compiling_has_a_limit(void **state)
{
    sd_options env = {.value[SD_OPT_COMPILE_MEMORY] = "1"};
    compile_request rq = {.format = "hlo_text", .format_len = 8};
    compile_services sv = {.env = &env};
    device_desc dev;
    thunk_program *p;
    sd_buf text = {0};
    sd_status st;

    (void)state;
    device_desc_of_name("host:v3", &dev);
    sd_buf_str(&text, "HloModule m\nENTRY e {\n  x0 = f32[8] parameter(0)\n");
    for (int i = 1; i <= 20000; i++)
        sd_buf_fmt(&text, "  x%d = f32[8] sine(x%d)\n", i, i - 1);
    sd_buf_str(&text, "  ROOT r = f32[8] negate(x20000)\n}\n");
    rq.program = (sd_bytes){(uint8_t *)text.at, text.len};
    rq.device = &dev;
    st = sundog_compile(&rq, &sv, &p);
    assert_non_null(st);
    assert_int_equal(st->code, SD_EXHAUSTED);
    if (!strstr(st->message, "compiling for host:v3 (SUNDOG_COMPILE_MEMORY "
                             "sets the limit in MiB): host memory: ") ||
        !strstr(st->message, " would be over the limit of 1048576"))
        fail_msg("%s", st->message);
    sd_status_free(st);
    sd_buf_finish(&text);
    read_text("square.hlo", &text);
    rq.program = (sd_bytes){(uint8_t *)text.at, text.len};
    assert_null(sundog_compile(&rq, &sv, &p));
    thunk_program_release(p);
    sd_buf_finish(&text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_of_the_start_fails),
        cmocka_unit_test(each_request_of_compiling_fails),
        cmocka_unit_test(each_request_of_a_life_fails),
        cmocka_unit_test(compiling_has_a_limit),
    };
    ARGS(a, Client_AddressableDevices, .client = NULL);
    int bad;

    if (argc != 2) {
        fprintf(stderr, "test_memory FOLDER\n");
        return 2;
    }
    folder = argv[1];
    setenv("SUNDOG_DEVICE", "host", 1);
    alarm(600); /* a wait without end is a failure too */
    api = GetPjrtApi();
    assert_null(start(&client));
    a.client = client;
    assert_null(api->PJRT_Client_AddressableDevices(&a));
    device = a.addressable_devices[0];
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    stop(client);
    return bad;
}
