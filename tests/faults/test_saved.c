/* Saved executables: with any byte changed, cut short or grown, of another
 * format, for another device, driver or library, they are refused with the
 * reason; whole ones load.
 *   test_saved PROGRAM.hlo libfakecl.so */
#include "compile.h"
#include "pjrt.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char *library;
static sd_buf saved; /* for host:v3 */

static void refused(sd_status st, sd_code code, const char *message)
{
    assert_non_null(st);
    assert_string_equal(st->message, message);
    assert_int_equal(st->code, code);
    sd_status_free(st);
}

static sd_status restore(const void *at, size_t len)
{
    PJRT_Executable *e = NULL;
    sd_status st = pjrt_executable_restore((sd_bytes){at, len}, &e);

    pjrt_executable_release(e);
    return st;
}

static void save(const char *path)
{
    static const char options[] = "\10\1"; /* some field of theirs */
    sd_options env = {0};
    device_desc dev;
    compile_request rq = {
        .format = "hlo_text", .format_len = 8, .device = &dev};
    compile_services sv = {.env = &env};
    PJRT_Executable *e;
    thunk_program *p;
    sd_buf text = {0};

    device_desc_of_name("host:v3", &dev);
    assert_null(sd_file_read(path, &text));
    rq.program = (sd_bytes){(uint8_t *)text.at, text.len};
    assert_null(sundog_compile(&rq, &sv, &p));
    assert_null(pjrt_executable_make(
        p, (sd_bytes){(const uint8_t *)options, sizeof options - 1}, &e));
    assert_null(pjrt_executable_save(e, &saved));
    pjrt_executable_release(e);
    sd_buf_finish(&text);
}

/* ---- bytes ---- */

static void any_byte_changed(void **state)
{
    static const uint8_t change[] = {0x01, 0x80, 0xff};
    uint8_t *copy = malloc(saved.len);

    (void)state;
    assert_null(restore(saved.at, saved.len));
    memcpy(copy, saved.at, saved.len);
    for (size_t i = 0; i < saved.len; i++)
        for (size_t k = 0; k < SD_COUNTOF(change); k++) {
            sd_status st;

            copy[i] ^= change[k];
            st = restore(copy, saved.len);
            if (!st)
                fail_msg("byte %zu of %zu ^ %#x is taken", i, saved.len,
                         change[k]);
            assert_true(st->code == SD_INVALID || st->code == SD_DATA_LOSS);
            assert_true(strlen(st->message) > 10);
            sd_status_free(st);
            copy[i] ^= change[k];
        }
    free(copy);
    printf("each of %zu bytes\n", saved.len);
}

static void any_other_length(void **state)
{
    uint8_t *copy;

    (void)state;
    for (size_t n = 0; n <= saved.len + 9; n++) {
        sd_status st;

        if (n == saved.len)
            continue;
        copy = calloc(1, n + 1); /* no more than that, for the sanitizer */
        memcpy(copy, saved.at, SD_MIN(n, saved.len));
        st = restore(copy, n);
        if (!st)
            fail_msg("%zu bytes of %zu are taken", n, saved.len);
        sd_status_free(st);
        free(copy);
    }
}

static void what_is_wrong_is_said(void **state)
{
    char text[200];
    uint8_t *copy = malloc(saved.len);
    size_t program = 28 + 2; /* behind the container's head and options */

    (void)state;
    memcpy(copy, saved.at, saved.len);
    copy[8]++;
    snprintf(text, sizeof text,
             "an executable of version %u, this library "
             "reads %u",
             copy[8], copy[8] - 1);
    refused(restore(copy, saved.len), SD_INVALID, text);
    copy[8]--;
    copy[28] ^= 1;
    refused(restore(copy, saved.len), SD_DATA_LOSS,
            "executable: its compile options are damaged");
    copy[28] ^= 1;
    copy[program + 8]++;
    snprintf(text, sizeof text,
             "saved program of version %u, this library reads %u: "
             "compile it again",
             copy[program + 8], copy[program + 8] - 1);
    refused(restore(copy, saved.len), SD_INVALID, text);
    copy[program + 8]--;
    copy[saved.len - 1] ^= 1;
    snprintf(text, sizeof text,
             "saved program of %zu bytes is damaged: "
             "checksum",
             saved.len - program - 28);
    refused(restore(copy, saved.len), SD_DATA_LOSS, text);
    snprintf(text, sizeof text,
             "saved program of %zu bytes has %zu: it was cut, or is still "
             "being written",
             saved.len - program - 28, saved.len - program - 29);
    refused(restore(saved.at, saved.len - 1), SD_DATA_LOSS, text);
    refused(restore("something else", 14), SD_INVALID,
            "14 bytes that are no executable of sundog");
    free(copy);
}

/* ---- machines ---- */

static xpu_client *open_client(const char *device)
{
    sd_options opt = {.value[SD_OPT_DEVICE] = device,
                      .value[SD_OPT_CPU_LEVEL] = "v3",
                      .value[SD_OPT_CL_SPLIT] = "0",
                      .value[SD_OPT_CL_LIBRARY] = library,
                      .value[SD_OPT_LIBRARIES] = "0"};
    xpu_client *c;

    assert_null(xpu_client_create(&opt, &c));
    return c;
}

/* The program as a machine like that had made it. */
static sd_status load_as(xpu_client *c, void (*made)(thunk_program *))
{
    xpu_program *x = NULL;
    PJRT_Executable *e;
    sd_status st;

    assert_null(pjrt_executable_restore(
        (sd_bytes){(uint8_t *)saved.at, saved.len}, &e));
    if (made)
        made(e->p);
    st = xpu_program_load(xpu_client_device(c, 0), e->p, &x);
    xpu_program_release(x);
    pjrt_executable_release(e);
    return st;
}

static void by_v4(thunk_program *p)
{
    device_desc_of_name("host:v4", &p->device);
}

static void by_dg2(thunk_program *p)
{
    device_desc_of_name("cl:dg2-g10", &p->device);
}

static void with_onednn(thunk_program *p)
{
    static const libcall product = {.op = LIBCALL_MATMUL,
                                    .matmul = {.lhs = SD_F32,
                                               .rhs = SD_F32,
                                               .result = SD_F32,
                                               .batch = 1,
                                               .m = 1,
                                               .n = 1,
                                               .k = 1}};
    thunk_slice *arg = sd_arena_array(p->arena, thunk_slice, 3);

    arg[0] = arg[1] = arg[2] = p->seq.at[0].arg[0];
    p->seq.at[0] = (thunk){.kind = THUNK_LIBCALL,
                           .name = "dot",
                           .arg = arg,
                           .narg = 3,
                           .call = &product};
}

static void by_another_driver(thunk_program *p)
{
    device_desc_of_name("cl:cpu", &p->device);
    strcpy(p->device.driver, "OpenCL 0.9, Fake device");
}

static void by_an_engine(thunk_program *p)
{
    p->device.features |= DEVICE_HAS_VNNI;
}

static void by_bf16(thunk_program *p)
{
    p->device.features |= DEVICE_HAS_BF16;
}

static void by_tiles(thunk_program *p)
{
    p->device.features |= DEVICE_HAS_AMX;
}

static void by_no_driver(thunk_program *p)
{
    device_desc_of_name("cl:cpu", &p->device);
}

static void the_machine_is_checked(void **state)
{
    xpu_client *c = open_client("host");

    (void)state;
    assert_null(load_as(c, NULL));
    refused(load_as(c, by_v4), SD_PRECONDITION,
            "loading jit__lambda on device 0 (host:v3): built for host:v4, "
            "loaded on "
            "host:v3, which has no AVX-512: compile it here, or with "
            "SUNDOG_CPU_LEVEL=v3 for both");
    refused(load_as(c, by_an_engine), SD_PRECONDITION,
            "loading jit__lambda on device 0 (host:v3): built for host:v3, "
            "loaded on host:v3, which has no AVX512_VNNI: compile it here, or "
            "with SUNDOG_CPU_LEVEL=v4 for both");
    refused(load_as(c, by_bf16), SD_PRECONDITION,
            "loading jit__lambda on device 0 (host:v3): built for host:v3, "
            "loaded on host:v3, which has no AVX512_BF16: compile it here, or "
            "with SUNDOG_ENGINES=0 for both");
    refused(load_as(c, by_tiles), SD_PRECONDITION,
            "loading jit__lambda on device 0 (host:v3): built for host:v3, "
            "loaded on host:v3, which has no AMX: compile it here, or with "
            "SUNDOG_ENGINES=0 for both");
    refused(load_as(c, by_dg2), SD_PRECONDITION,
            "loading jit__lambda on device 0 (host:v3): built for cl:dg2-g10, "
            "loaded on "
            "host:v3: compile it for this one");
    refused(load_as(c, with_onednn), SD_PRECONDITION,
            "loading jit__lambda on device 0 (host:v3): the program calls "
            "oneDNN (matmul), which is not there: install it, or compile "
            "without "
            "(SUNDOG_LIBRARIES=0)");
    xpu_client_destroy(c);
}

static void the_driver_is_checked(void **state)
{
    xpu_client *c = open_client("cl");

    (void)state;
    refused(load_as(c, NULL), SD_PRECONDITION,
            "loading jit__lambda on device 0 (cl:cpu): built for host:v3, "
            "loaded on "
            "cl:cpu: compile it for this one");
    refused(load_as(c, by_another_driver), SD_PRECONDITION,
            "loading jit__lambda on device 0 (cl:cpu): built for the driver "
            "'OpenCL 0.9, "
            "Fake device', loaded on 'OpenCL 1.0, Fake device': compile it for "
            "this one");
    refused(load_as(c, by_no_driver), SD_PRECONDITION,
            "loading jit__lambda on device 0 (cl:cpu): a binary that is not "
            "SPIR-V");
    xpu_client_destroy(c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_byte_changed),
        cmocka_unit_test(any_other_length),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(the_machine_is_checked),
        cmocka_unit_test(the_driver_is_checked),
    };
    int bad;

    if (argc != 3) {
        fprintf(stderr, "test_saved PROGRAM.hlo libfakecl.so\n");
        return 2;
    }
    library = argv[2];
    save(argv[1]);
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    sd_buf_finish(&saved);
    return bad;
}
