/* The devices that can be described without being there. */
#include "device_desc.h"

#include <stdio.h>

const device_kind_info device_kind_table[] = {
#define DEVICE_KIND(id, name, title, open, code, flops, bytes, launch, meet, \
                    beside, library) \
    [DEVICE_##id] = {name,   title, flops,  bytes, \
                     launch, meet,  beside, SD_OPT_##library},
#include "device_kinds.def"
#undef DEVICE_KIND
};

static const device_desc table[] = {
#define DEVICE(n, k, l, u, g, s, crowd_, access_, file, local, most, cache, f, \
               lib, called) \
    {.kind = k, \
     .name = n, \
     .lanes = l, \
     .units = u, \
     .group = g, \
     .subgroup = s, \
     .crowd = crowd_, \
     .access = access_, \
     .registers = file, \
     .local_bytes = local, \
     .local_most = most, \
     .cache_bytes = cache, \
     .features = f, \
     .libs = lib},
#include "devices.def"
#undef DEVICE
};

static const char *const names[] = {
#define DEVICE(n, k, l, u, g, s, crowd, access, file, local, most, cache, f, \
               lib, called) \
    called,
#include "devices.def"
#undef DEVICE
};

int device_desc_count(void)
{
    return (int)SD_COUNTOF(table);
}

const device_desc *device_desc_at(int i)
{
    return i >= 0 && i < device_desc_count() ? &table[i] : NULL;
}

bool device_desc_of_name(const char *name, device_desc *out)
{
    for (size_t i = 0; i < SD_COUNTOF(table); i++)
        if (!strcmp(table[i].name, name)) {
            *out = table[i];
            return true;
        }
    return false;
}

device_desc device_as_wanted(const device_desc *dev, const sd_options *opt)
{
    device_desc d = *dev;

    if (!sd_opt_bool(opt, SD_OPT_ENGINES))
        d.features &= ~(uint64_t)DEVICE_HAS_ENGINES;
    if (!sd_opt_bool(opt, SD_OPT_WGMMA))
        d.features &= ~(uint64_t)DEVICE_HAS_WGMMA;
    if (!sd_opt_bool(opt, SD_OPT_TF32))
        d.features &= ~(uint64_t)DEVICE_HAS_TF32;
    return d;
}

const char *device_name_of_product(const char *product)
{
    for (size_t i = 0; i < SD_COUNTOF(table); i++)
        for (const char *at = names[i]; *at; at += *at == '|') {
            size_t n = strcspn(at, "|");

            if (memmem(product, strlen(product), at, n))
                return table[i].name;
            at += n;
        }
    return NULL;
}

/* ---- mistakes of drivers ---- */

static const struct {
    device_quirk quirk;
    const char *devices;
    int first, last;
} drivers[] = {
#define DRIVER(id, devices, first, last) \
    {DEVICE_QUIRK_##id, devices, first, last},
#include "quirks.def"
};

static bool is_of_name(const char *name, const char *row)
{
    size_t n = strcspn(row, "*");

    return row[n] ? !strncmp(name, row, n) : !strcmp(name, row);
}

/* As major * 1000 + minor; -1 where the text has none. */
static int64_t version_of(const char *driver)
{
    int major = 0, minor = 0;

    if (sscanf(driver, "%*s %d.%d", &major, &minor) < 1 || major < 0 ||
        minor < 0)
        return -1;
    return (int64_t)major * 1000 + SD_MIN(minor, 999);
}

bool device_has_driver(const device_desc *d, const char *devices, int first,
                       int last)
{
    int64_t v = version_of(d->driver);

    return is_of_name(d->name, devices) &&
           (!*d->driver || (first <= v && v <= last));
}

bool device_has_quirk(const device_desc *d, device_quirk q)
{
    for (size_t i = 0; i < SD_COUNTOF(drivers); i++)
        if (drivers[i].quirk == q &&
            device_has_driver(d, drivers[i].devices, drivers[i].first,
                              drivers[i].last))
            return true;
    return false;
}

/* ---- custom-calls ---- */

const device_custom_info device_custom_table[] = {
#define CUSTOM_CALL(id, name, devices, launches) \
    [DEVICE_CUSTOM_##id] = {name, devices, launches},
#include "custom_call.def"
#undef CUSTOM_CALL
};

const device_custom_info *device_custom_of_name(const char *name)
{
    for (int i = 0; i < DEVICE_CUSTOM_COUNT; i++)
        if (strcmp(device_custom_table[i].name, name) == 0)
            return &device_custom_table[i];
    return NULL;
}

bool device_has_custom(device_kind kind, const char *name)
{
    const device_custom_info *c = device_custom_of_name(name);

    return c && c->devices >> kind & 1;
}
