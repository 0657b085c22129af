/* The calls of MPI's standard ABI that a wire makes: fake_mpi.h. */
#include "fake_mpi.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *handle;
typedef struct {
    int source, tag, error, internal[5];
} mpi_status;
typedef struct message message;
struct message {
    message *next;
    int source;
    size_t bytes;
    uint8_t data[];
};
typedef struct {
    message *come, *taken; /* the former's last is the oldest */
} box;

static char stuck; /* a request that is never done */
enum { MOST = 8, SERIAL = 0, MULTIPLE = 4096, OTHER = 15 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static box of[MOST];
static int size;
static _Atomic int ncame;
static const char *_Atomic wrong;
static _Atomic bool says_nothing;
static _Thread_local int me;

/* ---- what tests say ---- */

static void drop(message **all)
{
    while (*all) {
        message *m = *all;

        *all = m->next;
        free(m);
    }
}

void fake_mpi_begin(int n)
{
    for (int i = 0; i < MOST; i++) {
        drop(&of[i].come);
        drop(&of[i].taken);
    }
    size = n;
    ncame = 0;
    fake_mpi_spoil(NULL, false);
}

void fake_mpi_spoil(const char *what, bool silent)
{
    wrong = what;
    says_nothing = silent;
}

/* The lock is held. */
static void put(int from, int to, const void *at, size_t n)
{
    message *m = malloc(sizeof *m + n);

    if (!m)
        abort();
    m->source = from;
    m->bytes = n;
    if (n)
        memcpy(m->data, at, n);
    m->next = of[to].come;
    of[to].come = m;
}

void fake_mpi_put_both(const void *at, size_t n)
{
    pthread_mutex_lock(&lock);
    put(0, 1, at, n);
    put(1, 0, at, n);
    pthread_mutex_unlock(&lock);
}

/* ---- MPI ---- */

static bool is_wrong(const char *what)
{
    const char *now = wrong;

    return now && !strcmp(now, what);
}

/* Of MPI_Isend, say. */
static int answer(const char *call)
{
    return is_wrong(call + 4) ? OTHER : 0;
}

#define CALL(name, ...) \
    FAKE_MPI int MPI_##name(__VA_ARGS__); \
    int MPI_##name(__VA_ARGS__)

CALL(Initialized, int *is)
{
    me = ncame++;
    *is = is_wrong("begun");
    return answer(__func__);
}

CALL(Init_thread, int *argc, char ***argv, int want, int *level)
{
    (void)argc;
    (void)argv;
    *level = is_wrong("level") ? SERIAL : want;
    return answer(__func__);
}

CALL(Query_thread, int *level)
{
    *level = MULTIPLE;
    return is_wrong("begun") ? OTHER : 0;
}

CALL(Finalize, void)
{
    return 0;
}

CALL(Comm_rank, handle comm, int *rank)
{
    (void)comm;
    *rank = is_wrong("rank") ? 0 : me;
    return answer(__func__);
}

CALL(Comm_size, handle comm, int *n)
{
    (void)comm;
    *n = size;
    return answer(__func__);
}

CALL(Comm_idup, handle comm, handle *out, handle *request)
{
    (void)comm;
    *out = &of[me];
    *request = NULL;
    return answer(__func__);
}

CALL(Comm_set_errhandler, handle comm, handle what)
{
    (void)comm;
    (void)what;
    return answer(__func__);
}

CALL(Isend, const void *at, int n, handle type, int to, int tag, handle comm,
     handle *request)
{
    (void)type;
    (void)tag;
    *request = NULL;
    if (answer(__func__))
        return OTHER;
    if (n && is_wrong("deaf")) {
        *request = &stuck;
        return 0;
    }
    pthread_mutex_lock(&lock);
    put((int)((box *)comm - of), to, at, (size_t)n);
    pthread_mutex_unlock(&lock);
    return 0;
}

CALL(Test, handle *request, int *is, mpi_status *status)
{
    (void)status;
    *is = !is_wrong("alone") && *request != &stuck;
    return answer(__func__);
}

CALL(Request_free, handle *request)
{
    *request = NULL;
    return 0;
}

CALL(Improbe, int source, int tag, handle comm, int *is, handle *piece,
     mpi_status *status)
{
    box *b = comm;
    message **at = &b->come;
    int err;

    (void)source;
    (void)tag;
    pthread_mutex_lock(&lock);
    /* asked here, or what one tells who fails would reach one who does not yet
     */
    err = answer(__func__);
    *is = !err && *at;
    while (*is && (*at)->next)
        at = &(*at)->next;
    if (*is) {
        message *m = *at;

        *at = NULL;
        m->next = b->taken;
        b->taken = m;
        *piece = m;
        *status =
            (mpi_status){.source = m->source, .internal = {(int)m->bytes}};
    }
    pthread_mutex_unlock(&lock);
    return err;
}

CALL(Get_count, const mpi_status *status, handle type, int *n)
{
    (void)type;
    *n = status->internal[0];
    return answer(__func__);
}

CALL(Mrecv, void *to, int n, handle type, handle *piece, mpi_status *status)
{
    (void)type;
    (void)status;
    if (answer(__func__))
        return OTHER;
    memcpy(to, ((message *)*piece)->data, (size_t)n);
    *piece = NULL;
    return 0;
}

CALL(Error_string, int error, char *text, int *n)
{
    if (says_nothing)
        return OTHER;
    *n = sprintf(text, "as the test says, %d", error);
    return 0;
}
