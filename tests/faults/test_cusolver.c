/* What a failing cuSOLVER does to us: each of its calls fails in turn, and each
 * of the driver's.  Always one clear error, nothing leaks, and what lies around
 * its routines (transposes, triangles, row exchanges, NaN) is right.
 *   test_cusolver libfakecuda.so kernels.ptx libfakecusolver.so */
#include "xpu_by_hand.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 6, ELEMENTS = 64 };

static const char *cuda_library;
static void *driver;
static long (*ncalls)(void), (*nlive)(void);
static long (*driver_calls)(void), (*driver_live)(void);
static void (*begin)(void *driver, long fails);

static const libcall calls[] = {
    {.op = LIBCALL_CHOLESKY,
     .cholesky = {.type = SD_F32, .batch = 1, .n = N, .lower = true}},
    {.op = LIBCALL_CHOLESKY,
     .cholesky = {.type = SD_F32, .batch = 1, .n = N, .lower = false}},
    {.op = LIBCALL_LU, .lu = {.type = SD_F32, .batch = 1, .m = N, .n = N}},
    {.op = LIBCALL_QR, .qr = {.type = SD_F32, .batch = 1, .m = N, .n = N}},
    {.op = LIBCALL_REFLECTIONS,
     .reflections = {.type = SD_F32, .batch = 1, .m = N, .n = N, .t = N}},
    {.op = LIBCALL_EIGH, .eigh = {.type = SD_F32, .batch = 1, .n = N}},
    {.op = LIBCALL_SVD,
     .svd = {.type = SD_F32, .batch = 1, .m = N, .n = 4, .vectors = true}},
    {.op = LIBCALL_SVD,
     .svd = {.type = SD_F32,
             .batch = 2,
             .m = 3,
             .n = 5,
             .vectors = true,
             .full = true}},
    {.op = LIBCALL_SVD, .svd = {.type = SD_F32, .batch = 1, .m = N, .n = N}},
    {.op = LIBCALL_SOLVE,
     .solve = {.type = SD_F32,
               .batch = 1,
               .p = N,
               .q = 4,
               .left = true,
               .lower = true,
               .transpose = LIBCALL_TRANSPOSE}},
};

/* The program that calls it: operands are parameters, results outputs. */
static thunk_program *caller(const device_desc *d, const libcall *c)
{
    libcall_args args = libcall_args_of(c);
    thunk_program *p =
        program(d, args.noperand, args.n - args.noperand, ELEMENTS);
    thunk t = {.kind = THUNK_LIBCALL,
               .name = "call",
               .narg = args.n,
               .call = sd_arena_copy(p->arena, c, sizeof *c),
               .arg = sd_arena_array(p->arena, thunk_slice, args.n)};

    for (int i = 0; i < args.n; i++)
        t.arg[i] =
            (thunk_slice){.buffer = i, .bytes = (uint64_t)args.at[i].n * 4};
    steps(p, 1, &t);
    return p;
}

typedef struct {
    xpu_client *c;
    xpu_program *x;
    xpu_buffer *a[2], *out[4];
} life;

static sd_status fetch_all(life *l, int nout, float got[][ELEMENTS])
{
    sd_status st = NULL;

    for (int i = 0; i < nout && !st; i++) {
        xpu_event *e;

        if (!(st = xpu_buffer_to_host(l->out[i], 0, got[i], sizeof got[i],
                                      &e))) {
            st = xpu_event_wait(e);
            xpu_event_release(e);
        }
    }
    return st;
}

static sd_status run(life *l, const libcall *c, float *data,
                     float got[][ELEMENTS])
{
    sd_options opt = {0};
    libcall_args args = libcall_args_of(c);
    int64_t n = ELEMENTS;
    thunk_program *p;
    xpu_device *d;
    sd_status st;

    opt.value[SD_OPT_DEVICE] = "cuda";
    opt.value[SD_OPT_CUDA_LIBRARY] = cuda_library;
    if ((st = xpu_client_create(&opt, &l->c)))
        return st;
    d = xpu_client_device(l->c, 0);
    assert_true(xpu_device_desc(d)->libs & DEVICE_LIB_LAPACK);
    assert_non_null(strstr(xpu_device_desc(d)->driver, ", cuSOLVER 12.0.4"));
    p = caller(xpu_device_desc(d), c);
    st = xpu_program_load(d, p, &l->x);
    thunk_program_release(p);
    for (int i = 0; i < args.noperand && !st; i++)
        st = xpu_buffer_from_host(d, XPU_MEM_DEVICE, SD_F32, 1, &n, data, NULL,
                                  true, &l->a[i], NULL);
    if (!st)
        st = xpu_execute(l->x, &(xpu_call){.arg = l->a, .narg = args.noperand},
                         l->out, NULL);
    return st ? st : fetch_all(l, args.n - args.noperand, got);
}

static sd_status whole_life(const libcall *c, float *data,
                            float got[][ELEMENTS])
{
    life l = {0};
    sd_status st = run(&l, c, data, got);

    for (size_t i = 0; i < SD_COUNTOF(l.a); i++)
        xpu_buffer_release(l.a[i]);
    for (size_t i = 0; i < SD_COUNTOF(l.out); i++)
        xpu_buffer_release(l.out[i]);
    xpu_program_release(l.x);
    xpu_client_destroy(l.c);
    assert_int_equal(nlive(), 0);
    assert_int_equal(driver_live(), 0);
    return st;
}

static void fill(float *data)
{
    for (int i = 0; i < ELEMENTS; i++)
        data[i] = (float)i + 1;
}

static void test_each_call_fails(void **state)
{
    float data[ELEMENTS], got[4][ELEMENTS];
    long total = 0;

    (void)state;
    setenv("FAKE_CUDA", "", 1);
    fill(data);
    for (size_t k = 0; k < SD_COUNTOF(calls); k++) {
        long n;

        begin(driver, 0);
        ok(whole_life(&calls[k], data, got));
        n = ncalls();
        for (long i = 1; i <= n; i++) {
            sd_status st;

            begin(driver, i);
            st = whole_life(&calls[k], data, got);
            assert_non_null(st);
            if (st->code != SD_INTERNAL ||
                !(strstr(st->message, "call: cuSOLVER, cusolverDn") ||
                  strstr(st->message, "call: cuBLAS, cublas")) ||
                !strstr(st->message, ": status 6"))
                fail_msg("call %ld: %s", i, st->message);
            sd_status_free(st);
        }
        total += n;
    }
    printf("%ld calls, each failed once\n", total);
    assert_true(total > 80);
}

static void test_each_driver_call_fails(void **state)
{
    float data[ELEMENTS], got[4][ELEMENTS];
    char words[64];
    long n = 1, all, nfailed = 0;

    (void)state;
    fill(data);
    begin(driver, 0);
    do {
        sd_status st;

        snprintf(words, sizeof words, "fail=%ld,error=719", n);
        setenv("FAKE_CUDA", words, 1);
        st = whole_life(&calls[5], data, got);
        all = driver_calls();
        if (st && !strstr(st->message, "CUDA_ERROR_") &&
            !strstr(st->message, "cuBLAS, cublas")) /* it asks the driver */
            fail_msg("call %ld: %s", n, st->message);
        nfailed += st != NULL;
        sd_status_free(st);
    } while (n++ <= all);
    assert_true(nfailed > 20);
}

/* What plan gives to LAPACK alone, in a program that was saved, say. */
static void test_refused(void **state)
{
    static const struct {
        libcall call;
        const char *says;
    } row[] = {
        {{.op = LIBCALL_HESSENBERG,
          .hessenberg = {.type = SD_F32, .batch = 1, .n = N}},
         "call: cuSOLVER's hessenberg"},
        {{.op = LIBCALL_CHOLESKY,
          .cholesky = {.type = SD_F16, .batch = 1, .n = N, .lower = true}},
         "call: cuSOLVER's cholesky of f16"},
    };
    float data[ELEMENTS], got[4][ELEMENTS];

    (void)state;
    setenv("FAKE_CUDA", "", 1);
    begin(driver, 0);
    fill(data);
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        sd_status st = whole_life(&row[i].call, data, got);

        assert_non_null(st);
        assert_int_equal(st->code, SD_UNIMPLEMENTED);
        if (!strstr(st->message, row[i].says))
            fail_msg("%s", st->message);
        sd_status_free(st);
    }
}

/* A factor of the fake is the matrix. */
static void test_triangles(void **state)
{
    float data[ELEMENTS], got[4][ELEMENTS];

    (void)state;
    setenv("FAKE_CUDA", "", 1);
    begin(driver, 0);
    fill(data);
    for (int lower = 0; lower < 2; lower++) {
        ok(whole_life(&calls[lower ? 0 : 1], data, got));
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                assert_true(got[0][i * N + j] ==
                            ((lower ? j <= i : j >= i) ? data[i * N + j] : 0));
    }
    data[N] = INFINITY; /* row 1, column 0 */
    ok(whole_life(&calls[0], data, got));
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            assert_true(j <= i ? isnan(got[0][i * N + j])
                               : got[0][i * N + j] == 0);
}

/* Row i is exchanged with row N - 1 - i, which the fake says from 1 on. */
static void test_exchanges(void **state)
{
    float data[ELEMENTS], got[4][ELEMENTS];
    int32_t pivot[N], order[N];

    (void)state;
    setenv("FAKE_CUDA", "", 1);
    begin(driver, 0);
    fill(data);
    ok(whole_life(&calls[2], data, got));
    memcpy(pivot, got[1], sizeof pivot);
    memcpy(order, got[2], sizeof order);
    assert_memory_equal(got[0], data, N * N * sizeof *data);
    for (int i = 0; i < N; i++) {
        assert_int_equal(pivot[i], N - 1 - i);
        assert_int_equal(order[i], i); /* each exchanged twice */
    }
    data[3] = NAN;
    ok(whole_life(&calls[2], data, got));
    for (int i = 0; i < N * N; i++)
        assert_true(isnan(got[0][i]));
}

/* Eigenvalues that did not converge have no vectors either. */
static void test_no_result(void **state)
{
    float data[ELEMENTS], got[4][ELEMENTS];

    (void)state;
    setenv("FAKE_CUDA", "", 1);
    fill(data);
    begin(driver, -1);
    ok(whole_life(&calls[5], data, got));
    for (int i = 0; i < N * N; i++)
        assert_true(isnan(got[0][i]));
    for (int i = 0; i < N; i++)
        assert_true(isnan(got[1][i]));
}

static void test_no_memory(void **state)
{
    libcall c = calls[0];
    float data[ELEMENTS], got[4][ELEMENTS];
    bool told = false;

    (void)state;
    fill(data);
    begin(driver, 0);
    for (int kb = 8192; kb < 16900 && !told; kb += 4) {
        char words[32];
        sd_status st;

        snprintf(words, sizeof words, "memory=%d", kb << 10);
        setenv("FAKE_CUDA", words, 1);
        st = whole_life(&c, data, got);
        told = st && strstr(st->message, "cuSOLVER asks for ") &&
               strstr(st->message, "SUNDOG_LIBRARIES=0 does without it");
        assert_true(!st || st->code == SD_EXHAUSTED);
        sd_status_free(st);
    }
    assert_true(told);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call_fails),
        cmocka_unit_test(test_each_driver_call_fails),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_triangles),
        cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_no_result),
        cmocka_unit_test(test_no_memory),
    };
    void *solver;

    if (argc != 4)
        return 2;
    cuda_library = argv[1];
    device_name = "cuda";
    setenv("FAKE_CUDA", "", 1);
    setenv("FAKE_LINK", "none", 1);
    driver = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    solver =
        dlopen(argv[3], RTLD_NOW | RTLD_LOCAL); /* found by its name then */
    if (!driver || !solver || sd_file_read(argv[2], &object)) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    *(void **)&driver_calls = dlsym(driver, "fake_cuda_calls");
    *(void **)&driver_live = dlsym(driver, "fake_cuda_live");
    *(void **)&begin = dlsym(solver, "fake_cusolver_begin");
    *(void **)&ncalls = dlsym(solver, "fake_cusolver_calls");
    *(void **)&nlive = dlsym(solver, "fake_cusolver_live");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
