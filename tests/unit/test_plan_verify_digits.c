/* Sorts by digits, and sums by buckets, of which something is broken:
 * plan_verify says what. */
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

static const char scattered[] =
    "HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) "
    "ROOT c = f32[] add(a, b) }\n"
    "ENTRY e { x = f32[9000] parameter(0) i = s32[40000,1] parameter(1) "
    "u = f32[40000] parameter(2) ROOT r = f32[9000] scatter(x, i, u), "
    "update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }";

static plan_kernel *buckets_of(const plan *p)
{
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernel[i]->buckets)
            return p->kernel[i];
    fail_msg("no buckets");
    return NULL;
}

static void change_buckets(plan *p, plan_buckets to)
{
    buckets_of(p)->buckets = sd_arena_copy(p->arena, &to, sizeof to);
}

static void groups_of_a_crowd(plan *p)
{
    buckets_of(p)->group *= 2;
}

static void a_bucket_too_many(plan *p)
{
    buckets_of(p)->tiles++;
}

static void fewer_updates(plan *p)
{
    plan_buckets b = *buckets_of(p)->buckets;

    b.n--;
    change_buckets(p, b);
}

static void more_pieces(plan *p)
{
    plan_buckets b = *buckets_of(p)->buckets;

    b.pieces++;
    change_buckets(p, b);
}

static void no_memory(plan *p)
{
    buckets_of(p)->local_bytes /= 2;
}

static void broken_buckets_are_refused(void **state)
{
    static const struct {
        const char *why;
        void (*break_it)(plan *p);
    } broken[] = {
        {"buckets of groups that do not vote", groups_of_a_crowd},
        {"buckets that not all places are in", a_bucket_too_many},
        {"buckets without lists of updates and places", fewer_updates},
        {"buckets without lists of updates and places", more_pieces},
        {"a bucket that local memory does not hold", no_memory},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(broken); i++)
        want_broken(scattered, "cuda:sm_90", broken[i].break_it, broken[i].why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_digits_are_refused),
        cmocka_unit_test(broken_buckets_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
