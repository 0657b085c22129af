/* Topologies: devices that need not be there. */
#include "plugin_test.h"

static PJRT_TopologyDescription *make(const char *name)
{
    DO(c, TopologyDescription_Create, .topology_name = name,
       .topology_name_size = strlen(name));
    return c.topology;
}

static void end(PJRT_TopologyDescription *t)
{
    DO(x, TopologyDescription_Destroy, .topology = t);
}

/* JAX takes a platform with "cuda" in its version for XLA's GPU back end. */
static void a_version_does_not_say_cuda(void **state)
{
    PJRT_TopologyDescription *t = make("cuda:sm_90");

    (void)state;
    DO(version, TopologyDescription_PlatformVersion, .topology = t);
    assert_non_null(strstr(version.platform_version, " sm_90"));
    assert_null(strstr(version.platform_version, "cuda"));
    end(t);
}

static void topologies_need_no_device(void **state)
{
    PJRT_TopologyDescription *t = make("cl:pvc x 2");

    (void)state;
    DO(name, TopologyDescription_PlatformName, .topology = t);
    assert_memory_equal(name.platform_name, "xpu", name.platform_name_size);
    DO(version, TopologyDescription_PlatformVersion, .topology = t);
    assert_non_null(strstr(version.platform_version, " pvc"));
    DO(d, TopologyDescription_GetDeviceDescriptions, .topology = t);
    assert_int_equal(d.num_descriptions, 2);
    for (int i = 0; i < 2; i++) {
        DO(id, DeviceDescription_Id, .device_description = d.descriptions[i]);
        assert_int_equal(id.id, i);
        DO(k, DeviceDescription_Kind, .device_description = d.descriptions[i]);
        assert_string_equal(k.device_kind, "cl:pvc");
    }
    DO(a, TopologyDescription_Attributes, .topology = t);
    assert_int_equal(a.num_attributes, 2);
    assert_string_equal(a.attributes[0].name, "target");
    assert_string_equal(a.attributes[0].string_value, "cl:pvc");
    assert_int_equal(a.attributes[1].int64_value, 2);
    end(t);
}

static uint64_t fingerprint(PJRT_TopologyDescription *t)
{
    DO(f, TopologyDescription_Fingerprint, .topology = t);
    return f.fingerprint;
}

static void topologies_come_back_from_bytes(void **state)
{
    PJRT_TopologyDescription *t = make("cl:pvc x 2"), *other = make("cl:pvc");
    uint64_t print = fingerprint(t);
    sd_buf p = saved(1, false);

    (void)state;
    assert_true(print != fingerprint(other));
    end(other);
    DO(s, TopologyDescription_Serialize, .topology = t);
    end(t);
    for (int i = 0; i < 2; i++) {
        DO(r, TopologyDescription_Deserialize,
           .serialized_topology = s.serialized_bytes,
           .serialized_topology_size = s.serialized_bytes_size);
        assert_true(fingerprint(r.topology) == print);
        end(r.topology);
    }
    BAD(INVALID_ARGUMENT, "topology", TopologyDescription_Deserialize,
        .serialized_topology = s.serialized_bytes,
        .serialized_topology_size = 10);
    s.serialized_topology_deleter(s.serialized_topology);
    BAD(INVALID_ARGUMENT, "a program, not a topology",
        TopologyDescription_Deserialize, .serialized_topology = p.at + 34,
        .serialized_topology_size = p.len - 34);
    sd_buf_finish(&p);
}

static void unknown_topologies_are_refused(void **state)
{
    char longest[100];

    (void)state;
    memset(longest, 'x', sizeof longest);
    BAD(NOT_FOUND, "no device is described as 'moon'",
        TopologyDescription_Create, .topology_name = "moon",
        .topology_name_size = 4);
    BAD(NOT_FOUND, "100 bytes", TopologyDescription_Create,
        .topology_name = longest, .topology_name_size = sizeof longest);
    BAD(INVALID_ARGUMENT, "65 devices", TopologyDescription_Create,
        .topology_name = "cl:pvc x 65", .topology_name_size = 11);
}

static void the_least_name_is_a_host(void **state)
{
    PJRT_NamedValue o = {.struct_size = PJRT_NamedValue_STRUCT_SIZE,
                         .name = "whatever",
                         .name_size = 8};

    (void)state;
    DO(c, TopologyDescription_Create, .create_options = &o, .num_options = 1);
    DO(d, TopologyDescription_GetDeviceDescriptions, .topology = c.topology);
    assert_int_equal(d.num_descriptions, 1);
    end(c.topology);
}

/* ShapeProto, byte for byte: type, dimensions, layout and its memory. */
static void shapes_of_a_memory_are_canonical(void **state)
{
    static const int64_t dims[] = {2, 300}, order[] = {0, 1};
    static const uint8_t plain[] = {0x10, 11, 0x1a, 3, 2, 0xac, 2,
                                    0x2a, 4,  0x0a, 2, 1, 0},
                         host[] = {0x10, 11,   0x1a, 3, 2, 0xac, 2, 0x2a,
                                   6,    0x0a, 2,    0, 1, 0x40, 5};
    PJRT_Buffer_MemoryLayout l = tiled(order, 2);
    PJRT_TopologyDescription *t = make("host:v4");

    (void)state;
    DO(k, TopologyDescription_GetMemorySpaceKindIds, .topology = t);
    assert_int_equal(k.num_memory_space_kind_ids, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(k.memory_space_kind_ids[i], i + 1);
    DO(a, TopologyDescription_MakeCanonicalShapeForMemorySpace, .topology = t,
       .memory_space_kind_id = 1, .dims = dims, .num_dims = 2,
       .element_type = PJRT_Buffer_Type_F32);
    assert_int_equal(a.serialized_shape_size, sizeof plain);
    assert_memory_equal(a.serialized_shape, plain, sizeof plain);
    a.serialized_shape_deleter(a.serialized_shape);
    DO(b, TopologyDescription_MakeCanonicalShapeForMemorySpace, .topology = t,
       .memory_space_kind_id = 2, .dims = dims, .num_dims = 2,
       .element_type = PJRT_Buffer_Type_F32, .layout = &l);
    assert_int_equal(b.serialized_shape_size, sizeof host);
    assert_memory_equal(b.serialized_shape, host, sizeof host);
    b.serialized_shape_deleter(b.serialized_shape);
    BAD(INVALID_ARGUMENT, "no memory is of kind 4",
        TopologyDescription_MakeCanonicalShapeForMemorySpace, .topology = t,
        .memory_space_kind_id = 4, .dims = dims, .num_dims = 2,
        .element_type = PJRT_Buffer_Type_F32);
    end(t);
}

TESTS(topology, T(topologies_need_no_device), T(a_version_does_not_say_cuda),
      T(topologies_come_back_from_bytes), T(unknown_topologies_are_refused),
      T(the_least_name_is_a_host), T(shapes_of_a_memory_are_canonical))
