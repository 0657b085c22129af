/* fft into transforms of lines, one dimension at a time: custom-calls that the
 * device library computes (hlo/hlo_fft.c).
 *
 * A line that is too long for one call is a matrix: its columns, turned, then
 * its rows.  A line whose length is no such product, being too large a prime
 * or nearly one, is a convolution with a chirp (Bluestein, 1970), by calls of
 * a length that has factors. */
#include "fft_table.h"
#include "matrix.h"
#include "terms.h"

enum { MOST_CHIRP = 1 << 27 }; /* numbers: a chirp is a constant */

typedef struct {
    hlo_at p;
    sd_dtype type; /* complex */
    hlo_fft_type kind;
    bool inverse;
} fft;

static hlo_inst *reshaped(const fft *f, hlo_inst *x, int64_t b, int64_t n,
                          int64_t c)
{
    return pass_reshape(f->p, x, 3, (int64_t[]){b, n, c});
}

/* ---- one call ---- */

static hlo_inst *call(const fft *f, hlo_inst *x, hlo_fft_lines l,
                      const sd_shape *result)
{
    sd_arena *a = f->p.c->module->arena;
    hlo_custom *u = sd_arena_new(a, hlo_custom);
    hlo_inst *arg[2] = {x}, *in;

    l.part = sd_dtype_part(f->type);
    arg[1] = fft_table(f->p, &l);
    u->target = HLO_CALL_FFT;
    u->api_version = HLO_TYPED_FFI;
    u->config = sd_arena_fmt(
        a,
        "{type = %d, length = %" PRId64 ", outer = %" PRId64
        ", moved = %" PRId64 ", inner = %" PRId64 ", turn = %" PRId64
        ", each = %" PRId64 ", count = %" PRId64 ", whole = %" PRId64 "}",
        (int)l.type, l.n, l.outer, l.moved, l.inner, l.turn, l.each, l.count,
        l.whole);
    u->config_len = strlen(u->config);
    in = hlo_inst_create(f->p.c, f->p.before, HLO_CUSTOM_CALL, result, 2, arg);
    in->u.custom = u;
    hlo_take_source(in, f->p.like);
    hlo_rename(in, "fft");
    return in;
}

/* ---- complex lines ---- */

/* The factor of n next below its root with both it and the other short enough
 * for a call; 0: there is none.  Those that need no chirp come first. */
static int64_t split(int64_t n)
{
    int64_t best = 0;
    bool smooth = false;

    for (int64_t k = 2; k * k <= n && k <= HLO_FFT_MOST; k++) {
        bool s;

        if (n % k || n / k > HLO_FFT_MOST)
            continue;
        s = hlo_fft_is_smooth(k) && hlo_fft_is_smooth(n / k);
        if (s || !smooth)
            best = k;
        smooth = smooth || s;
    }
    return best;
}

/* How many columns a line is as a matrix; 0: it is none. */
static int64_t columns_of(int64_t n)
{
    int64_t n1 = split(n);

    /* turning has the place in the table that a chirp would have */
    if (n1 && !hlo_fft_is_smooth(n1))
        n1 = n / n1;
    return n1 && hlo_fft_is_smooth(n1) ? n1 : 0;
}

/* Rather one call than two over a matrix?  Of many lines each stays in a cache,
 * and there is one for every thread. */
static bool is_direct(hlo_fft_type type, int64_t n, int64_t lines)
{
    enum { MANY = 8 };

    return n <= HLO_FFT_DIRECT ||
           (lines >= MANY && hlo_fft_is_short(type, n) && hlo_fft_is_smooth(n));
}

static hlo_inst *transform(const fft *f, hlo_inst *x, int64_t count);

/* [b, n1 n2, c]: columns of n1, then rows of n2. */
static hlo_inst *as_matrix(const fft *f, hlo_inst *x, int64_t n1, int64_t count)
{
    int64_t b = x->shape->dim[0], n = x->shape->dim[1], c = x->shape->dim[2];
    hlo_fft_type kind = f->inverse ? HLO_FFT_IFFT : HLO_FFT_FFT;
    hlo_fft_lines l = {.type = kind,
                       .n = n1,
                       .outer = b,
                       .moved = 1,
                       .inner = n / n1 * c,
                       .turn = n,
                       .each = c,
                       .count = 1};

    x = call(f, x, l, x->shape);
    l = (hlo_fft_lines){.type = kind,
                        .n = n / n1,
                        .outer = b,
                        .moved = n1,
                        .inner = c,
                        .each = 1,
                        .count = count};
    return call(f, x, l, x->shape);
}

/* The constant [n] of exp(-pi i k^2 / n), turning as f does.  No part is -0. */
static hlo_inst *chirp_of(const fft *f, int64_t n)
{
    sd_arena *a = f->p.c->module->arena;
    sd_dtype part = sd_dtype_part(f->type);
    size_t size = sd_dtype_bytes(part);
    const sd_shape *s = sd_shape_make(a, f->type, 1, &n);
    char *to = sd_arena_alloc(a, sd_shape_bytes(s));
    long double v[2];

    for (int64_t k = 0; k < n; k++) {
        char *at = to + (size_t)k * 2 * size;

        fft_half_root((int64_t)((__int128)k * k % (2 * n)), n, v);
        sd_scalar_of_f64(part, (double)v[0], at);
        sd_scalar_of_f64(part, (double)(f->inverse ? v[1] : 0 - v[1]),
                         at + size);
    }
    return hlo_make_constant(f->p, s, to);
}

/* [n] over x [b, n, c] */
static hlo_inst *times_column(const fft *f, hlo_inst *x, hlo_inst *v)
{
    return t_mul(f->p, x,
                 hlo_make_broadcast(f->p, v, x->shape, (int64_t[]){1}, 1));
}

/* The chirp's conjugate, [n], at 0, 1, .. and at len - 1, len - 2, ..: what
 * the convolution wraps around. */
static hlo_inst *wrapped_chirp(const fft *f, hlo_inst *chirp, int64_t len)
{
    int64_t n = chirp->shape->dim[0], first = 0;
    hlo_inst *x = matrix_conj(f->p, chirp), *part[2];

    part[1] = hlo_make_cut(f->p, x, 0, 1, n);
    part[1] = hlo_make_reverse(f->p, part[1], &first, 1);
    part[0] = hlo_make_pad_dim(f->p, x, NULL, 0, 0, len - 2 * n + 1);
    return reshaped(f, hlo_make_concatenate(f->p, 2, part, 0), 1, len, 1);
}

/* The least of 5, 6, 7.5 and 8 times a power of two: columns a large power of
 * two apart fall into the same places of a cache, and threes upon threes round
 * more.  least is beyond 16. */
static int64_t round_up(int64_t least)
{
    static const int sixteenths[] = {10, 12, 15};
    int64_t len = 16;

    while (len < least)
        len *= 2;
    for (size_t i = 0; i < SD_COUNTOF(sixteenths); i++)
        if (len / 16 * sixteenths[i] >= least)
            return len / 16 * sixteenths[i];
    return len;
}

static hlo_inst *bluestein(const fft *f, hlo_inst *x, int64_t count)
{
    fft forward = *f, back = *f;
    int64_t n = x->shape->dim[1], len = round_up(2 * n - 1);
    hlo_inst *chirp = chirp_of(f, n), *with;

    forward.inverse = false;
    back.inverse = true;
    with = transform(&forward, wrapped_chirp(f, chirp, len), 1);
    with = hlo_make_reshape(f->p, with, 1, &len);
    x = hlo_make_pad_dim(f->p, times_column(f, x, chirp), NULL, 1, 0, len - n);
    x = times_column(f, transform(&forward, x, 1), with);
    x = hlo_make_cut(f->p, transform(&back, x, len), 1, 0, n);
    x = times_column(f, x, chirp);
    return count == 1 ? x : t_mul(f->p, x, t_fill(f->p, x, 1 / (double)count));
}

/* The lines of [b, n, c] along n, divided by count. */
static hlo_inst *transform(const fft *f, hlo_inst *x, int64_t count)
{
    int64_t b = x->shape->dim[0], n = x->shape->dim[1], c = x->shape->dim[2];
    hlo_fft_type type = f->inverse ? HLO_FFT_IFFT : HLO_FFT_FFT;
    bool direct = is_direct(type, n, c == 1 ? b : 1);
    int64_t n1 = direct ? 0 : columns_of(n);
    hlo_fft_lines l = {.type = type,
                       .n = n,
                       .outer = b,
                       .moved = 1,
                       .inner = c,
                       .each = 1,
                       .count = count};

    if (n1)
        return as_matrix(f, x, n1, count);
    return direct || n <= HLO_FFT_MOST ? call(f, x, l, x->shape)
                                       : bluestein(f, x, count);
}

static hlo_inst *transform_dim(const fft *f, hlo_inst *x, int dim,
                               int64_t count)
{
    const sd_shape *s = x->shape;
    int64_t b = 1, c = 1;

    for (int i = 0; i < dim; i++)
        b *= s->dim[i];
    for (int i = dim + 1; i < s->rank; i++)
        c *= s->dim[i];
    x = transform(f, reshaped(f, x, b, s->dim[dim], c), count);
    return pass_reshape(f->p, x, s->rank, s->dim);
}

/* ---- real lines ---- */

/* The half that a real line's transform leaves out: bin n - k is the conjugate
 * of bin k. */
static hlo_inst *with_mirror(const fft *f, hlo_inst *x, int64_t n)
{
    int64_t last = x->shape->rank - 1;
    hlo_inst *part[2] = {x};

    part[1] = hlo_make_cut(f->p, x, x->shape->rank - 1, 1, (n + 1) / 2);
    part[1] = hlo_make_reverse(f->p, matrix_conj(f->p, part[1]), &last, 1);
    return hlo_make_concatenate(f->p, 2, part, last);
}

/* n1 n2 = n, both short enough for a call, n1 without a chirp: better even
 * than odd, better with an n2 that takes none either, better both near the
 * root.  0: there are none. */
static int64_t split_real(int64_t n)
{
    int64_t best = 0, far = INT64_MAX;

    for (int64_t k = 2; k <= HLO_FFT_MOST && 2 * k <= n; k++) {
        int64_t away;

        if (n % k || n / k > HLO_FFT_MOST || !hlo_fft_is_smooth(k))
            continue;
        away = k * k > n ? k * k / n : n / (k * k);
        away += hlo_fft_is_smooth(n / k) ? 0 : n;
        away *= k % 2 ? 4 : 1;
        if (away < far) {
            best = k;
            far = away;
        }
    }
    return best;
}

static const sd_shape *array(const fft *f, sd_dtype t, int64_t b, int64_t n,
                             int64_t c)
{
    return sd_shape_make(f->p.c->module->arena, t, 3, (int64_t[]){b, n, c});
}

/* [b, n1 n2]: columns of n1, of which the half of what they become says all,
 * then rows of n2; or back. */
static hlo_inst *real_matrix(const fft *f, hlo_inst *x, int64_t b, int64_t n,
                             int64_t n1, int64_t count)
{
    int64_t rows = n1 / 2 + 1, n2 = n / n1;
    hlo_fft_lines columns = {.type = f->kind,
                             .n = n1,
                             .outer = b,
                             .moved = 1,
                             .inner = n2,
                             .each = 1,
                             .count = 1};
    hlo_fft_lines lines = {.type = f->inverse ? HLO_FFT_IFFT : HLO_FFT_FFT,
                           .n = n2,
                           .outer = b,
                           .moved = 1,
                           .inner = 1,
                           .each = 1,
                           .count = 1,
                           .whole = n};

    if (f->inverse) {
        lines.inner = rows;
        lines.turn = n;
        columns.count = count;
        x = call(f, x, lines, array(f, f->type, b, rows, n2));
        return call(f, x, columns, array(f, sd_dtype_part(f->type), b, n1, n2));
    }
    lines.moved = rows;
    columns.turn = n;
    x = call(f, x, columns, array(f, f->type, b, rows, n2));
    return call(f, x, lines, array(f, f->type, b, 1, n / 2 + 1));
}

/* The last dimension of in, from real numbers or to them. */
static hlo_inst *real_lines(const fft *f, const hlo_inst *in, hlo_inst *x,
                            int64_t count)
{
    const sd_shape *s = x->shape;
    int last = s->rank - 1;
    int64_t n = in->u.fft.length.at[in->u.fft.length.n - 1], dim[SD_MAX_RANK];
    int64_t b = sd_shape_count(s) / s->dim[last];
    bool direct = is_direct(f->kind, n, n % 2 ? 1 : b);
    int64_t n1 = direct ? 0 : split_real(n);
    hlo_fft_lines l = {.type = f->kind,
                       .n = n,
                       .outer = b,
                       .moved = 1,
                       .inner = 1,
                       .each = 1,
                       .count = count};

    memcpy(dim, s->dim, sizeof *dim * (size_t)s->rank);
    dim[last] = f->inverse ? n : n / 2 + 1;
    if (n1)
        return pass_reshape(f->p, real_matrix(f, x, b, n, n1, count), s->rank,
                            dim);
    if (direct || n <= HLO_FFT_MOST)
        return call(f, x, l,
                    sd_shape_make(f->p.c->module->arena,
                                  f->inverse ? sd_dtype_part(f->type) : f->type,
                                  s->rank, dim));
    if (f->inverse)
        return t_unary(f->p, HLO_REAL,
                       transform_dim(f, with_mirror(f, x, n), last, count));
    x = t_binary(f->p, HLO_COMPLEX, x, t_fill(f->p, x, 0));
    return hlo_make_cut(f->p, transform_dim(f, x, last, count), last, 0,
                        n / 2 + 1);
}

hlo_inst *hlo_lower_fft(hlo_inst *in)
{
    hlo_fft_type type = in->u.fft.type;
    fft f = {pass_at(in), sd_dtype_complex(sd_dtype_part(pass_dtype(in))), type,
             type == HLO_FFT_IFFT || type == HLO_FFT_IRFFT};
    bool real = type == HLO_FFT_RFFT || type == HLO_FFT_IRFFT;
    int rank = in->shape->rank, n = in->u.fft.length.n, last = rank - 1;
    hlo_inst *x = in->arg[0];
    int64_t count = 1;

    if (sd_shape_count(in->shape) == 0 || sd_shape_count(x->shape) == 0)
        return t_fill(f.p, in, 0);
    for (int i = 0; i < n; i++) {
        int64_t length = in->u.fft.length.at[i];

        if (length > MOST_CHIRP && !columns_of(length))
            return NULL; /* which is refused in the end */
        count *= f.inverse ? length : 1;
    }
    if (type == HLO_FFT_RFFT)
        x = real_lines(&f, in, x, 1);
    /* what is divided comes last: fewer roundings, and once */
    for (int d = last - real; d >= rank - n; d--)
        x = transform_dim(&f, x, d,
                          type == HLO_FFT_IFFT && d == rank - n ? count : 1);
    return type == HLO_FFT_IRFFT ? real_lines(&f, in, x, count) : x;
}
