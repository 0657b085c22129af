/* Running programs: arguments, donation, order, poison, callbacks' streams. */
#include "plugin_test.h"

static const int64_t four[] = {4};

static void programs_run(void **state)
{
    enum { N = 300 };
    PJRT_LoadedExecutable *l = program(N, false);
    PJRT_Buffer *in[N], *out[N];
    float x[4] = {0};

    (void)state;
    for (int i = 0; i < N; i++) {
        x[3] = (float)i;
        in[i] = put_f32(x, 4);
    }
    ok(execute(l, in, N, out, -1), "execute");
    for (int i = 0; i < N; i++) {
        x[3] = (float)i;
        holds_f32(out[i], x, 4);
        assert_false(is_deleted(in[i]));
        destroy(out[i]);
        destroy(in[i]);
    }
    unload(l);
}

static void wrong_arguments_are_named(void **state)
{
    PJRT_LoadedExecutable *l = program(2, false);
    float x[5] = {1, 2, 3, 4, 5};
    PJRT_Buffer *in[3] = {put_f32(x, 4), put_f32(x, 5), put_f32(x, 4)}, *out[2];
    PJRT_Buffer *both[2] = {in[0], in[2]};

    (void)state;
    wrong(execute(l, in, 3, out, -1), PJRT_Error_Code_INVALID_ARGUMENT,
          "jit_copy takes 2 arguments, not 3");
    wrong(execute(l, in, 2, out, -1), PJRT_Error_Code_INVALID_ARGUMENT,
          "argument 1 is f32[5], the program wants f32[4]");
    delete(in[2]);
    wrong(execute(l, both, 2, out, -1), PJRT_Error_Code_INVALID_ARGUMENT,
          "argument 1 has been deleted or donated");
    DO(d, Client_Devices, .client = client);
    DO(c, Buffer_CopyToDevice, .buffer = in[0], .dst_device = d.devices[1]);
    both[1] = c.dst_buffer;
    wrong(execute(l, both, 2, out, -1), PJRT_Error_Code_INVALID_ARGUMENT,
          "argument 1 is on device 1, the program on 0");
    destroy(c.dst_buffer);
    for (int i = 0; i < 3; i++)
        destroy(in[i]);
    unload(l);
}

/* Of as many elements: some clients hand over u8[1] as u8[]. */
static void dimensions_of_one_come_and_go(void **state)
{
    static const int64_t dims[] = {1, 4, 1}, two[] = {2, 2};
    PJRT_LoadedExecutable *l = program(1, false);
    float x[4] = {1, 2, 3, 4};
    PJRT_Buffer *in, *out[1];

    (void)state;
    ok(put(PJRT_Buffer_Type_F32, x, dims, 3, NULL, 0, &in), "put");
    ok(execute(l, &in, 1, out, -1), "execute");
    holds_f32(out[0], x, 4);
    destroy(out[0]);
    destroy(in);
    ok(put(PJRT_Buffer_Type_F32, x, two, 2, NULL, 0, &in), "put");
    wrong(execute(l, &in, 1, out, -1), PJRT_Error_Code_INVALID_ARGUMENT,
          "argument 0 is f32[2,2], the program wants f32[4]");
    destroy(in);
    unload(l);
}

static PJRT_Error *execute_on(PJRT_LoadedExecutable *l, PJRT_Buffer **in,
                              PJRT_Buffer **out, size_t ndevice,
                              PJRT_Device *on, size_t options_size)
{
    PJRT_Buffer *const *args[] = {in, in};
    PJRT_Buffer **outs[] = {out, out};
    PJRT_ExecuteOptions o = {.struct_size = options_size};
    PJRT_LoadedExecutable_Execute_Args a = {
        .struct_size = PJRT_LoadedExecutable_Execute_Args_STRUCT_SIZE,
        .executable = l,
        .options = &o,
        .argument_lists = args,
        .num_devices = ndevice,
        .num_args = 1,
        .output_lists = outs,
        .execute_device = on};

    return api->PJRT_LoadedExecutable_Execute(&a);
}

static void the_devices_of_a_run_are_checked(void **state)
{
    PJRT_LoadedExecutable *l = program(1, false);
    float x[4] = {1, 2, 3, 4};
    PJRT_Buffer *in = put_f32(x, 4), *out;
    size_t now = PJRT_ExecuteOptions_STRUCT_SIZE;

    (void)state;
    DO(d, Client_Devices, .client = client);
    wrong(execute_on(l, &in, &out, 2, NULL, now),
          PJRT_Error_Code_INVALID_ARGUMENT, "runs on 1 devices, not 2");
    wrong(execute_on(l, &in, &out, 2, device, now),
          PJRT_Error_Code_INVALID_ARGUMENT, "2 argument lists for one device");
    wrong(execute_on(l, &in, &out, 1, d.devices[1], now),
          PJRT_Error_Code_INVALID_ARGUMENT, "was not compiled for xpu(id=1)");
    ok(execute_on(l, &in, &out, 1, device, now), "on its device");
    holds_f32(out, x, 4);
    destroy(out);
    /* Old callers' options end earlier. */
    ok(execute_on(l, &in, &out, 1, NULL, 52), "short options");
    holds_f32(out, x, 4);
    destroy(out);
    wrong(execute_on(l, &in, &out, 1, NULL, 48),
          PJRT_Error_Code_INVALID_ARGUMENT,
          "PJRT_ExecuteOptions: struct_size is 48, at least 52 is needed");
    destroy(in);
    unload(l);
}

/* Options that ask for what is not there are not passed over. */
static void options_that_cannot_be_met_are_refused(void **state)
{
    PJRT_LoadedExecutable *l = program(1, false);
    float x[4] = {1, 2, 3, 4};
    PJRT_Buffer *in = put_f32(x, 4), *out[1];
    PJRT_HloOutputCallbackInfo info = {.callback_id = 1};
    PJRT_ExecuteOptions o = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE,
                             .hlo_output_callbacks = &info,
                             .num_hlo_output_callbacks = 1};

    (void)state;
    wrong(run(l, &in, 1, out, &o, NULL), PJRT_Error_Code_UNIMPLEMENTED,
          "hlo_output_callbacks");
    o.num_hlo_output_callbacks = 0;
    o.multi_slice_config = (PJRT_MultiSlice_Config *)x;
    wrong(run(l, &in, 1, out, &o, NULL), PJRT_Error_Code_UNIMPLEMENTED,
          "multi_slice_config");
    o.struct_size = offsetof(PJRT_ExecuteOptions, multi_slice_config);
    ok(run(l, &in, 1, out, &o, NULL), "an older caller's options");
    holds_f32(out[0], x, 4);
    destroy(out[0]);
    destroy(in);
    unload(l);
}

static void callbacks_are_of_all_devices(void **state)
{
    PJRT_LoadedExecutable *l = program(1, false);
    float x[4] = {1, 2, 3, 4};
    PJRT_Buffer *in = put_f32(x, 4), *out, *const * args[] = {&in};
    PJRT_Buffer **outs[] = {&out};
    PJRT_ExecuteOptions o = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE,
                             .num_send_ops = 1};

    (void)state;
    BAD(UNIMPLEMENTED, "jit_copy: send and receive callbacks with execute_dev",
        LoadedExecutable_Execute, .executable = l, .options = &o,
        .argument_lists = args, .num_devices = 1, .num_args = 1,
        .output_lists = outs, .execute_device = device);
    destroy(in);
    unload(l);
}

static void donation_takes_the_argument(void **state)
{
    PJRT_LoadedExecutable *l = program(2, true);
    float x[4] = {1, 2, 3, 4};
    PJRT_Buffer *in[2] = {put_f32(x, 4), put_f32(x, 4)}, *out[2];
    PJRT_Buffer *twice[2] = {in[0], in[0]};

    (void)state;
    wrong(execute(l, twice, 2, out, -1), PJRT_Error_Code_INVALID_ARGUMENT,
          "f(donate(a), a) has no meaning");
    assert_false(is_deleted(in[0]));
    ok(execute(l, in, 2, out, 0), "kept: copied instead");
    assert_false(is_deleted(in[0]));
    holds_f32(out[0], x, 4);
    destroy(out[0]);
    destroy(out[1]);
    DO(p, Buffer_UnsafePointer, .buffer = in[0]);
    ok(execute(l, in, 2, out, -1), "in place");
    DO(q, Buffer_UnsafePointer, .buffer = out[0]);
    assert_true(p.buffer_pointer == q.buffer_pointer);
    assert_true(is_deleted(in[0]));
    assert_false(is_deleted(in[1]));
    holds_f32(out[0], x, 4);
    wrong(execute(l, in, 2, out, -1), PJRT_Error_Code_INVALID_ARGUMENT,
          "argument 0 has been deleted or donated");
    destroy(in[0]);
    destroy(in[1]);
    destroy(out[0]);
    destroy(out[1]);
    unload(l);
}

/* Somebody else looks at the argument: the result must lie elsewhere. */
static void donation_spares_what_is_looked_at(void **state)
{
    PJRT_LoadedExecutable *l = program(1, true);
    float x[4] = {1, 2, 3, 4};
    PJRT_Buffer *in = put_f32(x, 4), *out[1];

    (void)state;
    DO(up, Buffer_IncreaseExternalReferenceCount, .buffer = in);
    DO(p, Buffer_OpaqueDeviceMemoryDataPointer, .buffer = in);
    ok(execute(l, &in, 1, out, -1), "execute");
    assert_true(is_deleted(in));
    DO(q, Buffer_OpaqueDeviceMemoryDataPointer, .buffer = out[0]);
    assert_ptr_not_equal(p.device_memory_ptr, q.device_memory_ptr);
    assert_memory_equal(p.device_memory_ptr, x, sizeof x);
    holds_f32(out[0], x, 4);
    DO(down, Buffer_DecreaseExternalReferenceCount, .buffer = in);
    destroy(in);
    destroy(out[0]);
    unload(l);
}

/* ---- poison ---- */

/* A run that waits for its argument can be told not to run. */
static void waiting_runs_are_poisoned(void **state)
{
    PJRT_LoadedExecutable *l = program(1, false);
    float x[4] = {1, 2, 3, 4};
    PJRT_Buffer *b = put_f32(x, 4), *out[2][1];
    PJRT_Event *done[2] = {NULL};

    (void)state;
    DO(a, Client_CreateAliasBuffer, .client = client, .memory = memory,
       .shape_dims = four, .shape_num_dims = 1,
       .shape_element_type = PJRT_Buffer_Type_F32);
    for (int i = 0; i < 2; i++)
        ok(start(l, &a.alias_buffer, 1, out[i], 70 + i, &done[i]), "start");
    for (int i = 0; i < 2; i++) {
        DO(p, Device_PoisonExecution, .device = device, .launch_id = 70,
           .error_code = PJRT_Error_Code_ABORTED, .error_message = "stop it",
           .error_message_size = 4);
        assert_int_equal(p.poisoned, !i); /* the first error stays */
    }
    await_error(done[0], PJRT_Error_Code_ABORTED, "stop");
    await_error(ready_event(out[0][0]), PJRT_Error_Code_ABORTED, "stop");
    assert_false(is_ready(done[1]));
    DO(f, Client_FulfillAliasBuffer, .buffer = b,
       .fulfill_alias_buffer_cb = a.fulfill_alias_buffer_cb);
    await(done[1]);
    holds_f32(out[1][0], x, 4);
    DO(late, Device_PoisonExecution, .device = device, .launch_id = 71,
       .error_code = PJRT_Error_Code_ABORTED);
    assert_false(late.poisoned);
    BAD(INVALID_ARGUMENT, "the code is OK", Device_PoisonExecution,
        .device = device, .launch_id = 70);
    for (int i = 0; i < 2; i++)
        destroy(out[i][0]);
    destroy(a.alias_buffer);
    destroy(b);
    unload(l);
}

/* ---- contexts ---- */

static void contexts_come_and_go(void **state)
{
    (void)state;
    DO(a, ExecuteContext_Create, .extension_start = NULL);
    DO(b, ExecuteContext_Create, .extension_start = NULL);
    assert_ptr_not_equal(a.context, b.context);
    DO(c, ExecuteContext_Destroy, .context = a.context);
    DO(d, ExecuteContext_Destroy, .context = b.context);
}

/* ---- many at once ---- */

static void one_argument_serves_many_runs(void **state)
{
    enum { N = 64 };
    PJRT_LoadedExecutable *l = program(1, false);
    float x[4] = {1, 2, 3, 4};
    PJRT_Buffer *in = put_f32(x, 4), *out[N][1];
    PJRT_Event *done[N] = {NULL};

    (void)state;
    for (int i = 0; i < N; i++)
        ok(start(l, &in, 1, out[i], i, &done[i]), "start");
    destroy(in);
    unload(l); /* what runs keeps what it needs */
    for (int i = 0; i < N; i++) {
        await(done[i]);
        holds_f32(out[i][0], x, 4);
        destroy(out[i][0]);
    }
}

TESTS(run, T(programs_run), T(wrong_arguments_are_named),
      T(dimensions_of_one_come_and_go), T(the_devices_of_a_run_are_checked),
      T(options_that_cannot_be_met_are_refused),
      T(callbacks_are_of_all_devices), T(donation_takes_the_argument),
      T(donation_spares_what_is_looked_at), T(waiting_runs_are_poisoned),
      T(contexts_come_and_go), T(one_argument_serves_many_runs))
