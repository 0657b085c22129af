/* What members bring to a collective is mostly wanted part by part: a sum is an
 * all-gather, or an all-to-all, and a kernel that adds what each of them had.
 * Where kernels can read the memory of other devices, such a kernel reads the
 * parts where they lie, and nothing is copied, but for what is large and meets
 * beside other kernels (plan_beside.c), which engines bring that these do not
 * need: a slice outside of all fusions
 * is one member's part, its collective and it are no steps, and the fusion,
 * whose first operands they are, is the collective's step (plan_steps.c). */
#include "plan_room.h"

enum {
    MOST = 64, /* members: operands of one kernel */
    ACCESS = 16, /* bytes: a part begins where a kernel may read so many */
    LARGE = 1 << 20 /* bytes of a part: engines bring it */
};

static bool is_part(const hlo_inst *in)
{
    return in->op == HLO_SLICE && sd_shape_count(in->shape);
}

bool plan_is_peers(const hlo_inst *in)
{
    if (is_part(in))
        in = in->arg[0];
    return (in->op == HLO_ALL_GATHER || in->op == HLO_ALL_TO_ALL) && in->nuse &&
           is_part(in->user[0]);
}

/* ---- may it be so? ---- */

/* All participants are members, and what each brings is one block. */
static bool brings_blocks(const hlo_inst *in)
{
    const hlo_collective *c = in->u.coll;

    if (c->group_size > MOST ||
        c->ngroup * c->group_size != hlo_participants(in->parent->module))
        return false;
    for (int64_t i = 0; i < c->ngroup * c->group_size; i++)
        if (c->groups[i] < 0)
            return false;
    for (int64_t i = 0; i < hlo_collective_dim(in); i++)
        if (in->shape->dim[i] != 1)
            return false;
    return in->op == HLO_ALL_GATHER ||
           sd_shape_bytes(in->shape) / (size_t)c->group_size % ACCESS == 0;
}

/* Whose part of it a slice of all that has come is, or -1. */
static int64_t member_of(const hlo_inst *all, const hlo_inst *slice)
{
    const sd_shape *s = all->shape;
    int64_t dim = hlo_collective_dim(all),
            each = s->dim[dim] / all->u.coll->group_size;

    for (int i = 0; i < s->rank; i++) {
        int64_t from = slice->u.slice.start[i], to = slice->u.slice.limit[i];

        if (slice->u.slice.stride[i] != 1 ||
            (i == dim ? from % each || to != from + each
                      : from || to != s->dim[i]))
            return -1;
    }
    return slice->u.slice.start[dim] / each;
}

/* Each part is read, and nothing else. */
static bool reads_parts(const hlo_inst *all, const hlo_inst *param)
{
    int64_t n = all->u.coll->group_size;
    uint64_t seen = 0;

    if (param == param->parent->root)
        return false;
    hlo_for_each_user(user, param) {
        int64_t k = user->op == HLO_SLICE ? member_of(all, user) : -1;

        if (k < 0)
            return false;
        seen |= UINT64_C(1) << k;
    }
    return seen == UINT64_MAX >> (MOST - n);
}

/* An element of each part for an element of each result: what is read again and
 * again is better brought first. */
static bool reads_once(const hlo_inst *all, const hlo_inst *f)
{
    const hlo_inst *root = f->comp[0]->root;
    int64_t each = sd_shape_count(all->shape) / all->u.coll->group_size;

    if (f->u.fusion.kind != HLO_FUSION_LOOP || root->op == HLO_SCATTER ||
        root->op == HLO_DYNAMIC_UPDATE_SLICE)
        return false;
    if (f->shape->dtype != SD_TUPLE)
        return sd_shape_count(f->shape) == each;
    for (int i = 0; i < f->shape->nelem; i++)
        if (sd_shape_count(f->shape->elem[i]) != each)
            return false;
    return true;
}

static double step_bytes(const hlo_inst *in)
{
    double sum = 0;

    if (in->op != HLO_FUSION && in->op != HLO_CUSTOM_CALL)
        return 0;
    for (int i = 0; i < in->narg; i++)
        sum += (double)sd_shape_bytes(in->arg[i]->shape);
    return sum + (double)sd_shape_bytes(in->shape);
}

/* f's sum is gathered, and much is computed before somebody wants it. */
static bool meets_beside(const hlo_inst *all, const hlo_inst *f,
                         const device_desc *dev)
{
    const hlo_inst *sum = f->nuse == 1 ? f->user[0] : NULL;
    double bytes = (double)sd_shape_bytes(all->shape), work = 0;

    if (device_kind_table[dev->kind].beside == 0 || all->op != HLO_ALL_TO_ALL ||
        bytes < (double)LARGE * (double)all->u.coll->group_size || !sum ||
        sum->op != HLO_ALL_GATHER)
        return false;
    while (sum->nuse == 1 &&
           (sum->user[0]->op == HLO_RESHAPE || sum->user[0]->op == HLO_BITCAST))
        sum = sum->user[0];
    for (const hlo_inst *in = f->next; in && !hlo_reads(in, sum); in = in->next)
        work += step_bytes(in);
    return work >= bytes;
}

/* Which operand of the one kernel that wants it: -1: it is to be brought. */
static int operand_of(const hlo_inst *in, const device_desc *dev)
{
    const hlo_inst *f = in->nuse == 1 ? in->user[0] : NULL;
    int k = 0;

    if ((in->op != HLO_ALL_GATHER && in->op != HLO_ALL_TO_ALL) || !f ||
        f->op != HLO_FUSION || in == in->parent->root || !brings_blocks(in))
        return -1;
    if (plan_is_peers(f->arg[0]) || /* a step has one collective */
        meets_beside(in, f, dev))
        return -1;
    while (f->arg[k] != in)
        k++;
    return reads_parts(in, f->comp[0]->param[k]) && reads_once(in, f) ? k : -1;
}

/* ---- make it so ---- */

static hlo_inst *part_of(hlo_at p, hlo_inst *all, int64_t i)
{
    int64_t dim = hlo_collective_dim(all),
            each = all->shape->dim[dim] / all->u.coll->group_size;

    return hlo_make_cut(p, all, dim, i * each, (i + 1) * each);
}

/* The fusion's computation, with the parts as its first parameters. */
static hlo_comp *body_of_parts(sd_arena *a, const hlo_inst *f, int k,
                               hlo_inst *const *arg, int n)
{
    const hlo_comp *was = f->comp[0];
    const hlo_inst *all = was->param[k];
    hlo_comp *c = hlo_comp_create(was->module, was->name);
    sd_map *as = sd_map_create(a);
    int next = n;

    hlo_comp_move_before(c, f->parent);
    for (int i = 0; i < n + f->narg - 1; i++)
        hlo_make_param(c, arg[i]->shape, "param");
    for (int i = 0; i < was->nparam; i++)
        if (i != k)
            sd_map_set(as, sd_key(was->param[i]), c->param[next++]);
    hlo_for_each_inst(in, was) {
        hlo_inst **to;

        if (in->op == HLO_PARAMETER)
            continue;
        if (in->op == HLO_SLICE && in->arg[0] == all) {
            sd_map_set(as, sd_key(in), c->param[member_of(f->arg[k], in)]);
            continue;
        }
        to = sd_arena_array(a, hlo_inst *, in->narg + 1);
        for (int i = 0; i < in->narg; i++)
            to[i] = sd_map_get(as, sd_key(in->arg[i]));
        sd_map_set(as, sd_key(in), hlo_inst_clone(c, NULL, in, to));
    }
    hlo_set_root(c, sd_map_get(as, sd_key(was->root)));
    return c;
}

static void read_in_place(sd_arena *a, hlo_inst *f, int k)
{
    hlo_at p = {f->parent, f, f};
    hlo_inst *all = f->arg[k], *to;
    int n = (int)all->u.coll->group_size, next = n;
    hlo_inst **arg = sd_arena_array(a, hlo_inst *, n + f->narg);
    hlo_comp *c;

    for (int i = 0; i < n; i++)
        arg[i] = part_of(p, all, i);
    for (int i = 0; i < f->narg; i++)
        if (i != k)
            arg[next++] = f->arg[i];
    c = body_of_parts(a, f, k, arg, n);
    to = hlo_inst_create(f->parent, f, HLO_FUSION, f->shape, next, arg);
    to->u.fusion = f->u.fusion;
    hlo_set_comps(to, 1, &c);
    hlo_take_source(to, f);
    hlo_replace(f, to);
    hlo_remove(f);
}

static void read_all(sd_arena *a, hlo_comp *c, const device_desc *dev)
{
    for (hlo_inst *in = c->first; in; in = in->next) {
        int k = operand_of(in, dev);

        if (k >= 0)
            read_in_place(a, in->user[0], k);
    }
}

void plan_peers(hlo_module *m, const device_desc *dev)
{
    sd_arena *a;

    if (hlo_participants(m) < 2 || !(dev->features & DEVICE_HAS_PEERS))
        return;
    a = sd_arena_create();
    hlo_for_each_comp(c, m)
        read_all(a, c, dev);
    sd_arena_destroy(a);
}
