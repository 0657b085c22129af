/* Short rows side by side on the host (plan_shifted.c).  The rows of a vector
 * of LANE, or of a few such vectors, are `row` whole vectors of memory, as wide
 * as they come.  Each number of them becomes the sum of the `row` numbers from
 * it on, in order, and every row's first is its sum. */
#include "emit.h"

typedef struct {
    emit *e;
    const plan_node *n; /* the sum */
    sd_dtype t;         /* as which numbers are added */
    int op, row, wide;  /* of a vector of memory: its numbers */
    LLVMValueRef at;    /* of the first row */
    LLVMValueRef *sum;  /* [row]: a vector of sums each */
} shifted;

/* The last one begins early, so that none reaches beyond the last row. */
static int start_of(const shifted *s, int j)
{
    return j < s->row - 1 ? j * s->wide : s->row * (s->wide - 1) + 1 - s->wide;
}

static LLVMValueRef read_at(const shifted *s, int number)
{
    LLVMValueRef p = emit_element(s->e, s->t, s->at, emit_si(s->e, number));

    return emit_vector_read(s->e, s->t, p, NULL, s->wide);
}

static LLVMValueRef add_up(const shifted *s, int j)
{
    sd_dtype t[2] = {s->t, s->t};
    emit_value x[2] = {{read_at(s, start_of(s, j)), NULL}};

    for (int i = 1; i < s->row; i++) {
        x[1].re = read_at(s, start_of(s, j) + i);
        x[0] = emit_elt(s->e, s->op, NULL, s->t, 2, x, t);
    }
    return x[0].re;
}

/* Lanes [from, + n) of v: of whole registers it takes an instruction or none.
 */
static LLVMValueRef piece(emit *e, LLVMValueRef v, int from, int n)
{
    int lane[EMIT_WIDEST];

    for (int i = 0; i < n; i++)
        lane[i] = from + i;
    return n == emit_width(v) ? v : emit_shuffle(e, v, NULL, lane, n);
}

/* Puts into *all, of e->w rows from row `first` on, those whose sums begin in
 * lanes [from, + n) of vector j. */
static void take_piece(const shifted *s, int first, int j, int from, int n,
                       LLVMValueRef *all)
{
    int lane[EMIT_MAX_LANES], join[EMIT_MAX_LANES], w = s->e->w;
    bool any = false;
    LLVMValueRef v;

    for (int i = 0; i < w; i++) {
        int at = (first + i) * s->row, of = SD_MIN(at / s->wide, s->row - 1);
        bool here = of == j && at - start_of(s, j) >= from &&
                    at - start_of(s, j) < from + n;

        any |= here;
        lane[i] = here ? at - start_of(s, j) - from : -1;
        join[i] = here ? w + i : i;
    }
    if (!any)
        return;
    v = piece(s->e, s->sum[j], from, n);
    v = emit_shuffle(s->e, v, NULL, lane, w);
    *all = *all ? emit_shuffle(s->e, *all, v, join, w) : v;
}

/* The sums of e->w rows from row `first` on.  Of rows of two, four and eight
 * they are what is left of wider numbers, else each register has some. */
static LLVMValueRef take_rows(const shifted *s, int first)
{
    bool halves = !(s->row & (s->row - 1));
    int w = s->e->w, n = halves ? SD_MIN(s->row * w, s->wide) : w;
    LLVMValueRef all = NULL;

    for (int j = 0; j < s->row; j++)
        for (int from = 0; from < s->wide; from += n)
            take_piece(s, first, j, from, n, &all);
    return all;
}

static shifted begin(emit *e, const plan_node *n, int copy, int vectors)
{
    const plan_node *x = n->arg[0];
    shifted s = {.e = e, .n = n, .t = x->dtype, .op = n->body->op};
    LLVMValueRef base = e->slot[x->slot], at;

    if (s.t == SD_PRED) { /* as a byte: 0 is the least */
        s.t = SD_U8;
        s.op = s.op == HLO_AND ? HLO_MINIMUM : s.op;
    }
    s.row = (int)e->k->axis[plan_last_axis(n->over)].extent;
    s.wide = vectors * e->w;
    s.sum = sd_arena_array(e->a, LLVMValueRef, s.row);
    emit_address(e, x->off, copy, x->dtype, &base, &at);
    s.at = emit_element(e, x->dtype, base, at);
    return s;
}

/* So many vectors of LANE that their rows are whole vectors of memory. */
static int vectors_of(const emit *e, const plan_node *n)
{
    int bytes = (int)sd_dtype_bytes(n->arg[0]->dtype);
    int most = e->vector_bits / 8 / bytes / e->w;

    return (int)sd_gcd(SD_MAX(most, 1), e->axis[e->lane].n);
}

void emit_shifted(emit *e, const plan_node *n)
{
    const emit_axis *lane = &e->axis[e->lane];
    int vectors = vectors_of(e, n);

    for (int c = 0; c < lane->n; c += vectors) {
        shifted s = begin(e, n, c * lane->stride, vectors);

        for (int j = 0; j < s.row; j++)
            s.sum[j] = add_up(&s, j);
        for (int i = 0; i < vectors; i++) {
            LLVMValueRef v = take_rows(&s, i * e->w);

            emit_reduce_give(
                e, n, (c + i) * lane->stride,
                (emit_value){emit_of_memory(e, n->dtype, v), NULL});
        }
    }
}
