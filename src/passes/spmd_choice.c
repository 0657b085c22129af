/* Which atoms cut what of an operation on parts: those that its operands lie
 * by, the largest first, then those that its users want. */
#include "spmd_choice.h"
#include "spmd_halo.h"

#include <math.h>

/* Takes what operand k's part is cut by, where nothing stands against it. */
static void take(const hlo_inst *in, const spmd_rule *r, int k,
                 const hlo_sharding *s, spmd_choice *c)
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
            !spmd_fits(&r->factor[f], hlo_atoms_size(s->grid, a)) ||
            (r->factor[f].across &&
             !spmd_reaches(in, d, hlo_atoms_size(s->grid, a))))
            continue;
        c->cut[f] = *a;
        c->used |= mask;
    }
}

/* What operands leave open, as users want it. */
static void take_want(const spmd_flow *f, const hlo_inst *in,
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
            (mask & (c->used | c->sums)) ||
            r->factor[k].size % hlo_atoms_size(w->grid, a))
            continue;
        c->cut[k] = *a;
        c->used |= mask;
    }
}

/* The sum of sums is the sum of parts' sums, and what only moves them waits,
 * too: what nobody else uses meets once, behind all of it. */
static uint32_t sums_of(const spmd_flow *f, const hlo_inst *in, uint32_t used)
{
    bool adds = in->op == HLO_ADD || in->op == HLO_SUBTRACT;
    const hlo_sharding *s = NULL;
    uint32_t sums = 0;

    if (!adds && in->op != HLO_NEGATE && in->op != HLO_TRANSPOSE &&
        in->op != HLO_RESHAPE)
        return 0;
    for (int k = 0; k < in->narg; k++) {
        s = spmd_now(f, in->arg[k]);
        if (!s || s->partial != HLO_SUM_OF || in->arg[k]->nuse > 1 ||
            pass_dtype(in) == SD_PRED || (k && s->unreduced != sums))
            return 0;
        sums = s->unreduced;
    }
    return sums & used ? 0 : sums;
}

/* The largest operand first: it is the dearest to move; or `first`, if that is
 * one. */
static void choose(const spmd_flow *f, const hlo_inst *in, const spmd_rule *r,
                   int first, spmd_choice *c)
{
    uint64_t done = 0;

    *c = (spmd_choice){0};
    if (first >= 0) {
        done = UINT64_C(1) << first;
        take(in, r, first, spmd_now(f, in->arg[first]), c);
    }
    for (;;) {
        int best = -1;

        for (int k = 0; k < in->narg; k++)
            if (!(done >> k & 1) && spmd_now(f, in->arg[k]) &&
                (best < 0 || sd_shape_bytes(in->arg[k]->shape) >
                                 sd_shape_bytes(in->arg[best]->shape)))
                best = k;
        if (best < 0)
            break;
        done |= UINT64_C(1) << best;
        take(in, r, best, spmd_now(f, in->arg[best]), c);
    }
    c->sums = sums_of(f, in, c->used);
    take_want(f, in, r, c);
}

/* Do both operands of a product lie along some of the same atoms? */
static bool compete(const spmd_flow *f, const hlo_inst *in)
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
    s = spmd_factors_sharding(f, c, r->result, in->shape->rank);
    for (int k = 0; k < in->narg; k++)
        bytes += spmd_move_bytes(in->arg[k]->shape, spmd_now(f, in->arg[k]),
                                 spmd_operand_by(f, in, r, c, k));
    return bytes +
           spmd_move_bytes(in->shape, spmd_waiting(f, r, c, s), to ? to : s);
}

/* A product that need not be summed afterwards is cut by the smaller operand,
 * if that moves less. */
bool spmd_choose(const spmd_flow *f, const hlo_inst *in, const spmd_rule *r,
                 spmd_choice *c)
{
    choose(f, in, r, -1, c);
    if (compete(f, in)) {
        bool second = sd_shape_bytes(in->arg[0]->shape) >=
                      sd_shape_bytes(in->arg[1]->shape);
        spmd_choice other;

        choose(f, in, r, second, &other);
        if (spmd_partial_along(r, &other).n < spmd_partial_along(r, c).n &&
            bytes_of(f, in, r, &other) < bytes_of(f, in, r, c))
            *c = other;
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

uint32_t spmd_across(const spmd_rule *r, const spmd_choice *c, int rank)
{
    uint32_t dims = 0;

    for (int d = 0; d < rank; d++) {
        int f = r->arg[0][d];

        if (f >= 0 && r->factor[f].across && c->cut[f].n)
            dims |= UINT32_C(1) << d;
    }
    return dims;
}

hlo_atoms spmd_partial_along(const spmd_rule *r, const spmd_choice *c)
{
    hlo_atoms along = {0};

    for (int i = 0; i < r->n; i++)
        for (int k = 0; r->factor[i].partial && k < c->cut[i].n; k++)
            along.at[along.n++] = c->cut[i].at[k];
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

    if (c->sums)
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
    int n = spmd_nresult(in);
    const sd_shape **local = sd_arena_array(f->a, const sd_shape *, n + 1);

    for (int i = 0; i < n; i++) {
        const sd_shape *whole = spmd_result(in, i);

        s[i] = spmd_factors_sharding(f, c, r->result, whole->rank);
        local[i] = spmd_part_shape(f->m, whole, s[i]);
    }
    return in->shape->dtype == SD_TUPLE ? sd_shape_tuple(f->m->arena, n, local)
                                        : local[0];
}
