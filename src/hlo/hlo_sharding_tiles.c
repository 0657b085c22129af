/* Shardings that XLA says by tiles, on a grid. */
#include "hlo_sharding_priv.h"

/* Ends of both the iota's dimensions, as they are transposed, and the tiles:
 * between two of them lies an axis of the grid. */
static bool tile_grid(hlo_module *m, const pb_sharding *p, hlo_sharding *s,
                      hlo_atoms *order)
{
    hlo_cuts c = {.at = {1}, .n = 1};
    int64_t end = 1, axis[HLO_MOST_ATOMS + 2], size[HLO_MOST_ATOMS + 2];
    int first[HLO_MOST_ATOMS + 2], n = 0;

    for (int i = 0; i < p->iota_perm.n; i++)
        if (!hlo_cut_at(&c, end *= p->iota_dims.at[p->iota_perm.at[i]]))
            return false;
    end = 1;
    for (int i = 0; i < p->tile_dims.n; i++)
        if (!hlo_cut_at(&c, end *= p->tile_dims.at[i]))
            return false;
    for (int i = 1; i < c.n; i++)
        axis[i - 1] = c.at[i] / c.at[i - 1];
    /* back into the iota's order */
    for (int d = 0; d < p->iota_dims.n; d++) {
        int64_t from = 1, to;
        int k = 0, part = 0;

        while (p->iota_perm.at[k] != d)
            from *= p->iota_dims.at[p->iota_perm.at[k++]];
        to = from * p->iota_dims.at[d];
        while (c.at[part] < from)
            part++;
        for (; c.at[part] < to; part++) {
            first[part] = n;
            size[n++] = axis[part];
        }
    }
    s->grid = hlo_grid_of(m, n, size, NULL);
    for (int i = 0; i + 1 < c.n; i++) {
        int64_t at = 1, left = axis[i];
        int k = 0;

        for (int j = 0; j < first[i]; j++)
            at *= size[j];
        for (int64_t seen = 1; seen < at; k++)
            seen *= s->grid->size[k];
        for (; left > 1; left /= s->grid->size[k++])
            order->at[order->n++] = (uint8_t)k;
    }
    return true;
}

bool hlo_is_order(sd_arena *a, const int64_t *at, int64_t n)
{
    bool *seen = sd_arena_array(a, bool, n);

    for (int64_t i = 0; i < n; i++) {
        if (at[i] < 0 || at[i] >= n || seen[at[i]])
            return false;
        seen[at[i]] = true;
    }
    return true;
}

static bool list_grid(hlo_module *m, const pb_sharding *p, hlo_sharding *s,
                      hlo_atoms *order)
{
    int64_t n = 1;
    const int64_t *list = p->devices.at;

    for (int i = 0; i < p->tile_dims.n; i++)
        if (!sd_mul_i64(n, p->tile_dims.at[i], &n) || n > HLO_MOST_PLACES)
            return false;
    if (p->iota_dims.n) /* tiles that end inside of its dimensions */
        list = hlo_iota_groups(m->arena, 1, n, pb_dims(p->iota_dims),
                               pb_dims(p->iota_perm));
    else if (n != p->devices.n)
        return false;
    if (!list || !hlo_is_order(m->arena, list, n))
        return false;
    s->grid = hlo_grid_of(m, p->tile_dims.n, p->tile_dims.at, list);
    for (int i = 0; i < s->grid->natom; i++)
        order->at[order->n++] = (uint8_t)i;
    return true;
}

static bool sane_tiles(const hlo_module *m, const pb_sharding *p, int rank)
{
    int64_t n = 1, places = 1;
    int more = p->replicate_last ? 1 : p->last_tile_dims.n;

    if (p->iota_dims.n >= HLO_MOST_ATOMS || p->iota_perm.n != p->iota_dims.n ||
        !hlo_dims_fit(pb_dims(p->iota_perm), p->iota_dims.n))
        return false;
    for (int i = 0; i < p->tile_dims.n; i++)
        if (p->tile_dims.at[i] < 1 || !sd_mul_i64(n, p->tile_dims.at[i], &n))
            return false;
    for (int i = 0; i < p->iota_dims.n; i++)
        if (p->iota_dims.at[i] < 1 ||
            !sd_mul_i64(places, p->iota_dims.at[i], &places))
            return false;
    return p->tile_dims.n == rank + more && n == hlo_participants(m) &&
           n <= HLO_MOST_PLACES && (!p->iota_dims.n || places == n);
}

const hlo_sharding *hlo_sharding_of_tiles(hlo_module *m, const pb_sharding *p,
                                          int rank)
{
    hlo_sharding *s = hlo_sharding_draft(m, rank);
    uint32_t all = (uint32_t)((UINT64_C(1) << s->grid->natom) - 1);
    hlo_atoms order = {0};
    int k = 0;

    if (p->type == HLO_PB_MAXIMAL) {
        s->single = p->devices.n ? p->devices.at[0] : 0;
        if (s->single < 0)
            return NULL;
    }
    if (p->type == HLO_PB_MANUAL)
        s->manual = all;
    if (p->type == HLO_PB_UNREDUCED)
        s->unreduced = all;
    if (p->type != HLO_PB_TILED)
        return hlo_sharding_keep(m, s);
    if (!sane_tiles(m, p, rank) ||
        (!(p->iota_dims.n && tile_grid(m, p, s, &order)) &&
         !list_grid(m, p, s, &order)))
        return NULL;
    for (int i = 0; i < p->tile_dims.n; i++) {
        int64_t n = 1;
        hlo_atoms cut = {0};
        int64_t type =
            i < rank || p->replicate_last ? 0 : p->last_tile_dims.at[i - rank];

        for (; n < p->tile_dims.at[i]; n *= s->grid->size[order.at[k++]])
            cut.at[cut.n++] = order.at[k];
        if (i < rank)
            s->dim[i].cut = cut;
        else if (type == HLO_PB_MANUAL)
            s->manual |= hlo_atoms_mask(&cut);
        else if (type == HLO_PB_UNREDUCED)
            s->unreduced |= hlo_atoms_mask(&cut);
    }
    return hlo_sharding_keep(m, s);
}
