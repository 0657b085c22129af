/* Handlers and types by name.  PJRT registers them with the library and not
 * with a client, before there is one, so this is state of the process
 * (docs/adr/0011); it only grows. */
#include "xpu_ffi.h"

#include <stdlib.h>
#include <strings.h>

#define MINOR_OLDEST 3 /* earlier ones lay states and bundles out otherwise */
#define FIRST_TYPE   (INT64_C(1) << 32) /* ours; callers bring smaller ones */

typedef struct ffi_type ffi_type;
struct ffi_type {
    ffi_type *next;
    char *name;
    int64_t id;
    void (*deleter)(void *);
};

static struct {
    pthread_mutex_t lock;
    xpu_ffi_handler *handlers;
    ffi_type *types;
    int64_t next_type;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER, .next_type = FIRST_TYPE};

static char *copy_name(const char *name, size_t len)
{
    char *s = malloc(len + 1);

    if (s) {
        memcpy(s, name, len);
        s[len] = 0;
    }
    return s;
}

/* ---- handlers ---- */

/* The first call of each handler: what it was compiled for. */
static sd_status handshake(const char *name, XLA_FFI_Handler *h)
{
    XLA_FFI_Metadata m = {
        .struct_size = XLA_FFI_Metadata_STRUCT_SIZE,
        .api_version = {.struct_size = XLA_FFI_Api_Version_STRUCT_SIZE,
                        .major_version = -1,
                        .minor_version = -1}};
    XLA_FFI_Metadata_Extension ext = {
        .extension_base = {.struct_size =
                               XLA_FFI_Metadata_Extension_STRUCT_SIZE,
                           .type = XLA_FFI_Extension_Metadata},
        .metadata = &m};
    XLA_FFI_CallFrame f = {.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE,
                           .extension_start = &ext.extension_base,
                           .api = &xpu_ffi_api,
                           .stage = XLA_FFI_ExecutionStage_EXECUTE};
    sd_status st = xpu_ffi_status(h(&f));

    if (st)
        return sd_note(st, "asking the handler of %s for its metadata", name);
    if (m.api_version.major_version != XLA_FFI_API_MAJOR ||
        m.api_version.minor_version < MINOR_OLDEST ||
        m.api_version.minor_version > XLA_FFI_API_MINOR)
        return sd_error(SD_UNIMPLEMENTED,
                        "the handler of %s was compiled for FFI %d.%d, and "
                        "%d.%d to %d.%d are called here: compile it with the "
                        "headers of a jaxlib that has one of these",
                        name, m.api_version.major_version,
                        m.api_version.minor_version, XLA_FFI_API_MAJOR,
                        MINOR_OLDEST, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR);
    return NULL;
}

static xpu_ffi_handler *find_handler(const char *name, device_kind kind)
{
    for (xpu_ffi_handler *h = registry.handlers; h; h = h->next)
        if (h->kind == kind && strcmp(h->name, name) == 0)
            return h;
    return NULL;
}

/* Takes h, or leaves it with an error; the same once more is no news. */
static sd_status enter(xpu_ffi_handler *h)
{
    xpu_ffi_handler *other;
    sd_status st = NULL;

    pthread_mutex_lock(&registry.lock);
    if (!(other = find_handler(h->name, h->kind))) {
        h->next = registry.handlers;
        registry.handlers = h;
        h = NULL;
    } else if (memcmp(other->stage, h->stage, sizeof h->stage) != 0) {
        st = sd_error(SD_ALREADY_EXISTS,
                      "custom-call target %s has another handler already",
                      h->name);
    }
    pthread_mutex_unlock(&registry.lock);
    if (h) {
        free(h->name);
        free(h);
    }
    return st;
}

sd_status xpu_ffi_platform(const char *name, size_t len, device_kind *out)
{
    static const char ours[] = "xpu";
    size_t n = sizeof ours - 1;

    if (len >= n && strncasecmp(name, ours, n) == 0) {
        if (len == n) {
            *out = DEVICE_HOST;
            return NULL;
        }
        for (int k = 0; k < DEVICE_KIND_COUNT && name[n] == ':'; k++)
            if (strlen(device_kind_table[k].name) == len - n - 1 &&
                strncasecmp(name + n + 1, device_kind_table[k].name,
                            len - n - 1) == 0) {
                *out = (device_kind)k;
                return NULL;
            }
    }
    return sd_error(SD_INVALID,
                    "a handler for platform %.*s; here are xpu (xpu:host), "
                    "xpu:cl and xpu:cuda",
                    (int)len, name);
}

sd_status xpu_ffi_register(const char *name, size_t len, device_kind kind,
                           const xpu_ffi_bundle *bundle)
{
    xpu_ffi_handler *h;
    sd_status st = NULL;

    if (!len)
        return sd_error(SD_INVALID, "a handler of a custom-call target without "
                                    "a name");
    if (!bundle->stage[XLA_FFI_ExecutionStage_EXECUTE])
        return sd_error(SD_INVALID,
                        "custom-call target %.*s has no handler to execute",
                        (int)len, name);
    if (!(h = calloc(1, sizeof *h)) || !(h->name = copy_name(name, len))) {
        free(h);
        return sd_no_memory(sizeof *h + len);
    }
    h->kind = kind;
    for (int i = 0; i < XPU_FFI_STAGES && !st; i++) {
        h->stage[i] = (XLA_FFI_Handler *)bundle->stage[i];
        if (h->stage[i])
            st = handshake(h->name, h->stage[i]);
    }
    if (st) {
        free(h->name);
        free(h);
        return st;
    }
    return enter(h);
}

const xpu_ffi_handler *xpu_ffi_find(const char *name, device_kind kind)
{
    const xpu_ffi_handler *h;

    pthread_mutex_lock(&registry.lock);
    h = find_handler(name, kind);
    pthread_mutex_unlock(&registry.lock);
    return h;
}

/* Of another kind of device with its name. */
void xpu_ffi_names(sd_buf *b, device_kind kind)
{
    for (int i = 0; i < DEVICE_CUSTOM_COUNT; i++)
        if (device_custom_table[i].devices >> kind & 1)
            sd_buf_fmt(b, "%s%s", b->len ? ", " : "",
                       device_custom_table[i].name);
    pthread_mutex_lock(&registry.lock);
    for (const xpu_ffi_handler *h = registry.handlers; h; h = h->next)
        sd_buf_fmt(b, "%s%s%s%s", b->len ? ", " : "", h->name,
                   h->kind == kind ? "" : " on ",
                   h->kind == kind ? "" : device_kind_table[h->kind].name);
    pthread_mutex_unlock(&registry.lock);
}

/* ---- types ---- */

/* Of that name, or failing that of that number. */
static ffi_type *find_type(const char *name, size_t len, int64_t id)
{
    for (ffi_type *t = registry.types; t; t = t->next)
        if (strlen(t->name) == len && memcmp(t->name, name, len) == 0)
            return t;
    for (ffi_type *t = registry.types; t && id; t = t->next)
        if (t->id == id)
            return t;
    return NULL;
}

static sd_status enter_type(ffi_type *t, size_t len, int64_t *id)
{
    ffi_type *other = find_type(t->name, len, *id);

    if (other && strcmp(other->name, t->name) != 0)
        return sd_error(SD_ALREADY_EXISTS,
                        "type id %" PRId64 " of %s is that of %s", *id, t->name,
                        other->name);
    if (other && *id && other->id != *id)
        return sd_error(SD_ALREADY_EXISTS,
                        "type %s has id %" PRId64 ", not %" PRId64, t->name,
                        other->id, *id);
    if (other) {
        other->deleter = t->deleter ? t->deleter : other->deleter;
        *id = other->id;
        return NULL;
    }
    t->id = *id = *id ? *id : registry.next_type++;
    t->next = registry.types;
    registry.types = t;
    return NULL;
}

sd_status xpu_ffi_register_type(const char *name, size_t len, int64_t *id,
                                void (*deleter)(void *))
{
    ffi_type *t;
    sd_status st;

    if (!len)
        return sd_error(SD_INVALID, "a type without a name");
    t = calloc(1, sizeof *t);
    if (!t || !(t->name = copy_name(name, len))) {
        free(t);
        return sd_no_memory(sizeof *t + len);
    }
    t->deleter = deleter;
    pthread_mutex_lock(&registry.lock);
    st = enter_type(t, len, id);
    pthread_mutex_unlock(&registry.lock);
    if (!t->id) { /* not entered */
        free(t->name);
        free(t);
    }
    return st;
}

bool xpu_ffi_has_type(int64_t type_id)
{
    bool has = false;

    pthread_mutex_lock(&registry.lock);
    for (const ffi_type *t = registry.types; t && !has; t = t->next)
        has = t->id == type_id;
    pthread_mutex_unlock(&registry.lock);
    return has;
}

void (*xpu_ffi_deleter(int64_t type_id))(void *)
{
    void (*deleter)(void *) = NULL;

    pthread_mutex_lock(&registry.lock);
    for (ffi_type *t = registry.types; t && !deleter; t = t->next)
        if (t->id == type_id)
            deleter = t->deleter;
    pthread_mutex_unlock(&registry.lock);
    return deleter;
}
