/* batch-norm-* into means, sums and elementwise arithmetic; of narrow floats in
 * f32, since a sum of squares soon is more than they hold. */
#include "terms.h"

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
    return hlo_make_sum(b->p, x, b->dims, b->n);
}

static hlo_inst *mean(const norm *b, hlo_inst *x)
{
    hlo_inst *s = sum(b, x);

    return t_div(b->p, s, t_fill(b->p, s, b->count));
}

static hlo_inst *deviation(const norm *b, hlo_inst *variance)
{
    hlo_inst *v =
        t_add(b->p, variance, t_fill(b->p, variance, b->in->u.norm.epsilon));

    return t_unary(b->p, HLO_SQRT, v);
}

static hlo_inst *normalize(const norm *b, hlo_inst *scale, hlo_inst *offset,
                           hlo_inst *mu, hlo_inst *variance)
{
    hlo_inst *y = t_sub(b->p, b->x, spread(b, mu));

    y = t_div(b->p, y, spread(b, deviation(b, variance)));
    y = t_mul(b->p, y, spread(b, scale));
    return t_add(b->p, y, spread(b, offset));
}

static hlo_inst *lower_training(const norm *b)
{
    hlo_inst *mu = mean(b, b->x);
    hlo_inst *d = t_sub(b->p, b->x, spread(b, mu));
    hlo_inst *variance = mean(b, t_mul(b->p, d, d));
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
    hlo_inst *d = t_sub(b->p, b->x, spread(b, mu));
    hlo_inst *sum_dy = sum(b, dy);
    hlo_inst *sum_dyd = sum(b, t_mul(b->p, dy, d));
    hlo_inst *k = t_div(b->p, sum_dyd, t_mul(b->p, s, s));
    hlo_inst *dx = t_mul(b->p, dy, t_fill(b->p, dy, b->count));

    dx = t_sub(b->p, dx, spread(b, sum_dy));
    dx = t_sub(b->p, dx, t_mul(b->p, d, spread(b, k)));
    k = t_div(b->p, scale, s);
    k = t_div(b->p, k, t_fill(b->p, k, b->count));
    dx = t_mul(b->p, dx, spread(b, k));
    hlo_inst *out[] = {dx, t_div(b->p, sum_dyd, s), sum_dy};

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
