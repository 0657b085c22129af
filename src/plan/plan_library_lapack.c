/* Linear algebra as calls of LAPACK.  Its custom-calls (hlo_linalg.def) stay
 * as they are and get a libcall; those that stay without one become kernels of
 * a device function each, which is quicker for thousands of small matrices. */
#include "hlo_linalg.h"
#include "plan_library.h"

/* A call of LAPACK's costs about a microsecond, and is one matrix after the
 * other. */
enum { LEAST_SIDE = 24 };

/* Op COUNT: LAPACK does not do it. */
static libcall call_of(const hlo_linalg *c)
{
    switch (c->id) {
    case HLO_LA_EIGH:
        return (libcall){
            .op = LIBCALL_EIGH,
            .eigh = {c->type, c->batch, .n = c->n, .lower = c->attr[0]}};
    case HLO_LA_SVD:
        return (libcall){.op = LIBCALL_SVD,
                         .svd = {c->type, c->batch, .m = c->m, .n = c->n,
                                 .full = c->attr[0], .vectors = c->attr[1]}};
    case HLO_LA_EIG:
        return (libcall){.op = LIBCALL_EIG,
                         .eig = {c->type, c->batch, .n = c->n,
                                 .left = c->attr[0], .right = c->attr[1]}};
    case HLO_LA_SCHUR:
        return (libcall){
            .op = LIBCALL_SCHUR,
            .schur = {c->type, c->batch, .n = c->n, .vectors = c->attr[0]}};
    case HLO_LA_HESSENBERG:
        return (libcall){.op = LIBCALL_HESSENBERG,
                         .hessenberg = {c->type, c->batch, .n = c->n}};
    case HLO_LA_TRIDIAGONAL:
        return (libcall){
            .op = LIBCALL_TRIDIAGONAL,
            .tridiagonal = {c->type, c->batch, .n = c->n, .lower = c->attr[0]}};
    case HLO_LA_TRIDIAGONAL_SOLVE:
        if (c->attr[0]) /* LAPACK gives up at a zero pivot, a call with perturb
                           not */
            break;
        return (libcall){
            .op = LIBCALL_TRIDIAGONAL_SOLVE,
            .tridiagonal_solve = {c->type, c->batch, .n = c->n, .p = c->p}};
    case HLO_LA_GEQP3:
        return (libcall){.op = LIBCALL_GEQP3,
                         .geqp3 = {c->type, c->batch, .m = c->m, .n = c->n}};
    case HLO_LA_LU:
        return (libcall){.op = LIBCALL_LU,
                         .lu = {c->type, c->batch, .m = c->m, .n = c->n}};
    case HLO_LA_QR:
        return (libcall){.op = LIBCALL_QR,
                         .qr = {c->type, c->batch, .m = c->m, .n = c->n}};
    case HLO_LA_HOUSEHOLDER_PRODUCT:
        return (libcall){.op = LIBCALL_REFLECTIONS,
                         .reflections = {c->type, c->batch, .m = c->m,
                                         .n = c->n, .t = c->t}};
    case HLO_LA_ORMQR:
        return (libcall){.op = LIBCALL_REFLECT,
                         .reflect = {c->type, c->batch, .m = c->m, .n = c->n,
                                     .t = c->t, .p = c->p, .q = c->q,
                                     .left = c->attr[0],
                                     .adjoint = c->attr[1]}};
    case HLO_LA_CHOLESKY:
        return (libcall){
            .op = LIBCALL_CHOLESKY,
            .cholesky = {c->type, c->batch, .n = c->n, .lower = c->attr[0]}};
    case HLO_LA_TRIANGULAR_SOLVE:
        return (libcall){
            .op = LIBCALL_SOLVE,
            .solve = {c->type, c->batch, .p = c->p, .q = c->q,
                      .left = c->attr[0], .lower = c->attr[1],
                      .unit = c->attr[2],
                      .transpose = c->attr[3] - HLO_TRANSPOSE_NONE}};
    case HLO_LA_SPSOLVE: /* sparse systems are ours alone */
    case HLO_LA_COUNT:
        break;
    }
    return (libcall){.op = LIBCALL_COUNT};
}

/* Of large matrices LAPACK's products are blocked and on all cores; many small
 * ones go side by side through vectors.  A matrix has many Schur forms: which
 * one comes out shall depend neither on its size nor on its batch, and people
 * compare it with SciPy's. */
static bool is_worth_it(const hlo_inst *in, const hlo_linalg *c)
{
    int64_t m = SD_MAX(SD_MAX(c->m, c->n), SD_MAX(c->p, c->q));
    hlo_call ours;

    if (hlo_device_call(in, &ours) && ours.lanes)
        return false;
    return m >= LEAST_SIDE || c->id == HLO_LA_SCHUR;
}

bool plan_library_lapack(hlo_inst *in, const device_desc *dev)
{
    sd_arena *a = in->parent->module->arena;
    hlo_custom *u;
    hlo_linalg c;
    libcall call;

    if (!(dev->libs & DEVICE_LIB_LAPACK) || !hlo_linalg_read(in, &c) ||
        !hlo_linalg_has_code(c.type) || !is_worth_it(in, &c))
        return false;
    call = call_of(&c);
    if (call.op == LIBCALL_COUNT)
        return false;
    u = sd_arena_copy(a, in->u.custom, sizeof *u);
    u->lib = sd_arena_copy(a, &call, sizeof call);
    in->u.custom = u;
    return true;
}
