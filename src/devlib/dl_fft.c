/* Discrete Fourier transforms of lines, in f32 and f64: see dl_fft.h. */
#include "dl_call.h"

#include <stdbool.h>

#define FMA(a, b, c) __builtin_elementwise_fma(a, b, c)
#define CAT_(a, b)   a##b
#define CAT(a, b)    CAT_(a, b)
/* hlo_fft.c makes other lengths of these */
enum { MOST_RADIX = 131, MOST_ACROSS = 16, MOST_WIDTH = 16, MOST_SHARED = 4 };

/* Two vectors' elements in turns, their lower halves and their upper; those at
 * even places and at odd; one backwards. */
#define ZIP_LO_4  0, 4, 1, 5
#define ZIP_HI_4  2, 6, 3, 7
#define EVEN_4    0, 2, 4, 6
#define ODD_4     1, 3, 5, 7
#define BACK_4    3, 2, 1, 0
#define ZIP_LO_8  0, 8, 1, 9, 2, 10, 3, 11
#define ZIP_HI_8  4, 12, 5, 13, 6, 14, 7, 15
#define EVEN_8    0, 2, 4, 6, 8, 10, 12, 14
#define ODD_8     1, 3, 5, 7, 9, 11, 13, 15
#define BACK_8    7, 6, 5, 4, 3, 2, 1, 0
#define ZIP_LO_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ZIP_HI_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define EVEN_16   0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD_16    1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define BACK_16   15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0
#if SD_LANES == 1
#define SHUFFLE(x, y, how) (x)
#else
#define SHUFFLE(x, y, how) __builtin_shufflevector(x, y, CAT(how, LANES))
#endif

/* Places in planes, a plane's number `i`, and how much room n numbers take. */
#ifdef DL_X86
typedef int64_t INDEX;
#else
typedef int32_t INDEX;
#endif
#define ROW(at, width) ((INDEX)((uint32_t)(at) / (uint32_t)(width)))
#define PAD(i)         (i)
#define ROOM(n)        (n)
#define DL_WORK        DL_GLOBAL

/* Before a loop whose length GPUs know with the plan: its arrays are registers.
 */
#ifdef DL_X86
#define WRITTEN_OUT
#else
#define WRITTEN_OUT _Pragma("clang loop unroll(full)")
#endif

/* A set of radices has bit r for a radix r of up to 16, OTHER_RADIX for larger
 * ones.  On GPUs, where the whole is compiled for one plan, the code of radices
 * that the plan has not is left out. */
#define OTHER_RADIX 2u
#define ODD_RADICES \
    ~(1u | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 8 | 1u << 16)
#define ALL_RADICES ~0u
#ifdef DL_X86
#define IF_HAS(set, some, ...) __VA_ARGS__
#else
#define IF_HAS(set, some, ...) \
    if ((set) & (some)) \
    __VA_ARGS__
#endif

#define REAL  float
#define FN(x) x##_f32
#define LANES SD_LANES
#include "dl_fft_small.h"
#include "dl_fft.h"
#undef REAL
#undef FN
#undef LANES

#define REAL  double
#define FN(x) x##_f64
#if SD_LANES == 16
#define LANES 8
#elif SD_LANES == 8
#define LANES 4
#else
#define LANES 1
#endif
#include "dl_fft_small.h"
#include "dl_fft.h"

/* Once more with planes in the group's local memory, which has 32 banks: steps
 * of powers of two would read one of them. */
#ifndef DL_X86
#undef DL_WORK
#undef PAD
#undef ROOM
#define DL_WORK DL_LOCAL
#define PAD(i)  ((i) + ((i) >> 5))
#define ROOM(n) ((n) + ((n) >> 5))
#undef REAL
#undef FN
#define REAL  float
#define FN(x) x##_local_f32
#include "dl_fft_small.h"
#include "dl_fft.h"
#undef REAL
#undef FN
#define REAL  double
#define FN(x) x##_local_f64
#include "dl_fft_small.h"
#include "dl_fft.h"
#endif
