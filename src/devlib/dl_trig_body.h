/* sin, cos, tan and atan2 in one of the widths (dl_widths.h), of a quadrant's
 * polynomials. */

/* a = n pi/2 + r + lo, |r| <= pi/4 and a little. */
DL_INLINE NUM OF(reduce)(NUM a, NUM *lo, BITS *n)
{
    NUM k = OF(round)(a, N(TWO_OVER_PI), n), r1, r2, r, l, p, b;
    MASK far = (a >= N(FAR)) & (a < N(OF(INF)));

    r1 = OF(FMA)(k, N(-PI_2), a); /* exact */
    p = k * N(-PI_2_LOW);
    r2 = r1 + p;
    b = r2 - r1;
    l = (r1 - (r2 - b)) + (p - b); /* what the sum and the product lost */
    l = l + OF(FMA)(k, N(-PI_2_LOW), -p);
    l = OF(FMA)(k, N(-PI_2_LOWEST), l);
    r = r2 + l;
    *lo = (r2 - r) + l;
    if (any(far))
        EACH_LANE(k_, far)
        {
            OF(one) fl;
            DL_CAT3(uint, WIDTH, _t) fn;

            LANE(r, k_) = OF(reduce_far)(LANE(a, k_), &fl, &fn);
            LANE(*lo, k_) = fl;
            LANE(*n, k_) = fn;
        }
    return r;
}

NUM FN(sin)(NUM x)
{
    NUM lo, r, y;
    BITS n;

    r = OF(reduce)(OF(abs)(x), &lo, &n);
    y = SEL((n & B(1)) != B(0), OF(cos_core)(r, lo), OF(sin_core)(r, lo));
    return OF(flip)(y, ((n & B(2)) << B(WIDTH - 2)) ^ OF(sign)(x));
}

NUM FN(cos)(NUM x)
{
    NUM lo, r, y;
    BITS n;

    r = OF(reduce)(OF(abs)(x), &lo, &n);
    y = SEL((n & B(1)) != B(0), OF(sin_core)(r, lo), OF(cos_core)(r, lo));
    return OF(flip)(y, ((n + B(1)) & B(2)) << B(WIDTH - 2));
}

NUM FN(tan)(NUM x)
{
    NUM lo, r, s, c;
    MASK odd;
    BITS n;

    r = OF(reduce)(OF(abs)(x), &lo, &n);
    s = OF(sin_core)(r, lo);
    c = OF(cos_core)(r, lo);
    odd = (n & B(1)) != B(0);
    return OF(flip)(SEL(odd, c, s) / SEL(odd, s, c),
                    (n << B(WIDTH - 1)) ^ OF(sign)(x));
}

NUM FN(atan2)(NUM y, NUM x)
{
    NUM ay = OF(abs)(y), ax = OF(abs)(x), a, b, sc, q, p, c;
    MASK swap = ay > ax, same = ay == ax, mid;
    BITS flip;

    a = SEL(swap, ax, ay);
    b = SEL(swap, ay, ax);
    sc = SEL(b > N(LARGE), N(0.25f), N(1));
    a = a * sc;
    b = b * sc;
    /* above tan(pi/8): atan(a/b) = pi/4 + atan((a - b) / (a + b)) */
    mid = (a > b * N(TAN_PI_8)) | (same & (b > N(0)));
    q = SEL(mid, a - b, a) / SEL(mid, a + b, b);
    q = SEL(same, N(0), q);
    p = OF(atan_core)(q);
    /* c quarters of pi, and p added or taken away */
    c = SEL(mid, N(1), N(0));
    c = SEL(swap, N(2) - c, c);
    flip = SEL(swap, B(1) << B(WIDTH - 1), B(0));
    c = SEL(OF(sign)(x) != B(0), N(4) - c, c);
    p = OF(flip)(p, flip ^ OF(sign)(x));
    p = OF(FMA)(c, N(PI_2 / 2), OF(FMA)(c, N(PI_2_LOW / 2), p));
    p = OF(flip)(OF(abs)(p), OF(sign)(y));
    return SEL((x != x) | (y != y), x + y, p);
}

#undef WIDTH
#undef TWO_OVER_PI
#undef PI_2
#undef PI_2_LOW
#undef PI_2_LOWEST
#undef FAR
#undef TAN_PI_8
#undef LARGE
