/* The caching allocator above a device's memory.  Fresh pages cost more than
 * most kernels, so memory goes back to the system only when much more is held
 * than was lately in use.
 *
 * Classes: multiples of 64 to 512 bytes, then four to each doubling.  Small
 * classes are cut from slabs, which stay; a large block is one piece of the
 * system's. */
#include "xpu_device.h"

#include <stdio.h>
#include <stdlib.h>

#define SMALL_MOST ((size_t)1 << 20)
#define SLAB_BYTES ((size_t)8 << 20)
#define HUGE_BYTES ((size_t)2 << 20)
#define WINDOW     4096 /* frees */
#define MISSES     32   /* of a block, until there is room for it */

enum { MOST_HOLDERS = 1 << 12, TOLD_HOLDERS = 5, HOLDER_SHIFT = 8 };
_Static_assert(XPU_CLASSES < 1 << HOLDER_SHIFT, "a tag holds a class");

/* Class 0 to 7: (cls + 1) * 64; then 512 * 1.25, 1.5, 1.75, 2, ... */
static size_t class_bytes(int cls)
{
    int k = cls - 8, shift = k / 4;

    if (cls < 8)
        return (size_t)(cls + 1) * 64;
    return ((size_t)5 + (size_t)(k % 4)) << (7 + shift);
}

static int class_of(size_t bytes)
{
    int top, quarter, cls;

    if (bytes <= 512)
        return bytes ? (int)((bytes - 1) / 64) : 0;
    top = 63 - __builtin_clzll(bytes - 1); /* 2^top < bytes <= 2^(top+1) */
    quarter = (int)((bytes - 1) >> (top - 2)) & 3;
    cls = 8 + (top - 9) * 4 + quarter;
    return cls;
}

/* What a block of the class really takes: big ones are whole huge pages. */
static size_t block_bytes(int cls)
{
    size_t n = class_bytes(cls);

    return n > HUGE_BYTES ? (n + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1) : n;
}

void xpu_cache_init(xpu_cache *c, xpu_device *d, xpu_memory mem, int64_t limit)
{
    memset(c, 0, sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    c->dev = d;
    c->mem = mem;
    c->stat.limit = limit;
}

static void to_system(xpu_cache *c, void *p, size_t bytes)
{
    c->dev->ops->free(c->dev, c->mem, p, bytes);
    c->stat.held -= (int64_t)bytes;
}

/* Gives cached large blocks back until `most` bytes are held, largest first. */
static void trim(xpu_cache *c, int64_t most)
{
    for (int i = XPU_CLASSES - 1; class_bytes(i) > SMALL_MOST; i--) {
        struct xpu_free_list *l = &c->list[i];

        while (l->n && c->stat.held > most) {
            to_system(c, l->at[--l->n], block_bytes(i));
            l->gone++;
        }
    }
}

void xpu_cache_finish(xpu_cache *c)
{
    if (!c->dev)
        return;
    trim(c, -1);
    for (struct xpu_slab *s = c->slab, *next; s; s = next) {
        next = s->next;
        to_system(c, s->at, s->bytes);
        free(s);
    }
    for (int i = 0; i < XPU_CLASSES; i++)
        free(c->list[i].at);
    free(c->holder);
    pthread_mutex_destroy(&c->lock);
}

/* ---- who holds large blocks ---- */

/* The holder's number; 0: not told apart. */
static int holder_of(xpu_cache *c, xpu_purpose use)
{
    char name[sizeof c->holder->name];
    int empty = 0;

    snprintf(name, sizeof name, "%s%s", use.what, use.of);
    for (int i = 1; i < c->nholder; i++) {
        if (!strcmp(c->holder[i].name, name))
            return i;
        if (!c->holder[i].bytes)
            empty = i;
    }
    if (!empty) {
        int n = c->nholder ? 2 * c->nholder : 16;
        struct xpu_holder *more =
            n <= MOST_HOLDERS ? realloc(c->holder, (size_t)n * sizeof *more)
                              : NULL;

        if (!more)
            return 0;
        empty = SD_MAX(c->nholder, 1);
        memset(more + c->nholder, 0, (size_t)(n - c->nholder) * sizeof *more);
        c->holder = more;
        c->nholder = n;
    }
    memcpy(c->holder[empty].name, name, sizeof name);
    return empty;
}

/* "; held by results of jit_step: 1024, ...": the TOLD_HOLDERS largest, in that
 * order: each round tells those that hold `most`, the next less than `below`.
 */
static void print_holders(sd_buf *b, const xpu_cache *c)
{
    int64_t below = INT64_MAX;

    for (int told = 0; told < TOLD_HOLDERS;) {
        int64_t most = 0;

        for (int i = 1; i < c->nholder; i++)
            if (c->holder[i].bytes < below)
                most = SD_MAX(most, c->holder[i].bytes);
        if (!most)
            return;
        for (int i = 1; i < c->nholder && told < TOLD_HOLDERS; i++)
            if (c->holder[i].bytes == most)
                sd_buf_fmt(b, "%s%s: %" PRId64, told++ ? ", " : "; held by ",
                           c->holder[i].name, most);
        below = most;
    }
}

/* why: the device's own words; NULL: the limit. */
static sd_status exhausted(const xpu_cache *c, size_t bytes, sd_status why)
{
    const char *name = c->dev->desc.name;
    sd_buf held = {0};
    sd_status st;

    print_holders(&held, c);
    if (why)
        st = sd_note(why,
                     "allocating %zu bytes on device %d (%s), in use %" PRId64
                     "%.*s",
                     bytes, c->dev->id, name, c->stat.in_use, (int)held.len,
                     held.len ? held.at : "");
    else
        st =
            sd_error(SD_EXHAUSTED,
                     "out of memory on device %d (%s): asked for %zu bytes; in "
                     "use %" PRId64 ", held %" PRId64 ", limit %" PRId64
                     ", largest allocation so far %" PRId64 "%.*s",
                     c->dev->id, name, bytes, c->stat.in_use, c->stat.held,
                     c->stat.limit, c->stat.largest, (int)held.len,
                     held.len ? held.at : "");
    sd_buf_finish(&held);
    return st;
}

/* ---- blocks ---- */

/* How much may be held where `more` bytes are about to be used: a quarter more
 * than the peak of the last windows, since a free block is of no use for a
 * request of another size, and up to half where what was given back is asked
 * for again and again, as a loop over arrays of many sizes does.  What slabs
 * have unused comes on top: they stay, and large blocks would go for them. */
static int64_t high_water(const xpu_cache *c, int64_t more)
{
    int64_t peak = SD_MAX(c->last_peak, c->window_peak);

    peak = SD_MAX(peak, c->stat.in_use + more);
    return peak + peak / 4 + SD_MIN(c->missed, peak / 4) + ((int64_t)64 << 20) +
           c->idle;
}

static sd_status from_system(xpu_cache *c, size_t bytes, void **out)
{
    const int64_t more = (int64_t)bytes;
    const int64_t rest[] = {high_water(c, more) - more, c->stat.limit - more,
                            -1};
    sd_status st = NULL;
    void *p = NULL;

    /* what lies here unused goes back where it is in the way */
    for (size_t i = 0; i < SD_COUNTOF(rest) && !p; i++) {
        trim(c, rest[i]);
        if (c->stat.held + more > c->stat.limit)
            continue;
        sd_status_free(st);
        if ((st = c->dev->ops->alloc(c->dev, c->mem, bytes, &p)))
            p = NULL;
    }
    if (!p)
        return exhausted(c, bytes, st);
    c->stat.held += more;
    c->stat.held_peak = SD_MAX(c->stat.held_peak, c->stat.held);
    *out = p;
    return NULL;
}

static sd_status cut_small(xpu_cache *c, size_t bytes, void **out)
{
    if ((size_t)(c->bump_end - c->bump) < bytes) {
        struct xpu_slab *s = malloc(sizeof *s);
        sd_status st;

        if (!s)
            return sd_no_memory(sizeof *s);
        if ((st = from_system(c, SLAB_BYTES, &s->at))) {
            free(s);
            return st;
        }
        s->bytes = SLAB_BYTES;
        s->next = c->slab;
        c->slab = s;
        c->idle += SLAB_BYTES;
        c->bump = s->at;
        c->bump_end = c->bump + SLAB_BYTES;
    }
    *out = c->bump;
    c->bump += bytes;
    return NULL;
}

/* A free block of the class, or of one up to half as large again. */
static void *take_free(xpu_cache *c, int *cls)
{
    int last = class_bytes(*cls) > SMALL_MOST ? *cls + 2 : *cls;

    for (int i = *cls; i <= last && i < XPU_CLASSES; i++)
        if (c->list[i].n) {
            *cls = i;
            return c->list[i].at[--c->list[i].n];
        }
    return NULL;
}

static sd_status find_block(xpu_cache *c, size_t bytes, void **out, int *cls)
{
    if (bytes > (size_t)1 << 48)
        return exhausted(c, bytes, NULL);
    *cls = class_of(bytes);
    if ((*out = take_free(c, cls)))
        return NULL;
    if (class_bytes(*cls) <= SMALL_MOST)
        return cut_small(c, class_bytes(*cls), out);
    if (c->list[*cls].gone) {
        c->list[*cls].gone--;
        c->missed += (int64_t)(block_bytes(*cls) / MISSES);
    }
    return from_system(c, block_bytes(*cls), out);
}

/* *tag: the class, and above it the holder. */
static sd_status take(xpu_cache *c, xpu_purpose use, size_t bytes, void **out,
                      int *tag)
{
    xpu_memory_stats *s = &c->stat;
    int cls = 0, holder = 0;
    sd_status st;
    void *p = NULL;

    pthread_mutex_lock(&c->lock);
    if (!(st = find_block(c, bytes, &p, &cls))) {
        int64_t n = (int64_t)class_bytes(cls);

        if (n <= (int64_t)SMALL_MOST)
            c->idle -= n;
        else if ((holder = holder_of(c, use)))
            c->holder[holder].bytes += n;
        *tag = holder << HOLDER_SHIFT | cls;
        s->in_use += n;
        s->allocs++;
        s->peak = SD_MAX(s->peak, s->in_use);
        s->largest = SD_MAX(s->largest, (int64_t)bytes);
        c->window_peak = SD_MAX(c->window_peak, s->in_use);
        *out = p;
    }
    pthread_mutex_unlock(&c->lock);
    return st;
}

/* False: no room to remember the block. */
static bool keep(struct xpu_free_list *l, void *p)
{
    if (l->n == l->cap) {
        int cap = l->cap ? l->cap * 2 : 16;
        void **at = realloc(l->at, (size_t)cap * sizeof *at);

        if (!at)
            return false;
        l->at = at;
        l->cap = cap;
    }
    l->at[l->n++] = p;
    return true;
}

static void give(xpu_cache *c, void *p, int tag)
{
    int cls = tag & ((1 << HOLDER_SHIFT) - 1), holder = tag >> HOLDER_SHIFT;
    int64_t n = (int64_t)class_bytes(cls), most;
    bool kept;

    pthread_mutex_lock(&c->lock);
    if (holder)
        c->holder[holder].bytes -= n;
    c->stat.in_use -= n;
    kept = keep(&c->list[cls], p);
    if (n <= (int64_t)SMALL_MOST)
        c->idle += n;
    else if (!kept)
        to_system(c, p, block_bytes(cls));
    if (++c->window == WINDOW) {
        c->window = 0;
        c->last_peak = c->window_peak;
        c->window_peak = c->stat.in_use;
        c->missed /= 2;
    }
    if (c->stat.held > (most = high_water(c, 0)))
        trim(c, most);
    pthread_mutex_unlock(&c->lock);
}

static xpu_cache *cache_of(xpu_device *d, xpu_memory mem)
{
    if (d->ops->shared_memory)
        return &d->cache[XPU_MEM_DEVICE];
    return &d->cache[mem == XPU_MEM_UNPINNED_HOST ? XPU_MEM_PINNED_HOST : mem];
}

sd_status xpu_memory_try(xpu_device *d, xpu_memory mem, xpu_purpose use,
                         size_t bytes, void **out, int *cls)
{
    return take(cache_of(d, mem), use, bytes, out, cls);
}

sd_status xpu_memory_alloc(xpu_device *d, xpu_memory mem, xpu_purpose use,
                           size_t bytes, void **out, int *cls)
{
    sd_status st = xpu_memory_try(d, mem, use, bytes, out, cls);

    if (!st || st->code != SD_EXHAUSTED || xpu_device_is_mine(d))
        return st;
    sd_status_free(st);
    (void)xpu_device_sync(d);
    return xpu_memory_try(d, mem, use, bytes, out, cls);
}

void xpu_memory_free(xpu_device *d, xpu_memory mem, void *p, int cls)
{
    give(cache_of(d, mem), p, cls);
}

/* A free block, or what the system may still give. */
static int64_t room(const xpu_cache *c)
{
    int64_t most = c->stat.limit - c->stat.held;

    for (int i = XPU_CLASSES - 1; i >= 0; i--)
        if (c->list[i].n)
            return SD_MAX(most, (int64_t)class_bytes(i));
    return most;
}

void xpu_device_stats(xpu_device *d, xpu_memory_stats *out)
{
    xpu_cache *c = cache_of(d, XPU_MEM_DEVICE);

    pthread_mutex_lock(&c->lock);
    *out = c->stat;
    out->room = room(c);
    pthread_mutex_unlock(&c->lock);
}

void xpu_device_clear_stats(xpu_device *d)
{
    xpu_cache *c = cache_of(d, XPU_MEM_DEVICE);

    pthread_mutex_lock(&c->lock);
    c->stat.peak = c->stat.in_use;
    c->stat.held_peak = c->stat.held;
    c->stat.allocs = 0;
    c->stat.largest = 0;
    pthread_mutex_unlock(&c->lock);
}

void xpu_memory_give_back(xpu_device *d)
{
    xpu_cache *c = cache_of(d, XPU_MEM_DEVICE);

    pthread_mutex_lock(&c->lock);
    trim(c, 0);
    pthread_mutex_unlock(&c->lock);
}
