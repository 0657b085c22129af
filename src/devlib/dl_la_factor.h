/* Factorizations and solvers of one matrix, or of DL_LANES; hlo_linalg.def has
 * what they take and give.  Arguments: operands, results, work space, extents,
 * attributes.  room: work space that a group alone makes use of. */
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

    MEET(); /* all have read the pivot */
    if (IS_FIRST)
        u[in_factor(ld, k, k)] = make(root);
    for (int64_t j = k + 1 + ITEM; j < n; j += ITEMS)
        u[in_factor(ld, k, j)] = scale(u[in_factor(ld, k, j)], by);
    MEET();
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
#ifdef DL_GROUP
    EACH_PLACE (i, j, n, n)
        if (i <= j)
            to[i * n + j] = conj_of(from[j * n + i]);
#else
    for (int64_t j0 = 0; j0 < n; j0 += FEW_ROWS)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = most_of(i, j0); j < least_of(j0 + FEW_ROWS, n);
                 j++)
                to[i * n + j] = conj_of(from[j * n + i]);
#endif
}

/* The lower factor where the upper one is, or zeros below that. */
DL_INLINE void turn_factor(TP u, int64_t n, int64_t lower)
{
#ifdef DL_GROUP
    EACH_PLACE (i, j, n, n)
        if (i > j)
            u[i * n + j] = lower ? conj_of(u[j * n + i]) : make(0);
    MEET();
    EACH_PLACE (i, j, n, n)
        if (lower && i > j)
            u[j * n + i] = make(0);
#else
    for (int64_t i0 = 0; i0 < n; i0 += FEW_ROWS)
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = most_of(i0, j + 1); i < least_of(i0 + FEW_ROWS, n);
                 i++) {
                u[i * n + j] = lower ? conj_of(u[j * n + i]) : make(0);
                if (lower)
                    u[j * n + i] = make(0);
            }
#endif
}

/* A lower factor is the adjoint of the upper one; mean: of that of the matrix
 * and its adjoint. */
void DL_LA(cholesky)(CONST_TP a, TP u, int64_t n, int64_t lower, int64_t mean)
{
    int fails;

    if (lower || mean)
        turn_triangle(a, u, n);
    MEET();
    for (int64_t i = ITEM; mean && i < n; i += ITEMS)
        for (int64_t j = i; j < n; j++)
            u[i * n + j] = scale(u[i * n + j] + a[i * n + j], (R)0.5);
    MEET();
    for (int64_t i = 0; !lower && !mean && i < n; i++)
        copy_row(n - i, a + i * (n + 1), u + i * (n + 1));
    fails = factor_upper(u, n, n);
    for (int64_t i = 0; fails && i < n; i++)
        fill_row(n - i, make(NOT_A_NUMBER), u + i * (n + 1));
    turn_factor(u, n, lower);
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
        factors by = {t + i * n + first, down ? 1 : -1, 0};

#ifdef DL_GROUP
        for (int64_t j = ITEM; j < q; j += ITEMS) {
            T v = row[j];

            sum_tile(1, k, by, x + first * q + j, down ? q : -q, 1, 0, &v);
            row[j] = unit ? v : divide(v, d);
        }
        MEET();
#else
        take_rows(k, by, x + first * q, down ? q : -q, q, row);
        for (int64_t j = 0; !unit && j < q; j++)
            row[j] = divide(row[j], d);
#endif
    }
}

/* The same for one column, and for one row of x t = b. */
DL_INLINE void solve_column(CONST_TP t, TP x, int64_t n, int64_t down,
                            int64_t unit, TP room)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t i = down ? k : n - 1 - k;
        int64_t from = down ? 0 : i + 1;
        T v = minus(x[i], dot_of_all(k, 0, t + i * n + from, x + from, room));

        MEET();
        if (IS_FIRST)
            x[i] = unit ? v : divide(v, t[i * n + i]);
        MEET();
    }
}
/* p rows x t = b. */
#ifdef DL_GROUP
DL_INLINE void solve_each_row(CONST_TP t, TP x, int64_t n, int64_t p,
                              int64_t down, int64_t unit)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t i = down ? k : n - 1 - k;
        int64_t from = down ? i + 1 : 0;

        for (int64_t r = ITEM; !unit && r < p; r += ITEMS)
            x[r * n + i] = divide(x[r * n + i], t[i * n + i]);
        MEET();
        UPDATE_PLACES(x + from, n, r, j, p, n - 1 - k,
                      mac(WAS, neg(x[r * n + i]), t[i * n + from + j]));
    }
}
#else
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
DL_INLINE void solve_each_row(CONST_TP t, TP x, int64_t n, int64_t p,
                              int64_t down, int64_t unit)
{
    for (int64_t r = 0; r < p; r++)
        solve_row(t, x + r * n, n, down, unit);
}
#endif

/* x, p x q, in place; t: op(a) in rows. */
DL_INLINE void solve_in_place(CONST_TP t, TP x, int64_t n, int64_t p, int64_t q,
                              int64_t left, int64_t down, int64_t unit, TP room)
{
    if (!left) { /* a lower one is solved upwards */
        solve_each_row(t, x, n, p, !down, unit);
    } else if (q == 1) {
        solve_column(t, x, n, down, unit, room);
    } else {
        solve_rows(t, x, n, q, down, unit);
    }
}

#if DL_LANES == 1
/* trans: 1 none, 2 transpose, 3 adjoint.  work: n x n, op(a) in rows, and of a
 * group SUMS more. */
void DL_LA(triangular_solve)(CONST_TP a, CONST_TP b, TP x, TP work, int64_t n,
                             int64_t p, int64_t q, int64_t left, int64_t lower,
                             int64_t unit, int64_t trans)
{
    if (trans == 1)
        copy_row(n * n, a, work);
    else
        transpose(n, n, a, work);
    for (int64_t i = ITEM; trans == 3 && i < n * n; i += ITEMS)
        work[i] = conj_of(work[i]);
    copy_row(p * q, b, x);
    solve_in_place(work, x, n, p, q, left, (lower != 0) == (trans == 1), unit,
                   work + n * n);
}
#endif

/* ---- elimination ---- */

/* Row k of the largest pivot; the row that it was exchanged with.  room: of a
 * group, 2 SEARCHES numbers. */
#ifdef DL_GROUP
DL_INLINE I largest_row(CONST_TP a, int64_t m, int64_t n, int64_t k, RP room,
                        R *pivot)
{
    IP row = (IP)(room + SEARCHES);
    I best = (I)k;

    for (int64_t s = ITEM; s < SEARCHES; s += ITEMS) {
        R most = -1;

        row[s] = (I)k;
        for (int64_t i = k + s; i < m; i += SEARCHES)
            if (size(a[i * n + k]) > most) {
                most = size(a[i * n + k]);
                row[s] = (I)i;
            }
        room[s] = most;
    }
    *pivot = size(a[k * n + k]);
    MEET();
    for (int s = 0; s < SEARCHES; s++)
        if (room[s] > *pivot || (room[s] == *pivot && row[s] < best)) {
            *pivot = room[s];
            best = row[s];
        }
    MEET();
    return best;
}

DL_INLINE I exchange(TP a, int64_t m, int64_t n, int64_t k, R *pivot, RP room)
{
    I best = largest_row(a, m, n, k, room, pivot);

    for (int64_t j = ITEM; best != (I)k && j < n; j += ITEMS) {
        T x = a[k * n + j];

        a[k * n + j] = a[best * n + j];
        a[best * n + j] = x;
    }
    MEET();
    return best;
}

/* Of the rows below row k, its multiple, which stays in column k. */
DL_INLINE void take_row_unless(M none, TP a, int64_t m, int64_t n, int64_t k)
{
    DL_GLOBAL const T *row = a + k * n;
    DL_GLOBAL T *next = a + (k + 1) * n + k;

    (void)none; /* of the one matrix, which is not here then */
    for (int64_t i = k + 1 + ITEM; i < m; i += ITEMS)
        a[i * n + k] = divide(a[i * n + k], row[k]);
    MEET();
    UPDATE_PLACES(next + 1, n, i, j, m - k - 1, n - k - 1,
                  mac(WAS, neg(next[i * n]), row[k + 1 + j]));
}
#else
DL_INLINE I exchange(TP a, int64_t m, int64_t n, int64_t k, R *pivot, RP room)
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
    (void)room;
    *pivot = most;
    return best;
}

DL_INLINE void take_row_unless(M none, TP a, int64_t m, int64_t n, int64_t k)
{
    DL_GLOBAL T *row = a + k * n;

    for (int64_t i = k + 1; i < m; i++) {
        DL_GLOBAL T *to = a + i * n;
        T by = divide(to[k], row[k]);

        to[k] = SEL(none, to[k], by);
        add_row_unless(none, n - k - 1, neg(by), row + k + 1, to + k + 1);
    }
}
#endif

/* In place; pivot[k]: the row that row k was exchanged with.  Not 0 where a
 * pivot is 0. */
DL_PART M eliminate(TP a, int64_t m, int64_t n, IP pivot, TP room)
{
    M singular = 0;

    for (int64_t k = 0; k < least_of(m, n); k++) {
        R most;
        M none;

        pivot[k] = exchange(a, m, n, k, &most, (RP)room);
        none = most == 0;
        singular |= none;
        if (!ALL(none))
            take_row_unless(none, a, m, n, k);
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
void DL_LA(lu)(CONST_TP a, TP lu, IP pivot, IP order, TP room, int64_t m,
               int64_t n)
{
    copy_row(m * n, a, lu);
    eliminate(lu, m, n, pivot, room);
    if (IS_FIRST)
        order_of(pivot, least_of(m, n), m, order);
}
#endif

/* ---- orthogonal factorizations ---- */

/* Column j of a, m x n, and all right of it. */
DL_INLINE T reduce_column(TP a, int64_t m, int64_t n, int64_t j, TP room)
{
    DL_GLOBAL T *v = a + j * n + j;
    T tau = reflect(m - j, v, n, room);

    reflect_left(v, n, conj_of(tau), v + 1, m - j, n - j - 1, n, room);
    return tau;
}

DL_MANY void DL_LA(qr)(CONST_TP a, TP r, TP tau, TP room, int64_t m, int64_t n)
{
    copy_row(m * n, a, r);
    for (int64_t j = 0; j < least_of(m, n); j++)
        tau[j] = reduce_column(r, m, n, j, room);
}

DL_MANY void DL_LA(householder_product)(CONST_TP a, CONST_TP tau, TP q, TP room,
                                        int64_t m, int64_t n, int64_t t)
{
    form_product(a, n + 1, n, tau, t, 0, q, m, n, room);
}

#endif
