/* The assembly of what holds functions and of what Shardy says of them. */
#include "mlir_text.h"

/* ---- functions, the module ---- */

static uint32_t empty_dict(mlir_parser *t)
{
    return t->r->st ? 0 : mlir_new_attr(t->r, (mlir_attr){.kind = MLIR_A_DICT});
}

typedef struct {
    sd_vec(mlir_arg) arg;
    sd_vec(uint32_t) type, attr; /* inputs, then results */
    int ninput;
    bool has_attr[2];
} signature;

/* Arguments (%x: type {attributes} loc(...)), or types alone. */
static void signature_item(mlir_parser *t, signature *s, bool result)
{
    const char *where = t->tok.at;
    mlir_arg x = {0};
    bool has;

    if (!result && t->tok.kind == TK_VALUE) {
        x.name = (sd_bytes){(const uint8_t *)t->tok.at, t->tok.len};
        where = t->tok.at;
        tx_next(t);
        tx_expect(t, ':');
    }
    x.type = tx_type(t);
    has = tx_is(t, '{');
    *sd_push(t->r->a, &s->attr) = has ? tx_dict(t) : empty_dict(t);
    s->has_attr[result] |= has;
    *sd_push(t->r->a, &s->type) = x.type;
    if (!result) {
        x.loc = tx_trailing_loc(t, where);
        *sd_push(t->r->a, &s->arg) = x;
    }
}

static void signature_list(mlir_parser *t, signature *s, bool result)
{
    tx_expect(t, '(');
    if (!tx_is(t, ')'))
        do
            signature_item(t, s, result);
        while (tx_accept(t, ','));
    tx_expect(t, ')');
}

/* Without brackets: a brace behind it is the body's. */
static void result_alone(mlir_parser *t, signature *s)
{
    *sd_push(t->r->a, &s->type) = tx_type(t);
    *sd_push(t->r->a, &s->attr) = empty_dict(t);
}

static void read_signature(mlir_parser *t, signature *s)
{
    signature_list(t, s, false);
    s->ninput = s->type.n;
    if (!tx_accept(t, TK_ARROW))
        return;
    if (tx_is(t, '('))
        signature_list(t, s, true);
    else
        result_alone(t, s);
}

static void set_signature(mlir_parser *t, mlir_draft *d, const signature *s)
{
    uint32_t type;

    if (t->r->st)
        return;
    type = mlir_new_type(t->r, (mlir_type){.kind = MLIR_T_FUNCTION,
                                           .list = s->type.at,
                                           .nlist = s->type.n,
                                           .ninput = s->ninput});
    tx_set(t, d, "function_type",
           mlir_new_attr(t->r, (mlir_attr){.kind = MLIR_A_TYPE, .type = type}));
    if (s->has_attr[0])
        tx_set(t, d, "arg_attrs", tx_array_of(t, s->attr.at, s->ninput));
    if (s->has_attr[1])
        tx_set(t, d, "res_attrs",
               tx_array_of(t, s->attr.at + s->ninput, s->attr.n - s->ninput));
}

static void symbol_name(mlir_parser *t, mlir_draft *d)
{
    uint32_t name = tx_symbol_name(t, "@name");

    if (!t->r->st)
        tx_set(t, d, "sym_name", name);
}

static void visibility(mlir_parser *t, mlir_draft *d)
{
    if (!tx_is_word(t, "public") && !tx_is_word(t, "private") &&
        !tx_is_word(t, "nested"))
        return;
    tx_set(t, d, "sym_visibility",
           mlir_new_string(t->r, t->tok.at, t->tok.len));
    tx_next(t);
}

/* public @f(%a: type) -> type attributes {...} {...} */
void tx_function(mlir_parser *t, mlir_draft *d)
{
    signature s = {0};
    int saved;

    visibility(t, d);
    symbol_name(t, d);
    tx_isolate(t, &saved);
    read_signature(t, &s);
    set_signature(t, d, &s);
    if (tx_accept_word(t, "attributes"))
        tx_attr_dict(t, d, false);
    if (tx_is(t, '{'))
        *sd_push(t->r->a, &d->region) = tx_region(t, s.arg.at, s.arg.n);
    else
        *sd_push(t->r->a, &d->region) = tx_new_region(t);
    tx_join(t, saved);
}

/* @name attributes {...} {...} */
void tx_module(mlir_parser *t, mlir_draft *d)
{
    mlir_region *g;
    int saved;

    visibility(t, d);
    if (t->tok.kind == TK_SYMBOL)
        symbol_name(t, d);
    if (tx_accept_word(t, "attributes"))
        tx_attr_dict(t, d, false);
    tx_isolate(t, &saved);
    g = tx_region(t, NULL, 0);
    if (!g->nblock) /* module {} has a block without operations */
        tx_new_block(t, g, NULL, 0);
    *sd_push(t->r->a, &d->region) = g;
    tx_join(t, saved);
}

/* ---- Shardy ---- */

static uint32_t sdy_text(mlir_parser *t, const char *prefix, sd_bytes s,
                         const char *suffix)
{
    const char *text = sd_arena_fmt(t->r->a, "%s%.*s%s", prefix, (int)s.len,
                                    (const char *)s.at, suffix);

    return t->r->st ? 0
                    : mlir_new_attr(
                          t->r, (mlir_attr){.kind = MLIR_A_OPAQUE,
                                            .str = mlir_new_str(t->r, text,
                                                                strlen(text))});
}

/* @name = <["x"=2]> */
void tx_sdy_mesh(mlir_parser *t, mlir_draft *d)
{
    symbol_name(t, d);
    tx_expect(t, '=');
    if (tx_is(t, '<'))
        tx_set(t, d, "mesh", sdy_text(t, "#sdy.mesh", tx_balanced(t), ""));
    else
        tx_expected(t, "a mesh, <[...]>");
    if (tx_is(t, '{'))
        tx_attr_dict(t, d, false);
}

/* %x <@mesh, [{"x"}]> : type */
void tx_sdy_sharding(mlir_parser *t, mlir_draft *d)
{
    tx_operands(t, d);
    if (tx_is(t, '<'))
        tx_set(t, d, "sharding",
               sdy_text(t, "#sdy.sharding", tx_balanced(t), ""));
    else
        tx_expected(t, "a sharding, <@mesh, [...]>");
    tx_tail(t, d);
}

static void sdy_part(mlir_parser *t, mlir_draft *d, const char *word,
                     const char *prefix)
{
    tx_expect_word(t, word);
    tx_expect(t, '=');
    if (tx_is(t, '[') || tx_is(t, '{'))
        tx_set(t, d, word, sdy_text(t, prefix, tx_balanced(t), ">"));
    else
        tx_expected(t, "a list");
}

/* (%a) in_shardings=[...] out_shardings=[...] manual_axes={...}
 * (%b: type) {...} : types */
void tx_sdy_manual(mlir_parser *t, mlir_draft *d)
{
    signature s = {0};

    tx_expect(t, '(');
    tx_operands(t, d);
    tx_expect(t, ')');
    sdy_part(t, d, "in_shardings", "#sdy.sharding_per_value<");
    sdy_part(t, d, "out_shardings", "#sdy.sharding_per_value<");
    sdy_part(t, d, "manual_axes", "#sdy<manual_axes");
    signature_list(t, &s, false);
    *sd_push(t->r->a, &d->region) = tx_region(t, s.arg.at, s.arg.n);
    tx_tail(t, d);
}
