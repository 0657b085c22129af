/* Reflectors, 1 - tau v v^H with v[0] = 1, as LAPACK makes them: found, applied
 * from both sides, multiplied. */
#ifndef DL_LA_REFLECT_H
#define DL_LA_REFLECT_H

#include "dl_la.h"

/* What n numbers are divided by where the sum of their squares, `below`, is
 * nothing or too much; else 1. */
DL_INLINE R reflect_factor(int64_t n, DL_GLOBAL const T *x, int64_t step,
                           R below)
{
    M extreme = (M)(below < LEAST / EPS) | (M)NOT(below < 1 / LEAST);
    R most = 0;

    for (int64_t i = 0; ANY(extreme) && i < n; i++) {
        most = max_of(most, ABS(re(x[i * step])));
        most = max_of(most, ABS(im(x[i * step])));
    }
    return SEL(extreme & (M)(most > 0) & is_finite(most), most, (R)1);
}

/* The sum of the squares of all but the first, as if in twice the precision
 * (Ogita, Rump and Oishi, "Accurate sum and dot product", 2005): a reflector is
 * as orthogonal as its length is right. */
DL_INLINE R squares(int64_t n, DL_GLOBAL const T *x, int64_t step)
{
    R sum = 0, rest = 0;

    for (int64_t i = 1; i < n; i++) {
        const R part[2] = {re(x[i * step]), im(x[i * step])};

        for (int k = 0; k < (DL_IS_COMPLEX ? 2 : 1); k++) {
            R p = part[k] * part[k], was = sum, more;

            sum = was + p;
            more = sum - was;
            rest += FMA(part[k], part[k], -p) +
                    ((was - (sum - more)) + (p - more));
        }
    }
    return sum + rest;
}

/* n numbers `step` apart become (beta, v[1], ...); beta is real and
 * (1 - conj(tau) v v^H) x = (beta, 0, ...).  Returns tau. */
DL_PART T reflect(int64_t n, DL_GLOBAL T *x, int64_t step)
{
    R below, beta, factor;
    T alpha, by, tau;
    M none;

    if (n < 1)
        return make(0);
    below = squares(n, x, step);
    factor = reflect_factor(n, x, step, below);
    if (ANY(factor != 1)) {
        for (int64_t i = 0; i < n; i++)
            x[i * step] = over(x[i * step], factor);
        below = squares(n, x, step);
    }
    alpha = x[0];
    none = (M)(below == 0) & (M)(im(alpha) == 0);
    if (ALL(none)) {
        x[0] = scale(alpha, factor);
        return make(0);
    }
    beta = -with_sign(length2(abs_of(alpha), SQRT(below)), re(alpha));
    by = minus(alpha, make(beta));
    tau = over(neg(by), beta);
    if (ANY(none)) { /* divided by 1 they stay as they are */
        by = SEL(none, make(1), by);
        tau = SEL(none, make(0), tau);
        beta = SEL(none, re(alpha), beta);
    }
    for (int64_t i = 1; i < n; i++)
        x[i * step] = divide(x[i * step], by);
    x[0] = make(beta * factor);
    return tau;
}

DL_INLINE void reflect_tile(int tile, factors v, T tau, M none,
                            DL_GLOBAL T *to, int64_t rows, int64_t ld)
{
    factors conj = {v.at + v.step, v.step, 1};
    T sum[WIDE];

    for (int c = 0; c < tile; c++)
        sum[c] = to[c];
    sum_tile(tile, rows - 1, conj, to + ld, ld, 0, 0, sum);
    for (int c = 0; c < tile; c++) {
        sum[c] = mul(neg(tau), sum[c]);
        to[c] = SEL(none, to[c], to[c] + sum[c]);
    }
    for (int64_t i = 1; i < rows; i++)
        for (int c = 0; c < tile; c++) {
            T x = to[i * ld + c];

            to[i * ld + c] = SEL(none, x, mac(x, factor_at(&v, i), sum[c]));
        }
}

/* to = (1 - tau v v^H) to; v as reflect leaves it, rows of `to` ld apart. */
DL_PART void reflect_left(CONST_TP v, int64_t step, T tau, DL_GLOBAL T *to,
                          int64_t rows, int64_t cols, int64_t ld)
{
    factors by = {v, step, 0};
    M none = is_zero(tau);

    if (ALL(none) || rows < 1)
        return;
#define REFLECT(tile) reflect_tile(tile, by, tau, none, to + j, rows, ld)
    EACH_TILE(j, cols, REFLECT);
#undef REFLECT
}

/* to = to (1 - tau v v^H); v lies in a row, v[0] counts as 1. */
DL_PART void reflect_right(CONST_TP v, T tau, DL_GLOBAL T *to, int64_t rows,
                           int64_t cols, int64_t ld)
{
    M none = is_zero(tau);

    if (ALL(none))
        return;
    for (int64_t i = 0; i < rows; i++) {
        DL_GLOBAL T *x = to + i * ld;
        T sum = mul(neg(tau), x[0] + dot(cols - 1, 0, x + 1, v + 1));

        x[0] = SEL(none, x[0], x[0] + sum);
        for (int64_t j = 1; j < cols; j++)
            x[j] = SEL(none, x[j], mac(x[j], sum, conj_of(v[j])));
    }
}

/* The first `cols` columns of the product of t reflectors, the first of which
 * is of row `skip` and those below.  Their v begin `apart` numbers from each
 * other, the numbers of one being `step` apart.  The last one first, as it
 * changes the least. */
DL_INLINE void form_product(CONST_TP v, int64_t apart, int64_t step,
                            CONST_TP tau, int64_t t, int64_t skip, TP q,
                            int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            q[i * cols + j] = make((R)(i == j));
    for (int64_t j = t - 1; j >= 0; j--)
        reflect_left(v + j * apart, step, tau[j],
                     q + (j + skip) * (cols + 1), rows - skip - j,
                     cols - skip - j, cols);
}

#endif
