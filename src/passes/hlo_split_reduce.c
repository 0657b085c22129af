/* A reduce of many elements to few results has too little to do at once: it
 * becomes a reduce of pieces and a reduce of their results.  Decided from the
 * shape alone, so the order of a sum is the same on every device.  The pieces
 * divide the extent if they can; else the operand is padded by the combiner's
 * identity.  A combiner that picks one of its operands (argmax) may start both
 * times from the same value.  Needs: one dimension a reduce. */
#include "passes_priv.h"

enum {
    MINOR_EXTENT = 16384,
    MINOR_KEPT = 64,
    PIECE = 4096,
    OTHER_EXTENT = 1024,
    OTHER_KEPT = 4096
};

typedef struct {
    hlo_inst *in;
    hlo_at p;
    const sd_shape *s;
    int n, d;
    int64_t piece, npiece;
    bool known;
    hlo_op op;
} split;

static bool is_choice(const hlo_inst *x, const hlo_inst *a, const hlo_inst *b)
{
    int from;

    switch (x->op) {
    case HLO_SELECT:
        from = 1;
        break;
    case HLO_MAXIMUM:
    case HLO_MINIMUM:
    case HLO_AND:
    case HLO_OR:
        from = 0;
        break;
    default:
        return false;
    }
    for (int i = from; i < from + 2; i++)
        if (x->arg[i] != a && x->arg[i] != b)
            return false;
    return true;
}

/* Each result is one of the two operands? */
static bool picks(const hlo_comp *c)
{
    const hlo_inst *r = c->root;
    int n = c->nparam / 2;

    if (n == 1)
        return is_choice(r, c->param[0], c->param[1]);
    if (r->op != HLO_TUPLE)
        return false;
    for (int i = 0; i < n; i++)
        if (!is_choice(r->arg[i], c->param[i], c->param[n + i]))
            return false;
    return true;
}

/* The divisor of n nearest to `want` (by ratio) within a factor of two. */
static int64_t divisor_near(int64_t n, int64_t want)
{
    for (int64_t i = 0; i <= want; i++) {
        if (want + i <= 2 * want && n % (want + i) == 0)
            return want + i;
        if (want - i >= (want + 1) / 2 && n % (want - i) == 0)
            return want - i;
    }
    return 0;
}

static bool wants_split(const split *s, int64_t *piece)
{
    int64_t n = s->s->dim[s->d], kept = sd_shape_count(s->s) / n, after = 1;

    if (s->d == s->s->rank - 1) {
        *piece = PIECE;
        return n > MINOR_EXTENT && kept < MINOR_KEPT;
    }
    for (int i = s->d + 1; i < s->s->rank; i++)
        after *= s->s->dim[i];
    /* rows of a piece: about two PIECEs of elements, a whole number of lanes */
    *piece = SD_MAX(SD_MIN(2 * PIECE / SD_MIN(after, 64), PIECE), 128);
    return n >= OTHER_EXTENT && kept < OTHER_KEPT;
}

static bool plan_split(hlo_inst *in, split *s)
{
    int64_t n, want;

    if (in->op != HLO_REDUCE || in->dims.n != 1)
        return false;
    *s = (split){
        .in = in, .p = pass_at(in), .s = in->arg[0]->shape, .n = in->narg / 2};
    if (s->s->rank >= SD_MAX_RANK || sd_shape_count(s->s) == 0)
        return false;
    s->d = (int)in->dims.at[0];
    s->known = s->n == 1 && hlo_comp_is_binary(in->comp[0], &s->op) &&
               pass_has_identity(s->op, pass_dtype(in->arg[0]));
    if (!wants_split(s, &want) || (!s->known && !picks(in->comp[0])))
        return false;
    n = s->s->dim[s->d];
    s->piece = divisor_near(n, want);
    if (!s->piece && !s->known)
        return false;
    if (!s->piece)
        s->piece = want;
    s->npiece = (n + s->piece - 1) / s->piece;
    return true;
}

static hlo_inst *in_pieces(const split *s, hlo_inst *x)
{
    int64_t more = s->npiece * s->piece - s->s->dim[s->d];

    if (more)
        x = hlo_make_pad_dim(s->p, x, pass_identity(s->p, s->op, pass_dtype(x)),
                             s->d, 0, more);
    return hlo_make_split(s->p, x, s->d, s->npiece, s->piece);
}

static hlo_inst *reduce_again(const split *s, hlo_inst **arg, int d)
{
    sd_arena *a = s->p.c->module->arena;
    const sd_shape **e = sd_arena_array(a, const sd_shape *, s->n);
    hlo_inst *y = hlo_inst_clone(s->p.c, s->p.before, s->in, arg);
    int64_t dim[SD_MAX_RANK], at = d;
    const sd_shape *x = arg[0]->shape;
    int n = 0;

    for (int i = 0; i < x->rank; i++)
        if (i != d)
            dim[n++] = x->dim[i];
    for (int i = 0; i < s->n; i++)
        e[i] = sd_shape_make(a, pass_dtype(arg[i]), n, dim);
    y->shape = s->n == 1 ? e[0] : sd_shape_tuple(a, s->n, e);
    y->dims = hlo_dims_copy(a, &at, 1);
    return y;
}

static hlo_inst *split_in_two(const split *s)
{
    sd_arena *a = s->p.c->module->arena;
    hlo_inst **arg = sd_arena_array(a, hlo_inst *, 2 * s->n), *y;

    for (int i = 0; i < s->n; i++) {
        arg[i] = in_pieces(s, s->in->arg[i]);
        arg[s->n + i] = s->known
                            ? pass_identity(s->p, s->op, pass_dtype(arg[i]))
                            : s->in->arg[s->n + i];
    }
    y = reduce_again(s, arg, s->d + 1);
    for (int i = 0; i < s->n; i++) {
        arg[i] = s->n == 1 ? y : hlo_make_gte(s->p, y, i);
        arg[s->n + i] = s->in->arg[s->n + i];
    }
    return reduce_again(s, arg, s->d);
}

bool hlo_split_reduce(hlo_module *m)
{
    bool changed = false;

    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            hlo_inst *x = in;
            split s;

            /* what reduces the pieces' results may be long itself */
            while (plan_split(x, &s)) {
                hlo_inst *to = split_in_two(&s);

                hlo_replace(x, to);
                x = to;
                changed = true;
            }
        }
    return changed;
}
