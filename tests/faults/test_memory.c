/* Memory runs out at every place in turn: compiling, the client's start, a
 * whole life of each skeleton program through PJRT, and every call that asks
 * for memory.  Always a status, nothing leaks (LeakSanitizer looks at the end,
 * the devices' counts after each scene), and the next run is right.
 *   test_memory FOLDER [libfakecl.so]    of *.hlo programs; on host, or cl */
#include "compile.h"
#include "fail_alloc.h"
#include "memory_test.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_PARAMS = 32, MOST_OUTPUTS = 32 };

const PJRT_Api *GetPjrtApi(void);

static const char *folder;

/* ---- programs ---- */

static sd_status compile_text(const sd_buf *text, thunk_program **out)
{
    sd_options env = {0};
    device_desc dev;
    compile_request rq = {.program = {(const uint8_t *)text->at, text->len},
                          .format = "hlo_text",
                          .format_len = 8,
                          .device = &dev};
    compile_services sv = {.env = &env};

    if (client)
        dev = *xpu_device_desc(xpu_client_device(client->x, 0));
    else
        device_desc_of_name("host:v3", &dev);
    return sundog_compile(&rq, &sv, out);
}

static void read_text(const char *name, sd_buf *text)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_null(sd_file_read(path, text));
}

/* As PJRT_Executable_Serialize writes it. */
static void save(const char *name, sd_buf *out)
{
    PJRT_Executable *e;
    thunk_program *p;
    sd_buf text = {0};
    sd_status st;

    read_text(name, &text);
    if ((st = compile_text(&text, &p)))
        fail_msg("%s: %s", name, st->message);
    assert_null(pjrt_executable_make(p, (sd_bytes){0}, &e));
    assert_null(pjrt_executable_save(e, out));
    pjrt_executable_release(e);
    sd_buf_finish(&text);
}

/* ---- lives through PJRT ---- */

typedef struct {
    const sd_buf *saved;
    const thunk_program *p;
} life;

static PJRT_Error *live(const void *ctx, uint64_t *sum)
{
    static const uint8_t zeros[1 << 22];
    const life *l = ctx;
    const thunk_program *p = l->p;
    PJRT_Buffer *arg[MOST_PARAMS], *out[MOST_OUTPUTS];
    PJRT_LoadedExecutable *exe;
    PJRT_Error *e = load(l->saved, &exe);

    for (int i = 0; i < p->nparam && !e; i++) {
        const thunk_type *t = &p->param[i];

        assert_true(t->bytes <= sizeof zeros);
        e = put(t->dtype, t->rank, t->dim, zeros,
                (PJRT_HostBufferSemantics)(i % 2), &arg[i]);
    }
    if (e || (e = execute(exe, arg, (size_t)p->nparam, out, (size_t)p->noutput,
                          NULL)))
        return e;
    for (int i = 0; i < p->noutput && !e; i++)
        e = get_result(out[i], p->output[i].bytes, sum);
    return e;
}

/* each: one of those of memory_test.h. */
static long fail_program(const char *name,
                         long (*each)(const char *, scene, const void *))
{
    sd_buf saved = {0};
    PJRT_Executable *e;
    long n;

    save(name, &saved);
    assert_null(pjrt_executable_restore(
        (sd_bytes){(uint8_t *)saved.at, saved.len}, &e));
    n = each(name, live, &(life){&saved, e->p});
    pjrt_executable_release(e);
    sd_buf_finish(&saved);
    return n;
}

static void each_request_of_a_life_fails(void **state)
{
    DIR *d = opendir(folder);
    struct dirent *f;
    long total = 0, programs = 0;

    (void)state;
    assert_non_null(d);
    while ((f = readdir(d))) {
        size_t n = strlen(f->d_name);

        if (n < 4 || strcmp(f->d_name + n - 4, ".hlo"))
            continue;
        total += fail_program(f->d_name, fail_each);
        programs++;
    }
    closedir(d);
    printf("%ld programs, %ld requests failed in turn\n", programs, total);
    assert_true(programs > 30 && total > 1000);
}

static void each_request_of_a_call_fails(void **state)
{
    sd_buf plain = {0};
    long total;

    (void)state;
    save("square.hlo", &plain);
    total = fail_each_buffer_call() + fail_each_program_call(&plain);
    sd_buf_finish(&plain);
    printf("%ld requests of calls failed in turn\n", total);
    assert_true(total > 1000);
}

/* ---- starting and compiling ---- */

static void each_request_of_the_start_fails(void **state)
{
    long n = 0, nrequest;

    (void)state;
    do {
        PJRT_Client *c;
        PJRT_Error *e;

        n++;
        fail_alloc_arm(n, n % 2);
        e = open_client(&c);
        nrequest = fail_alloc_disarm();
        if (e)
            take_error(e, "starting");
        else
            close_client(c);
    } while (n <= nrequest);
    printf("%ld requests of a start\n", n - 1);
    assert_true(n > 10);
}

static void each_request_of_a_first_life_fails(void **state)
{
    static const char *const name[] = {"square.hlo", "sort.hlo", "matmul.hlo"};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(name); i++)
        printf("%s: %ld requests\n", name[i],
               fail_program(name[i], fail_each_alone));
}

static void each_request_of_compiling_fails(void **state)
{
    static const char *const name[] = {"square.hlo", "softmax.hlo", "sort.hlo",
                                       "while_rows.hlo"};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(name); i++) {
        sd_buf text = {0};
        long n = 0, nrequest;

        read_text(name[i], &text);
        do {
            thunk_program *p = NULL;
            sd_status st;

            fail_alloc_arm(++n, false);
            st = compile_text(&text, &p);
            nrequest = fail_alloc_disarm();
            if (st && st->code != SD_EXHAUSTED)
                fail_msg("%s, request %ld: %s", name[i], n, st->message);
            sd_status_free(st);
            thunk_program_release(p);
        } while (n <= nrequest);
        printf("%s: %ld requests\n", name[i], n - 1);
        sd_buf_finish(&text);
    }
}

/* A program larger than its limit is refused by number, and the next one is
 * compiled. */
static void compiling_has_a_limit(void **state)
{
    sd_options env = {.value[SD_OPT_COMPILE_MEMORY] = "1"};
    compile_request rq = {.format = "hlo_text", .format_len = 8};
    compile_services sv = {.env = &env};
    device_desc dev;
    thunk_program *p;
    sd_buf text = {0};
    sd_status st;

    (void)state;
    device_desc_of_name("host:v3", &dev);
    sd_buf_str(&text, "HloModule m\nENTRY e {\n  x0 = f32[8] parameter(0)\n");
    for (int i = 1; i <= 20000; i++)
        sd_buf_fmt(&text, "  x%d = f32[8] sine(x%d)\n", i, i - 1);
    sd_buf_str(&text, "  ROOT r = f32[8] negate(x20000)\n}\n");
    rq.program = (sd_bytes){(uint8_t *)text.at, text.len};
    rq.device = &dev;
    st = sundog_compile(&rq, &sv, &p);
    assert_non_null(st);
    assert_int_equal(st->code, SD_EXHAUSTED);
    if (!strstr(st->message, "compiling for host:v3 (SUNDOG_COMPILE_MEMORY "
                             "sets the limit in MiB): host memory: ") ||
        !strstr(st->message, " would be over the limit of 1048576"))
        fail_msg("%s", st->message);
    sd_status_free(st);
    sd_buf_finish(&text);
    read_text("square.hlo", &text);
    rq.program = (sd_bytes){(uint8_t *)text.at, text.len};
    assert_null(sundog_compile(&rq, &sv, &p));
    thunk_program_release(p);
    sd_buf_finish(&text);
}

/* Texts that are dumped do not stay until the compile ends: what they take
 * together is twice as much as it may have. */
static void dumps_are_not_kept(void **state)
{
    char dir[] = "/tmp/test_memory_XXXXXX";
    sd_options env = {.value[SD_OPT_COMPILE_MEMORY] = "16",
                      .value[SD_OPT_DUMP_TO] = dir,
                      .value[SD_OPT_DUMP_PASSES] = "."};
    compile_request rq = {.format = "hlo_text", .format_len = 8};
    compile_services sv = {.env = &env};
    int ndump = 0, n = 200000;
    struct dirent *f;
    device_desc dev;
    thunk_program *p;
    sd_buf text = {0};
    sd_status st;
    DIR *d;

    (void)state;
    assert_non_null(mkdtemp(dir));
    device_desc_of_name("host:v3", &dev);
    sd_buf_fmt(&text, "HloModule m\nENTRY e {\n  x = s32[%d] parameter(0)\n",
               n);
    sd_buf_fmt(&text, "  c = s32[%d] constant({0", n);
    for (int i = 1; i < n; i++)
        sd_buf_fmt(&text, ",%d", i * 7919);
    sd_buf_fmt(&text, "})\n  y = s32[%d] add(c, x)\n", n);
    sd_buf_fmt(&text, "  ROOT r = s32[%d] subtract(y, x)\n}\n", n);
    rq.program = (sd_bytes){(uint8_t *)text.at, text.len};
    rq.device = &dev;
    st = sundog_compile(&rq, &sv, &p);
    if (st)
        fail_msg("%s", st->message);
    thunk_program_release(p);
    sd_buf_finish(&text);
    d = opendir(dir);
    assert_non_null(d);
    while ((f = readdir(d))) {
        ndump += strstr(f->d_name, ".txt") != NULL;
        (void)unlinkat(dirfd(d), f->d_name, 0);
    }
    closedir(d);
    assert_int_equal(rmdir(dir), 0);
    assert_true(ndump > 3);
}

/* Two devices, so that there is a way from one to another. */
static void choose_devices(const char *kind, const char *path)
{
    setenv("SUNDOG_DEVICE", kind, 1);
    setenv("SUNDOG_HOST_DEVICES", "2", 1);
    setenv("SUNDOG_CL_SPLIT", "2", 1);
    setenv("FAKE_CL", "kernels=any,memory=4000000000", 1);
    setenv("FAKE_CUDA", "kernels=any,devices=2,memory=4000000000", 1);
    if (path) {
        setenv("SUNDOG_CL_LIBRARY", path, 1);
        setenv("SUNDOG_CUDA_LIBRARY", path, 1);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_of_the_start_fails),
        cmocka_unit_test(each_request_of_compiling_fails),
        cmocka_unit_test(each_request_of_a_life_fails),
        cmocka_unit_test(each_request_of_a_call_fails),
        cmocka_unit_test(each_request_of_a_first_life_fails),
        cmocka_unit_test(compiling_has_a_limit),
        cmocka_unit_test(dumps_are_not_kept),
    };
    int bad;

    if (argc < 2) {
        fprintf(stderr, "test_memory FOLDER [cl|cuda LIBRARY [LINKER]]\n");
        return 2;
    }
    folder = argv[1];
    choose_devices(argc > 3 ? argv[2] : "host", argc > 3 ? argv[3] : NULL);
    setenv("FAKE_LINK", "none", 1);
    if (argc > 4) /* before the toolkit's, which would compile in earnest */
        assert_non_null(dlopen(argv[4], RTLD_NOW | RTLD_LOCAL));
    computes = argc <= 3;
    alarm(600); /* a wait without end is a failure too */
    api = GetPjrtApi();
    assert_null(open_client(&client));
    use_client(client);
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    close_client(client);
    return bad;
}
