/* The child's side: checks, what is noted of them, and a child's life. */
#include "selftest.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST_LINES = 16, MOST_WIDTH = 400 };

static void add_line(selftest_page *p, const char *fmt, va_list ap)
{
    char line[MOST_WIDTH];
    size_t n;

    if (p->nline++ >= MOST_LINES)
        return;
    vsnprintf(line, sizeof line, fmt, ap);
    for (char *c = line; *c; c++) /* what a driver said may have any bytes */
        if (*c < ' ' || *c > '~')
            *c = ' ';
    n = strlen(line);
    if (p->len + n + 2 > sizeof p->text)
        return;
    memcpy(p->text + p->len, line, n);
    p->text[p->len + n] = '\n';
    p->len += n + 1;
}

void selftest_say(selftest *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_line(s->page, fmt, ap);
    va_end(ap);
}

void selftest_note_figure(selftest *s, const char *name, const char *unit,
                          double value)
{
    selftest_page *p = s->page;
    selftest_figure *f = &p->figure[p->nfigure];

    if (p->nfigure == (int)SD_COUNTOF(p->figure))
        return;
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(f->unit, sizeof f->unit, "%s", unit);
    f->value = value;
    p->nfigure++;
}

bool selftest_begin(selftest *s, const char *fmt, ...)
{
    selftest_page *p = s->page;
    va_list ap;

    if (s->at++ < p->done)
        return false;
    if (sd_now_ns() > s->until) {
        p->left++;
        return false;
    }
    va_start(ap, fmt);
    vsnprintf(p->doing, sizeof p->doing, fmt, ap);
    va_end(ap);
    p->running = true;
    return true;
}

void selftest_end(selftest *s, sd_status st)
{
    selftest_page *p = s->page;

    p->done++;
    p->running = false;
    if (!st) {
        p->right++;
        return;
    }
    if (st->code == SD_UNIMPLEMENTED)
        p->refused++;
    else
        p->wrong++;
    selftest_say(s, "%s %s: %s",
                 st->code == SD_UNIMPLEMENTED ? "refused" : "WRONG", p->doing,
                 st->message);
    p->sick = st->code != SD_UNIMPLEMENTED && st->code != SD_DATA_LOSS;
    sd_status_free(st);
    if (p->sick)
        _exit(0);
}

static sd_status open_client(selftest *s)
{
    const device_desc *d;
    sd_status st = xpu_client_create(&s->options, &s->client);

    if (st)
        return st;
    s->device = xpu_client_device(s->client, 0);
    d = xpu_device_desc(s->device);
    snprintf(s->page->device, sizeof s->page->device, "%s", d->name);
    snprintf(s->page->driver, sizeof s->page->driver, "%s", d->driver);
    return NULL;
}

/* The parent may be killed; a child that it can no longer watch must not
 * stay. */
void selftest_child(selftest *s, const selftest_class *c)
{
    sd_status st;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    snprintf(s->page->doing, sizeof s->page->doing, "opening the device");
    s->page->running = true;
    if (c->opens && (st = open_client(s))) {
        s->at = s->page->done; /* it is nobody's check */
        s->page->ended = true;
        selftest_end(s, st);
    }
    s->page->running = false;
    c->run(s, c->programs);
    snprintf(s->page->doing, sizeof s->page->doing, "closing the device");
    if (s->client)
        xpu_client_destroy(s->client);
    s->page->ended = true;
    _exit(0);
}
