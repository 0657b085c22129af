/* HLO's outer forms: what XLA writes as text, protobuf there and back, and
 * bytes that are no protobuf.  test_hlo_made.c has modules that are. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "hlo_proto.h"
#include "hlo_written.h"
#include "want_error.h"

static const char *every_op_file;

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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xla_writes_it_so),
        cmocka_unit_test(refused_by_name),
        cmocka_unit_test(starts_of_the_old_form),
        cmocka_unit_test(every_op_goes_through),
        cmocka_unit_test(broken_bytes_are_refused),
    };

    every_op_file = argc > 1 ? argv[1] : "tests/hlo/ops.hlo";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
