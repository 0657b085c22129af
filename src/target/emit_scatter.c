/* Updates of single elements on the host: LANE is their number.  Places and
 * values are computed as vectors, put aside, and applied one by one in order;
 * those of batches in turns, so that an update need not wait for the one
 * before it at the same place; of a range of places those that go there. */
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

/* Where a vector of updates goes; *on: which of them go there, NULL: all. */
static LLVMValueRef places_of(emit *e, const plan_node *n, int copy,
                              LLVMValueRef *on)
{
    uint64_t axes = n->varies | n->over | n->off->varies;

    *on = emit_and(e, emit_guards(e, n->guard, n->nguard, copy, true),
                   emit_mask(e, axes, copy));
    return emit_splat(e, emit_expr(e, n->off, copy, true), e->w);
}

static emit_value value_of(emit *e, const plan_node *n, int copy)
{
    const plan_node *arg = n->arg[0];

    return emit_node_value(e, arg, emit_canon(e, copy, arg->varies));
}

/* Room for `room` of them, whose values are like v. */
static updates room_of(emit *e, const plan_node *n, LLVMValueRef at,
                       emit_value v, int room)
{
    updates u = {.same = v, .type = LLVMGetElementType(LLVMTypeOf(at))};
    int parts = sd_is_complex(n->dtype) ? 2 : 1;

    u.place = room_for(e, u.type, room);
    if (emit_width(v.re) > 1)
        u.value = room_for(e, emit_mem_type(e, sd_dtype_part(n->dtype)),
                           parts * room);
    return u;
}

static void put_at(emit *e, const plan_node *n, const updates *u,
                   LLVMValueRef i, LLVMValueRef at, emit_value v)
{
    LLVMValueRef p = LLVMBuildGEP2(e->b, u->type, u->place, &i, 1, "");

    LLVMSetAlignment(LLVMBuildStore(e->b, at, p), 4);
    if (u->value)
        emit_mem_write(e, n->dtype, u->value, i, v);
}

static updates put_aside(emit *e, const plan_node *n, int copy)
{
    emit_value v = value_of(e, n, copy);
    LLVMValueRef on, at = places_of(e, n, copy, &on);
    updates u = room_of(e, n, at, v, e->w);

    if (on)
        at = emit_select(e, on, at, emit_int_like(at, -1));
    put_at(e, n, &u, emit_i64(e, 0), at, v);
    return u;
}

static LLVMValueRef place_at(emit *e, const updates *u, LLVMValueRef i)
{
    LLVMValueRef p = LLVMBuildGEP2(e->b, u->type, u->place, &i, 1, "");

    return LLVMBuildLoad2(e->b, u->type, p, "");
}

static void apply_at(emit *e, const plan_node *n, const updates *u,
                     LLVMValueRef i, LLVMValueRef at)
{
    emit_value arg[2], root[1];

    at = LLVMBuildSExtOrBitCast(e->b, at, e->i64, "");
    arg[1] = u->value ? emit_mem_read(e, n->dtype, u->value, i, 1) : u->same;
    root[0] = arg[1];
    if (n->body) {
        arg[0] = emit_mem_read(e, n->dtype, e->slot[n->slot], at, 1);
        emit_body(e, n->body, arg, root);
    }
    emit_mem_write(e, n->dtype, e->slot[n->slot], at, root[0]);
}

static void apply(emit *e, const plan_node *n, const updates *u, LLVMValueRef i)
{
    LLVMValueRef at = place_at(e, u, i);
    LLVMBasicBlockRef no =
        emit_when(e, emit_not_below(e, at, emit_int_like(at, 0)));

    apply_at(e, n, u, i, at);
    emit_when_end(e, no);
}

/* ---- what places hold at first ---- */

enum { FILLED = 16 }; /* places at once */

static void fill_in_steps(emit *e, const plan_node *n, LLVMValueRef from,
                          LLVMValueRef to, int step)
{
    emit_value v = emit_node_value(e, n->arg[1], 0);
    emit_loop l;

    emit_loop_open(e, &l, from, to, step);
    emit_mem_write(e, n->dtype, e->slot[n->slot], l.at,
                   emit_splat_value(e, v, step));
    emit_loop_close(e, &l);
}

void emit_fill(emit *e, const plan_node *n, LLVMValueRef from, LLVMValueRef to)
{
    LLVMValueRef count = emit_minus(e, to, from), whole;

    whole = emit_and(e, count, emit_int_like(count, -FILLED));
    whole = emit_add(e, from, whole);
    fill_in_steps(e, n, from, whole, FILLED);
    fill_in_steps(e, n, whole, to, 1);
}

/* ---- updates of a range of places ---- */

enum { ROOM = 512, TABLE_LANES = 8 };

/* Vectors of updates are put aside with a list of those that go to the range.
 * It is made by compressing their numbers, since a branch would be guessed
 * wrong.  When there is no more room those of the list are applied, and what is
 * left at the end. */
struct emit_picked {
    const plan_node *of;  /* NULL: nothing was put aside yet */
    updates all;
    LLVMValueRef list;        /* in memory: numbers, i32 */
    LLVMValueRef seen, found; /* in memory: how many of both there are, i64 */
};

void emit_pick_begin(emit *e)
{
    emit_picked *p;

    e->picked = NULL;
    if (!e->k->ranges || e->k->axis[e->lane].outer)
        return;
    p = e->picked = sd_arena_new(e->a, emit_picked);
    p->seen = emit_variable(e, emit_i64(e, 0));
    p->found = emit_variable(e, emit_i64(e, 0));
}

static LLVMValueRef get_i64(emit *e, LLVMValueRef p)
{
    return LLVMBuildLoad2(e->b, e->i64, p, "");
}

static void apply_picked(emit *e)
{
    const emit_picked *p = e->picked;
    LLVMValueRef i;
    emit_loop l;

    emit_loop_open(e, &l, emit_i64(e, 0), get_i64(e, p->found), 1);
    i = LLVMBuildGEP2(e->b, e->i32, p->list, &l.at, 1, "");
    i = LLVMBuildLoad2(e->b, e->i32, i, "");
    i = emit_zext(e, i, e->i64);
    apply_at(e, p->of, &p->all, i, place_at(e, &p->all, i));
    emit_loop_close(e, &l);
    emit_put(e, emit_i64(e, 0), p->seen);
    emit_put(e, emit_i64(e, 0), p->found);
}

void emit_pick_end(emit *e)
{
    if (e->picked && e->picked->of)
        apply_picked(e);
    e->picked = NULL;
}

/* Numbers of the lanes that are on, for each of 256 sets of them: a byte each,
 * packed. */
static LLVMValueRef packed_table(emit *e)
{
    static const char name[] = "sundog_packed_lanes";
    LLVMValueRef row[1 << TABLE_LANES], g = LLVMGetNamedGlobal(e->m, name);

    if (g)
        return g;
    for (unsigned set = 0; set < 1 << TABLE_LANES; set++) {
        uint64_t lanes = 0;

        for (int i = TABLE_LANES - 1; i >= 0; i--)
            if (set >> i & 1)
                lanes = lanes << 8 | (unsigned)i;
        row[set] = emit_i64(e, (int64_t)lanes);
    }
    g = LLVMAddGlobal(e->m, LLVMArrayType2(e->i64, 1 << TABLE_LANES), name);
    LLVMSetInitializer(g, LLVMConstArray2(e->i64, row, 1 << TABLE_LANES));
    LLVMSetGlobalConstant(g, true);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    return g;
}

/* A vector that begins with the numbers of the lanes that are on.  Processors
 * have an instruction for whole vectors of 16; LLVM would make a store a lane
 * of narrower ones. */
static LLVMValueRef packed_lanes(emit *e, LLVMValueRef set, LLVMValueRef on)
{
    LLVMTypeRef type = emit_widen(e->i32, e->w);
    LLVMValueRef x[3] = {emit_iota(e, e->i32, e->w), on, LLVMGetPoison(type)};

    if (e->w > TABLE_LANES)
        return emit_intrinsic(e, "llvm.experimental.vector.compress", type, x,
                              3);
    set = emit_zext(e, set, e->i64);
    x[0] = LLVMBuildGEP2(e->b, e->i64, packed_table(e), &set, 1, "");
    x[0] = LLVMBuildLoad2(e->b, emit_widen(e->i8, e->w), x[0], "");
    return emit_zext(e, x[0], type);
}

/* The numbers of those that are on, to the list; how many they are. */
static LLVMValueRef list_those(emit *e, LLVMValueRef seen, LLVMValueRef found,
                               LLVMValueRef on)
{
    const emit_picked *p = e->picked;
    LLVMTypeRef bits = LLVMIntTypeInContext(e->cx, (unsigned)e->w);
    LLVMValueRef at = LLVMBuildGEP2(e->b, e->i32, p->list, &found, 1, "");
    LLVMValueRef set = emit_as(e, on, bits), n;

    n = emit_splat(e, emit_trunc(e, seen, e->i32), e->w);
    n = emit_sum(e, n, packed_lanes(e, set, on));
    LLVMSetAlignment(LLVMBuildStore(e->b, n, at), 4);
    n = emit_intrinsic(e, "llvm.ctpop", bits, &set, 1);
    return emit_zext(e, n, e->i64);
}

static void pick(emit *e, const plan_node *n, int copy)
{
    emit_picked *p = e->picked;
    emit_value v = value_of(e, n, copy);
    LLVMValueRef on, at = places_of(e, n, copy, &on);
    LLVMValueRef seen = get_i64(e, p->seen), found = get_i64(e, p->found);
    LLVMBasicBlockRef no;

    if (e->k->slot[n->slot].count <= INT32_MAX)
        at = LLVMBuildTruncOrBitCast(e->b, at, emit_widen(e->i32, e->w), "");
    if (!p->of) {
        p->of = n;
        p->all = room_of(e, n, at, v, ROOM);
        p->list = room_for(e, e->i32, ROOM + e->w);
    }
    on = emit_splat(e, on ? on : emit_bool(e, true), e->w);
    put_at(e, n, &p->all, seen, at, v);
    found = emit_add(e, found, list_those(e, seen, found, on));
    seen = emit_plus(e, seen, e->w);
    emit_put(e, found, p->found);
    emit_put(e, seen, p->seen);
    no = emit_when(e, emit_equal(e, seen, emit_i64(e, ROOM)));
    apply_picked(e);
    emit_when_end(e, no);
}

void emit_scatter_in_turns(emit *e, const plan_node *n, int copy)
{
    uint64_t all = n->varies | n->off->varies | n->arg[0]->varies |
                   emit_guards_vary(n->guard, n->nguard);
    updates u[MOST_BATCHES];
    int nu = 0, last = copy;
    emit_loop l;

    if (e->picked) {
        pick(e, n, copy);
        return;
    }
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
            apply(e, n, &u[c], emit_add(e, l.at, emit_i64(e, i)));
    emit_loop_close(e, &l);
}
