/* The extension of our own, and what python/sundog/dlpack.py needs of it:
 * arrays that other libraries read in place.  JAX gives a framework's extension
 * no buffer, only the pointer that a buffer showed; so buffers that were asked
 * for theirs are on a list.  Like handlers, which come before clients do, it is
 * the process's (docs/adr/0027); a buffer leaves it when its handle goes. */
#include "pjrt.h"

static struct {
    pthread_mutex_t lock;
    PJRT_Buffer *first; /* the last to show its pointer */
} shown = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The lock is held. */
static void unlink_shown(PJRT_Buffer *b)
{
    if (!b->shown_at)
        return;
    *b->shown_at = b->shown;
    if (b->shown)
        b->shown->shown_at = b->shown_at;
    b->shown_at = NULL;
}

void pjrt_sundog_show(PJRT_Buffer *b)
{
    b->was_shown = true;
    pthread_mutex_lock(&shown.lock);
    unlink_shown(b);
    if ((b->shown = shown.first))
        b->shown->shown_at = &b->shown;
    b->shown_at = &shown.first;
    shown.first = b;
    pthread_mutex_unlock(&shown.lock);
}

/* Who never showed it waits for nobody's lock. */
void pjrt_sundog_hide(PJRT_Buffer *b)
{
    if (!b->was_shown)
        return;
    pthread_mutex_lock(&shown.lock);
    unlink_shown(b);
    pthread_mutex_unlock(&shown.lock);
}

/* ---- DLPack, version 0.8: its structs and numbers ---- */

enum { DL_CPU = 1, DL_CUDA = 2 };
typedef struct dl_tensor dl_tensor;
struct dl_tensor {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
    void *manager;
    void (*deleter)(dl_tensor *t);
    xpu_buffer *x; /* ours from here on: pinned, and a reference */
    int64_t dim[];
};

/* By a type's kind and bits; 0xff: it has none. */
static uint8_t code_of(sd_dtype t)
{
    switch (t) {
    case SD_PRED:
        return 6;
    case SD_BF16:
        return 4;
    case SD_S8:
    case SD_S16:
    case SD_S32:
    case SD_S64:
        return 0;
    case SD_U8:
    case SD_U16:
    case SD_U32:
    case SD_U64:
        return 1;
    case SD_F16:
    case SD_F32:
    case SD_F64:
        return 2;
    case SD_C64:
    case SD_C128:
        return 5;
    default:
        return 0xff;
    }
}

static int32_t device_type_of(const PJRT_Buffer *b)
{
    if (b->memory->kind != XPU_MEM_DEVICE)
        return 0;
    switch (xpu_device_desc(b->memory->device->x)->kind) {
    case DEVICE_HOST:
        return DL_CPU;
    case DEVICE_CUDA:
        return DL_CUDA;
    default:
        return 0;
    }
}

static void delete_tensor(dl_tensor *t)
{
    sd_status_free(xpu_buffer_unpin(t->x));
    xpu_buffer_release(t->x);
    free(t);
}

static sd_status check(const PJRT_Buffer *b)
{
    int rank = xpu_buffer_rank(b->x);

    if (device_type_of(b) && code_of(xpu_buffer_dtype(b->x)) != 0xff &&
        (!b->order || pjrt_layout_same(b->order, NULL, rank)))
        return NULL;
    return sd_error(
        SD_PRECONDITION,
        "DLPack has no word for an array of %s in memory '%s' of %s",
        sd_dtype_name(xpu_buffer_dtype(b->x)), xpu_memory_name[b->memory->kind],
        xpu_device_desc(b->memory->device->x)->name);
}

/* The list is locked: b stays. */
static sd_status make_tensor(PJRT_Buffer *b, dl_tensor **out)
{
    int rank = xpu_buffer_rank(b->x);
    sd_dtype type = xpu_buffer_dtype(b->x);
    int64_t stride = 1;
    dl_tensor *t;
    sd_status st = check(b);

    if (st)
        return st;
    if (!(t = calloc(1, sizeof *t + 2 * (size_t)rank * sizeof *t->dim)))
        return sd_no_memory(sizeof *t);
    if ((st = xpu_buffer_pin(b->x))) {
        free(t);
        return st;
    }
    t->x = xpu_buffer_retain(b->x);
    t->data = xpu_buffer_pointer(b->x);
    t->device_type = device_type_of(b);
    t->device_id = t->device_type == DL_CUDA ? b->memory->device->desc->id : 0;
    t->ndim = rank;
    t->code = code_of(type);
    t->bits = (uint8_t)(sd_dtype_table[type].bytes * 8);
    t->lanes = 1;
    t->shape = t->dim;
    t->strides = t->dim + rank;
    for (int i = rank; i--;) {
        t->shape[i] = xpu_buffer_dims(b->x)[i];
        t->strides[i] = stride;
        stride *= SD_MAX(t->shape[i], (int64_t)1);
    }
    t->deleter = delete_tensor;
    *out = t;
    return NULL;
}

static PJRT_Error *share(pjrt_sundog_tensor *a)
{
    dl_tensor *t = NULL;
    PJRT_Buffer *b;
    sd_status st;

    pthread_mutex_lock(&shown.lock);
    for (b = shown.first; b; b = b->shown)
        if (xpu_buffer_pointer(b->x) == a->pointer)
            break;
    st = b ? make_tensor(b, &t)
           : sd_error(SD_NOT_FOUND, "no buffer showed the pointer %p",
                      a->pointer);
    pthread_mutex_unlock(&shown.lock);
    if (!st && a->wait && (st = xpu_buffer_lead(t->x, a->stream)))
        delete_tensor(t);
    if (!st)
        a->tensor = t;
    return pjrt_return(st);
}

/* ---- capsules ---- */

/* A process has one Python: what it says of itself is the same each time. */
static _Atomic(int (*)(void *, const char *)) is_valid;
static _Atomic(void *(*)(void *, const char *)) pointer_of;

/* Who takes a tensor calls its capsule "used_dltensor". */
static void drop_capsule(void *capsule)
{
    static const char name[] = "dltensor";

    if (is_valid(capsule, name)) {
        dl_tensor *t = pointer_of(capsule, name);

        t->deleter(t);
    }
}

static PJRT_Error *capsule(pjrt_sundog_capsule *a)
{
    is_valid = a->is_valid;
    pointer_of = a->pointer;
    a->destructor = drop_capsule;
    return NULL;
}

const pjrt_sundog_extension pjrt_sundog = {
    .base = {.struct_size = sizeof(pjrt_sundog_extension),
             .type = (PJRT_Extension_Type)PJRT_SUNDOG_TYPE},
    .register_handler = pjrt_sundog_register_handler,
    .share = share,
    .capsule = capsule,
};
