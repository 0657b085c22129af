/* log, log1p, cbrt, rsqrt, pow in f32. */
#include "dl_f32.h"
#include "dl_widths.h"

/* What log gives where it has no number: log(0), below 0, inf and NaN. */
DL_INLINE f32v log_edge32(f32v x, f32v y)
{
    f32v edge = SEL(x < F(0), F(NAN32), x + x);

    edge = SEL(x == F(0), F(-INF32), edge);
    return SEL((x > F(0)) & (x < F(INF32)), y, edge);
}

f32v DL(log_f32)(f32v x)
{
    m32 tiny = x < F(0x1p-126f);
    f32v k, m;
    i32v e;

    m = log_split32(SEL(tiny, x * F(0x1p23f), x), &e);
    k = CVT(e - SEL(tiny, I(23), I(0)), f32v);
    return log_edge32(x, log_join32(m - F(1), k));
}

f32v DL(log1p_f32)(f32v x)
{
    f32v u = F(1) + x, b = u - F(1), c, m, y;
    i32v e;

    c = (F(1) - (u - b)) + (x - b); /* what the sum lost */
    m = log_split32(u, &e);
    c = c * float32((U(127) - unsigned32(e)) << U(23));
    c = SEL(e > I(100), F(0), c);
    y = log_edge32(u, log_join32((m - F(1)) + c, CVT(e, f32v)));
    return SEL(abs32(x) < F(0x1p-25f), x, y);
}

f32v DL(rsqrt_f32)(f32v x)
{
    return F(1) / SQRTF(x);
}

/* A third of the exponent, two steps of Halley, one of Newton whose residual
 * is exact. */
f32v DL(cbrt_f32)(f32v x)
{
    f32v a = abs32(x), s = F(1), t, c, h, l, p, q;
    m32 big = a > F(0x1p60f), small = a < F(0x1p-60f);

    a = a * SEL(big, F(0x1p-60f), SEL(small, F(0x1p90f), F(1)));
    s = SEL(big, F(0x1p20f), SEL(small, F(0x1p-30f), s));
    t = float32(bits32(a) / U(3) + U(0x2a5137a0));
    c = t * t * t;
    t = t * ((c + (a + a)) / (c + c + a));
    c = t * t * t;
    t = t * ((c + (a + a)) / (c + c + a));
    h = t * t;
    l = FMAF(t, t, -h);
    p = h * t;
    q = FMAF(h, t, -p) + l * t;
    t = t + ((a - p) - q) / (F(3) * h);
    t = flip32(t * s, sign32(x));
    return SEL((abs32(x) < F(INF32)) & (x != F(0)), t, x + x);
}

/* log2 of a > 0 as a sum of two; see pow. */
DL_INLINE f32v log2_pair32(f32v a, f32v *lo)
{
    m32 tiny = a < F(0x1p-126f);
    f32v m, f, d, dl, s, sl, w, wl, c, cl, h, l, t3, k, q, sum;
    u32v i;
    i32v e;

    i = bits32(SEL(tiny, a * F(0x1p23f), a));
    e = signed32(i - U(0x3f3504f3)) >> I(23);
    m = float32(i - (unsigned32(e) << U(23)));
    k = CVT(e - SEL(tiny, I(23), I(0)), f32v);
    f = m - F(1);
    d = m + F(1);
    dl = m - (d - F(1));
    s = f / d; /* log(m) = 2 atanh(s) = 2 s + 2/3 s^3 + s^5 q(s^2) */
    sl = (FMAF(-s, d, f) - s * dl) / d;
    w = s * s;
    wl = FMAF(s, s, -w) + (s + s) * sl;
    c = w * s;
    cl = FMAF(w, s, -c) + (w * sl + wl * s);
    q = F(0x1.908396p-3f);
    q = H32(w, q, 0x1.c63daap-3f);
    q = H32(w, q, 0x1.2493b6p-2f);
    q = H32(w, q, 0x1.999998p-2f);
    q = c * w * (q * F(0x1.715476p+0f));
    h = s * F(0x1.715476p+1f);
    l = FMAF(s, F(0x1.715476p+1f), -h) +
        (sl * F(0x1.715476p+1f) + s * F(0x1.4ae0cp-25f));
    t3 = c * F(0x1.ec709ep-1f);
    l = l + (FMAF(c, F(0x1.ec709ep-1f), -t3) +
             (cl * F(0x1.ec709ep-1f) - c * F(0x1.e2fe02p-28f)));
    l = l + q;
    sum = h + t3;
    l = l + ((h - sum) + t3);
    h = k + sum;
    l = l + ((k - h) + sum);
    sum = h + l;
    *lo = (h - sum) + l;
    return sum;
}

/* (2^r - 1) / r for |r| <= 1/2. */
DL_INLINE f32v exp2_core32(f32v r)
{
    f32v q = F(0x1.e25042p-17f);

    q = H32(r, q, 0x1.440f0cp-13f);
    q = H32(r, q, 0x1.5da45p-10f);
    q = H32(r, q, 0x1.3b2a5cp-7f);
    q = H32(r, q, 0x1.c6b06ep-5f);
    q = H32(r, q, 0x1.ebfbep-3f);
    return H32(r, q, 0x1.62e43p-1f);
}

#define WIDTH     32
#define FAR_POWER 200.0f /* beyond it all is 0 or infinite */
#include "dl_pow_body.h"
