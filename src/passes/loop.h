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

/* False for loops of another form: the carry is no tuple, or its computations
 * have other callers. */
bool loop_read(hlo_inst *in, loop *l);
/* Does every use of a tuple take it apart? */
bool loop_only_elements(const hlo_inst *x);
bool loop_is_element(const hlo_inst *x, const hlo_inst *of, int64_t i);

#endif
