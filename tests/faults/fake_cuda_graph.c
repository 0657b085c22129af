/* The graphs of the fake libcuda: chains of nodes, copied when they are made
 * ready and when they are put in, and run by the stream's thread in
 * fake_cuda_stream.c.  Built with FAKE_OLD there are none to make. */
#include "fake_cuda.h"

#include <stdlib.h>

void fake_drop_graph(cu_graph g)
{
    cu_graph_node n;
    struct condition *c;

    if (!g)
        return;
    while ((n = g->first)) {
        g->first = n->next;
        fake_drop_graph(n->body);
        free(n);
    }
    while ((c = g->conditions)) {
        g->conditions = c->next;
        free(c);
    }
    fake_drop(g);
}

#ifndef FAKE_OLD
#define X(name, symbol, args) API cu_result symbol args;
XPU_CUDA_GRAPH_SYMBOLS(X)
XPU_CUDA_LOOP_SYMBOLS(X)
#undef X

static cu_graph make_graph(cu_graph root)
{
    cu_graph g = fake_make(sizeof *g);

    if (g)
        g->root = root ? root : g;
    return g;
}

static cu_graph_node append(cu_graph g, const struct cu_graph_node_st *what)
{
    cu_graph_node n = malloc(sizeof *n);

    if (!n)
        return NULL;
    *n = *what;
    n->next = NULL;
    *(g->last ? &g->last->next : &g->first) = n;
    g->last = n;
    return n;
}

/* Its nodes' conditions stay those of the first. */
static cu_graph copy_graph(cu_graph from)
{
    cu_graph g = make_graph(NULL);

    for (cu_graph_node n = from->first; n && g; n = n->next) {
        struct cu_graph_node_st copied = *n;

        copied.id = n->id ? n->id : n;
        copied.body = n->body ? copy_graph(n->body) : NULL;
        if ((n->body && !copied.body) || !append(g, &copied)) {
            fake_drop_graph(copied.body);
            fake_drop_graph(g);
            return NULL;
        }
    }
    return g;
}

static cu_graph_node find_node(cu_graph g, cu_graph_node id)
{
    for (cu_graph_node n = g->first, in; n; n = n->next) {
        if (n->id == id)
            return n;
        if (n->body && (in = find_node(n->body, id)))
            return in;
    }
    return NULL;
}

/* Asked in vain it is no call that counts: nobody knows how often it is. */
cu_result cuStreamQuery(cu_stream s)
{
    bool is_idle;
    cu_result fault;

    pthread_mutex_lock(&fake_lock);
    fault = s->context->fault;
    is_idle = !s->worker.busy && !s->worker.head;
    pthread_mutex_unlock(&fake_lock);
    return fault ? fault : is_idle ? fake_trouble_in(s->context) : CU_NOT_READY;
}

cu_result cuGraphCreate(cu_graph *out, unsigned flags)
{
    cu_result err = fake_trouble();

    if (err || flags)
        return err ? err : CU_INVALID_VALUE;
    return (*out = make_graph(NULL)) ? CU_OK : CU_OUT_OF_MEMORY;
}

cu_result cuGraphDestroy(cu_graph g)
{
    fake_drop_graph(g);
    return CU_OK;
}

/* One behind the other: no node of ours waits for two, or for none. */
static cu_result add(cu_graph_node *out, cu_graph g, const cu_graph_node *after,
                     size_t n, const struct cu_graph_node_st *what)
{
    cu_result err = fake_trouble_in(NULL);

    if (!err && (n != (g->last != NULL) || (n && *after != g->last)))
        err = CU_INVALID_VALUE;
    if (err || !(*out = append(g, what)))
        fake_drop_graph(what->body);
    return err ? err : *out ? CU_OK : CU_OUT_OF_MEMORY;
}

static cu_result read_kernel(command *c, const cu_kernel_params *p)
{
    *c =
        (command){.is = {.fn = p->fn->fn, .tiles = p->grid[0]}, .kind = LAUNCH};
    if (p->grid[1] != 1 || p->grid[2] != 1 || p->group[1] != 1 ||
        p->group[2] != 1 || !p->group[0] || p->group[0] > 1024)
        return CU_INVALID_VALUE;
    return fake_read_args(c, p->params, p->extra);
}

cu_result cuGraphAddKernelNode_v2(cu_graph_node *out, cu_graph g,
                                  const cu_graph_node *after, size_t n,
                                  const cu_kernel_params *p)
{
    struct cu_graph_node_st node = {0};
    cu_result err = read_kernel(&node.what, p);

    return err ? err : add(out, g, after, n, &node);
}

static cu_result read_copy(command *c, const cu_copy_params *p)
{
    bool host_to, host_from;

    *c = (command){.is = {.to = (void *)(uintptr_t)p->to.at,
                          .from = (const void *)(uintptr_t)p->from.at,
                          .bytes = p->width},
                   .kind = COPY};
    if (p->from.type != CU_MEMORY_DEVICE || p->to.type != CU_MEMORY_DEVICE ||
        p->height != 1 || p->depth != 1 || !p->width ||
        !fake_is_inside(c->is.to, c->is.bytes, &host_to) ||
        !fake_is_inside(c->is.from, c->is.bytes, &host_from) || host_to ||
        host_from)
        return CU_INVALID_VALUE;
    return CU_OK;
}

cu_result cuGraphAddMemcpyNode(cu_graph_node *out, cu_graph g,
                               const cu_graph_node *after, size_t n,
                               const cu_copy_params *p, cu_context c)
{
    struct cu_graph_node_st node = {0};
    cu_result err = read_copy(&node.what, p);

    if (err || c != fake_context())
        return CU_INVALID_VALUE;
    return add(out, g, after, n, &node);
}

cu_result cuGraphConditionalHandleCreate(cu_condition *out, cu_graph g,
                                         cu_context c, unsigned value,
                                         unsigned flags)
{
    struct condition *made;
    cu_result err = fake_trouble_in(c);

    if (err || flags || g->root != g)
        return err ? err : CU_INVALID_VALUE;
    if (!(made = calloc(1, sizeof *made)))
        return CU_OUT_OF_MEMORY;
    made->value = value;
    made->next = g->conditions;
    g->conditions = made;
    *out = (uintptr_t)&made->value;
    return CU_OK;
}

cu_result cuGraphAddNode(cu_graph_node *out, cu_graph g,
                         const cu_graph_node *after, size_t n,
                         cu_node_params *p)
{
    struct cu_graph_node_st node = {.what.kind = GRAPH,
                                    .repeats = p->kind == CU_WHILE};
    cu_result err;

    if (p->type != CU_NODE_CONDITION || p->size != 1 ||
        (p->kind != CU_IF && p->kind != CU_WHILE) ||
        p->context != fake_context())
        return CU_INVALID_VALUE;
    node.condition = (_Atomic unsigned *)(uintptr_t)p->handle;
    if (!(node.body = make_graph(g->root)))
        return CU_OUT_OF_MEMORY;
    if ((err = add(out, g, after, n, &node)))
        return err;
    p->body = &(*out)->body;
    return CU_OK;
}

cu_result cuGraphInstantiateWithFlags(cu_graph_exec *out, cu_graph g,
                                      uint64_t flags)
{
    cu_result err = fake_trouble_in(NULL);
    cu_graph_exec x;

    if (err || flags)
        return err ? err : CU_INVALID_VALUE;
    if (!(x = fake_make(sizeof *x)))
        return CU_OUT_OF_MEMORY;
    if (!(x->graph = copy_graph(g))) {
        fake_drop(x);
        return CU_OUT_OF_MEMORY;
    }
    fake_ngraph++;
    *out = x;
    return CU_OK;
}

cu_result cuGraphExecDestroy(cu_graph_exec x)
{
    fake_ngraph--;
    fake_drop_graph(x->graph);
    return fake_drop(x);
}

static cu_result set_node(cu_graph_exec x, cu_graph_node id,
                          const command *what)
{
    cu_graph_node n = find_node(x->graph, id);
    cu_result err = fake_trouble_in(NULL);

    if (err || !n || n->what.kind != what->kind || n->what.is.fn != what->is.fn)
        return err ? err : CU_INVALID_VALUE;
    n->what = *what;
    return CU_OK;
}

cu_result cuGraphExecKernelNodeSetParams_v2(cu_graph_exec x, cu_graph_node n,
                                            const cu_kernel_params *p)
{
    command c;
    cu_result err = read_kernel(&c, p);

    return err ? err : set_node(x, n, &c);
}

cu_result cuGraphExecMemcpyNodeSetParams(cu_graph_exec x, cu_graph_node n,
                                         const cu_copy_params *p, cu_context in)
{
    command c;
    cu_result err = read_copy(&c, p);

    (void)in;
    return err ? err : set_node(x, n, &c);
}

cu_result cuGraphLaunch(cu_graph_exec x, cu_stream s)
{
    cu_graph g = copy_graph(x->graph);

    return g ? fake_put(s, &(command){.kind = GRAPH, .graph = g})
             : CU_OUT_OF_MEMORY;
}
#endif
