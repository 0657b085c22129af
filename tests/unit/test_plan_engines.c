/* How products are multiplied that are ours: by which instructions, and in
 * which blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "plan_made.h"

/* How the last product of a plan is done, which is done with; what the program
 * asks of its device goes to *asked, if that is wanted. */
static plan_blocks blocks_in(plan *p, uint64_t *asked)
{
    const plan_blocks *b = NULL;
    plan_blocks found;

    for (int i = 0; i < p->nkernel; i++)
        b = p->kernel[i]->blocks ? p->kernel[i]->blocks : b;
    assert_non_null(b);
    found = *b;
    if (asked)
        *asked = p->program->device.features;
    plan_destroy(p);
    return found;
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
    sd_arena *a = sd_arena_create();

    (void)state;
    for (size_t i = 0; i < 2 * SD_COUNTOF(row); i++) {
        size_t r = i % SD_COUNTOF(row);
        bool off = i >= SD_COUNTOF(row);
        device_desc dev = described(row[r].device);
        uint64_t asked;
        plan_engine got;

        set_off = off ? "SUNDOG_ENGINES" : NULL;
        got = blocks_in(make(a, row[r].name, &dev), &asked).engine;
        assert_int_equal(got, off ? PLAN_ENGINE_FMA : row[r].engine);
        assert_int_equal(!!(asked & (DEVICE_HAS_MMA | DEVICE_HAS_TF32 |
                                     DEVICE_HAS_DPAS16 | DEVICE_HAS_DPAS8)),
                         got != PLAN_ENGINE_FMA);
    }
    set_off = NULL;
    sd_arena_destroy(a);
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
    sd_arena *a = sd_arena_create();

    (void)state;
    for (size_t i = 0; i < 2 * SD_COUNTOF(row); i++) {
        size_t r = i % SD_COUNTOF(row);
        bool off = i >= SD_COUNTOF(row);
        bool tiles = !off && plan_engine_table[row[r].engine].tiles;
        int m = row[r].m, k = row[r].k, n = row[r].n;
        const char *text =
            product_text(a, row[r].type, row[r].sum, m, k, n, "copy");
        device_desc dev = described("host:v4");
        uint64_t asked;
        plan_blocks b;

        set_off = off ? "SUNDOG_ENGINES" : NULL;
        dev.features |= DEVICE_HAS_AMX;
        dev.cache_bytes = 2 << 20;
        dev.libs = 0;
        b = blocks_in(make_of_text(a, text, &dev), &asked);
        assert_int_equal(plan_engine_table[b.engine].tiles, tiles);
        assert_int_equal(!!(asked & DEVICE_HAS_AMX), tiles);
        if (!off)
            assert_int_equal(b.engine, row[r].engine);
        if (tiles) {
            int depth = plan_engine_table[b.engine].depth;
            int64_t words = m > 512 ? 128 : 256; /* a large tile's, others' */
            int wide = 16 * depth; /* of x: 64 bytes, or what K is full of */

            while (wide > 16 && k % wide)
                wide /= 2;
            assert_int_equal(b.x_wide, wide);
            assert_int_equal(b.weaves, k % depth == 0);
            assert_int_equal(b.kt, k > 320 ? words * depth : k);
            assert_int_equal(b.rows, row[r].rows);
            assert_int_equal(b.vectors, row[r].vectors);
        }
    }
    set_off = NULL;
    sd_arena_destroy(a);
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
    sd_arena *a = sd_arena_create();

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        const char *text =
            product_text(a, row[i].type, row[i].sum, 33, 101, 70, "copy");
        device_desc dev = described("host:v4");
        uint64_t asked;

        set_off = row[i].off;
        dev.features |= DEVICE_HAS_BF16;
        dev.libs = 0;
        assert_int_equal(blocks_in(make_of_text(a, text, &dev), &asked).engine,
                         row[i].engine);
        assert_int_equal(!!(asked & DEVICE_HAS_BF16),
                         row[i].engine == PLAN_ENGINE_VDPBF16PS);
    }
    set_off = NULL;
    sd_arena_destroy(a);
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
    sd_arena *a = sd_arena_create();

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        const char *text =
            product_text(a, row[i].type, row[i].type, 240, 256, 256, "copy");
        device_desc dev = described(row[i].device);
        plan_blocks b;

        dev.libs = 0;
        b = blocks_in(make_of_text(a, text, &dev), NULL);
        assert_int_equal(b.rows * b.vectors * row[i].each, row[i].registers);
    }
    sd_arena_destroy(a);
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
    sd_arena *a = sd_arena_create();

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        const char *text = sd_arena_fmt(
            a,
            "HloModule m\nENTRY main {\n  x = f32[64,64] parameter(0)\n"
            "  ROOT y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, "
            "rhs_contracting_dims={0}%s%s\n}\n",
            *row[i].said ? ", " : "", row[i].said);
        device_desc dev = described("cuda:sm_80");

        set_off = row[i].off;
        assert_int_equal(blocks_in(make_of_text(a, text, &dev), NULL).engine,
                         row[i].engine);
    }
    set_off = NULL;
    sd_arena_destroy(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_multiply_what_is_narrow),
        cmocka_unit_test(hosts_with_tiles_use_them),
        cmocka_unit_test(hosts_with_sums_of_bf16_use_them),
        cmocka_unit_test(sums_fill_the_registers),
        cmocka_unit_test(precision_is_the_programs),
    };

    if (argc > 1)
        plan_folder = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
