/* Images for a GPU's matrix engine (plan_operands.c): features last, or rows of
 * the window where there are few. */
#include "plan_operands.h"

enum {
    FEW_ROWS = 8, /* of an instruction */
    PANEL_BYTES = 32 /* of K that an instruction takes */
};

/* ---- features last ---- */

typedef struct {
    int64_t x[SD_MAX_RANK], y[SD_MAX_RANK], sum[SD_MAX_RANK]; /* from where */
    bool copies_x, turns_y, copies_y, turns_sum;
} order;

/* Do the features that are summed come after the positions of the window?  Then
 * they are the last axis of K. */
static bool is_behind(const hlo_conv *c)
{
    for (int i = 0; i < c->nspatial; i++)
        if (c->k_spatial.at[i] > c->k_in)
            return false;
    return true;
}

/* Rows of the engine's instructions are positions of the result's last
 * dimension but one: where an image has few, they are images. */
static order find_order(const hlo_inst *in)
{
    const hlo_conv *c = in->u.conv;
    const int64_t *dim = in->shape->dim;
    int64_t last = in->shape->rank - 1;
    bool few = dim[c->out_spatial.at[c->nspatial - 1]] < FEW_ROWS &&
               dim[c->out_batch] >= FEW_ROWS;
    order o = {.copies_x = c->in_feature != last,
               .turns_sum = c->out_feature != last,
               .turns_y =
                   !is_behind(c) || (c->k_in != last && c->k_out != last),
               .copies_y = c->k_in != last && c->k_out != last};

    if (!o.turns_sum)
        few = c->out_batch == last - 1;
    plan_order_dims(o.x, c->in_batch, c->in_spatial, c->in_feature, few);
    plan_order_dims(o.y, c->k_in, c->k_spatial, c->k_out, true);
    plan_order_dims(o.sum, c->out_batch, c->out_spatial, c->out_feature, few);
    return o;
}

static void turn_x(hlo_at p, hlo_conv *c, hlo_inst **x, const int64_t *perm)
{
    *x = plan_turned_copy(p, *x, perm);
    c->in_batch = hlo_dim_turned(perm, c->in_batch);
    c->in_feature = hlo_dim_turned(perm, c->in_feature);
    c->in_spatial = hlo_dims_turned(p.c->module->arena, perm, c->in_spatial);
}

static void turn_y(hlo_at p, hlo_conv *c, hlo_inst **y, const order *o)
{
    *y = o->copies_y ? plan_turned_copy(p, *y, o->y) : plan_turned(p, *y, o->y);
    c->k_in = hlo_dim_turned(o->y, c->k_in);
    c->k_out = hlo_dim_turned(o->y, c->k_out);
    c->k_spatial = hlo_dims_turned(p.c->module->arena, o->y, c->k_spatial);
}

static const sd_shape *turn_sum(hlo_at p, hlo_conv *c, const sd_shape *s,
                                const int64_t *perm)
{
    int64_t dim[SD_MAX_RANK];

    for (int i = 0; i < s->rank; i++)
        dim[i] = s->dim[perm[i]];
    c->out_batch = hlo_dim_turned(perm, c->out_batch);
    c->out_feature = hlo_dim_turned(perm, c->out_feature);
    c->out_spatial = hlo_dims_turned(p.c->module->arena, perm, c->out_spatial);
    return sd_shape_make(p.c->module->arena, s->dtype, s->rank, dim);
}

/* The convolution c of these in the place of `in`. */
static void replace(hlo_inst *in, hlo_conv *c, hlo_inst *const *arg,
                    const order *o)
{
    hlo_at p = {in->parent, in, in};
    hlo_inst *sum = hlo_inst_clone(in->parent, in, in, arg);
    int64_t back[SD_MAX_RANK];

    sum->u.conv = c;
    if (o->turns_sum)
        sum->shape = turn_sum(p, c, in->shape, o->sum);
    for (int i = 0; i < in->shape->rank; i++)
        back[o->sum[i]] = i;
    hlo_replace(in, o->turns_sum ? plan_turned(p, sum, back) : sum);
    hlo_remove(in);
}

/* One position that is not moved: a product, which has its own ways. */
static bool is_product(const hlo_conv *c)
{
    for (int i = 0; i < c->nspatial; i++)
        if (c->win[i].size > 1 || c->win[i].stride > 1 || c->win[i].pad_low ||
            c->win[i].pad_high)
            return false;
    return true;
}

/* Does the window have more positions than the result?  It is a gradient, whose
 * sums run over the image. */
bool plan_has_long_window(const hlo_inst *in)
{
    const hlo_conv *c = in->u.conv;
    double more = 1;

    for (int i = 0; i < c->nspatial; i++)
        more *= (double)c->win[i].size /
                (double)SD_MAX(in->shape->dim[c->out_spatial.at[i]], 1);
    return more > 1;
}

static double bytes_of(const hlo_inst *in, const order *o)
{
    return (o->copies_x ? plan_copied_bytes(in->arg[0]) : 0) +
           (o->copies_y ? plan_copied_bytes(in->arg[1]) : 0) +
           (o->turns_sum ? plan_copied_bytes(in) : 0);
}

static void put_features_last(hlo_inst *in, const order *o)
{
    hlo_at p = {in->parent, in, in};
    hlo_conv *c = sd_arena_copy(p.c->module->arena, in->u.conv, sizeof *c);
    hlo_inst *arg[2] = {in->arg[0], in->arg[1]};

    if (o->copies_x)
        turn_x(p, c, &arg[0], o->x);
    if (o->turns_y)
        turn_y(p, c, &arg[1], o);
    replace(in, c, arg, o);
}

/* ---- few features ---- */

/* Rows of an image with features last, in which positions and their features
 * are one dimension, and the zeros that the window wants around it, and `more`
 * behind each row. */
static hlo_inst *framed(hlo_at p, const hlo_conv *c, hlo_inst *x,
                        const int64_t *perm, int64_t more)
{
    int64_t low[SD_MAX_RANK] = {0}, high[SD_MAX_RANK] = {0}, dim[SD_MAX_RANK],
            features;
    int last = c->nspatial;

    x = plan_turned(p, x, perm);
    memcpy(dim, x->shape->dim, (size_t)x->shape->rank * sizeof *dim);
    features = dim[last + 1];
    dim[last] *= features;
    for (int i = 0; i < last; i++) {
        low[1 + i] = c->win[i].pad_low * (1 + i == last ? features : 1);
        high[1 + i] = c->win[i].pad_high * (1 + i == last ? features : 1);
    }
    high[last] += more;
    return hlo_make_pad(p, hlo_make_reshape(p, x, last + 1, dim),
                        hlo_make_scalar(p, x->shape->dtype, 0), low, high,
                        NULL);
}

/* Positions [0, n) of the last dimension of x. */
static hlo_inst *first_of(hlo_at p, hlo_inst *x, int64_t n)
{
    return hlo_make_cut(p, x, x->shape->rank - 1, 0, n);
}

hlo_inst *plan_pieces(hlo_at p, hlo_inst *x, int64_t n, int64_t apart,
                      int64_t k)
{
    int last = x->shape->rank - 1;
    int64_t dim[SD_MAX_RANK], from[SD_MAX_RANK], row = x->shape->dim[last];
    const sd_shape *s;

    for (int i = 0; i < last; i++) {
        dim[i] = x->shape->dim[i];
        from[i] = i;
    }
    from[last] = last + 1;
    dim[last] = (n * (row + apart) + row - 1) / row;
    dim[last + 1] = row;
    s = sd_shape_make(p.c->module->arena, x->shape->dtype, last + 2, dim);
    x = hlo_make_broadcast(p, x, s, from, last + 1);
    dim[last] *= row;
    x = first_of(p, hlo_make_reshape(p, x, last + 1, dim), n * (row + apart));
    dim[last] = n;
    dim[last + 1] = row + apart;
    return first_of(p, hlo_make_reshape(p, x, last + 2, dim), k);
}

/* Rows as an engine reads them: of so many bytes, and for a wide one rounded to
 * tf32, which it reads of a window along K alone. */
typedef struct {
    int64_t bytes;
    bool rounds, turns;
} row_kind;

static int64_t full_row(const row_kind *r, int64_t n, sd_dtype t)
{
    return plan_round_up(n, r->bytes / (int64_t)sd_dtype_bytes(t));
}

static hlo_inst *copy_rows(hlo_at p, hlo_inst *x, const row_kind *r)
{
    return plan_copy_of(p, r->rounds ? hlo_make_trimmed(p, x) : x);
}

/* The image as features of rows of the window. */
static hlo_inst *image_in_rows(hlo_at p, const hlo_conv *c, hlo_inst *x,
                               const int64_t *perm, int64_t places,
                               const row_kind *r)
{
    const hlo_window_dim *w = &c->win[c->nspatial - 1];
    int64_t features = x->shape->dim[c->in_feature], k = w->size * features,
            all = full_row(r, k, x->shape->dtype);

    x = framed(p, c, x, perm, all - k); /* a piece ends within its row */
    x = plan_pieces(p, x, places, w->stride * features, k);
    return copy_rows(p, plan_padded(p, x, c->nspatial + 1, all), r);
}

/* The same of the window: one position, of so many more features. */
static hlo_inst *window_in_rows(hlo_at p, const hlo_conv *c, hlo_inst *y,
                                const int64_t *perm, const row_kind *r)
{
    int64_t last = c->nspatial - 1, dim[SD_MAX_RANK];

    if (c->win[last].reversal)
        y = hlo_make_reverse(p, y, &c->k_spatial.at[last], 1);
    y = plan_turned(p, y, perm);
    memcpy(dim, y->shape->dim, (size_t)y->shape->rank * sizeof *dim);
    dim[last + 1] *= dim[last];
    dim[last] = 1;
    y = hlo_make_reshape(p, y, y->shape->rank, dim);
    y = plan_padded(p, y, (int)last + 1,
                    full_row(r, dim[last + 1], y->shape->dtype));
    if (r->turns) {
        int64_t deep[SD_MAX_RANK];

        for (int i = 0; i < y->shape->rank; i++)
            deep[i] = i;
        deep[last + 1] = last + 2;
        deep[last + 2] = last + 1;
        y = hlo_make_transpose(p, y, deep);
    }
    return copy_rows(p, y, r);
}

/* Few features, which no row of the engine's is full of: those of a row of the
 * window are one after another, each place has its own. */
static bool has_few_features(const hlo_inst *in, const device_desc *dev)
{
    const hlo_conv *c = in->u.conv;
    const hlo_window_dim *w = &c->win[c->nspatial - 1];
    int64_t row = in->arg[1]->shape->dim[c->k_in] *
                  (int64_t)sd_dtype_bytes(in->arg[0]->shape->dtype);

    for (int i = 0; i < c->nspatial; i++)
        if (c->win[i].base_dilation > 1)
            return false;
    return row < PLAN_ROW_BYTES &&
           (row % PANEL_BYTES || dev->features & DEVICE_HAS_BLOCK2D) &&
           w->size > 1 && w->window_dilation == 1 && c->feature_groups == 1;
}

static double bytes_in_rows(const hlo_inst *in, const order *o,
                            const row_kind *r)
{
    const hlo_conv *c = in->u.conv;
    const sd_shape *x = in->arg[0]->shape, *y = in->arg[1]->shape;
    int last = c->nspatial - 1;
    int64_t of = y->dim[c->k_in] * c->win[last].size;
    double all = (double)sd_shape_bytes(x);

    return (o->turns_sum ? plan_copied_bytes(in) : 0) + all +
           all /
               (double)SD_MAX(
                   x->dim[c->in_feature] * x->dim[c->in_spatial.at[last]], 1) *
               (double)(full_row(r, of, x->dtype) *
                        in->shape->dim[c->out_spatial.at[last]]);
}

static void put_in_rows(hlo_inst *in, order *o, const row_kind *r)
{
    hlo_at p = {in->parent, in, in};
    sd_arena *a = p.c->module->arena;
    const hlo_conv *was = in->u.conv;
    hlo_conv *c = sd_arena_copy(a, was, sizeof *c);
    int64_t places = in->shape->dim[was->out_spatial.at[was->nspatial - 1]];
    hlo_inst *arg[2];

    plan_order_dims(o->x, was->in_batch, was->in_spatial, was->in_feature,
                    false);
    arg[0] = image_in_rows(p, was, in->arg[0], o->x, places, r);
    arg[1] = window_in_rows(p, was, in->arg[1], o->y, r);
    c->in_batch = hlo_dim_turned(o->x, was->in_batch);
    c->in_feature = hlo_dim_turned(o->x, was->in_feature);
    c->in_spatial = hlo_dims_turned(a, o->x, was->in_spatial);
    c->k_in = hlo_dim_turned(o->y, r->turns ? was->k_out : was->k_in);
    c->k_out = hlo_dim_turned(o->y, r->turns ? was->k_in : was->k_out);
    c->k_spatial = hlo_dims_turned(a, o->y, was->k_spatial);
    if (r->rounds)
        c->prec[0] = c->prec[1] = HLO_PREC_TF32;
    c->win = sd_arena_copy(a, c->win, (size_t)c->nspatial * sizeof *c->win);
    for (int i = 0; i < c->nspatial; i++)
        c->win[i].pad_low = c->win[i].pad_high = 0;
    c->win[c->nspatial - 1] = (hlo_window_dim){
        .size = 1, .stride = 1, .base_dilation = 1, .window_dilation = 1};
    replace(in, c, arg, o);
}

bool plan_copy_rows_for_wide(hlo_inst *in, const device_desc *dev, bool all)
{
    const hlo_conv *c = in->u.conv;
    sd_dtype t = in->arg[0]->shape->dtype;
    row_kind r = {PLAN_LINE, t == SD_F32, sd_dtype_bytes(t) != 2};
    order o;

    if (is_product(c) || c->batch_groups > 1 || plan_has_long_window(in) ||
        !has_few_features(in, dev))
        return false;
    o = find_order(in);
    if (o.turns_sum ||
        !(all || plan_copy_pays(in, dev, bytes_in_rows(in, &o, &r),
                                PLAN_WORK_OF_WOVEN)))
        return false;
    put_in_rows(in, &o, &r);
    return true;
}

void plan_copy_image(hlo_inst *in, const device_desc *dev, bool all)
{
    row_kind r = {.bytes = PLAN_ROW_BYTES};
    order o;

    if (is_product(in->u.conv) || in->u.conv->batch_groups > 1)
        return;
    o = find_order(in);
    if (plan_has_long_window(in)) {
        plan_copy_gradient(in, dev, all);
    } else if (has_few_features(in, dev)) {
        if (all || plan_copy_pays(in, dev, bytes_in_rows(in, &o, &r),
                                  PLAN_WORK_OF_WOVEN))
            put_in_rows(in, &o, &r);
    } else if ((o.copies_x || o.turns_y || o.turns_sum) &&
               (all || plan_copy_pays(in, dev, bytes_of(in, &o),
                                      PLAN_WORK_OF_WOVEN))) {
        put_features_last(in, &o);
    }
}
