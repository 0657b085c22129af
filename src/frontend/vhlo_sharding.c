/* What a program says of its shardings, in XLA's form: a constraint is a
 * custom-call, a manual computation a call between two that change shapes.
 * On one participant they say nothing, and are not made. */
#include "hlo_sharding.h"
#include "vhlo_import.h"

static hlo_inst *marker(vhlo_import *im, const char *target,
                        const sd_shape *shape, int n, hlo_inst *const *arg)
{
    hlo_custom *u = sd_arena_new(im->a, hlo_custom);
    hlo_inst *in = vhlo_emit(im, HLO_CUSTOM_CALL, shape, n, arg);

    u->target = target;
    u->config = "";
    in->u.custom = u;
    return in;
}

static bool is_alone(const vhlo_import *im)
{
    return hlo_participants(im->m) == 1;
}

static const char *braces(sd_buf *b)
{
    sd_buf_str(b, "}");
    return sd_buf_take(b);
}

/* A scalar has no dimension to be cut: it needs no constraint, and where
 * elements are computed none may stand. */
void op_sharding(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_inst *in = arg[0];
    sd_buf b = {.arena = im->a};

    if (!is_alone(im) && sd_shape_is_array(in->shape) && in->shape->rank) {
        vhlo_put_frontend_attr(im, &b, "xla.sdy.sharding",
                               vhlo_need(im, op, "sharding"));
        in = marker(im, "Sharding", in->shape, 1, arg);
        in->frontend_attrs = braces(&b);
    }
    if (vhlo_check(im, in))
        op->result[0].inst = in;
}

/* What v is of another type; NULL: it is none. */
static mlir_value *cast_of(const vhlo_import *im, const mlir_value *v)
{
    const char *name = v->def ? vhlo_op_name(im->r, v->def) : "";

    return strcmp(name, "builtin.unrealized_conversion_cast") == 0 &&
                   v->def->noperand == 1
               ? v->def->operand[0]
               : NULL;
}

/* Who reads the value from here on reads it through the group's mark. */
void op_group(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_inst *in = arg[0];
    hlo_custom *u;
    sd_buf b = {.arena = im->a};

    if (is_alone(im) || !sd_shape_is_array(in->shape) || !in->shape->rank)
        return;
    vhlo_put_frontend_attr(im, &b, "xla.sdy.sharding_group_id",
                           vhlo_need(im, op, "group_id"));
    in = marker(im, HLO_GROUP_TARGET, in->shape, 1, arg);
    u = sd_arena_copy(im->a, in->u.custom, sizeof *u);
    u->has_side_effect = true; /* one that nobody reads counts */
    in->u.custom = u;
    in->frontend_attrs = braces(&b);
    if (!vhlo_check(im, in))
        return;
    for (mlir_value *v = op->operand[0]; v; v = cast_of(im, v))
        v->inst = in;
}

hlo_inst *vhlo_shard_result(vhlo_import *im, hlo_inst *in, const char *sdy,
                            const char *tiles)
{
    hlo_inst *to;

    if (is_alone(im) || (!sdy && !tiles))
        return in;
    to = marker(im, "xla.sdy.FuncResultSharding", in->shape, 1, &in);
    to->frontend_attrs = sdy;
    to->sharding = tiles;
    return to;
}

/* ---- manual computations ---- */

/* To local shapes, or back: values of the shapes, with the shardings that the
 * attribute says along the manual axes. */
static hlo_inst *border(vhlo_import *im, mlir_op *op, const char *target,
                        const char *attr, const sd_shape *shape, int n,
                        hlo_inst *const *arg)
{
    hlo_inst *in = marker(im, target, shape, n, arg);
    sd_buf b = {.arena = im->a};

    vhlo_put_frontend_attr(im, &b, sd_arena_fmt(im->a, "xla.sdy.%s", attr),
                           vhlo_need(im, op, attr));
    vhlo_put_frontend_attr(im, &b, "xla.sdy.manual_axes",
                           vhlo_need(im, op, "manual_axes"));
    in->frontend_attrs = braces(&b);
    return in;
}

static const sd_shape *params_shape(vhlo_import *im, const hlo_comp *c, int n)
{
    const sd_shape **s = sd_arena_array(im->a, const sd_shape *, n + 1);

    for (int i = 0; i < n; i++)
        s[i] = c->param[i]->shape;
    return n == 1 ? s[0] : sd_shape_tuple(im->a, n, s);
}

void op_manual(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_inst **all, *in, **out;
    int n = op->noperand, nout = op->nresult, nall;
    const sd_shape *s;
    hlo_comp *body;

    if (is_alone(im)) {
        op_identity(im, op, arg);
        return;
    }
    body = vhlo_body(im, op, 0, "xla.sdy.manual_computation_body", arg, &all,
                     &nall);
    if (!body)
        return;
    if (n) {
        in = border(im, op, "xla.sdy.GlobalToLocalShape", "in_shardings",
                    params_shape(im, body, n), n, arg);
        for (int i = 0; i < n; i++)
            all[i] = n == 1 ? in : vhlo_gte(im, in, i);
    }
    in = vhlo_emit(im, HLO_CALL, body->root->shape, nall, all);
    hlo_set_comps(in, 1, &body);
    s = vhlo_shape(im, op);
    if (!vhlo_check(im, in) || !s || !nout)
        return;
    out = sd_arena_array(im->r->a, hlo_inst *, nout);
    for (int i = 0; i < nout; i++)
        out[i] = nout == 1 ? in : vhlo_gte(im, in, i);
    vhlo_bind(im, op,
              border(im, op, "xla.sdy.LocalToGlobalShape", "out_shardings", s,
                     nout, out));
}
