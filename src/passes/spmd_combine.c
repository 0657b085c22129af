/* Sums that do not wait for each other are one collective of several arrays:
 * a step's gradients meet once.  How far an all-reduce is from the
 * computation's results, counted in all-reduces, says which do not: of two at
 * the same distance neither needs the other, and gradients are at the end. */
#include "spmd.h"

enum { MOST_BYTES = 32 << 20 }; /* that are held back for one meeting */

typedef struct {
    hlo_inst *in;
    int64_t far;
    bool taken;
} sum;
typedef sd_vec(sum) sum_list;

/* of one array, among groups that are listed */
static bool is_sum(const hlo_inst *in)
{
    return in->op == HLO_ALL_REDUCE && in->narg == 1 &&
           sd_shape_is_array(in->shape) && in->u.coll && in->u.coll->ngroup;
}

static bool meet_alike(const hlo_inst *x, const hlo_inst *y)
{
    const hlo_collective *a = x->u.coll, *b = y->u.coll;
    hlo_op op[2];

    return x->shape->dtype == y->shape->dtype && a->ngroup == b->ngroup &&
           a->group_size == b->group_size && a->channel == b->channel &&
           a->use_global_ids == b->use_global_ids &&
           !memcmp(a->groups, b->groups,
                   sizeof *a->groups * (size_t)(a->ngroup * a->group_size)) &&
           hlo_comp_is_binary(x->comp[0], &op[0]) &&
           hlo_comp_is_binary(y->comp[0], &op[1]) && op[0] == op[1];
}

/* How many all-reduces are on the longest way from in to the end. */
static int64_t *distance(hlo_inst *in)
{
    return &in->mark;
}

/* Every all-reduce of c, with its distance. */
static sum_list find_sums(sd_arena *a, hlo_comp *c)
{
    sum_list to = {0};

    hlo_for_each_inst(in, c)
        *distance(in) = 0;
    hlo_for_each_inst_backward(in, c)
        for (int i = 0; i < in->narg; i++)
            *distance(in->arg[i]) =
                SD_MAX(*distance(in->arg[i]),
                       *distance(in) + (in->op == HLO_ALL_REDUCE));
    hlo_for_each_inst(in, c)
        if (is_sum(in))
            *sd_push(a, &to) = (sum){in, *distance(in), false};
    return to;
}

static void make_one(hlo_comp *c, int n, hlo_inst **x)
{
    sd_arena *a = c->module->arena;
    hlo_inst **arg = sd_arena_array(a, hlo_inst *, n), *all;
    const sd_shape **s = sd_arena_array(a, const sd_shape *, n);
    hlo_at p = pass_at(x[n - 1]);

    for (int i = 0; i < n; i++) {
        arg[i] = x[i]->arg[0];
        s[i] = x[i]->shape;
    }
    all = hlo_inst_create(c, p.before, HLO_ALL_REDUCE, sd_shape_tuple(a, n, s),
                          n, arg);
    all->u = x[0]->u;
    hlo_set_comps(all, 1, x[0]->comp);
    hlo_take_source(all, x[n - 1]);
    for (int i = 0; i < n; i++) {
        hlo_replace(x[i], hlo_make_gte(p, all, i));
        hlo_remove(x[i]);
    }
}

/* Those that go with the i-th, as many as may. */
static bool combine_with(sd_arena *a, hlo_comp *c, sum_list *l, int i)
{
    hlo_inst **x = sd_arena_array(a, hlo_inst *, l->n);
    size_t bytes = 0;
    int n = 0;

    for (int k = i; k < l->n; k++) {
        sum *s = &l->at[k];
        size_t more = sd_shape_bytes(s->in->shape);

        if (s->taken || s->far != l->at[i].far ||
            (n && (bytes + more > MOST_BYTES || !meet_alike(x[0], s->in))))
            continue;
        s->taken = true;
        bytes += more;
        x[n++] = s->in;
    }
    if (n > 1)
        make_one(c, n, x);
    return n > 1;
}

void spmd_combine(hlo_module *m)
{
    sd_arena *a = sd_arena_create();

    hlo_for_each_comp(c, m) {
        sum_list l = find_sums(a, c);
        bool changed = false;

        for (int i = 0; i < l.n; i++)
            if (!l.at[i].taken)
                changed |= combine_with(a, c, &l, i);
        if (changed)
            hlo_comp_sort(c);
    }
    sd_arena_destroy(a);
}
