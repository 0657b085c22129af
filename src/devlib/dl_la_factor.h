/* Factorizations and solvers of one matrix; hlo_linalg.def has what they take
 * and give.  Arguments: operands, results, work space, extents, attributes. */
#ifndef DL_LA_FACTOR_H
#define DL_LA_FACTOR_H

#include "dl_la.h"

/* ---- Cholesky ---- */

/* The upper factor u, u^H u = a, row by row in the place of the result: row k
 * is divided by the root of its pivot and taken from the rows below.  A lower
 * factor is its adjoint. */
void DL_LA(cholesky)(CONST_TP a, TP u, int64_t n, int64_t lower)
{
    int fails = 0;

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++)
            u[i * n + j] = lower ? conj_of(a[j * n + i]) : a[i * n + j];
    for (int64_t k = 0; k < n && !fails; k++) {
        DL_GLOBAL T *row = u + k * n;
        R pivot = re(row[k]), root = SQRT(pivot);

        fails = !(pivot > 0) || !is_finite(pivot);
        row[k] = make(root);
        for (int64_t j = k + 1; j < n; j++)
            row[j] = over(row[j], root);
        for (int64_t i = k + 1; i < n; i++)
            add_row(n - i, neg(conj_of(row[i])), row + i, u + i * n + i);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) {
            u[i * n + j] = lower ? conj_of(u[j * n + i]) : make(0);
            if (lower)
                u[j * n + i] = make(0);
        }
    for (int64_t i = 0; fails && i < n * n; i++)
        u[i] = make(NOT_A_NUMBER);
}

/* ---- triangles ---- */

/* Rows of x, n x q, from the first on (down) or from the last: t x = b with t
 * in the place of b. */
DL_INLINE void solve_rows(CONST_TP t, TP x, int64_t n, int64_t q, int64_t down,
                          int64_t unit)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t i = down ? k : n - 1 - k;
        DL_GLOBAL T *row = x + i * q;
        T d = t[i * n + i];

        for (int64_t c = 0; c < k; c++) {
            int64_t j = down ? c : n - 1 - c;

            add_row(q, neg(t[i * n + j]), x + j * q, row);
        }
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
        T v = minus(x[i], dot(k, t + i * n + from, x + from));

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

/* trans: 1 none, 2 transpose, 3 adjoint.  work: n x n, op(a) in rows. */
void DL_LA(triangular_solve)(CONST_TP a, CONST_TP b, TP x, TP work, int64_t n,
                             int64_t p, int64_t q, int64_t left, int64_t lower,
                             int64_t unit, int64_t trans)
{
    int64_t down = (lower != 0) == (trans == 1);

    if (trans == 1)
        copy_row(n * n, a, work);
    else
        transpose(n, n, a, work);
    for (int64_t i = 0; trans == 3 && i < n * n; i++)
        work[i] = conj_of(work[i]);
    copy_row(p * q, b, x);
    if (!left) {
        for (int64_t r = 0; r < p; r++) /* a lower one is solved upwards */
            solve_row(work, x + r * q, n, !down, unit);
    } else if (q == 1) {
        solve_column(work, x, n, down, unit);
    } else {
        solve_rows(work, x, n, q, down, unit);
    }
}

/* ---- elimination ---- */

/* In place; pivot[k]: the row that row k was exchanged with.  1 where a pivot
 * is 0. */
DL_PART int eliminate(TP a, int64_t m, int64_t n, IP pivot)
{
    int singular = 0;

    for (int64_t k = 0; k < least_of(m, n); k++) {
        DL_GLOBAL T *row = a + k * n;
        int64_t best = k;
        R most = size(row[k]);

        for (int64_t i = k + 1; i < m; i++)
            if (size(a[i * n + k]) > most) {
                most = size(a[i * n + k]);
                best = i;
            }
        pivot[k] = (int32_t)best;
        swap_rows(n, row, a + best * n);
        if (most == 0) {
            singular = 1;
            continue;
        }
        for (int64_t i = k + 1; i < m; i++) {
            DL_GLOBAL T *to = a + i * n;
            T by = divide(to[k], row[k]);

            to[k] = by;
            add_row(n - k - 1, neg(by), row + k + 1, to + k + 1);
        }
    }
    return singular;
}

void DL_LA(lu)(CONST_TP a, TP lu, IP pivot, IP order, int64_t m, int64_t n)
{
    copy_row(m * n, a, lu);
    eliminate(lu, m, n, pivot);
    for (int64_t i = 0; i < m; i++)
        order[i] = (int32_t)i;
    for (int64_t k = 0; k < least_of(m, n); k++) {
        int32_t t = order[k];

        order[k] = order[pivot[k]];
        order[pivot[k]] = t;
    }
}

/* A system of compressed rows as a full matrix; entries of one place add up.
 * work: n x n numbers, then n pivots. */
void DL_LA(spsolve)(CONST_TP data, CONST_IP column, CONST_IP first, CONST_TP b,
                    TP x, TP work, int64_t n, int64_t z)
{
    IP pivot = (IP)(work + n * n);
    int singular;

    fill_row(n * n, make(0), work);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = most_of(first[i], 0); k < least_of(first[i + 1], z);
             k++)
            if (column[k] >= 0 && column[k] < n)
                work[i * n + column[k]] += data[k];
    singular = eliminate(work, n, n, pivot);
    copy_row(n, b, x);
    for (int64_t i = 0; i < n; i++)
        swap_rows(1, x + i, x + pivot[i]);
    solve_column(work, x, n, 1, 1);
    solve_column(work, x, n, 0, 0);
    if (singular)
        fill_row(n, make(NOT_A_NUMBER), x);
}

/* Three diagonals, with exchanges of neighbours; work: 3 n.  perturb: a pivot
 * that is too small becomes the least that the matrix's size allows. */
void DL_LA(tridiagonal_solve)(CONST_TP low, CONST_TP diagonal, CONST_TP high,
                              CONST_TP b, TP x, TP work, int64_t n, int64_t p,
                              int64_t perturb)
{
    TP d = work;
    TP u = work + n;
    TP v = work + 2 * n; /* the second diagonal above */
    R least = 0;
    int fails = 0;

    copy_row(n, diagonal, d);
    copy_row(n, high, u);
    fill_row(n, make(0), v);
    copy_row(n * p, b, x);
    for (int64_t i = 0; perturb && i < n; i++)
        least = max_of(least, size(d[i]) + (i ? size(low[i]) : 0) +
                                  (i + 1 < n ? size(u[i]) : 0));
    least = max_of(least * EPS, LEAST);
    for (int64_t i = 0; i + 1 < n; i++) {
        T l = low[i + 1], by;

        if (size(l) > size(d[i])) { /* rows i and i + 1 exchanged */
            T t = d[i];

            d[i] = l;
            l = t;
            t = u[i];
            u[i] = d[i + 1];
            d[i + 1] = t;
            if (i + 2 < n) {
                v[i] = u[i + 1];
                u[i + 1] = make(0);
            }
            swap_rows(p, x + i * p, x + (i + 1) * p);
        }
        if (perturb && size(d[i]) < least)
            d[i] = make(re(d[i]) < 0 ? -least : least);
        fails |= size(d[i]) == 0;
        by = neg(divide(l, d[i]));
        d[i + 1] = mac(d[i + 1], by, u[i]);
        if (i + 2 < n)
            u[i + 1] = mac(u[i + 1], by, v[i]);
        add_row(p, by, x + i * p, x + (i + 1) * p);
    }
    if (perturb && n && size(d[n - 1]) < least)
        d[n - 1] = make(re(d[n - 1]) < 0 ? -least : least);
    fails |= n && size(d[n - 1]) == 0;
    for (int64_t i = n - 1; i >= 0; i--) {
        if (i + 1 < n)
            add_row(p, neg(u[i]), x + (i + 1) * p, x + i * p);
        if (i + 2 < n)
            add_row(p, neg(v[i]), x + (i + 2) * p, x + i * p);
        for (int64_t j = 0; j < p; j++)
            x[i * p + j] = divide(x[i * p + j], d[i]);
    }
    if (fails)
        fill_row(n * p, make(NOT_A_NUMBER), x);
}

/* ---- orthogonal factorizations ---- */

/* Column j of a, m x n, and all right of it; w: n numbers. */
DL_INLINE T reduce_column(TP a, int64_t m, int64_t n, int64_t j, TP w)
{
    DL_GLOBAL T *v = a + j * n + j;
    T tau = reflect(m - j, v, n);

    reflect_left(v, n, conj_of(tau), v + 1, m - j, n - j - 1, n, w);
    return tau;
}

void DL_LA(qr)(CONST_TP a, TP r, TP tau, TP work, int64_t m, int64_t n)
{
    copy_row(m * n, a, r);
    for (int64_t j = 0; j < least_of(m, n); j++)
        tau[j] = reduce_column(r, m, n, j, work);
}

/* The first n columns of the product, rows of q ld apart; v lies in columns of
 * a, ld_a apart; the last reflector first, as it changes the least. */
DL_PART void form_q(CONST_TP a, int64_t ld_a, CONST_TP tau, int64_t t, TP q,
                   int64_t m, int64_t n, TP w)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            q[i * n + j] = make(i == j);
    for (int64_t j = t - 1; j >= 0; j--)
        reflect_left(a + j * ld_a + j, ld_a, tau[j], q + j * n + j, m - j,
                     n - j, n, w);
}

void DL_LA(householder_product)(CONST_TP a, CONST_TP tau, TP q, TP work,
                                int64_t m, int64_t n, int64_t t)
{
    form_q(a, n, tau, t, q, m, n, work);
}

/* work: q numbers where Q is on the left, else a vector of n (m) numbers. */
void DL_LA(ormqr)(CONST_TP a, CONST_TP tau, CONST_TP c, TP x, TP work,
                  int64_t n, int64_t p, int64_t q, int64_t t, int64_t left,
                  int64_t adjoint)
{
    copy_row(p * q, c, x);
    for (int64_t k = 0; k < t; k++) {
        /* Q = H0 H1 ...: the one next to c comes first */
        int64_t j = (left != 0) == (adjoint != 0) ? k : t - 1 - k;
        DL_GLOBAL const T *v = a + j * n + j;
        T by = adjoint ? conj_of(tau[j]) : tau[j];

        if (left) {
            reflect_left(v, n, by, x + j * q, p - j, q, q, work);
            continue;
        }
        for (int64_t i = 0; i < q - j; i++)
            work[i] = v[i * n];
        reflect_right(work, by, x + j, p, q - j, q);
    }
}

/* The squares' sums of the columns from j on below row j, of a times by. */
DL_INLINE void column_sums(CONST_TP a, int64_t m, int64_t n, int64_t j, R by,
                           RP sum)
{
    for (int64_t c = j; c < n; c++)
        sum[c] = 0;
    for (int64_t i = j; i < m; i++)
        for (int64_t c = j; c < n; c++)
            sum[c] += square(scale(a[i * n + c], by));
}

DL_PART void swap_columns(TP a, int64_t m, int64_t n, int64_t x, int64_t y)
{
    for (int64_t i = 0; x != y && i < m; i++) {
        T t = a[i * n + x];

        a[i * n + x] = a[i * n + y];
        a[i * n + y] = t;
    }
}

/* Columns whose entry in `first` is not 0 come first and stay there; then
 * always the longest of what is left.  work: n numbers, then n sums. */
void DL_LA(geqp3)(CONST_TP a, CONST_IP first, TP r, IP order, TP tau, TP work,
                  int64_t m, int64_t n)
{
    RP sum = (RP)(work + n);
    int64_t fixed = 0;
    R most = largest(m * n, a), by = most > 0 ? 1 / max_of(most, LEAST) : 1;

    copy_row(m * n, a, r);
    for (int64_t j = 0; j < n; j++)
        order[j] = (int32_t)(j + 1);
    for (int64_t j = 0; j < n; j++)
        if (first[j]) {
            int32_t t = order[j];

            swap_columns(r, m, n, j, fixed);
            order[j] = order[fixed];
            order[fixed++] = t;
        }
    for (int64_t j = 0; j < least_of(m, n); j++) {
        int64_t best = j;
        int32_t t = order[j];

        if (j >= fixed) {
            column_sums(r, m, n, j, by, sum);
            for (int64_t c = j + 1; c < n; c++)
                if (sum[c] > sum[best])
                    best = c;
        }
        swap_columns(r, m, n, j, best);
        order[j] = order[best];
        order[best] = t;
        tau[j] = reduce_column(r, m, n, j, work);
    }
}

#endif
