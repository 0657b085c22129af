/* Many small matrices: as many as a vector has lanes go side by side through
 * the same functions, each number of a matrix being a lane.  A function takes
 * `count` matrices that lie one after the other; work space begins with room
 * for the vectors of its arrays.  Host only; the bits are those of the function
 * of one matrix. */
#ifndef DL_LA_LANES_H
#define DL_LA_LANES_H

#include "dl_la_eigh.h"
#include "dl_la_factor.h"
#include "dl_la_svd.h"

typedef R LOOSE __attribute__((aligned(__alignof__(S)))); /* where it lies */

/* Rows become columns: as many rounds as a deck of DL_LANES cards needs. */
DL_INLINE void turn(R *x)
{
    for (int round = 1; round < DL_LANES; round *= 2) {
        R y[DL_LANES];

        for (int i = 0; i < DL_LANES / 2; i++) {
            R a = x[i], b = x[i + DL_LANES / 2];

#if DL_LANES == 16
            y[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19,
                                               4, 20, 5, 21, 6, 22, 7, 23);
            y[2 * i + 1] =
                __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12,
                                        28, 13, 29, 14, 30, 15, 31);
#elif DL_LANES == 8
            y[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
            y[2 * i + 1] =
                __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
            y[2 * i] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
            y[2 * i + 1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
        }
        for (int i = 0; i < DL_LANES; i++)
            x[i] = y[i];
    }
}

/* n numbers from each place into vectors. */
DL_PART void gather_at(int64_t n, const S *from, const int64_t *at, R *to)
{
    int64_t i = 0;

    for (; i + DL_LANES <= n; i += DL_LANES) {
        R x[DL_LANES];

        for (int l = 0; l < DL_LANES; l++)
            x[l] = *(const LOOSE *)(from + at[l] + i);
        turn(x);
        for (int l = 0; l < DL_LANES; l++)
            to[i + l] = x[l];
    }
    for (; i < n; i++)
        for (int l = 0; l < DL_LANES; l++)
            to[i][l] = from[at[l] + i];
}

/* n numbers of each matrix; lanes without a matrix have the last one's. */
DL_INLINE void gather(int64_t count, int64_t n, const S *from, R *to)
{
    int64_t at[DL_LANES];

    for (int l = 0; l < DL_LANES; l++)
        at[l] = n * least_of(l, count - 1);
    gather_at(n, from, at, to);
}

/* Vectors to n numbers each, where at[] says. */
DL_PART void spread_at(int64_t count, int64_t n, const R *from, S *to,
                       const int64_t *at)
{
    int64_t i = 0;

    for (; i + DL_LANES <= n; i += DL_LANES) {
        R x[DL_LANES];

        for (int l = 0; l < DL_LANES; l++)
            x[l] = from[i + l];
        turn(x);
        if (count == DL_LANES) /* from registers */
            for (int l = 0; l < DL_LANES; l++)
                *(LOOSE *)(to + at[l] + i) = x[l];
        else
            for (int l = 0; l < count; l++)
                *(LOOSE *)(to + at[l] + i) = x[l];
    }
    for (; i < n; i++)
        for (int l = 0; l < DL_LANES && l < count; l++)
            to[at[l] + i] = from[i][l];
}

DL_INLINE void spread(int64_t count, int64_t n, const R *from, S *to)
{
    int64_t at[DL_LANES];

    for (int l = 0; l < DL_LANES; l++)
        at[l] = n * l;
    spread_at(count, n, from, to, at);
}

/* Rows of vectors, the first `ranked` of them in the order of rank. */
DL_PART void spread_rows(int64_t count, int64_t rows, int64_t cols,
                         const R *from, const I *rank, int64_t ranked, S *to)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t at[DL_LANES];

        for (int l = 0; l < DL_LANES; l++)
            at[l] = (l * rows + (r < ranked ? rank[r][l] : r)) * cols;
        spread_at(count, cols, from + r * cols, to, at);
    }
}

/* The same to columns, by way of `on_the_way`, as many vectors. */
DL_PART void spread_columns(int64_t count, int64_t rows, int64_t cols,
                            const R *from, const I *rank, int64_t ranked,
                            R *on_the_way, S *to)
{
    const S *x = (const S *)on_the_way;

    spread_rows(count, rows, cols, from, rank, ranked, (S *)on_the_way);
    for (int64_t l = 0; l < count; l++, x += rows * cols, to += rows * cols)
        for (int64_t i = 0; i < cols; i++)
            for (int64_t r = 0; r < rows; r++)
                to[i * rows + r] = x[r * cols + i];
}

DL_PART void finish_vectors(M good, int64_t n, R *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = component(good, x[i]);
}

/* The first matrices of those left. */
#define EACH_GROUP(first, many, count) \
    for (int64_t first = 0, many = least_of(count, DL_LANES); first < count; \
         first += DL_LANES, many = least_of(count - first, DL_LANES))

/* Where rows of triangles are moved one by one: of row r the first vectors,
 * which reach the diagonal. */
DL_INLINE int64_t to_diagonal(int64_t r, int64_t n, int64_t lower)
{
    return lower ? least_of(r / DL_LANES * DL_LANES + DL_LANES, n) : n;
}

/* Square matrices with rows of vectors ld apart; lower: the rest is not
 * asked for. */
DL_PART void gather_square(int64_t count, int64_t n, int64_t ld, int64_t lower,
                           const S *from, R *to)
{
    if (ld == n)
        gather(count, n * n, from, to);
    for (int64_t r = 0; ld > n && r < n; r++) {
        int64_t at[DL_LANES];

        for (int l = 0; l < DL_LANES; l++)
            at[l] = (n * least_of(l, count - 1) + r) * n;
        gather_at(to_diagonal(r, n, lower), from, at, to + r * ld);
    }
}

/* lower: the rest is zero. */
DL_PART void spread_square(int64_t count, int64_t n, int64_t ld, int64_t lower,
                           const R *from, S *to)
{
    if (ld == n)
        spread(count, n * n, from, to);
    for (int64_t r = 0; ld > n && r < n; r++) {
        int64_t at[DL_LANES], cols = to_diagonal(r, n, lower);

        for (int l = 0; l < DL_LANES; l++)
            at[l] = (n * l + r) * n;
        spread_at(count, cols, from + r * ld, to, at);
        for (int l = 0; l < count; l++)
            for (int64_t i = cols; i < n; i++)
                to[at[l] + i] = 0;
    }
}

DL_INLINE void turn_square(int64_t n, int64_t ld, R *x)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) {
            R v = x[i * ld + j];

            x[i * ld + j] = x[j * ld + i];
            x[j * ld + i] = v;
        }
}

/* The lower triangle of the mean of a matrix and its transpose. */
DL_INLINE void take_mean(int64_t n, int64_t ld, R *x)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            x[i * ld + j] = (x[i * ld + j] + x[j * ld + i]) * (R)0.5;
}

/* A column's vectors share a place in the cache where their distance is a
 * multiple of 16 of them. */
void DL_LA(cholesky_lanes)(const S *a, S *u, R *x, int64_t count, int64_t n,
                           int64_t lower, int64_t mean)
{
    int64_t ld = n + (n % 16 == 0);

    EACH_GROUP(f, m, count)
    {
        M fails;

        gather_square(m, n, ld, lower && !mean, a + f * n * n, x);
        if (mean)
            take_mean(n, ld, x);
        else if (!lower)
            turn_square(n, ld, x);
        fails = factor_upper(x, n, ld);
        for (int64_t i = 0; i < n; i++) {
            DL_GLOBAL R *row = x + i * ld;

            for (int64_t j = 0; ANY(fails) && j <= i; j++)
                row[j] = SEL(fails, (R)NOT_A_NUMBER, row[j]);
            fill_row(n - 1 - i, 0, row + i + 1);
        }
        if (!lower)
            turn_square(n, ld, x);
        spread_square(m, n, ld, lower, x, u + f * n * n);
    }
}

void DL_LA(triangular_solve_lanes)(const S *a, const S *b, S *to, R *work,
                                   int64_t count, int64_t n, int64_t p,
                                   int64_t q, int64_t left, int64_t lower,
                                   int64_t unit, int64_t trans)
{
    R *t = work, *x = t + n * n;

    EACH_GROUP(f, m, count)
    {
        gather(m, n * n, a + f * n * n, t);
        gather(m, p * q, b + f * p * q, x);
        if (trans != 1)
            turn_square(n, n, t);
        solve_in_place(t, x, n, p, q, left, (lower != 0) == (trans == 1),
                       unit, 0);
        spread(m, p * q, x, to + f * p * q);
    }
}

void DL_LA(lu_lanes)(const S *a, S *lu, int32_t *pivot, int32_t *order, R *work,
                     int64_t count, int64_t m, int64_t n)
{
    int64_t k = least_of(m, n);
    R *x = work;
    I *exchanged = (I *)(x + m * n);

    EACH_GROUP(f, many, count)
    {
        gather(many, m * n, a + f * m * n, x);
        eliminate(x, m, n, exchanged, 0);
        spread(many, m * n, x, lu + f * m * n);
        for (int64_t l = 0; l < many; l++) {
            for (int64_t i = 0; i < k; i++)
                pivot[(f + l) * k + i] = (int32_t)exchanged[i][l];
            order_of(pivot + (f + l) * k, k, m, order + (f + l) * m);
        }
    }
}

void DL_LA(qr_lanes)(const S *a, S *r, S *tau, R *work, int64_t count,
                     int64_t m, int64_t n)
{
    int64_t k = least_of(m, n);
    R *x = work, *y = x + m * n, *t = y + m * n;

    EACH_GROUP(f, many, count)
    {
        gather(many, m * n, a + f * m * n, x);
        DL_LA(qr)(x, y, t, 0, m, n);
        spread(many, m * n, y, r + f * m * n);
        spread(many, k, t, tau + f * k);
    }
}

void DL_LA(householder_product_lanes)(const S *a, const S *tau, S *q, R *work,
                                      int64_t count, int64_t m, int64_t n,
                                      int64_t t)
{
    R *x = work, *y = x + m * n, *w = y + m * n;

    EACH_GROUP(f, many, count)
    {
        gather(many, m * n, a + f * m * n, x);
        gather(many, t, tau + f * t, w);
        DL_LA(householder_product)(x, w, y, 0, m, n, t);
        spread(many, m * n, y, q + f * m * n);
    }
}

void DL_LA(eigh_lanes)(const S *a, S *v, S *w, R *work, int64_t count,
                       int64_t n, int64_t lower)
{
    R *x = work, *q = x + n * n, *z = q + n * n, *values = z + n * n;
    R *more = values + n;
    I *rank = (I *)(more + 4 * n);

    EACH_GROUP(f, many, count)
    {
        M good;

        gather(many, n * n, a + f * n * n, x);
        good = eigh_of(x, q, values, z, more, 0, rank, n, lower);
        finish_vectors(good, n * n, z);
        spread(many, n, values, w + f * n);
        spread_columns(many, n, n, z, rank, n, x, v + f * n * n);
    }
}

void DL_LA(svd_values_lanes)(const S *a, S *s, R *work, int64_t count,
                             int64_t m, int64_t n)
{
    int64_t rows = most_of(m, n), cols = least_of(m, n);
    R *x = work, *g = x + m * n, *values = g + m * n, *more = values + cols;
    svd_result of;

    EACH_GROUP(f, many, count)
    {
        R by;

        gather(many, m * n, a + f * m * n, x);
        by = tall_copy(x, g, values, m, n);
        svd_of(g, values, more, 0, rows, cols, 0, 0, by, &of);
        spread(many, cols, values, s + f * cols);
    }
}

void DL_LA(svd_lanes)(const S *a, S *s, S *u, S *vt, R *work, int64_t count,
                      int64_t m, int64_t n, int64_t full)
{
    int64_t rows = most_of(m, n), cols = least_of(m, n);
    int64_t wide = full ? rows : cols;
    R *x = work, *g = x + m * n, *values = g + m * n, *more = values + cols;
    svd_result of;

    EACH_GROUP(f, many, count)
    {
        R *q = more + 6 * rows; /* where svd_of has no more need of it */
        R by;

        gather(many, m * n, a + f * m * n, x);
        by = tall_copy(x, g, values, m, n);
        svd_of(g, values, more, 0, rows, cols, wide, 1, by, &of);
        finish_vectors(of.good, wide * rows, of.u);
        finish_vectors(of.good, cols * cols, of.v);
        spread(many, cols, values, s + f * cols);
        if (m < n) { /* a^T = x s y^T, so a = y s x^T */
            spread_columns(many, cols, cols, of.v, of.rank, cols, q,
                           u + f * cols * cols);
            spread_rows(many, wide, rows, of.u, of.rank, cols,
                        vt + f * wide * rows);
        } else {
            spread_columns(many, wide, rows, of.u, of.rank, cols, q,
                           u + f * wide * rows);
            spread_rows(many, cols, cols, of.v, of.rank, cols,
                        vt + f * cols * cols);
        }
    }
}

#endif
