/* Index expressions.  A scalar expression is made in e->si at the level of the
 * innermost axis it varies on; one that varies on LANE exists twice, for the
 * first element of the vector (addresses of contiguous accesses) and for all
 * elements (gathers, guards, index values).
 *
 * Vectors, and everything on GPUs, are 32 bits wide where the bounds of all
 * expressions of the kernel allow it. */
#include "emit.h"

enum { NARROW = INT32_MAX - 1024 }; /* room for steps past the end */

static bool is_narrow(int64_t lo, int64_t hi)
{
    return lo >= -NARROW && hi <= NARROW;
}

/* The multiple of c that makes x->a not negative. */
static int64_t lift(const plan_expr *x)
{
    return x->a->lo < 0 ? (-x->a->lo + x->c - 1) / x->c * x->c : 0;
}

/* Expressions are shared: each is visited once. */
static bool note_expr(emit *e, const plan_expr *x)
{
    bool narrow = is_narrow(x->lo, x->hi) && is_narrow(x->c, x->c);

    if (sd_map_has(e->expr, sd_key(x)))
        return true;
    sd_map_set(e->expr, sd_key(x),
               sd_arena_array(e->a, emit_slot, 2 * e->ncopy));
    if (x->a)
        narrow = note_expr(e, x->a) && narrow;
    if (x->b)
        narrow = note_expr(e, x->b) && narrow;
    if (x->kind == PX_DIV || x->kind == PX_MOD)
        narrow = narrow && is_narrow(0, x->a->hi + lift(x));
    return narrow;
}

void emit_index_init(emit *e)
{
    const plan_kernel *k = e->k;
    bool narrow = true;

    e->expr = sd_map_create(e->a);
    if (k->sort) /* its places are in no expression; ends of runs lie beyond */
        narrow = is_narrow(0, (k->sort->step == PLAN_SORT_ROWS ? 2 : 4) *
                                  k->sort->n * k->sort->rows);
    for (int i = 0; i < k->naxis; i++)
        narrow = narrow && is_narrow(0, k->axis[i].extent);
    plan_for_each_node(n, k) {
        if (n->off)
            narrow = note_expr(e, n->off) && narrow;
        for (int g = 0; g < n->nguard; g++) {
            narrow = note_expr(e, n->guard[g].e) && narrow;
            narrow = is_narrow(n->guard[g].lo, n->guard[g].hi) && narrow;
        }
    }
    e->vi = narrow ? e->i32 : e->i64;
    e->si = e->gpu ? e->vi : e->i64;
}

static bool varies_on_lane(const emit *e, const plan_expr *x)
{
    return e->w > 1 && e->lane >= 0 && (x->varies >> e->lane & 1);
}

int64_t emit_distance(const emit *e, int axis, int copy)
{
    const emit_axis *x = &e->axis[axis];
    int digit = emit_digit(e, copy, axis);

    return digit / x->near * x->step + digit % x->near;
}

LLVMValueRef emit_position(emit *e, int axis, int copy, bool vec)
{
    const emit_axis *x = &e->axis[axis];
    LLVMValueRef v = x->at;
    int64_t d = emit_distance(e, axis, copy);

    if (d)
        v = emit_add(e, v, emit_si(e, d));
    if (!vec)
        return v;
    if (e->vi != e->si)
        v = emit_trunc(e, v, e->vi);
    return emit_add(e, emit_splat(e, v, e->w), emit_iota(e, e->vi, e->w));
}

/* To the integer type of scalar or vector positions. */
static LLVMValueRef to_index(emit *e, LLVMValueRef v, bool is_signed, bool vec)
{
    LLVMTypeRef want = emit_widen(vec ? e->vi : e->si, emit_width(v));
    unsigned from =
        LLVMGetIntTypeWidth(LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind
                                ? LLVMGetElementType(LLVMTypeOf(v))
                                : LLVMTypeOf(v));
    unsigned to = LLVMGetIntTypeWidth(vec ? e->vi : e->si);

    if (from > to)
        v = emit_trunc(e, v, want);
    else if (from < to)
        v = is_signed ? LLVMBuildSExt(e->b, v, want, "")
                      : emit_zext(e, v, want);
    return vec ? emit_splat(e, v, e->w) : v;
}

static LLVMValueRef node_index(emit *e, const plan_node *n, int copy, bool vec)
{
    LLVMValueRef v = emit_node_value(e, n, emit_canon(e, copy, n->varies)).re;

    if (!vec)
        v = emit_extract(e, v, 0, 1);
    return to_index(e, v, sd_is_signed(n->dtype), vec);
}

/* Rounds down, as the bounds say: reads whose offset the bounds keep inside
 * the array have no guard. */
static LLVMValueRef divide(emit *e, const plan_expr *x, LLVMValueRef a)
{
    LLVMValueRef by = emit_int_like(a, __builtin_ctzll((uint64_t)x->c)), v;
    int64_t up = lift(x);

    if ((x->c & (x->c - 1)) == 0)
        return up ? LLVMBuildAShr(e->b, a, by, "") : emit_shr(e, a, by);
    if (up)
        a = emit_add(e, a, emit_int_like(a, up));
    v = emit_udiv(e, a, emit_int_like(a, x->c));
    return up ? LLVMBuildNSWSub(e->b, v, emit_int_like(a, up / x->c), "") : v;
}

static LLVMValueRef remain(emit *e, const plan_expr *x, LLVMValueRef a)
{
    int64_t up = lift(x);

    if ((x->c & (x->c - 1)) == 0)
        return emit_and(e, a, emit_int_like(a, x->c - 1));
    if (up)
        a = emit_add(e, a, emit_int_like(a, up));
    return emit_urem(e, a, emit_int_like(a, x->c));
}

static LLVMValueRef combine(emit *e, const plan_expr *x, LLVMValueRef a,
                            LLVMValueRef b)
{
    switch (x->kind) {
    case PX_ADD:
        return emit_add(e, a, b);
    case PX_MUL:
        return LLVMBuildNSWMul(e->b, a, emit_int_like(a, x->c), "");
    case PX_DIV:
        return divide(e, x, a);
    case PX_MOD:
        return remain(e, x, a);
    default:
        break;
    }
    assert(false && "expression kind");
    return a;
}

static emit_slot *slot_of(emit *e, const plan_expr *x, int copy, bool vec)
{
    emit_slot *s = sd_map_get(e->expr, sd_key(x));

    return &s[2 * emit_canon(e, copy, x->varies) +
              (vec && varies_on_lane(e, x))];
}

/* What it is made of has been made: its level is theirs. */
static int level_of(emit *e, const plan_expr *x, int copy, bool vec)
{
    int level = 0;

    if (x->kind == PX_NODE)
        level = emit_node_level(e, x->node);
    if (x->a)
        level = SD_MAX(level, slot_of(e, x->a, copy, vec)->level);
    if (x->b)
        level = SD_MAX(level, slot_of(e, x->b, copy, vec)->level);
    if (x->kind == PX_AXIS)
        level = SD_MAX(level, e->axis[x->axis].level);
    return level;
}

LLVMValueRef emit_expr(emit *e, const plan_expr *x, int copy, bool vec)
{
    emit_slot *s;
    LLVMValueRef a = NULL, b = NULL, v;
    emit_mark mark;
    int level;

    vec = vec && varies_on_lane(e, x);
    copy = emit_canon(e, copy, x->varies);
    s = slot_of(e, x, copy, vec);
    if (s->set)
        return s->v.re;
    if (x->kind == PX_NODE)
        emit_node_value(e, x->node, emit_canon(e, copy, x->node->varies));
    if (x->a)
        a = emit_expr(e, x->a, copy, vec);
    if (x->b)
        b = emit_expr(e, x->b, copy, vec);
    level = level_of(e, x, copy, vec);
    mark = emit_go_to(e, level);
    if (vec && a)
        a = to_index(e, a, true, true);
    if (vec && b)
        b = to_index(e, b, true, true);
    switch (x->kind) {
    case PX_CONST:
        v = emit_si(e, x->c);
        break;
    case PX_AXIS:
        v = emit_position(e, x->axis, copy, vec);
        break;
    case PX_NODE:
        v = node_index(e, x->node, copy, vec);
        break;
    default:
        v = combine(e, x, a, b);
        break;
    }
    emit_back(e, mark);
    emit_remember(e, s, (emit_value){v, NULL}, level);
    return v;
}

/* ---- places in memory ---- */

void emit_add_term(emit_terms *s, LLVMValueRef v, int level)
{
    int i = s->n++;

    assert(i < EMIT_TERMS);
    for (; i > 0 && s->at[i - 1].level > level; i--)
        s->at[i] = s->at[i - 1];
    s->at[i] = (emit_term){v, level};
}

void emit_go(emit *e, const emit_terms *s, sd_dtype part, LLVMValueRef *p,
             LLVMValueRef *at)
{
    int i = 0;

    for (; i < s->n && s->at[i].level < e->standing; i++) {
        emit_mark mark = emit_go_to(e, s->at[i].level);

        *p = emit_element(e, part, *p, s->at[i].v);
        emit_back(e, mark);
    }
    *at = emit_si(e, 0);
    for (; i < s->n; i++)
        *at = emit_add(e, *at, s->at[i].v);
    if (s->plus)
        *p = emit_element(e, part, *p, emit_si(e, s->plus));
}

/* What a sum of too many terms has left is one term. */
static void add_terms(emit *e, emit_terms *s, const plan_expr *x, int copy)
{
    while (x) {
        const plan_expr *t = x, *rest = NULL;

        if (x->kind == PX_ADD && s->n + 1 < EMIT_TERMS) {
            rest = x->b->kind == PX_ADD ? x->b : x->a;
            t = rest == x->a ? x->b : x->a;
        }
        if (t->kind == PX_CONST) {
            s->plus += t->c;
        } else {
            LLVMValueRef v = emit_expr(e, t, copy, false);

            emit_add_term(s, v, slot_of(e, t, copy, false)->level);
        }
        x = rest;
    }
}

/* The copy from which `copy` is a known distance away, which is added to
 * *plus. */
static int first_copy(emit *e, const plan_expr *x, int copy, int64_t *plus)
{
    int first = copy;
    int64_t stride;

    for (int a = 0; a < e->k->naxis; a++) {
        int digit = emit_digit(e, copy, a);

        if (!digit || !plan_expr_stride(x, a, &stride))
            continue;
        *plus += stride * emit_distance(e, a, copy);
        first -= digit * e->axis[a].stride;
    }
    return first;
}

LLVMValueRef emit_expr_apart(emit *e, const plan_expr *x, int copy)
{
    int64_t plus = 0;
    int first = first_copy(e, x, copy, &plus);

    return emit_plus(e, emit_expr(e, x, first, false), plus);
}

void emit_address(emit *e, const plan_expr *x, int copy, sd_dtype part,
                  LLVMValueRef *p, LLVMValueRef *at)
{
    emit_terms s = {.n = 0};
    int first = first_copy(e, x, copy, &s.plus);

    add_terms(e, &s, x, first);
    emit_go(e, &s, part, p, at);
}

/* ---- guards ---- */

uint64_t emit_guards_vary(const plan_guard *g, int n)
{
    uint64_t v = 0;

    for (int i = 0; i < n; i++)
        v |= g[i].e->varies;
    return v;
}

/* Do the lower halves of x - lo tell whether it is below hi - lo? */
static bool halves_tell(const plan_guard *g)
{
    int64_t wrap = INT64_C(1) << 32, most, last, first;

    /* bounds may be the least and the largest numbers that there are */
    return !__builtin_sub_overflow(g->hi, g->lo, &most) &&
           !__builtin_sub_overflow(g->e->hi, g->lo, &last) &&
           !__builtin_sub_overflow(g->e->lo, g->lo, &first) && most > 0 &&
           most <= INT32_MAX && last < wrap && first >= most - wrap;
}

/* lo <= x < hi, leaving out what the bounds of x already say.  Of a vector the
 * lower halves are compared, where they tell, which take half as many. */
static LLVMValueRef one_guard(emit *e, const plan_guard *g, int copy, bool vec)
{
    bool low = g->e->lo < g->lo, high = g->e->hi >= g->hi, holds;
    LLVMValueRef x, d;

    if ((!low && !high) || (e->end && g->e == e->end->guard.e && !low &&
                            g->hi == e->end->guard.hi))
        return NULL;
    if (plan_knows(e->within, g, &holds))
        return holds ? NULL : emit_bool(e, false);
    x = emit_expr(e, g->e, copy, vec);
    if (low && high) { /* one comparison: x - lo below hi - lo, unsigned */
        if (vec && emit_width(x) > 1 && halves_tell(g))
            x = LLVMBuildTruncOrBitCast(e->b, x,
                                        emit_widen(e->i32, emit_width(x)), "");
        d = g->lo ? emit_minus(e, x, emit_int_like(x, g->lo)) : x;
        return emit_ult(e, d, emit_int_like(x, SD_MAX(g->hi - g->lo, 0)));
    }
    if (low)
        return emit_not_below(e, x, emit_int_like(x, g->lo));
    return emit_below(e, x, emit_int_like(x, g->hi));
}

LLVMValueRef emit_guards(emit *e, const plan_guard *g, int n, int copy,
                         bool vec)
{
    LLVMValueRef v = NULL;

    for (int i = 0; i < n; i++)
        v = emit_and(e, v, one_guard(e, &g[i], copy, vec));
    return v;
}

emit_access emit_classify(emit *e, const plan_expr *off, int64_t *stride)
{
    *stride = 0;
    if (!varies_on_lane(e, off))
        return EMIT_UNIFORM;
    if (!plan_expr_stride(off, e->lane, stride))
        return EMIT_GATHERED;
    return *stride == 0                         ? EMIT_UNIFORM
           : *stride == 1                       ? EMIT_CONTIGUOUS
           : *stride == -1                      ? EMIT_REVERSED
           : *stride > 1 && *stride <= e->w / 2 ? EMIT_STRIDED
                                                : EMIT_GATHERED;
}
