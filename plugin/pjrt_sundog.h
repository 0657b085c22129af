/* An extension of our own, the last of the list, for what OpenXLA's have no room
 * for.  python/sundog (ffi.py, dlpack.py) has these layouts too; frameworks pass
 * extensions over that they do not know. */
#ifndef PJRT_SUNDOG_H
#define PJRT_SUNDOG_H

#include "pjrt_abi.h"

#include "xpu.h"

#define PJRT_SUNDOG_TYPE 0x53444f47

typedef struct {
    size_t struct_size;
    const char *name, *platform; /* xpu_ffi_platform */
    size_t name_size, platform_size;
    void *stage[XPU_FFI_STAGES];
} pjrt_sundog_handler;

typedef struct {
    PJRT_Extension_Base base;
    PJRT_Error *(*register_handler)(pjrt_sundog_handler *a);
} pjrt_sundog_extension;
extern const pjrt_sundog_extension pjrt_sundog;

PJRT_Error *pjrt_sundog_register_handler(pjrt_sundog_handler *a); /* pjrt_ffi.c */

#endif
