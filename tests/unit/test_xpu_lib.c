/* xpu_lib: library calls against plain loops.  Skips where there is no
 * library. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "xpu_lib.h"

/* gcc's leak checker crashes when it looks at OpenMP's idle threads. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static float next(uint64_t *s)
{
    *s = *s * 6364136223846793005ull + 1442695040888963407ull;
    return (float)(int32_t)(*s >> 32) * 0x1p-31f;
}

static int64_t bits(double v)
{
    int64_t b;

    memcpy(&b, &v, sizeof b);
    return b;
}

static double activate(int64_t mode, double v)
{
    return mode == 1   ? 1 / (1 + exp(-v))
           : mode == 2 ? fmax(v, 0)
           : mode == 5 ? tanh(v)
                       : v;
}

static void run(xpu_lib *l, int lib, const int64_t *attr, void **ptr, int n)
{
    thunk t = {.kind = THUNK_LIBCALL,
               .name = "t",
               .narg = n,
               .lib = lib,
               .attr = attr,
               .nattr = thunk_lib_table[lib].nattr};
    sd_status st = xpu_lib_run(l, &t, ptr);

    if (st)
        fail_msg("%s", st->message);
}

static xpu_lib *open_or_skip(void)
{
    xpu_lib *l;

    assert_null(xpu_lib_open(2, &l));
    if (!xpu_lib_present(l)) {
        print_message("%s\n", xpu_lib_version(l));
        xpu_lib_close(l);
        skip();
    }
    return l;
}

/* ---- matmul ---- */

static void one_matmul(xpu_lib *l, const int64_t *a)
{
    int64_t b = a[3], m = a[4], n = a[5], k = a[6];
    float *x = malloc(sizeof *x * (size_t)(b * m * k));
    float *y = malloc(sizeof *y * (size_t)(b * k * n));
    float *bias = malloc(sizeof *bias * (size_t)n);
    float *add = malloc(sizeof *add * (size_t)(b * m * n));
    float *r = malloc(sizeof *r * (size_t)(b * m * n));
    double alpha, beta, worst = 0;
    uint64_t s = 5;
    void *ptr[5] = {x, y};
    int c = 2;

    memcpy(&alpha, &a[12], sizeof alpha);
    memcpy(&beta, &a[13], sizeof beta);
    for (int64_t i = 0; i < b * m * k; i++)
        x[i] = next(&s);
    for (int64_t i = 0; i < b * k * n; i++)
        y[i] = next(&s);
    for (int64_t i = 0; i < n; i++)
        bias[i] = next(&s);
    for (int64_t i = 0; i < b * m * n; i++)
        add[i] = next(&s);
    if (a[9])
        ptr[c++] = bias;
    if (a[10])
        ptr[c++] = add;
    ptr[c++] = r;
    run(l, THUNK_LIB_MATMUL, a, ptr, c);
    for (int64_t q = 0; q < b * m * n; q++) {
        int64_t g = q / (m * n), i = q / n % m, j = q % n;
        double v = 0;

        for (int64_t p = 0; p < k; p++)
            v += (double)x[g * m * k + (a[7] ? p * m + i : i * k + p)] *
                 y[g * k * n + (a[8] ? j * k + p : p * n + j)];
        v = alpha * v + (a[9] ? bias[j] : 0) + (a[10] ? beta * add[q] : 0);
        worst = fmax(worst, fabs(activate(a[11], v) - r[q]));
    }
    assert_true(worst < 2e-5);
    free(x), free(y), free(bias), free(add), free(r);
}

static void products(void **state)
{
    static const int64_t size[][4] = {
        {1, 64, 48, 33}, {3, 17, 5, 40}, {1, 1, 100, 64}, {5, 9, 1, 7}};
    xpu_lib *l = open_or_skip();

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(size); i++)
        for (int form = 0; form < 48; form++) {
            const int64_t *z = size[i];
            static const int64_t act[3] = {0, 2, 5};
            int64_t a[14] = {SD_F32,
                             SD_F32,
                             SD_F32,
                             z[0],
                             z[1],
                             z[2],
                             z[3],
                             form & 1,
                             form >> 1 & 1,
                             form >> 2 & 1,
                             form >> 3 & 1,
                             act[form / 16],
                             bits(form % 5 ? 1 : 0.25),
                             bits(form % 3 ? 1 : 2)};

            one_matmul(l, a);
        }
    xpu_lib_close(l);
}

static void products_of_bytes(void **state)
{
    enum { M = 20, N = 24, K = 70 };
    static int8_t x[M * K], y[K * N];
    static int32_t r[M * N];
    const int64_t a[14] = {SD_S8, SD_S8, SD_S32, 1, M, N,       K,
                           0,     0,     0,      0, 0, bits(1), bits(1)};
    xpu_lib *l = open_or_skip();
    uint64_t s = 9;

    (void)state;
    for (int i = 0; i < M * K; i++)
        x[i] = (int8_t)(next(&s) * 128);
    for (int i = 0; i < K * N; i++)
        y[i] = (int8_t)(next(&s) * 128);
    x[0] = y[0] = -128;
    run(l, THUNK_LIB_MATMUL, a, (void *[]){x, y, r}, 3);
    for (int q = 0; q < M * N; q++) {
        int v = 0;

        for (int p = 0; p < K; p++)
            v += x[q / N * K + p] * y[p * N + q % N];
        assert_int_equal(r[q], v);
    }
    xpu_lib_close(l);
}

static void products_of_bf16(void **state)
{
    enum { M = 20, N = 24, K = 70 };
    static uint16_t x[M * K], y[K * N], r[M * N];
    int64_t a[14] = {SD_BF16, SD_BF16, SD_BF16, 1, M, N,       K,
                     0,       0,       0,       0, 0, bits(1), bits(1)};
    xpu_lib *l = open_or_skip();
    uint64_t s = 9;

    (void)state;
    if (!__builtin_cpu_supports("avx512bw")) {
        xpu_lib_close(l);
        skip();
    }
    for (int i = 0; i < M * K; i++)
        x[i] = sd_bf16_of_f32(next(&s));
    for (int i = 0; i < K * N; i++)
        y[i] = sd_bf16_of_f32(next(&s));
    run(l, THUNK_LIB_MATMUL, a, (void *[]){x, y, r}, 3);
    for (int q = 0; q < M * N; q++) {
        double v = 0;

        for (int p = 0; p < K; p++)
            v += sd_scalar_to_f64(SD_BF16, &x[q / N * K + p]) *
                 sd_scalar_to_f64(SD_BF16, &y[p * N + q % N]);
        assert_true(fabs(sd_scalar_to_f64(SD_BF16, &r[q]) - v) <
                    fabs(v) / 128 + 1e-4);
    }
    xpu_lib_close(l);
}

/* ---- convolution ---- */

typedef struct {
    int64_t b, g, ci, co, in, k, stride, dil, low, high;
} size;

/* Channels last when `last`; kernel then HWIO, else OIHW. */
static int fill(int64_t *a, const size *z, bool last, int dir, int64_t bias,
                int64_t add, int64_t act)
{
    int64_t o =
        (z->in + z->low + z->high - (z->k - 1) * z->dil - 1) / z->stride + 1;
    int64_t ki = z->ci / z->g, in = z->in, k = z->k;
    int64_t v[49] = {SD_F32,
                     SD_F32,
                     SD_F32,
                     2,
                     z->b,
                     z->g,
                     z->ci,
                     z->co,
                     in,
                     in,
                     1,
                     k,
                     k,
                     1,
                     o,
                     o,
                     1,
                     z->stride,
                     z->stride,
                     1,
                     z->dil,
                     z->dil,
                     1,
                     z->low,
                     z->low,
                     0,
                     z->high,
                     z->high,
                     0,
                     z->ci * in * in,
                     last ? 1 : in * in,
                     last ? in * z->ci : in,
                     last ? z->ci : 1,
                     0,
                     last ? 1 : ki * k * k,
                     last ? z->co : k * k,
                     last ? k * ki * z->co : k,
                     last ? ki * z->co : 1,
                     0,
                     z->co * o * o,
                     last ? 1 : o * o,
                     last ? o * z->co : o,
                     last ? z->co : 1,
                     0,
                     bias,
                     add,
                     act,
                     bits(1),
                     dir};

    memcpy(a, v, sizeof v);
    return (int)o;
}

/* sum over the window in every direction: one loop, three accumulators */
static void conv_loops(const int64_t *a, const float *x, const float *k,
                       const float *y, double *dx, double *dk, double *dy)
{
    int64_t g = a[5], ki = a[6] / g, ko = a[7] / g;
    const int64_t *is = a + 29, *ks = a + 34, *os = a + 39;

    for (int64_t b = 0; b < a[4]; b++)
        for (int64_t o = 0; o < a[7]; o++)
            for (int64_t c = 0; c < ki; c++)
                for (int64_t oh = 0; oh < a[14]; oh++)
                    for (int64_t ow = 0; ow < a[15]; ow++)
                        for (int64_t kh = 0; kh < a[11]; kh++)
                            for (int64_t kw = 0; kw < a[12]; kw++) {
                                int64_t h = oh * a[17] + kh * a[20] - a[23];
                                int64_t w = ow * a[18] + kw * a[21] - a[24];
                                int64_t xi, ni, yi;

                                if (h < 0 || h >= a[8] || w < 0 || w >= a[9])
                                    continue;
                                xi = b * is[0] + (o / ko * ki + c) * is[1] +
                                     h * is[2] + w * is[3];
                                ni = o * ks[0] + c * ks[1] + kh * ks[2] +
                                     kw * ks[3];
                                yi = b * os[0] + o * os[1] + oh * os[2] +
                                     ow * os[3];
                                dx[xi] += (double)y[yi] * k[ni];
                                dk[ni] += (double)y[yi] * x[xi];
                                dy[yi] += (double)x[xi] * k[ni];
                            }
}

static void one_conv(xpu_lib *l, const size *z, bool last, int dir,
                     int64_t bias, int64_t add, int64_t act)
{
    int64_t a[49], o = fill(a, z, last, dir, bias, add, act);
    size_t nx = (size_t)(z->b * z->ci * z->in * z->in);
    size_t nk = (size_t)(z->co * z->ci / z->g * z->k * z->k);
    size_t ny = (size_t)(z->b * z->co * o * o), nr;
    float *x = malloc(4 * nx), *k = malloc(4 * nk), *y = malloc(4 * ny);
    float *bv = malloc(4 * (size_t)z->co), *sum = malloc(4 * ny), *r;
    double *want[3] = {calloc(ny, 8), calloc(nx, 8), calloc(nk, 8)};
    double worst = 0;
    void *ptr[5] = {dir == 1 ? y : x, dir == 2 ? y : k};
    uint64_t s = 77;
    int n = 2;

    for (size_t i = 0; i < nx; i++)
        x[i] = next(&s);
    for (size_t i = 0; i < nk; i++)
        k[i] = next(&s);
    for (size_t i = 0; i < ny; i++)
        sum[i] = y[i] = next(&s);
    for (int64_t i = 0; i < z->co; i++)
        bv[i] = next(&s);
    conv_loops(a, x, k, y, want[1], want[2], want[0]);
    nr = dir == 0 ? ny : dir == 1 ? nx : nk;
    r = malloc(4 * nr);
    if (bias)
        ptr[n++] = bv;
    if (add)
        ptr[n++] = sum;
    ptr[n++] = r;
    run(l, THUNK_LIB_CONV, a, ptr, n);
    for (size_t i = 0; i < nr; i++) {
        int64_t ch = last ? (int64_t)i % z->co : (int64_t)i / (o * o) % z->co;
        double v = want[dir][i];

        if (dir == 0)
            v = activate(act, v + (bias ? bv[ch] : 0) + (add ? sum[i] : 0));
        worst = fmax(worst, fabs(v - r[i]));
    }
    if (worst > 1e-4)
        print_message("direction %d, last %d, groups %d: %g\n", dir, last,
                      (int)z->g, worst);
    assert_true(worst < 1e-4);
    for (int i = 0; i < 3; i++)
        free(want[i]);
    free(x), free(k), free(y), free(bv), free(sum), free(r);
}

static void convolutions(void **state)
{
    static const size sizes[] = {{2, 1, 3, 8, 12, 3, 1, 1, 1, 1},
                                 {1, 1, 16, 16, 9, 3, 2, 1, 0, 1},
                                 {2, 4, 8, 16, 10, 3, 1, 2, 2, 2},
                                 {1, 6, 6, 6, 11, 5, 1, 1, 2, 2}};
    static const int64_t act[3] = {0, 2, 1};
    xpu_lib *l = open_or_skip();

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(sizes); i++)
        for (int last = 0; last < 2; last++) {
            for (int form = 0; form < 12; form++)
                one_conv(l, &sizes[i], last, 0, form & 1, form >> 1 & 1,
                         act[form / 4]);
            one_conv(l, &sizes[i], last, 1, 0, 0, 0);
            one_conv(l, &sizes[i], last, 2, 0, 0, 0);
        }
    xpu_lib_close(l);
}

static void what_it_does_not_do_is_an_error(void **state)
{
    int64_t a[14] = {SD_F64, SD_F64, SD_F64, 1, 4, 4,       4,
                     0,      0,      0,      0, 0, bits(1), bits(1)};
    thunk t = {.kind = THUNK_LIBCALL,
               .name = "t",
               .narg = 3,
               .attr = a,
               .nattr = 14,
               .lib = THUNK_LIB_MATMUL};
    xpu_lib *l = open_or_skip();
    sd_status st = xpu_lib_run(l, &t, (void *[]){a, a, a});

    (void)state;
    assert_non_null(st);
    assert_int_equal(st->code, SD_UNIMPLEMENTED);
    sd_status_free(st);
    t.nattr = 3;
    st = xpu_lib_run(l, &t, (void *[]){a, a, a});
    assert_int_equal(st->code, SD_INVALID);
    sd_status_free(st);
    xpu_lib_close(l);
}

static void a_forked_child_can_call(void **state)
{
    static float x[128 * 128], r[128 * 128];
    const int64_t a[14] = {SD_F32, SD_F32, SD_F32, 1, 128, 128,     128,
                           0,      0,      0,      0, 0,   bits(1), bits(1)};
    xpu_lib *l = open_or_skip();
    int status;
    pid_t p;

    (void)state;
    run(l, THUNK_LIB_MATMUL, a, (void *[]){x, x, r}, 3);
    if (!(p = fork())) {
        alarm(20);
        run(l, THUNK_LIB_MATMUL, a, (void *[]){x, x, r}, 3);
        _exit(0);
    }
    assert_int_equal(waitpid(p, &status, 0), p);
    assert_int_equal(status, 0);
    xpu_lib_close(l);
}

extern char **environ;

/* First of all tests: here the library brings OpenMP in, and an environment of
 * its own for the time of that. */
static void the_environment_is_as_it_was(void **state)
{
    int before = 0, after = 0;
    xpu_lib *l;

    (void)state;
    unsetenv("GOMP_SPINCOUNT");
    unsetenv("OMP_WAIT_POLICY");
    setenv("LIB_TEST", "kept", 1);
    while (environ[before])
        before++;
    l = open_or_skip();
    while (environ[after])
        after++;
    assert_int_equal(after, before);
    assert_null(getenv("GOMP_SPINCOUNT"));
    assert_string_equal(getenv("LIB_TEST"), "kept");
    setenv("LIB_TEST", "changed", 1);
    unsetenv("LIB_TEST");
    assert_null(getenv("LIB_TEST"));
    xpu_lib_close(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_is_as_it_was),
        cmocka_unit_test(products),
        cmocka_unit_test(products_of_bytes),
        cmocka_unit_test(products_of_bf16),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(what_it_does_not_do_is_an_error),
        cmocka_unit_test(a_forked_child_can_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
