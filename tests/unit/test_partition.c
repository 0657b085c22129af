/* Custom calls that are partitioned in a way of their own: what a partitioner
 * is asked, and what its answer makes of the call.  Marks of values that are
 * cut alike. */
#include "passes.h"

#include "hlo_sharding.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "want_error.h"

typedef struct {
    const char *body;    /* HLO text of what a participant runs */
    const char *arg[2];  /* wanted shardings; NULL: as proposed */
    const char *result;
    char asked[512];     /* the proposal, by tiles */
} teller;

static bool knows(void *ctx, const char *target)
{
    (void)ctx;
    return strcmp(target, "mine") == 0;
}

static void note(teller *t, const hlo_sharding *s)
{
    size_t n = strlen(t->asked);
    sd_buf b = {0};

    hlo_sharding_tiles(&b, s);
    snprintf(t->asked + n, sizeof t->asked - n, "%.*s", (int)b.len, b.at);
    sd_buf_finish(&b);
}

static sd_status ask(void *ctx, const hlo_inst *in, const hlo_sharding **arg,
                     const hlo_sharding **result, hlo_module **out)
{
    teller *t = ctx;
    hlo_module *m = in->parent->module;
    sd_status st = NULL;

    for (int i = 0; i < in->narg; i++)
        note(t, arg[i]);
    note(t, result[0]);
    for (int i = 0; i < in->narg && i < 2 && !st; i++)
        if (t->arg[i])
            st = hlo_sharding_read(m, t->arg[i], in->arg[i]->shape->rank,
                                   &arg[i]);
    if (!st && t->result)
        st = hlo_sharding_read(m, t->result, in->shape->rank, &result[0]);
    return st ? st : hlo_parse(m->arena, t->body, strlen(t->body), out);
}

#define HEAD \
    "HloModule m, num_partitions=4, frontend_attributes={xla.sdy.meshes=\"{m " \
    "= #sdy.mesh<[\\\"x\\\"=2, \\\"y\\\"=2]>}\"}\nENTRY main {\n"
#define PARAM(name, shape, n, sharding) \
    name " = " shape " parameter(" n "), frontend_attributes={" \
         "xla.sdy.sharding=\"#sdy.sharding<@m, [" sharding "]>\"}\n"
#define CALL(shape, args, rule) \
    "ROOT r = " shape " custom-call(" args "), custom_call_target=\"mine\", " \
    "frontend_attributes={xla.sdy.sharding_rule=\"" rule "\"}\n}\n"
#define RULE(text) "#sdy.op_sharding_rule<" text ">"

static sd_status cut(teller *t, const char *text, hlo_module **out)
{
    hlo_partitioner by = {t, knows, ask};
    sd_arena *a = sd_arena_create();
    sd_status st;

    *t->asked = 0;
    want_success(hlo_parse(a, text, strlen(text), out));
    want_success(hlo_verify(*out));
    (*out)->partitioner = &by;
    st = hlo_spmd(*out, NULL, NULL);
    (*out)->partitioner = NULL;
    if (!st)
        want_success(hlo_verify(*out));
    return st;
}

static void end(hlo_module *m)
{
    sd_arena_destroy(m->arena);
}

#define PRODUCT \
    HEAD PARAM("a", "f32[8,4]", "0", "{\\\"x\\\"}, {\\\"y\\\"}") \
        PARAM("b", "f32[4,6]", "1", "{}, {}") \
            CALL("f32[8,6]", "a, b", \
                 RULE("([i, j], [j, k])->([i, k]) {i=8, j=4, k=6} " \
                      "reduction={j}, custom"))

static void operands_are_cut_by_the_rule(void **state)
{
    teller t = {.body = "HloModule b, num_partitions=4\nENTRY e {\n"
                        "a = f32[4,2] parameter(0)\n"
                        "b = f32[2,6] parameter(1)\n"
                        "ROOT r = f32[4,6] dot(a, b), "
                        "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                        "}\n"};
    hlo_module *m;

    (void)state;
    want_success(cut(&t, PRODUCT, &m));
    assert_string_equal(t.asked,
                        "{devices=[2,2]<=[4]}"
                        "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"
                        "{devices=[2,1,2]<=[4] last_tile_dim_replicate}");
    assert_int_equal(m->entry->param[0]->shape->dim[0], 4);
    end(m);
}

/* The answer may want other parts: they are moved. */
static void what_is_answered_counts(void **state)
{
    teller t = {.body = "HloModule b, num_partitions=4\nENTRY e {\n"
                        "a = f32[8,4] parameter(0)\n"
                        "b = f32[4,3] parameter(1)\n"
                        "ROOT r = f32[8,3] dot(a, b), "
                        "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                        "}\n",
                .arg = {"{replicated}", "#sdy.sharding<@m, [{}, {\"x\"}]>"},
                .result = "#sdy.sharding<@m, [{}, {\"x\"}]>"};
    hlo_module *m;

    (void)state;
    want_success(cut(&t, PRODUCT, &m));
    assert_int_equal(m->entry->root->shape->dim[1], 3);
    end(m);
    t.result = "#sdy.sharding<@m, [{\"x\"}, {}]>";
    want_refusal(cut(&t, PRODUCT, &m), SD_INVALID,
                 "result 0 of its partitioned form does not have the shape of "
                 "its part");
    end(m);
    t.arg[0] = NULL;
    want_refusal(cut(&t, PRODUCT, &m), SD_INVALID,
                 "operand 0 of its partitioned form");
    end(m);
    t.body = "HloModule b, num_partitions=4\nENTRY e {\n"
             "ROOT r = f32[8,3] parameter(0)\n}\n";
    want_refusal(cut(&t, PRODUCT, &m), SD_INVALID,
                 "operand 2 of its partitioned form");
    end(m);
}

/* Factors of one dimension; one that must stay whole ends the cut. */
static void dimensions_of_several_factors(void **state)
{
    teller t = {.body = "HloModule b, num_partitions=4\nENTRY e {\n"
                        "a = f32[4,2] parameter(0)\n"
                        "b = f32[8] parameter(1)\n"
                        "c = f32[8] reshape(a)\n"
                        "ROOT r = f32[8] add(b, c)\n}\n"};
    hlo_module *m;

    (void)state;
    want_success(
        cut(&t,
            HEAD PARAM("a", "f32[8,2]", "0", "{\\\"x\\\", \\\"y\\\"}, {}")
                PARAM("b", "f32[16]", "1", "{\\\"x\\\"}")
                    CALL("f32[16]", "a, b",
                         RULE("([ij, k], [ijk])->([ijk]) {i=2, j=4, "
                              "k=2} need_replication={j}, custom")),
            &m));
    assert_string_equal(t.asked,
                        "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"
                        "{devices=[2,2]<=[4] last_tile_dim_replicate}"
                        "{devices=[2,2]<=[4] last_tile_dim_replicate}");
    end(m);
}

static void rules_that_are_none(void **state)
{
    static const char *const rule[] = {
        RULE("([i])->([i]) {i=8}"),
        RULE("([i, j], [j, k])->([i, k]) {i=8, j=4, k=7}"),
        RULE("([i, j], [j, k])->([i, k]) {i=8, j=4, k=6} often={k}"),
        RULE("([i, j], [kk, l])->([i, l]) {i=8, j=4, k=2, l=6}"),
        RULE("([i, j], [j, k])->([i, z_90]) {i=8, j=4, k=6}"),
        RULE("([i, j], [j, k])->([i, z_9223372036854775807]) {i=8, j=4, k=6}"),
        RULE("([i, j], [j, k])->([i, k]) {i=8, j=4, 5=6}"),
        RULE("([i, j], [j, k])->([i, k]) {i=8, j=4, k=6} reduction={5}"),
        "i j, j k -> i k"};
    teller t = {.body = ""};
    char text[4096];
    hlo_module *m;

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(rule); i++) {
        snprintf(text, sizeof text, "%s%s%s" CALL("f32[8,6]", "a, b", "%s"),
                 HEAD, PARAM("a", "f32[8,4]", "0", "{\\\"x\\\"}, {}"),
                 PARAM("b", "f32[4,6]", "1", "{}, {}"), rule[i]);
        want_error(cut(&t, text, &m), SD_INVALID,
                   "it is not one of these 2 operands and 1 results", rule[i]);
        end(m);
    }
}

/* ---- values that are cut alike ---- */

#define MARK(name, x, id) \
    name " = f32[8,4] custom-call(" x "), " \
         "custom_call_target=\"sundog.sharding_group\", " \
         "custom_call_has_side_effect=true, frontend_attributes={" \
         "xla.sdy.sharding_group_id=\"" id "\"}\n"

static void the_finest_part_decides(void **state)
{
    teller t = {.body = ""};
    hlo_module *m;

    (void)state;
    want_success(cut(
        &t,
        HEAD PARAM("a", "f32[8,4]", "0", "{\\\"x\\\"}, {}") PARAM(
            "b", "f32[8,4]", "1",
            "{\\\"x\\\"}, {\\\"y\\\"}") PARAM("c", "f32[8,4]", "2", "{}, {}")
            MARK("d", "a", "0") MARK("e", "b", "0") MARK("f", "c", "0") MARK(
                "g", "c",
                "1") "ROOT r = (f32[8,4], f32[8,4], f32[8,4]) tuple(d, f, g)\n"
                     "}\n",
        &m));
    assert_int_equal(m->entry->root->shape->elem[0]->dim[1], 2);
    assert_int_equal(m->entry->root->shape->elem[1]->dim[0], 4);
    assert_int_equal(m->entry->root->shape->elem[1]->dim[1], 2);
    assert_int_equal(m->entry->root->shape->elem[2]->dim[0], 8);
    end(m);
}

/* ---- dimensions beyond 2^31 ---- */

#define LONG "3221225472" /* 3 * 2^30: the last part begins beyond 2^31 */
#define CUT  "devices=[4]<=[4]"

static const char *const long_programs[] = {
    "a = u8[" LONG "] parameter(0), sharding={replicated}\n"
    "ROOT r = u8[" LONG "] custom-call(a), "
    "custom_call_target=\"Sharding\", sharding={" CUT "}\n",
    /* of unequal parts */
    "a = u8[" LONG "] parameter(0), sharding={" CUT "}\n"
    "b = u8[3221225471] slice(a), slice={[1:" LONG "]}\n"
    "c = u8[] constant(0)\n"
    "ROOT r = u8[] reduce(b, c), dimensions={0}, to_apply=add\n",
    "a = u8[" LONG "] parameter(0), sharding={" CUT "}\n"
    "c = u8[] constant(1)\n"
    "ROOT r = u8[" LONG "] pad(a, c), padding=2_-2\n",
    "a = u8[" LONG "] parameter(0), sharding={" CUT "}\n"
    "i = s32[] parameter(1), sharding={replicated}\n"
    "ROOT r = u8[8] dynamic-slice(a, i), dynamic_slice_sizes={8}\n",
    "a = u8[" LONG "] parameter(0), sharding={" CUT "}\n"
    "i = u32[] parameter(1), sharding={replicated}\n"
    "u = u8[8] parameter(2), sharding={replicated}\n"
    "ROOT r = u8[" LONG "] dynamic-update-slice(a, u, i)\n",
    "a = u8[" LONG "] parameter(0), sharding={" CUT "}\n"
    "i = s64[] constant(2500000000)\n"
    "u = u8[1000000000] parameter(1), sharding={replicated}\n"
    "v = u8[700000000] slice(u), slice={[0:700000000]}\n"
    "ROOT r = u8[" LONG "] dynamic-update-slice(a, v, i)\n",
    "a = u8[" LONG "] parameter(0), sharding={" CUT "}\n"
    "i = s64[5,1] parameter(1), sharding={replicated}\n"
    "ROOT r = u8[5] gather(a, i), offset_dims={}, collapsed_slice_dims={0}, "
    "start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n",
    "a = u8[" LONG "] parameter(0), sharding={" CUT "}\n"
    "i = s32[5,1] parameter(1), sharding={replicated}\n"
    "u = u8[5] parameter(2), sharding={replicated}\n"
    "ROOT r = u8[" LONG "] scatter(a, i, u), update_window_dims={}, "
    "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1, to_apply=add\n",
    "a = s64[" LONG "] iota(), iota_dimension=0\n"
    "ROOT r = s64[" LONG "] custom-call(a), "
    "custom_call_target=\"Sharding\", sharding={" CUT "}\n",
};

/* Does in count what s32 does not hold? */
static bool counts_too_far(const hlo_inst *in)
{
    const hlo_inst *by = in->narg == 2 ? in->arg[1] : NULL;
    double v;

    if (!sd_shape_is_array(in->shape) || in->shape->dtype != SD_S32)
        return false;
    if (hlo_is_scalar_const(in, &v))
        return v < 0;
    if (in->op == HLO_MULTIPLY)
        return !hlo_is_scalar_const(by, &v) || v * 3 > INT32_MAX;
    return (in->op == HLO_IOTA || in->op == HLO_CONVERT) && in->shape->rank &&
           in->shape->dim[0] > 1000;
}

static void long_dimensions_are_counted_in_64_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(long_programs); i++) {
        teller t = {.body = ""};
        sd_buf b = {0};
        hlo_module *m;
        bool cut_at_all = false;

        sd_buf_fmt(&b,
                   "HloModule m, num_partitions=4\n"
                   "add { x = u8[] parameter(0) y = u8[] parameter(1) "
                   "ROOT z = u8[] add(x, y) }\nENTRY main {\n%s}\n",
                   long_programs[i]);
        sd_buf_u8(&b, 0);
        want_success(cut(&t, (const char *)b.at, &m));
        hlo_for_each_inst(in, m->entry) {
            if (counts_too_far(in)) {
                sd_buf text = {0};

                hlo_print(&text, m);
                printf("%s in\n%.*s", in->name, (int)text.len, text.at);
                fail();
            }
            cut_at_all |= sd_shape_is_array(in->shape) && in->shape->rank &&
                          in->shape->dim[0] == INT64_C(805306368);
        }
        assert_true(cut_at_all);
        sd_buf_finish(&b);
        end(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_are_cut_by_the_rule),
        cmocka_unit_test(what_is_answered_counts),
        cmocka_unit_test(dimensions_of_several_factors),
        cmocka_unit_test(rules_that_are_none),
        cmocka_unit_test(the_finest_part_decides),
        cmocka_unit_test(long_dimensions_are_counted_in_64_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
