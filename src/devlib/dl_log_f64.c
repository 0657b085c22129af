/* log, log1p, cbrt, rsqrt, pow in f64. */
#include "dl_f64.h"
#include "dl_widths.h"

DL_INLINE f64v log_edge64(f64v x, f64v y)
{
    f64v edge = SEL(x < D(0), D(NAN64), x + x);

    edge = SEL(x == D(0), D(-INF64), edge);
    return SEL((x > D(0)) & (x < D(INF64)), y, edge);
}

f64v DL(log_f64)(f64v x)
{
    m64 tiny = x < D(0x1p-1022);
    f64v k, m;
    i64v e;

    m = log_split64(SEL(tiny, x * D(0x1p54), x), &k, &e);
    k = k - SEL(tiny, D(54), D(0));
    return log_edge64(x, log_join64(m - D(1), k));
}

f64v DL(log1p_f64)(f64v x)
{
    f64v u = D(1) + x, b = u - D(1), c, m, k, y;
    i64v e;

    c = (D(1) - (u - b)) + (x - b); /* what the sum lost */
    m = log_split64(u, &k, &e);
    c = c * float64((W(1023) - unsigned64(e)) << W(52));
    c = SEL(k > D(1000), D(0), c);
    y = log_edge64(u, log_join64((m - D(1)) + c, k));
    return SEL(abs64(x) < D(0x1p-54), x, y);
}

f64v DL(rsqrt_f64)(f64v x)
{
    return D(1) / SQRT(x);
}

/* As in f32, from a third of the upper word. */
f64v DL(cbrt_f64)(f64v x)
{
    f64v a = abs64(x), s, t, c, h, l, p, q;
    m64 big = a > D(0x1p600), small = a < D(0x1p-600);
    u32v top;

    a = a * SEL(big, D(0x1p-600), SEL(small, D(0x1p600), D(1)));
    s = SEL(big, D(0x1p200), SEL(small, D(0x1p-200), D(1)));
    top = CVT(bits64(a) >> W(32), u32v) / U(3) + U(0x2a9f7893);
    t = float64(CVT(top, u64v) << W(32));
    c = t * t * t;
    t = t * ((c + (a + a)) / (c + c + a));
    c = t * t * t;
    t = t * ((c + (a + a)) / (c + c + a));
    c = t * t * t;
    t = t * ((c + (a + a)) / (c + c + a));
    h = t * t;
    l = FMA(t, t, -h);
    p = h * t;
    q = FMA(h, t, -p) + l * t;
    t = t + ((a - p) - q) / (D(3) * h);
    t = flip64(t * s, sign64(x));
    return SEL((abs64(x) < D(INF64)) & (x != D(0)), t, x + x);
}

/* log2 of a > 0 as a sum of two; see pow. */
DL_INLINE f64v log2_pair64(f64v a, f64v *lo)
{
    m64 tiny = a < D(0x1p-1022);
    f64v m, f, d, dl, s, sl, w, wl, c, cl, h, l, t3, k, q, sum;
    i64v e;

    m = log_split64(SEL(tiny, a * D(0x1p54), a), &k, &e);
    k = k - SEL(tiny, D(54), D(0));
    f = m - D(1);
    d = m + D(1);
    dl = m - (d - D(1));
    s = f / d; /* log(m) = 2 atanh(s) = 2 s + 2/3 s^3 + s^5 q(s^2) */
    sl = (FMA(-s, d, f) - s * dl) / d;
    w = s * s;
    wl = FMA(s, s, -w) + (s + s) * sl;
    c = w * s;
    cl = FMA(w, s, -c) + (w * sl + wl * s);
    q = D(0x1.0ee4ac28a5f6ap-3);
    q = H64(w, q, 0x1.0f6ed0687069dp-3);
    q = H64(w, q, 0x1.3b1fa3998320fp-3);
    q = H64(w, q, 0x1.745ce6030ec97p-3);
    q = H64(w, q, 0x1.c71c7238615f7p-3);
    q = H64(w, q, 0x1.2492492450410p-2);
    q = H64(w, q, 0x1.9999999999b6ep-2);
    q = c * w * (q * D(0x1.71547652b82fep+0));
    h = s * D(0x1.71547652b82fep+1);
    l = FMA(s, D(0x1.71547652b82fep+1), -h) +
        (sl * D(0x1.71547652b82fep+1) + s * D(0x1.777d0ffda0d24p-55));
    t3 = c * D(0x1.ec709dc3a03fdp-1);
    l = l + (FMA(c, D(0x1.ec709dc3a03fdp-1), -t3) +
             (cl * D(0x1.ec709dc3a03fdp-1) + c * D(0x1.d27f05548af0cp-55)));
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
DL_INLINE f64v exp2_core64(f64v r)
{
    f64v q = D(0x1.e8d1b71e457f6p-35);

    q = H64(r, q, 0x1.ed19ca4a3aeccp-32);
    q = H64(r, q, 0x1.e34bd82d4cba4p-28);
    q = H64(r, q, 0x1.b522c390a3078p-24);
    q = H64(r, q, 0x1.62c08c66f1fb5p-20);
    q = H64(r, q, 0x1.ffcbfd7c6d773p-17);
    q = H64(r, q, 0x1.430912de0a324p-13);
    q = H64(r, q, 0x1.5d87fe786a9cep-10);
    q = H64(r, q, 0x1.3b2ab6fbaa9e0p-7);
    q = H64(r, q, 0x1.c6b08d704a1fbp-5);
    q = H64(r, q, 0x1.ebfbdff82c575p-3);
    return H64(r, q, 0x1.62e42fefa39efp-1);
}

#define WIDTH     64
#define FAR_POWER 1200.0 /* beyond it all is 0 or infinite */
#include "dl_pow_body.h"
