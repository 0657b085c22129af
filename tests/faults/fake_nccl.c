/* The calls of NCCL that move blocks: fake_nccl.h. */
#include "fake_nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS, CUDA_ERROR, INTERNAL = 3, IN_PROGRESS = 7, MOST_OPS = 64 };

typedef struct {
    uint64_t world;
    uint8_t more[120];
} unique_id;
typedef struct comm comm;
typedef struct op op;
struct op {
    op *next; /* of all, or of what has been sent */
    comm *comm;
    int peer;
    bool sends;
    void *at;
    size_t bytes;
    void *stream;
};
struct comm {
    comm *next;
    uint64_t world;
    int rank, n;
    bool aborted, looked;
};
typedef struct letter letter;
struct letter {
    letter *next;
    uint64_t world;
    int from, to;
    size_t bytes;
    uint8_t data[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static fake_nccl_words words;
static long ncall, nlook, narrived;
static uint64_t nworld;
static comm *comms;
static op *ops;
static letter *letters;
static int (*launch)(void *stream, void (*fn)(void *), void *ctx);
static _Thread_local op group[MOST_OPS];
static _Thread_local int ngroup;

/* ---- what tests say ---- */

void fake_nccl_begin(void *driver, fake_nccl_words now)
{
    for (comm *c = comms, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    for (op *o = ops, *next; o; o = next) {
        next = o->next;
        free(o);
    }
    for (letter *l = letters, *next; l; l = next) {
        next = l->next;
        free(l);
    }
    comms = NULL;
    ops = NULL;
    letters = NULL;
    ncall = nlook = narrived = 0;
    words = now;
    launch = (int (*)(void *, void (*)(void *), void *))(uintptr_t)dlsym(
        driver, "cuLaunchHostFunc");
}

long fake_nccl_calls(void)
{
    return ncall;
}

long fake_nccl_looks(void)
{
    return nlook;
}

long fake_nccl_bytes(void)
{
    return narrived;
}

static int answer(void)
{
    int error;

    pthread_mutex_lock(&lock);
    error = ++ncall == words.fails ? INTERNAL : SUCCESS;
    pthread_mutex_unlock(&lock);
    return error;
}

#define CALL(name, ...) \
    FAKE_NCCL int nccl##name(__VA_ARGS__); \
    int nccl##name(__VA_ARGS__)

/* ---- communicators ---- */

FAKE_NCCL const char *ncclGetErrorString(int error);
const char *ncclGetErrorString(int error)
{
    return error == CUDA_ERROR ? "the driver fails" : "as the test says";
}

CALL(GetVersion, int *out)
{
    *out = words.version;
    return answer();
}

CALL(GetUniqueId, unique_id *out)
{
    pthread_mutex_lock(&lock);
    *out = (unique_id){.world = ++nworld};
    pthread_mutex_unlock(&lock);
    return answer();
}

CALL(CommInitRankConfig, comm **out, int n, unique_id id, int rank,
     const void *config)
{
    int error = answer();
    comm *c = error ? NULL : calloc(1, sizeof *c);

    (void)config;
    if (!c)
        return error ? error : INTERNAL;
    *c = (comm){.world = id.world, .rank = rank, .n = n};
    pthread_mutex_lock(&lock);
    c->next = comms;
    *out = comms = c;
    pthread_mutex_unlock(&lock);
    return IN_PROGRESS;
}

/* All ranks have come; what was called is done at the second look. */
CALL(CommGetAsyncError, comm *c, int *state)
{
    int error = answer(), come = 0;

    pthread_mutex_lock(&lock);
    for (const comm *k = comms; k; k = k->next)
        come += k->world == c->world;
    *state =
        come < c->n || !c->looked || words.turns < 0 ? IN_PROGRESS : SUCCESS;
    c->looked = true;
    if (++nlook == words.turns)
        *state = INTERNAL;
    pthread_mutex_unlock(&lock);
    return error;
}

CALL(CommAbort, comm *c)
{
    pthread_mutex_lock(&lock);
    c->aborted = true;
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&lock);
    return answer();
}

/* ---- blocks ---- */

/* In the stream; the lock is held. */
static void put(const op *o)
{
    letter *l = malloc(sizeof *l + o->bytes), **last = &letters;

    if (!l)
        abort();
    *l = (letter){.world = o->comm->world,
                  .from = o->comm->rank,
                  .to = o->peer,
                  .bytes = o->bytes};
    memcpy(l->data, o->at, o->bytes);
    while (*last)
        last = &(*last)->next;
    *last = l;
    pthread_cond_broadcast(&news);
}

static bool take(const op *o)
{
    for (letter **at = &letters, *l; (l = *at); at = &l->next)
        if (l->world == o->comm->world && l->from == o->peer &&
            l->to == o->comm->rank) {
            if (l->bytes != o->bytes)
                abort();
            memcpy(o->at, l->data, l->bytes);
            narrived += (long)l->bytes;
            *at = l->next;
            free(l);
            return true;
        }
    return false;
}

static void run(void *ctx)
{
    const op *o = ctx;

    pthread_mutex_lock(&lock);
    if (o->sends && !o->comm->aborted)
        put(o);
    while (!o->sends && !o->comm->aborted && !take(o))
        pthread_cond_wait(&news, &lock);
    pthread_mutex_unlock(&lock);
}

CALL(GroupStart, void)
{
    ngroup = 0;
    return answer();
}

static int add(op o)
{
    int error = answer();

    if (!error && ngroup < MOST_OPS)
        group[ngroup++] = o;
    return error;
}

CALL(Send, const void *at, size_t bytes, int type, int peer, comm *c,
     void *stream)
{
    (void)type;
    return add((op){.comm = c,
                    .peer = peer,
                    .sends = true,
                    .at = (void *)(uintptr_t)at,
                    .bytes = bytes,
                    .stream = stream});
}

CALL(Recv, void *at, size_t bytes, int type, int peer, comm *c, void *stream)
{
    (void)type;
    return add((op){
        .comm = c, .peer = peer, .at = at, .bytes = bytes, .stream = stream});
}

static int put_in(const op *what)
{
    op *o = malloc(sizeof *o);

    if (!o)
        return INTERNAL;
    *o = *what;
    pthread_mutex_lock(&lock);
    o->next = ops;
    ops = o;
    o->comm->looked = false;
    pthread_mutex_unlock(&lock);
    return launch(o->stream, run, o) ? CUDA_ERROR : SUCCESS;
}

/* What is sent first: nobody waits for one who waits for him. */
CALL(GroupEnd, void)
{
    int error = answer();

    for (int sends = 1; sends >= 0; sends--)
        for (int i = 0; i < ngroup && !error; i++)
            if (group[i].sends == sends)
                error = put_in(&group[i]);
    ngroup = 0;
    return error ? error : IN_PROGRESS;
}
