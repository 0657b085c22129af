/* The wire of a job that mpiexec has started: messages go by MPI, whose
 * standard ABI (MPI 5) any library may have; Intel MPI and MPICH do.  It is
 * looked for when a process joins.
 *
 * A message is its head, then its parts in pieces; MPI keeps in order what goes
 * from one process to another, and a lock keeps two senders apart.  One thread
 * hears all, so that whoever sends never waits for one who sends to it.  A
 * piece of nothing says that its sender has ended; where a process ends in
 * another way, mpiexec ends all. */
#include "xpu_far.h"
#include "xpu_python.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- MPI ---- */

typedef void *handle;
typedef struct {
    int source, tag, error, internal[5];
} mpi_status;

#define WORLD         ((handle)0x101)
#define RETURN_ERRORS ((handle)0x142)
#define BYTE          ((handle)0x247)
enum { ANY_SOURCE = -1, MULTIPLE = 4096, TAG = 1, TEXT = 512 };

#define FUNCTIONS(X) \
    X(Initialized, (int *)) \
    X(Init_thread, (int *, char ***, int, int *)) \
    X(Query_thread, (int *)) \
    X(Finalize, (void)) \
    X(Comm_rank, (handle, int *)) \
    X(Comm_size, (handle, int *)) \
    X(Comm_idup, (handle, handle *, handle *)) \
    X(Comm_set_errhandler, (handle, handle)) \
    X(Improbe, (int, int, handle, int *, handle *, mpi_status *)) \
    X(Mrecv, (void *, int, handle, handle *, mpi_status *)) \
    X(Get_count, (const mpi_status *, handle, int *)) \
    X(Isend, (const void *, int, handle, int, int, handle, handle *)) \
    X(Test, (handle *, int *, mpi_status *)) \
    X(Request_free, (handle *)) \
    X(Error_string, (int, char *, int *))
typedef struct {
#define X(name, args) int(*name) args;
    FUNCTIONS(X)
#undef X
} mpi;

static bool find(mpi *m)
{
    void *lib = dlopen("libmpi_abi.so.1", RTLD_NOW | RTLD_GLOBAL);

    if (!lib && !(lib = xpu_python_open(false, "libmpi_abi.so.1")))
        return false;
#define X(name, args) \
    if (!(m->name = (int(*) args)(uintptr_t)dlsym(lib, "MPI_" #name))) \
        return false;
    FUNCTIONS(X)
#undef X
    return true;
}

static sd_status said(const mpi *m, int error, const char *call)
{
    char text[TEXT + 1] = "";
    int n = 0;

    if (!error)
        return NULL;
    if (m->Error_string(error, text, &n) || !n)
        snprintf(text, sizeof text, "error %d", error);
    return sd_error(SD_UNAVAILABLE, "MPI_%s: %s", call, text);
}

/* ---- a wire ---- */

enum { MOST_PIECE = 1 << 30, SPIN_NS = 20000 };

typedef struct { /* with one other process */
    int rank;
    pthread_mutex_t lock; /* of sending */
    xpu_far_inlet in;
    _Atomic bool lost;
} line;

struct xpu_wire {
    xpu_far *far;
    int me, n;
    mpi mpi;
    bool finalizes; /* else who has begun MPI does */
    bool hears;
    handle comm;
    pthread_t hearer;
    _Atomic bool stop;
    line at[];
};

/* False: it is not known to have arrived, for *error or since the other process
 * has ended meanwhile and takes nothing any more. */
static bool send_piece(xpu_wire *w, int to, const void *at, size_t bytes,
                       int *error)
{
    mpi_status status;
    handle request;
    int is = 0;

    *error = w->mpi.Isend(at, (int)bytes, BYTE, w->at[to].rank, TAG, w->comm,
                          &request);
    while (!*error && !is) {
        *error = w->mpi.Test(&request, &is, &status);
        if (!is && atomic_load(&w->at[to].lost)) {
            w->mpi.Request_free(&request);
            return false;
        }
        if (!is)
            sched_yield();
    }
    return !*error;
}

static void leave(xpu_wire *w)
{
    int error;

    for (int i = 0; i < w->n && w->hears; i++)
        if (i != w->me && !w->at[i].lost)
            send_piece(w, i, NULL, 0, &error);
    atomic_store(&w->stop, true);
    if (w->hears)
        pthread_join(w->hearer, NULL);
    if (w->finalizes)
        w->mpi.Finalize();
    w->hears = w->finalizes = false;
}

/* Which wire has begun MPI, which a process does once, and is not closed yet.
 */
static xpu_wire *_Atomic begun;

static void leave_at_exit(void)
{
    xpu_wire *w = atomic_exchange(&begun, NULL);

    if (w)
        leave(w);
}

static sd_status begin(xpu_wire *w, int *rank)
{
    const mpi *m = &w->mpi;
    int is = 0, level = 0, size = 0;
    sd_status st;

    if (!find(&w->mpi))
        return sd_error(SD_NOT_FOUND,
                        "no libmpi_abi.so.1 has MPI's standard ABI");
    if ((st = said(m, m->Initialized(&is), "Initialized")) ||
        (st = is ? said(m, m->Query_thread(&level), "Query_thread")
                 : said(m, m->Init_thread(NULL, NULL, MULTIPLE, &level),
                        "Init_thread")))
        return st;
    if (!is) {
        w->finalizes = true;
        begun = w;
        if (atexit(leave_at_exit))
            return sd_no_memory(0);
    }
    if ((st = said(m, m->Comm_rank(WORLD, rank), "Comm_rank")) ||
        (st = said(m, m->Comm_size(WORLD, &size), "Comm_size")))
        return st;
    if (size != w->n || level < MULTIPLE)
        return sd_error(SD_PRECONDITION,
                        "MPI has %d processes, the job %d, and %s: "
                        "SUNDOG_WIRE=sockets does without MPI",
                        size, w->n,
                        level < MULTIPLE ? "not all threads may call it"
                                         : "all threads may call it");
    return NULL;
}

static void wire_close(xpu_wire *w);

static sd_status wire_open(xpu_far *f, int me, int n, const char *address,
                           sd_buf *offer, xpu_wire **out)
{
    size_t bytes = sizeof(xpu_wire) + (size_t)n * sizeof(line);
    xpu_wire *w = calloc(1, bytes);
    sd_status st;
    int rank;

    (void)address; /* mpiexec knows where all are */
    if (!w)
        return sd_no_memory(bytes);
    w->far = f;
    w->me = me;
    w->n = n;
    for (int i = 0; i < n; i++)
        pthread_mutex_init(&w->at[i].lock, NULL);
    if ((st = begin(w, &rank))) {
        wire_close(w);
        return st;
    }
    sd_buf_fmt(offer, "mpi %d", rank);
    *out = w;
    return NULL;
}

/* ---- hearing ---- */

static const char has_ended[] = "it has ended";

/* A process that has not ended itself is told that this one has, or it would
 * wait for what is not sent any more. */
static void lose(xpu_wire *w, int who, const char *why)
{
    line *l = &w->at[who];
    int error;

    if (!atomic_load(&l->lost)) {
        xpu_far_lose(w->far, who, why);
        /* after the reason, which is asked for by whoever sees it */
        atomic_store(&l->lost, true);
        if (why != has_ended)
            send_piece(w, who, NULL, 0, &error);
    }
    xpu_far_inlet_finish(&l->in);
}

/* A piece of so many bytes has come. */
static const char *take_piece(xpu_wire *w, int who, handle *piece, int bytes)
{
    line *l = &w->at[who];
    size_t room;
    uint8_t *to = xpu_far_inlet_room(&l->in, &room);
    mpi_status status;

    if (!bytes)
        return has_ended;
    if ((size_t)bytes > room || (!l->in.m && (size_t)bytes != room))
        return "it sends what is no message";
    if (w->mpi.Mrecv(to, bytes, BYTE, piece, &status))
        return "what it sends cannot be received";
    return xpu_far_inlet_take(&l->in, w->far, who, (size_t)bytes);
}

/* Whoever cannot hear hears nobody: it must not wait for what comes. */
static void lose_all(xpu_wire *w, int error, const char *call)
{
    sd_status st = said(&w->mpi, error, call);

    for (int i = 0; i < w->n && st; i++)
        if (i != w->me)
            lose(w, i, st->message);
    sd_status_free(st);
}

static bool hear_one(xpu_wire *w)
{
    mpi_status status = {0};
    const char *why;
    int is = 0, bytes = 0, who = 0;
    handle piece;
    int error = w->mpi.Improbe(ANY_SOURCE, TAG, w->comm, &is, &piece, &status);

    if (error) {
        lose_all(w, error, "Improbe");
        return false;
    }
    if (!is)
        return false;
    if ((error = w->mpi.Get_count(&status, BYTE, &bytes))) {
        lose_all(w, error, "Get_count");
        return false;
    }
    while (w->at[who].rank != status.source)
        who++;
    if (!w->at[who].lost && (why = take_piece(w, who, &piece, bytes)))
        lose(w, who, why);
    return true;
}

/* Nothing wakes who waits for MPI: it looks often for a moment, then less. */
static void *hear_all(void *arg)
{
    xpu_wire *w = arg;
    uint64_t last = sd_now_ns();

    while (!atomic_load(&w->stop)) {
        uint64_t idle;

        if (hear_one(w)) {
            last = sd_now_ns();
            continue;
        }
        idle = sd_now_ns() - last;
        if (idle > SPIN_NS)
            nanosleep(&(struct timespec){.tv_nsec = idle < 1000000 ? 10000
                                                    : idle < 50000000
                                                        ? 100000
                                                        : 1000000},
                      NULL);
    }
    return NULL;
}

/* ---- joining ---- */

static sd_status read_ranks(xpu_wire *w, const sd_bytes *offer)
{
    for (int i = 0; i < w->n; i++) {
        char text[32] = "";
        int rank = -1;

        memcpy(text, offer[i].at, SD_MIN(offer[i].len, sizeof text - 1));
        if (i == w->me)
            w->mpi.Comm_rank(WORLD, &rank);
        else if (sscanf(text, "mpi %d", &rank) != 1)
            rank = -1;
        for (int k = 0; k < i; k++)
            rank = w->at[k].rank == rank ? -1 : rank;
        if (rank < 0 || rank >= w->n)
            return sd_error(SD_INVALID,
                            "process %d of %d is to be reached at '%s', which "
                            "is no rank of its own: SUNDOG_WIRE must be the "
                            "same in all",
                            i, w->n, text);
        w->at[i].rank = rank;
    }
    return NULL;
}

/* Messages of our own, whatever else the job sends. */
static sd_status make_comm(xpu_wire *w, int seconds)
{
    uint64_t end = sd_now_ns() + (uint64_t)seconds * 1000000000;
    mpi_status status;
    handle request;
    int is = 0;
    sd_status st =
        said(&w->mpi, w->mpi.Comm_idup(WORLD, &w->comm, &request), "Comm_idup");

    while (!st && !is && sd_now_ns() < end)
        st = said(&w->mpi, w->mpi.Test(&request, &is, &status), "Test");
    if (st || !is) {
        w->comm = NULL;
        return st ? st
                  : sd_error(SD_DEADLINE,
                             "not all of %d processes have joined MPI within "
                             "%d s",
                             w->n, seconds);
    }
    return said(&w->mpi, w->mpi.Comm_set_errhandler(w->comm, RETURN_ERRORS),
                "Comm_set_errhandler");
}

static sd_status wire_join(xpu_wire *w, const sd_bytes *offer, int seconds)
{
    sd_status st = read_ranks(w, offer);

    if (st || (st = make_comm(w, seconds)))
        return st;
    st = xpu_far_hear(&w->hearer, hear_all, w);
    w->hears = !st;
    return st;
}

/* ---- sending ---- */

static bool send_part(xpu_wire *w, int to, const uint8_t *at, size_t bytes,
                      int *error)
{
    bool sent = true;

    for (size_t n; bytes && sent; at += n, bytes -= n) {
        n = SD_MIN(bytes, (size_t)MOST_PIECE);
        sent = send_piece(w, to, at, n, error);
    }
    return sent;
}

/* Whoever reads there reads on until it says that it ends: so does this,
 * cancelled or not. */
static sd_status wire_send(xpu_wire *w, int to, const xpu_far_head *h,
                           const struct iovec *part, int npart,
                           const _Atomic bool *cancel)
{
    xpu_far_head head = *h;
    line *l = &w->at[to];
    int error = 0;
    bool sent;

    (void)cancel;
    head.bytes = 0;
    for (int i = 0; i < npart; i++)
        head.bytes += part[i].iov_len;
    pthread_mutex_lock(&l->lock);
    sent =
        !atomic_load(&l->lost) && send_piece(w, to, &head, sizeof head, &error);
    for (int i = 0; i < npart && sent; i++)
        sent = send_part(w, to, part[i].iov_base, part[i].iov_len, &error);
    pthread_mutex_unlock(&l->lock);
    if (error)
        return sd_note(said(&w->mpi, error, "Isend"), "process %d of %d", to,
                       w->n);
    return sent
               ? NULL
               : sd_error(SD_UNAVAILABLE, "process %d of %d is gone", to, w->n);
}

/* ---- closing ---- */

static void wire_close(xpu_wire *w)
{
    xpu_wire *self = w;

    atomic_compare_exchange_strong(&begun, &self, NULL);
    leave(w);
    for (int i = 0; i < w->n; i++) {
        xpu_far_inlet_finish(&w->at[i].in);
        pthread_mutex_destroy(&w->at[i].lock);
    }
    free(w);
}

const xpu_wire_ops xpu_wire_mpi = {
    .name = "mpi",
    .open = wire_open,
    .join = wire_join,
    .send = wire_send,
    .close = wire_close,
};
