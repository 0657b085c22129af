/* Events.  `word` is what waiters sleep on (futex) and what is_ready loads;
 * `then` is a stack of callbacks that the setter closes with a mark, so that
 * no lock exists that a callback could find taken. */
#include "xpu_device.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PENDING, AWAITED, READY };

typedef struct then then;
struct then {
    then *next;
    xpu_event_fn fn;
    void *ctx;
};

struct xpu_event {
    _Atomic uint32_t refs;
    _Atomic uint32_t word;
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
    sd_status_free(e->st);
    free(e);
}

static void call(then *t, const sd_error *st)
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

bool xpu_event_set(xpu_event *e, sd_status st)
{
    if (atomic_exchange(&e->claimed, true)) {
        sd_status_free(st);
        return false;
    }
    xpu_event_retain(e); /* a waiter may drop the last reference */
    e->st = st;
    if (atomic_exchange(&e->word, READY) == AWAITED)
        syscall(SYS_futex, &e->word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL,
                0);
    call(atomic_exchange(&e->list, CLOSED), st);
    xpu_event_release(e);
    return true;
}

bool xpu_event_is_ready(const xpu_event *e)
{
    return atomic_load_explicit(&e->word, memory_order_acquire) == READY;
}

const sd_error *xpu_event_await(xpu_event *e)
{
    uint32_t seen;

    while ((seen = atomic_load(&e->word)) != READY) {
        if (seen == PENDING &&
            !atomic_compare_exchange_strong(&e->word, &seen, AWAITED))
            continue;
        syscall(SYS_futex, &e->word, FUTEX_WAIT_PRIVATE, AWAITED, NULL, NULL,
                0);
    }
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
