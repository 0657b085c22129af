/* The options table and the values it holds. */
#include "base.h"

#include <stdlib.h>
#include <strings.h>

const sd_option_info sd_option_table[SD_OPT_COUNT] = {
#define OPTION(id, name, alias, scope, keyed, type, dflt, help) \
    [SD_OPT_##id] = {name, alias, scope, keyed, type, dflt, help},
#include "options.def"
#undef OPTION
};

/* An empty variable counts as unset, as users write FOO= to clear one. */
void sd_options_from_env(sd_options *o)
{
    for (int i = 0; i < SD_OPT_COUNT; i++) {
        const char *v = getenv(sd_option_table[i].name);

        o->value[i] = v && *v ? v : NULL;
    }
}

static bool same_name(const char *row, const char *name, size_t n)
{
    return row && strlen(row) == n && !memcmp(row, name, n);
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
    return o && o->value[id] ? o->value[id] : sd_option_table[id].dflt;
}

const char *sd_opt_str(const sd_options *o, sd_option id)
{
    const char *v = value_of(o, id);

    return *v ? v : NULL;
}

/* A value that is no number is the default: the rows' defaults are numbers. */
int64_t sd_opt_int(const sd_options *o, sd_option id)
{
    const char *v = value_of(o, id);
    char *end;
    long long n = strtoll(v, &end, 0);

    if (end == v || *end)
        n = strtoll(sd_option_table[id].dflt, NULL, 0);
    return n;
}

bool sd_opt_bool(const sd_options *o, sd_option id)
{
    static const char *const yes[] = {"1", "true", "yes", "on"};
    const char *v = value_of(o, id);

    for (size_t i = 0; i < SD_COUNTOF(yes); i++)
        if (!strcasecmp(v, yes[i]))
            return true;
    return false;
}

uint64_t sd_options_key(const sd_options *o)
{
    uint64_t h = 0;

    for (int i = 0; i < SD_OPT_COUNT; i++) {
        const char *v = value_of(o, (sd_option)i);

        if (sd_option_table[i].keyed)
            h = sd_hash(v, strlen(v), h);
    }
    return h;
}
