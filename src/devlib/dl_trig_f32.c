/* sin, cos, tan, atan2 in f32. */
#include "dl.h"

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

/* a = n pi/2 + r + lo, |r| <= pi/4 and a little. */
DL_INLINE f32v reduce32(f32v a, f32v *lo, u32v *n)
{
    f32v k = round32(a, F(0x1.45f306p-1f), n), r1, r2, r, l, p, b;
    m32 far = (a >= F(0x1p16f)) & (a < F(INF32));

    r1 = FMAF(k, F(-0x1.921fb6p+0f), a); /* exact */
    p = k * F(0x1.777a5cp-25f);
    r2 = r1 + p;
    b = r2 - r1;
    l = (r1 - (r2 - b)) + (p - b); /* what the sum and the product lost */
    l = l + FMAF(k, F(0x1.777a5cp-25f), -p);
    l = FMAF(k, F(0x1.ee59dap-50f), l);
    r = r2 + l;
    *lo = (r2 - r) + l;
    if (any(far))
        EACH_LANE(k_, far)
        {
            float fl;
            uint32_t fn;

            LANE(r, k_) = reduce_far32(LANE(a, k_), &fl, &fn);
            LANE(*lo, k_) = fl;
            LANE(*n, k_) = fn;
        }
    return r;
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

f32v DL(sin_f32)(f32v x)
{
    f32v lo, r, y;
    u32v n;

    r = reduce32(abs32(x), &lo, &n);
    y = SEL((n & U(1)) != U(0), cos_core32(r, lo), sin_core32(r, lo));
    return flip32(y, ((n & U(2)) << U(30)) ^ sign32(x));
}

f32v DL(cos_f32)(f32v x)
{
    f32v lo, r, y;
    u32v n;

    r = reduce32(abs32(x), &lo, &n);
    y = SEL((n & U(1)) != U(0), sin_core32(r, lo), cos_core32(r, lo));
    return flip32(y, ((n + U(1)) & U(2)) << U(30));
}

f32v DL(tan_f32)(f32v x)
{
    f32v lo, r, s, c;
    m32 odd;
    u32v n;

    r = reduce32(abs32(x), &lo, &n);
    s = sin_core32(r, lo);
    c = cos_core32(r, lo);
    odd = (n & U(1)) != U(0);
    return flip32(SEL(odd, c, s) / SEL(odd, s, c), (n << U(31)) ^ sign32(x));
}

f32v DL(atan2_f32)(f32v y, f32v x)
{
    f32v ay = abs32(y), ax = abs32(x), a, b, sc, q, z, p, c;
    m32 swap = ay > ax, same = ay == ax, mid;
    u32v flip;

    a = SEL(swap, ax, ay);
    b = SEL(swap, ay, ax);
    sc = SEL(b > F(0x1p126f), F(0.25f), F(1));
    a = a * sc;
    b = b * sc;
    /* above tan(pi/8): atan(a/b) = pi/4 + atan((a - b) / (a + b)) */
    mid = (a > b * F(0x1.a8279ap-2f)) | (same & (b > F(0)));
    q = SEL(mid, a - b, a) / SEL(mid, a + b, b);
    q = SEL(same, F(0), q);
    z = q * q;
    p = F(-0x1.f2b07cp-5f);
    p = H32(z, p, 0x1.b21b5cp-4f);
    p = H32(z, p, -0x1.23b928p-3f);
    p = H32(z, p, 0x1.9991dep-3f);
    p = H32(z, p, -0x1.55554ap-2f);
    p = FMAF(q * z, p, q);
    /* c quarters of pi, and p added or taken away */
    c = SEL(mid, F(1), F(0));
    c = SEL(swap, F(2) - c, c);
    flip = SEL(swap, U(0x80000000), U(0));
    c = SEL(sign32(x) != U(0), F(4) - c, c);
    p = flip32(p, flip ^ sign32(x));
    p = FMAF(c, F(0x1.921fb6p-1f), FMAF(c, F(-0x1.777a5cp-26f), p));
    p = flip32(abs32(p), sign32(y));
    return SEL((x != x) | (y != y), x + y, p);
}
