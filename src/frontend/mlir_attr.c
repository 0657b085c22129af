/* Attributes of builtin and vhlo, decoded when asked for.  What has no
 * meaning for one participant (Shardy's, text) is kept as OTHER. */
#include "mlir.h"

const mlir_attr mlir_no_attr = {.kind = MLIR_A_NONE};

/* ---- decoding ---- */

static void read_list(mlir_reader *r, sd_cursor *c, mlir_attr *at, int each)
{
    uint64_t n = mlir_varint(c);
    uint32_t *list;

    if (n > sd_cursor_left(c)) {
        sd_cursor_fail(c, "as many attributes as there are bytes");
        return;
    }
    list = sd_arena_array(r->a, uint32_t, n *(uint64_t)each + 1);
    for (uint64_t i = 0; i < n * (uint64_t)each; i++)
        list[at->nlist++] = (uint32_t)mlir_varint(c);
    at->list = list;
}

/* k attributes in a row */
static void read_children(mlir_reader *r, sd_cursor *c, mlir_attr *at, int k)
{
    uint32_t *list = sd_arena_array(r->a, uint32_t, k);

    for (int i = 0; i < k; i++)
        list[i] = (uint32_t)mlir_varint(c);
    at->list = list;
    at->nlist = k;
}

/* An integer of w bits as the format keeps it, cut to its width. */
static uint64_t read_bits(mlir_reader *r, sd_cursor *c, int w)
{
    uint64_t v;

    if (w <= 0 || w > 64) {
        mlir_fail(r, SD_UNIMPLEMENTED, "a number of %d bits", w);
        return 0;
    }
    if (w <= 8)
        v = sd_read_u8(c);
    else
        v = (uint64_t)mlir_svarint(c);
    return w == 64 ? v : v & ((UINT64_C(1) << w) - 1);
}

static void read_number(mlir_reader *r, sd_cursor *c, mlir_attr *at,
                        mlir_attr_kind kind)
{
    at->kind = kind;
    at->type = (uint32_t)mlir_varint(c);
    at->bits = read_bits(r, c, mlir_type_at(r, at->type)->width);
}

static void read_blob(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    (void)r;
    at->kind = MLIR_A_DENSE;
    at->type = (uint32_t)mlir_varint(c);
    at->blob = sd_read_bytes(c, mlir_varint(c));
}

/* A resource of kind 0: alignment, size, padding, bytes. */
static void read_resource(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    uint64_t h;
    sd_cursor x;

    at->kind = MLIR_A_DENSE;
    at->type = (uint32_t)mlir_varint(c);
    h = mlir_varint(c);
    if (h >= r->nresource || r->resource[h].kind != 0) {
        sd_cursor_fail(c, "a resource of bytes");
        return;
    }
    x = mlir_cursor(r, r->resource[h].data);
    uint64_t align = mlir_varint(&x), size = mlir_varint(&x);

    if (align > 1 && align <= 4096)
        while (!x.bad && (uint64_t)(x.at - r->file.at) % align)
            sd_read_u8(&x);
    at->blob = sd_read_bytes(&x, size);
    mlir_check(r, &x, "a resource");
}

static void read_file_loc(mlir_reader *r, sd_cursor *c, mlir_attr *at,
                          bool range)
{
    read_children(r, c, at, 1);
    at->kind = MLIR_A_LOC_FILE;
    uint64_t n = range ? mlir_varint(c) : 2;

    for (uint64_t i = 0; i < n && i < 4; i++) {
        uint64_t v = mlir_varint(c);

        if (!i)
            at->bits = v;
    }
}

/* builtin: what is a plain list of children, by code */
static bool read_builtin_children(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    switch (at->code) {
    case 0:
        at->kind = MLIR_A_ARRAY;
        read_list(r, c, at, 1);
        return true;
    case 1:
        at->kind = MLIR_A_DICT;
        read_list(r, c, at, 2);
        return true;
    case 10:
        at->kind = MLIR_A_LOC_CALL;
        read_children(r, c, at, 2);
        return true;
    case 12:
        at->kind = MLIR_A_LOC_FUSED;
        read_list(r, c, at, 1);
        return true;
    case 13:
        at->kind = MLIR_A_LOC_FUSED;
        read_list(r, c, at, 1);
        mlir_varint(c); /* the metadata */
        return true;
    case 14:
        at->kind = MLIR_A_LOC_NAME;
        read_children(r, c, at, 2);
        return true;
    default:
        return false;
    }
}

static void read_builtin(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    uint64_t code = mlir_varint(c);

    at->code = (uint8_t)SD_MIN(code, 255);
    if (read_builtin_children(r, c, at))
        return;
    switch (code) {
    case 2:
    case 3:
        at->kind = MLIR_A_STRING;
        at->str = (uint32_t)mlir_varint(c);
        if (code == 3)
            mlir_varint(c); /* its type */
        break;
    case 4: /* a symbol is as good as its name */
        at->kind = MLIR_A_ARRAY;
        read_children(r, c, at, 1);
        break;
    case 6:
        at->kind = MLIR_A_TYPE;
        at->type = (uint32_t)mlir_varint(c);
        break;
    case 7:
        at->kind = MLIR_A_UNIT;
        break;
    case 8:
        read_number(r, c, at, MLIR_A_INT);
        break;
    case 9:
        read_number(r, c, at, MLIR_A_FLOAT);
        break;
    case 11:
        read_file_loc(r, c, at, false);
        break;
    case 15:
        at->kind = MLIR_A_LOC_UNKNOWN;
        break;
    case 16:
        read_resource(r, c, at);
        break;
    case 17:
        at->kind = MLIR_A_DENSE_ARRAY;
        at->type = (uint32_t)mlir_varint(c);
        at->bits = mlir_varint(c);
        at->blob = sd_read_bytes(c, mlir_varint(c));
        break;
    case 18:
        read_blob(r, c, at);
        break;
    case 22:
        read_file_loc(r, c, at, true);
        break;
    default:
        at->kind = MLIR_A_OTHER;
        c->at = c->end;
    }
}

/* result indices, operand, operand's indices -> operand, n, then both */
static void read_alias(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    sd_vec(int64_t) v = {0};
    uint64_t n = mlir_varint(c);

    at->kind = MLIR_A_ALIAS;
    *sd_push(r->a, &v) = 0;
    *sd_push(r->a, &v) = (int64_t)SD_MIN(n, SD_MAX_RANK);
    for (uint64_t i = 0; i < n && !c->bad; i++)
        *sd_push(r->a, &v) = mlir_svarint(c);
    v.at[0] = mlir_svarint(c);
    if (n > SD_MAX_RANK)
        sd_cursor_fail(c, "a short list of tuple indices");
    n = mlir_varint(c);
    for (uint64_t i = 0; i < n && !c->bad; i++)
        *sd_push(r->a, &v) = mlir_svarint(c);
    at->num = v.at;
    at->nnum = v.n;
}

static void read_vhlo(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    uint64_t code = mlir_varint(c);

    at->code = (uint8_t)SD_MIN(code, 255);
    switch (code) {
    case 1:
        at->kind = MLIR_A_ARRAY;
        read_list(r, c, at, 1);
        break;
    case 2: /* bool */
    case 3:
    case 4:
    case 5:
    case 7:
    case 11:
    case 12:
    case 13:
    case 16:
    case 19: /* enums */
        at->kind = MLIR_A_ENUM;
        at->bits = mlir_varint(c);
        break;
    case 6:
        at->kind = MLIR_A_DICT;
        read_list(r, c, at, 2);
        break;
    case 8:
        read_number(r, c, at, MLIR_A_FLOAT);
        break;
    case 9:
        read_number(r, c, at, MLIR_A_INT);
        break;
    case 10:
        read_alias(r, c, at);
        break;
    case 14:
        at->kind = MLIR_A_STRING;
        at->str = (uint32_t)mlir_varint(c);
        break;
    case 15:
        read_blob(r, c, at);
        break;
    case 17:
        at->kind = MLIR_A_TYPE;
        at->type = (uint32_t)mlir_varint(c);
        break;
    case 23:
        at->kind = MLIR_A_MESH_AXES;
        read_children(r, c, at, 2);
        break;
    case 18:
    case 20:
    case 21:
    case 22:
    case 24:
    case 25:
        at->kind = MLIR_A_OTHER;
        c->at = c->end;
        break;
    default:
        mlir_fail(r, SD_UNIMPLEMENTED,
                  "vhlo attribute code %" PRIu64 " in a program of %s", code,
                  r->producer);
    }
}

const mlir_attr *mlir_attr_at(mlir_reader *r, uint64_t index)
{
    mlir_entry *e;
    mlir_attr *at;
    sd_cursor c;

    if (index >= r->nattr) {
        mlir_fail(r, SD_INVALID, "attribute %" PRIu64 " of %zu", index,
                  r->nattr);
        return &mlir_no_attr;
    }
    e = &r->attr[index];
    if (e->memo)
        return e->memo;
    at = sd_arena_new(r->a, mlir_attr);
    c = mlir_cursor(r, e->data);
    if (!e->coded) {
        at->kind = MLIR_A_OTHER;
        c.at = c.end;
    } else if (e->dialect == MLIR_D_VHLO) {
        read_vhlo(r, &c, at);
    } else if (e->dialect == MLIR_D_BUILTIN) {
        read_builtin(r, &c, at);
    } else {
        at->kind = MLIR_A_OTHER;
        c.at = c.end;
    }
    if (!c.bad && !r->st && sd_cursor_left(&c))
        sd_cursor_fail(&c, "the end of the attribute");
    mlir_check(r, &c, "an attribute");
    if (r->st)
        return &mlir_no_attr;
    e->memo = at;
    return at;
}

/* ---- strings and dictionaries ---- */

/* A symbol's name is one step down. */
static const mlir_attr *string_of(mlir_reader *r, const mlir_attr *at)
{
    if (at->kind == MLIR_A_ARRAY && at->code == 4 && at->nlist == 1)
        at = mlir_attr_at(r, at->list[0]);
    return at->kind == MLIR_A_STRING ? at : &mlir_no_attr;
}

bool mlir_is_string(mlir_reader *r, const mlir_attr *at, const char *s)
{
    sd_bytes b;

    at = string_of(r, at);
    if (at->kind != MLIR_A_STRING)
        return false;
    b = mlir_str(r, at->str);
    return b.len == strlen(s) && memcmp(b.at, s, b.len) == 0;
}

const char *mlir_text(mlir_reader *r, const mlir_attr *at)
{
    at = string_of(r, at);
    return at->kind == MLIR_A_STRING ? mlir_cstr(r, at->str) : NULL;
}

const mlir_attr *mlir_dict_get(mlir_reader *r, const mlir_attr *d,
                               const char *key)
{
    if (d->kind != MLIR_A_DICT)
        return &mlir_no_attr;
    for (int i = 0; i + 1 < d->nlist; i += 2)
        if (mlir_is_string(r, mlir_attr_at(r, d->list[i]), key))
            return mlir_attr_at(r, d->list[i + 1]);
    return &mlir_no_attr;
}

const mlir_attr *mlir_discardable(mlir_reader *r, const mlir_op *op,
                                  const char *name)
{
    if (op->dict < 0)
        return &mlir_no_attr;
    return mlir_dict_get(r, mlir_attr_at(r, (uint64_t)op->dict), name);
}

/* The position of a name in a row's list; -1 when it is not there. */
static int prop_index(const char *props, const char *name)
{
    size_t len = strlen(name);

    for (int i = 0; *props; i++) {
        size_t n = strcspn(props, " ");

        if (n == len && memcmp(props, name, n) == 0)
            return i;
        props += n;
        while (*props == ' ')
            props++;
    }
    return -1;
}

const mlir_attr *mlir_inherent(mlir_reader *r, const mlir_op *op,
                               const char *name)
{
    const vhlo_row *row = r->name[op->name].row;
    int k = row ? prop_index(row->props, name) : -1;
    sd_cursor c;
    uint64_t at = 0;

    if (r->version < 5)
        return mlir_discardable(r, op, name);
    if (k < 0)
        return &mlir_no_attr;
    if (op->props < 0 || (size_t)op->props >= r->nprop) {
        mlir_fail(r, SD_INVALID, "%s has no properties", row->name);
        return &mlir_no_attr;
    }
    c = mlir_cursor(r, r->prop[op->props]);
    for (int i = 0; i <= k; i++)
        at = mlir_varint(&c);
    mlir_check(r, &c, "a property entry");
    return r->st ? &mlir_no_attr : mlir_attr_at(r, at);
}

/* ---- numbers ---- */

static int64_t extend(uint64_t bits, int width, bool is_signed)
{
    if (is_signed && width < 64 && width > 0 && (bits >> (width - 1)) & 1)
        return (int64_t)(bits | ~UINT64_C(0) << width);
    return (int64_t)bits;
}

int64_t mlir_int(mlir_reader *r, const mlir_attr *at)
{
    const mlir_type *t;

    if (at->kind == MLIR_A_ENUM)
        return (int64_t)(at->bits & INT64_MAX);
    if (at->kind == MLIR_A_UNIT)
        return 1;
    if (at->kind != MLIR_A_INT) {
        mlir_fail(r, SD_INVALID, "an attribute that should be an integer");
        return 0;
    }
    t = mlir_type_at(r, at->type);
    return extend(at->bits, t->width, t->is_signed);
}

double mlir_float(mlir_reader *r, const mlir_attr *at)
{
    sd_dtype t;

    if (at->kind != MLIR_A_FLOAT || !mlir_dtype(r, at->type, &t)) {
        mlir_fail(r, SD_INVALID, "an attribute that should be a number");
        return 0;
    }
    return sd_scalar_to_f64(t, &at->bits); /* little-endian, as the format */
}

/* bytecode.md 6: four ways for i1, two for the rest */
bool mlir_dense_of(mlir_reader *r, const mlir_attr *at, sd_dtype t, int64_t n,
                   mlir_dense *out)
{
    size_t w = sd_dtype_bytes(t), len = at->blob.len, need;

    *out = (mlir_dense){at->blob.at, n, w, false, false};
    if (at->kind != MLIR_A_DENSE && at->kind != MLIR_A_DENSE_ARRAY) {
        mlir_fail(r, SD_INVALID, "an attribute that should be dense elements");
        return false;
    }
    if (n == 0 && len == 0)
        return true;
    if (t == SD_PRED && at->kind == MLIR_A_DENSE) {
        out->splat = len == 1 && at->blob.at[0] == 0xff;
        out->bits = !out->splat && len == (size_t)((n + 7) / 8);
        if (out->splat || out->bits || len == (size_t)n)
            return true;
    }
    if (len == w && n != 1 && at->kind == MLIR_A_DENSE) {
        out->splat = true;
        return true;
    }
    if (sd_mul_size((size_t)n, w, &need) && len == need)
        return true;
    mlir_fail(r, SD_INVALID,
              "%zu bytes for a constant of %" PRId64 " elements of %s", len, n,
              sd_dtype_name(t));
    return false;
}

void mlir_dense_elem(const mlir_dense *d, int64_t i, void *out)
{
    if (d->splat)
        i = 0;
    if (d->bits)
        *(uint8_t *)out =
            d->n == 1 ? d->at[0] != 0 : (d->at[i / 8] >> (i % 8)) & 1;
    else
        memcpy(out, d->at + (size_t)i * d->width, d->width);
}

static hlo_dims ints_of_list(mlir_reader *r, const mlir_attr *at, int max)
{
    int64_t *v;

    if (at->nlist > max) {
        mlir_fail(r, SD_INVALID, "a list of %d, at most %d", at->nlist, max);
        return (hlo_dims){0};
    }
    v = sd_arena_array(r->out, int64_t, at->nlist + 1);
    for (int i = 0; i < at->nlist; i++)
        v[i] = mlir_int(r, mlir_attr_at(r, at->list[i]));
    return (hlo_dims){v, at->nlist};
}

static bool dense_count(mlir_reader *r, const mlir_attr *at, sd_dtype *t,
                        int64_t *n)
{
    const mlir_type *type = mlir_type_at(r, at->type);
    const sd_shape *s;

    if (at->kind == MLIR_A_DENSE_ARRAY) {
        *n = (int64_t)SD_MIN(at->bits, (uint64_t)INT64_MAX);
        *t = type->dtype;
        return type->kind == MLIR_T_ELEM;
    }
    if (type->kind != MLIR_T_TENSOR || !(s = mlir_shape(r, at->type)))
        return false;
    *t = s->dtype;
    *n = sd_shape_count(s);
    return true;
}

hlo_dims mlir_ints(mlir_reader *r, const mlir_attr *at, int max)
{
    mlir_dense d;
    sd_dtype t = SD_S64;
    int64_t n = 0, *v;
    uint64_t bits;

    if (at->kind == MLIR_A_ARRAY)
        return ints_of_list(r, at, max);
    if ((at->kind != MLIR_A_DENSE && at->kind != MLIR_A_DENSE_ARRAY) ||
        !dense_count(r, at, &t, &n) || n > max ||
        (sd_dtype_kind(t) != SD_K_SINT && sd_dtype_kind(t) != SD_K_UINT &&
         sd_dtype_kind(t) != SD_K_PRED)) {
        mlir_fail(r, SD_INVALID,
                  "an attribute that should be at most %d integers", max);
        return (hlo_dims){0};
    }
    if (!mlir_dense_of(r, at, t, n, &d))
        return (hlo_dims){0};
    v = sd_arena_array(r->out, int64_t, n + 1);
    for (int64_t i = 0; i < n; i++) {
        bits = 0;
        mlir_dense_elem(&d, i, &bits);
        v[i] = t == SD_PRED ? bits != 0
                            : extend(bits, sd_dtype_table[t].bits,
                                     sd_dtype_kind(t) == SD_K_SINT);
    }
    return (hlo_dims){v, (int)n};
}

/* ---- locations ---- */

/* An operation's name may end in a colon and its type, which is mostly empty.
 */
static const char *op_name(mlir_reader *r, const mlir_attr *at)
{
    const char *s = mlir_text(r, at);
    size_t n = s ? strlen(s) : 0;

    if (n < 2 || s[n - 1] != ':')
        return s;
    return sd_arena_str(r->out, s, n - 1);
}

/* The name that is outermost, and the place in a file that is nearest to the
 * operation: JAX nests name(op) -> call(name(function)(file), caller...). */
mlir_where mlir_locate(mlir_reader *r, uint64_t loc)
{
    mlir_where w = {0};

    for (int i = 0; i < 32 && loc < r->nattr; i++) {
        const mlir_attr *at = mlir_attr_at(r, loc);

        switch (at->kind) {
        case MLIR_A_LOC_NAME:
            if (!w.op_name)
                w.op_name = op_name(r, mlir_attr_at(r, at->list[0]));
            loc = at->list[1];
            break;
        case MLIR_A_LOC_CALL:
        case MLIR_A_LOC_FUSED:
            if (!at->nlist)
                return w;
            loc = at->list[0];
            break;
        case MLIR_A_LOC_FILE:
            w.file = mlir_text(r, mlir_attr_at(r, at->list[0]));
            w.line = (int)SD_MIN(at->bits, (uint64_t)INT32_MAX);
            return w;
        default:
            return w;
        }
    }
    return w;
}
