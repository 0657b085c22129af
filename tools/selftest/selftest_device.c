/* What a device is beside arithmetic: which there are, copies, donation, memory
 * that runs out, runs of several threads. */
#include "selftest.h"

#include "sundog.h"

#include "pjrt_abi.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- which there are ---- */

/* The first line of a file that begins so, from its value on. */
static bool line_of(const char *path, const char *begin, char *out, int size)
{
    FILE *f = fopen(path, "r");
    bool found = false;

    while (f && !found && fgets(out, size, f))
        found = !strncmp(out, begin, strlen(begin));
    if (f)
        fclose(f);
    out[found ? strcspn(out, "\n") : 0] = 0;
    return found;
}

static void say_machine(selftest *s)
{
    char cpu[256] = "", nvidia[256];
    const char *name;
    struct utsname u;

    uname(&u);
    line_of("/proc/cpuinfo", "model name", cpu, sizeof cpu);
    name = strstr(cpu, ": ");
    selftest_say(s, "machine: %s, %d threads, %.1f GiB, %s %s",
                 name ? name + 2 : u.machine, sd_cpu_count(),
                 (double)sd_memory_size() / 0x1p30, u.sysname, u.release);
    if (line_of("/proc/driver/nvidia/version", "NVRM", nvidia, sizeof nvidia))
        selftest_say(s, "driver: %s", nvidia);
}

static void say_device(selftest *s, xpu_device *d, int i)
{
    const device_desc *k = xpu_device_desc(d);
    xpu_memory_stats m;

    xpu_device_stats(d, &m);
    selftest_say(
        s,
        "device %s, %d: %s; %d units, groups of %d, local %zu B, cache "
        "%.1f MiB, memory %.1f GiB%s%s",
        k->name, i, k->driver, k->units, k->group, k->local_bytes,
        (double)k->cache_bytes / 0x1p20, (double)m.limit / 0x1p30,
        k->features & DEVICE_HAS_F64 ? ", f64" : "",
        k->features & DEVICE_HAS_F16 ? ", f16" : "");
}

/* A driver may end the process that asks it: each is asked by one of its own,
 * whose exit status says whether there was a device. */
static void ask(selftest *s, const char *kind)
{
    pid_t p = fork();
    int status = 0;

    if (!p) {
        sd_status st;

        alarm(5);
        s->options.value[SD_OPT_DEVICE] = kind;
        if (!(st = xpu_client_create(&s->options, &s->client)))
            for (int i = 0; i < xpu_client_count(s->client); i++)
                say_device(s, xpu_client_device(s->client, i), i);
        else
            selftest_say(s, "not taken, %s: %s", kind, st->message);
        _exit(0);
    }
    if (p < 0 || waitpid(p, &status, 0) != p)
        return;
    if (WIFSIGNALED(status))
        selftest_say(s, "not taken, %s: its driver %s", kind,
                     WTERMSIG(status) == SIGALRM ? "does not answer in 5 s"
                                                 : strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status))
        selftest_say(s,
                     "not taken, %s: its driver ends the process, exit status "
                     "%d",
                     kind, WEXITSTATUS(status));
}

/* What frameworks load: everything else here is this tool's own. */
static sd_status open_plugin(selftest *s)
{
    const PJRT_Api *(*entry)(void) = NULL;
    char path[PATH_MAX];
    void *lib;

    tool_library("libsundog.so", path, sizeof path);
    if ((lib = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
        *(void **)&entry = dlsym(lib, "GetPjrtApi");
    if (!entry)
        return sd_error(SD_NOT_FOUND, "%s", dlerror());
    selftest_say(s, "plugin: libsundog.so, PJRT C API %d.%d",
                 entry()->pjrt_api_version.major_version,
                 entry()->pjrt_api_version.minor_version);
    return NULL;
}

/* Which the programs of this process get, and why not others. */
void selftest_devices(selftest *s, const char *text)
{
    (void)text;
    if (selftest_begin(s, "devices")) {
        say_machine(s);
        for (int k = 0; k < DEVICE_KIND_COUNT; k++)
            ask(s, device_kind_table[k].name);
        selftest_end(s, NULL);
    }
    if (selftest_begin(s, "the plugin"))
        selftest_end(s, open_plugin(s));
}

/* ---- copies ---- */

static void fill_bytes(uint8_t *p, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        p[i] = (uint8_t)(seed >> 56);
    }
}

static sd_status same(const void *got, const void *want, size_t n,
                      const char *what)
{
    const uint8_t *x = got, *y = want;

    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i])
            return sd_error(SD_DATA_LOSS, "%s: byte %zu of %zu is %d, not %d",
                            what, i, n, x[i], y[i]);
    return NULL;
}

/* There, to another place there and from each back; a part of it from an odd
 * place too. */
static sd_status round_trip(selftest *s, int64_t n)
{
    uint8_t *data = malloc((size_t)n + 1), *back = malloc((size_t)n + 1);
    xpu_buffer *b = NULL, *c = NULL;
    xpu_event *done = NULL;
    sd_status st = data && back ? NULL : sd_no_memory((size_t)n);

    if (st)
        goto out;
    fill_bytes(data, n, (uint64_t)n);
    if ((st = selftest_give(s, SD_U8, 1, &n, data, &b)) ||
        (st = selftest_take(b, back)) ||
        (st = same(back, data, (size_t)n, "to the device and back")))
        goto out;
    if ((st = xpu_buffer_copy(b, s->device, XPU_MEM_DEVICE, &c)))
        goto out;
    memset(back, 0, (size_t)n);
    if ((st = selftest_take(c, back)) ||
        (st = same(back, data, (size_t)n, "copied on the device")) || n < 8)
        goto out;
    memset(back, 0, (size_t)n);
    if (!(st = xpu_buffer_to_host(b, 3, back, (size_t)n - 7, &done)) &&
        !(st = selftest_wait(done)))
        st = same(back, data + 3, (size_t)n - 7, "a part of it");
out:
    if (b)
        xpu_buffer_release(b);
    if (c)
        xpu_buffer_release(c);
    free(data);
    free(back);
    return st;
}

/* Rows that lie apart, and columns as rows. */
static sd_status strided(selftest *s)
{
    enum { R = 37, C = 53 };
    static const int64_t dim[] = {C, R}, strides[] = {4, 4 * C};
    static float data[R * C], want[C * R], got[C * R];
    xpu_buffer *b;
    sd_status st;

    for (int i = 0; i < R * C; i++)
        data[i] = (float)i;
    for (int i = 0; i < R; i++)
        for (int j = 0; j < C; j++)
            want[j * R + i] = data[i * C + j];
    st = xpu_buffer_from_host(s->device, XPU_MEM_DEVICE, SD_F32, 2, dim, data,
                              strides, true, &b, NULL);
    if (st)
        return st;
    st = selftest_take(b, got);
    xpu_buffer_release(b);
    return st ? st : same(got, want, sizeof got, "transposed on its way");
}

void selftest_transfers(selftest *s, const char *text)
{
    static const int64_t sizes[] = {0,     1,      3,       7,       63,
                                    64,    65,     4095,    4097,    65535,
                                    65536, 262147, 1048573, 8388611, 33554435};

    (void)text;
    for (size_t i = 0; i < SD_COUNTOF(sizes); i++)
        if (selftest_begin(s, "%" PRId64 " bytes", sizes[i]))
            selftest_end(s, round_trip(s, sizes[i]));
    if (selftest_begin(s, "columns as rows"))
        selftest_end(s, strided(s));
}

/* ---- donation ---- */

enum { COUNT = 4099 };

static void fill_floats(float *x, float from)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = from + (float)i;
}

static const char donating[] =
    "HloModule donating, input_output_alias={ {}: (0, {}, may-alias) }\n"
    "ENTRY main {\n"
    "  x = f32[4099] parameter(0)\n"
    "  one = f32[] constant(1)\n"
    "  ones = f32[4099] broadcast(one), dimensions={}\n"
    "  ROOT y = f32[4099] add(x, ones)\n"
    "}\n";

/* The result of each step is the argument of the next, and gone then. */
static sd_status take_steps(xpu_program *x, int n, const bool *keep,
                            xpu_buffer **b)
{
    sd_status st = NULL;

    for (int i = 0; i < n && !st; i++) {
        xpu_call call = {.arg = b, .narg = 1, .keep = keep};
        xpu_buffer *next;
        xpu_event *done;

        if ((st = xpu_execute(x, &call, &next, &done)))
            break;
        st = selftest_wait(done);
        if (!st && xpu_buffer_is_deleted(*b) != !keep)
            st = sd_error(SD_DATA_LOSS, "step %d: the argument %s", i,
                          keep ? "was given away" : "was kept");
        xpu_buffer_release(*b);
        *b = next;
    }
    return st;
}

/* What is to be kept keeps its value. */
static sd_status donate(selftest *s, bool hold)
{
    enum { STEPS = 20 };
    static const bool keep = true;
    float data[COUNT], want[COUNT], got[COUNT];
    const int64_t n = COUNT;
    xpu_buffer *b, *first;
    xpu_program *x;
    sd_status st;

    fill_floats(data, 0);
    fill_floats(want, STEPS);
    if ((st = selftest_load(s, donating, &x)))
        return st;
    if ((st = selftest_give(s, SD_F32, 1, &n, data, &b)))
        goto out;
    first = xpu_buffer_retain(b);
    if (!(st = take_steps(x, STEPS, hold ? &keep : NULL, &b)) &&
        !(st = selftest_take(b, got)))
        st = same(got, want, sizeof got, "after 20 steps");
    if (!st && hold && !(st = selftest_take(first, got)))
        st = same(got, data, sizeof got, "what was kept");
    xpu_buffer_release(first);
    xpu_buffer_release(b);
out:
    xpu_program_release(x);
    return st;
}

void selftest_donation(selftest *s, const char *text)
{
    (void)text;
    if (selftest_begin(s, "an argument that is given away"))
        selftest_end(s, donate(s, false));
    if (selftest_begin(s, "an argument that is to be kept"))
        selftest_end(s, donate(s, true));
}

/* ---- memory that runs out ---- */

static sd_status wants_error(sd_status st)
{
    if (!st)
        return sd_error(SD_DATA_LOSS, "more memory than there is was given");
    if (st->code == SD_EXHAUSTED) {
        sd_status_free(st);
        return NULL;
    }
    return sd_note(st, "another error than that memory is exhausted");
}

static int64_t memory_limit(selftest *s)
{
    xpu_memory_stats m;

    xpu_device_stats(s->device, &m);
    return m.limit;
}

static sd_status ask_for(selftest *s, int64_t bytes)
{
    xpu_buffer *b = NULL;
    sd_status st =
        xpu_buffer_alloc(s->device, XPU_MEM_DEVICE, SD_U8, 1, &bytes, &b);

    if (!st)
        xpu_buffer_release(b);
    return wants_error(st);
}

/* A program whose result does not fit. */
static sd_status run_too_large(selftest *s)
{
    char text[256];
    xpu_buffer *out = NULL;
    xpu_program *x;
    sd_status st;

    snprintf(text, sizeof text,
             "HloModule large\nENTRY main {\n  x = s8[] parameter(0)\n"
             "  ROOT y = s8[%" PRId64 "] broadcast(x), dimensions={}\n}\n",
             memory_limit(s) + ((int64_t)1 << 30));
    if (!(st = selftest_load(s, text, &x))) {
        int8_t one = 1;
        xpu_buffer *in;

        if (!(st = selftest_give(s, SD_S8, 0, NULL, &one, &in))) {
            st = selftest_execute(x, 1, &in, &out);
            xpu_buffer_release(in);
        }
        xpu_program_release(x);
    }
    return wants_error(st);
}

/* Until there is no more; only where memory is a card's own: a computer that is
 * made to give all of its memory does other work no more. */
static sd_status fill_up(selftest *s)
{
    enum { MOST = 64 };
    int64_t bytes = memory_limit(s) / 16;
    xpu_buffer *b[MOST];
    sd_status st = NULL;
    int n = 0;

    while (n < MOST && !(st = xpu_buffer_alloc(s->device, XPU_MEM_DEVICE, SD_U8,
                                               1, &bytes, &b[n])))
        n++;
    for (int i = 0; i < n; i++)
        xpu_buffer_release(b[i]);
    return wants_error(st);
}

static bool has_own_memory(const device_desc *d)
{
    return d->kind != DEVICE_HOST && strcmp(d->name, "cl:cpu") != 0;
}

void selftest_memory(selftest *s, const char *text)
{
    (void)text;
    if (selftest_begin(s, "a buffer larger than the memory"))
        selftest_end(s, ask_for(s, memory_limit(s) + ((int64_t)1 << 30)));
    if (selftest_begin(s, "a result larger than the memory"))
        selftest_end(s, run_too_large(s));
    if (has_own_memory(xpu_device_desc(s->device)) &&
        selftest_begin(s, "buffers until there is no more"))
        selftest_end(s, fill_up(s));
    if (selftest_begin(s, "a run after memory was exhausted"))
        selftest_end(s, donate(s, false));
}

/* ---- several threads ---- */

static const char adding[] = "HloModule adding\n"
                             "ENTRY main {\n"
                             "  x = f32[4099] parameter(0)\n"
                             "  y = f32[4099] multiply(x, x)\n"
                             "  ROOT z = f32[4099] add(y, x)\n"
                             "}\n";

typedef struct {
    selftest *s;
    xpu_program *x;
    int number, turns;
    sd_status st;
} worker;

static void *work(void *ctx)
{
    worker *w = ctx;
    float data[COUNT], want[COUNT], got[COUNT];
    const int64_t n = COUNT;

    fill_floats(data, (float)w->number);
    for (int i = 0; i < COUNT; i++)
        want[i] = data[i] * data[i] + data[i];
    for (int i = 0; i < w->turns && !w->st; i++) {
        xpu_buffer *in, *out = NULL;

        if ((w->st = selftest_give(w->s, SD_F32, 1, &n, data, &in)))
            break;
        if (!(w->st = selftest_execute(w->x, 1, &in, &out)) &&
            !(w->st = selftest_take(out, got)))
            w->st = same(got, want, sizeof got, "one of several runs at once");
        xpu_buffer_release(in);
        if (out)
            xpu_buffer_release(out);
    }
    return NULL;
}

static sd_status run_threads(selftest *s, int turns)
{
    enum { THREADS = 8 };
    worker w[THREADS] = {0};
    pthread_t t[THREADS];
    sd_status st;
    int n = 0;

    if ((st = selftest_load(s, adding, &w[0].x)))
        return st;
    for (; n < THREADS; n++) {
        w[n] = (worker){s, w[0].x, n, turns, NULL};
        if (sd_thread_start(&t[n], "selftest", work, &w[n]))
            break;
    }
    for (int i = 0; i < n; i++) {
        pthread_join(t[i], NULL);
        st = sd_first(st, w[i].st);
    }
    xpu_program_release(w[0].x);
    return st;
}

void selftest_concurrent(selftest *s, const char *text)
{
    (void)text;
    if (selftest_begin(s, "8 threads, 20 runs each"))
        selftest_end(s, run_threads(s, 20));
    if (!s->quick && selftest_begin(s, "8 threads, 200 runs each"))
        selftest_end(s, run_threads(s, 200));
}
