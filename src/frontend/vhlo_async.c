/* Asynchronous collectives as JAX 0.11 sends them: custom calls.  A start, such
 * as all-reduce-start, has what the collective needs as JSON in the frontend
 * attribute async_collective_config, and its reducer among the called
 * computations; its result has the type of the value itself.
 *
 *   {"replica_groups": [[0, 1], [2, 3]], "channel_id": 1,
 *    "use_global_device_ids": true}
 *
 * As with the operations (op_async_start) a start does all of it, and the done
 * passes it on: when to wait is for the plan to say. */
#include "hlo_text.h"
#include "vhlo_import.h"

typedef struct { /* which collective, and what its settings are called */
    const char *name;
    hlo_op op;
    const char *groups, *dim;
    int members; /* of each group; 0: any number */
    bool reduces;
} kind;

static const kind kinds[] = {
    {"all-reduce", HLO_ALL_REDUCE, "replica_groups", NULL, 0, true},
    {"all-gather", HLO_ALL_GATHER, "replica_groups", "all_gather_dimension", 0,
     false},
    {"reduce-scatter", HLO_REDUCE_SCATTER, "replica_groups",
     "scatter_dimension", 0, true},
    {"all-to-all", HLO_ALL_TO_ALL, "replica_groups", "split_dimension", 0,
     false},
    {"collective-permute", HLO_COLLECTIVE_PERMUTE, "permutation", NULL, 2,
     false},
};

/* Settings that were given, as bits. */
enum { HAS_GROUPS = 1, HAS_DIM = 2, HAS_JOIN = 4, HAS_COUNT = 8 };

typedef struct {
    vhlo_import *im;
    mlir_op *op;
    const kind *kind;
    hlo_lexer x; /* JSON, as much of it as is sent, has HLO text's words */
    hlo_collective *c;
    int64_t join;
    unsigned has;
} config;

static const kind *kind_of(const char *target, const char *end)
{
    for (size_t i = 0; i < SD_COUNTOF(kinds); i++) {
        size_t n = strlen(kinds[i].name);

        if (strncmp(target, kinds[i].name, n) == 0 &&
            strcmp(target + n, end) == 0)
            return &kinds[i];
    }
    return NULL;
}

/* ---- values ---- */

static bool going(const config *j)
{
    return !j->im->r->st && !j->x.bad;
}

static void misses(config *j, const char *what, const char *at)
{
    vhlo_fail(j->im, j->op, SD_INVALID,
              "%s-start: async_collective_config should have %s at byte %td",
              j->kind->name, what, at - j->x.base);
    j->x.at = j->x.end;
}

static void want(config *j, const char *what)
{
    if (going(j))
        misses(j, what, j->x.at);
}

static bool take(config *j, const char *token)
{
    return hlo_accept(&j->x, token);
}

static bool boolean(config *j)
{
    bool v = hlo_accept_word(&j->x, "true");

    if (!v && !hlo_accept_word(&j->x, "false"))
        want(j, "true or false");
    return v;
}

typedef struct {
    sd_vec(int64_t) member;
    sd_vec(int) count; /* of each group */
    int most;
} lists;

/* Behind an entry of a list: is another to come? */
static bool goes_on(config *j)
{
    if (!going(j) || take(j, ","))
        return going(j);
    if (!take(j, "]"))
        want(j, "a comma or a bracket");
    return false;
}

static void group(config *j, lists *x)
{
    sd_arena *a = j->im->r->a;
    int was = x->member.n;

    if (!take(j, "[")) {
        want(j, "a list of participants");
        return;
    }
    if (!take(j, "]"))
        do
            *sd_push(a, &x->member) = hlo_take_int(&j->x);
        while (goes_on(j));
    *sd_push(a, &x->count) = x->member.n - was;
    x->most = SD_MAX(x->most, x->member.n - was);
    if (going(j) && j->kind->members && x->member.n - was != j->kind->members)
        want(j, "a source and a target, and no more, before");
}

/* [[0, 1], [2]]: shorter groups are filled with -1. */
static void groups(config *j)
{
    lists x = {0};
    int64_t *to;
    int n = 0;

    if (!take(j, "["))
        want(j, "a list of lists of participants");
    else if (!take(j, "]"))
        do
            group(j, &x);
        while (goes_on(j));
    if (going(j) && (int64_t)x.count.n * x.most > VHLO_GROUP_ENTRIES)
        want(j, "fewer participants before");
    if (!going(j))
        return;
    to = sd_arena_array(j->im->a, int64_t, (int64_t)x.count.n *x.most + 1);
    for (int i = 0; i < x.count.n; i++)
        for (int k = 0; k < x.most; k++)
            to[i * x.most + k] = k < x.count.at[i] ? x.member.at[n++] : -1;
    j->c->groups = to;
    j->c->ngroup = x.count.n;
    j->c->group_size = x.most;
    j->has |= HAS_GROUPS;
}

/* ---- settings ---- */

static void setting(config *j, hlo_word name)
{
    const kind *k = j->kind;

    if (hlo_word_is(name, k->groups)) {
        groups(j);
    } else if (hlo_word_is(name, "channel_id")) {
        j->c->channel = hlo_take_int(&j->x);
    } else if (hlo_word_is(name, "use_global_device_ids")) {
        j->c->use_global_ids = boolean(j);
    } else if (k->dim && hlo_word_is(name, k->dim)) {
        j->c->dim = hlo_take_int(&j->x);
        j->has |= HAS_DIM;
    } else if (k->op == HLO_ALL_TO_ALL &&
               hlo_word_is(name, "concat_dimension")) {
        j->join = hlo_take_int(&j->x);
        j->has |= HAS_JOIN;
    } else if (k->op == HLO_ALL_TO_ALL && hlo_word_is(name, "split_count")) {
        j->c->split_count = hlo_take_int(&j->x);
        j->has |= HAS_COUNT;
    } else if (k->op == HLO_REDUCE_SCATTER && hlo_word_is(name, "tiled")) {
        if (!hlo_accept_word(&j->x, "true"))
            want(j, "true");
    } else {
        vhlo_fail(j->im, j->op, SD_UNIMPLEMENTED,
                  "%s-start: async_collective_config has a setting %.*s, which "
                  "is not known",
                  k->name, (int)name.len, name.at);
    }
}

static void lacks(config *j, unsigned bit, const char *name)
{
    if (going(j) && !(j->has & bit))
        vhlo_fail(j->im, j->op, SD_INVALID,
                  "%s-start: async_collective_config has no %s", j->kind->name,
                  name);
}

static void read_config(config *j)
{
    if (!take(j, "{"))
        want(j, "a brace");
    while (going(j)) {
        hlo_word name;

        name.at = hlo_take_string(&j->x, &name.len);
        if (going(j) && !take(j, ":"))
            want(j, "a colon");
        if (going(j))
            setting(j, name);
        if (take(j, ","))
            continue;
        if (!take(j, "}"))
            want(j, "a comma or a brace");
        break;
    }
    hlo_skip_space(&j->x);
    if (j->x.at < j->x.end)
        want(j, "its end");
    if (j->x.bad && !j->im->r->st)
        misses(j, j->x.bad, j->x.bad_at);
    lacks(j, HAS_GROUPS, j->kind->groups);
    if (j->kind->dim)
        lacks(j, HAS_DIM, j->kind->dim);
    if (j->kind->op == HLO_ALL_TO_ALL) {
        lacks(j, HAS_JOIN, "concat_dimension");
        lacks(j, HAS_COUNT, "split_count");
    }
}

/* ---- the calls ---- */

bool vhlo_is_async(const char *target)
{
    return kind_of(target, "-start") || kind_of(target, "-done");
}

static void start(vhlo_import *im, mlir_op *op, hlo_inst **arg, const kind *k,
                  const sd_shape *s)
{
    const mlir_attr *at = mlir_dict_get(
        im->r, mlir_discardable(im->r, op, "mhlo.frontend_attributes"),
        "async_collective_config");
    hlo_collective *c = sd_arena_new(im->a, hlo_collective);
    config j = {.im = im, .op = op, .kind = k, .c = c, .join = -1};
    hlo_comp *body = NULL;
    sd_bytes text;
    int n = 0;

    if (at->kind != MLIR_A_STRING) {
        vhlo_fail(im, op, SD_INVALID,
                  "%s-start: the frontend attribute async_collective_config"
                  " should be a text",
                  k->name);
        return;
    }
    text = mlir_str(im->r, at->str);
    j.x = hlo_lexer_of(im->a, (const char *)text.at, text.len);
    c->dim = -1;
    read_config(&j);
    if (im->r->st)
        return;
    if (k->reduces) {
        hlo_comp **called = vhlo_called(im, op, &n);

        if (n != 1 && !im->r->st)
            vhlo_fail(im, op, SD_INVALID,
                      "%s-start: %d called computations, where the one that "
                      "reduces should be",
                      k->name, n);
        if (im->r->st)
            return;
        body = called[0];
    }
    vhlo_collective(im, op, k->op, c, j.join, s, body, arg);
    if (im->r->st)
        return;
    op->result[0].inst->frontend_attrs = NULL; /* it is what they say */
    if (!sd_shape_equal(op->result[0].inst->shape, s))
        vhlo_fail(im, op, SD_INVALID,
                  "%s-start: the result is declared as %s, and is %s", k->name,
                  hlo_shape_str(im->m, s),
                  hlo_shape_str(im->m, op->result[0].inst->shape));
}

void vhlo_async(vhlo_import *im, mlir_op *op, hlo_inst **arg,
                const char *target, const sd_shape *s)
{
    const kind *k = kind_of(target, "-start");

    if (op->noperand != 1 || op->nresult != 1) {
        vhlo_fail(im, op, SD_INVALID,
                  "%s: %d operands and %d results, where one of each should be",
                  target, op->noperand, op->nresult);
        return;
    }
    if (k) {
        start(im, op, arg, k, s);
        return;
    }
    if (!sd_shape_equal(arg[0]->shape, s)) {
        vhlo_fail(im, op, SD_INVALID, "%s: the result is %s of a start of %s",
                  target, hlo_shape_str(im->m, s),
                  hlo_shape_str(im->m, arg[0]->shape));
        return;
    }
    op->result[0].inst = arg[0];
}
