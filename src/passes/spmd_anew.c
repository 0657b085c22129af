/* What everybody can compute of numbers alone (random bits are) is computed for
 * a user that wants a part as that part, of such parts: no element of the whole
 * is made that nobody wants. */
#include "spmd_choice.h"

bool spmd_is_anew(const spmd_flow *f, const hlo_inst *in)
{
    bool ok = in->op == HLO_BROADCAST || in->op == HLO_TRANSPOSE ||
              in->op == HLO_RESHAPE || in->op == HLO_IOTA ||
              in->op == HLO_CONSTANT || hlo_info(in)->cls <= HLO_C_CONVERT;

    ok &= sd_shape_is_array(in->shape) && in->shape->rank;
    for (int i = 0; ok && i < in->narg; i++)
        ok = sd_shape_is_array(in->arg[i]->shape) &&
             (!in->arg[i]->shape->rank || spmd_was_anew(f, in->arg[i]));
    return ok;
}

static hlo_inst *cut_iota(hlo_inst *in, const sd_shape *local,
                          const hlo_sharding *s)
{
    hlo_at p = pass_at(in);
    int d = (int)in->dims.at[0];
    sd_dtype t = spmd_counts(in->shape);
    const sd_shape *ints =
        sd_shape_make(p.c->module->arena, t, local->rank, local->dim);
    hlo_inst *from;

    if (local->dim[d] == in->shape->dim[d])
        return hlo_make_iota(p, local, d);
    /* numbers of few bits are rounded once, as those of the whole are */
    from = spmd_begin(p, s->grid, &s->dim[d].cut, local->dim[d], t);
    return pass_convert(
        p, local->dtype,
        hlo_make_binary(p, HLO_ADD, hlo_make_iota(p, ints, d),
                        hlo_make_broadcast(p, from, ints, NULL, 0)));
}

/* The operands' shardings that give a result by s; false: none do. */
static bool operands_for(const spmd_flow *f, const hlo_inst *in,
                         const hlo_sharding *s, const hlo_sharding **arg)
{
    spmd_choice c = {.like = s};
    spmd_rule r;

    if (!spmd_rule_of(in, &r))
        return false;
    for (int d = 0; d < s->rank; d++) {
        const hlo_atoms *a = &s->dim[d].cut;
        int k = r.result[d];

        if (a->n && k >= 0) {
            if (!spmd_fits(&r.factor[k], hlo_atoms_size(s->grid, a)))
                return false;
            c.cut[k] = *a;
        } else if (a->n && in->op != HLO_BROADCAST) {
            return false;
        }
    }
    for (int k = 0; k < in->narg; k++)
        arg[k] =
            spmd_factors_sharding(f, &c, r.arg[k], in->arg[k]->shape->rank);
    return true;
}

hlo_inst *spmd_spread_again(spmd_flow *f, hlo_inst *in, const hlo_sharding *s)
{
    const hlo_sharding *by;
    hlo_inst *x = in->arg[0];

    if (s->unreduced || !operands_for(f, in, s, &by))
        return NULL;
    x = hlo_sharding_used(by) ? spmd_as(f, pass_at(in), x, by)
                              : spmd_whole(f, x);
    return spmd_on_parts(in, spmd_part_shape(f->m, in->shape, s), &x, 0);
}

typedef struct {
    hlo_inst *in;
    const hlo_sharding *s;
} want;
typedef sd_vec(want) want_list;

static hlo_inst *known_as(const spmd_flow *f, const hlo_inst *in,
                          const hlo_sharding *s)
{
    sd_map *as = sd_map_get(f->anew, sd_key(in));

    return as ? sd_map_get(as, sd_key(s)) : NULL;
}

/* in by s of operands that are there; NULL: there are operands to be made
 * first, which have been put on the list. */
static hlo_inst *make_part(spmd_flow *f, want w, want_list *todo)
{
    const hlo_sharding *by[SPMD_MOST_ARGS];
    hlo_inst *arg[SPMD_MOST_ARGS], *x = NULL;
    hlo_at p = pass_at(w.in);
    int before = todo->n;
    const sd_shape *local = spmd_part_shape(f->m, w.in->shape, w.s);

    if (w.in->op == HLO_IOTA) {
        x = cut_iota(w.in, local, w.s);
    } else if (w.in->op != HLO_CONSTANT && operands_for(f, w.in, w.s, by)) {
        for (int k = 0; k < w.in->narg; k++) {
            arg[k] = w.in->arg[k];
            if (!arg[k]->shape->rank)
                arg[k] = spmd_whole(f, arg[k]);
            else if (hlo_sharding_used(by[k]) &&
                     !(arg[k] = known_as(f, w.in->arg[k], by[k])))
                *sd_push(f->a, todo) = (want){w.in->arg[k], by[k]};
        }
        if (todo->n > before)
            return NULL;
        x = spmd_on_parts(w.in, local, arg, 0);
    }
    return x ? x : spmd_cut((hlo_at){p.c, w.in->next, w.in}, w.in, w.s);
}

/* With a list: programs are deeper than the stack. */
hlo_inst *spmd_made_anew(spmd_flow *f, hlo_inst *in, const hlo_sharding *s)
{
    want_list todo = {0};

    *sd_push(f->a, &todo) = (want){in, s};
    while (todo.n) {
        want w = todo.at[todo.n - 1];
        hlo_inst *x = known_as(f, w.in, w.s);

        if (!x && (x = make_part(f, w, &todo)))
            sd_map_set(sd_map_get(f->anew, sd_key(w.in)), sd_key(w.s), x);
        if (x)
            todo.n--;
    }
    return known_as(f, in, s);
}
