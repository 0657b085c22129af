/* What processes send each other in a collective: the pieces of
 * xpu_collective_far.c, which go in messages or, large ones, from device to
 * device (xpu_collective_ccl.c). */
#ifndef XPU_SWAP_H
#define XPU_SWAP_H

#include "xpu_gang.h"

typedef struct {
    const xpu_run *r;
    xpu_far_run *far;
    thunk_collective c;
    int64_t group;
} xpu_swapping;

/* Members of the group; a pair's two stand beside each other; -1: nobody. */
const int64_t *xpu_swap_members(const xpu_swapping *s, int64_t *n);
size_t xpu_swap_piece_bytes(const xpu_swapping *s);
size_t xpu_swap_pieces(const xpu_swapping *s, int from, int to);
/* Whose operand, or rows of it, piece k of those is, and whose device gets it. */
void xpu_swap_piece(const xpu_swapping *s, int from, int to, size_t k,
                    int64_t *sender, int64_t *receiver);
/* All pieces to and from these processes; *in: what came. */
sd_status xpu_swap_direct(const xpu_swapping *s, int step, xpu_far_peer *peer,
                          int npeer, xpu_far_message **in);

#endif
