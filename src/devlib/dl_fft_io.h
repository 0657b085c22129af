/* A block's lines between memory and planes.  A line may lie anywhere; what
 * lies side by side, LANES lines or LANES numbers of a line, moves as vectors.
 *
 * The lines may also be those of a whole real line that is done as a matrix
 * (hlo/hlo_fft.c): line c has the numbers c, c + step, .. of a result of which
 * only the first half is in memory.  Those of the other half are the
 * conjugates of their mirrors, k and whole - k. */

DL_INLINE int64_t FN(start)(const PLAN *f, const LIE *l, int64_t line)
{
    int64_t c = line % f->lines_c, i = line / f->lines_c;

    return i / f->lines_i * l->b + i % f->lines_i * l->i + c * l->c;
}

/* From the start of line c to where the mirror of its row 0 lies. */
DL_INLINE int64_t FN(other_end)(const PLAN *f, const LIE *l, int64_t line)
{
    return 2 * (l->whole - 2 * (line % f->lines_c));
}

/* Rows of a line that lie there themselves; those after them by mirror. */
DL_INLINE int64_t FN(own_rows)(const PLAN *f, const LIE *l, int64_t line,
                               int64_t rows)
{
    int64_t c = line % f->lines_c;

    return l->whole ? (l->whole / 2 - c) / (l->step / 2) + 1 : rows;
}

/* One number.  Of a line that is its own mirror, the numbers of the other half
 * have been written. */
DL_INLINE void FN(move_one)(const PLAN *f, const LIE *l, int64_t line,
                            int64_t row, int64_t rows, DL_GLOBAL REAL *p,
                            PLANES a, int64_t at, int out)
{
    const bool other = row >= FN(own_rows)(f, l, line, rows);
    const int64_t c = line % f->lines_c, apart = l->step / 2;
    const REAL part = f->part;

    p += FN(start)(f, l, line) +
         (other ? FN(other_end)(f, l, line) - row * l->step : row * l->step);
    if (out) {
        if (other && (c == 0 || 2 * c == apart))
            return;
        p[0] = AT(a.re, at) * part;
        if (l->im)
            p[l->im] = other ? -(AT(a.im, at) * part) : AT(a.im, at) * part;
        return;
    }
    AT(a.re, at) = p[0];
    AT(a.im, at) = l->im ? other ? -p[l->im] : p[l->im] : 0;
}

/* Of numbers that are their own conjugates, 0 and whole / 2, the imaginary
 * parts are not taken. */
DL_INLINE void FN(make_real)(const PLAN *f, const LIE *l, PLANES a,
                             int64_t lid)
{
    const int64_t apart = l->step / 2, mid = l->whole / 2;

    for (int64_t i = lid; i < f->width; i += GROUP) {
        int64_t line = f->item * f->width + i;
        int64_t c = (line < f->nline ? line : f->nline - 1) % f->lines_c;

        if (c == 0)
            AT(a.im, i) = 0;
        if (l->whole % 2 == 0 && c == mid % apart)
            AT(a.im, mid / apart * f->width + i) = 0;
    }
    SYNC();
}

#if SD_LANES == 1
/* From a line of a block to the next. */
DL_INLINE int64_t FN(line_step)(const PLAN *f, const LIE *l)
{
    return f->lines_c > 1 ? l->c : f->lines_i > 1 ? l->i : l->b;
}

/* Do the numbers of a line lie nearer to each other than lines do? */
DL_INLINE bool FN(lies_along)(const PLAN *f, const LIE *l)
{
    return f->width > 1 && l->step < FN(line_step)(f, l);
}

/* The pair of numbers of the array at a block's place `at`.  What there is no
 * line for is a copy of the last. */
DL_INLINE DL_GLOBAL REAL *FN(pair_at)(const PLAN *f, const LIE *l,
                                      DL_GLOBAL REAL *p, INDEX at)
{
    const INDEX row = ROW(at, f->width), col = at - row * (INDEX)f->width;
    const int64_t line = f->item * f->width + col;

    return p + FN(start)(f, l, line < f->nline ? line : f->nline - 1) +
           row * l->step;
}

/* r numbers of the array from a block's place `at` on, `apart` places from each
 * other. */
DL_INLINE void FN(pick_of_x)(const PLAN *f, INDEX at, INDEX apart, int r,
                             NUM *v)
{
    const DL_GLOBAL REAL *p = FN(pair_at)(f, &f->in, f->x, at);
    const int64_t step = ROW(apart, f->width) * f->in.step;

    for (int i = 0; i < r; i++) {
        v[i] = FN(get_pairs)(p + i * step);
        if (f->flags & FFT_INVERSE)
            v[i] = (NUM){v[i].im, v[i].re};
    }
}

/* The same of the result, unless there is no such line. */
DL_INLINE void FN(lay_in_y)(const PLAN *f, INDEX at, INDEX apart, int r,
                            const NUM *v)
{
    const INDEX col = at - ROW(at, f->width) * (INDEX)f->width;
    DL_GLOBAL REAL *p = FN(pair_at)(f, &f->out, f->y, at);
    const int64_t step = ROW(apart, f->width) * f->out.step;

    if (f->item * f->width + col >= f->nline)
        return;
    for (int i = 0; i < r; i++) {
        const NUM t = {v[i].re * f->part, v[i].im * f->part};

        FN(put_pairs)(p + i * step,
                      f->flags & FFT_INVERSE ? (NUM){t.im, t.re} : t);
    }
}

/* Work items side by side take what lies side by side: rows of a line, or
 * lines.  What there is no line for is a copy of the last. */
DL_INLINE void FN(move)(const PLAN *f, const LIE *l, DL_GLOBAL REAL *p,
                        int64_t rows, PLANES a, int out, int64_t lid)
{
    const INDEX width = (INDEX)f->width, high = (INDEX)rows;
    const bool along = l->step < FN(line_step)(f, l);

    for (INDEX t = (INDEX)lid; t < high * width; t += (INDEX)GROUP) {
        const INDEX major = ROW(t, along ? high : width);
        const INDEX minor = t - major * (along ? high : width);
        const INDEX row = along ? minor : major, col = along ? major : minor;
        const INDEX at = row * width + col;
        const int64_t line = f->item * width + col;

        if (out && line >= f->nline)
            continue;
        if (l->im != 1 || l->whole)
            FN(move_one)(f, l, line < f->nline ? line : f->nline - 1, row, rows,
                         p, a, at, out);
        else if (out)
            FN(put_pairs)(FN(pair_at)(f, l, p, at),
                          (NUM){AT(a.re, at) * f->part,
                                AT(a.im, at) * f->part});
        else
            FN(lay)(a, at, FN(get_pairs)(FN(pair_at)(f, l, p, at)));
    }
    SYNC();
}
#else

/* Up to LANES lines of a block, from column `col` on; or their other ends.
 * What there is no line for is a copy of the last. */
typedef struct {
    DL_GLOBAL REAL *at[LANES];
    int64_t line[LANES];
    int64_t col, columns, count; /* count: of lines that there are */
    int64_t step, im;
    int64_t beside; /* from a line to the next, if that is the same for all */
    int64_t own;    /* rows that all of them have themselves, */
    int64_t most;   /* and that one of them has */
    bool spare;     /* vectors may run into the next row, which comes later */
    bool both;      /* imaginary parts move, too */
    REAL part, part_im;
} FN(group);
#define BUNCH FN(group)

DL_INLINE BUNCH FN(group_of)(const PLAN *f, const LIE *l, int64_t col,
                             DL_GLOBAL REAL *p, int64_t rows, int out)
{
    BUNCH g = {.col = col, .step = l->step, .im = l->im, .part = f->part,
               .part_im = f->part};
    int64_t first = f->item * f->width + col, left = f->nline - first;
    int64_t line = left > 0 ? first : f->nline - 1;
    int64_t c = line % f->lines_c, i = line / f->lines_c, b = i / f->lines_i;

    i -= b * f->lines_i;
    g.both = l->im || (!out && !f->real); /* the stage on reals reads reals */
    g.columns = f->width - col < LANES ? f->width - col : LANES;
    g.count = left < g.columns ? left : g.columns;
    g.beside = l->im == 1 ? 2 : 1;
    g.own = rows;
    g.spare = g.columns == LANES || (f->width < LANES && !l->whole);
    for (int k = 0; k < LANES; k++) {
        int64_t own = FN(own_rows)(f, l, line, rows);

        g.line[k] = line;
        g.at[k] = p + b * l->b + i * l->i + c * l->c;
        g.own = own < g.own ? own : g.own;
        g.most = own > g.most ? own : g.most;
        if (g.at[k] != g.at[0] + k * g.beside)
            g.beside = 0;
        if (first + k + 1 >= f->nline)
            continue;
        line++; /* FN(start)'s divisions, by steps */
        if (++c == f->lines_c) {
            c = 0;
            if (++i == f->lines_i) {
                i = 0;
                b++;
            }
        }
    }
    return g;
}

DL_INLINE BUNCH FN(mirrored)(const PLAN *f, const LIE *l, BUNCH g)
{
    for (int i = 0; i < LANES; i++)
        g.at[i] += FN(other_end)(f, l, g.line[i]);
    g.step = -g.step;
    g.beside = -g.beside;
    g.part_im = -g.part_im;
    return g;
}

/* LANES numbers that lie `beside` one another: real ones, whose imaginary
 * parts are `im` further on if that is not 0, or pairs, up or down. */
DL_INLINE NUM FN(fetch)(const DL_GLOBAL REAL *p, int64_t beside, int64_t im)
{
    NUM v;

    if (beside == 1)
        return (NUM){FN(get)(p), im ? FN(get)(p + im) : (VEC)(REAL)0};
    if (beside > 0)
        return FN(get_pairs)(p);
    v = FN(get_pairs)(p - 2 * (LANES - 1));
    return (NUM){SHUFFLE(v.re, v.re, BACK_), -SHUFFLE(v.im, v.im, BACK_)};
}

DL_INLINE void FN(lay_out)(DL_GLOBAL REAL *p, int64_t beside, int64_t im,
                           NUM v)
{
    if (beside == 1) {
        FN(put)(p, v.re);
        if (im)
            FN(put)(p + im, v.im);
    } else if (beside > 0) {
        FN(put_pairs)(p, v);
    } else {
        v = (NUM){SHUFFLE(v.re, v.re, BACK_), SHUFFLE(v.im, v.im, BACK_)};
        FN(put_pairs)(p - 2 * (LANES - 1), v);
    }
}

DL_INLINE NUM FN(scaled)(const BUNCH *g, PLANES a, int64_t at)
{
    return (NUM){FN(get)(a.re + at) * g->part, FN(get)(a.im + at) * g->part_im};
}

DL_INLINE void FN(lay_in)(const BUNCH *g, PLANES a, int64_t at, NUM v)
{
    FN(put)(a.re + at, v.re);
    if (g->both)
        FN(put)(a.im + at, v.im);
}

/* LANES rows from j on, of lines of reals that lie one behind the other: short
 * lines would feel what the general case has to ask for. */
DL_INLINE void FN(load_reals)(const BUNCH *g, PLANES a, int64_t j,
                              int64_t width)
{
    VEC re[LANES];

#pragma clang loop unroll(full)
    for (int k = 0; k < LANES; k++)
        re[k] = FN(get)(g->at[k] + j);
    FN(turn)(re);
#pragma clang loop unroll(full)
    for (int k = 0; k < LANES; k++)
        FN(put)(a.re + (j + k) * width + g->col, re[k]);
}

/* The same of any lines whose numbers lie one behind the other. */
DL_INLINE void FN(move_square)(const BUNCH *g, PLANES a, int64_t j,
                               int64_t width, int out)
{
    VEC re[LANES], im[LANES];

#pragma clang loop unroll(full)
    for (int k = 0; k < LANES; k++) {
        NUM v = out ? FN(scaled)(g, a, (j + k) * width + g->col)
                    : FN(fetch)(g->at[k] + j * g->step, g->step, g->im);

        re[k] = v.re;
        im[k] = v.im;
    }
    FN(turn)(re);
    if (g->im || !out)
        FN(turn)(im);
    if (out)
        for (int k = 0; k < g->count; k++)
            FN(lay_out)(g->at[k] + j * g->step, g->step, g->im,
                        (NUM){re[k], im[k]});
    else
#pragma clang loop unroll(full)
        for (int k = 0; k < LANES; k++)
            FN(lay)(a, (j + k) * width + g->col, (NUM){re[k], im[k]});
}

/* Rows from .. to of the group. */
DL_INLINE void FN(move_rows)(const BUNCH *g, PLANES a, int64_t width,
                             int64_t from, int64_t to, int out)
{
    const bool along =
        g->step == (g->im == 1 ? 2 : 1) && (out || g->spare);
    const int64_t columns = out ? g->count : g->columns;
    int64_t j = from;

    for (; g->count == LANES && g->beside && j < to; j++) {
        DL_GLOBAL REAL *p = g->at[0] + j * g->step;
        int64_t at = j * width + g->col;

        if (out)
            FN(lay_out)(p, g->beside, g->im, FN(scaled)(g, a, at));
        else
            FN(lay_in)(g, a, at, FN(fetch)(p, g->beside, g->im));
    }
    for (; along && width == 1 && j + LANES <= to; j += LANES) {
        DL_GLOBAL REAL *p = g->at[0] + j * g->step;

        if (out)
            FN(lay_out)(p, g->step, g->im, FN(scaled)(g, a, j));
        else
            FN(lay_in)(g, a, j, FN(fetch)(p, g->step, g->im));
    }
    for (; along && width > 1 && !out && !g->both && j + LANES <= to;
         j += LANES)
        FN(load_reals)(g, a, j, width);
    for (; along && width > 1 && j + LANES <= to; j += LANES)
        FN(move_square)(g, a, j, width, out);
    for (; j < to; j++)
        for (int64_t i = 0; i < columns; i++) {
            DL_GLOBAL REAL *p = g->at[i] + j * g->step;
            int64_t at = j * width + g->col + i;

            if (out) {
                p[0] = a.re[at] * g->part;
                if (g->im)
                    p[g->im] = a.im[at] * g->part_im;
            } else {
                a.re[at] = p[0];
                a.im[at] = !g->im ? 0 : g->step < 0 ? -p[g->im] : p[g->im];
            }
        }
}

/* Lines of the group that are their own mirrors are written from the other end
 * first, so that what lies there itself stays. */
DL_INLINE void FN(move)(const PLAN *f, const LIE *l, DL_GLOBAL REAL *p,
                        int64_t rows, PLANES a, int out, int64_t lid)
{
    (void)lid;
    for (int64_t col = 0; col < f->width; col += LANES) {
        BUNCH g = FN(group_of)(f, l, col, p, rows, out);

        if (out && g.count <= 0)
            return;
        if (l->whole) {
            BUNCH o = FN(mirrored)(f, l, g);

            FN(move_rows)(&o, a, f->width, g.most, rows, out);
        }
        FN(move_rows)(&g, a, f->width, 0, g.own, out);
        for (int64_t j = g.own; j < rows && j < g.most; j++)
            for (int64_t i = 0; i < (out ? g.count : g.columns); i++)
                FN(move_one)(f, l, g.line[i], j, rows, p, a,
                             j * f->width + col + i, out);
    }
}
#endif
