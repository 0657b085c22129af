/* Instructions on small constants are computed now.  Exact ops by the
 * evaluator; functions that have an error by the device library's scalar
 * build, so that a folded value has the bits of a computed one. */
#include "passes_priv.h"

enum { MAX_RESULT = 4096, MAX_OPERAND = 1 << 20, MAX_ARGS = 16 };

/* The scalar build of the device library. */
#define FN1(f) \
    float dl_##f##_f32(float); \
    double dl_##f##_f64(double);
#define FN2(f) \
    float dl_##f##_f32(float, float); \
    double dl_##f##_f64(double, double);
#include "hlo_functions.def"

typedef struct {
    float (*unary_f32)(float);
    double (*unary_f64)(double);
    float (*binary_f32)(float, float);
    double (*binary_f64)(double, double);
} device_function;
static const device_function functions[HLO_OP_COUNT] = {
#define FN1(f) .unary_f32 = dl_##f##_f32, .unary_f64 = dl_##f##_f64
#define FN2(f) .binary_f32 = dl_##f##_f32, .binary_f64 = dl_##f##_f64
#define OP(id, name, cls, types, props, ulp, fn, element) [HLO_##id] = {fn},
#define NONE
#include "hlo_ops.def"
#undef NONE
#undef OP
#undef FN2
#undef FN1
};

static bool is_device_function(const hlo_inst *in)
{
    sd_dtype t = pass_dtype(in);

    return (t == SD_F32 || t == SD_F64) && hlo_info(in)->fn;
}

static void apply(const hlo_inst *in, hlo_value *out)
{
    const device_function *f = &functions[in->op];
    int64_t n = sd_shape_count(in->shape);
    const void *x = in->arg[0]->u.literal.data;
    const void *y = in->narg > 1 ? in->arg[1]->u.literal.data : NULL;

    for (int64_t i = 0; i < n; i++)
        if (pass_dtype(in) == SD_F32)
            ((float *)out->data)[i] =
                y ? f->binary_f32(((const float *)x)[i], ((const float *)y)[i])
                  : f->unary_f32(((const float *)x)[i]);
        else
            ((double *)out->data)[i] = y ? f->binary_f64(((const double *)x)[i],
                                                         ((const double *)y)[i])
                                         : f->unary_f64(((const double *)x)[i]);
}

/* What the evaluator computes with the bits that a device would. */
static bool is_exact(const hlo_inst *in)
{
    switch (hlo_info(in)->cls) {
    case HLO_C_UNARY:
    case HLO_C_BINARY:
    case HLO_C_TERNARY:
        return (hlo_info(in)->ulp == 0 || sd_is_int(pass_dtype(in))) &&
               !sd_is_complex(pass_dtype(in->arg[0]));
    case HLO_C_COMPARE:
    case HLO_C_CONVERT:
    case HLO_C_BITCAST:
        return true;
    case HLO_C_SHAPE:
        return in->op != HLO_BROADCAST;
    default:
        return in->op == HLO_DYNAMIC_SLICE || in->op == HLO_GATHER;
    }
}

static bool can_fold(const hlo_inst *in)
{
    if (in->narg == 0 || in->narg > MAX_ARGS || in->ncomp ||
        !sd_shape_is_array(in->shape) || sd_shape_count(in->shape) > MAX_RESULT)
        return false;
    for (int i = 0; i < in->narg; i++)
        if (in->arg[i]->op != HLO_CONSTANT ||
            sd_shape_count(in->arg[i]->shape) > MAX_OPERAND)
            return false;
    return is_device_function(in) || is_exact(in);
}

/* broadcast([1, 2] -> [2, 1]) of what was just folded, and other users of
 * constants, see them as literals; the instruction itself is replaced. */
static bool fold(sd_arena *a, hlo_inst *in)
{
    hlo_value arg[MAX_ARGS], out = {0};

    for (int i = 0; i < in->narg; i++)
        arg[i] =
            (hlo_value){in->arg[i]->shape,
                        (void *)(uintptr_t)in->arg[i]->u.literal.data, NULL};
    if (is_device_function(in)) {
        out = hlo_value_make(a, in->shape);
        apply(in, &out);
    } else {
        sd_status st = hlo_eval_inst(a, in, arg, &out);

        if (st) { /* the evaluator does not know it: leave it to the device */
            sd_status_free(st);
            return false;
        }
    }
    pass_replace(in, hlo_make_constant(pass_at(in), in->shape, out.data));
    return true;
}

bool hlo_opt_fold(hlo_module *m)
{
    sd_arena *a = sd_arena_create();
    bool changed = false;

    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c)
            if ((in->nuse || in == c->root) && can_fold(in))
                changed |= fold(a, in);
    sd_arena_destroy(a);
    return changed;
}
