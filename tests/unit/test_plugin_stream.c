/* Callbacks of a run: what it sends to the host, and the streams by which the
 * host answers. */
#include "plugin_test.h"

typedef struct {
    float sent[4];
    bool last, fails, leaves;
} host;

static PJRT_Error *on_send(PJRT_Chunk *c, PJRT_CallbackError *make_error,
                           size_t total, bool last, void *arg)
{
    host *h = arg;

    assert_int_equal(c->size, 16);
    assert_int_equal(total, 16);
    memcpy(h->sent, c->data, c->size);
    c->deleter(c->data, c->deleter_arg);
    h->last = last;
    return h->fails ? (*make_error)(PJRT_Error_Code_ABORTED, "no more", 7)
                    : NULL;
}

static PJRT_Event *add(PJRT_CopyToDeviceStream *s, float *data, size_t bytes)
{
    PJRT_Chunk c = {.data = data, .size = bytes};

    DO(a, CopyToDeviceStream_AddChunk, .stream = s, .chunk = &c);
    return a.transfer_complete;
}

static int64_t current(PJRT_CopyToDeviceStream *s)
{
    DO(a, CopyToDeviceStream_CurrentBytes, .stream = s);
    return a.current_bytes;
}

static void on_recv(PJRT_CopyToDeviceStream *s, void *arg)
{
    static float answer[4] = {5, 6, 7, 8};
    const host *h = arg;

    if (!h->leaves) {
        DO(total, CopyToDeviceStream_TotalBytes, .stream = s);
        assert_int_equal(total.total_bytes, 16);
        DO(grain, CopyToDeviceStream_GranuleSize, .stream = s);
        assert_int_equal(grain.granule_size_in_bytes, 1);
        assert_int_equal(current(s), 0);
        await(add(s, answer, 8));
        assert_int_equal(current(s), 8);
        /* Too much is the event's error: the call's would end frameworks. */
        await_error(add(s, answer, 16), PJRT_Error_Code_INVALID_ARGUMENT,
                    "16 bytes at offset 8 of a value of 16");
        assert_int_equal(current(s), 8);
        await(add(s, answer + 2, 8));
        assert_int_equal(current(s), 16);
    }
    DO(d, CopyToDeviceStream_Destroy, .stream = s);
}

/* One run of the program with such a host. */
static PJRT_Error *call(host *h, PJRT_Buffer **out, PJRT_Event **done)
{
    float x[4] = {1, 2, 3, 4};
    PJRT_SendCallbackInfo send = {2, h, on_send}, *sends[] = {&send};
    PJRT_RecvCallbackInfo recv = {3, h, on_recv}, *recvs[] = {&recv};
    PJRT_ExecuteOptions o = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE,
                             .send_callbacks = sends,
                             .recv_callbacks = recvs,
                             .num_send_ops = 1,
                             .num_recv_ops = 1};
    sd_buf b = saved_channels("host:v3");
    PJRT_Buffer *in = put_f32(x, 4);
    PJRT_LoadedExecutable *l = NULL;
    PJRT_Error *e;

    ok(load(&b, &l), "load");
    sd_buf_finish(&b);
    if (!(e = run(l, &in, 1, out, &o, done))) {
        while (!is_ready(*done)) /* the lists above are the run's */
            ;
    }
    destroy(in);
    unload(l);
    return e;
}

static void a_run_talks_to_the_host(void **state)
{
    host h = {.fails = false};
    PJRT_Buffer *out[1];
    PJRT_Event *done = NULL;

    (void)state;
    ok(call(&h, out, &done), "run");
    await(done);
    assert_true(h.last && h.sent[0] == 1 && h.sent[3] == 4);
    holds_f32(out[0], (float[]){5, 6, 7, 8}, 4);
    destroy(out[0]);
}

static void what_the_host_says_of_an_error_arrives(void **state)
{
    host h = {.fails = true};
    PJRT_Buffer *out[1];
    PJRT_Event *done = NULL;

    (void)state;
    ok(call(&h, out, &done), "run");
    await_error(done, PJRT_Error_Code_ABORTED, "no more");
    await_error(ready_event(out[0]), PJRT_Error_Code_ABORTED, "no more");
    destroy(out[0]);
}

static void a_stream_left_early_is_an_error(void **state)
{
    host h = {.leaves = true};
    PJRT_Buffer *out[1];
    PJRT_Event *done = NULL;

    (void)state;
    ok(call(&h, out, &done), "run");
    await_error(done, PJRT_Error_Code_INTERNAL, "gave 0 of 16 bytes");
    destroy(out[0]);
}

TESTS(stream, T(a_run_talks_to_the_host),
      T(what_the_host_says_of_an_error_arrives),
      T(a_stream_left_early_is_an_error))
