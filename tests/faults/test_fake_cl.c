/* What a failing OpenCL driver does to us: each call of a whole life fails in
 * turn, each command where it runs, the device is lost at each, memory ends,
 * answers are garbage.  Always one clear error or a right result, nothing
 * leaks, and a host device beside it goes on. test_fake_cl libfakecl.so
 * kernels.spv kernels.o */
#include "life.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static long (*nfinishes)(void);

/* TSan looks for races, of which one call in three has those of the others: a
 * life takes it 150 ms.  Other builds take every call. */
#ifdef __SANITIZE_THREAD__
enum { STEP = 3 };
#else
enum { STEP = 1 };
#endif

/* ---- trouble ---- */

static bool is_clear(const sd_error *st)
{
    return (st->code == SD_EXHAUSTED || st->code == SD_INTERNAL ||
            st->code == SD_UNAVAILABLE || st->code == SD_NOT_FOUND) &&
           (strstr(st->message, "OpenCL, ") ||
            strstr(st->message, "no OpenCL driver") ||
            strstr(st->message, "OpenCL drivers, no ") ||
            strstr(st->message, "takes no IL") ||
            strstr(st->message, "out of memory on device"));
}

static void each(long (*count)(void), const char *word, const char *more)
{
    long n = life_each(life_beside_host, is_clear, count, word, more, STEP);

    assert_true(n > (count == nruns ? 3 : 20) / STEP);
}

/* Taken by the driver, and then it does not come to a good end. */
static void test_each_command_fails(void **state)
{
    (void)state;
    each(nruns, "exec", "");
    each(nruns, "exec", ",usm=0,error=-9999");
    each(nruns, "exec", ",error=-14,lag=300");
}

static void test_sound(void **state)
{
    (void)state;
    ok(with("memory=%d", 1 << 26));
    ok(with("memory=%d,usm=0", 1 << 26));
    ok(with("lag=1000"));
    assert_int_equal(nfinishes(), 0); /* marks tell when something has run */
    assert_int_equal(nlive(), 0);
}

static void test_each_call_fails(void **state)
{
    (void)state;
    each(ncalls, "fail", "");
    each(ncalls, "fail", ",usm=0,error=-6");
    each(ncalls, "fail", ",error=-4");
    each(ncalls, "fail", ",error=-9999");
}

static void test_device_lost(void **state)
{
    (void)state;
    each(ncalls, "lose", ",error=-2");
    each(ncalls, "lose", ",usm=0,error=-36");
}

static void test_no_memory(void **state)
{
    (void)state;
    expect(with("memory=%d", 1 << 20), SD_EXHAUSTED,
           "loading by_hand on device 0 (cl:cpu): out of memory on device 0 "
           "(cl:cpu): asked for 8388608 bytes; in use 0, held 0, limit "
           "1048576, largest allocation so far 0");
    for (long m = 1; m < 24; m++) {
        sd_status st = with("memory=%ld,usm=0", m << 20);

        if (st)
            assert_int_equal(st->code, SD_EXHAUSTED);
        sd_status_free(st);
        assert_int_equal(nlive(), 0);
    }
}

static void test_no_device(void **state)
{
    (void)state;
    expect(
        with("platforms=0"), SD_NOT_FOUND,
        told("SUNDOG_CL_LIBRARY: %s: no OpenCL driver (the loader opens those "
             "that *.icd files in /etc/OpenCL/vendors or OCL_ICD_VENDORS "
             "name)"));
    expect(
        with("devices=0"), SD_NOT_FOUND,
        told("SUNDOG_CL_LIBRARY: %s: 1 OpenCL drivers, no GPU or CPU device"));
    expect(with("il=0"), SD_NOT_FOUND,
           told("SUNDOG_CL_LIBRARY: %s: the OpenCL device \"Fake device\" "
                "takes no IL (SPIR-V), "
                "and no other does"));
}

static sd_status open_with(const char *words, const char *path,
                           const char *split, const char *mask,
                           xpu_client **out)
{
    sd_options opt = {0};
    sd_status st;

    opt.value[SD_OPT_DEVICE] = "cl";
    opt.value[SD_OPT_CL_LIBRARY] = path;
    opt.value[SD_OPT_CL_SPLIT] = split;
    fake_tell(words);
    setenv("ZE_AFFINITY_MASK", mask, 1);
    st = xpu_client_create(&opt, out);
    unsetenv("ZE_AFFINITY_MASK");
    return st;
}

/* Settings that no device fits. */
static void test_settings(void **state)
{
    static const struct {
        const char *words, *split, *mask, *says;
        sd_code code;
    } c[] = {
        {"", "5", "",
         "SUNDOG_CL_SPLIT=5: 4 is the most for a device of 4 "
         "compute units",
         SD_INVALID},
        {"gpu=1", NULL, "0;1",
         "ZE_AFFINITY_MASK=0;1: a list such as 0,1.0 is "
         "wanted",
         SD_INVALID},
        {"gpu=1,devices=2,tiles=2", NULL, "1.2",
         "no OpenCL device has a part "
         "of that name (ZE_AFFINITY_MASK=1.2, SUNDOG_CL_SPLIT=-1)",
         SD_INVALID},
    };
    char says[300];
    xpu_client *client;

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(c); i++) {
        snprintf(says, sizeof says, "SUNDOG_CL_LIBRARY: %s", c[i].says);
        expect(
            open_with(c[i].words, fake_library, c[i].split, c[i].mask, &client),
            c[i].code, says);
    }
    expect(open_with("", "libm.so.6", NULL, "", &client), SD_NOT_FOUND,
           "SUNDOG_CL_LIBRARY: libm.so.6 is no OpenCL library: it has no "
           "clGetExtensionFunctionAddressForPlatform");
    ok(open_with("gpu=1,devices=2,tiles=2", fake_library, NULL, "1.1",
                 &client));
    assert_int_equal(xpu_client_count(client), 1);
    xpu_client_destroy(client);
    /* a device that is not among those shown: the driver has masked them */
    ok(open_with("gpu=1,devices=2", fake_library, NULL, "4294967295", &client));
    assert_int_equal(xpu_client_count(client), 2);
    xpu_client_destroy(client);
    assert_int_equal(nlive(), 0);
}

static void test_auto(void **state)
{
    (void)state;
    life_auto("gpu=1");
}

/* Whatever it says of itself, what we make of it is text and in range. */
static void test_garbage(void **state)
{
    sd_options opt = {0};
    const device_desc *d;
    xpu_client *c;

    (void)state;
    fake_tell("garbage");
    opt.value[SD_OPT_DEVICE] = "cl";
    opt.value[SD_OPT_CL_SPLIT] = "0";
    opt.value[SD_OPT_CL_LIBRARY] = fake_library;
    ok(xpu_client_create(&opt, &c));
    d = xpu_device_desc(xpu_client_device(c, 0));
    for (const char *s = d->driver; *s; s++)
        assert_in_range(*s, ' ', '~');
    assert_true(d->units > 0 && d->local_bytes > 0);
    xpu_client_destroy(c);
    assert_int_equal(nlive(), 0);
    sd_status_free(with("fail=0,garbage")); /* no crash */
    assert_int_equal(nlive(), 0);
}

/* A module's first word, and what it asks for. */
static void test_assembly_that_does_not_build(void **state)
{
    static char il[] =
        "\x03\x02\x23\x07 oops, there is SPV_INTEL_inline_assembly";
    sd_buf whole = life_code;

    (void)state;
    life_code = (sd_buf){.at = il, .len = sizeof il - 1};
    expect(with("fail=0"), SD_INTERNAL,
           "loading by_hand on device 0 (cl:cpu): code for the matrix engine, "
           "which SUNDOG_ENGINES=0 leaves out: OpenCL, building a SPIR-V "
           "module: CL_BUILD_PROGRAM_FAILURE (-11): the fake did not want to");
    life_code = whole;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),
        cmocka_unit_test(test_each_call_fails),
        cmocka_unit_test(test_each_command_fails),
        cmocka_unit_test(test_device_lost),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_assembly_that_does_not_build),
    };
    int bad;

    if (argc != 4 || !fake_open("cl", argv[1])) {
        fprintf(stderr, "test_fake_cl libfakecl.so SPIRV ELF\n");
        return 2;
    }
    nfinishes = fake_count("finishes");
    sd_log_init();
    ok(sd_file_read(argv[2], &life_code));
    ok(sd_file_read(argv[3], &life_elf));
    life_options.value[SD_OPT_CL_SPLIT] = "2";
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    sd_buf_finish(&life_code);
    sd_buf_finish(&life_elf);
    dlclose(fake_driver);
    return bad;
}
