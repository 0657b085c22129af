/* What plan_verify says of sorts and scatters that are wrong: as in
 * test_plan_verify.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan_broken.h"

/* Two runs of a row, sorted and merged. */
static const char merged[] =
    "HloModule m\nless { a = f32[] parameter(0) b = f32[] parameter(1) "
    "ROOT c = pred[] compare(a, b), direction=LT }\n"
    "ENTRY e { x = f32[4096] parameter(0) "
    "ROOT y = f32[4096] sort(x), dimensions={0}, to_apply=less }";

/* A row that items hold. */
static const char held[] =
    "HloModule m\nless { a = f32[] parameter(0) b = f32[] parameter(1) "
    "ROOT c = pred[] compare(a, b), direction=LT, type=TOTALORDER }\n"
    "ENTRY e { x = f32[9,600] parameter(0) "
    "ROOT y = f32[9,600] sort(x), dimensions={1}, to_apply=less }";

#define SCATTER(t) \
    "HloModule m\nadd { a = " t "[] parameter(0) b = " t "[] parameter(1) " \
    "ROOT c = " t "[] add(a, b) }\n" \
    "ENTRY e { x = " t \
    "[9000] parameter(0) i = s32[700,1] parameter(1) u = " t \
    "[700] parameter(2) ROOT r = " t "[9000] scatter(x, i, u), " \
    "update_window_dims={}, inserted_window_dims={0}, " \
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }"

/* Updates that items take by runs, and such that meet. */
static const char scattered[] = SCATTER("f32"), met[] = SCATTER("s32");

/* Rows, of which an item has two neighbours. */
static const char rows[] =
    "HloModule m\n" ADD
    "ENTRY e { x = f32[900,64] parameter(0) i = s32[700,1] parameter(1) "
    "u = f32[700,64] parameter(2) ROOT r = f32[900,64] scatter(x, i, u), "
    "update_window_dims={1}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }";

/* A scatter that writes zeros first. */
static const char filled[] =
    "HloModule m\n" ADD
    "ENTRY e { z = f32[] constant(0) x = f32[9000] broadcast(z), dimensions={} "
    "i = s32[700,1] parameter(0) u = f32[700] parameter(1) "
    "ROOT r = f32[9000] scatter(x, i, u), update_window_dims={}, "
    "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, to_apply=add }";

static plan_sort *sort_of(const plan *p, plan_sort_step step)
{
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernel[i]->sort && p->kernel[i]->sort->step == step)
            return p->kernel[i]->sort;
    fail_msg("no such sort");
    return NULL;
}

static void more_than_a_row(plan *p)
{
    plan_sort *s = sort_of(p, PLAN_SORT_TILES);

    s->keep = s->n + 1;
}

static void pieces_of_nothing(plan *p)
{
    sort_of(p, PLAN_SORT_TILES)->piece = 0;
}

static void an_operand_of_a_result(plan *p)
{
    plan_sort *s = sort_of(p, PLAN_SORT_TILES);

    s->in[0] = s->first_out;
}

static void a_few_of_each_piece(plan *p)
{
    sort_of(p, PLAN_SORT_TILES)->keep = 3;
}

static void sorted_by_the_host(plan *p)
{
    device_desc *dev = sd_arena_copy(p->arena, p->dev, sizeof *dev);

    dev->kind = DEVICE_HOST;
    p->dev = dev;
}

static plan_kernel *merging(const plan *p)
{
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernel[i]->sort && p->kernel[i]->sort->step == PLAN_SORT_MERGE)
            return p->kernel[i];
    fail_msg("no kernel merges");
    return NULL;
}

static void a_short_length(plan *p)
{
    plan_kernel *k = merging(p);

    k->slot[k->nslot - 1].dtype = SD_S32;
}

static void a_merge_too_many(plan *p)
{
    merging(p)->tiles++;
}

static void no_work_space(plan *p)
{
    sort_of(p, PLAN_SORT_TILES)->scratch = 0;
}

static void results_by_threes(plan *p)
{
    plan_kernel *k = merging(p);
    int64_t group = 3 * (int64_t)k->group;

    k->sort->each = 3;
    k->tiles = (k->sort->keep + group - 1) / group;
}

static void too_few_items(plan *p)
{
    sort_of(p, PLAN_SORT_ROWS)->team /= 2;
}

static void elevens_an_item(plan *p)
{
    sort_of(p, PLAN_SORT_ROWS)->each = 11;
}

static void items_without_codes(plan *p)
{
    sort_of(p, PLAN_SORT_ROWS)->keys = NULL;
}

static void a_row_too_many(plan *p)
{
    for (int i = 0; i < p->nkernel; i++)
        p->kernel[i]->tiles++;
}

static plan_runs *runs_of(const plan *p)
{
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernel[i]->runs)
            return (plan_runs *)(uintptr_t)p->kernel[i]->runs;
    fail_msg("no kernel takes runs");
    return NULL;
}

static plan_node *scatter_of(const plan *p)
{
    for (int i = 0; i < p->nkernel; i++)
        for (int j = 0; j < p->kernel[i]->nnode; j++)
            if (p->kernel[i]->node[j]->kind == PN_SCATTER)
                return p->kernel[i]->node[j];
    fail_msg("no kernel scatters");
    return NULL;
}

static void runs_along_axis_99(plan *p)
{
    runs_of(p)->axis = 99;
}

static void keys_for_updates(plan *p)
{
    runs_of(p)->update = runs_of(p)->key;
}

static void a_slot_without_end(plan *p)
{
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernel[i]->runs)
            p->kernel[i]->slot[scatter_of(p)->slot].count = UINT32_MAX;
}

static void rows_apart(plan *p)
{
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernel[i]->runs)
            p->kernel[i]->slot[scatter_of(p)->slot].align = 4;
}

static void runs_that_meet(plan *p)
{
    static const plan_runs runs;

    for (int i = 0; i < p->nkernel; i++)
        p->kernel[i]->runs = &runs;
}

static void runs_in_a_loop(plan *p)
{
    plan_node *n = scatter_of(p);

    n->over = n->varies;
}

static void sums_that_meet(plan *p)
{
    scatter_of(p)->meets = true;
}

static void begins_with_an_update(plan *p)
{
    scatter_of(p)->arg[1] = scatter_of(p)->arg[0];
}

static void broken_sorts_and_scatters_are_refused(void **state)
{
    static const struct {
        const char *text, *why;
        void (*break_it)(plan *p);
    } broken[] = {
        {merged, "a sort of no rows, or of more than they have",
         more_than_a_row},
        {merged, "a part of a sort that does nothing", pieces_of_nothing},
        {merged, "an operand to sort that no slot has", an_operand_of_a_result},
        {merged, "a sorted result that no slot has", a_few_of_each_piece},
        {merged, "a part of a sort on the host", sorted_by_the_host},
        {merged, "a merge without the length of a run", a_short_length},
        {merged, "tiles of a sort are miscounted", a_merge_too_many},
        {merged, "a sort without the work space it needs", no_work_space},
        {merged, "items that share a run's end", results_by_threes},
        {held, "a row that its items do not hold", too_few_items},
        {held, "a row that its items do not hold", elevens_an_item},
        {held, "a row that its items do not hold", items_without_codes},
        {held, "tiles of a sort are miscounted", a_row_too_many},
        {scattered, "runs along an axis that is not the updates'",
         runs_along_axis_99},
        {scattered, "runs without a list of the updates", keys_for_updates},
        {scattered, "places that the list of them cannot say",
         a_slot_without_end},
        {rows, "neighbours of a row at places of their own", rows_apart},
        {scattered, "meets where the order of updates shows", sums_that_meet},
        {scattered, "runs of updates, and no scatter", runs_in_a_loop},
        {met, "meets, and takes whole runs", runs_that_meet},
        {filled, "begins with what no tile can write alone",
         begins_with_an_update},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(broken); i++)
        want_broken(broken[i].text,
                    broken[i].text == filled ? "host:v3" : "cuda:sm_90",
                    broken[i].break_it, broken[i].why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_sorts_and_scatters_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
