/* devlib: the device library.  C that clang makes bitcode of for each target,
 * embedded one blob a function; and, for folding, the same C built by cc for
 * scalars.  A function exists in widths 1 and, on the host, 8 and 16.
 *
 * Names: dl_<function>_<type>[_x<lanes>], for example dl_exp_f32_x16; types
 * f32 f64, and for conversions f16 bf16 and the f8 and f4 kinds as u16 or u8
 * bits to and from f32: dl_f16_to_f32_x8, dl_f32_to_f16_x8. */
#ifndef DEVLIB_H
#define DEVLIB_H

#include <stddef.h>
#include <stdint.h>

#define DEVLIB_TARGETS(X) X(X86_V3) X(X86_V4) X(SPIRV) X(PTX)
#define X(name) DEVLIB_##name,
typedef enum { DEVLIB_TARGETS(X) DEVLIB_TARGET_COUNT } devlib_target;
#undef X
typedef struct {
    const char *name;
    const uint8_t *bitcode;
    size_t bytes;
    const uint8_t *code; /* host: machine code and its constants in one piece, */
    size_t code_bytes;   /* for any address that 64 divides; else 0 bytes */
} devlib_function;

/* NULL when there is none of that name: sorted table, binary search. */
const devlib_function *devlib_find(devlib_target t, const char *name);

/* The scalar build, for folding, has dl_<function>_f32 and _f64 of each row of
 * hlo_ops.def that names a function: who calls them declares them from there.
 * And conversions: bits of a narrow float to and from f32, and from f64 rounded once. */
#define DEVLIB_NARROW(X) \
    X(f16, uint16_t) X(bf16, uint16_t) X(f4e2m1fn, uint8_t) \
    X(f6e2m3fn, uint8_t) X(f6e3m2fn, uint8_t) \
    X(f8e3m4, uint8_t) X(f8e4m3, uint8_t) X(f8e4m3fn, uint8_t) \
    X(f8e4m3b11fnuz, uint8_t) X(f8e4m3fnuz, uint8_t) X(f8e5m2, uint8_t) \
    X(f8e5m2fnuz, uint8_t) X(f8e8m0fnu, uint8_t)
#define X(t, u) float dl_##t##_to_f32(u); u dl_f32_to_##t(float); \
    u dl_f64_to_##t(double);
DEVLIB_NARROW(X)
#undef X

#endif
