/* Dots to the form that matrix libraries and kernels take: transposes of the
 * operands and of the result folded into the dimension numbers; dimensions of
 * extent 1 dropped; neighbours of one kind (free; batch or contracted, if
 * neighbours on both sides) merged; where more than one free or contracted
 * dimension is left, a transpose brings them together.  So there is at most
 * one m, one n and one k, in any order, and batch dimensions.  Without k it is
 * a product; without m or n, or for k up to 8, it is memory-bound: multiply and
 * reduce (is_of_few says where not).  A large product of complex numbers is one
 * of real numbers, and one of truth values one of ones. */
#include "terms.h"

enum {
    TINY_K_HOST = 5, /* where m and n are LONG_SIDE or more */
    LONG_SIDE = 64,
    LARGE_PARTS = 64
};
enum { BATCH, CONTRACT, FREE };

typedef struct { /* a dimension of one operand, extent not 1 */
    int64_t extent;
    int8_t kind;
    int key;   /* batch, contract: which pair */
    int from;  /* operand's dimension */
    int group; /* merged with the ones of the same group */
} piece;

typedef struct {
    hlo_inst *x;
    piece at[SD_MAX_RANK];
    int n;
} side;

typedef struct {
    hlo_inst *in;
    side s[2];
    int npair[2];               /* BATCH, CONTRACT: pairs left */
    int pos[2][2][SD_MAX_RANK]; /* kind, side, pair -> place in side */
} dot;

/* ---- transposes ---- */

/* transpose(dot(x, y)) with m and n exchanged is dot(y, x). */
static hlo_inst *swapped(hlo_inst *t)
{
    hlo_inst *in = t->arg[0];
    const hlo_dot *d;
    int nb, nl, nr;
    hlo_dot w;

    if (in->op != HLO_DOT || in->nuse != 1 || in == in->parent->root)
        return NULL;
    d = in->u.dot;
    nb = d->lhs_batch.n;
    nl = in->arg[0]->shape->rank - nb - d->lhs_contract.n;
    nr = in->arg[1]->shape->rank - nb - d->rhs_contract.n;
    for (int i = 0; i < t->dims.n; i++)
        if (t->dims.at[i] != (i < nb ? i : i < nb + nr ? i + nl : i - nr))
            return NULL;
    w = *d;
    w.lhs_batch = d->rhs_batch;
    w.rhs_batch = d->lhs_batch;
    w.lhs_contract = d->rhs_contract;
    w.rhs_contract = d->lhs_contract;
    w.prec[0] = d->prec[1];
    w.prec[1] = d->prec[0];
    return hlo_make_dot((hlo_at){t->parent, t, in}, in->arg[1], in->arg[0],
                        pass_dtype(in), &w);
}

/* Reads dimension d of the operand of a transpose instead; not if that would
 * change the order of free dimensions, which is the result's. */
static hlo_inst *fold_transpose(hlo_inst *x, int64_t *batch, int nb,
                                int64_t *contract, int nc)
{
    while (x->op == HLO_TRANSPOSE) {
        const int64_t *perm = x->dims.at;
        int64_t last = -1;

        for (int i = 0; i < x->dims.n; i++) {
            bool free = true;

            for (int k = 0; k < nb + nc; k++)
                free &= (k < nb ? batch[k] : contract[k - nb]) != i;
            if (!free || x->shape->dim[i] == 1)
                continue;
            if (perm[i] < last)
                return x;
            last = perm[i];
        }
        for (int k = 0; k < nb; k++)
            batch[k] = perm[batch[k]];
        for (int k = 0; k < nc; k++)
            contract[k] = perm[contract[k]];
        x = x->arg[0];
    }
    return x;
}

/* ---- reading ---- */

static void number_pairs(dot *d, int kind, int64_t *const at[2], int n)
{
    const sd_shape *l = d->s[0].x->shape;
    int key = 0;

    for (int i = 0; i < n; i++) {
        if (l->dim[at[0][i]] == 1)
            continue;
        for (int s = 0; s < 2; s++)
            for (int k = 0; k < d->s[s].n; k++)
                if (d->s[s].at[k].from == at[s][i]) {
                    d->s[s].at[k].kind = (int8_t)kind;
                    d->s[s].at[k].key = key;
                    d->pos[kind][s][key] = k;
                }
        key++;
    }
    d->npair[kind] = key;
}

static void read_dot(hlo_inst *in, dot *d)
{
    const hlo_dot *u = in->u.dot;
    int64_t batch[2][SD_MAX_RANK], contract[2][SD_MAX_RANK];
    const hlo_dims from[2][2] = {{u->lhs_batch, u->lhs_contract},
                                 {u->rhs_batch, u->rhs_contract}};

    memset(d, 0, sizeof *d);
    d->in = in;
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < from[s][0].n; i++)
            batch[s][i] = from[s][0].at[i];
        for (int i = 0; i < from[s][1].n; i++)
            contract[s][i] = from[s][1].at[i];
        d->s[s].x = fold_transpose(in->arg[s], batch[s], from[s][0].n,
                                   contract[s], from[s][1].n);
        const sd_shape *shape = d->s[s].x->shape;

        for (int i = 0; i < shape->rank; i++)
            if (shape->dim[i] != 1)
                d->s[s].at[d->s[s].n++] = (piece){shape->dim[i], FREE, 0, i, 0};
    }
    number_pairs(d, BATCH, (int64_t *[]){batch[0], batch[1]}, from[0][0].n);
    number_pairs(d, CONTRACT, (int64_t *[]){contract[0], contract[1]},
                 from[0][1].n);
}

/* ---- bringing together ---- */

/* Are all contracted pieces neighbours in rising pair order, and all free? */
static bool is_together(const dot *d, int s)
{
    int last_free = -2;

    for (int i = 1; i < d->npair[CONTRACT]; i++)
        if (d->pos[CONTRACT][s][i] != d->pos[CONTRACT][s][i - 1] + 1)
            return false;
    for (int i = 0; i < d->s[s].n; i++) {
        if (d->s[s].at[i].kind != FREE)
            continue;
        if (last_free >= 0 && i != last_free + 1)
            return false;
        last_free = i;
    }
    return true;
}

/* Contracted pairs are summed over, so their order is ours: as in side s. */
static void order_contract(dot *d, int s)
{
    int key = 0, to[SD_MAX_RANK];

    for (int i = 0; i < d->s[s].n; i++)
        if (d->s[s].at[i].kind == CONTRACT)
            to[d->s[s].at[i].key] = key++;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < d->s[k].n; i++)
            if (d->s[k].at[i].kind == CONTRACT) {
                piece *p = &d->s[k].at[i];

                p->key = to[p->key];
                d->pos[CONTRACT][k][p->key] = i;
            }
}

/* Operand s without its ones, as [batch.., free.., contract..]. */
static void bring_together(dot *d, int s)
{
    static const int8_t order[] = {BATCH, FREE, CONTRACT};
    side *w = &d->s[s], old = *w;
    hlo_at p = pass_at(d->in);
    int64_t dim[SD_MAX_RANK], perm[SD_MAX_RANK];
    int n = 0;

    for (int i = 0; i < old.n; i++)
        dim[i] = old.at[i].extent;
    for (int o = 0; o < 3; o++) {
        if (order[o] == FREE) {
            for (int i = 0; i < old.n; i++)
                if (old.at[i].kind == FREE)
                    perm[n++] = i;
            continue;
        }
        for (int k = 0; k < d->npair[order[o]]; k++)
            perm[n++] = d->pos[order[o]][s][k];
    }
    w->x = pass_reshape(p, old.x, old.n, dim);
    w->x = hlo_make_transpose(p, w->x, perm);
    for (int i = 0; i < n; i++) {
        w->at[i] = old.at[perm[i]];
        w->at[i].from = i;
        if (w->at[i].kind != FREE)
            d->pos[w->at[i].kind][s][w->at[i].key] = i;
    }
}

/* Numbers the groups of a kind: pairs that follow each other on both sides. */
static int group_pairs(dot *d, int kind)
{
    int group = 0;

    for (int k = 0; k < d->npair[kind]; k++) {
        bool follows = k > 0;

        for (int s = 0; s < 2 && follows; s++)
            follows = d->pos[kind][s][k] == d->pos[kind][s][k - 1] + 1;
        group += k > 0 && !follows;
        for (int s = 0; s < 2; s++)
            d->s[s].at[d->pos[kind][s][k]].group = group;
    }
    return d->npair[kind] ? group + 1 : 0;
}

/* Merges pieces that are one group into one. */
static void merge(dot *d, int s)
{
    side *w = &d->s[s], old = *w;
    int64_t dim[SD_MAX_RANK];

    w->n = 0;
    for (int i = 0; i < old.n; i++) {
        piece *last = w->n ? &w->at[w->n - 1] : NULL;

        if (last && last->kind == old.at[i].kind &&
            last->group == old.at[i].group) {
            last->extent *= old.at[i].extent;
            continue;
        }
        w->at[w->n++] = old.at[i];
    }
    for (int i = 0; i < w->n; i++) {
        w->at[i].from = i;
        dim[i] = w->at[i].extent;
    }
    w->x = pass_reshape(pass_at(d->in), old.x, w->n, dim);
}

static int find(const side *w, int kind, int group)
{
    for (int i = 0; i < w->n; i++)
        if (w->at[i].kind == kind && (kind == FREE || w->at[i].group == group))
            return i;
    return -1;
}

/* ---- writing ---- */

static sd_dtype accumulator(const dot *d)
{
    sd_dtype t = pass_dtype(d->in);

    for (int s = 0; s < 2; s++)
        if (pass_dtype(d->s[s].x) == SD_F64 && sd_is_float(t))
            return SD_F64;
    return pass_sum_type(t);
}

typedef struct { /* index space of multiply and reduce */
    int64_t dim[2 * SD_MAX_RANK];
    int8_t kind[2 * SD_MAX_RANK]; /* FREE + s for the free one of side s */
    int group[2 * SD_MAX_RANK], n;
} space;

static void add_axis(space *t, const piece *p, int s)
{
    t->dim[t->n] = p->extent;
    t->kind[t->n] = (int8_t)(p->kind + (p->kind == FREE ? s : 0));
    t->group[t->n++] = p->group;
}

/* Operand s as an array over the whole space, in the accumulator's type. */
static hlo_inst *over_space(const dot *d, int s, const space *t, sd_dtype acc)
{
    const side *w = &d->s[s];
    hlo_at p = pass_at(d->in);
    int64_t dims[SD_MAX_RANK], perm[SD_MAX_RANK];
    hlo_inst *x = w->x;
    int n = 0;

    for (int i = 0; i < t->n; i++) {
        int kind = t->kind[i] >= FREE ? FREE : t->kind[i], k;

        if (kind == FREE && t->kind[i] != FREE + s)
            continue;
        k = find(w, kind, t->group[i]);
        dims[n] = i;
        perm[n++] = k;
    }
    x = hlo_make_transpose(p, pass_convert(p, acc, x), perm);
    return hlo_make_broadcast(
        p, x, sd_shape_make(p.c->module->arena, acc, t->n, t->dim), dims, n);
}

/* The result's order: batch groups, lhs free, rhs free. */
static hlo_inst *in_result_order(const dot *d, hlo_inst *x, const space *t,
                                 int nbatch)
{
    int64_t perm[2 * SD_MAX_RANK];
    int n = 0, k = 0;

    for (int b = 0; b < nbatch + 2; b++) {
        int kind = b < nbatch ? BATCH : FREE + (b - nbatch);

        k = 0;
        for (int i = 0; i < t->n; i++) {
            if (t->kind[i] == CONTRACT)
                continue;
            if (t->kind[i] == kind && (kind != BATCH || t->group[i] == b))
                perm[n++] = k;
            k++;
        }
    }
    return n > 1 ? hlo_make_transpose(pass_at(d->in), x, perm) : x;
}

static hlo_inst *multiply_reduce(const dot *d, int nbatch)
{
    hlo_at p = pass_at(d->in);
    sd_dtype acc = accumulator(d);
    int l = find(&d->s[0], FREE, 0), r = find(&d->s[1], FREE, 0);
    space t = {.n = 0};
    int64_t k = -1;
    hlo_inst *x;

    if (l >= 0 && r >= 0) { /* rows, k, columns: columns stay fastest */
        for (int b = 0; b < nbatch; b++)
            add_axis(&t, &d->s[0].at[find(&d->s[0], BATCH, b)], 0);
        add_axis(&t, &d->s[0].at[l], 0);
        if (d->npair[CONTRACT])
            add_axis(&t, &d->s[0].at[find(&d->s[0], CONTRACT, 0)], 0);
        add_axis(&t, &d->s[1].at[r], 1);
    } else { /* as the side lies in memory that has them all */
        int s = r >= 0;

        for (int i = 0; i < d->s[s].n; i++)
            add_axis(&t, &d->s[s].at[i], s);
    }
    if (t.n > SD_MAX_RANK)
        return NULL;
    x = hlo_make_binary(p, HLO_MULTIPLY, over_space(d, 0, &t, acc),
                        over_space(d, 1, &t, acc));
    for (int i = 0; i < t.n; i++)
        if (t.kind[i] == CONTRACT)
            k = i;
    if (k >= 0)
        x = hlo_make_sum(p, x, &k, 1);
    x = in_result_order(d, x, &t, nbatch);
    x = pass_convert(p, pass_dtype(d->in), x);
    return pass_reshape(p, x, d->in->shape->rank, d->in->shape->dim);
}

static hlo_dims dims_of(const dot *d, int s, int kind, int n)
{
    int64_t at[SD_MAX_RANK];

    for (int g = 0; g < n; g++)
        at[g] = find(&d->s[s], kind, g);
    return hlo_dims_copy(d->in->parent->module->arena, at, n);
}

static hlo_inst *make_dot(const dot *d, int nbatch, sd_dtype t, hlo_dot u)
{
    u.lhs_batch = dims_of(d, 0, BATCH, nbatch);
    u.rhs_batch = dims_of(d, 1, BATCH, nbatch);
    u.lhs_contract = dims_of(d, 0, CONTRACT, 1);
    u.rhs_contract = dims_of(d, 1, CONTRACT, 1);
    return hlo_make_dot(pass_at(d->in), d->s[0].x, d->s[1].x, t, &u);
}

static hlo_inst *merged_dot(const dot *d, int nbatch)
{
    hlo_inst *x = make_dot(d, nbatch, pass_dtype(d->in), *d->in->u.dot);

    return pass_reshape(pass_at(d->in), x, d->in->shape->rank,
                        d->in->shape->dim);
}

/* Both parts of side s, one behind the other where the side is free. */
static void part_side(dot *d, int s)
{
    hlo_at p = pass_at(d->in);
    hlo_inst *part[] = {t_unary(p, HLO_REAL, d->s[s].x),
                        t_unary(p, HLO_IMAG, d->s[s].x)};

    d->s[s].x = hlo_make_concatenate(p, 2, part, find(&d->s[s], FREE, 0));
}

/* A quarter of x: halves of its last two dimensions. */
static hlo_inst *quarter(hlo_at p, hlo_inst *x, int row, int column)
{
    int rank = x->shape->rank;
    int64_t m = x->shape->dim[rank - 2] / 2, n = x->shape->dim[rank - 1] / 2;

    x = hlo_make_cut(p, x, rank - 2, row * m, (row + 1) * m);
    return hlo_make_cut(p, x, rank - 1, column * n, (column + 1) * n);
}

/* Are m, n and k long enough for what is copied into parts and joined? */
static bool pays_in_parts(const dot *d)
{
    int64_t least = d->s[0].at[find(&d->s[0], CONTRACT, 0)].extent;

    for (int s = 0; s < 2; s++) {
        int64_t free = d->s[s].at[find(&d->s[s], FREE, 0)].extent;

        if (!sd_is_complex(pass_dtype(d->s[s].x)))
            return false;
        least = free < least ? free : least;
    }
    return least >= LARGE_PARTS;
}

/* Complex numbers have no blocks and no library: their four products of parts
 * are one of real matrices, twice as long and as wide.  Its numbers are not
 * rounded as a device may do with f32 by default. */
static hlo_inst *product_of_parts(dot *d, int nbatch)
{
    hlo_at p = pass_at(d->in);
    hlo_dot u = *d->in->u.dot;
    hlo_inst *x;

    u.prec[0] = u.prec[1] = HLO_PREC_HIGHEST;
    part_side(d, 0);
    part_side(d, 1);
    x = make_dot(d, nbatch, sd_dtype_part(pass_dtype(d->in)), u);
    x = t_binary(p, HLO_COMPLEX,
                 t_sub(p, quarter(p, x, 0, 0), quarter(p, x, 1, 1)),
                 t_add(p, quarter(p, x, 0, 1), quarter(p, x, 1, 0)));
    return pass_reshape(p, x, d->in->shape->rank, d->in->shape->dim);
}

/* Of truth values: is any pair true?  A sum of ones is not 0, however it is
 * rounded. */
static hlo_inst *any_of_truths(dot *d, int nbatch)
{
    hlo_at p = pass_at(d->in);
    hlo_inst *x;

    for (int s = 0; s < 2; s++)
        d->s[s].x =
            pass_convert(p, SD_F32, pass_convert(p, SD_PRED, d->s[s].x));
    x = make_dot(d, nbatch, SD_F32, *d->in->u.dot);
    return pass_reshape(p, t_is_num(p, HLO_NE, x, 0), d->in->shape->rank,
                        d->in->shape->dim);
}

static bool is_canonical(const dot *d, int nbatch)
{
    const hlo_dot *u = d->in->u.dot;

    return u->lhs_batch.n == nbatch && u->lhs_contract.n == 1 &&
           d->s[0].x == d->in->arg[0] && d->s[1].x == d->in->arg[1];
}

/* Is the sum over k so short that it is best as a sum beside what else is
 * computed?  That reads what lies along k across the lines of memory, once for
 * each position.  On the host long sides take blocks sooner: one core with
 * AVX-512 needs for `a @ b.T` of 500 x 8 x 400 53 us so and 132 as sums, of f64
 * 137 and 230.  Complex numbers have no blocks, and those of bytes write words
 * first. */
static bool is_of_few(const dot *d, int k, int m, int n, const device_desc *dev)
{
    sd_dtype t = pass_dtype(d->in);
    bool blocks = dev->kind == DEVICE_HOST && !sd_is_complex(t) &&
                  !(sd_is_int(t) && sd_dtype_bytes(t) == 1) &&
                  d->s[0].at[m].extent >= LONG_SIDE &&
                  d->s[1].at[n].extent >= LONG_SIDE;

    return d->s[0].at[k].extent <= (blocks ? TINY_K_HOST : HLO_FEW_TERMS);
}

static hlo_inst *lower_dot(hlo_inst *in, const device_desc *dev)
{
    hlo_at p = pass_at(in);
    int nbatch, k, m, n;
    dot d;

    if (in->op != HLO_DOT)
        return NULL;
    if (sd_shape_count(in->shape) == 0)
        return hlo_make_fill(p, in->shape, 0);
    read_dot(in, &d);
    order_contract(&d, 0);
    if (!is_together(&d, 0))
        order_contract(&d, 1);
    for (int s = 0; s < 2; s++)
        if (!is_together(&d, s))
            bring_together(&d, s);
    nbatch = group_pairs(&d, BATCH);
    group_pairs(&d, CONTRACT);
    for (int s = 0; s < 2; s++)
        merge(&d, s);
    k = find(&d.s[0], CONTRACT, 0);
    if (k >= 0 && d.s[0].at[k].extent == 0)
        return hlo_make_fill(p, in->shape, 0);
    m = find(&d.s[0], FREE, 0);
    n = find(&d.s[1], FREE, 0);
    if (k < 0 || m < 0 || n < 0 || is_of_few(&d, k, m, n, dev))
        return multiply_reduce(&d, nbatch);
    if (pass_dtype(in) == SD_PRED)
        return any_of_truths(&d, nbatch);
    if (pays_in_parts(&d))
        return product_of_parts(&d, nbatch);
    return is_canonical(&d, nbatch) ? NULL : merged_dot(&d, nbatch);
}

bool hlo_lower_dot(hlo_module *m, const device_desc *dev)
{
    bool changed = pass_rewrite(m, HLO_TRANSPOSE, swapped);

    return pass_rewrite_for(m, dev, lower_dot) || changed;
}
