/* Matrix products: a libcall into oneDNN's descriptors. */
#include "xpu_onednn.h"

static sd_status check(const onednn *l, const libcall_matmul *c)
{
    const sd_dtype type[3] = {c->lhs, c->rhs, c->result};

    for (int i = 0; i < 3; i++)
        if (!onednn_type(type[i]))
            return sd_error(SD_UNIMPLEMENTED, "oneDNN matmul of %s",
                            sd_dtype_name(type[i]));
    if (c->lhs == SD_S8 && !l->sums_bytes)
        return sd_error(SD_UNIMPLEMENTED,
                        "oneDNN matmul of s8: without AVX-512 VNNI its sums "
                        "saturate");
    if (c->bias && c->alpha != 1) /* its bias comes first */
        return sd_error(SD_UNIMPLEMENTED,
                        "oneDNN matmul with a factor before its bias");
    return NULL;
}

sd_status onednn_matmul(onednn *l, onednn_call *call)
{
    const libcall_matmul *c = &call->call.matmul;
    int64_t b = c->batch, m = c->m, n = c->n, k = c->k;
    int skip = b == 1, nd = 3 - skip, e = 0;
    int64_t dim[ROLES][3] = {{b, m, k}, {b, k, n}, {1, 1, n}, {b, m, n}};
    int64_t stride[ROLES][3] = {
        {m * k, c->lhs_transposed ? 1 : k, c->lhs_transposed ? m : 1},
        {k * n, c->rhs_transposed ? 1 : n, c->rhs_transposed ? k : 1},
        {n, n, 1},
        {m * n, n, 1}};
    sd_dtype type[ROLES] = {c->lhs, c->rhs, c->result, c->result};
    onednn_recipe r = {.bias = c->bias ? 2 : -1,
                       .add = c->add ? 2 + (c->bias != 0) : -1,
                       .result = 2 + (c->bias != 0) + c->add,
                       .alpha = c->alpha,
                       .beta = c->beta};
    sd_status st = check(l, c);

    if (st)
        return st;
    for (int i = 0; i < ROLES && !e; i++)
        e = l->way->md_of_strides(l, &r.user[i], nd, dim[i] + skip,
                                  onednn_type(type[i]), stride[i] + skip);
    st = e ? onednn_refused(e, "matmul") : onednn_build(l, call, &r, "matmul");
    onednn_recipe_finish(l, &r);
    return st;
}
