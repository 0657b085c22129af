/* What a failing oneDNN does to us: each of its calls fails in turn, with each
 * of its errors.  Always one clear status, nothing leaks, and the next call is
 * made as if nothing had been.
 *   test_onednn libfakednnl.so    which calls itself libdnnl.so.2, and is found
 *                                 by that name once it is open */
#include "xpu_lib.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static long (*ncalls)(void), (*nlive)(void);
static void (*fail_call)(long call, int error);

enum { MATMUL = THUNK_LIB_MATMUL, CONV = THUNK_LIB_CONV, MOST_ATTR = 49 };
enum { /* of a convolution */
       SPATIAL = 3,
       GROUPS = 5,
       INPUT_STEP = 29,
       OUTPUT_STEP = 39,
       BIAS = 44,
       ADD,
       ACTIVATION,
       ALPHA,
       DIRECTION
};

typedef struct {
    const char *name;
    int lib, narg;
    int64_t attr[MOST_ATTR];
} request;

static int64_t bits(double v)
{
    int64_t b;

    memcpy(&b, &v, sizeof b);
    return b;
}

static request product(bool all)
{
    return (request){.name = "product",
                     .lib = MATMUL,
                     .narg = all ? 5 : 3,
                     .attr = {SD_F32, SD_F32, SD_F32, 1, 4, 4, 4, 0, 0, all,
                              all, all ? 5 : 0, bits(all ? 0.5 : 1),
                              bits(all ? 2 : 1)}};
}

static request convolution(int direction, bool last)
{
    bool all = direction == 0;
    request r = {.name = "window", .lib = CONV, .narg = all ? 5 : 3};

    for (int i = 0; i < MOST_ATTR; i++)
        r.attr[i] = i < 3 ? SD_F32 : i < BIAS ? 2 : 0;
    r.attr[GROUPS] = 1;
    if (last)
        r.attr[INPUT_STEP + 1] = r.attr[OUTPUT_STEP + 1] = 1;
    r.attr[BIAS] = r.attr[ADD] = all;
    r.attr[ACTIVATION] = all ? 2 : 0;
    r.attr[ALPHA] = bits(1);
    r.attr[DIRECTION] = direction;
    return r;
}

static sd_status run(xpu_lib *l, const request *r)
{
    static _Alignas(64) char room[5][256];
    void *ptr[] = {room[0], room[1], room[2], room[3], room[4]};
    thunk t = {.kind = THUNK_LIBCALL,
               .name = r->name,
               .lib = r->lib,
               .narg = r->narg,
               .attr = r->attr,
               .nattr = thunk_lib_table[r->lib].nattr};

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

/* Of a library that could not be opened. */
static void says_so(xpu_lib *l, const request *r)
{
    sd_status st = run(l, r);

    assert_non_null(st);
    assert_non_null(strstr(
        st->message, " cannot be called: onednn 9.8.7 without an engine"));
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
    assert_null(xpu_lib_open(1, &l));
    if (!xpu_lib_present(l))
        says_so(l, r);
    else if ((st = run(l, r)))
        is_clear(st, r, code, why);
    failed = ncalls() >= call;
    assert_true(failed == (st || !xpu_lib_present(l)));
    fail_call(0, 0);
    if (xpu_lib_present(l))
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
    request r[] = {product(false),        product(true),
                   convolution(0, false), convolution(0, true),
                   convolution(1, false), convolution(2, false)};
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

static void refused(xpu_lib *l, request r, sd_code code, const char *says)
{
    sd_status st = run(l, &r);

    assert_non_null(st);
    assert_string_equal(st->message, says);
    assert_int_equal(st->code, code);
    sd_status_free(st);
}

static void what_it_is_not_asked_for(void **state)
{
    request r = convolution(3, false);
    xpu_lib *l;

    (void)state;
    fail_call(0, 0);
    assert_null(xpu_lib_open(1, &l));
    refused(l, r, SD_UNIMPLEMENTED,
            "window: a convolution that oneDNN is not asked for: of f32, "
            "direction 3, 2 dimensions");
    r = convolution(0, false);
    r.attr[SPATIAL] = 4;
    refused(l, r, SD_UNIMPLEMENTED,
            "window: a convolution that oneDNN is not asked for: of f32, "
            "direction 0, 4 dimensions");
    r = product(false);
    r.attr[1] = SD_F64;
    refused(l, r, SD_UNIMPLEMENTED, "product: oneDNN matmul of f64");
    r = product(true);
    r.attr[11] = 9; /* an activation that nobody knows */
    refused(l, r, SD_UNIMPLEMENTED, "product: oneDNN: matmul: unimplemented");
    r = product(false);
    r.narg = 4;
    refused(l, r, SD_INVALID, "product: 4 slices, not 3");
    xpu_lib_close(l);
    assert_int_equal(nlive(), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_fails),
        cmocka_unit_test(what_it_is_not_asked_for),
    };
    void *lib = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

    if (!lib) {
        fprintf(stderr, "test_onednn libfakednnl.so\n");
        return 2;
    }
    /* Opening lends an environment that has none, and keeps that. */
    setenv("GOMP_SPINCOUNT", "1", 1);
    *(void **)&ncalls = dlsym(lib, "fake_dnnl_calls");
    *(void **)&nlive = dlsym(lib, "fake_dnnl_live");
    *(void **)&fail_call = dlsym(lib, "fake_dnnl_fail");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
