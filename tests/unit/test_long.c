/* Long programs: no stack is as deep as a program is long, and the time that
 * passes and plan take grows with the length and not with its square.
 *
 *   test_long [KIND...]             asserts both
 *   test_long --stack N [KIND...]   the first alone, where clocks say little
 *   test_long --time N,N [KIND...]  prints seconds, and where most of them go
 */
#include "passes.h"
#include "plan.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- programs ---- */

/* Between << and >>: n times, with $i for 1 to n and $h for the one before. */
typedef struct {
    const char *name, *text;
} kind;

static const kind kinds[] = {
#define KIND(NAME, TEXT) {NAME, TEXT},
#include "long_programs.def"
};

static int number(char name, int i, int n)
{
    switch (name) {
    case 'h':
        return i - 1;
    case 'i':
        return i;
    case 'j':
        return i + 1;
    case 'm':
        return n + 1;
    default:
        return n;
    }
}

static void expand(sd_buf *b, const char *s, const char *end, int i, int n)
{
    while (s < end) {
        const char *close = s[0] == '<' && s[1] == '<' ? strstr(s, ">>") : NULL;

        if (close) {
            for (int k = 1; k <= n; k++)
                expand(b, s + 2, close, k, n);
            s = close + 2;
        } else if (*s == '$') {
            sd_buf_fmt(b, "%d", number(s[1], i, n));
            s += 2;
        } else {
            sd_buf_add(b, s++, 1);
        }
    }
}

/* ---- where the time goes ---- */

typedef struct {
    const kind *kind;
    int n;
    double total, parse, plan, most, last;
    char most_name[32];
    bool ok;
} job;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What a pass that changes nothing takes is counted as the next one's. */
static void note_pass(void *ctx, const char *pass, const hlo_module *m)
{
    job *j = ctx;
    double t = now();

    (void)m;
    if (t - j->last > j->most) {
        j->most = t - j->last;
        snprintf(j->most_name, sizeof j->most_name, "%s", pass);
    }
    j->last = t;
}

static sd_status go(job *j, sd_arena *a, const sd_buf *text)
{
    device_desc dev;
    hlo_module *m;
    sd_status st;
    plan *p;
    double t = now();

    if (!device_desc_of_name("host:v3", &dev))
        return sd_error(SD_INTERNAL, "no host:v3");
    if ((st = hlo_parse(a, text->at, text->len, &m)))
        return st;
    j->last = now();
    j->parse = j->last - t;
    if ((st = hlo_optimize(m, &dev, NULL, note_pass, j)))
        return st;
    t = now();
    if ((st = plan_make(a, m, &dev, NULL, &p)))
        return st;
    j->plan = now() - t;
    plan_destroy(p);
    return NULL;
}

static void *run(void *ctx)
{
    job *j = ctx;
    sd_arena *a = sd_arena_create();
    const char *s = j->kind->text;
    sd_buf text = {0};
    sd_status st;

    expand(&text, s, s + strlen(s), 0, j->n);
    j->most = j->plan = 0;
    j->total = now();
    st = go(j, a, &text);
    j->total = now() - j->total;
    j->ok = !st;
    if (st)
        printf("%s of %d: %.200s\n", j->kind->name, j->n, st->message);
    sd_status_free(st);
    sd_buf_finish(&text);
    sd_arena_destroy(a);
    return NULL;
}

/* A stack that LONG calls do not fit in: 26 bytes each.  AddressSanitizer's
 * frames are larger, and its build runs 4,000, of 131 bytes each. */
#ifdef __SANITIZE_ADDRESS__
enum { STACK = 1 << 19 };
#else
enum { STACK = 1 << 18 };
#endif
enum { SHORT = 1000, LONG = 10000 };
/* The square would be 100 times; times below GRAIN are noise. */
static const double most_ratio = 50, grain = 0.02;

static bool run_apart(job *j)
{
    pthread_attr_t attr;
    pthread_t t;

    if (pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, STACK) ||
        pthread_create(&t, &attr, run, j) || pthread_join(t, NULL))
        return false;
    pthread_attr_destroy(&attr);
    return j->ok;
}

static bool fits(const kind *k, int n)
{
    job j = {.kind = k, .n = n};

    return run_apart(&j);
}

static bool is_linear(const kind *k)
{
    job x = {.kind = k, .n = SHORT}, y = {.kind = k, .n = LONG};

    for (int again = 0; again < 3; again++) {
        if (!run_apart(&x) || !run_apart(&y))
            return false;
        if (y.total <= most_ratio * SD_MAX(x.total, grain))
            return true;
    }
    printf("%s: %d take %.3f s, %d %.3f s, of that %s %.3f and plan %.3f\n",
           k->name, x.n, x.total, y.n, y.total, y.most_name, y.most, y.plan);
    return false;
}

static bool print_times(const kind *k, const char *sizes)
{
    bool ok = true;

    for (const char *s = sizes; s && *s; s = strchr(s, ',')) {
        job j = {.kind = k};

        s += *s == ',';
        j.n = atoi(s);
        ok &= run_apart(&j);
        printf("%-16s %7d %8.3f s: parse %.3f, plan %.3f, %s %.3f\n", k->name,
               j.n, j.total, j.parse, j.plan, j.most_name, j.most);
        fflush(stdout);
    }
    return ok;
}

static bool is_wanted(const char *name, char **list)
{
    bool any = *list != NULL;

    for (; *list; list++)
        if (!strcmp(name, *list))
            return true;
    return !any;
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 && argv[1][0] == '-' ? argv[1] : "";
    char **list = argv + (*how ? 3 : 1);
    int bad = 0, ran = 0;

    for (size_t i = 0; i < SD_COUNTOF(kinds); i++) {
        const kind *k = &kinds[i];

        if (!is_wanted(k->name, list))
            continue;
        ran++;
        bad += !(!strcmp(how, "--time")    ? print_times(k, argv[2])
                 : !strcmp(how, "--stack") ? fits(k, atoi(argv[2]))
                                           : is_linear(k));
    }
    printf("%d kinds, %d bad\n", ran, bad);
    return bad || !ran;
}
