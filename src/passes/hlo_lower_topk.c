/* topk(x), k, the largest: sort values and positions along the last dimension,
 * stable, so that the first of equal ones wins; keep the first k.  Floats by
 * their total order, as XLA's own. */
#include "passes_priv.h"

static hlo_comp *comparator(hlo_module *m, sd_dtype t, sd_dtype index)
{
    hlo_comp *c = hlo_comp_create(m, "topk_order");
    const sd_shape *s = sd_shape_make(m->arena, t, 0, NULL);
    const sd_shape *i = sd_shape_make(m->arena, index, 0, NULL);
    hlo_inst *x = hlo_make_param(c, s, "x"), *y = hlo_make_param(c, s, "y");
    hlo_inst *less;

    hlo_make_param(c, i, "i");
    hlo_make_param(c, i, "j");
    less = hlo_make_compare((hlo_at){c, NULL, NULL}, HLO_GT, x, y);
    if (sd_is_float(t))
        less->u.compare.type = HLO_CMP_TOTAL;
    hlo_set_root(c, less);
    return c;
}

static hlo_inst *lower_topk(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_module *m = in->parent->module;
    hlo_inst *x = in->arg[0];
    const sd_shape *s = x->shape;
    sd_dtype index = in->shape->elem[1]->dtype;
    int64_t last = s->rank - 1;
    hlo_inst *at = hlo_make_iota(p, sd_shape_with(m->arena, s, index), last);
    hlo_inst *arg[] = {x, at}, *out[2];
    const sd_shape *e[] = {x->shape, at->shape};
    hlo_inst *sort = hlo_inst_create(in->parent, in, HLO_SORT,
                                     sd_shape_tuple(m->arena, 2, e), 2, arg);
    hlo_comp *less = comparator(m, s->dtype, index);

    sort->dims = hlo_dims_copy(m->arena, &last, 1);
    sort->u.sort.stable = true;
    sort->op_name = in->op_name;
    hlo_set_comps(sort, 1, &less);
    for (int i = 0; i < 2; i++)
        out[i] =
            hlo_make_cut(p, hlo_make_gte(p, sort, i), last, 0, in->dims.at[0]);
    return hlo_make_tuple(p, 2, out);
}

/* No plan sorts to keep none. */
static hlo_inst *nothing(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst *out[2];

    for (int i = 0; i < 2; i++)
        out[i] = hlo_make_fill(p, in->shape->elem[i], 0);
    return hlo_make_tuple(p, 2, out);
}

hlo_inst *hlo_lower_topk(hlo_inst *in)
{
    if (in->shape->dtype != SD_TUPLE || !in->arg[0]->shape->rank)
        return NULL;
    return sd_shape_count(in->shape->elem[0]) ? lower_topk(in) : nothing(in);
}
