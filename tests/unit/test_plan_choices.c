/* Where products and convolutions go: which are a library's calls; who does a
 * matrix.  test_plan_engines.c has how those that are ours are multiplied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "plan_made.h"

/* Has a plan, which is done with, a library's call?  The first goes to *call,
 * if that is wanted. */
static bool has_call(plan *p, libcall *call)
{
    const thunk_seq *s = &p->program->seq;
    bool has = false;

    for (int i = 0; i < s->n && !has; i++) {
        has = s->at[i].kind == THUNK_LIBCALL;
        if (has && call)
            *call = *s->at[i].call;
    }
    plan_destroy(p);
    return has;
}

/* Is the program of one product or convolution a call on that device? */
static bool is_call(sd_arena *a, const char *text, const char *device)
{
    device_desc dev = described(device);

    return has_call(make_of_text(a, text, &dev), NULL);
}

/* oneDNN's sums of s8 products saturate where there is no VNNI; in f32 they are
 * exact. */
static void products_of_bytes_are_of_f32_without_vnni(void **state)
{
    sd_arena *a = sd_arena_create();

    (void)state;
    for (int vnni = 0; vnni < 2; vnni++) {
        device_desc dev = described("host:v4");
        libcall call = {0};

        dev.libs |= vnni ? DEVICE_LIB_BYTES : 0;
        assert_true(has_call(make(a, "matmul_s8", &dev), &call));
        assert_int_equal(call.matmul.lhs, vnni ? SD_S8 : SD_F32);
    }
    sd_arena_destroy(a);
}

/* Where there is cuSOLVER it does few large matrices, and groups of ours do
 * small ones and batches. */
static void few_large_matrices_are_cusolvers(void **state)
{
    static const struct {
        const char *shape;
        bool calls;
    } row[] = {{"64,64", false},    {"65,65", true},      {"2,65,65", false},
               {"2,256,256", true}, {"3,256,256", false}, {"2000,2000", true}};
    sd_arena *a = sd_arena_create();

    (void)state;
    for (size_t i = 0; i < 2 * SD_COUNTOF(row); i++) {
        bool has = i % 2, calls;
        const char *shape = row[i / 2].shape;
        const char *text =
            sd_arena_fmt(a,
                         "HloModule m\nENTRY e {\n  x = f32[%s] parameter(0)\n"
                         "  ROOT l = f32[%s] cholesky(x), lower=true\n}\n",
                         shape, shape);
        device_desc dev = described("cuda:sm_90");
        libcall call = {.op = LIBCALL_CHOLESKY};

        dev.libs = has ? DEVICE_LIB_LAPACK : 0;
        calls = has_call(make_of_text(a, text, &dev), &call);
        assert_int_equal(calls, has && row[i / 2].calls);
        assert_int_equal(call.op, LIBCALL_CHOLESKY);
    }
    sd_arena_destroy(a);
}

/* Our blocks do what oneDNN reads down crowded lines, which are others with and
 * without AVX-512, small matrices of a batch, what is little for two threads
 * with AVX-512, and bytes without. */
static void products_go_where_they_are_fast(void **state)
{
    static const struct {
        const char *type, *sum;
        int batch, m, n, k, x, y; /* x and y: their contracted dimension */
        bool v3, v4; /* is it a call there? */
    } row[] = {{"f32", "f32", 1, 256, 1024, 1024, 2, 1, false, true},
               {"f32", "f32", 1, 256, 1000, 1024, 2, 1, true, true},
               {"f32", "f32", 1, 1024, 1024, 1024, 2, 1, true, true},
               {"f32", "f32", 1, 256, 1024, 1024, 2, 2, true, true},
               {"f32", "f32", 1, 1024, 256, 512, 1, 1, false, true},
               {"f32", "f32", 1, 1000, 256, 512, 1, 2, true, true},
               {"f32", "f32", 1, 4, 1024, 1024, 2, 1, true, false},
               {"f32", "f32", 1, 2, 1024, 3000, 2, 1, true, true},
               {"f32", "f32", 1, 1024, 3072, 1024, 2, 1, true, false},
               {"f32", "f32", 1, 1024, 3072, 1024, 2, 2, true, true},
               {"f32", "f32", 1, 1024, 3000, 1024, 2, 1, true, true},
               {"f32", "f32", 1000, 16, 16, 16, 2, 1, false, false},
               {"f32", "f32", 1000, 28, 28, 28, 2, 1, false, true},
               {"f32", "f32", 1000, 40, 40, 40, 2, 1, true, true},
               {"s8", "s32", 1, 256, 256, 256, 2, 1, false, true}};
    sd_arena *a = sd_arena_create();

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        int m = row[i].m, n = row[i].n, k = row[i].k;
        bool down = row[i].x == 1, flat = row[i].y == 1;
        const char *text = sd_arena_fmt(
            a,
            "HloModule m\nENTRY e {\n"
            "  x = %s[%d,%d,%d]{2,1,0} parameter(0)\n"
            "  y = %s[%d,%d,%d]{2,1,0} parameter(1)\n"
            "  ROOT d = %s[%d,%d,%d]{2,1,0} dot(x, y), lhs_batch_dims={0}, "
            "rhs_batch_dims={0}, lhs_contracting_dims={%d}, "
            "rhs_contracting_dims={%d}\n}\n",
            row[i].type, row[i].batch, down ? k : m, down ? m : k, row[i].type,
            row[i].batch, flat ? k : n, flat ? n : k, row[i].sum, row[i].batch,
            m, n, row[i].x, row[i].y);

        assert_int_equal(is_call(a, text, "host:v3"), row[i].v3);
        assert_int_equal(is_call(a, text, "host:v4"), row[i].v4);
    }
    sd_arena_destroy(a);
}

/* A product of which threads have little each is ours: more for many threads
 * than for two, and more where tanh follows, which the call does not take. */
static void products_with_little_for_threads_are_ours(void **state)
{
    static const struct {
        int units, m, n, k;
        bool call, call_then_tanh;
    } row[] = {{2, 256, 768, 3000, true, true},
               {16, 256, 768, 3000, false, false},
               {16, 1024, 1024, 1024, true, true},
               {16, 1024, 1000, 1024, false, false},
               {16, 32, 4096, 1024, true, true},
               {16, 200, 200, 3072, true, true},
               {2, 128, 256, 256, false, false},
               {2, 128, 128, 128, true, false},
               {2, 64, 128, 128, true, true},
               {2, 1024, 64, 64, true, false},
               {2, 1024, 20, 256, true, true},
               {2, 256, 512, 512, true, true}};
    sd_arena *a = sd_arena_create();

    (void)state;
    for (size_t i = 0; i < 2 * SD_COUNTOF(row); i++) {
        size_t r = i / 2;
        bool more = i % 2;
        const char *text = product_text(a, "f32", "f32", row[r].m, row[r].k,
                                        row[r].n, more ? "tanh" : "copy");
        device_desc dev = described("host:v4");

        dev.units = row[r].units;
        assert_int_equal(has_call(make_of_text(a, text, &dev), NULL),
                         more ? row[r].call_then_tanh : row[r].call);
    }
    sd_arena_destroy(a);
}

/* Without AVX-512 oneDNN takes a slow way where features lie side by side and
 * more than three points of padding stand before or after a row. */
static void padding_in_front_of_rows_is_ours(void **state)
{
    static const struct {
        int low, high, features;
        bool v3;
    } row[] = {{6, 0, 64, false},
               {2, 4, 64, false},
               {3, 3, 64, true},
               {6, 0, 3, true}};
    sd_arena *a = sd_arena_create();

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        const char *text = sd_arena_fmt(
            a,
            "HloModule m\nENTRY e {\n"
            "  x = f32[8,501,%d]{2,1,0} parameter(0)\n"
            "  w = f32[4,%d,64]{2,1,0} parameter(1)\n"
            "  ROOT y = f32[8,501,64]{2,1,0} convolution(x, w), window={size=4 "
            "pad=%d_%d rhs_dilate=2}, dim_labels=b0f_0io->b0f\n}\n",
            row[i].features, row[i].features, row[i].low, row[i].high);

        assert_int_equal(is_call(a, text, "host:v3"), row[i].v3);
        assert_true(is_call(a, text, "host:v4"));
    }
    sd_arena_destroy(a);
}

/* Weights that the library would put in order for few points. */
static void windows_of_one_point_and_few_rows_are_ours(void **state)
{
    static const struct {
        int images, side;
        bool v4;
    } row[] = {{8, 7, false}, {8, 28, true}};
    sd_arena *a = sd_arena_create();

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        int b = row[i].images, n = row[i].side;
        const char *text = sd_arena_fmt(
            a,
            "HloModule m\nENTRY e {\n"
            "  x = f32[%d,%d,%d,64]{3,2,1,0} parameter(0)\n"
            "  w = f32[1,1,64,96]{3,2,1,0} parameter(1)\n"
            "  ROOT y = f32[%d,%d,%d,96]{3,2,1,0} convolution(x, w), "
            "window={size=1x1}, dim_labels=b01f_01io->b01f\n}\n",
            b, n, n, b, n, n);

        assert_true(is_call(a, text, "host:v3"));
        assert_int_equal(is_call(a, text, "host:v4"), row[i].v4);
    }
    sd_arena_destroy(a);
}

/* oneDNN convolves bytes where its sums are exact, and floats of more than a
 * few channels, but what it would rather put in order than multiply. */
static void convolutions_go_where_they_are_fast(void **state)
{
    static const struct {
        const char *type, *sum, *x, *w, *y, *labels;
        int size;
        bool call;
    } row[] = {
#define LAST  "b01f_01io->b01f"
#define FIRST "bf01_oi01->bf01"
        {"s8", "s32", "2,9,9,16", "3,3,16,8", "2,7,7,8", LAST, 3, true},
        {"s8", "s32", "2,9,9,1", "3,3,1,8", "2,7,7,8", LAST, 3, false},
        {"s8", "s32", "2,16,9,9", "8,16,3,3", "2,8,7,7", FIRST, 3, true},
        {"s8", "s32", "2,64,9,9", "8,64,1,1", "2,8,9,9", FIRST, 1, false},
        {"f32", "f32", "2,9,9,1", "3,3,1,4", "2,7,7,4", LAST, 3, false},
        {"f32", "f32", "2,9,9,1", "3,3,1,5", "2,7,7,5", LAST, 3, true},
        {"f32", "f32", "2,9,9,2", "3,3,2,2", "2,7,7,2", LAST, 3, true},
        {"f32", "f32", "2,4,9,9", "4,4,3,3", "2,4,7,7", FIRST, 3, false},
        {"bf16", "bf16", "2,16,9,9", "1,16,3,3", "2,1,7,7", FIRST, 3, false},
        {"f32", "f32", "2,1,9,9", "9,1,3,3", "2,9,7,7", FIRST, 3, false},
        {"f32", "f32", "2,1,9,9", "9,1,5,5", "2,9,5,5", FIRST, 5, false},
        {"f32", "f32", "2,1,19,19", "9,1,7,7", "2,9,13,13", FIRST, 7, true},
        {"f32", "f32", "2,64,9,9", "8,64,1,1", "2,8,9,9", FIRST, 1, false},
        {"bf16", "bf16", "2,64,9,9", "8,64,1,1", "2,8,9,9", FIRST, 1, true},
        {"f32", "f32", "2,4,9,9", "5,4,3,3", "2,5,7,7", FIRST, 3, true}};
    sd_arena *a = sd_arena_create();

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        const char *text = sd_arena_fmt(
            a,
            "HloModule m\nENTRY e {\n"
            "  x = %s[%s]{3,2,1,0} parameter(0)\n"
            "  w = %s[%s]{3,2,1,0} parameter(1)\n"
            "  ROOT y = %s[%s]{3,2,1,0} convolution(x, w), "
            "window={size=%dx%d}, dim_labels=%s\n}\n",
            row[i].type, row[i].x, row[i].type, row[i].w, row[i].sum, row[i].y,
            row[i].size, row[i].size, row[i].labels);
        device_desc dev = described("host:v4");

        dev.libs |= DEVICE_LIB_BYTES;
        dev.features |= DEVICE_HAS_VNNI;
        assert_int_equal(has_call(make_of_text(a, text, &dev), NULL),
                         row[i].call);
    }
    sd_arena_destroy(a);
}

/* c + x y / 2 is one call with AVX-512; without it oneDNN would do that by its
 * reference code, so the sum is ours. */
static void factors_and_sums_share_a_call_with_avx512(void **state)
{
    static const char text[] =
        "HloModule m\nENTRY e {\n"
        "  x = f32[600,256]{1,0} parameter(0)\n"
        "  y = f32[256,600]{1,0} parameter(1)\n"
        "  c = f32[600,600]{1,0} parameter(2)\n"
        "  d = f32[600,600]{1,0} dot(x, y), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={0}\n"
        "  h = f32[] constant(0.5)\n"
        "  b = f32[600,600]{1,0} broadcast(h), dimensions={}\n"
        "  s = f32[600,600]{1,0} multiply(d, b)\n"
        "  ROOT r = f32[600,600]{1,0} add(c, s)\n}\n";
    sd_arena *a = sd_arena_create();

    (void)state;
    for (int v4 = 0; v4 < 2; v4++) {
        device_desc dev = described(v4 ? "host:v4" : "host:v3");
        libcall call = {0};

        assert_true(has_call(make_of_text(a, text, &dev), &call));
        assert_true(call.matmul.alpha == 0.5);
        assert_int_equal(call.matmul.add, v4);
    }
    sd_arena_destroy(a);
}

/* Where there are tiles large products of bf16 are ours, on few threads, and
 * others the library's; all where the tiles are not wanted. */
static void large_products_of_bf16_are_tiles(void **state)
{
    static const struct {
        const char *off;
        uint64_t features;
        int units, m;
        bool call;
    } row[] = {{NULL, DEVICE_HAS_AMX, 2, 1024, false},
               {NULL, DEVICE_HAS_AMX, 2, 512, true},
               {NULL, DEVICE_HAS_AMX, 16, 1024, true},
               {NULL, 0, 2, 1024, true},
               {"SUNDOG_ENGINES", DEVICE_HAS_AMX, 2, 1024, true}};
    sd_arena *a = sd_arena_create();

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        const char *text =
            product_text(a, "bf16", "bf16", row[i].m, 1024, 1024, "copy");
        device_desc dev = described("host:v4");

        set_off = row[i].off;
        dev.features |= row[i].features;
        dev.units = row[i].units;
        assert_int_equal(has_call(make_of_text(a, text, &dev), NULL),
                         row[i].call);
    }
    set_off = NULL;
    sd_arena_destroy(a);
}

/* A matrix is a group's work on a GPU, as large as it has something to do; very
 * many small ones are a work item's each, and on the host a thread's. */
static void matrices_are_the_work_of_groups(void **state)
{
    static const struct {
        const char *device;
        int batch, n;
        bool grouped;
        int group;
    } row[] = {
        {"cuda:sm_90", 1, 8, true, 64},      {"cuda:sm_90", 1, 64, true, 128},
        {"cuda:sm_90", 1, 300, true, 1024},  {"cuda:sm_90", 1000, 32, true, 64},
        {"cuda:sm_90", 10000, 5, false, 64}, {"cl:pvc", 1, 300, true, 256},
        {"host:v3", 1, 300, false, 1}};
    sd_arena *a = sd_arena_create();

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        const char *text = sd_arena_fmt(
            a,
            "HloModule m\nENTRY main {\n  x = f32[%d,%d,%d] parameter(0)\n"
            "  ROOT y = (f32[%d,%d,%d], f32[%d,%d]) custom-call(x), "
            "custom_call_target=\"sundog.eigh\", "
            "api_version=API_VERSION_TYPED_FFI, "
            "backend_config={lower = 1 : i64}\n}\n",
            row[i].batch, row[i].n, row[i].n, row[i].batch, row[i].n, row[i].n,
            row[i].batch, row[i].n);
        device_desc dev = described(row[i].device);
        plan *p = make_of_text(a, text, &dev);
        const plan_kernel *k = p->kernel[p->nkernel - 1];

        assert_int_equal(k->call->grouped, row[i].grouped);
        assert_int_equal(k->group, row[i].group);
        assert_int_equal(k->tiles, row[i].grouped || row[i].group == 1
                                       ? row[i].batch
                                       : (row[i].batch + 63) / 64);
        plan_destroy(p);
    }
    sd_arena_destroy(a);
}

/* LAPACK solves one right side after the other; ours lie side by side. */
static void tridiagonal_systems_of_one_right_side_are_lapacks(void **state)
{
    sd_arena *a = sd_arena_create();

    (void)state;
    for (int p = 1; p < 3; p++) {
        const char *text = sd_arena_fmt(
            a,
            "HloModule m\nENTRY e {\n  l = f32[100]{0} parameter(0)\n"
            "  d = f32[100]{0} parameter(1)\n  u = f32[100]{0} parameter(2)\n"
            "  b = f32[100,%d]{1,0} parameter(3)\n"
            "  ROOT r = f32[100,%d]{1,0} custom-call(l, d, u, b), "
            "custom_call_target=\"sundog.tridiagonal_solve\", "
            "api_version=API_VERSION_TYPED_FFI, "
            "backend_config=\"{perturb = 0 : i64}\"\n}\n",
            p, p);
        device_desc dev = described("host:v4");

        dev.libs |= DEVICE_LIB_LAPACK;
        assert_int_equal(has_call(make_of_text(a, text, &dev), NULL), p == 1);
    }
    sd_arena_destroy(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_bytes_are_of_f32_without_vnni),
        cmocka_unit_test(few_large_matrices_are_cusolvers),
        cmocka_unit_test(products_go_where_they_are_fast),
        cmocka_unit_test(products_with_little_for_threads_are_ours),
        cmocka_unit_test(padding_in_front_of_rows_is_ours),
        cmocka_unit_test(windows_of_one_point_and_few_rows_are_ours),
        cmocka_unit_test(convolutions_go_where_they_are_fast),
        cmocka_unit_test(factors_and_sums_share_a_call_with_avx512),
        cmocka_unit_test(large_products_of_bf16_are_tiles),
        cmocka_unit_test(matrices_are_the_work_of_groups),
        cmocka_unit_test(tridiagonal_systems_of_one_right_side_are_lapacks),
    };

    if (argc > 1)
        plan_folder = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
