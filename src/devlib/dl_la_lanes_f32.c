/* Linear algebra of f32, many small matrices side by side. */
#define DL_IS_F64     0
#define DL_IS_COMPLEX 0
#define DL_LANES      (SD_LANES)
#define DL_LA(name)   dl_##name##_f32

#include "dl_la_lanes.h"
