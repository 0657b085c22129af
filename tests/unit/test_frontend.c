/* frontend: VHLO bytecode and compile options.  Arguments: the folder of
 * seeds (tests/fuzz/corpus/bytecode), then StableHLO's compatibility files,
 * where Meson's option vhlo_files says that they are. */
#include "frontend.h"
#include "mlir.h"
#include "ref.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#include "skip.h"

static const char *seeds, *compat;

/* jit_square of f32[4,6], target 1.17.0: seed square */
static const uint8_t square[] = {
    0x4d, 0x4c, 0xef, 0x52, 0x0d, 0x53, 0x74, 0x61, 0x62, 0x6c, 0x65, 0x48,
    0x4c, 0x4f, 0x5f, 0x76, 0x31, 0x2e, 0x31, 0x37, 0x2e, 0x30, 0x00, 0x01,
    0x19, 0x05, 0x01, 0x05, 0x09, 0x01, 0x03, 0x0b, 0x03, 0x07, 0x0f, 0x13,
    0x17, 0x03, 0x5f, 0x41, 0x0b, 0x01, 0x2b, 0x0b, 0x0f, 0x1b, 0x0b, 0x0b,
    0x0b, 0x13, 0x13, 0x13, 0x0f, 0x0b, 0x0f, 0x0f, 0x0b, 0x13, 0x0b, 0x0f,
    0x0b, 0x13, 0x0b, 0x13, 0x03, 0x17, 0x0f, 0x13, 0x0b, 0x0f, 0x0b, 0x0f,
    0x13, 0x0b, 0x0b, 0x0b, 0x0b, 0x01, 0x03, 0x0f, 0x03, 0x09, 0x17, 0x07,
    0x17, 0x07, 0x02, 0xd7, 0x05, 0x0d, 0x11, 0x01, 0x05, 0x03, 0x05, 0x07,
    0x03, 0x09, 0x03, 0x05, 0x0f, 0x05, 0x11, 0x05, 0x13, 0x17, 0x01, 0x05,
    0x03, 0x17, 0x01, 0x09, 0x07, 0x17, 0x01, 0x0b, 0x0f, 0x1d, 0x15, 0x17,
    0x05, 0x15, 0x15, 0x19, 0x21, 0x1d, 0x1b, 0x1d, 0x05, 0x17, 0x17, 0x1f,
    0x19, 0x07, 0x05, 0x19, 0x1d, 0x23, 0x25, 0x05, 0x1b, 0x17, 0x27, 0x07,
    0x03, 0x05, 0x1d, 0x17, 0x01, 0x15, 0x0b, 0x03, 0x03, 0x2d, 0x0d, 0x03,
    0x2f, 0x31, 0x1d, 0x1f, 0x13, 0x05, 0x01, 0x23, 0x07, 0x03, 0x03, 0x37,
    0x0d, 0x03, 0x39, 0x3b, 0x1d, 0x21, 0x1d, 0x23, 0x1d, 0x1b, 0x1d, 0x25,
    0x01, 0x02, 0x02, 0x29, 0x05, 0x11, 0x19, 0x09, 0x1b, 0x11, 0x03, 0x03,
    0x03, 0x03, 0x09, 0x04, 0x4f, 0x05, 0x01, 0x51, 0x0d, 0x05, 0x01, 0x07,
    0x04, 0x3d, 0x03, 0x01, 0x05, 0x03, 0x50, 0x0f, 0x03, 0x07, 0x04, 0x29,
    0x03, 0x05, 0x0b, 0x03, 0x07, 0x11, 0x00, 0x05, 0x06, 0x13, 0x03, 0x03,
    0x05, 0x01, 0x01, 0x07, 0x04, 0x29, 0x03, 0x03, 0x06, 0x03, 0x01, 0x05,
    0x01, 0x00, 0x5a, 0x03, 0x27, 0x0f, 0x0f, 0x21, 0x27, 0x0f, 0x0b, 0x13,
    0x0f, 0x21, 0x17, 0x25, 0x29, 0x05, 0x15, 0x19, 0x11, 0x0f, 0x0b, 0x11,
    0x62, 0x75, 0x69, 0x6c, 0x74, 0x69, 0x6e, 0x00, 0x76, 0x68, 0x6c, 0x6f,
    0x00, 0x6d, 0x6f, 0x64, 0x75, 0x6c, 0x65, 0x00, 0x66, 0x75, 0x6e, 0x63,
    0x5f, 0x76, 0x31, 0x00, 0x6d, 0x75, 0x6c, 0x74, 0x69, 0x70, 0x6c, 0x79,
    0x5f, 0x76, 0x31, 0x00, 0x72, 0x65, 0x74, 0x75, 0x72, 0x6e, 0x5f, 0x76,
    0x31, 0x00, 0x2d, 0x00, 0x6d, 0x68, 0x6c, 0x6f, 0x2e, 0x6e, 0x75, 0x6d,
    0x5f, 0x70, 0x61, 0x72, 0x74, 0x69, 0x74, 0x69, 0x6f, 0x6e, 0x73, 0x00,
    0x6d, 0x68, 0x6c, 0x6f, 0x2e, 0x6e, 0x75, 0x6d, 0x5f, 0x72, 0x65, 0x70,
    0x6c, 0x69, 0x63, 0x61, 0x73, 0x00, 0x6a, 0x69, 0x74, 0x5f, 0x73, 0x71,
    0x75, 0x61, 0x72, 0x65, 0x00, 0x6a, 0x69, 0x74, 0x28, 0x73, 0x71, 0x75,
    0x61, 0x72, 0x65, 0x29, 0x2f, 0x6d, 0x75, 0x6c, 0x00, 0x73, 0x71, 0x75,
    0x61, 0x72, 0x65, 0x00, 0x6d, 0x6f, 0x64, 0x65, 0x6c, 0x2e, 0x70, 0x79,
    0x00, 0x6d, 0x61, 0x69, 0x6e, 0x00, 0x72, 0x75, 0x6e, 0x2e, 0x70, 0x79,
    0x00, 0x74, 0x66, 0x2e, 0x61, 0x6c, 0x69, 0x61, 0x73, 0x69, 0x6e, 0x67,
    0x5f, 0x6f, 0x75, 0x74, 0x70, 0x75, 0x74, 0x00, 0x6a, 0x61, 0x78, 0x2e,
    0x72, 0x65, 0x73, 0x75, 0x6c, 0x74, 0x5f, 0x69, 0x6e, 0x66, 0x6f, 0x00,
    0x72, 0x65, 0x73, 0x75, 0x6c, 0x74, 0x00, 0x70, 0x75, 0x62, 0x6c, 0x69,
    0x63, 0x00, 0x08, 0x15, 0x05, 0x05, 0x17, 0x01, 0x0b, 0x2b, 0x33, 0x35,
    0x3d, 0x3f,
};

static sd_status read_mlir(sd_arena *a, const void *p, size_t n, hlo_module **m)
{
    return frontend_read(a, "mlir", 4, (sd_bytes){p, n}, m);
}

static void want_ok(sd_status st)
{
    if (st)
        fail_msg("%s", st->message);
}

static void want_error(sd_status st, sd_code code, const char *part)
{
    assert_non_null(st);
    if (st->code != code || !strstr(st->message, part))
        fail_msg("%d: %s", st->code, st->message);
    sd_status_free(st);
}

static hlo_module *read_seed(sd_arena *a, const char *name)
{
    sd_buf path = {0}, b = {0};
    hlo_module *m = NULL;

    sd_buf_fmt(&path, "%s/%s.mlirbc", seeds, name);
    want_ok(sd_file_read(path.at, &b));
    want_ok(read_mlir(a, b.at, b.len, &m));
    memset(b.at, 0xaa, b.len); /* nothing may point into the program */
    want_ok(hlo_verify(m));
    sd_buf_finish(&b);
    sd_buf_finish(&path);
    return m;
}

/* ---- programs ---- */

static void reads_a_program(void **state)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m = read_seed(a, "square.1.17.0");
    hlo_inst *root = m->entry->root;

    (void)state;
    assert_string_equal(m->name, "jit_square");
    assert_int_equal(m->entry->nparam, 1);
    assert_int_equal(root->op, HLO_MULTIPLY);
    assert_ptr_equal(root->arg[0], m->entry->param[0]);
    assert_ptr_equal(root->arg[1], m->entry->param[0]);
    assert_int_equal(root->shape->dtype, SD_F32);
    assert_int_equal(root->shape->rank, 2);
    assert_int_equal(root->shape->dim[1], 6);
    assert_string_equal(root->op_name, "jit(square)/mul");
    assert_string_equal(root->source_file, "model.py");
    assert_int_equal(root->source_line, 12);
    assert_int_equal(m->nalias, 1);
    assert_true(m->alias[0].must && !m->alias[0].param &&
                !m->alias[0].output_index);
    sd_arena_destroy(a);
}

static int32_t eval_s32(sd_arena *a, hlo_module *m, const int32_t *in, int n)
{
    hlo_value v[4], out;

    assert_int_equal(m->entry->nparam, n);
    for (int i = 0; i < n; i++) {
        v[i] = hlo_value_make(a, m->entry->param[i]->shape);
        memcpy(v[i].data, &in[i], sizeof in[i]);
    }
    want_ok(ref_eval(a, m->entry, v, n, &out));
    return *(int32_t *)out.data;
}

/* The loop's bound and a factor come from outside its regions; bytecode
 * versions 0, 3, 4 and 6. */
static void carries_what_a_loop_captures(void **state)
{
    static const char *const names[] = {"loop.0.9.0", "loop.0.12.0",
                                        "loop.0.14.0", "loop.1.17.0"};
    const int32_t in[2] = {5, 3};
    int32_t want = 1;

    (void)state;
    for (int32_t i = 0; i < in[0]; i++)
        want = want * in[1] + i;
    for (size_t k = 0; k < SD_COUNTOF(names); k++) {
        sd_arena *a = sd_arena_create();
        hlo_module *m = read_seed(a, names[k]);

        assert_int_equal(eval_s32(a, m, in, 2), want);
        sd_arena_destroy(a);
    }
}

static void gives_branches_what_they_capture(void **state)
{
    static const int32_t cases[][4] = {
        {0, 7, 5, 12}, {1, 7, 5, 35}, {2, 7, 5, 7}, {9, 7, 5, 7}};
    sd_arena *a = sd_arena_create();
    hlo_module *m = read_seed(a, "choose.1.17.0");

    (void)state;
    for (size_t k = 0; k < SD_COUNTOF(cases); k++)
        assert_int_equal(eval_s32(a, m, cases[k], 3), cases[k][3]);
    sd_arena_destroy(a);
}

static void keeps_a_custom_call(void **state)
{
    sd_arena *a = sd_arena_create();
    hlo_inst *root = read_seed(a, "custom.1.17.0")->entry->root, *in;
    const hlo_custom *u;

    (void)state;
    assert_int_equal(root->op, HLO_GET_TUPLE_ELEMENT);
    in = root->arg[0];
    assert_int_equal(in->op, HLO_CUSTOM_CALL);
    assert_int_equal(in->shape->nelem, 2);
    u = in->u.custom;
    assert_string_equal(u->target, "target");
    assert_string_equal(u->config,
                        "{a = -1 : i64, b = true, c = 2.50000000e+00 : f32, "
                        "d = dense<[1, -2]> : tensor<2xi64>, "
                        "e = [\"q\\\\22\", 76 : ui8], "
                        "f = dense<[1, 2]> : tensor<2xi32>}");
    assert_int_equal(u->config_len, strlen(u->config));
    assert_true(u->has_side_effect);
    assert_int_equal(u->operand_layout[0].at[0], 0);
    assert_int_equal(u->result_layout[0].at[1], 1);
    assert_int_equal(u->nalias, 1);
    assert_int_equal(u->alias[0].operand, 0);
    assert_int_equal(u->alias[0].out_index.n, 1);
    sd_arena_destroy(a);
}

/* On one device Shardy's operations are their operands, a manual computation
 * is its body. */
static void inlines_what_shardy_says(void **state)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m = read_seed(a, "shardy.1.17.0");
    hlo_inst *root = m->entry->root;

    (void)state;
    assert_int_equal(root->op, HLO_ALL_REDUCE);
    assert_ptr_equal(root->arg[0], m->entry->param[0]);
    assert_int_equal(root->u.coll->ngroup, 1);
    assert_int_equal(root->u.coll->group_size, 1);
    assert_int_equal(hlo_comp_count(m->entry), 2);
    sd_arena_destroy(a);
}

static void sends_to_the_host(void **state)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m = read_seed(a, "host.1.17.0");
    hlo_inst *recv = m->entry->root->arg[0]->arg[0];
    hlo_inst *send = recv->arg[0]->arg[0];

    (void)state;
    assert_int_equal(recv->op, HLO_RECV);
    assert_int_equal(recv->u.coll->channel, 3);
    assert_int_equal(send->op, HLO_SEND);
    assert_int_equal(send->u.coll->channel, 2);
    assert_true(send->u.coll->host_transfer);
    assert_ptr_equal(send->arg[0], m->entry->param[0]);
    assert_string_equal(
        send->frontend_attrs,
        "{_xla_host_transfer_handler_name=\"pjrt_rendezvous\"}");
    sd_arena_destroy(a);
}

/* Old and new forms of one program are one module. */
static void upgrades_old_forms(void **state)
{
    static const char *const names[][2] = {{"sort.0.9.0", "sort.1.17.0"},
                                           {"conv.0.9.0", "conv.1.17.0"},
                                           {"scatter.1.0.0", "scatter.1.17.0"},
                                           {"loop.0.14.0", "loop.1.17.0"}};

    (void)state;
    for (size_t k = 0; k < SD_COUNTOF(names); k++) {
        sd_arena *a = sd_arena_create();
        sd_buf text[2] = {{0}, {0}};

        for (int i = 0; i < 2; i++)
            hlo_print(&text[i], read_seed(a, names[k][i]));
        assert_int_equal(text[0].len, text[1].len);
        assert_memory_equal(text[0].at, text[1].at, text[0].len);
        sd_buf_finish(&text[0]);
        sd_buf_finish(&text[1]);
        sd_arena_destroy(a);
    }
}

/* ---- hostile bytes ---- */

static void refuses_every_truncation(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof square; n++) {
        sd_arena *a = sd_arena_create();
        uint8_t *p = sd_arena_copy(a, square, sizeof square);
        hlo_module *m = NULL;
        sd_status st = read_mlir(a, p, n, &m);

        if (!st)
            fail_msg("%zu of %zu bytes were accepted", n, sizeof square);
        if (n >= 4) /* fewer may be the beginning of a text */
            assert_int_equal(st->code, SD_INVALID);
        sd_status_free(st);
        sd_arena_destroy(a);
    }
}

/* Each byte to each value: a status, or a module that verifies. */
static void survives_every_byte(void **state)
{
    uint8_t p[sizeof square];

    (void)state;
    memcpy(p, square, sizeof square);
    for (size_t i = 0; i < sizeof square; i++) {
        for (int v = 0; v < 256; v += 1 + (int)(i % 3)) {
            sd_arena *a = sd_arena_create();
            hlo_module *m = NULL;
            sd_status st;

            p[i] = (uint8_t)v;
            st = read_mlir(a, p, sizeof p, &m);
            if (!st)
                st = hlo_verify(m);
            else
                assert_null(m);
            if (st && m)
                fail_msg("byte %zu = %d: %s", i, v, st->message);
            sd_status_free(st);
            sd_arena_destroy(a);
        }
        p[i] = square[i];
    }
}

static void names_what_it_refuses(void **state)
{
    sd_arena *a = sd_arena_create();
    uint8_t p[sizeof square];
    hlo_module *m = NULL;

    (void)state;
    want_error(read_mlir(a, "module {}", 9, &m), SD_INVALID, "no function");
    want_error(read_mlir(a, "\x01\x02", 2, &m), SD_INVALID, "4D 4C EF 52");
    want_error(frontend_read(a, "tf", 2, (sd_bytes){square, 4}, &m), SD_INVALID,
               "'tf'");
    want_error(frontend_read(a, "hlo", 3, (sd_bytes){square, 4}, &m),
               SD_INVALID, "HLO protobuf");
    memcpy(p, square, sizeof square);
    p[4] = 7 << 1 | 1; /* bytecode version 7 */
    want_error(read_mlir(a, p, sizeof p, &m), SD_UNIMPLEMENTED, "version 7");
    for (size_t i = 0; i + 11 < sizeof p; i++)
        if (memcmp(p + i, "multiply_v1", 11) == 0)
            p[i + 10] = '9';
    p[4] = square[4];
    want_error(read_mlir(a, p, sizeof p, &m), SD_UNIMPLEMENTED,
               "vhlo.multiply_v9 (jit(square)/mul, model.py:12)");
    assert_null(m);
    sd_arena_destroy(a);
}

/* ---- the table, StableHLO's own files ---- */

static void finds_every_row(void **state)
{
    static const char *const names[] = {
#define VHLO(name, noperand, nresult, nregion, fn, op, props, form) name,
#include "vhlo.def"
#undef VHLO
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(names); i++) {
        const vhlo_row *row =
            vhlo_find((sd_bytes){(const uint8_t *)names[i], strlen(names[i])});

        assert_non_null(row);
        assert_string_equal(row->name, names[i]);
    }
    assert_null(vhlo_find((sd_bytes){(const uint8_t *)"add_v2", 6}));
    assert_null(vhlo_find((sd_bytes){(const uint8_t *)"", 0}));
}

/* What of the files' functions named op_ is refused, and says so. */
static bool is_refused(const char *name)
{
    static const char *const refused[] = {"all_gather",
                                          "all_reduce",
                                          "all_to_all",
                                          "collective_",
                                          "cross",
                                          "reduce_scatter",
                                          "custom_call",
                                          "dynamic_",
                                          "einsum",
                                          "get_dimension_size",
                                          "infeed",
                                          "outfeed",
                                          "real_dynamic_slice",
                                          "recv_with",
                                          "rng_bit_generator",
                                          "send",
                                          "select_and_scatter_with_promotable",
                                          "set_dimension_size",
                                          "torch_index_select",
                                          "unary_einsum",
                                          "uniform_",
                                          "async",
                                          "recv"};

    for (size_t i = 0; i < SD_COUNTOF(refused); i++)
        if (strncmp(name + 3, refused[i], strlen(refused[i])) == 0)
            return true;
    return false;
}

static void read_function(sd_bytes file, const char *where, const char *name,
                          int *nread)
{
    mlir_reader r = {.a = sd_arena_create(), .out = sd_arena_create()};
    hlo_module *m = NULL;

    mlir_read(&r, file);
    vhlo_import_module(&r, name, &m);
    if (r.st && !is_refused(name))
        fail_msg("%s, %s: %s", where, name, r.st->message);
    if (!r.st) {
        want_ok(hlo_verify(m));
        ++*nread;
    }
    sd_status_free(r.st);
    sd_arena_destroy(r.a);
    sd_arena_destroy(r.out);
}

static void read_functions(const char *path)
{
    mlir_reader r = {.a = sd_arena_create(), .out = sd_arena_create()};
    sd_buf b = {0};
    sd_bytes file;
    int n = 0, nread = 0;

    want_ok(sd_file_read(path, &b));
    file = (sd_bytes){(const uint8_t *)b.at, b.len};
    mlir_read(&r, file);
    want_ok(r.st);
    for (mlir_op *op = r.module->region[0]->block[0]->first; op;
         op = op->next) {
        const char *s = mlir_text(&r, mlir_inherent(&r, op, "sym_name"));

        if (s && strncmp(s, "op_", 3) == 0) {
            n++;
            read_function(file, path, s, &nread);
        }
    }
    if (nread < 75)
        fail_msg("%s: %d of %d functions were read", path, nread, n);
    sd_arena_destroy(r.a);
    sd_arena_destroy(r.out);
    sd_buf_finish(&b);
}

static void reads_all_versions(void **state)
{
    DIR *d = compat ? opendir(compat) : NULL;
    struct dirent *e;
    char path[4096];

    (void)state;
    if (!d)
        skip_because("-Dvhlo_files names no folder with StableHLO's tests");
    while ((e = readdir(d)))
        if (strncmp(e->d_name, "stablehlo_legalize", 18) == 0) {
            snprintf(path, sizeof path, "%s/%s", compat, e->d_name);
            read_functions(path);
        }
    closedir(d);
}

/* ---- compile options ---- */

static void put_field(sd_buf *b, unsigned tag, const void *p, size_t n)
{
    sd_buf_leb(b, tag << 3 | 2);
    sd_buf_leb(b, n);
    sd_buf_add(b, p, n);
}

static void put_int(sd_buf *b, unsigned tag, uint64_t v)
{
    sd_buf_leb(b, tag << 3);
    sd_buf_leb(b, v);
}

static void put_message(sd_buf *b, unsigned tag, sd_buf *inner)
{
    put_field(b, tag, inner->at, inner->len);
    sd_buf_finish(inner);
}

/* compiler_options come before the debug options here, and still win. */
static void build_options(sd_buf *all)
{
    sd_buf debug = {0}, build = {0}, over = {0}, value = {0};

    put_field(&value, 1, ".*", 2);
    put_field(&over, 1, "xla_dump_hlo_module_re", 22);
    put_message(&over, 2, &value);
    put_message(all, 7, &over);
    put_field(&value, 1, "x", 1);
    put_field(&over, 1, "xla_backend_extra_options", 25);
    put_message(&over, 2, &value);
    put_message(all, 7, &over);
    put_field(&debug, 30, "cse", 3);
    put_field(&debug, 30, "dce", 3);
    put_field(&debug, 109, "/dumps", 6);
    put_field(&debug, 110, "m", 1);
    put_field(&debug, 111, ".*", 2);
    put_message(&build, 3, &debug);
    put_int(&build, 1, UINT64_MAX);
    put_int(&build, 4, 1);
    put_int(&build, 5, 2);
    put_message(all, 3, &build);
    put_int(all, 4, 1);
}

static void reads_options(void **state)
{
    sd_arena *a = sd_arena_create();
    frontend_options o = {0};
    sd_buf b = {0};

    (void)state;
    build_options(&b);
    want_ok(frontend_read_options(a, (sd_bytes){(uint8_t *)b.at, b.len}, &o));
    assert_int_equal(o.nreplica, 1);
    assert_int_equal(o.npartition, 2);
    assert_true(o.portable);
    assert_string_equal(sd_opt_str(&o.options, SD_OPT_DUMP_TO), "/dumps");
    assert_string_equal(sd_opt_str(&o.options, SD_OPT_DUMP_PASSES), ".*");
    assert_string_equal(sd_opt_str(&o.options, SD_OPT_PASSES_OFF), "cse,dce");
    assert_string_equal(sd_opt_str(&o.options, SD_OPT_DUMP_MODULES), ".*");
    for (size_t n = 0; n < b.len; n++) /* some are messages of their own */
        sd_status_free(
            frontend_read_options(a, (sd_bytes){(uint8_t *)b.at, n}, &o));
    want_error(
        frontend_read_options(a, (sd_bytes){(uint8_t *)"\x1a\x7f", 2}, &o),
        SD_INVALID, "failed to deserialize CompileOptionsProto");
    /* parameter_is_tupled_arguments */
    want_ok(frontend_read_options(a, (sd_bytes){(uint8_t *)"\x10\x01", 2}, &o));
    want_error(
        frontend_read_options(a, (sd_bytes){(uint8_t *)"\x32\x01x", 3}, &o),
        SD_UNIMPLEMENTED, "serialized_multi_slice_config");
    want_ok(frontend_read_options(a, (sd_bytes){NULL, 0}, &o));
    assert_int_equal(o.npartition, 1);
    sd_buf_finish(&b);
    sd_arena_destroy(a);
}

/* ---- options of one compile: XLA's names, its types, its words ---- */

static sd_status override(const char *name, unsigned is, const char *text,
                          uint64_t number)
{
    sd_arena *a = sd_arena_create();
    sd_buf all = {0}, over = {0}, value = {0};
    frontend_options o = {0};
    double d = (double)number + 0.5;
    sd_status st;

    if (is == 1)
        put_field(&value, 1, text, strlen(text));
    else if (is == 4)
        sd_buf_u8(&value, 4 << 3 | 1), sd_buf_add(&value, &d, sizeof d);
    else
        put_int(&value, is, number);
    put_field(&over, 1, name, strlen(name));
    put_message(&over, 2, &value);
    put_message(&all, 7, &over);
    st = frontend_read_options(a, (sd_bytes){(uint8_t *)all.at, all.len}, &o);
    sd_buf_finish(&all);
    sd_arena_destroy(a);
    return st;
}

static void says(sd_status st, const char *message)
{
    assert_non_null(st);
    assert_int_equal(st->code, SD_INVALID);
    assert_string_equal(st->message, message);
    sd_status_free(st);
}

static void refuses_unknown_options(void **state)
{
    (void)state;
    says(override("foo", 3, "", 1), "No such compile option: 'foo'");
    says(override("xla_nobody_knows", 1, "x", 0),
         "No such compile option: 'xla_nobody_knows'");
    want_ok(override("xla_gpu_autotune_level", 3, "", 2));
    want_ok(override("xla_gpu_autotune_level", 1, "2", 0));
    want_ok(override("xla_embed_ir_in_executable", 2, "", 1));
    want_ok(override("xla_embed_ir_in_executable", 1, "True", 0));
    want_ok(override("xla_step_marker_location", 1, "STEP_MARK_AT_ENTRY", 0));
    want_ok(override("xla_backend_optimization_level", 3, "", 3));
    says(override("xla_gpu_autotune_level", 2, "", 1),
         "While setting option xla_gpu_autotune_level, '1' is not a valid "
         "int32 value.");
    says(override("xla_gpu_autotune_level", 4, "", 1),
         "While setting option xla_gpu_autotune_level, '1.5' is not a valid "
         "int32 value.");
    says(override("xla_embed_ir_in_executable", 3, "", 3),
         "While setting option xla_embed_ir_in_executable, '3' is not a valid "
         "bool value.");
    says(override("xla_dump_to", 2, "", 1),
         "While setting option xla_dump_to, '1' is not a valid string value.");
    want_ok(override("SUNDOG_FUSE", 1, "off", 0));
    says(override("SUNDOG_FUSE", 1, "2", 0),
         "SUNDOG_FUSE=2: 0 or 1 is wanted (operations share kernels; 0: each "
         "has its own, and loops and branches are steps, which gives the same "
         "values slower)");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_program),
        cmocka_unit_test(carries_what_a_loop_captures),
        cmocka_unit_test(gives_branches_what_they_capture),
        cmocka_unit_test(keeps_a_custom_call),
        cmocka_unit_test(inlines_what_shardy_says),
        cmocka_unit_test(sends_to_the_host),
        cmocka_unit_test(upgrades_old_forms),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(survives_every_byte),
        cmocka_unit_test(names_what_it_refuses),
        cmocka_unit_test(finds_every_row),
        cmocka_unit_test(reads_all_versions),
        cmocka_unit_test(reads_options),
        cmocka_unit_test(refuses_unknown_options),
    };

    seeds = argc > 1 ? argv[1] : "tests/fuzz/corpus/bytecode";
    compat = argc > 2 && *argv[2] ? argv[2] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
