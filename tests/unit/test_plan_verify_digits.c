/* Sorts by digits of which something is broken: plan_verify says what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan_broken.h"

static const char sorted[] =
    "HloModule m\nless { a = s16[] parameter(0) b = s16[] parameter(1) "
    "ROOT c = pred[] compare(a, b), direction=LT }\n"
    "ENTRY e { x = s16[400000] parameter(0) "
    "ROOT y = s16[400000] sort(x), dimensions={0}, to_apply=less }";

static plan_kernel *kernel_of(const plan *p, plan_sort_step step)
{
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernel[i]->sort && p->kernel[i]->sort->step == step)
            return p->kernel[i];
    fail_msg("no such kernel");
    return NULL;
}

static void too_many_digits(plan *p)
{
    kernel_of(p, PLAN_SORT_COUNT)->sort->bits = 10;
}

static void teams_of_33(plan *p)
{
    kernel_of(p, PLAN_SORT_MOVE)->sort->team = 33;
}

static void half_pieces(plan *p)
{
    kernel_of(p, PLAN_SORT_SUM)->sort->piece /= 2;
}

static void rows_by_threes(plan *p)
{
    kernel_of(p, PLAN_SORT_MOVE)->sort->inner_out = 3;
}

static void no_codes(plan *p)
{
    kernel_of(p, PLAN_SORT_COUNT)->sort->keys = NULL;
}

static void a_short_shift(plan *p)
{
    plan_kernel *k = kernel_of(p, PLAN_SORT_MOVE);

    k->slot[k->nslot - 1].dtype = SD_S32;
}

static void few_numbers(plan *p)
{
    kernel_of(p, PLAN_SORT_SUM)->slot[0].count--;
}

static void a_sum_too_many(plan *p)
{
    kernel_of(p, PLAN_SORT_SUM)->tiles++;
}

static void codes_of_a_byte(plan *p)
{
    kernel_of(p, PLAN_SORT_COUNT)->sort->code_bits = 8;
}

static void broken_digits_are_refused(void **state)
{
    static const struct {
        const char *why;
        void (*break_it)(plan *p);
    } broken[] = {
        {"digits that a group cannot count", too_many_digits},
        {"digits that a group cannot count", teams_of_33},
        {"digits that a group cannot count", half_pieces},
        {"digits that a group cannot count", rows_by_threes},
        {"digits that a group cannot count", no_codes},
        {"a sort by digits without its numbers", a_short_shift},
        {"a sort by digits without its numbers", few_numbers},
        {"tiles of a sort are miscounted", a_sum_too_many},
        {"a digit that codes do not have", codes_of_a_byte},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(broken); i++)
        want_broken(sorted, "cuda:sm_90", broken[i].break_it, broken[i].why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_digits_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
