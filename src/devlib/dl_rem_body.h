/* rem in one of the widths (dl_widths.h).  The loop runs until every lane is
 * done. */
NUM FN(rem)(NUM x, NUM y)
{
    NUM a = OF(abs)(x), b = OF(abs)(y), r, mb, q;
    MASK bad = (a == N(OF(INF))) | (b == N(0)) | (x != x) | (y != y);
    MASK work = (a >= b) & !bad & (b < N(OF(INF)));
    INT ea, eb, left, k;

    mb = OF(whole)(SEL(work, b, N(1)), &eb);
    r = OF(whole)(SEL(work, a, N(1)), &ea);
    left = ea - eb;
    r = SEL(r >= mb, r - mb, r); /* once, at the highest place */
    while (any(left > K(0))) {
        k = SEL(left > K(STEP), K(STEP), left);
        k = SEL(k < K(0), K(0), k);
        r = r * OF(pow2_)(OF(unsigned)(k));
        q = OF(FLOOR)(r / mb);
        r = OF(FMA)(-q, mb, r); /* exact, one mb off at most */
        r = SEL(r < N(0), r + mb, r);
        r = SEL(r >= mb, r - mb, r);
        left = left - k;
    }
    r = SEL(work, OF(scale)(r, OF(unsigned)(eb)), a);
    return SEL(bad, N(OF(NAN)), OF(flip)(r, OF(sign)(x)));
}

#undef WIDTH
#undef STEP
