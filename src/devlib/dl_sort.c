/* Sorting by codes: unsigned integers whose order is the one that is wanted,
 * so that the comparator of the program is gone.  An item is a code and, in
 * its lower half, what moves with it: the item's number in the row, or bits of
 * the data.  Radix sort, lowest digit first; and the k smallest of a row, by
 * one walk that keeps the best 2k so far and quickselect among them.
 *
 * Host only, and machine code of the build: kernels call it. */
#include "dl.h"
#include "dl_sort.h"

enum {
    LARGE = 8192, /* from here on fewer passes of larger digits pay */
    BLOCK = 16    /* codes that are held against the limit at once */
};

typedef uint32_t codes32 __attribute__((ext_vector_type(BLOCK)));
typedef uint64_t codes64 __attribute__((ext_vector_type(BLOCK)));

DL_INLINE int any_within_32(const uint32_t *c, uint32_t limit)
{
    codes32 v;

    __builtin_memcpy(&v, c, sizeof v);
    return __builtin_reduce_or(v <= (codes32)limit) != 0;
}

DL_INLINE int any_within_64(const uint64_t *c, uint64_t limit)
{
    codes64 v;

    __builtin_memcpy(&v, c, sizeof v);
    return __builtin_reduce_or(v <= (codes64)limit) != 0;
}

#define item    uint64_t
#define code    uint32_t
#define HALF    32
#define NAME(x) x##_32
#include "dl_sort_body.h"
#undef item
#undef code
#undef HALF
#undef NAME

#define item    unsigned __int128
#define code    uint64_t
#define HALF    64
#define NAME(x) x##_64
#include "dl_sort_body.h"
