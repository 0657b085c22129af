/* Transforms of lines.  An item is a block of `width` lines at once, or one
 * long line.  Numbers lie in planes, real parts and imaginary parts apart, in
 * two buffers between which the stages go there and back (Stockham's order,
 * which needs no shuffle; Cooley and Tukey, 1965):
 *
 *   y[q + s (r p + k)] = w(r m, p k) * sum over i of w(r, i k) x[q + s (p + m
 * i)]
 *
 * for a factor r, m what is left of the length, s what came before it; w(n, e)
 * is the e-th power of a root of 1.  The block's lines are part of s from the
 * start, so that vectors run across them.  A vector that is longer than s
 * writes over what the next ones write again: all go upwards.
 *
 * A long line is a block of `across` columns, the numbers at places of equal
 * remainder; what is then left to do is a transform over the columns, for
 * which vectors turn.
 *
 * A length with a large prime is a convolution with a chirp (Bluestein, 1970):
 * the transform of the chirp is made while compiling. */

#define PLANE DL_GLOBAL REAL *

/* What hlo_fft.c hands over, in its order. */
typedef struct {
    int64_t n; /* numbers of a transform; of the chirp's where there is one */
    int64_t flags;
    int64_t width; /* lines in a block */
    int64_t across; /* columns of a long line; 0: a block of lines */
    int64_t nline, lines_i,
        lines_c; /* line = (b * lines_i + i) * lines_c + c */
    int64_t in_b, in_i, in_step, out_b, out_i, out_step; /* in numbers */
    int64_t radix[2]; /* eight to an integer */
    int64_t length; /* of the line: real numbers, or what the chirp replaces */
    int64_t count; /* results are divided by it */
    int64_t turn, turn_c; /* line c's results turn by k (c / turn_c) / turn */
    int64_t extra; /* where the table goes on after those of the stages */
    const DL_GLOBAL REAL *table;
} FN(plan);
#define PLAN FN(plan)
#ifndef FFT_FLAGS
#define FFT_FLAGS
enum {
    FFT_INVERSE = 1,
    FFT_REAL_IN = 2, /* an odd number of them */
    FFT_REAL_OUT = 4,
    FFT_HALVES = 8, /* of a line of pairs: the halves' transforms in one */
    FFT_HALF_OUT = 16, /* what a real line's transform repeats is left out */
    FFT_HALF_IN = 32,
    FFT_CHIRP = 64,
    FFT_EDGE = 16 /* numbers beside a plane that a vector may touch */
};
#define FFT_PLANE(n) (((n) + 2 * FFT_EDGE + 15) & ~(int64_t)15)
#endif

typedef struct {
    PLANE re;
    PLANE im;
} FN(planes);
#define PLANES FN(planes)

/* ---- stages ---- */

/* All p and q of a stage: vectors on the host, one number a turn of a work
 * item elsewhere. */
#if SD_LANES == 1
#define EACH(p, q, m, s, ...) \
    for (int64_t t_ = lid; t_ < (m) * (s); t_ += GROUP) { \
        const int64_t p = t_ / (s), q = t_ % (s); \
        __VA_ARGS__ \
    }
#else
#define EACH(p, q, m, s, ...) \
    for (int64_t p = 0; p < (m); p++) \
        for (int64_t t_ = 0; t_ < (s); t_ += LANES) { \
            const int64_t q = \
                t_ + LANES <= (s) || (s) < LANES ? t_ : (s) - LANES; \
            __VA_ARGS__ \
        }
#endif

#define STAGE(R, dft) \
    DL_PIECE void FN(stage##R)(PLANES x, PLANES y, int64_t m, int64_t s, \
                               const DL_GLOBAL REAL *w, int64_t lid) \
    { \
        (void)lid; \
        EACH(p, q, m, s, { \
            const DL_GLOBAL REAL *wp = w + 2 * (R - 1) * p; \
            int64_t to = q + s * R * p; \
            NUM v[R]; \
\
            _Pragma("clang loop unroll(full)") for (int i = 0; i < R; i++) \
            { \
                v[i].re = FN(get)(x.re + q + s * (p + m * i)); \
                v[i].im = FN(get)(x.im + q + s * (p + m * i)); \
            } \
            dft(v); \
            FN(put)(y.re + to, v[0].re); \
            FN(put)(y.im + to, v[0].im); \
            _Pragma("clang loop unroll(full)") for (int k = 1; k < R; k++) \
            { \
                v[k] = \
                    FN(times)(v[k], (VEC)wp[2 * k - 2], (VEC)wp[2 * k - 1]); \
                FN(put)(y.re + to + s * k, v[k].re); \
                FN(put)(y.im + to + s * k, v[k].im); \
            } \
        }) \
    }

STAGE(2, FN(dft2))
STAGE(3, FN(dft3))
STAGE(4, FN(dft4))
STAGE(5, FN(dft5))
STAGE(8, FN(dft8))
STAGE(16, FN(dft16))

/* The r roots come before the stage's own. */
DL_PIECE void FN(stage_odd)(PLANES x, PLANES y, int r, int64_t m, int64_t s,
                            const DL_GLOBAL REAL *w, int64_t lid)
{
    (void)lid;
    EACH(p, q, m, s, {
        const DL_GLOBAL REAL *wp = w + 2 * r + 2 * (r - 1) * p;
        NUM v[MOST_RADIX];

        for (int i = 0; i < r; i++) {
            v[i].re = FN(get)(x.re + q + s * (p + m * i));
            v[i].im = FN(get)(x.im + q + s * (p + m * i));
        }
        FN(dft_odd)(v, r, w);
        for (int k = 0; k < r; k++) {
            if (k)
                v[k] = FN(times)(v[k], (VEC)wp[2 * k - 2], (VEC)wp[2 * k - 1]);
            FN(put)(y.re + q + s * (r * p + k), v[k].re);
            FN(put)(y.im + q + s * (r * p + k), v[k].im);
        }
    })
}

/* How many numbers of the table a stage takes. */
DL_INLINE int64_t FN(stage)(PLANES x, PLANES y, int r, int64_t m, int64_t s,
                            const DL_GLOBAL REAL *w, int64_t lid)
{
    if (r == 16)
        FN(stage16)(x, y, m, s, w, lid);
    else if (r == 8)
        FN(stage8)(x, y, m, s, w, lid);
    else if (r == 5)
        FN(stage5)(x, y, m, s, w, lid);
    else if (r == 4)
        FN(stage4)(x, y, m, s, w, lid);
    else if (r == 3)
        FN(stage3)(x, y, m, s, w, lid);
    else if (r == 2)
        FN(stage2)(x, y, m, s, w, lid);
    else {
        FN(stage_odd)(x, y, r, m, s, w, lid);
        return 2 * r + 2 * (r - 1) * m;
    }
    return 2 * (r - 1) * m;
}

/* All stages over `m` rows of s numbers; the result is in a or b, which trade
 * places so that it is a.  Returns the rest of the table. */
DL_INLINE const DL_GLOBAL REAL *FN(stages)(const PLAN *f, int64_t m, int64_t s,
                                           PLANES *a, PLANES *b, int64_t lid)
{
    const DL_GLOBAL REAL *w = f->table;

    for (int i = 0; i < 16; i++) {
        int r = (int)(f->radix[i / 8] >> (i % 8 * 8) & 127);
        PLANES t = *a;

        if (r == 0)
            break;
        m /= r;
        w += FN(stage)(*a, *b, r, m, s, w, lid);
        s *= r;
        *a = *b;
        *b = t;
        SYNC();
    }
    return w;
}

/* ---- across the columns of a long line ---- */

/* Vectors of rows k .., one for each of R columns. */
DL_INLINE void FN(columns)(const DL_GLOBAL REAL *x, int64_t k, int R, VEC *out)
{
#if SD_LANES == 1
    for (int j = 0; j < R; j++)
        out[j] = x[k * R + j];
#else
    if (R % LANES == 0) {
        for (int j = 0; j < R; j += LANES) {
#pragma clang loop unroll(full)
            for (int i = 0; i < LANES; i++)
                out[j + i] = FN(get)(x + (k + i) * R + j);
            FN(turn)(out + j);
        }
        return;
    }
    for (int j = 0; j < R; j++)
        for (int i = 0; i < LANES; i++)
            out[j][i] = x[(k + i) * R + j];
#endif
}

/* y[k + rows j] = the transform over j of w(n, k j) x[k, j], for all rows k.
 * Where R is odd its roots come first; those of column 0 are left out. */
DL_INLINE void FN(cross)(PLANES x, PLANES y, int R, int64_t rows,
                         const DL_GLOBAL REAL *w, int64_t lid)
{
    const DL_GLOBAL REAL *root = w, *wr = w + (R % 2 ? 2 * R : 0) - rows;
    const DL_GLOBAL REAL *wi = wr + rows * (R - 1);

    (void)lid;
    EACH(p, k, (int64_t)1, rows, {
        VEC re[MOST_ACROSS], im[MOST_ACROSS];
        NUM v[MOST_ACROSS];

        (void)p;
        FN(columns)(x.re, k, R, re);
        FN(columns)(x.im, k, R, im);
        for (int j = 0; j < R; j++) {
            v[j] = (NUM){re[j], im[j]};
            if (j)
                v[j] = FN(times)(v[j], FN(get)(wr + rows * j + k),
                                 FN(get)(wi + rows * j + k));
        }
        if (R == 16)
            FN(dft16)(v);
        else if (R == 8)
            FN(dft8)(v);
        else
            FN(dft_odd)(v, R, root);
        for (int j = 0; j < R; j++) {
            FN(put)(y.re + k + rows * j, v[j].re);
            FN(put)(y.im + k + rows * j, v[j].im);
        }
    })
}

DL_PIECE void FN(across16)(PLANES x, PLANES y, int64_t rows,
                           const DL_GLOBAL REAL *w, int64_t lid)
{
    FN(cross)(x, y, 16, rows, w, lid);
}

DL_PIECE void FN(across_any)(PLANES x, PLANES y, int R, int64_t rows,
                             const DL_GLOBAL REAL *w, int64_t lid)
{
    FN(cross)(x, y, R, rows, w, lid);
}

/* The whole transform of what lies in a; the result is in a. */
DL_INLINE void FN(transform)(const PLAN *f, PLANES *a, PLANES *b, int64_t lid)
{
    const int64_t rows = f->across ? f->n / f->across : f->n;
    const DL_GLOBAL REAL *w;
    PLANES t;

    w = FN(stages)(f, rows, f->across ? f->across : f->width, a, b, lid);
    if (!f->across)
        return;
    if (f->across == 16)
        FN(across16)(*a, *b, rows, w, lid);
    else
        FN(across_any)(*a, *b, (int)f->across, rows, w, lid);
    t = *a;
    *a = *b;
    *b = t;
    SYNC();
}

/* ---- to and from memory ---- */

DL_INLINE int64_t FN(start)(const PLAN *f, int64_t line, int64_t each_b,
                            int64_t each_i, int64_t each_c)
{
    int64_t c = line % f->lines_c, i = line / f->lines_c;

    return i / f->lines_i * each_b + i % f->lines_i * each_i + c * each_c;
}

/* Numbers 0 .. count of the block's lines into rows of planes.  What there is
 * no line for is a copy of the last. */
DL_PIECE void FN(load)(const PLAN *f, int64_t item, const DL_GLOBAL REAL *x,
                       int64_t count, PLANES a, int64_t lid)
{
    const int64_t width = f->width, step = f->in_step;
    const int pair = !(f->flags & FFT_REAL_IN);

#if SD_LANES == 1
    for (int64_t t = lid; t < count * width; t += GROUP) {
        int64_t line = item * width + t % width;
        const DL_GLOBAL REAL *p;

        line = line < f->nline ? line : f->nline - 1;
        p = x + FN(start)(f, line, f->in_b, f->in_i, 2) + t / width * step;
        a.re[t] = p[0];
        a.im[t] = pair ? p[1] : 0;
    }
#else
    int64_t at[MOST_WIDTH], j = 0;
    bool side = pair && width % LANES == 0, whole;

    (void)lid;
    for (int64_t i = 0; i < width; i++) {
        int64_t line = item * width + i;

        line = line < f->nline ? line : f->nline - 1;
        at[i] = FN(start)(f, line, f->in_b, f->in_i, 2);
        side = side && at[i] == at[0] + 2 * i;
    }
    whole = pair && step == 2 && (width == 1 || width % LANES == 0);
    if (side) {
        for (; j < count; j++)
            for (int64_t i = 0; i < width; i += LANES) {
                NUM v = FN(get_pairs)(x + at[i] + j * step);

                FN(put)(a.re + j * width + i, v.re);
                FN(put)(a.im + j * width + i, v.im);
            }
    } else if (whole && width == 1) {
        for (; j + LANES <= count; j += LANES) {
            NUM v = FN(get_pairs)(x + at[0] + j * 2);

            FN(put)(a.re + j, v.re);
            FN(put)(a.im + j, v.im);
        }
    } else if (whole) {
        for (; j + LANES <= count; j += LANES)
            for (int64_t i = 0; i < width; i += LANES) {
                VEC re[LANES], im[LANES];

#pragma clang loop unroll(full)
                for (int k = 0; k < LANES; k++) {
                    NUM v = FN(get_pairs)(x + at[i + k] + j * 2);

                    re[k] = v.re;
                    im[k] = v.im;
                }
                FN(turn)(re);
                FN(turn)(im);
#pragma clang loop unroll(full)
                for (int k = 0; k < LANES; k++) {
                    FN(put)(a.re + (j + k) * width + i, re[k]);
                    FN(put)(a.im + (j + k) * width + i, im[k]);
                }
            }
    }
    for (; j < count; j++)
        for (int64_t i = 0; i < width; i++) {
            a.re[j * width + i] = x[at[i] + j * step];
            a.im[j * width + i] = pair ? x[at[i] + j * step + 1] : 0;
        }
#endif
    SYNC();
}

DL_PIECE void FN(store)(const PLAN *f, int64_t item, PLANES a, int64_t count,
                        DL_GLOBAL REAL *y, int64_t lid)
{
    const int64_t width = f->width, step = f->out_step;
    const int pair = !(f->flags & FFT_REAL_OUT);
    const REAL part = (REAL)1 / (REAL)f->count;

#if SD_LANES == 1
    for (int64_t t = lid; t < count * width; t += GROUP) {
        int64_t line = item * width + t % width;
        DL_GLOBAL REAL *p;

        if (line >= f->nline)
            continue;
        p = y + FN(start)(f, line, f->out_b, f->out_i, 2) + t / width * step;
        p[0] = a.re[t] * part;
        if (pair)
            p[1] = a.im[t] * part;
    }
#else
    int64_t at[MOST_WIDTH], j = 0, n = f->nline - item * width;
    bool side = pair && width % LANES == 0, whole;

    (void)lid;
    n = n < width ? n : width;
    for (int64_t i = 0; i < n; i++) {
        at[i] = FN(start)(f, item * width + i, f->out_b, f->out_i, 2);
        side = side && at[i] == at[0] + 2 * i;
    }
    side = side && n == width;
    whole =
        pair && step == 2 && n == width && (width == 1 || width % LANES == 0);
    if (side) {
        for (; j < count; j++)
            for (int64_t i = 0; i < width; i += LANES) {
                NUM v = {FN(get)(a.re + j * width + i) * part,
                         FN(get)(a.im + j * width + i) * part};

                FN(put_pairs)(y + at[i] + j * step, v);
            }
    } else if (whole && width == 1) {
        for (; j + LANES <= count; j += LANES) {
            NUM v = {FN(get)(a.re + j) * part, FN(get)(a.im + j) * part};

            FN(put_pairs)(y + at[0] + j * 2, v);
        }
    } else if (whole) {
        for (; j + LANES <= count; j += LANES)
            for (int64_t i = 0; i < width; i += LANES) {
                VEC re[LANES], im[LANES];

#pragma clang loop unroll(full)
                for (int k = 0; k < LANES; k++) {
                    re[k] = FN(get)(a.re + (j + k) * width + i) * part;
                    im[k] = FN(get)(a.im + (j + k) * width + i) * part;
                }
                FN(turn)(re);
                FN(turn)(im);
#pragma clang loop unroll(full)
                for (int k = 0; k < LANES; k++)
                    FN(put_pairs)(y + at[i + k] + j * 2, (NUM){re[k], im[k]});
            }
    }
    for (; j < count; j++)
        for (int64_t i = 0; i < n; i++) {
            y[at[i] + j * step] = a.re[j * width + i] * part;
            if (pair)
                y[at[i] + j * step + 1] = a.im[j * width + i] * part;
        }
#endif
}

#include "dl_fft_ends.h"

void FN(dl_fft)(const DL_GLOBAL REAL *x, const DL_GLOBAL REAL *table,
                DL_GLOBAL REAL *y, PLANE work, int64_t item, int64_t lid,
                int64_t n, int64_t flags, int64_t width, int64_t across,
                int64_t nline, int64_t lines_i, int64_t lines_c, int64_t in_b,
                int64_t in_i, int64_t in_step, int64_t out_b, int64_t out_i,
                int64_t out_step, int64_t radix0, int64_t radix1,
                int64_t length, int64_t count, int64_t turn, int64_t turn_c,
                int64_t extra)
{
    const PLAN f = {
        n,      flags, width,   across, nline, lines_i,  lines_c,
        in_b,   in_i,  in_step, out_b,  out_i, out_step, {radix0, radix1},
        length, count, turn,    turn_c, extra, table};
    const int64_t size = FFT_PLANE((n + 1) * width);
    PLANE p = work + FFT_EDGE;
    PLANES a = {p, p + size}, b = {p + 2 * size, p + 3 * size};
    const int64_t numbers = flags & FFT_HALVES ? n : length;

    FN(load)(&f, item, x,
             !(flags & FFT_HALF_IN) ? numbers
             : flags & FFT_HALVES   ? n + 1
                                    : length / 2 + 1,
             flags & FFT_INVERSE ? (PLANES){a.im, a.re} : a, lid);
    FN(begin)(&f, &a, &b, p + 4 * size, lid);
    for (int64_t i = 0; i < (flags & FFT_CHIRP ? 2 : 1); i++) {
        FN(transform)(&f, &a, &b, lid);
        if (flags & FFT_CHIRP)
            FN(unchirp)(&f, i, &a, &b, p + 4 * size, lid);
    }
    FN(end)(&f, item, &a, &b, p + 4 * size, lid);
    FN(store)(&f, item, flags & FFT_INVERSE ? (PLANES){a.im, a.re} : a,
              !(flags & FFT_HALF_OUT) ? numbers
              : flags & FFT_HALVES    ? n + 1
                                      : length / 2 + 1,
              y, lid);
    SYNC();
}
