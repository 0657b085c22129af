/* Attributes of a typed foreign call: the text of an MLIR dictionary, as a
 * saved program carries it, into the tree that a handler reads.  The text is
 * not trusted. */
#include "xpu_ffi.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_DEPTH 16

typedef struct {
    sd_arena *a;
    const char *at;
    const char *key; /* the attribute that is read, for messages */
    sd_status st;    /* the first error: then nothing is read any more */
} reader;

static void fail(reader *r, const char *expected)
{
    if (!r->st)
        r->st = sd_error(SD_INVALID, "attribute %s: expected %s at \"%.20s\"",
                         r->key ? r->key : "dictionary", expected, r->at);
    r->at = "";
}

static void *get(reader *r, size_t n, size_t size)
{
    size_t bytes;
    void *p = NULL;

    if (!r->st && sd_mul_size(SD_MAX(n, (size_t)1), size, &bytes))
        p = sd_arena_try(r->a, bytes);
    if (!p && !r->st)
        r->st = sd_no_memory(size);
    return p;
}

static void skip(reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

static bool eat(reader *r, const char *word)
{
    size_t n = strlen(word);

    skip(r);
    if (strncmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

static void want(reader *r, const char *word)
{
    if (!eat(r, word))
        fail(r, word);
}

/* ---- strings and names ---- */

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

static XLA_FFI_ByteSpan read_quoted(reader *r)
{
    XLA_FFI_ByteSpan s = {"", 0};
    size_t n = 0;
    char *to;

    want(r, "\"");
    while (r->at[n] && r->at[n] != '"')
        n += r->at[n] == '\\' && r->at[n + 1] ? 2 : 1;
    if (!(to = get(r, n, 1)))
        return s;
    s.ptr = to;
    for (; *r->at && *r->at != '"'; r->at++) {
        if (*r->at != '\\') {
            *to++ = *r->at;
        } else if (r->at[1] == '"' || r->at[1] == '\\') {
            *to++ = *++r->at;
        } else if (hex(r->at[1]) >= 0 && hex(r->at[2]) >= 0) {
            *to++ = (char)(hex(r->at[1]) * 16 + hex(r->at[2]));
            r->at += 2;
        } else {
            fail(r, "an escape");
            return s;
        }
    }
    want(r, "\"");
    s.len = (size_t)(to - s.ptr);
    return s;
}

static XLA_FFI_ByteSpan read_word(reader *r)
{
    const char *from;

    skip(r);
    from = r->at;
    while (isalnum((unsigned char)*r->at) || (*r->at && strchr("_.$", *r->at)))
        r->at++;
    return (XLA_FFI_ByteSpan){from, (size_t)(r->at - from)};
}

/* ---- numbers ---- */

static bool is_word(XLA_FFI_ByteSpan w, const char *s)
{
    return w.len == strlen(s) && memcmp(w.ptr, s, w.len) == 0;
}

/* MLIR's spelling of an element type: i32 has no sign and counts as signed. */
static sd_dtype read_real_type(reader *r)
{
    XLA_FFI_ByteSpan w = read_word(r);
    char name[32];
    sd_dtype t;

    if (is_word(w, "i1"))
        return SD_PRED;
    if (w.len > 1 && w.len < sizeof name - 1) {
        bool is_signed = *w.ptr == 'i' || (*w.ptr == 's' && w.ptr[1] == 'i');
        bool is_unsigned = *w.ptr == 'u' && w.ptr[1] == 'i';
        size_t drop = is_unsigned || *w.ptr == 's' ? 2 : 1;

        if (is_signed || is_unsigned)
            snprintf(name, sizeof name, "%c%.*s", is_signed ? 's' : 'u',
                     (int)(w.len - drop), w.ptr + drop);
        else
            snprintf(name, sizeof name, "%.*s", (int)w.len, w.ptr);
        for (char *c = name; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        if (sd_dtype_of_name(name, strlen(name), &t) && sd_dtype_bytes(t) &&
            sd_dtype_table[t].bits >= 8)
            return t;
    }
    r->at = w.ptr;
    fail(r, "an element type of a byte or more");
    return SD_S64;
}

static sd_dtype read_type(reader *r)
{
    sd_dtype t, whole;

    if (!eat(r, "complex<"))
        return read_real_type(r);
    t = read_real_type(r);
    whole = sd_dtype_complex(t);
    if (!sd_is_complex(whole))
        fail(r, "complex<f32> or complex<f64>");
    want(r, ">");
    return r->st ? SD_S64 : whole;
}

/* One number of type t; infinities and NaNs are written as their bits. */
static void read_number(reader *r, sd_dtype t, void *to)
{
    bool real = sd_is_float(t);
    char *end = NULL;

    skip(r);
    if (t == SD_PRED && (eat(r, "true") || eat(r, "false"))) {
        *(uint8_t *)to = r->at[-2] == 'u';
        return;
    }
    if (sd_is_complex(t)) {
        sd_dtype part = sd_dtype_part(t);

        want(r, "(");
        read_number(r, part, to);
        want(r, ",");
        read_number(r, part, (char *)to + sd_dtype_bytes(part));
        want(r, ")");
        return;
    }
    if (real && strncmp(r->at, "0x", 2) == 0) {
        uint64_t bits = strtoull(r->at, &end, 16);

        memcpy(to, &bits, sd_dtype_bytes(t));
    } else if (real) {
        sd_scalar_of_f64(t, strtod(r->at, &end), to);
    } else if (*r->at == '-') {
        sd_scalar_of_s64(t, strtoll(r->at, &end, 10), to);
    } else {
        sd_scalar_of_s64(t, (int64_t)strtoull(r->at, &end, 10), to);
    }
    if (!end || end == r->at)
        fail(r, "a number");
    else
        r->at = end;
}

/* The number's type stands behind it: where, is looked for first. */
static sd_dtype type_behind(reader *r)
{
    const char *from = r->at;
    sd_dtype t = SD_S64;

    skip(r);
    if (strncmp(r->at, "true", 4) == 0 || strncmp(r->at, "false", 5) == 0) {
        t = SD_PRED;
    } else {
        r->at += strcspn(r->at, ":,}");
        if (eat(r, ":"))
            t = read_type(r);
        else if (memchr(from, '.', (size_t)(r->at - from)))
            t = SD_F64;
    }
    if (!r->st)
        r->at = from;
    return t;
}

static XLA_FFI_Scalar *read_scalar(reader *r)
{
    sd_dtype t = type_behind(r);
    XLA_FFI_Scalar *s = get(r, 1, sizeof *s);

    if (!s || !(s->value = get(r, 1, 16)))
        return NULL;
    s->dtype = (XLA_FFI_DataType)sd_dtype_table[t].xla;
    read_number(r, t, s->value);
    if (t != SD_PRED && eat(r, ":"))
        read_type(r);
    return s;
}

/* ---- arrays ---- */

static void skip_brackets(reader *r)
{
    skip(r);
    while (*r->at == '[' || *r->at == ']') {
        r->at++;
        skip(r);
    }
}

/* Numbers of a type that is known, up to ">"; those of several dimensions are
 * in brackets, row by row. */
static XLA_FFI_Array *read_numbers(reader *r, sd_dtype t)
{
    XLA_FFI_Array *x = get(r, 1, sizeof *x);
    size_t size = sd_dtype_bytes(t), most = 1;

    if (!x)
        return NULL;
    for (const char *c = r->at; *c && *c != '>'; c++)
        most += *c == ',';
    x->dtype = (XLA_FFI_DataType)sd_dtype_table[t].xla;
    if (!(x->data = get(r, most, size)))
        return x;
    skip_brackets(r);
    if (eat(r, ">"))
        return x;
    do {
        skip_brackets(r);
        read_number(r, t, (char *)x->data + x->size * size);
        if (r->st)
            return x;
        x->size++;
        skip_brackets(r);
    } while (x->size < most && eat(r, ","));
    want(r, ">");
    return x;
}

/* array<i64: 1, 2> */
static XLA_FFI_Array *read_array(reader *r)
{
    sd_dtype t = read_type(r);

    eat(r, ":");
    return read_numbers(r, t);
}

/* "2x3xf32>" */
static sd_dtype read_tensor(reader *r, uint64_t *count)
{
    char *end;

    want(r, "tensor<");
    *count = 1;
    while (isdigit((unsigned char)*r->at)) {
        uint64_t n = strtoull(r->at, &end, 10);

        if (n && *count > UINT32_MAX / n)
            fail(r, "fewer elements");
        *count *= n;
        r->at = end;
        want(r, "x");
    }
    sd_dtype t = read_type(r);

    want(r, ">");
    return t;
}

/* Long lists are one string: the bytes of all elements. */
static XLA_FFI_Array *read_bytes(reader *r, sd_dtype t, uint64_t count)
{
    size_t bytes = count * sd_dtype_bytes(t);
    XLA_FFI_Array *x = get(r, 1, sizeof *x);
    uint8_t *to = get(r, SD_MIN(bytes, strlen(r->at)), 1);

    if (r->st)
        return NULL;
    for (size_t i = 0; i < bytes; i++, r->at += 2) {
        if (hex(r->at[0]) < 0 || hex(r->at[1]) < 0) {
            fail(r, "two hexadecimal digits");
            return NULL;
        }
        to[i] = (uint8_t)(hex(r->at[0]) * 16 + hex(r->at[1]));
    }
    *x = (XLA_FFI_Array){(XLA_FFI_DataType)sd_dtype_table[t].xla, count, to};
    want(r, "\"");
    want(r, ">");
    return x;
}

/* dense<[1, 2]> : tensor<2xi64>, or dense<1> for equal elements */
static XLA_FFI_Array *read_dense(reader *r)
{
    const char *from = r->at, *tensor = strstr(r->at, " : tensor<");
    XLA_FFI_Array *x;
    uint64_t count;
    size_t size;
    sd_dtype t;
    char *all;

    if (!tensor) {
        fail(r, "the type of its elements");
        return NULL;
    }
    r->at = tensor + 3;
    t = read_tensor(r, &count);
    if (r->st)
        return NULL;
    r->at = from;
    x = eat(r, "\"0x") ? read_bytes(r, t, count) : read_numbers(r, t);
    want(r, ":");
    read_tensor(r, &count);
    size = sd_dtype_bytes(t);
    if (r->st || !x || x->size == count)
        return x;
    if (x->size != 1 || !(all = get(r, count, size))) {
        fail(r, "as many elements as its type has");
        return NULL;
    }
    for (uint64_t i = 0; i < count; i++)
        memcpy(all + i * size, x->data, size);
    x->data = all;
    x->size = count;
    return x;
}

/* ---- dictionaries ---- */

static XLA_FFI_Attrs *read_dict(reader *r, int depth);

static void *read_value(reader *r, int depth, XLA_FFI_AttrType *type)
{
    skip(r);
    if (*r->at == '"') {
        XLA_FFI_ByteSpan *s = get(r, 1, sizeof *s);

        *type = XLA_FFI_AttrType_STRING;
        if (s)
            *s = read_quoted(r);
        return s;
    }
    if (*r->at == '{') {
        *type = XLA_FFI_AttrType_DICTIONARY;
        return read_dict(r, depth + 1);
    }
    *type = XLA_FFI_AttrType_ARRAY;
    if (eat(r, "array<"))
        return read_array(r);
    if (eat(r, "dense<"))
        return read_dense(r);
    *type = XLA_FFI_AttrType_SCALAR;
    if (isdigit((unsigned char)*r->at) || *r->at == '-' ||
        strncmp(r->at, "true", 4) == 0 || strncmp(r->at, "false", 5) == 0)
        return read_scalar(r);
    fail(r, "a number, a string, an array of numbers or a dictionary; lists, "
            "types and symbols are no attributes of typed calls");
    return NULL;
}

typedef struct {
    XLA_FFI_ByteSpan name;
    XLA_FFI_AttrType type;
    void *value;
} entry;

static int by_name(const void *a, const void *b)
{
    const XLA_FFI_ByteSpan *x = &((const entry *)a)->name;
    const XLA_FFI_ByteSpan *y = &((const entry *)b)->name;
    int c = memcmp(x->ptr, y->ptr, SD_MIN(x->len, y->len));

    return c ? c : (x->len > y->len) - (x->len < y->len);
}

/* Handlers look their attributes up by number in the order of names. */
static XLA_FFI_Attrs *sorted(reader *r, entry *e, size_t n)
{
    XLA_FFI_Attrs *x = get(r, 1, sizeof *x);
    XLA_FFI_AttrType *types = get(r, n, sizeof *types);
    XLA_FFI_ByteSpan **names = get(r, n, sizeof *names);
    XLA_FFI_ByteSpan *name = get(r, n, sizeof *name);
    void **values = get(r, n, sizeof *values);

    if (r->st)
        return NULL;
    if (n)
        qsort(e, n, sizeof *e, by_name);
    for (size_t i = 0; i < n; i++) {
        name[i] = e[i].name;
        names[i] = &name[i];
        types[i] = e[i].type;
        values[i] = e[i].value;
    }
    *x = (XLA_FFI_Attrs){.struct_size = XLA_FFI_Attrs_STRUCT_SIZE,
                         .size = (int64_t)n,
                         .types = types,
                         .names = names,
                         .attrs = values};
    return x;
}

static bool read_entry(reader *r, int depth, entry *e)
{
    char *key;

    skip(r);
    e->name = *r->at == '"' ? read_quoted(r) : read_word(r);
    if (!e->name.len)
        fail(r, "a name");
    if ((key = get(r, e->name.len + 1, 1))) {
        memcpy(key, e->name.ptr, e->name.len);
        r->key = key;
    }
    want(r, "=");
    e->value = read_value(r, depth, &e->type);
    return !r->st;
}

static XLA_FFI_Attrs *read_dict(reader *r, int depth)
{
    const char *outer = r->key;
    sd_vec(entry) list = {0};

    want(r, "{");
    if (depth > MAX_DEPTH)
        fail(r, "less nesting");
    if (!r->st && !eat(r, "}")) {
        do {
            entry *grown;

            if (list.n == list.cap) {
                list.cap = list.cap * 2 + 8;
                if (!(grown = get(r, (size_t)list.cap, sizeof *grown)))
                    return NULL;
                if (list.n)
                    memcpy(grown, list.at, (size_t)list.n * sizeof *grown);
                list.at = grown;
            }
        } while (read_entry(r, depth, &list.at[list.n++]) && eat(r, ","));
        want(r, "}");
    }
    r->key = outer;
    return sorted(r, list.at, (size_t)list.n);
}

sd_status xpu_ffi_read_attrs(sd_arena *a, const char *text, XLA_FFI_Attrs *out)
{
    reader r = {.a = a, .at = text ? text : ""};
    XLA_FFI_Attrs *x;

    skip(&r);
    x = *r.at ? read_dict(&r, 0) : sorted(&r, NULL, 0);
    skip(&r);
    if (!r.st && *r.at)
        fail(&r, "the end");
    if (!r.st)
        *out = *x;
    return r.st;
}
