/* The extension of our own, at the list's end: handlers for a kind of device,
 * and tensors of DLPack around a buffer's memory. */
#include "plugin_test.h"

#include "pjrt_sundog.h"

static const pjrt_sundog_extension *own(void)
{
    const PJRT_Extension_Base *e = plugin->extension_start;

    while (e->next)
        e = e->next;
    assert_int_equal(e->type, PJRT_SUNDOG_TYPE);
    return (const pjrt_sundog_extension *)(const void *)e;
}

static const float numbers[] = {1, 2, 3, 4, 5, 6};

static PJRT_Buffer *array(PJRT_Memory *m, const PJRT_Buffer_MemoryLayout *l,
                          PJRT_Buffer_Type type)
{
    static const int64_t dims[] = {2, 3};

    DO(a, Client_BufferFromHostBuffer, .client = client, .data = numbers,
       .type = type, .dims = dims, .num_dims = 2, .memory = m,
       .device_layout = (PJRT_Buffer_MemoryLayout *)(uintptr_t)l);
    await(a.done_with_host_buffer);
    return a.buffer;
}

static void *pointer_of(PJRT_Buffer *b)
{
    DO(p, Buffer_UnsafePointer, .buffer = b);
    return (void *)p.buffer_pointer;
}

/* DLManagedTensor, as DLPack 0.8 lays it out. */
typedef struct tensor tensor;
struct tensor {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
    void *manager;
    void (*deleter)(tensor *t);
};

static void shared_memory_stays(void **state)
{
    PJRT_Buffer *b = array(memory, NULL, PJRT_Buffer_Type_F32);
    pjrt_sundog_tensor a = {.struct_size = sizeof a, .wait = true};
    tensor *t, *second;

    (void)state;
    a.pointer = pointer_of(b);
    ok(own()->share(&a), "share");
    t = a.tensor;
    assert_ptr_equal(t->data, a.pointer);
    assert_int_equal(t->device_type, 1);
    assert_int_equal(t->ndim, 2);
    assert_int_equal(t->code, 2);
    assert_int_equal(t->bits, 32);
    assert_int_equal(t->lanes, 1);
    assert_int_equal(t->shape[1], 3);
    assert_int_equal(t->strides[0], 3);
    assert_int_equal(t->strides[1], 1);
    assert_int_equal(t->byte_offset, 0);
    ok(own()->share(&a), "once more");
    second = a.tensor;
    second->deleter(second);
    delete(b);
    assert_memory_equal(t->data, numbers, sizeof numbers);
    wrong(own()->share(&a), PJRT_Error_Code_INVALID_ARGUMENT, "deleted");
    destroy(b);
    assert_memory_equal(t->data, numbers, sizeof numbers);
    t->deleter(t);
    wrong(own()->share(&a), PJRT_Error_Code_NOT_FOUND,
          "no buffer showed the pointer");
}

/* Stands for Python's capsule: its name, and what it is about. */
typedef struct {
    const char *name;
    void *pointer;
} fake_capsule;

static int has_name(void *capsule, const char *name)
{
    return strcmp(((fake_capsule *)capsule)->name, name) == 0;
}

static void *its_pointer(void *capsule, const char *name)
{
    (void)name;
    return ((fake_capsule *)capsule)->pointer;
}

/* A consumer that takes a tensor gives its capsule another name. */
static void tensors_that_nobody_takes_go_with_their_capsule(void **state)
{
    PJRT_Buffer *b = array(memory, NULL, PJRT_Buffer_Type_F32);
    pjrt_sundog_tensor a = {.struct_size = sizeof a, .pointer = pointer_of(b)};
    pjrt_sundog_capsule c = {
        .struct_size = sizeof c, .is_valid = has_name, .pointer = its_pointer};
    fake_capsule f;

    (void)state;
    ok(own()->capsule(&c), "capsule");
    ok(own()->share(&a), "share");
    f = (fake_capsule){"used_dltensor", a.tensor};
    c.destructor(&f);
    assert_memory_equal(((tensor *)a.tensor)->data, numbers, sizeof numbers);
    f.name = "dltensor";
    c.destructor(&f); /* the leak checker asks whether the tensor went */
    destroy(b);
}

/* What is shared is not given away: a program that it is donated to works on a
 * copy. */
static void shared_memory_is_not_donated(void **state)
{
    static const int64_t four[] = {4};
    PJRT_LoadedExecutable *l = program(1, true);
    pjrt_sundog_tensor a = {.struct_size = sizeof a};
    PJRT_Buffer *out[1];

    (void)state;
    DO(f, Client_BufferFromHostBuffer, .client = client, .data = numbers,
       .type = PJRT_Buffer_Type_F32, .dims = four, .num_dims = 1,
       .memory = memory);
    await(f.done_with_host_buffer);
    a.pointer = pointer_of(f.buffer);
    ok(own()->share(&a), "share");
    ok(execute(l, &f.buffer, 1, out, -1), "execute");
    assert_true(is_deleted(f.buffer));
    assert_ptr_not_equal(pointer_of(out[0]), a.pointer);
    destroy(f.buffer);
    assert_memory_equal(((tensor *)a.tensor)->data, numbers, 16);
    ((tensor *)a.tensor)->deleter(a.tensor);
    destroy(out[0]);
    unload(l);
}

static void what_DLPack_has_no_word_for(void **state)
{
    static const int64_t order[] = {0, 1};
    PJRT_Buffer_MemoryLayout l = tiled(order, 2);
    PJRT_Buffer *b[] = {array(pinned, NULL, PJRT_Buffer_Type_F32),
                        array(memory, &l, PJRT_Buffer_Type_F32),
                        array(memory, NULL, PJRT_Buffer_Type_F8E5M2)};
    static const char *const says[] = {"f32 in memory 'pinned_host'",
                                       "f32 in memory 'device'", "f8e5m2"};

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(b); i++) {
        pjrt_sundog_tensor a = {.struct_size = sizeof a,
                                .pointer = pointer_of(b[i])};

        wrong(own()->share(&a), PJRT_Error_Code_FAILED_PRECONDITION, says[i]);
        destroy(b[i]);
    }
}

static void handlers_are_of_a_kind_of_device(void **state)
{
    static const char name[] = "test_own", nowhere[] = "xpu:tpu";
    pjrt_sundog_handler h = {.struct_size = sizeof h,
                             .name = name,
                             .name_size = sizeof name - 1,
                             .platform = nowhere,
                             .platform_size = sizeof nowhere - 1};

    (void)state;
    wrong(own()->register_handler(&h), PJRT_Error_Code_INVALID_ARGUMENT,
          "a handler for platform xpu:tpu; here are xpu (xpu:host), xpu:cl and "
          "xpu:cuda");
    h.platform = "XPU:CL";
    h.platform_size = 6;
    wrong(own()->register_handler(&h), PJRT_Error_Code_INVALID_ARGUMENT,
          "custom-call target test_own has no handler to execute");
}

TESTS(own, T(shared_memory_stays),
      T(tensors_that_nobody_takes_go_with_their_capsule),
      T(shared_memory_is_not_donated), T(what_DLPack_has_no_word_for),
      T(handlers_are_of_a_kind_of_device))
