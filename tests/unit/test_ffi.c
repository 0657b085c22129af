/* What a running program calls: handlers of typed foreign calls, host
 * callbacks.  Programs are made by hand, handlers are below; what JAX does with
 * them is tests/python/test_ffi.py and test_callbacks.py. */
#include "xpu_by_hand.h"

#include "xpu_ffi.h"

#include <stdlib.h>

/* ---- attributes ---- */

static sd_arena *arena;

static sd_status read(const char *text, XLA_FFI_Attrs *out)
{
    return xpu_ffi_read_attrs(arena, text, out);
}

static const char all_kinds[] =
    "{b = true, \"a b\" = -3 : i8, c = 0x7FC00000 : f32, "
    "d = {x = 1.5e+00 : f64, y = {}}, e = \"q\\\"\\\\\\0A\", "
    "f = array<i64: 1, -2>, g = dense<[[1, 2], [3, 4]]> : tensor<2x2xui16>, "
    "h = dense<7> : tensor<3xi32>, i = dense<\"0x01000200\"> : tensor<2xi16>, "
    "j = dense<(1.0,2.0)> : tensor<complex<f32>>, k = array<f32>, "
    "l = dense<> : tensor<0x3xf32>, m = 18446744073709551615 : ui64}";

static void attributes_are_read(void **state)
{
    XLA_FFI_Attrs a;
    const XLA_FFI_Array *x;
    const XLA_FFI_ByteSpan *s;

    (void)state;
    ok(read("", &a));
    assert_int_equal(a.size, 0);
    ok(read(" { } ", &a));
    assert_int_equal(a.size, 0);
    ok(read(all_kinds, &a));
    assert_int_equal(a.size, 13);
    /* in the order of their names, bytes compared */
    assert_memory_equal(a.names[0]->ptr, "a b", 3);
    assert_int_equal(*(int8_t *)((XLA_FFI_Scalar *)a.attrs[0])->value, -3);
    assert_int_equal(((XLA_FFI_Scalar *)a.attrs[1])->dtype,
                     XLA_FFI_DataType_PRED);
    assert_int_equal(a.types[3], XLA_FFI_AttrType_DICTIONARY);
    assert_int_equal(((XLA_FFI_Attrs *)a.attrs[3])->size, 2);
    s = a.attrs[4];
    assert_int_equal(s->len, 4);
    assert_memory_equal(s->ptr, "q\"\\\n", 4);
    x = a.attrs[6];
    assert_int_equal(x->size, 4);
    assert_int_equal(((uint16_t *)x->data)[3], 4);
    x = a.attrs[7];
    assert_int_equal(x->size, 3);
    assert_int_equal(((int32_t *)x->data)[2], 7);
    x = a.attrs[8];
    assert_int_equal(((int16_t *)x->data)[1], 2);
    x = a.attrs[9];
    assert_true(((float *)x->data)[1] == 2);
    assert_int_equal(((XLA_FFI_Array *)a.attrs[10])->size, 0);
    assert_int_equal(((XLA_FFI_Array *)a.attrs[11])->size, 0);
    assert_true(*(uint64_t *)((XLA_FFI_Scalar *)a.attrs[12])->value ==
                UINT64_MAX);
}

static void bad_attributes_are_named(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{a = [1 : i64]}", "attribute a: expected a number, a string"},
        {"{a = f32}", "attribute a"},
        {"{a = @f}", "attribute a"},
        {"{a}", "expected ="},
        {"{a = 1 : i4}", "an element type of a byte or more"},
        {"{a = 1 : complex<i32>}", "complex<f32> or complex<f64>"},
        {"{a = dense<[1, 2]> : tensor<3xi32>}", "as many elements"},
        {"{a = dense<1> : tensor<99999999999xi32>}", "fewer elements"},
        {"{a = dense<\"0x01\"> : tensor<2xi16>}", "hexadecimal"},
        {"{a = array<i64: 1, >}", "a number"},
        {"{a = 1 : i64} b", "the end"},
        {"{a = \"\\x\"}", "an escape"},
        {"{b = {b = {b = {b = {b = {b = {b = {b = {b = {b = {b = {b = {b = "
         "{b = {b = {b = {b = {b = {}}}}}}}}}}}}}}}}}}}",
         "less nesting"},
    };
    XLA_FFI_Attrs a;

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(bad); i++) {
        sd_status st = read(bad[i].text, &a);

        assert_non_null(st);
        if (!strstr(st->message, bad[i].says))
            fail_msg("%s: %s", bad[i].text, st->message);
        assert_int_equal(st->code, SD_INVALID);
        sd_status_free(st);
    }
    /* every truncation of a text is an error, and nothing worse */
    for (size_t n = 1; n < sizeof all_kinds - 1; n++) {
        char *text = strndup(all_kinds, n);

        fails(read(text, &a), SD_INVALID);
        free(text);
    }
}

/* ---- handlers ---- */

static bool told(XLA_FFI_CallFrame *f, int minor)
{
    XLA_FFI_Metadata *m;

    if (!f->extension_start)
        return false;
    m = ((XLA_FFI_Metadata_Extension *)f->extension_start)->metadata;
    m->api_version.major_version = XLA_FFI_API_MAJOR;
    m->api_version.minor_version = minor;
    return true;
}

static int64_t user_type;

/* out = in * the user data, or an error that says what is missing. */
static XLA_FFI_Error *scale(XLA_FFI_CallFrame *f)
{
    XLA_FFI_TypeId id = {user_type};
    XLA_FFI_InvokeContext_Get_Args a = {
        XLA_FFI_InvokeContext_Get_Args_STRUCT_SIZE, NULL, f->ctx, &id, NULL};
    XLA_FFI_Error *e;

    if (told(f, 4))
        return NULL;
    if ((e = f->api->XLA_FFI_InvokeContext_Get(&a)))
        return e;
    for (int i = 0; i < 4; i++)
        ((float *)((XLA_FFI_Buffer *)f->rets.rets[0])->data)[i] =
            ((float *)((XLA_FFI_Buffer *)f->args.args[0])->data)[i] *
            *(float *)a.data;
    return NULL;
}

static XLA_FFI_Error *from_the_past(XLA_FFI_CallFrame *f)
{
    told(f, 2);
    return NULL;
}

static XLA_FFI_Error *from_today(XLA_FFI_CallFrame *f)
{
    told(f, 4);
    return NULL;
}

static sd_status enter(const char *name, XLA_FFI_Handler *h)
{
    xpu_ffi_bundle b = {.stage = {NULL, NULL, NULL, (void *)h}};

    return xpu_ffi_register(name, strlen(name), DEVICE_HOST, &b);
}

static void handlers_are_registered_once(void **state)
{
    (void)state;
    ok(enter("scale", scale));
    ok(enter("scale", scale));
    fails(enter("scale", from_the_past), SD_UNIMPLEMENTED);
    fails(enter("empty", NULL), SD_INVALID);
    assert_null(xpu_ffi_find("empty", DEVICE_HOST));
    assert_non_null(xpu_ffi_find("scale", DEVICE_HOST));
    assert_null(xpu_ffi_find("scale", DEVICE_CL));
}

static void delete_nothing(void *p)
{
    (void)p;
}

static void types_have_one_number(void **state)
{
    int64_t a = 0, b = 17, c = 0;

    (void)state;
    ok(xpu_ffi_register_type("a", 1, &a, NULL));
    assert_true(a != 0);
    ok(xpu_ffi_register_type("a", 1, &c, delete_nothing));
    assert_true(a == c);
    assert_true(xpu_ffi_deleter(a) == delete_nothing);
    ok(xpu_ffi_register_type("b", 1, &b, NULL));
    assert_int_equal(b, 17);
    b = 18;
    fails(xpu_ffi_register_type("b", 1, &b, NULL), SD_ALREADY_EXISTS);
    b = 17;
    fails(xpu_ffi_register_type("c", 1, &b, NULL), SD_ALREADY_EXISTS);
    ok(xpu_ffi_register_type("user", 4, &user_type, NULL));
}

/* ---- programs ---- */

static thunk_program *custom(const device_desc *d, const char *target,
                             const char *config)
{
    thunk_program *p = program(d, 1, 1, 4);
    static const int64_t attr[] = {1, 11, 1, 4, 11, 1, 4};
    thunk t = {.kind = THUNK_CUSTOM,
               .name = "custom-call",
               .target = target,
               .config = config,
               .narg = 2,
               .nattr = SD_COUNTOF(attr),
               .trip = -1};

    t.arg = sd_arena_array(p->arena, thunk_slice, 2);
    t.arg[0] = (thunk_slice){0, 0, 16};
    t.arg[1] = (thunk_slice){1, 0, 16};
    t.attr = sd_arena_copy(p->arena, attr, sizeof attr);
    steps(p, 1, &t);
    return p;
}

/* One run: the last number of its result. */
static float result_of(xpu_program *x, const xpu_call *c)
{
    xpu_buffer *out;
    xpu_event *done;
    float *v, last;

    ok(xpu_execute(x, c, &out, &done));
    ok(xpu_event_wait(done));
    v = fetch(out);
    last = v[3];
    free(v);
    xpu_event_release(done);
    xpu_buffer_release(out);
    return last;
}

/* One run: it and its result fail so. */
static void run_fails(xpu_program *x, const xpu_call *c, sd_code code)
{
    xpu_buffer *out;
    xpu_event *done;

    ok(xpu_execute(x, c, &out, &done));
    fails(xpu_event_wait(done), code);
    fails(xpu_event_wait(xpu_buffer_ready(out)), code);
    xpu_event_release(done);
    xpu_buffer_release(out);
}

static void user_data_reach_the_handler(void **state)
{
    float three = 3;
    xpu_client *c = open_client("1", "1");
    xpu_device *d = xpu_client_device(c, 0);
    xpu_program *x = load(d, custom(xpu_device_desc(d), "scale", "{}"));
    xpu_buffer *a = buffer(d, 4, 1, 1);
    xpu_user_data user = {user_type, &three};
    xpu_call with = {.arg = &a, .narg = 1, .user = &user, .nuser = 1};

    (void)state;
    assert_true(result_of(x, &with) == 12);
    with.nuser = 0;
    run_fails(x, &with, SD_NOT_FOUND);
    xpu_buffer_release(a);
    xpu_program_release(x);
    xpu_client_destroy(c);
}

static void what_is_missing_is_named(void **state)
{
    xpu_client *c = open_client("1", "1");
    xpu_device *d = xpu_client_device(c, 0);
    thunk_program *p = custom(xpu_device_desc(d), "nobody", "{}");
    xpu_program *x = NULL;
    sd_status st = xpu_program_load(d, p, &x);

    (void)state;
    assert_non_null(st);
    assert_int_equal(st->code, SD_NOT_FOUND);
    assert_non_null(strstr(st->message, "nobody"));
    assert_non_null(strstr(st->message, "dce_sink, scale"));
    sd_status_free(st);
    thunk_program_release(p);
    p = custom(xpu_device_desc(d), "scale", "{a = [1]}");
    fails(xpu_program_load(d, p, &x), SD_INVALID);
    thunk_program_release(p);
    p = custom(xpu_device_desc(d), "sundog_kernel", "{name = \"mine\"}");
    st = xpu_program_load(d, p, &x);
    assert_non_null(st);
    assert_non_null(strstr(st->message, "takes no kernels by source"));
    fails(st, SD_UNIMPLEMENTED);
    thunk_program_release(p);
    xpu_client_destroy(c);
}

/* ---- what a handler gets wrong ---- */

/* Takes e. */
static void says(const XLA_FFI_Api *api, XLA_FFI_Error *e, const char *text)
{
    XLA_FFI_Error_GetDetails_Args a = {
        XLA_FFI_Error_GetDetails_Args_STRUCT_SIZE, NULL, .error = e};
    XLA_FFI_Error_Destroy_Args d = {XLA_FFI_Error_Destroy_Args_STRUCT_SIZE,
                                    NULL, e};

    assert_non_null(e);
    api->XLA_FFI_Error_GetDetails(&a);
    if (!strstr(a.message, text))
        fail_msg("'%s' does not say '%s'", a.message, text);
    api->XLA_FFI_Error_Destroy(&d);
}

static void misuse_state(XLA_FFI_CallFrame *f)
{
    static int state;
    XLA_FFI_TypeId id = {1 << 30}, other = {user_type + 1};
    XLA_FFI_State_Set_Args set = {
        XLA_FFI_State_Set_Args_STRUCT_SIZE, NULL, f->ctx,
        XLA_FFI_ExecutionStage_INSTANTIATE, &id,  &state};
    XLA_FFI_State_Get_Args get = {XLA_FFI_State_Get_Args_STRUCT_SIZE,
                                  NULL,
                                  f->ctx,
                                  set.stage,
                                  &other,
                                  NULL};
    const XLA_FFI_Api *api = f->api;

    says(api, api->XLA_FFI_State_Get(&get), "stage 0 has set no state");
    says(api, api->XLA_FFI_State_Set(&set),
         "no type of id 1073741824 is registered");
    id.type_id = user_type;
    assert_null(api->XLA_FFI_State_Set(&set));
    says(api, api->XLA_FFI_State_Set(&set),
         "the state of stage 0 is set already");
    says(api, api->XLA_FFI_State_Get(&get), "the state of stage 0 has type id");
    get.stage = set.stage = XLA_FFI_ExecutionStage_EXECUTE;
    says(api, api->XLA_FFI_State_Get(&get), "stage 3 keeps no state");
    says(api, api->XLA_FFI_State_Set(&set), "stage 3 keeps no state");
}

static XLA_FFI_Error *misuse(XLA_FFI_CallFrame *f)
{
    XLA_FFI_Stream_Get_Args stream = {XLA_FFI_Stream_Get_Args_STRUCT_SIZE, NULL,
                                      f->ctx, NULL};
    XLA_FFI_DeviceMemory_Allocate_Args odd = {
        XLA_FFI_DeviceMemory_Allocate_Args_STRUCT_SIZE, NULL, f->ctx, .size = 8,
        .alignment = 96};

    if (told(f, 4))
        return NULL;
    misuse_state(f);
    says(f->api, f->api->XLA_FFI_Stream_Get(&stream),
         "has no stream that a handler could use");
    says(f->api, f->api->XLA_FFI_DeviceMemory_Allocate(&odd),
         "alignment 96 is no power of two");
    return NULL;
}

static void misuse_is_told(void **state)
{
    xpu_ffi_bundle b = {
        .stage = {(void *)misuse, NULL, NULL, (void *)from_today}};
    xpu_client *c = open_client("1", "1");
    xpu_device *d = xpu_client_device(c, 0);

    (void)state;
    ok(xpu_ffi_register("misuse", 6, DEVICE_HOST, &b));
    xpu_program_release(load(d, custom(xpu_device_desc(d), "misuse", "{}")));
    xpu_client_destroy(c);
}

/* A saved program's types are those of its slices. */
static void types_that_lie_are_refused(void **state)
{
    static const int64_t wrong[][7] = {
        {-1, 11, 1, 4, 11, 1, 4}, {3, 11, 1, 4, 11, 1, 4},
        {1, 11, 1, 5, 11, 1, 4},  {1, 99, 1, 4, 11, 1, 4},
        {1, 11, 9, 4, 11, 1, 4},  {1, 11, 1, -4, 11, 1, 4},
        {1, 11, 1, 4, 12, 1, 4},  {1, 11, 0, 11, 1, 4, 0},
    };
    xpu_client *c = open_client("1", "1");
    const device_desc *d = xpu_device_desc(xpu_client_device(c, 0));

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(wrong); i++) {
        thunk_program *p = custom(d, "scale", "{}");

        p->seq.at[0].attr = wrong[i];
        fails(thunk_verify(p), SD_INVALID);
        thunk_program_release(p);
    }
    xpu_client_destroy(c);
}

/* ---- callbacks of the host ---- */

typedef struct {
    float seen[4];
    sd_code code; /* the send fails with it */
} host;

static sd_status take(void *ctx, void *data, size_t bytes)
{
    host *h = ctx;

    assert_int_equal(bytes, 16);
    memcpy(h->seen, data, bytes);
    return h->code ? sd_error(h->code, "no more, says the host") : NULL;
}

static sd_status give(void *ctx, void *data, size_t bytes)
{
    host *h = ctx;

    assert_int_equal(bytes, 16);
    for (int i = 0; i < 4; i++)
        ((float *)data)[i] = h->seen[i] * 10;
    return NULL;
}

static thunk_program *asking(const device_desc *d)
{
    static const int64_t channel[] = {2, 3};
    thunk_program *p = program(d, 1, 1, 4);
    thunk t[2];

    for (int i = 0; i < 2; i++) {
        t[i] = (thunk){.kind = i ? THUNK_RECV : THUNK_SEND,
                       .name = "ask",
                       .narg = 1,
                       .nattr = 1,
                       .attr = &channel[i],
                       .trip = -1};
        t[i].arg = sd_arena_array(p->arena, thunk_slice, 1);
        t[i].arg[0] = (thunk_slice){i, 0, 16};
    }
    steps(p, 2, t);
    return p;
}

static void the_host_is_asked(void **state)
{
    xpu_client *c = open_client("1", "1");
    xpu_device *d = xpu_client_device(c, 0);
    xpu_program *x = load(d, asking(xpu_device_desc(d)));
    xpu_buffer *a = buffer(d, 4, 1, 1);
    host h = {0};
    xpu_callback send = {2, take, &h}, recv = {3, give, &h};
    xpu_call with = {.arg = &a,
                     .narg = 1,
                     .send = &send,
                     .recv = &recv,
                     .nsend = 1,
                     .nrecv = 1};

    (void)state;
    assert_true(result_of(x, &with) == 40);
    h.code = SD_ABORTED;
    run_fails(x, &with, SD_ABORTED);
    with.nrecv = 0; /* the framework's mistake */
    h.code = SD_OK;
    run_fails(x, &with, SD_PRECONDITION);
    xpu_buffer_release(a);
    xpu_program_release(x);
    xpu_client_destroy(c);
}

static void steps_travel(void **state)
{
    xpu_client *c = open_client("1", "1");
    const device_desc *d = xpu_device_desc(xpu_client_device(c, 0));
    thunk_program *p[2] = {custom(d, "scale", all_kinds), asking(d)}, *q;

    (void)state;
    for (int i = 0; i < 2; i++) {
        sd_buf saved = {0}, x = {0}, y = {0};

        ok(thunk_save(p[i], &saved));
        ok(thunk_load((sd_bytes){(uint8_t *)saved.at, saved.len}, &q));
        thunk_print(&x, p[i]);
        thunk_print(&y, q);
        assert_int_equal(x.len, y.len);
        assert_memory_equal(x.at, y.at, x.len);
        assert_string_equal(i ? "" : q->seq.at[0].config, i ? "" : all_kinds);
        sd_buf_finish(&saved);
        sd_buf_finish(&x);
        sd_buf_finish(&y);
        thunk_program_release(q);
        thunk_program_release(p[i]);
    }
    xpu_client_destroy(c);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_are_read),
        cmocka_unit_test(bad_attributes_are_named),
        cmocka_unit_test(handlers_are_registered_once),
        cmocka_unit_test(types_have_one_number),
        cmocka_unit_test(user_data_reach_the_handler),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(misuse_is_told),
        cmocka_unit_test(types_that_lie_are_refused),
        cmocka_unit_test(the_host_is_asked),
        cmocka_unit_test(steps_travel),
    };
    int bad;

    if (argc != 2)
        return 2;
    device_name = "host";
    if (sd_file_read(argv[1], &object))
        return 2;
    arena = sd_arena_create();
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    sd_arena_destroy(arena);
    sd_buf_finish(&object);
    return bad;
}
