/* The graph, its text, inference and the evaluator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hlo_written.h"
#include "ref.h"

static const char *every_op_file;

static hlo_inst *find(const hlo_module *m, const char *name)
{
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c)
            if (strcmp(in->name, name) == 0)
                return in;
    fail_msg("no %s", name);
    return NULL;
}

static char *read_all(sd_arena *a, size_t *len)
{
    sd_buf b = {0};
    sd_status st = sd_file_read(every_op_file, &b);
    char *s;

    if (st)
        fail_msg("%s", st->message);
    *len = b.len;
    s = sd_arena_str(a, b.at, b.len);
    sd_buf_finish(&b);
    return s;
}

/* ---- text ---- */

static void every_op_round_trips(void **state)
{
    sd_arena *a = sd_arena_create();
    bool seen[HLO_OP_COUNT] = {false};
    size_t len;
    hlo_module *m = parse_text(a, read_all(a, &len));
    char *once = print(a, m);

    (void)state;
    assert_string_equal(once, print(a, parse_text(a, once)));
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c)
            seen[in->op] = true;
    for (int i = 0; i < HLO_OP_COUNT; i++)
        if (!seen[i])
            fail_msg("%s is not in %s", hlo_op_table[i].name, every_op_file);
    assert_int_equal(m->nalias, 2);
    assert_int_equal(m->alias[1].param, 2);
    assert_true(m->alias[1].must && m->donor[1] && !m->donor[0]);
    assert_string_equal(find(m, "abs")->op_name, "jit(f)/\"abs\"");
    assert_int_equal(find(m, "custom")->u.custom->config_len, 14);
    assert_non_null(strstr(once, "constant({65504, -0, 5.9605e-08})"));
    assert_non_null(strstr(once, "padding=0_-1_0x1_1_2"));
    sd_arena_destroy(a);
}

/* The clone of a whole module prints as the module. */
static void clones_print_alike(void **state)
{
    sd_arena *a = sd_arena_create();
    size_t len;
    hlo_module *m = parse_text(a, read_all(a, &len));
    hlo_module *to = hlo_module_create(a, m->name);
    sd_status st;

    (void)state;
    to->entry = hlo_comp_clone(to, m->entry, m->entry->name);
    to->nreplica = m->nreplica;
    to->alias = m->alias;
    to->nalias = m->nalias;
    to->donor = m->donor;
    if ((st = hlo_verify(to)))
        fail_msg("%s", st->message);
    if ((st = hlo_verify(m)))
        fail_msg("%s", st->message);
    hlo_comp *again = hlo_comp_clone(m, m->entry, "main");

    assert_string_equal(again->name, "main.1");
    assert_int_equal(hlo_comp_count(again), hlo_comp_count(m->entry));
    if ((st = hlo_verify(m)))
        fail_msg("%s", st->message);
    sd_arena_destroy(a);
}

/* Any bytes end in a status or in a module that verifies. */
static void broken_text_is_refused(void **state)
{
    sd_arena *keep = sd_arena_create();
    size_t len;
    char *good = read_all(keep, &len);
    uint64_t seed = 12345;
    int refused = 0;

    (void)state;
    for (int i = 0; i < 1500; i++) {
        sd_arena *a = sd_arena_create();
        char *bad = sd_arena_str(a, good, len);
        hlo_module *m;

        for (int k = 0; k < 1 + i % 3; k++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            /* mostly a byte of the text itself: near misses go deeper */
            bad[(seed >> 20) % len] =
                seed >> 63 ? (char)(seed >> 8) : good[(seed >> 11) % len];
        }
        sd_status st = hlo_parse(a, bad, i % 7 ? len : (seed >> 9) % len, &m);

        refused += st != NULL;
        if (!st)
            st = hlo_verify(m);
        sd_status_free(st);
        sd_arena_destroy(a);
    }
    assert_true(refused > 700);
    sd_arena_destroy(keep);
}

static void mistakes_are_named(void **state)
{
    static const char *const of[][2] = {
        {"ENTRY e { p = f32[2] parameter(0) ROOT r = f32[2] frobnicate(p) }",
         "expected an op, found \"frobnicate"},
        {"ENTRY e {\n p = f32[2] parameter(0)\n ROOT r = f32[2] add(p, q) }",
         "line 3 column 25: expected the name of an instruction"},
        {"ENTRY e { p = f32[2] parameter(0) q = f32[3] parameter(1) "
         "ROOT r = f32[2] add(p, q) }",
         "add of f32[2], f32[3]: operands differ in dimensions"},
        {"ENTRY e { p = f32[2] parameter(0) q = s32[2] parameter(1) "
         "ROOT r = f32[2] add(p, q), metadata={op_name=\"f/add\" "
         "source_file=\"m.py\" source_line=3} }",
         "(f/add, m.py:3): operands differ in element type"},
        {"ENTRY e { p = pred[2] parameter(0) ROOT r = pred[2] negate(p) }",
         "negate does not take pred"},
        {"ENTRY e { p = f32[4,6] parameter(0) ROOT r = f32[6,4] "
         "transpose(p), dimensions={0,0} }",
         "0 stands twice"},
        {"ENTRY e { p = f32[4] parameter(0) ROOT r = f32[5] slice(p), "
         "slice={[0:5]} }",
         "slice [0:5:1] of dimension 0"},
        {"ENTRY e { p = f32[4] parameter(0) ROOT r = f32[2,3] reshape(p) }",
         "4 elements do not make f32[2,3]"},
        {"ENTRY e { p = f32[4] parameter(0) z = f32[] constant(0) "
         "ROOT r = f32[1] pad(p, z), padding=-2_-3 }",
         "padding -2_-3_0 of dimension 0"},
        {"ENTRY e { p = f32[2,3] parameter(0) ROOT r = f32[2,2] dot(p, p), "
         "lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
         "contracting dimensions 1 and 0 are 3 and 2"},
        {"c { a = f32[] parameter(0) ROOT r = f32[] copy(a) } "
         "ENTRY e { p = f32[2] parameter(0) z = f32[] constant(0) "
         "ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=c }",
         "c must have 2 parameters, has 1"},
        {"ENTRY e { p = f32[4] parameter(0) i = s32[2] parameter(1) "
         "ROOT r = f32[2] gather(p, i), offset_dims={}, "
         "collapsed_slice_dims={0}, start_index_map={0}, "
         "index_vector_dim=1, slice_sizes={2} }",
         "slice size 2 of dimension 0"},
        {"ENTRY e { p = f32[4] parameter(0) z = f32[] constant(0) "
         "ROOT r = f32[4] pad(p, z), padding=-4611686018427387904_"
         "4611686018427387904 }",
         "padding -4611686018427387904_"},
        {"add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT r = f32[] "
         "add(x, y) } ENTRY e { p = f32[1,1] parameter(0) z = f32[] "
         "constant(0) ROOT r = f32[1,1] reduce-window(p, z), "
         "window={size=16777216x16777216 pad=16777215_0x16777215_0}, "
         "to_apply=add }",
         "the window has more than 2^46 elements"},
        {"ge { x = f32[] parameter(0) y = f32[] parameter(1) ROOT r = pred[] "
         "compare(x, y), direction=GE } add { x = f32[] parameter(0) y = f32[] "
         "parameter(1) ROOT r = f32[] add(x, y) } ENTRY e { p = f32[4] "
         "parameter(0) z = f32[] constant(0) s = f32[3] parameter(1) ROOT r = "
         "f32[4] select-and-scatter(p, s, z), window={size=3}, select=ge, "
         "scatter=add }",
         "the source must have one element a window"},
        {"ENTRY e { p = c64[2] parameter(0) ROOT r = f32[] dot(p, p), "
         "lhs_contracting_dims={0}, rhs_contracting_dims={0} }",
         "products are not summed in f32"},
        {"ENTRY e { p = f32[2] parameter(0) ROOT r = f32[2] "
         "collective-permute(p), source_target_pairs={{0,1}} }",
         "no participant 1 among 1"},
        {"ENTRY e { p = c64[] parameter(0) ROOT r = c64[2] rng(p, p), "
         "distribution=rng_uniform }",
         "has no such distribution of c64"},
        {"ENTRY e { p = s32[] parameter(0) ROOT r = s32[2] rng(p, p), "
         "distribution=rng_normal }",
         "has no such distribution of s32"},
        {"ENTRY e { p = f32[<=4] parameter(0) ROOT r = f32[<=4] negate(p) }",
         "only bounded"},
        {"ENTRY e { ROOT r = s8[2] constant({1, 300}) }",
         "an integer of the type"},
        {"ENTRY e { ROOT r = f32[1000000] constant({1}) }",
         "as many elements as the shape has"},
        {"ENTRY e { ROOT r = f32[99999999999,99999999999] iota(), "
         "iota_dimension=0 }",
         "dimensions of a possible array"},
        {"ENTRY e { ROOT r = f32[2] iota(), iota_dimension=0, colour=3 }",
         "an attribute of this op"},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(of); i++) {
        sd_arena *a = sd_arena_create();
        hlo_module *m;
        sd_status st = hlo_parse(a, of[i][0], strlen(of[i][0]), &m);

        if (!st || !strstr(st->message, of[i][1]))
            fail_msg("%s\ngives \"%s\", not \"%s\"", of[i][0],
                     st ? st->message : "nothing", of[i][1]);
        sd_status_free(st);
        sd_arena_destroy(a);
    }
}

/* An empty list, as XLA prints it of a program without arguments, is no list.
 */
static void open_lists_are_read(void **state)
{
    static const struct {
        const char *list;
        int n;
        int64_t first, last;
    } of[] = {
        {"{}", 0, 0, 0}, {"{true}", 1, 1, 1}, {"{true,true,false}", 3, 1, 0}};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(of); i++) {
        sd_arena *a = sd_arena_create();
        hlo_module *m = parse_text(
            a, sd_arena_fmt(
                   a,
                   "HloModule m, allow_spmd_sharding_propagation_to_parameters="
                   "%s, allow_spmd_sharding_propagation_to_output=%s\n"
                   "ENTRY e { ROOT r = f32[] constant(1) }",
                   of[i].list, of[i].list));
        hlo_dims both[] = {m->open_param, m->open_output};

        for (int k = 0; k < 2; k++) {
            assert_int_equal(both[k].n, of[i].n);
            if (!of[i].n)
                continue;
            assert_int_equal(both[k].at[0], of[i].first);
            assert_int_equal(both[k].at[of[i].n - 1], of[i].last);
        }
        assert_int_equal(m->npartition, 1); /* what follows is read, too */
        assert_non_null(m->entry->root);
        sd_arena_destroy(a);
    }
}

/* ---- the graph ---- */

static void edges_stay_right(void **state)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m = hlo_module_create(a, "edges");
    hlo_comp *c = m->entry = hlo_comp_create(m, "main");
    int64_t dim[2] = {4, 6};
    const sd_shape *s = sd_shape_make(a, SD_F32, 2, dim);
    hlo_at p = {c, NULL, NULL};
    hlo_inst *x = hlo_make_param(c, s, "x"), *y = hlo_make_param(c, s, "y");
    hlo_inst *mul = hlo_make_binary(p, HLO_MULTIPLY, x, x);
    hlo_inst *mul1 = hlo_make_binary(p, HLO_MULTIPLY, mul, y);
    hlo_inst *t = hlo_make_transpose(p, mul1, (int64_t[]){1, 0});
    double v;

    (void)state;
    hlo_set_root(c, t);
    assert_string_equal(mul->name, "multiply");
    assert_string_equal(mul1->name, "multiply.1");
    assert_int_equal(x->nuse, 2);
    assert_null(hlo_verify(m));

    hlo_inst *fill = hlo_make_fill((hlo_at){c, mul1, mul}, s, 2.5);

    assert_true(hlo_is_scalar_const(fill, &v) && v == 2.5);
    hlo_inst *most = hlo_make_scalar_s64((hlo_at){c, fill, fill}, SD_U64, -1);

    assert_false(hlo_is_scalar_const(most, &v)); /* 2^64 - 1 is no -1 */
    hlo_remove(most);
    hlo_replace(mul, fill);
    assert_int_equal(mul->nuse, 0);
    assert_ptr_equal(mul1->arg[0], fill);
    hlo_remove(mul);
    assert_int_equal(x->nuse, 0);
    assert_null(hlo_verify(m));

    /* a value made from what it replaces keeps its operand */
    hlo_inst *neg = hlo_make_unary((hlo_at){c, t, NULL}, HLO_NEGATE, mul1);

    hlo_replace(mul1, neg);
    assert_ptr_equal(neg->arg[0], mul1);
    assert_ptr_equal(t->arg[0], neg);
    assert_null(hlo_verify(m));

    hlo_inst *late = hlo_make_unary((hlo_at){c, NULL, NULL}, HLO_NEGATE, mul1);

    hlo_set_arg(neg, 0, late); /* wrong on purpose */
    sd_status st = hlo_verify(m);

    assert_non_null(st);
    assert_non_null(strstr(st->message, "stands before an operand"));
    sd_status_free(st);
    hlo_comp_sort(c);
    assert_null(hlo_verify(m));

    hlo_comp *add = hlo_scalar_comp(m, HLO_ADD, SD_F32);
    hlo_op op;

    assert_ptr_equal(add, hlo_scalar_comp(m, HLO_ADD, SD_F32));
    assert_true(hlo_comp_is_binary(add, &op) && op == HLO_ADD);
    hlo_inst *sum = hlo_make_reduce(p, t, hlo_make_scalar(p, SD_F32, 0),
                                    (int64_t[]){0}, 1, add);

    assert_ptr_equal(add->caller, sum);
    hlo_set_root(c, sum);
    assert_null(hlo_verify(m));
    hlo_remove(x); /* y becomes parameter 0 */
    assert_int_equal(c->nparam, 1);
    assert_int_equal(y->u.param.index, 0);
    assert_null(hlo_verify(m));
    y->nuse = 0; /* wrong on purpose */
    st = hlo_verify(m);
    assert_non_null(st);
    sd_status_free(st);
    sd_arena_destroy(a);
}

static void running_sums_are_recognised(void **state)
{
    static const struct {
        const char *window, *shape;
        bool yes, reverse;
    } of[] = {
        {"{size=1x6 pad=0_0x5_0}", "f32[4,6]", true, false},
        {"{size=1x6 pad=0_0x0_5}", "f32[4,6]", true, true},
        {"{size=1x8 pad=0_0x7_0}", "f32[4,6]", true, false},
        {"{size=1x5 pad=0_0x4_0}", "f32[4,6]", false, false},
        {"{size=1x6 pad=0_0x2_3}", "f32[4,6]", false, false},
        {"{size=4x6 pad=3_0x5_0}", "f32[4,6]", false, false},
        {"{size=1x6 stride=1x2 pad=0_0x5_0}", "f32[4,3]", false, false},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(of); i++) {
        sd_arena *a = sd_arena_create();
        hlo_module *m = parse_text(
            a, sd_arena_fmt(a,
                            "add { x = f32[] parameter(0) y = f32[] "
                            "parameter(1) ROOT r = f32[] add(x, y) } ENTRY e "
                            "{ p = f32[4,6] parameter(0) z = f32[] constant(0) "
                            "ROOT w = %s reduce-window(p, z), window=%s, "
                            "to_apply=add }",
                            of[i].shape, of[i].window));
        bool reverse = false;
        int64_t dim = -1;

        assert_int_equal(hlo_is_cumulative(m->entry->root, &dim, &reverse),
                         of[i].yes);
        if (of[i].yes) {
            assert_int_equal(dim, 1);
            assert_int_equal(reverse, of[i].reverse);
        }
        sd_arena_destroy(a);
    }
}

/* ---- the evaluator ---- */

#define ADD_F32 \
    "add { x = f32[] parameter(0) y = f32[] parameter(1) " \
    "ROOT r = f32[] add(x, y) } "
#define PICK_F32 \
    "second { x = f32[] parameter(0) y = f32[] parameter(1) " \
    "ROOT r = f32[] copy(y) } "

/* Each gives "got" and "want": the same bits. */
static const char *const facts[] = {
    /* integers: wrap, shifts of all bits, division by zero */
    "ENTRY e { a = s8[5] constant({127, -128, 5, -128, 7}) "
    "b = s8[5] constant({1, -1, 0, 0, -2}) got = s8[5] divide(a, b) "
    "want = s8[5] constant({127, -128, -1, -1, -3}) @s8[5]",
    "ENTRY e { a = s8[5] constant({127, -128, 5, -128, -7}) "
    "b = s8[5] constant({2, -1, 0, 0, 2}) got = s8[5] remainder(a, b) "
    "want = s8[5] constant({1, 0, 5, -128, -1}) @s8[5]",
    "ENTRY e { a = u32[2] constant({7, 0}) b = u32[2] constant({0, 0}) "
    "got = u32[2] divide(a, b) "
    "want = u32[2] constant({4294967295, 4294967295}) @u32[2]",
    "ENTRY e { a = s8[4] constant({-128, -128, 127, -1}) "
    "b = s8[4] constant({8, 3, -56, 7}) "
    "got = s8[4] shift-right-arithmetic(a, b) "
    "want = s8[4] constant({-1, -16, 0, -1}) @s8[4]",
    "ENTRY e { a = u8[4] constant({255, 1, 128, 3}) "
    "b = u8[4] constant({8, 7, 1, 255}) got = u8[4] shift-left(a, b) "
    "want = u8[4] constant({0, 128, 0, 0}) @u8[4]",
    "ENTRY e { a = s32[5] constant({-2, 2, -1, 0, 3}) "
    "b = s32[5] constant({3, -1, -3, 0, 20}) got = s32[5] power(a, b) "
    "want = s32[5] constant({-8, 0, -1, 1, -808182895}) @s32[5]",
    "ENTRY e { a = u8[3] constant({0, 1, 96}) "
    "got = u8[3] count-leading-zeros(a) "
    "want = u8[3] constant({8, 7, 1}) @u8[3]",
    /* floats: NaN, signed zeros, halves */
    "ENTRY e { a = f32[4] constant({nan, -0, 0, 1}) "
    "b = f32[4] constant({1, 0, -0, nan}) got = f32[4] maximum(a, b) "
    "want = f32[4] constant({nan, 0, 0, nan}) @f32[4]",
    "ENTRY e { a = f32[2] constant({-0, 0}) b = f32[2] constant({0, -0}) "
    "got = f32[2] minimum(a, b) want = f32[2] constant({-0, -0}) @f32[2]",
    "ENTRY e { a = f32[4] constant({0.5, 1.5, -2.5, -0.4}) "
    "got = f32[4] round-nearest-even(a) "
    "want = f32[4] constant({0, 2, -2, -0}) @f32[4]",
    "ENTRY e { a = f32[4] constant({0.5, 1.5, -2.5, -0.4}) "
    "got = f32[4] round-nearest-afz(a) "
    "want = f32[4] constant({1, 2, -3, -0}) @f32[4]",
    "ENTRY e { a = f32[3] constant({1, 1e-08, -0}) "
    "got = f32[3] log-plus-one(a) "
    "want = f32[3] constant({0.693147182, 1e-08, -0}) @f32[3]",
    "ENTRY e { a = bf16[2] constant({256, 1}) b = bf16[2] constant({1, 0.0039})"
    " got = bf16[2] add(a, b) want = bf16[2] constant({256, 1}) @bf16[2]",
    /* reduce-precision as XLA: 1 + 2^-10 ties to even, overflow, flush */
    "ENTRY e { a = f32[4] constant({1.00048828125, 70000, 1e-08, nan}) "
    "got = f32[4] reduce-precision(a), exponent_bits=5, mantissa_bits=10 "
    "want = f32[4] constant({1, inf, 0, nan}) @f32[4]",
    /* a NaN stays without a mantissa, too, as XLA documents */
    "ENTRY e { a = f32[4] constant({nan, -nan, inf, 1.5}) "
    "got = f32[4] reduce-precision(a), exponent_bits=5, mantissa_bits=0 "
    "want = f32[4] constant({nan, -nan, inf, 2}) @f32[4]",
    /* comparisons */
    "ENTRY e { a = f32[4] constant({nan, -0, 1, -nan}) "
    "b = f32[4] constant({1, 0, nan, -inf}) "
    "got = pred[4] compare(a, b), direction=LT, type=TOTALORDER "
    "want = pred[4] constant({0, 1, 1, 1}) @pred[4]",
    "ENTRY e { a = f32[3] constant({nan, -0, 1}) "
    "b = f32[3] constant({nan, 0, nan}) "
    "got = pred[3] compare(a, b), direction=NE "
    "want = pred[3] constant({1, 0, 1}) @pred[3]",
    /* conversions: saturation, one rounding from 64 bits */
    "ENTRY e { a = f32[5] constant({nan, 300, -300, -1.9, 1e30}) "
    "got = s8[5] convert(a) want = s8[5] constant({0, 127, -128, -1, 127}) "
    "@s8[5]",
    "ENTRY e { a = s64[2] constant({9007199791611905, -9007199791611905}) "
    "got = f32[2] convert(a) "
    "want = f32[2] constant({9007200328482816, -9007200328482816}) @f32[2]",
    "ENTRY e { a = u64[1] constant({18446744073709551615}) "
    "got = f64[1] convert(a) want = f64[1] constant({18446744073709551616}) "
    "@f64[1]",
    "ENTRY e { a = u16[2] constant({4660, 255}) "
    "got = u8[2,2] bitcast-convert(a) "
    "want = u8[2,2] constant({ {52, 18}, {255, 0} }) @u8[2,2]",
    /* complex */
    "ENTRY e { a = c64[2] constant({(1, 2), (3, 4)}) "
    "b = c64[2] constant({(3, -1), (0, 1)}) got = c64[2] multiply(a, b) "
    "want = c64[2] constant({(5, 5), (-4, 3)}) @c64[2]",
    "ENTRY e { a = c64[2] constant({(3, 4), (0, -2)}) got = f32[2] abs(a) "
    "want = f32[2] constant({5, 2}) @f32[2]",
    /* data movement */
    "ENTRY e { a = s32[3] constant({1, 2, 3}) z = s32[] constant(9) "
    "got = s32[5] pad(a, z), padding=-1_1_1 "
    "want = s32[5] constant({9, 2, 9, 3, 9}) @s32[5]",
    "ENTRY e { a = s32[2,3] constant({ {1,2,3}, {4,5,6} }) "
    "b = s32[2,3]{0,1} copy(a) got = s32[3,2] bitcast(b) "
    "want = s32[3,2] constant({ {1,4}, {2,5}, {3,6} }) @s32[3,2]",
    /* stochastic rounding: up when the random bits are below the fraction */
    "ENTRY e { a = f32[4] constant({1.25, 1.25, -1.25, 300}) "
    "b = u32[4] constant({1073741823, 1073741824, 0, 0}) "
    "got = s8[4] stochastic-convert(a, b) "
    "want = s8[4] constant({2, 1, -2, 127}) @s8[4]",
    "ENTRY e { a = f32[4] constant({1.00390625, 1.00390625, -1.00390625, inf})"
    " b = u32[4] constant({2147483647, 2147483648, 0, 0}) "
    "got = bf16[4] stochastic-convert(a, b) "
    "want = bf16[4] constant({1.0078125, 1, -1.0078125, inf}) @bf16[4]",
    "ENTRY e { a = s32[2,3] constant({ {1,2,3}, {4,5,6} }) "
    "i = s32[] constant(7) got = s32[1,2] dynamic-slice(a, i, i), "
    "dynamic_slice_sizes={1,2} want = s32[1,2] constant({ {5,6} }) @s32[1,2]",
    "ENTRY e { a = s32[4] constant({1,2,3,4}) i = u8[] constant(200) "
    "u = s32[2] constant({8,9}) got = s32[4] dynamic-update-slice(a, u, i) "
    "want = s32[4] constant({1,2,8,9}) @s32[4]",
    "ENTRY e { a = s32[3,2] constant({ {1,2}, {3,4}, {5,6} }) "
    "i = s32[3,1] constant({ {-5}, {1}, {9} }) got = s32[3,2] gather(a, i), "
    "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
    "index_vector_dim=1, slice_sizes={1,2} "
    "want = s32[3,2] constant({ {1,2}, {3,4}, {5,6} }) @s32[3,2]",
    ADD_F32
    "ENTRY e { a = f32[3] constant({1,2,3}) "
    "i = s32[4,1] constant({ {0}, {-1}, {3}, {0} }) "
    "u = f32[4] constant({10,20,30,40}) got = f32[3] scatter(a, i, u), "
    "update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add "
    "want = f32[3] constant({51,2,3}) @f32[3]",
    /* a window partly outside is dropped whole */
    PICK_F32
    "ENTRY e { a = f32[4] constant({1,2,3,4}) i = s32[2,1] constant({ {3}, {1} "
    "}) u = f32[2,2] constant({ {7,8}, {9,10} }) got = f32[4] scatter(a, i, "
    "u), update_window_dims={1}, inserted_window_dims={}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=second "
    "want = f32[4] constant({1,9,10,4}) @f32[4]",
    /* reductions and windows */
    ADD_F32
    "ENTRY e { a = f32[2,3] constant({ {1,2,3}, {4,5,6} }) z = f32[] "
    "constant(0.5) got = f32[2] reduce(a, z), dimensions={1}, to_apply=add "
    "want = f32[2] constant({6.5,15.5}) @f32[2]",
    ADD_F32 "ENTRY e { a = f32[5] constant({1,2,3,4,5}) z = f32[] constant(0) "
            "got = f32[3] reduce-window(a, z), window={size=2 stride=2 pad=1_1 "
            "rhs_dilate=2}, to_apply=add "
            "want = f32[3] constant({2,6,4}) @f32[3]",
    ADD_F32
    "ENTRY e { a = f32[4] constant({1,2,3,4}) z = f32[] constant(0) "
    "got = f32[4] scan(a, z), dimensions={0}, reverse=true, exclusive=true, "
    "to_apply=add want = f32[4] constant({9,7,4,0}) @f32[4]",
    ADD_F32
    "ge { x = f32[] parameter(0) y = f32[] parameter(1) "
    "ROOT r = pred[] compare(x, y), direction=GE } "
    "ENTRY e { a = f32[5] constant({1,3,3,0,3}) s = f32[2] constant({10,20}) "
    "z = f32[] constant(0.5) got = f32[5] select-and-scatter(a, s, z), "
    "window={size=3 stride=2}, select=ge, scatter=add "
    "want = f32[5] constant({0.5,10.5,20.5,0.5,0.5}) @f32[5]",
    /* order */
    "gt { x = s32[] parameter(0) y = s32[] parameter(1) k = s32[] "
    "parameter(2) l = s32[] parameter(3) "
    "ROOT r = pred[] compare(x, y), direction=GT } "
    "ENTRY e { a = s32[5] constant({2,3,2,1,3}) i = s32[5] iota(), "
    "iota_dimension=0 s = (s32[5], s32[5]) sort(a, i), dimensions={0}, "
    "is_stable=true, to_apply=gt got = s32[5] get-tuple-element(s), index=1 "
    "want = s32[5] constant({1,4,0,2,3}) @s32[5]",
    "ENTRY e { a = f32[1,4] constant({ {1, nan, -inf, 3} }) "
    "t = (f32[1,2], s32[1,2]) topk(a), k=2, largest=true "
    "got = s32[1,2] get-tuple-element(t), index=1 "
    "want = s32[1,2] constant({ {1,3} }) @s32[1,2]",
    /* contractions */
    "ENTRY e { a = s8[2,2] constant({ {100,100}, {-100,1} }) "
    "got = s32[2,2] dot(a, a), lhs_contracting_dims={1}, "
    "rhs_contracting_dims={0} "
    "want = s32[2,2] constant({ {0,10100}, {-10100,-9999} }) @s32[2,2]",
    "ENTRY e { a = f32[1,1,4] constant({ { {1,2,3,4} } }) "
    "k = f32[1,1,2] constant({ { {10,1} } }) "
    "got = f32[1,1,4] convolution(a, k), window={size=2 pad=1_0 "
    "rhs_reversal=1}, dim_labels=bf0_oi0->bf0 "
    "want = f32[1,1,4] constant({ { {10,21,32,43} } }) @f32[1,1,4]",
    /* control */
    "c { s = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(s), "
    "index=0 n = s32[] constant(10) "
    "ROOT r = pred[] compare(i, n), direction=LT } "
    "b { s = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(s), "
    "index=0 t = s32[] get-tuple-element(s), index=1 o = s32[] constant(1) "
    "j = s32[] add(i, o) u = s32[] add(t, j) "
    "ROOT r = (s32[], s32[]) tuple(j, u) } "
    "ENTRY e { z = s32[] constant(0) s = (s32[], s32[]) tuple(z, z) "
    "w = (s32[], s32[]) while(s), condition=c, body=b "
    "got = s32[] get-tuple-element(w), index=1 want = s32[] constant(55) "
    "@s32[]",
    "one { x = s32[] parameter(0) ROOT r = s32[] constant(1) } "
    "two { x = s32[] parameter(0) ROOT r = s32[] constant(2) } "
    "ENTRY e { i = s32[] constant(-7) got = s32[] conditional(i, i, i), "
    "branch_computations={one, two} want = s32[] constant(2) @s32[]",
    "one { x = s32[] parameter(0) ROOT r = s32[] constant(1) } "
    "two { x = s32[] parameter(0) ROOT r = s32[] constant(2) } "
    "ENTRY e { i = s32[] constant(0) p = pred[] constant(true) got = s32[] "
    "conditional(p, i, i), true_computation=one, false_computation=two "
    "want = s32[] constant(1) @s32[]",
    /* random bits: the known answer of Threefry-2x32-20 for zeros, and of
     * Philox-4x32-10 for zeros */
    "ENTRY e { k = u64[2] constant({0, 0}) s = (u64[2], u32[2]) "
    "rng-bit-generator(k), algorithm=rng_three_fry "
    "got = u32[2] get-tuple-element(s), index=1 "
    "want = u32[2] constant({1797259609, 2579123966}) @u32[2]",
    "ENTRY e { k = u64[3] constant({0, 0, 0}) s = (u64[3], u32[4]) "
    "rng-bit-generator(k), algorithm=rng_philox "
    "got = u32[4] get-tuple-element(s), index=1 want = u32[4] "
    "constant({1713891541, 3781805453, 3159862348, 2600524760}) @u32[4]",
    /* factorizations */
    "ENTRY e { a = f32[2,2] constant({ {4, 99}, {2, 5} }) "
    "got = f32[2,2] cholesky(a), lower=true "
    "want = f32[2,2] constant({ {2, 0}, {1, 2} }) @f32[2,2]",
    "ENTRY e { a = f32[2,2] constant({ {2, nan}, {1, 4} }) "
    "b = f32[2,1] constant({ {4}, {10} }) "
    "got = f32[2,1] triangular-solve(a, b), left_side=true, lower=true, "
    "transpose_a=NO_TRANSPOSE want = f32[2,1] constant({ {2}, {2} }) @f32[2,1]",
};

static void evaluator_knows(void **state)
{
    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(facts); i++) {
        sd_arena *a = sd_arena_create();
        const char *mark = strchr(facts[i], '@');
        hlo_value v;
        hlo_module *m = parse_text(
            a,
            sd_arena_fmt(a, "%.*s ROOT both = (%s, %s) tuple(got, want) }",
                         (int)(mark - facts[i]), facts[i], mark + 1, mark + 1));
        sd_status st = ref_eval(a, m->entry, NULL, 0, &v);

        if (st)
            fail_msg("%s\n%s", st->message, facts[i]);
        size_t n = sd_shape_bytes(v.elem[0].shape);

        if (memcmp(v.elem[0].data, v.elem[1].data, n) != 0) {
            sd_buf b = {0};

            hlo_print_inst(&b,
                           hlo_make_constant((hlo_at){m->entry, NULL, NULL},
                                             v.elem[0].shape, v.elem[0].data));
            fail_msg("%s\ngave %.*s", facts[i], (int)b.len, b.at);
        }
        sd_arena_destroy(a);
    }
}

/* What is not done is refused by name. */
static void evaluator_refuses(void **state)
{
    static const char *const of[][2] = {
        {"ENTRY e { ROOT c = f32[] custom-call(), custom_call_target=\"foo\" }",
         "custom-call foo"},
        {"ENTRY e { t = token[] after-all() x = f32[2] constant({1, 2}) "
         "s = (f32[2], u32[], token[]) send(x, t), channel_id=1 "
         "ROOT d = token[] send-done(s), channel_id=1 }",
         "evaluating send"},
        {"ENTRY e { x = f32[65536] iota(), iota_dimension=0 "
         "y = f32[65536,65536] broadcast(x), dimensions={0} "
         "ROOT r = f32[65536,65536] negate(y) }",
         "more than 2^31 bytes"},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(of); i++) {
        sd_arena *a = sd_arena_create();
        hlo_module *m = parse_text(a, of[i][0]);
        hlo_value v;
        sd_status st = ref_eval(a, m->entry, NULL, 0, &v);

        assert_non_null(st);
        assert_non_null(strstr(st->message, of[i][1]));
        sd_status_free(st);
        sd_arena_destroy(a);
    }
}

/* Each function calls the one before it twice.  What the first one makes in all
 * its runs is more than may exist at a time. */
static void what_functions_make_goes(void **state)
{
    enum { DOUBLINGS = 15 };
    sd_arena *a = sd_arena_create();
    char *text =
        sd_arena_fmt(a, "g0 { x = c128[] parameter(0) "
                        "y = c128[4096] broadcast(x), dimensions={} "
                        "s = c128[1] slice(y), slice={[4095:4096]} "
                        "z = c128[] reshape(s) o = c128[] constant((1, 0)) "
                        "ROOT r = c128[] add(z, o) }\n");
    double zero[2] = {0}, *sum;
    hlo_value arg, out;
    hlo_module *m;

    for (int i = 1; i <= DOUBLINGS; i++)
        text =
            sd_arena_fmt(a,
                         "%s%sg%d { x = c128[] parameter(0) "
                         "y = c128[] call(x), to_apply=g%d "
                         "ROOT r = c128[] call(y), to_apply=g%d }\n",
                         text, i < DOUBLINGS ? "" : "ENTRY ", i, i - 1, i - 1);
    (void)state;
    m = parse_text(a, text);
    arg = (hlo_value){.shape = m->entry->param[0]->shape, .data = zero};
    assert_null(hlo_eval(a, m->entry, &arg, &out));
    sum = out.data;
    assert_true(sum[0] == 1 << DOUBLINGS && sum[1] == 0);
    sd_arena_destroy(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_round_trips),
        cmocka_unit_test(clones_print_alike),
        cmocka_unit_test(broken_text_is_refused),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(open_lists_are_read),
        cmocka_unit_test(edges_stay_right),
        cmocka_unit_test(running_sums_are_recognised),
        cmocka_unit_test(evaluator_knows),
        cmocka_unit_test(evaluator_refuses),
        cmocka_unit_test(what_functions_make_goes),
    };

    if (argc != 2) {
        fprintf(stderr, "usage: test_hlo OPS.hlo\n");
        return 2;
    }
    every_op_file = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
