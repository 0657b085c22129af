/* xpu_ccl: copies blocks between devices of several processes by a library
 * with NCCL's functions (docs/adr/0034).  It only moves bytes:
 * xpu_collective_ccl.c says who sends what to whom.  Devices that send each
 * other blocks are a circle (NCCL: a communicator), which its processes make
 * together and keep. */
#ifndef XPU_CCL_H
#define XPU_CCL_H

#include "xpu_device.h"

typedef struct xpu_ccl xpu_ccl;

/* Opens the library that SUNDOG_WIRE names, for all devices of the client.
 * *offer: what the other processes need to know of it. */
sd_status xpu_ccl_open(const xpu_client *c, const sd_options *opt,
                       sd_buf *offer, xpu_ccl **out);
/* Can n processes with these offers use it among each other?  An error says why
 * not. */
sd_status xpu_ccl_agree(const sd_bytes *offer, int n);
void xpu_ccl_close(xpu_ccl *l); /* takes NULL */
size_t xpu_ccl_least(const xpu_ccl *l); /* smaller blocks go in messages */

typedef struct {
    uint8_t at[128];
} xpu_ccl_id;
typedef struct { /* as one of its processes sees it */
    uint64_t key;           /* a number for these devices in this order, the
                               same in all processes */
    int n;
    xpu_device *const *dev; /* [n]; NULL: another process's */
    sd_status (*stop)(const void *ctx); /* an error when waiting is to end */
    const void *ctx;
} xpu_circle;
typedef struct { /* one block: to or from another process's device */
    int at, peer; /* places in the circle; `at` is of this process */
    bool sends;
    void *block;
    size_t bytes;
} xpu_hop;

/* The number of the circle that was made last for that key, the same in all its
 * processes; 0: none, or it was broken off. */
uint64_t xpu_circle_made(xpu_ccl *l, uint64_t key);
/* A new id for a circle: one process asks for it and tells the others. */
sd_status xpu_circle_name(const xpu_ccl *l, xpu_ccl_id *out);
/* make and move are called by one thread of each process at a time, while the
 * devices' queues are empty and their owners wait.  They are done on return.
 * An error breaks the circle off, and all processes have to make it again. */
sd_status xpu_circle_make(xpu_ccl *l, const xpu_circle *c, xpu_ccl_id id);
sd_status xpu_circle_move(xpu_ccl *l, const xpu_circle *c, const xpu_hop *hop,
                          int nhop);
void xpu_circle_drop(xpu_ccl *l, uint64_t key);

#endif
