/* Recording a piece of a program as a graph: a node a launch or copy, each
 * behind the one before it, as in the stream.  A loop whose condition the
 * device computes is a node with a graph in it, which runs again for as long as
 * a kernel of ours, which reads the predicate, tells it to, of a loop of known
 * turns once for several of them; branches are a node each, told before the
 * first of them runs, since it may write over the index.
 *
 * At other addresses the same walk over the steps compares what each node was
 * given with what it is to have now, and changes those that differ. */
#include "xpu_cuda_api.h"

#include <stdlib.h>

typedef struct {
    xpu_cuda *v;
    const xpu_run *run;
    xpu_cuda_graph *g;
    cu_graph in;        /* where nodes go, NULL: they are there and follow; */
    cu_graph_node last; /* behind that one */
    int at, word;       /* of g: the next one's */
    const char *call;   /* the last of the driver's */
} recorder;

static cu_result record_seq(recorder *r, const thunk_seq *seq);

static void *address(const recorder *r, const thunk_slice *s)
{
    return r->run->base[s->buffer] + s->offset;
}

static size_t nbefore(const recorder *r)
{
    return r->last != NULL;
}

/* What it was given is kept beside it.  False: it has that already. */
static bool is_news(recorder *r, void *const *word, int n)
{
    void **kept = r->g->word + r->word;
    size_t bytes = (size_t)n * sizeof *word;

    r->word += n;
    if (!r->in && !memcmp(kept, word, bytes))
        return false;
    memcpy(kept, word, bytes);
    return true;
}

/* ---- nodes ---- */

static cu_result put_kernel(recorder *r, cu_kernel_params *k, void **slot,
                            int n)
{
    const xpu_cuda_api *a = &r->v->driver->api;
    cu_graph_node *node = &r->g->node[r->at++];
    size_t bytes = (size_t)n * sizeof *slot;
    void *extra[] = {CU_PARAM_BUFFER, slot, CU_PARAM_BYTES, &bytes,
                     CU_PARAM_END};
    cu_result err;

    k->extra = extra;
    if (!is_news(r, slot, n))
        return CU_OK;
    if (!r->in) {
        r->call = "cuGraphExecKernelNodeSetParams";
        return a->GraphExecKernelNodeSetParams(r->g->exec, *node, k);
    }
    r->call = "cuGraphAddKernelNode";
    err = a->GraphAddKernelNode(node, r->in, &r->last, nbefore(r), k);
    r->last = *node;
    return err;
}

static cu_result record_kernel(recorder *r, const thunk *t)
{
    const xpu_module *m = r->run->program->module;
    const thunk_kernel *k = &m->program->kernel[t->kernel];
    cu_kernel_params p = {.fn = m->kernel[t->kernel],
                          .grid = {(unsigned)k->tiles, 1, 1},
                          .group = {(unsigned)k->group, 1, 1},
                          .shared = xpu_cuda_shared(k)};

    if (k->tiles <= 0)
        return CU_OK;
    for (int i = 0; i < t->narg; i++)
        r->run->slot[i] = address(r, &t->arg[i]);
    return put_kernel(r, &p, r->run->slot,
                      xpu_cuda_words(r->v, k, r->run->slot));
}

static cu_copy_side side_of(const void *p)
{
    return (cu_copy_side){.type = CU_MEMORY_DEVICE,
                          .at = (cu_pointer)(uintptr_t)p};
}

/* Whether there is anything to copy depends on the addresses, too: then it is
 * another graph. */
static cu_result record_copy(recorder *r, const thunk *t)
{
    const xpu_cuda_api *a = &r->v->driver->api;
    cu_graph_node *node = &r->g->node[r->at++];
    void *word[] = {address(r, &t->arg[0]), address(r, &t->arg[1])};
    cu_copy_params p = {.from = side_of(word[0]),
                        .to = side_of(word[1]),
                        .width = t->arg[1].bytes,
                        .height = 1,
                        .depth = 1};
    bool is_one = p.width && word[0] != word[1];
    cu_result err;

    if (!is_news(r, word, 2))
        return CU_OK;
    if (!r->in) {
        r->call = "cuGraphExecMemcpyNodeSetParams";
        if (!is_one || !*node)
            return is_one == !!*node ? CU_OK : CU_INVALID_VALUE;
        return a->GraphExecMemcpyNodeSetParams(r->g->exec, *node, &p,
                                               r->v->context);
    }
    if (!is_one)
        return CU_OK;
    r->call = "cuGraphAddMemcpyNode";
    err = a->GraphAddMemcpyNode(node, r->in, &r->last, nbefore(r), &p,
                                r->v->context);
    r->last = *node;
    return err;
}

/* ---- loops and branches ---- */

/* The kernel that tells the condition `*handle` (which a graph that is there
 * has kept) what to do by the number at `from`. */
static cu_result put_teller(recorder *r, cu_function fn, cu_condition *handle,
                            const thunk_slice *from, uint64_t how)
{
    void *slot[] = {NULL, address(r, from), (void *)(uintptr_t)how};
    cu_kernel_params p = {.fn = fn, .grid = {1, 1, 1}, .group = {1, 1, 1}};

    if (!r->in)
        *handle = (uintptr_t)r->g->word[r->word];
    slot[0] = (void *)(uintptr_t)*handle;
    return put_kernel(r, &p, slot, SD_COUNTOF(slot));
}

static cu_result make_condition(recorder *r, cu_condition *out)
{
    if (!r->in)
        return CU_OK;
    r->call = "cuGraphConditionalHandleCreate";
    return r->v->driver->api.GraphConditionalHandleCreate(out, r->g->graph,
                                                          r->v->context, 0, 0);
}

/* From here on nodes go into the graph of a new node. */
static cu_result go_inside(recorder *r, int kind, cu_condition handle,
                           cu_graph_node *outer)
{
    cu_node_params p = {.type = CU_NODE_CONDITION,
                        .handle = handle,
                        .kind = kind,
                        .size = 1,
                        .context = r->v->context};
    cu_result err;

    *outer = NULL;
    if (!r->in)
        return CU_OK;
    r->call = "cuGraphAddNode";
    err =
        r->v->driver->api.GraphAddNode(outer, r->in, &r->last, nbefore(r), &p);
    if (err)
        return err;
    r->in = *p.body;
    r->last = NULL;
    return CU_OK;
}

static void go_outside(recorder *r, cu_graph in, cu_graph_node outer)
{
    r->in = in;
    r->last = outer;
}

static cu_result record_turn(recorder *r, const thunk *t, cu_condition *handle)
{
    cu_result err = record_seq(r, &t->seq[0]);

    return err ? err
               : put_teller(r, r->v->loops.turn, handle, &t->arg[0],
                            r->v->loops.stop);
}

static cu_result record_times(recorder *r, const thunk_seq *seq, int n)
{
    cu_result err = CU_OK;

    for (int i = 0; i < n && !err; i++)
        err = record_seq(r, seq);
    return err;
}

static cu_result record_node(recorder *r, const thunk *t, int each)
{
    cu_graph in = r->in;
    cu_graph_node outer;
    cu_condition handle = 0;
    cu_result err;

    if ((err = make_condition(r, &handle)) ||
        (err = record_turn(r, t, &handle)) ||
        (err = go_inside(r, CU_WHILE, handle, &outer)))
        return err;
    if (!(err = record_times(r, &t->seq[1], each)))
        err = record_turn(r, t, &handle);
    go_outside(r, in, outer);
    return err;
}

static cu_result record_while(recorder *r, const thunk *t)
{
    const xpu_module *m = r->run->program->module;
    xpu_cuda_turns n = xpu_cuda_turns_of(m, t);
    cu_result err = record_times(r, &t->seq[1], n.before);

    return err || !n.each ? err : record_node(r, t, n.each);
}

/* Which branch this is, of how many, and how its number is written. */
static uint64_t how_of(const thunk *t, int branch)
{
    return (uint64_t)branch | (uint64_t)(t->nseq - 1) << 32 |
           (uint64_t)(t->arg[0].bytes == 1) << 63;
}

static cu_result record_cond(recorder *r, const thunk *t)
{
    int first = r->word;
    cu_graph in = r->in;
    cu_result err = CU_OK;

    for (int i = 0; i < t->nseq && !err; i++) {
        cu_condition handle = 0;

        if (!(err = make_condition(r, &handle)))
            err = put_teller(r, r->v->loops.branch, &handle, &t->arg[0],
                             how_of(t, i));
    }
    for (int i = 0; i < t->nseq && !err; i++) {
        cu_condition handle = (uintptr_t)r->g->word[first + 3 * i];
        cu_graph_node outer;

        if ((err = go_inside(r, CU_IF, handle, &outer)))
            return err;
        err = record_seq(r, &t->seq[i]);
        go_outside(r, in, outer);
    }
    return err;
}

/* Of all else xpu_cuda_graph.c makes no piece. */
static cu_result record_seq(recorder *r, const thunk_seq *seq)
{
    cu_result err = CU_OK;

    for (int i = 0; i < seq->n && !err; i++) {
        const thunk *t = &seq->at[i];

        if (t->kind == THUNK_KERNEL)
            err = record_kernel(r, t);
        else if (t->kind == THUNK_COPY)
            err = record_copy(r, t);
        else if (t->kind == THUNK_WHILE)
            err = record_while(r, t);
        else
            err = record_cond(r, t);
    }
    return err;
}

/* ---- a graph ---- */

static void set_bases(xpu_cuda_graph *g, const xpu_run *r)
{
    memcpy(g->base, r->base,
           (size_t)r->program->thunks->nbuffer * sizeof *g->base);
}

static cu_result record_all(recorder *r, const xpu_cuda_piece *p)
{
    const xpu_cuda_api *a = &r->v->driver->api;
    const thunk_seq seq = {(thunk *)(uintptr_t)p->first, p->n};
    cu_result err;

    r->call = "cuGraphCreate";
    if ((err = a->GraphCreate(&r->g->graph, 0)))
        return err;
    r->in = r->g->graph;
    if ((err = record_seq(r, &seq)))
        return err;
    r->call = "cuGraphInstantiate";
    return a->GraphInstantiate(&r->g->exec, r->g->graph, 0);
}

cu_result xpu_cuda_graph_record(xpu_cuda *v, const xpu_run *run,
                                const xpu_cuda_piece *p, xpu_cuda_graph **out,
                                const char **call)
{
    size_t n = (size_t)p->nnode + (size_t)p->nword +
               (size_t)run->program->thunks->nbuffer;
    xpu_cuda_graph *g = calloc(1, sizeof *g + n * sizeof(void *));
    recorder r = {.v = v, .run = run, .g = g};
    cu_result err;

    *call = "calloc";
    if (!g)
        return CU_OUT_OF_MEMORY;
    g->nnode = p->nnode;
    g->node = (cu_graph_node *)(g + 1);
    g->word = (void **)(g->node + p->nnode);
    g->base = (uint8_t **)(g->word + p->nword);
    atomic_fetch_add(&v->nodes, g->nnode);
    err = record_all(&r, p);
    *call = r.call;
    if (err) {
        xpu_cuda_graph_destroy(v, g, true);
        return err;
    }
    set_bases(g, run);
    *out = g;
    return CU_OK;
}

cu_result xpu_cuda_graph_update(xpu_cuda *v, const xpu_run *run,
                                const xpu_cuda_piece *p, xpu_cuda_graph *g,
                                const char **call)
{
    const thunk_seq seq = {(thunk *)(uintptr_t)p->first, p->n};
    recorder r = {.v = v, .run = run, .g = g};
    cu_result err = record_seq(&r, &seq);

    *call = r.call;
    set_bases(g, run);
    return err;
}

void xpu_cuda_graph_destroy(xpu_cuda *v, xpu_cuda_graph *g, bool ours)
{
    const xpu_cuda_api *a = &v->driver->api;

    if (g->exec && ours)
        a->GraphExecDestroy(g->exec);
    if (g->graph && ours)
        a->GraphDestroy(g->graph);
    atomic_fetch_sub(&v->nodes, g->nnode);
    free(g);
}
