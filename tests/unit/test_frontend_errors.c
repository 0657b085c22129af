/* frontend: messages that only bytes made by hand, or writing, can give.  What
 * text can give stands in tests/errors/frontend_*.mlir. */
#include "frontend.h"
#include "mlir.h"
#include "mlir_write.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- a program in bytecode ---- */

/* MLIR's varints: of a small number, a signed one, and one that says of what
 * it counts whether something more comes with it. */
#define V(n)         (uint8_t)((n) << 1 | 1)
#define S(n)         V(2 * (n))
#define MINUS_ONE    V(1)
#define FLAG(n, set) V((n) << 1 | (set))

enum { BUILTIN, VHLO, SDY, STRANGE, NDIALECT, AS_TEXT = 64 };

/* Bytes of an attribute or a type, of dialect `of`; or of a section. */
typedef struct {
    uint8_t of, n, at[44];
} bytes;
#define BYTES(of, ...) \
    { \
        of, sizeof((uint8_t[]){__VA_ARGS__}), \
        { \
            __VA_ARGS__ \
        } \
    }

static const char *const string[] = {
    "builtin",   "vhlo",   "sdy",     "strange", "module", "func_v1",
    "return_v1", "abs_v1", "case_v1", "main",    "",       "x"};
static const uint8_t op_string[] = {4, 5, 6, 7, 8}; /* the first is builtin's */
enum { OP_MODULE, OP_FUNC, OP_RETURN, OP_ABS, OP_CASE };

/* MINE is a test's own; the module's dictionary holds it. */
enum { NAME, FUNC_TYPE, NO_ATTRS, EMPTY, UNKNOWN, MINE, DICT, KEY, NATTR };
static const bytes attrs[NATTR] = {
    [NAME] = BYTES(VHLO, V(14), V(9)),
    [FUNC_TYPE] = BYTES(VHLO, V(17), V(2)),
    [NO_ATTRS] = BYTES(VHLO, V(1), V(0)),
    [EMPTY] = BYTES(VHLO, V(14), V(10)),
    [UNKNOWN] = BYTES(BUILTIN, V(15)),
    [MINE] = BYTES(BUILTIN, V(7)),
    [DICT] = BYTES(BUILTIN, V(1), V(1), V(KEY), V(MINE)),
    [KEY] = BYTES(BUILTIN, V(2), V(11))};

enum { F32, TENSOR, FUNCTION, MY_TYPE, NTYPE };
static const bytes types[NTYPE] = {
    [F32] = BYTES(VHLO, V(4)),
    [TENSOR] = BYTES(VHLO, V(20), V(1), S(2), V(F32)),
    [FUNCTION] = BYTES(VHLO, V(8), V(1), V(TENSOR), V(1), V(TENSOR)),
    [MY_TYPE] = BYTES(VHLO, V(33))};

enum {
    S_STRINGS,
    S_DIALECTS,
    S_ENTRIES,
    S_OFFSETS,
    S_IR,
    S_RESOURCES,
    S_RESOURCE_OFFSETS,
    S_PROPERTIES = 8,
    S_COUNT
};
enum {
    HAS_DICT = 1,
    HAS_RESULTS = 2,
    HAS_OPERANDS = 4,
    HAS_SUCCESSORS = 8,
    HAS_REGIONS = 16,
    HAS_PROPS = 64
};

/* What differs from the program that is right. */
typedef struct {
    bytes attr, type;
    bytes body; /* main's operations and values, for abs and return */
    bytes more; /* behind section `of`; COUNT: behind all of them */
    bytes all; /* instead of section of % COUNT; of 0: of none */
    int nlist; /* attributes, each a list of sixteen of the one before */
    const char *want;
} odd;

static void put(sd_buf *b, const uint8_t *at, size_t n)
{
    sd_buf_add(b, at, n);
}
#define PUT(b, ...) \
    put(b, (uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}))

static void put_length(sd_buf *b, uint64_t n)
{
    sd_buf_u8(b, 0); /* the long form */
    sd_buf_u64(b, n);
}

static void put_section(sd_buf *b, uint8_t id, sd_buf *body)
{
    sd_buf_u8(b, id);
    put_length(b, body->len);
    sd_buf_add(b, body->at, body->len);
    sd_buf_finish(body);
}

static void put_strings(sd_buf *b)
{
    int n = SD_COUNTOF(string);

    PUT(b, V(SD_COUNTOF(string)));
    for (int i = n; i-- > 0;)
        sd_buf_u8(b, V(strlen(string[i]) + 1));
    for (int i = 0; i < n; i++)
        sd_buf_add(b, string[i], strlen(string[i]) + 1);
}

static void put_dialects(sd_buf *b)
{
    PUT(b, V(NDIALECT));
    for (int i = 0; i < NDIALECT; i++)
        sd_buf_u8(b, FLAG(i, 0));
    PUT(b, V(SD_COUNTOF(op_string)), V(BUILTIN), V(1), FLAG(op_string[0], 0),
        V(VHLO), V(SD_COUNTOF(op_string) - 1));
    for (size_t i = 1; i < SD_COUNTOF(op_string); i++)
        sd_buf_u8(b, FLAG(op_string[i], 0));
}

static void put_entries(sd_buf *index, sd_buf *data, const bytes *e, int n,
                        int mine, const bytes *my)
{
    for (int i = 0; i < n; i++) {
        const bytes *x = i == mine && my->n ? my : &e[i];

        PUT(index, V(x->of % AS_TEXT), V(1), FLAG(x->n, x->of < AS_TEXT));
        put(data, x->at, x->n);
    }
}

static void put_lists(sd_buf *index, sd_buf *data, int n)
{
    enum { MANY = 16 };

    for (int i = 0; i < n; i++) {
        PUT(index, V(SDY), V(1), FLAG(2 + MANY, 1));
        PUT(data, V(11), V(MANY));
        for (int k = 0; k < MANY; k++)
            sd_buf_u8(data, V(KEY + i));
    }
}

static void put_isolated(sd_buf *b, sd_buf *region)
{
    PUT(b, FLAG(1, 1));
    put_section(b, S_IR, region);
}

static void put_main(sd_buf *b, const bytes *body)
{
    static const bytes plain =
        BYTES(0, V(2), FLAG(2, 1), V(1), FLAG(TENSOR, 0), 0, V(OP_ABS),
              HAS_RESULTS | HAS_OPERANDS, V(UNKNOWN), V(1), V(TENSOR), V(1),
              V(0), V(OP_RETURN), HAS_OPERANDS, V(UNKNOWN), V(1), V(1));
    sd_buf region = {0};

    PUT(b, V(OP_FUNC), HAS_PROPS | HAS_REGIONS, V(UNKNOWN), V(0));
    PUT(&region, V(1));
    body = body->n ? body : &plain;
    put(&region, body->at, body->n);
    put_isolated(b, &region);
}

static void put_ir(sd_buf *b, const bytes *body)
{
    sd_buf region = {0};

    PUT(b, FLAG(1, 0), V(OP_MODULE), HAS_DICT | HAS_PROPS | HAS_REGIONS,
        V(UNKNOWN), V(DICT), V(1));
    PUT(&region, V(1), V(0), FLAG(1, 0));
    put_main(&region, body);
    put_isolated(b, &region);
}

/* ir: instead of its own; emptied. */
static sd_buf program(const odd *o, sd_buf *ir)
{
    sd_buf file = {0}, s[S_COUNT + 1] = {{0}};

    put_strings(&s[S_STRINGS]);
    put_dialects(&s[S_DIALECTS]);
    PUT(&s[S_OFFSETS], V(NATTR + o->nlist), V(NTYPE));
    put_entries(&s[S_OFFSETS], &s[S_ENTRIES], attrs, NATTR, MINE, &o->attr);
    put_lists(&s[S_OFFSETS], &s[S_ENTRIES], o->nlist);
    put_entries(&s[S_OFFSETS], &s[S_ENTRIES], types, NTYPE, MY_TYPE, &o->type);
    if (ir)
        s[S_IR] = *ir;
    else
        put_ir(&s[S_IR], &o->body);
    PUT(&s[S_PROPERTIES], V(2), V(5), V(NO_ATTRS), V(FUNC_TYPE), V(NO_ATTRS),
        V(NAME), V(EMPTY), V(2), V(0), V(0));
    put(&s[o->more.of], o->more.at, o->more.n);
    if (o->all.of) {
        s[o->all.of % S_COUNT].len = 0;
        put(&s[o->all.of % S_COUNT], o->all.at, o->all.n);
    }
    PUT(&file, 0x4d, 0x4c, 0xef, 0x52, V(6), 'h', 'a', 'n', 'd', 0);
    for (uint8_t i = 0; i < S_COUNT; i++)
        if (s[i].len || i == S_RESOURCES)
            put_section(&file, i, &s[i]);
    sd_buf_add(&file, s[S_COUNT].at, s[S_COUNT].len);
    for (int i = 0; i <= S_COUNT; i++)
        sd_buf_finish(&s[i]);
    return file;
}

static sd_bytes view(const sd_buf *b)
{
    return (sd_bytes){(const uint8_t *)b->at, b->len};
}

static void want_error(sd_status st, const char *part)
{
    if (!st || !strstr(st->message, part))
        fail_msg("\"%s\", not \"%s\"", st ? st->message : "no error", part);
    sd_status_free(st);
}

static sd_status read_program(sd_bytes file)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m;
    sd_status st = frontend_read(a, "mlir", 4, file, &m);

    sd_arena_destroy(a);
    return st;
}

static sd_status write_program(sd_bytes file)
{
    sd_buf text = {0};
    sd_status st = mlir_write(file, &text);

    sd_buf_finish(&text);
    return st;
}

static void each(const odd *o, size_t n, sd_status (*f)(sd_bytes))
{
    for (size_t i = 0; i < n; i++) {
        sd_buf b = program(&o[i], NULL);

        want_error(f(view(&b)), o[i].want);
        sd_buf_finish(&b);
    }
}

/* ---- attributes and types ---- */

static const odd entries[] = {
    {.attr = BYTES(VHLO, V(99)),
     .want = "vhlo attribute code 99 in a program of hand is not known"},
    {.attr = BYTES(BUILTIN, V(99)),
     .want = "builtin attribute code 99 in a program of hand is not known"},
    {.attr = BYTES(BUILTIN, V(6), V(MY_TYPE)),
     .type = BYTES(VHLO, V(99)),
     .want = "vhlo type code 99 in a program of hand is not known"},
    {.attr = BYTES(AS_TEXT, '1'), .want = "an attribute that is kept as text"},
    {.attr = BYTES(BUILTIN, V(0), V(1), V(99)),
     .want = "attribute 99, where there are 8"},
    {.attr = BYTES(BUILTIN, V(6), V(99)), .want = "type 99, where there are 4"},
    {.attr = BYTES(BUILTIN, V(6), 0x10, 0, 0, 0, 0x20), /* 2^32 */
     .want = "an attribute: expected a number below 2^31 of an entry"},
    {.attr = BYTES(BUILTIN, V(7), V(0)),
     .want = "an attribute: expected the end of the attribute"},
    {.attr = BYTES(BUILTIN, V(6), V(MY_TYPE)),
     .type = BYTES(VHLO, V(33), V(0)),
     .want = "a type: expected the end of the type"},
    {.attr = BYTES(BUILTIN, V(0), V(100)),
     .want = "an attribute: expected as many attributes as there are bytes"},
    {.attr = BYTES(BUILTIN, V(6), V(MY_TYPE)),
     .type = BYTES(VHLO, V(23), V(100)),
     .want = "a type: expected as many types as there are bytes"},
    {.attr = BYTES(BUILTIN, V(6), V(MY_TYPE)),
     .type = BYTES(VHLO, V(20), V(33)),
     .want = "a type: expected a rank of at most 32"},
    {.attr = BYTES(BUILTIN, V(8), V(FUNCTION)),
     .want = "a number of a type that is no number's"},
    {.attr = BYTES(BUILTIN, V(16), V(TENSOR), V(5)),
     .want = "an attribute: expected a resource of bytes"},
    {.attr = BYTES(BUILTIN, V(22), V(KEY), V(5)),
     .want = "an attribute: expected at most four numbers of a place"},
    {.attr = BYTES(STRANGE, V(0)),
     .want = "an attribute of a dialect that is not known"},
    {.attr = BYTES(VHLO, V(10), V(33), S(0), S(0), S(0), S(0), S(0), S(0), S(0),
                   S(0), S(0), S(0), S(0), S(0), S(0), S(0), S(0), S(0), S(0),
                   S(0), S(0), S(0), S(0), S(0), S(0), S(0), S(0), S(0), S(0),
                   S(0), S(0), S(0), S(0), S(0), S(0), S(0), V(0)),
     .want = "an attribute: expected at most 32 tuple indices at offset "},
    {.attr = BYTES(BUILTIN, V(8), V(MY_TYPE), V(3), S(1), S(1), S(1)),
     .type = BYTES(BUILTIN, V(0), 0x02, 0x08), /* i128 */
     .want = "an attribute: expected as many words as the number is wide"},
    {.attr = BYTES(SDY, V(99)),
     .want = "sdy attribute code 99 in a program of hand is not known"},
    {.attr = BYTES(SDY, V(11), V(1), V(KEY + 6)),
     .nlist = 6,
     .want = "an attribute or type of more than "},
    {.attr = BYTES(SDY, V(8), V(1), MINUS_ONE),
     .want = "an attribute: expected a factor that is not negative"},
    {.attr = BYTES(SDY, V(17), V(UNKNOWN), V(0), V(0), V(0), S(3)),
     .want = "an attribute: expected a kind of reduction from 0 to 2"},
    {.attr = BYTES(BUILTIN, V(1), V(1), V(UNKNOWN), V(NAME)),
     .want = "a location where the key of a dictionary should be"},
    {.attr = BYTES(BUILTIN, V(10), V(NAME), V(UNKNOWN)),
     .want = "a string where a location should be"},
    {.attr = BYTES(BUILTIN, V(14), V(UNKNOWN), V(UNKNOWN)),
     .want = "a location where a location's name should be"},
    {.attr = BYTES(BUILTIN, V(4), V(UNKNOWN)),
     .want = "a location where a symbol's name should be"},
    {.attr = BYTES(VHLO, V(3), V(9)),
     .want = "comparison_direction has no value 9"},
    {.attr = BYTES(BUILTIN, V(0), V(1), V(MINE)),
     .want = "an attribute that is nested deeper than 32"},
    {.attr = BYTES(SDY, V(11), V(1), V(MINE)),
     .want = "an attribute that is nested deeper than 32"},
    {.attr = BYTES(BUILTIN, V(6), V(MY_TYPE)),
     .type = BYTES(VHLO, V(1), V(MY_TYPE)),
     .want = "a type that is nested deeper than 16"},
    {.attr = BYTES(BUILTIN, V(6), V(MY_TYPE)),
     .type = BYTES(BUILTIN, V(10)),
     .want = "writing a memref is not done"},
    {.attr = BYTES(BUILTIN, V(6), V(MY_TYPE)),
     .type = BYTES(STRANGE, V(0)),
     .want = "writing a type of another dialect is not done"},
    {.attr = BYTES(BUILTIN, V(6), V(MY_TYPE)),
     .type = BYTES(VHLO, V(30), V(1), V(F32), V(F32), V(0), S(0), S(1), V(1),
                   S(0), V(2), S(0), S(0)),
     .want = "a type: expected as many zero points as scales"},
};

static const odd right;

static void names_what_an_entry_is(void **state)
{
    sd_buf b = program(&right, NULL);

    (void)state;
    assert_null(read_program(view(&b)));
    assert_null(write_program(view(&b)));
    sd_buf_finish(&b);
    each(entries, SD_COUNTOF(entries), write_program);
}

/* ---- sections, operations ---- */

static const odd sections[] = {
    {.all = BYTES(S_COUNT + S_STRINGS, V(100)),
     .want = "100 strings in 0 bytes"},
    {.all = BYTES(S_COUNT + S_STRINGS, V(1), V(1), 'x'),
     .want = "the string section: expected a string that ends in NUL"},
    {.more = BYTES(S_STRINGS, 0),
     .want = "the string section: expected the end of the strings"},
    {.all = BYTES(S_DIALECTS, V(100)), .want = "100 dialects in 0 bytes"},
    {.all = BYTES(S_DIALECTS, V(1), FLAG(40, 0)),
     .want = "string 40, where there are 12"},
    {.more = BYTES(S_DIALECTS, V(9), V(1)),
     .want = "the dialect section: expected a dialect of the list and its "
             "names"},
    {.all = BYTES(S_OFFSETS, V(100), V(1)),
     .want = "100 attributes and 1 types in 0 bytes"},
    {.all = BYTES(S_OFFSETS, V(1), V(0), V(9), V(1)),
     .want = "the index of attributes and types: expected a dialect of the "
             "list and its entries"},
    {.more = BYTES(S_OFFSETS, 0),
     .want =
         "the index of attributes and types: expected the end of the index"},
    {.more = BYTES(S_ENTRIES, 0),
     .want = "the attributes and types: expected the end of the entries"},
    {.all = BYTES(S_PROPERTIES, V(100)), .want = "100 properties in 0 bytes"},
    {.all = BYTES(S_PROPERTIES, V(2), V(6), V(NO_ATTRS), V(FUNC_TYPE),
                  V(NO_ATTRS), V(NAME), V(EMPTY), V(0), V(2), V(0), V(0)),
     .want = "func_v1: a property entry: expected the end of the properties"},
    {.all = {.of = S_PROPERTIES}, .want = "section 8 is missing"},
    {.more = BYTES(S_COUNT, 0x80 | S_IR, V(0), V(3)),
     .want = "the section table: expected an alignment that is a power of two"},
    {.more = BYTES(S_COUNT, 0x80 | S_IR, V(0), 0x02, 0x40, 0, 0),
     .want = "the section table: expected padding 0xCB"},
    {.more = BYTES(S_IR, 0),
     .want = "the IR section: expected the end of the IR"},
    {.more = BYTES(S_RESOURCE_OFFSETS, V(0), V(BUILTIN), V(100)),
     .want = "the resource section: expected as many resources as there are "
             "bytes"},
    {.more = BYTES(S_RESOURCE_OFFSETS, V(0), V(BUILTIN), V(1), V(11), V(40), 0),
     .want = "the resources: expected more bytes"},
    {.more = BYTES(S_COUNT, S_IR, V(0)), .want = ": a second section 4"},
    {.more = BYTES(S_COUNT, 12, V(0)), .want = ": section 12 is not known"},
    {.all = BYTES(S_IR, FLAG(1, 0), V(40), 0, V(UNKNOWN)),
     .want = "the IR section: expected an operation name of the table"},
    {.all = BYTES(S_IR, FLAG(1, 0), V(OP_RETURN), 0, V(UNKNOWN)),
     .want = "stablehlo.return where a module of one block should be"},
    {.all = BYTES(S_IR, FLAG(1, 0), V(OP_FUNC), 0, V(UNKNOWN)),
     .want = "func_v1 without its property entry"},
    {.all = BYTES(S_IR, FLAG(1, 0), V(OP_ABS), HAS_RESULTS, V(UNKNOWN), V(100)),
     .want = "the IR section: expected as many things as there are bytes"},
    {.all = BYTES(S_IR, FLAG(1, 0), V(OP_ABS), HAS_RESULTS, V(UNKNOWN), V(1),
                  V(TENSOR)),
     .want = "the IR section: expected no more values than announced"},
    {.all = BYTES(S_IR, FLAG(1, 0), V(OP_ABS), HAS_OPERANDS, V(UNKNOWN), V(1),
                  V(9)),
     .want = "the IR section: expected a value of the scope"},
    {.all =
         BYTES(S_IR, FLAG(1, 0), V(OP_ABS), HAS_SUCCESSORS, V(UNKNOWN), V(1)),
     .want = "abs_v1 branches to 1 blocks: control flow between blocks is not "
             "StableHLO"},
    {.all = BYTES(S_IR, FLAG(1, 0), V(OP_ABS), HAS_REGIONS, V(UNKNOWN),
                  FLAG(1, 0), V(1), V(2), FLAG(0, 0)),
     .want = "the IR section: expected as many values as announced"},
    {.all = BYTES(S_IR, FLAG(1, 0), V(OP_ABS), HAS_REGIONS, V(UNKNOWN),
                  FLAG(1, 0), V(1), 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0),
     .want = "the IR section: expected fewer values than there are bytes"},
    {.all = BYTES(S_IR, FLAG(1, 0), V(OP_ABS), HAS_REGIONS, V(UNKNOWN),
                  FLAG(1, 1), S_PROPERTIES, V(0)),
     .want = "the IR section: expected a nested IR section"},
    {.all = BYTES(S_IR, FLAG(1, 0), V(OP_ABS), HAS_REGIONS, V(UNKNOWN),
                  FLAG(1, 1), S_IR, V(2), V(0), V(0)),
     .want = "the IR section: expected the end of the nested IR"},
    /* the value of the next operation, in a region; the operation's own */
    {.body =
         BYTES(0, V(3), FLAG(3, 1), V(1), FLAG(TENSOR, 0), 0, V(OP_CASE),
               HAS_RESULTS | HAS_OPERANDS | HAS_REGIONS, V(UNKNOWN), V(1),
               V(TENSOR), V(1), V(0), FLAG(1, 0), V(1), V(0), FLAG(1, 0),
               V(OP_RETURN), HAS_OPERANDS, V(UNKNOWN), V(1), V(2), V(OP_ABS),
               HAS_RESULTS | HAS_OPERANDS, V(UNKNOWN), V(1), V(TENSOR), V(1),
               V(0), V(OP_RETURN), HAS_OPERANDS, V(UNKNOWN), V(1), V(2)),
     .want = "stablehlo.case: its region uses a value that is not defined "
             "there"},
    {.body =
         BYTES(0, V(2), FLAG(2, 1), V(1), FLAG(TENSOR, 0), 0, V(OP_ABS),
               HAS_RESULTS | HAS_OPERANDS, V(UNKNOWN), V(1), V(TENSOR), V(1),
               V(1), V(OP_RETURN), HAS_OPERANDS, V(UNKNOWN), V(1), V(1)),
     .want = "stablehlo.abs: operand 0 is used where it is not defined"},
};

static void names_what_a_section_lacks(void **state)
{
    static const uint8_t cut[] = {0x4d, 0x4c, 0xef, 0x52, V(6), 'h', 'a'};

    (void)state;
    want_error(read_program((sd_bytes){cut, sizeof cut}),
               "the header: expected a producer's name that ends in NUL at "
               "offset 5");
    each(sections, SD_COUNTOF(sections), read_program);
}

static void refuses_ir(sd_buf *ir, const char *want)
{
    sd_buf b = program(&right, ir);

    want_error(read_program(view(&b)), want);
    sd_buf_finish(&b);
}

static void wants_one_module_of_some_depth(void **state)
{
    sd_buf ir = {0};

    (void)state;
    PUT(&ir, FLAG(0, 0));
    refuses_ir(&ir, "the IR must hold one module");
    ir = (sd_buf){0};
    for (int i = 0; i <= MLIR_MAX_DEPTH; i++)
        PUT(&ir, FLAG(1, 0), V(OP_ABS), HAS_REGIONS, V(UNKNOWN), FLAG(1, 0),
            V(1), V(0));
    PUT(&ir, FLAG(0, 0));
    refuses_ir(&ir, "regions are nested deeper than 96");
}

/* ---- writing, and what takes a long text ---- */

static sd_bytes text(const char *s)
{
    return (sd_bytes){(const uint8_t *)s, strlen(s)};
}

static void names_what_it_cannot_write(void **state)
{
    (void)state;
    want_error(write_program(text("\"my.op\"() : () -> ()")),
               "writing operation my.op, which is not known, is not done");
    want_error(
        write_program(text(
            "func.func @main(%a: tensor<1x2x5xf32>, %k: tensor<3x2x2xf32>) {\n"
            "%0 = \"stablehlo.convolution\"(%a, %k) <{\n"
            "  input_batch_dimension = 0 : i64,\n"
            "  input_feature_dimension = 0 : i64,\n"
            "  input_spatial_dimensions = array<i64: 2>}>\n"
            "  : (tensor<1x2x5xf32>, tensor<3x2x2xf32>) -> tensor<1x3x4xf32>\n"
            "return\n}")),
        "dimension 0 of a convolution has 2 meanings, not one");
}

/* f0 calls f1, which calls f2, ... */
static void bounds_calls_in_calls(void **state)
{
    enum { DEEP = 300 };
    sd_buf b = {0};

    (void)state;
    for (int i = 0; i < DEEP; i++)
        sd_buf_fmt(&b, "func.func @f%d() { call @f%d() : () -> () return }\n",
                   i, i + 1);
    sd_buf_fmt(&b, "func.func @f%d() { return }\n", DEEP);
    sd_buf_str(&b, "func.func @main() { call @f0() : () -> () return }\n");
    want_error(read_program(view(&b)),
               "func.func (-:256): calls and regions are nested deeper than "
               "256");
    sd_buf_finish(&b);
}

static void bounds_places_in_places(void **state)
{
    enum { DEEP = 20000 };
    sd_buf b = {0};

    (void)state;
    sd_buf_str(&b, "#loc0 = loc(\"a\")\n");
    for (int i = 1; i <= DEEP; i++)
        sd_buf_fmt(&b, "#loc%d = loc(\"a\"(#loc%d))\n", i, i - 1);
    sd_buf_fmt(&b, "module {} loc(#loc%d)", DEEP);
    want_error(write_program(view(&b)),
               "a location that is nested deeper than 16384");
    sd_buf_finish(&b);
}

/* Texts grow by realloc, which here fails above a size; the linker makes calls
 * of realloc calls of this one. */
static size_t most = SIZE_MAX;

void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_realloc(void *p, size_t n)
{
    return n > most ? NULL : __real_realloc(p, n);
}

static void says_when_a_text_has_no_memory(void **state)
{
    sd_buf b = {0};
    sd_status st;

    (void)state;
    for (int i = 0; i < 4000; i++)
        sd_buf_fmt(&b, "func.func @f%d() { return }\n", i);
    most = 1 << 16;
    st = write_program(view(&b));
    most = SIZE_MAX;
    want_error(st, "no memory for the program's text");
    sd_buf_finish(&b);
}

/* ---- compile options ---- */

static const struct {
    uint8_t n, at[8];
    const char *want;
} options[] = {
    {2, {0x00, 0x00}, "compile_options: expected a field's tag at offset 1"},
    {2, {0x0b, 0x00}, "compile_options: expected a field of a known wire type"},
    {3, {0x1a, 1, 0x0b}, "a field of a known wire type at offset 3"},
    {5, {0x1a, 3, 0x1a, 1, 0x0b}, "a field of a known wire type at offset 5"},
    {3, {0x3a, 1, 0x7b}, "a field of a known wire type at offset 3"},
    {3, {0x3a, 1, 0x08}, "a field of its wire type at offset 3"},
    {6, {0x1a, 4, 0x92, 1, 1, 0x80}, "compile_options: expected a varint"},
    {7,
     {0x1a, 5, 0x20, 0x80, 0x80, 0x80, 1},
     "num_replicas is 2097152, which should be 0 to 1048576"},
    {7,
     {0x1a, 5, 0x28, 0x80, 0x80, 0x80, 1},
     "num_partitions is 2097152, which should be 0 to 1048576"},
};

static void names_what_an_option_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(options); i++) {
        sd_arena *a = sd_arena_create();
        frontend_options o = {0};

        want_error(frontend_read_options(
                       a, (sd_bytes){options[i].at, options[i].n}, &o),
                   options[i].want);
        sd_arena_destroy(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_what_an_entry_is),
        cmocka_unit_test(names_what_a_section_lacks),
        cmocka_unit_test(wants_one_module_of_some_depth),
        cmocka_unit_test(names_what_it_cannot_write),
        cmocka_unit_test(bounds_calls_in_calls),
        cmocka_unit_test(bounds_places_in_places),
        cmocka_unit_test(says_when_a_text_has_no_memory),
        cmocka_unit_test(names_what_an_option_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
