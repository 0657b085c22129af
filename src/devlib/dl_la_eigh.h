/* Hermitian matrices: to three diagonals by reflectors, and these to one by
 * implicit QL steps (Bowdler, Martin, Reinsch and Wilkinson, "The QR and QL
 * algorithms for symmetric matrices", 1968). */
#ifndef DL_LA_EIGH_H
#define DL_LA_EIGH_H

#include "dl_la.h"

enum { MOST_TURNS = 60 };

/* a, both triangles, row-major, is overwritten: column k below the diagonal
 * becomes the reflector, d and e the diagonals.  work: 3 n. */
DL_PART void to_diagonals(TP a, RP d, RP e, TP tau, TP work, int64_t n)
{
    TP v = work;
    TP p = work + n;

    for (int64_t k = 0; k + 1 < n; k++) {
        int64_t m = n - k - 1;
        DL_GLOBAL T *b = a + (k + 1) * n + k + 1;
        T sum = make(0);

        tau[k] = reflect(m, b - 1, n);
        e[k] = re(b[-1]);
        if (re(tau[k]) == 0 && im(tau[k]) == 0)
            continue;
        v[0] = make(1);
        for (int64_t i = 1; i < m; i++)
            v[i] = b[i * n - 1];
        /* p = tau b v, b's columns being its rows' conjugates */
        fill_row(m, make(0), p);
        for (int64_t i = 0; i < m; i++)
            add_conj(m, mul(tau[k], v[i]), b + i * n, p);
        for (int64_t i = 0; i < m; i++)
            sum = mac(sum, conj_of(p[i]), v[i]);
        add_row(m, scale(mul(tau[k], sum), (R)-0.5), v, p);
        for (int64_t i = 0; i < m; i++) {
            add_conj(m, neg(v[i]), p, b + i * n);
            add_conj(m, neg(p[i]), v, b + i * n);
        }
    }
    for (int64_t i = 0; i < n; i++)
        d[i] = re(a[i * n + i]);
}

/* Both triangles of the matrix of which one counts, times by. */
DL_INLINE void fill_hermitian(CONST_TP from, TP a, int64_t n, int64_t lower,
                              R by)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            T x = scale(lower ? from[i * n + j] : conj_of(from[j * n + i]), by);

            a[i * n + j] = x;
            a[j * n + i] = conj_of(x);
        }
        a[i * n + i] = make(re(from[i * n + i]) * by);
    }
}

/* LAPACK's L; its U is the same with rows and columns counted from the end.
 * work: n x n + 3 n. */
void DL_LA(tridiagonal)(CONST_TP a, TP out, RP d, RP e, TP tau, TP work,
                        int64_t n, int64_t lower)
{
    TP b = work + 3 * n;

    copy_row(n * n, a, out);
    fill_hermitian(a, b, n, lower, 1);
    for (int64_t i = 0; !lower && i < n * n / 2; i++) {
        T t = b[i];

        b[i] = b[n * n - 1 - i];
        b[n * n - 1 - i] = t;
    }
    to_diagonals(b, d, e, tau, work, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            if (lower)
                out[i * n + j] = b[i * n + j];
            else
                out[(n - 1 - i) * n + n - 1 - j] = b[i * n + j];
        }
    for (int64_t i = 0; i < n; i++)
        out[i * n + i] = make(re(out[i * n + i]));
    for (int64_t i = 0; !lower && i < n / 2; i++) {
        R t = d[i];

        d[i] = d[n - 1 - i];
        d[n - 1 - i] = t;
    }
    for (int64_t i = 0; !lower && i < (n - 1) / 2; i++) {
        R t = e[i];
        T s = tau[i];

        e[i] = e[n - 2 - i];
        e[n - 2 - i] = t;
        tau[i] = tau[n - 2 - i];
        tau[n - 2 - i] = s;
    }
}

/* Row r of z is column r of the vectors; e has n numbers, the last unused.
 * What is below the square of a rounding error of the largest is nothing.
 * 0: it did not converge. */
DL_PART int ql(RP d, RP e, TP z, int64_t n)
{
    R least = 0;

    e[n - 1] = 0;
    for (int64_t i = 0; i < n; i++)
        least = max_of(least, max_of(ABS(d[i]), ABS(e[i])));
    least *= EPS * EPS;
    for (int64_t l = 0; l < n; l++)
        for (int turn = 0;; turn++) {
            int64_t m = l, i;
            R g, r, s = 1, c = 1, p = 0;

            for (; m + 1 < n; m++)
                if (ABS(e[m]) <= EPS / 2 * (ABS(d[m]) + ABS(d[m + 1])) ||
                    ABS(e[m]) <= least)
                    break;
            if (m == l)
                break;
            if (turn == MOST_TURNS)
                return 0;
            g = (d[l + 1] - d[l]) / (2 * e[l]);
            r = length2(g, 1);
            g = d[m] - d[l] + e[l] / (g + with_sign(r, g));
            for (i = m - 1; i >= l; i--) {
                R f = s * e[i], b = c * e[i];

                r = length2(f, g);
                e[i + 1] = r;
                if (r == 0) {
                    d[i + 1] -= p;
                    e[m] = 0;
                    break;
                }
                s = f / r;
                c = g / r;
                g = d[i + 1] - p;
                r = FMA(d[i] - g, s, 2 * c * b);
                p = s * r;
                d[i + 1] = g + p;
                g = FMA(c, r, -b);
                turn_rows(n, c, -s, z + i * n, z + (i + 1) * n);
            }
            if (r == 0 && i >= l)
                continue;
            d[l] -= p;
            e[l] = g;
            e[m] = 0;
        }
    return 1;
}

/* Rows of z in the order of rising d. */
DL_PART void sort_rows(RP d, TP z, int64_t n)
{
    for (int64_t i = 0; i + 1 < n; i++) {
        int64_t best = i;
        R t = d[i];

        for (int64_t j = i + 1; j < n; j++)
            if (d[j] < d[best])
                best = j;
        d[i] = d[best];
        d[best] = t;
        swap_rows(n, z + i * n, z + best * n);
    }
}

/* work: n x n + 5 n. */
void DL_LA(eigh)(CONST_TP a, TP v, RP w, TP work, int64_t n, int64_t lower)
{
    TP z = work + 5 * n;
    TP tau = work + 3 * n;
    RP e = (RP)(work + 4 * n);
    R most = 0, bad = 0, by;
    int good;

    for (int64_t i = 0; i < n; i++) {
        R x = largest(lower ? i + 1 : n - i, a + i * n + (lower ? 0 : i));

        most = max_of(most, x);
        bad += x - x; /* a comparison drops a NaN */
    }
    most += bad;
    by = safe_factor(most);
    fill_hermitian(a, v, n, lower, by);
    to_diagonals(v, w, e, tau, work, n);
    /* z = H[n-2]^T ... H[0]^T: the transpose of the vectors */
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            z[i * n + j] = make(i == j);
    for (int64_t k = 0; k + 1 < n; k++) {
        TP u = work;

        u[0] = make(1);
        for (int64_t i = 1; i < n - k - 1; i++)
            u[i] = conj_of(v[(k + 1 + i) * n + k]);
        reflect_left(u, 1, tau[k], z + (k + 1) * n, n - k - 1, n, n, work + n);
    }
    good = is_finite(most) && ql(w, e, z, n);
    sort_rows(w, z, n);
    for (int64_t i = 0; i < n; i++)
        w[i] = good ? w[i] / by : NOT_A_NUMBER;
    transpose(n, n, z, v);
    if (!good)
        fill_row(n * n, make(NOT_A_NUMBER), v);
}

#endif
