/* Cutting a module of whole arrays into one participant's.  What is between
 * the marks of the import (manual computations, shardings of parameters and
 * results) is made of collectives; see spmd.c. */
#ifndef SPMD_H
#define SPMD_H

#include "hlo_sharding.h"
#include "passes_priv.h"

/* ---- parts that are not equal (spmd_uneven.c) ---- */

/* Elements of a part of n, the last ones having fewer or none; do at least half
 * of the parts' places have one? */
int64_t spmd_each(int64_t size, int64_t n);
bool spmd_is_worth(int64_t size, int64_t n);
bool spmd_is_even(const sd_shape *whole, const hlo_sharding *s);
/* s without what gives unequal parts. */
const hlo_sharding *spmd_evenly(hlo_module *m, const sd_shape *whole,
                                const hlo_sharding *s);
/* Does each dimension that is not cut alike by both divide? */
bool spmd_moves_evenly(const sd_shape *whole, const hlo_sharding *s,
                       const hlo_sharding *to);
/* A part's shape, equal or not. */
const sd_shape *spmd_part_shape(hlo_module *m, const sd_shape *whole,
                                const hlo_sharding *s);
/* A whole array as long as all its parts along atoms in mask, and back. */
hlo_inst *spmd_lengthened(hlo_at p, hlo_inst *x, const hlo_sharding *s,
                          uint32_t mask);
hlo_inst *spmd_shortened(hlo_at p, hlo_inst *x, const sd_shape *whole);
/* The part x with fill behind the end of dimension d, of so many elements. */
hlo_inst *spmd_inside(hlo_at p, hlo_inst *x, const hlo_sharding *s, int d,
                      int64_t size, hlo_inst *fill);

/* ---- moving values (spmd_reshard.c) ---- */

hlo_inst *spmd_number(hlo_at p); /* this participant's: an s32 scalar */
/* Where this participant stands along the atoms: an s32 scalar. */
hlo_inst *spmd_index(hlo_at p, const hlo_grid *g, const hlo_atoms *along);
/* What places among so many elements are counted in: s32 where it holds the sum
 * of two, which is most arrays.  Of an array: its longest dimension decides. */
sd_dtype spmd_count(int64_t n);
sd_dtype spmd_counts(const sd_shape *s);
/* Where this participant's part begins, of parts of so many elements along the
 * atoms: a scalar of type t. */
hlo_inst *spmd_begin(hlo_at p, const hlo_grid *g, const hlo_atoms *along,
                     int64_t each, sd_dtype t);
/* This participant's part of x along each dimension's atoms that are in mask;
 * the whole of what parts like x are of; x summed (or the like) over the
 * participants that differ along these atoms. */
hlo_inst *spmd_cut(hlo_at p, hlo_inst *x, const hlo_sharding *s, uint32_t mask);
hlo_inst *spmd_join(hlo_at p, hlo_inst *x, const hlo_sharding *s,
                    uint32_t mask);
hlo_inst *spmd_total(hlo_at p, hlo_inst *x, const hlo_sharding *s,
                     uint32_t mask);
/* A part by s as the part by `to`, of the same grid. */
hlo_inst *spmd_move(hlo_at p, hlo_inst *x, const hlo_sharding *s,
                    const hlo_sharding *to);
/* About how many bytes of an array that takes a participant; NULL: whole. */
double spmd_move_bytes(const sd_shape *whole, const hlo_sharding *s,
                       const hlo_sharding *to);
/* What cuts both: of each dimension's atoms those that both begin with. */
const hlo_sharding *spmd_common(hlo_module *m, const hlo_sharding *s,
                                const hlo_sharding *to);
/* Does that move make sums and share them out at once? */
bool spmd_scatters(const hlo_sharding *s, const hlo_sharding *to);
/* The part of whoever is as far from the last along the atoms as this participant
 * is from the first. */
hlo_inst *spmd_turn(hlo_at p, hlo_inst *x, const hlo_grid *g,
                    const hlo_atoms *along);
/* x of whoever is `by` places further along the atoms, at the places that who
 * names; zeros elsewhere. */
hlo_inst *spmd_shift(hlo_at p, hlo_inst *x, const hlo_grid *g,
                     const hlo_atoms *along, int64_t by, const bool *who);
/* x of whoever is at that place along the atoms. */
hlo_inst *spmd_of_place(hlo_at p, hlo_inst *x, const hlo_grid *g,
                        const hlo_atoms *along, int64_t place);
hlo_inst *spmd_all_reduce(hlo_at p, hlo_inst *x, const hlo_grid *g,
                          const hlo_atoms *along, hlo_op op);
/* x where this participant is the first along the atoms, else nothing to add. */
hlo_inst *spmd_share(hlo_at p, hlo_inst *x, const hlo_sharding *s,
                     uint32_t mask);
/* x of that participant, to all. */
hlo_inst *spmd_from(hlo_at p, hlo_inst *x, int64_t from);
/* The dimensions that a participant has of a whole array along atoms in mask;
 * an error where one does not divide. */
sd_status spmd_local_shape(hlo_module *m, const sd_shape *whole,
                           const hlo_sharding *s, uint32_t mask,
                           const sd_shape **out);

/* Operands of all members of the groups, stacked along a new first dimension;
 * this participant's place in its group of c. */
hlo_inst *spmd_stack(hlo_at p, hlo_inst *x, const hlo_collective *groups);
hlo_inst *spmd_place(hlo_at p, const hlo_collective *c);

/* A ragged all-to-all as gathers (spmd_ragged.c). */
sd_status spmd_ragged(hlo_inst *in);
/* Groups of every collective as lists of participants' numbers. */
void spmd_groups(hlo_module *m);
/* Scatters of one window at a place that is known become updates
 * (spmd_place.c). */
void spmd_updates(hlo_module *m);
/* Sums that do not wait for each other are made together (spmd_combine.c). */
void spmd_combine(hlo_module *m);
/* An operation that is one participant's alone. */
sd_status spmd_single(hlo_inst *in, int64_t who);

#endif
