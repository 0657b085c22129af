/* What the plan room refuses that no reader refuses before it: fusions that
 * plan_fuse would never make, cycles, and places that two values would share.
 */
#include "passes.h"
#include "plan_mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hlo_written.h"
#include "want_error.h"

/* ---- fusions that plan_fuse does not make ---- */

static void fusion_is_refused(const char *comps, const char *entry,
                              sd_code code, const char *why)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m = parse_text(
        a, sd_arena_fmt(a, "HloModule m\n%sENTRY e { %s }", comps, entry));
    plan_kernel *k;

    hlo_for_each_inst(in, m->entry)
        if (in->op == HLO_FUSION)
            want_refusal(plan_lower(a, in, &k), code, why);
    sd_arena_destroy(a);
}

static void impossible_fusions_are_refused(void **state)
{
    (void)state;
    fusion_is_refused(ADD
                      "f { x = f32[4,8] parameter(0) z = f32[] constant(0) "
                      "r = f32[4] reduce(x, z), dimensions={1}, to_apply=add "
                      "ROOT s = f32[4] reduce-window(r, z), window={size=2 "
                      "pad=1_0}, to_apply=add }\n",
                      "x = f32[4,8] parameter(0) "
                      "ROOT y = f32[4] fusion(x), kind=kLoop, calls=f",
                      SD_INTERNAL, "a reduction inside another's loop");
    fusion_is_refused(
        ADD "f { x = f32[4,20] parameter(0) y = f32[20,4] parameter(1) "
            "z = f32[] constant(0) d = f32[4,4] dot(x, y), "
            "lhs_contracting_dims={1}, rhs_contracting_dims={0} "
            "ROOT s = f32[4,4] reduce-window(d, z), window={size=2x1 "
            "pad=1_0x0_0}, to_apply=add }\n",
        "x = f32[4,20] parameter(0) y = f32[20,4] parameter(1) "
        "ROOT r = f32[4,4] fusion(x, y), kind=kLoop, calls=f",
        SD_INTERNAL, "a product inside another's loop");
    fusion_is_refused(
        "f { x = f32[4] parameter(0) y = f32[5] parameter(1) "
        "ROOT t = (f32[4], f32[5]) tuple(x, y) }\n",
        "x = f32[4] parameter(0) y = f32[5] parameter(1) "
        "ROOT t = (f32[4], f32[5]) fusion(x, y), kind=kLoop, calls=f",
        SD_INTERNAL, "output 1 is not in its space");
    fusion_is_refused("f { x = f32[2] parameter(0) ROOT r = f32[2] "
                      "custom-call(x), custom_call_target=\"nobody\" }\n",
                      "x = f32[2] parameter(0) "
                      "ROOT y = f32[2] fusion(x), kind=kLoop, calls=f",
                      SD_INTERNAL, "r: no call of a device function");
    fusion_is_refused(
        "f { x = f32[2] parameter(0) ROOT r = f32[2] "
        "custom-call(x), custom_call_target=\"sundog.attend\" }\n",
        "x = f32[2] parameter(0) "
        "ROOT y = f32[2] fusion(x), kind=kLoop, calls=f",
        SD_INTERNAL, "r: no call of attention");
    fusion_is_refused(
        "f { x = f32[2] parameter(0) ROOT r = f32[2] "
        "custom-call(x), custom_call_target=\"sundog.window-gradient\" }\n",
        "x = f32[2] parameter(0) "
        "ROOT y = f32[2] fusion(x), kind=kLoop, calls=f",
        SD_INTERNAL, "r: no call of a window's gradient");
    fusion_is_refused("f { x = f32[2] parameter(0) c = f32[2] constant({1, 2}) "
                      "ROOT y = f32[2] add(x, c) }\n",
                      "x = f32[2] parameter(0) "
                      "ROOT y = f32[2] fusion(x), kind=kLoop, calls=f",
                      SD_INTERNAL, "constant c inside a fusion");
    fusion_is_refused(
        "f { x = f32[2,2] parameter(0) c = f32[2,2] cholesky(x), lower=true "
        "ROOT y = f32[2,2] add(x, c) }\n",
        "x = f32[2,2] parameter(0) "
        "ROOT y = f32[2,2] fusion(x), kind=kLoop, calls=f",
        SD_INTERNAL, "cholesky c inside a fusion");
    fusion_is_refused(
        ADD "f { x = f32[9,4] parameter(0) i = s32[3] parameter(1) u = "
            "f32[3,4] parameter(2) ROOT r = f32[9,4] scatter(x, i, u), "
            "update_window_dims={1}, inserted_window_dims={0}, "
            "scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
            "to_apply=add }\n",
        "x = f32[9,4] parameter(0) i = s32[3] parameter(1) u = f32[3,4] "
        "parameter(2) ROOT y = f32[9,4] fusion(x, i, u), kind=kInput, calls=f",
        SD_INTERNAL, "r: not the form that plans take");
}

static const char *sum_of(sd_arena *a, sd_buf *b, int from, int n)
{
    const char *x, *y;

    if (n == 1) {
        sd_buf_fmt(b, "c%d = f32[] constant(%d) ", from, from);
        return sd_arena_fmt(a, "c%d", from);
    }
    x = sum_of(a, b, from, n / 2);
    y = sum_of(a, b, from + n / 2, n - n / 2);
    sd_buf_fmt(b, "%s_%s = f32[] add(%s, %s) ", x, y, x, y);
    return sd_arena_fmt(a, "%s_%s", x, y);
}

/* The sum of so many constants that no kernel holds them. */
static void a_fusion_without_end_is_refused(void **state)
{
    sd_arena *a = sd_arena_create();
    sd_buf b = {0};
    const char *sum;

    (void)state;
    sd_buf_str(&b, "f { ");
    sum = sum_of(a, &b, 0, 2100);
    sd_buf_fmt(&b, "ROOT r = f32[] negate(%s) }\n", sum);
    sd_buf_u8(&b, 0);
    fusion_is_refused(b.at, "ROOT y = f32[] fusion(), kind=kLoop, calls=f",
                      SD_UNIMPLEMENTED,
                      "a kernel of more than 4000 operations");
    sd_buf_finish(&b);
    sd_arena_destroy(a);
}

/* Each sum over a window has loops of its own. */
static void a_fusion_of_many_windows_is_refused(void **state)
{
    sd_buf b = {0};

    (void)state;
    sd_buf_str(&b, ADD "f { x = f32[2,2,2,2] parameter(0) z = f32[] "
                       "constant(0) y0 = f32[2,2,2,2] copy(x) ");
    for (int i = 1; i <= 16; i++)
        sd_buf_fmt(&b,
                   "c%d = f32[] constant(%d) b%d = f32[2,2,2,2] "
                   "broadcast(c%d), dimensions={} m%d = f32[2,2,2,2] "
                   "multiply(x, b%d) w%d = f32[2,2,2,2] reduce-window(m%d, "
                   "z), window={size=2x2x2x2 pad=1_0x1_0x1_0x1_0}, "
                   "to_apply=add y%d = f32[2,2,2,2] add(y%d, w%d) ",
                   i, i, i, i, i, i, i, i, i, i - 1, i);
    sd_buf_str(&b, "ROOT r = f32[2,2,2,2] negate(y16) }\n");
    sd_buf_u8(&b, 0);
    fusion_is_refused(b.at,
                      "x = f32[2,2,2,2] parameter(0) ROOT y = f32[2,2,2,2] "
                      "fusion(x), kind=kLoop, calls=f",
                      SD_INTERNAL, "y: more than 64 axes");
    sd_buf_finish(&b);
}

/* ---- order and memory ---- */

static void cycles_are_refused(void **state)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m = parse_text(
        a, "HloModule m\nENTRY e { p = f32[4] parameter(0) x = f32[4] add(p, "
           "p) y = f32[4] add(x, p) ROOT z = f32[4] negate(y) }");
    hlo_inst *y = m->entry->root->arg[0];
    device_desc dev = {0};

    (void)state;
    hlo_set_arg(y->arg[0], 1, y);
    want_refusal(plan_schedule(m->entry, &dev), SD_INTERNAL,
                 "e: 3 of 4 instructions are in a cycle");
    sd_arena_destroy(a);
}

static void lives_that_cross_are_refused(void **state)
{
    sd_arena *a = sd_arena_create();
    plan_mem pm = {.a = a};
    storage *s = sd_arena_new(a, storage);
    plan_home home = {.n = 1, .at = &s};

    (void)state;
    pm.m = parse_text(a, "HloModule m\nENTRY e { ROOT c = f32[] constant(1) }");
    pm.m->entry->root->tag = &home;
    *sd_push(a, &s->life) = (plan_life){0, 5};
    *sd_push(a, &s->life) = (plan_life){3, 7};
    *sd_push(a, &pm.all) = s;
    want_refusal(plan_share(&pm), SD_INTERNAL,
                 "m: two values at once in one place, at step 3");
    sd_arena_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible_fusions_are_refused),
        cmocka_unit_test(a_fusion_without_end_is_refused),
        cmocka_unit_test(a_fusion_of_many_windows_is_refused),
        cmocka_unit_test(cycles_are_refused),
        cmocka_unit_test(lives_that_cross_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
