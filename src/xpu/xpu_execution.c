/* Making an execution: arguments are checked and held, outputs made. Everything
 * that can fail for want of memory comes before anything is taken from the
 * caller, so that a failed call leaves its arguments as they were. */
#include "xpu_execution.h"

#include <stdlib.h>

typedef xpu_execution execution;

static execution *execution_alloc(xpu_program *x)
{
    const thunk_program *p = x->thunks;
    size_t narg = (size_t)p->nparam, nout = (size_t)p->noutput;
    size_t words = narg + nout + (size_t)p->nbuffer + (size_t)x->max_arg;
    execution *e =
        malloc(sizeof *e + words * sizeof(void *) + nout * sizeof(int));

    if (!e)
        return NULL;
    memset(e, 0, sizeof *e);
    e->arg = (xpu_buffer **)(e + 1);
    e->out = e->arg + narg;
    e->base = (uint8_t **)(e->out + nout);
    e->slot = (void **)(e->base + p->nbuffer);
    e->alias = (int *)(e->slot + x->max_arg);
    if (!(e->done = xpu_event_create())) {
        free(e);
        return NULL;
    }
    e->program = xpu_program_retain(x);
    return e;
}

/* What callbacks and handlers use must stay until the run has ended, though
 * nobody may wait for its results any more. */
static sd_status take_callbacks(execution *e, const xpu_call *call)
{
    e->send = call->send;
    e->recv = call->recv;
    e->nsend = call->nsend;
    e->nrecv = call->nrecv;
    e->user = call->user;
    e->nuser = call->nuser;
    if (!call->nsend && !call->nrecv && !call->nuser)
        return NULL;
    return (e->ended = xpu_event_create()) ? NULL : sd_no_memory(0);
}

/* Dimensions of extent 1 are passed over: some clients hand over u8[1] as u8[].
 */
static bool same_type(const thunk_type *t, const xpu_buffer *b)
{
    if (t->dtype == SD_TOKEN) /* frameworks give any array without elements */
        return b->bytes == 0;
    return t->dtype == b->dtype &&
           sd_same_but_ones(t->rank, t->dim, b->rank, b->dim);
}

static sd_status wrong_type(int i, const thunk_type *t, const xpu_buffer *b)
{
    sd_buf s = {0};
    sd_status st;

    sd_buf_fmt(&s, "argument %d is %s[", i, sd_dtype_name(b->dtype));
    sd_buf_ints(&s, b->dim, b->rank, ",");
    sd_buf_fmt(&s, "], the program wants %s[", sd_dtype_name(t->dtype));
    sd_buf_ints(&s, t->dim, t->rank, ",");
    sd_buf_str(&s, "]");
    sd_buf_u8(&s, 0);
    st = s.oom ? sd_no_memory(s.len) : sd_error(SD_INVALID, "%s", s.at);
    sd_buf_finish(&s);
    return st;
}

static bool is_donated(const xpu_program *x, const xpu_call *call, int i)
{
    return x->thunks->donatable && x->thunks->donatable[i] &&
           !(call->keep && call->keep[i]);
}

/* The work that makes b ready may be queued behind the run that wants b. */
static bool is_to_come(const xpu_buffer *b)
{
    return b->later && !xpu_event_is_queued(b->ready);
}

bool xpu_call_must_park(const xpu_call *call)
{
    for (int i = 0; i < call->narg; i++)
        if (is_to_come(call->arg[i]))
            return true;
    return false;
}

static sd_status use_arguments(execution *e, const xpu_call *call)
{
    const xpu_program *x = e->program;
    const thunk_program *p = x->thunks;

    if (call->narg != p->nparam)
        return sd_error(SD_INVALID, "%d arguments, the program wants %d",
                        call->narg, p->nparam);
    for (int i = 0; i < call->narg; i++) {
        xpu_buffer *b = call->arg[i];

        if (b->dev != x->dev)
            return sd_error(SD_INVALID,
                            "argument %d is on device %d, the program on %d", i,
                            b->dev->id, x->dev->id);
        if (!same_type(&p->param[i], b))
            return wrong_type(i, &p->param[i], b);
        if (!xpu_buffer_use(b, e->parked))
            return sd_error(SD_INVALID,
                            "argument %d has been deleted or donated", i);
        e->arg[e->nused++] = b;
    }
    return NULL;
}

/* A donated buffer may occur once among the arguments. */
static sd_status check_donations(const execution *e, const xpu_call *call)
{
    int n = call->narg, ndonated = 0, *seen;
    size_t size = 4;
    sd_status st = NULL;

    for (int i = 0; i < n; i++)
        ndonated += is_donated(e->program, call, i);
    if (!ndonated || n < 2)
        return NULL;
    while (size < (size_t)n * 2)
        size *= 2;
    if (!(seen = calloc(size, sizeof *seen)))
        return sd_no_memory(size * sizeof *seen);
    for (int i = 0; i < n && !st; i++) {
        size_t h = (uintptr_t)call->arg[i] / 16 * 0x9e3779b97f4a7c15ull >> 32;

        for (h &= size - 1; seen[h]; h = (h + 1) & (size - 1)) {
            int k = seen[h] - 1;

            if (call->arg[k] == call->arg[i] &&
                (is_donated(e->program, call, i) ||
                 is_donated(e->program, call, k))) {
                st = sd_error(SD_INVALID,
                              "arguments %d and %d are one buffer, and it is "
                              "donated: f(donate(a), a) has no meaning",
                              k, i);
                break;
            }
        }
        seen[h] = seen[h] ? seen[h] : i + 1;
    }
    free(seen);
    return st;
}

static xpu_memory memory_of(const thunk_type *t)
{
    xpu_memory m = XPU_MEM_DEVICE;

    if (t->memory)
        (void)xpu_memory_of_name(t->memory, &m); /* checked when loaded */
    return m;
}

static sd_status give_memory(execution *e, xpu_buffer *b)
{
    void *at;
    xpu_purpose use = {"results of ", e->program->thunks->name};
    sd_status st =
        xpu_memory_alloc(b->dev, b->mem, use, b->bytes, &at, &b->cls);

    if (st) {
        b->cls = -1;
        return st;
    }
    b->ptr = at;
    e->ahead += (int64_t)b->bytes;
    return NULL;
}

/* Output o takes the memory of its donated argument, or has its own. */
static sd_status place_output(execution *e, const xpu_call *call, int o,
                              int alias)
{
    xpu_buffer *b = e->out[o];

    e->alias[o] = -1;
    if (alias >= 0 && is_donated(e->program, call, alias)) {
        xpu_buffer *a = e->arg[alias];

        if (a->bytes == b->bytes && a->mem == b->mem && xpu_buffer_take(a)) {
            b->ptr = a->ptr;
            b->cls = a->cls;
            return NULL;
        }
    }
    e->alias[o] = alias;
    return give_memory(e, b);
}

static sd_status make_outputs(execution *e, const xpu_call *call)
{
    const thunk_program *p = e->program->thunks;
    sd_status st;

    for (int i = 0; i < p->noutput; i++) {
        const thunk_type *t = &p->output[i];
        xpu_buffer *b = xpu_buffer_make(e->program->dev, memory_of(t), t->dtype,
                                        t->rank, t->dim, t->bytes, e->done);

        if (!b)
            return sd_no_memory(sizeof *b);
        b->later = e->parked;
        e->out[e->nout++] = b;
        if (!e->program->aliases && (e->alias[i] = -1, st = give_memory(e, b)))
            return st;
    }
    if (!e->program->aliases)
        return NULL;
    for (int i = 0; i < p->nbuffer; i++) {
        const thunk_buffer *tb = &p->buffer[i];

        if (tb->kind == THUNK_B_OUTPUT &&
            (st = place_output(e, call, tb->index, tb->alias)))
            return st;
    }
    return NULL;
}

/* The call failed: what was taken goes back, what was made goes away. */
void xpu_execution_undo(execution *e)
{
    xpu_event *done = e->done, *ended = e->ended;

    for (int i = 0; i < e->nout && e->held; i++)
        xpu_buffer_unuse(e->out[i], false);
    e->held = false;
    for (int i = 0; i < e->nout; i++) {
        xpu_buffer *b = e->out[i];

        for (int k = 0; k < e->nused && b->ptr; k++)
            if (e->arg[k]->ptr == b->ptr &&
                (atomic_load(&e->arg[k]->hold) & XPU_TAKEN)) {
                b->ptr = NULL;
                b->cls = -1;
                xpu_buffer_untake(e->arg[k]);
            }
        xpu_buffer_release(b);
    }
    e->nout = 0;
    xpu_execution_free(e);
    xpu_event_release(done);
    xpu_event_release(ended);
}

static void run_queued(xpu_task *task)
{
    xpu_execution_run((execution *)task);
}

sd_status xpu_execution_make(xpu_program *x, const xpu_call *call, bool parked,
                             xpu_execution **out)
{
    execution *e = execution_alloc(x);
    sd_status st;

    if (!e)
        return sd_no_memory(sizeof *e);
    e->parked = parked;
    if ((st = use_arguments(e, call)) || (st = check_donations(e, call)) ||
        (st = take_callbacks(e, call)) || (st = make_outputs(e, call))) {
        xpu_execution_undo(e);
        return sd_note(st, "executing %s", x->thunks->name);
    }
    for (int i = 0; i < e->nout; i++)
        xpu_buffer_use(e->out[i], false);
    e->held = true;
    e->task.run = run_queued;
    e->launch = call->launch;
    e->listener = call->listener;
    *out = e;
    return NULL;
}

xpu_event *xpu_execution_give(const execution *e, xpu_buffer **out)
{
    if (e->nout)
        memcpy(out, e->out, (size_t)e->nout * sizeof *out);
    return xpu_event_retain(e->ended ? e->ended : e->done);
}

void xpu_call_delete_donated(const xpu_program *x, const xpu_call *call)
{
    for (int i = 0; i < call->narg; i++)
        if (is_donated(x, call, i))
            xpu_buffer_delete(call->arg[i]);
}
