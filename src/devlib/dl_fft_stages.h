/* The stages of a transform: for each radix its own, and the first or last one
 * of a real line.  On GPUs the first may read the array and the last write the
 * result. */

/* All p and q of a stage: vectors on the host, one number a turn of a work
 * item elsewhere. */
#if SD_LANES == 1
#define EACH(p, q, m, s, ...) \
    for (INDEX t_ = (INDEX)lid; t_ < (m) * (s); t_ += (INDEX)GROUP) { \
        const INDEX p = ROW(t_, s), q = t_ - p * (s); \
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

/* The same of a stage of lines: work items side by side take what lies side by
 * side in an array that the stage reads or writes. */
#if SD_LANES == 1
#define EACH_OF(f, z, p, q, ...) \
    for (INDEX t_ = (INDEX)lid; t_ < z.m * z.s; t_ += (INDEX)GROUP) { \
        const INDEX at_ = FN(in_turn)(f, &z, t_); \
        const INDEX p = ROW(at_, z.s), q = at_ - p * z.s; \
        __VA_ARGS__ \
    }
#else
#define EACH_OF(f, z, p, q, ...) EACH(p, q, z.m, z.s, __VA_ARGS__)
#endif

/* A stage over m rows of s numbers for each of its inputs.  Where the next one
 * reads side by side there are gaps, since distances that are powers of two
 * are places of a cache that displace one another: between the inputs here,
 * and between groups of `each` of p of the results. */
typedef struct {
    INDEX m, s, gap, each;
    bool first, last;
} FN(sizes);
#define SIZES FN(sizes)

DL_INLINE INDEX FN(row_of)(const SIZES *z, INDEX p, INDEX i)
{
    return z->s * (p + z->m * i) + z->gap * i;
}

/* Of r results of p, the first. */
DL_INLINE INDEX FN(row_to)(const SIZES *z, INDEX r, INDEX p)
{
    return z->s * r * p +
           (z->each ? (INDEX)((uint32_t)p / (uint32_t)z->each * FFT_GAP) : 0);
}

#if SD_LANES == 1
DL_INLINE INDEX FN(in_turn)(const PLAN *f, const SIZES *z, INDEX t)
{
    const INDEX width = (INDEX)f->width, rows = ROW(z->m * z->s, width);

    if ((z->first && f->reads_x && FN(lies_along)(f, &f->in)) ||
        (z->last && f->writes_y && FN(lies_along)(f, &f->out)))
        return t % rows * width + ROW(t, rows);
    return t;
}
#endif

/* The r inputs of p and q. */
DL_INLINE void FN(inputs)(const PLAN *f, const SIZES *z, PLANES x, INDEX p,
                          INDEX q, const int r, NUM *v)
{
#if SD_LANES == 1
    if (z->first && f->reads_x) {
        FN(pick_of_x)(f, z->s * p + q, z->m * z->s, r, v);
        return;
    }
#endif
    (void)f;
    for (int i = 0; i < r; i++)
        v[i] = FN(pick)(x, FN(row_of)(z, p, i) + q);
}

/* Their r results, all but the first by the roots from w on. */
DL_INLINE void FN(results)(const PLAN *f, const SIZES *z, PLANES y, INDEX p,
                           INDEX q, const int r, NUM *v,
                           const DL_GLOBAL REAL *w)
{
    const INDEX to = FN(row_to)(z, r, p) + q;

#if SD_LANES == 1
    if (z->last && f->writes_y) {
        for (int k = 1; k < r; k++)
            v[k] = FN(by_root)(v[k], w + 2 * k - 2);
        FN(lay_in_y)(f, to, z->s, r, v);
        return;
    }
#endif
    (void)f;
    FN(lay)(y, to, v[0]);
    for (int k = 1; k < r; k++) {
        v[k] = FN(by_root)(v[k], w + 2 * k - 2);
        FN(lay)(y, to + z->s * k, v[k]);
    }
}

#define STAGE(R, dft) \
    DL_PIECE void FN(stage##R)(const PLAN *f, PLANES x, PLANES y, SIZES z, \
                               const DL_GLOBAL REAL *w, int64_t lid) \
    { \
        (void)lid; \
        EACH_OF(f, z, p, q, { \
            NUM v[R]; \
\
            FN(inputs)(f, &z, x, p, q, R, v); \
            dft(v); \
            FN(results)(f, &z, y, p, q, R, v, w + 2 * (R - 1) * p); \
        }) \
    }

STAGE(2, FN(dft2))
STAGE(3, FN(dft3))
STAGE(4, FN(dft4))
STAGE(5, FN(dft5))
STAGE(8, FN(dft8))
STAGE(16, FN(dft16))

/* Calls fn with r as a constant where that is common, so that what it does is
 * written out. */
#define BY_RADIX(r, set, fn, ...) \
    switch (r) { \
    case 3: IF_HAS(set, 1u << 3, fn(3, __VA_ARGS__)); break; \
    case 4: IF_HAS(set, 1u << 4, fn(4, __VA_ARGS__)); break; \
    case 5: IF_HAS(set, 1u << 5, fn(5, __VA_ARGS__)); break; \
    case 7: IF_HAS(set, 1u << 7, fn(7, __VA_ARGS__)); break; \
    case 9: IF_HAS(set, 1u << 9, fn(9, __VA_ARGS__)); break; \
    case 11: IF_HAS(set, 1u << 11, fn(11, __VA_ARGS__)); break; \
    case 13: IF_HAS(set, 1u << 13, fn(13, __VA_ARGS__)); break; \
    case 15: IF_HAS(set, 1u << 15, fn(15, __VA_ARGS__)); break; \
    default: IF_HAS(set, OTHER_RADIX, fn(r, __VA_ARGS__)); break; \
    }

/* The r roots come before the stage's own. */
DL_INLINE void FN(odd_stage)(int r, const PLAN *f, PLANES x, PLANES y, SIZES z,
                             const DL_GLOBAL REAL *w, int64_t lid)
{
    (void)lid;
    EACH_OF(f, z, p, q, {
        NUM v[MOST_RADIX];

        FN(inputs)(f, &z, x, p, q, r, v);
        FN(dft_odd)(v, r, w);
        FN(results)(f, &z, y, p, q, r, v, w + 2 * r + 2 * (r - 1) * p);
    })
}

DL_PIECE void FN(stage_odd)(const PLAN *f, PLANES x, PLANES y, int r,
                            uint32_t set, SIZES z, const DL_GLOBAL REAL *w,
                            int64_t lid)
{
    (void)set;
    BY_RADIX(r, set, FN(odd_stage), f, x, y, z, w, lid)
}

/* The first stage of a real line, in the planes of real parts: of its
 * results the first half says all.  Its roots come before its own. */
DL_INLINE void FN(real_stage)(int r, PLANES x, PLANES y, SIZES z,
                              const DL_GLOBAL REAL *w, int64_t lid)
{
    const int h = r / 2;

    (void)lid;
    EACH(p, q, z.m, z.s, {
        const DL_GLOBAL REAL *wp = w + 2 * r + 2 * h * p;
        INDEX to = FN(row_to)(&z, h + 1, p) + q;
        VEC u[MOST_RADIX];
        NUM v[MOST_RADIX / 2 + 1];

        for (int i = 0; i < r; i++)
            u[i] = FN(look)(x.re, FN(row_of)(&z, p, i) + q);
        FN(dft_real)(u, v, r, w);
        for (int k = 0; k <= h; k++) {
            if (k)
                v[k] = FN(by_root)(v[k], wp + 2 * k - 2);
            FN(lay)(y, to + z.s * k, v[k]);
        }
    })
    SYNC();
}

DL_PIECE void FN(stage_real)(PLANES x, PLANES y, int r, SIZES z,
                             const DL_GLOBAL REAL *w, int64_t lid)
{
    BY_RADIX(r, ALL_RADICES, FN(real_stage), x, y, z, w, lid)
}

/* The first s at most: what lies behind them has been written. */
DL_INLINE void FN(put_some)(PLANE p, INDEX at, VEC v, INDEX s)
{
#if SD_LANES > 1
    if (s < LANES) {
        for (int64_t i = 0; i < s; i++)
            p[at + i] = v[i];
        return;
    }
#endif
    (void)s;
    FN(set)(p, at, v);
}

/* The last stage of a line that becomes real, by the same table. */
DL_INLINE void FN(to_real_stage)(int r, PLANES x, PLANES y, SIZES z,
                                 const DL_GLOBAL REAL *w, int64_t lid)
{
    const int h = r / 2;

    (void)lid;
    EACH(p, q, z.m, z.s, {
        const DL_GLOBAL REAL *wp = w + 2 * r + 2 * h * p;
        VEC u[MOST_RADIX];
        NUM v[MOST_RADIX / 2 + 1];

        for (int k = 0; k <= h; k++) {
            v[k] = FN(pick)(x, q + z.s * ((h + 1) * p + k));
            if (k) /* backwards */
                v[k] = FN(times)(v[k], (VEC)wp[2 * k - 2], -(VEC)wp[2 * k - 1]);
        }
        FN(dft_to_real)(v, u, r, w);
        for (int i = 0; i < r; i++)
            FN(put_some)(y.re, FN(row_of)(&z, p, i) + q, u[i], z.s);
    })
    SYNC();
}

DL_PIECE void FN(stage_to_real)(PLANES x, PLANES y, int r, SIZES z,
                                const DL_GLOBAL REAL *w, int64_t lid)
{
    BY_RADIX(r, ALL_RADICES, FN(to_real_stage), x, y, z, w, lid)
}

/* How many numbers of the table a stage takes. */
DL_INLINE int64_t FN(stage)(const PLAN *f, PLANES x, PLANES y, int r,
                            uint32_t set, SIZES z, const DL_GLOBAL REAL *w,
                            int64_t lid)
{
    switch (r) {
    case 16: IF_HAS(set, 1u << 16, FN(stage16)(f, x, y, z, w, lid)); break;
    case 8: IF_HAS(set, 1u << 8, FN(stage8)(f, x, y, z, w, lid)); break;
    case 5: IF_HAS(set, 1u << 5, FN(stage5)(f, x, y, z, w, lid)); break;
    case 4: IF_HAS(set, 1u << 4, FN(stage4)(f, x, y, z, w, lid)); break;
    case 3: IF_HAS(set, 1u << 3, FN(stage3)(f, x, y, z, w, lid)); break;
    case 2: IF_HAS(set, 1u << 2, FN(stage2)(f, x, y, z, w, lid)); break;
    default:
        IF_HAS(set, ODD_RADICES,
               FN(stage_odd)(f, x, y, r, set & ODD_RADICES, z, w, lid));
        return 2 * r + 2 * (r - 1) * z.m;
    }
    return 2 * (r - 1) * z.m;
}

/* 0: there is none. */
DL_INLINE int FN(radix)(const PLAN *f, int i)
{
    /* no index: on GPUs f is no memory */
    int64_t eight = i < 8 ? f->radix[0] : f->radix[1];

    return i < 16 ? (int)(eight >> (i % 8 * 8) & 255) : 0;
}

/* A bit for each radix of f's stages. */
DL_INLINE uint32_t FN(radices)(const PLAN *f)
{
    uint32_t set = 0;

#pragma clang loop unroll(full)
    for (int i = 0; i < 16; i++) {
        int r = FN(radix)(f, i);

        set |= r <= 16 ? 1u << r : OTHER_RADIX;
    }
    return set;
}

/* Rows between gaps before stage i, which has m of them; 0: there are none. */
DL_INLINE INDEX FN(gaps)(const PLAN *f, int i, INDEX m)
{
    int r = FN(radix)(f, i);

    return SD_LANES > 1 && r && r <= FFT_GAPS ? m / r : 0;
}

/* All stages over `m` rows of s numbers, by the table from w on; the result is
 * in a or b, which trade places so that it is a.  Returns the table's rest. */
DL_INLINE const DL_GLOBAL REAL *FN(stages)(const PLAN *f,
                                           const DL_GLOBAL REAL *w, INDEX m,
                                           INDEX s, INDEX gap, PLANES *a,
                                           PLANES *b, int64_t lid)
{
    const uint32_t set = FN(radices)(f);

    for (int i = 0, r; (r = FN(radix)(f, i)) != 0; i++) {
        SIZES z = {m / r, s, gap, FN(gaps)(f, i + 1, m / r),
                   i == 0, !f->across && !FN(radix)(f, i + 1)};

        w += FN(stage)(f, *a, *b, r, set, z, w, lid);
        gap = z.each ? FFT_GAP : 0;
        m /= r;
        s *= r;
        FN(swap)(a, b);
        SYNC();
    }
    return w;
}
