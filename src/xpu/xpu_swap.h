/* xpu_swap: what processes send each other in one collective.  It is sent in
 * pieces, which xpu_collective_far.c numbers; small ones go in messages, large
 * ones from device to device (xpu_collective_ccl.c). */
#ifndef XPU_SWAP_H
#define XPU_SWAP_H

#include "xpu_gang.h"

typedef struct {
    const xpu_run *r;
    xpu_far_run *far;
    thunk_collective c;
    int64_t group;
} xpu_swapping;

/* The members of the group, *n of them; -1: nobody.  Of a PERMUTE all pairs,
 * one after the other. */
const int64_t *xpu_swap_members(const xpu_swapping *s, int64_t *n);
size_t xpu_swap_piece_bytes(const xpu_swapping *s);
size_t xpu_swap_pieces(const xpu_swapping *s, int from, int to);
/* Piece k of what process `from` sends to process `to`: whose operand it is of,
 * and whose device gets it. */
void xpu_swap_piece(const xpu_swapping *s, int from, int to, size_t k,
                    int64_t *sender, int64_t *receiver);
/* Sends these processes their pieces from device to device and receives theirs:
 * *in. */
sd_status xpu_swap_direct(const xpu_swapping *s, int step, xpu_far_peer *peer,
                          int npeer, xpu_far_message **in);

#endif
