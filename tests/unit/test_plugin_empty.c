/* Lists of length 0.  The table between the tests and the plugin passes each
 * of them as NULL, as C++ gives an empty vector's data; here is a call for
 * every list that no other test leaves empty, and what lies in structs inside
 * the arguments. */
#include "plugin_test.h"

#include <unistd.h>

static PJRT_Event *done_of(PJRT_LoadedExecutable *l, PJRT_ExecuteOptions *o)
{
    PJRT_Event *done = NULL;
    PJRT_LoadedExecutable_Execute_Args a = {
        .struct_size = PJRT_LoadedExecutable_Execute_Args_STRUCT_SIZE,
        .executable = l,
        .options = o,
        .num_devices = 1,
        .device_complete_events = &done};

    ok(api->PJRT_LoadedExecutable_Execute(&a), "a run of nothing");
    return done;
}

/* Neither the list of devices nor a device's own. */
static void a_program_without_arguments_and_outputs_runs(void **state)
{
    PJRT_LoadedExecutable *l = program(0, false);
    PJRT_ExecuteOptions o = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE};
    PJRT_Buffer *const *args[1] = {NULL};
    PJRT_Buffer **outs[1] = {NULL};

    (void)state;
    await(done_of(l, &o));
    DO(x, LoadedExecutable_Execute, .executable = l, .options = &o,
       .num_devices = 1, .argument_lists = args, .output_lists = outs);
    DO(g, LoadedExecutable_GetExecutable, .loaded_executable = l);
    DO(types, Executable_OutputElementTypes, .executable = g.executable);
    assert_int_equal(types.num_output_types, 0);
    DO(dims, Executable_OutputDimensions, .executable = g.executable);
    DO(kinds, Executable_OutputMemoryKinds, .executable = g.executable);
    DO(params, Executable_ParameterMemoryKinds, .executable = g.executable);
    DO(e, Executable_Destroy, .executable = g.executable);
    unload(l);
}

static void scalars_have_no_dimensions(void **state)
{
    PJRT_Buffer_MemoryLayout none = tiled(NULL, 0);
    float one = 1, back = 0;
    PJRT_Buffer *b;

    (void)state;
    ok(put(PJRT_Buffer_Type_F32, &one, NULL, 0, NULL, 0, &b), "put");
    ok(get(b, &back, sizeof back, &none), "get");
    assert_true(back == 1);
    DO(cast, Buffer_Bitcast, .buffer = b, .element_type = PJRT_Buffer_Type_S32,
       .device_layout = &none);
    destroy(cast.out_buffer);
    destroy(b);
    DO(u, Client_CreateUninitializedBuffer, .client = client, .memory = memory,
       .shape_element_type = PJRT_Buffer_Type_F32);
    destroy(u.buffer);
    DO(v, Client_CreateViewOfDeviceBuffer, .client = client, .device = device,
       .element_type = PJRT_Buffer_Type_F32,
       .device_buffer_ptr = (void *)((uintptr_t)64));
    destroy(v.buffer);
    DO(e, Client_CreateErrorBuffer, .client = client, .memory = memory,
       .error_code = PJRT_Error_Code_ABORTED,
       .shape_element_type = PJRT_Buffer_Type_F32);
    await_error(ready_event(e.buffer), PJRT_Error_Code_ABORTED, "");
    destroy(e.buffer);
    DO(alias, Client_CreateAliasBuffer, .client = client, .memory = memory,
       .shape_element_type = PJRT_Buffer_Type_F32);
    BAD(ABORTED, "", Client_FulfillAliasBuffer, .client = client,
        .fulfill_alias_buffer_cb = alias.fulfill_alias_buffer_cb,
        .status_code = PJRT_Error_Code_ABORTED);
    destroy(alias.alias_buffer);
}

static void empty_arrays_are_copied(void **state)
{
    static const int64_t dims[] = {0, 3};
    PJRT_ShapeSpec scalar = {.struct_size = PJRT_ShapeSpec_STRUCT_SIZE,
                             .element_type = PJRT_Buffer_Type_F32};
    PJRT_Buffer *b;
    float one = 1;

    (void)state;
    ok(put(PJRT_Buffer_Type_F32, NULL, dims, 2, NULL, 0, &b), "put");
    DO(raw, Buffer_CopyRawToHost, .buffer = b);
    await(raw.event);
    destroy(b);
    DO(m, Client_CreateBuffersForAsyncHostToDevice, .client = client,
       .memory = memory, .shape_specs = &scalar, .num_shape_specs = 1);
    DO(none, AsyncHostToDeviceTransferManager_TransferData,
       .transfer_manager = m.transfer_manager);
    await(none.done_with_h2d_transfer);
    DO(lit, AsyncHostToDeviceTransferManager_TransferLiteral,
       .transfer_manager = m.transfer_manager, .data = &one,
       .shape_element_type = PJRT_Buffer_Type_F32);
    await(lit.done_with_h2d_transfer);
    DO(meta, AsyncHostToDeviceTransferManager_AddMetadata,
       .transfer_manager = m.transfer_manager);
    DO(end, AsyncHostToDeviceTransferManager_Destroy,
       .transfer_manager = m.transfer_manager);
    DO(no, Client_CreateBuffersForAsyncHostToDevice, .client = client,
       .memory = memory);
    DO(end_no, AsyncHostToDeviceTransferManager_Destroy,
       .transfer_manager = no.transfer_manager);
}

static void errors_may_have_no_words(void **state)
{
    PJRT_ShapeSpec scalar = {.struct_size = PJRT_ShapeSpec_STRUCT_SIZE,
                             .element_type = PJRT_Buffer_Type_F32};

    (void)state;
    DO(e, Event_Create, .extension_start = NULL);
    DO(set, Event_Set, .event = e.event, .error_code = PJRT_Error_Code_ABORTED);
    await_error(e.event, PJRT_Error_Code_ABORTED, "");
    DO(p, Device_PoisonExecution, .device = device, .launch_id = 99,
       .error_code = PJRT_Error_Code_ABORTED);
    assert_false(p.poisoned);
    DO(m, Client_CreateBuffersForAsyncHostToDevice, .client = client,
       .memory = memory, .shape_specs = &scalar, .num_shape_specs = 1);
    DO(fail, AsyncHostToDeviceTransferManager_SetBufferError,
       .transfer_manager = m.transfer_manager,
       .error_code = PJRT_Error_Code_ABORTED);
    DO(end, AsyncHostToDeviceTransferManager_Destroy,
       .transfer_manager = m.transfer_manager);
}

static PJRT_Program scalar_program(void)
{
    static char text[] = "HloModule none\nENTRY main { ROOT c = f32[] "
                         "constant(1) }\n";

    return (PJRT_Program){.struct_size = PJRT_Program_STRUCT_SIZE,
                          .code = text,
                          .code_size = sizeof text - 1,
                          .format = "hlo_text",
                          .format_size = 8};
}

static void nothing_is_said_of_how_to_compile(void **state)
{
    PJRT_Program p = scalar_program(),
                 none = {.struct_size = PJRT_Program_STRUCT_SIZE};

    (void)state;
    DO(c, Client_Compile, .client = client, .program = &p);
    unload(c.executable);
    BAD(INVALID_ARGUMENT, "", Client_Compile, .client = client,
        .program = &none);
    none.format = "mlir";
    none.format_size = 4;
    BAD(INVALID_ARGUMENT, "", Client_Compile, .client = client,
        .program = &none);
    DO(t, Client_TopologyDescription, .client = client);
    DO(ahead, Compile, .topology = t.topology, .program = &p);
    DO(l, Client_Load, .client = client, .executable = ahead.executable);
    unload(l.loaded_executable);
    DO(e, Executable_Destroy, .executable = ahead.executable);
}

/* Of saved things nothing is too little, and said to be. */
static void nothing_saved_is_refused(void **state)
{
    const PJRT_AbiVersion_Extension *x =
        plugin_extension(PJRT_Extension_Type_AbiVersion);
    PJRT_RuntimeAbiVersion_FromProto_Args r = {
        .struct_size = PJRT_RuntimeAbiVersion_FromProto_Args_STRUCT_SIZE};
    PJRT_ExecutableAbiVersion_FromProto_Args e = {
        .struct_size = PJRT_ExecutableAbiVersion_FromProto_Args_STRUCT_SIZE};

    (void)state;
    wrong(x->runtime_abi_version_from_proto(&r),
          PJRT_Error_Code_INVALID_ARGUMENT, "ABI version");
    wrong(x->executable_abi_version_from_proto(&e),
          PJRT_Error_Code_INVALID_ARGUMENT, "ABI version");
    BAD(INVALID_ARGUMENT, "", Executable_DeserializeAndLoad, .client = client);
    BAD(INVALID_ARGUMENT, "", TopologyDescription_Deserialize,
        .extension_start = NULL);
    BAD(INVALID_ARGUMENT, "0 bytes", Client_DmaMap, .client = client);
    BAD(FAILED_PRECONDITION, "1 * 1 = 1", Client_DefaultDeviceAssignment,
        .client = client, .num_replicas = 1, .num_partitions = 1);
}

static PJRT_Error *layout_of_a_scalar(PJRT_Layouts_MemoryLayout **out)
{
    const PJRT_Layouts_Extension *x =
        plugin_extension(PJRT_Extension_Type_Layouts);
    PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args c = {
        .struct_size =
            PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args_STRUCT_SIZE,
        .client = client,
        .type = PJRT_Buffer_Type_F32};
    PJRT_Error *e = x->PJRT_Layouts_PJRT_Client_GetDefaultLayout(&c);

    *out = c.layout;
    return e;
}

static PJRT_Error *layout_ahead(PJRT_TopologyDescription *t,
                                PJRT_Layouts_MemoryLayout **out)
{
    const PJRT_Layouts_Extension *x =
        plugin_extension(PJRT_Extension_Type_Layouts);
    PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args c = {
        .struct_size =
            PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args_STRUCT_SIZE,
        .topology_description = t,
        .type = PJRT_Buffer_Type_F32};
    PJRT_Error *e = x->PJRT_Layouts_PJRT_Topology_GetDefaultLayout(&c);

    *out = c.layout;
    return e;
}

static void layouts_of_scalars_order_nothing(void **state)
{
    const PJRT_Layouts_Extension *x =
        plugin_extension(PJRT_Extension_Type_Layouts);
    PJRT_Layouts_MemoryLayout *l[2];

    (void)state;
    DO(t, Client_TopologyDescription, .client = client);
    ok(layout_of_a_scalar(&l[0]), "of a client");
    ok(layout_ahead(t.topology, &l[1]), "of a topology");
    for (int i = 0; i < 2; i++) {
        PJRT_Layouts_MemoryLayout_Destroy_Args d = {
            .struct_size = PJRT_Layouts_MemoryLayout_Destroy_Args_STRUCT_SIZE,
            .layout = l[i]};

        ok(x->PJRT_Layouts_MemoryLayout_Destroy(&d), "Destroy");
    }
    DO(s, TopologyDescription_MakeCanonicalShapeForMemorySpace,
       .topology = t.topology, .memory_space_kind_id = 1,
       .element_type = PJRT_Buffer_Type_F32);
    s.serialized_shape_deleter(s.serialized_shape);
}

/* Registries are the process's: what has no name could not be found. */
static void nothing_without_a_name_is_registered(void **state)
{
    const PJRT_FFI_Extension *x = plugin_extension(PJRT_Extension_Type_FFI);
    const PJRT_Gpu_Custom_Call *g =
        plugin_extension(PJRT_Extension_Type_Gpu_Custom_Call);
    PJRT_FFI_Register_Handler_Args a = {
        .struct_size = PJRT_FFI_Register_Handler_Args_STRUCT_SIZE};
    PJRT_Gpu_Register_Custom_Call_Args b = {
        .struct_size = PJRT_Gpu_Register_Custom_Call_Args_STRUCT_SIZE,
        .api_version = 1};
    PJRT_FFI_Type_Register_Args t = {
        .struct_size = PJRT_FFI_Type_Register_Args_STRUCT_SIZE};

    (void)state;
    wrong(x->register_handler(&a), PJRT_Error_Code_INVALID_ARGUMENT,
          "a handler for platform ;");
    a.platform_name = "xpu";
    a.platform_name_size = 3;
    wrong(x->register_handler(&a), PJRT_Error_Code_INVALID_ARGUMENT,
          "target without a name");
    wrong(g->custom_call(&b), PJRT_Error_Code_INVALID_ARGUMENT,
          "target without a name");
    wrong(x->type_register(&t), PJRT_Error_Code_INVALID_ARGUMENT,
          "type without a name");
}

TESTS(empty, T(a_program_without_arguments_and_outputs_runs),
      T(scalars_have_no_dimensions), T(empty_arrays_are_copied),
      T(errors_may_have_no_words), T(nothing_is_said_of_how_to_compile),
      T(nothing_saved_is_refused), T(layouts_of_scalars_order_nothing),
      T(nothing_without_a_name_is_registered))
