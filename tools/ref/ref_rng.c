/* Random bits as XLA defines them: Threefry-2x32 with 20 rounds (Salmon et
 * al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) and
 * Philox-4x32 with 10 rounds of the same paper.  The default is Philox, as on
 * XLA's CPU and GPU. */
#include "ref_priv.h"

#include <math.h>

static uint32_t rotate(uint32_t v, int n)
{
    return v << n | v >> (32 - n);
}

static void threefry(const uint32_t key[2], uint64_t counter, uint32_t out[2])
{
    static const int turn[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    uint32_t k[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA};
    uint32_t x = (uint32_t)counter + k[0];
    uint32_t y = (uint32_t)(counter >> 32) + k[1];

    for (uint32_t r = 0; r < 5; r++) {
        for (int i = 0; i < 4; i++) {
            x += y;
            y = rotate(y, turn[r % 2][i]) ^ x;
        }
        x += k[(r + 1) % 3];
        y += k[(r + 2) % 3] + r + 1;
    }
    out[0] = x;
    out[1] = y;
}

/* The block of 4 words at `counter`. */
static void philox(const uint32_t key[2], const uint64_t counter[2],
                   uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c[4] = {(uint32_t)counter[0], (uint32_t)(counter[0] >> 32),
                     (uint32_t)counter[1], (uint32_t)(counter[1] >> 32)};

    for (int r = 0; r < 10; r++) {
        uint64_t a = UINT64_C(0xD2511F53) * c[0];
        uint64_t b = UINT64_C(0xCD9E8D57) * c[2];
        uint32_t n[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b,
                         (uint32_t)(a >> 32) ^ c[3] ^ k1, (uint32_t)a};

        memcpy(c, n, sizeof n);
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    memcpy(out, c, sizeof c);
}

/* Types narrower than 32 bits take the low ones of a whole word. */
static void put_word(hlo_value *out, int64_t i, uint64_t v)
{
    sd_scalar_of_s64(out->shape->dtype, (int64_t)v, hlo_at_elem(out, i));
}

/* The dimension whose neighbours share a counter: the first even one, else
 * the first of the largest. */
static int shared_dim(const sd_shape *s)
{
    int d = 0;

    for (int i = 0; i < s->rank; i++)
        if (s->dim[i] % 2 == 0)
            return i;
    for (int i = 1; i < s->rank; i++)
        if (s->dim[i] > s->dim[d])
            d = i;
    return d;
}

/* Gives the number of counters used. */
static uint64_t threefry_words(const uint32_t key[2], uint64_t counter,
                               hlo_value *out)
{
    const sd_shape *s = out->shape;
    int64_t half[SD_MAX_RANK], ix[SD_MAX_RANK] = {0}, stride[SD_MAX_RANK];
    uint64_t n = 0;
    uint32_t w[2];
    int d = shared_dim(s);

    if (s->rank == 0) {
        threefry(key, counter, w);
        put_word(out, 0, w[0]);
        return 1;
    }
    memcpy(half, s->dim, sizeof *half * (size_t)s->rank);
    half[d] = (half[d] + 1) / 2;
    sd_shape_strides(s, stride);
    do {
        int64_t at = 0;

        for (int i = 0; i < s->rank; i++)
            at += (i == d ? 2 * ix[i] : ix[i]) * stride[i];
        threefry(key, counter + n++, w);
        put_word(out, at, w[0]);
        if (2 * ix[d] + 1 < s->dim[d])
            put_word(out, at + stride[d], w[1]);
    } while (hlo_step(s->rank, half, ix));
    return n;
}

static uint64_t eval_threefry(const uint32_t key[2], uint64_t counter,
                              hlo_value *out)
{
    int64_t n = sd_shape_count(out->shape);
    uint32_t w[2];

    if (n == 0)
        return 0;
    if (sd_dtype_table[out->shape->dtype].bits != 64)
        return threefry_words(key, counter, out);
    for (int64_t i = 0; i < n; i++) {
        threefry(key, counter + (uint64_t)i, w);
        put_word(out, i, w[0] | (uint64_t)w[1] << 32);
    }
    return (uint64_t)n;
}

static void eval_philox(const uint32_t key[2], uint64_t counter[2],
                        hlo_value *out)
{
    int64_t n = sd_shape_count(out->shape);
    bool wide = sd_dtype_table[out->shape->dtype].bits == 64;
    int64_t per = wide ? 2 : 4;
    uint32_t w[4];

    for (int64_t i = 0; i < n; i++) {
        if (i % per == 0) {
            philox(key, counter, w);
            if (++counter[0] == 0)
                counter[1]++;
        }
        int64_t k = i % per;

        put_word(out, i, wide ? w[2 * k] | (uint64_t)w[2 * k + 1] << 32 : w[k]);
    }
}

/* ---- random numbers ---- */

/* The next 64 bits of a stream that starts anew with each evaluation: rng has
 * no numbers that it must give, only a distribution. */
static uint64_t draw(hlo_ev *e)
{
    static const uint32_t key[2] = {0x53756e64, 0x6f670001};
    uint64_t counter[2] = {e->drawn++, 0};
    uint32_t w[4];

    philox(key, counter, w);
    return w[0] | (uint64_t)w[1] << 32;
}

static long double draw_unit(hlo_ev *e) /* in [0, 1) */
{
    return (long double)draw(e) * 0x1p-64L;
}

/* Uniform in [a, b), in unsigned arithmetic: b - a may not fit its type. */
static void draw_whole(hlo_ev *e, sd_dtype t, const void *a, const void *b,
                       void *out)
{
    uint64_t low = (uint64_t)sd_scalar_to_s64(t, a);
    uint64_t room = (uint64_t)sd_scalar_to_s64(t, b) - low;
    bool empty = hlo_scalar_compare(HLO_GE, HLO_CMP_FLOAT, t, a, b);

    sd_scalar_of_s64(t, (int64_t)(empty ? low : low + draw(e) % room), out);
}

/* Rounding may give b itself: then again. */
static void draw_between(hlo_ev *e, sd_dtype t, const void *a, const void *b,
                         void *out)
{
    long double low = creall(hlo_wide_load(t, a));
    long double high = creall(hlo_wide_load(t, b));

    do
        hlo_wide_store(t, low + draw_unit(e) * (high - low), out);
    while (low < high && isfinite(high - low) &&
           creall(hlo_wide_load(t, out)) >= high);
}

/* Box and Muller's: two uniform numbers make a normal one. */
static void draw_normal(hlo_ev *e, sd_dtype t, const void *mean,
                        const void *deviation, void *out)
{
    const long double pi = 3.141592653589793238462643383279502884L;
    long double r = sqrtl(-2 * logl(1 - draw_unit(e)));

    hlo_wide_store(t,
                   creall(hlo_wide_load(t, mean)) +
                       creall(hlo_wide_load(t, deviation)) * r *
                           cosl(2 * pi * draw_unit(e)),
                   out);
}

static sd_status eval_distribution(hlo_ev *e, const hlo_inst *in,
                                   const hlo_value *arg, hlo_value *out)
{
    sd_dtype t = out->shape->dtype;
    bool is_float = sd_is_float(t);
    int64_t n = sd_shape_count(out->shape);

    for (int64_t i = 0; i < n; i++) {
        char *to = hlo_at_elem(out, i);

        if (in->u.rng.distribution == HLO_RNG_NORMAL)
            draw_normal(e, t, arg[0].data, arg[1].data, to);
        else if (is_float)
            draw_between(e, t, arg[0].data, arg[1].data, to);
        else
            draw_whole(e, t, arg[0].data, arg[1].data, to);
    }
    return NULL;
}

sd_status ref_rng(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                  hlo_value *out)
{
    uint64_t state[3] = {0}, counter[2];
    int64_t n = arg[0].shape->rank ? arg[0].shape->dim[0] : 0;

    if (in->op == HLO_RNG)
        return eval_distribution(e, in, arg, out);
    memcpy(state, arg[0].data, sizeof *state * (size_t)n);
    uint32_t key[2] = {(uint32_t)state[0], (uint32_t)(state[0] >> 32)};

    if (in->u.rng.algo == HLO_RNG_THREEFRY) {
        state[1] += eval_threefry(key, state[1], &out->elem[1]);
    } else {
        counter[0] = state[1];
        counter[1] = n == 3 ? state[2] : state[0];
        eval_philox(key, counter, &out->elem[1]);
        state[1] = counter[0];
        if (n == 3)
            state[2] = counter[1];
    }
    memcpy(out->elem[0].data, state, sizeof *state * (size_t)n);
    return NULL;
}
