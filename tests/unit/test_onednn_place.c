/* OpenMP's threads are kept off the processor of who calls.  A team of two is
 * made here, as OpenMP makes one: its thread stays, asleep, after its work. */
#include "xpu_onednn.h"

#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static sem_t work, done;
static void (*work_fn)(void *);
static void *work_ctx;
static int nregion;
static _Atomic int worker;

static void *team_thread(void *unused)
{
    atomic_store(&worker, (int)gettid());
    for (;;) {
        sem_wait(&work);
        if (!work_fn)
            return unused;
        work_fn(work_ctx);
        sem_post(&done);
    }
}

static void fake_parallel(void (*fn)(void *), void *ctx, unsigned n,
                          unsigned flags)
{
    assert_int_equal(n, 2);
    (void)flags;
    nregion++;
    work_fn = fn;
    work_ctx = ctx;
    sem_post(&work);
    fn(ctx);
    sem_wait(&done);
}

static int not_bound(void)
{
    return 0;
}

static int bound(void)
{
    return 1;
}

/* The caller is put there, and may then be anywhere again. */
static void call_from(onednn *l, int cpu, const cpu_set_t *whole)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(sched_setaffinity(0, sizeof *whole, whole), 0);
    onednn_place_threads(l);
}

static bool may_run_on(int cpu)
{
    cpu_set_t now;

    assert_int_equal(sched_getaffinity(worker, sizeof now, &now), 0);
    return CPU_ISSET((size_t)cpu, &now);
}

static void test_barred(void **state)
{
    onednn l = {.nthread = 2, .parallel = fake_parallel, .is_bound = bound};
    cpu_set_t whole;
    pthread_t thread;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof whole, &whole), 0);
    if (CPU_COUNT(&whole) < 2)
        skip();
    sem_init(&work, 0, 0);
    sem_init(&done, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, team_thread, NULL), 0);
    onednn_place_threads(&l); /* who binds threads knows better */
    assert_int_equal(nregion, 0);
    l.is_bound = not_bound;
    for (int turn = 0; turn < 4; turn++) {
        onednn_place_threads(&l);
        assert_int_equal(nregion, 1); /* they are asked for once */
        assert_true(l.place.barred >= 0);
        assert_false(may_run_on(l.place.barred));
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET((size_t)cpu, &whole))
                call_from(&l, cpu, &whole);
    }
    work_fn = NULL;
    sem_post(&work);
    pthread_join(thread, NULL);
}

/* A process of one processor has nowhere else to put them. */
static void test_one_processor(void **state)
{
    onednn l = {.nthread = 1, .parallel = fake_parallel, .is_bound = not_bound};
    int before = nregion;

    (void)state;
    onednn_place_threads(&l);
    assert_int_equal(nregion, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_barred),
                                       cmocka_unit_test(test_one_processor)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
