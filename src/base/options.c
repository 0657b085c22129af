/* The options table and the values it holds. */
#include "base.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

/* Of the kinds of devices those that can be opened. */
static const char device_words[] = "auto"
#define OPEN(f) ", " #f
#define NONE    ""
#define DEVICE_KIND(id, name, title, open, code, flops, bytes, launch, meet, \
                    beside, library) \
    open
#include "device_kinds.def"
#undef DEVICE_KIND
#undef NONE
#undef OPEN
    ;

/* Described devices of OpenCL, each after a comma. */
static const char cl_words[] = ""
#define OF_DEVICE_HOST(name)
#define OF_DEVICE_CL(name) ", " name
#define OF_DEVICE_CUDA(name)
#define DEVICE(name, kind, ...) OF_##kind(name)
#include "devices.def"
#undef DEVICE
#undef OF_DEVICE_HOST
#undef OF_DEVICE_CL
#undef OF_DEVICE_CUDA
    ;

const sd_option_info sd_option_table[SD_OPT_COUNT] = {
#define STR              SD_T_STR, 0, 0, NULL
#define WORD(words)      SD_T_WORD, 0, 0, words
#define BOOL             SD_T_BOOL, 0, 0, NULL
#define INT(least, most) SD_T_INT, least, most, NULL
#define OPTION(id, name, alias, code, type, dflt, help) \
    [SD_OPT_##id] = {name, alias, code, type, dflt, help},
#include "options.def"
#undef OPTION
};

static bool same_name(const char *row, const char *name, size_t n)
{
    return row && strlen(row) == n && !memcmp(row, name, n);
}

/* What stands behind the flag's name where XLA_FLAGS has it last, or NULL. */
static const char *in_flags(const char *alias)
{
    const char *flags = getenv("XLA_FLAGS"), *v = NULL;

    while (flags && *(flags += strspn(flags, " \t\n\"'"))) {
        size_t n = strcspn(flags, " \t\n\"'"), k = strspn(flags, "-");
        size_t name = strcspn(flags + k, "= \t\n\"'");

        if (k && same_name(alias, flags + k, name))
            v = flags + k + name;
        flags += n;
    }
    return v;
}

/* jaxlib parses XLA_FLAGS and hands over the result, in which a flag that the
 * user set to its default reads like one that nobody set.  XLA's default is to
 * allow excess precision and ours is not to, so for this one the words count.
 */
static const char *excess_in_flags(void)
{
    const char *v = in_flags(sd_option_table[SD_OPT_EXCESS].alias);

    if (!v)
        return NULL;
    return *v != '=' || (v[1] && strchr("tT1", v[1])) ? "1" : "0";
}

/* An empty variable counts as unset, as users write FOO= to clear one. */
void sd_options_from_env(sd_options *o)
{
    for (int i = 0; i < SD_OPT_COUNT; i++) {
        const char *v = getenv(sd_option_table[i].name);

        o->value[i] = v && *v ? v : NULL;
    }
    if (!o->value[SD_OPT_EXCESS])
        o->value[SD_OPT_EXCESS] = excess_in_flags();
}

bool sd_options_set(sd_arena *a, sd_options *o, const char *name, size_t nlen,
                    const char *value, size_t vlen)
{
    while (nlen && *name == '-')
        name++, nlen--;
    for (int i = 0; i < SD_OPT_COUNT; i++) {
        if (!same_name(sd_option_table[i].name, name, nlen) &&
            !same_name(sd_option_table[i].alias, name, nlen))
            continue;
        o->value[i] = sd_arena_str(a, value, vlen);
        return true;
    }
    return false;
}

static const char *value_of(const sd_options *o, sd_option id)
{
    return o && o->value[id] && *o->value[id] ? o->value[id]
                                              : sd_option_table[id].dflt;
}

const char *sd_opt_str(const sd_options *o, sd_option id)
{
    const char *v = value_of(o, id);

    return *v ? v : NULL;
}

static bool read_int(const sd_option_info *row, const char *v, int64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoll(v, &end, 0);
    return end != v && !*end && !errno && *out >= row->least &&
           *out <= row->most;
}

static bool read_bool(const char *v, bool *out)
{
    static const char *const word[] = {"0",  "1",   "false", "true",
                                       "no", "yes", "off",   "on"};

    for (size_t i = 0; i < SD_COUNTOF(word); i++)
        if (!strcasecmp(v, word[i])) {
            *out = i % 2;
            return true;
        }
    return false;
}

/* What sd_options_check refuses counts as unset: rows' defaults are read. */
int64_t sd_opt_int(const sd_options *o, sd_option id)
{
    const sd_option_info *row = &sd_option_table[id];
    int64_t n;

    if (!read_int(row, value_of(o, id), &n))
        read_int(row, row->dflt, &n);
    return n;
}

bool sd_opt_bool(const sd_options *o, sd_option id)
{
    bool b = false;

    if (!read_bool(value_of(o, id), &b))
        read_bool(sd_option_table[id].dflt, &b);
    return b;
}

static bool has_row(const char *name, size_t n)
{
    for (int i = 0; i < SD_OPT_COUNT; i++)
        if (same_name(sd_option_table[i].name, name, n))
            return true;
    return false;
}

static bool is_word(const char *words, const char *v)
{
    size_t n = strlen(v);

    for (const char *w = words; *w; w += strspn(w, ", ")) {
        size_t len = strcspn(w, ",");

        if (len == n && !memcmp(w, v, n))
            return true;
        w += len;
    }
    return false;
}

static sd_status check_value(const sd_option_info *row, const char *v)
{
    int64_t n;
    bool b = false;

    if (row->type == SD_T_INT && !read_int(row, v, &n))
        return sd_error(SD_INVALID,
                        "%s=%s: a whole number from %" PRId64 " to %" PRId64
                        " is wanted (%s)",
                        row->name, v, row->least, row->most, row->help);
    if (row->type == SD_T_BOOL && !read_bool(v, &b))
        return sd_error(SD_INVALID, "%s=%s: 0 or 1 is wanted (%s)", row->name,
                        v, row->help);
    if (row->type == SD_T_WORD && *v && !is_word(row->words, v))
        return sd_error(SD_INVALID, "%s=%s: one of %s is wanted (%s)",
                        row->name, v, row->words, row->help);
    return NULL;
}

static bool is_given(sd_option id)
{
    const char *v = getenv(sd_option_table[id].name);

    return (v && *v) || in_flags(sd_option_table[id].alias);
}

/* Says what is to be dumped, and nothing where. */
static void warn_of_dumps(sd_option what)
{
    if (is_given(what) && !is_given(SD_OPT_DUMP_TO))
        sd_log(SD_LOG_WARN,
               "%s: nothing is dumped without SUNDOG_DUMP_TO, the folder to "
               "dump to",
               sd_option_table[what].name);
}

/* How many devices of a kind there are to be, where another one is named. */
static void warn_of_count(sd_option count, const char *kind)
{
    const sd_option_info *row = &sd_option_table[count];
    const char *v = getenv(row->name);
    const char *named = getenv(sd_option_table[SD_OPT_DEVICE].name);
    int64_t n;

    if (v && read_int(row, v, &n) && n > 1 && named && *named &&
        strcmp(named, "auto") && strcmp(named, kind))
        sd_log(SD_LOG_WARN,
               "%s=%s is for %s devices: SUNDOG_DEVICE=%s takes none of them",
               row->name, v, kind, named);
}

void sd_options_warn(void)
{
    for (char **e = environ; *e; e++) {
        size_t n = strcspn(*e, "=");

        if (!strncmp(*e, "SUNDOG_", 7) && !has_row(*e, n))
            sd_log(SD_LOG_WARN,
                   "%.*s is no setting of this version; `sundog options` "
                   "lists them",
                   (int)n, *e);
    }
    warn_of_dumps(SD_OPT_DUMP_PASSES);
    warn_of_dumps(SD_OPT_DUMP_MODULES);
    warn_of_count(SD_OPT_HOST_DEVICES, "host");
    warn_of_count(SD_OPT_CL_SPLIT, "cl");
}

sd_status sd_options_check(const sd_options *o)
{
    sd_status st = NULL;

    for (int i = 0; i < SD_OPT_COUNT && !st; i++)
        st = check_value(&sd_option_table[i], value_of(o, (sd_option)i));
    return st;
}

uint64_t sd_options_key(const sd_options *o)
{
    uint64_t h = 0;

    for (int i = 0; i < SD_OPT_COUNT; i++) {
        const char *v = value_of(o, (sd_option)i);

        if (sd_option_table[i].code)
            h = sd_hash(v, strlen(v), h);
    }
    return h;
}
