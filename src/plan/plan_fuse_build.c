/* A cluster becomes a fusion instruction with a called computation. */
#include "plan_cluster.h"

typedef struct {
    hlo_module *m;
    hlo_comp *fused;
    sd_map *as; /* instruction -> its copy inside */
    sd_vec(hlo_inst *) operand;
} builder;

static hlo_inst *operand_of(clusters *cs, builder *b, hlo_inst *in)
{
    *sd_push(cs->a, &b->operand) = in;
    return hlo_make_param(b->fused, in->shape, "param");
}

static hlo_inst *inside(clusters *cs, builder *b, hlo_inst *in)
{
    hlo_inst *p = sd_map_get(b->as, sd_key(in));

    if (p)
        return p;
    /* constants of one value are known inside */
    if (in->op == HLO_CONSTANT && (in->shape->rank == 0 || hlo_is_splat(in))) {
        p = hlo_inst_clone(b->fused, NULL, in, NULL);
    } else {
        p = operand_of(cs, b, in);
    }
    sd_map_set(b->as, sd_key(in), p);
    return p;
}

static void clone_members(clusters *cs, cluster *c, builder *b)
{
    for (int i = c->member.n - 1; i >= 0; i--) { /* operands first */
        hlo_inst *in = c->member.at[i].in;
        hlo_inst **arg = sd_arena_array(cs->a, hlo_inst *, in->narg + 1);

        if (sd_map_has(b->as, sd_key(in)))
            continue;
        for (int k = 0; k < in->narg; k++)
            arg[k] = in->op == HLO_CUSTOM_CALL ? operand_of(cs, b, in->arg[k])
                                               : inside(cs, b, in->arg[k]);
        sd_map_set(b->as, sd_key(in), hlo_inst_clone(b->fused, NULL, in, arg));
    }
}

static int op_count(const cluster *c)
{
    int n = 0;

    for (int i = 0; i < c->member.n; i++) {
        const hlo_inst *in = c->member.at[i].in;

        n += in->op != HLO_CONSTANT && in->op != HLO_GET_TUPLE_ELEMENT;
    }
    return n;
}

static const hlo_inst *only_op(const cluster *c)
{
    for (int i = 0; i < c->member.n; i++)
        if (c->member.at[i].in->op != HLO_CONSTANT &&
            c->member.at[i].in->op != HLO_GET_TUPLE_ELEMENT)
            return c->member.at[i].in;
    return c->root.at[0];
}

static hlo_fusion_kind kind_of(const cluster *c)
{
    if (c->red || (c->inner && c->inner->op == HLO_REDUCE))
        return HLO_FUSION_INPUT;
    if (c->inner && c->inner->op != HLO_REDUCE_WINDOW && op_count(c) > 1)
        return HLO_FUSION_OUTPUT;
    return HLO_FUSION_LOOP;
}

static void take_names(clusters *cs, cluster *c, const char **inst,
                       const char **comp)
{
    char *s;

    *inst = NULL; /* the op's own: "fusion" */
    *comp = "fused_computation";
    if (op_count(c) > 1)
        return;
    s = sd_arena_fmt(cs->a, "wrapped_%s", hlo_info(only_op(c))->name);
    for (char *p = s; *p; p++)
        if (*p == '-')
            *p = '_';
    *inst = s;
    *comp = sd_arena_fmt(cs->a, "%s_computation", s);
}

static hlo_inst *fused_root(clusters *cs, cluster *c, builder *b)
{
    hlo_inst **root = sd_arena_array(cs->a, hlo_inst *, c->root.n);
    hlo_at at = {b->fused, NULL, NULL};

    for (int i = 0; i < c->root.n; i++)
        root[i] = sd_map_get(b->as, sd_key(c->root.at[i]));
    if (c->root.n == 1)
        return root[0];
    return hlo_make_tuple(at, c->root.n, root);
}

static void sort_roots(cluster *c)
{
    for (int i = 1; i < c->root.n; i++)
        for (int j = i; j > 0 && info_of(c->root.at[j])->order <
                                     info_of(c->root.at[j - 1])->order;
             j--) {
            hlo_inst *t = c->root.at[j];

            c->root.at[j] = c->root.at[j - 1];
            c->root.at[j - 1] = t;
        }
}

void cluster_build(clusters *cs, cluster *c)
{
    hlo_module *m = cs->c->module;
    builder b = {.m = m, .as = sd_map_create(cs->a)};
    const char *inst_name, *comp_name;
    hlo_inst *f, *root;

    sort_roots(c);
    take_names(cs, c, &inst_name, &comp_name);
    b.fused = hlo_comp_create(m, comp_name);
    hlo_comp_move_before(b.fused, cs->c); /* callees first */
    clone_members(cs, c, &b);
    root = fused_root(cs, c, &b);
    hlo_set_root(b.fused, root);
    f = hlo_inst_create(cs->c, NULL, HLO_FUSION, root->shape, b.operand.n,
                        b.operand.at);
    f->u.fusion.kind = kind_of(c);
    hlo_set_comps(f, 1, &b.fused);
    if (inst_name)
        hlo_rename(f, inst_name);
    hlo_take_source(f, c->root.at[0]);
    c->fusion = f;
}

void cluster_replace(clusters *cs, cluster *c)
{
    for (int i = 0; i < c->root.n; i++) {
        hlo_inst *with = c->fusion;

        if (c->root.n > 1)
            with = hlo_make_gte((hlo_at){cs->c, NULL, with}, with, i);
        hlo_replace(c->root.at[i], with);
    }
}
