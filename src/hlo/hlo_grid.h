/* Where participants stand.  The axes of a grid are atoms: as small as they
 * get, of prime size.  An axis of a mesh is a run of atoms, e.g. one of size
 * 12 is atoms of 2, 2 and 3; so a part of an axis, or two axes that overlap,
 * are again lists of atoms and need no rules of their own. */
#ifndef HLO_GRID_H
#define HLO_GRID_H

#include "hlo.h"

enum { HLO_MOST_ATOMS = 32 };
#define HLO_ALL_ATOMS UINT32_MAX /* as a mask */

typedef struct {
    int natom;
    int64_t n; /* places: the product of the sizes */
    int64_t size[HLO_MOST_ATOMS], stride[HLO_MOST_ATOMS]; /* major to minor */
    /* at[place] is the participant there, place[participant] where one of the
     * module's nplace participants stands, or -1: nowhere.  NULL: participant i
     * stands at place i. */
    const int64_t *at, *place;
    int64_t nplace;
} hlo_grid;

typedef struct { uint8_t n, at[HLO_MOST_ATOMS]; } hlo_atoms;

int64_t hlo_atoms_size(const hlo_grid *g, const hlo_atoms *a);
uint32_t hlo_atoms_mask(const hlo_atoms *a);
hlo_atoms hlo_atoms_in(const hlo_atoms *a, uint32_t mask); /* those in mask */
hlo_atoms hlo_atoms_first(const hlo_atoms *a, int n);
hlo_atoms hlo_atoms_from(const hlo_atoms *a, int n); /* all but these */
void hlo_atoms_add(hlo_atoms *a, const hlo_atoms *b); /* b's behind a's */
/* How many both begin with. */
int hlo_atoms_common(const hlo_atoms *a, const hlo_atoms *b);
hlo_atoms hlo_grid_rest(const hlo_grid *g, uint32_t used); /* not in `used` */
/* Where participant p stands along these atoms; -1: it is not on the grid. */
int64_t hlo_grid_index(const hlo_grid *g, const hlo_atoms *a, int64_t p);
/* The groups of participants that differ along these atoms alone: *n groups of
 * *size members each, one after the other, in the arena. */
const int64_t *hlo_grid_groups(sd_arena *a, const hlo_grid *g,
                               const hlo_atoms *along, int64_t *n,
                               int64_t *size);

#endif
