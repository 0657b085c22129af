/* exp, expm1, logistic, tanh, erf in f64. */
#include "dl_f64.h"

f64v DL(exp_f64)(f64v x)
{
    return exp64(x);
}

DL_INLINE f64v expm1_64(f64v x)
{
    f64v c, p, t;
    u64v n;

    c = SEL(x > D(710.0), D(710.0), x);
    c = SEL(c < D(-40.0), D(-40.0), c);
    p = exp_reduce64(c, &n);
    t = pow2_64(n - W(1));
    p = FMA(t, p, t - D(0.5)) * D(2);
    return SEL(abs64(x) < D(0x1p-54), x, p);
}

f64v DL(expm1_f64)(f64v x)
{
    return expm1_64(x);
}

f64v DL(logistic_f64)(f64v x)
{
    f64v e = exp64(float64(bits64(x) | W(0x8000000000000000)));

    return SEL(x < D(0), e, D(1)) / (D(1) + e);
}

f64v DL(tanh_f64)(f64v x)
{
    f64v a = abs64(x), e, q;
    m64 big = a > D(0.35);

    e = SEL(a > D(20.0), D(20.0), a);
    e = expm1_64(e + e);
    q = SEL(big, D(2), e) / (e + D(2));
    return flip64(SEL(big, D(1) - q, q), sign64(x));
}

/* Small: x + x p(x^2).  Large: 1 - exp(-x^2) g((x - 2) / (x + 2)). */
f64v DL(erf_f64)(f64v x)
{
    f64v a = abs64(x), z = a * a, p, c, t, g;

    p = D(0x1.05799e7b664bap-34);
    p = H64(z, p, -0x1.386abb8690295p-30);
    p = H64(z, p, 0x1.f7a4103901982p-27);
    p = H64(z, p, -0x1.5f1d368cb4a7dp-23);
    p = H64(z, p, 0x1.b9def196b6996p-20);
    p = H64(z, p, -0x1.f4d1df38a670ap-17);
    p = H64(z, p, 0x1.f9a321a1140bfp-14);
    p = H64(z, p, -0x1.c02db3d8ecc2fp-11);
    p = H64(z, p, 0x1.565bcd0db02bep-8);
    p = H64(z, p, -0x1.b82ce3128499bp-6);
    p = H64(z, p, 0x1.ce2f21a042b20p-4);
    p = H64(z, p, -0x1.812746b0379e6p-2);
    p = H64(z, p, 0x1.06eba8214db69p-3);
    p = FMA(a, p, a);
    c = SEL(a > D(6.0), D(6.0), a);
    t = (c - D(2)) / (c + D(2));
    g = D(0x1.cb1196dabf38ap-21);
    g = H64(t, g, -0x1.611d87921d15ap-21);
    g = H64(t, g, -0x1.e0cd5e74e63c5p-17);
    g = H64(t, g, -0x1.cb772821d06b4p-16);
    g = H64(t, g, 0x1.cf5607133f842p-16);
    g = H64(t, g, 0x1.6dabd5207aa59p-13);
    g = H64(t, g, 0x1.6d560066712dfp-15);
    g = H64(t, g, -0x1.016b690ba6ff8p-10);
    g = H64(t, g, -0x1.bc25a329036bep-11);
    g = H64(t, g, 0x1.ca95ed64d6912p-8);
    g = H64(t, g, 0x1.e9471598ce219p-9);
    g = H64(t, g, -0x1.437f0b68c26bcp-4);
    g = H64(t, g, 0x1.eeea7dc8a77efp-3);
    g = H64(t, g, -0x1.b57034efd3f71p-2);
    g = H64(t, g, 0x1.058671b52c776p-2);
    g = D(1) - exp64(-(c * c)) * g;
    return flip64(SEL(a < D(1), p, g), sign64(x));
}
