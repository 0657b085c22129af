/* Programs on a device: what it can run is loaded, anything else is refused
 * before the first run. */
#include "xpu_device.h"

#include <stdlib.h>

/* Numbered in the order in which they stand, which is one in all processes. */
static sd_status add_collective(xpu_program *x, const thunk *t)
{
    size_t bytes = ((size_t)x->ncollective + 1) * sizeof(thunk *);
    const thunk **more = realloc(x->collective, bytes);

    if (!more)
        return sd_no_memory(bytes);
    x->collective = more;
    x->collective[x->ncollective++] = t;
    x->meets = true;
    if (t->kernel >= 0) {
        if (!(x->dev->desc.features & DEVICE_HAS_PEERS))
            return sd_error(SD_PRECONDITION,
                            "%s: built for devices whose kernels read each "
                            "other's memory, which these cannot: compile it "
                            "here",
                            x->thunks->name);
        x->max_arg = SD_MAX(x->max_arg, x->thunks->kernel[t->kernel].nslot + 1);
    }
    x->meeting =
        sd_hash(t->attr, (size_t)t->nattr * sizeof *t->attr, x->meeting);
    return NULL;
}

/* Widest argument list, and whether everything has its engine here. */
static sd_status check_seq(xpu_program *x, const thunk_seq *seq)
{
    const xpu_device *d = x->dev;
    sd_status st;

    for (int i = 0; i < seq->n; i++) {
        const thunk *t = &seq->at[i];

        x->max_arg = SD_MAX(x->max_arg, t->narg + 1); /* a loop's word */
        x->beside |= t->kind == THUNK_BESIDE;
        if (t->kind == THUNK_COLLECTIVE && (st = add_collective(x, t)))
            return st;
        if (t->kind == THUNK_LIBCALL &&
            (libcall_table[t->call->op].lib & ~d->desc.libs))
            return sd_error(SD_PRECONDITION,
                            "the program calls %s (%s), which is not there: "
                            "install it, or compile without "
                            "(SUNDOG_LIBRARIES=0)",
                            libcall_library(t->call, d->desc.kind),
                            libcall_table[t->call->op].name);
        for (int k = 0; k < t->nseq; k++)
            if ((st = check_seq(x, &t->seq[k])))
                return st;
    }
    return NULL;
}

/* Code for a driver that was there is that driver's: another makes other bits
 * of the same SPIR-V, or none.  A described device had no driver. */
static sd_status check_device(const xpu_device *d, const thunk_program *p)
{
    /* Only what changes the code: of a GPU's features the driver judges. */
    static const struct {
        uint64_t feature;
        const char *named, *without;
    } own[] = {{DEVICE_HAS_AVX512, "AVX-512", "SUNDOG_CPU_LEVEL=v3"},
               {DEVICE_HAS_VNNI, "AVX512_VNNI", "SUNDOG_CPU_LEVEL=v4"},
               {DEVICE_HAS_BF16, "AVX512_BF16", "SUNDOG_ENGINES=0"},
               {DEVICE_HAS_AMX, "AMX", "SUNDOG_ENGINES=0"}};
    uint64_t lacks = p->device.features & ~d->desc.features;

    if (p->device.kind != d->desc.kind)
        return sd_error(SD_PRECONDITION,
                        "built for %s, loaded on %s: compile it for this one",
                        p->device.name, d->desc.name);
    for (size_t i = 0; i < SD_COUNTOF(own); i++)
        if (lacks & own[i].feature)
            return sd_error(SD_PRECONDITION,
                            "built for %s, loaded on %s, which has no %s: "
                            "compile it here, or with %s for both",
                            p->device.name, d->desc.name, own[i].named,
                            own[i].without);
    if (d->ops->code_is_drivers && *p->device.driver &&
        strcmp(p->device.driver, d->desc.driver))
        return sd_error(SD_PRECONDITION,
                        "built for the driver '%s', loaded on '%s': compile it "
                        "for this one",
                        p->device.driver, d->desc.driver);
    return NULL;
}

static sd_status check_program(const xpu_program *x)
{
    const thunk_program *p = x->thunks;
    xpu_memory m;

    if (x->participant < 0 || x->participant >= thunk_participants(p))
        return sd_error(SD_INVALID, "as participant %d of %d", x->participant,
                        thunk_participants(p));
    for (int i = 0; i < p->noutput; i++)
        if (p->output[i].memory && !xpu_memory_of_name(p->output[i].memory, &m))
            return sd_error(SD_UNIMPLEMENTED,
                            "output %d in memory '%s': device, pinned_host and "
                            "unpinned_host are known",
                            i, p->output[i].memory);
    return NULL;
}

/* What another process must have alike to meet this one: not the code, which
 * is made for each machine. */
static void sum_up(xpu_program *x)
{
    const thunk_program *p = x->thunks;

    for (int i = 0; i < p->nparam + p->noutput; i++) {
        const thunk_type *t =
            i < p->nparam ? &p->param[i] : &p->output[i - p->nparam];

        x->meeting = sd_hash(t->dim, (size_t)t->rank * sizeof *t->dim,
                             x->meeting + (uint64_t)t->dtype);
    }
    x->meeting = sd_hash(p->name, strlen(p->name),
                         x->meeting + (uint64_t)thunk_participants(p));
}

static bool wants_ids(const thunk_program *p)
{
    for (int i = 0; i < p->nbuffer; i++)
        if (p->buffer[i].kind == THUNK_B_IDS)
            return true;
    return false;
}

/* Behind the constants stand the numbers of the participant, as its program
 * reads them. */
static sd_status load_constants(xpu_program *x)
{
    const thunk_program *p = x->thunks;
    uint32_t id[2] = {(uint32_t)(x->participant % p->nreplica),
                      (uint32_t)(x->participant / p->nreplica)};
    size_t bytes = p->constant_bytes, at = (bytes + 63) & ~(size_t)63;
    xpu_device *d = x->dev;
    bool ids = wants_ids(p);
    void *memory;
    sd_status st;

    if (ids)
        bytes = at + sizeof id;
    if (!bytes)
        return NULL;
    st = xpu_memory_alloc(d, XPU_MEM_DEVICE,
                          (xpu_purpose){"constants of ", p->name}, bytes,
                          &memory, &x->constants_cls);
    if (st)
        return st;
    x->constants = memory;
    x->ids = x->constants + at;
    if (p->constant_bytes)
        st = d->ops->copy_in(d, memory, p->constants, p->constant_bytes);
    if (!st && ids)
        st = d->ops->copy_in(d, x->ids, id, sizeof id);
    return st;
}

static void destroy(xpu_program *x)
{
    xpu_client *c = x->dev->client;

    if (x->module)
        x->dev->ops->unload(x->dev, x->module);
    if (x->constants)
        xpu_memory_free(x->dev, XPU_MEM_DEVICE, x->constants, x->constants_cls);
    xpu_ffi_unload(x->ffi);
    free(x->collective);
    thunk_program_release(x->thunks);
    free(x);
    xpu_client_release(c);
}

sd_status xpu_program_load(xpu_device *d, thunk_program *p, xpu_program **out)
{
    return xpu_program_load_as(d, p, 0, out);
}

sd_status xpu_program_load_as(xpu_device *d, thunk_program *p, int participant,
                              xpu_program **out)
{
    xpu_program *x = calloc(1, sizeof *x);
    sd_status st;

    if (!x)
        return sd_no_memory(sizeof *x);
    atomic_init(&x->refs, 1);
    x->dev = d;
    x->participant = participant;
    xpu_client_retain(d->client);
    x->thunks = thunk_program_retain(p);
    if ((st = thunk_verify(p)) || (st = check_device(d, p)) ||
        (st = check_program(x)) || (st = check_seq(x, &p->seq)) ||
        (st = xpu_ffi_load(x)) || (st = load_constants(x)) ||
        (st = d->ops->load(d, p, &x->module))) {
        destroy(x);
        return sd_note(st, "loading %s on device %d (%s)", p->name, d->id,
                       d->desc.name);
    }
    sum_up(x);
    x->cost_ns = xpu_run_cost(p, &p->seq);
    x->nlaunch = xpu_run_launches(d, &p->seq);
    atomic_init(&x->took_ns, -1);
    for (int i = 0; i < p->nbuffer; i++)
        if (p->buffer[i].kind == THUNK_B_OUTPUT && p->buffer[i].alias >= 0)
            x->aliases = true;
    *out = x;
    return NULL;
}

bool xpu_program_is_gang(const xpu_program *x)
{
    return x->meets;
}

xpu_program *xpu_program_retain(xpu_program *x)
{
    atomic_fetch_add_explicit(&x->refs, 1, memory_order_relaxed);
    return x;
}

void xpu_program_release(xpu_program *x)
{
    if (x && atomic_fetch_sub_explicit(&x->refs, 1, memory_order_acq_rel) == 1)
        destroy(x);
}
