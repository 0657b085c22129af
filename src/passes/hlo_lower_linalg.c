/* Linear algebra to what plan takes: the calls of hlo_linalg.def in f32, f64,
 * c64 and c128, without empty arrays.  cholesky, triangular-solve and XLA's
 * custom-calls of QR become such calls where one function a matrix is quicker
 * than loops of products over all matrices; else the passes after this one
 * make those loops.  LU of large matrices is a loop on GPUs (matrix_lu.c). */
#include "hlo_linalg.h"
#include "matrix.h"

#include <math.h>

/* Larger matrices are loops of products, where the device has no library. */
enum { MOST_ROWS_HOST = 160, MOST_ROWS = 64 };

/* n: the extent whose cube is the work. */
static bool is_call(const device_desc *dev, const hlo_linalg *c, int64_t n)
{
    if (sd_dtype_part(c->type) == SD_F64 && !(dev->features & DEVICE_HAS_F64))
        return false;
    if (hlo_linalg_has_library(dev, c)) /* plan hands it the large ones */
        return true;
    return n <= (dev->kind == DEVICE_HOST ? MOST_ROWS_HOST : MOST_ROWS);
}

/* The call that it would be, of matrices of shape s. */
static hlo_linalg call_of(hlo_linalg_id id, const sd_shape *s)
{
    int64_t m = s->dim[s->rank - 2], n = s->dim[s->rank - 1];

    return (hlo_linalg){.id = id,
                        .type = pass_sum_type(s->dtype),
                        .batch = sd_shape_count(s) / (m * n),
                        .m = m,
                        .n = n};
}

/* ---- operations that become calls ---- */

static hlo_inst *call_cholesky(hlo_inst *in, const device_desc *dev)
{
    hlo_at p = pass_at(in);
    const sd_shape *s = in->shape;
    int64_t attr[] = {in->u.linalg.lower, 0};
    hlo_linalg c;
    hlo_inst *x;

    if (sd_shape_count(s) == 0)
        return NULL;
    c = call_of(HLO_LA_CHOLESKY, s);
    if (!is_call(dev, &c, c.n))
        return NULL;
    x = pass_widened(p, in->arg[0]);
    return pass_convert(p, s->dtype,
                        hlo_make_linalg(p, HLO_LA_CHOLESKY, attr, 1, &x));
}

static hlo_inst *call_solve(hlo_inst *in, const device_desc *dev)
{
    hlo_at p = pass_at(in);
    const sd_shape *s = in->shape, *a = in->arg[0]->shape;
    int64_t attr[] = {in->u.linalg.left, in->u.linalg.lower, in->u.linalg.unit,
                      in->u.linalg.trans};
    hlo_linalg c;
    hlo_inst *x[2];

    if (sd_shape_count(s) == 0)
        return NULL;
    c = call_of(HLO_LA_TRIANGULAR_SOLVE, a);
    c.p = s->dim[s->rank - 2];
    c.q = s->dim[s->rank - 1];
    if (!is_call(dev, &c, SD_MAX(c.n, SD_MAX(c.p, c.q))))
        return NULL;
    x[0] = pass_widened(p, in->arg[0]);
    x[1] = pass_widened(p, in->arg[1]);
    return pass_convert(
        p, s->dtype, hlo_make_linalg(p, HLO_LA_TRIANGULAR_SOLVE, attr, 2, x));
}

/* XLA's name promises nothing: the results must be as declared. */
static hlo_inst *if_declared(hlo_inst *call, const hlo_inst *in)
{
    if (sd_shape_equal(call->shape, in->shape))
        return call;
    hlo_remove(call);
    return NULL;
}

static bool is_stack(const sd_shape *s)
{
    return sd_shape_is_array(s) && s->rank >= 2 && sd_shape_count(s) > 0 &&
           hlo_linalg_has_code(s->dtype);
}

static bool stays(const device_desc *dev, hlo_linalg_id id, const sd_shape *s)
{
    hlo_linalg c = call_of(id, s);

    return is_call(dev, &c, SD_MAX(c.m, c.n));
}

static hlo_inst *call_qr(hlo_inst *in, const device_desc *dev)
{
    const sd_shape *s = in->narg == 1 ? in->arg[0]->shape : NULL;

    if (!s || !is_stack(s) || !stays(dev, HLO_LA_QR, s))
        return NULL;
    return if_declared(
        hlo_make_linalg(pass_at(in), HLO_LA_QR, NULL, 1, in->arg), in);
}

static hlo_inst *call_product(hlo_inst *in, const device_desc *dev)
{
    const sd_shape *s = in->narg == 2 ? in->arg[0]->shape : NULL, *t;
    bool fits;

    if (!s || !is_stack(s) || !stays(dev, HLO_LA_HOUSEHOLDER_PRODUCT, s))
        return NULL;
    t = in->arg[1]->shape;
    fits = sd_shape_is_array(t) && t->rank == s->rank - 1 &&
           t->dtype == s->dtype && sd_shape_count(t) > 0 &&
           s->dim[s->rank - 1] <= s->dim[s->rank - 2] &&
           t->dim[t->rank - 1] <= s->dim[s->rank - 1];
    for (int i = 0; fits && i < t->rank - 1; i++)
        fits = t->dim[i] == s->dim[i];
    if (!fits)
        return NULL;
    return if_declared(hlo_make_linalg(pass_at(in), HLO_LA_HOUSEHOLDER_PRODUCT,
                                       NULL, 2, in->arg),
                       in);
}

/* ---- calls ---- */

/* 1 where a matrix's row is its column. */
static hlo_inst *units(hlo_at p, const sd_shape *s)
{
    const sd_shape *at = sd_shape_with(p.c->module->arena, s, SD_S32);

    return hlo_make_convert(
        p, s->dtype,
        hlo_make_compare(p, HLO_EQ, hlo_make_iota(p, at, s->rank - 2),
                         hlo_make_iota(p, at, s->rank - 1)));
}

static hlo_inst *count_from(hlo_at p, const sd_shape *s, int64_t first)
{
    return hlo_make_binary(p, HLO_ADD, hlo_make_iota(p, s, s->rank - 1),
                           hlo_make_fill_s64(p, s, s->dtype, first));
}

/* Result i of a call without elements to work on. */
static hlo_inst *empty_result(hlo_at p, const hlo_inst *in, const hlo_linalg *c,
                              int i)
{
    const sd_shape *s = hlo_result_shape(in, i);
    hlo_inst *x;

    if (sd_shape_count(s) == 0)
        return hlo_make_fill(p, s, 0);
    switch (c->id) {
    case HLO_LA_SVD:
    case HLO_LA_HOUSEHOLDER_PRODUCT:
        return units(p, s);
    case HLO_LA_LU:
        return count_from(p, s, 0);
    case HLO_LA_GEQP3:
        return count_from(p, s, 1);
    case HLO_LA_ORMQR:
        return in->arg[2];
    case HLO_LA_TRIDIAGONAL: /* the diagonal of a Hermitian matrix is real */
        x = pass_convert(p, sd_dtype_part(c->type), in->arg[0]);
        return pass_reshape(p, pass_convert(p, s->dtype, x), s->rank, s->dim);
    case HLO_LA_SPSOLVE:
        return hlo_make_fill(p, s, NAN);
    default: /* hessenberg: one row is done */
        return in->arg[0];
    }
}

/* An operand without elements, or nothing to reflect. */
static bool is_empty(const hlo_inst *in, const hlo_linalg *c)
{
    bool one = c->id == HLO_LA_HESSENBERG || c->id == HLO_LA_TRIDIAGONAL;

    for (int i = 0; i < in->narg; i++)
        if (sd_shape_count(in->arg[i]->shape) == 0)
            return true;
    return one && c->n == 1;
}

static hlo_inst *lower_empty(hlo_inst *in, const hlo_linalg *c, int n)
{
    hlo_at p = pass_at(in);
    hlo_inst *x[8];

    for (int i = 0; i < n; i++)
        x[i] = empty_result(p, in, c, i);
    return pass_results(p, in->shape, x);
}

static hlo_inst *widen_call(hlo_inst *in, const hlo_linalg *c, int n)
{
    hlo_at p = pass_at(in);
    hlo_inst *arg[4], *x[8], *call;

    for (int i = 0; i < in->narg; i++)
        arg[i] = pass_dtype(in->arg[i]) == c->type ? pass_widened(p, in->arg[i])
                                                   : in->arg[i];
    call = hlo_make_linalg(p, c->id, c->attr, in->narg, arg);
    for (int i = 0; i < n; i++)
        x[i] = pass_convert(p, hlo_result_shape(in, i)->dtype,
                            pass_result(p, call, i));
    return pass_results(p, in->shape, x);
}

static hlo_inst *lower_call(hlo_inst *in, const device_desc *dev)
{
    const char *target = in->u.custom->target;
    hlo_linalg c;
    int n = hlo_nresult(in);

    if (strcmp(target, "Qr") == 0)
        return call_qr(in, dev);
    if (strcmp(target, "ProductOfElementaryHouseholderReflectors") == 0)
        return call_product(in, dev);
    if (!hlo_linalg_read(in, &c))
        return NULL;
    if (is_empty(in, &c))
        return lower_empty(in, &c, n);
    if (pass_is_narrow(c.type))
        return widen_call(in, &c, n);
    /* a function of ours would be one work item's for each matrix */
    if (c.id == HLO_LA_LU && dev->kind != DEVICE_HOST &&
        !stays(dev, HLO_LA_LU, in->arg[0]->shape))
        return matrix_lu(in);
    return NULL;
}

static hlo_inst *lower_linalg(hlo_inst *in, const device_desc *dev)
{
    switch (in->op) {
    case HLO_CHOLESKY:
        return call_cholesky(in, dev);
    case HLO_TRIANGULAR_SOLVE:
        return call_solve(in, dev);
    case HLO_CUSTOM_CALL:
        return lower_call(in, dev);
    default:
        return NULL;
    }
}

bool hlo_lower_linalg(hlo_module *m, const device_desc *dev)
{
    return pass_rewrite_for(m, dev, lower_linalg);
}
