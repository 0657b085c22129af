/* A kernel of a plan that sorts, or adds what came in order by buckets. */
#include "plan_run.h"

#include "hlo_scalar.h"

typedef struct {
    const plan_kernel *k;
    char **slot;
    sd_arena *a;
} sorting;

/* ---- by a comparison ---- */

static bool is_less(const plan_sort *s, char *const *x, int64_t i, int64_t j)
{
    plan_run_value arg[16] = {{{0}}}, got[1];

    for (int o = 0; o < s->nop; o++) {
        size_t b = sd_dtype_bytes(s->type[o]);

        memcpy(arg[2 * o].b, x[o] + (size_t)i * b, b);
        memcpy(arg[2 * o + 1].b, x[o] + (size_t)j * b, b);
    }
    plan_run_body(s->less, arg, got);
    return got[0].b[0];
}

/* Operand o of a row, element by element. */
static void read_line(sorting *r, const plan_sort *s, int o, int64_t base,
                      int64_t inner, char *line)
{
    size_t b = sd_dtype_bytes(s->type[o]);

    for (int64_t i = 0; i < s->n; i++)
        if (s->in[o] < 0)
            sd_scalar_of_s64(s->type[o], i, line + (size_t)i * b);
        else
            memcpy(line + (size_t)i * b,
                   r->slot[s->in[o]] + (size_t)(base + i * inner) * b, b);
}

/* The order of elements from .. to of a row, in at: halves are merged, of equal
 * elements that of the first half first.  `other` is as long as at. */
static void sort_span(const plan_sort *s, char *const *line, int64_t from,
                      int64_t to, int64_t *at, int64_t *other)
{
    int64_t mid = from + (to - from) / 2, i = from, j = mid;

    if (to - from < 2) {
        at[from] = from;
        return;
    }
    sort_span(s, line, from, mid, at, other);
    sort_span(s, line, mid, to, at, other);
    for (int64_t k = from; k < to; k++) {
        bool first = j == to || (i < mid && !is_less(s, line, at[j], at[i]));

        other[k] = first ? at[i++] : at[j++];
    }
    memcpy(at + from, other + from, (size_t)(to - from) * sizeof *at);
}

/* Runs of so many elements come in order, and go in pairs. */
static int64_t span_of(const sorting *r, const plan_sort *s)
{
    int64_t width;

    if (s->step == PLAN_SORT_ROWS)
        return s->n;
    if (s->step == PLAN_SORT_TILES)
        return s->piece;
    memcpy(&width, r->slot[s->first_out + s->nout], sizeof width);
    return 2 * width;
}

/* Element i of a row in order, as result number `to` of those. */
static void put_sorted(sorting *r, const plan_sort *s, char *const *line,
                       int64_t i, int64_t to)
{
    for (int q = 0; q < s->nout; q++) {
        size_t b = sd_dtype_bytes(s->type[s->out[q]]);

        memcpy(r->slot[s->first_out + q] + (size_t)to * b,
               line[s->out[q]] + (size_t)i * b, b);
    }
}

/* Runs of `span` elements of a row, of each of which the first ones. */
static void sort_line(sorting *r, const plan_sort *s, char *const *line,
                      int64_t row, int64_t *at)
{
    int64_t span = span_of(r, s), to;
    bool tiles = s->step == PLAN_SORT_TILES;
    int64_t inner = tiles ? 1 : s->inner, spans = (s->n + span - 1) / span;
    int64_t kept = SD_MIN(s->keep, span), last = s->n - (spans - 1) * span;
    int64_t length = tiles ? (spans - 1) * kept + SD_MIN(kept, last) : s->keep;

    to = row / inner * inner * length + row % inner;
    for (int64_t i = 0; i < spans; i++) {
        int64_t from = i * span, end = SD_MIN(from + span, s->n);

        sort_span(s, line, from, end, at, at + s->n + 1);
        end = SD_MIN(end, tiles ? from + kept : s->keep);
        for (int64_t j = from; j < end; j++, to += inner)
            put_sorted(r, s, line, at[j], to);
    }
}

static void sort_rows(sorting *r)
{
    const plan_sort *s = r->k->sort;
    char *line[8];
    int64_t *at = sd_arena_array(r->a, int64_t, 2 * s->n + 2);
    int64_t inner = s->step == PLAN_SORT_MERGE ? 1 : s->inner;

    for (int o = 0; o < s->nop; o++)
        line[o] = sd_arena_alloc(r->a, (size_t)s->n * 16);
    for (int64_t row = 0; row < s->rows; row++) {
        for (int o = 0; o < s->nop; o++)
            read_line(r, s, o, row / inner * inner * s->n + row % inner, inner,
                      line[o]);
        sort_line(r, s, line, row, at);
    }
}

/* ---- by a digit of the codes ---- */

/* As emit_order_code has it: integers by value, floats in their total order. */
static uint64_t order_code(sd_dtype t, const plan_run_value *v)
{
    int bits = SD_MAX(sd_dtype_table[t].bits, 8);
    uint64_t x = 0, sign = UINT64_C(1) << (bits - 1), all = sign * 2 - 1;

    memcpy(&x, v->b, sd_dtype_bytes(t));
    if (sd_is_float(t))
        return x & sign ? ~x & all : x | sign;
    return sd_is_signed(t) ? x ^ sign : x;
}

/* Of element i of the row. */
static int64_t digit_of(sorting *r, const plan_sort *s, char *const *line,
                        int64_t i)
{
    plan_run_value arg[16] = {{{0}}}, key[16];
    uint64_t code = 0;
    int64_t shift;

    for (int o = 0; o < s->nop; o++) {
        size_t b = sd_dtype_bytes(s->type[o]);

        memcpy(arg[2 * o].b, line[o] + (size_t)i * b, b);
    }
    plan_run_body(s->keys, arg, key);
    for (int n = 0; n < s->keys->nroot; n++) {
        sd_dtype t = s->keys->root[n]->dtype;
        int bits = SD_MAX(sd_dtype_table[t].bits, 8);
        uint64_t c = order_code(t, &key[n]);

        c = s->down[n] ? ~c << (64 - bits) >> (64 - bits) : c;
        code = bits < 64 ? code << bits | c : c;
    }
    memcpy(&shift, r->slot[s->first_out + s->nout + 1], sizeof shift);
    return (int64_t)(code >> shift & ((UINT64_C(1) << s->bits) - 1));
}

/* Of a row: the number of a digit and a piece. */
static uint32_t *number_of(sorting *r, const plan_sort *s, int64_t row,
                           int64_t digit, int64_t piece)
{
    uint32_t *n = (uint32_t *)r->slot[s->first_out + s->nout];

    return &n[((row << s->bits) + digit) * (plan_sort_pieces(s) + 1) + piece];
}

static void count_row(sorting *r, const plan_sort *s, char *const *line,
                      int64_t row)
{
    for (int64_t d = 0; d < 1 << s->bits; d++)
        for (int64_t p = 0; p < plan_sort_pieces(s); p++)
            *number_of(r, s, row, d, p) = 0;
    for (int64_t i = 0; i < s->n; i++)
        ++*number_of(r, s, row, digit_of(r, s, line, i), i / s->piece);
}

static void sum_row(sorting *r, const plan_sort *s, int64_t row)
{
    for (int64_t d = 0; d < 1 << s->bits; d++) {
        uint32_t sum = 0;

        for (int64_t p = 0; p <= plan_sort_pieces(s); p++) {
            uint32_t *n = number_of(r, s, row, d, p), was = *n;

            *n = sum;
            sum += was;
        }
    }
}

static void move_row(sorting *r, const plan_sort *s, char *const *line,
                     int64_t row)
{
    int64_t pieces = plan_sort_pieces(s), digits = (int64_t)1 << s->bits;
    int64_t base =
        row / s->inner_out * s->inner_out * s->keep + row % s->inner_out;

    for (int64_t p = 0; p < pieces; p++) {
        int64_t *to = sd_arena_array(r->a, int64_t, digits), before = 0;
        int64_t end = SD_MIN((p + 1) * s->piece, s->n);

        for (int64_t d = 0; d < digits; d++) {
            to[d] = before + *number_of(r, s, row, d, p);
            before += *number_of(r, s, row, d, pieces);
        }
        for (int64_t i = p * s->piece; i < end; i++) {
            int64_t at = to[digit_of(r, s, line, i)]++;

            if (at < s->keep)
                put_sorted(r, s, line, i, base + at * s->inner_out);
        }
    }
}

static void sort_by_digits(sorting *r)
{
    const plan_sort *s = r->k->sort;
    char *line[8];

    for (int o = 0; o < s->nop; o++)
        line[o] = sd_arena_alloc(r->a, (size_t)s->n * 16);
    for (int64_t row = 0; row < s->rows; row++) {
        for (int o = 0; o < s->nop; o++)
            read_line(r, s, o,
                      row / s->inner * s->inner * s->n + row % s->inner,
                      s->inner, line[o]);
        if (s->step == PLAN_SORT_COUNT)
            count_row(r, s, line, row);
        else if (s->step == PLAN_SORT_SUM)
            sum_row(r, s, row);
        else
            move_row(r, s, line, row);
    }
}

void plan_run_sort(const plan_kernel *k, char **slot, sd_arena *a)
{
    sorting r = {k, slot, a};

    if (plan_sort_has_digits(k->sort))
        sort_by_digits(&r);
    else
        sort_rows(&r);
}

/* The updates of a batch in the order of the list: all of a bucket stand side
 * by side, and say so by their places. */
void plan_run_buckets(const plan_kernel *k, char **slot)
{
    const plan_buckets *b = k->buckets;
    const uint32_t *place = (const uint32_t *)slot[0];

    for (int64_t i = 0; i < b->batches * b->n; i++) {
        plan_run_value arg[2] = {{{0}}}, out[1];
        char *at = slot[2] + (size_t)(i / b->n * b->places + place[i]) * 4;

        if (place[i] == UINT32_MAX)
            continue;
        memcpy(arg[0].b, at, 4);
        memcpy(arg[1].b, slot[1] + i * 4, 4);
        plan_run_body(b->body, arg, out);
        memcpy(at, out[0].b, 4);
    }
}
