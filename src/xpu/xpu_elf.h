/* xpu_elf: the host's loader of kernels. */
#ifndef XPU_ELF_H
#define XPU_ELF_H

#include "thunk.h"

typedef struct xpu_code xpu_code;
/* Loads the objects of a verified program into one mapping; fn[kernel] are the
 * entry points.  The objects' bytes are not trusted. */
sd_status xpu_elf_load(const thunk_program *p, bool perf_map, xpu_code **out,
                       void **fn);
/* Whether perf's map of this process can be written; says why not. */
bool xpu_perf_map_opens(void);
void xpu_elf_unload(xpu_code *c); /* takes NULL */

#endif
