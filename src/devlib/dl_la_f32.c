/* Linear algebra of f32. */
#define DL_IS_F64     0
#define DL_IS_COMPLEX 0
#define DL_LA(name)   dl_##name##_f32

#include "dl_la_factor.h"
#include "dl_la_solve.h"
#include "dl_la_eigh.h"
#include "dl_la_svd.h"
#include "dl_la_schur.h"
