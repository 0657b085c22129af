/* What a failing CUDA driver does to us: each call of a whole life fails in
 * turn, each command where it runs is a fault, the device is lost at each call,
 * memory ends, answers are garbage.  Always one clear error or a right result,
 * nothing leaks, and a host device beside it goes on.
 *   test_fake_cuda libfakecuda.so kernels.ptx kernels.o libfakejitlink.so */
#include "life.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *linker;

/* The call and CUDA's name of the error, or what it makes of the device. */
static bool is_clear(const sd_error *st)
{
    return (st->code == SD_EXHAUSTED || st->code == SD_INTERNAL ||
            st->code == SD_UNAVAILABLE) &&
           ((strstr(st->message, "CUDA, cu") &&
             strstr(st->message, ": CUDA_ERROR_")) ||
            strstr(st->message, "was turned off by CUDA_ERROR_") ||
            strstr(st->message, "out of memory on device"));
}

static void each(long (*count)(void), const char *word, const char *more)
{
    long n = life_each(life_beside_host, is_clear, count, word, more, 1);

    assert_true(n > (count == nruns ? 3 : 20));
}

static void test_sound(void **state)
{
    (void)state;
    ok(with("memory=%d", 1 << 26));
    ok(with("memory=%d,pools=0", 1 << 26));
    ok(with("devices=3"));
    ok(with("devices=2,pools=0"));
    ok(with("devices=2,peers=0"));
    ok(with("lag=1000"));
    assert_int_equal(nlive(), 0);
}

static void test_each_call_fails(void **state)
{
    (void)state;
    each(ncalls, "fail", "");
    each(ncalls, "fail", ",pools=0,error=2");
    each(ncalls, "fail", ",devices=2,error=1");
    each(ncalls, "fail", ",error=719");
}

/* An array of more pieces than there are slots at first, there and back: whole,
 * or in short parts. */
static sd_status put_and_get(xpu_device *d, float *data, float *got, int64_t n,
                             size_t part)
{
    size_t bytes = (size_t)n * sizeof *data;
    xpu_event *put, *read;
    xpu_buffer *b;
    sd_status st = xpu_buffer_from_host(d, XPU_MEM_DEVICE, SD_F32, 1, &n, data,
                                        NULL, false, &b, &put);

    if (st)
        return st;
    st = xpu_event_wait(put);
    for (size_t at = 0; at < bytes && !st; at += part)
        if (!(st = xpu_buffer_to_host(b, at, (char *)got + at,
                                      SD_MIN(bytes - at, part), &read))) {
            st = xpu_event_wait(read);
            xpu_event_release(read);
        }
    xpu_event_release(put);
    xpu_buffer_release(b);
    return st;
}

static sd_status of_pieces(const char *words)
{
    enum { LENGTH = 5 << 20 };
    static float data[LENGTH], got[LENGTH];
    bool in_parts = strstr(words, "pinned") != NULL;
    life l = {0};
    sd_status st;

    fake_tell(words);
    for (int i = 0; i < LENGTH; i++)
        data[i] = (float)i;
    memset(got, 0, sizeof got);
    if (!(st = life_begin(&l, "cuda")) &&
        !(st = put_and_get(xpu_client_device(l.c, 0), data, got, LENGTH,
                           in_parts ? 1 << 20 : sizeof got)))
        assert_memory_equal(data, got, sizeof got);
    life_end(&l);
    return st;
}

/* Two slots of 8 MB are needed, and enough. */
static void test_pieces(void **state)
{
    (void)state;
    life_each(of_pieces, is_clear, ncalls, "fail", ",error=2", 1);
    life_each(of_pieces, is_clear, ncalls, "fail", ",error=719", 3);
    ok(of_pieces("pinned=17000000"));
    expect(of_pieces("pinned=16000000"), SD_EXHAUSTED,
           "CUDA, cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)");
}

static void test_device_lost(void **state)
{
    (void)state;
    each(ncalls, "lose", ",error=214");
    each(ncalls, "lose", ",pools=0,error=999");
}

/* Taken by the driver, and then it is a fault. */
static void test_each_command_fails(void **state)
{
    (void)state;
    each(nruns, "exec", "");
    each(nruns, "exec", ",devices=2,error=716");
    each(nruns, "exec", ",error=719,lag=300");
}

static void test_no_memory(void **state)
{
    (void)state;
    expect(with("memory=%d", 1 << 20), SD_EXHAUSTED,
           "loading by_hand on device 0 (cuda:sm_90): out of memory on device "
           "0 (cuda:sm_90): asked for 8388608 bytes; in use 0, held 0, limit "
           "1048576, largest allocation so far 0");
    for (long m = 1; m < 24; m++) {
        sd_status st = with("memory=%ld%s", m << 20, m % 2 ? ",pools=0" : "");

        if (st)
            assert_int_equal(st->code, SD_EXHAUSTED);
        sd_status_free(st);
        assert_int_equal(nlive(), 0);
    }
}

static void test_no_device(void **state)
{
    (void)state;
    expect(with("init=100"), SD_NOT_FOUND,
           told("SUNDOG_CUDA_LIBRARY: %s: no CUDA device "
                "(CUDA_VISIBLE_DEVICES may hide them)"));
    expect(with("devices=0"), SD_NOT_FOUND,
           told("SUNDOG_CUDA_LIBRARY: %s: no CUDA device "
                "(CUDA_VISIBLE_DEVICES may hide them)"));
    expect(with("init=34"), SD_NOT_FOUND,
           told("SUNDOG_CUDA_LIBRARY: %s is the toolkit's stub, no driver of "
                "CUDA"));
    expect(with("init=803"), SD_UNAVAILABLE,
           "SUNDOG_CUDA_LIBRARY: CUDA, cuInit: "
           "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)");
    expect(with("version=11080"), SD_UNAVAILABLE,
           told("SUNDOG_CUDA_LIBRARY: %s is the driver of CUDA 11.8: 12.0 is "
                "the least; install a newer one"));
    expect(with("chip=75"), SD_UNIMPLEMENTED,
           "Fake GPU is of compute capability 7.5: 8.0 is the least that code "
           "is made for");
}

static void test_no_library(void **state)
{
    const char *was = life_options.value[SD_OPT_CUDA_LIBRARY];

    (void)state;
    life_options.value[SD_OPT_CUDA_LIBRARY] = "/nowhere/libcuda.so.1";
    expect(
        with("init=0"), SD_NOT_FOUND,
        "SUNDOG_CUDA_LIBRARY: no CUDA driver: /nowhere/libcuda.so.1: cannot "
        "open shared object file: No such file or directory; NVIDIA's driver "
        "brings one, and SUNDOG_DEVICE=host needs none");
    life_options.value[SD_OPT_CUDA_LIBRARY] = "libm.so.6";
    expect(with("init=0"), SD_UNIMPLEMENTED,
           "SUNDOG_CUDA_LIBRARY: libm.so.6 has no cuInit: it is older than "
           "CUDA 12.0, or no driver of CUDA");
    life_options.value[SD_OPT_CUDA_LIBRARY] = was;
}

/* A card of a chip that has no row takes the code of one before it. */
static void test_chips(void **state)
{
    static const struct {
        int chip;
        const char *name;
    } c[] = {{80, "cuda:sm_80"},
             {89, "cuda:sm_80"},
             {90, "cuda:sm_90"},
             {120, "cuda:sm_100"}};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(c); i++) {
        char words[32];
        life l = {0};
        const device_desc *d;

        snprintf(words, sizeof words, "chip=%d", c[i].chip);
        fake_tell(words);
        ok(life_begin(&l, "cuda"));
        d = xpu_device_desc(xpu_client_device(l.c, 0));
        assert_string_equal(d->name, c[i].name);
        assert_string_equal(d->driver, "CUDA 13.0, Fake GPU");
        assert_int_equal(d->units, 4);
        life_end(&l);
    }
}

static void test_auto(void **state)
{
    (void)state;
    life_auto("devices=2");
}

/* Whatever it says of itself, what we make of it is text and in range. */
static void test_garbage(void **state)
{
    (void)state;
    expect(with("init=0,garbage"), SD_NOT_FOUND,
           told("SUNDOG_CUDA_LIBRARY: %s: no CUDA device "
                "(CUDA_VISIBLE_DEVICES may hide them)"));
}

/* nvJitLink compiles where it is there; whatever it does not do the driver
 * does. */
static void test_linker(void **state)
{
    long (*calls)(void) =
        (long (*)(void))(uintptr_t)dlsym(linker, "fake_link_calls");
    long (*live)(void) =
        (long (*)(void))(uintptr_t)dlsym(linker, "fake_link_live");
    char word[24];

    (void)state;
    assert_int_equal(calls(), 0);
    unsetenv("FAKE_LINK");
    ok(with("devices=1"));
    assert_int_equal(calls(), 10); /* two modules; Destroy does not count */
    setenv("FAKE_LINK", "damaged", 1);
    ok(with("devices=1"));
    for (int i = 1; i <= 10; i++) {
        snprintf(word, sizeof word, "%ld", calls() + i);
        setenv("FAKE_LINK", word, 1);
        ok(with("devices=1"));
        assert_int_equal(live(), 0);
        assert_int_equal(nlive(), 0);
    }
    unsetenv("FAKE_LINK");
    each(ncalls, "fail", ",error=218");
    assert_int_equal(live(), 0);
    setenv("FAKE_LINK", "none", 1);
}

/* Programs that a device does not take, or a driver. */
static void refused(xpu_device *d, thunk_program *p, sd_code code,
                    const char *words)
{
    xpu_program *x = NULL;
    xpu_buffer *a = buffer(d, 64, 0, 0), *b = NULL;
    sd_status st = xpu_program_load(d, p, &x);

    if (!st && !(st = run1(x, a, &b, NULL)))
        st = xpu_event_wait(xpu_buffer_ready(b));
    assert_non_null(st);
    assert_int_equal(st->code, code);
    if (!strstr(st->message, words))
        fail_msg("%s", st->message);
    sd_status_free(st);
    xpu_buffer_release(a);
    xpu_buffer_release(b);
    xpu_program_release(x);
    thunk_program_release(p);
}

static void test_refused(void **state)
{
    static const char text[] = "nothing that PTX begins with";
    life l = {0};
    const device_desc *desc;
    xpu_device *d;
    thunk_program *p;

    (void)state;
    fake_tell("");
    device_name = "cuda";
    object = life_code;
    ok(life_begin(&l, "cuda"));
    d = xpu_client_device(l.c, 0);
    desc = xpu_device_desc(d);
    refused(d, one_kernel(desc, "nowhere", 64, 1), SD_INTERNAL,
            "nowhere: CUDA, cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500)");
    p = one_kernel(desc, "square", 64, 1);
    p->kernel[0].tiles = (int64_t)1 << 31;
    refused(d, p, SD_UNIMPLEMENTED,
            "square has 2147483648 groups: a grid of CUDA has up to "
            "2147483647");
    p = one_kernel(desc, "square", 1 << 24, 1);
    p->kernel[0].local_bytes = (uint64_t)1 << 31;
    refused(d, p, SD_PRECONDITION,
            "square asks for 2147483648 bytes of local memory");
    p = one_kernel(desc, "square", 64, 1);
    p->binary[0].kind = THUNK_BIN_SPIRV;
    refused(d, p, SD_PRECONDITION, "a binary that is not PTX");
    object = (sd_buf){.at = (char *)(uintptr_t)text, .len = sizeof text - 1};
    refused(d, one_kernel(desc, "square", 64, 1), SD_INTERNAL,
            "CUDA, cuModuleLoadDataEx, error 218: the fake did not want to");
    object = life_code;
    life_end(&l);
    assert_int_equal(nlive(), 0);
}

/* After a fault every call says which it was, and the host goes on. */
static void test_off(void **state)
{
    life l = {0};
    xpu_device *d;
    xpu_program *x;
    xpu_buffer *a, *b = NULL;
    sd_status st;

    (void)state;
    fake_tell("exec=3,error=716"); /* {n}, a, then the kernel */
    device_name = "cuda";
    object = life_code;
    ok(life_begin(&l, "cuda"));
    d = xpu_client_device(l.c, 0);
    x = simple(d, "square", 64, 1);
    a = buffer(d, 64, 1, 1);
    ok(run1(x, a, &b, NULL));
    st = xpu_event_wait(xpu_buffer_ready(b));
    assert_non_null(st);
    assert_non_null(strstr(st->message, "CUDA_ERROR_MISALIGNED_ADDRESS (716)"));
    sd_status_free(st);
    xpu_buffer_release(b);
    b = NULL;
    if (!(st = run1(x, a, &b, NULL)))
        st = xpu_event_wait(xpu_buffer_ready(b));
    assert_non_null(st);
    assert_int_equal(st->code, SD_UNAVAILABLE);
    assert_non_null(strstr(
        st->message, "device 0 (cuda:sm_90) was turned off by "
                     "CUDA_ERROR_MISALIGNED_ADDRESS (716), told by cuEvent"));
    assert_non_null(strstr(st->message, ": start a new process to use it "
                                        "again"));
    sd_status_free(st);
    xpu_buffer_release(a);
    xpu_buffer_release(b);
    xpu_program_release(x);
    life_end(&l);
    assert_int_equal(nlive(), 0);
    ok(whole_life("host"));
}

/* In a child nothing of it is called, and it is told why. */
static int in_child(xpu_device *d, xpu_program *x, xpu_buffer *a)
{
    int64_t n = 64;
    float data[64] = {0};
    xpu_buffer *b;
    sd_status st = xpu_buffer_from_host(d, XPU_MEM_DEVICE, SD_F32, 1, &n, data,
                                        NULL, true, &b, NULL);

    if (!st || st->code != SD_PRECONDITION ||
        !strstr(st->message, "from which this one was forked"))
        return 1;
    st = run1(x, a, &b, NULL);
    if (!st)
        st = xpu_event_wait(xpu_buffer_ready(b));
    return st && strstr(st->message, "was forked") ? 0 : 2;
}

static void test_fork(void **state)
{
    life l = {0};
    xpu_device *d;
    xpu_program *x;
    xpu_buffer *a;
    int status;
    pid_t child;

    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* TSan ends a forked child that starts a thread */
#endif
    fake_tell("");
    device_name = "cuda";
    object = life_code;
    ok(life_begin(&l, "cuda"));
    d = xpu_client_device(l.c, 0);
    x = simple(d, "square", 64, 1);
    a = buffer(d, 64, 1, 1);
    child = fork();
    if (!child)
        _exit(in_child(d, x, a));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    xpu_buffer_release(a);
    xpu_program_release(x);
    life_end(&l);
    assert_int_equal(nlive(), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),
        cmocka_unit_test(test_each_call_fails),
        cmocka_unit_test(test_each_command_fails),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_device_lost),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_no_library),
        cmocka_unit_test(test_chips),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_linker),
    };
    int bad;

    if (argc == 5 && fake_open("cuda", argv[1]))
        linker = dlopen(argv[4], RTLD_NOW | RTLD_LOCAL); /* has its name now */
    if (!linker) {
        fprintf(stderr, "test_fake_cuda libfakecuda.so PTX ELF linker\n");
        return 2;
    }
    setenv("FAKE_LINK", "none", 1);
    sd_log_init();
    ok(sd_file_read(argv[2], &life_code));
    ok(sd_file_read(argv[3], &life_elf));
    life_options.value[SD_OPT_CL_LIBRARY] = "/nowhere/libOpenCL.so.1";
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    sd_buf_finish(&life_code);
    sd_buf_finish(&life_elf);
    dlclose(linker);
    dlclose(fake_driver);
    return bad;
}
