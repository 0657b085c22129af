/* Custom calls whose partitioning a framework does itself (JAX's
 * custom_partitioning).  As with foreign calls what is registered is the
 * process's, and stays: a compile may be using it. */
#include "pjrt.h"

typedef struct partitioner {
    struct partitioner *next;
    JAX_CustomCallPartitioner_Callbacks *by;
    char name[];
} partitioner;

static struct {
    pthread_mutex_t lock;
    partitioner *first; /* the newest */
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

PJRT_Error *
pjrt_register_custom_partitioner(PJRT_Register_Custom_Partitioner_Args *a)
{
    partitioner *p;

    if (!a->callbacks || !a->callbacks->partition)
        return pjrt_return(
            sd_error(SD_INVALID,
                     "a partitioner of custom-call %.*s without a function "
                     "that partitions",
                     (int)SD_MIN(a->name_size, (size_t)200), a->name));
    p = malloc(sizeof *p + a->name_size + 1);
    if (!p)
        return pjrt_no_memory();
    p->by = a->callbacks;
    if (a->name_size)
        memcpy(p->name, a->name, a->name_size);
    p->name[a->name_size] = 0;
    pthread_mutex_lock(&registry.lock);
    p->next = registry.first;
    registry.first = p;
    pthread_mutex_unlock(&registry.lock);
    return NULL;
}

static JAX_CustomCallPartitioner_Callbacks *find(const char *name)
{
    const partitioner *p;

    pthread_mutex_lock(&registry.lock);
    p = registry.first;
    while (p && strcmp(p->name, name) != 0)
        p = p->next;
    pthread_mutex_unlock(&registry.lock);
    return p ? p->by : NULL;
}

static bool knows(const char *target)
{
    return find(target) != NULL;
}

/* ---- one question ---- */

static JAX_CustomCallPartitioner_string string_of(sd_bytes b)
{
    return (JAX_CustomCallPartitioner_string){(const char *)b.at, b.len};
}

static sd_bytes bytes_of(JAX_CustomCallPartitioner_string s)
{
    return (sd_bytes){(const uint8_t *)s.data, s.size};
}

static JAX_CustomCallPartitioner_aval aval_of(const compile_aval *v)
{
    return (JAX_CustomCallPartitioner_aval){.shape = string_of(v->shape),
                                            .has_sharding = true,
                                            .sharding = string_of(v->sharding)};
}

static sd_status hand(const JAX_CustomCallPartitioner_Partition_Args *a,
                      sd_bytes *arg, compile_parted_fn take, void *ctx)
{
    const JAX_CustomCallPartitioner_version_and_error *h = &a->header;

    if (h->has_error)
        return pjrt_foreign(h->code, h->error_msg.data, h->error_msg.size);
    for (size_t i = 0; i < a->num_args; i++)
        arg[i] = bytes_of(a->args_sharding[i]);
    return take(ctx, &(compile_parted){.body = bytes_of(a->mlir_module),
                                       .arg = arg,
                                       .result = bytes_of(a->result_sharding)});
}

static sd_status partition(const compile_partition *c, compile_parted_fn take,
                           void *ctx)
{
    JAX_CustomCallPartitioner_Callbacks *by = find(c->target);
    size_t n = (size_t)c->narg;
    JAX_CustomCallPartitioner_aval *aval = calloc(n + 1, sizeof *aval);
    sd_bytes *arg = calloc(n + 1, sizeof *arg);
    JAX_CustomCallPartitioner_Partition_Args a = {
        .num_args = n,
        .op_args = aval,
        .op_result = aval_of(&c->result),
        .backend_config = string_of(c->config)};
    sd_status st;

    if (aval && arg) {
        for (size_t i = 0; i < n; i++)
            aval[i] = aval_of(&c->arg[i]);
        by->partition(by, &a);
        st = hand(&a, arg, take, ctx);
        if (a.header.cleanup_fn)
            a.header.cleanup_fn(a.header.data);
    } else {
        st = sd_no_memory((n + 1) * (sizeof *aval + sizeof *arg));
    }
    free(aval);
    free(arg);
    return st;
}

const compile_partitioner pjrt_partitioner = {knows, partition};
