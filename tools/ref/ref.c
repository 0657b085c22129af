/* Which function evaluates what folding does not: see ref.h.  Here: what stands
 * for other machines, tokens, sizes; how many steps an operation takes. */
#include "ref_priv.h"

/* ---- one participant ---- */

static sd_status one_device(const hlo_inst *in)
{
    const hlo_module *m = in->parent->module;

    if (hlo_participants(m) <= 1)
        return NULL;
    return sd_error(SD_UNIMPLEMENTED,
                    "evaluating %s over %d replicas and %d partitions",
                    hlo_info(in)->name, m->nreplica, m->npartition);
}

/* Whom we hear of: ourselves, by a pair {0, 0} or by the group {0}; without
 * groups everybody is one group.  Who is nobody's target has zeros. */
static bool hears(const hlo_inst *in)
{
    const hlo_collective *c = in->u.coll;
    bool permute = in->op == HLO_COLLECTIVE_PERMUTE;

    if (!permute && (!c || c->ngroup == 0))
        return true;
    for (int64_t i = 0; c && i < c->ngroup * c->group_size; i++)
        if (c->groups[i] == 0)
            return true;
    return false;
}

static sd_status eval_alone(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                            hlo_value *out)
{
    sd_status st = one_device(in);

    (void)e;
    if (st || !hears(in))
        return st;
    for (int i = 0; i < in->narg; i++) {
        hlo_value *to = hlo_result_at(out, i);

        memcpy(to->data, arg[i].data, sd_shape_bytes(to->shape));
    }
    return NULL; /* partition-id, replica-id: 0, as it was made */
}

static sd_status eval_dynamic(hlo_ev *e, const hlo_inst *in,
                              const hlo_value *arg, hlo_value *out)
{
    int64_t d = in->dims.at[0];

    (void)e;
    if (in->op == HLO_GET_DIMENSION_SIZE) {
        sd_scalar_of_s64(SD_S32, arg[0].shape->dim[d], out->data);
        return NULL;
    }
    if (sd_scalar_to_s64(SD_S32, arg[1].data) != arg[0].shape->dim[d])
        return sd_error(SD_UNIMPLEMENTED,
                        "evaluating a dimension set to %" PRId64 " of %" PRId64
                        ": sizes known at run time are not done",
                        sd_scalar_to_s64(SD_S32, arg[1].data),
                        arg[0].shape->dim[d]);
    *out = arg[0];
    return NULL;
}

static sd_status eval_tokens(hlo_ev *e, const hlo_inst *in,
                             const hlo_value *arg, hlo_value *out)
{
    (void)e;
    (void)arg;
    (void)out;
    return in->op == HLO_AFTER_ALL ? NULL : hlo_unevaluated(in);
}

/* ---- how long it takes ---- */

static double steps_of(const hlo_inst *in, const hlo_value *arg, double n)
{
    const sd_shape *s;

    switch (hlo_info(in)->cls) {
    case HLO_C_WINDOW: /* operand 1 of select-and-scatter: an element each */
        n = in->op == HLO_SELECT_AND_SCATTER
                ? (double)sd_shape_count(arg[1].shape)
                : 0;
        if (in->op == HLO_REDUCE_WINDOW) {
            s = hlo_result_shape(in, 0);
            n = (double)sd_shape_count(s);
        }
        for (int i = 0; i < in->u.window.n; i++)
            n *= (double)in->u.window.dim[i].size;
        return n;
    case HLO_C_DOT:
        n = (double)sd_shape_count(in->shape);
        for (int i = 0; i < in->u.dot->lhs_contract.n; i++)
            n *= (double)arg[0].shape->dim[in->u.dot->lhs_contract.at[i]];
        return n;
    case HLO_C_CONV:
        s = arg[1].shape;
        n = (double)sd_shape_count(in->shape) *
            (double)s->dim[in->u.conv->k_in];
        for (int i = 0; i < in->u.conv->nspatial; i++)
            n *= (double)s->dim[in->u.conv->k_spatial.at[i]];
        return n;
    case HLO_C_FFT:
    case HLO_C_LINALG:
        s = arg[0].shape;
        return n * (s->rank ? (double)s->dim[s->rank - 1] : 1);
    default:
        return n;
    }
}

/* ---- the reference ---- */

const hlo_evaluator ref_evaluator = {
    .of_class = {[HLO_C_CONTROL] = ref_control,
                 [HLO_C_SCATTER] = ref_scatter,
                 [HLO_C_REDUCE] = ref_reduce,
                 [HLO_C_WINDOW] = ref_window,
                 [HLO_C_SCAN] = ref_scan,
                 [HLO_C_MAP] = ref_map,
                 [HLO_C_SORT] = ref_sort,
                 [HLO_C_DOT] = ref_dot,
                 [HLO_C_CONV] = ref_conv,
                 [HLO_C_RNG] = ref_rng,
                 [HLO_C_FFT] = ref_fft,
                 [HLO_C_LINALG] = ref_linalg,
                 [HLO_C_NORM] = ref_norm,
                 [HLO_C_CUSTOM] = ref_custom,
                 [HLO_C_TOKENS] = eval_tokens,
                 [HLO_C_DYNAMIC] = eval_dynamic,
                 [HLO_C_COLLECTIVE] = eval_alone},
    .steps = steps_of,
};

sd_status ref_eval_inst(sd_arena *a, const hlo_inst *in, const hlo_value *arg,
                        hlo_value *out)
{
    return hlo_eval_inst_more(&ref_evaluator, a, in, arg, out);
}
