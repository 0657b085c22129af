/* Errors: an sd_error is what PJRT wants, once its first word points to the
 * functions below.  Running out of memory is a static one. */
#include "pjrt.h"

static void error_destroy(PJRT_Error *e)
{
    sd_status_free((sd_error *)e);
}

static void error_message(const PJRT_Error *e, const char **text, size_t *len)
{
    *text = ((const sd_error *)e)->message;
    *len = strlen(*text);
}

static PJRT_Error_Code error_code(const PJRT_Error *e)
{
    return (PJRT_Error_Code)((const sd_error *)e)->code;
}

/* Ours have no payloads. */
static void error_payloads(const PJRT_Error *e, PJRT_Error_PayloadVisitor visit,
                           void *arg)
{
    (void)e, (void)visit, (void)arg;
}

static const PJRT_Error_FunctionTable functions = {
    .struct_size = PJRT_Error_FunctionTable_STRUCT_SIZE,
    .instance_size = sizeof(sd_error),
    .destroy = error_destroy,
    .message = error_message,
    .get_code = error_code,
    .for_each_payload = error_payloads,
};

static const sd_error no_memory = {.vtable = &functions,
                                   .code = SD_EXHAUSTED,
                                   .message = (char *)"host memory exhausted"};

PJRT_Error *pjrt_no_memory(void)
{
    return (PJRT_Error *)&no_memory;
}

PJRT_Error *pjrt_return(sd_status st)
{
    if (!st)
        return NULL;
    if (!st->where) /* the static one of a library of ours */
        return pjrt_no_memory();
    st->vtable = &functions;
    return (PJRT_Error *)st;
}

sd_status pjrt_status(PJRT_Error *e)
{
    return (sd_status)e;
}

PJRT_Error *pjrt_unimplemented(const char *function)
{
    return pjrt_return(
        sd_error(SD_UNIMPLEMENTED, "%s is not implemented", function));
}

sd_status pjrt_short_struct(const char *name, size_t has, size_t needs)
{
    return sd_error(SD_INVALID,
                    "%s: struct_size is %zu, at least %zu is needed", name, has,
                    needs);
}

PJRT_Error *pjrt_short(const char *function, size_t has, size_t needs)
{
    return pjrt_return(pjrt_short_struct(function, has, needs));
}

PJRT_Error *pjrt_null(const char *function, const char *field)
{
    return pjrt_return(sd_error(SD_INVALID, "%s: %s is NULL", function, field));
}

sd_status pjrt_foreign(PJRT_Error_Code code, const char *message, size_t len)
{
    sd_code c = code > PJRT_Error_Code_OK && code <= PJRT_Error_Code_DATA_LOSS
                    ? (sd_code)code
                    : SD_UNKNOWN;

    return sd_error(c, "%.*s", (int)SD_MIN(len, (size_t)1 << 20),
                    message ? message : "");
}

PJRT_Error *pjrt_make_error(PJRT_Error_Code code, const char *message,
                            size_t len)
{
    return pjrt_return(pjrt_foreign(code, message, len));
}

void pjrt_error_destroy(PJRT_Error_Destroy_Args *a)
{
    error_destroy(a->error);
}

void pjrt_error_message(PJRT_Error_Message_Args *a)
{
    error_message(a->error, &a->message, &a->message_size);
}

PJRT_Error *pjrt_error_get_code(PJRT_Error_GetCode_Args *a)
{
    a->code = error_code(a->error);
    return NULL;
}
