/* oneDNN's version 3 as onednn_way asks for it. */
#include "xpu_onednn.h"

enum { LINEAR = 38, TYPE_OF_RESULT = 0 };

static bool bind_v3(onednn *l)
{
    bool ok = true;

#define X(name, params) \
    *(void **)&l->v3.name = onednn_symbol(l, "dnnl_" #name); \
    ok &= l->v3.name != NULL;
    DNNL3_FUNCTIONS(X)
#undef X
    return ok;
}

static int md_of_strides_v3(onednn *l, onednn_md **out, int n,
                            const int64_t *dim, int type, const int64_t *stride)
{
    return l->v3.memory_desc_create_with_strides(out, n, dim, type, stride);
}

static int md_of_any_v3(onednn *l, onednn_md **out, int n, const int64_t *dim,
                        int type)
{
    return l->v3.memory_desc_create_with_tag(out, n, dim, type, DNNL_OF_ANY);
}

static void md_destroy_v3(onednn *l, onednn_md *md)
{
    if (md)
        l->v3.memory_desc_destroy(md);
}

static int append_scale_v3(onednn *l, void *post, float alpha)
{
    return l->v3.post_ops_append_eltwise(post, LINEAR, alpha, 0);
}

static int append_sum_v3(onednn *l, void *post, float scale)
{
    return l->v3.post_ops_append_sum(post, scale, 0, TYPE_OF_RESULT);
}

static int matmul_v3(onednn *l, void **pd, const onednn_md *const *md,
                     void *attr)
{
    return l->v3.matmul_primitive_desc_create(pd, l->engine, md[ROLE_SRC],
                                              md[ROLE_WEIGHTS], md[ROLE_BIAS],
                                              md[ROLE_DST], attr);
}

static int forward_v3(onednn *l, void **pd, int prop, const onednn_recipe *r,
                      const onednn_md *const *md, void *attr)
{
    return l->v3.convolution_forward_primitive_desc_create(
        pd, l->engine, prop, DNNL_DIRECT, md[ROLE_SRC], md[ROLE_WEIGHTS],
        md[ROLE_BIAS], md[ROLE_DST], r->stride, r->dilate, r->low, r->high,
        attr);
}

static int backward_v3(onednn *l, void **pd, const onednn_recipe *r,
                       const onednn_md *const *md, void *hint, void *attr)
{
    if (r->direction == LIBCALL_TO_DATA)
        return l->v3.convolution_backward_data_primitive_desc_create(
            pd, l->engine, DNNL_DIRECT, md[ROLE_SRC], md[ROLE_WEIGHTS],
            md[ROLE_DST], r->stride, r->dilate, r->low, r->high, hint, attr);
    return l->v3.convolution_backward_weights_primitive_desc_create(
        pd, l->engine, DNNL_DIRECT, md[ROLE_SRC], md[ROLE_WEIGHTS], NULL,
        md[ROLE_DST], r->stride, r->dilate, r->low, r->high, hint, attr);
}

const onednn_way onednn_v3 = {
    .bind = bind_v3,
    .md_of_strides = md_of_strides_v3,
    .md_of_any = md_of_any_v3,
    .md_destroy = md_destroy_v3,
    .append_scale = append_scale_v3,
    .append_sum = append_sum_v3,
    .matmul = matmul_v3,
    .forward = forward_v3,
    .backward = backward_v3,
};
