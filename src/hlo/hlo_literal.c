/* Elements and dense arrays as text.  Floats are written with the fewest
 * digits that a type needs to be read back (the short form when it is exact);
 * a NaN that is not the usual one keeps its bits in parentheses. */
#include "hlo_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- out ---- */

static int fraction_bits(sd_dtype t)
{
    switch (t) {
    case SD_F64:
        return 52;
    case SD_F32:
        return 23;
    case SD_BF16:
        return 7;
    case SD_F16:
        return 10;
    default:
        return 0; /* the narrow ones have no NaNs to tell apart */
    }
}

static uint64_t bits_of(sd_dtype t, const void *p)
{
    uint64_t v = 0;

    memcpy(&v, p, sd_dtype_bytes(t)); /* little-endian, as everywhere */
    return v;
}

static bool same_bits(sd_dtype t, double v, const void *p)
{
    char back[16] = {0};

    sd_scalar_of_f64(t, v, back);
    return memcmp(back, p, sd_dtype_bytes(t)) == 0;
}

static void print_nan(sd_buf *b, sd_dtype t, const void *p)
{
    int n = fraction_bits(t);
    uint64_t v = bits_of(t, p);

    if (same_bits(t, (double)NAN, p)) {
        sd_buf_str(b, "nan");
        return;
    }
    sd_buf_str(b, v >> (sd_dtype_table[t].bits - 1) ? "-nan" : "nan");
    /* the usual payload is the quiet bit alone */
    if (n && (v & ((UINT64_C(1) << n) - 1)) != UINT64_C(1) << (n - 1))
        sd_buf_fmt(b, "(0x%" PRIx64 ")", v & ((UINT64_C(1) << n) - 1));
}

static void print_float(sd_buf *b, sd_dtype t, const void *p)
{
    /* digits that always suffice: 2 + floor(precision * log10(2)) */
    int full = t == SD_F64 ? 17 : t == SD_F32 ? 9 : t == SD_F16 ? 5 : 4;
    int brief = t == SD_F64 ? 15 : t == SD_F32 ? 6 : full;
    double v = sd_scalar_to_f64(t, p);
    char text[64];

    if (isnan(v)) {
        print_nan(b, t, p);
        return;
    }
    if (isinf(v)) {
        sd_buf_str(b, v < 0 ? "-inf" : "inf");
        return;
    }
    snprintf(text, sizeof text, "%.*g", brief, v);
    if (!same_bits(t, strtod(text, NULL), p))
        snprintf(text, sizeof text, "%.*g", full, v);
    sd_buf_str(b, text);
}

static void print_element(sd_buf *b, sd_dtype t, bool word, const void *p)
{
    switch (sd_dtype_kind(t)) {
    case SD_K_PRED:
        if (word)
            sd_buf_str(b, *(const char *)p ? "true" : "false");
        else
            sd_buf_str(b, *(const char *)p ? "1" : "0");
        break;
    case SD_K_SINT:
        sd_buf_fmt(b, "%" PRId64, sd_scalar_to_s64(t, p));
        break;
    case SD_K_UINT:
        sd_buf_fmt(b, "%" PRIu64, (uint64_t)sd_scalar_to_s64(t, p));
        break;
    case SD_K_FLOAT:
        print_float(b, t, p);
        break;
    case SD_K_COMPLEX:
        t = sd_dtype_part(t);
        sd_buf_str(b, "(");
        print_float(b, t, p);
        sd_buf_str(b, ", ");
        print_float(b, t, (const char *)p + sd_dtype_bytes(t));
        sd_buf_str(b, ")");
        break;
    case SD_K_NONE:
        break;
    }
}

static const char *print_array(sd_buf *b, const sd_shape *s, int depth,
                               const char *p)
{
    bool inner = depth == s->rank - 1;
    int64_t n = s->dim[depth];
    const char *pad = inner && (s->rank == 1 || n <= 1) ? "" : " ";

    sd_buf_fmt(b, "{%s", pad);
    for (int64_t i = 0; i < n; i++) {
        if (i)
            sd_buf_str(b, ", ");
        if (inner) {
            print_element(b, s->dtype, false, p);
            p += sd_dtype_bytes(s->dtype);
        } else {
            p = print_array(b, s, depth + 1, p);
        }
    }
    sd_buf_fmt(b, "%s}", pad);
    return p;
}

void hlo_print_literal(sd_buf *b, const sd_shape *s, const void *data)
{
    if (s->rank == 0)
        print_element(b, s->dtype, true, data);
    else if (sd_shape_count(s) == 0)
        sd_buf_str(b, "{}"); /* whatever the nesting: there is nothing in it */
    else
        print_array(b, s, 0, data);
}

/* ---- in ---- */

/* A number's characters, NUL-ended, in a buffer of the caller. */
static bool take_number(hlo_lexer *x, char *to, size_t cap)
{
    size_t n = 0;

    hlo_skip_space(x);
    while (x->at < x->end && n + 1 < cap) {
        char ch = *x->at;

        if (!((ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') ||
              (ch >= 'A' && ch <= 'Z') || ch == '.' || ch == '-' || ch == '+'))
            break;
        to[n++] = ch;
        x->at++;
    }
    to[n] = '\0';
    return n > 0;
}

static void parse_nan(hlo_lexer *x, sd_dtype t, bool negative, void *p)
{
    int n = fraction_bits(t);
    uint64_t v, payload = 0;

    sd_scalar_of_f64(t, negative ? -(double)NAN : (double)NAN, p);
    if (!hlo_accept(x, "("))
        return;
    hlo_skip_space(x);
    if (!hlo_accept(x, "0x"))
        hlo_fail(x, "a NaN's bits");
    while (x->at < x->end && *x->at != ')' && !x->bad) {
        char ch = *x->at++;
        int d = ch >= '0' && ch <= '9'   ? ch - '0'
                : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
                : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                         : -1;

        if (d < 0 || payload >> 60)
            hlo_fail(x, "a NaN's bits");
        else
            payload = payload << 4 | (uint64_t)d;
    }
    hlo_expect(x, ")");
    if (!n || !payload || payload >> n) {
        hlo_fail(x, "bits that this type's NaN can hold");
        return;
    }
    v = bits_of(t, p);
    v = (v & ~((UINT64_C(1) << n) - 1)) | payload;
    memcpy(p, &v, sd_dtype_bytes(t));
}

static void parse_float(hlo_lexer *x, sd_dtype t, void *p)
{
    char text[400], *end;

    if (!take_number(x, text, sizeof text)) {
        hlo_fail(x, "a number");
        return;
    }
    bool negative = text[0] == '-';
    const char *word = text + (negative || text[0] == '+');

    if (strcmp(word, "nan") == 0) {
        parse_nan(x, t, negative, p);
        return;
    }
    double v = strtod(text, &end);

    if (*end)
        hlo_fail(x, "a number");
    sd_scalar_of_f64(t, v, p);
}

static void parse_int(hlo_lexer *x, sd_dtype t, void *p)
{
    char text[64], *end;
    bool is_signed = sd_is_signed(t);
    int64_t v;

    if (!take_number(x, text, sizeof text)) {
        hlo_fail(x, "an integer");
        return;
    }
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        sd_scalar_of_s64(t, text[0] == 't', p);
        return;
    }
    v = is_signed ? (int64_t)strtoll(text, &end, 10)
                  : (int64_t)strtoull(text, &end, 10);
    sd_scalar_of_s64(t, v, p);
    /* too wide for the type: read back, it would be another number */
    if (*end || sd_scalar_to_s64(t, p) != v || (!is_signed && text[0] == '-'))
        hlo_fail(x, "an integer of the type");
}

static void parse_element(hlo_lexer *x, sd_dtype t, void *p)
{
    char text[16];

    switch (sd_dtype_kind(t)) {
    case SD_K_PRED:
        if (!take_number(x, text, sizeof text))
            text[0] = '\0';
        if (!strcmp(text, "true") || !strcmp(text, "1"))
            *(char *)p = 1;
        else if (!strcmp(text, "false") || !strcmp(text, "0"))
            *(char *)p = 0;
        else
            hlo_fail(x, "true or false");
        break;
    case SD_K_FLOAT:
        parse_float(x, t, p);
        break;
    case SD_K_COMPLEX:
        t = sd_dtype_part(t);
        hlo_expect(x, "(");
        parse_float(x, t, p);
        hlo_expect(x, ",");
        parse_float(x, t, (char *)p + sd_dtype_bytes(t));
        hlo_expect(x, ")");
        break;
    default:
        parse_int(x, t, p);
    }
}

static char *parse_array(hlo_lexer *x, const sd_shape *s, int depth, char *p)
{
    hlo_expect(x, "{");
    for (int64_t i = 0; i < s->dim[depth] && !x->bad; i++) {
        if (i)
            hlo_expect(x, ",");
        if (depth == s->rank - 1) {
            parse_element(x, s->dtype, p);
            p += sd_dtype_bytes(s->dtype);
        } else {
            p = parse_array(x, s, depth + 1, p);
        }
    }
    hlo_expect(x, "}");
    return p;
}

/* Braces around nothing, whatever the nesting. */
static void parse_empty(hlo_lexer *x)
{
    int depth = 0;

    do {
        if (hlo_accept(x, "{"))
            depth++;
        else if (hlo_accept(x, "}"))
            depth--;
        else if (depth < 1 || !hlo_accept(x, ","))
            hlo_fail(x, "an empty array");
    } while (depth > 0 && !x->bad);
}

void *hlo_parse_literal(hlo_lexer *x, const sd_shape *s, size_t *bytes)
{
    char *data;

    if (hlo_accept(x, "{...}")) {
        hlo_refuse(x, sd_error(SD_INVALID,
                               "the constant's elements were left out: print "
                               "the program with large constants"));
        return NULL;
    }
    /* an element takes a character at least: nothing big from a short text */
    if (sd_shape_count(s) > (int64_t)(x->end - x->at)) {
        hlo_fail(x, "as many elements as the shape has");
        return NULL;
    }
    *bytes = sd_shape_bytes(s);
    data = sd_arena_alloc(x->arena, *bytes ? *bytes : 1);
    if (s->rank == 0)
        parse_element(x, s->dtype, data);
    else if (sd_shape_count(s) == 0)
        parse_empty(x);
    else
        parse_array(x, s, 0, data);
    return data;
}
