/* Shardings as data, and what is asked of them.  What goes to others goes by
 * tiles, as XLA and PJRT have it: tile dimensions are products of atoms, and
 * the participants in their order are an iota of merged atoms, transposed. */
#include "hlo_sharding_priv.h"

#include <stdio.h>

/* ---- shardings ---- */

hlo_sharding *hlo_sharding_draft(hlo_module *m, int rank)
{
    hlo_sharding *s = sd_arena_alloc(
        m->arena, sizeof *s + sizeof *s->dim * (size_t)(rank + 1));

    s->rank = rank;
    s->single = -1;
    s->grid = m->mesh->grid;
    return s;
}

/* By its text, which says all but the grid. */
const hlo_sharding *hlo_sharding_keep(hlo_module *m, hlo_sharding *s)
{
    sd_buf key = {.arena = m->arena};
    const hlo_sharding *known;

    hlo_sharding_text(&key, s);
    sd_buf_add(&key, &s->grid, sizeof s->grid);
    if ((known = sd_names_get(m->mesh->known, key.at, key.len))) {
        sd_buf_finish(&key);
        return known;
    }
    sd_names_set(m->mesh->known, key.at, key.len, s);
    return s;
}

const hlo_sharding *hlo_sharding_replicated(hlo_module *m, int rank)
{
    hlo_meshes_need(m);
    return hlo_sharding_keep(m, hlo_sharding_draft(m, rank));
}

const hlo_sharding *hlo_sharding_blank(hlo_module *m, const hlo_sharding *like,
                                       int rank)
{
    hlo_sharding *s = hlo_sharding_draft(m, rank);

    s->grid = like->grid;
    s->mesh = like->mesh;
    return hlo_sharding_keep(m, s);
}

const hlo_sharding *hlo_sharding_with(hlo_module *m, const hlo_sharding *s,
                                      int d, hlo_atoms cut)
{
    hlo_sharding *to = sd_arena_copy(
        m->arena, s, sizeof *s + sizeof *s->dim * (size_t)s->rank);

    to->dim[d].cut = cut;
    return hlo_sharding_keep(m, to);
}

const hlo_sharding *hlo_sharding_unreduced(hlo_module *m, const hlo_sharding *s,
                                           uint32_t atoms, hlo_partial partial)
{
    hlo_sharding *to = sd_arena_copy(
        m->arena, s, sizeof *s + sizeof *s->dim * (size_t)s->rank);

    to->unreduced = atoms;
    to->partial = atoms ? partial : HLO_SUM_OF;
    return hlo_sharding_keep(m, to);
}

uint32_t hlo_sharding_used(const hlo_sharding *s)
{
    uint32_t m = 0;

    for (int i = 0; i < s->rank; i++)
        m |= hlo_atoms_mask(&s->dim[i].cut);
    return m;
}

bool hlo_sharding_is_whole(const hlo_sharding *s)
{
    return s->single < 0 && !s->unreduced && !s->manual &&
           !hlo_sharding_used(s);
}

/* ---- text by names ---- */

static void put_part(sd_buf *b, const hlo_grid *g, const hlo_mesh_axis *x,
                     int first, int n)
{
    int64_t before = 1, size = 1;

    for (int i = x->first; i < first; i++)
        before *= g->size[i];
    for (int i = first; i < first + n; i++)
        size *= g->size[i];
    sd_buf_fmt(b, "'%s'", x->name);
    if (size != x->size)
        sd_buf_fmt(b, ":(%" PRId64 ")%" PRId64, before, size);
}

/* As few names as there are: neighbours of one axis are one part of it. */
static void put_atoms(sd_buf *b, const hlo_sharding *s, const hlo_atoms *a)
{
    for (int i = 0, n; i < a->n; i += n) {
        const hlo_mesh_axis *x = NULL;
        hlo_mesh_axis one = {"", 0, a->at[i], 1};
        char name[16];

        for (int k = 0; s->mesh && k < s->mesh->naxis; k++)
            if (a->at[i] >= s->mesh->axis[k].first &&
                a->at[i] < s->mesh->axis[k].first + s->mesh->axis[k].n)
                x = &s->mesh->axis[k];
        if (!x) { /* by tiles: an axis an atom */
            snprintf(name, sizeof name, "axis_%d", a->at[i]);
            one.name = name;
            one.size = s->grid->size[a->at[i]];
            x = &one;
        }
        for (n = 1; i + n < a->n && a->at[i + n] == a->at[i] + n &&
                    a->at[i + n] < x->first + x->n;
             n++)
            ;
        sd_buf_str(b, i ? ", " : "");
        put_part(b, s->grid, x, a->at[i], n);
    }
}

static void put_mask(sd_buf *b, const hlo_sharding *s, const char *word,
                     uint32_t mask)
{
    hlo_atoms a = hlo_grid_rest(s->grid, ~mask);

    if (!mask)
        return;
    sd_buf_fmt(b, ", %s={", word);
    put_atoms(b, s, &a);
    sd_buf_str(b, "}");
}

static void put_mesh(sd_buf *b, const hlo_sharding *s)
{
    sd_buf_str(b, "mesh[");
    if (s->mesh)
        for (int i = 0; i < s->mesh->naxis; i++)
            sd_buf_fmt(b, "%s'%s'=%" PRId64, i ? "," : "",
                       s->mesh->axis[i].name, s->mesh->axis[i].size);
    else
        for (int i = 0; i < s->grid->natom; i++)
            sd_buf_fmt(b, "%s'axis_%d'=%" PRId64, i ? "," : "", i,
                       s->grid->size[i]);
    sd_buf_str(b, "]");
    if (!s->grid->at)
        return;
    sd_buf_str(b, ", device_ids=(");
    sd_buf_ints(b, s->grid->at, s->grid->n, ",");
    sd_buf_str(b, ")");
}

void hlo_sharding_text(sd_buf *b, const hlo_sharding *s)
{
    if (s->single >= 0) {
        sd_buf_fmt(b, "{maximal_mesh[device_id=%" PRId64 "]}", s->single);
        return;
    }
    sd_buf_str(b, "{");
    put_mesh(b, s);
    sd_buf_str(b, ", [");
    for (int i = 0; i < s->rank; i++) {
        const hlo_dim_sharding *d = &s->dim[i];

        sd_buf_str(b, i ? ", {" : "{");
        put_atoms(b, s, &d->cut);
        sd_buf_str(b, !d->open ? "}" : d->cut.n ? ", ?}" : "?}");
    }
    sd_buf_str(b, "]");
    put_mask(b, s, "replicated", s->replicated);
    put_mask(b, s, "unreduced", s->unreduced);
    put_mask(b, s, "manual", s->manual);
    if (s->partial)
        sd_buf_str(b, s->partial == HLO_MAX_OF ? ", reduction=max"
                                               : ", reduction=min");
    sd_buf_str(b, "}");
}

/* ---- by tiles ---- */

/* Dimensions, then what is left, by kind: of XLA's order of kinds. */
static hlo_atoms tile_order(sd_arena *a, const hlo_sharding *s,
                            pb_sharding *out)
{
    uint32_t used = hlo_sharding_used(s), special = s->unreduced | s->manual;
    const struct {
        int64_t type;
        uint32_t mask;
    } rest[] = {{HLO_PB_REPLICATED, ~(used | special)},
                {HLO_PB_MANUAL, s->manual & ~used},
                {HLO_PB_UNREDUCED, s->unreduced & ~used}};
    hlo_atoms all = {0};

    for (int i = 0; i < s->rank; i++) {
        const hlo_atoms *c = &s->dim[i].cut;

        *sd_push(a, &out->tile_dims) = hlo_atoms_size(s->grid, c);
        memcpy(all.at + all.n, c->at, c->n);
        all.n = (uint8_t)(all.n + c->n);
    }
    for (size_t i = 0; i < SD_COUNTOF(rest); i++) {
        hlo_atoms c = hlo_grid_rest(s->grid, ~rest[i].mask);

        if (!c.n)
            continue;
        *sd_push(a, &out->tile_dims) = hlo_atoms_size(s->grid, &c);
        *sd_push(a, &out->last_tile_dims) = rest[i].type;
        memcpy(all.at + all.n, c.at, c.n);
        all.n = (uint8_t)(all.n + c.n);
    }
    return all;
}

/* Atoms that stay neighbours are one dimension of the iota. */
static void put_iota(sd_arena *a, const hlo_grid *g, const hlo_atoms *order,
                     pb_sharding *out)
{
    int block[HLO_MOST_ATOMS] = {0}, n = -1;

    for (int i = 0; i < g->natom; i++) { /* block: by atom, in their order */
        int k = 0;

        while (order->at[k] != i)
            k++;
        if (k == 0 || i == 0 || order->at[k - 1] != i - 1) {
            *sd_push(a, &out->iota_dims) = 1;
            n++;
        }
        block[i] = n;
        out->iota_dims.at[n] *= g->size[i];
    }
    for (int k = 0; k < order->n; k++)
        if (k == 0 || order->at[k] != order->at[k - 1] + 1)
            *sd_push(a, &out->iota_perm) = block[order->at[k]];
}

static void to_pb(sd_arena *a, const hlo_sharding *s, pb_sharding *out)
{
    hlo_atoms order;

    *out = (pb_sharding){.type = HLO_PB_TILED};
    if (s->single >= 0) {
        out->type = HLO_PB_MAXIMAL;
        *sd_push(a, &out->devices) = s->single;
        return;
    }
    order = tile_order(a, s, out);
    if (!hlo_sharding_used(s) && out->last_tile_dims.n <= 1 && !s->unreduced) {
        *out = (pb_sharding){.type =
                                 s->manual ? HLO_PB_MANUAL : HLO_PB_REPLICATED};
        return;
    }
    if (s->unreduced && s->partial != HLO_SUM_OF)
        *sd_push(a, &out->metadata) = (pb_metadata){
            .op_type = pb_str("sdy::reduction_op"),
            .op_name = pb_str(s->partial == HLO_MAX_OF ? "MAX" : "MIN")};
    if (s->grid->at)
        for (int64_t i = 0; i < s->grid->n; i++)
            *sd_push(a, &out->devices) =
                s->grid->at[hlo_grid_offset(s->grid, &order, i)];
    else
        put_iota(a, s->grid, &order, out);
    if (out->last_tile_dims.n == 1 &&
        out->last_tile_dims.at[0] == HLO_PB_REPLICATED) {
        out->replicate_last = 1;
        out->last_tile_dims.n = 0;
    }
}

void hlo_sharding_tiles(sd_buf *b, const hlo_sharding *s)
{
    sd_arena *a = sd_arena_create();
    pb_sharding p;

    to_pb(a, s, &p);
    hlo_sharding_print(b, &p);
    sd_arena_destroy(a);
}

void hlo_shardings_proto(sd_buf *b, const hlo_sharding *const *s, int n,
                         bool tuple)
{
    sd_arena *a = sd_arena_create();
    pb_sharding p = {.type = HLO_PB_TUPLE};

    if (!tuple)
        to_pb(a, s[0], &p);
    for (int i = 0; tuple && i < n; i++)
        to_pb(a, s[i], sd_push(a, &p.elem));
    pb_write(b, &pb_sharding_table, &p);
    sd_arena_destroy(a);
}

void hlo_sharding_proto(sd_buf *b, const hlo_sharding *s)
{
    hlo_shardings_proto(b, &s, 1, false);
}
