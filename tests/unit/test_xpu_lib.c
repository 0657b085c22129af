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

#include "skip.h"
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

static sd_status try(xpu_lib *l, const libcall *c, void **ptr)
{
    thunk t = {.kind = THUNK_LIBCALL,
               .name = "t",
               .narg = libcall_args_of(c).n,
               .call = c};

    return xpu_lib_run(l, &t, ptr);
}

static void run(xpu_lib *l, const libcall *c, void **ptr)
{
    sd_status st = try(l, c, ptr);

    if (st)
        fail_msg("%s", st->message);
}

static void refused(xpu_lib *l, const libcall *c, void **ptr, const char *says)
{
    sd_status st = try(l, c, ptr);

    assert_non_null(st);
    assert_string_equal(st->message, says);
    assert_int_equal(st->code, SD_UNIMPLEMENTED);
    sd_status_free(st);
}

static xpu_lib *open_or_skip(void)
{
    xpu_lib *l;

    assert_null(xpu_lib_open(NULL, &l));
    if (!(xpu_lib_present(l) & DEVICE_LIB_ONEDNN)) {
        print_message("%s\n", xpu_lib_version(l));
        xpu_lib_close(l);
        skip();
    }
    return l;
}

/* ---- matmul ---- */

static libcall matmul(sd_dtype in, sd_dtype out, int64_t b, int64_t m,
                      int64_t n, int64_t k)
{
    return (libcall){.op = LIBCALL_MATMUL,
                     .matmul = {.lhs = in,
                                .rhs = in,
                                .result = out,
                                .batch = b,
                                .m = m,
                                .n = n,
                                .k = k,
                                .alpha = 1,
                                .beta = 1}};
}

static float *numbers(int64_t n, uint64_t *s)
{
    float *x = malloc(sizeof *x * (size_t)n);

    for (int64_t i = 0; i < n; i++)
        x[i] = next(s);
    return x;
}

static void one_matmul(xpu_lib *l, const libcall *call)
{
    const libcall_matmul *a = &call->matmul;
    int64_t b = a->batch, m = a->m, n = a->n, k = a->k;
    uint64_t s = 5;
    float *x = numbers(b * m * k, &s), *y = numbers(b * k * n, &s);
    float *bias = numbers(n, &s), *add = numbers(b * m * n, &s);
    float *r = numbers(b * m * n, &s);
    void *ptr[5] = {x, y};
    double worst = 0;
    int c = 2;

    if (a->bias)
        ptr[c++] = bias;
    if (a->add)
        ptr[c++] = add;
    ptr[c++] = r;
    run(l, call, ptr);
    for (int64_t q = 0; q < b * m * n; q++) {
        int64_t g = q / (m * n), i = q / n % m, j = q % n;
        double v = 0;

        for (int64_t p = 0; p < k; p++)
            v +=
                (double)
                    x[g * m * k + (a->lhs_transposed ? p * m + i : i * k + p)] *
                y[g * k * n + (a->rhs_transposed ? j * k + p : p * n + j)];
        v = a->alpha * v + (a->bias ? bias[j] : 0) +
            (a->add ? a->beta * add[q] : 0);
        if (a->activation == LIBCALL_RELU)
            v = v < 0 ? 0 : v;
        worst = fmax(worst, fabs(v - r[q]));
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
        for (int form = 0; form < 32; form++) {
            const int64_t *z = size[i];
            libcall c = matmul(SD_F32, SD_F32, z[0], z[1], z[2], z[3]);

            c.matmul.lhs_transposed = form & 1;
            c.matmul.rhs_transposed = form >> 1 & 1;
            c.matmul.bias = form >> 2 & 1;
            c.matmul.add = form >> 3 & 1;
            c.matmul.activation = form >> 4 ? LIBCALL_RELU : 0;
            c.matmul.alpha = form % 5 || c.matmul.bias ? 1 : 0.25;
            c.matmul.beta = form % 3 ? 1 : -2;
            one_matmul(l, &c);
        }
    xpu_lib_close(l);
}

static void products_of_bytes(void **state)
{
    enum { M = 20, N = 24, K = 70 };
    static int8_t x[M * K], y[K * N];
    static int32_t r[M * N];
    const libcall c = matmul(SD_S8, SD_S32, 1, M, N, K);
    xpu_lib *l = open_or_skip();
    uint64_t s = 9;

    (void)state;
    for (int i = 0; i < M * K; i++)
        x[i] = (int8_t)(next(&s) * 128);
    for (int i = 0; i < K * N; i++)
        y[i] = (int8_t)(next(&s) * 128);
    x[0] = y[0] = -128;
    if (!(xpu_lib_present(l) & DEVICE_LIB_BYTES)) {
        refused(l, &c, (void *[]){x, y, r},
                "t: oneDNN matmul of s8: without AVX-512 VNNI its sums "
                "saturate");
        xpu_lib_close(l);
        return;
    }
    run(l, &c, (void *[]){x, y, r});
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
    const libcall c = matmul(SD_BF16, SD_BF16, 1, M, N, K);
    xpu_lib *l = open_or_skip();
    uint64_t s = 9;

    (void)state;
    if (!__builtin_cpu_supports("avx512bw")) {
        xpu_lib_close(l);
        skip_because("a processor without AVX-512");
    }
    for (int i = 0; i < M * K; i++)
        sd_scalar_of_f64(SD_BF16, next(&s), &x[i]);
    for (int i = 0; i < K * N; i++)
        sd_scalar_of_f64(SD_BF16, next(&s), &y[i]);
    run(l, &c, (void *[]){x, y, r});
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

/* Numbers times 1, so many that threads share them: a NaN stays, with either
 * sign. */
static void relu_keeps_a_nan(void **state)
{
    enum { EACH = 8, M = 3000 * EACH };
    static const float given[EACH] = {-INFINITY, -1, -0.0f,    0,
                                      2e-38f,    2,  INFINITY, NAN};
    static float x[M], one = 1, r[M];
    libcall c = matmul(SD_F32, SD_F32, 1, M, 1, 1);
    xpu_lib *l = open_or_skip();

    (void)state;
    c.matmul.activation = LIBCALL_RELU;
    for (int i = 0; i < M; i++)
        x[i] = i % EACH == 7 && i & EACH ? -NAN : given[i % EACH];
    run(l, &c, (void *[]){x, &one, r});
    for (int i = 0; i < M; i++) {
        float v = i % EACH < 3 ? 0 : given[i % EACH];

        assert_true(isnan(v) ? isnan(r[i]) : r[i] == v);
    }
    xpu_lib_close(l);
}

/* ---- convolution ---- */

typedef struct {
    int64_t b, g, ci, co, in, k, stride, dil, low, high;
} size;

/* Channels last when `last`; kernel then HWIO, else OIHW. */
static libcall convolution(const size *z, bool last, libcall_direction dir)
{
    int64_t o =
        (z->in + z->low + z->high - (z->k - 1) * z->dil - 1) / z->stride + 1;
    int64_t ki = z->ci / z->g, in = z->in, k = z->k;

    return (libcall){
        .op = LIBCALL_CONV,
        .conv = {.direction = dir,
                 .in_type = SD_F32,
                 .kernel_type = SD_F32,
                 .out_type = SD_F32,
                 .nspatial = 2,
                 .batch = z->b,
                 .groups = z->g,
                 .ci = z->ci,
                 .co = z->co,
                 .in = {in, in, 1},
                 .kernel = {k, k, 1},
                 .out = {o, o, 1},
                 .stride = {z->stride, z->stride, 1},
                 .dilation = {z->dil, z->dil, 1},
                 .low = {z->low, z->low, 0},
                 .high = {z->high, z->high, 0},
                 .in_step = {z->ci * in * in, last ? 1 : in * in,
                             last ? in * z->ci : in, last ? z->ci : 1, 0},
                 .kernel_step = {last ? 1 : ki * k * k, last ? z->co : k * k,
                                 last ? k * ki * z->co : k,
                                 last ? ki * z->co : 1, 0},
                 .out_step = {z->co * o * o, last ? 1 : o * o,
                              last ? o * z->co : o, last ? z->co : 1, 0},
                 .bias = LIBCALL_BIAS_UNUSED}};
}

/* sum over the window in every direction: one loop, three accumulators */
static void conv_loops(const libcall_conv *a, const float *x, const float *k,
                       const float *y, double *dx, double *dk, double *dy)
{
    int64_t g = a->groups, ki = a->ci / g, ko = a->co / g;
    const int64_t *is = a->in_step, *ks = a->kernel_step, *os = a->out_step;

    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t o = 0; o < a->co; o++)
            for (int64_t c = 0; c < ki; c++)
                for (int64_t oh = 0; oh < a->out[0]; oh++)
                    for (int64_t ow = 0; ow < a->out[1]; ow++)
                        for (int64_t kh = 0; kh < a->kernel[0]; kh++)
                            for (int64_t kw = 0; kw < a->kernel[1]; kw++) {
                                int64_t h = oh * a->stride[0] +
                                            kh * a->dilation[0] - a->low[0];
                                int64_t w = ow * a->stride[1] +
                                            kw * a->dilation[1] - a->low[1];
                                int64_t xi, ni, yi;

                                if (h < 0 || h >= a->in[0] || w < 0 ||
                                    w >= a->in[1])
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

/* Exact, by the loops in double: 3 x 3 of 20 channels, and in two groups. */
static void convolutions_of_bytes(void **state)
{
    static const size form[] = {{2, 1, 20, 24, 9, 3, 1, 1, 1, 1},
                                {1, 2, 20, 24, 11, 3, 2, 1, 0, 1}};
    enum { MOST = 1 << 13 };
    static int8_t x[MOST], w[MOST];
    static float wide_x[MOST], wide_w[MOST], none[MOST];
    static double dx[MOST], dw[MOST], sum[MOST];
    static int32_t r[MOST];
    xpu_lib *l = open_or_skip();
    uint64_t s = 9;

    (void)state;
    for (int i = 0; i < MOST; i++) {
        wide_x[i] = x[i] = i % 9 ? (int8_t)(next(&s) * 128) : -128;
        wide_w[i] = w[i] = i % 7 ? (int8_t)(next(&s) * 128) : -128;
    }
    for (int i = 0; i < 4; i++) {
        libcall c = convolution(&form[i % 2], i < 2, LIBCALL_FORWARD);
        float one = 0;

        c.conv.in_type = c.conv.kernel_type = SD_S8;
        c.conv.out_type = SD_S32;
        if (!(xpu_lib_present(l) & DEVICE_LIB_BYTES)) {
            refused(l, &c, (void *[]){x, w, &one, r},
                    "t: oneDNN convolution of s8: without AVX-512 VNNI its "
                    "sums saturate");
            continue;
        }
        memset(sum, 0, sizeof sum);
        conv_loops(&c.conv, wide_x, wide_w, none, dx, dw, sum);
        run(l, &c, (void *[]){x, w, &one, r});
        for (int64_t q = 0;
             q < c.conv.batch * c.conv.co * c.conv.out[0] * c.conv.out[1]; q++)
            assert_true(r[q] == sum[q]);
    }
    xpu_lib_close(l);
}

static void one_conv(xpu_lib *l, const libcall *call, bool last)
{
    const libcall_conv *a = &call->conv;
    libcall_direction dir = (libcall_direction)a->direction;
    int64_t o = a->out[0], nx = a->batch * a->ci * a->in[0] * a->in[1];
    int64_t nk = a->co * a->ci / a->groups * a->kernel[0] * a->kernel[1];
    int64_t ny = a->batch * a->co * o * o;
    int64_t nr = dir == LIBCALL_FORWARD ? ny : dir == LIBCALL_TO_DATA ? nx : nk;
    uint64_t s = 77;
    float *x = numbers(nx, &s), *k = numbers(nk, &s), *y = numbers(ny, &s);
    float *bias = numbers(a->co, &s), *sum = numbers(ny, &s);
    float *r = numbers(nr, &s), unused = 7;
    double *want[3] = {calloc((size_t)ny, 8), calloc((size_t)nx, 8),
                       calloc((size_t)nk, 8)};
    double worst = 0;
    void *ptr[6] = {dir == LIBCALL_TO_DATA ? y : x,
                    dir == LIBCALL_TO_WEIGHTS ? y : k};
    int n = 2;

    conv_loops(a, x, k, y, want[1], want[2], want[0]);
    ptr[n++] = a->bias == LIBCALL_BIAS_VECTOR ? bias : &unused;
    if (a->add)
        ptr[n++] = sum;
    ptr[n++] = r;
    run(l, call, ptr);
    for (int64_t i = 0; i < nr; i++) {
        int64_t ch = last ? i % a->co : i / (o * o) % a->co;
        double v = want[dir][i];

        if (a->bias == LIBCALL_BIAS_VECTOR)
            v += bias[ch];
        if (a->add)
            v += sum[i];
        if (a->activation == LIBCALL_RELU)
            v = v < 0 ? 0 : v;
        worst = fmax(worst, fabs(v - r[i]));
    }
    if (worst > 1e-4)
        print_message("direction %d, last %d, groups %d: %g\n", (int)dir, last,
                      (int)a->groups, worst);
    assert_true(worst < 1e-4);
    for (int i = 0; i < 3; i++)
        free(want[i]);
    free(x), free(k), free(y), free(bias), free(sum), free(r);
}

static void convolutions(void **state)
{
    static const size sizes[] = {{2, 1, 3, 8, 12, 3, 1, 1, 1, 1},
                                 {1, 1, 16, 16, 9, 3, 2, 1, 0, 1},
                                 {2, 4, 8, 16, 10, 3, 1, 2, 2, 2},
                                 {1, 6, 6, 6, 11, 5, 1, 1, 2, 2}};
    xpu_lib *l = open_or_skip();

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(sizes); i++)
        for (int last = 0; last < 2; last++) {
            libcall c;

            for (int form = 0; form < 8; form++) {
                c = convolution(&sizes[i], last, LIBCALL_FORWARD);
                if (form & 1)
                    c.conv.bias = LIBCALL_BIAS_VECTOR;
                c.conv.add = form >> 1 & 1;
                c.conv.activation = form >> 2 ? LIBCALL_RELU : 0;
                one_conv(l, &c, last);
            }
            c = convolution(&sizes[i], last, LIBCALL_TO_DATA);
            one_conv(l, &c, last);
            c = convolution(&sizes[i], last, LIBCALL_TO_WEIGHTS);
            one_conv(l, &c, last);
        }
    xpu_lib_close(l);
}

static void what_it_does_not_do_is_an_error(void **state)
{
    static const size small = {1, 1, 4, 4, 8, 3, 1, 1, 0, 0};
    static double room[4][512];
    void *ptr[6] = {room[0], room[1], room[2], room[3]};
    libcall c = matmul(SD_F64, SD_F64, 1, 4, 4, 4);
    xpu_lib *l = open_or_skip();

    (void)state;
    refused(l, &c, ptr, "t: oneDNN matmul of f64");
    c = matmul(SD_F32, SD_F32, 1, 4, 4, 4);
    c.matmul.bias = LIBCALL_BIAS_VECTOR;
    c.matmul.alpha = 2;
    refused(l, &c, ptr, "t: oneDNN matmul with a factor before its bias");
    c = convolution(&small, false, LIBCALL_FORWARD);
    c.conv.in_type = SD_F64;
    refused(l, &c, ptr, "t: oneDNN convolution of f64, f32 to f32");
    xpu_lib_close(l);
    refused(NULL, &c, ptr, "t: conv cannot be called: no libraries");
}

static void a_forked_child_can_call(void **state)
{
    static float x[128 * 128], r[128 * 128];
    const libcall c = matmul(SD_F32, SD_F32, 1, 128, 128, 128);
    xpu_lib *l = open_or_skip();
    int status;
    pid_t p;

    (void)state;
    run(l, &c, (void *[]){x, x, r});
    if (!(p = fork())) {
        alarm(20);
        run(l, &c, (void *[]){x, x, r});
        _exit(0);
    }
    assert_int_equal(waitpid(p, &status, 0), p);
    assert_int_equal(status, 0);
    xpu_lib_close(l);
}

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
        cmocka_unit_test(convolutions_of_bytes),
        cmocka_unit_test(products_of_bf16),
        cmocka_unit_test(relu_keeps_a_nan),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(what_it_does_not_do_is_an_error),
        cmocka_unit_test(a_forked_child_can_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
