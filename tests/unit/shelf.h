/* What jax.distributed is to processes, for clients in one process: shelf.c. */
#ifndef SHELF_H
#define SHELF_H

#include "base.h"

#include <pthread.h>

enum { SHELVES = 4 }; /* one a process */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t news;
    sd_buf value[SHELVES];
    bool there[SHELVES];
} shelf;

sd_status shelf_get(void *ctx, const char *key, int timeout_ms, sd_buf *out);
sd_status shelf_put(void *ctx, const char *key, sd_bytes value);
void shelf_init(shelf *s);
void shelf_finish(shelf *s);

#endif
