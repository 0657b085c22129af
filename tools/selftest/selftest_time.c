/* How fast: the memory roof, what a launch costs, compiling, products. */
#include "selftest.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXT = 4096 };

/* A card has its own memory, and much of it. */
static bool is_card(const selftest *s)
{
    const device_desc *d = xpu_device_desc(s->device);

    return d->kind != DEVICE_HOST && strcmp(d->name, "cl:cpu") != 0;
}

static double seconds_since(uint64_t start)
{
    return (double)(sd_now_ns() - start) * 1e-9;
}

/* ---- in a row, as a training loop calls ---- */

/* So many that waiting for the last is little beside them. */
static int row_of(const selftest *s)
{
    return is_card(s) ? 20 : 5;
}

/* Seconds that one of n executions takes. */
static sd_status time_row(int n, xpu_program *x, int narg,
                          xpu_buffer *const *arg, double *out)
{
    xpu_call call = {.arg = arg, .narg = narg};
    xpu_event *done = NULL;
    uint64_t start = sd_now_ns();
    sd_status st = NULL;

    for (int i = 0; i < n && !st; i++) {
        xpu_buffer *result = NULL;

        if (done)
            xpu_event_release(done);
        done = NULL;
        st = xpu_execute(x, &call, &result, &done);
        if (result)
            xpu_buffer_release(result);
    }
    if (!st)
        st = selftest_wait(done);
    *out = seconds_since(start) / n;
    return st;
}

/* The best of as many as there is time for; the first is not counted: memory
 * comes from the system then. */
static sd_status best_of(selftest *s, xpu_program *x, int narg,
                         xpu_buffer *const *arg, double *best)
{
    uint64_t start = sd_now_ns();
    double t, enough = s->quick ? 0.1 : 0.3;
    sd_status st = time_row(row_of(s), x, narg, arg, &t);

    *best = 1e9;
    for (int i = 0; !st && (i < 2 || seconds_since(start) < enough); i++) {
        st = time_row(row_of(s), x, narg, arg, &t);
        *best = SD_MIN(*best, t);
    }
    return st;
}

/* An array of ones, made on the device. */
static sd_status ones(selftest *s, const char *type, int64_t rows, int64_t cols,
                      xpu_buffer **out)
{
    char text[TEXT];
    xpu_program *x;
    sd_status st;

    snprintf(text, sizeof text,
             "HloModule ones\nENTRY main {\n  x = %s[] constant(1)\n"
             "  ROOT y = %s[%" PRId64 ",%" PRId64
             "] broadcast(x), dimensions={}\n}\n",
             type, type, rows, cols);
    if ((st = selftest_load(s, text, &x)))
        return st;
    st = selftest_execute(x, 0, NULL, out);
    xpu_program_release(x);
    return st;
}

/* ---- the memory roof ---- */

/* Programs of x, TYPE[R,C]; texts have T for the type. */
static const struct {
    const char *name, *type;
    double reads, writes; /* of the argument's bytes */
    const char *text;
} moving[] = {
    {"elementwise f32", "f32", 1, 1, "  ROOT y = T[R,C] negate(x)\n"},
    {"elementwise bf16", "bf16", 1, 1, "  ROOT y = T[R,C] negate(x)\n"},
    {"row sums f32", "f32", 1, 0,
     "  z = T[] constant(0)\n"
     "  ROOT y = T[R] reduce(x, z), dimensions={1}, to_apply=add\n"},
    {"column sums f32", "f32", 1, 0,
     "  z = T[] constant(0)\n"
     "  ROOT y = T[C] reduce(x, z), dimensions={0}, to_apply=add\n"},
    {"softmax f32", "f32", 1, 1,
     "  i = T[] constant(-inf)\n"
     "  m = T[R] reduce(x, i), dimensions={1}, to_apply=max\n"
     "  mm = T[R,C] broadcast(m), dimensions={0}\n"
     "  d = T[R,C] subtract(x, mm)\n"
     "  e = T[R,C] exponential(d)\n"
     "  z = T[] constant(0)\n"
     "  s = T[R] reduce(e, z), dimensions={1}, to_apply=add\n"
     "  ss = T[R,C] broadcast(s), dimensions={0}\n"
     "  ROOT y = T[R,C] divide(e, ss)\n"},
    {"transpose f32", "f32", 1, 1,
     "  ROOT y = T[C,R] transpose(x), dimensions={1,0}\n"},
};

/* T, R and C become the type and the sizes where they stand for them. */
static void write_program(char *out, const char *type, int64_t rows,
                          int64_t cols, const char *body)
{
    char whole[TEXT], *to = out, *end = out + TEXT;

    snprintf(whole, sizeof whole,
             "HloModule moving\n"
             "add { a = T[] parameter(0) b = T[] parameter(1) ROOT r = T[] "
             "add(a, b) }\n"
             "max { a = T[] parameter(0) b = T[] parameter(1) ROOT r = T[] "
             "maximum(a, b) }\n"
             "ENTRY main {\n  x = T[R,C] parameter(0)\n%s}\n",
             body);
    for (const char *c = whole; *c && to < end - 32; c++)
        if (*c == 'T' && c[1] == '[')
            to += snprintf(to, (size_t)(end - to), "%s", type);
        else if (*c == 'R' && (c[1] == ',' || c[1] == ']'))
            to += snprintf(to, (size_t)(end - to), "%" PRId64, rows);
        else if (*c == 'C' && (c[1] == ',' || c[1] == ']'))
            to += snprintf(to, (size_t)(end - to), "%" PRId64, cols);
        else
            *to++ = *c;
    *to = 0;
}

static void note_speed(selftest *s, const char *name, double bytes,
                       double seconds, double *roof)
{
    double gb = bytes / seconds * 1e-9;

    *roof = *roof ? *roof : gb;
    selftest_note_figure(s, name, "GB/s", gb);
    selftest_say(s, "%-20s %9.1f GB/s  %5.2f of the copy", name, gb,
                 gb / *roof);
}

typedef struct {
    int64_t rows, cols;
    double roof; /* the copy's GB/s */
} sizes;

/* As a driver, or memcpy, copies: on a card some in a row, too. */
static sd_status copy_row(selftest *s, int n, xpu_buffer *x, double *seconds)
{
    uint64_t start = sd_now_ns();
    xpu_buffer *y = NULL;
    sd_status st = NULL;

    for (int i = 0; i < n && !st; i++) {
        if (y)
            xpu_buffer_release(y);
        y = NULL;
        st = xpu_buffer_copy(x, s->device, XPU_MEM_DEVICE, &y);
    }
    if (!st)
        st = xpu_event_wait(xpu_buffer_ready(y));
    *seconds = seconds_since(start) / n;
    if (y)
        xpu_buffer_release(y);
    return st;
}

static sd_status time_copy(selftest *s, sizes *z, xpu_buffer *x)
{
    double best = 1e9, t;
    sd_status st = NULL;

    for (int i = 0; i < 5 && !st; i++) {
        st = copy_row(s, is_card(s) ? 4 : 1, x, &t);
        if (i) /* the first takes its memory from the system */
            best = SD_MIN(best, t);
    }
    if (!st)
        note_speed(s, "copy", 2 * (double)xpu_buffer_bytes(x), best, &z->roof);
    return st;
}

/* Of pageable memory, which is what frameworks have. */
static sd_status time_transfers(selftest *s, sizes *z)
{
    const int64_t n = (int64_t)64 << 20;
    char *data = calloc(1, (size_t)n);
    double to = 1e9, from = 1e9;
    sd_status st = data ? NULL : sd_no_memory((size_t)n);

    for (int i = 0; i < 3 && !st; i++) {
        uint64_t start = sd_now_ns();
        xpu_buffer *b;

        if ((st = selftest_give(s, SD_U8, 1, &n, data, &b)))
            break;
        st = xpu_event_wait(xpu_buffer_ready(b));
        to = SD_MIN(to, seconds_since(start));
        start = sd_now_ns();
        if (!st)
            st = selftest_take(b, data);
        from = SD_MIN(from, seconds_since(start));
        xpu_buffer_release(b);
    }
    if (!st) {
        note_speed(s, "host to device", (double)n, to, &z->roof);
        note_speed(s, "device to host", (double)n, from, &z->roof);
    }
    free(data);
    return st;
}

static sd_status time_moving(selftest *s, sizes *z, size_t i)
{
    char text[TEXT];
    xpu_program *x = NULL;
    xpu_buffer *in = NULL;
    double best = 0, bytes;
    sd_status st = ones(s, moving[i].type, z->rows, z->cols, &in);

    if (st)
        return st;
    write_program(text, moving[i].type, z->rows, z->cols, moving[i].text);
    if (!(st = selftest_load(s, text, &x)) &&
        !(st = best_of(s, x, 1, &in, &best))) {
        bytes = (double)xpu_buffer_bytes(in);
        note_speed(s, moving[i].name,
                   bytes * (moving[i].reads + moving[i].writes), best,
                   &z->roof);
    }
    if (x)
        xpu_program_release(x);
    xpu_buffer_release(in);
    return st;
}

static sd_status begin_copy(selftest *s, sizes *z)
{
    xpu_buffer *x;
    sd_status st = ones(s, "f32", z->rows, z->cols, &x);

    if (st)
        return st;
    st = time_copy(s, z, x);
    xpu_buffer_release(x);
    return st;
}

void selftest_speed(selftest *s, const char *text)
{
    xpu_memory_stats m;
    sizes z = {2048, 4096, 0};

    (void)text;
    xpu_device_stats(s->device, &m);
    if (is_card(s) && m.limit > (int64_t)4 << 30)
        z = (sizes){8192, 8192, 0};
    else if (xpu_device_desc(s->device)->kind == DEVICE_HOST && !s->quick)
        z = (sizes){4096, 8192, 0}; /* more than caches hold */
    selftest_say(s, "arrays of %" PRId64 " x %" PRId64, z.rows, z.cols);
    if (selftest_begin(s, "copy"))
        selftest_end(s, begin_copy(s, &z));
    for (size_t i = 0; i < SD_COUNTOF(moving); i++)
        if (selftest_begin(s, "%s", moving[i].name))
            selftest_end(s, time_moving(s, &z, i));
    if (selftest_begin(s, "host to device and back"))
        selftest_end(s, time_transfers(s, &z));
}

/* ---- dispatch ---- */

enum { MOST_ARGS = 100 };

static void many_arguments(char *out, size_t size, int n)
{
    size_t at = (size_t)snprintf(out, size, "HloModule many\nENTRY main {\n");

    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, size - at,
                               "  x%d = f32[8] parameter(%d)\n", i, i);
    snprintf(out + at, size - at, "  ROOT y = f32[8] add(x0, x%d)\n}\n", n - 1);
}

static sd_status time_blocking(xpu_program *x, int n, xpu_buffer **arg,
                               int turns, double *us)
{
    uint64_t start = sd_now_ns();
    sd_status st = NULL;

    for (int i = 0; i < turns && !st; i++) {
        xpu_buffer *out = NULL;

        st = selftest_execute(x, n, arg, &out);
        if (out)
            xpu_buffer_release(out);
    }
    *us = seconds_since(start) * 1e6 / turns;
    return st;
}

static sd_status time_pipelined(selftest *s, xpu_program *x, int n,
                                xpu_buffer **arg, int turns, double *us)
{
    xpu_call call = {.arg = arg, .narg = n};
    uint64_t start = sd_now_ns();
    sd_status st = NULL;

    for (int i = 0; i < turns && !st; i++) {
        xpu_buffer *out = NULL;

        st = xpu_execute(x, &call, &out, NULL);
        if (out)
            xpu_buffer_release(out);
    }
    if (!st)
        st = xpu_device_sync(s->device);
    *us = seconds_since(start) * 1e6 / turns;
    return st;
}

static sd_status time_dispatch(selftest *s, int n)
{
    enum { TURNS = 300, ROUNDS = 5 };
    static char text[MOST_ARGS * 48];
    const float data[8] = {1};
    const int64_t dim = 8;
    xpu_buffer *arg[MOST_ARGS] = {0};
    double blocking = 1e9, pipelined = 1e9, t;
    char name[40];
    xpu_program *x = NULL;
    sd_status st;

    many_arguments(text, sizeof text, n);
    st = selftest_load(s, text, &x);
    for (int i = 0; i < n && !st; i++)
        st = selftest_give(s, SD_F32, 1, &dim, data, &arg[i]);
    for (int i = 0; i < ROUNDS && !st; i++) {
        if ((st = time_blocking(x, n, arg, TURNS, &t)))
            break;
        blocking = SD_MIN(blocking, t);
        st = time_pipelined(s, x, n, arg, TURNS, &t);
        pipelined = SD_MIN(pipelined, t);
    }
    if (!st) {
        snprintf(name, sizeof name, "%d arguments, waited for", n);
        selftest_note_figure(s, name, "us", blocking);
        snprintf(name, sizeof name, "%d arguments, in a row", n);
        selftest_note_figure(s, name, "us", pipelined);
        selftest_say(s, "%3d arguments %8.1f us waited for, %.1f us in a row",
                     n, blocking, pipelined);
    }
    for (int i = 0; i < n; i++)
        if (arg[i])
            xpu_buffer_release(arg[i]);
    if (x)
        xpu_program_release(x);
    return st;
}

void selftest_dispatch(selftest *s, const char *text)
{
    (void)text;
    if (selftest_begin(s, "1 argument"))
        selftest_end(s, time_dispatch(s, 1));
    if (selftest_begin(s, "100 arguments"))
        selftest_end(s, time_dispatch(s, MOST_ARGS));
}

/* ---- compiling ---- */

static sd_status time_compile(selftest *s, size_t i)
{
    enum { TIMES = 5 };
    char text[TEXT], name[40];
    double first = 0, best = 1e9, load = 0;
    sd_status st = NULL;

    write_program(text, moving[i].type, 1000, 1000, moving[i].text);
    for (int k = 0; k < TIMES && !st; k++) {
        uint64_t start = sd_now_ns();
        thunk_program *t = NULL;
        xpu_program *x = NULL;
        double ms;

        st = selftest_compile(s, text, strlen(text), false, &t);
        ms = seconds_since(start) * 1e3;
        best = SD_MIN(best, ms);
        start = sd_now_ns();
        if (!st && !(st = xpu_program_load(s->device, t, &x)))
            xpu_program_release(x);
        if (!k) {
            first = ms;
            load = seconds_since(start) * 1e3;
        }
        thunk_program_release(t);
    }
    if (st)
        return st;
    snprintf(name, sizeof name, "%s, compiled", moving[i].name);
    selftest_note_figure(s, name, "ms", best);
    snprintf(name, sizeof name, "%s, loaded", moving[i].name);
    selftest_note_figure(s, name, "ms", load);
    selftest_say(s, "%-20s %7.2f ms, the first %.2f; loaded in %.2f",
                 moving[i].name, best, first, load);
    return NULL;
}

void selftest_compiling(selftest *s, const char *text)
{
    (void)text;
    for (size_t i = 0; i < SD_COUNTOF(moving); i++)
        if (strstr(moving[i].name, "f32") &&
            selftest_begin(s, "%s", moving[i].name))
            selftest_end(s, time_compile(s, i));
}

/* ---- products ---- */

/* What the code that we hand over asks for by name: drivers tell no more. */
static const char *matrix_words(const thunk_program *t)
{
    static const char *const words[] = {"wgmma", "tcgen05", "mma.sync",
                                        "MatrixMultiplyAccumulate",
                                        "matrix_mad"};

    for (int i = 0; i < t->nbinary; i++)
        for (size_t k = 0; k < SD_COUNTOF(words); k++)
            if (memmem(t->binary[i].data, t->binary[i].bytes, words[k],
                       strlen(words[k])))
                return words[k];
    return NULL;
}

static bool calls_library(const thunk_program *t)
{
    for (int i = 0; i < t->seq.n; i++)
        if (t->seq.at[i].kind == THUNK_LIBCALL)
            return true;
    return false;
}

/* Ones times ones: each element is their number. */
static sd_status check_product(xpu_program *x, xpu_buffer *const *arg,
                               int64_t n)
{
    xpu_buffer *out = NULL;
    float *got = malloc((size_t)(n * n) * sizeof *got);
    sd_status st = got ? NULL : sd_no_memory((size_t)(n * n) * sizeof *got);

    if (!st && !(st = selftest_execute(x, 2, arg, &out)))
        st = selftest_take(out, got);
    for (int64_t i = 0; i < n * n && !st; i++)
        if (got[i] != (float)n)
            st = sd_error(SD_DATA_LOSS, "element %" PRId64 " is %g, not %g", i,
                          (double)got[i], (double)n);
    if (out)
        xpu_buffer_release(out);
    free(got);
    return st;
}

static sd_status time_loaded(selftest *s, const thunk_program *t,
                             const char *type, int64_t n)
{
    const char *word = matrix_words(t);
    xpu_buffer *in = NULL;
    xpu_program *x = NULL;
    double best, speed;
    char name[40];
    sd_status st = ones(s, type, n, n, &in);
    xpu_buffer *arg[2] = {in, in};

    if (!st && !(st = xpu_program_load(s->device, (thunk_program *)t, &x)) &&
        !(st = check_product(x, arg, n)) &&
        !(st = best_of(s, x, 2, arg, &best))) {
        speed = 2 * (double)n * (double)n * (double)n / best * 1e-12;
        snprintf(name, sizeof name, "product %s %" PRId64, type, n);
        selftest_note_figure(s, name, "TFLOP/s", speed);
        selftest_say(s, "%-20s %9.3f TFLOP/s; matrix instructions: %s", name,
                     speed,
                     word               ? word
                     : calls_library(t) ? "a library's"
                                        : "none asked for");
    }
    if (x)
        xpu_program_release(x);
    if (in)
        xpu_buffer_release(in);
    return st;
}

static sd_status time_product(selftest *s, const char *type, int64_t n)
{
    char text[TEXT], shape[64];
    thunk_program *t = NULL;
    sd_status st;

    snprintf(shape, sizeof shape, "[%" PRId64 ",%" PRId64 "]", n, n);
    snprintf(text, sizeof text,
             "HloModule product\nENTRY main {\n  x = %s%s parameter(0)\n"
             "  y = %s%s parameter(1)\n  ROOT z = f32%s dot(x, y), "
             "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
             type, shape, type, shape, shape);
    if (!(st = selftest_compile(s, text, strlen(text), false, &t)))
        st = time_loaded(s, t, type, n);
    thunk_program_release(t);
    return st;
}

void selftest_matrix(selftest *s, const char *text)
{
    static const char *const types[] = {"bf16", "f16", "f32"};
    int64_t n = is_card(s) ? 2048 : 512;

    (void)text;
    for (size_t i = 0; i < SD_COUNTOF(types); i++)
        if (selftest_begin(s, "product of %s", types[i]))
            selftest_end(s, time_product(s, types[i], n));
}
