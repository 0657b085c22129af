/* Matrix products: attributes of a libcall into oneDNN's descriptors. */
#include "xpu_onednn.h"

sd_status xpu_onednn_matmul(xpu_lib *l, onednn_call *c, const int64_t *a)
{
    int64_t b = a[3], m = a[4], n = a[5], k = a[6];
    int skip = b == 1, nd = 3 - skip, e = 0;
    int64_t dim[4][3] = {{b, m, k}, {b, k, n}, {1, 1, n}, {b, m, n}};
    int64_t stride[4][3] = {{m * k, a[7] ? 1 : k, a[7] ? m : 1},
                            {k * n, a[8] ? 1 : n, a[8] ? k : 1},
                            {n, n, 1},
                            {m * n, n, 1}};
    int64_t type[4] = {a[0], a[1], a[2], a[2]};
    onednn_recipe r = {
        .arg = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
        .bias = a[9],
        .add = a[10],
        .activation = a[11],
        .alpha = xpu_onednn_real(a[12]),
        .beta = xpu_onednn_real(a[13])};

    for (int i = 0; i < ONEDNN_OPERANDS && !e; i++) {
        if (!xpu_onednn_type(type[i]))
            return sd_error(SD_UNIMPLEMENTED, "oneDNN matmul of %s",
                            sd_dtype_name((sd_dtype)type[i]));
        e = l->memory_desc_init_by_strides(&r.user[i], nd, dim[i] + skip,
                                           xpu_onednn_type(type[i]),
                                           stride[i] + skip);
    }
    if (!e)
        e = l->matmul_desc_init(&r.op, &r.user[0], &r.user[1],
                                r.bias && r.alpha == 1 ? &r.user[2] : NULL,
                                &r.user[3]);
    if (e)
        return xpu_onednn_refused(e, "matmul");
    return xpu_onednn_build(l, c, &r, "matmul");
}

double xpu_onednn_matmul_work(const int64_t *a)
{
    return (double)a[3] * (double)a[4] * (double)a[5] * (double)a[6];
}
