/* A product whose results are few tiles has too little to do at once on a GPU:
 * it becomes a batch of products, of a piece of its sums each, and what adds
 * the pieces.
 *
 * Where matrix instructions take it the order of its sums is theirs, so how
 * many pieces there are follows from what the device has to do.  Elsewhere
 * pieces are plan's chains (plan_cut_chains in plan_blocks.c): all but the last
 * have CHAIN terms, and they are added from the first on, as a kernel that has
 * all of them does, so such a sum has the same bits cut or not.  A reduce would
 * add more than 16 of them in another order; a reduce-window adds in order.
 * What the last piece lacks is zeros in both operands.
 *
 * A convolution's pieces are groups of its input features, each with results of
 * its own: of the gradient of a window the features are the images.  Groups of
 * features (depthwise) are groups of the batch there, and pieces more of those.
 * Not all of them are of 16 rows and more, as matrix instructions want it;
 * their order is free as well. */
#include "terms.h"

#include <math.h>
#include <string.h>

enum {
    CHAIN = 256, /* terms of a sum */
    LEAST_TERMS = 1024, /* of a sum that is worth a second kernel */
    MOST_RESULTS = 1 << 16,
    LEAST_ROWS = 2, /* or columns of what matrix instructions take, and */
    LEAST_COLUMNS = 16, /* along the other side; of a group of features, too */
    TILE = 128, /* rows and columns of a group of items, */
    SMALL_TILE = 64, /* where there are so many; it takes a part of a unit */
    LEAST_IMAGE = 256, /* terms of an image's sum that is worth a result */
    IMAGE_TILES = 256, /* small tiles of groups of images, at most */
    LINE = 128, /* bytes of a row that a group of items reads in a step */
    MOST_PIECES = 1024,
    /* In the time of a step: what it takes to write a tile's results and to
     * read them again, and to start the kernel that adds. */
    ADDING = 4,
    STARTING = 8
};

/* ---- into how many pieces? ---- */

typedef struct {
    double rows, columns, batch; /* of results */
    int64_t terms, step; /* of a sum, and those of a step */
    int64_t cut, unit; /* what is divided evenly into pieces, which have a
                          multiple of so many */
} work;

static double tile_of(double n)
{
    return n >= TILE ? TILE : SMALL_TILE;
}

/* How long n pieces take, in steps. */
static double time_of(const device_desc *dev, const work *w, int64_t n)
{
    double m = tile_of(w->rows), k = tile_of(w->columns);
    double share = m * k / (TILE * TILE);
    double groups =
        ceil(w->rows / m) * ceil(w->columns / k) * w->batch * (double)n * share;
    double turns = SD_MAX(ceil(groups / dev->units), share);

    return turns * (double)w->terms / (double)(n * w->step) +
           (n > 1 ? ADDING * groups / dev->units + STARTING : 0);
}

/* 1: one that is not cut takes not much longer. */
static int64_t pieces_of(const device_desc *dev, const work *w)
{
    double whole = time_of(dev, w, 1), least = 0.75 * whole;
    int64_t best = 1;

    for (int64_t n = 2;
         n <= MOST_PIECES && n <= w->cut / w->unit && w->terms / n >= CHAIN;
         n++)
        if (w->cut % (n * w->unit) == 0 && time_of(dev, w, n) < least) {
            least = time_of(dev, w, n);
            best = n;
        }
    return best;
}

static int64_t step_of(const hlo_inst *in)
{
    return LINE / (int64_t)sd_dtype_bytes(pass_dtype(in->arg[0]));
}

static sd_dtype sum_of(const hlo_inst *in)
{
    sd_dtype t = pass_dtype(in);

    return pass_is_narrow(t) ? SD_F32 : t;
}

/* Is the order of a product's sums free?  Of whole numbers it does not show,
 * and matrix instructions, which add in f32, have their own. */
static bool adds_as_it_likes(const device_desc *dev, const hlo_inst *in)
{
    sd_dtype t = pass_dtype(in->arg[0]), sum = sum_of(in);

    if (t == SD_S8 || t == SD_U8)
        return sd_is_int(sum);
    if (sum != SD_F32)
        return false;
    if (t == SD_F32)
        return pass_may_round(dev, in);
    return (t == SD_BF16 || t == SD_F16) && dev->features & DEVICE_HAS_MMA;
}

/* ---- products ---- */

/* x with its dimension d cut into n pieces. */
static hlo_inst *in_pieces(hlo_at p, hlo_inst *x, int d, int64_t n,
                           int64_t piece)
{
    x = hlo_make_pad_dim(p, x, NULL, d, 0, n * piece - x->shape->dim[d]);
    return hlo_make_split(p, x, d, n, piece);
}

/* The batch dimensions of an operand that is cut at d, and the pieces' behind
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

static bool has_room(const hlo_inst *in)
{
    return in->arg[0]->shape->rank < SD_MAX_RANK &&
           in->arg[1]->shape->rank < SD_MAX_RANK &&
           in->shape->rank < SD_MAX_RANK;
}

/* Elements of an operand for each of a batch and of a sum. */
static double own_of(const hlo_inst *x, hlo_dims batch, int64_t deep)
{
    double n = 1;

    for (int d = 0; d < x->shape->rank; d++)
        if (d != deep && !hlo_dims_hold(batch, d))
            n *= (double)x->shape->dim[d];
    return n;
}

static work work_of_dot(const hlo_inst *in)
{
    const hlo_dot *d = in->u.dot;
    work w = {.terms = in->arg[0]->shape->dim[d->lhs_contract.at[0]],
              .rows = own_of(in->arg[0], d->lhs_batch, d->lhs_contract.at[0]),
              .columns =
                  own_of(in->arg[1], d->rhs_batch, d->rhs_contract.at[0]),
              .step = step_of(in),
              .batch = 1};

    for (int i = 0; i < d->lhs_batch.n; i++)
        w.batch *= (double)in->shape->dim[i];
    w.unit = w.terms % w.step ? 1 : w.step;
    w.cut = w.terms;
    return w;
}

/* The terms of a piece; 0: the product is not cut. */
static int64_t piece_of_dot(const hlo_inst *in, const device_desc *dev)
{
    work w = work_of_dot(in);
    sd_dtype t = pass_dtype(in->arg[0]);
    int64_t n;

    if (w.terms < LEAST_TERMS)
        return 0;
    if (SD_MIN(w.rows, w.columns) < LEAST_ROWS ||
        SD_MAX(w.rows, w.columns) < LEAST_COLUMNS ||
        pass_dtype(in->arg[1]) != t || !adds_as_it_likes(dev, in))
        return sd_shape_count(in->shape) <= MOST_RESULTS ? CHAIN : 0;
    if (w.unit == 1) /* zeros fill the last piece */
        w.cut = (w.terms + CHAIN - 1) / CHAIN * CHAIN;
    n = pieces_of(dev, &w);
    return n == 1 ? 0 : w.cut / n;
}

static hlo_inst *as_result(hlo_inst *in, hlo_inst *x)
{
    hlo_at p = pass_at(in);

    return pass_convert(p, pass_dtype(in),
                        pass_reshape(p, x, in->shape->rank, in->shape->dim));
}

static hlo_inst *split_dot(hlo_inst *in, int64_t piece)
{
    sd_arena *a = in->parent->module->arena;
    hlo_at p = pass_at(in);
    hlo_dot d = *in->u.dot;
    int64_t lhs = d.lhs_contract.at[0], rhs = d.rhs_contract.at[0];
    int64_t n = (in->arg[0]->shape->dim[lhs] + piece - 1) / piece;
    hlo_inst *x = in_pieces(p, in->arg[0], (int)lhs, n, piece),
             *y = in_pieces(p, in->arg[1], (int)rhs, n, piece);

    d.lhs_batch = batch_of(a, d.lhs_batch, lhs);
    d.rhs_batch = batch_of(a, d.rhs_batch, rhs);
    lhs++;
    rhs++;
    d.lhs_contract = hlo_dims_copy(a, &lhs, 1);
    d.rhs_contract = hlo_dims_copy(a, &rhs, 1);
    x = hlo_make_dot(p, x, y, sum_of(in), &d);
    return as_result(in, add_in_order(p, x, d.lhs_batch.n - 1));
}

/* ---- convolutions ---- */

/* Terms of a sum for each input feature. */
static int64_t window_of(const hlo_conv *c)
{
    int64_t n = 1;

    for (int i = 0; i < c->nspatial; i++)
        n *= c->win[i].size;
    return n;
}

/* Groups of features that lie side by side, which are read a step at a time. */
static int64_t groups_of_features(const hlo_inst *in, const hlo_conv *c,
                                  const device_desc *dev)
{
    int64_t features = in->arg[1]->shape->dim[c->k_in];
    work w = {.columns = (double)in->shape->dim[c->out_feature],
              .batch = 1,
              .terms = features * window_of(c),
              .step = step_of(in),
              .cut = features,
              .unit = features % step_of(in) ? 1 : step_of(in)};

    w.rows = (double)sd_shape_count(in->shape) / w.columns;
    return w.terms < LEAST_TERMS || w.columns < LEAST_COLUMNS
               ? 1
               : pieces_of(dev, &w);
}

/* Groups of images, which are the features of a window's gradient: few results,
 * each of many terms of an image, which are read one by one. */
static int64_t groups_of_images(const hlo_inst *in, const hlo_conv *c)
{
    int64_t images = in->arg[1]->shape->dim[c->k_in], terms = window_of(c), n;
    int64_t columns = in->shape->dim[c->out_feature];
    int64_t rows = sd_shape_count(in->shape) / columns, tiles;

    if (terms < LEAST_IMAGE || terms * images < LEAST_TERMS)
        return 1;
    tiles = ((rows + SMALL_TILE - 1) / SMALL_TILE) *
            ((columns + SMALL_TILE - 1) / SMALL_TILE);
    for (n = SD_MIN(images, IMAGE_TILES / tiles); n > 1 && images % n; n--)
        ;
    return SD_MAX(n, 1);
}

/* How long n groups take wgmma, in steps of tiles of 128 x 128: one of half as
 * many columns takes three quarters of that, and one of twice as many half as
 * long again, since a step waits for what is copied. */
static double time_of_wide(const device_desc *dev, const work *w, int64_t n)
{
    double least = 1e300, sums = w->rows * w->columns * (double)n;

    for (int c = DEVICE_WIDE_COLUMNS; c <= 2 * TILE && c <= w->columns;
         c *= 2) {
        double tiles = ceil(w->rows / TILE) * ceil(w->columns / c) * (double)n;
        double step = 0.5 + (double)c / (2 * TILE);

        least = SD_MIN(least, ceil(tiles / dev->units) * step);
    }
    return least * (double)w->terms / (double)(n * w->step) +
           ADDING * sums / (TILE * TILE) / dev->units;
}

/* Can n groups of images be copied as plan_operands_window.c copies them for
 * wgmma, and have they tiles for enough units?  *row: of a group, filled. */
static bool suits_wide(const hlo_inst *in, const device_desc *dev, int64_t n,
                       const work *w, int64_t *row)
{
    const hlo_conv *c = in->u.conv;
    int64_t images = in->arg[1]->shape->dim[c->k_in],
            bytes = (int64_t)sd_dtype_bytes(pass_dtype(in->arg[0]));

    if (images % n || !device_fills_wide(dev, w->rows * w->columns * (double)n))
        return false;
    *row = device_wide_row(c->win[c->nspatial - 1].size, images / n, w->step);
    return *row && (bytes == 2 || images / n * bytes % dev->access == 0);
}

/* The same for wgmma; 0: it does not take it. */
static int64_t groups_for_wide(const hlo_inst *in, const hlo_conv *c,
                               const device_desc *dev)
{
    int64_t images = in->arg[1]->shape->dim[c->k_in], best = 0, row;
    work w = {.columns = (double)in->shape->dim[c->out_feature],
              .step = step_of(in)};
    double least = 1e300;

    w.rows = (double)sd_shape_count(in->shape) / w.columns;
    for (int64_t n = 1; n <= images && n <= MOST_PIECES; n++) {
        double time;

        if (!suits_wide(in, dev, n, &w, &row))
            continue;
        w.terms = window_of(c) / c->win[c->nspatial - 1].size * row * images;
        time = time_of_wide(dev, &w, n);
        if (time < least) {
            least = time;
            best = n;
        }
    }
    return best;
}

/* Do the features of 16 bits fill accesses?  They lie side by side. */
static bool fills_accesses(const hlo_inst *in, const hlo_conv *c,
                           const device_desc *dev)
{
    int64_t bytes = (int64_t)sd_dtype_bytes(pass_dtype(in->arg[0]));

    return bytes != 2 ||
           (in->shape->dim[c->out_batch] * bytes % dev->access == 0 &&
            in->shape->dim[c->out_feature] * bytes % dev->access == 0);
}

/* Is it a gradient, whose window has more positions than its result, that wgmma
 * can take? */
static bool is_for_wide(const hlo_inst *in, const hlo_conv *c,
                        const device_desc *dev)
{
    int64_t columns = in->shape->dim[c->out_feature], places = 1;

    for (int i = 0; i < c->nspatial; i++) {
        if (c->win[i].base_dilation > 1 || c->win[i].reversal)
            return false;
        places *= in->shape->dim[c->out_spatial.at[i]];
    }
    return dev->features & DEVICE_HAS_WGMMA && window_of(c) > places &&
           places > 1 && sd_is_float(pass_dtype(in->arg[0])) &&
           pass_dtype(in->arg[1]) == pass_dtype(in->arg[0]) &&
           fills_accesses(in, c, dev) && columns >= DEVICE_WIDE_COLUMNS &&
           sd_shape_count(in->shape) / columns >= DEVICE_WIDE_ROWS;
}

/* trimmed: operands of f32 are rounded to tf32 where they are written anew. */
static hlo_inst *split_conv(hlo_inst *in, int64_t n, bool trimmed)
{
    sd_arena *a = in->parent->module->arena;
    hlo_at p = pass_at(in);
    hlo_conv c = *in->u.conv;
    int d = (int)c.out_feature;
    int64_t each = in->shape->dim[d];
    hlo_inst *arg[2], *x;

    for (int i = 0; i < 2; i++) {
        arg[i] = trimmed ? hlo_make_trimmed(p, in->arg[i]) : in->arg[i];
        c.prec[i] = trimmed ? HLO_PREC_TF32 : c.prec[i];
    }
    /* a group has its part of k_in, and all of k_out */
    arg[1] = hlo_make_parts_along(p, arg[1], c.k_in, n, c.k_out);
    if (c.batch_groups > 1) { /* which have no feature groups beside them */
        arg[0] = hlo_make_parts_along(p, arg[0], c.in_feature, n, c.in_batch);
        c.batch_groups *= n;
    } else {
        c.feature_groups = n;
    }
    x = hlo_inst_clone(in->parent, in, in, arg);
    x->shape = sd_shape_with(a, sd_shape_with_dim(a, in->shape, d, n * each),
                             sum_of(in));
    x->u.conv = sd_arena_copy(a, &c, sizeof c);
    x = hlo_make_split(p, x, d, n, each);
    return as_result(in, add_in_order(p, x, d));
}

/* In n groups, and f32 rounded; NULL: it is so already. */
static hlo_inst *for_wide(hlo_inst *in, int64_t n)
{
    bool trimmed = pass_dtype(in->arg[0]) == SD_F32 &&
                   in->u.conv->prec[1] != HLO_PREC_TF32;

    return n > 1 || trimmed ? split_conv(in, n, trimmed) : NULL;
}

/* ---- gradients that are one kernel ---- */

static hlo_places places_of(const hlo_inst *in, const hlo_conv *c)
{
    const sd_shape *x = in->arg[0]->shape, *y = in->arg[1]->shape;
    hlo_places w = {.pieces = 1,
                    .images = x->dim[c->in_feature],
                    .features = x->dim[c->in_batch],
                    .each = (int64_t)sd_dtype_bytes(pass_dtype(in->arg[0])),
                    .own = y->dim[c->k_out]};

    for (int i = 0; i < 2; i++) {
        w.size[i] = x->dim[c->in_spatial.at[i]];
        w.of[i] = y->dim[c->k_spatial.at[i]];
        w.place[i] = in->shape->dim[c->out_spatial.at[i]];
        w.low[i] = c->win[i].pad_low;
    }
    return w;
}

static double blocks_of(int64_t features)
{
    return ceil((double)features / HLO_PLACES_FEATURES);
}

/* How long n pieces take: units go through their steps' positions, and in the
 * time of one MOVED bytes a unit of sums are written, or read again. */
static double time_of_places(const device_desc *dev, const hlo_places *w,
                             const hlo_places_step *s, int64_t n)
{
    enum { MOVED = 2048 };
    double blocks = blocks_of(w->features) * blocks_of(w->own);
    double sums = (double)(w->place[0] * w->place[1] * n) *
                  (double)(w->features * w->own);

    return ceil(blocks * (double)n / dev->units) *
               ceil((double)s->steps / (double)n) * (double)s->y_units +
           sums * 2 * sizeof(float) / (dev->units * (double)MOVED);
}

static int64_t pieces_of_places(const device_desc *dev, const hlo_places *w,
                                const hlo_places_step *s)
{
    int64_t best = 1, sums = w->place[0] * w->place[1] * w->features * w->own;

    for (int64_t n = 2;
         n <= s->steps && n <= MOST_PIECES && n <= HLO_PLACES_MOST / sums; n++)
        if (time_of_places(dev, w, s, n) < time_of_places(dev, w, s, best))
            best = n;
    return best;
}

/* Are features enough of whole blocks, and is there a group for most units? */
static bool fills_units(const device_desc *dev, const hlo_places *w,
                        const hlo_places_step *s)
{
    double blocks = blocks_of(w->features) * blocks_of(w->own);

    return blocks * HLO_PLACES_FEATURES * HLO_PLACES_FEATURES * 2 <=
               3.0 * (double)(w->features * w->own) &&
           blocks * (double)s->steps >= 2.0 * dev->units;
}

static hlo_inst *turned(hlo_at p, hlo_inst *x, const int64_t *perm)
{
    for (int i = 0; i < x->shape->rank; i++)
        if (perm[i] != i)
            return hlo_make_transpose(p, x, perm);
    return x;
}

static hlo_inst *make_call(hlo_inst *in, const hlo_conv *c, const hlo_places *w)
{
    sd_arena *a = in->parent->module->arena;
    hlo_at p = pass_at(in);
    hlo_custom *u = sd_arena_new(a, hlo_custom);
    int64_t dim[] = {w->pieces, w->place[0], w->place[1], w->features, w->own};
    int64_t x[] = {c->in_feature, c->in_spatial.at[0], c->in_spatial.at[1],
                   c->in_batch},
            y[] = {c->k_in, c->k_spatial.at[0], c->k_spatial.at[1], c->k_out};
    hlo_inst *arg[] = {turned(p, in->arg[0], x), turned(p, in->arg[1], y)};
    hlo_inst *call;

    u->target = HLO_CALL_PLACES;
    u->api_version = HLO_TYPED_FFI;
    u->config = sd_arena_fmt(a, "%" PRId64 ",%" PRId64, w->low[0], w->low[1]);
    u->config_len = strlen(u->config);
    call = hlo_inst_create(p.c, p.before, HLO_CUSTOM_CALL,
                           sd_shape_make(a, SD_F32, 5, dim), 2, arg);
    call->u.custom = u;
    hlo_take_source(call, p.like);
    hlo_rename(call, "places");
    return call;
}

static bool is_plain(const hlo_conv *c)
{
    for (int i = 0; i < c->nspatial; i++)
        if (c->win[i].base_dilation > 1 || c->win[i].reversal ||
            c->win[i].window_dilation > 1 || c->win[i].stride > 1)
            return false;
    return c->nspatial == 2;
}

/* The gradient of a window as a call, whose pieces are added; NULL: kernels do
 * not take it, or other ways are as good. */
static hlo_inst *as_places(hlo_inst *in, const hlo_conv *c,
                           const device_desc *dev)
{
    hlo_at p = pass_at(in);
    hlo_places w;
    hlo_places_step s;
    hlo_inst *x;
    int64_t back[4];

    if (!(dev->features & DEVICE_HAS_WGMMA) || !is_plain(c) ||
        pass_dtype(in->arg[1]) != pass_dtype(in->arg[0]))
        return NULL;
    w = places_of(in, c);
    if (!hlo_places_fits(pass_dtype(in->arg[0]), &w) ||
        !hlo_places_cut(&w, dev->local_most, &s) || !fills_units(dev, &w, &s))
        return NULL;
    w.pieces = pieces_of_places(dev, &w, &s);
    x = add_in_order(p, make_call(in, c, &w), 0);
    x = pass_reshape(p, x, 4, x->shape->dim + 1);
    for (int i = 0; i < 2; i++)
        back[c->out_spatial.at[i]] = i;
    back[c->out_batch] = 2;
    back[c->out_feature] = 3;
    return as_result(in, turned(p, x, back));
}

static hlo_inst *split_product(hlo_inst *in, const device_desc *dev)
{
    hlo_inst *places;
    const hlo_conv *c = in->op == HLO_CONVOLUTION ? in->u.conv : NULL;
    int64_t n;

    if (in->op == HLO_DOT && in->u.dot->lhs_contract.n == 1 && has_room(in) &&
        !sd_is_complex(pass_dtype(in))) {
        n = piece_of_dot(in, dev);
        return n ? split_dot(in, n) : NULL;
    }
    if (!c || c->feature_groups != 1 || in->shape->rank == SD_MAX_RANK ||
        !adds_as_it_likes(dev, in))
        return NULL;
    if (c->batch_groups > 1) {
        n = groups_of_images(in, c);
        return n > 1 ? split_conv(in, n, false) : NULL;
    }
    if (c->in_feature == in->arg[0]->shape->rank - 1) {
        n = groups_of_features(in, c, dev);
        return n > 1 ? split_conv(in, n, false) : NULL;
    }
    if ((places = as_places(in, c, dev)))
        return places;
    n = is_for_wide(in, c, dev) ? groups_for_wide(in, c, dev) : 0;
    if (n)
        return for_wide(in, n);
    n = groups_of_images(in, c);
    return n > 1 ? split_conv(in, n, false) : NULL;
}

bool hlo_split_products(hlo_module *m, const device_desc *dev)
{
    return dev->kind == DEVICE_CUDA && pass_rewrite_for(m, dev, split_product);
}
