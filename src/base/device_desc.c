/* The devices that can be described without being there. */
#include "device_desc.h"

#include <stdio.h>

const device_kind_info device_kind_table[] = {
#define DEVICE_KIND(id, name, title, open, code, flops, bytes, launch) \
    [DEVICE_##id] = {name, title, flops, bytes, launch},
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
    const char *device;
    int first, last;
} quirks[DEVICE_QUIRK_COUNT] = {
#define QUIRK(id, device, first, last, what) \
    [DEVICE_QUIRK_##id] = {device, first, last},
#include "quirks.def"
#undef QUIRK
};

bool device_has_quirk(const device_desc *d, device_quirk q)
{
    int major = 0, minor = 0;

    if (strcmp(d->name, quirks[q].device))
        return false;
    if (!*d->driver)
        return true;
    if (sscanf(d->driver, "OpenCL %d.%d", &major, &minor) < 1)
        return false;
    return quirks[q].first / 1000 <= major && major <= quirks[q].last / 1000 &&
           quirks[q].first <= major * 1000 + minor &&
           major * 1000 + minor <= quirks[q].last;
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
