/* rem (C's fmod, exact) in f32 and f64.  Loops run until every lane is done. */
#include "dl.h"

/* a >= 0 as a whole number m < 2^24 (2^53) times 2^e. */
DL_INLINE f32v whole32(f32v a, i32v *e)
{
    m32 tiny = a < F(0x1p-126f);
    u32v i = bits32(SEL(tiny, a * F(0x1p24f), a));

    *e = signed32(i >> U(23)) - SEL(tiny, I(174), I(150));
    return CVT(signed32((i & U(0x7fffff)) | U(0x800000)), f32v);
}

DL_INLINE f64v whole64(f64v a, i64v *e)
{
    m64 tiny = a < D(0x1p-1022);
    u64v i = bits64(SEL(tiny, a * D(0x1p54), a));

    *e = signed64(i >> W(52)) - SEL(tiny, J(1129), J(1075));
    /* 2^52 + mantissa, without a conversion from 64 bits */
    return float64((i & W(0xfffffffffffff)) | W(0x4330000000000000));
}

f32v DL(rem_f32)(f32v x, f32v y)
{
    f32v a = abs32(x), b = abs32(y), r, mb, q;
    m32 bad = (a == F(INF32)) | (b == F(0)) | (x != x) | (y != y);
    m32 work = (a >= b) & !bad & (b < F(INF32));
    i32v ea, eb, left, k;

    mb = whole32(SEL(work, b, F(1)), &eb);
    r = whole32(SEL(work, a, F(1)), &ea);
    left = ea - eb;
    r = SEL(r >= mb, r - mb, r); /* once, at the highest place */
    while (any(left > I(0))) {
        k = SEL(left > I(22), I(22), left);
        k = SEL(k < I(0), I(0), k);
        r = r * pow2_32(unsigned32(k));
        q = FLOORF(r / mb);
        r = FMAF(-q, mb, r); /* exact, one mb off at most */
        r = SEL(r < F(0), r + mb, r);
        r = SEL(r >= mb, r - mb, r);
        left = left - k;
    }
    r = SEL(work, scale32(r, unsigned32(eb)), a);
    return SEL(bad, F(NAN32), flip32(r, sign32(x)));
}

f64v DL(rem_f64)(f64v x, f64v y)
{
    f64v a = abs64(x), b = abs64(y), r, mb, q;
    m64 bad = (a == D(INF64)) | (b == D(0)) | (x != x) | (y != y);
    m64 work = (a >= b) & !bad & (b < D(INF64));
    i64v ea, eb, left, k;

    mb = whole64(SEL(work, b, D(1)), &eb);
    r = whole64(SEL(work, a, D(1)), &ea);
    left = ea - eb;
    r = SEL(r >= mb, r - mb, r);
    while (any(left > J(0))) {
        k = SEL(left > J(51), J(51), left);
        k = SEL(k < J(0), J(0), k);
        r = r * pow2_64(unsigned64(k));
        q = FLOOR(r / mb);
        r = FMA(-q, mb, r);
        r = SEL(r < D(0), r + mb, r);
        r = SEL(r >= mb, r - mb, r);
        left = left - k;
    }
    r = SEL(work, scale64(r, unsigned64(eb)), a);
    return SEL(bad, D(NAN64), flip64(r, sign64(x)));
}
