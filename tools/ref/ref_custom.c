/* Evaluating custom-calls: those that JAX sends to a platform without rules of
 * its own, and what is an identity on one device.  Others are refused by
 * name. */
#include "hlo_linalg.h"
#include "hlo_sharding.h"
#include "ref_priv.h"

sd_status ref_misfit(const hlo_inst *in)
{
    hlo_module *m = in->parent->module;

    return sd_error(SD_INVALID,
                    "%s to \"%s\": operands, results or configuration do "
                    "not fit",
                    hlo_describe(m, in), in->u.custom->target);
}

/* ---- identities ---- */

static sd_status eval_same(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                           hlo_value *out)
{
    int n = sd_shape_nresult(out->shape);

    (void)e;
    if (in->narg != n)
        return ref_misfit(in);
    for (int i = 0; i < n; i++) {
        hlo_value *to = hlo_result_at(out, i);

        if (!sd_shape_equal(to->shape, arg[i].shape))
            return ref_misfit(in);
        *to = arg[i];
    }
    return NULL;
}

static sd_status eval_nothing(hlo_ev *e, const hlo_inst *in,
                              const hlo_value *arg, hlo_value *out)
{
    (void)e;
    (void)in;
    (void)arg;
    (void)out;
    return NULL;
}

/* ---- the largest ---- */

/* What is cut from lines along d; the rest of the shape is the same. */
static bool is_cut(const sd_shape *from, const sd_shape *to, int64_t d)
{
    bool fits = sd_shape_is_array(to) && to->rank == from->rank && d >= 0 &&
                d < from->rank;

    for (int i = 0; fits && i < from->rank; i++)
        fits = i == d ? to->dim[i] <= from->dim[i] : to->dim[i] == from->dim[i];
    return fits;
}

/* Operands x.., init..: an exact answer is a right one. */
static sd_status eval_approx_topk(hlo_ev *e, const hlo_inst *in,
                                  const hlo_value *arg, hlo_value *out)
{
    int n = in->narg / 2;
    int64_t d;

    if (n < 1 || in->narg % 2 || in->ncomp != 1 ||
        in->comp[0]->nparam != 2 * n || out->shape->dtype != SD_TUPLE ||
        out->shape->nelem != n ||
        !hlo_custom_int(in->u.custom, "reduction_dim", &d))
        return ref_misfit(in);
    for (int i = 0; i < n; i++)
        if (!sd_shape_same_dims(arg[i].shape, arg[0].shape) ||
            out->elem[i].shape->dtype != arg[i].shape->dtype ||
            !is_cut(arg[i].shape, out->elem[i].shape, d))
            return ref_misfit(in);
    return ref_sort_lines(e, in->comp[0], n, arg, d, out);
}

static sd_status eval_topk(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                           hlo_value *out)
{
    const char *config = in->u.custom->config;
    int d = in->narg == 1 ? arg[0].shape->rank - 1 : -1;

    if (d < 0 || out->shape->dtype != SD_TUPLE || out->shape->nelem != 2 ||
        !is_cut(arg[0].shape, out->elem[0].shape, d) ||
        !sd_shape_same_dims(out->elem[0].shape, out->elem[1].shape) ||
        out->elem[0].shape->dtype != arg[0].shape->dtype ||
        out->elem[1].shape->dtype != SD_S32 ||
        (config && strstr(config, "largest = false")))
        return ref_misfit(in);
    return ref_sort_lines(e, NULL, 1, arg, d, out);
}

/* ---- functions under another name ---- */

static sd_status apply(hlo_op op, const hlo_inst *in, const hlo_value *arg,
                       hlo_value *out)
{
    if (in->narg != 1 || !sd_shape_equal(in->shape, arg[0].shape) ||
        !sd_is_float(in->shape->dtype))
        return ref_misfit(in);
    for (int64_t i = 0; i < sd_shape_count(in->shape); i++)
        hlo_scalar_op(op, in->shape->dtype, hlo_at_elem(&arg[0], i), NULL,
                      hlo_at_elem(out, i));
    return NULL;
}

static sd_status eval_erf(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                          hlo_value *out)
{
    (void)e;
    return apply(HLO_ERF, in, arg, out);
}

static sd_status eval_tan(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                          hlo_value *out)
{
    (void)e;
    return apply(HLO_TAN, in, arg, out);
}

static const struct {
    const char *name;
    hlo_eval_fn *fn;
} targets[] = {
    {"ApproxTopK", eval_approx_topk},
    {"LayoutConstraint", eval_same},
    {"MoveToDevice", eval_same},
    {"MoveToHost", eval_same},
    {"ProductOfElementaryHouseholderReflectors", ref_householder},
    {"Qr", ref_qr},
    {"SPMDFullToShardShape", eval_same},
    {"SPMDShardToFullShape", eval_same},
    {"Sharding", eval_same},
    {"TopK", eval_topk},
    {"annotate_device_placement", eval_same},
    {"chlo.erf", eval_erf},
    {"mhlo.erf", eval_erf},
    {"mhlo.tan", eval_tan},
    {"mhlo.topk", eval_topk},
    {"shape_assertion", eval_nothing},
    {HLO_CALL_ATTEND, ref_attend},
    {HLO_CALL_ATTEND_GRADIENT, ref_attend},
    {HLO_CALL_FFT, ref_fft_lines},
    {HLO_GROUP_TARGET, eval_same},
    {"xla.sdy.FuncResultSharding", eval_same},
    {"xla.sdy.GlobalToLocalShape", eval_same},
    {"xla.sdy.LocalToGlobalShape", eval_same},
    {"xla.sdy.PropagationBarrier", eval_same},
    {"xla.sdy.ShardingGroup", eval_nothing},
};

sd_status ref_custom(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                     hlo_value *out)
{
    if (hlo_is_linalg_name(in->u.custom->target))
        return ref_linalg_call(e, in, arg, out);
    for (size_t i = 0; i < SD_COUNTOF(targets); i++)
        if (strcmp(in->u.custom->target, targets[i].name) == 0)
            return targets[i].fn(e, in, arg, out);
    return sd_error(SD_UNIMPLEMENTED, "evaluating custom-call %s",
                    in->u.custom->target);
}
