/* Where OpenMP's threads run.
 *
 * The kernel may wake such a thread on the processor of the thread that calls,
 * though another is idle, and goes on doing so for seconds (base/threads.c has
 * the same for our own).  The library's threads then wait for each other
 * without giving the processor away: some calls spin at barriers of oneDNN's
 * own until their time slice ends, whatever OpenMP is told of waiting.  The
 * gradient of a 3 x 3 window (2 x 32 x 32 x 32) took 3.2 ms instead of 0.25 on
 * two processors.
 *
 * So before a call the threads that belong to the caller are barred from the
 * processor it runs on.  That stays until a caller is found on another one, so
 * a caller that keeps its place asks the kernel nothing.  Who has told OpenMP
 * to bind threads, and a machine of many processors, are left alone. */
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "xpu_onednn.h"

static pid_t this_thread(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* In each thread of a team: who they are. */
static void note_thread(void *ctx)
{
    onednn_place *p = ctx;
    pid_t tid = this_thread();
    int i;

    if (tid == p->caller)
        return;
    i = atomic_fetch_add(&p->n, 1);
    if (i < ONEDNN_PLACED)
        p->thread[i] = tid;
}

/* OpenMP keeps a team for each thread that calls. */
static void learn(onednn *l, onednn_place *p, pid_t caller)
{
    p->caller = caller;
    p->n = 0;
    p->barred = -1;
    l->parallel(note_thread, p, (unsigned)l->nthread, 0);
}

/* A team that becomes smaller ends threads, whose numbers another process may
 * have then. */
static bool is_ours(pid_t thread)
{
    return !syscall(SYS_tgkill, getpid(), thread, 0);
}

static void bar_from(onednn_place *p, int cpu)
{
    cpu_set_t rest;

    if (sched_getaffinity(0, sizeof rest, &rest))
        return;
    CPU_CLR((size_t)cpu, &rest);
    for (int i = 0; i < p->n && CPU_COUNT(&rest) >= p->n; i++)
        if (is_ours(p->thread[i]))
            (void)sched_setaffinity(p->thread[i], sizeof rest, &rest);
    p->barred = cpu;
}

void onednn_place_threads(onednn *l)
{
    onednn_place *p = &l->place;
    pid_t caller = this_thread();
    int here = sched_getcpu();

    if (!l->parallel || !l->is_bound || l->is_bound() || l->nthread == 1 ||
        l->nthread > ONEDNN_PLACED + 1 || here < 0 || here >= CPU_SETSIZE)
        return;
    if (p->caller != caller)
        learn(l, p, caller);
    if (p->barred != here)
        bar_from(p, here);
}
