/* Execute: handles in, handles out.  Nothing here waits; the hot path makes
 * one allocation an output and takes no lock.  What an argument must be is
 * xpu's to check. */
#include "pjrt.h"

#define FEW 128 /* arguments or outputs that need no memory of their own */

/* Room for one run's lists, on the stack while they are short. */
typedef struct {
    xpu_buffer *arg[FEW], *out[FEW];
    bool keep[FEW];
} few;

typedef struct {
    PJRT_LoadedExecutable *exe;
    const PJRT_ExecuteOptions *options;
    size_t narg;
    const thunk_program *p;
    xpu_buffer **arg, **out;
    bool *keep; /* NULL: none */
    void *heap;
} run;

static void read_keep(run *r)
{
    const PJRT_ExecuteOptions *o = r->options;
    bool any = false;

    if (!PJRT_HAS(o, num_non_donatable_input_indices)) {
        r->keep = NULL;
        return;
    }
    memset(r->keep, 0, r->narg * sizeof *r->keep);
    for (size_t i = 0; i < o->num_non_donatable_input_indices; i++) {
        int64_t k = o->non_donatable_input_indices[i];

        if (k >= 0 && (size_t)k < r->narg)
            any = r->keep[k] = true;
    }
    if (!any)
        r->keep = NULL;
}

static void end_callbacks(void *ctx, sd_status st)
{
    sd_status_free(st);
    pjrt_callbacks_free(ctx);
}

/* The callbacks' data stay until the run has ended. */
static void free_when_done(pjrt_callbacks *callbacks, xpu_event *done)
{
    sd_status st = xpu_event_then(done, end_callbacks, callbacks);

    if (st) { /* no memory to be told: wait */
        sd_status_free(st);
        sd_status_free(xpu_event_wait(done));
        pjrt_callbacks_free(callbacks);
    }
}

/* Handles for what the run gave; on failure nothing is left behind. */
static sd_status wrap_outputs(run *r, PJRT_Device *d, PJRT_Buffer **out)
{
    const int64_t *const *order = r->exe->exe->order;
    bool ok = true;
    int n = r->p->noutput;

    for (int i = 0; i < n; i++) {
        PJRT_Memory *m = &d->memory[xpu_buffer_memory(r->out[i])];

        out[i] = pjrt_buffer_wrap(m, r->out[i], order ? order[i] : NULL);
        ok &= out[i] != NULL;
    }
    for (int i = 0; !ok && i < n; i++)
        pjrt_buffer_free(out[i]);
    return ok ? NULL : sd_no_memory(sizeof **out);
}

/* Whether argument i lies as the program wants it.  Other ranks are for those
 * to judge who compare shapes, but row-major both. */
static sd_status check_layout(const run *r, size_t i, const PJRT_Buffer *b)
{
    const PJRT_Executable *e = r->exe->exe;
    size_t k = (size_t)r->p->noutput + i;
    int rank = r->p->param[i].rank, has_rank = xpu_buffer_rank(b->x);
    PJRT_Layouts_MemoryLayout has;

    if (rank == has_rank
            ? pjrt_layout_same(b->order, e->order ? e->order[k] : NULL, rank)
            : !b->order && !(e->order && e->order[k]))
        return NULL;
    pjrt_layout_write(&has, has_rank, b->order);
    return sd_error(SD_INVALID,
                    "%s: argument %zu has layout %s, the program wants %s",
                    r->p->name, i, has.text, e->layout[k].text);
}

static sd_status run_on(run *r, PJRT_Device *d, int device,
                        PJRT_Buffer *const *list, PJRT_Buffer **out,
                        xpu_event **done)
{
    xpu_call call = {
        .narg = (int)r->narg, .keep = r->keep, .launch = r->options->launch_id};
    pjrt_callbacks *callbacks = NULL;
    uint64_t from = pjrt_profile_now();
    xpu_program *x;
    sd_status st;

    call.arg = r->arg;
    for (size_t i = 0; i < r->narg; i++) {
        r->arg[i] = list[i]->x;
        if ((list[i]->order || r->exe->exe->order) &&
            (st = check_layout(r, i, list[i])))
            return st;
    }
    if ((st = pjrt_loaded_program(r->exe, d, &x)) ||
        (st = pjrt_callbacks_make(r->options, device, &call, &callbacks)))
        return st;
    if ((st = xpu_execute(x, &call, r->out, done))) {
        pjrt_callbacks_free(callbacks);
        return st;
    }
    if (callbacks)
        free_when_done(callbacks, *done);
    if (from)
        pjrt_profile_run(r->p->name, d->desc->id, from, *done);
    if ((st = wrap_outputs(r, d, out)))
        xpu_event_release(*done);
    return st;
}

/* What a run would have to do and cannot is refused, not passed over. */
static sd_status check_options(const PJRT_ExecuteOptions *o, const char *name)
{
    if (o->struct_size < PJRT_ExecuteOptions_LEAST)
        return pjrt_short_struct("PJRT_ExecuteOptions", o->struct_size,
                                 PJRT_ExecuteOptions_LEAST);
    if (PJRT_HAS(o, num_hlo_output_callbacks) && o->num_hlo_output_callbacks)
        return sd_error(SD_UNIMPLEMENTED,
                        "%s: hlo_output_callbacks: programs here call the host "
                        "by send and receive",
                        name);
    if (PJRT_HAS(o, multi_slice_config) && o->multi_slice_config)
        return sd_error(SD_UNIMPLEMENTED,
                        "%s: multi_slice_config: this version runs in one "
                        "process",
                        name);
    return NULL;
}

static sd_status check_call(const PJRT_LoadedExecutable_Execute_Args *a,
                            PJRT_Device **one)
{
    const PJRT_LoadedExecutable *l = a->executable;
    const thunk_program *p = l->exe->p;
    sd_status st;

    if (atomic_load_explicit(&l->deleted, memory_order_relaxed))
        return sd_error(SD_INVALID, "%s was deleted", p->name);
    if (a->num_args != (size_t)p->nparam)
        return sd_error(SD_INVALID, "%s takes %d arguments, not %zu", p->name,
                        p->nparam, a->num_args);
    if ((st = check_options(a->options, p->name)))
        return st;
    *one = a->execute_device;
    if (!*one) {
        if (a->num_devices != (size_t)l->n)
            return sd_error(SD_INVALID, "%s runs on %d devices, not %zu",
                            p->name, l->n, a->num_devices);
        return NULL;
    }
    if (a->num_devices != 1)
        return sd_error(SD_INVALID, "%s: %zu argument lists for one device",
                        p->name, a->num_devices);
    if (!l->portable && (l->n != 1 || l->devices[0] != *one))
        return sd_error(SD_INVALID, "%s was not compiled for %s", p->name,
                        (*one)->desc->name);
    if (a->options->num_send_ops || a->options->num_recv_ops)
        return sd_error(SD_UNIMPLEMENTED,
                        "%s: send and receive callbacks with execute_device: "
                        "leave it out and the program's own devices run it",
                        p->name);
    return NULL;
}

static sd_status make_room(run *r, few *f)
{
    size_t no = (size_t)r->p->noutput, n = r->narg;
    uint8_t *at;

    r->arg = f->arg;
    r->out = f->out;
    r->keep = f->keep;
    if (n <= FEW && no <= FEW)
        return NULL;
    at = r->heap = malloc((n + no) * sizeof(void *) + n);
    if (!at)
        return sd_no_memory((n + no) * sizeof(void *));
    r->arg = (xpu_buffer **)at;
    r->out = r->arg + n;
    r->keep = (bool *)(r->out + no);
    return NULL;
}

/* Undoes devices [0, n): their runs go on, their results are dropped. */
static void drop(const run *r, int n, PJRT_Buffer **const *lists,
                 PJRT_Event **events)
{
    for (int d = 0; d < n; d++) {
        for (int i = 0; i < r->p->noutput; i++)
            pjrt_buffer_free(lists[d][i]);
        if (events)
            xpu_event_release(pjrt_xpu_event(events[d]));
    }
}

PJRT_Error *
pjrt_loaded_executable_execute(PJRT_LoadedExecutable_Execute_Args *a)
{
    PJRT_LoadedExecutable *l = a->executable;
    run r = {
        .exe = l, .options = a->options, .narg = a->num_args, .p = l->exe->p};
    PJRT_Device *one = NULL;
    few f;
    sd_status st;

    if ((st = check_call(a, &one)) || (st = make_room(&r, &f)))
        return pjrt_return(st);
    read_keep(&r);
    for (int d = 0; d < (int)a->num_devices && !st; d++) {
        xpu_event *done;

        st = run_on(&r, one ? one : l->devices[d], d,
                    r.narg ? a->argument_lists[d] : NULL,
                    r.p->noutput ? a->output_lists[d] : NULL, &done);
        if (st)
            drop(&r, d, a->output_lists, a->device_complete_events);
        else if (a->device_complete_events)
            a->device_complete_events[d] = pjrt_event(done);
        else
            xpu_event_release(done);
    }
    free(r.heap);
    return pjrt_return(st);
}
