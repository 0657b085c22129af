/* batch-norm-* into means, sums and elementwise arithmetic; of narrow floats in
 * f32, since a sum of squares soon is more than they hold. */
#include "passes_priv.h"

typedef struct {
    hlo_at p;
    hlo_inst *in, *arg[5], *x; /* in the type worked in; x is the first */
    int64_t feature, dims[SD_MAX_RANK];
    int n;
    double count; /* elements of a feature */
} norm;

static void read_norm(hlo_inst *in, norm *b)
{
    const sd_shape *s = in->arg[0]->shape;

    *b = (norm){
        .p = pass_at(in), .in = in, .feature = in->u.norm.feature, .count = 1};
    for (int i = 0; i < in->narg; i++)
        b->arg[i] = pass_widened(b->p, in->arg[i]);
    b->x = b->arg[0];
    for (int i = 0; i < s->rank; i++)
        if (i != b->feature) {
            b->dims[b->n++] = i;
            b->count *= (double)s->dim[i];
        }
}

static hlo_inst *bin(const norm *b, hlo_op op, hlo_inst *x, hlo_inst *y)
{
    return hlo_make_binary(b->p, op, x, y);
}

static hlo_inst *fill(const norm *b, const hlo_inst *like, double v)
{
    return hlo_make_fill(b->p, like->shape, v);
}

/* In the types of the instruction's. */
static hlo_inst *results(const norm *b, hlo_inst **x)
{
    for (int i = 0; i < b->in->shape->nelem; i++)
        x[i] = pass_convert(b->p, b->in->shape->elem[i]->dtype, x[i]);
    return hlo_make_tuple(b->p, b->in->shape->nelem, x);
}

/* one value a feature, for each element */
static hlo_inst *spread(const norm *b, hlo_inst *v)
{
    return hlo_make_broadcast(b->p, v, b->x->shape, &b->feature, 1);
}

static hlo_inst *sum(const norm *b, hlo_inst *x)
{
    sd_dtype t = pass_dtype(x);

    return hlo_make_reduce(b->p, x, hlo_make_scalar(b->p, t, 0), b->dims, b->n,
                           hlo_scalar_comp(b->p.c->module, HLO_ADD, t));
}

static hlo_inst *mean(const norm *b, hlo_inst *x)
{
    hlo_inst *s = sum(b, x);

    return bin(b, HLO_DIVIDE, s, fill(b, s, b->count));
}

static hlo_inst *deviation(const norm *b, hlo_inst *variance)
{
    hlo_inst *v =
        bin(b, HLO_ADD, variance, fill(b, variance, b->in->u.norm.epsilon));

    return hlo_make_unary(b->p, HLO_SQRT, v);
}

static hlo_inst *normalize(const norm *b, hlo_inst *scale, hlo_inst *offset,
                           hlo_inst *mu, hlo_inst *variance)
{
    hlo_inst *y = bin(b, HLO_SUBTRACT, b->x, spread(b, mu));

    y = bin(b, HLO_DIVIDE, y, spread(b, deviation(b, variance)));
    y = bin(b, HLO_MULTIPLY, y, spread(b, scale));
    return bin(b, HLO_ADD, y, spread(b, offset));
}

static hlo_inst *lower_training(const norm *b)
{
    hlo_inst *mu = mean(b, b->x);
    hlo_inst *d = bin(b, HLO_SUBTRACT, b->x, spread(b, mu));
    hlo_inst *variance = mean(b, bin(b, HLO_MULTIPLY, d, d));
    hlo_inst *out[] = {normalize(b, b->arg[1], b->arg[2], mu, variance), mu,
                       variance};

    return results(b, out);
}

/* With s = sqrt(var + eps), d = x - mean:
 *   grad_scale = sum(dy * d) / s, grad_offset = sum(dy),
 *   dx = scale / s / n * (n * dy - sum(dy) - d * sum(dy * d) / (var + eps)) */
static hlo_inst *lower_grad(const norm *b)
{
    hlo_inst *scale = b->arg[1], *mu = b->arg[2];
    hlo_inst *variance = b->arg[3], *dy = b->arg[4];
    hlo_inst *s = deviation(b, variance);
    hlo_inst *d = bin(b, HLO_SUBTRACT, b->x, spread(b, mu));
    hlo_inst *sum_dy = sum(b, dy);
    hlo_inst *sum_dyd = sum(b, bin(b, HLO_MULTIPLY, dy, d));
    hlo_inst *k = bin(b, HLO_DIVIDE, sum_dyd, bin(b, HLO_MULTIPLY, s, s));
    hlo_inst *dx = bin(b, HLO_MULTIPLY, dy, fill(b, dy, b->count));

    dx = bin(b, HLO_SUBTRACT, dx, spread(b, sum_dy));
    dx = bin(b, HLO_SUBTRACT, dx, bin(b, HLO_MULTIPLY, d, spread(b, k)));
    k = bin(b, HLO_DIVIDE, scale, s);
    k = bin(b, HLO_DIVIDE, k, fill(b, k, b->count));
    dx = bin(b, HLO_MULTIPLY, dx, spread(b, k));
    hlo_inst *out[] = {dx, bin(b, HLO_DIVIDE, sum_dyd, s), sum_dy};

    return results(b, out);
}

hlo_inst *hlo_lower_norms(hlo_inst *in)
{
    norm b;

    if (hlo_info(in)->cls != HLO_C_NORM)
        return NULL;
    read_norm(in, &b);
    switch (in->op) {
    case HLO_BATCH_NORM_TRAINING:
        return lower_training(&b);
    case HLO_BATCH_NORM_GRAD:
        return lower_grad(&b);
    default:
        return pass_convert(
            b.p, pass_dtype(in),
            normalize(&b, b.arg[1], b.arg[2], b.arg[3], b.arg[4]));
    }
}
