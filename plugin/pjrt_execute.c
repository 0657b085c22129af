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
    thunk_program *p;
    bool *keep; /* NULL: none */
} run;

/* What a run is on one device. */
typedef struct {
    PJRT_Device *device;
    int at; /* its place in the caller's lists */
    int participant;
    xpu_buffer **arg, **out;
    xpu_program *x; /* borrowed from the executable */
    xpu_call call;
    pjrt_callbacks *callbacks;
    xpu_event *done; /* a reference, from when it was executed */
} member;

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
static sd_status wrap_outputs(const run *r, const member *m, PJRT_Buffer **out)
{
    const int64_t *const *order = r->exe->exe->order;
    bool ok = true;
    int n = r->p->noutput;

    for (int i = 0; i < n; i++) {
        PJRT_Memory *in = &m->device->memory[xpu_buffer_memory(m->out[i])];

        out[i] = pjrt_buffer_wrap(in, m->out[i], order ? order[i] : NULL);
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

/* All that can be refused before anything runs. */
static sd_status prepare(const run *r, member *m, PJRT_Buffer *const *list)
{
    sd_status st;

    m->call = (xpu_call){.narg = (int)r->narg,
                         .keep = r->keep,
                         .launch = r->options->launch_id,
                         .listener = pjrt_trace_listener()};
    m->call.arg = m->arg;
    for (size_t i = 0; i < r->narg; i++) {
        m->arg[i] = list[i]->x;
        if ((list[i]->order || r->exe->exe->order) &&
            (st = check_layout(r, i, list[i])))
            return st;
    }
    if ((st = pjrt_loaded_program(r->exe, m->device, m->participant, &m->x)))
        return st;
    return pjrt_callbacks_make(r->options, m->at, &m->call, &m->callbacks);
}

/* It is under way: *event is who waits for it, *out what it makes. */
static sd_status hand_over(const run *r, member *m, uint64_t from,
                           PJRT_Buffer **out, PJRT_Event **event)
{
    sd_status st;

    if (m->callbacks)
        free_when_done(m->callbacks, m->done);
    m->callbacks = NULL;
    if (from)
        pjrt_trace_run(r->p, m->device->desc->id, from, m->done);
    if ((st = wrap_outputs(r, m, out))) {
        xpu_event_release(m->done);
        return st;
    }
    if (event)
        *event = pjrt_event(m->done);
    else
        xpu_event_release(m->done);
    return NULL;
}

static sd_status run_on(const run *r, member *m, PJRT_Buffer *const *list,
                        PJRT_Buffer **out, PJRT_Event **event)
{
    uint64_t from = pjrt_trace_now();
    sd_status st = prepare(r, m, list);

    if (st)
        return st;
    if ((st = xpu_execute(m->x, &m->call, m->out, &m->done))) {
        pjrt_callbacks_free(m->callbacks);
        return st;
    }
    return hand_over(r, m, from, out, event);
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
                        "%s: multi_slice_config: there are no slices of "
                        "devices here",
                        name);
    return NULL;
}

static sd_status check_call(const PJRT_LoadedExecutable_Execute_Args *a,
                            PJRT_Device **one)
{
    const PJRT_LoadedExecutable *l = a->executable;
    thunk_program *p = l->exe->p;
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
    if ((st = pjrt_device_is_here(*one)))
        return st;
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

static PJRT_Buffer *const *
arguments_of(const PJRT_LoadedExecutable_Execute_Args *a, int d)
{
    return a->num_args ? a->argument_lists[d] : NULL;
}

static PJRT_Buffer **
outputs_of(const run *r, const PJRT_LoadedExecutable_Execute_Args *a, int d)
{
    return r->p->noutput ? a->output_lists[d] : NULL;
}

static PJRT_Event **event_of(const PJRT_LoadedExecutable_Execute_Args *a, int d)
{
    return a->device_complete_events ? &a->device_complete_events[d] : NULL;
}

/* ---- devices that do not meet: one run after the other ---- */

static sd_status execute_each(run *r,
                              const PJRT_LoadedExecutable_Execute_Args *a,
                              PJRT_Device *one)
{
    size_t no = (size_t)r->p->noutput, n = r->narg;
    few f;
    member m = {.arg = f.arg, .out = f.out};
    uint8_t *heap = NULL;
    sd_status st = NULL;

    r->keep = f.keep;
    if (n > FEW || no > FEW) {
        if (!(heap = malloc((n + no) * sizeof(void *) + n)))
            return sd_no_memory((n + no) * sizeof(void *));
        m.arg = (xpu_buffer **)heap;
        m.out = m.arg + n;
        r->keep = (bool *)(m.out + no);
    }
    read_keep(r);
    for (int d = 0; d < (int)a->num_devices && !st; d++) {
        m.device = one ? one : r->exe->devices[d];
        m.at = d;
        m.participant = one ? 0 : r->exe->participant[d];
        st = run_on(r, &m, arguments_of(a, d), outputs_of(r, a, d),
                    event_of(a, d));
        if (st)
            drop(r, d, a->output_lists, a->device_complete_events);
    }
    free(heap);
    return st;
}

/* ---- devices that meet: all at once ---- */

typedef struct {
    member *m;
    xpu_program **x;
    xpu_call *call;
    xpu_buffer ***out;
    xpu_event **done;
    int n;
} gang;

static sd_status make_gang(run *r, int n, gang *g, void **heap)
{
    size_t each = r->narg + (size_t)r->p->noutput, k = (size_t)n;
    size_t bytes = k * (sizeof *g->m + sizeof *g->call + 3 * sizeof(void *) +
                        each * sizeof(void *)) +
                   r->narg;
    xpu_buffer **list;
    uint8_t *at = calloc(1, bytes);

    if (!(*heap = at))
        return sd_no_memory(bytes);
    *g = (gang){.m = (member *)at, .n = n};
    g->call = (xpu_call *)(g->m + k);
    g->x = (xpu_program **)(g->call + k);
    g->done = (xpu_event **)(g->x + k);
    g->out = (xpu_buffer ***)(g->done + k);
    list = (xpu_buffer **)(g->out + k);
    for (int i = 0; i < n; i++, list += each) {
        g->m[i].device = r->exe->devices[i];
        g->m[i].at = i;
        g->m[i].participant = r->exe->participant[i];
        g->m[i].arg = list;
        g->m[i].out = g->out[i] = list + r->narg;
    }
    r->keep = (bool *)list;
    read_keep(r);
    return NULL;
}

static sd_status start_gang(const run *r, gang *g,
                            const PJRT_LoadedExecutable_Execute_Args *a)
{
    const xpu_places *at = &r->exe->places;
    sd_status st = NULL;

    for (int i = 0; i < g->n && !st; i++) {
        st = prepare(r, &g->m[i], arguments_of(a, i));
        g->x[i] = g->m[i].x;
        g->call[i] = g->m[i].call;
    }
    if (!st)
        st = xpu_execute_among(at->process ? at : NULL, g->n, g->x, g->call,
                               g->out, g->done);
    for (int i = 0; i < g->n && st; i++)
        pjrt_callbacks_free(g->m[i].callbacks);
    return st;
}

/* What is under way without a handle goes on, and its results go. */
static void let_go(const run *r, member *m)
{
    if (m->callbacks)
        free_when_done(m->callbacks, m->done);
    for (int i = 0; i < r->p->noutput; i++)
        xpu_buffer_release(m->out[i]);
    xpu_event_release(m->done);
}

static sd_status execute_gang(run *r,
                              const PJRT_LoadedExecutable_Execute_Args *a)
{
    uint64_t from = pjrt_trace_now();
    void *heap = NULL;
    sd_status st;
    gang g;

    if ((st = make_gang(r, (int)a->num_devices, &g, &heap)) ||
        (st = start_gang(r, &g, a))) {
        free(heap);
        return st;
    }
    for (int i = 0; i < g.n; i++) {
        g.m[i].done = g.done[i];
        if (st) {
            let_go(r, &g.m[i]);
            continue;
        }
        st = hand_over(r, &g.m[i], from, outputs_of(r, a, i), event_of(a, i));
        if (st)
            drop(r, i, a->output_lists, a->device_complete_events);
    }
    free(heap);
    return st;
}

/* ---- the entry ---- */

PJRT_Error *
pjrt_loaded_executable_execute(PJRT_LoadedExecutable_Execute_Args *a)
{
    PJRT_LoadedExecutable *l = a->executable;
    run r = {
        .exe = l, .options = a->options, .narg = a->num_args, .p = l->exe->p};
    PJRT_Device *one = NULL;
    sd_status st;

    if (!l->n && !a->num_devices) /* all of it is other processes' */
        return NULL;
    if (!(st = check_call(a, &one)))
        st = l->meets ? execute_gang(&r, a) : execute_each(&r, a, one);
    return pjrt_return(st);
}
