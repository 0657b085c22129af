/* A product of few results and long sums has too little to do at once on a GPU:
 * it becomes a batch of products, of a chain of its sums each, and what adds
 * the chains.  Chains are plan's (plan_cut_chains in plan_blocks.c), so all but
 * the last have CHAIN terms, and they are added from the first on, as a kernel
 * that has all of them does: such a sum has the same bits cut or not.  A reduce
 * would add more than 16 of them in another order; a reduce-window adds in
 * order. What the last chain lacks is zeros in both operands.
 *
 * The gradient of a convolution's window is a convolution whose features are
 * the images.  It becomes one of groups of images, each with a result of its
 * own, and what adds these: another order of the sum, which is free where the
 * types and the precision let matrix instructions do it, whether they do (of 16
 * rows and more) or not. */
#include "terms.h"

enum {
    CHAIN = 256, /* terms of a sum */
    LEAST_TERMS = 1024, /* of a sum that is worth a second kernel */
    MOST_RESULTS = 1 << 16,
    LEAST_IMAGE = 256, /* terms of an image's sum that is worth a result */
    TILE = 64, /* results of a group of items along a side, */
    TILES = 256 /* and as many groups as there are with groups of images */
};

/* ---- products ---- */

/* x with its dimension d cut into chains. */
static hlo_inst *in_chains(hlo_at p, hlo_inst *x, int d, int64_t nchain)
{
    x = hlo_make_pad_dim(p, x, NULL, d, 0, nchain * CHAIN - x->shape->dim[d]);
    return hlo_make_split(p, x, d, nchain, CHAIN);
}

/* The batch dimensions of an operand that is cut at d, and the chains' behind
 * them. */
static hlo_dims batch_of(sd_arena *a, hlo_dims was, int64_t d)
{
    int64_t at[SD_MAX_RANK];

    for (int i = 0; i < was.n; i++)
        at[i] = was.at[i] + (was.at[i] > d);
    at[was.n] = d;
    return hlo_dims_copy(a, at, was.n + 1);
}

/* The sum over dimension d of x, from its first element on. */
static hlo_inst *add_in_order(hlo_at p, hlo_inst *x, int d)
{
    sd_dtype t = pass_dtype(x);
    hlo_inst *arg[] = {x, hlo_make_scalar(p, t, 0)}, *y;
    hlo_comp *add = hlo_scalar_comp(p.c->module, HLO_ADD, t);
    sd_arena *a = p.c->module->arena;
    hlo_window_dim *w = sd_arena_array(a, hlo_window_dim, x->shape->rank);
    int64_t dim[SD_MAX_RANK];

    for (int i = 0; i < x->shape->rank; i++) {
        w[i] = (hlo_window_dim){.size = i == d ? x->shape->dim[i] : 1,
                                .stride = 1,
                                .base_dilation = 1,
                                .window_dilation = 1};
        dim[i] = i == d ? 1 : x->shape->dim[i];
    }
    y = hlo_inst_create(p.c, p.before, HLO_REDUCE_WINDOW,
                        sd_shape_make(a, t, x->shape->rank, dim), 2, arg);
    y->u.window.dim = w;
    y->u.window.n = x->shape->rank;
    hlo_take_source(y, p.like);
    hlo_set_comps(y, 1, &add);
    return y;
}

static bool is_long_dot(const hlo_inst *in)
{
    const hlo_dot *d = in->op == HLO_DOT ? in->u.dot : NULL;
    const sd_shape *x = in->narg ? in->arg[0]->shape : NULL;

    return d && d->lhs_contract.n == 1 && !sd_is_complex(pass_dtype(in)) &&
           x->rank < SD_MAX_RANK && in->arg[1]->shape->rank < SD_MAX_RANK &&
           in->shape->rank < SD_MAX_RANK &&
           x->dim[d->lhs_contract.at[0]] >= LEAST_TERMS &&
           sd_shape_count(in->shape) <= MOST_RESULTS;
}

static sd_dtype sum_of(const hlo_inst *in)
{
    sd_dtype t = pass_dtype(in);

    return pass_is_narrow(t) ? SD_F32 : t;
}

static hlo_inst *as_result(hlo_inst *in, hlo_inst *x)
{
    hlo_at p = pass_at(in);

    return pass_convert(p, pass_dtype(in),
                        pass_reshape(p, x, in->shape->rank, in->shape->dim));
}

static hlo_inst *split_dot(hlo_inst *in)
{
    sd_arena *a = in->parent->module->arena;
    hlo_at p = pass_at(in);
    hlo_dot d = *in->u.dot;
    int64_t lhs = d.lhs_contract.at[0], rhs = d.rhs_contract.at[0];
    int64_t n = (in->arg[0]->shape->dim[lhs] + CHAIN - 1) / CHAIN;
    hlo_inst *x = in_chains(p, in->arg[0], (int)lhs, n),
             *y = in_chains(p, in->arg[1], (int)rhs, n);

    d.lhs_batch = batch_of(a, d.lhs_batch, lhs);
    d.rhs_batch = batch_of(a, d.rhs_batch, rhs);
    lhs++;
    rhs++;
    d.lhs_contract = hlo_dims_copy(a, &lhs, 1);
    d.rhs_contract = hlo_dims_copy(a, &rhs, 1);
    x = hlo_make_dot(p, x, y, sum_of(in), &d);
    return as_result(in, add_in_order(p, x, d.lhs_batch.n - 1));
}

/* ---- gradients of windows ---- */

/* Is a sum's order free?  Of whole numbers it does not show, and matrix
 * instructions have their own. */
static bool adds_as_it_likes(const device_desc *dev, sd_dtype t,
                             const hlo_prec *prec)
{
    if (t == SD_S8 || t == SD_U8)
        return true;
    if (t == SD_F32)
        return dev->features & DEVICE_HAS_TF32 && prec[0] != HLO_PREC_HIGHEST &&
               prec[1] != HLO_PREC_HIGHEST;
    return (t == SD_BF16 || t == SD_F16) && dev->features & DEVICE_HAS_MMA;
}

/* Into so many groups its images, c's input features, are to be divided: 1 if
 * they stay together. */
static int64_t groups_of(const hlo_inst *in, const hlo_conv *c)
{
    int64_t images = in->arg[1]->shape->dim[c->k_in], terms = 1, n;
    int64_t columns = in->shape->dim[c->out_feature];
    int64_t rows = sd_shape_count(in->shape) / columns, tiles;

    for (int i = 0; i < c->nspatial; i++)
        terms *= c->win[i].size;
    if (terms < LEAST_IMAGE || terms * images < LEAST_TERMS)
        return 1;
    tiles = ((rows + TILE - 1) / TILE) * ((columns + TILE - 1) / TILE);
    for (n = SD_MIN(images, TILES / tiles); n > 1 && images % n; n--)
        ;
    return SD_MAX(n, 1);
}

static hlo_inst *split_conv(hlo_inst *in, int64_t n)
{
    sd_arena *a = in->parent->module->arena;
    hlo_at p = pass_at(in);
    hlo_conv c = *in->u.conv;
    int d = (int)c.out_feature;
    int64_t each = in->shape->dim[d];
    hlo_inst *arg[2] = {in->arg[0]}, *x;

    /* a group has its part of k_in, and all of k_out */
    arg[1] = hlo_make_parts_along(p, in->arg[1], c.k_in, n, c.k_out);
    c.feature_groups = n;
    x = hlo_inst_clone(in->parent, in, in, arg);
    x->shape = sd_shape_with(a, sd_shape_with_dim(a, in->shape, d, n * each),
                             sum_of(in));
    x->u.conv = sd_arena_copy(a, &c, sizeof c);
    x = hlo_make_split(p, x, d, n, each);
    return as_result(in, add_in_order(p, x, d));
}

static hlo_inst *split_product(hlo_inst *in, const device_desc *dev)
{
    const hlo_conv *c = in->op == HLO_CONVOLUTION ? in->u.conv : NULL;
    int64_t n;

    if (is_long_dot(in))
        return split_dot(in);
    if (!c || c->feature_groups != 1 || c->batch_groups != 1 ||
        in->shape->rank == SD_MAX_RANK ||
        !adds_as_it_likes(dev, pass_dtype(in->arg[0]), c->prec))
        return NULL;
    n = groups_of(in, c);
    return n > 1 ? split_conv(in, n) : NULL;
}

bool hlo_split_products(hlo_module *m, const device_desc *dev)
{
    return dev->kind == DEVICE_CUDA &&
           pass_rewrite_for(m, dev, HLO_OP_COUNT, split_product);
}
