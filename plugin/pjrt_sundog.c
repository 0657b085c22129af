/* The extension of our own: its table. */
#include "pjrt.h"

const pjrt_sundog_extension pjrt_sundog = {
    .base = {.struct_size = sizeof(pjrt_sundog_extension),
             .type = (PJRT_Extension_Type)PJRT_SUNDOG_TYPE},
    .register_handler = pjrt_sundog_register_handler,
};
