/* Types and attributes as MLIR spells them: in the text that we write, in the
 * configuration of a typed custom call, in messages.  Constants are in
 * mlir_print_dense.c. */
#include "mlir.h"

#include <assert.h>

static void print(mlir_reader *r, const mlir_attr *at, sd_buf *b, int depth);

void mlir_too_deep(mlir_reader *r, const char *thing, int limit)
{
    mlir_fail(r, SD_INVALID, "%s that is nested deeper than %d", thing, limit);
}

/* A byte of the file is a few of text, however long a constant is; more comes
 * from what is written again wherever it is referred to. */
bool mlir_too_long(mlir_reader *r, size_t text)
{
    size_t most = MLIR_ATTR_TEXT + 16 * r->file.len;

    if (text > most)
        mlir_fail(r, SD_INVALID,
                  "an attribute or type of more than %zu bytes of text", most);
    return text > most;
}

/* ---- words ---- */

void mlir_print_quoted(sd_bytes s, sd_buf *b)
{
    sd_buf_str(b, "\"");
    for (size_t i = 0; i < s.len; i++) {
        uint8_t ch = s.at[i];

        if (ch == '"' || ch == '\\')
            sd_buf_fmt(b, "\\%c", ch);
        else if (ch < 0x20 || ch >= 0x7f)
            sd_buf_fmt(b, "\\%02X", ch);
        else
            sd_buf_u8(b, ch);
    }
    sd_buf_str(b, "\"");
}

static bool is_bare(sd_bytes s)
{
    for (size_t i = 0; i < s.len; i++) {
        uint8_t ch = s.at[i];
        bool letter =
            (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
        bool more = (ch >= '0' && ch <= '9') || ch == '$' || ch == '.';

        if (!letter && !(i && more))
            return false;
    }
    return s.len > 0;
}

void mlir_print_key(sd_bytes s, sd_buf *b)
{
    if (is_bare(s))
        sd_buf_add(b, s.at, s.len);
    else
        mlir_print_quoted(s, b);
}

void mlir_print_symbol(sd_bytes s, sd_buf *b)
{
    sd_buf_str(b, "@");
    mlir_print_key(s, b);
}

/* ---- types ---- */

void mlir_dims_print(const mlir_type *t, sd_buf *b)
{
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] == INT64_MIN)
            sd_buf_str(b, "?x");
        else
            sd_buf_fmt(b, "%" PRId64 "x", t->dim[i]);
}

static void print_elem(const mlir_type *t, sd_buf *b)
{
    static const char *const floats[SD_DTYPE_COUNT] = {
        [SD_BF16] = "bf16",
        [SD_F16] = "f16",
        [SD_F32] = "f32",
        [SD_F64] = "f64",
        [SD_F4E2M1FN] = "f4E2M1FN",
        [SD_F6E2M3FN] = "f6E2M3FN",
        [SD_F6E3M2FN] = "f6E3M2FN",
        [SD_F8E3M4] = "f8E3M4",
        [SD_F8E4M3] = "f8E4M3",
        [SD_F8E4M3FN] = "f8E4M3FN",
        [SD_F8E4M3B11FNUZ] = "f8E4M3B11FNUZ",
        [SD_F8E4M3FNUZ] = "f8E4M3FNUZ",
        [SD_F8E5M2] = "f8E5M2",
        [SD_F8E5M2FNUZ] = "f8E5M2FNUZ",
        [SD_F8E8M0FNU] = "f8E8M0FNU"};
    sd_kind k = sd_dtype_kind(t->dtype);

    if (t->text)
        sd_buf_str(b, t->text);
    else if (k == SD_K_SINT || k == SD_K_PRED)
        sd_buf_fmt(b, "i%d", t->width);
    else if (k == SD_K_UINT)
        sd_buf_fmt(b, "ui%d", t->width);
    else if (k == SD_K_COMPLEX)
        sd_buf_fmt(b, "complex<%s>", floats[sd_dtype_part(t->dtype)]);
    else
        sd_buf_str(b, floats[t->dtype]);
}

static void print_types(mlir_reader *r, const uint32_t *list, int n, sd_buf *b)
{
    for (int i = 0; i < n; i++) {
        sd_buf_str(b, i ? ", " : "");
        mlir_print_type(r, list[i], b);
    }
}

static void print_function(mlir_reader *r, const mlir_type *t, sd_buf *b)
{
    const uint32_t *out = t->list + t->ninput;
    int n = t->nlist - t->ninput;
    bool one = n == 1 && mlir_type_at(r, out[0])->kind != MLIR_T_FUNCTION;

    sd_buf_str(b, "(");
    print_types(r, t->list, t->ninput, b);
    sd_buf_str(b, one ? ") -> " : ") -> (");
    print_types(r, out, n, b);
    sd_buf_str(b, one ? "" : ")");
}

static void print_kind(mlir_reader *r, const mlir_type *t, sd_buf *b)
{
    switch (t->kind) {
    case MLIR_T_ELEM:
        print_elem(t, b);
        break;
    case MLIR_T_TENSOR:
        sd_buf_str(b, "tensor<");
        mlir_dims_print(t, b);
        mlir_print_type(r, t->elem, b);
        if (t->encoding) {
            sd_buf_str(b, ", ");
            print(r, mlir_attr_at(r, t->encoding - 1), b, 0);
        }
        sd_buf_str(b, ">");
        break;
    case MLIR_T_TUPLE:
        sd_buf_str(b, "tuple<");
        print_types(r, t->list, t->nlist, b);
        sd_buf_str(b, ">");
        break;
    case MLIR_T_FUNCTION:
        print_function(r, t, b);
        break;
    case MLIR_T_TOKEN:
        sd_buf_str(b, "!stablehlo.token");
        break;
    case MLIR_T_NONE:
        sd_buf_str(b, "none");
        break;
    default:
        if (t->text)
            sd_buf_str(b, t->text);
        else
            mlir_fail(r, SD_UNIMPLEMENTED, "writing a %s is not done", t->what);
    }
}

void mlir_print_type(mlir_reader *r, uint64_t type, sd_buf *b)
{
    const mlir_type *t = mlir_type_at(r, type);

    if (r->st || mlir_too_long(r, b->len - r->print_from))
        return;
    r->depth++;
    print_kind(r, t, b);
    r->depth--;
}

void mlir_type_print(mlir_reader *r, uint64_t type, sd_buf *b)
{
    size_t outer = r->print_from; /* of another text */

    r->print_from = b->len;
    mlir_print_type(r, type, b);
    r->print_from = outer;
}

/* ---- the rest ---- */

static void print_list_of(mlir_reader *r, const mlir_attr *at, sd_buf *b,
                          int depth)
{
    for (int i = 0; i < at->nlist; i++) {
        sd_buf_str(b, i ? ", " : "");
        print(r, mlir_attr_at(r, at->list[i]), b, depth + 1);
    }
}

static void print_dict(mlir_reader *r, const mlir_attr *at, sd_buf *b,
                       int depth)
{
    sd_buf_str(b, "{");
    for (int i = 0; i + 1 < at->nlist; i += 2) {
        const mlir_attr *k = mlir_attr_at(r, at->list[i]);
        const mlir_attr *v = mlir_attr_at(r, at->list[i + 1]);

        sd_buf_str(b, i ? ", " : "");
        mlir_print_key(mlir_key(r, k), b);
        if (v->kind == MLIR_A_UNIT)
            continue;
        sd_buf_str(b, " = ");
        print(r, v, b, depth + 1);
    }
    sd_buf_str(b, "}");
}

/* #stablehlo.result_accuracy: the one whose fields are not the operation's */
static void print_struct(mlir_reader *r, const mlir_attr *at, sd_buf *b,
                         int depth)
{
    sd_buf_fmt(b, "#stablehlo.%s<", mlir_structs[at->code].name);
    for (int i = 0; i + 1 < at->nlist; i += 2) {
        const mlir_attr *v = mlir_attr_at(r, at->list[i + 1]);
        sd_dtype t;

        sd_buf_fmt(b, "%s%s = ", i ? ", " : "",
                   mlir_text(r, mlir_attr_at(r, at->list[i])));
        if ((v->kind == MLIR_A_INT || v->kind == MLIR_A_FLOAT) &&
            mlir_dtype(r, v->type, &t))
            mlir_print_scalar(t, &v->bits, b);
        else
            print(r, v, b, depth + 1);
    }
    sd_buf_str(b, ">");
}

static void print_nums(const int64_t *v, int n, sd_buf *b)
{
    sd_buf_str(b, "[");
    sd_buf_ints(b, v, n, ", ");
    sd_buf_str(b, "]");
}

static void print_alias(const mlir_attr *at, sd_buf *b)
{
    int nout = (int)at->num[1];

    sd_buf_str(b, "#stablehlo.output_operand_alias<output_tuple_indices = ");
    print_nums(at->num + 2, nout, b);
    sd_buf_fmt(b, ", operand_index = %" PRId64 ", operand_tuple_indices = ",
               at->num[0]);
    print_nums(at->num + 2 + nout, at->nnum - 2 - nout, b);
    sd_buf_str(b, ">");
}

static void print_enum(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    const mlir_enum_row *e = &mlir_enums[at->code];
    const char *v = at->bits < SD_COUNTOF(e->value) ? e->value[at->bits] : NULL;

    if (at->code == MLIR_E_API)
        sd_buf_fmt(b, "%" PRIu64 " : i32", at->bits);
    else if (!v)
        mlir_fail(r, SD_INVALID, "%s has no value %" PRIu64, e->name, at->bits);
    else if (at->code == MLIR_E_BOOL)
        sd_buf_str(b, v);
    else if (at->code == MLIR_E_ACCURACY)
        sd_buf_fmt(b, "#stablehlo.%s<%s>", e->name, v);
    else
        sd_buf_fmt(b, "#%s<%s %s>", at->str ? "chlo" : "stablehlo", e->name, v);
}

static void print_symbol(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    for (int i = 0; i < at->nlist; i++) {
        const mlir_attr *x = mlir_attr_at(r, at->list[i]);

        sd_buf_str(b, i ? "::" : "");
        if (x->kind == MLIR_A_SYMBOL && x->nlist == 1)
            x = mlir_attr_at(r, x->list[0]);
        if (x->kind == MLIR_A_STRING)
            mlir_print_symbol(mlir_str(r, x->str), b);
        else
            mlir_want(r, x, "a symbol's name");
    }
}

static void print_loc_name(mlir_reader *r, uint64_t name, sd_buf *b)
{
    const mlir_attr *at = mlir_attr_at(r, name);

    if (at->kind == MLIR_A_STRING)
        mlir_print_quoted(mlir_str(r, at->str), b);
    else
        mlir_want(r, at, "a location's name");
}

static void print_place(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    const int64_t *v = at->num;

    print_loc_name(r, at->list[0], b);
    sd_buf_fmt(b, ":%" PRId64 ":%" PRId64, at->nnum ? v[0] : 0,
               at->nnum > 1 ? v[1] : 0);
    if (at->nnum == 3)
        sd_buf_fmt(b, " to :%" PRId64, v[2]);
    if (at->nnum == 4)
        sd_buf_fmt(b, " to %" PRId64 ":%" PRId64, v[2], v[3]);
}

/* A location without the word loc and its parentheses. */
static void print_loc(mlir_reader *r, const mlir_attr *at, sd_buf *b, int depth)
{
    const mlir_attr *x;
    int n = at->nlist - at->code;

    switch (at->kind) {
    case MLIR_A_LOC_UNKNOWN:
        sd_buf_str(b, "unknown");
        break;
    case MLIR_A_LOC_FILE:
        print_place(r, at, b);
        break;
    case MLIR_A_LOC_NAME:
        print_loc_name(r, at->list[0], b);
        x = mlir_attr_at(r, at->list[1]);
        if (x->kind == MLIR_A_LOC_UNKNOWN)
            break;
        sd_buf_str(b, "(");
        mlir_print_loc(r, at->list[1], b, depth + 1);
        sd_buf_str(b, ")");
        break;
    case MLIR_A_LOC_CALL:
        sd_buf_str(b, "callsite(");
        mlir_print_loc(r, at->list[0], b, depth + 1);
        sd_buf_str(b, " at ");
        mlir_print_loc(r, at->list[1], b, depth + 1);
        sd_buf_str(b, ")");
        break;
    default:
        sd_buf_str(b, "fused");
        if (at->code) {
            sd_buf_str(b, "<");
            print(r, mlir_attr_at(r, at->list[n]), b, depth + 1);
            sd_buf_str(b, ">");
        }
        sd_buf_str(b, "[");
        for (int i = 0; i < n; i++) {
            sd_buf_str(b, i ? ", " : "");
            mlir_print_loc(r, at->list[i], b, depth + 1);
        }
        sd_buf_str(b, "]");
    }
}

void mlir_print_loc_line(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    r->print_from = b->len;
    print_loc(r, at, b, 0);
}

void mlir_print_loc(mlir_reader *r, uint64_t loc, sd_buf *b, int depth)
{
    const mlir_attr *at = mlir_attr_at(r, loc);

    if (!depth)
        r->print_from = b->len;
    if (!mlir_is_loc(at))
        mlir_want(r, at, "a location");
    else if (depth > MLIR_ATTR_DEPTH)
        mlir_too_deep(r, "a location", MLIR_ATTR_DEPTH);
    else if (r->loc_alias && r->loc_alias(r, loc, b))
        return;
    else if (!r->st && !mlir_too_long(r, b->len - r->print_from))
        print_loc(r, at, b, depth);
}

/* In another attribute: what it refers to has no lines of its own there. */
static void print_inner_loc(mlir_reader *r, const mlir_attr *at, sd_buf *b,
                            int depth)
{
    bool (*alias)(mlir_reader *, uint64_t, sd_buf *) = r->loc_alias;

    r->loc_alias = NULL;
    sd_buf_str(b, "loc(");
    print_loc(r, at, b, depth);
    sd_buf_str(b, ")");
    r->loc_alias = alias;
}

static void print_leaf(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    sd_bytes s;

    switch (at->kind) {
    case MLIR_A_STRING:
        mlir_print_quoted(mlir_str(r, at->str), b);
        if (at->type) {
            sd_buf_str(b, " : ");
            mlir_print_type(r, at->type - 1, b);
        }
        break;
    case MLIR_A_INT:
    case MLIR_A_FLOAT:
        mlir_print_number(r, at, b);
        break;
    case MLIR_A_ENUM:
        print_enum(r, at, b);
        break;
    case MLIR_A_TYPE:
        mlir_print_type(r, at->type, b);
        break;
    case MLIR_A_UNIT:
        sd_buf_str(b, "unit");
        break;
    case MLIR_A_DENSE:
    case MLIR_A_DENSE_ARRAY:
    case MLIR_A_DENSE_STRINGS:
    case MLIR_A_SPARSE:
        mlir_print_dense(r, at, b);
        break;
    case MLIR_A_SYMBOL:
        print_symbol(r, at, b);
        break;
    case MLIR_A_ALIAS:
        print_alias(at, b);
        break;
    case MLIR_A_OPAQUE:
    case MLIR_A_MESH_AXES:
        s = mlir_str(r, at->str);
        sd_buf_add(b, s.at, s.len);
        break;
    default: /* a location that text defines further down */
        assert(at->kind == MLIR_A_NONE);
        sd_buf_str(b, "loc(?)");
    }
}

static void print(mlir_reader *r, const mlir_attr *at, sd_buf *b, int depth)
{
    if (depth > MLIR_ATTR_DEPTH)
        mlir_too_deep(r, "an attribute", MLIR_ATTR_DEPTH);
    if (r->st || mlir_too_long(r, b->len - r->print_from))
        return;
    if (mlir_is_loc(at)) {
        print_inner_loc(r, at, b, depth);
    } else if (at->kind == MLIR_A_ARRAY) {
        sd_buf_str(b, "[");
        print_list_of(r, at, b, depth);
        sd_buf_str(b, "]");
    } else if (at->kind == MLIR_A_DICT) {
        print_dict(r, at, b, depth);
    } else if (at->kind == MLIR_A_STRUCT) {
        print_struct(r, at, b, depth);
    } else {
        print_leaf(r, at, b);
    }
}

void mlir_attr_print(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    size_t outer = r->print_from;

    r->print_from = b->len;
    print(r, at, b, 0);
    r->print_from = outer;
}
