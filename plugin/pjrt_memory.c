/* Memories: each device has its own, and host memory that it reaches.  What
 * "unpinned_host" holds is pinned where pinning matters: kernels read it. */
#include "pjrt.h"

#include <stdio.h>

/* Data that a framework hangs on a memory, by the address of a key.  Entries
 * are only added, or replaced by a newer one before them, so reading needs no
 * lock. */
struct pjrt_user_data {
    pjrt_user_data *next;
    const void *key;
    void *data;
    void (*deleter)(void *);
};

static void *get_user_data(PJRT_Memory *m, const void *key)
{
    for (pjrt_user_data *u = atomic_load(&m->user); u; u = u->next)
        if (u->key == key)
            return u->data;
    return NULL;
}

/* The interface has no way to fail; without memory the data are dropped. */
static void set_user_data(PJRT_Memory *m, const void *key, void *data,
                          void (*deleter)(void *))
{
    pjrt_user_data *u = PJRT_NEW(pjrt_user_data);

    if (!u) {
        if (deleter)
            deleter(data);
        return;
    }
    u->key = key;
    u->data = data;
    u->deleter = deleter;
    u->next = atomic_load(&m->user);
    while (!atomic_compare_exchange_weak(&m->user, &u->next, u))
        ;
}

static const PJRT_Memory_FunctionTable functions = {
    .struct_size = PJRT_Memory_FunctionTable_STRUCT_SIZE,
    .instance_struct_size = sizeof(PJRT_Memory),
    .get_user_data = get_user_data,
    .set_user_data = set_user_data,
};

void pjrt_memory_init(PJRT_Memory *m, int id, xpu_memory kind, PJRT_Device *d)
{
    m->vtable = &functions;
    m->kind = kind;
    m->id = id;
    m->device = d;
    snprintf(m->debug, sizeof m->debug, "%s(%s) of %s", xpu_memory_name[kind],
             PJRT_PLATFORM, d->desc->name);
}

void pjrt_memory_finish(PJRT_Memory *m)
{
    for (pjrt_user_data *u = atomic_load(&m->user), *next; u; u = next) {
        next = u->next;
        if (u->deleter)
            u->deleter(u->data);
        free(u);
    }
}

/* ---- the extension: memories of a device that need not be there ---- */

struct PJRT_MemoryDescription {
    xpu_memory kind;
};

static const PJRT_MemoryDescription descriptions[XPU_MEM_COUNT] = {
    {XPU_MEM_DEVICE}, {XPU_MEM_PINNED_HOST}, {XPU_MEM_UNPINNED_HOST}};

PJRT_Error *pjrt_device_description_memory_descriptions(
    PJRT_DeviceDescription_MemoryDescriptions_Args *a)
{
    static const PJRT_MemoryDescription *const list[XPU_MEM_COUNT] = {
        &descriptions[XPU_MEM_DEVICE], &descriptions[XPU_MEM_PINNED_HOST],
        &descriptions[XPU_MEM_UNPINNED_HOST]};

    a->memory_descriptions = list;
    a->num_memory_descriptions = XPU_MEM_COUNT;
    a->default_memory_index = XPU_MEM_DEVICE;
    return NULL;
}

PJRT_Error *pjrt_memory_description_kind(PJRT_MemoryDescription_Kind_Args *a)
{
    xpu_memory kind = a->memory_description->kind;

    a->kind = xpu_memory_name[kind];
    a->kind_size = strlen(a->kind);
    a->kind_id = pjrt_memory_kind_number(kind);
    return NULL;
}
