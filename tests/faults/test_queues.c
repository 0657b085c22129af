/* A device's queues, on a fake driver whose kernels run when the test says so:
 * what is launched, what waits for what without the host, what stays until a
 * mark is reached, and what becomes of errors on the way.
 *   test_queues cl libfakecl.so kernels.spv
 *   test_queues cuda libfakecuda.so kernels.ptx */
#include "xpu_by_hand.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 4096, LARGE = 300000 };

static long (*nfinish)(void), (*nlive)(void);
static void (*hold)(int);

typedef struct {
    xpu_client *c;
    xpu_device *d;
    xpu_program *square, *add;
    xpu_buffer *a; /* 1, 2, 3, ... */
} fixture;

static fixture open_threads(const char *words, const char *threads)
{
    char cuda[64];
    fixture f;

    setenv("FAKE_CL", words, 1);
    snprintf(cuda, sizeof cuda, "devices=2,%s", words);
    setenv("FAKE_CUDA", cuda, 1);
    f.c = open_client(threads, "2");
    f.d = xpu_client_device(f.c, 0);
    f.square = simple(f.d, "square", N, 1e9); /* too long to be helped */
    f.add = adder(f.d, N);
    f.a = buffer(f.d, N, 1, 1);
    return f;
}

static fixture open_with(const char *words)
{
    return open_threads(words, "1");
}

static void close_all(fixture *f)
{
    xpu_buffer_release(f->a);
    xpu_program_release(f->square);
    xpu_program_release(f->add);
    xpu_client_destroy(f->c);
    if (nfinish)
        assert_int_equal(nfinish(), 0);
    assert_int_equal(nlive(), 0);
}

/* Once before, so that the device knows that it is short. */
static void warm(const fixture *f)
{
    xpu_buffer *b;

    ok(run1(f->square, f->a, &b, NULL));
    ok(xpu_event_wait(xpu_buffer_ready(b)));
    xpu_buffer_release(b);
    ok(xpu_device_sync(f->d));
}

static bool is_ready(const xpu_buffer *b)
{
    return xpu_event_is_ready(xpu_buffer_ready(b));
}

static float squared(int i, int times)
{
    float x = (float)i + 1;

    while (times--)
        x = x * x + 1;
    return x;
}

static int64_t in_use(const fixture *f)
{
    xpu_memory_stats s;

    xpu_device_stats(f->d, &s);
    return s.in_use;
}

/* Runs and the copy of the last one's result are all on their way before the
 * first kernel runs, and copies of other arrays pass them. */
static void nothing_waits_for_the_host(void **state)
{
    fixture f = open_with("");
    xpu_buffer *b[3], *other;
    xpu_event *copied, *put;
    float got[N], *large = calloc(LARGE, sizeof *large);
    int64_t n = LARGE;

    (void)state;
    warm(&f);
    hold(1);
    ok(run1(f.square, f.a, &b[0], NULL));
    ok(run1(f.square, b[0], &b[1], NULL));
    ok(run1(f.square, b[1], &b[2], NULL));
    ok(xpu_buffer_to_host(b[2], 0, got, sizeof got, &copied));
    ok(xpu_buffer_from_host(f.d, XPU_MEM_DEVICE, SD_F32, 1, &n, large, NULL,
                            false, &other, &put));
    ok(xpu_event_wait(put)); /* beside what is held */
    for (int i = 0; i < 3; i++)
        assert_false(is_ready(b[i]));
    assert_false(xpu_event_is_ready(copied));
    hold(0);
    ok(xpu_event_wait(copied));
    for (int i = 0; i < 8; i++)
        assert_true(got[i] == squared(i, 3));
    for (int i = 0; i < 3; i++)
        xpu_buffer_release(b[i]);
    xpu_event_release(copied);
    xpu_event_release(put);
    xpu_buffer_release(other);
    free(large);
    close_all(&f);
}

/* An array in its copy queue is a run's argument at once, as a large one is
 * that comes from another device. */
static void a_run_follows_copies(void **state)
{
    fixture f = open_with("lag=2000");
    xpu_device *d1 = xpu_client_device(f.c, 1);
    xpu_program *long_ = simple(f.d, "square", LARGE, 1e9);
    xpu_program *there = simple(d1, "square", LARGE, 1e9);
    float *data = calloc(LARGE, sizeof *data), *v;
    xpu_buffer *x, *y, *moved, *z;
    int64_t n = LARGE;
    xpu_event *put;

    (void)state;
    for (int i = 0; i < LARGE; i++)
        data[i] = (float)(i % 100);
    ok(xpu_buffer_from_host(f.d, XPU_MEM_DEVICE, SD_F32, 1, &n, data, NULL,
                            false, &x, &put));
    ok(run1(long_, x, &y, NULL));
    ok(xpu_buffer_copy(y, d1, XPU_MEM_DEVICE, &moved));
    ok(run1(there, moved, &z, NULL));
    xpu_buffer_delete(x);
    xpu_buffer_delete(y);
    xpu_buffer_delete(moved);
    v = fetch(z);
    for (int i = 0; i < 100; i++)
        assert_true(v[i] == squared(i - 1, 2));
    ok(xpu_event_wait(put));
    xpu_event_release(put);
    free(v);
    free(data);
    xpu_buffer_release(x);
    xpu_buffer_release(y);
    xpu_buffer_release(moved);
    xpu_buffer_release(z);
    xpu_program_release(long_);
    xpu_program_release(there);
    close_all(&f);
}

/* Sizes below and above what is copied at once, what is shared among threads,
 * a pinned slot and all slots; each array has other values. */
static void arrays_put_in_a_row_keep_their_values(void **state)
{
    static const int64_t size[] = {1000,    16384,   40001,   262144,
                                   262145,  600000,  1048577, 2097152,
                                   2097153, 4194305, 9000001, 262144};
    enum { ARRAYS = SD_COUNTOF(size) };
    fixture f = open_threads("memory=17179869184", "4");
    xpu_buffer *b[ARRAYS];
    xpu_event *put[ARRAYS], *got[ARRAYS];
    float *from[ARRAYS], *to[ARRAYS];

    (void)state;
    for (int i = 0; i < ARRAYS; i++) {
        from[i] = malloc((size_t)size[i] * sizeof(float));
        to[i] = calloc((size_t)size[i], sizeof(float));
        for (int64_t j = 0; j < size[i]; j++)
            from[i][j] = (float)((j + 7919 * i) % 16777213);
    }
    for (int i = 0; i < ARRAYS; i++)
        ok(xpu_buffer_from_host(f.d, XPU_MEM_DEVICE, SD_F32, 1, &size[i],
                                from[i], NULL, false, &b[i], &put[i]));
    for (int i = 0; i < ARRAYS; i++)
        ok(xpu_buffer_to_host(b[i], 0, to[i], (size_t)size[i] * sizeof(float),
                              &got[i]));
    for (int i = 0; i < ARRAYS; i++) {
        ok(xpu_event_wait(put[i]));
        ok(xpu_event_wait(got[i]));
        assert_memory_equal(from[i], to[i], (size_t)size[i] * sizeof(float));
        xpu_event_release(put[i]);
        xpu_event_release(got[i]);
        xpu_buffer_release(b[i]);
        free(from[i]);
        free(to[i]);
    }
    close_all(&f);
}

/* NULL: all that was read is right. */
static void *get_often(void *arg)
{
    xpu_buffer *b = arg;
    bool right = true;

    for (int i = 0; i < 20; i++) {
        float *v = fetch(b);

        for (int j = 0; j < LARGE / 2; j++)
            right = right && v[j] == v[0] + (float)j;
        free(v);
    }
    return right ? NULL : b;
}

/* Several threads read what is short enough for the one pinned slot. */
static void threads_read_at_once(void **state)
{
    enum { THREADS = 4 };
    fixture f = open_with("");
    xpu_buffer *b[THREADS];
    pthread_t t[THREADS];
    void *wrong;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        b[i] = buffer(f.d, LARGE / 2, (float)i, 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, get_often, b[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], &wrong);
        assert_null(wrong);
        xpu_buffer_release(b[i]);
    }
    close_all(&f);
}

/* Deleted, donated: its memory stays until the device has done with it. */
static void memory_stays_until_the_mark(void **state)
{
    fixture f = open_with("");
    xpu_buffer *x = buffer(f.d, N, 0, 1), *b, *sum;
    int64_t before, held;
    void *at = xpu_buffer_pointer(x);
    float *v;

    (void)state;
    warm(&f);
    before = in_use(&f);
    hold(1);
    ok(run1(f.square, f.a, &b, NULL));
    ok(run2(f.add, x, b, NULL, &sum));
    assert_true(xpu_buffer_is_deleted(x));
    assert_ptr_equal(xpu_buffer_pointer(sum), at);
    xpu_buffer_release(x);
    held = in_use(&f);
    assert_true(held > before);
    xpu_buffer_delete(b);
    xpu_buffer_release(b);
    assert_int_equal(in_use(&f), held);
    hold(0);
    ok(xpu_device_sync(f.d));
    assert_int_equal(in_use(&f), before); /* b's; x's is sum's now */
    v = fetch(sum);
    for (int i = 0; i < 8; i++)
        assert_true(v[i] == (float)i + squared(i, 1));
    free(v);
    xpu_buffer_release(sum);
    close_all(&f);
}

/* out = in; out = out * out + 1 with scratch memory. */
static xpu_program *with_scratch(xpu_device *d, uint64_t bytes)
{
    thunk_program *p = program(xpu_device_desc(d), 1, 1, N);
    int num = number(p, N), t = temp(p, bytes);
    thunk step[2] = {call(p, kernel(p, "square", N, 1e9), 0, t, num),
                     call(p, kernel(p, "square", N, 1e9), t, 1, num)};

    steps(p, 2, step);
    return load(d, p);
}

/* Runs in flight share their scratch memory, one after the other. */
static void scratch_memory_is_shared(void **state)
{
    fixture f = open_with("");
    xpu_program *x = with_scratch(f.d, 1 << 20),
                *y = with_scratch(f.d, 2 << 20);
    xpu_buffer *b[8], *first;
    int64_t before;

    (void)state;
    ok(run1(x, f.a, &b[0], NULL));
    ok(run1(y, f.a, &b[1], NULL));
    ok(xpu_device_sync(f.d));
    xpu_buffer_release(b[0]);
    xpu_buffer_release(b[1]);
    warm(&f);
    before = in_use(&f);
    hold(1);
    ok(run1(f.square, f.a, &first, NULL));
    for (int i = 0; i < 8; i++)
        ok(run1(i % 4 ? x : y, i ? b[i - 1] : first, &b[i], NULL));
    assert_true(in_use(&f) - before < 3 << 20);
    hold(0);
    ok(xpu_device_sync(f.d));
    for (int i = 0; i < 8; i++)
        xpu_buffer_release(b[i]);
    xpu_buffer_release(first);
    assert_int_equal(in_use(&f), before);
    xpu_program_release(x);
    xpu_program_release(y);
    close_all(&f);
}

/* Lets go when the caller takes no more memory. */
static void *let_go_at_rest(void *arg)
{
    int64_t was = -1, is;

    while ((is = in_use(arg)) != was) {
        was = is;
        usleep(200000);
    }
    hold(0);
    return NULL;
}

static xpu_program *with_large_output(xpu_device *d, int64_t n)
{
    thunk_program *p = program(xpu_device_desc(d), 1, 1, n);
    thunk step = call(p, kernel(p, "square", 64, 1e9), 0, 1, number(p, 64));

    steps(p, 1, &step);
    return load(d, p);
}

/* Results to come take little of the host's memory, and more of a card's. */
static void results_to_come_are_bounded(void **state)
{
    enum { RUNS = 24, BYTES = 16 << 20, BOUND = 128 << 20 };
    static const struct {
        const char *words;
        bool own;
    } row[] = {{"memory=17179869184", false},
               {"memory=17179869184,gpu=1,unified=1", false},
               {"memory=17179869184,gpu=1", true}};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        fixture f = open_with(row[i].words);
        xpu_program *x = with_large_output(f.d, BYTES / 4);
        xpu_buffer *a = buffer(f.d, BYTES / 4, 1, 1), *b;
        int64_t before = in_use(&f);
        xpu_memory_stats s;
        pthread_t t;

        ok(run1(x, a, &b, NULL)); /* now how long it takes is known */
        xpu_buffer_release(b);
        ok(xpu_device_sync(f.d));
        hold(1);
        if (!row[i].own)
            pthread_create(&t, NULL, let_go_at_rest, &f);
        for (int j = 0; j < RUNS; j++) {
            ok(run1(x, a, &b, NULL));
            xpu_buffer_release(b);
        }
        if (row[i].own)
            hold(0);
        else
            pthread_join(t, NULL);
        ok(xpu_device_sync(f.d));
        xpu_device_stats(f.d, &s);
        if (row[i].own)
            assert_true(s.peak - before >= (int64_t)RUNS * BYTES);
        else
            assert_true(s.peak - before <= BOUND + 2 * BYTES);
        xpu_buffer_release(a);
        xpu_program_release(x);
        close_all(&f);
    }
}

static void *let_go(void *arg)
{
    usleep(50000);
    hold(0);
    return arg;
}

/* Destroying a client waits for what is in its queues; what is held stays. */
static void a_client_ends_what_is_in_flight(void **state)
{
    fixture f = open_with("");
    xpu_buffer *b, *c, *none;
    pthread_t t;
    xpu_event *done;

    (void)state;
    warm(&f);
    hold(1);
    ok(run1(f.square, f.a, &b, NULL));
    ok(run1(f.square, b, &c, &done));
    pthread_create(&t, NULL, let_go, NULL);
    xpu_client_destroy(f.c);
    assert_true(xpu_event_is_ready(done));
    ok(xpu_event_wait(done));
    fails(run1(f.square, b, &none, NULL), SD_PRECONDITION);
    pthread_join(t, NULL);
    xpu_event_release(done);
    xpu_buffer_release(b);
    xpu_buffer_release(c);
    xpu_buffer_release(f.a);
    xpu_program_release(f.square);
    xpu_program_release(f.add);
    assert_int_equal(nlive(), 0);
}

static void see(void *ctx, sd_status st)
{
    *(sd_code *)ctx = st ? st->code : 0;
    sd_status_free(st);
}

/* A kernel that the device ends with an error: it, what is made of it and what
 * was asked for of that are in error; the rest is not. */
static void errors_of_the_device_arrive(void **state)
{
    fixture f = open_with("exec=4,error=-5"); /* constants, f.a, then b */
    xpu_buffer *b, *c, *good;
    xpu_event *copied;
    sd_code seen = SD_UNKNOWN;
    float got[N];

    (void)state;
    hold(1);
    ok(run1(f.square, f.a, &b, NULL));
    ok(run1(f.square, b, &c, NULL));
    ok(xpu_buffer_to_host(c, 0, got, sizeof got, &copied));
    ok(run1(f.square, f.a, &good, NULL));
    ok(xpu_event_then(copied, see, &seen));
    hold(0);
    fails(xpu_event_wait(xpu_buffer_ready(b)), SD_EXHAUSTED);
    fails(xpu_event_wait(xpu_buffer_ready(c)), SD_EXHAUSTED);
    fails(xpu_event_wait(copied), SD_EXHAUSTED);
    ok(xpu_event_wait(xpu_buffer_ready(good)));
    ok(xpu_device_sync(f.d));
    assert_int_equal(seen, SD_EXHAUSTED);
    xpu_event_release(copied);
    xpu_buffer_release(b);
    xpu_buffer_release(c);
    xpu_buffer_release(good);
    close_all(&f);
}

/* A fault: everything that was on its way is in error, and says why.  Commands
 * before it: two devices' words for meetings, constants, f.a; then b's. */
static void a_fault_ends_all(void **state)
{
    fixture f = open_with("exec=6,error=716");
    xpu_buffer *b[2];
    xpu_event *copied;
    float got[N];

    (void)state;
    hold(1);
    ok(run1(f.square, f.a, &b[0], NULL));
    ok(run1(f.square, b[0], &b[1], NULL));
    ok(xpu_buffer_to_host(b[1], 0, got, sizeof got, &copied));
    hold(0);
    for (int i = 0; i < 3; i++) {
        sd_status st = xpu_event_wait(i < 2 ? xpu_buffer_ready(b[i]) : copied);

        assert_non_null(st);
        assert_non_null(strstr(st->message, "CUDA_ERROR_MISALIGNED_ADDRESS"));
        sd_status_free(st);
    }
    xpu_event_release(copied);
    xpu_buffer_release(b[0]);
    xpu_buffer_release(b[1]);
    close_all(&f);
}

static void *symbol(void *lib, const char *name)
{
    char whole[64];

    snprintf(whole, sizeof whole, "fake_%s_%s", device_name, name);
    return dlsym(lib, whole);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_waits_for_the_host),
        cmocka_unit_test(a_run_follows_copies),
        cmocka_unit_test(arrays_put_in_a_row_keep_their_values),
        cmocka_unit_test(threads_read_at_once),
        cmocka_unit_test(memory_stays_until_the_mark),
        cmocka_unit_test(scratch_memory_is_shared),
        cmocka_unit_test(a_client_ends_what_is_in_flight),
    };
    const struct CMUnitTest of_cl[] = {
        cmocka_unit_test(errors_of_the_device_arrive),
        cmocka_unit_test(results_to_come_are_bounded)};
    const struct CMUnitTest of_cuda[] = {cmocka_unit_test(a_fault_ends_all)};
    void *lib = argc == 4 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    int bad;

    if (!lib) {
        fprintf(stderr, "test_queues cl|cuda LIBRARY KERNELS\n");
        return 2;
    }
    device_name = argv[1];
    nfinish = (long (*)(void))(uintptr_t)symbol(lib, "finishes");
    nlive = (long (*)(void))(uintptr_t)symbol(lib, "live");
    hold = (void (*)(int))(uintptr_t)symbol(lib, "hold");
    setenv("SUNDOG_CL_LIBRARY", argv[2], 1);
    setenv("SUNDOG_CUDA_LIBRARY", argv[2], 1);
    sd_log_init();
    ok(sd_file_read(argv[3], &object));
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    if (!strcmp(device_name, "cl"))
        bad += cmocka_run_group_tests(of_cl, NULL, NULL);
    else
        bad += cmocka_run_group_tests(of_cuda, NULL, NULL);
    sd_buf_finish(&object);
    dlclose(lib);
    return bad;
}
