/* Which rows stay in a GPU's registers, by how many items each; and what of a
 * window is read once; and the sub-groups of what sorts in registers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "plan_made.h"

static const plan_kernel *first_kernel(sd_arena *a, const char *text,
                                       const char *device, plan **p)
{
    *p = plan_on(a, text, device);
    return (*p)->kernel[0];
}

/* A row divided by what it comes to. */
static const char *shares(sd_arena *a, const char *type, int rows, int n,
                          const char *how)
{
    return sd_arena_fmt(
        a,
        "HloModule m\njoin { x = %s[] parameter(0) y = %s[] parameter(1) "
        "ROOT z = %s[] %s(x, y) }\nENTRY e { x = %s[%d,%d] parameter(0) "
        "z = %s[] constant(1) s = %s[%d] reduce(x, z), dimensions={1}, "
        "to_apply=join t = %s[%d,%d] broadcast(s), dimensions={0} "
        "ROOT y = %s[%d,%d] subtract(x, t) }",
        type, type, type, how, type, rows, n, type, type, rows, type, rows, n,
        type, rows, n);
}

static void long_rows_are_shared_by_teams(void **state)
{
    static const struct {
        const char *type, *how, *device;
        int n, teams, vector, group;
        bool keeps;
    } row[] = {{"f32", "add", "cuda:sm_90", 2048, 0, 1, 64, true},
               {"f32", "add", "cuda:sm_90", 4096, 2, 1, 128, true},
               {"f32", "add", "cuda:sm_90", 8192, 4, 1, 256, true},
               {"f32", "add", "cuda:sm_80", 16384, 8, 1, 512, true},
               {"f32", "multiply", "cuda:sm_90", 32768, 16, 1, 1024, true},
               {"f32", "add", "cuda:sm_90", 65536, 0, 1, 256, false},
               {"f32", "add", "cuda:sm_90", 8160, 0, 1, 256, false},
               {"f32", "maximum", "cuda:sm_90", 8192, 4, 1, 256, true},
               {"s32", "add", "cuda:sm_90", 8192, 4, 1, 256, true},
               {"bf16", "maximum", "cuda:sm_90", 8192, 4, 2, 128, true},
               {"f64", "add", "cuda:sm_90", 8192, 8, 1, 512, true},
               {"f32", "add", "cl:pvc", 8192, 0, 1, 256, false}};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        sd_arena *a = sd_arena_create();
        const plan_kernel *k;
        plan *p;

        k = first_kernel(a, shares(a, row[i].type, 4096, row[i].n, row[i].how),
                         row[i].device, &p);
        assert_int_equal(k->teams, row[i].teams);
        assert_int_equal(k->keeps, row[i].keeps);
        if (row[i].keeps) {
            assert_int_equal(k->vector, row[i].vector);
            assert_int_equal(k->group, row[i].group);
        }
        plan_destroy(p);
        sd_arena_destroy(a);
    }
}

/* Wide loads are worth more registers where there are narrow elements. */
static void narrow_rows_are_read_by_two(void **state)
{
    static const struct {
        const char *beside;
        int n, vector;
    } row[] = {{"f32", 1024, 1}, {"bf16", 1024, 2}, {"bf16", 2048, 1}};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        sd_arena *a = sd_arena_create();
        const plan_kernel *k;
        const char *text;
        plan *p;
        int n = row[i].n;

        text = sd_arena_fmt(
            a,
            "HloModule m\njoin { x = f32[] parameter(0) y = f32[] "
            "parameter(1) ROOT z = f32[] add(x, y) }\nENTRY e { "
            "x = f32[4096,%d] parameter(0) g = %s[4096,%d] parameter(1) "
            "h = f32[4096,%d] convert(g) z = f32[] constant(0) "
            "s = f32[4096] reduce(x, z), dimensions={1}, to_apply=join "
            "t = f32[4096,%d] broadcast(s), dimensions={0} "
            "u = f32[4096,%d] subtract(x, t) "
            "ROOT y = f32[4096,%d] multiply(u, h) }",
            n, row[i].beside, n, n, n, n, n);
        k = first_kernel(a, text, "cuda:sm_90", &p);
        assert_true(k->keeps);
        assert_int_equal(k->vector, row[i].vector);
        plan_destroy(p);
        sd_arena_destroy(a);
    }
}

/* The positions of a window's row are copies where neighbouring results are. */
static void neighbours_take_a_windows_row_at_once(void **state)
{
    static const struct {
        const char *device;
        int size, copies;
    } row[] = {
        {"cuda:sm_90", 3, 3}, {"cuda:sm_90", 7, 7}, {"cuda:sm_90", 11, 1}};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        sd_arena *a = sd_arena_create();
        const plan_kernel *k;
        int n = row[i].size;
        plan *p;

        k = first_kernel(
            a,
            sd_arena_fmt(
                a,
                "HloModule m\nENTRY e { x = f32[64,56,56,256] "
                "parameter(0) w = f32[%d,%d,1,256] parameter(1) ROOT "
                "y = f32[64,56,56,256] convolution(x, w), "
                "window={size=%dx%d pad=%d_%dx%d_%d}, "
                "dim_labels=b01f_01io->b01f, feature_group_count=256 }",
                n, n, n, n, n / 2, n / 2, n / 2, n / 2),
            row[i].device, &p);
        assert_int_equal(k->axis[k->naxis - 1].extent, n);
        assert_int_equal(k->axis[k->naxis - 1].copies, row[i].copies);
        plan_destroy(p);
        sd_arena_destroy(a);
    }
}

/* Registers of OpenCL's GPUs are a sub-group's; eight elements of an item take
 * all of them in one of the device's usual size. */
static void sorts_in_registers_have_small_sub_groups(void **state)
{
    static const struct {
        const char *device;
        int items;
    } row[] = {
        {"cl:pvc", 16}, {"cl:dg2-g10", 8}, {"cl:cpu", 0}, {"cuda:sm_90", 32}};
    sd_arena *a = sd_arena_create();

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        device_desc dev = described(row[i].device);
        plan *p = make(a, "sort", &dev);

        assert_int_equal(p->kernel[0]->subgroup, row[i].items);
        plan_destroy(p);
    }
    sd_arena_destroy(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_rows_are_shared_by_teams),
        cmocka_unit_test(narrow_rows_are_read_by_two),
        cmocka_unit_test(neighbours_take_a_windows_row_at_once),
        cmocka_unit_test(sorts_in_registers_have_small_sub_groups),
    };

    if (argc > 1)
        plan_folder = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
