/* Who takes part in a collective.  Programs count members in four ways (XLA's
 * modes): replicas, partitions, replicas with all their partitions, or all
 * participants through; here each becomes lists of participants. */
#include "hlo_sharding.h"

typedef enum { OF_REPLICAS, OF_PARTITIONS, OF_BOTH, OF_ALL } mode;

static mode mode_of(hlo_op op, const hlo_collective *c)
{
    if (c->use_global_ids)
        return OF_ALL;
    if (c->channel <= 0)
        return OF_REPLICAS;
    return op == HLO_ALL_TO_ALL || op == HLO_COLLECTIVE_PERMUTE ||
                   op == HLO_COLLECTIVE_BROADCAST
               ? OF_PARTITIONS
               : OF_BOTH;
}

typedef sd_vec(int64_t) numbers;

/* The groups once for each of the other kind: participant r * partitions + q.
 */
static void put_groups(sd_arena *a, const hlo_module *m, mode how,
                       const hlo_collective *c, numbers *to)
{
    int64_t np = m->npartition, nr = m->nreplica;
    int64_t times = how == OF_REPLICAS ? np : how == OF_PARTITIONS ? nr : 1;

    for (int64_t t = 0; t < times; t++)
        for (int64_t i = 0; i < c->ngroup * c->group_size; i++) {
            int64_t v = c->groups[i];

            if (how == OF_BOTH)
                for (int64_t q = 0; q < np; q++)
                    *sd_push(a, to) = v < 0 ? v : v * np + q;
            else
                *sd_push(a, to) = v < 0                  ? v
                                  : how == OF_REPLICAS   ? v * np + t
                                  : how == OF_PARTITIONS ? t * np + v
                                                         : v;
        }
}

hlo_collective hlo_explicit_groups(sd_arena *a, const hlo_inst *in)
{
    const hlo_module *m = in->parent->module;
    hlo_collective c = {0};
    numbers to = {0};
    mode how;

    if (in->u.coll)
        c = *in->u.coll;
    how = mode_of(in->op, &c);
    if (!c.ngroup && in->op != HLO_COLLECTIVE_PERMUTE) {
        int64_t n = how == OF_REPLICAS || how == OF_BOTH ? m->nreplica
                    : how == OF_PARTITIONS               ? m->npartition
                                                         : hlo_participants(m);
        int64_t *all = sd_arena_array(a, int64_t, n);

        for (int64_t i = 0; i < n; i++)
            all[i] = i;
        c.groups = all;
        c.ngroup = 1;
        c.group_size = n;
    }
    put_groups(a, m, how, &c, &to);
    if (how == OF_BOTH)
        c.group_size *= m->npartition;
    c.groups = to.at;
    c.ngroup = c.group_size ? to.n / c.group_size : 0;
    c.use_global_ids = true;
    return c;
}
