/* Values in parts; see spmd_flow.c. */
#ifndef SPMD_FLOW_H
#define SPMD_FLOW_H

#include "spmd.h"

typedef struct { /* how a value is had */
    hlo_inst *local;
    hlo_inst *total, *whole; /* once somebody wanted them */
    hlo_inst *shares;        /* the total, shared out by share */
    /* Of lines that were moved to be whole: by what its operand was had; or
     * NULL. */
    const hlo_sharding *by_itself;
    const hlo_sharding *s, *share;
    const hlo_sharding *const *each; /* of a tuple's elements; s is NULL */
    sd_map *as;                      /* sharding -> the part by it */
} spmd_part;

typedef struct {
    sd_arena *a;
    hlo_module *m;
    sd_map *parts; /* instruction -> how it is had */
    sd_map *anew;  /* instruction -> {sharding -> its part by it} */
    /* Guesses: of an instruction of the computation that is looked at, what it
     * would be had by, and what all of them would move. */
    sd_map *guess;
    sd_map *wants;   /* instruction -> what its users want (spmd_want.c) */
    sd_map *carried; /* loop -> what it was guessed to carry */
    bool guessing;
    double cost;
    int depth; /* of loops */
    /* The owner's: cuts a computation whose parameters have been set; what the
     * i-th result of a mark is had by, `now` being its operand, false: it is
     * none. */
    void *ctx;
    sd_status (*cut)(void *ctx, hlo_comp *c);
    bool (*mark)(const hlo_inst *in, int i, const hlo_sharding *now,
                 const hlo_sharding **s);
    /* Is in such a mark?  What its k-th operand is wanted in, false: as it is. */
    bool (*is_mark)(const hlo_inst *in);
    bool (*asks)(const hlo_inst *in, int k, const hlo_sharding *now,
                 const hlo_sharding **s);
} spmd_flow;

/* ---- marks (spmd.c) ---- */

typedef enum {
    SPMD_NO_MARK,
    SPMD_INTO, /* borders of manual computations */
    SPMD_OUT,
    SPMD_INTO_TILES, /* the same in programs without Shardy */
    SPMD_OUT_TILES,
    SPMD_RESULT,     /* what a result is asked in */
    SPMD_CONSTRAINT,
    SPMD_SAME        /* says nothing of parts */
} spmd_mark;
spmd_mark spmd_mark_of(const hlo_inst *in);
/* The n shardings that a frontend attribute of in has; false: none. */
sd_status spmd_read_list(const hlo_inst *in, const char *key, int n,
                         const hlo_sharding **out, bool *has);
sd_status spmd_named(sd_status st, const hlo_inst *in); /* with in's words */

/* ---- borders (spmd_border.c) ---- */

sd_status spmd_border(spmd_flow *f, hlo_inst *in);
/* What the i-th value of an SPMD_INTO or _OUT will be had by, its operand being
 * had by `now`; NULL: whole.  What it wants its k-th operand in; false: as it
 * comes. */
const hlo_sharding *spmd_guess_border(const hlo_inst *in, int i,
                                      const hlo_sharding *now);
bool spmd_border_asks(const hlo_inst *in, int k, const hlo_sharding **out);

/* ---- parts (spmd_flow.c) ---- */

spmd_flow *spmd_flow_create(sd_arena *a, hlo_module *m);
/* in, which stays until spmd_settle, can be had as the part local. */
void spmd_set_part(spmd_flow *f, const hlo_inst *in, hlo_inst *local,
                   const hlo_sharding *s);
/* The same of a tuple; each: by element, NULL: whole. */
void spmd_set_parts(spmd_flow *f, const hlo_inst *in, hlo_inst *local,
                    const hlo_sharding *const *each);
/* A part by s (NULL: the whole), to be had by what cuts more unless somebody
 * wants it as it is. */
void spmd_set_finer(spmd_flow *f, hlo_inst *in, hlo_inst *local,
                    const hlo_sharding *s, const hlo_sharding *finer);
spmd_part *spmd_part_of(const spmd_flow *f, const hlo_inst *in); /* or NULL */
bool spmd_is_part(const spmd_flow *f, const hlo_inst *in);
/* Element i of x, or x, if that is no tuple. */
hlo_inst *spmd_element(spmd_flow *f, hlo_at p, hlo_inst *x, int i);
/* NULL: it is whole. */
const hlo_sharding *spmd_part_sharding(const spmd_flow *f, const hlo_inst *in);
/* What s says of dimensions, along atoms in mask and no more. */
const hlo_sharding *spmd_cuts(hlo_module *m, const hlo_sharding *s, int rank,
                              uint32_t mask);
hlo_inst *spmd_whole(spmd_flow *f, hlo_inst *in);
hlo_inst *spmd_as(spmd_flow *f, hlo_at p, hlo_inst *in, const hlo_sharding *s);
/* Does the operation on parts, if it has a rule and an operand in parts
 * (spmd_apply.c). */
bool spmd_apply(spmd_flow *f, hlo_inst *in);
/* Operations that are pads and choices where they go across; false: in is none
 * of them (spmd_place.c). */
bool spmd_is_placed(const hlo_inst *in);
void spmd_put(spmd_flow *f, hlo_inst *in);
/* Does in, of a part by s, want a few elements of a dimension that is cut, which
 * one or two participants have?  Which dimension, or -1.  What it becomes then: a
 * slice of what these have sent (spmd_place.c). */
int spmd_few_of(const hlo_inst *in, const hlo_sharding *s);
hlo_inst *spmd_send_few(spmd_flow *f, hlo_inst *in, int d);
/* Loops and branches, with the computations that they call (spmd_loop.c). */
sd_status spmd_cut_flow(spmd_flow *f, hlo_inst *in);
void spmd_settle(spmd_flow *f);
/* What the module's partitioner knows becomes what that says (spmd_custom.c). */
bool spmd_is_custom(const hlo_inst *in);
sd_status spmd_custom(spmd_flow *f, hlo_inst *in);
/* Into how many parts s cuts. */
int64_t spmd_nparts(const hlo_sharding *s);
/* Marks of values that are cut alike (spmd_group.c). */
bool spmd_is_group(const hlo_inst *in);
void spmd_group(spmd_flow *f, hlo_inst *in);

/* ---- made anew (spmd_anew.c) ---- */

/* Is in whole, and computed of numbers alone, an element at a time? */
bool spmd_is_anew(const spmd_flow *f, const hlo_inst *in);
hlo_inst *spmd_made_anew(spmd_flow *f, hlo_inst *in, const hlo_sharding *s);
/* A broadcast by another sharding: its operand is less to move; or NULL. */
hlo_inst *spmd_spread_again(spmd_flow *f, hlo_inst *in, const hlo_sharding *s);

/* ---- guesses (spmd_guess.c) ---- */

/* By what x is had, or guessed to be, and element i of it: NULL: whole. */
const hlo_sharding *spmd_now(const spmd_flow *f, const hlo_inst *x);
const hlo_sharding *spmd_now_at(const spmd_flow *f, const hlo_inst *x, int i);
void spmd_see(spmd_flow *f, const hlo_inst *in, const hlo_sharding *s,
              const hlo_sharding *const *each);
/* By what in would be had, of what has been seen of its operands. */
void spmd_guess(spmd_flow *f, const hlo_inst *in);
void spmd_guess_flow(spmd_flow *f, const hlo_inst *in);
/* What is known of in already is seen; false: nothing is. */
bool spmd_see_part(spmd_flow *f, const hlo_inst *in);
/* Has in been found to be, or guessed, of those that are made anew? */
bool spmd_was_anew(const spmd_flow *f, const hlo_inst *in);

/* ---- wants (spmd_want.c) ---- */

/* Of the computation's values, its results being wanted in these (NULL: they
 * are open). */
void spmd_want(spmd_flow *f, const hlo_comp *c,
               const hlo_sharding *const *result);
/* NULL: as it comes. */
const hlo_sharding *spmd_wanted(const spmd_flow *f, const hlo_inst *in);
/* What in takes its operands by: whole, as they come, or by arg (NULL: whole). */
typedef enum { SPMD_WHOLE, SPMD_ANY, SPMD_CUT } spmd_need;
spmd_need spmd_needs(spmd_flow *f, const hlo_inst *in,
                     const hlo_sharding **arg);

#endif
