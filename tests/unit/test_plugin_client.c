/* Clients, devices, memories. */
#include "plugin_test.h"

#include <pthread.h>

static bool names(const PJRT_NamedValue *v, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].name_size == strlen(name) &&
            !memcmp(v[i].name, name, v[i].name_size))
            return true;
    return false;
}

static void the_plugin_says_what_it_reads(void **state)
{
    (void)state;
    DO(a, Plugin_Attributes, .extension_start = NULL);
    assert_true(names(a.attributes, a.num_attributes, "xla_version"));
    assert_true(
        names(a.attributes, a.num_attributes, "stablehlo_minimum_version"));
    assert_string_equal(a.attributes[1].name, "stablehlo_current_version");
    assert_int_equal(a.attributes[1].value_size, 3);
    assert_int_equal(a.attributes[1].int64_array_value[0], 1);
    assert_int_equal(a.attributes[1].int64_array_value[1], 20);
}

static void the_client_names_its_things(void **state)
{
    (void)state;
    DO(a, Client_PlatformName, .client = client);
    assert_int_equal(a.platform_name_size, 3);
    assert_memory_equal(a.platform_name, "xpu", 3);
    DO(v, Client_PlatformVersion, .client = client);
    assert_memory_equal(v.platform_version, "sundog " SD_VERSION " build ",
                        strlen("sundog " SD_VERSION " build "));
    assert_null(strstr(v.platform_version, "cuda"));
    DO(p, Client_ProcessIndex, .client = client);
    assert_int_equal(p.process_index, 0);
    DO(t, Client_TopologyDescription, .client = client);
    DO(n, TopologyDescription_PlatformName, .topology = t.topology);
    assert_memory_equal(n.platform_name, "xpu", n.platform_name_size);
}

static void devices_are_found_by_their_numbers(void **state)
{
    (void)state;
    DO(d, Client_Devices, .client = client);
    DO(a, Client_AddressableDevices, .client = client);
    assert_int_equal(d.num_devices, 2);
    assert_int_equal(a.num_addressable_devices, 2);
    for (int i = 0; i < 2; i++) {
        DO(x, Client_LookupDevice, .client = client, .id = i);
        DO(y, Client_LookupAddressableDevice, .client = client,
           .local_hardware_id = i);
        assert_ptr_equal(x.device, d.devices[i]);
        assert_ptr_equal(y.addressable_device, d.devices[i]);
        assert_ptr_equal(a.addressable_devices[i], d.devices[i]);
    }
    BAD(INVALID_ARGUMENT, "No matching device found for device_id -1",
        Client_LookupDevice, .client = client, .id = -1);
    BAD(INVALID_ARGUMENT, "No matching device found for device_id 2",
        Client_LookupDevice, .client = client, .id = 2);
    BAD(INVALID_ARGUMENT, "No matching device found for device_id 7",
        Client_LookupAddressableDevice, .client = client,
        .local_hardware_id = 7);
}

static void devices_describe_themselves(void **state)
{
    (void)state;
    DO(g, Device_GetDescription, .device = device);
    PJRT_DeviceDescription *d = g.device_description;
    DO(id, DeviceDescription_Id, .device_description = d);
    DO(process, DeviceDescription_ProcessIndex, .device_description = d);
    DO(kind, DeviceDescription_Kind, .device_description = d);
    DO(text, DeviceDescription_ToString, .device_description = d);
    DO(debug, DeviceDescription_DebugString, .device_description = d);
    DO(attr, DeviceDescription_Attributes, .device_description = d);
    DO(own, Device_GetAttributes, .device = device);
    DO(here, Device_IsAddressable, .device = device);
    DO(local, Device_LocalHardwareId, .device = device);

    assert_int_equal(id.id, 0);
    assert_int_equal(process.process_index, 0);
    assert_memory_equal(kind.device_kind, "host:v", 6);
    assert_string_equal(text.to_string, "xpu(id=0)");
    assert_int_equal(text.to_string_size, 9);
    assert_memory_equal(debug.debug_string, "xpu(id=0, host:v", 16);
    assert_true(names(attr.attributes, attr.num_attributes, "compute_units"));
    assert_true(names(own.attributes, own.num_attributes, "driver"));
    own.attributes_deleter(own.device_attributes);
    assert_true(here.is_addressable);
    assert_int_equal(local.local_hardware_id, 0);
}

static void memories_know_their_devices(void **state)
{
    static const char *const kind[] = {"device", "pinned_host",
                                       "unpinned_host"};

    (void)state;
    DO(all, Client_AddressableMemories, .client = client);
    assert_int_equal(all.num_addressable_memories, 6);
    DO(own, Device_AddressableMemories, .device = device);
    assert_int_equal(own.num_memories, 3);
    DO(first, Device_DefaultMemory, .device = device);
    assert_ptr_equal(first.memory, own.memories[0]);
    for (int i = 0; i < 3; i++) {
        PJRT_Memory *m = own.memories[i];

        assert_ptr_equal(m, all.addressable_memories[i]);
        DO(k, Memory_Kind, .memory = m);
        assert_int_equal(k.kind_size, strlen(kind[i]));
        assert_memory_equal(k.kind, kind[i], k.kind_size);
        DO(id, Memory_Id, .memory = m);
        assert_int_equal(id.id, i);
        DO(kid, Memory_Kind_Id, .memory = m);
        assert_int_equal(kid.kind_id, i + 1);
        DO(by, Memory_AddressableByDevices, .memory = m);
        assert_int_equal(by.num_devices, 1);
        assert_ptr_equal(by.devices[0], device);
        DO(text, Memory_ToString, .memory = m);
        assert_memory_equal(text.to_string, kind[i], strlen(kind[i]));
        DO(debug, Memory_DebugString, .memory = m);
        assert_non_null(strstr(debug.debug_string, "xpu(id=0)"));
    }
}

static int dropped;

static void drop(void *data)
{
    dropped += *(int *)data;
}

static void memories_carry_user_data(void **state)
{
    static int key, one = 1;
    const PJRT_Memory_FunctionTable *t = *(void **)memory;

    (void)state;
    assert_int_equal(t->struct_size, PJRT_Memory_FunctionTable_STRUCT_SIZE);
    assert_null(t->get_user_data(memory, &one));
    t->set_user_data(memory, &key, &one, drop);
    assert_ptr_equal(t->get_user_data(memory, &key), &one);
    assert_null(t->get_user_data(pinned, &key));
    t->set_user_data(memory, &key, &dropped, NULL);
    assert_ptr_equal(t->get_user_data(memory, &key), &dropped);
}

static void assignments_are_nominal(void **state)
{
    int list[8] = {-1, -1, -1, -1, -1, -1, -1, -1};

    (void)state;
    BAD(FAILED_PRECONDITION, "4 * 2 = 8", Client_DefaultDeviceAssignment,
        .client = client, .default_assignment = list,
        .default_assignment_size = 7, .num_replicas = 4, .num_partitions = 2);
    BAD(INVALID_ARGUMENT, "0 replicas", Client_DefaultDeviceAssignment,
        .client = client, .default_assignment = list,
        .default_assignment_size = 8, .num_partitions = 2);
    assert_int_equal(list[0], -1);
    DO(a, Client_DefaultDeviceAssignment, .client = client,
       .default_assignment = list, .default_assignment_size = 8,
       .num_replicas = 4, .num_partitions = 2);
    for (int i = 0; i < 8; i++)
        assert_int_equal(list[i], i % 2);
}

static void memory_is_counted(void **state)
{
    float x[64] = {0};
    PJRT_Buffer *b;

    (void)state;
    DO(before, Device_MemoryStats, .device = device);
    b = put_f32(x, 64);
    DO(with, Device_MemoryStats, .device = device);
    destroy(b);
    DO(after, Device_MemoryStats, .device = device);
    assert_int_equal(with.bytes_in_use - before.bytes_in_use, 256);
    assert_int_equal(after.bytes_in_use, before.bytes_in_use);
    assert_true(with.bytes_limit_is_set && with.bytes_limit > 0);
    assert_true(with.num_allocs_is_set);
    assert_int_equal(with.num_allocs - before.num_allocs, 1);
    assert_true(with.peak_bytes_in_use >= with.bytes_in_use);
    assert_true(with.pool_bytes_is_set);
    assert_true(with.pool_bytes >= with.bytes_in_use);
    assert_true(with.peak_pool_bytes >= with.pool_bytes);
    assert_true(with.largest_free_block_bytes >= 256);
    assert_true(with.largest_free_block_bytes <= with.bytes_limit);
    assert_true(with.bytes_reserved_is_set && !with.bytes_reserved);
    assert_false(with.bytes_reservable_limit_is_set);
    if (mode == SIZE_NOW || mode == SIZE_LONG)
        assert_false(with.peak_allocated_bytes_is_set);
    DO(c, Device_ClearMemoryStats, .device = device);
    DO(d, Device_ClearMemoryStats, .device = device);
    DO(fresh, Device_MemoryStats, .device = device);
    assert_int_equal(fresh.peak_bytes_in_use, fresh.bytes_in_use);
    assert_int_equal(fresh.num_allocs, 0);
    assert_int_equal(fresh.largest_alloc_size, 0);
}

/* jaxlib 0.10.2's struct ends at 185: what lies behind is its stack. */
static void older_callers_are_not_written_past(void **state)
{
    union {
        PJRT_Device_MemoryStats_Args a;
        uint8_t bytes[sizeof(PJRT_Device_MemoryStats_Args) + 64];
    } u;

    (void)state;
    memset(&u, 0xa5, sizeof u);
    u.a.struct_size = 185;
    u.a.extension_start = NULL;
    u.a.device = device;
    ok(plugin->PJRT_Device_MemoryStats(&u.a), "MemoryStats");
    for (size_t i = 185; i < sizeof u; i++)
        assert_int_equal(u.bytes[i], 0xa5);
    assert_true(u.a.bytes_limit_is_set);
}

static void mapped_memory_is_remembered(void **state)
{
    static char room[4096];

    (void)state;
    DO(a, Client_DmaMap, .client = client, .data = room, .size = sizeof room);
    BAD(ALREADY_EXISTS, "is mapped already", Client_DmaMap, .client = client,
        .data = room, .size = sizeof room);
    BAD(INVALID_ARGUMENT, "0 bytes", Client_DmaMap, .client = client,
        .data = room + 1);
    DO(b, Client_DmaUnmap, .client = client, .data = room);
    BAD(NOT_FOUND, "is not mapped", Client_DmaUnmap, .client = client,
        .data = room);
    DO(again, Client_DmaMap, .client = client, .data = room, .size = 1);
}

static PJRT_NamedValue option(const char *name)
{
    return (PJRT_NamedValue){.struct_size = PJRT_NamedValue_STRUCT_SIZE,
                             .name = name,
                             .name_size = strlen(name)};
}

static void options_reach_the_client(void **state)
{
    PJRT_NamedValue o[4] = {option("SUNDOG_HOST_DEVICES"), option("of_others"),
                            option("num_nodes"), option("SUNDOG_DEVICE")};

    (void)state;
    o[0].type = PJRT_NamedValue_kInt64;
    o[0].int64_value = 3;
    o[1].type = PJRT_NamedValue_kFloat;
    o[2].type = PJRT_NamedValue_kString;
    o[2].string_value = "1";
    o[2].value_size = 1;
    DO(c, Client_Create, .create_options = o, .num_options = 3);
    DO(d, Client_Devices, .client = c.client);
    assert_int_equal(d.num_devices, 3);
    DO(x, Client_Destroy, .client = c.client);
    o[2].string_value = "2";
    BAD(INVALID_ARGUMENT, "2 processes, and no key-value store", Client_Create,
        .create_options = o, .num_options = 3);
    o[1] = option("node_id");
    o[1].type = PJRT_NamedValue_kInt64;
    o[1].int64_value = 5;
    BAD(INVALID_ARGUMENT, "node_id 5 of num_nodes 2", Client_Create,
        .create_options = o, .num_options = 3);
    o[3].type = PJRT_NamedValue_kString;
    o[3].string_value = "moon";
    o[3].value_size = 4;
    BAD(INVALID_ARGUMENT, "SUNDOG_DEVICE=moon", Client_Create,
        .create_options = o + 3, .num_options = 1);
}

/* ---- two processes, each a client here ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t news;
    char *value[2];
    size_t size[2];
    int nfreed;
} store = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

static void free_value(char *value)
{
    store.nfreed++;
    free(value);
}

static PJRT_Error *store_get(PJRT_KeyValueGetCallback_Args *a)
{
    int i = a->key[a->key_size - 1] - '0';

    if (a->user_arg != &store)
        return (*a->callback_error)(PJRT_Error_Code_DATA_LOSS, "no store", 8);
    pthread_mutex_lock(&store.lock);
    while (!store.value[i])
        pthread_cond_wait(&store.news, &store.lock);
    a->value = malloc(store.size[i]);
    memcpy(a->value, store.value[i], store.size[i]);
    a->value_size = store.size[i];
    a->value_deleter_callback = free_value;
    pthread_mutex_unlock(&store.lock);
    return NULL;
}

static PJRT_Error *store_put(PJRT_KeyValuePutCallback_Args *a)
{
    int i = a->key[a->key_size - 1] - '0';

    if (a->user_arg != &store)
        return (*a->callback_error)(PJRT_Error_Code_DATA_LOSS, "no store", 8);
    pthread_mutex_lock(&store.lock);
    store.value[i] = malloc(a->value_size);
    memcpy(store.value[i], a->value, a->value_size);
    store.size[i] = a->value_size;
    pthread_cond_broadcast(&store.news);
    pthread_mutex_unlock(&store.lock);
    return NULL;
}

typedef struct {
    PJRT_NamedValue option[2];
    PJRT_Client_Create_Args a;
    PJRT_Error *e;
} node;

static void *create_node(void *arg)
{
    node *n = arg;

    n->e = plugin->PJRT_Client_Create(&n->a);
    return NULL;
}

static void node_init(node *n, int me, void *stored)
{
    n->option[0] = option("node_id");
    n->option[1] = option("num_nodes");
    for (int i = 0; i < 2; i++)
        n->option[i].type = PJRT_NamedValue_kInt64;
    n->option[0].int64_value = me;
    n->option[1].int64_value = 2;
    n->a = (PJRT_Client_Create_Args){.struct_size =
                                         PJRT_Client_Create_Args_STRUCT_SIZE,
                                     .create_options = n->option,
                                     .num_options = 2,
                                     .kv_get_callback = store_get,
                                     .kv_get_user_arg = stored,
                                     .kv_put_callback = store_put,
                                     .kv_put_user_arg = stored};
}

static void another_process_has_it(PJRT_Client *c, PJRT_Device *d)
{
    const char *says = "xpu(id=2) is process 1's, and this is process 0";
    float one = 1;

    DO(a, Device_IsAddressable, .device = d);
    assert_false(a.is_addressable);
    DO(m, Device_AddressableMemories, .device = d);
    assert_int_equal(m.num_memories, 0);
    DO(l, Device_LocalHardwareId, .device = d);
    assert_int_equal(l.local_hardware_id, -1);
    BAD(INVALID_ARGUMENT, says, Device_DefaultMemory, .device = d);
    BAD(INVALID_ARGUMENT, says, Device_MemoryStats, .device = d);
    BAD(INVALID_ARGUMENT, says, Device_ClearMemoryStats, .device = d);
    BAD(INVALID_ARGUMENT, says, Device_PoisonExecution, .device = d,
        .launch_id = 1, .error_code = PJRT_Error_Code_ABORTED);
    BAD(INVALID_ARGUMENT, says, Client_BufferFromHostBuffer, .client = c,
        .device = d, .data = &one, .type = PJRT_Buffer_Type_F32);
}

static void check_world(PJRT_Client *c, int me)
{
    DO(all, Client_Devices, .client = c);
    DO(here, Client_AddressableDevices, .client = c);
    DO(memories, Client_AddressableMemories, .client = c);
    DO(p, Client_ProcessIndex, .client = c);
    DO(local, Client_LookupAddressableDevice, .client = c,
       .local_hardware_id = 1);

    assert_int_equal(p.process_index, me);
    assert_int_equal(all.num_devices, 4);
    assert_int_equal(here.num_addressable_devices, 2);
    assert_int_equal(memories.num_addressable_memories, 6);
    assert_ptr_equal(here.addressable_devices[0], all.devices[2 * me]);
    assert_ptr_equal(local.addressable_device, all.devices[2 * me + 1]);
    BAD(INVALID_ARGUMENT, "No matching device", Client_LookupAddressableDevice,
        .client = c, .local_hardware_id = 2);
    for (int i = 0; i < 4; i++) {
        DO(d, Device_GetDescription, .device = all.devices[i]);
        DO(id, DeviceDescription_Id,
           .device_description = d.device_description);
        DO(of, DeviceDescription_ProcessIndex,
           .device_description = d.device_description);
        assert_int_equal(id.id, i);
        assert_int_equal(of.process_index, i / 2);
    }
    if (!me)
        another_process_has_it(c, all.devices[2]);
}

/* ---- arrays between them ---- */

#define MOVE(v, name, ...) \
    PJRT_Transfers_PJRT_Client_##name##_Args v = { \
        .struct_size = PJRT_Transfers_PJRT_Client_##name##_Args_STRUCT_SIZE, \
        __VA_ARGS__}

static PJRT_Device *device_of(PJRT_Client *c, int id)
{
    DO(d, Client_LookupDevice, .client = c, .id = id);
    return d.device;
}

static PJRT_Buffer *pair_on(PJRT_Client *c, int id, float first)
{
    static const int64_t dim = 2;
    float data[2] = {first, first + 1};

    DO(b, Client_BufferFromHostBuffer, .client = c, .device = device_of(c, id),
       .data = data, .type = PJRT_Buffer_Type_F32, .dims = &dim, .num_dims = 1);
    await(b.done_with_host_buffer);
    return b.buffer;
}

static PJRT_Error *send_pair(PJRT_Client *c, PJRT_Buffer *b, int32_t to,
                             int64_t key, PJRT_Event **sent)
{
    const PJRT_CrossHostTransfers_Extension *x =
        plugin_extension(PJRT_Extension_Type_CrossHostTransfers);
    MOVE(a, CrossHostSendBuffers, .client = c, .num_buffers = b != NULL,
         .buffers = &b, .dst_global_device_ids = &to, .transfer_keys = &key,
         .send_events = sent);

    return x->PJRT_Transfers_PJRT_Client_CrossHostSendBuffers(&a);
}

/* n floats, or none at all where n < 0. */
static PJRT_Error *receive_floats(PJRT_Client *c, int here, int32_t from,
                                  int64_t n, int64_t key, PJRT_Buffer **out)
{
    const PJRT_CrossHostTransfers_Extension *x =
        plugin_extension(PJRT_Extension_Type_CrossHostTransfers);
    PJRT_Buffer_Type type = PJRT_Buffer_Type_F32;
    PJRT_Buffer_MemoryLayout *layout = NULL;
    const int64_t *dims = &n;
    size_t rank = 1;
    MOVE(a, CrossHostReceiveBuffers, .client = c, .num_shapes = n >= 0,
         .shape_num_dims = &rank, .num_dims = &dims, .element_types = &type,
         .layouts = &layout, .device = device_of(c, here),
         .src_global_device_ids = &from, .transfer_keys = &key, .buffers = out);

    return x->PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers(&a);
}

/* What another process would send lies row-major. */
static void columns_do_not_come(PJRT_Client *c)
{
    const PJRT_CrossHostTransfers_Extension *x =
        plugin_extension(PJRT_Extension_Type_CrossHostTransfers);
    static const int64_t dim[] = {2, 3}, order[] = {0, 1}, *dims = dim;
    PJRT_Buffer_MemoryLayout columns = tiled(order, 2), *layout = &columns;
    PJRT_Buffer_Type type = PJRT_Buffer_Type_F32;
    size_t rank = 2;
    int32_t from = 1;
    int64_t key = 14;
    PJRT_Buffer *got;
    MOVE(a, CrossHostReceiveBuffers, .client = c, .num_shapes = 1,
         .shape_num_dims = &rank, .num_dims = &dims, .element_types = &type,
         .layouts = &layout, .device = device_of(c, 2),
         .src_global_device_ids = &from, .transfer_keys = &key,
         .buffers = &got);

    wrong(x->PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers(&a),
          PJRT_Error_Code_INVALID_ARGUMENT, "lies row-major");
}

static void pair_is(PJRT_Buffer *b, float first)
{
    float data[2] = {0};

    DO(h, Buffer_ToHostBuffer, .src = b, .dst = data, .dst_size = sizeof data);
    await(h.event);
    assert_true(data[0] == first && data[1] == first + 1);
    destroy(b);
}

static void fails_to_come(PJRT_Buffer *b, PJRT_Error_Code code,
                          const char *says)
{
    DO(r, Buffer_ReadyEvent, .buffer = b);
    await_error(r.event, code, says);
    destroy(b);
}

/* Whoever calls first, by number, and such as do not fit. */
static void arrays_go_over(PJRT_Client *zero, PJRT_Client *one)
{
    PJRT_Buffer *got[3], *had = pair_on(zero, 1, 5);
    PJRT_Event *sent[3];

    ok(receive_floats(one, 3, 1, 2, 7, &got[0]), "before it is sent");
    ok(send_pair(zero, had, 2, 8, &sent[0]), "before it is asked for");
    ok(send_pair(zero, had, 3, 7, &sent[1]), "another");
    await(sent[0]);
    await(sent[1]);
    ok(receive_floats(one, 2, 1, 2, 8, &got[1]), "after it was sent");
    pair_is(got[0], 5);
    pair_is(got[1], 5);
    ok(send_pair(zero, had, 2, 9, &sent[0]), "too short");
    await(sent[0]);
    ok(receive_floats(one, 2, 1, 3, 9, &got[0]), "too long");
    fails_to_come(got[0], PJRT_Error_Code_FAILED_PRECONDITION,
                  "process 0 of 2 sends an array of 8 bytes to device 2, as "
                  "move 9; here device 2 waits for 12 bytes");
    DO(gone, Buffer_Delete, .buffer = had);
    ok(send_pair(zero, had, 2, 10, &sent[0]), "deleted");
    await_error(sent[0], PJRT_Error_Code_INVALID_ARGUMENT, "a deleted array");
    ok(receive_floats(one, 2, 1, 2, 10, &got[0]), "deleted");
    fails_to_come(got[0], PJRT_Error_Code_INVALID_ARGUMENT,
                  "process 0 of 2: sending a deleted array");
    ok(send_pair(zero, NULL, 0, 0, sent), "nothing");
    ok(receive_floats(one, 2, 1, -1, 0, got), "nothing");
    wrong(send_pair(zero, had, 0, 11, sent), PJRT_Error_Code_INVALID_ARGUMENT,
          "array 0: device 0 is this process's own");
    wrong(send_pair(zero, had, 4, 11, sent), PJRT_Error_Code_INVALID_ARGUMENT,
          "array 0: there is no device 4");
    wrong(receive_floats(one, 0, 1, 2, 11, got),
          PJRT_Error_Code_INVALID_ARGUMENT, "xpu(id=0) is process 0's");
    destroy(had);
}

static int ndestroyed, ndone;

static void destroy_descriptor(char **at, size_t *size)
{
    (void)at;
    (void)size;
    ndestroyed++;
}

static void not_sent(PJRT_Error *e, bool enqueued, void *arg)
{
    DO(code, Error_GetCode, .error = e);
    assert_int_equal(code.code, PJRT_Error_Code_UNIMPLEMENTED);
    assert_false(enqueued);
    assert_ptr_equal(arg, &ndone);
    ndone++;
}

/* The older way is refused, and leaves nothing behind. */
static void descriptors_are_refused(PJRT_Client *c)
{
    const PJRT_CrossHostTransfers_Extension *x =
        plugin_extension(PJRT_Extension_Type_CrossHostTransfers);
    PJRT_Buffer *b = pair_on(c, 0, 1);
    DO(written, Event_Create);
    MOVE(m, MakeCrossHostReceiveBuffers, .client = c,
         .device = device_of(c, 0));
    PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args a = {
        .struct_size = sizeof a,
        .buffer = b,
        .event = written.event,
        .on_done = {.user_arg = &ndone, .on_done = not_sent},
        .descriptor_destructor = destroy_descriptor};

    wrong(x->PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers(&m),
          PJRT_Error_Code_UNIMPLEMENTED, "MakeCrossHostReceiveBuffers");
    ndestroyed = ndone = 0;
    DO(set, Event_Set, .event = written.event);
    x->PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice(&a);
    assert_int_equal(ndestroyed, 1);
    a.event = NULL;
    x->PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice(&a);
    assert_int_equal(ndestroyed, 2);
    assert_int_equal(ndone, 2);
    destroy(b);
}

static void processes_find_each_other(void **state)
{
    PJRT_Buffer *got[2];
    pthread_t t[2];
    node n[2];

    (void)state;
    node_init(&n[0], 0, NULL);
    wrong(plugin->PJRT_Client_Create(&n[0].a), PJRT_Error_Code_DATA_LOSS,
          "telling the other processes: no store");
    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i, &store);
        assert_int_equal(pthread_create(&t[i], NULL, create_node, &n[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < 2; i++) {
        ok(n[i].e, "a node");
        check_world(n[i].a.client, i);
    }
    arrays_go_over(n[0].a.client, n[1].a.client);
    columns_do_not_come(n[1].a.client);
    descriptors_are_refused(n[0].a.client);
    ok(receive_floats(n[0].a.client, 0, 2, 2, 12, &got[0]), "of who ends");
    ok(receive_floats(n[1].a.client, 2, 0, 2, 13, &got[1]), "of who ended");
    for (int i = 0; i < 2; i++) {
        DO(d, Client_Destroy, .client = n[i].a.client);
        fails_to_come(
            got[i], i ? PJRT_Error_Code_UNAVAILABLE : PJRT_Error_Code_CANCELLED,
            i ? "process 0 of 2 is gone"
              : "the client was destroyed before the array came");
        free(store.value[i]);
        store.value[i] = NULL;
    }
    assert_int_equal(store.nfreed, 2);
    store.nfreed = 0;
}

static void news_of_processes_are_taken(void **state)
{
    PJRT_ProcessInfo info = {.struct_size = PJRT_ProcessInfo_STRUCT_SIZE};

    (void)state;
    DO(a, Client_UpdateGlobalProcessInfo, .client = client,
       .process_infos = &info, .num_process_infos = 1);
    DO(b, Client_UpdateGlobalProcessInfo, .client = client,
       .num_process_infos = 0);
}

static void tracking_events_come_and_go(void **state)
{
    (void)state;
    DO(a, Device_CreateAsyncTrackingEvent, .device = device,
       .description = "load", .description_size = 4);
    DO(b, Device_CreateAsyncTrackingEvent, .device = device);
    assert_ptr_not_equal(a.event, b.event);
    DO(c, AsyncTrackingEvent_Destroy, .event = a.event);
    DO(d, AsyncTrackingEvent_Destroy, .event = b.event);
}

static void errors_work_by_their_own_table(void **state)
{
    const char *text;
    size_t n;

    (void)state;
    PJRT_Client_LookupDevice_Args a = {
        .struct_size = PJRT_Client_LookupDevice_Args_STRUCT_SIZE,
        .client = client,
        .id = 77};
    PJRT_Error *e = api->PJRT_Client_LookupDevice(&a);
    const PJRT_Error_FunctionTable *t = *(void **)e;

    assert_int_equal(t->struct_size, 56);
    assert_int_equal(t->get_code(e), PJRT_Error_Code_INVALID_ARGUMENT);
    t->message(e, &text, &n);
    assert_string_equal(text, "No matching device found for device_id 77");
    DO(p, Error_ForEachPayload, .error = e);
    t->for_each_payload(e, NULL, NULL);
    t->destroy(e);
}

TESTS(client, T(the_plugin_says_what_it_reads), T(the_client_names_its_things),
      T(devices_are_found_by_their_numbers), T(devices_describe_themselves),
      T(memories_know_their_devices), T(memories_carry_user_data),
      T(assignments_are_nominal), T(memory_is_counted),
      T(older_callers_are_not_written_past), T(mapped_memory_is_remembered),
      T(options_reach_the_client), T(processes_find_each_other),
      T(news_of_processes_are_taken), T(tracking_events_come_and_go),
      T(errors_work_by_their_own_table))
