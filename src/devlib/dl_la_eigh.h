/* Hermitian matrices: to three diagonals by reflectors, and these to one by
 * implicit QL steps (Bowdler, Martin, Reinsch and Wilkinson, "The QR and QL
 * algorithms for symmetric matrices", 1968). */
#ifndef DL_LA_EIGH_H
#define DL_LA_EIGH_H

#include "dl_la_reflect.h"

enum { MOST_TURNS = 60 };

/* a, both triangles, row-major, is overwritten: column k below the diagonal
 * becomes the reflector, d and e the diagonals.  work: 2 n; room: what
 * reflect wants. */
DL_PART void to_diagonals(TP a, RP d, RP e, TP tau, TP work, TP room, int64_t n)
{
    TP v = work;
    TP p = work + n;

    for (int64_t k = 0; k + 1 < n; k++) {
        int64_t m = n - k - 1;
        DL_GLOBAL T *b = a + (k + 1) * n + k + 1;
        T sum;

        tau[k] = reflect(m, b - 1, n, room);
        e[k] = re(b[-1]);
        if (ALL(is_zero(tau[k])))
            continue;
        for (int64_t i = ITEM; i < m; i += ITEMS)
            v[i] = i ? b[i * n - 1] : make(1);
        MEET();
        /* p = tau b v, b's columns being its rows' conjugates */
        fill_row(m, make(0), p);
        add_conj_rows(m, (factors){v, 1, 0}, b, n, m, p);
        for (int64_t i = ITEM; i < m; i += ITEMS)
            p[i] = mul(tau[k], p[i]);
        MEET();
        sum = dot_of_all(m, 1, p, v, room);
        add_row(m, scale(mul(tau[k], sum), (R)-0.5), v, p);
        UPDATE_PLACES(b, n, i, j, m, m,
                      mac(mac(WAS, neg(v[i]), conj_of(p[j])), neg(p[i]),
                          conj_of(v[j])));
    }
    for (int64_t i = ITEM; i < n; i += ITEMS)
        d[i] = re(a[i * n + i]);
    MEET();
}

/* Both triangles of the matrix of which one counts, times by. */
DL_INLINE void fill_hermitian(CONST_TP from, TP a, int64_t n, int64_t lower,
                              R by)
{
    EACH_PLACE (i, j, n, n) {
        T x = (lower != 0) == (j < i) ? from[i * n + j] : conj_of(from[j * n + i]);

        x = scale(x, by);

        a[i * n + j] = j == i ? make(re(x)) : x;
    }
    MEET();
}

#if DL_LANES == 1 && !defined DL_GROUP
/* LAPACK's L; its U is the same with rows and columns counted from the end.
 * work: n x n + 3 n. */
void DL_LA(tridiagonal)(CONST_TP a, TP out, RP d, RP e, TP tau, TP work,
                        int64_t n, int64_t lower)
{
    TP b = work + 3 * n;

    copy_row(n * n, a, out);
    fill_hermitian(a, b, n, lower, 1);
    for (int64_t i = 0; !lower && i < n * n / 2; i++) {
        T t = b[i];

        b[i] = b[n * n - 1 - i];
        b[n * n - 1 - i] = t;
    }
    to_diagonals(b, d, e, tau, work, 0, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            if (lower)
                out[i * n + j] = b[i * n + j];
            else
                out[(n - 1 - i) * n + n - 1 - j] = b[i * n + j];
        }
    for (int64_t i = 0; i < n; i++)
        out[i * n + i] = make(re(out[i * n + i]));
    for (int64_t i = 0; !lower && i < n / 2; i++) {
        R t = d[i];

        d[i] = d[n - 1 - i];
        d[n - 1 - i] = t;
    }
    for (int64_t i = 0; !lower && i < (n - 1) / 2; i++) {
        R t = e[i];
        T s = tau[i];

        e[i] = e[n - 2 - i];
        e[n - 2 - i] = t;
        tau[i] = tau[n - 2 - i];
        tau[n - 2 - i] = s;
    }
}

#endif

/* Three diagonals, e[n-1] being 0, and the turns of a sweep.  Row r of z is
 * column r of the vectors. */
typedef struct {
    DL_GLOBAL R *d, *e, *c, *s;
    DL_GLOBAL T *z;
    int64_t n;
    R least; /* the square of a rounding error of the largest: nothing */
} three_diagonals;

/* The first block [l, m] from l on that is not yet diagonal; 0: there is none.
 * A matrix that has none has l = n. */
DL_INLINE int find_block(const three_diagonals *b, I *l, I *m)
{
    M started = 0, ended = 0;

    for (int64_t i = least_lane(*l); i < b->n && !ALL(ended); i++) {
        R near = i + 1 < b->n ? ABS(b->d[i]) + ABS(b->d[i + 1]) : 0;
        M small = (M)(ABS(b->e[i]) <= EPS / 2 * near) |
                  (M)(ABS(b->e[i]) <= b->least);
        M end = started & small & NOT(ended);
        M here = (M)((I)i >= *l) & NOT(started);

        *m = SEL(end, (I)i, *m);
        ended |= end;
        *l = SEL(here & small, (I)(i + 1), *l);
        started |= here & NOT(small);
    }
    return ANY(started);
}

/* One implicit QL step of the blocks [l, m]; the turns are kept. */
DL_PART void ql_step(const three_diagonals *b, I l, I m, int64_t top,
                     int64_t bottom)
{
    DL_GLOBAL R *d = b->d, *e = b->e;
    M live = (M)(l < (I)b->n), left = live;
    I first = SEL(live, l, (I)0), last = SEL(live, m, (I)1);
    R dl = at(d, first), el = at(e, first), s = 1, c = 1, p = 0;
    R g = (at(d, first + 1) - dl) / (2 * el);

    g = at(d, last) - dl + el / (g + with_sign(length2(g, (R)1), g));
    for (int64_t i = bottom - 1; i >= top; i--) {
        M on = left & (M)((I)i < m) & (M)((I)i >= l), lost;
        R f = s * e[i], h = c * e[i], r = length2(f, g), q, next_s, next_c;

        e[i + 1] = SEL(on, r, e[i + 1]);
        lost = on & (M)(r == 0); /* another block ends here */
        left &= NOT(lost);
        on &= NOT(lost);
        d[i + 1] = SEL(lost, d[i + 1] - p, d[i + 1]);
        next_s = f / r;
        next_c = g / r;
        make_unit(&next_c, &next_s);
        s = SEL(on, next_s, s);
        c = SEL(on, next_c, c);
        q = d[i + 1] - p;
        r = FMA(d[i] - q, s, 2 * c * h);
        p = SEL(on, s * r, p);
        d[i + 1] = SEL(on, q + p, d[i + 1]);
        g = SEL(on, FMA(c, r, -h), g);
        b->c[i + 1] = SEL(on, c, (R)1);
        b->s[i + 1] = SEL(on, s, (R)0);
    }
    put_at(left, at(d, first) - p, first, d);
    put_at(left, g, first, e);
    put_at(live, (R)0, last, e);
}

/* The one turn that makes the blocks [l, l + 1] of the lanes `pair` diagonal.
 * The smaller value is the determinant over the larger one, so that of a
 * singular block, [1 1; 1 1], it is 0 and not a rounding error below. */
DL_PART void end_pairs(const three_diagonals *b, I l, M pair)
{
    I first = SEL(pair, l, (I)0);
    R x = at(b->d, first), y = at(b->d, first + 1), off = at(b->e, first);
    R tau = (y - x) / (2 * off);
    R t = 1 / (tau + with_sign(length2(tau, (R)1), tau));
    R c = 1 / length2(t, (R)1), s = t * c;
    R square = off * off, lost = FMA(-off, off, square);
    R product = FMA(x, y, -square) + lost;
    R upper = FMA(-t, off, x), lower = FMA(t, off, y);
    M upper_is_less = (M)(ABS(upper) < ABS(lower));

    make_unit(&c, &s);
    put_at(pair, SEL(upper_is_less, product / lower, upper), first, b->d);
    put_at(pair, SEL(upper_is_less, lower, product / upper), first + 1, b->d);
    put_at(pair, (R)0, first, b->e);
    put_at(pair, c, first + 1, b->c);
    put_at(pair, s, first + 1, b->s);
}

/* The turns of a sweep over the rows [top, bottom]. */
DL_INLINE void make_turns(const three_diagonals *b, I l, I m, int64_t top,
                          int64_t bottom)
{
    M pair = (M)(l < (I)b->n) & (M)(m == l + 1);

    if (bottom - top > 1)
        ql_step(b, SEL(pair, (I)b->n, l), m, top, bottom);
    else {
        b->c[bottom] = (R)1;
        b->s[bottom] = (R)0;
    }
    if (ANY(pair))
        end_pairs(b, l, pair);
}

/* False of what did not converge. */
DL_PART M ql(three_diagonals *b)
{
    I l = 0, m = 0;
    R most = 0;

    for (int64_t i = 0; i < b->n; i++)
        most = max_of(most, max_of(ABS(b->d[i]), ABS(b->e[i])));
    b->least = most * (EPS * EPS);
    for (int64_t turn = 0; find_block(b, &l, &m); turn++) {
        int64_t top = least_lane(l);
        int64_t bottom = most_lane(SEL(l < (I)b->n, m, (I)0));
        sweep w = {bottom, -1, bottom - top, b->c, b->s};

        if (turn == MOST_TURNS * b->n)
            break;
        MEET(); /* all have found it */
        if (IS_FIRST)
            make_turns(b, l, m, top, bottom);
        MEET();
        turn_sweep(&w, b->z, b->n);
    }
    return (M)(l >= (I)b->n);
}

/* Rows of z become the vectors, row r that of the value of that rank.  q and z
 * are n x n, work 5 n; returns where it converged.  room: of a group, what
 * reflect_left wants of n x n. */
DL_PART M eigh_of(CONST_TP a, TP q, RP w, TP z, TP work, TP room, IP rank,
                  int64_t n, int64_t lower)
{
    TP tau = work + 2 * n;
    three_diagonals b = {w, (RP)(work + 3 * n), (RP)work, (RP)(work + n), z, n,
                         0};
    R most = 0, bad = 0, by;
    M good;

    for (int64_t i = ITEM; i < n; i += ITEMS)
        w[i] = largest(lower ? i + 1 : n - i, a + i * n + (lower ? 0 : i));
    MEET();
    for (int64_t i = 0; i < n; i++) {
        most = max_of(most, w[i]);
        bad += w[i] - w[i]; /* a comparison drops a NaN */
    }
    good = is_finite(most + bad);
    by = safe_factor(most);
    fill_hermitian(a, z, n, lower, by);
    for (int64_t i = ITEM; !ALL(good) && i < n * n; i += ITEMS)
        z[i] = SEL(good, z[i], make(0));
    MEET();
    to_diagonals(z, w, b.e, tau, work, room, n);
    if (n)
        b.e[n - 1] = 0;
    form_product(z + n, n + 1, n, tau, n - 1, 1, q, n, n, room);
    transpose(n, n, q, z);
    good &= ql(&b);
    rank_of(w, n, 0, rank);
    put_in_order(n, good, by, rank, w, b.c);
    return good;
}

#if DL_LANES == 1
/* work: n x n + 5 n, and room. */
void DL_LA(eigh)(CONST_TP a, TP v, RP w, TP work, int64_t n, int64_t lower)
{
    TP z = work + 5 * n;
    IP rank = (IP)(work + 4 * n);
    int good = eigh_of(a, v, w, z, work, z + n * n, rank, n, lower);

    EACH_PLACE (r, i, n, n)
        v[i * n + rank[r]] = component(good, z[r * n + i]);
}
#endif

#endif
