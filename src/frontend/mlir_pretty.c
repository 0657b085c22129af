/* The assembly that operations have of their own, as JAX prints them.  Most
 * are said by the last column of vhlo.def, in words:
 *
 *   o                operands: %a, %b
 *   , [ ]            that character
 *   [?][,][key=]K:p  an attribute p, behind a comma, behind key=; ?: perhaps.
 *                    K: I list of integers, n integer i64, i integer i32,
 *                    b bool, S string, P precisions, eN enumeration N
 *   !name            a function of this file
 *
 * Then come {attributes} and the types, which no row says.  Where a word is not
 * there its attribute stays absent, as it does in the generic form. */
#include "mlir_text.h"

typedef void (*pretty_fn)(mlir_parser *t, mlir_draft *d);

/* A return of nothing has no types. */
void tx_tail(mlir_parser *t, mlir_draft *d)
{
    if (tx_is(t, '{'))
        tx_attr_dict(t, d, false);
    if (tx_is(t, ':') || d->operand.n || d->row->nresult > 0)
        tx_types(t, d);
}

/* ---- words of a row ---- */

/* [HIGH, DEFAULT] */
static uint32_t precisions(mlir_parser *t)
{
    sd_vec(uint32_t) v = {0};

    tx_expect(t, '[');
    if (!tx_is(t, ']'))
        do
            *sd_push(t->r->a, &v) = tx_enum(t, MLIR_E_PRECISION);
        while (tx_accept(t, ','));
    tx_expect(t, ']');
    return tx_array_of(t, v.at, v.n);
}

static uint32_t bool_word(mlir_parser *t)
{
    bool v = tx_is_word(t, "true");

    if (!v && !tx_is_word(t, "false"))
        tx_expected(t, "true or false");
    tx_next(t);
    return tx_bool(t, v);
}

static uint32_t string_word(mlir_parser *t)
{
    sd_bytes s = tx_string(t);

    return t->r->st ? 0 : mlir_new_string(t->r, (const char *)s.at, s.len);
}

static uint32_t value_of(mlir_parser *t, const char *kind)
{
    switch (*kind) {
    case 'I':
        return tx_int_list(t);
    case 'n':
        return tx_number(t, MLIR_A_INT, "i64", (uint64_t)tx_integer(t));
    case 'i':
        return tx_number(t, MLIR_A_INT, "i32",
                         (uint64_t)tx_integer(t) & UINT32_MAX);
    case 'b':
        return bool_word(t);
    case 'S':
        return string_word(t);
    case 'P':
        return precisions(t);
    default: /* eN */
        return tx_enum(
            t, (kind[1] - '0') +
                   (kind[2] != ':' ? 9 * (kind[1] - '0') + kind[2] - '0' : 0));
    }
}

/* [?][,][key=]K:p */
static void attr_word(mlir_parser *t, mlir_draft *d, const char *w)
{
    bool maybe = *w == '?', comma;
    const char *eq = strchr(w, '=');
    const char *key;

    w += maybe;
    comma = *w == ',';
    w += comma;
    key = eq ? sd_arena_str(t->r->a, w, (size_t)(eq - w)) : NULL;
    if (maybe && comma && !tx_is(t, ','))
        return;
    if (comma)
        tx_expect(t, ',');
    if (key) {
        tx_expect_word(t, key);
        tx_expect(t, '=');
    }
    w = eq ? eq + 1 : w;
    tx_set(t, d, strchr(w, ':') + 1, value_of(t, w));
}

static void form_word(mlir_parser *t, mlir_draft *d, const char *w)
{
    if (strcmp(w, "o") == 0)
        tx_operands(t, d);
    else if (!w[1])
        tx_expect(t, *w);
    else
        attr_word(t, d, w);
}

/* ---- constants and small ones ---- */

static void constant(mlir_parser *t, mlir_draft *d)
{
    uint32_t v;

    if (tx_is(t, '{'))
        tx_attr_dict(t, d, false);
    v = tx_attr(t);
    tx_set(t, d, "value", v);
    if (!t->r->st)
        *sd_push(t->r->a, &d->result) = mlir_attr_at(t->r, v)->type;
}

/* %x, format = e5m10 : type */
static void reduce_precision(mlir_parser *t, mlir_draft *d)
{
    int64_t v[2] = {0};
    const char *p, *end;

    tx_operands(t, d);
    tx_expect(t, ',');
    tx_expect_word(t, "format");
    tx_expect(t, '=');
    p = t->tok.at;
    end = p + t->tok.len;
    for (int i = 0; i < 2; i++) {
        if (p >= end || *p++ != "em"[i]) {
            tx_expected(t, "a format like e5m10");
            return;
        }
        for (; p < end && *p >= '0' && *p <= '9' && v[i] < 1 << 20; p++)
            v[i] = v[i] * 10 + *p - '0';
    }
    tx_next(t);
    tx_set(t, d, "exponent_bits",
           tx_number(t, MLIR_A_INT, "i32", (uint64_t)v[0]));
    tx_set(t, d, "mantissa_bits",
           tx_number(t, MLIR_A_INT, "i32", (uint64_t)v[1]));
    tx_tail(t, d);
}

/* %x [0:2, 0:8:2] : types */
static void slice(mlir_parser *t, mlir_draft *d)
{
    int64_t start[SD_MAX_RANK], limit[SD_MAX_RANK], stride[SD_MAX_RANK];
    int n = 0;

    tx_operands(t, d);
    tx_expect(t, '[');
    while (tx_is_integer(t) && n < SD_MAX_RANK) {
        start[n] = tx_integer(t);
        tx_expect(t, ':');
        limit[n] = tx_integer(t);
        stride[n++] = tx_accept(t, ':') ? tx_integer(t) : 1;
        if (!tx_accept(t, ','))
            break;
    }
    tx_expect(t, ']');
    tx_set(t, d, "start_indices", tx_new_ints(t, start, n));
    tx_set(t, d, "limit_indices", tx_new_ints(t, limit, n));
    tx_set(t, d, "strides", tx_new_ints(t, stride, n));
    tx_tail(t, d);
}

/* @target(%a) {backend_config = ...} : types */
static void custom_call(mlir_parser *t, mlir_draft *d)
{
    uint32_t name = tx_symbol_name(t, "@target");

    if (t->r->st)
        return;
    tx_set(t, d, "call_target_name", name);
    tx_expect(t, '(');
    tx_operands(t, d);
    tx_expect(t, ')');
    tx_tail(t, d);
}

/* "name" %a {composite_attributes = ..., decomposition = @f} : types */
static void composite(mlir_parser *t, mlir_draft *d)
{
    tx_set(t, d, "name", string_word(t));
    tx_operands(t, d);
    tx_tail(t, d);
}

/* @callee(%a) : types */
static void call(mlir_parser *t, mlir_draft *d)
{
    if (t->tok.kind != TK_SYMBOL) {
        tx_expected(t, "@callee");
        return;
    }
    tx_set(t, d, "callee", tx_attr(t));
    tx_expect(t, '(');
    tx_operands(t, d);
    tx_expect(t, ')');
    tx_tail(t, d);
}

/* ---- dot, convolution ---- */

/* [0] x [1]: of both operands */
static void pair_of_lists(mlir_parser *t, mlir_draft *d, const char *lhs,
                          const char *rhs)
{
    tx_expect(t, '=');
    tx_set(t, d, lhs, tx_int_list(t));
    tx_expect_word(t, "x");
    tx_set(t, d, rhs, tx_int_list(t));
}

static void dot_part(mlir_parser *t, mlir_draft *d)
{
    static const sd_bytes algorithm = {(const uint8_t *)"algorithm", 9};

    if (tx_accept_word(t, "batching_dims")) {
        pair_of_lists(t, d, "lhs_batching_dimensions",
                      "rhs_batching_dimensions");
    } else if (tx_accept_word(t, "contracting_dims")) {
        pair_of_lists(t, d, "lhs_contracting_dimensions",
                      "rhs_contracting_dimensions");
    } else if (tx_accept_word(t, "precision")) {
        tx_expect(t, '=');
        tx_set(t, d, "precision_config", precisions(t));
    } else {
        tx_expect_word(t, "algorithm");
        tx_expect(t, '=');
        tx_set_attr(t, d, algorithm, tx_struct(t, MLIR_S_ALGORITHM), true);
    }
}

/* %a, %b, batching_dims = [0] x [0], contracting_dims = ... */
static void dot_general(mlir_parser *t, mlir_draft *d)
{
    static const char *const dims[] = {
        "lhs_batching_dimensions", "rhs_batching_dimensions",
        "lhs_contracting_dimensions", "rhs_contracting_dimensions"};

    for (size_t i = 0; i < SD_COUNTOF(dims); i++)
        tx_set(t, d, dims[i], tx_new_ints(t, NULL, 0));
    tx_operands(t, d);
    while (tx_accept(t, ','))
        dot_part(t, d);
    tx_tail(t, d);
}

/* [[0, 1], [2, 3]] as tensor<2x2xi64> */
static uint32_t padding(mlir_parser *t)
{
    sd_vec(int64_t) v = {0};
    int64_t *dim = sd_arena_array(t->r->a, int64_t, 2);
    mlir_type x = {.kind = MLIR_T_TENSOR, .rank = 2, .dim = dim};

    tx_expect(t, '[');
    while (tx_accept(t, '[')) {
        for (int i = 0; i < 2; i++) {
            if (i)
                tx_expect(t, ',');
            *sd_push(t->r->a, &v) = tx_integer(t);
        }
        tx_expect(t, ']');
        if (!tx_accept(t, ','))
            break;
    }
    tx_expect(t, ']');
    dim[0] = v.n / 2;
    dim[1] = 2;
    x.elem = tx_scalar_type(t, "i64");
    if (t->r->st)
        return 0;
    return mlir_new_attr(t->r,
                         (mlir_attr){.kind = MLIR_A_DENSE,
                                     .type = mlir_new_type(t->r, x),
                                     .blob = {(const uint8_t *)v.at,
                                              sizeof *v.at * (size_t)v.n}});
}

/* [true, false] or [1, 0] as array<i1> */
static uint32_t bools(mlir_parser *t)
{
    uint8_t *v = sd_arena_alloc(t->r->a, SD_MAX_RANK);
    mlir_attr at = {.kind = MLIR_A_DENSE_ARRAY};

    tx_expect(t, '[');
    while (at.bits < SD_MAX_RANK &&
           (t->tok.kind == TK_ID || tx_is_integer(t))) {
        v[at.bits++] =
            t->tok.kind == TK_INT ? tx_integer(t) != 0 : tx_is_word(t, "true");
        if (t->tok.kind == TK_ID)
            tx_next(t);
        if (!tx_accept(t, ','))
            break;
    }
    tx_expect(t, ']');
    at.type = tx_scalar_type(t, "i1");
    at.blob = (sd_bytes){v, (size_t)at.bits};
    return t->r->st ? 0 : mlir_new_attr(t->r, at);
}

/* {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = ..., reverse = ...} */
static void window(mlir_parser *t, mlir_draft *d)
{
    static const char *const part[][2] = {{"stride", "window_strides"},
                                          {"lhs_dilate", "lhs_dilation"},
                                          {"rhs_dilate", "rhs_dilation"}};

    tx_expect(t, '{');
    while (t->tok.kind == TK_ID) {
        size_t i = 0;

        while (i < SD_COUNTOF(part) && !tx_is_word(t, part[i][0]))
            i++;
        if (i < SD_COUNTOF(part)) {
            tx_next(t);
            tx_expect(t, '=');
            tx_set(t, d, part[i][1], tx_int_list(t));
        } else if (tx_accept_word(t, "pad")) {
            tx_expect(t, '=');
            tx_set(t, d, "padding", padding(t));
        } else {
            tx_expect_word(t, "reverse");
            tx_expect(t, '=');
            tx_set(t, d, "window_reversal", bools(t));
        }
        if (!tx_accept(t, ','))
            break;
    }
    tx_expect(t, '}');
}

/* (%a, %b) dim_numbers = ..., window = {...} {attributes} : types */
static void convolution(mlir_parser *t, mlir_draft *d)
{
    static const sd_bytes dims = {(const uint8_t *)"dimension_numbers", 17};

    tx_expect(t, '(');
    tx_operands(t, d);
    tx_expect(t, ')');
    tx_expect_word(t, "dim_numbers");
    tx_expect(t, '=');
    tx_set_attr(t, d, dims, tx_conv(t), true);
    if (tx_accept(t, ',')) {
        tx_expect_word(t, "window");
        tx_expect(t, '=');
        window(t, d);
    }
    tx_tail(t, d);
}

/* ---- reduce ---- */

static uint32_t scalar_of(mlir_parser *t, const mlir_value *v)
{
    const mlir_type *x = mlir_type_at(t->r, v->type);

    if (x->kind == MLIR_T_TENSOR)
        return mlir_new_type(
            t->r, (mlir_type){.kind = MLIR_T_TENSOR, .elem = x->elem});
    return v->type;
}

/* applies stablehlo.add: the body is one operation of two scalars. */
static void short_body(mlir_parser *t, mlir_draft *d, sd_bytes inner,
                       uint32_t loc)
{
    uint32_t type = scalar_of(t, d->operand.at[d->operand.n - 1]);
    const mlir_arg arg[2] = {{.type = type, .loc = loc},
                             {.type = type, .loc = loc}};
    const char *name = sd_arena_str(t->r->a, (const char *)inner.at, inner.len);
    const vhlo_row *row = vhlo_find_text(inner);
    mlir_region *g = tx_new_region(t);
    mlir_block *b = tx_new_block(t, g, arg, 2);
    mlir_value *in[2] = {&b->arg[0], &b->arg[1]}, *out;
    int outer = t->region;
    mlir_op *op;

    if (!row || row->noperand != 2 || row->nresult != 1 || *row->props) {
        tx_fail_at(t, t->tok.at, "%s is no operation of two scalars", name);
        return;
    }
    t->region = g->id;
    op = tx_make_op(t, name, 2, in, 1, &type, loc);
    out = &op->result[0];
    tx_add_op(b, op);
    tx_add_op(b, tx_make_op(t, "stablehlo.return", 1, &out, 0, NULL, loc));
    t->region = outer;
    *sd_push(t->r->a, &d->region) = g;
}

/* reducer(%a: t, %b: t) (%c: u, %d: u) {...}: each pair is the two sides of
 * one input; the region takes all first sides, then all second ones. */
static void long_body(mlir_parser *t, mlir_draft *d)
{
    sd_vec(mlir_arg) pair = {0};
    mlir_arg *arg;

    tx_expect_word(t, "reducer");
    while (tx_accept(t, '(')) {
        for (int i = 0; i < 2; i++) {
            mlir_arg *x = sd_push(t->r->a, &pair);

            if (i)
                tx_expect(t, ',');
            const char *where = t->tok.at;

            x->name = (sd_bytes){(const uint8_t *)where, t->tok.len};
            if (t->tok.kind != TK_VALUE)
                tx_expected(t, "an argument");
            tx_next(t);
            tx_expect(t, ':');
            x->type = tx_type(t);
            x->loc = tx_trailing_loc(t, where);
        }
        tx_expect(t, ')');
    }
    arg = sd_arena_array(t->r->a, mlir_arg, pair.n + 1);
    for (int i = 0; i < pair.n; i++)
        arg[i / 2 + (i % 2) * (pair.n / 2)] = pair.at[i];
    *sd_push(t->r->a, &d->region) = tx_region(t, arg, pair.n);
}

/* (%x init: %c), (%y init: %d) applies OP across dimensions = [0] : types, or
 * across dimensions = [0] : types reducer(...) {...} */
static void reduce(mlir_parser *t, mlir_draft *d)
{
    sd_vec(mlir_value *) init = {0};
    sd_bytes inner = {0};

    d->where = t->tok.at; /* MLIR's place of this one */
    do {
        mlir_value *x, *c;

        tx_expect(t, '(');
        x = tx_operand(t);
        tx_expect_word(t, "init");
        tx_expect(t, ':');
        c = tx_operand(t);
        tx_expect(t, ')');
        if (!x || !c)
            return;
        *sd_push(t->r->a, &d->operand) = x;
        *sd_push(t->r->a, &init) = c;
    } while (tx_accept(t, ','));
    for (int i = 0; i < init.n; i++)
        *sd_push(t->r->a, &d->operand) = init.at[i];
    if (tx_accept_word(t, "applies")) {
        inner = (sd_bytes){(const uint8_t *)t->tok.at, t->tok.len};
        tx_next(t);
    }
    tx_expect_word(t, "across");
    tx_expect_word(t, "dimensions");
    tx_expect(t, '=');
    tx_set(t, d, "dimensions", tx_int_list(t));
    tx_tail(t, d);
    if (t->r->st)
        return;
    if (inner.len)
        short_body(t, d, inner, tx_peek_loc(t, d->where));
    else
        long_body(t, d);
}

/* ---- while ---- */

/* (%i = %c, %j = %d) : types attributes {...} cond {...} do {...}: both
 * regions name their arguments so. */
static void while_loop(mlir_parser *t, mlir_draft *d)
{
    sd_vec(mlir_arg) arg = {0};

    tx_expect(t, '(');
    while (t->tok.kind == TK_VALUE) {
        mlir_arg *x = sd_push(t->r->a, &arg);
        mlir_value *v;

        x->name = (sd_bytes){(const uint8_t *)t->tok.at, t->tok.len};
        x->loc = tx_place(t, t->tok.at);
        tx_next(t);
        tx_expect(t, '=');
        if (!(v = tx_operand(t)))
            return;
        x->type = v->type;
        *sd_push(t->r->a, &d->operand) = v;
        if (!tx_accept(t, ','))
            break;
    }
    tx_expect(t, ')');
    if (arg.n)
        tx_types(t, d);
    if (tx_accept_word(t, "attributes"))
        tx_attr_dict(t, d, false);
    tx_expect_word(t, "cond");
    *sd_push(t->r->a, &d->region) = tx_region(t, arg.at, arg.n);
    tx_expect_word(t, "do");
    *sd_push(t->r->a, &d->region) = tx_region(t, arg.at, arg.n);
}

/* ---- all ---- */

static const struct {
    const char *name;
    pretty_fn fn;
} special[] = {{"!constant", constant},
               {"!reduce_precision", reduce_precision},
               {"!slice", slice},
               {"!custom_call", custom_call},
               {"!composite", composite},
               {"!call", call},
               {"!dot_general", dot_general},
               {"!convolution", convolution},
               {"!reduce", reduce},
               {"!while", while_loop},
               {"!func", tx_function},
               {"!module", tx_module},
               {"!mesh", tx_sdy_mesh},
               {"!sharding", tx_sdy_sharding},
               {"!manual", tx_sdy_manual}};

void tx_custom(mlir_parser *t, mlir_draft *d)
{
    const char *form = d->row->form;

    for (size_t i = 0; i < SD_COUNTOF(special); i++)
        if (strcmp(form, special[i].name) == 0) {
            special[i].fn(t, d);
            return;
        }
    while (*form && !t->r->st) {
        size_t n = strcspn(form, " ");

        form_word(t, d, sd_arena_str(t->r->a, form, n));
        form += n + (form[n] == ' ');
    }
    tx_tail(t, d);
}
