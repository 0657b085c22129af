/* Whether a thread's additions and multiplications know subnormal numbers.
 * Each takes a core about 150 cycles, so products and convolutions, which meet
 * every operand many times, take them for 0 (docs/numerics.md). */
#ifndef XPU_SUBNORMAL_H
#define XPU_SUBNORMAL_H

#include <stdint.h>
#include <xmmintrin.h>

#define XPU_SUBNORMALS_KEPT  0x1f80u /* the processor's default mode */
#define XPU_SUBNORMALS_ARE_0 0x9fc0u /* operands and results */

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
