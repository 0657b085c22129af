/* Sorts become fusions before all else, each with what only it should see:
 * operands that count the elements of a row are made inside, results that
 * nobody wants are not written, and where only the first elements of each row
 * are wanted the slices that say so come with it, so that a kernel need not
 * put the rest in order:
 *
 *   sort.1 = (f32[n], s32[n]) sort(x, iota)     sort_fusion = (f32[k], s32[k])
 *   slice(gte(sort.1, 0)), slice [0:k]       ->   fusion(x), calls={iota, sort,
 *   slice(gte(sort.1, 1)), slice [0:k]              gtes, slices [0:k], tuple}
 */
#include "plan_room.h"

typedef struct {
    hlo_inst *sort;
    int n;          /* results */
    bool tuple;     /* they come in one */
    int64_t dim, keep;
    hlo_inst **got; /* of a tuple: the get-tuple-element of a result, or NULL */
    bool whole; /* something takes the tuple itself */
    bool plain; /* all results are wanted, in full */
} sorting;

static bool starts_row(const sorting *s, const hlo_inst *in)
{
    return in->op == HLO_SLICE && in->u.slice.start[s->dim] == 0 &&
           in->u.slice.stride[s->dim] == 1;
}

/* How many elements of a row do the users of x want? */
static int64_t wanted(const sorting *s, const hlo_inst *x)
{
    int64_t most = 0, n = x->shape->dim[s->dim];

    if (x == x->parent->root)
        return n;
    hlo_for_each_user(u, x) {
        if (!starts_row(s, u))
            return n;
        most = SD_MAX(most, u->u.slice.limit[s->dim]);
    }
    return most;
}

static void look_at_users(sd_arena *a, sorting *s)
{
    hlo_inst *in = s->sort;

    s->tuple = in->shape->dtype == SD_TUPLE;
    s->n = s->tuple ? in->shape->nelem : 1;
    s->dim = in->dims.at[0];
    s->got = sd_arena_array(a, hlo_inst *, s->n);
    s->whole = in == in->parent->root && s->tuple;
    if (!s->tuple) {
        s->got[0] = in;
        s->keep = wanted(s, in);
        return;
    }
    hlo_for_each_user(u, in) {
        if (u->op != HLO_GET_TUPLE_ELEMENT || s->got[u->u.tuple.index])
            s->whole = true; /* twice the same: cse would have joined them */
        else
            s->got[u->u.tuple.index] = u;
    }
    for (int i = 0; i < s->n; i++)
        if (s->got[i])
            s->keep = SD_MAX(s->keep, wanted(s, s->got[i]));
}

static void look(sd_arena *a, sorting *s)
{
    int64_t n = s->sort->arg[0]->shape->dim[s->sort->dims.at[0]];

    look_at_users(a, s);
    if (s->whole)
        s->keep = n;
    s->plain = s->keep == n;
    for (int i = 0; i < s->n; i++)
        s->plain &= s->got[i] != NULL;
    s->plain |= s->whole;
}

/* Counts along the row, and is the same in all rows. */
static bool counts(const sorting *s, const hlo_inst *in)
{
    if (in->op == HLO_BROADCAST)
        return in->arg[0]->op == HLO_IOTA && in->arg[0]->shape->rank == 1 &&
               in->dims.at[0] == s->dim;
    return in->op == HLO_IOTA && in->dims.at[0] == s->dim;
}

static hlo_inst *iota_inside(hlo_comp *f, const sorting *s, const hlo_inst *in)
{
    return hlo_make_iota((hlo_at){f, NULL, NULL}, in->shape, s->dim);
}

/* Result i of the sort inside, as much of it as is wanted. */
static hlo_inst *result_inside(hlo_comp *f, const sorting *s, hlo_inst *sort,
                               int i)
{
    hlo_at at = {f, NULL, NULL};
    hlo_inst *x = s->tuple ? hlo_make_gte(at, sort, i) : sort;

    return hlo_make_cut(at, x, s->dim, 0, s->keep);
}

static hlo_inst *root_inside(sd_arena *a, hlo_comp *f, const sorting *s,
                             hlo_inst *sort)
{
    hlo_inst **x = sd_arena_array(a, hlo_inst *, s->n);
    int n = 0;

    if (s->plain)
        return sort;
    for (int i = 0; i < s->n; i++)
        if (s->got[i])
            x[n++] = result_inside(f, s, sort, i);
    return n == 1 ? x[0] : hlo_make_tuple((hlo_at){f, NULL, NULL}, n, x);
}

static hlo_inst *make_fusion(sd_arena *a, const sorting *s, hlo_comp *f)
{
    hlo_inst *in = s->sort, *sort, *fusion;
    hlo_inst **arg = sd_arena_array(a, hlo_inst *, in->narg);
    hlo_inst **operand = sd_arena_array(a, hlo_inst *, in->narg);
    int n = 0;

    for (int i = 0; i < in->narg; i++) {
        if (counts(s, in->arg[i])) {
            arg[i] = iota_inside(f, s, in->arg[i]);
            continue;
        }
        arg[i] = hlo_make_param(f, in->arg[i]->shape, "param");
        operand[n++] = in->arg[i];
    }
    sort = hlo_inst_clone(f, NULL, in, arg);
    hlo_set_root(f, root_inside(a, f, s, sort));
    fusion =
        hlo_inst_create(in->parent, in, HLO_FUSION, f->root->shape, n, operand);
    fusion->u.fusion.kind = HLO_FUSION_LOOP;
    hlo_take_source(fusion, in);
    hlo_set_comps(fusion, 1, &f);
    hlo_rename(fusion, s->plain ? "wrapped_sort" : "sort_fusion");
    return fusion;
}

/* The slices of result x, of which `with` has the first elements. */
static void replace_slices(hlo_inst *x, hlo_inst *with)
{
    while (x->nuse) {
        hlo_inst *u = x->user[0], *to = with;

        if (!sd_shape_equal(u->shape, with->shape))
            to = hlo_make_slice((hlo_at){u->parent, u, NULL}, with,
                                u->u.slice.start, u->u.slice.limit,
                                u->u.slice.stride);
        hlo_replace(u, to);
        hlo_remove(u);
    }
}

static void replace_results(const sorting *s, hlo_inst *fusion)
{
    bool several = fusion->shape->dtype == SD_TUPLE;
    int n = 0;

    if (s->whole) {
        hlo_replace(s->sort, fusion);
        return;
    }
    for (int i = 0; i < s->n; i++) {
        hlo_inst *x = s->got[i], *with = fusion;

        if (!x)
            continue;
        if (several)
            with = hlo_make_gte((hlo_at){x->parent, x, NULL}, fusion,
                                s->plain ? i : n++);
        if (s->keep < x->shape->dim[s->dim])
            replace_slices(x, with);
        else
            hlo_replace(x, with);
        if (x != s->sort)
            hlo_remove(x);
    }
}

void plan_fuse_sort(hlo_inst *in)
{
    sd_arena *a = sd_arena_create();
    sorting s = {.sort = in};
    hlo_inst *fusion;
    hlo_comp *f;

    look(a, &s);
    f = hlo_comp_create(in->parent->module, s.plain
                                                ? "wrapped_sort_computation"
                                                : "sort_fusion_computation");
    hlo_comp_move_before(f, in->parent);
    fusion = make_fusion(a, &s, f);
    replace_results(&s, fusion);
    hlo_remove(in);
    sd_arena_destroy(a);
}
