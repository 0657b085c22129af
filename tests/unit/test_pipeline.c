/* A pass that leaves a wrong module is found out.  There is no such pass: the
 * hook, which is called after each, breaks the module instead. */
#include "passes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const char text[] =
    "HloModule m\nENTRY e { x = f32[4] parameter(0) y = f32[4] add(x, x) z = "
    "f32[4] copy(y) ROOT r = f32[4] multiply(z, z) }";

static void wrong_shape(void *ctx, const char *pass, const hlo_module *m)
{
    int64_t dim = 5;

    if (!strcmp(pass, HLO_LEFT_WRONG))
        ++*(int *)ctx;
    else if (strcmp(pass, "start"))
        m->entry->root->shape = sd_shape_make(m->arena, SD_F32, 1, &dim);
}

/* Text has no way to say it: after the name it is a comment. */
static void name_with_comment(void *ctx, const char *pass, const hlo_module *m)
{
    if (!strcmp(pass, HLO_LEFT_WRONG))
        ++*(int *)ctx;
    else if (strcmp(pass, "start"))
        m->entry->root->name = "r /*x*/";
}

static void is_found_out(hlo_pass_hook hook, const char *check, const char *why)
{
    sd_arena *a = sd_arena_create();
    sd_options opt = {.value[SD_OPT_CHECK] = check};
    device_desc dev;
    hlo_module *m;
    sd_status st;
    int shown = 0;

    assert_true(device_desc_of_name("host:v3", &dev));
    assert_null(hlo_parse(a, text, sizeof text - 1, &m));
    st = hlo_optimize(m, &dev, &opt, hook, &shown);
    assert_non_null(st);
    assert_int_equal(st->code, SD_INTERNAL);
    assert_int_equal(shown, 1);
    assert_non_null(strstr(st->message, "after pass "));
    if (!strstr(st->message, why))
        fail_msg("'%s' does not say '%s'", st->message, why);
    sd_status_free(st);
    sd_arena_destroy(a);
}

static void a_wrong_module_is_found_out(void **state)
{
    (void)state;
    is_found_out(wrong_shape, "verify", "f32[5]");
}

static void a_module_that_reads_differently_is_found_out(void **state)
{
    (void)state;
    is_found_out(name_with_comment, "roundtrip", "reads differently");
}

/* ---- rounding ---- */

static int count_converts(const char *type, const char *excess)
{
    sd_arena *a = sd_arena_create();
    const char *t = sd_arena_fmt(a,
                                 "HloModule m\nENTRY e { x = %s[4] "
                                 "parameter(0) y = %s[4] multiply(x, x) "
                                 "ROOT r = %s[4] add(y, x) }",
                                 type, type, type);
    sd_options o = {0};
    device_desc dev = {.kind = DEVICE_HOST, .features = DEVICE_HAS_F64};
    hlo_module *m;
    int n = 0;

    o.value[SD_OPT_EXCESS] = excess;
    assert_null(hlo_parse(a, t, strlen(t), &m));
    assert_null(hlo_optimize(m, &dev, &o, NULL, NULL));
    hlo_for_each_inst(in, m->entry)
        n += in->op == HLO_CONVERT;
    sd_arena_destroy(a);
    return n;
}

/* x up, product down and up, sum down: four, of which excess precision takes
 * the two in the middle. */
static void only_bf16_keeps_excess_precision_and_only_when_asked(void **state)
{
    (void)state;
    assert_int_equal(count_converts("bf16", NULL), 4);
    assert_int_equal(count_converts("bf16", "0"), 4);
    assert_int_equal(count_converts("bf16", "true"), 2);
    assert_int_equal(count_converts("f16", "true"), 4);
    assert_int_equal(count_converts("f8e5m2", "true"), 4);
}

/* ---- sizes ---- */

/* An array may have 2^46 bytes.  A pass may bring one that has nearly as many
 * to a multiple of something: the program compiles, or the verifier, where it
 * is asked, says that the array is too large. */
static void arrays_of_nearly_the_most_bytes_may_be_padded(void **state)
{
    static const char sums[] =
        "HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT "
        "r "
        "= f32[] add(a, b) }\nENTRY e { c = f32[] parameter(0) x = "
        "f32[3,5864062014804] broadcast(c), dimensions={} z = f32[] "
        "constant(0) "
        "w = f32[3,5864062014804] reduce-window(x, z), "
        "window={size=1x5864062014804 pad=0_0x5864062014803_0}, to_apply=add "
        "ROOT r = f32[3] reduce(w, z), dimensions={1}, to_apply=add }";
    sd_arena *a = sd_arena_create();
    device_desc dev = {.kind = DEVICE_HOST, .features = DEVICE_HAS_F64};
    sd_options o = {0};
    hlo_module *m;
    sd_status st;

    (void)state;
    assert_null(hlo_parse(a, sums, sizeof sums - 1, &m));
    st = hlo_optimize(m, &dev, &o, NULL, NULL);
    if (st)
        assert_non_null(strstr(st->message, "larger than 2^46 bytes"));
    sd_status_free(st);
    sd_arena_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_module_is_found_out),
        cmocka_unit_test(a_module_that_reads_differently_is_found_out),
        cmocka_unit_test(only_bf16_keeps_excess_precision_and_only_when_asked),
        cmocka_unit_test(arrays_of_nearly_the_most_bytes_may_be_padded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
