/* The host device: kernels are machine code in our own mapping, memory is the
 * process's.  A kernel's tiles are split over the client's pool in
 * ranges when it is worth waking somebody. */
#include "xpu_device.h"
#include "xpu_elf.h"
#include "xpu_lib.h"
#include "xpu_subnormal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_BYTES  ((size_t)2 << 20)
#define LARGE_BYTES ((size_t)64 << 20)
#define PARTS       8 /* a worker's: who wakes late leaves some to the others */
#define SLICE_NS    50e6
#define MOST_PARTS  1e6

typedef void (*kernel_fn)(void **slot, int64_t first, int64_t last,
                          void *scratch);

typedef struct {
    uint8_t *scratch; /* nworker areas of scratch_bytes */
    size_t scratch_bytes;
    int nworker;
    uint32_t mode; /* of threads that compute: base.h */
    xpu_lib *lib;
} host;

struct xpu_module {
    const thunk_program *program; /* borrowed from the xpu_program */
    xpu_code *code;
    size_t scratch_bytes; /* of one worker: the most any kernel wants */
    void *fn[];
};

/* ---- memory ---- */

/* Big blocks start on a huge page and ask for more of them: a fresh small
 * page costs microseconds in a virtual machine. */
/* The system promises more than it has and ends processes that take the promise
 * at its word, so a large block is asked for only where it is there. */
static sd_status host_alloc(xpu_device *d, xpu_memory mem, size_t bytes,
                            void **out)
{
    size_t slack = bytes >= HUGE_BYTES ? HUGE_BYTES : 0, head;
    int64_t left = bytes >= LARGE_BYTES ? sd_memory_left() : INT64_MAX;
    uint8_t *p;

    (void)d;
    (void)mem;
    if ((int64_t)bytes > left)
        return sd_error(SD_EXHAUSTED,
                        "the machine has %" PRId64 " bytes of memory left",
                        left);
    p = mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        *out = NULL;
        return NULL;
    }
    if (slack) {
        head = (HUGE_BYTES - (uintptr_t)p % HUGE_BYTES) % HUGE_BYTES;
        if (head)
            munmap(p, head);
        p += head;
        if (slack - head)
            munmap(p + bytes, slack - head);
        madvise(p, bytes, MADV_HUGEPAGE);
    }
    *out = p;
    return NULL;
}

static void host_free(xpu_device *d, xpu_memory mem, void *p, size_t bytes)
{
    (void)d;
    (void)mem;
    munmap(p, bytes);
}

/* ---- kernels ---- */

static sd_status host_load(xpu_device *d, const thunk_program *p,
                           xpu_module **out)
{
    size_t bytes = sizeof(xpu_module) + (size_t)p->nkernel * sizeof(void *);
    xpu_module *m = calloc(1, bytes);
    sd_status st;

    if (!m)
        return sd_no_memory(bytes);
    m->program = p;
    for (int i = 0; i < p->nkernel; i++)
        m->scratch_bytes =
            SD_MAX(m->scratch_bytes, (size_t)p->kernel[i].local_bytes);
    if (p->nkernel &&
        (st = xpu_elf_load(p, d->client->perf_map, &m->code, m->fn))) {
        free(m);
        return st;
    }
    *out = m;
    return NULL;
}

static void host_unload(xpu_device *d, xpu_module *m)
{
    (void)d;
    xpu_elf_unload(m->code);
    free(m);
}

static sd_status host_begin(xpu_device *d, xpu_module *m)
{
    host *h = d->impl;
    size_t each = (m->scratch_bytes + XPU_ALIGN - 1) & ~(size_t)(XPU_ALIGN - 1);
    uint8_t *more;

    if (each <= h->scratch_bytes)
        return NULL;
    if (each > SIZE_MAX / (size_t)h->nworker / 2 ||
        !(more = aligned_alloc(XPU_ALIGN, each * (size_t)h->nworker)))
        return sd_error(SD_EXHAUSTED,
                        "no memory for the scratch of %d threads, %zu bytes "
                        "each; fewer (SUNDOG_THREADS) need less",
                        h->nworker, each);
    free(h->scratch);
    h->scratch = more;
    h->scratch_bytes = each;
    return NULL;
}

typedef struct {
    kernel_fn fn;
    void **slot;
    int64_t tiles;
    int parts;
    bool loop;
    host *host;
    const _Atomic bool *cancel;
} split;

static void run_part(void *ctx, int64_t i, int worker)
{
    const split *s = ctx;
    int64_t each = s->tiles / s->parts, more = s->tiles % s->parts;
    int64_t first = i * each + SD_MIN(i, more);

    uint32_t mode;

    if (atomic_load_explicit(s->cancel, memory_order_relaxed))
        return; /* the run's end looks at that too */
    if (s->loop)
        memcpy(s->host->scratch, &s->cancel, sizeof s->cancel);
    mode = xpu_enter_mode(s->host->mode);
    s->fn(s->slot, first, first + each + (i < more),
          s->host->scratch + (size_t)worker * s->host->scratch_bytes);
    xpu_leave_mode(mode);
}

/* Some for each worker, and none so long that an interrupt waits for it. */
static int count_parts(const thunk_kernel *k, int nworker, int beside)
{
    double ns, parts;

    nworker -= beside; /* the other members of a gang have theirs */
    if (k->tiles == 1) /* loops of scalars are made of these */
        return 1;
    ns = device_guess_ns(DEVICE_HOST, k->flops, k->bytes);
    parts = ns / SLICE_NS;
    if (nworker > 1 && ns > DEVICE_ALONE_NS)
        parts = SD_MAX(parts, (double)nworker * PARTS);
    parts = SD_MIN(parts, (double)k->tiles);
    return parts < 1 ? 1 : (int)SD_MIN(parts, MOST_PARTS);
}

static sd_status host_launch(xpu_device *d, xpu_module *m, int kernel,
                             void **slot)
{
    const thunk_kernel *k = &m->program->kernel[kernel];
    host *h = d->impl;
    split s = {.fn = (kernel_fn)m->fn[kernel],
               .slot = slot,
               .tiles = k->tiles,
               .parts = count_parts(k, h->nworker, d->others),
               .loop = k->loop,
               .host = h,
               .cancel = d->cancel};

    if (k->tiles <= 0)
        return NULL;
    if (s.parts == 1)
        run_part(&s, 0, 0);
    else
        sd_pool_run(d->client->pool, s.parts, run_part, &s);
    return NULL;
}

static sd_status host_libcall(xpu_device *d, const thunk *t, void *const *ptr)
{
    host *h = d->impl;
    uint32_t mode = xpu_enter_mode(h->mode);
    sd_status st = xpu_lib_run(h->lib, t, ptr);

    xpu_leave_mode(mode);
    return st;
}

static void host_close(xpu_device *d)
{
    host *h = d->impl;

    if (!h)
        return;
    if (h->lib)
        xpu_lib_close(h->lib);
    free(h->scratch);
    free(h);
}

static const xpu_device_ops host_ops = {
    .name = "host",
    .alloc = host_alloc,
    .free = host_free,
    .load = host_load,
    .unload = host_unload,
    .begin = host_begin,
    .launch = host_launch,
    .libcall = host_libcall,
    .close = host_close,
    .shared_memory = true,
};

/* ---- which machine this is ---- */

static sd_status choose_level(const sd_options *opt, int *out)
{
    const char *want = sd_opt_str(opt, SD_OPT_CPU_LEVEL);
    int has = sd_cpu_level();

    if (has < 3)
        return sd_error(SD_UNIMPLEMENTED,
                        "this processor lacks part of x86-64-v3 (AVX2, BMI, "
                        "FMA, F16C, LZCNT, MOVBE), the least that the host "
                        "device works on; SUNDOG_DEVICE=cl does without");
    *out = want ? want[1] - '0' : has;
    if (*out > has)
        return sd_error(SD_INVALID, "SUNDOG_CPU_LEVEL=v4: this processor has "
                                    "not all of AVX-512 F, BW, DQ, VL and CD; "
                                    "v3 is what it does");
    return NULL;
}

static sd_status describe(xpu_device *d, const sd_options *opt, host *h)
{
    int level;
    sd_status st = choose_level(opt, &level);
    long cache;

    if (st)
        return st;
    device_desc_of_name(level == 4 ? "host:v4" : "host:v3", &d->desc);
    /* a level that is asked for is that and no more */
    if (level == 4 && !sd_opt_str(opt, SD_OPT_CPU_LEVEL) && sd_cpu_has_vnni())
        d->desc.features |= DEVICE_HAS_VNNI |
                            (sd_cpu_has_bf16() ? DEVICE_HAS_BF16 : 0) |
                            (sd_cpu_has_amx() ? DEVICE_HAS_AMX : 0);
    d->desc.units = h->nworker;
    if ((cache = sysconf(_SC_LEVEL1_DCACHE_SIZE)) > 0)
        d->desc.local_bytes = (size_t)cache;
    if ((cache = sysconf(_SC_LEVEL2_CACHE_SIZE)) > 0)
        d->desc.cache_bytes = (size_t)cache;
    d->desc.libs = h->lib ? xpu_lib_present(h->lib) : 0;
    snprintf(d->desc.driver, sizeof d->desc.driver,
             "x86-64-v%d, %d threads, %s", level, h->nworker,
             h->lib ? xpu_lib_version(h->lib) : "no libraries");
    return NULL;
}

static sd_status open_one(xpu_client *c, const sd_options *opt)
{
    xpu_device *d;
    sd_status st = xpu_client_add(c, &host_ops, &d);
    host *h;

    if (st)
        return st;
    if (!(d->impl = h = calloc(1, sizeof *h)))
        return sd_no_memory(sizeof *h);
    h->nworker = sd_pool_size(c->pool);
    h->mode = sd_opt_bool(opt, SD_OPT_SUBNORMALS) ? SD_SUBNORMALS_KEPT
                                                  : SD_SUBNORMALS_ARE_0;
    if (sd_opt_bool(opt, SD_OPT_LIBRARIES) &&
        (st = xpu_lib_open(c->pool, &h->lib)))
        return st;
    d->limit = sd_memory_size();
    return describe(d, opt, h);
}

sd_status xpu_host_open(xpu_client *c, const sd_options *opt, bool chosen)
{
    int64_t n = sd_opt_int(opt, SD_OPT_HOST_DEVICES);
    sd_status st = NULL;

    (void)chosen; /* there is one everywhere */
    for (int64_t i = 0; i < n && !st; i++)
        st = open_one(c, opt);
    return st;
}
