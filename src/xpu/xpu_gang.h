/* A run of one program on several devices, its members: participant i of the
 * program is member i.  Members meet at collectives; one that fails fails all.
 *
 * A member's memory is read by others between meet and part, and only there.
 * Who leaves early, because the gang has failed, waits in leave until nobody
 * reads any more, so memory goes when the member's run ends, as that of others
 * does. */
#ifndef XPU_GANG_H
#define XPU_GANG_H

#include "xpu_execution.h"

/* NULL: no memory. */
xpu_gang *xpu_gang_create(int n, const char *name);
xpu_gang *xpu_gang_retain(xpu_gang *g);
void xpu_gang_release(xpu_gang *g); /* takes NULL */
int xpu_gang_size(const xpu_gang *g);

/* Member `me` has come to step t, of which `operand` may be read, with the
 * `expected` members of a group.  Returns when all have come: then r reads what
 * it needs (peer), and parts from them, or an error: the gang has failed, or
 * this run was interrupted. */
sd_status xpu_gang_meet(const xpu_run *r, const thunk *t, int64_t group,
                        int expected, void *operand);
void *xpu_gang_peer(const xpu_gang *g, int64_t i, xpu_device **dev);
/* st (taken): reading failed.  Returns when all have read. */
sd_status xpu_gang_part(const xpu_run *r, sd_status st);
/* Member `me` goes, with st (taken): what its run ends with. */
sd_status xpu_gang_leave(xpu_gang *g, int me, sd_status st);

#endif
