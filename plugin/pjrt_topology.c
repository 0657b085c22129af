/* Topologies: descriptions of devices, there or not.  A client has one of its
 * own devices; one made by name serves compiling ahead of time. */
#include "pjrt.h"

#include "pb.h"

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
 * it, and the settings that change code: programs compiled by another build, or
 * with other settings, must not be taken from a cache. */
static uint64_t build_id(void)
{
    static const char *const name[] = {"libsundog.so", "libsundog-compiler.so"};
    sd_options o;
    uint64_t h;
    char path[4096];
    Dl_info info;
    struct stat s;

    sd_options_from_env(&o);
    h = sd_options_key(&o);
    if (!dladdr((void *)(uintptr_t)build_id, &info) || !info.dli_fname)
        return h;
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

/* "sm_90" of "cuda:sm_90": where JAX reads "cuda" in a platform's version it
 * takes the platform for XLA's GPU back end, with cuDNN as custom-calls. */
static const char *chip_of(const char *name)
{
    const char *colon = strchr(name, ':');

    return colon ? colon + 1 : name;
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
             chip_of(desc[0]->name), desc[0]->driver);
    t->attr[0] = pjrt_named_str("target", t->at[0].desc.name);
    t->attr[1] = pjrt_named_int("num_devices", n);
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

/* ---- shapes in a memory of a device that need not be there ---- */

enum { HOST_MEMORY = 5 }; /* what XLA calls the host's */

static void write_shape(sd_buf *b, const pjrt_array *t, bool on_host)
{
    const int64_t *order = t->order ? t->order : pjrt_row_major(t->rank);
    pb_layout layout = {.minor_to_major = pb_borrowed(order, t->rank),
                        .memory_space = on_host ? HOST_MEMORY : 0};
    pb_shape s = {.element_type = sd_dtype_table[t->dtype].xla,
                  .dims = pb_borrowed(t->dim, t->rank),
                  .layout = &layout};

    pb_write(b, &pb_shape_table, &s);
}

static void free_shape(const char *at)
{
    free((char *)(uintptr_t)at);
}

/* Any order of dimensions will do, in any memory: what is asked for is
 * canonical, and row-major where nothing is. */
PJRT_Error *pjrt_topology_description_make_canonical_shape_for_memory_space(
    PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args *a)
{
    int first = pjrt_memory_kind_number(XPU_MEM_DEVICE);
    sd_buf b = {0};
    pjrt_array t;
    sd_status st =
        pjrt_array_read(a->element_type, a->dims, a->num_dims, a->layout, &t);

    if (!st && (a->memory_space_kind_id < first ||
                a->memory_space_kind_id >= first + XPU_MEM_COUNT))
        st = sd_error(SD_INVALID, "no memory is of kind %d",
                      a->memory_space_kind_id);
    if (st)
        return pjrt_return(st);
    write_shape(&b, &t, a->memory_space_kind_id != first);
    if (b.oom) {
        sd_buf_finish(&b);
        return pjrt_no_memory();
    }
    a->serialized_shape = b.at;
    a->serialized_shape_size = b.len;
    a->serialized_shape_deleter = free_shape;
    return NULL;
}

/* ---- saved as an empty program for the device, which brings format, version
 *      and checksum along; the number of devices is its number of replicas */

static void free_serialized(PJRT_SerializedTopology *s)
{
    pjrt_bytes_free((pjrt_bytes *)s);
}

PJRT_Error *
pjrt_topology_description_serialize(PJRT_TopologyDescription_Serialize_Args *a)
{
    thunk_program p = {.name = "topology",
                       .device = a->topology->at[0].desc,
                       .nreplica = a->topology->n,
                       .npartition = 1};
    sd_buf b = {0};
    sd_status st = thunk_save(&p, &b);
    pjrt_bytes *holder;
    PJRT_Error *e = pjrt_bytes_hand(st, &b, &a->serialized_bytes,
                                    &a->serialized_bytes_size, &holder);

    if (e)
        return e;
    a->serialized_topology = (PJRT_SerializedTopology *)holder;
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
