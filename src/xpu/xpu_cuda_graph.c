/* Replaying pieces of programs: a graph is put in by one call, and loops and
 * branches in it by none, since the device takes their turns itself.  A piece
 * is as many steps in a row as need nothing of the host; it is recorded the
 * second time that it runs, with loops in it the first, for up to four sets of
 * addresses, and the graph that was not used for longest takes the next set.
 * What the driver does not take is launched as if there were no graphs.
 * docs/adr/0029 has what was measured. */
#include "xpu_cuda_api.h"

#include <stdlib.h>
#include <time.h>

/* Of a graph, so that an interrupt is looked for between them, and of all of a
 * device's: a node takes 3 KB there and 6 here. */
#define MOST_NODES  1024
#define MOST_OF_ALL 32768
/* Of turns of a loop that are recorded one behind the other. */
#define MOST_IN_A_TURN 64

/* ---- pieces ---- */

typedef struct {
    int nnode, nword;
    bool loops, branches, repeats;
} sizes;

static bool measure_seq(const xpu_module *m, bool loops, const thunk_seq *seq,
                        sizes *s);

static void add_nodes(sizes *s, int n, int nword)
{
    s->nnode += n;
    s->nword += n * nword;
}

static void add_times(sizes *s, const sizes *more, int times)
{
    s->nnode += times * more->nnode;
    s->nword += times * more->nword;
    s->loops |= more->loops;
    s->branches |= more->branches;
    s->repeats |= more->repeats;
}

/* Some turns of a loop of known turns go into one of its node, since a look at
 * the predicate takes longer than small kernels do; all turns of a short loop
 * need no node. */
static xpu_cuda_turns turns_of(const thunk *loop, int nbody)
{
    int most = SD_MAX(MOST_IN_A_TURN / SD_MAX(nbody, 1), 1);

    if (loop->trip < 0)
        return (xpu_cuda_turns){0, 1};
    if (loop->trip <= most)
        return (xpu_cuda_turns){(int)loop->trip, 0};
    return (xpu_cuda_turns){(int)(loop->trip % most), most};
}

xpu_cuda_turns xpu_cuda_turns_of(const xpu_module *m, const thunk *loop)
{
    sizes body = {0};

    measure_seq(m, true, &loop->seq[1], &body);
    return turns_of(loop, body.nnode);
}

/* Where there is a node, the condition is before it and at each turn's end. */
static bool measure_loop(const xpu_module *m, bool loops, const thunk *t,
                         sizes *s)
{
    sizes body = {0}, cond = {0};
    xpu_cuda_turns n;

    if (!measure_seq(m, loops, &t->seq[1], &body) ||
        !measure_seq(m, loops, &t->seq[0], &cond) ||
        s->nnode + body.nnode + cond.nnode > MOST_OF_ALL)
        return false;
    n = turns_of(t, body.nnode);
    s->repeats = true;
    add_times(s, &body, n.before + n.each);
    if (!n.each)
        return true;
    add_times(s, &cond, 2);
    add_nodes(s, 2, 3);
    s->loops = true;
    return loops;
}

/* A loop that can be told to end has one parameter more, the address of the
 * word, and is waited for. */
static bool measure_kernel(const thunk_kernel *k, bool loops, sizes *s)
{
    add_nodes(s, 1, k->nslot + k->loop);
    s->loops |= k->loop;
    s->repeats |= k->loop;
    return k->tiles <= INT32_MAX && (loops || !k->loop);
}

/* False: it needs the host. */
static bool measure(const xpu_module *m, bool loops, const thunk *t, sizes *s)
{
    bool ok = true;

    switch (t->kind) {
    case THUNK_KERNEL:
        return measure_kernel(&m->program->kernel[t->kernel], loops, s);
    case THUNK_COPY:
        add_nodes(s, 1, 2);
        return true;
    case THUNK_WHILE:
        return measure_loop(m, loops, t, s);
    case THUNK_COND:
        s->branches = true;
        add_nodes(s, t->nseq, 3);
        for (int i = 0; i < t->nseq && ok; i++)
            ok = measure_seq(m, loops, &t->seq[i], s);
        return ok && loops;
    default:
        return false;
    }
}

static bool measure_seq(const xpu_module *m, bool loops, const thunk_seq *seq,
                        sizes *s)
{
    for (int i = 0; i < seq->n; i++)
        if (s->nnode > MOST_OF_ALL || !measure(m, loops, &seq->at[i], s))
            return false;
    return true;
}

/* How many steps from the first on are one piece. */
static int measure_piece(const xpu_module *m, bool loops, const thunk_seq *seq,
                         int first, sizes *all)
{
    int i = first;

    *all = (sizes){0};
    for (; i < seq->n && all->nnode < MOST_NODES; i++) {
        sizes s = *all;

        if (!measure(m, loops, &seq->at[i], &s) ||
            s.nnode > (s.loops ? MOST_OF_ALL : MOST_NODES))
            break;
        *all = s;
    }
    return i - first;
}

/* Those within loops and branches too, which are walked where a graph of the
 * whole is not to be had.  out NULL: they are counted. */
static int find_pieces(const xpu_module *m, bool loops, const thunk_seq *seq,
                       xpu_cuda_piece *out)
{
    int count = 0, n;

    for (int i = 0; i < seq->n; i += SD_MAX(n, 1)) {
        sizes s;

        n = measure_piece(m, loops, seq, i, &s);
        if (!n)
            continue;
        if (out)
            out[count] = (xpu_cuda_piece){.first = &seq->at[i],
                                          .n = n,
                                          .nnode = s.nnode,
                                          .nword = s.nword,
                                          .loops = s.loops,
                                          .repeats = s.repeats,
                                          .branches = s.branches};
        count++;
    }
    for (int i = 0; i < seq->n; i++) /* graphs are put into COMPUTE */
        for (int k = 0; k < seq->at[i].nseq && seq->at[i].kind != THUNK_BESIDE;
             k++)
            count += find_pieces(m, loops, &seq->at[i].seq[k],
                                 out ? out + count : NULL);
    return count;
}

static int by_first(const void *a, const void *b)
{
    const xpu_cuda_piece *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

void xpu_cuda_find_pieces(xpu_cuda *v, xpu_module *m)
{
    const xpu_cuda_api *a = &v->driver->api;
    bool loops = a->has_loops;
    int n;

    if (!a->has_graphs || !(n = find_pieces(m, loops, &m->program->seq, NULL)))
        return;
    if (!(m->piece = calloc((size_t)n, sizeof *m->piece)))
        return;
    m->npiece = n;
    find_pieces(m, loops, &m->program->seq, m->piece);
    qsort(m->piece, (size_t)n, sizeof *m->piece, by_first);
}

static void drop_graphs(xpu_cuda *v, xpu_cuda_piece *p, bool ours)
{
    for (int i = 0; i < XPU_CUDA_GRAPHS; i++)
        if (p->graph[i]) {
            xpu_cuda_graph_destroy(v, p->graph[i], ours);
            p->graph[i] = NULL;
        }
}

void xpu_cuda_drop_pieces(xpu_cuda *v, xpu_module *m, bool ours)
{
    for (int i = 0; i < m->npiece; i++)
        drop_graphs(v, &m->piece[i], ours);
    free(m->piece);
}

/* ---- conditions ---- */

/* Conditions are told by a kernel.  The driver's own compiler knows the
 * function that does it. */
#define TELL \
    "{ .param .b64 handle; .param .b32 value;\n" \
    "st.param.b64 [handle], %d1; st.param.b32 [value], %r1;\n" \
    "call.uni cudaGraphSetConditional, (handle, value); }\n" \
    "ret;\n}\n"
static const char tellers[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".extern .func cudaGraphSetConditional(.param .b64 c, .param .b32 v);\n"
    /* One more turn: the predicate says so, and nobody wants the loop to end.
     */
    ".visible .entry sundog_turn(.param .u64 c, .param .u64 from,"
    " .param .u64 stop)\n{\n"
    ".reg .b64 %d<4>; .reg .b32 %r<3>; .reg .pred %p<2>;\n"
    "ld.param.u64 %d1, [c]; ld.param.u64 %d2, [from];"
    " ld.param.u64 %d3, [stop];\n"
    "ld.global.u8 %r1, [%d2];\n"
    "ld.volatile.global.u32 %r2, [%d3];\n"
    "setp.eq.u32 %p1, %r2, 0;\n"
    "selp.u32 %r1, %r1, 0, %p1;\n" TELL
    /* how: the branch; above it the last one's number; the top bit: from is a
     * predicate, by which true is branch 0. */
    ".visible .entry sundog_branch(.param .u64 c, .param .u64 from,"
    " .param .u64 how)\n{\n"
    ".reg .b64 %d<5>; .reg .b32 %r<5>; .reg .pred %p<4>;\n"
    "ld.param.u64 %d1, [c]; ld.param.u64 %d2, [from];"
    " ld.param.u64 %d3, [how];\n"
    "cvt.u32.u64 %r2, %d3;\n"
    "shr.u64 %d4, %d3, 32;\n"
    "cvt.u32.u64 %r3, %d4;\n"
    "setp.lt.s32 %p1, %r3, 0;\n"
    "and.b32 %r3, %r3, 0x7fffffff;\n"
    "@%p1 bra PREDICATE;\n"
    "ld.global.u32 %r4, [%d2];\n"
    "bra KNOWN;\n"
    "PREDICATE: ld.global.u8 %r4, [%d2];\n"
    "setp.eq.u32 %p2, %r4, 0;\n"
    "selp.u32 %r4, 1, 0, %p2;\n"
    /* Out of range, below 0 too: the last. */
    "KNOWN: min.u32 %r4, %r4, %r3;\n"
    "setp.eq.u32 %p3, %r4, %r2;\n"
    "selp.u32 %r1, 1, 0, %p3;\n" TELL;

/* From `word`, which stays as it is until it has been read. */
static sd_status copy_stop(xpu_cuda *v, cu_pointer stop, const void *word)
{
    const xpu_cuda_api *a = &v->driver->api;
    cu_result err = a->MemcpyAsync(stop, (cu_pointer)(uintptr_t)word,
                                   sizeof(uint32_t), v->now);

    if (err)
        return xpu_cuda_status(v->driver, v, err, "cuMemcpyAsync");
    return xpu_cuda_status(v->driver, v, a->StreamSynchronize(v->now),
                           "cuStreamSynchronize");
}

/* By the thread that runs programs, whose the pinned word is. */
static sd_status write_stop(xpu_cuda *v, uint32_t value)
{
    memcpy(v->word, &value, sizeof value);
    return copy_stop(v, v->loops.stop, v->word);
}

static sd_status make_stop(xpu_cuda *v)
{
    static const uint32_t go_on = 0;
    cu_pointer stop = 0;
    cu_result err = v->driver->api.MemAlloc(&stop, sizeof go_on);
    sd_status st;

    if (err)
        return xpu_cuda_status(v->driver, v, err, "cuMemAlloc");
    if ((st = copy_stop(v, stop, &go_on)))
        v->driver->api.MemFree(stop);
    else
        v->loops.stop = stop;
    return st;
}

/* Several threads may load programs at once. */
sd_status xpu_cuda_need_stop(xpu_cuda *v)
{
    sd_status st;

    pthread_mutex_lock(&v->lock);
    st = v->loops.stop ? NULL : make_stop(v);
    pthread_mutex_unlock(&v->lock);
    return st;
}

static sd_status make_loops(xpu_cuda *v)
{
    const xpu_cuda_api *a = &v->driver->api;
    xpu_cuda_loops *l = &v->loops;
    sd_status st;
    cu_result err;

    if ((st = xpu_cuda_load_image(v, tellers, &l->module)))
        return st;
    if ((err = a->ModuleGetFunction(&l->turn, l->module, "sundog_turn")) ||
        (err = a->ModuleGetFunction(&l->branch, l->module, "sundog_branch")))
        return xpu_cuda_status(v->driver, v, err, "cuModuleGetFunction");
    return xpu_cuda_need_stop(v);
}

static bool has_loops(xpu_cuda *v)
{
    sd_status st;

    if (v->loops.state == XPU_CUDA_NOT_LOOKED) {
        v->loops.state = XPU_CUDA_LOOPS;
        if ((st = make_loops(v))) {
            sd_log(SD_LOG_DEBUG, "loops come back to the host: %s",
                   st->message);
            sd_status_free(st);
            v->loops.state = XPU_CUDA_NO_LOOPS;
        }
    }
    return v->loops.state == XPU_CUDA_LOOPS;
}

/* ---- graphs of a piece ---- */

static bool is_for(const xpu_cuda_graph *g, const xpu_run *r)
{
    return !memcmp(g->base, r->base,
                   (size_t)r->program->thunks->nbuffer * sizeof *g->base);
}

/* Where the graph for this run's addresses is, or is to be: an empty place, as
 * long as the device has room, or that of the one not used for longest. */
static xpu_cuda_graph **place_for(const xpu_cuda *v, xpu_cuda_piece *p,
                                  const xpu_run *r)
{
    bool room = atomic_load(&v->nodes) + p->nnode <= MOST_OF_ALL;
    xpu_cuda_graph **empty = NULL, **oldest = NULL;

    for (int i = 0; i < XPU_CUDA_GRAPHS; i++) {
        xpu_cuda_graph **at = &p->graph[i];

        if (!*at)
            empty = empty ? empty : at;
        else if (is_for(*at, r))
            return at;
        else if (!oldest || (*at)->used < (*oldest)->used)
            oldest = at;
    }
    return empty && room ? empty : oldest;
}

/* What it changes may be in the queue: those that run are as they were put in.
 * One that cannot be changed is made anew, when what is queued has run. */
static cu_result update(xpu_cuda *v, xpu_cuda_piece *p, const xpu_run *r,
                        xpu_cuda_graph **at, const char **call)
{
    cu_result err = xpu_cuda_graph_update(v, r, p, *at, call);

    if (!err)
        return CU_OK;
    *call = "cuStreamSynchronize";
    err = v->driver->api.StreamSynchronize(v->queue[XPU_COMPUTE]);
    xpu_cuda_graph_destroy(v, *at, true);
    *at = NULL;
    return err ? err : xpu_cuda_graph_record(v, r, p, at, call);
}

static cu_result put_in(xpu_cuda *v, xpu_cuda_piece *p, const xpu_run *r,
                        bool *done, const char **call)
{
    xpu_cuda_graph **at = place_for(v, p, r);
    cu_result err = CU_OK;

    *done = at != NULL;
    if (!at)
        return CU_OK;
    if (!*at)
        err = xpu_cuda_graph_record(v, r, p, at, call);
    else if (!is_for(*at, r))
        err = update(v, p, r, at, call);
    if (err)
        return err;
    (*at)->used = p->nrun;
    *call = "cuGraphLaunch";
    return v->driver->api.GraphLaunch((*at)->exec, v->queue[XPU_COMPUTE]);
}

/* ---- replaying ---- */

static cu_result query(xpu_cuda *v)
{
    return v->driver->api.StreamQuery(v->queue[XPU_COMPUTE]);
}

/* Waits with a look at the run's mark: short at first, then for a part of what
 * it took so far. */
#define SPIN_NS  50000u
#define SLEEP_NS 1000000u
static cu_result await(xpu_cuda *v, const _Atomic bool *cancel, bool *cancelled)
{
    uint64_t from = sd_now_ns(), ns;
    cu_result err;

    while ((err = query(v)) == CU_NOT_READY) {
        if ((*cancelled = atomic_load_explicit(cancel, memory_order_relaxed)))
            return CU_OK;
        ns = sd_now_ns() - from;
        if (ns > SPIN_NS) {
            ns = SD_MIN(ns / 32, SLEEP_NS);
            nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
        }
    }
    return err;
}

/* A loop cannot be taken back, and nobody knows how long it runs: so the host
 * waits for it, and tells it to end when the run is cancelled. */
sd_status xpu_cuda_await_loops(xpu_cuda *v, const _Atomic bool *cancel)
{
    bool cancelled = false;
    cu_result err = await(v, cancel, &cancelled);
    sd_status st, st2;

    if (err)
        return xpu_cuda_status(v->driver, v, err, "cuStreamQuery");
    v->pace = (xpu_pace){0};
    if (!cancelled)
        return NULL;
    st = write_stop(v, 1);
    err = v->driver->api.StreamSynchronize(v->queue[XPU_COMPUTE]);
    if (!st)
        st = xpu_cuda_status(v->driver, v, err, "cuStreamSynchronize");
    st2 = write_stop(v, 0);
    if (st)
        sd_status_free(st2);
    return st ? st : st2;
}

static sd_status pace(xpu_cuda *v, const xpu_cuda_piece *p, const xpu_run *r)
{
    if (p->loops)
        return xpu_cuda_await_loops(v, r->cancel);
    return xpu_cuda_keep_pace(v, p->nnode);
}

/* What the driver does not take is launched, but after a fault.  Other graphs
 * of the piece may still run. */
static sd_status refuse(xpu_cuda *v, xpu_cuda_piece *p, sd_status st)
{
    sd_log(SD_LOG_DEBUG, "%d steps are launched one by one: %s", p->n,
           st->message);
    p->refused = true;
    v->driver->api.StreamSynchronize(v->queue[XPU_COMPUTE]);
    drop_graphs(v, p, true);
    if (atomic_load(&v->fault))
        return st;
    sd_status_free(st);
    return NULL;
}

static sd_status replay(xpu_cuda *v, xpu_cuda_piece *p, const xpu_run *r,
                        int *n)
{
    const char *call = "";
    bool done = false;
    cu_result err;

    if ((p->loops || p->branches) && !has_loops(v)) {
        p->refused = true;
        return NULL;
    }
    if ((err = put_in(v, p, r, &done, &call)))
        return refuse(v, p, xpu_cuda_status(v->driver, v, err, call));
    if (!done)
        return NULL;
    *n = p->n;
    return pace(v, p, r);
}

sd_status xpu_cuda_replay(const xpu_run *r, const thunk *first, int *n)
{
    xpu_cuda *v = r->dev->impl;
    xpu_module *m = r->program->module;
    const xpu_cuda_piece key = {.first = first};
    xpu_cuda_piece *p;
    sd_status st;

    *n = 0;
    if (!m->npiece || !(p = bsearch(&key, m->piece, (size_t)m->npiece,
                                    sizeof *m->piece, by_first)))
        return NULL;
    if (p->refused || (!p->nrun++ && !p->repeats))
        return NULL;
    if ((st = xpu_cuda_enter(v)))
        return st;
    st = replay(v, p, r, n);
    xpu_cuda_leave(v);
    return sd_note(st, "%d steps from %s", p->n,
                   first->name ? first->name : "?");
}
