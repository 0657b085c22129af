/* Operations of before StableHLO that frameworks still write: Einstein's sums
 * as dots, and Torch's selection as a gather. */
#include "vhlo_import.h"

#include <assert.h>

/* ---- Einstein's sums ---- */

typedef struct {
    char at[SD_MAX_RANK];
    int n;
} labels;

static int find(const labels *l, char x)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i] == x)
            return i;
    return -1;
}

/* Letters up to the next separator; a letter twice is a diagonal. */
static const char *read_labels(const char *s, labels *to)
{
    *to = (labels){.n = 0};
    for (; *s && *s != ',' && *s != '-'; s++) {
        bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');

        if (*s == ' ')
            continue;
        if (!letter || find(to, *s) >= 0 || to->n == SD_MAX_RANK)
            return NULL;
        to->at[to->n++] = *s;
    }
    return s;
}

/* "ij,jk->ik" */
static bool read_config(vhlo_import *im, mlir_op *op, hlo_inst **arg, int n,
                        labels *in, labels *out)
{
    const char *config = vhlo_string(im, op, "einsum_config"), *s = config;

    for (int i = 0; s && i < n; i++) {
        if (i)
            s = *s == ',' ? s + 1 : NULL;
        if (s)
            s = read_labels(s, &in[i]);
    }
    if (s && s[0] == '-' && s[1] == '>')
        s = read_labels(s + 2, out);
    else
        s = NULL;
    if (config && (!s || *s)) {
        vhlo_fail(im, op, SD_UNIMPLEMENTED,
                  "config \"%s\": what is read is %s, each letter once in a "
                  "term",
                  config, n == 2 ? "\"ij,jk->ik\"" : "\"ij->j\"");
    }
    for (int i = 0; i < n && !im->r->st; i++)
        if (!sd_shape_is_array(arg[i]->shape) || arg[i]->shape->rank != in[i].n)
            vhlo_fail(im, op, SD_INVALID,
                      "config \"%s\" names %d dimensions of operand %d, which "
                      "has %d",
                      config, in[i].n, i, arg[i]->shape->rank);
    return !im->r->st;
}

/* Sums over the dimensions that nothing else names. */
static hlo_inst *sum_rest(vhlo_import *im, hlo_inst *x, labels *l,
                          const labels *other, const labels *out)
{
    hlo_at p = {im->c, NULL, NULL};
    int64_t dims[SD_MAX_RANK];
    labels rest = {.n = 0};
    int n = 0;

    for (int i = 0; i < l->n; i++)
        if (find(other, l->at[i]) >= 0 || find(out, l->at[i]) >= 0)
            rest.at[rest.n++] = l->at[i];
        else
            dims[n++] = i;
    *l = rest;
    if (!n)
        return x;
    return hlo_make_sum(p, x, dims, n);
}

/* The result in the order that out says. */
static void bind_ordered(vhlo_import *im, mlir_op *op, hlo_inst *x,
                         const labels *l, const labels *out)
{
    const sd_shape *s = vhlo_shape(im, op);
    int64_t perm[SD_MAX_RANK];
    bool fits = s && l->n == out->n;

    for (int i = 0; fits && i < out->n; i++) {
        perm[i] = find(l, out->at[i]);
        fits = perm[i] >= 0 && s->rank == out->n &&
               s->dim[i] == x->shape->dim[perm[i]];
    }
    if (im->r->st)
        return;
    if (!fits) {
        vhlo_fail(im, op, SD_INVALID,
                  "the config gives a result of other dimensions than the "
                  "declared %d",
                  s->rank);
        return;
    }
    x = hlo_make_transpose((hlo_at){im->c, NULL, x}, x, perm);
    vhlo_bind(im, op, vhlo_convert(im, x, s->dtype));
}

void op_unary_einsum(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    labels in, out, none = {.n = 0};
    hlo_inst *x;

    if (!read_config(im, op, arg, 1, &in, &out))
        return;
    x = sum_rest(im, arg[0], &in, &none, &out);
    bind_ordered(im, op, x, &in, &out);
}

static void add(labels *l, char x)
{
    assert(l->n < SD_MAX_RANK); /* all of them are letters of the result */
    l->at[l->n++] = x;
}

/* Batch: in both and the result; contracted: in both and not there. */
static bool make_dot(const labels *in, const labels *out, hlo_inst **x,
                     hlo_dot *d, sd_arena *a, labels *to)
{
    int64_t batch[2][SD_MAX_RANK], contract[2][SD_MAX_RANK];
    int nbatch = 0, ncontract = 0;

    *to = (labels){.n = 0};
    for (int i = 0; i < in[0].n; i++) {
        int k = find(&in[1], in[0].at[i]);
        bool kept = find(out, in[0].at[i]) >= 0;

        if (k < 0)
            continue;
        if (x[0]->shape->dim[i] != x[1]->shape->dim[k])
            return false;
        (kept ? batch : contract)[0][kept ? nbatch : ncontract] = i;
        (kept ? batch : contract)[1][kept ? nbatch++ : ncontract++] = k;
        if (kept)
            add(to, in[0].at[i]);
    }
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < in[k].n; i++)
            if (find(&in[!k], in[k].at[i]) < 0) {
                add(to, in[k].at[i]);
            }
    d->lhs_batch = hlo_dims_copy(a, batch[0], nbatch);
    d->rhs_batch = hlo_dims_copy(a, batch[1], nbatch);
    d->lhs_contract = hlo_dims_copy(a, contract[0], ncontract);
    d->rhs_contract = hlo_dims_copy(a, contract[1], ncontract);
    return true;
}

void op_einsum(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = vhlo_shape(im, op);
    hlo_dot *d = sd_arena_new(im->a, hlo_dot);
    labels in[2], out, to;
    hlo_inst *x[2], *dot;
    int64_t dim[SD_MAX_RANK];

    if (!s || !read_config(im, op, arg, 2, in, &out))
        return;
    for (int i = 0; i < 2; i++)
        x[i] = sum_rest(im, arg[i], &in[i], &in[!i], &out);
    if (!make_dot(in, &out, x, d, im->a, &to)) {
        vhlo_fail(im, op, SD_INVALID,
                  "a letter of the config stands for dimensions of two "
                  "sizes");
        return;
    }
    for (int i = 0; i < to.n; i++) {
        int k = find(&in[0], to.at[i]);

        dim[i] = k >= 0 ? x[0]->shape->dim[k]
                        : x[1]->shape->dim[find(&in[1], to.at[i])];
    }
    if ((im->r->st = sd_shape_check(s->dtype, to.n, dim)))
        return;
    dot =
        vhlo_emit(im, HLO_DOT, sd_shape_make(im->a, s->dtype, to.n, dim), 2, x);
    dot->u.dot = d;
    if (vhlo_check(im, dot))
        bind_ordered(im, op, dot, &to, &out);
}

/* ---- Torch's selection ---- */

/* Result: the operand's dimensions with those of the indices, but for the
 * batch dimensions that both begin with, in the place of `dim`. */
void op_index_select(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = vhlo_shape(im, op), *x = arg[0]->shape;
    const sd_shape *ix = arg[1]->shape;
    int64_t d = vhlo_int(im, op, "dim"), nb = vhlo_int(im, op, "batch_dims");
    int64_t offset[SD_MAX_RANK], batch[SD_MAX_RANK], size[SD_MAX_RANK];
    hlo_gather *g = sd_arena_new(im->a, hlo_gather);
    hlo_inst *in;
    int n = 0;

    if (!s || im->r->st)
        return;
    if (!sd_shape_is_array(x) || !sd_shape_is_array(ix) || d < 0 ||
        d >= x->rank || nb < 0 || nb > d || nb > ix->rank) {
        vhlo_fail(im, op, SD_INVALID,
                  "dimension %" PRId64 " behind %" PRId64
                  " batch dimensions of "
                  "operands of rank %d and %d",
                  d, nb, x->rank, ix->rank);
        return;
    }
    for (int i = 0; i < x->rank; i++) {
        size[i] = i < nb || i == d ? 1 : x->dim[i];
        if (i < nb)
            batch[i] = i;
        else if (i != d)
            offset[n++] = i < d ? i : i - 1 + ix->rank - nb;
    }
    g->offset_dims = hlo_dims_copy(im->a, offset, n);
    g->collapsed = g->index_map = hlo_dims_copy(im->a, &d, 1);
    g->operand_batch = g->indices_batch = hlo_dims_copy(im->a, batch, (int)nb);
    g->index_vector_dim = ix->rank;
    g->slice_sizes = hlo_dims_copy(im->a, size, x->rank);
    in = vhlo_emit(im, HLO_GATHER, s, 2, arg);
    in->u.gather = g;
    vhlo_bind(im, op, in);
}
