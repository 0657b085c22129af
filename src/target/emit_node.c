/* The value of a node, made once at the level it belongs to.  Stages walk the
 * node list, so operands are there; asking is only a look-up. */
#include "emit.h"

static bool is_parked(const emit *e, const plan_node *n)
{
    return n->parked && n->pass < e->pass;
}

/* A slot that is also written is read where its element is written. */
static bool is_updated(const emit *e, const plan_node *n)
{
    return n->kind == PN_LOAD && (e->k->slot[n->slot].access & PLAN_WRITE) != 0;
}

int emit_node_level(emit *e, const plan_node *n)
{
    const emit_slot *s = &e->value[n->id * e->ncopy];
    uint64_t varies = n->varies;
    int level = 0;

    if (s->set)
        return s->level;
    if (plan_is_sum(n) && !e->k->blocks)
        return e->outer_depth;
    if (is_parked(e, n)) {
        plan_for_each_axis(i, varies)
            level = SD_MAX(level, e->axis[i].level);
        return SD_MAX(level, e->outer_depth);
    }
    if (is_updated(e, n))
        return e->depth;
    if (n->kind == PN_SCAN)
        varies |= n->over;
    if (n->off)
        varies |= n->off->varies;
    varies |= emit_guards_vary(n->guard, n->nguard);
    plan_for_each_axis(i, varies)
        level = SD_MAX(level, e->axis[i].level);
    if (n->kind == PN_CONTRACT) /* of blocks: it lies in memory */
        return SD_MAX(level, e->outer_depth);
    for (int i = 0; i < n->narg; i++) /* others are not there */
        if (plan_takes(n, i, e->answer))
            level = SD_MAX(level, emit_node_level(e, n->arg[i]));
    for (int i = 0; i < n->nindex && e->answer[n->id] != PLAN_NO; i++)
        level = SD_MAX(level, emit_node_level(e, n->index[i]));
    return level;
}

/* What stands for n in the stretch that is open: its answer, or the one side of
 * a SELECT.  False: nothing does. */
static bool is_answered(emit *e, const plan_node *n, int copy, emit_value *v)
{
    if (e->answer[n->id] != PLAN_OPEN) {
        *v = (emit_value){emit_bool(e, e->answer[n->id] == PLAN_YES), NULL};
        return true;
    }
    for (int i = 1; n->op == HLO_SELECT && i < 3; i++)
        if (!plan_takes(n, 3 - i, e->answer)) {
            *v = emit_node_value(e, n->arg[i],
                                 emit_canon(e, copy, n->arg[i]->varies));
            return true;
        }
    return false;
}

static emit_value elementwise(emit *e, const plan_node *n, int copy)
{
    emit_value arg[8];
    sd_dtype t[8];

    assert(n->narg <= 8);
    for (int i = 0; i < n->narg; i++) {
        const plan_node *x = n->arg[i];

        arg[i] = emit_node_value(e, x, emit_canon(e, copy, x->varies));
        t[i] = x->dtype;
    }
    if (e->end && e->end->holds[n->id])
        return (emit_value){emit_bool(e, true), NULL};
    if (emit_divides_bytes(e, n, arg, arg))
        return arg[0];
    if (n->of_bf16 && emit_devlib_of_bf16(e, n, arg))
        return arg[0];
    if (n->down)
        return (emit_value){
            emit_devlib(e, "dl_exp_down_f32", e->f32, &arg[0].re, 1), NULL};
    return emit_elt(e, n->op, n->in, n->dtype, n->narg, arg, t);
}

static emit_value index_value(emit *e, const plan_node *n, int copy)
{
    emit_value v = {emit_expr(e, n->off, copy, true), NULL};
    sd_dtype from =
        LLVMGetIntTypeWidth(emit_width(v.re) > 1
                                ? LLVMGetElementType(LLVMTypeOf(v.re))
                                : LLVMTypeOf(v.re)) == 32
            ? SD_S32
            : SD_S64;

    return emit_convert(e, v, from, n->dtype);
}

static emit_value pick(emit *e, const plan_node *n, int copy)
{
    const plan_node *from = n->arg[0];

    copy = emit_canon(e, copy, from->varies | from->over);
    if (from->kind == PN_SCAN)
        return emit_scan(e, from, copy, n->out);
    return e->several[from->id]
                     [n->out * e->ncopy + emit_canon(e, copy, from->varies)];
}

static emit_value loaded(emit *e, const plan_node *n, int copy, int level)
{
    emit_value v;

    if (emit_strands_load(e, n, copy, level, &v))
        return v;
    if (emit_across_load(e, n, copy, level))
        return e->value[n->id * e->ncopy + copy].v;
    if (n->staged && !e->stages_loads)
        return emit_staged(e, n, copy);
    return n->wide > 1 ? emit_wide_load(e, n, copy, level)
                       : emit_load(e, n, copy);
}

/* What n is, its operands being known. */
static emit_value computed(emit *e, const plan_node *n, int copy, int level)
{
    emit_value v;

    switch (n->kind) {
    case PN_LOAD:
        return loaded(e, n, copy, level);
    case PN_CONST:
        return emit_constant(e, n->dtype, n->value);
    case PN_INDEX:
        return index_value(e, n, copy);
    case PN_CONTRACT:
        return e->gpu ? emit_group_sum(e, n, copy) : emit_block_sum(e, n, copy);
    case PN_ELT:
        return is_answered(e, n, copy, &v) ||
                       emit_quotients(e, n, copy, level, &v)
                   ? v
                   : elementwise(e, n, copy);
    case PN_PICK:
        return pick(e, n, copy);
    case PN_SCAN:
        return emit_scan(e, n, copy, 0);
    default:
        assert(false && "a node without a value");
        return (emit_value){NULL, NULL};
    }
}

emit_value emit_node_value(emit *e, const plan_node *n, int copy)
{
    emit_slot *s = &e->value[n->id * e->ncopy + copy];
    bool parked = is_parked(e, n);
    emit_value v;
    emit_mark mark;
    int level;

    if (s->set)
        return s->v;
    if (!parked && n->kind != PN_CONTRACT)
        for (int i = 0; i < n->narg; i++)
            if (plan_takes(n, i, e->answer))
                emit_node_value(e, n->arg[i],
                                emit_canon(e, copy, n->arg[i]->varies));
    level = emit_node_level(e, n);
    mark = emit_go_to(e, level);
    v = parked ? emit_park_read(e, n, copy) : computed(e, n, copy, level);
    emit_back(e, mark);
    emit_remember(e, s, v, level);
    return v;
}
