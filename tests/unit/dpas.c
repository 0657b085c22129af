/* Intel's matrix engine, written over broadcasts in a sub-group, for a device
 * that has no such engine: test_engines links it to kernels that call it.  x
 * has 8 rows, of which each item holds the same number of bytes; y a column an
 * item; both 32 bytes of k.  Sums are f32 or s32: those of floats in the order
 * of k, which is one of the orders that an engine may take. */
typedef short short8 __attribute__((ext_vector_type(8)));
typedef unsigned short ushort8 __attribute__((ext_vector_type(8)));
typedef int int8 __attribute__((ext_vector_type(8)));
typedef unsigned uint8 __attribute__((ext_vector_type(8)));
typedef float float8 __attribute__((ext_vector_type(8)));

#define MADE __attribute__((overloadable, always_inline))
unsigned __attribute__((overloadable, convergent))
sub_group_broadcast(unsigned x, unsigned item);
unsigned __attribute__((overloadable)) get_work_dim(void);

static float of_bf16(unsigned bits)
{
    union {
        unsigned i;
        float f;
    } u = {bits << 16};

    return u.f;
}

/* Without a type of its own, which not every device has; no NaN, no infinity.
 */
static float of_f16(unsigned bits)
{
    unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
    union {
        unsigned i;
        float f;
    } u = {(exponent + 112) << 23 | fraction << 13};
    float v = exponent ? u.f : (float)fraction * 0x1p-24f;

    return bits >> 15 & 1 ? -v : v;
}

static int of_s8(unsigned bits)
{
    return (signed char)bits;
}

static int of_u8(unsigned bits)
{
    return (unsigned char)bits;
}

/* acc + x * y where an item has `word` bytes of a row and an element `each`.
 * get_work_dim is 1, which no compiler knows: unrolled, it would take a driver
 * seconds to compile a kernel. */
#define BODY(word, each, of) \
    unsigned one = get_work_dim(); \
    for (unsigned r = 0; r < 8 * one; r++) \
        for (unsigned item = 0; item < 32 / word * one; item++) { \
            unsigned w = sub_group_broadcast((unsigned)x[r], item); \
            for (unsigned i = 0; i < word / each; i++) { \
                unsigned at = item * word + i * each; \
                unsigned v = (unsigned)y[at / 4] >> 8 * (at % 4); \
                unsigned mask = each == 1 ? 255 : 65535; \
                acc[r] += of((w >> 8 * i * each) & mask) * of(v & mask); \
            } \
        } \
    return acc;

#define ENGINE(name, X16, X8, Y, ACC, each, of) \
    MADE ACC name(X16 x, Y y, ACC acc){BODY(2, each, of)} MADE ACC name( \
        X8 x, Y y, ACC acc) \
    { \
        BODY(4, each, of) \
    }

ENGINE(intel_sub_group_bf16_bf16_matrix_mad_k16, short8, int8, int8, float8, 2,
       of_bf16)
ENGINE(intel_sub_group_f16_f16_matrix_mad_k16, short8, int8, int8, float8, 2,
       of_f16)
ENGINE(intel_sub_group_i8_i8_matrix_mad_k32, short8, int8, int8, int8, 1, of_s8)
ENGINE(intel_sub_group_u8_u8_matrix_mad_k32, ushort8, uint8, uint8, int8, 1,
       of_u8)

/* Blocks of local memory: 8 numbers of each item. */
unsigned __attribute__((overloadable)) get_sub_group_local_id(void);
unsigned __attribute__((overloadable)) get_max_sub_group_size(void);
#define LOCAL const __attribute__((address_space(3)))

#define BLOCK(name, type, number) \
    type name(LOCAL char *p) /* as the kernels have it: a byte's */ \
    { \
        unsigned item = get_sub_group_local_id(), \
                 all = get_max_sub_group_size(); \
        type v; \
        for (unsigned i = 0; i < 8; i++) \
            v[i] = *(LOCAL number *)(p + (i * all + item) * sizeof(number)); \
        return v; \
    }

BLOCK(__builtin_IB_simd_block_read_8_local_h, ushort8, unsigned short)
BLOCK(__builtin_IB_simd_block_read_8_local, uint8, unsigned)
