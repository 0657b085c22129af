/* Which turns it takes to make parts of an array other parts, and how much they
 * move: told from the two shardings alone.  spmd_reshard.c takes them. */
#include "spmd_moves.h"

int spmd_nshared(const hlo_sharding *s, const hlo_sharding *to, int d)
{
    const hlo_atoms *a = &s->dim[d].cut, *b = &to->dim[d].cut;
    uint32_t sums = s->unreduced & ~to->unreduced, used = hlo_sharding_used(s);
    int last = 0;

    if (hlo_atoms_common(a, b) < a->n)
        return 0;
    for (int i = a->n; i < b->n && !(used >> b->at[i] & 1); i++)
        if (sums >> b->at[i] & 1)
            last = i + 1 - a->n;
    return last;
}

bool spmd_scatters(const hlo_sharding *s, const hlo_sharding *to)
{
    bool any = false;

    if (s->grid != to->grid || s->rank != to->rank ||
        (to->unreduced && to->partial != s->partial))
        return false;
    for (int d = 0; d < s->rank; d++)
        any |= spmd_nshared(s, to, d) > 0;
    return any;
}

const hlo_sharding *spmd_common(hlo_module *m, const hlo_sharding *s,
                                const hlo_sharding *to)
{
    const hlo_sharding *both = hlo_sharding_blank(m, s, s->rank);

    for (int d = 0; to && to->grid == s->grid && d < s->rank; d++)
        both = hlo_sharding_with(
            m, both, d,
            hlo_atoms_first(&s->dim[d].cut,
                            hlo_atoms_common(&s->dim[d].cut, &to->dim[d].cut)));
    return both;
}

/* The longest end of x that y begins with. */
static hlo_atoms handed_on(const hlo_atoms *x, const hlo_atoms *y)
{
    for (int i = 0; i < x->n; i++) {
        hlo_atoms end = hlo_atoms_from(x, i);

        if (hlo_atoms_common(&end, y) == end.n)
            return end;
    }
    return (hlo_atoms){0};
}

spmd_rest spmd_rest_of(const hlo_sharding *s, const hlo_sharding *to)
{
    spmd_rest t = {.rank = s->rank};
    uint32_t sums = to && to->partial == HLO_SUM_OF ? to->unreduced : 0;

    for (int d = 0; d < s->rank; d++) {
        hlo_atoms own = s->dim[d].cut;

        if (to && to->grid == s->grid) {
            const hlo_atoms *b = &to->dim[d].cut;
            int n = hlo_atoms_common(&own, b);

            t.slice[d] = hlo_atoms_from(b, n + spmd_nshared(s, to, d));
            own = hlo_atoms_from(&own, n);
        }
        if (hlo_atoms_mask(&own) & ~sums)
            t.gather[d] = own;
        else
            t.spread[d] = own;
        t.spreads |= t.spread[d].n > 0;
    }
    return t;
}

/* A slice before what else is to be done, which is of less then. */
static bool slices(spmd_rest *t, spmd_move_turn *out)
{
    uint32_t used = 0;

    for (int i = 0; i < t->rank; i++)
        used |= hlo_atoms_mask(&t->gather[i]);
    for (int j = 0; j < t->rank; j++) {
        hlo_atoms *a = &t->slice[j];
        int n = 0;

        while (n < a->n && !(used >> a->at[n] & 1))
            n++;
        if (!n || t->gather[j].n)
            continue;
        *out = (spmd_move_turn){SPMD_NOWHERE, j, hlo_atoms_first(a, n)};
        *a = hlo_atoms_from(a, n);
        return true;
    }
    return false;
}

bool spmd_next_turn(const hlo_grid *g, spmd_rest *t, spmd_move_turn *out)
{
    int64_t least = INT64_MAX;

    if (t->rank == SD_MAX_RANK || t->spreads)
        return false;
    if (slices(t, out))
        return true;
    for (int i = 0; i < t->rank; i++)
        for (int j = 0; j < t->rank; j++) {
            hlo_atoms along = handed_on(&t->gather[i], &t->slice[j]);
            int64_t n = hlo_atoms_size(g, &t->gather[j]);

            if (i == j || !along.n || n >= least)
                continue;
            least = n;
            *out = (spmd_move_turn){i, j, along};
        }
    if (least == INT64_MAX)
        return false;
    if (t->gather[out->to].n) {
        *out = (spmd_move_turn){out->to, out->to, t->gather[out->to]};
        t->gather[out->to].n = 0;
        return true;
    }
    t->gather[out->from].n = (uint8_t)(t->gather[out->from].n - out->along.n);
    t->slice[out->to] = hlo_atoms_from(&t->slice[out->to], out->along.n);
    return true;
}

bool spmd_is_permuted(const hlo_sharding *s, const hlo_sharding *to)
{
    bool same = true;

    if (!to || to->grid != s->grid || to->unreduced || spmd_scatters(s, to))
        return false;
    for (int d = 0; d < s->rank; d++) {
        const hlo_atoms *a = &s->dim[d].cut, *b = &to->dim[d].cut;

        same &= hlo_atoms_common(a, b) == a->n;
        if (hlo_atoms_size(s->grid, a) != hlo_atoms_size(s->grid, b))
            return false;
    }
    return !same;
}

double spmd_move_bytes(const sd_shape *whole, const hlo_sharding *s,
                       const hlo_sharding *to)
{
    double part, bytes = 0;
    int64_t had = 1, more = 1;
    spmd_rest t;

    if (!s || !sd_shape_is_array(whole))
        return 0;
    for (int d = 0; d < s->rank; d++)
        had *= hlo_atoms_size(s->grid, &s->dim[d].cut);
    part = (double)sd_shape_bytes(whole) / (double)had;
    if (s->unreduced & ~(to ? to->unreduced : 0))
        bytes += to && spmd_scatters(s, to) ? part : 2 * part;
    if (spmd_is_permuted(s, to))
        return bytes + part;
    t = spmd_rest_of(s, to);
    for (spmd_move_turn now; spmd_next_turn(s->grid, &t, &now);) {
        double n = (double)hlo_atoms_size(s->grid, &now.along);

        part *= now.from == SPMD_NOWHERE ? 1 / n : now.from == now.to ? n : 1;
        bytes += now.from == SPMD_NOWHERE ? 0 : part;
    }
    for (int d = 0; d < s->rank; d++)
        more *= hlo_atoms_size(s->grid, &t.gather[d]);
    return more > 1 ? bytes + part * (double)more : bytes;
}
