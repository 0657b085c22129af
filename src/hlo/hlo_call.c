/* Calls of the device library: custom-calls that one function of src/devlib
 * computes, item by item.  Only here is a call's name tied to a function; plan
 * and target know items, work space and numbers to hand on, and nothing of
 * transforms or factorizations. */
#include "hlo_linalg.h"

#include <string.h>

static const struct {
    const char *target;
    bool (*fill)(const hlo_inst *in, hlo_call *out);
} calls[] = {
    {HLO_CALL_FFT, hlo_call_fft},
};

bool hlo_device_call(const hlo_inst *in, hlo_call *out)
{
    if (in->op != HLO_CUSTOM_CALL || in->u.custom->lib) /* a library's */
        return false;
    for (size_t i = 0; i < SD_COUNTOF(calls); i++)
        if (strcmp(in->u.custom->target, calls[i].target) == 0) {
            *out = (hlo_call){.in = in, .each = 1};
            return calls[i].fill(in, out);
        }
    *out = (hlo_call){.in = in, .each = 1};
    return hlo_is_linalg_name(in->u.custom->target) && hlo_call_linalg(in, out);
}
