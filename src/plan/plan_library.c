/* Library calls: which dots and convolutions a library does, and how much of
 * what follows goes into the call.  What the library is asked for is a libcall
 * that hangs at the custom-call; its backend_config is for people. */
#include "plan_library.h"

#include <math.h>

/* ---- what follows ---- */

static hlo_inst *only_user(const hlo_inst *in)
{
    return in->nuse == 1 && in->parent->root != in ? in->user[0] : NULL;
}

/* A vector spread along dimension dim, through converts; NULL when it is not.
 * Its element type is t. */
static hlo_inst *spread_vector(hlo_inst *x, int64_t dim, sd_dtype t)
{
    if (x->op == HLO_CONVERT && x->arg[0]->shape->dtype == t)
        x = x->arg[0];
    if (x->op != HLO_BROADCAST || x->dims.n != 1 || x->dims.at[0] != dim)
        return NULL;
    x = x->arg[0];
    if (x->op == HLO_CONVERT && x->arg[0]->shape->dtype == t)
        x = x->arg[0];
    return x->shape->dtype == t && x->shape->rank == 1 ? x : NULL;
}

/* The same array as x, of type t, through one convert; or NULL. */
static hlo_inst *of_type(hlo_inst *x, sd_dtype t)
{
    if (x->op == HLO_CONVERT && x->arg[0]->shape->dtype == t)
        x = x->arg[0];
    return x->shape->dtype == t ? x : NULL;
}

static hlo_inst *other(const hlo_inst *in, const hlo_inst *x)
{
    return in->arg[0] == x ? in->arg[1] : in->arg[0];
}

/* A factor that changes no bit of what it multiplies, short of the ends of the
 * exponents: the library rounds once where the program rounds twice. */
static bool is_power_of_two(double v)
{
    int e;

    return v != 0 && isfinite(v) && fabs(frexp(v, &e)) == 0.5;
}

/* x as beta times an array of type t, of which the latter; or NULL. */
static hlo_inst *scaled_array(hlo_inst *x, sd_dtype t, bool scaled,
                              double *beta)
{
    double v;

    *beta = 1;
    if (scaled && x->op == HLO_MULTIPLY && x->nuse == 1)
        for (int i = 0; i < 2; i++)
            if (hlo_is_scalar_const(x->arg[i], &v) && is_power_of_two(v)) {
                *beta = v;
                return of_type(x->arg[1 - i], t);
            }
    return of_type(x, t);
}

/* x does not depend on the call: of what is in the call so far the sum with x
 * is the only user. */
static bool take_add(epilogue *e, hlo_inst *x, int64_t dim, sd_dtype t,
                     plan_scales scaled)
{
    hlo_inst *bias = spread_vector(x, dim, t), *add;
    double v, beta;

    if (e->activation || e->add)
        return false;
    if (!e->bias && bias && e->alpha == 1) {
        e->bias = bias;
        return true;
    }
    if (e->alpha != 1 && scaled != PLAN_SCALES_ADDED)
        return false;
    add = scaled_array(x, t, scaled, &beta);
    if (!add || hlo_is_scalar_const(add, &v) || add->op == HLO_BROADCAST)
        return false;
    e->add = add;
    e->beta = beta;
    return true;
}

/* One op more: `wide` is what the call gives so far, where the op reads it
 * (converted, for narrow floats). */
static bool take_op(epilogue *e, hlo_inst *op, hlo_inst *wide, int64_t dim,
                    sd_dtype t, plan_scales scaled)
{
    hlo_inst *x;
    double v;

    if (op->narg != 2 || op->arg[0] == op->arg[1])
        return false;
    x = other(op, wide);
    switch (op->op) {
    case HLO_ADD:
        return take_add(e, x, dim, t, scaled);
    case HLO_MAXIMUM:
        if (e->activation || !hlo_is_scalar_const(x, &v) || v != 0)
            return false;
        e->activation = LIBCALL_RELU;
        return true;
    case HLO_MULTIPLY:
        if (!scaled || e->bias || e->add || e->activation ||
            !hlo_is_scalar_const(x, &v) || v == 0) /* keeps its signs */
            return false;
        e->alpha *= v;
        return true;
    default:
        return false;
    }
}

/* For narrow floats: convert up, ops, convert down; what has no way down is
 * not taken.  The program rounds after every operation and the library once at
 * the end: of the same bits are only the larger of a product and zero, unless
 * the user lets bf16 chains keep f32. */
static bool take_narrow(epilogue *e, hlo_inst *up, int64_t dim, sd_dtype t)
{
    bool excess = t == SD_BF16 && up->parent->module->excess_precision;
    epilogue got = *e;
    hlo_inst *wide = up, *op = only_user(up);
    bool taken = false;

    if (up->shape->dtype != SD_F32)
        return false;
    while (op && (excess || op->op == HLO_MAXIMUM) &&
           take_op(&got, op, wide, dim, t, PLAN_SCALES_NONE)) {
        wide = op;
        op = only_user(wide);
        if (op && op->op == HLO_CONVERT && op->shape->dtype == t) {
            got.last = op;
            *e = got;
            taken = true;
        }
    }
    return taken;
}

static bool is_zero(const hlo_inst *x)
{
    double v;

    return hlo_is_scalar_const(x, &v) && v == 0;
}

/* relu(x) is maximum(x, 0).  Its gradient compares x with 0, which makes x an
 * array of two users that cannot stay inside the call.  x > 0 and relu(x) > 0
 * are the same, also for NaN: where all other users of x are such compares,
 * they read relu(x) instead. */
static void compare_relu_instead(hlo_inst *x)
{
    hlo_inst *relu = NULL;

    if (x->parent->root == x)
        return;
    hlo_for_each_user(u, x) {
        if (u->op == HLO_MAXIMUM && is_zero(other(u, x)))
            relu = relu && relu != u ? x : u;
        else if (u->op != HLO_COMPARE || u->arg[0] != x ||
                 !is_zero(u->arg[1]) || u->u.compare.dir != HLO_GT)
            return;
    }
    if (!relu || relu == x)
        return;
    for (int i = x->nuse - 1; i >= 0; i--)
        if (x->user[i] != relu)
            hlo_replace_use(x->user[i], x, relu);
}

epilogue plan_find_epilogue(hlo_inst *product, int64_t dim, plan_scales scaled)
{
    epilogue e = {.last = product, .alpha = 1, .beta = 1};
    sd_dtype t = product->shape->dtype;
    int64_t n = product->shape->dim[dim];

    if (!sd_is_float(t))
        return e;
    for (;;) {
        hlo_inst *u;

        compare_relu_instead(e.last);
        u = only_user(e.last);
        if (!u)
            return e;
        if (u->op == HLO_RESHAPE && dim == e.last->shape->rank - 1 &&
            u->shape->rank > 0 && u->shape->dim[u->shape->rank - 1] == n &&
            !e.add) {
            /* useful only if something follows; harmless if not */
            e.last = u;
            dim = u->shape->rank - 1;
        } else if (u->op == HLO_CONVERT && t != SD_F32) {
            if (!take_narrow(&e, u, dim, t))
                return e;
        } else if (u->shape->dtype == t &&
                   sd_shape_same_dims(u->shape, e.last->shape) &&
                   take_op(&e, u, e.last, dim, t, scaled)) {
            e.last = u;
        } else {
            return e;
        }
    }
}

/* ---- the call ---- */

static hlo_inst *shaped(hlo_at at, hlo_inst *x, const sd_shape *s)
{
    if (sd_shape_same_dims(x->shape, s))
        return x;
    return hlo_make_reshape(at, x, s->rank, s->dim);
}

/* A convolution's form has a second result, its scratch, of which there is
 * none. */
static const sd_shape *result_of(sd_arena *a, const hlo_inst *product,
                                 const libcall *c)
{
    int64_t none = 0;
    const sd_shape *part[2] = {product->shape};

    if (c->op != LIBCALL_CONV)
        return product->shape;
    part[1] = sd_shape_make(a, SD_U8, 1, &none);
    return sd_shape_tuple(a, 2, part);
}

/* The operand of LIBCALL_BIAS_UNUSED. */
static hlo_inst *unused_bias(hlo_at at)
{
    const int64_t one = 1;
    const float zero = 0;

    return hlo_make_constant(
        at, sd_shape_make(at.c->module->arena, SD_F32, 1, &one), &zero);
}

void plan_make_call(hlo_inst *product, const libcall *c, hlo_inst *const arg[2],
                    const epilogue *e)
{
    hlo_comp *comp = product->parent;
    sd_arena *a = comp->module->arena;
    hlo_at at = {comp, e->last, e->last};
    hlo_custom *cu = sd_arena_new(a, hlo_custom);
    hlo_inst *op[5] = {arg[0], arg[1]}, *call, *with;
    int n = 2;

    if (e->bias)
        op[n++] = e->bias;
    else if (c->op == LIBCALL_CONV)
        op[n++] = unused_bias(at);
    if (e->add)
        op[n++] = shaped(at, e->add, product->shape);
    cu->target = libcall_table[c->op].target;
    cu->config =
        sd_arena_fmt(a, "{\"activation_mode\": \"%d\"}", (int)e->activation);
    cu->config_len = strlen(cu->config);
    cu->lib = sd_arena_copy(a, c, sizeof *c);
    call = hlo_inst_create(comp, e->last, HLO_CUSTOM_CALL,
                           result_of(a, product, c), n, op);
    call->u.custom = cu;
    hlo_take_source(call, e->last);
    hlo_rename(call, sd_arena_fmt(a, "%s.1", cu->target));
    with = c->op == LIBCALL_CONV ? hlo_make_gte(at, call, 0) : call;
    hlo_replace(e->last, shaped(at, with, e->last->shape));
}

/* ---- dots ---- */

static bool type_fits(const device_desc *dev, const hlo_inst *in)
{
    sd_dtype x = in->arg[0]->shape->dtype, y = in->arg[1]->shape->dtype,
             r = in->shape->dtype;

    if (x == SD_F32 && y == SD_F32 && r == SD_F32)
        return true;
    if (x == SD_BF16 && y == SD_BF16 && (r == SD_BF16 || r == SD_F32))
        return dev->features & DEVICE_HAS_AVX512;
    return x == SD_S8 && y == SD_S8 && r == SD_S32 &&
           dev->libs & DEVICE_LIB_BYTES;
}

/* Batch dimensions first, then the free and the contracted one: as it lies, or
 * with the last two exchanged (*flipped), or transposed to it. */
static hlo_inst *operand_of(hlo_inst *in, int k, bool *flipped)
{
    const hlo_dot *d = in->u.dot;
    hlo_dims batch = k ? d->rhs_batch : d->lhs_batch;
    hlo_dims con = k ? d->rhs_contract : d->lhs_contract;
    hlo_inst *x = in->arg[k];
    int64_t perm[SD_MAX_RANK], at_con = con.at[0];
    int rank = x->shape->rank, n = 0;
    bool leading = true, used[SD_MAX_RANK] = {false};

    for (int i = 0; i < batch.n; i++) {
        leading &= batch.at[i] == i;
        perm[n++] = batch.at[i];
        used[batch.at[i]] = true;
    }
    used[at_con] = true;
    if (k)
        perm[n++] = at_con;
    for (int i = 0; i < rank; i++)
        if (!used[i])
            perm[n++] = i;
    if (!k)
        perm[n++] = at_con;
    /* lhs [m, k], rhs [k, n] are as they should be */
    *flipped = rank == batch.n + 2 && at_con == (k ? batch.n + 1 : batch.n);
    if (leading)
        return x;
    *flipped = false;
    return hlo_make_transpose((hlo_at){in->parent, in, in}, x, perm);
}

/* Without AVX-512 oneDNN 2.7 does a product that is scaled and then added to by
 * its reference code, a thousand times slower. */
static plan_scales scales_of(const device_desc *dev, const hlo_inst *in)
{
    if (in->shape->dtype != SD_F32)
        return PLAN_SCALES_NONE;
    return dev->features & DEVICE_HAS_AVX512 ? PLAN_SCALES_ADDED
                                             : PLAN_SCALES_ALONE;
}

/* Does an elementwise operation follow that does not go into the call? */
static bool is_followed(const epilogue *e)
{
    hlo_for_each_user(u, e->last)
        if (hlo_is_elementwise(u))
            return true;
    return false;
}

bool plan_library_matmul(hlo_inst *in, const device_desc *dev)
{
    const hlo_dot *d = in->u.dot;
    hlo_inst *arg[2];
    plan_product p;
    bool flip[2];
    epilogue e;

    if (!type_fits(dev, in) || d->lhs_contract.n != 1 ||
        in->arg[0]->shape->rank > d->lhs_batch.n + 2 ||
        in->arg[1]->shape->rank > d->rhs_batch.n + 2 ||
        !plan_product_of(in, &p))
        return false;
    /* a vector as the right side has no dimension that a bias runs over */
    if (in->arg[1]->shape->rank == d->rhs_batch.n + 2)
        e = plan_find_epilogue(in, in->shape->rank - 1, scales_of(dev, in));
    else
        e = (epilogue){.last = in, .alpha = 1, .beta = 1};
    if (plan_is_ours(&p, dev, is_followed(&e)))
        return false;
    for (int i = 0; i < 2; i++)
        arg[i] = operand_of(in, i, &flip[i]);
    plan_make_call(in,
                   &(libcall){.op = LIBCALL_MATMUL,
                              .matmul = {.lhs = arg[0]->shape->dtype,
                                         .rhs = arg[1]->shape->dtype,
                                         .result = in->shape->dtype,
                                         .batch = p.batch,
                                         .m = p.m,
                                         .n = p.n,
                                         .k = p.k,
                                         .lhs_transposed = flip[0],
                                         .rhs_transposed = flip[1],
                                         .bias = e.bias ? LIBCALL_BIAS_VECTOR
                                                        : LIBCALL_BIAS_NONE,
                                         .add = e.add != NULL,
                                         .activation = e.activation,
                                         .alpha = e.alpha,
                                         .beta = e.beta}},
                   arg, &e);
    return true;
}

/* An instruction that nobody uses went into a call. */
static void call_for(hlo_inst *in, const device_desc *dev)
{
    bool onednn = dev->libs & DEVICE_LIB_ONEDNN;

    if (in->nuse == 0 && in != in->parent->root)
        return;
    if (in->op == HLO_CUSTOM_CALL)
        plan_library_lapack(in, dev);
    else if (in->op == HLO_DOT && onednn && !plan_library_matmul(in, dev))
        plan_library_bytes(in, dev);
    else if (in->op == HLO_CONVOLUTION && onednn && !plan_library_conv(in, dev))
        plan_library_bytes(in, dev);
}

sd_status plan_library(hlo_module *m, const device_desc *dev,
                       const sd_options *opt)
{
    if (!dev->libs || !sd_opt_bool(opt, SD_OPT_LIBRARIES))
        return NULL;
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c)
            call_for(in, dev);
    hlo_for_each_comp(c, m) {
        hlo_comp_sort(c); /* a relu's compare may stand before the relu */
        hlo_comp_sweep(c);
    }
    return NULL;
}
