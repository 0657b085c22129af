/* A whole life of a client: two programs, copies in and out, small and large,
 * one of them to the last device; what it computes is held against what is
 * right.  Drivers fail somewhere in it. */
#include "life.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Copied at once, in halves on cuda, and queued. */
enum { N = 4096, SHORT = 50000, LARGE = 300000 };

sd_buf life_code, life_elf;
sd_options life_options;

sd_status life_begin(life *l, const char *device)
{
    sd_options opt = life_options;

    opt.value[SD_OPT_DEVICE] = device;
    opt.value[SD_OPT_THREADS] = "1";
    opt.value[SD_OPT_HOST_DEVICES] = "1";
    opt.value[SD_OPT_LIBRARIES] = "0";
    return xpu_client_create(&opt, &l->c);
}

static sd_status load_programs(life *l, xpu_device *d)
{
    thunk_program *p = one_kernel(xpu_device_desc(d), "square", N, 2);
    sd_status st = xpu_program_load(d, p, &l->square);
    thunk t[2];

    thunk_program_release(p);
    if (st)
        return st;
    p = program(xpu_device_desc(d), 2, 1, N);
    t[1] = call(p, kernel(p, "accumulate", N, 1), 1, 2, number(p, N));
    p->buffer[2].alias = 0;
    p->donatable[0] = true;
    steps(p, 1, t + 1);
    st = xpu_program_load(d, p, &l->add);
    thunk_program_release(p);
    return st;
}

static sd_status get(xpu_buffer *b, void *to, size_t bytes)
{
    xpu_event *e;
    sd_status st = xpu_buffer_to_host(b, 0, to, bytes, &e);

    if (st)
        return st;
    st = xpu_event_wait(e);
    xpu_event_release(e);
    return st;
}

static sd_status fill(life *l, xpu_device *d, float *data)
{
    int64_t n = N, large = LARGE;
    xpu_event *done;
    sd_status st;

    for (int i = 0; i < LARGE; i++)
        data[i] = (float)(i % 1000);
    if ((st = xpu_buffer_from_host(d, XPU_MEM_DEVICE, SD_F32, 1, &n, data, NULL,
                                   true, &l->a, NULL)) ||
        (st = xpu_buffer_from_host(d, XPU_MEM_PINNED_HOST, SD_F32, 1, &large,
                                   data, NULL, false, &l->large, &done)))
        return st;
    st = xpu_event_wait(done);
    xpu_event_release(done);
    return st;
}

/* a = data; b = a * a + 1; sum = a + b, in the place of a; and a large buffer
 * there, over to the last device and back, whole and in part. */
static sd_status live(life *l, float *data)
{
    xpu_device *d = xpu_client_device(l->c, 0), *last;
    sd_status st;

    last = xpu_client_device(l->c, xpu_client_count(l->c) - 1);
    if ((st = load_programs(l, d)) || (st = fill(l, d, data)) ||
        (st = run1(l->square, l->a, &l->b, NULL)) ||
        (st = run2(l->add, l->a, l->b, NULL, &l->sum)) ||
        (st = get(l->sum, l->got, N * sizeof(float))))
        return st;
    for (int i = 0; i < N; i++)
        assert_true(l->got[i] == data[i] + data[i] * data[i] + 1);
    if ((st = xpu_buffer_copy(l->large, last, XPU_MEM_DEVICE, &l->moved)) ||
        (st = get(l->moved, l->got, LARGE * sizeof(float))))
        return st;
    assert_memory_equal(l->got, data, LARGE * sizeof(float));
    memset(l->got, 0, SHORT * sizeof(float));
    if ((st = get(l->moved, l->got, SHORT * sizeof(float))))
        return st;
    assert_memory_equal(l->got, data, SHORT * sizeof(float));
    return NULL;
}

void life_end(life *l)
{
    xpu_buffer *b[] = {l->a, l->b, l->sum, l->large, l->moved};

    for (size_t i = 0; i < SD_COUNTOF(b); i++)
        xpu_buffer_release(b[i]);
    xpu_program_release(l->square);
    xpu_program_release(l->add);
    if (l->c)
        xpu_client_destroy(l->c);
}

sd_status whole_life(const char *device)
{
    float *data = malloc(2 * LARGE * sizeof(float));
    life l = {.got = data + LARGE};
    sd_status st;

    device_name = device;
    object = is_host() ? life_elf : life_code;
    st = life_begin(&l, device);
    if (!st)
        st = live(&l, data);
    life_end(&l);
    free(data);
    return st;
}

/* ---- drivers in trouble ---- */

void *fake_driver;
const char *fake_library;
long (*ncalls)(void), (*nlive)(void), (*nruns)(void);
static const char *fake_device;

long (*fake_count(const char *what))(void)
{
    char name[40];

    snprintf(name, sizeof name, "fake_%s_%s", fake_device, what);
    return (long (*)(void))(uintptr_t)dlsym(fake_driver, name);
}

bool fake_open(const char *device, const char *library)
{
    bool cl = strcmp(device, "cl") == 0;

    fake_device = device;
    fake_library = library;
    fake_driver = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!fake_driver)
        return false;
    life_options.value[cl ? SD_OPT_CL_LIBRARY : SD_OPT_CUDA_LIBRARY] = library;
    ncalls = fake_count("calls");
    nlive = fake_count("live");
    nruns = fake_count("runs");
    return true;
}

void fake_tell(const char *words)
{
    setenv(strcmp(fake_device, "cl") ? "FAKE_CUDA" : "FAKE_CL", words, 1);
}

sd_status with(const char *fmt, ...)
{
    char words[128];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    fake_tell(words);
    return whole_life(fake_device);
}

sd_status life_beside_host(const char *words)
{
    static int n;
    sd_status st = with("%s", words);

    if (n++ % 16 == 0)
        ok(whole_life("host"));
    return st;
}

long life_each(sd_status (*one)(const char *words),
               bool (*is_clear)(const sd_error *st), long (*count)(void),
               const char *word, const char *more, int step)
{
    long n = 1, nfailed = 0, ncall;
    char words[128];

    for (;; n += step) {
        sd_status st;

        snprintf(words, sizeof words, "%s=%ld%s", word, n, more);
        st = one(words);
        ncall = count();
        if (st && !is_clear(st))
            fail_msg("%s: %s", words, st->message);
        if (nlive())
            fail_msg("%s: %ld objects are left", words, nlive());
        nfailed += st != NULL;
        sd_status_free(st);
        if (n > ncall)
            break;
    }
    printf("%s%s: %ld, %ld ended in an error\n", word, more, ncall, nfailed);
    return nfailed;
}

void expect(sd_status st, sd_code code, const char *message)
{
    assert_non_null(st);
    assert_int_equal(st->code, code);
    assert_string_equal(st->message, message);
    sd_status_free(st);
    assert_int_equal(nlive(), 0);
    ok(whole_life("host"));
}

char *told(const char *fmt)
{
    static char text[512];

    snprintf(text, sizeof text, fmt, fake_library);
    return text;
}

void life_auto(const char *words)
{
    long n = 1, nhost = 0, ncall;
    char all[64];

    do {
        life l = {0};
        const char *name;

        snprintf(all, sizeof all, "%s,fail=%ld", words, n);
        fake_tell(all);
        ok(life_begin(&l, "auto"));
        ncall = ncalls();
        name = xpu_device_desc(xpu_client_device(l.c, 0))->name;
        if (!strncmp(name, "host", 4)) {
            assert_int_equal(xpu_client_count(l.c), 1);
            assert_int_equal(nlive(), 0);
            nhost++;
        } else {
            assert_int_equal(xpu_client_count(l.c), 2);
        }
        life_end(&l);
        assert_int_equal(nlive(), 0);
    } while (n++ <= ncall);
    printf("auto: %ld of %ld failing calls lead to the host\n", nhost, n - 1);
    assert_true(nhost > 5);
}
