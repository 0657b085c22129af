/* Layouts that the framework asks of main's arguments and results
 * (mhlo.layout_mode), or leaves to us.  They stay with the module, for
 * hlo_layouts_apply and for those who ask later. */
#include "hlo_text.h"
#include "vhlo_import.h"

/* "{0,1}", minor to major, into order; tiles and the like are refused. */
static bool read_order(vhlo_import *im, mlir_op *op, const char *mode, int rank,
                       hlo_dims *order)
{
    hlo_lexer x = hlo_lexer_of(im->a, mode, strlen(mode));

    *order = hlo_take_dims(&x);
    if (x.bad || x.at < x.end || order->n != rank ||
        !hlo_dims_fit(*order, rank))
        vhlo_fail(im, op, SD_UNIMPLEMENTED,
                  "layout %s of an array of %d dimensions: orders of all "
                  "dimensions are done, tiles are not",
                  mode, rank);
    return !im->r->st;
}

/* A transposed array lies as what it is made of, so that nothing moves. */
static hlo_dims order_of_transposed(vhlo_import *im, const hlo_inst *x)
{
    int64_t order[SD_MAX_RANK];
    int n = x->shape->rank;

    while (x->op == HLO_CUSTOM_CALL && x->narg == 1 &&
           !strcmp(x->u.custom->target, "Sharding"))
        x = x->arg[0];
    if (x->op != HLO_TRANSPOSE)
        return (hlo_dims){0};
    for (int i = 0; i < n; i++)
        order[n - 1 - x->dims.at[i]] = i;
    return hlo_is_row_major((hlo_dims){order, n})
               ? (hlo_dims){0}
               : hlo_dims_copy(im->a, order, n);
}

/* What is asked of x; no dimensions: row-major, or nothing. */
static hlo_dims order_of(vhlo_import *im, mlir_op *op, const char *mode,
                         const hlo_inst *x, bool is_result)
{
    hlo_dims order;

    if (mode && is_result && !strcmp(mode, "auto"))
        return order_of_transposed(im, x);
    if (!mode || !strcmp(mode, "default") || !strcmp(mode, "auto") ||
        !read_order(im, op, mode, x->shape->rank, &order))
        return (hlo_dims){0};
    return hlo_is_row_major(order) ? (hlo_dims){0} : order;
}

void vhlo_param_layout(vhlo_import *im, vhlo_func *f, int i, const char *mode)
{
    im->m->param_layout[i] =
        order_of(im, f->op, mode, f->comp->param[i], false);
}

void vhlo_result_layout(vhlo_import *im, vhlo_func *f, int i, int n,
                        const char *mode)
{
    const hlo_inst *root = f->comp->root;

    im->m->output_layout[i] =
        order_of(im, f->op, mode, n == 1 ? root : root->arg[i], true);
}
