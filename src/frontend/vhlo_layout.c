/* Layouts that the framework asks of main's arguments and results
 * (mhlo.layout_mode).  Inside, every array is row-major: an argument's bytes
 * are read as an array of the permuted dimensions and transposed, a result is
 * transposed and its bytes are handed out under its own dimensions.  What was
 * asked for stays with the module, for those who ask later. */
#include "vhlo_import.h"

#include <stdlib.h>

/* "{0,1}", minor to major, into order; tiles and the like are refused. */
static bool read_order(vhlo_import *im, mlir_op *op, const char *mode, int rank,
                       int64_t *order)
{
    const char *at = mode;
    bool seen[SD_MAX_RANK] = {false}, ok = *at++ == '{';

    for (int i = 0; i < rank && ok; i++) {
        char *end;
        long d = strtol(at, &end, 10);

        ok = end != at && d >= 0 && d < rank && !seen[d] &&
             *end == (i + 1 < rank ? ',' : '}');
        if (!ok)
            break;
        seen[d] = true;
        order[i] = d;
        at = end + (i + 1 < rank);
    }
    if (!ok || strcmp(at, "}"))
        vhlo_fail(im, op, SD_UNIMPLEMENTED,
                  "layout %s of an array of %d dimensions: orders of all "
                  "dimensions are done, tiles are not",
                  mode, rank);
    return !im->r->st;
}

/* What is asked of x; no dimensions: row-major, or nothing. */
static hlo_dims order_of(vhlo_import *im, mlir_op *op, const char *mode,
                         const hlo_inst *x)
{
    int64_t order[SD_MAX_RANK];
    int n = x->shape->rank;

    if (!mode || !strcmp(mode, "default") || !strcmp(mode, "auto") ||
        !read_order(im, op, mode, n, order))
        return (hlo_dims){0};
    return hlo_is_row_major((hlo_dims){order, n})
               ? (hlo_dims){0}
               : hlo_dims_copy(im->a, order, n);
}

/* perm: the dimensions from major to minor; back undoes it; dim as they lie. */
typedef struct {
    int64_t perm[SD_MAX_RANK], back[SD_MAX_RANK], dim[SD_MAX_RANK];
} lie;

static lie lie_of(const hlo_inst *x, hlo_dims order)
{
    lie l;

    for (int i = 0; i < order.n; i++) {
        l.perm[i] = order.at[order.n - 1 - i];
        l.back[l.perm[i]] = i;
        l.dim[i] = x->shape->dim[l.perm[i]];
    }
    return l;
}

static hlo_inst *after_params(hlo_comp *c)
{
    hlo_for_each_inst(in, c)
        if (in->op != HLO_PARAMETER)
            return in;
    return NULL;
}

void vhlo_param_layout(vhlo_import *im, vhlo_func *f, int i, const char *mode)
{
    hlo_inst *x = f->comp->param[i], *bytes, *y;
    hlo_dims order = order_of(im, f->op, mode, x);
    hlo_at p = {f->comp, NULL, x};
    lie l;

    im->m->param_layout[i] = order;
    if (!order.n)
        return;
    p.before = after_params(f->comp);
    l = lie_of(x, order);
    bytes = hlo_make_reshape(p, x, order.n, l.dim);
    y = hlo_make_transpose(p, bytes, l.back);
    hlo_replace(x, y);
    hlo_set_arg(bytes, 0, x);
}

void vhlo_result_layout(vhlo_import *im, vhlo_func *f, int i, int n,
                        const char *mode)
{
    hlo_inst *root = f->comp->root, *x = n == 1 ? root : root->arg[i], *y;
    hlo_dims order = order_of(im, f->op, mode, x);
    hlo_at p = {f->comp, n == 1 ? NULL : root, x};
    lie l;

    im->m->output_layout[i] = order;
    if (!order.n)
        return;
    l = lie_of(x, order);
    y = hlo_make_transpose(p, x, l.perm);
    y = hlo_make_reshape(p, y, order.n, x->shape->dim);
    if (n == 1)
        hlo_set_root(f->comp, y);
    else
        hlo_set_arg(root, i, y);
}
