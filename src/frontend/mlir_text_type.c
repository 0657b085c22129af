/* Types in text. */
#include "mlir_text.h"

bool tx_is_type(const mlir_parser *t)
{
    static const char *const words[] = {"tensor", "tuple", "complex", "memref",
                                        "vector"};
    mlir_type x;

    if (t->tok.kind == TK_BANG || tx_is(t, '('))
        return true;
    for (size_t i = 0; i < SD_COUNTOF(words); i++)
        if (tx_is_word(t, words[i]))
            return true;
    return t->tok.kind == TK_ID &&
           mlir_type_of_name((sd_bytes){(const uint8_t *)t->tok.at, t->tok.len},
                             &x);
}

static char *copy(mlir_parser *t, sd_bytes s)
{
    return sd_arena_str(t->r->a, (const char *)s.at, s.len);
}

static uint32_t other(mlir_parser *t, const char *what, sd_bytes text)
{
    return mlir_new_type(
        t->r,
        (mlir_type){.kind = MLIR_T_OTHER, .what = what, .text = copy(t, text)});
}

/* One entry for all uses of a name. */
static uint32_t named(mlir_parser *t, sd_bytes name)
{
    uint32_t known = tx_known(t->type_alias, name);
    mlir_type x;

    if (known)
        return known - 1;
    if (!mlir_type_of_name(name, &x))
        return MLIR_ABSENT;
    if (x.text)
        x.text = copy(t, name);
    known = mlir_new_type(t->r, x);
    tx_make_known(t->type_alias, name, known + 1);
    return known;
}

uint32_t tx_scalar_type(mlir_parser *t, const char *name)
{
    return named(t, (sd_bytes){(const uint8_t *)name, strlen(name)});
}

/* 2x?x...: read by the character, for x8 looks like a name. */
static void dims(mlir_parser *t, mlir_type *x)
{
    int64_t *dim = sd_arena_array(t->r->a, int64_t, SD_MAX_RANK);
    const char *p = t->tok.at;

    x->dim = dim;
    while (p < t->end && ((*p >= '0' && *p <= '9') || *p == '?')) {
        int64_t v = 0;

        if (x->rank == SD_MAX_RANK) {
            tx_fail_at(t, p, "a rank of more than %d", SD_MAX_RANK);
            return;
        }
        if (*p == '?') {
            v = INT64_MIN;
            p++;
        }
        for (; p < t->end && *p >= '0' && *p <= '9'; p++)
            if (!sd_mul_i64(v, 10, &v) ||
                __builtin_add_overflow(v, *p - '0', &v)) {
                tx_fail_at(t, p, "a dimension of more than 64 bits");
                return;
            }
        dim[x->rank++] = v;
        if (p >= t->end || *p++ != 'x') {
            tx_fail_at(t, p - 1, "expected 'x' behind a dimension");
            return;
        }
    }
    tx_seek(t, p);
}

/* tensor< is behind us; start: where the word is */
static uint32_t tensor(mlir_parser *t, const char *start)
{
    mlir_type x = {.kind = MLIR_T_TENSOR};

    if (tx_accept(t, '*')) { /* *xf32: the x is glued to the type */
        tx_seek(t, t->tok.at + 1);
        x.elem = tx_type(t);
        tx_expect(t, '>');
        return other(t, "unranked tensor", tx_from(t, start));
    }
    dims(t, &x);
    x.elem = tx_type(t);
    if (tx_accept(t, ','))
        x.encoding = tx_attr(t) + 1;
    tx_expect(t, '>');
    return mlir_new_type(t->r, x);
}

static uint32_t complex_type(mlir_parser *t, const char *start)
{
    uint32_t elem = tx_type(t);
    const mlir_type *part = mlir_type_at(t->r, elem);
    mlir_type x = {0};

    tx_expect(t, '>');
    if (part->kind == MLIR_T_ELEM &&
        (part->dtype == SD_F32 || part->dtype == SD_F64)) {
        mlir_set_elem(&x, sd_dtype_complex(part->dtype));
        return mlir_new_type(t->r, x);
    }
    return other(t, "complex type of a part other than f32 or f64",
                 tx_from(t, start));
}

typedef sd_vec(uint32_t) type_list;

static void types_until(mlir_parser *t, type_list *v, int close)
{
    if (!tx_is(t, close))
        do
            *sd_push(t->r->a, v) = tx_type(t);
        while (tx_accept(t, ','));
    tx_expect(t, close);
}

static uint32_t tuple(mlir_parser *t)
{
    type_list v = {0};

    types_until(t, &v, '>');
    return mlir_new_type(
        t->r, (mlir_type){.kind = MLIR_T_TUPLE, .list = v.at, .nlist = v.n});
}

uint32_t tx_function_type(mlir_parser *t)
{
    type_list v = {0};
    int ninput;

    if (!tx_enter(t))
        return 0;
    tx_expect(t, '(');
    types_until(t, &v, ')');
    ninput = v.n;
    tx_expect(t, TK_ARROW);
    if (tx_accept(t, '('))
        types_until(t, &v, ')');
    else
        *sd_push(t->r->a, &v) = tx_type(t);
    tx_leave(t);
    return mlir_new_type(t->r, (mlir_type){.kind = MLIR_T_FUNCTION,
                                           .list = v.at,
                                           .nlist = v.n,
                                           .ninput = ninput});
}

/* !quant.uniform<i8<-128:127>:f32, ...>: kept as text, but for the storage
 * type, in which constants are. */
static uint32_t quantized(mlir_parser *t, const char *start)
{
    mlir_type x = {.kind = MLIR_T_OTHER, .what = "quantized type"};
    const char *p = t->tok.at + 1;
    sd_bytes word, inside = tx_balanced(t);
    bool is_unsigned;

    while (p < t->end && *p == ' ')
        p++;
    is_unsigned = p < t->end && *p == 'u';
    word.at = (const uint8_t *)p;
    for (word.len = 1; word.len < 4 && p + word.len < t->end &&
                       p[word.len] >= '0' && p[word.len] <= '9';)
        word.len++;
    if (is_unsigned) { /* u8 is builtin's ui8 */
        const char *s =
            sd_arena_fmt(t->r->a, "ui%.*s", (int)word.len - 1, p + 1);

        word = (sd_bytes){(const uint8_t *)s, strlen(s)};
    }
    x.elem = named(t, word);
    if (x.elem == MLIR_ABSENT)
        tx_fail_at(t, p, "expected a quantized type's storage, i8 or u8");
    (void)inside;
    x.text = copy(t, tx_from(t, start));
    return mlir_new_type(t->r, x);
}

static uint32_t future(mlir_parser *t, const char *start)
{
    type_list v = {0};

    tx_expect(t, '<');
    types_until(t, &v, '>');
    return other(t, "future type", tx_from(t, start));
}

static uint32_t banged(mlir_parser *t)
{
    const char *start = t->tok.at;
    sd_bytes name = {(const uint8_t *)start, t->tok.len};
    uint32_t known = tx_known(t->type_alias, name);
    const char *s = copy(t, name);

    tx_next(t);
    if (known)
        return known - 1;
    if (strcmp(s, "!stablehlo.token") == 0)
        return mlir_new_type(t->r, (mlir_type){.kind = MLIR_T_TOKEN});
    if (strcmp(s, "!stablehlo.future") == 0)
        return future(t, start);
    if (strcmp(s, "!quant.uniform") == 0 && tx_is(t, '<'))
        return quantized(t, start);
    if (strcmp(s, "!shape.witness") == 0)
        return other(t, "witness type", name);
    tx_fail_at(t, start, "type %s is not known", s);
    return 0;
}

/* memref<...>, vector<...>: kept as text */
static uint32_t foreign(mlir_parser *t, const char *start, const char *what)
{
    tx_next(t);
    if (!tx_is(t, '<')) {
        tx_expected(t, "'<'");
        return 0;
    }
    tx_balanced(t);
    return other(t, what, tx_from(t, start));
}

static uint32_t bracketed(mlir_parser *t, const char *start, char which)
{
    tx_next(t);
    tx_expect(t, '<');
    return which == 't'   ? tensor(t, start)
           : which == 'u' ? tuple(t)
                          : complex_type(t, start);
}

uint32_t tx_type(mlir_parser *t)
{
    const char *start = t->tok.at;
    uint32_t x = 0;

    if (!tx_enter(t))
        return 0;
    if (tx_is(t, '(')) {
        x = tx_function_type(t);
    } else if (t->tok.kind == TK_BANG) {
        x = banged(t);
    } else if (tx_is_word(t, "tensor") || tx_is_word(t, "tuple") ||
               tx_is_word(t, "complex")) {
        x = bracketed(t, start, tx_is_word(t, "tuple") ? 'u' : start[0]);
    } else if (tx_is_word(t, "memref")) {
        x = foreign(t, start, "buffer type");
    } else if (tx_is_word(t, "vector")) {
        x = foreign(t, start, "vector");
    } else {
        x = t->tok.kind == TK_ID
                ? named(t, (sd_bytes){(const uint8_t *)start, t->tok.len})
                : MLIR_ABSENT;
        if (x == MLIR_ABSENT)
            tx_expected(t, "a type");
        else
            tx_next(t);
    }
    tx_leave(t);
    return t->r->st ? 0 : x;
}
