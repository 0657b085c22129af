/* What memory the operations of libcall.def take, in the order of their
 * slices, and how much they compute. */
#include "libcall.h"

/* ---- memory ---- */

static void put_count(libcall_args *a, sd_dtype t, bool fits, int64_t n)
{
    a->at[a->n++] = (libcall_arg){t, fits ? n : 0};
    a->overflow |= !fits;
}

/* An array of x * y * z elements. */
static void put(libcall_args *a, sd_dtype t, int64_t x, int64_t y, int64_t z)
{
    int64_t n = 0;
    bool fits = sd_mul_i64(x, y, &n) && sd_mul_i64(n, z, &n);

    put_count(a, t, fits, n);
}

static void operands_end(libcall_args *a)
{
    a->noperand = a->n;
}

static void put_bias(libcall_args *a, int64_t bias, sd_dtype t, int64_t n)
{
    if (bias == LIBCALL_BIAS_VECTOR)
        put(a, t, n, 1, 1);
    else if (bias == LIBCALL_BIAS_UNUSED)
        put(a, SD_F32, 1, 1, 1);
}

static void matmul_args(const libcall_matmul *c, libcall_args *a)
{
    put(a, c->lhs, c->batch, c->m, c->k);
    put(a, c->rhs, c->batch, c->k, c->n);
    put_bias(a, c->bias, c->result, c->n);
    if (c->add)
        put(a, c->result, c->batch, c->m, c->n);
    operands_end(a);
    put(a, c->result, c->batch, c->m, c->n);
}

/* Up to the last element that steps lead to. */
static void put_strided(libcall_args *a, sd_dtype t, int64_t x, int64_t y,
                        const int64_t *size, const int64_t *step)
{
    const int64_t n[5] = {x, y, size[0], size[1], size[2]};
    int64_t last = 0, way;
    bool fits = true;

    for (int i = 0; i < 5; i++) {
        fits = fits && sd_mul_i64(n[i] - 1, step[i], &way) &&
               !__builtin_add_overflow(last, way, &last);
    }
    fits = fits && last < INT64_MAX;
    put_count(a, t, fits, fits ? last + 1 : 0);
}

static void conv_args(const libcall_conv *c, libcall_args *a)
{
    /* by direction: the two operands and the result */
    enum { IN, KERNEL, OUT };
    static const int8_t role[3][3] = {
        {IN, KERNEL, OUT}, {OUT, KERNEL, IN}, {IN, OUT, KERNEL}};
    libcall_args all = {0};
    const int8_t *r = role[c->direction];

    put_strided(&all, c->in_type, c->batch, c->ci, c->in, c->in_step);
    put_strided(&all, c->kernel_type, c->co, c->ci / c->groups, c->kernel,
                c->kernel_step);
    put_strided(&all, c->out_type, c->batch, c->co, c->out, c->out_step);
    a->overflow = all.overflow || c->ci % c->groups || c->co % c->groups;
    a->at[a->n++] = all.at[r[0]];
    a->at[a->n++] = all.at[r[1]];
    put_bias(a, c->bias, c->out_type, c->co);
    if (c->add)
        a->at[a->n++] = all.at[r[2]];
    operands_end(a);
    a->at[a->n++] = all.at[r[2]];
    put(a, SD_U8, 0, 1, 1); /* the scratch of the call's form: empty */
}

static void eigh_args(const libcall_eigh *c, libcall_args *a)
{
    put(a, c->type, c->batch, c->n, c->n);
    operands_end(a);
    put(a, c->type, c->batch, c->n, c->n);
    put(a, sd_dtype_part(c->type), c->batch, c->n, 1);
}

static void svd_args(const libcall_svd *c, libcall_args *a)
{
    int64_t k = SD_MIN(c->m, c->n);

    put(a, c->type, c->batch, c->m, c->n);
    operands_end(a);
    put(a, sd_dtype_part(c->type), c->batch, k, 1);
    if (!c->vectors)
        return;
    put(a, c->type, c->batch, c->m, c->full ? c->m : k);
    put(a, c->type, c->batch, c->full ? c->n : k, c->n);
}

static void eig_args(const libcall_eig *c, libcall_args *a)
{
    sd_dtype part = sd_dtype_part(c->type), t = sd_dtype_complex(part);

    put(a, c->type, c->batch, c->n, c->n);
    operands_end(a);
    put(a, t, c->batch, c->n, 1);
    if (c->left)
        put(a, t, c->batch, c->n, c->n);
    if (c->right)
        put(a, t, c->batch, c->n, c->n);
}

static void schur_args(const libcall_schur *c, libcall_args *a)
{
    put(a, c->type, c->batch, c->n, c->n);
    operands_end(a);
    put(a, c->type, c->batch, c->n, c->n);
    if (c->vectors)
        put(a, c->type, c->batch, c->n, c->n);
}

static void hessenberg_args(const libcall_hessenberg *c, libcall_args *a)
{
    put(a, c->type, c->batch, c->n, c->n);
    operands_end(a);
    put(a, c->type, c->batch, c->n, c->n);
    put(a, c->type, c->batch, c->n - 1, 1);
}

static void tridiagonal_args(const libcall_tridiagonal *c, libcall_args *a)
{
    sd_dtype part = sd_dtype_part(c->type);

    put(a, c->type, c->batch, c->n, c->n);
    operands_end(a);
    put(a, c->type, c->batch, c->n, c->n);
    put(a, part, c->batch, c->n, 1);
    put(a, part, c->batch, c->n - 1, 1);
    put(a, c->type, c->batch, c->n - 1, 1);
}

static void geqp3_args(const libcall_geqp3 *c, libcall_args *a)
{
    put(a, c->type, c->batch, c->m, c->n);
    put(a, SD_S32, c->batch, c->n, 1);
    operands_end(a);
    put(a, c->type, c->batch, c->m, c->n);
    put(a, SD_S32, c->batch, c->n, 1);
    put(a, c->type, c->batch, SD_MIN(c->m, c->n), 1);
}

static void lu_args(const libcall_lu *c, libcall_args *a)
{
    put(a, c->type, c->batch, c->m, c->n);
    operands_end(a);
    put(a, c->type, c->batch, c->m, c->n);
    put(a, SD_S32, c->batch, SD_MIN(c->m, c->n), 1);
    put(a, SD_S32, c->batch, c->m, 1);
}

static void qr_args(const libcall_qr *c, libcall_args *a)
{
    put(a, c->type, c->batch, c->m, c->n);
    operands_end(a);
    put(a, c->type, c->batch, c->m, c->n);
    put(a, c->type, c->batch, SD_MIN(c->m, c->n), 1);
}

static void reflections_args(const libcall_reflections *c, libcall_args *a)
{
    put(a, c->type, c->batch, c->m, c->n);
    put(a, c->type, c->batch, c->t, 1);
    operands_end(a);
    put(a, c->type, c->batch, c->m, c->n);
}

static void reflect_args(const libcall_reflect *c, libcall_args *a)
{
    put(a, c->type, c->batch, c->m, c->n);
    put(a, c->type, c->batch, c->t, 1);
    put(a, c->type, c->batch, c->p, c->q);
    operands_end(a);
    put(a, c->type, c->batch, c->p, c->q);
}

static void cholesky_args(const libcall_cholesky *c, libcall_args *a)
{
    put(a, c->type, c->batch, c->n, c->n);
    operands_end(a);
    put(a, c->type, c->batch, c->n, c->n);
}

static void solve_args(const libcall_solve *c, libcall_args *a)
{
    int64_t n = c->left ? c->p : c->q;

    put(a, c->type, c->batch, n, n);
    put(a, c->type, c->batch, c->p, c->q);
    operands_end(a);
    put(a, c->type, c->batch, c->p, c->q);
}

static void tridiagonal_solve_args(const libcall_tridiagonal_solve *c,
                                   libcall_args *a)
{
    for (int i = 0; i < 3; i++)
        put(a, c->type, c->batch, c->n, 1);
    put(a, c->type, c->batch, c->n, c->p);
    operands_end(a);
    put(a, c->type, c->batch, c->n, c->p);
}

libcall_args libcall_args_of(const libcall *c)
{
    libcall_args a = {0};

    switch (c->op) {
#define LIBCALL(id, name, lib, target) \
    case LIBCALL_##id: \
        name##_args(&c->name, &a); \
        break;
#include "libcall.def"
    case LIBCALL_COUNT:
        break;
    }
    return a;
}

/* ---- work ---- */

bool libcall_conv_is_winograd(const libcall_conv *c)
{
    enum {
        EACH = 8,            /* channels and features, a multiple of it */
        LEAST_CHANNELS = 32, /* with fewer, turns take what products gain */
        LEAST_RESULTS = 32   /* and so does the kernel's turn */
    };
    bool is = c->direction == LIBCALL_FORWARD && c->nspatial == 2 &&
              c->groups == 1 &&
              (!c->activation || c->activation == LIBCALL_RELU) &&
              (c->in_type == SD_F32 || c->in_type == SD_BF16) &&
              c->kernel_type == c->in_type && c->out_type == c->in_type &&
              SD_MIN(c->ci, c->co) >= LEAST_CHANNELS && c->ci % EACH == 0 &&
              c->co % EACH == 0 && c->in_step[1] == 1 && c->out_step[1] == 1 &&
              (c->kernel_step[0] == 1 || c->kernel_step[1] == 1) &&
              c->batch * c->out[0] * c->out[1] >= LEAST_RESULTS;

    for (int i = 0; i < 2; i++)
        is =
            is && c->kernel[i] == 3 && c->stride[i] == 1 && c->dilation[i] == 1;
    return is;
}

static double matmul_flops(const libcall_matmul *c)
{
    return 2.0 * (double)c->batch * (double)c->m * (double)c->n * (double)c->k;
}

static double conv_flops(const libcall_conv *c)
{
    double v = 2.0 * (double)c->batch * (double)c->ci * (double)c->co /
               (double)c->groups;

    for (int i = 0; i < 3; i++)
        v *= (double)c->out[i] * (double)c->kernel[i];
    return v;
}

/* LAPACK's operations: the usual leading terms, for real matrices. */
static double cubic(int64_t batch, double factor, int64_t x, int64_t y,
                    int64_t z)
{
    return factor * (double)batch * (double)x * (double)y * (double)z;
}

double libcall_flops(const libcall *c)
{
    switch (c->op) {
    case LIBCALL_MATMUL:
        return matmul_flops(&c->matmul);
    case LIBCALL_CONV:
        return conv_flops(&c->conv);
    case LIBCALL_EIGH:
        return cubic(c->eigh.batch, 9, c->eigh.n, c->eigh.n, c->eigh.n);
    case LIBCALL_SVD:
        return cubic(c->svd.batch, c->svd.vectors ? 20 : 4, c->svd.m, c->svd.n,
                     SD_MIN(c->svd.m, c->svd.n));
    case LIBCALL_EIG:
        return cubic(c->eig.batch, 25, c->eig.n, c->eig.n, c->eig.n);
    case LIBCALL_SCHUR:
        return cubic(c->schur.batch, 25, c->schur.n, c->schur.n, c->schur.n);
    case LIBCALL_HESSENBERG:
        return cubic(c->hessenberg.batch, 10.0 / 3, c->hessenberg.n,
                     c->hessenberg.n, c->hessenberg.n);
    case LIBCALL_TRIDIAGONAL:
        return cubic(c->tridiagonal.batch, 4.0 / 3, c->tridiagonal.n,
                     c->tridiagonal.n, c->tridiagonal.n);
    case LIBCALL_GEQP3:
        return cubic(c->geqp3.batch, 2, c->geqp3.m, c->geqp3.n,
                     SD_MIN(c->geqp3.m, c->geqp3.n));
    case LIBCALL_LU:
        return cubic(c->lu.batch, 1, c->lu.m, c->lu.n,
                     SD_MIN(c->lu.m, c->lu.n));
    case LIBCALL_QR:
        return cubic(c->qr.batch, 2, c->qr.m, c->qr.n,
                     SD_MIN(c->qr.m, c->qr.n));
    case LIBCALL_REFLECTIONS:
        return cubic(c->reflections.batch, 2, c->reflections.m,
                     c->reflections.n, c->reflections.t);
    case LIBCALL_REFLECT:
        return cubic(c->reflect.batch, 4, c->reflect.p, c->reflect.q,
                     c->reflect.t);
    case LIBCALL_CHOLESKY:
        return cubic(c->cholesky.batch, 1.0 / 3, c->cholesky.n, c->cholesky.n,
                     c->cholesky.n);
    case LIBCALL_SOLVE:
        return cubic(c->solve.batch, 1, c->solve.p, c->solve.q,
                     c->solve.left ? c->solve.p : c->solve.q);
    case LIBCALL_TRIDIAGONAL_SOLVE:
        return cubic(c->tridiagonal_solve.batch, 8, c->tridiagonal_solve.n,
                     c->tridiagonal_solve.p, 1);
    case LIBCALL_COUNT:
        break;
    }
    return 0;
}
