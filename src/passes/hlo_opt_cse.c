/* Equal instructions become one: a hash table over each computation in its
 * order.  Regions of equal content count as equal (JAX writes one for each
 * use), and so do meetings: all participants run one program.  What has an
 * effect and loops, branches and calls stay. */
#include "passes_priv.h"

typedef struct entry entry;
struct entry {
    hlo_inst *in;
    entry *next;
};

static bool may_merge(const hlo_inst *in)
{
    switch (hlo_info(in)->cls) {
    case HLO_C_CONTROL:
    case HLO_C_CUSTOM:
    case HLO_C_RNG:
    case HLO_C_TOKENS:
        return false;
    case HLO_C_TUPLE: /* barriers are there to keep things apart */
        return in->op != HLO_OPT_BARRIER;
    default:
        return in->op != HLO_PARAMETER;
    }
}

static uint64_t hash_inst(const hlo_inst *in)
{
    uint64_t h = hlo_hash_attributes(in, (uint64_t)in->op);

    h = h * 31 + (uint64_t)in->shape->dtype;
    if (in->shape->rank)
        h = sd_hash(in->shape->dim, sizeof(int64_t) * (size_t)in->shape->rank,
                    h);
    for (int i = 0; i < in->narg; i++)
        h = (h ^ (uint64_t)in->arg[i]->id) * UINT64_C(0x9E3779B97F4A7C15);
    return h;
}

static bool same_inst(const hlo_inst *x, const hlo_inst *y)
{
    if (x->narg != y->narg || x->ncomp != y->ncomp ||
        !sd_shape_equal(x->shape, y->shape))
        return false;
    for (int i = 0; i < x->narg; i++)
        if (x->arg[i] != y->arg[i])
            return false;
    if (!hlo_same_attributes(x, y))
        return false;
    for (int i = 0; i < x->ncomp; i++)
        if (!pass_same_comp(x->comp[i], y->comp[i]))
            return false;
    return true;
}

static bool merge_in_comp(sd_arena *a, hlo_comp *c)
{
    sd_map *seen = sd_map_create(a);
    bool changed = false;

    hlo_for_each_inst(in, c) {
        if (!may_merge(in))
            continue;
        uint64_t h = hash_inst(in);
        entry *first = sd_map_get(seen, h), *e = first;

        while (e && !same_inst(e->in, in))
            e = e->next;
        if (e) {
            pass_replace(in, e->in);
            changed = true;
            continue;
        }
        e = sd_arena_new(a, entry);
        *e = (entry){in, first};
        sd_map_set(seen, h, e);
    }
    return changed;
}

bool hlo_opt_cse(hlo_module *m)
{
    sd_arena *a = sd_arena_create();
    bool changed = false;

    hlo_for_each_comp(c, m)
        changed |= merge_in_comp(a, c);
    sd_arena_destroy(a);
    return changed;
}
