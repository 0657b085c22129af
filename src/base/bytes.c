/* Bytes read (cursor) and written (builder), and whole files. */
#include "base.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- cursor ---- */

sd_cursor sd_cursor_of(sd_bytes b)
{
    static const uint8_t none;
    const uint8_t *at = b.at ? b.at : &none;

    return (sd_cursor){.base = at, .at = at, .end = at + (b.at ? b.len : 0)};
}

/* What follows a failure reads as zeros because nothing is left. */
void sd_cursor_fail(sd_cursor *c, const char *expected)
{
    if (!c->bad) {
        c->bad = expected;
        c->bad_at = (size_t)(c->at - c->base);
    }
    c->at = c->end;
}

static uint64_t read_le(sd_cursor *c, unsigned n, const char *what)
{
    uint64_t v = 0;

    if (sd_cursor_left(c) < n) {
        sd_cursor_fail(c, what);
        return 0;
    }
    for (unsigned i = 0; i < n; i++)
        v |= (uint64_t)c->at[i] << (8 * i);
    c->at += n;
    return v;
}

uint8_t sd_read_u8(sd_cursor *c)
{
    return (uint8_t)read_le(c, 1, "a byte");
}

uint32_t sd_read_u32(sd_cursor *c)
{
    return (uint32_t)read_le(c, 4, "a 32-bit number");
}

uint64_t sd_read_u64(sd_cursor *c)
{
    return read_le(c, 8, "a 64-bit number");
}

sd_bytes sd_read_bytes(sd_cursor *c, uint64_t n)
{
    sd_bytes b = {c->at, 0};

    if (n > sd_cursor_left(c)) {
        sd_cursor_fail(c, "more bytes");
        return b;
    }
    b.len = (size_t)n;
    c->at += n;
    return b;
}

uint64_t sd_read_leb(sd_cursor *c)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t b = (uint8_t)read_le(c, 1, "a varint");

        if (shift == 63 && b > 1)
            break;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80))
            return v;
    }
    sd_cursor_fail(c, "a varint of at most 64 bits");
    return 0;
}

sd_status sd_cursor_status(const sd_cursor *c, const char *what)
{
    if (!c->bad)
        return NULL;
    return sd_error(SD_INVALID, "%s: expected %s at offset %zu", what, c->bad,
                    c->bad_at);
}

/* ---- builder ---- */

static bool reserve(sd_buf *b, size_t more)
{
    size_t need, cap;
    char *at;

    if (b->oom)
        return false;
    if (!sd_add_size(b->len, more, &need) || !sd_add_size(need, 1, &need))
        goto fail;
    if (need <= b->cap)
        return true;
    cap = b->cap < 64 ? 64 : b->cap;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : 2 * cap;
    at = b->arena ? sd_arena_grow(b->arena, b->at, b->cap, cap)
                  : realloc(b->at, cap);
    if (!at)
        goto fail;
    b->at = at;
    b->cap = cap;
    return true;
fail:
    b->oom = true;
    return false;
}

/* at[len] is always a NUL, so that text can be read as a string. */
void sd_buf_add(sd_buf *b, const void *p, size_t n)
{
    if (!reserve(b, n))
        return;
    if (n)
        memcpy(b->at + b->len, p, n);
    b->len += n;
    b->at[b->len] = 0;
}

void sd_buf_str(sd_buf *b, const char *s)
{
    sd_buf_add(b, s, strlen(s));
}

void sd_buf_vfmt(sd_buf *b, const char *fmt, va_list ap)
{
    va_list again;
    int n;

    if (!reserve(b, 64))
        return;
    va_copy(again, ap);
    n = vsnprintf(b->at + b->len, b->cap - b->len, fmt, ap);
    if (n > 0 && (size_t)n >= b->cap - b->len && reserve(b, (size_t)n))
        vsnprintf(b->at + b->len, b->cap - b->len, fmt, again);
    va_end(again);
    if (n > 0 && !b->oom)
        b->len += (size_t)n;
    b->at[b->len] = 0;
}

void sd_buf_fmt(sd_buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    sd_buf_vfmt(b, fmt, ap);
    va_end(ap);
}

void sd_buf_ints(sd_buf *b, const int64_t *at, int64_t n, const char *between)
{
    for (int64_t i = 0; i < n; i++)
        sd_buf_fmt(b, "%s%" PRId64, i ? between : "", at[i]);
}

void sd_buf_u8(sd_buf *b, uint8_t v)
{
    sd_buf_add(b, &v, 1);
}

void sd_buf_u32(sd_buf *b, uint32_t v)
{
    uint8_t le[4];

    for (unsigned i = 0; i < 4; i++)
        le[i] = (uint8_t)(v >> (8 * i));
    sd_buf_add(b, le, 4);
}

void sd_buf_u64(sd_buf *b, uint64_t v)
{
    uint8_t le[8];

    for (unsigned i = 0; i < 8; i++)
        le[i] = (uint8_t)(v >> (8 * i));
    sd_buf_add(b, le, 8);
}

void sd_buf_leb(sd_buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        sd_buf_u8(b, (uint8_t)(v | 0x80));
    sd_buf_u8(b, (uint8_t)v);
}

void sd_buf_finish(sd_buf *b)
{
    if (b->arena)
        sd_arena_drop(b->arena, b->at, b->cap);
    else
        free(b->at);
    *b = (sd_buf){.arena = b->arena};
}

char *sd_buf_take(sd_buf *b)
{
    char *at;

    assert(b->arena);
    sd_buf_add(b, "", 0);
    at = b->at;
    *b = (sd_buf){.arena = b->arena};
    return at;
}

/* ---- files ---- */

sd_status sd_file_read(const char *path, sd_buf *out)
{
    sd_buf b = {0};
    sd_status st = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;

    if (fd < 0)
        return sd_error(errno == ENOENT ? SD_NOT_FOUND : SD_INVALID,
                        "cannot open %s: %s", path, strerror(errno));
    while (reserve(&b, (size_t)64 << 10)) {
        n = read(fd, b.at + b.len, b.cap - b.len - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        b.len += (size_t)n;
    }
    if (b.oom)
        st = sd_no_memory(b.len);
    else if (n < 0)
        st = sd_error(SD_INVALID, "reading %s: %s", path, strerror(errno));
    close(fd);
    if (st) {
        sd_buf_finish(&b);
        return st;
    }
    b.at[b.len] = 0;
    *out = b;
    return NULL;
}

sd_status sd_file_write(const char *path, const void *p, size_t n)
{
    const char *at = p;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int error = 0;

    if (fd < 0)
        return sd_error(SD_INVALID, "cannot create %s: %s", path,
                        strerror(errno));
    while (n && !error) {
        ssize_t k = write(fd, at, n);

        if (k < 0)
            error = errno == EINTR ? 0 : errno;
        else
            at += k, n -= (size_t)k;
    }
    if (close(fd) && !error)
        error = errno;
    return error ? sd_error(SD_INVALID, "writing %s: %s", path, strerror(error))
                 : NULL;
}
