/* The entry, and what a caller may know before a client stands: constants.  No
 * thread is made and no device looked for before PJRT_Client_Create. */
#include "pjrt.h"

__attribute__((visibility("default"))) const PJRT_Api *GetPjrtApi(void);

const PJRT_Api *GetPjrtApi(void)
{
    return &pjrt_api;
}

PJRT_NamedValue pjrt_named_int(const char *name, int64_t v)
{
    return (PJRT_NamedValue){.struct_size = PJRT_NamedValue_STRUCT_SIZE,
                             .name = name,
                             .name_size = strlen(name),
                             .type = PJRT_NamedValue_kInt64,
                             .int64_value = v,
                             .value_size = 1};
}

PJRT_NamedValue pjrt_named_float(const char *name, double v)
{
    return (PJRT_NamedValue){.struct_size = PJRT_NamedValue_STRUCT_SIZE,
                             .name = name,
                             .name_size = strlen(name),
                             .type = PJRT_NamedValue_kFloat,
                             .float_value = (float)v,
                             .value_size = 1};
}

PJRT_NamedValue pjrt_named_str(const char *name, const char *v)
{
    return (PJRT_NamedValue){.struct_size = PJRT_NamedValue_STRUCT_SIZE,
                             .name = name,
                             .name_size = strlen(name),
                             .type = PJRT_NamedValue_kString,
                             .string_value = v,
                             .value_size = strlen(v)};
}

PJRT_Error *pjrt_bytes_hand(sd_status st, sd_buf *b, const char **at,
                            size_t *len, pjrt_bytes **holder)
{
    pjrt_bytes *h = NULL;

    if (!st && (b->oom || !(h = PJRT_NEW(pjrt_bytes))))
        st = sd_no_memory(b->len);
    if (st) {
        sd_buf_finish(b);
        return pjrt_return(st);
    }
    h->bytes = *b;
    *at = b->at ? b->at : "";
    *len = b->len;
    *holder = h;
    return NULL;
}

void pjrt_bytes_free(pjrt_bytes *b)
{
    sd_buf_finish(&b->bytes);
    free(b);
}

PJRT_Error *pjrt_plugin_initialize(PJRT_Plugin_Initialize_Args *a)
{
    (void)a;
    sd_log_init();
    return NULL;
}

/* The versions are the reader's: frontend.h.  Frameworks write the older of
 * their own and our current one. */
PJRT_Error *pjrt_plugin_attributes(PJRT_Plugin_Attributes_Args *a)
{
#define NAMED(text) \
    .struct_size = PJRT_NamedValue_STRUCT_SIZE, .name = text, \
    .name_size = sizeof(text) - 1
    static const int64_t current[] = {1, 20, 0}, minimum[] = {0, 9, 0};
    static const PJRT_NamedValue attributes[] = {
        {NAMED("xla_version"), .type = PJRT_NamedValue_kInt64, .int64_value = 2,
         .value_size = 1},
        {NAMED("stablehlo_current_version"), .type = PJRT_NamedValue_kInt64List,
         .int64_array_value = current, .value_size = SD_COUNTOF(current)},
        {NAMED("stablehlo_minimum_version"), .type = PJRT_NamedValue_kInt64List,
         .int64_array_value = minimum, .value_size = SD_COUNTOF(minimum)},
        {NAMED("sundog_version"), .type = PJRT_NamedValue_kString,
         .string_value = SD_VERSION, .value_size = sizeof(SD_VERSION) - 1},
    };
#undef NAMED

    a->attributes = attributes;
    a->num_attributes = SD_COUNTOF(attributes);
    return NULL;
}
