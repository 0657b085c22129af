/* Shapes. */
#include "base.h"

/* Of what a program has, and of what passes make of it: of bytes that are
 * stored in halves, complex numbers of 16. */
enum { MOST_BITS = 46, MOST_WIDER_BITS = MOST_BITS + 4 };

static const int64_t *copy_dims(sd_arena *a, const int64_t *dim, int n)
{
    return n ? sd_arena_copy(a, dim, sizeof *dim * (size_t)n) : NULL;
}

const sd_shape *sd_shape_make(sd_arena *a, sd_dtype t, int rank,
                              const int64_t *dim)
{
    sd_shape *s = sd_arena_new(a, sd_shape);

    s->dtype = t;
    s->rank = rank;
    s->dim = copy_dims(a, dim, rank);
    return s;
}

const sd_shape *sd_shape_tuple(sd_arena *a, int n, const sd_shape *const *elem)
{
    sd_shape *s = sd_arena_new(a, sd_shape);

    s->dtype = SD_TUPLE;
    s->nelem = n;
    s->elem = sd_arena_copy(a, elem, sizeof *elem * (size_t)n);
    return s;
}

const sd_shape *sd_shape_with(sd_arena *a, const sd_shape *s, sd_dtype t)
{
    sd_shape *r;

    if (s->dtype == t)
        return s;
    r = sd_arena_copy(a, s, sizeof *s);
    r->dtype = t;
    return r;
}

const sd_shape *sd_shape_with_dim(sd_arena *a, const sd_shape *s, int64_t d,
                                  int64_t n)
{
    int64_t dim[SD_MAX_RANK];

    memcpy(dim, s->dim, sizeof *dim * (size_t)s->rank);
    dim[d] = n;
    return sd_shape_make(a, s->dtype, s->rank, dim);
}

bool sd_shape_same_dims(const sd_shape *x, const sd_shape *y)
{
    if (x->rank != y->rank)
        return false;
    for (int i = 0; i < x->rank; i++)
        if (x->dim[i] != y->dim[i])
            return false;
    return true;
}

bool sd_same_but_ones(int nx, const int64_t *x, int ny, const int64_t *y)
{
    int i = 0, k = 0;

    for (;;) {
        while (i < nx && x[i] == 1)
            i++;
        while (k < ny && y[k] == 1)
            k++;
        if (i == nx || k == ny)
            return i == nx && k == ny;
        if (x[i++] != y[k++])
            return false;
    }
}

bool sd_shape_equal(const sd_shape *x, const sd_shape *y)
{
    if (x == y)
        return true;
    if (x->dtype != y->dtype || x->nelem != y->nelem)
        return false;
    for (int i = 0; i < x->nelem; i++)
        if (!sd_shape_equal(x->elem[i], y->elem[i]))
            return false;
    return sd_shape_same_dims(x, y);
}

int64_t sd_shape_count(const sd_shape *s)
{
    int64_t n = 1;

    for (int i = 0; i < s->rank; i++)
        n *= s->dim[i];
    return n;
}

void sd_shape_strides(const sd_shape *s, int64_t *stride)
{
    int64_t n = 1;

    for (int i = s->rank - 1; i >= 0; i--) {
        stride[i] = n;
        n *= s->dim[i];
    }
}

size_t sd_shape_bytes(const sd_shape *s)
{
    if (!sd_shape_is_array(s))
        return 0;
    return (size_t)sd_shape_count(s) * sd_dtype_bytes(s->dtype);
}

/* The product runs over the nonzero dimensions, so that [2^40, 0, 2^40] is
 * refused too: its strides would overflow. */
static sd_status check(sd_dtype t, int rank, const int64_t *dim, int bits)
{
    int64_t n = (int64_t)SD_MAX(sd_dtype_bytes(t), (size_t)1);

    if (rank < 0 || rank > SD_MAX_RANK)
        return sd_error(SD_INVALID, "rank %d is not in 0..%d", rank,
                        SD_MAX_RANK);
    for (int i = 0; i < rank; i++) {
        if (dim[i] < 0)
            return sd_error(SD_INVALID, "dimension %d is %" PRId64, i, dim[i]);
        if (dim[i] && (!sd_mul_i64(n, dim[i], &n) || n > INT64_C(1) << bits))
            return sd_error(SD_INVALID,
                            "%s array of rank %d is larger than "
                            "2^%d bytes",
                            sd_dtype_name(t), rank, bits);
    }
    return NULL;
}

sd_status sd_shape_check(sd_dtype t, int rank, const int64_t *dim)
{
    return check(t, rank, dim, MOST_BITS);
}

sd_status sd_shape_check_wider(sd_dtype t, int rank, const int64_t *dim)
{
    return check(t, rank, dim, MOST_WIDER_BITS);
}

void sd_shape_print(sd_buf *b, const sd_shape *s, bool with_layout)
{
    if (s->dtype == SD_TUPLE) {
        sd_buf_str(b, "(");
        for (int i = 0; i < s->nelem; i++) {
            sd_buf_str(b, i ? ", " : "");
            sd_shape_print(b, s->elem[i], with_layout);
        }
        sd_buf_str(b, ")");
        return;
    }
    sd_buf_fmt(b, "%s[", sd_dtype_name(s->dtype));
    sd_buf_ints(b, s->dim, s->rank, ",");
    sd_buf_str(b, "]");
    if (!with_layout || !s->rank)
        return;
    sd_buf_str(b, "{");
    for (int i = 0; i < s->rank; i++)
        sd_buf_fmt(b, i ? ",%" PRId64 : "%" PRId64,
                   s->layout ? s->layout[i] : (int64_t)(s->rank - 1 - i));
    sd_buf_str(b, "}");
}
