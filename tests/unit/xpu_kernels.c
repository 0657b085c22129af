/* Kernels for the runtime's tests: one source, built by clang as an x86-64
 * object (host ABI: tiles [first, last)), as SPIR-V and as PTX (a work group is
 * a tile).  A tile is 64 elements; the last slot of each kernel holds {n}. */
typedef unsigned long size_type;

#if defined __SPIRV__ || defined __NVPTX__
#define GLOBAL __attribute__((address_space(1)))
#ifdef __NVPTX__
#define get_group_id(dim) __nvvm_read_ptx_sreg_ctaid_x()
#define get_local_id(dim) __nvvm_read_ptx_sreg_tid_x()
#else
size_type __attribute__((overloadable)) get_group_id(unsigned dim);
size_type __attribute__((overloadable)) get_local_id(unsigned dim);
#endif
#define KERNEL1(name, body) \
    __attribute__((device_kernel)) void name(GLOBAL float *a, GLOBAL float *b, \
                                             GLOBAL int *n) \
    { \
        long i = (long)get_group_id(0) * 64 + (long)get_local_id(0); \
        if (i < n[0]) { \
            body; \
        } \
    }
#define KERNEL2(name, body) \
    __attribute__((device_kernel)) void name(GLOBAL float *a, GLOBAL float *b, \
                                             GLOBAL float *c, GLOBAL int *n) \
    { \
        long i = (long)get_group_id(0) * 64 + (long)get_local_id(0); \
        if (i < n[0]) { \
            body; \
        } \
    }
#else
#define GLOBAL
#define KERNEL2(name, body) \
    void name(void **slot, long first, long last, void *scratch) \
    { \
        float *a = slot[0], *b = slot[1], *c = slot[2]; \
        int *n = slot[3]; \
        (void)scratch; \
        for (long i = first * 64; i < last * 64 && i < n[0]; i++) { \
            body; \
        } \
    }
#define KERNEL1(name, body) \
    void name(void **slot, long first, long last, void *scratch) \
    { \
        float *a = slot[0], *b = slot[1]; \
        int *n = slot[2]; \
        (void)scratch; \
        for (long i = first * 64; i < last * 64 && i < n[0]; i++) { \
            body; \
        } \
    }
#endif

/* b = a * a + 1 */
KERNEL1(square, b[i] = a[i] * a[i] + 1)
/* b += a */
KERNEL1(accumulate, b[i] = b[i] + a[i])
/* c = a + b */
KERNEL2(add_two, c[i] = a[i] + b[i])
/* b[0..3] as bytes: pred = counter < limit, for loops: a = {counter, limit} */
KERNEL1(below, if (i < 1)((GLOBAL unsigned char *)b)[0] = a[0] < a[1])
/* counter in b[0] grows by a[0] */
KERNEL1(step, if (i < 1) b[0] = b[0] + a[0])
/* slow: many dependent operations an element */
KERNEL1(slow, float x = a[i]; for (int k = 0; k < 10000; k++) x = x * 0.5f + 1;
        b[i] = x)

#if !defined __SPIRV__ && !defined __NVPTX__
void *memcpy(void *, const void *, unsigned long);
static const float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
const float *const pointer[2] = {&table[1], &table[5]}; /* .data.rel.ro */
/* Imports, tables, an address that needs relocation, scratch. */
void imports(void **slot, long first, long last, void *scratch)
{
    float *b = slot[1];
    int *n = slot[2];

    for (long t = first; t < last; t++) {
        memcpy(scratch, slot[0], (unsigned long)n[0] * 4);
        for (int i = 0; i < n[0]; i++)
            b[i] = ((float *)scratch)[i] + *pointer[i & 1] + table[n[0] & 7];
    }
}
#endif
