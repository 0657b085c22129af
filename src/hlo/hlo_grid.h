/* Where participants stand.  A grid's axes are as small as they get (atoms, of
 * prime size); an axis of a mesh is a run of atoms, so that parts of axes and
 * axes that overlap need no rules of their own. */
#ifndef HLO_GRID_H
#define HLO_GRID_H

#include "hlo.h"

enum { HLO_MOST_ATOMS = 32 };
#define HLO_ALL_ATOMS UINT32_MAX /* as a mask */

typedef struct {
    int natom;
    int64_t n; /* places: the product of the sizes */
    int64_t size[HLO_MOST_ATOMS], stride[HLO_MOST_ATOMS]; /* major to minor */
    /* Participant at a place, and place of each of the module's nplace
     * participants, -1: it has none; NULL: of the same number. */
    const int64_t *at, *place;
    int64_t nplace;
} hlo_grid;

typedef struct { uint8_t n, at[HLO_MOST_ATOMS]; } hlo_atoms;

int64_t hlo_atoms_size(const hlo_grid *g, const hlo_atoms *a);
uint32_t hlo_atoms_mask(const hlo_atoms *a);
hlo_atoms hlo_atoms_in(const hlo_atoms *a, uint32_t mask); /* of them */
hlo_atoms hlo_grid_rest(const hlo_grid *g, uint32_t used); /* not in it */
/* Where participant p stands along these atoms; -1: it is not on the grid. */
int64_t hlo_grid_index(const hlo_grid *g, const hlo_atoms *a, int64_t p);
/* Participants that differ along these atoms alone, in their order: n groups
 * of the same size, [n * size] of the arena. */
const int64_t *hlo_grid_groups(sd_arena *a, const hlo_grid *g,
                               const hlo_atoms *along, int64_t *n,
                               int64_t *size);

#endif
