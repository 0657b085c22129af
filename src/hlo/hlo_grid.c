/* Grids of participants, and lists of their atoms; see hlo_grid.h. */
#include "hlo_sharding_priv.h"

static void put_primes(hlo_grid *g, int64_t n)
{
    for (int64_t p = 2; n > 1; p++)
        while (n % p == 0) {
            g->size[g->natom++] = p;
            n /= p;
            if (g->natom == HLO_MOST_ATOMS)
                return;
        }
}

/* Of participants that stand as `at` says. */
static void find_places(hlo_module *m, hlo_grid *g)
{
    int64_t n = hlo_participants(m), *to = sd_arena_array(m->arena, int64_t, n);

    for (int64_t i = 0; i < n; i++)
        to[i] = -1;
    for (int64_t i = g->n - 1; i >= 0; i--)
        if (g->at[i] >= 0 && g->at[i] < n)
            to[g->at[i]] = i;
    g->place = to;
    g->nplace = n;
}

const hlo_grid *hlo_grid_of(hlo_module *m, int n, const int64_t *axis,
                            const int64_t *at)
{
    hlo_grid g = {.n = 1}, *keep;
    const hlo_grid *known;
    sd_buf key = {.arena = m->arena};
    int64_t stride = 1;

    for (int i = 0; i < n; i++)
        put_primes(&g, axis[i]);
    for (int i = g.natom - 1; i >= 0; i--) {
        g.stride[i] = stride;
        stride *= g.size[i];
    }
    g.n = stride;
    for (int64_t i = 0; at && i < g.n; i++)
        if (at[i] != i)
            g.at = at;
    sd_buf_add(&key, g.size, sizeof g.size);
    if (g.at)
        sd_buf_add(&key, g.at, sizeof *at * (size_t)g.n);
    if ((known = sd_names_get(m->mesh->known, key.at, key.len))) {
        sd_buf_finish(&key);
        return known;
    }
    if (g.at)
        find_places(m, &g);
    keep = sd_arena_copy(m->arena, &g, sizeof g);
    sd_names_set(m->mesh->known, key.at, key.len, keep);
    return keep;
}

int64_t hlo_grid_index(const hlo_grid *g, const hlo_atoms *a, int64_t p)
{
    int64_t place = p, at = 0;

    if (g->place)
        place = p >= 0 && p < g->nplace ? g->place[p] : -1;
    if (place < 0 || place >= g->n)
        return -1;
    for (int i = 0; i < a->n; i++) {
        int k = a->at[i];

        at = at * g->size[k] + place / g->stride[k] % g->size[k];
    }
    return at;
}

int64_t hlo_grid_offset(const hlo_grid *g, const hlo_atoms *a, int64_t i)
{
    int64_t at = 0;

    for (int k = a->n - 1; k >= 0; k--) {
        int64_t size = g->size[a->at[k]];

        at += i % size * g->stride[a->at[k]];
        i /= size;
    }
    return at;
}

hlo_atoms hlo_grid_rest(const hlo_grid *g, uint32_t used)
{
    hlo_atoms rest = {0};

    for (int i = 0; i < g->natom; i++)
        if (!(used >> i & 1))
            rest.at[rest.n++] = (uint8_t)i;
    return rest;
}

int64_t hlo_atoms_size(const hlo_grid *g, const hlo_atoms *a)
{
    int64_t n = 1;

    for (int i = 0; i < a->n; i++)
        n *= g->size[a->at[i]];
    return n;
}

uint32_t hlo_atoms_mask(const hlo_atoms *a)
{
    uint32_t m = 0;

    for (int i = 0; i < a->n; i++)
        m |= UINT32_C(1) << a->at[i];
    return m;
}

hlo_atoms hlo_atoms_in(const hlo_atoms *a, uint32_t mask)
{
    hlo_atoms to = {0};

    for (int i = 0; i < a->n; i++)
        if (mask >> a->at[i] & 1)
            to.at[to.n++] = a->at[i];
    return to;
}

hlo_atoms hlo_atoms_first(const hlo_atoms *a, int n)
{
    hlo_atoms to = *a;

    to.n = (uint8_t)n;
    return to;
}

hlo_atoms hlo_atoms_from(const hlo_atoms *a, int n)
{
    hlo_atoms to = {0};

    for (int i = n; i < a->n; i++)
        to.at[to.n++] = a->at[i];
    return to;
}

void hlo_atoms_add(hlo_atoms *a, const hlo_atoms *b)
{
    for (int i = 0; i < b->n; i++)
        a->at[a->n++] = b->at[i];
}

int hlo_atoms_common(const hlo_atoms *a, const hlo_atoms *b)
{
    int n = 0;

    while (n < a->n && n < b->n && a->at[n] == b->at[n])
        n++;
    return n;
}

const int64_t *hlo_grid_groups(sd_arena *a, const hlo_grid *g,
                               const hlo_atoms *along, int64_t *n,
                               int64_t *size)
{
    hlo_atoms rest = hlo_grid_rest(g, hlo_atoms_mask(along));
    int64_t *to = sd_arena_array(a, int64_t, g->n);

    *size = hlo_atoms_size(g, along);
    *n = g->n / *size;
    for (int64_t i = 0; i < *n; i++)
        for (int64_t k = 0; k < *size; k++) {
            int64_t place =
                hlo_grid_offset(g, &rest, i) + hlo_grid_offset(g, along, k);

            to[i * *size + k] = g->at ? g->at[place] : place;
        }
    return to;
}
