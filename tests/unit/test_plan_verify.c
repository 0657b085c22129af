/* What plan_verify says of plans that are wrong: good ones are broken by hand,
 * one thing each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan_broken.h"

static const char rows[] =
    "HloModule m\n" ADD
    "ENTRY e { x = f32[20,300] parameter(0) z = f32[] constant(0) "
    "y = f32[20,300] multiply(x, x) "
    "ROOT s = f32[20] reduce(y, z), dimensions={1}, to_apply=add }";

/* Rows of which only a part counts. */
static const char parts[] =
    "HloModule m\n" ADD
    "ENTRY e { x = f32[20,300] parameter(0) z = f32[] constant(0) "
    "i = s32[20,300] iota(), iota_dimension=1 c = s32[] constant(200) "
    "d = s32[20,300] broadcast(c), dimensions={} "
    "b = pred[20,300] compare(i, d), direction=LT "
    "w = f32[20,300] broadcast(z), dimensions={} "
    "y = f32[20,300] select(b, x, w) "
    "ROOT s = f32[20] reduce(y, z), dimensions={1}, to_apply=add }";

/* Two values of a row are parked. */
static const char parked[] =
    "HloModule m\n" ADD
    "ENTRY e { x = f32[20,300] parameter(0) z = f32[] constant(0) "
    "e = f32[20,300] exponential(x) t = f32[20,300] tanh(x) "
    "p = f32[20] reduce(e, z), dimensions={1}, to_apply=add "
    "q = f32[20] reduce(t, z), dimensions={1}, to_apply=add "
    "v = f32[20,300] broadcast(p), dimensions={0} "
    "w = f32[20,300] broadcast(q), dimensions={0} "
    "l = f32[20,300] divide(e, v) r = f32[20,300] divide(t, w) "
    "ROOT s = f32[20,300] add(l, r) }";

static const char taken[] =
    "HloModule m\nENTRY e { x = f32[300] parameter(0) i = s32[64,1] "
    "parameter(1) ROOT r = f32[64] gather(x, i), offset_dims={}, "
    "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
    "slice_sizes={1} }";

static const char repeated[] =
    "HloModule m\nENTRY e { x = f32[30] parameter(0) y = f32[30,4] "
    "broadcast(x), dimensions={0} z = f32[120] reshape(y) "
    "w = f32[120] parameter(1) ROOT r = f32[120] add(z, w) }";

static const char factored[] =
    "HloModule m\nENTRY e { x = f32[6,4,4] parameter(0) "
    "ROOT r = f32[6,4,4] cholesky(x), lower=true }";

static const char woven[] =
    "HloModule m\nENTRY e { x = f32[512] parameter(0) a = f32[256] slice(x), "
    "slice={[0:512:2]} b = f32[256] slice(x), slice={[1:512:2]} "
    "ROOT r = f32[256] multiply(a, b) }";

static const char multiplied[] =
    "HloModule m\nENTRY e { x = s32[9,12] parameter(0) y = s32[12,10] "
    "parameter(1) ROOT r = s32[9,10] dot(x, y), lhs_contracting_dims={1}, "
    "rhs_contracting_dims={0} }";

/* A product that a GPU's group does in blocks. */
static const char blocked[] =
    "HloModule m\nENTRY e { x = f32[200,640] parameter(0) y = f32[640,300] "
    "parameter(1) ROOT r = f32[200,300] dot(x, y), lhs_contracting_dims={1}, "
    "rhs_contracting_dims={0} }";

/* Rows that a GPU's group shares, by vectors. */
static const char streamed[] =
    "HloModule m\nENTRY e { x = bf16[16384,768] parameter(0) b = bf16[768] "
    "parameter(1) c = bf16[16384,768] broadcast(b), dimensions={1} "
    "ROOT y = bf16[16384,768] maximum(x, c) }";

/* A row that the items of a GPU keep in registers. */
static const char kept[] =
    "HloModule m\n" ADD
    "ENTRY e { x = f32[1024,128] parameter(0) z = f32[] constant(0) "
    "s = f32[1024] reduce(x, z), dimensions={1}, to_apply=add "
    "t = f32[1024,128] broadcast(s), dimensions={0} "
    "ROOT y = f32[1024,128] divide(x, t) }";

/* Columns whose strided lanes are rows of a GPU's group. */
static const char columns[] =
    "HloModule m\n" ADD
    "ENTRY e { x = f32[4096,512] parameter(0) z = f32[] constant(0) "
    "ROOT s = f32[512] reduce(x, z), dimensions={0}, to_apply=add }";

static const char *device_of(const char *text)
{
    const char *const gpu[] = {streamed, kept, columns, blocked};

    for (size_t i = 0; i < SD_COUNTOF(gpu); i++)
        if (text == gpu[i])
            return "cuda:sm_90";
    return "host:v3";
}

static plan_node *node_of(const plan *p, plan_node_kind kind)
{
    const plan_kernel *k = p->kernel[0];

    for (int i = 0; i < k->nnode; i++)
        if (k->node[i]->kind == kind)
            return k->node[i];
    fail_msg("no such node");
    return NULL;
}

/* An expression of that kind in a place of the kernel's, to be broken. */
static plan_expr *expr_in(const plan_expr *e, plan_expr_kind kind)
{
    plan_expr *found;

    if (!e || e->kind == kind)
        return (plan_expr *)(uintptr_t)e;
    found = expr_in(e->a, kind);
    return found ? found : expr_in(e->b, kind);
}

static plan_expr *expr_of(const plan *p, plan_expr_kind kind)
{
    const plan_kernel *k = p->kernel[0];
    plan_expr *e = NULL;

    for (int i = 0; i < k->nnode && !e; i++)
        e = expr_in(k->node[i]->off, kind);
    assert_non_null(e);
    return e;
}

static void one_kernel_too_many(plan *p)
{
    p->program->nkernel++;
}

static void an_inner_axis_among_the_outer(plan *p)
{
    p->kernel[0]->axis[0].outer = false;
}

static void no_tile(plan *p)
{
    p->kernel[0]->axis[0].tile = 0;
}

/* The second strand of a row is that one now. */
static void take_strand(plan *p, bool first)
{
    static plan_woven row;

    plan_for_each_node(n, p->kernel[0])
        if (n->woven) {
            row = *n->woven;
            row.at[1] = first ? row.at[0] : NULL;
            n->woven = &row;
        }
}

static void one_strand_twice(plan *p)
{
    take_strand(p, true);
}

static void a_strand_left_out(plan *p)
{
    take_strand(p, false);
}

static void no_lane(plan *p)
{
    for (int i = 0; i < p->kernel[0]->naxis; i++)
        p->kernel[0]->axis[i].place = PLAN_SEQ;
}

static void a_loop_of_axis_99(plan *p)
{
    p->kernel[0]->nest[0] = 99;
}

static void lane_outside(plan *p)
{
    int *nest = p->kernel[0]->nest, first = nest[0];

    nest[0] = nest[1];
    nest[1] = first;
}

static void no_loops(plan *p)
{
    p->kernel[0]->nnest = 0;
}

static void a_pass_of_stage_99(plan *p)
{
    p->kernel[0]->pass[0].stage = 99;
}

static void no_vectors(plan *p)
{
    p->kernel[0]->pass[0].vectors = 0;
}

static void ends_outside(plan *p)
{
    plan_end *end =
        sd_arena_copy(p->arena, p->kernel[0]->pass[0].end, sizeof *end);

    end->axis = 0;
    p->kernel[0]->pass[0].end = end;
}

static void copies_of_copies(plan *p)
{
    p->kernel[0]->axis[0].copies = PLAN_AXIS_COPIES;
    p->kernel[0]->pass[0].vectors = PLAN_AXIS_COPIES;
}

static void nobody_stores(plan *p)
{
    node_of(p, PN_STORE)->pass = -1;
}

static void a_store_in_the_first_pass(plan *p)
{
    node_of(p, PN_STORE)->pass = 0;
}

static plan_node *parked_of(const plan *p, int which)
{
    const plan_kernel *k = p->kernel[0];

    for (int i = 0; i < k->nnode; i++)
        if (k->node[i]->parked && which-- == 0)
            return k->node[i];
    fail_msg("no such parked node");
    return NULL;
}

static void parked_in_the_last_pass(plan *p)
{
    parked_of(p, 0)->pass = p->kernel[0]->npass - 1;
}

static void an_area_of_nobody(plan *p)
{
    p->kernel[0]->area[0].owner = -1;
}

static void an_area_off_its_line(plan *p)
{
    p->kernel[0]->area[0].offset = 32;
}

static void a_group_of_16_rows(plan *p)
{
    p->kernel[0]->group *= 2;
}

static void a_row_of_two_steps(plan *p)
{
    p->kernel[0]->pass[1].vectors /= 2;
}

static void two_teams_of_all_items(plan *p)
{
    p->kernel[0]->teams = 2;
}

static void an_area_that_dies_first(plan *p)
{
    p->kernel[0]->area[0].last = -1;
}

static void a_short_area(plan *p)
{
    p->kernel[0]->area[0].bytes = 64;
}

static void one_area_on_another(plan *p)
{
    p->kernel[0]->area[1].offset = p->kernel[0]->area[0].offset;
}

static void one_area_for_two(plan *p)
{
    parked_of(p, 1)->area = parked_of(p, 0)->area;
}

static void an_area_that_is_gone(plan *p)
{
    p->kernel[0]->area[0].last = p->kernel[0]->area[0].first;
}

static void a_small_device(plan *p)
{
    static const device_desc small = {.kind = DEVICE_CL, .local_bytes = 64};

    p->dev = &small;
}

static void a_crowd_of_three(plan *p)
{
    p->kernel[0]->items = p->kernel[0]->group / 3;
}

static void a_seat_for_nobody(plan *p)
{
    for (int i = 0; i < p->kernel[0]->naxis; i++)
        if (p->kernel[0]->axis[i].place == PLAN_CROWD)
            p->kernel[0]->axis[i].place = PLAN_SEQ;
}

static void vectors_of_7(plan *p)
{
    p->kernel[0]->vector = 7;
}

static void a_wide_constant(plan *p)
{
    node_of(p, PN_ELT)->wide = 8;
}

static void a_guarded_square(plan *p)
{
    plan_node *n = node_of(p, PN_LOAD);

    n->staged = true;
    n->nguard = 1;
    n->guard = sd_arena_new(p->arena, plan_guard);
    *n->guard = (plan_guard){n->off, 0, 1 << 30};
}

static void a_slot_off_its_line(plan *p)
{
    p->kernel[0]->slot[0].align = 4;
}

static void a_guard_through_the_middle(plan *p)
{
    plan_node *n = node_of(p, PN_LOAD);

    n->guard = sd_arena_new(p->arena, plan_guard);
    *n->guard = (plan_guard){n->off, 0, 13};
    n->nguard = 1;
}

static plan_blocks *blocks_of(const plan *p)
{
    return (plan_blocks *)(uintptr_t)p->kernel[0]->blocks;
}

static void a_tile_for_nobody(plan *p)
{
    blocks_of(p)->mt /= 2;
}

static void matrices_read_early(plan *p)
{
    blocks_of(p)->early = true;
}

static void rounds_of_7(plan *p)
{
    blocks_of(p)->round = 7;
}

static void sub_groups_of_half_a_warp(plan *p)
{
    p->kernel[0]->subgroup /= 2;
}

static void copies_of_3(plan *p)
{
    blocks_of(p)->x_wide = 3;
}

static void copies_for_few(plan *p)
{
    plan_blocks *b = blocks_of(p);

    b->step = b->x_wide * b->y_wide;
}

static void areas_of_a_gigabyte(plan *p)
{
    blocks_of(p)->buffer = 1u << 30;
}

static void bands_of_1000(plan *p)
{
    blocks_of(p)->band = 1000;
}

static void one_tile_too_many(plan *p)
{
    p->kernel[0]->tiles++;
}

static void two_of_one_number(plan *p)
{
    p->kernel[0]->node[1]->id = 0;
}

static void its_own_operand(plan *p)
{
    plan_node *n = node_of(p, PN_STORE);

    n->arg[0] = n;
}

static void slot_99(plan *p)
{
    node_of(p, PN_STORE)->slot = 99;
}

static void a_short_slot(plan *p)
{
    p->kernel[0]->slot[0].count = 3;
}

static void stage_minus_1(plan *p)
{
    node_of(p, PN_LOAD)->stage = -1;
}

static void another_axis(plan *p)
{
    node_of(p, PN_LOAD)->varies |= 1ull << 63;
}

static void a_stage_without_axes(plan *p)
{
    p->kernel[0]->stage[0].axes = 0;
}

static void a_result_in_the_loop(plan *p)
{
    plan_node *n = node_of(p, PN_REDUCE);

    n->varies |= n->over;
}

static void a_product_of_another_type(plan *p)
{
    node_of(p, PN_CONTRACT)->dtype = SD_F32;
}

static void axis_99(plan *p)
{
    expr_of(p, PX_AXIS)->axis = 99;
}

static void division_by_0(plan *p)
{
    expr_of(p, PX_DIV)->c = 0;
}

static void a_place_read_too_late(plan *p)
{
    expr_of(p, PX_NODE)->node = node_of(p, PN_STORE);
}

static hlo_call *call_of(plan *p)
{
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernel[i]->call)
            return p->kernel[i]->call;
    fail_msg("no kernel calls");
    return NULL;
}

static void a_call_of_nothing(plan *p)
{
    call_of(p)->items = 0;
}

static void a_call_of_7(plan *p)
{
    call_of(p)->items = 7;
}

static void ranges_of_rows(plan *p)
{
    p->kernel[0]->ranges = true;
}

static void a_stretch_behind_the_row(plan *p)
{
    static const plan_stretch none = {1 << 20, true, NULL};
    static const plan_cut cut = {0, 1, &none};

    p->kernel[0]->cut = &cut;
}

static void a_cut_of_no_axis(plan *p)
{
    static const plan_stretch all = {0, true, NULL};
    static const plan_cut cut = {60, 1, &all};

    p->kernel[0]->cut = &cut;
}

static void a_slot_too_few(plan *p)
{
    p->program->seq.at[0].narg--;
}

static void a_short_argument(plan *p)
{
    p->program->seq.at[0].arg[0].bytes--;
}

static void a_result_in_its_operand(plan *p)
{
    thunk *t = &p->program->seq.at[0];

    t->arg[1].buffer = t->arg[0].buffer;
}

static void broken_plans_are_refused(void **state)
{
    static const struct {
        const char *text, *why;
        void (*break_it)(plan *p);
    } broken[] = {
        {rows, "1 kernels, 2 of them in the program", one_kernel_too_many},
        {rows, "outer axes do not come first", an_inner_axis_among_the_outer},
        {rows, "an axis without extent, tile or copy", no_tile},
        {rows, "a loop of no axis, or of one twice", a_loop_of_axis_99},
        {multiplied, "LANE is not the innermost of the loops", lane_outside},
        {rows, "the loops are not those of the outer axes", no_loops},
        {rows, "a pass of no stage, or out of turn", a_pass_of_stage_99},
        {rows, "a pass without vectors, or without nodes", no_vectors},
        {parts, "a pass that ends on no axis of its own", ends_outside},
        {rows, "a pass of too many copies", copies_of_copies},
        {rows, "no pass writes it, or one that does not", nobody_stores},
        {parked, "a pass writes it that is not of its stage",
         a_store_in_the_first_pass},
        {parked, "a pass reads it before it is parked",
         parked_in_the_last_pass},
        {parked, "an area of no node", an_area_of_nobody},
        {parked, "an area beyond local memory, or not aligned",
         an_area_off_its_line},
        {parked, "an area of other stages, or owners", an_area_that_dies_first},
        {parked, "an area that is too small", a_short_area},
        {parked, "areas that overlap", one_area_on_another},
        {parked, "parked, and no area of its own", one_area_for_two},
        {parked, "read when its area is not alive", an_area_that_is_gone},
        {parked, "more local memory than a group has", a_small_device},
        {streamed, "a crowd that is not a group's", a_crowd_of_three},
        {streamed, "items that are in no row, or in several",
         a_seat_for_nobody},
        {streamed, "vectors that LANE is no multiple of", vectors_of_7},
        {columns, "a group whose rows are no strided lanes",
         a_group_of_16_rows},
        {kept, "a row that is kept, and of several steps", a_row_of_two_steps},
        {kept, "teams that share no row", two_teams_of_all_items},
        {streamed, "an access of copies that are no neighbours",
         a_wide_constant},
        {streamed, "a staged value that is no square of a slot",
         a_guarded_square},
        {streamed, "a wide access that is not aligned", a_slot_off_its_line},
        {streamed, "a wide access of which a part is guarded",
         a_guard_through_the_middle},
        {blocked, "a tile that its items do not have", a_tile_for_nobody},
        {blocked, "items that do not stand in squares", matrices_read_early},
        {blocked, "rounds of sums that are no whole rows", rounds_of_7},
        {blocked, "sub-groups that its engine does not take",
         sub_groups_of_half_a_warp},
        {blocked, "copies that are cut", copies_of_3},
        {blocked, "copies that not all items have", copies_for_few},
        {blocked, "areas that local memory does not hold", areas_of_a_gigabyte},
        {blocked, "bands of tiles that are not whole", bands_of_1000},
        {woven, "strands that are not side by side", one_strand_twice},
        {woven, "a strand that its row has not", a_strand_left_out},
        {rows, "not one LANE axis", no_lane},
        {rows, "tiles are miscounted", one_tile_too_many},
        {rows, "not its own number", two_of_one_number},
        {rows, "an operand that is not before it", its_own_operand},
        {rows, "an axis that there is not", another_axis},
        {rows, "no such slot, or no place in it", slot_99},
        {rows, "reads outside its slot", a_short_slot},
        {rows, "no such stage", stage_minus_1},
        {rows, "not the axes of its stage", a_stage_without_axes},
        {rows, "a reduction that varies on an inner axis",
         a_result_in_the_loop},
        {multiplied, "a product of other types, or over nothing",
         a_product_of_another_type},
        {rows, "an expression of an axis that is not there", axis_99},
        {repeated, "division by less than one", division_by_0},
        {taken, "an expression of a later node", a_place_read_too_late},
        {factored, "a call of no items, or of too many numbers",
         a_call_of_nothing},
        {factored, "a call's items do not divide a slot", a_call_of_7},
        {rows, "ranges of what is no scatter by them", ranges_of_rows},
        {rows, "stretches that are no parts of their axis",
         a_stretch_behind_the_row},
        {rows, "a cut of no axis of the nest", a_cut_of_no_axis},
        {rows, "a step with other slots than its kernel", a_slot_too_few},
        {rows, "a slot beyond the memory that it gets", a_short_argument},
        {rows, "slots that overlap and say they do not",
         a_result_in_its_operand},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(broken); i++)
        want_broken(broken[i].text, device_of(broken[i].text),
                    broken[i].break_it, broken[i].why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_plans_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
