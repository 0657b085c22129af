/* Kernels that are built once: they are the same only if they are, not if their
 * hash is. */
#include "plan_cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan_made.h"

typedef struct {
    plan_kernel k;
    plan_axis axis[1];
    plan_slot slot[2];
    plan_stage stage[1];
    plan_pass pass[1];
    plan_area area[1];
    int nest[1];
    plan_sort sort;
    plan_runs runs;
    plan_buckets buckets;
    plan_blocks blocks;
    plan_node node[3], *list[3], *arg[2], *root[1], bnode, *blist[1];
    plan_body body;
    plan_guard guard[1];
    hlo_inst in;
    bool down;
    int sort_in, sort_out;
    sd_dtype type;
    hlo_call call;
} example;

/* A kernel with something in every field. */
static example *make_example(sd_arena *a)
{
    example *x = sd_arena_new(a, example);
    plan_px *p = plan_px_create(a);
    const plan_expr *e = plan_px_axis(p, 0, 7);

    x->axis[0] = (plan_axis){.extent = 7, .tile = 7, .outer = true};
    x->slot[0] = (plan_slot){.dtype = SD_F32, .count = 7, .access = 1};
    x->slot[1] = (plan_slot){.dtype = SD_F32, .count = 7, .access = 2};
    x->in.op = HLO_COMPARE;
    x->guard[0] = (plan_guard){e, 0, 5};
    x->bnode = (plan_node){.kind = PN_PARAM, .dtype = SD_F32};
    x->blist[0] = x->root[0] = &x->bnode;
    x->body = (plan_body){x->blist, 1, 1, 1, x->root, HLO_ADD};
    x->sort = (plan_sort){.rows = 2, .n = 3, .inner = 1, .less = &x->body};
    x->call = (hlo_call){.fn = "f", .nint = 2, .items = 3};
    x->sort.keys = &x->body;
    x->sort.down = &x->down;
    x->sort.nop = x->sort.nout = 1;
    x->sort.in = &x->sort_in;
    x->sort.out = &x->sort_out;
    x->sort.type = &x->type;
    for (int i = 0; i < 3; i++) {
        x->list[i] = &x->node[i];
        x->node[i].id = i;
    }
    x->node[0].kind = PN_LOAD;
    x->node[0].off = e;
    x->node[1] = (plan_node){.kind = PN_ELT,
                             .id = 1,
                             .op = HLO_COMPARE,
                             .in = &x->in,
                             .narg = 2,
                             .arg = x->arg,
                             .body = &x->body,
                             .guard = x->guard,
                             .nguard = 1,
                             .off = plan_px_node(p, &x->node[0], 0, 9)};
    x->blocks.node = x->blocks.x = x->blocks.y = &x->node[1];
    x->arg[0] = x->arg[1] = &x->node[0];
    x->node[2].kind = PN_STORE;
    x->node[2].off = plan_px_div(p, e, 3);
    x->k = (plan_kernel){.name = "k",
                         .axis = x->axis,
                         .node = x->list,
                         .slot = x->slot,
                         .stage = x->stage,
                         .sort = &x->sort,
                         .runs = &x->runs,
                         .buckets = &x->buckets,
                         .blocks = &x->blocks,
                         .call = &x->call,
                         .naxis = 1,
                         .nouter = 1,
                         .nnode = 3,
                         .nslot = 2,
                         .nstage = 1,
                         .nest = x->nest,
                         .pass = x->pass,
                         .area = x->area,
                         .nnest = 1,
                         .npass = 1,
                         .narea = 1};
    return x;
}

typedef struct {
    size_t at, size;
} span;
#define MEMBER(type, member) {offsetof(type, member), sizeof((type *)0)->member}

/* Members that are not compared: what they point to is, or they follow from
 * what is, or nobody who emits or launches the kernel reads them. */
static const span kernel_left[] = {
    MEMBER(plan_kernel, name),      MEMBER(plan_kernel, number),
    MEMBER(plan_kernel, same_hash), MEMBER(plan_kernel, axis),
    MEMBER(plan_kernel, node),      MEMBER(plan_kernel, slot),
    MEMBER(plan_kernel, stage),     MEMBER(plan_kernel, nest),
    MEMBER(plan_kernel, pass),      MEMBER(plan_kernel, area),
    MEMBER(plan_kernel, sort),      MEMBER(plan_kernel, call),
    MEMBER(plan_kernel, attend),    MEMBER(plan_kernel, places),
    MEMBER(plan_kernel, loop),      MEMBER(plan_kernel, runs),
    MEMBER(plan_kernel, buckets),   MEMBER(plan_kernel, part),
    MEMBER(plan_kernel, npart),     MEMBER(plan_kernel, blocks),
    MEMBER(plan_kernel, cut),       MEMBER(plan_kernel, turns),
    MEMBER(plan_kernel, arena)};
static const span node_left[] = {
    MEMBER(plan_node, in),      MEMBER(plan_node, arg),
    MEMBER(plan_node, off),     MEMBER(plan_node, guard),
    MEMBER(plan_node, body),    MEMBER(plan_node, across),
    MEMBER(plan_node, down),    MEMBER(plan_node, words),
    MEMBER(plan_node, rounded), MEMBER(plan_node, index),
    MEMBER(plan_node, nindex),  MEMBER(plan_node, woven)};
static const span slot_left[] = {MEMBER(plan_slot, noalias)};
static const span pass_left[] = {
    MEMBER(plan_pass, needs), MEMBER(plan_pass, end),
    MEMBER(plan_pass, one_by_one), MEMBER(plan_pass, drops)};
static const span body_left[] = {MEMBER(plan_body, node),
                                 MEMBER(plan_body, root)};
static const span buckets_left[] = {MEMBER(plan_buckets, body)};
static const span sort_left[] = {
    MEMBER(plan_sort, less), MEMBER(plan_sort, in),   MEMBER(plan_sort, type),
    MEMBER(plan_sort, out),  MEMBER(plan_sort, keys), MEMBER(plan_sort, down)};
static const span blocks_left[] = {
    MEMBER(plan_blocks, node),     MEMBER(plan_blocks, x),
    MEMBER(plan_blocks, y),        MEMBER(plan_blocks, m_in),
    MEMBER(plan_blocks, n_in),     MEMBER(plan_blocks, k_in),
    MEMBER(plan_blocks, rest),     MEMBER(plan_blocks, chunk),
    MEMBER(plan_blocks, x_m),      MEMBER(plan_blocks, x_k),
    MEMBER(plan_blocks, y_panel),  MEMBER(plan_blocks, y_k),
    MEMBER(plan_blocks, sum_m),    MEMBER(plan_blocks, x_at),
    MEMBER(plan_blocks, y_at),     MEMBER(plan_blocks, sum_at),
    MEMBER(plan_blocks, x_row),    MEMBER(plan_blocks, y_row),
    MEMBER(plan_blocks, stage_at), MEMBER(plan_blocks, y_n),
    MEMBER(plan_blocks, x_panel),  MEMBER(plan_blocks, direct),
    MEMBER(plan_blocks, x_reads),  MEMBER(plan_blocks, y_reads),
    MEMBER(plan_blocks, deep),     MEMBER(plan_blocks, m_whole)};
static const span none_left[] = {{0, 0}};

/* clang does not tell which bytes are padding: there the test is skipped. */
#if __has_builtin(__builtin_clear_padding)
#define CLEAR_PADDING(x) __builtin_clear_padding(x)
enum { KNOWS_PADDING = 1 };
#else
#define CLEAR_PADDING(x) (void)(x)
enum { KNOWS_PADDING = 0 };
#endif
/* The bytes of a struct that belong to a member are not 0. */
#define FULL(type) \
    static void full_##type(void *out) \
    { \
        type x; \
\
        memset(&x, 0xff, sizeof x); \
        CLEAR_PADDING(&x); \
        memcpy(out, &x, sizeof x); \
    }
FULL(plan_kernel)
FULL(plan_axis)
FULL(plan_slot)
FULL(plan_stage)
FULL(plan_pass)
FULL(plan_area)
FULL(plan_sort)
FULL(plan_runs)
FULL(plan_buckets)
FULL(plan_blocks)
FULL(plan_node)
FULL(plan_body)

static const struct {
    const char *name;
    size_t at, size;
    void (*full)(void *out);
    const span *left;
    size_t nleft;
} structs[] = {
#define STRUCT(field, type, left) \
    {#field, offsetof(example, field), sizeof(type), full_##type, \
     left,   SD_COUNTOF(left)}
    STRUCT(k, plan_kernel, kernel_left),
    STRUCT(axis[0], plan_axis, none_left),
    STRUCT(slot[0], plan_slot, slot_left),
    STRUCT(stage[0], plan_stage, none_left),
    STRUCT(pass[0], plan_pass, pass_left),
    STRUCT(area[0], plan_area, none_left),
    STRUCT(sort, plan_sort, sort_left),
    STRUCT(runs, plan_runs, none_left),
    STRUCT(buckets, plan_buckets, buckets_left),
    STRUCT(blocks, plan_blocks, blocks_left),
    STRUCT(node[1], plan_node, node_left),
    STRUCT(body, plan_body, body_left)};

static bool are_equal(const example *x, const example *y)
{
    return plan_kernel_equal(&x->k, &y->k) || plan_kernel_equal(&y->k, &x->k);
}

/* A member that somebody adds is one of these bytes: it is compared, or stands
 * in a list above. */
static void kernels_are_equal_only_in_every_byte(void **state)
{
    uint8_t full[sizeof(plan_kernel) + sizeof(plan_node)];
    sd_arena *a = sd_arena_create();
    example *x = make_example(a), *y;

    (void)state;
    if (!KNOWS_PADDING) {
        sd_arena_destroy(a);
        skip();
    }
    for (size_t s = 0; s < SD_COUNTOF(structs); s++) {
        assert_in_range(structs[s].size, 1, sizeof full);
        structs[s].full(full);
        for (size_t i = 0; i < structs[s].nleft; i++)
            memset(full + structs[s].left[i].at, 0, structs[s].left[i].size);
        for (size_t i = 0; i < structs[s].size; i++) {
            if (full[i] == 0)
                continue;
            y = make_example(a);
            ((uint8_t *)y)[structs[s].at + i] ^= 1;
            if (are_equal(x, y))
                fail_msg("equal, though not in byte %zu of %s", i,
                         structs[s].name);
        }
    }
    sd_arena_destroy(a);
}

static void kernels_are_equal_only_in_what_they_point_to(void **state)
{
    sd_arena *a = sd_arena_create();
    plan_px *p = plan_px_create(a);
    example *x = make_example(a), *y = make_example(a);

    (void)state;
    y->k.name = "another";
    y->slot[0].noalias = true; /* what a step says; no emitter reads it */
    assert_true(plan_kernel_equal(&x->k, &y->k));
    assert_int_equal(plan_kernel_hash(&x->k), plan_kernel_hash(&y->k));
#define DIFFERS(field, with) \
    do { \
        y = make_example(a); \
        y->field = with; \
        if (are_equal(x, y)) \
            fail_msg("equal, though not in " #field); \
    } while (0)
    DIFFERS(k.sort, NULL);
    DIFFERS(k.call, NULL);
    DIFFERS(k.runs, NULL);
    DIFFERS(k.buckets, NULL);
    DIFFERS(k.blocks, NULL);
    DIFFERS(call.fn, "g");
    DIFFERS(call.whole, true);
    DIFFERS(call.items, 4);
    DIFFERS(call.work, 8);
    DIFFERS(call.nint, 1);
    DIFFERS(call.at[1], 5);
    DIFFERS(nest[0], 1);
    DIFFERS(sort.keys, NULL);
    DIFFERS(down, true);
    DIFFERS(sort_in, -1);
    DIFFERS(sort_out, 2);
    DIFFERS(type, SD_F16);
    DIFFERS(sort.less, NULL);
    DIFFERS(arg[1], &y->node[1]);
    DIFFERS(node[0].off, plan_px_axis(p, 0, 8));
    DIFFERS(node[0].off, plan_px_axis(p, 1, 7));
    DIFFERS(node[0].off, plan_px_const(p, 1));
    DIFFERS(node[0].off, NULL);
    DIFFERS(node[1].off, plan_px_node(p, &y->node[2], 0, 9));
    DIFFERS(node[1].off, plan_px_node(p, &y->node[0], 0, 8));
    DIFFERS(node[2].off, plan_px_div(p, plan_px_axis(p, 0, 7), 2));
    DIFFERS(node[2].off, plan_px_mod(p, plan_px_axis(p, 0, 7), 3));
    DIFFERS(guard[0].lo, 1);
    DIFFERS(guard[0].hi, 6);
    DIFFERS(guard[0].e, plan_px_axis(p, 0, 6));
    DIFFERS(node[1].body, NULL);
    DIFFERS(bnode.dtype, SD_F16);
    DIFFERS(root[0], &y->node[2]);
    DIFFERS(in.u.compare.dir, HLO_LT);
    DIFFERS(in.u.compare.type, HLO_CMP_TOTAL);
    DIFFERS(blocks.node, &y->node[0]);
    DIFFERS(blocks.x, &y->node[0]);
    DIFFERS(blocks.y, &y->node[0]);
#undef DIFFERS
    sd_arena_destroy(a);
}

/* The two compares are kernels of their own: the reverses keep them from
 * sharing one. */
static void kernels_that_differ_in_one_attribute_stay_two(void **state)
{
    sd_arena *a = sd_arena_create();
    plan *p =
        plan_on(a,
                "HloModule m\n"
                "less { x = pred[] parameter(0) y = pred[] parameter(1)"
                " ROOT z = pred[] compare(x, y), direction=LT }\n"
                "ENTRY f {\n"
                "  x = f32[64] parameter(0)\n  y = f32[64] parameter(1)\n"
                "  a = pred[64] compare(x, y), direction=LT\n"
                "  s = pred[64] sort(a), dimensions={0}, to_apply=less\n"
                "  b = pred[64] compare(x, y), direction=LT, type=TOTALORDER\n"
                "  t = pred[64] sort(b), dimensions={0}, to_apply=less\n"
                "  c = pred[64] compare(x, y), direction=GT\n"
                "  u = pred[64] sort(c), dimensions={0}, to_apply=less\n"
                "  ROOT r = (pred[64], pred[64], pred[64]) tuple(s, t, u)\n}\n",
                "host:v3");
    int n = 0;

    (void)state;
    for (int i = 0; i < p->program->seq.n; i++)
        n += p->program->seq.at[i].kind == THUNK_KERNEL;
    assert_int_equal(n, 3 + 1); /* the compares are one kernel's outputs */
    assert_int_equal(p->nkernel, 1 + 1); /* three sorts are one kernel */
    plan_destroy(p);
    sd_arena_destroy(a);
}

static void places_of_one_hash_are_not_one_place(void **state)
{
    sd_arena *a = sd_arena_create();
    clusters cs = {.a = a, .places = sd_map_create(a)};
    plan_px *p = plan_px_create(a);
    const plan_expr *i = plan_px_axis(p, 0, 5), *j = plan_px_axis(p, 1, 5);
    const sd_shape *s = sd_shape_make(a, SD_S32, 1, (const int64_t[]){5});
    hlo_inst x = {.shape = s};
    hlo_inst *arg[] = {&x, &x}, user = {.narg = 2, .arg = arg}, other = user;
    plan_node *n = cluster_place_node(&cs, 7, &user, 0, &i);

    (void)state;
    assert_ptr_equal(cluster_place_node(&cs, 7, &user, 0, &i), n);
    assert_ptr_not_equal(cluster_place_node(&cs, 7, &user, 1, &i), n);
    assert_ptr_not_equal(cluster_place_node(&cs, 7, &other, 0, &i), n);
    assert_ptr_not_equal(cluster_place_node(&cs, 7, &user, 0, &j), n);
    assert_ptr_equal(cluster_place_node(&cs, 7, &user, 0, &i), n);
    sd_arena_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_equal_only_in_every_byte),
        cmocka_unit_test(kernels_are_equal_only_in_what_they_point_to),
        cmocka_unit_test(kernels_that_differ_in_one_attribute_stay_two),
        cmocka_unit_test(places_of_one_hash_are_not_one_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
