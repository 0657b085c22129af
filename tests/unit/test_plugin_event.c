/* Events: one-shot, with three faces, and callbacks that outlive the handle. */
#include "plugin_test.h"

#include <sched.h>

typedef struct {
    int calls;
    PJRT_Error *error;
    PJRT_Event *ends; /* destroyed from inside */
} heard;

static void hear(PJRT_Error *e, void *arg)
{
    heard *h = arg;

    h->error = e;
    if (h->ends) {
        DO(d, Event_Destroy, .event = h->ends);
    }
    __atomic_add_fetch(&h->calls, 1, __ATOMIC_RELEASE); /* last: h is gone */
}

static PJRT_Event *fresh(void)
{
    DO(c, Event_Create, .extension_start = NULL);
    return c.event;
}

static void everybody_hears_of_an_error(void **state)
{
    PJRT_Event *e = fresh();
    heard h[3] = {{0}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        DO(on, Event_OnReady, .event = e, .callback = hear, .user_arg = &h[i]);
    }
    assert_false(is_ready(e));
    assert_int_equal(h[0].calls, 0);
    DO(none, Event_Error, .event = e); /* not ready: no error yet */
    DO(set, Event_Set, .event = e, .error_code = PJRT_Error_Code_DATA_LOSS,
       .error_message = "lost it", .error_message_size = 4);
    assert_true(is_ready(e));
    DO(on, Event_OnReady, .event = e, .callback = hear, .user_arg = &h[2]);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(h[i].calls, 1);
        wrong(h[i].error, PJRT_Error_Code_DATA_LOSS, "lost");
    }
    for (int i = 0; i < 2; i++)
        BAD(DATA_LOSS, "lost", Event_Error, .event = e);
    await_error(e, PJRT_Error_Code_DATA_LOSS, "lost");
}

static void an_event_is_set_once(void **state)
{
    PJRT_Event *e = fresh();

    (void)state;
    DO(set, Event_Set, .event = e);
    BAD(FAILED_PRECONDITION, "is set already", Event_Set, .event = e,
        .error_code = PJRT_Error_Code_ABORTED);
    DO(none, Event_Error, .event = e); /* the first counts */
    DO(w, Event_Await, .event = e);
    await(e);
}

/* Big arrays are copied by another thread, which calls back when no handle is
 * left. */
static void callbacks_survive_their_handle(void **state)
{
    static const float x[1 << 20];
    int64_t n = SD_COUNTOF(x);
    heard h = {0};

    (void)state;
    for (int i = 1; i <= 20; i++) {
        DO(p, Client_BufferFromHostBuffer, .client = client, .data = x,
           .type = PJRT_Buffer_Type_F32, .dims = &n, .num_dims = 1,
           .host_buffer_semantics =
               PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes,
           .memory = memory);
        DO(on, Event_OnReady, .event = p.done_with_host_buffer,
           .callback = hear, .user_arg = &h);
        DO(d, Event_Destroy, .event = p.done_with_host_buffer);
        destroy(p.buffer);
        while (__atomic_load_n(&h.calls, __ATOMIC_ACQUIRE) < i)
            sched_yield();
        assert_null(h.error);
    }
}

static void an_event_may_end_inside_its_callback(void **state)
{
    heard h = {0};

    (void)state;
    h.ends = fresh();
    DO(on, Event_OnReady, .event = h.ends, .callback = hear, .user_arg = &h);
    DO(set, Event_Set, .event = h.ends);
    assert_int_equal(h.calls, 1);
    assert_null(h.error);
}

/* Nobody will set it any more: whoever waits is told. */
static void an_event_that_is_never_set_is_cancelled(void **state)
{
    heard h = {0};
    PJRT_Event *e = fresh();

    (void)state;
    DO(on, Event_OnReady, .event = e, .callback = hear, .user_arg = &h);
    DO(d, Event_Destroy, .event = e);
    assert_int_equal(h.calls, 1);
    wrong(h.error, PJRT_Error_Code_CANCELLED, "destroyed before");
}

TESTS(event, T(everybody_hears_of_an_error), T(an_event_is_set_once),
      T(callbacks_survive_their_handle),
      T(an_event_may_end_inside_its_callback),
      T(an_event_that_is_never_set_is_cancelled))
