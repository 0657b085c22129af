/* CompileOptionsProto: the few fields that mean something to us
 * (pb.def).  DebugOptions arrives whole in every compile, so a field
 * there overrides the environment only when it is set to something;
 * env_option_overrides are what the user asked of this one compile and come
 * last, whatever their place in the message. */
#include "frontend.h"
#include "hlo_proto.h"

#include <stdlib.h>

enum { MAX_PARTICIPANTS = 1 << 20, MOST_NAME = 128 };

static void take_debug(sd_arena *a, const pb_debug_options *d, sd_options *o)
{
    const struct {
        const char *name;
        sd_bytes v;
    } set[] = {{"xla_dump_to", d->dump_to},
               {"xla_dump_hlo_module_re", d->dump_modules},
               {"xla_dump_hlo_pass_re", d->dump_passes}};
    const char *off = "xla_disable_hlo_passes";
    sd_buf passes = {.arena = a};

    for (size_t i = 0; i < SD_COUNTOF(set); i++)
        if (set[i].v.len)
            sd_options_set(a, o, set[i].name, strlen(set[i].name),
                           (const char *)set[i].v.at, set[i].v.len);
    for (int i = 0; i < d->disabled_pass.n; i++) {
        sd_buf_str(&passes, passes.len ? "," : "");
        sd_buf_add(&passes, d->disabled_pass.at[i].at,
                   d->disabled_pass.at[i].len);
    }
    if (passes.len)
        sd_options_set(a, o, off, strlen(off), passes.at, passes.len);
}

/* ---- what the user asks of one compile ---- */

typedef struct {
    enum { IS_NOTHING, IS_STRING, IS_BOOL, IS_INT, IS_DOUBLE } is;
    const char *text;
} override_value;

static override_value value_of(sd_arena *a, const pb_option_value *v)
{
    override_value o = {IS_NOTHING, ""};
    double d;

    if (v && v->text.n) {
        sd_bytes s = v->text.at[v->text.n - 1];

        o.is = IS_STRING;
        o.text = sd_arena_str(a, (const char *)s.at, s.len);
    } else if (v && v->truth.n) {
        o.is = IS_BOOL;
        o.text = v->truth.at[v->truth.n - 1] ? "1" : "0";
    } else if (v && v->number.n) {
        o.is = IS_INT;
        o.text = sd_arena_fmt(a, "%" PRId64, v->number.at[v->number.n - 1]);
    } else if (v && v->real.len >= sizeof d) {
        memcpy(&d, v->real.at + v->real.len - sizeof d, sizeof d);
        o.is = IS_DOUBLE;
        o.text = sd_arena_fmt(a, "%g", d);
    }
    return o;
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

static sd_status apply(sd_arena *a, const pb_option *x, sd_options *o)
{
    size_t len = SD_MIN(x->name.len, (size_t)MOST_NAME);
    const char *name =
        len ? sd_arena_str(a, (const char *)x->name.at, len) : "";
    override_value v = value_of(a, x->value);
    const option_type *type = find_xla_option(name);

    if (!*name)
        return NULL;
    if (type && !type->suits(&v)) /* in XLA's words, both */
        return sd_error(SD_INVALID,
                        "While setting option %s, '%s' is not a valid %s "
                        "value.",
                        name, v.text, type->type);
    if (!sd_options_set(a, o, name, strlen(name), v.text, strlen(v.text)) &&
        !type)
        return sd_error(SD_INVALID, "No such compile option: '%s'", name);
    return NULL;
}

/* ---- all ---- */

static sd_status read_count(int64_t v, const char *what, int *out)
{
    if (v < 0 || v > MAX_PARTICIPANTS)
        return sd_error(SD_INVALID,
                        "%s is %" PRId64 ", which should be 0 to %d", what, v,
                        MAX_PARTICIPANTS);
    *out = v ? (int)v : 1;
    return NULL;
}

static hlo_dims truths(pb_ints v)
{
    for (int i = 0; i < v.n; i++)
        v.at[i] = v.at[i] != 0;
    return pb_dims(v);
}

static sd_status take_build(sd_arena *a, const pb_build_options *b,
                            frontend_options *o)
{
    sd_status st;

    if ((st = read_count(b->num_replicas, "num_replicas", &o->nreplica)) ||
        (st = read_count(b->num_partitions, "num_partitions", &o->npartition)))
        return st;
    if (b->debug)
        take_debug(a, b->debug, &o->options);
    o->open_param = truths(b->open_param);
    o->open_output = truths(b->open_output);
    return NULL;
}

/* No field that is left out changes what the program computes.
 * parameter_is_tupled_arguments (2) needs no reading: a program whose one
 * parameter is a tuple of all arguments takes them one by one, asked or not
 * (hlo_lower_params.c). */
sd_status frontend_read_options(sd_arena *a, sd_bytes proto,
                                frontend_options *out)
{
    frontend_options o = {
        .nreplica = 1, .npartition = 1, .options = out->options};
    pb_compile_options all = {0};
    sd_status st = pb_read(a, &pb_compile_options_table, proto, &all);

    if (!st && all.build)
        st = take_build(a, all.build, &o);
    if (st)
        return sd_note(st, "failed to deserialize CompileOptionsProto");
    if (all.slices.len)
        return sd_error(SD_UNIMPLEMENTED,
                        "serialized_multi_slice_config: there are no slices "
                        "of devices here");
    for (int i = 0; i < all.option.n; i++)
        if ((st = apply(a, &all.option.at[i], &o.options)))
            return st;
    if ((st = sd_options_check(&o.options)))
        return st;
    o.portable = all.portable != 0;
    *out = o;
    return NULL;
}
