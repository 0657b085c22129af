/* Gangs: programs over several devices as HLO text through passes, plan and
 * target, run on host devices. */
#include "gang_programs.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { DEVICES = 8, MOST_OUT = 4 };

typedef struct {
    xpu_client *client;
    sd_options opt;
} world;

static void check(sd_status st, const char *what)
{
    if (st)
        fail_msg("%s: %s", what, st->message);
}

/* ---- running ---- */

static thunk_program *compile(world *w, const char *text)
{
    return gang_compile(xpu_client_device(w->client, 0), &w->opt, text);
}

typedef struct {
    int n;
    xpu_program *x[DEVICES];
    xpu_buffer *arg[DEVICES], *out[DEVICES][MOST_OUT], **outs[DEVICES];
    xpu_event *done[DEVICES];
    xpu_call call[DEVICES];
} gang;

static void load(world *w, thunk_program *t, int n, gang *g)
{
    g->n = n;
    for (int i = 0; i < n; i++) {
        check(xpu_program_load_as(xpu_client_device(w->client, i), t, i,
                                  &g->x[i]),
              t->name);
        g->outs[i] = g->out[i];
        g->call[i] = (xpu_call){.arg = &g->arg[i], .narg = 1};
    }
}

static void unload(gang *g)
{
    for (int i = 0; i < g->n; i++)
        xpu_program_release(g->x[i]);
}

static void make_arguments(world *w, int k, gang *g)
{
    for (int p = 0; p < g->n; p++)
        g->arg[p] = gang_argument(xpu_client_device(w->client, p), p, k);
}

static void drop_arguments(gang *g)
{
    for (int i = 0; i < g->n; i++)
        xpu_buffer_release(g->arg[i]);
}

static bool one_program(world *w, const gang_program *p, int times)
{
    thunk_program *t = compile(w, p->text);
    gang g;
    int bad = 0;

    load(w, t, p->n, &g);
    make_arguments(w, p->k, &g);
    for (int k = 0; k < times; k++) {
        check(xpu_execute_gang(p->n, g.x, g.call, g.outs, g.done), p->name);
        for (int i = 0; i < p->n; i++)
            check(xpu_event_wait(g.done[i]), p->name);
        for (int i = 0; i < p->n; i++)
            for (int o = 0; o < t->noutput; o++) {
                bad += k ? 0 : gang_count_wrong(p, g.out[i][o], i, o);
                xpu_buffer_release(g.out[i][o]);
            }
        for (int i = 0; i < p->n; i++)
            xpu_event_release(g.done[i]);
    }
    drop_arguments(&g);
    unload(&g);
    thunk_program_release(t);
    return !bad;
}

static void test_programs(void **state)
{
    int bad = 0;

    for (size_t i = 0; i < (size_t)gang_program_count; i++)
        if (!one_program(*state, &gang_programs[i], 3)) {
            print_message("FAILED %s\n", gang_programs[i].name);
            bad++;
        }
    assert_int_equal(bad, 0);
}

/* ---- what goes wrong ---- */

/* Participant 0's argument says who takes part: where its first element is not
 * what the others have, it takes the other branch. */
static const char split[] = HEAD(4) ADD
    "meet { x = s32[5] parameter(0) ROOT r = s32[5] all-reduce(x), "
    "" G "{}, to_apply=add }\n"
    "other { x = s32[5] parameter(0) y = s32[5] negate(x) "
    "ROOT r = s32[5] all-reduce(y), "
    "" G "{}, to_apply=add }\n"
    "alone { x = s32[5] parameter(0) ROOT r = s32[5] negate(x) }\n"
    "ENTRY e { p = s32[5] parameter(0) i = u32[] partition-id() "
    "j = s32[] convert(i) one = s32[] constant(1) "
    "k = s32[] minimum(j, one) ROOT r = s32[5] conditional(k, p, p), "
    "branch_computations={%s, meet} }";

static void drop_run(gang *g)
{
    for (int i = 0; i < g->n; i++) {
        xpu_buffer_release(g->out[i][0]);
        xpu_event_release(g->done[i]);
    }
}

static void all_fail(gang *g, sd_code code, const char *part)
{
    for (int i = 0; i < g->n; i++) {
        sd_status st = xpu_event_wait(g->done[i]);

        assert_non_null(st);
        if (st->code != code || !strstr(st->message, part))
            fail_msg("participant %d: %s", i, st->message);
        sd_status_free(st);
        st = xpu_event_wait(xpu_buffer_ready(g->out[i][0]));
        assert_non_null(st);
        sd_status_free(st);
    }
    drop_run(g);
}

static void run_well(gang *g)
{
    check(xpu_execute_gang(g->n, g->x, g->call, g->outs, g->done), "again");
    for (int i = 0; i < g->n; i++)
        check(xpu_event_wait(g->done[i]), "again");
    drop_run(g);
}

static void diverges(world *w, const char *branch, const char *message)
{
    char text[2000];
    thunk_program *t;
    gang g;

    snprintf(text, sizeof text, split, branch);
    t = compile(w, text);
    load(w, t, 4, &g);
    make_arguments(w, 5, &g);
    for (int k = 0; k < 20; k++) {
        check(xpu_execute_gang(4, g.x, g.call, g.outs, g.done), branch);
        /* one that ended before the others came has done nothing wrong */
        for (int i = 1; i < 4; i++) {
            sd_status st = xpu_event_wait(g.done[i]);

            if (!st || st->code != SD_PRECONDITION ||
                !strstr(st->message, message))
                fail_msg("%s: %s", branch, st ? st->message : "no error");
            sd_status_free(st);
        }
        sd_status_free(xpu_event_wait(g.done[0]));
        drop_run(&g);
    }
    drop_arguments(&g);
    unload(&g);
    thunk_program_release(t);
}

static void test_divergence(void **state)
{
    diverges(*state, "alone", "has ended without it");
    diverges(*state, "other", "neither can go on");
}

typedef struct {
    world *w;
    thunk_program *t;
    gang g;
} summing;

static void begin_sum_of(world *w, summing *s, int n, const char *text)
{
    s->w = w;
    s->t = compile(w, text);
    load(w, s->t, n, &s->g);
    make_arguments(w, 5, &s->g);
}

static void begin_sum(world *w, summing *s)
{
    begin_sum_of(w, s, 4, gang_programs[0].text);
}

static void end_sum(summing *s)
{
    drop_arguments(&s->g);
    unload(&s->g);
    thunk_program_release(s->t);
}

/* An argument in error, ready or still to come, is everybody's error. */
/* A kernel reads the operands where they lie: nothing is brought first, and no
 * result is where others still read, though it might be. */
static void test_in_place(void **state)
{
    static const char *const text[] = {
        HEAD(4) ADD "ENTRY e { p = s32[4096] parameter(0) ROOT r = s32[4096] "
                    "all-reduce(p), " G "{}, to_apply=add }",
        HEAD(4) ADD "ENTRY e { p = s32[4096] parameter(0) ROOT r = s32[1024] "
                    "reduce-scatter(p), " G
                    "{}, dimensions={0}, to_apply=add }",
        "HloModule m, num_partitions=4, input_output_alias={ {}: (0, {}, "
        "may-alias) }\n" ADD
        "ENTRY e { p = s32[4096] parameter(0) s = s32[4096] all-reduce(p), " G
        "{}, to_apply=add ROOT r = s32[4096] subtract(s, p) }"};

    for (size_t i = 0; i < SD_COUNTOF(text); i++) {
        thunk_program *t = compile(*state, text[i]);

        assert_int_equal(t->seq.n, 1);
        assert_int_equal(t->seq.at[0].kind, THUNK_COLLECTIVE);
        assert_true(t->seq.at[0].kernel >= 0);
        assert_int_equal(t->temp_bytes, 0);
        for (int k = 0; k < t->nbuffer; k++)
            assert_int_equal(t->buffer[k].alias, -1);
        thunk_program_release(t);
    }
}

static void test_poisoned_argument(void **state)
{
    for (int late = 0; late < 2; late++) {
        xpu_event *ready = xpu_event_create();
        int64_t dim = 5;
        xpu_buffer *was;
        summing s;

        begin_sum(*state, &s);
        was = s.g.arg[2];
        check(xpu_buffer_promise(xpu_client_device(s.w->client, 2),
                                 XPU_MEM_DEVICE, SD_S32, 1, &dim, ready,
                                 &s.g.arg[2]),
              "a promise");
        if (!late)
            xpu_event_set(ready, sd_error(SD_DATA_LOSS, "it is lost"));
        check(xpu_execute_gang(4, s.g.x, s.g.call, s.g.outs, s.g.done), "sum");
        if (late)
            xpu_event_set(ready, sd_error(SD_DATA_LOSS, "it is lost"));
        all_fail(&s.g, SD_DATA_LOSS, "participant 2 of 4: it is lost");
        xpu_buffer_release(s.g.arg[2]);
        s.g.arg[2] = was;
        run_well(&s.g);
        xpu_event_release(ready);
        end_sum(&s);
    }
}

/* Refused whole: the others' arguments are as they were. */
static void test_refused(void **state)
{
    xpu_buffer *was, *out;
    xpu_program *x;
    sd_status st;
    summing s;

    begin_sum(*state, &s);
    was = s.g.arg[3];
    s.g.arg[3] = s.g.arg[2];
    st = xpu_execute_gang(4, s.g.x, s.g.call, s.g.outs, s.g.done);
    assert_non_null(st);
    assert_non_null(strstr(st->message, "argument 0 is on device 2"));
    sd_status_free(st);
    s.g.arg[3] = was;
    x = s.g.x[3];
    s.g.x[3] = s.g.x[2];
    st = xpu_execute_gang(4, s.g.x, s.g.call, s.g.outs, s.g.done);
    assert_non_null(st);
    assert_non_null(strstr(st->message, "what stands as participant 3"));
    sd_status_free(st);
    s.g.x[3] = x;
    st = xpu_execute_gang(3, s.g.x, s.g.call, s.g.outs, s.g.done);
    assert_non_null(st);
    assert_non_null(strstr(st->message, "3 participants of 4"));
    sd_status_free(st);
    st = xpu_execute(s.g.x[0], &s.g.call[0], &out, &s.g.done[0]);
    assert_non_null(st);
    assert_non_null(strstr(st->message, "together or not at all"));
    sd_status_free(st);
    st = xpu_program_load_as(xpu_client_device(s.w->client, 0), s.t, 4, &x);
    assert_non_null(st);
    assert_non_null(strstr(st->message, "as participant 4 of 4"));
    sd_status_free(st);
    check(xpu_program_load_as(xpu_client_device(s.w->client, 2), s.t, 3, &x),
          "another");
    st = xpu_execute_gang(4, (xpu_program *[]){s.g.x[0], s.g.x[1], s.g.x[2], x},
                          s.g.call, s.g.outs, s.g.done);
    assert_non_null(st);
    assert_non_null(strstr(st->message, "participants 2 and 3 are both on"));
    sd_status_free(st);
    xpu_program_release(x);
    run_well(&s.g);
    end_sum(&s);
}

/* A member that is poisoned before it begins ends the others. */
static void test_poisoned_member(void **state)
{
    xpu_event *ready = xpu_event_create();
    int64_t dim = 5;
    xpu_buffer *was;
    summing s;

    begin_sum(*state, &s);
    was = s.g.arg[1];
    check(xpu_buffer_promise(xpu_client_device(s.w->client, 1), XPU_MEM_DEVICE,
                             SD_S32, 1, &dim, ready, &s.g.arg[1]),
          "a promise");
    for (int i = 0; i < 4; i++)
        s.g.call[i].launch = 77;
    check(xpu_execute_gang(4, s.g.x, s.g.call, s.g.outs, s.g.done), "sum");
    assert_true(xpu_device_poison(xpu_client_device(s.w->client, 3), 77,
                                  sd_error(SD_ABORTED, "nobody wants it")));
    xpu_event_set(ready, NULL);
    all_fail(&s.g, SD_ABORTED, "nobody wants it");
    xpu_buffer_release(s.g.arg[1]);
    s.g.arg[1] = was;
    run_well(&s.g);
    xpu_event_release(ready);
    end_sum(&s);
}

/* ---- many at once ---- */

static void *run_many(void *arg)
{
    summing *s = arg;

    for (int k = 0; k < 200; k++)
        run_well(&s->g);
    return NULL;
}

/* Gangs over the same devices, from eight threads. */
static void test_threads(void **state)
{
    pthread_t thread[8];
    summing s[8];

    for (int i = 0; i < 8; i++)
        begin_sum(*state, &s[i]);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, run_many, &s[i]), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 8; i++)
        end_sum(&s[i]);
}

/* A program of one device, on the first and the last of those of a gang. */
typedef struct {
    summing gang;
    thunk_program *t;
    xpu_program *first, *last;
    _Atomic bool stop;
} passing;

static void *run_gangs(void *arg)
{
    passing *s = arg;

    while (!s->stop)
        run_well(&s->gang.g);
    return NULL;
}

static xpu_buffer *run_alone(xpu_program *x, xpu_buffer *arg)
{
    xpu_buffer *out;

    check(xpu_execute(x, &(xpu_call){.arg = &arg, .narg = 1}, &out, NULL),
          "alone");
    return out;
}

/* The first device's result goes to the last one's program: whoever of them is
 * between the members of a gang makes all wait for ever. */
static void pass_on(passing *s)
{
    xpu_buffer *made = run_alone(s->first, s->gang.g.arg[0]), *sent, *out;
    xpu_client *c = s->gang.w->client;

    check(xpu_buffer_copy(made, xpu_client_device(c, DEVICES - 1),
                          XPU_MEM_DEVICE, &sent),
          "a copy");
    out = run_alone(s->last, sent);
    check(xpu_event_wait(xpu_buffer_ready(out)), "passed on");
    xpu_buffer_release(made);
    xpu_buffer_release(sent);
    xpu_buffer_release(out);
}

static void test_gangs_and_others(void **state)
{
    passing s = {.stop = false};
    pthread_t thread;
    world *w = *state;

    begin_sum_of(w, &s.gang, DEVICES,
                 HEAD(8) ADD "ENTRY e { p = s32[5] parameter(0) ROOT r = "
                             "s32[5] all-reduce(p), " G "{}, to_apply=add }");
    s.t = compile(w, "HloModule m ENTRY e { p = s32[5] parameter(0) "
                     "ROOT r = s32[5] negate(p) }");
    check(xpu_program_load(xpu_client_device(w->client, 0), s.t, &s.first),
          "first");
    check(xpu_program_load(xpu_client_device(w->client, DEVICES - 1), s.t,
                           &s.last),
          "last");
    assert_int_equal(pthread_create(&thread, NULL, run_gangs, &s), 0);
    for (int k = 0; k < 1000; k++)
        pass_on(&s);
    s.stop = true;
    pthread_join(thread, NULL);
    xpu_program_release(s.first);
    xpu_program_release(s.last);
    thunk_program_release(s.t);
    end_sum(&s.gang);
}

static int begin(void **state)
{
    world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    sd_options_from_env(&w->opt);
    w->opt.value[SD_OPT_DEVICE] = "host";
    w->opt.value[SD_OPT_HOST_DEVICES] = "8";
    check(xpu_client_create(&w->opt, &w->client), "a client");
    *state = w;
    return 0;
}

static int end(void **state)
{
    world *w = *state;

    xpu_client_destroy(w->client);
    free(w);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_poisoned_argument),
        cmocka_unit_test(test_poisoned_member),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_gangs_and_others),
    };

    return cmocka_run_group_tests_name("gang", tests, begin, end);
}
