/* In what order the passes run.  What holds afterwards:
 *
 *   - no parameter of the entry is a tuple, no function of elements branches;
 *   - no call, fusion, map, topk, batch norm, triangular solve, Cholesky
 *     factorization, QR, FFT, select-and-scatter, reduce-precision, rng,
 *     rng-bit-generator, stochastic-convert, opt-barrier, dimension size,
 *     one-participant collective;
 *   - collectives move one array between explicit groups, or are the number of
 *     the participant;
 *   - arithmetic, reductions, scans and adding scatters of narrow floats are
 *     f32 between converts, each rounded to its type unless
 *     xla_allow_excess_precision was asked for; dots and convolutions take
 *     narrow operands as are;
 *   - of complex arithmetic only add, subtract, multiply, negate, compare,
 *     select, real, imag, complex;
 *   - a reduce has one dimension and, if its body has an identity, no
 *     transpose before it;
 *   - a dot has at most one free dimension a side and one contracted, none of
 *     extent 1 if it is large; scatters have one operand, indices [n, k],
 *     updates [n, window...] of the operand's rank + 1, or before all these one
 *     batch dimension;
 *   - bitcast-converts are between real numbers;
 *   - a loop's and a branch's computations have one caller;
 *   - unused instructions and computations are gone, callees come first.
 *
 * Each group of passes runs until nothing changes, but not more than `rounds`
 * times. */
#include "passes_priv.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>

/* run_<id> of each: all are called alike. */
#define RUN_OF(id, it) \
    static bool run_##id(hlo_module *m, const device_desc *dev) \
    { \
        (void)dev; \
        return it; \
    }
#define RULE(id, op, name, needed, help) \
    RUN_OF(id, pass_rewrite(m, HLO_##op, hlo_##id))
#define PASS(id, name, needed, help)        RUN_OF(id, hlo_##id(m))
#define DEVICE_PASS(id, name, needed, help) RUN_OF(id, hlo_##id(m, dev))
#include "passes.def"
#undef RUN_OF

const hlo_pass hlo_pass_table[] = {
#define PASS(id, name, needed, help) {name, run_##id, help, needed},
#include "passes.def"
};
const int hlo_pass_count = (int)SD_COUNTOF(hlo_pass_table);

enum {
#define PASS(id, name, needed, help) P_##id,
#include "passes.def"
    P_COUNT
};

enum { /* bits of what holds of a module */
#define FACT(id) FACT_##id,
#include "passes.def"
       FACT_COUNT
};

typedef struct {
    int rounds;
    unsigned needs, leaves, ends; /* bits of FACT_x */
    int8_t pass[16];              /* P_x + 1; 0: the end */
} group;

/* What a group leaves true stays true until a group ends it: all passes in
 * between keep it, and those that are not `needed` (passes.def) may be left out
 * anywhere.  All passes keep what hlo_verify checks: use lists, operands before
 * users, shapes by inference. */
#define IS(id)  (1u << FACT_##id)
#define RUN(id) (P_##id + 1)
static const group groups[] = {
    {.rounds = 4,
     .leaves = IS(FLAT),
     .pass = {RUN(lower_params), RUN(lower_custom), RUN(opt_inline),
              RUN(lower_branch), RUN(opt_tuple), RUN(opt_dce),
              RUN(opt_flatten)}},
    /* lower_distribution makes rng-bit-generators, which lower_rng takes;
     * lower_qr, lower_cholesky and lower_solve take what lower_linalg makes no
     * calls of; lower_pick knows combiners as JAX writes them, and what it
     * makes of them commutes, which lower_ordered asks. */
    {.rounds = 1,
     .needs = IS(FLAT),
     .leaves = IS(BASIC_OPS),
     .pass = {RUN(lower_collective), RUN(lower_algorithm), RUN(lower_map),
              RUN(lower_norms), RUN(lower_distribution), RUN(lower_rng),
              RUN(lower_stochastic), RUN(lower_fft), RUN(lower_linalg),
              RUN(lower_qr), RUN(lower_cholesky), RUN(lower_solve),
              RUN(lower_topk), RUN(lower_window), RUN(lower_pick),
              RUN(lower_ordered)}},
    /* Makes less of everything, for those that follow. */
    {.rounds = 8,
     .pass = {RUN(opt_simplify), RUN(opt_fold), RUN(opt_tuple), RUN(opt_while),
              RUN(opt_conditional), RUN(opt_cse), RUN(opt_dce)}},
    /* Each round takes what is the same in every turn one loop further out.
     * After opt_while, so that no dead element is hoisted; before opt_slices,
     * whose loops have few turns and read the same in each. */
    {.rounds = 4,
     .needs = IS(FLAT),
     .pass = {RUN(opt_hoist), RUN(opt_simplify), RUN(opt_tuple), RUN(opt_while),
              RUN(opt_cse), RUN(opt_dce)}},
    {.rounds = 1,
     .needs = IS(FLAT) | IS(DOTS_AS_WRITTEN),
     .pass = {RUN(opt_attend), RUN(opt_slices)}},
    /* lower_float comes last, so that what the others make of narrow floats is
     * rounded, too. */
    {.rounds = 1,
     .needs = IS(BASIC_OPS),
     .leaves = IS(PLAN_FORM),
     .ends = IS(DOTS_AS_WRITTEN),
     .pass = {RUN(lower_conv), RUN(lower_dot), RUN(lower_bitcast),
              RUN(lower_complex), RUN(lower_precision), RUN(lower_index),
              RUN(lower_concatenate), RUN(lower_scatter), RUN(opt_sort),
              RUN(opt_wider), RUN(split_products), RUN(opt_operands),
              RUN(lower_float)}},
    /* lower_float has made the narrow floats' reduce-precision f32's;
     * lower_index brings the indices that opt_simplify makes into plan's form
     * again. */
    {.rounds = 4,
     .needs = IS(PLAN_FORM),
     .leaves = IS(EXACT_OPS),
     .pass = {RUN(lower_precision), RUN(opt_simplify), RUN(opt_fold),
              RUN(lower_index), RUN(opt_tuple), RUN(opt_cse), RUN(opt_dce)}},
    /* split_scatter makes reduces; split_columns and split_reduce take those of
     * one dimension. */
    {.rounds = 1,
     .needs = IS(PLAN_FORM),
     .leaves = IS(SINGLE_REDUCES),
     .pass = {RUN(split_scatter), RUN(split_scan), RUN(lower_reduce),
              RUN(split_columns), RUN(split_reduce)}},
    /* Once, of quotients as the program has them. */
    {.rounds = 1, .pass = {RUN(opt_tails)}},
    {.rounds = 4,
     .pass = {RUN(opt_simplify), RUN(opt_fold), RUN(opt_tuple), RUN(opt_cse),
              RUN(opt_linalg), RUN(opt_dce)}},
    {.rounds = 1,
     .leaves = IS(NO_BARRIERS),
     .pass = {RUN(lower_barrier), RUN(opt_tuple), RUN(opt_dce)}},
};
/* What plan counts on. */
static const unsigned all_facts = IS(FLAT) | IS(BASIC_OPS) | IS(PLAN_FORM) |
                                  IS(EXACT_OPS) | IS(SINGLE_REDUCES) |
                                  IS(NO_BARRIERS);
#undef IS
#undef RUN

const hlo_pass *hlo_pass_of_name(const char *name)
{
    for (int i = 0; i < hlo_pass_count; i++)
        if (strcmp(hlo_pass_table[i].name, name) == 0)
            return &hlo_pass_table[i];
    return NULL;
}

/* Is name one of the comma separated words of list? */
static bool is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);

    while (list && *list) {
        size_t len = strcspn(list, ",");

        if (len == n && memcmp(list, name, n) == 0)
            return true;
        list += len + (list[len] == ',');
    }
    return false;
}

/* ---- callees first ---- */

typedef struct {
    hlo_comp *c;
    hlo_inst *in;
    int i;
} visit;

/* Depth first with a stack of our own: loops nest as deep as a program says.
 * mark: 0 not seen, 1 seen. */
static void order_comps(hlo_module *m)
{
    sd_arena *a = sd_arena_create();
    sd_vec(hlo_comp *) all = {0};
    sd_vec(visit) stack = {0};

    hlo_for_each_comp(c, m) {
        c->mark = 0;
        *sd_push(a, &all) = c;
    }
    m->first = m->last = NULL;
    for (int k = 0; k < all.n; k++) {
        if (all.at[k]->mark++)
            continue;
        *sd_push(a, &stack) = (visit){all.at[k], all.at[k]->first, 0};
        while (stack.n) {
            visit *v = &stack.at[stack.n - 1];

            if (!v->in) {
                hlo_comp_append(m, v->c);
                stack.n--;
            } else if (v->i == v->in->ncomp) {
                v->in = v->in->next;
                v->i = 0;
            } else {
                hlo_comp *c = v->in->comp[v->i++];

                if (!c->mark++)
                    *sd_push(a, &stack) = (visit){c, c->first, 0};
            }
        }
    }
    sd_arena_destroy(a);
}

/* ---- checks ---- */

static bool debug_build(void)
{
#ifdef NDEBUG
    return false;
#else
    return true;
#endif
}

static sd_status roundtrip(const hlo_module *m)
{
    sd_arena *a = sd_arena_create();
    sd_buf text = {.arena = a}, again = {.arena = a};
    hlo_module *back;
    sd_status st;

    hlo_print(&text, m);
    st = hlo_parse(a, text.at, text.len, &back);
    if (!st)
        st = hlo_verify(back);
    if (!st) {
        hlo_print(&again, back);
        if (text.len != again.len || memcmp(text.at, again.at, text.len) != 0)
            st = sd_error(SD_INTERNAL, "printed, parsed and printed again the "
                                       "module reads differently");
    }
    sd_arena_destroy(a);
    return st;
}

typedef struct {
    hlo_module *m;
    const device_desc *dev;
    const char *off;
    bool verify, roundtrip;
    hlo_pass_hook hook;
    void *ctx;
} run;

/* The program that a pass left wrong: to a dump, and in debug builds to the
 * log.
 */
static void show(const run *r, const char *pass)
{
    sd_buf text = {.arena = r->m->arena};

    if (r->hook)
        r->hook(r->ctx, HLO_LEFT_WRONG, r->m);
    hlo_print(&text, r->m);
    sd_log(debug_build() ? SD_LOG_ERROR : SD_LOG_DEBUG, "after pass %s:\n%.*s",
           pass, (int)SD_MIN(text.len, (size_t)INT_MAX), text.at);
}

/* What a pass leaves wrong is our mistake, not the program's. */
static sd_status check(const run *r, const char *pass)
{
    sd_status st = NULL, own;

    if (r->verify)
        st = hlo_verify(r->m);
    if (!st && r->roundtrip)
        st = roundtrip(r->m);
    if (!st)
        return NULL;
    show(r, pass);
    own = sd_error(SD_INTERNAL, "after pass %s: %s", pass, st->message);
    sd_status_free(st);
    return own;
}

static sd_status run_pass(const run *r, const hlo_pass *p, bool *changed)
{
    hlo_comp *last = r->m->last;

    if (!p->needed && is_listed(r->off, p->name))
        return NULL;
    if (!p->run(r->m, r->dev))
        return NULL;
    *changed = true;
    if (last != r->m->last)
        order_comps(r->m);
    if (r->hook)
        r->hook(r->ctx, p->name, r->m);
    return check(r, p->name);
}

static sd_status run_group(const run *r, const group *g)
{
    bool changed = true;
    sd_status st;

    for (int k = 0; k < g->rounds && changed; k++) {
        changed = false;
        for (int i = 0; i < (int)SD_COUNTOF(g->pass) && g->pass[i]; i++)
            if ((st = sd_stopped()) ||
                (st = run_pass(r, &hlo_pass_table[g->pass[i] - 1], &changed)))
                return st;
    }
    return NULL;
}

/* ---- what would grow too large ---- */

enum { MOST_GROWTH = 1 << 19 }; /* instructions */

/* Inline and flatten give each user of a computation a copy: 20 functions that
 * call each other twice are a million instructions.  Callees come first. */
static sd_status refuse_growth(hlo_module *m)
{
    int64_t most = MOST_GROWTH;

    hlo_for_each_comp(c, m)
        most += hlo_comp_count(c);
    hlo_for_each_comp(c, m) {
        c->mark = 0;
        hlo_for_each_inst(in, c) {
            c->mark++;
            for (int i = 0; i < in->ncomp; i++)
                c->mark += in->comp[i]->mark;
            if (c->mark > most)
                return sd_error(SD_UNIMPLEMENTED,
                                "%s: the program grows by more than %d "
                                "instructions when each call, loop and branch "
                                "has its own copy of what it calls; let a "
                                "loop do what is called again and again",
                                hlo_describe(m, in), MOST_GROWTH);
        }
    }
    return NULL;
}

/* ---- what nothing below can do ---- */

static bool is_complex_op(const hlo_inst *in)
{
    return in->narg && sd_shape_is_array(in->arg[0]->shape) &&
           sd_is_complex(pass_dtype(in->arg[0]));
}

static bool can_do_complex(hlo_op op)
{
    return op == HLO_ADD || op == HLO_SUBTRACT || op == HLO_MULTIPLY ||
           op == HLO_NEGATE || op == HLO_COMPARE || op == HLO_SELECT ||
           op == HLO_REAL || op == HLO_IMAG || op == HLO_COMPLEX;
}

/* Send and receive of one array, the other side being the host. */
static bool can_do_tokens(const hlo_inst *in)
{
    switch (in->op) {
    case HLO_AFTER_ALL:
        return true;
    case HLO_SEND:
    case HLO_RECV:
        return in->u.coll && in->u.coll->host_transfer &&
               sd_shape_is_array(in->shape->elem[0]);
    case HLO_SEND_DONE:
        return in->arg[0]->op == HLO_SEND;
    case HLO_RECV_DONE:
        return in->arg[0]->op == HLO_RECV;
    default:
        return false;
    }
}

static bool can_do(const hlo_inst *in, const device_desc *dev)
{
    hlo_call call;

    switch (hlo_info(in)->cls) {
    case HLO_C_FFT:
    case HLO_C_LINALG:
    case HLO_C_NORM:
    case HLO_C_RNG:
    case HLO_C_DYNAMIC:
    case HLO_C_MAP:
        return false;
    case HLO_C_COLLECTIVE:
        return pass_is_move(in);
    case HLO_C_CUSTOM:
        return hlo_device_call(in, &call) || pass_has_attend_kernel(in, dev) ||
               pass_has_places_kernel(in, dev) ||
               !pass_foreign_why_not(in, dev);
    case HLO_C_TOKENS:
        return can_do_tokens(in);
    case HLO_C_BITCAST:
        return pass_is_plain_bitcast(in);
    case HLO_C_SCATTER:
        return hlo_ninput(in) == 1 && pass_is_canonical_scatter(in);
    case HLO_C_SORT:
        return in->op == HLO_SORT;
    case HLO_C_WINDOW:
        return in->op == HLO_REDUCE_WINDOW;
    case HLO_C_CONTROL:
        return in->op == HLO_WHILE || in->op == HLO_CONDITIONAL;
    case HLO_C_UNARY:
    case HLO_C_BINARY:
    case HLO_C_TERNARY:
    case HLO_C_CONVERT:
        return in->op != HLO_STOCHASTIC_CONVERT &&
               in->op != HLO_REDUCE_PRECISION &&
               (!is_complex_op(in) || can_do_complex(in->op));
    default:
        return true;
    }
}

static bool is_listed_already(const char *const *list, int n, const char *s)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i], s) == 0)
            return true;
    return false;
}

/* Their lowering takes another dimension. */
static bool has_highest_rank(const hlo_inst *in)
{
    const sd_shape *s = in->op == HLO_RNG_BIT_GENERATOR ? in->shape->elem[1]
                        : in->op == HLO_SCATTER         ? in->arg[0]->shape
                                                        : NULL;

    return s && s->rank == SD_MAX_RANK;
}

static const char *refusal(hlo_module *m, const hlo_inst *in,
                           const device_desc *dev)
{
    if (in->op == HLO_RNG)
        return sd_arena_fmt(m->arena,
                            "%s (in a function of elements, each of "
                            "which would draw the same numbers)",
                            hlo_describe(m, in));
    if (in->op == HLO_STOCHASTIC_CONVERT) /* the type tells */
        return sd_arena_fmt(m->arena, "%s to %s", hlo_describe(m, in),
                            sd_dtype_name(in->shape->dtype));
    if (has_highest_rank(in))
        return sd_arena_fmt(m->arena, "%s (of %d dimensions: %d are the most)",
                            hlo_describe(m, in), SD_MAX_RANK, SD_MAX_RANK - 1);
    if (in->op != HLO_CUSTOM_CALL)
        return hlo_describe(m, in);
    return sd_arena_fmt(m->arena, "%s to \"%s\" (%s)", hlo_describe(m, in),
                        in->u.custom->target, pass_foreign_why_not(in, dev));
}

/* All of them at once, each that reads alike but once. */
static sd_status refuse(hlo_module *m, const device_desc *dev)
{
    enum { MOST = 20 };
    const char *list[MOST];
    sd_buf b = {.arena = m->arena};
    int n = 0, listed = 0;
    bool more = false;
    sd_status st = NULL;

    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            if (can_do(in, dev))
                continue;
            const char *what = refusal(m, in, dev);

            n++;
            if (is_listed_already(list, listed, what))
                continue;
            more |= listed == MOST;
            if (listed < MOST)
                list[listed++] = what;
        }
    for (int i = 0; i < listed; i++)
        sd_buf_fmt(&b, "%s%s", i ? "; " : "", list[i]);
    if (n)
        st =
            sd_error(SD_UNIMPLEMENTED, "no way to run %d instruction%s: %.*s%s",
                     n, n > 1 ? "s" : "", (int)b.len, b.at ? b.at : "",
                     more ? "; ..." : "");
    return st;
}

/* SUNDOG_DISABLE_PASSES: what has no effect is said. */
static void warn_of_names(const char *off)
{
    while (off && *off) {
        size_t n = strcspn(off, ",");
        char name[64];
        const hlo_pass *p;

        snprintf(name, sizeof name, "%.*s", (int)SD_MIN(n, sizeof name), off);
        p = hlo_pass_of_name(name);
        if (n && (!p || p->needed))
            sd_log(SD_LOG_WARN,
                   p ? "SUNDOG_DISABLE_PASSES: %s stays: what comes later "
                       "needs it"
                     : "SUNDOG_DISABLE_PASSES: no pass is named %s; `sundog "
                       "passes` has them, and a dump with "
                       "SUNDOG_DUMP_PASSES=. shows which run",
                   name);
        off += n + (off[n] == ',');
    }
}

sd_status hlo_optimize(hlo_module *m, const device_desc *dev,
                       const sd_options *opt, hlo_pass_hook hook, void *ctx)
{
    const char *how = opt ? sd_opt_str(opt, SD_OPT_CHECK) : NULL;
    const device_desc wanted = device_as_wanted(dev, opt);
    run r = {m,
             &wanted,
             opt ? sd_opt_str(opt, SD_OPT_PASSES_OFF) : NULL,
             debug_build(),
             false,
             hook,
             ctx};
    unsigned facts = 1u << FACT_DOTS_AS_WRITTEN;
    sd_status st;

    r.roundtrip = is_listed(how, "roundtrip");
    r.verify = r.verify || r.roundtrip || is_listed(how, "verify");
    warn_of_names(r.off);
    m->excess_precision = opt && sd_opt_bool(opt, SD_OPT_EXCESS);
    m->slice_size = opt ? sd_opt_int(opt, SD_OPT_SLICES) : 0;
    if (hook)
        hook(ctx, "start", m);
    /* passes trust what is verified; text and protobuf are not yet */
    if ((st = hlo_verify(m)))
        return st;
    if (r.roundtrip && (st = check(&r, "start")))
        return st;
    if ((st = refuse_growth(m)))
        return st;
    if ((st = hlo_spmd(m, hook, ctx)))
        return st;
    hlo_layouts_apply(m);
    if ((st = check(&r, "spmd")))
        return st;
    for (size_t i = 0; i < SD_COUNTOF(groups); i++) {
        assert((groups[i].needs & ~facts) == 0);
        if ((st = run_group(&r, &groups[i])))
            return st;
        facts = (facts & ~groups[i].ends) | groups[i].leaves;
        if (i == 0 && hlo_participants(m) > 1) /* collectives go next */
            m->shown = hlo_module_clone(m);
    }
    assert(facts == all_facts);
    (void)all_facts;
    return refuse(m, dev);
}
