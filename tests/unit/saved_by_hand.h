/* Saved executables of steps made by hand, for a host of any level where no
 * device is named: as bytes that PJRT_Executable_DeserializeAndLoad takes, to
 * be finished by the caller. */
#ifndef SAVED_BY_HAND_H
#define SAVED_BY_HAND_H

#include "thunk.h"

/* n parameters f32[4] copied to n outputs; the first, where asked, is donated
 * and its memory becomes the output's. */
sd_buf saved(int n, bool donate);
/* One copy, and a section of layouts. */
sd_buf saved_layouts(const char *layouts, size_t bytes);
/* f32[4] sent to channel 2, another received from channel 3, on such a device.
 */
sd_buf saved_channels(const char *device);
/* A custom-call of f32[4] that gives another; attributes as MLIR prints them.
 */
sd_buf saved_custom(const char *target, const char *attributes);

#endif
