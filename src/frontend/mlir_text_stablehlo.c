/* StableHLO's own attributes in text: enumerations and structures. */
#include "mlir_text.h"

uint32_t tx_enum(mlir_parser *t, int code)
{
    const mlir_enum_row *e = &mlir_enums[code];

    for (uint64_t i = 0; i < SD_COUNTOF(e->value); i++)
        if (e->value[i] && tx_is_word(t, e->value[i])) {
            tx_next(t);
            return tx_new_attr(t, (mlir_attr){.kind = MLIR_A_ENUM,
                                              .code = (uint8_t)code,
                                              .bits = i});
        }
    tx_expected(t, e->name);
    return 0;
}

static uint32_t as_of_chlo(mlir_parser *t, uint32_t at)
{
    mlir_attr a;

    if (t->r->st)
        return 0;
    a = *mlir_attr_at(t->r, at);
    a.str = 1;
    return tx_new_attr(t, a);
}

/* #stablehlo<precision HIGH>, #stablehlo<precision<HIGH>>, and CHLO's */
static uint32_t enumeration(mlir_parser *t, bool chlo)
{
    uint32_t at = 0;

    tx_expect(t, '<');
    for (int code = 0; code < MLIR_E_COUNT; code++)
        if (mlir_enums[code].name && tx_is_word(t, mlir_enums[code].name)) {
            tx_next(t);
            bool inner = tx_accept(t, '<');

            at = tx_enum(t, code);
            if (inner)
                tx_expect(t, '>');
            tx_expect(t, '>');
            return chlo ? as_of_chlo(t, at) : at;
        }
    tx_expected(t, "one of StableHLO's enumerations");
    return 0;
}

static uint32_t new_struct(mlir_parser *t, mlir_struct_id id, const uint32_t *v,
                           int n)
{
    return tx_new_attr(t, (mlir_attr){.kind = MLIR_A_STRUCT,
                                      .code = (uint8_t)id,
                                      .list = v,
                                      .nlist = n});
}

/* What a field is that is not there: no dimensions, or 0. */
static uint32_t field_default(mlir_parser *t, mlir_struct_id id, int k)
{
    const char *name = mlir_structs[id].field[k];

    switch (id) {
    case MLIR_S_GATHER:
    case MLIR_S_SCATTER:
    case MLIR_S_RAGGED:
    case MLIR_S_DOT:
        return strcmp(name, "index_vector_dim") == 0
                   ? tx_number(t, MLIR_A_INT, "i64", 0)
                   : tx_new_ints(t, NULL, 0);
    case MLIR_S_ACCURACY:
        return k < 2    ? tx_number(t, MLIR_A_FLOAT, "f64", 0)
               : k == 2 ? tx_number(t, MLIR_A_INT, "i64", 0)
                        : tx_new_attr(t, (mlir_attr){.kind = MLIR_A_ENUM,
                                                     .code = MLIR_E_ACCURACY});
    default:
        tx_fail_at(t, t->tok.at, "#stablehlo.%s without %s",
                   mlir_structs[id].name, mlir_field_text(name));
        return 0;
    }
}

static uint32_t field_value(mlir_parser *t)
{
    if (tx_is(t, '['))
        return tx_int_list(t);
    if (tx_is_integer(t))
        return tx_number(t, MLIR_A_INT, "i64", (uint64_t)tx_integer(t));
    return tx_attr(t);
}

uint32_t tx_struct(mlir_parser *t, mlir_struct_id id)
{
    const char *const *f = mlir_structs[id].field;
    uint32_t value[SD_COUNTOF(mlir_structs[id].field)], *list;
    int n = 0, k;

    while (f[n])
        value[n++] = MLIR_ABSENT;
    list = sd_arena_array(t->r->a, uint32_t, 2 * n);
    tx_expect(t, '<');
    while (t->tok.kind == TK_ID) {
        for (k = 0; k < n && !tx_is_word(t, mlir_field_text(f[k])); k++)
            ;
        if (k == n || value[k] != MLIR_ABSENT) {
            tx_expected(t, k == n ? "a field of this attribute"
                                  : "a field that is not there yet");
            return 0;
        }
        tx_next(t);
        tx_expect(t, '=');
        value[k] = field_value(t);
        if (!tx_accept(t, ','))
            break;
    }
    tx_expect(t, '>');
    for (k = 0; k < n && !t->r->st; k++) {
        list[2 * k] = mlir_new_string(t->r, f[k], strlen(f[k]));
        list[2 * k + 1] =
            value[k] == MLIR_ABSENT ? field_default(t, id, k) : value[k];
    }
    return new_struct(t, id, list, 2 * n);
}

/* One of the three parts: batch and feature by letter, the rest by number. */
static void conv_part(mlir_parser *t, const char *letters, uint32_t out[3])
{
    int64_t special[2] = {-1, -1}, spatial[SD_MAX_RANK];
    const char *where = t->tok.at;
    int n = 0, m = 0;

    memset(spatial, 0xff, sizeof spatial);
    tx_expect(t, '[');
    do {
        bool letter = t->tok.kind == TK_ID && t->tok.len == 1;
        int64_t k = letter ? -1 : -2;

        if (letter)
            for (int i = 0; i < 2; i++)
                if (t->tok.at[0] == letters[i] && special[i] < 0)
                    special[i] = n, k = i;
        if (letter && k >= 0) {
            tx_next(t);
        } else if (letter || (k = tx_integer(t)) < 0 || k >= SD_MAX_RANK ||
                   spatial[k] >= 0) {
            tx_fail_at(t, where, "dimension %d is none of a convolution", n);
            return;
        } else {
            spatial[k] = n;
            m++;
        }
    } while (++n < SD_MAX_RANK && tx_accept(t, ','));
    tx_expect(t, ']');
    for (int i = 0; i < m; i++)
        if (spatial[i] < 0 && !t->r->st)
            tx_fail_at(t, where, "spatial dimension %d is missing", i);
    if ((special[0] < 0 || special[1] < 0) && !t->r->st)
        tx_fail_at(t, where, "dimension %c or %c is missing", letters[0],
                   letters[1]);
    out[0] = tx_number(t, MLIR_A_INT, "i64", (uint64_t)special[0]);
    out[1] = tx_number(t, MLIR_A_INT, "i64", (uint64_t)special[1]);
    out[2] = tx_new_ints(t, spatial, m);
}

uint32_t tx_conv(mlir_parser *t)
{
    static const char *const letters[] = {"bf", "io", "bf"};
    uint32_t v[9] = {0}, *list = sd_arena_array(t->r->a, uint32_t, 18);

    for (int i = 0; i < 3; i++) {
        if (i == 1) { /* x, glued to nothing but the bracket */
            if (!tx_is_word(t, "x"))
                tx_expected(t, "'x'");
            tx_next(t);
        } else if (i == 2) {
            tx_expect(t, TK_ARROW);
        }
        conv_part(t, letters[i], v + (size_t)3 * i);
    }
    for (int i = 0; i < 9 && !t->r->st; i++) {
        const char *f = mlir_structs[MLIR_S_CONV].field[i];

        list[2 * i] = mlir_new_string(t->r, f, strlen(f));
        list[2 * i + 1] = v[i];
    }
    return new_struct(t, MLIR_S_CONV, list, 18);
}

static void push_ints(mlir_parser *t, uint32_t list, int64_t *v, int *n)
{
    hlo_dims d = mlir_ints(t->r, mlir_attr_at(t->r, list), SD_MAX_RANK);

    for (int i = 0; i < d.n; i++)
        v[(*n)++] = d.at[i];
}

static uint32_t alias(mlir_parser *t)
{
    int64_t *v = sd_arena_array(t->r->a, int64_t, 2 * SD_MAX_RANK + 2);
    uint32_t out, in;
    int n = 2;

    tx_expect(t, '<');
    tx_expect_word(t, "output_tuple_indices");
    tx_expect(t, '=');
    out = tx_int_list(t);
    tx_expect(t, ',');
    tx_expect_word(t, "operand_index");
    tx_expect(t, '=');
    v[0] = tx_integer(t);
    tx_expect(t, ',');
    tx_expect_word(t, "operand_tuple_indices");
    tx_expect(t, '=');
    in = tx_int_list(t);
    tx_expect(t, '>');
    if (t->r->st)
        return 0;
    push_ints(t, out, v, &n);
    v[1] = n - 2;
    push_ints(t, in, v, &n);
    return tx_new_attr(t,
                       (mlir_attr){.kind = MLIR_A_ALIAS, .num = v, .nnum = n});
}

/* #stablehlo.NAME<...>; false: another dialect's or an alias */
bool tx_stablehlo_attr(mlir_parser *t, const char *name, uint32_t *out)
{
    const char *s = name + strcspn(name, ".") + 1;

    if (strcmp(name, "#stablehlo") == 0 || strcmp(name, "#chlo") == 0) {
        *out = enumeration(t, name[1] == 'c');
        return true;
    }
    if (strncmp(name, "#stablehlo.", 11) != 0 &&
        strncmp(name, "#chlo.", 6) != 0)
        return false;
    for (int id = 0; id < MLIR_S_COUNT; id++)
        if (strcmp(s, mlir_structs[id].name) == 0) {
            if (id == MLIR_S_CONV) { /* tx_conv has no brackets of its own */
                tx_expect(t, '<');
                *out = tx_conv(t);
                tx_expect(t, '>');
            } else {
                *out = tx_struct(t, (mlir_struct_id)id);
            }
            return true;
        }
    if (strcmp(s, "output_operand_alias") == 0) {
        *out = alias(t);
        return true;
    }
    for (int code = 0; code < MLIR_E_COUNT; code++)
        if (mlir_enums[code].name && strcmp(s, mlir_enums[code].name) == 0) {
            tx_expect(t, '<');
            *out = tx_enum(t, code);
            tx_expect(t, '>');
            return true;
        }
    return false;
}
