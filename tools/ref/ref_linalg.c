/* Evaluating the operations and calls of linear algebra, matrix by matrix. */
#include "ref_la.h"

#include <math.h>

/* ---- calls ---- */

static void (*const call_table[HLO_LA_COUNT])(ref_la *) = {
    [HLO_LA_EIGH] = ref_la_eigh,
    [HLO_LA_SVD] = ref_la_svd,
    [HLO_LA_EIG] = ref_la_eig,
    [HLO_LA_SCHUR] = ref_la_schur,
    [HLO_LA_HESSENBERG] = ref_la_hessenberg,
    [HLO_LA_TRIDIAGONAL] = ref_la_tridiagonal,
    [HLO_LA_TRIDIAGONAL_SOLVE] = ref_la_tridiagonal_solve,
    [HLO_LA_GEQP3] = ref_la_geqp3,
    [HLO_LA_LU] = ref_la_lu,
    [HLO_LA_QR] = ref_la_qr,
    [HLO_LA_HOUSEHOLDER_PRODUCT] = ref_la_householder,
    [HLO_LA_ORMQR] = ref_la_ormqr,
    [HLO_LA_CHOLESKY] = ref_la_call_cholesky,
    [HLO_LA_TRIANGULAR_SOLVE] = ref_la_triangular_solve,
    [HLO_LA_SPSOLVE] = ref_la_spsolve,
};

static bool is_index(sd_dtype t)
{
    return t == SD_S32;
}

/* Elements of one matrix; false: one is a NaN or an infinity. */
static bool load_matrix(const hlo_value *v, int64_t at, int64_t n, hlo_wide *to)
{
    sd_dtype t = v->shape->dtype;
    bool finite = true;

    for (int64_t i = 0; i < n; i++) {
        const void *p = hlo_at_elem(v, at * n + i);

        to[i] =
            is_index(t) ? (hlo_wide)hlo_index_load(t, p) : hlo_wide_load(t, p);
        finite &= isfinite(creall(to[i])) && isfinite(cimagl(to[i]));
    }
    return finite;
}

static void store_matrix(const hlo_wide *from, int64_t n, bool failed,
                         hlo_value *v, int64_t at)
{
    sd_dtype t = v->shape->dtype;

    for (int64_t i = 0; i < n; i++) {
        void *p = hlo_at_elem(v, at * n + i);
        int32_t number;

        if (is_index(t)) {
            number = (int32_t)creall(from[i]);
            memcpy(p, &number, sizeof number);
        } else {
            hlo_wide_store(t, failed ? CMPLXL(NAN, NAN) : from[i], p);
        }
    }
}

/* One after the other: a matrix's numbers go when it is done. */
static void eval_matrix(const hlo_linalg *c, int64_t at, const hlo_value *arg,
                        int narg, hlo_value *out)
{
    sd_arena *a = sd_arena_create();
    int nout = sd_shape_nresult(out->shape);
    ref_la l = {.c = c, .a = a};
    int64_t n;
    bool finite = true;

    for (int i = 0; i < narg; i++) {
        n = sd_shape_count(arg[i].shape) / c->batch;
        l.in[i] = sd_arena_array(a, hlo_wide, n + 1);
        finite &= load_matrix(&arg[i], at, n, l.in[i]);
    }
    for (int i = 0; i < nout; i++) {
        n = sd_shape_count(hlo_result_at(out, i)->shape) / c->batch;
        l.out[i] = sd_arena_array(a, hlo_wide, n + 1);
    }
    if (finite || !hlo_linalg_table[c->id].strict)
        call_table[c->id](&l);
    else
        l.failed = true;
    for (int i = 0; i < nout; i++) {
        n = sd_shape_count(hlo_result_at(out, i)->shape) / c->batch;
        store_matrix(l.out[i], n, l.failed, hlo_result_at(out, i), at);
    }
    sd_arena_destroy(a);
}

static sd_status eval_read(const hlo_linalg *c, int narg, const hlo_value *arg,
                           hlo_value *out)
{
    for (int64_t i = 0; i < c->batch; i++)
        eval_matrix(c, i, arg, narg, out);
    return NULL;
}

sd_status ref_linalg_call(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                          hlo_value *out)
{
    hlo_linalg c;

    (void)e;
    return hlo_linalg_read(in, &c) ? eval_read(&c, in->narg, arg, out)
                                   : ref_misfit(in);
}

/* ---- what is a call by another name ---- */

static void extents(hlo_linalg *c, const sd_shape *s)
{
    c->type = s->dtype;
    c->m = s->dim[s->rank - 2];
    c->n = s->dim[s->rank - 1];
    c->batch = 1;
    for (int i = 0; i < s->rank - 2; i++)
        c->batch *= s->dim[i];
}

/* The operation has NaN everywhere where there is no factor, the call in its
 * triangle. */
static void spread_nan(const hlo_linalg *c, hlo_value *out)
{
    int64_t n = c->n * c->n;

    for (int64_t i = 0; i < c->batch; i++)
        if (isnan(creall(hlo_wide_load(c->type, hlo_at_elem(out, i * n)))))
            for (int64_t k = 1; k < n; k++)
                memcpy(hlo_at_elem(out, i * n + k), hlo_at_elem(out, i * n),
                       sd_dtype_bytes(c->type));
}

/* cholesky, triangular-solve */
sd_status ref_linalg(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                     hlo_value *out)
{
    bool lower = in->u.linalg.lower;
    hlo_linalg c = {.id = HLO_LA_CHOLESKY, .attr = {lower}};
    const sd_shape *s = out->shape;
    sd_status st;

    (void)e;
    if (sd_shape_count(s) == 0)
        return NULL;
    extents(&c, arg[0].shape);
    if (in->op == HLO_CHOLESKY) {
        st = eval_read(&c, 1, arg, out);
        spread_nan(&c, out);
        return st;
    }
    c.id = HLO_LA_TRIANGULAR_SOLVE;
    c.attr[0] = in->u.linalg.left;
    c.attr[1] = lower;
    c.attr[2] = in->u.linalg.unit;
    c.attr[3] = (int64_t)in->u.linalg.trans;
    c.p = s->dim[s->rank - 2];
    c.q = s->dim[s->rank - 1];
    return eval_read(&c, 2, arg, out);
}

/* custom-call "Qr": matrices to (R above, the vectors below; their factors) */
sd_status ref_qr(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                 hlo_value *out)
{
    const sd_shape *s = in->narg == 1 ? arg[0].shape : NULL;
    hlo_linalg c = {.id = HLO_LA_QR};

    (void)e;
    if (!s || s->rank < 2 || out->shape->dtype != SD_TUPLE ||
        out->shape->nelem != 2 || !sd_shape_equal(s, out->elem[0].shape) ||
        out->elem[1].shape->dtype != s->dtype ||
        sd_shape_count(out->elem[1].shape) *
                SD_MAX(s->dim[s->rank - 2], s->dim[s->rank - 1]) !=
            sd_shape_count(s))
        return ref_misfit(in);
    extents(&c, s);
    return eval_read(&c, 1, arg, out);
}

/* custom-call "ProductOfElementaryHouseholderReflectors": the first columns of
 * the product of (1 - tau v v^H), as many as the packed matrix has. */
sd_status ref_householder(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                          hlo_value *out)
{
    const sd_shape *s = in->narg == 2 ? arg[0].shape : NULL;
    hlo_linalg c = {.id = HLO_LA_HOUSEHOLDER_PRODUCT};

    (void)e;
    if (!s || s->rank < 2 || arg[1].shape->rank != s->rank - 1 ||
        !sd_shape_equal(s, out->shape) || s->dtype != arg[1].shape->dtype)
        return ref_misfit(in);
    extents(&c, s);
    c.t = arg[1].shape->dim[s->rank - 2];
    if (c.t > SD_MIN(c.m, c.n) || sd_shape_count(arg[1].shape) != c.batch * c.t)
        return ref_misfit(in);
    return eval_read(&c, 2, arg, out);
}
