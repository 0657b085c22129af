/* guarded: an execution's buffers; arguments are views of memory that begins
 * and ends where the process may not read, so that a kernel which goes past
 * them is seen. */
#ifndef GUARDED_H
#define GUARDED_H

#include "xpu.h"

enum { GUARDED_MOST = 128 };

typedef struct {
    xpu_buffer *in[GUARDED_MOST], *out[GUARDED_MOST]; /* what is set is ours */
    struct {
        void *at;
        size_t bytes;
    } map[GUARDED_MOST];
} guarded_call;

/* in[i] on a host device; its bytes are those of data, 0 where that is NULL. */
sd_status guarded_argument(guarded_call *c, int i, xpu_device *d, sd_dtype t,
                           int rank, const int64_t *dim, const void *data,
                           size_t bytes);
void guarded_finish(guarded_call *c);

#endif
