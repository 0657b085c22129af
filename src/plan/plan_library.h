/* Library calls: what the plan_library files share. */
#ifndef PLAN_LIBRARY_H
#define PLAN_LIBRARY_H

#include "plan_room.h"

typedef struct {    /* what follows a product and goes into the call */
    hlo_inst *last; /* what the call's result stands for */
    hlo_inst *bias; /* vector over the features, or NULL */
    hlo_inst *add;  /* of the result's shape, or NULL */
    libcall_activation activation;
    double alpha, beta; /* factors of the product and of add */
} epilogue;

typedef enum { /* factors that go into the call, too */
    PLAN_SCALES_NONE,
    PLAN_SCALES_ALONE, /* the product's: only where nothing is added to it */
    PLAN_SCALES_ADDED
} plan_scales;

typedef struct { /* batch matrices of m x k by k x n */
    int64_t m, n, k, batch;
    int64_t matrix, work; /* multiplications: of a matrix, of all */
    bool of_f32, of_bf16; /* its result; its operands */
    bool of_bytes; /* its operands, before they were floats */
    bool read_down[2]; /* lhs, rhs: sums run down its lines */
} plan_product;

/* Is it bytes that became floats, as plan_library_bytes.c makes them for the
 * library alone? */
bool plan_is_of_bytes(const hlo_inst *operand);
/* False where its multiplications are too many to count. */
bool plan_product_of(const hlo_inst *dot, plan_product *p);
/* Do our blocks take less time?  followed: by an elementwise operation that
 * does not go into the library's call. */
bool plan_is_ours(const plan_product *p, const device_desc *dev, bool followed);
/* dim: the feature dimension of the product. */
epilogue plan_find_epilogue(hlo_inst *product, int64_t dim, plan_scales scaled);
/* Puts the call in place of e->last: arg, then what e has. */
void plan_make_call(hlo_inst *product, const libcall *c, hlo_inst *const arg[2],
                    const epilogue *e);
/* Each: was it taken? */
bool plan_library_matmul(hlo_inst *in, const device_desc *dev);
bool plan_library_conv(hlo_inst *in, const device_desc *dev);
bool plan_library_bytes(hlo_inst *in, const device_desc *dev);
bool plan_library_lapack(hlo_inst *in, const device_desc *dev);

#endif
