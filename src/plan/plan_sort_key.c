/* Comparators that order by numbers.  What frameworks write is
 *
 *   f(x) < f(y)                                one key
 *   f(x) < f(y) or (f(x) == f(y) and rest)     and the keys of rest after it
 *
 * with f made of operations on the even parameters (x's) and, the same, on the
 * odd ones, and < the order of integers or the total order of floats.  Such a
 * comparator can be replaced by comparing integers that are made once for an
 * element. */
#include "plan_mapping.h"
#include "plan_whole.h"

enum {
    MOST_STEPS = 10000, /* of the search: a comparator may be any graph */
    EACH = 8,           /* elements that an item has in registers */
    MOST_TEAM = 1024,
    ALONE = 2048 /* elements; others take pieces of a longer row, if most units
                    have none */
};

typedef struct { /* a number that the comparator orders by */
    plan_node *x; /* a function of its even parameters */
    bool down; /* the largest first */
} sort_key;

typedef struct {
    sd_arena *a;
    sd_vec(sort_key) key;
    int steps;
} finder;

/* Not those whose attributes would have to be held against each other. */
static bool is_plain(const plan_node *n)
{
    switch (hlo_op_table[n->op].cls) {
    case HLO_C_UNARY:
    case HLO_C_BINARY:
    case HLO_C_TERNARY:
    case HLO_C_CONVERT:
    case HLO_C_BITCAST:
        return n->op != HLO_REDUCE_PRECISION;
    default:
        return n->op == HLO_COMPARE;
    }
}

static bool same_compare(const plan_node *x, const plan_node *y)
{
    return x->op != HLO_COMPARE ||
           (x->in->u.compare.dir == y->in->u.compare.dir &&
            x->in->u.compare.type == y->in->u.compare.type);
}

/* y is x with the parameters of the one element for those of the other: x
 * takes parameters 2o + side, y 2o + 1 - side. */
static bool mirrors(finder *f, const plan_node *x, const plan_node *y, int side)
{
    if (f->steps++ > MOST_STEPS || x->kind != y->kind || x->dtype != y->dtype)
        return false;
    if (x->kind == PN_PARAM)
        return x->out % 2 == side && y->out == (x->out ^ 1);
    if (x->kind == PN_CONST)
        return memcmp(x->value, y->value, sizeof x->value) == 0;
    if (x->op != y->op || x->narg != y->narg || !is_plain(x) ||
        !same_compare(x, y))
        return false;
    for (int i = 0; i < x->narg; i++)
        if (!mirrors(f, x->arg[i], y->arg[i], side))
            return false;
    return true;
}

static bool is_order(const plan_node *n, hlo_cmp_dir *dir)
{
    const plan_node *x =
        n->kind == PN_ELT && n->op == HLO_COMPARE ? n->arg[0] : NULL;

    if (!x)
        return false;
    *dir = n->in->u.compare.dir;
    return sd_is_float(x->dtype) ? n->in->u.compare.type == HLO_CMP_TOTAL
                                 : !sd_is_complex(x->dtype);
}

/* n is f(x) < f(y), in any of its spellings. */
static bool find_less(finder *f, const plan_node *n, sort_key *key)
{
    hlo_cmp_dir dir;
    bool turned;

    if (!is_order(n, &dir) || (dir != HLO_LT && dir != HLO_GT))
        return false;
    turned = mirrors(f, n->arg[0], n->arg[1], 1);
    if (!turned && !mirrors(f, n->arg[0], n->arg[1], 0))
        return false;
    key->x = n->arg[turned];
    key->down = (dir == HLO_GT) != turned;
    return true;
}

static bool find_equal(finder *f, const plan_node *n, const sort_key *key)
{
    hlo_cmp_dir dir;

    return is_order(n, &dir) && dir == HLO_EQ &&
           ((n->arg[0] == key->x && mirrors(f, n->arg[0], n->arg[1], 0)) ||
            (n->arg[1] == key->x && mirrors(f, n->arg[1], n->arg[0], 0)));
}

static bool is_op(const plan_node *n, hlo_op op)
{
    return n->kind == PN_ELT && n->op == (int)op && n->dtype == SD_PRED;
}

static bool find(finder *f, const plan_node *n);

/* less or (equal and rest) */
static bool find_first(finder *f, const plan_node *less, const plan_node *both)
{
    sort_key key;

    if (!find_less(f, less, &key) || !is_op(both, HLO_AND))
        return false;
    *sd_push(f->a, &f->key) = key;
    for (int i = 0; i < 2; i++)
        if (find_equal(f, both->arg[i], &key))
            return find(f, both->arg[1 - i]);
    return false;
}

static bool find(finder *f, const plan_node *n)
{
    sort_key key;
    int was = f->key.n;

    if (f->steps++ > MOST_STEPS)
        return false;
    if (find_less(f, n, &key)) {
        *sd_push(f->a, &f->key) = key;
        return true;
    }
    if (!is_op(n, HLO_OR))
        return false;
    for (int i = 0; i < 2; i++) {
        f->key.n = was;
        if (find_first(f, n->arg[i], n->arg[1 - i]))
            return true;
    }
    return false;
}

static int bits_of(sd_dtype t)
{
    return SD_MAX(sd_dtype_table[t].bits, 8); /* as they lie in memory */
}

static void mark_needed(const plan_node *n, bool *needed)
{
    if (needed[n->id])
        return;
    needed[n->id] = true;
    for (int i = 0; i < n->narg; i++)
        mark_needed(n->arg[i], needed);
}

/* The keys as a function of their own. */
static plan_body *body_of_keys(sd_arena *a, const plan_body *less,
                               const sort_key *key, int nkey)
{
    plan_body *b = sd_arena_new(a, plan_body);
    plan_node **as = sd_arena_array(a, plan_node *, less->nnode);
    bool *needed = sd_arena_array(a, bool, less->nnode);

    *b = (plan_body){.nparam = less->nparam, .nroot = nkey, .op = -1};
    b->node = sd_arena_array(a, plan_node *, less->nnode);
    b->root = sd_arena_array(a, plan_node *, nkey);
    for (int i = 0; i < nkey; i++)
        mark_needed(key[i].x, needed);
    for (int i = 0; i < less->nnode; i++) {
        const plan_node *n = less->node[i];

        if (!needed[i])
            continue;
        as[i] = sd_arena_copy(a, n, sizeof *n);
        as[i]->id = b->nnode;
        if (n->narg)
            as[i]->arg = sd_arena_array(a, plan_node *, n->narg);
        for (int j = 0; j < n->narg; j++)
            as[i]->arg[j] = as[n->arg[j]->id];
        b->node[b->nnode++] = as[i];
    }
    for (int i = 0; i < nkey; i++)
        b->root[i] = as[key[i].x->id];
    return b;
}

void plan_find_sort_keys(sd_arena *a, plan_sort *s)
{
    finder f = {.a = a};
    int bits = 0;

    if (s->n > UINT32_MAX || !find(&f, s->less->root[0]))
        return;
    for (int i = 0; i < f.key.n && bits <= 64; i++)
        bits += bits_of(f.key.at[i].x->dtype);
    if (bits > 64)
        return;
    s->keys = body_of_keys(a, s->less, f.key.at, f.key.n);
    s->down = sd_arena_array(a, bool, f.key.n);
    for (int i = 0; i < f.key.n; i++)
        s->down[i] = f.key.at[i].down;
    s->code_bits = bits;
}

/* ---- work space ---- */

bool plan_sort_is_full(const plan_sort *s)
{
    bool is = s->keep == s->n && s->nout == s->nop;

    for (int i = 0; is && i < s->nout; i++)
        is = s->out[i] == i;
    return is;
}

static size_t take(size_t *at, int64_t n, size_t each)
{
    size_t here = *at;

    *at += plan_whole_lines((size_t)n * each);
    return here;
}

/* To choose the few is quicker than to sort all only where they are few. */
void plan_sort_place(const plan_sort *s, plan_sort_areas *out)
{
    size_t at = 0, item;

    out->half = s->code_bits <= 32 ? 32 : 64;
    out->few = s->n > PLAN_SORT_FEW && s->keep <= s->n / 4;
    item = (size_t)out->half / 4;
    out->room = out->few ? 2 * s->keep + PLAN_SORT_FEW : s->n;
    out->a = take(&at, out->room, item);
    out->b = take(&at, out->few ? s->keep : s->n, item);
    out->count = take(&at, PLAN_SORT_COUNTS, sizeof(uint32_t));
    out->state = take(&at, out->few ? 8 : 0, sizeof(int64_t));
    /* a vector may begin before its block, where a row ends */
    out->codes = take(&at, out->few ? PLAN_SORT_BLOCK + 64 : 0, item / 2);
    out->codes += out->few ? 32 * item / 2 : 0;
    out->bytes = at;
}

/* The widest operand has the most room; counters are no more needed by then. */
void plan_digit_place(const plan_sort *s, plan_digit_areas *out)
{
    int64_t group = s->piece / s->each, digits = (int64_t)1 << s->bits;
    bool moves = s->step == PLAN_SORT_MOVE;
    size_t at = 0, wide = 0, most;

    for (int i = 0; moves && i < s->nop; i++)
        wide = SD_MAX(wide, sd_dtype_bytes(s->type[i]));
    most = s->step == PLAN_SORT_SUM
               ? 0
               : (size_t)(group / s->team * digits) * sizeof(uint32_t);
    most = SD_MAX(most, (size_t)s->piece * wide);
    out->counters = take(&at, (int64_t)most, 1);
    out->first = take(&at, moves ? digits : 0, sizeof(uint32_t));
    out->apart = take(&at, moves ? digits : 0, sizeof(uint32_t));
    out->digits = take(&at, moves ? s->piece : 0, 1);
    out->sums =
        take(&at, s->step == PLAN_SORT_COUNT ? 0 : group, sizeof(uint64_t));
    out->bytes = at;
}

void plan_item_place(const plan_sort *s, plan_item_areas *out)
{
    int64_t all = (int64_t)s->each * s->team, n = all * plan_sort_abreast(s);
    size_t at = 0, wide = 0;
    int bits = 0;

    while ((all - 1) >> bits)
        bits++;
    *out = (plan_item_areas){.number_bits = bits};
    out->code_bytes = s->code_bits + bits <= 32 ? 4 : 8;
    out->number_bytes = s->code_bits + bits <= 64 ? 0 : 4;
    out->line = PLAN_BANKS_BYTES / out->code_bytes;
    take(&at, n + n / out->line, (size_t)out->code_bytes);
    out->numbers = take(&at, n + n / out->line, (size_t)out->number_bytes);
    for (int i = 0; i < s->nop; i++)
        wide = SD_MAX(wide, sd_dtype_bytes(s->type[i]));
    out->bytes = SD_MAX(at, plan_whole_lines((size_t)n * wide));
}

/* Of a team of up to a sub-group whole groups are made. */
static int team_of(int64_t n, int each)
{
    int team = 1;

    while (team < 32 && (int64_t)team * each < n)
        team *= 2;
    if ((int64_t)team * each >= n)
        return team;
    return (int)((n + (int64_t)32 * each - 1) / ((int64_t)32 * each)) * 32;
}

/* Registers of OpenCL's GPUs are a sub-group's: where elements of its items
 * would take all, sub-groups have half as many items, as narrow_groups in
 * plan_tile.c has it.  Eight elements an item took 8,192 bytes of other memory
 * on pvc in sub-groups of 32, and take none in those of 16. */
void plan_sort_narrow(plan_kernel *k, const device_desc *dev)
{
    enum {
        AN_ELEMENT = 2 * (8 + 8) /* bytes of it and of its place in memory,
                                    and of one that takes its turn */
    };

    if (dev->kind == DEVICE_CL && dev->registers &&
        (int64_t)k->sort->each * AN_ELEMENT >= dev->registers)
        k->subgroup /= 2;
}

bool plan_sort_in_items(plan_kernel *k, int64_t n, const device_desc *dev)
{
    plan_sort *s = k->sort, was = *s;
    int64_t tiles;
    int abreast;

    if (!s->keys || !dev->access || n > (int64_t)EACH * MOST_TEAM ||
        (n > ALONE && s->rows < dev->units / 2))
        return false;
    s->each = (int)SD_MIN(n, EACH);
    s->team = team_of(n, s->each);
    s->scratch = plan_sort_bytes(s, false);
    if (s->scratch > SD_MAX(dev->local_bytes, dev->local_most / 2)) {
        *s = was;
        return false;
    }
    abreast = plan_sort_abreast(s);
    tiles = s->step == PLAN_SORT_TILES ? s->rows * plan_sort_pieces(s)
                                       : (s->rows + abreast - 1) / abreast;
    k->tiles = tiles;
    k->group = k->items = s->team * abreast;
    plan_sort_narrow(k, dev);
    plan_add_work(k, s->scratch);
    return true;
}

/* Merging takes turns between two buffers; the result may be one of them. */
size_t plan_sort_bytes(const plan_sort *s, bool host)
{
    plan_digit_areas digit;
    plan_item_areas item;
    plan_sort_areas at;
    size_t each = 0;

    if (host && s->keys) {
        plan_sort_place(s, &at);
        return at.bytes;
    }
    if (plan_sort_has_items(s)) {
        plan_item_place(s, &item);
        return item.bytes;
    }
    for (int i = 0; i < s->nop; i++)
        each += sd_dtype_bytes(s->type[i]);
    if (s->step == PLAN_SORT_TILES)
        return 2 * plan_whole_lines((size_t)s->piece * each);
    if (s->step == PLAN_SORT_MERGE)
        return 0;
    if (plan_sort_has_digits(s)) {
        plan_digit_place(s, &digit);
        return digit.bytes;
    }
    return plan_whole_lines((size_t)s->n * each) *
           (plan_sort_is_full(s) ? 1 : 2);
}
