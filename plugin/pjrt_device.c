/* Devices and what describes them. */
#include "pjrt.h"

sd_status pjrt_device_is_here(const PJRT_Device *d)
{
    if (d->x)
        return NULL;
    return sd_error(SD_INVALID,
                    "%s is process %d's, and this is process %" PRId64,
                    d->desc->name, d->desc->process, d->client->process);
}

PJRT_Error *pjrt_device_default_memory(PJRT_Device_DefaultMemory_Args *a)
{
    a->memory = &a->device->memory[XPU_MEM_DEVICE];
    return pjrt_return(pjrt_device_is_here(a->device));
}

static void keep_attributes(PJRT_Device_Attributes *d)
{
    (void)d; /* they are the description's */
}

PJRT_Error *pjrt_device_get_attributes(PJRT_Device_GetAttributes_Args *a)
{
    a->attributes = a->device->desc->attr;
    a->num_attributes = PJRT_NATTR;
    a->device_attributes = NULL;
    a->attributes_deleter = keep_attributes;
    return NULL;
}

/* Callers do not zero the struct: what is not known is said to be not set,
 * and fields that the caller does not have are not touched. */
PJRT_Error *pjrt_device_memory_stats(PJRT_Device_MemoryStats_Args *a)
{
    xpu_memory_stats s;

#define STAT(field, value) \
    do { \
        if (PJRT_HAS(a, field)) \
            a->field = value; \
        if (PJRT_HAS(a, field##_is_set)) \
            a->field##_is_set = true; \
    } while (0)
#define UNKNOWN(field) \
    do { \
        if (PJRT_HAS(a, field)) \
            a->field = 0; \
        if (PJRT_HAS(a, field##_is_set)) \
            a->field##_is_set = false; \
    } while (0)
    if (!a->device->x)
        return pjrt_return(pjrt_device_is_here(a->device));
    xpu_device_stats(a->device->x, &s);
    a->bytes_in_use = s.in_use;
    STAT(peak_bytes_in_use, s.peak);
    STAT(num_allocs, s.allocs);
    STAT(largest_alloc_size, s.largest);
    STAT(bytes_limit, s.limit);
    STAT(bytes_reserved, 0); /* nothing is set aside */
    STAT(peak_bytes_reserved, 0);
    STAT(largest_free_block_bytes, s.room);
    STAT(pool_bytes, s.held);
    STAT(peak_pool_bytes, s.held_peak);
    UNKNOWN(bytes_reservable_limit);
    UNKNOWN(peak_allocated_bytes);
#undef STAT
#undef UNKNOWN
    return NULL;
}

PJRT_Error *pjrt_device_clear_memory_stats(PJRT_Device_ClearMemoryStats_Args *a)
{
    if (a->device->x)
        xpu_device_clear_stats(a->device->x);
    return pjrt_return(pjrt_device_is_here(a->device));
}

/* Of a run that waits; one that has begun is left to end. */
PJRT_Error *pjrt_device_poison_execution(PJRT_Device_PoisonExecution_Args *a)
{
    if (a->error_code == PJRT_Error_Code_OK)
        return pjrt_return(sd_error(
            SD_INVALID, "PJRT_Device_PoisonExecution: the code is OK"));
    if (!a->device->x)
        return pjrt_return(pjrt_device_is_here(a->device));
    a->poisoned =
        a->launch_id &&
        xpu_device_poison(a->device->x, a->launch_id,
                          pjrt_foreign(a->error_code, a->error_message,
                                       a->error_message_size));
    return NULL;
}

struct PJRT_AsyncTrackingEvent {
    PJRT_Device *device; /* borrowed */
};

/* Marks work of the framework's on the host: of no use to us yet, but its
 * owner holds a handle. */
PJRT_Error *pjrt_device_create_async_tracking_event(
    PJRT_Device_CreateAsyncTrackingEvent_Args *a)
{
    PJRT_AsyncTrackingEvent *e = PJRT_NEW(PJRT_AsyncTrackingEvent);

    if (!e)
        return pjrt_no_memory();
    e->device = a->device;
    a->event = e;
    return NULL;
}
