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
 * with the updates' numbers, and the scatter itself.  Updates of one word are
 * sorted themselves, so nobody has to look for them in memory; many are sorted
 * by buckets of places alone (plan_buckets.c).
 *
 * Where a processor runs the items (no `access` of several elements: Intel's
 * runtime for CPUs), one item takes 2 ns an update, which is quicker than to
 * sort (90) or to meet (3 to 15). */
#include "plan_lower.h"
#include "plan_mapping.h"
#include "plan_whole.h"

#include <assert.h>

enum {
    LEAST_SORTED = 24 /* to sort fewer costs more than a loop of one item */
};

typedef struct {
    plan_kernel *k, *whole;
    const device_desc *dev;
    int64_t batches, updates;
    sd_dtype type;         /* of a place */
    bool moved;            /* the updates are sorted, not their numbers */
    int plain;             /* the slot with the list's updates, or -1 */
    plan_buckets *buckets; /* by which they are sorted, or NULL: by places */
    sd_dtype update_type;  /* of what is sorted */
    int64_t unit;          /* the list has places divided by that */
    /* offsets in the work space: of the sort's slots (its operands are one or
     * two), of the sorted places and updates */
    size_t at[5], key, update;
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

plan_slot plan_work_slot(sd_dtype t, int64_t n, plan_access access)
{
    return (plan_slot){.dtype = t,
                       .count = n,
                       .access = (uint8_t)access,
                       .align = 16,
                       .noalias = true};
}

/* What the list has of places is less than that. */
static int64_t places_of(const sorted *s)
{
    return s->whole->slot[scatter_of(s->whole)->slot].count / s->batches /
           s->unit;
}

/* Slots: places, their updates if these are moved; places in order, the updates
 * or their numbers. */
static plan_kernel *sort_kernel(sorted *s)
{
    sd_arena *a = s->k->arena;
    plan_kernel *k = sd_arena_new(a, plan_kernel);
    plan_sort *t = sd_arena_new(a, plan_sort);
    int64_t n = s->batches * s->updates;
    int nin = s->moved ? 2 : 1;

    *t = (plan_sort){.rows = s->batches,
                     .n = s->updates,
                     .inner = 1,
                     .keep = s->updates,
                     .less = less_body(a, s->type),
                     .nop = 2,
                     .nout = 2,
                     .first_out = nin,
                     .stable = true};
    t->in = sd_arena_copy(a, (int[]){0, s->moved ? 1 : -1}, 2 * sizeof(int));
    t->out = sd_arena_copy(a, (int[]){0, 1}, 2 * sizeof(int));
    t->type = sd_arena_copy(a, (sd_dtype[]){s->type, s->update_type},
                            2 * sizeof(sd_dtype));
    /* of a place that is left out, these bits are ones, too: it comes last */
    plan_find_sort_keys(a, t);
    t->code_bits = 1;
    while (places_of(s) >> t->code_bits)
        t->code_bits++;
    *k = (plan_kernel){.name = sd_arena_fmt(a, "%s_sort", s->k->name),
                       .cls = PLAN_SORTING,
                       .sort = t,
                       .nslot = nin + 2,
                       .arena = a};
    k->slot = sd_arena_array(a, plan_slot, nin + 2);
    k->slot[0] = plan_work_slot(s->type, n, PLAN_READ);
    if (s->moved)
        k->slot[1] = plan_work_slot(s->update_type, n, PLAN_READ);
    k->slot[nin] = plan_work_slot(s->type, n, PLAN_WRITE);
    k->slot[nin + 1] = plan_work_slot(s->update_type, n, PLAN_WRITE);
    k->flops = (double)n;
    if (s->buckets &&
        !plan_sort_by_digit(k, s->buckets->bits, s->buckets->near, s->dev))
        s->buckets = NULL;
    if (!s->buckets)
        plan_tile(k, s->dev);
    return k;
}

/* Is the last update at a place what stays there? */
static bool overwrites(const plan_body *b)
{
    return b && b->root[0]->kind == PN_PARAM && b->root[0]->out == 1;
}

/* Are moved updates, `of` a scatter, better in buckets of its places? */
static void find_buckets(sorted *s, const plan_node *of)
{
    plan_buckets b = {.batches = s->batches,
                      .n = s->updates,
                      .places = s->whole->slot[of->slot].count / s->batches,
                      .body = of->body};

    if (s->moved && of->body && !overwrites(of->body) &&
        of->dtype == s->update_type && plan_choose_buckets(&b, s->dev))
        s->buckets = sd_arena_copy(s->k->arena, &b, sizeof b);
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
    if (a.slot < 0)
        return a;
    if (a.slot == 1 && s->plain >= 0)
        return (plan_part_arg){.slot = s->plain, .at = a.at, .bytes = a.bytes};
    return in_work(s, s->at[a.slot] + a.at, a.bytes);
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

/* The updates where they lie, by their numbers. */
static void take_numbers(sorted *s)
{
    plan_kernel *k = s->k;
    int n = k->nslot;
    int64_t all = s->batches * s->updates;
    plan_slot *slot = sd_arena_array(k->arena, plan_slot, n + 2);

    memcpy(slot, k->slot, (size_t)n * sizeof *slot);
    slot[n] = plan_work_slot(s->type, all, PLAN_READ);
    slot[n + 1] = plan_work_slot(SD_S32, all, PLAN_READ);
    k->slot = slot;
    k->nslot = n + 2;
    share_updates(k, scatter_of(k));
}

static sd_status take_runs(sorted *s, hlo_inst *fusion)
{
    const char *name = s->k->name;
    plan_runs runs = {.axis = s->k->nouter,
                      .batch = s->batches > 1 ? 0 : -1,
                      .key = s->whole->nslot - 1,
                      .update = s->whole->nslot,
                      .last = overwrites(scatter_of(s->k)->body),
                      .moved = s->moved};
    sd_status st = NULL;

    if (s->moved) {
        st = plan_lower_part(s->k->arena, fusion, plan_lower_listed, s->type,
                             &s->k);
        runs.axis = runs.batch + 1;
    } else {
        take_numbers(s);
    }
    if (st)
        return st;
    s->k->name = name;
    s->k->runs = sd_arena_copy(s->k->arena, &runs, sizeof runs);
    plan_tile(s->k, s->dev);
    return NULL;
}

/* All of a bucket's updates lie side by side, as the sort's numbers tell. */
static void take_buckets(sorted *s, const plan_kernel *sort)
{
    const plan_part *move = &sort->part[sort->npart - 1];
    int slot = scatter_of(s->whole)->slot;
    plan_kernel *k;
    plan_part_arg *arg;

    s->buckets->pieces = plan_sort_pieces(move->kernel->sort);
    k = plan_bucket_kernel(s->whole, s->k->name, s->buckets, s->update_type,
                           s->dev);
    arg = sd_arena_array(k->arena, plan_part_arg, k->nslot);
    arg[0] = in_work(s, s->key, slot_bytes(k, 0));
    arg[1] = in_work(s, s->update, slot_bytes(k, 1));
    arg[2] = (plan_part_arg){.slot = slot, .bytes = slot_bytes(k, 2)};
    arg[3] = move->arg[move->kernel->nslot - 2];
    add_part(s, k, arg);
}

/* One list behind the other; the last of the sort's slots is its own work. */
static void place_work(sorted *s, const plan_kernel *sort)
{
    int lists = sort->sort->first_out + 2;
    size_t at = 0;

    for (int i = 0; i < lists; i++) {
        s->at[i] = at;
        if (i != 1 || s->plain < 0)
            at += plan_whole_lines(slot_bytes(sort, i));
    }
    s->key = s->at[lists - 2];
    s->update = s->at[lists - 1];
    s->at[lists] = at;
    if (sort->nslot > lists)
        at += slot_bytes(sort, lists);
    plan_add_work_slot(s->whole, (int64_t)at);
}

/* Of a kernel that writes a list in slot `to`: the operand that is the list. */
static int find_plain(const plan_kernel *k, int to)
{
    plan_for_each_node(n, k)
        if (n->kind == PN_STORE && n->slot == to) {
            const plan_node *x = n->arg[0];

            return x->kind == PN_LOAD && !x->nguard && x->off == n->off &&
                           k->slot[x->slot].count == k->slot[to].count
                       ? x->slot
                       : -1;
        }
    return -1;
}

/* The first of the parts writes the lists that are sorted. */
static sd_status lower_places(sorted *s, hlo_inst *fusion, plan_kernel **places)
{
    sd_arena *a = s->k->arena;
    sd_status st;

    s->plain = -1;
    if (s->moved) {
        if ((st = plan_lower_part(a, fusion, plan_lower_updates, s->type,
                                  places)))
            return st;
        s->plain = find_plain(*places, s->k->nslot + 1);
    }
    if (!s->moved || s->plain >= 0)
        if ((st = plan_lower_part(a, fusion, plan_lower_places, s->type,
                                  places)))
            return st;
    (*places)->name = sd_arena_fmt(a, "%s_places", s->k->name);
    plan_tile(*places, s->dev);
    return NULL;
}

static void add_places(const sorted *s, plan_kernel *places)
{
    plan_part_arg *arg = args_of(s, places);

    for (int i = s->k->nslot; i < places->nslot; i++)
        arg[i] = in_work(s, s->at[i - s->k->nslot], slot_bytes(places, i));
    add_part(s, places, arg);
}

static sd_status sort_updates(sorted *s, hlo_inst *fusion)
{
    plan_kernel *sort = sort_kernel(s), *places;
    plan_part_arg *arg;
    sd_status st;
    int n = s->k->nslot;

    if ((st = lower_places(s, fusion, &places)))
        return st;
    place_work(s, sort);
    s->whole->part =
        sd_arena_array(s->k->arena, plan_part, SD_MAX(sort->npart, 1) + 2);
    add_places(s, places);
    add_sort(s, sort);
    if (s->buckets) {
        take_buckets(s, sort);
        return NULL;
    }
    if ((st = take_runs(s, fusion)))
        return st;
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
    assert(s.batches > 0); /* what is empty has no kernel (plan_fuse.c) */
    /* not of windows that overlap in part */
    if (k->naxis == k->nouter + 1 && n->over == 1ull << k->nouter) {
        if (n->in->u.gather->unique ||
            (dev->access && is_word(n->dtype) &&
             plan_body_any_order(n->body, n->dtype))) {
            n->meets = !n->in->u.gather->unique;
            share_updates(k, n);
        } else if (dev->access && s.updates >= LEAST_SORTED &&
                   s.batches * s.updates <= INT32_MAX / 2) {
            /* the whole is what buffers and steps ask; the parts run */
            s.whole = k;
            s.k = sd_arena_copy(k->arena, k, sizeof *k);
            s.type = k->slot[n->slot].count < UINT32_MAX ? SD_U32 : SD_S64;
            s.moved = is_word(u->dtype) &&
                      sd_shape_count(u) == s.batches * s.updates &&
                      k->slot[n->slot].count <= INT32_MAX;
            s.update_type = s.moved ? u->dtype : SD_S32;
            s.unit = s.moved ? 1 : plan_place_unit(n->in);
            find_buckets(&s, n);
            return sort_updates(&s, fusion);
        }
    }
    plan_tile(k, dev);
    return NULL;
}
