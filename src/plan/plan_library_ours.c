/* Which products are ours although the library could do them: where our
 * blocks were measured to take less time (docs/libraries.md). */
#include "plan_library.h"

enum {
    LEAST_WORK = 32768,
    LEAST_MATRIX = 4096,
    OWN_MATRIX = 24 * 24 * 24,   /* of a batch, in vectors of 16 */
    OWN_MATRIX_8 = 32 * 32 * 32, /* in vectors of 8 */
    OWN_COLUMNS = 3,
    CROWDED = 2048 / (int)sizeof(float), /* from line to line, or a multiple */
    CROWDED_WORK = 1 << 20, /* below, calls and tiles cost more than lines */
    SHORT_SIDES = 260, /* half of what two equal sides have */
    MANY_UNITS = 8,
    LEAST_SIDE = 48,
    LEAST_SHARE = 2 * LEAST_SIDE * LEAST_SIDE, /* of the result, a thread */
    MUCH_SHARE = 1 << 26, /* multiplications of a thread */
    FEW_ROWS = 4,
    FEW_COLUMNS = 32, /* two vectors with AVX-512 */
    SHORT_SUM = 128, /* our copies take long beside it */
    SHARED_WORK = 1 << 22, /* the least that oneDNN's calls share out */
    SMALL_SHARE = 1 << 24, /* multiplications of a thread of few */
    MUCH_TILED = 1 << 30 /* multiplications of bf16 in AMX's tiles */
};

static int64_t extent_of_free(const sd_shape *s, hlo_dims batch, hlo_dims con)
{
    int64_t n = sd_shape_count(s);

    for (int i = 0; i < batch.n; i++)
        n /= s->dim[batch.at[i]];
    for (int i = 0; i < con.n; i++)
        n /= s->dim[con.at[i]];
    return n;
}

/* Has operand k two dimensions beside those of the batch, and does its
 * contracted one lie before the other, so that the sum runs down its lines? */
static bool is_read_down(const hlo_inst *in, int k)
{
    const hlo_dot *d = in->u.dot;
    int nbatch = k ? d->rhs_batch.n : d->lhs_batch.n;
    int64_t con = k ? d->rhs_contract.at[0] : d->lhs_contract.at[0];

    return in->arg[k]->shape->rank == nbatch + 2 && con == nbatch;
}

bool plan_is_of_bytes(const hlo_inst *x)
{
    sd_dtype t = x->op == HLO_CONVERT ? x->arg[0]->shape->dtype : SD_F32;

    return sd_is_int(t) && sd_dtype_table[t].bits == 8;
}

bool plan_product_of(const hlo_inst *in, plan_product *p)
{
    const hlo_dot *d = in->u.dot;

    *p = (plan_product){.of_f32 = in->shape->dtype == SD_F32,
                        .of_bf16 = in->arg[0]->shape->dtype == SD_BF16,
                        .of_bytes = plan_is_of_bytes(in->arg[0])};
    p->k = in->arg[0]->shape->dim[d->lhs_contract.at[0]];
    p->m = extent_of_free(in->arg[0]->shape, d->lhs_batch, d->lhs_contract);
    p->n = extent_of_free(in->arg[1]->shape, d->rhs_batch, d->rhs_contract);
    p->batch = sd_shape_count(in->shape) / SD_MAX(p->m * p->n, 1);
    for (int i = 0; i < 2; i++)
        p->read_down[i] = is_read_down(in, i);
    return sd_mul_i64(p->m, p->n, &p->matrix) &&
           sd_mul_i64(p->matrix, p->k, &p->matrix) &&
           sd_mul_i64(p->matrix, p->batch, &p->work);
}

/* The library's loop over a batch of small matrices costs more than kernels of
 * our own, which also share it over threads, where their vectors are long. */
static bool is_small(const plan_product *p, const device_desc *dev)
{
    int least = dev->features & DEVICE_HAS_AVX512 ? OWN_MATRIX : OWN_MATRIX_8;

    if (p->n < OWN_COLUMNS || !p->of_f32)
        least = LEAST_MATRIX;
    return p->matrix < least || p->work < LEAST_WORK;
}

/* Lines that lie half pages apart, or a multiple, have few places in the first
 * level of cache.  oneDNN reads down such lines at half its speed where it does
 * not copy them; our blocks copy them first.  Without AVX-512 (oneDNN 2.7) it
 * copies where both sides of the result are long, with AVX-512 (2.6) where the
 * pitch is a power of two or short, and so not the 3,072 columns of many a
 * transformer's layer. */
static bool is_crowded(const plan_product *p, const device_desc *dev)
{
    if (!p->of_f32 || p->work < CROWDED_WORK || p->n < PLAN_LEAST_GROUP ||
        p->m < PLAN_LEAST_GROUP)
        return false;
    if (dev->features & DEVICE_HAS_AVX512)
        return p->read_down[1] && p->n % CROWDED == 0 && p->n > 4 * CROWDED &&
               (p->n & (p->n - 1)) != 0;
    return 1.0 / (double)p->m + 1.0 / (double)p->n >= 1.0 / SHORT_SIDES &&
           ((p->read_down[1] && p->n % CROWDED == 0) ||
            (p->read_down[0] && p->m % CROWDED == 0));
}

/* Where many threads have little of a product each, the library's meet for as
 * long as they multiply, and others of ours follow; our blocks of a result that
 * all threads have tiles of need one such meeting. */
static bool is_spread_thin(const plan_product *p, const device_desc *dev)
{
    return p->of_f32 && dev->units >= MANY_UNITS && p->m >= LEAST_SIDE &&
           p->n >= LEAST_SIDE &&
           p->m * p->n * p->batch >= (int64_t)dev->units * LEAST_SHARE &&
           p->work / dev->units < MUCH_SHARE;
}

/* The same of few threads with AVX-512, where one matrix is not narrow and its
 * sums are not short; or where what follows goes into our kernel alone.  Bytes
 * are f32 in the library's kernels only. */
static bool is_middling(const plan_product *p, const device_desc *dev,
                        bool followed)
{
    return p->of_f32 && !p->of_bytes && dev->units < MANY_UNITS &&
           dev->features & DEVICE_HAS_AVX512 && p->batch == 1 &&
           p->m >= FEW_ROWS && p->n >= FEW_COLUMNS &&
           (followed || p->k >= SHORT_SUM) &&
           p->work >= (followed ? SHARED_WORK / 2 : SHARED_WORK) &&
           p->work / SD_MAX(dev->units, 1) <= SMALL_SHARE;
}

/* oneDNN has these tiles, too, and copies more.  Of many threads nothing was
 * measured. */
static bool is_much_for_tiles(const plan_product *p, const device_desc *dev)
{
    return p->of_bf16 && dev->features & DEVICE_HAS_AMX && p->batch == 1 &&
           dev->units < MANY_UNITS && p->work >= MUCH_TILED;
}

bool plan_is_ours(const plan_product *p, const device_desc *dev, bool followed)
{
    return is_small(p, dev) || is_crowded(p, dev) || is_spread_thin(p, dev) ||
           is_middling(p, dev, followed) || is_much_for_tiles(p, dev);
}
