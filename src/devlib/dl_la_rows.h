/* dl_la_rows: rows and columns of numbers: sums, products, turns, and the order
 * of what an algorithm found.
 *
 * Matrices are row-major.  Inner loops run along rows, so that a compiler
 * makes vectors of them.  Long sums are sums of short ones, in an order that is
 * the same on every machine: rounding errors of one sign, as those of a matrix
 * of equal numbers, then do not add up along a whole column.  What an algorithm
 * rotates it keeps as rows. */
#ifndef DL_LA_ROWS_H
#define DL_LA_ROWS_H

#include "dl_la.h"

/* ---- rows ---- */

/* y += a x */
DL_INLINE void add_row(int64_t n, T a, CONST_TP x, TP y)
{
    for (int64_t i = ITEM; i < n; i += ITEMS)
        y[i] = mac(y[i], a, x[i]);
    MEET();
}
/* The same, but where `not`. */
DL_INLINE void add_row_unless(M not, int64_t n, T a, CONST_TP x, TP y)
{
    if (!ANY(not)) {
        add_row(n, a, x, y);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = SEL(not, y[i], mac(y[i], a, x[i]));
}
/* Columns are done a few at a time, whose sums stay in registers: WIDE of them,
 * then what is left in narrower tiles.  what(tile, at) does columns
 * [at, at + tile); tile is a constant wherever it is inlined. */
enum { BLOCK = 16, /* rows of a short sum */
       FEW_ROWS = DL_LANES > 1 ? 4 : 16 };
#if DL_LANES > 1 || !defined DL_X86
enum { WIDE = 8, HALF = 4 };
#else
enum { WIDE = 32, HALF = 8 };
#endif
#ifdef DL_GROUP
#define EACH_TILE_OF(wide, half, at, first, n, what) \
    do { \
        for (int64_t at = (first) + ITEM; at < (n); at += ITEMS) \
            what(1); \
        MEET(); \
    } while (0)
#else
#define EACH_TILE_OF(wide, half, at, first, n, what) \
    do { \
        int64_t at = first; \
        for (; at + (wide) <= (n); at += (wide)) \
            what(wide); \
        for (; at + (half) <= (n); at += (half)) \
            what(half); \
        if ((half) > 4 && at + 4 <= (n)) { \
            what(4); \
            at += 4; \
        } \
        if ((half) > 2 && at + 2 <= (n)) { \
            what(2); \
            at += 2; \
        } \
        for (; at < (n); at++) \
            what(1); \
    } while (0)
#endif
#define EACH_TILE(at, n, what) EACH_TILE_OF(WIDE, HALF, at, 0, n, what)

/* The numbers that rows are multiplied by; conj: by their conjugates. */
typedef struct {
    DL_GLOBAL const T *at;
    int64_t step;
    int conj;
} factors;

DL_INLINE T factor_at(const factors *f, int64_t k)
{
    T a = f->at[k * f->step];

    return f->conj ? conj_of(a) : a;
}
/* sum += a[0] x[0] + a[1] x[1] + ..., of `tile` columns; rows x ld apart;
 * less: minus it; conj: of the rows' conjugates. */
DL_INLINE void sum_tile(int tile, int64_t count, factors a,
                        DL_GLOBAL const T *x, int64_t ld, int less, int conj,
                        T *sum)
{
    for (int64_t from = 0; from < count; from += BLOCK) {
        int64_t to = least_of(from + BLOCK, count);
        T part[WIDE];

        for (int c = 0; c < tile; c++)
            part[c] = make(0);
        UNROLL
        for (int64_t k = from; k < to; k++) {
            T by = factor_at(&a, k);

            for (int c = 0; c < tile; c++) {
                T v = x[k * ld + c];

                part[c] = mac(part[c], by, conj ? conj_of(v) : v);
            }
        }
        for (int c = 0; c < tile; c++)
            sum[c] = less ? minus(sum[c], part[c]) : sum[c] + part[c];
    }
}
DL_INLINE void rows_tile(int tile, int64_t count, factors a,
                         DL_GLOBAL const T *x, int64_t ld, int less, int conj,
                         DL_GLOBAL T *y)
{
    T sum[WIDE];

    for (int c = 0; c < tile; c++)
        sum[c] = y[c];
    sum_tile(tile, count, a, x, ld, less, conj, sum);
    for (int c = 0; c < tile; c++)
        y[c] = sum[c];
}
/* y -= a[0] x[0] + a[1] x[1] + ... */
DL_INLINE void take_rows(int64_t count, factors a, DL_GLOBAL const T *x,
                         int64_t ld, int64_t n, DL_GLOBAL T *y)
{
#define TAKE(tile) rows_tile(tile, count, a, x + j, ld, 1, 0, y + j)
    EACH_TILE(j, n, TAKE);
#undef TAKE
}
/* y += the sum of the rows' conjugates. */
DL_INLINE void add_conj_rows(int64_t count, factors a, DL_GLOBAL const T *x,
                             int64_t ld, int64_t n, DL_GLOBAL T *y)
{
#define ADD(tile) rows_tile(tile, count, a, x + j, ld, 0, 1, y + j)
    EACH_TILE(j, n, ADD);
#undef ADD
}
DL_INLINE void fill_row(int64_t n, T a, TP x)
{
    for (int64_t i = ITEM; i < n; i += ITEMS)
        x[i] = a;
    MEET();
}
DL_INLINE void copy_row(int64_t n, CONST_TP x, TP y)
{
    for (int64_t i = ITEM; i < n; i += ITEMS)
        y[i] = x[i];
    MEET();
}
DL_INLINE void swap_rows(int64_t n, DL_GLOBAL T *x, DL_GLOBAL T *y)
{
    for (int64_t i = 0; x != y && i < n; i++) {
        T t = x[i];

        x[i] = y[i];
        y[i] = t;
    }
}
/* Sums side by side, and searches of a group. */
enum { SUMS = 8, SEARCHES = 32 };
_Static_assert(2 * SEARCHES == 64, "as hlo_linalg_call.c has it");
/* The sum of x y (conj: of conj(x) y), in SUMS sums and what is left over. */
DL_INLINE T join_sums(T *s, int64_t n, int conj, CONST_TP x, CONST_TP y)
{
    T t;

    for (int h = SUMS / 2; h; h /= 2)
        for (int k = 0; k < h; k++)
            s[k] += s[k + h];
    t = s[0];
    for (int64_t i = n / SUMS * SUMS; i < n; i++)
        t = mac(t, conj ? conj_of(x[i]) : x[i], y[i]);
    return t;
}
DL_INLINE T dot(int64_t n, int conj, CONST_TP x, CONST_TP y)
{
    T s[SUMS];

    for (int k = 0; k < SUMS; k++)
        s[k] = make(0);
    for (int64_t i = 0; i + SUMS <= n; i += SUMS)
        for (int k = 0; k < SUMS; k++)
            s[k] = mac(s[k], conj ? conj_of(x[i + k]) : x[i + k], y[i + k]);
    return join_sums(s, n, conj, x, y);
}
/* The same by a group, an item a sum; room: SUMS numbers. */
#ifdef DL_GROUP
DL_INLINE T dot_of_all(int64_t n, int conj, CONST_TP x, CONST_TP y, TP room)
{
    T s[SUMS], all;

    for (int64_t k = ITEM; k < SUMS; k += ITEMS) {
        T t = make(0);

        UNROLL
        for (int64_t i = k; i < n / SUMS * SUMS; i += SUMS)
            t = mac(t, conj ? conj_of(x[i]) : x[i], y[i]);
        room[k] = t;
    }
    MEET();
    for (int k = 0; k < SUMS; k++)
        s[k] = room[k];
    all = join_sums(s, n, conj, x, y); /* which reads x and y, too */
    MEET();
    return all;
}
#else
#define dot_of_all(n, conj, x, y, room) ((void)(room), dot(n, conj, x, y))
#endif
/* The largest |re| or |im| of n elements; a NaN, where there is one, or an
 * infinity makes it one of these. */
DL_INLINE R largest(int64_t n, CONST_TP x)
{
    R most = 0, bad = 0;

    for (int64_t i = 0; i < n; i++) {
        R v = ABS(re(x[i])), w = ABS(im(x[i]));

        most = v > most ? v : most;
        most = w > most ? w : most;
        bad += (v - v) + (w - w);
    }
    return most + bad;
}
/* The same by a group; x in `parts` equal parts, each of which is a number of
 * room. */
#ifdef DL_GROUP
DL_INLINE R largest_of_all(int64_t n, CONST_TP x, RP room, int64_t parts)
{
    R most = 0, bad = 0;

    for (int64_t i = ITEM; i < parts; i += ITEMS)
        room[i] = largest(n / parts, x + n / parts * i);
    MEET();
    for (int64_t i = 0; i < parts; i++) {
        most = max_of(most, room[i]);
        bad += room[i] - room[i];
    }
    MEET();
    return most + bad;
}
#else
#define largest_of_all(n, x, room, parts) ((void)(room), largest(n, x))
#endif

/* A power of two that brings numbers of this size to where their squares are
 * neither infinite nor 0; 1 where they are there. */
DL_INLINE R safe_factor(R most)
{
    M extreme = (M)(most > LARGE) | ((M)(most > 0) & (M)(most < 1 / LARGE));

    return SEL(extreme, 1 / power_below(max_of(most, LEAST)), (R)1);
}
DL_INLINE M is_finite(R x) { return x - x == 0; }

/* x turned by (c, s) with y: [c s; -s c] of the two rows. */
DL_INLINE void turn_rows(int64_t n, R c, R s, TP x, TP y)
{
    for (int64_t i = 0; i < n; i++) {
        T u = x[i], v = y[i];

        x[i] = mac_real(scale(u, c), v, s);
        y[i] = mac_real(scale(v, c), u, -s);
    }
}

/* The turns of a sweep over rows: the row at `first` with the next one, `step`
 * (1 or -1) away, that with the one after it, and so on; c and s of a turn are
 * where the row is that it is the last one of. */
typedef struct {
    int64_t first, step, count;
    DL_GLOBAL const R *c, *s;
} sweep;

/* `tile` vectors V of the rows' columns from x on; rows are ld real numbers
 * long. */
#define TURN_TILE(name, V) \
    DL_INLINE void name(int tile, const sweep *w, DL_GLOBAL S *x, int64_t ld) \
    { \
        enum { EACH = sizeof(V) / sizeof(S) }; \
        int64_t i = w->first; \
        V row[WIDE]; \
\
        for (int c = 0; c < tile; c++) \
            row[c] = *(DL_GLOBAL V *)(x + i * ld + c * EACH); \
        for (int64_t k = 0; k < w->count; k++, i += w->step) { \
            V by = (V)w->c[i], s = (V)w->s[i]; \
\
            for (int c = 0; c < tile; c++) { \
                DL_GLOBAL S *to = x + i * ld + c * EACH; \
                V next = *(DL_GLOBAL V *)(to + w->step * ld); \
\
                *(DL_GLOBAL V *)to = \
                    __builtin_elementwise_fma(next, s, row[c] * by); \
                row[c] = __builtin_elementwise_fma(row[c], -s, next * by); \
            } \
        } \
        for (int c = 0; c < tile; c++) \
            *(DL_GLOBAL V *)(x + i * ld + c * EACH) = row[c]; \
    }
#if DL_LANES > 1 || !defined DL_X86
typedef R PACK, FEW_NUMBERS;
enum { PACKS = 8 };
#else
#ifdef __AVX512F__
enum { PACK_BYTES = 64, PACKS = 4 };
#else
enum { PACK_BYTES = 32, PACKS = 4 };
#endif
typedef S PACK __attribute__((ext_vector_type(PACK_BYTES / sizeof(S)),
                              aligned(__alignof__(S))));
typedef S FEW_NUMBERS
    __attribute__((ext_vector_type(4), aligned(__alignof__(S))));
#endif
TURN_TILE(turn_packs, PACK)
TURN_TILE(turn_few, FEW_NUMBERS)
TURN_TILE(turn_column, R)

/* Rows of n numbers, one after the other, as real ones. */
#ifdef DL_GROUP
/* A column; what a few turns read is read before they write. */
DL_INLINE void turn_ahead(const sweep *w, DL_GLOBAL S *x, int64_t ld)
{
    enum { AHEAD = 8 };
    S row = *x, next[AHEAD], c[AHEAD], s[AHEAD];

    for (int64_t k = 0; k < w->count; k += AHEAD) {
        for (int q = 0; q < AHEAD; q++) {
            int64_t turn = least_of(k + q, w->count - 1);

            next[q] = x[(turn + 1) * w->step * ld];
            c[q] = w->c[w->first + turn * w->step];
            s[q] = w->s[w->first + turn * w->step];
        }
        for (int q = 0; q < AHEAD; q++)
            if (k + q < w->count) {
                x[(k + q) * w->step * ld] = FMA(next[q], s[q], row * c[q]);
                row = FMA(row, -s[q], next[q] * c[q]);
            }
    }
    x[w->count * w->step * ld] = row;
}

DL_PART void turn_sweep(const sweep *w, DL_GLOBAL T *x, int64_t n)
{
    int64_t ld = n * (int64_t)(sizeof(T) / sizeof(S));

    for (int64_t j = ITEM; j < ld; j += ITEMS)
        turn_ahead(w, (DL_GLOBAL S *)x + w->first * ld + j, ld);
    MEET();
}
#else
DL_PART void turn_sweep(const sweep *w, DL_GLOBAL T *x, int64_t n)
{
    enum { A_PACK = sizeof(PACK) / sizeof(S),
           A_FEW = sizeof(FEW_NUMBERS) / sizeof(S),
           ONE = sizeof(R) / sizeof(S) };
    int64_t ld = n * (int64_t)(sizeof(T) / sizeof(S)), j = 0;
    DL_GLOBAL S *to = (DL_GLOBAL S *)x;

    for (; j + PACKS * A_PACK <= ld; j += PACKS * A_PACK)
        turn_packs(PACKS, w, to + j, ld);
    for (; j + PACKS / 2 * A_PACK <= ld; j += PACKS / 2 * A_PACK)
        turn_packs(PACKS / 2, w, to + j, ld);
    for (; j + A_PACK <= ld; j += A_PACK)
        turn_packs(1, w, to + j, ld);
    for (; j + A_FEW <= ld; j += A_FEW)
        turn_few(1, w, to + j, ld);
    for (; j < ld; j += ONE)
        turn_column(1, w, to + j, ld);
}
#endif

/* to, cols x rows, is from, rows x cols, with rows and columns exchanged.  Of
 * columns whose numbers share their places in the cache few are touched at a
 * time. */
DL_INLINE void transpose(int64_t rows, int64_t cols, CONST_TP from, TP to)
{
#ifdef DL_GROUP
    EACH_PLACE (i, j, rows, cols)
        to[j * rows + i] = from[i * cols + j];
    MEET();
#else
    for (int64_t i0 = 0; i0 < rows; i0 += FEW_ROWS)
        for (int64_t j = 0; j < cols; j++)
            for (int64_t i = i0; i < least_of(i0 + FEW_ROWS, rows); i++)
                to[j * rows + i] = from[i * cols + j];
#endif
}

/* ---- order ---- */

/* rank[i]: which one x[i] is of n numbers in rising (falling) order, equal ones
 * as they lie. */
DL_PART void rank_of(DL_GLOBAL const R *x, int64_t n, int falling, IP rank)
{
    for (int64_t i = ITEM; i < n; i += ITEMS) {
        I before = 0;

        for (int64_t j = 0; j < n; j++) {
            M first = falling ? (M)(x[j] > x[i]) : (M)(x[j] < x[i]);

            if (j < i)
                first |= (M)(x[j] == x[i]);
            before += SEL(first, (I)1, (I)0);
        }
        rank[i] = before;
    }
    MEET();
}

/* A component of a vector; a zero's sign would depend on the neighbours in the
 * lanes, and says nothing. */
DL_INLINE T component(M good, T x)
{
    return SEL(good, x + make(0), make(NOT_A_NUMBER));
}

/* x over `by`, each number at its rank; NaN but where good.  was: n numbers. */
DL_INLINE void put_in_order(int64_t n, M good, R by, DL_GLOBAL const I *rank,
                            RP x, RP was)
{
    for (int64_t i = ITEM; i < n; i += ITEMS)
        was[i] = SEL(good, x[i] / by + 0, (R)NOT_A_NUMBER);
    MEET();
    for (int64_t i = ITEM; i < n; i += ITEMS)
        put_at(NOT((M)0), was[i], rank[i], x);
    MEET();
}

#endif
