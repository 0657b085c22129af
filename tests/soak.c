/* Eight threads compile, load, execute, transfer and delete at random; every
 * result is checked, and the process's memory is held to its size after a
 * warm-up (but not under a sanitizer, which keeps what is freed).
 * usage: soak COMPILES EXECUTIONS */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile.h"
#include "xpu.h"

enum { THREADS = 8, COUNT = 128, LARGE = 300000 };

static const char program[] = "HloModule soak\n"
                              "ENTRY main {\n"
                              "  x = f32[16,8]{1,0} parameter(0)\n"
                              "  y = f32[16,8]{1,0} multiply(x, x)\n"
                              "  ROOT z = f32[16,8]{1,0} exponential(y)\n"
                              "}\n";

typedef struct {
    xpu_client *client;
    thunk_program *built;
    const float *want; /* of data(0) */
    int compiles, executions;
    uint64_t seed;
    sd_status st;
} job;

static uint32_t roll(job *j, uint32_t n)
{
    j->seed = j->seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(j->seed >> 33) % n;
}

static void data(float *x)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)i / COUNT;
}

static long resident_bytes(void)
{
    long pages = 0, skip;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%ld %ld", &skip, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

static sd_status compile_once(xpu_client *c, thunk_program **out)
{
    compile_request rq = {
        .program = {(const uint8_t *)program, sizeof program - 1},
        .format = "hlo_text",
        .format_len = 8,
        .device = xpu_device_desc(xpu_client_device(c, 0)),
    };
    compile_services sv = {0};

    return sundog_compile(&rq, &sv, out);
}

static sd_status wrong(const char *what)
{
    return sd_error(SD_DATA_LOSS, "%s: a wrong result", what);
}

static sd_status fetch(xpu_buffer *b, void *to)
{
    xpu_event *done;
    sd_status st = xpu_buffer_to_host(b, 0, to, xpu_buffer_bytes(b), &done);

    if (st)
        return st;
    st = xpu_event_wait(done);
    xpu_event_release(done);
    return st;
}

static sd_status put(job *j, xpu_buffer **out)
{
    const int64_t dim[2] = {16, 8};
    float x[COUNT];

    data(x);
    return xpu_buffer_from_host(xpu_client_device(j->client, 0), XPU_MEM_DEVICE,
                                SD_F32, 2, dim, x, NULL, true, out, NULL);
}

/* Two runs, the second on the result of the first; arguments go early. */
static sd_status execute_once(job *j, xpu_program *xp)
{
    xpu_buffer *x, *y = NULL, *z = NULL;
    xpu_call call = {.arg = &x, .narg = 1}, next = {.arg = &y, .narg = 1};
    float got[COUNT];
    sd_status st = put(j, &x);

    if (st)
        return st;
    if (!(st = xpu_execute(xp, &call, &y, NULL))) {
        if (roll(j, 2))
            xpu_buffer_delete(x);
        if (!(st = xpu_execute(xp, &next, &z, NULL)) && !(st = fetch(y, got)) &&
            memcmp(got, j->want, sizeof got))
            st = wrong("execute");
        xpu_buffer_delete(y);
        if (!st && roll(j, 2))
            st = fetch(z, got);
    }
    xpu_buffer_release(x);
    xpu_buffer_release(y);
    xpu_buffer_release(z);
    return st;
}

/* Large ones travel on the transfer stream, small ones at once. */
static sd_status transfer_once(job *j)
{
    int64_t n = roll(j, 8) ? 100 : LARGE;
    float *x = malloc(2 * (size_t)n * sizeof *x), *got = x + n;
    xpu_device *d = xpu_client_device(j->client, 0);
    xpu_event *done = NULL;
    xpu_buffer *b, *c;
    sd_status st;

    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(i + j->compiles);
    st = xpu_buffer_from_host(d, XPU_MEM_DEVICE, SD_F32, 1, &n, x, NULL, false,
                              &b, &done);
    if (!st && !(st = xpu_buffer_copy(b, d, XPU_MEM_PINNED_HOST, &c))) {
        xpu_buffer_delete(b);
        if (!(st = fetch(c, got)) && memcmp(got, x, (size_t)n * sizeof *x))
            st = wrong("transfer");
        xpu_buffer_release(c);
    }
    if (done) {
        sd_status_free(xpu_event_wait(done)); /* x is read until then */
        xpu_event_release(done);
        xpu_buffer_release(b);
    }
    free(x);
    return st;
}

static sd_status compile_and_load(job *j, xpu_program **xp)
{
    thunk_program *p;
    sd_status st = compile_once(j->client, &p);

    if (st)
        return st;
    xpu_program_release(*xp);
    *xp = NULL;
    st = xpu_program_load(xpu_client_device(j->client, 0), p, xp);
    thunk_program_release(p);
    return st;
}

static void *work(void *arg)
{
    job *j = arg;
    xpu_program *xp = NULL;
    uint32_t all = (uint32_t)(j->compiles + j->executions);

    j->st = xpu_program_load(xpu_client_device(j->client, 0), j->built, &xp);
    for (uint32_t i = 0; !j->st && i < all; i++) {
        if (roll(j, all) < (uint32_t)j->compiles)
            j->st = compile_and_load(j, &xp);
        else if (roll(j, 8))
            j->st = execute_once(j, xp);
        else
            j->st = transfer_once(j);
    }
    xpu_program_release(xp);
    return NULL;
}

static sd_status round_of(xpu_client *c, thunk_program *p, const float *want,
                          int compiles, int executions)
{
    pthread_t t[THREADS];
    job j[THREADS];
    sd_status st = NULL;

    for (int i = 0; i < THREADS; i++) {
        j[i] = (job){c,
                     p,
                     want,
                     compiles / THREADS,
                     executions / THREADS,
                     (uint64_t)i + 1,
                     NULL};
        pthread_create(&t[i], NULL, work, &j[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        if (st)
            sd_status_free(j[i].st);
        else
            st = j[i].st;
    }
    return st;
}

/* What every later run must give, to the bit. */
static sd_status first_result(xpu_client *c, thunk_program *p, float *want)
{
    job j = {.client = c};
    xpu_program *xp;
    xpu_buffer *x, *y;
    xpu_call call = {.arg = &x, .narg = 1};
    sd_status st;

    if ((st = xpu_program_load(xpu_client_device(c, 0), p, &xp)))
        return st;
    if (!(st = put(&j, &x))) {
        if (!(st = xpu_execute(xp, &call, &y, NULL))) {
            st = fetch(y, want);
            xpu_buffer_release(y);
        }
        xpu_buffer_release(x);
    }
    xpu_program_release(xp);
    return st;
}

int main(int argc, char **argv)
{
    int compiles = argc > 1 ? atoi(argv[1]) : 40;
    int executions = argc > 2 ? atoi(argv[2]) : 4000;
    sd_options o = {0};
    xpu_client *c;
    thunk_program *p;
    float want[COUNT];
    long before, after;
    sd_status st;

    sd_log_init();
    sd_options_from_env(&o);
    if ((st = xpu_client_create(&o, &c)) || (st = compile_once(c, &p)) ||
        (st = first_result(c, p, want)) ||
        (st = round_of(c, p, want, SD_MAX(compiles / 4, 8), executions / 10)))
        goto fail;
    before = resident_bytes();
    if ((st = round_of(c, p, want, compiles, executions)))
        goto fail;
    after = resident_bytes();
    thunk_program_release(p);
    xpu_client_destroy(c);
    printf("%d compiles and %d executions from %d threads: resident memory "
           "%+ld KiB\n",
           compiles, executions, THREADS, (after - before) / 1024);
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
    return 0;
#else
    return after - before > 16 << 20;
#endif
fail:
    fprintf(stderr, "soak: %s\n", st->message);
    return 1;
}
