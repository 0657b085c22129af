/* Who takes part in a collective.  Programs count members in four ways (XLA's
 * modes): replicas, partitions, replicas with all their partitions, or all
 * participants through; here each becomes lists of participants. */
#include "hlo_priv.h"
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

int64_t hlo_group_names(const hlo_module *m, hlo_op op, const hlo_collective *c)
{
    switch (mode_of(op, c)) {
    case OF_REPLICAS:
    case OF_BOTH:
        return m->nreplica;
    case OF_PARTITIONS:
        return m->npartition;
    default:
        return hlo_participants(m);
    }
}

int64_t hlo_group_size(const hlo_module *m, hlo_op op, const hlo_collective *c)
{
    int64_t n = c->ngroup ? c->group_size : hlo_group_names(m, op, c);

    return mode_of(op, c) == OF_BOTH ? n * m->npartition : n;
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
        int64_t n = hlo_group_names(m, in->op, &c);
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

/* ---- in a custom call's configuration ---- */

/* dense<[[0, 1], [2, 3]]>: a group a row, all of one size */
static bool take_rows(sd_arena *a, const char *s, hlo_collective *c)
{
    numbers all = {0};
    int64_t row = 0;
    int depth = 0;

    for (; *s && *s != '>'; s++) {
        if (*s == '[' && ++depth == 2)
            row = all.n;
        if (*s == ']' && depth-- == 2) {
            if (c->ngroup++ && all.n - row != c->group_size)
                return false;
            c->group_size = all.n - row;
        }
        if (*s >= '0' && *s <= '9') {
            *sd_push(a, &all) = 0;
            for (; *s >= '0' && *s <= '9'; s++)
                all.at[all.n - 1] =
                    all.at[all.n - 1] % (1 << 24) * 10 + (*s - '0');
            s--;
        } else if (!strchr("[], ", *s)) {
            return false;
        }
    }
    c->groups = all.at;
    return *s && !depth && c->ngroup && c->group_size;
}

bool hlo_config_groups(hlo_module *m, const hlo_custom *u, hlo_collective *out)
{
    const char *s = u->config ? strstr(u->config, "replica_groups = ") : NULL;
    sd_status st;

    *out = (hlo_collective){.use_global_ids = true, .channel = 1, .dim = -1};
    if (!s)
        return false;
    s += strlen("replica_groups = ");
    if (strncmp(s, "dense<", 6) == 0) {
        if (!take_rows(m->arena, s + 6, out))
            return false;
    } else {
        const char *end = strstr(s, "]>");

        if (!end)
            return false;
        st = hlo_mesh_groups(
            m, sd_arena_str(m->arena, s, (size_t)(end + 2 - s)), out);
        sd_status_free(st);
        if (st)
            return false;
    }
    for (int64_t i = 0; i < out->ngroup * out->group_size; i++)
        if (out->groups[i] >= hlo_participants(m))
            return false;
    return true;
}
