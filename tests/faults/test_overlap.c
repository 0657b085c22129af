/* On a real OpenCL device a copy and a kernel run at one time, in two queues,
 * by the times that the driver gives its own commands (spy_cl.c). test_overlap
 * libspycl.so kernels.spv OUT */
#include "xpu_by_hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 400, LARGE = 16 << 20, MOST = 10000 };

static const char *times;

/* Kernels of one group each, one after the other: they leave cores idle. */
static xpu_program *many_steps(xpu_device *d)
{
    thunk_program *p = program(xpu_device_desc(d), 1, 1, 64);
    int num = number(p, 64), k = kernel(p, "slow", 64, 20000);
    thunk *t = calloc(STEPS, sizeof *t);

    for (int i = 0; i < STEPS; i++)
        t[i] = call(p, k, 0, 1, num);
    steps(p, STEPS, t);
    free(t);
    return load(d, p);
}

typedef struct {
    unsigned long long start, end;
    bool is_copy;
} span;

static int read_times(span *s)
{
    char line[200], what[20];
    FILE *f = fopen(times, "r");
    int n = 0;

    assert_non_null(f);
    while (n < MOST && fgets(line, sizeof line, f))
        if (sscanf(line, "%*s %19s %llu %llu", what, &s[n].start, &s[n].end) ==
            3)
            s[n++].is_copy = !strcmp(what, "copy");
    fclose(f);
    return n;
}

static void a_copy_runs_beside_a_kernel(void **state)
{
    xpu_client *c = open_client("2", getenv("SUNDOG_CL_SPLIT") ? "2" : "1");
    xpu_device *d = xpu_client_device(c, 0);
    xpu_program *x = many_steps(d);
    xpu_buffer *a = buffer(d, 64, 1, 1), *b, *put;
    float *data = calloc(LARGE, sizeof *data);
    span *s = calloc(MOST, sizeof *s);
    unsigned long long both = 0, copies = 0;
    int64_t n = LARGE;
    xpu_event *done;
    uint64_t from, told;
    int ns;

    (void)state;
    from = sd_now_ns();
    ok(run1(x, a, &b, NULL));
    ok(xpu_buffer_from_host(d, XPU_MEM_DEVICE, SD_F32, 1, &n, data, NULL, false,
                            &put, &done));
    told = sd_now_ns() - from;
    ok(xpu_event_wait(done));
    ok(xpu_event_wait(xpu_buffer_ready(b)));
    printf("both calls returned after %.3f ms, all was done after %.3f ms\n",
           (double)told / 1e6, (double)(sd_now_ns() - from) / 1e6);
    xpu_event_release(done);
    xpu_buffer_release(put);
    xpu_buffer_release(a);
    xpu_buffer_release(b);
    xpu_program_release(x);
    xpu_client_destroy(c);
    ns = read_times(s);
    for (int i = 0; i < ns; i++)
        for (int k = 0; k < ns && s[i].is_copy; k++)
            if (!s[k].is_copy && s[k].start < s[i].end && s[i].start < s[k].end)
                both +=
                    SD_MIN(s[i].end, s[k].end) - SD_MAX(s[i].start, s[k].start);
    for (int i = 0; i < ns; i++)
        copies += s[i].is_copy ? s[i].end - s[i].start : 0;
    printf("%d commands; copies took %.3f ms, %.3f of them beside kernels\n",
           ns, (double)copies / 1e6, (double)both / 1e6);
    assert_true(ns > STEPS && both > 0);
    free(data);
    free(s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_runs_beside_a_kernel),
    };
    const char *env = getenv("VIRTUAL_ENV");
    char driver[4096];
    int bad;

    if (argc != 4) {
        fprintf(stderr, "test_overlap libspycl.so SPIRV OUT\n");
        return 2;
    }
    times = argv[3];
    unlink(times);
    snprintf(driver, sizeof driver, "%s/lib/libintelocl.so", env ? env : "");
    setenv("SPY_CL_DRIVER", driver, 0);
    setenv("SPY_CL_OUT", times, 1);
    setenv("SUNDOG_CL_LIBRARY", argv[1], 1);
    device_name = "cl";
    sd_log_init();
    if (!is_there())
        return 77; /* skipped, says Meson */
    ok(sd_file_read(argv[2], &object));
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    sd_buf_finish(&object);
    return bad;
}
