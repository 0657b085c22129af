/* HLO text to the graph: modules, computations, instructions.  Takes what
 * hlo_print writes, what XLA writes, and short forms without % signs, header
 * or line breaks.  Definitions come before uses, as XLA prints them. */
#include "hlo_text.h"

#include <limits.h>

typedef struct named named;
struct named { /* an instruction or computation under its name in the text */
    hlo_word name;
    void *is;
    named *chain;
};

typedef struct {
    hlo_lexer x;
    hlo_module *m;
    hlo_head head;
    sd_map *comps, *insts; /* by hash of the name; insts: of this computation */
    int depth; /* of computations in computations */
} parser;

/* ---- names ---- */

static void put_name(parser *p, sd_map *map, hlo_word w, void *is)
{
    uint64_t key = sd_hash(w.at, w.len, 7);
    named *e = sd_arena_new(p->x.arena, named);

    *e = (named){w, is, sd_map_get(map, key)};
    sd_map_set(map, key, e);
}

static void *get_name(sd_map *map, hlo_word w)
{
    named *e = sd_map_get(map, sd_hash(w.at, w.len, 7));

    while (e && (e->name.len != w.len || memcmp(e->name.at, w.at, w.len) != 0))
        e = e->chain;
    return e ? e->is : NULL;
}

static hlo_comp *find_comp(void *ctx, hlo_word name)
{
    return get_name(((parser *)ctx)->comps, name);
}

static void find_frame(void *ctx, int64_t id, hlo_inst *in)
{
    hlo_head_frame(&((parser *)ctx)->head, id, in);
}

/* ---- attributes, still as text ---- */

/* Nothing at all is a value too: XLA prints "padding=" of a scalar.  Its
 * canonical text has a computation on the lines behind "to_apply=". */
static bool is_nothing(const hlo_lexer *x)
{
    const char *p = x->at;

    if (p >= x->end || *p == ',')
        return p < x->end;
    while (p < x->end && (*p == ' ' || *p == '\n' || *p == '\r'))
        p++;
    return memchr(x->at, '\n', (size_t)(p - x->at)) &&
           (p == x->end || *p != '{');
}

/* What stands between "key=" and the comma or space that ends it. */
static hlo_word take_value(hlo_lexer *x)
{
    hlo_word w = {x->at, 0};
    int depth = 0;
    size_t len;

    if (is_nothing(x))
        return w;
    hlo_skip_space(x);
    w.at = x->at;
    while (x->at < x->end && !x->bad) {
        char ch = *x->at;

        if (ch == '"') {
            hlo_take_string(x, &len);
            continue;
        }
        if (depth == 0 && (ch == ',' || ch == ' ' || ch == '\n' || ch == '\t' ||
                           ch == '\r' || ch == '}' || ch == ')'))
            break;
        if (ch == '{' || ch == '(' || ch == '[')
            depth++;
        else if (ch == '}' || ch == ')' || ch == ']')
            depth--;
        x->at++;
    }
    w.len = (size_t)(x->at - w.at);
    if (depth != 0 || w.len == 0)
        hlo_fail(x, "a value");
    return w;
}

bool hlo_take_attr(hlo_lexer *x, hlo_attr *a)
{
    a->used = false;
    a->key = hlo_take_name(x);
    if (a->key.len == 0)
        hlo_fail(x, "an attribute's name");
    hlo_expect(x, "=");
    a->value = take_value(x);
    return !x->bad;
}

static hlo_comp *take_inline(void *ctx, hlo_lexer *x);

static hlo_attrs take_attrs(parser *p)
{
    sd_vec(hlo_attr) v = {0};
    hlo_attr a;

    while (hlo_accept(&p->x, ",") && hlo_take_attr(&p->x, &a))
        *sd_push(p->x.arena, &v) = a;
    return (hlo_attrs){v.at, v.n, find_comp, take_inline, find_frame, p};
}

/* ---- instructions ---- */

static hlo_inst *take_operand(parser *p)
{
    hlo_lexer *x = &p->x;
    const char *back;
    hlo_word w;
    hlo_inst *in;
    sd_dtype t;

    hlo_skip_space(x);
    back = x->at;
    w = hlo_take_name(x);
    /* older text gives the operand's shape first: it says nothing new */
    if ((x->at < x->end && *x->at == '[' &&
         sd_dtype_of_name(w.at, w.len, &t)) ||
        (w.len == 0 && back < x->end && *back == '(')) {
        x->at = back;
        hlo_take_shape(x);
        w = hlo_take_name(x);
    }
    in = x->bad ? NULL : get_name(p->insts, w);
    if (!in) {
        if (!x->bad)
            x->at = back;
        hlo_fail(x, "the name of an instruction defined above");
    }
    return in;
}

static void check_inst(parser *p, hlo_inst *in, const char *at)
{
    sd_status st;

    if (p->x.bad)
        return;
    if ((st = hlo_admit(p->m, in))) {
        p->x.at = at;
        hlo_refuse(&p->x, st);
    }
}

static void take_parameter(parser *p, hlo_inst *in)
{
    int64_t i = hlo_take_int(&p->x);
    hlo_comp *c = in->parent;

    /* no more parameters than the text has room for */
    if (i < 0 || i > (p->x.end - p->x.base) / 8 || i > INT_MAX / 4 ||
        (i < c->nparam && c->param[i])) {
        hlo_fail(&p->x, "a parameter number not used yet");
        return;
    }
    in->u.param.index = i;
    hlo_comp_put_param(c, in);
}

static int take_operands(parser *p, hlo_inst ***out)
{
    sd_vec(hlo_inst *) arg = {0};

    if (!hlo_accept(&p->x, ")")) {
        do {
            hlo_inst *o = take_operand(p);

            if (!o)
                return 0;
            *sd_push(p->x.arena, &arg) = o;
        } while (hlo_accept(&p->x, ","));
        hlo_expect(&p->x, ")");
    }
    *out = arg.at;
    return arg.n;
}

/* A tuple's literal becomes constants and the tuple of them. */
static hlo_inst *take_constant(parser *p, hlo_comp *c, const char *name,
                               const sd_shape *s, int depth)
{
    hlo_lexer *x = &p->x;
    hlo_inst **arg, *in;

    if (s->dtype != SD_TUPLE) {
        in = hlo_inst_create_named(c, NULL, HLO_CONSTANT, name, s, 0, NULL);
        if (!sd_shape_is_array(s))
            hlo_fail(x, "an array's shape for a constant");
        else
            in->u.literal.data = hlo_parse_literal(x, s, &in->u.literal.bytes);
        return in;
    }
    if (depth == 16)
        hlo_fail(x, "tuples nested less deep");
    arg = sd_arena_array(x->arena, hlo_inst *, s->nelem + 1);
    hlo_expect(x, "(");
    for (int i = 0; i < s->nelem && !x->bad; i++) {
        if (i)
            hlo_expect(x, ",");
        arg[i] = take_constant(p, c, sd_arena_fmt(x->arena, "%s.%d", name, i),
                               s->elem[i], depth + 1);
    }
    hlo_expect(x, ")");
    if (x->bad)
        return NULL;
    return hlo_inst_create_named(c, NULL, HLO_TUPLE, name, s, s->nelem, arg);
}

static hlo_inst *take_inst(parser *p, hlo_comp *c)
{
    hlo_lexer *x = &p->x;
    const char *start;
    const sd_shape *shape;
    hlo_word name, opname;
    hlo_attrs as;
    hlo_inst *in;
    hlo_op op;

    hlo_skip_space(x);
    start = x->at;
    name = hlo_take_name(x);
    if (name.len == 0)
        hlo_fail(x, "an instruction's name");
    hlo_expect(x, "=");
    shape = hlo_take_shape(x);
    hlo_skip_space(x);
    opname = hlo_take_name(x);
    if (!x->bad && !hlo_op_of_name(opname.at, opname.len, &op)) {
        x->at = opname.at;
        if (hlo_op_not_done(opname.at, opname.len))
            hlo_refuse(x, sd_error(SD_UNIMPLEMENTED, "XLA's op %.*s",
                                   (int)opname.len, opname.at));
        hlo_fail(x, "an op");
    }
    hlo_expect(x, "(");
    if (x->bad)
        return NULL;
    const char *s = sd_arena_str(x->arena, name.at, name.len);

    if (op == HLO_CONSTANT) {
        in = take_constant(p, c, s, shape, 0);
        hlo_expect(x, ")");
    } else if (op == HLO_PARAMETER) {
        in = hlo_inst_create_named(c, NULL, op, s, shape, 0, NULL);
        take_parameter(p, in);
        hlo_expect(x, ")");
    } else {
        hlo_inst **arg = NULL;
        int n = take_operands(p, &arg);

        if (x->bad)
            return NULL;
        n = hlo_new_operands(c, op, s, n, &arg);
        in = hlo_inst_create_named(c, NULL, op, s, shape, n, arg);
    }
    if (x->bad)
        return NULL;
    as = take_attrs(p);
    hlo_parse_attrs(x, &as, in);
    check_inst(p, in, start);
    if (x->bad)
        return NULL;
    if (get_name(p->insts, name)) {
        x->at = start;
        hlo_fail(x, "a name not used yet in this computation");
        return NULL;
    }
    put_name(p, p->insts, name, in);
    return in;
}

/* ---- computations ---- */

/* "(a: f32[2], b: s32[]) -> f32[2]": the instructions say it all again. */
static void skip_signature(parser *p)
{
    hlo_lexer *x = &p->x;

    if (!hlo_accept(x, "("))
        return;
    if (!hlo_accept(x, ")")) {
        do {
            hlo_take_name(x);
            hlo_expect(x, ":");
            hlo_take_shape(x);
        } while (hlo_accept(x, ",") && !x->bad);
        hlo_expect(x, ")");
    }
    hlo_expect(x, "->");
    hlo_take_shape(x);
}

static void take_body(parser *p, hlo_comp *c)
{
    hlo_lexer *x = &p->x;
    hlo_inst *in, *root = NULL;

    p->insts = sd_map_create(x->arena);
    hlo_expect(x, "{");
    while (!x->bad && !hlo_accept(x, "}")) {
        bool is_root = hlo_accept_word(x, "ROOT");

        if (!(in = take_inst(p, c)))
            return;
        if (is_root && root) {
            hlo_fail(x, "one ROOT");
            return;
        }
        if (is_root)
            root = in;
    }
    if (x->bad)
        return;
    if (!root)
        root = c->last; /* as XLA: the last one */
    if (!root) {
        hlo_fail(x, "an instruction before the end of the computation");
        return;
    }
    for (int i = 0; i < c->nparam; i++)
        if (!c->param[i]) {
            hlo_fail(x, "parameters numbered without gaps");
            return;
        }
    hlo_set_root(c, root);
}

/* "to_apply={ ... }": a computation in the place of its name. */
static hlo_comp *take_inline(void *ctx, hlo_lexer *x)
{
    parser *p = ctx, outer = *p;
    hlo_comp *c = hlo_comp_create(p->m, "region");

    if (p->depth == 64) {
        hlo_fail(x, "computations nested less deep");
        return NULL;
    }
    p->depth++;
    p->x = *x;
    take_body(p, c);
    *x = p->x;
    p->x = outer.x;
    p->insts = outer.insts;
    p->depth--;
    return c;
}

static void take_comp(parser *p)
{
    hlo_lexer *x = &p->x;
    bool entry = hlo_accept_word(x, "ENTRY");
    hlo_word name = hlo_take_name(x);
    hlo_comp *c;

    if (name.len == 0) {
        hlo_fail(x, "a computation");
        return;
    }
    if (get_name(p->comps, name) || (entry && p->m->entry)) {
        x->at = name.at;
        hlo_fail(x, entry && p->m->entry ? "one ENTRY" : "a new name");
        return;
    }
    c = hlo_comp_create(p->m, sd_arena_str(x->arena, name.at, name.len));
    skip_signature(p);
    if (!x->bad)
        take_body(p, c);
    /* execution_thread and the like */
    take_attrs(p);
    put_name(p, p->comps, name, c);
    if (entry)
        p->m->entry = c;
}

/* ---- modules ---- */

static void check_entry(parser *p)
{
    hlo_module *m = p->m;
    sd_status st;

    if (!m->entry) { /* a single computation needs no keyword */
        if (m->first && !m->first->next)
            m->entry = m->first;
        else
            hlo_fail(&p->x, "an ENTRY computation");
    }
    if (!p->x.bad && (st = hlo_head_apply(&p->head, m)))
        hlo_refuse(&p->x, st);
}

static sd_status parse_error(parser *p)
{
    const char *at = p->x.bad_at;
    int line = 1, column = 1;

    for (const char *s = p->x.base; s < at; s++) {
        column = *s == '\n' ? 1 : column + 1;
        line += *s == '\n';
    }
    if (p->x.status)
        return sd_note(p->x.status, "HLO text, line %d", line);
    char near[25] = "";

    for (int i = 0; i < 24 && at + i < p->x.end; i++)
        near[i] = at[i] < ' ' || at[i] > '~' ? ' ' : at[i];
    return sd_error(SD_INVALID,
                    "HLO text, line %d column %d: expected %s, found \"%s\"",
                    line, column, p->x.bad, near);
}

sd_status hlo_parse(sd_arena *a, const char *text, size_t len, hlo_module **out)
{
    parser p = {.x = {.arena = a, .base = text, .at = text, .end = text + len}};
    hlo_word name = {"module", 6};
    bool header = hlo_accept_word(&p.x, "HloModule");

    if (header)
        name = hlo_take_name(&p.x);
    p.m = hlo_module_create(a, sd_arena_str(a, name.at, name.len));
    p.comps = sd_map_create(a);
    if (header)
        hlo_take_head(&p.x, p.m, &p.head);
    for (hlo_skip_space(&p.x); !p.x.bad && p.x.at < p.x.end;
         hlo_skip_space(&p.x))
        take_comp(&p);
    check_entry(&p);
    if (p.x.bad)
        return parse_error(&p);
    *out = p.m;
    return NULL;
}
