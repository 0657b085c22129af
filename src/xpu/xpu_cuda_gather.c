/* Blocks of a collective, from the memory of several devices into one's own.  A
 * kernel of ours reads peers' memory where it lies, some columns in a launch:
 * that is quick where blocks are small or many.  Large blocks, which copy
 * engines move faster than it does, are copies beside those of the device's own
 * memory, and what no peer can reach is a copy that the driver takes through
 * the host. */
#include "xpu_cuda_api.h"

enum {
    COLUMNS = 4, /* of a launch */
    GROUP = 256, /* items, and in a grid as many groups as keep a card busy */
    MOST_GROUPS = 1024,
    LARGE = 1 << 20 /* bytes; of a block */
};

/* ---- the kernel ---- */

/* Item i of a column moves unit i % units of row i / units, then that as many
 * units on as there are items.  Parameters, 64 bits each: units of a row, rows,
 * steps of to and from, groups of a column, a word of nothing, then where the
 * columns go and, 0 for zeros, come from. */
#define READ(name, bytes, zeros, load, store) \
    ".visible .entry " name "(.param .u64 units, .param .u64 rows,\n" \
    " .param .u64 to_step, .param .u64 from_step, .param .u64 per,\n" \
    " .param .u64 none, .param .align 8 .b8 to[32],\n" \
    " .param .align 8 .b8 from[32])\n{\n" \
    ".reg .b64 %d<24>; .reg .b32 %r<12>; .reg .pred %p<8>;\n" \
    "ld.param.u64 %d1, [units]; ld.param.u64 %d2, [rows];\n" \
    "ld.param.u64 %d3, [to_step]; ld.param.u64 %d4, [from_step];\n" \
    "ld.param.u64 %d5, [per];\n" \
    "cvt.u32.u64 %r1, %d5; mov.u32 %r2, %ctaid.x;\n" \
    "div.u32 %r3, %r2, %r1; rem.u32 %r4, %r2, %r1;\n" \
    "setp.eq.u32 %p1, %r3, 1; setp.eq.u32 %p2, %r3, 2;\n" \
    "setp.eq.u32 %p3, %r3, 3;\n" \
    "ld.param.u64 %d6, [to]; ld.param.u64 %d7, [from];\n" \
    "@%p1 ld.param.u64 %d6, [to+8]; @%p1 ld.param.u64 %d7, [from+8];\n" \
    "@%p2 ld.param.u64 %d6, [to+16]; @%p2 ld.param.u64 %d7, [from+16];\n" \
    "@%p3 ld.param.u64 %d6, [to+24]; @%p3 ld.param.u64 %d7, [from+24];\n" \
    "mov.u32 %r5, %ntid.x; mov.u32 %r6, %tid.x;\n" \
    "mad.wide.u32 %d8, %r4, %r5, 0; cvt.u64.u32 %d9, %r6;\n" \
    "add.u64 %d8, %d8, %d9;\n" /* the item, */ \
    "mul.wide.u32 %d10, %r1, %r5;\n" /* how many there are, */ \
    "mul.lo.u64 %d11, %d1, %d2;\n" /* and units */ \
    "setp.eq.u64 %p4, %d7, 0; setp.eq.u64 %p5, %d2, 1;\n" \
    "NEXT: setp.ge.u64 %p6, %d8, %d11; @%p6 bra END;\n" \
    "mov.u64 %d12, 0; mov.u64 %d13, %d8;\n" \
    "@%p5 bra FOUND;\n" \
    "div.u64 %d12, %d8, %d1; mul.lo.u64 %d14, %d12, %d1;\n" \
    "sub.u64 %d13, %d8, %d14;\n" \
    "FOUND: mul.lo.u64 %d13, %d13, " bytes ";\n" \
    "mad.lo.u64 %d15, %d12, %d3, %d13; add.u64 %d15, %d15, %d6;\n" \
    "mad.lo.u64 %d16, %d12, %d4, %d13; add.u64 %d16, %d16, %d7;\n" zeros \
    "@%p4 bra WRITE;\n" load "WRITE: " store \
    "add.u64 %d8, %d8, %d10; bra NEXT;\n" \
    "END: ret;\n}\n"
#define ONE(bytes, type) \
    READ("sundog_read" bytes, bytes, "mov.u32 %r7, 0;\n", \
         "ld.global." type " %r7, [%d16];\n", \
         "st.global." type " [%d15], %r7;\n")
static const char readers[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n" ONE("1", "u8")
        ONE("4", "u32")
            READ("sundog_read16", "16",
                 "mov.u32 %r7, 0; mov.u32 %r8, 0; mov.u32 %r9, 0; mov.u32 "
                 "%r10, 0;\n",
                 "ld.global.v4.u32 {%r7, %r8, %r9, %r10}, [%d16];\n",
                 "st.global.v4.u32 [%d15], {%r7, %r8, %r9, %r10};\n");

static const struct {
    unsigned bytes;
    const char *name;
} unit[XPU_CUDA_UNITS] = {
    {16, "sundog_read16"}, {4, "sundog_read4"}, {1, "sundog_read1"}};

/* ---- what it takes ---- */

static cu_result make(xpu_cuda *v, const char **call)
{
    const xpu_cuda_api *a = &v->driver->api;
    xpu_cuda_reader *g = &v->reader;
    cu_result err;

    *call = "cuModuleGetFunction";
    for (int i = 0; i < XPU_CUDA_UNITS; i++)
        if ((err = a->ModuleGetFunction(&g->fn[i], g->module, unit[i].name)))
            return err;
    *call = "cuStreamCreate";
    if (!g->aside && (err = a->StreamCreate(&g->aside, CU_NON_BLOCKING)))
        return err;
    *call = "cuEventCreate";
    for (int i = 0; i < 2; i++)
        if (!g->turn[i] &&
            (err = a->EventCreate(&g->turn[i], CU_EVENT_NO_TIMES)))
            return err;
    g->made = true;
    return CU_OK;
}

/* By the first collective; one that fails leaves the rest to the next. */
static sd_status get_reader(xpu_cuda *v)
{
    xpu_cuda_reader *g = &v->reader;
    const char *call;
    cu_result err;
    sd_status st;

    if (g->made)
        return NULL;
    if (!g->module && (st = xpu_cuda_load_image(v, readers, &g->module)))
        return st;
    err = make(v, &call);
    return xpu_cuda_status(v->driver, v, err, call);
}

void xpu_cuda_drop_reader(const xpu_cuda *v)
{
    const xpu_cuda_api *a = &v->driver->api;
    const xpu_cuda_reader *g = &v->reader;

    for (int i = 0; i < 2; i++)
        if (g->turn[i])
            a->EventDestroy(g->turn[i]);
    if (g->aside)
        a->StreamDestroy(g->aside);
    if (g->module)
        a->ModuleUnload(g->module);
}

/* ---- by the kernel ---- */

static bool is_multiple(const xpu_blocks *b, unsigned n)
{
    uint64_t any = b->bytes;

    if (b->rows > 1)
        any |= b->to_step | b->from_step;
    for (int i = 0; i < b->n; i++)
        any |= (uintptr_t)b->column[i].to | (uintptr_t)b->column[i].from;
    return any % n == 0;
}

static sd_status read_by_kernel(xpu_cuda *v, const xpu_blocks *b)
{
    uint64_t word[6 + 2 * COLUMNS] = {0};
    size_t bytes = sizeof word;
    void *extra[] = {CU_PARAM_BUFFER, word, CU_PARAM_BYTES, &bytes,
                     CU_PARAM_END};
    uint64_t units, per;
    int i = 0;

    while (!is_multiple(b, unit[i].bytes))
        i++;
    units = b->bytes / unit[i].bytes * (uint64_t)b->rows;
    per = SD_MIN((units + GROUP - 1) / GROUP, MOST_GROUPS / (uint64_t)b->n);
    word[0] = b->bytes / unit[i].bytes;
    word[1] = (uint64_t)b->rows;
    word[2] = b->to_step;
    word[3] = b->from_step;
    word[4] = per;
    for (int k = 0; k < b->n; k++) {
        word[6 + k] = (uintptr_t)b->column[k].to;
        word[6 + COLUMNS + k] = (uintptr_t)b->column[k].from;
    }
    return xpu_cuda_status(v->driver, v,
                           v->driver->api.LaunchKernel(
                               v->reader.fn[i], (unsigned)per * (unsigned)b->n,
                               1, 1, GROUP, 1, 1, 0, v->queue[v->dev->queue],
                               NULL, extra),
                           "cuLaunchKernel");
}

/* ---- by copies ---- */

static bool can_read(const xpu_cuda *v, const xpu_column *c)
{
    const xpu_cuda *peer = c->dev->impl;

    return !c->from || peer == v ||
           (peer->index < XPU_MOST_PEERS && v->reaches >> peer->index & 1);
}

static bool is_copy(const xpu_cuda *v, const xpu_blocks *b, const xpu_column *c)
{
    return !can_read(v, c) || (c->from && b->rows == 1 && b->bytes >= LARGE);
}

static cu_result copy_rows(xpu_cuda *v, const xpu_blocks *b,
                           const xpu_column *c, cu_stream s)
{
    cu_result err = CU_OK;

    for (int64_t i = 0; i < b->rows && !err; i++)
        err = v->driver->api.MemcpyAsync(
            (uintptr_t)c->to + (uint64_t)i * b->to_step,
            (uintptr_t)c->from + (uint64_t)i * b->from_step, b->bytes, s);
    return err;
}

/* The one stream goes on behind where the other is. */
static cu_result join(xpu_cuda *v, cu_stream to, cu_stream from, cu_event e,
                      const char **call)
{
    cu_result err;

    *call = "cuEventRecord";
    if ((err = v->driver->api.EventRecord(e, from)))
        return err;
    *call = "cuStreamWaitEvent";
    return v->driver->api.StreamWaitEvent(to, e, 0);
}

/* Other devices' memory aside, while the device copies its own. */
static sd_status read_by_copies(xpu_cuda *v, const xpu_blocks *b)
{
    cu_stream queue = v->queue[v->dev->queue], aside = v->reader.aside;
    const char *call;
    cu_result err = join(v, aside, queue, v->reader.turn[0], &call);

    for (int i = 0; i < b->n && !err; i++) {
        const xpu_column *c = &b->column[i];

        call = "cuMemcpyAsync";
        if (is_copy(v, b, c))
            err = copy_rows(v, b, c, c->dev == v->dev ? queue : aside);
    }
    if (!err)
        err = join(v, queue, aside, v->reader.turn[1], &call);
    if (err) /* nothing waits for what is under way there, and memory goes */
        v->driver->api.StreamSynchronize(aside);
    return xpu_cuda_status(v->driver, v, err, call);
}

/* ---- all ---- */

/* In launches of a few columns each. */
static sd_status read_the_rest(xpu_cuda *v, const xpu_blocks *b)
{
    xpu_column few[COLUMNS];
    xpu_blocks part = *b;
    sd_status st = NULL;

    part.column = few;
    part.n = 0;
    for (int i = 0; i < b->n && !st; i++) {
        if (is_copy(v, b, &b->column[i]))
            continue;
        few[part.n++] = b->column[i];
        if (part.n < COLUMNS)
            continue;
        st = read_by_kernel(v, &part);
        part.n = 0;
    }
    return st || !part.n ? st : read_by_kernel(v, &part);
}

static sd_status gather(xpu_cuda *v, const xpu_blocks *b)
{
    int ncopy = 0;
    sd_status st;

    for (int i = 0; i < b->n; i++)
        ncopy += is_copy(v, b, &b->column[i]);
    if ((st = get_reader(v)) || (ncopy && (st = read_by_copies(v, b))))
        return st;
    return ncopy == b->n ? NULL : read_the_rest(v, b);
}

sd_status xpu_cuda_gather(xpu_device *d, const xpu_blocks *b)
{
    xpu_cuda *v = d->impl;
    sd_status st;

    if (!b->rows || !b->bytes)
        return NULL;
    if ((st = xpu_cuda_enter(v)))
        return st;
    if (!(st = gather(v, b)))
        st = xpu_cuda_keep_pace(v, b->n);
    xpu_cuda_leave(v);
    return st;
}
