/* spmd_moves: the turns of a move from one sharding to another. */
#ifndef SPMD_MOVES_H
#define SPMD_MOVES_H

#include "spmd.h"

/* Of the atoms by which dimension d of `to` is cut beyond what cuts it by s,
 * how many may be done before anything is gathered; 0 unless s is summed along
 * the last of them, which gives each its own part of the sum at once. */
int spmd_nshared(const hlo_sharding *s, const hlo_sharding *to, int d);
/* Is everybody's part by `to` what one participant has by s? */
bool spmd_is_permuted(const hlo_sharding *s, const hlo_sharding *to);

/* What is left of a move: of each dimension the atoms that it is gathered by,
 * those that it is sliced by then, and those along which parts are put among
 * zeros instead. */
typedef struct {
    int rank;
    hlo_atoms gather[SD_MAX_RANK], slice[SD_MAX_RANK], spread[SD_MAX_RANK];
    bool spreads;
} spmd_rest;
spmd_rest spmd_rest_of(const hlo_sharding *s, const hlo_sharding *to);

/* One turn of a move: what cuts dimension `from` last cuts `to` instead.
 * from == to: it is gathered, as another one's cut waits for that; NOWHERE: it
 * is sliced along what cuts no other. */
enum { SPMD_NOWHERE = -1 };

typedef struct {
    int from, to;
    hlo_atoms along;
} spmd_move_turn;
/* The next one of what is left, which is less then; false: there is none. */
bool spmd_next_turn(const hlo_grid *g, spmd_rest *t, spmd_move_turn *out);

#endif
