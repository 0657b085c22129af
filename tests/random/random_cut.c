/* Cuts a failing program down: one change at a time, kept when what is left
 * still fails, until none helps.  Changes are made to the parsed module, which
 * is printed again; only the extents of dimensions are changed as text. */
#include "random.h"

#include "passes.h"

#include <stdlib.h>

enum { MOST_RESULTS = RANDOM_RESULTS };

typedef struct {
    random_fails fails;
    void *ctx;
    sd_buf text; /* the smallest so far */
} cutter;

typedef struct {
    sd_arena *a;
    hlo_module *m;
    double error[MOST_RESULTS];
} trial;

static bool open_trial(const sd_buf *text, trial *t)
{
    const char *s;
    sd_status st;

    *t = (trial){.a = sd_arena_create()};
    s = strstr(sd_arena_str(t->a, text->at, text->len), "// error:");
    if (s)
        s += strlen("// error:");
    for (int i = 0; s && *s == ' ' && i < MOST_RESULTS; i++) {
        char *end;

        t->error[i] = strtod(s, &end);
        s = end;
    }
    st = hlo_parse(t->a, text->at, text->len, &t->m);
    if (!st)
        return true;
    sd_status_free(st);
    sd_arena_destroy(t->a);
    return false;
}

/* Unused instructions and parameters go. */
static void sweep(hlo_module *m)
{
    hlo_pass_of_name("dce")->run(m, NULL);
    for (int i = m->entry->nparam - 1; i >= 0; i--)
        if (m->entry->param[i]->nuse == 0 &&
            m->entry->root != m->entry->param[i])
            hlo_remove(m->entry->param[i]);
}

static bool take(cutter *c, sd_buf *text)
{
    if (text->len < c->text.len && c->fails(c->ctx, text->at, text->len)) {
        sd_buf_finish(&c->text);
        c->text = *text;
        return true;
    }
    sd_buf_finish(text);
    return false;
}

static bool close_trial(cutter *c, trial *t)
{
    const sd_shape *s = t->m->entry->root->shape;
    int n = s->dtype == SD_TUPLE ? s->nelem : 1;
    sd_buf text = {0};

    sweep(t->m);
    sd_buf_str(&text, "// error:");
    for (int i = 0; i < n && i < MOST_RESULTS; i++)
        sd_buf_fmt(&text, " %.3g", t->error[i]);
    sd_buf_str(&text, "\n");
    hlo_print(&text, t->m);
    sd_arena_destroy(t->a);
    return take(c, &text);
}

/* ---- changes ---- */

static bool keep_result(trial *t, int i)
{
    hlo_inst *root = t->m->entry->root;

    if (root->op != HLO_TUPLE || i >= root->narg)
        return false;
    hlo_set_root(t->m->entry, root->arg[i]);
    t->error[0] = t->error[i];
    return true;
}

static bool drop_result(trial *t, int i)
{
    hlo_comp *c = t->m->entry;
    hlo_inst *root = c->root, *x[MOST_RESULTS];
    int n = 0;

    if (root->op != HLO_TUPLE || i >= root->narg || root->narg < 2)
        return false;
    for (int k = 0; k < root->narg; k++)
        if (k != i) {
            t->error[n] = t->error[k];
            x[n++] = root->arg[k];
        }
    hlo_set_root(c, hlo_make_tuple((hlo_at){.c = c}, n, x));
    return true;
}

/* Instruction k of the module, counted over all computations. */
static hlo_inst *inst_at(hlo_module *m, int k)
{
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c)
            if (k-- == 0)
                return in;
    return NULL;
}

static bool to_operand(trial *t, int k, int arg)
{
    hlo_inst *in = inst_at(t->m, k);

    if (!in || arg >= in->narg ||
        !sd_shape_equal(in->shape, in->arg[arg]->shape))
        return false;
    hlo_replace(in, in->arg[arg]);
    return true;
}

/* By a parameter of small numbers, inside a computation by a constant. */
static bool to_leaf(trial *t, int k)
{
    hlo_inst *in = inst_at(t->m, k), *leaf;
    const sd_shape *s;

    if (!in || in->narg == 0 || !sd_shape_is_array(in->shape))
        return false;
    s = in->shape;
    if (in->parent == t->m->entry)
        leaf = hlo_make_param(in->parent, s, "small");
    else
        leaf = hlo_make_constant((hlo_at){in->parent, in, NULL}, s,
                                 sd_arena_alloc(t->a, sd_shape_bytes(s) + 1));
    hlo_replace(in, leaf);
    return true;
}

static bool to_branch(trial *t, int k, int which)
{
    hlo_inst *in = inst_at(t->m, k), *call;
    hlo_comp *c;

    if (!in || in->op != HLO_CONDITIONAL || which >= in->ncomp)
        return false;
    c = in->comp[which];
    call = hlo_inst_create(in->parent, in, HLO_CALL, in->shape, 1,
                           &in->arg[1 + which]);
    hlo_set_comps(call, 1, &c);
    hlo_replace(in, call);
    return true;
}

/* ---- the search ---- */

typedef bool (*change)(trial *t, int k, int i);

static bool by_result(trial *t, int k, int i)
{
    return i == 0 ? keep_result(t, k) : i == 1 ? drop_result(t, k) : false;
}

static bool by_inst(trial *t, int k, int i)
{
    if (i == 0)
        return to_leaf(t, k);
    return i < 4 ? to_operand(t, k, i - 1) : i < 8 && to_branch(t, k, i - 4);
}

/* Every place k and way i, from the last on, while there are places. */
static bool sweep_changes(cutter *c, change f, int ways)
{
    bool any = false;
    trial t;
    int n = 0;

    if (!open_trial(&c->text, &t))
        return false;
    while (inst_at(t.m, n))
        n++;
    sd_arena_destroy(t.a);
    for (int k = n - 1; k >= 0; k--)
        for (int i = 0; i < ways; i++) {
            if (!open_trial(&c->text, &t))
                return any;
            if (f(&t, k, i))
                any |= close_trial(c, &t);
            else
                sd_arena_destroy(t.a);
        }
    return any;
}

/* Every extent `from` in brackets or braces becomes `to`. */
static void replace_extent(const sd_buf *old, int64_t from, int64_t to,
                           sd_buf *out)
{
    for (size_t i = 0; i < old->len;) {
        size_t n = strspn(old->at + i, "0123456789");
        char before = i ? old->at[i - 1] : ' ';

        if (n && strchr("[,=x{:", before) &&
            strtoll(old->at + i, NULL, 10) == from) {
            sd_buf_fmt(out, "%" PRId64, to);
        } else {
            sd_buf_add(out, old->at + i, SD_MAX(n, 1));
        }
        i += SD_MAX(n, 1);
    }
}

static bool shrink_extents(cutter *c)
{
    static const int64_t to[] = {1, 2, 3, 5, 8, 16};
    bool any = false;

    for (int64_t from = 128; from > 1; from--)
        for (size_t i = 0; i < SD_COUNTOF(to) && to[i] < from; i++) {
            sd_buf old = {0}, text = {0};

            sd_buf_add(&old, c->text.at, c->text.len);
            sd_buf_u8(&old, 0);
            old.len--;
            replace_extent(&old, from, to[i], &text);
            sd_buf_finish(&old);
            if (text.len == c->text.len &&
                !memcmp(text.at, c->text.at, text.len)) {
                sd_buf_finish(&text);
                break;
            }
            if (c->fails(c->ctx, text.at, text.len)) {
                sd_buf_finish(&c->text);
                c->text = text;
                any = true;
                break;
            }
            sd_buf_finish(&text);
        }
    return any;
}

void random_cut(const char *text, size_t len, random_fails fails, void *ctx,
                sd_buf *out)
{
    cutter c = {.fails = fails, .ctx = ctx};
    bool more = true;

    sd_buf_add(&c.text, text, len);
    for (int round = 0; more && round < 6; round++) {
        more = sweep_changes(&c, by_result, 2);
        more |= sweep_changes(&c, by_inst, 8);
        more |= shrink_extents(&c);
    }
    *out = c.text;
}
