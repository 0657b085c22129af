/* Vectors of REAL, and transforms of a few complex numbers at a time.  A
 * number is a vector of real parts and one of imaginary parts; each lane is a
 * transform of its own. */

#if SD_LANES == 1
typedef REAL FN(vec);
#else
typedef REAL FN(vec) __attribute__((ext_vector_type(LANES)));
#endif
#define VEC FN(vec)
typedef struct {
    VEC re, im;
} FN(num);
#define NUM FN(num)

/* ---- memory and lanes ---- */

DL_INLINE VEC FN(get)(const DL_GLOBAL REAL *p)
{
    VEC v;

    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

DL_INLINE void FN(put)(DL_GLOBAL REAL *p, VEC v)
{
    __builtin_memcpy(p, &v, sizeof v);
}

#if SD_LANES == 1
typedef REAL FN(pair) __attribute__((ext_vector_type(2)));
#endif

/* LANES numbers that lie one behind the other, to and from memory; on GPUs
 * numbers are aligned as a pair. */
DL_INLINE NUM FN(get_pairs)(const DL_GLOBAL REAL *p)
{
#if SD_LANES == 1
    const FN(pair) v = *(const DL_GLOBAL FN(pair) *)p;

    return (NUM){v.x, v.y};
#else
    VEC x = FN(get)(p), y = FN(get)(p + LANES);

    return (NUM){SHUFFLE(x, y, EVEN_), SHUFFLE(x, y, ODD_)};
#endif
}

DL_INLINE void FN(put_pairs)(DL_GLOBAL REAL *p, NUM v)
{
#if SD_LANES == 1
    *(DL_GLOBAL FN(pair) *)p = (FN(pair)){v.re, v.im};
#else
    FN(put)(p, SHUFFLE(v.re, v.im, ZIP_LO_));
    FN(put)(p + LANES, SHUFFLE(v.re, v.im, ZIP_HI_));
#endif
}

/* Rows become columns: each round puts the upper half of the vectors between
 * those of the lower half. */
DL_INLINE void FN(turn)(VEC *v)
{
    for (int round = 1; round < LANES; round *= 2) {
        VEC t[LANES];

#pragma clang loop unroll(full)
        for (int i = 0; i < LANES / 2; i++) {
            t[2 * i] = SHUFFLE(v[i], v[i + LANES / 2], ZIP_LO_);
            t[2 * i + 1] = SHUFFLE(v[i], v[i + LANES / 2], ZIP_HI_);
        }
#pragma clang loop unroll(full)
        for (int i = 0; i < LANES; i++)
            v[i] = t[i];
    }
}

/* ---- numbers ---- */

DL_INLINE NUM FN(add)(NUM x, NUM y)
{
    return (NUM){x.re + y.re, x.im + y.im};
}

DL_INLINE NUM FN(sub)(NUM x, NUM y)
{
    return (NUM){x.re - y.re, x.im - y.im};
}

/* x + c y; x - i y; x + i y; x - i c y */
DL_INLINE NUM FN(axpy)(NUM x, VEC c, NUM y)
{
    return (NUM){FMA(c, y.re, x.re), FMA(c, y.im, x.im)};
}

DL_INLINE NUM FN(sub_i)(NUM x, NUM y)
{
    return (NUM){x.re + y.im, x.im - y.re};
}

DL_INLINE NUM FN(add_i)(NUM x, NUM y)
{
    return (NUM){x.re - y.im, x.im + y.re};
}

DL_INLINE NUM FN(times)(NUM x, VEC re, VEC im)
{
    return (NUM){FMA(-im, x.im, re * x.re), FMA(im, x.re, re * x.im)};
}

/* By one number for all lanes. */
DL_INLINE NUM FN(by_root)(NUM x, const DL_GLOBAL REAL *w)
{
#if SD_LANES == 1
    const NUM t = FN(get_pairs)(w);

    return FN(times)(x, t.re, t.im);
#else
    return FN(times)(x, (VEC)w[0], (VEC)w[1]);
#endif
}

/* ---- small transforms, in place ---- */

DL_INLINE void FN(dft2)(NUM *x)
{
    NUM a = x[0];

    x[0] = FN(add)(a, x[1]);
    x[1] = FN(sub)(a, x[1]);
}

DL_INLINE void FN(dft3)(NUM *x)
{
    const REAL s = (REAL)0.866025403784438646763723170752936183;
    NUM t = FN(add)(x[1], x[2]), d = FN(sub)(x[1], x[2]);
    NUM m = FN(axpy)(x[0], (VEC)(REAL)-0.5, t);

    x[0] = FN(add)(x[0], t);
    x[1] = (NUM){FMA((VEC)s, d.im, m.re), FMA((VEC)-s, d.re, m.im)};
    x[2] = (NUM){FMA((VEC)-s, d.im, m.re), FMA((VEC)s, d.re, m.im)};
}

DL_INLINE void FN(dft4)(NUM *x)
{
    NUM a = FN(add)(x[0], x[2]), b = FN(sub)(x[0], x[2]);
    NUM c = FN(add)(x[1], x[3]), d = FN(sub)(x[1], x[3]);

    x[0] = FN(add)(a, c);
    x[1] = FN(sub_i)(b, d);
    x[2] = FN(sub)(a, c);
    x[3] = FN(add_i)(b, d);
}

/* Winograd: of equal numbers only the first result is not 0, exactly. */
DL_INLINE void FN(dft5)(NUM *x)
{
    const REAL q = (REAL)0.559016994374947424102293417182819059;
    const REAL s = (REAL)0.951056516295153572116439333379382143;
    const REAL u = (REAL)0.587785252292473129168705954639072769;
    NUM a = FN(add)(x[1], x[4]), b = FN(sub)(x[1], x[4]);
    NUM c = FN(add)(x[2], x[3]), d = FN(sub)(x[2], x[3]);
    NUM t = FN(add)(a, c), m = FN(axpy)(x[0], (VEC)(REAL)-0.25, t), p, r, v, w;

    p = FN(axpy)(m, (VEC)q, FN(sub)(a, c));
    r = FN(axpy)(m, (VEC)-q, FN(sub)(a, c));
    v = (NUM){FMA((VEC)s, b.re, u * d.re), FMA((VEC)s, b.im, u * d.im)};
    w = (NUM){FMA((VEC)u, b.re, -s * d.re), FMA((VEC)u, b.im, -s * d.im)};
    x[0] = FN(add)(x[0], t);
    x[1] = FN(sub_i)(p, v);
    x[2] = FN(sub_i)(r, w);
    x[3] = FN(add_i)(r, w);
    x[4] = FN(add_i)(p, v);
}

DL_INLINE void FN(dft8)(NUM *x)
{
    const VEC h = (VEC)(REAL)0.707106781186547524400844362104849039;
    NUM e[4] = {x[0], x[2], x[4], x[6]}, o[4] = {x[1], x[3], x[5], x[7]};
    NUM a, b;

    FN(dft4)(e);
    FN(dft4)(o);
    x[0] = FN(add)(e[0], o[0]);
    x[4] = FN(sub)(e[0], o[0]);
    a = (NUM){o[1].re + o[1].im, o[1].im - o[1].re};
    x[1] = FN(axpy)(e[1], h, a);
    x[5] = FN(axpy)(e[1], -h, a);
    x[2] = FN(sub_i)(e[2], o[2]);
    x[6] = FN(add_i)(e[2], o[2]);
    b = (NUM){o[3].im - o[3].re, -o[3].im - o[3].re};
    x[3] = FN(axpy)(e[3], h, b);
    x[7] = FN(axpy)(e[3], -h, b);
}

/* 4 by 4 */
DL_INLINE void FN(dft16)(NUM *x)
{
    const VEC c = (VEC)(REAL)0.923879532511286756128183189396788933;
    const VEC s = (VEC)(REAL)0.382683432365089771728459984030398866;
    const VEC h = (VEC)(REAL)0.707106781186547524400844362104849039;
    NUM y[4][4];

#pragma clang loop unroll(full)
    for (int i = 0; i < 4; i++) {
        y[i][0] = x[i];
        y[i][1] = x[i + 4];
        y[i][2] = x[i + 8];
        y[i][3] = x[i + 12];
        FN(dft4)(y[i]);
    }
    y[1][1] = FN(times)(y[1][1], c, -s);
    y[1][2] =
        (NUM){h * (y[1][2].re + y[1][2].im), h * (y[1][2].im - y[1][2].re)};
    y[1][3] = FN(times)(y[1][3], s, -c);
    y[2][1] =
        (NUM){h * (y[2][1].re + y[2][1].im), h * (y[2][1].im - y[2][1].re)};
    y[2][2] = (NUM){y[2][2].im, -y[2][2].re};
    y[2][3] =
        (NUM){h * (y[2][3].im - y[2][3].re), -h * (y[2][3].im + y[2][3].re)};
    y[3][1] = FN(times)(y[3][1], s, -c);
    y[3][2] =
        (NUM){h * (y[3][2].im - y[3][2].re), -h * (y[3][2].im + y[3][2].re)};
    y[3][3] = FN(times)(y[3][3], -c, s);
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; i++) {
        NUM t[4] = {y[0][i], y[1][i], y[2][i], y[3][i]};

        FN(dft4)(t);
        x[i] = t[0];
        x[i + 4] = t[1];
        x[i + 8] = t[2];
        x[i + 12] = t[3];
    }
}

/* The heart of an odd transform, of real parts or of both.  t: sums x[j + 1] +
 * x[r - 1 - j], d: differences, j < r / 2; x: the first number, and then the sum
 * of all.  Makes a[k] = first + sum of t times cosines, b[k] = sum of d times
 * sines, 0 < k <= r / 2; w: the r roots.
 *
 * The mean is taken out first, so that of equal numbers only the first result
 * is not 0; it is no larger than they are, so that costs a rounding and no
 * more. */
typedef struct {
    VEC x[2], t[2][MOST_RADIX / 2], d[2][MOST_RADIX / 2];
    VEC a[2][MOST_RADIX / 2 + 1], b[2][MOST_RADIX / 2 + 1];
} FN(odd);
#define ODD FN(odd)
#ifndef EACH_SHARED /* so that what is shared lies in registers */
#define EACH_SHARED(m, n) \
    _Pragma("clang loop unroll(full)") for (int m = 0; m < (n); m++)
#endif

/* x less its mean; returns what is then its first number. */
DL_INLINE VEC FN(odd_mean)(ODD *o, int part, int r)
{
    const int h = r / 2;
    VEC some = (VEC)(REAL)0, first = o->x[part], m;

    for (int j = 0; j < h; j++) {
        some += o->t[part][j];
        if (j % 4 == 3 || j == h - 1) {
            o->x[part] += some;
            some = (VEC)(REAL)0;
        }
    }
    m = o->x[part] / (VEC)(REAL)r;
    for (int j = 0; j < h; j++)
        o->t[part][j] = FMA((VEC)(REAL)-2, m, o->t[part][j]);
    return first - m;
}

/* n results from k on, which share what is read of t and d. */
DL_INLINE void FN(odd_some)(ODD *o, int parts, int r,
                            const DL_GLOBAL REAL *w, const VEC *first, int k,
                            const int n)
{
    const VEC none = (VEC)(REAL)0;
    const int h = r / 2;
    VEC a[MOST_SHARED][2], b[MOST_SHARED][2];
    int64_t e[MOST_SHARED]; /* where in w, 2 numbers a root */

    EACH_SHARED(m, n) {
        e[m] = 0;
        for (int c = 0; c < parts; c++) {
            a[m][c] = first[c];
            b[m][c] = none;
        }
    }
    /* by fours: short sums round less */
    for (int i = 0; i < h; i += 4) {
        VEC p[MOST_SHARED][2], q[MOST_SHARED][2];

        EACH_SHARED(m, n) {
            for (int c = 0; c < parts; c++)
                p[m][c] = q[m][c] = none;
        }
        for (int j = i; j < i + 4 && j < h; j++)
            EACH_SHARED(m, n) {
                int64_t next = e[m] + 2 * (k + m), less = next - 2 * r;

                e[m] = less < 0 ? next : less;
                for (int c = 0; c < parts; c++) {
                    p[m][c] = FMA((VEC)w[e[m]], o->t[c][j], p[m][c]);
                    q[m][c] = FMA((VEC)w[e[m] + 1], o->d[c][j], q[m][c]);
                }
            }
        EACH_SHARED(m, n) {
            for (int c = 0; c < parts; c++) {
                a[m][c] += p[m][c];
                b[m][c] += q[m][c];
            }
        }
    }
    EACH_SHARED(m, n) {
        for (int c = 0; c < parts; c++) {
            o->a[c][k + m] = a[m][c];
            o->b[c][k + m] = b[m][c];
        }
    }
}

DL_INLINE void FN(odd_sums)(ODD *o, int parts, int r, const DL_GLOBAL REAL *w)
{
    const int h = r / 2, each = MOST_SHARED / parts;
    VEC first[2];
    int k = 1;

    for (int c = 0; c < parts; c++)
        first[c] = FN(odd_mean)(o, c, r);
    for (; k + each <= h + 1; k += each)
        FN(odd_some)(o, parts, r, w, first, k, each);
    for (; k <= h; k++)
        FN(odd_some)(o, parts, r, w, first, k, 1);
}

/* Any odd number of them; w: the r roots. */
DL_INLINE void FN(dft_odd)(NUM *x, int r, const DL_GLOBAL REAL *w)
{
    const int h = r / 2;
    ODD o;

    o.x[0] = x[0].re;
    o.x[1] = x[0].im;
    for (int j = 0; j < h; j++) {
        o.t[0][j] = x[j + 1].re + x[r - 1 - j].re;
        o.t[1][j] = x[j + 1].im + x[r - 1 - j].im;
        o.d[0][j] = x[j + 1].re - x[r - 1 - j].re;
        o.d[1][j] = x[j + 1].im - x[r - 1 - j].im;
    }
    FN(odd_sums)(&o, 2, r, w);
    x[0] = (NUM){o.x[0], o.x[1]};
    for (int k = 1; k <= h; k++) {
        x[k] = (NUM){o.a[0][k] - o.b[1][k], o.a[1][k] + o.b[0][k]};
        x[r - k] = (NUM){o.a[0][k] + o.b[1][k], o.a[1][k] - o.b[0][k]};
    }
}

/* Of r real numbers, 4 or an odd number of them, the r / 2 + 1 results that
 * say all. */
DL_INLINE void FN(dft_real)(const VEC *x, NUM *y, int r,
                            const DL_GLOBAL REAL *w)
{
    const VEC none = (VEC)(REAL)0;
    const int h = r / 2;
    ODD o;

    if (r == 4) {
        VEC a = x[0] + x[2], b = x[1] + x[3];

        y[0] = (NUM){a + b, none};
        y[1] = (NUM){x[0] - x[2], x[3] - x[1]};
        y[2] = (NUM){a - b, none};
        return;
    }
    o.x[0] = o.x[1] = x[0];
    for (int j = 0; j < h; j++) {
        o.t[0][j] = x[j + 1] + x[r - 1 - j];
        o.d[0][j] = x[j + 1] - x[r - 1 - j];
    }
    FN(odd_sums)(&o, 1, r, w);
    y[0] = (NUM){o.x[0], none};
    for (int k = 1; k <= h; k++)
        y[k] = (NUM){o.a[0][k], o.b[0][k]};
}

/* The other way, of which the first's imaginary part is not read: real parts
 * of sum over k of conj(w(r, j k)) x[k], where x[r - k] = conj(x[k]), and so
 * not that of x[r / 2] of 4. */
DL_INLINE void FN(dft_to_real)(const NUM *x, VEC *y, int r,
                               const DL_GLOBAL REAL *w)
{
    const int h = r / 2;
    ODD o;

    if (r == 4) {
        VEC a = x[0].re + x[2].re, b = x[0].re - x[2].re;
        VEC t = x[1].re + x[1].re, d = x[1].im + x[1].im;

        y[0] = a + t;
        y[1] = b - d;
        y[2] = a - t;
        y[3] = b + d;
        return;
    }
    o.x[0] = o.x[1] = x[0].re;
    for (int k = 0; k < h; k++) {
        o.t[0][k] = x[k + 1].re + x[k + 1].re;
        o.d[0][k] = x[k + 1].im + x[k + 1].im;
    }
    FN(odd_sums)(&o, 1, r, w);
    y[0] = o.x[0];
    for (int j = 1; j <= h; j++) {
        y[j] = o.a[0][j] + o.b[0][j];
        y[r - j] = o.a[0][j] - o.b[0][j];
    }
}
