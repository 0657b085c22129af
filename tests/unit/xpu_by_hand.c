/* Programs made by hand on kernels that clang built, and what the runtime's
 * tests say to them. */
#include "xpu_by_hand.h"

#include <stdio.h>
#include <stdlib.h>

const char *device_name;
sd_buf object;

void ok(sd_status st)
{
    if (st)
        fail_msg("%s (%s)", st->message, st->where ? st->where : "");
}

void fails(sd_status st, sd_code code)
{
    assert_non_null(st);
    if (st->code != code)
        fail_msg("code %d, not %d: %s", st->code, code, st->message);
    sd_status_free(st);
}

bool is_host(void)
{
    return !strcmp(device_name, "host");
}

bool is_there(void)
{
    sd_options opt = {0};
    xpu_client *c;
    sd_status st;

    sd_options_from_env(&opt);
    opt.value[SD_OPT_DEVICE] = device_name;
    if (!(st = xpu_client_create(&opt, &c))) {
        xpu_client_destroy(c);
        return true;
    }
    if (st->code != SD_NOT_FOUND)
        fail_msg("%s", st->message);
    printf("no %s device: %s\n", device_name, st->message);
    sd_status_free(st);
    return false;
}

xpu_client *open_client(const char *threads, const char *count)
{
    sd_options opt = {0};
    xpu_client *c;

    sd_options_from_env(&opt);
    opt.value[SD_OPT_DEVICE] = device_name;
    opt.value[SD_OPT_THREADS] = threads;
    opt.value[SD_OPT_HOST_DEVICES] = count;
    opt.value[SD_OPT_CL_SPLIT] = count;
    ok(xpu_client_create(&opt, &c));
    return c;
}

static thunk_type *types(thunk_program *p, int n, int64_t elements)
{
    thunk_type *t = sd_arena_array(p->arena, thunk_type, n);

    for (int i = 0; i < n; i++)
        t[i] = (thunk_type){SD_F32, 1, sd_arena_copy(p->arena, &elements, 8),
                            (uint64_t)elements * 4, "device"};
    return t;
}

thunk_program *program(const device_desc *d, int nparam, int noutput,
                       int64_t elements)
{
    static const thunk_bin_kind code[DEVICE_KIND_COUNT] = {
        [DEVICE_HOST] = THUNK_BIN_X86,
        [DEVICE_CL] = THUNK_BIN_SPIRV,
        [DEVICE_CUDA] = THUNK_BIN_PTX};
    thunk_program *p = thunk_program_create("by_hand", d);

    p->param = types(p, nparam, elements);
    p->output = types(p, noutput, elements);
    p->nparam = nparam;
    p->noutput = noutput;
    p->donatable = sd_arena_array(p->arena, bool, nparam);
    for (int i = 0; i < nparam; i++)
        thunk_add_buffer(p,
                         (thunk_buffer){THUNK_B_PARAM, i,
                                        (uint64_t)elements * 4, -1, false, 0});
    for (int i = 0; i < noutput; i++)
        thunk_add_buffer(p,
                         (thunk_buffer){THUNK_B_OUTPUT, i,
                                        (uint64_t)elements * 4, -1, false, 0});
    thunk_add_binary(p, code[d->kind], object.at, object.len);
    p->kernel = sd_arena_array(p->arena, thunk_kernel, 8);
    return p;
}

int constant(thunk_program *p, const void *data, size_t bytes)
{
    uint64_t at = thunk_add_constant(p, data, bytes);

    return thunk_add_buffer(
        p, (thunk_buffer){THUNK_B_CONST, 0, bytes, -1, false, at});
}

int temp(thunk_program *p, uint64_t bytes)
{
    uint64_t at = p->temp_bytes;

    p->temp_bytes += (bytes + 63) & ~63ull;
    return thunk_add_buffer(
        p, (thunk_buffer){THUNK_B_TEMP, 0, bytes, -1, false, at});
}

int kernel(thunk_program *p, const char *symbol, int64_t elements, double flops)
{
    p->kernel[p->nkernel] = (thunk_kernel){symbol,
                                           0,
                                           3,
                                           (elements + 63) / 64,
                                           is_host() ? 1 : 64,
                                           strcmp(symbol, "imports") ? 0 : 4096,
                                           flops * (double)elements,
                                           8.0 * (double)elements,
                                           false};
    return p->nkernel++;
}

int number(thunk_program *p, int64_t n)
{
    int32_t v = (int32_t)n;

    return constant(p, &v, 4);
}

thunk call(thunk_program *p, int k, int a, int b, int n)
{
    thunk_slice s[3];
    int id[3] = {a, b, n};
    thunk t = {.kind = THUNK_KERNEL,
               .name = p->kernel[k].symbol,
               .narg = 3,
               .kernel = k,
               .flops = p->kernel[k].flops,
               .bytes = p->kernel[k].bytes};

    for (int i = 0; i < 3; i++)
        s[i] = (thunk_slice){id[i], 0, p->buffer[id[i]].bytes};
    t.arg = sd_arena_copy(p->arena, s, sizeof s);
    return t;
}

void steps(thunk_program *p, int n, const thunk *t)
{
    p->seq.at = sd_arena_copy(p->arena, t, (size_t)n * sizeof *t);
    p->seq.n = n;
}

xpu_program *load(xpu_device *d, thunk_program *p)
{
    xpu_program *x;

    ok(thunk_verify(p));
    ok(xpu_program_load(d, p, &x));
    thunk_program_release(p);
    return x;
}

thunk_program *one_kernel(const device_desc *d, const char *symbol, int64_t n,
                          double flops)
{
    thunk_program *p = program(d, 1, 1, n);
    int num = number(p, n);
    thunk t = call(p, kernel(p, symbol, n, flops), 0, 1, num);

    steps(p, 1, &t);
    return p;
}

xpu_program *simple(xpu_device *d, const char *symbol, int64_t n, double flops)
{
    return load(d, one_kernel(xpu_device_desc(d), symbol, n, flops));
}

xpu_program *adder(xpu_device *d, int64_t n)
{
    thunk_program *p = program(xpu_device_desc(d), 2, 1, n);
    int num = number(p, n);
    thunk t = call(p, kernel(p, "accumulate", n, 1), 1, 2, num);

    p->buffer[2].alias = 0;
    p->donatable[0] = true;
    steps(p, 1, &t);
    return load(d, p);
}

xpu_buffer *buffer(xpu_device *d, int64_t n, float first, float step)
{
    float *v = malloc((size_t)n * 4);
    xpu_buffer *b;

    for (int64_t i = 0; i < n; i++)
        v[i] = first + (float)i * step;
    ok(xpu_buffer_from_host(d, XPU_MEM_DEVICE, SD_F32, 1, &n, v, NULL, true, &b,
                            NULL));
    free(v);
    return b;
}

float *fetch(xpu_buffer *b)
{
    float *v = malloc(xpu_buffer_bytes(b) + 4);
    xpu_event *e;

    ok(xpu_buffer_to_host(b, 0, v, xpu_buffer_bytes(b), &e));
    ok(xpu_event_wait(e));
    xpu_event_release(e);
    return v;
}

sd_status run1(xpu_program *x, xpu_buffer *a, xpu_buffer **out,
               xpu_event **done)
{
    xpu_call c = {.arg = &a, .narg = 1};

    return xpu_execute(x, &c, out, done);
}

sd_status run2(xpu_program *x, xpu_buffer *a, xpu_buffer *b, const bool *keep,
               xpu_buffer **out)
{
    xpu_buffer *arg[] = {a, b};
    xpu_call c = {.arg = arg, .narg = 2, .keep = keep};

    return xpu_execute(x, &c, out, NULL);
}
