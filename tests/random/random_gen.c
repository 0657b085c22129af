/* The generator's core: numbers, types, shapes, the pool of values and how an
 * operand is found or made. */
#include "random.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_ELEMENTS = 1500, MOST_PARAMS = 8 };

uint64_t random_next(random_gen *g)
{
    uint64_t z = (g->state += 0x9e3779b97f4a7c15u); /* splitmix64 */

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t random_below(random_gen *g, int64_t n)
{
    return (int64_t)(random_next(g) % (uint64_t)n);
}

bool random_chance(random_gen *g, int percent)
{
    return random_below(g, 100) < percent;
}

/* ---- types ---- */

random_type random_type_of(sd_dtype t)
{
    static const random_type floats[SD_DTYPE_COUNT] = {
        [SD_F4E2M1FN] = {4, 6, 0x1p-1, 0.5, 2},
        [SD_F6E2M3FN] = {7, 7.5, 0x1p-3, 0x1p-3, 2},
        [SD_F6E3M2FN] = {8, 28, 0x1p-2, 0x1p-4, 4},
        [SD_F8E3M4] = {15, 15.5, 0x1p-4, 0x1p-6, 4},
        [SD_F8E4M3] = {16, 240, 0x1p-3, 0x1p-9, 4},
        [SD_F8E4M3FN] = {16, 448, 0x1p-3, 0x1p-9, 4},
        [SD_F8E4M3B11FNUZ] = {16, 30, 0x1p-3, 0x1p-13, 4},
        [SD_F8E4M3FNUZ] = {16, 240, 0x1p-3, 0x1p-10, 4},
        [SD_F8E5M2] = {8, 57344, 0x1p-2, 0x1p-16, 4},
        [SD_F8E5M2FNUZ] = {8, 57344, 0x1p-2, 0x1p-17, 4},
        [SD_F8E8M0FNU] = {2, 0x1p127, 0.5, 0x1p-127, 2},
        [SD_BF16] = {256, 3e38, 0x1p-7, 1e-38, 4},
        [SD_F16] = {2048, 65504, 0x1p-10, 6e-8, 4},
        [SD_F32] = {0x1p24, 3e38, 0x1p-23, 1e-37, 4},
        [SD_F64] = {0x1p53, 1e308, 0x1p-52, 1e-300, 4},
    };
    sd_dtype part = sd_dtype_part(t);
    int bits = sd_dtype_table[t].bits;
    double most;

    if (sd_dtype_kind(part) == SD_K_FLOAT)
        return floats[part];
    most =
        sd_dtype_kind(t) == SD_K_SINT ? ldexp(1, bits - 1) : ldexp(1, bits) - 1;
    return (random_type){most, most, 0, 0, SD_MIN(most, 4.0)};
}

sd_dtype random_dtype(random_gen *g, int kinds)
{
    static const sd_dtype usual[] = {SD_F32,  SD_F32, SD_F32,  SD_S32, SD_S32,
                                     SD_PRED, SD_F64, SD_BF16, SD_F16, SD_U8,
                                     SD_U32,  SD_S64, SD_C64,  SD_S8};

    for (;;) {
        sd_dtype t = random_chance(g, 70)
                         ? usual[random_below(g, SD_COUNTOF(usual))]
                         : (sd_dtype)random_below(g, SD_TUPLE);

        if (hlo_type_bit(t) & kinds)
            return t;
    }
}

random_fact random_exact_int(sd_dtype t)
{
    return (random_fact){random_type_of(t).most, 0, true, true};
}

/* ---- shapes ---- */

const sd_shape *random_dims(random_gen *g, sd_dtype t, int rank,
                            const int64_t *dim)
{
    return sd_shape_make(g->a, t, rank, dim);
}

/* Up to rank 8 and 2^46 bytes, and of one in five nothing. */
static const sd_shape *odd_shape(random_gen *g, sd_dtype t)
{
    static const int64_t extents[] = {1,    1,    2,     3,       4,        7,
                                      8,    16,   17,    31,      33,       128,
                                      1000, 4096, 65536, 1 << 20, INT32_MAX};
    int64_t most = (INT64_C(1) << 46) / (int64_t)sd_dtype_bytes(t), dim[8];
    int rank = (int)random_below(g, random_chance(g, 30) ? 9 : 4);
    bool empty = random_chance(g, 20);

    for (int i = 0; i < rank; i++) {
        do
            dim[i] = extents[random_below(g, SD_COUNTOF(extents))];
        while (dim[i] > most);
        most /= dim[i];
    }
    if (rank && empty)
        dim[random_below(g, rank)] = 0;
    return random_dims(g, t, rank, dim);
}

static const sd_shape *fresh_shape(random_gen *g, sd_dtype t)
{
    static const int64_t extents[] = {1, 2, 2,  3,  3,  4,  5,  7,
                                      8, 9, 13, 16, 17, 31, 33, 65};
    static const int64_t even[] = {2, 4, 8, 12};
    int rank = random_chance(g, 4)    ? 5 + (int)random_below(g, 4)
               : random_chance(g, 15) ? 0
                                      : 1 + (int)random_below(g, 4);
    int64_t dim[8], n = 1;

    if (g->odd)
        return odd_shape(g, t);
    for (int i = 0; i < rank; i++) {
        dim[i] = random_chance(g, 1) ? 0
                 : g->even ? even[random_below(g, rank > 3 ? 2 : 4)]
                           : extents[random_below(g, rank > 4 ? 5 : 16)];
        while (n * dim[i] > MOST_ELEMENTS)
            dim[i] /= 2;
        n *= SD_MAX(dim[i], 1);
    }
    return random_dims(g, t, rank, dim);
}

const sd_shape *random_shape(random_gen *g, sd_dtype t)
{
    if (g->scalars)
        return random_dims(g, t, 0, NULL);
    if (g->npool && random_chance(g, 60)) {
        const sd_shape *s = g->pool[random_below(g, g->npool)]->shape;

        return random_dims(g, t, s->rank, s->dim);
    }
    return fresh_shape(g, t);
}

/* ---- what is known ---- */

random_fact *random_fact_of(const hlo_inst *in)
{
    return in->tag;
}

random_fact random_worst(int n, hlo_inst *const *x)
{
    random_fact f = {0, 0, true, true};

    for (int i = 0; i < n; i++) {
        const random_fact *o = random_fact_of(x[i]);

        f.bound = fmax(f.bound, o->bound);
        f.error = fmax(f.error, o->error);
        f.whole = f.whole && o->whole;
        f.bits = f.bits && o->bits;
    }
    return f;
}

hlo_inst *random_keep(random_gen *g, hlo_inst *in, random_fact f)
{
    sd_dtype t = in->shape->dtype;
    random_fact *kept = sd_arena_new(g->a, random_fact);

    if (t != SD_TUPLE && sd_dtype_kind(sd_dtype_part(t)) != SD_K_FLOAT) {
        assert(f.error == 0);
        f.whole = f.bits = true; /* integers have no other kind */
        f.bound = fmin(f.bound, random_type_of(t).most);
    }
    *kept = f;
    in->tag = kept;
    if (sd_shape_is_array(in->shape) && g->npool < (int)SD_COUNTOF(g->pool))
        g->pool[g->npool++] = in;
    return in;
}

static bool fits(const hlo_inst *in, random_need need)
{
    const random_fact *f = random_fact_of(in);

    return f->bound <= need.bound && (!need.exact || f->error == 0) &&
           (!need.whole || f->whole);
}

hlo_at random_at(random_gen *g)
{
    return (hlo_at){.c = g->c};
}

hlo_inst *random_inst(random_gen *g, hlo_op op, const sd_shape *s, int narg,
                      hlo_inst *const *arg)
{
    return hlo_inst_create(g->c, NULL, op, s, narg, arg);
}

void random_infer(random_gen *g, hlo_inst *in)
{
    const sd_shape *s;
    sd_status st = hlo_infer(g->m, in, &s);

    if (st && g->odd) /* too large: back to random_odd_module */
        sd_oom(0);
    if (st) {
        fprintf(stderr, "the generator made what is refused: %s\n",
                st->message);
        abort();
    }
    in->shape = s;
}

/* ---- new values ---- */

static void fill_small(random_gen *g, const sd_shape *s, double bound,
                       uint8_t *to)
{
    sd_dtype t = sd_dtype_part(s->dtype);
    int64_t n = sd_shape_count(s) * (t == s->dtype ? 1 : 2);
    int64_t top = (int64_t)SD_MIN(random_type_of(t).most, 0x1p62);
    int64_t most = (int64_t)SD_MIN(bound, 0x1p62);
    bool unsign = sd_dtype_kind(t) == SD_K_UINT || t == SD_PRED;

    for (int64_t i = 0; i < n; i++) {
        uint8_t *at = to + (size_t)i * sd_dtype_bytes(t);
        int64_t v = unsign ? random_below(g, most + 1)
                           : random_below(g, 2 * most + 1) - most;

        if (t == SD_F8E8M0FNU)
            sd_scalar_of_f64(t, (double)(INT64_C(1) << (v < 0 ? 0 : v)), at);
        else if (sd_dtype_kind(t) == SD_K_FLOAT)
            sd_scalar_of_f64(t, (double)v, at);
        else
            sd_scalar_of_s64(t, SD_MIN(v, unsign ? top : top - 1), at);
    }
}

static hlo_inst *constant(random_gen *g, const sd_shape *s, double bound)
{
    void *data = sd_arena_alloc(g->a, sd_shape_bytes(s) + 1);

    fill_small(g, s, bound, data);
    return hlo_make_constant(random_at(g), s, data);
}

/* A parameter of the entry; elsewhere a constant, or one spread out. */
hlo_inst *random_new(random_gen *g, const sd_shape *s, random_need need)
{
    static const char *const names[] = {"small", "wide", "wild"};
    random_type t = random_type_of(s->dtype);
    bool is_float = random_is_float(s->dtype);
    int kind = need.whole || random_chance(g, 70) ? 0 : is_float ? 2 : 1;
    double bound = fmin(t.small, need.bound);
    random_fact f = {fmax(bound, 1), 0, true, true};
    int64_t one = 0;

    if (g->c == g->m->entry && !g->scalars && bound == t.small &&
        g->c->nparam < MOST_PARAMS) {
        if (kind == 1)
            f.bound = t.most;
        if (kind == 2)
            f = (random_fact){INFINITY, 0, false, true};
        if (f.bound <= need.bound)
            return random_keep(g, hlo_make_param(g->c, s, names[kind]), f);
        f = (random_fact){bound, 0, true, true};
        return random_keep(g, hlo_make_param(g->c, s, names[0]), f);
    }
    if (sd_shape_count(s) <= 16 && random_chance(g, 60))
        return random_keep(g, constant(g, s, bound), f);
    if (s->rank)
        one = random_below(g, s->rank);
    if (s->rank == 0 || s->dim[one] > 64)
        return random_keep(
            g,
            hlo_make_broadcast(
                random_at(g),
                constant(g, random_dims(g, s->dtype, 0, NULL), bound), s, NULL,
                0),
            f);
    return random_keep(
        g,
        hlo_make_broadcast(
            random_at(g),
            constant(g, random_dims(g, s->dtype, 1, &s->dim[one]), bound), s,
            &one, 1),
        f);
}

/* ---- operands ---- */

/* Other dimensions, the same type. */
static hlo_inst *reshaped(random_gen *g, hlo_inst *x, const sd_shape *s)
{
    random_fact f = *random_fact_of(x);

    if (x->shape->rank == 0)
        x = hlo_make_broadcast(random_at(g), x, s, NULL, 0);
    else
        x = hlo_make_reshape(random_at(g), x, s->rank, s->dim);
    return random_keep(g, x, f);
}

/* Clamped to what is needed; floats go through integers, which loses NaN. */
static hlo_inst *tamed(random_gen *g, hlo_inst *x, random_need need)
{
    const sd_shape *s = x->shape;
    sd_kind kind = sd_dtype_kind(s->dtype);
    double most = floor(fmin(need.bound, random_type_of(s->dtype).small));
    hlo_at at = random_at(g);
    hlo_inst *arg[3], *y = x;
    sd_dtype t = kind == SD_K_FLOAT ? SD_S32 : s->dtype;

    if (kind == SD_K_PRED || kind == SD_K_COMPLEX || most < 1 ||
        s->dtype == SD_F8E8M0FNU)
        return NULL;
    if (t != s->dtype)
        y = hlo_make_convert(at, t, y);
    if (t == SD_S2)
        most = 1;
    arg[0] = hlo_make_scalar_s64(
        at, t, sd_dtype_kind(t) == SD_K_UINT ? 0 : -(int64_t)most);
    arg[1] = y;
    arg[2] = hlo_make_scalar_s64(at, t, (int64_t)most);
    y = random_inst(g, HLO_CLAMP, random_dims(g, t, s->rank, s->dim), 3, arg);
    if (t != s->dtype)
        y = hlo_make_convert(at, s->dtype, y);
    return random_keep(g, y, (random_fact){most, 0, true, true});
}

/* x as it must be, or NULL. */
static hlo_inst *adapted(random_gen *g, hlo_inst *x, const sd_shape *s,
                         random_need need)
{
    const sd_shape *from = x->shape;
    bool same = sd_shape_same_dims(from, s);

    if (!same && from->rank && sd_shape_count(from) != sd_shape_count(s))
        return NULL;
    if (g->scalars && !same)
        return NULL;
    if (from->dtype != s->dtype)
        return NULL;
    if (!fits(x, need)) {
        if (random_fact_of(x)->error > 0 || !(x = tamed(g, x, need)))
            return NULL;
    }
    return same ? x : reshaped(g, x, s);
}

hlo_inst *random_want(random_gen *g, const sd_shape *s, random_need need)
{
    for (int i = 0; g->npool && i < 24 && !random_chance(g, 6); i++) {
        hlo_inst *x = adapted(g, g->pool[random_below(g, g->npool)], s, need);

        if (x)
            return x;
    }
    return random_new(g, s, need);
}

hlo_inst *random_pick(random_gen *g, int kinds, random_need need)
{
    sd_dtype t = random_dtype(g, kinds);

    for (int i = 0; g->npool && i < 12; i++) {
        hlo_inst *x = g->pool[random_below(g, g->npool)];

        if (random_dtype(g, kinds) == x->shape->dtype && fits(x, need))
            return x;
    }
    return random_want(g, random_shape(g, t), need);
}

/* An index scalar, mostly within [0, n]. */
hlo_inst *random_index(random_gen *g, sd_dtype t, int64_t n)
{
    const sd_shape *s = random_dims(g, t, 0, NULL);
    int64_t most = sd_dtype_kind(t) == SD_K_SINT
                       ? INT64_MAX >> (64 - sd_dtype_table[t].bits)
                       : INT64_MAX;

    if (random_chance(g, 50))
        return random_want(g, s, (random_need){INFINITY, true, true});
    if (sd_dtype_table[t].bits < 8)
        most = 1;
    return random_keep(
        g,
        hlo_make_scalar_s64(random_at(g), t,
                            SD_MIN(random_below(g, n + 2), most)),
        random_exact_int(t));
}

hlo_comp *random_scalar_body(random_gen *g, sd_dtype t, hlo_op op)
{
    return hlo_scalar_comp(g->m, op, t);
}

/* ---- programs ---- */

static const struct {
    random_maker make;
    int weight;
} makers[] = {
#define MAKER(id, weight) {random_make_##id, weight},
#include "random_makers.def"
#undef MAKER
};

/* The makers up to complex are elementwise. */
static bool is_elementwise(size_t i)
{
    return makers[i].make != random_make_broadcast &&
           (i == 0 || is_elementwise(i - 1));
}

void random_steps(random_gen *g, int n)
{
    int total = 0;
    size_t count = 0;

    while (count < SD_COUNTOF(makers) && (!g->scalars || is_elementwise(count)))
        total += makers[count++].weight;
    while (n-- > 0) {
        int64_t k = random_below(g, total);
        size_t i = 0;

        while (k >= makers[i].weight)
            k -= makers[i++].weight;
        makers[i].make(g);
    }
}

/* Some values have a layout of their own, which changes nothing. */
static void permute_layouts(random_gen *g)
{
    hlo_for_each_inst(in, g->m->entry) {
        sd_shape *s;
        int64_t *layout;
        int rank = in->shape->rank;

        if (rank < 2 || !random_chance(g, 5))
            continue;
        s = sd_arena_new(g->a, sd_shape);
        *s = *in->shape;
        s->layout = layout = sd_arena_array(g->a, int64_t, rank);
        for (int i = 0; i < rank; i++)
            layout[i] = i;
        for (int i = rank - 1; i > 0; i--) {
            int64_t k = random_below(g, i + 1), x = layout[i];

            layout[i] = layout[k];
            layout[k] = x;
        }
        in->shape = s;
    }
}

static void set_root(random_gen *g, sd_buf *text)
{
    enum { MOST = 8 };
    hlo_inst *out[MOST];
    int n = 0;

    for (int i = g->npool - 1; i >= 0 && n < MOST; i--)
        if (g->pool[i]->nuse == 0 && g->pool[i]->op != HLO_PARAMETER)
            out[n++] = g->pool[i];
    if (!n)
        out[n++] = g->pool[g->npool - 1];
    sd_buf_str(text, "// error:");
    for (int i = 0; i < n; i++)
        sd_buf_fmt(text, " %.3g", random_fact_of(out[i])->error);
    sd_buf_str(text, "\n");
    if (n == 1 && random_chance(g, 50))
        hlo_set_root(g->c, out[0]);
    else
        hlo_set_root(g->c, hlo_make_tuple(random_at(g), n, out));
}

static hlo_module *make_module(random_gen g, sd_buf *text)
{
    g.m = hlo_module_create(g.a, "random");
    g.c = g.m->entry = hlo_comp_create(g.m, "main");
    for (int i = 1 + (int)random_below(&g, 3); i > 0; i--)
        random_new(&g, fresh_shape(&g, random_dtype(&g, HLO_T_ANY)),
                   (random_need){INFINITY, false, false});
    random_steps(&g, 4 + (int)random_below(&g, 22));
    set_root(&g, text);
    permute_layouts(&g);
    hlo_print(text, g.m);
    return g.m;
}

hlo_module *random_module(sd_arena *a, uint64_t seed, sd_buf *text)
{
    return make_module((random_gen){.state = seed, .a = a}, text);
}

hlo_module *random_even_module(sd_arena *a, uint64_t seed, sd_buf *text)
{
    return make_module((random_gen){.state = seed, .a = a, .even = true}, text);
}

typedef struct {
    random_gen g;
    sd_buf *text;
    hlo_module *m;
} odd_job;

static sd_status make_odd(void *ctx)
{
    odd_job *j = ctx;

    j->m = make_module(j->g, j->text);
    return NULL;
}

/* Of the first seed from there on of which nothing is refused. */
hlo_module *random_odd_module(sd_arena *a, uint64_t seed, sd_buf *text)
{
    odd_job j = {{.state = seed, .a = a, .odd = true}, text, NULL};
    sd_status st;

    while ((st = sd_catch_oom(make_odd, &j))) {
        sd_status_free(st);
        j.g.state++;
    }
    return j.m;
}
