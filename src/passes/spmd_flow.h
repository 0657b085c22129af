/* spmd_flow: values in parts while a module is cut; see spmd_flow.c.  A value
 * is `had` as this participant's part, by a sharding that says which part that
 * is; a value without a spmd_part is whole on every participant. */
#ifndef SPMD_FLOW_H
#define SPMD_FLOW_H

#include "spmd.h"

typedef struct { /* how a value is had */
    bool is_tuple;   /* which of the union's it is */
    hlo_inst *local; /* this participant's part, or the tuple of its parts */
    hlo_inst *whole; /* the whole value; NULL: nobody wanted it so far */
    /* The sharding that the value would have if nobody had to move it: as its
     * operand was had before lines of it were made whole.  NULL: as it is
     * had. */
    const hlo_sharding *by_itself;
    union {
        struct {                       /* an array */
            const hlo_sharding *s;     /* which part `local` is */
            /* The part with nothing left to be summed (s->unreduced); NULL:
             * nobody wanted it so far. */
            hlo_inst *total;
            /* The same in smaller parts, by `share`, one of each participant
             * that would have had the total; both or none. */
            hlo_inst *shares;
            const hlo_sharding *share;
            sd_map *as; /* other shardings -> the part by them; or NULL */
        };
        const hlo_sharding *const *each; /* a tuple: of each element; NULL in it:
                                            the element is whole */
    };
} spmd_part;

/* What the owner of a flow (spmd.c) knows of marks and computations. */
typedef struct {
    /* Cuts a computation whose parameters have been set. */
    sd_status (*cut)(void *ctx, hlo_comp *c);
    /* Is in a mark that says how its operand is cut? */
    bool (*is_mark)(const hlo_inst *in);
    /* The sharding (NULL: whole) that result i of such a mark will be had by,
     * its operand being had by `now`; false: it cannot be told. */
    bool (*guess_mark)(const hlo_inst *in, int i, const hlo_sharding *now,
                       const hlo_sharding **s);
    /* The sharding (NULL: whole) that such a mark wants its operand k in;
     * false: it takes it as it is. */
    bool (*asks)(const hlo_inst *in, int k, const hlo_sharding *now,
                 const hlo_sharding **s);
} spmd_owner;

typedef struct {
    sd_arena *a;
    hlo_module *m;
    sd_map *parts; /* instruction -> its spmd_part */
    sd_map *anew;  /* instruction that is made anew (spmd_anew.c) -> a map from
                      shardings to its part by them */
    bool guessing; /* nothing is made; guess and cost are filled in instead */
    sd_map *guess; /* instruction of the computation that is looked at -> the
                      sharding that it would be had by (spmd_guess.c) */
    double cost;   /* bytes that all guessed so far would move */
    sd_map *wants;   /* instruction -> what its users want (spmd_want.c) */
    sd_map *carried; /* loop -> the shardings that it was guessed to carry */
    int depth;       /* how many loops the guess is inside of */
    const spmd_owner *owner;
    void *ctx; /* the owner's */
} spmd_flow;

/* ---- marks (spmd_marks.c) ---- */

typedef enum {
    SPMD_NO_MARK,
    SPMD_INTO, /* values enter and leave a manual computation */
    SPMD_OUT,
    SPMD_INTO_TILES, /* the same in programs without Shardy */
    SPMD_OUT_TILES,
    SPMD_RESULT,     /* a result of the program, in the sharding it is to have */
    SPMD_CONSTRAINT, /* with_sharding_constraint */
    SPMD_SAME        /* a mark that says nothing of parts */
} spmd_mark;
spmd_mark spmd_mark_of(const hlo_inst *in);
/* Reads the n shardings in a frontend attribute of in; *has false: there is no
 * such attribute. */
sd_status spmd_read_list(const hlo_inst *in, const char *key, int n,
                         const hlo_sharding **out, bool *has);
sd_status spmd_named(sd_status st, const hlo_inst *in); /* adds in to the error */

/* ---- borders (spmd_border.c) ---- */

sd_status spmd_border(spmd_flow *f, hlo_inst *in);
/* Stands in in's place for the whole of which x is a part by s, until all is
 * settled. */
hlo_inst *spmd_stand_in(spmd_flow *f, hlo_inst *in, const sd_shape *whole,
                        hlo_inst *x, const hlo_sharding *s);
/* The sharding (NULL: whole) that value i of an SPMD_INTO or _OUT will be had
 * by, its operand being had by `now`; and the one that it wants operand k in,
 * false: it takes it as it is. */
const hlo_sharding *spmd_guess_border(const hlo_inst *in, int i,
                                      const hlo_sharding *now);
bool spmd_border_asks(const hlo_inst *in, int k, const hlo_sharding **out);

/* ---- parts (spmd_flow.c) ---- */

spmd_flow *spmd_flow_create(sd_arena *a, hlo_module *m);
/* Notes that in can be had as the part `local` by s.  in itself stays until
 * spmd_settle. */
void spmd_set_part(spmd_flow *f, const hlo_inst *in, hlo_inst *local,
                   const hlo_sharding *s);
/* The same for a tuple; each: the sharding of each element, NULL: it is
 * whole. */
void spmd_set_parts(spmd_flow *f, const hlo_inst *in, hlo_inst *local,
                    const hlo_sharding *const *each);
/* Notes that in can be had as `local` by s (NULL: whole), and is had by
 * `finer`, which cuts it further. */
void spmd_set_finer(spmd_flow *f, hlo_inst *in, hlo_inst *local,
                    const hlo_sharding *s, const hlo_sharding *finer);
spmd_part *spmd_part_of(const spmd_flow *f, const hlo_inst *in); /* or NULL */
bool spmd_is_part(const spmd_flow *f, const hlo_inst *in);
/* Element i of x; x itself, if it is no tuple. */
hlo_inst *spmd_element(spmd_flow *f, hlo_at p, hlo_inst *x, int i);
/* The sharding that the array in is had by; NULL: it is whole, or a tuple. */
const hlo_sharding *spmd_part_sharding(const spmd_flow *f, const hlo_inst *in);
/* s without what it says of atoms that are not in mask. */
const hlo_sharding *spmd_cuts(hlo_module *m, const hlo_sharding *s, int rank,
                              uint32_t mask);
/* The whole of in, and its part by s: made when they are first asked for. */
hlo_inst *spmd_whole(spmd_flow *f, hlo_inst *in);
hlo_inst *spmd_as(spmd_flow *f, hlo_at p, hlo_inst *in, const hlo_sharding *s);
/* Does the operation on parts.  False, and nothing is done, if it has no rule
 * or no operand in parts.  spmd_apply.c */
bool spmd_apply(spmd_flow *f, hlo_inst *in);
/* Is in a concatenate or an update, which across parts is done with pads and
 * selects?  spmd_put does it so.  spmd_place.c */
bool spmd_is_placed(const hlo_inst *in);
void spmd_put(spmd_flow *f, hlo_inst *in);
/* The dimension, cut by s, of which the slice in takes so few elements that one
 * or two participants have them; -1: there is none.  spmd_send_few makes it a
 * slice of what these participants send.  spmd_place.c */
int spmd_few_of(const hlo_inst *in, const hlo_sharding *s);
hlo_inst *spmd_send_few(spmd_flow *f, hlo_inst *in, int d);
/* Loops and branches, with the computations that they call (spmd_loop.c). */
sd_status spmd_cut_flow(spmd_flow *f, hlo_inst *in);
void spmd_settle(spmd_flow *f);
/* Is in a custom-call that the module's partitioner knows?  spmd_custom
 * replaces it by what the partitioner says.  spmd_custom.c */
bool spmd_is_custom(const hlo_inst *in);
sd_status spmd_custom(spmd_flow *f, hlo_inst *in);
/* How many different parts there are by s. */
int64_t spmd_nparts(const hlo_sharding *s);
/* Marks of values that are cut alike (spmd_group.c). */
bool spmd_is_group(const hlo_inst *in);
void spmd_group(spmd_flow *f, hlo_inst *in);

/* ---- made anew (spmd_anew.c) ---- */

/* Is in whole, and computed element by element from constants and iotas, so
 * that a participant can compute any part of it alone?  made_anew does that. */
bool spmd_is_anew(const spmd_flow *f, const hlo_inst *in);
hlo_inst *spmd_made_anew(spmd_flow *f, hlo_inst *in, const hlo_sharding *s);
/* The broadcast in by another sharding, made by moving its operand, which is
 * smaller; NULL: it cannot. */
hlo_inst *spmd_spread_again(spmd_flow *f, hlo_inst *in, const hlo_sharding *s);

/* ---- guesses (spmd_guess.c) ---- */

/* The sharding that x, or element i of it, is had by or (f->guessing) guessed
 * to be had by; NULL: it is whole. */
const hlo_sharding *spmd_now(const spmd_flow *f, const hlo_inst *x);
const hlo_sharding *spmd_now_at(const spmd_flow *f, const hlo_inst *x, int i);
/* Notes a guess: in would be had by s or, a tuple, by each. */
void spmd_see(spmd_flow *f, const hlo_inst *in, const hlo_sharding *s,
              const hlo_sharding *const *each);
/* Guesses how in would be had, from the guesses of its operands, and notes
 * it. */
void spmd_guess(spmd_flow *f, const hlo_inst *in);
void spmd_guess_flow(spmd_flow *f, const hlo_inst *in);
/* Notes as a guess how in is had already; false: it is whole. */
bool spmd_see_part(spmd_flow *f, const hlo_inst *in);
/* Is in, or is it guessed to be, one of those that are made anew? */
bool spmd_was_anew(const spmd_flow *f, const hlo_inst *in);

/* ---- wants (spmd_want.c) ---- */

/* Finds how users want the values of c, its results being wanted in result[]
 * (NULL: nothing is asked of them). */
void spmd_want(spmd_flow *f, const hlo_comp *c,
               const hlo_sharding *const *result);
/* The sharding that in's users want; NULL: any. */
const hlo_sharding *spmd_wanted(const spmd_flow *f, const hlo_inst *in);
/* How in takes its operands: whole, as they are, or operand k by arg[k] (NULL:
 * whole). */
typedef enum { SPMD_WHOLE, SPMD_ANY, SPMD_CUT } spmd_need;
spmd_need spmd_needs(spmd_flow *f, const hlo_inst *in,
                     const hlo_sharding **arg);

#endif
