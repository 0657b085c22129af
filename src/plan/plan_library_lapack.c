/* Linear algebra as calls of LAPACK, or on CUDA of cuSOLVER.  Its custom-calls
 * (hlo_linalg.def) stay as they are and get a libcall; those that stay without
 * one become kernels of a device function each, which is quicker for thousands
 * of small matrices. */
#include "hlo_linalg.h"
#include "plan_library.h"

/* A call of LAPACK's costs about a microsecond, and is one matrix after the
 * other. */
enum { LEAST_SIDE = 24 };

/* Op COUNT: LAPACK does not do it, as sparse systems, or not in that way. */
static libcall call_of(const hlo_linalg *c)
{
    const int64_t *attr = c->attr;

    /* perturb: LAPACK ends at a zero pivot.  Right sides it solves one after
     * the other, which lie side by side in our rows. */
    if (c->id == HLO_LA_TRIDIAGONAL_SOLVE && (attr[0] || c->p > 1))
        return (libcall){.op = LIBCALL_COUNT};
    switch (c->id) {
#define CALL(id, to, name, ...) \
    case HLO_LA_##id: \
        return (libcall){.op = LIBCALL_##to, \
                         .name = {c->type, c->batch, __VA_ARGS__}};
        /* clang-format off */
        CALL(EIGH, EIGH, eigh, .n = c->n, .lower = attr[0])
        CALL(SVD, SVD, svd, .m = c->m, .n = c->n, .full = attr[0], .vectors = attr[1])
        CALL(EIG, EIG, eig, .n = c->n, .left = attr[0], .right = attr[1])
        CALL(SCHUR, SCHUR, schur, .n = c->n, .vectors = attr[0])
        CALL(HESSENBERG, HESSENBERG, hessenberg, .n = c->n)
        CALL(TRIDIAGONAL, TRIDIAGONAL, tridiagonal, .n = c->n, .lower = attr[0])
        CALL(TRIDIAGONAL_SOLVE, TRIDIAGONAL_SOLVE, tridiagonal_solve, .n = c->n, .p = c->p)
        CALL(GEQP3, GEQP3, geqp3, .m = c->m, .n = c->n)
        CALL(LU, LU, lu, .m = c->m, .n = c->n)
        CALL(QR, QR, qr, .m = c->m, .n = c->n)
        CALL(HOUSEHOLDER_PRODUCT, REFLECTIONS, reflections, .m = c->m, .n = c->n, .t = c->t)
        CALL(ORMQR, REFLECT, reflect, .m = c->m, .n = c->n, .t = c->t, .p = c->p, .q = c->q,
             .left = attr[0], .adjoint = attr[1])
        CALL(CHOLESKY, CHOLESKY, cholesky, .n = c->n, .lower = attr[0])
        CALL(TRIANGULAR_SOLVE, SOLVE, solve, .p = c->p, .q = c->q, .left = attr[0], .lower = attr[1],
             .unit = attr[2], .transpose = attr[3] - HLO_TRANSPOSE_NONE)
        /* clang-format on */
#undef CALL
    case HLO_LA_SPSOLVE:
    case HLO_LA_COUNT:
        break;
    }
    return (libcall){.op = LIBCALL_COUNT};
}

/* Of large matrices LAPACK's products are blocked and on all cores; many small
 * ones go side by side through vectors.  A matrix has many Schur forms: which
 * one comes out shall depend neither on its size nor on its batch, and people
 * compare it with SciPy's. */
static bool is_worth_it(const hlo_inst *in, const hlo_linalg *c,
                        const device_desc *dev)
{
    int64_t m = SD_MAX(SD_MAX(c->m, c->n), SD_MAX(c->p, c->q));
    hlo_call ours;

    if (dev->kind != DEVICE_HOST)
        return true;
    if (hlo_device_call(in, &ours) && ours.small)
        return false;
    return m >= LEAST_SIDE || c->id == HLO_LA_SCHUR;
}

bool plan_library_lapack(hlo_inst *in, const device_desc *dev)
{
    sd_arena *a = in->parent->module->arena;
    hlo_custom *u;
    hlo_linalg c;
    libcall call;

    if (!hlo_linalg_read(in, &c) || !hlo_linalg_has_library(dev, &c) ||
        !is_worth_it(in, &c, dev))
        return false;
    call = call_of(&c);
    if (call.op == LIBCALL_COUNT)
        return false;
    u = sd_arena_copy(a, in->u.custom, sizeof *u);
    u->lib = sd_arena_copy(a, &call, sizeof call);
    in->u.custom = u;
    return true;
}
