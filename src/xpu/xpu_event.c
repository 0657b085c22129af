/* Events.  `word` is what waiters sleep on (futex) and what is_ready loads;
 * `then` is a stack of callbacks that the setter closes with a mark, so that
 * no lock exists that a callback could find taken.
 *
 * Before it is ready an event may be queued: what sets it is in a device's
 * queue as far as `mark`, so that another queue can wait for it without the
 * host.  The mark is the driver's, and goes when the event is ready. */
#include "xpu_buffer.h"
#include "xpu_device.h"

#include <sched.h>
#include <stdlib.h>

enum { PENDING, AWAITED, READY };

/* What is thought to end sooner than a thread sleeps and wakes is looked for
 * that long: it may take longer than was thought. */
#define LOOK_NS 80000u

typedef struct then then;
struct then {
    then *next;
    xpu_event_fn fn;
    void *ctx;
};

struct xpu_event {
    _Atomic uint32_t refs;
    _Atomic uint32_t word;
    _Atomic uint32_t queued; /* READY: queued or ready */
    _Atomic(xpu_mark *) mark; /* a reference, which a reader may have out */
    _Atomic bool claimed;
    _Atomic(then *) list;
    sd_status st; /* owned; written before word says READY */
};

/* Its address alone matters. */
static const then closed_mark;
#define CLOSED ((then *)&closed_mark)

xpu_event *xpu_event_create(void)
{
    xpu_event *e = calloc(1, sizeof *e);

    if (e)
        atomic_init(&e->refs, 1);
    return e;
}

xpu_event *xpu_event_retain(xpu_event *e)
{
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    return e;
}

void xpu_event_release(xpu_event *e)
{
    if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1)
        return;
    /* Callbacks of an event that nobody can set any more. */
    for (then *t = atomic_load(&e->list), *next; t && t != CLOSED; t = next) {
        next = t->next;
        t->fn(t->ctx, sd_error(SD_CANCELLED, "event destroyed before it was "
                                             "set"));
        free(t);
    }
    xpu_mark_release(atomic_load(&e->mark)); /* of one that was never set */
    sd_status_free(e->st);
    free(e);
}

static void call_then(then *t, const sd_error *st)
{
    then *first = NULL, *next;

    for (; t; t = next) { /* pushed last is on top: turn it round */
        next = t->next;
        t->next = first;
        first = t;
    }
    for (t = first; t; t = next) {
        next = t->next;
        t->fn(t->ctx, sd_status_copy(st));
        free(t);
    }
}

static void rise(_Atomic uint32_t *word)
{
    if (atomic_exchange(word, READY) == AWAITED)
        sd_word_wake(word, INT32_MAX);
}

static void sleep_on(_Atomic uint32_t *word)
{
    uint32_t seen;

    while ((seen = atomic_load(word)) != READY) {
        if (seen == PENDING &&
            !atomic_compare_exchange_strong(word, &seen, AWAITED))
            continue;
        sd_word_sleep(word, AWAITED, NULL);
    }
}

bool xpu_event_set(xpu_event *e, sd_status st)
{
    if (atomic_exchange(&e->claimed, true)) {
        sd_status_free(st);
        return false;
    }
    xpu_event_retain(e); /* a waiter may drop the last reference */
    e->st = st;
    rise(&e->word);
    rise(&e->queued);
    xpu_mark_release(atomic_exchange(&e->mark, NULL));
    call_then(atomic_exchange(&e->list, CLOSED), st);
    xpu_event_release(e);
    return true;
}

bool xpu_event_is_ready(const xpu_event *e)
{
    return atomic_load_explicit(&e->word, memory_order_acquire) == READY;
}

/* ---- queued ---- */

/* A mark's device may go when the event is ready: then either the setter finds
 * the mark here, or we find the event ready. */
static void put_mark(xpu_event *e, xpu_mark *m)
{
    atomic_store(&e->mark, m);
    if (atomic_load(&e->word) == READY)
        xpu_mark_release(atomic_exchange(&e->mark, NULL));
}

void xpu_event_queued(xpu_event *e, xpu_mark *m)
{
    put_mark(e, xpu_mark_retain(m));
    rise(&e->queued);
}

/* Whoever asks takes the mark out while he counts his reference. */
xpu_mark *xpu_event_mark(xpu_event *e)
{
    xpu_mark *m;

    while (xpu_event_is_queued(e) && !xpu_event_is_ready(e)) {
        if ((m = atomic_exchange(&e->mark, NULL))) {
            put_mark(e, xpu_mark_retain(m));
            return m;
        }
        sched_yield(); /* another has it out */
    }
    return NULL;
}

bool xpu_event_is_queued(const xpu_event *e)
{
    return atomic_load_explicit(&e->queued, memory_order_acquire) == READY;
}

void xpu_event_await_queued(xpu_event *e)
{
    sleep_on(&e->queued);
}

/* ---- ready ---- */

void xpu_event_look(xpu_event *e)
{
    xpu_mark *m = xpu_event_mark(e);
    uint64_t from = sd_now_ns();
    bool soon;

    if (!m)
        return;
    soon = xpu_flight_ends_soon(m->dev);
    xpu_mark_release(m);
    while (soon && !xpu_event_is_ready(e) && sd_now_ns() - from < LOOK_NS)
        __builtin_ia32_pause();
}

const sd_error *xpu_event_await(xpu_event *e)
{
    xpu_event_look(e);
    sleep_on(&e->word);
    return e->st;
}

sd_status xpu_event_wait(xpu_event *e)
{
    return sd_status_copy(xpu_event_await(e));
}

sd_status xpu_event_error(const xpu_event *e)
{
    return xpu_event_is_ready(e) ? sd_status_copy(e->st) : NULL;
}

sd_status xpu_event_then(xpu_event *e, xpu_event_fn fn, void *ctx)
{
    then *t, *top = atomic_load(&e->list);

    if (top != CLOSED) {
        if (!(t = malloc(sizeof *t)))
            return sd_no_memory(sizeof *t);
        *t = (then){.fn = fn, .ctx = ctx};
        do {
            if (top == CLOSED)
                break;
            t->next = top;
        } while (!atomic_compare_exchange_weak(&e->list, &top, t));
        if (top != CLOSED)
            return NULL;
        free(t);
    }
    /* The mark comes after READY, so st is there. */
    fn(ctx, sd_status_copy(e->st));
    return NULL;
}

static void set_alike(void *ctx, sd_status st)
{
    xpu_event_set(ctx, st);
    xpu_event_release(ctx);
}

sd_status xpu_event_chain(xpu_event *from, xpu_event *to)
{
    sd_status st = xpu_event_then(from, set_alike, xpu_event_retain(to));

    if (st)
        xpu_event_release(to);
    return st;
}
