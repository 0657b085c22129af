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

/* ---- linear algebra: by the words of its row ---- */

static int64_t named(const libcall *c, const char *name)
{
    return libcall_field(c, name, strlen(name));
}

static int64_t extent_of(const libcall *c, char letter)
{
    int64_t m = named(c, "m"), n = named(c, "n"), k = SD_MIN(m, n);

    switch (letter) {
    case 'k':
        return k;
    case 'h':
        return n - 1;
    case 'f':
        return named(c, "full") ? m : k;
    case 'g':
        return named(c, "full") ? n : k;
    case 's':
        return named(c, named(c, "left") ? "p" : "q");
    default:
        return libcall_field(c, &letter, 1);
    }
}

static sd_dtype type_of(const libcall *c, char letter)
{
    sd_dtype type = (sd_dtype)named(c, "type"), part = sd_dtype_part(type);

    return letter == 'R'   ? part
           : letter == 'C' ? sd_dtype_complex(part)
           : letter == 'I' ? SD_S32
                           : type;
}

static void put_words(const libcall *c, libcall_args *a, const char *words)
{
    for (const char *at = words, *end; *at; at = end + strspn(end, " ")) {
        size_t flag = strcspn(at, "? ");

        end = at + strcspn(at, " ");
        if (at[flag] == '?' && !libcall_field(c, at, flag))
            continue;
        if (at[flag] == '?')
            at += flag + 1;
        put(a, type_of(c, at[0]), named(c, "batch"), extent_of(c, at[1]),
            end - at > 2 ? extent_of(c, at[2]) : 1);
    }
}

libcall_args libcall_args_of(const libcall *c)
{
    static const char *const words[LIBCALL_COUNT][2] = {
#define MATRICES(id, operands, results) [LIBCALL_##id] = {operands, results},
#include "libcall.def"
    };
    libcall_args a = {0};

    switch (c->op) {
    case LIBCALL_MATMUL:
        matmul_args(&c->matmul, &a);
        break;
    case LIBCALL_CONV:
        conv_args(&c->conv, &a);
        break;
    default:
        put_words(c, &a, words[c->op][0]);
        operands_end(&a);
        put_words(c, &a, words[c->op][1]);
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
#define CUBIC(id, name, factor, x, y, z) \
    case LIBCALL_##id: { \
        const libcall_##name *o = &c->name; \
        return cubic(o->batch, factor, x, y, z); \
    }
        /* clang-format off */
        CUBIC(EIGH, eigh, 9, o->n, o->n, o->n)
        CUBIC(SVD, svd, o->vectors ? 20 : 4, o->m, o->n, SD_MIN(o->m, o->n))
        CUBIC(EIG, eig, 25, o->n, o->n, o->n)
        CUBIC(SCHUR, schur, 25, o->n, o->n, o->n)
        CUBIC(HESSENBERG, hessenberg, 10.0 / 3, o->n, o->n, o->n)
        CUBIC(TRIDIAGONAL, tridiagonal, 4.0 / 3, o->n, o->n, o->n)
        CUBIC(GEQP3, geqp3, 2, o->m, o->n, SD_MIN(o->m, o->n))
        CUBIC(LU, lu, 1, o->m, o->n, SD_MIN(o->m, o->n))
        CUBIC(QR, qr, 2, o->m, o->n, SD_MIN(o->m, o->n))
        CUBIC(REFLECTIONS, reflections, 2, o->m, o->n, o->t)
        CUBIC(REFLECT, reflect, 4, o->p, o->q, o->t)
        CUBIC(CHOLESKY, cholesky, 1.0 / 3, o->n, o->n, o->n)
        CUBIC(SOLVE, solve, 1, o->p, o->q, o->left ? o->p : o->q)
        CUBIC(TRIDIAGONAL_SOLVE, tridiagonal_solve, 8, o->n, o->p, 1)
        /* clang-format on */
#undef CUBIC
    case LIBCALL_COUNT:
        break;
    }
    return 0;
}
