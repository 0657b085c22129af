/* Foreign calls on devices with queues: kernels that come as source, handlers
 * that get the stream and memory of the device, arrays of other libraries; and
 * each call of the driver that is in them fails in turn.
 *   test_foreign cl|cuda libfake.so KERNELS.spv|KERNELS.ptx */
#include "xpu_by_hand.h"
#include "xpu_ffi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000 };
static const char *trouble; /* the variable that the fake reads */
static void *library;
static long (*ncalls)(void), (*nlive)(void);
static void (*hold)(int);

static bool is_cuda(void)
{
    return device_name[1] == 'u';
}

static xpu_client *client_in(const char *words)
{
    sd_options opt = {0};
    xpu_client *c = NULL;
    sd_status st;

    setenv(trouble, words, 1);
    opt.value[SD_OPT_DEVICE] = device_name;
    opt.value[SD_OPT_THREADS] = "1";
    opt.value[is_cuda() ? SD_OPT_CUDA_LIBRARY : SD_OPT_CL_LIBRARY] =
        getenv("FAKE_LIBRARY");
    if ((st = xpu_client_create(&opt, &c)))
        sd_status_free(st);
    return c;
}

/* ---- programs ---- */

static const char kernel_text[] =
    "{name = \"mine\", cl = {form = \"opencl_c\", code = \"%s\", entry = "
    "\"%s\", options = \"\", grid = array<i64: 1, 1, 1>, block = array<i64: 1, "
    "1, 1>, local = 0 : i64}, cuda = {form = \"ptx\", code = \"%s\", entry = "
    "\"%s\", options = \"\", grid = array<i64: 1, 1, 1>, block = array<i64: 1, "
    "1, 1>, local = 0 : i64}, scalars = {\"000\" = 3.0 : f32, \"001\" = %d : "
    "i32}}";

/* out = f(in), by a call of that target. */
static thunk_program *custom(const device_desc *d, const char *target,
                             const char *config)
{
    thunk_program *p = program(d, 1, 1, N);
    static const int64_t attr[] = {1, 11, 1, N, 11, 1, N};
    thunk t = {.kind = THUNK_CUSTOM,
               .name = "custom-call",
               .target = sd_arena_str(p->arena, target, strlen(target)),
               .config = sd_arena_str(p->arena, config, strlen(config)),
               .narg = 2,
               .nattr = SD_COUNTOF(attr),
               .trip = -1};

    t.arg = sd_arena_array(p->arena, thunk_slice, 2);
    t.arg[0] = (thunk_slice){0, 0, N * 4};
    t.arg[1] = (thunk_slice){1, 0, N * 4};
    t.attr = sd_arena_copy(p->arena, attr, sizeof attr);
    steps(p, 1, &t);
    return p;
}

static thunk_program *kernel_program(const device_desc *d, const char *code,
                                     const char *entry)
{
    char text[2048];

    snprintf(text, sizeof text, kernel_text, code, entry, code, entry, N);
    return custom(d, "sundog_kernel", text);
}

static sd_status get(xpu_buffer *b, float *to)
{
    xpu_event *e;
    sd_status st = xpu_buffer_to_host(b, 0, to, N * sizeof *to, &e);

    if (!st) {
        st = xpu_event_wait(e);
        xpu_event_release(e);
    }
    return st;
}

/* in = 0, 1, 2 ..; out = factor * in, twice. */
static sd_status run_twice(xpu_device *d, thunk_program *p, float factor)
{
    float data[N], got[N] = {0};
    int64_t n = N;
    xpu_program *x = NULL;
    xpu_buffer *a = NULL, *b = NULL, *c = NULL;
    sd_status st = xpu_program_load(d, p, &x);

    for (int i = 0; i < N; i++)
        data[i] = (float)i;
    if (!st &&
        !(st = xpu_buffer_from_host(d, XPU_MEM_DEVICE, SD_F32, 1, &n, data,
                                    NULL, true, &a, NULL)) &&
        !(st = run1(x, a, &b, NULL)) && !(st = run1(x, b, &c, NULL)) &&
        !(st = get(c, got)))
        for (int i = 0; i < N; i++)
            assert_true(got[i] == factor * factor * data[i]);
    xpu_buffer_release(a);
    xpu_buffer_release(b);
    xpu_buffer_release(c);
    xpu_program_release(x);
    thunk_program_release(p);
    return st;
}

static void expect(sd_status st, sd_code code, const char *words)
{
    assert_non_null(st);
    if (st->code != code || !strstr(st->message, words))
        fail_msg("%d: %s", (int)st->code, st->message);
    sd_status_free(st);
}

/* ---- kernels ---- */

static void kernels_run_and_are_refused(void **state)
{
    xpu_client *c = client_in("");
    xpu_device *d = xpu_client_device(c, 0);
    const device_desc *desc = xpu_device_desc(d);

    (void)state;
    ok(run_twice(d, kernel_program(desc, ".version", "scale"), 3));
    expect(run_twice(d, kernel_program(desc, "oops", "scale"), 3),
           is_cuda() ? SD_INTERNAL : SD_INVALID, "the fake did not want to");
    expect(run_twice(d, kernel_program(desc, ".version", "nowhere"), 3),
           SD_INTERNAL, "nowhere");
    expect(run_twice(d, kernel_program(desc, ".version", "square"), 3),
           SD_INVALID, "square has 3 parameters");
    expect(run_twice(d, custom(desc, "sundog_kernel", "{name = \"mine\"}"), 3),
           SD_UNIMPLEMENTED, "kernel mine: it has source for nothing");
    ok(run_twice(d, kernel_program(desc, ".version", "scale"), 3));
    xpu_client_destroy(c);
    assert_int_equal(nlive(), 0);
}

static void bad_attributes_are_named(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"form = \"elf\"", "takes no source of form 'elf'"},
        {"form = \"%s\", code = 1 : i64", "no text and no bytes"},
        {"form = \"%s\", code = \"\", grid = array<i64: 1>",
         "its grid and block are not three numbers"},
        {"form = \"%s\", code = \"\", grid = array<i64: 1, -1, 1>, block = "
         "array<i64: 1, 1, 1>",
         "its grid and block are not three numbers"},
        {"form = \"%s\", code = \"\", grid = array<i64: 1, 1, 1>, block = "
         "array<i64: 1, 1, 1>, local = -1 : i64",
         "its local memory is no number"},
        {"form = \"%s\", code = \"\", grid = array<i64: 1, 1, 1>, block = "
         "array<i64: 1, 0, 1>, local = 0 : i64",
         "a block of 1 x 0 x 1 items"},
    };
    xpu_client *c = client_in("");
    xpu_device *d = xpu_client_device(c, 0);
    char one[512], all[1024];

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(bad); i++) {
        const char *form = is_cuda() ? "ptx" : "opencl_c";
        const char *at = strstr(bad[i].text, "%s");

        if (at)
            snprintf(one, sizeof one, "%.*s%s%s", (int)(at - bad[i].text),
                     bad[i].text, form, at + 2);
        snprintf(all, sizeof all, "{%s = {%s}, scalars = {}}", device_name,
                 at ? one : bad[i].text);
        expect(
            run_twice(d, custom(xpu_device_desc(d), "sundog_kernel", all), 3),
            SD_INVALID, bad[i].says);
    }
    snprintf(all, sizeof all,
             "{%s = {form = \"%s\", code = \"\", grid = array<i64: 1, 1, 1>, "
             "block = array<i64: 1, 1, 1>, local = 0 : i64}, scalars = {a = "
             "\"x\"}}",
             device_name, is_cuda() ? "ptx" : "opencl_c");
    expect(run_twice(d, custom(xpu_device_desc(d), "sundog_kernel", all), 3),
           SD_INVALID, "parameter 0 by value is no number");
    xpu_client_destroy(c);
}

/* ---- handlers ---- */

static int copy_in_stream(void *stream, void *to, void *from)
{
    typedef int (*cuda_copy)(uint64_t, uint64_t, size_t, void *);
    typedef int (*cl_copy)(void *, unsigned, void *, const void *, size_t,
                           unsigned, const void *, void *);
    void *fn =
        dlsym(library, is_cuda() ? "cuMemcpyAsync" : "clEnqueueSVMMemcpy");

    return is_cuda() ? ((cuda_copy)(uintptr_t)fn)(
                           (uintptr_t)to, (uintptr_t)from, N * 4, stream)
                     : ((cl_copy)(uintptr_t)fn)(stream, 0, to, from, N * 4, 0,
                                                NULL, NULL);
}

static XLA_FFI_Error *handler_copies(XLA_FFI_CallFrame *f, void *stream,
                                     void *to, void *from)
{
    XLA_FFI_Error_Create_Args a = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL,
                                   "the copy failed",
                                   XLA_FFI_Error_Code_INTERNAL};

    return copy_in_stream(stream, to, from) ? f->api->XLA_FFI_Error_Create(&a)
                                            : NULL;
}

static void is_refused(XLA_FFI_CallFrame *f, XLA_FFI_Error *e, const char *says)
{
    XLA_FFI_Error_GetDetails_Args m = {
        XLA_FFI_Error_GetDetails_Args_STRUCT_SIZE, NULL, .error = e};
    XLA_FFI_Error_Destroy_Args d = {XLA_FFI_Error_Destroy_Args_STRUCT_SIZE,
                                    NULL, e};

    assert_non_null(e);
    f->api->XLA_FFI_Error_GetDetails(&m);
    assert_non_null(strstr(m.message, says));
    f->api->XLA_FFI_Error_Destroy(&d);
}

/* By way of memory of the device, which it frees at once. */
static XLA_FFI_Error *through_memory(XLA_FFI_CallFrame *f)
{
    XLA_FFI_Stream_Get_Args s = {XLA_FFI_Stream_Get_Args_STRUCT_SIZE, NULL,
                                 f->ctx, NULL};
    XLA_FFI_DeviceMemory_Allocate_Args a = {
        XLA_FFI_DeviceMemory_Allocate_Args_STRUCT_SIZE,
        NULL,
        f->ctx,
        N * 4,
        1024,
        NULL};
    XLA_FFI_DeviceMemory_Free_Args d = {
        XLA_FFI_DeviceMemory_Free_Args_STRUCT_SIZE, NULL, f->ctx, N * 4, NULL};
    XLA_FFI_Error *e;

    if (f->extension_start) {
        XLA_FFI_Metadata *m =
            ((XLA_FFI_Metadata_Extension *)f->extension_start)->metadata;

        m->api_version.major_version = XLA_FFI_API_MAJOR;
        m->api_version.minor_version = XLA_FFI_API_MINOR;
        return NULL;
    }
    if ((e = f->api->XLA_FFI_Stream_Get(&s)) ||
        (e = f->api->XLA_FFI_DeviceMemory_Allocate(&a)))
        return e;
    assert_int_equal((uintptr_t)a.data % 1024, 0);
    d.data = (void *)f;
    is_refused(f, f->api->XLA_FFI_DeviceMemory_Free(&d),
               "memory that no handler of this program allocated is freed");
    d.data = a.data;
    if (!(e = handler_copies(f, s.stream, a.data,
                             ((XLA_FFI_Buffer *)f->args.args[0])->data)))
        e = handler_copies(f, s.stream,
                           ((XLA_FFI_Buffer *)f->rets.rets[0])->data, a.data);
    if (e) /* it is freed with the program */
        return e;
    return f->api->XLA_FFI_DeviceMemory_Free(&d);
}

static void handlers_get_stream_and_memory(void **state)
{
    xpu_client *c = client_in("");
    xpu_device *d = xpu_client_device(c, 0);

    (void)state;
    ok(run_twice(d, custom(xpu_device_desc(d), "through_memory", ""), 1));
    expect(run_twice(d, custom(xpu_device_desc(d), "of_the_host", ""), 1),
           SD_NOT_FOUND, "of_the_host on host");
    xpu_client_destroy(c);
    assert_int_equal(nlive(), 0);
}

/* ---- trouble ---- */

static void each_call_fails(const char *target, float factor)
{
    long n = 1, nfailed = 0, ncall;
    char words[32];

    do {
        xpu_client *c;
        sd_status st = NULL;

        snprintf(words, sizeof words, "fail=%ld", n);
        if ((c = client_in(words))) {
            xpu_device *d = xpu_client_device(c, 0);
            const device_desc *desc = xpu_device_desc(d);

            st = run_twice(d,
                           *target ? custom(desc, target, "")
                                   : kernel_program(desc, ".version", "scale"),
                           factor);
            ncall = ncalls();
            xpu_client_destroy(c);
        } else {
            ncall = n;
        }
        nfailed += st != NULL;
        sd_status_free(st);
        if (nlive())
            fail_msg("call %ld: %ld objects are left", n, nlive());
    } while (n++ <= ncall);
    printf("%s: %ld calls, %ld ended a run\n", *target ? target : "a kernel",
           n - 2, nfailed);
    assert_true(nfailed > 8);
}

static void each_call_of_a_kernel_fails(void **state)
{
    (void)state;
    each_call_fails("", 3);
}

static void each_call_around_a_handler_fails(void **state)
{
    (void)state;
    each_call_fails("through_memory", 1);
}

/* ---- arrays of other libraries ---- */

static void gone(void *pointer, void *ctx)
{
    (void)pointer;
    ++*(int *)ctx;
}

/* A stream of somebody else's fills a view, and reads what ours computes. */
static void streams_wait_for_each_other(void **state)
{
    xpu_client *c = client_in("");
    xpu_device *d = xpu_client_device(c, 0);
    xpu_program *x =
        load(d, kernel_program(xpu_device_desc(d), ".version", "scale"));
    int64_t n = N;
    int ngone = 0;
    float got[N];
    xpu_buffer *own = buffer(d, N, 0, 1), *other = buffer(d, N, 0, 0), *view,
               *out;
    void *stream = NULL;
    int (*create)(void **, unsigned), (*destroy)(void *);

    (void)state;
    if (!is_cuda()) {
        xpu_buffer_release(own);
        xpu_buffer_release(other);
        xpu_program_release(x);
        xpu_client_destroy(c);
        skip(); /* nobody shares memory of OpenCL's */
    }
    create =
        (int (*)(void **, unsigned))(uintptr_t)dlsym(library, "cuStreamCreate");
    destroy = (int (*)(void *))(uintptr_t)dlsym(library, "cuStreamDestroy_v2");
    ok(d->ops->lend(d, &stream));
    assert_int_equal(create(&stream, 1), 0);
    hold(1);
    ok(d->ops->reclaim(d));
    ok(run1(x, own, &out, NULL)); /* held: out is not ready */
    ok(xpu_buffer_lead(out, stream));
    ok(d->ops->lend(d, &(void *){NULL}));
    assert_int_equal(copy_in_stream(stream, xpu_buffer_pointer(other),
                                    xpu_buffer_pointer(out)),
                     0);
    ok(d->ops->reclaim(d));
    ok(xpu_buffer_view(d, XPU_MEM_DEVICE, SD_F32, 1, &n,
                       xpu_buffer_pointer(other), gone, &ngone, &view));
    ok(xpu_buffer_follow(view, stream));
    assert_false(xpu_event_is_ready(xpu_buffer_ready(view)));
    xpu_buffer_release(out);
    ok(run1(x, view, &out, NULL));
    xpu_buffer_release(view);
    assert_int_equal(ngone, 0);
    hold(0);
    ok(get(out, got));
    for (int i = 0; i < N; i++)
        assert_true(got[i] == 9 * (float)i);
    ok(xpu_device_sync(d));
    assert_int_equal(ngone, 1);
    destroy(stream);
    xpu_buffer_release(out);
    xpu_buffer_release(own);
    xpu_buffer_release(other);
    xpu_program_release(x);
    xpu_client_destroy(c);
    assert_int_equal(nlive(), 0);
}

static void enter(const char *name, device_kind kind)
{
    xpu_ffi_bundle b = {.stage = {NULL, NULL, NULL, (void *)through_memory}};

    ok(xpu_ffi_register(name, strlen(name), kind, &b));
}

static void *symbol(const char *name)
{
    char full[64];

    snprintf(full, sizeof full, "fake_%s_%s", device_name, name);
    return dlsym(library, full);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_run_and_are_refused),
        cmocka_unit_test(bad_attributes_are_named),
        cmocka_unit_test(handlers_get_stream_and_memory),
        cmocka_unit_test(each_call_of_a_kernel_fails),
        cmocka_unit_test(each_call_around_a_handler_fails),
        cmocka_unit_test(streams_wait_for_each_other),
    };
    int bad;

    library = argc == 4 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "test_foreign cl|cuda libfake.so KERNELS\n");
        return 2;
    }
    device_name = argv[1];
    trouble = is_cuda() ? "FAKE_CUDA" : "FAKE_CL";
    setenv("FAKE_LIBRARY", argv[2], 1);
    ncalls = (long (*)(void))(uintptr_t)symbol("calls");
    nlive = (long (*)(void))(uintptr_t)symbol("live");
    hold = (void (*)(int))(uintptr_t)symbol("hold");
    sd_log_init();
    ok(sd_file_read(argv[3], &object));
    enter("through_memory", is_cuda() ? DEVICE_CUDA : DEVICE_CL);
    enter("of_the_host", DEVICE_HOST);
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    sd_buf_finish(&object);
    dlclose(library);
    return bad;
}
