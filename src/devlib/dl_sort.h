/* What callers of dl_sort.c's functions must know. */
#ifndef DL_SORT_H
#define DL_SORT_H

#include <stdint.h>

/* Few enough to be sorted by counting comparisons. */
#define DL_SORT_FEW 48
/* Counters of all digits: of 64 bits in digits of 11. */
#define DL_SORT_COUNTS (6 << 11)
/* Items that dl_few_take wants room for, to keep k. */
#define DL_FEW_ROOM(k) (2 * (k) + DL_SORT_FEW)

typedef struct { /* the search for the k smallest of a row; set before it: */
    int64_t k;     /* how many */
    int64_t number_bits; /* that the items' numbers have */
    uint64_t limit; /* all ones; then no code above it is wanted */
    int64_t n;     /* 0; then how many there are to choose from */
    int64_t full;  /* 0; then 1 when nothing that comes can be less */
} dl_few;

#endif
