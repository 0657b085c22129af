/* rng, numbers of a distribution, into rng-bit-generator and arithmetic.  The
 * op has no state, so it gets one: its number among the module's rng is the
 * key, the turn of the loops around it counts.  A program draws the same
 * numbers in each run.  In a function of elements it is left, and refused. */
#include "terms.h"

typedef struct {
    hlo_at p;
    const sd_shape *shape; /* the result's */
    sd_dtype work;         /* f32, f64: computed in it */
    int64_t key;           /* the next one */
    hlo_inst *turn;        /* of the loops around it, u64; NULL: in none */
} draw;

static hlo_inst *fill(const draw *d, double v)
{
    return hlo_make_fill(
        d->p, sd_shape_with(d->p.c->module->arena, d->shape, d->work), v);
}

/* Words of 64 bits: the key, the counter's low and, in loops, high half. */
static hlo_inst *state(draw *d)
{
    int64_t one = 1, two = 2;
    uint64_t word[2] = {(uint64_t)d->key++, 0};
    const sd_shape *s = sd_shape_make(d->p.c->module->arena, SD_U64, 1, &two);
    hlo_inst *part[2] = {hlo_make_constant(d->p, s, word)};

    if (!d->turn)
        return part[0];
    part[1] = hlo_make_reshape(d->p, d->turn, 1, &one);
    return hlo_make_concatenate(d->p, 2, part, 0);
}

/* Random words, u32 or u64. */
static hlo_inst *words(draw *d, sd_dtype t)
{
    sd_arena *a = d->p.c->module->arena;
    hlo_inst *in = state(d);
    const sd_shape *s[2] = {in->shape, sd_shape_with(a, d->shape, t)};

    in = hlo_inst_create(d->p.c, d->p.before, HLO_RNG_BIT_GENERATOR,
                         sd_shape_tuple(a, 2, s), 1, &in);
    in->u.rng.algo = HLO_RNG_PHILOX;
    return hlo_make_gte(d->p, in, 1);
}

/* In [0, 1), all digits of the type. */
static hlo_inst *unit(draw *d)
{
    bool wide = d->work == SD_F64;
    sd_dtype t = wide ? SD_U64 : SD_U32;
    hlo_inst *x = words(d, t);

    x = t_binary(d->p, HLO_SHR_LOGIC, x,
                 hlo_make_fill_s64(d->p, x->shape, t, wide ? 11 : 8));
    x = t_convert(d->p, d->work, x);
    return t_mul(d->p, x, fill(d, wide ? 0x1p-53 : 0x1p-24));
}

/* An operand, a scalar, over the result in the type worked in. */
static hlo_inst *spread(const draw *d, hlo_inst *x)
{
    return hlo_make_spread(d->p, pass_convert(d->p, d->work, x), d->shape);
}

/* Weights, so that no difference overflows.  What rounds up to the end, which
 * is not drawn, is the beginning. */
static hlo_inst *uniform_float(draw *d, hlo_inst *low, hlo_inst *high)
{
    hlo_inst *u = unit(d), *from = spread(d, low), *x;
    hlo_inst *rest = t_sub(d->p, fill(d, 1), u);

    x = t_add(d->p, t_mul(d->p, from, rest), t_mul(d->p, spread(d, high), u));
    x = t_binary(d->p, HLO_MAXIMUM, x, from);
    x = pass_convert(d->p, d->shape->dtype, x);
    low = hlo_make_spread(d->p, low, d->shape);
    high = hlo_make_spread(d->p, high, d->shape);
    return t_pick(d->p, t_is(d->p, HLO_LT, x, high), x, low);
}

/* Box and Muller's. */
static hlo_inst *normal(draw *d, hlo_inst *mean, hlo_inst *deviation)
{
    const double turn = 6.283185307179586476925;
    hlo_inst *r = t_sub(d->p, fill(d, 1), unit(d)), *x;

    r = t_unary(d->p, HLO_LOG, r);
    r = t_unary(d->p, HLO_SQRT, t_mul(d->p, r, fill(d, -2)));
    x = t_mul(d->p, unit(d), fill(d, turn));
    x = t_mul(d->p, r, t_unary(d->p, HLO_COS, x));
    x = t_mul(d->p, x, spread(d, deviation));
    x = t_add(d->p, x, spread(d, mean));
    return pass_convert(d->p, d->shape->dtype, x);
}

/* The bits of x as a word; of narrow signed ones the sign is spread. */
static hlo_inst *as_word(const draw *d, hlo_inst *x, sd_dtype word)
{
    sd_dtype t = pass_dtype(x), same = word == SD_U64 ? SD_S64 : SD_S32;

    if (!sd_is_signed(t))
        return pass_convert(d->p, word, x);
    x = pass_convert(d->p, same, x);
    return t_bitcast(d->p, word, x);
}

/* low + word % (high - low), in words: the difference may not fit the type. */
static hlo_inst *uniform_whole(draw *d, hlo_inst *low, hlo_inst *high)
{
    sd_dtype t = d->shape->dtype;
    sd_dtype word = sd_dtype_table[t].bits == 64 ? SD_U64 : SD_U32;
    hlo_inst *some = t_is(d->p, HLO_LT, low, high), *x;
    hlo_inst *from = as_word(d, low, word), *room;

    room = t_sub(d->p, as_word(d, high, word), from);
    room = t_pick(d->p, some, room, hlo_make_scalar_s64(d->p, word, 1));
    x = t_binary(d->p, HLO_REMAINDER, words(d, word),
                 hlo_make_spread(d->p, room, d->shape));
    x = t_add(d->p, x, hlo_make_spread(d->p, from, d->shape));
    if (sd_is_signed(t))
        x = t_bitcast(d->p, word == SD_U64 ? SD_S64 : SD_S32, x);
    return pass_convert(d->p, t, x);
}

static void lower_distribution(hlo_inst *in, hlo_inst *turn, void *ctx)
{
    enum { KEYS = 2 }; /* that one rng takes */
    int64_t *key = ctx;
    draw d = {pass_at(in), in->shape, SD_F32, *key, turn};
    hlo_inst *x;

    if (pass_dtype(in) == SD_F64)
        d.work = SD_F64;
    if (in->u.rng.distribution == HLO_RNG_NORMAL)
        x = normal(&d, in->arg[0], in->arg[1]);
    else if (sd_is_float(pass_dtype(in)))
        x = uniform_float(&d, in->arg[0], in->arg[1]);
    else
        x = uniform_whole(&d, in->arg[0], in->arg[1]);
    pass_replace(in, x);
    *key += KEYS;
}

bool hlo_lower_distribution(hlo_module *m)
{
    int64_t key = 0;

    return pass_for_each_draw(m, lower_distribution, &key);
}
