/* The client: options in, devices out, and the road to the compiler. */
#include "pjrt.h"

/* ---- options ---- */

/* A value as text, in static or arena memory. */
static const char *option_text(sd_arena *a, const PJRT_NamedValue *v)
{
    switch (v->type) {
    case PJRT_NamedValue_kString:
        return sd_arena_str(a, v->string_value, v->value_size);
    case PJRT_NamedValue_kInt64:
        return sd_arena_fmt(a, "%" PRId64, v->int64_value);
    case PJRT_NamedValue_kBool:
        return v->bool_value ? "1" : "0";
    case PJRT_NamedValue_kFloat:
        return sd_arena_fmt(a, "%g", (double)v->float_value);
    default:
        return NULL;
    }
}

typedef struct {
    PJRT_Client *c;
    const PJRT_Client_Create_Args *a;
} creation;

/* Options are named as in the environment; a framework's own that we do not
 * know are passed over.  On the arena, so under sd_catch_oom. */
static sd_status read_options(void *ctx)
{
    const PJRT_Client_Create_Args *a = ((creation *)ctx)->a;
    PJRT_Client *c = ((creation *)ctx)->c;

    for (size_t i = 0; i < a->num_options; i++) {
        const PJRT_NamedValue *v = &a->create_options[i];
        const char *text = option_text(c->arena, v);

        if (pjrt_processes_option(c, v->name, v->name_size, text))
            continue;
        if (!text || !sd_options_set(c->arena, &c->options, v->name,
                                     v->name_size, text, strlen(text)))
            sd_log(SD_LOG_INFO, "client option '%.*s' is not known",
                   (int)v->name_size, v->name);
    }
    return NULL;
}

/* ---- creation ---- */

static void init_device(PJRT_Client *c, int i)
{
    PJRT_Device *d = &c->at[i];
    int here = i - c->first;

    d->client = c;
    d->desc = &c->topology->at[i];
    d->self = d;
    c->devices[i] = d;
    if (here < 0 || here >= c->nhere)
        return;
    d->x = xpu_client_device(c->x, here);
    for (int m = 0; m < XPU_MEM_COUNT; m++) {
        int id = i * XPU_MEM_COUNT + m;

        pjrt_memory_init(&d->memory[m], id, (xpu_memory)m, d);
        d->list[m] = c->memories[here * XPU_MEM_COUNT + m] = &d->memory[m];
    }
}

static sd_status list_devices(PJRT_Client *c, const xpu_place *world, int n)
{
    const device_desc **desc = sd_arena_try(c->arena, (size_t)n * sizeof *desc);
    sd_status st;

    c->nhere = xpu_client_count(c->x);
    c->at = calloc((size_t)n, sizeof *c->at);
    c->devices = calloc((size_t)n, sizeof *c->devices);
    c->memories = calloc((size_t)c->nhere * XPU_MEM_COUNT, sizeof *c->memories);
    if (!desc || !c->at || !c->devices || !c->memories)
        return sd_no_memory((size_t)n * sizeof *c->at);
    for (int i = 0; i < n; i++) {
        desc[i] = &world[i].desc;
        c->first += world[i].process < c->process;
    }
    if ((st = pjrt_topology_make(n, desc, &c->topology)))
        return st;
    c->n = n;
    for (int i = 0; i < n; i++) {
        c->topology->at[i].process = world[i].process;
        init_device(c, i);
    }
    return NULL;
}

static sd_status make_devices(PJRT_Client *c, const PJRT_Client_Create_Args *a)
{
    xpu_place *world = NULL;
    int n = 0;
    sd_status st = pjrt_processes_join(c, a, &world, &n);

    if (!st)
        st = list_devices(c, world, n);
    free(world);
    return st;
}

struct pjrt_mapping {
    pjrt_mapping *next;
    const void *data;
};

static void destroy(PJRT_Client *c)
{
    for (int i = 0; i < c->n; i++)
        for (int m = 0; m < XPU_MEM_COUNT && c->at[i].x; m++)
            pjrt_memory_finish(&c->at[i].memory[m]);
    for (pjrt_mapping *m = c->mapped, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    pthread_mutex_destroy(&c->lock);
    pjrt_topology_free(c->topology);
    sd_shelf_destroy(c->shelf);
    free(c->memories);
    free(c->devices);
    free(c->at);
    sd_arena_destroy(c->arena);
    free(c);
}

PJRT_Client *pjrt_client_retain(PJRT_Client *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void pjrt_client_release(PJRT_Client *c)
{
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1)
        destroy(c);
}

/* The caller's part: nothing runs any more. */
static void end(PJRT_Client *c)
{
    if (c->x)
        xpu_client_destroy(c->x);
    pjrt_client_release(c);
}

static sd_status create(PJRT_Client *c, const PJRT_Client_Create_Args *a)
{
    sd_status st;

    sd_log_init();
    sd_options_from_env(&c->options);
    if ((st = sd_catch_oom(read_options, &(creation){c, a})) ||
        (st = xpu_client_create(&c->options, &c->x)))
        return st;
    c->shelf = sd_shelf_create();
    c->memory = sd_memory_size();
    return make_devices(c, a);
}

PJRT_Error *pjrt_client_create(PJRT_Client_Create_Args *a)
{
    PJRT_Client *c = PJRT_NEW(PJRT_Client);
    sd_status st;

    if (!c)
        return pjrt_no_memory();
    atomic_init(&c->refs, 1);
    pthread_mutex_init(&c->lock, NULL);
    if (!(c->arena = sd_arena_create_try())) {
        pthread_mutex_destroy(&c->lock);
        free(c);
        return pjrt_no_memory();
    }
    if ((st = create(c, a))) {
        end(c);
        return pjrt_return(sd_note(st, "starting sundog"));
    }
    a->client = c;
    return NULL;
}

PJRT_Error *pjrt_client_destroy(PJRT_Client_Destroy_Args *a)
{
    if (a->client)
        end(a->client);
    return NULL;
}

/* ---- questions ---- */

PJRT_Device *pjrt_client_find(const PJRT_Client *c, int64_t id)
{
    return id >= 0 && id < c->n ? c->devices[id] : NULL;
}

static PJRT_Error *found(PJRT_Device *d, int id, PJRT_Device **out)
{
    if (!d)
        return pjrt_return(sd_error(SD_INVALID,
                                    "No matching device found for "
                                    "device_id %d",
                                    id));
    *out = d;
    return NULL;
}

PJRT_Error *pjrt_client_lookup_device(PJRT_Client_LookupDevice_Args *a)
{
    return found(pjrt_client_find(a->client, a->id), a->id, &a->device);
}

PJRT_Error *pjrt_client_lookup_addressable_device(
    PJRT_Client_LookupAddressableDevice_Args *a)
{
    PJRT_Client *c = a->client;
    int i = a->local_hardware_id;

    return found(i >= 0 && i < c->nhere ? c->devices[c->first + i] : NULL, i,
                 &a->addressable_device);
}

/* More places than devices are numbered round them: a nominal answer. */
PJRT_Error *pjrt_client_default_device_assignment(
    PJRT_Client_DefaultDeviceAssignment_Args *a)
{
    int64_t need = (int64_t)a->num_replicas * a->num_partitions;

    if (a->num_replicas < 1 || a->num_partitions < 1)
        return pjrt_return(
            sd_error(SD_INVALID,
                     "%d replicas x %d partitions: one of each is "
                     "the least",
                     a->num_replicas, a->num_partitions));
    if ((int64_t)SD_MIN(a->default_assignment_size, (size_t)INT32_MAX) < need)
        return pjrt_return(sd_error(
            SD_PRECONDITION,
            "PJRT_Client_DefaultDeviceAssignment: "
            "default_assignment_size %zu < num_replicas * num_partitions, "
            "%d * %d = %" PRId64,
            a->default_assignment_size, a->num_replicas, a->num_partitions,
            need));
    for (int64_t i = 0; i < need; i++)
        a->default_assignment[i] = (int)(i % a->client->n);
    return NULL;
}

/* ---- host memory that a framework will copy from often ----
 * No driver of ours needs to know: copies work either way.  What is mapped is
 * remembered, so that a mistake of the caller's is one here too. */

static pjrt_mapping **find_mapping(PJRT_Client *c, const void *data)
{
    pjrt_mapping **at = &c->mapped;

    while (*at && (*at)->data != data)
        at = &(*at)->next;
    return at;
}

PJRT_Error *pjrt_client_dma_map(PJRT_Client_DmaMap_Args *a)
{
    PJRT_Client *c = a->client;
    pjrt_mapping *m = PJRT_NEW(pjrt_mapping), **at;

    if (!m)
        return pjrt_no_memory();
    if (!a->data || !a->size) {
        free(m);
        return pjrt_return(sd_error(
            SD_INVALID, "%zu bytes at %p cannot be mapped", a->size, a->data));
    }
    m->data = a->data;
    pthread_mutex_lock(&c->lock);
    if (!*(at = find_mapping(c, a->data))) {
        *at = m;
        m = NULL;
    }
    pthread_mutex_unlock(&c->lock);
    if (!m)
        return NULL;
    free(m);
    return pjrt_return(sd_error(SD_ALREADY_EXISTS,
                                "the memory at %p is mapped already", a->data));
}

PJRT_Error *pjrt_client_dma_unmap(PJRT_Client_DmaUnmap_Args *a)
{
    PJRT_Client *c = a->client;
    pjrt_mapping *m, **at;

    pthread_mutex_lock(&c->lock);
    if ((m = *(at = find_mapping(c, a->data))))
        *at = m->next;
    pthread_mutex_unlock(&c->lock);
    if (!m)
        return pjrt_return(
            sd_error(SD_NOT_FOUND, "the memory at %p is not mapped", a->data));
    free(m);
    return NULL;
}

/* ---- compiling ---- */

static bool is_interrupted(void *mark)
{
    return xpu_interrupt_due(*(const uint32_t *)mark);
}

/* Through the compiler's library; c may be NULL. */
static sd_status compile_program(PJRT_Client *c, const device_desc *d,
                                 const PJRT_Program *program, sd_bytes options,
                                 thunk_program **out)
{
    compile_request rq = {
        .program = {(const uint8_t *)program->code, program->code_size},
        .format = program->format,
        .format_len = program->format_size,
        .options = options,
        .device = d};
    compile_services sv = {0};
    uint32_t mark;
    compile_fn fn = c ? atomic_load(&c->compile) : NULL;
    sd_status st;

    if (program->struct_size < PJRT_Program_LEAST)
        return pjrt_short_struct("PJRT_Program", program->struct_size,
                                 PJRT_Program_LEAST);
    if (!fn) {
        if ((st = pjrt_compiler_open(&fn)))
            return st;
        if (c)
            atomic_store(&c->compile, fn);
    }
    if (c) {
        sv.pool = xpu_client_pool(c->x);
        sv.shelf = c->shelf;
        sv.memory = c->memory;
        sv.env = &c->options;
        sv.partitioner = &pjrt_partitioner;
    }
    if (c && !sd_opt_bool(&c->options, SD_OPT_INTERRUPTS))
        return fn(&rq, &sv, out);
    mark = xpu_interrupt_watch();
    sv.stop = (sd_stop){is_interrupted, &mark};
    st = fn(&rq, &sv, out);
    xpu_interrupt_unwatch();
    return st;
}

/* Devices of one client may differ, but those that run one program may not;
 * of other processes each compiles for its own. */
static sd_status one_kind(PJRT_Client *c, const pjrt_compile_options *o,
                          const device_desc **out)
{
    const device_desc *first = NULL;

    for (int i = 0; i < (int64_t)o->nreplica * o->npartition; i++) {
        int id = o->device ? o->device[i] : i;
        PJRT_Device *d = pjrt_client_find(c, id);

        if (!d)
            return sd_error(SD_INVALID,
                            "compiling for device %d: there are 0 to %d", id,
                            c->n - 1);
        if (!d->x)
            continue;
        if (!first)
            first = &d->desc->desc;
        if (memcmp(first, &d->desc->desc, sizeof *first))
            return sd_error(SD_UNIMPLEMENTED,
                            "a program over devices that differ: %s, and %s as "
                            "device %d",
                            first->name, d->desc->desc.name, id);
    }
    *out = first ? first : &c->devices[c->first]->desc->desc;
    return NULL;
}

static sd_status target_of(PJRT_Client *c, sd_bytes options,
                           const device_desc **out)
{
    pjrt_compile_options o;
    sd_status st = pjrt_options_read(options, &o);

    if (st)
        return sd_note(st, "PJRT_Client_Compile: failed to deserialize "
                           "CompileOptionsProto");
    st = one_kind(c, &o, out);
    pjrt_options_finish(&o);
    return st;
}

PJRT_Error *pjrt_client_compile(PJRT_Client_Compile_Args *a)
{
    sd_bytes options = {(const uint8_t *)a->compile_options,
                        a->compile_options_size};
    const device_desc *d = NULL;
    thunk_program *p;
    PJRT_Executable *e;
    sd_status st;

    if ((st = target_of(a->client, options, &d)) ||
        (st = compile_program(a->client, d, a->program, options, &p)) ||
        (st = pjrt_executable_make(p, options, &e)))
        return pjrt_return(st);
    st = pjrt_load(a->client, e, options, &a->executable);
    pjrt_executable_release(e);
    return pjrt_return(st);
}

PJRT_Error *pjrt_client_load(PJRT_Client_Load_Args *a)
{
    sd_bytes options = {(const uint8_t *)a->compile_options,
                        a->compile_options_size};

    return pjrt_return(
        pjrt_load(a->client, a->executable, options, &a->loaded_executable));
}

/* Ahead of time: for a device that need not be there. */
PJRT_Error *pjrt_compile(PJRT_Compile_Args *a)
{
    sd_bytes options = {(const uint8_t *)a->compile_options,
                        a->compile_options_size};
    thunk_program *p;
    sd_status st = compile_program(a->client, &a->topology->at[0].desc,
                                   a->program, options, &p);

    if (!st)
        st = pjrt_executable_make(p, options, &a->executable);
    return pjrt_return(st);
}
