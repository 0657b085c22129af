/* Every operation on elements of the op table, on every type, with the ends of
 * the types among its operands: NaN, the infinities, -0, numbers below the
 * normal ones, the largest integers. */
#include "selftest.h"

#include "random.h"

#include <math.h>
#include <stdio.h>

enum { N = 203, MOST_RESULTS = 96 }; /* several vectors and a tail */

/* ---- operands ---- */

static uint64_t next_random(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (*s >> 29) ^ (*s << 27);
}

static void fill_float(sd_dtype t, uint64_t r, void *at)
{
    static const double special[] = {
        0.0,  -0.0,     1,     -1,       0.5,   -0.5,      1.5,
        2.5,  -2.5,     3,     -7,       31,    64,        127,
        -128, 255,      256,   65504,    65520, 3.4028e38, 2147483647.0,
        1e30, -1e300,   1e-40, -1e-40,   6e-8,  8388609.5, 0.49999997,
        NAN,  INFINITY, NAN,   -INFINITY};

    if (r % 3 == 0)
        sd_scalar_of_f64(t, special[(r >> 8) % SD_COUNTOF(special)], at);
    else
        sd_scalar_of_f64(t, ((double)(int64_t)(r >> 8) / 0x1p51) - 16, at);
}

static void fill_ends(hlo_value *v, const char *name, int index)
{
    sd_dtype t = sd_dtype_part(v->shape->dtype);
    int64_t n = sd_shape_count(v->shape) * (t == v->shape->dtype ? 1 : 2);
    uint64_t state = 0x9e3779b97f4a7c15u * (uint64_t)(index + 1);

    (void)name;
    for (int64_t i = 0; i < n; i++) {
        uint8_t *at = (uint8_t *)v->data + (size_t)i * sd_dtype_bytes(t);
        uint64_t r = next_random(&state);

        if (sd_is_float(t))
            fill_float(t, r, at);
        else
            sd_scalar_of_s64(t,
                             r % 3 == 0 ? (int64_t)(r >> 3)
                             : r % 3 == 1
                                 ? (int64_t)(r >> 8) % 9 - 4
                                 : (int64_t)(UINT64_C(1) << (r >> 8) % 64),
                             at);
    }
}

/* ---- what a result may be ---- */

static bool is_near(sd_dtype t, const void *x, const void *y, double ulp)
{
    double a, b, least;
    random_type r;

    if (!memcmp(x, y, sd_dtype_bytes(t)))
        return true;
    if (!sd_is_float(t))
        return false;
    a = sd_scalar_to_f64(t, x);
    b = sd_scalar_to_f64(t, y);
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (a == 0 && b == 0) /* of a NaN, whose sign is nobody's, in a type that
                             has none */
        return sd_dtype_table[t].bits < 8;
    if (ulp == 0)
        return false;
    r = random_type_of(t);
    least = t == SD_F64 ? 0x1p-1074 : t == SD_F32 ? 0x1p-149 : r.tiny;
    if (sd_dtype_table[t].bits < 32) /* of f32, then rounded: the next one */
        ulp = 1;
    if (isinf(a) || isinf(b))
        return ulp == 1 && fmin(fabs(a), fabs(b)) >= r.most * 0.99 &&
               signbit(a) == signbit(b);
    return fabs(a - b) <= ulp * fmax(fabs(b) * r.ulp, least);
}

static void say_value(sd_buf *why, sd_dtype t, const void *p)
{
    if (sd_is_float(t))
        sd_buf_fmt(why, "%.9g", sd_scalar_to_f64(t, p));
    else
        sd_buf_fmt(why, "%" PRId64, sd_scalar_to_s64(t, p));
}

/* ---- one type's operations as one program ---- */

typedef enum { ARITHMETIC, COMPARING, CONVERTING, FUNCTIONS } group;

typedef struct {
    sd_arena *a;
    hlo_module *m;
    hlo_inst *x, *y, *z, *p, *out[MOST_RESULTS];
    int nout;
} program;

static bool differs(void *ctx, int out, const hlo_value *got,
                    const hlo_value *want, sd_buf *why)
{
    const hlo_inst *in = ((program *)ctx)->out[out];
    sd_dtype t = want->shape->dtype, part = sd_dtype_part(t);
    int64_t n = sd_shape_count(want->shape) * (part == t ? 1 : 2);
    size_t size = sd_dtype_bytes(part);

    for (int64_t i = 0; i < n; i++) {
        const uint8_t *x = (uint8_t *)got->data + (size_t)i * size;
        const uint8_t *y = (uint8_t *)want->data + (size_t)i * size;

        if (is_near(part, x, y, hlo_info(in)->ulp))
            continue;
        sd_buf_fmt(why, "%s gives %s, element %" PRId64 ": ",
                   hlo_info(in)->name, sd_dtype_name(t), i);
        say_value(why, part, x);
        sd_buf_str(why, ", not ");
        say_value(why, part, y);
        return true;
    }
    return false;
}

static int operands(const hlo_op_info *o)
{
    return o->cls == HLO_C_UNARY     ? 1
           : o->cls == HLO_C_BINARY  ? 2
           : o->cls == HLO_C_TERNARY ? 3
                                     : 0;
}

/* What a type has no such operation for is refused by its shape's rule. */
static void add(program *p, hlo_op op)
{
    hlo_inst *arg[] = {p->x, p->y, p->z}, *in;
    const sd_shape *s;
    sd_status st;

    if (op == HLO_SELECT) {
        arg[0] = p->p;
        arg[2] = p->x;
    }
    in = hlo_inst_create(p->m->entry, NULL, op, p->x->shape,
                         operands(&hlo_op_table[op]), arg);
    if ((st = hlo_infer(p->m, in, &s))) {
        sd_status_free(st);
        hlo_remove(in);
        return;
    }
    in->shape = s;
    p->out[p->nout++] = in;
}

/* f8e8m0fnu has no zero and no sign to be computed with.  Functions of complex
 * numbers have errors of their own kind: random programs have them. */
static bool is_for(hlo_op op, sd_dtype t, group g)
{
    const hlo_op_info *o = &hlo_op_table[op];
    bool is_function = o->ulp > 0 || op == HLO_SQRT;

    if (!operands(o) || op == HLO_REDUCE_PRECISION ||
        op == HLO_STOCHASTIC_CONVERT || is_function != (g == FUNCTIONS))
        return false;
    if (op == HLO_SELECT)
        return true;
    if (op == HLO_CLAMP)
        return t != SD_F8E8M0FNU && !sd_is_complex(t);
    if (sd_is_complex(t))
        return op == HLO_ADD || op == HLO_SUBTRACT || op == HLO_NEGATE ||
               op == HLO_REAL || op == HLO_IMAG;
    return (o->types & hlo_type_bit(t)) && t != SD_F8E8M0FNU;
}

static void add_comparisons(program *p)
{
    sd_dtype t = p->x->shape->dtype;
    bool cplx = sd_is_complex(t);
    hlo_at at = {p->m->entry, NULL, NULL};

    for (int dir = HLO_EQ; dir <= (cplx ? HLO_NE : HLO_LT); dir++) {
        hlo_inst *in = hlo_make_compare(at, (hlo_cmp_dir)dir, p->x, p->y);

        p->out[p->nout++] = in;
        if (!sd_is_float(t))
            continue;
        in = hlo_make_compare(at, (hlo_cmp_dir)dir, p->x, p->y);
        in->u.compare.type = HLO_CMP_TOTAL;
        p->out[p->nout++] = in;
    }
}

static void add_conversions(program *p)
{
    sd_dtype t = p->x->shape->dtype;
    hlo_at at = {p->m->entry, NULL, NULL};

    for (sd_dtype to = 0; to < SD_TUPLE; to++) {
        bool cplx = sd_is_complex(to);

        if (to == t)
            continue;
        p->out[p->nout++] = hlo_make_convert(at, to, p->x);
        if (sd_dtype_table[to].bits == sd_dtype_table[t].bits &&
            to != SD_PRED && t != SD_PRED && !cplx && !sd_is_complex(t))
            p->out[p->nout++] = hlo_make_bitcast_convert(at, to, p->x);
    }
}

static bool make(program *p, sd_dtype t, group g, sd_buf *text)
{
    int64_t dim = N;
    const sd_shape *s = sd_shape_make(p->a, t, 1, &dim);
    hlo_comp *c;

    p->m = hlo_module_create(p->a, "elementwise");
    c = p->m->entry = hlo_comp_create(p->m, "main");
    p->x = hlo_make_param(c, s, "x");
    p->y = hlo_make_param(c, s, "y");
    p->z = hlo_make_param(c, s, "z");
    p->p = hlo_make_param(c, sd_shape_make(p->a, SD_PRED, 1, &dim), "p");
    if (g == COMPARING)
        add_comparisons(p);
    else if (g == CONVERTING)
        add_conversions(p);
    else
        for (hlo_op op = 0; op < HLO_OP_COUNT; op++)
            if (is_for(op, t, g))
                add(p, op);
    if (!p->nout)
        return false;
    hlo_set_root(c, hlo_make_tuple((hlo_at){.c = c}, p->nout, p->out));
    hlo_print(text, p->m);
    return true;
}

/* A kernel of dozens of functions takes some drivers seconds: each has its
 * own. */
static void check(selftest *s, sd_dtype t, group g)
{
    static const char *const what[] = {"arithmetic of", "comparisons of",
                                       "conversions of", "functions of"};
    program p = {.a = sd_arena_create()};
    sd_buf text = {0};

    if (make(&p, t, g, &text) &&
        selftest_begin(s, "%s %s", what[g], sd_dtype_name(t))) {
        selftest_program sp = {.text = text.at,
                               .len = text.len,
                               .apart = g == FUNCTIONS,
                               .fill = fill_ends,
                               .differs = differs,
                               .ctx = &p};

        selftest_end(s, selftest_compare(s, &sp));
    }
    sd_buf_finish(&text);
    sd_arena_destroy(p.a);
}

/* Those that most programs are made of. */
static bool is_usual(sd_dtype t)
{
    return t == SD_F32 || t == SD_BF16 || t == SD_F16 || t == SD_S32 ||
           t == SD_U8 || t == SD_PRED || t == SD_F8E4M3FN || t == SD_C64;
}

void selftest_elementwise(selftest *s, const char *text)
{
    (void)text;
    for (int usual = 1; usual >= (s->quick ? 1 : 0); usual--)
        for (sd_dtype t = 0; t < SD_TUPLE; t++)
            for (group g = ARITHMETIC; g < FUNCTIONS; g++)
                if (is_usual(t) == usual)
                    check(s, t, g);
}

void selftest_functions(selftest *s, const char *text)
{
    static const sd_dtype types[] = {SD_F32, SD_BF16,     SD_F16,
                                     SD_F64, SD_F8E4M3FN, SD_F8E5M2};

    (void)text;
    for (size_t i = 0; i < (s->quick ? 2 : SD_COUNTOF(types)); i++)
        check(s, types[i], FUNCTIONS);
}
