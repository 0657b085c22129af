/* The loops of a kernel's nest: what a kernel (emit_kernel.c) opens for a tile. */
#ifndef EMIT_OUTER_H
#define EMIT_OUTER_H

#include "emit.h"

typedef struct {
    LLVMValueRef lo, hi;
    int64_t most; /* positions, of which there is one at least; 0: not known */
} emit_range;

typedef struct {
    emit *e;
    emit_range range[EMIT_AXES]; /* of the tile */
    const plan_cut *cut; /* of the axes that are not open yet, or NULL */
    bool asks; /* the stretch that is open is none that is known */
} emit_nest;

/* The loops from number i of the nest on, and what is inside of all. */
void emit_outer(emit_nest *t, int i);

#endif
