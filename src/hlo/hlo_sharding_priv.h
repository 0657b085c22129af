/* What the files of shardings share. */
#ifndef HLO_SHARDING_PRIV_H
#define HLO_SHARDING_PRIV_H

#include "hlo_proto.h"
#include "hlo_sharding.h"

struct hlo_meshes {
    hlo_mesh *at;
    int n;
    sd_names *by_name;    /* several names may be of one mesh */
    const hlo_grid *grid; /* of most meshes */
    sd_names *known;      /* grids and shardings, by what they are */
};

enum { HLO_MOST_MESHES = 256, HLO_MOST_PLACES = 1 << 20 };

/* Where axes end, as products of sizes from the first axis on: a mesh of 4 x 2
 * has ends 1, 4 and 8.  Meshes share a grid if the ends of all of them, sorted,
 * divide one another in turn: 4 x 2 and 2 x 4 (1 2 4 8) do, 2 x 3 and 3 x 2
 * (1 2 3 6) do not. */
typedef struct {
    int64_t at[HLO_MOST_ATOMS + 2];
    int n;
} hlo_cuts;
bool hlo_cut_at(hlo_cuts *c, int64_t v); /* false: it does not fit */

/* ---- meshes: hlo_mesh.c ---- */

/* Opened, added to, and placed on grids when all are there. */
void hlo_meshes_open(hlo_module *m);
void hlo_mesh_add(hlo_module *m, sd_bytes name, const hlo_mesh *x);
void hlo_meshes_place(hlo_module *m);
/* Sets m->mesh of a module that names no mesh: it has the grid of all
 * participants and nothing else. */
void hlo_meshes_need(hlo_module *m);
/* Adds a mesh that stands inside a sharding; the module's own if it has one
 * that is equal. */
const hlo_mesh *hlo_mesh_join(hlo_module *m, const hlo_mesh *x);
int64_t hlo_mesh_places(const hlo_mesh *x);

/* ---- grids, shardings ---- */

/* NULL: its tiles do not share out the participants. */
const hlo_sharding *hlo_sharding_of_tiles(hlo_module *m, const pb_sharding *p,
                                          int rank);
/* The grid of these axes, whose participants stand as `at` says, or in order;
 * at is kept. */
const hlo_grid *hlo_grid_of(hlo_module *m, int n, const int64_t *axis,
                            const int64_t *at);
/* Each of 0 to n - 1 once. */
bool hlo_is_order(sd_arena *a, const int64_t *at, int64_t n);
/* The offset of index i along these atoms. */
int64_t hlo_grid_offset(const hlo_grid *g, const hlo_atoms *a, int64_t i);
/* A new sharding to be filled in; keep then returns the module's that is equal,
 * which may be an older one. */
hlo_sharding *hlo_sharding_draft(hlo_module *m, int rank);
const hlo_sharding *hlo_sharding_keep(hlo_module *m, hlo_sharding *s);

#endif
