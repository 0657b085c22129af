/* What stands before and after a transform: real lines, a chirp, and the turn
 * between the two transforms of a line that is done as a matrix. */

/* Rows 0 .. count of a block and their columns.  Vectors take the columns, or
 * the rows where there is one column. */
#if SD_LANES == 1
#define ROWS(k, at, count, width, ...) \
    for (INDEX at = (INDEX)lid; at < (count) * (width); at += (INDEX)GROUP) { \
        const INDEX k = ROW(at, width); \
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
        AT(b.re, i) = AT(a.re, i) + AT(a.im, i);
        AT(b.im, i) = 0;
        AT(b.re, n * width + i) = AT(a.re, i) - AT(a.im, i);
        AT(b.im, n * width + i) = 0;
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
        AT(b.re, i) = AT(a.re, i) + AT(a.re, n * width + i);
        AT(b.im, i) = AT(a.re, i) - AT(a.re, n * width + i);
    }
    SYNC();
}

/* What is left out of a real line's transform. */
DL_INLINE void FN(repeat)(PLANES a, int64_t n, int64_t width, int64_t lid)
{
    for (int64_t t = lid; t < (n - 1) / 2 * width; t += GROUP) {
        int64_t k = n / 2 + 1 + t / width, i = t % width;

        AT(a.re, k * width + i) = AT(a.re, (n - k) * width + i);
        AT(a.im, k * width + i) = -AT(a.im, (n - k) * width + i);
    }
    for (int64_t i = lid; i < width; i += GROUP)
        AT(a.im, i) = 0;
    SYNC();
}

/* Of a real line of r m numbers with a stage of r on reals, row (k mod r, k / r)
 * of r / 2 + 1 lines is number k, the rest by mirror.  To or from numbers 0 ..
 * n / 2 in a row, of which those that are their own mirrors are real. */
DL_PIECE void FN(collect)(const PLAN *f, PLANES a, PLANES b, int64_t lid)
{
    const int64_t r = f->real, h = r / 2, m = f->n / r, width = f->width;

    (void)lid;
    ROWS(k, at, f->n / 2 + 1, width, {
        int64_t i = (uint32_t)k % (uint32_t)r, j = (uint32_t)k / (uint32_t)r;
        int64_t row = i <= h ? j * (h + 1) + i : (m - 1 - j) * (h + 1) + r - i;
        NUM v = FN(pick)(a, row * width + at - k * width);

        FN(lay)(b, at, i <= h ? v : (NUM){v.re, -v.im});
    })
    SYNC();
}

DL_PIECE void FN(deal)(const PLAN *f, PLANES a, PLANES b, int64_t lid)
{
    const int64_t r = f->real, h = r / 2, m = f->n / r, width = f->width;

    (void)lid;
    for (int64_t i = lid; i < width; i += GROUP) {
        AT(a.im, i) = 0;
        if (f->n % 2 == 0)
            AT(a.im, f->n / 2 * width + i) = 0;
    }
    SYNC();
    ROWS(row, at, m * (h + 1), width, {
        int64_t i = (uint32_t)row % (uint32_t)(h + 1);
        int64_t j = (uint32_t)row / (uint32_t)(h + 1), k = i + r * j;
        bool own = k <= f->n / 2;
        NUM v = FN(pick)(a, (own ? k : f->n - k) * width + at - row * width);

        FN(lay)(b, at, own ? v : (NUM){v.re, -v.im});
    })
    SYNC();
}

/* ---- a chirp ---- */

/* A real line of odd length and its half need not all of a convolution: what
 * it becomes, or what becomes of it, is real parts alone.  Backwards, the sum
 * is of row 0 and twice the others. */
DL_INLINE bool FN(is_one_sided)(int64_t flags)
{
    return (flags & FFT_CHIRP) && (flags & FFT_HALF_IN) &&
           !(flags & FFT_HALVES);
}

DL_INLINE REAL FN(part_of)(int64_t flags, int64_t count)
{
    return (FN(is_one_sided)(flags) ? (REAL)2 : (REAL)1) / (REAL)count;
}

/* The sum of each column, by 32 rows; of one column, of 16 strided parts,
 * which then follow each other.  A vector may write beside `sum.re`, so that
 * sum.im comes after it. */
DL_INLINE void FN(sum_plane)(const DL_WORK REAL *x, int64_t rows,
                             int64_t each, PLANE sum, int64_t lid)
{
    (void)lid;
    EACH(p, i, (INDEX)1, (INDEX)each, {
        VEC all = (VEC)(REAL)0;

        (void)p;
        for (int64_t k = 0; k < rows; k += 32) {
            VEC some = (VEC)(REAL)0;

            for (int64_t j = k; j < rows && j < k + 32; j++)
                some += FN(look)(x, (INDEX)(j * each) + i);
            all += some;
        }
        FN(set)(sum, i, all);
    })
    SYNC();
}

DL_INLINE void FN(sums)(PLANES a, int64_t rows, int64_t width, PLANES sum,
                        int64_t lid)
{
    int64_t each = width == 1 ? MOST_WIDTH : width;
    int64_t count = rows * width / each;

    FN(sum_plane)(a.re, count, each, sum.re, lid);
    FN(sum_plane)(a.im, count, each, sum.im, lid);
    if (width > 1)
        return;
    if (lid == 0) {
        for (int64_t i = 1; i < each; i++) {
            AT(sum.re, 0) += AT(sum.re, i);
            AT(sum.im, 0) += AT(sum.im, i);
        }
        for (int64_t i = count * each; i < rows; i++) {
            AT(sum.re, 0) += AT(a.re, i);
            AT(sum.im, 0) += AT(a.im, i);
        }
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

/* The same, of the rows less their columns' means. */
DL_PIECE void FN(scale_rest)(PLANES a, PLANES b, int64_t count, int64_t width,
                             PLANES mean, const DL_GLOBAL REAL *w, int64_t lid)
{
    (void)lid;
    ROWS(k, at, count, width, {
        NUM t = FN(of_row)(w, k, width), x = FN(pick)(a, at), m;

        m = width == 1 ? (NUM){(VEC)AT(mean.re, 0), (VEC)AT(mean.im, 0)}
                       : FN(pick)(mean, at - k * width);
        FN(lay)(b, at, FN(times)(FN(sub)(x, m), t.re, t.im));
    })
    SYNC();
}

/* x less its mean, to which the sum is added in the end, so that equal numbers
 * give zeros; times the chirp, and zeros up to its length.  space: the sums,
 * then the means. */
DL_INLINE void FN(chirp)(const PLAN *f, PLANES *a, PLANES *b, PLANE space,
                         int64_t lid)
{
    const int64_t width = f->width;
    const bool one = FN(is_one_sided)(f->flags);
    const int64_t rows = FN(rows)(f, one);
    const PLANES sum = {space, space + MOST_WIDTH};
    const PLANES mean = {space + 2 * MOST_WIDTH, space + 3 * MOST_WIDTH};
    const PLANES x = FN(flipped)(f, *a), m = FN(flipped)(f, mean);

    for (int64_t i = lid; one && i < width; i += GROUP) {
        AT(x.re, i) *= (REAL)0.5;
        AT(x.im, i) = 0;
    }
    SYNC();
    FN(sums)(*a, rows, width, sum, lid);
    for (int64_t i = lid; i < width; i += GROUP) {
        AT(mean.re, i) = AT(sum.re, i) / (REAL)f->length;
        AT(mean.im, i) = AT(sum.im, i) / (REAL)f->length;
        if (one) {
            AT(x.re, i) += AT(m.re, i);
            AT(m.re, i) += AT(m.re, i);
            AT(m.im, i) = AT(FN(flipped)(f, sum).im, i) = 0;
        }
    }
    SYNC();
    FN(scale_rest)(*a, *b, rows, width, mean, f->table + f->extra, lid);
    FN(swap)(a, b);
    for (int64_t i = rows * width + lid; i < f->n * width; i += GROUP)
        AT(a->re, i) = AT(a->im, i) = 0;
    SYNC();
}

DL_INLINE void FN(exchange)(PLANES *a)
{
    *a = (PLANES){a->im, a->re};
}

/* After the first transform: times the chirp's, and turned round so that the
 * next goes back. */
DL_INLINE void FN(convolve)(const PLAN *f, PLANES *a, PLANES *b, int64_t lid)
{
    FN(scale_rows)(*a, *b, f->n, f->width,
                   f->table + f->extra + 2 * f->length, lid);
    FN(swap)(a, b);
    FN(exchange)(a);
    FN(exchange)(b);
}

/* After the second: turned again, times the chirp. */
DL_INLINE void FN(unchirp)(const PLAN *f, PLANES *a, PLANES *b, PLANE space,
                           int64_t lid)
{
    const PLANES sum = {space, space + MOST_WIDTH};

    FN(exchange)(a);
    FN(exchange)(b);
    FN(scale_rows)(*a, *b,
                   f->flags & FFT_HALVES
                       ? f->length
                       : FN(rows)(f, f->flags & FFT_HALF_OUT),
                   f->width, f->table + f->extra, lid);
    FN(swap)(a, b);
    for (int64_t i = lid; i < f->width; i += GROUP) {
        AT(a->re, i) += AT(sum.re, i);
        AT(a->im, i) += AT(sum.im, i);
    }
    SYNC();
}

/* ---- begin ---- */

/* Roots of real lines' halves come after those of a chirp. */
DL_INLINE const DL_GLOBAL REAL *FN(half_roots)(const PLAN *f)
{
    return f->table + f->extra +
           (f->flags & FFT_CHIRP ? 2 * (f->length + f->n) : 0);
}

DL_INLINE void FN(begin)(const PLAN *f, PLANES *a, PLANES *b, PLANE space,
                         int64_t lid)
{
    if ((f->flags & FFT_HALF_IN) && (f->flags & FFT_HALVES)) {
        FN(part)(FN(flipped)(f, *a), FN(flipped)(f, *b), f->length, f->width,
                 FN(half_roots)(f), lid);
        FN(swap)(a, b);
    } else if ((f->flags & FFT_HALF_IN) && f->real) {
        FN(deal)(f, FN(flipped)(f, *a), FN(flipped)(f, *b), lid);
        FN(swap)(a, b);
    } else if ((f->flags & FFT_HALF_IN) && !(f->flags & FFT_CHIRP)) {
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
DL_PIECE void FN(turn_block)(const PLAN *f, PLANES a, PLANES b, int64_t count,
                             PLANE space, int64_t lid)
{
    const DL_GLOBAL REAL *w =
        FN(half_roots)(f) + (f->flags & FFT_HALVES ? 2 * f->length : 0);
    const int64_t width = f->width, high = f->n / FN(TURNS) + 1;
    const int64_t rows = FN(TURNS) + high;
    PLANES r = {space, space + ROOM(rows * width)};
    int shift = 0;

    while (((int64_t)1 << shift << shift) < f->turn)
        shift++;
    for (int64_t t = lid; t < rows * width; t += GROUP) {
        int64_t k = t / width, line = f->item * width + t % width;
        int64_t c = line % f->lines_c / f->turn_c;
        REAL re, im;

        k = k < FN(TURNS) ? k : (k - FN(TURNS)) * FN(TURNS);
        FN(root)(w, k * c % f->turn, shift, &re, &im);
        AT(r.re, t) = re;
        AT(r.im, t) = im;
    }
    SYNC();
    (void)lid;
    ROWS(k, at, count, width, {
        int64_t col = at - k * width;
        NUM lo = FN(pick)(r, k % FN(TURNS) * width + col);
        NUM hi = FN(pick)(r, (FN(TURNS) + k / FN(TURNS)) * width + col);
        NUM t = FN(times)(lo, hi.re, hi.im);

        FN(lay)(b, at, FN(times)(FN(pick)(a, at), t.re, t.im));
    })
    SYNC();
}

DL_INLINE void FN(end)(const PLAN *f, PLANES *a, PLANES *b, PLANE space,
                       int64_t lid)
{
    const bool half = f->flags & FFT_HALF_OUT;

    if (half && (f->flags & FFT_HALVES)) {
        FN(join)(*a, *b, f->length, f->width, FN(half_roots)(f), lid);
        FN(swap)(a, b);
    } else if (half && f->real) {
        FN(collect)(f, *a, *b, lid);
        FN(swap)(a, b);
    }
    if (f->turn) {
        FN(turn_block)(f, *a, *b, FN(rows)(f, half), space, lid);
        FN(swap)(a, b);
    }
}
