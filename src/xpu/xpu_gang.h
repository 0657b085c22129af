/* xpu_gang: a run of one program on several devices.  Participant i of the
 * program is member i.  Members meet at collectives; if one fails, all do.
 *
 *   meet -> read what the others have -> part -> go ... meet ... -> leave
 *
 * Others read a member's memory only between its meet and its part.  A member
 * that leaves early, since the gang has failed, waits in leave until nobody
 * reads it any more; so its memory is freed when its run ends, as always.
 *
 * In a queued gang members meet before their operands are computed, and put
 * copies into their queues instead of reading.  Marks order these copies:
 * after the work that makes what they read, and before the work that the read
 * member puts in after its part.  Where devices can, members have no marks: they
 * meet once on the host, and then wait for each other on their devices
 * (docs/adr/0035).  The members' runs end together, when all have run. */
#ifndef XPU_GANG_H
#define XPU_GANG_H

#include "xpu_execution.h"
#include "xpu_far.h"

/* A gang of n participants, `here` of them in this process.  far (taken) is the
 * run with the other processes; NULL: there are none.  Returns NULL when there
 * is no memory, and far is then still the caller's. */
xpu_gang *xpu_gang_create(int n, int here, xpu_far_run *far, bool queued,
                          const char *name);
/* Of a queued gang: memory (taken) of the host's, pinned by dev, that becomes 1
 * when the gang fails.  Its members then wait for each other on their devices
 * and have no marks. */
void xpu_gang_let_meet(xpu_gang *g, xpu_device *dev, void *stop, int cls);
/* NULL: they do not. */
uint32_t *xpu_gang_stop(const xpu_gang *g);
xpu_gang *xpu_gang_retain(xpu_gang *g);
void xpu_gang_release(xpu_gang *g); /* takes NULL */
int xpu_gang_size(const xpu_gang *g); /* members in this process */
bool xpu_gang_is_queued(const xpu_gang *g);
xpu_far_run *xpu_gang_far(const xpu_gang *g); /* borrowed; NULL: there is none */

/* Member r->me has come to step t.  Returns when all `expected` members of its
 * group that are in this process have come: then r may read their operands
 * (peer) until it parts.  An error: the gang has failed, or r was interrupted.
 * ready (taken): in a queued gang, a mark after which `operand` is computed;
 * else NULL. leads: not NULL if the group has members in other processes.  The
 * last member to come then gets *leads true and returns first: it exchanges
 * operands with the other processes, and calls open, upon which the others
 * return. */
sd_status xpu_gang_meet(const xpu_run *r, const thunk *t, int64_t group,
                        int expected, void *operand, xpu_mark *ready,
                        bool *leads);
/* By the member that leads: opens the meet with what came from other
 * processes, `in`, or with the error st; takes both.  An error: the gang has
 * failed, and r is out of the meet. */
sd_status xpu_gang_open(const xpu_run *r, sd_status st, xpu_far_message *in);
bool xpu_gang_goes_on(const void *run); /* of an xpu_run that leads */
/* Between r's meet and its part. */
void *xpu_gang_peer(const xpu_run *r, int64_t i, xpu_device **dev);
/* In a queued gang, between meet and go: what r puts into its queue from now
 * on comes after member i's operand was computed or, has_read, after i has
 * read. */
sd_status xpu_gang_follow(const xpu_run *r, int64_t i, bool has_read);
/* The message that came from that process; between r's meet and its part. */
const xpu_far_message *xpu_gang_sent(const xpu_run *r, int process);
/* For the member that leads: exchanges operands with other processes, and opens
 * the meet as xpu_gang_open does.  xpu_collective_far.c */
sd_status xpu_swap(const xpu_run *r, const thunk *t, int64_t group);
/* What came from `member`, which is in another process: its operand or, in an
 * all-to-all, its blocks for r alone.  In the memory of *dev; NULL: of the
 * host. Between r's meet and its part. */
uint8_t *xpu_swapped(const xpu_run *r, const thunk_collective *c,
                     int64_t group, int64_t member, xpu_device **dev);
/* Are c's blocks so large that they go from device to device by xpu_ccl? */
bool xpu_swaps_direct(const xpu_run *r, const thunk_collective *c);
/* r has read, or has failed to with st (taken).  Returns when all have.  read
 * (taken): in a queued gang, a mark after r's copies; else NULL. */
sd_status xpu_gang_part(const xpu_run *r, sd_status st, xpu_mark *read);
void xpu_gang_go(const xpu_run *r); /* after part */
/* Of members that wait for each other on their devices: in place of part and
 * go, which wait here.  Takes st. */
sd_status xpu_gang_pass(const xpu_run *r, sd_status st);
uint64_t xpu_gang_number(const xpu_run *r); /* of the meeting; the next, too, is
                                               its own */
/* Member `me` has done or put into its queue all of its program, with the
 * error st (taken).  f: its flight, which is let go when all members have
 * landed; NULL: it has nothing in its queue.  Gives the error that its run
 * ends with. */
sd_status xpu_gang_leave(xpu_gang *g, int me, sd_status st, xpu_flight *f);
/* The flight with which member `me` left has arrived, with the error st
 * (taken). */
void xpu_gang_land(xpu_gang *g, int me, sd_status st);

#endif
