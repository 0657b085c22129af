/* On the host: neighbours in memory that are whole vectors together.  Of rows
 * of two, three .. numbers that lie along LANE a load of every second, third ..
 * element is a strand, and so is each store.  A load or store by itself goes to
 * memory once an element; all strands of a row go there once a vector, and
 * shuffles do the rest (emit_strided.c). */
#include "plan_mapping.h"

typedef struct {
    plan_kernel *k;
    int lane;
} finder;

/* ---- loads ---- */

static bool may_be_strand(const finder *f, const plan_node *n)
{
    return n->kind == PN_LOAD && !n->nguard && !sd_is_complex(n->dtype) &&
           f->k->slot[n->slot].access == PLAN_READ && !n->woven;
}

/* How far n goes from one position of LANE to the next; 0: it stays, or goes in
 * no even steps. */
static int64_t step_of(const finder *f, const plan_node *n)
{
    int64_t step;

    return n->off->varies >> f->lane & 1 &&
                   plan_expr_stride(n->off, f->lane, &step)
               ? step
               : 0;
}

/* The load from the same slot that is so far from the first. */
static plan_node *strand_at(const finder *f, const plan_node *first,
                            int64_t distance)
{
    int64_t d;

    plan_for_each_node(n, f->k)
        if (may_be_strand(f, n) && n->slot == first->slot &&
            n->stage == first->stage &&
            plan_expr_distance(first->off, n->off, &d) && d == distance)
            return n;
    return NULL;
}

/* Is what nobody reads between the strands of r in the array, to its end? */
static bool has_rows(const finder *f, const plan_woven *r)
{
    const plan_node *first = r->at[0];

    return first->off->hi + r->n - 1 < f->k->slot[first->slot].count;
}

/* Those that with the first of them read all up to its place one step of LANE
 * before or after, or of three or four all but one. */
static plan_woven *find_loads(const finder *f, const plan_node *first)
{
    plan_woven *r = sd_arena_new(f->k->arena, plan_woven);
    int64_t n;
    int lacks = 0;

    r->step = step_of(f, first);
    n = r->step < 0 ? -r->step : r->step;
    if (n < 2 || n > PLAN_MOST_WOVEN)
        return NULL;
    for (; r->n < n; r->n++) {
        r->at[r->n] = strand_at(f, first, r->n);
        lacks += !r->at[r->n];
    }
    return !lacks || (lacks == 1 && (n == 3 || n == 4) && has_rows(f, r))
               ? r
               : NULL;
}

/* ---- stores ---- */

static bool stands_at(const finder *f, const plan_node *n,
                      const plan_node *first, int64_t distance)
{
    int64_t d;

    return n->kind == PN_STORE && !n->woven && n->slot == first->slot &&
           plan_expr_distance(first->off, n->off, &d) && d == distance &&
           n->stage == first->stage && f->k->nstage == 1;
}

/* What is stored as it was read, in another order.  Taking strands apart and
 * weaving them would be twice as many shuffles as putting each vector that is
 * written together from those that are read. */
static const plan_woven *moved_from(const plan_woven *r)
{
    const plan_woven *from = r->at[0]->arg[0]->woven;

    for (int i = 0; i < r->n; i++)
        if (r->at[i]->arg[0]->woven != from)
            return NULL;
    return sd_is_complex(r->at[0]->dtype) ? NULL : from;
}

/* The stores that with the first of them write all that lies between it and its
 * place one step of LANE later. */
static plan_woven *find_stores(const finder *f, const plan_node *first)
{
    const plan_kernel *k = f->k;
    plan_woven *r = sd_arena_new(k->arena, plan_woven);
    int parts = sd_is_complex(first->dtype) ? 2 : 1;
    int64_t n = step_of(f, first);

    r->step = n;
    if (n < 2 || n > k->lanes / 2 || n * parts > PLAN_MOST_WOVEN)
        return NULL;
    for (int i = 0; i < k->nnode && r->n < n; i++) {
        if (!stands_at(f, k->node[i], first, r->n))
            continue;
        r->at[r->n++] = k->node[i];
        r->last = SD_MAX(r->last, i);
        i = -1;
    }
    r->moved = r->n == n ? moved_from(r) : NULL;
    return r->n == n && (r->moved || !(n & (n - 1)) || n * parts == 3) ? r
                                                                       : NULL;
}

void plan_find_woven(plan_kernel *k)
{
    finder f = {.k = k, .lane = plan_lane_of(k)};

    plan_for_each_node(n, k)
        n->woven = NULL;
    if (k->lanes == 1 || f.lane < 0 || k->naxis != k->nouter)
        return;
    for (int stores = 0; stores < 2; stores++)
        plan_for_each_node(n, k) {
            const plan_woven *r = stores ? n->kind == PN_STORE && !n->woven
                                               ? find_stores(&f, n)
                                               : NULL
                                  : may_be_strand(&f, n) ? find_loads(&f, n)
                                                         : NULL;

            for (int j = 0; r && j < r->n; j++)
                if (r->at[j])
                    r->at[j]->woven = r;
        }
}
