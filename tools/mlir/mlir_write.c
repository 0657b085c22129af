/* A module as StableHLO text in generic form: every operation by its quoted
 * name, every location kept.  VHLO's flat attributes are put together again as
 * StableHLO's, and what equals StableHLO's default is left out, by the columns
 * of vhlo.def. */
#include "mlir_write.h"

#include "mlir.h"

enum { LOC_CHAIN = 1 << 14 };

typedef struct {
    mlir_reader *r;
    sd_buf *b;
    int nvalue;
    bool comma;            /* an attribute stands before the next */
    sd_vec(uint32_t) line; /* locations that get a line, as they are met */
} writer;

/* ---- values ---- */

/* Casts between dialects' types are none in text. */
static const mlir_value *behind_casts(mlir_reader *r, const mlir_value *v)
{
    for (int i = 0; v->def && i < MLIR_MAX_DEPTH; i++) {
        const mlir_op *op = v->def;
        const vhlo_row *row = r->name.at[op->name].row;

        if (!row || strcmp(row->name, "builtin.unrealized_conversion_cast") ||
            op->noperand != op->nresult)
            break;
        v = op->operand[v - op->result];
    }
    return v;
}

static void put_value(writer *w, const mlir_value *v)
{
    v = behind_casts(w->r, v);
    if (v->def && v->def->nresult > 1)
        sd_buf_fmt(w->b, "%%%d#%d", v->def->result[0].stamp,
                   (int)(v - v->def->result));
    else
        sd_buf_fmt(w->b, "%%%d", v->stamp);
}

static void put_types(writer *w, mlir_value *const *list, mlir_value *array,
                      int n)
{
    for (int i = 0; i < n; i++) {
        sd_buf_str(w->b, i ? ", " : "");
        mlir_type_print(
            w->r, (list ? behind_casts(w->r, list[i]) : &array[i])->type, w->b);
    }
}

/* ---- locations ---- */

/* "#loc7": they are numbered as they are met.  False: unknown, which has no
 * line. */
static bool put_loc_alias(mlir_reader *r, uint64_t loc, sd_buf *b)
{
    uint64_t k = sd_key(sd_map_get(r->loc_line, loc + 1));

    if (mlir_attr_at(r, loc)->kind == MLIR_A_LOC_UNKNOWN)
        return false;
    if (!k) {
        k = (uint64_t)++r->nloc;
        sd_map_set(r->loc_line, loc + 1, (void *)(uintptr_t)k);
    }
    sd_buf_fmt(b, "#loc%" PRIu64, k);
    return true;
}

static void put_loc(writer *w, uint32_t loc)
{
    if (loc == MLIR_ABSENT) { /* without it a parser puts its own */
        sd_buf_str(w->b, " loc(unknown)");
        return;
    }
    if (!sd_map_has(w->r->loc_line, loc + 1))
        *sd_push(w->r->a, &w->line) = loc;
    sd_buf_str(w->b, " loc(");
    mlir_print_loc(w->r, loc, w->b, 0);
    sd_buf_str(w->b, ")");
}

/* Lines of the locations, children first: an alias is defined before use. */
static void put_line(writer *w, uint32_t loc, sd_map *done, int depth)
{
    const mlir_attr *at = mlir_attr_at(w->r, loc);
    int from = at->kind == MLIR_A_LOC_NAME;
    int to = at->kind == MLIR_A_LOC_FILE ? 0 : at->nlist;

    if (at->kind == MLIR_A_LOC_FUSED)
        to -= at->code;
    if (depth > LOC_CHAIN)
        mlir_too_deep(w->r, "a location", LOC_CHAIN);
    if (w->r->st || !mlir_is_loc(at) || sd_map_has(done, loc + 1))
        return;
    sd_map_set(done, loc + 1, w);
    for (int i = from; i < to; i++)
        put_line(w, at->list[i], done, depth + 1);
    if (at->kind == MLIR_A_LOC_UNKNOWN)
        return;
    put_loc_alias(w->r, loc, w->b);
    sd_buf_str(w->b, " = loc(");
    mlir_print_loc_line(w->r, at, w->b);
    sd_buf_str(w->b, ")\n");
}

/* ---- attributes ---- */

static void put_key(writer *w, const char *name, size_t len)
{
    sd_buf_str(w->b, w->comma ? ", " : "");
    w->comma = true;
    mlir_print_key((sd_bytes){(const uint8_t *)name, len}, w->b);
}

static const mlir_attr *field_of(writer *w, const mlir_op *op, const char *name)
{
    return mlir_inherent(w->r, op, name);
}

static void put_ints(writer *w, const mlir_attr *at)
{
    hlo_dims d = mlir_ints(w->r, at, 1 << 20);

    sd_buf_str(w->b, "[");
    sd_buf_ints(w->b, d.at, d.n, ", ");
    sd_buf_str(w->b, "]");
}

/* Fields that are zero or empty are left out, but in these two. */
static void put_fields(writer *w, const mlir_op *op, mlir_struct_id id)
{
    bool all = id == MLIR_S_ALGORITHM || id == MLIR_S_CHANNEL, comma = false;
    const char *const *f = mlir_structs[id].field;

    for (; *f; f++) {
        const mlir_attr *at = field_of(w, op, *f);
        bool list = at->kind == MLIR_A_DENSE || at->kind == MLIR_A_DENSE_ARRAY;

        if (!all && (list ? !at->blob.len : !at->bits))
            continue;
        sd_buf_fmt(w->b, "%s%s = ", comma ? ", " : "", mlir_field_text(*f));
        comma = true;
        if (list)
            put_ints(w, at);
        else if (at->kind == MLIR_A_INT)
            sd_buf_fmt(w->b, "%" PRId64, mlir_int(w->r, at));
        else if (at->kind == MLIR_A_NONE)
            sd_buf_str(w->b, "0");
        else
            mlir_attr_print(w->r, at, w->b);
    }
}

/* [b, f, 0, 1]: which dimension is what.  f: batch and feature's fields, then
 * that of the spatial list. */
static void put_conv_part(writer *w, const mlir_op *op, const char *const f[3],
                          const char *letter)
{
    hlo_dims d = mlir_ints(w->r, field_of(w, op, f[2]), SD_MAX_RANK);
    int64_t special[2] = {mlir_int(w->r, field_of(w, op, f[0])),
                          mlir_int(w->r, field_of(w, op, f[1]))};

    sd_buf_str(w->b, "[");
    for (int i = 0; i < d.n + 2 && !w->r->st; i++) {
        int at = -1, uses = (special[0] == i) + (special[1] == i);

        for (int k = 0; k < d.n; k++)
            if (d.at[k] == i) {
                at = k;
                uses++;
            }
        sd_buf_str(w->b, i ? ", " : "");
        if (special[0] == i || special[1] == i)
            sd_buf_u8(w->b, (uint8_t)letter[special[1] == i]);
        else
            sd_buf_fmt(w->b, "%d", at);
        if (uses != 1)
            mlir_fail(w->r, SD_INVALID,
                      "dimension %d of a convolution has %d meanings, not one",
                      i, uses);
    }
    sd_buf_str(w->b, "]");
}

static void put_conv(writer *w, const mlir_op *op)
{
    static const char *const glue[] = {"", "x", "->"};
    static const char *const letters[] = {"bf", "io", "bf"};

    for (int i = 0; i < 3; i++) {
        sd_buf_str(w->b, glue[i]);
        put_conv_part(w, op, mlir_structs[MLIR_S_CONV].field + (size_t)3 * i,
                      letters[i]);
    }
}

/* The optional ones: no channel, no algorithm. */
static bool has_struct(writer *w, const mlir_op *op, mlir_struct_id id)
{
    const vhlo_row *row = w->r->name.at[op->name].row;
    const char *first = mlir_structs[id].field[0];
    const mlir_attr *at;
    vhlo_prop p;

    if (vhlo_prop_index(row, first, strlen(first), &p) < 0)
        return false;
    if (id == MLIR_S_DOT) /* its fields are a ragged product's, too */
        return !has_struct(w, op, MLIR_S_RAGGED);
    at = field_of(w, op, first);
    if (id == MLIR_S_CHANNEL)
        return at->bits || vhlo_prop_index(row, "channel_type", 12, &p) >= 0;
    if (id == MLIR_S_ALGORITHM)
        return at->kind == MLIR_A_TYPE &&
               mlir_type_at(w->r, at->type)->kind != MLIR_T_NONE;
    return true;
}

static void put_structs(writer *w, const mlir_op *op)
{
    for (int id = 0; id < MLIR_S_ACCURACY; id++) {
        const mlir_struct_row *s = &mlir_structs[id];

        if (!has_struct(w, op, (mlir_struct_id)id))
            continue;
        put_key(w, s->attr, strlen(s->attr));
        sd_buf_fmt(w->b, " = #%s.%s<",
                   id == MLIR_S_RAGGED ? "chlo" : "stablehlo", s->name);
        if (id == MLIR_S_CONV)
            put_conv(w, op);
        else
            put_fields(w, op, (mlir_struct_id)id);
        sd_buf_str(w->b, ">");
    }
}

static bool is_field(const vhlo_prop *p)
{
    for (int id = 0; id < MLIR_S_ACCURACY; id++)
        for (const char *const *f = mlir_structs[id].field; *f; f++)
            if (strlen(*f) == (size_t)p->len &&
                memcmp(*f, p->name, (size_t)p->len) == 0)
                return true;
    return false;
}

static bool is_empty(mlir_reader *r, const mlir_attr *at)
{
    switch (at->kind) {
    case MLIR_A_STRING:
        return mlir_str(r, at->str).len == 0;
    case MLIR_A_ARRAY:
    case MLIR_A_DICT:
        return at->nlist == 0;
    case MLIR_A_DENSE:
    case MLIR_A_DENSE_ARRAY:
        return at->blob.len == 0;
    default:
        return false;
    }
}

/* All its numbers are v. */
static bool is_all(mlir_reader *r, const mlir_attr *at, int64_t v)
{
    hlo_dims d;

    if (at->kind == MLIR_A_ENUM || at->kind == MLIR_A_INT)
        return mlir_int(r, at) == v;
    if (at->kind != MLIR_A_DENSE && at->kind != MLIR_A_DENSE_ARRAY)
        return false;
    d = mlir_ints(r, at, 4 * SD_MAX_RANK);
    for (int i = 0; i < d.n; i++)
        if (d.at[i] != v)
            return false;
    return true;
}

/* Layouts are given for operands and results, or for neither. */
static bool all_empty(mlir_reader *r, const mlir_op *op, char dflt)
{
    const char *s = r->name.at[op->name].row->props;
    vhlo_prop p;

    for (int i = 0; vhlo_next_prop(&s, &p); i++)
        if (p.dflt == dflt && op->prop[i] != MLIR_ABSENT &&
            !is_empty(r, mlir_attr_at(r, op->prop[i])))
            return false;
    return true;
}

static bool is_default(mlir_reader *r, const mlir_op *op, const mlir_attr *at,
                       char dflt)
{
    if (r->is_text) /* it says what it wants to say */
        return false;
    switch (dflt) {
    case 'l':
        return all_empty(r, op, dflt);
    case '0':
        return mlir_is_zero(r, at);
    case '1':
        return is_all(r, at, 1);
    case '-':
        return is_all(r, at, -1);
    case 'e':
        return is_empty(r, at);
    default:
        return false;
    }
}

static void put_symbols(writer *w, const mlir_attr *at)
{
    const mlir_attr *x;

    if (at->kind == MLIR_A_STRING) {
        mlir_print_symbol(mlir_str(w->r, at->str), w->b);
    } else if (at->kind == MLIR_A_ARRAY) {
        sd_buf_str(w->b, "[");
        for (int i = 0; i < at->nlist; i++) {
            sd_buf_str(w->b, i ? ", " : "");
            x = mlir_attr_at(w->r, at->list[i]);
            if (x->kind == MLIR_A_STRING)
                mlir_print_symbol(mlir_str(w->r, x->str), w->b);
            else
                mlir_attr_print(w->r, x, w->b);
        }
        sd_buf_str(w->b, "]");
    } else {
        mlir_attr_print(w->r, at, w->b);
    }
}

/* array<i64: ...> of a dense tensor, dense array or array of integers */
static void put_array(writer *w, const mlir_attr *at)
{
    const mlir_type *t;
    hlo_dims v;
    bool is_bool;

    if (at->kind == MLIR_A_DENSE_ARRAY) {
        mlir_attr_print(w->r, at, w->b);
        return;
    }
    t = at->kind == MLIR_A_DENSE ? mlir_type_at(w->r, at->type) : NULL;
    is_bool = t && t->kind == MLIR_T_TENSOR &&
              mlir_type_at(w->r, t->elem)->width == 1;
    v = mlir_ints(w->r, at, 1 << 20);
    sd_buf_fmt(w->b, "array<%s%s", is_bool ? "i1" : "i64", v.n ? ": " : "");
    for (int i = 0; i < v.n; i++) {
        sd_buf_str(w->b, i ? ", " : "");
        if (is_bool)
            sd_buf_str(w->b, v.at[i] ? "true" : "false");
        else
            sd_buf_fmt(w->b, "%" PRId64, v.at[i]);
    }
    sd_buf_str(w->b, ">");
}

static void put_prop(writer *w, const vhlo_prop *p, const mlir_attr *at)
{
    put_key(w, p->name, (size_t)p->len);
    if (p->kind == 'u' || at->kind == MLIR_A_UNIT)
        return;
    sd_buf_str(w->b, " = ");
    if (p->kind == 'd')
        put_array(w, at);
    else if (p->kind == 's' || p->kind == 'S')
        put_symbols(w, at);
    else
        mlir_attr_print(w->r, at, w->b);
}

static void put_props(writer *w, const mlir_op *op, const vhlo_row *row)
{
    const char *s = row->props;
    size_t start = w->b->len;
    vhlo_prop p;

    sd_buf_str(w->b, " <{");
    w->comma = false;
    put_structs(w, op);
    for (int i = 0; vhlo_next_prop(&s, &p) && !w->r->st; i++) {
        const mlir_attr *at;

        if (op->prop[i] == MLIR_ABSENT || is_field(&p))
            continue;
        at = mlir_attr_at(w->r, op->prop[i]);
        if (!is_default(w->r, op, at, p.dflt))
            put_prop(w, &p, at);
    }
    if (w->comma)
        sd_buf_str(w->b, "}>");
    else
        w->b->len = start;
}

/* Before bytecode's version 5 the dictionary holds the inherent ones too. */
static void put_dict(writer *w, const mlir_op *op, const vhlo_row *row)
{
    const mlir_attr *d, *v;
    size_t start = w->b->len;
    vhlo_prop p;

    if (op->dict < 0)
        return;
    d = mlir_attr_at(w->r, (uint64_t)op->dict);
    sd_buf_str(w->b, " {");
    w->comma = false;
    for (int i = 0; i + 1 < d->nlist && d->kind == MLIR_A_DICT; i += 2) {
        const mlir_attr *k = mlir_attr_at(w->r, d->list[i]);
        sd_bytes s;

        s = mlir_key(w->r, k);
        if (w->r->st)
            return;
        if (vhlo_prop_index(row, (const char *)s.at, s.len, &p) >= 0)
            continue;
        put_key(w, (const char *)s.at, s.len);
        v = mlir_attr_at(w->r, d->list[i + 1]);
        if (v->kind == MLIR_A_UNIT)
            continue;
        sd_buf_str(w->b, " = ");
        mlir_attr_print(w->r, v, w->b);
    }
    if (w->comma)
        sd_buf_str(w->b, "}");
    else
        w->b->len = start;
}

/* ---- operations ---- */

static void put_op(writer *w, mlir_op *op, int depth, bool in_func);

static void indent(writer *w, int depth)
{
    for (int i = 0; i < depth; i++)
        sd_buf_str(w->b, "  ");
}

static void put_block(writer *w, mlir_block *b, int k, int depth, bool in_func)
{
    if (b->narg || k) {
        indent(w, depth);
        sd_buf_fmt(w->b, "^bb%d", k);
        for (int i = 0; i < b->narg; i++) {
            b->arg[i].stamp = w->nvalue++;
            sd_buf_fmt(w->b, "%s%%%d: ", i ? ", " : "(", b->arg[i].stamp);
            mlir_type_print(w->r, b->arg[i].type, w->b);
            put_loc(w, b->arg_loc ? b->arg_loc[i] : MLIR_ABSENT);
        }
        sd_buf_str(w->b, b->narg ? "):\n" : ":\n");
    }
    for (mlir_op *op = b->first; op && !w->r->st; op = op->next)
        put_op(w, op, depth + 1, in_func);
}

static void put_regions(writer *w, mlir_op *op, int depth, bool is_func)
{
    for (int i = 0; i < op->nregion; i++) {
        sd_buf_str(w->b, i ? ", {\n" : " ({\n");
        for (int k = 0; k < op->region[i]->nblock && !w->r->st; k++)
            put_block(w, op->region[i]->block[k], k, depth, is_func);
        indent(w, depth);
        sd_buf_str(w->b, "}");
    }
    sd_buf_str(w->b, op->nregion ? ")" : "");
}

static void put_results(writer *w, mlir_op *op)
{
    for (int i = 0; i < op->nresult; i++)
        op->result[i].stamp = w->nvalue;
    if (op->nresult == 1)
        sd_buf_fmt(w->b, "%%%d = ", w->nvalue);
    else if (op->nresult)
        sd_buf_fmt(w->b, "%%%d:%d = ", w->nvalue, op->nresult);
    w->nvalue += op->nresult > 0;
}

static bool result_needs_parens(writer *w, const mlir_op *op)
{
    return op->nresult != 1 ||
           mlir_type_at(w->r, op->result[0].type)->kind == MLIR_T_FUNCTION;
}

static void put_op(writer *w, mlir_op *op, int depth, bool in_func)
{
    const mlir_op_name *n = &w->r->name.at[op->name];
    const vhlo_row *row = n->row;
    bool parens;

    if (!row) {
        mlir_fail(w->r, SD_UNIMPLEMENTED,
                  "writing operation %.*s, which is not known, is not done",
                  (int)n->name.len, (const char *)n->name.at);
        return;
    }
    if (strcmp(row->name, "builtin.unrealized_conversion_cast") == 0)
        return;
    indent(w, depth);
    put_results(w, op);
    sd_buf_str(w->b, "\"");
    vhlo_text_name(row, in_func, w->b);
    sd_buf_str(w->b, "\"(");
    for (int i = 0; i < op->noperand; i++) {
        sd_buf_str(w->b, i ? ", " : "");
        put_value(w, op->operand[i]);
    }
    sd_buf_str(w->b, ")");
    put_props(w, op, row);
    put_regions(w, op, depth, strcmp(row->name, "func_v1") == 0);
    put_dict(w, op, row);
    parens = result_needs_parens(w, op);
    sd_buf_str(w->b, " : (");
    put_types(w, op->operand, NULL, op->noperand);
    sd_buf_str(w->b, parens ? ") -> (" : ") -> ");
    put_types(w, NULL, op->result, op->nresult);
    sd_buf_str(w->b, parens ? ")" : "");
    put_loc(w, op->loc);
    sd_buf_str(w->b, "\n");
}

static void write_module(mlir_reader *r, sd_buf *b)
{
    sd_buf body = {0};
    writer w = {.r = r, .b = &body};
    sd_map *done = sd_map_create(r->a);

    if (r->st)
        return;
    r->loc_line = sd_map_create(r->a);
    r->loc_alias = put_loc_alias;
    put_op(&w, r->module, 0, false);
    w.b = b;
    for (int i = 0; i < w.line.n && !r->st; i++)
        put_line(&w, w.line.at[i], done, 0);
    r->loc_alias = NULL;
    sd_buf_add(b, body.at, body.len);
    if (!r->st && (b->oom || body.oom))
        mlir_fail(r, SD_EXHAUSTED, "no memory for the program's text");
    sd_buf_finish(&body);
}

sd_status mlir_write(sd_bytes program, sd_buf *out)
{
    sd_arena *a = sd_arena_create();
    mlir_reader r = {.a = a, .out = a};

    mlir_read_either(&r, program);
    write_module(&r, out);
    sd_arena_destroy(a);
    return r.st;
}
