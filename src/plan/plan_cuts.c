/* Where axes are cut.  What is shifted, rolled, padded or put together along an
 * axis asks which part a position is in, and has one answer from one edge to
 * the next.  So the loop over the axis is cut at each edge into stretches, each
 * with code of its own, which asks nothing and has only what it needs: of a
 * stack of eight rows, each row's; of a grid whose edges wrap around, the
 * inside's.
 *
 * Axes of the nest are cut from the outermost to LANE, and an inner one anew in
 * each stretch of those outside, by what is still asked there. */
#include "plan_mapping.h"

enum {
    LEAST_KNOWN = 4, /* steps of LANE's copies, of the longest stretch */
    MOST_OF_LANE = 8, /* stretches; if more, the longest alone is known */
    MOST_OF_OTHERS = 32,
    MOST_AGAIN = 600, /* nodes of all stretches */
    MOST_EDGES = 256
};

/* ---- what is known in a stretch ---- */

/* Do its bounds say nothing, since it may wrap around? */
static bool may_wrap(const plan_expr *e)
{
    return e->lo == INT64_MIN || e->hi == INT64_MAX;
}

bool plan_knows(const plan_within *w, const plan_guard *g, bool *holds)
{
    int64_t lo = g->e->lo, hi = g->e->hi, step;
    bool cut = false;

    if (may_wrap(g->e))
        return false;
    for (; w; w = w->outside) {
        if (!plan_expr_stride(g->e, w->axis, &step) ||
            (step != 1 && step != -1))
            continue;
        lo += step > 0 ? w->from : w->extent - w->end;
        hi -= step > 0 ? w->extent - w->end : w->from;
        cut = true;
    }
    *holds = g->lo <= lo && hi < g->hi;
    return cut && (*holds || hi < g->lo || lo >= g->hi);
}

static plan_answer answer_of(bool holds)
{
    return holds ? PLAN_YES : PLAN_NO;
}

/* Is a LOAD allowed, as far as that is known? */
static plan_answer ask_guards(const plan_within *w, const plan_node *n)
{
    plan_answer all = PLAN_YES;
    bool holds;

    for (int i = 0; i < n->nguard; i++) {
        if (!plan_knows(w, &n->guard[i], &holds))
            all = PLAN_OPEN;
        else if (!holds)
            return PLAN_NO;
    }
    return n->nguard ? all : PLAN_OPEN;
}

/* The value of a condition, where it is known.  A LOAD's answer is no value: it
 * says whether its guards let it. */
static plan_answer value_of(const plan_node *n, const plan_answer *answer)
{
    return n->kind == PN_LOAD ? PLAN_OPEN : answer[n->id];
}

static plan_answer ask(const plan_within *w, const plan_node *n,
                       const plan_answer *answer)
{
    plan_answer x, y;
    plan_guard g;
    bool holds;

    if (n->kind == PN_LOAD)
        return ask_guards(w, n);
    if (n->kind != PN_ELT || n->dtype != SD_PRED)
        return PLAN_OPEN;
    if (plan_asks(n, &g))
        return plan_knows(w, &g, &holds) ? answer_of(holds) : PLAN_OPEN;
    if (n->op != HLO_AND && n->op != HLO_OR)
        return PLAN_OPEN;
    x = value_of(n->arg[0], answer);
    y = value_of(n->arg[1], answer);
    if (x == answer_of(n->op == HLO_OR) || y == answer_of(n->op == HLO_OR))
        return answer_of(n->op == HLO_OR);
    return x == PLAN_OPEN || y == PLAN_OPEN ? PLAN_OPEN : x;
}

bool plan_takes(const plan_node *n, int arg, const plan_answer *answer)
{
    if (n->kind == PN_LOAD)
        return answer[n->id] != PLAN_YES;
    if (answer[n->id] != PLAN_OPEN)
        return false;
    if (n->kind != PN_ELT || n->op != HLO_SELECT ||
        value_of(n->arg[0], answer) == PLAN_OPEN)
        return true;
    return arg == (value_of(n->arg[0], answer) == PLAN_YES ? 1 : 2);
}

void plan_look(const plan_kernel *k, const plan_within *w, plan_answer *answer,
               bool *wanted)
{
    for (int i = 0; i < k->nnode; i++) {
        answer[i] = w ? ask(w, k->node[i], answer) : PLAN_OPEN;
        wanted[i] = !w || plan_is_sink(k->node[i]);
    }
    for (int i = k->nnode - 1; i >= 0; i--) {
        const plan_node *n = k->node[i];

        for (int j = 0; wanted[i] && j < n->narg; j++)
            wanted[n->arg[j]->id] |= plan_takes(n, j, answer);
        for (int j = 0; wanted[i] && j < n->nindex; j++)
            wanted[n->index[j]->id] |= answer[i] != PLAN_NO;
    }
}

/* ---- edges ---- */

typedef struct {
    int axis, n;
    int64_t at[MOST_EDGES]; /* positions at which an answer changes */
    int64_t cut[MOST_EDGES + 2]; /* where stretches begin, and the end */
    int ncut;
} edges;

/* How many positions behind `first` limit is, as far as an axis goes. */
static int64_t behind(int64_t first, int64_t limit, int64_t extent)
{
    int64_t n;

    if (__builtin_sub_overflow(limit, first, &n))
        n = limit < first ? 0 : extent;
    return SD_MIN(SD_MAX(n, 0), extent);
}

/* Where g begins to hold, or no longer does, wherever other axes stand: of a
 * window's position, which is the sum of two, the inside. */
static bool add_edges(edges *x, const plan_guard *g, int64_t extent)
{
    int64_t step, from, end;

    if (!(g->e->varies >> x->axis & 1) ||
        (g->lo <= g->e->lo && g->hi > g->e->hi))
        return true;
    if (x->n + 2 > MOST_EDGES)
        return false;
    if (!plan_expr_stride(g->e, x->axis, &step) || may_wrap(g->e) ||
        (step != 1 && step != -1))
        return true; /* asked at every position */
    from = behind(g->e->lo, g->lo, extent);
    end = behind(g->e->hi - (extent - 1), g->hi, extent);
    if (from >= end)
        return true;
    x->at[x->n++] = step > 0 ? from : extent - end;
    x->at[x->n++] = step > 0 ? end : extent - from;
    return true;
}

static bool find_edges(const plan_kernel *k, const bool *wanted, edges *x)
{
    int64_t extent = k->axis[x->axis].extent;
    plan_guard g;

    plan_for_each_node(n, k) {
        if (!wanted[n->id])
            continue;
        for (int i = 0; i < n->nguard; i++)
            if (!add_edges(x, &n->guard[i], extent))
                return false;
        if (plan_asks(n, &g) && !add_edges(x, &g, extent))
            return false;
    }
    return x->n > 0;
}

/* The edges inside of the axis, sorted, each once, behind 0 and before its end.
 */
static void sort_edges(edges *x, int64_t extent)
{
    int n = 1;

    for (int i = 0; i < x->n; i++)
        for (int j = i; j > 0 && x->at[j] < x->at[j - 1]; j--) {
            int64_t t = x->at[j];

            x->at[j] = x->at[j - 1];
            x->at[j - 1] = t;
        }
    for (int i = 0; i < x->n; i++)
        if (x->at[i] > 0 && x->at[i] < extent &&
            (n == 1 || x->cut[n - 1] < x->at[i]))
            x->cut[n++] = x->at[i];
    x->cut[n] = extent;
    x->ncut = n;
}

/* ---- cuts ---- */

typedef enum { CUT_LANE, CUT_INSIDES, CUT_ALL } effort;
typedef struct {
    plan_kernel *k;
    int lane;
    effort effort; /* LANE alone; of others the longest stretch; all */
    int again; /* nodes of all stretches so far */
} finder;

static const plan_cut *cut_nest(finder *f, int i, const plan_within *w);

/* Is the stretch worth code of its own? */
static bool is_long(const finder *f, int axis, int64_t n)
{
    const plan_axis *x = &f->k->axis[axis];

    return axis == f->lane ? n >= (int64_t)LEAST_KNOWN * x->copies * f->k->lanes
           : f->effort == CUT_ALL ? true
                                  : n >= x->extent / 4 * 3;
}

/* What is asked is asked in all that is inside.  The part from x->cut[i] to
 * before x->cut[i + n], at axis number `nest`. */
static plan_stretch stretch(finder *f, const edges *x, int nest, int i,
                            bool known, const plan_within *w)
{
    plan_within in = {w, x->axis, x->cut[i], x->cut[i + 1],
                      f->k->axis[x->axis].extent};

    return (plan_stretch){
        x->cut[i], known,
        cut_nest(f, known ? nest + 1 : f->k->nnest, known ? &in : w)};
}

static const plan_cut *cut_axis(finder *f, const edges *x, int nest,
                                const plan_within *w)
{
    sd_arena *a = f->k->arena;
    plan_stretch *s = sd_arena_array(a, plan_stretch, SD_MAX(x->ncut, 3));
    plan_cut *cut = sd_arena_new(a, plan_cut);
    int most = x->axis == f->lane     ? MOST_OF_LANE
               : f->effort == CUT_ALL ? MOST_OF_OTHERS
                                      : 1;
    int longest = 0;

    for (int i = 0; i < x->ncut; i++)
        if (x->cut[i + 1] - x->cut[i] > x->cut[longest + 1] - x->cut[longest])
            longest = i;
    if (!is_long(f, x->axis, x->cut[longest + 1] - x->cut[longest]))
        return cut_nest(f, nest + 1, w);
    *cut = (plan_cut){x->axis, 0, s};
    for (int i = 0; i < x->ncut && f->again <= MOST_AGAIN; i++)
        if (x->ncut <= most || i == longest || i == longest + 1 || i == 0)
            s[cut->n++] =
                stretch(f, x, nest, i, x->ncut <= most || i == longest, w);
    return cut;
}

/* How axes of the nest from number i on are cut where w is known. */
static const plan_cut *cut_nest(finder *f, int i, const plan_within *w)
{
    plan_kernel *k = f->k;
    plan_answer *answer = sd_arena_array(k->arena, plan_answer, k->nnode + 1);
    bool *wanted = sd_arena_array(k->arena, bool, k->nnode + 1);
    edges x = {0};

    plan_look(k, w, answer, wanted);
    if (i == k->nnest) {
        for (int j = 0; j < k->nnode; j++)
            f->again += wanted[j];
        return NULL;
    }
    x.axis = k->nest[i];
    if ((x.axis != f->lane &&
         (f->effort == CUT_LANE || k->axis[x.axis].place != PLAN_SEQ)) ||
        !find_edges(k, wanted, &x))
        return cut_nest(f, i + 1, w);
    sort_edges(&x, k->axis[x.axis].extent);
    return x.ncut == 1 ? cut_nest(f, i + 1, w) : cut_axis(f, &x, i, w);
}

void plan_find_cuts(plan_kernel *k, int lane)
{
    /* code of loops takes long to make: of those the inside alone knows */
    int first = k->naxis > k->nouter ? CUT_INSIDES : CUT_ALL;

    if (!k->axis[lane].outer || k->lanes == 1 || k->cls == PLAN_SCATTERING ||
        k->blocks || k->rows)
        return;
    for (int e = first; e >= CUT_LANE && !k->cut; e--) {
        finder f = {.k = k, .lane = lane, .effort = (effort)e};
        const plan_cut *cut = cut_nest(&f, 0, NULL);

        k->cut = f.again <= MOST_AGAIN ? cut : NULL;
    }
}
