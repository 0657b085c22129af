/* Linear algebra as calls of LAPACK.  Its custom-calls (hlo_linalg.def) stay
 * as they are and get a libcall; those that stay without one become kernels of
 * a device function each, which is quicker for thousands of small matrices. */
#include "hlo_linalg.h"
#include "plan_library.h"

/* A call of LAPACK's costs about a microsecond, and is one matrix after the
 * other. */
enum { LEAST_SIDE = 24 };

static libcall eigh_call(const hlo_linalg *c)
{
    return (libcall){
        .op = LIBCALL_EIGH,
        .eigh = {c->type, c->batch, .n = c->n, .lower = c->attr[0]}};
}

static libcall svd_call(const hlo_linalg *c)
{
    return (libcall){.op = LIBCALL_SVD,
                     .svd = {c->type, c->batch, .m = c->m, .n = c->n,
                             .full = c->attr[0], .vectors = c->attr[1]}};
}

static libcall eig_call(const hlo_linalg *c)
{
    return (libcall){.op = LIBCALL_EIG,
                     .eig = {c->type, c->batch, .n = c->n, .left = c->attr[0],
                             .right = c->attr[1]}};
}

static libcall schur_call(const hlo_linalg *c)
{
    return (libcall){
        .op = LIBCALL_SCHUR,
        .schur = {c->type, c->batch, .n = c->n, .vectors = c->attr[0]}};
}

static libcall hessenberg_call(const hlo_linalg *c)
{
    return (libcall){.op = LIBCALL_HESSENBERG,
                     .hessenberg = {c->type, c->batch, .n = c->n}};
}

static libcall tridiagonal_call(const hlo_linalg *c)
{
    return (libcall){
        .op = LIBCALL_TRIDIAGONAL,
        .tridiagonal = {c->type, c->batch, .n = c->n, .lower = c->attr[0]}};
}

/* LAPACK gives up at a zero pivot; with perturb the call goes on. */
static libcall tridiagonal_solve_call(const hlo_linalg *c)
{
    return (libcall){
        .op = c->attr[0] ? LIBCALL_COUNT : LIBCALL_TRIDIAGONAL_SOLVE,
        .tridiagonal_solve = {c->type, c->batch, .n = c->n, .p = c->p}};
}

static libcall geqp3_call(const hlo_linalg *c)
{
    return (libcall){.op = LIBCALL_GEQP3,
                     .geqp3 = {c->type, c->batch, .m = c->m, .n = c->n}};
}

static libcall lu_call(const hlo_linalg *c)
{
    return (libcall){.op = LIBCALL_LU,
                     .lu = {c->type, c->batch, .m = c->m, .n = c->n}};
}

static libcall qr_call(const hlo_linalg *c)
{
    return (libcall){.op = LIBCALL_QR,
                     .qr = {c->type, c->batch, .m = c->m, .n = c->n}};
}

static libcall householder_product_call(const hlo_linalg *c)
{
    return (libcall){
        .op = LIBCALL_REFLECTIONS,
        .reflections = {c->type, c->batch, .m = c->m, .n = c->n, .t = c->t}};
}

static libcall ormqr_call(const hlo_linalg *c)
{
    return (libcall){.op = LIBCALL_REFLECT,
                     .reflect = {c->type, c->batch, .m = c->m, .n = c->n,
                                 .t = c->t, .p = c->p, .q = c->q,
                                 .left = c->attr[0], .adjoint = c->attr[1]}};
}

static libcall cholesky_call(const hlo_linalg *c)
{
    return (libcall){
        .op = LIBCALL_CHOLESKY,
        .cholesky = {c->type, c->batch, .n = c->n, .lower = c->attr[0]}};
}

static libcall triangular_solve_call(const hlo_linalg *c)
{
    return (libcall){.op = LIBCALL_SOLVE,
                     .solve = {c->type, c->batch, .p = c->p, .q = c->q,
                               .left = c->attr[0], .lower = c->attr[1],
                               .unit = c->attr[2],
                               .transpose = c->attr[3] - HLO_TRANSPOSE_NONE}};
}

/* Sparse systems are ours alone. */
static libcall spsolve_call(const hlo_linalg *c)
{
    (void)c;
    return (libcall){.op = LIBCALL_COUNT};
}

/* By row of hlo_linalg.def; COUNT: LAPACK does not do it. */
static libcall (*const calls[HLO_LA_COUNT])(const hlo_linalg *c) = {
    [HLO_LA_EIGH] = eigh_call,
    [HLO_LA_SVD] = svd_call,
    [HLO_LA_EIG] = eig_call,
    [HLO_LA_SCHUR] = schur_call,
    [HLO_LA_HESSENBERG] = hessenberg_call,
    [HLO_LA_TRIDIAGONAL] = tridiagonal_call,
    [HLO_LA_TRIDIAGONAL_SOLVE] = tridiagonal_solve_call,
    [HLO_LA_GEQP3] = geqp3_call,
    [HLO_LA_LU] = lu_call,
    [HLO_LA_QR] = qr_call,
    [HLO_LA_HOUSEHOLDER_PRODUCT] = householder_product_call,
    [HLO_LA_ORMQR] = ormqr_call,
    [HLO_LA_CHOLESKY] = cholesky_call,
    [HLO_LA_TRIANGULAR_SOLVE] = triangular_solve_call,
    [HLO_LA_SPSOLVE] = spsolve_call,
};

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
    call = calls[c.id](&c);
    if (call.op == LIBCALL_COUNT)
        return false;
    u = sd_arena_copy(a, in->u.custom, sizeof *u);
    u->lib = sd_arena_copy(a, &call, sizeof call);
    in->u.custom = u;
    return true;
}
