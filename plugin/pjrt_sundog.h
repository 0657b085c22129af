/* A PJRT extension of our own, for what OpenXLA's extensions cannot say.  It
 * is the last of the list; frameworks skip extensions that they do not know.
 * These layouts are also in python/sundog/ffi.py and dlpack.py. */
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

/* Makes a DLManagedTensor of the buffer whose pointer that is (the one for
 * which it was asked last).  Its memory stays until the tensor's deleter is
 * called, by any thread.  FAILED_PRECONDITION: DLPack cannot say its memory,
 * type or layout. */
typedef struct {
    size_t struct_size;
    void *pointer; /* what PJRT_Buffer_UnsafePointer gave */
    void *stream;  /* the consumer's */
    bool wait;     /* work in `stream` is to wait until the buffer is ready */
    void *tensor;  /* out */
} pjrt_sundog_tensor;

/* The destructor of a PyCapsule "dltensor", which deletes a tensor that nobody
 * took.  It may run while an exception is on its way (a consumer refused the
 * tensor), where no code of Python's may: hence in C, by two functions of
 * Python's that do not look at exceptions. */
typedef struct {
    size_t struct_size;
    int (*is_valid)(void *capsule, const char *name);  /* PyCapsule_IsValid */
    void *(*pointer)(void *capsule, const char *name); /* _GetPointer */
    void (*destructor)(void *capsule);                 /* out */
} pjrt_sundog_capsule;

typedef struct {
    PJRT_Extension_Base base;
    PJRT_Error *(*register_handler)(pjrt_sundog_handler *a);
    PJRT_Error *(*share)(pjrt_sundog_tensor *a);
    PJRT_Error *(*capsule)(pjrt_sundog_capsule *a);
} pjrt_sundog_extension;
extern const pjrt_sundog_extension pjrt_sundog;

/* pjrt_sundog.c: somebody asked for b's pointer; b is about to be freed. */
void pjrt_sundog_show(PJRT_Buffer *b);
void pjrt_sundog_hide(PJRT_Buffer *b);
PJRT_Error *pjrt_sundog_register_handler(pjrt_sundog_handler *a); /* pjrt_ffi.c */

#endif
