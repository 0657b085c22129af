/* Programs of a few kilobytes with one mistake each: cut short at every byte,
 * and with every bit turned.  Each goes through compile and execute on the
 * host: it is refused, or it runs and its values are the evaluator's.  Never a
 * signal, never more than 2 GiB, never more than 10 s.
 *
 *   test_hostile STRIDE FOLDER     every STRIDE-th of them
 *
 * A saved program with any byte changed is refused by its sum.  Programs that
 * have become too large to evaluate are only compiled. */
#include "random.h"

#include "compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CPU_SECONDS = 10,
    EVALUATOR_SECONDS = 100,
    WALL_SECONDS = 900, /* the machine may be busy */
    MOST_BYTES = 4096,
    MOST_KILOBYTES = 2 << 20
};

typedef struct {
    const char *name, *format; /* NULL: a saved program */
    sd_buf bytes;
} artifact;

typedef struct { /* shared with the children */
    int64_t at;
    int64_t agree, refused, wrong;
} tally;

static void must(const char *what, sd_status st)
{
    if (!st)
        return;
    fprintf(stderr, "%s: %s\n", what, st->message);
    exit(1);
}

/* ---- artifacts ---- */

static void read_artifact(const char *folder, const char *name,
                          const char *format, artifact *a)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    a->name = name;
    a->format = format;
    must(path, sd_file_read(path, &a->bytes));
}

static void make_proto(const artifact *text, artifact *out)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m;

    must(text->name, hlo_parse(a, text->bytes.at, text->bytes.len, &m));
    out->name = "program.pb";
    out->format = "hlo";
    hlo_proto_write(&out->bytes, m, false, INT64_MAX);
    sd_arena_destroy(a);
}

/* Without the sections that PJRT is asked about: 4 kB are few. */
static void make_saved(artifact *out)
{
    static const char text[] = "HloModule m\nENTRY e { a = f32[8] parameter(0) "
                               "ROOT r = f32[8] negate(a) }";
    sd_options o = {0};
    device_desc dev;
    thunk_program *p;
    compile_services sv = {.env = &o};
    compile_request rq = {.program = {(const uint8_t *)text, sizeof text - 1},
                          .format = "hlo_text",
                          .format_len = strlen("hlo_text"),
                          .device = &dev};

    if (!device_desc_of_name("host:v3", &dev))
        exit(1);
    must("compile", sundog_compile(&rq, &sv, &p));
    p->nsection = 0;
    must("save", thunk_save(p, &out->bytes));
    thunk_program_release(p);
    out->name = "program.saved";
    out->format = NULL;
}

/* ---- mutants ---- */

static int64_t count_mutants(const artifact *a)
{
    return (int64_t)a->bytes.len * 9;
}

/* The first len are cut short, the others have a bit turned. */
static size_t mutate(const artifact *a, int64_t k, uint8_t *to)
{
    int64_t n = (int64_t)a->bytes.len;

    memcpy(to, a->bytes.at, a->bytes.len);
    if (k < n)
        return (size_t)k;
    k -= n;
    to[k / 8] = (uint8_t)(to[k / 8] ^ 1 << (k % 8));
    return a->bytes.len;
}

static void name_mutant(const artifact *a, int64_t k, sd_buf *b)
{
    int64_t n = (int64_t)a->bytes.len;

    if (k < n)
        sd_buf_fmt(b, "%s cut to %" PRId64 " bytes", a->name, k);
    else
        sd_buf_fmt(b, "%s with bit %" PRId64 " of byte %" PRId64 " turned",
                   a->name, (k - n) % 8, (k - n) / 8);
    sd_buf_u8(b, 0);
}

static void set_clock(int seconds)
{
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {.tv_sec = seconds}},
              NULL);
    alarm(WALL_SECONDS);
}

/* Compile and execute; the evaluator, which counts the turns of an endless
 * loop, gets more. */
static void restart_clock(void)
{
    set_clock(CPU_SECONDS);
}

static random_verdict run_saved(const uint8_t *at, size_t len, sd_buf *why)
{
    thunk_program *p;
    sd_status st = thunk_load((sd_bytes){at, len}, &p);

    if (st) {
        sd_status_free(st);
        return RANDOM_REFUSED;
    }
    sd_buf_str(why, "loaded");
    thunk_program_release(p);
    return RANDOM_WRONG;
}

static void run_mutant(const random_world *w, const artifact *a, tally *t)
{
    uint8_t data[MOST_BYTES];
    size_t len = mutate(a, t->at, data);
    random_program p = {.format = a->format,
                        .bytes = {data, len},
                        .relative = 1e-5,
                        .hostile = true,
                        .evaluated = restart_clock};
    sd_buf why = {0}, who = {0};
    random_verdict v = a->format ? random_run_program(w, &p, &why)
                                 : run_saved(data, len, &why);

    t->agree += v == RANDOM_AGREES;
    t->refused += v == RANDOM_REFUSED;
    t->wrong += v == RANDOM_WRONG;
    if (v == RANDOM_WRONG) {
        name_mutant(a, t->at, &who);
        printf("WRONG %s: %.*s\n", who.at, (int)why.len, why.at);
        fflush(stdout);
    }
    sd_buf_finish(&why);
    sd_buf_finish(&who);
}

/* Undamaged it runs, or loads. */
static sd_status check_whole(const artifact *a)
{
    random_program p = {.format = a->format,
                        .bytes = {(uint8_t *)a->bytes.at, a->bytes.len}};
    sd_buf why = {0};
    random_world w;
    thunk_program *t;
    sd_status st = NULL;

    if (!a->format) {
        if (!(st = thunk_load(p.bytes, &t)))
            thunk_program_release(t);
        return st;
    }
    must("host", random_world_open(&w, "host"));
    if (random_run_program(&w, &p, &why) != RANDOM_AGREES)
        st = sd_error(SD_INTERNAL, "%.*s", (int)why.len, why.at);
    sd_buf_finish(&why);
    random_world_close(&w);
    return st;
}

/* ---- children ---- */

static void child(const artifact *a, int64_t stride, tally *t)
{
    random_world w;

    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    must("host", random_world_open(&w, "host"));
    for (; t->at < count_mutants(a); t->at += stride) {
        set_clock(EVALUATOR_SECONDS);
        run_mutant(&w, a, t);
    }
    random_world_close(&w);
    exit(0);
}

static void report_death(const artifact *a, tally *t, int status,
                         const struct rusage *use)
{
    sd_buf who = {0};

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
        use->ru_maxrss <= MOST_KILOBYTES)
        return;
    t->wrong++;
    name_mutant(a, t->at, &who);
    printf("WRONG %s: %s %d, %ld MB\n", who.at,
           WIFEXITED(status) ? "exit" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
           use->ru_maxrss >> 10);
    sd_buf_finish(&who);
}

static int run_artifact(const artifact *a, int64_t stride)
{
    tally *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad;

    must(a->name, check_whole(a));
    if (t == MAP_FAILED || a->bytes.len > MOST_BYTES) {
        printf("%s: %zu bytes\n", a->name, a->bytes.len);
        return 1;
    }
    for (t->at = 0; t->at < count_mutants(a); t->at += stride) {
        struct rusage use;
        int status;
        pid_t p;

        fflush(stdout);
        p = fork();
        if (!p)
            child(a, stride, t);
        if (p < 0 || wait4(p, &status, 0, &use) != p)
            return 1;
        report_death(a, t, status, &use);
    }
    printf("%s, %zu bytes: %" PRId64 " run, %" PRId64 " refused, %" PRId64
           " wrong\n",
           a->name, a->bytes.len, t->agree, t->refused, t->wrong);
    bad = t->wrong != 0 || t->refused == 0;
    munmap(t, sizeof *t);
    return bad;
}

int main(int argc, char **argv)
{
    artifact all[5] = {0};
    int bad = 0;

    if (argc != 3) {
        fprintf(stderr, "usage: test_hostile STRIDE FOLDER\n");
        return 2;
    }
    sd_log_init();
    read_artifact(argv[2], "sort.mlirbc", "mlir", &all[0]);
    read_artifact(argv[2], "loop.mlir", "mlir", &all[1]);
    read_artifact(argv[2], "program.hlo", "hlo_text", &all[2]);
    make_proto(&all[2], &all[3]);
    make_saved(&all[4]);
    for (size_t i = 0; i < SD_COUNTOF(all); i++) {
        bad |= run_artifact(&all[i], SD_MAX(atoll(argv[1]), 1));
        sd_buf_finish(&all[i].bytes);
    }
    return bad;
}
