/* Executables: compiled, questioned, saved, loaded, deleted. */
#include "plugin_test.h"

#include <dlfcn.h>
#include <unistd.h>

/* CompileOptionsProto: one replica, one partition. */
static const char options[] = {0x1a, 4, 0x20, 1, 0x28, 1};

static const char text[] = "HloModule jit_twice\n"
                           "ENTRY main {\n"
                           "  p = f32[4]{0} parameter(0)\n"
                           "  q = f32[2,3]{1,0} parameter(1)\n"
                           "  s = f32[4]{0} add(p, p)\n"
                           "  n = f32[2,3]{1,0} negate(q)\n"
                           "  ROOT r = (f32[4]{0}, f32[2,3]{1,0}) tuple(s, n)\n"
                           "}\n";

static PJRT_Program hlo(void)
{
    return (PJRT_Program){.struct_size = PJRT_Program_STRUCT_SIZE,
                          .code = (char *)(uintptr_t)text,
                          .code_size = sizeof text - 1,
                          .format = "hlo_text",
                          .format_size = 8};
}

static PJRT_LoadedExecutable *compile(void)
{
    PJRT_Program p = hlo();

    DO(a, Client_Compile, .client = client, .program = &p,
       .compile_options = options, .compile_options_size = sizeof options);
    return a.executable;
}

static PJRT_Executable *executable_of(PJRT_LoadedExecutable *l)
{
    DO(g, LoadedExecutable_GetExecutable, .loaded_executable = l);
    return g.executable;
}

static void release(PJRT_Executable *e)
{
    DO(a, Executable_Destroy, .executable = e);
}

/* 2 x [1,2,3,4], and the negative of 1 to 6. */
static void runs_right(PJRT_LoadedExecutable *l)
{
    static const int64_t dims[] = {2, 3};
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
    PJRT_Buffer *in[2] = {put_f32(x, 4), NULL}, *out[2];

    ok(put(PJRT_Buffer_Type_F32, x, dims, 2, NULL, 0, &in[1]), "put");
    ok(execute(l, in, 2, out, -1), "execute");
    holds_f32(out[0], (float[]){2, 4, 6, 8}, 4);
    ok(get(out[1], y, sizeof y, NULL), "get");
    for (int i = 0; i < 6; i++)
        assert_true(y[i] == -x[i]);
    for (int i = 0; i < 2; i++) {
        destroy(in[i]);
        destroy(out[i]);
    }
}

static void programs_are_compiled(void **state)
{
    PJRT_LoadedExecutable *l = compile(), *again = compile();

    (void)state;
    assert_ptr_not_equal(l, again);
    runs_right(l);
    unload(l);
    runs_right(again);
    unload(again);
}

/* One parameter that is a tuple of all arguments, as PyTorch/XLA has it of very
 * many: they are handed over one by one. */
static void tupled_arguments_come_one_by_one(void **state)
{
    static char tupled[] = "HloModule jit_tupled\n"
                           "ENTRY main {\n"
                           "  t = (f32[4]{0}, f32[4]{0}) parameter(0)\n"
                           "  p = f32[4]{0} get-tuple-element(t), index=0\n"
                           "  q = f32[4]{0} get-tuple-element(t), index=1\n"
                           "  ROOT s = f32[4]{0} subtract(p, q)\n"
                           "}\n";
    /* parameter_is_tupled_arguments */
    static const char with[] = {0x10, 1, 0x1a, 4, 0x20, 1, 0x28, 1};
    PJRT_Program p = hlo();
    float x[4] = {1, 2, 3, 4}, y[4] = {5, 5, 5, 5};
    PJRT_Buffer *in[2] = {put_f32(x, 4), put_f32(y, 4)}, *out[1];

    (void)state;
    p.code = tupled;
    p.code_size = sizeof tupled - 1;
    DO(a, Client_Compile, .client = client, .program = &p,
       .compile_options = with, .compile_options_size = sizeof with);
    ok(execute(a.executable, in, 2, out, -1), "execute");
    holds_f32(out[0], (float[]){-4, -3, -2, -1}, 4);
    destroy(in[0]);
    destroy(in[1]);
    destroy(out[0]);
    unload(a.executable);
}

static void executables_answer(void **state)
{
    static const int64_t dims[] = {4, 2, 3};
    static const size_t ranks[] = {1, 2};
    PJRT_LoadedExecutable *l = compile();
    PJRT_Executable *e = executable_of(l);

    (void)state;
    DO(print, LoadedExecutable_Fingerprint, .executable = l);
    DO(same, Executable_Fingerprint, .executable = e);
    assert_int_equal(print.executable_fingerprint_size, 16);
    assert_memory_equal(print.executable_fingerprint,
                        same.executable_fingerprint, 16);
    unload(l); /* the other handle lives on */
    DO(name, Executable_Name, .executable = e);
    assert_memory_equal(name.executable_name, "jit_twice",
                        name.executable_name_size);
    DO(nr, Executable_NumReplicas, .executable = e);
    DO(np, Executable_NumPartitions, .executable = e);
    DO(no, Executable_NumOutputs, .executable = e);
    assert_int_equal(nr.num_replicas, 1);
    assert_int_equal(np.num_partitions, 1);
    assert_int_equal(no.num_outputs, 2);
    DO(code, Executable_SizeOfGeneratedCodeInBytes, .executable = e);
    assert_true(code.size_in_bytes > 100);
    DO(types, Executable_OutputElementTypes, .executable = e);
    assert_int_equal(types.num_output_types, 2);
    assert_int_equal(types.output_types[1], PJRT_Buffer_Type_F32);
    DO(shapes, Executable_OutputDimensions, .executable = e);
    assert_int_equal(shapes.num_outputs, 2);
    assert_memory_equal(shapes.dims, dims, sizeof dims);
    assert_memory_equal(shapes.dim_sizes, ranks, sizeof ranks);
    release(e);
}

static void executables_know_their_memory(void **state)
{
    PJRT_LoadedExecutable *l = compile();
    PJRT_Executable *e = executable_of(l);

    (void)state;
    unload(l);
    DO(kinds, Executable_OutputMemoryKinds, .executable = e);
    DO(params, Executable_ParameterMemoryKinds, .executable = e);
    assert_int_equal(kinds.num_outputs, 2);
    assert_int_equal(params.num_parameters, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kinds.memory_kind_sizes[i], 6);
        assert_memory_equal(kinds.memory_kinds[i], "device", 6);
        assert_memory_equal(params.memory_kinds[i], "device",
                            params.memory_kind_sizes[i]);
    }
    DO(m, Executable_GetCompiledMemoryStats, .executable = e);
    assert_int_equal(m.argument_size_in_bytes, 40);
    assert_int_equal(m.output_size_in_bytes, 40);
    assert_int_equal(m.alias_size_in_bytes, 0);
    assert_int_equal(m.host_argument_size_in_bytes, 0);
    assert_true(m.host_generated_code_size_in_bytes > 100);
    if (mode != SIZE_LEAST)
        assert_true(m.peak_memory_in_bytes >= 80);
    release(e);
}

static double cost(const PJRT_Executable_GetCostAnalysis_Args *a,
                   const char *name)
{
    for (size_t i = 0; i < a->num_properties; i++)
        if (!strcmp(a->properties[i].name, name))
            return (double)a->properties[i].float_value;
    fail_msg("no cost is called '%s'", name);
    return 0;
}

static void executables_know_their_cost(void **state)
{
    PJRT_LoadedExecutable *l = compile();
    PJRT_Executable *e = executable_of(l);

    (void)state;
    unload(l);
    DO(a, Executable_GetCostAnalysis, .executable = e);
    assert_true(cost(&a, "flops") == 10);
    assert_true(cost(&a, "bytes accessed") == 80);
    assert_true(cost(&a, "bytes accessed0{}") == 16);
    assert_true(cost(&a, "bytes accessed1{}") == 24);
    assert_true(cost(&a, "bytes accessedout{}") == 40);
    release(e);
}

static void options_come_back(void **state)
{
    PJRT_LoadedExecutable *l = compile();
    PJRT_Executable *e = executable_of(l);

    (void)state;
    DO(a, Executable_GetCompileOptions, .executable = e);
    unload(l);
    release(e);
    assert_int_equal(a.serialized_bytes_size, sizeof options);
    assert_memory_equal(a.serialized_bytes, options, sizeof options);
    a.serialized_compile_options_deleter(a.serialized_compile_options);
}

static void loaded_executables_know_their_devices(void **state)
{
    PJRT_LoadedExecutable *l = compile();

    (void)state;
    DO(d, LoadedExecutable_AddressableDevices, .executable = l);
    assert_int_equal(d.num_addressable_devices, 1);
    assert_ptr_equal(d.addressable_devices[0], device);
    DO(ids, LoadedExecutable_AddressableDeviceLogicalIds, .executable = l);
    assert_int_equal(ids.num_addressable_device_logical_ids, 1);
    assert_int_equal(ids.addressable_device_logical_ids[0].replica, 0);
    assert_int_equal(ids.addressable_device_logical_ids[0].partition, 0);
    DO(a, LoadedExecutable_GetDeviceAssignment, .executable = l);
    assert_int_equal(a.serialized_bytes_size, 9);
    assert_memory_equal(a.serialized_bytes, "\x08\1\x10\1\x1a\3\x0a\1\0", 9);
    a.serialized_device_assignment_deleter(a.serialized_device_assignment);
    unload(l);
}

static void a_deleted_executable_answers_but_does_not_run(void **state)
{
    PJRT_LoadedExecutable *l = program(1, false);
    float x[4] = {1};
    PJRT_Buffer *in = put_f32(x, 4), *out[1];

    (void)state;
    DO(before, LoadedExecutable_IsDeleted, .executable = l);
    assert_false(before.is_deleted);
    for (int i = 0; i < 2; i++) {
        DO(d, LoadedExecutable_Delete, .executable = l);
    }
    DO(after, LoadedExecutable_IsDeleted, .executable = l);
    assert_true(after.is_deleted);
    wrong(execute(l, &in, 1, out, -1), PJRT_Error_Code_INVALID_ARGUMENT,
          "jit_copy was deleted");
    DO(d, LoadedExecutable_AddressableDevices, .executable = l);
    assert_int_equal(d.num_addressable_devices, 1);
    release(executable_of(l));
    destroy(in);
    unload(l);
}

/* A program takes its arguments as it was told that they lie. */
static void arguments_that_lie_otherwise_are_refused(void **state)
{
    static const int64_t dims[] = {2, 3}, order[] = {0, 1};
    PJRT_Buffer_MemoryLayout layout = tiled(order, 2);
    PJRT_LoadedExecutable *l = compile();
    float x[6] = {0};
    PJRT_Buffer *in[2] = {put_f32(x, 4), NULL}, *out[2];

    (void)state;
    DO(a, Client_BufferFromHostBuffer, .client = client, .data = x,
       .type = PJRT_Buffer_Type_F32, .dims = dims, .num_dims = 2,
       .memory = memory, .device_layout = &layout);
    await(a.done_with_host_buffer);
    in[1] = a.buffer;
    wrong(execute(l, in, 2, out, -1), PJRT_Error_Code_INVALID_ARGUMENT,
          "jit_twice: argument 1 has layout {0,1}, the program wants {1,0}");
    destroy(in[0]);
    destroy(in[1]);
    unload(l);
}

/* ---- saved ---- */

static sd_buf bytes_of(PJRT_Executable *e)
{
    sd_buf b = {0};

    DO(s, Executable_Serialize, .executable = e);
    sd_buf_add(&b, s.serialized_bytes, s.serialized_bytes_size);
    s.serialized_executable_deleter(s.serialized_executable);
    return b;
}

static void executables_come_back_from_bytes(void **state)
{
    PJRT_LoadedExecutable *l = compile(), *again = NULL;
    PJRT_Executable *e = executable_of(l);
    sd_buf b = bytes_of(e);

    (void)state;
    unload(l);
    release(e);
    ok(load(&b, &again), "load");
    runs_right(again);
    unload(again);
    b.at[b.len / 2] ^= 4;
    wrong(load(&b, &again), PJRT_Error_Code_DATA_LOSS, "damaged");
    b.len = 20;
    wrong(load(&b, &again), PJRT_Error_Code_INVALID_ARGUMENT, "executable");
    sd_buf_finish(&b);
}

/* The bytes may be anybody's. */
static void damaged_layouts_are_refused(void **state)
{
    static const struct {
        const char *bytes, *says;
        size_t n;
    } c[] = {{"\0\0", NULL, 2},
             {"\0\0\0", "layouts of 3 dimensions, not 2", 3},
             {"\0\1", "no permutation", 2},
             {"", "layouts of 0 dimensions, not 2", 0}};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(c); i++) {
        sd_buf b = saved_layouts(c[i].bytes, c[i].n);
        PJRT_LoadedExecutable *l = NULL;
        PJRT_Error *e = load(&b, &l);

        sd_buf_finish(&b);
        if (c[i].says) {
            wrong(e, PJRT_Error_Code_INVALID_ARGUMENT, c[i].says);
        } else {
            ok(e, "load");
            unload(l);
        }
    }
}

/* Compiled for device 0, loaded for device 1. */
static void a_load_may_name_another_device(void **state)
{
    static const char other[] = {0x1a, 15,   0x20, 1,    0x28, 1,  0x4a, 9, 8,
                                 1,    0x10, 1,    0x1a, 3,    10, 1,    1};
    sd_buf b = saved(1, false);

    (void)state;
    if (mode == SIZE_LEAST) { /* the options came later */
        sd_buf_finish(&b);
        return;
    }
    DO(a, Executable_DeserializeAndLoad, .client = client,
       .serialized_executable = b.at, .serialized_executable_size = b.len,
       .overridden_serialized_compile_options = other,
       .overridden_serialized_compile_options_size = sizeof other);
    sd_buf_finish(&b);
    DO(d, LoadedExecutable_AddressableDevices,
       .executable = a.loaded_executable);
    DO(all, Client_Devices, .client = client);
    assert_ptr_equal(d.addressable_devices[0], all.devices[1]);
    unload(a.loaded_executable);
}

/* A portable program has no devices: it runs where its caller says. */
static void a_portable_program_runs_anywhere(void **state)
{
    static const char portable[] = {0x1a, 4, 0x20, 1, 0x28, 1, 0x20, 1};
    float x[4] = {1, 2, 3, 4};
    PJRT_Buffer *here = put_f32(x, 4);

    (void)state;
    DO(all, Client_Devices, .client = client);
    DO(t, Client_TopologyDescription, .client = client);
    PJRT_Program p = hlo();
    DO(c, Compile, .topology = t.topology, .program = &p,
       .compile_options = portable, .compile_options_size = sizeof portable);
    DO(l, Client_Load, .client = client, .executable = c.executable);
    DO(a, LoadedExecutable_GetDeviceAssignment,
       .executable = l.loaded_executable);
    assert_int_equal(a.serialized_bytes_size, 0);
    a.serialized_device_assignment_deleter(a.serialized_device_assignment);
    for (int i = 0; i < 2; i++) {
        static const int64_t dims[] = {2, 3};
        float y[6] = {1, 2, 3, 4, 5, 6};
        PJRT_Buffer *in[2], *out[2], *const *args[] = {in}, **outs[] = {out};
        PJRT_ExecuteOptions o = {.struct_size =
                                     PJRT_ExecuteOptions_STRUCT_SIZE};

        DO(one, Buffer_CopyToDevice, .buffer = here,
           .dst_device = all.devices[i]);
        DO(two, Client_BufferFromHostBuffer, .client = client, .data = y,
           .type = PJRT_Buffer_Type_F32, .dims = dims, .num_dims = 2,
           .device = all.devices[i]);
        await(two.done_with_host_buffer);
        in[0] = one.dst_buffer;
        in[1] = two.buffer;
        DO(run, LoadedExecutable_Execute, .executable = l.loaded_executable,
           .options = &o, .argument_lists = args, .num_devices = 1,
           .num_args = 2, .output_lists = outs,
           .execute_device = all.devices[i]);
        DO(d, Buffer_Device, .buffer = out[0]);
        assert_ptr_equal(d.device, all.devices[i]);
        holds_f32(out[0], (float[]){2, 4, 6, 8}, 4);
        for (int k = 0; k < 2; k++) {
            destroy(in[k]);
            destroy(out[k]);
        }
    }
    destroy(here);
    release(c.executable);
    unload(l.loaded_executable);
}

static void a_program_for_another_machine_is_refused(void **state)
{
    device_desc d;
    thunk_program *p;
    sd_buf body = {0}, b = {0};
    PJRT_LoadedExecutable *l = NULL;

    (void)state;
    assert_true(device_desc_of_name("cl:pvc", &d));
    p = thunk_program_create("jit_gpu", &d);
    assert_null(thunk_save(p, &body));
    thunk_program_release(p);
    sd_buf_str(&b, "SDEXECUT");
    sd_buf_u32(&b, 1);
    sd_buf_u64(&b, 0);
    sd_buf_u64(&b, sd_hash("", 0, 1));
    sd_buf_add(&b, body.at, body.len);
    sd_buf_finish(&body);
    wrong(load(&b, &l), PJRT_Error_Code_FAILED_PRECONDITION, "cl:pvc");
    sd_buf_finish(&b);
}

/* ---- the optimized program ---- */

static void the_optimized_program_is_asked_for_twice(void **state)
{
    PJRT_LoadedExecutable *l = compile(), *plain = program(1, false);
    PJRT_Executable *e = executable_of(l), *f = executable_of(plain);
    PJRT_Program p = {.struct_size = PJRT_Program_STRUCT_SIZE};
    char room[1];

    (void)state;
    unload(l);
    unload(plain);
    BAD(UNIMPLEMENTED, "jit_copy carries no HLO protobuf",
        Executable_OptimizedProgram, .executable = f, .program = &p);
    DO(a, Executable_OptimizedProgram, .executable = e, .program = &p);
    assert_int_equal(p.format_size, 15);
    assert_memory_equal(p.format, "hlo_with_config", 15);
    assert_true(p.code_size > 50);
    char *code = malloc(p.code_size);
    size_t size = p.code_size;

    p.code = room;
    p.code_size = 1;
    BAD(INVALID_ARGUMENT, "1 bytes of room", Executable_OptimizedProgram,
        .executable = e, .program = &p);
    p.code = code;
    p.code_size = size;
    DO(b, Executable_OptimizedProgram, .executable = e, .program = &p);
    assert_int_equal(p.code_size, size);
    assert_int_equal(code[0], 10); /* field 1: the module */
    assert_non_null(memmem(code, size, "jit_twice", 9));
    free(code);
    release(e);
    release(f);
}

/* ---- what does not compile ---- */

static void bad_programs_and_options_are_errors(void **state)
{
    PJRT_Program p = hlo();

    (void)state;
    BAD(INVALID_ARGUMENT,
        "PJRT_Client_Compile: failed to deserialize CompileOptionsProto",
        Client_Compile, .client = client, .program = &p,
        .compile_options = "\xff\xff", .compile_options_size = 2);
    p.format = "invalid";
    p.format_size = 7;
    BAD(INVALID_ARGUMENT, "'invalid'", Client_Compile, .client = client,
        .program = &p, .compile_options = options,
        .compile_options_size = sizeof options);
    p = hlo();
    BAD(INVALID_ARGUMENT, "compiling for device 2: there are 0 to 1",
        Client_Compile, .client = client, .program = &p,
        .compile_options = "\x1a\4\x20\2\x28\2", .compile_options_size = 6);
    p.code_size = 60;
    BAD(INVALID_ARGUMENT, "", Client_Compile, .client = client, .program = &p,
        .compile_options = options, .compile_options_size = sizeof options);
    p.struct_size = 32;
    BAD(INVALID_ARGUMENT, "PJRT_Program: struct_size is 32, at least 48",
        Client_Compile, .client = client, .program = &p);
}

/* The same library alone in a folder. */
static void without_the_compiler_nothing_is_compiled(void **state)
{
    char dir[] = "/tmp/sundog-plugin-XXXXXX", path[64];
    sd_buf b = {0};
    void *lib;
    const PJRT_Api *(*entry)(void), *before = api;
    PJRT_Program p = hlo();

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/libsundog.so", dir);
    assert_null(sd_file_read(library, &b));
    assert_null(sd_file_write(path, b.at, b.len));
    sd_buf_finish(&b);
    assert_non_null(lib = dlopen(path, RTLD_NOW | RTLD_LOCAL));
    *(void **)&entry = dlsym(lib, "GetPjrtApi");
    api = entry();
    DO(t, TopologyDescription_Create, .num_options = 0);
    BAD(NOT_FOUND, "libsundog-compiler.so", Compile, .topology = t.topology,
        .program = &p);
    DO(x, TopologyDescription_Destroy, .topology = t.topology);
    api = before;
    dlclose(lib);
    unlink(path);
    rmdir(dir);
}

/* ---- ahead of time ---- */

static void programs_are_compiled_without_a_client(void **state)
{
    PJRT_Program p = hlo();

    (void)state;
    DO(t, Client_TopologyDescription, .client = client);
    DO(c, Compile, .topology = t.topology, .program = &p,
       .compile_options = options, .compile_options_size = sizeof options);
    for (int i = 0; i < 2; i++) {
        DO(l, Client_Load, .client = client, .executable = c.executable,
           .compile_options = options, .compile_options_size = sizeof options);
        runs_right(l.loaded_executable);
        unload(l.loaded_executable);
    }
    release(c.executable);
    DO(gpu, TopologyDescription_Create, .topology_name = "cl:pvc",
       .topology_name_size = 6);
    DO(g, Compile, .topology = gpu.topology, .program = &p,
       .compile_options = options, .compile_options_size = sizeof options,
       .client = client);
    BAD(FAILED_PRECONDITION, "built for cl:pvc", Client_Load, .client = client,
        .executable = g.executable);
    release(g.executable);
    DO(x, TopologyDescription_Destroy, .topology = gpu.topology);
}

TESTS(executable, T(programs_are_compiled), T(tupled_arguments_come_one_by_one),
      T(executables_answer), T(executables_know_their_memory),
      T(executables_know_their_cost), T(options_come_back),
      T(loaded_executables_know_their_devices),
      T(a_deleted_executable_answers_but_does_not_run),
      T(arguments_that_lie_otherwise_are_refused),
      T(executables_come_back_from_bytes), T(damaged_layouts_are_refused),
      T(a_load_may_name_another_device), T(a_portable_program_runs_anywhere),
      T(a_program_for_another_machine_is_refused),
      T(the_optimized_program_is_asked_for_twice),
      T(bad_programs_and_options_are_errors),
      T(without_the_compiler_nothing_is_compiled),
      T(programs_are_compiled_without_a_client))
