/* What emitters count on.  Each kernel is looked at by itself: first its axes
 * and nodes, then the mapping, which is the nest, the passes and the areas. */
#include "plan_blocks.h"
#include "plan_whole.h"

sd_status plan_bad(const plan_kernel *k, const plan_node *n, const char *what)
{
    return sd_error(SD_INTERNAL, "%s: n%d: %s", k->name, n ? n->id : -1, what);
}

static sd_status check_expr(const plan_kernel *k, const plan_node *n,
                            const plan_expr *e)
{
    sd_status st;

    if (e->kind == PX_AXIS &&
        (e->axis >= k->naxis || e->hi != k->axis[e->axis].extent - 1))
        return plan_bad(k, n, "an expression of an axis that is not there");
    if (e->kind == PX_NODE &&
        (e->node->id >= n->id || k->node[e->node->id] != e->node))
        return plan_bad(k, n, "an expression of a later node");
    if ((e->kind == PX_DIV || e->kind == PX_MOD) && e->c < 1)
        return plan_bad(k, n, "division by less than one");
    if (e->a && (st = check_expr(k, n, e->a)))
        return st;
    return e->b ? check_expr(k, n, e->b) : NULL;
}

static sd_status check_node(const plan_kernel *k, const plan_node *n)
{
    uint64_t outer = (1ull << k->nouter) - 1;
    sd_status st;

    for (int i = 0; i < n->narg; i++)
        if (n->arg[i]->id >= n->id || k->node[n->arg[i]->id] != n->arg[i])
            return plan_bad(k, n, "an operand that is not before it");
    if (plan_axis_after(n->varies | n->over, k->naxis - 1) >= 0)
        return plan_bad(k, n, "an axis that there is not");
    for (int i = 0; i < n->nguard; i++)
        if ((st = check_expr(k, n, n->guard[i].e)))
            return st;
    if (n->off && (st = check_expr(k, n, n->off)))
        return st;
    if ((n->kind == PN_LOAD || plan_is_write(n)) &&
        (n->slot < 0 || n->slot >= k->nslot || !n->off))
        return plan_bad(k, n, "no such slot, or no place in it");
    if (n->kind == PN_LOAD && n->nguard == 0 &&
        (n->off->lo < 0 || n->off->hi >= k->slot[n->slot].count))
        return plan_bad(k, n, "reads outside its slot");
    if (n->kind == PN_CONTRACT &&
        (n->narg != 2 || !n->over || n->arg[0]->dtype != n->dtype ||
         n->arg[1]->dtype != n->dtype))
        return plan_bad(k, n, "a product of other types, or over nothing");
    if (n->stage < 0 || n->stage > k->nstage)
        return plan_bad(k, n, "no such stage");
    if (plan_is_sink(n)) {
        if (n->stage >= k->nstage ||
            k->stage[n->stage].axes != ((n->varies | n->over) & ~outer))
            return plan_bad(k, n, "not the axes of its stage");
    }
    if (plan_is_sum(n) && n->varies & ~outer)
        return plan_bad(k, n, "a reduction that varies on an inner axis");
    return NULL;
}

/* ---- the mapping ---- */

/* The nest is every outer axis once, and of the others only a scatter's; LANE,
 * if it is one, is the last. */
static sd_status check_nest(const plan_kernel *k)
{
    uint64_t outer = (1ull << k->nouter) - 1, nest = 0;

    for (int i = 0; i < k->nnest; i++) {
        int a = k->nest[i];

        if (a < 0 || a >= k->naxis || nest >> a & 1)
            return plan_bad(k, NULL, "a loop of no axis, or of one twice");
        nest |= 1ull << a;
        if (k->axis[a].place == PLAN_LANE && i != k->nnest - 1)
            return plan_bad(k, NULL, "LANE is not the innermost of the loops");
    }
    if ((nest & outer) != outer || (nest != outer && k->cls != PLAN_SCATTERING))
        return plan_bad(k, NULL, "the loops are not those of the outer axes");
    return NULL;
}

/* Copies of axis a while pass p runs. */
static int copies_in(const plan_kernel *k, const plan_pass *p, int a)
{
    const plan_axis *x = &k->axis[a];
    bool inner = (k->stage[p->stage].axes & ~plan_nest_axes(k)) >> a & 1;

    if (!inner)
        return x->outer ? x->copies : 1;
    if (x->place == PLAN_LANE)
        return p->vectors;
    return p->how == PLAN_LANES_COPIES || p->how == PLAN_LANES_ITEMS ||
                   p->how == PLAN_LANES_ROWS || p->how == PLAN_LANES_ACROSS
               ? x->copies
               : 1;
}

static sd_status check_pass(const plan_kernel *k, const plan_pass *p)
{
    int64_t more = 0;

    if (p->stage < 0 || p->stage >= k->nstage ||
        (p > k->pass && p[-1].stage > p->stage))
        return plan_bad(k, NULL, "a pass of no stage, or out of turn");
    if (p->vectors < 1 || p->vectors > PLAN_AXIS_COPIES || !p->needs)
        return plan_bad(k, NULL, "a pass without vectors, or without nodes");
    if (p->end &&
        (p->end->axis < k->nouter || p->end->axis >= k->naxis ||
         !(p->end->guard.e->varies >> p->end->axis & 1) || !p->end->holds))
        return plan_bad(k, NULL, "a pass that ends on no axis of its own");
    for (int i = 0; i < k->nnode; i++) {
        uint64_t on = k->node[i]->varies | k->node[i]->over;
        int64_t n = 1;

        plan_for_each_axis(a, p->needs[i] ? on : 0)
            n *= copies_in(k, p, a);
        more += n - 1;
    }
    if (more > PLAN_MOST_COPIES)
        return plan_bad(k, NULL, "a pass of too many copies");
    return NULL;
}

enum { STRIDED = 8 }; /* lanes of a sum that is not along rows */

/* Items of a group are those of LANE times those of the axis of place CROWD, of
 * which there is none in groups that LANE fills. */
static sd_status check_items(const plan_kernel *k)
{
    int lane = plan_lane_of(k), crowd = 0;

    for (int i = 0; i < k->naxis; i++)
        if (k->axis[i].place == PLAN_CROWD) {
            crowd++;
            if (!k->axis[i].outer || k->items < 1 ||
                k->axis[i].tile * k->items !=
                    (int64_t)k->group * k->axis[i].copies)
                return plan_bad(k, NULL, "a crowd that is not a group's");
        }
    if (k->strided && (crowd || k->items * STRIDED != k->group))
        return plan_bad(k, NULL, "a group whose rows are no strided lanes");
    if (k->teams && (!k->keeps || crowd || k->items * k->teams != k->group))
        return plan_bad(k, NULL, "teams that share no row");
    if (crowd > 1 || (!crowd && !k->blocks && !k->strided && !k->teams &&
                      k->items != k->group))
        return plan_bad(k, NULL, "items that are in no row, or in several");
    if (k->vector < 1 || k->axis[lane].extent % k->vector ||
        k->axis[lane].copies % k->vector)
        return plan_bad(k, NULL, "vectors that LANE is no multiple of");
    return NULL;
}

/* Is a part of some vector one of the zeros that lead, or beyond an end, of an
 * operand that is not loose? */
static bool cuts_vector(const plan_kernel *k, const plan_blocks *b, bool x)
{
    int along = x ? b->x_along : b->y_along, wide = x ? b->x_wide : b->y_wide;

    return !(x ? b->x_loose : b->y_loose) &&
           ((b->node->over >> along & 1 && b->lead % wide) ||
            k->axis[along].extent % wide);
}

/* A plain operand, or a loose one, that cannot be. */
static bool is_no_plain(const plan_kernel *k, const plan_blocks *b, bool x)
{
    const plan_node *n = x ? b->x : b->y;
    int along = x ? b->x_along : b->y_along, wide = x ? b->x_wide : b->y_wide;
    bool plain = x ? b->x_plain : b->y_plain,
         loose = x ? b->x_loose : b->y_loose;

    if (loose &&
        (!plain || !plan_may_be_loose(k, b, n, along) || wide % plan_word(b)))
        return true;
    return plain && !(x && b->window) && !plan_is_plain(k, n, along, wide);
}

static bool same_reads(const plan_reads *x, const plan_reads *y)
{
    return x->across == y->across && x->flat == y->flat &&
           x->guard == y->guard && x->pitch == y->pitch && x->rows == y->rows &&
           x->columns == y->columns && x->slide == y->slide;
}

static bool reads_by_blocks(const plan_kernel *k, const plan_blocks *b)
{
    plan_blocks again = *b;

    return plan_find_reads(k, &again) && again.slides == b->slides &&
           (!b->deep || plan_reads_squares(k, b)) &&
           again.m_whole == b->m_whole &&
           same_reads(&again.x_reads, &b->x_reads) &&
           same_reads(&again.y_reads, &b->y_reads);
}

/* A group's blocks: items have a tile between them, copies are whole, and both
 * pairs of areas and a round of sums lie in local memory. */
static sd_status check_blocks(const plan_kernel *k, const plan_blocks *b)
{
    size_t each = sd_dtype_bytes(b->node->dtype);
    int64_t run = (int64_t)b->along_m * b->near;
    const plan_engine_info *e = &plan_engine_table[b->engine];

    if (b->window && (!plan_find_window(k, b) || !b->x_plain || !b->y_plain))
        return plan_bad(k, b->node, "a window that no rows of x are for");
    if (plan_slides_in_area(b) && (!plan_find_slide(k, b) || !b->by_itself))
        return plan_bad(k, b->node, "an x that has nowhere to slide");
    if (k->axis[b->m].tile * plan_tile_points(k, b, b->m_in) > b->mt ||
        k->axis[b->n].tile * plan_tile_points(k, b, b->n_in) > b->nt)
        return plan_bad(k, b->node, "a tile that its items do not have");
    if (b->early && !plan_stands_in_squares(k, b))
        return plan_bad(k, b->node, "items that do not stand in squares");
    if (b->round % run || b->mt % b->round || b->nt % k->vector ||
        b->nt / k->vector != k->items || k->group % k->items)
        return plan_bad(k, b->node, "rounds of sums that are no whole rows");
    if (b->step % b->x_wide || b->step % b->y_wide || b->mt % b->x_wide ||
        b->nt % b->y_wide || cuts_vector(k, b, true) ||
        cuts_vector(k, b, false))
        return plan_bad(k, b->node, "copies that are cut");
    if (!b->direct &&
        ((b->window ? plan_window_rows(k, b) : b->mt) * b->step / b->x_wide %
             (k->group * plan_woven_rows(b, b->x_along)) ||
         b->nt * b->step / b->y_wide %
             (k->group * plan_woven_rows(b, b->y_along))))
        return plan_bad(k, b->node, "copies that not all items have");
    if (b->lead < 0 || b->lead >= b->step ||
        (e->panels && !b->direct && (b->kt + b->lead) % b->step))
        return plan_bad(k, b->node, "zeros before no full steps");
    if (is_no_plain(k, b, true) || is_no_plain(k, b, false) ||
        ((b->x_plain && b->x->nguard) || (b->y_plain && b->y->nguard)) !=
            (b->zeros > 0))
        return plan_bad(k, b->node, "a plain operand that is not read so");
    if (b->direct && !reads_by_blocks(k, b))
        return plan_bad(k, b->node, "an operand that blocks do not read");
    if (e->m && (k->subgroup != e->items ||
                 k->group != b->along_m * b->along_n * e->items))
        return plan_bad(k, b->node, "sub-groups that its engine does not take");
    if (b->band > 1 && (b->n < b->m || b->n != k->nouter - 1 ||
                        plan_axis_tiles(&k->axis[b->m]) % b->band))
        return plan_bad(k, b->node, "bands of tiles that are not whole");
    if (b->pairs < 2 || plan_areas_bytes(b) > k->local_bytes ||
        b->sum_at + (size_t)(b->round * b->sum_m) * each > k->local_bytes)
        return plan_bad(k, b->node, "areas that local memory does not hold");
    return NULL;
}

static bool is_loose(const plan_kernel *k, const plan_node *n)
{
    const plan_blocks *b = k->blocks;

    return b && ((n == b->x && b->x_loose) || (n == b->y && b->y_loose));
}

/* Several copies in one access: neighbours at a place as aligned as they are
 * long, but for loose ones, or one element. */
static sd_status check_wide(const plan_kernel *k, const plan_node *n)
{
    const plan_slot *slot = &k->slot[n->slot];
    int64_t bytes = n->wide * (int64_t)sd_dtype_bytes(n->dtype), s, m;
    int lane = plan_wide_axis(k, n), most = k->vector;

    if (plan_running_axis(k) >= 0)
        most = k->axis[lane].copies;
    if (plan_copied_along(k, n) >= 0)
        most = n->varies & plan_block_rows(k->blocks) ? k->blocks->x_wide
                                                      : k->blocks->y_wide;
    if (n->staged && (n->kind != PN_LOAD || lane == plan_lane_of(k) ||
                      !plan_fills_zeros(n) ||
                      k->axis[lane].tile != k->axis[plan_lane_of(k)].tile ||
                      k->area[n->area].owner != n->id))
        return plan_bad(k, n, "a staged value that is no square of a slot");
    if (n->wide <= 1)
        return NULL;
    if ((n->kind != PN_LOAD && n->kind != PN_STORE) || most % n->wide ||
        !plan_expr_run(n->off, lane, n->wide, &s, &m))
        return plan_bad(k, n, "an access of copies that are no neighbours");
    if (s == 1 ? (is_loose(k, n) ? n->wide != plan_loose_run(k, k->blocks, n,
                                                             lane, n->wide)
                                 : m % n->wide || slot->align % bytes) ||
                     slot->count < n->wide
               : s != 0 || n->kind == PN_STORE)
        return plan_bad(k, n, "a wide access that is not aligned");
    for (int i = 0; i < n->nguard; i++)
        if (!plan_guard_is_even(&n->guard[i], lane, n->wide))
            return plan_bad(k, n, "a wide access of which a part is guarded");
    return NULL;
}

/* Strands of a row: side by side in one slot, and each knows its row. */
static sd_status check_woven(const plan_kernel *k, const plan_node *n)
{
    const plan_woven *w = n->woven;
    bool has = !w;
    int64_t d;

    for (int i = 0; w && i < w->n; i++) {
        const plan_node *x = w->at[i];

        has |= x == n;
        if (x && (x->woven != w || x->kind != n->kind || x->slot != n->slot ||
                  !plan_expr_distance(w->at[0]->off, x->off, &d) || d != i))
            return plan_bad(k, n, "strands that are not side by side");
    }
    return has ? NULL : plan_bad(k, n, "a strand that its row has not");
}

/* Rows that are kept: all passes along them take them in one step.  A pass that
 * stores what a row comes to is along no axis. */
static sd_status check_kept(const plan_kernel *k)
{
    int lane = plan_lane_of(k);
    const plan_axis *x = &k->axis[lane];
    int64_t items = (int64_t)k->items * SD_MAX(k->teams, 1);

    for (int i = 0; i < k->npass; i++) {
        const plan_pass *p = &k->pass[i];

        if (x->outer ||
            (k->stage[p->stage].axes >> lane & 1 &&
             (p->how != PLAN_LANES_VECTOR || p->vectors * items != x->extent)))
            return plan_bad(k, NULL,
                            "a row that is kept, and of several steps");
    }
    return NULL;
}

static sd_status check_gpu(const plan_kernel *k)
{
    sd_status st = check_items(k);

    if (!st && k->keeps)
        st = check_kept(k);
    if (!st && k->blocks)
        st = check_blocks(k, k->blocks);
    for (int i = 0; i < k->nnode && !st; i++)
        st = check_wide(k, k->node[i]);
    return st;
}

/* Stretches are parts of their axis, which is one of the nest from number
 * `nest` on. */
static sd_status check_cut(const plan_kernel *k, const plan_cut *c, int nest)
{
    int64_t before = -1;
    sd_status st = NULL;

    if (!c)
        return NULL;
    while (nest < k->nnest && k->nest[nest] != c->axis)
        nest++;
    if (nest == k->nnest)
        return plan_bad(k, NULL, "a cut of no axis of the nest");
    for (int i = 0; i < c->n && !st; i++) {
        const plan_stretch *s = &c->stretch[i];

        if (s->from <= before || (i == 0 && s->from) ||
            s->from >= k->axis[c->axis].extent)
            return plan_bad(k, NULL,
                            "stretches that are no parts of their axis");
        before = s->from;
        st = check_cut(k, s->inside, nest + 1);
    }
    return st;
}

/* A sink is written by a pass of its stage, a parked value by one before those
 * that read it.  A CONTRACT in blocks has none. */
static sd_status check_writer(const plan_kernel *k, const plan_node *n)
{
    bool sink = plan_is_sink(n);
    bool blocks = k->blocks && n == k->blocks->node;

    if (n->pass >= k->npass ||
        (n->pass >= 0) != ((sink && !blocks) || n->parked))
        return plan_bad(k, n, "no pass writes it, or one that does not");
    if (n->pass >= 0 && (k->pass[n->pass].stage < n->stage ||
                         (sink && k->pass[n->pass].stage != n->stage) ||
                         !k->pass[n->pass].needs[n->id]))
        return plan_bad(k, n, "a pass writes it that is not of its stage");
    for (int i = 0; n->parked && i < n->pass; i++)
        if (k->pass[i].needs[n->id])
            return plan_bad(k, n, "a pass reads it before it is parked");
    return NULL;
}

static sd_status check_passes(const plan_kernel *k)
{
    sd_status st = NULL;

    for (int i = 0; i < k->npass && !st; i++)
        st = check_pass(k, &k->pass[i]);
    for (int i = 0; i < k->nnode && !st; i++)
        st = check_writer(k, k->node[i]);
    return st;
}

/* Bytes that what lies in the area takes, as emitters write it. */
static size_t area_needs(const plan_kernel *k, const plan_area *x)
{
    const plan_node *n = x->owner < 0 ? NULL : k->node[x->owner];
    int lane = plan_lane_of(k);

    switch (x->what) {
    case PLAN_AREA_PARK:
        return (size_t)plan_points(k, n->varies & ~plan_nest_axes(k)) *
               (size_t)(k->group / SD_MAX(k->items, 1)) *
               (size_t)plan_parked_lanes(k) * sd_dtype_bytes(n->dtype);
    case PLAN_AREA_STAGE:
        return x->row * (size_t)k->axis[lane].tile;
    case PLAN_AREA_JOIN:
        return (size_t)(k->group * k->vector) *
               sd_dtype_bytes(n->arg[x - k->area - n->area]->dtype);
    case PLAN_AREA_SUMS:
        return (size_t)(plan_any_order(n) ? 1 : n->order.lanes) *
               SD_MAX(x->row, ((size_t)k->axis[lane].tile + (size_t)k->lanes) *
                                  sd_dtype_bytes(n->dtype));
    default:
        return x->bytes;
    }
}

static bool overlap(const plan_area *x, const plan_area *y)
{
    return x->offset < y->offset + y->bytes &&
           y->offset < x->offset + x->bytes && x->first <= y->last &&
           y->first <= x->last;
}

static sd_status check_area(const plan_kernel *k, int i)
{
    const plan_area *x = &k->area[i];

    if (x->owner >= k->nnode || (x->owner < 0) != (x->what == PLAN_AREA_WORK))
        return plan_bad(k, NULL, "an area of no node");
    if (x->offset % 64 || x->offset + x->bytes > k->local_bytes)
        return plan_bad(k, NULL, "an area beyond local memory, or not aligned");
    if (x->owner >= 0 &&
        (k->node[x->owner]->area > i || x->first > x->last ||
         x->first < k->node[x->owner]->stage || x->last >= k->nstage))
        return plan_bad(k, k->node[x->owner],
                        "an area of other stages, or owners");
    if (area_needs(k, x) > x->bytes)
        return plan_bad(k, NULL, "an area that is too small");
    for (int j = 0; j < i; j++)
        if (overlap(x, &k->area[j]))
            return plan_bad(k, NULL, "areas that overlap");
    return NULL;
}

/* Passes read a parked value in the stages in which its area is alive. */
static sd_status check_lives(const plan_kernel *k)
{
    for (int i = 0; i < k->nnode; i++) {
        const plan_node *n = k->node[i];

        if (n->parked && (n->area >= k->narea || k->area[n->area].owner != i))
            return plan_bad(k, n, "parked, and no area of its own");
        for (int p = 0; n->parked && p < k->npass; p++)
            if (k->pass[p].needs[i] &&
                (k->pass[p].stage < k->area[n->area].first ||
                 k->pass[p].stage > k->area[n->area].last))
                return plan_bad(k, n, "read when its area is not alive");
    }
    return NULL;
}

static sd_status check_areas(const plan_kernel *k, const device_desc *dev)
{
    sd_status st = NULL;

    for (int i = 0; i < k->narea && !st; i++)
        st = check_area(k, i);
    if (!st)
        st = check_lives(k);
    if (!st && dev->kind != DEVICE_HOST &&
        k->local_bytes >
            (k->blocks || k->attend || k->places || k->sort || k->call
                 ? SD_MAX(dev->local_bytes, dev->local_most)
                 : dev->local_bytes))
        st = plan_bad(k, NULL, "more local memory than a group has");
    return st;
}

/* The parts that items get are equal and together the whole. */
static sd_status check_call(const plan_kernel *k, const hlo_call *c)
{
    if (c->items < 1 || c->nint < 0 || c->nint > HLO_CALL_INTS)
        return plan_bad(k, NULL, "a call of no items, or of too many numbers");
    for (int i = 0; !c->whole && i < k->nslot; i++)
        if (k->slot[i].count % c->items)
            return plan_bad(k, NULL, "a call's items do not divide a slot");
    return NULL;
}

static sd_status check_kernel(const plan_kernel *k, const device_desc *dev)
{
    bool whole = k->sort || k->call || k->attend || k->places || k->buckets;
    int lanes = 0;
    int64_t tiles = 1;
    sd_status st;

    if ((k->call && (st = check_call(k, k->call))) ||
        (k->attend && (st = plan_verify_attend(k, dev))) ||
        (k->places && (st = plan_verify_places(k, dev))) ||
        (k->buckets && (st = plan_verify_buckets(k, dev))) ||
        (k->sort && (st = plan_verify_sort(k, dev))))
        return st;
    for (int i = 0; i < k->naxis; i++) {
        const plan_axis *x = &k->axis[i];

        lanes += x->place == PLAN_LANE;
        if (x->outer != (i < k->nouter))
            return plan_bad(k, NULL, "outer axes do not come first");
        if (x->extent < 1 || x->tile < 1 || (x->grid && !x->outer) ||
            (!whole && (x->copies < 1 || x->copies > PLAN_AXIS_COPIES)))
            return plan_bad(k, NULL, "an axis without extent, tile or copy");
        if (x->grid)
            tiles *= (x->extent + x->tile - 1) / x->tile;
    }
    if (!whole && lanes != 1)
        return plan_bad(k, NULL, "not one LANE axis");
    if (!whole && tiles != k->tiles)
        return plan_bad(k, NULL, "tiles are miscounted");
    for (int i = 0; i < k->nnode; i++) {
        if (k->node[i]->id != i)
            return plan_bad(k, k->node[i], "not its own number");
        if ((st = check_node(k, k->node[i])) ||
            (st = check_woven(k, k->node[i])))
            return st;
    }
    if (k->ranges &&
        (k->cls != PLAN_SCATTERING || dev->kind != DEVICE_HOST ||
         k->axis[0].tile != 1 || plan_scatter_of(k)->varies % 2 == 0))
        return plan_bad(k, NULL, "ranges of what is no scatter by them");
    if (!whole &&
        ((st = check_nest(k)) || (st = check_passes(k)) ||
         (st = plan_verify_scatter(k, dev)) || (st = check_cut(k, k->cut, 0)) ||
         (dev->kind != DEVICE_HOST && (st = check_gpu(k)))))
        return st;
    return check_areas(k, dev);
}

sd_status plan_verify(const plan *p)
{
    sd_status st;

    for (int i = 0; i < p->nkernel; i++)
        if ((st = check_kernel(p->kernel[i], p->dev)))
            return st;
    if (p->program->nkernel != p->nkernel)
        return sd_error(SD_INTERNAL, "%d kernels, %d of them in the program",
                        p->nkernel, p->program->nkernel);
    return plan_verify_steps(p, &p->program->seq);
}
