/* Slices: what hlo_opt_slices.c (chooses a group and an axis), slices_group.c
 * (follows the axis through a graph) and slices_write.c (writes the loops)
 * share.  See hlo_opt_slices.c for the idea.
 *
 * Each instruction of the computation has a slice_node, which goes this way;
 * what stands at an arrow is who takes it:
 *
 *   numbered        count, from_product and remake_depth are known, and stay
 *      |  slice_group_grow, for one axis of the seed
 *      v
 *   member          dim says where its axis is; from_member of what uses it
 *      |  slice_group_grow, when there are no more members
 *      v
 *   levelled        level: in which of the group's loops it is computed
 *      |  slice_loop_read, once a loop, from the last one to the first
 *      v
 *   is_computed     the loop that is read computes it, since it is of that level
 *      |            and leaves it, or since such a member is made of it
 *      |            leaves_loop: a later loop reads it, so its own must give it
 *      |  slice_loop_write, once a loop, from the first one to the last
 *      v
 *   written         in_turn: its slice in the body that is written
 *                   result: the whole of it, if it leaves its loop
 *
 * slice_group_grow begins by making every node `numbered` again. */
#ifndef SLICES_H
#define SLICES_H

#include "matrix.h"

/* Where the axis is in an operand or a result, when it is no dimension. */
enum { SLICE_WHOLE = -1, SLICE_SUM = -2, SLICE_NOT = -3 };

typedef struct {
    hlo_inst *in;
    int64_t count;      /* elements; of a tuple, those of its first array */
    bool from_product;  /* a large product is among what it is made from */
    int8_t remake_depth; /* not 0: it can be made from small arrays by so many
                           cheap operations in a row, in every turn anew */
    bool from_member;   /* a member is among what it is made from */
    bool member;
    int dim;            /* member: its axis; SLICE_SUM: it is summed over it */
    int over;           /* SLICE_SUM: a reduce's dimension, a dot's pair */
    int level;          /* loops run in this order */
    bool is_computed;   /* by the loop that is read or written now */
    bool leaves_loop;   /* another loop of the group reads it */
    hlo_inst *in_turn;  /* its slice, in the body that is written now */
    hlo_inst *result;   /* what its loop gives for it */
} slice_node;

typedef struct {
    sd_arena *a;
    hlo_comp *c;
    slice_node *node; /* by slice_node_of */
    int n;
    hlo_inst *seed;   /* the large value that the group grows from */
    int64_t large;    /* so many elements, or more, are large */
    int64_t extent;   /* of the axis */
    sd_vec(slice_node *) member; /* in the order of c when it is grown */
    int nlevel;
    bool bad; /* one instruction would have the axis twice */
} slice_group;

/* By the number that slice_group_open has left in the instruction. */
static inline slice_node *slice_node_of(const slice_group *g,
                                        const hlo_inst *in)
{
    return &g->node[in->mark];
}
static inline const sd_shape *slice_shape(const hlo_inst *in)
{
    return in->shape->dtype == SD_TUPLE && in->shape->nelem ? in->shape->elem[0]
                                                            : in->shape;
}
static inline size_t slice_bytes(const hlo_inst *in)
{
    return sd_shape_bytes(slice_shape(in));
}
static inline bool slice_is_large(const slice_group *g, const slice_node *x)
{
    return x->count >= g->large;
}
static inline bool slice_is_scalar_constant(const hlo_inst *in)
{
    return in->op == HLO_CONSTANT && sd_shape_is_array(in->shape) &&
           in->shape->rank == 0;
}

/* The dimension of operand k that is dimension dim of in's result.
 * SLICE_WHOLE: the operand has no such dimension; SLICE_NOT: in mixes elements
 * along it. */
int slice_operand_dim(const hlo_inst *in, int k, int dim);
/* Is in computed for a part of dimension dim from parts of its operands? */
bool slice_can_cut(const hlo_inst *in, int dim);
/* Where the axis of the member x is in its operand k. */
int slice_edge(const slice_node *x, int k);

/* Numbers the instructions of seed's computation; what has more than
 * half as many elements as seed is large. */
void slice_group_open(slice_group *g, sd_arena *a, hlo_inst *seed);
/* Finds the members that dimension `axis` of the seed runs through, and their
 * levels.  May be called once for each axis.  False: it cannot be cut there. */
bool slice_group_grow(slice_group *g, int axis);

/* ---- the loops (slices_write.c) ---- */

typedef struct { /* an operand of a turn that the loop does not compute */
    hlo_inst *in;
    int dim;           /* its axis; SLICE_WHOLE: the turn reads all of it */
    bool is_remade;    /* in each turn; else it is an input of the loop */
    int at;            /* inputs: which element of the carry */
    hlo_inst *in_turn; /* its slice, in the body */
} slice_value;

typedef struct {
    slice_group *g;
    int level; /* which of the group's loops */
    sd_map *seen;
    sd_vec(slice_value *) value;
    sd_vec(slice_node *) out; /* members that leave it */
    size_t whole, sums; /* bytes that every turn reads whole; that every turn
                           reads and writes, as sums over the axis */
    int64_t rows, turns; /* positions of a turn; how many turns */
    matrix_loop loop;
    hlo_inst *start;   /* position at which the turn's slice begins */
    hlo_inst *repeats; /* how many positions the turn before had, too; NULL:
                          none */
} slice_loop;

/* Is x used outside of the group, or by another of its loops? */
bool slice_leaves(const slice_group *g, const slice_node *x);
int64_t slice_depth(const hlo_inst *dot); /* terms of one of its sums */
/* Reads the loop of that level, from the members that leave it back to its
 * inputs: sets is_computed, and leaves_loop of members of earlier levels. */
void slice_loop_read(slice_loop *l, slice_group *g, int level);
/* Writes the loop of that level, with `rows` positions a turn.  Returns its
 * body, or NULL if nothing leaves it; sets in_turn and result of its
 * members. */
hlo_comp *slice_loop_write(slice_group *g, int level, int64_t rows);

#endif
