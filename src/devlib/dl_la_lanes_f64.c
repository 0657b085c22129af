/* Linear algebra of f64, many small matrices side by side. */
#define DL_IS_F64     1
#define DL_IS_COMPLEX 0
#define DL_LANES      (SD_LANES / 2)
#define DL_LA(name)   dl_##name##_f64

#include "dl_la_lanes.h"
