/* Convolutions in their three directions: attributes of a libcall into
 * oneDNN's descriptors. */
#include "xpu_onednn.h"

enum {
    C_NSPATIAL = 3,
    C_BATCH,
    C_GROUPS,
    C_CI,
    C_CO,
    C_IN = 8,
    C_KERNEL = 11,
    C_OUT = 14,
    C_STRIDE = 17,
    C_DILATION = 20,
    C_LOW = 23,
    C_HIGH = 26,
    C_IN_STEP = 29,
    C_KERNEL_STEP = 34,
    C_OUT_STEP = 39,
    C_BIAS = 44,
    C_ADD,
    C_ACTIVATION,
    C_ALPHA,
    C_DIRECTION
};
enum { X, K, BIAS, Y, ROLES }; /* of the forward convolution */

typedef struct {
    dnnl_md user[ROLES], any[ROLES];
    int64_t stride[3], dilate[3], low[3], high[3];
} conv_form;

static int describe(xpu_lib *l, const int64_t *a, conv_form *f)
{
    int n = (int)a[C_NSPATIAL], g = a[C_GROUPS] > 1, e = 0;
    int64_t groups = a[C_GROUPS];
    int64_t ko = a[C_CO] / groups, ki = a[C_CI] / groups;
    int64_t dim[ROLES][6] = {{a[C_BATCH], a[C_CI]},
                             {groups, ko, ki},
                             {a[C_CO]},
                             {a[C_BATCH], a[C_CO]}};
    int64_t step[ROLES][6] = {
        {a[C_IN_STEP], a[C_IN_STEP + 1]},
        {a[C_KERNEL_STEP] * ko, a[C_KERNEL_STEP], a[C_KERNEL_STEP + 1]},
        {1},
        {a[C_OUT_STEP], a[C_OUT_STEP + 1]}};
    int type[ROLES] = {xpu_onednn_type(a[0]), xpu_onednn_type(a[1]),
                       xpu_onednn_type(a[2]), xpu_onednn_type(a[2])};

    for (int i = 0; i < n; i++) {
        dim[X][2 + i] = a[C_IN + i];
        dim[K][3 + i] = a[C_KERNEL + i];
        dim[Y][2 + i] = a[C_OUT + i];
        step[X][2 + i] = a[C_IN_STEP + 2 + i];
        step[K][3 + i] = a[C_KERNEL_STEP + 2 + i];
        step[Y][2 + i] = a[C_OUT_STEP + 2 + i];
        f->stride[i] = a[C_STRIDE + i];
        f->dilate[i] = a[C_DILATION + i] - 1;
        f->low[i] = a[C_LOW + i];
        f->high[i] = a[C_HIGH + i];
    }
    for (int i = 0; i < ROLES && !e; i++) {
        int skip = i == K && !g;
        int nd = i == BIAS ? 1 : i == K ? n + 2 + g : n + 2;

        if (!(e = l->memory_desc_init_by_strides(&f->user[i], nd, dim[i] + skip,
                                                 type[i], step[i] + skip)))
            e = l->memory_desc_init_by_tag(&f->any[i], nd, dim[i] + skip,
                                           type[i], DNNL_OF_ANY);
    }
    return e;
}

static int forward_desc(xpu_lib *l, const conv_form *f, dnnl_op *op, int prop,
                        const dnnl_md *x, const dnnl_md *bias, const dnnl_md *y)
{
    return l->dilated_convolution_forward_desc_init(
        op, prop, DNNL_DIRECT, x, &f->any[K], bias, y, f->stride, f->dilate,
        f->low, f->high);
}

/* The two inputs and the result of a direction, in thunk order. */
static void set_roles(onednn_recipe *r, const conv_form *f, int direction)
{
    static const struct {
        int role[3], arg[3], query[3];
    } table[3] = {
        {{X, K, Y},
         {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
         {DNNL_SRC_MD, DNNL_WEIGHTS_MD, DNNL_DST_MD}},
        {{Y, K, X},
         {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC},
         {DNNL_DIFF_DST_MD, DNNL_WEIGHTS_MD, DNNL_DIFF_SRC_MD}},
        {{X, Y, K},
         {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS},
         {DNNL_SRC_MD, DNNL_DIFF_DST_MD, DNNL_DIFF_WEIGHTS_MD}},
    };

    for (int i = 0; i < 3; i++) {
        int at = i == 2 ? 3 : i;

        r->user[at] = f->user[table[direction].role[i]];
        r->arg[at] = table[direction].arg[i];
        r->query[at] = table[direction].query[i];
    }
    r->user[2] = f->user[BIAS];
    r->arg[2] = DNNL_ARG_BIAS;
}

static int backward_desc(xpu_lib *l, const conv_form *f, int direction,
                         onednn_recipe *r)
{
    dnnl_op fwd;
    int e =
        forward_desc(l, f, &fwd, DNNL_FORWARD, &f->any[X], NULL, &f->any[Y]);

    if (!e)
        e = l->primitive_desc_create(&r->hint, &fwd, NULL, l->engine, NULL);
    if (e)
        return e;
    if (direction == 1)
        return l->dilated_convolution_backward_data_desc_init(
            &r->op, DNNL_DIRECT, &f->any[X], &f->any[K], &f->any[Y], f->stride,
            f->dilate, f->low, f->high);
    return l->dilated_convolution_backward_weights_desc_init(
        &r->op, DNNL_DIRECT, &f->any[X], &f->any[K], NULL, &f->any[Y],
        f->stride, f->dilate, f->low, f->high);
}

/* Channels last stays as it is; other layouts the library may choose, and
 * reorders are ours.  Weights are always its choice. */
sd_status xpu_onednn_conv(xpu_lib *l, onednn_call *c, const int64_t *a)
{
    int64_t dir = a[C_DIRECTION];
    onednn_recipe r = {.bias = a[C_BIAS],
                       .add = a[C_ADD],
                       .beta = 1,
                       .activation = a[C_ACTIVATION],
                       .alpha = xpu_onednn_real(a[C_ALPHA])};
    bool last = a[C_IN_STEP + 1] == 1 && a[C_OUT_STEP + 1] == 1;
    conv_form f = {0};
    sd_status st = NULL;
    int e;

    if (dir < 0 || dir > 2 || a[C_NSPATIAL] < 1 || a[C_NSPATIAL] > 3 ||
        a[C_GROUPS] < 1 || (r.bias && r.alpha != 1) || !xpu_onednn_type(a[0]) ||
        !xpu_onednn_type(a[1]) || !xpu_onednn_type(a[2]))
        return sd_error(SD_UNIMPLEMENTED,
                        "a convolution that oneDNN is not asked for: of %s, "
                        "direction %" PRId64 ", %" PRId64 " dimensions",
                        sd_dtype_name((sd_dtype)a[0]), dir, a[C_NSPATIAL]);
    if (!(e = describe(l, a, &f))) {
        set_roles(&r, &f, (int)dir);
        e = dir ? backward_desc(l, &f, (int)dir, &r)
                : forward_desc(l, &f, &r.op, DNNL_INFERENCE,
                               last ? &f.user[X] : &f.any[X],
                               r.bias && r.alpha == 1 ? &f.user[BIAS] : NULL,
                               last ? &f.user[Y] : &f.any[Y]);
    }
    st = e ? xpu_onednn_refused(e, "convolution")
           : xpu_onednn_build(l, c, &r, "convolution");
    if (r.hint)
        l->primitive_desc_destroy(r.hint);
    return st;
}

double xpu_onednn_conv_work(const int64_t *a)
{
    double work = (double)a[C_BATCH] * (double)a[C_CI] * (double)a[C_CO] /
                  (double)SD_MAX(a[C_GROUPS], 1);

    for (int i = 0; i < 3; i++)
        work *= (double)a[C_OUT + i] * (double)a[C_KERNEL + i];
    return work;
}
