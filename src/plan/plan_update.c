/* What an update in place takes into its kernel.  It cannot read its operand
 * anywhere but where it writes, so what does is written to memory before.  Of
 * several such readers (the neighbours of each point of a grid) that would be
 * an array each; what is computed of them is one. */
#include "plan_cluster.h"

enum { LEAST_BEFORE = 256 /* elements; fewer are at hand either way */ };

static hlo_inst *named(hlo_inst *x)
{
    while (plan_is_alias(x))
        x = x->arg[0];
    return x;
}

bool cluster_reads_updated(const cluster *c, const hlo_inst *in)
{
    hlo_inst *old = c->update ? c->update->arg[0] : NULL;

    if (!old)
        return false;
    old = named(old->op == HLO_COPY ? old->arg[0] : old);
    for (int i = 0; i < in->narg; i++)
        if (named(in->arg[i]) == old)
            return true;
    return false;
}

typedef sd_vec(hlo_inst *) insts;

static void push_once(clusters *cs, insts *todo, hlo_inst *x)
{
    cluster_info *f = info_of(x);

    if (!f || f->epoch == cs->epoch || !f->fusable || plan_is_reducing(x))
        return;
    f->epoch = cs->epoch;
    *sd_push(cs->a, todo) = x;
}

/* Elements of the readers that x is computed from in one kernel, if they were
 * in it. */
static double count_read(clusters *cs, const cluster *c, hlo_inst *x)
{
    insts todo = {0};
    double n = 0;

    cs->epoch++;
    push_once(cs, &todo, x);
    while (todo.n) {
        hlo_inst *in = todo.at[--todo.n];

        if (cluster_reads_updated(c, in)) {
            n += (double)cluster_count_of(in);
            continue;
        }
        for (int i = 0; i < in->narg; i++)
            push_once(cs, &todo, in->arg[i]);
    }
    return n;
}

const hlo_inst *cluster_computed_before(clusters *cs, const cluster *c)
{
    hlo_inst *u = c->update;
    hlo_inst *x = named(u->arg[u->op == HLO_SCATTER ? 2 : 1]);

    if (cluster_count_of(x) < LEAST_BEFORE)
        return NULL;
    return count_read(cs, c, x) > (double)cluster_count_of(x) ? x : NULL;
}
