/* The log.  Its level is the one mutable thing at file scope: written once,
 * before threads start, or at the first line by whoever comes first. */
#include "base.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static atomic_int level = -1;
static const char *const level_name[] = {"error", "warn", "info", "debug"};

void sd_log_init(void)
{
    sd_options o;
    const char *want;
    int l = SD_LOG_WARN;

    sd_options_from_env(&o);
    want = sd_opt_str(&o, SD_OPT_LOG);
    for (int i = 0; want && i < (int)SD_COUNTOF(level_name); i++)
        if (!strcmp(want, level_name[i]))
            l = i;
    atomic_store_explicit(&level, l, memory_order_relaxed);
}

static bool is_on(sd_level l)
{
    int now = atomic_load_explicit(&level, memory_order_relaxed);

    if (now < 0) {
        sd_log_init();
        now = atomic_load_explicit(&level, memory_order_relaxed);
    }
    return (int)l <= now;
}

/* One write a line, so that lines of several threads do not mix. */
void sd_log(sd_level l, const char *fmt, ...)
{
    sd_buf b = {0};
    va_list ap;

    if (!is_on(l))
        return;
    sd_buf_fmt(&b, "sundog %s: ", level_name[l]);
    va_start(ap, fmt);
    sd_buf_vfmt(&b, fmt, ap);
    va_end(ap);
    sd_buf_str(&b, "\n");
    if (!b.oom)
        fwrite(b.at, 1, b.len, stderr);
    sd_buf_finish(&b);
}

static uint64_t now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t sd_now_ns(void)
{
    return now(CLOCK_MONOTONIC);
}

uint64_t sd_thread_ns(void)
{
    return now(CLOCK_THREAD_CPUTIME_ID);
}
