/* A module's meshes, and the grid which those share that fit together. */
#include "hlo_sharding_priv.h"

static bool same_mesh(const hlo_mesh *x, const hlo_mesh *y)
{
    bool same =
        x->naxis == y->naxis && x->single == y->single && !x->ids == !y->ids;
    int64_t n = 1;

    for (int i = 0; same && i < x->naxis; i++) {
        same = x->axis[i].size == y->axis[i].size &&
               strcmp(x->axis[i].name, y->axis[i].name) == 0;
        n *= x->axis[i].size;
    }
    return same &&
           (!x->ids || !memcmp(x->ids, y->ids, sizeof(int64_t) * (size_t)n));
}

/* The module's mesh that is the same as x, or NULL. */
static hlo_mesh *known_mesh(const hlo_meshes *all, const hlo_mesh *x)
{
    for (int i = 0; i < all->n; i++)
        if (same_mesh(&all->at[i], x))
            return &all->at[i];
    return NULL;
}

void hlo_mesh_add(hlo_module *m, sd_bytes name, const hlo_mesh *x)
{
    hlo_meshes *all = m->mesh;
    hlo_mesh *to = known_mesh(all, x);
    const char *s = sd_arena_str(m->arena, (const char *)name.at, name.len);

    if (!to) {
        to = &all->at[all->n++];
        *to = *x;
        to->name = s;
    }
    sd_names_set(all->by_name, s, name.len, to);
}

bool hlo_cut_at(hlo_cuts *c, int64_t v)
{
    int i = 0;

    while (i < c->n && c->at[i] < v)
        i++;
    if (i < c->n && c->at[i] == v)
        return true;
    if (c->n == (int)SD_COUNTOF(c->at) || v % c->at[i - 1] ||
        (i < c->n && c->at[i] % v))
        return false;
    memmove(&c->at[i + 1], &c->at[i], sizeof *c->at * (size_t)(c->n - i));
    c->at[i] = v;
    c->n++;
    return true;
}

int64_t hlo_mesh_places(const hlo_mesh *x)
{
    int64_t n = 1;

    for (int i = 0; i < x->naxis; i++)
        n *= x->axis[i].size;
    return n;
}

static bool share(hlo_cuts *c, const hlo_mesh *x)
{
    hlo_cuts now = *c;
    int64_t end = 1;

    for (int i = 0; i < x->naxis; i++)
        if (!hlo_cut_at(&now, end *= x->axis[i].size))
            return false;
    *c = now;
    return true;
}

/* Which atoms of its grid each axis is. */
static void place_axes(hlo_mesh *x)
{
    int k = 0;

    for (int i = 0; i < x->naxis; i++) {
        int64_t n = 1;

        x->axis[i].first = (uint8_t)k;
        while (n < x->axis[i].size)
            n *= x->grid->size[k++];
        x->axis[i].n = (uint8_t)(k - x->axis[i].first);
    }
}

static const hlo_grid *own_grid(hlo_module *m, const hlo_mesh *x)
{
    int64_t *size = sd_arena_array(m->arena, int64_t, x->naxis + 1);

    for (int i = 0; i < x->naxis; i++)
        size[i] = x->axis[i].size;
    return hlo_grid_of(m, x->naxis, size, x->ids);
}

/* A mesh that does not fit, or has an order of its own, has its own grid. */
void hlo_meshes_place(hlo_module *m)
{
    hlo_meshes *all = m->mesh;
    int64_t n = hlo_participants(m), axis[HLO_MOST_ATOMS + 2];
    bool own[HLO_MOST_MESHES] = {false};
    hlo_cuts c = {.at = {1, n}, .n = n > 1 ? 2 : 1};

    for (int i = 0; i < all->n; i++)
        own[i] =
            all->at[i].naxis &&
            (all->at[i].ids ||
             (hlo_mesh_places(&all->at[i]) != 1 &&
              (hlo_mesh_places(&all->at[i]) != n || !share(&c, &all->at[i]))));
    for (int i = 1; i < c.n; i++)
        axis[i - 1] = c.at[i] / c.at[i - 1];
    all->grid = hlo_grid_of(m, c.n - 1, axis, NULL);
    for (int i = 0; i < all->n; i++) {
        all->at[i].grid = own[i] ? own_grid(m, &all->at[i]) : all->grid;
        place_axes(&all->at[i]);
    }
}

void hlo_meshes_open(hlo_module *m)
{
    m->mesh = sd_arena_new(m->arena, hlo_meshes);
    m->mesh->at = sd_arena_array(m->arena, hlo_mesh, HLO_MOST_MESHES);
    m->mesh->by_name = sd_names_create(m->arena);
    m->mesh->known = sd_names_create(m->arena);
}

void hlo_meshes_need(hlo_module *m)
{
    if (m->mesh)
        return;
    hlo_meshes_open(m);
    hlo_meshes_place(m);
}

const hlo_mesh *hlo_mesh_find(hlo_module *m, const char *name, size_t len)
{
    return m->mesh ? sd_names_get(m->mesh->by_name, name, len) : NULL;
}

const hlo_mesh *hlo_mesh_join(hlo_module *m, const hlo_mesh *x)
{
    hlo_mesh *to = known_mesh(m->mesh, x);

    if (to)
        return to;
    to = sd_arena_copy(m->arena, x, sizeof *x);
    to->grid = x->naxis ? own_grid(m, x) : m->mesh->grid;
    place_axes(to);
    return to;
}
