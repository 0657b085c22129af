/* A window's gradient of which something is broken: plan_verify says what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan_broken.h"

static const char gradient[] =
    "HloModule m\n"
    "ENTRY e { x = bf16[8,6,8,64] parameter(0) y = bf16[8,6,8,64] parameter(1) "
    "ROOT r = f32[1,3,3,64,64] custom-call(x, y), "
    "custom_call_target=\"sundog.window-gradient\", "
    "api_version=API_VERSION_TYPED_FFI, backend_config=\"1,1\" }";

static void by_mma(plan *p)
{
    p->kernel[0]->places->engine = PLAN_ENGINE_MMA_BF16;
}

static void x_of_f16(plan *p)
{
    p->kernel[0]->slot[0].dtype = SD_F16;
}

static void a_result_of_bf16(plan *p)
{
    p->kernel[0]->slot[2].dtype = SD_BF16;
}

static void y_off_its_line(plan *p)
{
    p->kernel[0]->slot[1].align = 8;
}

static void a_tile_too_many(plan *p)
{
    p->kernel[0]->tiles++;
}

static void three_columns(plan *p)
{
    p->kernel[0]->places->step.columns = 3;
}

static void two_pairs(plan *p)
{
    p->kernel[0]->places->step.pairs = 2;
}

static void a_step_too_many(plan *p)
{
    p->kernel[0]->places->step.steps++;
}

static void more_pieces_than_steps(plan *p)
{
    hlo_places *w = &p->kernel[0]->places->of;

    w->pieces = p->kernel[0]->places->step.steps + 1;
    p->kernel[0]->tiles = w->pieces;
}

static void half_a_group(plan *p)
{
    p->kernel[0]->group /= 2;
}

static void little_memory(plan *p)
{
    p->kernel[0]->local_bytes /= 2;
}

static void broken_gradients_are_refused(void **state)
{
    static const char by[] = "a window's gradient by an engine that the device "
                             "has not, or that is not for it",
                      of[] = "a window's gradient of other types, or whose "
                             "operands lie badly",
                      count[] = "a window's positions are miscounted",
                      group[] = "a window's gradient fits no group";
    static const struct {
        const char *why;
        void (*break_it)(plan *p);
    } broken[] = {
        {by, by_mma},
        {of, x_of_f16},
        {of, a_result_of_bf16},
        {of, y_off_its_line},
        {count, a_tile_too_many},
        {count, three_columns},
        {count, two_pairs},
        {count, a_step_too_many},
        {count, more_pieces_than_steps},
        {group, half_a_group},
        {group, little_memory},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(broken); i++)
        want_broken(gradient, "cuda:sm_90", broken[i].break_it, broken[i].why);
}

/* Calls that programs write themselves, of what kernels do not take. */
static void other_calls_are_refused(void **state)
{
    static const struct {
        const char *from, *to;
    } other[] = {
        {"\"1,1\"", "\"1\""},
        {"\"1,1\"", "\"1,1,1\""},
        {"\"1,1\"", "\"1,9\""},
        {"f32[1,3,3,64,64]", "f32[1,3,4,64,64]"},
        {"y = bf16", "y = f16"},
        {"f32[1,3", "f32[9,3"},
        {"x = bf16[8,6,8,64]", "x = bf16[8,6,8,60]"},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(other); i++) {
        sd_arena *a = sd_arena_create();
        device_desc dev;
        sd_options opt = {0};
        const char *at = strstr(gradient, other[i].from);
        const char *text =
            sd_arena_fmt(a, "%.*s%s%s", (int)(at - gradient), gradient,
                         other[i].to, at + strlen(other[i].from));

        assert_true(device_desc_of_name("cuda:sm_90", &dev));
        want_refusal(hlo_optimize(parse_text(a, text), &dev, &opt, NULL, NULL),
                     SD_UNIMPLEMENTED,
                     "a window's gradient of another device or of what "
                     "kernels do not take");
        sd_arena_destroy(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_gradients_are_refused),
        cmocka_unit_test(other_calls_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
