/* A GPU's ABI: what kernels for it look like beside the code of their bodies, and
 * the instructions that LLVM has no name for.  A column of target_ops; emit_gpu.c
 * writes down what all GPUs have. */
#ifndef EMIT_ABI_H
#define EMIT_ABI_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct emit emit;

typedef enum { EMIT_ITEM, /* the number of the work item in its group */
               EMIT_GROUP /* the number of the group */ } emit_id;
enum { EMIT_LOCAL = 1, EMIT_GLOBAL = 2 }; /* kinds of memory, as a mask */
/* A matrix in local memory: x, whose rows are `side` elements apart, or y, whose
 * columns are; positions of k are `deep` apart. */
typedef struct { bool y; int64_t side, deep; } emit_side;
enum { EMIT_PIECES = 4 };
/* What a wide engine multiplies at once: from where x and y lie on in local
 * memory, whether their lines are positions of K, columns, instructions. */
typedef struct {
    LLVMValueRef x, y;
    bool x_deep, y_deep;
    int columns, times;
    LLVMValueRef *held; /* x, of each time EMIT_PIECES words; NULL: it lies there */
} emit_wide;
/* The products of a window's gradient (plan_places.h): of y's rows x columns
 * units of positions, with those of x that `places` of a row of the window have
 * beside them. */
typedef struct {
    LLVMValueRef x, y; /* where they begin in local memory */
    int64_t rows, columns;
    int places;
} emit_positions;
/* The same of a unit, by items that have read it: EMIT_OF_UNIT numbers of y, and
 * as many of each place's x. */
enum { EMIT_OF_UNIT = 8 };
/* Blocks of a matrix in memory that a sub-group reads for its engine: 32 bytes
 * of each of 8 rows of x; a column an item of y, in words, where columns lie
 * along K (turned), or rows do not: pairs or fours of them are woven.  Deep ones
 * are twice that along K, of 16 rows of x: the engine takes them in parts. */
typedef enum { EMIT_BLOCK_ROWS, EMIT_BLOCK_TURNED, EMIT_BLOCK_PAIRS,
               EMIT_BLOCK_FOURS, EMIT_BLOCK_DEEP_ROWS,
               EMIT_BLOCK_DEEP_PAIRS, EMIT_BLOCK_COUNT } emit_reads;
/* What an engine adds of such blocks to a sum: of x the upper rows or the lower
 * ones, of both the first or the second half of K.  `slot` holds a sum where
 * the engine has none of its own. */
typedef struct {
    LLVMValueRef slot, x, y;
    int sum;
    bool lower, second, deep_y;
} emit_parts;
typedef struct emit_attend_abi emit_attend_abi; /* emit_attend.h */
typedef struct {
    unsigned kernel_cc;   /* calling convention of a kernel */
    unsigned function_cc; /* of a function that a kernel calls */
    size_t static_local;  /* more local memory is given by the launch; 0: none */
    void (*mark)(emit *e); /* attributes and metadata of the kernel e->fn */
    LLVMValueRef (*id)(emit *e, emit_id which); /* of i32 or of i64 */
    /* All items of a group wait for each other, and see from then on what the
     * others wrote to such memory. */
    void (*barrier)(emit *e, unsigned memory);
    /* The same, and an i1: is c, an i1, true for any of them?  NULL: no kernel can be
     * told to end, and only whole groups meet. */
    LLVMValueRef (*any)(emit *e, LLVMValueRef c);
    /* Items number n * together .. of a group hand each other values without
     * memory: v, an i32, of that one among them whose number is `from`, an i32.
     * All of them ask.  together 0: they do not. */
    int together;
    LLVMValueRef (*shuffle)(emit *e, LLVMValueRef v, LLVMValueRef from);
    /* They vote: bit i of an i32 is c, an i1, of item i among them; and wait for
     * each other, and see what the others wrote to local memory.  May be NULL. */
    LLVMValueRef (*vote)(emit *e, LLVMValueRef c);
    void (*meet)(emit *e);
    /* Bit i of an i32: has item i among them the same v, an i32?  NULL where
     * they do not vote. */
    LLVMValueRef (*same)(emit *e, LLVMValueRef v);
    /* Matrix instructions, by the engine of the kernel: squares of PLAN_SQUARE x
     * PLAN_SQUARE sums, which the items of a sub-group share.  own: bytes from
     * an area to where item i reads of the square that begins with row or column
     * `from`; square: what it reads of it, at most EMIT_PIECES values; multiply:
     * acc + x * y; place: where in the square item i's first sum is; beside: how
     * many rows and columns behind it sum number `sum` is, and with it the `run`
     * - 1 that follow along N. */
    LLVMValueRef (*own)(emit *e, const emit_side *s, LLVMValueRef from,
                        LLVMValueRef i);
    /* NULL, or what all items of a sub-group read from one place: its offset, the
     * same for all, as a value that their compiler knows to be so. */
    LLVMValueRef (*uniform)(emit *e, LLVMValueRef v);
    LLVMValueRef (*zero)(emit *e); /* 0 that no compiler knows; may be NULL */
    void (*square)(emit *e, const emit_side *s, LLVMValueRef p,
                   LLVMValueRef *v);
    void (*multiply)(emit *e, LLVMValueRef *acc, const LLVMValueRef *x,
                     const LLVMValueRef *y);
    LLVMValueRef (*trim)(emit *e, LLVMValueRef v); /* f32 as an engine takes it */
    void (*place)(emit *e, LLVMValueRef i, LLVMValueRef *m, LLVMValueRef *n);
    void (*beside)(const emit *e, int sum, int *m, int *n);
    /* Such a block, by all that the message is told, a word an item. */
    LLVMValueRef (*read_block)(emit *e, emit_reads what, LLVMValueRef told);
    /* The message counts columns in units of so many bytes. */
    int (*block_unit)(emit_reads what);
    /* The word that says its shape. */
    unsigned (*block_shape)(emit_reads what);
    /* Sums of deep blocks are the engine's own from when they begin, as 0, until
     * they are taken, to their slots. */
    void (*begin_sum)(emit *e, LLVMValueRef slot, int sum);
    void (*add_parts)(emit *e, const emit_parts *p);
    void (*take_sum)(emit *e, LLVMValueRef slot, int sum);
    /* Wide engines: the item's n sums, of type t, are the engine's own from when
     * they are opened, as 0, until they are taken.  sums + x * y begins and goes
     * on by itself; wait: until no more than `left` (0 to 3) that were begun go
     * on.  settle: after the next barrier wide engines see, too, what the
     * item wrote to local memory. */
    void (*open_sums)(emit *e, LLVMTypeRef t, int n);
    void (*take_sums)(emit *e, LLVMTypeRef t, LLVMValueRef *out, int n);
    void (*clear_sums)(emit *e, LLVMTypeRef t, int n);
    /* Items that multiply f32 by themselves have such sums, too, and n factors
     * that are kept until others are: nx of x, then ny of y.  Sum i * ny + j has
     * the product of x's i and y's j added, rounded once. */
    void (*open_factors)(emit *e, int n);
    void (*keep_factors)(emit *e, LLVMValueRef *v, int n);
    void (*add_products)(emit *e, int nx, int ny);
    void (*begin)(emit *e, const emit_wide *w);
    void (*wait)(emit *e, int left);
    void (*settle)(emit *e);
    /* PLAN_LINE_PART bytes go by themselves from memory to an area, or zeros
     * where `not`, an i1 or NULL, holds; whoever waits leaves the last `left`
     * turns of copies, each ended by a close. */
    void (*copy)(emit *e, LLVMValueRef to, LLVMValueRef from, LLVMValueRef not);
    void (*close_copies)(emit *e);
    void (*await_copies)(emit *e, int left);
    const emit_attend_abi *attend; /* or NULL */
    void (*begin_places)(emit *e, const emit_positions *p); /* likewise */
    void (*add_unit)(emit *e, LLVMValueRef *y, LLVMValueRef *const *x,
                     int places);
    int run, pack; /* pack: sums of one acc, a vector; 1: it is a number */
    bool bf16; /* there is an instruction that rounds f32 to it */
    bool dear_division; /* of f32: a dozen instructions and a branch */
    bool f32_maximum; /* there are instructions for llvm.maximum, minimum of f32 */
} emit_abi;

#endif
