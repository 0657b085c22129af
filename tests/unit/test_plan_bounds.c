/* What a program could reach: sums of many terms, kernels of many operands,
 * axes up to the last bit of a mask. */
#include "plan_cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan_made.h"

/* ---- expressions ---- */

static plan_node *some_nodes(sd_arena *a, int n)
{
    return sd_arena_array(a, plan_node, n);
}

static void sums_have_as_many_terms_as_they_need(void **state)
{
    enum { N = 300 };
    sd_arena *a = sd_arena_create();
    plan_px *p = plan_px_create(a);
    plan_node *node = some_nodes(a, N);
    const plan_expr *e = plan_px_axis(p, 0, 9), *x;
    int64_t stride;

    (void)state;
    for (int i = 0; i < N; i++) {
        node[i].varies = i % 2 ? 2 : 0;
        e = plan_px_mad(p, e, 3 * (i + 1), plan_px_node(p, &node[i], 0, 5));
    }
    assert_int_equal(e->hi, 8 + 5ll * 3 * N * (N + 1) / 2);
    assert_true(plan_expr_stride(e, 0, &stride));
    assert_int_equal(stride, 1);
    assert_false(plan_expr_stride(e, 1, &stride));
    /* all but the axis is divisible by three */
    x = plan_px_div(p, e, 3);
    assert_ptr_equal(plan_px_mad(p, plan_px_mod(p, e, 3), 3, x), e);
    for (int i = 0; i < N; i++)
        e = plan_px_mad(p, e, -3 * (i + 1), plan_px_node(p, &node[i], 0, 5));
    assert_ptr_equal(e, plan_px_axis(p, 0, 9));
    sd_arena_destroy(a);
}

/* Each link refers twice to the one before it: the time must not double. */
static void quotients_of_quotients_are_made_once(void **state)
{
    sd_arena *a = sd_arena_create();
    plan_px *p = plan_px_create(a);
    const plan_expr *index[2] = {plan_px_axis(p, 0, 4), plan_px_axis(p, 1, 9)};
    static const int64_t dim[][2] = {{6, 6}, {4, 9}, {3, 12}, {9, 4}, {2, 18}};
    int64_t now[2] = {4, 9};

    (void)state;
    for (int i = 0; i < 200; i++) { /* transposed, then seen as other sizes */
        const plan_expr *t[2] = {index[1], index[0]};
        int64_t flipped[2] = {now[1], now[0]};

        plan_px_delinear(p, plan_px_linear(p, 2, flipped, t), 2, dim[i % 5],
                         index);
        memcpy(now, dim[i % 5], sizeof now);
        assert_in_range(index[0]->hi, 0, now[0] - 1);
    }
    assert_int_equal(index[0]->size, INT32_MAX); /* as a tree it is huge */
    sd_arena_destroy(a);
}

/* ---- programs ---- */

static void dims(sd_buf *b, int rank, int64_t n)
{
    for (int d = 0; d < rank; d++)
        sd_buf_fmt(b, "%s%" PRId64, d ? "," : "", n);
}

/* Plans it for a CPU and a GPU; the most slots and nodes that a kernel has. */
static void plan_both(const char *text, int *slots, int *nodes)
{
    static const char *const device[] = {"host:v3", "cl:pvc"};

    *slots = *nodes = 0;
    for (int i = 0; i < 2; i++) {
        sd_arena *a = sd_arena_create();
        plan *p = plan_on(a, text, device[i]);

        for (int k = 0; k < p->nkernel; k++) {
            *slots = SD_MAX(*slots, p->kernel[k]->nslot);
            *nodes = SD_MAX(*nodes, p->kernel[k]->nnode);
        }
        plan_destroy(p);
        sd_arena_destroy(a);
    }
}

/* n slices, all starts distinct; the pads give each start room. */
static char *slices(int rank, int64_t extent, int n)
{
    sd_buf b = {0};

    sd_buf_str(&b,
               "HloModule m\nENTRY f {\n  z = u8[] constant(0)\n  y0 = u8[");
    dims(&b, rank, extent);
    sd_buf_str(&b, "] parameter(0)\n");
    for (int i = 0; i < n; i++) {
        for (int d = 0; d < rank; d++)
            sd_buf_fmt(&b, "  s%d_%d = s32[] parameter(%d)\n", i, d,
                       1 + i * rank + d);
        sd_buf_fmt(&b, "  p%d = u8[", i);
        dims(&b, rank, extent + 1);
        sd_buf_fmt(&b, "] pad(y%d, z), padding=", i);
        for (int d = 0; d < rank; d++)
            sd_buf_str(&b, d ? "x0_1" : "0_1");
        sd_buf_fmt(&b, "\n  %sy%d = u8[", i == n - 1 ? "ROOT " : "", i + 1);
        dims(&b, rank, extent);
        sd_buf_fmt(&b, "] dynamic-slice(p%d", i);
        for (int d = 0; d < rank; d++)
            sd_buf_fmt(&b, ", s%d_%d", i, d);
        sd_buf_str(&b, "), dynamic_slice_sizes={");
        dims(&b, rank, extent);
        sd_buf_str(&b, "}\n");
    }
    sd_buf_str(&b, "}\n");
    sd_buf_u8(&b, 0);
    return b.at;
}

static void chains_of_slices_are_cut_into_kernels(void **state)
{
    static const int shape[][3] = {
        {15, 7, 7}, {15, 2, 32}, {1, 100, 300}, {8, 5, 40}, {32, 1, 9}};
    int slots, nodes;

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(shape); i++) {
        char *text = slices(shape[i][0], shape[i][1], shape[i][2]);

        plan_both(text, &slots, &nodes);
        assert_in_range(slots, 2, 64 + 16);
        assert_in_range(nodes, 2, 4000);
        free(text);
    }
}

/* Seen here: a kernel with no room left did not take the arrays of one number
 * that it reads, and each became a kernel and memory of its own. */
static void full_kernels_take_numbers(void **state)
{
    enum { LINKS = 470 }; /* with their numbers more than a kernel's members */
    sd_arena *a = sd_arena_create();
    sd_buf b = {0};
    plan *p;

    (void)state;
    sd_buf_str(&b, "HloModule m\nENTRY f {\n  x0 = f32[4096] parameter(0)\n");
    for (int i = 0; i < LINKS; i++)
        sd_buf_fmt(&b,
                   "  c%d = f32[] constant(%d.5)\n"
                   "  b%d = f32[4096] broadcast(c%d), dimensions={}\n",
                   i, i, i, i);
    for (int i = 0; i < LINKS; i++)
        sd_buf_fmt(&b, "  %sx%d = f32[4096] %s(x%d, b%d)\n",
                   i == LINKS - 1 ? "ROOT " : "", i + 1,
                   i % 2 ? "add" : "divide", i, i);
    sd_buf_str(&b, "}\n");
    sd_buf_u8(&b, 0);
    p = plan_on(a, b.at, "host:v3");
    assert_int_equal(p->nkernel, 1);
    assert_int_equal(p->kernel[0]->nslot, 2);
    plan_destroy(p);
    sd_buf_finish(&b);
    sd_arena_destroy(a);
}

/* Seen here: Intel's compiler for CPUs took minutes for a kernel of 120. */
static void kernels_have_few_sums_of_rows(void **state)
{
    sd_arena *a = sd_arena_create();
    sd_buf b = {0};
    plan *p;

    (void)state;
    sd_buf_str(&b, "HloModule m\n"
                   "add { x = f32[] parameter(0) y = f32[] parameter(1)"
                   " ROOT r = f32[] add(x, y) }\n"
                   "ENTRY f {\n  z = f32[] constant(0)\n"
                   "  x0 = f32[64,128] parameter(0)\n");
    for (int i = 0; i < 100; i++)
        sd_buf_fmt(&b,
                   "  s%d = f32[64] reduce(x%d, z), dimensions={1}, "
                   "to_apply=add\n"
                   "  b%d = f32[64,128] broadcast(s%d), dimensions={0}\n"
                   "  %sx%d = f32[64,128] subtract(x%d, b%d)\n",
                   i, i, i, i, i == 99 ? "ROOT " : "", i + 1, i, i);
    sd_buf_str(&b, "}\n");
    sd_buf_u8(&b, 0);
    p = plan_on(a, b.at, "cl:cpu");
    for (int i = 0; i < p->nkernel; i++) {
        int sums = 0;

        plan_for_each_node(n, p->kernel[i])
            sums += n->kind == PN_REDUCE;
        assert_in_range(sums, 1, 30);
    }
    plan_destroy(p);
    sd_buf_finish(&b);
    sd_arena_destroy(a);
}

/* More axes than a mask has bits, if those of extent 1 are counted. */
static void windows_of_rank_32_have_their_axes(void **state)
{
    sd_buf b = {0};
    int slots, nodes;

    (void)state;
    sd_buf_str(&b, "HloModule m\n"
                   "add { x = u8[] parameter(0) y = u8[] parameter(1)"
                   " ROOT z = u8[] add(x, y) }\n"
                   "ENTRY f {\n  z = u8[] constant(0)\n  x = u8[");
    dims(&b, 32, 2);
    sd_buf_str(&b, "] parameter(0)\n  e = u8[");
    dims(&b, 32, 2);
    sd_buf_str(&b, "] negate(x)\n  ROOT r = u8[");
    dims(&b, 32, 1);
    sd_buf_str(&b, "] reduce-window(e, z), window={size=");
    for (int d = 0; d < 32; d++)
        sd_buf_str(&b, d ? "x2" : "2");
    sd_buf_str(&b, "}, to_apply=add\n}\n");
    sd_buf_u8(&b, 0);
    plan_both(b.at, &slots, &nodes);
    assert_in_range(slots, 2, 4);
    sd_buf_finish(&b);
}

/* No operand of the concatenate is ever read. */
static void windows_in_padding_alone_read_nothing(void **state)
{
    int slots, nodes;

    (void)state;
    plan_both("HloModule m\n"
              "add { x = f32[] parameter(0) y = f32[] parameter(1)"
              " ROOT z = f32[] add(x, y) }\n"
              "ENTRY f {\n"
              "  x = f32[3] parameter(0)\n  y = f32[4] parameter(1)\n"
              "  z = f32[] constant(0)\n"
              "  c = f32[7] concatenate(x, y), dimensions={0}\n"
              "  ROOT r = f32[2] reduce-window(c, z),"
              " window={size=2 pad=9_-13}, to_apply=add\n}\n",
              &slots, &nodes);
    assert_in_range(slots, 1, 3);
}

/* ---- programs of many equal parts ---- */

static int kernels_of(void (*write)(sd_buf *b, int n), int n)
{
    sd_arena *a = sd_arena_create();
    sd_buf b = {0};
    plan *p;
    int count;

    write(&b, n);
    sd_buf_u8(&b, 0);
    p = plan_on(a, b.at, "host:v3");
    count = p->nkernel;
    plan_destroy(p);
    sd_buf_finish(&b);
    sd_arena_destroy(a);
    return count;
}

/* x = tanh(x w + b), and a sum of squares; too small for a library. */
static void write_layers(sd_buf *b, int n)
{
    sd_buf_str(b, "HloModule layers\n" ADD
                  "ENTRY e { x0 = f32[8,16]{1,0} parameter(0)\n");
    for (int i = 0; i < n; i++)
        sd_buf_fmt(b,
                   "w%d = f32[16,16]{1,0} parameter(%d)\n"
                   "b%d = f32[16]{0} parameter(%d)\n",
                   i, 2 * i + 1, i, 2 * i + 2);
    for (int i = 0; i < n; i++)
        sd_buf_fmt(b,
                   "d%d = f32[8,16]{1,0} dot(x%d, w%d), "
                   "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                   "v%d = f32[8,16]{1,0} broadcast(b%d), dimensions={1}\n"
                   "a%d = f32[8,16]{1,0} add(d%d, v%d)\n"
                   "x%d = f32[8,16]{1,0} tanh(a%d)\n",
                   i, i, i, i, i, i, i, i, i + 1, i);
    sd_buf_fmt(b,
               "q = f32[8,16]{1,0} multiply(x%d, x%d)\n"
               "z = f32[] constant(0)\n"
               "ROOT r = f32[8]{0} reduce(q, z), dimensions={1}, "
               "to_apply=add }\n",
               n, n);
}

/* A step of momentum for n parameters of one shape. */
static void write_step(sd_buf *b, int n)
{
    sd_buf_str(b, "HloModule step\nENTRY e {\n"
                  "k = f32[] constant(0.9)\n"
                  "f = f32[40,30]{1,0} broadcast(k), dimensions={}\n");
    for (int i = 0; i < n; i++)
        sd_buf_fmt(b,
                   "p%d = f32[40,30]{1,0} parameter(%d)\n"
                   "g%d = f32[40,30]{1,0} parameter(%d)\n"
                   "v%d = f32[40,30]{1,0} parameter(%d)\n"
                   "w%d = f32[40,30]{1,0} multiply(v%d, f)\n"
                   "n%d = f32[40,30]{1,0} add(w%d, g%d)\n"
                   "q%d = f32[40,30]{1,0} subtract(p%d, n%d)\n",
                   i, 3 * i, i, 3 * i + 1, i, 3 * i + 2, i, i, i, i, i, i, i,
                   i);
    sd_buf_str(b, "ROOT r = (");
    for (int i = 0; i < 2 * n; i++)
        sd_buf_fmt(b, "%sf32[40,30]{1,0}", i ? ", " : "");
    sd_buf_str(b, ") tuple(");
    for (int i = 0; i < n; i++)
        sd_buf_fmt(b, "%sn%d, q%d", i ? ", " : "", i, i);
    sd_buf_str(b, ") }\n");
}

static void equal_parts_share_their_kernels(void **state)
{
    (void)state;
    assert_int_equal(kernels_of(write_layers, 64), kernels_of(write_layers, 4));
    /* eight parameters a kernel, six are left over */
    assert_int_equal(kernels_of(write_step, 150), kernels_of(write_step, 14));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_as_many_terms_as_they_need),
        cmocka_unit_test(quotients_of_quotients_are_made_once),
        cmocka_unit_test(chains_of_slices_are_cut_into_kernels),
        cmocka_unit_test(full_kernels_take_numbers),
        cmocka_unit_test(kernels_have_few_sums_of_rows),
        cmocka_unit_test(windows_of_rank_32_have_their_axes),
        cmocka_unit_test(windows_in_padding_alone_read_nothing),
        cmocka_unit_test(equal_parts_share_their_kernels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
