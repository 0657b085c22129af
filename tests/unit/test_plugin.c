/* The plugin as a framework sees it: libsundog.so opened by path, every call
 * through the table.  Programs come saved, so no compiler is needed. */
#include "pjrt_abi.h"
#include "thunk.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static const char *library; /* its path */
static const PJRT_Api *api;
static PJRT_Client *client;
static PJRT_Device *device;
static PJRT_Memory *memory, *pinned;

#define ARGS(type, ...) \
    PJRT_##type##_Args a = {.struct_size = PJRT_##type##_Args_STRUCT_SIZE, \
                            __VA_ARGS__}
#define OK(call) ok(call, #call)

static void ok(PJRT_Error *e, const char *what)
{
    PJRT_Error_Message_Args a = {.struct_size =
                                     PJRT_Error_Message_Args_STRUCT_SIZE};

    if (!e)
        return;
    a.error = e;
    api->PJRT_Error_Message(&a);
    fail_msg("%s: %.*s", what, (int)a.message_size, a.message);
}

/* An error of that code whose message holds `says`. */
static void wrong(PJRT_Error *e, PJRT_Error_Code code, const char *says)
{
    PJRT_Error_GetCode_Args c = {.struct_size =
                                     PJRT_Error_GetCode_Args_STRUCT_SIZE};
    PJRT_Error_Message_Args m = {.struct_size =
                                     PJRT_Error_Message_Args_STRUCT_SIZE};
    PJRT_Error_Destroy_Args d = {.struct_size =
                                     PJRT_Error_Destroy_Args_STRUCT_SIZE};
    char text[1000];

    assert_non_null(e);
    c.error = m.error = d.error = e;
    OK(api->PJRT_Error_GetCode(&c));
    api->PJRT_Error_Message(&m);
    snprintf(text, sizeof text, "%.*s", (int)m.message_size, m.message);
    if (!strstr(text, says))
        fail_msg("'%s' does not say '%s'", text, says);
    assert_int_equal(c.code, code);
    api->PJRT_Error_Destroy(&d);
}

static void await(PJRT_Event *event)
{
    PJRT_Event_Await_Args w = {.struct_size =
                                   PJRT_Event_Await_Args_STRUCT_SIZE};
    PJRT_Event_Destroy_Args d = {.struct_size =
                                     PJRT_Event_Destroy_Args_STRUCT_SIZE};

    w.event = d.event = event;
    OK(api->PJRT_Event_Await(&w));
    OK(api->PJRT_Event_Destroy(&d));
}

static void await_error(PJRT_Event *event, PJRT_Error_Code code,
                        const char *says)
{
    PJRT_Event_Await_Args w = {.struct_size =
                                   PJRT_Event_Await_Args_STRUCT_SIZE};
    PJRT_Event_Destroy_Args d = {.struct_size =
                                     PJRT_Event_Destroy_Args_STRUCT_SIZE};

    w.event = d.event = event;
    wrong(api->PJRT_Event_Await(&w), code, says);
    OK(api->PJRT_Event_Destroy(&d));
}

/* ---- buffers ---- */

static PJRT_Error *put(PJRT_Buffer_Type type, const void *data,
                       const int64_t *dims, size_t rank, const int64_t *strides,
                       int semantics, PJRT_Buffer **out)
{
    ARGS(Client_BufferFromHostBuffer, .client = client, .data = data,
         .type = type, .dims = dims, .num_dims = rank, .byte_strides = strides,
         .num_byte_strides = strides ? rank : 0,
         .host_buffer_semantics = (PJRT_HostBufferSemantics)semantics,
         .memory = memory);
    PJRT_Error *e = api->PJRT_Client_BufferFromHostBuffer(&a);

    if (!e) {
        await(a.done_with_host_buffer);
        *out = a.buffer;
    }
    return e;
}

static PJRT_Buffer *put_f32(const float *data, int64_t n)
{
    PJRT_Buffer *b = NULL;

    OK(put(PJRT_Buffer_Type_F32, data, &n, 1, NULL, 0, &b));
    return b;
}

static PJRT_Error *get(PJRT_Buffer *b, void *dst, size_t bytes,
                       PJRT_Buffer_MemoryLayout *layout)
{
    ARGS(Buffer_ToHostBuffer, .src = b, .host_layout = layout, .dst = dst,
         .dst_size = bytes);
    PJRT_Error *e = api->PJRT_Buffer_ToHostBuffer(&a);

    if (!e)
        await(a.event);
    return e;
}

static void destroy(PJRT_Buffer *b)
{
    ARGS(Buffer_Destroy, .buffer = b);

    OK(api->PJRT_Buffer_Destroy(&a));
}

static bool is_deleted(PJRT_Buffer *b)
{
    ARGS(Buffer_IsDeleted, .buffer = b);

    OK(api->PJRT_Buffer_IsDeleted(&a));
    return a.is_deleted;
}

static void the_table_is_full(void **state)
{
    void *const *slot = (void *const *)((const char *)api + 40);
    PJRT_Error *(*call)(void *);
    size_t tail[3] = {sizeof tail, 0, 0}, n = (sizeof *api - 40) / 8;

    (void)state;
    assert_int_equal(api->struct_size, sizeof *api);
    assert_int_equal(api->pjrt_api_version.major_version, PJRT_API_MAJOR);
    assert_int_equal(api->pjrt_api_version.minor_version, PJRT_API_MINOR);
    assert_int_equal(n, 138);
    for (size_t i = 0; i < n; i++)
        assert_non_null(slot[i]);
    /* Structs without what every version has are refused, all of them. */
    tail[0] = 8;
    for (size_t i = 3; i < n; i++) {
        memcpy(&call, &slot[i], sizeof call);
        wrong(call(tail), PJRT_Error_Code_INVALID_ARGUMENT, "struct_size is 8");
    }
}

static void errors_work_by_their_own_table(void **state)
{
    ARGS(Client_LookupDevice, .client = client, .id = 77);
    PJRT_Error *e = api->PJRT_Client_LookupDevice(&a);
    const PJRT_Error_FunctionTable *t = *(void **)e;
    const char *text;
    size_t n;
    PJRT_Error_ForEachPayload_Args p = {
        .struct_size = PJRT_Error_ForEachPayload_Args_STRUCT_SIZE};

    (void)state;
    assert_int_equal(t->struct_size, 56);
    assert_int_equal(t->get_code(e), PJRT_Error_Code_INVALID_ARGUMENT);
    t->message(e, &text, &n);
    assert_string_equal(text, "No matching device found for device_id 77");
    p.error = e;
    assert_null(api->PJRT_Error_ForEachPayload(&p));
    t->for_each_payload(e, NULL, NULL);
    t->destroy(e);
}

static void the_client_names_its_things(void **state)
{
    ARGS(Client_PlatformName, .client = client);
    PJRT_Device_GetDescription_Args g = {
        .struct_size = PJRT_Device_GetDescription_Args_STRUCT_SIZE};
    PJRT_DeviceDescription_ToString_Args s = {
        .struct_size = PJRT_DeviceDescription_ToString_Args_STRUCT_SIZE};
    PJRT_Plugin_Attributes_Args at = {
        .struct_size = PJRT_Plugin_Attributes_Args_STRUCT_SIZE};
    PJRT_Client_DefaultDeviceAssignment_Args d = {
        .struct_size = PJRT_Client_DefaultDeviceAssignment_Args_STRUCT_SIZE};
    int list[8];

    (void)state;
    OK(api->PJRT_Client_PlatformName(&a));
    assert_memory_equal(a.platform_name, "xpu", a.platform_name_size);
    g.device = device;
    OK(api->PJRT_Device_GetDescription(&g));
    s.device_description = g.device_description;
    OK(api->PJRT_DeviceDescription_ToString(&s));
    assert_string_equal(s.to_string, "xpu(id=0)");
    OK(api->PJRT_Plugin_Attributes(&at));
    assert_int_equal(at.attributes[1].int64_array_value[1], 20);
    d.client = client;
    d.default_assignment = list;
    d.default_assignment_size = 7;
    d.num_replicas = 4;
    d.num_partitions = 2;
    wrong(api->PJRT_Client_DefaultDeviceAssignment(&d),
          PJRT_Error_Code_FAILED_PRECONDITION, "4 * 2 = 8");
    d.default_assignment_size = 8;
    OK(api->PJRT_Client_DefaultDeviceAssignment(&d));
}

/* jaxlib 0.10.2's struct ends at 185: what lies behind is its stack. */
static void older_callers_are_not_written_past(void **state)
{
    union {
        PJRT_Device_MemoryStats_Args a;
        uint8_t bytes[sizeof(PJRT_Device_MemoryStats_Args) + 64];
    } u;

    (void)state;
    memset(&u, 0xa5, sizeof u);
    u.a.struct_size = 185;
    u.a.extension_start = NULL;
    u.a.device = device;
    OK(api->PJRT_Device_MemoryStats(&u.a));
    for (size_t i = 185; i < sizeof u; i++)
        assert_int_equal(u.bytes[i], 0xa5);
    assert_true(u.a.bytes_limit_is_set);
    assert_true(u.a.bytes_limit > 0);
    assert_false(u.a.pool_bytes_is_set);
    u.a.struct_size = PJRT_Device_MemoryStats_Args_STRUCT_SIZE;
    OK(api->PJRT_Device_MemoryStats(&u.a));
    assert_false(u.a.peak_allocated_bytes_is_set);
}

static void arrays_go_there_and_back(void **state)
{
    static const int64_t dims[] = {2, 3}, order[] = {0, 1}, strides[] = {32, 8},
                         back[] = {-24, 4};
    int32_t from[16], to[6];
    PJRT_Buffer_MemoryLayout columns = {
        .struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE,
        .type = PJRT_Buffer_MemoryLayout_Type_Tiled,
        .tiled = {.minor_to_major = order, .minor_to_major_size = 2}};
    PJRT_Buffer *b = NULL;

    (void)state;
    for (int i = 0; i < 16; i++)
        from[i] = 100 + i;
    for (int semantics = 0; semantics < 3; semantics++) {
        OK(put(PJRT_Buffer_Type_S32, from, dims, 2, NULL, semantics, &b));
        OK(get(b, to, sizeof to, NULL));
        assert_memory_equal(to, from, sizeof to);
        OK(get(b, to, sizeof to, &columns));
        assert_memory_equal(to, ((int32_t[]){100, 103, 101, 104, 102, 105}),
                            sizeof to);
        wrong(get(b, to, 23, NULL), PJRT_Error_Code_INVALID_ARGUMENT, "23");
        destroy(b);
        OK(put(PJRT_Buffer_Type_S32, from, dims, 2, strides, semantics, &b));
        OK(get(b, to, sizeof to, NULL));
        assert_memory_equal(to, ((int32_t[]){100, 102, 104, 108, 110, 112}),
                            sizeof to);
        destroy(b);
        OK(put(PJRT_Buffer_Type_S32, from + 8, dims, 2, back, semantics, &b));
        OK(get(b, to, sizeof to, NULL));
        assert_memory_equal(to, ((int32_t[]){108, 109, 110, 102, 103, 104}),
                            sizeof to);
        destroy(b);
    }
    columns.type = PJRT_Buffer_MemoryLayout_Type_Strides;
    OK(put(PJRT_Buffer_Type_S32, from, dims, 2, NULL, 0, &b));
    wrong(get(b, to, sizeof to, &columns), PJRT_Error_Code_INVALID_ARGUMENT,
          "strides");
    destroy(b);
}

static void small_types_and_empty_arrays_pass(void **state)
{
    static const int64_t none[] = {3, 0}, big[] = {1, INT64_MAX};
    int8_t s4[] = {-8, 7, -1, 0}, to[4];
    int64_t four = 4;
    PJRT_Buffer *b = NULL;
    ARGS(Buffer_OnDeviceSizeInBytes, .buffer = NULL);

    (void)state;
    OK(put(PJRT_Buffer_Type_S4, s4, &four, 1, NULL, 2, &b));
    OK(get(b, to, 4, NULL));
    assert_memory_equal(s4, to, 4);
    a.buffer = b;
    OK(api->PJRT_Buffer_OnDeviceSizeInBytes(&a));
    assert_int_equal(a.on_device_size_in_bytes, 4);
    destroy(b);
    OK(put(PJRT_Buffer_Type_F32, NULL, none, 2, NULL, 2, &b));
    OK(get(b, to, 0, NULL));
    destroy(b);
    wrong(put(PJRT_Buffer_Type_F32, s4, big, 2, NULL, 0, &b),
          PJRT_Error_Code_INVALID_ARGUMENT, "2^46");
    wrong(put(PJRT_Buffer_Type_TOKEN, s4, big, 0, NULL, 0, &b),
          PJRT_Error_Code_UNIMPLEMENTED, "element type 23");
}

static void a_deleted_buffer_says_so(void **state)
{
    float x[2] = {1, 2}, y[2];
    PJRT_Buffer *b = put_f32(x, 2);
    PJRT_Buffer_Delete_Args d = {.struct_size =
                                     PJRT_Buffer_Delete_Args_STRUCT_SIZE};
    PJRT_Buffer_ReadyEvent_Args r = {
        .struct_size = PJRT_Buffer_ReadyEvent_Args_STRUCT_SIZE};
    PJRT_Error *e;

    (void)state;
    r.buffer = d.buffer = b;
    OK(api->PJRT_Buffer_ReadyEvent(&r));
    assert_false(is_deleted(b));
    OK(api->PJRT_Buffer_Delete(&d));
    OK(api->PJRT_Buffer_Delete(&d));
    assert_true(is_deleted(b));
    await(r.event); /* taken before: not spoiled */
    OK(api->PJRT_Buffer_ReadyEvent(&r));
    await_error(r.event, PJRT_Error_Code_INVALID_ARGUMENT, "deleted");
    e = get(b, y, sizeof y, NULL);
    assert_non_null(e);
    wrong(e, PJRT_Error_Code_INVALID_ARGUMENT, "deleted");
    destroy(b);
    destroy(NULL);
}

static void external_references_are_counted(void **state)
{
    float x[2] = {1, 2};
    PJRT_Buffer *b = put_f32(x, 2);
    PJRT_Buffer_IncreaseExternalReferenceCount_Args up = {
        .struct_size =
            PJRT_Buffer_IncreaseExternalReferenceCount_Args_STRUCT_SIZE};
    PJRT_Buffer_DecreaseExternalReferenceCount_Args down = {
        .struct_size =
            PJRT_Buffer_DecreaseExternalReferenceCount_Args_STRUCT_SIZE};
    ARGS(Buffer_OpaqueDeviceMemoryDataPointer, .buffer = b);

    (void)state;
    up.buffer = down.buffer = b;
    OK(api->PJRT_Buffer_IncreaseExternalReferenceCount(&up));
    OK(api->PJRT_Buffer_DecreaseExternalReferenceCount(&down));
    wrong(api->PJRT_Buffer_DecreaseExternalReferenceCount(&down),
          PJRT_Error_Code_INVALID_ARGUMENT, "zero");
    OK(api->PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&a));
    assert_non_null(a.device_memory_ptr);
    destroy(b);
}

static void raw_copies_check_their_range_in_the_event(void **state)
{
    float x[4] = {1, 2, 3, 4}, y[2];
    PJRT_Buffer *b = put_f32(x, 4);
    ARGS(Buffer_CopyRawToHost, .buffer = b, .dst = y, .offset = 8,
         .transfer_size = 8);

    (void)state;
    OK(api->PJRT_Buffer_CopyRawToHost(&a));
    await(a.event);
    assert_true(y[0] == 3 && y[1] == 4);
    a.offset = 12;
    OK(api->PJRT_Buffer_CopyRawToHost(&a));
    await_error(a.event, PJRT_Error_Code_INVALID_ARGUMENT,
                "8 bytes at offset 12 of a buffer of 16");
    destroy(b);
}

static void a_promised_copy_waits_for_its_destination(void **state)
{
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    PJRT_Buffer *b = put_f32(x, 4);
    ARGS(Buffer_CopyRawToHostFuture, .buffer = b, .transfer_size = 16);
    PJRT_Buffer_CopyRawToHostFuture_Callback_Args c = {
        .struct_size =
            PJRT_Buffer_CopyRawToHostFuture_Callback_Args_STRUCT_SIZE};

    (void)state;
    OK(api->PJRT_Buffer_CopyRawToHostFuture(&a));
    destroy(b);
    c.callback_data = a.callback_data;
    c.dst = y;
    a.future_ready_callback(&c);
    await(a.event);
    assert_memory_equal(x, y, sizeof x);
    b = put_f32(x, 4);
    a.buffer = b;
    OK(api->PJRT_Buffer_CopyRawToHostFuture(&a));
    c.callback_data = a.callback_data;
    c.error_code = PJRT_Error_Code_ABORTED;
    c.error_message = "gone";
    c.error_message_size = 4;
    a.future_ready_callback(&c);
    await_error(a.event, PJRT_Error_Code_ABORTED, "gone");
    destroy(b);
}

static void copies_cross_memories(void **state)
{
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    PJRT_Buffer *b = put_f32(x, 4);
    ARGS(Buffer_CopyToMemory, .buffer = b, .dst_memory = pinned);
    PJRT_Buffer_Memory_Args m = {.struct_size =
                                     PJRT_Buffer_Memory_Args_STRUCT_SIZE};
    PJRT_Buffer_IsOnCpu_Args c = {.struct_size =
                                      PJRT_Buffer_IsOnCpu_Args_STRUCT_SIZE};

    (void)state;
    OK(api->PJRT_Buffer_CopyToMemory(&a));
    c.buffer = b;
    OK(api->PJRT_Buffer_IsOnCpu(&c));
    assert_false(c.is_on_cpu);
    destroy(b);
    m.buffer = a.dst_buffer;
    OK(api->PJRT_Buffer_Memory(&m));
    assert_ptr_equal(m.memory, pinned);
    OK(get(a.dst_buffer, y, sizeof y, NULL));
    assert_memory_equal(x, y, sizeof x);
    destroy(a.dst_buffer);
}

/* ---- events ---- */

typedef struct {
    int calls;
    PJRT_Error *error;
} heard;

static void hear(PJRT_Error *e, void *arg)
{
    heard *h = arg;

    h->calls++;
    h->error = e;
}

static void callbacks_survive_their_handle(void **state)
{
    PJRT_Event_Create_Args c = {.struct_size =
                                    PJRT_Event_Create_Args_STRUCT_SIZE};
    PJRT_Event_OnReady_Args on = {.struct_size =
                                      PJRT_Event_OnReady_Args_STRUCT_SIZE};
    PJRT_Event_IsReady_Args is = {.struct_size =
                                      PJRT_Event_IsReady_Args_STRUCT_SIZE};
    PJRT_Event_Set_Args set = {.struct_size = PJRT_Event_Set_Args_STRUCT_SIZE};
    PJRT_Event_Error_Args er = {.struct_size =
                                    PJRT_Event_Error_Args_STRUCT_SIZE};
    PJRT_Event_Destroy_Args d = {.struct_size =
                                     PJRT_Event_Destroy_Args_STRUCT_SIZE};
    heard h[3] = {{0}};

    (void)state;
    OK(api->PJRT_Event_Create(&c));
    on.event = is.event = set.event = er.event = d.event = c.event;
    on.callback = hear;
    for (int i = 0; i < 2; i++) {
        on.user_arg = &h[i];
        OK(api->PJRT_Event_OnReady(&on));
    }
    OK(api->PJRT_Event_IsReady(&is));
    assert_false(is.is_ready);
    assert_int_equal(h[0].calls, 0);
    set.error_code = PJRT_Error_Code_DATA_LOSS;
    set.error_message = "lost it";
    set.error_message_size = 4;
    OK(api->PJRT_Event_Set(&set));
    on.user_arg = &h[2];
    OK(api->PJRT_Event_OnReady(&on));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(h[i].calls, 1);
        wrong(h[i].error, PJRT_Error_Code_DATA_LOSS, "lost");
    }
    wrong(api->PJRT_Event_Error(&er), PJRT_Error_Code_DATA_LOSS, "lost");
    wrong(api->PJRT_Event_Error(&er), PJRT_Error_Code_DATA_LOSS, "lost");
    wrong(api->PJRT_Event_Set(&set), PJRT_Error_Code_FAILED_PRECONDITION,
          "is set");
    OK(api->PJRT_Event_Destroy(&d));
}

static int views_deleted;

static void on_view_deleted(void *pointer, void *arg)
{
    assert_ptr_equal(pointer, arg);
    views_deleted++;
}

static void views_give_their_memory_back(void **state)
{
    static _Alignas(64) float x[4] = {1, 2, 3, 4};
    float y[4];
    int64_t n = 4;
    ARGS(Client_CreateViewOfDeviceBuffer, .client = client,
         .device_buffer_ptr = x, .dims = &n, .num_dims = 1,
         .element_type = PJRT_Buffer_Type_F32, .device = device,
         .on_delete_callback = on_view_deleted, .on_delete_callback_arg = x);

    (void)state;
    views_deleted = 0;
    OK(api->PJRT_Client_CreateViewOfDeviceBuffer(&a));
    OK(get(a.buffer, y, sizeof y, NULL));
    assert_memory_equal(x, y, sizeof x);
    assert_int_equal(views_deleted, 0);
    destroy(a.buffer);
    assert_int_equal(views_deleted, 1);
}

/* ---- programs ---- */

/* Copies each parameter f32[4] to its output; the first, where asked, is
 * donated and its memory becomes the output's. */
static sd_buf saved(int n, bool donate)
{
    static const int64_t dims[] = {4};
    static const char options[] = {0x1a, 4, 0x20, 1, 0x28, 1};
    device_desc d;
    thunk_program *p;
    sd_buf body = {0}, b = {0};

    assert_true(device_desc_of_name("host:v3", &d));
    d.features = 0;
    d.libs = 0;
    p = thunk_program_create("jit_copy", &d);
    p->nparam = p->noutput = n;
    p->param = sd_arena_array(p->arena, thunk_type, n);
    p->output = sd_arena_array(p->arena, thunk_type, n);
    p->donatable = sd_arena_array(p->arena, bool, n);
    p->donatable[0] = donate;
    p->seq.at = sd_arena_array(p->arena, thunk, n);
    for (int i = 0; i < n; i++) {
        thunk t = {.kind = THUNK_COPY, .name = "copy", .narg = 2, .trip = -1};
        int from, to;

        p->param[i] = p->output[i] = (thunk_type){SD_F32, 1, dims, 16, NULL};
        from = thunk_add_buffer(p, (thunk_buffer){.kind = THUNK_B_PARAM,
                                                  .index = i,
                                                  .bytes = 16,
                                                  .alias = -1});
        to =
            thunk_add_buffer(p, (thunk_buffer){.kind = THUNK_B_OUTPUT,
                                               .index = i,
                                               .bytes = 16,
                                               .alias = donate && !i ? 0 : -1});
        if (donate && !i)
            continue;
        t.arg = sd_arena_array(p->arena, thunk_slice, 2);
        t.arg[0] = (thunk_slice){from, 0, 16};
        t.arg[1] = (thunk_slice){to, 0, 16};
        p->seq.at[p->seq.n++] = t;
    }
    p->fingerprint = 0xabc;
    assert_null(thunk_save(p, &body));
    thunk_program_release(p);
    sd_buf_str(&b, "SDEXECUT");
    sd_buf_u32(&b, 1);
    sd_buf_u64(&b, sizeof options);
    sd_buf_u64(&b, sd_hash(options, sizeof options, 1));
    sd_buf_add(&b, options, sizeof options);
    sd_buf_add(&b, body.at, body.len);
    sd_buf_finish(&body);
    return b;
}

static PJRT_Error *load(const sd_buf *b, PJRT_LoadedExecutable **out)
{
    ARGS(Executable_DeserializeAndLoad, .client = client,
         .serialized_executable = b->at, .serialized_executable_size = b->len);
    PJRT_Error *e = api->PJRT_Executable_DeserializeAndLoad(&a);

    if (!e)
        *out = a.loaded_executable;
    return e;
}

static PJRT_LoadedExecutable *program(int n, bool donate)
{
    sd_buf b = saved(n, donate);
    PJRT_LoadedExecutable *l = NULL;

    OK(load(&b, &l));
    sd_buf_finish(&b);
    return l;
}

static void unload(PJRT_LoadedExecutable *l)
{
    ARGS(LoadedExecutable_Destroy, .executable = l);

    OK(api->PJRT_LoadedExecutable_Destroy(&a));
}

static PJRT_Error *execute(PJRT_LoadedExecutable *l, PJRT_Buffer **arg,
                           size_t n, PJRT_Buffer **out, int64_t keep)
{
    PJRT_Buffer *const *args[] = {arg};
    PJRT_Buffer **outs[] = {out};
    PJRT_Event *done[1] = {NULL};
    PJRT_ExecuteOptions o = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE,
                             .non_donatable_input_indices = &keep,
                             .num_non_donatable_input_indices = keep >= 0};
    ARGS(LoadedExecutable_Execute, .executable = l, .options = &o,
         .argument_lists = args, .num_devices = 1, .num_args = n,
         .output_lists = outs, .device_complete_events = done);
    PJRT_Error *e = api->PJRT_LoadedExecutable_Execute(&a);

    if (!e)
        await(done[0]);
    return e;
}

static void programs_run(void **state)
{
    enum { N = 300 };
    PJRT_LoadedExecutable *l = program(N, false);
    PJRT_Buffer *in[N], *out[N];
    float x[4] = {0}, y[4];

    (void)state;
    for (int i = 0; i < N; i++) {
        x[3] = (float)i;
        in[i] = put_f32(x, 4);
    }
    OK(execute(l, in, N, out, -1));
    for (int i = 0; i < N; i++) {
        OK(get(out[i], y, sizeof y, NULL));
        assert_true(y[3] == (float)i);
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
    PJRT_Buffer_Delete_Args d = {.struct_size =
                                     PJRT_Buffer_Delete_Args_STRUCT_SIZE};
    PJRT_LoadedExecutable_Delete_Args del = {
        .struct_size = PJRT_LoadedExecutable_Delete_Args_STRUCT_SIZE};

    (void)state;
    wrong(execute(l, in, 3, out, -1), PJRT_Error_Code_INVALID_ARGUMENT,
          "jit_copy takes 2 arguments, not 3");
    wrong(execute(l, in, 2, out, -1), PJRT_Error_Code_INVALID_ARGUMENT,
          "jit_copy: argument 1 is f32[5], the program wants f32[4]");
    d.buffer = in[2];
    OK(api->PJRT_Buffer_Delete(&d));
    wrong(execute(l, (PJRT_Buffer *[]){in[0], in[2]}, 2, out, -1),
          PJRT_Error_Code_INVALID_ARGUMENT, "deleted");
    del.executable = l;
    OK(api->PJRT_LoadedExecutable_Delete(&del));
    wrong(execute(l, (PJRT_Buffer *[]){in[0], in[0]}, 2, out, -1),
          PJRT_Error_Code_INVALID_ARGUMENT, "was deleted");
    for (int i = 0; i < 3; i++)
        destroy(in[i]);
    unload(l);
}

static void donation_takes_the_argument(void **state)
{
    PJRT_LoadedExecutable *l = program(2, true);
    float x[4] = {1, 2, 3, 4}, y[4];
    PJRT_Buffer *in[2] = {put_f32(x, 4), put_f32(x, 4)}, *out[2];
    PJRT_Buffer_IncreaseExternalReferenceCount_Args up = {
        .struct_size =
            PJRT_Buffer_IncreaseExternalReferenceCount_Args_STRUCT_SIZE};
    PJRT_Buffer_DecreaseExternalReferenceCount_Args down = {
        .struct_size =
            PJRT_Buffer_DecreaseExternalReferenceCount_Args_STRUCT_SIZE};

    (void)state;
    wrong(execute(l, (PJRT_Buffer *[]){in[0], in[0]}, 2, out, -1),
          PJRT_Error_Code_INVALID_ARGUMENT, "donated");
    assert_false(is_deleted(in[0]));
    OK(execute(l, in, 2, out, 0)); /* kept: copied instead */
    assert_false(is_deleted(in[0]));
    OK(get(out[0], y, sizeof y, NULL));
    assert_memory_equal(x, y, sizeof x);
    destroy(out[0]);
    destroy(out[1]);
    OK(execute(l, in, 2, out, -1));
    assert_true(is_deleted(in[0]));
    assert_false(is_deleted(in[1]));
    OK(get(out[0], y, sizeof y, NULL));
    assert_memory_equal(x, y, sizeof x);
    wrong(execute(l, in, 2, out, -1), PJRT_Error_Code_INVALID_ARGUMENT,
          "donated");
    destroy(in[0]);
    /* Somebody else looks at it: the result must lie elsewhere. */
    in[0] = out[0];
    destroy(out[1]);
    up.buffer = down.buffer = in[0];
    OK(api->PJRT_Buffer_IncreaseExternalReferenceCount(&up));
    OK(execute(l, in, 2, out, -1));
    OK(get(out[0], y, sizeof y, NULL));
    assert_memory_equal(x, y, sizeof x);
    OK(api->PJRT_Buffer_DecreaseExternalReferenceCount(&down));
    destroy(in[0]);
    destroy(in[1]);
    destroy(out[0]);
    destroy(out[1]);
    unload(l);
}

static void executables_answer_and_come_back_from_bytes(void **state)
{
    PJRT_LoadedExecutable *l = program(2, true), *again = NULL;
    PJRT_LoadedExecutable_GetExecutable_Args g = {
        .struct_size = PJRT_LoadedExecutable_GetExecutable_Args_STRUCT_SIZE};
    PJRT_Executable_Name_Args n = {.struct_size =
                                       PJRT_Executable_Name_Args_STRUCT_SIZE};
    PJRT_Executable_OutputMemoryKinds_Args k = {
        .struct_size = PJRT_Executable_OutputMemoryKinds_Args_STRUCT_SIZE};
    PJRT_Executable_GetCompiledMemoryStats_Args m = {
        .struct_size = PJRT_Executable_GetCompiledMemoryStats_Args_STRUCT_SIZE};
    PJRT_Executable_Serialize_Args s = {
        .struct_size = PJRT_Executable_Serialize_Args_STRUCT_SIZE};
    PJRT_Executable_Destroy_Args d = {
        .struct_size = PJRT_Executable_Destroy_Args_STRUCT_SIZE};
    PJRT_LoadedExecutable_GetDeviceAssignment_Args da = {
        .struct_size =
            PJRT_LoadedExecutable_GetDeviceAssignment_Args_STRUCT_SIZE};
    sd_buf b = {0};

    (void)state;
    g.loaded_executable = da.executable = l;
    OK(api->PJRT_LoadedExecutable_GetDeviceAssignment(&da));
    assert_int_equal(da.serialized_bytes_size, 9);
    assert_memory_equal(da.serialized_bytes, "\x08\1\x10\1\x1a\3\x0a\1\0", 9);
    da.serialized_device_assignment_deleter(da.serialized_device_assignment);
    OK(api->PJRT_LoadedExecutable_GetExecutable(&g));
    unload(l); /* the other handle lives on */
    n.executable = k.executable = m.executable = d.executable = g.executable;
    s.executable = g.executable;
    OK(api->PJRT_Executable_Name(&n));
    assert_string_equal(n.executable_name, "jit_copy");
    OK(api->PJRT_Executable_OutputMemoryKinds(&k));
    assert_int_equal(k.num_outputs, 2);
    assert_memory_equal(k.memory_kinds[1], "device", k.memory_kind_sizes[1]);
    OK(api->PJRT_Executable_GetCompiledMemoryStats(&m));
    assert_int_equal(m.argument_size_in_bytes, 32);
    assert_int_equal(m.alias_size_in_bytes, 16);
    OK(api->PJRT_Executable_Serialize(&s));
    sd_buf_add(&b, s.serialized_bytes, s.serialized_bytes_size);
    s.serialized_executable_deleter(s.serialized_executable);
    OK(api->PJRT_Executable_Destroy(&d));
    OK(load(&b, &again));
    unload(again);
    b.at[b.len / 2] ^= 4;
    wrong(load(&b, &again), PJRT_Error_Code_DATA_LOSS, "damaged");
    b.len = 20;
    wrong(load(&b, &again), PJRT_Error_Code_INVALID_ARGUMENT, "executable");
    sd_buf_finish(&b);
}

static void a_program_for_another_machine_is_refused(void **state)
{
    device_desc d;
    thunk_program *p;
    sd_buf body = {0}, b = {0};
    PJRT_LoadedExecutable *l = NULL;

    (void)state;
    assert_true(device_desc_of_name("cl:pvc", &d));
    p = thunk_program_create("jit_gpu", &d);
    assert_null(thunk_save(p, &body));
    thunk_program_release(p);
    sd_buf_str(&b, "SDEXECUT");
    sd_buf_u32(&b, 1);
    sd_buf_u64(&b, 0);
    sd_buf_u64(&b, sd_hash("", 0, 1));
    sd_buf_add(&b, body.at, body.len);
    sd_buf_finish(&body);
    wrong(load(&b, &l), PJRT_Error_Code_FAILED_PRECONDITION, "cl:pvc");
    sd_buf_finish(&b);
}

/* ---- topologies, the compiler's absence ---- */

static void topologies_need_no_device(void **state)
{
    PJRT_TopologyDescription_Create_Args c = {
        .struct_size = PJRT_TopologyDescription_Create_Args_STRUCT_SIZE};
    PJRT_TopologyDescription_Serialize_Args s = {
        .struct_size = PJRT_TopologyDescription_Serialize_Args_STRUCT_SIZE};
    PJRT_TopologyDescription_Deserialize_Args r = {
        .struct_size = PJRT_TopologyDescription_Deserialize_Args_STRUCT_SIZE};
    PJRT_TopologyDescription_Fingerprint_Args f = {
        .struct_size = PJRT_TopologyDescription_Fingerprint_Args_STRUCT_SIZE};
    PJRT_TopologyDescription_GetDeviceDescriptions_Args d = {
        .struct_size =
            PJRT_TopologyDescription_GetDeviceDescriptions_Args_STRUCT_SIZE};
    PJRT_TopologyDescription_Destroy_Args x = {
        .struct_size = PJRT_TopologyDescription_Destroy_Args_STRUCT_SIZE};
    uint64_t print;

    (void)state;
    c.topology_name = "cl:pvc x 2";
    c.topology_name_size = 10;
    OK(api->PJRT_TopologyDescription_Create(&c));
    s.topology = x.topology = c.topology;
    d.topology = f.topology = c.topology;
    OK(api->PJRT_TopologyDescription_GetDeviceDescriptions(&d));
    assert_int_equal(d.num_descriptions, 2);
    OK(api->PJRT_TopologyDescription_Fingerprint(&f));
    print = f.fingerprint;
    OK(api->PJRT_TopologyDescription_Serialize(&s));
    OK(api->PJRT_TopologyDescription_Destroy(&x));
    r.serialized_topology = s.serialized_bytes;
    r.serialized_topology_size = s.serialized_bytes_size;
    OK(api->PJRT_TopologyDescription_Deserialize(&r));
    s.serialized_topology_deleter(s.serialized_topology);
    x.topology = r.topology;
    f.topology = r.topology;
    OK(api->PJRT_TopologyDescription_Fingerprint(&f));
    assert_true(f.fingerprint == print);
    OK(api->PJRT_TopologyDescription_Destroy(&x));
    c.topology_name = "moon";
    c.topology_name_size = 4;
    wrong(api->PJRT_TopologyDescription_Create(&c), PJRT_Error_Code_NOT_FOUND,
          "moon");
}

static void bad_options_and_no_compiler_are_errors(void **state)
{
    PJRT_Program p = {.struct_size = PJRT_Program_STRUCT_SIZE,
                      .code = (char *)"x",
                      .code_size = 1,
                      .format = "mlir",
                      .format_size = 4};
    ARGS(Client_Compile, .client = client, .program = &p,
         .compile_options = "\xff\xff", .compile_options_size = 2);
    char dir[] = "/tmp/sundog-plugin-XXXXXX", path[64];
    sd_buf b = {0};
    void *lib;
    const PJRT_Api *(*entry)(void);
    PJRT_TopologyDescription_Create_Args t = {
        .struct_size = PJRT_TopologyDescription_Create_Args_STRUCT_SIZE};
    PJRT_TopologyDescription_Destroy_Args x = {
        .struct_size = PJRT_TopologyDescription_Destroy_Args_STRUCT_SIZE};
    PJRT_Compile_Args c = {.struct_size = PJRT_Compile_Args_STRUCT_SIZE};

    (void)state;
    wrong(api->PJRT_Client_Compile(&a), PJRT_Error_Code_INVALID_ARGUMENT,
          "PJRT_Client_Compile: failed to deserialize CompileOptionsProto");
    /* The same library alone in a folder. */
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/libsundog.so", dir);
    assert_null(sd_file_read(library, &b));
    assert_null(sd_file_write(path, b.at, b.len));
    sd_buf_finish(&b);
    assert_non_null(lib = dlopen(path, RTLD_NOW | RTLD_LOCAL));
    *(void **)&entry = dlsym(lib, "GetPjrtApi");
    OK(entry()->PJRT_TopologyDescription_Create(&t));
    c.topology = t.topology;
    c.program = &p;
    wrong(entry()->PJRT_Compile(&c), PJRT_Error_Code_NOT_FOUND,
          "libsundog-compiler.so");
    x.topology = t.topology;
    OK(entry()->PJRT_TopologyDescription_Destroy(&x));
    dlclose(lib);
    unlink(path);
    rmdir(dir);
}

static int start(void **state)
{
    PJRT_Client_Create_Args c = {.struct_size =
                                     PJRT_Client_Create_Args_STRUCT_SIZE};
    PJRT_Client_AddressableDevices_Args d = {
        .struct_size = PJRT_Client_AddressableDevices_Args_STRUCT_SIZE};
    PJRT_Device_AddressableMemories_Args m = {
        .struct_size = PJRT_Device_AddressableMemories_Args_STRUCT_SIZE};

    (void)state;
    OK(api->PJRT_Client_Create(&c));
    d.client = client = c.client;
    OK(api->PJRT_Client_AddressableDevices(&d));
    assert_int_equal(d.num_addressable_devices, 1);
    m.device = device = d.addressable_devices[0];
    OK(api->PJRT_Device_AddressableMemories(&m));
    assert_int_equal(m.num_memories, 3);
    memory = m.memories[0];
    pinned = m.memories[1];
    return 0;
}

static int stop(void **state)
{
    ARGS(Client_Destroy, .client = client);

    (void)state;
    OK(api->PJRT_Client_Destroy(&a));
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_full),
        cmocka_unit_test(errors_work_by_their_own_table),
        cmocka_unit_test(the_client_names_its_things),
        cmocka_unit_test(older_callers_are_not_written_past),
        cmocka_unit_test(arrays_go_there_and_back),
        cmocka_unit_test(small_types_and_empty_arrays_pass),
        cmocka_unit_test(a_deleted_buffer_says_so),
        cmocka_unit_test(external_references_are_counted),
        cmocka_unit_test(raw_copies_check_their_range_in_the_event),
        cmocka_unit_test(a_promised_copy_waits_for_its_destination),
        cmocka_unit_test(copies_cross_memories),
        cmocka_unit_test(views_give_their_memory_back),
        cmocka_unit_test(callbacks_survive_their_handle),
        cmocka_unit_test(programs_run),
        cmocka_unit_test(wrong_arguments_are_named),
        cmocka_unit_test(donation_takes_the_argument),
        cmocka_unit_test(executables_answer_and_come_back_from_bytes),
        cmocka_unit_test(a_program_for_another_machine_is_refused),
        cmocka_unit_test(topologies_need_no_device),
        cmocka_unit_test(bad_options_and_no_compiler_are_errors),
    };
    const PJRT_Api *(*entry)(void);
    void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

    if (!lib) {
        fprintf(stderr, "usage: test_plugin LIBRARY; %s\n",
                argc > 1 ? dlerror() : "");
        return 2;
    }
    *(void **)&entry = dlsym(lib, "GetPjrtApi");
    if (!entry || dlsym(lib, "sundog_compile") || dlsym(lib, "pjrt_api")) {
        fprintf(stderr, "%s: GetPjrtApi alone must be exported\n", argv[1]);
        return 2;
    }
    library = argv[1];
    api = entry();
    setenv("SUNDOG_DEVICE", "host", 1);
    return cmocka_run_group_tests(tests, start, stop);
}
