/* What lies across LANE on the host (plan_across.c): squares of LANE and the
 * axis of a pass, whose rows are read and written as they lie in memory and
 * turned in registers.  The copies of the axis are the square's columns.  Of a
 * last step with fewer copies the square begins early, so that it lies in the
 * row; of a row that is shorter than a vector so many elements are taken. */
#include "emit.h"

typedef struct {
    emit *e;
    const plan_node *n;
    sd_dtype part;
    int axis, first; /* the axis of the columns, and the first one's copy */
    int columns, before; /* those that are copies, and those before them */
    int wide; /* elements of a row that are read or written */
    LLVMValueRef at; /* of the first row */
    int64_t apart; /* elements from row to row */
} square;

static bool begin(emit *e, const plan_node *n, int copy, square *s)
{
    const plan_pass *p = &e->k->pass[e->pass];
    int lane_copy = emit_digit(e, copy, e->lane);
    int64_t extent;
    LLVMValueRef base = e->slot[n->slot], at;

    if (!n->across || p->how != PLAN_LANES_ACROSS ||
        e->axis[e->lane].mask[lane_copy])
        return false;
    *s = (square){.e = e, .n = n, .part = sd_dtype_part(n->dtype)};
    s->axis = plan_across_axis(e->k, p);
    extent = e->k->axis[s->axis].extent;
    s->first = copy - emit_digit(e, copy, s->axis) * e->axis[s->axis].stride;
    s->columns = e->axis[s->axis].n;
    s->wide = s->columns;
    if (n->kind == PN_LOAD && extent >= e->w) {
        s->before = e->w - s->columns;
        s->wide = e->w;
    }
    plan_expr_stride(n->off, e->lane, &s->apart);
    emit_address(e, n->off, s->first, s->part, &base, &at);
    at = emit_add(e, at, emit_int_like(at, -s->before));
    s->at = emit_element(e, s->part, base, at);
    return true;
}

static int copy_of(const square *s, int column)
{
    return s->first + column * s->e->axis[s->axis].stride;
}

static LLVMValueRef row(const square *s, int i)
{
    return emit_element(s->e, s->part, s->at, emit_si(s->e, i * s->apart));
}

/* v with `to` elements, those it has first. */
static LLVMValueRef resize(emit *e, LLVMValueRef v, int to)
{
    int lane[EMIT_MAX_LANES], from = emit_width(v);

    for (int i = 0; i < to; i++)
        lane[i] = i < from ? i : 0;
    return from == to ? v : emit_shuffle(e, v, v, lane, to);
}

/* The elements that are read or written; NULL: all of a vector. */
static LLVMValueRef mask_of(const square *s)
{
    LLVMValueRef on[EMIT_MAX_LANES];

    for (int j = 0; j < s->e->w; j++)
        on[j] = emit_bool(s->e, j < s->wide);
    return s->wide < s->e->w ? LLVMConstVector(on, (unsigned)s->e->w) : NULL;
}

/* Without AVX-512 there are no masks of small elements, and a masked store
 * takes some processors long: vectors of other lengths, which LLVM cuts. */
static bool has_masks(const square *s)
{
    const emit *e = s->e;

    return e->vector_bits == 512 ||
           (s->n->kind == PN_LOAD && sd_dtype_bytes(s->part) >= 4);
}

static LLVMValueRef read_row(const square *s, int i)
{
    emit *e = s->e;

    if (has_masks(s))
        return emit_vector_read(e, s->part, row(s, i), mask_of(s), e->w);
    return resize(e, emit_vector_read(e, s->part, row(s, i), NULL, s->wide),
                  e->w);
}

static void write_row(const square *s, int i, LLVMValueRef v)
{
    emit *e = s->e;

    if (has_masks(s))
        emit_vector_write(e, s->part, v, row(s, i), mask_of(s));
    else
        emit_vector_write(e, s->part, resize(e, v, s->wide), row(s, i), NULL);
}

bool emit_across_load(emit *e, const plan_node *n, int copy, int level)
{
    LLVMValueRef v[EMIT_MAX_LANES];
    square s;

    if (!begin(e, n, copy, &s))
        return false;
    for (int i = 0; i < e->w; i++)
        v[i] = read_row(&s, i);
    emit_turn(e, v, e->w);
    for (int i = 0; i < s.columns; i++)
        emit_remember(
            e, &e->value[n->id * e->ncopy + copy_of(&s, i)],
            (emit_value){emit_of_memory(e, s.part, v[s.before + i]), NULL},
            level);
    return true;
}

/* The last column writes all. */
bool emit_across_store(emit *e, const plan_node *n, int copy)
{
    const plan_node *arg = n->arg[0];
    LLVMValueRef v[EMIT_MAX_LANES];
    square s;

    if (!begin(e, n, copy, &s))
        return false;
    if (copy != copy_of(&s, s.columns - 1))
        return true;
    for (int i = 0; i < e->w; i++) {
        int from =
            emit_canon(e, copy_of(&s, SD_MIN(i, s.columns - 1)), arg->varies);
        emit_value x = emit_splat_value(e, emit_node_value(e, arg, from), e->w);

        v[i] = emit_to_memory(e, s.part, x.re);
    }
    emit_turn(e, v, e->w);
    for (int i = 0; i < e->w; i++)
        write_row(&s, i, v[i]);
    return true;
}
