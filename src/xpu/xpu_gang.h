/* A run of one program on several devices, its members: participant i of the
 * program is member i.  Members meet at collectives; one that fails fails all.
 *
 * A member's memory is read by others between meet and part, and only there.
 * Who leaves early, because the gang has failed, waits in leave until nobody
 * reads any more, so memory goes when the member's run ends, as that of others
 * does.
 *
 * Members of a queued gang meet while what they are to read is still to be
 * computed.  What they put into their queues between meet and part is ordered
 * by marks: behind those of the members that are read, and before what comes
 * after part there.  Their runs end together, when all have run. */
#ifndef XPU_GANG_H
#define XPU_GANG_H

#include "xpu_execution.h"
#include "xpu_far.h"

/* Of a program of n participants, `here` of them in this process; far (taken):
 * the others, NULL: there are none.  NULL: no memory, and far is not taken. */
xpu_gang *xpu_gang_create(int n, int here, xpu_far_run *far, bool queued,
                          const char *name);
xpu_gang *xpu_gang_retain(xpu_gang *g);
void xpu_gang_release(xpu_gang *g); /* takes NULL */
int xpu_gang_size(const xpu_gang *g); /* members in this process */
bool xpu_gang_is_queued(const xpu_gang *g);
xpu_far_run *xpu_gang_far(const xpu_gang *g); /* borrowed; NULL: there is none */

/* Member `me` has come to step t, of which `operand` may be read, with the
 * `expected` members of a group.  Returns when all have come: then r reads what
 * it needs (peer), parts from them and goes, or an error: the gang has failed,
 * or this run was interrupted.
 * ready (taken): of a queued gang, where operand is there; else NULL.
 * leads: NULL, or the group has members in other processes.  The last to come
 * here then leads, and the others wait on: it reads what other processes are to
 * have, gets what they have, and opens the meet with that. */
sd_status xpu_gang_meet(const xpu_run *r, const thunk *t, int64_t group,
                        int expected, void *operand, xpu_mark *ready,
                        bool *leads);
/* st and in are taken: getting it has failed, or what came.  An error: the gang
 * has failed, and r is out of the meet. */
sd_status xpu_gang_open(const xpu_run *r, sd_status st, xpu_far_message *in);
bool xpu_gang_goes_on(const void *run); /* of an xpu_run that leads */
void *xpu_gang_peer(const xpu_gang *g, int64_t i, xpu_device **dev);
/* What r puts into its queue from now on comes after member i's operand is
 * there or, after part, after i has read.  Of a queued gang, until r goes. */
sd_status xpu_gang_follow(const xpu_run *r, int64_t i, bool has_read);
/* What that process has sent: for r between meet and part. */
const xpu_far_message *xpu_gang_sent(const xpu_run *r, int process);
/* xpu_collective_far.c: for who leads; opens the meet, as xpu_gang_open does. */
sd_status xpu_swap(const xpu_run *r, const thunk *t, int64_t group);
/* For r between meet and part: where `member`, of another process, has what it
 * reads: the operand, or in an all-to-all its blocks of it alone.  *dev: NULL
 * where that is host memory. */
uint8_t *xpu_swapped(const xpu_run *r, const thunk_collective *c,
                     int64_t group, int64_t member, xpu_device **dev);
/* Blocks of that size go from device to device, and the host sees none. */
bool xpu_swaps_direct(const xpu_run *r, const thunk_collective *c);
/* st (taken): reading failed.  Returns when all have read; read (taken): of a
 * queued gang, where r has, or NULL. */
sd_status xpu_gang_part(const xpu_run *r, sd_status st, xpu_mark *read);
void xpu_gang_go(const xpu_run *r); /* after part */
/* Member `me` has put in, or done, all that it will, with st (taken): what its
 * run ends with.  f: what it has in its queue, which waits to be let go when it
 * and all others have landed; NULL: nothing. */
sd_status xpu_gang_leave(xpu_gang *g, int me, sd_status st, xpu_flight *f);
/* What `me` left with has run, with st (taken). */
void xpu_gang_land(xpu_gang *g, int me, sd_status st);

#endif
