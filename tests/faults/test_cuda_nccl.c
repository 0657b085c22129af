/* Two processes on CUDA devices whose large blocks go by NCCL, which is false
 * here (fake_nccl.c) and fails: each call, each look at what became of one, and
 * each call of the driver beside it.
 *
 * usage: test_cuda_nccl libfakecuda.so kernels.ptx libfakejitlink.so
 *        libfakenccl.so */
#include "crew.h"
#include "fake_nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    void (*begin)(void *driver, fake_nccl_words words);
    long (*calls)(void), (*looks)(void), (*bytes)(void);
} nccl;

/* Whose blocks go by NCCL. */
static sd_status life_by_nccl(const char *words, fake_nccl_words nccl_words)
{
    sd_status st;

    nccl.begin(fake_driver, nccl_words);
    life_options.value[SD_OPT_WIRE] = "nccl";
    life_options.value[SD_OPT_WIRE_BYTES] = "1";
    st = life_in(PROCESSES, words);
    life_options.value[SD_OPT_WIRE] = "sockets";
    return st;
}

static sd_status life_of_nccl(const char *words)
{
    char all[96];

    snprintf(all, sizeof all, "alone=1,%s", words);
    return life_by_nccl(all, (fake_nccl_words){.version = 22809});
}

static void goes_by_tcp(const char *words, int version)
{
    ok(life_by_nccl(words, (fake_nccl_words){.version = version}));
    assert_int_equal(nccl.bytes(), 0);
    assert_int_equal(nlive(), 0);
}

static void test_nccl(void **state)
{
    static const char *const words[] = {"", "lag=300", "peers=0", "pools=0"};
    sd_status st;

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(words); i++) {
        ok(life_of_nccl(words[i]));
        assert_true(nccl.bytes() > 0);
        assert_int_equal(nlive(), 0);
    }
    goes_by_tcp("alone=1", 21399);
    goes_by_tcp("", 22809); /* both have these cards */
    crew_one_by_tcp = true;
    goes_by_tcp("alone=1", 22809);
    crew_one_by_tcp = false;
    life_options.value[SD_OPT_PATIENCE] = "5";
    st = life_by_nccl("alone=1",
                      (fake_nccl_words){.version = 22809, .turns = -1});
    life_options.value[SD_OPT_PATIENCE] = "120";
    assert_non_null(st);
    assert_non_null(strstr(st->message, "within 5 s"));
    sd_status_free(st);
    assert_int_equal(nlive(), 0);
}

/* It is the error of all or, where another process had ended before, of none.
 */
static void fails_by_nccl(fake_nccl_words words, int *nfailed)
{
    sd_status st = life_by_nccl("alone=1", words);

    if (st && !strstr(st->message, "nccl"))
        fail_msg("call %ld, look %ld: %s", words.fails, words.turns,
                 st->message);
    if (nlive())
        fail_msg("call %ld, look %ld: %ld objects are left", words.fails,
                 words.turns, nlive());
    *nfailed += st != NULL;
    sd_status_free(st);
}

static void test_each_nccl_call_fails(void **state)
{
    int nfailed = 0;

    (void)state;
    for (long n = 1; n <= nccl.calls() + 3; n += 3)
        fails_by_nccl((fake_nccl_words){.version = 22809, .fails = n},
                      &nfailed);
    assert_true(nfailed > 20);
    nfailed = 0;
    for (long n = 1; n <= nccl.looks() + 5; n += 5)
        fails_by_nccl((fake_nccl_words){.version = 22809, .turns = n},
                      &nfailed);
    assert_true(nfailed > 5);
}

static void test_each_call_fails_beside_nccl(void **state)
{
    (void)state;
    fail_each(life_of_nccl, ncalls, "fail", "", 17);
    fail_each(life_of_nccl, nruns, "exec", "", 13);
}

/* What looks for one by its name finds this one from now on. */
static bool find_nccl(const char *file)
{
    void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);

    if (!lib)
        return false;
    nccl.begin = (void (*)(void *, fake_nccl_words))(uintptr_t)dlsym(
        lib, "fake_nccl_begin");
    nccl.calls = (long (*)(void))(uintptr_t)dlsym(lib, "fake_nccl_calls");
    nccl.looks = (long (*)(void))(uintptr_t)dlsym(lib, "fake_nccl_looks");
    nccl.bytes = (long (*)(void))(uintptr_t)dlsym(lib, "fake_nccl_bytes");
    return true;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nccl),
        cmocka_unit_test(test_each_nccl_call_fails),
        cmocka_unit_test(test_each_call_fails_beside_nccl),
    };
    int bad;

    if (argc != 5 || !crew_begin(argv) || !find_nccl(argv[4])) {
        fprintf(stderr, "test_cuda_nccl libfakecuda.so PTX linker nccl\n");
        return 2;
    }
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    nccl.begin(fake_driver, (fake_nccl_words){0});
    sd_buf_finish(&life_code);
    return bad;
}
