/* Random programs for a matrix engine.  What a seed draws stays: a program that
 * was wrong is asked for again by its seed. */
#include "engine_programs.h"

#include <string.h>

static int draw(uint64_t *seed, int least, int most)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return least + (int)(*seed >> 33) % (most - least + 1);
}

/* Half of all are multiples of 8, which messages that read matrices want. */
static int draw_extent(uint64_t *s, int least, int most)
{
    int n = draw(s, least, most);

    return draw(s, 0, 1) ? n : SD_MAX(n & -8, least);
}

/* What uses a result of that shape: a number each, of the last dimension. */
static const char *write_end(sd_arena *a, const char *sum, const char *dims,
                             int last)
{
    return sd_arena_fmt(a,
                        " w = %s[%s] broadcast(b), dimensions={%d}\n"
                        " ROOT r = %s[%s] add(d, w)\n}\n",
                        sum, dims, last, sum, dims);
}

static const char *write_begin(sd_arena *a, const char *of, const char *sum,
                               const char *x, const char *y, int n, int twice)
{
    return sd_arena_fmt(a,
                        "HloModule m\nENTRY e {\n x = %s[%s] parameter(0)\n"
                        " y = %s[%s] parameter(1)\n b = %s[%d] parameter(2)\n"
                        " z = %s[%s] %s\n",
                        of, x, of, y, sum, n, of, y,
                        twice ? "add(y, y)" : "copy(y)");
}

/* Matrices of up to 3 batches, either way up. */
static const char *draw_product(sd_arena *a, uint64_t *s, const char *of,
                                const char *sum, int64_t *terms)
{
    int b = draw(s, 1, 3), m = draw(s, 16, 140), n = draw_extent(s, 16, 140),
        k = draw_extent(s, 16, 140);
    int x = draw(s, 0, 1), y = draw(s, 0, 1), twice = draw(s, 0, 1);
    const char *result = sd_arena_fmt(a, "%d,%d,%d", b, m, n);

    *terms = k;
    return sd_arena_fmt(
        a,
        "%s d = %s[%s] dot(x, z), lhs_batch_dims={0}, rhs_batch_dims={0}, "
        "lhs_contracting_dims={%d}, rhs_contracting_dims={%d}\n%s",
        write_begin(
            a, of, sum, sd_arena_fmt(a, "%d,%d,%d", b, x ? k : m, x ? m : k),
            sd_arena_fmt(a, "%d,%d,%d", b, y ? n : k, y ? k : n), n, twice),
        sum, result, x ? 1 : 2, y ? 2 : 1, write_end(a, sum, result, 2));
}

/* One dimension of a window, and how many places it has. */
typedef struct {
    int size, stride, low, high, apart, holes, back;
    int places;
} window;

static int places_of(const window *w, int extent)
{
    extent = (extent - 1) * w->holes + 1 + w->low + w->high;
    return (extent - (w->size - 1) * w->apart - 1) / w->stride + 1;
}

static window draw_window(uint64_t *s, int extent)
{
    window w = {.size = draw(s, 1, 4), .stride = draw(s, 1, 3)};

    w.low = draw(s, 0, 2);
    w.high = draw(s, 0, 2);
    w.apart = draw(s, 1, 2);
    w.holes = draw(s, 0, 3) ? 1 : 2;
    w.back = !draw(s, 0, 3);
    if (draw(s, 0, 1)) /* as most people's */
        w.stride = w.apart = w.holes = 1;
    while ((w.places = places_of(&w, extent)) < 1)
        w.size--;
    return w;
}

static const char *write_window(sd_arena *a, const window *v, const window *u)
{
    return sd_arena_fmt(a,
                        "size=%dx%d stride=%dx%d pad=%d_%dx%d_%d "
                        "lhs_dilate=%dx%d rhs_dilate=%dx%d rhs_reversal=%dx%d",
                        v->size, u->size, v->stride, u->stride, v->low, v->high,
                        u->low, u->high, v->holes, u->holes, v->apart, u->apart,
                        v->back, u->back);
}

/* Sizes are given in the order of these letters. */
static const char x_letters[] = "bf01", y_letters[] = "oi01";

typedef struct {
    const char *const *labels; /* of x, y and the result */
    int x[4], y[4], r[4], groups;
    window v, u;
} convolution;

static const char *write_dims(sd_arena *a, const char *labels,
                              const char *letters, const int *size)
{
    const char *dims = "";

    for (int i = 0; i < 4; i++)
        dims = sd_arena_fmt(a, "%s%s%d", dims, i ? "," : "",
                            size[strchr(letters, labels[i]) - letters]);
    return dims;
}

static const char *write_convolution(sd_arena *a, const convolution *c,
                                     const char *of, const char *sum,
                                     bool twice, int64_t *terms)
{
    const char *x = c->labels[0], *y = c->labels[1], *r = c->labels[2];
    const char *result = write_dims(a, r, x_letters, c->r);

    *terms = (int64_t)c->y[1] * c->y[2] * c->y[3];
    return sd_arena_fmt(
        a,
        "%s d = %s[%s] convolution(x, z), window={%s}, dim_labels=%s_%s->%s, "
        "feature_group_count=%d\n%s",
        write_begin(a, of, sum, write_dims(a, x, x_letters, c->x),
                    write_dims(a, y, y_letters, c->y), c->r[1], twice),
        sum, result, write_window(a, &c->v, &c->u), x, y, r, c->groups,
        write_end(a, sum, result, (int)(strchr(r, 'f') - r)));
}

/* Images with features first, last or elsewhere, in one group or several; half
 * of all have as many as the engine takes at once, or a few times that. */
static convolution draw_forward(uint64_t *s)
{
    static const char *const labels[][3] = {{"b01f", "01io", "b01f"},
                                            {"bf01", "oi01", "bf01"},
                                            {"b01f", "o01i", "b01f"},
                                            {"b01f", "01oi", "bf01"},
                                            {"01bf", "01io", "01bf"}};
    int deep = draw(s, 0, 1), b = draw(s, 1, 3), h = draw(s, 5, 20),
        w = draw(s, 0, 4) ? draw_extent(s, 5, 40) : draw(s, 41, 150),
        o = draw_extent(s, 16, 48),
        i = deep ? 16 * draw(s, 1, 4) : draw_extent(s, 3, 80);
    convolution c = {.labels = labels[SD_MAX(draw(s, -2, 4), 0)],
                     .groups = SD_MAX(draw(s, -4, 4), 1)};

    c.v = draw_window(s, h);
    c.u = draw_window(s, w);
    memcpy(c.x, (int[]){b, c.groups * i, h, w}, sizeof c.x);
    memcpy(c.y, (int[]){c.groups * o, i, c.v.size, c.u.size}, sizeof c.y);
    memcpy(c.r, (int[]){b, c.groups * o, c.v.places, c.u.places}, sizeof c.r);
    return c;
}

/* The window that gives w's gradient: as large as the result, with holes of its
 * strides. */
static window window_back(const window *w, int extent)
{
    window of = {.size = w->places,
                 .stride = w->apart,
                 .low = w->low,
                 .high = w->high,
                 .apart = w->stride,
                 .holes = 1};

    of.places = places_of(&of, extent);
    return of;
}

/* As JAX writes the gradient of a window: images are what is added up. */
static convolution draw_gradient(uint64_t *s)
{
    static const char *const labels[][3] = {{"f01b", "i01o", "01bf"},
                                            {"fb01", "io01", "bf01"}};
    int b = draw(s, 1, 3), h = draw(s, 5, 12), w = draw_extent(s, 5, 20),
        i = draw_extent(s, 16, 48), o = draw_extent(s, 16, 48);
    convolution c = {.labels = labels[draw(s, 0, 1)], .groups = 1};
    window v = draw_window(s, h), u = draw_window(s, w);

    v.holes = u.holes = 1;
    v.places = places_of(&v, h);
    u.places = places_of(&u, w);
    c.v = window_back(&v, h);
    c.u = window_back(&u, w);
    memcpy(c.x, (int[]){i, b, h, w}, sizeof c.x);
    memcpy(c.y, (int[]){o, b, v.places, u.places}, sizeof c.y);
    memcpy(c.r, (int[]){i, o, c.v.places, c.u.places}, sizeof c.r);
    return c;
}

/* Weights are a softmax of products, of all keys or of those that are not
 * behind the query; rounded to the operands' type they are multiplied again. */
static const char *draw_attention(sd_arena *a, uint64_t *s, const char *of,
                                  int64_t *terms)
{
    int b = draw(s, 1, 3), t = draw(s, 16, 140), n = draw_extent(s, 16, 140),
        d = draw_extent(s, 16, 80), causal = draw(s, 0, 1);
    const char *all = sd_arena_fmt(a, "%d,%d,%d", b, t, n);

    *terms = n;
    return sd_arena_fmt(
        a,
        "HloModule m\n"
        "most { a = f32[] parameter(0) b = f32[] parameter(1)"
        " ROOT r = f32[] maximum(a, b) }\n"
        "sum { a = f32[] parameter(0) b = f32[] parameter(1)"
        " ROOT r = f32[] add(a, b) }\n"
        "ENTRY e {\n x = %s[%d,%d,%d] parameter(0)\n"
        " y = %s[%d,%d,%d] parameter(1)\n b = %s[%d,%d,%d] parameter(2)\n"
        " d = f32[%s] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={2}\n"
        " q = s32[%s] iota(), iota_dimension=1\n"
        " k = s32[%s] iota(), iota_dimension=2\n"
        " seen = pred[%s] compare(%s, k), direction=GE\n"
        " none = f32[] constant(-1e30)\n"
        " nones = f32[%s] broadcast(none), dimensions={}\n"
        " w = f32[%s] select(seen, d, nones)\n"
        " l = f32[] constant(-inf)\n zero = f32[] constant(0)\n"
        " m = f32[%d,%d] reduce(w, l), dimensions={2}, to_apply=most\n"
        " ms = f32[%s] broadcast(m), dimensions={0,1}\n"
        " f = f32[%s] subtract(w, ms)\n g = f32[%s] exponential(f)\n"
        " h = f32[%d,%d] reduce(g, zero), dimensions={2}, to_apply=sum\n"
        " hs = f32[%s] broadcast(h), dimensions={0,1}\n"
        " i = f32[%s] divide(g, hs)\n p = %s[%s] convert(i)\n"
        " ROOT r = f32[%d,%d,%d] dot(p, b), lhs_batch_dims={0}, "
        "rhs_batch_dims={0}, lhs_contracting_dims={2}, "
        "rhs_contracting_dims={1}\n}\n",
        of, b, t, d, of, b, n, d, of, b, n, d, all, all, all, all,
        causal ? "q" : "k", all, all, b, t, all, all, all, b, t, all, all, of,
        all, b, t, d);
}

static const char *draw_kind(sd_arena *a, uint64_t *s, engine_program *p)
{
    static const char *const type[][2] = {
        {"bf16", "f32"}, {"f16", "f32"}, {"s8", "s32"}, {"u8", "s32"}};
    int t = draw(s, 0, p->kind == ENGINE_ATTENTION ? 1 : 3);

    if (p->kind == ENGINE_PRODUCT)
        return draw_product(a, s, type[t][0], type[t][1], &p->terms);
    if (p->kind == ENGINE_CONVOLUTION) {
        convolution c = draw(s, 0, 4) ? draw_forward(s) : draw_gradient(s);

        return write_convolution(a, &c, type[t][0], type[t][1], !draw(s, 0, 2),
                                 &p->terms);
    }
    p->slack = t ? 0x1p-10 : 0x1p-7;
    p->unsigned_from = 2;
    return draw_attention(a, s, type[t][0], &p->terms);
}

/* Three of seven are products, three convolutions. */
engine_program engine_program_drawn(sd_arena *a, uint64_t seed)
{
    uint64_t s = seed * 0x9e3779b97f4a7c15u;
    int of = draw(&s, 0, 6);
    engine_program p = {.seed = seed,
                        .any = true,
                        .kind = of < 3   ? ENGINE_PRODUCT
                                : of < 6 ? ENGINE_CONVOLUTION
                                         : ENGINE_ATTENTION};

    p.text = draw_kind(a, &s, &p);
    p.copied = draw(&s, 0, 1);
    p.name = sd_arena_fmt(a, "program %" PRIu64 "%s:\n%s", seed,
                          p.copied ? ", operands copied" : "", p.text);
    return p;
}

/* ---- written programs ---- */

/* What uses the sums reads a row of its own, too, if they are floats. */
const char *engine_product_text(sd_arena *a, const engine_product *p)
{
    const char *dims[2], *x = p->of, *s = p->sum;

    dims[0] = p->x_turned ? sd_arena_fmt(a, "%d,%d", p->k, p->m)
                          : sd_arena_fmt(a, "%d,%d", p->m, p->k);
    dims[1] = p->y_turned ? sd_arena_fmt(a, "%d,%d", p->n, p->k)
                          : sd_arena_fmt(a, "%d,%d", p->k, p->n);
    return sd_arena_fmt(a,
                        "HloModule m\nENTRY e {\n x = %s[%s] parameter(0)\n"
                        " y = %s[%s] parameter(1)\n b = %s[%d] parameter(2)\n"
                        " d = %s[%d,%d] dot(x, y), lhs_contracting_dims={%d}, "
                        "rhs_contracting_dims={%d}\n"
                        " w = %s[%d,%d] broadcast(b), dimensions={1}\n"
                        " ROOT r = %s[%d,%d] add(d, w)\n}\n",
                        x, dims[0], x, dims[1], s, p->n, s, p->m, p->n,
                        !p->x_turned, p->y_turned, s, p->m, p->n, s, p->m,
                        p->n);
}

/* Rows see keys up to row + ahead; 0: all.  Of q one row is `spoilt`, or NULL.
 */
typedef struct {
    const char *of, *to;
    int batch, heads, shared, rows, keys, d, e, ahead;
    const char *masked, *spoilt;
    bool bias;
} attention;

/* q, of which that row is a number over and over. */
static const char *write_q(sd_arena *a, const attention *p, const char *dims)
{
    if (!p->spoilt)
        return sd_arena_fmt(a, " q = %s[%s] copy(x)\n", p->of, dims);
    return sd_arena_fmt(a,
                        " at = s32[%s] iota(), iota_dimension=1\n"
                        " bad = s32[] constant(5)\n"
                        " bads = s32[%s] broadcast(bad), dimensions={}\n"
                        " is = pred[%s] compare(at, bads), direction=EQ\n"
                        " v0 = %s[] constant(%s)\n"
                        " v1 = %s[%s] broadcast(v0), dimensions={}\n"
                        " q = %s[%s] select(is, v1, x)\n",
                        dims, dims, dims, p->of, p->spoilt, p->of, dims, p->of,
                        dims);
}

static const char *write_mask(sd_arena *a, const attention *p, const char *all)
{
    if (!p->ahead)
        return sd_arena_fmt(a, " w = f32[%s] copy(s)\n", all);
    return sd_arena_fmt(a,
                        " row = s32[%s] iota(), iota_dimension=2\n"
                        " key = s32[%s] iota(), iota_dimension=4\n"
                        " n = s32[] constant(%d)\n"
                        " ns = s32[%s] broadcast(n), dimensions={}\n"
                        " far = s32[%s] add(row, ns)\n"
                        " seen = pred[%s] compare(far, key), direction=GE\n"
                        " none = f32[] constant(%s)\n"
                        " nones = f32[%s] broadcast(none), dimensions={}\n"
                        " w = f32[%s] select(seen, s, nones)\n",
                        all, all, p->ahead, all, all, all, p->masked, all, all);
}

static const char *write_softmax(sd_arena *a, const char *all, const char *row)
{
    return sd_arena_fmt(a,
                        " l = f32[] constant(-inf)\n zero = f32[] constant(0)\n"
                        " m = f32[%s] reduce(w, l), dimensions={4}, "
                        "to_apply=most\n"
                        " ms = f32[%s] broadcast(m), dimensions={0,1,2,3}\n"
                        " f = f32[%s] subtract(w, ms)\n"
                        " g = f32[%s] exponential(f)\n"
                        " h = f32[%s] reduce(g, zero), dimensions={4}, "
                        "to_apply=sum\n"
                        " hs = f32[%s] broadcast(h), dimensions={0,1,2,3}\n"
                        " i = f32[%s] divide(g, hs)\n",
                        row, all, all, all, row, all, all);
}

/* Heads stand between rows and columns, as JAX has them. */
static const char *write_attention(sd_arena *a, const attention *p)
{
    const char *row =
        sd_arena_fmt(a, "%d,%d,%d,%d", p->batch, p->heads, p->rows, p->shared);
    const char *all = sd_arena_fmt(a, "%s,%d", row, p->keys);
    const char *of_q = sd_arena_fmt(a, "%d,%d,%d,%d,%d", p->batch, p->rows,
                                    p->heads, p->shared, p->d);

    return sd_arena_fmt(
        a,
        "HloModule m\n"
        "most { a = f32[] parameter(0) b = f32[] parameter(1)"
        " ROOT r = f32[] maximum(a, b) }\n"
        "sum { a = f32[] parameter(0) b = f32[] parameter(1)"
        " ROOT r = f32[] add(a, b) }\n"
        "ENTRY e {\n x = %s[%s] parameter(0)\n y = %s[%d,%d,%d,%d] "
        "parameter(1)\n c = f32[%d,%d] parameter(2)\n v = %s[%d,%d,%d,%d] "
        "parameter(3)\n%s"
        " o = f32[%s] dot(q, y), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, "
        "lhs_contracting_dims={4}, rhs_contracting_dims={3}\n"
        " cs = f32[%s] broadcast(c), dimensions={2,4}\n"
        " s = f32[%s] %s\n%s%s p = %s[%s] convert(i)\n"
        " u = %s[%s,%d] dot(p, v), lhs_batch_dims={0,1}, "
        "rhs_batch_dims={0,2}, lhs_contracting_dims={4}, "
        "rhs_contracting_dims={1}\n"
        " ROOT r = %s[%d,%d,%d,%d,%d] transpose(u), dimensions={0,2,1,3,4}\n"
        "}\n",
        p->of, of_q, p->of, p->batch, p->keys, p->heads, p->d, p->rows, p->keys,
        p->of, p->batch, p->keys, p->heads, p->e, write_q(a, p, of_q), all, all,
        all, p->bias ? "add(o, cs)" : "copy(o)", write_mask(a, p, all),
        write_softmax(a, all, row), p->of, all, p->to, row, p->e, p->to,
        p->batch, p->rows, p->heads, p->shared, p->e);
}

/* Of the last ones keys are whole blocks for all GPUs. */
static const attention form[ENGINE_ATTENTIONS] = {
    {"bf16", "bf16", 1, 1, 1, 128, 128, 64, 64, 0, NULL, NULL, false},
    {"bf16", "f32", 2, 3, 1, 130, 75, 40, 40, -40, "-1e30", NULL, false},
    {"f16", "f16", 1, 2, 2, 70, 200, 128, 96, 9, "-inf", NULL, false},
    {"bf16", "bf16", 1, 1, 1, 90, 90, 32, 128, -7, "-inf", NULL, false},
    {"f16", "f32", 1, 2, 1, 90, 90, 256, 64, 0, NULL, NULL, false},
    {"bf16", "bf16", 2, 2, 1, 65, 100, 72, 32, 0, NULL, NULL, true},
    {"bf16", "bf16", 1, 2, 3, 100, 66, 64, 64, 3, "-100", "nan", true},
    {"f16", "f16", 1, 1, 2, 64, 129, 48, 80, 2, "-inf", "inf", false},
    {"bf16", "bf16", 1, 2, 1, 130, 96, 64, 64, 0, NULL, NULL, false},
    {"bf16", "f32", 2, 1, 1, 150, 128, 32, 32, -40, "-1e30", NULL, false},
    {"f16", "f16", 1, 2, 2, 70, 192, 128, 96, 9, "-inf", NULL, false},
    {"bf16", "bf16", 1, 1, 1, 90, 96, 32, 128, -7, "-inf", NULL, false},
    {"f16", "f32", 1, 1, 1, 65, 64, 256, 48, 0, NULL, NULL, true},
    {"bf16", "bf16", 1, 2, 3, 100, 64, 64, 64, 3, "-100", "nan", true},
    {"f16", "f16", 1, 1, 2, 64, 160, 48, 40, 2, "-inf", "inf", false}};

engine_program engine_program_attention(sd_arena *a, int i)
{
    engine_program p = {.text = write_attention(a, &form[i]),
                        .terms = form[i].keys,
                        .kind = ENGINE_ATTENTION,
                        .unsigned_from = 3};

    p.slack = strcmp(form[i].of, "f16") ? 0x1p-7 : 0x1p-10;
    p.name = p.text;
    return p;
}

/* ---- gradients ---- */

/* Of a score, and of what its gradient is: masked keys have none. */
static const char *write_functions(sd_arena *a, const attention *p,
                                   const char *dx)
{
    const char *seen = p->ahead
                           ? sd_arena_fmt(a,
                                          " n = s32[] constant(%d)\n"
                                          " far = s32[] add(row, n)\n"
                                          " seen = pred[] compare(far, key), "
                                          "direction=GE\n"
                                          " none = f32[] constant(%s)\n"
                                          " nil = f32[] constant(0)\n",
                                          p->ahead, p->masked)
                           : "";
    const char *head = " x = f32[] parameter(0)\n row = s32[] parameter(1)\n"
                       " key = s32[] parameter(2)\n"
                       " by = f32[] constant(0.25)\n";

    return sd_arena_fmt(a,
                        "score {\n%s%s%s s0 = f32[] multiply(x, by)\n"
                        " s1 = f32[] add(s0, %s)\n ROOT r = f32[] %s\n}\n"
                        "slope {\n%s ds = f32[] parameter(3)\n%s%s"
                        " s0 = f32[] multiply(ds, by)\n s1 = f32[] %s\n"
                        " ROOT r = %s[] convert(s1)\n}\n",
                        head, seen,
                        p->bias ? " bias = f32[] parameter(3)\n" : "",
                        p->bias ? "bias" : "by",
                        p->ahead ? "select(seen, s1, none)" : "copy(s1)", head,
                        seen, p->bias ? " bias = f32[] parameter(4)\n" : "",
                        p->ahead ? "select(seen, s0, nil)" : "copy(s0)", dx);
}

static const char *write_calls(sd_arena *a, const attention *p, const char *q,
                               const char *o, const char *dk, const char *dv)
{
    const char *rows = sd_arena_fmt(a, "f32[%d,%d,%d,%d]", p->batch, p->heads,
                                    p->shared, p->rows),
               *call = "api_version=API_VERSION_TYPED_FFI, "
                       "called_computations={score",
               *bias = p->bias ? ", c" : "", *qk = p->bias ? ",qk" : "";
    const char *back = sd_arena_fmt(
        a,
        "custom-call(x, y, v, o, m, r, k%s), "
        "custom_call_target=\"sundog.attend-gradient\", %s, slope}, "
        "backend_config=\"AqBCd,AkBd,AkBe,AqBCe,ABCq,ABCq,ABCq%s",
        bias, call, qk);

    return sd_arena_fmt(
        a,
        " f = (%s[%s], %s, %s) custom-call(x, y, v%s), "
        "custom_call_target=\"sundog.attend\", %s}, "
        "backend_config=\"AqBCd,AkBd,AkBe%s->AqBCe,ABCq,ABCq\"\n"
        " u = %s[%s] get-tuple-element(f), index=0\n"
        " m = %s get-tuple-element(f), index=1\n"
        " r = %s get-tuple-element(f), index=2\n"
        " o1 = f32[%s] convert(o)\n zero = f32[] constant(0)\n"
        " k1 = f32[%d,%d,%d,%d] reduce(o1, zero), dimensions={4}, "
        "to_apply=sum\n k = %s transpose(k1), dimensions={0,2,3,1}\n"
        " dq = %s[%s] %s->AqBCd\"\n"
        " g = (%s[%s], %s[%s]) %s->AkBCd,AkBCe\"\n"
        " dk = %s[%s] get-tuple-element(g), index=0\n"
        " dv = %s[%s] get-tuple-element(g), index=1\n",
        p->to, o, rows, rows, bias, call, qk, p->to, o, rows, rows, o, p->batch,
        p->rows, p->heads, p->shared, rows, p->to, q, back, p->to, dk, p->to,
        dv, back, p->to, dk, p->to, dv);
}

/* Heads stand between rows and columns; `dx` is what the products' gradients
 * are rounded to.  What a row's cotangents are less by is not of the result,
 * whose rounding gradients would have as well. */
static const char *write_gradient(sd_arena *a, const attention *p,
                                  const char *dx, engine_program *of)
{
    static const char *const name[ENGINE_PARTS] = {"u", "dq", "dk", "dv"};
    int64_t all = 0;
    const char *dims[ENGINE_PARTS], *flat = "";

    for (int i = 0; i < ENGINE_PARTS; i++) {
        int n = i < 2 ? p->rows : p->keys, columns = i % 3 ? p->d : p->e;

        dims[i] = sd_arena_fmt(a, "%d,%d,%d,%d,%d", p->batch, n, p->heads,
                               p->shared, columns);
        all += of->part[i] =
            (int64_t)p->batch * n * p->heads * p->shared * columns;
        flat = sd_arena_fmt(a,
                            "%s f%d = f32[%s] convert(%s)\n"
                            " p%d = f32[%" PRId64 "] reshape(f%d)\n",
                            flat, i, dims[i], name[i], i, of->part[i], i);
    }
    of->npart = ENGINE_PARTS;
    return sd_arena_fmt(
        a,
        "HloModule m\nsum { a = f32[] parameter(0) b = f32[] parameter(1)"
        " ROOT r = f32[] add(a, b) }\n%s"
        "ENTRY e {\n x = %s[%s] parameter(0)\n y = %s[%d,%d,%d,%d] "
        "parameter(1)\n c = f32[%d,%d] parameter(2)\n v = %s[%d,%d,%d,%d] "
        "parameter(3)\n o = %s[%s] parameter(4)\n%s%s"
        " ROOT all = f32[%" PRId64 "] concatenate(p0, p1, p2, p3), "
        "dimensions={0}\n}\n",
        write_functions(a, p, dx), p->of, dims[1], p->of, p->batch, p->keys,
        p->heads, p->d, p->rows, p->keys, p->of, p->batch, p->keys, p->heads,
        p->e, p->of, dims[0],
        write_calls(a, p, dims[1], dims[0], dims[2], dims[3]), flat, all);
}

engine_program engine_program_gradient(sd_arena *a, int i)
{
    static const struct {
        attention of;
        const char *dx;
    } form_of[ENGINE_GRADIENTS] = {
        {{"bf16", "f32", 1, 1, 1, 64, 64, 32, 32, 0, NULL, NULL, false},
         "bf16"},
        {{"bf16", "bf16", 2, 2, 1, 130, 75, 40, 40, -40, "-1e30", NULL, false},
         "f32"},
        {{"f16", "f16", 1, 2, 2, 70, 200, 64, 96, 9, "-1e30", NULL, false},
         "f16"},
        {{"f16", "f32", 1, 1, 1, 90, 140, 112, 88, 0, NULL, NULL, true}, "f16"},
        {{"bf16", "f32", 1, 2, 1, 140, 90, 48, 64, 0, NULL, NULL, true}, "f32"},
        {{"bf16", "f32", 1, 1, 3, 100, 300, 64, 64, 4, "-100", NULL, false},
         "bf16"},
        {{"f16", "f32", 2, 1, 1, 300, 66, 32, 64, 1, "-inf", NULL, false},
         "f16"},
        {{"bf16", "f32", 1, 1, 1, 100, 130, 88, 80, 4, "-1e30", NULL, false},
         "bf16"}};
    const attention *of = &form_of[i].of;
    engine_program p = {.terms = SD_MAX(of->keys, of->rows),
                        .kind = ENGINE_ATTENTION};

    p.text = write_gradient(a, of, form_of[i].dx, &p);
    for (int j = 0; j < ENGINE_PARTS; j++) {
        bool exact = (j == 1 || j == 2) && strcmp(form_of[i].dx, "f32") == 0 &&
                     strcmp(of->to, "f32") == 0;

        p.off[j] = exact ? 0x1p-19 : strcmp(of->of, "f16") ? 0x1p-7 : 0x1p-10;
    }
    p.name = p.text;
    return p;
}
