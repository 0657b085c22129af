/* Arrays that go to devices of other processes.  A framework gives each such
 * move a number, the same in all processes; who sends and who receives call in
 * any order.  What comes before it is asked for is kept, and what is asked for
 * is told when its sender is gone.
 *
 * One thread of ours sends, and puts what has come where it belongs: the thread
 * that reads the wire calls nobody, and nobody who makes an array ready waits
 * for a network. */
#include "xpu_buffer.h"
#include "xpu_far.h"

#include <stdlib.h>

typedef struct {
    xpu_task task;
    xpu_far *far;     /* a reference */
    xpu_buffer *b;    /* a foreign use */
    xpu_event *done;  /* a reference */
    int to;
    xpu_far_head head;
    sd_status st; /* owned: why there is nothing to send */
} sending;

typedef struct awaited awaited;
struct awaited {
    xpu_task task;
    awaited *next;
    xpu_far *far;     /* a reference */
    xpu_buffer *b;    /* a foreign use */
    xpu_event *ready; /* a reference */
    int from;
    xpu_far_head head;  /* as it should come */
    xpu_far_message *m; /* owned: as it came, or: */
    sd_status st;       /* owned: why nothing comes */
};

struct xpu_moves {
    pthread_mutex_t lock; /* of the lists */
    awaited *awaited;
    xpu_far_message *come; /* which nobody has asked for yet */
    _Atomic bool stopped;
    xpu_stream stream;
};

xpu_moves *xpu_moves_create(void)
{
    xpu_moves *v = calloc(1, sizeof *v);

    if (!v)
        return NULL;
    pthread_mutex_init(&v->lock, NULL);
    xpu_stream_init(&v->stream, "xpu-moves");
    return v;
}

void xpu_moves_free(xpu_moves *v)
{
    if (!v)
        return;
    xpu_stream_finish(&v->stream);
    xpu_far_message_free(v->come);
    pthread_mutex_destroy(&v->lock);
    free(v);
}

/* What is ready is sent before, unless nobody reads there. */
void xpu_moves_stop(xpu_moves *v)
{
    atomic_store(&v->stopped, true);
    xpu_stream_stop(&v->stream);
}

/* The same array in both processes: its type and sizes. */
static uint64_t kind_of(const xpu_buffer *b)
{
    return sd_hash(b->dim, (size_t)b->rank * sizeof *b->dim,
                   (uint64_t)b->dtype);
}

static xpu_far_head head_of(const xpu_buffer *b, int device, int64_t key)
{
    return (xpu_far_head){.magic = XPU_FAR_MAGIC,
                          .kind = XPU_FAR_ARRAY,
                          .run = (uint64_t)key,
                          .program = kind_of(b),
                          .group = device,
                          .bytes = b->bytes};
}

/* ---- sending ---- */

static sd_status send_array(sending *s)
{
    xpu_buffer *b = s->b;
    struct iovec part = {b->ptr, b->bytes};
    void *copy = NULL;
    sd_status st = NULL;

    if (!b->dev->ops->shared_memory && b->bytes) {
        if (!(part.iov_base = copy = malloc(b->bytes)))
            return sd_no_memory(b->bytes);
        st = b->dev->ops->copy_out(b->dev, copy, b->ptr, b->bytes);
    }
    if (!st)
        st = xpu_far_send(s->far, s->to, &s->head, &part, 1,
                          &xpu_far_moves(s->far)->stopped);
    free(copy);
    return st;
}

/* The receiver gets the reason in the array's place. */
static void send_reason(sending *s)
{
    size_t len = SD_MIN(strlen(s->st->message), (size_t)XPU_FAR_TEXT);
    struct iovec words = {s->st->message, len};

    s->head.kind = XPU_FAR_NO_ARRAY;
    s->head.step = (uint32_t)s->st->code;
    sd_status_free(xpu_far_send(s->far, s->to, &s->head, &words, 1,
                                &xpu_far_moves(s->far)->stopped));
}

static void end_sending(sending *s)
{
    xpu_event_set(s->done, s->st);
    xpu_event_release(s->done);
    if (s->b)
        xpu_buffer_unuse(s->b, true);
    xpu_far_release(s->far);
    free(s);
}

static void run_sending(xpu_task *t)
{
    sending *s = (sending *)t;

    if (!s->st)
        s->st = send_array(s);
    if (s->st)
        send_reason(s);
    end_sending(s);
}

/* The array is there, or never will be. */
static void go(void *ctx, sd_status st)
{
    sending *s = ctx;

    s->st = st;
    s->task.run = run_sending;
    if (!(st = xpu_stream_push(&xpu_far_moves(s->far)->stream, &s->task)))
        return;
    sd_status_free(s->st);
    s->st = st;
    if (!atomic_load(&xpu_far_moves(s->far)->stopped))
        send_reason(s); /* there is no thread for it */
    end_sending(s);
}

sd_status xpu_buffer_send(xpu_buffer *b, int process, int device, int64_t key,
                          xpu_event **sent)
{
    sending *s = calloc(1, sizeof *s);
    sd_status st;

    if (!s || !(s->done = xpu_event_create())) {
        free(s);
        return sd_no_memory(sizeof *s);
    }
    s->to = process;
    s->head = head_of(b, device, key);
    s->far = xpu_far_retain(b->dev->client->far);
    *sent = xpu_event_retain(s->done);
    if (!xpu_buffer_use(b, true)) {
        go(s, sd_error(SD_INVALID, "sending a deleted array"));
        return NULL;
    }
    s->b = b;
    if ((st = xpu_event_then(b->ready, go, s)))
        go(s, st);
    return NULL;
}

/* ---- receiving ---- */

static sd_status check(const awaited *a)
{
    const xpu_far_head *is = &a->m->head, *want = &a->head;
    int n = xpu_far_size(a->far);

    if (is->kind == XPU_FAR_NO_ARRAY)
        return sd_note(sd_error((sd_code)is->step, "%.*s", (int)is->bytes,
                                (const char *)a->m->data),
                       "process %d of %d", a->from, n);
    if (is->bytes == want->bytes && is->program == want->program &&
        is->group == want->group)
        return NULL;
    return sd_error(SD_PRECONDITION,
                    "process %d of %d sends an array of %" PRIu64
                    " bytes to device %" PRId64 ", as move %" PRIu64
                    "; here device %" PRId64 " waits for %" PRIu64
                    " bytes, or for another type or shape: all processes must "
                    "move the same arrays in one order",
                    a->from, n, is->bytes, is->group, is->run, want->group,
                    want->bytes);
}

static void end_awaited(awaited *a)
{
    xpu_event_set(a->ready, a->st);
    xpu_event_release(a->ready);
    xpu_buffer_unuse(a->b, true);
    xpu_far_message_free(a->m);
    xpu_far_release(a->far);
    free(a);
}

static void put_in_place(xpu_task *t)
{
    awaited *a = (awaited *)t;
    xpu_buffer *b = a->b;

    if (!a->st)
        a->st = check(a);
    if (!a->st && b->bytes)
        a->st = b->dev->ops->copy_in(b->dev, b->ptr, a->m->data, b->bytes);
    end_awaited(a);
}

/* It is on no list any more, and has what came or the reason. */
static void hand_on(awaited *a)
{
    sd_status st;

    a->task.run = put_in_place;
    if (!(st = xpu_stream_push(&xpu_far_moves(a->far)->stream, &a->task)))
        return;
    a->st = sd_first(a->st, st);
    end_awaited(a);
}

static awaited *take_awaited(xpu_moves *v, int from, uint64_t key)
{
    for (awaited **at = &v->awaited, *a; (a = *at); at = &a->next)
        if (a->from == from && a->head.run == key) {
            *at = a->next;
            return a;
        }
    return NULL;
}

static xpu_far_message *take_come(xpu_moves *v, int from, uint64_t key)
{
    for (xpu_far_message **at = &v->come, *m; (m = *at); at = &m->next)
        if (m->from == from && m->head.run == key) {
            *at = m->next;
            m->next = NULL;
            return m;
        }
    return NULL;
}

void xpu_moves_deliver(xpu_moves *v, xpu_far_message *m)
{
    awaited *a;

    pthread_mutex_lock(&v->lock);
    if (!(a = take_awaited(v, m->from, m->head.run))) {
        m->next = v->come;
        v->come = m;
    }
    pthread_mutex_unlock(&v->lock);
    if (!a)
        return;
    a->m = m;
    hand_on(a);
}

void xpu_moves_lose(xpu_moves *v, int who, const sd_error *why)
{
    awaited *lost = NULL;

    pthread_mutex_lock(&v->lock);
    for (awaited **at = &v->awaited, *a; (a = *at);) {
        if (a->from != who) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        a->next = lost;
        lost = a;
    }
    pthread_mutex_unlock(&v->lock);
    for (awaited *a = lost, *next; a; a = next) {
        next = a->next;
        a->st = sd_status_copy(why);
        hand_on(a);
    }
}

/* Whoever is gone has been noted before the lists are looked through, so that
 * what is asked for is found there, or the note here. */
static void expect(xpu_moves *v, awaited *a)
{
    xpu_far *f = xpu_far_retain(a->far);
    int from = a->from;
    sd_status lost;

    pthread_mutex_lock(&v->lock);
    if (!(a->m = take_come(v, from, a->head.run))) {
        a->next = v->awaited;
        v->awaited = a;
        a = NULL;
    }
    pthread_mutex_unlock(&v->lock);
    if (a)
        hand_on(a);
    else if ((lost = xpu_far_lost(f, from))) {
        xpu_moves_lose(v, from, lost);
        sd_status_free(lost);
    }
    xpu_far_release(f);
}

sd_status xpu_buffer_receive(xpu_device *d, xpu_memory mem, sd_dtype t,
                             int rank, const int64_t *dim, int process,
                             int device, int64_t key, xpu_buffer **out)
{
    xpu_far *f = d->client->far;
    awaited *a = calloc(1, sizeof *a);
    sd_status st;

    if (!a || !(a->ready = xpu_event_create())) {
        free(a);
        return sd_no_memory(sizeof *a);
    }
    if ((st = xpu_buffer_promise(d, mem, t, rank, dim, a->ready, out))) {
        xpu_event_release(a->ready);
        free(a);
        return st;
    }
    a->b = *out;
    xpu_buffer_use(a->b, true);
    a->from = process;
    a->head = head_of(a->b, device, key);
    a->far = xpu_far_retain(f);
    expect(xpu_far_moves(f), a);
    return NULL;
}
