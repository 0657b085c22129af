/* CompileOptionsProto: the few fields that mean something to us, the rest
 * skipped by wire type.  DebugOptions arrives whole in every compile, so a
 * field there overrides the environment only when it is set to something;
 * env_option_overrides are what the user asked of this one compile and come
 * last, whatever their place in the message. */
#include "frontend.h"

enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };
enum { MAX_PARTICIPANTS = 1 << 20 };

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

/* A value of the overrides: string, bool, int64 or double. */
static sd_status read_value(sd_arena *a, sd_bytes b, sd_bytes *out)
{
    sd_cursor c = sd_cursor_of(b);
    const char *s = "";
    field f;

    while (next_field(&c, &f)) {
        if (f.tag == 1 && f.wire == WIRE_BYTES) {
            *out = f.b;
            return NULL;
        }
        if (f.tag == 2 && f.wire == WIRE_VARINT)
            s = f.v ? "1" : "0";
        else if (f.tag == 3 && f.wire == WIRE_VARINT)
            s = sd_arena_fmt(a, "%" PRId64, (int64_t)f.v);
        else if (f.tag == 4 && f.wire == WIRE_64) {
            double d;

            memcpy(&d, &f.v, sizeof d);
            s = sd_arena_fmt(a, "%.17g", d);
        }
    }
    *out = (sd_bytes){(const uint8_t *)s, strlen(s)};
    return sd_cursor_status(&c, "an option's value");
}

static sd_status read_override(sd_arena *a, sd_bytes b, sd_options *o)
{
    sd_cursor c = sd_cursor_of(b);
    sd_bytes name = {0}, value = {0};
    sd_status st = NULL;
    field f;

    while (!st && next_field(&c, &f)) {
        if (f.tag == 1 && f.wire == WIRE_BYTES)
            name = f.b;
        if (f.tag == 2 && f.wire == WIRE_BYTES)
            st = read_value(a, f.b, &value);
    }
    if (!st)
        st = sd_cursor_status(&c, "an option");
    if (!st && name.len &&
        !sd_options_set(a, o, (const char *)name.at, name.len,
                        value.at ? (const char *)value.at : "", value.len))
        sd_log(SD_LOG_DEBUG, "compile option %.*s is unknown: ignored",
               (int)SD_MIN(name.len, (size_t)128), (const char *)name.at);
    return st;
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

static sd_status read_build(sd_arena *a, sd_bytes b, frontend_options *o)
{
    sd_cursor c = sd_cursor_of(b);
    sd_status st = NULL;
    field f;

    while (!st && next_field(&c, &f)) {
        if (f.tag == 3 && f.wire == WIRE_BYTES)
            st = read_debug(a, f.b, &o->options);
        else if (f.tag == 4 && f.wire == WIRE_VARINT)
            st = read_count(f.v, "num_replicas", &o->nreplica);
        else if (f.tag == 5 && f.wire == WIRE_VARINT)
            st = read_count(f.v, "num_partitions", &o->npartition);
    }
    return st ? st : sd_cursor_status(&c, "ExecutableBuildOptionsProto");
}

/* What would make another program of this one.  JAX sends neither. */
static sd_status refuse(const field *f)
{
    if (f->tag == 2 && f->wire == WIRE_VARINT && f->v)
        return sd_error(SD_UNIMPLEMENTED,
                        "parameter_is_tupled_arguments: programs take their "
                        "arguments one by one");
    if (f->tag == 6 && f->wire == WIRE_BYTES && f->b.len)
        return sd_error(SD_UNIMPLEMENTED,
                        "serialized_multi_slice_config: there are no slices "
                        "of devices here");
    return NULL;
}

static sd_status read_all(sd_arena *a, sd_bytes proto, bool overrides,
                          frontend_options *o)
{
    sd_cursor c = sd_cursor_of(proto);
    sd_status st = NULL;
    field f;

    while (!st && next_field(&c, &f)) {
        if (overrides) {
            if (f.tag == 7 && f.wire == WIRE_BYTES)
                st = read_override(a, f.b, &o->options);
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
    sd_status st;

    if ((st = read_all(a, proto, false, &o)) ||
        (st = read_all(a, proto, true, &o)))
        return st->code == SD_INVALID
                   ? sd_note(st, "failed to deserialize CompileOptionsProto")
                   : st;
    *out = o;
    return NULL;
}
