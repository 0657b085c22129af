/* CompileOptionsProto: the few fields that mean something to us, the rest
 * skipped by wire type.  DebugOptions arrives whole in every compile, so a
 * field there overrides the environment only when it is set to something;
 * env_option_overrides are what the user asked of this one compile and come
 * last, whatever their place in the message. */
#include "frontend.h"

#include <stdlib.h>

enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };
enum { MAX_PARTICIPANTS = 1 << 20, MOST_NAME = 128 };

typedef struct {
    uint32_t tag;
    int wire;
    uint64_t v;
    sd_bytes b;
} field;

static bool next_field(sd_cursor *c, field *f)
{
    uint64_t key;

    if (c->bad || !sd_cursor_left(c))
        return false;
    key = sd_read_leb(c);
    *f = (field){.tag = (uint32_t)(key >> 3), .wire = (int)(key & 7)};
    if (key >> 3 == 0 || key >> 32)
        sd_cursor_fail(c, "a field number");
    switch (f->wire) {
    case WIRE_VARINT:
        f->v = sd_read_leb(c);
        break;
    case WIRE_64:
        f->v = sd_read_u64(c);
        break;
    case WIRE_BYTES:
        f->b = sd_read_bytes(c, sd_read_leb(c));
        break;
    case WIRE_32:
        f->v = sd_read_u32(c);
        break;
    default:
        sd_cursor_fail(c, "a wire type of 0, 1, 2 or 5");
    }
    return !c->bad;
}

static void set(sd_arena *a, sd_options *o, const char *name, const void *v,
                size_t len)
{
    sd_options_set(a, o, name, strlen(name), v, len);
}

/* DebugOptions, by field number */
static const struct {
    uint32_t tag;
    const char *name;
} debug[] = {{109, "xla_dump_to"},
             {110, "xla_dump_hlo_module_re"},
             {111, "xla_dump_hlo_pass_re"}};
enum { DISABLED_PASS = 30 };

static sd_status read_debug(sd_arena *a, sd_bytes b, sd_options *o)
{
    sd_cursor c = sd_cursor_of(b);
    sd_buf passes = {0};
    field f;

    while (next_field(&c, &f)) {
        if (f.tag == DISABLED_PASS && f.wire == WIRE_BYTES) {
            sd_buf_str(&passes, passes.len ? "," : "");
            sd_buf_add(&passes, f.b.at, f.b.len);
        }
        for (size_t i = 0; i < SD_COUNTOF(debug); i++)
            if (debug[i].tag == f.tag && f.wire == WIRE_BYTES && f.b.len)
                set(a, o, debug[i].name, f.b.at, f.b.len);
    }
    if (passes.len && !c.bad)
        set(a, o, "xla_disable_hlo_passes", passes.at, passes.len);
    sd_buf_finish(&passes);
    return sd_cursor_status(&c, "DebugOptions");
}

/* ---- what the user asks of one compile ---- */

enum { IS_STRING = 1, IS_BOOL, IS_INT, IS_DOUBLE }; /* the fields' numbers */
typedef struct {
    int is; /* 0: nothing is given */
    const char *text;
} override_value;
typedef struct {
    const char *name;
    override_value value;
} override;
typedef sd_vec(override) override_list;

static sd_status read_value(sd_arena *a, sd_bytes b, override_value *out)
{
    sd_cursor c = sd_cursor_of(b);
    override_value v = {.text = ""};
    double d;
    field f;

    while (next_field(&c, &f)) {
        if (f.tag == IS_STRING && f.wire == WIRE_BYTES) {
            v.text = sd_arena_str(a, (const char *)f.b.at, f.b.len);
        } else if (f.tag == IS_BOOL && f.wire == WIRE_VARINT) {
            v.text = f.v ? "1" : "0";
        } else if (f.tag == IS_INT && f.wire == WIRE_VARINT) {
            v.text = sd_arena_fmt(a, "%" PRId64, (int64_t)f.v);
        } else if (f.tag == IS_DOUBLE && f.wire == WIRE_64) {
            memcpy(&d, &f.v, sizeof d);
            v.text = sd_arena_fmt(a, "%g", d);
        } else {
            continue;
        }
        v.is = (int)f.tag;
    }
    *out = v;
    return sd_cursor_status(&c, "an option's value");
}

static bool is_truth(const override_value *v)
{
    return v->is == IS_BOOL || !strcmp(v->text, "true") ||
           !strcmp(v->text, "True") || !strcmp(v->text, "false") ||
           !strcmp(v->text, "False");
}

static bool is_number(const override_value *v)
{
    char *end;

    strtoll(v->text, &end, 10);
    return v->is != IS_BOOL && v->is != IS_DOUBLE && end != v->text && !*end;
}

static bool is_real(const override_value *v)
{
    char *end;

    strtod(v->text, &end);
    return v->is != IS_BOOL && end != v->text && !*end;
}

static bool is_string(const override_value *v)
{
    return v->is == IS_STRING;
}

/* Names of enumerators, and messages: nobody looks at them here. */
static bool is_other(const override_value *v)
{
    return v->is == IS_STRING || v->is == IS_INT;
}

typedef struct {
    const char *type;
    bool (*suits)(const override_value *v);
} option_type;
static const option_type BOOL = {"bool", is_truth},
                         INT32 = {"int32", is_number},
                         INT64 = {"int64", is_number},
                         FLOAT = {"float", is_real},
                         STRING = {"string", is_string},
                         OTHER = {"enum", is_other};

static const struct {
    const char *name;
    const option_type *type;
} xla_options[] = {
#define XLA_OPTION(name, type) {#name, &type},
#include "xla_options.def"
#undef XLA_OPTION
};

static const option_type *find_xla_option(const char *name)
{
    for (size_t i = 0; i < SD_COUNTOF(xla_options); i++)
        if (!strcmp(xla_options[i].name, name))
            return xla_options[i].type;
    return NULL;
}

static sd_status read_override(sd_arena *a, sd_bytes b, override_list *list)
{
    sd_cursor c = sd_cursor_of(b);
    override x = {.name = "", .value = {.text = ""}};
    sd_status st = NULL;
    field f;

    while (!st && next_field(&c, &f)) {
        if (f.tag == 1 && f.wire == WIRE_BYTES)
            x.name = sd_arena_str(a, (const char *)f.b.at,
                                  SD_MIN(f.b.len, (size_t)MOST_NAME));
        if (f.tag == 2 && f.wire == WIRE_BYTES)
            st = read_value(a, f.b, &x.value);
    }
    if (!st)
        st = sd_cursor_status(&c, "an option");
    if (!st && *x.name)
        *sd_push(a, list) = x;
    return st;
}

static sd_status apply(sd_arena *a, const override *x, sd_options *o)
{
    const option_type *type = find_xla_option(x->name);
    const char *text = x->value.text;

    if (type && !type->suits(&x->value)) /* in XLA's words, both */
        return sd_error(
            SD_INVALID,
            "While setting option %s, '%s' is not a valid %s value.", x->name,
            text, type->type);
    if (!sd_options_set(a, o, x->name, strlen(x->name), text, strlen(text)) &&
        !type)
        return sd_error(SD_INVALID, "No such compile option: '%s'", x->name);
    return NULL;
}

static sd_status read_count(uint64_t v, const char *what, int *out)
{
    if (v > MAX_PARTICIPANTS) /* negative ones too */
        return sd_error(SD_INVALID,
                        "%s is %" PRId64 ", which should be 0 to %d", what,
                        (int64_t)v, MAX_PARTICIPANTS);
    *out = v ? (int)v : 1;
    return NULL;
}

typedef sd_vec(int64_t) truths;

/* A repeated bool: one, or packed. */
static sd_status read_truths(sd_arena *a, const field *f, truths *list)
{
    sd_cursor c = sd_cursor_of(f->b);

    if (f->wire == WIRE_VARINT)
        *sd_push(a, list) = f->v != 0;
    while (f->wire == WIRE_BYTES && !c.bad && sd_cursor_left(&c))
        *sd_push(a, list) = sd_read_leb(&c) != 0;
    return sd_cursor_status(&c, "a list of truths");
}

static sd_status read_build(sd_arena *a, sd_bytes b, frontend_options *o)
{
    sd_cursor c = sd_cursor_of(b);
    truths param = {0}, output = {0};
    sd_status st = NULL;
    field f;

    while (!st && next_field(&c, &f)) {
        if (f.tag == 3 && f.wire == WIRE_BYTES)
            st = read_debug(a, f.b, &o->options);
        else if (f.tag == 4 && f.wire == WIRE_VARINT)
            st = read_count(f.v, "num_replicas", &o->nreplica);
        else if (f.tag == 5 && f.wire == WIRE_VARINT)
            st = read_count(f.v, "num_partitions", &o->npartition);
        else if (f.tag == 12)
            st = read_truths(a, &f, &output);
        else if (f.tag == 18)
            st = read_truths(a, &f, &param);
    }
    o->open_param = (hlo_dims){param.at, param.n};
    o->open_output = (hlo_dims){output.at, output.n};
    return st ? st : sd_cursor_status(&c, "ExecutableBuildOptionsProto");
}

/* What would make another program of this one.  parameter_is_tupled_arguments
 * (2) does not: a program whose one parameter is a tuple of all arguments takes
 * them one by one, asked or not (hlo_lower_params.c). */
static sd_status refuse(const field *f)
{
    if (f->tag == 6 && f->wire == WIRE_BYTES && f->b.len)
        return sd_error(SD_UNIMPLEMENTED,
                        "serialized_multi_slice_config: there are no slices "
                        "of devices here");
    return NULL;
}

static sd_status read_all(sd_arena *a, sd_bytes proto, override_list *overrides,
                          frontend_options *o)
{
    sd_cursor c = sd_cursor_of(proto);
    sd_status st = NULL;
    field f;

    while (!st && next_field(&c, &f)) {
        if (f.tag == 7 && f.wire == WIRE_BYTES) {
            st = read_override(a, f.b, overrides);
        } else if (f.tag == 3 && f.wire == WIRE_BYTES) {
            st = read_build(a, f.b, o);
        } else if (f.tag == 4 && f.wire == WIRE_VARINT) {
            o->portable = f.v != 0;
        } else {
            st = refuse(&f);
        }
    }
    return st ? st : sd_cursor_status(&c, "the message");
}

sd_status frontend_read_options(sd_arena *a, sd_bytes proto,
                                frontend_options *out)
{
    frontend_options o = {
        .nreplica = 1, .npartition = 1, .options = out->options};
    override_list overrides = {0};
    sd_status st;

    if ((st = read_all(a, proto, &overrides, &o)))
        return st->code == SD_INVALID
                   ? sd_note(st, "failed to deserialize CompileOptionsProto")
                   : st;
    for (int i = 0; i < overrides.n; i++)
        if ((st = apply(a, &overrides.at[i], &o.options)))
            return st;
    *out = o;
    return NULL;
}
