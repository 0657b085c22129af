/* What stands before and after a transform: real lines, a chirp, and the turn
 * between the two transforms of a line that is done as a matrix. */

/* Rows 0 .. count of a block and their columns.  Vectors take the columns, or
 * the rows where there is one column. */
#if SD_LANES == 1
#define ROWS(k, at, count, width, ...) \
    for (int64_t at = lid; at < (count) * (width); at += GROUP) { \
        const int64_t k = at / (width); \
        __VA_ARGS__ \
    }
#else
#define ROWS(k, at, count, width, ...) \
    for (int64_t k = 0; k < (count); k += (width) == 1 ? LANES : 1) \
        for (int64_t t_ = 0; t_ < (width); t_ += LANES) { \
            const int64_t at = k * (width) + t_; \
            __VA_ARGS__ \
        }
#endif

DL_INLINE NUM FN(pick)(PLANES a, int64_t at)
{
    return (NUM){FN(get)(a.re + at), FN(get)(a.im + at)};
}

DL_INLINE void FN(lay)(PLANES a, int64_t at, NUM v)
{
    FN(put)(a.re + at, v.re);
    FN(put)(a.im + at, v.im);
}

/* What belongs to row k: one number for all columns, or one a row. */
DL_INLINE NUM FN(of_row)(const DL_GLOBAL REAL *w, int64_t k, int64_t width)
{
    if (width == 1)
        return FN(get_pairs)(w + 2 * k);
    return (NUM){(VEC)w[2 * k], (VEC)w[2 * k + 1]};
}

/* The number at `at` in row k's mirror, n - k. */
DL_INLINE NUM FN(mirror)(PLANES a, int64_t n, int64_t k, int64_t at,
                         int64_t width)
{
    NUM v;

    if (width > 1)
        return FN(pick)(a, at + (n - 2 * k) * width);
    v = FN(pick)(a, n - k - (LANES - 1));
    return (NUM){SHUFFLE(v.re, v.re, BACK_), SHUFFLE(v.im, v.im, BACK_)};
}

/* Of Z, the transform of n pairs, that of the 2 n numbers, k = 0 .. n:
 * E + w(2 n, k) O, E the even ones', O the odd ones'. */
DL_PIECE void FN(join)(PLANES a, PLANES b, int64_t n, int64_t width,
                       const DL_GLOBAL REAL *w, int64_t lid)
{
    const VEC half = (VEC)(REAL)0.5;

    (void)lid;
    ROWS(k, at, n, width, {
        NUM z = FN(pick)(a, at), m = FN(mirror)(a, n, k, at, width), e, o;
        NUM t = FN(of_row)(w, k, width);

        e = (NUM){half * (z.re + m.re), half * (z.im - m.im)};
        o = (NUM){half * (z.im + m.im), half * (m.re - z.re)};
        FN(lay)(b, at,
                (NUM){FMA(t.re, o.re, FMA(-t.im, o.im, e.re)),
                      FMA(t.re, o.im, FMA(t.im, o.re, e.im))});
    })
    SYNC();
    for (int64_t i = lid; i < width; i += GROUP) {
        b.re[i] = a.re[i] + a.im[i];
        b.im[i] = 0;
        b.re[n * width + i] = a.re[i] - a.im[i];
        b.im[n * width + i] = 0;
    }
    SYNC();
}

/* The other way: what the inverse transform of n pairs starts from. */
DL_PIECE void FN(part)(PLANES a, PLANES b, int64_t n, int64_t width,
                       const DL_GLOBAL REAL *w, int64_t lid)
{
    (void)lid;
    ROWS(k, at, n, width, {
        NUM x = FN(pick)(a, at), m = FN(mirror)(a, n, k, at, width), e, o;
        NUM t = FN(of_row)(w, k, width);

        e = (NUM){x.re + m.re, x.im - m.im};
        o = (NUM){x.re - m.re, x.im + m.im};
        /* e + i conj(t) o */
        FN(lay)(b, at,
                (NUM){FMA(-t.re, o.im, FMA(t.im, o.re, e.re)),
                      FMA(t.re, o.re, FMA(t.im, o.im, e.im))});
    })
    SYNC();
    for (int64_t i = lid; i < width; i += GROUP) {
        b.re[i] = a.re[i] + a.re[n * width + i];
        b.im[i] = a.re[i] - a.re[n * width + i];
    }
    SYNC();
}

/* What is left out of a real line's transform. */
DL_INLINE void FN(repeat)(PLANES a, int64_t n, int64_t width, int64_t lid)
{
    for (int64_t t = lid; t < (n - 1) / 2 * width; t += GROUP) {
        int64_t k = n / 2 + 1 + t / width, i = t % width;

        a.re[k * width + i] = a.re[(n - k) * width + i];
        a.im[k * width + i] = -a.im[(n - k) * width + i];
    }
    for (int64_t i = lid; i < width; i += GROUP)
        a.im[i] = 0;
    SYNC();
}

DL_INLINE PLANES FN(flipped)(const PLAN *f, PLANES a)
{
    return f->flags & FFT_INVERSE ? (PLANES){a.im, a.re} : a;
}

/* ---- a chirp ---- */

/* The sum of each column in rising order; of one column, of 16 strided parts,
 * which then follow each other. */
DL_INLINE void FN(sums)(PLANES a, int64_t n, int64_t width, PLANES sum,
                        int64_t lid)
{
    int64_t each = width == 1 ? MOST_WIDTH : width;
    int64_t count = n * width;

    for (int64_t i = lid; i < each; i += GROUP) {
        REAL re = 0, im = 0;

        for (int64_t t = i; t < count; t += each) {
            re += a.re[t];
            im += a.im[t];
        }
        sum.re[i] = re;
        sum.im[i] = im;
    }
    SYNC();
    if (width == 1 && lid == 0)
        for (int64_t i = 1; i < each; i++) {
            sum.re[0] += sum.re[i];
            sum.im[0] += sum.im[i];
        }
    SYNC();
}

/* Each row by its number of the chirp, from a to b, which trade places: a
 * vector that is longer than a row spoils what is to be read. */
DL_PIECE void FN(scale_rows)(PLANES a, PLANES b, int64_t count, int64_t width,
                             const DL_GLOBAL REAL *w, int64_t lid)
{
    (void)lid;
    ROWS(k, at, count, width, {
        NUM t = FN(of_row)(w, k, width);

        FN(lay)(b, at, FN(times)(FN(pick)(a, at), t.re, t.im));
    })
    SYNC();
}

DL_INLINE void FN(by_rows)(PLANES *a, PLANES *b, int64_t count, int64_t width,
                           const DL_GLOBAL REAL *w, int64_t lid)
{
    PLANES t = *a;

    FN(scale_rows)(*a, *b, count, width, w, lid);
    *a = *b;
    *b = t;
}

/* x less its mean, to which the sum is added in the end, so that equal numbers
 * give zeros; times the chirp, and zeros up to its length.  space: the sums. */
DL_INLINE void FN(chirp)(const PLAN *f, PLANES *a, PLANES *b, PLANE space,
                         int64_t lid)
{
    const int64_t width = f->width, length = f->length;
    PLANES sum = {space, space + MOST_WIDTH};

    FN(sums)(*a, length, width, sum, lid);
    for (int64_t i = lid; i < length * width; i += GROUP) {
        a->re[i] -= sum.re[i % width] / (REAL)length;
        a->im[i] -= sum.im[i % width] / (REAL)length;
    }
    SYNC();
    FN(by_rows)(a, b, length, width, f->table + f->extra, lid);
    for (int64_t i = length * width + lid; i < f->n * width; i += GROUP)
        a->re[i] = a->im[i] = 0;
    SYNC();
}

DL_INLINE void FN(exchange)(PLANES *a)
{
    PLANE t = a->re;

    a->re = a->im;
    a->im = t;
}

/* After the first transform: times the chirp's, and turned round so that the
 * next goes back.  After that: turned again, times the chirp. */
DL_INLINE void FN(unchirp)(const PLAN *f, int64_t last, PLANES *a, PLANES *b,
                           PLANE space, int64_t lid)
{
    const DL_GLOBAL REAL *w = f->table + f->extra;
    const int64_t width = f->width;
    PLANES sum = {space, space + MOST_WIDTH};

    if (last) {
        FN(exchange)(a);
        FN(exchange)(b);
    }
    FN(by_rows)(a, b, last ? f->length : f->n, width,
                last ? w : w + 2 * f->length, lid);
    if (!last) {
        FN(exchange)(a);
        FN(exchange)(b);
        return;
    }
    for (int64_t i = lid; i < width; i += GROUP) {
        a->re[i] += sum.re[i];
        a->im[i] += sum.im[i];
    }
    SYNC();
}

DL_INLINE void FN(begin)(const PLAN *f, PLANES *a, PLANES *b, PLANE space,
                         int64_t lid)
{
    PLANES t = *a;

    if ((f->flags & FFT_HALF_IN) && (f->flags & FFT_HALVES)) {
        FN(part)(FN(flipped)(f, *a), FN(flipped)(f, *b), f->n, f->width,
                 f->table + f->extra, lid);
        *a = *b;
        *b = t;
    } else if (f->flags & FFT_HALF_IN) {
        FN(repeat)(FN(flipped)(f, *a), f->length, f->width, lid);
    }
    if (f->flags & FFT_CHIRP)
        FN(chirp)(f, a, b, space, lid);
}

/* ---- a turn ---- */

enum { FN(TURNS) = 64 };

/* w(turn, e) by two tables, e = high * 2^shift + low. */
DL_INLINE void FN(root)(const DL_GLOBAL REAL *w, int64_t e, int shift, REAL *re,
                        REAL *im)
{
    const DL_GLOBAL REAL *lo = w + 2 * (e & (((int64_t)1 << shift) - 1));
    const DL_GLOBAL REAL *hi = w + ((int64_t)2 << shift) + 2 * (e >> shift);

    *re = FMA(-lo[1], hi[1], lo[0] * hi[0]);
    *im = FMA(lo[1], hi[0], lo[0] * hi[1]);
}

/* Row k of column c turns by k c / turn: by k mod 64 and by the rest, whose
 * roots a block makes once. */
DL_PIECE void FN(turn_block)(const PLAN *f, int64_t item, PLANES a, PLANES b,
                             PLANE space, int64_t lid)
{
    const DL_GLOBAL REAL *w = f->table + f->extra;
    const int64_t width = f->width, high = f->n / FN(TURNS) + 1;
    const int64_t rows = FN(TURNS) + high;
    PLANES r = {space, space + rows * width};
    int shift = 0;

    while (((int64_t)1 << shift << shift) < f->turn)
        shift++;
    for (int64_t t = lid; t < rows * width; t += GROUP) {
        int64_t k = t / width, line = item * width + t % width;
        int64_t c = line % f->lines_c / f->turn_c;
        REAL re, im;

        k = k < FN(TURNS) ? k : (k - FN(TURNS)) * FN(TURNS);
        FN(root)(w, k * c % f->turn, shift, &re, &im);
        r.re[t] = re;
        r.im[t] = im;
    }
    SYNC();
    (void)lid;
    ROWS(k, at, f->n, width, {
        int64_t col = at - k * width;
        NUM lo = FN(pick)(r, k % FN(TURNS) * width + col);
        NUM hi = FN(pick)(r, (FN(TURNS) + k / FN(TURNS)) * width + col);
        NUM t = FN(times)(lo, hi.re, hi.im);

        FN(lay)(b, at, FN(times)(FN(pick)(a, at), t.re, t.im));
    })
    SYNC();
}

DL_INLINE void FN(end)(const PLAN *f, int64_t item, PLANES *a, PLANES *b,
                       PLANE space, int64_t lid)
{
    PLANES t = *a;

    if (f->turn)
        FN(turn_block)(f, item, *a, *b, space, lid);
    else if ((f->flags & FFT_HALVES) && (f->flags & FFT_HALF_OUT))
        FN(join)(*a, *b, f->n, f->width, f->table + f->extra, lid);
    else
        return;
    *a = *b;
    *b = t;
}
