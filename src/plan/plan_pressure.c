/* How much memory an order of steps takes, while it is made: which values each
 * step is the last to read, and what lives.  Values are leaves: what renames or
 * gathers them has theirs, and so has a copy, which the schedule puts where it
 * is likely to be none.  What is an argument or a result takes memory in any
 * order and counts as nothing. */
#include "plan_mem.h"

struct plan_leaf {
    uint64_t bytes; /* 0: it is memory in any order */
    int waits;      /* readers that are still to come */
    int mark;
    sd_vec(hlo_inst *) reader; /* each once */
};

static bool renames(const hlo_inst *in)
{
    switch (in->op) {
    case HLO_TUPLE:
    case HLO_GET_TUPLE_ELEMENT:
    case HLO_RESHAPE:
    case HLO_BITCAST:
    case HLO_OPT_BARRIER:
    case HLO_COPY:
        return true;
    default:
        return plan_is_peers(in);
    }
}

static void make_fresh(plan_pressure *p, plan_pressed *f, const sd_shape *s,
                       bool counts)
{
    if (s->dtype == SD_TUPLE) {
        for (int i = 0; i < s->nelem; i++)
            make_fresh(p, f, s->elem[i], counts);
        return;
    }
    f->leaf[f->n] = sd_arena_new(p->a, plan_leaf);
    f->leaf[f->n++]->bytes = counts ? sd_shape_bytes(s) : 0;
}

/* The leaves of operands of what renames: all of theirs, or an element's. */
static void take_leaves(plan_pressed *f, const hlo_inst *in)
{
    for (int k = 0; k < in->narg; k++) {
        const plan_pressed *x = in->arg[k]->tag;
        int from = 0, n = x->n;

        if (in->op == HLO_GET_TUPLE_ELEMENT) {
            for (int i = 0; i < in->u.tuple.index; i++)
                from += plan_leaf_count(in->arg[k]->shape->elem[i]);
            n = plan_leaf_count(in->shape);
        }
        for (int i = 0; i < n; i++)
            f->leaf[f->n++] = x->leaf[from + i];
    }
}

/* Calls fn for each value that in reads, once. */
static void each_read(plan_pressure *p, const hlo_inst *in,
                      void (*fn)(void *ctx, plan_leaf *v), void *ctx)
{
    int mark = ++p->mark;

    for (int k = 0; k < in->narg; k++) {
        const plan_pressed *x = in->arg[k]->tag;

        for (int i = 0; i < x->n; i++)
            if (x->leaf[i]->mark != mark) {
                x->leaf[i]->mark = mark;
                fn(ctx, x->leaf[i]);
            }
    }
}

typedef struct {
    sd_arena *a;
    hlo_inst *in;
} reading;

static void add_reader(void *ctx, plan_leaf *v)
{
    reading *r = ctx;

    if (v->reader.n && v->reader.at[v->reader.n - 1] == r->in)
        return;
    *sd_push(r->a, &v->reader) = r->in;
    v->waits++;
}

void plan_pressure_begin(plan_pressure *p, sd_arena *a, hlo_comp *c)
{
    const plan_pressed *root;

    p->a = a;
    hlo_for_each_inst(in, c) {
        plan_pressed *f = in->tag;

        f->leaf = sd_arena_array(a, plan_leaf *, plan_leaf_count(in->shape));
        f->n = 0;
        if (renames(in)) {
            take_leaves(f, in);
            continue;
        }
        make_fresh(p, f, in->shape,
                   in->op != HLO_PARAMETER && in->op != HLO_CONSTANT);
        each_read(p, in, add_reader, &(reading){a, in});
    }
    root = c->root->tag;
    for (int i = 0; i < root->n; i++)
        root->leaf[i]->bytes = 0;
}

bool plan_pressure_needs_none(const hlo_inst *in)
{
    for (int k = 0; k < in->narg; k++) {
        const plan_pressed *x = in->arg[k]->tag;

        for (int i = 0; i < x->n; i++)
            if (x->leaf[i]->bytes)
                return false;
    }
    return true;
}

static void add_last(void *ctx, plan_leaf *v)
{
    *(uint64_t *)ctx += v->waits == 1 ? v->bytes : 0;
}

/* Bytes of what nobody reads after `in`, if it is the next step. */
static uint64_t last_read(plan_pressure *p, const hlo_inst *in)
{
    uint64_t all = 0;

    each_read(p, in, add_last, &all);
    return all;
}

static uint64_t made_by(const hlo_inst *in)
{
    const plan_pressed *f = in->tag;
    uint64_t all = 0;

    for (int i = 0; i < f->n; i++)
        all += f->leaf[i]->bytes;
    return all;
}

bool plan_pressure_eases(plan_pressure *p, const hlo_inst *in)
{
    return renames(in) || made_by(in) <= last_read(p, in);
}

/* Is there a value among in's operands as large as the result, dying here?  Of
 * a library's call it is the one that its product is added to. */
static bool is_in_place(const hlo_inst *in, uint64_t bytes)
{
    int only = plan_addend_of(in);

    if (in->op != HLO_FUSION && only < 0)
        return in->op == HLO_WHILE;
    for (int k = SD_MAX(only, 0); k < in->narg; k++) {
        const plan_pressed *x = in->arg[k]->tag;

        if (x->leaf[0]->waits == 1 && x->leaf[0]->bytes == bytes)
            return true;
    }
    return false;
}

/* Who is now alone to read it frees it. */
static void drop_reader(void *ctx, plan_leaf *v)
{
    plan_pressure *p = ctx;

    if (--v->waits != 1 || !v->bytes)
        return;
    for (int j = 0; j < v->reader.n; j++)
        p->eased(p->ctx, v->reader.at[j]);
}

void plan_pressure_step(plan_pressure *p, hlo_inst *in)
{
    uint64_t made, freed;

    if (renames(in) || in->op == HLO_PARAMETER || in->op == HLO_CONSTANT)
        return;
    made = made_by(in);
    freed = last_read(p, in);
    p->most = SD_MAX(p->most, p->live + (is_in_place(in, made) ? 0 : made));
    p->live += made;
    p->live -= SD_MIN(freed, p->live);
    each_read(p, in, drop_reader, p);
}
