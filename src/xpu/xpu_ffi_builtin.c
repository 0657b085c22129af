/* Handlers of our own: custom_call.def says which devices run them, so the
 * addresses they get may be those of a device. */
#include "xpu_ffi.h"

/* Its operands have been computed, and that is all that was asked. */
static XLA_FFI_Error *dce_sink(XLA_FFI_CallFrame *f)
{
    (void)f;
    return NULL;
}

static XLA_FFI_Handler *const handlers[DEVICE_CUSTOM_COUNT] = {
    [DEVICE_CUSTOM_DCE_SINK] = dce_sink,
};

XLA_FFI_Handler *xpu_ffi_builtin(const char *name)
{
    for (int i = 0; i < DEVICE_CUSTOM_COUNT; i++)
        if (strcmp(device_custom_table[i].name, name) == 0)
            return handlers[i];
    return NULL;
}
