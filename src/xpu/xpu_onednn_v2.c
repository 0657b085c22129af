/* oneDNN's version 2 as onednn_way asks for it. */
#include <stdlib.h>

#include "xpu_onednn.h"

enum { LINEAR = 127, NO_MEMORY = 1 };

static bool bind_v2(onednn *l)
{
    bool ok = true;

#define X(name, params) \
    *(void **)&l->v2.name = onednn_symbol(l, "dnnl_" #name); \
    ok &= l->v2.name != NULL;
    DNNL2_FUNCTIONS(X)
#undef X
    return ok;
}

static void md_destroy_v2(onednn *l, onednn_md *md)
{
    (void)l;
    free(md);
}

/* e: what filling it said. */
static int made(int e, dnnl2_md *md, onednn_md **out)
{
    if (e)
        free(md);
    else
        *out = (onednn_md *)md;
    return e;
}

static int md_of_strides_v2(onednn *l, onednn_md **out, int n,
                            const int64_t *dim, int type, const int64_t *stride)
{
    dnnl2_md *md = calloc(1, sizeof *md);

    if (!md)
        return NO_MEMORY;
    return made(l->v2.memory_desc_init_by_strides(md, n, dim, type, stride), md,
                out);
}

static int md_of_any_v2(onednn *l, onednn_md **out, int n, const int64_t *dim,
                        int type)
{
    dnnl2_md *md = calloc(1, sizeof *md);

    if (!md)
        return NO_MEMORY;
    return made(l->v2.memory_desc_init_by_tag(md, n, dim, type, DNNL_OF_ANY),
                md, out);
}

static int append_scale_v2(onednn *l, void *post, float alpha)
{
    return l->v2.post_ops_append_eltwise(post, 1, LINEAR, alpha, 0);
}

static int append_sum_v2(onednn *l, void *post, float scale)
{
    return l->v2.post_ops_append_sum(post, scale);
}

static int matmul_v2(onednn *l, void **pd, const onednn_md *const *md,
                     void *attr)
{
    dnnl2_op op;
    int e = l->v2.matmul_desc_init(&op, md[ROLE_SRC], md[ROLE_WEIGHTS],
                                   md[ROLE_BIAS], md[ROLE_DST]);

    return e ? e : l->v2.primitive_desc_create(pd, &op, attr, l->engine, NULL);
}

static int forward_v2(onednn *l, void **pd, int prop, const onednn_recipe *r,
                      const onednn_md *const *md, void *attr)
{
    dnnl2_op op;
    int e = l->v2.dilated_convolution_forward_desc_init(
        &op, prop, DNNL_DIRECT, md[ROLE_SRC], md[ROLE_WEIGHTS], md[ROLE_BIAS],
        md[ROLE_DST], r->stride, r->dilate, r->low, r->high);

    return e ? e : l->v2.primitive_desc_create(pd, &op, attr, l->engine, NULL);
}

static int backward_v2(onednn *l, void **pd, const onednn_recipe *r,
                       const onednn_md *const *md, void *hint, void *attr)
{
    dnnl2_op op;
    int e = r->direction == LIBCALL_TO_DATA
                ? l->v2.dilated_convolution_backward_data_desc_init(
                      &op, DNNL_DIRECT, md[ROLE_SRC], md[ROLE_WEIGHTS],
                      md[ROLE_DST], r->stride, r->dilate, r->low, r->high)
                : l->v2.dilated_convolution_backward_weights_desc_init(
                      &op, DNNL_DIRECT, md[ROLE_SRC], md[ROLE_WEIGHTS], NULL,
                      md[ROLE_DST], r->stride, r->dilate, r->low, r->high);

    return e ? e : l->v2.primitive_desc_create(pd, &op, attr, l->engine, hint);
}

const onednn_way onednn_v2 = {
    .bind = bind_v2,
    .md_of_strides = md_of_strides_v2,
    .md_of_any = md_of_any_v2,
    .md_destroy = md_destroy_v2,
    .append_scale = append_scale_v2,
    .append_sum = append_sum_v2,
    .matmul = matmul_v2,
    .forward = forward_v2,
    .backward = backward_v2,
};
