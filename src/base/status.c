/* Errors.  One that cannot be allocated becomes a static one, told apart by
 * having no place: each shared object has its own copy of it, and either must
 * recognise the other's. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const sd_error no_memory = {.code = SD_EXHAUSTED,
                                   .message = (char *)"host memory exhausted"};

static bool is_static(const sd_error *st)
{
    return !st->where;
}

sd_status sd_no_memory(size_t bytes)
{
    (void)bytes; /* saying the number would need memory */
    return (sd_status)&no_memory;
}

static char *format(const char *fmt, va_list ap)
{
    char *s;

    return vasprintf(&s, fmt, ap) < 0 ? NULL : s;
}

/* Builds with checks tell what tests produce: see tools/gen_errors.py. */
static void record(const char *where, const char *message)
{
#ifndef NDEBUG
    const char *path = getenv("SUNDOG_ERRORS_SEEN");
    int fd =
        path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    char *s;
    int n;

    if (fd < 0)
        return;
    n = asprintf(&s, "%s\t%s", where, message);
    if (n >= 0 && write(fd, s, (size_t)n + 1) < 0) /* one: many append */
        sd_log(SD_LOG_WARN, "%s: %s", path, strerror(errno));
    if (n >= 0)
        free(s);
    close(fd);
#else
    (void)where, (void)message;
#endif
}

static sd_status make(const char *where, sd_code code, char *message)
{
    sd_status st = message ? calloc(1, sizeof *st) : NULL;

    if (!st) {
        free(message);
        return sd_no_memory(sizeof *st);
    }
    st->code = code;
    st->message = message;
    st->where = where ? where : "";
    record(st->where, message);
    return st;
}

sd_status sd_error_make(const char *where, sd_code code, const char *fmt, ...)
{
    va_list ap;
    char *s;

    va_start(ap, fmt);
    s = format(fmt, ap);
    va_end(ap);
    return make(where, code, s);
}

sd_status sd_note(sd_status st, const char *fmt, ...)
{
    va_list ap;
    char *note, *whole;

    if (!st || is_static(st))
        return st;
    va_start(ap, fmt);
    note = format(fmt, ap);
    va_end(ap);
    if (note && asprintf(&whole, "%s: %s", note, st->message) >= 0) {
        free(st->message);
        st->message = whole;
    }
    free(note);
    return st;
}

sd_status sd_status_copy(const sd_error *st)
{
    if (!st)
        return NULL;
    if (is_static(st))
        return (sd_status)st;
    return make(st->where, st->code, strdup(st->message));
}

void sd_status_free(sd_status st)
{
    if (!st || is_static(st))
        return;
    free(st->message);
    free(st);
}
