/* What a framework does with programs, where memory runs out: callbacks of the
 * host, handlers of foreign calls, questions, saving, runs that wait. */
#include "memory_test.h"

#include "ffi_abi.h"
#include "saved_by_hand.h"

#include <stdio.h>

static const int64_t four[] = {4};

static PJRT_Error *put_four(PJRT_Buffer **out)
{
    return put(SD_F32, 1, four, numbers,
               PJRT_HostBufferSemantics_kImmutableOnlyDuringCall, out);
}

/* ---- callbacks of the host ---- */

static PJRT_Error *on_send(PJRT_Chunk *c, PJRT_CallbackError *make_error,
                           size_t total, bool is_last, void *arg)
{
    (void)make_error, (void)total, (void)is_last, (void)arg;
    c->deleter(c->data, c->deleter_arg);
    return NULL;
}

static void on_recv(PJRT_CopyToDeviceStream *s, void *arg)
{
    float answer[4] = {5, 6, 7, 8};
    PJRT_Chunk c = {.data = answer, .size = sizeof answer};
    ARGS(add, CopyToDeviceStream_AddChunk, .stream = s, .chunk = &c);
    ARGS(end, CopyToDeviceStream_Destroy, .stream = s);
    PJRT_Error *e;

    (void)arg;
    assert_null(api->PJRT_CopyToDeviceStream_AddChunk(&add));
    if ((e = await(add.transfer_complete)))
        take_error(e, "chunk");
    assert_null(api->PJRT_CopyToDeviceStream_Destroy(&end));
}

static PJRT_Error *programs_ask_the_host(const void *saved, uint64_t *sum)
{
    PJRT_SendCallbackInfo send = {2, NULL, on_send}, *sends[] = {&send};
    PJRT_RecvCallbackInfo recv = {3, NULL, on_recv}, *recvs[] = {&recv};
    PJRT_ExecuteOptions o = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE,
                             .send_callbacks = sends,
                             .recv_callbacks = recvs,
                             .num_send_ops = 1,
                             .num_recv_ops = 1};
    PJRT_LoadedExecutable *l;
    PJRT_Buffer *in, *out;
    PJRT_Error *e;

    if ((e = load(saved, &l)) || (e = put_four(&in)) ||
        (e = execute(l, &in, 1, &out, 1, &o)))
        return e;
    return get(out, 16, sum);
}

/* ---- handlers ---- */

#define FFI(name, type, ...) \
    XLA_FFI_##type##_Args name = { \
        .struct_size = XLA_FFI_##type##_Args_STRUCT_SIZE, __VA_ARGS__}

static int64_t state_type, user_type;
static _Atomic int nstate; /* states that are alive */

static void end_state(void *state)
{
    (void)state;
    nstate--;
}

static bool tells_metadata(XLA_FFI_CallFrame *f)
{
    XLA_FFI_Metadata *m;

    if (!f->extension_start)
        return false;
    m = ((XLA_FFI_Metadata_Extension *)f->extension_start)->metadata;
    m->api_version.major_version = XLA_FFI_API_MAJOR;
    m->api_version.minor_version = XLA_FFI_API_MINOR;
    return true;
}

static XLA_FFI_Error *instantiate(XLA_FFI_CallFrame *f)
{
    static int state;
    XLA_FFI_TypeId id = {state_type};
    FFI(a, State_Set, .ctx = f->ctx, .stage = f->stage, .type_id = &id,
        .state = &state);
    XLA_FFI_Error *e;

    if (tells_metadata(f))
        return NULL;
    if (!(e = f->api->XLA_FFI_State_Set(&a)))
        nstate++;
    return e;
}

typedef struct { /* in the handler's own memory, which its task frees */
    const XLA_FFI_Api *api;
    XLA_FFI_InvokeContext *ctx;
    XLA_FFI_Future *future;
    const float *in;
    float *out;
    float factor;
} job;

static void free_job(job *j)
{
    FFI(a, DeviceMemory_Free, .ctx = j->ctx, .size = sizeof *j, .data = j);

    assert_null(j->api->XLA_FFI_DeviceMemory_Free(&a));
}

static void work(void *data)
{
    job *j = data;
    FFI(a, Future_SetAvailable, .future = j->future);
    const XLA_FFI_Api *own = j->api;

    for (int i = 0; i < 4; i++)
        j->out[i] = j->in[i] * j->factor;
    free_job(j);
    assert_null(own->XLA_FFI_Future_SetAvailable(&a));
}

static XLA_FFI_Error *schedule(XLA_FFI_CallFrame *f, job *j)
{
    FFI(later, Future_Create, .future = NULL);
    FFI(task, ThreadPool_Schedule, .ctx = f->ctx, .task = work, .data = j);
    XLA_FFI_Error *e = f->api->XLA_FFI_Future_Create(&later);

    if (e) {
        free_job(j);
        return e;
    }
    f->future = j->future = later.future;
    if ((e = f->api->XLA_FFI_ThreadPool_Schedule(&task))) {
        FFI(none, Future_SetAvailable, .future = later.future);

        free_job(j);
        assert_null(f->api->XLA_FFI_Future_SetAvailable(&none));
    }
    return e;
}

/* out = in times the user's number, later, in a task. */
static XLA_FFI_Error *multiply(XLA_FFI_CallFrame *f)
{
    XLA_FFI_TypeId id = {user_type};
    FFI(user, InvokeContext_Get, .ctx = f->ctx, .type_id = &id);
    FFI(room, DeviceMemory_Allocate, .ctx = f->ctx, .size = sizeof(job));
    XLA_FFI_Error *e;
    job *j;

    if (tells_metadata(f))
        return NULL;
    if ((e = f->api->XLA_FFI_InvokeContext_Get(&user)) ||
        (e = f->api->XLA_FFI_DeviceMemory_Allocate(&room)))
        return e;
    j = room.data;
    *j = (job){.api = f->api,
               .ctx = f->ctx,
               .in = ((XLA_FFI_Buffer *)f->args.args[0])->data,
               .out = ((XLA_FFI_Buffer *)f->rets.rets[0])->data,
               .factor = *(const float *)user.data};
    return schedule(f, j);
}

static XLA_FFI_Error *refuse(XLA_FFI_CallFrame *f)
{
    FFI(a, Error_Create, .message = "not today",
        .errc = XLA_FFI_Error_Code_ABORTED);

    return tells_metadata(f) ? NULL : f->api->XLA_FFI_Error_Create(&a);
}

static PJRT_Error *enter(const char *name, void *first, void *handler)
{
    const PJRT_Gpu_Custom_Call *x =
        extension(PJRT_Extension_Type_Gpu_Custom_Call);
    ARGS(a, Gpu_Register_Custom_Call, .function_name = name,
         .function_name_size = strlen(name), .api_version = 1,
         .handler_instantiate = first, .handler_execute = handler);

    return x->custom_call(&a);
}

static PJRT_Error *enter_type(const char *name, void (*end)(void *),
                              int64_t *id)
{
    const PJRT_FFI_Extension *x = extension(PJRT_Extension_Type_FFI);
    PJRT_FFI_Type_Info info = {.deleter = end};
    ARGS(a, FFI_Type_Register, .type_name = name,
         .type_name_size = strlen(name), .type_info = &info);
    PJRT_Error *e = x->type_register(&a);

    *id = a.type_id;
    return e;
}

/* What failed to be entered is not there: it is entered again. */
static PJRT_Error *handlers_are_entered(const void *ctx, uint64_t *sum)
{
    static int nname;
    char name[32];
    int64_t id;
    PJRT_Error *e[2];

    (void)ctx, (void)sum;
    snprintf(name, sizeof name, "test.%d", nname++);
    e[0] = enter(name, NULL, (void *)(uintptr_t)refuse);
    e[1] = enter_type(name, NULL, &id);
    if (!e[0])
        return e[1];
    if (e[1])
        take_error(e[1], name);
    return e[0];
}

static void end_context(void *c)
{
    ARGS(a, ExecuteContext_Destroy, .context = c);

    assert_null(api->PJRT_ExecuteContext_Destroy(&a));
}

static PJRT_Error *handlers_are_called(const void *saved, uint64_t *sum)
{
    static float factor = 3;
    const PJRT_FFI_Extension *x = extension(PJRT_Extension_Type_FFI);
    PJRT_ExecuteOptions o = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE};
    ARGS(c, ExecuteContext_Create, .extension_start = NULL);
    ARGS(u, FFI_UserData_Add, .user_data = {user_type, &factor});
    PJRT_LoadedExecutable *l;
    PJRT_Buffer *in, *out;
    PJRT_Error *e;

    if ((e = api->PJRT_ExecuteContext_Create(&c)))
        return e;
    keep(c.context, end_context);
    u.context = o.context = c.context;
    if ((e = x->user_data_add(&u)) || (e = load(saved, &l)) ||
        (e = put_four(&in)) || (e = execute(l, &in, 1, &out, 1, &o)))
        return e;
    return get(out, 16, sum);
}

static PJRT_Error *handlers_refuse(const void *saved, uint64_t *sum)
{
    PJRT_LoadedExecutable *l;
    PJRT_Buffer *in, *out;
    PJRT_Error *e;

    (void)sum;
    if ((e = load(saved, &l)) || (e = put_four(&in)))
        return e;
    return meant(execute(l, &in, 1, &out, 1, NULL), PJRT_Error_Code_ABORTED);
}

/* ---- programs: saved, loaded, asked ---- */

static PJRT_Error *ask(PJRT_Executable *x)
{
    ARGS(cost, Executable_GetCostAnalysis, .executable = x);
    ARGS(kinds, Executable_OutputMemoryKinds, .executable = x);
    ARGS(from, Executable_ParameterMemoryKinds, .executable = x);
    ARGS(types, Executable_OutputElementTypes, .executable = x);
    ARGS(shapes, Executable_OutputDimensions, .executable = x);
    ARGS(bytes, Executable_GetCompiledMemoryStats, .executable = x);
    ARGS(print, Executable_Fingerprint, .executable = x);
    PJRT_Error *e;

    if ((e = api->PJRT_Executable_GetCostAnalysis(&cost)) ||
        (e = api->PJRT_Executable_OutputMemoryKinds(&kinds)) ||
        (e = api->PJRT_Executable_ParameterMemoryKinds(&from)) ||
        (e = api->PJRT_Executable_OutputElementTypes(&types)) ||
        (e = api->PJRT_Executable_OutputDimensions(&shapes)) ||
        (e = api->PJRT_Executable_GetCompiledMemoryStats(&bytes)))
        return e;
    return api->PJRT_Executable_Fingerprint(&print);
}

static PJRT_Error *save_again(PJRT_Executable *x, uint64_t *sum)
{
    ARGS(s, Executable_Serialize, .executable = x);
    ARGS(o, Executable_GetCompileOptions, .executable = x);
    PJRT_Error *e;

    if ((e = api->PJRT_Executable_Serialize(&s)))
        return e;
    *sum = sd_hash(s.serialized_bytes, s.serialized_bytes_size, *sum);
    s.serialized_executable_deleter(s.serialized_executable);
    if ((e = api->PJRT_Executable_GetCompileOptions(&o)))
        return e;
    o.serialized_compile_options_deleter(o.serialized_compile_options);
    return NULL;
}

/* With options that name the other device, which it then runs on. */
static PJRT_Error *load_there(PJRT_Executable *x)
{
    static const char options[] = {0x1a, 15,   0x20, 1,    0x28, 1,  0x4a, 9, 8,
                                   1,    0x10, 1,    0x1a, 3,    10, 1,    1};
    ARGS(a, Client_Load, .client = client, .executable = x,
         .compile_options = options, .compile_options_size = sizeof options);
    ARGS(d, LoadedExecutable_GetDeviceAssignment, .executable = NULL);
    ARGS(end, LoadedExecutable_Destroy, .executable = NULL);
    PJRT_Error *e = api->PJRT_Client_Load(&a);

    if (e)
        return e;
    d.executable = end.executable = a.loaded_executable;
    e = api->PJRT_LoadedExecutable_GetDeviceAssignment(&d);
    assert_null(api->PJRT_LoadedExecutable_Destroy(&end));
    return e;
}

static PJRT_Error *programs_answer(const void *saved, uint64_t *sum)
{
    ARGS(g, LoadedExecutable_GetExecutable, .loaded_executable = NULL);
    PJRT_LoadedExecutable *l;
    PJRT_Error *e;

    if ((e = load(saved, &l)))
        return e;
    g.loaded_executable = l;
    if ((e = api->PJRT_LoadedExecutable_GetExecutable(&g)))
        return e;
    keep_executable(g.executable);
    if ((e = ask(g.executable)) || (e = save_again(g.executable, sum)))
        return e;
    return load_there(g.executable);
}

/* A run that waits for its argument is called off; another gets it. */
static PJRT_Error *runs_wait(const void *saved, uint64_t *sum)
{
    PJRT_ExecuteOptions o = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE,
                             .launch_id = 70};
    ARGS(p, Device_PoisonExecution, .device = device, .launch_id = 70,
         .error_code = PJRT_Error_Code_ABORTED, .error_message = "stop",
         .error_message_size = 4);
    PJRT_LoadedExecutable *l;
    PJRT_Buffer *alias, *b, *out[2];
    PJRT_Event *done[2];
    static promise later;
    PJRT_Error *e;

    if ((e = load(saved, &l)) || (e = promise_buffer(&alias, &later)) ||
        (e = put_thousand(&b)))
        return e;
    for (int i = 0; i < 2; i++, o.launch_id++) {
        if ((e = start(l, &alias, 1, &out[i], 1, &o, &done[i])))
            return e;
        keep_event(done[i]);
    }
    if ((e = api->PJRT_Device_PoisonExecution(&p)) || (e = fulfil(&later, b)) ||
        (e = meant(ready(out[0]), PJRT_Error_Code_ABORTED)))
        return e;
    return get_result(out[1], sizeof numbers, sum);
}

/* ---- all of them ---- */

static long both(const char *name, scene fn, const sd_buf *saved)
{
    return fail_each(name, fn, saved) + fail_each_alone(name, fn, saved);
}

static long with_handlers(void)
{
    sd_buf call = saved_custom(
        "test.multiply", "{a = 1 : i64, b = dense<[1, 2]> : tensor<2xi32>, "
                         "c = {d = \"text\"}}");
    sd_buf bad = saved_custom("test.refuse", "{}");
    long n;

    assert_null(enter_type("test.state", end_state, &state_type));
    assert_null(enter_type("test.user", NULL, &user_type));
    assert_null(enter("test.multiply", (void *)(uintptr_t)instantiate,
                      (void *)(uintptr_t)multiply));
    assert_null(enter("test.refuse", NULL, (void *)(uintptr_t)refuse));
    n = both("handlers are entered", handlers_are_entered, NULL) +
        both("handlers are called", handlers_are_called, &call) +
        both("handlers refuse", handlers_refuse, &bad);
    assert_int_equal(nstate, 0);
    sd_buf_finish(&call);
    sd_buf_finish(&bad);
    return n;
}

long fail_each_program_call(const sd_buf *plain)
{
    const char *name = client->topology->at[0].desc.name;
    sd_buf channels = saved_channels(name);
    long n = both("programs ask the host", programs_ask_the_host, &channels) +
             both("programs answer", programs_answer, plain) +
             both("runs wait", runs_wait, plain);

    sd_buf_finish(&channels);
    if (!strncmp(name, "host", 4)) /* handlers are the host's */
        n += with_handlers();
    return n;
}
