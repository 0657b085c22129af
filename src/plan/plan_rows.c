/* Whole rows.  An associative scan along a dimension is a tree of slices of
 * every second number and of pads with holes: each level is read by the next
 * and by the way back, at places of its own.  Along short rows a kernel for
 * each level moves numbers one by one, as often as there are levels.  As one
 * kernel, of which each position of a row is a strand (plan_strands.c), it
 * reads a row once, computes each number of the tree once, and writes the row;
 * LANE is the rows. */
#include "plan_cluster.h"

enum {
    LEAST_ROW = 3,
    MOST_ROW = 64,    /* numbers, each a read and a write in the loop */
    LEAST_ROWS = 64,  /* for LANE, and for items of a GPU */
    MOST_WORK = 512,  /* numbers that are read and computed for a row */
    MOST_MEMBERS = 200,
    MOST_ROOTS = 4
};

static int64_t row_of(const sd_shape *s)
{
    return s->dim[s->rank - 1];
}

/* Has s the rows of t, be they longer or shorter? */
static bool has_rows_of(const sd_shape *s, const sd_shape *t)
{
    if (!sd_shape_is_array(s) || s->rank != t->rank || row_of(s) < 1 ||
        row_of(s) > MOST_ROW)
        return false;
    for (int d = 0; d < s->rank - 1; d++)
        if (s->dim[d] != t->dim[d])
            return false;
    return true;
}

static bool is_free(const hlo_inst *in)
{
    while (in->op == HLO_BROADCAST)
        in = in->arg[0];
    return in->op == HLO_CONSTANT && (in->shape->rank == 0 || hlo_is_splat(in));
}

/* Is a row of in made of the same row of its operands? */
static bool keeps_rows(const hlo_inst *in, const sd_shape *rows)
{
    int last = rows->rank - 1;

    if (in->op == HLO_CONSTANT && in->shape->rank == 0)
        return true;
    if (!has_rows_of(in->shape, rows))
        return false;
    switch (in->op) {
    case HLO_SLICE:
        for (int d = 0; d < last; d++)
            if (in->shape->dim[d] != in->arg[0]->shape->dim[d])
                return false;
        return true;
    case HLO_PAD:
        for (int d = 0; d < last; d++)
            if (in->u.pad.low[d] || in->u.pad.high[d] || in->u.pad.interior[d])
                return false;
        return true;
    case HLO_CONCATENATE:
    case HLO_REVERSE:
        return in->dims.n == 1 && in->dims.at[0] == last;
    default:
        return is_free(in) ||
               (hlo_is_elementwise(in) && !(hlo_info(in)->props & HLO_P_HEAVY));
    }
}

static bool is_interleaved(const hlo_inst *in)
{
    for (int i = 0; i < in->narg; i++) {
        const hlo_inst *x = in->arg[i];

        if (x->op == HLO_PAD && x->u.pad.interior[x->shape->rank - 1])
            return true;
    }
    return false;
}

/* The last step of a scan along its rows, or of a part of it. */
static bool is_last_step(const hlo_inst *in)
{
    const sd_shape *s = in->shape;

    return sd_shape_is_array(s) && s->rank > 1 && row_of(s) >= LEAST_ROW &&
           sd_shape_count(s) / row_of(s) >= LEAST_ROWS && keeps_rows(in, s) &&
           is_interleaved(in);
}

/* ---- what is computed together ---- */

typedef struct {
    clusters *cs;
    const sd_shape *rows;
    hlo_inst *root[MOST_ROOTS];
    int nroot;
    sd_vec(hlo_inst *) in; /* of the epoch */
} tree;

static bool is_in(const tree *t, const hlo_inst *in)
{
    return info_of(in)->epoch == t->cs->epoch;
}

static void take(tree *t, hlo_inst *in)
{
    info_of(in)->epoch = t->cs->epoch;
    *sd_push(t->cs->a, &t->in) = in;
}

/* Nobody else needs it, or it costs nothing. */
static bool can_take(const tree *t, const hlo_inst *in)
{
    if (is_in(t, in) || info_of(in)->in.n || !keeps_rows(in, t->rows))
        return false;
    for (int i = 0; i < in->nuse && !is_free(in); i++)
        if (!is_in(t, in->user[i]))
            return false;
    return is_free(in) || in != t->cs->c->root;
}

/* All that only the roots need, until there is no more. */
static void grow(tree *t)
{
    int before;

    t->cs->epoch++;
    t->in.n = 0;
    for (int i = 0; i < t->nroot; i++)
        take(t, t->root[i]);
    do {
        before = t->in.n;
        for (int i = 0; i < t->in.n && t->in.n < MOST_MEMBERS; i++)
            for (int k = 0; k < t->in.at[i]->narg; k++)
                if (can_take(t, t->in.at[i]->arg[k]))
                    take(t, t->in.at[i]->arg[k]);
    } while (t->in.n > before);
}

/* Numbers that in computes for a row, or, where it reads memory, reads. */
static int64_t work_of(const hlo_inst *in, bool reads)
{
    return in->shape->rank > 1 && !is_free(in) &&
                   (reads || hlo_is_elementwise(in))
               ? row_of(in->shape)
               : 0;
}

/* A level of a tree is computed, and read twice. */
static bool is_level(const hlo_inst *in, int uses)
{
    return uses > 1 && hlo_is_elementwise(in) && !is_free(in);
}

static int uses_in(const tree *t, const hlo_inst *in)
{
    int n = 0;

    for (int i = 0; i < in->nuse && !is_free(in); i++)
        n += is_in(t, in->user[i]);
    return n;
}

/* Is there a level, and not too much to do? */
static bool is_worth(const tree *t)
{
    int64_t work = 0;
    bool level = false;

    for (int i = 0; i < t->in.n; i++) {
        const hlo_inst *in = t->in.at[i];
        bool reads = false;

        for (int k = 0; k < in->narg; k++)
            reads |= !is_in(t, in->arg[k]);
        work += work_of(in, reads);
        level |= is_level(in, uses_in(t, in));
    }
    return level && work <= MOST_WORK && t->in.n < MOST_MEMBERS;
}

/* What several roots make is used after the last of them alone, so that no way
 * leads from one out and back to another. */
static bool are_last(const tree *t)
{
    int last = 0;

    for (int i = 0; i < t->nroot; i++)
        last = SD_MAX(last, info_of(t->root[i])->order);
    for (int i = 0; i < t->nroot && t->nroot > 1; i++)
        hlo_for_each_user(u, t->root[i])
            if (!is_in(t, u) && info_of(u)->order < last)
                return false;
    return true;
}

static int size_with(tree *t, hlo_inst *const *root, int n)
{
    memcpy(t->root, root, (size_t)n * sizeof *root);
    t->nroot = n;
    grow(t);
    return t->in.n;
}

/* Scans of several arrays share what they compute: their last steps are one
 * tree if that has more than each. */
static void find_roots(tree *t, hlo_inst *const *last, int n)
{
    hlo_inst *root[MOST_ROOTS] = {last[0]};
    int nroot = 1, size = size_with(t, root, 1);

    for (int i = 1; i < n && i <= MOST_ROOTS && nroot < MOST_ROOTS; i++) {
        int more;

        if (info_of(last[i])->in.n ||
            !sd_shape_same_dims(last[i]->shape, t->rows))
            continue;
        root[nroot] = last[i];
        more = size_with(t, root, nroot + 1);
        if (more > size + size_with(t, &last[i], 1)) {
            nroot++;
            size = more;
        }
    }
    size_with(t, root, nroot);
}

static void make_cluster(const tree *t)
{
    cluster *c = cluster_create(t->cs, t->root[0]);

    c->alone = true;
    for (int i = 1; i < t->in.n; i++) {
        cluster_add(t->cs, c, (cluster_member){.in = t->in.at[i]});
        info_of(t->in.at[i])->placed = !is_free(t->in.at[i]);
    }
    info_of(t->root[0])->placed = true;
    for (int i = 1; i < t->nroot; i++)
        cluster_add_root(t->cs, c, t->root[i]);
    for (int i = 0; i < t->nroot; i++)
        info_of(t->root[i])->outside = true;
}

void cluster_take_rows(clusters *cs)
{
    sd_vec(hlo_inst *) last = {0};

    hlo_for_each_inst_backward(in, cs->c)
        if (info_of(in)->fusable && is_last_step(in))
            *sd_push(cs->a, &last) = in;
    for (int i = 0; i < last.n; i++) {
        tree t = {.cs = cs, .rows = last.at[i]->shape};

        if (info_of(last.at[i])->in.n)
            continue;
        find_roots(&t, last.at + i, last.n - i);
        if (is_worth(&t) && are_last(&t))
            make_cluster(&t);
    }
}

/* ---- of a fusion ---- */

const hlo_inst *plan_first_root(const hlo_comp *c)
{
    return c->root->op == HLO_TUPLE ? c->root->arg[0] : c->root;
}

int64_t plan_whole_rows(const hlo_comp *c)
{
    const hlo_inst *root = plan_first_root(c);
    int64_t work = 0;
    bool level = false;

    if (!is_last_step(root))
        return 1;
    hlo_for_each_inst(in, c) {
        bool reads = false;
        int uses = 0;

        if (in->op == HLO_PARAMETER || in->op == HLO_TUPLE)
            continue;
        if (!keeps_rows(in, root->shape))
            return 1;
        for (int k = 0; k < in->narg; k++)
            reads |= in->arg[k]->op == HLO_PARAMETER;
        hlo_for_each_user(u, in)
            uses += u->op != HLO_TUPLE;
        work += work_of(in, reads);
        level |= is_level(in, uses);
    }
    return level && work <= MOST_WORK ? row_of(root->shape) : 1;
}
