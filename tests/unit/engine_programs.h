/* Programs for a matrix engine: products, convolutions and attention, with what
 * is known of their rounding; drawn from a seed, they are HLO text. */
#ifndef ENGINE_PROGRAMS_H
#define ENGINE_PROGRAMS_H

#include "base.h"

typedef enum {
    ENGINE_PRODUCT,
    ENGINE_CONVOLUTION,
    ENGINE_ATTENTION
} engine_kind;

enum { ENGINE_PARTS = 4 };
typedef struct {
    const char *text, *name;
    engine_kind kind;
    int64_t terms; /* of one sum */
    uint64_t seed; /* of the arguments */
    double slack;  /* of the sum of sizes, which roundings on the way take */
    int unsigned_from; /* arguments from here on make the sum of sizes */
    bool any;      /* it may have no engine, and then does not run, */
    bool plain;    /* or runs without */
    bool large; /* in the largest tiles, which take a CPU's compiler long */
    bool copied; /* operands are copied that do not lie as the engine likes */
    /* The result is so many arrays, one behind the other, each of so many
     * elements: each is held against its own largest one. */
    int npart;
    int64_t part[ENGINE_PARTS];
    double off[ENGINE_PARTS]; /* and may be so much of that off */
} engine_program;

engine_program engine_program_drawn(sd_arena *a, uint64_t seed);
/* Attention that is one kernel where operands are read by blocks, and where
 * items read them. */
enum { ENGINE_ATTENTIONS = 15 };
engine_program engine_program_attention(sd_arena *a, int i);
/* The same with its gradient: three kernels. */
enum { ENGINE_GRADIENTS = 8 };
engine_program engine_program_gradient(sd_arena *a, int i);

typedef struct {
    const char *of, *sum;
    int m, n, k, x_turned, y_turned;
} engine_product;
const char *engine_product_text(sd_arena *a, const engine_product *p);

#endif
