/* Modules made by hand in protobuf: older and newer forms that XLA writes are
 * read, and whatever is wrong is named. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "hlo_proto.h"
#include "want_error.h"

/* A module of f32[2] instructions, made by hand. */
typedef struct {
    sd_arena *a;
    sd_buf comps, insts;
    int64_t shape[1];
    pb_shape f32_2;
} maker;

static void start(maker *k)
{
    *k = (maker){.a = sd_arena_create(), .shape = {2}};
    k->f32_2 = (pb_shape){.element_type = 11, .dims = {k->shape, 1, 0}};
}

static void put_inst(maker *k, pb_inst p)
{
    size_t at = pb_open(&k->insts, PB_TAG_comp_inst);

    if (!p.shape)
        p.shape = &k->f32_2;
    pb_write(&k->insts, &pb_inst_table, &p);
    pb_close(&k->insts, at);
}

static void put_comp(maker *k, pb_comp p)
{
    size_t at = pb_open(&k->comps, PB_TAG_module_comp);

    p.name = pb_str("c");
    pb_write(&k->comps, &pb_comp_table, &p);
    sd_buf_add(&k->comps, k->insts.at, k->insts.len);
    pb_close(&k->comps, at);
    sd_buf_finish(&k->insts);
}

static sd_status finish(maker *k, pb_module p)
{
    sd_buf b = {0};
    hlo_module *m = NULL;
    sd_status st;

    p.name = pb_str("made");
    pb_write(&b, &pb_module_table, &p);
    sd_buf_add(&b, k->comps.at, k->comps.len);
    st = hlo_proto_read(k->a, (sd_bytes){(uint8_t *)b.at, b.len}, false, &m);
    sd_buf_finish(&b);
    sd_buf_finish(&k->comps);
    sd_arena_destroy(k->a);
    return st;
}

#define STR(s) {(const uint8_t *)(s), sizeof(s) - 1}
#define INTS(...) \
    {(int64_t[]){__VA_ARGS__}, \
     (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), 0}

/* p: parameter 0 of id 1; then one instruction, of id 2, which is the root. */
static sd_status with(pb_inst p)
{
    maker k;

    start(&k);
    put_inst(&k,
             (pb_inst){.name = STR("p"), .opcode = STR("parameter"), .id = 1});
    if (!p.id)
        p.id = 2;
    p.name = pb_str("culprit");
    put_inst(&k, p);
    put_comp(&k, (pb_comp){.id = 5, .root = 2});
    return finish(&k, (pb_module){.entry_id = 5});
}

/* Newer XLA: ids with the computation's number above, operands without. */
static void ids_are_local(void **state)
{
    const int64_t high = INT64_C(5) << 32;

    (void)state;
    for (int i = 0; i < 8; i++) {
        maker k;
        sd_status st;

        start(&k);
        put_inst(&k, (pb_inst){.name = STR("p"),
                               .opcode = STR("parameter"),
                               .id = (i & 1 ? high : 0) + 1});
        put_inst(&k, (pb_inst){.name = STR("n"),
                               .opcode = STR("negate"),
                               .operands = INTS((i & 2 ? high : 0) + 1),
                               .id = (i & 1 ? high : 0) + 2});
        put_comp(&k, (pb_comp){.id = 5, .root = (i & 4 ? high : 0) + 2});
        st = finish(&k, (pb_module){.entry_id = 5});
        if (st)
            fail_msg("%d: %s", i, st->message);
    }
}

static void old_starts_in_protobuf(void **state)
{
    int64_t one[] = {1};
    pb_shape starts = {.element_type = 4, .dims = {one, 1, 0}};
    maker k;
    sd_status st;

    (void)state;
    start(&k);
    put_inst(&k,
             (pb_inst){.name = STR("p"), .opcode = STR("parameter"), .id = 1});
    put_inst(&k, (pb_inst){.name = STR("i"),
                           .opcode = STR("parameter"),
                           .shape = &starts,
                           .parameter_number = 1,
                           .id = 2});
    put_inst(&k, (pb_inst){.name = STR("d"),
                           .opcode = STR("dynamic-slice"),
                           .operands = INTS(1, 2),
                           .slice_sizes = INTS(2),
                           .id = 3});
    put_comp(&k, (pb_comp){.id = 5, .root = 3});
    st = finish(&k, (pb_module){.entry_id = 5});
    if (st)
        fail_msg("%s", st->message);
}

static void mistakes_are_named(void **state)
{
    pb_shape token = {.element_type = 17}, two[2] = {token, token};
    pb_shape pair = {.element_type = 13, .elem = {two, 2, 0}};
    const struct {
        sd_code code;
        pb_inst p;
        const char *message;
    } of[] = {
        {SD_INVALID,
         {.opcode = STR("negate"), .operands = INTS(7)},
         "module made: computation c: negate culprit: operand 0, id 7, does "
         "not stand before it"},
        {SD_INVALID,
         {.opcode = STR("add"), .operands = INTS(1, 2)},
         "operand 1, id 2, does not stand before it"}, /* a cycle */
        {SD_INVALID,
         {.opcode = STR("negate"), .operands = INTS(1), .id = 1},
         "its id 1 is another's"},
        {SD_INVALID,
         {.opcode = STR("neg\xffte"), .operands = INTS(1)},
         "neg?te culprit: \"neg?te\" is no op of HLO"},
        {SD_UNIMPLEMENTED,
         {.opcode = STR("copy-start"), .operands = INTS(1)},
         "XLA's op copy-start"},
        {SD_INVALID,
         {.opcode = STR("parameter")},
         "parameter number 0 is used already"},
        {SD_INVALID,
         {.opcode = STR("parameter"), .parameter_number = INT64_C(1) << 40},
         "parameter number 1099511627776"},
        {SD_INVALID,
         {.opcode = STR("parameter"), .parameter_number = -1},
         "parameter number -1"},
        {SD_INVALID, {.opcode = STR("constant")}, "elements were left out"},
        {SD_INVALID,
         {.opcode = STR("constant"), .literal = STR("\x42\x04\0\0\0\0")},
         "a literal of 4 bytes for 2 elements of f32"},
        {SD_INVALID,
         {.opcode = STR("slice"), .operands = INTS(1)},
         "0 slice dimensions for its operand"},
        {SD_INVALID,
         {.opcode = STR("dot"), .operands = INTS(1, 1)},
         "it has no dot_dimension_numbers"},
        {SD_INVALID,
         {.opcode = STR("gather"), .operands = INTS(1, 1)},
         "it has no gather_dimension_numbers"},
        {SD_INVALID,
         {.opcode = STR("reduce"), .operands = INTS(1, 1)},
         "reduce culprit"},
        {SD_INVALID,
         {.opcode = STR("call"),
          .operands = INTS(1),
          .comps = INTS(5)}, /* itself */
         "it calls computation 5, which does not stand before its own"},
        {SD_INVALID,
         {.opcode = STR("negate"), .operands = INTS(1), .comps = INTS(5)},
         "it calls a computation, which no negate does"},
        {SD_INVALID,
         {.opcode = STR("compare"),
          .operands = INTS(1, 1),
          .compare_dir = STR("XX")},
         "direction \"XX\" is none of XLA's"},
        {SD_INVALID,
         {.opcode = STR("custom-call"), .operands = INTS(1)},
         "it has no custom_call_target"},
        {SD_INVALID,
         {.opcode = STR("negate"),
          .operands = INTS(1),
          .shape = &(pb_shape){.element_type = 99}},
         "element type 99 is none of XLA's"},
        {SD_UNIMPLEMENTED,
         {.opcode = STR("negate"),
          .operands = INTS(1),
          .shape = &(pb_shape){.element_type = 11,
                               .dims = INTS(2),
                               .dynamic = INTS(1)}},
         "dimension 0 is only bounded (<=2)"},
        {SD_INVALID,
         {.opcode = STR("negate"),
          .operands = INTS(1),
          .shape = &(pb_shape){.element_type = 11,
                               .dims = INTS(2),
                               .layout = &(pb_layout){INTS(3), 0}}},
         "a layout that names dimension 3 twice or out of range"},
        {SD_INVALID,
         {.opcode = STR("negate"),
          .operands = INTS(1),
          .shape = &(pb_shape){.element_type = 11, .dims = INTS(3)}},
         "negate culprit"},
        {SD_INVALID,
         {.opcode = STR("constant"), .shape = &token, .literal = STR("\x0a\0")},
         "a constant of a token"},
        {SD_INVALID,
         {.opcode = STR("constant"), .shape = &pair, .literal = STR("\x52\0")},
         "a literal of 1 elements for a tuple of 2, or one nested too deep"},
        {SD_INVALID,
         {.opcode = STR("constant"),
          .shape = &(pb_shape){.element_type = 4, .dims = INTS(1)},
          .literal = STR("\x22\x02\1\2")},
         "literal: expected no more elements than the shape has at offset 1"},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(of); i++)
        want_error(with(of[i].p), of[i].code, of[i].message,
                   (const char *)of[i].p.opcode.at);
}

static void mistakes_of_attributes_are_named(void **state)
{
    const struct {
        pb_inst p;
        const char *message;
    } of[] = {
        {{.opcode = STR("fft"), .operands = INTS(1), .fft_type = 4},
         "FFT type 4 is none of XLA's"},
        {{.opcode = STR("rng"), .operands = INTS(1, 1), .distribution = 3},
         "distribution 3 is none of XLA's"},
        {{.opcode = STR("rng-bit-generator"),
          .operands = INTS(1),
          .rng_algorithm = 9},
         "algorithm 9 is none of XLA's"},
        {{.opcode = STR("reduce-precision"),
          .operands = INTS(1),
          .exponent_bits = -1},
         "exponent_bits -1 is none of XLA's"},
        {{.opcode = STR("reduce-precision"),
          .operands = INTS(1),
          .exponent_bits = 5,
          .mantissa_bits = -1},
         "mantissa_bits -1 is none of XLA's"},
        {{.opcode = STR("dot"),
          .operands = INTS(1, 1),
          .dot = &(pb_dot){0},
          .precision = &(pb_precision){.operand = INTS(3)}},
         "precision 3 is none of XLA's"},
        {{.opcode = STR("dot"),
          .operands = INTS(1, 1),
          .dot = &(pb_dot){0},
          .precision = &(pb_precision){.algorithm = 99}},
         "dot algorithm 99 is none of XLA's"},
        {{.opcode = STR("triangular-solve"),
          .operands = INTS(1, 1),
          .triangular = &(pb_triangular){.trans = 4}},
         "transpose 4 is none of XLA's"},
        {{.opcode = STR("triangular-solve"), .operands = INTS(1, 1)},
         "it has no triangular_solve_options"},
        {{.opcode = STR("convolution"), .operands = INTS(1, 1)},
         "it has no convolution_dimension_numbers"},
        {{.opcode = STR("convolution"),
          .operands = INTS(1, 1),
          .conv = &(pb_conv){.in_spatial = INTS(2)}},
         "a window of 0 dimensions for 1 spatial ones"},
        {{.opcode = STR("scatter"), .operands = INTS(1, 1, 1)},
         "it has no scatter_dimension_numbers"},
        {{.opcode = STR("custom-call"),
          .operands = INTS(1),
          .target = STR("t"),
          .api_version = 5},
         "custom call API version 5 is none of XLA's"},
        {{.opcode = STR("custom-call"),
          .operands = INTS(1),
          .target = STR("t"),
          .constrain_layout = 1},
         "layouts of 0 operands for 1"},
        {{.opcode = STR("custom-call"),
          .operands = INTS(1),
          .target = STR("t"),
          .alias = {&(pb_custom_alias){.operand = 1}, 1, 0}},
         "alias 0 is of a part that is not there"},
        {{.opcode = STR("all-gather"),
          .operands = INTS(1),
          .iota_groups =
              &(pb_iota_groups){.ngroup = 3, .group_size = 2, .dims = INTS(4)}},
         "3 replica groups of 2 that do not share out the devices"},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(of); i++)
        want_error(with(of[i].p), SD_INVALID, of[i].message,
                   (const char *)of[i].p.opcode.at);
    want_error(
        with((pb_inst){.opcode = STR("topk"), .operands = INTS(1), .k = 1}),
        SD_UNIMPLEMENTED, "the smallest elements", "topk");
}

/* Filling groups up must not cost more than reading them. */
static void groups_stay_small(void **state)
{
    enum { N = 1025 };
    static int64_t id[N];
    static pb_group group[N];

    (void)state;
    group[0].ids = (pb_ints){id, N, 0};
    want_error(with((pb_inst){.opcode = STR("all-gather"),
                              .operands = INTS(1),
                              .groups = {group, N, 0}}),
               SD_INVALID, "1025 replica groups of up to 1025", "groups");
}

static void modules_are_checked(void **state)
{
    pb_shape deep[100] = {{0}};
    maker k;

    (void)state;
    start(&k);
    put_comp(&k, (pb_comp){.id = 1});
    want_error(finish(&k, (pb_module){.entry_id = 1}), SD_INVALID,
               "computation c: root, id 0, is not in it", "empty");
    start(&k);
    want_error(finish(&k, (pb_module){.entry_id = 3}), SD_INVALID,
               "no computation has the entry's id 3", "no entry");
    for (int i = 0; i < 2; i++) {
        if (!i)
            start(&k);
        put_inst(&k, (pb_inst){.name = STR("p"), .opcode = STR("parameter")});
        put_comp(&k, (pb_comp){.id = 4});
    }
    want_error(finish(&k, (pb_module){.entry_id = 4}), SD_INVALID,
               "its id 4 is another's", "twice");
    start(&k);
    put_inst(&k, (pb_inst){.name = STR("p"),
                           .opcode = STR("parameter"),
                           .parameter_number = 1});
    put_inst(&k, (pb_inst){.name = STR("q"),
                           .opcode = STR("iota"),
                           .id = 1,
                           .dims = INTS(0)});
    put_comp(&k, (pb_comp){.id = 4});
    want_error(finish(&k, (pb_module){.entry_id = 4}), SD_INVALID,
               "parameter 0 is missing", "gap");
    start(&k);
    for (int i = 0; i < 100; i++) {
        deep[i].element_type = 13;
        deep[i].elem.at = i < 99 ? &deep[i + 1] : NULL;
        deep[i].elem.n = i < 99;
    }
    put_inst(&k, (pb_inst){.opcode = STR("parameter"), .shape = deep});
    put_comp(&k, (pb_comp){.id = 4});
    want_error(finish(&k, (pb_module){.entry_id = 4}), SD_INVALID,
               "messages nested less deep", "deep");
}

/* What a module says of its entry, which has one parameter and one result. */
static void heads_are_checked(void **state)
{
    const struct {
        sd_code code;
        pb_module m;
        const char *message;
    } of[] = {
        {SD_INVALID,
         {.program_shape = &(pb_program_shape){.result = NULL}},
         "the program's shape is not the entry's"},
        {SD_UNIMPLEMENTED,
         {.alias =
              &(pb_alias){{&(pb_alias_entry){.param_index = INTS(1)}, 1, 0}}},
         "input_output_alias inside nested tuples"},
        {SD_UNIMPLEMENTED,
         {.donor =
              &(pb_donor){{&(pb_donor_entry){.param_index = INTS(1)}, 1, 0}}},
         "buffer_donor inside a tuple"},
    };
    sd_arena *a = sd_arena_create();
    sd_buf b = {0};
    hlo_module *m;

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(of); i++) {
        pb_module p = of[i].m;
        maker k;

        start(&k);
        put_inst(&k, (pb_inst){.opcode = STR("parameter"), .id = 1});
        put_comp(&k, (pb_comp){.id = 5, .root = 1});
        p.entry_id = 5;
        want_error(finish(&k, p), of[i].code, of[i].message, "head");
    }
    pb_write(&b, &pb_with_config_table,
             &(pb_with_config){.config = &(pb_config){.nreplica = -1}});
    want_error(hlo_proto_read(a, (sd_bytes){(uint8_t *)b.at, b.len}, true, &m),
               SD_INVALID, "-1 replicas and 0 partitions", "config");
    want_error(hlo_proto_read(a,
                              (sd_bytes){(uint8_t *)b.at, (size_t)INT_MAX + 1},
                              false, &m),
               SD_INVALID, "2147483648 bytes of protobuf, over 2 GiB", "long");
    sd_buf_finish(&b);
    sd_arena_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_local),
        cmocka_unit_test(old_starts_in_protobuf),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(mistakes_of_attributes_are_named),
        cmocka_unit_test(groups_stay_small),
        cmocka_unit_test(modules_are_checked),
        cmocka_unit_test(heads_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
