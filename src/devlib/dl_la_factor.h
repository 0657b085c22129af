/* Factorizations and solvers of one matrix, or of DL_LANES; hlo_linalg.def has
 * what they take and give.  Arguments: operands, results, work space, extents,
 * attributes. */
#ifndef DL_LA_FACTOR_H
#define DL_LA_FACTOR_H

#include "dl_la_reflect.h"

/* ---- Cholesky ---- */

/* Rows of the factor that are made together, so that what is read of the rows
 * above is used more than once, and as many columns as registers have room
 * for. */
#if !defined DL_X86
enum { PANEL = 1, PANEL_WIDE = WIDE, PANEL_HALF = HALF };
#elif DL_LANES == 1
enum { PANEL = 4, PANEL_WIDE = 16, PANEL_HALF = 4 };
#elif defined __AVX512F__
enum { PANEL = 4, PANEL_WIDE = 4, PANEL_HALF = 2 };
#else
enum { PANEL = 4, PANEL_WIDE = 2, PANEL_HALF = 2 };
#endif

/* Where row i, column j of the upper factor is.  Of many matrices it is the
 * transpose, the lower factor, that is kept: it is what most ask for, and their
 * rows need not be vectors. */
DL_INLINE int64_t in_factor(int64_t ld, int64_t i, int64_t j)
{
    return DL_LANES > 1 ? j * ld + i : i * ld + j;
}

/* `rows` rows of the factor from k on, `tile` columns from j on, minus what its
 * rows [first, last) give. */
DL_INLINE void take_factor(int rows, int tile, DL_GLOBAL T *u, int64_t ld,
                           int64_t first, int64_t last, int64_t k, int64_t j)
{
    for (int64_t from = first; from < last; from += BLOCK) {
        int64_t to = least_of(from + BLOCK, last);
        T part[PANEL][PANEL_WIDE];

        for (int r = 0; r < rows; r++)
            for (int c = 0; c < tile; c++)
                part[r][c] = make(0);
        for (int64_t i = from; i < to; i++)
            for (int r = 0; r < rows; r++) {
                T by = conj_of(u[in_factor(ld, i, k + r)]);

                for (int c = 0; c < tile; c++)
                    part[r][c] =
                        mac(part[r][c], by, u[in_factor(ld, i, j + c)]);
            }
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < tile; c++) {
                DL_GLOBAL T *to_be = u + in_factor(ld, k + r, j + c);

                *to_be = minus(*to_be, part[r][c]);
            }
    }
}

/* Row k is divided by the root of its pivot; which lanes cannot. */
DL_INLINE M finish_factor_row(DL_GLOBAL T *u, int64_t n, int64_t ld, int64_t k)
{
    R pivot = re(u[in_factor(ld, k, k)]), root = SQRT(pivot), by = 1 / root;

    u[in_factor(ld, k, k)] = make(root);
    for (int64_t j = k + 1; j < n; j++)
        u[in_factor(ld, k, j)] = scale(u[in_factor(ld, k, j)], by);
    return NOT((M)(pivot > 0) & is_finite(pivot));
}

/* What stands below the diagonal comes to nothing, and is not read for what
 * stands above. */
DL_INLINE M factor_rows(int rows, DL_GLOBAL T *u, int64_t n, int64_t ld,
                        int64_t k)
{
    M fails = 0;

#define TAKE(tile) take_factor(rows, tile, u, ld, 0, k, k, j)
    EACH_TILE_OF(PANEL_WIDE, PANEL_HALF, j, k, n, TAKE);
#undef TAKE
    for (int64_t row = k; row < k + rows; row++) {
#define TAKE(tile) take_factor(1, tile, u, ld, k, row, row, j)
        if (row > k)
            EACH_TILE_OF(PANEL_WIDE, PANEL_HALF, j, row, n, TAKE);
#undef TAKE
        fails |= finish_factor_row(u, n, ld, row);
    }
    return fails;
}

/* u^H u = a in the place of a's upper triangle, rows from the first on. */
DL_PART M factor_upper(DL_GLOBAL T *u, int64_t n, int64_t ld)
{
    int64_t k = 0;
    M fails = 0;

    for (; k + PANEL <= n && !ALL(fails); k += PANEL)
        fails |= factor_rows(PANEL, u, n, ld, k);
    for (; k < n && !ALL(fails); k++)
        fails |= factor_rows(1, u, n, ld, k);
    return fails;
}

#if DL_LANES == 1
/* The upper triangle of `to` is the lower one of `from` transposed. */
DL_INLINE void turn_triangle(DL_GLOBAL const T *from, DL_GLOBAL T *to,
                             int64_t n)
{
    for (int64_t j0 = 0; j0 < n; j0 += FEW_ROWS)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = most_of(i, j0); j < least_of(j0 + FEW_ROWS, n);
                 j++)
                to[i * n + j] = conj_of(from[j * n + i]);
}

/* A lower factor is the adjoint of the upper one; mean: of that of the matrix
 * and its adjoint. */
void DL_LA(cholesky)(CONST_TP a, TP u, int64_t n, int64_t lower, int64_t mean)
{
    int fails;

    if (lower || mean)
        turn_triangle(a, u, n);
    for (int64_t i = 0; mean && i < n; i++)
        for (int64_t j = i; j < n; j++)
            u[i * n + j] = scale(u[i * n + j] + a[i * n + j], (R)0.5);
    for (int64_t i = 0; !lower && !mean && i < n; i++)
        copy_row(n - i, a + i * (n + 1), u + i * (n + 1));
    fails = factor_upper(u, n, n);
    for (int64_t i = 0; fails && i < n; i++)
        fill_row(n - i, make(NOT_A_NUMBER), u + i * (n + 1));
    for (int64_t i0 = 0; i0 < n; i0 += FEW_ROWS)
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = most_of(i0, j + 1); i < least_of(i0 + FEW_ROWS, n);
                 i++) {
                u[i * n + j] = lower ? conj_of(u[j * n + i]) : make(0);
                if (lower)
                    u[j * n + i] = make(0);
            }
}
#endif

/* ---- triangles ---- */

/* Rows of x, n x q, from the first on (down) or from the last: t x = b with t
 * in the place of b. */
DL_INLINE void solve_rows(CONST_TP t, TP x, int64_t n, int64_t q, int64_t down,
                          int64_t unit)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t i = down ? k : n - 1 - k, first = down ? 0 : n - 1;
        DL_GLOBAL T *row = x + i * q;
        T d = t[i * n + i];

        take_rows(k, (factors){t + i * n + first, down ? 1 : -1, 0},
                  x + first * q, down ? q : -q, q, row);
        for (int64_t j = 0; !unit && j < q; j++)
            row[j] = divide(row[j], d);
    }
}

/* The same for one column, and for one row of x t = b. */
DL_INLINE void solve_column(CONST_TP t, TP x, int64_t n, int64_t down,
                            int64_t unit)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t i = down ? k : n - 1 - k;
        int64_t from = down ? 0 : i + 1;
        T v = minus(x[i], dot(k, 0, t + i * n + from, x + from));

        x[i] = unit ? v : divide(v, t[i * n + i]);
    }
}
DL_INLINE void solve_row(CONST_TP t, TP x, int64_t n, int64_t down,
                         int64_t unit)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t i = down ? k : n - 1 - k;
        int64_t from = down ? i + 1 : 0;

        if (!unit)
            x[i] = divide(x[i], t[i * n + i]);
        add_row(n - 1 - k, neg(x[i]), t + i * n + from, x + from);
    }
}

/* x, p x q, in place; t: op(a) in rows. */
DL_INLINE void solve_in_place(CONST_TP t, TP x, int64_t n, int64_t p, int64_t q,
                              int64_t left, int64_t down, int64_t unit)
{
    if (!left) {
        for (int64_t r = 0; r < p; r++) /* a lower one is solved upwards */
            solve_row(t, x + r * q, n, !down, unit);
    } else if (q == 1) {
        solve_column(t, x, n, down, unit);
    } else {
        solve_rows(t, x, n, q, down, unit);
    }
}

#if DL_LANES == 1
/* trans: 1 none, 2 transpose, 3 adjoint.  work: n x n, op(a) in rows. */
void DL_LA(triangular_solve)(CONST_TP a, CONST_TP b, TP x, TP work, int64_t n,
                             int64_t p, int64_t q, int64_t left, int64_t lower,
                             int64_t unit, int64_t trans)
{
    if (trans == 1)
        copy_row(n * n, a, work);
    else
        transpose(n, n, a, work);
    for (int64_t i = 0; trans == 3 && i < n * n; i++)
        work[i] = conj_of(work[i]);
    copy_row(p * q, b, x);
    solve_in_place(work, x, n, p, q, left, (lower != 0) == (trans == 1), unit);
}
#endif

/* ---- elimination ---- */

/* Row k of the largest pivot; the row that it was exchanged with. */
DL_INLINE I exchange(TP a, int64_t m, int64_t n, int64_t k, R *pivot)
{
    DL_GLOBAL T *row = a + k * n;
    I best = (I)k;
    R most = size(row[k]);

    for (int64_t i = k + 1; i < m; i++) {
        R v = size(a[i * n + k]);

        best = SEL(v > most, (I)i, best);
        most = SEL(v > most, v, most);
    }
    for (int64_t i = k + 1; i < m; i++) {
        DL_GLOBAL T *to = a + i * n;
        M here = best == (I)i;

        for (int64_t j = 0; ANY(here) && j < n; j++) {
            T x = row[j], y = to[j];

            row[j] = SEL(here, y, x);
            to[j] = SEL(here, x, y);
        }
    }
    *pivot = most;
    return best;
}

/* In place; pivot[k]: the row that row k was exchanged with.  Not 0 where a
 * pivot is 0. */
DL_PART M eliminate(TP a, int64_t m, int64_t n, IP pivot)
{
    M singular = 0;

    for (int64_t k = 0; k < least_of(m, n); k++) {
        DL_GLOBAL T *row = a + k * n;
        R most;
        M none;

        pivot[k] = exchange(a, m, n, k, &most);
        none = most == 0;
        singular |= none;
        for (int64_t i = k + 1; !ALL(none) && i < m; i++) {
            DL_GLOBAL T *to = a + i * n;
            T by = divide(to[k], row[k]);

            to[k] = SEL(none, to[k], by);
            add_row_unless(none, n - k - 1, neg(by), row + k + 1, to + k + 1);
        }
    }
    return singular;
}

/* The order of m rows that k exchanges lead to. */
DL_INLINE void order_of(DL_GLOBAL const int32_t *pivot, int64_t k, int64_t m,
                        DL_GLOBAL int32_t *order)
{
    for (int64_t i = 0; i < m; i++)
        order[i] = (int32_t)i;
    for (int64_t i = 0; i < k; i++) {
        int32_t t = order[i];

        order[i] = order[pivot[i]];
        order[pivot[i]] = t;
    }
}

#if DL_LANES == 1
void DL_LA(lu)(CONST_TP a, TP lu, IP pivot, IP order, int64_t m, int64_t n)
{
    copy_row(m * n, a, lu);
    eliminate(lu, m, n, pivot);
    order_of(pivot, least_of(m, n), m, order);
}
#endif

/* ---- orthogonal factorizations ---- */

/* Column j of a, m x n, and all right of it. */
DL_INLINE T reduce_column(TP a, int64_t m, int64_t n, int64_t j)
{
    DL_GLOBAL T *v = a + j * n + j;
    T tau = reflect(m - j, v, n);

    reflect_left(v, n, conj_of(tau), v + 1, m - j, n - j - 1, n);
    return tau;
}

DL_MANY void DL_LA(qr)(CONST_TP a, TP r, TP tau, int64_t m, int64_t n)
{
    copy_row(m * n, a, r);
    for (int64_t j = 0; j < least_of(m, n); j++)
        tau[j] = reduce_column(r, m, n, j);
}

DL_MANY void DL_LA(householder_product)(CONST_TP a, CONST_TP tau, TP q,
                                        int64_t m, int64_t n, int64_t t)
{
    form_product(a, n + 1, n, tau, t, 0, q, m, n);
}

#endif
