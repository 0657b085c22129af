/* Arrays: there and back, in every layout; what a buffer says of itself. */
#include "plugin_test.h"

static const int64_t two_three[] = {2, 3}, columns[] = {0, 1}, rows[] = {1, 0};

static void arrays_go_there_and_back(void **state)
{
    static const int64_t strides[] = {32, 8}, back[] = {-24, 4},
                         same[] = {0, 4};
    int32_t from[16], to[6];
    PJRT_Buffer *b = NULL;

    (void)state;
    for (int i = 0; i < 16; i++)
        from[i] = 100 + i;
    for (int semantics = 0; semantics < 4; semantics++) {
        ok(put(PJRT_Buffer_Type_S32, from, two_three, 2, NULL, semantics, &b),
           "put");
        ok(get(b, to, sizeof to, NULL), "get");
        assert_memory_equal(to, from, sizeof to);
        destroy(b);
        ok(put(PJRT_Buffer_Type_S32, from, two_three, 2, strides, semantics,
               &b),
           "strides");
        ok(get(b, to, sizeof to, NULL), "get");
        assert_memory_equal(to, ((int32_t[]){100, 102, 104, 108, 110, 112}),
                            sizeof to);
        destroy(b);
        ok(put(PJRT_Buffer_Type_S32, from + 8, two_three, 2, back, semantics,
               &b),
           "negative strides");
        ok(get(b, to, sizeof to, NULL), "get");
        assert_memory_equal(to, ((int32_t[]){108, 109, 110, 102, 103, 104}),
                            sizeof to);
        destroy(b);
        ok(put(PJRT_Buffer_Type_S32, from, two_three, 2, same, semantics, &b),
           "a stride of 0");
        ok(get(b, to, sizeof to, NULL), "get");
        assert_memory_equal(to, ((int32_t[]){100, 101, 102, 100, 101, 102}),
                            sizeof to);
        destroy(b);
    }
}

/* The caller may change its array once the event says so, and with semantics
 * 0 at once. */
static void the_callers_array_is_its_own_again(void **state)
{
    (void)state;
    for (int semantics = 0; semantics < 4; semantics++) {
        float x[4] = {1, 2, 3, 4};
        int64_t n = 4;
        PJRT_Buffer *b = NULL;

        ok(put(PJRT_Buffer_Type_F32, x, &n, 1, NULL, semantics, &b), "put");
        x[0] = 77;
        holds_f32(b, (float[]){1, 2, 3, 4}, 4);
        destroy(b);
    }
    for (int big = 0; big < 2; big++) {
        static float x[1 << 20];
        float first;
        int64_t n = big ? 1 << 20 : 1;

        x[0] = 5;
        DO(p, Client_BufferFromHostBuffer, .client = client, .data = x,
           .type = PJRT_Buffer_Type_F32, .dims = &n, .num_dims = 1,
           .memory = memory);
        x[0] = 6;
        assert_true(is_ready(p.done_with_host_buffer));
        await(p.done_with_host_buffer);
        DO(raw, Buffer_CopyRawToHost, .buffer = p.buffer, .dst = &first,
           .transfer_size = 4);
        await(raw.event);
        assert_true(first == 5);
        destroy(p.buffer);
    }
}

static void sizes_of_the_destination_are_checked(void **state)
{
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    PJRT_Buffer *b = put_f32(x, 4);

    (void)state;
    DO(a, Buffer_ToHostBuffer, .src = b);
    assert_int_equal(a.dst_size, 16);
    assert_null(a.event);
    wrong(get(b, y, 15, NULL), PJRT_Error_Code_INVALID_ARGUMENT,
          "dst_size is 15, the array has 16 bytes");
    assert_true(y[0] == 0);
    for (int i = 0; i < 2; i++) {
        memset(y, 0, sizeof y);
        ok(get(b, y, 16, NULL), "get");
        assert_memory_equal(x, y, sizeof x);
    }
    destroy(b);
}

static void host_layouts_are_honoured(void **state)
{
    int32_t from[6] = {1, 2, 3, 4, 5, 6}, to[6];
    PJRT_Buffer_MemoryLayout l = tiled(columns, 2), r = tiled(rows, 2);
    static const int64_t twice[] = {0, 0};
    PJRT_Buffer *b = NULL;

    (void)state;
    ok(put(PJRT_Buffer_Type_S32, from, two_three, 2, NULL, 2, &b), "put");
    ok(get(b, to, sizeof to, &r), "rows");
    assert_memory_equal(to, from, sizeof to);
    ok(get(b, to, sizeof to, &l), "columns");
    assert_memory_equal(to, ((int32_t[]){1, 4, 2, 5, 3, 6}), sizeof to);
    l.tiled.minor_to_major_size = 1;
    wrong(get(b, to, sizeof to, &l), PJRT_Error_Code_INVALID_ARGUMENT,
          "the host layout orders 1 dimensions of an array of 2");
    l = tiled(twice, 2);
    wrong(get(b, to, sizeof to, &l), PJRT_Error_Code_INVALID_ARGUMENT,
          "is no permutation: dimension 0 in place 1");
    l = tiled(rows, 2);
    l.tiled.num_tiles = 1;
    wrong(get(b, to, sizeof to, &l), PJRT_Error_Code_INVALID_ARGUMENT,
          "1 tiles");
    l = tiled(rows, 2);
    l.type = PJRT_Buffer_MemoryLayout_Type_Strides;
    wrong(get(b, to, sizeof to, &l), PJRT_Error_Code_INVALID_ARGUMENT,
          "strides");
    l = tiled(rows, 2);
    l.struct_size = 1; /* as jaxlib 0.11.2 leaves it: anything */
    ok(get(b, to, sizeof to, &l), "get");
    destroy(b);
}

static PJRT_Buffer *put_columns(const int32_t *from, const int64_t *strides)
{
    PJRT_Buffer_MemoryLayout l = tiled(columns, 2);

    DO(p, Client_BufferFromHostBuffer, .client = client, .data = from,
       .type = PJRT_Buffer_Type_S32, .dims = two_three, .num_dims = 2,
       .byte_strides = strides, .num_byte_strides = strides ? 2 : 0,
       .memory = memory, .device_layout = &l);
    await(p.done_with_host_buffer);
    return p.buffer;
}

/* An array by columns: the same array, whose bytes lie otherwise. */
static void device_layouts_are_honoured(void **state)
{
    static const int64_t wide[] = {16, 4};
    int32_t from[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[6];
    PJRT_Buffer_MemoryLayout r = tiled(rows, 2);
    PJRT_Buffer *b = put_columns(from, NULL);

    (void)state;
    DO(d, Buffer_Dimensions, .buffer = b);
    assert_int_equal(d.num_dims, 2);
    assert_memory_equal(d.dims, two_three, sizeof two_three);
    DO(l, Buffer_GetMemoryLayout, .buffer = b);
    assert_memory_equal(l.layout.tiled.minor_to_major, columns, sizeof columns);
    DO(raw, Buffer_CopyRawToHost, .buffer = b, .dst = to,
       .transfer_size = sizeof to);
    await(raw.event);
    assert_memory_equal(to, ((int32_t[]){1, 4, 2, 5, 3, 6}), sizeof to);
    ok(get(b, to, sizeof to, &r), "rows");
    assert_memory_equal(to, from, sizeof to);
    ok(get(b, to, sizeof to, NULL), "its own layout");
    assert_memory_equal(to, ((int32_t[]){1, 4, 2, 5, 3, 6}), sizeof to);
    DO(c, Buffer_CopyToMemory, .buffer = b, .dst_memory = pinned);
    destroy(b);
    ok(get(c.dst_buffer, to, sizeof to, &r), "a copy by rows");
    assert_memory_equal(to, from, sizeof to);
    destroy(c.dst_buffer);
    b = put_columns(from, wide);
    ok(get(b, to, sizeof to, &r), "of strides");
    assert_memory_equal(to, ((int32_t[]){1, 2, 3, 5, 6, 7}), sizeof to);
    destroy(b);
}

static void wrong_arrays_are_refused(void **state)
{
    static const int64_t big[] = {1, INT64_MAX}, negative[] = {2, -1};
    PJRT_Buffer_MemoryLayout l = tiled(rows, 2);
    float x[6] = {0};
    PJRT_Buffer *b = NULL;

    (void)state;
    wrong(put(PJRT_Buffer_Type_F32, x, big, 2, NULL, 0, &b),
          PJRT_Error_Code_INVALID_ARGUMENT, "2^46");
    wrong(put(PJRT_Buffer_Type_F32, x, negative, 2, NULL, 0, &b),
          PJRT_Error_Code_INVALID_ARGUMENT, "-1");
    wrong(put(PJRT_Buffer_Type_F32, x, negative, 100, NULL, 0, &b),
          PJRT_Error_Code_INVALID_ARGUMENT, "rank");
    wrong(put(PJRT_Buffer_Type_TOKEN, x, two_three, 0, NULL, 0, &b),
          PJRT_Error_Code_UNIMPLEMENTED, "element type 23");
    wrong(put((PJRT_Buffer_Type)99, x, two_three, 0, NULL, 0, &b),
          PJRT_Error_Code_UNIMPLEMENTED, "element type 99");
    wrong(put(PJRT_Buffer_Type_F32, NULL, two_three, 2, NULL, 0, &b),
          PJRT_Error_Code_INVALID_ARGUMENT, "no data for a buffer of 24 bytes");
    BAD(INVALID_ARGUMENT, "1 strides for 2 dimensions",
        Client_BufferFromHostBuffer, .client = client, .data = x,
        .type = PJRT_Buffer_Type_F32, .dims = two_three, .num_dims = 2,
        .byte_strides = big, .num_byte_strides = 1, .memory = memory);
    l.tiled.num_tiles = 2;
    BAD(INVALID_ARGUMENT, "the device layout has 2 tiles",
        Client_BufferFromHostBuffer, .client = client, .data = x,
        .type = PJRT_Buffer_Type_F32, .dims = two_three, .num_dims = 2,
        .memory = memory, .device_layout = &l);
    BAD(INVALID_ARGUMENT, "neither a device nor a memory",
        Client_BufferFromHostBuffer, .client = client, .data = x,
        .type = PJRT_Buffer_Type_F32, .dims = two_three, .num_dims = 2);
}

static void a_device_means_its_first_memory(void **state)
{
    float x[6] = {1, 2, 3, 4, 5, 6};

    (void)state;
    DO(a, Client_BufferFromHostBuffer, .client = client, .data = x,
       .type = PJRT_Buffer_Type_F32, .dims = two_three, .num_dims = 2,
       .device = device);
    await(a.done_with_host_buffer);
    DO(m, Buffer_Memory, .buffer = a.buffer);
    assert_ptr_equal(m.memory, memory);
    holds_f32(a.buffer, x, 6);
    destroy(a.buffer);
}

/* Types below a byte are one element a byte on the host, and here too. */
static void small_types_pass_unpacked(void **state)
{
    static const PJRT_Buffer_Type type[] = {
        PJRT_Buffer_Type_S4,       PJRT_Buffer_Type_U4,
        PJRT_Buffer_Type_S2,       PJRT_Buffer_Type_U2,
        PJRT_Buffer_Type_F4E2M1FN, PJRT_Buffer_Type_PRED,
        PJRT_Buffer_Type_F6E2M3FN, PJRT_Buffer_Type_F6E3M2FN};
    int8_t x[] = {1, 0, 1, 1}, to[4];
    int64_t four = 4;

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(type); i++) {
        PJRT_Buffer *b = NULL;

        ok(put(type[i], x, &four, 1, NULL, 2, &b), "put");
        DO(t, Buffer_ElementType, .buffer = b);
        assert_int_equal(t.type, type[i]);
        DO(n, Buffer_OnDeviceSizeInBytes, .buffer = b);
        assert_int_equal(n.on_device_size_in_bytes, 4);
        ok(get(b, to, 4, NULL), "get");
        assert_memory_equal(x, to, 4);
        destroy(b);
    }
}

static void empty_and_scalar_arrays_pass(void **state)
{
    static const int64_t none[] = {3, 0};
    double pi = 3.14159, back = 0;
    char room[4];
    PJRT_Buffer *b = NULL;

    (void)state;
    for (int semantics = 0; semantics < 4; semantics++) {
        ok(put(PJRT_Buffer_Type_F32, NULL, none, 2, NULL, semantics, &b),
           "empty");
        await(ready_event(b));
        DO(d, Buffer_Dimensions, .buffer = b);
        assert_memory_equal(d.dims, none, sizeof none);
        ok(get(b, room, 0, NULL), "get");
        DO(c, Buffer_CopyToMemory, .buffer = b, .dst_memory = pinned);
        await(ready_event(c.dst_buffer));
        destroy(c.dst_buffer);
        destroy(b);
        ok(put(PJRT_Buffer_Type_F64, &pi, NULL, 0, NULL, semantics, &b),
           "scalar");
        ok(get(b, &back, 8, NULL), "get");
        assert_true(back == pi);
        destroy(b);
    }
}

static void buffers_describe_themselves(void **state)
{
    float x[6] = {0};
    PJRT_Buffer *b = NULL;

    (void)state;
    ok(put(PJRT_Buffer_Type_F32, x, two_three, 2, NULL, 0, &b), "put");
    DO(t, Buffer_ElementType, .buffer = b);
    assert_int_equal(t.type, PJRT_Buffer_Type_F32);
    DO(d, Buffer_Dimensions, .buffer = b);
    assert_int_equal(d.num_dims, 2);
    assert_memory_equal(d.dims, two_three, sizeof two_three);
    DO(u, Buffer_UnpaddedDimensions, .buffer = b);
    assert_int_equal(u.num_dims, 2);
    assert_memory_equal(u.unpadded_dims, two_three, sizeof two_three);
    DO(y, Buffer_DynamicDimensionIndices, .buffer = b);
    assert_int_equal(y.num_dynamic_dims, 0);
    DO(l, Buffer_GetMemoryLayout, .buffer = b);
    assert_int_equal(l.layout.type, PJRT_Buffer_MemoryLayout_Type_Tiled);
    assert_int_equal(l.layout.tiled.minor_to_major_size, 2);
    assert_memory_equal(l.layout.tiled.minor_to_major, rows, sizeof rows);
    assert_int_equal(l.layout.tiled.num_tiles, 0);
    DO(n, Buffer_OnDeviceSizeInBytes, .buffer = b);
    assert_int_equal(n.on_device_size_in_bytes, 24);
    DO(v, Buffer_Device, .buffer = b);
    assert_ptr_equal(v.device, device);
    DO(m, Buffer_Memory, .buffer = b);
    assert_ptr_equal(m.memory, memory);
    assert_true(is_read_in_place(b));
    DO(p, Buffer_UnsafePointer, .buffer = b);
    DO(o, Buffer_OpaqueDeviceMemoryDataPointer, .buffer = b);
    assert_true(p.buffer_pointer && p.buffer_pointer % 64 == 0);
    assert_ptr_equal(o.device_memory_ptr, (void *)p.buffer_pointer);
    assert_false(is_deleted(b));
    destroy(b);
}

static void a_deleted_buffer_says_so(void **state)
{
    float x[2] = {1, 2};
    PJRT_Buffer *b = put_f32(x, 2);
    PJRT_Event *before = ready_event(b);

    (void)state;
    assert_false(is_deleted(b));
    delete(b);
    delete(b);
    assert_true(is_deleted(b));
    await(before); /* not spoiled */
    await_error(ready_event(b), PJRT_Error_Code_INVALID_ARGUMENT, "deleted");
    destroy(b);
}

static void external_references_are_counted(void **state)
{
    float x[2] = {1, 2};
    PJRT_Buffer *b = put_f32(x, 2);

    (void)state;
    DO(up, Buffer_IncreaseExternalReferenceCount, .buffer = b);
    DO(again, Buffer_IncreaseExternalReferenceCount, .buffer = b);
    DO(p, Buffer_OpaqueDeviceMemoryDataPointer, .buffer = b);
    delete(b); /* the state at once, the memory later */
    assert_true(is_deleted(b));
    assert_memory_equal(p.device_memory_ptr, x, sizeof x);
    DO(down, Buffer_DecreaseExternalReferenceCount, .buffer = b);
    assert_memory_equal(p.device_memory_ptr, x, sizeof x);
    DO(last, Buffer_DecreaseExternalReferenceCount, .buffer = b);
    BAD(INVALID_ARGUMENT,
        "decrease reference on a buffer with zero reference count",
        Buffer_DecreaseExternalReferenceCount, .buffer = b);
    BAD(INVALID_ARGUMENT, "deleted", Buffer_IncreaseExternalReferenceCount,
        .buffer = b);
    destroy(b);
}

static void raw_copies_check_their_range_in_the_event(void **state)
{
    float x[4] = {1, 2, 3, 4}, y[2] = {0};
    PJRT_Buffer *b = put_f32(x, 4);

    (void)state;
    DO(a, Buffer_CopyRawToHost, .buffer = b, .dst = y, .offset = 8,
       .transfer_size = 8);
    await(a.event);
    assert_true(y[0] == 3 && y[1] == 4);
    DO(c, Buffer_CopyRawToHost, .buffer = b, .dst = y, .offset = 12,
       .transfer_size = 8);
    await_error(c.event, PJRT_Error_Code_INVALID_ARGUMENT,
                "8 bytes at offset 12 of a buffer of 16");
    DO(d, Buffer_CopyRawToHost, .buffer = b, .dst = y, .offset = -1,
       .transfer_size = 4);
    await_error(d.event, PJRT_Error_Code_INVALID_ARGUMENT, "offset -1");
    DO(e, Buffer_CopyRawToHost, .buffer = b, .dst = y, .offset = 16);
    await(e.event);
    destroy(b);
}

static void a_promised_copy_waits_for_its_destination(void **state)
{
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    PJRT_Buffer *b = put_f32(x, 4);
    PJRT_Buffer_CopyRawToHostFuture_Callback_Args c = {
        .struct_size =
            PJRT_Buffer_CopyRawToHostFuture_Callback_Args_STRUCT_SIZE};

    (void)state;
    DO(a, Buffer_CopyRawToHostFuture, .buffer = b, .offset = 4,
       .transfer_size = 12);
    delete(b); /* after the promise: it is kept */
    destroy(b);
    assert_false(is_ready(a.event));
    c.callback_data = a.callback_data;
    c.dst = y;
    a.future_ready_callback(&c);
    await(a.event);
    assert_memory_equal(x + 1, y, 12);
    b = put_f32(x, 4);
    DO(e, Buffer_CopyRawToHostFuture, .buffer = b, .transfer_size = 16);
    c.callback_data = e.callback_data;
    c.error_code = PJRT_Error_Code_ABORTED;
    c.error_message = "gone";
    c.error_message_size = 4;
    e.future_ready_callback(&c);
    await_error(e.event, PJRT_Error_Code_ABORTED, "gone");
    BAD(INVALID_ARGUMENT, "17 bytes", Buffer_CopyRawToHostFuture, .buffer = b,
        .transfer_size = 17);
    destroy(b);
}

static void copies_cross_memories_and_devices(void **state)
{
    static const float x[4] = {1, 2, 3, 4};
    PJRT_Buffer *b = put_f32(x, 4);

    (void)state;
    DO(all, Client_AddressableMemories, .client = client);
    for (size_t i = 0; i < all.num_addressable_memories; i++) {
        PJRT_Memory *to = all.addressable_memories[i];

        DO(a, Buffer_CopyToMemory, .buffer = b, .dst_memory = to);
        DO(m, Buffer_Memory, .buffer = a.dst_buffer);
        assert_ptr_equal(m.memory, to);
        await(ready_event(a.dst_buffer));
        assert_true(is_read_in_place(a.dst_buffer));
        holds_f32(a.dst_buffer, x, 4);
        for (size_t k = 0; k < all.num_addressable_memories; k++) {
            DO(next, Buffer_CopyToMemory, .buffer = a.dst_buffer,
               .dst_memory = all.addressable_memories[k]);
            holds_f32(next.dst_buffer, x, 4);
            destroy(next.dst_buffer);
        }
        destroy(a.dst_buffer);
    }
    DO(d, Client_Devices, .client = client);
    for (size_t i = 0; i < d.num_devices; i++) {
        DO(a, Buffer_CopyToDevice, .buffer = b, .dst_device = d.devices[i]);
        DO(v, Buffer_Device, .buffer = a.dst_buffer);
        assert_ptr_equal(v.device, d.devices[i]);
        holds_f32(a.dst_buffer, x, 4);
        destroy(a.dst_buffer);
    }
    destroy(b);
}

/* Sixteen copies of what goes away at once. */
static void copies_outlive_their_source(void **state)
{
    static float x[1 << 20];
    int64_t n = 1 << 20;
    PJRT_Buffer *b = NULL, *copy[16];
    float last;

    (void)state;
    x[n - 1] = 42;
    ok(put(PJRT_Buffer_Type_F32, x, &n, 1, NULL, 1, &b), "put");
    DO(d, Client_Devices, .client = client);
    for (int i = 0; i < 16; i++) {
        DO(a, Buffer_CopyToDevice, .buffer = b, .dst_device = d.devices[i % 2]);
        copy[i] = a.dst_buffer;
    }
    delete(b);
    destroy(b);
    for (int i = 0; i < 16; i++) {
        DO(raw, Buffer_CopyRawToHost, .buffer = copy[i], .dst = &last,
           .offset = (n - 1) * 4, .transfer_size = 4);
        await(raw.event);
        assert_true(last == 42);
        destroy(copy[i]);
    }
}

TESTS(buffer, T(arrays_go_there_and_back),
      T(the_callers_array_is_its_own_again),
      T(sizes_of_the_destination_are_checked), T(host_layouts_are_honoured),
      T(device_layouts_are_honoured), T(wrong_arrays_are_refused),
      T(a_device_means_its_first_memory), T(small_types_pass_unpacked),
      T(empty_and_scalar_arrays_pass), T(buffers_describe_themselves),
      T(a_deleted_buffer_says_so), T(external_references_are_counted),
      T(raw_copies_check_their_range_in_the_event),
      T(a_promised_copy_waits_for_its_destination),
      T(copies_cross_memories_and_devices), T(copies_outlive_their_source))
