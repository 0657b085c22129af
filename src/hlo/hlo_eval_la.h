/* Calls of linear algebra in the evaluator: one matrix at a time, every
 * element a complex long double, row-major. */
#ifndef HLO_EVAL_LA_H
#define HLO_EVAL_LA_H

#include "hlo_eval.h"
#include "hlo_linalg.h"

#include <math.h>

typedef struct {
    const hlo_linalg *c;
    sd_arena *a;                 /* lives for this matrix */
    hlo_wide *in[4], *out[4];    /* out: zeroed; NULL: not asked for */
    bool failed;                 /* floating results become NaN */
} hlo_la;

/* By |re| + |im|, as BLAS has it. */
static inline long double hlo_la_size(hlo_wide x)
{
    return fabsl(creall(x)) + fabsl(cimagl(x));
}

/* ---- hlo_eval_factor.c ---- */

/* A column of n elements, `step` apart, becomes (beta, v[1], v[2], ...): beta
 * is real, v[0] is 1 and (1 - conj(tau) v v^H) x = (beta, 0, ...); LAPACK's
 * larfg.  Returns tau. */
hlo_wide hlo_la_reflect(hlo_wide *x, int64_t n, int64_t step);
/* to = (1 - tau v v^H) to, and to (1 - tau v v^H); v as reflect leaves it, to
 * rows x cols in rows of `ld`. */
void hlo_la_apply_left(const hlo_wide *v, int64_t step, hlo_wide tau,
                       hlo_wide *to, int64_t rows, int64_t cols, int64_t ld);
void hlo_la_apply_right(const hlo_wide *v, int64_t step, hlo_wide tau,
                        hlo_wide *to, int64_t rows, int64_t cols, int64_t ld);

/* Exchanges n elements, `step` apart. */
void hlo_la_swap(hlo_wide *x, hlo_wide *y, int64_t n, int64_t step);
/* The whole of the first operand, of which one triangle counts. */
hlo_wide *hlo_la_hermitian(hlo_la *l, bool lower);

void hlo_la_lu(hlo_la *);
void hlo_la_qr(hlo_la *);
void hlo_la_geqp3(hlo_la *);
void hlo_la_householder(hlo_la *);
void hlo_la_ormqr(hlo_la *);
void hlo_la_hessenberg(hlo_la *);
void hlo_la_tridiagonal(hlo_la *);
void hlo_la_tridiagonal_solve(hlo_la *);
void hlo_la_call_cholesky(hlo_la *);
void hlo_la_triangular_solve(hlo_la *);
void hlo_la_spsolve(hlo_la *);

/* ---- hlo_eval_eigen.c ---- */

void hlo_la_eigh(hlo_la *);
void hlo_la_svd(hlo_la *);
void hlo_la_schur(hlo_la *);
void hlo_la_eig(hlo_la *);

#endif
