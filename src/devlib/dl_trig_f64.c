/* sin, cos, tan, atan2 in f64. */
#include "dl_widths.h"

/* Upper half of a 64 by 64 bit product, from 32-bit pieces. */
DL_INLINE uint64_t mul_high(uint64_t a, uint64_t b)
{
    uint64_t m = 0xffffffff, al = a & m, ah = a >> 32, bl = b & m, bh = b >> 32,
             x = al * bh, y = ah * bl,
             mid = ((al * bl) >> 32) + (x & m) + (y & m);

    return ah * bh + (x >> 32) + (y >> 32) + (mid >> 32);
}

#define STEP(i, j) w##i = b ? w##j : w##i

/* The 192 bits of 2/pi from bit `at` on, 64 zeros standing before them. */
DL_INLINE void two_over_pi(uint64_t at, uint64_t out[3])
{
    uint64_t sh = at & 63, back = 63 - sh, b = at & 1024;
    uint64_t w0 = 0, w1 = 0xa2f9836e4e441529, w2 = 0xfc2757d1f534ddc0,
             w3 = 0xdb6295993c439041, w4 = 0xfe5163abdebbc561,
             w5 = 0xb7246e3a424dd2e0, w6 = 0x06492eea09d1921c,
             w7 = 0xfe1deb1cb129a73e, w8 = 0xe88235f52ebb4484,
             w9 = 0xe99c7026b45f7e41, w10 = 0x3991d639835339f4,
             w11 = 0x9c845f8bbdf9283b, w12 = 0x1ff897ffde05980f,
             w13 = 0xef2f118b5a0a6d1f, w14 = 0x6d367ecf27cb09b7,
             w15 = 0x4f463f669e5fea2d, w16 = 0x7527bac7ebe5f17b,
             w17 = 0x3d0739f78a5292ea, w18 = 0x6bfb5fb11f8d5d08,
             w19 = 0x56033046fc7b6bab;

    STEP(0, 16), STEP(1, 17), STEP(2, 18), STEP(3, 19);
    b = at & 512;
    STEP(0, 8), STEP(1, 9), STEP(2, 10), STEP(3, 11), STEP(4, 12);
    STEP(5, 13), STEP(6, 14), STEP(7, 15), STEP(8, 16), STEP(9, 17);
    STEP(10, 18);
    b = at & 256;
    STEP(0, 4), STEP(1, 5), STEP(2, 6), STEP(3, 7), STEP(4, 8), STEP(5, 9);
    STEP(6, 10);
    b = at & 128;
    STEP(0, 2), STEP(1, 3), STEP(2, 4), STEP(3, 5), STEP(4, 6);
    b = at & 64;
    STEP(0, 1), STEP(1, 2), STEP(2, 3), STEP(3, 4);
    out[0] = (w0 << sh) | ((w1 >> 1) >> back);
    out[1] = (w1 << sh) | ((w2 >> 1) >> back);
    out[2] = (w2 << sh) | ((w3 >> 1) >> back);
}

/* a mod pi/2 for a finite a >= 2^20, by Payne and Hanek, one lane at a time. */
DL_INLINE double reduce_far64(double a, double *lo, uint64_t *n)
{
    uint64_t i, v[3], hi, low, mid, m;
    double x, y, s, r, l, p, sign;

    __builtin_memcpy(&i, &a, sizeof i);
    m = (i & 0xfffffffffffff) | 0x10000000000000;
    two_over_pi((i >> 52) - 1013, v);
    mid = m * v[1];
    low = mid + mul_high(m, v[2]);
    hi = m * v[0] + mul_high(m, v[1]) + (low < mid);
    *n = (hi + (1ull << 61)) >> 62;
    hi = hi - (*n << 62); /* quadrants times 2^62, signed; low below */
    sign = hi >> 63 ? -1.0 : 1.0;
    if (hi >> 63) {
        hi = ~hi + (low == 0);
        low = -low;
    }
    x = (double)(uint32_t)(hi >> 32) * 0x1p32;
    y = (double)(uint32_t)hi;
    s = x + y;
    l = (x - s) + y;
    l = l + ((double)(uint32_t)(low >> 32) * 0x1p-32 +
             (double)(uint32_t)low * 0x1p-64);
    x = s + l;
    l = (s - x) + l;
    p = x * 0x1.921fb54442d18p-62;
    r = __builtin_fma(x, 0x1.921fb54442d18p-62, -p) +
        (l * 0x1.921fb54442d18p-62 + x * 0x1.1a62633145c07p-116);
    s = p + r;
    *lo = ((p - s) + r) * sign;
    return s * sign;
}

DL_INLINE f64v sin_core64(f64v r, f64v lo)
{
    f64v z = r * r, p = D(-0x1.a1219b69af9fep-41);

    p = H64(z, p, 0x1.610bcb770a8a3p-33);
    p = H64(z, p, -0x1.ae642f18c2adcp-26);
    p = H64(z, p, 0x1.71de3a3560d53p-19);
    p = H64(z, p, -0x1.a01a019fff4aap-13);
    p = H64(z, p, 0x1.111111111106cp-7);
    p = H64(z, p, -0x1.5555555555555p-3);
    return r + FMA(r * z, p, lo);
}

DL_INLINE f64v cos_core64(f64v r, f64v lo)
{
    f64v z = r * r, h = z * D(0.5), w = D(1) - h;
    f64v p = D(0x1.9f04a27e895efp-45);

    p = H64(z, p, -0x1.9376fa58ea79ep-37);
    p = H64(z, p, 0x1.1eed7185b9c29p-29);
    p = H64(z, p, -0x1.27e4fb5b96d04p-22);
    p = H64(z, p, 0x1.a01a019ffdb6ap-16);
    p = H64(z, p, -0x1.6c16c16c16b34p-10);
    p = H64(z, p, 0x1.5555555555555p-5);
    p = FMA(z * z, p, -(r * lo));
    return w + (((D(1) - w) - h) + p);
}

/* q's arctangent, for |q| up to tan(pi/8). */
DL_INLINE f64v atan_core64(f64v q)
{
    f64v z = q * q, p = D(0x1.e84d9f175e226p-7);

    p = H64(z, p, -0x1.0fd57bc1eb277p-5);
    p = H64(z, p, 0x1.6fe4fae7d3504p-5);
    p = H64(z, p, -0x1.ab3bf50cdb222p-5);
    p = H64(z, p, 0x1.e167bb6a6a3c9p-5);
    p = H64(z, p, -0x1.110beb7544d71p-4);
    p = H64(z, p, 0x1.3b1364effb97cp-4);
    p = H64(z, p, -0x1.745d145045b6bp-4);
    p = H64(z, p, 0x1.c71c71b458c3ap-4);
    p = H64(z, p, -0x1.249249246f58cp-3);
    p = H64(z, p, 0x1.9999999999584p-3);
    p = H64(z, p, -0x1.5555555555554p-2);
    return FMA(q * z, p, q);
}

#define WIDTH       64
#define TWO_OVER_PI 0x1.45f306dc9c883p-1
#define PI_2        0x1.921fb54442d18p+0 /* pi/2 is the sum of three */
#define PI_2_LOW    0x1.1a62633145c07p-54
#define PI_2_LOWEST -0x1.f1976b7ed8fbcp-110
#define FAR         0x1p20
#define TAN_PI_8    0x1.a827999fcef34p-2
#define LARGE       0x1p1022
#include "dl_trig_body.h"
