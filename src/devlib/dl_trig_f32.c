/* sin, cos, tan, atan2 in f32. */
#include "dl_widths.h"

/* a mod pi/2 for a finite a >= 2^16, by Payne and Hanek: 96 bits of 2/pi from
 * where they matter, times the mantissa, modulo 4 quadrants.  One lane at a
 * time: so rare that the size of the code matters more. */
DL_INLINE float reduce_far32(float a, float *lo, uint32_t *n)
{
    uint32_t i, m, at, sh, back, w0, w1, w2, w3, w4, w5, w6;
    uint64_t p;
    int64_t frac;
    float h, l, r;

    __builtin_memcpy(&i, &a, sizeof i);
    m = (i & 0x7fffff) | 0x800000;
    at = (i >> 23) - 120;
    sh = at & 31;
    back = 31 - sh;
    w4 = 0xf534ddc0; /* 2/pi with 32 zeros before it, at 32-bit steps */
    w5 = 0xdb629599;
    w6 = 0x3c439041;
    w0 = at & 128 ? w4 : 0;
    w1 = at & 128 ? w5 : 0xa2f9836e;
    w2 = at & 128 ? w6 : 0x4e441529;
    w3 = at & 128 ? 0xfe5163ab : 0xfc2757d1;
    w0 = at & 64 ? w2 : w0;
    w1 = at & 64 ? w3 : w1;
    w2 = at & 64 ? w4 : w2;
    w3 = at & 64 ? w5 : w3;
    w4 = at & 64 ? w6 : w4;
    w0 = at & 32 ? w1 : w0;
    w1 = at & 32 ? w2 : w1;
    w2 = at & 32 ? w3 : w2;
    w3 = at & 32 ? w4 : w3;
    w0 = (w0 << sh) | ((w1 >> 1) >> back);
    w1 = (w1 << sh) | ((w2 >> 1) >> back);
    w2 = (w2 << sh) | ((w3 >> 1) >> back);
    p = ((uint64_t)(m * w0) << 32) + (uint64_t)m * w1 +
        (((uint64_t)m * w2) >> 32);
    *n = (uint32_t)((p + (1ull << 61)) >> 62);
    frac = (int64_t)(p - ((uint64_t)*n << 62));
    h = (float)frac;
    l = (float)(frac - (int64_t)h);
    r = h * 0x1.921fb6p-62f;
    l = __builtin_fmaf(h, 0x1.921fb6p-62f, -r) +
        (l * 0x1.921fb6p-62f - h * 0x1.777a5cp-87f);
    h = r + l;
    *lo = (r - h) + l;
    return h;
}

DL_INLINE f32v sin_core32(f32v r, f32v lo)
{
    f32v z = r * r, p = F(0x1.7b5848p-19f);

    p = H32(z, p, -0x1.a056a2p-13f);
    p = H32(z, p, 0x1.111172p-7f);
    p = H32(z, p, -0x1.555556p-3f);
    return r + FMAF(r * z, p, lo);
}

DL_INLINE f32v cos_core32(f32v r, f32v lo)
{
    f32v z = r * r, h = z * F(0.5f), w = F(1) - h, p = F(-0x1.34e502p-22f);

    p = H32(z, p, 0x1.a06d46p-16f);
    p = H32(z, p, -0x1.6c175ap-10f);
    p = H32(z, p, 0x1.555556p-5f);
    p = FMAF(z * z, p, -(r * lo));
    return w + (((F(1) - w) - h) + p);
}

/* q's arctangent, for |q| up to tan(pi/8). */
DL_INLINE f32v atan_core32(f32v q)
{
    f32v z = q * q, p = F(-0x1.f2b07cp-5f);

    p = H32(z, p, 0x1.b21b5cp-4f);
    p = H32(z, p, -0x1.23b928p-3f);
    p = H32(z, p, 0x1.9991dep-3f);
    p = H32(z, p, -0x1.55554ap-2f);
    return FMAF(q * z, p, q);
}

#define WIDTH       32
#define TWO_OVER_PI 0x1.45f306p-1f
#define PI_2        0x1.921fb6p+0f /* pi/2 is the sum of three */
#define PI_2_LOW    -0x1.777a5cp-25f
#define PI_2_LOWEST -0x1.ee59dap-50f
#define FAR         0x1p16f
#define TAN_PI_8    0x1.a8279ap-2f
#define LARGE       0x1p126f
#include "dl_trig_body.h"
