/* Arenas: a pointer bumped through chunks that double in size.  Chunks come
 * from calloc, so what an arena hands out is zero without touching the pages
 * of a large one.
 *
 * The compile rooms ask without looking back, hundreds of times a module.  When
 * there is no more, sd_oom jumps to the thread's innermost sd_catch_oom, which
 * knows the arenas that were made inside. */
#include "base.h"

#include <setjmp.h>
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

typedef struct catcher catcher;

struct sd_arena {
    uint8_t *at, *end;
    chunk *chunks;
    size_t next_bytes; /* of the next chunk */
    catcher *catcher;  /* NULL: none; else in its list */
    sd_arena *next, **prev;
};

struct catcher {
    jmp_buf back;
    catcher *outer;
    sd_arena *arenas;
    sd_error *errors;
    size_t held, most; /* bytes of their chunks; most 0: any */
    size_t asked;      /* what could not be had */
    const sd_stop *stop; /* borrowed; NULL: nobody ends it */
    bool stopped;
};

static _Thread_local catcher *current;

#define CHUNK_HEAD ((sizeof(chunk) + 15) & ~(size_t)15)

/* ---- arenas that a catcher knows ---- */

static void link_to(sd_arena *a, catcher *c)
{
    a->catcher = c;
    if (!c)
        return;
    a->next = c->arenas;
    a->prev = &c->arenas;
    if (a->next)
        a->next->prev = &a->next;
    c->arenas = a;
}

static void unlink_from(sd_arena *a)
{
    if (!a->catcher)
        return;
    *a->prev = a->next;
    if (a->next)
        a->next->prev = a->prev;
    a->catcher = NULL;
}

static void link_error(sd_error *st, catcher *c)
{
    st->prev = c ? &c->errors : NULL;
    st->next = c ? c->errors : NULL;
    if (st->next)
        st->next->prev = &st->next;
    if (c)
        c->errors = st;
}

void sd_catch_error(sd_status st)
{
    link_error(st, current);
}

/* What an inner catcher's arenas hold, the outer ones' hold too. */
static bool may_hold(const sd_arena *a, size_t bytes)
{
    for (const catcher *c = a->catcher; c; c = c->outer)
        if (c->most && bytes > c->most - SD_MIN(c->held, c->most))
            return false;
    return true;
}

static void count(const sd_arena *a, size_t more, size_t less)
{
    for (catcher *c = a->catcher; c; c = c->outer)
        c->held += more - less;
}

void sd_oom(size_t bytes)
{
    if (current) {
        current->asked = bytes;
        longjmp(current->back, 1);
    }
    fprintf(stderr, "sundog: host memory exhausted (%zu bytes asked)\n", bytes);
    abort();
}

/* ---- work that is to end ---- */

const sd_stop *sd_stop_current(void)
{
    return current ? current->stop : NULL;
}

static bool is_stopped(const catcher *c)
{
    return c && c->stop && c->stop->asked(c->stop->ctx);
}

static sd_status stopped(void)
{
    return sd_error(SD_CANCELLED, "interrupted (SIGINT): ended before it was "
                                  "done");
}

sd_status sd_stopped(void)
{
    return is_stopped(current) ? stopped() : NULL;
}

static void leave_if_stopped(void)
{
    if (!is_stopped(current))
        return;
    current->stopped = true;
    longjmp(current->back, 1);
}

static sd_status caught(const catcher *c)
{
    if (c->stopped)
        return stopped();
    if (c->most && c->asked < SIZE_MAX - c->held &&
        c->held + c->asked > c->most)
        return sd_error(SD_EXHAUSTED,
                        "host memory: %zu bytes more than the %zu held would "
                        "be over the limit of %zu",
                        c->asked, c->held, c->most);
    return sd_error(SD_EXHAUSTED,
                    "host memory exhausted: asked for %zu bytes, %zu held",
                    c->asked, c->held);
}

sd_status sd_catch_oom(sd_status (*fn)(void *ctx), void *ctx)
{
    return sd_catch(sd_stop_current(), 0, fn, ctx);
}

sd_status sd_catch(const sd_stop *stop, size_t most, sd_status (*fn)(void *ctx),
                   void *ctx)
{
    catcher c = {.outer = current, .most = most, .stop = stop};
    sd_status st;

    current = &c;
    if (setjmp(c.back)) {
        current = c.outer;
        while (c.errors)
            sd_status_free(c.errors);
        st = caught(&c);
        while (c.arenas)
            sd_arena_destroy(c.arenas);
        return st;
    }
    st = fn(ctx);
    current = c.outer;
    for (sd_arena *a = c.arenas, *next; a; a = next) { /* these live on */
        next = a->next;
        link_to(a, c.outer);
    }
    for (sd_error *e = c.errors, *next; e; e = next) {
        next = e->next;
        link_error(e, c.outer);
    }
    return st;
}

/* ---- arenas ---- */

sd_arena *sd_arena_create(void)
{
    sd_arena *a = sd_arena_create_try();

    if (!a)
        sd_oom(sizeof *a);
    link_to(a, current);
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
        count(a, 0, c->bytes);
        free(c);
    }
    unlink_from(a);
    free(a);
}

/* A request larger than the next chunk gets one of its own, linked behind the
 * current one, so that the room left in that one is not lost. */
static void *alloc_slow(sd_arena *a, size_t bytes)
{
    bool own = bytes > a->next_bytes / 2;
    size_t body = own ? bytes : a->next_bytes;
    chunk *c;

    if (a->catcher)
        leave_if_stopped();
    if (body > MAX_CHUNK || !may_hold(a, body))
        return NULL;
    c = calloc(1, CHUNK_HEAD + body);
    if (!c)
        return NULL;
    c->bytes = body;
    count(a, body, 0);
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

/* The rest of a chunk stays zero. */
static bool was_last(const sd_arena *a, const void *at, size_t bytes)
{
    return at && bytes &&
           (const uint8_t *)at + ((bytes + 15) & ~(size_t)15) == a->at;
}

void *sd_arena_grow(sd_arena *a, void *at, size_t had, size_t bytes)
{
    void *p;

    if (was_last(a, at, had) && bytes >= had &&
        bytes <= (size_t)(a->end - (uint8_t *)at)) {
        a->at = (uint8_t *)at + ((bytes + 15) & ~(size_t)15);
        return at;
    }
    p = sd_arena_alloc(a, bytes);
    if (had)
        memcpy(p, at, had);
    return p;
}

void sd_arena_drop(sd_arena *a, void *at, size_t bytes)
{
    if (!was_last(a, at, bytes))
        return;
    memset(at, 0, bytes);
    a->at = at;
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

char *sd_arena_vfmt(sd_arena *a, const char *fmt, va_list ap)
{
    char small[256], *q;
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(small, sizeof small, fmt, ap);
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

char *sd_arena_fmt(sd_arena *a, const char *fmt, ...)
{
    va_list ap;
    char *q;

    va_start(ap, fmt);
    q = sd_arena_vfmt(a, fmt, ap);
    va_end(ap);
    return q;
}

int64_t sd_gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
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
