/* libcall: the call of a library's operation as plain data, e.g. "matmul, lhs
 * f32 of 64 x 128, ...".  The plan makes it, a thunk carries it, and an engine
 * of xpu does it: compiling never sees the library, running never sees HLO.
 * libcall.def has the operations and their fields.  Copied freely; no pointers
 * inside. */
#ifndef SD_LIBCALL_H
#define SD_LIBCALL_H

#include "device_desc.h"

typedef enum {
    LIBCALL_NO_ACTIVATION,
#define ACTIVATION(id, mode) LIBCALL_##id = mode,
#include "libcall.def"
    LIBCALL_ACTIVATION_COUNT
} libcall_activation;
typedef enum {
    LIBCALL_BIAS_NONE,   /* no operand */
    LIBCALL_BIAS_VECTOR, /* an operand over the features, of the result's type */
    LIBCALL_BIAS_UNUSED  /* an operand f32[1] that is not read: convolutions
                            have a bias operand in any case */
} libcall_bias;
typedef enum { LIBCALL_FORWARD, LIBCALL_TO_DATA, LIBCALL_TO_WEIGHTS }
    libcall_direction;
typedef enum { LIBCALL_AS_IS, LIBCALL_TRANSPOSE, LIBCALL_ADJOINT }
    libcall_transpose;

typedef enum {
#define LIBCALL(id, name, lib, target) LIBCALL_##id,
#include "libcall.def"
    LIBCALL_COUNT
} libcall_op;

typedef sd_dtype libcall_TYPE;
typedef int64_t libcall_INT;
typedef bool libcall_FLAG;
typedef double libcall_REAL;
#define LIBCALL(id, name, lib, target) typedef struct {
#define FIELD(op, kind, name, least, most) libcall_##kind name;
#define ARRAY(op, kind, name, many, least, most) libcall_##kind name[many];
#define END(id, name) } libcall_##name;
#include "libcall.def"

typedef struct libcall {
    libcall_op op;
    union {
#define LIBCALL(id, name, lib, target) libcall_##name name;
#include "libcall.def"
    };
} libcall;

typedef struct {
    const char *name;
    uint64_t lib;       /* device_lib bit: what runs it */
    const char *target; /* of the custom-call; NULL: the program's */
} libcall_info;
extern const libcall_info libcall_table[LIBCALL_COUNT];
/* "oneDNN": what does it on such a device. */
const char *libcall_library(const libcall *c, device_kind on);

/* The value of the field of that name, a REAL's bits; 0: it has none. */
int64_t libcall_field(const libcall *c, const char *name, size_t len);

/* The flat form, in which a call is saved: every field in order, REAL as its
 * bits.  Two calls are equal if their op and their words are. */
enum { LIBCALL_WORDS = 64 };
int libcall_words(const libcall *c, int64_t *out);
/* Back from that; an error if n or a value is not what the rows allow. */
sd_status libcall_of_words(int op, const int64_t *words, int n, libcall *out);
bool libcall_equal(const libcall *x, const libcall *y);
/* " {lhs=f32, rhs=f32, ...}": flags only when they are set. */
void libcall_print(sd_buf *b, const libcall *c);

/* The arrays that a call reads and writes: dense, operands first.  n is the
 * number of elements that the array has at least. */
typedef struct {
    sd_dtype type;
    int64_t n;
} libcall_arg;
typedef struct {
    int n, noperand;
    bool overflow; /* more than 2^63 elements */
    libcall_arg at[8];
} libcall_args;
libcall_args libcall_args_of(const libcall *c);
/* Is it a 3 x 3 convolution of f32 or bf16 that Winograd's algorithm does
 * faster than the library's direct one? */
bool libcall_conv_is_winograd(const libcall_conv *c);
double libcall_flops(const libcall *c); /* a guess: for threads and profiles */

#endif
