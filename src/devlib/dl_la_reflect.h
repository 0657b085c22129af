/* Reflectors, 1 - tau v v^H with v[0] = 1, as LAPACK makes them: found, applied
 * from both sides, multiplied. */
#ifndef DL_LA_REFLECT_H
#define DL_LA_REFLECT_H

#include "dl_la_rows.h"

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

/* A sum as if in twice the precision (Ogita, Rump and Oishi, "Accurate sum and
 * dot product", 2005). */
typedef struct {
    R sum, rest;
} exact_sum;
enum { MANY_SUMS = 32, LEAST_MANY = 256 };
_Static_assert(2 * MANY_SUMS == 64 && BLOCK == 16,
               "hlo_linalg_call.c counts a group's work space with these");

DL_INLINE void add_exactly(exact_sum *to, R v, R rest)
{
    R was = to->sum, more;

    to->sum = was + v;
    more = to->sum - was;
    to->rest += rest + ((was - (to->sum - more)) + (v - more));
}

DL_INLINE void add_square(exact_sum *to, T x)
{
    const R part[2] = {re(x), im(x)};

    for (int k = 0; k < (DL_IS_COMPLEX ? 2 : 1); k++) {
        R p = part[k] * part[k];

        add_exactly(to, p, FMA(part[k], part[k], -p));
    }
}

/* Squares of a whole number of times `sums` numbers, in so many sums. */
#ifdef DL_GROUP
DL_INLINE exact_sum squares_apart(int sums, int64_t n, DL_GLOBAL const T *x,
                                  int64_t step, RP room)
{
    exact_sum all;

    for (int64_t k = ITEM; k < sums; k += ITEMS) {
        exact_sum mine = {0, 0};

        UNROLL
        for (int64_t i = k; i < n; i += sums)
            add_square(&mine, x[i * step]);
        room[2 * k] = mine.sum;
        room[2 * k + 1] = mine.rest;
    }
    MEET();
    all = (exact_sum){room[0], room[1]};
    UNROLL
    for (int k = 1; k < sums; k++)
        add_exactly(&all, room[2 * k], room[2 * k + 1]);
    MEET();
    return all;
}
#else
DL_INLINE exact_sum squares_apart(int sums, int64_t n, DL_GLOBAL const T *x,
                                  int64_t step, RP room)
{
    exact_sum s[MANY_SUMS], all;

    (void)room;
    for (int k = 0; k < sums; k++)
        s[k] = (exact_sum){0, 0};
    for (int64_t i = 0; i < n; i += sums)
        for (int k = 0; k < sums; k++)
            add_square(&s[k], x[(i + k) * step]);
    all = s[0];
    for (int k = 1; k < sums; k++)
        add_exactly(&all, s[k].sum, s[k].rest);
    return all;
}
#endif

/* The sum of the squares of all but the first: a reflector is as orthogonal as
 * its length is right. */
DL_INLINE R squares(int64_t n, DL_GLOBAL const T *x, int64_t step, TP room)
{
    int64_t sums = n > LEAST_MANY ? MANY_SUMS : SUMS;
    int64_t whole = n > 1 ? (n - 1) / sums * sums : 0;
    exact_sum all = {0, 0};

    if (n > LEAST_MANY)
        all = squares_apart(MANY_SUMS, whole, x + step, step, (RP)room);
    else if (whole)
        all = squares_apart(SUMS, whole, x + step, step, (RP)room);
    for (int64_t i = 1 + whole; i < n; i++)
        add_square(&all, x[i * step]);
    return all.sum + all.rest;
}

/* n numbers `step` apart become (beta, v[1], ...); beta is real and
 * (1 - conj(tau) v v^H) x = (beta, 0, ...).  Returns tau.  room: of a group,
 * 2 MANY_SUMS numbers. */
DL_PART T reflect(int64_t n, DL_GLOBAL T *x, int64_t step, TP room)
{
    R below, beta, factor;
    T alpha, by, tau;
    M none;

    if (n < 1)
        return make(0);
    below = squares(n, x, step, room);
    factor = reflect_factor(n, x, step, below);
    if (ANY(factor != 1)) {
        MEET();
        for (int64_t i = ITEM; i < n; i += ITEMS)
            x[i * step] = over(x[i * step], factor);
        MEET();
        below = squares(n, x, step, room);
    }
    alpha = x[0];
    MEET();
    none = (M)(below == 0) & (M)(im(alpha) == 0);
    if (ALL(none)) {
        if (IS_FIRST)
            x[0] = scale(alpha, factor);
        MEET();
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
    for (int64_t i = 1 + ITEM; i < n; i += ITEMS)
        x[i * step] = divide(x[i * step], by);
    if (IS_FIRST)
        x[0] = make(beta * factor);
    MEET();
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

/* to = (1 - tau v v^H) to; v as reflect leaves it, rows of `to` ld apart.  room:
 * of a group, a number for each column and each BLOCK of its rows. */
#ifdef DL_GROUP
DL_PART void reflect_left(CONST_TP v, int64_t step, T tau, DL_GLOBAL T *to,
                          int64_t rows, int64_t cols, int64_t ld, TP room)
{
    int64_t blocks = (rows - 1 + BLOCK - 1) / BLOCK;

    if (is_zero(tau) || rows < 1 || cols < 1)
        return;
    EACH_PLACE (b, j, blocks, cols) {
        int64_t first = 1 + b * BLOCK, end = least_of(first + BLOCK, rows);
        T part = make(0);

        UNROLL
        for (int64_t i = first; i < end; i++)
            part = mac(part, conj_of(v[i * step]), to[i * ld + j]);
        room[b * cols + j] = part;
    }
    MEET();
    for (int64_t j = ITEM; j < cols; j += ITEMS) {
        T sum = to[j];

        UNROLL
        for (int64_t b = 0; b < blocks; b++)
            sum += room[b * cols + j];
        sum = mul(neg(tau), sum);
        to[j] += sum;
        room[j] = sum;
    }
    MEET();
    UPDATE_PLACES(to + ld, ld, i, j, rows - 1, cols,
                  mac(WAS, v[(i + 1) * step], room[j]));
}
#else
DL_PART void reflect_left(CONST_TP v, int64_t step, T tau, DL_GLOBAL T *to,
                          int64_t rows, int64_t cols, int64_t ld, TP room)
{
    factors by = {v, step, 0};
    M none = is_zero(tau);

    (void)room;
    if (ALL(none) || rows < 1)
        return;
#define REFLECT(tile) reflect_tile(tile, by, tau, none, to + j, rows, ld)
    EACH_TILE(j, cols, REFLECT);
#undef REFLECT
}
#endif

/* to = to (1 - tau v v^H); v lies in a row, v[0] counts as 1. */
DL_PART void reflect_right(CONST_TP v, T tau, DL_GLOBAL T *to, int64_t rows,
                           int64_t cols, int64_t ld)
{
    M none = is_zero(tau);

    if (ALL(none))
        return;
    for (int64_t i = ITEM; i < rows; i += ITEMS) {
        DL_GLOBAL T *x = to + i * ld;
        T sum = mul(neg(tau), x[0] + dot(cols - 1, 0, x + 1, v + 1));

        x[0] = SEL(none, x[0], x[0] + sum);
        for (int64_t j = 1; j < cols; j++)
            x[j] = SEL(none, x[j], mac(x[j], sum, conj_of(v[j])));
    }
    MEET();
}

/* The first `cols` columns of the product of t reflectors, the first of which
 * is of row `skip` and those below.  Their v begin `apart` numbers from each
 * other, the numbers of one being `step` apart.  The last one first, as it
 * changes the least. */
DL_INLINE void form_product(CONST_TP v, int64_t apart, int64_t step,
                            CONST_TP tau, int64_t t, int64_t skip, TP q,
                            int64_t rows, int64_t cols, TP room)
{
    EACH_PLACE (i, j, rows, cols)
        q[i * cols + j] = make((R)(i == j));
    MEET();
    for (int64_t j = t - 1; j >= 0; j--)
        reflect_left(v + j * apart, step, tau[j],
                     q + (j + skip) * (cols + 1), rows - skip - j,
                     cols - skip - j, cols, room);
}

#endif
