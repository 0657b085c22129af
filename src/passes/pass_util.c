/* Building blocks that several passes use. */
#include "passes_priv.h"

#include <math.h>

void pass_replace(hlo_inst *in, hlo_inst *with)
{
    hlo_replace(in, with);
    if (in->nuse == 0 && in->parent->root != in && in->op != HLO_PARAMETER)
        hlo_remove(in);
}

typedef struct { /* either */
    hlo_inst *(*plain)(hlo_inst *in);
    hlo_inst *(*of_device)(hlo_inst *in, const device_desc *dev);
} pass_rule;

static bool rewrite(hlo_module *m, const device_desc *dev, hlo_op op,
                    pass_rule rule)
{
    bool changed = false;

    /* most modules have few of the ops: a walk over 10,000 takes 1 ms */
    if (op != HLO_OP_COUNT && !m->made[op])
        return false;
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            hlo_inst *to;

            if (op != HLO_OP_COUNT && op != in->op)
                continue;
            to = rule.plain ? rule.plain(in) : rule.of_device(in, dev);
            if (!to)
                continue;
            pass_replace(in, to);
            changed = true;
        }
    return changed;
}

bool pass_rewrite(hlo_module *m, hlo_op op, hlo_inst *(*rule)(hlo_inst *in))
{
    return rewrite(m, NULL, op, (pass_rule){.plain = rule});
}

bool pass_rewrite_for(hlo_module *m, const device_desc *dev,
                      hlo_inst *(*rule)(hlo_inst *in, const device_desc *dev))
{
    return rewrite(m, dev, HLO_OP_COUNT, (pass_rule){.of_device = rule});
}

/* What takes the place of an instruction of a computation that is copied. */
static hlo_inst *copy_of(const hlo_inst *in)
{
    return in->tag;
}

static void set_copy(hlo_inst *in, hlo_inst *copy)
{
    in->tag = copy;
}

hlo_inst *pass_splice(hlo_at p, hlo_comp *c, hlo_inst *const *arg)
{
    hlo_inst **x;
    int cap = 0;

    hlo_for_each_inst(in, c) {
        if (in->op == HLO_PARAMETER)
            set_copy(in, arg[in->u.param.index]);
        cap = SD_MAX(cap, in->narg);
    }
    x = sd_arena_array(c->module->arena, hlo_inst *, cap ? cap : 1);
    hlo_for_each_inst(in, c) {
        if (in->op == HLO_PARAMETER)
            continue;
        for (int i = 0; i < in->narg; i++)
            x[i] = copy_of(in->arg[i]);
        set_copy(in, hlo_inst_clone(p.c, p.before, in, x));
    }
    return copy_of(c->root);
}

bool pass_can_vectorize(const hlo_comp *c)
{
    hlo_for_each_inst(in, c) {
        int cls = hlo_info(in)->cls;

        if (in->op == HLO_TUPLE && in == c->root)
            continue;
        if (in->shape->rank || !sd_shape_is_array(in->shape))
            return false;
        if (in->op != HLO_PARAMETER && in->op != HLO_CONSTANT &&
            cls > HLO_C_CONVERT && in->op != HLO_BITCAST_CONVERT &&
            in->op != HLO_RESHAPE && in->op != HLO_BROADCAST)
            return false;
    }
    return true;
}

hlo_inst *pass_vectorize(hlo_at p, hlo_comp *c, hlo_inst *const *arg,
                         const sd_shape *like)
{
    sd_arena *a = c->module->arena;
    hlo_inst **x;
    int cap = 1;

    hlo_for_each_inst(in, c)
        cap = SD_MAX(cap, in->narg);
    x = sd_arena_array(a, hlo_inst *, cap);
    hlo_for_each_inst(in, c) {
        for (int i = 0; i < in->narg; i++)
            x[i] = copy_of(in->arg[i]);
        if (in->op == HLO_PARAMETER) {
            set_copy(in, arg[in->u.param.index]);
        } else if (in->op == HLO_CONSTANT) {
            set_copy(in,
                     hlo_make_spread(
                         p, hlo_make_constant(p, in->shape, in->u.literal.data),
                         like));
        } else if (in->op == HLO_RESHAPE || in->op == HLO_BROADCAST) {
            set_copy(in, x[0]);
        } else if (in->op == HLO_TUPLE) {
            set_copy(in, hlo_make_tuple(p, in->narg, x));
        } else {
            hlo_inst *y = hlo_inst_clone(p.c, p.before, in, x);

            y->shape =
                sd_shape_make(a, in->shape->dtype, like->rank, like->dim);
            set_copy(in, y);
        }
    }
    return copy_of(c->root);
}

bool pass_has_identity(hlo_op op, sd_dtype t)
{
    sd_kind k = sd_dtype_kind(t);

    switch (op) {
    case HLO_ADD:
    case HLO_MULTIPLY:
        return true;
    case HLO_MAXIMUM:
    case HLO_MINIMUM: /* the small floats have no infinity */
        return k != SD_K_COMPLEX &&
               (k != SD_K_FLOAT || sd_dtype_table[t].bits >= 16);
    case HLO_AND:
    case HLO_OR:
    case HLO_XOR:
        return k == SD_K_PRED || sd_is_int(t);
    default:
        return false;
    }
}

/* The least (sign -1) or greatest value of a type. */
static hlo_inst *make_extreme(hlo_at p, sd_dtype t, int sign)
{
    int bits = sd_dtype_table[t].bits;
    int64_t top;

    switch (sd_dtype_kind(t)) {
    case SD_K_FLOAT:
        return hlo_make_scalar(p, t, sign < 0 ? -INFINITY : INFINITY);
    case SD_K_SINT:
        top = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - 1)) - 1;
        return hlo_make_scalar_s64(p, t, sign < 0 ? -top - 1 : top);
    case SD_K_UINT:
        top = bits == 64 ? -1 : (INT64_C(1) << bits) - 1;
        return hlo_make_scalar_s64(p, t, sign < 0 ? 0 : top);
    default:
        return hlo_make_scalar_s64(p, t, sign > 0);
    }
}

hlo_inst *pass_identity(hlo_at p, hlo_op op, sd_dtype t)
{
    bool real = sd_is_float(t);

    if (!pass_has_identity(op, t))
        return NULL;
    switch (op) {
    case HLO_ADD: /* x + -0 is x for every x, x + 0 is not */
        return hlo_make_scalar(p, t, real ? -0.0 : 0.0);
    case HLO_MULTIPLY:
        return hlo_make_scalar(p, t, 1);
    case HLO_MAXIMUM:
        return make_extreme(p, t, -1);
    case HLO_MINIMUM:
        return make_extreme(p, t, 1);
    case HLO_AND:
        return hlo_make_scalar_s64(p, t, t == SD_PRED ? 1 : -1);
    default:
        return hlo_make_scalar_s64(p, t, 0);
    }
}

hlo_inst *pass_compare_num(hlo_at p, hlo_cmp_dir d, hlo_inst *x, double v)
{
    return hlo_make_compare(p, d, x, hlo_make_fill(p, x->shape, v));
}

hlo_inst *pass_convert(hlo_at p, sd_dtype t, hlo_inst *x)
{
    return pass_dtype(x) == t ? x : hlo_make_convert(p, t, x);
}

hlo_inst *pass_widened(hlo_at p, hlo_inst *x)
{
    return pass_is_narrow(pass_dtype(x)) ? hlo_make_convert(p, SD_F32, x) : x;
}

static void start_at(hlo_at p, int rank, int dim, hlo_inst *at,
                     hlo_inst **start)
{
    hlo_inst *zero = hlo_make_scalar_s64(p, pass_dtype(at), 0);

    for (int i = 0; i < rank; i++)
        start[i] = i == dim ? at : zero;
}

hlo_inst *pass_slice_at(hlo_at p, hlo_inst *x, int dim, hlo_inst *at, int64_t n)
{
    hlo_inst *start[SD_MAX_RANK];
    int64_t size[SD_MAX_RANK];

    start_at(p, x->shape->rank, dim, at, start);
    for (int i = 0; i < x->shape->rank; i++)
        size[i] = i == dim ? n : x->shape->dim[i];
    return hlo_make_dynamic_slice(p, x, start, size);
}

hlo_inst *pass_put_at(hlo_at p, hlo_inst *x, hlo_inst *part, int dim,
                      hlo_inst *at)
{
    hlo_inst *start[SD_MAX_RANK];

    start_at(p, x->shape->rank, dim, at, start);
    return hlo_make_dynamic_update(p, x, part, start);
}

hlo_inst *pass_reshape(hlo_at p, hlo_inst *x, int rank, const int64_t *dim)
{
    if (x->shape->rank == rank &&
        (!rank || !memcmp(x->shape->dim, dim, sizeof *dim * (size_t)rank)))
        return x;
    return hlo_make_reshape(p, x, rank, dim);
}

bool pass_int_const(const hlo_inst *in, int64_t *v)
{
    sd_kind k;

    while (in->op == HLO_BROADCAST || in->op == HLO_RESHAPE ||
           in->op == HLO_BITCAST)
        in = in->arg[0];
    k = sd_dtype_kind(in->shape->dtype);
    if (!hlo_is_splat(in) ||
        (k != SD_K_SINT && k != SD_K_UINT && k != SD_K_PRED))
        return false;
    *v = sd_scalar_to_s64(in->shape->dtype, in->u.literal.data);
    return true;
}

/* ---- computations ---- */

/* An instruction's place in its computation. */
static int64_t *place(hlo_inst *in)
{
    return &in->mark;
}

/* In step: equal computations have equal instructions in equal order. */
bool pass_same_comp(const hlo_comp *x, const hlo_comp *y)
{
    hlo_inst *a = x->first, *b = y->first;
    int64_t n = 0;

    if (x == y)
        return true;
    if (x->nparam != y->nparam)
        return false;
    for (; a && b; a = a->next, b = b->next, n++) {
        if (a->narg != b->narg || a->ncomp || b->ncomp ||
            !sd_shape_equal(a->shape, b->shape) || !hlo_same_attributes(a, b))
            return false;
        for (int i = 0; i < a->narg; i++)
            if (*place(a->arg[i]) != *place(b->arg[i]))
                return false;
        *place(a) = *place(b) = n;
    }
    return !a && !b && *place(x->root) == *place(y->root);
}

bool pass_own_comps(hlo_inst *in)
{
    hlo_module *m = in->parent->module;
    hlo_comp **own = NULL;

    for (int i = 0; i < in->ncomp; i++) {
        if (in->comp[i]->ncaller <= 1)
            continue;
        if (!own) {
            own = sd_arena_array(m->arena, hlo_comp *, in->ncomp);
            memcpy(own, in->comp, sizeof *own * (size_t)in->ncomp);
        }
        own[i] = hlo_comp_clone(m, in->comp[i], in->comp[i]->name);
    }
    if (own)
        hlo_set_comps(in, in->ncomp, own);
    return own != NULL;
}
