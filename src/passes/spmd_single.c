/* What one participant does alone (a host callback): a branch that the others
 * do not take, and a broadcast of what it gives. */
#include "spmd.h"

static hlo_comp *branch(hlo_inst *in, const sd_shape *args, bool does)
{
    hlo_module *m = in->parent->module;
    hlo_comp *c = hlo_comp_create(m, does ? "alone" : "others");
    hlo_inst *p = hlo_make_param(c, args, "operands");
    hlo_inst **x = sd_arena_array(m->arena, hlo_inst *,
                                  SD_MAX(in->narg, in->shape->nelem) + 1);
    hlo_at at = {c, NULL, in};

    if (does) {
        for (int i = 0; i < in->narg; i++)
            x[i] = hlo_make_gte(at, p, i);
        p = hlo_inst_clone(c, NULL, in, x);
        p->frontend_attrs = p->sharding = NULL;
        hlo_set_root(c, p);
        return c;
    }
    if (in->shape->dtype != SD_TUPLE) {
        hlo_set_root(c, hlo_make_fill(at, in->shape, 0));
        return c;
    }
    for (int i = 0; i < in->shape->nelem; i++)
        x[i] = hlo_make_fill(at, in->shape->elem[i], 0);
    hlo_set_root(c, hlo_make_tuple(at, in->shape->nelem, x));
    return c;
}

static bool is_plain(const hlo_inst *in)
{
    for (int i = 0; i < in->narg; i++)
        if (!sd_shape_is_array(in->arg[i]->shape))
            return false;
    for (int i = 0; i < hlo_nresult(in); i++)
        if (!sd_shape_is_array(hlo_result_shape(in, i)))
            return false;
    return true;
}

sd_status spmd_single(hlo_inst *in, int64_t who)
{
    hlo_module *m = in->parent->module;
    hlo_at p = pass_at(in);
    hlo_inst *args, *three[3], *out, **x;
    hlo_comp *c[2];
    int n = hlo_nresult(in);

    if (who >= hlo_participants(m))
        return sd_error(SD_INVALID,
                        "%s: participant %" PRId64 " alone, of %" PRId64,
                        hlo_describe(m, in), who, hlo_participants(m));
    if (!is_plain(in))
        return sd_error(SD_UNIMPLEMENTED,
                        "%s: a token, of one participant alone",
                        hlo_describe(m, in));
    args = hlo_make_tuple(p, in->narg, in->arg);
    c[0] = branch(in, args->shape, true);
    c[1] = branch(in, args->shape, false);
    three[0] = hlo_make_compare(p, HLO_EQ, spmd_number(p),
                                hlo_make_scalar_s64(p, SD_S32, who));
    three[1] = three[2] = args;
    out = hlo_inst_create(p.c, in, HLO_CONDITIONAL, in->shape, 3, three);
    hlo_take_source(out, in);
    hlo_set_comps(out, 2, c);
    x = sd_arena_array(m->arena, hlo_inst *, n + 1);
    for (int i = 0; i < n; i++)
        x[i] = spmd_from(p, pass_result(p, out, i), who);
    if (n)
        out = pass_results(p, in->shape, x);
    hlo_replace(in, out);
    hlo_remove(in);
    return NULL;
}
