/* A while instruction as the passes over loops see it. */
#ifndef PASSES_LOOP_H
#define PASSES_LOOP_H

#include "passes_priv.h"

typedef struct {
    hlo_inst *in, *init; /* the while, and the tuple that it starts with */
    hlo_comp *cond, *body;
    hlo_inst *cp, *bp; /* their parameters */
    int n;             /* elements of the carry */
} loop;

/* False, and nothing is read, if in is no while, its carry is no tuple, or its
 * computations have other callers. */
bool loop_read(hlo_inst *in, loop *l);
/* Are all users of the tuple x get-tuple-elements? */
bool loop_only_elements(const hlo_inst *x);
/* Is x get-tuple-element i of `of`? */
bool loop_is_element(const hlo_inst *x, const hlo_inst *of, int64_t i);

#endif
