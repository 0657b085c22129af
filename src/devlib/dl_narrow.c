/* Functions of bf16 on NVIDIA's chips, by instructions that approximate: x is a
 * bf16 in an f32, and the result rounded to bf16 is the one that the f32
 * function's result is rounded to, for each of the 65,536.  That is a fact of a
 * chip's instructions (tests/python/run_narrow.py tries all), for which the
 * device has DEVICE_HAS_NARROW. */
#include "dl_f32.h"

float dl_exp_bf16(float x);
float dl_logistic_bf16(float x);
float dl_tanh_bf16(float x);
float dl_erf_bf16(float x);

static inline float exp2_near(float x)
{
    float y;

    __asm__("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static inline float inverse_near(float x)
{
    float y;

    __asm__("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* What is added is in the middle of what may be: without it, and with three
 * times as much, all results are right, too. */
float dl_exp_bf16(float x)
{
    return exp2_near(__builtin_fmaf(x, 0x1.715478p+0f, 0x1p-23f));
}

float dl_logistic_bf16(float x)
{
    float t = __builtin_fmaf(__builtin_fabsf(x), -0x1.715476p+0f, 0x1p-23f);
    float e = exp2_near(t), r = inverse_near(1 + e);

    return x < 0 ? e * r : r;
}

float dl_tanh_bf16(float x)
{
    float y;

    __asm__("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* q with 1 - exp(-q) = erf(a), for a of 1/2 and more; beyond 4 erf is 1. */
static inline float erf_tail(float a)
{
    float c = a > 4.0f ? 4.0f : a, q = 0x1.57279p-16f;

    q = H32(c, q, -0x1.bfd97ap-12f);
    q = H32(c, q, 0x1.0f09c8p-8f);
    q = H32(c, q, -0x1.9a0bfcp-6f);
    q = H32(c, q, 0x1.baf022p-4f);
    q = H32(c, q, 0x1.4456ap-1f);
    q = H32(c, q, 0x1.2123d8p+0f);
    return H32(c, q, -0x1.53cb8ep-13f);
}

/* Small: x + x p(x^2).  Large: by its tail. */
float dl_erf_bf16(float x)
{
    float a = __builtin_fabsf(x), z = x * x, p, q;

    p = __builtin_fmaf(z, -0x1.bp-6f, 0x1.ce2f2p-4f);
    p = __builtin_fmaf(z, p, -0x1.812746p-2f);
    p = __builtin_fmaf(z, p, 0x1.06eba8p-3f);
    p = __builtin_fmaf(a, p, a);
    q = 1 - exp2_near(erf_tail(a) * -0x1.715476p+0f);
    return __builtin_copysignf(a < 0.5f ? p : q, x);
}
