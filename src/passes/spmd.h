/* spmd: cuts a module of whole arrays into the program of one participant, in
 * which collectives move what is not at hand.  Marks say how values are to be
 * cut (manual computations, shardings of parameters, results and constraints);
 * see spmd.c. */
#ifndef SPMD_H
#define SPMD_H

#include "hlo_sharding.h"
#include "passes_priv.h"

/* ---- parts that are not equal (spmd_uneven.c) ---- */

/* How many elements a part has when `size` of them are cut into n parts, of
 * which the last ones have fewer or none.  is_worth: are at least half of all
 * places in use? */
int64_t spmd_each(int64_t size, int64_t n);
bool spmd_is_worth(int64_t size, int64_t n);
bool spmd_is_even(const sd_shape *whole, const hlo_sharding *s);
/* s without the cuts that give unequal parts. */
const hlo_sharding *spmd_evenly(hlo_module *m, const sd_shape *whole,
                                const hlo_sharding *s);
/* Does every dimension that s and `to` cut differently divide evenly by
 * both? */
bool spmd_moves_evenly(const sd_shape *whole, const hlo_sharding *s,
                       const hlo_sharding *to);
/* A part's shape, equal or not. */
const sd_shape *spmd_part_shape(hlo_module *m, const sd_shape *whole,
                                const hlo_sharding *s);
/* A whole array padded to the length of all its parts; and back to the shape
 * `whole`. */
hlo_inst *spmd_lengthened(hlo_at p, hlo_inst *x, const hlo_sharding *s);
hlo_inst *spmd_shortened(hlo_at p, hlo_inst *x, const sd_shape *whole);
/* The part x with `fill` in those places of dimension d that lie behind the
 * end of the whole dimension, which has `size` elements. */
hlo_inst *spmd_inside(hlo_at p, hlo_inst *x, const hlo_sharding *s, int d,
                      int64_t size, hlo_inst *fill);

/* ---- moving values (spmd_reshard.c) ---- */

hlo_inst *spmd_number(hlo_at p); /* of this participant: an s32 scalar */
/* Where this participant stands along the atoms: an s32 scalar. */
hlo_inst *spmd_index(hlo_at p, const hlo_grid *g, const hlo_atoms *along);
/* The type that places among n elements are counted in: s32 where that holds
 * the sum of two of them, else s64.  counts: for the longest dimension of an
 * array. */
sd_dtype spmd_count(int64_t n);
sd_dtype spmd_counts(const sd_shape *s);
/* Where this participant's part begins, if parts have `each` elements along the
 * atoms: a scalar of type t. */
hlo_inst *spmd_begin(hlo_at p, const hlo_grid *g, const hlo_atoms *along,
                     int64_t each, sd_dtype t);
/* By s:
 *   cut    this participant's part of the whole x
 *   join   the whole of which x is this participant's part
 *   total  x summed (or as s->partial says) over participants that differ,
 *          along atoms that are in mask */
hlo_inst *spmd_cut(hlo_at p, hlo_inst *x, const hlo_sharding *s);
hlo_inst *spmd_join(hlo_at p, hlo_inst *x, const hlo_sharding *s);
hlo_inst *spmd_total(hlo_at p, hlo_inst *x, const hlo_sharding *s,
                     uint32_t mask);
/* A part by s as the part by `to`, of the same grid. */
hlo_inst *spmd_move(hlo_at p, hlo_inst *x, const hlo_sharding *s,
                    const hlo_sharding *to);
/* About how many bytes each participant receives in that move; NULL: whole. */
double spmd_move_bytes(const sd_shape *whole, const hlo_sharding *s,
                       const hlo_sharding *to);
/* What s and `to` have in common: of each dimension's atoms those that both
 * begin with. */
const hlo_sharding *spmd_common(hlo_module *m, const hlo_sharding *s,
                                const hlo_sharding *to);
/* Is that move a reduce-scatter: sums, of which each participant gets a
 * part? */
bool spmd_scatters(const hlo_sharding *s, const hlo_sharding *to);
/* x of the participant at the mirrored place: as far from the last along the
 * atoms as this one is from the first. */
hlo_inst *spmd_turn(hlo_at p, hlo_inst *x, const hlo_grid *g,
                    const hlo_atoms *along);
/* At the places for which who[] is true: x of the participant `by` places
 * further along the atoms.  At others: zeros. */
hlo_inst *spmd_shift(hlo_at p, hlo_inst *x, const hlo_grid *g,
                     const hlo_atoms *along, int64_t by, const bool *who);
/* x of the participant at that place along the atoms. */
hlo_inst *spmd_of_place(hlo_at p, hlo_inst *x, const hlo_grid *g,
                        const hlo_atoms *along, int64_t place);
hlo_inst *spmd_all_reduce(hlo_at p, hlo_inst *x, const hlo_grid *g,
                          const hlo_atoms *along, hlo_op op);
/* x on the participant that is the first along the atoms, and zeros (or what
 * s->partial leaves as it is) on the others: so their sum is x. */
hlo_inst *spmd_share(hlo_at p, hlo_inst *x, const hlo_sharding *s,
                     uint32_t mask);
/* x of participant number `from`, on all of them. */
hlo_inst *spmd_from(hlo_at p, hlo_inst *x, int64_t from);
/* The shape of a part of a whole array along atoms in mask; an error if a
 * dimension does not divide. */
sd_status spmd_local_shape(hlo_module *m, const sd_shape *whole,
                           const hlo_sharding *s, uint32_t mask,
                           const sd_shape **out);

/* The operands x of all members of a group, stacked along a new first
 * dimension; and this participant's place in its group. */
hlo_inst *spmd_stack(hlo_at p, hlo_inst *x, const hlo_collective *groups);
hlo_inst *spmd_place(hlo_at p, const hlo_collective *c);

/* Replaces a ragged all-to-all by gathers (spmd_ragged.c). */
sd_status spmd_ragged(hlo_inst *in);
/* Writes the groups of every collective as lists of participants' numbers. */
void spmd_groups(hlo_module *m);
/* Makes scatters of one window at a constant place updates (spmd_place.c). */
void spmd_updates(hlo_module *m);
/* Joins all-reduces that do not wait for each other into one
 * (spmd_combine.c). */
void spmd_combine(hlo_module *m);
/* Does an operation on participant `who` alone, whose result all get. */
sd_status spmd_single(hlo_inst *in, int64_t who);

#endif
