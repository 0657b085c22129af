/* Meshes and shardings from text: Shardy's, whose names stand in ", and XLA's
 * by names, which stand in '.  What is by tiles is read by hlo_note.c and put
 * on a grid by hlo_sharding_tiles.c. */
#include "hlo_sharding_priv.h"

typedef struct {
    hlo_module *m;
    hlo_lexer x;
} reader;

static reader reader_of(hlo_module *m, const char *text)
{
    return (reader){m, hlo_lexer_of(m->arena, text, strlen(text))};
}

static void sharding_fail(reader *r, const char *expected)
{
    hlo_fail(&r->x, expected);
}

static sd_status sharding_misfit(const reader *r, const char *expected)
{
    return sd_error(SD_INVALID,
                    "sharding \"%.200s\": %s should be at \"%.24s\"", r->x.base,
                    expected, r->x.bad_at);
}

static sd_status sharding_status(const reader *r)
{
    return r->x.bad ? sharding_misfit(r, r->x.bad) : NULL;
}

static bool accept(reader *r, const char *s)
{
    return hlo_accept(&r->x, s);
}

static void expect(reader *r, const char *s)
{
    hlo_expect(&r->x, s);
}

static int64_t take_count(reader *r)
{
    int64_t v = hlo_take_int(&r->x);

    if (v < 0)
        sharding_fail(r, "a number from 0 on");
    return v;
}

/* In either kind of quotes; after @ also without. */
static sd_bytes take_name(reader *r)
{
    hlo_lexer *x = &r->x;
    hlo_word w;

    hlo_skip_space(x);
    if (x->at < x->end && (*x->at == '"' || *x->at == '\'')) {
        const char *from = x->at + 1;
        const char *to = memchr(from, *x->at, (size_t)(x->end - from));

        if (to)
            x->at = to + 1;
        else
            sharding_fail(r, "the end of a name");
        return (sd_bytes){(const uint8_t *)from, to ? (size_t)(to - from) : 0};
    }
    w = hlo_take_name(x);
    if (!w.len)
        sharding_fail(r, "a name");
    return (sd_bytes){(const uint8_t *)w.at, w.len};
}

/* ---- meshes ---- */

/* ["x"=4, "y"=2] */
static void take_axes(reader *r, hlo_mesh *x)
{
    sd_vec(hlo_mesh_axis) axis = {0};
    int64_t n = 1;

    *x = (hlo_mesh){.single = -1};
    expect(r, "[");
    while (!r->x.bad && !accept(r, "]")) {
        sd_bytes name = take_name(r);
        hlo_mesh_axis *a = sd_push(r->m->arena, &axis);

        expect(r, "=");
        *a = (hlo_mesh_axis){
            .name = sd_arena_str(r->m->arena, (const char *)name.at, name.len)};
        a->size = take_count(r);
        if (!r->x.bad &&
            (a->size < 1 || !sd_mul_i64(n, a->size, &n) || n > HLO_MOST_PLACES))
            sharding_fail(r, "an axis of a mesh of at most 2^20 participants");
        accept(r, ",");
    }
    x->axis = axis.at;
    x->naxis = axis.n;
}

/* 0, 1] or the like: who stands at the mesh's places.  One without axes names
 * one participant, whichever. */
static void take_ids(reader *r, const char *end, hlo_mesh *x)
{
    sd_vec(int64_t) ids = {0};

    while (!r->x.bad && !accept(r, end)) {
        *sd_push(r->m->arena, &ids) = take_count(r);
        accept(r, ",");
    }
    if (!r->x.bad && ids.n != hlo_mesh_places(x))
        sharding_fail(r, "as many device_ids as the mesh has places");
    if (!r->x.bad && x->naxis && !hlo_is_order(r->m->arena, ids.at, ids.n))
        sharding_fail(r, "each participant once in device_ids");
    if (x->naxis)
        x->ids = ids.at;
    else if (ids.n)
        x->single = ids.at[0];
}

/* The axes, device_ids=[0, 1] */
static void take_mesh(reader *r, hlo_mesh *x)
{
    take_axes(r, x);
    if (!accept(r, ","))
        return;
    expect(r, "device_ids");
    expect(r, "=");
    expect(r, "[");
    take_ids(r, "]", x);
}

const char *hlo_attribute(sd_arena *a, const char *attributes, const char *key)
{
    pb_attributes all;

    if (!attributes || !hlo_attributes_parse(a, attributes, &all))
        return NULL;
    for (int i = 0; i < all.map.n; i++)
        if (all.map.at[i].key.len == strlen(key) &&
            !memcmp(all.map.at[i].key.at, key, strlen(key)))
            return sd_arena_str(a, (const char *)all.map.at[i].value.at,
                                all.map.at[i].value.len);
    return NULL;
}

sd_status hlo_meshes_read(hlo_module *m)
{
    const char *text =
        hlo_attribute(m->arena, m->frontend_attrs, "xla.sdy.meshes");
    reader r = reader_of(m, text ? text : "{}");

    hlo_meshes_open(m);
    expect(&r, "{");
    while (!r.x.bad && !accept(&r, "}")) {
        sd_bytes name;
        hlo_mesh x;

        accept(&r, "@");
        name = take_name(&r);
        expect(&r, "=");
        accept(&r, "#sdy.mesh");
        expect(&r, "<");
        take_mesh(&r, &x);
        expect(&r, ">");
        accept(&r, ",");
        if (!r.x.bad && m->mesh->n == HLO_MOST_MESHES)
            sharding_fail(&r, "fewer meshes");
        if (!r.x.bad)
            hlo_mesh_add(m, name, &x);
    }
    if (!r.x.bad)
        hlo_meshes_place(m);
    return sharding_status(&r);
}

/* ---- axes ---- */

static const hlo_mesh_axis *find_axis(reader *r, const hlo_mesh *mesh,
                                      sd_bytes name)
{
    if (r->x.bad)
        return NULL;
    for (int i = 0; i < mesh->naxis; i++)
        if (strlen(mesh->axis[i].name) == name.len &&
            !memcmp(mesh->axis[i].name, name.at, name.len))
            return &mesh->axis[i];
    sharding_fail(r, "an axis of the mesh");
    return NULL;
}

/* Atoms of (before)size of axis x. */
static void add_part(reader *r, const hlo_mesh *mesh, const hlo_mesh_axis *x,
                     int64_t before, int64_t size, hlo_atoms *to)
{
    int64_t at = 1, n = 1;
    int k = x->first, end = x->first + x->n;

    while (k < end && at < before)
        at *= mesh->grid->size[k++];
    for (; k < end && n < size && to->n < HLO_MOST_ATOMS; k++) {
        n *= mesh->grid->size[k];
        to->at[to->n++] = (uint8_t)k;
    }
    if (at != before || n != size)
        sharding_fail(r, "a part of an axis that falls between its factors");
}

/* All of axis x, or where it is a part: (1)2 */
static void take_part(reader *r, const hlo_mesh *mesh, const hlo_mesh_axis *x,
                      bool is_part, hlo_atoms *to)
{
    int64_t before = 1, size = x ? x->size : 1;

    if (is_part) {
        expect(r, "(");
        before = take_count(r);
        expect(r, ")");
        size = take_count(r);
    }
    if (x && !r->x.bad)
        add_part(r, mesh, x, before, size, to);
}

/* "x" or "x":(1)2 */
static void take_axis(reader *r, const hlo_mesh *mesh, hlo_atoms *to)
{
    sd_bytes name = take_name(r);
    const hlo_mesh_axis *x = r->x.bad ? NULL : find_axis(r, mesh, name);

    take_part(r, mesh, x, accept(r, ":"), to);
}

static uint32_t take_set(reader *r, const hlo_mesh *mesh)
{
    hlo_atoms a = {0};

    expect(r, "=");
    expect(r, "{");
    while (!r->x.bad && !accept(r, "}")) {
        take_axis(r, mesh, &a);
        accept(r, ",");
    }
    return hlo_atoms_mask(&a);
}

static void take_dim(reader *r, const hlo_mesh *mesh, hlo_dim_sharding *d)
{
    expect(r, "{");
    while (!r->x.bad && !accept(r, "}")) {
        if (accept(r, "?"))
            d->open = true;
        else
            take_axis(r, mesh, &d->cut);
        accept(r, ",");
    }
    if (accept(r, "p")) /* in whose order Shardy goes: it changes no result */
        take_count(r);
}

/* Behind the mesh: [{"x"}, {?}], replicated={"y"}, ... */
static void take_dims(reader *r, hlo_sharding *s)
{
    expect(r, "[");
    for (int i = 0; !r->x.bad && !accept(r, "]"); i++) {
        if (i == s->rank) {
            sharding_fail(r, "no more dimensions than the value has");
            return;
        }
        take_dim(r, s->mesh, &s->dim[i]);
        accept(r, ",");
    }
    while (!r->x.bad && accept(r, ",")) {
        if (accept(r, "replicated"))
            s->replicated = take_set(r, s->mesh);
        else if (accept(r, "unreduced"))
            s->unreduced = take_set(r, s->mesh);
        else if (accept(r, "manual"))
            s->manual = take_set(r, s->mesh);
        else if (accept(r, "reduction=max"))
            s->partial = HLO_MAX_OF;
        else if (accept(r, "reduction=min"))
            s->partial = HLO_MIN_OF;
        else if (!accept(r, "reduction=sum"))
            sharding_fail(r, "replicated, unreduced, manual or reduction");
    }
}

/* Adds atoms to those seen; gives those that had been seen before. */
static uint32_t see(const hlo_atoms *a, uint32_t *seen)
{
    uint32_t twice = 0;

    for (int k = 0; k < a->n; k++) {
        twice |= *seen & UINT32_C(1) << a->at[k];
        *seen |= UINT32_C(1) << a->at[k];
    }
    return twice;
}

/* An atom stands once in a sharding. */
static void check_once(reader *r, const hlo_sharding *s)
{
    uint32_t seen = 0, twice = 0;

    for (int i = 0; i < s->rank; i++)
        twice |= see(&s->dim[i].cut, &seen);
    twice |= seen & (s->replicated | s->unreduced);
    twice |= s->unreduced & (s->replicated | s->manual);
    if (twice)
        sharding_fail(r, "each axis once");
}

/* A module may name others; what it is cut by has all participants, or one. */
static const hlo_mesh *of_all(reader *r, const hlo_mesh *mesh)
{
    int64_t n = mesh && !r->x.bad ? hlo_mesh_places(mesh) : 1;

    if (n > 1 && n != hlo_participants(r->m))
        sharding_fail(r, "a mesh of all participants");
    return r->x.bad ? NULL : mesh;
}

/* Behind the @. */
static const hlo_mesh *named_mesh(reader *r)
{
    sd_bytes name;
    const hlo_mesh *mesh;

    name = take_name(r);
    mesh = hlo_mesh_find(r->m, (const char *)name.at, name.len);
    if (!mesh)
        sharding_fail(r, "a mesh of the module");
    return of_all(r, mesh);
}

static const hlo_sharding *take_behind(reader *r, const hlo_mesh *mesh,
                                       int rank)
{
    hlo_sharding *s = hlo_sharding_draft(r->m, rank);

    if (r->x.bad)
        return NULL;
    s->mesh = mesh;
    s->grid = mesh->grid;
    s->single = mesh->single;
    expect(r, ",");
    take_dims(r, s);
    if (!r->x.bad)
        check_once(r, s);
    return r->x.bad ? NULL : hlo_sharding_keep(r->m, s);
}

/* <@mesh, [...]> */
static const hlo_sharding *take_sdy(reader *r, int rank)
{
    const hlo_sharding *s;
    const hlo_mesh *mesh;
    hlo_mesh x;

    expect(r, "<");
    if (accept(r, "@")) {
        mesh = named_mesh(r);
    } else {
        accept(r, "#sdy.");
        accept(r, "mesh");
        expect(r, "<");
        take_mesh(r, &x);
        expect(r, ">");
        mesh = of_all(r, r->x.bad ? NULL : hlo_mesh_join(r->m, &x));
    }
    s = take_behind(r, mesh, rank);
    expect(r, ">");
    return s;
}

/* ---- XLA's ---- */

/* mesh['x'=4,'y'=2], device_ids=(...)?, [...] */
static const hlo_sharding *take_named(reader *r, int rank)
{
    const hlo_mesh *mesh;
    const char *back;
    hlo_mesh x;

    take_axes(r, &x);
    back = r->x.at;
    if (accept(r, ",") && accept(r, "device_ids=("))
        take_ids(r, ")", &x);
    else if (!r->x.bad)
        r->x.at = back;
    mesh = of_all(r, r->x.bad ? NULL : hlo_mesh_join(r->m, &x));
    return take_behind(r, mesh, rank);
}

/* ---- the whole text ---- */

static bool is_named(hlo_lexer x)
{
    return hlo_accept(&x, "{") &&
           (hlo_accept(&x, "mesh[") || hlo_accept(&x, "maximal_mesh["));
}

static const hlo_sharding *take_xla_named(reader *r, int rank)
{
    const hlo_sharding *s;

    expect(r, "{");
    if (accept(r, "maximal_mesh[device_id=")) {
        hlo_sharding *one = hlo_sharding_draft(r->m, rank);

        one->single = take_count(r);
        expect(r, "]");
        s = hlo_sharding_keep(r->m, one);
    } else {
        expect(r, "mesh");
        s = take_named(r, rank);
    }
    expect(r, "}");
    return s;
}

static const hlo_sharding *of_tiles(reader *r, const pb_sharding *p, int rank)
{
    const hlo_sharding *s = hlo_sharding_of_tiles(r->m, p, rank);

    if (!s)
        sharding_fail(r, "tiles that share out all participants");
    return s;
}

static void take_tiles(reader *r, const pb_sharding *p, int n, const int *rank,
                       const hlo_sharding **out)
{
    if (p->type != HLO_PB_TUPLE) {
        for (int i = 0; i < n && !r->x.bad; i++)
            out[i] = of_tiles(r, p, rank[i]);
    } else if (p->elem.n == n) {
        for (int i = 0; i < n && !r->x.bad; i++)
            out[i] = of_tiles(r, &p->elem.at[i], rank[i]);
    } else {
        sharding_fail(r, "a sharding for each value");
    }
}

static void read_tiles(reader *r, int n, const int *rank,
                       const hlo_sharding **out)
{
    pb_sharding p;

    if (hlo_sharding_parse(r->m->arena, r->x.base, &p))
        take_tiles(r, &p, n, rank, out);
    else
        sharding_fail(r, "a sharding");
}

sd_status hlo_shardings_of_proto(hlo_module *m, sd_bytes proto, int n,
                                 const int *rank, const hlo_sharding **out)
{
    reader r = reader_of(m, "of OpSharding's bytes");
    pb_sharding p = {0};
    sd_status st;

    hlo_meshes_need(m);
    if ((st = pb_read(m->arena, &pb_sharding_table, proto, &p)))
        return st;
    take_tiles(&r, &p, n, rank, out);
    return sharding_status(&r);
}

sd_status hlo_shardings_read(hlo_module *m, const char *text, int n,
                             const int *rank, const hlo_sharding **out)
{
    reader r = reader_of(m, text);

    hlo_meshes_need(m);
    if (accept(&r, "#sdy.sharding_per_value")) {
        expect(&r, "<");
        expect(&r, "[");
        for (int i = 0; i < n && !r.x.bad; i++) {
            out[i] = take_sdy(&r, rank[i]);
            accept(&r, ",");
        }
        expect(&r, "]");
        expect(&r, ">");
    } else if (n != 1 && (is_named(r.x) || accept(&r, "#sdy.sharding"))) {
        sharding_fail(&r, "a sharding for each value");
    } else if (accept(&r, "#sdy.sharding")) {
        out[0] = take_sdy(&r, rank[0]);
    } else if (is_named(r.x)) {
        out[0] = take_xla_named(&r, rank[0]);
    } else {
        read_tiles(&r, n, rank, out);
        return sharding_status(&r);
    }
    hlo_skip_space(&r.x);
    if (r.x.at < r.x.end)
        sharding_fail(&r, "the end");
    return sharding_status(&r);
}

sd_status hlo_sharding_read(hlo_module *m, const char *text, int rank,
                            const hlo_sharding **out)
{
    return hlo_shardings_read(m, text, 1, &rank, out);
}

sd_status hlo_axes_read(const hlo_mesh *mesh, const char *text, uint32_t *out)
{
    reader r = {.x = hlo_lexer_of(NULL, text, strlen(text))};
    hlo_atoms a = {0};

    expect(&r, "#sdy<manual_axes");
    expect(&r, "{");
    while (!r.x.bad && !accept(&r, "}")) {
        take_axis(&r, mesh, &a);
        accept(&r, ",");
    }
    if (!r.x.bad)
        *out = hlo_atoms_mask(&a);
    return sharding_status(&r);
}

/* #stablehlo.axis_ref<name = "x", sub_axis_info = (1)2> */
static void take_axis_ref(reader *r, const hlo_mesh *mesh, hlo_atoms *to)
{
    const hlo_mesh_axis *x;
    bool is_part;

    expect(r, "#stablehlo.axis_ref");
    expect(r, "<");
    expect(r, "name");
    expect(r, "=");
    x = find_axis(r, mesh, take_name(r));
    if ((is_part = accept(r, ","))) {
        expect(r, "sub_axis_info");
        expect(r, "=");
    }
    take_part(r, mesh, x, is_part, to);
    expect(r, ">");
}

/* <mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">, ...]> */
sd_status hlo_mesh_groups(hlo_module *m, const char *text, hlo_collective *out)
{
    reader r = reader_of(m, text);
    hlo_atoms along = {0};
    uint32_t seen = 0;
    const hlo_mesh *mesh;

    expect(&r, "#stablehlo.replica_group_mesh_axes");
    expect(&r, "<");
    expect(&r, "mesh");
    expect(&r, "=");
    expect(&r, "@");
    mesh = named_mesh(&r);
    expect(&r, ",");
    expect(&r, "axes");
    expect(&r, "=");
    expect(&r, "[");
    while (!r.x.bad && !accept(&r, "]")) {
        take_axis_ref(&r, mesh, &along);
        accept(&r, ",");
    }
    expect(&r, ">");
    if (!r.x.bad && see(&along, &seen))
        sharding_fail(&r, "each axis once");
    if (!r.x.bad)
        out->groups = hlo_grid_groups(m->arena, mesh->grid, &along,
                                      &out->ngroup, &out->group_size);
    return sharding_status(&r);
}
