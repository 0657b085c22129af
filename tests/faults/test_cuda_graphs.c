/* Replaying programs as CUDA graphs on a driver that fails: loops within loops,
 * branches and copies at addresses that change give what launching gives, each
 * call and each command fails in turn, graphs take no more than their share,
 * and a driver without graphs does without.
 *   test_cuda_graphs libfakecuda.so liboldcuda.so kernels.ptx libfakejitlink.so
 * The last stands for a linker that this machine may have: it is not there. */
#include "life.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 64, RUNS = 6, KEPT = 5, LONG = 1000 };

static const char *old;
static long (*nreplays)(void), (*ngraphs)(void);

/* ---- a program ---- */

static thunk copy_step(thunk_program *p, int from, int to, size_t bytes)
{
    thunk_slice s[2] = {{from, 0, bytes}, {to, 0, bytes}};

    return (thunk){.kind = THUNK_COPY,
                   .name = "copy",
                   .narg = 2,
                   .arg = sd_arena_copy(p->arena, s, sizeof s)};
}

static thunk control(thunk_program *p, thunk_kind kind, int by, uint64_t bytes,
                     int nseq, const thunk_seq *seq)
{
    thunk_slice at = {by, 0, bytes};

    return (thunk){.kind = kind,
                   .name = kind == THUNK_WHILE ? "while" : "conditional",
                   .narg = 1,
                   .arg = sd_arena_copy(p->arena, &at, sizeof at),
                   .nseq = nseq,
                   .seq =
                       sd_arena_copy(p->arena, seq, (size_t)nseq * sizeof *seq),
                   .trip = -1};
}

static thunk_seq seq_of(thunk_program *p, int n, const thunk *t)
{
    return (thunk_seq){sd_arena_copy(p->arena, t, (size_t)n * sizeof *t), n};
}

typedef struct {
    thunk_program *p;
    int num, one, below, step, add, x, y, pred, inner_pred, start;
} parts;

/* while (y[0] < y[1]) y[0] += 1, from {0, 2}: two turns, which it may say */
static int64_t inner_trip = -1;
static thunk inner_loop(const parts *w)
{
    thunk t;
    thunk cond = call(w->p, w->below, w->y, w->inner_pred, w->num);
    thunk body = call(w->p, w->step, w->one, w->y, w->num);
    thunk_seq seq[2] = {seq_of(w->p, 1, &cond), seq_of(w->p, 1, &body)};

    t = control(w->p, THUNK_WHILE, w->inner_pred, 1, 2, seq);
    t.trip = inner_trip;
    return t;
}

/* while (x[0] < x[1]) { x[0] += 1; y = start; the inner loop; x[0] += y[0] } */
static thunk outer_loop(const parts *w)
{
    thunk cond = call(w->p, w->below, w->x, w->pred, w->num), body[4];
    thunk_seq seq[2];

    body[0] = call(w->p, w->step, w->one, w->x, w->num);
    body[1] = copy_step(w->p, w->start, w->y, 8);
    body[2] = inner_loop(w);
    body[3] = call(w->p, w->step, w->y, w->x, w->num);
    seq[0] = seq_of(w->p, 1, &cond);
    seq[1] = seq_of(w->p, 4, body);
    return control(w->p, THUNK_WHILE, w->pred, 1, 2, seq);
}

/* out = a + a, its first as the loop leaves it (by threes, to a[1] at least);
 * then, by the predicate (false) or the index, + a in the second branch. */
static thunk_program *work(const device_desc *d, int32_t index)
{
    static const float unit[2] = {1, 0}, from[2] = {0, 2};
    parts w = {.p = program(d, 1, 1, N)};
    thunk_program *p = w.p;
    int by = index < 0 ? 0 : constant(p, &index, sizeof index);
    thunk t[5], add;
    thunk_seq branch[3] = {{0}};

    w.num = number(p, N);
    w.one = constant(p, unit, sizeof unit);
    w.start = constant(p, from, sizeof from);
    w.x = temp(p, N * 4);
    w.y = temp(p, 64);
    w.pred = temp(p, 64);
    w.inner_pred = temp(p, 64);
    w.below = kernel(p, "below", 2, 1);
    w.step = kernel(p, "step", 2, 1);
    w.add = kernel(p, "accumulate", N, 1);
    add = call(p, w.add, 0, w.x, w.num);
    branch[1] = seq_of(p, 1, &add);
    t[0] = copy_step(p, 0, w.x, N * 4);
    t[1] = add;
    t[2] = outer_loop(&w);
    t[3] = index < 0 ? control(p, THUNK_COND, w.pred, 1, 2, branch)
                     : control(p, THUNK_COND, by, 4, 3, branch);
    t[4] = copy_step(p, w.x, 1, N * 4);
    steps(p, 5, t);
    return p;
}

static float expected(int i, float first, float step, int index)
{
    float a = first + (float)i * step, x = 2 * a;

    while (i == 0 && x < 2 * (first + step))
        x += 3;
    return index < 0 || index == 1 ? x + a : x;
}

static sd_status get(xpu_buffer *b, float *to)
{
    xpu_event *e;
    sd_status st = xpu_buffer_to_host(b, 0, to, N * sizeof *to, &e);

    if (st)
        return st;
    st = xpu_event_wait(e);
    xpu_event_release(e);
    return st;
}

static sd_status run_once(xpu_device *d, xpu_program *x, int run, int index,
                          xpu_buffer **a, xpu_buffer **b)
{
    float data[N], got[N], first = (float)run, step = (float)(run % 3 + 1);
    int64_t n = N;
    sd_status st;

    xpu_buffer_release(*a);
    xpu_buffer_release(*b);
    *a = *b = NULL;
    for (int i = 0; i < N; i++)
        data[i] = first + (float)i * step;
    if ((st = xpu_buffer_from_host(d, XPU_MEM_DEVICE, SD_F32, 1, &n, data, NULL,
                                   true, a, NULL)) ||
        (st = run1(x, *a, b, NULL)) || (st = get(*b, got)))
        return st;
    for (int i = 0; i < N; i++)
        if (got[i] != expected(i, first, step, index))
            fail_msg("run %d, [%d]: %g, not %g", run, i, (double)got[i],
                     (double)expected(i, first, step, index));
    return NULL;
}

/* Results are kept for some runs, so that addresses change. */
static sd_status life_of(int32_t index)
{
    xpu_buffer *a[KEPT] = {0}, *b[KEPT] = {0};
    xpu_program *x = NULL;
    life l = {0};
    sd_status st;

    device_name = "cuda";
    object = life_code;
    if (!(st = life_begin(&l, "cuda"))) {
        xpu_device *d = xpu_client_device(l.c, 0);
        thunk_program *p = work(xpu_device_desc(d), index);

        st = xpu_program_load(d, p, &x);
        thunk_program_release(p);
        for (int i = 0; i < RUNS && !st; i++)
            st = run_once(d, x, i, index, &a[i % KEPT], &b[i % KEPT]);
    }
    for (int i = 0; i < KEPT; i++) {
        xpu_buffer_release(a[i]);
        xpu_buffer_release(b[i]);
    }
    xpu_program_release(x);
    life_end(&l);
    return st;
}

/* ---- tests ---- */

static void use(const char *path, const char *words)
{
    life_options.value[SD_OPT_CUDA_LIBRARY] = path;
    fake_tell(words);
}

/* The whole program is one graph, from its first run on. */
static void test_right(void **state)
{
    (void)state;
    for (int32_t index = -1; index < 4; index++) {
        use(fake_library, "");
        ok(life_of(index));
        assert_int_equal(nreplays(), RUNS);
        assert_int_equal(ngraphs(), 0);
        assert_int_equal(nlive(), 0);
    }
}

static void test_old_driver(void **state)
{
    (void)state;
    use(old, "");
    for (int32_t index = -1; index < 4; index++)
        ok(life_of(index));
}

static bool is_clear(const sd_error *st)
{
    return strstr(st->message, "CUDA_ERROR_") ||
           strstr(st->message, "out of memory on device");
}

static int32_t taken; /* the branch */

static sd_status life_told(const char *words)
{
    sd_status st;

    use(fake_library, words);
    st = life_of(taken);
    assert_int_equal(ngraphs(), 0);
    return st;
}

static void each(long (*count)(void), const char *word, const char *more,
                 int32_t index)
{
    taken = index;
    assert_true(life_each(life_told, is_clear, count, word, more, 1) > 3);
}

static void test_each_call_fails(void **state)
{
    (void)state;
    each(ncalls, "fail", "", -1);
}

static void test_device_lost(void **state)
{
    (void)state;
    each(ncalls, "lose", ",error=214", 1);
}

static void test_each_command_fails(void **state)
{
    (void)state;
    each(nruns, "exec", "", -1);
}

/* What graphs alone call ends no run when it fails: the rest is launched, or
 * recorded in smaller pieces. */
static void test_graphs_fail(void **state)
{
    int nlaunched = 0;

    (void)state;
    for (int n = 1; n < 100; n++) {
        char words[32];
        sd_status st;

        snprintf(words, sizeof words, "fail=%d,error=801", n);
        use(fake_library, words);
        st = life_of(-1);
        nlaunched += !st && nreplays() != RUNS;
        sd_status_free(st);
    }
    printf("%d calls that can be done without\n", nlaunched);
    assert_true(nlaunched > 20);
}

static void test_known_inner_loop(void **state)
{
    inner_trip = 2;
    test_right(state);
    test_old_driver(state);
    test_graphs_fail(state);
    each(ncalls, "fail", "", -1);
    inner_trip = -1;
}

static void begin(life *l)
{
    use(fake_library, "");
    device_name = "cuda";
    object = life_code;
    ok(life_begin(l, "cuda"));
}

/* x = a; while (x[0] < x[1]) x[0] += 1, `trip` turns; out = x */
static thunk_program *counting(const device_desc *d, int64_t trip)
{
    static const float unit[2] = {1, 0};
    parts w = {.p = program(d, 1, 1, N)};
    thunk_program *p = w.p;
    thunk t[3], cond, body;
    thunk_seq seq[2];

    w.num = number(p, N);
    w.one = constant(p, unit, sizeof unit);
    w.x = temp(p, N * 4);
    w.pred = temp(p, 64);
    cond = call(p, kernel(p, "below", 2, 1), w.x, w.pred, w.num);
    body = call(p, kernel(p, "step", 2, 1), w.one, w.x, w.num);
    seq[0] = seq_of(p, 1, &cond);
    seq[1] = seq_of(p, 1, &body);
    t[0] = copy_step(p, 0, w.x, N * 4);
    t[1] = control(p, THUNK_WHILE, w.pred, 1, 2, seq);
    t[1].trip = trip;
    t[2] = copy_step(p, w.x, 1, N * 4);
    steps(p, 3, t);
    return p;
}

/* Short loops are turns in a row, long ones look at the predicate now and then;
 * commands: two copies, the turns, two kernels a look, and some of the fetch.
 */
static void test_known_trips(void **state)
{
    static const struct {
        int64_t trip;
        long looks;
    } c[] = {{0, 0}, {1, 0}, {64, 0}, {65, 2}, {1000, 16}, {1024, 17}};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(c); i++) {
        float trip = (float)c[i].trip, *v;
        long before = 0, commands;
        xpu_program *x;
        xpu_buffer *a, *b;
        life l = {0};

        begin(&l);
        x = load(
            xpu_client_device(l.c, 0),
            counting(xpu_device_desc(xpu_client_device(l.c, 0)), c[i].trip));
        a = buffer(xpu_client_device(l.c, 0), N, 3, trip);
        for (int run = 0; run < 3; run++) {
            before = nruns();
            ok(run1(x, a, &b, NULL));
            v = fetch(b);
            assert_true(v[0] == 3 + trip);
            free(v);
            xpu_buffer_release(b);
        }
        commands = 2 + c[i].trip + 2 * c[i].looks;
        assert_in_range(nruns() - before, commands, commands + 4);
        assert_int_equal(nreplays(), 3);
        xpu_buffer_release(a);
        xpu_program_release(x);
        life_end(&l);
        assert_int_equal(nlive(), 0);
    }
}

/* A branch that is longer than a graph may be is graphs of its own. */
static void test_long_branch(void **state)
{
    static const int32_t which = 1;
    thunk *t = calloc(LONG + LONG, sizeof *t), all[2];
    thunk_seq branch[2] = {{0}};
    thunk_program *p;
    xpu_program *x;
    xpu_buffer *a, *b;
    xpu_device *d;
    life l = {0};
    float *v;
    int num, add;

    (void)state;
    begin(&l);
    d = xpu_client_device(l.c, 0);
    p = program(xpu_device_desc(d), 1, 1, N);
    num = number(p, N);
    add = kernel(p, "accumulate", N, 1);
    for (int i = 0; i < LONG + LONG; i++)
        t[i] = call(p, add, 0, 1, num);
    branch[1] = seq_of(p, LONG + LONG, t);
    all[0] = copy_step(p, 0, 1, N * 4);
    all[1] =
        control(p, THUNK_COND, constant(p, &which, sizeof which), 4, 2, branch);
    steps(p, 2, all);
    x = load(d, p);
    a = buffer(d, N, 1, 0);
    for (int run = 0; run < 3; run++) {
        ok(run1(x, a, &b, NULL));
        v = fetch(b);
        assert_true(v[1] == 1 + LONG + LONG);
        free(v);
        xpu_buffer_release(b);
    }
    assert_in_range(ngraphs(), 2, 3);
    xpu_program_release(x);
    xpu_buffer_release(a);
    life_end(&l);
    assert_int_equal(nlive(), 0);
    free(t);
}

/* A chain that is as long as a graph, 40 times. */
static void test_share(void **state)
{
    xpu_program *x[40];
    life l = {0};
    thunk *t = calloc(LONG, sizeof *t);
    xpu_device *d;
    xpu_buffer *a, *b;

    (void)state;
    begin(&l);
    d = xpu_client_device(l.c, 0);
    a = buffer(d, N, 1, 0);
    for (size_t i = 0; i < SD_COUNTOF(x); i++) {
        thunk_program *p = program(xpu_device_desc(d), 1, 1, N);
        int num = number(p, N), add = kernel(p, "accumulate", N, 1);

        t[0] = copy_step(p, 0, 1, N * 4);
        for (int k = 1; k < LONG; k++)
            t[k] = call(p, add, 0, 1, num);
        steps(p, LONG, t);
        x[i] = load(d, p);
        for (int run = 0; run < 3; run++) {
            float *v;

            ok(run1(x[i], a, &b, NULL));
            v = fetch(b);
            assert_true(v[N - 1] == LONG);
            free(v);
            xpu_buffer_release(b);
        }
    }
    assert_in_range(ngraphs(), 8, 32);
    for (size_t i = 0; i < SD_COUNTOF(x); i++)
        xpu_program_release(x[i]);
    assert_int_equal(ngraphs(), 0);
    xpu_buffer_release(a);
    life_end(&l);
    assert_int_equal(nlive(), 0);
    free(t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_old_driver),
        cmocka_unit_test(test_graphs_fail),
        cmocka_unit_test(test_each_call_fails),
        cmocka_unit_test(test_device_lost),
        cmocka_unit_test(test_each_command_fails),
        cmocka_unit_test(test_known_inner_loop),
        cmocka_unit_test(test_known_trips),
        cmocka_unit_test(test_long_branch),
        cmocka_unit_test(test_share),
    };
    int bad;

    if (argc != 5 || !fake_open("cuda", argv[1]) ||
        !dlopen(argv[4], RTLD_NOW | RTLD_LOCAL)) {
        fprintf(stderr, "test_cuda_graphs libfakecuda.so liboldcuda.so PTX "
                        "libfakejitlink.so\n");
        return 2;
    }
    setenv("FAKE_LINK", "none", 1);
    old = argv[2];
    nreplays = fake_count("replays");
    ngraphs = fake_count("graphs");
    sd_log_init();
    ok(sd_file_read(argv[3], &life_code));
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    sd_buf_finish(&life_code);
    return bad;
}
