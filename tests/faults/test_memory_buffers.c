/* What a framework does with buffers, descriptions and the like, where memory
 * runs out: pieces, copies, views, aliases, donation, topologies, layouts. */
#include "memory_test.h"

static const int64_t four[] = {4}, thousand[] = {1024}, two_by_two[] = {2, 2};
static const int64_t columns[] = {0, 1};

static PJRT_Error *put_four(PJRT_Buffer **out)
{
    return put(SD_F32, 1, four, numbers,
               PJRT_HostBufferSemantics_kImmutableOnlyDuringCall, out);
}

PJRT_Error *put_thousand(PJRT_Buffer **out)
{
    return put(SD_F32, 1, thousand, numbers,
               PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes, out);
}

static PJRT_Buffer_MemoryLayout by_columns(void)
{
    return (PJRT_Buffer_MemoryLayout){
        .struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE,
        .type = PJRT_Buffer_MemoryLayout_Type_Tiled,
        .tiled = {.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE,
                  .minor_to_major = columns,
                  .minor_to_major_size = 2}};
}

/* ---- transfers ---- */

static PJRT_Error *put_by_columns(PJRT_Buffer **out)
{
    static const int64_t strides[] = {16, 4};
    PJRT_Buffer_MemoryLayout layout = by_columns();
    ARGS(a, Client_BufferFromHostBuffer, .client = client, .data = numbers,
         .type = PJRT_Buffer_Type_F32, .dims = two_by_two, .num_dims = 2,
         .byte_strides = strides, .num_byte_strides = 2, .device = device,
         .device_layout = &layout);
    PJRT_Error *e = api->PJRT_Client_BufferFromHostBuffer(&a);

    if (e)
        return e;
    keep_buffer(*out = a.buffer);
    return await(a.done_with_host_buffer);
}

static PJRT_Error *get_by_columns(PJRT_Buffer *b, uint64_t *sum)
{
    PJRT_Buffer_MemoryLayout layout = by_columns();
    float to[4];
    ARGS(a, Buffer_ToHostBuffer, .src = b, .host_layout = &layout, .dst = to,
         .dst_size = sizeof to);
    PJRT_Error *e;

    if ((e = api->PJRT_Buffer_ToHostBuffer(&a)) || (e = await(a.event)))
        return e;
    *sum = sd_hash(to, sizeof to, *sum);
    return NULL;
}

static PJRT_Error *get_raw(PJRT_Buffer *b, uint64_t *sum)
{
    float to[2][2] = {{0}};
    ARGS(a, Buffer_CopyRawToHost, .buffer = b, .dst = to[0], .offset = 4,
         .transfer_size = 8);
    ARGS(f, Buffer_CopyRawToHostFuture, .buffer = b, .transfer_size = 8);
    PJRT_Buffer_CopyRawToHostFuture_Callback_Args where = {
        .struct_size =
            PJRT_Buffer_CopyRawToHostFuture_Callback_Args_STRUCT_SIZE,
        .dst = to[1]};
    PJRT_Error *e;

    if ((e = api->PJRT_Buffer_CopyRawToHost(&a)) || (e = await(a.event)) ||
        (e = api->PJRT_Buffer_CopyRawToHostFuture(&f)))
        return e;
    where.callback_data = f.callback_data;
    f.future_ready_callback(&where);
    if ((e = await(f.event)))
        return e;
    *sum = sd_hash(to, sizeof to, *sum);
    return NULL;
}

static PJRT_Error *layouts_are_kept(const void *ctx, uint64_t *sum)
{
    PJRT_Buffer *b;
    PJRT_Error *e;

    (void)ctx;
    if ((e = put_by_columns(&b)) || (e = get(b, 16, sum)) ||
        (e = get_by_columns(b, sum)))
        return e;
    return get_raw(b, sum);
}

/* So large that threads move it. */
static PJRT_Error *large_arrays_move(const void *ctx, uint64_t *sum)
{
    static const float data[1 << 18] = {1, 2};
    static const int64_t n[] = {1 << 18};
    ARGS(there, Buffer_CopyToDevice, .buffer = NULL, .dst_device = last);
    PJRT_Buffer *b;
    PJRT_Error *e;

    (void)ctx;
    if ((e = put(SD_F32, 1, n, data,
                 PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes,
                 &b)))
        return e;
    there.buffer = b;
    if ((e = api->PJRT_Buffer_CopyToDevice(&there)))
        return e;
    keep_buffer(there.dst_buffer);
    return get(there.dst_buffer, sizeof data, sum);
}

static PJRT_Error *buffers_are_copied(const void *ctx, uint64_t *sum)
{
    ARGS(there, Buffer_CopyToDevice, .buffer = NULL, .dst_device = last);
    ARGS(pinned, Buffer_CopyToMemory, .buffer = NULL,
         .dst_memory = &device->memory[XPU_MEM_PINNED_HOST]);
    PJRT_Buffer *b;
    PJRT_Error *e;

    (void)ctx;
    if ((e = put_four(&b)))
        return e;
    there.buffer = b;
    if ((e = api->PJRT_Buffer_CopyToDevice(&there)))
        return e;
    keep_buffer(pinned.buffer = there.dst_buffer);
    if ((e = api->PJRT_Buffer_CopyToMemory(&pinned)))
        return e;
    keep_buffer(pinned.dst_buffer);
    return get(pinned.dst_buffer, 16, sum);
}

/* ---- pieces ---- */

static void end_transfers(void *t)
{
    ARGS(a, AsyncHostToDeviceTransferManager_Destroy, .transfer_manager = t);

    assert_null(api->PJRT_AsyncHostToDeviceTransferManager_Destroy(&a));
}

static PJRT_Error *begin_transfers(PJRT_AsyncHostToDeviceTransferManager **t,
                                   PJRT_Buffer **out)
{
    PJRT_ShapeSpec spec[2] = {{.struct_size = PJRT_ShapeSpec_STRUCT_SIZE,
                               .dims = four,
                               .num_dims = 1,
                               .element_type = PJRT_Buffer_Type_F32},
                              {.struct_size = PJRT_ShapeSpec_STRUCT_SIZE,
                               .dims = two_by_two,
                               .num_dims = 2,
                               .element_type = PJRT_Buffer_Type_F32}};
    PJRT_Buffer_MemoryLayout layout = by_columns(), *list[2] = {NULL, &layout};
    ARGS(a, Client_CreateBuffersForAsyncHostToDevice, .client = client,
         .shape_specs = spec, .num_shape_specs = 2, .device_layouts = list,
         .num_device_layouts = 2, .memory = &device->memory[XPU_MEM_DEVICE]);
    ARGS(b, AsyncHostToDeviceTransferManager_RetrieveBuffer);
    PJRT_Error *e = api->PJRT_Client_CreateBuffersForAsyncHostToDevice(&a);

    if (e)
        return e;
    keep(*t = b.transfer_manager = a.transfer_manager, end_transfers);
    for (; b.buffer_index < 2; b.buffer_index++) {
        e = api->PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&b);
        if (e)
            return e;
        keep_buffer(out[b.buffer_index] = b.buffer_out);
    }
    return NULL;
}

static PJRT_Error *pieces_arrive(const void *ctx, uint64_t *sum)
{
    ARGS(a, AsyncHostToDeviceTransferManager_TransferData, .data = numbers,
         .transfer_size = 8);
    ARGS(whole, AsyncHostToDeviceTransferManager_TransferLiteral,
         .buffer_index = 1, .data = numbers, .shape_dims = two_by_two,
         .shape_num_dims = 2, .shape_element_type = PJRT_Buffer_Type_F32);
    PJRT_Buffer *b[2];
    PJRT_Error *e;

    (void)ctx;
    if ((e = begin_transfers(&a.transfer_manager, b)))
        return e;
    for (; a.offset < 16; a.offset += 8) {
        a.is_last_transfer = a.offset == 8;
        e = api->PJRT_AsyncHostToDeviceTransferManager_TransferData(&a);
        if (e || (e = await(a.done_with_h2d_transfer)))
            return e;
    }
    whole.transfer_manager = a.transfer_manager;
    e = api->PJRT_AsyncHostToDeviceTransferManager_TransferLiteral(&whole);
    if (e || (e = await(whole.done_with_h2d_transfer)) ||
        (e = get(b[0], 16, sum)))
        return e;
    return get(b[1], 16, sum);
}

/* One buffer is told of an error, the other's transfers never end. */
static PJRT_Error *pieces_are_missing(const void *ctx, uint64_t *sum)
{
    PJRT_AsyncHostToDeviceTransferManager *t;
    ARGS(a, AsyncHostToDeviceTransferManager_SetBufferError,
         .error_code = PJRT_Error_Code_ABORTED, .error_message = "gone",
         .error_message_size = 4);
    PJRT_Buffer *b[2];
    PJRT_Error *e;

    (void)ctx, (void)sum;
    if ((e = begin_transfers(&t, b)))
        return e;
    a.transfer_manager = t;
    e = api->PJRT_AsyncHostToDeviceTransferManager_SetBufferError(&a);
    return e ? e : meant(ready(b[0]), PJRT_Error_Code_ABORTED);
}

/* ---- views ---- */

static int nview; /* whose memory was not given back yet */

static void on_view_deleted(void *pointer, void *arg)
{
    assert_ptr_equal(pointer, arg);
    nview--;
}

static PJRT_Error *views_are_looked_at(const void *ctx, uint64_t *sum)
{
    static _Alignas(64) float x[16] = {7, 8, 9};
    ARGS(v, Client_CreateViewOfDeviceBuffer, .client = client,
         .device_buffer_ptr = x, .dims = four, .num_dims = 1,
         .element_type = PJRT_Buffer_Type_F32, .device = device,
         .on_delete_callback = on_view_deleted, .on_delete_callback_arg = x);
    ARGS(up, Buffer_IncreaseExternalReferenceCount);
    ARGS(p, Buffer_OpaqueDeviceMemoryDataPointer);
    ARGS(down, Buffer_DecreaseExternalReferenceCount);
    PJRT_Error *e;

    (void)ctx;
    assert_int_equal(nview, 0);
    if ((e = api->PJRT_Client_CreateViewOfDeviceBuffer(&v)))
        return e;
    nview++;
    keep_buffer(up.buffer = p.buffer = down.buffer = v.buffer);
    if ((e = api->PJRT_Buffer_IncreaseExternalReferenceCount(&up)))
        return e;
    e = api->PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&p);
    assert_null(api->PJRT_Buffer_DecreaseExternalReferenceCount(&down));
    return e ? e : get(v.buffer, 16, sum);
}

/* ---- buffers without data, or of others' memory ---- */

static void break_promise(void *ctx)
{
    promise *p = ctx;
    ARGS(a, Client_FulfillAliasBuffer, .fulfill_alias_buffer_cb = p->open,
         .status_code = PJRT_Error_Code_ABORTED, .error_message = "never",
         .error_message_size = 5);

    if (p->open) /* the error comes back */
        sd_status_free(pjrt_status(api->PJRT_Client_FulfillAliasBuffer(&a)));
    p->open = NULL;
}

PJRT_Error *promise_buffer(PJRT_Buffer **out, promise *p)
{
    ARGS(a, Client_CreateAliasBuffer, .client = client,
         .memory = &device->memory[XPU_MEM_DEVICE], .shape_dims = thousand,
         .shape_num_dims = 1, .shape_element_type = PJRT_Buffer_Type_F32);
    PJRT_Error *e = api->PJRT_Client_CreateAliasBuffer(&a);

    if (e)
        return e;
    keep_buffer(*out = a.alias_buffer);
    p->open = a.fulfill_alias_buffer_cb;
    keep(p, break_promise);
    return NULL;
}

PJRT_Error *fulfil(promise *p, PJRT_Buffer *with)
{
    ARGS(a, Client_FulfillAliasBuffer, .client = client, .buffer = with,
         .fulfill_alias_buffer_cb = p->open);

    p->open = NULL; /* whatever comes of it */
    return api->PJRT_Client_FulfillAliasBuffer(&a);
}

/* Who waits for a promise hears of its end, in an error too. */
static PJRT_Error *aliases_are_fulfilled(const void *ctx, uint64_t *sum)
{
    static promise kept, broken;
    PJRT_Buffer *a, *b, *c;
    PJRT_Error *e, *st;

    (void)ctx;
    if ((e = promise_buffer(&a, &kept)) || (e = promise_buffer(&c, &broken)) ||
        (e = put_thousand(&b)))
        return e;
    break_promise(&broken);
    if ((e = meant(ready(c), PJRT_Error_Code_ABORTED)))
        return e;
    e = fulfil(&kept, b);
    st = ready(a);
    if (e && st)
        take_error(st, "the alias");
    if (e || st)
        return e ? e : st;
    return get(a, sizeof numbers, sum);
}

static PJRT_Error *errors_are_buffers(const void *ctx, uint64_t *sum)
{
    ARGS(a, Client_CreateErrorBuffer, .client = client,
         .error_code = PJRT_Error_Code_DATA_LOSS, .error_message = "spilt",
         .error_message_size = 5, .shape_dims = four, .shape_num_dims = 1,
         .shape_element_type = PJRT_Buffer_Type_F32,
         .memory = &device->memory[XPU_MEM_DEVICE]);
    ARGS(u, Client_CreateUninitializedBuffer, .client = client,
         .shape_dims = four, .shape_num_dims = 1,
         .shape_element_type = PJRT_Buffer_Type_F32, .device = device);
    PJRT_Error *e;

    (void)ctx, (void)sum;
    if ((e = api->PJRT_Client_CreateErrorBuffer(&a)))
        return e;
    keep_buffer(a.buffer);
    if ((e = meant(ready(a.buffer), PJRT_Error_Code_DATA_LOSS)) ||
        (e = api->PJRT_Client_CreateUninitializedBuffer(&u)))
        return e;
    keep_buffer(u.buffer);
    return ready(u.buffer);
}

typedef PJRT_Buffer_DonateWithControlDependency_Callback_Args dependency;

static PJRT_Error *memory_changes_hands(const void *ctx, uint64_t *sum)
{
    dependency ok = {
        .struct_size =
            PJRT_Buffer_DonateWithControlDependency_Callback_Args_STRUCT_SIZE};
    ARGS(cast, Buffer_Bitcast, .element_type = PJRT_Buffer_Type_U32,
         .dims = two_by_two, .num_dims = 2);
    ARGS(give, Buffer_DonateWithControlDependency);
    PJRT_Buffer *b;
    PJRT_Error *e;

    (void)ctx;
    if ((e = put_four(&b)))
        return e;
    cast.buffer = b;
    if ((e = api->PJRT_Buffer_Bitcast(&cast)))
        return e;
    keep_buffer(give.buffer = cast.out_buffer);
    if ((e = api->PJRT_Buffer_DonateWithControlDependency(&give)))
        return e;
    keep_buffer(give.out_buffer);
    ok.callback_data = give.callback_data;
    give.dependency_ready_callback(&ok);
    return get(give.out_buffer, 16, sum);
}

/* ---- descriptions ---- */

static void end_topology(void *t)
{
    ARGS(a, TopologyDescription_Destroy, .topology = t);

    assert_null(api->PJRT_TopologyDescription_Destroy(&a));
}

static PJRT_Error *topologies_travel(const void *ctx, uint64_t *sum)
{
    PJRT_Buffer_MemoryLayout layout = by_columns();
    ARGS(t, TopologyDescription_Create, .topology_name = "cl:pvc x 2",
         .topology_name_size = 10);
    ARGS(s, TopologyDescription_Serialize);
    ARGS(d, TopologyDescription_Deserialize);
    ARGS(shape, TopologyDescription_MakeCanonicalShapeForMemorySpace,
         .memory_space_kind_id = 1, .dims = two_by_two, .num_dims = 2,
         .element_type = PJRT_Buffer_Type_F32, .layout = &layout);
    PJRT_Error *e;

    (void)ctx;
    if ((e = api->PJRT_TopologyDescription_Create(&t)))
        return e;
    keep(s.topology = t.topology, end_topology);
    if ((e = api->PJRT_TopologyDescription_Serialize(&s)))
        return e;
    d.serialized_topology = s.serialized_bytes;
    d.serialized_topology_size = s.serialized_bytes_size;
    *sum = sd_hash(s.serialized_bytes, s.serialized_bytes_size, *sum);
    e = api->PJRT_TopologyDescription_Deserialize(&d);
    s.serialized_topology_deleter(s.serialized_topology);
    if (e)
        return e;
    keep(d.topology, end_topology);
    shape.topology = d.topology;
    e = api->PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace(&shape);
    if (e)
        return e;
    *sum = sd_hash(shape.serialized_shape, shape.serialized_shape_size, *sum);
    shape.serialized_shape_deleter(shape.serialized_shape);
    return NULL;
}

static void end_layout(void *l)
{
    const PJRT_Layouts_Extension *x = extension(PJRT_Extension_Type_Layouts);
    ARGS(a, Layouts_MemoryLayout_Destroy, .layout = l);

    assert_null(x->PJRT_Layouts_MemoryLayout_Destroy(&a));
}

static PJRT_Error *layouts_are_told(const void *ctx, uint64_t *sum)
{
    const PJRT_Layouts_Extension *x = extension(PJRT_Extension_Type_Layouts);
    ARGS(a, Layouts_PJRT_Client_GetDefaultLayout, .client = client,
         .type = PJRT_Buffer_Type_F32, .dims = two_by_two, .num_dims = 2);
    ARGS(b, Layouts_PJRT_Buffer_MemoryLayout);
    ARGS(s, Layouts_MemoryLayout_Serialize);
    PJRT_Buffer *of;
    PJRT_Error *e;

    (void)ctx;
    if ((e = x->PJRT_Layouts_PJRT_Client_GetDefaultLayout(&a)))
        return e;
    keep(a.layout, end_layout);
    if ((e = put_by_columns(&of)))
        return e;
    b.buffer = of;
    if ((e = x->PJRT_Layouts_PJRT_Buffer_MemoryLayout(&b)))
        return e;
    keep(s.layout = b.layout, end_layout);
    if ((e = x->PJRT_Layouts_MemoryLayout_Serialize(&s)))
        return e;
    *sum = sd_hash(s.serialized_bytes, s.serialized_bytes_size, *sum);
    s.serialized_layout_deleter(s.serialized_layout);
    return NULL;
}

static void end_version(void *v)
{
    const PJRT_AbiVersion_Extension *x =
        extension(PJRT_Extension_Type_AbiVersion);
    ARGS(a, RuntimeAbiVersion_Destroy, .abi_version = v);

    assert_null(x->runtime_abi_version_destroy(&a));
}

static PJRT_Error *versions_travel(const void *ctx, uint64_t *sum)
{
    const PJRT_AbiVersion_Extension *x =
        extension(PJRT_Extension_Type_AbiVersion);
    ARGS(a, Client_RuntimeAbiVersion, .client = client);
    ARGS(to, RuntimeAbiVersion_ToProto);
    ARGS(from, RuntimeAbiVersion_FromProto);
    PJRT_Error *e;

    (void)ctx;
    if ((e = x->client_runtime_abi_version(&a)))
        return e;
    to.abi_version = a.abi_version;
    keep(a.abi_version, end_version);
    if ((e = x->runtime_abi_version_to_proto(&to)))
        return e;
    *sum = sd_hash(to.serialized_proto, to.serialized_proto_size, *sum);
    from.serialized_proto = to.serialized_proto;
    from.serialized_proto_size = to.serialized_proto_size;
    e = x->runtime_abi_version_from_proto(&from);
    to.serialized_proto_deleter(to.serialized_proto_holder);
    if (!e)
        keep(from.abi_version, end_version);
    return e;
}

/* ---- what belongs to devices ---- */

static PJRT_Error *devices_are_asked(const void *ctx, uint64_t *sum)
{
    ARGS(attr, Device_GetAttributes, .device = device);
    ARGS(track, Device_CreateAsyncTrackingEvent, .device = device,
         .description = "load", .description_size = 4);
    ARGS(end, AsyncTrackingEvent_Destroy);
    ARGS(map, Client_DmaMap, .client = client, .data = (void *)&nview,
         .size = sizeof nview);
    ARGS(unmap, Client_DmaUnmap, .client = client, .data = (void *)&nview);
    PJRT_Error *e;

    (void)ctx, (void)sum;
    if ((e = api->PJRT_Device_GetAttributes(&attr)))
        return e;
    attr.attributes_deleter(attr.device_attributes);
    if ((e = api->PJRT_Device_CreateAsyncTrackingEvent(&track)))
        return e;
    end.event = track.event;
    assert_null(api->PJRT_AsyncTrackingEvent_Destroy(&end));
    if ((e = api->PJRT_Client_DmaMap(&map)))
        return e;
    return api->PJRT_Client_DmaUnmap(&unmap);
}

static PJRT_Error *events_are_set(const void *ctx, uint64_t *sum)
{
    ARGS(a, Event_Create);
    ARGS(s, Event_Set, .error_code = PJRT_Error_Code_ABORTED,
         .error_message = "enough", .error_message_size = 6);
    PJRT_Error *e = api->PJRT_Event_Create(&a);

    (void)ctx, (void)sum;
    if (e)
        return e;
    s.event = a.event;
    if ((e = api->PJRT_Event_Set(&s))) {
        keep_event(a.event);
        return e;
    }
    return meant(await(a.event), PJRT_Error_Code_ABORTED);
}

long fail_each_buffer_call(void)
{
    static const struct {
        const char *name;
        scene fn;
    } all[] = {
#define SCENE(f) {#f, f}
        SCENE(layouts_are_kept),      SCENE(large_arrays_move),
        SCENE(buffers_are_copied),    SCENE(pieces_arrive),
        SCENE(pieces_are_missing),    SCENE(views_are_looked_at),
        SCENE(aliases_are_fulfilled), SCENE(errors_are_buffers),
        SCENE(memory_changes_hands),  SCENE(topologies_travel),
        SCENE(layouts_are_told),      SCENE(versions_travel),
        SCENE(devices_are_asked),     SCENE(events_are_set),
#undef SCENE
    };
    long n = 0;

    for (size_t i = 0; i < SD_COUNTOF(all); i++)
        n += fail_each(all[i].name, all[i].fn, NULL) +
             fail_each_alone(all[i].name, all[i].fn, NULL);
    return n;
}
