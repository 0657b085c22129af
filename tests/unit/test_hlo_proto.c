/* HLO's outer forms: what XLA writes as text, protobuf there and back, and
 * broken protobuf, which must name what is wrong. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "hlo_pb.h"

static const char *every_op_file;

static hlo_module *parse(sd_arena *a, const char *text, size_t len)
{
    hlo_module *m = NULL;
    sd_status st = hlo_parse(a, text, len, &m);

    if (st || (st = hlo_verify(m)))
        fail_msg("%s\n%.*s", st->message, (int)len, text);
    return m;
}

static char *print(sd_arena *a, const hlo_module *m)
{
    sd_buf b = {0};
    char *s;

    hlo_print(&b, m);
    s = sd_arena_str(a, b.at, b.len);
    sd_buf_finish(&b);
    return s;
}

static void want_error(sd_status st, sd_code code, const char *text,
                       const char *what)
{
    if (!st || st->code != code || !strstr(st->message, text))
        fail_msg("%s\ngives %d \"%s\", not %d \"%s\"", what,
                 st ? (int)st->code : 0, st ? st->message : "", (int)code,
                 text);
    sd_status_free(st);
}

/* ---- text as XLA writes it ---- */

static void xla_writes_it_so(void **state)
{
    static const char *const of[][2] = {
        /* layouts of other devices, and memories */
        {"HloModule m, entry_computation_layout={(f32[8,128]{1,0:T(8,128)(2,1)"
         "E(4)S(5)}, f32[]{:S(5)})->(f32[8,128]{0,1:T(8,128)}, /*index=1*/"
         "f32[]{:S(5)})}, is_scheduled=true\n"
         "ENTRY e { p = f32[8,128]{1,0:T(8,128)} parameter(0) q = f32[]{:T(128)"
         "} parameter(1) ROOT t = (f32[8,128]{1,0:T(8,128)}, f32[]) tuple(p, q)"
         " }",
         "{(f32[8,128]{1,0:S(5)}, f32[]{:S(5)})->(f32[8,128]{1,0}, "
         "f32[]{:S(5)})}"},
        /* a computation in the place of its name, as canonical text has it */
        {"HloModule m\nENTRY e { p = f32[4] parameter(0) z = f32[] constant(0) "
         "ROOT r = f32[] reduce(f32[4]{0} p, f32[] z), dimensions={0}, "
         "to_apply=\n  {\n    p = f32[] parameter(0)\n    q = f32[] "
         "parameter(1)\n    ROOT z = f32[] add(f32[] p, f32[] q)\n  } }",
         "dimensions={0}, to_apply=%region"},
        {"ENTRY e { p = pred[] parameter(0) x = f32[] parameter(1) ROOT c = "
         "f32[] conditional(p, x, x), branch_computations={{ a = f32[] "
         "parameter(0) ROOT b = f32[] negate(a) }, { a = f32[] parameter(0) "
         "ROOT b = f32[] abs(a) }} }",
         "true_computation=%region, false_computation=%region.1"},
        /* a tuple's literal */
        {"ENTRY e { ROOT c = (f32[2]{0}, (s32[], pred[1]{0})) constant(({1, 2},"
         " (3, {true}))) }",
         "ROOT %c = (f32[2]{0}, (s32[], pred[1]{0})) tuple(%c.0, %c.1)"},
        /* where an instruction comes from, by tables */
        {"HloModule m\n\nFileNames\n1 \"a.py\"\n2 \"dir/b.py\"\n\n"
         "FunctionNames\n1 \"f\"\n\nFileLocations\n1 {file_name_id=2 "
         "function_name_id=1 line=40 end_line=41 column=2 end_column=9}\n\n"
         "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n\n"
         "ENTRY e { ROOT p = f32[] parameter(0), metadata={op_name=\"x\" "
         "stack_frame_id=1} }",
         "metadata={op_name=\"x\" source_file=\"dir/b.py\" source_line=40}"},
        /* groups: given by a shape and its transpose, or unequal */
        {"HloModule m, num_partitions=4\nENTRY e { p = f32[4] parameter(0) ROOT"
         " g = f32[8] all-gather(p), channel_id=1, replica_groups=[2,2]<=[2,2]"
         "T(1,0), dimensions={0}, use_global_device_ids=true }",
         "replica_groups={{0,2},{1,3}}, use_global_device_ids=true"},
        {"HloModule m, replica_count=3\nadd { x = f32[] parameter(0) y = f32[] "
         "parameter(1) ROOT r = f32[] add(x, y) } ENTRY e { p = f32[4] "
         "parameter(0) ROOT g = f32[4] all-reduce(p), replica_groups={{0,1},"
         "{2}}, to_apply=add }",
         "replica_groups={{0,1},{2}}"},
        /* notes in XLA's grammar come in one form */
        {"ENTRY e { p = f32[4,2] parameter(0), sharding={devices=[2,1,2]<=[2,2]"
         "T(1,0)  last_tile_dims={replicated} metadata={op_name=\"a}\"}} ROOT "
         "n = f32[4,2] negate(p), sharding={devices=[1,2]1,0 shard_like 3}, "
         "frontend_attributes={a=\"x\\\"y\", b={\"c\":[1]}} }",
         "sharding={devices=[2,1,2]<=[2,2]T(1,0) last_tile_dims={replicated}}"},
        {"ENTRY e { p = (f32[4], s32[]) parameter(0), sharding={{maximal device"
         "=1}, {manual}}, parameter_replication={true,false} ROOT g = f32[4] "
         "get-tuple-element(p), index=0, control-predecessors={p}, "
         "frontend_attributes={a=\"x\\\"y\", b={\"c\":[1]}} }",
         "sharding={{maximal device=1}, {manual}}"},
        {"ENTRY e { p = f32[] parameter(0) ROOT g = f32[] exponential(p), "
         "result_accuracy={tolerance={atol=0,rtol=0.1,ulps=1}}, origin={{\"a\"}"
         "}, frontend_attributes={a=\"x\\\"y\", b={\"c\":[1]}} }",
         "frontend_attributes={a=\"x\\\"y\",b=\"{\\\"c\\\":[1]}\"}"},
        /* layouts of a custom call stand in its shapes */
        {"ENTRY e { p = f32[2,3] parameter(0) ROOT c = (f32[2,3]{0,1}, s32[]) "
         "custom-call(p), custom_call_target=\"t\", operand_layout_constraints="
         "{f32[2,3]{0,1}}, schedule=SCHEDULE_LATEST, backend_config={a = 1 : "
         "i32} }",
         "ROOT %c = (f32[2,3]{0,1}, s32[]) custom-call(%p), "
         "custom_call_target=\"t\", operand_layout_constraints="
         "{f32[2,3]{0,1}}, backend_config=\"{a = 1 : i32}\""},
        /* our scan is a custom call outside */
        {"add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT r = f32[] "
         "add(x, y) } ENTRY e { p = f32[4] parameter(0) z = f32[] constant(0) "
         "ROOT s = f32[4] scan(p, z), dimensions={0}, exclusive=true, "
         "to_apply=add }",
         "custom-call(%p, %z), custom_call_target=\"sundog.scan\", "
         "called_computations={%add}, backend_config=\"{\\\"dimension\\\":0,"
         "\\\"exclusive\\\":1,\\\"reverse\\\":0}\""},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(of); i++) {
        sd_arena *a = sd_arena_create();
        hlo_module *m = parse(a, of[i][0], strlen(of[i][0])), *back;
        char *once = print(a, m);
        sd_buf b = {0};
        sd_status st;

        if (!strstr(once, of[i][1]))
            fail_msg("%s\nis not in\n%s", of[i][1], once);
        assert_string_equal(once, print(a, parse(a, once, strlen(once))));
        hlo_proto_write(&b, m, true, INT64_MAX);
        if ((st = hlo_proto_read(a, (sd_bytes){(uint8_t *)b.at, b.len}, true,
                                 &back)))
            fail_msg("%s\n%s", st->message, once);
        assert_string_equal(once, print(a, back));
        sd_buf_finish(&b);
        sd_arena_destroy(a);
    }
}

static void refused_by_name(void **state)
{
    static const struct {
        sd_code code;
        const char *text, *message;
    } of[] = {
        {SD_UNIMPLEMENTED, "ENTRY e { ROOT p = f32[<=4,2] parameter(0) }",
         "only bounded"},
        {SD_UNIMPLEMENTED, "ENTRY e { ROOT p = f32[?] parameter(0) }",
         "only bounded"},
        {SD_UNIMPLEMENTED, "ENTRY e { ROOT p = b(f32[2]) parameter(0) }",
         "element type buffer"},
        {SD_UNIMPLEMENTED, "ENTRY e { ROOT p = opaque[] parameter(0) }",
         "element type opaque"},
        {SD_UNIMPLEMENTED,
         "ENTRY e { p = f32[2] parameter(0) ROOT c = f32[2] copy-start(p) }",
         "XLA's op copy-start"},
        {SD_UNIMPLEMENTED,
         "HloModule m, entry_computation_layout={(f32[2]{0:S(1)})->f32[2]}\n"
         "ENTRY e { ROOT p = f32[2] parameter(0) }",
         "another memory space"},
        {SD_UNIMPLEMENTED,
         "ENTRY e { p = f32[4] parameter(0) z = f32[] constant(0) ROOT s = "
         "(f32[4], f32[]) scan(p, z), dimensions={0}, num_carries=1, "
         "is_reverse=true, to_apply=e }",
         "scan with carries"},
        {SD_INVALID, "ENTRY e { ROOT c = f32[3] constant({...}) }", "left out"},
        {SD_INVALID,
         "ENTRY e { p = f32[] parameter(0) ROOT s = f32[] custom-call(p), "
         "custom_call_target=\"sundog.scan\", backend_config=\"x\" }",
         "a backend_config as hlo_print writes it"},
        {SD_INVALID, "ENTRY e { ROOT p = f32[2]{1} parameter(0) }",
         "a layout that names each dimension once"},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(of); i++) {
        sd_arena *a = sd_arena_create();
        hlo_module *m;

        want_error(hlo_parse(a, of[i].text, strlen(of[i].text), &m), of[i].code,
                   of[i].message, of[i].text);
        sd_arena_destroy(a);
    }
}

/* ---- protobuf ---- */

static sd_buf every_op(sd_arena *a, hlo_module **m)
{
    sd_buf text = {0}, b = {0};
    sd_status st = sd_file_read(every_op_file, &text);

    if (st)
        fail_msg("%s", st->message);
    *m = parse(a, sd_arena_str(a, text.at, text.len), text.len);
    hlo_proto_write(&b, *m, true, INT64_MAX);
    sd_buf_finish(&text);
    return b;
}

static void every_op_goes_through(void **state)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m, *back = NULL;
    sd_buf b = every_op(a, &m), c = {0};
    sd_status st =
        hlo_proto_read(a, (sd_bytes){(uint8_t *)b.at, b.len}, true, &back);

    (void)state;
    if (st || (st = hlo_verify(back)))
        fail_msg("%s", st->message);
    assert_string_equal(print(a, m), print(a, back));
    assert_int_equal(back->nreplica, 4);
    hlo_proto_write(&c, back, true, INT64_MAX);
    assert_int_equal(b.len, c.len);
    assert_memory_equal(b.at, c.at, b.len);
    sd_buf_finish(&b);
    sd_buf_finish(&c);
    sd_arena_destroy(a);
}

/* Every cut, and every byte changed: an error, or a module that verifies. */
static void broken_bytes_are_refused(void **state)
{
    sd_arena *keep = sd_arena_create();
    hlo_module *m;
    sd_buf b = every_op(keep, &m);
    uint8_t *bad = sd_arena_alloc(keep, b.len + 1);
    int refused = 0, n = 0;

    (void)state;
    for (size_t i = 0; i < 2 * b.len; i += 11, n++) {
        sd_arena *a = sd_arena_create();
        size_t len = i < b.len ? i : b.len;
        sd_status st;

        memcpy(bad, b.at, len);
        if (i >= b.len)
            bad[i - b.len] ^= (uint8_t)(1 << (i / 11) % 8);
        st = hlo_proto_read(a, (sd_bytes){bad, len}, true, &m);
        refused += st != NULL;
        if (!st && (st = hlo_verify(m)))
            fail_msg("byte %zu: %s", i, st->message);
        sd_status_free(st);
        sd_arena_destroy(a);
    }
    assert_true(refused > n * 3 / 4);
    sd_buf_finish(&b);
    sd_arena_destroy(keep);
}

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

/* All starts in one array, as XLA wrote before 2019 and still reads. */
static void starts_of_the_old_form(void **state)
{
    static const char text[] =
        "HloModule old\n"
        "ENTRY e { x = f32[4,5] parameter(0) i = s32[2] parameter(1)\n"
        " d = f32[2,3] dynamic-slice(x, i), dynamic_slice_sizes={2,3}\n"
        " v = f32[4] parameter(2) j = s64[1] parameter(3)\n"
        " w = f32[2] parameter(4)\n"
        " u = f32[4] dynamic-update-slice(v, w, j)\n"
        " z = f32[] parameter(5) k = s32[0] parameter(6)\n"
        " o = f32[] dynamic-slice(z, k), dynamic_slice_sizes={}\n"
        " ROOT t = (f32[2,3], f32[4], f32[]) tuple(d, u, o) }";
    sd_arena *a = sd_arena_create();
    hlo_module *m = parse(a, text, sizeof text - 1);
    int narg[] = {3, 3, 1};

    (void)state;
    assert_null(hlo_verify(m));
    for (int i = 0; i < 3; i++)
        assert_int_equal(m->entry->root->arg[i]->narg, narg[i]);
    assert_int_equal(m->entry->root->arg[0]->arg[2]->op, HLO_RESHAPE);
    assert_int_equal(m->entry->root->arg[0]->arg[2]->arg[0]->u.slice.start[0],
                     1);
    sd_arena_destroy(a);
}

static void old_starts_in_protobuf(void **state)
{
    int64_t one[] = {2};
    pb_shape starts = {.element_type = 4, .dims = {one, 1, 0}};
    maker k;
    sd_status st;

    (void)state;
    one[0] = 1;
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xla_writes_it_so),
        cmocka_unit_test(refused_by_name),
        cmocka_unit_test(every_op_goes_through),
        cmocka_unit_test(broken_bytes_are_refused),
        cmocka_unit_test(ids_are_local),
        cmocka_unit_test(starts_of_the_old_form),
        cmocka_unit_test(old_starts_in_protobuf),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(mistakes_of_attributes_are_named),
        cmocka_unit_test(groups_stay_small),
        cmocka_unit_test(modules_are_checked),
        cmocka_unit_test(heads_are_checked),
    };

    every_op_file = argc > 1 ? argv[1] : "tests/hlo/ops.hlo";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
