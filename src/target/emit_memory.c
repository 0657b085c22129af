/* Loads and stores.  A vector access is uniform, contiguous, reversed or a
 * gather, as the stride of its offset on LANE says.
 *
 * Where a guard fails nothing outside the slot may be touched.  Scalars and
 * gathers read element 0 instead and throw it away, which costs a select and
 * no branch; contiguous vectors use masks. */
#include "emit.h"

/* ---- nodes ---- */

static LLVMValueRef any_lane(emit *e, LLVMValueRef mask)
{
    if (emit_width(mask) == 1)
        return mask;
    return emit_intrinsic(e, "llvm.vector.reduce.or", LLVMTypeOf(mask), &mask,
                          1);
}

/* Where c does not hold, to element number `start` of the slot. */
static void go_where(emit *e, const plan_node *n, emit_span *a, LLVMValueRef c,
                     int64_t start)
{
    if (e->gpu || sd_is_complex(n->dtype)) {
        a->at = emit_select(e, c, a->at, emit_int_like(a->at, start));
        return;
    }
    a->p = emit_select(
        e, c, emit_element(e, a->part, a->p, a->at),
        emit_element(e, a->part, e->slot[n->slot], emit_si(e, start)));
    a->at = emit_si(e, 0);
}

/* What is guarded may lie far outside, as the part of a roll that wraps around
 * does in all rows but one: u[i + 1 - n].  A vector none of whose lanes is
 * allowed would change nothing there, but a processor takes 100 ns and more to
 * find that out of a page that does not exist; such vectors go to the start. */
static void stay_inside(emit *e, const plan_node *n, emit_span *a)
{
    int64_t start = a->access == EMIT_REVERSED ? a->w - 1 : 0;

    if (a->access == EMIT_CONTIGUOUS || a->access == EMIT_REVERSED)
        go_where(e, n, a, any_lane(e, a->mask), start);
}

/* Where a load of blocks goes: what its step adds moves the slot's beginning,
 * which is one addition, unless a mask asks for places in it. */
static bool go_where_known(emit *e, const plan_node *n, emit_span *a)
{
    const emit_known *to = e->known;

    if (!to || !to->at[n->id])
        return false;
    a->at = to->at[n->id];
    if (a->mask)
        a->at = emit_add(e, a->at, to->by[n->id]);
    else
        a->p = emit_element(e, a->part, a->p, to->by[n->id]);
    return true;
}

/* v, of n words, but 0 where mask fails: a word at a time. */
static LLVMValueRef or_zeros(emit *e, LLVMValueRef mask, LLVMValueRef v, int n)
{
    LLVMTypeRef t = LLVMTypeOf(v), words = emit_widen(e->i32, n);
    LLVMValueRef w = LLVMGetPoison(words), zero = LLVMConstNull(e->i32);

    v = emit_as(e, v, words);
    for (int i = 0; i < n; i++)
        w = n == 1
                ? emit_select(e, mask, v, zero)
                : emit_insert(
                      e, w,
                      emit_select(e, mask, emit_extract(e, v, i, 1), zero), i);
    return emit_as(e, w, t);
}

/* Every bit of what a masked load gives is 0. */
static bool gives_zeros(const plan_node *n)
{
    const plan_node *fill = n->narg ? n->arg[0] : NULL;

    if (!fill || fill->kind != PN_CONST || sd_is_complex(fill->dtype))
        return false;
    for (size_t i = 0; i < sd_dtype_bytes(fill->dtype); i++)
        if (fill->value[i])
            return false;
    return true;
}

/* Without an instruction that gathers such elements LLVM makes of a gather of
 * known steps a vector of addresses that it takes apart again: the elements are
 * read one by one at once. */
static bool is_read_by_steps(const emit *e, const plan_node *n,
                             const emit_span *a)
{
    return a->access == EMIT_GATHERED && a->stride && n->kind == PN_LOAD &&
           !e->gpu && (e->vector_bits == 256 || sd_dtype_bytes(a->t) < 4) &&
           !a->mask && !sd_is_complex(n->dtype);
}

/* Vectors of a loop that is not cut begin at multiples of what both its extent
 * and its tiles are multiples of. */
static bool is_ordered(const emit *e, const plan_node *n, emit_span *a)
{
    const plan_axis *x = &e->k->axis[e->lane];
    int64_t m = sd_gcd(x->extent, e->w);

    return a->access == EMIT_GATHERED && n->kind == PN_LOAD && !e->gpu &&
           !a->mask && !sd_is_complex(n->dtype) && e->k->cls == PLAN_LOOP &&
           e->k->naxis == e->k->nouter && !e->k->cut &&
           plan_expr_ordered(n->off, e->lane, x->grid ? sd_gcd(x->tile, m) : m,
                             e->w, &a->order);
}

/* May the slot's pointer move before a loop?  Pairs are counted from it. */
static bool is_placed(const emit *e, const plan_node *n, const emit_span *a)
{
    return !e->gpu && a->access != EMIT_GATHERED && !sd_is_complex(n->dtype);
}

/* What a GPU reads under a guard is counted from where the first copy is, so
 * that copies of two axes which read one element of a window read it once. */
static LLVMValueRef index_of(emit *e, const plan_node *n, int copy,
                             emit_access access)
{
    if (e->gpu && n->nguard && access != EMIT_GATHERED)
        return emit_expr_apart(e, n->off, copy);
    return emit_expr(e, n->off, copy, access == EMIT_GATHERED);
}

/* Where an access goes and under which mask. */
static void locate(emit *e, const plan_node *n, int copy, uint64_t varies,
                   emit_span *a)
{
    a->t = n->dtype;
    a->part = sd_dtype_part(n->dtype);
    a->p = e->slot[n->slot];
    a->access = emit_classify(e, n->off, &a->stride);
    if (a->access == EMIT_STRIDED && n->kind == PN_SCATTER)
        a->access = EMIT_GATHERED;
    a->w = e->w;
    a->mask = emit_and(e, emit_guards(e, n->guard, n->nguard, copy, true),
                       emit_mask(e, varies, copy));
    if (is_ordered(e, n, a))
        a->access = EMIT_ORDERED;
    else if (is_read_by_steps(e, n, a))
        a->access = EMIT_STRIDED;
    if (is_placed(e, n, a))
        emit_address(e, n->off, copy, a->part, &a->p, &a->at);
    else if (!go_where_known(e, n, a))
        a->at = index_of(e, n, copy, a->access);
    if (!e->gpu && n->nguard && a->mask)
        stay_inside(e, n, a);
    if (a->access != EMIT_UNIFORM && a->mask)
        a->mask = emit_splat(e, a->mask, a->w);
}

/* Into the second level of cache: rows ahead would fill the first. */
static void prefetch(emit *e, const plan_node *n, const emit_span *a)
{
    LLVMValueRef arg[4] = {NULL, LLVMConstInt(e->i32, 0, 0),
                           LLVMConstInt(e->i32, 2, 0),
                           LLVMConstInt(e->i32, 1, 0)};
    int64_t s;

    if (!e->ahead || a->access != EMIT_CONTIGUOUS || a->mask ||
        !plan_expr_stride(n->off, e->ahead_axis, &s) ||
        s * (int64_t)sd_dtype_bytes(a->t) < 1024)
        return;
    arg[0] = emit_element(e, a->part, a->p, emit_plus(e, a->at, s * e->ahead));
    emit_intrinsic(e, "llvm.prefetch", LLVMTypeOf(arg[0]), arg, 4);
}

emit_value emit_load(emit *e, const plan_node *n, int copy)
{
    bool filled = plan_takes(n, 0, e->answer) && n->narg > 0;
    emit_value fill = {NULL, NULL}, v;
    emit_span a;

    if (filled)
        fill = emit_node_value(e, n->arg[0],
                               emit_canon(e, copy, n->arg[0]->varies));
    if (e->k->slot[n->slot].count == 0 || /* there is nothing to read */
        e->answer[n->id] == PLAN_NO) {
        if (filled)
            return fill;
        v.re = LLVMConstNull(emit_type(e, n->dtype));
        v.im = sd_is_complex(n->dtype) ? v.re : NULL;
        return v;
    }
    locate(e, n, copy, n->varies, &a);
    if (a.access == EMIT_UNIFORM) {
        if (a.mask)
            go_where(e, n, &a, any_lane(e, a.mask), 0);
        v = emit_mem_read(e, a.t, a.p, a.at, 1);
    } else {
        prefetch(e, n, &a);
        v = emit_span_read(e, &a);
    }
    return filled && a.mask ? emit_select_value(e, a.mask, v, fill) : v;
}

/* One item writes what does not vary on an inner LANE axis. */
static LLVMValueRef writer_mask(emit *e, const plan_node *n, LLVMValueRef mask)
{
    mask = emit_and(e, mask, e->item_valid);
    /* all rows have what sums come to, and one writes it */
    if (e->k->strided && !e->k->stage[n->stage].axes)
        mask = emit_and(e, mask, emit_equal(e, e->row, emit_si(e, 0)));
    if (e->gpu && e->lane >= 0 && !(e->outer >> e->lane & 1) &&
        !(n->off->varies >> e->lane & 1))
        return emit_and(e, mask,
                        emit_equal(e, e->team ? e->lid : e->item,
                                   emit_int_like(e->item, 0)));
    return mask;
}

/* ---- several copies of an item in one access ---- */

/* The number of `copy` in the run of copies that it is in. */
static int number_in_run(const emit *e, const plan_node *n, int copy)
{
    return emit_digit(e, copy, plan_wide_axis(e->k, n)) % n->wide;
}

/* Copy number i of that run. */
static int in_run(const emit *e, const plan_node *n, int copy, int i)
{
    return copy + (i - number_in_run(e, n, copy)) *
                      e->axis[plan_wide_axis(e->k, n)].stride;
}

/* Copies are neighbours in memory, not one element for all. */
static bool are_neighbours(const emit *e, const plan_node *n)
{
    int64_t s, m;

    return plan_expr_run(n->off, plan_wide_axis(e->k, n), n->wide, &s, &m) &&
           s == 1;
}

emit_value emit_wide_load(emit *e, const plan_node *n, int copy, int level)
{
    bool together = are_neighbours(e, n);
    emit_value v[PLAN_AXIS_COPIES], fill;
    int bytes = n->wide * (int)sd_dtype_bytes(n->dtype);
    LLVMValueRef all = NULL;
    bool filled;
    emit_span a;

    locate(e, n, in_run(e, n, copy, 0), n->varies, &a);
    if (a.mask)
        go_where(e, n, &a, a.mask, 0);
    if (together) {
        all = emit_vector_read(e, a.part, emit_element(e, a.part, a.p, a.at),
                               NULL, n->wide);
        LLVMSetAlignment(all,
                         (unsigned)n->wide * (unsigned)sd_dtype_bytes(a.part));
    }
    filled = together && a.mask && e->known && bytes % 4 == 0 && gives_zeros(n);
    if (filled)
        all = or_zeros(e, a.mask, all, bytes / 4);
    for (int i = 0; i < n->wide; i++) {
        if (together)
            v[i] = (emit_value){
                emit_of_memory(e, a.part, emit_extract(e, all, i, 1)), NULL};
        else
            v[i] = i ? v[0] : emit_mem_read(e, a.t, a.p, a.at, 1);
    }
    for (int i = 0; i < n->wide; i++) {
        int c = in_run(e, n, copy, i);

        if (n->narg && a.mask && !filled) {
            fill = emit_node_value(e, n->arg[0],
                                   emit_canon(e, c, n->arg[0]->varies));
            v[i] = emit_select_value(e, a.mask, v[i], fill);
        }
        if (c != copy)
            emit_remember(e, &e->value[n->id * e->ncopy + c], v[i], level);
    }
    return v[number_in_run(e, n, copy)];
}

/* The last copy of a run writes all. */
static void wide_store(emit *e, const plan_node *n, int copy)
{
    const plan_node *arg = n->arg[0];
    LLVMValueRef all, s;
    LLVMBasicBlockRef no;
    emit_span a;

    if (number_in_run(e, n, copy) != n->wide - 1)
        return;
    locate(e, n, in_run(e, n, copy, 0),
           n->varies | n->off->varies | arg->varies, &a);
    all = LLVMGetPoison(emit_widen(emit_mem_type(e, a.part), n->wide));
    for (int i = 0; i < n->wide; i++) {
        int c = emit_canon(e, in_run(e, n, copy, i), arg->varies);

        all = emit_insert(
            e, all, emit_to_memory(e, a.part, emit_node_value(e, arg, c).re),
            i);
    }
    no = emit_when(e, writer_mask(e, n, a.mask));
    s = LLVMBuildStore(e->b, all, emit_element(e, a.part, a.p, a.at));
    LLVMSetAlignment(s, (unsigned)n->wide * (unsigned)sd_dtype_bytes(a.part));
    emit_when_end(e, no);
}

/* Bytes are woven as vectors of their own: no instruction of AVX-512 puts 64 of
 * them in any order, as LLVM then wants. */
static void write_bytes(emit *e, LLVMValueRef const *v, int n, sd_dtype part,
                        LLVMValueRef p)
{
    LLVMValueRef out[PLAN_MOST_WOVEN];

    emit_weave_apart(e, v, n, out);
    for (int i = 0; i < n; i++)
        emit_vector_write(e, part, out[i],
                          emit_element(e, part, p, emit_si(e, i * e->w)), NULL);
}

/* Of what is woven the last store writes all. */
static void write_woven(emit *e, const plan_woven *w, int copy)
{
    LLVMValueRef v[PLAN_MOST_WOVEN], mask[PLAN_MOST_WOVEN], p = NULL;
    bool masked = false;
    int n = 0;
    emit_span a;

    for (int i = 0; i < w->n; i++) {
        const plan_node *s = w->at[i], *arg = s->arg[0];
        emit_value x =
            emit_node_value(e, arg, emit_canon(e, copy, arg->varies));

        locate(e, s, copy, s->varies | s->off->varies | arg->varies, &a);
        x = emit_splat_value(e, x, e->w);
        if (!i)
            p = emit_element(e, a.part, a.p,
                             x.im ? emit_pair_index(e, a.at, 0) : a.at);
        for (int part = 0; part < (x.im ? 2 : 1); part++) {
            v[n] = emit_to_memory(e, a.part, part ? x.im : x.re);
            mask[n++] =
                a.mask ? a.mask : emit_splat(e, emit_bool(e, true), e->w);
        }
        masked = masked || a.mask;
    }
    if (w->moved && !masked) {
        emit_move(e, w, p, copy);
        return;
    }
    if (!masked && sd_dtype_bytes(a.part) == 1 && !(n & (n - 1))) {
        write_bytes(e, v, n, a.part, p);
        return;
    }
    emit_vector_write(e, a.part, emit_weave(e, v, n), p,
                      masked ? emit_weave(e, mask, n) : NULL);
}

void emit_store(emit *e, const plan_node *n, int copy)
{
    const plan_node *arg = n->arg[0];
    const plan_woven *woven = n->woven;
    emit_value v = emit_node_value(e, arg, emit_canon(e, copy, arg->varies));
    LLVMBasicBlockRef no;
    emit_span a;

    if (n->wide > 1) {
        wide_store(e, n, copy);
        return;
    }
    if (woven) {
        if (n->id == woven->last)
            write_woven(e, woven, copy);
        return;
    }
    if (emit_across_store(e, n, copy))
        return;
    locate(e, n, copy, n->varies | n->off->varies | arg->varies, &a);
    if (a.access != EMIT_UNIFORM) {
        emit_span_write(e, &a, v);
        return;
    }
    a.mask = writer_mask(e, n, a.mask);
    no = emit_when(e, a.mask ? any_lane(e, a.mask) : NULL);
    emit_mem_write(e, a.t, a.p, a.at, emit_extract_value(e, v, 0, 1));
    emit_when_end(e, no);
}

static emit_value combine(emit *e, const plan_node *n, emit_value old,
                          emit_value v)
{
    emit_value arg[2] = {old, v}, root[1];

    if (!n->body)
        return v;
    emit_body(e, n->body, arg, root);
    return root[0];
}

/* A whole vector is written or nothing: by a branch, since a masked store
 * cannot hand its value on to the next load of the same place. */
static void scatter_vector(emit *e, const plan_node *n, int copy, emit_value v)
{
    uint64_t all = n->varies | n->off->varies | n->arg[0]->varies;
    plan_node inside = *n;
    LLVMBasicBlockRef no;
    emit_value old;
    emit_span a;

    inside.nguard = 0;
    locate(e, &inside, copy, all, &a);
    no = emit_when(e, emit_guards(e, n->guard, n->nguard, copy, false));
    old = emit_span_read(e, &a);
    emit_span_write(e, &a, combine(e, n, old, v));
    emit_when_end(e, no);
}

void emit_scatter(emit *e, const plan_node *n, int copy)
{
    const plan_node *arg = n->arg[0];
    emit_value v = emit_node_value(e, arg, emit_canon(e, copy, arg->varies));
    uint64_t guards = emit_guards_vary(n->guard, n->nguard);
    uint64_t all = n->varies | n->off->varies | arg->varies | guards;
    LLVMBasicBlockRef no;
    emit_value old;
    int64_t stride;
    emit_span a;

    if (!e->gpu && e->lane >= 0 && !(guards >> e->lane & 1) &&
        emit_classify(e, n->off, &stride) == EMIT_CONTIGUOUS) {
        scatter_vector(e, n, copy, v);
        return;
    }
    locate(e, n, copy, all, &a);
    if (a.access != EMIT_UNIFORM) {
        old = emit_span_read(e, &a);
        emit_span_write(e, &a, combine(e, n, old, v));
        return;
    }
    a.mask = writer_mask(e, n, a.mask);
    no = emit_when(e, a.mask ? any_lane(e, a.mask) : NULL);
    v = emit_extract_value(e, v, 0, 1);
    if (n->meets) {
        emit_atomic(e, n, emit_element(e, a.part, a.p, a.at), v);
    } else {
        old = emit_mem_read(e, a.t, a.p, a.at, 1);
        emit_mem_write(e, a.t, a.p, a.at, combine(e, n, old, v));
    }
    emit_when_end(e, no);
}

/* ---- parked values ---- */

LLVMValueRef emit_local(emit *e, LLVMValueRef byte)
{
    return emit_behind(e, e->i8, e->local, byte);
}

LLVMValueRef emit_local_at(emit *e, size_t byte)
{
    return emit_local(e, emit_i64(e, (int64_t)byte));
}

LLVMValueRef emit_area(emit *e, int area, size_t plus)
{
    return emit_local_at(e, e->k->area[area].offset + plus);
}

/* Row-major over the inner axes that it varies on; and how many there are. */
static LLVMValueRef park_index(emit *e, const plan_node *n, int copy,
                               int64_t *count)
{
    LLVMValueRef v = emit_si(e, 0);

    *count = 1;
    plan_for_each_axis(i, n->varies & ~e->outer) {
        v = emit_product(e, v, emit_si(e, e->k->axis[i].extent));
        v = emit_sum(e, v, emit_position(e, i, copy, false));
        *count *= e->k->axis[i].extent;
    }
    if (!e->gpu && plan_parked_lanes(e->k) > 1) {
        v = emit_product(e, v, emit_si(e, e->w));
        *count *= e->w;
    }
    if (!e->gpu || e->k->items == e->k->group)
        return v;
    /* each row of a group has its part */
    v = emit_sum(e, emit_product(e, e->row, emit_si(e, *count)), v);
    *count *= e->k->group / e->k->items;
    return v;
}

static emit_span park_place(emit *e, const plan_node *n, int copy,
                            int64_t *count)
{
    emit_span a = {.t = sd_dtype_part(n->dtype),
                   .part = sd_dtype_part(n->dtype),
                   .w = e->w};

    a.at = park_index(e, n, copy, count);
    a.mask = emit_mask(e, n->varies, copy);
    a.access = e->w > 1 && e->lane >= 0 && (n->varies >> e->lane & 1)
                   ? EMIT_CONTIGUOUS
                   : EMIT_UNIFORM;
    return a;
}

void emit_park_write(emit *e, const plan_node *n, int copy)
{
    emit_value v = emit_node_value(e, n, copy);
    int64_t count;
    emit_span a = park_place(e, n, copy, &count);
    LLVMBasicBlockRef no;

    for (int part = 0; part < (v.im ? 2 : 1); part++) {
        emit_value x = {part ? v.im : v.re, NULL};

        a.p = emit_area(e, n->area,
                        (size_t)part * (size_t)count * sd_dtype_bytes(a.part));
        if (a.access == EMIT_CONTIGUOUS) {
            emit_span_write(e, &a, x);
            continue;
        }
        no = emit_when(e, a.mask);
        emit_mem_write(e, a.t, a.p, a.at, x);
        emit_when_end(e, no);
    }
}

emit_value emit_park_read(emit *e, const plan_node *n, int copy)
{
    int64_t count;
    emit_span a = park_place(e, n, copy, &count);
    emit_value v = {NULL, NULL}, x;

    for (int part = 0; part < (sd_is_complex(n->dtype) ? 2 : 1); part++) {
        a.p = emit_area(e, n->area,
                        (size_t)part * (size_t)count * sd_dtype_bytes(a.part));
        if (a.access == EMIT_UNIFORM && a.mask)
            a.at = emit_select(e, a.mask, a.at, emit_int_like(a.at, 0));
        x = a.access == EMIT_CONTIGUOUS ? emit_span_read(e, &a)
                                        : emit_mem_read(e, a.t, a.p, a.at, 1);
        *(part ? &v.im : &v.re) = x.re;
    }
    if (n->kind == PN_ELT && n->op == HLO_CONVERT && n->dtype == SD_F32 &&
        n->arg[0]->dtype == SD_BF16)
        emit_note_widened(e, v.re);
    return v;
}
