/* The thunk interpreter: one walk over the steps for every device. */
#include "xpu_gang.h"
#include "xpu_interrupt.h"

#include <math.h>

static void *address(const xpu_run *r, const thunk_slice *s)
{
    return r->base[s->buffer] + s->offset;
}

static void addresses(const xpu_run *r, const thunk *t)
{
    for (int i = 0; i < t->narg; i++)
        r->slot[i] = address(r, &t->arg[i]);
}

static sd_status run_copy(const xpu_run *r, const thunk *t)
{
    const void *from = address(r, &t->arg[0]);
    void *to = address(r, &t->arg[1]);
    size_t bytes = t->arg[1].bytes;

    if (!bytes || from == to)
        return NULL;
    return r->dev->ops->copy(r->dev, XPU_COMPUTE, to, from, bytes);
}

static sd_status peek(const xpu_run *r, const thunk_slice *s, void *to,
                      size_t bytes)
{
    return r->dev->ops->peek(r->dev, to, address(r, s), bytes);
}

static sd_status run_seq(const xpu_run *r, const thunk_seq *seq);

/* Where nothing asks a device that lends for the condition, each turn is waited
 * for all the same: its threads sleep between kernels that nobody waits for
 * (300 turns of a small scan 9 ms, waited for 3). */
static bool waits_for_turns(const xpu_device *d, const thunk *loop)
{
    return loop->trip >= 0 && d->lends;
}

/* A loop whose trip count is known does not ask its condition. */
static sd_status run_while(const xpu_run *r, const thunk *t)
{
    sd_status st = NULL;
    uint8_t on = 1;

    for (int64_t i = 0; t->trip < 0 || i < t->trip; i++) {
        if (atomic_load_explicit(r->cancel, memory_order_relaxed))
            return xpu_interrupted(r->program->thunks->name);
        if (t->trip < 0) {
            if ((st = run_seq(r, &t->seq[0])) ||
                (st = peek(r, &t->arg[0], &on, 1)))
                return st;
            if (!on)
                break;
        }
        if ((st = run_seq(r, &t->seq[1])))
            return st;
        if (waits_for_turns(r->dev, t) &&
            (st = r->dev->ops->sync(r->dev, XPU_COMPUTE)))
            return st;
    }
    return NULL;
}

/* A predicate chooses branch 0 when it is true; an index that is out of range
 * chooses the last branch. */
static sd_status run_cond(const xpu_run *r, const thunk *t)
{
    sd_status st;
    int32_t which;
    uint8_t on;

    if (t->arg[0].bytes == 1) {
        if ((st = peek(r, &t->arg[0], &on, 1)))
            return st;
        which = on ? 0 : 1;
    } else if ((st = peek(r, &t->arg[0], &which, sizeof which))) {
        return st;
    }
    if (which < 0 || which >= t->nseq)
        which = t->nseq - 1;
    return run_seq(r, &t->seq[which]);
}

/* ---- beside others ---- */

static bool has_beside(const xpu_run *r)
{
    return r->gang && xpu_gang_is_queued(r->gang);
}

/* What is put into the one queue from now on begins when all that is in the
 * other one now has run. */
static sd_status follow(xpu_device *d, xpu_queue q, xpu_queue other)
{
    xpu_mark *m;
    sd_status st;

    if ((st = d->ops->record(d, other, NULL, NULL, &m)))
        return st;
    st = d->ops->wait(d, q, m);
    xpu_mark_release(m);
    return st;
}

static sd_status run_beside(const xpu_run *r, const thunk *t)
{
    sd_status st;

    if (!has_beside(r))
        return run_seq(r, &t->seq[0]);
    xpu_mark_release(*r->beside);
    *r->beside = NULL;
    if ((st = r->dev->ops->record(r->dev, XPU_BESIDE, NULL, NULL, r->beside)) ||
        (st = follow(r->dev, XPU_BESIDE, XPU_COMPUTE)))
        return st;
    r->dev->queue = XPU_BESIDE;
    st = run_seq(r, &t->seq[0]);
    r->dev->queue = XPU_COMPUTE;
    return st;
}

static sd_status join_all(const xpu_run *r)
{
    return has_beside(r) ? follow(r->dev, XPU_COMPUTE, XPU_BESIDE) : NULL;
}

static sd_status join(const xpu_run *r, const thunk *t)
{
    if (t->trip != 1 || !*r->beside)
        return join_all(r);
    return r->dev->ops->wait(r->dev, XPU_COMPUTE, *r->beside);
}

/* A run that fails has not come to its join, and ends when COMPUTE has run. */
static sd_status come_back(const xpu_run *r, sd_status st)
{
    sd_status bad = st ? join_all(r) : NULL;

    if (bad) {
        sd_status_free(bad);
        sd_status_free(r->dev->ops->sync(r->dev, XPU_BESIDE));
    }
    return st;
}

static sd_status run_thunk(const xpu_run *r, const thunk *t)
{
    const xpu_device_ops *ops = r->dev->ops;

    switch (t->kind) {
    case THUNK_KERNEL:
        addresses(r, t);
        return ops->launch(r->dev, r->program->module, t->kernel, r->slot);
    case THUNK_LIBCALL: /* of a library that is there: xpu_program_load */
        addresses(r, t);
        return ops->libcall(r->dev, t, r->slot);
    case THUNK_COPY:
        return run_copy(r, t);
    case THUNK_WHILE:
        return run_while(r, t);
    case THUNK_COND:
        return run_cond(r, t);
    case THUNK_COLLECTIVE:
        return xpu_run_collective(r, t);
    case THUNK_SEND:
        return xpu_run_send(r, t);
    case THUNK_RECV:
        return xpu_run_recv(r, t);
    case THUNK_CUSTOM:
        return xpu_run_custom(r, t);
    case THUNK_BESIDE:
        return run_beside(r, t);
    case THUNK_JOIN:
        return join(r, t);
    case THUNK_KIND_COUNT: /* none, says thunk_verify */
        break;
    }
    return NULL;
}

/* The listener hears of a step when the device has done it. */
static sd_status run_told(const xpu_run *r, const thunk *t)
{
    xpu_device *d = r->dev;
    xpu_step s = {.device = d->id,
                  .program = r->program->thunks,
                  .step = t,
                  .from = sd_now_ns()};
    sd_status st = run_thunk(r, t);

    if (st || (st = d->ops->sync(d, d->queue)))
        return st;
    s.until = sd_now_ns();
    r->listener.fn(r->listener.ctx, &s);
    return NULL;
}

static sd_status run_seq(const xpu_run *r, const thunk_seq *seq)
{
    bool told = r->listener.fn != NULL;
    sd_status st;
    int n;

    for (int i = 0; i < seq->n; i += n) {
        const thunk *t = &seq->at[i];

        if (atomic_load_explicit(r->cancel, memory_order_relaxed))
            return xpu_interrupted(r->program->thunks->name);
        n = 0; /* a step that is told is taken by itself */
        if (!told && (st = r->dev->ops->replay(r, t, &n)))
            return st;
        if (n)
            continue;
        n = 1;
        if ((st = told ? run_told(r, t) : run_thunk(r, t)))
            return sd_note(st, "%s%s%s", t->name ? t->name : "?",
                           t->op_name ? " " : "", t->op_name ? t->op_name : "");
    }
    return NULL;
}

sd_status xpu_run_program(xpu_run *r)
{
    const thunk_seq *seq = &r->program->thunks->seq;
    xpu_mark *beside = NULL;
    sd_status st = NULL;

    r->beside = &beside;
    if (r->program->ffi) {
        r->id = atomic_fetch_add(&r->dev->client->nrun, 1) + 1;
        st = xpu_ffi_begin(r);
    }
    if (!st && r->listener.fn) /* what is ahead of it is not its first step's */
        st = r->dev->ops->sync(r->dev, XPU_COMPUTE);
    if (!st)
        st = come_back(r, run_seq(r, seq));
    xpu_mark_release(beside);
    if (r->program->ffi)
        xpu_ffi_end(r);
    return st;
}

/* ---- what a run costs ---- */

/* In nanoseconds, on one thread, with its launch. */
static double step_cost(const thunk_program *p, double flops, double bytes)
{
    device_kind k = p->device.kind;

    return device_kind_table[k].launch + device_guess_ns(k, flops, bytes);
}

static double thunk_cost(const thunk_program *p, const thunk *t)
{
    double most = 0, bytes = 0, cost;

    switch (t->kind) {
    case THUNK_WHILE:
        if (t->trip < 0)
            return INFINITY;
        return (double)t->trip * xpu_run_cost(p, &t->seq[1]);
    case THUNK_COND:
        for (int i = 0; i < t->nseq; i++) {
            cost = xpu_run_cost(p, &t->seq[i]);
            most = SD_MAX(most, cost);
        }
        return most;
    case THUNK_BESIDE:
    case THUNK_COLLECTIVE: /* others may be behind */
    case THUNK_SEND: /* Python takes its time, and may wait for the caller */
    case THUNK_RECV:
        return INFINITY;
    case THUNK_KERNEL:
        if (p->kernel[t->kernel].loop && t->trip < 0)
            return INFINITY;
        /* fall through */
    default:
        if (t->flops > 0 || t->bytes > 0)
            return step_cost(p, t->flops, t->bytes);
        for (int i = 0; i < t->narg; i++)
            bytes += (double)t->arg[i].bytes;
        return step_cost(p, 0, bytes);
    }
}

double xpu_run_cost(const thunk_program *p, const thunk_seq *seq)
{
    double sum = 0;

    for (int i = 0; i < seq->n; i++)
        sum += thunk_cost(p, &seq->at[i]);
    return sum;
}

/* ---- how much it puts into the queue ---- */

/* Counts stop here: who asks compares them with far smaller numbers. */
#define MANY                1000000
#define COLLECTIVE_LAUNCHES 8 /* copies and waits, of a few members */

static int thunk_launches(const xpu_device *d, const thunk *t)
{
    int n;

    switch (t->kind) {
    case THUNK_WHILE:
        if (t->trip < 0 || waits_for_turns(d, t))
            return -1;
        n = xpu_run_launches(d, &t->seq[1]);
        return n < 0 ? -1 : (int)SD_MIN((double)t->trip * n, MANY);
    case THUNK_COLLECTIVE:
        return d->ops->gather ? COLLECTIVE_LAUNCHES : -1;
    case THUNK_BESIDE:
        n = xpu_run_launches(d, &t->seq[0]);
        return n < 0 ? -1 : n + 1;
    case THUNK_COND: /* the host reads which */
    case THUNK_SEND:
    case THUNK_RECV:
        return -1;
    case THUNK_CUSTOM: { /* a handler does what it likes */
        const device_custom_info *c = device_custom_of_name(t->target);

        return c ? c->launches : -1;
    }
    default:
        return 1;
    }
}

int xpu_run_launches(const xpu_device *d, const thunk_seq *seq)
{
    int sum = 0;

    for (int i = 0; i < seq->n; i++) {
        int n = thunk_launches(d, &seq->at[i]);

        if (n < 0)
            return -1;
        sum = SD_MIN(sum + n, MANY);
    }
    return sum;
}
