/* exp, expm1, logistic, tanh, erf in f32. */
#include "dl_f32.h"

/* 1 / y of y from 1 to 2^64, and x / y of y from 1 to 2 and of 1 or y - 1 for
 * x, correctly rounded.  NVIDIA's divisions ask whether y is such a number, and
 * branch.  What they compute for one on every chip is inverse32; with it
 * Markstein's correction is right where x - y q is exact: where x is so small
 * that it is not, y is 1. */
#ifdef __NVPTX__
static inline float inverse32(float y)
{
    float r;

    __asm__("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
    return FMAF(r, -FMAF(y, r, -1.0f), r);
}

static inline float divide32(float x, float y)
{
    float r = inverse32(y), q = x * r;

    return FMAF(FMAF(-y, q, x), r, q);
}
#else
#define inverse32(y)   (F(1) / (y))
#define divide32(x, y) ((x) / (y))
#endif

f32v DL(exp_f32)(f32v x)
{
    return exp32(x);
}

/* Of x <= 0, or NaN, with the bits of exp_f32. */
f32v DL(exp_down_f32)(f32v x)
{
    f32v p;
    u32v raw;

    p = exp_reduce32(SEL(x < F(EXP_ZERO), F(EXP_LEAST_DOWN32), x), &raw);
    return exp_or_zero32(x, exp_join_down32(p, raw));
}

/* 2^n e^r - 1 = 2 (2^(n-1) (e^r - 1) + 2^(n-1) - 1/2) */
f32v DL(expm1_f32)(f32v x)
{
    f32v c, k, r, q, t, y;
    u32v n;

    c = SEL(x > F(89.0f), F(89.0f), x);
    c = SEL(c < F(-18.0f), F(-18.0f), c);
    k = round32(c, F(0x1.715476p+0f), &n);
    r = FMAF(k, F(-0x1.62e43p-1f), c);
    r = FMAF(k, F(0x1.05c61p-29f), r);
    q = F(0x1.3b799ep-13f);
    q = H32(r, q, 0x1.6d2e5p-10f);
    q = H32(r, q, 0x1.1155aep-7f);
    q = H32(r, q, 0x1.555502p-5f);
    q = H32(r, q, 0x1.55552cp-3f);
    q = H32(r, q, 0.5f);
    t = pow2_32(n - U(1));
    y = FMAF(t, FMAF(r * r, q, r), t - F(0.5f)) * F(2);
    return SEL(abs32(x) < F(0x1p-25f), x, y);
}

f32v DL(logistic_f32)(f32v x)
{
    f32v e = exp32(float32(bits32(x) | U(0x80000000)));

    return divide32(SEL(x < F(0), e, F(1)), F(1) + e);
}

/* Small: x + x p(x^2).  Large: 1 - 2 / (e^2x + 1), whose quotient is so small
 * that e^2x may do with one product of log(2), and is added to 1 as it is
 * joined.  What a vector takes is how long it waits for each step, so powers of
 * r come from r^2. */
f32v DL(tanh_f32)(f32v x)
{
    f32v a = abs32(x), z = a * a, c, k, p, q, r, rr, s, t, big;

    p = F(-0x1.750e4ap-8f);
    p = H32(z, p, 0x1.51f904p-6f);
    p = H32(z, p, -0x1.b835a8p-5f);
    p = H32(z, p, 0x1.1106f6p-3f);
    p = H32(z, p, -0x1.555532p-2f);
    p = FMAF(a * z, p, a);
    c = SEL(a > F(10.0f), F(10.0f), a);
    t = FMAF(c, F(0x1.715476p+1f), F(ROUND32));
    k = t - F(ROUND32);
    r = FMAF(k, F(-0x1.62e43p-2f), c);
    rr = r * r; /* e^2r - 1 = 2r + r^2 q(r) for |r| <= log(2)/4 */
    q = H32(r, F(0x1.123efep-2f), 0x1.55552ap-1f);
    q = FMAF(rr, F(0x1.6cee46p-4f), q);
    q = FMAF(rr, q, H32(r, F(0x1.55548ap+0f), 2.0f));
    q = FMAF(rr, q, r + r);
    s = pow2_32(bits32(t) - U(1));
    big = F(1) - inverse32(FMAF(q, s, s + F(0.5f)));
    return flip32(SEL(a < F(0.625f), p, big), sign32(x));
}

/* Small: x + x p(x^2).  Large: by its tail. */
f32v DL(erf_f32)(f32v x)
{
    f32v a = abs32(x), z = a * a, p, e, s;
    u32v raw;

    p = F(-0x1.5508c6p-11f);
    p = H32(z, p, 0x1.4d0494p-8f);
    p = H32(z, p, -0x1.b76976p-6f);
    p = H32(z, p, 0x1.ce28p-4f);
    p = H32(z, p, -0x1.81273p-2f);
    p = H32(z, p, 0x1.06eba8p-3f);
    p = FMAF(a, p, a);
    e = exp_damped32(erf_tail32(a), &raw);
    s = pow2_32(raw);
    e = FMAF(-e, s, F(1) - s);
    return flip32(SEL(a < F(0.8125f), p, e), sign32(x));
}
