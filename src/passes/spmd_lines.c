/* Reductions along a dimension that is cut which are no plain sums: running
 * ones, and those that pick (an argmax).  Each participant does its own part;
 * what that comes to is gathered, a number a line and participant, and then
 * everybody knows what lies before its part, or picks of what was picked. */
#include "spmd_lines.h"

/* ---- running reductions ---- */

static hlo_inst *window_over(hlo_at p, const hlo_inst *in, int d, bool reverse,
                             hlo_inst *x, hlo_inst *init, hlo_comp *body)
{
    sd_arena *a = p.c->module->arena;
    hlo_inst *arg[2] = {x, init}, *y;
    hlo_window_dim *w =
        sd_arena_copy(a, in->u.window.dim, sizeof *w * (size_t)in->u.window.n);

    y = hlo_inst_create(p.c, p.before, HLO_REDUCE_WINDOW, x->shape, 2, arg);
    w[d].size = x->shape->dim[d];
    w[d].pad_low = reverse ? 0 : w[d].size - 1;
    w[d].pad_high = reverse ? w[d].size - 1 : 0;
    y->u.window = in->u.window;
    y->u.window.dim = w;
    hlo_set_comps(y, 1, &body);
    hlo_take_source(y, in);
    return y;
}

/* What all parts before this one, or behind it, come to: x, of one element in
 * dimension d. */
static hlo_inst *of_others(hlo_at p, hlo_inst *x, const hlo_sharding *s, int d,
                           bool reverse, hlo_inst *init, hlo_comp *body)
{
    hlo_module *m = p.c->module;
    hlo_sharding const *along = hlo_sharding_with(
        m, hlo_sharding_blank(m, s, s->rank), d, s->dim[d].cut);
    const sd_shape *ints;
    hlo_inst *place = spmd_index(p, s->grid, &s->dim[d].cut), *is;
    int64_t dim = d;

    x = spmd_join(p, x, along);
    ints = sd_shape_make(m->arena, SD_S32, x->shape->rank, x->shape->dim);
    is = hlo_make_compare(p, reverse ? HLO_GT : HLO_LT,
                          hlo_make_iota(p, ints, d),
                          hlo_make_spread(p, place, ints));
    x = hlo_make_select(p, is, x, hlo_make_spread(p, init, x->shape));
    return hlo_make_reduce(p, x, init, &dim, 1, body);
}

hlo_inst *spmd_run(hlo_inst *in, hlo_at p, hlo_inst *const *arg,
                   const hlo_sharding *s, int d)
{
    hlo_module *m = in->parent->module;
    sd_dtype t = pass_dtype(in), wide = t;
    int64_t dim, end, to[SD_MAX_RANK];
    hlo_inst *x = arg[0], *init = arg[1], *last;
    hlo_comp *body;
    bool reverse = false;
    hlo_op op = HLO_ADD;
    int n = 0;

    hlo_is_cumulative(in, &dim, &reverse);
    hlo_comp_is_binary(in->comp[0], &op);
    if (pass_is_narrow(t) && (op == HLO_ADD || op == HLO_MULTIPLY))
        wide = SD_F32; /* rounded once */
    body = hlo_scalar_comp(m, op, wide);
    x = pass_convert(p, wide, x);
    init = pass_convert(p, wide, init);
    if (reverse && in->shape->dim[d] % hlo_atoms_size(s->grid, &s->dim[d].cut))
        x = spmd_inside(p, x, s, d, in->shape->dim[d], init);
    x = window_over(p, in, d, reverse, x, init, body);
    for (int i = 0; i < x->shape->rank; i++)
        if (i != d)
            to[n++] = i;
    end = reverse ? 1 : x->shape->dim[d];
    last = hlo_make_cut(p, x, d, end - 1, end);
    last = of_others(p, last, s, d, reverse, init, body);
    x = hlo_make_binary(p, op, hlo_make_broadcast(p, last, x->shape, to, n), x);
    return pass_convert(p, t, x);
}

/* ---- reductions that pick ---- */

/* Each result is one of two elements, so no element counts twice. */
bool spmd_is_pick(const hlo_comp *c, int n)
{
    const hlo_inst *root = c->root;

    if (root->op != HLO_TUPLE || root->narg != n || c->nparam != 2 * n)
        return false;
    for (int i = 0; i < n; i++) {
        const hlo_inst *x = root->arg[i];
        const hlo_inst *a = c->param[i], *b = c->param[n + i];

        if (x->op != HLO_SELECT || !((x->arg[1] == a && x->arg[2] == b) ||
                                     (x->arg[1] == b && x->arg[2] == a)))
            return false;
    }
    return true;
}

hlo_inst *spmd_pick_again(const hlo_inst *in, hlo_at p, hlo_inst *x,
                          const hlo_grid *g, const hlo_atoms *along)
{
    hlo_module *m = in->parent->module;
    hlo_collective c = {.channel = 1, .use_global_ids = true, .dim = -1};
    int n = in->narg / 2;
    hlo_inst **arg = sd_arena_array(m->arena, hlo_inst *, in->narg), *y;
    int64_t first = 0;

    c.groups = hlo_grid_groups(m->arena, g, along, &c.ngroup, &c.group_size);
    for (int i = 0; i < n; i++) {
        arg[i] = spmd_stack(p, hlo_make_gte(p, x, i), &c);
        arg[n + i] = in->arg[n + i];
    }
    y = hlo_inst_create(p.c, p.before, HLO_REDUCE, x->shape, in->narg, arg);
    y->dims = hlo_dims_copy(m->arena, &first, 1);
    hlo_set_comps(y, 1, in->comp);
    hlo_take_source(y, in);
    return y;
}

/* ---- transforms of several dimensions ---- */

/* The last dimension of x, and d, change places. */
static hlo_inst *swapped(hlo_at p, hlo_inst *x, int d)
{
    int64_t perm[SD_MAX_RANK];
    int last = x->shape->rank - 1;

    for (int i = 0; i <= last; i++)
        perm[i] = i == d ? last : i == last ? d : i;
    return d == last ? x : hlo_make_transpose(p, x, perm);
}

static hlo_inst *lines(hlo_at p, const hlo_inst *in, hlo_inst *x,
                       hlo_fft_type type, int64_t length, sd_dtype t)
{
    hlo_module *m = p.c->module;
    int last = x->shape->rank - 1;
    int64_t n = type == HLO_FFT_RFFT ? length / 2 + 1 : length;
    const sd_shape *s = sd_shape_with(
        m->arena, sd_shape_with_dim(m->arena, x->shape, last, n), t);
    hlo_inst *y = hlo_inst_create(p.c, p.before, HLO_FFT, s, 1, &x);

    y->u.fft = in->u.fft;
    y->u.fft.type = type;
    y->u.fft.length = hlo_dims_copy(m->arena, &length, 1);
    hlo_take_source(y, in);
    return y;
}

hlo_inst *spmd_by_lines(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_fft_type type = in->u.fft.type;
    bool back = type == HLO_FFT_IFFT || type == HLO_FFT_IRFFT;
    int n = in->u.fft.length.n, rank = in->shape->rank;
    sd_dtype c =
        sd_is_complex(pass_dtype(in)) ? pass_dtype(in) : pass_dtype(in->arg[0]);
    int64_t length = in->u.fft.length.at[n - 1];
    hlo_inst *x = in->arg[0];

    if (!back) /* real lines first, or last */
        x = lines(p, in, x, type, length, c);
    for (int i = 0; i < n - 1; i++) {
        int d = rank - n + i;

        x = swapped(p, x, d);
        x = lines(p, in, x, back ? HLO_FFT_IFFT : HLO_FFT_FFT,
                  in->u.fft.length.at[i], c);
        x = swapped(p, x, d);
    }
    return back ? lines(p, in, x, type, length, pass_dtype(in)) : x;
}
