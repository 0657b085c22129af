/* Calls of linear algebra in the evaluator: one matrix at a time, every
 * element a complex long double, row-major. */
#ifndef REF_LA_H
#define REF_LA_H

#include "hlo_linalg.h"
#include "ref_priv.h"

#include <math.h>

typedef struct {
    const hlo_linalg *c;
    sd_arena *a;                 /* lives for this matrix */
    hlo_wide *in[4], *out[4];    /* out: zeroed; NULL: not asked for */
    bool failed;                 /* floating results become NaN */
} ref_la;

/* By |re| + |im|, as BLAS has it. */
static inline long double ref_la_size(hlo_wide x)
{
    return fabsl(creall(x)) + fabsl(cimagl(x));
}

/* ---- ref_factor.c ---- */

/* A column of n elements, `step` apart, becomes (beta, v[1], v[2], ...): beta
 * is real, v[0] is 1 and (1 - conj(tau) v v^H) x = (beta, 0, ...); LAPACK's
 * larfg.  Returns tau. */
hlo_wide ref_la_reflect(hlo_wide *x, int64_t n, int64_t step);
/* to = (1 - tau v v^H) to, and to (1 - tau v v^H); v as reflect leaves it, to
 * rows x cols in rows of `ld`. */
void ref_la_apply_left(const hlo_wide *v, int64_t step, hlo_wide tau,
                       hlo_wide *to, int64_t rows, int64_t cols, int64_t ld);
void ref_la_apply_right(const hlo_wide *v, int64_t step, hlo_wide tau,
                        hlo_wide *to, int64_t rows, int64_t cols, int64_t ld);

/* Exchanges n elements, `step` apart. */
void ref_la_swap(hlo_wide *x, hlo_wide *y, int64_t n, int64_t step);
/* The whole of the first operand, of which one triangle counts. */
hlo_wide *ref_la_hermitian(ref_la *l, bool lower);

void ref_la_lu(ref_la *);
void ref_la_qr(ref_la *);
void ref_la_geqp3(ref_la *);
void ref_la_householder(ref_la *);
void ref_la_ormqr(ref_la *);
void ref_la_hessenberg(ref_la *);
void ref_la_tridiagonal(ref_la *);
void ref_la_tridiagonal_solve(ref_la *);
void ref_la_call_cholesky(ref_la *);
void ref_la_triangular_solve(ref_la *);
void ref_la_spsolve(ref_la *);

/* ---- ref_eigen.c ---- */

void ref_la_eigh(ref_la *);
void ref_la_svd(ref_la *);
void ref_la_schur(ref_la *);
void ref_la_eig(ref_la *);

#endif
