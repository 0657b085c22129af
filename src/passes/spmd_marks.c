/* What the import leaves in a module to say where arrays are cut: custom-calls
 * that the passes of spmd read and at last take out. */
#include "spmd_flow.h"

static const char *const marks[] = {
    [SPMD_INTO] = "xla.sdy.GlobalToLocalShape",
    [SPMD_OUT] = "xla.sdy.LocalToGlobalShape",
    [SPMD_INTO_TILES] = "SPMDFullToShardShape",
    [SPMD_OUT_TILES] = "SPMDShardToFullShape",
    [SPMD_RESULT] = "xla.sdy.FuncResultSharding",
    [SPMD_CONSTRAINT] = "Sharding",
};

/* A constraint says something, and what says nothing, but where or how its
 * operand lies, is of each part as of all. */
spmd_mark spmd_mark_of(const hlo_inst *in)
{
    spmd_mark mark = SPMD_NO_MARK;
    const char *target;
    bool one;

    if (in->op != HLO_CUSTOM_CALL)
        return SPMD_NO_MARK;
    target = in->u.custom->target;
    for (int i = 1; i < (int)SD_COUNTOF(marks); i++)
        if (strcmp(target, marks[i]) == 0)
            mark = (spmd_mark)i;
    one = in->narg == 1 && sd_shape_is_array(in->shape) &&
          sd_shape_equal(in->shape, in->arg[0]->shape);
    if (mark == SPMD_CONSTRAINT)
        return one && (in->frontend_attrs || in->sharding) ? mark
                                                           : SPMD_NO_MARK;
    if (!mark && one && pass_is_identity_target(target))
        return SPMD_SAME;
    return mark;
}

sd_status spmd_named(sd_status st, const hlo_inst *in)
{
    return sd_note(st, "%s", hlo_describe(in->parent->module, in));
}

sd_status spmd_read_list(const hlo_inst *in, const char *key, int n,
                         const hlo_sharding **out, bool *has)
{
    hlo_module *m = in->parent->module;
    const char *text = hlo_attribute(m->arena, in->frontend_attrs, key);
    int *rank = sd_arena_array(m->arena, int, n + 1);

    *has = text != NULL;
    for (int i = 0; i < n; i++)
        rank[i] = SD_MAX_RANK;
    return text ? spmd_named(hlo_shardings_read(m, text, n, rank, out), in)
                : NULL;
}
