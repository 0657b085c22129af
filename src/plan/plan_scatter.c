/* Scatters on GPUs.  As the plan has it, updates are a loop of one item, since
 * two may go to one place.  That is not needed
 *
 *   - where the program says that no two do: each update is an item's;
 *   - where the order at a place means nothing, as of sums of integers and of
 *     any maximum: the same, and items that meet take turns (`meets`);
 *   - else the updates are sorted by their places, of equals in their order,
 *     and who comes first at a place takes all of them in turn (plan_runs). So
 *     sums have the bits that one item would give them.
 *
 * The last is done by several kernels: one writes the places, some sort them
 * with the updates' numbers, and the scatter itself.
 *
 * Where a processor runs the items (no `access` of several elements: Intel's
 * runtime for CPUs), one item takes 2 ns an update, which is quicker than to
 * sort (90) or to meet (3 to 15). */
#include "plan_room.h"

enum {
    LEAST_UPDATES = 24 /* to sort fewer costs more than a loop of one item */
};

typedef struct {
    plan_kernel *k, *whole;
    const device_desc *dev;
    int64_t batches, updates;
    sd_dtype type;                     /* of a place */
    size_t place, key, update, rest;   /* offsets in the work space */
} sorted;

static plan_node *scatter_of(const plan_kernel *k)
{
    return k->node[plan_scatter_of(k)->id];
}

/* The only inner axis, which counts the updates, becomes an outer one. */
static void share_updates(plan_kernel *k, plan_node *n)
{
    int row = k->nouter++;

    k->axis[row].role = PLAN_MAP;
    k->axis[row].outer = true;
    for (int i = 0; i < k->nstage; i++)
        k->stage[i].axes &= ~(1ull << row);
    n->over = 0;
    n->varies |= 1ull << row;
}

/* ---- sorted by place ---- */

/* x < y */
static plan_body *less_body(sd_arena *a, sd_dtype type)
{
    plan_body *b = sd_arena_new(a, plan_body);
    plan_node *n = sd_arena_array(a, plan_node, 3);

    *b = (plan_body){.nnode = 3, .nparam = 4, .nroot = 1, .op = -1};
    b->node = sd_arena_array(a, plan_node *, 3);
    b->root = sd_arena_array(a, plan_node *, 1);
    for (int i = 0; i < 3; i++) {
        n[i] = (plan_node){.kind = PN_PARAM, .id = i, .out = i, .dtype = type};
        b->node[i] = &n[i];
    }
    n[2] = (plan_node){.kind = PN_ELT,
                       .id = 2,
                       .op = HLO_COMPARE,
                       .in = plan_compare_inst(a, HLO_LT, type),
                       .dtype = SD_PRED,
                       .narg = 2,
                       .arg = b->node};
    b->root[0] = &n[2];
    return b;
}

static plan_slot slot_of(sd_dtype t, int64_t n, plan_access access)
{
    return (plan_slot){.dtype = t,
                       .count = n,
                       .access = (uint8_t)access,
                       .align = 16,
                       .noalias = true};
}

/* Slots: places; places in order, the numbers of their updates. */
static plan_kernel *sort_kernel(const sorted *s)
{
    sd_arena *a = s->k->arena;
    plan_kernel *k = sd_arena_new(a, plan_kernel);
    plan_sort *t = sd_arena_new(a, plan_sort);
    int64_t n = s->batches * s->updates;

    *t = (plan_sort){.rows = s->batches,
                     .n = s->updates,
                     .inner = 1,
                     .keep = s->updates,
                     .less = less_body(a, s->type),
                     .nop = 2,
                     .nout = 2,
                     .first_out = 1,
                     .stable = true};
    t->in = sd_arena_copy(a, (int[]){0, -1}, 2 * sizeof(int));
    t->out = sd_arena_copy(a, (int[]){0, 1}, 2 * sizeof(int));
    t->type =
        sd_arena_copy(a, (sd_dtype[]){s->type, SD_S32}, 2 * sizeof(sd_dtype));
    /* of a place that is left out, these bits are ones, too: it comes last */
    plan_find_sort_keys(a, t);
    t->code_bits = 1;
    while (s->k->slot[scatter_of(s->k)->slot].count >> t->code_bits)
        t->code_bits++;
    *k = (plan_kernel){.name = sd_arena_fmt(a, "%s_sort", s->k->name),
                       .cls = PLAN_SORTING,
                       .sort = t,
                       .nslot = 3,
                       .arena = a};
    k->slot = sd_arena_array(a, plan_slot, 3);
    k->slot[0] = slot_of(s->type, n, PLAN_READ);
    k->slot[1] = slot_of(s->type, n, PLAN_WRITE);
    k->slot[2] = slot_of(SD_S32, n, PLAN_WRITE);
    k->flops = (double)n;
    plan_tile(k, s->dev);
    return k;
}

static size_t slot_bytes(const plan_kernel *k, int i)
{
    return (size_t)k->slot[i].count * sd_dtype_bytes(k->slot[i].dtype);
}

static plan_part_arg in_work(const sorted *s, size_t at, size_t bytes)
{
    return (plan_part_arg){
        .slot = s->whole->nslot - 1, .at = at, .bytes = bytes};
}

/* Slots of the whole, but for the work space, then pieces of that. */
static plan_part_arg *args_of(const sorted *s, const plan_kernel *k)
{
    plan_part_arg *arg = sd_arena_array(k->arena, plan_part_arg, k->nslot);

    for (int i = 0; i < s->whole->nslot - 1; i++)
        arg[i] = (plan_part_arg){.slot = i, .bytes = slot_bytes(k, i)};
    return arg;
}

static void add_part(const sorted *s, plan_kernel *k, plan_part_arg *arg)
{
    s->whole->part[s->whole->npart++] = (plan_part){k, arg};
}

/* Slot i of the sort, or a piece of it. */
static plan_part_arg of_sort(const sorted *s, plan_part_arg a)
{
    const size_t at[] = {s->place, s->key, s->update, s->rest};

    return a.slot < 0 ? a : in_work(s, at[a.slot] + a.at, a.bytes);
}

static void add_sort(const sorted *s, plan_kernel *k)
{
    plan_part_arg *arg = sd_arena_array(k->arena, plan_part_arg, k->nslot);

    for (int p = 0; p < k->npart; p++) {
        for (int i = 0; i < k->part[p].kernel->nslot; i++)
            k->part[p].arg[i] = of_sort(s, k->part[p].arg[i]);
        add_part(s, k->part[p].kernel, k->part[p].arg);
    }
    for (int i = 0; i < k->nslot; i++)
        arg[i] =
            of_sort(s, (plan_part_arg){.slot = i, .bytes = slot_bytes(k, i)});
    if (!k->npart)
        add_part(s, k, arg);
}

/* Is the last update at a place what stays there? */
static bool overwrites(const plan_body *b)
{
    return b && b->root[0]->kind == PN_PARAM && b->root[0]->out == 1;
}

static void take_runs(sorted *s)
{
    plan_kernel *k = s->k;
    int n = k->nslot, row = k->nouter;
    int64_t all = s->batches * s->updates;
    plan_node *node = scatter_of(k);
    plan_slot *slot = sd_arena_array(k->arena, plan_slot, n + 2);
    plan_runs runs = {.axis = row,
                      .batch = s->batches > 1 ? 0 : -1,
                      .key = n,
                      .update = n + 1,
                      .last = overwrites(node->body)};

    memcpy(slot, k->slot, (size_t)n * sizeof *slot);
    slot[n] = slot_of(s->type, all, PLAN_READ);
    slot[n + 1] = slot_of(SD_S32, all, PLAN_READ);
    k->slot = slot;
    k->nslot = n + 2;
    share_updates(k, node);
    k->runs = sd_arena_copy(k->arena, &runs, sizeof runs);
    plan_tile(k, s->dev);
}

static void place_work(sorted *s, const plan_kernel *sort)
{
    size_t n = (size_t)(s->batches * s->updates);
    size_t keys = plan_whole_lines(n * sd_dtype_bytes(s->type));

    s->key = s->place + keys;
    s->update = s->key + keys;
    s->rest = s->update + plan_whole_lines(n * sizeof(int32_t));
    plan_add_work_slot(
        s->whole,
        (int64_t)(s->rest + (sort->nslot > 3 ? slot_bytes(sort, 3) : 0)));
}

static sd_status sort_updates(sorted *s, hlo_inst *fusion)
{
    plan_kernel *places, *sort;
    plan_part_arg *arg;
    sd_status st;
    int n = s->k->nslot;

    if ((st = plan_lower_places(s->k->arena, fusion, s->type, &places)))
        return st;
    places->name = sd_arena_fmt(s->k->arena, "%s_places", s->k->name);
    plan_tile(places, s->dev);
    sort = sort_kernel(s);
    place_work(s, sort);
    s->whole->part =
        sd_arena_array(s->k->arena, plan_part, SD_MAX(sort->npart, 1) + 2);
    arg = args_of(s, places);
    arg[n] = in_work(s, s->place, slot_bytes(places, n));
    add_part(s, places, arg);
    add_sort(s, sort);
    take_runs(s);
    arg = args_of(s, s->k);
    arg[n] = in_work(s, s->key, slot_bytes(s->k, n));
    arg[n + 1] = in_work(s, s->update, slot_bytes(s->k, n + 1));
    add_part(s, s->k, arg);
    return NULL;
}

/* ---- all ---- */

/* What devices of all kinds change in one step. */
static bool is_word(sd_dtype t)
{
    return sd_dtype_bytes(t) == 4 && !sd_is_complex(t);
}

sd_status plan_tile_scatter(plan_kernel *k, hlo_inst *fusion,
                            const device_desc *dev)
{
    plan_node *n = scatter_of(k);
    sorted s = {.k = k, .dev = dev};
    const sd_shape *u = n->in->arg[2]->shape;
    int batch = n->in->u.gather->operand_batch.n;

    s.batches = batch ? u->dim[0] : 1;
    s.updates = u->dim[batch];
    /* not of windows that overlap in part */
    if (k->naxis == k->nouter + 1 && n->over == 1ull << k->nouter) {
        if (n->in->u.gather->unique ||
            (dev->access && is_word(n->dtype) &&
             plan_body_any_order(n->body, n->dtype))) {
            n->meets = !n->in->u.gather->unique;
            share_updates(k, n);
        } else if (dev->access && s.updates >= LEAST_UPDATES &&
                   s.batches * s.updates <= INT32_MAX / 2) {
            /* the whole is what buffers and steps ask; the parts run */
            s.whole = k;
            s.k = sd_arena_copy(k->arena, k, sizeof *k);
            s.type = k->slot[n->slot].count < UINT32_MAX ? SD_U32 : SD_S64;
            return sort_updates(&s, fusion);
        }
    }
    plan_tile(k, dev);
    return NULL;
}
