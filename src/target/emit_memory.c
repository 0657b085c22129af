/* Loads and stores.  A vector access is uniform, contiguous, reversed or a
 * gather, as the stride of its offset on LANE says.
 *
 * Where a guard fails nothing outside the slot may be touched.  Scalars and
 * gathers read element 0 instead and throw it away, which costs a select and
 * no branch; contiguous vectors use masks. */
#include "emit.h"

/* ---- elements of memory to and from registers ---- */

static LLVMValueRef of_memory(emit *e, sd_dtype t, LLVMValueRef v)
{
    if (t == SD_PRED)
        return LLVMBuildICmp(e->b, LLVMIntNE, v, emit_int_like(v, 0), "");
    return sd_dtype_table[t].bits < 8 ? emit_wrap(e, v, t) : v;
}

static LLVMValueRef to_memory(emit *e, sd_dtype t, LLVMValueRef v)
{
    if (t == SD_PRED)
        return LLVMBuildZExt(e->b, v, emit_widen(e->i8, emit_width(v)), "");
    return v;
}

static LLVMValueRef element(emit *e, sd_dtype part, LLVMValueRef p,
                            LLVMValueRef index)
{
    return LLVMBuildGEP2(e->b, emit_mem_type(e, part), p, &index, 1, "");
}

static LLVMValueRef plain_load(emit *e, sd_dtype part, LLVMValueRef p, int w)
{
    LLVMValueRef v =
        LLVMBuildLoad2(e->b, emit_widen(emit_mem_type(e, part), w), p, "");

    LLVMSetAlignment(v, (unsigned)sd_dtype_bytes(part));
    return v;
}

static void plain_store(emit *e, sd_dtype part, LLVMValueRef v, LLVMValueRef p)
{
    LLVMValueRef s = LLVMBuildStore(e->b, v, p);

    LLVMSetAlignment(s, (unsigned)sd_dtype_bytes(part));
}

static void align_arg(LLVMValueRef call, unsigned arg, sd_dtype part)
{
    LLVMSetInstrParamAlignment(call, arg + 1, (unsigned)sd_dtype_bytes(part));
}

static LLVMValueRef masked_load(emit *e, sd_dtype part, LLVMValueRef p,
                                LLVMValueRef mask, LLVMValueRef pass)
{
    LLVMTypeRef over[2] = {LLVMTypeOf(pass), LLVMTypeOf(p)};
    LLVMValueRef arg[3] = {p, mask, pass};
    LLVMValueRef v = emit_intrinsic2(e, "llvm.masked.load", over, 2, arg, 3);

    align_arg(v, 0, part);
    return v;
}

static void masked_store(emit *e, sd_dtype part, LLVMValueRef v, LLVMValueRef p,
                         LLVMValueRef mask)
{
    LLVMTypeRef over[2] = {LLVMTypeOf(v), LLVMTypeOf(p)};
    LLVMValueRef arg[3] = {v, p, mask};

    align_arg(emit_intrinsic2(e, "llvm.masked.store", over, 2, arg, 3), 1,
              part);
}

static LLVMValueRef gather(emit *e, sd_dtype part, LLVMValueRef p, int w)
{
    LLVMTypeRef over[2] = {emit_widen(emit_mem_type(e, part), w),
                           LLVMTypeOf(p)};
    LLVMValueRef arg[3] = {p, emit_splat(e, emit_bool(e, true), w),
                           LLVMGetPoison(over[0])};
    LLVMValueRef v = emit_intrinsic2(e, "llvm.masked.gather", over, 2, arg, 3);

    align_arg(v, 0, part);
    return v;
}

static void scatter(emit *e, sd_dtype part, LLVMValueRef v, LLVMValueRef p,
                    LLVMValueRef mask)
{
    LLVMTypeRef over[2] = {LLVMTypeOf(v), LLVMTypeOf(p)};
    LLVMValueRef arg[3] = {v, p, mask};

    if (!mask)
        arg[2] = emit_splat(e, emit_bool(e, true), emit_width(v));
    align_arg(emit_intrinsic2(e, "llvm.masked.scatter", over, 2, arg, 3), 1,
              part);
}

typedef struct {
    int first, n;
} run; /* of lanes; n is 0 where none is known */

/* The lanes that a mask known by now allows, where they are neighbours. */
static run known_run(LLVMValueRef mask)
{
    run r = {.n = 0};

    for (int i = 0; LLVMIsConstant(mask) && i < emit_width(mask); i++) {
        LLVMValueRef on = LLVMGetAggregateElement(mask, (unsigned)i);

        if (!on || !LLVMIsAConstantInt(on))
            return (run){0};
        if (!LLVMConstIntGetZExtValue(on))
            continue;
        if (r.n && r.first + r.n != i)
            return (run){0};
        r.first = r.n ? r.first : i;
        r.n++;
    }
    return r;
}

/* The lanes that are read or written without a mask, as a vector of their own.
 * One lane always is: LLVM 22 makes of a masked store of such a vector that was
 * narrowed a store of the wide element, over its neighbours.  Inside a loop
 * that is a kernel all are, because LLVM keeps in registers only what is never
 * read or written under a mask: of a carry of 3 numbers, <3 x float>. */
static run unmasked_run(const emit *e, LLVMValueRef mask)
{
    run r = known_run(mask);

    return r.n == 1 || e->keeps_memory ? r : (run){0};
}

/* x in the lanes of r, zero in the others. */
static LLVMValueRef put_run(emit *e, LLVMValueRef zero, LLVMValueRef x, run r)
{
    int lane[EMIT_MAX_LANES], w = emit_width(zero);

    if (r.n == 1)
        return LLVMBuildInsertElement(
            e->b, zero, x, LLVMConstInt(e->i32, (unsigned)r.first, 0), "");
    for (int i = 0; i < w; i++) /* r.n: the first of the zeros after x */
        lane[i] = i >= r.first && i < r.first + r.n ? i - r.first : r.n;
    return emit_shuffle(e, x, LLVMConstNull(LLVMTypeOf(x)), lane, w);
}

LLVMValueRef emit_vector_read(emit *e, sd_dtype part, LLVMValueRef p,
                              LLVMValueRef mask, int w)
{
    LLVMValueRef zero = LLVMConstNull(emit_widen(emit_mem_type(e, part), w));
    run r = {0};

    if (!mask)
        return plain_load(e, part, p, w);
    r = unmasked_run(e, mask);
    if (!r.n)
        return masked_load(e, part, p, mask, zero);
    p = element(e, part, p, emit_i64(e, r.first));
    return put_run(e, zero, plain_load(e, part, p, r.n), r);
}

static void vector_put(emit *e, sd_dtype part, LLVMValueRef v, LLVMValueRef p,
                       LLVMValueRef mask)
{
    run r = {0};

    if (!mask) {
        plain_store(e, part, v, p);
        return;
    }
    r = unmasked_run(e, mask);
    if (!r.n)
        masked_store(e, part, v, p, mask);
    else
        plain_store(e, part, emit_extract(e, v, r.first, r.n),
                    element(e, part, p, emit_i64(e, r.first)));
}

static LLVMValueRef reversed(emit *e, LLVMValueRef v)
{
    int lane[EMIT_MAX_LANES], w = emit_width(v);

    for (int i = 0; i < w; i++)
        lane[i] = w - 1 - i;
    return emit_shuffle(e, v, NULL, lane, w);
}

/* ---- pairs: complex numbers lie interleaved ---- */

static LLVMValueRef pair_index(emit *e, LLVMValueRef index, int part)
{
    LLVMValueRef v = LLVMBuildShl(e->b, index, emit_int_like(index, 1), "");

    return part ? LLVMBuildOr(e->b, v, emit_int_like(v, 1), "") : v;
}

static emit_value split_pairs(emit *e, LLVMValueRef v, int w)
{
    int lane[2][EMIT_MAX_LANES];

    for (int i = 0; i < w; i++) {
        lane[0][i] = 2 * i;
        lane[1][i] = 2 * i + 1;
    }
    return (emit_value){emit_shuffle(e, v, NULL, lane[0], w),
                        emit_shuffle(e, v, NULL, lane[1], w)};
}

static LLVMValueRef join_pairs(emit *e, emit_value v, int w)
{
    int lane[2 * EMIT_MAX_LANES];

    for (int i = 0; i < 2 * w; i++)
        lane[i] = i / 2 + i % 2 * w;
    return emit_shuffle(e, v.re, v.im, lane, 2 * w);
}

emit_value emit_mem_read(emit *e, sd_dtype t, LLVMValueRef p,
                         LLVMValueRef index, int w)
{
    sd_dtype part = sd_dtype_part(t);
    LLVMValueRef v;

    if (!emit_is_complex(t)) {
        v = plain_load(e, part, element(e, part, p, index), w);
        return (emit_value){of_memory(e, part, v), NULL};
    }
    if (w == 1)
        return (emit_value){
            plain_load(e, part, element(e, part, p, pair_index(e, index, 0)),
                       1),
            plain_load(e, part, element(e, part, p, pair_index(e, index, 1)),
                       1)};
    v = plain_load(e, part, element(e, part, p, pair_index(e, index, 0)),
                   2 * w);
    return split_pairs(e, v, w);
}

void emit_mem_write(emit *e, sd_dtype t, LLVMValueRef p, LLVMValueRef index,
                    emit_value v)
{
    sd_dtype part = sd_dtype_part(t);
    int w = emit_width(v.re);

    if (!v.im) {
        plain_store(e, part, to_memory(e, part, v.re),
                    element(e, part, p, index));
    } else if (w > 1) {
        plain_store(e, part, join_pairs(e, v, w),
                    element(e, part, p, pair_index(e, index, 0)));
    } else {
        plain_store(e, part, v.re,
                    element(e, part, p, pair_index(e, index, 0)));
        plain_store(e, part, v.im,
                    element(e, part, p, pair_index(e, index, 1)));
    }
}

/* ---- vectors at an offset ---- */

typedef struct {
    sd_dtype t, part;
    LLVMValueRef p;
    emit_access access;
    LLVMValueRef at;    /* scalar offset; GATHERED: vector */
    LLVMValueRef mask;  /* NULL: all */
    int64_t stride;     /* STRIDED, CONTIGUOUS */
    int w;
} place;

static LLVMValueRef offsets(emit *e, const place *a)
{
    if (a->access == EMIT_GATHERED)
        return a->at;
    /* Complex numbers that are reversed, or written under a mask. */
    LLVMValueRef io = emit_iota(e, LLVMTypeOf(a->at), a->w);

    if (a->access == EMIT_STRIDED)
        io = LLVMBuildMul(e->b, io, emit_int_like(io, a->stride), "");
    LLVMValueRef s = emit_splat(e, a->at, a->w);

    return a->access == EMIT_REVERSED ? LLVMBuildSub(e->b, s, io, "")
                                      : LLVMBuildAdd(e->b, s, io, "");
}

static LLVMValueRef gather_part(emit *e, const place *a, LLVMValueRef off,
                                int part)
{
    if (emit_is_complex(a->t))
        off = pair_index(e, off, part);
    return gather(e, a->part, element(e, a->part, a->p, off), a->w);
}

static emit_value gather_at(emit *e, const place *a)
{
    LLVMValueRef off = offsets(e, a);
    emit_value v = {NULL, NULL};

    if (a->mask)
        off = emit_select(e, a->mask, off, emit_int_like(off, 0));
    v.re = gather_part(e, a, off, 0);
    if (emit_is_complex(a->t))
        v.im = gather_part(e, a, off, 1);
    return v;
}

/* The parts of complex numbers lie two apart. */
static emit_value strided_at(emit *e, const place *a)
{
    bool pairs = emit_is_complex(a->t);
    int stride = (int)a->stride * (pairs ? 2 : 1);
    emit_value v = {NULL, NULL};

    for (int part = 0; part <= pairs; part++) {
        LLVMValueRef at = pairs ? pair_index(e, a->at, part) : a->at;

        *(part ? &v.im : &v.re) = emit_read_strided(
            e, a->part, element(e, a->part, a->p, at), a->mask, stride, a->w);
    }
    return v;
}

/* What is read where the mask fails is unspecified. */
static emit_value vector_read(emit *e, const place *a)
{
    LLVMValueRef p, v;

    if (a->access == EMIT_STRIDED ||
        (a->access == EMIT_CONTIGUOUS && a->mask && emit_is_complex(a->t))) {
        emit_value s = strided_at(e, a);

        s.re = of_memory(e, a->part, s.re);
        return s;
    }
    if (a->access == EMIT_GATHERED ||
        (emit_is_complex(a->t) && a->access == EMIT_REVERSED)) {
        emit_value g = gather_at(e, a);

        g.re = of_memory(e, a->part, g.re);
        return g;
    }
    if (emit_is_complex(a->t))
        return emit_mem_read(e, a->t, a->p, a->at, a->w);
    p = element(e, a->part, a->p, a->at);
    if (a->access == EMIT_REVERSED) {
        LLVMValueRef back = emit_si(e, 1 - a->w);

        p = element(e, a->part, p, back);
    }
    v = emit_vector_read(
        e, a->part, p,
        a->mask && a->access == EMIT_REVERSED ? reversed(e, a->mask) : a->mask,
        a->w);
    if (a->access == EMIT_REVERSED)
        v = reversed(e, v);
    return (emit_value){of_memory(e, a->part, v), NULL};
}

static void scatter_at(emit *e, const place *a, emit_value v)
{
    LLVMValueRef off = offsets(e, a), o = off;

    if (v.im)
        o = pair_index(e, off, 0);
    scatter(e, a->part, to_memory(e, a->part, v.re),
            element(e, a->part, a->p, o), a->mask);
    if (v.im)
        scatter(e, a->part, v.im,
                element(e, a->part, a->p, pair_index(e, off, 1)), a->mask);
}

static void vector_write(emit *e, const place *a, emit_value v)
{
    LLVMValueRef p, x;

    v = emit_splat_value(e, v, a->w);
    if (a->access == EMIT_GATHERED || a->access == EMIT_STRIDED ||
        (v.im && (a->mask || a->access == EMIT_REVERSED))) {
        scatter_at(e, a, v);
        return;
    }
    if (v.im) {
        emit_mem_write(e, a->t, a->p, a->at, v);
        return;
    }
    x = to_memory(e, a->part, v.re);
    p = element(e, a->part, a->p, a->at);
    if (a->access == EMIT_REVERSED) {
        LLVMValueRef back = emit_si(e, 1 - a->w);

        p = element(e, a->part, p, back);
        x = reversed(e, x);
    }
    vector_put(e, a->part, x, p,
               a->mask && a->access == EMIT_REVERSED ? reversed(e, a->mask)
                                                     : a->mask);
}

/* ---- nodes ---- */

static LLVMValueRef any_lane(emit *e, LLVMValueRef mask)
{
    if (emit_width(mask) == 1)
        return mask;
    return emit_intrinsic(e, "llvm.vector.reduce.or", LLVMTypeOf(mask), &mask,
                          1);
}

/* What is guarded may lie far outside, as the part of a roll that wraps around
 * does in all rows but one: u[i + 1 - n].  A vector none of whose lanes is
 * allowed would change nothing there, but a processor takes 100 ns and more to
 * find that out of a page that does not exist; such vectors go to the start. */
static void stay_inside(emit *e, place *a)
{
    int64_t start = a->access == EMIT_REVERSED ? a->w - 1 : 0;

    if (a->access == EMIT_CONTIGUOUS || a->access == EMIT_REVERSED)
        a->at = emit_select(e, any_lane(e, a->mask), a->at,
                            emit_int_like(a->at, start));
}

/* Where an access goes and under which mask. */
static void locate(emit *e, const plan_node *n, int copy, uint64_t varies,
                   place *a)
{
    bool vec;

    a->t = n->dtype;
    a->part = sd_dtype_part(n->dtype);
    a->p = e->slot[n->slot];
    a->access = emit_classify(e, n->off, &a->stride);
    if (a->access == EMIT_STRIDED && n->kind == PN_SCATTER)
        a->access = EMIT_GATHERED;
    a->w = e->w;
    vec = a->access == EMIT_GATHERED;
    a->at = emit_expr(e, n->off, copy, vec);
    a->mask = emit_and(e, emit_guards(e, n->guard, n->nguard, copy, true),
                       emit_mask(e, varies, copy));
    if (!e->gpu && n->nguard && a->mask)
        stay_inside(e, a);
    if (a->access != EMIT_UNIFORM && a->mask)
        a->mask = emit_splat(e, a->mask, a->w);
}

/* Into the second level of cache: rows ahead would fill the first. */
static void prefetch(emit *e, const plan_node *n, const place *a)
{
    LLVMValueRef arg[4] = {NULL, LLVMConstInt(e->i32, 0, 0),
                           LLVMConstInt(e->i32, 2, 0),
                           LLVMConstInt(e->i32, 1, 0)};
    int64_t s;

    if (!e->ahead || a->access != EMIT_CONTIGUOUS || a->mask ||
        !plan_expr_stride(n->off, e->ahead_axis, &s) ||
        s * (int64_t)sd_dtype_bytes(a->t) < 1024)
        return;
    arg[0] = element(e, a->part, a->p,
                     LLVMBuildAdd(e->b, a->at, emit_si(e, s * e->ahead), ""));
    emit_intrinsic(e, "llvm.prefetch", LLVMTypeOf(arg[0]), arg, 4);
}

emit_value emit_load(emit *e, const plan_node *n, int copy)
{
    bool filled = n->narg > 0;
    emit_value fill = {NULL, NULL}, v;
    LLVMValueRef any;
    place a;

    if (filled)
        fill = emit_node_value(e, n->arg[0],
                               emit_canon(e, copy, n->arg[0]->varies));
    if (e->k->slot[n->slot].count == 0) { /* an operand without elements */
        if (filled)
            return fill;
        v.re = LLVMConstNull(emit_type(e, n->dtype));
        v.im = emit_is_complex(n->dtype) ? v.re : NULL;
        return v;
    }
    locate(e, n, copy, n->varies, &a);
    if (a.access == EMIT_UNIFORM) {
        if (a.mask) {
            any = any_lane(e, a.mask);
            a.at = emit_select(e, any, a.at, emit_int_like(a.at, 0));
        }
        v = emit_mem_read(e, a.t, a.p, a.at, 1);
    } else {
        prefetch(e, n, &a);
        v = vector_read(e, &a);
    }
    return filled && a.mask ? emit_select_value(e, a.mask, v, fill) : v;
}

/* Runs what follows only where c holds; ends with when_end. */
static LLVMBasicBlockRef when(emit *e, LLVMValueRef c)
{
    LLVMBasicBlockRef yes, no;

    if (!c)
        return NULL;
    yes = emit_block(e, "when");
    no = emit_block(e, "after");
    LLVMBuildCondBr(e->b, c, yes, no);
    LLVMPositionBuilderAtEnd(e->b, yes);
    return no;
}

static void when_end(emit *e, LLVMBasicBlockRef no)
{
    if (!no)
        return;
    LLVMBuildBr(e->b, no);
    LLVMPositionBuilderAtEnd(e->b, no);
}

/* One item writes what does not vary on an inner LANE axis. */
static LLVMValueRef writer_mask(emit *e, const plan_node *n, LLVMValueRef mask)
{
    mask = emit_and(e, mask, e->item_valid);
    if (e->gpu && e->lane >= 0 && !(e->outer >> e->lane & 1) &&
        !(n->off->varies >> e->lane & 1))
        return emit_and(e, mask,
                        LLVMBuildICmp(e->b, LLVMIntEQ, e->item,
                                      emit_int_like(e->item, 0), ""));
    return mask;
}

/* ---- several copies of an item in one access ---- */

/* Copy number i of the run of copies that `copy` is in. */
static int in_run(const emit *e, const plan_node *n, int copy, int i)
{
    int digit = emit_digit(e, copy, e->lane);

    return copy + (i - digit % n->wide) * e->axis[e->lane].stride;
}

/* Copies are neighbours in memory, not one element for all. */
static bool are_neighbours(const emit *e, const plan_node *n)
{
    int64_t s, m;

    return plan_expr_run(n->off, e->lane, n->wide, &s, &m) && s == 1;
}

emit_value emit_wide_load(emit *e, const plan_node *n, int copy, int level)
{
    bool together = are_neighbours(e, n);
    emit_value v[PLAN_AXIS_COPIES], fill;
    LLVMValueRef all = NULL;
    place a;

    locate(e, n, in_run(e, n, copy, 0), n->varies, &a);
    if (a.mask)
        a.at = emit_select(e, a.mask, a.at, emit_int_like(a.at, 0));
    if (together) {
        all = plain_load(e, a.part, element(e, a.part, a.p, a.at), n->wide);
        LLVMSetAlignment(all,
                         (unsigned)n->wide * (unsigned)sd_dtype_bytes(a.part));
    }
    for (int i = 0; i < n->wide; i++) {
        if (together)
            v[i] = (emit_value){
                of_memory(e, a.part, emit_extract(e, all, i, 1)), NULL};
        else
            v[i] = i ? v[0] : emit_mem_read(e, a.t, a.p, a.at, 1);
    }
    for (int i = 0; i < n->wide; i++) {
        int c = in_run(e, n, copy, i);

        if (n->narg && a.mask) {
            fill = emit_node_value(e, n->arg[0],
                                   emit_canon(e, c, n->arg[0]->varies));
            v[i] = emit_select_value(e, a.mask, v[i], fill);
        }
        if (c != copy)
            emit_remember(e, &e->value[n->id * e->ncopy + c], v[i], level);
    }
    return v[emit_digit(e, copy, e->lane) % n->wide];
}

/* The last copy of a run writes all. */
static void wide_store(emit *e, const plan_node *n, int copy)
{
    const plan_node *arg = n->arg[0];
    LLVMValueRef all, s;
    LLVMBasicBlockRef no;
    place a;

    if (emit_digit(e, copy, e->lane) % n->wide != n->wide - 1)
        return;
    locate(e, n, in_run(e, n, copy, 0),
           n->varies | n->off->varies | arg->varies, &a);
    all = LLVMGetPoison(emit_widen(emit_mem_type(e, a.part), n->wide));
    for (int i = 0; i < n->wide; i++) {
        int c = emit_canon(e, in_run(e, n, copy, i), arg->varies);

        all = LLVMBuildInsertElement(
            e->b, all, to_memory(e, a.part, emit_node_value(e, arg, c).re),
            LLVMConstInt(e->i32, (unsigned)i, 0), "");
    }
    no = when(e, writer_mask(e, n, a.mask));
    s = LLVMBuildStore(e->b, all, element(e, a.part, a.p, a.at));
    LLVMSetAlignment(s, (unsigned)n->wide * (unsigned)sd_dtype_bytes(a.part));
    when_end(e, no);
}

/* Of what is woven the last store writes all. */
static void write_woven(emit *e, const emit_woven *w, int copy)
{
    LLVMValueRef v[EMIT_WOVEN], mask[EMIT_WOVEN], p = NULL;
    bool masked = false;
    int n = 0;
    place a;

    for (int i = 0; i < w->n; i++) {
        const plan_node *s = w->at[i], *arg = s->arg[0];
        emit_value x =
            emit_node_value(e, arg, emit_canon(e, copy, arg->varies));

        locate(e, s, copy, s->varies | s->off->varies | arg->varies, &a);
        x = emit_splat_value(e, x, e->w);
        if (!i)
            p = element(e, a.part, a.p, x.im ? pair_index(e, a.at, 0) : a.at);
        for (int part = 0; part < (x.im ? 2 : 1); part++) {
            v[n] = to_memory(e, a.part, part ? x.im : x.re);
            mask[n++] =
                a.mask ? a.mask : emit_splat(e, emit_bool(e, true), e->w);
        }
        masked = masked || a.mask;
    }
    vector_put(e, a.part, emit_weave(e, v, n), p,
               masked ? emit_weave(e, mask, n) : NULL);
}

void emit_store(emit *e, const plan_node *n, int copy)
{
    const plan_node *arg = n->arg[0];
    const emit_woven *woven = e->woven[n->id];
    emit_value v = emit_node_value(e, arg, emit_canon(e, copy, arg->varies));
    LLVMBasicBlockRef no;
    place a;

    if (n->wide > 1) {
        wide_store(e, n, copy);
        return;
    }
    if (woven) {
        if (n->id == woven->last)
            write_woven(e, woven, copy);
        return;
    }
    locate(e, n, copy, n->varies | n->off->varies | arg->varies, &a);
    if (a.access != EMIT_UNIFORM) {
        vector_write(e, &a, v);
        return;
    }
    a.mask = writer_mask(e, n, a.mask);
    no = when(e, a.mask ? any_lane(e, a.mask) : NULL);
    emit_mem_write(e, a.t, a.p, a.at, emit_extract_value(e, v, 0, 1));
    when_end(e, no);
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
    place a;

    inside.nguard = 0;
    locate(e, &inside, copy, all, &a);
    no = when(e, emit_guards(e, n->guard, n->nguard, copy, false));
    old = vector_read(e, &a);
    vector_write(e, &a, combine(e, n, old, v));
    when_end(e, no);
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
    place a;

    if (!e->gpu && e->lane >= 0 && !(guards >> e->lane & 1) &&
        emit_classify(e, n->off, &stride) == EMIT_CONTIGUOUS) {
        scatter_vector(e, n, copy, v);
        return;
    }
    locate(e, n, copy, all, &a);
    if (a.access != EMIT_UNIFORM) {
        old = vector_read(e, &a);
        vector_write(e, &a, combine(e, n, old, v));
        return;
    }
    a.mask = writer_mask(e, n, a.mask);
    no = when(e, a.mask ? any_lane(e, a.mask) : NULL);
    v = emit_extract_value(e, v, 0, 1);
    if (n->meets) {
        emit_atomic(e, n, element(e, a.part, a.p, a.at), v);
    } else {
        old = emit_mem_read(e, a.t, a.p, a.at, 1);
        emit_mem_write(e, a.t, a.p, a.at, combine(e, n, old, v));
    }
    when_end(e, no);
}

/* ---- parked values ---- */

LLVMValueRef emit_area(emit *e, int area, size_t plus)
{
    LLVMValueRef off = emit_i64(e, (int64_t)(e->k->area[area].offset + plus));

    return LLVMBuildGEP2(e->b, e->i8, e->local, &off, 1, "");
}

/* Row-major over the inner axes that it varies on; and how many there are. */
static LLVMValueRef park_index(emit *e, const plan_node *n, int copy,
                               int64_t *count)
{
    LLVMValueRef v = emit_si(e, 0);

    *count = 1;
    for (int i = 0; i < e->k->naxis; i++) {
        if (!(n->varies & ~e->outer & (uint64_t)1 << i))
            continue;
        v = LLVMBuildMul(e->b, v, emit_si(e, e->k->axis[i].extent), "");
        v = LLVMBuildAdd(e->b, v, emit_position(e, i, copy, false), "");
        *count *= e->k->axis[i].extent;
    }
    if (!e->gpu || e->k->items == e->k->group)
        return v;
    /* each row of a group has its part */
    v = LLVMBuildAdd(e->b, LLVMBuildMul(e->b, e->row, emit_si(e, *count), ""),
                     v, "");
    *count *= e->k->group / e->k->items;
    return v;
}

static place park_place(emit *e, const plan_node *n, int copy, int64_t *count)
{
    place a = {.t = sd_dtype_part(n->dtype),
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
    place a = park_place(e, n, copy, &count);
    LLVMBasicBlockRef no;

    for (int part = 0; part < (v.im ? 2 : 1); part++) {
        emit_value x = {part ? v.im : v.re, NULL};

        a.p = emit_area(e, n->area,
                        (size_t)part * (size_t)count * sd_dtype_bytes(a.part));
        if (a.access == EMIT_CONTIGUOUS) {
            vector_write(e, &a, x);
            continue;
        }
        no = when(e, a.mask);
        emit_mem_write(e, a.t, a.p, a.at, x);
        when_end(e, no);
    }
}

emit_value emit_park_read(emit *e, const plan_node *n, int copy)
{
    int64_t count;
    place a = park_place(e, n, copy, &count);
    emit_value v = {NULL, NULL}, x;

    for (int part = 0; part < (emit_is_complex(n->dtype) ? 2 : 1); part++) {
        a.p = emit_area(e, n->area,
                        (size_t)part * (size_t)count * sd_dtype_bytes(a.part));
        if (a.access == EMIT_UNIFORM && a.mask)
            a.at = emit_select(e, a.mask, a.at, emit_int_like(a.at, 0));
        x = a.access == EMIT_CONTIGUOUS ? vector_read(e, &a)
                                        : emit_mem_read(e, a.t, a.p, a.at, 1);
        *(part ? &v.im : &v.re) = x.re;
    }
    if (n->kind == PN_ELT && n->op == HLO_CONVERT && n->dtype == SD_F32 &&
        n->arg[0]->dtype == SD_BF16)
        emit_note_widened(e, v.re);
    return v;
}
