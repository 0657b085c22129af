/* xpu_memory: the cache between a device's memory and who asks for it. */
#ifndef XPU_MEMORY_H
#define XPU_MEMORY_H

#include "xpu.h"

#include <pthread.h>

#define XPU_CLASSES 168 /* of sizes, to 2^49 bytes: xpu_memory.c */
typedef struct {
    pthread_mutex_t lock;
    xpu_device *dev; /* borrowed */
    xpu_memory mem;
    struct xpu_free_list {
        void **at;
        int n, cap;
        int gone; /* blocks given back to the system and not missed since */
    } list[XPU_CLASSES];
    struct xpu_slab { struct xpu_slab *next; void *at; size_t bytes; } *slab;
    uint8_t *bump, *bump_end; /* rest of the newest slab */
    int64_t idle; /* bytes of slabs that nobody uses */
    xpu_memory_stats stat;
    int64_t window_peak, last_peak; /* of in_use, in this window of frees and
                                       in the one before */
    int64_t missed; /* bytes to hold beside the peak: a share of those that were
                       given back and then asked for again */
    int window;     /* frees of this window so far */
    /* Who holds how much, for errors; number 0 is nobody. */
    struct xpu_holder { char name[64]; int64_t bytes; } *holder;
    int nholder;
} xpu_cache;
void xpu_cache_init(xpu_cache *c, xpu_device *d, xpu_memory mem,
                    int64_t limit);
void xpu_cache_finish(xpu_cache *c);
/* What memory is for, as an error names who holds it: "results of jit_step". */
typedef struct { const char *what, *of; } xpu_purpose;
/* Memory from the device's cache; zero bytes give a pointer, too.  *cls is to
 * be handed to free.  When memory is short alloc waits for queued work to end,
 * so the caller must own no stream; try waits for nothing. */
sd_status xpu_memory_try(xpu_device *d, xpu_memory mem, xpu_purpose use,
                         size_t bytes, void **out, int *cls);
sd_status xpu_memory_alloc(xpu_device *d, xpu_memory mem, xpu_purpose use,
                           size_t bytes, void **out, int *cls);
void xpu_memory_free(xpu_device *d, xpu_memory mem, void *p, int cls);
/* What is held of the device's and not in use goes back to the system. */
void xpu_memory_give_back(xpu_device *d);

#endif
