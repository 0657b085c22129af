/* Singular values: to two diagonals by reflectors from both sides, and these
 * to one by implicit QR steps (Golub and Reinsch, "Singular value decomposition
 * and least squares solutions", 1970), where a value is zero by one without a
 * shift, which puts it at the end (Demmel and Kahan, "Accurate singular values
 * of bidiagonal matrices", 1990). */
#ifndef DL_LA_SVD_H
#define DL_LA_SVD_H

#include "dl_la_reflect.h"

enum { MOST_SVD_TURNS = 100 };

/* d and e: the diagonal and what is above it, e[n-1] being 0. */
typedef struct {
    DL_GLOBAL R *d, *e;
    DL_GLOBAL R *cu, *su, *cv, *sv; /* the turns of a step */
    DL_GLOBAL T *u, *v; /* rows: columns of U and V; NULL: not wanted */
    int64_t m, n;       /* length of those rows */
    R least;            /* the square of a rounding error of the largest */
} two_diagonals;

/* A block [lo, hi]; in those of `zeros` a number of the diagonal is 0. */
typedef struct {
    I lo, hi;
    M live, zeros;
} svd_block;

/* The rotation that makes (f, g) to (r, 0). */
DL_INLINE R rotation(R f, R g, R *c, R *s)
{
    R r = length2(f, g);
    M none = r == 0;

    *c = SEL(none, (R)1, f / r);
    *s = SEL(none, (R)0, g / r);
    make_unit(c, s);
    return r;
}

/* Of the last two rows' product with their transpose; f of the first turn. */
DL_INLINE R first_f(const two_diagonals *b, I lo, I hi)
{
    R d = at(b->d, lo), x = at(b->d, hi), y = at(b->d, hi - 1);
    R e = at(b->e, hi - 1), by = max_of(ABS(x), ABS(y)), q, c, shift;

    by = max_of(max_of(by, ABS(e)), max_of(ABS(d), ABS(at(b->e, lo))));
    x = x / by;
    y = y / by;
    e = e / by;
    q = FMA(y + x, y - x, e * e) / 2;
    c = (x * e) * (x * e);
    shift = c / (q + with_sign(SQRT(FMA(q, q, c)), q));
    shift = SEL((M)(q != 0) | (M)(c != 0), shift, (R)0);
    /* over d, so that g is e: only their ratio counts */
    y = d / by;
    return (FMA(y + x, y - x, shift) / y) * by;
}

/* A step with a shift, of blocks without zeros. */
DL_PART void qr_step(const two_diagonals *b, const svd_block *k, int64_t top,
                     int64_t bottom)
{
    DL_GLOBAL R *d = b->d, *e = b->e;
    M mine = k->live & NOT(k->zeros);
    R f = first_f(b, SEL(mine, k->lo, (I)0), SEL(mine, k->hi, (I)1)), g = 0;

    for (int64_t i = top; i < bottom; i++) {
        M on = mine & (M)((I)i >= k->lo) & (M)((I)i < k->hi);
        M inner = on & (M)((I)i > k->lo);
        R c, s, r = rotation(f, SEL(inner, g, e[i]), &c, &s), h, to, below;

        if (i > 0)
            e[i - 1] = SEL(inner, r, e[i - 1]);
        b->cv[i] = SEL(on, c, (R)1);
        b->sv[i] = SEL(on, s, (R)0);
        h = FMA(c, d[i], s * e[i]);
        to = FMA(c, e[i], -(s * d[i]));
        below = d[i + 1] * c;
        r = rotation(h, s * d[i + 1], &c, &s);
        b->cu[i] = SEL(on, c, (R)1);
        b->su[i] = SEL(on, s, (R)0);
        d[i] = SEL(on, r, d[i]);
        f = SEL(on, FMA(c, to, s * below), f);
        d[i + 1] = SEL(on, FMA(c, below, -(s * to)), d[i + 1]);
        g = SEL(on, s * e[i + 1], g);
        e[i + 1] = SEL(on & (M)((I)(i + 1) < k->hi), e[i + 1] * c, e[i + 1]);
    }
    put_at(mine, f, k->hi - 1, e);
}

/* One without, of blocks with a zero: it ends as d[hi], decoupled. */
DL_PART void zero_step(const two_diagonals *b, const svd_block *k, int64_t top,
                       int64_t bottom)
{
    DL_GLOBAL R *d = b->d, *e = b->e;
    M mine = k->live & k->zeros;
    R c = 1, s = 0, old_c = 1, old_s = 0, h;

    for (int64_t i = top; i < bottom; i++) {
        M on = mine & (M)((I)i >= k->lo) & (M)((I)i < k->hi);
        R nc, ns, r = rotation(d[i] * c, e[i], &nc, &ns);

        if (i > 0)
            e[i - 1] =
                SEL(on & (M)((I)i > k->lo), old_s * r, e[i - 1]);
        c = SEL(on, nc, c);
        s = SEL(on, ns, s);
        b->cv[i] = SEL(on, nc, b->cv[i]);
        b->sv[i] = SEL(on, ns, b->sv[i]);
        r = rotation(old_c * r, d[i + 1] * ns, &nc, &ns);
        d[i] = SEL(on, r, d[i]);
        old_c = SEL(on, nc, old_c);
        old_s = SEL(on, ns, old_s);
        b->cu[i] = SEL(on, nc, b->cu[i]);
        b->su[i] = SEL(on, ns, b->su[i]);
    }
    h = at(d, SEL(mine, k->hi, (I)0)) * c;
    put_at(mine, h * old_c, k->hi, d);
    put_at(mine, h * old_s, k->hi - 1, e);
}

/* The last block up to hi that is not yet diagonal; 0: there is none.  A
 * matrix that has none has hi = 0.  What is nothing becomes 0. */
DL_INLINE int find_last_block(const two_diagonals *b, svd_block *k)
{
    M started = 0, ended = 0;

    k->lo = 0;
    for (int64_t i = most_lane(k->hi) - 1; i >= 0 && !ALL(ended); i--) {
        R near = ABS(b->d[i]) + ABS(b->d[i + 1]);
        M here = (M)((I)i < k->hi) & NOT(ended);
        M small = (M)(ABS(b->e[i]) <= FMA((R)(EPS / 2), near, b->least)) & here;

        b->e[i] = SEL(small, (R)0, b->e[i]);
        k->lo = SEL(started & small, (I)(i + 1), k->lo);
        ended |= started & small;
        k->hi = SEL(small & NOT(started), (I)i, k->hi);
        started |= here & NOT(small);
    }
    k->live = started;
    return ANY(started);
}

DL_INLINE void find_zeros(const two_diagonals *b, svd_block *k, int64_t top,
                          int64_t bottom)
{
    k->zeros = 0;
    for (int64_t i = top; i <= bottom; i++) {
        M on = k->live & (M)((I)i >= k->lo) & (M)((I)i <= k->hi), none;
        R near = ABS(b->e[i]) + (i > 0 ? ABS(b->e[i - 1]) : 0);

        none = on & (M)(ABS(b->d[i]) <= FMA((R)(EPS / 2), near, b->least));
        b->d[i] = SEL(none, (R)0, b->d[i]);
        k->zeros |= none;
    }
}

/* False of what did not converge.  Values come out of either sign, in no
 * order. */
DL_PART M diagonalise(two_diagonals *b)
{
    svd_block k = {0, (I)(b->n - 1), 0, 0};
    R most = 0;

    for (int64_t i = 0; i < b->n; i++)
        most = max_of(most, max_of(ABS(b->d[i]), ABS(b->e[i])));
    b->least = most * (EPS * EPS);
    for (int64_t turn = 0; find_last_block(b, &k); turn++) {
        int64_t top = least_lane(SEL(k.live, k.lo, k.hi + (I)b->n));
        int64_t bottom = most_lane(SEL(k.live, k.hi, (I)0));
        sweep u = {top, 1, bottom - top, b->cu, b->su}, v = u;

        if (turn == MOST_SVD_TURNS * b->n)
            break;
        MEET(); /* all have found it */
        if (IS_FIRST) {
            find_zeros(b, &k, top, bottom);
            qr_step(b, &k, top, bottom);
            if (ANY(k.zeros))
                zero_step(b, &k, top, bottom);
        }
        MEET();
        v.c = b->cv;
        v.s = b->sv;
        if (b->u)
            turn_sweep(&u, b->u, b->m);
        if (b->v)
            turn_sweep(&v, b->v, b->n);
    }
    return NOT(k.live);
}

/* Values are positive. */
DL_PART void make_positive(two_diagonals *b)
{
    for (int64_t i = ITEM; i < b->n; i += ITEMS) {
        M less = (M)(b->d[i] < 0) | (M)(1 / b->d[i] < 0);
        R sign = SEL(less, (R)-1, (R)1);

        b->d[i] *= sign;
        if (b->v && ANY(less))
            for (int64_t j = 0; j < b->n; j++)
                b->v[i * b->n + j] = scale(b->v[i * b->n + j], sign);
    }
    MEET();
}

/* g, m x n with m >= n: reflectors below the diagonal and right of the one
 * above it. */
DL_PART void to_two_diagonals(TP g, RP d, RP e, TP tau_q, TP tau_p, TP room,
                              int64_t m, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        DL_GLOBAL T *x = g + j * n + j + 1;
        int64_t right = n - j - 1;

        tau_q[j] = reflect(m - j, x - 1, n, room);
        d[j] = re(x[-1]);
        reflect_left(x - 1, n, conj_of(tau_q[j]), x, m - j, right, n, room);
        e[j] = 0;
        tau_p[j] = make(0);
        if (!right)
            continue;
        for (int64_t i = ITEM; i < right; i += ITEMS)
            x[i] = conj_of(x[i]);
        MEET();
        tau_p[j] = reflect(right, x, 1, room);
        e[j] = re(x[0]);
        reflect_right(x, tau_p[j], x + n, m - j - 1, right, n);
    }
}

/* What svd_of leaves in its work space: rows of u and v are columns of U and V,
 * the first n in the order of `rank`. */
typedef struct {
    DL_GLOBAL T *u, *v;
    DL_GLOBAL I *rank;
    M good;
} svd_result;

/* Of a tall matrix m x n, `more` columns of U; by: what it was multiplied by,
 * not finite where it cannot be done.  How many numbers of work space is said
 * here and in src/hlo/hlo_linalg_call.c: 6 m + (vectors: 2 m more + 2 n n); of a
 * group as well room, what reflect_left wants of m x more. */
DL_PART void svd_of(TP g, RP s, TP work, TP room, int64_t m, int64_t n,
                    int64_t more, int vectors, R by, svd_result *to)
{
    TP tau_q = work;
    TP tau_p = work + m;
    TP q = work + 6 * m;
    TP p = q + 2 * m * more;
    two_diagonals b = {
        s, (RP)(work + 2 * m), (RP)tau_q, (RP)tau_p, (RP)(work + 3 * m),
        (RP)(work + 4 * m), 0, 0, m, n, 0};

    to->rank = (IP)(work + 5 * m);
    to->u = q + m * more;
    to->v = p + n * n;
    to->good = is_finite(by);
    for (int64_t i = ITEM; !ALL(to->good) && i < m * n; i += ITEMS)
        g[i] = SEL(to->good, g[i], make(0));
    MEET();
    to_two_diagonals(g, s, b.e, tau_q, tau_p, room, m, n);
    MEET();
    if (vectors) {
        form_product(g, n + 1, n, tau_q, n, 0, q, m, more, room);
        form_product(g + 1, n + 1, 1, tau_p, n - 1, 1, p, n, n, room);
        transpose(m, more, q, to->u);
        transpose(n, n, p, to->v);
        b.u = to->u;
        b.v = to->v;
    }
    to->good &= diagonalise(&b);
    make_positive(&b);
    rank_of(s, n, 1, to->rank);
    put_in_order(n, to->good, by, to->rank, s, b.e);
}

/* The matrix, or its adjoint where it is wide, times by; s: min(m, n)
 * numbers. */
DL_INLINE R tall_copy(CONST_TP a, TP g, RP s, int64_t m, int64_t n)
{
    R most = largest_of_all(m * n, a, s, least_of(m, n)), by = safe_factor(most);

    EACH_PLACE (i, j, m, n) {
        if (m < n)
            g[j * m + i] = scale(conj_of(a[i * n + j]), by);
        else
            g[i * n + j] = scale(a[i * n + j], by);
    }
    MEET();
    return SEL(is_finite(most), by, most - most);
}

#if DL_LANES == 1
void DL_LA(svd_values)(CONST_TP a, RP s, TP work, int64_t m, int64_t n)
{
    svd_result of;
    int64_t rows = most_of(m, n), cols = least_of(m, n);
    R by = tall_copy(a, work, s, m, n);
    TP more = work + m * n;

    svd_of(work, s, more, more + 6 * rows, rows, cols, 0, 0, by, &of);
}

/* Rows of x, the first in the order of rank, become columns of U or,
 * conjugated, rows of V^H. */
DL_INLINE void put_columns(const svd_result *of, CONST_TP x, int64_t ranked,
                           int64_t rows, int64_t cols, TP to)
{
    EACH_PLACE (r, i, rows, cols) {
        int64_t j = r < ranked ? of->rank[r] : r;

        to[i * rows + j] = component(of->good, x[r * cols + i]);
    }
}
DL_INLINE void put_rows(const svd_result *of, CONST_TP x, int64_t ranked,
                        int64_t rows, int64_t cols, TP to)
{
    EACH_PLACE (r, i, rows, cols) {
        int64_t j = r < ranked ? of->rank[r] : r;

        to[j * cols + i] = component(of->good, conj_of(x[r * cols + i]));
    }
}

void DL_LA(svd)(CONST_TP a, RP s, TP u, TP vt, TP work, int64_t m, int64_t n,
                int64_t full)
{
    svd_result of;
    int64_t rows = most_of(m, n), cols = least_of(m, n);
    int64_t more = full ? rows : cols;
    R by = tall_copy(a, work, s, m, n);
    TP to = work + m * n;
    TP room = to + 6 * rows + 2 * rows * more + 2 * cols * cols;

    svd_of(work, s, to, room, rows, cols, more, 1, by, &of);
    if (m < n) { /* a^H = x s y^H, so a = y s x^H */
        put_columns(&of, of.v, cols, cols, cols, u);
        put_rows(&of, of.u, cols, more, rows, vt);
    } else {
        put_columns(&of, of.u, cols, more, rows, u);
        put_rows(&of, of.v, cols, cols, cols, vt);
    }
}
#endif

#endif
