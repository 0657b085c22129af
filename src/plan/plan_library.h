/* Library calls: what plan_library.c and plan_library_conv.c share. */
#ifndef PLAN_LIBRARY_H
#define PLAN_LIBRARY_H

#include "plan_room.h"

typedef struct {    /* what follows a product and goes into the call */
    hlo_inst *last; /* what the call's result stands for */
    hlo_inst *bias; /* vector over the features, or NULL */
    hlo_inst *add;  /* of the result's shape, or NULL */
    int activation; /* activation_mode */
    double alpha;
} epilogue;

/* dim: the feature dimension of the product. */
epilogue plan_find_epilogue(hlo_inst *product, int64_t dim, bool alpha);
/* Puts the call in place of e.last; `attr` are its integers. */
hlo_inst *plan_make_call(hlo_inst *product, const char *target, int narg,
                         hlo_inst *const *arg, const epilogue *e,
                         const int64_t *attr, int nattr, bool scratch);
bool plan_library_conv(hlo_inst *in, const device_desc *dev);
int64_t plan_f64_bits(double v);

#endif
