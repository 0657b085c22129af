/* pow in one of the widths (dl_widths.h). */

/* |x|^y = 2^(y log2|x|), the logarithm and the product as sums of two. */
DL_INLINE NUM OF(pow_core)(NUM a, NUM y)
{
    NUM h, l, p, pl, r;
    MASK far;
    BITS n;

    h = OF(log2_pair)(a, &l);
    p = y * h;
    pl = OF(FMA)(y, h, -p) + y * l;
    far = OF(abs)(p) > N(FAR_POWER);
    p = SEL(far, OF(flip)(N(FAR_POWER), OF(sign)(p)), p);
    pl = SEL(far, N(0), pl);
    r = p - OF(round)(p, N(1), &n) + pl;
    return OF(scale)(OF(FMA)(r, OF(exp2_core)(r), N(1)), n);
}

NUM FN(pow)(NUM x, NUM y)
{
    NUM a = OF(abs)(x), r, edge, half = y * N(0.5f);
    MASK whole = OF(FLOOR)(y) == y, odd = whole & (OF(FLOOR)(half) != half);
    MASK grows;
    BITS neg = SEL(odd, OF(sign)(x), B(0));

    r = OF(pow_core)(a, y);
    r = SEL((x < N(0)) & !whole, N(OF(NAN)), r);
    /* 0, inf, and an infinite y: all or nothing */
    grows = (a > N(1)) == (y > N(0));
    edge = SEL(grows, N(OF(INF)), N(0));
    edge = SEL(a == N(1), N(1), edge);
    r = SEL((a == N(0)) | (a == N(OF(INF))) | (OF(abs)(y) == N(OF(INF))), edge,
            r);
    r = OF(flip)(r, neg);
    r = SEL((x != x) | (y != y), x + y, r);
    return SEL((x == N(1)) | (y == N(0)), N(1), r);
}

#undef WIDTH
#undef FAR_POWER
