/* The thread pool, and how many processors we really have.
 *
 * Worker w of k has the items [n w / k, n (w+1) / k), so memory that a worker
 * touched stays near it; who is done with its own takes what others have not
 * begun.  The caller is worker 0, and does everything itself when the others
 * wake late: a run ends when its items do, not when its workers do.
 *
 * Workers are woken as a tree (w wakes 2w+1 and 2w+2), each through a word of
 * its own, so that little work wakes few and much work wakes all in
 * logarithmic time.  An idle worker spins for a few microseconds and then
 * sleeps in the kernel: machines are shared, and a spinning pool would take
 * what others could use.
 *
 * Where the kernel has once woken a worker on its waker's processor it often
 * goes on doing so for seconds, though another is idle, and the waker has done
 * everything before the worker gets its turn.  So who wakes a worker that fell
 * asleep where he is himself bars it from there; awake, it lifts that.
 *
 * A pool that is busy (another caller's run, or a run inside a run) does not
 * make its caller wait: the items then run on the caller's thread alone. */
#include "base.h"

#include <errno.h>
#include <fenv.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORKER_SPIN_NS 4000u
#define CALLER_SPIN_NS 20000u
#define OPEN           0x80000000u /* helpers may come in */

typedef struct {
    _Alignas(64) _Atomic uint32_t go; /* changes with each call to work */
    _Atomic uint32_t asleep;
    _Atomic int64_t next; /* of its items: who adds one to it runs that one */
    _Atomic int tid, cpu; /* where it fell asleep */
    _Atomic bool barred; /* from some of these: */
    cpu_set_t whole;
    pthread_t thread;
    sd_pool *pool; /* borrowed */
    int index;
} worker;

struct sd_pool {
    pthread_mutex_t busy;
    /* The run: written by its caller while nobody is in it. */
    sd_pool_fn fn;
    void *ctx;
    int64_t n;
    int need; /* workers that take part, the caller included */
    _Atomic bool stop;
    _Alignas(64) _Atomic uint32_t inside; /* OPEN, and how many helpers */
    _Atomic uint32_t caller_asleep;
    int nworker; /* the caller included */
    int nstarted;
    worker worker[]; /* [0] is the caller's and has no thread */
};

void sd_word_sleep(_Atomic uint32_t *word, uint32_t seen,
                   const struct timespec *most)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, most, NULL, 0);
}

void sd_word_wake(_Atomic uint32_t *word, int sleepers)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, sleepers, NULL, NULL, 0);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* True when *word leaves seen within ns. */
static bool spin(_Atomic uint32_t *word, uint32_t seen, uint64_t ns)
{
    uint64_t end = 0;

    for (int i = 1;; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != seen)
            return true;
        relax();
        if (i % 32)
            continue;
        if (!end)
            end = sd_now_ns() + ns;
        else if (sd_now_ns() > end)
            return false;
    }
}

/* A bar that its worker has not seen stays, and it lifts both at once.  Sets of
 * more than 1,024 processors are left to the kernel. */
static void bar_from(worker *w, int cpu)
{
    cpu_set_t rest;
    int tid = atomic_load(&w->tid);

    if (!atomic_load(&w->barred) &&
        sched_getaffinity(tid, sizeof w->whole, &w->whole))
        return;
    rest = w->whole;
    CPU_CLR((size_t)cpu, &rest);
    if (CPU_COUNT(&rest) && !sched_setaffinity(tid, sizeof rest, &rest))
        atomic_store(&w->barred, true);
}

static void lift_bar(worker *w)
{
    if (atomic_exchange(&w->barred, false))
        (void)sched_setaffinity(0, sizeof w->whole, &w->whole);
}

static void wake(worker *w)
{
    int here;

    atomic_fetch_add(&w->go, 1);
    if (!atomic_load(&w->asleep))
        return;
    here = sched_getcpu();
    if (here >= 0 && here < CPU_SETSIZE && here == atomic_load(&w->cpu))
        bar_from(w, here);
    sd_word_wake(&w->go, 1);
}

static void wake_children(sd_pool *p, int w)
{
    for (int c = 2 * w + 1; c <= 2 * w + 2 && c < p->need; c++)
        wake(&p->worker[c]);
}

static int64_t share(const sd_pool *p, int w)
{
    return p->n / p->need * w + SD_MIN((int64_t)w, p->n % p->need);
}

/* Its own items first, then what is left of its neighbours'. */
static void run_items(sd_pool *p, int w)
{
    for (int j = 0; j < p->need; j++) {
        int of = (w + j) % p->need;
        int64_t end = share(p, of + 1), i;

        while ((i = atomic_fetch_add(&p->worker[of].next, 1)) < end)
            p->fn(p->ctx, i, w);
    }
}

static bool come_in(sd_pool *p)
{
    uint32_t now = atomic_load(&p->inside);

    while (now & OPEN)
        if (atomic_compare_exchange_weak(&p->inside, &now, now + 1))
            return true;
    return false;
}

/* A worker that comes late finds the run over, or is early for the next. */
static void help(sd_pool *p, int w)
{
    if (!come_in(p))
        return;
    wake_children(p, w);
    if (w < p->need)
        run_items(p, w);
    if (atomic_fetch_sub(&p->inside, 1) == 1 && atomic_load(&p->caller_asleep))
        sd_word_wake(&p->inside, 1);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    sd_pool *p = w->pool;
    uint32_t seen = 0;

    fesetenv(FE_DFL_ENV); /* not that of whoever made the pool */
    atomic_store(&w->tid, (int)syscall(SYS_gettid));
    while (!atomic_load(&p->stop)) {
        if (!spin(&w->go, seen, WORKER_SPIN_NS)) {
            atomic_store(&w->cpu, sched_getcpu());
            atomic_store(&w->asleep, 1);
            while (atomic_load(&w->go) == seen)
                sd_word_sleep(&w->go, seen, NULL);
            atomic_store(&w->asleep, 0);
            lift_bar(w);
        }
        seen = atomic_load(&w->go);
        help(p, w->index);
    }
    return NULL;
}

static void open_run(sd_pool *p)
{
    for (int w = 0; w < p->need; w++)
        atomic_store_explicit(&p->worker[w].next, share(p, w),
                              memory_order_relaxed);
    atomic_store(&p->inside, OPEN);
    wake_children(p, 0);
}

/* Nobody comes in any more; who is in finishes the item it has. */
static void close_run(sd_pool *p)
{
    uint32_t left = atomic_fetch_and(&p->inside, ~OPEN) & ~OPEN;

    for (; left; left = atomic_load(&p->inside)) {
        if (spin(&p->inside, left, CALLER_SPIN_NS))
            continue;
        atomic_store(&p->caller_asleep, 1);
        while ((left = atomic_load(&p->inside)))
            sd_word_sleep(&p->inside, left, NULL);
        atomic_store(&p->caller_asleep, 0);
    }
}

void sd_pool_run(sd_pool *p, int64_t n, sd_pool_fn fn, void *ctx)
{
    if (n <= 0)
        return;
    if (n == 1 || !p || p->nworker == 1 || pthread_mutex_trylock(&p->busy)) {
        for (int64_t i = 0; i < n; i++)
            fn(ctx, i, 0);
        return;
    }
    p->fn = fn;
    p->ctx = ctx;
    p->n = n;
    p->need = (int)SD_MIN(n, (int64_t)p->nworker);
    open_run(p);
    run_items(p, 0);
    close_run(p);
    pthread_mutex_unlock(&p->busy);
}

int sd_pool_size(const sd_pool *p)
{
    return p ? p->nworker : 1;
}

void sd_pool_destroy(sd_pool *p)
{
    if (!p)
        return;
    atomic_store(&p->stop, true);
    for (int i = 1; i < p->nstarted; i++)
        wake(&p->worker[i]);
    for (int i = 1; i < p->nstarted; i++)
        pthread_join(p->worker[i].thread, NULL);
    pthread_mutex_destroy(&p->busy);
    free(p);
}

int sd_thread_start(pthread_t *out, const char *name, void *(*fn)(void *),
                    void *arg)
{
    sigset_t all, old;
    int err;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    err = pthread_create(out, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!err)
        pthread_setname_np(*out, name);
    return err;
}

/* A thread that the system refuses leaves a smaller pool, not an error. */
sd_status sd_pool_create(int nthread, sd_pool **out)
{
    int n = SD_MAX(nthread, 1);
    size_t bytes = sizeof(sd_pool) + (size_t)n * sizeof(worker);
    sd_pool *p = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

    if (!p)
        return sd_no_memory(bytes);
    memset(p, 0, bytes);
    pthread_mutex_init(&p->busy, NULL);
    p->nstarted = 1;
    for (int i = 1; i < n; i++) {
        worker *w = &p->worker[i];

        w->pool = p;
        w->index = i;
        if (sd_thread_start(&w->thread, "sundog-worker", worker_main, w)) {
            sd_log(SD_LOG_WARN, "thread %d of %d refused by the system", i, n);
            break;
        }
        p->nstarted++;
    }
    p->nworker = p->nstarted;
    *out = p;
    return NULL;
}

/* ---- processors ---- */

static int affinity_count(void)
{
    for (int most = 1024; most <= 1 << 20; most *= 4) {
        cpu_set_t *set = CPU_ALLOC(most);
        size_t size = CPU_ALLOC_SIZE(most);
        int n = 0;
        bool small;

        if (!set)
            break;
        small = sched_getaffinity(0, size, set) != 0;
        if (!small)
            n = CPU_COUNT_S(size, set);
        else if (errno != EINVAL)
            most = 1 << 20;
        CPU_FREE(set);
        if (n > 0)
            return n;
    }
    return (int)SD_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1l);
}

/* First line of a file such as cpu.max; false when it is not there. */
static bool read_line(const char *path, char *line, int size)
{
    FILE *f = fopen(path, "re");
    bool ok;

    if (!f)
        return false;
    ok = fgets(line, size, f) != NULL;
    fclose(f);
    return ok;
}

static int ceil_div(int64_t quota, int64_t period, int now)
{
    int64_t n;

    if (quota <= 0 || period <= 0)
        return now;
    n = (quota + period - 1) / period;
    return n < now ? (int)n : now;
}

static int quota_v2(const char *dir, int now)
{
    char path[4200], line[128];
    int64_t quota, period;

    snprintf(path, sizeof path, "%s/cpu.max", dir);
    if (read_line(path, line, sizeof line) &&
        sscanf(line, "%" SCNd64 " %" SCNd64, &quota, &period) == 2)
        now = ceil_div(quota, period, now);
    return now;
}

static int quota_v1(const char *dir, int now)
{
    char path[4200], line[128];
    int64_t quota = 0, period = 0;

    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", dir);
    if (read_line(path, line, sizeof line))
        quota = strtoll(line, NULL, 10);
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", dir);
    if (read_line(path, line, sizeof line))
        period = strtoll(line, NULL, 10);
    return ceil_div(quota, period, now);
}

/* The group's own limit and its parents': the smallest holds.  Inside a
 * container the path may not be mounted; then the root is the group. */
static int quota_up(const char *root, char *group, int now,
                    int (*quota)(const char *, int))
{
    char dir[4096];

    for (;;) {
        char *slash;

        snprintf(dir, sizeof dir, "%s%s", root, group);
        now = quota(dir, now);
        slash = strrchr(group, '/');
        if (!slash || !*group)
            return now;
        *slash = 0;
    }
}

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ',') && (!at[n] || at[n] == ','))
            return true;
    return false;
}

int sd_cpu_count_at(const char *root)
{
    int now = affinity_count();
    char line[3000], dir[512];
    FILE *f;

    snprintf(dir, sizeof dir, "%s/proc/self/cgroup", root);
    f = fopen(dir, "re");
    while (f && fgets(line, sizeof line, f)) {
        char *names = strchr(line, ':'), *group;

        line[strcspn(line, "\n")] = 0;
        if (!names || !(group = strchr(names + 1, ':')))
            continue;
        *group++ = 0;
        names++;
        snprintf(dir, sizeof dir, "%s/sys/fs/cgroup%s", root,
                 *names ? "/cpu" : "");
        if (!*names)
            now = quota_up(dir, group, now, quota_v2);
        else if (has_word(names, "cpu"))
            now = quota_up(dir, group, now, quota_v1);
    }
    if (f)
        fclose(f);
    return SD_MAX(now, 1);
}

int sd_cpu_count(void)
{
    return sd_cpu_count_at("");
}
