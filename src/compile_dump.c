#include "compile_dump.h"

#include "passes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every folder of the path; what exists is fine. */
static bool make_folders(const char *path)
{
    char *p = strdup(path);
    bool ok = p != NULL;

    for (char *s = p; ok && *s; s++) {
        if (*s != '/' || s == p)
            continue;
        *s = 0;
        ok = !mkdir(p, 0777) || errno == EEXIST;
        *s = '/';
    }
    ok = ok && (!mkdir(path, 0777) || errno == EEXIST);
    free(p);
    return ok;
}

/* The number after the highest one that files in the folder have. */
static int next_number(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int next = 0, n;

    while (d && (e = readdir(d)))
        if (sscanf(e->d_name, "module_%d.", &n) == 1 && n >= next)
            next = n + 1;
    if (d)
        closedir(d);
    return next;
}

/* Creates the first file of the dump, so that two compiles at once that chose
 * one number for one name do not meet. */
static bool reserve(compile_dump *d, const char *dir, const char *name)
{
    for (int i = next_number(dir), tries = 0; tries < 1000; i++, tries++) {
        char *path;
        int fd;

        if (asprintf(&d->prefix, "%s/module_%04d.%s", dir, i, name) < 0) {
            d->prefix = NULL;
            return false;
        }
        if (asprintf(&path, "%s.before_optimizations.txt", d->prefix) < 0)
            return false;
        fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0666);
        free(path);
        if (fd >= 0) {
            close(fd);
            return true;
        }
        free(d->prefix);
        d->prefix = NULL;
        if (errno != EEXIST)
            return false;
    }
    return false;
}

static bool read_expression(regex_t *r, const char *setting, const char *re)
{
    char why[80];
    int bad = regcomp(r, re, REG_EXTENDED | REG_NOSUB);

    if (!bad)
        return true;
    regerror(bad, r, why, sizeof why);
    sd_log(SD_LOG_WARN, "%s: %s is no extended regular expression: %s", setting,
           re, why);
    return false;
}

static bool matches(const char *re, const char *text)
{
    regex_t r;
    bool yes;

    if (!read_expression(&r, "SUNDOG_DUMP_MODULES", re))
        return false;
    yes = !regexec(&r, text, 0, NULL, 0);
    regfree(&r);
    return yes;
}

void compile_dump_open(compile_dump *d, const sd_options *o, const char *name)
{
    const char *dir = sd_opt_str(o, SD_OPT_DUMP_TO);
    const char *only = sd_opt_str(o, SD_OPT_DUMP_MODULES);
    const char *re = sd_opt_str(o, SD_OPT_DUMP_PASSES);

    if (!dir || (only && !matches(only, name)))
        return;
    if (!make_folders(dir) || !reserve(d, dir, name)) {
        sd_log(SD_LOG_WARN, "cannot dump to %s: %s", dir, strerror(errno));
        d->failed = true;
        return;
    }
    d->on = true;
    if (!re)
        return;
    d->has_pass_re = read_expression(&d->pass_re, "SUNDOG_DUMP_PASSES", re);
}

void compile_dump_close(compile_dump *d)
{
    if (d->has_pass_re)
        regfree(&d->pass_re);
    free(d->prefix);
    *d = (compile_dump){0};
}

void compile_dump_bytes(compile_dump *d, const char *kind, const void *p,
                        size_t n)
{
    char *path;
    sd_status st;

    if (!d->on || asprintf(&path, "%s.%s", d->prefix, kind) < 0)
        return;
    if ((st = sd_file_write(path, p, n))) { /* the rest would fail too */
        sd_log(SD_LOG_WARN, "dump: %s; nothing more of this module is dumped",
               st->message);
        sd_status_free(st);
        d->on = false;
        d->failed = true;
    }
    free(path);
}

/* A text has an arena of its own: the module's would keep those of all passes
 * until the compile ends, and they count towards its limit. */
void compile_dump_module(compile_dump *d, const char *kind, const hlo_module *m)
{
    sd_arena *a;
    sd_buf text = {0};

    if (!d->on)
        return;
    text.arena = a = sd_arena_create();
    hlo_print(&text, m);
    compile_dump_bytes(d, sd_arena_fmt(a, "%s.txt", kind), text.at, text.len);
    sd_arena_destroy(a);
}

void compile_dump_pass(compile_dump *d, const char *pass, const hlo_module *m)
{
    if (!strcmp(pass,
                HLO_LEFT_WRONG)) { /* whoever asks for any dump wants it */
        compile_dump_module(d, HLO_LEFT_WRONG, m);
        return;
    }
    if (!d->on || !d->has_pass_re || regexec(&d->pass_re, pass, 0, NULL, 0))
        return;
    compile_dump_module(
        d, sd_arena_fmt(m->arena, "%04d.after_%s", d->npass++, pass), m);
}

void compile_dump_plan(compile_dump *d, const plan *p)
{
    sd_arena *a;
    sd_buf text = {0};

    if (!d->on)
        return;
    text.arena = a = sd_arena_create();
    plan_print(&text, p);
    compile_dump_bytes(d, "plan.txt", text.at, text.len);
    sd_arena_destroy(a);
}

void compile_dump_thunks(compile_dump *d, const thunk_program *p)
{
    sd_buf text = {0};

    if (!d->on)
        return;
    thunk_print(&text, p);
    compile_dump_bytes(d, "thunk_sequence.txt", text.at, text.len);
    sd_buf_finish(&text);
}
