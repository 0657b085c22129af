/* Loaded executables: a program on the devices that it is to run on. */
#include "pjrt.h"

static void destroy(PJRT_LoadedExecutable *l)
{
    if (!l)
        return;
    for (int i = 0; l->programs && i < l->client->n; i++)
        if (l->programs[i])
            xpu_program_release(l->programs[i]);
    free((void *)l->programs);
    pjrt_executable_release(l->exe);
    free(l->devices);
    free(l->logical);
    free(l->participant);
    free((int *)(uintptr_t)l->places.process);
    sd_buf_finish(&l->assignment);
    pjrt_client_release(l->client);
    free(l);
}

sd_status pjrt_loaded_program(PJRT_LoadedExecutable *l, PJRT_Device *d,
                              int participant, xpu_program **out)
{
    _Atomic(xpu_program *) *slot = &l->programs[d->desc->id];
    xpu_program *x = atomic_load_explicit(slot, memory_order_acquire);
    xpu_program *other = NULL;
    sd_status st;

    if (!x) {
        if ((st = xpu_program_load_as(d->x, l->exe->p, participant, &x)))
            return st;
        if (!atomic_compare_exchange_strong(slot, &other, x)) {
            xpu_program_release(x);
            x = other;
        }
    }
    *out = x;
    return NULL;
}

static sd_status make_lists(PJRT_LoadedExecutable *l, int n)
{
    size_t k = (size_t)n;

    l->devices = calloc(k, sizeof *l->devices);
    l->logical = calloc(k, sizeof *l->logical);
    l->participant = calloc(k, sizeof *l->participant);
    l->programs = calloc((size_t)l->client->n, sizeof *l->programs);
    l->places.process = calloc(k, sizeof *l->places.process);
    if (!l->devices || !l->logical || !l->participant || !l->programs ||
        !l->places.process)
        return sd_no_memory(k * sizeof *l->devices);
    return NULL;
}

static sd_status place_one(PJRT_LoadedExecutable *l, int i, int id,
                           int nreplica)
{
    PJRT_Device *d = pjrt_client_find(l->client, id);
    xpu_program *x;
    sd_status st;

    if (!d)
        return sd_error(SD_INVALID,
                        "%s is to run on device %d: there are 0 to %d",
                        l->exe->p->name, id, l->client->n - 1);
    if (!d->x)
        return NULL;
    if (l->programs[id])
        return sd_error(SD_INVALID,
                        "%s is to run twice on device %d: each participant "
                        "has a device of its own",
                        l->exe->p->name, id);
    if ((st = pjrt_loaded_program(l, d, i, &x)))
        return st;
    l->devices[l->n] = d;
    l->logical[l->n] = (PJRT_LogicalDeviceIds){i % nreplica, i / nreplica};
    l->participant[l->n++] = i;
    l->meets = xpu_program_is_gang(x);
    return NULL;
}

/* For those that other processes take part in. */
static void say_where(PJRT_LoadedExecutable *l, int n, const int *device)
{
    int *process = (int *)(uintptr_t)l->places.process;

    l->places.n = n;
    l->places.id = sd_hash(device, (size_t)n * sizeof *device, 0);
    for (int i = 0; i < n; i++)
        process[i] = l->client->devices[device[i]]->desc->process;
    if (l->n == n) {
        free(process);
        l->places.process = NULL;
    }
}

/* Places 0, 1, ... when none are given; a portable program is wherever its
 * caller wants it. */
static sd_status place(PJRT_LoadedExecutable *l, const pjrt_compile_options *o)
{
    int n = o->nreplica * o->npartition;
    int *device = malloc((size_t)n * sizeof *device);
    sd_status st = make_lists(l, n);

    if (!st && !device)
        st = sd_no_memory((size_t)n * sizeof *device);
    for (int i = 0; i < n && !st; i++) {
        device[i] = o->device ? o->device[i] : i;
        st = place_one(l, i, device[i], o->nreplica);
    }
    if (!st)
        say_where(l, n, device);
    if (!st && !l->portable) {
        pjrt_options_assignment(&l->assignment, o->nreplica, o->npartition,
                                device);
        if (l->assignment.oom)
            st = sd_no_memory(l->assignment.len);
    }
    free(device);
    return st;
}

sd_status pjrt_load(PJRT_Client *c, PJRT_Executable *e, sd_bytes options,
                    PJRT_LoadedExecutable **out)
{
    PJRT_LoadedExecutable *l;
    pjrt_compile_options o;
    sd_status st;

    if (!options.len)
        options = (sd_bytes){(const uint8_t *)e->options.at, e->options.len};
    if ((st = pjrt_options_read(options, &o)))
        return st;
    if (!(l = PJRT_NEW(PJRT_LoadedExecutable))) {
        pjrt_options_finish(&o);
        return sd_no_memory(sizeof *l);
    }
    l->client = pjrt_client_retain(c);
    l->exe = e;
    atomic_fetch_add(&e->refs, 1);
    l->portable = o.portable;
    if (o.nreplica != e->p->nreplica || o.npartition != e->p->npartition)
        st = sd_error(SD_INVALID,
                      "options of %d replicas x %d partitions for %s, which "
                      "was compiled for %d x %d",
                      o.nreplica, o.npartition, e->p->name, e->p->nreplica,
                      e->p->npartition);
    else
        st = place(l, &o);
    pjrt_options_finish(&o);
    if (st) {
        destroy(l);
        return st;
    }
    *out = l;
    return NULL;
}

PJRT_Error *
pjrt_executable_deserialize_and_load(PJRT_Executable_DeserializeAndLoad_Args *a)
{
    sd_bytes b = {(const uint8_t *)a->serialized_executable,
                  a->serialized_executable_size};
    sd_bytes options = {0};
    PJRT_Executable *e;
    sd_status st;

    if (PJRT_HAS(a, overridden_serialized_compile_options_size) &&
        a->overridden_serialized_compile_options)
        options = (sd_bytes){
            (const uint8_t *)a->overridden_serialized_compile_options,
            a->overridden_serialized_compile_options_size};
    if ((st = pjrt_executable_restore(b, &e)))
        return pjrt_return(st);
    st = pjrt_load(a->client, e, options, &a->loaded_executable);
    pjrt_executable_release(e);
    return pjrt_return(st);
}

PJRT_Error *
pjrt_loaded_executable_destroy(PJRT_LoadedExecutable_Destroy_Args *a)
{
    destroy(a->executable);
    return NULL;
}

static void keep_assignment(PJRT_DeviceAssignmentSerialized *s)
{
    (void)s; /* the bytes are the executable's */
}

PJRT_Error *pjrt_loaded_executable_get_device_assignment(
    PJRT_LoadedExecutable_GetDeviceAssignment_Args *a)
{
    const sd_buf *b = &a->executable->assignment;

    a->serialized_bytes = b->at ? b->at : "";
    a->serialized_bytes_size = b->len;
    a->serialized_device_assignment = NULL;
    a->serialized_device_assignment_deleter = keep_assignment;
    return NULL;
}
