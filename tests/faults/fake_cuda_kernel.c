/* The fake libcuda's modules and kernels: those of xpu_kernels.c by name, and
 * what the runtime's own kernels do, which have no code here. */
#include "fake_cuda.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

struct cu_module_st {
    int nothing;
};
static struct cu_function_st *functions;

cu_result cuModuleLoadDataEx(cu_module *out, const void *image, unsigned n,
                             int *option, void **value)
{
    cu_result err = fake_trouble_in(NULL);
    cu_module m;

    if (!err && !strstr(image, ".version")) {
        for (unsigned i = 0; i < n; i++)
            if (option[i] == CU_JIT_ERROR_LOG)
                strcpy(value[i], "the fake did not want to");
        err = 218; /* CUDA_ERROR_INVALID_PTX */
    }
    if (err)
        return err;
    if (!(m = fake_make(sizeof *m)))
        return CU_OUT_OF_MEMORY;
    *out = m;
    return CU_OK;
}

cu_result cuModuleUnload(cu_module m)
{
    pthread_mutex_lock(&fake_lock);
    for (struct cu_function_st **at = &functions, *f; (f = *at);)
        if (f->module == m) {
            *at = f->next;
            free(f);
        } else {
            at = &f->next;
        }
    pthread_mutex_unlock(&fake_lock);
    return fake_drop(m);
}

static void tell(void *condition, unsigned value)
{
    *(_Atomic unsigned *)condition = value;
}

static void turn(void **slot, long first, long last, void *scratch)
{
    (void)first, (void)last, (void)scratch;
    tell(slot[0],
         *(uint8_t *)slot[1] && !atomic_load((_Atomic uint32_t *)slot[2]));
}

static void branch(void **slot, long first, long last, void *scratch)
{
    uint64_t how = (uintptr_t)slot[2];
    uint32_t most = (uint32_t)(how >> 32) & 0x7fffffff, which;

    (void)first, (void)last, (void)scratch;
    which = how >> 63 ? !*(uint8_t *)slot[1] : *(uint32_t *)slot[1];
    tell(slot[0], SD_MIN(which, most) == (uint32_t)how);
}

/* Memory of another device is read where there is a way. */
static void check_way(const void *to, const void *from)
{
    if (!fake_is_reached(to, from))
        abort();
}

/* Units of a row, rows, steps of to and from, groups of a column and nothing;
 * then four columns' to and four columns' from. */
static void read_columns(void **slot, long groups, size_t unit)
{
    size_t bytes = (uintptr_t)slot[0] * unit;

    for (long c = 0; c < groups / (long)(uintptr_t)slot[4]; c++) {
        char *to = slot[6 + c], *from = slot[10 + c];

        if (from)
            check_way(to, from);
        for (size_t i = 0; i < (uintptr_t)slot[1]; i++)
            if (from)
                memcpy(to + i * (uintptr_t)slot[2],
                       from + i * (uintptr_t)slot[3], bytes);
            else
                memset(to + i * (uintptr_t)slot[2], 0, bytes);
    }
}

#define READ(unit) \
    static void read##unit(void **slot, long first, long last, void *scratch) \
    { \
        (void)scratch; \
        read_columns(slot, last - first, unit); \
    }
READ(1)
READ(4)
READ(16)

/* The number and the host's word; then 64 words to write the number into, and
 * 64 to look at. */
static void meet(void **slot, long first, long last, void *scratch)
{
    uint64_t number = (uintptr_t)slot[0];
    const _Atomic uint32_t *stop = slot[1];

    (void)first, (void)last, (void)scratch;
    for (int i = 2; i < 66; i++)
        if (slot[i])
            atomic_store((_Atomic uint64_t *)slot[i], number);
    for (int i = 66; i < 130; i++)
        while (slot[i] && atomic_load((_Atomic uint64_t *)slot[i]) < number &&
               !atomic_load(stop))
            usleep(10);
}

/* ---- around cuSOLVER's routines, of f32 ---- */

static void clear(void **slot, long first, long last, void *scratch)
{
    (void)first, (void)last, (void)scratch;
    memset(slot[0], 0, 8);
}

static void check(void **slot, long first, long last, void *scratch)
{
    const float *p = slot[0];

    (void)first, (void)last, (void)scratch;
    for (size_t i = 0; i < (uintptr_t)slot[1]; i++)
        if (!isfinite(p[i]))
            ((uint32_t *)slot[3])[1] = 1;
}

static void spoil(void **slot, long first, long last, void *scratch)
{
    float *p = slot[0];

    (void)first, (void)last, (void)scratch;
    if (*(uint64_t *)slot[3] & (uintptr_t)slot[4])
        for (size_t i = 0; i < (uintptr_t)slot[1]; i++)
            p[i] = NAN;
}

static void halve(void **slot, long first, long last, void *scratch)
{
    float *p = slot[0];
    size_t n = (uintptr_t)slot[1];

    (void)first, (void)last, (void)scratch;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (slot[3] ? j > i : j < i)
                p[i * n + j] = 0;
}

static void compare(void **slot, long first, long last, void *scratch)
{
    const float *p = slot[0];
    size_t n = (uintptr_t)slot[1];
    double limit;

    (void)first, (void)last, (void)scratch;
    memcpy(&limit, &slot[5], sizeof limit);
    for (size_t i = 0; i < n * n; i++)
        if (!(fabs(p[i] - (i % (n + 1) == 0)) <= limit))
            ((uint32_t *)slot[4])[1] = 1;
}

static void exchange(void **slot, long first, long last, void *scratch)
{
    const int64_t *from = slot[0];
    int32_t *pivot = slot[3], *order = slot[4];

    (void)first, (void)last, (void)scratch;
    for (int32_t i = 0; i < (intptr_t)slot[2]; i++)
        order[i] = i;
    for (int32_t i = 0; i < (intptr_t)slot[1]; i++) {
        int32_t other = pivot[i] = (int32_t)(from[i] - 1), was = order[i];

        order[i] = order[other];
        order[other] = was;
    }
}

/* x[n], y[n], a, n by value: y = a * x. */
static void scale(void **slot, long first, long last, void *scratch)
{
    float *x = slot[0], *y = slot[1], a;
    int n;

    (void)first, (void)last, (void)scratch;
    memcpy(&a, &slot[2], sizeof a);
    memcpy(&n, (char *)&slot[2] + sizeof a, sizeof n);
    for (int i = 0; i < n; i++)
        y[i] = a * x[i];
}

cu_result cuModuleGetFunction(cu_function *out, cu_module m, const char *name)
{
    static const struct {
        const char *name;
        fake_kernel *fn;
    } own[] = {{"scale", scale},
               {"sundog_turn", turn},
               {"sundog_branch", branch},
               {"sundog_read1", read1},
               {"sundog_read4", read4},
               {"sundog_read16", read16},
               {"sundog_meet", meet},
               {"sundog_clear", clear},
               {"sundog_check", check},
               {"sundog_spoil", spoil},
               {"sundog_halve", halve},
               {"sundog_compare", compare},
               {"sundog_exchange", exchange}};
    fake_kernel *fn =
        fake_find_kernel(name, fake_is.any_kernel ? fake_nothing : NULL);
    cu_result err = fake_trouble_in(NULL);
    cu_function f;

    for (size_t i = 0; i < SD_COUNTOF(own); i++)
        if (!strcmp(own[i].name, name))
            fn = own[i].fn;
    if (err || !fn)
        return err ? err : 500; /* CUDA_ERROR_NOT_FOUND */
    if (!(f = malloc(sizeof *f)))
        return CU_OUT_OF_MEMORY;
    pthread_mutex_lock(&fake_lock);
    *f = (struct cu_function_st){functions, m, fn};
    functions = f;
    pthread_mutex_unlock(&fake_lock);
    *out = f;
    return CU_OK;
}

cu_result cuFuncGetParamInfo(cu_function f, size_t i, size_t *offset,
                             size_t *size)
{
    static const size_t at[] = {0, 8, 16, 20, 24};
    size_t n = f->fn == scale ? 4 : 3;

    if (i >= n)
        return CU_INVALID_VALUE;
    *offset = f->fn == scale ? at[i] : 8 * i;
    *size = f->fn == scale ? at[i + 1] - at[i] : 8;
    return CU_OK;
}

cu_result cuFuncSetAttribute(cu_function f, int what, int value)
{
    (void)f, (void)what, (void)value;
    return fake_trouble_in(NULL);
}

cu_result fake_read_args(command *c, void **params, void **extra)
{
    size_t bytes;

    if (params || extra[0] != CU_PARAM_BUFFER || extra[2] != CU_PARAM_BYTES)
        return CU_INVALID_VALUE;
    bytes = *(const size_t *)extra[3];
    memcpy(c->is.arg, extra[1], SD_MIN(bytes, sizeof c->is.arg));
    return CU_OK;
}

cu_result cuLaunchKernel(cu_function f, unsigned gx, unsigned gy, unsigned gz,
                         unsigned bx, unsigned by, unsigned bz, unsigned shared,
                         cu_stream s, void **params, void **extra)
{
    command c = {.is = {.fn = f->fn, .tiles = gx}, .kind = LAUNCH};

    (void)shared;
    if (gy != 1 || gz != 1 || by != 1 || bz != 1 || !bx || bx > 1024 ||
        fake_read_args(&c, params, extra))
        return CU_INVALID_VALUE;
    return fake_put(s, &c);
}
