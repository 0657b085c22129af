/* Blocks from device to device of several processes, by a library that has
 * NCCL's functions: docs/adr/0034.  It only moves bytes; who sends what to whom
 * is xpu_collective_ccl.c.  Devices that move blocks among themselves are a
 * circle, which all of its processes make together and keep. */
#ifndef XPU_CCL_H
#define XPU_CCL_H

#include "xpu_device.h"

typedef struct xpu_ccl xpu_ccl;

/* SUNDOG_WIRE's, for all devices of the client.  *offer: what the other processes
 * need to know of it; what is in it after an error means nothing. */
sd_status xpu_ccl_open(const xpu_client *c, const sd_options *opt,
                       sd_buf *offer, xpu_ccl **out);
/* NULL, or why not all of n processes can move blocks to each other so. */
sd_status xpu_ccl_agree(const sd_bytes *offer, int n);
void xpu_ccl_close(xpu_ccl *l); /* takes NULL */
size_t xpu_ccl_least(const xpu_ccl *l); /* bytes of a block that it is worth */

typedef struct {
    uint8_t at[128];
} xpu_ccl_id;
typedef struct { /* as one of its processes sees it */
    uint64_t key;           /* which devices in which order, in all processes */
    int n;
    xpu_device *const *dev; /* [n]; NULL: another process's */
    sd_status (*stop)(const void *ctx); /* why to go on no more, or NULL */
    const void *ctx;
} xpu_circle;
typedef struct { /* one block: to or from another process's device */
    int at, peer; /* places in the circle; `at` is of this process */
    bool sends;
    void *block;
    size_t bytes;
} xpu_hop;

/* What was made of it last: the same number in all its processes; 0: nothing,
 * or it was broken off. */
uint64_t xpu_circle_made(xpu_ccl *l, uint64_t key);
/* By one process, which tells the others. */
sd_status xpu_circle_name(const xpu_ccl *l, xpu_ccl_id *out);
/* By one thread of each process at a time; the devices' queues are empty, and
 * whoever owns them waits.  Done on return.  An error breaks it off, and it is
 * to be made anew by all. */
sd_status xpu_circle_make(xpu_ccl *l, const xpu_circle *c, xpu_ccl_id id);
sd_status xpu_circle_move(xpu_ccl *l, const xpu_circle *c, const xpu_hop *hop,
                          int nhop);
void xpu_circle_drop(xpu_ccl *l, uint64_t key);

#endif
