/* rem (C's fmod, exact) in f32 and f64. */
#include "dl_widths.h"

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

#define WIDTH 32
#define STEP  22 /* binary places that a turn takes */
#include "dl_rem_body.h"

#define WIDTH 64
#define STEP  51
#include "dl_rem_body.h"
