/* Interrupts: a loop that never ends is ended by SIGINT, what else there is
 * goes on.  test_xpu_interrupt host|cl OBJECT */
#include "xpu_by_hand.h"

#include "skip.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000u

static volatile sig_atomic_t nseen; /* by the handler of "the framework" */

static void seen(int number)
{
    (void)number;
    nseen++;
}

/* As Python does. */
static void handle(void (*handler)(int))
{
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK};

    assert_int_equal(sigaction(SIGINT, &a, NULL), 0);
    nseen = 0;
}

static void is_handled_by(void (*handler)(int))
{
    struct sigaction a;

    assert_int_equal(sigaction(SIGINT, NULL, &a), 0);
    assert_ptr_equal(a.sa_handler, handler);
}

/* out = in; while (out[0] < out[1]) out[0] += 1 */
static xpu_program *counter(xpu_device *d)
{
    static const float unit[2] = {1, 0};
    thunk_program *p = program(xpu_device_desc(d), 1, 1, 2);
    int num = number(p, 2), one = constant(p, unit, sizeof unit);
    int pred = temp(p, 64);
    thunk_slice copy[2] = {{0, 0, 8}, {1, 0, 8}}, at = {pred, 0, 1};
    thunk cond = call(p, kernel(p, "below", 2, 1), 1, pred, num);
    thunk body = call(p, kernel(p, "step", 2, 1), one, 1, num);
    thunk_seq seq[2] = {{sd_arena_copy(p->arena, &cond, sizeof cond), 1},
                        {sd_arena_copy(p->arena, &body, sizeof body), 1}};
    thunk t[2] = {{.kind = THUNK_COPY,
                   .name = "copy",
                   .narg = 2,
                   .arg = sd_arena_copy(p->arena, copy, sizeof copy)},
                  {.kind = THUNK_WHILE,
                   .name = "while",
                   .narg = 1,
                   .arg = sd_arena_copy(p->arena, &at, sizeof at),
                   .seq = sd_arena_copy(p->arena, seq, sizeof seq),
                   .nseq = 2,
                   .trip = -1}};

    steps(p, 2, t);
    return load(d, p);
}

typedef struct {
    xpu_client *c;
    xpu_device *d;
    xpu_program *x;
    xpu_buffer *endless, *short_; /* arguments */
} fixture;

static fixture open_all(void)
{
    fixture f = {.c = open_client("2", "1")};

    f.d = xpu_client_device(f.c, 0);
    f.x = counter(f.d);
    f.endless = buffer(f.d, 2, 0, 1e30f); /* as a float it stops growing */
    f.short_ = buffer(f.d, 2, 0, 100);
    return f;
}

static void close_all(fixture *f)
{
    xpu_buffer_release(f->endless);
    xpu_buffer_release(f->short_);
    xpu_program_release(f->x);
    xpu_client_destroy(f->c); /* waits for what runs */
}

static xpu_event *start(fixture *f, xpu_buffer *arg, xpu_buffer **out)
{
    xpu_event *done;

    ok(run1(f->x, arg, out, &done));
    return done;
}

static void was_interrupted(xpu_event *done)
{
    sd_status st = xpu_event_wait(done);

    xpu_event_release(done);
    assert_non_null(st);
    assert_string_equal(st->message, "interrupted (SIGINT): by_hand was ended "
                                     "before it was done");
    fails(st, SD_CANCELLED);
}

static void has_counted_to_100(xpu_event *done, xpu_buffer *out)
{
    float *v = fetch(out);

    ok(xpu_event_wait(done));
    assert_true(v[0] == 100);
    free(v);
    xpu_buffer_release(out);
    xpu_event_release(done);
}

static void counts_to_100(fixture *f)
{
    xpu_buffer *out;
    xpu_event *done = start(f, f->short_, &out);

    has_counted_to_100(done, out);
}

/* Asked once, it has a second; the framework's handler is called, and is in
 * place again when nothing runs. */
static void an_interrupt_ends_an_endless_loop(void **state)
{
    fixture f = open_all();
    xpu_buffer *out;
    xpu_event *done;
    uint64_t from;

    (void)state;
    handle(seen);
    done = start(&f, f.endless, &out);
    from = sd_now_ns();
    raise(SIGINT);
    assert_int_equal(nseen, 1);
    was_interrupted(done);
    /* the framework has had time to see its own interrupt */
    assert_true(sd_now_ns() - from >= SECOND + SECOND / 4);
    fails(xpu_event_error(xpu_buffer_ready(out)), SD_CANCELLED);
    xpu_buffer_release(out);
    ok(xpu_device_sync(f.d)); /* the loop itself has ended too */
    counts_to_100(&f);
    close_all(&f);
    is_handled_by(seen);
    handle(SIG_DFL);
}

static void a_second_interrupt_does_not_wait(void **state)
{
    fixture f = open_all();
    xpu_buffer *out;
    xpu_event *done;
    uint64_t from;

    (void)state;
    handle(seen);
    done = start(&f, f.endless, &out);
    from = sd_now_ns();
    raise(SIGINT);
    raise(SIGINT);
    was_interrupted(done);
    assert_true(sd_now_ns() - from >= SECOND / 4);
    assert_int_equal(nseen, 2);
    xpu_buffer_release(out);
    close_all(&f);
    handle(SIG_DFL);
}

/* What waits ends with what runs, on every client; what comes later does not,
 * though it has to wait. */
static void what_comes_after_an_interrupt_runs(void **state)
{
    fixture f = open_all(), g = open_all();
    xpu_buffer *out[4];
    xpu_event *done[4];

    (void)state;
    handle(seen);
    done[0] = start(&f, f.endless, &out[0]);
    done[1] = start(&f, f.endless, &out[1]);
    done[2] = start(&g, g.endless, &out[2]);
    raise(SIGINT);
    done[3] = start(&f, f.short_, &out[3]);
    for (int i = 0; i < 3; i++)
        was_interrupted(done[i]);
    has_counted_to_100(done[3], out[3]);
    for (int i = 0; i < 3; i++)
        xpu_buffer_release(out[i]);
    close_all(&f);
    close_all(&g);
    is_handled_by(seen);
    handle(SIG_DFL);
}

/* An interrupt that is ignored, or ends the process, is left to do that; and a
 * handler that comes while something runs stands before ours next time. */
static void other_dispositions_are_left_alone(void **state)
{
    fixture f = open_all();
    xpu_buffer *out[2];
    xpu_event *done[2];

    (void)state;
    handle(SIG_IGN);
    done[0] = start(&f, f.endless, &out[0]);
    is_handled_by(SIG_IGN);
    raise(SIGINT);
    handle(seen);
    done[1] = start(&f, f.endless, &out[1]);
    assert_false(xpu_event_is_ready(done[0]));
    raise(SIGINT);
    raise(SIGINT);
    for (int i = 0; i < 2; i++) {
        was_interrupted(done[i]);
        xpu_buffer_release(out[i]);
    }
    close_all(&f);
    is_handled_by(seen);
    handle(SIG_DFL);
}

/* As LLVM's in a driver: it takes itself out, and with it what stands before
 * it. */
static void leave(int number)
{
    (void)number;
    handle(seen);
}

static void a_handler_that_takes_itself_out_is_followed(void **state)
{
    fixture f = open_all();
    xpu_buffer *out;
    xpu_event *done;
    uint64_t from;

    (void)state;
    handle(leave);
    done = start(&f, f.endless, &out);
    raise(SIGINT); /* from now on `seen` stands there, or ours again */
    for (from = sd_now_ns(); sd_now_ns() - from < SECOND / 2;)
        ;
    raise(SIGINT); /* ours is there again */
    was_interrupted(done);
    assert_int_equal(nseen, 1);
    xpu_buffer_release(out);
    close_all(&f);
    is_handled_by(seen);
    handle(SIG_DFL);
}

/* LLVM's goes on to raise the signal, by when ours may stand there again: it is
 * the one interrupt still, and the run keeps its second.  Until a handler is
 * there, an interrupt ends the process, as it would without us. */
static bool was_left_alone;

static bool waits_for_ours(void (*there)(int), uint64_t most)
{
    struct sigaction a;
    uint64_t from = sd_now_ns();

    do
        sigaction(SIGINT, NULL, &a);
    while (a.sa_handler == there && sd_now_ns() - from < most);
    return a.sa_handler != there;
}

static void raise_again(int number, siginfo_t *info, void *context)
{
    struct sigaction mine = {.sa_handler = seen, .sa_flags = SA_ONSTACK};

    (void)info;
    (void)context;
    was_left_alone = !waits_for_ours(SIG_DFL, SECOND / 5);
    sigaction(SIGINT, &mine, NULL);
    waits_for_ours(seen, SECOND / 2);
    raise(number);
}

#ifdef __SANITIZE_THREAD__
/* The thread sanitizer delivers what a handler raises only when that handler
 * has returned, where it is a second interrupt. */
static void one_that_is_raised_again_counts_once(void **state)
{
    (void)state;
    (void)raise_again;
    skip_because("the thread sanitizer delays signals");
}
#else
static void one_that_is_raised_again_counts_once(void **state)
{
    struct sigaction a = {.sa_sigaction = raise_again,
                          .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESETHAND};
    fixture f = open_all();
    xpu_buffer *out;
    xpu_event *done;
    uint64_t from;

    (void)state;
    nseen = 0;
    assert_int_equal(sigaction(SIGINT, &a, NULL), 0);
    done = start(&f, f.endless, &out);
    from = sd_now_ns();
    raise(SIGINT);
    assert_true(was_left_alone);
    assert_int_equal(nseen, 1);
    was_interrupted(done);
    assert_true(sd_now_ns() - from >= SECOND);
    xpu_buffer_release(out);
    close_all(&f);
    is_handled_by(seen);
    handle(SIG_DFL);
}
#endif

static void interrupts_can_be_turned_off(void **state)
{
    fixture f;
    xpu_buffer *out;
    xpu_event *done;

    (void)state;
    setenv("SUNDOG_INTERRUPTS", "0", 1);
    f = open_all();
    handle(seen);
    done = start(&f, f.short_, &out);
    is_handled_by(seen);
    raise(SIGINT);
    raise(SIGINT);
    ok(xpu_event_wait(done));
    xpu_event_release(done);
    xpu_buffer_release(out);
    close_all(&f);
    unsetenv("SUNDOG_INTERRUPTS");
    handle(SIG_DFL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interrupt_ends_an_endless_loop),
        cmocka_unit_test(a_second_interrupt_does_not_wait),
        cmocka_unit_test(what_comes_after_an_interrupt_runs),
        cmocka_unit_test(other_dispositions_are_left_alone),
        cmocka_unit_test(a_handler_that_takes_itself_out_is_followed),
        cmocka_unit_test(one_that_is_raised_again_counts_once),
        cmocka_unit_test(interrupts_can_be_turned_off),
    };
    int bad;

    if (argc != 3) {
        fprintf(stderr, "test_xpu_interrupt host|cl OBJECT\n");
        return 2;
    }
    device_name = argv[1];
    sd_log_init();
    if (!is_there())
        return 77; /* skipped, says Meson */
    ok(sd_file_read(argv[2], &object));
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    sd_buf_finish(&object);
    return bad;
}
