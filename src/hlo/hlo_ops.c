/* The op table as data, and the questions that it answers. */
#include "hlo.h"

#include <stdlib.h>

enum {
    UNARY = HLO_C_UNARY,
    BINARY = HLO_C_BINARY,
    TERNARY = HLO_C_TERNARY,
    COMPARE = HLO_C_COMPARE,
    CONVERT = HLO_C_CONVERT,
    BITCAST = HLO_C_BITCAST,
    LEAF = HLO_C_LEAF,
    SHAPE = HLO_C_SHAPE,
    INDEXED = HLO_C_INDEXED,
    SCATTER = HLO_C_SCATTER,
    REDUCE = HLO_C_REDUCE,
    WINDOW = HLO_C_WINDOW,
    SCAN = HLO_C_SCAN,
    MAP = HLO_C_MAP,
    SORT = HLO_C_SORT,
    DOT = HLO_C_DOT,
    CONV = HLO_C_CONV,
    RNG = HLO_C_RNG,
    FFT = HLO_C_FFT,
    LINALG = HLO_C_LINALG,
    NORM = HLO_C_NORM,
    TUPLE = HLO_C_TUPLE,
    CONTROL = HLO_C_CONTROL,
    CUSTOM = HLO_C_CUSTOM,
    TOKENS = HLO_C_TOKENS,
    DYNAMIC = HLO_C_DYNAMIC,
    COLLECTIVE = HLO_C_COLLECTIVE,

    PRED = HLO_T_PRED,
    INT = HLO_T_INT,
    LOGIC = HLO_T_LOGIC,
    SIGNED = HLO_T_SIGNED,
    FLOAT = HLO_T_FLOAT,
    CPLX = HLO_T_CPLX,
    NUM = HLO_T_NUM,
    ANY = HLO_T_ANY,

    COMM = HLO_P_COMM,
    ASSOC = HLO_P_ASSOC,
    REGION = HLO_P_REGION,
    EFFECT = HLO_P_EFFECT,
    CHEAP = HLO_P_CHEAP,
    HEAVY = HLO_P_HEAVY
};

const hlo_op_info hlo_op_table[HLO_OP_COUNT] = {
#define FN1(f) #f
#define FN2(f) #f
#define NONE   NULL
#define OP(id, name, cls, types, props, ulp, fn, element) \
    [HLO_##id] = { \
        name, (uint8_t)(cls), (uint8_t)(types), (uint8_t)(props), ulp, fn},
#include "hlo_ops.def"
#undef OP
#undef NONE
#undef FN2
#undef FN1
};

bool hlo_op_of_name(const char *s, size_t len, hlo_op *out)
{
    for (int i = 0; i < HLO_OP_COUNT; i++) {
        const char *name = hlo_op_table[i].name;

        if (strlen(name) == len && memcmp(name, s, len) == 0) {
            *out = (hlo_op)i;
            return true;
        }
    }
    return false;
}

bool hlo_is_elementwise(const hlo_inst *in)
{
    if (hlo_info(in)->cls > HLO_C_CONVERT)
        return false;
    for (int i = 0; i < in->narg; i++)
        if (!sd_shape_same_dims(in->arg[i]->shape, in->shape))
            return false;
    return true;
}

static bool has_own_effect(const hlo_inst *in)
{
    if (hlo_info(in)->props & HLO_P_EFFECT)
        return true;
    return in->op == HLO_CUSTOM_CALL && in->u.custom &&
           in->u.custom->has_side_effect;
}

/* Each computation once: what is called from many places would otherwise be
 * looked at as often as there are paths to it. */
static bool calls_effect(const hlo_inst *in, sd_map *seen)
{
    if (has_own_effect(in))
        return true;
    for (int i = 0; i < in->ncomp; i++) {
        if (sd_map_has(seen, sd_key(in->comp[i])))
            continue;
        sd_map_set(seen, sd_key(in->comp[i]), in->comp[i]);
        hlo_for_each_inst(x, in->comp[i])
            if (calls_effect(x, seen))
                return true;
    }
    return false;
}

bool hlo_has_effect(const hlo_inst *in)
{
    sd_arena *a;
    bool found;

    /* a parameter is part of its computation's signature: it must stay */
    if (in->op == HLO_PARAMETER || has_own_effect(in))
        return true;
    if (!in->ncomp)
        return false;
    a = sd_arena_create();
    found = calls_effect(in, sd_map_create(a));
    sd_arena_destroy(a);
    return found;
}

bool hlo_is_splat(const hlo_inst *in)
{
    if (in->op != HLO_CONSTANT || !sd_shape_is_array(in->shape))
        return false;
    size_t size = sd_dtype_bytes(in->shape->dtype);
    int64_t n = sd_shape_count(in->shape);
    const char *p = in->u.literal.data;

    /* equal to itself moved by one element */
    return n > 0 && memcmp(p, p + size, size * (size_t)(n - 1)) == 0;
}

static bool scalar_value(sd_dtype t, const void *p, double *v)
{
    char back[16] = {0};
    double x;

    if (sd_is_complex(t)) {
        sd_dtype part = sd_dtype_part(t);
        const char *imag = (const char *)p + sd_dtype_bytes(part);

        for (size_t i = 0; i < sd_dtype_bytes(part); i++)
            if (imag[i])
                return false;
        t = part;
    }
    if (sd_is_float(t)) {
        x = sd_scalar_to_f64(t, p);
    } else {
        int64_t i = sd_scalar_to_s64(t, p);

        /* beyond 2^53 a double would say another number */
        if (i > (INT64_C(1) << 53) || i < -(INT64_C(1) << 53) ||
            (i < 0 && sd_dtype_kind(t) == SD_K_UINT))
            return false;
        x = (double)i;
        sd_scalar_of_s64(t, i, back);
        if (memcmp(back, p, sd_dtype_bytes(t)) != 0)
            return false;
    }
    if (v)
        *v = x;
    return true;
}

bool hlo_is_scalar_const(const hlo_inst *in, double *v)
{
    while (in->op == HLO_BROADCAST)
        in = in->arg[0];
    return hlo_is_splat(in) &&
           scalar_value(in->shape->dtype, in->u.literal.data, v);
}

static bool trivial_window(const hlo_window_dim *w)
{
    return w->size == 1 && w->stride == 1 && w->pad_low == 0 &&
           w->pad_high == 0 && w->base_dilation == 1;
}

bool hlo_is_cumulative(const hlo_inst *in, int64_t *dim, bool *reverse)
{
    int found = -1;
    bool back = false;

    if (in->op != HLO_REDUCE_WINDOW)
        return false;
    for (int i = 0; i < in->u.window.n; i++) {
        const hlo_window_dim *w = &in->u.window.dim[i];
        int64_t n = in->arg[0]->shape->dim[i];

        if (trivial_window(w))
            continue;
        if (found >= 0 || n == 0 || w->size < n || w->stride != 1 ||
            w->base_dilation != 1 || w->window_dilation != 1)
            return false;
        /* the window's padding is all the rest of it, on one side; with a
         * window beyond the extent its far end sees padding only */
        if (w->pad_low == w->size - 1 && w->pad_high == 0)
            back = false;
        else if (w->pad_high == w->size - 1 && w->pad_low == 0)
            back = true;
        else
            return false;
        found = i;
    }
    if (found < 0)
        return false;
    *dim = found;
    *reverse = back;
    return true;
}

/* "k = 3" in the text of an attribute dictionary */
bool hlo_custom_int(const hlo_custom *c, const char *key, int64_t *v)
{
    const char *at = c->config;
    char *end;

    while (at && (at = strstr(at, key))) {
        bool word = at == c->config || at[-1] == ' ' || at[-1] == '{' ||
                    at[-1] == ',' || at[-1] == '"';

        at += strlen(key);
        if (!word)
            continue;
        at += strspn(at, " =:\"");
        *v = strtoll(at, &end, 10);
        return end > at;
    }
    return false;
}

int hlo_ninput(const hlo_inst *in)
{
    switch (in->op) {
    case HLO_REDUCE:
    case HLO_REDUCE_WINDOW:
    case HLO_SCAN:
        return in->narg / 2;
    case HLO_SCATTER:
        return (in->narg - 1) / 2;
    default:
        return in->narg;
    }
}

bool hlo_comp_is_binary(const hlo_comp *c, hlo_op *op)
{
    const hlo_inst *r = c->root;

    if (c->nparam != 2 || !r || hlo_info(r)->cls != HLO_C_BINARY ||
        r->op == HLO_COMPLEX || r->op == HLO_STOCHASTIC_CONVERT)
        return false;
    bool straight = r->arg[0] == c->param[0] && r->arg[1] == c->param[1];
    bool crossed = r->arg[0] == c->param[1] && r->arg[1] == c->param[0];

    if (!straight && !(crossed && (hlo_info(r)->props & HLO_P_COMM)))
        return false;
    *op = r->op;
    return true;
}

/* ---- algorithms of dots ---- */

/* Those with several products (x3, x6, x9) make an f32 product of narrower
 * ones, for machines that have only those: one of f32 is at least as exact. */
const hlo_algorithm hlo_algorithm_table[HLO_ALGORITHM_COUNT] = {
    {"unset", HLO_AS_IS, HLO_AS_IS, false},
    {"dot_any_f8_any_f8_f32", HLO_AS_IS, SD_F32, false},
    {"dot_any_f8_any_f8_f32_fast_accum", HLO_AS_IS, SD_F32, false},
    {"dot_f16_f16_f16", SD_F16, SD_F16, false},
    {"dot_f16_f16_f32", SD_F16, SD_F32, false},
    {"dot_bf16_bf16_bf16", SD_BF16, SD_BF16, false},
    {"dot_bf16_bf16_f32", SD_BF16, SD_F32, false},
    {"dot_bf16_bf16_f32_x3", SD_F32, SD_F32, false},
    {"dot_bf16_bf16_f32_x6", SD_F32, SD_F32, false},
    {"dot_tf32_tf32_f32", SD_F32, SD_F32, true},
    {"dot_tf32_tf32_f32_x3", SD_F32, SD_F32, false},
    {"dot_f32_f32_f32", SD_F32, SD_F32, false},
    {"dot_f64_f64_f64", SD_F64, SD_F64, false},
    {"dot_bf16_bf16_f32_x9", SD_F32, SD_F32, false},
};

const hlo_algorithm *hlo_algorithm_of(const char *name)
{
    for (int i = 0; i < HLO_ALGORITHM_COUNT; i++)
        if (strcmp(hlo_algorithm_table[i].name, name) == 0)
            return &hlo_algorithm_table[i];
    return NULL;
}
