/* Shardy's attributes and VHLO's meshes.  Nothing here computes with them: on
 * one participant they say nothing, and else they go to whoever cuts programs
 * as text.  So each is decoded to the text that MLIR has for it; what only
 * stands inside another (an axis, a dimension) to its part of that text. */
#include "mlir.h"

/* What is read of an attribute, and the text made of it. */
typedef struct {
    mlir_reader *r;
    sd_cursor *c;
    sd_buf b;
} maker;

static void put_name(maker *m)
{
    mlir_print_quoted(mlir_str(m->r, mlir_varint(m->c)), &m->b);
}

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

/* Axes in braces behind a word; nothing at all when there are none. */
static void put_axes(maker *m, const char *word)
{
    size_t start = m->b.len, head;

    sd_buf_fmt(&m->b, ", %s={", word);
    head = m->b.len;
    put_attrs(m, false);
    if (m->b.len == head)
        m->b.len = start;
    else
        sd_buf_str(&m->b, "}");
}

static void put_sub_axis(maker *m)
{
    int64_t pre = mlir_svarint(m->c);

    sd_buf_fmt(&m->b, "(%" PRId64 ")%" PRId64, pre, mlir_svarint(m->c));
}

static void put_mesh(maker *m)
{
    uint64_t n;

    sd_buf_str(&m->b, "#sdy.mesh<[");
    put_attrs(m, false);
    sd_buf_str(&m->b, "]");
    n = mlir_varint(m->c);
    for (uint64_t i = 0; i < n && !m->c->bad; i++)
        sd_buf_fmt(&m->b, "%s%" PRId64, i ? ", " : ", device_ids=[",
                   mlir_svarint(m->c));
    sd_buf_str(&m->b, n ? "]>" : ">");
}

static void put_dimension(maker *m)
{
    size_t start;
    uint64_t priority;

    sd_buf_str(&m->b, "{");
    start = m->b.len;
    put_attrs(m, false);
    if (!sd_read_u8(m->c))
        sd_buf_str(&m->b, m->b.len > start ? ", ?" : "?");
    sd_buf_str(&m->b, "}");
    priority = mlir_varint(m->c);
    if (priority & 1)
        sd_buf_fmt(&m->b, "p%" PRIu64, priority >> 1);
}

static void put_sharding(maker *m, uint64_t code)
{
    static const char *const kind[] = {"sum", "max", "min"};
    int64_t k;

    sd_buf_str(&m->b, "#sdy.sharding<");
    put_attr(m, mlir_varint(m->c), true);
    sd_buf_str(&m->b, ", [");
    put_attrs(m, false);
    sd_buf_str(&m->b, "]");
    put_axes(m, "replicated");
    if (code >= 15)
        put_axes(m, "unreduced");
    k = code == 17 ? mlir_svarint(m->c) : 0;
    if (k < 0 || k > 2)
        sd_cursor_fail(m->c, "a kind of reduction from 0 to 2");
    else if (k)
        sd_buf_fmt(&m->b, ", reduction=%s", kind[k]);
    sd_buf_str(&m->b, ">");
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

static void put_rule(maker *m)
{
    static const char *const sets[] = {"reduction", "need_replication",
                                       "permutation", "blocked_propagation"};
    sd_vec(int64_t) size = {0};
    uint64_t n = mlir_varint(m->c);

    for (uint64_t i = 0; i < n && !m->c->bad; i++)
        *sd_push(m->r->a, &size) = mlir_svarint(m->c);
    sd_buf_str(&m->b, "#sdy.op_sharding_rule<(");
    put_attrs(m, false);
    sd_buf_str(&m->b, ")->(");
    put_attrs(m, false);
    sd_buf_str(&m->b, ") {");
    for (int i = 0; i < size.n; i++) {
        sd_buf_str(&m->b, i ? ", " : "");
        put_factor(m, i);
        sd_buf_fmt(&m->b, "=%" PRId64, size.at[i]);
    }
    sd_buf_str(&m->b, "}");
    for (size_t i = 0; i < SD_COUNTOF(sets); i++) {
        size_t start = m->b.len, head;

        sd_buf_fmt(&m->b, " %s={", sets[i]);
        head = m->b.len;
        put_factors(m, ", ");
        if (m->b.len == head)
            m->b.len = start;
        else
            sd_buf_str(&m->b, "}");
    }
    sd_buf_str(&m->b, sd_read_u8(m->c) ? ", custom>" : ">");
}

static void put_listed(maker *m, const char *open, bool bare, const char *close)
{
    sd_buf_str(&m->b, open);
    put_attrs(m, bare);
    sd_buf_str(&m->b, close);
}

static void put_sdy(maker *m, uint64_t code)
{
    switch (code) {
    case 0:
        put_listed(m, "#sdy<manual_axes{", false, "}>");
        break;
    case 1: /* a mesh's axis */
        put_name(m);
        sd_buf_fmt(&m->b, "=%" PRId64, mlir_svarint(m->c));
        break;
    case 2:
        put_mesh(m);
        break;
    case 3:
        put_sub_axis(m);
        break;
    case 4: { /* an axis, or a part of one */
        put_name(m);
        uint64_t sub = mlir_varint(m->c);

        if (sub & 1) {
            sd_buf_str(&m->b, ":");
            put_attr(m, sub >> 1, false);
        }
        break;
    }
    case 5:
        put_dimension(m);
        break;
    case 6:
    case 15:
    case 17:
        put_sharding(m, code);
        break;
    case 7:
    case 16:
        put_listed(m, "#sdy.sharding_per_value<[", true, "]>");
        break;
    case 8: /* the factors of a dimension */
        put_factors(m, "");
        break;
    case 9: /* a tensor's dimensions */
        put_listed(m, "[", false, "]");
        break;
    case 10:
        put_rule(m);
        break;
    case 11:
        put_listed(m, "{", false, "}");
        break;
    case 12:
        put_listed(m, "#sdy<list_of_axis_ref_lists[", false, "]>");
        break;
    case 13: /* axes: source -> target */
        put_listed(m, "{", false, "}: ");
        sd_buf_fmt(&m->b, "%" PRId64, mlir_svarint(m->c));
        sd_buf_fmt(&m->b, "->%" PRId64, mlir_svarint(m->c));
        break;
    case 14:
        put_listed(m, "#sdy<all_to_all_param_list[", false, "]>");
        break;
    default:
        mlir_not_known(m->r, "sdy attribute", code);
    }
}

static void finish(maker *m, mlir_attr *at, mlir_attr_kind kind)
{
    size_t len = m->b.len;

    at->kind = kind;
    at->str = mlir_new_str(m->r, sd_buf_take(m->r->a, &m->b), len);
}

void mlir_read_sdy(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    maker m = {.r = r, .c = c};

    put_sdy(&m, mlir_varint(c));
    finish(&m, at, MLIR_A_OPAQUE);
}

/* ---- VHLO's meshes, which are StableHLO's in text ---- */

static void put_axis_ref(maker *m)
{
    sd_buf_str(&m->b, "#stablehlo.axis_ref<name = ");
    put_attr(m, mlir_varint(m->c), false);
    if (mlir_varint(m->c)) {
        sd_buf_str(&m->b, ", sub_axis_info = ");
        put_attr(m, mlir_varint(m->c), false);
    }
    sd_buf_str(&m->b, ">");
}

static void put_groups(maker *m)
{
    const mlir_attr *mesh = mlir_attr_at(m->r, mlir_varint(m->c));

    sd_buf_str(&m->b, "#stablehlo.replica_group_mesh_axes<mesh = ");
    if (mesh->kind == MLIR_A_STRING)
        mlir_print_symbol(mlir_str(m->r, mesh->str), &m->b);
    else
        mlir_attr_print(m->r, mesh, &m->b);
    sd_buf_str(&m->b, ", axes = ");
    put_attr(m, mlir_varint(m->c), false);
    sd_buf_str(&m->b, ">");
}

void mlir_read_mesh(mlir_reader *r, sd_cursor *c, uint64_t code, mlir_attr *at)
{
    maker m = {.r = r, .c = c};
    uint64_t ids;

    switch (code) {
    case 21:
        put_sub_axis(&m);
        break;
    case 22:
        put_axis_ref(&m);
        break;
    case 23:
        put_groups(&m);
        break;
    case 24:
        sd_buf_str(&m.b, "#stablehlo.mesh_axis<name = ");
        put_attr(&m, mlir_varint(c), false);
        sd_buf_fmt(&m.b, ", size = %" PRId64 ">", mlir_svarint(c));
        break;
    default:
        sd_buf_str(&m.b, "#stablehlo.mesh<axes = ");
        put_attr(&m, mlir_varint(c), false);
        ids = mlir_varint(c);
        if (ids & 1) {
            sd_buf_str(&m.b, ", device_ids = ");
            put_attr(&m, ids >> 1, false);
        }
        sd_buf_str(&m.b, ">");
    }
    finish(&m, at, code == 23 ? MLIR_A_MESH_AXES : MLIR_A_OPAQUE);
}
