/* Tokens of MLIR's text. */
#include "mlir_text.h"

/* Line and column are counted when there is something to say. */
void tx_fail_at(mlir_parser *t, const char *where, const char *fmt, ...)
{
    int line = 1, column = 1;
    const char *what;
    va_list ap;

    for (const char *p = t->begin; p < where; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    va_start(ap, fmt);
    what = sd_arena_vfmt(t->r->a, fmt, ap);
    va_end(ap);
    mlir_fail(t->r, SD_INVALID, "%d:%d: %s", line, column, what);
    t->p = t->end;
    t->tok = (mlir_token){.kind = TK_END, .at = t->end};
}

void tx_expected(mlir_parser *t, const char *what)
{
    size_t n = SD_MIN(t->tok.len, (size_t)40);

    if (t->r->st)
        return;
    if (t->tok.kind == TK_END)
        tx_fail_at(t, t->tok.at, "expected %s, found the end", what);
    else
        tx_fail_at(t, t->tok.at, "expected %s, found '%.*s'", what, (int)n,
                   t->tok.at);
}

/* ---- scanning ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool tx_is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static void skip_blanks(mlir_parser *t)
{
    for (; t->p < t->end; t->p++) {
        bool comment = *t->p == '/' && t->p + 1 < t->end && t->p[1] == '/';

        if (comment)
            while (t->p + 1 < t->end && *t->p != '\n')
                t->p++;
        else if (!strchr(" \t\r\n", *t->p) || !*t->p)
            return;
    }
}

/* Letters, digits and these from p on. */
static const char *scan_id(const mlir_parser *t, const char *p)
{
    while (p < t->end &&
           (is_letter(*p) || is_digit(*p) || *p == '$' || *p == '.'))
        p++;
    return p;
}

static const char *scan_digits(const mlir_parser *t, const char *p)
{
    while (p < t->end && is_digit(*p))
        p++;
    return p;
}

static void scan_number(mlir_parser *t)
{
    const char *p = t->p;

    t->tok.kind = TK_INT;
    if (p[0] == '0' && p + 2 < t->end && p[1] == 'x' && tx_is_hex(p[2])) {
        for (p += 2; p < t->end && tx_is_hex(*p); p++)
            ;
        t->p = p;
        return;
    }
    p = scan_digits(t, p);
    if (p < t->end && *p == '.') {
        t->tok.kind = TK_FLOAT;
        p = scan_digits(t, p + 1);
        if (p < t->end && (*p == 'e' || *p == 'E')) {
            const char *q = p + 1;

            q += q < t->end && (*q == '+' || *q == '-');
            if (q < t->end && is_digit(*q))
                p = scan_digits(t, q);
        }
    }
    t->p = p;
}

/* To behind the closing quote, or an error. */
static void scan_string(mlir_parser *t)
{
    const char *start = t->p;

    for (t->p++; t->p < t->end && *t->p != '"'; t->p++)
        if (*t->p == '\\' && t->p + 1 < t->end)
            t->p++;
    if (t->p >= t->end) {
        tx_fail_at(t, start, "a string that does not end");
        return;
    }
    t->p++;
}

static void scan_punct(mlir_parser *t)
{
    static const struct {
        const char *s;
        int punct;
    } longer[] = {{"->", TK_ARROW},
                  {"::", TK_COLONS},
                  {"{-#", TK_FILE_OPEN},
                  {"#-}", TK_FILE_CLOSE}};
    size_t left = (size_t)(t->end - t->p);

    t->tok.kind = TK_PUNCT;
    for (size_t i = 0; i < SD_COUNTOF(longer); i++) {
        size_t n = strlen(longer[i].s);

        if (n <= left && memcmp(t->p, longer[i].s, n) == 0) {
            t->tok.punct = longer[i].punct;
            t->p += n;
            return;
        }
    }
    t->tok.punct = (unsigned char)*t->p++;
    if (t->tok.punct < 0x20 || t->tok.punct > 0x7e)
        tx_fail_at(t, t->tok.at, "byte 0x%02X outside of a string",
                   t->tok.punct);
    else if (!strchr("(){}[]<>,:=+-*?/|", t->tok.punct))
        tx_fail_at(t, t->tok.at, "'%c' begins nothing here", t->tok.punct);
}

/* A character that marks a kind of name, and the name. */
static bool scan_marked(mlir_parser *t)
{
    static const char marks[] = "%@^#!";
    static const mlir_token_kind kinds[] = {TK_VALUE, TK_SYMBOL, TK_BLOCK,
                                            TK_HASH, TK_BANG};
    const char *m = *t->p ? strchr(marks, *t->p) : NULL, *end;

    if (!m)
        return false;
    t->tok.kind = kinds[m - marks];
    if (*m == '@' && t->p + 1 < t->end && t->p[1] == '"') {
        t->p++;
        scan_string(t);
        return true;
    }
    end = scan_id(t, t->p + 1);
    if (*m == '%' || *m == '^') /* these may hold a dash */
        while (end < t->end && *end == '-' && end + 1 < t->end &&
               end[1] != '>' && scan_id(t, end + 1) > end + 1)
            end = scan_id(t, end + 1);
    if (end == t->p + 1)
        return false;
    t->p = end;
    return true;
}

void tx_next(mlir_parser *t)
{
    if (t->r->st)
        return;
    skip_blanks(t);
    t->tok = (mlir_token){.kind = TK_END, .at = t->p};
    if (t->p >= t->end)
        return;
    if (is_letter(*t->p)) {
        t->tok.kind = TK_ID;
        t->p = scan_id(t, t->p);
    } else if (is_digit(*t->p)) {
        scan_number(t);
    } else if (*t->p == '"') {
        t->tok.kind = TK_STRING;
        scan_string(t);
    } else if (!scan_marked(t)) {
        scan_punct(t);
    }
    if (!t->r->st)
        t->tok.len = (size_t)(t->p - t->tok.at);
}

void tx_seek(mlir_parser *t, const char *p)
{
    if (t->r->st)
        return;
    t->p = p;
    tx_next(t);
}

/* ---- what comes next ---- */

bool tx_is(const mlir_parser *t, int punct)
{
    return t->tok.kind == TK_PUNCT && t->tok.punct == punct;
}

bool tx_accept(mlir_parser *t, int punct)
{
    if (!tx_is(t, punct))
        return false;
    tx_next(t);
    return true;
}

void tx_expect(mlir_parser *t, int punct)
{
    char one[] = {'\'', (char)punct, '\'', 0};
    const char *name = punct == TK_ARROW        ? "'->'"
                       : punct == TK_FILE_CLOSE ? "'#-}'"
                                                : one;

    if (!tx_accept(t, punct))
        tx_expected(t, name);
}

bool tx_is_word(const mlir_parser *t, const char *word)
{
    return t->tok.kind == TK_ID && t->tok.len == strlen(word) &&
           memcmp(t->tok.at, word, t->tok.len) == 0;
}

bool tx_accept_word(mlir_parser *t, const char *word)
{
    if (!tx_is_word(t, word))
        return false;
    tx_next(t);
    return true;
}

void tx_expect_word(mlir_parser *t, const char *word)
{
    if (!tx_accept_word(t, word))
        tx_expected(t, word);
}

bool tx_enter(mlir_parser *t)
{
    if (++t->depth <= MLIR_MAX_DEPTH)
        return !t->r->st;
    tx_fail_at(t, t->tok.at, "nested deeper than %d", MLIR_MAX_DEPTH);
    return false;
}

void tx_leave(mlir_parser *t)
{
    t->depth--;
}

/* ---- strings, numbers, brackets ---- */

int tx_hex_value(char c)
{
    return is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10;
}

sd_bytes tx_string(mlir_parser *t)
{
    const char *s = t->tok.at, *end = s + t->tok.len - 1;
    uint8_t *out;
    size_t n = 0;

    if (t->tok.kind == TK_SYMBOL)
        s++;
    if (t->tok.len < 2 || *s != '"') {
        tx_expected(t, "a string");
        return (sd_bytes){(const uint8_t *)"", 0};
    }
    out = sd_arena_alloc(t->r->a, t->tok.len);
    for (s++; s < end; s++) {
        if (*s != '\\') {
            out[n++] = (uint8_t)*s;
        } else if (s + 2 < end + 1 && tx_is_hex(s[1]) && tx_is_hex(s[2])) {
            out[n++] = (uint8_t)(tx_hex_value(s[1]) * 16 + tx_hex_value(s[2]));
            s += 2;
        } else {
            s++;
            out[n++] = (uint8_t)(*s == 'n' ? '\n' : *s == 't' ? '\t' : *s);
        }
    }
    tx_next(t);
    return (sd_bytes){out, n};
}

uint32_t tx_symbol_name(mlir_parser *t, const char *what)
{
    sd_bytes s = {(const uint8_t *)t->tok.at + 1, t->tok.len - 1};

    if (t->tok.kind != TK_SYMBOL) {
        tx_expected(t, what);
        return 0;
    }
    if (s.len && s.at[0] == '"')
        s = tx_string(t);
    else
        tx_next(t);
    return mlir_new_string(t->r, (const char *)s.at, s.len);
}

bool tx_is_integer(const mlir_parser *t)
{
    return t->tok.kind == TK_INT ||
           (tx_is(t, '-') && t->p < t->end && is_digit(*t->p));
}

/* Up to 64 bits; what is above INT64_MAX keeps its bits. */
int64_t tx_integer(mlir_parser *t)
{
    const char *at = t->tok.at, *p;
    bool minus = tx_accept(t, '-');
    uint64_t v = 0, base = 10;
    size_t n = t->tok.len;

    if (t->tok.kind != TK_INT) {
        tx_expected(t, "an integer");
        return 0;
    }
    p = t->tok.at;
    if (n > 2 && p[1] == 'x') {
        base = 16;
        p += 2;
        n -= 2;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t d = (uint64_t)tx_hex_value(p[i]);

        if (v > (UINT64_MAX - d) / base) {
            tx_fail_at(t, at, "an integer of more than 64 bits");
            return 0;
        }
        v = v * base + d;
    }
    if (minus && v > (uint64_t)INT64_MAX + 1) {
        tx_fail_at(t, at, "an integer of more than 64 bits");
        return 0;
    }
    tx_next(t);
    return (int64_t)(minus ? 0 - v : v);
}

sd_bytes tx_from(const mlir_parser *t, const char *start)
{
    const char *end = t->tok.at;

    while (end > start && strchr(" \t\r\n", end[-1]))
        end--;
    return (sd_bytes){(const uint8_t *)start,
                      end > start ? (size_t)(end - start) : 0};
}

sd_bytes tx_balanced(mlir_parser *t)
{
    const char *start = t->tok.at;
    int open = 0;

    do {
        if (t->tok.kind == TK_END) {
            tx_fail_at(t, start, "a bracket that is not closed");
            break;
        }
        if (tx_is(t, '<') || tx_is(t, '(') || tx_is(t, '[') || tx_is(t, '{'))
            open++;
        else if (tx_is(t, '>') || tx_is(t, ')') || tx_is(t, ']') ||
                 tx_is(t, '}'))
            open--;
        if (open)
            tx_next(t);
    } while (open > 0 && !t->r->st);
    const char *end = t->tok.at + t->tok.len;

    tx_next(t);
    return (sd_bytes){(const uint8_t *)start, (size_t)(end - start)};
}

uint64_t tx_key(sd_bytes s)
{
    return sd_hash(s.at, s.len, 0) | 1;
}
