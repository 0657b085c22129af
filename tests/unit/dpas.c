/* Intel's matrix engine, written over broadcasts in a sub-group, for a device
 * that has no such engine: test_engines links it to kernels that call it.  x
 * has 8 rows, of which each item holds the same number of bytes; y a column an
 * item; both 32 bytes of k.  Sums are f32 or s32: those of floats in the order
 * of k, which is one of the orders that an engine may take. */
typedef short short8 __attribute__((ext_vector_type(8)));
typedef unsigned short ushort8 __attribute__((ext_vector_type(8)));
typedef int int8 __attribute__((ext_vector_type(8)));
typedef unsigned uint8 __attribute__((ext_vector_type(8)));
typedef unsigned uint16 __attribute__((ext_vector_type(16)));
typedef float float8 __attribute__((ext_vector_type(8)));
typedef float float16 __attribute__((ext_vector_type(16)));

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

/* Without a type of its own, which not every device has. */
static float of_f16(unsigned bits)
{
    unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
    union {
        unsigned i;
        float f;
    } u = {(exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13};
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

/* Deep blocks: a sum lies in its slot.  Of x an item has two rows a word, 8 of
 * the first half of K above 8 of these, then those of the second half; part
 * counts in fours of words.  From 4 on y's second 8 words are asked for. */
typedef union {
    uint16 all;
    short8 rows[4];
    int8 words[2];
} parts;

#define BEGIN(type, ACC) \
    void sundog_begin_##type(unsigned long slot, unsigned sum) \
    { \
        *(ACC *)slot = (ACC)0; \
    } \
    ACC sundog_take_##type(unsigned long slot, unsigned sum) \
    { \
        return *(ACC *)slot; \
    }
BEGIN(f, float8)
BEGIN(d, int8)

#define ADD(type, ACC, X, Y, engine) \
    void sundog_add_##type(unsigned long slot, uint16 x, uint8 y, \
                           unsigned sum, unsigned part) \
    { \
        parts p = {x}; \
        ACC *acc = (ACC *)slot; \
        *acc = engine((X)p.rows[part % 4], (Y)y, *acc); \
    }
#define ADD_DEEP(type, ACC, engine) \
    ADD(type, ACC, short8, int8, engine) \
    void sundog_add_##type##_deep(unsigned long slot, uint16 x, uint16 y, \
                                  unsigned sum, unsigned part) \
    { \
        parts p = {x}, q = {y}; \
        ACC *acc = (ACC *)slot; \
        *acc = engine(p.rows[part % 4], q.words[part / 4], *acc); \
    }
ADD_DEEP(bf, float8, intel_sub_group_bf16_bf16_matrix_mad_k16)
ADD_DEEP(hf, float8, intel_sub_group_f16_f16_matrix_mad_k16)
ADD(s8, int8, short8, int8, intel_sub_group_i8_i8_matrix_mad_k32)
ADD(u8, int8, ushort8, uint8, intel_sub_group_u8_u8_matrix_mad_k32)

/* Which item asks for which row. */
unsigned __attribute__((overloadable)) get_sub_group_local_id(void);

/* What attention does with rows. */
#define ROWS(name, type, engine) \
    void sundog_add_##name##_rows(unsigned long slot, short8 x, int8 y, \
                                  unsigned sum, unsigned part) \
    { \
        float8 *acc = (float8 *)slot; \
        *acc = engine(x, y, *acc); \
    } \
    void sundog_add_##name##_words(unsigned long slot, int8 x, int8 y, \
                                   unsigned sum, unsigned part) \
    { \
        float8 *acc = (float8 *)slot; \
        *acc = engine(x, y, *acc); \
    } \
    int8 sundog_join_##name(float8 v, float8 w) \
    { \
        int8 to; \
        unsigned item = get_sub_group_local_id(), all = get_work_dim(); \
        for (unsigned i = 0; i < 8 * all; i++) { \
            unsigned lo = to_##type(v[i]), hi = to_##type(w[i]), got = 0; \
            for (unsigned j = 0; j < 16 * all; j++) { \
                unsigned one = sub_group_broadcast(j < 8 ? lo : hi, j % 8); \
                got |= item == j / 2 ? one << j % 2 * 16 : 0; \
            } \
            to[i] = (int)got; \
        } \
        return to; \
    } \
    short8 sundog_narrow_##name(float8 v) \
    { \
        short8 to; \
        for (unsigned i = 0; i < 8; i++) \
            to[i] = (short)to_##type(v[i]); \
        return to; \
    }

static unsigned bits_of(float v)
{
    union {
        float f;
        unsigned i;
    } u = {v};

    return u.i;
}

static float of_bits(unsigned i)
{
    union {
        unsigned i;
        float f;
    } u = {i};

    return u.f;
}

/* The upper bits of v that are left without `drop`, to the nearest, ties to
 * even. */
static unsigned rounded(unsigned v, unsigned drop)
{
    return (v + (1u << (drop - 1)) - 1 + (v >> drop & 1)) >> drop;
}

static unsigned to_bf16(float v)
{
    return v != v ? 0x7fc0 : rounded(bits_of(v), 16);
}

static unsigned to_f16(float v)
{
    unsigned sign = bits_of(v) >> 16 & 0x8000, all = bits_of(v) & 0x7fffffff;

    if (all > 0x7f800000)
        return 0x7e00;
    if (all >= 0x477ff000) /* rounds to 2 to the 16 */
        return sign | 0x7c00;
    if (all < 0x38800000) /* subnormal: the sum has a unit of 2 to the -24 */
        return sign | (bits_of(of_bits(all) + 0.5f) & 0x7ff);
    return sign | (rounded(all, 13) - (112 << 10));
}

ROWS(bf, bf16, intel_sub_group_bf16_bf16_matrix_mad_k16)
ROWS(hf, f16, intel_sub_group_f16_f16_matrix_mad_k16)

static float of_item(float v, unsigned item)
{
    return of_bits(sub_group_broadcast(bits_of(v), item));
}

#define OF_ROWS(name, type, n, joined) \
    float sundog_##name(type v) \
    { \
        unsigned one = get_work_dim(); \
        float got = 0; \
        for (unsigned r = 0; r < n * one; r++) { \
            float a = of_item(v[r], 0); \
            for (unsigned i = 1; i < n * one; i++) { \
                float b = of_item(v[r], i); \
                a = joined; \
            } \
            if (get_sub_group_local_id() == r) \
                got = a; \
        } \
        return got; \
    }
#define LARGER (a >= b || b != b ? a : b)
OF_ROWS(rows_most, float16, 16, LARGER)
OF_ROWS(rows_sum, float16, 16, a + b)
OF_ROWS(eights_most, float8, 8, LARGER)
OF_ROWS(eights_sum, float8, 8, a + b)

#define BY_ROWS(result) \
    { \
        float8 *acc = (float8 *)slot; \
        for (unsigned i = 0; i < 8; i++) { \
            float each = of_item(by, of + i); \
            (*acc)[i] = result; \
        } \
    }
void sundog_scale_f(unsigned long slot, float by, unsigned sum, unsigned of)
    BY_ROWS((*acc)[i] * each) void sundog_fold_f(unsigned long slot, float8 v,
                                                 float by, unsigned sum,
                                                 unsigned of)
        BY_ROWS((*acc)[i] * each + v[i])

/* Blocks of local memory: 8 numbers of each item. */
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

/* Messages that read blocks of a matrix, 2-D.  What one is told lies in the
 * first eight items.  What a GPU would not take gives ones, which is NaN or
 * -1. */
#define GLOBAL const __attribute__((address_space(1)))
typedef struct {
    unsigned long base;
    int width, height, pitch, column, row; /* the first three less 1 */
} message;

static unsigned word_of(int told, unsigned item)
{
    return sub_group_broadcast((unsigned)told, item);
}

static message read_told(int told)
{
    return (message){(unsigned long)word_of(told, 1) << 32 | word_of(told, 0),
                     (int)word_of(told, 2),
                     (int)word_of(told, 3),
                     (int)word_of(told, 4),
                     (int)word_of(told, 5),
                     (int)word_of(told, 6)};
}

/* `unit` bytes are what its columns are numbered by. */
static int is_taken(const message *m, int unit)
{
    return m->base % 64 == 0 && m->width >= 63 && m->width % 4 == 3 &&
           m->width < 1 << 24 && m->height >= 0 && m->height < 1 << 24 &&
           m->pitch >= 63 && m->pitch % 8 == 7 && m->pitch < 1 << 24 &&
           m->column * unit % 4 == 0;
}

#define PART(r, byte, number) \
    ((r) >= 0 && (r) <= m.height && (byte) >= 0 && (byte) <= m.width \
         ? *(GLOBAL number *)(m.base + (long)(r) * (m.pitch + 1) + (byte)) \
         : (number)0)
#define EACH(n, unit, element) \
    int item = (int)get_sub_group_local_id(); \
    for (int i = 0; i < n * (int)get_work_dim(); i++) \
        v[i] = is_taken(&m, unit) ? element : -1; \
    return v;

#define MESSAGE(name, type, n, shape, unit, element) \
    type sundog_block_##name(int told) \
    { \
        message m = read_told(told); \
        type v; \
\
        if (word_of(told, 7) != shape) \
            m.base = 1; \
        EACH(n, unit, element) \
    }
#define PAIR(i) \
    ((unsigned)PART(m.row + 2 * i, 2 * (m.column + item), unsigned short) | \
     (unsigned)PART(m.row + 2 * i + 1, 2 * (m.column + item), unsigned short) \
         << 16)
#define BYTE(r) ((unsigned)PART(m.row + r, m.column + item, unsigned char))

MESSAGE(rows, short8, 8, 0x070f, 2,
        PART(m.row + i, 2 * (m.column + item), short))
MESSAGE(turned, int8, 8, 0x0f07, 4, PART(m.row + item, 4 * (m.column + i), int))
MESSAGE(pairs, int8, 8, 0x0f0f, 2, (int)PAIR(i))
MESSAGE(fours, int8, 8, 0x1f0f, 1,
        (int)(BYTE(4 * i) | BYTE(4 * i + 1) << 8 | BYTE(4 * i + 2) << 16 |
              BYTE(4 * i + 3) << 24))
#define ROW(i, below) \
    ((unsigned)(unsigned short)PART(m.row + (i) % 8 * 2 + below, \
                                    2 * (m.column + (i) / 8 * 16 + item), \
                                    unsigned short))
MESSAGE(deep_rows, uint16, 16, 0x10f0f, 2, ROW(i, 0) | ROW(i, 1) << 16)
MESSAGE(deep_pairs, uint16, 16, 0x1f0f, 2, PAIR(i))
