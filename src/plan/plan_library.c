/* Library calls. */
#include "plan_room.h"

sd_status plan_library(hlo_module *m, const device_desc *dev,
                       const sd_options *opt)
{
    (void)m;
    (void)dev;
    (void)opt;
    return NULL;
}
