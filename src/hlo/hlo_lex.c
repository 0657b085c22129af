/* The lexer of HLO text: words, numbers, strings, shapes. */
#include "hlo_text.h"

void hlo_fail(hlo_lexer *x, const char *expected)
{
    if (x->bad)
        return;
    x->bad = expected;
    x->bad_at = x->at;
    x->at = x->end;
}

void hlo_refuse(hlo_lexer *x, sd_status st)
{
    if (x->bad) {
        sd_status_free(st);
        return;
    }
    x->status = st;
    hlo_fail(x, st->message);
}

void hlo_skip_space(hlo_lexer *x)
{
    while (x->at < x->end) {
        char ch = *x->at;

        if (ch == ' ' || ch == '\n' || ch == '\t' || ch == '\r') {
            x->at++;
        } else if (ch == '/' && x->end - x->at > 1 && x->at[1] == '/') {
            while (x->at < x->end && *x->at != '\n')
                x->at++;
        } else if (ch == '/' && x->end - x->at > 1 && x->at[1] == '*') {
            for (x->at += 2; x->end - x->at > 1; x->at++)
                if (x->at[0] == '*' && x->at[1] == '/')
                    break;
            if (x->end - x->at < 2) {
                hlo_fail(x, "the end of a comment");
                return;
            }
            x->at += 2;
        } else {
            return;
        }
    }
}

bool hlo_accept(hlo_lexer *x, const char *token)
{
    size_t n = strlen(token);

    hlo_skip_space(x);
    if ((size_t)(x->end - x->at) < n || memcmp(x->at, token, n) != 0)
        return false;
    x->at += n;
    return true;
}

static const char *expectation(const char *token)
{
    static const char *const of[][2] = {
        {"{", "'{'"}, {"}", "'}'"}, {"(", "'('"},   {")", "')'"},
        {"[", "'['"}, {"]", "']'"}, {",", "','"},   {"=", "'='"},
        {":", "':'"}, {"_", "'_'"}, {"->", "'->'"}, {"x", "'x'"},
    };

    for (size_t i = 0; i < SD_COUNTOF(of); i++)
        if (strcmp(of[i][0], token) == 0)
            return of[i][1];
    return token;
}

void hlo_expect(hlo_lexer *x, const char *token)
{
    if (!hlo_accept(x, token))
        hlo_fail(x, expectation(token));
}

hlo_word hlo_take_name(hlo_lexer *x)
{
    hlo_word w;

    hlo_skip_space(x);
    if (x->at < x->end && *x->at == '%')
        x->at++;
    w.at = x->at;
    while (x->at < x->end && hlo_is_name_char(*x->at)) {
        /* "a->b": the arrow ends the name */
        if (*x->at == '-' && x->end - x->at > 1 && x->at[1] == '>')
            break;
        x->at++;
    }
    w.len = (size_t)(x->at - w.at);
    return w;
}

bool hlo_word_is(hlo_word w, const char *s)
{
    return strlen(s) == w.len && memcmp(w.at, s, w.len) == 0;
}

bool hlo_accept_word(hlo_lexer *x, const char *word)
{
    const char *back;

    hlo_skip_space(x);
    back = x->at;
    if (x->at < x->end && *x->at != '%' && hlo_word_is(hlo_take_name(x), word))
        return true;
    x->at = back;
    return false;
}

int64_t hlo_take_int(hlo_lexer *x)
{
    bool negative, any = false, fits = true;
    const char *from;
    int64_t v = 0;

    hlo_skip_space(x);
    from = x->at;
    negative = x->at < x->end && *x->at == '-';
    x->at += negative;
    while (x->at < x->end && *x->at >= '0' && *x->at <= '9') {
        int d = *x->at++ - '0';

        any = true;
        fits = fits && !__builtin_mul_overflow(v, (int64_t)10, &v) &&
               !__builtin_sub_overflow(v, (int64_t)d, &v);
    }
    if (!any || !fits || (!negative && v == INT64_MIN)) {
        x->at = from;
        hlo_fail(x, any ? "a 64-bit integer" : "an integer");
        return 0;
    }
    return negative ? v : -v; /* summed downwards, for INT64_MIN's sake */
}

static int octal(const char *p, const char *end)
{
    if (end - p < 3)
        return -1;
    for (int i = 0; i < 3; i++)
        if (p[i] < '0' || p[i] > '7')
            return -1;
    return ((p[0] - '0') << 6 | (p[1] - '0') << 3 | (p[2] - '0')) & 255;
}

const char *hlo_take_string(hlo_lexer *x, size_t *len)
{
    const char *close;
    char *to;
    size_t n = 0;

    *len = 0;
    hlo_skip_space(x);
    if (x->at >= x->end || *x->at != '"') {
        hlo_fail(x, "a string");
        return "";
    }
    for (close = x->at + 1; close < x->end && *close != '"'; close++)
        if (*close == '\\')
            close++;
    if (close >= x->end) {
        hlo_fail(x, "a string with an end");
        return "";
    }
    to = sd_arena_alloc(x->arena, (size_t)(close - x->at));
    for (const char *p = x->at + 1; p < close; p++) {
        int v;

        if (*p != '\\') {
            to[n++] = *p;
            continue;
        }
        v = octal(++p, close);
        if (v >= 0)
            p += 2;
        to[n++] = v >= 0 ? (char)v : *p == 'n' ? '\n' : *p == 't' ? '\t' : *p;
    }
    to[n] = '\0';
    *len = n;
    x->at = close + 1;
    return to;
}

void hlo_skip_braces(hlo_lexer *x)
{
    int depth = 0;
    size_t len;

    hlo_skip_space(x);
    do {
        if (x->at >= x->end) {
            hlo_fail(x, "'}'");
        } else if (*x->at == '"') {
            hlo_take_string(x, &len);
        } else {
            depth += (*x->at == '{') - (*x->at == '}');
            x->at++;
        }
    } while (depth > 0 && !x->bad);
}

hlo_dims hlo_take_dims(hlo_lexer *x)
{
    sd_vec(int64_t) v = {0};

    hlo_expect(x, "{");
    if (!hlo_accept(x, "}")) {
        do
            *sd_push(x->arena, &v) = hlo_take_int(x);
        while (hlo_accept(x, ","));
        hlo_expect(x, "}");
    }
    return (hlo_dims){v.at, v.n};
}

/* ---- shapes ---- */

/* ":T(8,128)(2,1)E(4)S(5)": how another device stores it, which does not say
 * what it holds; only the memory space matters to us. */
static void take_storage(hlo_lexer *x)
{
    int depth = 0;

    while (!x->bad && x->at < x->end && (depth || *x->at != '}')) {
        if (!depth && hlo_accept(x, "S(")) {
            x->space = hlo_take_int(x);
            hlo_expect(x, ")");
            continue;
        }
        if (x->at == x->end)
            break;
        depth += *x->at == '(' || *x->at == '{';
        depth -= *x->at == ')' || *x->at == '}';
        x->at++;
    }
}

static bool opens_layout(const hlo_lexer *x)
{
    /* a brace that opens no number belongs to what follows */
    return x->at + 1 < x->end && x->at[0] == '{' &&
           ((x->at[1] >= '0' && x->at[1] <= '9') || x->at[1] == '}' ||
            x->at[1] == ':');
}

static const int64_t *take_layout(hlo_lexer *x, int rank)
{
    int64_t seen = 0, at[SD_MAX_RANK];
    bool usual = true;
    int n = 0;

    if (!opens_layout(x))
        return NULL;
    x->at++;
    while (!x->bad && x->at < x->end && *x->at != '}' && *x->at != ':') {
        if (n)
            hlo_expect(x, ",");
        int64_t d = hlo_take_int(x);

        if (n == rank || d < 0 || d >= rank || (seen >> d & 1)) {
            hlo_fail(x, "a layout that names each dimension once");
            return NULL;
        }
        at[n++] = d;
        seen |= INT64_C(1) << d;
        usual &= d == rank - n;
    }
    if (hlo_accept(x, ":"))
        take_storage(x);
    hlo_expect(x, "}");
    if (n != rank) /* {} leaves it to us */
        usual = n == 0 || (hlo_fail(x, "a layout of the shape's rank"), true);
    return usual ? NULL : hlo_dims_copy(x->arena, at, n).at;
}

/* What XLA has and we do not: said as such. */
static void refuse_shape(hlo_lexer *x, hlo_word w)
{
    static const char *const known[] = {"s1", "u1", "opaque", "b"};

    x->at = w.at;
    for (size_t i = 0; i < SD_COUNTOF(known); i++)
        if (hlo_word_is(w, known[i]))
            hlo_refuse(x, sd_error(SD_UNIMPLEMENTED, "element type %s",
                                   i == 3 ? "buffer" : known[i]));
    hlo_fail(x, "a shape");
}

static int64_t take_dimension(hlo_lexer *x)
{
    if (hlo_accept(x, "<=") || hlo_accept(x, "?"))
        hlo_refuse(x, sd_error(SD_UNIMPLEMENTED,
                               "a dimension that is only bounded (<=n or ?): "
                               "give it one size"));
    return hlo_take_int(x);
}

static const sd_shape *take_array_shape(hlo_lexer *x)
{
    const char *back;
    hlo_word w = hlo_take_name(x);
    int64_t dim[SD_MAX_RANK];
    sd_shape *s;
    sd_dtype t;
    sd_status st;
    int rank = 0;

    x->space = 0;
    if (!sd_dtype_of_name(w.at, w.len, &t) || t == SD_TUPLE) {
        refuse_shape(x, w);
        return NULL;
    }
    hlo_expect(x, "[");
    back = x->at;
    if (!hlo_accept(x, "]")) {
        do {
            if (rank == SD_MAX_RANK) {
                hlo_fail(x, "at most 32 dimensions");
                return NULL;
            }
            dim[rank++] = take_dimension(x);
        } while (hlo_accept(x, ","));
        hlo_expect(x, "]");
    }
    if (x->bad)
        return NULL;
    if (t != SD_TOKEN && (st = sd_shape_check(t, rank, dim))) {
        sd_status_free(st);
        x->at = back;
        hlo_fail(x, "dimensions of a possible array");
        return NULL;
    }
    s = sd_arena_copy(x->arena, sd_shape_make(x->arena, t, rank, dim),
                      sizeof *s);
    s->layout = take_layout(x, rank);
    return s;
}

static const sd_shape *take_shape(hlo_lexer *x, int depth)
{
    sd_vec(const sd_shape *) v = {0};

    if (!hlo_accept(x, "("))
        return take_array_shape(x);
    if (depth == 64) {
        hlo_fail(x, "tuples nested less deep");
        return NULL;
    }
    if (!hlo_accept(x, ")")) {
        do {
            const sd_shape *s = take_shape(x, depth + 1);

            if (!s)
                return NULL;
            *sd_push(x->arena, &v) = s;
        } while (hlo_accept(x, ","));
        hlo_expect(x, ")");
    }
    return x->bad ? NULL : sd_shape_tuple(x->arena, v.n, v.at);
}

const sd_shape *hlo_take_shape(hlo_lexer *x)
{
    return take_shape(x, 0);
}
