/* xpu_lib: vendor libraries of the host device, opened at run time.  In: a
 * thunk of kind LIBCALL and the addresses of its slices; out: results written.
 * Inside xpu only.  One xpu_lib a device: its calls are serialised by a lock
 * of its own, and may come from any thread. */
#ifndef XPU_LIB_H
#define XPU_LIB_H

#include "base.h"
#include "device_desc.h"
#include "thunk.h"

typedef struct xpu_lib xpu_lib;

/* Looks for the libraries; a missing one is no error, xpu_lib_present tells.
 * Calls use as many threads as the pool has, whatever OMP_NUM_THREADS says:
 * the pool's or their own.  Borrowed; NULL: one. */
sd_status xpu_lib_open(sd_pool *pool, xpu_lib **out);
void xpu_lib_close(xpu_lib *l); /* takes NULL */
uint64_t xpu_lib_present(const xpu_lib *l); /* device_lib bits */
/* "onednn 2.6.0", or why there is none: for the log and for dumps. */
const char *xpu_lib_version(const xpu_lib *l);
/* ptr[t->narg]: the addresses of t->arg, in order.  Returns when done. */
sd_status xpu_lib_run(xpu_lib *l, const thunk *t, void *const *ptr);

#endif
