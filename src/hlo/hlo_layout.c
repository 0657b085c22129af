/* Layouts of the entry's arguments and results.  Inside, every array is
 * row-major: an argument's bytes are read as an array of the permuted
 * dimensions and transposed, a result is transposed and its bytes are handed
 * out under its own dimensions.  Of a program over several participants that
 * is so of each one's part. */
#include "hlo.h"

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

static void apply_to_param(hlo_comp *c, int i, hlo_dims order)
{
    hlo_inst *x = c->param[i], *bytes, *y;
    hlo_at p = {c, after_params(c), x};
    lie l = lie_of(x, order);

    bytes = hlo_make_reshape(p, x, order.n, l.dim);
    y = hlo_make_transpose(p, bytes, l.back);
    hlo_replace(x, y);
    hlo_set_arg(bytes, 0, x);
}

static void apply_to_result(hlo_comp *c, int i, hlo_dims order)
{
    hlo_inst *root = c->root, *y;
    bool tuple = root->shape->dtype == SD_TUPLE;
    hlo_inst *x = tuple ? root->arg[i] : root;
    hlo_at p = {c, tuple ? root : NULL, x};
    lie l = lie_of(x, order);

    y = hlo_make_transpose(p, x, l.perm);
    y = hlo_make_reshape(p, y, order.n, x->shape->dim);
    if (tuple)
        hlo_set_arg(root, i, y);
    else
        hlo_set_root(c, y);
}

void hlo_layouts_apply(hlo_module *m)
{
    hlo_comp *c = m->entry;
    int n = hlo_nresult(c->root);

    if (m->laid_out)
        return;
    m->laid_out = true;
    for (int i = 0; m->param_layout && i < c->nparam; i++)
        if (m->param_layout[i].n)
            apply_to_param(c, i, m->param_layout[i]);
    for (int i = 0; m->output_layout && i < n; i++)
        if (m->output_layout[i].n)
            apply_to_result(c, i, m->output_layout[i]);
}
