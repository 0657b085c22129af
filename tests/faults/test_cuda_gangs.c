/* Gangs on several CUDA devices of a driver that fails (crew.h), on streams
 * that lag behind each other: each call and each command fails in turn, the
 * devices are lost at each call, and whatever happens all members end with one
 * error or all with the right result.
 *
 * usage: test_cuda_gangs libfakecuda.so kernels.ptx libfakejitlink.so */
#include "crew.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGE = 1 << 19 };

static void test_right(void **state)
{
    static const char *const words[] = {
        "", "lag=300", "peers=0", "pools=0", "lag=2000", "peers=0,lag=300"};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(words); i++) {
        ok(life_of_gangs(words[i]));
        assert_int_equal(nlive(), 0);
        ok(life_in_a_row(words[i]));
        assert_int_equal(nlive(), 0);
        ok(life_of_processes(words[i]));
        assert_int_equal(nlive(), 0);
    }
}

/* A program for devices with a way between them finds none. */
static void test_no_way(void **state)
{
    sd_options opt = life_options;
    xpu_client *c;
    xpu_program *x;
    thunk_program *p;
    sd_status st;

    (void)state;
    opt.value[SD_OPT_DEVICE] = device_name;
    fake_tell("devices=4");
    ok(xpu_client_create(&opt, &c));
    p = work(xpu_device_desc(xpu_client_device(c, 0)));
    xpu_client_destroy(c);
    fake_tell("devices=4,peers=0");
    ok(xpu_client_create(&opt, &c));
    st = xpu_program_load_as(xpu_client_device(c, 0), p, 0, &x);
    assert_non_null(st);
    assert_non_null(strstr(st->message, "read each other's memory"));
    sd_status_free(st);
    thunk_program_release(p);
    xpu_client_destroy(c);
    assert_int_equal(nlive(), 0);
}

/* What nobody waits for any more reads what others write: its results are
 * errors, and TSan would report each. */
static void fail_each_in_a_row(long (*count)(void), const char *fmt,
                               const char *more, int step)
{
#ifndef __SANITIZE_THREAD__
    fail_each(life_in_a_row, count, fmt, more, step);
#else
    (void)count, (void)fmt, (void)more, (void)step;
#endif
}

static void test_each_call_fails(void **state)
{
    (void)state;
    fail_each(life_of_gangs, ncalls, "fail", "", 1);
    fail_each_in_a_row(ncalls, "fail", "", 1);
    fail_each(life_of_gangs, ncalls, "fail", ",peers=0,error=719", 5);
    fail_each(life_of_processes, ncalls, "fail", "", 9);
}

static void test_device_lost(void **state)
{
    (void)state;
    fail_each(life_of_gangs, ncalls, "lose", ",error=214", 5);
    fail_each_in_a_row(ncalls, "lose", ",error=214", 5);
}

static void test_each_command_fails(void **state)
{
    (void)state;
    fail_each(life_of_gangs, nruns, "exec", "", 1);
    fail_each_in_a_row(nruns, "exec", "", 1);
    fail_each(life_of_processes, nruns, "exec", "", 4);
}

/* What is large goes by copies beside each other. */
static thunk_program *large_work(const device_desc *d)
{
    thunk_program *p = program(d, 1, 1, LARGE);
    int g = temp(p, (uint64_t)DEVICES * LARGE * 4);
    thunk t[2];

    p->npartition = DEVICES;
    t[0] =
        collective(p, by_all(THUNK_COLL_GATHER, 1, LARGE * 4), 0, g, LARGE * 4);
    t[1] = (thunk){.kind = THUNK_COPY, .name = "copy", .narg = 2};
    t[1].arg =
        sd_arena_copy(p->arena,
                      (thunk_slice[]){{g, (uint64_t)3 * LARGE * 4, LARGE * 4},
                                      {1, 0, LARGE * 4}},
                      2 * sizeof(thunk_slice));
    steps(p, 2, t);
    return p;
}

static void test_large(void **state)
{
    float *data = malloc(2 * LARGE * sizeof *data);
    crew w;

    (void)state;
    fake_tell("devices=4");
    ok(open_crew(&w, DEVICES, LARGE, large_work));
    for (int run = 0; run < 2; run++) {
        for (int p = 0; p < DEVICES; p++) {
            for (int i = 0; i < LARGE; i++)
                data[i] = (float)(i % 1000 + p + run);
            ok(give(&w, p, data));
        }
        ok(xpu_execute_gang(DEVICES, w.x, w.call, w.outs, w.done));
        ok(await(&w));
        for (int p = 0; p < DEVICES; p++) {
            ok(get(w.out[p], data));
            for (int i = 0; i < LARGE; i++)
                assert_true(data[i] == (float)(i % 1000 + everybody[3] + run));
        }
        drop_results(&w);
    }
    close_crew(&w);
    free(data);
    assert_int_equal(nlive(), 0);
}

/* Ahead of their devices: what is put in needs nothing that has run. */
static void test_ahead(void **state)
{
    enum { AHEAD = 8 };
    void (*hold)(int) =
        (void (*)(int))(uintptr_t)dlsym(fake_driver, "fake_cuda_hold");
    float data[N] = {1};
    xpu_buffer *out[AHEAD][DEVICES];
    xpu_event *done[AHEAD][DEVICES];
    crew w;

    (void)state;
    fake_tell("devices=4");
    ok(open_crew(&w, DEVICES, N, work));
    for (int p = 0; p < DEVICES; p++)
        ok(give(&w, p, data));
    ok(xpu_execute_gang(DEVICES, w.x, w.call, w.outs, w.done));
    ok(await(&w)); /* now how long it takes is known */
    drop_results(&w);
    hold(1);
    for (int k = 0; k < AHEAD; k++) {
        for (int p = 0; p < DEVICES; p++) {
            w.outs[p] = &out[k][p];
            w.call[p].arg = k ? &out[k - 1][p] : &w.arg[p];
        }
        ok(xpu_execute_gang(DEVICES, w.x, w.call, w.outs, done[k]));
    }
    for (int p = 0; p < DEVICES; p++)
        assert_false(xpu_event_is_ready(done[0][p]));
    hold(0);
    for (int k = 0; k < AHEAD; k++)
        for (int p = 0; p < DEVICES; p++) {
            ok(xpu_event_wait(done[k][p]));
            xpu_event_release(done[k][p]);
            xpu_buffer_release(out[k][p]);
        }
    close_crew(&w);
    assert_int_equal(nlive(), 0);
}

/* An argument in error is everybody's error, and the next run is well. */
static void test_poisoned(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        xpu_event *ready = xpu_event_create();
        int64_t dim = N;
        xpu_buffer *was;
        sd_status st;
        crew w;

        fake_tell("devices=4");
        ok(open_crew(&w, DEVICES, N, work));
        ok(run_once(&w, 0));
        was = w.arg[2];
        ok(xpu_buffer_promise(device(&w, 2), XPU_MEM_DEVICE, SD_F32, 1, &dim,
                              ready, &w.arg[2]));
        drop_results(&w);
        if (!late)
            xpu_event_set(ready, sd_error(SD_DATA_LOSS, "it is lost"));
        ok(xpu_execute_gang(DEVICES, w.x, w.call, w.outs, w.done));
        if (late)
            xpu_event_set(ready, sd_error(SD_DATA_LOSS, "it is lost"));
        st = await(&w);
        assert_non_null(st);
        assert_int_equal(st->code, SD_DATA_LOSS);
        assert_non_null(strstr(st->message, "participant 2 of 4: it is lost"));
        sd_status_free(st);
        xpu_buffer_release(w.arg[2]);
        w.arg[2] = was;
        ok(run_once(&w, 1));
        close_crew(&w);
        xpu_event_release(ready);
        assert_int_equal(nlive(), 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_no_way),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_poisoned),
        cmocka_unit_test(test_each_call_fails),
        cmocka_unit_test(test_device_lost),
        cmocka_unit_test(test_each_command_fails),
    };
    int bad;

    if (argc != 4 || !crew_begin(argv)) {
        fprintf(stderr, "test_cuda_gangs libfakecuda.so PTX linker\n");
        return 2;
    }
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    sd_buf_finish(&life_code);
    return bad;
}
