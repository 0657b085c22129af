/* Where products and convolutions go: which are a library's calls, and which
 * instructions multiply those that are ours; who does a matrix. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "plan_made.h"

static const libcall *first_call(const thunk_seq *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->at[i].kind == THUNK_LIBCALL)
            return s->at[i].call;
    return NULL;
}

/* Is the program of one product or convolution a call on that device? */
static bool is_call(sd_arena *a, const char *text, const char *device,
                    int units)
{
    device_desc dev;
    bool call;
    plan *p;

    assert_true(device_desc_of_name(device, &dev));
    if (units)
        dev.units = units;
    p = make_of_text(a, text, &dev);
    call = first_call(&p->program->seq) != NULL;
    plan_destroy(p);
    return call;
}

/* [m, k] by [k, n], and what becomes of it. */
static const char *product(sd_arena *a, const char *type, const char *sum,
                           int m, int k, int n, const char *then)
{
    return sd_arena_fmt(
        a,
        "HloModule m\nENTRY e {\n  x = %s[%d,%d]{1,0} parameter(0)\n"
        "  y = %s[%d,%d]{1,0} parameter(1)\n"
        "  d = %s[%d,%d]{1,0} dot(x, y), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={0}\n  ROOT r = %s[%d,%d]{1,0} %s(d)\n}\n",
        type, m, k, type, k, n, sum, m, n, sum, m, n, then);
}

/* oneDNN's sums of s8 products saturate where there is no VNNI; in f32 they are
 * exact. */
static void products_of_bytes_are_of_f32_without_vnni(void **state)
{
    (void)state;
    for (int vnni = 0; vnni < 2; vnni++) {
        sd_arena *a = sd_arena_create();
        const libcall *call;
        device_desc dev;
        plan *p;

        assert_true(device_desc_of_name("host:v4", &dev));
        dev.libs |= vnni ? DEVICE_LIB_BYTES : 0;
        p = make(a, "matmul_s8", &dev);
        call = first_call(&p->program->seq);
        assert_non_null(call);
        assert_int_equal(call->matmul.lhs, vnni ? SD_S8 : SD_F32);
        plan_destroy(p);
        sd_arena_destroy(a);
    }
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

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++)
        for (int has = 0; has < 2; has++) {
            sd_arena *a = sd_arena_create();
            const libcall *call;
            device_desc dev;
            plan *p;

            assert_true(device_desc_of_name("cuda:sm_90", &dev));
            dev.libs = has ? DEVICE_LIB_LAPACK : 0;
            p = make_of_text(
                a,
                sd_arena_fmt(a,
                             "HloModule m\nENTRY e {\n"
                             "  x = f32[%s] parameter(0)\n"
                             "  ROOT l = f32[%s] cholesky(x), lower=true\n}\n",
                             row[i].shape, row[i].shape),
                &dev);
            call = first_call(&p->program->seq);
            assert_int_equal(call != NULL, has && row[i].calls);
            assert_true(!call || call->op == LIBCALL_CHOLESKY);
            plan_destroy(p);
            sd_arena_destroy(a);
        }
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

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        sd_arena *a = sd_arena_create();
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

        assert_int_equal(is_call(a, text, "host:v3", 0), row[i].v3);
        assert_int_equal(is_call(a, text, "host:v4", 0), row[i].v4);
        sd_arena_destroy(a);
    }
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

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++)
        for (int more = 0; more < 2; more++) {
            sd_arena *a = sd_arena_create();
            const char *text = product(a, "f32", "f32", row[i].m, row[i].k,
                                       row[i].n, more ? "tanh" : "copy");

            assert_int_equal(is_call(a, text, "host:v4", row[i].units),
                             more ? row[i].call_then_tanh : row[i].call);
            sd_arena_destroy(a);
        }
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

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        sd_arena *a = sd_arena_create();
        const char *text = sd_arena_fmt(
            a,
            "HloModule m\nENTRY e {\n"
            "  x = f32[8,501,%d]{2,1,0} parameter(0)\n"
            "  w = f32[4,%d,64]{2,1,0} parameter(1)\n"
            "  ROOT y = f32[8,501,64]{2,1,0} convolution(x, w), window={size=4 "
            "pad=%d_%d rhs_dilate=2}, dim_labels=b0f_0io->b0f\n}\n",
            row[i].features, row[i].features, row[i].low, row[i].high);

        assert_int_equal(is_call(a, text, "host:v3", 0), row[i].v3);
        assert_true(is_call(a, text, "host:v4", 0));
        sd_arena_destroy(a);
    }
}

/* Weights that the library would put in order for few points. */
static void windows_of_one_point_and_few_rows_are_ours(void **state)
{
    static const struct {
        int images, side;
        bool v4;
    } row[] = {{8, 7, false}, {8, 28, true}};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        sd_arena *a = sd_arena_create();
        int b = row[i].images, n = row[i].side;
        const char *text = sd_arena_fmt(
            a,
            "HloModule m\nENTRY e {\n"
            "  x = f32[%d,%d,%d,64]{3,2,1,0} parameter(0)\n"
            "  w = f32[1,1,64,96]{3,2,1,0} parameter(1)\n"
            "  ROOT y = f32[%d,%d,%d,96]{3,2,1,0} convolution(x, w), "
            "window={size=1x1}, dim_labels=b01f_01io->b01f\n}\n",
            b, n, n, b, n, n);

        assert_true(is_call(a, text, "host:v3", 0));
        assert_int_equal(is_call(a, text, "host:v4", 0), row[i].v4);
        sd_arena_destroy(a);
    }
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

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        sd_arena *a = sd_arena_create();
        device_desc dev;
        plan *p;

        assert_true(device_desc_of_name("host:v4", &dev));
        dev.libs |= DEVICE_LIB_BYTES;
        dev.features |= DEVICE_HAS_VNNI;
        p = make_of_text(
            a,
            sd_arena_fmt(a,
                         "HloModule m\nENTRY e {\n"
                         "  x = %s[%s]{3,2,1,0} parameter(0)\n"
                         "  w = %s[%s]{3,2,1,0} parameter(1)\n"
                         "  ROOT y = %s[%s]{3,2,1,0} convolution(x, w), "
                         "window={size=%dx%d}, dim_labels=%s\n}\n",
                         row[i].type, row[i].x, row[i].type, row[i].w,
                         row[i].sum, row[i].y, row[i].size, row[i].size,
                         row[i].labels),
            &dev);
        assert_int_equal(first_call(&p->program->seq) != NULL, row[i].call);
        plan_destroy(p);
        sd_arena_destroy(a);
    }
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

    (void)state;
    for (int v4 = 0; v4 < 2; v4++) {
        sd_arena *a = sd_arena_create();
        const libcall *call;
        device_desc dev;
        plan *p;

        assert_true(device_desc_of_name(v4 ? "host:v4" : "host:v3", &dev));
        p = make_of_text(a, text, &dev);
        call = first_call(&p->program->seq);
        assert_non_null(call);
        assert_true(call->matmul.alpha == 0.5);
        assert_int_equal(call->matmul.add, v4);
        plan_destroy(p);
        sd_arena_destroy(a);
    }
}

/* A GPU's matrix instructions multiply what is narrow, f32 where it may be
 * tf32, and nothing where the setting says so. */
static void engines_multiply_what_is_narrow(void **state)
{
    static const struct {
        const char *name, *device;
        plan_engine engine;
    } row[] = {{"matmul_bf16", "cuda:sm_90", PLAN_ENGINE_MMA_BF16},
               {"matmul_s8", "cuda:sm_90", PLAN_ENGINE_MMA_S8},
               {"matmul", "cuda:sm_90", PLAN_ENGINE_MMA_TF32},
               {"matmul_bf16", "cl:pvc", PLAN_ENGINE_DPAS16_BF16},
               {"matmul_s8", "cl:pvc", PLAN_ENGINE_DPAS16_S8},
               {"matmul", "cl:pvc", PLAN_ENGINE_FMA},
               {"matmul_bf16", "cl:dg2-g10", PLAN_ENGINE_DPAS8_BF16},
               {"matmul_s8", "cl:dg2-g10", PLAN_ENGINE_DPAS8_S8}};

    (void)state;
    for (size_t i = 0; i < 2 * SD_COUNTOF(row); i++) {
        sd_arena *a = sd_arena_create();
        bool off = i >= SD_COUNTOF(row);
        plan_engine want =
            off ? PLAN_ENGINE_FMA : row[i % SD_COUNTOF(row)].engine;
        const plan_blocks *b = NULL;
        device_desc dev;
        plan *p;

        set_off = off ? "SUNDOG_ENGINES" : NULL;
        assert_true(device_desc_of_name(row[i % SD_COUNTOF(row)].device, &dev));
        p = make(a, row[i % SD_COUNTOF(row)].name, &dev);
        for (int j = 0; j < p->nkernel; j++)
            b = p->kernel[j]->blocks ? p->kernel[j]->blocks : b;
        assert_non_null(b);
        assert_int_equal(b->engine, want);
        assert_int_equal(!!(p->program->device.features &
                            (DEVICE_HAS_MMA | DEVICE_HAS_TF32 |
                             DEVICE_HAS_DPAS16 | DEVICE_HAS_DPAS8)),
                         want != PLAN_ENGINE_FMA);
        plan_destroy(p);
        sd_arena_destroy(a);
        set_off = NULL;
    }
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

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        sd_arena *a = sd_arena_create();
        const char *text =
            product(a, "bf16", "bf16", row[i].m, 1024, 1024, "copy");
        device_desc dev;
        plan *p;

        set_off = row[i].off;
        assert_true(device_desc_of_name("host:v4", &dev));
        dev.features |= row[i].features;
        dev.units = row[i].units;
        p = make_of_text(a, text, &dev);
        assert_int_equal(first_call(&p->program->seq) != NULL, row[i].call);
        plan_destroy(p);
        sd_arena_destroy(a);
        set_off = NULL;
    }
}

/* A processor's tiles multiply bf16 and bytes of any sign, other products are
 * as without; the program asks for them then alone. */
static void hosts_with_tiles_use_them(void **state)
{
    static const struct {
        const char *type, *sum;
        int m, k, n;
        plan_engine engine;
        int rows, vectors;
    } row[] = {{"bf16", "bf16", 64, 64, 64, PLAN_ENGINE_AMX_BF16, 32, 2},
               {"bf16", "f32", 48, 100, 48, PLAN_ENGINE_AMX_BF16, 24, 1},
               {"bf16", "f32", 9, 100, 80, PLAN_ENGINE_AMX_BF16, 9, 1},
               {"bf16", "f32", 64, 2000, 64, PLAN_ENGINE_AMX_BF16, 32, 2},
               {"bf16", "f32", 64, 2001, 64, PLAN_ENGINE_AMX_BF16, 32, 2},
               {"bf16", "f32", 999, 2000, 999, PLAN_ENGINE_AMX_BF16, 32, 2},
               {"s8", "s32", 64, 64, 64, PLAN_ENGINE_AMX_BYTES, 32, 2},
               {"s8", "s32", 64, 2002, 64, PLAN_ENGINE_AMX_BYTES, 32, 2},
               {"u8", "s32", 64, 64, 64, PLAN_ENGINE_AMX_BYTES, 32, 2},
               {"bf16", "f32", 16, 16, 16, PLAN_ENGINE_FMA, 0, 0},
               {"bf16", "f32", 24, 24, 24, PLAN_ENGINE_AMX_BF16, 24, 2},
               {"bf16", "f32", 64, 12, 64, PLAN_ENGINE_FMA, 0, 0},
               {"s16", "s32", 64, 64, 64, PLAN_ENGINE_VPMADDWD, 0, 0},
               {"f32", "f32", 64, 64, 64, PLAN_ENGINE_FMA, 0, 0},
               {"f16", "f32", 64, 64, 64, PLAN_ENGINE_FMA, 0, 0}};

    (void)state;
    for (size_t i = 0; i < 2 * SD_COUNTOF(row); i++) {
        sd_arena *a = sd_arena_create();
        bool off = i >= SD_COUNTOF(row), tiles;
        size_t r = i % SD_COUNTOF(row);
        int m = row[r].m, k = row[r].k, n = row[r].n;
        const char *text = product(a, row[r].type, row[r].sum, m, k, n, "copy");
        const plan_blocks *b;
        device_desc dev;
        plan *p;

        set_off = off ? "SUNDOG_ENGINES" : NULL;
        assert_true(device_desc_of_name("host:v4", &dev));
        dev.features |= DEVICE_HAS_AMX;
        dev.cache_bytes = 2 << 20;
        dev.libs = 0;
        p = make_of_text(a, text, &dev);
        b = p->kernel[p->nkernel - 1]->blocks;
        assert_non_null(b);
        tiles = !off && plan_engine_table[row[r].engine].tiles;
        assert_int_equal(plan_engine_table[b->engine].tiles, tiles);
        if (!off)
            assert_int_equal(b->engine, row[r].engine);
        if (tiles) {
            int depth = plan_engine_table[b->engine].depth;
            int64_t words = m > 512 ? 128 : 256; /* a large tile's, others' */
            int wide = 16 * depth; /* of x: 64 bytes, or what K is full of */

            while (wide > 16 && k % wide)
                wide /= 2;
            assert_int_equal(b->x_wide, wide);
            assert_int_equal(b->weaves, k % depth == 0);
            assert_int_equal(b->kt, k > 320 ? words * depth : k);
            assert_int_equal(b->rows, row[r].rows);
            assert_int_equal(b->vectors, row[r].vectors);
        }
        assert_int_equal(!!(p->program->device.features & DEVICE_HAS_AMX),
                         tiles);
        plan_destroy(p);
        sd_arena_destroy(a);
        set_off = NULL;
    }
}

/* Products of bf16 take AVX-512's instruction for them, others and f32's that
 * were bf16 do not; the program asks for it then alone. */
static void hosts_with_sums_of_bf16_use_them(void **state)
{
    static const struct {
        const char *type, *sum, *off;
        plan_engine engine;
    } row[] = {{"bf16", "bf16", NULL, PLAN_ENGINE_VDPBF16PS},
               {"bf16", "f32", NULL, PLAN_ENGINE_VDPBF16PS},
               {"bf16", "f32", "SUNDOG_ENGINES", PLAN_ENGINE_FMA},
               {"f16", "f32", NULL, PLAN_ENGINE_FMA},
               {"f32", "f32", NULL, PLAN_ENGINE_FMA},
               {"s16", "s32", NULL, PLAN_ENGINE_VPMADDWD}};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        sd_arena *a = sd_arena_create();
        const char *text =
            product(a, row[i].type, row[i].sum, 33, 101, 70, "copy");
        const plan_blocks *b;
        device_desc dev;
        plan *p;

        set_off = row[i].off;
        assert_true(device_desc_of_name("host:v4", &dev));
        dev.features |= DEVICE_HAS_BF16;
        dev.libs = 0;
        p = make_of_text(a, text, &dev);
        b = p->kernel[p->nkernel - 1]->blocks;
        assert_non_null(b);
        assert_int_equal(b->engine, row[i].engine);
        assert_int_equal(!!(p->program->device.features & DEVICE_HAS_BF16),
                         row[i].engine == PLAN_ENGINE_VDPBF16PS);
        plan_destroy(p);
        sd_arena_destroy(a);
        set_off = NULL;
    }
}

/* Sums of a register tile fill what registers there are, of whatever width. */
static void sums_fill_the_registers(void **state)
{
    static const struct {
        const char *device, *type;
        int registers, each; /* each: of a vector */
    } row[] = {{"host:v3", "f32", 12, 1},
               {"host:v3", "f64", 12, 2},
               {"host:v4", "f32", 24, 1},
               {"host:v4", "f64", 24, 2}};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        sd_arena *a = sd_arena_create();
        const char *text =
            product(a, row[i].type, row[i].type, 240, 256, 256, "copy");
        const plan_blocks *b;
        device_desc dev;
        plan *p;

        assert_true(device_desc_of_name(row[i].device, &dev));
        dev.libs = 0;
        p = make_of_text(a, text, &dev);
        b = p->kernel[p->nkernel - 1]->blocks;
        assert_non_null(b);
        assert_int_equal(b->rows * b->vectors * row[i].each, row[i].registers);
        plan_destroy(p);
        sd_arena_destroy(a);
    }
}

/* Products of f32 on CUDA, by what the program says of them: tf32 as in XLA. */
static void precision_is_the_programs(void **state)
{
    static const struct {
        const char *said, *off;
        plan_engine engine;
    } row[] = {
        {"", NULL, PLAN_ENGINE_MMA_TF32},
        {"", "NVIDIA_TF32_OVERRIDE", PLAN_ENGINE_FMA},
        {"operand_precision={high,default}", NULL, PLAN_ENGINE_MMA_TF32},
        {"operand_precision={default,highest}", NULL, PLAN_ENGINE_FMA},
        {"algorithm=dot_tf32_tf32_f32", NULL, PLAN_ENGINE_MMA_TF32},
        {"operand_precision={highest,highest}, algorithm=dot_tf32_tf32_f32",
         NULL, PLAN_ENGINE_MMA_TF32},
        {"algorithm=dot_tf32_tf32_f32_x3", NULL, PLAN_ENGINE_FMA},
        {"algorithm=dot_f32_f32_f32", NULL, PLAN_ENGINE_FMA},
        {"algorithm=dot_bf16_bf16_f32", NULL, PLAN_ENGINE_MMA_BF16}};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        sd_arena *a = sd_arena_create();
        const char *text = sd_arena_fmt(
            a,
            "HloModule m\nENTRY main {\n  x = f32[64,64] parameter(0)\n"
            "  ROOT y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, "
            "rhs_contracting_dims={0}%s%s\n}\n",
            *row[i].said ? ", " : "", row[i].said);
        device_desc dev;
        plan *p;

        set_off = row[i].off;
        assert_true(device_desc_of_name("cuda:sm_80", &dev));
        p = make_of_text(a, text, &dev);
        assert_int_equal(p->kernel[p->nkernel - 1]->blocks->engine,
                         row[i].engine);
        plan_destroy(p);
        sd_arena_destroy(a);
        set_off = NULL;
    }
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

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        sd_arena *a = sd_arena_create();
        const char *text = sd_arena_fmt(
            a,
            "HloModule m\nENTRY main {\n  x = f32[%d,%d,%d] parameter(0)\n"
            "  ROOT y = (f32[%d,%d,%d], f32[%d,%d]) custom-call(x), "
            "custom_call_target=\"sundog.eigh\", "
            "api_version=API_VERSION_TYPED_FFI, "
            "backend_config={lower = 1 : i64}\n}\n",
            row[i].batch, row[i].n, row[i].n, row[i].batch, row[i].n, row[i].n,
            row[i].batch, row[i].n);
        const plan_kernel *k;
        device_desc dev;
        plan *p;

        assert_true(device_desc_of_name(row[i].device, &dev));
        p = make_of_text(a, text, &dev);
        k = p->kernel[p->nkernel - 1];
        assert_int_equal(k->call->grouped, row[i].grouped);
        assert_int_equal(k->group, row[i].group);
        assert_int_equal(k->tiles, row[i].grouped || row[i].group == 1
                                       ? row[i].batch
                                       : (row[i].batch + 63) / 64);
        plan_destroy(p);
        sd_arena_destroy(a);
    }
}

/* LAPACK solves one right side after the other; ours lie side by side. */
static void tridiagonal_systems_of_one_right_side_are_lapacks(void **state)
{
    (void)state;
    for (int p = 1; p < 3; p++) {
        sd_arena *a = sd_arena_create();
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
        const libcall *call;
        device_desc dev;
        plan *made;

        assert_true(device_desc_of_name("host:v4", &dev));
        dev.libs |= DEVICE_LIB_LAPACK;
        made = make_of_text(a, text, &dev);
        call = first_call(&made->program->seq);
        assert_int_equal(call != NULL, p == 1);
        plan_destroy(made);
        sd_arena_destroy(a);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_bytes_are_of_f32_without_vnni),
        cmocka_unit_test(products_go_where_they_are_fast),
        cmocka_unit_test(products_with_little_for_threads_are_ours),
        cmocka_unit_test(padding_in_front_of_rows_is_ours),
        cmocka_unit_test(windows_of_one_point_and_few_rows_are_ours),
        cmocka_unit_test(convolutions_go_where_they_are_fast),
        cmocka_unit_test(factors_and_sums_share_a_call_with_avx512),
        cmocka_unit_test(engines_multiply_what_is_narrow),
        cmocka_unit_test(large_products_of_bf16_are_tiles),
        cmocka_unit_test(hosts_with_tiles_use_them),
        cmocka_unit_test(hosts_with_sums_of_bf16_use_them),
        cmocka_unit_test(sums_fill_the_registers),
        cmocka_unit_test(precision_is_the_programs),
        cmocka_unit_test(matrices_are_the_work_of_groups),
        cmocka_unit_test(tridiagonal_systems_of_one_right_side_are_lapacks),
        cmocka_unit_test(few_large_matrices_are_cusolvers),
    };

    if (argc > 1)
        plan_folder = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
