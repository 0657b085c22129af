/* A scan along a long line has one thing to do at a time: it becomes a scan of
 * each piece, a scan of what the pieces come to, and an operation that takes in
 * what came before a piece:
 *
 *     x:       1 2 3 | 4 5  6 | 7  8  9
 *     pieces:  1 3 6 | 4 9 15 | 7 15 24      come to:  6 15 24
 *     before:    0   |   6    |   21
 *     result:  1 3 6 | 10 15 21 | 28 36 45
 *
 * Decided from the program alone, so the order of a sum is the same on every
 * device.  The end of the line is padded to a whole piece, which changes
 * nothing before it. */
#include "terms.h"

enum {
    LONG = 512, /* elements of a line */
    FEW = 64,   /* lines; of more each device has enough to do at once */
    LONGER = 16, /* or lines so many times as long as there are of them */
    PIECE = 64 /* elements, of few lines */
};

static int64_t lines_of(const hlo_inst *in)
{
    const sd_shape *s = in->arg[0]->shape;
    int64_t n = s->dim[in->u.scan.dim];

    return n ? sd_shape_count(s) / n : 0;
}

/* Of many lines a piece has as many elements as there are pieces, so that what
 * they come to are no long lines again. */
static int64_t piece_of(const hlo_inst *in)
{
    int64_t piece = PIECE;

    while (lines_of(in) >= FEW &&
           piece * piece < in->shape->dim[in->u.scan.dim])
        piece *= 2;
    return piece;
}

static bool is_long(const hlo_inst *in)
{
    const sd_shape *s = in->arg[0]->shape;
    int64_t n = s->dim[in->u.scan.dim], lines = lines_of(in);

    return in->narg == 2 && !in->u.scan.exclusive && n >= LONG && lines > 0 &&
           (lines < FEW || lines < n / LONGER) && s->rank < SD_MAX_RANK;
}

/* StableHLO has the order of a reduction open: the function is associative, and
 * the initial value its identity, may be taken in any number of times.  Where
 * some numbers show that it is not so, the line's order is kept. */
static bool is_monoid(const hlo_inst *in)
{
    const hlo_inst *init = in->arg[1];

    return init->op == HLO_CONSTANT && sd_is_float(init->shape->dtype) &&
           pass_can_vectorize(in->comp[0]) && pass_is_monoid(in->comp[0], init);
}

/* ---- pieces ---- */

/* x moved by one along d in the direction of the scan, beginning with `first`.
 */
static hlo_inst *moved(hlo_at p, hlo_inst *x, hlo_inst *first, int d,
                       bool reverse)
{
    int by = reverse ? -1 : 1;

    return hlo_make_pad_dim(p, x, first, d, by, -by);
}

static hlo_inst *in_pieces(hlo_at p, hlo_inst *x, hlo_inst *fill, int d,
                           int64_t n, int64_t piece, bool reverse)
{
    int64_t more = n * piece - x->shape->dim[d];

    x = hlo_make_pad_dim(p, x, fill, d, reverse ? more : 0, reverse ? 0 : more);
    return hlo_make_split(p, x, d, n, piece);
}

static hlo_inst *whole_again(hlo_at p, hlo_inst *y, const sd_shape *s, int d,
                             bool reverse)
{
    int64_t n, from;

    y = hlo_make_join(p, y, d);
    n = s->dim[d];
    from = reverse ? y->shape->dim[d] - n : 0;
    return hlo_make_cut(p, y, d, from, from + n);
}

/* The scan of x along dimension d. */
static hlo_inst *scan_like(hlo_inst *in, hlo_inst *x, hlo_inst *init, int d)
{
    hlo_inst *arg[] = {x, init};
    hlo_inst *y = hlo_inst_clone(in->parent, in, in, arg);

    y->shape = x->shape;
    y->u.scan.dim = d;
    return y;
}

/* What the pieces come to may be a long line itself. */
static hlo_inst *scan_in_two(hlo_inst *in)
{
    hlo_inst *y = hlo_split_scan(in);

    if (y)
        hlo_remove(in);
    return y ? y : in;
}

hlo_inst *hlo_split_scan(hlo_inst *in)
{
    bool reverse = in->u.scan.reverse;
    int d = (int)in->u.scan.dim;
    int64_t piece = piece_of(in), last = reverse ? 0 : piece - 1;
    hlo_at p = pass_at(in);
    hlo_inst *none, *pieces, *sums, *before, *arg[2];
    int64_t n, to[SD_MAX_RANK];
    const sd_shape *s = in->shape;
    hlo_op op;
    bool known = hlo_comp_is_binary(in->comp[0], &op) &&
                 pass_has_identity(op, pass_dtype(in->arg[0]));

    if (!is_long(in) || (!known && !is_monoid(in)))
        return NULL;
    n = (s->dim[d] + piece - 1) / piece;
    for (int i = 0; i < s->rank; i++)
        to[i] = i + (i > d);
    none = known ? pass_identity(p, op, pass_dtype(in)) : in->arg[1];
    pieces = in_pieces(p, in->arg[0], none, d, n, piece, reverse);
    pieces = scan_like(in, pieces, none, d + 1);
    sums = hlo_make_cut(p, pieces, d + 1, last, last + 1);
    sums = hlo_make_join(p, sums, d);
    before = moved(p, scan_in_two(scan_like(in, sums, in->arg[1], d)),
                   in->arg[1], d, reverse);
    arg[0] = hlo_make_broadcast(p, before, pieces->shape, to, s->rank);
    arg[1] = pieces;
    return whole_again(p, pass_vectorize(p, in->comp[0], arg, pieces->shape), s,
                       d, reverse);
}
