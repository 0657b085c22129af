/* Arenas: a pointer bumped through chunks that double in size.  Chunks come
 * from calloc, so what an arena hands out is zero without touching the pages
 * of a large one. */
#include "base.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_CHUNK ((size_t)16 << 10)
#define LAST_CHUNK  ((size_t)8 << 20)
#define MAX_CHUNK   ((size_t)1 << 39) /* what nobody means to ask for */

typedef struct chunk chunk;
struct chunk {
    chunk *next;
    size_t bytes;
};

struct sd_arena {
    uint8_t *at, *end;
    chunk *chunks;
    size_t next_bytes; /* of the next chunk */
};

#define CHUNK_HEAD ((sizeof(chunk) + 15) & ~(size_t)15)

void sd_oom(size_t bytes)
{
    fprintf(stderr, "sundog: host memory exhausted (%zu bytes asked)\n", bytes);
    abort();
}

sd_arena *sd_arena_create(void)
{
    sd_arena *a = sd_arena_create_try();

    if (!a)
        sd_oom(sizeof *a);
    return a;
}

sd_arena *sd_arena_create_try(void)
{
    sd_arena *a = calloc(1, sizeof *a);

    if (a)
        a->next_bytes = FIRST_CHUNK;
    return a;
}

void sd_arena_destroy(sd_arena *a)
{
    if (!a)
        return;
    for (chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(a);
}

/* A request larger than the next chunk gets one of its own, linked behind the
 * current one, so that the room left in that one is not lost. */
static void *alloc_slow(sd_arena *a, size_t bytes)
{
    bool own = bytes > a->next_bytes / 2;
    size_t body = own ? bytes : a->next_bytes;
    chunk *c;

    if (body > MAX_CHUNK)
        return NULL;
    c = calloc(1, CHUNK_HEAD + body);
    if (!c)
        return NULL;
    c->bytes = body;
    if (own && a->chunks) {
        c->next = a->chunks->next;
        a->chunks->next = c;
        return (uint8_t *)c + CHUNK_HEAD;
    }
    c->next = a->chunks;
    a->chunks = c;
    a->at = (uint8_t *)c + CHUNK_HEAD + bytes;
    a->end = (uint8_t *)c + CHUNK_HEAD + body;
    if (!own && a->next_bytes < LAST_CHUNK)
        a->next_bytes *= 2;
    return (uint8_t *)c + CHUNK_HEAD;
}

void *sd_arena_try(sd_arena *a, size_t bytes)
{
    size_t n;
    void *p;

    if (bytes > SIZE_MAX - 15)
        return NULL;
    n = bytes ? (bytes + 15) & ~(size_t)15 : 16;
    if (n > (size_t)(a->end - a->at))
        return alloc_slow(a, n);
    p = a->at;
    a->at += n;
    return p;
}

void *sd_arena_alloc(sd_arena *a, size_t bytes)
{
    void *p = sd_arena_try(a, bytes);

    if (!p)
        sd_oom(bytes);
    return p;
}

size_t sd_mul_or_die(size_t a, size_t b)
{
    size_t r;

    if (__builtin_mul_overflow(a, b, &r))
        sd_oom(SIZE_MAX);
    return r;
}

void *sd_arena_copy(sd_arena *a, const void *p, size_t bytes)
{
    void *q = sd_arena_alloc(a, bytes);

    if (bytes)
        memcpy(q, p, bytes);
    return q;
}

char *sd_arena_str(sd_arena *a, const char *s, size_t len)
{
    char *q;

    if (len == SIZE_MAX)
        sd_oom(len);
    q = sd_arena_alloc(a, len + 1);
    if (len)
        memcpy(q, s, len);
    return q;
}

char *sd_arena_fmt(sd_arena *a, const char *fmt, ...)
{
    va_list ap, again;
    char small[256], *q;
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0)
        n = 0, small[0] = 0;
    q = sd_arena_alloc(a, (size_t)n + 1);
    if ((size_t)n < sizeof small)
        memcpy(q, small, (size_t)n);
    else
        vsnprintf(q, (size_t)n + 1, fmt, again);
    va_end(again);
    return q;
}

bool sd_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;

    if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

bool sd_mul_size(size_t a, size_t b, size_t *out)
{
    size_t r;

    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

bool sd_add_size(size_t a, size_t b, size_t *out)
{
    size_t r;

    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

void *sd_vec_grow(sd_arena *a, void *at, int n, int *cap, size_t size)
{
    int want;
    void *grown;

    if (n < *cap)
        return at;
    if (n > INT32_MAX / 2)
        sd_oom(SIZE_MAX);
    want = n < 4 ? 8 : 2 * n;
    grown = sd_arena_alloc(a, sd_mul_or_die(size, (size_t)want));
    if (n)
        memcpy(grown, at, size * (size_t)n);
    *cap = want;
    return grown;
}
