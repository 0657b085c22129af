/* OpenCL devices. */
#include "xpu_device.h"

sd_status xpu_cl_open(xpu_client *c, const sd_options *opt, bool cpu_too)
{
    (void)c;
    (void)opt;
    (void)cpu_too;
    return sd_error(SD_UNIMPLEMENTED, "OpenCL devices");
}
