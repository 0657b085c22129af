/* Kernels around cuSOLVER's routines: what has no result becomes NaN, which
 * only the device knows. */
#include "xpu_cusolver.h"

enum { GROUP = 256, MOST_GROUPS = 1024, SHARED = 48 << 10 };

/* Item %d5 of %d6, which takes every %d6th of what there is. */
#define ITEMS \
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n" \
    "mov.u32 %r4, %nctaid.x; mad.wide.u32 %d5, %r1, %r2, 0;\n" \
    "cvt.u64.u32 %d7, %r3; add.u64 %d5, %d5, %d7;\n" \
    "mul.wide.u32 %d6, %r4, %r2;\n"
#define NEXT(n)     "NEXT: setp.ge.u64 %p1, %d5, " n "; @%p1 bra END;\n"
#define AGAIN       "add.u64 %d5, %d5, %d6; bra NEXT;\nEND: ret;\n}\n"
#define REGISTERS   ".reg .b64 %d<16>; .reg .b32 %r<12>; .reg .pred %p<8>;\n"
#define WORD(to, n) "ld.param.u64 " to ", [" #n "];\n"

/* clang-format off */
static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".extern .shared .align 8 .b8 area[];\n"
    ".visible .entry sundog_clear(.param .u64 info)\n{\n" REGISTERS
    WORD("%d1", info) "mov.u64 %d2, 0; st.global.u64 [%d1], %d2;\nret;\n}\n"
    /* p, how many numbers, do they have 8 bytes, info */
    ".visible .entry sundog_check(.param .u64 p, .param .u64 n,"
    " .param .u64 wide, .param .u64 info)\n{\n" REGISTERS WORD("%d1", p)
    WORD("%d2", n) WORD("%d3", wide) WORD("%d4", info) ITEMS
    "setp.ne.u64 %p2, %d3, 0; mov.u32 %r6, 1;\n" NEXT("%d2")
    "@%p2 bra WIDE;\n"
    "shl.b64 %d7, %d5, 2; add.u64 %d7, %d7, %d1; ld.global.u32 %r5, [%d7];\n"
    "and.b32 %r5, %r5, 0x7f800000; setp.eq.u32 %p3, %r5, 0x7f800000;\n"
    "bra SEEN;\n"
    "WIDE: shl.b64 %d7, %d5, 3; add.u64 %d7, %d7, %d1;\n"
    "ld.global.u64 %d8, [%d7]; and.b64 %d8, %d8, 0x7ff0000000000000;\n"
    "setp.eq.u64 %p3, %d8, 0x7ff0000000000000;\n"
    "SEEN: @%p3 st.global.u32 [%d4+4], %r6;\n" AGAIN
    /* the same, and the bits of info that count */
    ".visible .entry sundog_spoil(.param .u64 p, .param .u64 n,"
    " .param .u64 wide, .param .u64 info, .param .u64 mask)\n{\n" REGISTERS
    WORD("%d1", p) WORD("%d2", n) WORD("%d3", wide) WORD("%d4", info)
    WORD("%d9", mask)
    "ld.global.u64 %d8, [%d4]; and.b64 %d8, %d8, %d9;\n"
    "setp.eq.u64 %p3, %d8, 0; @%p3 bra END;\n" ITEMS
    "setp.ne.u64 %p2, %d3, 0; mov.u32 %r6, 0x7fc00000;\n"
    "mov.u64 %d10, 0x7ff8000000000000;\n" NEXT("%d2")
    "@%p2 bra WIDE;\n"
    "shl.b64 %d7, %d5, 2; add.u64 %d7, %d7, %d1; st.global.u32 [%d7], %r6;\n"
    "bra WRITTEN;\n"
    "WIDE: shl.b64 %d7, %d5, 3; add.u64 %d7, %d7, %d1;\n"
    "st.global.u64 [%d7], %d10;\n"
    "WRITTEN:\n" AGAIN
    /* p, n, words of 4 bytes of an element, is it the lower half that stays;
     * a row a group, of which words %d8 to %d9 go */
    ".visible .entry sundog_halve(.param .u64 p, .param .u64 n,"
    " .param .u64 words, .param .u64 lower)\n{\n" REGISTERS WORD("%d1", p)
    WORD("%d2", n) WORD("%d3", words) WORD("%d4", lower)
    "setp.ne.u64 %p2, %d4, 0; mov.u32 %r6, 0; mov.u32 %r1, %ctaid.x;\n"
    "mov.u32 %r2, %nctaid.x; cvt.u64.u32 %d5, %r1; cvt.u64.u32 %d6, %r2;\n"
    "mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; cvt.u64.u32 %d12, %r2;\n"
    "mul.lo.u64 %d10, %d2, %d3;\n" NEXT("%d2")
    "mov.u64 %d8, 0; mul.lo.u64 %d9, %d5, %d3;\n"
    "@%p2 add.u64 %d8, %d9, %d3; @%p2 mov.u64 %d9, %d10;\n"
    "mul.lo.u64 %d11, %d5, %d10; cvt.u64.u32 %d7, %r3;\n"
    "add.u64 %d8, %d8, %d7;\n"
    "PLACE: setp.ge.u64 %p3, %d8, %d9; @%p3 bra ROW;\n"
    "add.u64 %d7, %d11, %d8; shl.b64 %d7, %d7, 2; add.u64 %d7, %d7, %d1;\n"
    "st.global.u32 [%d7], %r6; add.u64 %d8, %d8, %d12; bra PLACE;\n"
    "ROW:\n" AGAIN
    /* p, numbers of 4 or 8 bytes of a row, of an element (two: complex), do
     * they have 8 bytes, info, the limit as f64; a row a group */
    ".visible .entry sundog_compare(.param .u64 p, .param .u64 n,"
    " .param .u64 parts, .param .u64 wide, .param .u64 info,"
    " .param .f64 limit)\n{\n" REGISTERS ".reg .f64 %e<4>; .reg .f32 %f;\n"
    WORD("%d1", p) WORD("%d2", n) WORD("%d3", parts) WORD("%d4", wide)
    WORD("%d14", info)
    "ld.param.f64 %e1, [limit]; setp.ne.u64 %p2, %d4, 0; mov.u32 %r6, 1;\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; cvt.u64.u32 %d5, %r1;\n"
    "cvt.u64.u32 %d6, %r2; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "cvt.u64.u32 %d12, %r2; div.u64 %d10, %d2, %d3;\n" NEXT("%d10")
    "cvt.u64.u32 %d8, %r3; mul.lo.u64 %d9, %d5, %d3;\n" /* the diagonal's */
    "mul.lo.u64 %d11, %d5, %d2;\n"
    "PLACE: setp.ge.u64 %p3, %d8, %d2; @%p3 bra ROW;\n"
    "add.u64 %d7, %d11, %d8; @%p2 bra WIDE;\n"
    "shl.b64 %d7, %d7, 2; add.u64 %d7, %d7, %d1; ld.global.f32 %f, [%d7];\n"
    "cvt.f64.f32 %e2, %f; bra READ;\n"
    "WIDE: shl.b64 %d7, %d7, 3; add.u64 %d7, %d7, %d1;\n"
    "ld.global.f64 %e2, [%d7];\n"
    "READ: setp.eq.u64 %p4, %d8, %d9;\n"
    "@%p4 sub.rn.f64 %e2, %e2, 0d3FF0000000000000; abs.f64 %e2, %e2;\n"
    "setp.le.f64 %p5, %e2, %e1; @!%p5 st.global.u32 [%d14+4], %r6;\n"
    "add.u64 %d8, %d8, %d12; bra PLACE;\n"
    "ROW:\n" AGAIN
    /* one group: exchanges, k, rows, pivot, order, is the order in `area` */
    ".visible .entry sundog_exchange(.param .u64 from, .param .u64 k,"
    " .param .u64 m, .param .u64 pivot, .param .u64 order,"
    " .param .u64 near)\n{\n" REGISTERS WORD("%d1", from) WORD("%d2", k)
    WORD("%d3", m) WORD("%d4", pivot) WORD("%d8", order) WORD("%d9", near)
    ITEMS
    "setp.ne.u64 %p2, %d9, 0; mov.u64 %d10, %d8;\n"
    "mov.u64 %d11, area; cvta.shared.u64 %d11, %d11;\n"
    "cvta.global.u64 %d10, %d10; @%p2 mov.u64 %d10, %d11;\n"
    "mov.u64 %d12, %d5;\n"
    "ROW: setp.ge.u64 %p1, %d12, %d3; @%p1 bra ROWS;\n"
    "shl.b64 %d7, %d12, 2; add.u64 %d7, %d7, %d10; cvt.u32.u64 %r5, %d12;\n"
    "st.u32 [%d7], %r5; add.u64 %d12, %d12, %d6; bra ROW;\n"
    "ROWS: mov.u64 %d12, %d5;\n"
    "PIVOT: setp.ge.u64 %p1, %d12, %d2; @%p1 bra PIVOTS;\n"
    "shl.b64 %d7, %d12, 3; add.u64 %d7, %d7, %d1; ld.global.u32 %r5, [%d7];\n"
    "sub.u32 %r5, %r5, 1; shl.b64 %d7, %d12, 2; add.u64 %d7, %d7, %d4;\n"
    "st.global.u32 [%d7], %r5; add.u64 %d12, %d12, %d6; bra PIVOT;\n"
    "PIVOTS: bar.sync 0; setp.ne.u64 %p3, %d5, 0; @%p3 bra DONE;\n"
    "mov.u64 %d12, 0;\n"
    "TURN: setp.ge.u64 %p1, %d12, %d2; @%p1 bra DONE;\n"
    "shl.b64 %d7, %d12, 2; add.u64 %d13, %d7, %d4; add.u64 %d7, %d7, %d10;\n"
    "ld.global.u32 %r5, [%d13]; mul.wide.u32 %d13, %r5, 4;\n"
    "add.u64 %d13, %d13, %d10; ld.u32 %r6, [%d7]; ld.u32 %r7, [%d13];\n"
    "st.u32 [%d7], %r7; st.u32 [%d13], %r6;\n"
    "add.u64 %d12, %d12, 1; bra TURN;\n"
    "DONE: bar.sync 0; @!%p2 bra END;\n" NEXT("%d3")
    "shl.b64 %d7, %d5, 2; add.u64 %d11, %d7, %d10; ld.u32 %r5, [%d11];\n"
    "add.u64 %d7, %d7, %d8; st.global.u32 [%d7], %r5;\n" AGAIN;
/* clang-format on */

sd_status cusolver_load_kernels(xpu_cuda *v, xpu_cusolver_room *r)
{
    static const char *const name[CUSOLVER_KERNELS] = {
        "sundog_clear", "sundog_check",   "sundog_spoil",
        "sundog_halve", "sundog_compare", "sundog_exchange"};
    cu_result err = CU_OK;
    sd_status st;

    if (!r->module && (st = xpu_cuda_load_image(v, text, &r->module)))
        return st;
    for (int i = 0; i < CUSOLVER_KERNELS && !err; i++)
        if (!r->kernel[i])
            err = v->driver->api.ModuleGetFunction(&r->kernel[i], r->module,
                                                   name[i]);
    return xpu_cuda_status(v->driver, v, err, "cuModuleGetFunction");
}

static sd_status launch(const cusolver_job *j, int kernel, int64_t items,
                        unsigned shared, const uint64_t *word, size_t nword)
{
    uint64_t words[8];
    size_t bytes = nword * sizeof *word;
    void *extra[] = {CU_PARAM_BUFFER, words, CU_PARAM_BYTES, &bytes,
                     CU_PARAM_END};
    int64_t groups = SD_MIN((items + GROUP - 1) / GROUP, MOST_GROUPS);

    memcpy(words, word, bytes);
    return xpu_cuda_status(
        j->v->driver, j->v,
        j->v->driver->api.LaunchKernel(
            j->r->kernel[kernel], (unsigned)SD_MAX(groups, 1), 1, 1, GROUP, 1,
            1, shared, j->v->queue[j->v->dev->queue], NULL, extra),
        "cuLaunchKernel");
}
#define LAUNCH(j, kernel, items, shared, ...) \
    launch(j, kernel, items, shared, (const uint64_t[]){__VA_ARGS__}, \
           SD_COUNTOF(((const uint64_t[]){__VA_ARGS__})))

static uint64_t at(const void *p)
{
    return (uintptr_t)p;
}

sd_status cusolver_clear(const cusolver_job *j)
{
    return LAUNCH(j, CUSOLVER_CLEAR, 1, 0, at(j->info));
}

sd_status cusolver_check(const cusolver_job *j, const void *p, int64_t n)
{
    return LAUNCH(j, CUSOLVER_CHECK, n, 0, at(p), (uint64_t)n, j->wide,
                  at(j->info));
}

/* CHECK's word is the upper one. */
sd_status cusolver_spoil(const cusolver_job *j, void *p, int64_t n, bool any)
{
    uint64_t mask = any ? UINT64_MAX : UINT64_MAX << 32;

    return LAUNCH(j, CUSOLVER_SPOIL, n, 0, at(p), (uint64_t)n, j->wide,
                  at(j->info), mask);
}

sd_status cusolver_halve(const cusolver_job *j, void *p, int64_t n, bool lower)
{
    return LAUNCH(j, CUSOLVER_HALVE, n * GROUP, 0, at(p), (uint64_t)n,
                  j->size / 4, lower);
}

sd_status cusolver_compare(const cusolver_job *j, const void *p, int64_t n,
                           double limit)
{
    uint64_t parts = j->size / (j->wide ? 8 : 4), bits;

    memcpy(&bits, &limit, sizeof bits);
    return LAUNCH(j, CUSOLVER_COMPARE, n * GROUP, 0, at(p), (uint64_t)n * parts,
                  parts, j->wide, at(j->info), bits);
}

/* By one group, in its local memory where the order has room there. */
sd_status cusolver_exchange(const cusolver_job *j, const void *from, int64_t k,
                            int64_t m, void *pivot, void *order)
{
    bool near = m <= SHARED / 4;

    return LAUNCH(j, CUSOLVER_EXCHANGE, 1, near ? (unsigned)m * 4 : 0, at(from),
                  (uint64_t)k, (uint64_t)m, at(pivot), at(order), near);
}
