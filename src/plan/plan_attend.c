/* Kernels of attention: lowering, tiles, printing and verifying.  plan_attend.h
 * says how they run. */
#include <stdlib.h>
#include <string.h>

#include "plan_lower.h"
#include "plan_mapping.h"
#include "plan_whole.h"

/* ---- which blocks a mask leaves empty ---- */

typedef struct {
    int64_t row, key, c;
    bool ok;
} linear; /* row * r + key * k + c */

typedef struct {
    bool ok;
    int64_t beyond;
} bound; /* key <= row + beyond */

/* What is known of a node of a function. */
typedef struct {
    linear place;
    bound where[2]; /* it is false, true */
    bool zero; /* of a gradient's function: it is 0 where ds is */
} fact;

/* Nodes come before what is made of them: each is asked once. */
typedef struct {
    fact *of; /* by id */
    const plan_body *body;
    int64_t rows, keys;
} facts;

static const fact *fact_of(const facts *f, const plan_node *n)
{
    return &f->of[n->id];
}

/* s32 has all of its values: it wraps around nowhere, and the sum of two such
 * has no more than 64 bits. */
static linear fitting(const facts *f, linear x)
{
    x.ok = x.ok && x.c >= -INT32_MAX && x.c <= INT32_MAX &&
           llabs(x.row) * f->rows + llabs(x.key) * f->keys + llabs(x.c) <=
               INT32_MAX;
    return x.ok ? x : (linear){0};
}

static linear linear_of(const facts *f, const plan_node *n)
{
    linear x, y;
    int sign = n->op == HLO_SUBTRACT ? -1 : 1;

    if (sd_dtype_kind(n->dtype) != SD_K_SINT ||
        sd_dtype_bytes(n->dtype) < sizeof(int32_t))
        return (linear){0};
    if (n->kind == PN_PARAM)
        return fitting(f, (linear){n->out == 1, n->out == 2, 0,
                                   n->out == 1 || n->out == 2});
    if (n->kind == PN_CONST)
        return fitting(
            f, (linear){0, 0, sd_scalar_to_s64(n->dtype, n->value), true});
    if (n->op != HLO_CONVERT && n->op != HLO_ADD && n->op != HLO_SUBTRACT)
        return (linear){0};
    x = fact_of(f, n->arg[0])->place;
    if (n->op == HLO_CONVERT)
        return x;
    y = fact_of(f, n->arg[1])->place;
    return fitting(f, (linear){x.row + sign * y.row, x.key + sign * y.key,
                               x.c + sign * y.c, x.ok && y.ok});
}

static bound compared(const facts *f, const plan_node *n, bool is)
{
    hlo_cmp_dir d = n->in->u.compare.dir;
    linear x = fact_of(f, n->arg[0])->place, y = fact_of(f, n->arg[1])->place;
    int sign = d == HLO_GE || d == HLO_GT   ? 1
               : d == HLO_LE || d == HLO_LT ? -1
                                            : 0;

    x = (linear){x.row - y.row, x.key - y.key, x.c - y.c, x.ok && y.ok};
    if (!is)
        sign = -sign; /* row - key + c >= 0, or > 0, in the end */
    if (!x.ok || !sign || x.row != sign || x.key != -sign)
        return (bound){0};
    return (bound){true, sign * x.c - ((d == HLO_GT || d == HLO_LT) == is)};
}

/* Where n has the value `is`. */
static bound bound_of(const facts *f, const plan_node *n, bool is)
{
    bound x;

    if (n->kind != PN_ELT)
        return (bound){0};
    if (n->op == HLO_COMPARE)
        return compared(f, n, is);
    if (n->op == HLO_NOT)
        return fact_of(f, n->arg[0])->where[!is];
    if (n->op != (is ? HLO_AND : HLO_OR))
        return (bound){0};
    x = fact_of(f, n->arg[0])->where[is];
    return x.ok ? x : fact_of(f, n->arg[1])->where[is];
}

static bool is_number(const plan_node *n, double *v)
{
    if (n->kind != PN_CONST)
        return false;
    *v = sd_scalar_to_f64(n->dtype, n->value);
    return true;
}

static bool is_zero(const facts *f, const plan_node *n)
{
    bool zero[3] = {0};
    double v;

    if (n->kind == PN_PARAM)
        return n->out == HLO_ATTEND_FIRST;
    if (is_number(n, &v))
        return v == 0;
    if (n->kind != PN_ELT)
        return false;
    for (int i = 0; i < n->narg && i < 3; i++)
        zero[i] = fact_of(f, n->arg[i])->zero;
    switch (n->op) {
    case HLO_CONVERT:
    case HLO_NEGATE:
    case HLO_DIVIDE:
        return zero[0];
    case HLO_MULTIPLY:
        return zero[0] || zero[1];
    case HLO_ADD:
    case HLO_SUBTRACT:
        return zero[0] && zero[1];
    case HLO_SELECT:
        return zero[1] && zero[2];
    default:
        return false;
    }
}

static facts know(sd_arena *a, const plan_attend *k, const plan_body *body)
{
    facts f = {.of = sd_arena_array(a, fact, body->nnode),
               .body = body,
               .rows = k->of.extent[HLO_ATTEND_Q],
               .keys = k->of.extent[HLO_ATTEND_K]};

    for (int i = 0; i < body->nnode; i++) {
        const plan_node *n = body->node[i];

        f.of[i] = (fact){linear_of(&f, n),
                         {bound_of(&f, n, false), bound_of(&f, n, true)},
                         is_zero(&f, n)};
    }
    return f;
}

static bool is_place(const fact *x)
{
    return x->place.ok && (x->place.row || x->place.key);
}

/* Does f ask for row and key only whether key <= row + beyond? */
static bool asks_cut_alone(const facts *f, int64_t beyond)
{
    for (int i = 0; i < f->body->nnode; i++) {
        const plan_node *n = f->body->node[i];
        const fact *x = fact_of(f, n);
        bound at = x->where[x->where[1].ok];

        for (int j = 0; j < n->narg; j++)
            if (is_place(fact_of(f, n->arg[j])) && !is_place(x) &&
                (!at.ok || n->op != HLO_COMPARE || at.beyond != beyond))
                return false;
    }
    return true;
}

static void find_cut(sd_arena *arena, plan_attend *a)
{
    const plan_node *n = a->score->root[0];
    facts score = know(arena, a, a->score), slope = {0};

    if (a->slope)
        slope = know(arena, a, a->slope);
    while (n->kind == PN_ELT && n->op == HLO_CONVERT)
        n = n->arg[0];
    if (n->kind != PN_ELT || n->op != HLO_SELECT ||
        (a->slope && !fact_of(&slope, a->slope->root[0])->zero))
        return;
    for (int is = 1; is >= 0 && !a->is_cut; is--) {
        bound cut = fact_of(&score, n->arg[0])->where[is];

        a->is_cut = cut.ok && is_number(n->arg[is ? 2 : 1], &a->masked);
        a->beyond = cut.beyond;
    }
    a->cut_alone = a->is_cut && asks_cut_alone(&score, a->beyond) &&
                   (!a->slope || asks_cut_alone(&slope, a->beyond));
}

/* ---- lowering ---- */

static double points(const hlo_attend *a)
{
    double n = 1;

    for (int i = 0; i < HLO_ATTEND_D; i++)
        n *= (double)a->extent[i];
    return n;
}

/* Columns of all products: of scores and their cotangents, and of the sums. */
static int64_t columns_of(const hlo_attend *a)
{
    int64_t d = a->extent[HLO_ATTEND_D], e = a->extent[HLO_ATTEND_E];

    return a->kind == HLO_ATTEND_VALUE     ? d + e
           : a->kind == HLO_ATTEND_OF_ROWS ? 2 * d + e
                                           : 2 * d + 2 * e;
}

/* Slots: the operands, then the results. */
sd_status plan_lower_attend(plan_lowering *lw, const hlo_inst *in)
{
    plan_kernel *k = lw->k;
    plan_attend *a = k->attend = sd_arena_new(lw->a, plan_attend);

    if (!hlo_attend_read(in, &a->of))
        return sd_error(SD_INTERNAL, "%s: no call of attention", in->name);
    a->score = plan_body_of(lw->a, a->of.score, &lw->st);
    if (a->of.slope)
        a->slope = plan_body_of(lw->a, a->of.slope, &lw->st);
    if (lw->st)
        return lw->st;
    for (int i = 0; i < in->narg; i++)
        k->slot[i].access = PLAN_READ;
    find_cut(lw->a, a);
    k->cls = PLAN_ATTENDING;
    k->flops = 2 * points(&a->of) * (double)columns_of(&a->of);
    return lw->st;
}

/* ---- tiles ---- */

static int areas_of(const plan_attend *a, int array)
{
    return a->of.stride[array][plan_attend_axis(a, false)] ? 1 : a->pairs;
}

/* Of all local memory. */
static size_t bytes_of(const plan_kernel *k)
{
    const plan_attend *a = k->attend;
    size_t n = (size_t)k->group * sizeof(float);

    for (int i = 0; i < plan_attend_copied(a); i++)
        n += a->bytes[i] * (size_t)areas_of(a, i);
    return n;
}

/* Two teams of 64 rows and blocks of 64 keys leave room for another group on
 * the unit where v is narrow.  Of wider v a unit has one group, whose registers
 * hold the scores of 128 keys as well: the engine then reads q half as often.
 * Those of still wider v are full of sums. */
enum {
    TEAMS = 2,
    TEAM = 128,
    TEAM_ROWS = 64,
    KEYS = 64,
    NARROW_KEYS = 32,
    WIDE_KEYS = 128,
    MOST_NARROW = 64,
    MOST_WIDE = 128,
    MOST_TOGETHER = 160, /* columns of sums of k and of v */
    PAIRS = 2,
    READERS = 8 /* sub-groups that read for themselves, of a group */
};

static size_t lines_bytes(int64_t rows, int64_t columns, size_t each)
{
    size_t row = (size_t)columns * each;

    return (row + PLAN_LINE - 1) / PLAN_LINE * PLAN_LINE * (size_t)rows;
}

static void lay_out(plan_attend *a, size_t each)
{
    a->marks = 0;
    for (int i = 0; i < plan_attend_copied(a); i++) {
        const int64_t *s = a->of.stride[i];
        int axis = s[HLO_ATTEND_K] ? HLO_ATTEND_K : HLO_ATTEND_Q,
            along = s[HLO_ATTEND_D] ? HLO_ATTEND_D : HLO_ATTEND_E;

        a->bytes[i] =
            lines_bytes(plan_attend_block(a, axis), a->of.extent[along], each);
        a->at[i] = a->marks;
        a->marks += a->bytes[i] * (size_t)areas_of(a, i);
    }
}

static void tile_value(plan_attend *a)
{
    int64_t e = a->of.extent[HLO_ATTEND_E];

    a->rows = TEAMS * TEAM_ROWS;
    a->keys = e > MOST_NARROW && e <= MOST_WIDE ? WIDE_KEYS : KEYS;
    a->pairs = PAIRS;
}

/* Groups of one team do not wait for another one: while one computes, those
 * beside it multiply.  Wide q and its cotangent leave room for one group, which
 * has two.  Of wide k and v an item has so many sums that there is less of a
 * block's scores and their cotangents. */
static void tile_gradient(plan_attend *a)
{
    bool keys = a->of.kind == HLO_ATTEND_OF_KEYS,
         wide = a->of.extent[HLO_ATTEND_D] + a->of.extent[HLO_ATTEND_E] >
                2 * MOST_NARROW;
    int fixed = (wide && !keys ? TEAMS : 1) * TEAM_ROWS,
        block = wide && keys ? NARROW_KEYS : KEYS;

    a->rows = keys ? block : fixed;
    a->keys = keys ? fixed : block;
    a->pairs = PAIRS + 1;
}

/* Of q, in local memory: whole steps of d. */
static size_t gathered_bytes(const plan_attend *a)
{
    int64_t d =
        plan_round_up(a->of.extent[HLO_ATTEND_D], HLO_ATTEND_STEP_GATHERED);

    return (size_t)(a->rows * d) * sizeof(uint16_t);
}

/* Columns of sums that a sub-group has at a time. */
static int64_t sums_of(const hlo_attend *a, bool apart)
{
    int64_t d = a->extent[HLO_ATTEND_D], e = a->extent[HLO_ATTEND_E];

    return a->kind == HLO_ATTEND_VALUE     ? e
           : a->kind == HLO_ATTEND_OF_ROWS ? d
           : apart                         ? SD_MAX(d, e)
                                           : d + e;
}

/* A sub-group has 256 registers of 16 items: sums of 16 rows take as many as v
 * has columns, scores as many as there are keys in a block, and half as many
 * again as weights.  Of a gradient scores have their cotangents beside them,
 * and sums of keys are those of k and of v. */
static void tile_reading(plan_kernel *k)
{
    plan_attend *a = k->attend;
    int64_t sums = sums_of(&a->of, false), each = a->slope ? 2 : 1;
    int block;

    a->apart = sums > MOST_TOGETHER;
    if (a->apart)
        sums = sums_of(&a->of, true);
    block = each * sums <= MOST_NARROW ? KEYS
            : sums <= MOST_WIDE        ? NARROW_KEYS
                                       : PLAN_SQUARE;

    a->rows = a->keys = READERS * PLAN_SQUARE;
    if (a->of.kind == HLO_ATTEND_OF_KEYS)
        a->rows = block;
    else
        a->keys = block;
    k->subgroup = plan_engine_table[a->engine].items;
    k->group = k->items = READERS * k->subgroup;
    k->large = true;
}

/* A sub-group of 8 items has 256 registers of these: sums of 16 rows take two a
 * column of v, scores half as many a key. */
static void tile_gathering(plan_kernel *k)
{
    plan_attend *a = k->attend;
    const plan_engine_info *of = &plan_engine_table[a->engine];
    int64_t sums = a->of.extent[HLO_ATTEND_E];

    a->rows = READERS * of->m * (sums <= MOST_NARROW ? 2 : 1);
    a->keys = sums <= MOST_NARROW * 3 / 4 || sums > MOST_NARROW
                  ? HLO_ATTEND_KEYS_GATHERED
                  : HLO_ATTEND_STEP_GATHERED;
    k->subgroup = of->items;
    k->group = k->items = READERS * k->subgroup;
    k->large = true;
    plan_add_work(k, gathered_bytes(a));
}

static void tile_copying(plan_kernel *k)
{
    plan_attend *a = k->attend;

    if (a->slope)
        tile_gradient(a);
    else
        tile_value(a);
    lay_out(a, sd_dtype_bytes(k->slot[0].dtype));
    k->group = k->items =
        plan_attend_block(a, plan_attend_axis(a, false)) / TEAM_ROWS * TEAM;
    plan_add_work(k, bytes_of(k));
}

static plan_engine engine_of(sd_dtype t, const device_desc *dev)
{
    if (dev->features & DEVICE_HAS_WGMMA)
        return t == SD_BF16 ? PLAN_ENGINE_WGMMA_BF16 : PLAN_ENGINE_WGMMA_F16;
    if (dev->features & DEVICE_HAS_DPAS8)
        return t == SD_BF16 ? PLAN_ENGINE_DPAS8_BF16 : PLAN_ENGINE_DPAS8_F16;
    return t == SD_BF16 ? PLAN_ENGINE_DPAS16_BF16 : PLAN_ENGINE_DPAS16_F16;
}

void plan_tile_attend(plan_kernel *k, const device_desc *dev)
{
    plan_attend *a = k->attend;
    int axis = plan_attend_axis(a, false), fixed;

    a->engine = engine_of(k->slot[0].dtype, dev);
    if (plan_attend_gathers(a))
        tile_gathering(k);
    else if (plan_attend_reads(a))
        tile_reading(k);
    else
        tile_copying(k);
    fixed = plan_attend_block(a, axis);
    a->blocks = (a->of.extent[axis] + fixed - 1) / fixed;
    k->tiles = a->blocks;
    for (int i = 0; i < HLO_ATTEND_BATCH; i++)
        k->tiles *= a->of.extent[i];
}

/* ---- as text, and whether it is right ---- */

static void print_axes(sd_buf *b, const hlo_attend *a, int array)
{
    sd_buf_fmt(b, " s%d[", array);
    for (int i = 0, n = 0; i < HLO_ATTEND_AXES; i++)
        if (a->stride[array][i])
            sd_buf_fmt(b, "%s%c*%" PRId64, n++ ? " + " : "",
                       hlo_attend_letter(i), a->stride[array][i]);
    sd_buf_str(b, "]");
}

void plan_print_attend(sd_buf *b, const plan_kernel *k)
{
    static const char *const of[HLO_ATTEND_KINDS] = {
        [HLO_ATTEND_VALUE] = "",
        [HLO_ATTEND_OF_ROWS] = ", gradient of q,",
        [HLO_ATTEND_OF_KEYS] = ", gradients of k and v,"};
    const plan_attend *a = k->attend;

    sd_buf_fmt(b, "  attend%s %d rows by %d keys, ", of[a->of.kind], a->rows,
               a->keys);
    if (plan_attend_gathers(a))
        sd_buf_str(b, "gathered");
    else if (plan_attend_reads(a))
        sd_buf_fmt(b, "read by blocks%s", a->apart ? ", k and v apart" : "");
    else
        sd_buf_fmt(b, "%d pairs", a->pairs);
    sd_buf_fmt(b, ", group %d;", k->group);
    for (int i = 0; i < HLO_ATTEND_AXES; i++)
        if (a->of.extent[i] > 1)
            sd_buf_fmt(b, " %c %" PRId64, hlo_attend_letter(i),
                       a->of.extent[i]);
    sd_buf_str(b, "\n   ");
    for (int i = 0; i < hlo_attend_result(&a->of) + a->of.nresult; i++)
        print_axes(b, &a->of, i);
    sd_buf_str(b, "\n  score");
    plan_print_body(b, a->score);
    if (a->slope) {
        sd_buf_str(b, ", slope");
        plan_print_body(b, a->slope);
    }
    if (a->is_cut)
        sd_buf_fmt(b, ", %g where k > q + %" PRId64 "%s", a->masked, a->beyond,
                   a->cut_alone ? " alone" : "");
    sd_buf_str(b, "\n");
}

bool plan_same_attend(const plan_attend *x, const plan_attend *y)
{
    if (!x || !y)
        return x == y;
    return x->of.kind == y->of.kind && x->of.nmore == y->of.nmore &&
           x->of.nresult == y->of.nresult &&
           memcmp(x->of.extent, y->of.extent, sizeof x->of.extent) == 0 &&
           memcmp(x->of.stride, y->of.stride, sizeof x->of.stride) == 0 &&
           x->engine == y->engine && x->rows == y->rows && x->keys == y->keys &&
           x->pairs == y->pairs && x->apart == y->apart &&
           plan_same_body(x->score, y->score) &&
           (!x->slope || plan_same_body(x->slope, y->slope));
}

/* Results as the operands are, or f32; of rows f32, as operands and results. */
static bool has_types(const plan_kernel *k)
{
    const plan_attend *a = k->attend;
    int to = hlo_attend_result(&a->of),
        rows = a->slope ? plan_attend_copied(a) : to + 1,
        n = a->slope ? a->of.nown : k->nslot;

    for (int i = to; i < k->nslot; i++)
        if (k->slot[i].dtype != k->slot[0].dtype && k->slot[i].dtype != SD_F32)
            return false;
    for (int i = rows; i < n; i++)
        if (k->slot[i].dtype != SD_F32)
            return false;
    return true;
}

static bool fits_group(const plan_kernel *k, const device_desc *dev)
{
    const plan_attend *a = k->attend;
    const plan_engine_info *of = &plan_engine_table[a->engine];
    int fixed = plan_attend_block(a, plan_attend_axis(a, false)),
        block = plan_attend_block(a, plan_attend_axis(a, true));

    if (plan_attend_gathers(a))
        return k->group == READERS * of->items && k->subgroup == of->items &&
               fixed % (READERS * of->m) == 0 &&
               fixed <= READERS * PLAN_SQUARE &&
               HLO_ATTEND_KEYS_GATHERED % block == 0 &&
               block % HLO_ATTEND_STEP_GATHERED == 0 &&
               k->local_bytes >= gathered_bytes(a) &&
               k->local_bytes <= dev->local_bytes &&
               hlo_attend_is_gathered(&a->of);
    if (plan_attend_reads(a))
        return k->group == fixed / PLAN_SQUARE * of->items &&
               k->subgroup == of->items && block % PLAN_SQUARE == 0 &&
               hlo_attend_is_matrices(&a->of);
    return k->group == fixed / of->m * of->several * of->items &&
           block % of->depth == 0 && a->pairs >= (a->slope ? 3 : 2) &&
           k->local_bytes >= bytes_of(k) && k->local_bytes <= dev->local_most;
}

sd_status plan_verify_attend(const plan_kernel *k, const device_desc *dev)
{
    const plan_attend *a = k->attend;
    const plan_engine_info *of = &plan_engine_table[a->engine];
    int axis = plan_attend_axis(a, false), fixed = plan_attend_block(a, axis);
    int64_t tiles = a->blocks;

    for (int i = 0; i < HLO_ATTEND_BATCH; i++)
        tiles *= a->of.extent[i];
    if ((!of->several && !of->panels) ||
        (of->needs & dev->features) != of->needs)
        return plan_bad(k, NULL,
                        "attention by an engine that the device has not, or "
                        "that is not for it");
    if (k->nslot != hlo_attend_result(&a->of) + a->of.nresult ||
        k->tiles != tiles || a->blocks * fixed < a->of.extent[axis])
        return plan_bad(k, NULL, "attention's rows or arrays are miscounted");
    for (int i = 0; i < plan_attend_copied(a); i++)
        if (k->slot[i].dtype != of->part || k->slot[i].align < PLAN_LINE_PART)
            return plan_bad(k, NULL,
                            "attention's operands are not the "
                            "engine's, or lie badly");
    if (!has_types(k))
        return plan_bad(k, NULL,
                        "attention's results or its rows' numbers "
                        "are of other types");
    if (!fits_group(k, dev))
        return plan_bad(k, NULL, "attention's blocks fit no group");
    return NULL;
}
