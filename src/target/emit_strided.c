/* Vectors of every second, third, ... element, and vectors that are woven into
 * one: whole vectors to and from memory, and shuffles, since a gather or a
 * scatter goes to memory once an element. */
#include "emit.h"

/* Where vector j of those that are read begins.  The last one begins early, so
 * that none reaches beyond the last element that is wanted. */
static int start_of(int j, int stride, int w)
{
    return j < stride - 1 ? j * w : stride * (w - 1) + 1 - w;
}

/* Which vector has element i of the result. */
static int source_of(int i, int stride, int w)
{
    return SD_MIN(i * stride / w, stride - 1);
}

/* The mask of vector j: true for elements that are wanted and allowed. */
static LLVMValueRef part_of_mask(emit *e, LLVMValueRef mask, int j, int stride,
                                 int w)
{
    int lane[EMIT_MAX_LANES];

    for (int p = 0; p < w; p++)
        lane[p] = w;
    for (int i = 0; i < w; i++)
        if (source_of(i, stride, w) == j)
            lane[i * stride - start_of(j, stride, w)] = i;
    return emit_shuffle(e, mask, LLVMConstNull(LLVMTypeOf(mask)), lane, w);
}

/* One by one: far apart, so that a vector of memory has one of them. */
LLVMValueRef emit_read_steps(emit *e, sd_dtype part, LLVMValueRef p,
                             int64_t stride, int w)
{
    LLVMTypeRef t = emit_mem_type(e, part);
    LLVMValueRef v = LLVMGetPoison(emit_widen(t, w));

    for (int i = 0; i < w; i++) {
        LLVMValueRef q = emit_behind(e, t, p, emit_si(e, i * stride));

        v = emit_insert(e, v, emit_vector_read(e, part, q, NULL, 1), i);
    }
    return v;
}

LLVMValueRef emit_read_strided(emit *e, sd_dtype part, LLVMValueRef p,
                               LLVMValueRef mask, int stride, int w)
{
    LLVMValueRef all = NULL, v, at, some;
    int lane[EMIT_MAX_LANES];

    for (int j = 0; j < stride; j++) {
        some = mask ? part_of_mask(e, mask, j, stride, w) : NULL;
        at = emit_element(e, part, p, emit_si(e, start_of(j, stride, w)));
        v = emit_vector_read(e, part, at, some, w);
        for (int i = 0; i < w; i++)
            lane[i] = source_of(i, stride, w) == j
                          ? i * stride - start_of(j, stride, w) + w
                          : i;
        all = all ? emit_shuffle(e, all, v, lane, w)
                  : emit_shuffle(e, v, v, lane, w);
    }
    return all;
}

/* n vectors of memory, from p on. */
static void read_row(emit *e, sd_dtype part, LLVMValueRef p, int n,
                     LLVMValueRef *in)
{
    for (int j = 0; j < n; j++) {
        LLVMValueRef at = emit_element(e, part, p, emit_si(e, j * e->w));

        in[j] = emit_vector_read(e, part, at, NULL, e->w);
    }
}

/* Element from[i] of the vectors `in`, which lie side by side, for each lane:
 * each vector in turn adds what it has of them. */
static LLVMValueRef pick(emit *e, LLVMValueRef const *in, int n,
                         const int *from)
{
    int lane[EMIT_MAX_LANES], w = e->w;
    LLVMValueRef v = NULL;

    for (int j = 0; j < n; j++) {
        bool any = false;

        for (int i = 0; i < w; i++) {
            bool here = from[i] / w == j;

            any |= here;
            lane[i] = here ? from[i] % w + w : v ? i : from[i] % w;
        }
        if (any)
            v = emit_shuffle(e, v ? v : in[j], in[j], lane, w);
    }
    return v;
}

/* Bytes in rows of up to four: a register has a word for each row, and is the
 * widened byte where its other bytes are 0. */
static bool is_widened(const plan_woven *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->at[i] && !s->at[i]->words)
            return false;
    return s->n <= EMIT_WORD;
}

/* Rows of three words each in a quarter of a register, which shuffles within
 * its quarters at once; whole rows of two and four. */
static LLVMValueRef read_words(emit *e, const plan_woven *s, LLVMValueRef p)
{
    LLVMTypeRef words = emit_widen(e->i32, s->n * e->w / 4);
    LLVMValueRef v = emit_vector_read(e, SD_U8, p, NULL, s->n * e->w);
    int lane[EMIT_MAX_LANES];

    if (s->n != 3)
        return v;
    for (int i = 0; i < e->w; i++)
        lane[i] = i / 4 * 3 + SD_MIN(i % 4, 2);
    return emit_as(e, emit_shuffle(e, emit_as(e, v, words), NULL, lane, e->w),
                   emit_widen(e->i8, EMIT_WIDEST));
}

/* Each is cut to a byte again, which whoever widens it undoes. */
static void unweave_bytes(emit *e, const plan_woven *s, LLVMValueRef p,
                          LLVMValueRef *v)
{
    LLVMValueRef in = read_words(e, s, p), zero = LLVMConstNull(LLVMTypeOf(in));
    int lane[EMIT_WIDEST], w = e->w, bytes = emit_width(in), row = bytes / w;
    LLVMTypeRef word = LLVMIntTypeInContext(e->cx, 8 * (unsigned)row);

    for (int k = 0; k < s->n; k++) {
        for (int i = 0; i < bytes; i++) {
            int at = s->step < 0 ? w - 1 - i / row : i / row;

            at = s->n == 3 ? at / 4 * 16 + at % 4 * 3 : at * row;
            lane[i] = i % row ? bytes : at + k;
        }
        v[k] = emit_shuffle(e, in, zero, lane, bytes);
        v[k] = emit_trunc(e, emit_as(e, v[k], emit_widen(word, w)),
                          emit_widen(e->i8, w));
    }
}

/* v[k] has strand k of those from p on, the last element first if they are
 * turned. */
static void unweave(emit *e, const plan_woven *s, LLVMValueRef p,
                    LLVMValueRef *v)
{
    LLVMValueRef in[PLAN_MOST_WOVEN];
    int from[EMIT_MAX_LANES], w = e->w;

    if (is_widened(s)) {
        unweave_bytes(e, s, p, v);
        return;
    }
    read_row(e, s->at[0]->dtype, p, s->n, in);
    for (int k = 0; k < s->n; k++) {
        for (int i = 0; i < w; i++)
            from[i] = (s->step < 0 ? w - 1 - i : i) * s->n + k;
        v[k] = s->at[k] ? pick(e, in, s->n, from) : NULL;
    }
}

/* Three at once: the third has the place of a pair. */
static LLVMValueRef weave_three(emit *e, LLVMValueRef const *x)
{
    int lane[4 * EMIT_MAX_LANES], w = emit_width(x[0]);
    LLVMValueRef pair, third;

    for (int i = 0; i < 2 * w; i++)
        lane[i] = i;
    pair = emit_shuffle(e, x[0], x[1], lane, 2 * w);
    third = emit_shuffle(e, x[2], x[2], lane, 2 * w);
    for (int i = 0; i < 3 * w; i++)
        lane[i] = i % 3 * w + i / 3;
    return emit_shuffle(e, pair, third, lane, 3 * w);
}

LLVMValueRef emit_weave(emit *e, LLVMValueRef const *x, int n)
{
    LLVMValueRef half[2][PLAN_MOST_WOVEN];
    int lane[PLAN_MOST_WOVEN * EMIT_MAX_LANES], w = emit_width(x[0]) * n;

    assert(n <= PLAN_MOST_WOVEN && (n == 3 || (n & (n - 1)) == 0));
    if (n == 1)
        return x[0];
    if (n == 3)
        return weave_three(e, x);
    for (int i = 0; i < n; i++)
        half[i % 2][i / 2] = x[i];
    for (int i = 0; i < w; i++)
        lane[i] = i / 2 + i % 2 * (w / 2);
    return emit_shuffle(e, emit_weave(e, half[0], n / 2),
                        emit_weave(e, half[1], n / 2), lane, w);
}

/* Half of two vectors in turns: the first or the second. */
static LLVMValueRef woven_half(emit *e, LLVMValueRef x, LLVMValueRef y,
                               bool second)
{
    int lane[EMIT_MAX_LANES], w = emit_width(x);

    for (int i = 0; i < w; i++)
        lane[i] = i / 2 + i % 2 * w + (second ? w / 2 : 0);
    return emit_shuffle(e, x, y, lane, w);
}

void emit_weave_apart(emit *e, LLVMValueRef const *x, int n, LLVMValueRef *out)
{
    LLVMValueRef in[2][PLAN_MOST_WOVEN] = {0}, half[2][PLAN_MOST_WOVEN];

    if (n == 1) {
        out[0] = x[0];
        return;
    }
    for (int i = 0; i < n; i++)
        in[i % 2][i / 2] = x[i];
    for (int i = 0; i < 2; i++)
        emit_weave_apart(e, in[i], n / 2, half[i]);
    for (int i = 0; i < n; i++)
        out[i] = woven_half(e, half[0][i / 2], half[1][i / 2], i % 2);
}

/* ---- loads that are neighbours ---- */

/* Where the row of strands begins of which a vector has w. */
static LLVMValueRef row_of(emit *e, const plan_woven *s, int copy)
{
    const plan_node *n = s->at[0];
    LLVMValueRef p = e->slot[n->slot], at;

    emit_address(e, n->off, copy, n->dtype, &p, &at);
    if (s->step < 0)
        at = emit_plus(e, at, s->step * (e->w - 1));
    return emit_element(e, n->dtype, p, at);
}

bool emit_strands_load(emit *e, const plan_node *n, int copy, int level,
                       emit_value *out)
{
    const plan_woven *s = n->woven;
    LLVMValueRef v[PLAN_MOST_WOVEN];

    if (!s || emit_mask(e, n->varies, copy))
        return false;
    unweave(e, s, row_of(e, s, copy), v);
    for (int i = 0; i < s->n; i++) {
        emit_value x = {NULL, NULL};

        if (!s->at[i])
            continue;
        x.re = emit_of_memory(e, n->dtype, v[i]);
        if (s->at[i] == n)
            *out = x;
        else
            emit_remember(e, &e->value[s->at[i]->id * e->ncopy + copy], x,
                          level);
    }
    return true;
}

/* ---- stores that are neighbours ---- */

/* Which of the strands is n? */
static int number_of(const plan_woven *s, const plan_node *n)
{
    int i = 0;

    while (s->at[i] != n)
        i++;
    return i;
}

void emit_move(emit *e, const plan_woven *w, LLVMValueRef to, int copy)
{
    const plan_woven *s = w->moved;
    sd_dtype t = w->at[0]->dtype;
    LLVMValueRef in[PLAN_MOST_WOVEN];
    int from[EMIT_MAX_LANES];

    read_row(e, t, row_of(e, s, copy), s->n, in);
    for (int j = 0; j < w->n; j++) {
        for (int i = 0; i < e->w; i++) {
            int at = j * e->w + i, row = at / w->n;

            from[i] = (s->step < 0 ? e->w - 1 - row : row) * s->n +
                      number_of(s, w->at[at % w->n]->arg[0]);
        }
        emit_vector_write(e, t, pick(e, in, s->n, from),
                          emit_element(e, t, to, emit_si(e, j * e->w)), NULL);
    }
}
