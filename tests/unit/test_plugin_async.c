/* Transfers in pieces to buffers that are handed out before. */
#include "plugin_test.h"

typedef PJRT_AsyncHostToDeviceTransferManager transfers;

static const int64_t two_three[] = {2, 3}, four[] = {4}, columns[] = {0, 1};

static PJRT_ShapeSpec spec(const int64_t *dims, size_t n)
{
    return (PJRT_ShapeSpec){.struct_size = PJRT_ShapeSpec_STRUCT_SIZE,
                            .dims = dims,
                            .num_dims = n,
                            .element_type = PJRT_Buffer_Type_F32};
}

/* f32[4] and f32[2,3], the latter by columns where asked. */
static transfers *make(bool by_columns)
{
    PJRT_ShapeSpec specs[2] = {spec(four, 1), spec(two_three, 2)};
    PJRT_Buffer_MemoryLayout l = tiled(columns, 2), *list[2] = {NULL, &l};

    DO(a, Client_CreateBuffersForAsyncHostToDevice, .client = client,
       .shape_specs = specs, .num_shape_specs = 2,
       .device_layouts = by_columns ? list : NULL,
       .num_device_layouts = by_columns ? 2 : 0, .memory = memory);
    return a.transfer_manager;
}

static void end(transfers *t)
{
    DO(a, AsyncHostToDeviceTransferManager_Destroy, .transfer_manager = t);
}

static PJRT_Buffer *retrieve(transfers *t, int i)
{
    DO(a, AsyncHostToDeviceTransferManager_RetrieveBuffer,
       .transfer_manager = t, .buffer_index = i);
    return a.buffer_out;
}

static void send(transfers *t, int i, const float *x, int64_t offset,
                 int64_t bytes, bool last)
{
    DO(a, AsyncHostToDeviceTransferManager_TransferData, .transfer_manager = t,
       .buffer_index = i, .data = x, .offset = offset, .transfer_size = bytes,
       .is_last_transfer = last);
    await(a.done_with_h2d_transfer);
}

static void the_manager_knows_its_buffers(void **state)
{
    PJRT_NamedValue note = {.struct_size = PJRT_NamedValue_STRUCT_SIZE};
    transfers *t = make(false);

    (void)state;
    DO(n, AsyncHostToDeviceTransferManager_BufferCount, .transfer_manager = t);
    assert_int_equal(n.buffer_count, 2);
    DO(s, AsyncHostToDeviceTransferManager_BufferSize, .transfer_manager = t,
       .buffer_index = 1);
    assert_int_equal(s.buffer_size, 24);
    DO(d, AsyncHostToDeviceTransferManager_Device, .transfer_manager = t);
    assert_ptr_equal(d.device_out, device);
    for (int i = 0; i < 2; i++) {
        DO(m, AsyncHostToDeviceTransferManager_AddMetadata,
           .transfer_manager = t, .transfer_metadata = &note,
           .num_metadata = 1);
    }
    BAD(INVALID_ARGUMENT, "buffer 2 of a transfer manager of 2",
        AsyncHostToDeviceTransferManager_BufferSize, .transfer_manager = t,
        .buffer_index = 2);
    BAD(INVALID_ARGUMENT, "buffer -1",
        AsyncHostToDeviceTransferManager_RetrieveBuffer, .transfer_manager = t,
        .buffer_index = -1);
    end(t);
}

static void pieces_make_a_buffer(void **state)
{
    float x[4] = {1, 2, 3, 4};
    transfers *t = make(false);
    PJRT_Buffer *b = retrieve(t, 0);
    PJRT_Event *e = ready_event(b);

    (void)state;
    BAD(FAILED_PRECONDITION, "buffer 0 was retrieved already",
        AsyncHostToDeviceTransferManager_RetrieveBuffer, .transfer_manager = t,
        .buffer_index = 0);
    send(t, 0, x + 2, 8, 8, false);
    send(t, 0, x, 0, 4, false);
    assert_false(is_ready(e));
    BAD(INVALID_ARGUMENT, "8 bytes at offset 12 of a buffer of 16",
        AsyncHostToDeviceTransferManager_TransferData, .transfer_manager = t,
        .data = x, .offset = 12, .transfer_size = 8);
    send(t, 0, x + 1, 4, 4, true);
    await(e);
    holds_f32(b, x, 4);
    BAD(FAILED_PRECONDITION, "had its last one",
        AsyncHostToDeviceTransferManager_TransferData, .transfer_manager = t,
        .data = x, .transfer_size = 4);
    BAD(FAILED_PRECONDITION, "had its last one",
        AsyncHostToDeviceTransferManager_SetBufferError, .transfer_manager = t,
        .error_code = PJRT_Error_Code_ABORTED);
    end(t);
    holds_f32(b, x, 4);
    destroy(b);
}

/* Reads and runs that wait for a buffer let its pieces, and later runs, pass.
 */
static void what_waits_lets_the_pieces_pass(void **state)
{
    static float x[1 << 20];
    int64_t n = 1 << 20;
    PJRT_ShapeSpec specs[2] = {spec(four, 1), spec(&n, 1)};
    PJRT_LoadedExecutable *l = program(1, true);
    PJRT_Buffer *small, *big, *other = put_f32(x, 4), *out[1], *last[1];
    PJRT_Event *done = NULL;
    float end_of[1], y[4] = {1, 2, 3, 4};

    (void)state;
    DO(c, Client_CreateBuffersForAsyncHostToDevice, .client = client,
       .shape_specs = specs, .num_shape_specs = 2, .memory = memory);
    small = retrieve(c.transfer_manager, 0);
    big = retrieve(c.transfer_manager, 1);
    x[n - 1] = 8;
    DO(raw, Buffer_CopyRawToHost, .buffer = big, .dst = end_of,
       .offset = (n - 1) * 4, .transfer_size = 4);
    ok(start(l, &small, 1, out, 0, &done), "a run that waits");
    assert_true(is_deleted(small)); /* donated, and yet to be filled */
    ok(execute(l, &other, 1, last, -1), "a run that does not");
    send(c.transfer_manager, 1, x, 0, n * 4, true);
    await(raw.event);
    assert_true(end_of[0] == 8);
    assert_false(is_ready(done));
    send(c.transfer_manager, 0, y, 0, 16, true);
    await(done);
    holds_f32(out[0], y, 4);
    end(c.transfer_manager);
    destroy(small);
    destroy(big);
    destroy(other);
    destroy(out[0]);
    destroy(last[0]);
    unload(l);
}

static PJRT_Error *send_literal(transfers *t, int i, const float *x,
                                const int64_t *dims, size_t n,
                                PJRT_Buffer_MemoryLayout *layout)
{
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args a = {
        .struct_size =
            PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args_STRUCT_SIZE,
        .transfer_manager = t,
        .buffer_index = i,
        .data = x,
        .shape_dims = dims,
        .shape_num_dims = n,
        .shape_element_type = PJRT_Buffer_Type_F32,
        .shape_layout = layout};
    PJRT_Error *e =
        api->PJRT_AsyncHostToDeviceTransferManager_TransferLiteral(&a);

    if (!e)
        await(a.done_with_h2d_transfer);
    return e;
}

static void literals_come_in_any_layout(void **state)
{
    static const float rows[6] = {1, 2, 3, 4, 5, 6},
                       cols[6] = {1, 4, 2, 5, 3, 6};
    static const int64_t down[] = {1, 0};

    (void)state;
    for (int from = 0; from < 2; from++)
        for (int to = 0; to < 2; to++) {
            PJRT_Buffer_MemoryLayout l = tiled(from ? columns : down, 2);
            PJRT_Buffer_MemoryLayout plain = tiled(down, 2);
            transfers *t = make(to);
            PJRT_Buffer *b = retrieve(t, 1);
            float y[6];

            ok(send_literal(t, 1, from ? cols : rows, two_three, 2, &l),
               "literal");
            ok(get(b, y, sizeof y, &plain), "get");
            assert_memory_equal(y, rows, sizeof y);
            ok(get(b, y, sizeof y, NULL), "get");
            assert_memory_equal(y, to ? cols : rows, sizeof y);
            wrong(send_literal(t, 1, rows, two_three, 2, NULL),
                  PJRT_Error_Code_FAILED_PRECONDITION, "had its last");
            wrong(send_literal(t, 0, rows, two_three, 2, NULL),
                  PJRT_Error_Code_INVALID_ARGUMENT, "another type or shape");
            end(t);
            destroy(b);
        }
}

static void a_buffer_may_fail(void **state)
{
    transfers *t = make(false);
    PJRT_Buffer *b = retrieve(t, 0);

    (void)state;
    DO(a, AsyncHostToDeviceTransferManager_SetBufferError,
       .transfer_manager = t, .error_code = PJRT_Error_Code_INTERNAL,
       .error_message = "disk gone", .error_message_size = 9);
    await_error(ready_event(b), PJRT_Error_Code_INTERNAL, "disk gone");
    end(t);
    destroy(b);
}

/* Also when nobody looks, or only after the end. */
static void what_is_not_filled_is_cancelled(void **state)
{
    float x[4] = {0};
    transfers *t = make(false);
    PJRT_Buffer *b = retrieve(t, 0), *c = retrieve(t, 1);

    (void)state;
    send(t, 0, x, 0, 16, false);
    delete(c);
    send(t, 1, x, 0, 16, true); /* nobody will read it */
    end(t);
    await_error(ready_event(b), PJRT_Error_Code_CANCELLED, "destroyed before");
    destroy(b);
    destroy(c);
    end(make(true));
}

static void wrong_shapes_are_refused(void **state)
{
    static const int64_t bad[] = {-4};
    PJRT_ShapeSpec specs[2] = {spec(four, 1), spec(bad, 1)};
    PJRT_Buffer_MemoryLayout *list[1] = {NULL};

    (void)state;
    BAD(INVALID_ARGUMENT,
        "buffer 1: ", Client_CreateBuffersForAsyncHostToDevice,
        .client = client, .shape_specs = specs, .num_shape_specs = 2,
        .memory = memory);
    BAD(INVALID_ARGUMENT, "1 layouts for 2 shapes",
        Client_CreateBuffersForAsyncHostToDevice, .client = client,
        .shape_specs = specs, .num_shape_specs = 2, .device_layouts = list,
        .num_device_layouts = 1, .memory = memory);
    BAD(RESOURCE_EXHAUSTED, "memory", /* as many as take 2^64 bytes */
        Client_CreateBuffersForAsyncHostToDevice, .client = client,
        .shape_specs = specs, .num_shape_specs = (size_t)1 << 61,
        .memory = memory);
    DO(none, Client_CreateBuffersForAsyncHostToDevice, .client = client,
       .memory = memory);
    end(none.transfer_manager);
}

TESTS(async, T(the_manager_knows_its_buffers), T(pieces_make_a_buffer),
      T(what_waits_lets_the_pieces_pass), T(literals_come_in_any_layout),
      T(a_buffer_may_fail), T(what_is_not_filled_is_cancelled),
      T(wrong_shapes_are_refused))
