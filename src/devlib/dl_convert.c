/* Narrow floats to and from f32, and from f64 without rounding twice.  Round
 * to nearest, ties to even; what overflows, and what a NaN becomes, is the
 * format's own: infinity, NaN, or the largest number where it has neither.
 * NaNs keep their sign and become quiet. */
#include "dl.h"

typedef enum { IEEE, FN, FNUZ, FINITE } format; /* how specials are coded */

/* 1 sign, e exponent and m mantissa bits to f32; bits above are ignored. */
DL_INLINE f32v widen(u32v c, int e, int m, int bias, format k)
{
    u32v top = U(1u << (e + m)), mag = c & (top - U(1));
    u32v sign = (c & top) << U(31 - e - m);
    u32v inf = U(((1u << e) - 1) << m), big;
    f32v small;

    big = (mag << U(23 - m)) + U((uint32_t)(127 - bias) << 23);
    small = CVT(signed32(mag), f32v) * pow2_32(U(1 - bias - m));
    big = SEL(mag < U(1u << m), bits32(small), big);
    if (k == IEEE) {
        u32v nan = (mag << U(23 - m)) | U(0x7fc00000);

        big = SEL(mag >= inf, SEL(mag == inf, U(0x7f800000), nan), big);
    } else if (k == FN) {
        big = SEL(mag == top - U(1), U(0x7fc00000), big);
    } else if (k == FNUZ) {
        big = SEL((c & (top + top - U(1))) == top, U(0x7fc00000), big);
    }
    return float32(big | sign);
}

DL_INLINE u32v narrow(f32v x, int e, int m, int bias, format k)
{
    u32v a = bits32(x) & U(0x7fffffff), sign = sign32(x) >> U(31 - e - m);
    u32v inf = U(((1u << e) - 1) << m), all = U((1u << (e + m)) - 1);
    u32v low, r;
    /* of which an ulp is the smallest number */
    f32v grid = pow2_32(U(1 - bias - m + 23));

    r = a + U((1u << (22 - m)) - 1) + ((a >> U(23 - m)) & U(1));
    r = (r >> U(23 - m)) - U((uint32_t)(127 - bias) << m);
    low = bits32(float32(a) + grid) - bits32(grid);
    r = SEL(a < U((uint32_t)(128 - bias) << 23), low, r);
    if (k == IEEE) {
        r = SEL(signed32(r) > signed32(inf), inf, r);
        r = SEL(a > U(0x7f800000), inf | U(1u << (m - 1)), r);
        return r | sign;
    }
    if (k == FN)
        return SEL((a >= U(0x7f800000)) | (signed32(r) > signed32(all)), all,
                   r) |
               sign;
    if (k == FNUZ) {
        sign = SEL(r == U(0), U(0), sign);
        return SEL((a >= U(0x7f800000)) | (signed32(r) > signed32(all)),
                   all + U(1), r | sign);
    }
    r = SEL(signed32(r) > signed32(all), all, r);
    return SEL(a > U(0x7f800000), (all + U(1)) ^ sign, r | sign);
}

DL_INLINE f32v widen_bf16(u32v c)
{
    u32v r = c << U(16), nan = r | U(0x400000);

    return float32(SEL((r & U(0x7fffffff)) > U(0x7f800000), nan, r));
}

DL_INLINE u32v narrow_bf16(f32v x)
{
    u32v i = bits32(x), nan = (i >> U(16)) | U(0x40);
    u32v r = (i + U(0x7fff) + ((i >> U(16)) & U(1))) >> U(16);

    return SEL((i & U(0x7fffffff)) > U(0x7f800000), nan, r);
}

/* x86 has instructions for f16 (F16C), as the plan's targets have. */
#if defined DL_X86
#if SD_LANES == 1
typedef _Float16 f16v;
#else
typedef DL_VEC(_Float16) f16v;
#endif
DL_INLINE f32v widen_f16(u16v c)
{
    f16v h;

    __builtin_memcpy(&h, &c, sizeof h);
    return CVT(h, f32v);
}
DL_INLINE u16v narrow_f16(f32v x)
{
    f16v h = CVT(x, f16v);
    u16v c;

    __builtin_memcpy(&c, &h, sizeof c);
    return c;
}
#else
DL_INLINE f32v widen_f16(u16v c)
{
    return widen(CVT(c, u32v), 5, 10, 15, IEEE);
}
DL_INLINE u16v narrow_f16(f32v x)
{
    u32v r = narrow(x, 5, 10, 15, IEEE);
    u32v nan = (bits32(x) >> U(13)) & U(0x3ff); /* as the hardware: payload */

    return CVT(SEL(x != x, r | nan, r), u16v);
}
#endif

/* Exponent only: 2^(c - 127), 255 is NaN; ties go up. */
DL_INLINE f32v widen_e8m0(u32v c)
{
    c = c & U(255);
    return float32(SEL(c == U(255), U(0x7fc00000),
                       SEL(c == U(0), U(0x400000), c << U(23))));
}

DL_INLINE u32v narrow_e8m0(f32v x)
{
    u32v i = bits32(x), r = (i + U(0x400000)) >> U(23);

    r = SEL(i < U(0x600000), U(0), r);
    return SEL((x > F(0)) & (i < U(0x7f400000)), r, U(255));
}

/* f64 to f32 so that what follows rounds as if from f64: an inexact result is
 * made odd. */
DL_INLINE f32v round_odd(f64v x)
{
    f32v t = CVT(x, f32v);
    f64v back = CVT(t, f64v);
    u32v i = bits32(t), over, lost;

    over = CVT(SEL(abs64(back) > abs64(x), W(1), W(0)), u32v);
    lost = CVT(SEL((back == x) | (x != x), W(0), W(1)), u32v);
    return float32((i - over) | lost);
}

#define CONVERT(name, uv, from, to) \
    f32v DL(name##_to_f32)(uv c) \
    { \
        return from; \
    } \
    uv DL(f32_to_##name)(f32v x) \
    { \
        return to; \
    } \
    uv DL(f64_to_##name)(f64v d) \
    { \
        f32v x = round_odd(d); \
        return to; \
    }
#define SMALL(name, e, m, bias, kind) \
    CONVERT(name, u8v, widen(CVT(c, u32v), e, m, bias, kind), \
            CVT(narrow(x, e, m, bias, kind), u8v))

CONVERT(f16, u16v, widen_f16(c), narrow_f16(x))
CONVERT(bf16, u16v, widen_bf16(CVT(c, u32v)), CVT(narrow_bf16(x), u16v))
CONVERT(f8e8m0fnu, u8v, widen_e8m0(CVT(c, u32v)), CVT(narrow_e8m0(x), u8v))
SMALL(f8e3m4, 3, 4, 3, IEEE)
SMALL(f8e4m3, 4, 3, 7, IEEE)
SMALL(f8e5m2, 5, 2, 15, IEEE)
SMALL(f8e4m3fn, 4, 3, 7, FN)
SMALL(f8e4m3b11fnuz, 4, 3, 11, FNUZ)
SMALL(f8e4m3fnuz, 4, 3, 8, FNUZ)
SMALL(f8e5m2fnuz, 5, 2, 16, FNUZ)
SMALL(f4e2m1fn, 2, 1, 1, FINITE)
SMALL(f6e2m3fn, 2, 3, 1, FINITE)
SMALL(f6e3m2fn, 3, 2, 3, FINITE)
