/* What a failing oneDNN does to us: each of its calls fails in turn, with each
 * of its errors.  Always one clear status, nothing leaks, and the next call is
 * made as if nothing had been.
 *   test_onednn libfakednnl2.so    which calls itself libdnnl.so.2 (another
 *                                  libdnnl.so.3), and is found by that name
 *                                  once it is open */
#include "xpu_lib.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char *unopened = "onednn 9.8.7 without an engine";
static long (*ncalls)(void), (*nlive)(void);
static void (*fail_call)(long call, int error);

typedef struct {
    const char *name;
    libcall call;
    bool infinite; /* its first number */
} request;

/* all: with everything that follows a product; a bias and a factor exclude
 * each other. */
static request product(bool all, bool bias)
{
    return (request){.name = "product",
                     .call = {.op = LIBCALL_MATMUL,
                              .matmul = {.lhs = SD_F32,
                                         .rhs = SD_F32,
                                         .result = SD_F32,
                                         .batch = 1,
                                         .m = 4,
                                         .n = 4,
                                         .k = 4,
                                         .bias = all && bias,
                                         .add = all,
                                         .activation = all ? LIBCALL_RELU : 0,
                                         .alpha = all && !bias ? 0.5 : 1,
                                         .beta = all ? 2 : 1}}};
}

static request convolution(libcall_direction direction, bool last)
{
    bool all = direction == LIBCALL_FORWARD;
    request r = {.name = "window",
                 .call = {.op = LIBCALL_CONV,
                          .conv = {.direction = direction,
                                   .in_type = SD_F32,
                                   .kernel_type = SD_F32,
                                   .out_type = SD_F32,
                                   .nspatial = 2,
                                   .batch = 2,
                                   .groups = 1,
                                   .ci = 2,
                                   .co = 2,
                                   .in = {2, 2, 1},
                                   .kernel = {1, 1, 1},
                                   .out = {2, 2, 1},
                                   .stride = {1, 1, 1},
                                   .dilation = {1, 1, 1},
                                   .in_step = {8, last ? 1 : 4, 2, 1, 1},
                                   .kernel_step = {2, 1, 1, 1, 1},
                                   .out_step = {8, last ? 1 : 4, 2, 1, 1},
                                   .bias = all ? LIBCALL_BIAS_VECTOR
                                               : LIBCALL_BIAS_UNUSED,
                                   .add = all,
                                   .activation = all ? LIBCALL_RELU : 0}}};

    return r;
}

/* 3 x 3 and large enough that it is done by 16 products; infinite: which give
 * what is no number, so that the library does it after all. */
static request winograd(bool infinite)
{
    request r = convolution(LIBCALL_FORWARD, true);
    libcall_conv *c = &r.call.conv;

    c->ci = c->co = 32;
    for (int i = 0; i < 2; i++) {
        c->in[i] = c->out[i] = 8;
        c->kernel[i] = 3;
        c->low[i] = c->high[i] = 1;
        c->in_step[2 + i] = c->out_step[2 + i] = i ? 32 : 8 * 32;
        c->kernel_step[2 + i] = i ? 32 * 32 : 3 * 32 * 32;
    }
    c->in_step[0] = c->out_step[0] = 8 * 8 * 32;
    c->kernel_step[0] = 1;
    c->kernel_step[1] = 32;
    r.infinite = infinite;
    return r;
}

static sd_status run(xpu_lib *l, const request *r)
{
    static _Alignas(64) char room[6][3 * 3 * 32 * 32 * sizeof(float)];
    void *ptr[] = {room[0], room[1], room[2], room[3], room[4], room[5]};
    thunk t = {.kind = THUNK_LIBCALL,
               .name = r->name,
               .narg = libcall_args_of(&r->call).n,
               .call = &r->call};

    *(float *)ptr[0] = r->infinite ? INFINITY : 0;
    return xpu_lib_run(l, &t, ptr);
}

static void is_clear(sd_status st, const request *r, sd_code code,
                     const char *why)
{
    static const char *const doing[] = {"matmul", "convolution", "execution"};
    char says[100];
    bool found = false;

    for (size_t i = 0; i < SD_COUNTOF(doing); i++) {
        snprintf(says, sizeof says, "%s: oneDNN: %s: %s", r->name, doing[i],
                 why);
        found |= !strcmp(st->message, says);
    }
    if (!found || st->code != code)
        fail_msg("code %d: %s", st->code, st->message);
    sd_status_free(st);
}

static bool has_onednn(const xpu_lib *l)
{
    return xpu_lib_present(l) & DEVICE_LIB_ONEDNN;
}

/* Of a library that could not be opened. */
static void says_so(xpu_lib *l, const request *r)
{
    sd_status st = run(l, r);

    assert_non_null(st);
    assert_non_null(strstr(st->message, " cannot be called: "));
    assert_non_null(strstr(st->message, unopened));
    assert_int_equal(st->code, SD_UNIMPLEMENTED);
    sd_status_free(st);
}

/* False: there is no such call any more. */
static bool one_failure(const request *r, long call, int error, sd_code code,
                        const char *why)
{
    sd_status st = NULL;
    xpu_lib *l;
    bool failed;

    fail_call(call, error);
    assert_null(xpu_lib_open(NULL, &l));
    if (!has_onednn(l))
        says_so(l, r);
    else if ((st = run(l, r)))
        is_clear(st, r, code, why);
    failed = ncalls() >= call;
    assert_true(failed == (st || !has_onednn(l)));
    fail_call(0, 0);
    if (has_onednn(l))
        assert_null(run(l, r));
    xpu_lib_close(l);
    if (nlive())
        fail_msg("%s, call %ld: %ld objects are left", r->name, call, nlive());
    return failed;
}

static void each_call_fails(void **state)
{
    static const struct {
        int error;
        sd_code code;
        const char *why;
    } e[] = {
        {1, SD_EXHAUSTED, "out of memory"},
        {2, SD_INTERNAL, "invalid arguments"},
        {3, SD_UNIMPLEMENTED, "unimplemented"},
        {4, SD_UNIMPLEMENTED, "no implementation"},
        {5, SD_INTERNAL, "runtime error"},
        {77, SD_INTERNAL, "unknown error"},
    };
    request r[] = {product(false, false),
                   product(true, false),
                   product(true, true),
                   convolution(LIBCALL_FORWARD, false),
                   convolution(LIBCALL_FORWARD, true),
                   convolution(LIBCALL_TO_DATA, false),
                   convolution(LIBCALL_TO_WEIGHTS, false),
                   winograd(false),
                   winograd(true)};
    long total = 0;

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(r); i++)
        for (size_t k = 0; k < SD_COUNTOF(e); k++)
            for (long n = 1;
                 one_failure(&r[i], n, e[k].error, e[k].code, e[k].why); n++)
                total++;
    printf("%ld calls of oneDNN failed in turn\n", total);
    assert_true(total > 500);
}

static void is_refused(xpu_lib *l, const request *r, const char *says)
{
    sd_status st = run(l, r);

    assert_non_null(st);
    assert_string_equal(st->message, says);
    assert_int_equal(st->code, SD_UNIMPLEMENTED);
    sd_status_free(st);
}

static void bytes_want_vnni(void **state)
{
    request r = product(false, false);
    request w = convolution(LIBCALL_FORWARD, true);
    xpu_lib *l;

    (void)state;
    r.call.matmul.lhs = r.call.matmul.rhs = SD_S8;
    r.call.matmul.result = SD_S32;
    w.call.conv.in_type = w.call.conv.kernel_type = SD_S8;
    w.call.conv.out_type = SD_S32;
    fail_call(0, 0);
    assert_null(xpu_lib_open(NULL, &l));
    assert_false(xpu_lib_present(l) & DEVICE_LIB_BYTES);
    is_refused(l, &r,
               "product: oneDNN matmul of s8: without AVX-512 VNNI its sums "
               "saturate");
    is_refused(l, &w,
               "window: oneDNN convolution of s8: without AVX-512 VNNI its "
               "sums saturate");
    xpu_lib_close(l);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_fails),
        cmocka_unit_test(bytes_want_vnni),
    };
    void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

    if (!lib) {
        fprintf(stderr, "test_onednn libfakednnl2.so\n");
        return 2;
    }
    if (argc >
        2) { /* what is looked for next must be nothing of the machine's */
        unopened = "a libdnnl.so.2 without its API";
        if (!dlopen(argv[2], RTLD_NOW | RTLD_LOCAL))
            return 2;
    }
    /* Opening lends an environment that has none, and keeps that. */
    setenv("GOMP_SPINCOUNT", "1", 1);
    *(void **)&ncalls = dlsym(lib, "fake_dnnl_calls");
    *(void **)&nlive = dlsym(lib, "fake_dnnl_live");
    *(void **)&fail_call = dlsym(lib, "fake_dnnl_fail");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
