/* The borders of manual computations: what goes in is cut as they say, what
 * comes out is the part of a whole array.  Axes that the computation leaves
 * automatic stay in parts through it. */
#include "spmd_flow.h"

/* Of each of its values; false: it says nothing. */
static sd_status read_list(const hlo_inst *in, bool into,
                           const hlo_sharding **out, bool *has)
{
    return spmd_read_list(
        in, into ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings",
        hlo_nresult(in), out, has);
}

static sd_status misfit(const hlo_inst *in, int i)
{
    return spmd_named(
        sd_error(SD_INVALID,
                 "value %d of a manual computation does not have the "
                 "shape that its sharding gives",
                 i),
        in);
}

static sd_status manual_atoms(const hlo_inst *in, const hlo_sharding *s,
                              uint32_t *mask)
{
    hlo_module *m = in->parent->module;
    const char *text =
        hlo_attribute(m->arena, in->frontend_attrs, "xla.sdy.manual_axes");

    *mask = 0;
    if (!text || !s->mesh || !s->mesh->naxis)
        return NULL;
    return spmd_named(hlo_axes_read(s->mesh, text, mask), in);
}

hlo_inst *spmd_stand_in(spmd_flow *f, hlo_inst *in, const sd_shape *whole,
                        hlo_inst *x, const hlo_sharding *s)
{
    hlo_inst *to = hlo_inst_create(in->parent, in, HLO_COPY, whole, 1, &x);

    hlo_take_source(to, in);
    spmd_set_part(f, to, x, s);
    return to;
}

/* What now says along axes that the computation leaves automatic; NULL: there
 * is nothing. */
static const hlo_sharding *automatic(hlo_module *m, const hlo_sharding *now,
                                     const hlo_sharding *s, uint32_t mask)
{
    const hlo_sharding *to;

    if (!now || now->grid != s->grid)
        return NULL;
    to = hlo_sharding_unreduced(m, spmd_cuts(m, now, now->rank, ~mask), 0,
                                HLO_SUM_OF);
    return hlo_sharding_is_whole(to) ? NULL : to;
}

/* An array cut by s along the manual axes, each part by `in` again; NULL: they
 * do not go together. */
static const hlo_sharding *both(hlo_module *m, const sd_shape *whole,
                                const hlo_sharding *s, const hlo_sharding *in)
{
    const hlo_sharding *to = s;
    const sd_shape *local;
    sd_status st;

    if (!in || in->rank != s->rank ||
        hlo_sharding_used(in) & (hlo_sharding_used(s) | s->unreduced))
        return NULL;
    for (int d = 0; d < s->rank; d++) {
        hlo_atoms cut = s->dim[d].cut;

        hlo_atoms_add(&cut, &in->dim[d].cut);
        to = hlo_sharding_with(m, to, d, cut);
    }
    st = spmd_local_shape(m, whole, to, HLO_ALL_ATOMS, &local);
    sd_status_free(st);
    return st ? NULL : to;
}

static sd_status enter(spmd_flow *f, hlo_inst *in, const hlo_sharding *s, int i,
                       uint32_t mask, hlo_inst **out)
{
    hlo_inst *x = in->arg[i];
    const sd_shape *local;
    const hlo_sharding *rest, *to;
    hlo_at p = pass_at(in);
    sd_status st =
        spmd_named(spmd_local_shape(f->m, x->shape, s, mask, &local), in);

    if (st)
        return st;
    if (!sd_shape_equal(local, hlo_result_shape(in, i)))
        return misfit(in, i);
    *out = x;
    if (!sd_shape_is_array(x->shape))
        return NULL;
    rest = automatic(f->m, spmd_part_sharding(f, x), s, mask);
    s = spmd_cuts(f->m, s, x->shape->rank, mask);
    if ((to = both(f->m, x->shape, s, rest)))
        *out = spmd_stand_in(f, in, local, spmd_as(f, p, x, to), rest);
    else
        *out = spmd_as(f, p, x, s);
    return NULL;
}

static sd_status leave(spmd_flow *f, hlo_inst *in, const hlo_sharding *s, int i,
                       uint32_t mask, hlo_inst **out)
{
    const sd_shape *whole = hlo_result_shape(in, i), *local;
    const hlo_sharding *rest, *to = NULL;
    hlo_inst *x = in->arg[i];
    sd_status st =
        spmd_named(spmd_local_shape(f->m, whole, s, mask, &local), in);

    if (st)
        return st;
    if (!sd_shape_equal(local, x->shape))
        return misfit(in, i);
    if (sd_shape_is_array(whole)) {
        rest = automatic(f->m, spmd_part_sharding(f, x), s, mask);
        s = spmd_cuts(f->m, s, whole->rank, mask);
        to = both(f->m, whole, s, rest);
    }
    if (to)
        x = spmd_as(f, pass_at(in), x, rest);
    else
        x = spmd_whole(f, x);
    *out = to || !sd_shape_equal(local, whole) || s->unreduced & mask
               ? spmd_stand_in(f, in, whole, x, to ? to : s)
               : x;
    return NULL;
}

static sd_status border(spmd_flow *f, hlo_inst *in, bool into)
{
    hlo_module *m = f->m;
    int n = in->narg;
    const hlo_sharding **s =
        sd_arena_array(m->arena, const hlo_sharding *, n + 1);
    hlo_inst **x = sd_arena_array(m->arena, hlo_inst *, n + 1);
    uint32_t mask;
    sd_status st;
    bool has;

    if (n != hlo_nresult(in))
        return spmd_named(sd_error(SD_INVALID,
                                   "%d operands and %d results of a border", n,
                                   hlo_nresult(in)),
                          in);
    if ((st = read_list(in, into, s, &has)))
        return st;
    for (int i = 0; i < n; i++) {
        if (!has)
            s[i] = hlo_sharding_replicated(m, 0);
        if ((st = manual_atoms(in, s[i], &mask)) ||
            (st = (into ? enter : leave)(f, in, s[i], i, mask, &x[i])))
            return st;
    }
    pass_replace(in, pass_results(pass_at(in), in->shape, x));
    return NULL;
}

/* The same in programs without Shardy: the sharding stands on the operand that
 * goes in, and on the call that comes out. */
static sd_status tiles_border(spmd_flow *f, hlo_inst *in, bool into)
{
    hlo_module *m = f->m;
    const hlo_inst *from = into ? in->arg[0] : in;
    const sd_shape *whole = into ? in->arg[0]->shape : in->shape, *local;
    const hlo_sharding *s;
    hlo_inst *x;
    sd_status st;

    if (!from->sharding || in->narg != 1)
        return spmd_named(sd_error(SD_UNIMPLEMENTED,
                                   "a manual computation's border without its "
                                   "sharding"),
                          in);
    if ((st = spmd_named(hlo_sharding_read(m, from->sharding, whole->rank, &s),
                         in)) ||
        (st = spmd_named(spmd_local_shape(m, whole, s, HLO_ALL_ATOMS, &local),
                         in)))
        return st;
    if (!sd_shape_equal(local, into ? in->shape : in->arg[0]->shape))
        return spmd_named(
            sd_error(SD_UNIMPLEMENTED,
                     "a manual computation with automatic axes, in a "
                     "program without Shardy"),
            in);
    x = spmd_whole(f, in->arg[0]);
    x = into ? spmd_cut(pass_at(in), x, s)
             : spmd_stand_in(f, in, whole, x,
                             spmd_cuts(m, s, whole->rank, HLO_ALL_ATOMS));
    pass_replace(in, x);
    return NULL;
}

static const hlo_sharding *guess_border(hlo_module *m, const sd_shape *whole,
                                        const hlo_sharding *s,
                                        const hlo_sharding *now, uint32_t mask,
                                        bool into)
{
    const hlo_sharding *rest = automatic(m, now, s, mask), *to;

    s = spmd_cuts(m, s, whole->rank, mask);
    to = both(m, whole, s, rest);
    return into ? to ? rest : NULL : to ? to : s;
}

const hlo_sharding *spmd_guess_border(const hlo_inst *in, int i,
                                      const hlo_sharding *now)
{
    hlo_module *m = in->parent->module;
    int n = hlo_nresult(in);
    bool into = spmd_mark_of(in) == SPMD_INTO, has = false;
    const hlo_sharding *to = NULL;
    const hlo_sharding **s =
        sd_arena_array(m->arena, const hlo_sharding *, n + 1);
    const sd_shape *whole;
    uint32_t mask;
    sd_status st;

    if (n != in->narg)
        return NULL;
    whole = into ? in->arg[i]->shape : hlo_result_shape(in, i);
    st = read_list(in, into, s, &has);
    if (!st && has && !(st = manual_atoms(in, s[i], &mask)) &&
        sd_shape_is_array(whole))
        to = guess_border(m, whole, s[i], now, mask, into);
    sd_status_free(st);
    return to;
}

bool spmd_border_asks(const hlo_inst *in, int k, const hlo_sharding **out)
{
    hlo_module *m = in->parent->module;
    const hlo_sharding **s =
        sd_arena_array(m->arena, const hlo_sharding *, in->narg + 1);
    uint32_t mask;
    bool has;
    sd_status st;

    *out = NULL;
    if (spmd_mark_of(in) != SPMD_INTO)
        return true;
    if (hlo_nresult(in) != in->narg)
        return false;
    st = read_list(in, true, s, &has);
    if (!st && has && !(st = manual_atoms(in, s[k], &mask)) &&
        sd_shape_is_array(in->arg[k]->shape))
        *out = spmd_cuts(m, s[k], in->arg[k]->shape->rank, mask);
    has &= !st;
    sd_status_free(st);
    return has;
}

sd_status spmd_border(spmd_flow *f, hlo_inst *in)
{
    spmd_mark mark = spmd_mark_of(in);

    if (mark == SPMD_INTO || mark == SPMD_OUT)
        return border(f, in, mark == SPMD_INTO);
    return tiles_border(f, in, mark == SPMD_INTO_TILES);
}
