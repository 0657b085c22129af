/* Winograd's products: pieces of the kernel are turned into panels of 16
 * features that stay in a cache of the core, and tiles are multiplied by them
 * with their sums in registers.
 *
 * A sum is a chain over a piece's channels, added to what other pieces gave
 * before it, so its bits depend on how the channels are cut alone. */
#include "xpu_winograd.h"

#include <immintrin.h>

enum {
    ROWS = 6, /* tiles at a time: 12 sums of 8 in 16 registers */
    WIDE_ROWS = 12, /* the same with registers of 16, of which there are 32 */
    AHEAD = 4 /* rows of the kernel that are asked of memory early */
};

static int64_t panels_of(int64_t features)
{
    return (features + PANEL - 1) / PANEL;
}

/* Writing goes along POINTS matrices at once; at multiples of a page all of
 * them would want the same few lines of a cache. */
static int64_t panels_apart(int64_t channels, int64_t features)
{
    return panels_of(features) * PANEL * channels + LINE;
}

int64_t winograd_panels(int64_t channels, int64_t features)
{
    return POINTS * panels_apart(channels, features);
}

/* ---- the kernel's turn ---- */

/* G times a column: three elements become four. */
static inline void turn_column(lanes *w, int step)
{
    lanes a = w[0], b = w[step] * 0.5f, c = w[2 * step], s = (a + c) * 0.5f;

    w[step] = s + b;
    w[2 * step] = s - b;
    w[3 * step] = c;
}

/* The nine positions of `w`, of a channel and eight features, go to `to`. */
static inline void turn_one(lanes *w, float *to, int64_t apart)
{
#pragma GCC unroll 16
    for (int j = 0; j < KERNEL; j++)
        turn_column(w + j, SIDE);
#pragma GCC unroll 16
    for (int i = 0; i < SIDE; i++)
        turn_column(w + i * SIDE, 1);
#pragma GCC unroll 16
    for (int p = 0; p < POINTS; p++)
        put(to + p * apart, w[p]);
}

/* Where channel k and feature f (a multiple of eight) of a piece are. */
static inline float *place_in(const winograd_piece *p, int64_t k, int64_t f)
{
    return p->panels + (f / PANEL * p->channels + k) * PANEL + f % PANEL;
}

/* Rows of the kernel are channels. */
static inline void turn_rows(const winograd_piece *p, int64_t apart,
                             bool narrow)
{
    const char *kernel = p->kernel;
    int64_t bytes = narrow ? 2 : 4;

    for (int64_t k = 0; k < p->channels; k++)
        for (int64_t f = 0; f < p->features; f += LANES) {
            int64_t at = (p->channel + k) * p->row + p->feature + f;
            lanes w[POINTS];

            for (int i = 0; i < KERNEL; i++)
                for (int j = 0; j < KERNEL; j++) {
                    int64_t one = at + i * p->y + j * p->x;

                    w[i * SIDE + j] = get_of(kernel, one, narrow);
                    /* a hint: beyond the end it does nothing */
                    __builtin_prefetch(kernel + (one + AHEAD * p->row) * bytes);
                }
            turn_one(w, place_in(p, k, f), apart);
        }
}

/* Eight rows of eight become eight columns. */
static inline void transpose(lanes *v)
{
    __m256 a[8], b[8];

    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_ps((__m256)v[i], (__m256)v[i + 1]);
        a[i + 1] = _mm256_unpackhi_ps((__m256)v[i], (__m256)v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            b[i + 2 * j] = _mm256_shuffle_ps(a[i + j], a[i + 2 + j], 0x44);
            b[i + 2 * j + 1] = _mm256_shuffle_ps(a[i + j], a[i + 2 + j], 0xee);
        }
    for (int i = 0; i < 4; i++) {
        v[i] = (lanes)_mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
        v[i + 4] = (lanes)_mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
}

/* Rows of the kernel are features: squares of eight by eight. */
static inline void turn_columns(const winograd_piece *p, int64_t apart,
                                bool narrow)
{
    for (int64_t f = 0; f < p->features; f += LANES)
        for (int64_t k = 0; k < p->channels; k += LANES) {
            lanes square[KERNEL * KERNEL][LANES];

            for (int i = 0; i < KERNEL * KERNEL; i++) {
                int64_t at =
                    i / KERNEL * p->y + i % KERNEL * p->x + p->channel + k;

                for (int r = 0; r < LANES; r++)
                    square[i][r] = get_of(
                        p->kernel, at + (p->feature + f + r) * p->row, narrow);
                transpose(square[i]);
            }
            for (int r = 0; r < LANES; r++) {
                lanes w[POINTS];

                for (int i = 0; i < KERNEL * KERNEL; i++)
                    w[i / KERNEL * SIDE + i % KERNEL] = square[i][r];
                turn_one(w, place_in(p, k + r, f), apart);
            }
        }
}

/* The half of the last panel that has no features. */
static void clear_rest(const winograd_piece *p, int64_t apart)
{
    lanes none = {0};

    if (p->features % PANEL)
        for (int i = 0; i < POINTS; i++)
            for (int64_t k = 0; k < p->channels; k++)
                put(place_in(p, k, p->features) + i * apart, none);
}

void winograd_turn(const winograd_piece *p)
{
    int64_t apart = panels_apart(p->channels, p->features);

    if (p->turned && p->narrow)
        turn_columns(p, apart, true);
    else if (p->turned)
        turn_columns(p, apart, false);
    else if (p->narrow)
        turn_rows(p, apart, true);
    else
        turn_rows(p, apart, false);
    clear_rest(p, apart);
}

/* ---- products ---- */

/* `rows` tiles by a panel, with all sums in registers,
 * for which the loops over them have to be unrolled. */
static inline __attribute__((always_inline)) void
multiply_rows(const winograd_piece *p, const int rows, const float *x,
              const float *panel, float *sums, int64_t sums_row)
{
    int64_t channels = p->channels;
    __m256 s[ROWS][2];

#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        __builtin_prefetch(sums + r * sums_row, 1);
        s[r][0] = s[r][1] = _mm256_setzero_ps();
    }
    for (int64_t k = 0; k < channels; k++) {
        __m256 low = _mm256_loadu_ps(panel + k * PANEL),
               high = _mm256_loadu_ps(panel + k * PANEL + LANES);

#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            __m256 one = _mm256_broadcast_ss(x + r * MOST_CHANNELS + k);

            s[r][0] = _mm256_fmadd_ps(one, low, s[r][0]);
            s[r][1] = _mm256_fmadd_ps(one, high, s[r][1]);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            float *to = sums + r * sums_row + i * LANES;

            if (!p->first)
                s[r][i] = _mm256_add_ps(_mm256_loadu_ps(to), s[r][i]);
            _mm256_storeu_ps(to, s[r][i]);
        }
}

static void multiply_some(const winograd_piece *p, int64_t rows, const float *x,
                          const float *panel, float *sums, int64_t sums_row)
{
    /* each number is a constant of its own body */
#define CASE(n) \
    case n: \
        multiply_rows(p, n, x, panel, sums, sums_row); \
        break
    switch (rows) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(ROWS);
    }
#undef CASE
}

/* WIDE_ROWS tiles by a panel, of which a register holds a whole row.  The sums
 * are the same chains as above, so they have the same bits. */
static __attribute__((target("avx512f"))) void
multiply_wide(const winograd_piece *p, const float *x, const float *panel,
              float *sums, int64_t sums_row)
{
    __m512 s[WIDE_ROWS];

#pragma GCC unroll 12
    for (int r = 0; r < WIDE_ROWS; r++) {
        __builtin_prefetch(sums + r * sums_row, 1);
        s[r] = _mm512_setzero_ps();
    }
    for (int64_t k = 0; k < p->channels; k++) {
        __m512 row = _mm512_loadu_ps(panel + k * PANEL);

#pragma GCC unroll 12
        for (int r = 0; r < WIDE_ROWS; r++)
            s[r] = _mm512_fmadd_ps(_mm512_set1_ps(x[r * MOST_CHANNELS + k]),
                                   row, s[r]);
    }
#pragma GCC unroll 12
    for (int r = 0; r < WIDE_ROWS; r++) {
        float *to = sums + r * sums_row;

        if (!p->first)
            s[r] = _mm512_add_ps(_mm512_loadu_ps(to), s[r]);
        _mm512_storeu_ps(to, s[r]);
    }
}

void winograd_multiply(const winograd_piece *p)
{
    int64_t apart = panels_apart(p->channels, p->features);
    int64_t many = panels_of(p->features), row = many * PANEL;
    bool wide = __builtin_cpu_supports("avx512f");

    for (int i = 0; i < POINTS; i++)
        for (int64_t t = 0, rows; t < p->tiles; t += rows) {
            rows = wide && p->tiles - t >= WIDE_ROWS
                       ? WIDE_ROWS
                       : SD_MIN(ROWS, p->tiles - t);
            for (int64_t n = 0; n < many; n++) {
                const float *x =
                    p->from + i * p->from_apart + t * MOST_CHANNELS;
                const float *panel =
                    p->panels + i * apart + n * PANEL * p->channels;
                float *sums = p->sums + i * p->sums_apart + t * row + n * PANEL;

                if (rows == WIDE_ROWS)
                    multiply_wide(p, x, panel, sums, row);
                else
                    multiply_some(p, rows, x, panel, sums, row);
            }
        }
}
