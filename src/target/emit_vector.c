/* Memory to and from registers: elements, vectors of them under a mask, complex
 * numbers, which lie as pairs, and vectors at an offset.  emit_memory.c says
 * which of them a node takes. */
#include "emit.h"

/* ---- elements of memory to and from registers ---- */

LLVMValueRef emit_of_memory(emit *e, sd_dtype t, LLVMValueRef v)
{
    if (t == SD_PRED)
        return emit_unequal(e, v, emit_int_like(v, 0));
    return sd_dtype_table[t].bits < 8 ? emit_wrap(e, v, t) : v;
}

LLVMValueRef emit_to_memory(emit *e, sd_dtype t, LLVMValueRef v)
{
    if (t == SD_PRED)
        return emit_zext(e, v, emit_widen(e->i8, emit_width(v)));
    return v;
}

LLVMValueRef emit_element(emit *e, sd_dtype part, LLVMValueRef p,
                          LLVMValueRef index)
{
    return emit_behind(e, emit_mem_type(e, part), p, index);
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

/* masked.store or masked.scatter. */
static void put_masked(emit *e, const char *name, sd_dtype part, LLVMValueRef v,
                       LLVMValueRef p, LLVMValueRef mask)
{
    LLVMTypeRef over[2] = {LLVMTypeOf(v), LLVMTypeOf(p)};
    LLVMValueRef arg[3] = {v, p, mask};

    align_arg(emit_intrinsic2(e, name, over, 2, arg, 3), 1, part);
}

static void masked_store(emit *e, sd_dtype part, LLVMValueRef v, LLVMValueRef p,
                         LLVMValueRef mask)
{
    put_masked(e, "llvm.masked.store", part, v, p, mask);
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

/* Does an instruction of AVX2 gather elements at these offsets?  LLVM does not
 * use it, as it is no faster on old processors than the elements one by one,
 * for which it then writes three times the code: that takes most of the time
 * in which a kernel of several such reads is compiled. */
static bool has_gather(const emit *e, sd_dtype part, LLVMValueRef off)
{
    return !e->gpu && e->vector_bits == 256 && sd_dtype_bytes(part) == 4 &&
           emit_width(off) == 8 &&
           LLVMGetElementType(LLVMTypeOf(off)) == e->i32;
}

/* All lanes: a sign that is set asks for a lane. */
static LLVMValueRef gather_words(emit *e, sd_dtype part, LLVMValueRef p,
                                 LLVMValueRef off)
{
    bool is_float = part == SD_F32;
    LLVMTypeRef t = LLVMVectorType(is_float ? e->f32 : e->i32, 8);
    LLVMValueRef all = LLVMConstAllOnes(LLVMVectorType(e->i32, 8));
    LLVMValueRef arg[5] = {LLVMConstNull(t), p, off, LLVMConstBitCast(all, t),
                           LLVMConstInt(e->i8, 4, 0)};

    return emit_intrinsic2(e,
                           is_float ? "llvm.x86.avx2.gather.d.ps.256"
                                    : "llvm.x86.avx2.gather.d.d.256",
                           NULL, 0, arg, 5);
}

static void scatter(emit *e, sd_dtype part, LLVMValueRef v, LLVMValueRef p,
                    LLVMValueRef mask)
{
    if (!mask)
        mask = emit_splat(e, emit_bool(e, true), emit_width(v));
    put_masked(e, "llvm.masked.scatter", part, v, p, mask);
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
 * One lane always is, as target_mask.c would make it.  Inside a loop that is a
 * kernel all are, because LLVM keeps in registers only what is never
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
        return emit_insert(e, zero, x, r.first);
    for (int i = 0; i < w; i++) /* r.n: the first of the zeros after x */
        lane[i] = i >= r.first && i < r.first + r.n ? i - r.first : r.n;
    return emit_shuffle(e, x, LLVMConstNull(LLVMTypeOf(x)), lane, w);
}

LLVMValueRef emit_vector_read(emit *e, sd_dtype part, LLVMValueRef p,
                              LLVMValueRef mask, int w)
{
    LLVMValueRef zero = LLVMConstNull(emit_widen(emit_mem_type(e, part), w)), v;
    run r;

    if (!mask)
        return plain_load(e, part, p, w);
    r = unmasked_run(e, mask);
    if (!r.n)
        return masked_load(e, part, p, mask, zero);
    v = plain_load(e, part, emit_element(e, part, p, emit_i64(e, r.first)),
                   r.n);
    return put_run(e, zero, v, r);
}

void emit_vector_write(emit *e, sd_dtype part, LLVMValueRef v, LLVMValueRef p,
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
                    emit_element(e, part, p, emit_i64(e, r.first)));
}

static LLVMValueRef reversed(emit *e, LLVMValueRef v)
{
    int lane[EMIT_MAX_LANES], w = emit_width(v);

    for (int i = 0; i < w; i++)
        lane[i] = w - 1 - i;
    return emit_shuffle(e, v, NULL, lane, w);
}

/* ---- pairs: complex numbers lie interleaved ---- */

LLVMValueRef emit_pair_index(emit *e, LLVMValueRef index, int part)
{
    LLVMValueRef v = emit_shl(e, index, emit_int_like(index, 1));

    return part ? emit_or(e, v, emit_int_like(v, 1)) : v;
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

    if (!sd_is_complex(t)) {
        v = plain_load(e, part, emit_element(e, part, p, index), w);
        return (emit_value){emit_of_memory(e, part, v), NULL};
    }
    if (w == 1)
        return (emit_value){
            plain_load(e, part,
                       emit_element(e, part, p, emit_pair_index(e, index, 0)),
                       1),
            plain_load(e, part,
                       emit_element(e, part, p, emit_pair_index(e, index, 1)),
                       1)};
    v = plain_load(
        e, part, emit_element(e, part, p, emit_pair_index(e, index, 0)), 2 * w);
    return split_pairs(e, v, w);
}

void emit_mem_write(emit *e, sd_dtype t, LLVMValueRef p, LLVMValueRef index,
                    emit_value v)
{
    sd_dtype part = sd_dtype_part(t);
    int w = emit_width(v.re);

    if (!v.im) {
        plain_store(e, part, emit_to_memory(e, part, v.re),
                    emit_element(e, part, p, index));
    } else if (w > 1) {
        plain_store(e, part, join_pairs(e, v, w),
                    emit_element(e, part, p, emit_pair_index(e, index, 0)));
    } else {
        plain_store(e, part, v.re,
                    emit_element(e, part, p, emit_pair_index(e, index, 0)));
        plain_store(e, part, v.im,
                    emit_element(e, part, p, emit_pair_index(e, index, 1)));
    }
}

/* ---- vectors at an offset ---- */

static LLVMValueRef offsets(emit *e, const emit_span *a)
{
    if (a->access == EMIT_GATHERED)
        return a->at;
    /* Complex numbers that are reversed, or written under a mask. */
    LLVMValueRef io = emit_iota(e, LLVMTypeOf(a->at), a->w);

    if (a->access == EMIT_STRIDED)
        io = emit_product(e, io, emit_int_like(io, a->stride));
    LLVMValueRef s = emit_splat(e, a->at, a->w);

    return a->access == EMIT_REVERSED ? emit_minus(e, s, io)
                                      : emit_sum(e, s, io);
}

static LLVMValueRef gather_part(emit *e, const emit_span *a, LLVMValueRef off,
                                int part)
{
    if (sd_is_complex(a->t))
        off = emit_pair_index(e, off, part);
    if (has_gather(e, a->part, off))
        return gather_words(e, a->part, a->p, off);
    return gather(e, a->part, emit_element(e, a->part, a->p, off), a->w);
}

static emit_value gather_at(emit *e, const emit_span *a)
{
    LLVMValueRef off = offsets(e, a);
    emit_value v = {NULL, NULL};

    if (a->mask)
        off = emit_select(e, a->mask, off, emit_int_like(off, 0));
    v.re = gather_part(e, a, off, 0);
    if (sd_is_complex(a->t))
        v.im = gather_part(e, a, off, 1);
    return v;
}

/* The parts of complex numbers lie two apart. */
static emit_value strided_at(emit *e, const emit_span *a)
{
    bool pairs = sd_is_complex(a->t);
    int stride = (int)a->stride * (pairs ? 2 : 1);
    emit_value v = {NULL, NULL};

    if (a->access == EMIT_STRIDED && (a->stride < 0 || a->stride > a->w / 2)) {
        v.re = emit_read_steps(
            e, a->part, emit_element(e, a->part, a->p, a->at), a->stride, a->w);
        return v;
    }
    for (int part = 0; part <= pairs; part++) {
        LLVMValueRef at = pairs ? emit_pair_index(e, a->at, part) : a->at;

        *(part ? &v.im : &v.re) =
            emit_read_strided(e, a->part, emit_element(e, a->part, a->p, at),
                              a->mask, stride, a->w);
    }
    return v;
}

static LLVMValueRef ordered_at(emit *e, const emit_span *a)
{
    LLVMValueRef p = emit_element(e, a->part, a->p, a->at);

    p = emit_element(e, a->part, p, emit_si(e, a->order.first));
    p = emit_vector_read(e, a->part, p, NULL, (int)a->order.n);
    return a->order.n == 1 ? emit_splat(e, p, a->w)
                           : emit_shuffle(e, p, p, a->order.lane, a->w);
}

emit_value emit_span_read(emit *e, const emit_span *a)
{
    LLVMValueRef p, v;

    if (a->access == EMIT_STRIDED ||
        (a->access == EMIT_CONTIGUOUS && a->mask && sd_is_complex(a->t))) {
        emit_value s = strided_at(e, a);

        s.re = emit_of_memory(e, a->part, s.re);
        return s;
    }
    if (a->access == EMIT_GATHERED ||
        (sd_is_complex(a->t) && a->access == EMIT_REVERSED)) {
        emit_value g = gather_at(e, a);

        g.re = emit_of_memory(e, a->part, g.re);
        return g;
    }
    if (sd_is_complex(a->t))
        return emit_mem_read(e, a->t, a->p, a->at, a->w);
    if (a->access == EMIT_ORDERED)
        return (emit_value){emit_of_memory(e, a->part, ordered_at(e, a)), NULL};
    p = emit_element(e, a->part, a->p, a->at);
    if (a->access == EMIT_REVERSED) {
        LLVMValueRef back = emit_si(e, 1 - a->w);

        p = emit_element(e, a->part, p, back);
    }
    v = emit_vector_read(
        e, a->part, p,
        a->mask && a->access == EMIT_REVERSED ? reversed(e, a->mask) : a->mask,
        a->w);
    if (a->access == EMIT_REVERSED)
        v = reversed(e, v);
    return (emit_value){emit_of_memory(e, a->part, v), NULL};
}

static void scatter_at(emit *e, const emit_span *a, emit_value v)
{
    LLVMValueRef off = offsets(e, a), o = off;

    if (v.im)
        o = emit_pair_index(e, off, 0);
    scatter(e, a->part, emit_to_memory(e, a->part, v.re),
            emit_element(e, a->part, a->p, o), a->mask);
    if (v.im)
        scatter(e, a->part, v.im,
                emit_element(e, a->part, a->p, emit_pair_index(e, off, 1)),
                a->mask);
}

void emit_span_write(emit *e, const emit_span *a, emit_value v)
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
    x = emit_to_memory(e, a->part, v.re);
    p = emit_element(e, a->part, a->p, a->at);
    if (a->access == EMIT_REVERSED) {
        LLVMValueRef back = emit_si(e, 1 - a->w);

        p = emit_element(e, a->part, p, back);
        x = reversed(e, x);
    }
    emit_vector_write(
        e, a->part, x, p,
        a->mask && a->access == EMIT_REVERSED ? reversed(e, a->mask) : a->mask);
}
