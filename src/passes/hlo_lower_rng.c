/* rng-bit-generator into integer arithmetic on a counter: Threefry-2x32 (20
 * rounds) and Philox-4x32 (10 rounds), Salmon et al., "Parallel random
 * numbers: as easy as 1, 2, 3", 2011.  The words' order is XLA's:
 *
 *   threefry  key state[0], counter state[1] + k; a 64-bit element takes both
 *             words, 32-bit elements take a word each of two neighbours along
 *             the first even dimension (else the largest, rounded up and cut)
 *   philox    blocks of four words in row-major order; counter (state[1],
 *             state[2]), or (state[1], state[0]) where there are two words */
#include "terms.h"

typedef struct {
    hlo_at p;
    sd_arena *a;
    const sd_shape *s32, *s64; /* u32 and u64 of the counters' dimensions */
    hlo_inst *state;
} gen;

static hlo_inst *with(const gen *g, hlo_op op, hlo_inst *x, int64_t v)
{
    return t_binary(g->p, op, x,
                    hlo_make_fill_s64(g->p, x->shape, pass_dtype(x), v));
}

static hlo_inst *low(const gen *g, hlo_inst *x)
{
    return t_convert(g->p, SD_U32, x);
}

static hlo_inst *high(const gen *g, hlo_inst *x)
{
    return low(g, with(g, HLO_SHR_LOGIC, x, 32));
}

static hlo_inst *join(const gen *g, hlo_inst *lo, hlo_inst *hi)
{
    lo = t_convert(g->p, SD_U64, lo);
    hi = t_convert(g->p, SD_U64, hi);
    return t_or(g->p, lo, with(g, HLO_SHL, hi, 32));
}

/* state[i] as a scalar */
static hlo_inst *state_word(const gen *g, int64_t i)
{
    hlo_inst *x = hlo_make_cut(g->p, g->state, 0, i, i + 1);

    return hlo_make_reshape(g->p, x, 0, NULL);
}

static hlo_inst *spread32(const gen *g, hlo_inst *x)
{
    return hlo_make_spread(g->p, x, g->s32);
}

/* The row-major number of each counter, u64. */
static hlo_inst *numbers(const gen *g)
{
    int64_t n = sd_shape_count(g->s64);
    const sd_shape *flat = sd_shape_make(g->a, SD_U64, 1, &n);

    return pass_reshape(g->p, hlo_make_iota(g->p, flat, 0), g->s64->rank,
                        g->s64->dim);
}

/* ---- threefry ---- */

static hlo_inst *rotate(const gen *g, hlo_inst *x, int by)
{
    return t_or(g->p, with(g, HLO_SHL, x, by),
                with(g, HLO_SHR_LOGIC, x, 32 - by));
}

static void threefry(const gen *g, hlo_inst *x[2])
{
    static const int turn[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    hlo_inst *word = state_word(g, 0), *key[3];

    key[0] = low(g, word);
    key[1] = high(g, word);
    key[2] =
        with(g, HLO_XOR, t_binary(g->p, HLO_XOR, key[0], key[1]), 0x1BD11BDA);
    for (int i = 0; i < 3; i++)
        key[i] = spread32(g, key[i]);
    x[0] = t_add(g->p, x[0], key[0]);
    x[1] = t_add(g->p, x[1], key[1]);
    for (int r = 0; r < 5; r++) {
        for (int i = 0; i < 4; i++) {
            x[0] = t_add(g->p, x[0], x[1]);
            x[1] =
                t_binary(g->p, HLO_XOR, rotate(g, x[1], turn[r % 2][i]), x[0]);
        }
        x[0] = t_add(g->p, x[0], key[(r + 1) % 3]);
        x[1] = with(g, HLO_ADD, t_add(g->p, x[1], key[(r + 2) % 3]), r + 1);
    }
}

/* Which dimension two words are neighbours along; *half: its counters. */
static int pair_dim(const sd_shape *s, int64_t *half)
{
    int d = 0;

    for (int i = 0; i < s->rank; i++)
        if (s->dim[i] % 2 == 0) {
            *half = s->dim[i] / 2;
            return i;
        }
    for (int i = 1; i < s->rank; i++)
        if (s->dim[i] > s->dim[d])
            d = i;
    *half = (s->dim[d] + 1) / 2;
    return d;
}

/* [.., half, ..] twice -> [.., half, 2, ..] -> [.., n, ..] */
static hlo_inst *interleave(const gen *g, hlo_inst *x[2], int d,
                            const sd_shape *to)
{
    hlo_inst *part[2], *y;

    for (int i = 0; i < 2; i++)
        part[i] = hlo_make_split(g->p, x[i], d, g->s32->dim[d], 1);
    y = hlo_make_concatenate(g->p, 2, part, d + 1);
    y = hlo_make_join(g->p, y, d);
    return hlo_make_cut(g->p, y, d, 0, to->dim[d]);
}

static hlo_inst *threefry_bits(gen *g, const sd_shape *to, int64_t *used)
{
    int64_t dim[SD_MAX_RANK] = {0}, half = 0;
    bool wide = sd_dtype_table[to->dtype].bits == 64;
    int d = 0, rank = to->rank;
    hlo_inst *n, *x[2];

    if (rank)
        memcpy(dim, to->dim, sizeof *dim * (size_t)rank);
    if (!wide && rank) {
        d = pair_dim(to, &half);
        dim[d] = half;
    }
    g->s64 = sd_shape_make(g->a, SD_U64, rank, dim);
    g->s32 = sd_shape_make(g->a, SD_U32, rank, dim);
    *used = sd_shape_count(g->s64);
    n = rank ? numbers(g) : hlo_make_scalar_s64(g->p, SD_U64, 0);
    n = t_add(g->p, n, hlo_make_spread(g->p, state_word(g, 1), g->s64));
    x[0] = low(g, n);
    x[1] = high(g, n);
    threefry(g, x);
    if (wide)
        return join(g, x[0], x[1]);
    return rank ? interleave(g, x, d, to) : x[0];
}

/* ---- philox ---- */

static void multiply(const gen *g, hlo_inst *x, int64_t k, hlo_inst **hi,
                     hlo_inst **lo)
{
    hlo_inst *y = t_convert(g->p, SD_U64, x);

    y = with(g, HLO_MULTIPLY, y, k);
    *lo = low(g, y);
    *hi = high(g, y);
}

static void philox(const gen *g, hlo_inst *x[4])
{
    hlo_inst *word = state_word(g, 0), *k0, *k1, *h0, *l0, *h1, *l1;

    k0 = spread32(g, low(g, word));
    k1 = spread32(g, high(g, word));
    for (int r = 0; r < 10; r++) {
        multiply(g, x[0], 0xD2511F53, &h0, &l0);
        multiply(g, x[2], 0xCD9E8D57, &h1, &l1);
        x[0] = t_binary(g->p, HLO_XOR, t_binary(g->p, HLO_XOR, h1, x[1]), k0);
        x[1] = l1;
        x[2] = t_binary(g->p, HLO_XOR, t_binary(g->p, HLO_XOR, h0, x[3]), k1);
        x[3] = l0;
        k0 = with(g, HLO_ADD, k0, 0x9E3779B9);
        k1 = with(g, HLO_ADD, k1, 0xBB67AE85);
    }
}

static hlo_inst *philox_bits(gen *g, const sd_shape *to, int64_t *used)
{
    bool wide = sd_dtype_table[to->dtype].bits == 64;
    int64_t n = sd_shape_count(to), per = wide ? 2 : 4;
    int64_t blocks = (n + per - 1) / per, dim[2] = {blocks, 1};
    int64_t nstate = g->state->shape->dim[0];
    hlo_inst *lo, *hi, *base, *carry, *x[4], *y;

    g->s64 = sd_shape_make(g->a, SD_U64, 1, &blocks);
    g->s32 = sd_shape_make(g->a, SD_U32, 1, &blocks);
    *used = blocks;
    base = hlo_make_spread(g->p, state_word(g, 1), g->s64);
    hi = hlo_make_spread(g->p, state_word(g, nstate == 3 ? 2 : 0), g->s64);
    lo = t_add(g->p, numbers(g), base);
    carry = t_is(g->p, HLO_LT, lo, base);
    hi = t_add(g->p, hi, t_convert(g->p, SD_U64, carry));
    x[0] = low(g, lo);
    x[1] = high(g, lo);
    x[2] = low(g, hi);
    x[3] = high(g, hi);
    philox(g, x);
    if (wide) {
        x[0] = join(g, x[0], x[1]);
        x[1] = join(g, x[2], x[3]);
    }
    for (int i = 0; i < (int)per; i++)
        x[i] = hlo_make_reshape(g->p, x[i], 2, dim);
    y = hlo_make_concatenate(g->p, (int)per, x, 1);
    y = hlo_make_cut(g->p, hlo_make_join(g->p, y, 0), 0, 0, n);
    return pass_reshape(g->p, y, to->rank, to->dim);
}

/* ---- the op ---- */

/* The state with `used` added to its counter. */
static hlo_inst *next_state(const gen *g, bool is_philox, int64_t used)
{
    int64_t n = g->state->shape->dim[0], one = 1;
    hlo_inst *w[3], *old;

    for (int i = 0; i < (int)n; i++)
        w[i] = state_word(g, i);
    old = w[1];
    w[1] = with(g, HLO_ADD, old, used);
    if (is_philox && n == 3)
        w[2] = t_add(g->p, w[2],
                     t_convert(g->p, SD_U64, t_is(g->p, HLO_LT, w[1], old)));
    for (int i = 0; i < (int)n; i++)
        w[i] = hlo_make_reshape(g->p, w[i], 1, &one);
    return hlo_make_concatenate(g->p, (int)n, w, 0);
}

hlo_inst *hlo_lower_rng(hlo_inst *in)
{
    gen g = {pass_at(in), in->parent->module->arena, NULL, NULL, in->arg[0]};
    const sd_shape *st = in->arg[0]->shape, *out = in->shape->elem[1], *to;
    bool is_philox = in->u.rng.algo != HLO_RNG_THREEFRY;
    int bits = sd_dtype_table[out->dtype].bits;
    hlo_inst *x, *part[2];
    int64_t used;

    if (st->dtype != SD_U64 || st->rank != 1 || st->dim[0] < 2 ||
        st->dim[0] > (is_philox ? 3 : 2) || bits < 8 ||
        out->rank >= SD_MAX_RANK || !sd_is_int(out->dtype))
        return NULL;
    to = sd_shape_make(g.a, bits == 64 ? SD_U64 : SD_U32, out->rank, out->dim);
    x = is_philox ? philox_bits(&g, to, &used) : threefry_bits(&g, to, &used);
    part[0] = next_state(&g, is_philox, used);
    part[1] = pass_convert(g.p, out->dtype, x);
    return hlo_make_tuple(g.p, 2, part);
}
