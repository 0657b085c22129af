/* What is kept for others to read, between its text and its protobuf form:
 * shardings and frontend attributes.  In a module both are text. */
#include "hlo_proto.h"

/* ---- shardings ---- */

static const char *const type_name[] = {
    "replicated", "maximal", NULL, NULL, "manual", "unknown", "unreduced"};

static bool take_type(hlo_lexer *x, int64_t *out)
{
    for (size_t i = 0; i < SD_COUNTOF(type_name); i++)
        if (type_name[i] && hlo_accept_word(x, type_name[i])) {
            *out = (int64_t)i;
            return true;
        }
    return false;
}

static pb_ints take_list(hlo_lexer *x, const char *close)
{
    pb_ints v = {0};

    do
        *sd_push(x->arena, &v) = hlo_take_int(x);
    while (hlo_accept(x, ",") && !x->bad);
    if (close)
        hlo_expect(x, close);
    return v;
}

static bool take_arrow(hlo_lexer *x)
{
    return hlo_accept(x, "<=");
}

/* devices=[2,1]0,1 or devices=[2,1,2]<=[2,2]T(1,0) */
static void take_tiles(hlo_lexer *x, pb_sharding *s)
{
    s->type = HLO_PB_TILED;
    hlo_expect(x, "=");
    hlo_expect(x, "[");
    s->tile_dims = take_list(x, "]");
    if (!take_arrow(x)) {
        s->devices = take_list(x, NULL);
        return;
    }
    hlo_expect(x, "[");
    s->iota_dims = take_list(x, "]");
    if (hlo_accept(x, "T(")) {
        s->iota_perm = take_list(x, ")");
        return;
    }
    for (int i = 0; i < s->iota_dims.n; i++)
        *sd_push(x->arena, &s->iota_perm) = i;
}

static void take_subgroups(hlo_lexer *x, pb_sharding *s)
{
    int64_t t = 0;

    hlo_expect(x, "=");
    hlo_expect(x, "{");
    do {
        if (!take_type(x, &t))
            hlo_expect(x, "}");
        *sd_push(x->arena, &s->last_tile_dims) = t;
    } while (hlo_accept(x, ",") && !x->bad);
    hlo_expect(x, "}");
}

static void take_sharding(hlo_lexer *x, pb_sharding *s, int depth);

static void take_elements(hlo_lexer *x, pb_sharding *s, int depth)
{
    s->type = HLO_PB_TUPLE;
    while (!x->bad && !hlo_accept(x, "}")) {
        pb_sharding *e = sd_push(x->arena, &s->elem);

        *e = (pb_sharding){0};
        take_sharding(x, e, depth + 1);
        hlo_accept(x, ",");
    }
}

static void take_sharding(hlo_lexer *x, pb_sharding *s, int depth)
{
    hlo_expect(x, "{");
    hlo_skip_space(x);
    if (depth < 2 && x->at < x->end && (*x->at == '{' || *x->at == '}')) {
        take_elements(x, s, depth);
        return;
    }
    while (!x->bad && !hlo_accept(x, "}")) {
        if (take_type(x, &s->type)) {
            continue;
        } else if (hlo_accept_word(x, "device")) {
            hlo_expect(x, "=");
            *sd_push(x->arena, &s->devices) = hlo_take_int(x);
        } else if (hlo_accept_word(x, "devices")) {
            take_tiles(x, s);
        } else if (hlo_accept_word(x, "last_tile_dim_replicate")) {
            s->replicate_last = 1;
        } else if (hlo_accept_word(x, "last_tile_dims")) {
            take_subgroups(x, s);
        } else if (hlo_accept_word(x, "shard_as") ||
                   hlo_accept_word(x, "shard_like")) {
            s->in_group = 1;
            s->group_type = x->at[-1] == 'e';
            s->group_id = hlo_take_int(x);
        } else if (hlo_accept_word(x, "metadata")) {
            hlo_expect(x, "=");
            hlo_skip_braces(x); /* where it came from: not kept */
        } else {
            hlo_expect(x, "}");
        }
    }
}

bool hlo_sharding_parse(sd_arena *a, const char *text, pb_sharding *out)
{
    hlo_lexer x = hlo_lexer_of(a, text, strlen(text));

    *out = (pb_sharding){0};
    take_sharding(&x, out, 0);
    hlo_skip_space(&x);
    return !x.bad && x.at == x.end;
}

static void print_tiles(sd_buf *b, const pb_sharding *s)
{
    bool moved = false;

    sd_buf_str(b, "devices=[");
    sd_buf_ints(b, s->tile_dims.at, s->tile_dims.n, ",");
    sd_buf_str(b, "]");
    sd_buf_ints(b, s->devices.at, s->devices.n, ",");
    if (s->iota_dims.n) {
        sd_buf_str(b, "<=[");
        sd_buf_ints(b, s->iota_dims.at, s->iota_dims.n, ",");
        sd_buf_str(b, "]");
        for (int i = 0; i < s->iota_perm.n; i++)
            moved |= s->iota_perm.at[i] != i;
        if (moved) {
            sd_buf_str(b, "T(");
            sd_buf_ints(b, s->iota_perm.at, s->iota_perm.n, ",");
            sd_buf_str(b, ")");
        }
    }
    if (s->replicate_last)
        sd_buf_str(b, " last_tile_dim_replicate");
}

static const char *name_of(int64_t type)
{
    if (type < 0 || type >= (int64_t)SD_COUNTOF(type_name) || !type_name[type])
        return "unknown";
    return type_name[type];
}

void hlo_sharding_print(sd_buf *b, const pb_sharding *s)
{
    sd_buf_str(b, "{");
    if (s->type == HLO_PB_TUPLE) {
        for (int i = 0; i < s->elem.n; i++) {
            sd_buf_str(b, i ? ", " : "");
            if (i && i % 5 == 0)
                sd_buf_fmt(b, "/*index=%d*/", i);
            hlo_sharding_print(b, &s->elem.at[i]);
        }
        sd_buf_str(b, "}");
        return;
    }
    if (s->type == HLO_PB_TILED)
        print_tiles(b, s);
    else
        sd_buf_str(b, name_of(s->type));
    if (s->type == HLO_PB_MAXIMAL && s->devices.n)
        sd_buf_fmt(b, " device=%" PRId64, s->devices.at[0]);
    for (int i = 0; i < s->last_tile_dims.n; i++)
        sd_buf_fmt(b, i ? ", %s" : " last_tile_dims={%s",
                   name_of(s->last_tile_dims.at[i]));
    sd_buf_str(b, s->last_tile_dims.n ? "}" : "");
    if (s->in_group)
        sd_buf_fmt(b, " %s %" PRId64, s->group_type ? "shard_like" : "shard_as",
                   s->group_id);
    sd_buf_str(b, "}");
}

/* ---- frontend attributes: {name="value",other={"a":1}} ---- */

static bool take_entry(hlo_lexer *x, pb_entry *e)
{
    size_t len;
    hlo_word w;

    hlo_skip_space(x);
    if (x->at < x->end && *x->at == '"') {
        e->key.at = (const uint8_t *)hlo_take_string(x, &e->key.len);
    } else {
        w = hlo_take_name(x);
        e->key = (sd_bytes){(const uint8_t *)w.at, w.len};
    }
    hlo_expect(x, "=");
    hlo_skip_space(x);
    if (x->at < x->end && *x->at == '{') {
        e->value.at = (const uint8_t *)x->at;
        hlo_skip_braces(x);
        e->value.len = (size_t)((const uint8_t *)x->at - e->value.at);
    } else {
        e->value.at = (const uint8_t *)hlo_take_string(x, &len);
        e->value.len = len;
    }
    return !x->bad && e->key.len;
}

bool hlo_attributes_parse(sd_arena *a, const char *text, pb_attributes *out)
{
    hlo_lexer x = hlo_lexer_of(a, text, strlen(text));

    *out = (pb_attributes){0};
    hlo_expect(&x, "{");
    while (!x.bad && !hlo_accept(&x, "}")) {
        pb_entry e = {0};

        if (!take_entry(&x, &e))
            return false;
        *sd_push(a, &out->map) = e;
        hlo_accept(&x, ",");
    }
    hlo_skip_space(&x);
    return !x.bad && x.at == x.end;
}

static bool is_name(sd_bytes s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!hlo_is_name_char((char)s.at[i]))
            return false;
    return s.len && (s.at[0] == '_' || s.at[0] > '9');
}

void hlo_attributes_print(sd_buf *b, const pb_attributes *at)
{
    sd_buf_str(b, "{");
    for (int i = 0; i < at->map.n; i++) {
        const pb_entry *e = &at->map.at[i];

        sd_buf_str(b, i ? "," : "");
        if (is_name(e->key))
            sd_buf_add(b, e->key.at, e->key.len);
        else
            hlo_print_quoted(b, (const char *)e->key.at, e->key.len);
        sd_buf_str(b, "=");
        hlo_print_quoted(b, (const char *)e->value.at, e->value.len);
    }
    sd_buf_str(b, "}");
}
