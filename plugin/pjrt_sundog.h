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

/* A DLManagedTensor of the buffer that showed this pointer last: its memory
 * stays until the tensor's deleter is called, by any thread.  FAILED_PRECONDITION:
 * DLPack has no word for its memory, its type or its layout. */
typedef struct {
    size_t struct_size;
    void *pointer; /* what PJRT_Buffer_UnsafePointer gave */
    void *stream;  /* of the consumer; its work waits until the buffer is ready */
    bool wait;     /* else it takes care itself */
    void *tensor;  /* out */
} pjrt_sundog_tensor;

typedef struct {
    PJRT_Extension_Base base;
    PJRT_Error *(*register_handler)(pjrt_sundog_handler *a);
    PJRT_Error *(*share)(pjrt_sundog_tensor *a);
} pjrt_sundog_extension;
extern const pjrt_sundog_extension pjrt_sundog;

/* pjrt_sundog.c: of a buffer whose pointer somebody asked for, and that goes. */
void pjrt_sundog_show(PJRT_Buffer *b);
void pjrt_sundog_hide(PJRT_Buffer *b);
PJRT_Error *pjrt_sundog_register_handler(pjrt_sundog_handler *a); /* pjrt_ffi.c */

#endif
