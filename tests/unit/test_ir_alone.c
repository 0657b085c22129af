/* The dumped ir-no-opt.ll is the whole truth: compiled on its own, with
 * nothing else of the program, it gives the same results. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "compile.h"
#include "target.h"
#include "xpu.h"

static const char program[] =
    "HloModule alone\n"
    "max { x = f32[] parameter(0) y = f32[] parameter(1)"
    " ROOT z = f32[] maximum(x, y) }\n"
    "add { x = f32[] parameter(0) y = f32[] parameter(1)"
    " ROOT z = f32[] add(x, y) }\n"
    "ENTRY main {\n"
    "  x = f32[9,101]{1,0} parameter(0)\n"
    "  low = f32[] constant(-inf)\n"
    "  zero = f32[] constant(0)\n"
    "  m = f32[9]{0} reduce(x, low), dimensions={1}, to_apply=max\n"
    "  mb = f32[9,101]{1,0} broadcast(m), dimensions={0}\n"
    "  d = f32[9,101]{1,0} subtract(x, mb)\n"
    "  e = f32[9,101]{1,0} exponential(d)\n"
    "  s = f32[9]{0} reduce(e, zero), dimensions={1}, to_apply=add\n"
    "  c = f32[101]{0} reduce(x, zero), dimensions={0}, to_apply=add\n"
    "  t = f32[101,9]{1,0} transpose(x), dimensions={1,0}\n"
    "  ROOT r = (f32[9]{0}, f32[101]{0}, f32[101,9]{1,0}) tuple(s, c, t)\n"
    "}\n";

enum { N = 9 * 101, OUTPUTS = 3 };

static void ok(sd_status st)
{
    if (st)
        fail_msg("%s", st->message);
}

static thunk_program *compile_with_dump(const device_desc *d, const char *dir)
{
    compile_request rq = {
        .program = {(const uint8_t *)program, sizeof program - 1},
        .format = "hlo_text",
        .format_len = 8,
        .device = d,
    };
    sd_options o = {0};
    compile_services sv = {.env = &o};
    thunk_program *p;

    o.value[SD_OPT_DUMP_TO] = dir;
    ok(sundog_compile(&rq, &sv, &p));
    return p;
}

/* The one file of the folder that ends so, read and with all others removed. */
static void take_dump(const char *dir, const char *end, sd_buf *out)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int found = 0;

    while ((e = readdir(d))) {
        size_t n = strlen(e->d_name), m = strlen(end);
        char path[512];

        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (n > m && !strcmp(e->d_name + n - m, end)) {
            ok(sd_file_read(path, out));
            found++;
        }
        unlink(path);
    }
    closedir(d);
    rmdir(dir);
    assert_int_equal(found, 1);
}

static void run(xpu_device *d, thunk_program *p, float *out)
{
    static const int64_t dim[2] = {9, 101};
    xpu_buffer *x, *y[OUTPUTS];
    xpu_call call = {.arg = &x, .narg = 1};
    xpu_program *xp;
    xpu_event *done;
    float data[N];

    for (int i = 0; i < N; i++)
        data[i] = (float)(i * 7919 % 1000) / 300.0f - 1;
    ok(xpu_buffer_from_host(d, XPU_MEM_DEVICE, SD_F32, 2, dim, data, NULL, true,
                            &x, NULL));
    ok(xpu_program_load(d, p, &xp));
    ok(xpu_execute(xp, &call, y, &done));
    ok(xpu_event_wait(done));
    xpu_event_release(done);
    for (int i = 0; i < OUTPUTS; i++) {
        size_t n = xpu_buffer_bytes(y[i]);

        ok(xpu_buffer_to_host(y[i], 0, out, n, &done));
        ok(xpu_event_wait(done));
        xpu_event_release(done);
        xpu_buffer_release(y[i]);
        out += n / sizeof *out;
    }
    xpu_buffer_release(x);
    xpu_program_release(xp);
}

static void ir_alone_gives_the_same_results(void **state)
{
    xpu_device *d = *state;
    char dir[] = "/tmp/sundog-ir-XXXXXX";
    float want[9 + 101 + N], got[9 + 101 + N];
    sd_buf ir = {0}, binary = {0};
    thunk_program *p;

    assert_non_null(mkdtemp(dir));
    p = compile_with_dump(xpu_device_desc(d), dir);
    take_dump(dir, ".ir-no-opt.ll", &ir);
    assert_int_equal(p->nbinary, 1);
    run(d, p, want);
    ok(target_compile_ir(xpu_device_desc(d), ir.at, ir.len, &binary));
    p->binary[0].data = (const uint8_t *)binary.at; /* no other reader yet */
    p->binary[0].bytes = binary.len;
    run(d, p, got);
    assert_memory_equal(want, got, sizeof want);
    thunk_program_release(p);
    sd_buf_finish(&ir);
    sd_buf_finish(&binary);
}

/* argument: the device, host or cl; 77 when there is none */
int main(int argc, char **argv)
{
    sd_options o = {0};
    xpu_client *c;
    sd_status st;
    int failed;

    o.value[SD_OPT_DEVICE] = argc > 1 ? argv[1] : "host";
    o.value[SD_OPT_CL_LIBRARY] = getenv("SUNDOG_CL_LIBRARY");
    if ((st = xpu_client_create(&o, &c))) {
        print_message("no device: %s\n", st->message);
        sd_status_free(st);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(ir_alone_gives_the_same_results,
                                  xpu_client_device(c, 0)),
    };
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    xpu_client_destroy(c);
    return failed;
}
