/* base: threads, what they share, and what the machine has for them. */
#include "base.h"

#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct {
    int *worker;
    int nworker;
    sd_pool *pool;
    int nested;
} job;

static void note_worker(void *ctx, int64_t i, int w)
{
    job *j = ctx;

    assert_true(w >= 0 && w < j->nworker);
    j->worker[i]++;
}

static void run_inside(void *ctx, int64_t i, int w)
{
    job *j = ctx, inner = {.worker = (int[7]){0}, .nworker = j->nworker};

    sd_pool_run(j->pool, 7, note_worker, &inner);
    for (int k = 0; k < 7; k++)
        assert_int_equal(inner.worker[k], 1);
    note_worker(ctx, i, w);
}

static void pool_runs_each_item_once(void **state)
{
    int ran[1000];

    (void)state;
    for (int threads = 1; threads <= 5; threads += 2) {
        sd_pool *p;
        job j = {.worker = ran};

        assert_null(sd_pool_create(threads, &p));
        assert_int_equal(sd_pool_size(p), threads);
        j.nworker = threads;
        j.pool = p;
        for (int64_t n = 0; n <= 1000; n = n * 2 + 1) {
            memset(ran, 0, sizeof ran);
            sd_pool_run(p, n, n % 3 ? note_worker : run_inside, &j);
            for (int64_t i = 0; i < 1000; i++)
                assert_int_equal(ran[i], i < n);
            usleep(n % 2 ? 100 : 0); /* asleep or still awake */
        }
        sd_pool_destroy(p);
    }
    sd_pool_destroy(NULL);
    assert_true(sd_cpu_count() >= 1);
}

typedef struct {
    cpu_set_t all;
    bool widen; /* the worker may run anywhere from now on */
    _Atomic bool came;
    int cpu, nallowed;
} place;

/* Item 0 is the caller's, who waits for the worker to take item 1. */
static void note_place(void *ctx, int64_t i, int worker)
{
    place *p = ctx;
    cpu_set_t now;

    (void)worker;
    for (uint64_t end = sd_now_ns() + 10000000000u; !i && !p->came;)
        assert_true(sd_now_ns() < end);
    if (!i)
        return;
    if (p->widen)
        (void)sched_setaffinity(0, sizeof p->all, &p->all);
    p->cpu = sched_getcpu();
    CPU_ZERO(&now);
    (void)sched_getaffinity(0, sizeof now, &now);
    p->nallowed = CPU_COUNT(&now);
    p->came = true;
}

/* Of the runs before which the worker fell asleep where the caller is. */
static void pool_wakes_apart_from_its_caller(void **state)
{
    place p = {.widen = true};
    cpu_set_t one;
    sd_pool *pool;
    int here = 0, was = -1, met = 0, apart = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof p.all, &p.all), 0);
    if (CPU_COUNT(&p.all) < 2)
        skip();
    while (!CPU_ISSET((size_t)here, &p.all))
        here++;
    CPU_ZERO(&one);
    CPU_SET((size_t)here, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_null(sd_pool_create(2, &pool));
    for (int k = 0; k < 100; k++) {
        p.came = false;
        sd_pool_run(pool, 2, note_place, &p);
        met += was == here;
        apart += was == here && p.cpu != here;
        was = p.cpu;
        assert_int_equal(p.nallowed, CPU_COUNT(&p.all));
        p.widen = false;
        usleep(200); /* it falls asleep */
    }
    assert_true(apart * 2 >= met); /* the kernel may move it afterwards */
    sd_pool_destroy(pool);
    assert_int_equal(sched_setaffinity(0, sizeof p.all, &p.all), 0);
}

static int ndestroyed;

static void count_destroyed(void *thing)
{
    ndestroyed += *(int *)thing;
}

static void shelf_gives_each_thing_to_one(void **state)
{
    sd_shelf *s = sd_shelf_create();
    int one = 1;
    const char *kind = "kind", *other = "other";

    (void)state;
    ndestroyed = 0;
    assert_null(sd_shelf_take(NULL, kind, 1));
    sd_shelf_put(NULL, kind, 1, &one, count_destroyed);
    assert_int_equal(ndestroyed, 1);
    assert_null(sd_shelf_take(s, kind, 1));
    sd_shelf_put(s, kind, 1, &one, count_destroyed);
    assert_null(sd_shelf_take(s, kind, 2));
    assert_null(sd_shelf_take(s, other, 1));
    assert_ptr_equal(sd_shelf_take(s, kind, 1), &one);
    assert_null(sd_shelf_take(s, kind, 1));
    for (int i = 0; i < 100; i++) /* more than there is room for */
        sd_shelf_put(s, kind, i, &one, count_destroyed);
    assert_in_range(ndestroyed, 2, 100);
    sd_shelf_destroy(s);
    assert_int_equal(ndestroyed, 101);
    sd_shelf_destroy(NULL);
}

static void put_file(const char *root, const char *path, const char *text)
{
    char cmd[512];

    snprintf(cmd, sizeof cmd, "mkdir -p $(dirname %s%s) && printf '%s' > %s%s",
             root, path, text, root, path);
    assert_int_equal(system(cmd), 0);
}

/* Two CPUs at most by affinity, fewer by quota: the group's own or a
 * parent's, in both versions of cgroups. */
static void cpus_follow_affinity_and_quota(void **state)
{
    static const struct {
        const char *group, *file, *text;
        int most;
    } cases[] = {
        {"0::/a/b\\n", "/sys/fs/cgroup/a/b/cpu.max", "50000 100000\\n", 1},
        {"0::/a/b\\n", "/sys/fs/cgroup/a/cpu.max", "100000 100000\\n", 1},
        {"0::/\\n", "/sys/fs/cgroup/cpu.max", "max 100000\\n", 1 << 20},
        {"0::/\\n", "/sys/fs/cgroup/cpu.max", "150000 100000\\n", 2},
        {"3:cpu,cpuacct:/x\\n", "/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us",
         "20000\\n", 1},
    };
    char root[] = "/tmp/sundog-cpus-XXXXXX", cmd[64];
    cpu_set_t all, one;
    int many;

    (void)state;
    assert_non_null(mkdtemp(root));
    many = sd_cpu_count_at(root); /* no quota there: affinity alone */
    for (size_t i = 0; i < SD_COUNTOF(cases); i++) {
        put_file(root, "/proc/self/cgroup", cases[i].group);
        put_file(root, cases[i].file, cases[i].text);
        if (strstr(cases[i].file, "cfs"))
            put_file(root, "/sys/fs/cgroup/cpu/x/cpu.cfs_period_us",
                     "100000\\n");
        assert_int_equal(sd_cpu_count_at(root), SD_MIN(many, cases[i].most));
        snprintf(cmd, sizeof cmd, "rm -r %s/*", root);
        assert_int_equal(system(cmd), 0);
    }
    rmdir(root);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(sd_cpu_count(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

static void memory_left(void **state)
{
    char root[] = "/tmp/test_base.XXXXXX", cmd[64];
    const char *v2 = "/sys/fs/cgroup", *v1 = "/sys/fs/cgroup/memory";
    char path[64];

    (void)state;
    assert_true(sd_memory_left() > 0 && sd_memory_left() < sd_memory_size());
    assert_non_null(mkdtemp(root));
    put_file(root, "/proc/meminfo",
             "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 2000 kB\n");
    assert_int_equal(sd_memory_left_at(root), 2000 << 10);
    snprintf(path, sizeof path, "%s/memory.max", v2);
    put_file(root, path, "max\n"); /* no limit */
    snprintf(path, sizeof path, "%s/memory.current", v2);
    put_file(root, path, "900000\n");
    assert_int_equal(sd_memory_left_at(root), 2000 << 10);
    snprintf(path, sizeof path, "%s/memory.max", v2);
    put_file(root, path, "1000000\n");
    assert_int_equal(sd_memory_left_at(root), 100000);
    snprintf(path, sizeof path, "%s/memory.stat", v2);
    put_file(root, path, "anon 5\nfile 200000\nfile_mapped 7\n");
    assert_int_equal(sd_memory_left_at(root), 300000);
    snprintf(path, sizeof path, "%s/memory.limit_in_bytes", v1);
    put_file(root, path, "500000\n");
    snprintf(path, sizeof path, "%s/memory.usage_in_bytes", v1);
    put_file(root, path, "600000\n");
    assert_int_equal(sd_memory_left_at(root), 0);
    snprintf(cmd, sizeof cmd, "rm -r %s", root);
    assert_int_equal(system(cmd), 0);
}

/* Work that its caller wants ended: where an arena grows, and where it asks. */
static int nasked;

static bool at_the_third(void *ctx)
{
    return ++*(int *)ctx > 2;
}

static sd_status grow(void *ctx)
{
    sd_arena *a = sd_arena_create();

    (void)ctx;
    while (sd_arena_alloc(a, 1 << 20)) /* ended by a jump, which frees a */
        ;
    return NULL;
}

static sd_status ask(void *ctx)
{
    sd_status st = NULL;

    while (!st)
        st = sd_stopped();
    assert_ptr_equal(sd_stop_current(), ctx);
    return st;
}

static sd_status nested(void *ctx)
{
    (void)ctx;
    return sd_catch_oom(grow, NULL);
}

static void test_stop(void **state)
{
    sd_stop stop = {at_the_third, &nasked};
    sd_status (*const work[])(void *) = {grow, ask, nested};

    (void)state;
    assert_null(sd_stop_current());
    assert_null(sd_stopped());
    for (size_t i = 0; i < SD_COUNTOF(work); i++) {
        sd_status st;

        nasked = 0;
        st = sd_catch(&stop, 0, work[i], &stop);
        assert_non_null(st);
        assert_int_equal(st->code, SD_CANCELLED);
        assert_string_equal(st->message,
                            "interrupted (SIGINT): ended before it was done");
        assert_int_equal(nasked, 3);
        sd_status_free(st);
    }
}

/* Errors that are under way when memory runs out are freed, those that are
 * given back are not. */
static sd_status hold_errors(void *ctx)
{
    sd_status mine = sd_error(SD_INVALID, "not given back"), gone;

    gone = sd_error(SD_INVALID, "freed before");
    sd_status_free(sd_status_copy(gone));
    sd_status_free(gone);
    if (ctx)
        sd_oom(1);
    return sd_note(mine, "noted");
}

static sd_status hold_errors_within(void *ctx)
{
    return sd_first(sd_catch_oom(hold_errors, NULL), hold_errors(ctx));
}

static void errors_under_way(void **state)
{
    sd_status st = sd_catch_oom(hold_errors_within, state);

    assert_int_equal(st->code, SD_EXHAUSTED);
    sd_status_free(st);
    st = sd_catch_oom(hold_errors_within, NULL);
    assert_string_equal(st->message, "noted: not given back");
    sd_status_free(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop),
        cmocka_unit_test(errors_under_way),
        cmocka_unit_test(pool_runs_each_item_once),
        cmocka_unit_test(pool_wakes_apart_from_its_caller),
        cmocka_unit_test(shelf_gives_each_thing_to_one),
        cmocka_unit_test(cpus_follow_affinity_and_quota),
        cmocka_unit_test(memory_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
