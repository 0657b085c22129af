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
#include "xpu_far.h"

/* Of a program of n participants, `here` of them in this process; far (taken):
 * the others, NULL: there are none.  NULL: no memory, and far is not taken. */
xpu_gang *xpu_gang_create(int n, int here, xpu_far_run *far, const char *name);
xpu_gang *xpu_gang_retain(xpu_gang *g);
void xpu_gang_release(xpu_gang *g); /* takes NULL */
int xpu_gang_size(const xpu_gang *g); /* members in this process */
xpu_far_run *xpu_gang_far(const xpu_gang *g); /* borrowed; NULL: there is none */

/* Member `me` has come to step t, of which `operand` may be read, with the
 * `expected` members of a group.  Returns when all have come: then r reads what
 * it needs (peer), and parts from them, or an error: the gang has failed, or
 * this run was interrupted.
 * leads: NULL, or the group has members in other processes.  The last to come
 * here then leads, and the others wait on: it reads what other processes are to
 * have, gets what they have, and opens the meet with that. */
sd_status xpu_gang_meet(const xpu_run *r, const thunk *t, int64_t group,
                        int expected, void *operand, bool *leads);
/* st and in are taken: getting it has failed, or what came.  An error: the gang
 * has failed, and r is out of the meet. */
sd_status xpu_gang_open(const xpu_run *r, sd_status st, xpu_far_message *in);
bool xpu_gang_goes_on(const void *run); /* of an xpu_run that leads */
void *xpu_gang_peer(const xpu_gang *g, int64_t i, xpu_device **dev);
/* What that process has sent: for r between meet and part. */
const uint8_t *xpu_gang_sent(const xpu_run *r, int process);
/* xpu_collective_far.c: for who leads; opens the meet, as xpu_gang_open does. */
sd_status xpu_swap(const xpu_run *r, const thunk *t, int64_t group);
/* For r between meet and part: what `member`, of another process, has for it:
 * its operand, or in an all-to-all its blocks of it alone. */
const uint8_t *xpu_swapped(const xpu_run *r, const thunk_collective *c,
                           int64_t group, int64_t member);
/* st (taken): reading failed.  Returns when all have read. */
sd_status xpu_gang_part(const xpu_run *r, sd_status st);
/* Member `me` goes, with st (taken): what its run ends with. */
sd_status xpu_gang_leave(xpu_gang *g, int me, sd_status st);

#endif
