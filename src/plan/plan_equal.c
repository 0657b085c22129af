/* Kernels of equal content are built once.  What is compared is all that an
 * emitter or a launch reads, and not the name; the hash only finds those that
 * are worth comparing.  A member that is forgotten here would be wrong code for
 * one of two kernels: tests/unit/test_plan_equal.c changes each byte of each
 * struct, and lists the members that need no comparison. */
#include "plan_lower.h"
#include "plan_whole.h"

static bool same_expr(const plan_expr *x, const plan_expr *y)
{
    if (!x || !y)
        return x == y;
    if (x->kind != y->kind || x->axis != y->axis || x->c != y->c ||
        x->lo != y->lo || x->hi != y->hi || x->varies != y->varies ||
        x->size != y->size)
        return false;
    if (x->kind == PX_NODE)
        return x->node->id == y->node->id;
    return same_expr(x->a, y->a) && same_expr(x->b, y->b);
}

static bool same_guards(const plan_node *x, const plan_node *y)
{
    if (x->nguard != y->nguard)
        return false;
    for (int i = 0; i < x->nguard; i++)
        if (x->guard[i].lo != y->guard[i].lo ||
            x->guard[i].hi != y->guard[i].hi ||
            !same_expr(x->guard[i].e, y->guard[i].e))
            return false;
    return true;
}

/* Operands are compared by their place in the list: those before them have
 * been found equal. */
static bool same_node(const plan_node *x, const plan_node *y)
{
    if (x->kind != y->kind || x->id != y->id || x->op != y->op ||
        x->dtype != y->dtype || x->narg != y->narg || x->varies != y->varies ||
        x->over != y->over || x->stage != y->stage || x->slot != y->slot ||
        x->nout != y->nout || x->out != y->out ||
        x->order.lanes != y->order.lanes || x->order.chunk != y->order.chunk ||
        x->order.cut != y->order.cut || x->parked != y->parked ||
        x->exclusive != y->exclusive || x->apart != y->apart ||
        x->meets != y->meets || x->pass != y->pass || x->wide != y->wide ||
        x->staged != y->staged || x->area != y->area ||
        x->of_bf16 != y->of_bf16 ||
        memcmp(x->value, y->value, sizeof x->value) != 0 ||
        plan_node_attributes(x) != plan_node_attributes(y))
        return false;
    for (int i = 0; i < x->narg; i++)
        if (x->arg[i]->id != y->arg[i]->id)
            return false;
    return same_expr(x->off, y->off) && same_guards(x, y) &&
           plan_same_body(x->body, y->body);
}

bool plan_same_body(const plan_body *x, const plan_body *y)
{
    if (!x || !y)
        return x == y;
    if (x->nnode != y->nnode || x->nparam != y->nparam ||
        x->nroot != y->nroot || x->op != y->op)
        return false;
    for (int i = 0; i < x->nnode; i++)
        if (!same_node(x->node[i], y->node[i]))
            return false;
    for (int i = 0; i < x->nroot; i++)
        if (x->root[i]->id != y->root[i]->id)
            return false;
    return true;
}

static bool same_axis(const plan_axis *x, const plan_axis *y)
{
    return x->extent == y->extent && x->role == y->role &&
           x->place == y->place && x->outer == y->outer && x->grid == y->grid &&
           x->tile == y->tile && x->copies == y->copies;
}

/* Not noalias: one kernel stands for all that are equal, and has it where all
 * have it. */
static bool same_slot(const plan_slot *x, const plan_slot *y)
{
    return x->dtype == y->dtype && x->count == y->count &&
           x->access == y->access && x->align == y->align;
}

static bool same_keys(const plan_sort *x, const plan_sort *y)
{
    if (!plan_same_body(x->keys, y->keys) || x->code_bits != y->code_bits)
        return false;
    for (int i = 0; x->keys && i < x->keys->nroot; i++)
        if (x->down[i] != y->down[i])
            return false;
    return true;
}

static bool same_sort(const plan_sort *x, const plan_sort *y)
{
    if (!x || !y)
        return x == y;
    if (x->rows != y->rows || x->n != y->n || x->inner != y->inner ||
        x->keep != y->keep || x->nop != y->nop || x->nout != y->nout ||
        x->first_out != y->first_out || x->stable != y->stable ||
        x->scratch != y->scratch || x->lanes != y->lanes ||
        x->step != y->step || x->piece != y->piece || x->each != y->each ||
        x->bits != y->bits || x->team != y->team ||
        x->inner_out != y->inner_out || !plan_same_body(x->less, y->less) ||
        !same_keys(x, y))
        return false;
    for (int i = 0; i < x->nop; i++)
        if (x->in[i] != y->in[i] || x->type[i] != y->type[i])
            return false;
    for (int i = 0; i < x->nout; i++)
        if (x->out[i] != y->out[i])
            return false;
    return true;
}

static bool same_call(const hlo_call *x, const hlo_call *y)
{
    if (!x || !y)
        return x == y;
    return strcmp(x->fn, y->fn) == 0 && x->whole == y->whole &&
           x->grouped == y->grouped && x->each == y->each &&
           x->items == y->items && x->work == y->work && x->nint == y->nint &&
           memcmp(x->at, y->at, (size_t)x->nint * sizeof *x->at) == 0;
}

static bool same_runs(const plan_runs *x, const plan_runs *y)
{
    if (!x || !y)
        return x == y;
    return x->axis == y->axis && x->batch == y->batch && x->key == y->key &&
           x->update == y->update && x->last == y->last && x->moved == y->moved;
}

static bool same_buckets(const plan_buckets *x, const plan_buckets *y)
{
    if (!x || !y)
        return x == y;
    return x->batches == y->batches && x->n == y->n && x->places == y->places &&
           x->bits == y->bits && x->near == y->near && x->pieces == y->pieces &&
           plan_same_body(x->body, y->body);
}

/* What follows from the nodes, as which axes are N's, is not compared. */
static bool same_blocks(const plan_blocks *x, const plan_blocks *y)
{
    if (!x || !y)
        return x == y;
    return x->engine == y->engine && x->part == y->part && x->flip == y->flip &&
           x->node->id == y->node->id && x->x->id == y->x->id &&
           x->y->id == y->y->id && x->m == y->m && x->n == y->n &&
           x->k == y->k && x->kt == y->kt && x->weaves == y->weaves &&
           x->x_along == y->x_along && x->y_along == y->y_along &&
           x->ahead == y->ahead && x->rows == y->rows &&
           x->vectors == y->vectors && x->near == y->near &&
           x->step == y->step && x->lead == y->lead &&
           x->x_plain == y->x_plain && x->y_plain == y->y_plain &&
           x->x_loose == y->x_loose && x->y_loose == y->y_loose &&
           x->x_trimmed == y->x_trimmed && x->y_trimmed == y->y_trimmed &&
           x->window == y->window && x->slides == y->slides &&
           x->zeros == y->zeros && x->by_itself == y->by_itself &&
           x->x_wide == y->x_wide && x->y_wide == y->y_wide &&
           x->along_m == y->along_m && x->along_n == y->along_n &&
           x->early == y->early && x->mt == y->mt && x->nt == y->nt &&
           x->round == y->round && x->buffer == y->buffer &&
           x->pairs == y->pairs && x->band == y->band;
}

static bool same_pass(const plan_pass *x, const plan_pass *y)
{
    return x->stage == y->stage && x->lanes == y->lanes && x->how == y->how &&
           x->vectors == y->vectors && x->ahead == y->ahead;
}

static bool same_area(const plan_area *x, const plan_area *y)
{
    return x->what == y->what && x->owner == y->owner &&
           x->offset == y->offset && x->bytes == y->bytes && x->row == y->row &&
           x->first == y->first && x->last == y->last;
}

/* How it runs, beside the places of its axes. */
static bool same_mapping(const plan_kernel *x, const plan_kernel *y)
{
    if (x->nnest != y->nnest || x->npass != y->npass || x->narea != y->narea ||
        x->lanes != y->lanes || x->group != y->group || x->items != y->items ||
        x->vector != y->vector || x->subgroup != y->subgroup ||
        x->large != y->large || x->rows != y->rows || x->ranges != y->ranges ||
        x->keeps != y->keeps || x->teams != y->teams ||
        x->strided != y->strided || x->local_bytes != y->local_bytes ||
        x->tiles != y->tiles || x->masks_steps != y->masks_steps ||
        !same_blocks(x->blocks, y->blocks))
        return false;
    for (int i = 0; i < x->nnest; i++)
        if (x->nest[i] != y->nest[i])
            return false;
    for (int i = 0; i < x->npass; i++)
        if (!same_pass(&x->pass[i], &y->pass[i]))
            return false;
    for (int i = 0; i < x->narea; i++)
        if (!same_area(&x->area[i], &y->area[i]))
            return false;
    return true;
}

bool plan_kernel_equal(const plan_kernel *x, const plan_kernel *y)
{
    if (x->cls != y->cls || x->naxis != y->naxis || x->nouter != y->nouter ||
        x->nnode != y->nnode || x->nslot != y->nslot ||
        x->nstage != y->nstage || x->flops != y->flops ||
        x->bytes != y->bytes || !same_mapping(x, y) ||
        x->unit_groups != y->unit_groups || !same_runs(x->runs, y->runs) ||
        !same_buckets(x->buckets, y->buckets) || !same_sort(x->sort, y->sort) ||
        !same_call(x->call, y->call) ||
        !plan_same_attend(x->attend, y->attend) ||
        !plan_same_places(x->places, y->places))
        return false;
    for (int i = 0; i < x->naxis; i++)
        if (!same_axis(&x->axis[i], &y->axis[i]))
            return false;
    for (int i = 0; i < x->nslot; i++)
        if (!same_slot(&x->slot[i], &y->slot[i]))
            return false;
    for (int i = 0; i < x->nstage; i++)
        if (x->stage[i].axes != y->stage[i].axes)
            return false;
    for (int i = 0; i < x->nnode; i++)
        if (!same_node(x->node[i], y->node[i]))
            return false;
    return true;
}

uint64_t plan_kernel_hash(const plan_kernel *k)
{
    uint64_t shape[4] = {(uint64_t)k->nnode, (uint64_t)k->nslot,
                         (uint64_t)k->naxis, (uint64_t)k->tiles};
    uint64_t h = sd_hash(shape, sizeof shape, k->cls);

    for (int i = 0; i < k->naxis; i++)
        h = sd_hash(&k->axis[i].extent, sizeof k->axis[i].extent, h);
    for (int i = 0; i < k->nslot; i++) {
        uint64_t slot[2] = {(uint64_t)k->slot[i].count, k->slot[i].dtype};

        h = sd_hash(slot, sizeof slot, h);
    }
    plan_for_each_node(n, k) {
        uint64_t key[6] = {n->kind,
                           (uint64_t)n->op,
                           n->dtype,
                           (uint64_t)n->slot,
                           n->off ? (uint64_t)n->off->hi : 0,
                           plan_node_attributes(n)};

        h = sd_hash(key, sizeof key, h);
        h = sd_hash(n->value, sizeof n->value, h);
        for (int j = 0; j < n->narg; j++)
            h = sd_hash(&n->arg[j]->id, sizeof n->arg[j]->id, h);
    }
    return h;
}
