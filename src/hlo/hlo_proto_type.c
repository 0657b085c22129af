/* Shapes and literals between the graph and protobuf.  XLA keeps a literal's
 * elements in the order of its layout, we row-major. */
#include "hlo_proto.h"

/* ---- shapes ---- */

static sd_status read_layout(sd_arena *a, const pb_layout *l, int rank,
                             const int64_t **out)
{
    int64_t seen = 0;
    bool usual = true;

    if (!l || l->minor_to_major.n == 0)
        return NULL;
    if (l->minor_to_major.n != rank)
        return sd_error(SD_INVALID, "a layout of %d dimensions for %d",
                        l->minor_to_major.n, rank);
    for (int i = 0; i < rank; i++) {
        int64_t d = l->minor_to_major.at[i];

        if (d < 0 || d >= rank || (seen >> d & 1))
            return sd_error(SD_INVALID,
                            "a layout that names dimension %" PRId64
                            " twice or out of range",
                            d);
        seen |= INT64_C(1) << d;
        usual &= d == rank - 1 - i;
    }
    if (!usual)
        *out = hlo_dims_copy(a, l->minor_to_major.at, rank).at;
    return NULL;
}

static const char *type_not_done(int64_t code)
{
    return code == 30   ? "s1"
           : code == 31 ? "u1"
           : code == 14 ? "opaque"
           : code == 34 ? "buffer"
                        : NULL;
}

static sd_status read_array(sd_arena *a, sd_dtype t, const pb_shape *p,
                            const sd_shape **out)
{
    const int64_t *layout = NULL;
    sd_status st = sd_shape_check(t, p->dims.n, p->dims.at);
    sd_shape *s;

    if (st || (st = read_layout(a, p->layout, p->dims.n, &layout)))
        return st;
    for (int i = 0; i < p->dynamic.n; i++)
        if (p->dynamic.at[i])
            return sd_error(SD_UNIMPLEMENTED,
                            "dimension %d is only bounded (<=%" PRId64
                            "): give it one size",
                            i, i < p->dims.n ? p->dims.at[i] : 0);
    s = sd_arena_copy(a, sd_shape_make(a, t, p->dims.n, p->dims.at), sizeof *s);
    s->layout = layout;
    *out = s;
    return NULL;
}

sd_status hlo_shape_of_pb(sd_arena *a, const pb_shape *p, const sd_shape **out)
{
    const sd_shape **elem;
    sd_dtype t;
    sd_status st;

    if (!p)
        return sd_error(SD_INVALID, "it has no shape");
    if (p->element_type < 0 || p->element_type > 255 ||
        !sd_dtype_of_xla((int)p->element_type, &t)) {
        const char *name = type_not_done(p->element_type);

        return sd_error(name ? SD_UNIMPLEMENTED : SD_INVALID,
                        "element type %" PRId64 "%s%s", p->element_type,
                        name ? ", " : "", name ? name : " is none of XLA's");
    }
    if (t == SD_TOKEN) {
        *out = sd_shape_make(a, t, 0, NULL);
        return NULL;
    }
    if (t != SD_TUPLE)
        return read_array(a, t, p, out);
    elem = sd_arena_array(a, const sd_shape *, p->elem.n + 1);
    for (int i = 0; i < p->elem.n; i++)
        if ((st = hlo_shape_of_pb(a, &p->elem.at[i], &elem[i])))
            return sd_note(st, "element %d", i);
    *out = sd_shape_tuple(a, p->elem.n, elem);
    return NULL;
}

static pb_layout *write_layout(sd_arena *a, const sd_shape *s)
{
    pb_layout *l = sd_arena_new(a, pb_layout);

    l->minor_to_major.at = sd_arena_array(a, int64_t, s->rank + 1);
    l->minor_to_major.n = s->rank;
    for (int i = 0; i < s->rank; i++)
        l->minor_to_major.at[i] = s->layout ? s->layout[i] : s->rank - 1 - i;
    return l;
}

void hlo_shape_to_pb(sd_arena *a, const sd_shape *s, pb_shape *out)
{
    *out = (pb_shape){.element_type = sd_dtype_table[s->dtype].xla};
    if (s->dtype == SD_TUPLE) {
        out->elem.at = sd_arena_array(a, pb_shape, s->nelem + 1);
        out->elem.n = s->nelem;
        for (int i = 0; i < s->nelem; i++)
            hlo_shape_to_pb(a, s->elem[i], &out->elem.at[i]);
    } else if (s->dtype != SD_TOKEN) {
        out->dims = (pb_ints){(int64_t *)s->dim, s->rank, 0};
        out->layout = write_layout(a, s);
    }
}

void hlo_shape_proto(sd_buf *b, const sd_shape *s)
{
    sd_arena *a = sd_arena_create();
    pb_shape p;

    hlo_shape_to_pb(a, s, &p);
    pb_write(b, &pb_shape_table, &p);
    sd_arena_destroy(a);
}

/* ---- literals ---- */

/* Which field holds the elements of a type; varint: as numbers, else as their
 * bytes.  A type below a byte takes a byte an element. */
static const struct {
    size_t at;
    bool varint;
} payload[SD_DTYPE_COUNT] = {
#define ROW(type, field, varint) \
    [SD_##type] = {offsetof(pb_literal, field), varint}
    ROW(PRED, preds, true),
    ROW(S2, s2s, false),
    ROW(S4, s4s, false),
    ROW(S8, s8s, false),
    ROW(S16, s16s, false),
    ROW(S32, s32s, true),
    ROW(S64, s64s, true),
    ROW(U2, u2s, false),
    ROW(U4, u4s, false),
    ROW(U8, u8s, false),
    ROW(U16, u16s, false),
    ROW(U32, u32s, true),
    ROW(U64, u64s, true),
    ROW(F4E2M1FN, f4e2m1fns, false),
    ROW(F6E2M3FN, f6e2m3fns, false),
    ROW(F6E3M2FN, f6e3m2fns, false),
    ROW(F8E3M4, f8e3m4s, false),
    ROW(F8E4M3, f8e4m3s, false),
    ROW(F8E4M3FN, f8e4m3fns, false),
    ROW(F8E4M3B11FNUZ, f8e4m3b11fnuzs, false),
    ROW(F8E4M3FNUZ, f8e4m3fnuzs, false),
    ROW(F8E5M2, f8e5m2s, false),
    ROW(F8E5M2FNUZ, f8e5m2fnuzs, false),
    ROW(F8E8M0FNU, f8e8m0fnus, false),
    ROW(BF16, bf16s, false),
    ROW(F16, f16s, false),
    ROW(F32, f32s, false),
    ROW(F64, f64s, false),
    ROW(C64, c64s, false),
    ROW(C128, c128s, false),
#undef ROW
};

/* Where the element at a row-major place stands in the order of the layout. */
static int64_t place_in(const sd_shape *s, const int64_t *layout, int64_t i)
{
    int64_t index[SD_MAX_RANK], at = 0;

    for (int d = s->rank - 1; d >= 0; d--) {
        index[d] = i % s->dim[d];
        i /= s->dim[d];
    }
    for (int k = s->rank - 1; k >= 0; k--)
        at = at * s->dim[layout[k]] + index[layout[k]];
    return at;
}

/* Between row-major and layout order; out: towards the layout. */
static void *reorder(sd_arena *a, const sd_shape *s, const int64_t *layout,
                     const void *data, bool out)
{
    size_t size = sd_dtype_bytes(s->dtype);
    int64_t n = sd_shape_count(s);
    char *to = sd_arena_alloc(a, sd_shape_bytes(s) + 1);

    for (int64_t i = 0; i < n; i++) {
        int64_t k = place_in(s, layout, i);

        memcpy(to + (size_t)(out ? k : i) * size,
               (const char *)data + (size_t)(out ? i : k) * size, size);
    }
    return to;
}

static sd_status read_varints(sd_dtype t, pb_pack p, int64_t n, char *to)
{
    sd_cursor c = sd_cursor_of((sd_bytes){p.at, p.len});

    for (int64_t i = 0; i < n; i++)
        sd_scalar_of_s64(t, (int64_t)sd_read_leb(&c),
                         to + (size_t)i * sd_dtype_bytes(t));
    if (!c.bad && c.at < c.end)
        sd_cursor_fail(&c, "no more elements than the shape has");
    return sd_cursor_status(&c, "literal");
}

static sd_status read_elements(sd_dtype t, pb_pack p, int64_t n, char *to)
{
    size_t size = sd_dtype_bytes(t);

    if (payload[t].varint) /* an element takes a byte at least */
        return read_varints(t, p, n, to);
    if (!p.len)
        return NULL;
    memcpy(to, p.at, p.len);
    if (sd_dtype_table[t].bits < 8 && sd_is_float(t))
        for (int64_t i = 0; i < n; i++)
            to[i] &= (char)((1 << sd_dtype_table[t].bits) - 1);
    else if (sd_dtype_table[t].bits < 8)
        for (int64_t i = 0; i < n; i++)
            sd_scalar_of_s64(t, to[i], to + (size_t)i * size);
    return NULL;
}

sd_status hlo_literal_of_pb(sd_arena *a, const pb_literal *l, const sd_shape *s,
                            void **data, size_t *bytes)
{
    const int64_t *layout = NULL;
    int64_t n = sd_shape_count(s);
    size_t size = sd_shape_bytes(s);
    pb_pack p;
    sd_status st;
    char *to;

    if (l->shape && (l->shape->element_type != sd_dtype_table[s->dtype].xla ||
                     l->shape->dims.n != s->rank))
        return sd_error(SD_INVALID, "a literal of another shape");
    for (int i = 0; l->shape && i < s->rank; i++)
        if (l->shape->dims.at[i] != s->dim[i])
            return sd_error(SD_INVALID, "a literal of another shape");
    if (l->shape && (st = read_layout(a, l->shape->layout, s->rank, &layout)))
        return st;
    memcpy(&p, (const char *)l + payload[s->dtype].at, sizeof p);
    if (payload[s->dtype].varint ? (int64_t)p.len < n : p.len != size)
        return sd_error(SD_INVALID,
                        "a literal of %zu bytes for %" PRId64 " elements of %s",
                        p.len, n, sd_dtype_name(s->dtype));
    to = sd_arena_alloc(a, size ? size : 1);
    if ((st = read_elements(s->dtype, p, n, to)))
        return st;
    *data = layout && n ? reorder(a, s, layout, to, false) : to;
    *bytes = size;
    return NULL;
}

static uint64_t varint_of(sd_dtype t, const void *p)
{
    int64_t v = sd_scalar_to_s64(t, p);

    return t == SD_PRED ? v != 0 : (uint64_t)v;
}

static void write_elements(sd_buf *b, sd_dtype t, const char *p, int64_t n)
{
    size_t size = sd_dtype_bytes(t);
    unsigned bits = sd_dtype_table[t].bits;

    if (payload[t].varint)
        for (int64_t i = 0; i < n; i++)
            sd_buf_leb(b, varint_of(t, p + (size_t)i * size));
    else if (bits < 8)
        for (int64_t i = 0; i < n; i++)
            sd_buf_u8(b, (uint8_t)(p[i] & ((1 << bits) - 1)));
    else
        sd_buf_add(b, p, size * (size_t)n);
}

void hlo_literal_to_pb(sd_arena *a, const sd_shape *s, const void *data,
                       sd_buf *b)
{
    sd_buf elements = {.arena = a};
    pb_literal l = {0};
    pb_pack p;

    l.shape = sd_arena_new(a, pb_shape);
    hlo_shape_to_pb(a, s, l.shape);
    if (s->layout && sd_shape_count(s))
        data = reorder(a, s, s->layout, data, true);
    write_elements(&elements, s->dtype, data, sd_shape_count(s));
    p = (pb_pack){(uint8_t *)elements.at, elements.len, 0};
    memcpy((char *)&l + payload[s->dtype].at, &p, sizeof p);
    pb_write(b, &pb_literal_table, &l);
}
