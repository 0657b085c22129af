/* Objects that outlive their client: a collector of garbage destroys in any
 * order.  What is asked of them still has an answer; what would have to run is
 * refused; their memory goes with the last of them, which the sanitizer sees.
 */
#include "plugin_test.h"

static PJRT_Client *other;
static PJRT_Device *its_device;
static PJRT_Memory *its_memory;

static void open_other(void)
{
    DO(c, Client_Create, .num_options = 0);
    other = c.client;
    DO(d, Client_AddressableDevices, .client = other);
    its_device = d.addressable_devices[0];
    DO(m, Device_DefaultMemory, .device = its_device);
    its_memory = m.memory;
}

static void close_other(void)
{
    DO(d, Client_Destroy, .client = other);
}

static PJRT_Buffer *put_there(const float *x, int64_t n)
{
    DO(a, Client_BufferFromHostBuffer, .client = other, .data = x,
       .type = PJRT_Buffer_Type_F32, .dims = &n, .num_dims = 1,
       .memory = its_memory);
    await(a.done_with_host_buffer);
    return a.buffer;
}

static PJRT_LoadedExecutable *load_there(int n)
{
    sd_buf b = saved(n, false);

    DO(a, Executable_DeserializeAndLoad, .client = other,
       .serialized_executable = b.at, .serialized_executable_size = b.len);
    sd_buf_finish(&b);
    return a.loaded_executable;
}

static void a_buffer_outlives_its_client(void **state)
{
    static const float x[4] = {1, 2, 3, 4};
    PJRT_Buffer *b;
    PJRT_Event *ready;

    (void)state;
    open_other();
    b = put_there(x, 4);
    ready = ready_event(b);
    close_other();
    DO(dims, Buffer_Dimensions, .buffer = b);
    assert_int_equal(dims.dims[0], 4);
    DO(m, Buffer_Memory, .buffer = b);
    assert_ptr_equal(m.memory, its_memory);
    DO(d, Buffer_Device, .buffer = b);
    DO(kind, Memory_Kind, .memory = m.memory);
    assert_memory_equal(kind.kind, "device", kind.kind_size);
    holds_f32(b, x, 4); /* small: on the caller's thread */
    delete(b);
    destroy(b);
    await(ready);
}

static void an_executable_outlives_its_client(void **state)
{
    static const float x[4] = {1, 2, 3, 4};
    PJRT_LoadedExecutable *l;
    PJRT_Buffer *b, *out[1];
    PJRT_Event *done[1] = {NULL};

    (void)state;
    open_other();
    l = load_there(1);
    b = put_there(x, 4);
    ok(start(l, &b, 1, out, 0, done), "a run");
    close_other();
    assert_true(is_ready(done[0])); /* what ran has ended */
    await(done[0]);
    holds_f32(out[0], x, 4);
    DO(devices, LoadedExecutable_AddressableDevices, .executable = l);
    assert_ptr_equal(devices.addressable_devices[0], its_device);
    wrong(execute(l, &b, 1, out, -1), PJRT_Error_Code_FAILED_PRECONDITION,
          "stream xpu0 has ended: its client was destroyed");
    unload(l);
    destroy(b);
    destroy(out[0]);
}

static void a_transfer_manager_outlives_its_client(void **state)
{
    static const int64_t four = 4;
    static const float x[4] = {1, 2, 3, 4};
    PJRT_ShapeSpec spec = {.struct_size = PJRT_ShapeSpec_STRUCT_SIZE,
                           .dims = &four,
                           .num_dims = 1,
                           .element_type = PJRT_Buffer_Type_F32};

    (void)state;
    open_other();
    DO(m, Client_CreateBuffersForAsyncHostToDevice, .client = other,
       .memory = its_memory, .shape_specs = &spec, .num_shape_specs = 1);
    close_other();
    DO(b, AsyncHostToDeviceTransferManager_RetrieveBuffer,
       .transfer_manager = m.transfer_manager, .buffer_index = 0);
    DO(d, AsyncHostToDeviceTransferManager_Device,
       .transfer_manager = m.transfer_manager);
    assert_ptr_equal(d.device_out, its_device);
    DO(t, AsyncHostToDeviceTransferManager_TransferData,
       .transfer_manager = m.transfer_manager, .buffer_index = 0, .data = x,
       .transfer_size = sizeof x, .is_last_transfer = true);
    await(t.done_with_h2d_transfer);
    DO(e, AsyncHostToDeviceTransferManager_Destroy,
       .transfer_manager = m.transfer_manager);
    holds_f32(b.buffer_out, x, 4);
    destroy(b.buffer_out);
}

/* A run that still waits when the client goes never comes to run. */
static void a_waiting_run_outlives_its_client(void **state)
{
    static const int64_t four = 4;
    static const float x[4] = {1, 2, 3, 4};
    PJRT_LoadedExecutable *l;
    PJRT_Buffer *b, *a, *out[1];
    PJRT_Event *done[1] = {NULL};

    (void)state;
    open_other();
    l = load_there(1);
    b = put_there(x, 4);
    DO(alias, Client_CreateAliasBuffer, .client = other, .memory = its_memory,
       .shape_dims = &four, .shape_num_dims = 1,
       .shape_element_type = PJRT_Buffer_Type_F32);
    a = alias.alias_buffer;
    ok(start(l, &a, 1, out, 0, done), "a run");
    close_other();
    assert_false(is_ready(done[0]));
    unload(l);
    destroy(a);
    DO(f, Client_FulfillAliasBuffer, .buffer = b,
       .fulfill_alias_buffer_cb = alias.fulfill_alias_buffer_cb);
    await_error(done[0], PJRT_Error_Code_FAILED_PRECONDITION,
                "its client was destroyed");
    destroy(b);
    destroy(out[0]);
}

/* Of a copy to the host that is promised: its place comes too late. */
static void a_promised_copy_outlives_its_client(void **state)
{
    static const float x[4] = {1, 2, 3, 4};
    float back[4] = {0};
    PJRT_Buffer *b;

    (void)state;
    open_other();
    b = put_there(x, 4);
    DO(p, Buffer_CopyRawToHostFuture, .buffer = b, .transfer_size = 16);
    destroy(b);
    close_other();
    PJRT_Buffer_CopyRawToHostFuture_Callback_Args a = {
        .struct_size =
            PJRT_Buffer_CopyRawToHostFuture_Callback_Args_STRUCT_SIZE,
        .callback_data = p.callback_data,
        .dst = back};

    p.future_ready_callback(&a);
    await(p.event);
    assert_memory_equal(back, x, sizeof x);
}

static void an_event_outlives_its_client(void **state)
{
    (void)state;
    open_other();
    DO(e, Event_Create, .extension_start = NULL);
    DO(t, Device_CreateAsyncTrackingEvent, .device = its_device);
    DO(x, ExecuteContext_Create, .extension_start = NULL);
    close_other();
    DO(s, Event_Set, .event = e.event);
    await(e.event);
    DO(d, AsyncTrackingEvent_Destroy, .event = t.event);
    DO(y, ExecuteContext_Destroy, .context = x.context);
}

TESTS(life, T(a_buffer_outlives_its_client),
      T(an_executable_outlives_its_client),
      T(a_transfer_manager_outlives_its_client),
      T(a_waiting_run_outlives_its_client),
      T(a_promised_copy_outlives_its_client), T(an_event_outlives_its_client))
