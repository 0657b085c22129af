/* frontend: StableHLO text, read and written.  Argument: the folder of corpora
 * (tests/fuzz/corpus).  That jaxlib reads what we write as what we read is
 * tests/python/test_mlir_text.py's to say. */
#include "frontend.h"
#include "mlir_write.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

static const char *corpus;

static sd_bytes bytes_of(const char *s)
{
    return (sd_bytes){(const uint8_t *)s, strlen(s)};
}

static sd_status read_text(sd_arena *a, const char *s, hlo_module **m)
{
    return frontend_read(a, "mlir", 4, bytes_of(s), m);
}

/* HLO without what names a place in the program. */
static char *hlo_of(sd_bytes program)
{
    sd_arena *a = sd_arena_create();
    sd_buf b = {0};
    hlo_module *m;
    sd_status st = frontend_read(a, "mlir", 4, program, &m);
    char *s, *at, *end;

    if (st)
        fail_msg("%s", st->message);
    hlo_print(&b, m);
    sd_arena_destroy(a);
    sd_buf_u8(&b, 0);
    s = test_malloc(b.len);
    memcpy(s, b.at, b.len);
    sd_buf_finish(&b);
    while ((at = strstr(s, ", metadata={")) && (end = strchr(at, '}')))
        memmove(at, end + 1, strlen(end));
    return s;
}

/* "main" of one statement over these arguments, giving %r. */
static const char *program(sd_buf *b, const char *args, const char *body,
                           const char *type)
{
    b->len = 0;
    sd_buf_fmt(b, "func.func @main(%s) -> %s {\n%s\nreturn %%r : %s\n}", args,
               type, body, type);
    sd_buf_u8(b, 0);
    return b->at;
}

/* ---- what is read ---- */

/* The pretty and the generic way to say a thing. */
static const struct {
    const char *args, *pretty, *generic, *type;
} pairs[] = {
    {"%a: tensor<f32>",
     "%r = stablehlo.constant dense<[[], []]> : tensor<2x0xf32>",
     "%r = stablehlo.constant dense<> : tensor<2x0xf32>", "tensor<2x0xf32>"},
    {"%a: tensor<2x3xf32>", "%r = stablehlo.abs %a : tensor<2x3xf32>",
     "%r = \"stablehlo.abs\"(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>",
     "tensor<2x3xf32>"},
    {"%a: tensor<2x3xf32>",
     "%r = stablehlo.slice %a [0:2, 0:3:2] : (tensor<2x3xf32>) -> "
     "tensor<2x2xf32>",
     "%r = \"stablehlo.slice\"(%a) <{limit_indices = array<i64: 2, 3>, "
     "start_indices = array<i64: 0, 0>, strides = array<i64: 1, 2>}> : "
     "(tensor<2x3xf32>) -> tensor<2x2xf32>",
     "tensor<2x2xf32>"},
    {"%a: tensor<4x2xf32>, %b: tensor<4x3xf32>",
     "%r = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0], "
     "precision = [DEFAULT, HIGH] : (tensor<4x2xf32>, tensor<4x3xf32>) -> "
     "tensor<2x3xf32>",
     "%r = \"stablehlo.dot_general\"(%a, %b) <{dot_dimension_numbers = "
     "#stablehlo.dot<lhs_contracting_dimensions = [0], "
     "rhs_contracting_dimensions = [0]>, precision_config = "
     "[#stablehlo<precision DEFAULT>, #stablehlo<precision HIGH>]}> : "
     "(tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>",
     "tensor<2x3xf32>"},
    {"%a: tensor<2x3xf32>, %c: tensor<f32>",
     "%r = stablehlo.reduce(%a init: %c) applies stablehlo.add across "
     "dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>",
     "%r = stablehlo.reduce(%a init: %c) across dimensions = [0] : "
     "(tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32> reducer(%x: "
     "tensor<f32>, %y: tensor<f32>) { %s = stablehlo.add %x, %y : tensor<f32> "
     "stablehlo.return %s : tensor<f32> }",
     "tensor<3xf32>"},
    {"%i: tensor<i32>",
     "%r = stablehlo.while(%x = %i) : tensor<i32> cond { %c = "
     "stablehlo.compare LT, %x, %x, SIGNED : (tensor<i32>, tensor<i32>) -> "
     "tensor<i1> stablehlo.return %c : tensor<i1> } do { stablehlo.return %x "
     ": tensor<i32> }",
     "%r = \"stablehlo.while\"(%i) ({ ^bb0(%x: tensor<i32>): %c = "
     "\"stablehlo.compare\"(%x, %x) <{compare_type = "
     "#stablehlo<comparison_type SIGNED>, comparison_direction = "
     "#stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> "
     "tensor<i1> stablehlo.return %c : tensor<i1> }, { ^bb0(%y: tensor<i32>): "
     "stablehlo.return %y : tensor<i32> }) : (tensor<i32>) -> tensor<i32>",
     "tensor<i32>"},
    {"%a: tensor<1x2x5xf32>, %b: tensor<3x2x2xf32>",
     "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0]x[o, i, "
     "0]->[b, f, 0], window = {stride = [2], pad = [[1, 0]]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
     "(tensor<1x2x5xf32>, tensor<3x2x2xf32>) -> tensor<1x3x3xf32>",
     "%r = \"stablehlo.convolution\"(%a, %b) <{batch_group_count = 1 : i64, "
     "dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, "
     "feature_group_count = 1 : i64, padding = dense<[[1, 0]]> : "
     "tensor<1x2xi64>, window_strides = array<i64: 2>}> : "
     "(tensor<1x2x5xf32>, tensor<3x2x2xf32>) -> tensor<1x3x3xf32>",
     "tensor<1x3x3xf32>"},
    {"",
     "%r = stablehlo.constant dense<[[1.0, -2.5], [0.0, 4.0]]> : "
     "tensor<2x2xf16>",
     "%r = stablehlo.constant dense<\"0x003C00C100000044\"> : tensor<2x2xf16>",
     "tensor<2x2xf16>"},
    {"",
     "%r = stablehlo.constant dense<[(1.0, -2.0)]> : tensor<1xcomplex<f32>>",
     "%r = stablehlo.constant dense<\"0x0000803F000000C0\"> : "
     "tensor<1xcomplex<f32>>",
     "tensor<1xcomplex<f32>>"},
    {"", "%r = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>",
     "%r = stablehlo.constant dense<\"0x010001\"> : tensor<3xi1>",
     "tensor<3xi1>"},
    {"", "%r = stablehlo.constant dense<[-1, -2]> : tensor<2xi4>",
     "%r = stablehlo.constant dense<[0xF, 0xE]> : tensor<2xi4>",
     "tensor<2xi4>"},
    {"%a: tensor<5x3xf32>",
     "%r, %i = chlo.top_k(%a, k = 2) : tensor<5x3xf32> -> (tensor<5x2xf32>, "
     "tensor<5x2xi32>)",
     "%r, %i = \"chlo.top_k\"(%a) <{k = 2 : i64}> : (tensor<5x3xf32>) -> "
     "(tensor<5x2xf32>, tensor<5x2xi32>)",
     "tensor<5x2xf32>"},
};

static void says_one_thing_in_two_ways(void **state)
{
    sd_buf b = {0};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(pairs); i++) {
        char *x = hlo_of(bytes_of(
            program(&b, pairs[i].args, pairs[i].pretty, pairs[i].type)));
        char *y = hlo_of(bytes_of(
            program(&b, pairs[i].args, pairs[i].generic, pairs[i].type)));

        assert_string_equal(x, y);
        test_free(x);
        test_free(y);
    }
    sd_buf_finish(&b);
}

/* ---- what is not ---- */

static const struct {
    const char *text, *part;
} wrong[] = {
    {"func.func @main() {\n  return %x : tensor<f32>\n}",
     "2:10: value %x is not defined here"},
    {"module {\n", "2:1: expected '}', found the end"},
    {"func.func @main(%a: tensor<2xq7>) { return }",
     "1:30: expected a type, found 'q7'"},
    {"func.func @main(%a: tensor<2xf32>) {\n"
     "  %0 = \"stablehlo.abs\"(%a) : (tensor<3xf32>) -> tensor<3xf32>\n}",
     "2:8: operand 0 is a tensor<2xf32>, not a tensor<3xf32>"},
    {"func.func @main() { %0 = stablehlo.constant dense<[1, 2, 3]> : "
     "tensor<2xi32> }",
     "more than 2 of dimension 0"},
    {"func.func @main() { %0 = stablehlo.constant dense<300> : tensor<i8> }",
     "1:51: an integer that does not fit 8 bits"},
    {"func.func @main() { %0 = stablehlo.nonsense : tensor<f32> }",
     "stablehlo.nonsense is no operation that is known"},
    {"func.func @main(%a: tensor<f32>) { %0 = stablehlo.abs %a : tensor<f32> "
     "loc(#nowhere) return }",
     "#nowhere is not defined"},
    {"func.func @main(%a: tensor<f32>) { %a = stablehlo.abs %a : tensor<f32> "
     "return }",
     "%a is defined already"},
    {"\"builtin.module\"() <{what = 1 : i32}> ({}) : () -> ()",
     "has no attribute what"},
    {"func.func @main() { \"stablehlo.return\"", "1:39: expected '('"},
    {"func.func @main() { return \"no end", "a string that does not end"},
    {"func.func @main() -> () { ~ }", "'~' begins nothing here"},
};

static void names_line_and_column(void **state)
{
    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(wrong); i++) {
        sd_arena *a = sd_arena_create();
        hlo_module *m = NULL;
        sd_status st = read_text(a, wrong[i].text, &m);

        if (!st || st->code != SD_INVALID ||
            !strstr(st->message, wrong[i].part))
            fail_msg("%s\ngives: %s\nnot: %s", wrong[i].text,
                     st ? st->message : "no error", wrong[i].part);
        sd_status_free(st);
        sd_arena_destroy(a);
    }
}

static void bounds_what_nests(void **state)
{
    static const char *const nest[][3] = {
        {"func.func @main() attributes {x = ", "[", "] } {}"},
        {"func.func @main(%a: ", "tuple<", ">) {}"},
        {"module ", "{ module ", "}"}};
    sd_arena *a = sd_arena_create();

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(nest); i++) {
        sd_buf b = {0};
        hlo_module *m;
        sd_status st;

        sd_buf_str(&b, nest[i][0]);
        for (int k = 0; k < 100000; k++)
            sd_buf_str(&b, nest[i][1]);
        sd_buf_u8(&b, 0);
        st = read_text(a, b.at, &m);
        assert_non_null(st);
        assert_non_null(strstr(st->message, "nested deeper"));
        sd_status_free(st);
        sd_buf_finish(&b);
    }
    sd_arena_destroy(a);
}

/* Names, types, attributes, arguments, and in a function called: one list. */
static void lists_all_that_is_not_supported(void **state)
{
    static const char text[] =
        "func.func @g(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
        "  %0 = \"stablehlo.collective_broadcast\"(%x) <{\n"
        "    has_dynamic_root,\n"
        "    replica_groups = dense<[[0]]> : tensor<1x1xi64>}>\n"
        "    : (tensor<2xf32>) -> tensor<2xf32> loc(\"jit(f)/cb\")\n"
        "  return %0 : tensor<2xf32>\n}\n"
        "func.func @main(%a: tensor<2xf32>,\n"
        "    %q: tensor<2x!quant.uniform<i8:f32, 0.5>>) -> tensor<2xf32> {\n"
        "  %0 = stablehlo.uniform_dequantize %q :\n"
        "    (tensor<2x!quant.uniform<i8:f32, 0.5>>) -> tensor<2xf32>\n"
        "  %b = stablehlo.convert %a : (tensor<2xf32>) -> tensor<2xtf32>\n"
        "  %1 = stablehlo.add %0, %a : tensor<2xf32>\n"
        "  %2 = \"stablehlo.uniform_quantize\"(%a) : (tensor<2xf32>) -> "
        "tensor<2xf32>\n"
        "  %3 = call @g(%1) : (tensor<2xf32>) -> tensor<2xf32>\n"
        "  %4 = call @g(%a) : (tensor<2xf32>) -> tensor<2xf32>\n"
        "  return %3 : tensor<2xf32>\n}\n";
    static const char *const parts[] = {
        "stablehlo.uniform_dequantize (-:10)",
        "stablehlo.convert (-:12): gives a tensor of tf32",
        "stablehlo.uniform_quantize (-:14)",
        "argument 1 of main: tensor of quantized type",
        "stablehlo.collective_broadcast (jit(f)/cb): has_dynamic_root"};
    sd_arena *a = sd_arena_create();
    hlo_module *m;
    sd_status st = read_text(a, text, &m);

    (void)state;
    assert_non_null(st);
    assert_int_equal(st->code, SD_UNIMPLEMENTED);
    for (size_t i = 0; i < SD_COUNTOF(parts); i++)
        if (!strstr(st->message, parts[i]))
            fail_msg("%s\nis not in\n%s", parts[i], st->message);
    assert_null(strstr(st->message, "it needs"));
    sd_status_free(st);
    sd_arena_destroy(a);
}

/* A token alone is an infeed too, of an empty tuple. */
static void receives_nothing(void **state)
{
    static const char text[] =
        "func.func @main() -> !stablehlo.token {\n"
        "  %t = stablehlo.create_token : !stablehlo.token\n"
        "  %0 = \"stablehlo.infeed\"(%t)\n"
        "    : (!stablehlo.token) -> !stablehlo.token\n"
        "  return %0 : !stablehlo.token\n}\n";
    sd_arena *a = sd_arena_create();
    hlo_module *m;
    hlo_inst *in;

    (void)state;
    assert_null(read_text(a, text, &m));
    assert_null(hlo_verify(m));
    in = m->entry->root->arg[0];
    assert_int_equal(in->op, HLO_INFEED);
    assert_int_equal(in->shape->elem[0]->nelem, 0);
    assert_int_equal(m->entry->root->shape->dtype, SD_TOKEN);
    sd_arena_destroy(a);
}

/* ---- what is written ---- */

static sd_buf written(sd_bytes program, const char *what)
{
    sd_buf b = {0};
    sd_status st = mlir_write(program, &b);

    if (st)
        fail_msg("%s: %s", what, st->message);
    return b;
}

static void each_file(const char *folder, void (*f)(const char *, sd_bytes))
{
    char path[4096];
    struct dirent *e;
    DIR *d;
    int n = 0;

    snprintf(path, sizeof path, "%s/%s", corpus, folder);
    d = opendir(path);
    assert_non_null(d);
    while ((e = readdir(d))) {
        sd_buf b = {0};

        if (!strstr(e->d_name, ".mlir"))
            continue;
        snprintf(path, sizeof path, "%s/%s/%s", corpus, folder, e->d_name);
        assert_null(sd_file_read(path, &b));
        f(path, (sd_bytes){(const uint8_t *)b.at, b.len});
        sd_buf_finish(&b);
        n++;
    }
    closedir(d);
    assert_true(n >= 20);
}

/* Read again, it is the text that it was, and the program that it was. */
static void write_file(const char *path, sd_bytes file)
{
    sd_buf once = written(file, path);
    sd_bytes text = {(const uint8_t *)once.at, once.len};
    sd_buf twice = written(text, path);

    assert_int_equal(once.len, twice.len);
    assert_memory_equal(once.at, twice.at, once.len);
    sd_buf_finish(&once);
    sd_buf_finish(&twice);
}

static void import_both(const char *path, sd_bytes file)
{
    sd_buf text = written(file, path);
    char *x = hlo_of(file);
    char *y = hlo_of((sd_bytes){(const uint8_t *)text.at, text.len});

    assert_string_equal(x, y);
    test_free(x);
    test_free(y);
    sd_buf_finish(&text);
}

static void writes_what_it_reads(void **state)
{
    (void)state;
    each_file("bytecode", write_file);
    each_file("mlir_text", write_file);
}

static void text_imports_as_bytecode_does(void **state)
{
    (void)state;
    each_file("bytecode", import_both);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_one_thing_in_two_ways),
        cmocka_unit_test(names_line_and_column),
        cmocka_unit_test(bounds_what_nests),
        cmocka_unit_test(lists_all_that_is_not_supported),
        cmocka_unit_test(receives_nothing),
        cmocka_unit_test(writes_what_it_reads),
        cmocka_unit_test(text_imports_as_bytecode_does),
    };

    corpus = argc > 1 ? argv[1] : "tests/fuzz/corpus";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
