/* Buffers that no transfer makes: empty, views, errors, aliases, bitcasts, and
 * donation that waits. */
#include "plugin_test.h"

static const int64_t four[] = {4};

static void uninitialized_buffers_have_memory(void **state)
{
    static const int64_t dims[] = {2, 3}, order[] = {0, 1};
    PJRT_Buffer_MemoryLayout l = tiled(order, 2);
    float y[6];

    (void)state;
    for (int i = 0; i < 2; i++) {
        DO(a, Client_CreateUninitializedBuffer, .client = client,
           .shape_dims = dims, .shape_num_dims = 2,
           .shape_element_type = PJRT_Buffer_Type_F32,
           .shape_layout = i ? &l : NULL, .device = i ? device : NULL,
           .memory = i ? NULL : pinned);
        DO(m, Buffer_Memory, .buffer = a.buffer);
        assert_ptr_equal(m.memory, i ? memory : pinned);
        DO(d, Buffer_Dimensions, .buffer = a.buffer);
        assert_memory_equal(d.dims, dims, sizeof dims);
        await(ready_event(a.buffer));
        ok(get(a.buffer, y, sizeof y, NULL), "get");
        destroy(a.buffer);
    }
    BAD(INVALID_ARGUMENT, "neither", Client_CreateUninitializedBuffer,
        .client = client, .shape_dims = dims, .shape_num_dims = 2,
        .shape_element_type = PJRT_Buffer_Type_F32);
}

/* ---- views ---- */

static int views_deleted;

static void on_view_deleted(void *pointer, void *arg)
{
    assert_ptr_equal(pointer, arg);
    views_deleted++;
}

static PJRT_Buffer *view(float *x)
{
    DO(a, Client_CreateViewOfDeviceBuffer, .client = client,
       .device_buffer_ptr = x, .dims = four, .num_dims = 1,
       .element_type = PJRT_Buffer_Type_F32, .device = device,
       .on_delete_callback = on_view_deleted, .on_delete_callback_arg = x);
    return a.buffer;
}

static void views_give_their_memory_back(void **state)
{
    static _Alignas(64) float x[4] = {1, 2, 3, 4};
    PJRT_LoadedExecutable *l = program(1, true);
    PJRT_Buffer *b = view(x), *out[1];

    (void)state;
    views_deleted = 0;
    holds_f32(b, x, 4);
    DO(p, Buffer_UnsafePointer, .buffer = b);
    assert_ptr_equal((void *)p.buffer_pointer, x);
    delete(b);
    assert_int_equal(views_deleted, 1);
    destroy(b);
    assert_int_equal(views_deleted, 1);
    /* Donated: what is not ours is copied, and goes back. */
    b = view(x);
    ok(execute(l, &b, 1, out, -1), "execute");
    assert_true(is_deleted(b));
    assert_int_equal(views_deleted, 2);
    x[0] = 9;
    holds_f32(out[0], (float[]){1, 2, 3, 4}, 4);
    x[0] = 1;
    destroy(out[0]);
    destroy(b);
    unload(l);
}

static void views_need_aligned_memory(void **state)
{
    static _Alignas(64) float x[8];

    (void)state;
    BAD(INVALID_ARGUMENT, "not aligned to 64", Client_CreateViewOfDeviceBuffer,
        .client = client, .device_buffer_ptr = x + 1, .dims = four,
        .num_dims = 1, .element_type = PJRT_Buffer_Type_F32, .device = device);
    BAD(INVALID_ARGUMENT, "at NULL", Client_CreateViewOfDeviceBuffer,
        .client = client, .dims = four, .num_dims = 1,
        .element_type = PJRT_Buffer_Type_F32, .device = device);
    if (mode == SIZE_LEAST) /* `memory` came later */
        return;
    DO(a, Client_CreateViewOfDeviceBuffer, .client = client,
       .device_buffer_ptr = x, .dims = four, .num_dims = 1,
       .element_type = PJRT_Buffer_Type_F32, .memory = unpinned);
    DO(m, Buffer_Memory, .buffer = a.buffer);
    assert_ptr_equal(m.memory, unpinned);
    destroy(a.buffer);
}

/* ---- errors ---- */

static void error_buffers_poison_what_reads_them(void **state)
{
    PJRT_LoadedExecutable *l = program(2, false);
    float x[4] = {1, 2, 3, 4}, y[4];
    PJRT_Buffer *in[2], *out[2];
    PJRT_Event *done = NULL;

    (void)state;
    DO(a, Client_CreateErrorBuffer, .client = client,
       .error_code = PJRT_Error_Code_DATA_LOSS, .error_message = "spilt milk",
       .error_message_size = 5, .shape_dims = four, .shape_num_dims = 1,
       .shape_element_type = PJRT_Buffer_Type_F32, .memory = memory);
    BAD(INVALID_ARGUMENT, "code is OK", Client_CreateErrorBuffer,
        .client = client, .shape_dims = four, .shape_num_dims = 1,
        .shape_element_type = PJRT_Buffer_Type_F32, .memory = memory);
    await_error(ready_event(a.buffer), PJRT_Error_Code_DATA_LOSS, "spilt");
    assert_false(is_read_in_place(a.buffer));
    DO(d, Buffer_Dimensions, .buffer = a.buffer);
    assert_memory_equal(d.dims, four, sizeof four);
    DO(g, Buffer_ToHostBuffer, .src = a.buffer, .dst = y, .dst_size = sizeof y);
    await_error(g.event, PJRT_Error_Code_DATA_LOSS, "spilt");
    DO(c, Buffer_CopyToMemory, .buffer = a.buffer, .dst_memory = pinned);
    await_error(ready_event(c.dst_buffer), PJRT_Error_Code_DATA_LOSS, "spilt");
    in[0] = a.buffer;
    in[1] = put_f32(x, 4);
    ok(start(l, in, 2, out, 0, &done), "execute");
    await_error(done, PJRT_Error_Code_DATA_LOSS, "spilt");
    for (int i = 0; i < 2; i++) {
        await_error(ready_event(out[i]), PJRT_Error_Code_DATA_LOSS, "spilt");
        assert_true(
            is_read_in_place(out[i])); /* it has memory, and no values */
        destroy(out[i]);
        destroy(in[i]);
    }
    destroy(c.dst_buffer);
    unload(l);
}

/* ---- aliases ---- */

static PJRT_Buffer *alias(PJRT_FulfillAliasBufferCallback **promise)
{
    DO(a, Client_CreateAliasBuffer, .client = client, .memory = memory,
       .shape_dims = four, .shape_num_dims = 1,
       .shape_element_type = PJRT_Buffer_Type_F32);
    *promise = a.fulfill_alias_buffer_cb;
    return a.alias_buffer;
}

static void an_alias_becomes_what_fulfils_it(void **state)
{
    static const float x[4] = {1, 2, 3, 4};
    PJRT_FulfillAliasBufferCallback *promise;
    PJRT_Buffer *a = alias(&promise), *b = put_f32(x, 4);
    PJRT_Event *e = ready_event(a);

    (void)state;
    assert_false(is_ready(e));
    assert_false(is_read_in_place(a));
    BAD(FAILED_PRECONDITION, "an alias that nothing fulfilled yet",
        Buffer_UnsafePointer, .buffer = a);
    BAD(FAILED_PRECONDITION, "no memory", Buffer_OpaqueDeviceMemoryDataPointer,
        .buffer = a);
    DO(f, Client_FulfillAliasBuffer, .client = client, .buffer = b,
       .fulfill_alias_buffer_cb = promise);
    await(e);
    assert_true(is_read_in_place(a));
    DO(p, Buffer_UnsafePointer, .buffer = a);
    DO(q, Buffer_UnsafePointer, .buffer = b);
    assert_true(p.buffer_pointer == q.buffer_pointer);
    delete(b);
    destroy(b); /* the memory is the alias's too */
    holds_f32(a, x, 4);
    destroy(a);
}

/* A run that waits for an alias does not keep the run that fulfils it from
 * running; the alias may be gone by then. */
static void an_alias_may_be_fulfilled_by_a_later_run(void **state)
{
    static const float x[4] = {1, 2, 3, 4};
    PJRT_LoadedExecutable *l = program(1, false);
    PJRT_FulfillAliasBufferCallback *promise;
    PJRT_Buffer *a = alias(&promise), *b = put_f32(x, 4);
    PJRT_Buffer *first[1], *second[1], *third[1];
    PJRT_Event *done[3] = {NULL};

    (void)state;
    ok(start(l, &a, 1, first, 0, &done[0]), "the first run");
    ok(start(l, first, 1, second, 0, &done[1]), "a run on its result");
    delete(a);
    destroy(a);
    ok(start(l, &b, 1, third, 0, &done[2]), "the third run");
    await(done[2]);
    assert_false(is_ready(done[0]));
    assert_false(is_ready(done[1]));
    DO(f, Client_FulfillAliasBuffer, .client = client, .buffer = third[0],
       .fulfill_alias_buffer_cb = promise);
    await(done[0]);
    await(done[1]);
    holds_f32(second[0], x, 4);
    destroy(first[0]);
    destroy(second[0]);
    destroy(third[0]);
    destroy(b);
    unload(l);
}

static void an_alias_may_be_fulfilled_by_an_alias(void **state)
{
    static const float x[4] = {1, 2, 3, 4};
    PJRT_FulfillAliasBufferCallback *p, *q;
    PJRT_Buffer *a = alias(&p), *b = alias(&q), *c = put_f32(x, 4);

    (void)state;
    DO(f, Client_FulfillAliasBuffer, .client = client, .buffer = b,
       .fulfill_alias_buffer_cb = p);
    DO(g, Client_FulfillAliasBuffer, .client = client, .buffer = c,
       .fulfill_alias_buffer_cb = q);
    holds_f32(a, x, 4);
    holds_f32(b, x, 4);
    destroy(a);
    destroy(b);
    destroy(c);
}

static void an_alias_may_fail(void **state)
{
    static const float x[5] = {1};
    PJRT_FulfillAliasBufferCallback *promise;
    PJRT_Buffer *a = alias(&promise), *b = put_f32(x, 5);

    (void)state;
    BAD(ABORTED, "no luck", Client_FulfillAliasBuffer,
        .status_code = PJRT_Error_Code_ABORTED, .error_message = "no luck",
        .error_message_size = 7, .fulfill_alias_buffer_cb = promise);
    await_error(ready_event(a), PJRT_Error_Code_ABORTED, "no luck");
    destroy(a);
    a = alias(&promise); /* what does not fit is its error, too */
    BAD(INVALID_ARGUMENT, "another type, shape", Client_FulfillAliasBuffer,
        .client = client, .buffer = b, .fulfill_alias_buffer_cb = promise);
    await_error(ready_event(a), PJRT_Error_Code_INVALID_ARGUMENT, "another");
    destroy(a);
    a = alias(&promise);
    BAD(INVALID_ARGUMENT, "neither a buffer nor an error",
        Client_FulfillAliasBuffer, .fulfill_alias_buffer_cb = promise);
    destroy(a);
    destroy(b);
    b = put_f32(x, 4);
    delete(b);
    a = alias(&promise);
    BAD(INVALID_ARGUMENT, "deleted", Client_FulfillAliasBuffer, .buffer = b,
        .fulfill_alias_buffer_cb = promise);
    await_error(ready_event(a), PJRT_Error_Code_INVALID_ARGUMENT, "deleted");
    destroy(a);
    destroy(b);
}

/* ---- bitcasts ---- */

static void bitcasts_take_the_memory(void **state)
{
    static const int64_t dims[] = {2, 2}, order[] = {0, 1}, eight[] = {8};
    PJRT_Buffer_MemoryLayout l = tiled(order, 2);
    float x[4] = {1, 2, 3, 4};
    uint32_t bits[4];

    (void)state;
    for (int held = 0; held < 2; held++) {
        PJRT_Buffer *b = put_f32(x, 4);

        if (held) {
            DO(up, Buffer_IncreaseExternalReferenceCount, .buffer = b);
        }
        DO(q, Buffer_UnsafePointer, .buffer = b);
        BAD(INVALID_ARGUMENT, "16 bytes seen as 32", Buffer_Bitcast,
            .buffer = b, .element_type = PJRT_Buffer_Type_U32, .dims = eight,
            .num_dims = 1);
        assert_false(is_deleted(b));
        DO(a, Buffer_Bitcast, .buffer = b, .element_type = PJRT_Buffer_Type_U32,
           .dims = dims, .num_dims = 2, .device_layout = &l);
        assert_true(is_deleted(b));
        DO(p, Buffer_UnsafePointer, .buffer = a.out_buffer);
        assert_true(p.buffer_pointer == q.buffer_pointer);
        DO(t, Buffer_ElementType, .buffer = a.out_buffer);
        assert_int_equal(t.type, PJRT_Buffer_Type_U32);
        DO(o, Buffer_GetMemoryLayout, .buffer = a.out_buffer);
        assert_memory_equal(o.layout.tiled.minor_to_major, order, sizeof order);
        if (held) {
            DO(down, Buffer_DecreaseExternalReferenceCount, .buffer = b);
        }
        destroy(b);
        ok(get(a.out_buffer, bits, sizeof bits, NULL), "get");
        assert_memory_equal(bits, x, sizeof x);
        destroy(a.out_buffer);
    }
}

/* XLA holds two of 4 bits in a byte, and its clients count on that here. */
static void bitcasts_to_less_than_a_byte(void **state)
{
    static const float x[1] = {-1.5F}; /* BFC00000 */
    static const int64_t one = 1, eight = 8, dims[] = {4, 4};
    static const uint8_t nibbles[8] = {0, 0, 0, 0, 0, 12, 15, 11},
                         signs[8] = {0, 0, 0, 0, 0, 0xFC, 0xFF, 0xFB},
                         pairs[16] = {[10] = 0, [11] = 3, [12] = 3,
                                      [13] = 3, [14] = 3, [15] = 2};
    PJRT_Buffer *b = put_f32(x, 1);
    uint8_t got[16];

    (void)state;
    BAD(INVALID_ARGUMENT, "a buffer of 4 bytes seen as 8", Buffer_Bitcast,
        .buffer = b, .element_type = PJRT_Buffer_Type_U4, .dims = dims,
        .num_dims = 2);
    DO(u, Buffer_Bitcast, .buffer = b, .element_type = PJRT_Buffer_Type_U4,
       .dims = &eight, .num_dims = 1);
    assert_true(is_deleted(b));
    destroy(b);
    ok(get(u.out_buffer, got, 8, NULL), "get");
    assert_memory_equal(got, nibbles, 8);
    DO(s, Buffer_Bitcast, .buffer = u.out_buffer,
       .element_type = PJRT_Buffer_Type_S4, .dims = &eight, .num_dims = 1);
    destroy(u.out_buffer);
    ok(get(s.out_buffer, got, 8, NULL), "get");
    assert_memory_equal(got, signs, 8);
    DO(t, Buffer_Bitcast, .buffer = s.out_buffer,
       .element_type = PJRT_Buffer_Type_U2, .dims = dims, .num_dims = 2);
    destroy(s.out_buffer);
    ok(get(t.out_buffer, got, 16, NULL), "get");
    assert_memory_equal(got, pairs, 16);
    DO(w, Buffer_Bitcast, .buffer = t.out_buffer,
       .element_type = PJRT_Buffer_Type_S4, .dims = &eight, .num_dims = 1);
    destroy(t.out_buffer);
    ok(get(w.out_buffer, got, 8, NULL), "get");
    assert_memory_equal(got, signs, 8);
    DO(f, Buffer_Bitcast, .buffer = w.out_buffer,
       .element_type = PJRT_Buffer_Type_F32, .dims = &one, .num_dims = 1);
    destroy(w.out_buffer);
    ok(get(f.out_buffer, got, 4, NULL), "get");
    assert_memory_equal(got, x, 4);
    destroy(f.out_buffer);
}

static void bitcasts_of_aliases_wait(void **state)
{
    float x[4] = {1, 2, 3, 4};
    uint32_t bits[4];
    PJRT_FulfillAliasBufferCallback *promise;
    PJRT_Buffer *a = alias(&promise), *b = put_f32(x, 4);

    (void)state;
    DO(c, Buffer_Bitcast, .buffer = a, .element_type = PJRT_Buffer_Type_U32,
       .dims = four, .num_dims = 1);
    DO(f, Client_FulfillAliasBuffer, .buffer = b,
       .fulfill_alias_buffer_cb = promise);
    destroy(a);
    destroy(b);
    ok(get(c.out_buffer, bits, sizeof bits, NULL), "get");
    assert_memory_equal(bits, x, sizeof x);
    destroy(c.out_buffer);
}

/* ---- donation that waits ---- */

typedef PJRT_Buffer_DonateWithControlDependency_Callback_Args dependency;

static void donation_waits_for_its_dependency(void **state)
{
    static const float x[4] = {1, 2, 3, 4};
    dependency d = {
        .struct_size =
            PJRT_Buffer_DonateWithControlDependency_Callback_Args_STRUCT_SIZE};
    PJRT_Event *e;

    (void)state;
    for (int fails = 0; fails < 2; fails++)
        for (int held = 0; held < 2; held++) {
            PJRT_Buffer *b = put_f32(x, 4);

            if (held) { /* somebody looks at it: it stays where it is */
                DO(up, Buffer_IncreaseExternalReferenceCount, .buffer = b);
            }
            DO(a, Buffer_DonateWithControlDependency, .buffer = b);
            assert_true(is_deleted(b));
            BAD(INVALID_ARGUMENT, "deleted", Buffer_DonateWithControlDependency,
                .buffer = b);
            e = ready_event(a.out_buffer);
            assert_false(is_ready(e));
            d.callback_data = a.callback_data;
            d.error_code = fails ? PJRT_Error_Code_ABORTED : PJRT_Error_Code_OK;
            d.error_message = "never";
            d.error_message_size = 5;
            a.dependency_ready_callback(&d);
            if (fails) {
                await_error(e, PJRT_Error_Code_ABORTED, "never");
            } else {
                await(e);
                holds_f32(a.out_buffer, x, 4);
            }
            if (held) {
                DO(down, Buffer_DecreaseExternalReferenceCount, .buffer = b);
            }
            destroy(b);
            destroy(a.out_buffer);
        }
}

static void donation_of_an_alias_waits_for_both(void **state)
{
    static const float x[4] = {1, 2, 3, 4};
    PJRT_FulfillAliasBufferCallback *promise;
    PJRT_Buffer *a = alias(&promise), *b = put_f32(x, 4);
    dependency d = {
        .struct_size =
            PJRT_Buffer_DonateWithControlDependency_Callback_Args_STRUCT_SIZE};
    PJRT_Event *e;

    (void)state;
    DO(c, Buffer_DonateWithControlDependency, .buffer = a);
    e = ready_event(c.out_buffer);
    d.callback_data = c.callback_data;
    c.dependency_ready_callback(&d);
    assert_false(is_ready(e));
    DO(f, Client_FulfillAliasBuffer, .buffer = b,
       .fulfill_alias_buffer_cb = promise);
    await(e);
    destroy(a);
    destroy(b);
    holds_f32(c.out_buffer, x, 4);
    destroy(c.out_buffer);
}

TESTS(create, T(uninitialized_buffers_have_memory),
      T(views_give_their_memory_back), T(views_need_aligned_memory),
      T(error_buffers_poison_what_reads_them),
      T(an_alias_becomes_what_fulfils_it),
      T(an_alias_may_be_fulfilled_by_a_later_run),
      T(an_alias_may_be_fulfilled_by_an_alias), T(an_alias_may_fail),
      T(bitcasts_take_the_memory), T(bitcasts_to_less_than_a_byte),
      T(bitcasts_of_aliases_wait), T(donation_waits_for_its_dependency),
      T(donation_of_an_alias_waits_for_both))
