/* dl_la: what the functions of linear algebra are written in.  A file
 * dl_la_<type>.c says what R is and whether numbers are complex, and includes
 * the algorithms, each a function of one matrix.
 *
 * With DL_LANES those that say so are of as many matrices side by side, which
 * all go one way: what one of them wants else is selected, to the same bits.
 *
 * Matrices are row-major.  Inner loops run along rows, so that a compiler
 * makes vectors of them; where a sum must run along a row it is 8 sums, the
 * same on every machine.  What an algorithm rotates it keeps as rows. */
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
#define LARGE 0x1p400 /* its square is finite, and its inverse's not 0 */
#define NOT_A_NUMBER __builtin_nan("")
#else
typedef float S;
typedef float _Complex C;
typedef int32_t S_INT;
#define EPS 0x1p-23f
#define LEAST 0x1p-126f
#define LARGE 0x1p50f
#define NOT_A_NUMBER __builtin_nanf("")
#endif

/* R: a real number, or one each of DL_LANES matrices side by side; I: an
 * integer of them, M: what a comparison gives. */
#if DL_LANES > 1
typedef S R __attribute__((ext_vector_type(DL_LANES)));
typedef S_INT I __attribute__((ext_vector_type(DL_LANES)));
typedef I M;
#define FMA(a, b, c) __builtin_elementwise_fma(a, b, c)
#define SQRT(a) __builtin_elementwise_sqrt(a)
#define ABS(a) __builtin_elementwise_abs(a)
#define ANY(m) (__builtin_reduce_or(m) != 0)
#define ALL(m) (__builtin_reduce_and(m) != 0)
#else
typedef S R;
typedef int32_t I;
typedef int M;
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
#define SEL(m, a, b) ((m) ? (a) : (b))

#if DL_IS_COMPLEX
typedef C T;
#else
typedef R T;
#endif

#define RP DL_GLOBAL R *restrict
#define TP DL_GLOBAL T *restrict
#define CP DL_GLOBAL C *restrict
#define IP DL_GLOBAL I *restrict
#define CONST_TP DL_GLOBAL const T *restrict
#define CONST_IP DL_GLOBAL const int32_t *restrict

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

/* ---- numbers ---- */

DL_INLINE R max_of(R a, R b) { return a > b ? a : b; }
DL_INLINE int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }
DL_INLINE int64_t most_of(int64_t a, int64_t b) { return a > b ? a : b; }
DL_INLINE R with_sign(R a, R of) { return of < 0 ? -ABS(a) : ABS(a); }

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
    for (int64_t i = 0; i < n; i++)
        y[i] = mac(y[i], a, x[i]);
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
/* y -= a[0] x[0] + a[1] x[1] + ..., in this order: numbers a (conj: of which
 * it is the conjugates) are `step` apart, rows x ld.  A few columns at a time
 * stay in registers. */
DL_INLINE void take_rows(int64_t count, DL_GLOBAL const T *a, int64_t step,
                         int conj, DL_GLOBAL const T *x, int64_t ld, int64_t n,
                         DL_GLOBAL T *y)
{
    enum { TILE = DL_LANES > 1 ? 8 : 32 };
    int64_t j = 0;

    for (; j + TILE <= n; j += TILE) {
        T sum[TILE];

        for (int c = 0; c < TILE; c++)
            sum[c] = y[j + c];
        for (int64_t k = 0; k < count; k++) {
            T by = neg(conj ? conj_of(a[k * step]) : a[k * step]);

            for (int c = 0; c < TILE; c++)
                sum[c] = mac(sum[c], by, x[k * ld + j + c]);
        }
        for (int c = 0; c < TILE; c++)
            y[j + c] = sum[c];
    }
    for (; j < n; j++) {
        T sum = y[j];

        for (int64_t k = 0; k < count; k++)
            sum = mac(sum, neg(conj ? conj_of(a[k * step]) : a[k * step]),
                      x[k * ld + j]);
        y[j] = sum;
    }
}
/* y += a conj(x) */
DL_INLINE void add_conj(int64_t n, T a, CONST_TP x, TP y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = mac(y[i], a, conj_of(x[i]));
}
DL_INLINE void scale_row(int64_t n, R a, TP x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = scale(x[i], a);
}
DL_INLINE void fill_row(int64_t n, T a, TP x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = a;
}
DL_INLINE void copy_row(int64_t n, CONST_TP x, TP y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i];
}
DL_INLINE void swap_rows(int64_t n, DL_GLOBAL T *x, DL_GLOBAL T *y)
{
    for (int64_t i = 0; x != y && i < n; i++) {
        T t = x[i];

        x[i] = y[i];
        y[i] = t;
    }
}
/* The sum of x y, in 8 sums. */
DL_INLINE T dot(int64_t n, CONST_TP x, CONST_TP y)
{
    T s[8], t;
    int64_t i = 0;

    for (int k = 0; k < 8; k++)
        s[k] = make(0);
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++)
            s[k] = mac(s[k], x[i + k], y[i + k]);
    for (int h = 4; h; h /= 2)
        for (int k = 0; k < h; k++)
            s[k] += s[k + h];
    t = s[0];
    for (; i < n; i++)
        t = mac(t, x[i], y[i]);
    return t;
}
#if DL_LANES == 1
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

/* A factor that brings numbers of this size to where their squares are neither
 * infinite nor 0; 1 where they are there. */
DL_INLINE R safe_factor(R most)
{
    if (most > LARGE || (most > 0 && most < 1 / LARGE))
        return 1 / max_of(most, LEAST);
    return 1;
}
#endif
DL_INLINE M is_finite(R x) { return x - x == 0; }

/* x turned by (c, s) with y: [c s; -s c] of the two rows. */
DL_INLINE void turn_rows(int64_t n, R c, R s, TP x, TP y)
{
    for (int64_t i = 0; i < n; i++) {
        T u = x[i], v = y[i];

        x[i] = scale(v, s) + scale(u, c);
        y[i] = scale(v, c) - scale(u, s);
    }
}

/* to, cols x rows, is from, rows x cols, with rows and columns exchanged. */
DL_INLINE void transpose(int64_t rows, int64_t cols, CONST_TP from, TP to)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            to[j * rows + i] = from[i * cols + j];
}

/* ---- reflectors: 1 - tau v v^H with v[0] = 1, as LAPACK makes them ---- */

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

DL_INLINE R squares(int64_t n, DL_GLOBAL const T *x, int64_t step)
{
    R sum = 0;

    for (int64_t i = 1; i < n; i++)
        sum += square(x[i * step]);
    return sum;
}

/* n numbers `step` apart become (beta, v[1], ...); beta is real and
 * (1 - conj(tau) v v^H) x = (beta, 0, ...).  Returns tau. */
DL_PART T reflect(int64_t n, DL_GLOBAL T *x, int64_t step)
{
    R below, beta, factor;
    T alpha, by, tau;
    M none;

    if (n < 1)
        return make(0);
    below = squares(n, x, step);
    factor = reflect_factor(n, x, step, below);
    if (ANY(factor != 1)) {
        for (int64_t i = 0; i < n; i++)
            x[i * step] = over(x[i * step], factor);
        below = squares(n, x, step);
    }
    alpha = x[0];
    none = (M)(below == 0) & (M)(im(alpha) == 0);
    if (ALL(none)) {
        x[0] = scale(alpha, factor);
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
    for (int64_t i = 1; i < n; i++)
        x[i * step] = divide(x[i * step], by);
    x[0] = make(beta * factor);
    return tau;
}

/* to = (1 - tau v v^H) to; v as reflect leaves it, rows of `to` ld apart;
 * w: room for cols numbers. */
DL_PART void reflect_left(CONST_TP v, int64_t step, T tau, DL_GLOBAL T *to,
                         int64_t rows, int64_t cols, int64_t ld, TP w)
{
    M none = is_zero(tau);

    if (ALL(none))
        return;
    copy_row(cols, to, w);
    for (int64_t i = 1; i < rows; i++)
        add_row(cols, conj_of(v[i * step]), to + i * ld, w);
    tau = neg(tau);
    add_row_unless(none, cols, tau, w, to);
    for (int64_t i = 1; i < rows; i++)
        add_row_unless(none, cols, mul(tau, v[i * step]), w, to + i * ld);
}

#if DL_LANES == 1
/* to = to (1 - tau v v^H); v lies in a row, v[0] counts as 1. */
DL_PART void reflect_right(CONST_TP v, T tau, DL_GLOBAL T *to, int64_t rows,
                          int64_t cols, int64_t ld)
{
    if (re(tau) == 0 && im(tau) == 0)
        return;
    for (int64_t i = 0; i < rows; i++) {
        DL_GLOBAL T *x = to + i * ld;
        T sum = mul(neg(tau), x[0] + dot(cols - 1, x + 1, v + 1));

        x[0] += sum;
        add_conj(cols - 1, sum, v + 1, x + 1);
    }
}
#endif

#endif
