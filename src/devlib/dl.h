/* dl: the vocabulary of the device library.  Every function is written once
 * over SD_LANES lanes: 1 is plain C that any compiler takes (gcc builds the
 * folding library from it), more are clang's ext vectors.
 *
 * Rules for what stands in here: no table in memory, no call left over, no
 * f64 in an f32 function; a branch only when any() lane needs the slow road,
 * and then every lane takes it.  fma is always the fused one, and nothing
 * else is contracted, so all builds give the same bits. */
#ifndef DL_H
#define DL_H

#include <stdint.h>

#ifndef SD_LANES
#define SD_LANES 1
#endif

#define DL_CAT3_(a, b, c) a##b##c
#define DL_CAT3(a, b, c) DL_CAT3_(a, b, c)
#define DL_INLINE static inline __attribute__((always_inline))

#if SD_LANES == 1
typedef float f32v;
typedef double f64v;
typedef int32_t i32v;
typedef uint32_t u32v;
typedef int64_t i64v;
typedef uint64_t u64v;
typedef uint16_t u16v;
typedef uint8_t u8v;
typedef int m32, m64; /* what a comparison gives */
#define DL(name) dl_##name
#define CVT(x, t) ((t)(x))
#define any(m) (m)
#define EACH_LANE(i, m)
#define LANE(v, i) (v)
#define FMAF(a, b, c) __builtin_fmaf(a, b, c)
#define FMA(a, b, c) __builtin_fma(a, b, c)
#define SQRTF(a) __builtin_sqrtf(a)
#define SQRT(a) __builtin_sqrt(a)
#define FLOORF(a) __builtin_floorf(a)
#define FLOOR(a) __builtin_floor(a)
#else
#define DL_VEC(t) t __attribute__((ext_vector_type(SD_LANES)))
typedef DL_VEC(float) f32v;
typedef DL_VEC(double) f64v;
typedef DL_VEC(int32_t) i32v;
typedef DL_VEC(uint32_t) u32v;
typedef DL_VEC(long) i64v; /* what clang compares f64v into */
typedef DL_VEC(unsigned long) u64v;
typedef DL_VEC(uint16_t) u16v;
typedef DL_VEC(uint8_t) u8v;
typedef i32v m32;
typedef i64v m64;
#define DL(name) DL_CAT3(dl_##name, _x, SD_LANES)
#define CVT(x, t) __builtin_convertvector(x, t)
#define any(m) (__builtin_reduce_or(m) != 0)
#define EACH_LANE(i, m) \
    _Pragma("clang loop unroll(disable)") \
    for (int i = 0; i < SD_LANES; i++) \
        if ((m)[i])
#define LANE(v, i) (v)[i]
#define FMAF(a, b, c) __builtin_elementwise_fma(a, b, c)
#define FMA(a, b, c) __builtin_elementwise_fma(a, b, c)
#define SQRTF(a) __builtin_elementwise_sqrt(a)
#define SQRT(a) __builtin_elementwise_sqrt(a)
#define FLOORF(a) __builtin_elementwise_floor(a)
#define FLOOR(a) __builtin_elementwise_floor(a)
#endif

#define F(x) ((f32v)(x))
#define D(x) ((f64v)(x))
#define I(x) ((i32v)(x))
#define U(x) ((u32v)(x))
#define J(x) ((i64v)(x))
#define W(x) ((u64v)(x))
#define SEL(m, a, b) ((m) ? (a) : (b))

#define DL_BITS(name, to, from) \
    DL_INLINE to name(from x) \
    { \
        to r; \
        __builtin_memcpy(&r, &x, sizeof r); \
        return r; \
    }
DL_BITS(bits32, u32v, f32v)
DL_BITS(float32, f32v, u32v)
DL_BITS(bits64, u64v, f64v)
DL_BITS(float64, f64v, u64v)
DL_BITS(signed32, i32v, u32v)
DL_BITS(unsigned32, u32v, i32v)
DL_BITS(signed64, i64v, u64v)
DL_BITS(unsigned64, u64v, i64v)

DL_INLINE f32v abs32(f32v x) { return float32(bits32(x) & U(0x7fffffff)); }
DL_INLINE u32v sign32(f32v x) { return bits32(x) & U(0x80000000); }
DL_INLINE f32v flip32(f32v x, u32v sign) { return float32(bits32(x) ^ sign); }
DL_INLINE f64v abs64(f64v x)
{
    return float64(bits64(x) & W(0x7fffffffffffffff));
}
DL_INLINE u64v sign64(f64v x) { return bits64(x) & W(0x8000000000000000); }
DL_INLINE f64v flip64(f64v x, u64v sign) { return float64(bits64(x) ^ sign); }

#define INF32 __builtin_inff()
#define NAN32 __builtin_nanf("")
#define INF64 __builtin_inf()
#define NAN64 __builtin_nan("")

/* 2^n for n in the range of normal numbers. */
DL_INLINE f32v pow2_32(u32v n) { return float32((n + U(127)) << U(23)); }
DL_INLINE f64v pow2_64(u64v n) { return float64((n + W(1023)) << W(52)); }

/* x * 2^n, rounded once, for |n| up to 250 (2000). */
DL_INLINE f32v scale32(f32v x, u32v n)
{
#if SD_LANES == 16 /* AVX-512 has an instruction for it, which rounds once */
    return __builtin_elementwise_ldexp(x, signed32(n));
#else
    u32v half = unsigned32(signed32(n) >> I(1));

    return x * pow2_32(half) * pow2_32(n - half);
#endif
}
DL_INLINE f64v scale64(f64v x, u64v n)
{
    u64v half = unsigned64(signed64(n) >> J(1));

    return x * pow2_64(half) * pow2_64(n - half);
}

/* Nearest integer k of x * c, also as two's complement bits, |k| < 2^22. */
#define ROUND32 0x1.8p23f
#define ROUND64 0x1.8p52
DL_INLINE f32v round32(f32v x, f32v c, u32v *n)
{
    f32v t = FMAF(x, c, F(ROUND32));

    *n = bits32(t) - U(0x4b400000);
    return t - F(ROUND32);
}
DL_INLINE f64v round64(f64v x, f64v c, u64v *n)
{
    f64v t = FMA(x, c, D(ROUND64));

    *n = bits64(t) - W(0x4338000000000000);
    return t - D(ROUND64);
}

/* Horner's rule; coefficients from the highest down. */
#define H32(x, p, c) FMAF(p, x, F(c))
#define H64(x, p, c) FMA(p, x, D(c))

#endif
