/* Programs over several processes, and what goes wrong in one of them. */
#include "processes.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "want_error.h"

/* ---- what programs make ---- */

static void test_programs(void **state)
{
    int bad = 0;

    (void)state;
    for (int n = 2; n <= MOST; n++) {
        job *j = job_begin(n);

        assert_int_equal(j->at[n - 1].nworld, n * DEVICES);
        assert_int_equal(j->at[n - 1].world[DEVICES].process, 1);
        for (size_t i = 0; i < (size_t)gang_program_count; i++)
            if (strcmp(gang_programs[i].name, "nobody meets"))
                for (int together = 0; together < 2; together++)
                    bad += job_run(j, &gang_programs[i], together, 3);
        job_end(j);
    }
    assert_int_equal(bad, 0);
}

/* NCCL is not for hosts: they go by TCP. */
static void test_other_library(void **state)
{
    job *j;

    (void)state;
    setenv("SUNDOG_WIRE", "nccl", 1);
    j = job_begin(2);
    unsetenv("SUNDOG_WIRE");
    assert_int_equal(job_run(j, &gang_programs[0], false, 1), 0);
    job_end(j);
}

/* ---- what goes wrong in one ---- */

static const gang_program *sum = &gang_programs[0];
static const gang_program *gather = &gang_programs[6];

/* An argument of process 1 that comes late, or in error. */
static xpu_event *make_late(gang *g, xpu_buffer **was)
{
    xpu_event *ready = xpu_event_create();
    int64_t dim = sum->k;

    *was = g->of[1].arg[0];
    want_success(xpu_buffer_promise(xpu_client_device(g->job->at[1].client, 0),
                                    XPU_MEM_DEVICE, SD_S32, 1, &dim, ready,
                                    &g->of[1].arg[0]));
    return ready;
}

static void test_poisoned_argument(void **state)
{
    job *j = job_begin(3);
    gang *g = gang_begin(j, sum, false);
    xpu_buffer *was;
    xpu_event *ready = make_late(g, &was);

    (void)state;
    xpu_event_set(ready, sd_error(SD_DATA_LOSS, "it is lost"));
    gang_start_all(g);
    gang_ends_badly(g, 0, SD_DATA_LOSS,
                    "process 1 of 3: participant 1 of 4: it is");
    gang_ends_badly(g, 1, SD_DATA_LOSS, "participant 1 of 4: it is lost");
    gang_ends_badly(g, 2, SD_DATA_LOSS,
                    "process 1 of 3: participant 1 of 4: it is");
    xpu_buffer_release(g->of[1].arg[0]);
    g->of[1].arg[0] = was;
    gang_run_well(g);
    xpu_event_release(ready);
    gang_end(g);
    job_end(j);
}

/* Refused in one process, after the others have begun or before. */
static void test_refused_call(void **state)
{
    job *j = job_begin(2);
    gang *g = gang_begin(j, sum, true);
    xpu_buffer *was = g->of[1].arg[0];

    (void)state;
    for (int first = 0; first < 2; first++) {
        g->of[1].arg[0] = g->of[1].arg[1];
        if (!first)
            want_success(gang_start(g, 0));
        want_refusal(gang_start(g, 1), SD_INVALID, "argument 0 is on device 1");
        if (first)
            want_success(gang_start(g, 0));
        gang_ends_badly(g, 0, SD_INVALID, "process 1 of 2: ");
        g->of[1].arg[0] = was;
        gang_run_well(g);
    }
    g->of[1].n = 1;
    want_refusal(gang_start(g, 1), SD_INVALID, "1 participants of 2");
    g->of[1].n = 2;
    gang_run_well(g);
    gang_end(g);
    job_end(j);
}

/* Two runs of which the first waits in one process for its argument. */
static void test_order(void **state)
{
    job *j = job_begin(2);
    gang *g = gang_begin(j, sum, true), *h = gang_begin(j, gather, true);
    xpu_buffer *was;
    xpu_event *ready = make_late(g, &was);

    (void)state;
    gang_start_all(g);
    gang_start_all(h);
    assert_false(xpu_event_is_ready(h->of[0].done[0]));
    xpu_event_set(ready, NULL);
    gang_ends_well(g);
    gang_ends_well(h);
    xpu_buffer_release(g->of[1].arg[0]);
    g->of[1].arg[0] = was;
    want_success(gang_start(g, 0));
    want_success(gang_start(h, 1));
    want_success(gang_start(h, 0));
    want_success(gang_start(g, 1));
    for (int p = 0; p < 2; p++) {
        gang_ends_badly(g, p, SD_PRECONDITION, "runs another program there");
        gang_ends_badly(h, p, SD_PRECONDITION, "runs another program there");
    }
    gang_run_well(g);
    xpu_event_release(ready);
    gang_end(g);
    gang_end(h);
    job_end(j);
}

static void *run_many(void *arg)
{
    gang *g = arg;

    for (int i = 0; i < 100; i++)
        gang_run_well(g);
    return NULL;
}

/* Programs over other devices each, at once. */
static void test_threads(void **state)
{
    job *j = job_begin(2);
    pthread_t t[2];
    gang *g[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        g[i] = gang_begin_at(j, 4 * i, i ? gather : sum, i);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&t[i], NULL, run_many, g[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < 2; i++)
        gang_end(g[i]);
    job_end(j);
}

/* A process that ends fails what waits for it, and what comes later. */
static void test_gone(void **state)
{
    job *j = job_begin(3);
    gang *g = gang_begin(j, sum, false);

    (void)state;
    gang_run_well(g);
    want_success(gang_start(g, 0));
    process_leave(&j->at[2]);
    gang_ends_badly(g, 0, SD_UNAVAILABLE,
                    "process 2 of 3 is gone: it has ended");
    want_success(gang_start(g, 0));
    want_success(gang_start(g, 1));
    gang_ends_badly(g, 0, SD_UNAVAILABLE, "process 2 of 3 is gone");
    gang_ends_badly(g, 1, SD_UNAVAILABLE, "process 2 of 3 is gone");
    gang_end(g);
    job_end(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_other_library),
        cmocka_unit_test(test_poisoned_argument),
        cmocka_unit_test(test_refused_call),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_gone),
    };

    return cmocka_run_group_tests_name("processes", tests, NULL, NULL);
}
