/* Where members of a gang wait for each other on their devices.  Each device
 * has a word for each other one, into which that writes the numbers of
 * meetings, which grow.  A kernel of ours writes into others' words, which says
 * that all before it in this queue has run, and looks at its own until the
 * others have come as far, or a word of the host's says that they will not. */
#include "xpu_cuda_api.h"

/* Parameters: the number, where the host's word is, and of each item the word
 * that it writes and the one that it looks at, or 0. */
static const char kernel[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry sundog_meet(.param .u64 number, .param .u64 stop,\n"
    " .param .align 8 .b8 tell[512], .param .align 8 .b8 await[512])\n{\n"
    ".reg .b64 %d<8>; .reg .b32 %r<5>; .reg .pred %p<5>;\n"
    "ld.param.u64 %d1, [number]; ld.param.u64 %d2, [stop];\n"
    "mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 8;\n"
    "mov.u64 %d4, tell; add.u64 %d4, %d4, %d3; ld.param.u64 %d5, [%d4];\n"
    "mov.u64 %d4, await; add.u64 %d4, %d4, %d3; ld.param.u64 %d6, [%d4];\n"
    "setp.eq.u64 %p1, %d5, 0; @%p1 bra TOLD;\n"
    "fence.sc.sys; st.release.sys.global.u64 [%d5], %d1;\n"
    "TOLD: setp.eq.u64 %p2, %d6, 0; @%p2 bra END; mov.u32 %r2, 0;\n"
    "LOOK: ld.acquire.sys.global.u64 %d7, [%d6];\n"
    "setp.ge.u64 %p3, %d7, %d1; @%p3 bra END;\n"
    "add.u32 %r2, %r2, 1; and.b32 %r3, %r2, 255;\n"
    "setp.ne.u32 %p4, %r3, 0; @%p4 bra LOOK;\n"
    "ld.volatile.global.u32 %r4, [%d2];\n"
    "setp.eq.u32 %p4, %r4, 0; @%p4 bra LOOK;\n"
    "END: ret;\n}\n";

/* ---- what it takes ---- */

/* Of a device that others reach, before any run. */
sd_status xpu_cuda_open_meeting(xpu_cuda *v)
{
    static const uint64_t none[XPU_MOST_PEERS];
    xpu_device *d = v->dev;
    sd_status st;
    void *words;

    if ((st = d->ops->alloc(d, XPU_MEM_DEVICE, sizeof none, &words)))
        return st;
    if (!words)
        return sd_no_memory(sizeof none);
    v->meeting.word = words;
    return d->ops->copy_in(d, words, none, sizeof none);
}

static sd_status get_kernel(xpu_cuda *v)
{
    xpu_cuda_meeting *g = &v->meeting;
    sd_status st;

    if (g->fn)
        return NULL;
    if (!g->module && (st = xpu_cuda_load_image(v, kernel, &g->module)))
        return st;
    return xpu_cuda_status(
        v->driver, v,
        v->driver->api.ModuleGetFunction(&g->fn, g->module, "sundog_meet"),
        "cuModuleGetFunction");
}

void xpu_cuda_close_meeting(const xpu_cuda *v)
{
    if (v->meeting.word)
        v->dev->ops->free(v->dev, XPU_MEM_DEVICE, v->meeting.word,
                          XPU_MOST_PEERS * sizeof(uint64_t));
    if (v->meeting.module)
        v->driver->api.ModuleUnload(v->meeting.module);
}

/* ---- the meeting ---- */

static sd_status meet(xpu_cuda *v, const xpu_meeting *m)
{
    void *slot[2 + 2 * XPU_MOST_PEERS] = {(void *)(uintptr_t)m->number,
                                          m->stop};
    size_t bytes = sizeof slot;
    void *extra[] = {CU_PARAM_BUFFER, slot, CU_PARAM_BYTES, &bytes,
                     CU_PARAM_END};

    for (int i = 0; i < m->n; i++) {
        const xpu_cuda *peer = m->dev[i]->impl;

        if (m->tell[i])
            slot[2 + peer->index] = peer->meeting.word + v->index;
        if (m->await[i])
            slot[2 + XPU_MOST_PEERS + peer->index] =
                v->meeting.word + peer->index;
    }
    return xpu_cuda_status(
        v->driver, v,
        v->driver->api.LaunchKernel(v->meeting.fn, 1, 1, 1, XPU_MOST_PEERS, 1,
                                    1, 0, v->queue[XPU_COMPUTE], NULL, extra),
        "cuLaunchKernel");
}

sd_status xpu_cuda_meet(xpu_device *d, const xpu_meeting *m)
{
    xpu_cuda *v = d->impl;
    sd_status st;

    if ((st = xpu_cuda_enter(v)))
        return st;
    if (!(st = get_kernel(v)) && !(st = meet(v, m)))
        st = xpu_cuda_keep_pace(v, 1);
    xpu_cuda_leave(v);
    return st;
}
