/* What the runtime refuses on the host, and in which words: settings,
 * processors, programs, runs, buffers.  What the processor is and whether the
 * system lets code run are answers of ours (-Wl,--wrap, see meson.build).
 *   test_xpu_refused kernels.o */
#include "xpu_by_hand.h"
#include "xpu_device.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int cpu_level = 4, mprotect_error;

int __wrap_sd_cpu_level(void);
int __wrap_sd_cpu_level(void)
{
    return cpu_level;
}

int __real_mprotect(void *p, size_t n, int prot);
int __wrap_mprotect(void *p, size_t n, int prot);
int __wrap_mprotect(void *p, size_t n, int prot)
{
    errno = mprotect_error;
    return errno ? -1 : __real_mprotect(p, n, prot);
}

static void refused(sd_status st, sd_code code, const char *says)
{
    assert_non_null(st);
    assert_string_equal(st->message, says);
    assert_int_equal(st->code, code);
    sd_status_free(st);
}

/* ---- starting ---- */

static sd_status start(sd_option id, const char *value, xpu_client **out)
{
    sd_options opt = {.value[SD_OPT_DEVICE] = "host",
                      .value[SD_OPT_LIBRARIES] = "0",
                      .value[SD_OPT_THREADS] = "1"};

    opt.value[id] = value;
    return xpu_client_create(&opt, out);
}

static void settings_that_mean_nothing(void **state)
{
    static const struct {
        sd_option id;
        sd_code code;
        const char *value, *says;
    } c[] = {
        {SD_OPT_DEVICE, SD_INVALID, "moon",
         "SUNDOG_DEVICE=moon: one of auto, host, cl, cuda is wanted (which "
         "devices "
         "to use; auto: a GPU (CUDA before OpenCL), else the host)"},
        {SD_OPT_HOST_DEVICES, SD_INVALID, "0",
         "SUNDOG_HOST_DEVICES=0: a whole number from 1 to 64 is wanted ("
         "number of host devices)"},
        {SD_OPT_HOST_DEVICES, SD_INVALID, "65",
         "SUNDOG_HOST_DEVICES=65: a whole number from 1 to 64 is wanted ("
         "number of host devices)"},
        {SD_OPT_CPU_LEVEL, SD_INVALID, "v5",
         "SUNDOG_CPU_LEVEL=v5: one of v3, v4 is wanted (the x86-64 level to "
         "compile for; empty: the machine's)"},
    };
    xpu_client *none;

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(c); i++)
        refused(start(c[i].id, c[i].value, &none), c[i].code, c[i].says);
}

static void processors_that_do_not_suffice(void **state)
{
    xpu_client *c;

    (void)state;
    cpu_level = 2;
    refused(start(SD_OPT_CPU_LEVEL, NULL, &c), SD_UNIMPLEMENTED,
            "this processor lacks part of x86-64-v3 (AVX2, BMI, FMA, F16C, "
            "LZCNT, MOVBE), the least that the host device works on; "
            "SUNDOG_DEVICE=cl does without");
    cpu_level = 3;
    refused(start(SD_OPT_CPU_LEVEL, "v4", &c), SD_INVALID,
            "SUNDOG_CPU_LEVEL=v4: this processor has not all of AVX-512 F, BW, "
            "DQ, VL and CD; v3 is what it does");
    ok(start(SD_OPT_CPU_LEVEL, NULL, &c));
    assert_string_equal(xpu_device_desc(xpu_client_device(c, 0))->name,
                        "host:v3");
    xpu_client_destroy(c);
    cpu_level = 4;
    ok(start(SD_OPT_CPU_LEVEL, "v3", &c));
    assert_string_equal(xpu_device_desc(xpu_client_device(c, 0))->name,
                        "host:v3");
    xpu_client_destroy(c);
}

/* ---- loading ---- */

static xpu_client *client;
static xpu_device *device;

static int open_device(void **state)
{
    (void)state;
    ok(start(SD_OPT_CPU_LEVEL, "v3", &client));
    device = xpu_client_device(client, 0);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    xpu_client_destroy(client);
    return 0;
}

/* Takes p. */
static void does_not_load(thunk_program *p, sd_code code, const char *says)
{
    char whole[400];
    xpu_program *none;

    snprintf(whole, sizeof whole, "loading by_hand on device 0 (host:v3): %s",
             says);
    refused(xpu_program_load(device, p, &none), code, whole);
    thunk_program_release(p);
}

static thunk_program *square(void)
{
    return one_kernel(xpu_device_desc(device), "square", 64, 1);
}

static void programs_for_something_else(void **state)
{
    thunk_program *p = square();

    (void)state;
    p->output->memory = "moon";
    does_not_load(p, SD_UNIMPLEMENTED,
                  "output 0 in memory 'moon': device, pinned_host and "
                  "unpinned_host are known");
    p = square();
    p->binary->kind = THUNK_BIN_SPIRV;
    does_not_load(p, SD_PRECONDITION, "binary 0 is not for x86-64");
}

/* Every section of bytes calls itself one. */
static void one_table_of_symbols_is_enough(void **state)
{
    char *copy = malloc(object.len), says[80];
    sd_buf whole = object;
    Elf64_Ehdr h;
    Elf64_Shdr s;

    (void)state;
    memcpy(copy, object.at, object.len);
    memcpy(&h, copy, sizeof h);
    for (int i = 1; i < h.e_shnum; i++) {
        char *at = copy + h.e_shoff + (size_t)i * sizeof s;

        memcpy(&s, at, sizeof s);
        if (s.sh_type != SHT_PROGBITS)
            continue;
        s.sh_type = SHT_SYMTAB;
        s.sh_entsize = sizeof(Elf64_Sym);
        s.sh_size = 0;
        s.sh_link = h.e_shstrndx; /* with the names of sections */
        memcpy(at, &s, sizeof s);
    }
    object.at = copy;
    snprintf(says, sizeof says, "object 0 (%zu bytes): two symbol tables",
             object.len);
    does_not_load(square(), SD_DATA_LOSS, says);
    object = whole;
    free(copy);
}

static void code_that_may_not_run(void **state)
{
    (void)state;
    mprotect_error = EACCES;
    does_not_load(square(), SD_PERMISSION,
                  "mprotect of 4096 bytes of code: Permission denied; code "
                  "that was just made must be allowed to run (SELinux: "
                  "execmem)");
    mprotect_error = ENOMEM;
    does_not_load(square(), SD_EXHAUSTED,
                  "mprotect of 4096 bytes of code: Cannot allocate memory; "
                  "code that was just made must be allowed to run (SELinux: "
                  "execmem)");
    mprotect_error = 0;
    xpu_program_release(load(device, square()));
}

/* ---- running, buffers ---- */

static void runs_of_too_many_arguments(void **state)
{
    xpu_program *x = load(device, square());
    xpu_buffer *a = buffer(device, 64, 1, 1), *out;

    (void)state;
    refused(run2(x, a, a, NULL, &out), SD_INVALID,
            "executing by_hand: 2 arguments, the program wants 1");
    xpu_buffer_release(a);
    xpu_program_release(x);
}

static void promises_are_kept_by_their_like(void **state)
{
    xpu_event *ready = xpu_event_create();
    xpu_buffer *a = buffer(device, 64, 1, 1), *hollow;
    int64_t n = 4;

    (void)state;
    ok(xpu_buffer_hollow(device, XPU_MEM_PINNED_HOST, SD_F32, 1, &n, ready,
                         &hollow));
    refused(xpu_buffer_fulfil(hollow, a), SD_INVALID,
            "a buffer of 256 bytes (device 0, device) cannot stand for one of "
            "16 bytes (device 0, pinned_host)");
    xpu_event_set(ready, NULL);
    xpu_event_release(ready);
    xpu_buffer_release(hollow);
    xpu_buffer_release(a);
}

/* ---- a child of a process that used the device ---- */

static void do_nothing(xpu_task *t)
{
    (void)t;
}

static void in_child(xpu_stream *s)
{
    xpu_task task = {.run = do_nothing};
    sd_status st;
    bool right;

    alarm(20);
    st = xpu_stream_push(s, &task);
    right = st && st->code == SD_PRECONDITION &&
            strstr(st->message, "from which this one was forked: threads do "
                                "not come along; start processes with the "
                                "spawn method");
    sd_status_free(st);
    xpu_stream_finish(s);
    _exit(right ? 0 : 1);
}

static void a_forked_child_has_no_threads(void **state)
{
    xpu_task task = {.run = do_nothing};
    xpu_stream s = {0};
    int status = -1;
    pid_t child;

    (void)state;
    xpu_stream_init(&s, "parent");
    ok(xpu_stream_push(&s, &task));
    xpu_stream_drain(&s);
    if (!(child = fork()))
        in_child(&s);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    xpu_stream_finish(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest starting[] = {
        cmocka_unit_test(settings_that_mean_nothing),
        cmocka_unit_test(processors_that_do_not_suffice),
        cmocka_unit_test(a_forked_child_has_no_threads),
    };
    const struct CMUnitTest started[] = {
        cmocka_unit_test(programs_for_something_else),
        cmocka_unit_test(one_table_of_symbols_is_enough),
        cmocka_unit_test(code_that_may_not_run),
        cmocka_unit_test(runs_of_too_many_arguments),
        cmocka_unit_test(promises_are_kept_by_their_like),
    };
    int bad;

    if (argc != 2)
        return 2;
    device_name = "host";
    ok(sd_file_read(argv[1], &object));
    bad = cmocka_run_group_tests(starting, NULL, NULL);
    bad += cmocka_run_group_tests(started, open_device, close_device);
    sd_buf_finish(&object);
    return bad;
}
