/* The device functions of the calls of linear algebra (src/devlib/dl_la_*.h):
 * which one, with what numbers, work space and cost.  An item is a matrix. */
#include "hlo_linalg.h"

/* Functions; X(name). */
#define FUNCTIONS(X) \
    X(eigh) \
    X(svd) \
    X(svd_values) \
    X(eig) \
    X(eig_left) \
    X(eig_right) \
    X(eig_values) \
    X(schur) \
    X(schur_values) \
    X(hessenberg) \
    X(tridiagonal) \
    X(tridiagonal_solve) \
    X(geqp3) \
    X(lu) \
    X(qr) \
    X(householder_product) \
    X(ormqr) \
    X(cholesky) \
    X(triangular_solve) \
    X(spsolve)

typedef enum {
#define X(name) FN_##name,
    FUNCTIONS(X)
#undef X
} function;

enum { TYPES = 4 };
static const char *const function_name[][TYPES] = {
#define X(name) \
    {"dl_" #name "_f32", "dl_" #name "_f64", "dl_" #name "_c64", \
     "dl_" #name "_c128"},
    FUNCTIONS(X)
#undef X
};

static int type_number(sd_dtype t)
{
    return t == SD_F32 ? 0 : t == SD_F64 ? 1 : t == SD_C64 ? 2 : 3;
}

/* Those that also do many small matrices at once, a lane each, and a matrix by
 * a group of a GPU's work items; X(name). */
#define SPREAD(X) \
    X(eigh) \
    X(svd) \
    X(svd_values) \
    X(lu) \
    X(qr) \
    X(householder_product) \
    X(cholesky) \
    X(triangular_solve)
static const char *const lanes_name[][2] = {
#define X(name) \
    [FN_##name] = {"dl_" #name "_lanes_f32", "dl_" #name "_lanes_f64"},
    SPREAD(X)
#undef X
};
static const char *const group_name[][TYPES] = {
#define X(name) \
    [FN_##name] = {"dl_" #name "_group_f32", "dl_" #name "_group_f64", \
                   "dl_" #name "_group_c64", "dl_" #name "_group_c128"},
    SPREAD(X)
#undef X
};

/* Where the vectors of all lanes outgrow the second level of cache one matrix
 * after the other is quicker. */
enum { MOST_LANES_SIDE = 64, LEAST_LANES_BATCH = 4, VECTOR_BYTES = 64 };

typedef struct { /* work, room: in numbers of the call's type; lanes: in
                    vectors */
    hlo_call *to;
    double work, flops, lanes;
    double room; /* of work space, what only a group has beside the rest */
    double wide;
    bool alone; /* one after the other is quicker for all that */
    function fn;
} filling;

static void put(filling *f, int64_t v)
{
    f->to->at[f->to->nint++] = v;
}

static void put_all(filling *f, function fn, int n, const int64_t *v)
{
    f->fn = fn;
    for (int i = 0; i < n; i++)
        put(f, v[i]);
}
#define PUT(f, fn, ...) \
    put_all(f, fn, (int)SD_COUNTOF(((const int64_t[]){__VA_ARGS__})), \
            (const int64_t[]){__VA_ARGS__})

/* ---- one function a call ---- */

/* What reflectors of m x n numbers are applied and found with: twice MANY_SUMS,
 * BLOCK and twice SEARCHES of src/devlib, which asserts that they are. */
enum { A_SUM = 64, A_BLOCK = 16, A_SEARCH = 64 };
static double reflect_room(double m, double n)
{
    return A_SUM + (m / A_BLOCK + 1) * n;
}

static void fill_eigh(filling *f, const hlo_linalg *c)
{
    double n = (double)c->n;

    PUT(f, FN_eigh, c->n, c->attr[0]);
    f->work = n * n + 5 * n;
    f->room = reflect_room(n, n);
    f->wide = n * n;
    f->flops = 10 * n * n * n;
    f->lanes = 3 * n * n + 6 * n;
}

static void fill_svd(filling *f, const hlo_linalg *c)
{
    double m = (double)SD_MAX(c->m, c->n), n = (double)SD_MIN(c->m, c->n);
    double more = c->attr[0] ? m : n;

    if (c->attr[1])
        PUT(f, FN_svd, c->m, c->n, c->attr[0]);
    else
        PUT(f, FN_svd_values, c->m, c->n);
    f->work = m * n + 6 * m + (c->attr[1] ? 2 * m * more + 2 * n * n : 0);
    f->room = reflect_room(m, c->attr[1] ? SD_MAX(more, n) : n);
    f->wide = m * n;
    f->flops = (c->attr[1] ? 20 : 4) * m * m * n;
    f->lanes = f->work + m * n + n;
}

static void fill_eig(filling *f, const hlo_linalg *c)
{
    static const function fn[2][2] = {{FN_eig_values, FN_eig_right},
                                      {FN_eig_left, FN_eig}};
    double n = (double)c->n;

    PUT(f, fn[c->attr[0]][c->attr[1]], c->n);
    f->work = 7 * n * n + 6 * n;
    f->flops = 30 * n * n * n;
}

static void fill_schur(filling *f, const hlo_linalg *c)
{
    double n = (double)c->n;

    PUT(f, c->attr[0] ? FN_schur : FN_schur_values, c->n);
    f->work = (c->attr[0] ? n * n : 0) + 2 * n;
    f->flops = 25 * n * n * n;
}

static void fill_hessenberg(filling *f, const hlo_linalg *c)
{
    double n = (double)c->n;

    PUT(f, FN_hessenberg, c->n);
    f->work = n;
    f->flops = 10.0 / 3 * n * n * n;
}

static void fill_tridiagonal(filling *f, const hlo_linalg *c)
{
    double n = (double)c->n;

    PUT(f, FN_tridiagonal, c->n, c->attr[0]);
    f->work = n * n + 3 * n;
    f->flops = 2 * n * n * n;
}

static void fill_tridiagonal_solve(filling *f, const hlo_linalg *c)
{
    PUT(f, FN_tridiagonal_solve, c->n, c->p, c->attr[0]);
    f->work = 3 * (double)c->n;
    f->flops = 5 * (double)c->n * (double)(c->p + 2);
}

static double qr_flops(const hlo_linalg *c)
{
    double m = (double)c->m, n = (double)c->n, k = SD_MIN(m, n);

    return 4 * m * n * k;
}

static void fill_geqp3(filling *f, const hlo_linalg *c)
{
    PUT(f, FN_geqp3, c->m, c->n);
    f->work = 2 * (double)c->n;
    f->flops = 1.5 * qr_flops(c);
}

static void fill_lu(filling *f, const hlo_linalg *c)
{
    PUT(f, FN_lu, c->m, c->n);
    f->work = 1;
    f->room = A_SEARCH;
    f->wide = (double)c->m * (double)c->n;
    f->flops = qr_flops(c) / 4;
    f->lanes = (double)c->m * (double)c->n + (double)SD_MIN(c->m, c->n);
}

static void fill_qr(filling *f, const hlo_linalg *c)
{
    PUT(f, FN_qr, c->m, c->n);
    f->work = 1;
    f->room = reflect_room((double)c->m, (double)c->n);
    f->wide = (double)c->m * (double)c->n;
    f->flops = qr_flops(c);
    f->lanes = 2 * (double)c->m * (double)c->n + 2 * (double)c->n;
}

static void fill_householder(filling *f, const hlo_linalg *c)
{
    PUT(f, FN_householder_product, c->m, c->n, c->t);
    f->work = 1;
    f->room = reflect_room((double)c->m, (double)c->n);
    f->wide = (double)c->m * (double)c->n;
    f->flops = qr_flops(c);
    f->lanes = 2 * (double)c->m * (double)c->n + 2 * (double)c->n;
}

static void fill_ormqr(filling *f, const hlo_linalg *c)
{
    PUT(f, FN_ormqr, c->n, c->p, c->q, c->t, c->attr[0], c->attr[1]);
    f->work = (double)c->q;
    f->flops = 4 * (double)c->p * (double)c->q * (double)c->t;
}

static void fill_cholesky(filling *f, const hlo_linalg *c)
{
    double n = (double)c->n;

    PUT(f, FN_cholesky, c->n, c->attr[0], c->attr[1]);
    f->wide = n * n;
    f->flops = n * n * n / 3;
    f->lanes = n * (n + 1);
}

static void fill_triangular_solve(filling *f, const hlo_linalg *c)
{
    PUT(f, FN_triangular_solve, c->n, c->p, c->q, c->attr[0], c->attr[1],
        c->attr[2], c->attr[3]);
    f->work = (double)c->n * (double)c->n;
    f->room = A_SUM;
    f->wide = (double)c->p * (double)c->q;
    f->flops = (double)c->n * (double)c->p * (double)c->q;
    f->lanes = f->work + (double)c->p * (double)c->q;
    /* rows of whole tiles, of matrices of which 8 do not fit in a cache */
    f->alone = c->attr[0] && c->q > 32 && c->q % 32 == 0;
}

static void fill_spsolve(filling *f, const hlo_linalg *c)
{
    double n = (double)c->n;

    PUT(f, FN_spsolve, c->n, c->z);
    f->work = n * n + n;
    f->flops = 2.0 / 3 * n * n * n;
}

static void (*const fill_table[HLO_LA_COUNT])(filling *, const hlo_linalg *) = {
    [HLO_LA_EIGH] = fill_eigh,
    [HLO_LA_SVD] = fill_svd,
    [HLO_LA_EIG] = fill_eig,
    [HLO_LA_SCHUR] = fill_schur,
    [HLO_LA_HESSENBERG] = fill_hessenberg,
    [HLO_LA_TRIDIAGONAL] = fill_tridiagonal,
    [HLO_LA_TRIDIAGONAL_SOLVE] = fill_tridiagonal_solve,
    [HLO_LA_GEQP3] = fill_geqp3,
    [HLO_LA_LU] = fill_lu,
    [HLO_LA_QR] = fill_qr,
    [HLO_LA_HOUSEHOLDER_PRODUCT] = fill_householder,
    [HLO_LA_ORMQR] = fill_ormqr,
    [HLO_LA_CHOLESKY] = fill_cholesky,
    [HLO_LA_TRIANGULAR_SOLVE] = fill_triangular_solve,
    [HLO_LA_SPSOLVE] = fill_spsolve,
};

static void fill_lanes(const filling *f, const hlo_linalg *c)
{
    int64_t side = SD_MAX(SD_MAX(c->m, c->n), SD_MAX(c->p, c->q));

    if (f->lanes == 0 || (c->type != SD_F32 && c->type != SD_F64) ||
        side > MOST_LANES_SIDE || c->batch < LEAST_LANES_BATCH)
        return;
    f->to->small = true;
    if (f->alone)
        return;
    f->to->lanes = lanes_name[f->fn][type_number(c->type)];
    f->to->lanes_work = (size_t)f->lanes * VECTOR_BYTES;
}

static double work_bytes(const filling *f, const hlo_linalg *c, double room)
{
    return ((f->work + room) * (double)sd_dtype_bytes(c->type) + 63) / 64;
}

static void fill_group(const filling *f, const hlo_linalg *c)
{
    if (f->wide == 0)
        return;
    f->to->group = group_name[f->fn][type_number(c->type)];
    f->to->group_work = (size_t)work_bytes(f, c, f->room) * 64;
    f->to->wide = (int64_t)f->wide;
}

bool hlo_call_linalg(const hlo_inst *in, hlo_call *out)
{
    filling f = {.to = out};
    hlo_linalg c;
    double bytes;

    if (!hlo_linalg_read(in, &c) || c.batch == 0 ||
        !hlo_linalg_has_code(c.type))
        return false;
    fill_table[c.id](&f, &c);
    bytes = work_bytes(&f, &c, 0);
    if (bytes > 1e12) /* more than a machine has */
        return false;
    out->fn = function_name[f.fn][type_number(c.type)];
    out->items = c.batch;
    out->work = (size_t)bytes * 64;
    fill_lanes(&f, &c);
    fill_group(&f, &c);
    out->flops = f.flops * (double)c.batch * (sd_is_complex(c.type) ? 4 : 1);
    return true;
}
