/* StableHLO text: operations, values, regions.  What is read is what
 * bytecode would have given: VHLO's newest form of each operation, with flat
 * attributes; those that text leaves out stay absent. */
#include "mlir_text.h"

/* ---- values ---- */

static mlir_binding *find_value(mlir_parser *t, sd_bytes name)
{
    int i = (int)sd_key(sd_map_get(t->latest, tx_key(name))) - 1;

    for (; i >= t->floor; i = t->bind.at[i].prev) {
        mlir_binding *b = &t->bind.at[i];

        if (b->name.len == name.len &&
            memcmp(b->name.at, name.at, name.len) == 0)
            return b;
    }
    return NULL;
}

static void bind_value(mlir_parser *t, sd_bytes name, mlir_value *first, int n)
{
    uint64_t key = tx_key(name);
    int prev = (int)sd_key(sd_map_get(t->latest, key)) - 1;

    if (find_value(t, name)) {
        tx_fail_at(t, (const char *)name.at, "%.*s is defined already",
                   (int)name.len, (const char *)name.at);
        return;
    }
    *sd_push(t->r->a, &t->bind) = (mlir_binding){key, name, first, n, prev};
    sd_map_set(t->latest, key, (void *)(uintptr_t)t->bind.n);
}

/* Forgets the names from n on. */
static void unbind(mlir_parser *t, int n)
{
    while (t->bind.n > n) {
        mlir_binding *b = &t->bind.at[--t->bind.n];

        sd_map_set(t->latest, b->key, (void *)(uintptr_t)(b->prev + 1));
    }
}

void tx_isolate(mlir_parser *t, int *saved)
{
    *saved = t->floor;
    t->floor = t->bind.n;
}

void tx_join(mlir_parser *t, int saved)
{
    t->floor = saved;
}

/* %0 or %0#1 */
mlir_value *tx_operand(mlir_parser *t)
{
    sd_bytes name = {(const uint8_t *)t->tok.at, t->tok.len};
    mlir_binding *b;
    int64_t k = 0;

    if (t->tok.kind != TK_VALUE) {
        tx_expected(t, "a value");
        return NULL;
    }
    b = find_value(t, name);
    if (!b) {
        tx_fail_at(t, t->tok.at, "value %.*s is not defined here",
                   (int)name.len, (const char *)name.at);
        return NULL;
    }
    tx_next(t);
    if (t->tok.kind == TK_HASH && t->tok.len < 10) {
        const char *s = t->tok.at;

        for (size_t i = 1; i < t->tok.len; i++)
            k = s[i] >= '0' && s[i] <= '9' ? k * 10 + s[i] - '0' : INT32_MAX;
        if (k >= b->n) {
            tx_fail_at(t, s, "%.*s has %d results", (int)name.len,
                       (const char *)name.at, b->n);
            return NULL;
        }
        tx_next(t);
    }
    return &b->first[k];
}

void tx_operands(mlir_parser *t, mlir_draft *d)
{
    while (t->tok.kind == TK_VALUE && !t->r->st) {
        mlir_value *v = tx_operand(t);

        if (!v)
            return;
        *sd_push(t->r->a, &d->operand) = v;
        /* a comma may also introduce something else */
        const char *p = t->p;

        while (p < t->end && strchr(" \t\r\n", *p))
            p++;
        if (!tx_is(t, ',') || p >= t->end || *p != '%')
            return;
        tx_next(t);
    }
}

/* ---- attributes of an operation ---- */

void tx_set(mlir_parser *t, mlir_draft *d, const char *name, uint32_t attr)
{
    vhlo_prop p;
    int k = vhlo_prop_index(d->row, name, strlen(name), &p);

    if (!t->r->st && k >= 0)
        d->op->prop[k] = attr;
    else if (!t->r->st)
        tx_fail_at(t, d->where, "%s has no attribute %s", d->row->name, name);
}

static bool is_named(sd_bytes s, const char *name)
{
    return s.len == strlen(name) && memcmp(s.at, name, s.len) == 0;
}

/* The structure that an operation's attribute stands for; NULL: none. */
static const mlir_struct_row *struct_of(const vhlo_row *row, sd_bytes key)
{
    vhlo_prop p;

    for (int id = 0; id < MLIR_S_ACCURACY; id++) {
        const mlir_struct_row *s = &mlir_structs[id];

        if (is_named(key, s->attr) &&
            vhlo_prop_index(row, s->field[0], strlen(s->field[0]), &p) >= 0)
            return s;
    }
    return NULL;
}

/* Fields that the operation lacks (a collective's type of channel) go. */
static void spread(mlir_parser *t, mlir_draft *d, const mlir_struct_row *s,
                   const mlir_attr *at)
{
    vhlo_prop p;

    if (at->kind != MLIR_A_STRUCT || s != &mlir_structs[at->code]) {
        tx_fail_at(t, d->where, "%s must be #stablehlo.%s<...>", s->attr,
                   s->name);
        return;
    }
    for (int i = 0; i + 1 < at->nlist; i += 2) {
        const char *f = s->field[i / 2];

        if (vhlo_prop_index(d->row, f, strlen(f), &p) >= 0)
            tx_set(t, d, f, at->list[i + 1]);
    }
}

void tx_set_attr(mlir_parser *t, mlir_draft *d, sd_bytes key, uint32_t attr,
                 bool inherent)
{
    const mlir_struct_row *s = d->row ? struct_of(d->row, key) : NULL;
    vhlo_prop p;
    int k;

    if (t->r->st)
        return;
    if (s) {
        spread(t, d, s, mlir_attr_at(t->r, attr));
        return;
    }
    k = d->row ? vhlo_prop_index(d->row, (const char *)key.at, key.len, &p)
               : -1;
    if (k >= 0) {
        d->op->prop[k] = attr;
    } else if (inherent && d->row) {
        tx_fail_at(t, t->tok.at, "%s has no attribute %.*s", d->row->name,
                   (int)key.len, (const char *)key.at);
    } else {
        *sd_push(t->r->a, &d->dict) =
            mlir_new_string(t->r, (const char *)key.at, key.len);
        *sd_push(t->r->a, &d->dict) = attr;
    }
}

void tx_attr_dict(mlir_parser *t, mlir_draft *d, bool inherent)
{
    const mlir_attr *at = mlir_attr_at(t->r, tx_dict(t));

    for (int i = 0; !t->r->st && i + 1 < at->nlist; i += 2) {
        const mlir_attr *k = mlir_attr_at(t->r, at->list[i]);

        tx_set_attr(t, d, mlir_str(t->r, k->str), at->list[i + 1], inherent);
    }
}

/* ---- types of an operation ---- */

static void check_operands(mlir_parser *t, mlir_draft *d, const uint32_t *type,
                           int n)
{
    sd_buf have = {.arena = t->r->a}, want = {.arena = t->r->a};

    if (n != d->operand.n) {
        tx_fail_at(t, d->where, "%d operands, and the types of %d",
                   d->operand.n, n);
        return;
    }
    for (int i = 0; i < n && !t->r->st; i++)
        if (!mlir_type_same(t->r, type[i], d->operand.at[i]->type)) {
            mlir_type_print(t->r, d->operand.at[i]->type, &have);
            mlir_type_print(t->r, type[i], &want);
            tx_fail_at(t, d->where, "operand %d is a %s, not a %s", i,
                       sd_buf_take(&have), sd_buf_take(&want));
        }
}

static void take_function(mlir_parser *t, mlir_draft *d, const mlir_type *f)
{
    check_operands(t, d, f->list, f->ninput);
    for (int i = f->ninput; i < f->nlist && !t->r->st; i++)
        *sd_push(t->r->a, &d->result) = f->list[i];
}

/* Behind the colon stand (types) -> types; or the types of the results, with
 * what comes before them left to be seen from the operands; or, in CHLO,
 * types -> types. */
void tx_types(mlir_parser *t, mlir_draft *d)
{
    sd_vec(uint32_t) v = {0};
    int want = d->row->nresult;

    tx_expect(t, ':');
    if (tx_is(t, '(')) {
        uint32_t f = tx_function_type(t);

        if (!t->r->st)
            take_function(t, d, mlir_type_at(t->r, f));
        return;
    }
    do
        *sd_push(t->r->a, &v) = tx_type(t);
    while (tx_accept(t, ','));
    if (tx_accept(t, TK_ARROW)) {
        check_operands(t, d, v.at, v.n);
        if (!tx_is(t, '(')) {
            *sd_push(t->r->a, &d->result) = tx_type(t);
            return;
        }
        tx_next(t);
        do
            *sd_push(t->r->a, &d->result) = tx_type(t);
        while (tx_accept(t, ','));
        tx_expect(t, ')');
        return;
    }
    if (want < 0) /* as many as there are */
        want = v.n;
    if (v.n < want) {
        tx_expected(t, "',' and another type");
        return;
    }
    for (int i = v.n - want; i < v.n && !t->r->st; i++)
        *sd_push(t->r->a, &d->result) = v.at[i];
}

/* ---- regions ---- */

mlir_region *tx_new_region(mlir_parser *t)
{
    mlir_region *g = sd_arena_new(t->r->a, mlir_region);

    g->id = g->last = t->r->next_region++;
    return g;
}

mlir_block *tx_new_block(mlir_parser *t, mlir_region *g, const mlir_arg *arg,
                         int narg)
{
    mlir_block *b = sd_arena_new(t->r->a, mlir_block);

    b->arg = sd_arena_array(t->r->a, mlir_value, narg + 1);
    b->arg_loc = sd_arena_array(t->r->a, uint32_t, narg + 1);
    b->narg = narg;
    for (int i = 0; i < narg; i++) {
        b->arg[i].type = arg[i].type;
        b->arg[i].region = g->id;
        b->arg_loc[i] = arg[i].loc;
        if (arg[i].name.len)
            bind_value(t, arg[i].name, &b->arg[i], 1);
    }
    g->block = sd_arena_array(t->r->a, mlir_block *, 1);
    g->block[0] = b;
    g->nblock = 1;
    return b;
}

void tx_add_op(mlir_block *b, mlir_op *op)
{
    if (b->last)
        b->last->next = op;
    else
        b->first = op;
    b->last = op;
}

/* ^bb0(%a: type loc(...), ...): */
static void block_label(mlir_parser *t, mlir_region *g, mlir_block **b)
{
    sd_vec(mlir_arg) arg = {0};

    tx_next(t);
    if (tx_accept(t, '(')) {
        do {
            mlir_arg *x = sd_push(t->r->a, &arg);
            const char *where = t->tok.at;

            x->name = (sd_bytes){(const uint8_t *)t->tok.at, t->tok.len};
            if (t->tok.kind != TK_VALUE)
                tx_expected(t, "a block argument");
            tx_next(t);
            tx_expect(t, ':');
            x->type = tx_type(t);
            x->loc = tx_trailing_loc(t, where);
        } while (tx_accept(t, ','));
        tx_expect(t, ')');
    }
    tx_expect(t, ':');
    if (!t->r->st)
        *b = tx_new_block(t, g, arg.at, arg.n);
}

/* The values of a region are known in it and in what it holds. */
mlir_region *tx_region(mlir_parser *t, const mlir_arg *arg, int narg)
{
    mlir_region *g = tx_new_region(t);
    int outer = t->region, bound = t->bind.n;
    mlir_block *b = NULL;

    if (!tx_enter(t))
        return g;
    t->region = g->id;
    tx_expect(t, '{');
    if (t->tok.kind == TK_BLOCK && !narg)
        block_label(t, g, &b);
    else if (narg || !tx_is(t, '}'))
        b = tx_new_block(t, g, arg, narg);
    while (!tx_is(t, '}') && t->tok.kind != TK_END) {
        if (t->tok.kind == TK_BLOCK) {
            tx_fail_at(t, t->tok.at,
                       "a second block: control flow between blocks is not "
                       "StableHLO");
            break;
        }
        mlir_op *op = tx_read_op(t);

        if (!t->r->st)
            tx_add_op(b, op);
    }
    tx_expect(t, '}');
    unbind(t, bound);
    t->region = outer;
    g->last = t->r->next_region - 1;
    tx_leave(t);
    return g;
}

/* ---- operations ---- */

static uint32_t name_of(mlir_parser *t, sd_bytes full, const vhlo_row *row)
{
    uint32_t known = row ? (uint32_t)sd_key(sd_map_get(t->name, sd_key(row)))
                         : tx_known(t->other_name, full);
    const uint8_t *dot = memchr(full.at, '.', full.len);
    mlir_op_name n = {.name = full, .row = row};
    size_t head = dot ? (size_t)(dot - full.at) : 0;

    if (known)
        return known - 1;
    if (row && !strchr(row->name, '.')) {
        n.dialect = MLIR_D_VHLO;
        n.name = (sd_bytes){(const uint8_t *)row->name, strlen(row->name)};
    } else if (dot) {
        sd_bytes d = {full.at, head};

        n.dialect = is_named(d, "builtin") ? MLIR_D_BUILTIN
                    : is_named(d, "sdy")   ? MLIR_D_SDY
                    : is_named(d, "chlo")  ? MLIR_D_CHLO
                                           : MLIR_D_OTHER;
        if (row)
            n.name = (sd_bytes){dot + 1, full.len - head - 1};
    }
    known = mlir_new_name(t->r, n) + 1;
    if (row)
        sd_map_set(t->name, sd_key(row), (void *)(uintptr_t)known);
    else
        tx_make_known(t->other_name, full, known);
    return known - 1;
}

static void start(mlir_parser *t, mlir_draft *d, sd_bytes full,
                  const char *where)
{
    int n;

    *d = (mlir_draft){.op = sd_arena_new(t->r->a, mlir_op), .where = where};
    d->row = vhlo_find_text(full);
    d->op->name = name_of(t, full, d->row);
    d->op->dict = -1;
    n = d->row ? vhlo_nprop(d->row) : 0;
    d->op->prop = sd_arena_array(t->r->a, uint32_t, n + 1);
    for (int i = 0; i < n; i++)
        d->op->prop[i] = MLIR_ABSENT;
}

static void finish(mlir_parser *t, mlir_draft *d)
{
    mlir_op *op = d->op;

    op->operand = d->operand.at;
    op->noperand = d->operand.n;
    op->region = d->region.at;
    op->nregion = d->region.n;
    op->nresult = d->result.n;
    op->result = sd_arena_array(t->r->a, mlir_value, op->nresult + 1);
    for (int i = 0; i < op->nresult; i++) {
        op->result[i].type = d->result.at[i];
        op->result[i].def = op;
        op->result[i].region = t->region;
    }
    if (d->dict.n && !t->r->st)
        op->dict = mlir_new_attr(t->r, (mlir_attr){.kind = MLIR_A_DICT,
                                                   .list = d->dict.at,
                                                   .nlist = d->dict.n});
}

mlir_op *tx_make_op(mlir_parser *t, const char *name, int noperand,
                    mlir_value *const *operand, int nresult,
                    const uint32_t *type, uint32_t loc)
{
    mlir_draft d;

    start(t, &d, (sd_bytes){(const uint8_t *)name, strlen(name)}, t->tok.at);
    for (int i = 0; i < noperand; i++)
        *sd_push(t->r->a, &d.operand) = operand[i];
    for (int i = 0; i < nresult; i++)
        *sd_push(t->r->a, &d.result) = type[i];
    d.op->loc = loc;
    finish(t, &d);
    return d.op;
}

/* Functions and modules see nothing of what is around them. */
static bool is_isolated(const vhlo_row *row)
{
    return row && (strcmp(row->name, "func_v1") == 0 ||
                   strcmp(row->name, "builtin.module") == 0);
}

static void regions(mlir_parser *t, mlir_draft *d)
{
    int saved = t->floor;

    if (is_isolated(d->row))
        tx_isolate(t, &saved);
    tx_expect(t, '(');
    do
        *sd_push(t->r->a, &d->region) = tx_region(t, NULL, 0);
    while (tx_accept(t, ','));
    tx_expect(t, ')');
    tx_join(t, saved);
}

/* "dialect.op"(%a) <{props}> ({regions}) {attributes} : (types) -> types */
static void generic(mlir_parser *t, mlir_draft *d)
{
    const char *where = t->tok.at;
    uint32_t f;

    start(t, d, tx_string(t), where);
    tx_expect(t, '(');
    tx_operands(t, d);
    tx_expect(t, ')');
    if (tx_is(t, '[')) {
        tx_fail_at(t, t->tok.at,
                   "successors: control flow between blocks is not StableHLO");
        return;
    }
    if (tx_is(t, '<')) {
        tx_next(t);
        tx_attr_dict(t, d, true);
        tx_expect(t, '>');
    }
    if (tx_is(t, '('))
        regions(t, d);
    if (tx_is(t, '{'))
        tx_attr_dict(t, d, false);
    tx_expect(t, ':');
    f = tx_function_type(t);
    if (!t->r->st)
        take_function(t, d, mlir_type_at(t->r, f));
}

/* A name without dialect is func's, or the module. */
static void custom(mlir_parser *t, mlir_draft *d)
{
    sd_bytes s = {(const uint8_t *)t->tok.at, t->tok.len};
    const char *where = t->tok.at, *full;

    if (!memchr(s.at, '.', s.len)) {
        full = sd_arena_fmt(t->r->a, "%s.%.*s",
                            is_named(s, "module") ? "builtin" : "func",
                            (int)s.len, where);
        s = (sd_bytes){(const uint8_t *)full, strlen(full)};
    }
    start(t, d, s, where);
    if (!d->row)
        tx_fail_at(t, where, "%.*s is no operation that is known", (int)s.len,
                   (const char *)s.at);
    else if (!*d->row->form)
        tx_fail_at(t, where, "%.*s is known in its generic form only",
                   (int)s.len, (const char *)s.at);
    if (t->r->st)
        return;
    tx_next(t);
    tx_custom(t, d);
}

typedef struct {
    sd_bytes name;
    int n;
} result_name;

static void name_results(mlir_parser *t, const mlir_op *op,
                         const result_name *name, int n, const char *where)
{
    int64_t all = 0;
    int k = 0;

    for (int i = 0; i < n; i++)
        all += name[i].n;
    if (all != op->nresult) {
        tx_fail_at(t, where, "%" PRId64 " names for %d results", all,
                   op->nresult);
        return;
    }
    for (int i = 0; i < n; k += name[i++].n)
        bind_value(t, name[i].name, &op->result[k], name[i].n);
}

mlir_op *tx_read_op(mlir_parser *t)
{
    const char *where = t->tok.at;
    sd_vec(result_name) name = {0};
    mlir_draft d = {0};

    if (t->tok.kind == TK_VALUE) {
        do {
            result_name *x = sd_push(t->r->a, &name);

            *x = (result_name){{(const uint8_t *)t->tok.at, t->tok.len}, 1};
            if (t->tok.kind != TK_VALUE)
                tx_expected(t, "a value");
            tx_next(t);
            if (tx_accept(t, ':')) {
                int64_t n = tx_integer(t);

                x->n = (int)SD_MIN(SD_MAX(n, 0), INT32_MAX / 2);
            }
        } while (name.n < 1 << 16 && tx_accept(t, ','));
        tx_expect(t, '=');
    }
    if (t->tok.kind == TK_STRING)
        generic(t, &d);
    else if (t->tok.kind == TK_ID)
        custom(t, &d);
    else
        tx_expected(t, "an operation");
    if (t->r->st)
        return NULL;
    d.op->loc = tx_trailing_loc(t, d.where);
    finish(t, &d);
    if (name.n || d.op->nresult)
        name_results(t, d.op, name.at, name.n, where);
    return d.op;
}
