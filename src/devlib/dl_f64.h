/* exp and log in f64, as other functions use them. */
#ifndef DL_F64_H
#define DL_F64_H

#include "dl.h"

/* e^r - 1 for |r| <= log(2)/2; x = k log(2) + r. */
DL_INLINE f64v exp_reduce64(f64v x, u64v *n)
{
    f64v k = round64(x, D(0x1.71547652b82fep+0), n), r, q;

    r = FMA(k, D(-0x1.62e42fefa39efp-1), x);
    r = FMA(k, D(-0x1.abc9e3b39803fp-56), r);
    q = D(0x1.53d363d3c955dp-33);
    q = H64(r, q, 0x1.1f8e73bbf58ccp-29);
    q = H64(r, q, 0x1.ae72da09c00d8p-26);
    q = H64(r, q, 0x1.27e4cc16d9dbfp-22);
    q = H64(r, q, 0x1.71de34f8732f2p-19);
    q = H64(r, q, 0x1.a01a01aca8ce8p-16);
    q = H64(r, q, 0x1.a01a01a1d388ap-13);
    q = H64(r, q, 0x1.6c16c16c15523p-10);
    q = H64(r, q, 0x1.1111111110d48p-7);
    q = H64(r, q, 0x1.5555555555557p-5);
    q = H64(r, q, 0x1.5555555555556p-3);
    q = H64(r, q, 0.5);
    return FMA(r * r, q, r);
}

/* (p + 1) 2^n for n from -1076, as exp_join32 does it: the second step takes a
 * thirty-second of n, less 19. */
DL_INLINE f64v exp_join64(f64v p, u64v n)
{
    u64v part = n >> W(5);

    return (p + D(1)) * pow2_64(n - part + W(19)) * pow2_64(part - W(19));
}

/* Below -1022 log(2) it is 0, as exp32. */
DL_INLINE f64v exp64(f64v x)
{
    f64v p;
    u64v n;

    x = SEL(x > D(710.0), D(710.0), x);
    x = SEL(x < D(-0x1.6232bdd7abcd2p+9), D(-746.0), x);
    p = exp_reduce64(x, &n);
    return exp_join64(p, n);
}

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)) for normal x > 0; e as a float:
 * its bits below a big one, for want of a conversion from 64 bits. */
DL_INLINE f64v log_split64(f64v x, f64v *k, i64v *e)
{
    u64v i = bits64(x), up = i - W(0x3fe6a09e667f3bcd);
    u64v biased = (up >> W(52)) ^ W(0x800); /* e + 2048, e of 12 bits */

    *k = float64(biased | W(0x4330000000000000)) - D(0x1p52 + 2048.0);
    *e = signed64(biased - W(2048));
    return float64(i - (unsigned64(*e) << W(52)));
}

/* log(1 + f) + k log(2), 1 + f in [sqrt(1/2), sqrt(2)). */
DL_INLINE f64v log_join64(f64v f, f64v k)
{
    f64v s = f / (D(2) + f), w = s * s, h = D(0.5) * f * f, r, t;

    r = D(0x1.0f9846702ea76p-3);
    r = H64(w, r, 0x1.0f58968de25afp-3);
    r = H64(w, r, 0x1.3b20c2f230391p-3);
    r = H64(w, r, 0x1.745cde6a4a49cp-3);
    r = H64(w, r, 0x1.c71c7255084b0p-3);
    r = H64(w, r, 0x1.2492492432c47p-2);
    r = H64(w, r, 0x1.9999999999d49p-2);
    r = H64(w, r, 0x1.5555555555555p-1);
    r = s * FMA(w, r, h);
    r = FMA(k, D(0x1.ef35793c76730p-45), r) - h;
    t = k * D(0x1.62e42fefa3800p-1); /* exact */
    s = t + f;
    return s + (((t - s) + f) + r);
}

#endif
