/* dl_la: the numbers that the functions of linear algebra are written in, and
 * how they stand in vectors and groups of work items.  A file
 * dl_la_<type>.c says what R is and whether numbers are complex, and includes
 * the algorithms, each a function of one matrix.
 *
 * With DL_LANES those that say so are of as many matrices side by side, which
 * all go one way: what one of them wants else is selected, to the same bits.
 * With DL_GROUP those that say so are of a group of a GPU's work items, to the
 * same bits as well. */
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

#endif
