/* Solvers and factorizations of one matrix that go their own way for each:
 * sparse and tridiagonal systems, columns in order of length. */
#ifndef DL_LA_SOLVE_H
#define DL_LA_SOLVE_H

#include "dl_la_factor.h"

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
    singular = eliminate(work, n, n, pivot, 0);
    copy_row(n, b, x);
    for (int64_t i = 0; i < n; i++)
        swap_rows(1, x + i, x + pivot[i]);
    solve_column(work, x, n, 1, 1, 0);
    solve_column(work, x, n, 0, 0, 0);
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

/* work: q numbers, of which only a Q on the right makes use. */
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
            reflect_left(v, n, by, x + j * q, p - j, q, q, 0);
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
        tau[j] = reduce_column(r, m, n, j, 0);
    }
}

#endif
