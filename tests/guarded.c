#include "guarded.h"

#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

sd_status guarded_argument(guarded_call *c, int i, xpu_device *d, sd_dtype t,
                           int rank, const int64_t *dim, const void *data,
                           size_t bytes)
{
    size_t room = (bytes + 63) / 64 * 64, /* kernels may ask for alignment */
        pages = (room + PAGE - 1) / PAGE * PAGE;
    uint8_t *at = mmap(NULL, pages + 2 * PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *end = at + PAGE + pages;

    if (at == MAP_FAILED)
        return sd_error(SD_EXHAUSTED, "no %zu bytes of memory", pages);
    c->map[i].at = at;
    c->map[i].bytes = pages + 2 * PAGE;
    mprotect(at, PAGE, PROT_NONE);
    mprotect(end, PAGE, PROT_NONE);
    if (data && bytes)
        memcpy(end - room, data, bytes);
    return xpu_buffer_view(d, XPU_MEM_DEVICE, t, rank, dim, end - room, NULL,
                           NULL, &c->in[i]);
}

void guarded_finish(guarded_call *c)
{
    for (int i = 0; i < GUARDED_MOST; i++) {
        if (c->out[i])
            xpu_buffer_release(c->out[i]);
        if (c->in[i])
            xpu_buffer_release(c->in[i]);
        if (c->map[i].at)
            munmap(c->map[i].at, c->map[i].bytes);
    }
}
