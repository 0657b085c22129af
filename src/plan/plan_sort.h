/* Kernels that sort: what each of them does, and how its work space is laid
 * out. */
#ifndef PLAN_SORT_H
#define PLAN_SORT_H

#include "plan_node.h"

/* What a kernel that sorts does.  GPUs sort rows that are too long for a group
 * in several kernels: see plan_part. */
typedef enum {
    PLAN_SORT_ROWS,  /* A tile is a row. */
    PLAN_SORT_TILES, /* A tile is a piece of a row: `piece` elements, the last
                        one of a row the rest.  Results are rows of the
                        first `keep` of each piece, side by side. */
    PLAN_SORT_MERGE, /* Operands are [rows][n], in which runs are in order; two
                        by two they are merged.  The slot after the results
                        holds the length of a run, an s64, and all of a row's
                        runs but the last are so long.  An item makes `each`
                        neighbouring results, which two runs have: `each`
                        divides a run. */
    PLAN_SORT_COUNT, /* These three sort by a digit, `bits` bits of the codes
                        from bit `shift` on, an s64 in the last slot.  A tile
                        is a piece, of which an item has `each` elements.  The
                        slot after the results has numbers, u32
                        [rows][1 << bits][pieces + 1].  This one writes how
                        many elements of a piece have a digit. */
    PLAN_SORT_SUM,   /* A tile is a digit of a row: each of its numbers but the
                        last becomes the sum of those before it, and the last
                        the sum of all.  That is the only slot. */
    PLAN_SORT_MOVE   /* An element goes behind those of smaller digits in the
                        row, those of its digit in pieces before its own, and
                        those of its digit before it in its piece. */
} plan_sort_step;
typedef struct { /* a kernel that sorts: rows x n, `inner` between elements */
    int64_t rows, n, inner; /* operands viewed as [rows/inner][n][inner] */
    int64_t keep;           /* so many of a row are wanted, the first ones */
    plan_body *less;        /* 2*nop parameters: x0 y0 x1 y1 ...; pred */
    int nop;                /* operands */
    int *in;                /* operand -> slot; -1: the place in the row */
    sd_dtype *type;         /* of an operand */
    int nout, *out;         /* result i, in slot first_out + i -> operand */
    int first_out;
    bool stable;
    plan_body *keys;        /* the comparator as an order: numbers made of
                               parameters 2*o, most significant first; or NULL */
    bool *down;             /* of a key: the largest comes first */
    int code_bits;          /* of all keys; at most 64.  Of the places of a
                               scatter, the lower ones that matter */
    size_t scratch;         /* bytes of a row's work space */
    int lanes;              /* host: codes of neighbours are made in vectors of
                               so many; 1: one by one */
    plan_sort_step step;
    int64_t piece;          /* TILES, COUNT, SUM, MOVE */
    int each;               /* MERGE, COUNT, SUM, MOVE; ROWS and TILES of a GPU:
                               elements that an item has in registers, 0 where
                               none has and all are merged one by one */
    int64_t inner_out;      /* MOVE: between elements of the results */
    int bits;               /* of a digit */
    int team;               /* COUNT, MOVE: neighbouring items that have a
                               counter of each digit in common: they vote.
                               ROWS, TILES with `each`: the items of a row */
} plan_sort;

/* The work space of a row that the host sorts by keys: items, which are a code
 * and what moves with it, `half` bits each.  few: of the elements only those
 * that may be among the first `keep` are put into `a`. */
enum { PLAN_SORT_FEW = 48, PLAN_SORT_COUNTS = 6 << 11, PLAN_SORT_BLOCK = 1024 };
typedef struct {
    bool few;
    int half;
    int64_t room;        /* items in a */
    size_t a, b, count;  /* offsets of areas */
    size_t state, codes; /* few: the search; codes of a block */
    size_t bytes;
} plan_sort_areas;

/* The local memory of a group that sorts by a digit: offsets. */
typedef struct {
    size_t counters;     /* u32 [group / team][1 << bits]; MOVE: later operands of
                            the piece, one after the other */
    size_t first, apart; /* MOVE, u32 [1 << bits]: of a digit, where it begins in
                            the piece, and how far the result is from there */
    size_t digits;       /* MOVE, u8 [piece] */
    size_t sums;         /* MOVE, SUM, u64 [group] */
    size_t bytes;
} plan_digit_areas;

/* The local memory of a group whose items have elements in registers: codes,
 * numbers behind them where they do not fit into their lower bits; later operands
 * one after the other.  After each `line` elements is room for one. */
typedef struct {
    int code_bytes, number_bits;
    int number_bytes;    /* 0: they are in the codes */
    int64_t line;
    size_t numbers;      /* offset */
    size_t bytes;
} plan_item_areas;

/* ---- ask ---- */

enum {
    PLAN_SORT_GROUP = 128, /* items that rows of few share */
    PLAN_BANKS_BYTES = 128 /* of all banks of local memory */
};
static inline int plan_sort_abreast(const plan_sort *s) /* rows of a group */
{
    return s->step == PLAN_SORT_ROWS && s->team && s->team < PLAN_SORT_GROUP
               ? PLAN_SORT_GROUP / s->team
               : 1;
}
void plan_item_place(const plan_sort *s, plan_item_areas *out);
void plan_sort_place(const plan_sort *s, plan_sort_areas *out);
void plan_digit_place(const plan_sort *s, plan_digit_areas *out);
static inline bool plan_sort_has_digits(const plan_sort *s)
{
    return s->step == PLAN_SORT_COUNT || s->step == PLAN_SORT_SUM ||
           s->step == PLAN_SORT_MOVE;
}
static inline bool plan_sort_has_items(const plan_sort *s)
{
    return (s->step == PLAN_SORT_ROWS || s->step == PLAN_SORT_TILES) && s->each;
}
static inline int64_t plan_sort_pieces(const plan_sort *s) /* of a row */
{
    return (s->n + s->piece - 1) / s->piece;
}
/* Elements of a row of n when `keep` of each piece are kept. */
int64_t plan_sort_kept(int64_t n, int64_t piece, int64_t keep);
/* Of a row's work space. */
size_t plan_sort_bytes(const plan_sort *s, bool host);
/* All operands are results, in full, so a result can be a work space too. */
bool plan_sort_is_full(const plan_sort *s);

#endif
