/* dl_la: what the functions of linear algebra are written in.  A file
 * dl_la_<type>.c says what R is and whether numbers are complex, and includes
 * the algorithms, each a function of one matrix.
 *
 * With DL_LANES those that say so are of as many matrices side by side, which
 * all go one way: what one of them wants else is selected, to the same bits.
 * With DL_GROUP those that say so are of a group of a GPU's work items, to the
 * same bits as well.
 *
 * Matrices are row-major.  Inner loops run along rows, so that a compiler
 * makes vectors of them.  Long sums are sums of short ones, in an order that is
 * the same on every machine: rounding errors of one sign, as those of a matrix
 * of equal numbers, then do not add up along a whole column.  What an algorithm
 * rotates it keeps as rows. */
#ifndef DL_LA_H
#define DL_LA_H

#include "dl_call.h"

#ifndef DL_IS_F64
#define DL_IS_F64 0
#endif
#ifndef DL_IS_COMPLEX
#define DL_IS_COMPLEX 0
#endif

#ifndef DL_LANES
#define DL_LANES 1
#endif

#if DL_IS_F64
typedef double S;
typedef double _Complex C;
typedef int64_t S_INT;
#define EPS 0x1p-52
#define LEAST 0x1p-1022
#define EXPONENT 0x7ff0000000000000
#define LARGE 0x1p400 /* its square is finite, and its inverse's not 0 */
#define NOT_A_NUMBER __builtin_nan("")
#else
typedef float S;
typedef float _Complex C;
typedef int32_t S_INT;
#define EPS 0x1p-23f
#define LEAST 0x1p-126f
#define EXPONENT 0x7f800000
#define LARGE 0x1p50f
#define NOT_A_NUMBER __builtin_nanf("")
#endif

/* R: a real number, or one each of DL_LANES matrices side by side; I: an
 * integer of them, M: what a comparison gives. */
#if DL_LANES > 1
typedef S R __attribute__((ext_vector_type(DL_LANES)));
typedef S_INT I __attribute__((ext_vector_type(DL_LANES)));
typedef I M, R_INT;
#define FMA(a, b, c) __builtin_elementwise_fma(a, b, c)
#define SQRT(a) __builtin_elementwise_sqrt(a)
#define ABS(a) __builtin_elementwise_abs(a)
#define ANY(m) (__builtin_reduce_or(m) != 0)
#define ALL(m) (__builtin_reduce_and(m) != 0)
#else
typedef S R;
typedef int32_t I;
typedef int M;
typedef S_INT R_INT;
#define ANY(m) (m)
#define ALL(m) (m)
#if DL_IS_F64
#define FMA(a, b, c) __builtin_fma(a, b, c)
#define SQRT(a) __builtin_sqrt(a)
#define ABS(a) __builtin_fabs(a)
#else
#define FMA(a, b, c) __builtin_fmaf(a, b, c)
#define SQRT(a) __builtin_sqrtf(a)
#define ABS(a) __builtin_fabsf(a)
#endif
#endif
#define NOT(m) ((m) == 0)
/* Of lanes it is a value of its own: where one of the two is what a place in
 * memory holds and the result goes there, LLVM would make one masked store of
 * it, for which a Zen 3 takes 20 cycles. */
#if DL_LANES > 1
#define SEL(m, a, b) \
    ({ \
        __typeof__((m) ? (a) : (b)) sel = (m) ? (a) : (b); \
        __asm__("" : "+v"(sel)); \
        sel; \
    })
#else
#define SEL(m, a, b) ((m) ? (a) : (b))
#endif

#if DL_IS_COMPLEX
typedef C T;
#else
typedef R T;
#endif

/* The items of a group go one way, too: all hold the same numbers, and each does
 * its share of a loop whose turns do not need each other, every ITEMS-th turn
 * from ITEM on.  What is no such loop is done by all alike, and written by the
 * one that IS_FIRST.  MEET stands between what one writes and another reads or
 * writes; what writes for others ends with it. */
#ifdef DL_GROUP
#define ITEM     LID
#define ITEMS    GROUP
#define IS_FIRST (LID == 0)
#define MEET()   SYNC()
#define SHARED   /* an item's pointer is not the only way to what it points to */
#else
#define ITEM     ((int64_t)0)
#define ITEMS    ((int64_t)1)
#define IS_FIRST 1
#define MEET()
#define SHARED restrict
#endif
#define RP DL_GLOBAL R *SHARED
#define TP DL_GLOBAL T *SHARED
#define CP DL_GLOBAL C *SHARED
#define IP DL_GLOBAL I *SHARED
#define CONST_TP DL_GLOBAL const T *SHARED
#define CONST_IP DL_GLOBAL const int32_t *SHARED

/* Every place of rows x cols, in any order; x[i * ld + j] of each, WAS, becomes
 * `to`.  An item reads a few before it writes them, and turns of a loop that
 * only reads are put side by side, since one alone would wait for its memory. */
#ifdef DL_GROUP
enum { FEW_PLACES = 4 };
#define UNROLL _Pragma("clang loop unroll_count(8)")
#define UPDATE_PLACES(x, ld, i, j, rows, cols, to) \
    do { \
        const int64_t end_ = (rows) * (cols); \
        for (int64_t first_ = LID; first_ < end_; \
             first_ += FEW_PLACES * GROUP) { \
            T new_[FEW_PLACES]; \
            for (int q_ = 0; q_ < FEW_PLACES; q_++) { \
                int64_t at_ = least_of(first_ + q_ * GROUP, end_ - 1); \
                int64_t i = (uint32_t)at_ / (uint32_t)(cols); \
                int64_t j = (uint32_t)at_ % (uint32_t)(cols); \
                T WAS = (x)[i * (ld) + j]; \
                new_[q_] = to; \
            } \
            for (int q_ = 0; q_ < FEW_PLACES; q_++) { \
                int64_t at_ = first_ + q_ * GROUP; \
                int64_t i = (uint32_t)at_ / (uint32_t)(cols); \
                int64_t j = (uint32_t)at_ % (uint32_t)(cols); \
                if (at_ < end_) \
                    (x)[i * (ld) + j] = new_[q_]; \
            } \
        } \
        MEET(); \
    } while (0)
#define EACH_PLACE(i, j, rows, cols) \
    for (int64_t i = 0, j = 0, place = LID; \
         place < (rows) * (cols) && \
         (i = (uint32_t)place / (uint32_t)(cols), \
         j = (uint32_t)place % (uint32_t)(cols), 1); \
         place += GROUP)
#else
#define UNROLL
#define EACH_PLACE(i, j, rows, cols) \
    for (int64_t i = 0; i < (rows); i++) \
        for (int64_t j = 0; j < (cols); j++)
#define UPDATE_PLACES(x, ld, i, j, rows, cols, to) \
    EACH_PLACE (i, j, rows, cols) { \
        T WAS = (x)[i * (ld) + j]; \
        (x)[i * (ld) + j] = to; \
    }
#endif

/* A function that many matrices have, too: theirs is in dl_la_lanes.h. */
#if DL_LANES > 1
#define DL_MANY static
#else
#define DL_MANY
#endif

/* A part of an algorithm: a function of its own where calls cost nothing. */
#ifdef DL_X86
#define DL_PART static
#else
#define DL_PART DL_INLINE
#endif

/* ---- lanes ---- */

#if DL_LANES > 1
/* x[i], each lane's own. */
DL_INLINE R at(DL_GLOBAL const R *x, I i)
{
    R r;

    for (int l = 0; l < DL_LANES; l++)
        r[l] = x[i[l]][l];
    return r;
}
DL_INLINE void put_at(M where, R v, I i, DL_GLOBAL R *x)
{
    for (int l = 0; l < DL_LANES; l++)
        if (where[l])
            x[i[l]][l] = v[l];
}
DL_INLINE int64_t least_lane(I i) { return __builtin_reduce_min(i); }
DL_INLINE int64_t most_lane(I i) { return __builtin_reduce_max(i); }
#else
DL_INLINE R at(DL_GLOBAL const R *x, I i) { return x[i]; }
DL_INLINE void put_at(M where, R v, I i, DL_GLOBAL R *x)
{
    if (where)
        x[i] = v;
}
DL_INLINE int64_t least_lane(I i) { return i; }
DL_INLINE int64_t most_lane(I i) { return i; }
#endif

/* ---- numbers ---- */

DL_INLINE R max_of(R a, R b) { return a > b ? a : b; }
DL_INLINE int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }
DL_INLINE int64_t most_of(int64_t a, int64_t b) { return a > b ? a : b; }
DL_INLINE R with_sign(R a, R of) { return of < 0 ? -ABS(a) : ABS(a); }

/* The largest power of two that is not above a, and that has an inverse. */
DL_INLINE R power_below(R a)
{
    union {
        R r;
        R_INT i;
    } x = {a};

    x.i &= EXPONENT;
    return x.r > 1 / LEAST ? 1 / LEAST : x.r;
}
/* The length of (a, b) without overflow on the way; a NaN stays one. */
DL_INLINE R length2(R a, R b)
{
    R most, least, r;

    a = ABS(a);
    b = ABS(b);
    most = a > b ? a : b;
    least = a > b ? b : a;
    r = least / most;
    return SEL(most == 0, most + least, most * SQRT(FMA(r, r, (R)1)));
}

/* The rounding error of a length is the same for both of its quotients, and
 * would grow with the number of turns: c^2 + s^2 comes nearer to 1. */
DL_INLINE void make_unit(R *c, R *s)
{
    R off = FMA(-*s, *s, FMA(-*c, *c, (R)1)) / 2;

    *c = FMA(*c, off, *c);
    *s = FMA(*s, off, *s);
}

#if DL_LANES == 1
DL_INLINE C c_make(R re, R im) { return __builtin_complex(re, im); }
DL_INLINE C c_conj(C a) { return c_make(__real__ a, -__imag__ a); }
DL_INLINE C c_mac(C c, C a, C b)
{
    R ar = __real__ a, ai = __imag__ a, br = __real__ b, bi = __imag__ b;

    return c_make(FMA(-ai, bi, FMA(ar, br, __real__ c)),
                  FMA(ai, br, FMA(ar, bi, __imag__ c)));
}
DL_INLINE C c_mul(C a, C b) { return c_mac(c_make(0, 0), a, b); }
DL_INLINE C c_scale(C a, R b) { return c_make(__real__ a * b, __imag__ a * b); }
DL_INLINE C c_sub(C a, C b)
{
    return c_make(__real__ a - __real__ b, __imag__ a - __imag__ b);
}
DL_INLINE R c_size(C a) { return ABS(__real__ a) + ABS(__imag__ a); }
DL_INLINE R c_abs(C a) { return length2(__real__ a, __imag__ a); }
/* Smith, "Algorithm 116: complex division", 1962. */
DL_INLINE C c_div(C a, C b)
{
    R br = __real__ b, bi = __imag__ b, ar = __real__ a, ai = __imag__ a, r, d;

    if (ABS(br) >= ABS(bi)) {
        r = bi / br;
        d = FMA(r, bi, br);
        return c_make(FMA(ai, r, ar) / d, FMA(-ar, r, ai) / d);
    }
    r = br / bi;
    d = FMA(r, br, bi);
    return c_make(FMA(ar, r, ai) / d, FMA(ai, r, -ar) / d);
}

#endif

#if DL_IS_COMPLEX
DL_INLINE T make(R a) { return c_make(a, 0); }
DL_INLINE R re(T a) { return __real__ a; }
DL_INLINE R im(T a) { return __imag__ a; }
DL_INLINE T conj_of(T a) { return c_conj(a); }
DL_INLINE T mac(T c, T a, T b) { return c_mac(c, a, b); }
DL_INLINE T mac_real(T c, T a, R b)
{
    return c_make(FMA(__real__ a, b, __real__ c),
                  FMA(__imag__ a, b, __imag__ c));
}
DL_INLINE T mul(T a, T b) { return c_mul(a, b); }
DL_INLINE T scale(T a, R b) { return c_scale(a, b); }
DL_INLINE T over(T a, R b) { return c_make(__real__ a / b, __imag__ a / b); }
DL_INLINE T divide(T a, T b) { return c_div(a, b); }
DL_INLINE T minus(T a, T b) { return c_sub(a, b); }
DL_INLINE R size(T a) { return c_size(a); }
DL_INLINE R abs_of(T a) { return c_abs(a); }
DL_INLINE C to_c(T a) { return a; }
DL_INLINE T from_c(C a) { return a; }
#else
DL_INLINE T make(R a) { return a; }
DL_INLINE R re(T a) { return a; }
DL_INLINE R im(T a) { (void)a; return 0; }
DL_INLINE T conj_of(T a) { return a; }
DL_INLINE T mac(T c, T a, T b) { return FMA(a, b, c); }
DL_INLINE T mac_real(T c, T a, R b) { return FMA(a, b, c); }
DL_INLINE T mul(T a, T b) { return a * b; }
DL_INLINE T scale(T a, R b) { return a * b; }
DL_INLINE T over(T a, R b) { return a / b; }
DL_INLINE T divide(T a, T b) { return a / b; }
DL_INLINE T minus(T a, T b) { return a - b; }
DL_INLINE R size(T a) { return ABS(a); }
DL_INLINE R abs_of(T a) { return ABS(a); }
#if DL_LANES == 1
DL_INLINE C to_c(T a) { return c_make(a, 0); }
DL_INLINE T from_c(C a) { return __real__ a; }
#endif
#endif
DL_INLINE R square(T a) { return FMA(re(a), re(a), im(a) * im(a)); }
DL_INLINE M is_zero(T a) { return (M)(re(a) == 0) & (M)(im(a) == 0); }
DL_INLINE T neg(T a) { return scale(a, -1); }

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
