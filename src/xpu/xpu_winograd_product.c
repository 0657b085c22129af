/* Winograd's products: pieces of the kernel are turned into panels of 16
 * features that stay in a cache of the core, and tiles are multiplied by them
 * with their sums in registers.
 *
 * A sum is a chain over some channels, added to those of the piece's channels
 * before them and then to what other pieces gave, so its bits depend on how the
 * channels are cut alone.  Errors grow with the root of a chain's length, and
 * turns of large tiles make them larger: hence short ones. */
#include "xpu_winograd_turns.h"

enum {
    ROWS = 6,       /* tiles at a time: 12 sums of 8 in 16 registers */
    WIDE_ROWS = 12, /* the same with registers of 16, of which there are 32 */
    AHEAD = 4       /* rows of the kernel that are asked of memory early */
};

static int64_t panels_of(int64_t features)
{
    return (features + PANEL - 1) / PANEL;
}

/* Writing goes along the matrices of all points at once; at multiples of a page
 * all of them would want the same few lines of a cache. */
static int64_t panels_apart(int64_t channels, int64_t features)
{
    return panels_of(features) * PANEL * channels + LINE;
}

int64_t winograd_panels(int step, int64_t channels, int64_t features)
{
    return winograd_points(step) * panels_apart(channels, features);
}

/* ---- the kernel's turn ---- */

/* The nine positions of `w`, of a channel and eight features, go to `to`. */
static inline void turn_one(lanes *w, float *to, int64_t apart, int step)
{
    int side = winograd_side(step);

#pragma GCC unroll 36
    for (int j = 0; j < KERNEL; j++)
        turn_column(w + j, side, step);
#pragma GCC unroll 36
    for (int i = 0; i < side; i++)
        turn_column(w + i * side, 1, step);
#pragma GCC unroll 36
    for (int p = 0; p < side * side; p++)
        put(to + p * apart, w[p]);
}

/* Where channel k and feature f (a multiple of eight) of a piece are. */
static inline float *place_in(const winograd_piece *p, int64_t k, int64_t f)
{
    return p->panels + (f / PANEL * p->channels + k) * PANEL + f % PANEL;
}

/* Rows of the kernel are channels. */
static inline __attribute__((always_inline)) void
turn_rows(const winograd_piece *p, int64_t apart, bool narrow, int step)
{
    int side = winograd_side(step);
    const char *kernel = p->kernel;
    int64_t bytes = narrow ? 2 : 4;

    for (int64_t k = 0; k < p->channels; k++)
        for (int64_t f = 0; f < p->features; f += LANES) {
            int64_t at = (p->channel + k) * p->row + p->feature + f;
            lanes w[MOST_POINTS];

            for (int i = 0; i < KERNEL; i++)
                for (int j = 0; j < KERNEL; j++) {
                    int64_t one = at + i * p->y + j * p->x;

                    w[i * side + j] = get_of(kernel, one, narrow);
                    /* a hint: beyond the end it does nothing */
                    __builtin_prefetch(kernel + (one + AHEAD * p->row) * bytes);
                }
            turn_one(w, place_in(p, k, f), apart, step);
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
static inline __attribute__((always_inline)) void
turn_columns(const winograd_piece *p, int64_t apart, bool narrow, int step)
{
    int side = winograd_side(step);

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
                lanes w[MOST_POINTS];

                for (int i = 0; i < KERNEL * KERNEL; i++)
                    w[i / KERNEL * side + i % KERNEL] = square[i][r];
                turn_one(w, place_in(p, k + r, f), apart, step);
            }
        }
}

/* The half of the last panel that has no features. */
static void clear_rest(const winograd_piece *p, int64_t apart)
{
    lanes none = {0};

    if (p->features % PANEL)
        for (int i = 0; i < winograd_points(p->step); i++)
            for (int64_t k = 0; k < p->channels; k++)
                put(place_in(p, k, p->features) + i * apart, none);
}

static inline __attribute__((always_inline)) void
turn_kernel(const winograd_piece *p, int64_t apart, int step)
{
    if (p->turned && p->narrow)
        turn_columns(p, apart, true, step);
    else if (p->turned)
        turn_columns(p, apart, false, step);
    else if (p->narrow)
        turn_rows(p, apart, true, step);
    else
        turn_rows(p, apart, false, step);
}

void winograd_turn(const winograd_piece *p)
{
    int64_t apart = panels_apart(p->channels, p->features);

    if (p->step == SMALL)
        turn_kernel(p, apart, SMALL);
    else
        turn_kernel(p, apart, LARGE);
    clear_rest(p, apart);
}

/* ---- products ---- */

/* A link of chains: a channel of `rows` tiles, by a row of a panel.  The loop
 * has to be unrolled, since all sums are in registers. */
static inline __attribute__((always_inline)) void
add_link(const int rows, bool first, const float *x, const float *panel,
         __m256 s[ROWS][2])
{
    __m256 low = _mm256_loadu_ps(panel), high = _mm256_loadu_ps(panel + LANES);

#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        __m256 one = _mm256_broadcast_ss(x + r * MOST_CHANNELS);

        s[r][0] = first ? _mm256_mul_ps(one, low)
                        : _mm256_fmadd_ps(one, low, s[r][0]);
        s[r][1] = first ? _mm256_mul_ps(one, high)
                        : _mm256_fmadd_ps(one, high, s[r][1]);
    }
}

/* Sums go on with those that are there. */
static inline __attribute__((always_inline)) void
add_sums(const int rows, const float *from, int64_t row, __m256 s[ROWS][2])
{
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++)
            s[r][i] = _mm256_add_ps(_mm256_loadu_ps(from + r * row + i * LANES),
                                    s[r][i]);
}

static inline __attribute__((always_inline)) void
put_sums(const int rows, float *to, int64_t row, __m256 s[ROWS][2])
{
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++)
            _mm256_storeu_ps(to + r * row + i * LANES, s[r][i]);
}

/* `rows` tiles by a panel. */
static inline __attribute__((always_inline)) void
multiply_rows(const winograd_piece *p, const int rows, const float *x,
              const float *panel, float *sums, int64_t sums_row)
{
    float whole[ROWS * PANEL]; /* of the chains before */
    __m256 s[ROWS][2];

    for (int64_t k = 0, end;; k = end) {
        end = SD_MIN(k + p->chain, p->channels);
        add_link(rows, true, x + k, panel + k * PANEL, s);
#pragma GCC unroll 2
        for (int64_t i = k + 1; i < end; i++)
            add_link(rows, false, x + i, panel + i * PANEL, s);
        if (k)
            add_sums(rows, whole, PANEL, s);
        if (end == p->channels)
            break;
        put_sums(rows, whole, PANEL, s);
    }
    if (!p->first)
        add_sums(rows, sums, sums_row, s);
    put_sums(rows, sums, sums_row, s);
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
    __m512 s[WIDE_ROWS], whole[WIDE_ROWS];

#pragma GCC unroll 12
    for (int r = 0; r < WIDE_ROWS; r++)
        s[r] = whole[r] = _mm512_setzero_ps();
    for (int64_t k = 0, end; k < p->channels; k = end) {
        end = SD_MIN(k + p->chain, p->channels);
        for (int64_t i = k; i < end; i++) {
            __m512 row = _mm512_loadu_ps(panel + i * PANEL);

#pragma GCC unroll 12
            for (int r = 0; r < WIDE_ROWS; r++) {
                __m512 one = _mm512_set1_ps(x[r * MOST_CHANNELS + i]);

                s[r] = i == k ? _mm512_mul_ps(one, row)
                              : _mm512_fmadd_ps(one, row, s[r]);
            }
        }
#pragma GCC unroll 12
        for (int r = 0; r < WIDE_ROWS; r++)
            whole[r] = k ? _mm512_add_ps(whole[r], s[r]) : s[r];
    }
#pragma GCC unroll 12
    for (int r = 0; r < WIDE_ROWS; r++) {
        float *to = sums + r * sums_row;

        if (!p->first)
            whole[r] = _mm512_add_ps(_mm512_loadu_ps(to), whole[r]);
        _mm512_storeu_ps(to, whole[r]);
    }
}

/* Of so many tiles those that are multiplied first: all pieces are even. */
static int64_t even(int64_t left)
{
    int64_t pieces = (left + ROWS - 1) / ROWS;

    return (left + pieces - 1) / pieces;
}

void winograd_multiply(const winograd_piece *p, int point)
{
    int64_t many = panels_of(p->features), row = many * PANEL;
    const float *from = p->from + point * p->from_apart;
    const float *panels =
        p->panels + point * panels_apart(p->channels, p->features);
    float *to = p->sums + point * p->sums_apart;
    bool wide = __builtin_cpu_supports("avx512f");

    for (int64_t t = 0, rows; t < p->tiles; t += rows) {
        int64_t left = p->tiles - t;

        rows = wide && left >= WIDE_ROWS ? WIDE_ROWS : even(left);
        for (int64_t n = 0; n < many; n++) {
            const float *x = from + t * MOST_CHANNELS;
            const float *panel = panels + n * PANEL * p->channels;
            float *sums = to + t * row + n * PANEL;

            if (rows == WIDE_ROWS)
                multiply_wide(p, x, panel, sums, row);
            else
                multiply_some(p, rows, x, panel, sums, row);
        }
    }
}
