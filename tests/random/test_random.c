/* Random programs against the evaluator.
 *
 *   test_random DEVICE run FIRST COUNT    seeds FIRST .. FIRST + COUNT - 1
 *   test_random DEVICE apart FIRST COUNT  programs of narrow floats, operations
 *                                         sharing kernels and not: same bits
 *   test_random DEVICE odd FIRST COUNT    programs of any extents, compiled for
 *                                         a device that is described
 *   test_random DEVICE cases FOLDER       the programs kept there
 *   test_random DEVICE file FILE          one program; its text says why
 *   test_random DEVICE cut SEED|FILE      the least that fails, to stdout
 *   test_random DEVICE show SEED          show-apart, show-odd: of those
 *   test_random DEVICE cut-apart|cut-odd SEED|FILE
 *
 * For a DEVICE that is only described (host:v4) programs are compiled, not run.
 *
 * A stretch of programs runs in a child, under limits, so that a signal is one
 * program's failure; the next child goes on behind it. */
#include "random.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CPU_SECONDS = 20, WALL_SECONDS = 200, REASONS = 64, REASON_CHARS = 160 };

typedef struct { /* shared with the child */
    int64_t at;  /* the program that runs */
    int64_t agree, refused, wrong;
    struct {
        char text[REASON_CHARS];
        int count;
    } reason[REASONS];
} tally;

/* "dot of f8[3,4] ..." and "dot of f8[9]" are refused for the same reason. */
static void note_reason(tally *t, const char *why)
{
    char key[REASON_CHARS];
    size_t n = 0;
    int i = 0, inside = 0;

    for (; *why && n + 1 < sizeof key; why++) {
        inside += (*why == '[' || *why == '(') - (*why == ']' || *why == ')');
        if (inside == 0 && *why != ']' && *why != ')')
            key[n++] = *why;
    }
    key[n] = 0;
    while (i < REASONS - 1 && t->reason[i].count &&
           strcmp(t->reason[i].text, key))
        i++;
    memcpy(t->reason[i].text, key, n + 1);
    t->reason[i].count++;
}

static void count(tally *t, random_verdict v, const char *who, sd_buf *why)
{
    sd_buf_u8(why, 0);
    if (v == RANDOM_AGREES) {
        t->agree++;
    } else if (v == RANDOM_REFUSED) {
        t->refused++;
        note_reason(t, why->at);
    } else {
        t->wrong++;
        printf("WRONG %s: %s\n", who, why->at);
        fflush(stdout);
    }
}

/* ---- children ---- */

/* One program's time: its own, and what a busy machine may make of it. */
static void restart_clock(void)
{
    setitimer(ITIMER_PROF,
              &(struct itimerval){.it_value = {.tv_sec = CPU_SECONDS}}, NULL);
    alarm(WALL_SECONDS);
}

/* NVIDIA's driver reserves addresses for all memory that it could map. */
static void limit(const char *device)
{
#if !defined(__SANITIZE_ADDRESS__)
    struct rlimit r = {(rlim_t)8 << 30, (rlim_t)8 << 30};

    if (strcmp(device, "cuda"))
        setrlimit(RLIMIT_AS, &r);
#endif
    (void)device;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}

static random_world open_world(const char *device)
{
    random_world w;
    sd_status st = random_world_open(&w, device);

    if (st) {
        printf("no such device: %s\n", st->message);
        exit(77); /* skipped, says Meson */
    }
    return w;
}

/* What is made of a seed, and what is asked of it. */
typedef struct {
    hlo_module *(*make)(sd_arena *a, uint64_t seed, sd_buf *text);
    random_verdict (*run)(const random_world *w, const char *text, size_t len,
                          sd_buf *why);
} question;
static const question against_evaluator = {random_module, random_run};
static const question against_itself = {random_narrow, random_run_apart};
static const question of_odd_shapes = {random_odd_module, random_run_odd};

static void run_seed(const random_world *w, const question *q, uint64_t seed,
                     tally *t)
{
    sd_arena *a = sd_arena_create();
    sd_buf text = {0}, why = {0};
    char who[32];

    q->make(a, seed, &text);
    snprintf(who, sizeof who, "seed %" PRIu64, seed);
    count(t, q->run(w, text.at, text.len, &why), who, &why);
    sd_buf_finish(&text);
    sd_buf_finish(&why);
    sd_arena_destroy(a);
}

static void child(const char *device, const question *q, int64_t end, tally *t)
{
    random_world w;

    limit(device);
    w = open_world(device);
    for (; t->at < end; t->at++) {
        restart_clock();
        run_seed(&w, q, (uint64_t)t->at, t);
    }
    restart_clock();
    random_world_close(&w);
    exit(0);
}

/* What programs do that are right. */
static const char *right(const char *device)
{
    device_desc d;

    return device_desc_of_name(device, &d) ? "compile" : "agree";
}

static int run_seeds(const char *device, const question *q, int64_t first,
                     int64_t n)
{
    tally *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t end = first + n;

    if (t == MAP_FAILED)
        return 1;
    for (t->at = first; t->at < end; t->at++) {
        pid_t p;
        int status;

        fflush(stdout);
        p = fork();
        if (!p)
            child(device, q, end, t);
        if (p < 0 || waitpid(p, &status, 0) != p)
            return 1;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            return 77;
        if (!WIFEXITED(status) || WEXITSTATUS(status)) {
            t->wrong++;
            printf("WRONG seed %" PRId64 ": %s %d\n", t->at,
                   WIFEXITED(status) ? "exit" : "signal",
                   WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        }
    }
    printf("%s: %" PRId64 " programs from seed %" PRId64 ": %" PRId64
           " %s, %" PRId64 " refused, %" PRId64 " wrong\n",
           device, n, first, t->agree, right(device), t->refused, t->wrong);
    for (int i = 0; i < REASONS && t->reason[i].count; i++)
        printf("  %4d refused: %s\n", t->reason[i].count, t->reason[i].text);
    return t->wrong != 0;
}

/* ---- files ---- */

static bool read_text(const char *path, sd_buf *out)
{
    sd_status st = sd_file_read(path, out);

    if (!st)
        return true;
    fprintf(stderr, "%s\n", st->message);
    sd_status_free(st);
    return false;
}

static random_verdict run_file(const random_world *w, const char *path,
                               sd_buf *why)
{
    sd_buf text = {0};
    random_verdict v = RANDOM_WRONG;

    if (read_text(path, &text))
        v = random_run(w, text.at, text.len, why);
    sd_buf_finish(&text);
    return v;
}

static int run_one(const char *device, const char *path)
{
    static const char *const name[] = {"agrees", "refused", "wrong"};
    random_world w = open_world(device);
    sd_buf why = {0};
    random_verdict v = run_file(&w, path, &why);

    printf("%s: %.*s\n", name[v], (int)why.len, why.at ? why.at : "");
    sd_buf_finish(&why);
    random_world_close(&w);
    return v == RANDOM_WRONG;
}

static int run_cases(const char *device, const char *folder)
{
    random_world w = open_world(device);
    tally *t = calloc(1, sizeof *t);
    struct dirent *e;
    DIR *d = opendir(folder);

    while (d && t && (e = readdir(d))) {
        char path[4096];
        sd_buf why = {0};

        if (!strstr(e->d_name, ".hlo"))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        count(t, run_file(&w, path, &why), e->d_name, &why);
        sd_buf_finish(&why);
    }
    printf("%s: cases: %" PRId64 " %s, %" PRId64 " refused, %" PRId64
           " wrong\n",
           device, t->agree, right(device), t->refused, t->wrong);
    if (d)
        closedir(d);
    random_world_close(&w);
    int bad = t->wrong != 0 || t->agree == 0;

    free(t);
    return bad;
}

/* ---- cutting ---- */

typedef struct {
    const char *device;
    const question *q;
    int kind; /* how it failed: a signal's number, or -1 for a wrong value */
} failure;

/* Extents are cut as text, which may leave none. */
static bool is_program(const char *text, size_t len)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m;
    sd_status st = hlo_parse(a, text, len, &m);

    if (!st)
        st = hlo_verify(m);
    sd_arena_destroy(a);
    sd_status_free(st);
    return !st;
}

static int outcome(const char *device, const question *q, const char *text,
                   size_t len)
{
    pid_t p = fork();
    int status;

    if (!p) {
        random_world w;
        sd_buf why = {0};

        limit(device);
        if (!freopen("/dev/null", "w", stderr))
            exit(0);
        w = open_world(device);
        restart_clock();
        if (!is_program(text, len) ||
            q->run(&w, text, len, &why) != RANDOM_WRONG)
            exit(0);
        sd_buf_u8(&why, 0);
        /* values that differ, or a status */
        exit(strstr(why.at, ": result ") ? 1 : 2);
    }
    if (p < 0 || waitpid(p, &status, 0) != p)
        return 0;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : WTERMSIG(status);
}

static bool still_fails(void *ctx, const char *text, size_t len)
{
    const failure *f = ctx;

    return outcome(f->device, f->q, text, len) == f->kind;
}

static void seed_text(const question *q, const char *seed, sd_buf *text)
{
    sd_arena *a = sd_arena_create();

    q->make(a, strtoull(seed, NULL, 0), text);
    sd_arena_destroy(a);
}

static int cut(const char *device, const question *q, const char *what)
{
    sd_buf text = {0}, out = {0};
    failure f = {.device = device, .q = q};

    if (strspn(what, "0123456789") == strlen(what))
        seed_text(q, what, &text);
    else if (!read_text(what, &text))
        return 1;
    f.kind = outcome(device, q, text.at, text.len);
    if (!f.kind) {
        fprintf(stderr, "it does not fail\n");
        return 1;
    }
    random_cut(text.at, text.len, still_fails, &f, &out);
    fwrite(out.at, 1, out.len, stdout);
    sd_buf_finish(&text);
    sd_buf_finish(&out);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[2] : "";
    const question *q = strstr(what, "apart") ? &against_itself
                        : strstr(what, "odd") ? &of_odd_shapes
                                              : &against_evaluator;

    sd_log_init();
    if (argc == 5 && (!strcmp(what, "run") || !strcmp(what, "apart") ||
                      !strcmp(what, "odd")))
        return run_seeds(argv[1], q, atoll(argv[3]), atoll(argv[4]));
    if (argc == 4 && !strcmp(what, "cases"))
        return run_cases(argv[1], argv[3]);
    if (argc == 4 && !strcmp(what, "file"))
        return run_one(argv[1], argv[3]);
    if (argc == 4 && !strncmp(what, "cut", 3))
        return cut(argv[1], q, argv[3]);
    if (argc == 4 && !strncmp(what, "show", 4)) {
        sd_buf text = {0};

        seed_text(q, argv[3], &text);
        fwrite(text.at, 1, text.len, stdout);
        sd_buf_finish(&text);
        return 0;
    }
    fprintf(
        stderr,
        "usage: test_random DEVICE run|apart|odd FIRST COUNT | cases FOLDER "
        "| file FILE | cut[-apart|-odd] SEED|FILE | show[-apart|-odd] "
        "SEED\n");
    return 2;
}
