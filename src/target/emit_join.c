/* Joining the strided lanes of a reduction: by halving, the largest distance
 * first, body(lane i, lane i + h).  On a GPU the lanes of a row lie in work
 * items, which hand them to each other through local memory or by shuffles. */
#include "emit.h"

void emit_to_area(emit *e, const plan_node *n, LLVMValueRef at,
                  const emit_value *x)
{
    for (int o = 0; o < n->nout; o++)
        emit_mem_write(e, n->arg[o]->dtype, emit_area(e, n->area + o, 0), at,
                       x[o]);
}

void emit_of_area(emit *e, const plan_node *n, LLVMValueRef at, emit_value *x)
{
    for (int o = 0; o < n->nout; o++)
        x[o] = emit_mem_read(e, n->arg[o]->dtype, emit_area(e, n->area + o, 0),
                             at, 1);
}

void emit_join_body(emit *e, const plan_node *n, emit_value *x,
                    const emit_value *y, LLVMValueRef valid)
{
    emit_value *arg = emit_values(e, 2 * n->nout);
    emit_value *root = emit_values(e, n->nout);

    for (int o = 0; o < n->nout; o++) {
        arg[o] = x[o];
        arg[n->nout + o] = y[o];
    }
    emit_body(e, n->body, arg, root);
    for (int o = 0; o < n->nout; o++)
        x[o] = valid ? emit_select_value(e, valid, root[o], x[o]) : root[o];
}

void emit_join_lanes(emit *e, const plan_node *n, emit_value **v, int lanes,
                     int64_t have)
{
    for (int h = lanes / 2; h >= 1; h /= 2)
        for (int i = 0; i < h && i + h < have; i++)
            emit_join_body(e, n, v[i], v[i + h], NULL);
}

/* v[0 .. vector) are lanes of this item: to and from the row's in its area. */
static void lanes_to_area(emit *e, const plan_node *n, emit_value **v)
{
    LLVMValueRef at = emit_product(e, e->lid, emit_si(e, e->k->vector));

    for (int j = 0; j < e->k->vector; j++)
        emit_to_area(e, n, emit_plus(e, at, j), v[j]);
}

static void lanes_of_area(emit *e, const plan_node *n, LLVMValueRef first,
                          emit_value **v)
{
    LLVMValueRef row = emit_product(
        e, e->row, emit_si(e, (int64_t)e->k->items * e->k->vector));
    LLVMValueRef at = emit_sum(e, row, first);

    for (int j = 0; j < e->k->vector; j++)
        emit_of_area(e, n, emit_plus(e, at, j), v[j]);
}

/* Halving in local memory. */
static void halve_in_area(emit *e, const plan_node *n, int lanes,
                          emit_value **v, int64_t have)
{
    int w = e->k->vector;
    emit_value **x = sd_arena_array(e->a, emit_value *, w);
    emit_value **y = sd_arena_array(e->a, emit_value *, w);
    LLVMValueRef own = emit_item_start(e), c;
    LLVMBasicBlockRef no;

    for (int j = 0; j < w; j++) {
        x[j] = emit_values(e, n->nout);
        y[j] = emit_values(e, n->nout);
    }
    lanes_to_area(e, n, v);
    emit_barrier(e);
    for (int h = lanes / 2; h >= w; h /= 2) {
        if (have <= h)
            continue;
        c = emit_below(e, own, emit_si(e, SD_MIN(have - h, (int64_t)h)));
        no = emit_when(e, c);
        lanes_of_area(e, n, own, x);
        lanes_of_area(e, n, emit_plus(e, own, h), y);
        for (int j = 0; j < w; j++)
            emit_join_body(e, n, x[j], y[j], NULL);
        lanes_to_area(e, n, x);
        emit_when_end(e, no);
        emit_barrier(e);
    }
    lanes_of_area(e, n, emit_si(e, 0), v);
}

/* The items of a row, or halves of them, hand each other values. */
static bool row_shuffles(const emit *e, int lanes)
{
    int n = e->abi->together;

    return n && e->k->group % n == 0 && e->k->items * e->k->vector == lanes &&
           (n % e->k->items == 0 ||
            (e->k->items == 2 * n && e->k->vector == 1));
}

/* v is lanes `own` and next of an item that is number `at` among those that run
 * together: the row's joined ones. */
static void halve_by_shuffles(emit *e, const plan_node *n, emit_value **v,
                              LLVMValueRef own, LLVMValueRef at, int64_t have)
{
    int w = e->k->vector, items = SD_MIN(e->k->items, e->abi->together);
    emit_value *y = emit_values(e, n->nout);
    LLVMValueRef from, on;

    for (int d = items / 2; d >= 1; d /= 2) {
        int h = d * w;

        if (have <= h)
            continue;
        from = emit_sum(e, at, LLVMConstInt(e->i32, (unsigned)d, 0));
        on = have >= 2 * h ? NULL : emit_below(e, own, emit_si(e, have - h));
        for (int j = 0; j < w; j++) {
            for (int o = 0; o < n->nout; o++)
                y[o] = emit_from_item(e, v[j][o], from);
            emit_join_body(e, n, v[j], y, on);
        }
    }
    from = emit_and(e, at, LLVMConstInt(e->i32, (unsigned)-items, 0));
    for (int j = 0; j < w; j++)
        for (int o = 0; o < n->nout; o++)
            v[j][o] = emit_from_item(e, v[j][o], from);
}

/* Does body(x, y) have the bits of body(y, x), but for which NaN it is? */
static bool has_no_sides(const plan_node *n)
{
    return n->nout == 1 && n->body->op >= 0 &&
           hlo_op_table[n->body->op].props & HLO_P_COMM;
}

/* Has a join of any order the same bits? */
static bool has_no_order(const plan_node *n)
{
    int op = n->body->op;

    return has_no_sides(n) && (op == HLO_MAXIMUM || op == HLO_MINIMUM ||
                               (sd_is_int(n->arg[0]->dtype) &&
                                hlo_op_table[op].props & HLO_P_ASSOC));
}

/* Items i and i ^ d have the same m lanes of two halves of a row.  Each goes on
 * with half of them, of which it gets the other's, while it has several.  Gives
 * how many it has then. */
static int exchange(emit *e, const plan_node *n, emit_value **v, int m,
                    LLVMValueRef at, int d)
{
    LLVMValueRef with = LLVMConstInt(e->i32, (unsigned)d, 0);
    LLVMValueRef from = emit_xor(e, at, with), upper;
    int keep = SD_MAX(m / 2, 1);

    upper = emit_unequal(e, emit_and(e, at, with), LLVMConstInt(e->i32, 0, 0));
    for (int j = 0; j < keep; j++) {
        emit_value x = v[j][0], y = x;

        if (m > 1) {
            x = emit_select_value(e, upper, v[keep + j][0], v[j][0]);
            y = emit_select_value(e, upper, v[j][0], v[keep + j][0]);
        }
        y = emit_from_item(e, y, from);
        v[j][0] = x;
        emit_join_body(e, n, v[j], &y, NULL);
    }
    return keep;
}

/* The same where it does not matter which operand is which and all lanes have
 * something: first lanes of different items, then those that are left of each
 * item's `vector`, most of which lie in different items now.  All items have
 * the result. */
static void halve_by_exchange(emit *e, const plan_node *n, emit_value **v,
                              LLVMValueRef at)
{
    int items = SD_MIN(e->k->items, e->abi->together), m = e->k->vector;
    int d = items / 2;

    if (has_no_order(n)) { /* an item hands on one value, not several */
        emit_join_lanes(e, n, v, m, m);
        for (; d >= 1; d /= 2)
            exchange(e, n, v, 1, at, d);
        return;
    }
    for (; d >= 1; d /= 2)
        m = exchange(e, n, v, m, at, d);
    for (d = items / 2; d >= 1 && d > items / e->k->vector / 2; d /= 2)
        for (int j = 0; j < m; j++)
            exchange(e, n, v + j, 1, at, d);
    emit_join_lanes(e, n, v, m, m);
}

/* Two items hand each other lanes in local memory, which leaves both halves of
 * a row with the same ones. */
static LLVMValueRef join_far(emit *e, const plan_node *n, emit_value **v,
                             LLVMValueRef own, int64_t have)
{
    int half = e->abi->together;
    emit_value *y = emit_values(e, n->nout), **to = &y;
    LLVMValueRef on;

    own = emit_and(e, own, emit_si(e, half - 1));
    lanes_to_area(e, n, v);
    emit_barrier(e);
    lanes_of_area(e, n, own, v);
    if (have <= half)
        return own;
    lanes_of_area(e, n, emit_plus(e, own, half), to);
    on = have >= 2 * half ? NULL : emit_below(e, own, emit_si(e, have - half));
    emit_join_body(e, n, v[0], y, on);
    return own;
}

/* The lane at `at` of the first `teams`, joined. */
static void lane_of_teams(emit *e, const plan_node *n, LLVMValueRef at,
                          emit_value *x, int teams)
{
    emit_value *y = emit_values(e, n->nout);
    int64_t apart = (int64_t)e->k->items * e->k->vector;

    emit_of_area(e, n, at, x);
    for (int t = 1; t < teams; t++) {
        emit_of_area(e, n, emit_plus(e, at, t * apart), y);
        emit_join_body(e, n, x, y, NULL);
    }
}

/* The row's lanes lie in local memory, where the last team has left them, or
 * those of each team.  All teams join them, so that all have the result. */
static LLVMValueRef join_teams(emit *e, const plan_node *n, emit_value **v,
                               LLVMValueRef own)
{
    int half = e->abi->together, teams = plan_any_order(n) ? e->k->teams : 1;
    emit_value *y = emit_values(e, n->nout);

    if (teams > 1) {
        lanes_to_area(e, n, v);
        emit_barrier(e);
    }
    if (e->k->items > half)
        own = emit_and(e, own, emit_si(e, half - 1));
    for (int j = 0; j < e->k->vector; j++)
        lane_of_teams(e, n, emit_plus(e, own, j), v[j], teams);
    if (e->k->items > half) {
        lane_of_teams(e, n, emit_plus(e, own, half), y, teams);
        emit_join_body(e, n, v[0], y, NULL);
    }
    return own;
}

/* The items are halved, and at last what is within one. */
void emit_join_items(emit *e, const plan_node *n, int lanes, emit_value **v,
                     int64_t have)
{
    LLVMValueRef own = emit_item_start(e), at;
    bool far = !row_shuffles(e, lanes), joined = false;

    if (far) {
        halve_in_area(e, n, lanes, v, have);
    } else {
        far = e->k->items > e->abi->together || e->k->teams;
        if (e->k->teams)
            own = join_teams(e, n, v, own);
        else if (far)
            own = join_far(e, n, v, own, have);
        at = emit_and(e, e->lid, emit_si(e, e->abi->together - 1));
        if (e->si != e->i32)
            at = emit_trunc(e, at, e->i32);
        if (has_no_sides(n) && have >= lanes) {
            halve_by_exchange(e, n, v, at);
            joined = true;
        } else {
            halve_by_shuffles(e, n, v, own, at, have);
        }
    }
    if (!joined)
        emit_join_lanes(e, n, v, e->k->vector, e->k->vector);
    if (far)
        emit_barrier(e); /* before the area is written again */
}

/* Values of one position of the items' vectors lie side by side, so that items
 * which are neighbours find theirs in banks which are. */
void emit_join_rows(emit *e, const plan_node *n, emit_value *x, int at,
                    int64_t have)
{
    int lanes = e->k->group / e->k->items;
    int64_t first = (int64_t)at * e->k->group;
    emit_value **v = sd_arena_array(e->a, emit_value *, lanes);

    emit_to_area(e, n, emit_plus(e, e->lid, first), x);
    emit_barrier(e);
    for (int i = 0; i < lanes; i++) {
        v[i] = emit_values(e, n->nout);
        if (i < have)
            emit_of_area(
                e, n, emit_plus(e, e->item, first + (int64_t)i * e->k->items),
                v[i]);
    }
    if (at == e->k->vector - 1)
        emit_barrier(e); /* before the area is written again */
    emit_join_lanes(e, n, v, lanes, have);
    memcpy(x, v[0], (size_t)n->nout * sizeof *x);
}

/* ---- vectors ---- */

/* Vectors of less than 128 bits cost code generation as much again, since it
 * widens them node by node: small sums and maxima stay in such a register. */
static int narrowest(emit *e, const plan_node *n, int width)
{
    int w = 1;

    if (n->body->op < 0 || sd_is_complex(n->arg[0]->dtype))
        return 1;
    for (int o = 0; o < n->nout; o++) {
        LLVMTypeRef t = emit_type(e, n->arg[o]->dtype);

        if (t == e->f32 || t == e->i32)
            w = SD_MAX(w, 4);
        else if (t == e->f64 || t == e->i64)
            w = SD_MAX(w, 2);
    }
    return SD_MIN(w, width);
}

/* Lane i of the result is lane h + i mod h. */
static emit_value upper_half(emit *e, emit_value v, int h, int w)
{
    int lane[EMIT_MAX_LANES];

    if (h == w)
        return emit_extract_value(e, v, h, h);
    for (int i = 0; i < w; i++)
        lane[i] = h + i % h;
    return (emit_value){emit_shuffle(e, v.re, NULL, lane, w), NULL};
}

/* Halves of one vector. */
static void halve_within(emit *e, const plan_node *n, int width, emit_value *v,
                         int64_t have)
{
    int least = narrowest(e, n, width);

    for (int h = width / 2; h >= 1; h /= 2) {
        LLVMValueRef on[EMIT_MAX_LANES];
        emit_value *y = emit_values(e, n->nout);
        int w = SD_MAX(h, least);

        for (int o = 0; o < n->nout; o++) {
            y[o] = upper_half(e, v[o], h, w);
            v[o] = emit_extract_value(e, v[o], 0, w);
        }
        if (have <= h)
            continue;
        for (int j = 0; j < w; j++)
            on[j] = emit_bool(e, j % h + h < have);
        emit_join_body(e, n, v, y,
                       have >= 2 * h ? NULL
                       : w == 1      ? on[0]
                                     : LLVMConstVector(on, (unsigned)w));
    }
    for (int o = 0; o < n->nout; o++)
        v[o] = emit_extract_value(e, v[o], 0, 1);
}

void emit_join_vectors(emit *e, const plan_node *n, int lanes, int width,
                       emit_value **v, int64_t have)
{
    for (int h = lanes / width / 2; h >= 1; h /= 2)
        for (int i = 0; i < h; i++) {
            int64_t more = have - (int64_t)(i + h) * width;
            LLVMValueRef on[EMIT_MAX_LANES];

            if (more <= 0)
                continue;
            for (int j = 0; j < width; j++)
                on[j] = emit_bool(e, j < more);
            emit_join_body(e, n, v[i], v[i + h],
                           more < width ? LLVMConstVector(on, (unsigned)width)
                                        : NULL);
        }
    halve_within(e, n, width, v[0], have);
}
