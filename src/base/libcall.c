/* Calls of libraries by the table of their fields: flat words and back, text.
 */
#include "libcall.h"

#include <stddef.h>

typedef enum { TYPE, INT, FLAG, REAL } kind;
typedef struct {
    kind kind;
    const char *name;
    size_t at, size; /* in the struct; of one element */
    int many;        /* 0: one value, not an array */
    int64_t least, most;
} field;

#define LIBCALL(id, op, lib, target) static const field op##_fields[] = {
#define FIELD(op, kind, name, least, most) \
    {kind,  #name, offsetof(libcall, op.name), sizeof(libcall_##kind), 0, \
     least, most},
#define ARRAY(op, kind, name, many, least, most) \
    {kind,  #name, offsetof(libcall, op.name), sizeof(libcall_##kind), many, \
     least, most},
#define END(id, op) \
    } \
    ;
#include "libcall.def"

static const struct {
    const field *at;
    size_t n;
} fields[LIBCALL_COUNT] = {
#define LIBCALL(id, op, lib, target) \
    [LIBCALL_##id] = {op##_fields, SD_COUNTOF(op##_fields)},
#include "libcall.def"
};

const libcall_info libcall_table[LIBCALL_COUNT] = {
#define LIBCALL(id, op, lib, target) [LIBCALL_##id] = {#op, lib, target},
#include "libcall.def"
};

const char *libcall_library(const libcall *c, device_kind on)
{
    if (libcall_table[c->op].lib == DEVICE_LIB_ONEDNN)
        return "oneDNN";
    return on == DEVICE_CUDA ? "cuSOLVER" : "LAPACK";
}

/* ---- values ---- */

static int64_t get(kind k, const char *p)
{
    libcall_TYPE type;
    libcall_FLAG flag;
    int64_t v;

    switch (k) {
    case TYPE:
        memcpy(&type, p, sizeof type);
        return (int64_t)type;
    case FLAG:
        memcpy(&flag, p, sizeof flag);
        return flag;
    default: /* INT; REAL by its bits */
        memcpy(&v, p, sizeof v);
        return v;
    }
}

static void put(kind k, char *p, int64_t v)
{
    libcall_TYPE type = (libcall_TYPE)v;
    libcall_FLAG flag = v != 0;

    switch (k) {
    case TYPE:
        memcpy(p, &type, sizeof type);
        break;
    case FLAG:
        memcpy(p, &flag, sizeof flag);
        break;
    default:
        memcpy(p, &v, sizeof v);
    }
}

static bool in_bounds(const field *f, int64_t v)
{
    if (f->kind == REAL)
        return true;
    if (f->kind == TYPE)
        return v >= 0 && v < SD_DTYPE_COUNT && v != SD_TUPLE && v != SD_TOKEN;
    return v >= f->least && v <= f->most;
}

int64_t libcall_field(const libcall *c, const char *name, size_t len)
{
    for (size_t i = 0; i < fields[c->op].n; i++) {
        const field *f = &fields[c->op].at[i];

        if (strlen(f->name) == len && !memcmp(f->name, name, len))
            return get(f->kind, (const char *)c + f->at);
    }
    return 0;
}

int libcall_words(const libcall *c, int64_t *out)
{
    int n = 0;

    for (size_t i = 0; i < fields[c->op].n; i++) {
        const field *f = &fields[c->op].at[i];
        const char *p = (const char *)c + f->at;

        for (int k = 0; k < SD_MAX(f->many, 1); k++)
            out[n++] = get(f->kind, p + (size_t)k * f->size);
    }
    return n;
}

sd_status libcall_of_words(int op, const int64_t *words, int n, libcall *out)
{
    libcall c = {0};
    int at = 0;

    if (op < 0 || op >= LIBCALL_COUNT)
        return sd_error(SD_INVALID, "library call %d of %d", op, LIBCALL_COUNT);
    c.op = (libcall_op)op;
    for (size_t i = 0; i < fields[op].n; i++) {
        const field *f = &fields[op].at[i];
        char *p = (char *)&c + f->at;

        for (int k = 0; k < SD_MAX(f->many, 1); k++, at++) {
            if (at < n && !in_bounds(f, words[at]))
                return sd_error(SD_INVALID, "%s: %s cannot be %" PRId64,
                                libcall_table[op].name, f->name, words[at]);
            if (at < n)
                put(f->kind, p + (size_t)k * f->size, words[at]);
        }
    }
    if (at != n)
        return sd_error(SD_INVALID, "%s: %d numbers, not %d",
                        libcall_table[op].name, n, at);
    *out = c;
    return NULL;
}

bool libcall_equal(const libcall *x, const libcall *y)
{
    int64_t a[LIBCALL_WORDS], b[LIBCALL_WORDS];
    int n;

    if (x->op != y->op)
        return false;
    n = libcall_words(x, a);
    libcall_words(y, b);
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* ---- text ---- */

static void print_value(sd_buf *b, kind k, int64_t v)
{
    double real;

    switch (k) {
    case TYPE:
        sd_buf_str(b, sd_dtype_name((sd_dtype)v));
        break;
    case REAL:
        memcpy(&real, &v, sizeof real);
        sd_buf_fmt(b, "%g", real);
        break;
    default:
        sd_buf_fmt(b, "%" PRId64, v);
    }
}

void libcall_print(sd_buf *b, const libcall *c)
{
    int64_t word[LIBCALL_WORDS], *w = word;
    const char *before = " {";

    libcall_words(c, word);
    for (size_t i = 0; i < fields[c->op].n; i++) {
        const field *f = &fields[c->op].at[i];

        if (f->kind == FLAG && !*w) {
            w++;
            continue;
        }
        sd_buf_fmt(b, "%s%s", before, f->name);
        before = ", ";
        if (f->kind != FLAG)
            sd_buf_str(b, "=");
        for (int k = 0; k < SD_MAX(f->many, 1); k++, w++) {
            sd_buf_str(b, k ? "x" : "");
            if (f->kind != FLAG)
                print_value(b, f->kind, *w);
        }
    }
    sd_buf_str(b, "}");
}
