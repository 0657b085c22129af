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

typedef struct { /* of XLA's tables; numbers count from 1 */
    int64_t a, b;
} numbers;

typedef struct {
    hlo_lexer x;
    hlo_module *m;
    sd_map *comps, *insts; /* by hash of the name; insts: of this computation */
    int depth; /* of computations in computations */
    sd_vec(const char *) file;
    sd_vec(numbers) location; /* file, line */
    sd_vec(numbers) frame; /* location */
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

/* File and line of a frame in the header's tables. */
static bool find_frame(void *ctx, int64_t id, hlo_inst *in)
{
    const parser *p = ctx;
    int64_t at, file;

    if (id < 1 || id > p->frame.n)
        return false;
    at = p->frame.at[id - 1].a;
    if (at < 1 || at > p->location.n)
        return false;
    file = p->location.at[at - 1].a;
    if (file < 1 || file > p->file.n)
        return false;
    in->source_file = p->file.at[file - 1];
    in->source_line = (int)p->location.at[at - 1].b;
    return true;
}

/* ---- attributes, still as text ---- */

/* What stands between "key=" and the comma or space that ends it. */
static hlo_word take_value(hlo_lexer *x)
{
    hlo_word w;
    int depth = 0;
    size_t len;

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

static bool take_attr(hlo_lexer *x, hlo_attr *a)
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

    while (hlo_accept(&p->x, ",") && take_attr(&p->x, &a))
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
    if ((st = hlo_verify_inst(p->m, in))) {
        p->x.at = at;
        p->x.status = st;
        hlo_fail(&p->x, "a valid instruction");
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

/* ---- the header ---- */

/* { {0}: (1, {}, may-alias), ... } */
static void take_aliases(parser *p, hlo_lexer *x)
{
    sd_vec(hlo_alias) v = {0};

    hlo_expect(x, "{");
    while (!x->bad && !hlo_accept(x, "}")) {
        hlo_alias a = {0};
        hlo_dims out = hlo_take_dims(x), in;

        hlo_expect(x, ":");
        hlo_expect(x, "(");
        a.param = hlo_take_int(x);
        hlo_expect(x, ",");
        in = hlo_take_dims(x);
        if (hlo_accept(x, ",")) {
            a.must = hlo_accept_word(x, "must-alias");
            if (!a.must && !hlo_accept_word(x, "may-alias"))
                hlo_fail(x, "may-alias or must-alias");
        }
        hlo_expect(x, ")");
        hlo_accept(x, ",");
        if (out.n > 1 || in.n > 0)
            hlo_fail(x, "outputs and parameters without inner tuples");
        a.output_index = out.n ? out.at[0] : 0;
        *sd_push(p->x.arena, &v) = a;
    }
    p->m->alias = v.at;
    p->m->nalias = v.n;
}

/* { (0, {}), (2, {}) }, kept until the entry's parameters are known */
static hlo_dims take_donors(hlo_lexer *x)
{
    sd_vec(int64_t) v = {0};

    hlo_expect(x, "{");
    while (!x->bad && !hlo_accept(x, "}")) {
        hlo_expect(x, "(");
        *sd_push(x->arena, &v) = hlo_take_int(x);
        hlo_expect(x, ",");
        hlo_take_dims(x);
        hlo_expect(x, ")");
        hlo_accept(x, ",");
    }
    return (hlo_dims){v.at, v.n};
}

static int take_count(hlo_lexer *x)
{
    int64_t n = hlo_take_int(x);

    if (n < 1 || n > 1 << 20)
        hlo_fail(x, "a count");
    return (int)n;
}

/* One of n arguments or results: its memory; the shape is said again. */
static void take_memory(parser *p, hlo_lexer *x, const char ***kind, int i)
{
    const int most = 1 << 16; /* more are not told apart by memory */
    bool array = !hlo_accept(x, "(");

    if (!array)
        x->at--;
    hlo_take_shape(x);
    if (array && x->space && i < most &&
        !hlo_set_memory(p->x.arena, kind, most, i, x->space))
        hlo_refuse(x, sd_error(SD_UNIMPLEMENTED,
                               "memory space %" PRId64 "; there are 0 (device) "
                               "and %d (pinned_host)",
                               x->space, HLO_HOST_SPACE));
}

static void take_list(parser *p, hlo_lexer *x, const char ***kind)
{
    int i = 0;

    hlo_expect(x, "(");
    if (hlo_accept(x, ")"))
        return;
    do
        take_memory(p, x, kind, i++);
    while (hlo_accept(x, ",") && !x->bad);
    hlo_expect(x, ")");
}

/* {(f32[2]{0}, ...)->(f32[2]{0:S(5)})} */
static void take_memories(parser *p, hlo_lexer *x)
{
    hlo_expect(x, "{");
    take_list(p, x, &p->m->param_memory);
    hlo_expect(x, "->");
    hlo_skip_space(x);
    if (x->at < x->end && *x->at == '(')
        take_list(p, x, &p->m->output_memory);
    else
        take_memory(p, x, &p->m->output_memory, 0);
    hlo_expect(x, "}");
}

static hlo_dims take_header(parser *p)
{
    hlo_dims donors = {0};
    hlo_attr a;

    while (hlo_accept(&p->x, ",") && take_attr(&p->x, &a)) {
        hlo_lexer x = p->x;

        x.at = a.value.at;
        x.end = a.value.at + a.value.len;
        if (hlo_word_is(a.key, "input_output_alias"))
            take_aliases(p, &x);
        else if (hlo_word_is(a.key, "buffer_donor"))
            donors = take_donors(&x);
        else if (hlo_word_is(a.key, "replica_count"))
            p->m->nreplica = take_count(&x);
        else if (hlo_word_is(a.key, "num_partitions"))
            p->m->npartition = take_count(&x);
        else if (hlo_word_is(a.key, "entry_computation_layout"))
            take_memories(p, &x);
        else if (hlo_word_is(a.key, "frontend_attributes"))
            p->m->frontend_attrs =
                sd_arena_str(p->x.arena, a.value.at, a.value.len);
        /* others repeat what the computations say, or are XLA's own affair */
        if (!x.bad)
            continue;
        p->x.at = x.bad_at;
        if (x.status)
            hlo_refuse(&p->x, x.status);
        else
            hlo_fail(&p->x, x.bad);
    }
    return donors;
}

static void check_entry(parser *p, hlo_dims donors)
{
    hlo_module *m = p->m;
    sd_status st;

    if (!m->entry) { /* a single computation needs no keyword */
        if (m->first && !m->first->next)
            m->entry = m->first;
        else
            hlo_fail(&p->x, "an ENTRY computation");
    }
    if (p->x.bad)
        return;
    if ((st = hlo_check_entry(m, donors))) {
        hlo_refuse(&p->x, st);
        return;
    }
    if (donors.n)
        m->donor = sd_arena_array(m->arena, bool, m->entry->nparam + 1);
    for (int i = 0; i < donors.n; i++)
        m->donor[donors.at[i]] = true;
}

/* ---- tables of files and frames, between header and computations ---- */

/* {file_name_id=1 function_name_id=2 line=3 ...}: the two that are asked for */
static numbers take_fields(hlo_lexer *x, const char *first, const char *second)
{
    numbers n = {0, 0};

    hlo_expect(x, "{");
    while (!x->bad && !hlo_accept(x, "}")) {
        hlo_word key = hlo_take_name(x);
        int64_t v;

        hlo_expect(x, "=");
        v = hlo_take_int(x);
        if (hlo_word_is(key, first))
            n.a = v;
        else if (hlo_word_is(key, second))
            n.b = v;
    }
    return n;
}

static void take_row(parser *p, int table)
{
    hlo_lexer *x = &p->x;
    size_t len;

    if (table == 0)
        *sd_push(x->arena, &p->file) = hlo_take_string(x, &len);
    else if (table == 1)
        hlo_take_string(x, &len); /* names of functions are not kept */
    else if (table == 2)
        *sd_push(x->arena, &p->location) =
            take_fields(x, "file_name_id", "line");
    else
        *sd_push(x->arena, &p->frame) = take_fields(x, "file_location_id", "");
}

/* Rows are numbered from 1 in their order. */
static bool take_table(parser *p)
{
    static const char *const name[] = {"FileNames", "FunctionNames",
                                       "FileLocations", "StackFrames"};
    hlo_lexer *x = &p->x;

    for (int i = 0; i < (int)SD_COUNTOF(name); i++) {
        if (!hlo_accept_word(x, name[i]))
            continue;
        hlo_skip_space(x);
        while (!x->bad && x->at < x->end && *x->at >= '0' && *x->at <= '9') {
            hlo_take_int(x);
            take_row(p, i);
            hlo_skip_space(x);
        }
        return true;
    }
    return false;
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
    int near = (int)SD_MIN(p->x.end - at, 24);

    return sd_error(SD_INVALID,
                    "HLO text, line %d column %d: expected %s, found \"%.*s\"",
                    line, column, p->x.bad, near, at);
}

sd_status hlo_parse(sd_arena *a, const char *text, size_t len, hlo_module **out)
{
    parser p = {.x = {.arena = a, .base = text, .at = text, .end = text + len}};
    hlo_dims donors = {0};
    hlo_word name = {"module", 6};

    bool header = hlo_accept_word(&p.x, "HloModule");

    if (header)
        name = hlo_take_name(&p.x);
    p.m = hlo_module_create(a, sd_arena_str(a, name.at, name.len));
    p.comps = sd_map_create(a);
    if (header)
        donors = take_header(&p);
    while (!p.x.bad && take_table(&p))
        ;
    for (hlo_skip_space(&p.x); !p.x.bad && p.x.at < p.x.end;
         hlo_skip_space(&p.x))
        take_comp(&p);
    check_entry(&p, donors);
    if (p.x.bad)
        return parse_error(&p);
    *out = p.m;
    return NULL;
}
