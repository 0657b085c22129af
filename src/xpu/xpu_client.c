/* The client: which devices there are, and what they share. */
#include "xpu_elf.h"
#include "xpu_far.h"
#include "xpu_interrupt.h"

#include <stdio.h>
#include <stdlib.h>

sd_status xpu_client_add(xpu_client *c, const xpu_device_ops *ops,
                         xpu_device **out)
{
    xpu_device **more = realloc(c->dev, ((size_t)c->ndev + 1) * sizeof *more);
    xpu_device *d = calloc(1, sizeof *d);
    char name[32];

    if (more)
        c->dev = more;
    if (!more || !d) {
        free(d);
        return sd_no_memory(sizeof *d);
    }
    d->filled = xpu_ops_filled(ops);
    d->ops = &d->filled;
    d->client = c;
    d->id = c->ndev;
    snprintf(name, sizeof name, "xpu%d", d->id);
    xpu_stream_init(&d->compute, name);
    snprintf(name, sizeof name, "xpu%d-copy", d->id);
    xpu_stream_init(&d->transfer, name);
    snprintf(name, sizeof name, "xpu%d-done", d->id);
    xpu_stream_init(&d->done, name);
    snprintf(name, sizeof name, "xpu%d-lent", d->id);
    xpu_stream_init(&d->lender, name);
    xpu_flights_init(&d->flights);
    pthread_mutex_init(&d->launch_lock, NULL);
    c->dev[c->ndev++] = d;
    *out = d;
    return NULL;
}

static sd_status make_shared(xpu_client *c, const sd_options *opt)
{
    c->nthread = (int)sd_opt_int(opt, SD_OPT_THREADS);
    if (!c->nthread)
        c->nthread = sd_cpu_count();
    c->perf_map = sd_opt_bool(opt, SD_OPT_PERF_MAP) && xpu_perf_map_opens();
    c->interrupts = sd_opt_bool(opt, SD_OPT_INTERRUPTS);
    if (!(c->ready = xpu_event_create()))
        return sd_no_memory(0);
    xpu_event_set(c->ready, NULL);
    return sd_pool_create(c->nthread, &c->pool);
}

static void finish_device(xpu_device *d)
{
    bool left = xpu_stream_is_left_behind(&d->done);

    xpu_stream_finish(&d->compute);
    xpu_stream_finish(&d->transfer);
    xpu_stream_finish(&d->done);
    xpu_stream_finish(&d->lender);
    if (!left) /* a condition with waiters cannot be destroyed */
        xpu_flights_finish(&d->flights);
    for (int m = 0; m < XPU_MEM_COUNT; m++)
        xpu_cache_finish(&d->cache[m]);
    d->ops->close(d);
    pthread_mutex_destroy(&d->launch_lock);
    free(d);
}

/* A stream's tasks may push to other streams' (callbacks do): all are drained
 * before any thread is joined. */
static void stop_devices(xpu_client *c)
{
    for (int i = 0; i < c->ndev; i++)
        (void)xpu_device_sync(c->dev[i]);
    for (int i = 0; i < c->ndev; i++) {
        xpu_stream_stop(&c->dev[i]->compute);
        xpu_stream_stop(&c->dev[i]->transfer);
        xpu_flight_drain(c->dev[i]);
        xpu_stream_stop(&c->dev[i]->lender);
    }
    for (int i = 0; i < c->ndev; i++)
        xpu_stream_stop(&c->dev[i]->done);
    xpu_ffi_stop(c);
}

static void close_devices(xpu_client *c)
{
    stop_devices(c);
    xpu_ffi_finish(c);
    for (int i = 0; i < c->ndev; i++)
        finish_device(c->dev[i]);
    c->ndev = 0;
    if (c->driver_close)
        c->driver_close(c->driver);
    c->driver_close = NULL;
}

/* NULL: devices of that kind cannot be opened. */
static sd_status (*const open_kind[])(xpu_client *c, const sd_options *opt,
                                      bool chosen) = {
#define OPEN(f) xpu_##f##_open
#define NONE    NULL
#define DEVICE_KIND(id, name, title, open, code, flops, bytes, launch, meet, \
                    beside, library) \
    [DEVICE_##id] = open,
#include "device_kinds.def"
#undef DEVICE_KIND
#undef NONE
#undef OPEN
};

/* That there is no GPU is no news, unless its library was named; that one fails
 * is. */
static void leave_alone(const device_kind_info *k, const sd_options *opt,
                        sd_status st)
{
    bool named = k->library < SD_OPT_COUNT && sd_opt_str(opt, k->library);

    if (st->code != SD_NOT_FOUND)
        sd_log(SD_LOG_WARN, "the %s is left alone, another device is used: %s",
               k->title, st->message);
    else if (named)
        sd_log(SD_LOG_WARN,
               "no %s, another device is used: %s; name the library of one, or "
               "unset %s",
               k->title, st->message, sd_option_table[k->library].name);
    else
        sd_log(SD_LOG_INFO, "no %s: %s", k->title, st->message);
    sd_status_free(st);
}

/* Of numbers of devices that are asked for of another kind than is used. */
static void warn_of_numbers(device_kind used, const sd_options *opt)
{
    static const struct {
        sd_option number;
        device_kind kind;
    } row[] = {{SD_OPT_HOST_DEVICES, DEVICE_HOST},
               {SD_OPT_CL_SPLIT, DEVICE_CL}};

    for (size_t i = 0; i < SD_COUNTOF(row); i++) {
        int64_t n = sd_opt_int(opt, row[i].number);
        const char *kind = device_kind_table[row[i].kind].name;

        if (n > 1 && row[i].kind != used)
            sd_log(SD_LOG_WARN,
                   "%s=%" PRId64 " is for %s devices: the %s is used; "
                   "SUNDOG_DEVICE=%s asks for them",
                   sd_option_table[row[i].number].name, n, kind,
                   device_kind_table[used].title, kind);
    }
}

/* A GPU when there is one, else the host. */
static sd_status open_any(xpu_client *c, const sd_options *opt)
{
    sd_status st = NULL;
    int k = DEVICE_KIND_COUNT;

    while (--k >= DEVICE_HOST) {
        if (!open_kind[k])
            continue;
        if (!(st = open_kind[k](c, opt, false)))
            warn_of_numbers((device_kind)k, opt);
        if (!st || k == DEVICE_HOST)
            break;
        close_devices(c);
        leave_alone(&device_kind_table[k], opt, st);
    }
    return st;
}

static sd_status open_devices(xpu_client *c, const sd_options *opt)
{
    const char *which = sd_opt_str(opt, SD_OPT_DEVICE);

    for (int k = 0; k < DEVICE_KIND_COUNT; k++)
        if (open_kind[k] && !strcmp(which, device_kind_table[k].name))
            return open_kind[k](c, opt, true);
    return open_any(c, opt);
}

sd_status xpu_client_create(const sd_options *opt, xpu_client **out)
{
    xpu_client *c = calloc(1, sizeof *c);
    sd_status st;

    if (!c)
        return sd_no_memory(sizeof *c);
    atomic_init(&c->refs, 1);
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->gang_lock, NULL);
    c->last_crew = &c->crews;
    sd_options_warn();
    if ((st = sd_options_check(opt)) || (st = make_shared(c, opt)) ||
        (st = open_devices(c, opt))) {
        xpu_client_destroy(c);
        return st;
    }
    for (int i = 0; i < c->ndev; i++)
        for (int m = 0; m < XPU_MEM_COUNT; m++)
            xpu_cache_init(&c->dev[i]->cache[m], c->dev[i], (xpu_memory)m,
                           c->dev[i]->limit);
    *out = c;
    return NULL;
}

xpu_client *xpu_client_retain(xpu_client *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void xpu_client_release(xpu_client *c)
{
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    close_devices(c);
    xpu_event_release(c->ready);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->gang_lock);
    free(c->dev);
    free(c);
}

/* Threads end here.  The devices stay for buffers and programs that somebody
 * still holds: collectors of garbage destroy in any order. */
void xpu_client_destroy(xpu_client *c)
{
    if (!c)
        return;
    stop_devices(c); /* may be interrupted */
    xpu_live_stop(c);
    xpu_far_destroy(c->far);
    c->far = NULL;
    sd_pool_destroy(c->pool);
    sd_pool_destroy(c->compile);
    c->pool = c->compile = NULL;
    xpu_client_release(c);
}

int xpu_client_count(const xpu_client *c)
{
    return c->ndev;
}

xpu_device *xpu_client_device(const xpu_client *c, int i)
{
    return i >= 0 && i < c->ndev ? c->dev[i] : NULL;
}

/* A pool of its own, or a long compile would keep runs on one thread. */
sd_pool *xpu_client_pool(const xpu_client *client)
{
    xpu_client *c = (xpu_client *)client;
    sd_status st = NULL;
    sd_pool *p;

    pthread_mutex_lock(&c->lock);
    if (!c->compile && (st = sd_pool_create(c->nthread, &c->compile)))
        sd_log(SD_LOG_WARN, "compiling on one thread: %s", st->message);
    p = c->compile;
    pthread_mutex_unlock(&c->lock);
    sd_status_free(st);
    return p;
}

const device_desc *xpu_device_desc(const xpu_device *d)
{
    return &d->desc;
}

sd_status xpu_device_sync(xpu_device *d)
{
    xpu_stream_drain(&d->compute);
    xpu_stream_drain(&d->transfer);
    xpu_flight_drain(d);
    return NULL;
}

bool xpu_device_is_like(const xpu_device *x, const xpu_device *y)
{
    return x->desc.kind == y->desc.kind;
}

bool xpu_device_is_mine(xpu_device *d)
{
    return xpu_stream_is_mine(&d->compute) ||
           xpu_stream_is_mine(&d->transfer) || xpu_stream_is_mine(&d->done);
}
