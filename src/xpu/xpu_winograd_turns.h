/* The turns of Winograd's tiles, of one dimension: polynomials are taken at
 * some points, multiplied there, and put together again.
 *
 * Steps of 2 take 0, 1, -1 and infinity: additions and halves.  Steps of 4 need
 * six points.  By 0, 1, -1, 2, -2 and infinity, as in the textbooks, errors are
 * twice as large as by 0, +-11/16, +-3/2 and infinity, which are the best of a
 * search over sixteenths; around them errors hardly differ.  All numbers here
 * are exact in f32 but those of the kernel's turn, which are divided. */
#ifndef XPU_WINOGRAD_TURNS_H
#define XPU_WINOGRAD_TURNS_H

#include "xpu_winograd.h"

#define NEAR 0.6875f /* two of the points, by their magnitude */
#define FAR 1.5f
#define NEAR_2 (NEAR * NEAR)
#define FAR_2 (FAR * FAR)

/* c + a * b, rounded once. */
static inline lanes more(lanes c, float a, lanes b)
{
    return (lanes)_mm256_fmadd_ps(_mm256_set1_ps(a), (__m256)b, (__m256)c);
}

/* c - a * b */
static inline lanes less(lanes c, float a, lanes b)
{
    return (lanes)_mm256_fnmadd_ps(_mm256_set1_ps(a), (__m256)b, (__m256)c);
}

/* A column of a tile, whose elements are `apart` from each other. */
static inline void turn_input(lanes *x, int apart, int step)
{
    lanes a = x[0], b = x[apart], c = x[2 * apart], d = x[3 * apart];

    if (step == SMALL) {
        x[0] = a - c;
        x[apart] = b + c;
        x[2 * apart] = c - b;
        x[3 * apart] = b - d;
    } else {
        lanes e = x[4 * apart], f = x[5 * apart];
        lanes even = less(e, FAR_2, c), odd = less(d, FAR_2, b);

        x[0] = more(less(e, NEAR_2 + FAR_2, c), NEAR_2 * FAR_2, a);
        x[apart] = more(even, NEAR, odd);
        x[2 * apart] = less(even, NEAR, odd);
        even = less(e, NEAR_2, c);
        odd = less(d, NEAR_2, b);
        x[3 * apart] = more(even, FAR, odd);
        x[4 * apart] = less(even, FAR, odd);
        x[5 * apart] = more(less(f, NEAR_2 + FAR_2, d), NEAR_2 * FAR_2, b);
    }
}

/* The kernel's values at `at` and -at, the product of whose distances to the
 * other points is `by`. */
static inline void turn_pair(lanes *to, int apart, const lanes *w, float at,
                             float by)
{
    lanes even = more(w[0] * (1 / by), at * at / by, w[2]);

    to[0] = more(even, at / by, w[1]);
    to[apart] = less(even, at / by, w[1]);
}

/* A column of the kernel: three elements become four or six. */
static inline void turn_column(lanes *w, int apart, int step)
{
    lanes a = w[0], b = w[apart], c = w[2 * apart];

    if (step == SMALL) {
        lanes half = b * 0.5f, s = (a + c) * 0.5f;

        w[apart] = s + half;
        w[2 * apart] = s - half;
        w[3 * apart] = c;
    } else {
        lanes old[] = {a, b, c};

        w[0] = a * (1 / (NEAR_2 * FAR_2));
        turn_pair(w + apart, apart, old, NEAR, 2 * NEAR_2 * (NEAR_2 - FAR_2));
        turn_pair(w + 3 * apart, apart, old, FAR,
                  2 * FAR_2 * (FAR_2 - NEAR_2));
        w[5 * apart] = c;
    }
}

/* A column of sums: four become two, six become four. */
static inline void turn_sums(lanes *m, int apart, int step)
{
    lanes a = m[0], b = m[apart], c = m[2 * apart], d = m[3 * apart];

    if (step == SMALL) {
        m[0] = a + b + c;
        m[apart] = b - c - d;
    } else {
        lanes e = m[4 * apart], f = m[5 * apart];
        lanes near = b + c, far = d + e;

        m[0] = a + (near + far);
        m[2 * apart] = more(far * FAR_2, NEAR_2, near);
        near = b - c;
        far = d - e;
        m[apart] = more(far * FAR, NEAR, near);
        m[3 * apart] =
            more(more(f, FAR * FAR_2, far), NEAR * NEAR_2, near);
    }
}

#endif
