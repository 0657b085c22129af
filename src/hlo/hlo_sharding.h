/* hlo_sharding: which part of an array each participant has.
 *
 * Participants stand on a grid (hlo_grid.h).  Each dimension is cut by a list
 * of the grid's atoms, major to minor: on a grid of 2 x 3, dimension 0 cut by
 * atom 1 is in three parts, each on two participants.  Shardings live in the
 * module's arena; equal ones are the same object, so pointers are compared. */
#ifndef HLO_SHARDING_H
#define HLO_SHARDING_H

#include "hlo_grid.h"

typedef struct { /* atoms [first, first + n) of the mesh's grid */
    const char *name;
    int64_t size;
    uint8_t first, n;
} hlo_mesh_axis;

typedef struct {
    const char *name;
    hlo_mesh_axis *axis;
    int naxis;
    const int64_t *ids; /* participant at each place; NULL: in order */
    int64_t single;     /* no axes and one participant: that one; else -1 */
    const hlo_grid *grid;
} hlo_mesh;

typedef struct { hlo_atoms cut; bool open; } hlo_dim_sharding;

typedef enum { HLO_SUM_OF, HLO_MAX_OF, HLO_MIN_OF } hlo_partial;

struct hlo_sharding {
    const hlo_grid *grid;
    const hlo_mesh *mesh; /* that its text names; NULL: it was given as tiles */
    int64_t single;       /* the one participant that has the array; else -1 */
    uint32_t replicated, unreduced, manual; /* masks of atoms */
    hlo_partial partial;  /* the array is the sum, largest or smallest of what
                             participants that differ along unreduced have */
    int rank;
    hlo_dim_sharding dim[];
};

/* ---- read ---- */

/* The meshes that the module's frontend attributes name, into m->mesh. */
sd_status hlo_meshes_read(hlo_module *m);
/* Of a name without @; NULL: there is none. */
const hlo_mesh *hlo_mesh_find(hlo_module *m, const char *name, size_t len);
/* Shardy's text (#sdy.sharding<@mesh, [{"x"}, {}]>), or XLA's: by names
 * ({mesh['x'=4], [{'x'}]}), tiles (devices=[4,1]<=[4]) and lists.  rank: of
 * what it shards. */
sd_status hlo_sharding_read(hlo_module *m, const char *text, int rank,
                            const hlo_sharding **out);
/* #sdy.sharding_per_value<[<...>, ...]>, one of it as well, or a tuple of
 * XLA's: n of them for values of the given ranks. */
sd_status hlo_shardings_read(hlo_module *m, const char *text, int n,
                             const int *rank, const hlo_sharding **out);
/* #sdy<manual_axes{"x"}>: the atoms of these axes of the mesh. */
sd_status hlo_axes_read(const hlo_mesh *mesh, const char *text, uint32_t *out);
/* #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [...]>: the
 * participants that differ along these axes alone, into out's groups. */
sd_status hlo_mesh_groups(hlo_module *m, const char *text, hlo_collective *out);
/* The same of OpSharding's bytes. */
sd_status hlo_shardings_of_proto(hlo_module *m, sd_bytes proto, int n,
                                 const int *rank, const hlo_sharding **out);
/* A frontend attribute's value; NULL: not there. */
const char *hlo_attribute(sd_arena *a, const char *attributes, const char *key);

/* The groups that a custom call's configuration has, as XLA's collectives that
 * are custom calls; false: none, or not of this module. */
bool hlo_config_groups(hlo_module *m, const hlo_custom *u, hlo_collective *out);
/* A custom call that marks a value: those of one group are cut alike. */
#define HLO_GROUP_TARGET "sundog.sharding_group"
/* A custom call in which members of a group send each other rows of arrays:
 * operand, output, where each part begins here, how many rows it has, where it
 * goes there, and how many come. */
#define HLO_RAGGED_TARGET "ragged_all_to_all"

/* ---- make, ask ---- */

/* in's collective with its groups as lists of participants (replica times
 * partitions + partition), -1 behind the members of shorter ones. */
hlo_collective hlo_explicit_groups(sd_arena *a, const hlo_inst *in);

const hlo_sharding *hlo_sharding_replicated(hlo_module *m, int rank);
/* Of the same mesh, with nothing cut. */
const hlo_sharding *hlo_sharding_blank(hlo_module *m, const hlo_sharding *like,
                                       int rank);
/* s with dimension d cut by that. */
const hlo_sharding *hlo_sharding_with(hlo_module *m, const hlo_sharding *s,
                                      int d, hlo_atoms cut);
/* s of parts that are still to be summed (or the like) along these atoms. */
const hlo_sharding *hlo_sharding_unreduced(hlo_module *m, const hlo_sharding *s,
                                           uint32_t atoms, hlo_partial partial);
bool hlo_sharding_is_whole(const hlo_sharding *s); /* everybody has all */
uint32_t hlo_sharding_used(const hlo_sharding *s); /* atoms in dimensions */

/* ---- write ---- */

/* XLA's text by names: {mesh['x'=4,'y'=2], [{'x'}, {?}]} */
void hlo_sharding_text(sd_buf *b, const hlo_sharding *s);
/* By tiles, as text and as the bytes of OpSharding. */
void hlo_sharding_tiles(sd_buf *b, const hlo_sharding *s);
void hlo_sharding_proto(sd_buf *b, const hlo_sharding *s);
/* Of n values, which are a tuple if `tuple`. */
void hlo_shardings_proto(sd_buf *b, const hlo_sharding *const *s, int n,
                         bool tuple);

/* ---- custom calls that are partitioned in a way of their own ---- */

struct hlo_partitioner {
    void *ctx;
    bool (*knows)(void *ctx, const char *target);
    /* The module of what each participant runs of its parts of the operands,
     * which gives its part of each result: of in, whose values would be cut by
     * arg and result.  Both come back as they are to be.  The module lives in
     * in's arena. */
    sd_status (*partition)(void *ctx, const hlo_inst *in,
                           const hlo_sharding **arg,
                           const hlo_sharding **result, hlo_module **out);
};

#endif
