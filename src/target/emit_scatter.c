/* Updates of single elements on the host: LANE is their number.  Places and
 * values are computed as vectors, put aside, and applied one by one in order;
 * those of batches in turns, so that an update need not wait for the one
 * before it at the same place. */
#include "emit.h"

enum { MOST_BATCHES = 8, AT_ONCE = 4 /* updates in a step of the loop */ };

typedef struct {        /* of one batch */
    LLVMValueRef place; /* in memory; -1: nothing is updated */
    LLVMTypeRef type;   /* of a place */
    LLVMValueRef value; /* in memory; NULL: all are `same` */
    emit_value same;
} updates;

bool emit_takes_turns(const emit *e, const plan_node *n)
{
    return !e->gpu && e->lane >= 0 && e->w > 1 && (n->over >> e->lane & 1);
}

static LLVMValueRef room_for(emit *e, LLVMTypeRef t, int n)
{
    LLVMValueRef p = emit_alloca(e, LLVMArrayType2(t, (uint64_t)n));

    LLVMSetAlignment(p, 64);
    return p;
}

static updates put_aside(emit *e, const plan_node *n, int copy)
{
    const plan_node *arg = n->arg[0];
    LLVMTypeRef part = emit_mem_type(e, sd_dtype_part(n->dtype));
    emit_value v = emit_node_value(e, arg, emit_canon(e, copy, arg->varies));
    uint64_t axes = n->varies | n->over | n->off->varies;
    LLVMValueRef at, on;
    updates u = {.same = v};

    at = emit_splat(e, emit_expr(e, n->off, copy, true), e->w);
    on = emit_and(e, emit_guards(e, n->guard, n->nguard, copy, true),
                  emit_mask(e, axes, copy));
    if (on)
        at = emit_select(e, on, at, emit_int_like(at, -1));
    u.type = LLVMGetElementType(LLVMTypeOf(at));
    u.place = room_for(e, u.type, e->w);
    LLVMBuildStore(e->b, at, u.place);
    if (emit_width(v.re) > 1) {
        u.value = room_for(e, part, 2 * e->w); /* complex numbers have two */
        emit_mem_write(e, n->dtype, u.value, emit_i64(e, 0), v);
    }
    return u;
}

static void apply(emit *e, const plan_node *n, const updates *u, LLVMValueRef i)
{
    LLVMValueRef p = LLVMBuildGEP2(e->b, u->type, u->place, &i, 1, "");
    LLVMValueRef at = LLVMBuildLoad2(e->b, u->type, p, ""), on;
    LLVMBasicBlockRef no;
    emit_value arg[2], root[1];

    on = LLVMBuildICmp(e->b, LLVMIntSGE, at, emit_int_like(at, 0), "");
    no = emit_when(e, on);
    at = LLVMBuildSExtOrBitCast(e->b, at, e->i64, "");
    arg[1] = u->value ? emit_mem_read(e, n->dtype, u->value, i, 1) : u->same;
    root[0] = arg[1];
    if (n->body) {
        arg[0] = emit_mem_read(e, n->dtype, e->slot[n->slot], at, 1);
        emit_body(e, n->body, arg, root);
    }
    emit_mem_write(e, n->dtype, e->slot[n->slot], at, root[0]);
    emit_when_end(e, no);
}

void emit_scatter_in_turns(emit *e, const plan_node *n, int copy)
{
    uint64_t all = n->varies | n->off->varies | n->arg[0]->varies |
                   emit_guards_vary(n->guard, n->nguard);
    updates u[MOST_BATCHES];
    int nu = 0, last = copy;
    emit_loop l;

    for (int c = copy + 1; c < e->ncopy; c++)
        if (emit_is_copy(e, c, all))
            last = c;
    if (copy != last)
        return; /* the last batch does all */
    for (int c = 0; c < e->ncopy; c++)
        if (emit_is_copy(e, c, all)) {
            assert(nu < MOST_BATCHES);
            u[nu++] = put_aside(e, n, c);
        }
    emit_loop_open(e, &l, emit_i64(e, 0), emit_i64(e, e->w), AT_ONCE);
    for (int i = 0; i < AT_ONCE; i++)
        for (int c = 0; c < nu; c++)
            apply(e, n, &u[c], LLVMBuildNSWAdd(e->b, l.at, emit_i64(e, i), ""));
    emit_loop_close(e, &l);
}
