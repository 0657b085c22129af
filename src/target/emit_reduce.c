/* Reductions: accumulators in stack slots (which SROA turns into registers),
 * one a strided lane and copy, and what of them is joined (emit_join.c) when.
 *
 * A lane starts with its first element.  Where the body has an exact identity
 * (x op identity is x, bit by bit) the accumulator starts with that instead;
 * otherwise the first position of the loop selects the element itself. */
#include "emit.h"

struct emit_reduction {
    const plan_node *n;
    plan_lanes how;
    int lanes, width;   /* of an accumulator */
    bool identity;
    uint64_t keep;      /* axes that have accumulators of their own */
    int nacc;           /* a result: copy numbers, or for CHUNK on a GPU 8 */
    LLVMTypeRef *type;  /* of a part */
    emit_value *acc; /* [out * nacc + copy]: where it is; 0: there is none */
    emit_value *lane; /* MAJOR: arrays of `lanes`; of a CONTRACT in chains:
                         their sum so far */
    LLVMValueRef turn; /* ROTATE: which vector of the array is meant */
};

const plan_node *emit_reduction_node(const emit_reduction *r)
{
    return r->n;
}

/* ---- accumulators ---- */

static LLVMTypeRef acc_type(const emit_reduction *r, int o)
{
    return emit_widen(r->type[o], r->width);
}

static emit_value load_acc(emit *e, emit_reduction *r, int o, int c)
{
    return emit_value_get(e, acc_type(r, o), r->acc[o * r->nacc + c], r->turn);
}

static void store_acc(emit *e, emit_reduction *r, int o, int c, emit_value v)
{
    emit_value_set(e, r->acc[o * r->nacc + c], r->turn,
                   emit_splat_value(e, v, r->width));
}

/* How many vectors the strided lanes fill. */
static int vectors(const emit_reduction *r)
{
    return r->how == PLAN_LANES_ROTATE ? r->lanes / r->width : 1;
}

static void start_acc(emit *e, emit_reduction *r, int o, int c)
{
    emit_value v = {LLVMConstNull(r->type[o]), NULL};

    if (r->identity) /* a CONTRACT starts at 0 */
        emit_identity(e, r->n, &v);
    else if (sd_is_complex(r->n->arg[o]->dtype))
        v.im = v.re;
    for (int q = 0; q < vectors(r); q++) {
        r->turn = r->how == PLAN_LANES_ROTATE ? emit_i64(e, q) : NULL;
        store_acc(e, r, o, c, v);
    }
}

static void make_acc(emit *e, emit_reduction *r, int o, int c)
{
    bool cplx = sd_is_complex(r->n->arg[o]->dtype);
    LLVMTypeRef t = acc_type(r, o);
    int i = o * r->nacc + c;

    if (r->how == PLAN_LANES_ROTATE)
        t = LLVMArrayType2(t, (unsigned)vectors(r));
    r->acc[i] = emit_value_alloca(e, t, cplx);
    if (r->how == PLAN_LANES_MAJOR)
        r->lane[i] =
            emit_value_alloca(e, LLVMArrayType2(t, (unsigned)r->lanes), cplx);
    if (r->n->order.chunk) {
        emit_value none = {LLVMConstNull(t), LLVMConstNull(t)};

        r->lane[i] = emit_value_alloca(e, t, cplx);
        emit_value_set(e, r->lane[i], NULL, none);
    }
    start_acc(e, r, o, c);
}

static int width_of(emit *e, const plan_node *n, plan_lanes how, int lanes)
{
    if (how == PLAN_LANES_VECTOR || how == PLAN_LANES_ROTATE)
        return e->w;
    if (how == PLAN_LANES_CHUNK)
        return e->gpu ? 1 : SD_MIN(lanes, e->w);
    return e->lane >= 0 && (n->varies >> e->lane & 1) ? e->w : 1;
}

/* Does the copy have accumulators of its own?  Copies of the loop's own axis
 * are not open yet: all radix. */
static bool has_acc(const emit *e, const emit_reduction *r, int copy)
{
    bool has = true;

    for (int a = 0; a < e->k->naxis && has; a++) {
        const emit_axis *x = &e->axis[a];
        int digit = x->stride ? copy / x->stride % x->radix : 0;

        if (digit)
            has = (r->keep >> a & 1) && (digit < x->n || (r->n->over >> a & 1));
        /* axes that share a digit: any that keeps it will do */
        for (int b = 0; digit && !has && b < e->k->naxis; b++)
            has = e->axis[b].stride == x->stride && (r->keep >> b & 1) &&
                  (r->n->over >> b & 1);
    }
    return has;
}

emit_reduction *emit_reduce_begin(emit *e, const plan_node *n, plan_lanes how)
{
    emit_reduction *r = sd_arena_new(e->a, emit_reduction);
    emit_value unused;
    int total;

    r->n = n;
    r->how = how == PLAN_LANES_ACROSS || how == PLAN_LANES_SHIFTED
                 ? PLAN_LANES_ONE
                 : how;
    r->lanes = SD_MAX(n->order.lanes, 1);
    r->width = width_of(e, n, how, r->lanes);
    r->identity = emit_identity(e, n, &unused);
    r->keep = n->varies;
    if ((how == PLAN_LANES_COPIES && (!e->gpu || r->lanes > 1)) ||
        how == PLAN_LANES_VECTOR)
        r->keep |= n->over;
    r->nacc = e->ncopy * (how == PLAN_LANES_CHUNK && e->gpu ? 8 : 1);
    total = n->nout * r->nacc;
    r->type = sd_arena_array(e->a, LLVMTypeRef, n->nout);
    r->acc = emit_values(e, total);
    r->lane = emit_values(e, total);
    for (int o = 0; o < n->nout; o++) {
        r->type[o] = emit_type(e, n->arg[o]->dtype);
        for (int c = 0; c < r->nacc; c++)
            if (has_acc(e, r, c % e->ncopy))
                make_acc(e, r, o, c);
    }
    return r;
}

static bool is_true(LLVMValueRef v)
{
    return v && LLVMIsAConstantInt(v) && LLVMConstIntGetZExtValue(v);
}

/* acc = body(acc, x) where valid holds; x itself where first does. */
static void accumulate(emit *e, emit_reduction *r, int c, const emit_value *x,
                       LLVMValueRef valid, LLVMValueRef first)
{
    int n = r->n->nout;
    emit_value *arg = emit_values(e, 2 * n), *root = emit_values(e, n);
    bool starts = is_true(first);

    for (int o = 0; o < n; o++) {
        arg[o] = load_acc(e, r, o, c);
        arg[n + o] = root[o] = x[o];
    }
    if (!starts)
        emit_body(e, r->n->body, arg, root);
    for (int o = 0; o < n; o++) {
        if (first && !starts)
            root[o] = emit_select_value(e, first, x[o], root[o]);
        if (valid)
            root[o] = emit_select_value(e, valid, root[o], arg[o]);
        store_acc(e, r, o, c, root[o]);
    }
}

/* No loop: each accumulator gets its first element, known as such. */
static bool starts_here(const emit *e, const emit_reduction *r)
{
    bool yes =
        !e->gpu && (r->how == PLAN_LANES_VECTOR || r->how == PLAN_LANES_COPIES);

    for (int a = 0; yes && a < e->k->naxis; a++)
        yes = !(r->n->over >> a & 1) || is_true(e->axis[a].first);
    return yes;
}

/* ---- products ---- */

/* The sum of the chains before this one. */
static emit_value chains(emit *e, emit_reduction *r, int c)
{
    return emit_value_get(e, acc_type(r, 0), r->lane[c], NULL);
}

void emit_reduce_chain(emit *e, emit_reduction *r)
{
    sd_dtype t[2] = {r->n->dtype, r->n->dtype};

    for (int c = 0; c < r->nacc; c++) {
        emit_value v[2];

        if (!r->acc[c].re)
            continue;
        v[0] = chains(e, r, c);
        v[1] = load_acc(e, r, 0, c);
        emit_value_set(e, r->lane[c], NULL,
                       emit_elt(e, HLO_ADD, NULL, t[0], 2, v, t));
        start_acc(e, r, 0, c);
    }
}

static void contract_step(emit *e, emit_reduction *r, int copy, int acc)
{
    const plan_node *n = r->n;
    emit_value x[2], was = load_acc(e, r, 0, acc), sum;
    LLVMValueRef valid = e->gpu ? NULL : emit_mask(e, n->over, copy);

    for (int i = 0; i < 2; i++)
        x[i] = emit_node_value(e, n->arg[i],
                               emit_canon(e, copy, n->arg[i]->varies));
    sum = emit_multiply_add(e, n, x[0], x[1], was);
    if (valid)
        sum = emit_select_value(e, valid, sum, was);
    store_acc(e, r, 0, acc, sum);
}

/* Copies of an axis that it runs over have so many accumulators: an item's
 * vectors take turns. */
static int own(const emit *e, const emit_reduction *r, int axis)
{
    return e->gpu && r->how == PLAN_LANES_VECTOR   ? e->axis[axis].near
           : e->gpu && r->how == PLAN_LANES_COPIES ? r->lanes
                                                   : PLAN_AXIS_COPIES;
}

/* The accumulator that a copy adds to. */
static int acc_of(const emit *e, const emit_reduction *r, int copy)
{
    int acc = emit_canon(e, copy, r->keep);

    plan_for_each_axis(a, r->n->over & r->keep) {
        int digit = emit_digit(e, copy, a);

        acc -= digit / own(e, r, a) * own(e, r, a) * e->axis[a].stride;
    }
    return acc;
}

static LLVMValueRef first_of(emit *e, const emit_reduction *r, int copy)
{
    LLVMValueRef v = NULL;

    if (r->identity)
        return starts_here(e, r) ? emit_bool(e, true) : NULL;
    plan_for_each_axis(a, r->n->over) {
        /* later copies of a single accumulator are never first */
        if (emit_digit(e, copy, a) >= (r->keep >> a & 1 ? own(e, r, a) : 1))
            return NULL;
        if (r->how == PLAN_LANES_ROTATE)
            v = emit_below(e, e->axis[a].at, emit_si(e, r->lanes));
        else if (e->axis[a].first)
            v = emit_and(e, v, e->axis[a].first);
    }
    return v;
}

/* ---- steps ---- */

/* Fewer strided lanes than the vector has elements: a piece at a time. */
static void chunk_step(emit *e, emit_reduction *r, int copy, int acc,
                       const emit_value *x)
{
    LLVMValueRef first = first_of(e, r, copy);
    LLVMValueRef valid = emit_mask(e, r->n->over, copy);

    for (int q = 0; q < e->w / r->width; q++) {
        emit_value *part = emit_values(e, r->n->nout);

        for (int o = 0; o < r->n->nout; o++)
            part[o] = emit_extract_value(e, emit_splat_value(e, x[o], e->w),
                                         q * r->width, r->width);
        accumulate(e, r, acc, part,
                   valid ? emit_extract(e, valid, q * r->width, r->width)
                         : NULL,
                   q ? NULL : first);
    }
}

/* A group's elements go to local memory and every item takes them all, in
 * order: the accumulators are the same in all items. */
static void chunk_items(emit *e, emit_reduction *r, int copy, int acc,
                        const emit_value *x)
{
    int lane = e->lane;
    LLVMValueRef base = emit_minus(e, e->axis[lane].at, e->lid);
    LLVMValueRef n = emit_minus(e, emit_si(e, e->k->axis[lane].extent), base);
    LLVMValueRef group = emit_si(e, e->k->group), at, start;
    LLVMValueRef first = first_of(e, r, copy), valid, f;
    emit_value *part = emit_values(e, r->n->nout);
    emit_loop l;

    n = emit_smaller(e, n, group);
    emit_to_area(e, r->n, e->lid, x);
    emit_barrier(e);
    emit_loop_open(e, &l, emit_si(e, 0), n, r->lanes);
    start = emit_equal(e, l.at, emit_si(e, 0));
    for (int j = 0; j < r->lanes; j++) {
        at = emit_plus(e, l.at, j);
        valid = j ? emit_below(e, at, n) : NULL;
        f = first ? emit_and(e, first, start) : NULL;
        emit_of_area(e, r->n, at, part);
        accumulate(e, r, j * e->ncopy + acc, part, valid, f);
    }
    emit_loop_close(e, &l);
    emit_barrier(e);
}

void emit_reduce_step(emit *e, emit_reduction *r, int copy)
{
    emit_value *x = emit_values(e, r->n->nout);
    int acc = acc_of(e, r, copy);

    if (r->n->kind == PN_CONTRACT) {
        contract_step(e, r, copy, acc);
        return;
    }
    for (int o = 0; o < r->n->nout; o++) {
        const plan_node *a = r->n->arg[o];

        x[o] = emit_node_value(e, a, emit_canon(e, copy, a->varies));
    }
    if (r->how == PLAN_LANES_ROTATE) {
        r->turn = emit_udiv(e, e->axis[e->lane].at, emit_si(e, e->w));
        r->turn = emit_and(e, r->turn, emit_si(e, vectors(r) - 1));
    }
    if (r->how == PLAN_LANES_CHUNK && e->gpu)
        chunk_items(e, r, copy, acc, x);
    else if (r->how == PLAN_LANES_CHUNK)
        chunk_step(e, r, copy, acc, x);
    else
        accumulate(e, r, acc, x, e->gpu ? NULL : emit_mask(e, r->n->over, copy),
                   first_of(e, r, copy));
}

void emit_reduce_restart(emit *e, emit_reduction *r)
{
    for (int i = 0; r->identity && i < r->n->nout * r->nacc; i++)
        if (r->acc[i].re)
            start_acc(e, r, i / r->nacc, i % r->nacc);
}

/* An accumulator's place: its copy's row of the tile, at the open position. */
static LLVMValueRef row_place(emit *e, const emit_reduction *r, int row)
{
    int area = r->n->area;
    LLVMValueRef at = emit_minus(e, e->axis[e->lane].at, e->row_from);
    LLVMValueRef p = emit_area(e, area, (size_t)row * e->k->area[area].row);

    return emit_behind(e, r->type[0], p, at);
}

static void move_rows(emit *e, emit_reduction *r, bool put)
{
    int row = 0;

    for (int c = 0; c < r->nacc; c++) {
        LLVMValueRef p, from, to;

        if (!r->acc[c].re)
            continue;
        p = row_place(e, r, row++);
        from = put ? r->acc[c].re : p;
        to = put ? p : r->acc[c].re;
        emit_put(e, LLVMBuildLoad2(e->b, acc_type(r, 0), from, ""), to);
    }
}

void emit_reduce_put(emit *e, emit_reduction *r)
{
    move_rows(e, r, true);
}

void emit_reduce_get(emit *e, emit_reduction *r)
{
    move_rows(e, r, false);
}

void emit_reduce_lane(emit *e, emit_reduction *r, LLVMValueRef lane)
{
    for (int i = 0; i < r->n->nout * r->nacc; i++)
        if (r->acc[i].re)
            emit_value_set(e, r->lane[i], lane,
                           load_acc(e, r, i / r->nacc, i % r->nacc));
}

/* Lanes of an item's vector, from or to the row's in local memory. */
void emit_reduce_hand_on(emit *e, emit_reduction *r, bool put)
{
    LLVMValueRef at = emit_item_start(e);
    emit_value x;

    for (int j = 0; j < e->k->vector; j++) {
        int c = j * SD_MAX(e->axis[e->lane].stride, 1);

        if (put) {
            x = load_acc(e, r, 0, c);
            emit_to_area(e, r->n, emit_plus(e, at, j), &x);
        } else {
            emit_of_area(e, r->n, emit_plus(e, at, j), &x);
            store_acc(e, r, 0, c, x);
        }
    }
}

/* ---- joining ---- */

static void load_lane(emit *e, emit_reduction *r, int c, int lane,
                      emit_value *v)
{
    for (int o = 0; o < r->n->nout; o++)
        v[o] = emit_value_get(e, acc_type(r, o), r->lane[o * r->nacc + c],
                              emit_i64(e, lane));
}

/* The stride between copy numbers of the lanes that are copies. */
static int lane_stride(const emit *e, const emit_reduction *r)
{
    if (r->how == PLAN_LANES_CHUNK)
        return e->ncopy; /* on a GPU */
    plan_for_each_axis(a, r->n->over)
        if (e->axis[a].stride)
            return e->axis[a].stride;
    return 0;
}

/* How many parts of a result the accumulators of a copy are: lanes, or vectors
 * of them. */
static int parts_of(const emit *e, const emit_reduction *r)
{
    switch (r->how) {
    case PLAN_LANES_ONE:
    case PLAN_LANES_ITEMS:
        return 1;
    case PLAN_LANES_ROTATE:
        return vectors(r);
    case PLAN_LANES_VECTOR:
        return e->gpu ? e->k->vector : r->lanes / r->width;
    case PLAN_LANES_CHUNK:
        return e->gpu ? r->lanes : 1;
    default:
        return r->lanes;
    }
}

/* have: of how many elements; lanes that no element came to are not read. */
static void load_part(emit *e, emit_reduction *r, int c, int part, int64_t have,
                      emit_value *v)
{
    if (r->how == PLAN_LANES_MAJOR) {
        if (part < have)
            load_lane(e, r, c, part, v);
        return;
    }
    if (r->how == PLAN_LANES_ROTATE)
        r->turn = emit_i64(e, part);
    else
        c += part * lane_stride(e, r);
    for (int o = 0; o < r->n->nout; o++)
        v[o] = load_acc(e, r, o, c);
}

static void join(emit *e, emit_reduction *r, int c, emit_value *out)
{
    const plan_node *n = r->n;
    int64_t have = plan_extent(e->k, n->over);
    int parts = parts_of(e, r);
    emit_value **v = sd_arena_array(e->a, emit_value *, parts);

    for (int i = 0; i < parts; i++) {
        v[i] = emit_values(e, n->nout);
        load_part(e, r, c, i, have, v[i]);
    }
    if (r->how == PLAN_LANES_ITEMS)
        emit_join_rows(e, n, v[0], emit_digit(e, c, e->lane), have);
    else if (r->how == PLAN_LANES_VECTOR && e->gpu)
        emit_join_items(e, n, r->lanes, v, SD_MIN(have, (int64_t)r->lanes));
    else if (r->how == PLAN_LANES_VECTOR || r->how == PLAN_LANES_ROTATE ||
             (r->how == PLAN_LANES_CHUNK && !e->gpu))
        emit_join_vectors(e, n, r->lanes, r->width, v, have);
    else if (r->how != PLAN_LANES_ONE)
        emit_join_lanes(e, n, v, r->lanes, have);
    memcpy(out, v[0], (size_t)n->nout * sizeof *out);
}

/* Is the initial value of a product of complex numbers 1?  That leaves numbers
 * as they are, but makes (inf, inf) two NaNs: prod([inf + 1j] * 2) is that. */
static bool starts_with_one(const plan_node *n)
{
    const plan_node *init = n->arg[n->nout];
    sd_dtype part = sd_dtype_part(init->dtype);

    return n->nout == 1 && n->body->op == HLO_MULTIPLY &&
           sd_is_complex(init->dtype) && init->kind == PN_CONST &&
           sd_scalar_to_f64(part, init->value) == 1 &&
           sd_scalar_to_f64(part, init->value + sd_dtype_bytes(part)) == 0;
}

/* The initial value is joined last to x, if anything is summed (else NULL);
 * result o goes to out[o * ncopy]. */
static void join_initial(emit *e, const plan_node *n, int c, emit_value *x,
                         emit_value *out)
{
    emit_value *init = emit_values(e, n->nout), id = {NULL, NULL};

    for (int o = 0; o < n->nout; o++) {
        const plan_node *a = n->arg[n->nout + o];

        init[o] = emit_node_value(e, a, emit_canon(e, c, a->varies));
    }
    if (!emit_identity(e, n, &id))
        id = (emit_value){NULL, NULL};
    if (x &&
        ((id.re == init[0].re && id.im == init[0].im) || starts_with_one(n)))
        init[0] = x[0];
    else if (x)
        emit_join_body(e, n, init, x, NULL);
    for (int o = 0; o < n->nout; o++)
        out[o * e->ncopy] = init[o];
}

static void join_copy(emit *e, emit_reduction *r, int c, emit_value *out)
{
    const plan_node *n = r->n;
    emit_value *x = emit_values(e, n->nout);
    bool any = plan_extent(e->k, n->over) > 0;

    if (n->kind == PN_CONTRACT) {
        out[0] = n->order.chunk ? chains(e, r, c) : load_acc(e, r, 0, c);
        return;
    }
    if (any)
        join(e, r, c, x);
    join_initial(e, n, c, any ? x : NULL, out);
}

static void remember(emit *e, const plan_node *n, int copy)
{
    emit_remember(e, &e->value[n->id * e->ncopy + copy],
                  e->several[n->id][copy], e->outer_depth);
}

static void make_results(emit *e, const plan_node *n)
{
    e->several[n->id] = sd_arena_array(e->a, emit_value, n->nout * e->ncopy);
}

void emit_reduce_give(emit *e, const plan_node *n, int copy, emit_value x)
{
    if (!copy)
        make_results(e, n);
    join_initial(e, n, copy, &x, e->several[n->id] + copy);
    remember(e, n, copy);
}

void emit_reduce_end(emit *e, emit_reduction *r)
{
    const plan_node *n = r->n;

    make_results(e, n);
    for (int c = 0; c < e->ncopy; c++)
        if (emit_is_copy(e, c, n->varies)) {
            join_copy(e, r, c, e->several[n->id] + c);
            remember(e, n, c);
        }
}
