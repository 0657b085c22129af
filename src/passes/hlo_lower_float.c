/* Narrow floats (bf16, f16, f8, f4) are stored, moved and multiplied by
 * matrix engines; everything else is computed in f32 between converts, each
 * operation rounded to its type: f32 -> bf16 -> f32 between two of them stays.
 * Of add, subtract, multiply, divide and square root that is the rounding of
 * the exact result: f32 has more than twice the digits of f16 and two more.
 * Reductions and scans keep an f32 accumulator, scatters too where updates may
 * meet, and round once.
 *
 * Such a pair goes only where it changes nothing: what the f32 operation gives
 * is a value of the narrow type already (maximum, select, ...), or it stands
 * between an accumulator and the operation that makes it.  With
 * xla_allow_excess_precision, which a user must ask for, it goes for bf16. */
#include "passes_priv.h"

/* What is known of an instruction: its mark.  HOLDS + t: an f32 value that is
 * one of t. */
enum { UNKNOWN, ACCUMULATES, HOLDS };

/* A convert between an accumulator and what is done with it. */
static hlo_inst *boundary(hlo_at p, sd_dtype t, hlo_inst *x)
{
    hlo_inst *y = hlo_make_convert(p, t, x);

    y->mark = ACCUMULATES;
    return y;
}

static hlo_inst *widened_result(hlo_at p, hlo_inst *x)
{
    return pass_is_narrow(pass_dtype(x)) ? boundary(p, SD_F32, x) : x;
}

static const sd_shape *wide_shape(hlo_module *m, const sd_shape *s)
{
    return pass_is_narrow(s->dtype) ? sd_shape_with(m->arena, s, SD_F32) : s;
}

static bool has_narrow_arg(const hlo_inst *in)
{
    for (int i = 0; i < in->narg; i++)
        if (sd_shape_is_array(in->arg[i]->shape) &&
            pass_is_narrow(pass_dtype(in->arg[i])))
            return true;
    return false;
}

/* ---- elementwise ---- */

/* A total order is one of bits, and converts make NaNs alike; but bf16's, which
 * is a shift, so that order in f32 is the same and takes less. */
static bool is_order_of_bits(const hlo_inst *in)
{
    return in->op == HLO_COMPARE && in->u.compare.type == HLO_CMP_TOTAL &&
           pass_dtype(in->arg[0]) != SD_BF16;
}

static bool is_arithmetic(const hlo_inst *in)
{
    switch (hlo_info(in)->cls) {
    case HLO_C_UNARY:
    case HLO_C_BINARY:
    case HLO_C_TERNARY:
    case HLO_C_COMPARE:
        return !is_order_of_bits(in) && in->op != HLO_STOCHASTIC_CONVERT &&
               has_narrow_arg(in);
    default:
        return false;
    }
}

static hlo_inst *lower_arithmetic(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst *arg[3], *y;

    for (int i = 0; i < in->narg; i++)
        arg[i] = pass_widened(p, in->arg[i]);
    y = hlo_inst_clone(in->parent, in, in, arg);
    y->shape = wide_shape(in->parent->module, in->shape);
    return y->shape == in->shape ? y : hlo_make_convert(p, pass_dtype(in), y);
}

static hlo_inst *lower_iota(hlo_inst *in)
{
    hlo_inst *x = hlo_make_iota(
        pass_at(in), wide_shape(in->parent->module, in->shape), in->dims.at[0]);

    return hlo_make_convert(pass_at(in), pass_dtype(in), x);
}

/* ---- what has a combiner ---- */

static hlo_comp *known_wide(const hlo_comp *c)
{
    return c->tag;
}

static void set_wide(hlo_comp *c, hlo_comp *w)
{
    c->tag = w;
}

/* c with f32 for every narrow parameter and result. */
static hlo_comp *wide_comp(hlo_module *m, hlo_comp *c)
{
    hlo_comp *w;
    hlo_inst **x, *root;
    hlo_at p;

    if ((w = known_wide(c))) /* made for an earlier caller */
        return w;
    set_wide(c, w = hlo_comp_create(m, c->name));
    p = (hlo_at){w, NULL, NULL};
    x = sd_arena_array(m->arena, hlo_inst *, c->nparam);
    for (int i = 0; i < c->nparam; i++)
        x[i] = hlo_make_param(w, wide_shape(m, c->param[i]->shape),
                              c->param[i]->name);
    for (int i = 0; i < c->nparam; i++)
        if (pass_is_narrow(pass_dtype(c->param[i])))
            x[i] = boundary(p, pass_dtype(c->param[i]), x[i]);
    root = pass_splice(p, c, x);
    if (root->op == HLO_TUPLE) {
        hlo_inst **e = sd_arena_array(m->arena, hlo_inst *, root->narg);

        for (int i = 0; i < root->narg; i++)
            e[i] = widened_result(p, root->arg[i]);
        root = hlo_make_tuple(p, root->narg, e);
    } else {
        root = widened_result(p, root);
    }
    hlo_set_root(w, root);
    return w;
}

/* The results in their own types again. */
static hlo_inst *narrowed(hlo_at p, hlo_inst *x, const sd_shape *s)
{
    hlo_inst **e;

    if (s->dtype != SD_TUPLE)
        return pass_is_narrow(s->dtype) ? hlo_make_convert(p, s->dtype, x) : x;
    e = sd_arena_array(p.c->module->arena, hlo_inst *, s->nelem);
    for (int i = 0; i < s->nelem; i++)
        e[i] = narrowed(p, hlo_make_gte(p, x, i), s->elem[i]);
    return hlo_make_tuple(p, s->nelem, e);
}

static hlo_inst *lower_combiner(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_module *m = in->parent->module;
    hlo_inst **arg = sd_arena_array(m->arena, hlo_inst *, in->narg), *y;
    const sd_shape *s = in->shape;
    int n = sd_shape_nresult(s);
    const sd_shape **e = sd_arena_array(m->arena, const sd_shape *, n + 1);
    hlo_comp *body = wide_comp(m, in->comp[0]);

    for (int i = 0; i < in->narg; i++)
        arg[i] = pass_widened(p, in->arg[i]);
    y = hlo_inst_clone(in->parent, in, in, arg);
    hlo_set_comps(y, 1, &body);
    for (int i = 0; i < n; i++)
        e[i] = wide_shape(m, sd_shape_result(s, i));
    y->shape = sd_shape_of_results(m->arena, s, e);
    return narrowed(p, y, s);
}

/* Do updates meet, and does the sum of them round?  Replacing and extremes
 * give one of the operands. */
static bool scatter_rounds(const hlo_inst *in)
{
    hlo_comp *c = in->comp[0];
    hlo_op op;

    if (in->u.gather->unique)
        return false;
    for (int i = 0; i < c->nparam; i++)
        if (c->root == c->param[i])
            return false;
    return !hlo_comp_is_binary(c, &op) ||
           (op != HLO_MAXIMUM && op != HLO_MINIMUM);
}

static hlo_inst *lower_float(hlo_inst *in)
{
    if (is_arithmetic(in))
        return lower_arithmetic(in);
    switch (in->op) {
    case HLO_IOTA:
        return pass_is_narrow(pass_dtype(in)) ? lower_iota(in) : NULL;
    case HLO_CONVOLUTION: /* pads with a zero, which f8e8m0 lacks */
        return pass_dtype(in->arg[0]) == SD_F8E8M0FNU ? lower_arithmetic(in)
                                                      : NULL;
    case HLO_REDUCE:
    case HLO_REDUCE_WINDOW:
    case HLO_SCAN:
        return has_narrow_arg(in) ? lower_combiner(in) : NULL;
    case HLO_SCATTER:
        return has_narrow_arg(in) && scatter_rounds(in) ? lower_combiner(in)
                                                        : NULL;
    default:
        return NULL;
    }
}

/* ---- pairs of converts that change nothing ---- */

enum { MAX_MOVES = 8 };

static bool only_moves(const hlo_inst *x)
{
    return x->op == HLO_BROADCAST || x->op == HLO_RESHAPE ||
           x->op == HLO_TRANSPOSE || x->op == HLO_SLICE || x->op == HLO_REVERSE;
}

/* Of values of t, does op in f32 give a value of t?  What has no sign or no -0
 * (f8e8m0fnu, the fnuz types) can not be negated, and rounding up to an integer
 * may be past the largest number of an f8. */
static bool stays_in(hlo_op op, sd_dtype t)
{
    switch (op) {
    case HLO_ABS:
    case HLO_MAXIMUM:
    case HLO_MINIMUM:
    case HLO_SELECT:
    case HLO_CLAMP:
    case HLO_COPY:
        return true;
    case HLO_NEGATE:
    case HLO_SIGN:
    case HLO_CEIL:
    case HLO_FLOOR:
    case HLO_ROUND_AFZ:
    case HLO_ROUND_EVEN:
        return t == SD_BF16 || t == SD_F16;
    default:
        return only_moves(&(hlo_inst){.op = op});
    }
}

/* Notes the narrow type that an f32 value is a value of. */
static void note_type(hlo_inst *in)
{
    int64_t note = UNKNOWN;

    if (in->mark == ACCUMULATES || !sd_shape_is_array(in->shape) ||
        pass_dtype(in) != SD_F32)
        return;
    if (in->op == HLO_CONVERT && pass_is_narrow(pass_dtype(in->arg[0]))) {
        in->mark = HOLDS + (int64_t)pass_dtype(in->arg[0]);
        return;
    }
    for (int i = 0; i < in->narg; i++) {
        int64_t of_arg = in->arg[i]->mark;

        if (pass_dtype(in->arg[i]) != SD_F32)
            continue;
        if (of_arg < HOLDS || (note && note != of_arg))
            return;
        note = of_arg;
    }
    if (note && stays_in(in->op, (sd_dtype)(note - HOLDS)))
        in->mark = note;
}

static bool may_go(const hlo_inst *widen, const hlo_inst *narrow)
{
    sd_dtype t = pass_dtype(narrow);

    return narrow->mark == ACCUMULATES || widen->mark == ACCUMULATES ||
           narrow->arg[0]->mark == HOLDS + (int64_t)t ||
           (t == SD_BF16 && narrow->parent->module->excess_precision);
}

/* The f32 value that `in` widens again, from before it was narrowed, moved as
 * the narrow one was; NULL when there is none, or it is another. */
static hlo_inst *before_pair(hlo_inst *in)
{
    hlo_inst *move[MAX_MOVES], *x = in->arg[0];
    int n = 0;

    if (in->op != HLO_CONVERT || pass_dtype(in) != SD_F32 ||
        !pass_is_narrow(pass_dtype(x)))
        return NULL;
    while (only_moves(x) && n < MAX_MOVES) {
        move[n++] = x;
        x = x->arg[0];
    }
    if (x->op != HLO_CONVERT || pass_dtype(x->arg[0]) != SD_F32 ||
        !may_go(in, x))
        return NULL;
    x = x->arg[0];
    while (n-- > 0) {
        int64_t note = x->mark;
        hlo_inst *y = hlo_inst_clone(in->parent, in, move[n], &x);

        y->shape = wide_shape(in->parent->module, move[n]->shape);
        y->mark = note;
        x = y;
    }
    return x;
}

/* Operands come first, so what they hold is known. */
static hlo_inst *cancel(hlo_inst *in)
{
    hlo_inst *x = before_pair(in);

    if (!x)
        note_type(in);
    return x;
}

bool hlo_lower_float(hlo_module *m)
{
    bool changed;

    hlo_for_each_comp(c, m) {
        set_wide(c, NULL);
        hlo_for_each_inst(in, c)
            in->mark = UNKNOWN;
    }
    /* bodies come first and are lowered before what calls them; the wide ones
     * made on the way come last and need it no more */
    changed = pass_rewrite(m, HLO_OP_COUNT, lower_float);
    return pass_rewrite(m, HLO_OP_COUNT, cancel) || changed;
}
