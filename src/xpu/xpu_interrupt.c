/* Ctrl-C while a framework waits in C: Python's own handler only sets a flag
 * that nobody reads before the wait is over.  So while something of ours runs
 * or is compiled, a handler of ours stands before the one that was there, which
 * it calls: it counts, notes the time and wakes who watches.
 *
 * A program that ends by itself within a second is left to: its results, and
 * the memory that was donated to it, stay good.  A second interrupt does not
 * wait.  docs/adr/0014 has the reasons.
 *
 * What a signal does is the process's, so what is known of it is too: the one
 * place besides the registry of handlers where state is at file scope. */
#include "xpu_device.h"
#include "xpu_interrupt.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define GRACE_NS 1000000000u
#define LOOK_NS  50000000u

/* A handler that stood there.  Never freed: somebody who read ours may put it
 * back long after, and then ours calls what it knew. */
typedef struct before before;
struct before {
    struct sigaction act;
    before *next;
};

static struct {
    pthread_mutex_t lock; /* of what is not atomic */
    int nwatch;           /* runs and compiles under way */
    before *known;
    _Atomic(const before *) to; /* whom ours calls; NULL: nobody yet */
    _Atomic uint32_t count;     /* interrupts so far */
    _Atomic uint64_t last;      /* when the last one came */
    _Atomic long inside;        /* the thread that calls whom ours calls */
    _Atomic uint32_t bell;      /* watchers sleep on it */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the handler: nothing here but stores and a system call ---- */

void xpu_interrupt_ring(void)
{
    atomic_fetch_add(&state.bell, 1);
    sd_word_wake(&state.bell, INT32_MAX);
}

static void count_one(uint64_t now)
{
    atomic_store(&state.last, now);
    atomic_fetch_add(&state.count, 1);
    xpu_interrupt_ring();
}

/* LLVM's handler in an OpenCL driver puts back the one before it and raises the
 * signal again.  The watcher may have put ours before that one by then: on one
 * thread, while the handler that we call has not returned, it is the same
 * interrupt.  Who leaves a handler by longjmp is inside for a second. */
static void on_interrupt(int number, siginfo_t *info, void *context)
{
    const before *b = atomic_load(&state.to);
    int err = errno;
    uint64_t now = sd_now_ns();
    long me = syscall(SYS_gettid), inside = atomic_exchange(&state.inside, me);

    if (inside != me || now >= atomic_load(&state.last) + GRACE_NS)
        count_one(now);
    errno = err;
    if (b && b->act.sa_flags & SA_SIGINFO)
        b->act.sa_sigaction(number, info, context);
    else if (b)
        b->act.sa_handler(number);
    atomic_store(&state.inside, inside);
}

/* ---- putting it in place ---- */

static bool is_ours(const struct sigaction *a)
{
    return (a->sa_flags & SA_SIGINFO) && a->sa_sigaction == on_interrupt;
}

/* Where nobody handles it, an interrupt ends the process or does nothing.  The
 * flags do not tell: those of a handler that SA_RESETHAND took out stay. */
static bool is_handled(const struct sigaction *a)
{
    return a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN;
}

static bool same(const struct sigaction *x, const struct sigaction *y)
{
    return x->sa_sigaction == y->sa_sigaction && x->sa_flags == y->sa_flags;
}

/* Its code must be there for as long as somebody may call it. */
static void stay_loaded(void)
{
    Dl_info us;

    if (dladdr((void *)(uintptr_t)on_interrupt, &us) && us.dli_fname)
        dlopen(us.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static const before *remember(const struct sigaction *a)
{
    before *b = state.known;

    while (b && !same(&b->act, a))
        b = b->next;
    if (b || !(b = malloc(sizeof *b)))
        return b;
    if (!state.known)
        stay_loaded();
    b->act = *a;
    b->next = state.known;
    return state.known = b;
}

/* Another thread may put in a handler at any moment: then theirs stands. */
static void put_in(void)
{
    struct sigaction now, ours, was;
    const before *b;

    if (sigaction(SIGINT, NULL, &now) || is_ours(&now) || !is_handled(&now) ||
        !(b = remember(&now)))
        return;
    atomic_store(&state.to, b);
    ours = now;
    ours.sa_flags |= SA_SIGINFO;
    ours.sa_sigaction = on_interrupt;
    if (!sigaction(SIGINT, &ours, &was) && !same(&was, &now))
        sigaction(SIGINT, &was, NULL);
}

static void take_out(void)
{
    const before *b = atomic_load(&state.to);
    struct sigaction now, was;

    if (!b || sigaction(SIGINT, NULL, &now) || !is_ours(&now))
        return;
    if (!sigaction(SIGINT, &b->act, &was) && !is_ours(&was))
        sigaction(SIGINT, &was, NULL);
}

/* ---- watching ---- */

uint32_t xpu_interrupt_watch(void)
{
    pthread_mutex_lock(&state.lock);
    state.nwatch++;
    put_in();
    pthread_mutex_unlock(&state.lock);
    return atomic_load(&state.count);
}

void xpu_interrupt_unwatch(void)
{
    pthread_mutex_lock(&state.lock);
    if (!--state.nwatch)
        take_out();
    pthread_mutex_unlock(&state.lock);
}

void xpu_interrupt_keep(void)
{
    pthread_mutex_lock(&state.lock);
    if (state.nwatch)
        put_in();
    pthread_mutex_unlock(&state.lock);
}

bool xpu_interrupt_due(uint32_t since)
{
    uint32_t n = atomic_load(&state.count) - since;

    return n > 1 || (n && sd_now_ns() >= atomic_load(&state.last) + GRACE_NS);
}

uint32_t xpu_interrupt_bell(void)
{
    return atomic_load(&state.bell);
}

void xpu_interrupt_sleep(uint32_t bell, bool shortly)
{
    uint64_t due = atomic_load(&state.last) + GRACE_NS, now = sd_now_ns();
    struct timespec left = {.tv_nsec = LOOK_NS};

    if (due > now)
        left.tv_nsec = (long)SD_MIN(due - now, LOOK_NS);
    sd_word_sleep(&state.bell, bell, shortly || due > now ? &left : NULL);
}

sd_status xpu_interrupted(const char *what)
{
    return sd_error(SD_CANCELLED,
                    "interrupted (SIGINT): %s was ended before it was done",
                    what);
}
