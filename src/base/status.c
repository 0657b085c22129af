/* Errors.  One that cannot be allocated becomes a static one, told apart by
 * having no place: each shared object has its own copy of it, and either must
 * recognise the other's. */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

static const sd_error no_memory = {.code = SD_EXHAUSTED,
                                   .message = (char *)"host memory exhausted"};

static bool is_static(const sd_error *st)
{
    return !st->where;
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
    struct iovec part[] = {{(char *)where, strlen(where)},
                           {"\t", 1},
                           {(char *)message, strlen(message) + 1}};
    int fd =
        path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;

    if (fd < 0)
        return;
    if (writev(fd, part, 3) < 0) /* at once: many append */
        sd_log(SD_LOG_WARN, "%s: %s", path, strerror(errno));
    close(fd);
#else
    (void)where, (void)message;
#endif
}

sd_status sd_no_memory(size_t bytes)
{
    (void)bytes; /* saying the number would need memory */
    record("src/base/status.c:0", no_memory.message);
    return (sd_status)&no_memory;
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
    sd_catch_error(st);
    return st;
}

sd_status sd_error_make(const char *where, sd_code code, const char *fmt, ...)
{
    va_list ap;
    char *s;

    va_start(ap, fmt);
    s = format(fmt, ap);
    va_end(ap);
    if (s)
        record(where, s);
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
    if (st->prev && (*st->prev = st->next))
        st->next->prev = st->prev;
    free(st->message);
    free(st);
}

sd_status sd_first(sd_status st, sd_status then)
{
    if (!st)
        return then;
    sd_status_free(then);
    return st;
}
