/* Linear algebra of f32 by a group of work items. */
#define DL_IS_F64     0
#define DL_IS_COMPLEX 0
#define DL_GROUP
#define DL_LA(name) dl_##name##_group_f32

#include "dl_la_factor.h"
#include "dl_la_eigh.h"
#include "dl_la_svd.h"
