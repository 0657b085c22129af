/* What the plugin offers beyond the table. */
#include "ffi_abi.h"
#include "plugin_test.h"

#define EXT(v, name, ...) \
    PJRT_##name##_Args v = {.struct_size = PJRT_##name##_Args_STRUCT_SIZE, \
                            __VA_ARGS__}
#define LAYOUTS \
    const PJRT_Layouts_Extension *x = \
        plugin_extension(PJRT_Extension_Type_Layouts)

/* ---- layouts ---- */

static void layout_is(PJRT_Layouts_MemoryLayout *l, const char *text)
{
    LAYOUTS;
    EXT(s, Layouts_MemoryLayout_Serialize, .layout = l);

    ok(x->PJRT_Layouts_MemoryLayout_Serialize(&s), "Serialize");
    assert_int_equal(s.serialized_bytes_size, strlen(text));
    assert_memory_equal(s.serialized_bytes, text, strlen(text));
    s.serialized_layout_deleter(s.serialized_layout);
}

static void end_layout(PJRT_Layouts_MemoryLayout *l)
{
    LAYOUTS;
    EXT(d, Layouts_MemoryLayout_Destroy, .layout = l);

    ok(x->PJRT_Layouts_MemoryLayout_Destroy(&d), "Destroy");
}

static void layouts_are_row_major_unless_asked(void **state)
{
    static const int64_t dims[] = {2, 3, 4}, order[] = {1, 0, 2};
    PJRT_Buffer_MemoryLayout l = tiled(order, 3);
    float data[24] = {0};

    (void)state;
    LAYOUTS;
    EXT(c, Layouts_PJRT_Client_GetDefaultLayout, .client = client,
        .type = PJRT_Buffer_Type_F32, .dims = dims, .num_dims = 2);
    DO(t, Client_TopologyDescription, .client = client);
    EXT(p, Layouts_PJRT_Topology_GetDefaultLayout,
        .topology_description = t.topology, .type = PJRT_Buffer_Type_S4,
        .dims = dims, .num_dims = 3);

    ok(x->PJRT_Layouts_PJRT_Client_GetDefaultLayout(&c), "client");
    layout_is(c.layout, "{1,0}");
    end_layout(c.layout);
    ok(x->PJRT_Layouts_PJRT_Topology_GetDefaultLayout(&p), "topology");
    layout_is(p.layout, "{2,1,0}");
    end_layout(p.layout);
    DO(a, Client_BufferFromHostBuffer, .client = client, .data = data,
       .type = PJRT_Buffer_Type_F32, .dims = dims, .num_dims = 3,
       .memory = memory, .device_layout = &l);
    await(a.done_with_host_buffer);
    EXT(b, Layouts_PJRT_Buffer_MemoryLayout, .buffer = a.buffer);
    ok(x->PJRT_Layouts_PJRT_Buffer_MemoryLayout(&b), "buffer");
    destroy(a.buffer);
    layout_is(b.layout, "{1,0,2}");
    end_layout(b.layout);
    c.type = PJRT_Buffer_Type_TOKEN;
    wrong(x->PJRT_Layouts_PJRT_Client_GetDefaultLayout(&c),
          PJRT_Error_Code_UNIMPLEMENTED, "element type 23");
}

static PJRT_Executable *two_copies(void)
{
    PJRT_LoadedExecutable *l = program(2, false);

    DO(g, LoadedExecutable_GetExecutable, .loaded_executable = l);
    unload(l);
    return g.executable;
}

static void executables_list_their_layouts(void **state)
{
    PJRT_Executable *e = two_copies();

    (void)state;
    LAYOUTS;
    EXT(o, Layouts_PJRT_Executable_GetOutputLayouts, .executable = e);
    EXT(p, Layouts_PJRT_Executable_GetParameterLayouts, .executable = e);

    ok(x->PJRT_Layouts_PJRT_Executable_GetOutputLayouts(&o), "outputs");
    ok(x->PJRT_Layouts_PJRT_Executable_GetParameterLayouts(&p), "parameters");
    assert_int_equal(o.num_outputs, 2);
    assert_int_equal(p.num_parameters, 2);
    layout_is(o.layouts[1], "{0}");
    layout_is(p.layouts[1], "{0}");
    DO(d, Executable_Destroy, .executable = e);
}

/* ---- shardings ---- */

static void arrays_of_one_device_are_whole(void **state)
{
    PJRT_Executable *e = two_copies();
    const PJRT_Shardings_Extension *x =
        plugin_extension(PJRT_Extension_Type_Shardings);
    EXT(p, Shardings_PJRT_Executable_ParameterShardings, .executable = e);
    EXT(o, Shardings_PJRT_Executable_OutputShardings, .executable = e);

    (void)state;
    ok(x->PJRT_Shardings_PJRT_Executable_ParameterShardings(&p), "parameters");
    ok(x->PJRT_Shardings_PJRT_Executable_OutputShardings(&o), "outputs");
    assert_int_equal(p.num_parameters, 2);
    assert_int_equal(o.num_outputs, 2);
    for (int i = 0; i < 2; i++) { /* OpSharding's default: replicated */
        assert_non_null(p.shardings[i]);
        assert_int_equal(p.sharding_sizes[i], 0);
        assert_non_null(o.shardings[i]);
        assert_int_equal(o.sharding_sizes[i], 0);
    }
    DO(d, Executable_Destroy, .executable = e);
}

/* ---- memory descriptions ---- */

static void memories_are_described_without_a_client(void **state)
{
    static const char *const kind[] = {"device", "pinned_host",
                                       "unpinned_host"};
    const PJRT_MemoryDescriptions_Extension *x =
        plugin_extension(PJRT_Extension_Type_MemoryDescriptions);

    (void)state;
    DO(t, TopologyDescription_Create, .topology_name = "cl:pvc",
       .topology_name_size = 6);
    DO(l, TopologyDescription_GetDeviceDescriptions, .topology = t.topology);
    EXT(m, DeviceDescription_MemoryDescriptions,
        .device_description = l.descriptions[0]);
    ok(x->PJRT_DeviceDescription_MemoryDescriptions(&m), "descriptions");
    assert_int_equal(m.num_memory_descriptions, 3);
    assert_int_equal(m.default_memory_index, 0);
    for (int i = 0; i < 3; i++) {
        EXT(k, MemoryDescription_Kind,
            .memory_description = m.memory_descriptions[i]);

        ok(x->PJRT_MemoryDescription_Kind(&k), "kind");
        assert_memory_equal(k.kind, kind[i], k.kind_size);
        assert_int_equal(k.kind_id, i + 1);
    }
    DO(d, TopologyDescription_Destroy, .topology = t.topology);
}

/* ---- ABI versions ---- */

#define ABI \
    const PJRT_AbiVersion_Extension *x = \
        plugin_extension(PJRT_Extension_Type_AbiVersion)

static void abi_versions_are_compared(void **state)
{
    (void)state;
    ABI;
    EXT(c, Client_RuntimeAbiVersion, .client = client);
    ok(x->client_runtime_abi_version(&c), "client");
    EXT(w, RuntimeAbiVersion_ToProto, .abi_version = c.abi_version);
    ok(x->runtime_abi_version_to_proto(&w), "to proto");
    EXT(g, ExecutableAbiVersion_FromProto,
        .serialized_proto = w.serialized_proto,
        .serialized_proto_size = w.serialized_proto_size);
    ok(x->executable_abi_version_from_proto(&g), "from proto");
    w.serialized_proto_deleter(w.serialized_proto_holder);
    EXT(same, RuntimeAbiVersion_IsCompatibleWithRuntime,
        .abi_version = c.abi_version, .other_abi_version = c.abi_version);
    EXT(fits, RuntimeAbiVersion_IsCompatibleWithExecutable,
        .abi_version = c.abi_version, .executable_abi_version = g.abi_version);
    EXT(rid, RuntimeAbiVersion_PlatformId, .abi_version = c.abi_version);
    EXT(eid, ExecutableAbiVersion_PlatformId, .abi_version = g.abi_version);
    ok(x->runtime_abi_version_is_compatible_with_runtime(&same), "runtime");
    ok(x->runtime_abi_version_is_compatible_with_executable(&fits), "program");
    ok(x->runtime_abi_version_platform_id(&rid), "id");
    ok(x->executable_abi_version_platform_id(&eid), "id");
    assert_true(rid.platform_id == eid.platform_id && rid.platform_id);
    EXT(d, RuntimeAbiVersion_Destroy, .abi_version = c.abi_version);
    EXT(k, ExecutableAbiVersion_Destroy, .abi_version = g.abi_version);
    ok(x->runtime_abi_version_destroy(&d), "destroy");
    ok(x->executable_abi_version_destroy(&k), "destroy");
}

/* jaxlib saves a program only of a platform that has none. */
static void programs_have_no_abi_version(void **state)
{
    PJRT_Executable *e = two_copies();

    (void)state;
    ABI;
    EXT(g, Executable_GetAbiVersion, .executable = e);
    wrong(x->executable_get_abi_version(&g), PJRT_Error_Code_UNIMPLEMENTED,
          "PJRT_Executable_GetAbiVersion");
    DO(end, Executable_Destroy, .executable = e);
}

/* The 16 bytes of our own are the format, the kind and the features. */
static void programs_of_other_machines_do_not_fit(void **state)
{
    static const struct {
        int at;
        const char *says;
    } c[] = {
        {-16, "programs of format"},
        {-12, "programs for devices of kind"},
        {-1, "programs that use features 0x8"},
    };

    (void)state;
    ABI;
    EXT(r, Client_RuntimeAbiVersion, .client = client);
    ok(x->client_runtime_abi_version(&r), "client");
    EXT(w, RuntimeAbiVersion_ToProto, .abi_version = r.abi_version);
    ok(x->runtime_abi_version_to_proto(&w), "to proto");
    for (size_t i = 0; i < SD_COUNTOF(c); i++) {
        char *byte = (char *)(uintptr_t)w.serialized_proto +
                     (ptrdiff_t)w.serialized_proto_size + c[i].at;

        *byte ^= (char)0x80;
        EXT(f, RuntimeAbiVersion_FromProto,
            .serialized_proto = w.serialized_proto,
            .serialized_proto_size = w.serialized_proto_size);
        ok(x->runtime_abi_version_from_proto(&f), "from proto");
        EXT(fits, RuntimeAbiVersion_IsCompatibleWithRuntime,
            .abi_version = r.abi_version, .other_abi_version = f.abi_version);
        wrong(x->runtime_abi_version_is_compatible_with_runtime(&fits),
              PJRT_Error_Code_FAILED_PRECONDITION, c[i].says);
        EXT(d, RuntimeAbiVersion_Destroy, .abi_version = f.abi_version);
        ok(x->runtime_abi_version_destroy(&d), "destroy");
        *byte ^= (char)0x80;
    }
    w.serialized_proto_deleter(w.serialized_proto_holder);
    EXT(d, RuntimeAbiVersion_Destroy, .abi_version = r.abi_version);
    ok(x->runtime_abi_version_destroy(&d), "destroy");
}

static void damaged_abi_versions_are_refused(void **state)
{
    static const struct {
        const char *bytes, *says;
    } c[] = {{"\x10\1", "ABI version: expected the platform at offset 1"},
             {"\x08\1\x12\x11", "ABI version: expected 16 bytes of version"}};

    (void)state;
    ABI;
    for (size_t i = 0; i < SD_COUNTOF(c); i++) {
        EXT(f, RuntimeAbiVersion_FromProto, .serialized_proto = c[i].bytes,
            .serialized_proto_size = strlen(c[i].bytes));
        wrong(x->runtime_abi_version_from_proto(&f),
              PJRT_Error_Code_INVALID_ARGUMENT, c[i].says);
    }
}

static void abi_versions_come_back_from_bytes(void **state)
{
    char other[64], said[64], *format;

    (void)state;
    ABI;
    EXT(c, Client_RuntimeAbiVersion, .client = client);
    ok(x->client_runtime_abi_version(&c), "client");
    EXT(v, RuntimeAbiVersion_ToProto, .abi_version = c.abi_version);
    ok(x->runtime_abi_version_to_proto(&v), "to proto");
    EXT(g, ExecutableAbiVersion_FromProto,
        .serialized_proto = v.serialized_proto,
        .serialized_proto_size = v.serialized_proto_size);
    ok(x->executable_abi_version_from_proto(&g), "from proto");
    EXT(w, ExecutableAbiVersion_ToProto, .abi_version = g.abi_version);
    ok(x->executable_abi_version_to_proto(&w), "to proto");
    assert_true(w.serialized_proto_size <= sizeof other);
    memcpy(other, w.serialized_proto, w.serialized_proto_size);
    /* The format is the first word of the last 16 bytes. */
    format = other + w.serialized_proto_size - 16;
    snprintf(said, sizeof said, "programs of format %d, this library reads %d",
             *format + 1, *format);
    ++*format;
    EXT(r, ExecutableAbiVersion_FromProto, .serialized_proto = other,
        .serialized_proto_size = w.serialized_proto_size);
    EXT(q, RuntimeAbiVersion_FromProto, .serialized_proto = v.serialized_proto,
        .serialized_proto_size = v.serialized_proto_size);
    ok(x->executable_abi_version_from_proto(&r), "from proto");
    ok(x->runtime_abi_version_from_proto(&q), "from proto");
    EXT(fits, RuntimeAbiVersion_IsCompatibleWithExecutable,
        .abi_version = q.abi_version, .executable_abi_version = r.abi_version);
    wrong(x->runtime_abi_version_is_compatible_with_executable(&fits),
          PJRT_Error_Code_FAILED_PRECONDITION, said);
    r.serialized_proto_size--;
    wrong(x->executable_abi_version_from_proto(&r),
          PJRT_Error_Code_INVALID_ARGUMENT, "ABI version");
    other[1]++;
    q.serialized_proto = other;
    wrong(x->runtime_abi_version_from_proto(&q),
          PJRT_Error_Code_INVALID_ARGUMENT, "of another platform");
    w.serialized_proto_deleter(w.serialized_proto_holder);
    v.serialized_proto_deleter(v.serialized_proto_holder);
    EXT(d, RuntimeAbiVersion_Destroy, .abi_version = c.abi_version);
    ok(x->runtime_abi_version_destroy(&d), "destroy");
    d.abi_version = q.abi_version;
    ok(x->runtime_abi_version_destroy(&d), "destroy");
    EXT(k, ExecutableAbiVersion_Destroy, .abi_version = g.abi_version);
    ok(x->executable_abi_version_destroy(&k), "destroy");
    k.abi_version = r.abi_version;
    ok(x->executable_abi_version_destroy(&k), "destroy");
}

/* ---- foreign calls: that they run is tests/python's to show ---- */

static XLA_FFI_Error *handler(XLA_FFI_CallFrame *f)
{
    for (XLA_FFI_InternalExtension *e = f->extension_start; e; e = e->next)
        if (e->type == XLA_FFI_Extension_Metadata) {
            XLA_FFI_Metadata *m = ((XLA_FFI_Metadata_Extension *)e)->metadata;

            m->api_version.major_version = XLA_FFI_API_MAJOR;
            m->api_version.minor_version = XLA_FFI_API_MINOR;
        }
    return NULL;
}

static XLA_FFI_Error *another(XLA_FFI_CallFrame *f)
{
    return handler(f);
}

static void handlers_are_registered(void **state)
{
    const PJRT_FFI_Extension *x = plugin_extension(PJRT_Extension_Type_FFI);
    const PJRT_Gpu_Custom_Call *g =
        plugin_extension(PJRT_Extension_Type_Gpu_Custom_Call);
    EXT(a, FFI_Register_Handler, .target_name = "test_one",
        .target_name_size = 8, .handler = (void *)(uintptr_t)handler,
        .platform_name = "XPU", .platform_name_size = 3);
    EXT(b, Gpu_Register_Custom_Call, .function_name = "test_two",
        .function_name_size = 8, .api_version = 1,
        .handler_execute = (void *)(uintptr_t)handler);

    (void)state;
    for (int i = 0; i < 2; i++) { /* the same once more is no news */
        ok(x->register_handler(&a), "register");
        ok(g->custom_call(&b), "register");
    }
    a.handler = (void *)(uintptr_t)another;
    wrong(x->register_handler(&a), PJRT_Error_Code_ALREADY_EXISTS,
          "test_one has another handler");
    a.platform_name = "cuda";
    a.platform_name_size = 4;
    wrong(x->register_handler(&a), PJRT_Error_Code_INVALID_ARGUMENT,
          "platform cuda");
    b.api_version = 0;
    wrong(g->custom_call(&b), PJRT_Error_Code_UNIMPLEMENTED,
          "has API version 0");
}

static void refuses(JAX_CustomCallPartitioner_Callbacks *by,
                    JAX_CustomCallPartitioner_Partition_Args *a)
{
    (void)by;
    a->header.has_error = true;
}

static void partitioners_partition(void **state)
{
    const PJRT_Custom_Partitioner_Extension *x =
        plugin_extension(PJRT_Extension_Type_Custom_Partitioner);
    static JAX_CustomCallPartitioner_Callbacks by; /* stays registered */
    EXT(a, Register_Custom_Partitioner, .name = "test_cut", .name_size = 8,
        .callbacks = &by);
    EXT(b, Register_Batch_Partitionable, .name = "test_cut", .name_size = 8);

    (void)state;
    by.partition = NULL;
    wrong(x->register_custom_partitioner(&a), PJRT_Error_Code_INVALID_ARGUMENT,
          "a partitioner of custom-call test_cut without a function that "
          "partitions");
    by.partition = refuses;
    for (int i = 0; i < 2; i++) {
        ok(x->register_custom_partitioner(&a), "register");
        ok(x->register_batch_partitionable(&b), "register");
        a.name = b.name = NULL;
        a.name_size = b.name_size = 0;
    }
}

static void types_and_user_data_are_kept(void **state)
{
    static int datum;
    PJRT_FFI_Type_Info info = {.deleter = NULL};
    const PJRT_FFI_Extension *x = plugin_extension(PJRT_Extension_Type_FFI);
    EXT(t, FFI_Type_Register, .type_name = "test_type", .type_name_size = 9,
        .type_info = &info);
    int64_t id;

    (void)state;
    ok(x->type_register(&t), "type");
    id = t.type_id;
    assert_true(id > 0);
    t.type_id = 0;
    ok(x->type_register(&t), "again");
    assert_true(t.type_id == id);
    DO(c, ExecuteContext_Create, .extension_start = NULL);
    EXT(d, FFI_UserData_Add, .context = c.context, .user_data = {id, &datum});
    ok(x->user_data_add(&d), "user data");
    wrong(x->user_data_add(&d), PJRT_Error_Code_ALREADY_EXISTS, "already");
    DO(e, ExecuteContext_Destroy, .context = c.context);
}

TESTS(extension, T(layouts_are_row_major_unless_asked),
      T(executables_list_their_layouts), T(arrays_of_one_device_are_whole),
      T(memories_are_described_without_a_client), T(abi_versions_are_compared),
      T(programs_have_no_abi_version), T(programs_of_other_machines_do_not_fit),
      T(damaged_abi_versions_are_refused), T(abi_versions_come_back_from_bytes),
      T(handlers_are_registered), T(partitioners_partition),
      T(types_and_user_data_are_kept))
