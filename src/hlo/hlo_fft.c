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
 * With `whole` the complex lines are rows of such a matrix of a real line of
 * that length, whose conjugate half is in no array: of whole / n rows there are
 * the first half.  FFT then makes [outer][whole / 2 + 1] of rows [outer][moved]
 * [n]; IFFT makes [outer][inner][n] of [outer][whole / 2 + 1].
 *
 * Operand 1 is the table of roots that the device function reads; what it
 * holds follows from the rest (passes/fft_table.c), so only it may be there. */
#include "hlo_fft.h"

#include <string.h>

enum {
    MOST_RADIX = 131, /* larger primes take a chirp */
    SHORT = 256,      /* even real lines that are not done as halves */
    MOST_WIDTH = 16,
    LEAST_ABREAST = 4, /* lines of an item that lie across memory */
    LEAST_ROWS = 16,  /* of a long line that is done as columns */
    EDGE = 16,
    GAPS = 256, /* beside a plane and in it: see dl_fft.h */
    BANKS = 32,
    TURNS = 64,
    BLOCK = 65536, /* numbers of a block: its planes in f32 fill 1 MB of L2 */
    TABLE_EDGE = 64
};

static const int64_t MOST_WHOLE = (int64_t)1 << 40;

/* As in dl_fft.h. */
enum { INVERSE = 1, HALVES = 2, HALF_OUT = 4, HALF_IN = 8, CHIRP = 16 };

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

/* The least length from n up that is one of these times a power of two. */
static int64_t round_length(int64_t n)
{
    static const int64_t some[] = {16, 48, 80, 144, 240};
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

bool hlo_fft_has_roots(int64_t r)
{
    return r % 2 && r != 3 && r != 5;
}

static int64_t stage_table(const hlo_fft_plan *p)
{
    int64_t m = p->across ? p->n / p->across : p->n, size = 0;

    if (p->real) {
        m /= p->real;
        size += 2 * p->real + 2 * (p->real / 2) * m;
    }
    for (int i = 0; i < p->nradix; i++) {
        int64_t r = p->radix[i];

        m /= r;
        size += 2 * (r - 1) * m + (hlo_fft_has_roots(r) ? 2 * r : 0);
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
    int64_t size = 0;

    if (p->chirp)
        size += 2 * (p->length + p->n);
    if (p->halves)
        size += 2 * p->length;
    if (f->turn)
        size += ((int64_t)2 << shift) +
                2 * ((f->turn + ((int64_t)1 << shift) - 1) >> shift);
    return size;
}

static bool is_real(const hlo_fft_lines *f)
{
    return f->type == HLO_FFT_RFFT || f->type == HLO_FFT_IRFFT;
}

bool hlo_fft_is_short(hlo_fft_type type, int64_t n)
{
    bool pairs = type == HLO_FFT_RFFT || type == HLO_FFT_IRFFT;

    return n <= HLO_FFT_MOST || (n <= (int64_t)HLO_FFT_SMOOTH * (1 + pairs) &&
                                 n % (1 + pairs) == 0 && hlo_fft_is_smooth(n));
}

/* The radix of a real line's stage on reals: a large one saves most. */
static int real_radix(int64_t n)
{
    static const int some[] = {15, 9, 5, 3, 4};
    int64_t prime = largest_prime(n);

    for (size_t i = 0; prime <= 5 && i < SD_COUNTOF(some); i++)
        if (n % some[i] == 0)
            return some[i];
    return prime > 2 ? (int)prime : 0;
}

/* Which transform the lines take, and how long it is. */
static void find_way(const hlo_fft_lines *f, hlo_fft_plan *p)
{
    bool smooth = hlo_fft_is_smooth(f->n), odd = is_real(f) && f->n % 2;

    /* what joins the halves of an even line is quick, and adds to the error */
    if (is_real(f) && smooth && (odd || f->n <= SHORT))
        p->real = real_radix(f->n);
    p->halves = is_real(f) && !odd && !p->real;
    p->length = p->halves ? f->n / 2 : f->n;
    p->chirp = !smooth;
    p->n = smooth ? p->length
           : odd  ? round_length(f->n + f->n / 2)
                  : round_length(2 * p->length - 1);
}

void hlo_fft_plan_of(const hlo_fft_lines *f, hlo_fft_plan *p)
{
    int64_t nline = f->outer * f->moved * f->inner;
    bool is_long = f->inner == 1 && f->moved == 1 && !f->turn && !f->whole;
    int64_t most = f->part == SD_F64 ? MOST_WIDTH / 2 : MOST_WIDTH;

    memset(p, 0, sizeof *p);
    find_way(f, p);
    p->across = is_long ? columns_of(p->n) : 0;
    if ((p->real && f->n <= SHORT) ||
        (nline >= 4 && p->n < (p->across == 16 ? 1024 : 4096)))
        p->across = 0;
    if (p->n * most > BLOCK)
        most = MOST_WIDTH / 2;
    p->width = p->across ? 1 : SD_MIN(nline, most);
    if (p->across)
        p->real = 0;
    else if (p->real) /* whose rows are not side by side in one line */
        p->width = SD_MAX(p->width, 2);
    find_radices(p, p->across ? p->n / p->across
                    : p->real ? p->n / p->real
                              : p->n);
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
        !hlo_custom_int(c, "count", &f->count) ||
        !hlo_custom_int(c, "whole", &f->whole))
        return false;
    f->type = (hlo_fft_type)type;
    return f->n >= 1 && hlo_fft_is_short(f->type, f->n) && f->outer >= 1 &&
           f->moved >= 1 && f->inner >= 1 && f->turn >= 0 && f->each >= 1 &&
           f->count >= 1 && f->turn <= MOST_WHOLE && f->whole >= 0 &&
           f->whole <= MOST_WHOLE;
}

static int64_t half(int64_t n)
{
    return n / 2 + 1;
}

/* Are the lines those that `whole`, the turn and the type speak of? */
static bool fits(const hlo_fft_lines *f)
{
    int64_t rows = half(f->whole / f->n);

    if (is_real(f))
        return f->moved == 1 && !f->whole &&
               (!f->turn || f->type == HLO_FFT_RFFT);
    if (!f->whole)
        return true;
    if (f->whole % f->n)
        return false;
    return f->type == HLO_FFT_FFT
               ? f->moved == rows && f->inner == 1 && !f->turn
               : f->inner == rows && f->moved == 1;
}

/* Is s an array of that type and so many elements? */
static bool holds(const sd_shape *s, sd_dtype t, int64_t count)
{
    return sd_shape_is_array(s) && s->dtype == t && sd_shape_count(s) == count;
}

bool hlo_fft_read(const hlo_inst *in, hlo_fft_lines *f, hlo_fft_plan *p)
{
    int64_t lines, in_count, out_count, numbers;

    if (in->narg != 2 || !sd_shape_is_array(in->shape) || !read_lines(in, f) ||
        !sd_mul_i64(f->outer, f->moved, &lines) ||
        !sd_mul_i64(lines, f->inner, &lines) ||
        !sd_mul_i64(lines, f->n, &numbers) || !fits(f))
        return false;
    f->part = sd_dtype_part(in->shape->dtype);
    if (f->part != SD_F32 && f->part != SD_F64)
        return false;
    in_count = f->type == HLO_FFT_IRFFT ? lines * half(f->n) : numbers;
    out_count = f->type == HLO_FFT_RFFT ? lines * half(f->n) : numbers;
    if (f->whole && f->type == HLO_FFT_FFT)
        out_count = f->outer * half(f->whole);
    else if (f->whole)
        in_count = f->outer * half(f->whole);
    hlo_fft_plan_of(f, p);
    return holds(in->arg[0]->shape,
                 f->type == HLO_FFT_RFFT ? f->part : sd_dtype_complex(f->part),
                 in_count) &&
           holds(in->shape,
                 f->type == HLO_FFT_IRFFT ? f->part : sd_dtype_complex(f->part),
                 out_count) &&
           holds(in->arg[1]->shape, f->part, p->table);
}

static int64_t flags_of(const hlo_fft_lines *f, const hlo_fft_plan *p)
{
    bool to_real = f->type == HLO_FFT_IRFFT;

    return (f->type == HLO_FFT_IFFT || to_real ? INVERSE : 0) |
           (p->halves ? HALVES : 0) | (p->chirp ? CHIRP : 0) |
           (f->type == HLO_FFT_RFFT ? HALF_OUT : 0) | (to_real ? HALF_IN : 0);
}

/* Places of n numbers in a group's own memory, as PAD in dl_fft.c has them. */
static int64_t padded(int64_t n)
{
    return n + n / BANKS;
}

static size_t work_of(const hlo_fft_lines *f, const hlo_fft_plan *p, bool local)
{
    int64_t plane = ((p->n + 1) * p->width + 2 * EDGE + GAPS + 15) & ~15;
    int64_t more = 4 * MOST_WIDTH;

    if (f->turn)
        more += 2 * (TURNS + p->n / TURNS + 1) * p->width + EDGE;
    if (local) {
        plane = padded(plane);
        more = padded(more);
    }
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

/* How an array [outer][n][inner] of real or complex lines lies, in parts: from
 * one to the next of outer, 0, inner, n, and of the parts of a number.  Real
 * lines that are done as halves are lines of pairs. */
static void lie_of(const hlo_fft_plan *p, bool real, int64_t n, int64_t inner,
                   int64_t at[5])
{
    int64_t each = real ? 1 : 2;

    at[0] = each * n * inner;
    at[1] = 0;
    at[2] = each;
    at[3] = (real && p->halves ? 2 : each) * inner;
    at[4] = !real ? 1 : p->halves ? inner : 0;
}

static void lies_of(const hlo_fft_lines *f, const hlo_fft_plan *p,
                    int64_t in[5], int64_t out[5])
{
    bool of_real = f->type == HLO_FFT_RFFT, to_real = f->type == HLO_FFT_IRFFT;
    int64_t in_n = to_real ? half(f->n) : f->n;
    int64_t out_n = of_real ? half(f->n) : f->n;
    int64_t line = 2 * f->n, *side, *rows;

    lie_of(p, of_real, in_n, f->inner, in);
    lie_of(p, to_real, out_n, f->inner, out);
    if (f->moved > 1 && !f->whole) {
        in[1] = in[0];
        in[0] *= f->moved;
        out[0] *= f->moved;
        out[1] = 2 * f->inner;
        out[3] *= f->moved;
    }
    if (!f->whole)
        return;
    /* whose lines are all `inner`: rows, and every whole / n-th number */
    rows = f->type == HLO_FFT_FFT ? in : out;
    side = f->type == HLO_FFT_FFT ? out : in;
    rows[0] = line * half(f->whole / f->n);
    rows[2] = line;
    rows[3] = 2;
    side[0] = 2 * half(f->whole);
    side[2] = 2;
    side[3] = 2 * (f->whole / f->n);
}

/* How few lines an item may have.  A chirp adds the numbers of one line in
 * another order than those of several, on every device. */
static int64_t least_width(const hlo_fft_plan *p)
{
    return SD_MIN(p->real || p->chirp ? 2 : 1, p->width);
}

/* Fewer lines side by side, so that there are `items`: not so few that what a
 * group reads at once of lines across memory is less than a sector. */
static void share_out(const hlo_fft_lines *f, hlo_fft_plan *p, int64_t nline,
                      int64_t items)
{
    int64_t least = f->inner > 1 ? LEAST_ABREAST : 1;

    least = SD_MAX(least, least_width(p));
    while (p->width > least && (nline + p->width - 1) / p->width < items)
        p->width = SD_MAX(p->width / 2, least);
}

/* So few that they fit a group's own memory; else it is left as it is. */
static bool take_local(const hlo_fft_lines *f, hlo_fft_plan *p, size_t room,
                       size_t most)
{
    hlo_fft_plan q = *p;
    int64_t least = least_width(p);

    while (q.width > least && work_of(f, &q, true) > room)
        q.width = SD_MAX(q.width / 2, least);
    if (work_of(f, &q, true) > most)
        return false;
    *p = q;
    return true;
}

/* In the order of dl_fft. */
static bool make_call(const hlo_inst *in, int64_t items, size_t room,
                      size_t most, hlo_call *out)
{
    static const char *const fn[2][2] = {
        {"dl_fft_f32", "dl_fft_f64"}, {"dl_fft_local_f32", "dl_fft_local_f64"}};
    hlo_fft_lines f;
    hlo_fft_plan p;
    int64_t nline, radix[2] = {0, 0}, at[2][5];
    int k = 0;

    if (!hlo_fft_read(in, &f, &p))
        return false;
    nline = f.outer * f.moved * f.inner;
    share_out(&f, &p, nline, items);
    out->in_local = take_local(&f, &p, room, most);
    for (int i = 0; i < p.nradix; i++)
        radix[i / 8] |= (int64_t)((uint64_t)p.radix[i] << (i % 8 * 8));
    lies_of(&f, &p, at[0], at[1]);
    out->fn = fn[out->in_local][f.part == SD_F64];
    out->items = (nline + p.width - 1) / p.width;
    out->whole = true;
    out->in_place = f.moved == 1 && !f.whole && !is_real(&f);
    out->at[k++] = p.n;
    out->at[k++] = flags_of(&f, &p);
    out->at[k++] = p.width;
    out->at[k++] = p.across;
    out->at[k++] = nline;
    out->at[k++] = f.whole ? 1 : f.moved;
    out->at[k++] = f.whole ? half(f.whole / f.n) : f.inner;
    for (int i = 0; i < 10; i++)
        out->at[k++] = at[i / 5][i % 5];
    out->at[k++] = radix[0];
    out->at[k++] = radix[1];
    out->at[k++] = p.real;
    out->at[k++] = p.length;
    out->at[k++] = f.count;
    out->at[k++] = f.turn;
    out->at[k++] = f.each;
    out->at[k++] = p.extra;
    out->at[k++] = f.whole;
    out->nint = k;
    out->work = work_of(&f, &p, out->in_local);
    out->flops = flops_of(&f, &p);
    return true;
}

bool hlo_call_fft(const hlo_inst *in, hlo_call *out)
{
    return make_call(in, 1, 0, 0, out);
}

void hlo_call_share_out(hlo_call *c, int64_t items, size_t room, size_t most)
{
    make_call(c->in, items, room, most, c);
}
