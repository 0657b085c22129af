/* What the files of the fake libcuda share: fake_cuda.c, which says what it
 * does, the kernels of fake_cuda_kernel.c, the streams of fake_cuda_stream.c and
 * the graphs of fake_cuda_graph.c. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "fake.h"
#include "xpu_cuda_api.h"

/* What it exports, but for graphs. */
#define X(name, symbol, args) API cu_result symbol args;
XPU_CUDA_SYMBOLS(X)
XPU_CUDA_OPTIONAL(X)
#undef X

struct cu_context_st {
    int refs;
    cu_result fault;
};
typedef struct fake_record fake_record;
typedef struct {
    fake_command is;
    enum { LAUNCH, COPY, HOST, GRAPH, RECORD, WAIT } kind;
    cu_event event; /* to put it; then: */
    fake_record *record;
    void *own; /* to free with it */
    cu_host_fn host;
    void *ctx;
    cu_graph graph; /* its own */
} command;
struct cu_stream_st {
    cu_context context;
    fake_worker worker;
};
struct cu_function_st {
    struct cu_function_st *next;
    cu_module module;
    fake_kernel *fn;
};
/* A chain of nodes. */
struct cu_graph_node_st {
    cu_graph_node next;
    cu_graph_node id; /* in the graph that this one is a copy of */
    command what; /* LAUNCH, COPY; GRAPH: */
    _Atomic unsigned *condition;
    bool repeats;
    cu_graph body;
};
struct cu_graph_st {
    cu_graph_node first, last;
    cu_graph root;
    struct condition {
        struct condition *next;
        _Atomic unsigned value;
    } *conditions; /* of a root */
};
struct cu_graph_exec_st {
    cu_graph graph;
};

/* The words of FAKE_CUDA. */
struct fake_words {
    long fail, lose, exec, lag;
    int error, fault, init, version, devices, chip;
    size_t memory, pinned;
    bool pools, peers, alone, any_kernel, garbage;
};
extern struct fake_words fake_is;

extern _Atomic long fake_ngraph, fake_nrun, fake_nreplay;
extern _Thread_local bool fake_in_host_function;

/* Each call that may fail asks; those that want a context, too, whose fault is
 * theirs. */
cu_result fake_trouble(void);
cu_result fake_trouble_in(cu_context c);
/* The thread's current one, NULL: none. */
cu_context fake_context(void);

/* An object that counts as alive until it is dropped. */
void *fake_make(size_t size);
cu_result fake_drop(void *p);

/* All n bytes from p on are in one allocation, or none knows them. */
bool fake_is_inside(const void *p, size_t n, bool *pageable);
/* There is a way to `from` from the device that has `to`. */
bool fake_is_reached(const void *to, const void *from);
cu_result fake_read_args(command *c, void **params, void **extra);
/* Takes what the command owns, also when it fails. */
cu_result fake_put(cu_stream s, const command *what);

/* NULL: nothing. */
void fake_drop_graph(cu_graph g);

#endif
