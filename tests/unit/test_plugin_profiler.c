/* The profiler: what runs between start and stop is in the trace, and nothing
 * else. */
#include "plugin_test.h"

#include <sched.h>
#include <stdlib.h>

#define PROFILER(v, name, ...) \
    PLUGIN_Profiler_##name##_Args v = { \
        .struct_size = PLUGIN_Profiler_##name##_Args_STRUCT_SIZE, __VA_ARGS__}

static const PLUGIN_Profiler_Api *profiler(void)
{
    const PJRT_Profiler_Extension *x =
        plugin_extension(PJRT_Extension_Type_Profiler);

    assert_int_equal(x->profiler_api->struct_size, 80); /* jaxlib 0.10.2's */
    return x->profiler_api;
}

static void note(PJRT_Error *e, void *arg)
{
    assert_null(e);
    __atomic_store_n((bool *)arg, true, __ATOMIC_RELEASE);
}

/* Until its event's callbacks have been called, the profiler's among them. */
static void run_once(void)
{
    PJRT_LoadedExecutable *l = program(1, false);
    float x[4] = {1, 2, 3, 4};
    PJRT_Buffer *in = put_f32(x, 4), *out[1];
    PJRT_Event *done = NULL;
    bool called = false;

    ok(start(l, &in, 1, out, 0, &done), "execute");
    DO(on, Event_OnReady, .event = done, .callback = note, .user_arg = &called);
    while (!__atomic_load_n(&called, __ATOMIC_ACQUIRE))
        sched_yield();
    await(done);
    destroy(in);
    destroy(out[0]);
    unload(l);
}

static int count(const uint8_t *at, size_t n, const char *text)
{
    const uint8_t *end = at + n;
    int k = 0;

    while ((at = memmem(at, (size_t)(end - at), text, strlen(text)))) {
        at += strlen(text);
        k++;
    }
    return k;
}

static void runs_are_in_the_trace(void **state)
{
    const PLUGIN_Profiler_Api *a = profiler();
    PROFILER(c, Create, .options = "", .options_size = 0);
    size_t empty;

    (void)state;
    assert_null(a->create(&c));
    PROFILER(on, Start, .profiler = c.profiler);
    PROFILER(off, Stop, .profiler = c.profiler);
    PROFILER(data, CollectData, .profiler = c.profiler);
    run_once();
    assert_null(a->collect_data(&data));
    empty = data.buffer_size_in_bytes;
    assert_int_equal(count(data.buffer, empty, "/device:CUSTOM:xpu"), 1);
    assert_int_equal(count(data.buffer, empty, "jit_copy"), 0);
    assert_null(a->start(&on));
    assert_null(a->start(&on));
    for (int i = 0; i < 3; i++)
        run_once();
    assert_null(a->stop(&off));
    assert_null(a->stop(&off));
    run_once();
    data.buffer = NULL;
    assert_null(a->collect_data(&data));
    /* Each run loads its program anew, which has one step. */
    assert_int_equal(count(data.buffer, data.buffer_size_in_bytes, "xpu(id=0)"),
                     2);
    for (int id = 1; id <= 6; id++) { /* {1 id, 2 offset, 3 duration} */
        char event[] = {8, (char)id, 16, 0};

        assert_int_equal(count(data.buffer, data.buffer_size_in_bytes, event),
                         1);
    }
    PROFILER(used, Consume, .profiler = c.profiler);
    assert_null(a->consume(&used));
    PROFILER(text, Serialize, .profiler = c.profiler,
             .consume_result = used.result);
    assert_null(a->serialize(&text));
    assert_int_equal(text.serialized_size, data.buffer_size_in_bytes);
    PROFILER(end_result, ConsumeResult_Destroy, .consume_result = used.result);
    assert_null(a->consume_result_destroy(&end_result));
    PROFILER(end, Destroy, .profiler = c.profiler);
    assert_null(a->destroy(&end));
    assert_null(a->destroy(&(PLUGIN_Profiler_Destroy_Args){.profiler = NULL}));
}

static void a_profiler_that_records_gives_nothing(void **state)
{
    const PLUGIN_Profiler_Api *a = profiler();
    PROFILER(c, Create, .options = "");

    (void)state;
    assert_null(a->create(&c));
    PROFILER(on, Start, .profiler = c.profiler);
    PROFILER(data, CollectData, .profiler = c.profiler);
    assert_null(a->start(&on));
    PROFILER(message, Error_Message, .error = a->collect_data(&data));
    assert_non_null(message.error);
    a->error_message(&message);
    assert_string_equal(message.message, "the profiler records: stop it first");
    PROFILER(code, Error_GetCode, .error = message.error);
    assert_null(a->error_get_code(&code));
    assert_int_equal(code.code, PJRT_Error_Code_FAILED_PRECONDITION);
    PROFILER(done, Error_Destroy,
             .error = (PLUGIN_Profiler_Error *)(uintptr_t)message.error);
    a->error_destroy(&done);
    PROFILER(end, Destroy, .profiler = c.profiler);
    assert_null(a->destroy(&end)); /* as it records */
    run_once();
}

static void steps_can_be_left_out(void **state)
{
    const PLUGIN_Profiler_Api *a = profiler();
    PROFILER(c, Create, .options = "");

    (void)state;
    setenv("SUNDOG_TRACE_STEPS", "0", 1);
    assert_null(a->create(&c));
    unsetenv("SUNDOG_TRACE_STEPS");
    PROFILER(on, Start, .profiler = c.profiler);
    PROFILER(off, Stop, .profiler = c.profiler);
    PROFILER(data, CollectData, .profiler = c.profiler);
    assert_null(a->start(&on));
    run_once();
    assert_null(a->stop(&off));
    assert_null(a->collect_data(&data));
    assert_int_equal(count(data.buffer, data.buffer_size_in_bytes, "jit_copy"),
                     1);
    assert_int_equal(count(data.buffer, data.buffer_size_in_bytes, "steps"), 0);
    PROFILER(end, Destroy, .profiler = c.profiler);
    assert_null(a->destroy(&end));
}

TESTS(profiler, T(runs_are_in_the_trace), T(steps_can_be_left_out),
      T(a_profiler_that_records_gives_nothing))
