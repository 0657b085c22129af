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

#define PLANE DL_WORK REAL *

/* How the lines lie in memory, in numbers of REAL: line (b * lines_i + i) *
 * lines_c + c. */
typedef struct {
    int64_t b, i, c; /* from one to the next */
    int64_t step;    /* from a row, which is a number, to the next */
    int64_t im;      /* to its imaginary part; 0: there is none */
    int64_t whole;   /* see dl_fft_io.h */
} FN(lie);
#define LIE FN(lie)

typedef struct {
    int64_t n; /* numbers of a transform; of the chirp's where there is one */
    int64_t flags;
    int64_t width;  /* lines in a block */
    int64_t across; /* columns of a long line; 0: a block of lines */
    int64_t nline, lines_i, lines_c;
    LIE in, out;
    int64_t radix[2]; /* eight to an integer */
    int64_t real;     /* the radix of a real line's stage on reals; or 0 */
    int64_t length; /* numbers of a line before a chirp; half a real line's with
                       FFT_HALVES */
    int64_t turn, turn_c; /* line c's results turn by k (c / turn_c) / turn */
    int64_t extra; /* where the table goes on after those of the stages */
    REAL part;     /* results are multiplied by it */
    const DL_GLOBAL REAL *table;
    int64_t item; /* the block */
    DL_GLOBAL REAL *x, *y; /* the array, and the result */
    bool reads_x;  /* the first stage reads the array: no pass brings it */
    bool writes_y; /* the last one writes the result */
} FN(plan);
#define PLAN FN(plan)
#ifndef FFT_FLAGS
#define FFT_FLAGS
enum {
    FFT_INVERSE = 1,
    FFT_HALVES = 2,   /* of a line of pairs: the halves' transforms in one */
    FFT_HALF_OUT = 4, /* what a real line's transform repeats is left out */
    FFT_HALF_IN = 8,
    FFT_CHIRP = 16,
    FFT_EDGE = 16, /* numbers beside a plane that a vector may touch */
    FFT_GAP = 16, /* numbers of a gap, and how many there are */
    FFT_GAPS = 16
};
#define FFT_PLANE(n) \
    (((n) + 2 * FFT_EDGE + FFT_GAP * FFT_GAPS + 15) & ~(int64_t)15)
#endif

/* Number i of a plane. */
#define AT(p, i) ((p)[PAD(i)])

typedef struct {
    PLANE re;
    PLANE im;
} FN(planes);
#define PLANES FN(planes)

/* A vector of a plane, from number `at` on. */
DL_INLINE VEC FN(look)(const DL_WORK REAL *p, INDEX at)
{
#if SD_LANES == 1
    return AT(p, at);
#else
    return FN(get)(p + at);
#endif
}

DL_INLINE void FN(set)(PLANE p, INDEX at, VEC v)
{
#if SD_LANES == 1
    AT(p, at) = v;
#else
    FN(put)(p + at, v);
#endif
}

DL_INLINE NUM FN(pick)(PLANES a, INDEX at)
{
    return (NUM){FN(look)(a.re, at), FN(look)(a.im, at)};
}

DL_INLINE void FN(lay)(PLANES a, INDEX at, NUM v)
{
    FN(set)(a.re, at, v.re);
    FN(set)(a.im, at, v.im);
}

DL_INLINE void FN(swap)(PLANES *a, PLANES *b)
{
    PLANES t = *a;

    *a = *b;
    *b = t;
}

DL_INLINE PLANES FN(flipped)(const PLAN *f, PLANES a)
{
    return f->flags & FFT_INVERSE ? (PLANES){a.im, a.re} : a;
}

/* Of a line of length numbers, or of the half that says all of a real one. */
DL_INLINE int64_t FN(rows)(const PLAN *f, bool half)
{
    return !half                    ? f->length
           : f->flags & FFT_HALVES ? f->length + 1
                                   : f->length / 2 + 1;
}

#include "dl_fft_io.h"
#include "dl_fft_stages.h"

/* ---- across the columns of a long line ---- */

/* Vectors of rows k .., one for each of R columns. */
DL_INLINE void FN(columns)(const DL_WORK REAL *x, INDEX k, int R, VEC *out)
{
#if SD_LANES == 1
    WRITTEN_OUT for (int j = 0; j < R; j++)
        out[j] = AT(x, k * R + j);
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
DL_INLINE void FN(cross)(const PLAN *f, PLANES x, PLANES y, int R, INDEX rows,
                         const DL_GLOBAL REAL *w, int64_t lid)
{
    const DL_GLOBAL REAL *root = w, *wr = w + (R % 2 ? 2 * R : 0) - rows;
    const DL_GLOBAL REAL *wi = wr + rows * (R - 1);

    (void)f;
    (void)lid;
    EACH(p, k, (INDEX)1, rows, {
        VEC re[MOST_ACROSS], im[MOST_ACROSS];
        NUM v[MOST_ACROSS];

        (void)p;
        FN(columns)(x.re, k, R, re);
        FN(columns)(x.im, k, R, im);
        WRITTEN_OUT for (int j = 0; j < R; j++)
        {
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
#if SD_LANES == 1
        if (f->writes_y) {
            FN(lay_in_y)(f, k, rows, R, v);
            continue;
        }
#endif
        WRITTEN_OUT for (int j = 0; j < R; j++)
            FN(lay)(y, k + rows * j, v[j]);
    })
}

DL_PIECE void FN(across16)(const PLAN *f, PLANES x, PLANES y, INDEX rows,
                           const DL_GLOBAL REAL *w, int64_t lid)
{
    FN(cross)(f, x, y, 16, rows, w, lid);
}

DL_PIECE void FN(across_any)(const PLAN *f, PLANES x, PLANES y, int R,
                             INDEX rows, const DL_GLOBAL REAL *w, int64_t lid)
{
    FN(cross)(f, x, y, R, rows, w, lid);
}

/* What the stages of lines begin with: the table, their rows of s numbers, and
 * the gap between those. */
typedef struct {
    const DL_GLOBAL REAL *w;
    INDEX rows, s, gap;
} FN(course);
#define COURSE FN(course)

/* Of a real line: a stage of f->real, then lines of what is left, or those
 * first where it becomes real. */
DL_INLINE COURSE FN(real_course)(const PLAN *f, PLANES *a, PLANES *b, SIZES z,
                                 int64_t lid)
{
    const int r = (int)f->real;

    if (!(f->flags & FFT_INVERSE)) {
        z.each = FN(gaps)(f, 0, z.m);
        FN(stage_real)(*a, *b, r, z, f->table, lid);
        FN(swap)(a, b);
    }
    return (COURSE){f->table + 2 * r + 2 * (r / 2) * z.m, z.m,
                    z.s * (r / 2 + 1), z.each ? FFT_GAP : 0};
}

/* The whole transform of what lies in a; the result is in a.  The stages are
 * called at one place: on GPUs all that is called becomes a part of dl_fft,
 * once for each place. */
DL_INLINE void FN(transform)(const PLAN *f, PLANES *a, PLANES *b, int64_t lid)
{
    const int r = (int)f->real;
    const INDEX n = (INDEX)f->n, width = (INDEX)f->width;
    const INDEX across = (INDEX)f->across, rows = across ? n / across : n;
    const SIZES z = {r ? n / r : n, width, 0, 0, false, false};
    COURSE c = {f->table, rows, across ? across : width, 0};

    if (r)
        c = FN(real_course)(f, a, b, z, lid);
    c.w = FN(stages)(f, c.w, c.rows, c.s, c.gap, a, b, lid);
    if (r && f->flags & FFT_INVERSE)
        FN(stage_to_real)((PLANES){a->im, a->re}, (PLANES){b->im, b->re}, r, z,
                          f->table, lid);
    else if (f->across == 16)
        FN(across16)(f, *a, *b, rows, c.w, lid);
    else if (f->across)
        FN(across_any)(f, *a, *b, (int)f->across, rows, c.w, lid);
    else
        return;
    FN(swap)(a, b);
    SYNC();
}

/* ---- the whole ---- */

#include "dl_fft_ends.h"

DL_PIECE void FN(load)(const PLAN *f, int64_t rows, PLANES a, int64_t lid)
{
    FN(move)(f, &f->in, f->x, rows, a, 0, lid);
    SYNC();
    if (f->in.whole)
        FN(make_real)(f, &f->in, a, lid);
}

DL_PIECE void FN(store)(const PLAN *f, int64_t rows, PLANES a, int64_t lid)
{
    FN(move)(f, &f->out, f->y, rows, a, 1, lid);
    SYNC();
}

void FN(dl_fft)(const DL_GLOBAL REAL *x, const DL_GLOBAL REAL *table,
                DL_GLOBAL REAL *y, PLANE work, int64_t item, int64_t lid,
                int64_t n, int64_t flags, int64_t width, int64_t across,
                int64_t nline, int64_t lines_i, int64_t lines_c, int64_t in_b,
                int64_t in_i, int64_t in_c, int64_t in_step, int64_t in_im,
                int64_t out_b, int64_t out_i, int64_t out_c, int64_t out_step,
                int64_t out_im, int64_t radix0, int64_t radix1, int64_t real,
                int64_t length, int64_t count, int64_t turn, int64_t turn_c,
                int64_t extra, int64_t whole)
{
    const bool back = flags & FFT_INVERSE;
    /* has stages, and nothing before or after them but what they read */
    const bool plain = SD_LANES == 1 && radix0 && !whole && !real &&
                       !(flags & FFT_CHIRP);
    const PLAN f = {
        n, flags, width, across, nline, lines_i, lines_c,
        {in_b, in_i, in_c, in_step, in_im, back ? whole : 0},
        {out_b, out_i, out_c, out_step, out_im, back ? 0 : whole},
        {radix0, radix1}, real, length, turn, turn_c, extra,
        FN(part_of)(flags, count), table, item, (DL_GLOBAL REAL *)x, y,
        plain && in_im == 1 && !(flags & FFT_HALF_IN),
        plain && out_im == 1 && !(flags & FFT_HALF_OUT) && !turn};
    const int64_t size = ROOM(FFT_PLANE((n + 1) * width));
    PLANE p = work + FFT_EDGE;
    PLANE space = p + 4 * size;
    PLANES a = {p, p + size}, b = {p + 2 * size, p + 3 * size};

    if (!f.reads_x)
        FN(load)(&f, FN(rows)(&f, flags & FFT_HALF_IN), FN(flipped)(&f, a),
                 lid);
    FN(begin)(&f, &a, &b, space, lid);
    for (int turn = 0; turn <= (flags & FFT_CHIRP ? 1 : 0); turn++) {
        if (turn)
            FN(convolve)(&f, &a, &b, lid);
        FN(transform)(&f, &a, &b, lid);
    }
    if (flags & FFT_CHIRP)
        FN(unchirp)(&f, &a, &b, space, lid);
    FN(end)(&f, &a, &b, space, lid);
    if (!f.writes_y)
        FN(store)(&f, FN(rows)(&f, flags & FFT_HALF_OUT), FN(flipped)(&f, a),
                  lid);
}
