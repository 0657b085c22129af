/* The custom-call "sundog.fft": transforms of the lines of an array, one
 * dimension at a time, as src/devlib/dl_fft.h does them.
 *
 * The array is [outer][moved][n][inner], n what a line has (a real line's
 * transform, and what the inverse starts from: n / 2 + 1 numbers), the result
 * [outer][n][moved][inner] divided by `count`.  With `turn`, result k of a line
 * at place c of the inner dimension is also multiplied by exp(-2 pi i k (c /
 * each) / turn): a line of n1 n2 numbers is a matrix whose columns are
 * transformed, turned, and whose rows are transformed and moved.
 *
 * Operand 1 is the table of roots that the device function reads; what it
 * holds follows from the rest (passes/fft_table.c), so only it may be there. */
#include "hlo_fft.h"

#include <string.h>

enum {
    MOST_RADIX = 113,  /* larger primes take a chirp */
    MOST_WIDTH = 16,
    LEAST_ROWS = 16,  /* of a long line that is done as columns */
    EDGE = 16,        /* numbers beside a plane: FFT_EDGE of dl_fft.h */
    TURNS = 64,
    BLOCK = 32768,    /* numbers of a block: its planes fill half of L2 */
    TABLE_EDGE = 64
};

/* As in dl_fft.h. */
enum {
    INVERSE = 1,
    REAL_IN = 2,
    REAL_OUT = 4,
    HALVES = 8,
    HALF_OUT = 16,
    HALF_IN = 32,
    CHIRP = 64
};

/* ---- which way ---- */

static int64_t largest_prime(int64_t n)
{
    int64_t most = 1;

    for (int64_t p = 2; p * p <= n; p++)
        for (; n % p == 0; n /= p)
            most = p;
    return n > 1 ? n : most;
}

bool hlo_fft_is_smooth(int64_t n)
{
    return largest_prime(n) <= MOST_RADIX;
}

/* The least length from n up that is 16, 48 or 80 times a power of two. */
static int64_t round_length(int64_t n)
{
    static const int64_t some[] = {16, 48, 80};
    int64_t best = INT64_MAX;

    for (size_t i = 0; i < SD_COUNTOF(some); i++) {
        int64_t k = some[i];

        while (k < n)
            k *= 2;
        best = SD_MIN(best, k);
    }
    return best;
}

static void add_radices(hlo_fft_plan *p, int64_t *n, int64_t r)
{
    while (*n % r == 0) {
        p->radix[p->nradix++] = (int)r;
        *n /= r;
    }
}

/* Eights; what is left of the twos makes one of them a 16, or is a 2 or 4. */
static void find_radices(hlo_fft_plan *p, int64_t n)
{
    int twos = __builtin_ctzll((uint64_t)n);

    n >>= twos;
    if (twos % 3 == 1 && twos >= 4) {
        p->radix[p->nradix++] = 16;
        twos -= 4;
    }
    for (; twos >= 3; twos -= 3)
        p->radix[p->nradix++] = 8;
    if (twos)
        p->radix[p->nradix++] = 1 << twos;
    for (int64_t r = 3; r <= MOST_RADIX; r += 2)
        add_radices(p, &n, r);
}

static int64_t columns_of(int64_t n)
{
    static const int64_t some[] = {16, 15, 13, 11, 9, 8, 7, 5};

    for (size_t i = 0; i < SD_COUNTOF(some); i++)
        if (n % some[i] == 0 && n / some[i] >= LEAST_ROWS)
            return some[i];
    return 0;
}

static bool is_odd_radix(int64_t r)
{
    return r % 2 && r != 3 && r != 5;
}

static int64_t stage_table(const hlo_fft_plan *p)
{
    int64_t m = p->across ? p->n / p->across : p->n, size = 0;

    for (int i = 0; i < p->nradix; i++) {
        int64_t r = p->radix[i];

        m /= r;
        size += 2 * (r - 1) * m + (is_odd_radix(r) ? 2 * r : 0);
    }
    if (p->across)
        size += 2 * (p->across - 1) * (p->n / p->across) +
                (p->across % 2 ? 2 * p->across : 0);
    return size;
}

int hlo_fft_shift(int64_t turn)
{
    int shift = 0;

    while (((int64_t)1 << shift << shift) < turn)
        shift++;
    return shift;
}

static int64_t extra_table(const hlo_fft_lines *f, const hlo_fft_plan *p)
{
    int shift = hlo_fft_shift(f->turn);

    if (p->chirp)
        return 2 * (f->n + p->n);
    if (p->halves)
        return 2 * p->n;
    if (f->turn)
        return ((int64_t)2 << shift) +
               2 * ((f->turn + ((int64_t)1 << shift) - 1) >> shift);
    return 0;
}

void hlo_fft_plan_of(const hlo_fft_lines *f, hlo_fft_plan *p)
{
    bool real = f->type == HLO_FFT_RFFT || f->type == HLO_FFT_IRFFT;
    int64_t nline = f->outer * f->moved * f->inner;
    bool is_long = f->inner == 1 && f->moved == 1 && !f->turn;

    memset(p, 0, sizeof *p);
    p->chirp = !hlo_fft_is_smooth(f->n);
    p->halves = real && f->n % 2 == 0 && !p->chirp;
    p->n = p->chirp ? round_length(2 * f->n - 1) : p->halves ? f->n / 2 : f->n;
    p->across = is_long ? columns_of(p->n) : 0;
    if (nline >= 4 && p->n < (p->across == 16 ? 1024 : 4096))
        p->across = 0;
    p->width = p->across ? 1 : SD_MIN(nline, MOST_WIDTH);
    while (p->width > 8 && p->n * p->width > BLOCK)
        p->width /= 2;
    find_radices(p, p->across ? p->n / p->across : p->n);
    p->extra = stage_table(p);
    p->table = p->extra + extra_table(f, p) + TABLE_EDGE;
}

/* ---- the call ---- */

static bool read_lines(const hlo_inst *in, hlo_fft_lines *f)
{
    const hlo_custom *c = in->u.custom;
    int64_t type;

    if (!hlo_custom_int(c, "type", &type) || type < 0 || type > HLO_FFT_IRFFT ||
        !hlo_custom_int(c, "length", &f->n) ||
        !hlo_custom_int(c, "outer", &f->outer) ||
        !hlo_custom_int(c, "moved", &f->moved) ||
        !hlo_custom_int(c, "inner", &f->inner) ||
        !hlo_custom_int(c, "turn", &f->turn) ||
        !hlo_custom_int(c, "each", &f->each) ||
        !hlo_custom_int(c, "count", &f->count))
        return false;
    f->type = (hlo_fft_type)type;
    return f->n >= 1 && f->n <= HLO_FFT_MOST && f->outer >= 1 &&
           f->moved >= 1 && f->inner >= 1 && f->turn >= 0 && f->each >= 1 &&
           f->count >= 1 && f->turn <= (int64_t)1 << 40;
}

static int64_t half(int64_t n)
{
    return n / 2 + 1;
}

/* Is s an array of that type and so many elements? */
static bool holds(const sd_shape *s, sd_dtype t, int64_t count)
{
    return sd_shape_is_array(s) && s->dtype == t && sd_shape_count(s) == count;
}

bool hlo_fft_read(const hlo_inst *in, hlo_fft_lines *f, hlo_fft_plan *p)
{
    int64_t lines, in_n, out_n, numbers;
    bool real;

    if (in->narg != 2 || !sd_shape_is_array(in->shape) || !read_lines(in, f) ||
        !sd_mul_i64(f->outer, f->moved, &lines) ||
        !sd_mul_i64(lines, f->inner, &lines) ||
        !sd_mul_i64(lines, f->n, &numbers))
        return false;
    real = f->type == HLO_FFT_RFFT || f->type == HLO_FFT_IRFFT;
    if (real && (f->moved != 1 || f->inner != 1 || f->turn))
        return false;
    f->part = sd_dtype_part(in->shape->dtype);
    if (f->part != SD_F32 && f->part != SD_F64)
        return false;
    in_n = f->type == HLO_FFT_IRFFT ? half(f->n) : f->n;
    out_n = f->type == HLO_FFT_RFFT ? half(f->n) : f->n;
    hlo_fft_plan_of(f, p);
    return holds(in->arg[0]->shape,
                 f->type == HLO_FFT_RFFT ? f->part : sd_dtype_complex(f->part),
                 lines * in_n) &&
           holds(in->shape,
                 f->type == HLO_FFT_IRFFT ? f->part : sd_dtype_complex(f->part),
                 lines * out_n) &&
           holds(in->arg[1]->shape, f->part, p->table);
}

static int64_t flags_of(const hlo_fft_lines *f, const hlo_fft_plan *p)
{
    bool to_real = f->type == HLO_FFT_IRFFT, of_real = f->type == HLO_FFT_RFFT;
    int64_t v = 0;

    if (f->type == HLO_FFT_IFFT || to_real)
        v |= INVERSE;
    if (p->halves)
        v |= HALVES;
    if (of_real)
        v |= HALF_OUT | (p->halves ? 0 : REAL_IN);
    if (to_real)
        v |= HALF_IN | (p->halves ? 0 : REAL_OUT);
    return p->chirp ? v | CHIRP : v;
}

static size_t work_of(const hlo_fft_lines *f, const hlo_fft_plan *p)
{
    int64_t plane = ((p->n + 1) * p->width + 2 * EDGE + 15) & ~(int64_t)15;
    int64_t more = 2 * MOST_WIDTH;

    if (f->turn)
        more = 2 * (TURNS + p->n / TURNS + 1) * p->width + EDGE;
    return (size_t)(4 * plane + more + 2 * EDGE) * sd_dtype_bytes(f->part);
}

static double flops_of(const hlo_fft_lines *f, const hlo_fft_plan *p)
{
    double n = (double)p->n, log2n = 1;

    while ((double)((int64_t)1 << (int)log2n) < n)
        log2n++;
    return (double)(f->outer * f->moved * f->inner) * n * log2n *
           (p->chirp ? 10 : 5);
}

/* In the order of dl_fft. */
bool hlo_call_fft(const hlo_inst *in, hlo_call *out)
{
    hlo_fft_lines f;
    hlo_fft_plan p;
    int64_t nline, in_n, out_n, radix[2] = {0, 0};
    bool of_real, to_real;
    int k = 0;

    if (!hlo_fft_read(in, &f, &p))
        return false;
    nline = f.outer * f.moved * f.inner;
    of_real = f.type == HLO_FFT_RFFT;
    to_real = f.type == HLO_FFT_IRFFT;
    /* in parts, of which a complex number has two */
    in_n = of_real ? f.n : 2 * (to_real ? half(f.n) : f.n);
    out_n = to_real ? f.n : 2 * (of_real ? half(f.n) : f.n);
    for (int i = 0; i < p.nradix; i++)
        radix[i / 8] |= (int64_t)p.radix[i] << (i % 8 * 8);
    out->fn = f.part == SD_F64 ? "dl_fft_f64" : "dl_fft_f32";
    out->items = (nline + p.width - 1) / p.width;
    out->whole = true;
    out->at[k++] = p.n;
    out->at[k++] = flags_of(&f, &p);
    out->at[k++] = p.width;
    out->at[k++] = p.across;
    out->at[k++] = nline;
    out->at[k++] = f.moved;
    out->at[k++] = f.inner;
    out->at[k++] = in_n * f.moved * f.inner;
    out->at[k++] = in_n * f.inner;
    out->at[k++] = of_real && !p.halves ? 1 : 2 * f.inner;
    out->at[k++] = out_n * f.moved * f.inner;
    out->at[k++] = 2 * f.inner;
    out->at[k++] = to_real && !p.halves ? 1 : 2 * f.moved * f.inner;
    out->at[k++] = radix[0];
    out->at[k++] = radix[1];
    out->at[k++] = f.n;
    out->at[k++] = f.count;
    out->at[k++] = f.turn;
    out->at[k++] = f.each;
    out->at[k++] = p.extra;
    out->nint = k;
    out->work = work_of(&f, &p);
    out->flops = flops_of(&f, &p);
    return true;
}
