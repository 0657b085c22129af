/* Compiles and executes from four threads at once and holds the process's
 * memory to its size after a warm-up.  usage: soak COMPILES EXECUTIONS */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "compile.h"
#include "xpu.h"

enum { THREADS = 4 };

static const char program[] = "HloModule soak\n"
                              "ENTRY main {\n"
                              "  x = f32[16,8]{1,0} parameter(0)\n"
                              "  y = f32[16,8]{1,0} multiply(x, x)\n"
                              "  ROOT z = f32[16,8]{1,0} exponential(y)\n"
                              "}\n";

typedef struct {
    xpu_client *client;
    thunk_program *built;
    int compiles, executions;
    sd_status st;
} job;

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

static sd_status execute_once(xpu_program *xp, xpu_buffer *x)
{
    xpu_call call = {.arg = &x, .narg = 1};
    xpu_buffer *out;
    xpu_event *done;
    sd_status st = xpu_execute(xp, &call, &out, &done);

    if (st)
        return st;
    st = xpu_event_wait(done);
    xpu_event_release(done);
    xpu_buffer_release(out);
    return st;
}

static void *work(void *arg)
{
    job *j = arg;
    xpu_device *d = xpu_client_device(j->client, 0);
    const int64_t dim[2] = {16, 8};
    float data[128] = {0.5f};
    xpu_program *xp = NULL;
    xpu_buffer *x = NULL;

    for (int i = 0; !j->st && i < j->compiles; i++) {
        thunk_program *p = NULL;

        j->st = compile_once(j->client, &p);
        thunk_program_release(p);
    }
    if (!j->st)
        j->st = xpu_program_load(d, j->built, &xp);
    if (!j->st)
        j->st = xpu_buffer_from_host(d, XPU_MEM_DEVICE, SD_F32, 2, dim, data,
                                     NULL, true, &x, NULL);
    for (int i = 0; !j->st && i < j->executions; i++)
        j->st = execute_once(xp, x);
    if (x)
        xpu_buffer_release(x);
    if (xp)
        xpu_program_release(xp);
    return NULL;
}

static sd_status round_of(xpu_client *c, thunk_program *p, int compiles,
                          int executions)
{
    pthread_t t[THREADS];
    job j[THREADS];
    sd_status st = NULL;

    for (int i = 0; i < THREADS; i++) {
        j[i] = (job){c, p, compiles / THREADS, executions / THREADS, NULL};
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

int main(int argc, char **argv)
{
    int compiles = argc > 1 ? atoi(argv[1]) : 40;
    int executions = argc > 2 ? atoi(argv[2]) : 4000;
    sd_options o = {0};
    xpu_client *c;
    thunk_program *p;
    long before, after;
    sd_status st;

    sd_log_init();
    sd_options_from_env(&o);
    if ((st = xpu_client_create(&o, &c)) || (st = compile_once(c, &p)) ||
        (st = round_of(c, p, SD_MAX(compiles / 4, 8), executions / 10)))
        goto fail;
    before = resident_bytes();
    if ((st = round_of(c, p, compiles, executions)))
        goto fail;
    after = resident_bytes();
    thunk_program_release(p);
    xpu_client_destroy(c);
    printf("%d compiles and %d executions from %d threads: resident memory "
           "%+ld KiB\n",
           compiles, executions, THREADS, (after - before) / 1024);
    return after - before > 16 << 20;
fail:
    fprintf(stderr, "soak: %s\n", st->message);
    return 1;
}
