/* xpu_far: other processes of the same job (docs/adr/0031).  For each list of
 * devices, every process counts the runs on it in the same order, so that run
 * 7 is the same run everywhere.  A message says which run it belongs to, and
 * which of its collectives; so messages may overtake each other, but for those
 * between the same two processes in one collective.  A wire, which is a table
 * of four functions, moves them. */
#ifndef XPU_FAR_H
#define XPU_FAR_H

#include "xpu_ccl.h"

#include <sys/uio.h>

typedef struct xpu_far xpu_far;
typedef struct xpu_far_run xpu_far_run;
typedef struct xpu_wire xpu_wire;

/* ---- messages, as they travel: little-endian, as all that we run on ---- */

enum { XPU_FAR_MAGIC = 0x31474453, XPU_FAR_TEXT = 1024 };
#define XPU_FAR_MOST (UINT64_C(1) << 39) /* bytes; what says more is no message */
typedef enum {
    XPU_FAR_DATA = 1,
    XPU_FAR_FAILED,
    XPU_FAR_ARRAY, /* of no run: xpu_move.c */
    XPU_FAR_NO_ARRAY
} xpu_far_kind;
typedef struct {
    uint32_t magic, kind;
    uint64_t places, run; /* the run that it belongs to; ARRAY: the key */
    uint64_t program;     /* hash of the sender's program; ARRAY: of the array's
                             type and dimensions */
    int64_t group;        /* ARRAY: the device that it goes to */
    uint32_t step; /* DATA: the collective; FAILED, NO_ARRAY: the error's code */
    uint32_t none;
    uint64_t bytes; /* that follow: blocks; the error's text */
} xpu_far_head;

typedef struct { /* blocks that came to a device by xpu_ccl, not in a message */
    xpu_device *dev; /* borrowed */
    void *at;
    int cls; /* of its memory */
} xpu_piece;
typedef struct xpu_far_message xpu_far_message;
struct xpu_far_message {
    xpu_far_message *next;
    int from;
    xpu_piece *piece; /* its blocks, owned; NULL: they are data */
    int npiece;
    xpu_far_head head;
    uint8_t data[];
};
/* Starts a wire's thread that listens to the other processes. */
sd_status xpu_far_hear(pthread_t *t, void *(*hear)(void *), xpu_wire *w);
/* With room for head.bytes of data; NULL: no memory. */
xpu_far_message *xpu_far_message_make(int from, const xpu_far_head *h);
void xpu_far_message_free(xpu_far_message *m); /* with those behind it */

/* What a wire is reading from one other process; zeroed to begin with. */
typedef struct {
    xpu_far_head head;
    xpu_far_message *m; /* NULL: its head is read */
    size_t got;         /* bytes of either */
} xpu_far_inlet;
/* Where the next bytes go, and how many they may be. */
uint8_t *xpu_far_inlet_room(xpu_far_inlet *in, size_t *bytes);
/* So many are there; a whole message is delivered.  Not NULL: why nothing more
 * may come. */
const char *xpu_far_inlet_take(xpu_far_inlet *in, xpu_far *f, int from,
                               size_t bytes);
void xpu_far_inlet_finish(xpu_far_inlet *in);

/* ---- a wire ---- */

typedef struct {
    const char *name;
    /* Gets ready to be reached; *offer gets what the others need to reach this
     * process.  NOT_FOUND: a library is missing. */
    sd_status (*open)(xpu_far *f, int me, int n, const char *address,
                      sd_buf *offer, xpu_wire **out);
    /* Connects to all others, within so many seconds; offer[n] are the offers
     * of all, of which its own is not read. */
    sd_status (*join)(xpu_wire *w, const sd_bytes *offer, int seconds);
    /* Any thread.  Returns when the caller may change the bytes.  The other
     * process's thread always reads on, so this ends; if nothing is read for a
     * second and *cancel is true, it ends with an error, and the connection
     * with it. */
    sd_status (*send)(xpu_wire *w, int to, const xpu_far_head *h,
                      const struct iovec *part, int npart,
                      const _Atomic bool *cancel);
    void (*close)(xpu_wire *w); /* takes what open or join left */
} xpu_wire_ops;
extern const xpu_wire_ops xpu_wire_sockets; /* xpu_sockets.c */
extern const xpu_wire_ops xpu_wire_mpi; /* xpu_mpi.c */

/* The message m (taken) has come. */
void xpu_far_deliver(xpu_far *f, xpu_far_message *m);
/* The wire says that process `who` is gone, and why. */
void xpu_far_lose(xpu_far *f, int who, const char *why);

/* ---- this process among n ---- */

sd_status xpu_far_create(int me, int n, xpu_far **out);
/* Takes NULL.  xpu_far_end may still be called afterwards, for runs that never
 * began. */
void xpu_far_destroy(xpu_far *f);
sd_status xpu_far_open(xpu_far *f, const xpu_wire_ops *ops,
                       const char *address, sd_buf *offer);
sd_status xpu_far_join(xpu_far *f, const sd_bytes *offer, int seconds);
/* From now on large blocks go by l (taken). */
void xpu_far_take_ccl(xpu_far *f, xpu_ccl *l);
int xpu_far_me(const xpu_far *f);
int xpu_far_size(const xpu_far *f); /* processes of the job */
xpu_far *xpu_far_retain(xpu_far *f);
void xpu_far_release(xpu_far *f);
/* Why that process is gone (a copy); NULL: it is there. */
sd_status xpu_far_lost(xpu_far *f, int who);
/* As the wire's send. */
sd_status xpu_far_send(xpu_far *f, int to, const xpu_far_head *h,
                       const struct iovec *part, int npart,
                       const _Atomic bool *cancel);

/* ---- arrays that go to other processes: xpu_move.c ---- */

typedef struct xpu_moves xpu_moves;
xpu_moves *xpu_moves_create(void); /* NULL: no memory */
void xpu_moves_stop(xpu_moves *v); /* nothing is sent from now on */
void xpu_moves_free(xpu_moves *v); /* takes NULL */
xpu_moves *xpu_far_moves(const xpu_far *f);
void xpu_moves_deliver(xpu_moves *v, xpu_far_message *m); /* takes m */
/* Fails whatever is awaited from process `who`, which is gone. */
void xpu_moves_lose(xpu_moves *v, int who, const sd_error *why);

/* ---- a run that others take part in ---- */

/* The next run on these places.  Whoever begins a run and then does not run it
 * must call fail, or the other processes wait for it. */
sd_status xpu_far_begin(xpu_far *f, const xpu_places *p,
                        const xpu_program *program, xpu_far_run **out);
void xpu_far_end(xpu_far_run *r); /* takes NULL */
/* The run has failed here; the first call tells the others. */
void xpu_far_fail(xpu_far_run *r, const sd_error *st);
bool xpu_far_is_here(const xpu_far_run *r, int64_t participant);
int xpu_far_process(const xpu_far_run *r, int64_t participant);
int xpu_far_count(const xpu_far_run *r); /* as xpu_far_size */
uint64_t xpu_far_places(const xpu_far_run *r);
/* The reason why the run cannot go on, another process's error or that it is
 * gone; NULL: it can. */
sd_status xpu_far_objection(xpu_far_run *r);
xpu_ccl *xpu_far_ccl(const xpu_far_run *r); /* NULL: blocks go in messages */

typedef struct { /* with one other process, in one collective */
    int process;
    struct iovec *part; /* what it gets */
    int npart;
    size_t want; /* bytes that come from it */
    xpu_far_message *in; /* and here they are: a reference */
} xpu_far_peer;
/* Sends to all peers and receives from all.  It ends early, with an error, when
 * go_on(ctx) is false. */
sd_status xpu_far_exchange(xpu_far_run *r, int step, int64_t group,
                           xpu_far_peer *peer, int npeer,
                           bool (*go_on)(const void *ctx), const void *ctx,
                           const _Atomic bool *cancel);

#endif
