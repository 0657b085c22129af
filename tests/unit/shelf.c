/* The store of a job whose processes are clients of one process. */
#include "shelf.h"

#include <stdlib.h>
#include <time.h>

static int number_of(const char *key)
{
    return atoi(strrchr(key, '/') + 1);
}

sd_status shelf_get(void *ctx, const char *key, int timeout_ms, sd_buf *out)
{
    int i = number_of(key);
    struct timespec end;
    shelf *s = ctx;
    int late = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += timeout_ms / 1000;
    pthread_mutex_lock(&s->lock);
    while (!s->there[i] && !late)
        late = pthread_cond_timedwait(&s->news, &s->lock, &end);
    if (!late)
        sd_buf_add(out, s->value[i].at, s->value[i].len);
    pthread_mutex_unlock(&s->lock);
    return late ? sd_error(SD_DEADLINE, "nobody put %s", key) : NULL;
}

sd_status shelf_put(void *ctx, const char *key, sd_bytes value)
{
    int i = number_of(key);
    shelf *s = ctx;
    bool was;

    pthread_mutex_lock(&s->lock);
    was = s->there[i];
    if (!was)
        sd_buf_add(&s->value[i], value.at, value.len);
    s->there[i] = true;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
    return was ? sd_error(SD_ALREADY_EXISTS, "%s is there", key) : NULL;
}

void shelf_init(shelf *s)
{
    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->news, NULL);
}

void shelf_finish(shelf *s)
{
    for (int i = 0; i < SHELVES; i++)
        sd_buf_finish(&s->value[i]);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->news);
}
