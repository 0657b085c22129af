/* A whole life of a client: two programs, copies in and out, small and large,
 * one of them to the last device; what it computes is held against what is
 * right.  Drivers fail somewhere in it. */
#include "life.h"

#include <stdlib.h>

enum { N = 4096, LARGE = 300000 }; /* copied at once, and queued */

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
 * there, over to the last device and back. */
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
