/* sundog selftest: the parent.  It computes nothing itself: a child a class,
 * watched; what the children leave in shared memory is the report. */
#include "selftest.h"

#include "selftest_programs.h"
#include "selftest_report.h"
#include "sundog.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FULL_SECONDS = 115, QUICK_SECONDS = 19, MOST_CHILDREN = 12 };

static const selftest_class classes[] = {
#define CLASS(name, full, quick, opens, fn, programs) \
    {name, full, quick, opens, selftest_##fn, programs},
#include "classes.def"
#undef CLASS
};

static const char *text_of(const char *name)
{
    for (size_t i = 0; name && i < SD_COUNTOF(selftest_text); i++)
        if (!strcmp(selftest_text[i].name, name))
            return selftest_text[i].text;
    return NULL;
}

/* ---- one child ---- */

static void sleep_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* False: it did not end in time, and was killed.  One that a driver holds in
 * the kernel does not die: it is left behind. */
static bool await(pid_t p, uint64_t until, int *status)
{
    bool killed = false;
    pid_t got;

    while ((got = waitpid(p, status, WNOHANG)) == 0 ||
           (got < 0 && errno == EINTR)) {
        if (sd_now_ns() > until + (killed ? 3000000000u : 0)) {
            if (killed)
                break;
            kill(p, SIGKILL);
            killed = true;
        }
        sleep_a_little();
    }
    return !killed;
}

/* What a child could not say itself.  A busy machine may take long to compile a
 * check, which tells nothing of the device. */
static void note_death(selftest *s, bool in_time, int status)
{
    selftest_page *p = s->page;

    if (!in_time && p->here) {
        selftest_say(s,
                     "not run %s: this machine was not done compiling it and "
                     "computing what is right",
                     p->doing);
        p->left++;
        return;
    }
    if (!in_time)
        selftest_say(s, "WRONG %s: no answer in time, killed", p->doing);
    else if (WIFSIGNALED(status))
        selftest_say(s, "WRONG %s: the process died, %s", p->doing,
                     strsignal(WTERMSIG(status)));
    else
        selftest_say(s, "WRONG %s: the process ended, exit status %d", p->doing,
                     WEXITSTATUS(status));
    p->wrong++;
    p->done++;
    p->running = false;
}

/* Children until one ends by itself, or the class's time does. */
static void run_class(selftest *s, const selftest_class *c, uint64_t end)
{
    uint64_t grace = s->quick ? 4000000000u : 10000000000u;
    selftest_class with_text = *c;

    with_text.programs = text_of(c->programs);
    s->until = SD_MIN(
        end, sd_now_ns() + (uint64_t)((s->quick ? c->quick : c->full) * 1e9));
    for (int i = 0; i < MOST_CHILDREN && !s->page->ended; i++) {
        int status = 0;
        bool in_time;
        pid_t p;

        if (sd_now_ns() > end) {
            s->page->left++;
            return;
        }
        s->page->left = 0;
        s->page->sick = s->page->here = false;
        fflush(stdout);
        if (!(p = fork()))
            selftest_child(s, &with_text);
        if (p < 0) {
            selftest_say(s, "WRONG fork: %s", strerror(errno));
            s->page->wrong++;
            return;
        }
        in_time = await(p, s->until + grace, &status);
        if (!s->page->ended && !s->page->sick)
            note_death(s, in_time, status);
        if (!in_time)
            return;
    }
}

/* ---- the classes that --only names ---- */

/* The list's first word, without blanks before it; what is behind it. */
static const char *next_word(const char *only, char *word, size_t size)
{
    only += strspn(only, " ");
    snprintf(word, size, "%.*s", (int)strcspn(only, ","), only);
    only += strcspn(only, ",");
    return only + (*only == ',');
}

/* Does a word of the list stand in the name? */
static bool is_named(const char *only, const char *name)
{
    char word[32];

    while (*only) {
        only = next_word(only, word, sizeof word);
        if (*word && strstr(name, word))
            return true;
    }
    return false;
}

static bool is_class(const char *word)
{
    for (size_t i = 0; *word && i < SD_COUNTOF(classes); i++)
        if (strstr(classes[i].name, word))
            return true;
    return false;
}

/* Is every word of the list a class's?  A list without words would check
 * nothing and call that right. */
static sd_status check_only(const char *only)
{
    sd_buf names = {0};
    char word[32];
    sd_status st = NULL;

    for (size_t i = 0; i < SD_COUNTOF(classes); i++)
        sd_buf_fmt(&names, "%s%s", i ? "; " : "", classes[i].name);
    sd_buf_u8(&names, 0);
    do {
        only = next_word(only, word, sizeof word);
        if (!is_class(word))
            st = sd_error(SD_NOT_FOUND,
                          "--only: no class is called '%s'; there are %s", word,
                          names.at);
    } while (!st && *only);
    sd_buf_finish(&names);
    return st;
}

/* ---- all ---- */

/* Without a device nothing else can be found out. */
static bool run_classes(selftest *s, selftest_report *r, const char *only)
{
    uint64_t end =
        sd_now_ns() + (s->quick ? QUICK_SECONDS : FULL_SECONDS) * 1000000000ull;
    bool opened = false;

    for (size_t i = 0; i < SD_COUNTOF(classes); i++) {
        uint64_t start = sd_now_ns();

        if (only && !is_named(only, classes[i].name))
            continue;
        s->page = &r->page[r->n];
        s->at = 0;
        r->class[r->n] = &classes[i];
        selftest_report_begins(r, i, SD_COUNTOF(classes));
        run_class(s, &classes[i], end);
        r->seconds[r->n] = (double)(sd_now_ns() - start) * 1e-9;
        selftest_report_ended(r);
        opened |= s->page->device[0] != 0;
        if (classes[i].opens && !opened)
            return false;
    }
    return true;
}

sd_status tool_selftest(const tool_args *t)
{
    selftest s = {.quick = t->quick};
    size_t bytes = SD_COUNTOF(classes) * sizeof(selftest_page);
    const selftest_class *class[SD_COUNTOF(classes)];
    double seconds[SD_COUNTOF(classes)];
    selftest_report r = {.class = class,
                         .seconds = seconds,
                         .device = t->nfile ? t->file[0] : NULL};
    sd_status st;

    sd_options_from_env(&s.options);
    if (t->nfile)
        s.options.value[SD_OPT_DEVICE] = t->file[0];
    sd_options_warn();
    if ((st = sd_options_check(&s.options)) ||
        (st = t->only ? check_only(t->only) : NULL) ||
        (st = t->json ? sd_file_write(t->json, "", 0) : NULL) ||
        (st = tool_compiler(&s.compile)))
        return st;
    r.page = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r.page == MAP_FAILED)
        return sd_no_memory(bytes);
    selftest_report_opens(&r);
    r.opened = run_classes(&s, &r, t->only);
    *t->bad = !selftest_report_ends(&r);
    if (t->json)
        st = selftest_report_json(&r, t->json);
    munmap(r.page, bytes);
    return st;
}
