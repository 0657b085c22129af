/* Topologies: descriptions of devices, there or not.  A client has one of its
 * own devices; one made by name serves compiling ahead of time. */
#include "pjrt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/stat.h>

static void describe(PJRT_DeviceDescription *d, int id, const device_desc *desc)
{
    d->id = id;
    d->desc = *desc;
    snprintf(d->name, sizeof d->name, PJRT_PLATFORM "(id=%d)", id);
    snprintf(d->debug, sizeof d->debug, PJRT_PLATFORM "(id=%d, %s)", id,
             desc->name);
    d->attr[0] = pjrt_named_str("driver", d->desc.driver);
    d->attr[1] = pjrt_named_int("compute_units", desc->units);
    d->attr[2] = pjrt_named_int("sub_group_size", desc->subgroup);
    d->attr[3] =
        pjrt_named_int("local_memory_bytes", (int64_t)desc->local_bytes);
}

/* Size and time of the library that holds code, and of the compiler beside
 * it: programs compiled by another build must not be taken from a cache. */
static uint64_t build_id(void)
{
    static const char *const name[] = {"libsundog.so", "libsundog-compiler.so"};
    uint64_t h = 0;
    char path[4096];
    Dl_info info;
    struct stat s;

    if (!dladdr((void *)(uintptr_t)build_id, &info) || !info.dli_fname)
        return 0;
    for (size_t i = 0; i < SD_COUNTOF(name); i++) {
        const char *slash = strrchr(info.dli_fname, '/');
        int dir = slash ? (int)(slash - info.dli_fname) + 1 : 0;

        snprintf(path, sizeof path, "%.*s%s", dir, info.dli_fname, name[i]);
        if (stat(path, &s))
            continue;
        h = sd_hash(&s.st_size, sizeof s.st_size, h);
        h = sd_hash(&s.st_mtim, sizeof s.st_mtim, h);
    }
    return h;
}

sd_status pjrt_topology_make(int n, const device_desc *const *desc,
                             PJRT_TopologyDescription **out)
{
    PJRT_TopologyDescription *t = PJRT_NEW(PJRT_TopologyDescription);

    if (!t)
        return sd_no_memory(sizeof *t);
    t->n = n;
    t->at = calloc((size_t)n, sizeof *t->at);
    t->list = calloc((size_t)n, sizeof *t->list);
    if (!t->at || !t->list) {
        pjrt_topology_free(t);
        return sd_no_memory((size_t)n * sizeof *t->at);
    }
    for (int i = 0; i < n; i++) {
        describe(&t->at[i], i, desc[i]);
        t->list[i] = &t->at[i];
    }
    snprintf(t->version, sizeof t->version,
             "sundog " SD_VERSION " build %016" PRIx64 " %s %s", build_id(),
             desc[0]->name, desc[0]->driver);
    *out = t;
    return NULL;
}

void pjrt_topology_free(PJRT_TopologyDescription *t)
{
    if (!t)
        return;
    free(t->at);
    free(t->list);
    free(t);
}

/* "host:v4", or "host:v4 x 2" for two of them; empty: host:v4. */
PJRT_Error *
pjrt_topology_description_create(PJRT_TopologyDescription_Create_Args *a)
{
    char text[80], name[64] = "host:v4";
    const device_desc *list[64];
    device_desc desc;
    int count = 1;

    if (a->topology_name_size >= sizeof text)
        return pjrt_return(sd_error(SD_NOT_FOUND,
                                    "a topology's name of %zu "
                                    "bytes",
                                    a->topology_name_size));
    if (a->topology_name_size)
        memcpy(text, a->topology_name, a->topology_name_size);
    text[a->topology_name_size] = 0;
    sscanf(text, "%63s x %d", name, &count);
    if (!device_desc_of_name(name, &desc)) {
        sd_status st =
            sd_error(SD_NOT_FOUND, "no device is described as '%s'", name);

        for (int i = 0; i < device_desc_count(); i++)
            st = sd_note(st, "%s", device_desc_at(i)->name);
        return pjrt_return(st);
    }
    if (count < 1 || count > (int)SD_COUNTOF(list))
        return pjrt_return(sd_error(SD_INVALID,
                                    "topology of %d devices, 1 to "
                                    "%zu are possible",
                                    count, SD_COUNTOF(list)));
    for (int i = 0; i < count; i++)
        list[i] = &desc;
    return pjrt_return(pjrt_topology_make(count, list, &a->topology));
}

PJRT_Error *
pjrt_topology_description_destroy(PJRT_TopologyDescription_Destroy_Args *a)
{
    pjrt_topology_free(a->topology);
    return NULL;
}

PJRT_Error *pjrt_topology_description_platform_version(
    PJRT_TopologyDescription_PlatformVersion_Args *a)
{
    a->platform_version = a->topology->version;
    a->platform_version_size = strlen(a->topology->version);
    return NULL;
}

PJRT_Error *pjrt_topology_description_platform_name(
    PJRT_TopologyDescription_PlatformName_Args *a)
{
    a->platform_name = PJRT_PLATFORM;
    a->platform_name_size = strlen(PJRT_PLATFORM);
    return NULL;
}

PJRT_Error *pjrt_topology_description_get_device_descriptions(
    PJRT_TopologyDescription_GetDeviceDescriptions_Args *a)
{
    a->descriptions = a->topology->list;
    a->num_descriptions = (size_t)a->topology->n;
    return NULL;
}

PJRT_Error *pjrt_topology_description_attributes(
    PJRT_TopologyDescription_Attributes_Args *a)
{
    a->attributes = NULL;
    a->num_attributes = 0;
    return NULL;
}

static uint64_t fingerprint(const PJRT_TopologyDescription *t)
{
    uint64_t h = sd_hash(t->version, strlen(t->version), (uint64_t)t->n);

    for (int i = 0; i < t->n; i++)
        h = sd_hash(&t->at[i].desc, sizeof t->at[i].desc, h);
    return h;
}

PJRT_Error *pjrt_topology_description_fingerprint(
    PJRT_TopologyDescription_Fingerprint_Args *a)
{
    a->fingerprint = fingerprint(a->topology);
    return NULL;
}

PJRT_Error *pjrt_topology_description_get_memory_space_kind_ids(
    PJRT_TopologyDescription_GetMemorySpaceKindIds_Args *a)
{
    static const int ids[XPU_MEM_COUNT] = {1, 2, 3}; /* kind numbers */

    a->memory_space_kind_ids = ids;
    a->num_memory_space_kind_ids = SD_COUNTOF(ids);
    return NULL;
}

/* Saved as an empty program for the device, which brings format, version and
 * checksum along; the number of devices is its number of replicas. */
struct PJRT_SerializedTopology {
    sd_buf bytes;
};

static void free_serialized(PJRT_SerializedTopology *s)
{
    sd_buf_finish(&s->bytes);
    free(s);
}

PJRT_Error *
pjrt_topology_description_serialize(PJRT_TopologyDescription_Serialize_Args *a)
{
    PJRT_SerializedTopology *s = PJRT_NEW(PJRT_SerializedTopology);
    thunk_program p = {.name = "topology",
                       .device = a->topology->at[0].desc,
                       .nreplica = a->topology->n,
                       .npartition = 1};
    sd_status st = s ? thunk_save(&p, &s->bytes) : sd_no_memory(sizeof *s);

    if (st) {
        free(s);
        return pjrt_return(st);
    }
    a->serialized_bytes = s->bytes.at;
    a->serialized_bytes_size = s->bytes.len;
    a->serialized_topology = s;
    a->serialized_topology_deleter = free_serialized;
    return NULL;
}

PJRT_Error *pjrt_topology_description_deserialize(
    PJRT_TopologyDescription_Deserialize_Args *a)
{
    sd_bytes b = {(const uint8_t *)a->serialized_topology,
                  a->serialized_topology_size};
    const device_desc *list[64];
    thunk_program *p;
    sd_status st = thunk_load(b, &p);

    if (st)
        return pjrt_return(sd_note(st, "topology"));
    if (strcmp(p->name, "topology") || p->nreplica > (int)SD_COUNTOF(list)) {
        st = sd_error(SD_INVALID, "a program, not a topology");
    } else {
        for (int i = 0; i < p->nreplica; i++)
            list[i] = &p->device;
        st = pjrt_topology_make(p->nreplica, list, &a->topology);
    }
    thunk_program_release(p);
    return pjrt_return(st);
}
