/* Slices: what hlo_opt_slices.c (chooses groups), slices_group.c (follows an
 * axis through a graph) and slices_write.c (writes the loops) share.  See
 * hlo_opt_slices.c for the idea. */
#ifndef SLICES_H
#define SLICES_H

#include "matrix.h"

/* Where the axis is in an operand or a result, when it is no dimension. */
enum { SLICE_WHOLE = -1, SLICE_SUM = -2, SLICE_NOT = -3 };

typedef struct {
    hlo_inst *in;
    int64_t count; /* elements; of a tuple, those of its first array */
    int dim;       /* of a member: the axis; SLICE_SUM: it is summed over */
    int over;      /* SLICE_SUM: a reduce's dimension, a dot's pair */
    int level;     /* the loops run in this order */
    bool member;
    bool below;    /* made from a member */
    bool deep;     /* made from a large product */
    int8_t again;  /* not 0: cheap to make again from small arrays; how long
                     the chain is */
    bool wanted;   /* it leaves its loop for another one */
    bool needed;   /* by the loop that is looked at */
    hlo_inst *copy; /* in the loop that is written */
    hlo_inst *out;  /* what its loop gives for it */
} slice_node;

typedef struct {
    sd_arena *a;
    hlo_comp *c;
    slice_node *node; /* by mark of the instructions of c */
    int n;
    hlo_inst *seed;
    int64_t large; /* at least so many elements are large */
    int64_t extent;
    sd_vec(slice_node *) member; /* in the order of c when it is grown */
    int nlevel;
    bool bad; /* one instruction would have the axis twice */
} slice_group;

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

/* The dimension of operand k that is dimension dim of in's result; WHOLE: the
 * operand has no such dimension; NOT: its elements do not stay apart. */
int slice_operand_dim(const hlo_inst *in, int k, int dim);
/* Is in computed for a part of dimension dim from parts of its operands? */
bool slice_can_cut(const hlo_inst *in, int dim);
/* The same of a member: where the axis is in operand k. */
int slice_edge(const slice_node *x, int k);

/* The computation's instructions numbered and looked at; seed says what is
 * large.  Then grow, as often as wanted: everything that dimension `axis` of
 * the seed runs through, and the levels.  False: it cannot be cut there. */
void slice_group_open(slice_group *g, sd_arena *a, hlo_inst *seed);
bool slice_group_grow(slice_group *g, int axis);

/* ---- the loops (slices_write.c) ---- */

typedef struct { /* what a turn has that is no member of its loop */
    hlo_inst *in;
    int dim;
    bool again;     /* made in the turn, else an input */
    int at;         /* inputs: element of the state */
    hlo_inst *copy; /* in the body */
} slice_value;

typedef struct {
    slice_group *g;
    int level; /* which of the group's loops */
    sd_map *seen;
    sd_vec(slice_value *) value;
    sd_vec(slice_node *) out; /* what leaves it */
    size_t whole, sums; /* bytes that every turn reads, or reads and writes */
    int64_t rows, turns;
    matrix_loop loop;
    hlo_inst *start;   /* of the slice */
    hlo_inst *repeats; /* positions that the turn before had; NULL: none */
} slice_loop;

/* Is x used outside of the group, or by another of its loops? */
bool slice_leaves(const slice_group *g, const slice_node *x);
int64_t slice_depth(const hlo_inst *dot); /* terms of one of its sums */
/* The loop of that level, from what leaves it back to what it takes; marks what
 * is needed, and what is wanted of the levels before. */
void slice_loop_read(slice_loop *l, slice_group *g, int level);
/* Writes it, `rows` positions a turn; returns the body, or NULL if nothing
 * leaves it.  What it gives is in the members' `out`. */
hlo_comp *slice_loop_write(slice_group *g, int level, int64_t rows);

#endif
