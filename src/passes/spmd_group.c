/* Values that are to be cut alike (JAX's shard_alike): each of a group passes
 * through a mark.  Of those that are had in parts where the first mark is met,
 * the one in most parts decides. */
#include "spmd_flow.h"

static const char *group_of(const hlo_inst *in)
{
    return in->op == HLO_CUSTOM_CALL &&
                   strcmp(in->u.custom->target, HLO_GROUP_TARGET) == 0
               ? hlo_attribute(in->parent->module->arena, in->frontend_attrs,
                               "xla.sdy.sharding_group_id")
               : NULL;
}

bool spmd_is_group(const hlo_inst *in)
{
    return group_of(in) != NULL && in->narg == 1;
}

int64_t spmd_nparts(const hlo_sharding *s)
{
    int64_t n = 1;

    for (int d = 0; d < s->rank; d++)
        n *= hlo_atoms_size(s->grid, &s->dim[d].cut);
    return n;
}

static const hlo_sharding *finer(const hlo_sharding *s, const hlo_sharding *t)
{
    return !s || (t && spmd_nparts(t) > spmd_nparts(s)) ? t : s;
}

/* What the group is cut by as far as is known; NULL: nothing. */
static const hlo_sharding *best_of(const spmd_flow *f, const hlo_inst *in)
{
    const char *id = group_of(in);
    const hlo_sharding *best = NULL;

    hlo_for_each_comp(c, in->parent->module)
        hlo_for_each_inst(x, c) {
            const char *other = group_of(x);

            if (!other || strcmp(other, id) != 0 ||
                !sd_shape_same_dims(x->shape, in->shape))
                continue;
            best = finer(best, spmd_part_sharding(f, x));
            best = finer(best, spmd_part_sharding(f, x->arg[0]));
        }
    return best;
}

void spmd_group(spmd_flow *f, hlo_inst *in)
{
    const hlo_sharding *s = best_of(f, in);

    if (s)
        s = spmd_cuts(
            in->parent->module,
            hlo_sharding_unreduced(in->parent->module, s, 0, HLO_SUM_OF),
            s->rank, HLO_ALL_ATOMS);
    if (!s || hlo_sharding_is_whole(s))
        pass_replace(in, spmd_whole(f, in->arg[0]));
    else
        spmd_set_part(f, in, spmd_as(f, pass_at(in), in->arg[0], s), s);
}
