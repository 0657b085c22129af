/* Shardy's attributes, VHLO's meshes and bounds.  Nothing here computes with
 * them: on one participant they say nothing, and else they go to whoever cuts
 * programs as text.  So each is decoded to the text that MLIR has for it; what
 * only stands inside another (an axis, a dimension) to its part of that text.
 * A row of the table below has that text for each, with marks where what the
 * file holds goes, in its order. */
#include "mlir.h"

enum { CODE_MESH_AXES = 23 }; /* VHLO's, of groups of participants */

/* What is read of an attribute, and the text made of it. */
typedef struct {
    mlir_reader *r;
    sd_cursor *c;
    sd_buf b;
} maker;

/* The text of attribute k; without its "#sdy.sharding" if bare. */
static void put_attr(maker *m, uint64_t k, bool bare)
{
    const mlir_attr *at = mlir_attr_at(m->r, k);
    sd_bytes s;
    const uint8_t *p;

    if (mlir_too_long(m->r, m->b.len))
        return;
    if (at->kind != MLIR_A_OPAQUE) {
        mlir_attr_print(m->r, at, &m->b);
        return;
    }
    s = mlir_str(m->r, at->str);
    p = bare ? memchr(s.at, '<', s.len) : s.at;
    if (!p)
        p = s.at;
    sd_buf_add(&m->b, p, s.len - (size_t)(p - s.at));
}

static void put_attrs(maker *m, bool bare)
{
    uint64_t n = mlir_varint(m->c);

    for (uint64_t i = 0; i < n && !m->c->bad; i++) {
        sd_buf_str(&m->b, i ? ", " : "");
        put_attr(m, mlir_varint(m->c), bare);
    }
}

/* Numbers with ", " between them; ? is for a bound that there is not. */
static void put_numbers(maker *m)
{
    uint64_t n = mlir_varint(m->c);

    for (uint64_t i = 0; i < n && !m->c->bad; i++) {
        int64_t v = mlir_svarint(m->c);

        sd_buf_str(&m->b, i ? ", " : "");
        if (v == INT64_MIN)
            sd_buf_str(&m->b, "?");
        else
            sd_buf_fmt(&m->b, "%" PRId64, v);
    }
}

/* i, j, ... z, z_1, z_2, ... */
static void put_factor(maker *m, int64_t k)
{
    if (k < 0)
        sd_cursor_fail(m->c, "a factor that is not negative");
    else if (k < 18)
        sd_buf_u8(&m->b, (uint8_t)('i' + k));
    else
        sd_buf_fmt(&m->b, "z_%" PRId64, k - 17);
}

static void put_factors(maker *m, const char *between)
{
    uint64_t n = mlir_varint(m->c);

    for (uint64_t i = 0; i < n && !m->c->bad; i++) {
        sd_buf_str(&m->b, i ? between : "");
        put_factor(m, mlir_svarint(m->c));
    }
}

/* How shards that are not yet reduced are: a sum need not be said. */
static void put_reduction(maker *m)
{
    static const char *const kind[] = {"", "max", "min"};
    int64_t k = mlir_svarint(m->c);

    if (k < 0 || k > 2)
        sd_cursor_fail(m->c, "a kind of reduction from 0 to 2");
    else
        sd_buf_str(&m->b, kind[k]);
}

/* A mesh by its name, or as it is */
static void put_mesh(maker *m)
{
    const mlir_attr *mesh = mlir_attr_at(m->r, mlir_varint(m->c));

    if (mesh->kind == MLIR_A_STRING)
        mlir_print_symbol(mlir_str(m->r, mesh->str), &m->b);
    else
        mlir_attr_print(m->r, mesh, &m->b);
}

static void put_flagged(maker *m)
{
    bool there;
    uint64_t k = mlir_varint_flag(m->c, &there);

    if (there)
        put_attr(m, k, false);
}

/* The marks of a text:
 *   %s a string, quoted    %d a number       %n numbers, counted
 *   %a an attribute        %b without its "#sdy.sharding"
 *   %A attributes, counted %B so without it
 *   %o an attribute if a bit says so         %q if a number says so
 *   %f factors in a row    %F with ", "      %m a mesh   %r a reduction
 *   %( ... %) left out where what is marked inside is nothing */
static void put_mark(maker *m, char mark)
{
    switch (mark) {
    case 's':
        mlir_print_quoted(mlir_str(m->r, mlir_varint(m->c)), &m->b);
        break;
    case 'd':
        sd_buf_fmt(&m->b, "%" PRId64, mlir_svarint(m->c));
        break;
    case 'n':
        put_numbers(m);
        break;
    case 'a':
    case 'b':
        put_attr(m, mlir_varint(m->c), mark == 'b');
        break;
    case 'A':
    case 'B':
        put_attrs(m, mark == 'B');
        break;
    case 'o':
        put_flagged(m);
        break;
    case 'q':
        if (mlir_varint(m->c))
            put_attr(m, mlir_varint(m->c), false);
        break;
    case 'f':
    case 'F':
        put_factors(m, mark == 'F' ? ", " : "");
        break;
    case 'm':
        put_mesh(m);
        break;
    case 'r':
        put_reduction(m);
        break;
    }
}

static void put(maker *m, const char *text)
{
    size_t start = 0; /* of what is in %( %) */
    bool said = false;

    for (const char *s = text; *s; s++) {
        size_t before = m->b.len;

        if (*s != '%') {
            sd_buf_u8(&m->b, (uint8_t)*s);
        } else if (*++s == '(') {
            start = before;
            said = false;
        } else if (*s == ')') {
            m->b.len = said ? before : start;
        } else {
            put_mark(m, *s);
            said |= m->b.len > before;
        }
    }
}

/* Of a tensor: the axes that cut it, ? where more may, and a priority. */
static void put_dimension(maker *m)
{
    size_t start;
    uint64_t priority;
    bool has_priority;

    sd_buf_str(&m->b, "{");
    start = m->b.len;
    put_attrs(m, false);
    if (!sd_read_u8(m->c))
        sd_buf_str(&m->b, m->b.len > start ? ", ?" : "?");
    sd_buf_str(&m->b, "}");
    priority = mlir_varint_flag(m->c, &has_priority);
    if (has_priority)
        sd_buf_fmt(&m->b, "p%" PRIu64, priority);
}

/* The factors' sizes come first in the file and behind the dimensions in the
 * text. */
static void put_rule(maker *m)
{
    sd_vec(int64_t) size = {0};
    uint64_t n = mlir_varint(m->c);

    for (uint64_t i = 0; i < n && !m->c->bad; i++)
        *sd_push(m->r->a, &size) = mlir_svarint(m->c);
    put(m, "#sdy.op_sharding_rule<(%A)->(%A) {");
    for (int i = 0; i < size.n; i++) {
        sd_buf_str(&m->b, i ? ", " : "");
        put_factor(m, i);
        sd_buf_fmt(&m->b, "=%" PRId64, size.at[i]);
    }
    put(m, "}%( reduction={%F}%)%( need_replication={%F}%)"
           "%( permutation={%F}%)%( blocked_propagation={%F}%)");
    sd_buf_str(&m->b, sd_read_u8(m->c) ? ", custom>" : ">");
}

static const struct {
    mlir_dialect_id dialect;
    uint8_t code;
    const char *text;
    void (*put)(maker *m); /* NULL: the text is all */
} rows[] = {
    {MLIR_D_SDY, 0, "#sdy<manual_axes{%A}>", NULL},
    {MLIR_D_SDY, 1, "%s=%d", NULL}, /* a mesh's axis */
    {MLIR_D_SDY, 2, "#sdy.mesh<[%A]%(, device_ids=[%n]%)>", NULL},
    {MLIR_D_SDY, 3, "(%d)%d", NULL},       /* a part of an axis */
    {MLIR_D_SDY, 4, "%s%(:%o%)", NULL},    /* an axis, or a part of one */
    {MLIR_D_SDY, 5, "", put_dimension},
    {MLIR_D_SDY, 6, "#sdy.sharding<%b, [%A]%(, replicated={%A}%)>", NULL},
    {MLIR_D_SDY, 7, "#sdy.sharding_per_value<[%B]>", NULL},
    {MLIR_D_SDY, 8, "%f", NULL},           /* the factors of a dimension */
    {MLIR_D_SDY, 9, "[%A]", NULL},         /* a tensor's dimensions */
    {MLIR_D_SDY, 10, "", put_rule},
    {MLIR_D_SDY, 11, "{%A}", NULL},        /* axes */
    {MLIR_D_SDY, 12, "#sdy<list_of_axis_ref_lists[%A]>", NULL},
    {MLIR_D_SDY, 13, "{%A}: %d->%d", NULL}, /* axes: source -> target */
    {MLIR_D_SDY, 14, "#sdy<all_to_all_param_list[%A]>", NULL},
    {MLIR_D_SDY, 15,
     "#sdy.sharding<%b, [%A]%(, replicated={%A}%)%(, unreduced={%A}%)>", NULL},
    {MLIR_D_SDY, 16, "#sdy.sharding_per_value<[%B]>", NULL},
    {MLIR_D_SDY, 17,
     "#sdy.sharding<%b, [%A]%(, replicated={%A}%)%(, unreduced={%A}%)"
     "%(, reduction=%r%)>",
     NULL},
    {MLIR_D_VHLO, 18, "#stablehlo.bounds<%n>", NULL},
    {MLIR_D_VHLO, 21, "(%d)%d", NULL},
    {MLIR_D_VHLO, 22, "#stablehlo.axis_ref<name = %a%(, sub_axis_info = %q%)>",
     NULL},
    {MLIR_D_VHLO, CODE_MESH_AXES,
     "#stablehlo.replica_group_mesh_axes<mesh = %m, axes = %a>", NULL},
    {MLIR_D_VHLO, 24, "#stablehlo.mesh_axis<name = %a, size = %d>", NULL},
    {MLIR_D_VHLO, 25, "#stablehlo.mesh<axes = %a%(, device_ids = %o%)>", NULL},
};

bool mlir_read_as_text(mlir_reader *r, mlir_dialect_id dialect, uint64_t code,
                       sd_cursor *c, mlir_attr *at)
{
    maker m = {.r = r, .c = c, .b.arena = r->a};

    for (size_t i = 0; i < SD_COUNTOF(rows); i++) {
        if (rows[i].dialect != dialect || rows[i].code != code)
            continue;
        put(&m, rows[i].text);
        if (rows[i].put)
            rows[i].put(&m);
        size_t len = m.b.len;

        at->kind = dialect == MLIR_D_VHLO && code == CODE_MESH_AXES
                       ? MLIR_A_MESH_AXES
                       : MLIR_A_OPAQUE;
        at->str = mlir_new_str(r, sd_buf_take(&m.b), len);
        return true;
    }
    return false;
}
