/* Attention: what stands between the product and softmax, as a function of one
 * score, and in its gradient between softmax's and the product's.  See
 * attend.h. */
#include <math.h>

#include "attend.h"

static hlo_inst *remember(attend_pattern *p, hlo_inst *in, const attend_view *v,
                          hlo_inst *x)
{
    if (p->nmade == ATTEND_MADE)
        return NULL;
    p->made[p->nmade++] = (attend_made){in, x, *v};
    return x;
}

bool attend_is_whole(const attend_pattern *p, const hlo_inst *x)
{
    double all = 1;

    for (int i = 0; i < p->naxis; i++)
        all *= (double)p->extent[i];
    return (double)sd_shape_count(x->shape) >= all;
}

static hlo_inst *make_element_param(hlo_comp *c, const hlo_inst *x)
{
    return hlo_make_param(
        c, sd_shape_make(c->module->arena, pass_dtype(x), 0, NULL), "element");
}

/* An element of an array, which is made before: only what a program is given is
 * as large as all scores.  Indices are of 32 bits.  A gradient reads the
 * score's arrays alone. */
static hlo_inst *make_leaf(attend_pattern *p, hlo_inst *x, const attend_view *v)
{
    for (int i = 0; i < p->nleaf; i++)
        if (p->leaf[i].in == x && attend_same_view(&p->leaf[i].v, v))
            return p->comp->param[p->comp->nparam - p->nleaf + i];
    if (p->is_slope || p->nleaf == HLO_ATTEND_MORE ||
        sd_is_complex(pass_dtype(x)) || sd_shape_count(x->shape) >= INT32_MAX ||
        (attend_is_whole(p, x) && x->op != HLO_PARAMETER &&
         x->op != HLO_GET_TUPLE_ELEMENT))
        return NULL;
    p->leaf[p->nleaf++] = (attend_leaf){x, *v};
    return make_element_param(p->comp, x);
}

static hlo_inst *make_iota(attend_pattern *p, const hlo_inst *x,
                           const attend_view *v)
{
    hlo_at at = {p->comp, NULL, x};
    int dim = (int)x->dims.at[0];

    if (v->n[dim] == 0 && x->shape->dim[dim] == 1)
        return hlo_make_scalar_s64(at, pass_dtype(x), 0);
    if (v->n[dim] != 1 || sd_is_complex(pass_dtype(x)) ||
        (v->axis[dim][0] != p->row && v->axis[dim][0] != p->key))
        return NULL;
    return pass_convert(at, pass_dtype(x),
                        p->comp->param[v->axis[dim][0] == p->row ? 1 : 2]);
}

static hlo_inst *make_score(attend_pattern *p, hlo_inst *x,
                            const attend_view *v);

/* A division of f32 by a constant, as by the root of d, is a product with its
 * reciprocal, to 1.5 ulp: a division is a dozen instructions of each score. */
static hlo_inst *make_quotient(attend_pattern *p, const hlo_inst *x,
                               hlo_inst *const *arg)
{
    hlo_at at = {p->comp, NULL, x};
    double by;

    if (x->op != HLO_DIVIDE || pass_dtype(x) != SD_F32 ||
        !hlo_is_scalar_const(arg[1], &by) || !isnormal((float)(1 / by)))
        return NULL;
    return hlo_make_binary(at, HLO_MULTIPLY, arg[0],
                           hlo_make_scalar(at, SD_F32, 1 / by));
}

static hlo_inst *make_element(attend_pattern *p, hlo_inst *x,
                              const attend_view *v)
{
    sd_arena *a = p->comp->module->arena;
    hlo_inst *arg[3], *out;

    if (x->narg > 3)
        return NULL;
    for (int i = 0; i < x->narg; i++) {
        static const attend_view scalar;

        arg[i] = make_score(p, x->arg[i], x->arg[i]->shape->rank ? v : &scalar);
        if (!arg[i])
            return NULL;
    }
    if ((out = make_quotient(p, x, arg)))
        return out;
    out = hlo_inst_clone(p->comp, NULL, x, arg);
    out->shape = sd_shape_make(a, pass_dtype(x), 0, NULL);
    return out;
}

static hlo_inst *make_anew(attend_pattern *p, hlo_inst *x, const attend_view *v)
{
    attend_view o;
    double number;

    if (x == p->dot)
        return attend_same_view(v, &p->dot_view) ? p->comp->param[0] : NULL;
    if (attend_moved_view(p, x, v, &o))
        return make_score(p, x->arg[0], &o);
    if (x->op == HLO_IOTA)
        return make_iota(p, x, v);
    if (hlo_is_scalar_const(x, &number)) {
        sd_arena *a = p->comp->module->arena;
        const hlo_inst *c = x;

        while (c->op == HLO_BROADCAST)
            c = c->arg[0];
        return hlo_make_constant((hlo_at){p->comp, NULL, x},
                                 sd_shape_make(a, pass_dtype(c), 0, NULL),
                                 c->u.literal.data);
    }
    return hlo_is_elementwise(x) && x->narg ? make_element(p, x, v)
                                            : make_leaf(p, x, v);
}

/* What x is at one point, in p->comp; NULL: that cannot be said there. */
static hlo_inst *make_score(attend_pattern *p, hlo_inst *x,
                            const attend_view *v)
{
    hlo_inst *out;

    for (int i = 0; i < p->nmade; i++)
        if (p->made[i].in == x && attend_same_view(&p->made[i].v, v))
            return p->made[i].made;
    if (!attend_see(p, x))
        return NULL;
    out = make_anew(p, x, v);
    return out ? remember(p, x, v, out) : NULL;
}

/* A function of the product, of row and key. */
static void open_function(attend_pattern *p, const char *name)
{
    hlo_module *m = p->last->parent->module;
    const sd_shape *s32 = sd_shape_make(m->arena, SD_S32, 0, NULL);

    p->comp = hlo_comp_create(m, name);
    p->nmade = 0;
    hlo_make_param(p->comp,
                   sd_shape_make(m->arena, pass_dtype(p->dot), 0, NULL),
                   "product");
    hlo_make_param(p->comp, s32, "row");
    hlo_make_param(p->comp, s32, "key");
}

static bool close_function(attend_pattern *p, hlo_inst *root)
{
    if (root && sd_is_float(pass_dtype(root))) {
        hlo_set_root(p->comp, root);
        return true;
    }
    hlo_comp_remove(p->comp);
    return false;
}

bool attend_make_score(attend_pattern *p)
{
    open_function(p, "score");
    return close_function(p, make_score(p, p->score, &p->score_view));
}

bool attend_make_slope(attend_gradient *g)
{
    attend_pattern *p = g->p;
    hlo_inst *ds;

    g->score = p->comp;
    p->is_slope = true;
    open_function(p, "slope");
    ds = hlo_make_param(
        p->comp,
        sd_shape_make(p->comp->module->arena, pass_dtype(g->ds), 0, NULL),
        "ds");
    for (int i = 0; i < p->nleaf; i++)
        make_element_param(p->comp, p->leaf[i].in);
    remember(p, g->ds, &g->ds_view, ds);
    g->comp = p->comp;
    return close_function(p, make_score(p, g->dx, &g->dx_view));
}
