/* Which atoms cut which factors of an operation on parts.
 *
 * A candidate is cut by the atoms that its operands lie by, the largest operand
 * first; then by those that users want and operands have left open.  There are
 * at most five candidates, and each after the first has to earn its place:
 *
 *   the largest operand first          if no other is better
 *   a product's smaller operand first  if less is left to sum, and less moves
 *   PICKS, SPREADS, or both            if the best so far would gather an
 *                                      operand, and this moves no more */
#include "spmd_choice.h"
#include "spmd_halo.h"
#include "spmd_pick.h"

#include <math.h>

/* What a candidate may do that others may not: PICKS reads and writes parts of
 * a dimension at places that are known when the program runs; SPREADS moves the
 * atoms of a dimension that has to be whole to another dimension of the
 * operand. */
enum { PICKS = 1, SPREADS = 2 };

typedef struct {
    int first; /* the operand that it is cut by first; LARGEST: the largest */
    unsigned ways;
} candidate;
enum { LARGEST = -1 };

static bool may_cut(const hlo_inst *in, const spmd_factor *f, int d, int64_t n,
                    unsigned ways)
{
    return spmd_fits(f, n) && (!f->across || spmd_reaches(in, d, n)) &&
           (!f->picked || ((ways & PICKS) && spmd_can_pick(in, d, n))) &&
           (!f->again || f->size % n == 0);
}

/* Cuts factors by the atoms that operand k lies by, where nothing stands
 * against it. */
static void cut_as_operand(const hlo_inst *in, const spmd_rule *r, int k,
                           const hlo_sharding *s, unsigned ways, spmd_choice *c)
{
    if (!c->like)
        c->like = s;
    if (c->like->grid != s->grid)
        return;
    for (int d = 0; d < s->rank; d++) {
        const hlo_atoms *a = &s->dim[d].cut;
        int f = r->arg[k][d];
        uint32_t mask = hlo_atoms_mask(a);

        if (!a->n || f < 0 || c->cut[f].n || (mask & c->used) ||
            !may_cut(in, &r->factor[f], d, hlo_atoms_size(s->grid, a), ways))
            continue;
        c->cut[f] = *a;
        c->used |= mask;
    }
}

/* A dimension of operand k that each of them has for itself, and room for more
 * atoms behind those that cut it; or -1. */
static int room_for(const hlo_inst *in, const spmd_rule *r, int k,
                    const hlo_atoms *more, const hlo_grid *g,
                    const spmd_choice *c)
{
    for (int d = 0; d < in->arg[k]->shape->rank; d++) {
        int f = r->arg[k][d];
        const spmd_factor *x = &r->factor[SD_MAX(f, 0)];
        int64_t n;

        if (f < 0 || x->partial || x->across || x->picked || x->running)
            continue;
        n = hlo_atoms_size(g, &c->cut[f]) * hlo_atoms_size(g, more);
        if (x->size % n == 0 && c->cut[f].n + more->n <= HLO_MOST_ATOMS)
            return f;
    }
    return -1;
}

/* The atoms that cut operand k in dimensions that have to be whole cut others.
 */
static void cut_elsewhere(const hlo_inst *in, const spmd_rule *r, int k,
                          const hlo_sharding *s, unsigned ways, spmd_choice *c)
{
    if (c->like->grid != s->grid)
        return;
    for (int d = 0; d < s->rank; d++) {
        const hlo_atoms *a = &s->dim[d].cut;
        uint32_t mask = hlo_atoms_mask(a);
        int f = r->arg[k][d];

        if (!a->n || (mask & c->used) ||
            (f >= 0 &&
             may_cut(in, &r->factor[f], d, hlo_atoms_size(s->grid, a), ways)) ||
            (f = room_for(in, r, k, a, s->grid, c)) < 0)
            continue;
        hlo_atoms_add(&c->cut[f], a);
        c->used |= mask;
        c->moved |= mask;
    }
}

/* Cuts what operands leave open as users want it. */
static void cut_as_wanted(const spmd_flow *f, const hlo_inst *in,
                          const spmd_rule *r, spmd_choice *c)
{
    const hlo_sharding *w = spmd_wanted(f, in);

    if (!w || spmd_is_anew(f, in) || (c->like && c->like->grid != w->grid))
        return;
    c->like = w;
    for (int d = 0; d < w->rank; d++) {
        const hlo_atoms *a = &w->dim[d].cut;
        int k = r->result[d];
        uint32_t mask = hlo_atoms_mask(a);

        if (!a->n || k < 0 || c->cut[k].n || r->factor[k].across ||
            r->factor[k].picked || (mask & (c->used | c->sums)) ||
            r->factor[k].size % hlo_atoms_size(w->grid, a))
            continue;
        c->cut[k] = *a;
        c->used |= mask;
    }
}

/* Of how many operands in is linear; 0: of none. */
static int linear_in(const hlo_inst *in)
{
    const sd_dtype t = pass_dtype(in);

    switch (in->op) {
    case HLO_ADD:
    case HLO_SUBTRACT:
    case HLO_DYNAMIC_UPDATE_SLICE:
        return 2;
    case HLO_NEGATE:
    case HLO_TRANSPOSE:
    case HLO_RESHAPE:
        return 1;
    case HLO_BROADCAST: /* by dimensions of one element */
        return sd_shape_count(in->shape) == sd_shape_count(in->arg[0]->shape);
    case HLO_CONVERT: /* nothing is rounded */
        return pass_is_narrow(pass_dtype(in->arg[0])) && sd_is_float(t) &&
               !pass_is_narrow(t);
    default:
        return 0;
    }
}

/* The atoms along which the operands are still to be summed, if the result can
 * be summed instead: sum(x) + sum(y) is sum(x + y), one all-reduce and not
 * two. Operands that others use, too, would have to be summed anyway. */
static uint32_t sums_of(const spmd_flow *f, const hlo_inst *in, uint32_t used)
{
    const hlo_sharding *s = NULL;
    uint32_t sums = 0;

    for (int k = 0; k < linear_in(in); k++) {
        s = spmd_now(f, in->arg[k]);
        if (!s || s->partial != HLO_SUM_OF || in->arg[k]->nuse > 1 ||
            pass_dtype(in) == SD_PRED || (k && s->unreduced != sums))
            return 0;
        sums = s->unreduced;
    }
    return sums & used ? 0 : sums;
}

/* The operands that are had in parts: `first`, if that is one, then the largest
 * first, which costs most to move. */
static int by_size(const spmd_flow *f, const hlo_inst *in, int first, int *at)
{
    uint64_t done = 0;
    int n = 0;

    for (;;) {
        int best = n ? -1 : first;

        for (int k = 0; k < in->narg && (n || first < 0); k++)
            if (!(done >> k & 1) && spmd_now(f, in->arg[k]) &&
                (best < 0 || sd_shape_bytes(in->arg[k]->shape) >
                                 sd_shape_bytes(in->arg[best]->shape)))
                best = k;
        if (best < 0)
            return n;
        done |= UINT64_C(1) << best;
        at[n++] = best;
    }
}

/* How a candidate cuts the operation; nothing is made yet. */
static spmd_choice plan_of_cut(const spmd_flow *f, const hlo_inst *in,
                               const spmd_rule *r, candidate how)
{
    int at[SPMD_MOST_ARGS], n = by_size(f, in, how.first, at);
    spmd_choice c = {0};

    for (int i = 0; i < n; i++)
        cut_as_operand(in, r, at[i], spmd_now(f, in->arg[at[i]]), how.ways, &c);
    for (int i = 0; i < n && (how.ways & SPREADS); i++)
        cut_elsewhere(in, r, at[i], spmd_now(f, in->arg[at[i]]), how.ways, &c);
    c.sums = sums_of(f, in, c.used);
    cut_as_wanted(f, in, r, &c);
    return c;
}

/* Do both operands of a product lie along some of the same atoms? */
static bool operands_share_atoms(const spmd_flow *f, const hlo_inst *in)
{
    const hlo_sharding *a, *b;

    if (in->op != HLO_DOT)
        return false;
    a = spmd_now(f, in->arg[0]);
    b = spmd_now(f, in->arg[1]);
    return a && b && a->grid == b->grid &&
           hlo_sharding_used(a) & hlo_sharding_used(b);
}

/* About how many bytes operands and result move. */
static double bytes_of(const spmd_flow *f, const hlo_inst *in,
                       const spmd_rule *r, const spmd_choice *c)
{
    const hlo_sharding *s, *to = spmd_wanted(f, in);
    double bytes = 0;

    if (!c->like)
        return HUGE_VAL;
    for (int k = 0; k < in->narg; k++)
        bytes += spmd_move_bytes(in->arg[k]->shape, spmd_now(f, in->arg[k]),
                                 spmd_operand_by(f, in, r, c, k));
    if (!sd_shape_is_array(in->shape))
        return bytes;
    s = spmd_factors_sharding(f, c, r->result, in->shape->rank);
    return bytes +
           spmd_move_bytes(in->shape, spmd_waiting(f, r, c, s), to ? to : s);
}

/* Is some operand cut by atoms along which it will be read whole? */
static bool is_gathered(const spmd_flow *f, const hlo_inst *in,
                        const spmd_choice *c)
{
    for (int k = 0; k < in->narg; k++) {
        const hlo_sharding *s = spmd_now(f, in->arg[k]);

        if (s && hlo_sharding_used(s) & ~c->used)
            return true;
    }
    return false;
}

/* Operations that only move elements are not worth moving for: they do not
 * spread. */
static unsigned ways_of(const hlo_inst *in, const spmd_rule *r)
{
    unsigned ways = in->op == HLO_RESHAPE || in->op == HLO_TRANSPOSE ||
                            in->op == HLO_BROADCAST
                        ? 0
                        : SPREADS;

    for (int i = 0; i < r->n; i++)
        if (r->factor[i].picked)
            ways |= PICKS;
    return ways;
}

enum { MOST_CANDIDATES = 5 };

/* The candidates, in the order in which they are tried; gives how many. */
static int candidates_of(const spmd_flow *f, const hlo_inst *in,
                         const spmd_rule *r, candidate *out)
{
    unsigned ways = ways_of(in, r);
    int n = 0;

    out[n++] = (candidate){LARGEST, 0};
    if (operands_share_atoms(f, in))
        out[n++] = (candidate){sd_shape_bytes(in->arg[0]->shape) >=
                                   sd_shape_bytes(in->arg[1]->shape),
                               0};
    for (unsigned w = 1; w <= ways; w++)
        if (!(w & ~ways))
            out[n++] = (candidate){LARGEST, w};
    return n;
}

/* Is x, made by `how`, better than the best so far?  See the head of the file.
 */
static bool is_better(const spmd_flow *f, const hlo_inst *in,
                      const spmd_rule *r, candidate how, const spmd_choice *x,
                      const spmd_choice *best)
{
    if (!how.ways)
        return spmd_partial_along(r, x).n < spmd_partial_along(r, best).n &&
               bytes_of(f, in, r, x) < bytes_of(f, in, r, best);
    return x->used != best->used &&
           bytes_of(f, in, r, x) <= bytes_of(f, in, r, best);
}

bool spmd_choose(const spmd_flow *f, const hlo_inst *in, const spmd_rule *r,
                 spmd_choice *c)
{
    candidate list[MOST_CANDIDATES];
    int n = candidates_of(f, in, r, list);

    *c = plan_of_cut(f, in, r, list[0]);
    for (int i = 1; i < n; i++) {
        spmd_choice x;

        if (list[i].ways && !is_gathered(f, in, c))
            break;
        x = plan_of_cut(f, in, r, list[i]);
        if (is_better(f, in, r, list[i], &x, c))
            *c = x;
    }
    return c->used || c->sums;
}

const hlo_sharding *spmd_factors_sharding(const spmd_flow *f,
                                          const spmd_choice *c,
                                          const int8_t *factor, int rank)
{
    const hlo_sharding *s = hlo_sharding_blank(f->m, c->like, rank);

    for (int d = 0; d < rank; d++)
        if (factor[d] >= 0 && c->cut[factor[d]].n)
            s = hlo_sharding_with(f->m, s, d, c->cut[factor[d]]);
    return s;
}

spmd_special spmd_special_of(const spmd_rule *r, const spmd_choice *c, int rank)
{
    spmd_special s = {.running = -1};

    for (int d = 0; d < rank; d++) {
        const spmd_factor *f = &r->factor[SD_MAX(r->arg[0][d], 0)];

        if (r->arg[0][d] < 0 || !c->cut[r->arg[0][d]].n)
            continue;
        s.across |= (uint32_t)f->across << d;
        s.picked |= (uint32_t)f->picked << d;
        if (f->running && s.running < 0)
            s.running = d;
    }
    return s;
}

hlo_atoms spmd_partial_along(const spmd_rule *r, const spmd_choice *c)
{
    hlo_atoms along = {0};

    for (int i = 0; i < r->n; i++)
        if (r->factor[i].partial)
            hlo_atoms_add(&along, &c->cut[i]);
    return along;
}

const hlo_sharding *spmd_waiting(const spmd_flow *f, const spmd_rule *r,
                                 const spmd_choice *c, const hlo_sharding *s)
{
    hlo_atoms along = spmd_partial_along(r, c);
    uint32_t mask = hlo_atoms_mask(&along);

    if (c->sums)
        return hlo_sharding_unreduced(f->m, s, c->sums, HLO_SUM_OF);
    if (!mask)
        return s;
    if (r->combine == HLO_ADD)
        return hlo_sharding_unreduced(f->m, s, mask, HLO_SUM_OF);
    if (r->combine == HLO_MAXIMUM)
        return hlo_sharding_unreduced(f->m, s, mask, HLO_MAX_OF);
    if (r->combine == HLO_MINIMUM)
        return hlo_sharding_unreduced(f->m, s, mask, HLO_MIN_OF);
    return s;
}

const hlo_sharding *spmd_result_by(const spmd_flow *f, const hlo_inst *in,
                                   const spmd_rule *r, const spmd_choice *c,
                                   const hlo_sharding *s)
{
    const hlo_sharding *to = spmd_waiting(f, r, c, s), *w = spmd_wanted(f, in);

    return w && to->unreduced && spmd_is_even(in->shape, to) &&
                   spmd_scatters(to, w)
               ? w
               : to;
}

/* How operand k is taken: sums that wait stay so, and what a scatter adds to is
 * one participant's alone to bring. */
const hlo_sharding *spmd_operand_by(const spmd_flow *f, const hlo_inst *in,
                                    const spmd_rule *r, const spmd_choice *c,
                                    int k)
{
    const hlo_sharding *s =
        spmd_factors_sharding(f, c, r->arg[k], in->arg[k]->shape->rank);
    hlo_atoms along = spmd_partial_along(r, c);

    if (c->sums && k < linear_in(in))
        return hlo_sharding_unreduced(f->m, s, c->sums, HLO_SUM_OF);
    if (in->op == HLO_SCATTER && k == 0 && along.n && r->combine == HLO_ADD)
        return hlo_sharding_unreduced(f->m, s, hlo_atoms_mask(&along),
                                      HLO_SUM_OF);
    return s;
}

const sd_shape *spmd_results_of(const spmd_flow *f, const hlo_inst *in,
                                const spmd_rule *r, const spmd_choice *c,
                                const hlo_sharding **s)
{
    int n = hlo_nresult(in);
    const sd_shape **local = sd_arena_array(f->a, const sd_shape *, n + 1);

    for (int i = 0; i < n; i++) {
        const sd_shape *whole = hlo_result_shape(in, i);

        s[i] = spmd_factors_sharding(f, c, r->result, whole->rank);
        local[i] = spmd_part_shape(f->m, whole, s[i]);
    }
    return sd_shape_of_results(f->m->arena, in->shape, local);
}
