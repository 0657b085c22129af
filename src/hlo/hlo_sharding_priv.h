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

/* Ends of axes, as products from the first on: 4x2 has 1, 4, 8.  Meshes share
 * a grid if all their ends together divide one another in turn. */
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
/* A module without meshes has a grid of its participants all the same. */
void hlo_meshes_need(hlo_module *m);
/* One that stands in a sharding itself, or the module's that is the same. */
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
/* One to be filled, then kept, which gives the one that is equal. */
hlo_sharding *hlo_sharding_draft(hlo_module *m, int rank);
const hlo_sharding *hlo_sharding_keep(hlo_module *m, hlo_sharding *s);

#endif
