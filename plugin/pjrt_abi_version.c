/* What a saved program needs of the machine that loads it, for frameworks that
 * keep programs: compared without loading one.  The rules are those of
 * loading: format, kind of device, and the features that change the code. */
#include "pjrt.h"

#include <stdio.h>

typedef struct {
    uint32_t format, kind;
    uint64_t features;
} abi;

struct PJRT_RuntimeAbiVersion {
    abi is;
};
struct PJRT_ExecutableAbiVersion {
    abi is;
};

/* What frameworks call a platform by: FarmHash's fingerprint of its name, as
 * it is for names of one to three letters. */
static uint64_t platform_id(void)
{
    static const char name[] = PJRT_PLATFORM;
    const uint64_t k0 = 0xc3a5c85c97cb3127u, k2 = 0x9ae16a3b2f90404fu;
    const uint64_t n = sizeof name - 1;
    uint64_t y = (uint8_t)name[0] + ((uint64_t)(uint8_t)name[n / 2] << 8);
    uint64_t z = n + ((uint64_t)(uint8_t)name[n - 1] << 2), h = y * k2 ^ z * k0;

    _Static_assert(sizeof name - 1 <= 3, "another formula");
    return (h ^ h >> 47) * k2;
}

static abi abi_of(const device_desc *d)
{
    return (abi){THUNK_VERSION, (uint32_t)d->kind,
                 d->kind == DEVICE_HOST ? d->features & DEVICE_HAS_AVX512 : 0};
}

static PJRT_Error *compare(const abi *runtime, const abi *other)
{
    sd_status st = NULL;

    if (runtime->format != other->format)
        st = sd_error(SD_PRECONDITION,
                      "programs of format %u, this library reads %u",
                      other->format, runtime->format);
    else if (runtime->kind != other->kind)
        st = sd_error(SD_PRECONDITION,
                      "programs for devices of kind %u, this one is of kind "
                      "%u: compile for this one",
                      other->kind, runtime->kind);
    else if (other->features & ~runtime->features)
        st = sd_error(SD_PRECONDITION,
                      "programs that use features %#" PRIx64
                      ", this machine has %#" PRIx64
                      ": compile here, or with SUNDOG_CPU_LEVEL=v3 for both",
                      other->features, runtime->features);
    return pjrt_return(st);
}

/* ---- as bytes: a protobuf of the platform and of our own word ---- */

enum { PROTO_PLATFORM = 1, PROTO_VERSION = 2 };

static void free_proto(PJRT_SerializedProto *s)
{
    pjrt_bytes_free((pjrt_bytes *)s);
}

static PJRT_Error *write_proto(const abi *a, const char **at, size_t *len,
                               PJRT_SerializedProto **holder)
{
    sd_buf b = {0};
    pjrt_bytes *h;
    PJRT_Error *e;

    sd_buf_u8(&b, PROTO_PLATFORM << 3);
    sd_buf_leb(&b, platform_id());
    sd_buf_u8(&b, PROTO_VERSION << 3 | 2);
    sd_buf_leb(&b, 16);
    sd_buf_u32(&b, a->format);
    sd_buf_u32(&b, a->kind);
    sd_buf_u64(&b, a->features);
    if (!(e = pjrt_bytes_hand(NULL, &b, at, len, &h)))
        *holder = (PJRT_SerializedProto *)h;
    return e;
}

static sd_status read_proto(const char *at, size_t len, abi *out)
{
    sd_cursor c = sd_cursor_of((sd_bytes){(const uint8_t *)at, len});
    uint64_t platform;
    sd_status st;

    if (sd_read_u8(&c) != PROTO_PLATFORM << 3)
        sd_cursor_fail(&c, "the platform");
    platform = sd_read_leb(&c);
    if (sd_read_u8(&c) != (PROTO_VERSION << 3 | 2) || sd_read_leb(&c) != 16)
        sd_cursor_fail(&c, "16 bytes of version");
    out->format = sd_read_u32(&c);
    out->kind = sd_read_u32(&c);
    out->features = sd_read_u64(&c);
    if ((st = sd_cursor_status(&c, "ABI version")))
        return st;
    if (platform != platform_id())
        return sd_error(SD_INVALID,
                        "the ABI version of another platform: %#" PRIx64,
                        platform);
    return NULL;
}

/* The caller's to free. */
static PJRT_Error *from_proto(const char *at, size_t len, abi **out)
{
    abi is;
    sd_status st = read_proto(at, len, &is);

    if (st)
        return pjrt_return(st);
    if (!(*out = PJRT_NEW(abi)))
        return pjrt_no_memory();
    **out = is;
    return NULL;
}

/* ---- the runtime's ---- */

PJRT_Error *
pjrt_client_runtime_abi_version(PJRT_Client_RuntimeAbiVersion_Args *a)
{
    PJRT_RuntimeAbiVersion *v = PJRT_NEW(PJRT_RuntimeAbiVersion);

    if (!v)
        return pjrt_no_memory();
    v->is = abi_of(&a->client->topology->at[0].desc);
    a->abi_version = v;
    return NULL;
}

PJRT_Error *pjrt_runtime_abi_version_is_compatible_with_runtime(
    PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args *a)
{
    return compare(&a->abi_version->is, &a->other_abi_version->is);
}

PJRT_Error *pjrt_runtime_abi_version_is_compatible_with_executable(
    PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args *a)
{
    return compare(&a->abi_version->is, &a->executable_abi_version->is);
}

PJRT_Error *
pjrt_runtime_abi_version_to_proto(PJRT_RuntimeAbiVersion_ToProto_Args *a)
{
    a->serialized_proto_deleter = free_proto;
    return write_proto(&a->abi_version->is, &a->serialized_proto,
                       &a->serialized_proto_size, &a->serialized_proto_holder);
}

PJRT_Error *
pjrt_runtime_abi_version_platform_id(PJRT_RuntimeAbiVersion_PlatformId_Args *a)
{
    a->platform_id = platform_id();
    return NULL;
}

PJRT_Error *
pjrt_runtime_abi_version_from_proto(PJRT_RuntimeAbiVersion_FromProto_Args *a)
{
    abi *is;
    PJRT_Error *e =
        from_proto(a->serialized_proto, a->serialized_proto_size, &is);

    if (!e)
        a->abi_version = (PJRT_RuntimeAbiVersion *)is;
    return e;
}

/* ---- a program's ---- */

/* jaxlib 0.11 asks for it when it saves a program, and refuses one from a
 * platform that it has no class for; told UNIMPLEMENTED, it saves. */
PJRT_Error *
pjrt_executable_get_abi_version(PJRT_Executable_GetAbiVersion_Args *a)
{
    (void)a;
    return pjrt_return(sd_error(SD_UNIMPLEMENTED,
                                "PJRT_Executable_GetAbiVersion: a saved "
                                "program is compared when it is loaded"));
}

PJRT_Error *
pjrt_executable_abi_version_to_proto(PJRT_ExecutableAbiVersion_ToProto_Args *a)
{
    a->serialized_proto_deleter = free_proto;
    return write_proto(&a->abi_version->is, &a->serialized_proto,
                       &a->serialized_proto_size, &a->serialized_proto_holder);
}

PJRT_Error *pjrt_executable_abi_version_platform_id(
    PJRT_ExecutableAbiVersion_PlatformId_Args *a)
{
    a->platform_id = platform_id();
    return NULL;
}

PJRT_Error *pjrt_executable_abi_version_from_proto(
    PJRT_ExecutableAbiVersion_FromProto_Args *a)
{
    abi *is;
    PJRT_Error *e =
        from_proto(a->serialized_proto, a->serialized_proto_size, &is);

    if (!e)
        a->abi_version = (PJRT_ExecutableAbiVersion *)is;
    return e;
}
