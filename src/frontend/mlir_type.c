/* Types of builtin and vhlo, decoded when asked for. */
#include "mlir.h"

typedef struct {
    uint8_t code;
    sd_dtype dtype;
} float_code;
typedef struct {
    uint8_t code;
    const char *what;
    uint8_t width;
} other_code;

/* vhlo: what has an element type of ours */
static const float_code vhlo_elem[] = {
    {0, SD_PRED},        {2, SD_BF16},
    {3, SD_F16},         {4, SD_F32},
    {5, SD_F64},         {6, SD_F8E4M3FN},
    {7, SD_F8E5M2},      {10, SD_S4},
    {11, SD_S8},         {12, SD_S16},
    {13, SD_S32},        {14, SD_S64},
    {15, SD_U4},         {16, SD_U8},
    {17, SD_U16},        {18, SD_U32},
    {19, SD_U64},        {27, SD_F8E4M3FNUZ},
    {28, SD_F8E5M2FNUZ}, {29, SD_F8E4M3B11FNUZ},
    {31, SD_S2},         {32, SD_U2},
    {35, SD_F8E4M3},     {36, SD_F8E3M4},
    {37, SD_F4E2M1FN},   {40, SD_F8E8M0FNU}};
/* and what has none */
static const other_code vhlo_other[] = {
    {24, "quantized type", 0}, {25, "unranked tensor", 0},
    {26, "witness type", 0},   {30, "quantized type", 0},
    {34, "tf32", 19},          {38, "f6E2M3FN", 6},
    {39, "f6E3M2FN", 6},       {41, "buffer type", 0},
    {42, "future type", 0}};
static const float_code builtin_elem[] = {
    {3, SD_BF16}, {4, SD_F16}, {5, SD_F32}, {6, SD_F64}};
static const other_code builtin_other[] = {{7, "f80", 80},
                                           {8, "f128", 128},
                                           {10, "memref", 0},
                                           {11, "memref", 0},
                                           {16, "memref", 0},
                                           {17, "memref", 0},
                                           {18, "unranked tensor", 0},
                                           {19, "vector", 0},
                                           {20, "vector", 0}};

static void set_elem(mlir_type *t, sd_dtype d)
{
    sd_kind k = sd_dtype_kind(d);

    t->kind = MLIR_T_ELEM;
    t->dtype = d;
    t->width = sd_dtype_table[d].bits;
    t->is_signed = k == SD_K_SINT;
}

static bool find_elem(mlir_type *t, const float_code *table, size_t n,
                      uint64_t code)
{
    for (size_t i = 0; i < n; i++)
        if (table[i].code == code) {
            set_elem(t, table[i].dtype);
            return true;
        }
    return false;
}

static bool find_other(mlir_type *t, const other_code *table, size_t n,
                       uint64_t code)
{
    for (size_t i = 0; i < n; i++)
        if (table[i].code == code) {
            t->kind = MLIR_T_OTHER;
            t->what = table[i].what;
            t->width = table[i].width;
            return true;
        }
    return false;
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
        list[(*n)++] = (uint32_t)mlir_varint(c);
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
    t->elem = (uint32_t)mlir_varint(c);
}

static void read_complex(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    const mlir_type *part = mlir_type_at(r, mlir_varint(c));

    if (part->kind == MLIR_T_ELEM &&
        (part->dtype == SD_F32 || part->dtype == SD_F64)) {
        set_elem(t, sd_dtype_complex(part->dtype));
        return;
    }
    t->kind = MLIR_T_OTHER;
    t->what = "complex type of a part other than f32 or f64";
}

static void read_builtin_int(sd_cursor *c, mlir_type *t)
{
    static const struct {
        uint8_t width;
        sd_dtype s, u;
    } ints[] = {{1, SD_PRED, SD_PRED}, {2, SD_S2, SD_U2},
                {4, SD_S4, SD_U4},     {8, SD_S8, SD_U8},
                {16, SD_S16, SD_U16},  {32, SD_S32, SD_U32},
                {64, SD_S64, SD_U64}};
    uint64_t v = mlir_varint(c), width = v >> 2;

    for (size_t i = 0; i < SD_COUNTOF(ints); i++)
        if (ints[i].width == width) {
            set_elem(t, (v & 3) == 2 ? ints[i].u : ints[i].s);
            return;
        }
    t->kind = MLIR_T_OTHER;
    t->what = "integer of unusual width";
    t->width = width <= 4096 ? (int)width : 0;
}

static void read_builtin(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    uint64_t code = mlir_varint(c);

    if (find_elem(t, builtin_elem, SD_COUNTOF(builtin_elem), code) ||
        find_other(t, builtin_other, SD_COUNTOF(builtin_other), code))
        return;
    switch (code) {
    case 0:
        read_builtin_int(c, t);
        break;
    case 1:
        set_elem(t, SD_S64); /* index */
        break;
    case 2:
        read_function(r, c, t);
        break;
    case 9:
        read_complex(r, c, t);
        break;
    case 12:
        t->kind = MLIR_T_NONE;
        break;
    case 13:
        read_tensor(r, c, t);
        break;
    case 14:
        mlir_varint(c); /* the encoding */
        read_tensor(r, c, t);
        break;
    case 15:
        t->kind = MLIR_T_TUPLE;
        t->list = read_list(r, c, &t->nlist);
        break;
    default:
        t->kind = MLIR_T_OTHER;
        t->what = "builtin type of an unknown code";
        c->at = c->end;
    }
}

static void read_vhlo(mlir_reader *r, sd_cursor *c, mlir_type *t)
{
    uint64_t code = mlir_varint(c);

    if (find_elem(t, vhlo_elem, SD_COUNTOF(vhlo_elem), code))
        return;
    if (find_other(t, vhlo_other, SD_COUNTOF(vhlo_other), code)) {
        c->at = c->end; /* their fields are not needed */
        return;
    }
    switch (code) {
    case 1:
        read_complex(r, c, t);
        break;
    case 8:
        read_function(r, c, t);
        break;
    case 9:
        set_elem(t, SD_S64); /* index */
        break;
    case 20:
        read_tensor(r, c, t);
        break;
    case 21:
        mlir_varint(c); /* bounds of dynamic dimensions, refused as such */
        read_tensor(r, c, t);
        break;
    case 22:
        t->kind = MLIR_T_TOKEN;
        break;
    case 23:
        t->kind = MLIR_T_TUPLE;
        t->list = read_list(r, c, &t->nlist);
        break;
    case 33:
        t->kind = MLIR_T_NONE;
        break;
    default:
        mlir_fail(r, SD_UNIMPLEMENTED,
                  "vhlo type code %" PRIu64 " in a program of %s", code,
                  r->producer);
    }
}

const mlir_type *mlir_type_at(mlir_reader *r, uint64_t index)
{
    static const mlir_type bad = {.kind = MLIR_T_BAD, .what = "bad type"};
    mlir_entry *e;
    mlir_type *t;
    sd_cursor c;

    if (index >= r->ntype || r->depth > MLIR_TYPE_DEPTH) {
        mlir_fail(r, SD_INVALID, "type %" PRIu64 " of %zu%s", index, r->ntype,
                  index < r->ntype ? ": nested too deep" : "");
        return &bad;
    }
    e = &r->type[index];
    if (e->memo)
        return e->memo;
    t = sd_arena_new(r->a, mlir_type);
    c = mlir_cursor(r, e->data);
    r->depth++;
    if (!e->coded ||
        (e->dialect != MLIR_D_VHLO && e->dialect != MLIR_D_BUILTIN))
        t->kind = MLIR_T_OTHER, t->what = "type of another dialect";
    else if (e->dialect == MLIR_D_VHLO)
        read_vhlo(r, &c, t);
    else
        read_builtin(r, &c, t);
    r->depth--;
    if (e->coded && t->kind != MLIR_T_OTHER && !c.bad && sd_cursor_left(&c))
        sd_cursor_fail(&c, "the end of the type");
    mlir_check(r, &c, "a type");
    if (r->st)
        return &bad;
    e->memo = t;
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

/* ---- shapes ---- */

static const sd_shape *tensor_shape(mlir_reader *r, const mlir_type *t)
{
    const mlir_type *e = mlir_type_at(r, t->elem);
    sd_status st;

    if (e->kind != MLIR_T_ELEM) {
        mlir_fail(r, SD_UNIMPLEMENTED, "tensor of %s",
                  e->what ? e->what : "what is no element type");
        return NULL;
    }
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] == INT64_MIN) {
            mlir_fail(r, SD_UNIMPLEMENTED,
                      "dynamic dimension %d of a tensor of rank %d", i,
                      t->rank);
            return NULL;
        }
    st = sd_shape_check(e->dtype, t->rank, t->dim);
    if (st) {
        if (r->st)
            sd_status_free(st);
        else
            r->st = st;
        return NULL;
    }
    return sd_shape_make(r->out, e->dtype, t->rank, t->dim);
}

static const sd_shape *tuple_shape(mlir_reader *r, mlir_type *t)
{
    const sd_shape **s = sd_arena_array(r->a, const sd_shape *, t->nlist + 1);

    for (int i = 0; i < t->nlist; i++) {
        if (!(s[i] = mlir_shape(r, t->list[i])))
            return NULL;
        t->nleaf += mlir_type_at(r, t->list[i])->nleaf;
        if (t->nleaf > MLIR_TUPLE_LEAVES) {
            mlir_fail(r, SD_INVALID, "a tuple of more than %d arrays",
                      MLIR_TUPLE_LEAVES);
            return NULL;
        }
    }
    return sd_shape_tuple(r->out, t->nlist, s);
}

const sd_shape *mlir_shape(mlir_reader *r, uint64_t type)
{
    mlir_type *t = (mlir_type *)mlir_type_at(r, type);

    if (r->st || t->shape)
        return r->st ? NULL : t->shape;
    if (r->depth > MLIR_TYPE_DEPTH) {
        mlir_fail(r, SD_INVALID, "type %" PRIu64 " is nested too deep", type);
        return NULL;
    }
    r->depth++;
    switch (t->kind) {
    case MLIR_T_TENSOR:
        t->nleaf = 1;
        t->shape = tensor_shape(r, t);
        break;
    case MLIR_T_TOKEN:
        t->nleaf = 1;
        t->shape = sd_shape_make(r->out, SD_TOKEN, 0, NULL);
        break;
    case MLIR_T_TUPLE:
        t->nleaf = 1;
        t->shape = tuple_shape(r, t);
        break;
    default:
        mlir_fail(r, SD_UNIMPLEMENTED, "a value of %s",
                  t->what ? t->what : "a type that is no tensor");
    }
    r->depth--;
    return t->shape;
}

/* As MLIR spells it, for the text of custom-call configurations. */
void mlir_type_print(mlir_reader *r, uint64_t type, sd_buf *b)
{
    const mlir_type *t = mlir_type_at(r, type);
    sd_kind k;

    if (t->kind == MLIR_T_TENSOR && r->depth <= MLIR_TYPE_DEPTH) {
        sd_buf_str(b, "tensor<");
        for (int i = 0; i < t->rank; i++)
            sd_buf_fmt(b, "%" PRId64 "x", t->dim[i]);
        r->depth++;
        mlir_type_print(r, t->elem, b);
        r->depth--;
        sd_buf_str(b, ">");
        return;
    }
    if (t->kind != MLIR_T_ELEM) {
        sd_buf_str(b, t->what ? t->what : "none");
        return;
    }
    k = sd_dtype_kind(t->dtype);
    if (k == SD_K_SINT || k == SD_K_PRED)
        sd_buf_fmt(b, "i%d", t->width);
    else if (k == SD_K_UINT)
        sd_buf_fmt(b, "ui%d", t->width);
    else if (k == SD_K_COMPLEX)
        sd_buf_fmt(b, "complex<%s>", sd_dtype_name(sd_dtype_part(t->dtype)));
    else
        sd_buf_str(b, sd_dtype_name(t->dtype));
}
