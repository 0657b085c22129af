/* plan: what Intel's matrix engine takes, operands in panels: which steps are
 * full, and what is read as it lies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan_broken.h"

static const char product[] =
    "HloModule m\nENTRY e { x = bf16[500,700] parameter(0) y = bf16[700,300] "
    "parameter(1) ROOT r = bf16[500,300] dot(x, y), lhs_contracting_dims={1}, "
    "rhs_contracting_dims={0} }";

static const char narrowed[] =
    "HloModule m\nENTRY e { x = f32[64,64] parameter(0) y = bf16[64,64] "
    "parameter(1) z = bf16[64,64] convert(x) ROOT r = bf16[64,64] dot(z, y), "
    "lhs_contracting_dims={1}, rhs_contracting_dims={0} }";

/* What is computed and then narrowed is narrow in memory. */
static const char scaled[] =
    "HloModule m\nENTRY e { x = bf16[64,64] parameter(0) y = bf16[64,64] "
    "parameter(1) z = bf16[64,64] add(x, x) ROOT r = bf16[64,64] dot(z, y), "
    "lhs_contracting_dims={1}, rhs_contracting_dims={0} }";

#define PADDED(columns, features, results, padding) \
    "HloModule m\nENTRY e { x = bf16[4,24," columns "," features \
    "] parameter(0) y = bf16[3,3," features ",64] parameter(1) ROOT r = " \
    "bf16[4," results ",64] convolution(x, y), " \
    "window={size=3x3 pad=" padding "}, dim_labels=b01f_01io->b01f }"
#define CONVOLUTION(columns, features) \
    PADDED(columns, features, "24," columns, "1_1x1_1")

static const char window[] = CONVOLUTION("24", "64");
static const char uneven[] = CONVOLUTION("24", "20");
static const char short_rows[] = CONVOLUTION("14", "64");
static const char shorter_rows[] = CONVOLUTION("9", "64");
static const char no_padding[] = PADDED("16", "64", "22,14", "0_0x0_0");

/* Both operands have the groups, so rows are the image's alone. */
static const char groups[] =
    "HloModule m\nENTRY e { x = bf16[4,24,24,128] parameter(0) y = "
    "bf16[3,3,32,128] parameter(1) ROOT r = bf16[4,24,24,128] convolution(x, "
    "y), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, "
    "feature_group_count=4 }";

static plan_blocks *blocks_of(const plan *p)
{
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernel[i]->blocks)
            return (plan_blocks *)(uintptr_t)p->kernel[i]->blocks;
    fail_msg("no blocks");
    return NULL;
}

/* Operands are read by blocks; or zeros stand before K, so that all steps but
 * the first are full, and places are found before the loop where they are one
 * load's. */
static void steps_are_full(void **state)
{
    static const struct {
        const char *text;
        bool x, y, zeros, direct; /* direct: where blocks are read, */
        int whole;                /* rows of so many at a time */
        bool window;              /* not direct: x is copied once for it */
        bool deep; /* direct: by blocks of 16 rows and two depths */
    } want[] = {{product, true, true, false, true, 0, false, true},
                {narrowed, false, true, false, false, 0, false, false},
                {scaled, true, true, false, true, 0, false, true},
                {window, true, true, true, true, 0, true, false},
                {short_rows, true, true, true, true, 8, true, true},
                {shorter_rows, true, true, true, false, 0, true, false},
                {no_padding, true, true, false, true, 8, true, true},
                {groups, true, true, true, true, 0, true, false},
                {uneven, false, true, false, false, 0, false, false}};
    static const char *const device[] = {"cl:pvc", "cl:dg2-g10"};

    (void)state;
    for (size_t d = 0; d < SD_COUNTOF(device); d++)
        for (size_t i = 0; i < SD_COUNTOF(want); i++) {
            sd_arena *a = sd_arena_create();
            plan *p = plan_on(a, want[i].text, device[d]);
            const plan_blocks *b = blocks_of(p);

            assert_true(plan_engine_table[b->engine].panels);
            assert_int_equal(b->direct, want[i].direct && !d);
            assert_int_equal(b->slides,
                             b->direct && (want[i].zeros || want[i].whole));
            assert_int_equal(b->deep, b->direct && want[i].deep);
            assert_int_equal(b->m_whole, b->direct ? want[i].whole : 0);
            if (!b->direct) {
                assert_int_equal(b->window, want[i].window);
                assert_int_equal((b->kt + b->lead) % b->step, 0);
                assert_int_equal(b->x_plain, want[i].x);
                assert_int_equal(b->y_plain, want[i].y);
                assert_int_equal(b->zeros > 0, want[i].zeros);
            }
            plan_destroy(p);
            sd_arena_destroy(a);
        }
}

/* Words are read where they lie of operands whose rows are no whole number of
 * vectors, several at once where each begins at a word's place; but not where
 * accesses as aligned as they are long are as wide. */
#define OF(of, m, k, n) \
    "HloModule m\nENTRY e { x = " of "[" m "," k "] parameter(0) y = " of \
    "[" k "," n "] parameter(1) ROOT r = s32[" m "," n "] dot(x, y), " \
    "lhs_contracting_dims={1}, rhs_contracting_dims={0} }"
static const char even_bytes[] = OF("s8", "500", "700", "300");
static const char odd_bytes[] = OF("s8", "500", "699", "301");
static const char full_bytes[] = OF("s8", "512", "704", "320");

static void words_are_read_where_they_lie(void **state)
{
    static const struct {
        const char *text;
        int x, x_access, y, y_access; /* neighbours of a loose vector, or 0 */
    } want[] = {{even_bytes, 16, 16, 0, 4},
                {odd_bytes, 16, 4, 4, 4},
                {full_bytes, 0, 16, 0, 2}};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(want); i++) {
        sd_arena *a = sd_arena_create();
        plan *p = plan_on(a, want[i].text, "cl:dg2-g10");
        const plan_blocks *b = blocks_of(p);

        assert_int_equal(b->x_loose ? b->x_wide : 0, want[i].x);
        assert_int_equal(b->y_loose ? b->y_wide : 0, want[i].y);
        assert_int_equal(b->x->wide, want[i].x_access);
        assert_int_equal(b->y->wide, want[i].y_access);
        plan_destroy(p);
        sd_arena_destroy(a);
    }
}

/* A wide engine's x slides where a row of the tile is the image's, with strides
 * of 1 and whole lines of features. */
#define WIDE(side, features, more) \
    "HloModule m\nENTRY e { x = bf16[32," side "," side "," features \
    "] parameter(0) y = bf16[3,3," features ",64] parameter(1) ROOT r = " \
    "bf16[32," side "," side ",64] convolution(x, y), " \
    "window={size=3x3 " more "}, dim_labels=b01f_01io->b01f }"
static const char wide[] = WIDE("56", "64", "pad=1_1x1_1");
static const char wide_rows[] = WIDE("140", "64", "pad=1_1x1_1");
static const char full_rows[] = WIDE("112", "128", "pad=1_1x1_1");
static const char holes[] = WIDE("56", "64", "pad=2_2x2_2 rhs_dilate=2x2");
static const char half_lines[] = WIDE("56", "32", "pad=1_1x1_1");

static void rows_slide_in_their_area(void **state)
{
    static const struct {
        const char *text;
        int64_t halo; /* 0: it does not slide */
        int64_t row; /* of the image, as the tile counts it */
    } want[] = {{wide, 2, 58},
                {wide_rows, 2, 142},
                {full_rows, 2, 114},
                {holes, 4, 60},
                {half_lines, 0, 56}};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(want); i++) {
        sd_arena *a = sd_arena_create();
        plan *p = plan_on(a, want[i].text, "cuda:sm_90");
        const plan_blocks *b = blocks_of(p);

        assert_int_equal(plan_slides_in_area(b), want[i].halo > 0);
        assert_int_equal(plan_tile_extent(p->kernel[0], b,
                                          plan_last_axis(plan_block_rows(b))),
                         want[i].row);
        if (want[i].halo)
            assert_int_equal(plan_slide_rows(p->kernel[0], b),
                             b->mt + want[i].halo);
        plan_destroy(p);
        sd_arena_destroy(a);
    }
}

/* ---- broken ---- */

static void one_zero_more(plan *p)
{
    blocks_of(p)->lead++;
}

static void a_convert_as_it_lies(plan *p)
{
    blocks_of(p)->x_plain = true;
}

static void a_loose_convert(plan *p)
{
    blocks_of(p)->x_loose = true;
}

static void no_words(plan *p)
{
    blocks_of(p)->x_loose = false;
}

static void no_zeros(plan *p)
{
    blocks_of(p)->zeros = 0;
}

static void a_product_of_windows(plan *p)
{
    blocks_of(p)->window = true;
}

static void another_pitch(plan *p)
{
    blocks_of(p)->x_reads.pitch++;
}

static void rows_as_they_are(plan *p)
{
    blocks_of(p)->m_whole = 0;
}

static void deep_rows_of_24(plan *p)
{
    blocks_of(p)->deep = true;
}

static void no_slides(plan *p)
{
    blocks_of(p)->slides = false;
}

static void it_slides(plan *p)
{
    blocks_of(p)->slides = true;
}

static void broken_ones_are_refused(void **state)
{
    (void)state;
    want_broken(product, "cl:dg2-g10", one_zero_more,
                "zeros before no full steps");
    want_broken(narrowed, "cl:pvc", a_convert_as_it_lies,
                "a plain operand that is not read so");
    want_broken(narrowed, "cl:pvc", a_loose_convert,
                "a plain operand that is not read so");
    want_broken(even_bytes, "cl:pvc", no_words, "copies that are cut");
    want_broken(window, "cl:dg2-g10", no_zeros,
                "a plain operand that is not read so");
    want_broken(product, "cl:dg2-g10", a_product_of_windows,
                "a window that no rows of x are for");
    want_broken(product, "cl:pvc", another_pitch,
                "an operand that blocks do not read");
    want_broken(short_rows, "cl:pvc", rows_as_they_are,
                "an operand that blocks do not read");
    want_broken(window, "cl:pvc", deep_rows_of_24,
                "an operand that blocks do not read");
    want_broken(window, "cl:pvc", no_slides,
                "an operand that blocks do not read");
    want_broken(half_lines, "cuda:sm_90", it_slides,
                "an x that has nowhere to slide");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_full),
        cmocka_unit_test(words_are_read_where_they_lie),
        cmocka_unit_test(rows_slide_in_their_area),
        cmocka_unit_test(broken_ones_are_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
