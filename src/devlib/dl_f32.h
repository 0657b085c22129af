/* exp and log in f32, as other functions use them. */
#ifndef DL_F32_H
#define DL_F32_H

#include "dl.h"

/* e^r - 1 = r + r^2 q(r) for |r| <= log(2)/2; x = k log(2) + r.  *raw ends in
 * the bits of k: more of them than an exponent has are not needed. */
DL_INLINE f32v exp_reduce32(f32v x, u32v *raw)
{
    f32v t = FMAF(x, F(0x1.715476p+0f), F(ROUND32)), k, r, q;

    *raw = bits32(t);
    k = t - F(ROUND32);
    r = FMAF(k, F(-0x1.62e43p-1f), x);
    r = FMAF(k, F(0x1.05c61p-29f), r);
    q = F(0x1.6ad718p-10f);
    q = H32(r, q, 0x1.123f4ep-7f);
    q = H32(r, q, 0x1.55584cp-5f);
    q = H32(r, q, 0x1.55548ap-3f);
    q = H32(r, q, 0x1.fffffcp-2f);
    return FMAF(r * r, q, r);
}

/* (p + 1) 2^k for k from -151, in two steps, of which the first is rounded as
 * p + 1 is.  It takes k less an eighth, and 5 more: down to -150 that is a
 * normal number's exponent, and at -151, where e^x is 0, a zero's, since a
 * product that underflows to 0 takes x86 tens of cycles.  What lies above k in
 * raw leaves with the bits above an exponent.  AVX-512 scales by one
 * instruction, which takes k as a number and so without what lies above it. */
DL_INLINE f32v exp_join32(f32v p, u32v raw)
{
#if SD_LANES == 16
    return scale32(p + F(1), raw - U(0x4b400000));
#else
    u32v eighth = raw >> U(3);
    f32v s = pow2_32(raw - eighth + U(5));

    return FMAF(p, s, s) * pow2_32(eighth - U(5));
#endif
}

/* The same for k from -127 to 0, where -127 gives a zero's exponent. */
DL_INLINE f32v exp_join_down32(f32v p, u32v raw)
{
#if SD_LANES == 16
    return exp_join32(p, raw);
#else
    f32v s = pow2_32(raw);

    return FMAF(p, s, s);
#endif
}

/* Below -126 log(2) e^x would be subnormal, and is 0: each such number takes
 * Intel's cores 150 cycles here and wherever it goes next, and softmax, kernels
 * of distances and what a mask leaves out are full of them.  x then counts as a
 * number that the instruction of exp_join32 takes as quickly as others, and
 * elsewhere as one whose k gives a zero's exponent. */
#define EXP_ZERO (-0x1.5d589ep+6f)
#if SD_LANES == 16
#define EXP_LEAST32      0.0f
#define EXP_LEAST_DOWN32 0.0f
#else
#define EXP_LEAST32      (-104.5f)
#define EXP_LEAST_DOWN32 (-88.0f)
#endif

DL_INLINE f32v exp_or_zero32(f32v x, f32v e)
{
    return SD_LANES == 16 ? SEL(x < F(EXP_ZERO), F(0), e) : e;
}

DL_INLINE f32v exp32(f32v x)
{
    f32v p;
    u32v raw;

    x = SEL(x > F(89.0f), F(89.0f), x);
    p = exp_reduce32(SEL(x < F(EXP_ZERO), F(EXP_LEAST32), x), &raw);
    return exp_or_zero32(x, exp_join32(p, raw));
}

/* x = m 2^e with m in [2/3, 4/3) for normal x > 0. */
DL_INLINE f32v log_split32(f32v x, i32v *e)
{
    u32v i = bits32(x);

    *e = signed32(i - U(0x3f2aaaab)) >> I(23);
    return float32(i - (unsigned32(*e) << U(23)));
}

/* log(1 + f) + k log(2) for f in [-1/3, 1/3]. */
DL_INLINE f32v log_join32(f32v f, f32v k)
{
    f32v p = F(0x1.e05bbp-4f), h, s;

    p = H32(f, p, -0x1.0790a4p-3f);
    p = H32(f, p, 0x1.bb4298p-4f);
    p = H32(f, p, -0x1.f33a62p-4f);
    p = H32(f, p, 0x1.24d7b2p-3f);
    p = H32(f, p, -0x1.559bbp-3f);
    p = H32(f, p, 0x1.99985ep-3f);
    p = H32(f, p, -0x1.ffff02p-3f);
    p = H32(f, p, 0x1.555556p-2f);
    p = H32(f, p, -0.5f);
    p = FMAF(k, F(0x1.7f7d1cp-20f), f * f * p);
    h = k * F(0x1.62e4p-1f); /* exact */
    s = h + f;
    return s + (((h - s) + f) + p);
}

/* e^r - 1 as above, of what damps its errors: one product of log(2) does.
 * Powers of r come from r^2, since a vector takes as long as it waits. */
DL_INLINE f32v exp_damped32(f32v x, u32v *raw)
{
    f32v t = FMAF(x, F(0x1.715476p+0f), F(ROUND32)), r, rr, q;

    *raw = bits32(t);
    r = FMAF(t - F(ROUND32), F(-0x1.62e43p-1f), x);
    rr = r * r;
    q = H32(r, F(0x1.123f4ep-7f), 0x1.55584cp-5f);
    q = FMAF(rr, F(0x1.6ad718p-10f), q);
    q = FMAF(rr, q, H32(r, F(0x1.55548ap-3f), 0x1.fffffcp-2f));
    return FMAF(rr, q, r);
}

/* q with 1 - exp(q) = erf(a), for a of 0.8125 and more; beyond 4 erf is 1. */
DL_INLINE f32v erf_tail32(f32v a)
{
    f32v c = SEL(a > F(4.0f), F(4.0f), a), cc = c * c, q;

    q = FMAF(cc, F(0x1.b31eb8p-13f), H32(c, F(-0x1.9d5982p-9f), 0x1.732e5ap-6f));
    q = FMAF(cc, q, H32(c, F(-0x1.ad3ccep-4f), -0x1.45bfd6p-1f));
    return FMAF(cc, q, H32(c, F(-0x1.20d34p+0f), -0x1.1b5416p-14f));
}

#endif
