/* Convolutions in their three directions: a libcall into oneDNN's descriptors,
 * which are those of the forward convolution in each. */
#include "xpu_onednn.h"

static int describe(onednn *l, const libcall_conv *c, onednn_recipe *r)
{
    int n = (int)c->nspatial, g = c->groups > 1, e = 0;
    int64_t ko = c->co / c->groups, ki = c->ci / c->groups;
    int64_t dim[ROLES][6] = {
        {c->batch, c->ci}, {c->groups, ko, ki}, {c->co}, {c->batch, c->co}};
    int64_t step[ROLES][6] = {
        {c->in_step[0], c->in_step[1]},
        {c->kernel_step[0] * ko, c->kernel_step[0], c->kernel_step[1]},
        {1},
        {c->out_step[0], c->out_step[1]}};
    int type[ROLES] = {onednn_type(c->in_type), onednn_type(c->kernel_type),
                       onednn_type(c->out_type), onednn_type(c->out_type)};
    /* channels last stays as it is, other layouts the library may choose;
     * weights are always its choice */
    bool last = c->in_step[1] == 1 && c->out_step[1] == 1 &&
                c->direction == LIBCALL_FORWARD;

    for (int i = 0; i < n; i++) {
        dim[ROLE_SRC][2 + i] = c->in[i];
        dim[ROLE_WEIGHTS][3 + i] = c->kernel[i];
        dim[ROLE_DST][2 + i] = c->out[i];
        step[ROLE_SRC][2 + i] = c->in_step[2 + i];
        step[ROLE_WEIGHTS][3 + i] = c->kernel_step[2 + i];
        step[ROLE_DST][2 + i] = c->out_step[2 + i];
        r->stride[i] = c->stride[i];
        r->dilate[i] = c->dilation[i] - 1;
        r->low[i] = c->low[i];
        r->high[i] = c->high[i];
    }
    for (int i = 0; i < ROLES && !e; i++) {
        int skip = i == ROLE_WEIGHTS && !g;
        int nd = i == ROLE_BIAS ? 1 : i == ROLE_WEIGHTS ? n + 2 + g : n + 2;

        e = l->way->md_of_strides(l, &r->user[i], nd, dim[i] + skip, type[i],
                                  step[i] + skip);
        if (!e && i != ROLE_BIAS && (i == ROLE_WEIGHTS || !last))
            e = l->way->md_of_any(l, &r->want[i], nd, dim[i] + skip, type[i]);
    }
    return e;
}

sd_status onednn_conv(onednn *l, onednn_call *call)
{
    const libcall_conv *c = &call->call.conv;
    int bias = c->bias != LIBCALL_BIAS_NONE;
    onednn_recipe r = {.window = true,
                       .direction = (libcall_direction)c->direction,
                       .bias = c->bias == LIBCALL_BIAS_VECTOR ? 2 : -1,
                       .add = c->add ? 2 + bias : -1,
                       .result = 2 + bias + c->add,
                       .alpha = 1,
                       .beta = 1};
    sd_status st;
    int e;

    if (!onednn_type(c->in_type) || !onednn_type(c->kernel_type) ||
        !onednn_type(c->out_type))
        return sd_error(SD_UNIMPLEMENTED, "oneDNN convolution of %s, %s to %s",
                        sd_dtype_name(c->in_type),
                        sd_dtype_name(c->kernel_type),
                        sd_dtype_name(c->out_type));
    if (c->in_type == SD_S8 && !l->sums_bytes)
        return sd_error(SD_UNIMPLEMENTED,
                        "oneDNN convolution of s8: without AVX-512 VNNI its "
                        "sums saturate");
    e = describe(l, c, &r);
    st = e ? onednn_refused(e, "convolution")
           : onednn_build(l, call, &r, "convolution");
    onednn_recipe_finish(l, &r);
    return st;
}
