/* Convolutions for wgmma, whose operands are written anew, gradients of windows
 * and images of few features: the program that comes of it has the values of
 * the one that was, by the evaluator.  All
 * numbers are small and whole or infinite, and none is 0, so that no order of
 * sums shows and no infinity is lost. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan_made.h"
#include "plan_room.h"
#include "ref.h"

typedef struct {
    const char *type, *labels; /* of two or fewer positions */
    const char *x, *y, *out, *window;
    int copies;
} convolution;

/* x: [own, positions, images], y: [images, positions, own], as JAX has them. */
static const convolution rows[] = {
    {"bf16", "f01b_i01o->01bf", "16,5,8,16", "16,5,8,64", "3,3,16,64",
     "size=5x8 pad=1_1x1_1", 2},
    {"bf16", "f01b_i01o->01bf", "16,9,12,16", "16,5,6,72", "3,3,16,72",
     "size=5x6 pad=1_1x1_0 rhs_dilate=2x2", 2},
    {"bf16", "f01b_i01o->01bf", "32,9,13,16", "32,5,5,72", "3,3,16,72",
     "size=5x5 pad=1_1x1_1 rhs_dilate=2x3", 2},
    {"f16", "f01b_i01o->01bf", "16,9,12,24", "16,7,8,64", "2,3,24,64",
     "size=7x8 pad=0_0x1_1 stride=2x3", 2},
    {"f32", "f01b_i01o->01bf", "8,5,8,16", "8,5,8,64", "3,3,16,64",
     "size=5x8 pad=1_1x1_1", 4},
    {"f32", "fb01_io01->bf01", "16,20,4,9", "16,64,4,9", "20,64,3,3",
     "size=4x9 pad=1_1x1_1", 4},
    {"f32", "f0b_i0o->0bf", "16,20,33", "16,10,64", "6,33,64",
     "size=10 pad=2_2 rhs_dilate=2", 4},
    {"bf16", "f012b_i012o->012bf", "8,3,2,16,8", "8,3,2,16,64", "3,3,3,8,64",
     "size=3x2x16 pad=1_1x1_1x1_1", 2},
    /* features that fill no access, and images that do not */
    {"bf16", "f01b_i01o->01bf", "8,5,8,17", "8,5,8,64", "3,3,17,64",
     "size=5x8 pad=1_1x1_1", 0},
    {"f32", "f01b_i01o->01bf", "6,5,8,16", "6,5,8,64", "3,3,16,64",
     "size=5x8 pad=1_1x1_1", 0},
    /* images of few features, as rows of the window */
    {"bf16", "b01f_01io->b01f", "3,22,26,3", "7,7,3,64", "3,11,13,64",
     "size=7x7 pad=2_3x2_3 stride=2x2", 2},
    {"f32", "b01f_01io->b01f", "3,22,26,3", "7,5,3,64", "3,22,24,64",
     "size=7x5 pad=3_3x0_2", 2},
    {"f32", "bf01_oi01->b01f", "3,2,22,26", "64,2,3,3", "3,22,26,64",
     "size=3x3 pad=1_1x1_1 rhs_reversal=1x1", 2},
    {"f16", "b0f_0io->b0f", "3,400,4", "9,4,64", "3,400,64", "size=9 pad=4_4",
     2},
    /* those of half a line, and holes */
    {"bf16", "b01f_01io->b01f", "3,22,26,32", "3,3,32,64", "3,22,26,64",
     "size=3x3 pad=1_1x1_1", 0},
    {"bf16", "b01f_01io->b01f", "3,22,26,3", "3,3,3,64", "3,22,26,64",
     "size=3x3 pad=2_2x2_2 rhs_dilate=2x2", 0},
};

/* Of x a number in so many is infinite: zeros that rows are filled with must
 * not meet it. */
enum { FINITE = 61 };

static void fill(hlo_value *v, int param)
{
    size_t bytes = sd_dtype_bytes(v->shape->dtype);
    uint32_t seed = (uint32_t)param + 1;
    char *p = v->data;

    for (int64_t i = 0; i < sd_shape_count(v->shape); i++, p += bytes) {
        seed = seed * 1664525 + 1013904223;
        sd_scalar_of_f64(
            v->shape->dtype,
            param == 0 && i % FINITE == 0 ? INFINITY : (double)(seed >> 30) - 4,
            p);
    }
}

static hlo_value value_of(sd_arena *a, hlo_module *m)
{
    hlo_value arg[2], v;

    for (int i = 0; i < 2; i++) {
        arg[i] = hlo_value_make(a, m->entry->param[i]->shape);
        fill(&arg[i], i);
    }
    want_success(ref_eval(a, m->entry, arg, 2, &v));
    return v;
}

static int copies_in(const hlo_module *m)
{
    int n = 0;

    hlo_for_each_inst(in, m->entry)
        n += in->op == HLO_COPY;
    return n;
}

static const char *text_of(sd_arena *a, const convolution *g)
{
    return sd_arena_fmt(a,
                        "HloModule m\nENTRY e {\n  x = %s[%s] parameter(0)\n"
                        "  y = %s[%s] parameter(1)\n"
                        "  ROOT r = %s[%s] convolution(x, y), window={%s}, "
                        "dim_labels=%s\n}\n",
                        g->type, g->x, g->type, g->y, g->type, g->out,
                        g->window, g->labels);
}

static void copies_keep_what_a_convolution_is(void **state)
{
    sd_options opt = {0};
    device_desc dev;

    (void)state;
    assert_true(device_desc_of_name("cuda:sm_90", &dev));
    dev.units = 2; /* small programs have work for both */
    for (size_t i = 0; i < SD_COUNTOF(rows); i++) {
        sd_arena *a = sd_arena_create();
        hlo_module *m = parse_text(a, text_of(a, &rows[i]));
        hlo_value want = value_of(a, m), got;

        want_success(hlo_optimize(m, &dev, &opt, NULL, NULL));
        plan_copy_operands(m, &dev, true);
        want_success(hlo_verify(m));
        if (copies_in(m) != rows[i].copies)
            fail_msg("%d copies in %s", copies_in(m), text_of(a, &rows[i]));
        got = value_of(a, m);
        if (memcmp(want.data, got.data, sd_shape_bytes(want.shape)) != 0)
            fail_msg("another value of %s", text_of(a, &rows[i]));
        sd_arena_destroy(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_keep_what_a_convolution_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
