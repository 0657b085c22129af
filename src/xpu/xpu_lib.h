/* xpu_lib: vendor libraries of the host device, opened at run time.  It takes
 * a thunk of kind LIBCALL and the addresses of its slices, and writes the
 * results. For xpu only.  Each device has one xpu_lib.  Any thread may call; a
 * lock lets one call run at a time. */
#ifndef XPU_LIB_H
#define XPU_LIB_H

#include "base.h"
#include "device_desc.h"
#include "thunk.h"

typedef struct xpu_lib xpu_lib;

/* Looks for the libraries.  A missing one is no error: xpu_lib_present says
 * which are there.  Calls use as many threads as the pool (borrowed; NULL:
 * one) has, its own or the library's, whatever OMP_NUM_THREADS says. */
sd_status xpu_lib_open(sd_pool *pool, xpu_lib **out);
void xpu_lib_close(xpu_lib *l); /* takes NULL */
uint64_t xpu_lib_present(const xpu_lib *l); /* device_lib bits */
/* "onednn 2.6.0", or why there is none: for the log and for dumps. */
const char *xpu_lib_version(const xpu_lib *l);
/* ptr[t->narg]: the addresses of t->arg, in order.  Returns when done. */
sd_status xpu_lib_run(xpu_lib *l, const thunk *t, void *const *ptr);

#endif
