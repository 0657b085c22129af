/* The vocabulary of what is written once for f32 and f64, in dl_*_body.h: WIDTH
 * is 32 or 64 where it is used, and OF(abs)(x) is abs32 or abs64.  A body ends
 * its parameters' life. */
#ifndef DL_WIDTHS_H
#define DL_WIDTHS_H

#include "dl.h"

typedef float one32;
typedef double one64;
#define FMA32   FMAF
#define FMA64   FMA
#define FLOOR32 FLOORF
#define FLOOR64 FLOOR

#define OF(name) DL_CAT3(name, WIDTH, )
#if SD_LANES == 1
#define FN(name) DL_CAT3(dl_##name##_f, WIDTH, ) /* dl_sin_f32 */
#else
#define FN(name) DL_CAT3(DL_CAT3(dl_##name##_f, WIDTH, _x), SD_LANES, )
#endif
#define NUM      DL_CAT3(f, WIDTH, v)
#define BITS     DL_CAT3(u, WIDTH, v)
#define INT      DL_CAT3(i, WIDTH, v)
#define MASK     DL_CAT3(m, WIDTH, )
#define N(x)     ((NUM)(x))
#define B(x)     ((BITS)(x))
#define K(x)     ((INT)(x))

#endif
