/* The report.  Its text is also the sign of progress: a class's name stands
 * there while it runs. */
#include "selftest_report.h"

#include "sundog.h"

#include <stdio.h>
#include <time.h>

void selftest_report_opens(const selftest_report *r)
{
    char date[32];
    time_t now = time(NULL);
    struct tm tm;

    gmtime_r(&now, &tm);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M", &tm);
    printf("sundog selftest of %s, build %s, %s UTC\n",
           r->device ? r->device : "the default device", tool_build, date);
}

void selftest_report_begins(const selftest_report *r, size_t i, size_t n)
{
    printf("[%2zu/%zu] %-17s", i + 1, n, r->class[r->n]->name);
    fflush(stdout);
}

static void print_lines(const selftest_page *p)
{
    int lines = 0;

    for (size_t i = 0; i < p->len;) {
        size_t n = strcspn(p->text + i, "\n");

        printf("        %.*s\n", (int)n, p->text + i);
        i += n + 1;
        lines++;
    }
    if (lines < p->nline)
        printf("        and %d more\n", p->nline - lines);
}

void selftest_report_ended(selftest_report *r)
{
    const selftest_page *p = &r->page[r->n];

    printf("%4d right", p->right);
    if (p->wrong)
        printf(", %d WRONG", p->wrong);
    if (p->refused)
        printf(", %d refused", p->refused);
    if (p->left)
        printf(", %d not run for lack of time", p->left);
    printf(" (%.1f s)\n", r->seconds[r->n]);
    r->n++;
    print_lines(p);
    fflush(stdout);
}

/* ---- the verdict ---- */

typedef struct {
    int right, wrong, refused, left;
    double seconds;
} sums;

static sums sum_of(const selftest_report *r)
{
    sums s = {0};

    for (size_t i = 0; i < r->n; i++) {
        const selftest_page *p = &r->page[i];

        s.right += p->right;
        s.wrong += p->wrong;
        s.refused += p->refused;
        s.left += p->left;
        s.seconds += r->seconds[i];
    }
    return s;
}

static const selftest_page *opened_page(const selftest_report *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->page[i].device[0])
            return &r->page[i];
    return NULL;
}

static void wrong_classes(const selftest_report *r, sd_buf *out)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->page[i].wrong)
            sd_buf_fmt(out, "%s%s", out->len ? "; " : "", r->class[i]->name);
    sd_buf_u8(out, 0);
}

bool selftest_report_ends(selftest_report *r)
{
    const selftest_page *d = opened_page(r);
    const char *device = d ? d->device : "this machine";
    sums s = sum_of(r);
    sd_buf names = {0};

    wrong_classes(r, &names);
    if (!r->opened)
        snprintf(r->verdict, sizeof r->verdict,
                 "verdict: NO DEVICE was opened");
    else if (s.wrong)
        snprintf(
            r->verdict, sizeof r->verdict,
            "verdict: WRONG on %s: %d of %d checks, %d refused, in %.0f s; "
            "wrong are: %s",
            d->device, s.wrong, s.wrong + s.right, s.refused, s.seconds,
            names.at ? names.at : "");
    else
        snprintf(r->verdict, sizeof r->verdict,
                 "verdict: right on %s: %d checks, %d refused, %d not run for "
                 "lack of time, in %.0f s",
                 device, s.right, s.refused, s.left, s.seconds);
    sd_buf_finish(&names);
    printf("%s\n", r->verdict);
    return r->opened && !s.wrong;
}

/* ---- JSON ---- */

static void add_string(sd_buf *b, const char *s, size_t n)
{
    sd_buf_u8(b, '"');
    for (size_t i = 0; i < n; i++)
        if (s[i] == '"' || s[i] == '\\')
            sd_buf_fmt(b, "\\%c", s[i]);
        else if (s[i] < ' ' || s[i] > '~')
            sd_buf_fmt(b, "\\u%04x", (unsigned char)s[i]);
        else
            sd_buf_u8(b, (uint8_t)s[i]);
    sd_buf_u8(b, '"');
}

static void add_member(sd_buf *b, const char *key, const char *s)
{
    sd_buf_fmt(b, "\"%s\": ", key);
    add_string(b, s, strlen(s));
}

static void add_class(sd_buf *b, const selftest_report *r, size_t i)
{
    const selftest_page *p = &r->page[i];

    sd_buf_str(b, i ? ",\n  {" : "\n  {");
    add_member(b, "name", r->class[i]->name);
    sd_buf_fmt(b,
               ", \"right\": %d, \"wrong\": %d, \"refused\": %d, "
               "\"not_run\": %d, \"seconds\": %.2f,\n   \"lines\": [",
               p->right, p->wrong, p->refused, p->left, r->seconds[i]);
    for (size_t at = 0; at < p->len;) {
        size_t n = strcspn(p->text + at, "\n");

        sd_buf_str(b, at ? ",\n    " : "\n    ");
        add_string(b, p->text + at, n);
        at += n + 1;
    }
    sd_buf_str(b, "],\n   \"figures\": [");
    for (int k = 0; k < p->nfigure; k++) {
        sd_buf_str(b, k ? ",\n    {" : "\n    {");
        add_member(b, "name", p->figure[k].name);
        sd_buf_str(b, ", ");
        add_member(b, "unit", p->figure[k].unit);
        sd_buf_fmt(b, ", \"value\": %.6g}", p->figure[k].value);
    }
    sd_buf_str(b, "]}");
}

sd_status selftest_report_json(const selftest_report *r, const char *path)
{
    const selftest_page *d = opened_page(r);
    sd_buf b = {0};
    sd_status st;

    sd_buf_str(&b, "{");
    add_member(&b, "build", tool_build);
    sd_buf_str(&b, ",\n ");
    add_member(&b, "device", d ? d->device : "");
    sd_buf_str(&b, ",\n ");
    add_member(&b, "driver", d ? d->driver : "");
    sd_buf_str(&b, ",\n ");
    add_member(&b, "verdict", r->verdict);
    sd_buf_str(&b, ",\n \"classes\": [");
    for (size_t i = 0; i < r->n; i++)
        add_class(&b, r, i);
    sd_buf_str(&b, "]}\n");
    st = b.oom ? sd_no_memory(b.len) : sd_file_write(path, b.at, b.len);
    sd_buf_finish(&b);
    return st;
}
