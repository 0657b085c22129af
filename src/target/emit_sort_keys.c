/* Sorting a row on the host where the comparator is an order by numbers: codes
 * are made of the keys, vector by vector, the device library's radix sort puts
 * items (a code and what moves with it) in order, and the results are written
 * from them.
 *
 *   half       lower half of an item      where
 *   32 or 64   the element's bits         one operand, which fits
 *   32 or 64   the element's number       else; results are then gathered
 *
 * Where only the first few are wanted, codes of a block at a time go through
 * dl_few_take, which keeps candidates only. */
#include "dl_sort.h"
#include "emit.h"

static_assert(PLAN_SORT_FEW == DL_SORT_FEW, "plan and device library differ");
static_assert(PLAN_SORT_COUNTS == DL_SORT_COUNTS, "likewise");
static_assert(DL_FEW_ROOM(100) == 200 + PLAN_SORT_FEW, "as in plan_sort_place");
static_assert(sizeof(dl_few) <= 64, "likewise");

typedef struct {
    emit *e;
    const plan_sort *s;
    plan_sort_areas at;
    LLVMTypeRef code;         /* an integer */
    LLVMValueRef from, to;    /* the row's first element, of its results */
    bool carries;             /* items carry the element's bits */
    int w;                    /* elements at once */
} keyed;

/* Element i of integers of that type behind p. */
static LLVMValueRef element(keyed *k, LLVMTypeRef t, LLVMValueRef p,
                            LLVMValueRef i)
{
    i = LLVMBuildIntCast2(k->e->b, i, k->e->i64, true, "");
    return LLVMBuildGEP2(k->e->b, t, p, &i, 1, "");
}

static LLVMValueRef load(keyed *k, LLVMTypeRef t, LLVMValueRef p, int w)
{
    LLVMValueRef v = LLVMBuildLoad2(k->e->b, emit_widen(t, w), p, "");

    LLVMSetAlignment(v, LLVMGetIntTypeWidth(t) / 8);
    return v;
}

static void store(keyed *k, LLVMTypeRef t, LLVMValueRef v, LLVMValueRef p)
{
    LLVMSetAlignment(LLVMBuildStore(k->e->b, v, p), LLVMGetIntTypeWidth(t) / 8);
}

/* ---- codes ---- */

LLVMValueRef emit_sort_code(emit *e, const plan_sort *s, const emit_value *arg,
                            LLVMTypeRef type, int w)
{
    emit_value *key = emit_values(e, s->keys->nroot);
    LLVMValueRef all = NULL;

    emit_body(e, s->keys, arg, key);
    for (int n = 0; n < s->keys->nroot; n++) {
        sd_dtype t = s->keys->root[n]->dtype;
        LLVMValueRef c = emit_order_code(e, emit_splat(e, key[n].re, w), t);
        int bits = SD_MAX(sd_dtype_table[t].bits, 8);

        if (s->down[n])
            c = emit_not(e, c);
        c = LLVMBuildIntCast2(e->b, c, emit_widen(type, w), false, "");
        if (all)
            c = emit_or(e, emit_shl(e, all, emit_int_like(all, bits)), c);
        all = c;
    }
    return all;
}

static emit_value read_operand(keyed *k, int o, LLVMValueRef i, int w)
{
    emit *e = k->e;

    if (k->s->in[o] < 0) {
        if (w > 1)
            i = emit_sum(e, emit_splat(e, i, w),
                         emit_iota(e, LLVMTypeOf(i), w));
        return emit_place(e, k->s->type[o], i);
    }
    i = emit_product(e, i, emit_si(e, k->s->inner));
    i = emit_sum(e, k->from, i);
    return emit_mem_read(e, k->s->type[o], e->slot[k->s->in[o]], i, w);
}

static LLVMValueRef widened(keyed *k, LLVMValueRef v, LLVMTypeRef t)
{
    return LLVMBuildIntCast2(k->e->b, v, emit_widen(t, emit_width(v)), false,
                             "");
}

/* The codes of elements [i, i + w). */
static LLVMValueRef codes(keyed *k, LLVMValueRef i, int w)
{
    emit *e = k->e;
    const plan_body *keys = k->s->keys;
    emit_value *arg = emit_values(e, keys->nparam);

    plan_for_each_node(x, keys)
        if (x->kind == PN_PARAM)
            arg[x->out] = read_operand(k, x->out / 2, i, w);
    return emit_sort_code(e, k->s, arg, k->code, w);
}

/* ---- items ---- */

static LLVMTypeRef bits_type(keyed *k, sd_dtype t)
{
    return LLVMIntTypeInContext(k->e->cx, (unsigned)sd_dtype_bytes(t) * 8);
}

/* What items carry of elements [i, i + w). */
static LLVMValueRef carried(keyed *k, LLVMValueRef i, int w)
{
    emit *e = k->e;
    LLVMTypeRef t;

    if (!k->carries) {
        i = LLVMBuildIntCast2(e->b, i, e->i64, true, "");
        return w == 1
                   ? i
                   : emit_sum(e, emit_splat(e, i, w), emit_iota(e, e->i64, w));
    }
    t = bits_type(k, k->s->type[0]);
    i = emit_product(e, i, emit_si(e, k->s->inner));
    i = emit_sum(e, k->from, i);
    return widened(k, load(k, t, element(k, t, e->slot[k->s->in[0]], i), w),
                   e->i64);
}

static void write_items(keyed *k, LLVMValueRef i, LLVMValueRef code,
                        LLVMValueRef low, int w)
{
    emit *e = k->e;
    LLVMValueRef p = emit_local_at(k->e, k->at.a), both;
    int lane[2 * EMIT_MAX_LANES];

    code = widened(k, code, e->i64);
    if (k->at.half == 32) {
        both = emit_or(e, emit_shl(e, code, emit_int_like(code, 32)), low);
        store(k, e->i64, both, element(k, e->i64, p, i));
        return;
    }
    p = element(k, e->i64, p, emit_product(e, i, emit_si(e, 2)));
    if (w == 1) {
        store(k, e->i64, low, p);
        store(k, e->i64, code, element(k, e->i64, p, emit_si(e, 1)));
        return;
    }
    for (int n = 0; n < w; n++) {
        lane[2 * n] = n;
        lane[2 * n + 1] = w + n;
    }
    store(k, e->i64, emit_shuffle(e, low, code, lane, 2 * w), p);
}

/* Vectors that would reach beyond the row begin earlier. */
static LLVMValueRef start_of(keyed *k, LLVMValueRef i)
{
    emit *e = k->e;
    LLVMValueRef last = emit_si(e, k->s->n - k->w);

    if (k->s->n % k->w == 0)
        return i;
    return emit_smaller(e, i, last);
}

/* The name of a device function over items of that kind. */
static const char *name_of(keyed *k, const char *stem)
{
    return sd_arena_fmt(k->e->a, "%s_%d", stem, k->at.half);
}

/* All in order: where they then are. */
static LLVMValueRef sort_all(keyed *k)
{
    emit *e = k->e;
    LLVMValueRef i;
    emit_loop l;

    emit_loop_open(e, &l, emit_si(e, 0), emit_si(e, k->s->n), k->w);
    i = start_of(k, l.at);
    write_items(k, i, codes(k, i, k->w), carried(k, i, k->w), k->w);
    emit_loop_close(e, &l);
    return emit_devlib_code(
        e, name_of(k, "dl_sort"), e->ptr,
        (LLVMValueRef[]){emit_local_at(k->e, k->at.a),
                         emit_local_at(k->e, k->at.b),
                         emit_local_at(k->e, k->at.count), emit_i64(e, k->s->n),
                         LLVMConstInt(e->i32, (unsigned)k->s->code_bits, 0)},
        5);
}

/* ---- the few ---- */

static void begin_few(keyed *k)
{
    emit *e = k->e;
    LLVMValueRef p = emit_local_at(k->e, k->at.state);
    int64_t bits = 0;

    while (k->s->n >> bits)
        bits++;
    const dl_few f = {.k = k->s->keep, .number_bits = bits, .limit = ~0ull};
    const int64_t *word = (const int64_t *)&f;

    for (size_t n = 0; n < sizeof f / sizeof *word; n++)
        store(k, e->i64, emit_i64(e, word[n]),
              element(k, e->i64, p, emit_si(e, (int64_t)n)));
}

static void take_block(keyed *k, LLVMValueRef first)
{
    emit *e = k->e;
    LLVMValueRef n = emit_si(e, k->s->n), end, i, at;
    LLVMValueRef p = emit_local_at(k->e, k->at.codes);
    emit_loop l;

    end = emit_plus(e, first, PLAN_SORT_BLOCK);
    end = emit_smaller(e, end, n);
    emit_loop_open(e, &l, first, end, k->w);
    i = start_of(k, l.at);
    at = emit_minus(e, i, first);
    store(k, k->code, codes(k, i, k->w), element(k, k->code, p, at));
    emit_loop_close(e, &l);
    emit_devlib_code(
        e, name_of(k, "dl_few_take"), LLVMVoidTypeInContext(e->cx),
        (LLVMValueRef[]){emit_local_at(k->e, k->at.state),
                         emit_local_at(k->e, k->at.a), p,
                         LLVMBuildIntCast2(e->b, first, e->i64, true, ""),
                         LLVMBuildIntCast2(e->b, emit_minus(e, end, first),
                                           e->i64, true, "")},
        5);
}

static LLVMValueRef choose_few(keyed *k)
{
    emit *e = k->e;
    emit_loop l;

    begin_few(k);
    emit_loop_open(e, &l, emit_si(e, 0), emit_si(e, k->s->n), PLAN_SORT_BLOCK);
    take_block(k, l.at);
    emit_loop_close(e, &l);
    return emit_devlib_code(
        e, name_of(k, "dl_few_end"), e->ptr,
        (LLVMValueRef[]){
            emit_local_at(k->e, k->at.state), emit_local_at(k->e, k->at.a),
            emit_local_at(k->e, k->at.b), emit_local_at(k->e, k->at.count),
            LLVMConstInt(e->i32, (unsigned)k->s->code_bits, 0)},
        5);
}

/* ---- results ---- */

static LLVMValueRef result_at(keyed *k, LLVMValueRef i)
{
    i = emit_product(k->e, i, emit_si(k->e, k->s->inner));
    return emit_sum(k->e, k->to, i);
}

/* The lower half of item i. */
static LLVMValueRef low_of(keyed *k, LLVMValueRef items, LLVMValueRef i, int w)
{
    emit *e = k->e;
    LLVMTypeRef half = k->at.half == 32 ? e->i32 : e->i64;

    if (w > 1) /* of 32 bits */
        return emit_trunc(e, load(k, e->i64, element(k, e->i64, items, i), w),
                          emit_widen(e->i32, w));
    i = emit_product(e, i, emit_si(e, 2));
    return load(k, half, element(k, half, items, i), 1);
}

static void write_carried(keyed *k, LLVMValueRef items)
{
    emit *e = k->e;
    LLVMTypeRef t = bits_type(k, k->s->type[0]);
    int w = k->at.half == 32 && k->s->keep == k->s->n ? k->w : 1;
    LLVMValueRef i, v;
    emit_loop l;

    emit_loop_open(e, &l, emit_si(e, 0), emit_si(e, k->s->keep), w);
    i = w > 1 ? start_of(k, l.at) : l.at;
    v = LLVMBuildIntCast2(e->b, low_of(k, items, i, w), emit_widen(t, w), false,
                          "");
    store(k, t, v, element(k, t, e->slot[k->s->first_out], result_at(k, i)));
    emit_loop_close(e, &l);
}

static void write_numbered(keyed *k, LLVMValueRef items)
{
    emit *e = k->e;
    LLVMValueRef number;
    emit_loop l;

    emit_loop_open(e, &l, emit_si(e, 0), emit_si(e, k->s->keep), 1);
    number = low_of(k, items, l.at, 1);
    number = LLVMBuildIntCast2(e->b, number, e->si, false, "");
    for (int i = 0; i < k->s->nout; i++) {
        int o = k->s->out[i];

        emit_mem_write(e, k->s->type[o], e->slot[k->s->first_out + i],
                       result_at(k, l.at), read_operand(k, o, number, 1));
    }
    emit_loop_close(e, &l);
}

void emit_sort_row_by_keys(emit *e, LLVMValueRef r)
{
    const plan_sort *s = e->k->sort;
    keyed k = {.e = e, .s = s};
    LLVMValueRef items;

    plan_sort_place(s, &k.at);
    k.code = k.at.half == 32 ? e->i32 : e->i64;
    k.from = emit_sort_base(e, r, s->n);
    k.to = emit_sort_base(e, r, s->keep);
    k.w = s->lanes;
    k.carries = s->nop == 1 && s->in[0] >= 0 && !k.at.few &&
                s->n > PLAN_SORT_FEW && !sd_is_complex(s->type[0]) &&
                (int)sd_dtype_bytes(s->type[0]) * 8 <= k.at.half;
    items = k.at.few ? choose_few(&k) : sort_all(&k);
    if (k.carries)
        write_carried(&k, items);
    else
        write_numbered(&k, items);
}
