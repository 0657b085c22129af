/* Types of builtin and vhlo, decoded when asked for. */
#include "mlir.h"

/* Floats by their codes in either dialect, -1: none.  SD_TUPLE: no element
 * type of ours. */
typedef struct {
    const char *name;
    int8_t vhlo, builtin;
    sd_dtype dtype;
    uint8_t width;
} float_row;
static const float_row floats[] = {
    {"bf16", 2, 3, SD_BF16, 16},
    {"f16", 3, 4, SD_F16, 16},
    {"f32", 4, 5, SD_F32, 32},
    {"f64", 5, 6, SD_F64, 64},
    {"f80", -1, 7, SD_TUPLE, 80},
    {"f128", -1, 8, SD_TUPLE, 128},
    {"tf32", 34, -1, SD_TUPLE, 19},
    {"f8E4M3FN", 6, 24, SD_F8E4M3FN, 8},
    {"f8E5M2", 7, 22, SD_F8E5M2, 8},
    {"f8E4M3FNUZ", 27, 26, SD_F8E4M3FNUZ, 8},
    {"f8E5M2FNUZ", 28, 25, SD_F8E5M2FNUZ, 8},
    {"f8E4M3B11FNUZ", 29, 27, SD_F8E4M3B11FNUZ, 8},
    {"f8E4M3", 35, 23, SD_F8E4M3, 8},
    {"f8E3M4", 36, 28, SD_F8E3M4, 8},
    {"f4E2M1FN", 37, 29, SD_F4E2M1FN, 4},
    {"f6E2M3FN", 38, 30, SD_F6E2M3FN, 6},
    {"f6E3M2FN", 39, 31, SD_F6E3M2FN, 6},
    {"f8E8M0FNU", 40, 32, SD_F8E8M0FNU, 8}};

/* Integers: signed in meaning, as builtin's signless ones are. */
typedef struct {
    uint8_t width;
    int8_t vhlo, vhlo_unsigned;
    sd_dtype s, u;
} int_row;
static const int_row ints[] = {
    {1, 0, -1, SD_PRED, SD_TUPLE}, {2, 31, 32, SD_S2, SD_U2},
    {4, 10, 15, SD_S4, SD_U4},     {8, 11, 16, SD_S8, SD_U8},
    {16, 12, 17, SD_S16, SD_U16},  {32, 13, 18, SD_S32, SD_U32},
    {64, 14, 19, SD_S64, SD_U64}};

void mlir_set_elem(mlir_type *t, sd_dtype d)
{
    sd_kind k = sd_dtype_kind(d);

    t->kind = MLIR_T_ELEM;
    t->dtype = d;
    t->width = sd_dtype_table[d].bits;
    t->is_signed = k == SD_K_SINT;
}

static void set_other(mlir_type *t, const char *what, const char *text)
{
    t->kind = MLIR_T_OTHER;
    t->what = what;
    t->text = text;
}

/* text: how it is written; finished. */
static void set_written(mlir_type *t, const char *what, sd_buf *text)
{
    set_other(t, what, sd_buf_take(text));
}

static void set_float(mlir_type *t, const float_row *f)
{
    if (f->dtype != SD_TUPLE) {
        mlir_set_elem(t, f->dtype);
        return;
    }
    set_other(t, f->name, f->name);
    t->width = f->width;
}

static void set_index(mlir_type *t)
{
    mlir_set_elem(t, SD_S64);
    t->text = "index";
}

/* mark: ' ', 's', 'u' as in i8, si8, ui8; text: its spelling */
static void set_int(mlir_type *t, uint64_t width, char mark, const char *text)
{
    for (size_t i = 0; i < SD_COUNTOF(ints); i++) {
        sd_dtype d = mark == 'u' ? ints[i].u : ints[i].s;

        if (ints[i].width == width && d != SD_TUPLE) {
            mlir_set_elem(t, d);
            t->text = mark == 's' ? text : NULL;
            return;
        }
    }
    set_other(t, "integer of unusual width", text);
    t->width = width <= 4096 ? (int)width : 0;
    t->is_signed = mark != 'u';
}

bool mlir_type_of_name(sd_bytes name, mlir_type *out)
{
    const char *s = (const char *)name.at;
    size_t at = 0, mark = name.len && (s[0] == 's' || s[0] == 'u');
    uint64_t width = 0;

    *out = (mlir_type){0};
    for (size_t i = 0; i < SD_COUNTOF(floats); i++)
        if (strlen(floats[i].name) == name.len &&
            memcmp(floats[i].name, s, name.len) == 0) {
            set_float(out, &floats[i]);
            return true;
        }
    if (name.len == 5 && memcmp(s, "index", 5) == 0) {
        set_index(out);
        return true;
    }
    if (name.len == 4 && memcmp(s, "none", 4) == 0) {
        out->kind = MLIR_T_NONE;
        return true;
    }
    if (name.len < mark + 2 || s[mark] != 'i' || s[mark + 1] == '0')
        return false;
    for (at = mark + 1; at < name.len; at++) {
        if (s[at] < '0' || s[at] > '9' || width > 4096)
            return false;
        width = width * 10 + (uint64_t)(s[at] - '0');
    }
    set_int(out, width, mark ? s[0] : ' ', s);
    return true;
}

static const uint32_t *read_list(mlir_reader *r, sd_cursor *c, int *n)
{
    uint64_t count = mlir_varint(c);
    uint32_t *list;

    *n = 0;
    if (count > sd_cursor_left(c)) {
        sd_cursor_fail(c, "as many types as there are bytes");
        return NULL;
    }
    list = sd_arena_array(r->a, uint32_t, count + 1);
    for (uint64_t i = 0; i < count; i++)
        list[(*n)++] = mlir_index(c);
    return list;
}

static void read_function(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    int nin, nout;
    const uint32_t *in = read_list(r, c, &nin), *out = read_list(r, c, &nout);
    uint32_t *all = sd_arena_array(r->a, uint32_t, nin + nout + 1);

    if (nin)
        memcpy(all, in, sizeof *all * (size_t)nin);
    if (nout)
        memcpy(all + nin, out, sizeof *all * (size_t)nout);
    t->kind = MLIR_T_FUNCTION;
    t->list = all;
    t->ninput = nin;
    t->nlist = nin + nout;
}

static void read_tensor(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    uint64_t rank = mlir_varint(c);
    int64_t *dim;

    if (rank > SD_MAX_RANK) {
        sd_cursor_fail(c, "a rank of at most " SD_STR(SD_MAX_RANK));
        return;
    }
    dim = sd_arena_array(r->a, int64_t, rank + 1);
    for (uint64_t i = 0; i < rank; i++)
        dim[i] = mlir_svarint(c);
    t->kind = MLIR_T_TENSOR;
    t->rank = (int)rank;
    t->dim = dim;
    t->elem = mlir_index(c);
}

static void read_complex(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    uint32_t elem = mlir_index(c);
    const mlir_type *part = mlir_type_at(r, elem);
    sd_buf b = {.arena = r->a};

    if (part->kind == MLIR_T_ELEM &&
        (part->dtype == SD_F32 || part->dtype == SD_F64)) {
        mlir_set_elem(t, sd_dtype_complex(part->dtype));
        return;
    }
    sd_buf_str(&b, "complex<");
    mlir_type_print(r, elem, &b);
    sd_buf_str(&b, ">");
    set_written(t, "complex type of a part other than f32 or f64", &b);
}

static void read_builtin_int(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    uint64_t v = mlir_varint(c), width = v >> 2;
    char mark = " su "[v & 3];

    set_int(t, width, mark,
            sd_arena_fmt(r->a, "%si%" PRIu64,
                         mark == 's'   ? "s"
                         : mark == 'u' ? "u"
                                       : "",
                         width));
}

static double read_f64(sd_cursor *c)
{
    uint64_t bits = (uint64_t)mlir_svarint(c);
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

/* i8<-100:100>:f32, the range where it is not the type's own */
static void quant_head(mlir_reader *r, sd_buf *b, bool is_signed,
                       const mlir_type *storage, uint64_t expressed,
                       int64_t axis, const int64_t range[2])
{
    int w = SD_MIN(SD_MAX(storage->width, 1), 32);
    int64_t low = is_signed ? -(INT64_C(1) << (w - 1)) : 0;
    int64_t high = (INT64_C(1) << (is_signed ? w - 1 : w)) - 1;

    sd_buf_fmt(b, "!quant.uniform<%s%d", is_signed ? "i" : "u", storage->width);
    if (range[0] != low || range[1] != high)
        sd_buf_fmt(b, "<%" PRId64 ":%" PRId64 ">", range[0], range[1]);
    sd_buf_str(b, ":");
    mlir_type_print(r, expressed, b);
    if (axis >= 0)
        sd_buf_fmt(b, ":%" PRId64, axis);
    sd_buf_str(b, ", ");
}

static void quant_step(sd_buf *b, double scale, int64_t zero)
{
    sd_buf_fmt(b, "%.16e", scale);
    if (zero)
        sd_buf_fmt(b, ":%" PRId64, zero);
}

static void read_quant(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    bool is_signed = mlir_varint(c) & 1;
    uint64_t expressed;
    sd_buf b = {.arena = r->a};

    t->elem = mlir_index(c);
    expressed = mlir_varint(c);
    double scale = read_f64(c);
    int64_t zero = mlir_svarint(c), range[2] = {mlir_svarint(c)};

    range[1] = mlir_svarint(c);
    quant_head(r, &b, is_signed, mlir_type_at(r, t->elem), expressed, -1,
               range);
    quant_step(&b, scale, zero);
    sd_buf_str(&b, ">");
    set_written(t, "quantized type", &b);
}

static void read_quant_axis(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    bool is_signed = mlir_varint(c) & 1;
    uint64_t expressed, n;
    sd_vec(double) scale = {0};
    sd_buf b = {.arena = r->a};

    t->elem = mlir_index(c);
    expressed = mlir_varint(c);
    int64_t axis = (int64_t)(mlir_varint(c) & INT64_MAX);
    int64_t range[2] = {mlir_svarint(c)};

    range[1] = mlir_svarint(c);
    n = mlir_varint(c);
    for (uint64_t i = 0; i < n && !c->bad; i++)
        *sd_push(r->a, &scale) = read_f64(c);
    if (mlir_varint(c) != n)
        sd_cursor_fail(c, "as many zero points as scales");
    quant_head(r, &b, is_signed, mlir_type_at(r, t->elem), expressed, axis,
               range);
    sd_buf_str(&b, "{");
    for (int i = 0; i < scale.n && !c->bad; i++) {
        sd_buf_str(&b, i ? "," : "");
        quant_step(&b, scale.at[i], mlir_svarint(c));
    }
    sd_buf_str(&b, "}>");
    set_written(t, "quantized type", &b);
}

static void read_unranked(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    sd_buf b = {.arena = r->a};

    t->elem = mlir_index(c);
    sd_buf_str(&b, "tensor<*x");
    mlir_type_print(r, t->elem, &b);
    sd_buf_str(&b, ">");
    set_written(t, "unranked tensor", &b);
}

static void read_buffer(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    sd_buf b = {.arena = r->a};

    read_tensor(r, c, t);
    sd_buf_str(&b, "memref<");
    mlir_dims_print(t, &b);
    mlir_type_print(r, t->elem, &b);
    sd_buf_str(&b, ">");
    set_written(t, "buffer type", &b);
}

static void read_future(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    sd_buf b = {.arena = r->a};

    t->list = read_list(r, c, &t->nlist);
    sd_buf_str(&b, "!stablehlo.future<");
    for (int i = 0; i < t->nlist && !c->bad; i++) {
        sd_buf_str(&b, i ? ", " : "");
        mlir_type_print(r, t->list[i], &b);
    }
    sd_buf_str(&b, ">");
    set_written(t, "future type", &b);
}

static void read_encoded(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    t->encoding = mlir_index(c) + 1; /* and the tensor */
    read_tensor(r, c, t);
}

static void read_tuple(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    t->kind = MLIR_T_TUPLE;
    t->list = read_list(r, c, &t->nlist);
}

static void read_index(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    (void)r, (void)c;
    set_index(t);
}

static void read_none(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    (void)r, (void)c;
    t->kind = MLIR_T_NONE;
}

static void read_token(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    (void)r, (void)c;
    t->kind = MLIR_T_TOKEN;
}

static void read_witness(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    (void)r, (void)c;
    set_other(t, "witness type", "!shape.witness");
}

/* Other types by their codes in either dialect, -1: none.  Without a reader:
 * what no program of ours has. */
static const struct {
    int8_t vhlo, builtin;
    void (*read)(mlir_reader *r, sd_cursor *c, mlir_type *t);
    const char *what;
} others[] = {{-1, 0, read_builtin_int, NULL}, {9, 1, read_index, NULL},
              {8, 2, read_function, NULL},     {1, 9, read_complex, NULL},
              {-1, 10, NULL, "memref"},        {-1, 11, NULL, "memref"},
              {33, 12, read_none, NULL},       {20, 13, read_tensor, NULL},
              {21, 14, read_encoded, NULL},    {23, 15, read_tuple, NULL},
              {-1, 16, NULL, "memref"},        {-1, 17, NULL, "memref"},
              {25, 18, read_unranked, NULL},   {-1, 19, NULL, "vector"},
              {-1, 20, NULL, "vector"},        {22, -1, read_token, NULL},
              {24, -1, read_quant, NULL},      {26, -1, read_witness, NULL},
              {30, -1, read_quant_axis, NULL}, {41, -1, read_buffer, NULL},
              {42, -1, read_future, NULL}};

static bool find_float(mlir_type *t, bool vhlo, uint64_t code)
{
    for (size_t i = 0; i < SD_COUNTOF(floats); i++) {
        int c = vhlo ? floats[i].vhlo : floats[i].builtin;

        if (c >= 0 && (uint64_t)c == code) {
            set_float(t, &floats[i]);
            return true;
        }
    }
    return false;
}

static bool find_vhlo_int(mlir_type *t, uint64_t code)
{
    for (size_t i = 0; i < SD_COUNTOF(ints); i++) {
        bool u = ints[i].vhlo_unsigned >= 0 &&
                 (uint64_t)ints[i].vhlo_unsigned == code;

        if (u || (uint64_t)ints[i].vhlo == code) {
            mlir_set_elem(t, u ? ints[i].u : ints[i].s);
            return true;
        }
    }
    return false;
}

static void read_coded(mlir_reader *r, sd_cursor *c, mlir_type *t, bool vhlo)
{
    const char *what = "builtin type of an unknown code";
    uint64_t code = mlir_varint(c);

    if (find_float(t, vhlo, code) || (vhlo && find_vhlo_int(t, code)))
        return;
    for (size_t i = 0; i < SD_COUNTOF(others); i++) {
        int k = vhlo ? others[i].vhlo : others[i].builtin;

        if (k < 0 || (uint64_t)k != code)
            continue;
        if (others[i].read) {
            others[i].read(r, c, t);
            return;
        }
        what = others[i].what;
    }
    if (vhlo) {
        mlir_not_known(r, "vhlo type", code);
        return;
    }
    set_other(t, what, NULL);
    c->at = c->end;
}

/* Shardy's operations have stablehlo's token, between casts from and to
 * VHLO's. */
static bool is_token(sd_cursor c)
{
    return mlir_varint(&c) == 0 && !c.bad;
}

const mlir_type *mlir_type_at(mlir_reader *r, uint64_t index)
{
    static const mlir_type bad = {.kind = MLIR_T_BAD, .what = "bad type"};
    mlir_entry *e;
    mlir_type *t;
    sd_cursor c;

    if (index >= (uint64_t)r->type.n) {
        mlir_fail(r, SD_INVALID, "type %" PRIu64 ", where there are %d", index,
                  r->type.n);
        return &bad;
    }
    if (r->depth > MLIR_TYPE_DEPTH) {
        mlir_too_deep(r, "a type", MLIR_TYPE_DEPTH);
        return &bad;
    }
    e = &r->type.at[index];
    if (e->memo)
        return e->memo;
    t = sd_arena_new(r->a, mlir_type);
    c = mlir_cursor(r, e->data);
    r->depth++;
    if (e->coded && (e->dialect == MLIR_D_VHLO || e->dialect == MLIR_D_BUILTIN))
        read_coded(r, &c, t, e->dialect == MLIR_D_VHLO);
    else if (e->coded && e->dialect == MLIR_D_STABLEHLO && is_token(c))
        t->kind = MLIR_T_TOKEN, c.at = c.end;
    else
        set_other(t, "type of another dialect", NULL), c.at = c.end;
    r->depth--;
    if (!c.bad && sd_cursor_left(&c))
        sd_cursor_fail(&c, "the end of the type");
    mlir_check(r, &c, "a type");
    if (r->st)
        return &bad;
    r->type.at[index].memo = t; /* the table may have moved */
    return t;
}

bool mlir_dtype(mlir_reader *r, uint64_t type, sd_dtype *out)
{
    const mlir_type *t = mlir_type_at(r, type);

    if (t->kind != MLIR_T_ELEM)
        return false;
    *out = t->dtype;
    return true;
}
