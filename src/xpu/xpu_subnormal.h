/* Whether a thread's additions and multiplications know subnormal numbers: its
 * mode (base.h). */
#ifndef XPU_SUBNORMAL_H
#define XPU_SUBNORMAL_H

#include "base.h"

#include <xmmintrin.h>

/* The thread's mode becomes `mode`, whoever runs it: callers may flush
 * subnormals or round oddly, and threads that they make inherit that.  What it
 * was is returned, for xpu_leave_mode. */
static inline uint32_t xpu_enter_mode(uint32_t mode)
{
    const uint32_t exceptions = 0x3f; /* those that happened, not a mode */
    uint32_t old = _mm_getcsr();

    if ((old ^ mode) & ~exceptions)
        _mm_setcsr(mode);
    return old;
}

static inline void xpu_leave_mode(uint32_t old)
{
    xpu_enter_mode(old);
}

#endif
