/* Convolutions as calls.  The library knows three directions of one forward
 * convolution; gradients come as convolutions with dilated inputs or with
 * batch and features exchanged, and are turned back into them. */
#include "plan_library.h"

enum {
    LEAST_WORK = 512, /* our own loops are slow from early on */
    LONG_ROW = 8192,  /* points */
    MUCH_WORK = 4096, /* a point */
    MOST_PADDING = 3, /* points in front of a row or after it */
    MANY_FEATURES = 8,
    FEW_POINTS = 1024,  /* of all images */
    MUCH_OF_BYTES = 144, /* products a point, where channels come first */
    FEW_PAIRS = 16,      /* of a channel that is read and one that is made */
    FEW_PRODUCTS = 27,   /* a result, likewise, */
    FEW_IN_GROUPS = 18,  /* of channels */
    FEW_MADE = 8,
    FEW_MADE_LAST = 4 /* of one, where channels come last */
};

static void pick_steps(const sd_shape *s, int64_t a, int64_t b, hlo_dims sp,
                       int64_t *out)
{
    int64_t step[SD_MAX_RANK];

    sd_shape_strides(s, step);
    out[0] = step[a];
    out[1] = step[b];
    for (int i = 0; i < 3; i++)
        out[2 + i] = i < sp.n ? step[sp.at[i]] : 1;
}

static void clear(libcall_conv *f, int n)
{
    *f = (libcall_conv){.nspatial = n};
    for (int i = 0; i < 3; i++)
        f->in[i] = f->kernel[i] = f->out[i] = f->stride[i] = f->dilation[i] = 1;
}

/* High padding so that the forward convolution has the output it has: the
 * smallest that is not negative. */
static bool find_high(libcall_conv *f)
{
    for (int i = 0; i < f->nspatial; i++) {
        int64_t reach = (f->kernel[i] - 1) * f->dilation[i] + 1;
        int64_t need =
            (f->out[i] - 1) * f->stride[i] + reach - f->in[i] - f->low[i];

        if (f->low[i] < 0)
            return false;
        if (need < 0 && -need >= f->stride[i])
            return false;
        f->high[i] = SD_MAX(need, 0);
    }
    return true;
}

static bool forward(const hlo_inst *in, libcall_conv *f)
{
    const hlo_conv *c = in->u.conv;
    const sd_shape *x = in->arg[0]->shape, *w = in->arg[1]->shape;

    clear(f, c->nspatial);
    f->batch = x->dim[c->in_batch];
    f->groups = c->feature_groups;
    f->ci = x->dim[c->in_feature];
    f->co = in->shape->dim[c->out_feature];
    for (int i = 0; i < f->nspatial; i++) {
        const hlo_window_dim *d = &c->win[i];

        if (d->base_dilation != 1 || (d->reversal && d->size > 1) ||
            d->pad_high < 0)
            return false;
        f->in[i] = x->dim[c->in_spatial.at[i]];
        f->kernel[i] = d->size;
        f->out[i] = in->shape->dim[c->out_spatial.at[i]];
        f->stride[i] = d->stride;
        f->dilation[i] = d->window_dilation;
        f->low[i] = d->pad_low;
    }
    pick_steps(x, c->in_batch, c->in_feature, c->in_spatial, f->in_step);
    pick_steps(w, c->k_out, c->k_in, c->k_spatial, f->kernel_step);
    pick_steps(in->shape, c->out_batch, c->out_feature, c->out_spatial,
               f->out_step);
    return c->batch_groups == 1 && find_high(f);
}

/* reverse(w) over exactly the spatial dimensions */
static bool is_reversed(const hlo_inst *w, const hlo_conv *c)
{
    if (w->op != HLO_REVERSE || w->dims.n != c->nspatial)
        return false;
    for (int i = 0; i < w->dims.n; i++)
        if (!hlo_dims_hold(c->k_spatial, w->dims.at[i]))
            return false;
    return true;
}

static bool point_kernel(const hlo_conv *c)
{
    for (int i = 0; i < c->nspatial; i++)
        if (c->win[i].size != 1)
            return false;
    return true;
}

/* The gradient of the input: its operand is the forward output, its result
 * the forward input, its kernel the forward one turned around.  Where it is
 * not, as in a transposed convolution, *turn: turning it gives one that is. */
static bool backward_data(const hlo_inst *in, libcall_conv *f,
                          hlo_inst **kernel, bool *turn)
{
    const hlo_conv *c = in->u.conv;
    const sd_shape *dy = in->arg[0]->shape, *w;
    bool turned = is_reversed(in->arg[1], c), window = true, some = false;

    w = in->arg[1]->shape;
    clear(f, c->nspatial);
    f->direction = LIBCALL_TO_DATA;
    f->batch = dy->dim[c->in_batch];
    f->groups = 1;
    f->co = dy->dim[c->in_feature];
    f->ci = in->shape->dim[c->out_feature];
    for (int i = 0; i < f->nspatial; i++) {
        const hlo_window_dim *d = &c->win[i];

        window &= d->reversal || d->size == 1;
        some |= d->reversal && d->size > 1;
        if (d->stride != 1)
            return false;
        f->in[i] = in->shape->dim[c->out_spatial.at[i]];
        f->kernel[i] = d->size;
        f->out[i] = dy->dim[c->in_spatial.at[i]];
        f->stride[i] = d->base_dilation;
        f->dilation[i] = d->window_dilation;
        f->low[i] = (d->size - 1) * d->window_dilation - d->pad_low;
    }
    if (some && !window) /* the library turns all dimensions of a kernel */
        return false;
    *turn = !turned && !window && !point_kernel(c);
    *kernel = turned && !window ? in->arg[1]->arg[0] : in->arg[1];
    pick_steps(in->shape, c->out_batch, c->out_feature, c->out_spatial,
               f->in_step);
    pick_steps(w, c->k_in, c->k_out, c->k_spatial, f->kernel_step);
    pick_steps(dy, c->in_batch, c->in_feature, c->in_spatial, f->out_step);
    return c->feature_groups == 1 && c->batch_groups == 1 && find_high(f);
}

/* The gradient of the kernel: the window is the forward output. */
static bool backward_weights(const hlo_inst *in, libcall_conv *f)
{
    const hlo_conv *c = in->u.conv;
    const sd_shape *x = in->arg[0]->shape, *dy = in->arg[1]->shape;
    int64_t window = 1, result = 1;

    clear(f, c->nspatial);
    f->direction = LIBCALL_TO_WEIGHTS;
    f->batch = x->dim[c->in_feature];
    f->groups = 1;
    f->ci = x->dim[c->in_batch];
    f->co = in->shape->dim[c->out_feature];
    for (int i = 0; i < f->nspatial; i++) {
        const hlo_window_dim *d = &c->win[i];

        if (d->base_dilation != 1 || (d->reversal && d->size > 1))
            return false;
        f->in[i] = x->dim[c->in_spatial.at[i]];
        f->kernel[i] = in->shape->dim[c->out_spatial.at[i]];
        f->out[i] = d->size;
        f->stride[i] = d->window_dilation;
        f->dilation[i] = d->stride;
        f->low[i] = d->pad_low;
        window *= d->size;
        result *= f->kernel[i];
    }
    pick_steps(x, c->in_feature, c->in_batch, c->in_spatial, f->in_step);
    pick_steps(in->shape, c->out_feature, c->out_batch, c->out_spatial,
               f->kernel_step);
    pick_steps(dy, c->k_in, c->k_out, c->k_spatial, f->out_step);
    return window > result && c->feature_groups == 1 && c->batch_groups == 1 &&
           find_high(f);
}

static bool type_fits(const device_desc *dev, const hlo_inst *in)
{
    sd_dtype x = in->arg[0]->shape->dtype, w = in->arg[1]->shape->dtype;
    sd_dtype r = in->shape->dtype;

    if (x == SD_S8 && w == SD_S8 && r == SD_S32)
        return dev->libs & DEVICE_LIB_BYTES;
    return x == r && w == r && (r == SD_F32 || r == SD_BF16);
}

/* The library has bf16 where there is AVX-512, Winograd's products everywhere;
 * bytes have no gradients. */
static bool has_type(const device_desc *dev, const libcall_conv *f)
{
    if (f->in_type == SD_S8)
        return f->direction == LIBCALL_FORWARD;
    return f->in_type == SD_F32 || dev->features & DEVICE_HAS_AVX512 ||
           libcall_conv_is_winograd(f);
}

static double work_of(const libcall_conv *f)
{
    double w =
        (double)f->batch * (double)f->ci / (double)f->groups * (double)f->co;

    for (int i = 0; i < f->nspatial; i++)
        w *= (double)f->out[i] * (double)f->kernel[i];
    return w;
}

/* The library writes code for every few points of a row, which takes it some
 * microseconds a point at the first run (18 s for a row of 2^20), and gains
 * nothing over our loops where a point is little work. */
static bool is_long_row(const libcall_conv *f)
{
    int64_t row = f->out[f->nspatial - 1];
    double points = (double)f->batch;

    for (int i = 0; i < f->nspatial; i++)
        points *= (double)f->out[i];
    return f->direction != LIBCALL_TO_WEIGHTS && row > LONG_ROW &&
           work_of(f) < MUCH_WORK * points;
}

/* Without AVX-512 the library's code for points whose features lie side by side
 * takes few points of a row at a time, and no padding that is longer: it then
 * takes another way (501 points, 64 to 64 features, 2 steps 4 apart, all
 * padding in front: 3.3 ms, our blocks 0.8). */
static bool is_padded_far(const device_desc *dev, const libcall_conv *f)
{
    int64_t last = f->nspatial - 1;

    return !(dev->features & DEVICE_HAS_AVX512) &&
           f->direction == LIBCALL_FORWARD && f->groups == 1 &&
           f->in_step[1] == 1 && f->ci >= MANY_FEATURES &&
           SD_MAX(f->low[last], f->high[last]) > MOST_PADDING;
}

/* A window of one point is a product of matrices.  The library puts its weights
 * into another order in each call, which takes long beside few points: 8 images
 * of 7 x 7 from 512 to 512 features take it 1.5 ms on two cores with AVX-512,
 * our blocks 0.8. */
static bool is_matrix_of_few_rows(const device_desc *dev, const libcall_conv *f)
{
    int64_t points = f->batch, window = 1;

    for (int i = 0; i < f->nspatial; i++) {
        points *= f->out[i];
        window *= f->kernel[i];
    }
    return dev->features & DEVICE_HAS_AVX512 && f->in_type == SD_F32 &&
           f->direction == LIBCALL_FORWARD && f->groups == 1 &&
           f->in_step[1] == 1 && f->ci >= MANY_FEATURES &&
           f->co >= MANY_FEATURES && window == 1 && points <= FEW_POINTS;
}

/* Images whose channels come first the library puts into an order of its own,
 * and its results back, which takes long beside few products: one core of a Zen
 * 4, ms, 4 x 64 x 56 x 56 by 1 x 1 to 64 2.5, our blocks 1.7; by 3 x 3 in 128
 * groups 1.0, our loops 0.5. */
static bool is_moved_for_little(const device_desc *dev, const libcall_conv *f)
{
    bool last = f->in_step[1] == 1 && f->out_step[1] == 1;
    int64_t window = 1, few = f->groups == 1 ? FEW_PRODUCTS : FEW_IN_GROUPS;

    for (int i = 0; i < f->nspatial; i++)
        window *= f->kernel[i];
    return dev->features & DEVICE_HAS_AVX512 && f->in_type == SD_F32 && !last &&
           (window == 1 || f->ci / f->groups * window <= few);
}

/* Bytes have blocks of our own, which are quicker than the library
 * where it has little to multiply: of one channel it fills a quarter of its
 * words, and images whose channels come first it puts in another order, and
 * the sums, four times as many bytes, back (2 cores with AMX: 4 x 128 x 56 x 56
 * by 1 x 1 to 128 2.5 ms, ours 1.2; 4 x 64 x 28 x 28 by 3 x 3 0.47 and 0.88).
 */
static bool is_for_blocks(const libcall_conv *f)
{
    bool last = f->in_step[1] == 1 && f->out_step[1] == 1;
    int64_t products = f->ci / f->groups;

    for (int i = 0; i < f->nspatial; i++)
        products *= f->kernel[i];
    return f->in_type == SD_S8 &&
           (last ? f->ci == 1 : products < MUCH_OF_BYTES);
}

/* The library fills its vectors with channels.  Few of them, as of images that
 * are blurred or stencils that turn in a loop, fill ours with points (2 cores
 * of Zen 4: 256 x 256 by 3 x 3, one channel 0.24 ms, ours 0.02; 4 x 64 x 64 by
 * 3 x 3 of 4 channels to 4 that come first 0.25 and 0.03). */
static bool is_of_few_channels(const libcall_conv *f)
{
    bool last = f->in_step[1] == 1 && f->out_step[1] == 1;
    bool data = f->direction == LIBCALL_TO_DATA;
    int64_t read = data ? f->co : f->ci, made = data ? f->ci : f->co;

    if (f->direction == LIBCALL_TO_WEIGHTS || f->in_type == SD_S8 ||
        f->groups != 1)
        return false;
    return last ? read == 1 && made <= FEW_MADE_LAST
                : made <= FEW_MADE && read * made <= FEW_PAIRS;
}

static void call(hlo_inst *in, const libcall_conv *f, hlo_inst *kernel)
{
    epilogue e = {.last = in, .alpha = 1, .beta = 1};
    libcall c = {.op = LIBCALL_CONV, .conv = *f};

    if (f->direction == LIBCALL_FORWARD)
        e = plan_find_epilogue(in, in->u.conv->out_feature, PLAN_SCALES_NONE);
    c.conv.bias = e.bias ? LIBCALL_BIAS_VECTOR : LIBCALL_BIAS_UNUSED;
    c.conv.add = e.add != NULL;
    c.conv.activation = e.activation;
    plan_make_call(in, &c, (hlo_inst *[]){in->arg[0], kernel}, &e);
}

bool plan_library_conv(hlo_inst *in, const device_desc *dev)
{
    const hlo_conv *c = in->u.conv;
    libcall_conv f;
    hlo_inst *kernel = in->arg[1];
    bool turn = false;

    if (!type_fits(dev, in) || c->nspatial < 1 || c->nspatial > 3 ||
        sd_shape_count(in->shape) == 0)
        return false;
    if (!backward_weights(in, &f) && !forward(in, &f) &&
        !backward_data(in, &f, &kernel, &turn))
        return false;
    if (f.direction != LIBCALL_TO_DATA)
        kernel = in->arg[1];
    f.in_type = in->arg[0]->shape->dtype;
    f.kernel_type = in->arg[1]->shape->dtype;
    f.out_type = in->shape->dtype;
    if (work_of(&f) < LEAST_WORK || is_long_row(&f) || !has_type(dev, &f) ||
        is_padded_far(dev, &f) || is_moved_for_little(dev, &f) ||
        is_for_blocks(&f) || is_of_few_channels(&f) ||
        (is_matrix_of_few_rows(dev, &f) && !plan_is_of_bytes(in->arg[0])))
        return false;
    if (turn)
        kernel = hlo_make_reverse((hlo_at){in->parent, in, in}, kernel,
                                  c->k_spatial.at, c->nspatial);
    call(in, &f, kernel);
    return true;
}
