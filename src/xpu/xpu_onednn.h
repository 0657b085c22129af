/* oneDNN's C API as far as we use it, and what the files that use it share.
 * Descriptors are filled by the library through pointers, so opaque storage
 * that is large enough will do. */
#ifndef XPU_ONEDNN_H
#define XPU_ONEDNN_H

#include <pthread.h>
#include <sys/types.h>

#include "xpu_lib.h"

enum {
    DNNL_OF_ANY = 1,
    DNNL_IS_CPU = 1,
    DNNL_STREAM_DEFAULT = 1,
    DNNL_SCRATCH_USER = 1,
    DNNL_FORWARD = 64, /* training: what a backward pass takes as its hint */
    DNNL_INFERENCE = 96,
    DNNL_DIRECT = 1
};
enum {
    DNNL_RELU = 31,
    DNNL_TANH = 47,
    DNNL_LINEAR = 127,
    DNNL_LOGISTIC = 175,
    DNNL_BINARY_ADD = 131056
};
enum {
    DNNL_SRC_MD = 129,
    DNNL_DIFF_SRC_MD = 130,
    DNNL_WEIGHTS_MD = 131,
    DNNL_DIFF_WEIGHTS_MD = 132,
    DNNL_DST_MD = 133,
    DNNL_DIFF_DST_MD = 134,
    DNNL_SCRATCH_MD = 136
};
enum {
    DNNL_ARG_SRC = 1,
    DNNL_ARG_DST = 17,
    DNNL_ARG_WEIGHTS = 33,
    DNNL_ARG_BIAS = 41,
    DNNL_ARG_SCRATCH = 80,
    DNNL_ARG_DIFF_SRC = 129,
    DNNL_ARG_DIFF_DST = 145,
    DNNL_ARG_DIFF_WEIGHTS = 161,
    DNNL_ARG_POST_OP = 16384,
    DNNL_ARG_SRC_1 = 2
};

typedef union {
    char at[1024];
    void *align;
} dnnl_md; /* 696 in 2.6 */
typedef union {
    char at[16384];
    void *align;
} dnnl_op; /* 5976 */
typedef struct {
    int arg;
    void *memory;
} onednn_arg;
typedef struct {
    int major, minor, patch;
} onednn_version;

/* Columns: name, parameters.  All but version give a status, 0 for success. */
#define DNNL_FUNCTIONS(X) \
    X(engine_create, (void **e, int kind, size_t index)) \
    X(engine_destroy, (void *e)) \
    X(stream_create, (void **s, void *e, unsigned flags)) \
    X(stream_destroy, (void *s)) \
    X(stream_wait, (void *s)) \
    X(memory_desc_init_by_strides, \
      (dnnl_md * d, int n, const int64_t *dim, int type, \
       const int64_t *stride)) \
    X(memory_desc_init_by_tag, \
      (dnnl_md * d, int n, const int64_t *dim, int type, int tag)) \
    X(memory_desc_equal, (const void *a, const void *b)) \
    X(memory_create, (void **m, const void *desc, void *e, void *p)) \
    X(memory_set_data_handle, (void *m, void *p)) \
    X(memory_destroy, (void *m)) \
    X(post_ops_create, (void **p)) \
    X(post_ops_destroy, (void *p)) \
    X(post_ops_append_sum, (void *p, float scale)) \
    X(post_ops_append_eltwise, \
      (void *p, float scale, int alg, float alpha, float beta)) \
    X(post_ops_append_binary, (void *p, int alg, const dnnl_md *d)) \
    X(primitive_attr_create, (void **a)) \
    X(primitive_attr_destroy, (void *a)) \
    X(primitive_attr_set_post_ops, (void *a, void *p)) \
    X(primitive_attr_set_scratchpad_mode, (void *a, int mode)) \
    X(matmul_desc_init, \
      (dnnl_op * d, const dnnl_md *src, const dnnl_md *weights, \
       const dnnl_md *bias, const dnnl_md *dst)) \
    X(dilated_convolution_forward_desc_init, \
      (dnnl_op * d, int prop, int alg, const dnnl_md *src, \
       const dnnl_md *weights, const dnnl_md *bias, \
       const dnnl_md *dst, const int64_t *stride, const int64_t *dilate, \
       const int64_t *low, const int64_t *high)) \
    X(dilated_convolution_backward_data_desc_init, \
      (dnnl_op * d, int alg, const dnnl_md *src, \
       const dnnl_md *weights, const dnnl_md *dst, \
       const int64_t *stride, const int64_t *dilate, const int64_t *low, \
       const int64_t *high)) \
    X(dilated_convolution_backward_weights_desc_init, \
      (dnnl_op * d, int alg, const dnnl_md *src, \
       const dnnl_md *weights, const dnnl_md *bias, \
       const dnnl_md *dst, const int64_t *stride, const int64_t *dilate, \
       const int64_t *low, const int64_t *high)) \
    X(primitive_desc_create, \
      (void **p, const dnnl_op *d, void *attr, void *engine, void *hint)) \
    X(primitive_desc_destroy, (void *p)) \
    X(primitive_create, (void **p, void *desc)) \
    X(primitive_destroy, (void *p)) \
    X(primitive_execute, (void *p, void *stream, int n, const onednn_arg *a)) \
    X(reorder_primitive_desc_create, (void **p, const void *from, void *fe, \
                                      const void *to, void *te, void *attr))

/* One operand: in the caller's layout, and in the primitive's where that is
 * another; then `way` reorders (in, or out for the result). */
typedef struct {
    int arg;
    void *user, *own, *way;
    void *back; /* of a result that is added to: in, before */
    size_t at, bytes; /* of own, in the workspace */
} onednn_operand;

enum { ONEDNN_OPERANDS = 4 }; /* two inputs, bias, result */
typedef struct {
    uint64_t hash;
    int lib, nattr;
    int64_t *attr;
    void *prim, *scratch;
    onednn_operand op[ONEDNN_OPERANDS];
    int nop;               /* thunk order, but without the add */
    int post_arg;          /* bias that is a post-op; 0: a proper one */
    bool add;              /* summed into the result */
    size_t result_bytes, scratch_at, work;
} onednn_call;

struct xpu_lib {
    void *handle, *engine, *stream;
    char version[64];
    int nthread;
    pid_t owner;
    pthread_mutex_t lock;
    void (*set_threads)(int);
    const onednn_version *(*get_version)(void);
    size_t (*desc_size)(const void *);
    const void *(*query_md)(void *, int what, int index);
#define X(name, params) int(*name) params;
    DNNL_FUNCTIONS(X)
#undef X
    onednn_call *at;
    int n, cap;
    char *work;
    size_t work_bytes;
};

/* What a call is made of, as either kind fills it in; the arrays hold two
 * inputs, bias, result. */
typedef struct {
    dnnl_md user[ONEDNN_OPERANDS]; /* in the caller's layout */
    int arg[ONEDNN_OPERANDS];
    int query[ONEDNN_OPERANDS]; /* 0: the user's layout */
    bool bias, add;
    int64_t activation;
    double alpha, beta;
    dnnl_op op;
    void *hint; /* a forward primitive_desc */
} onednn_recipe;

/* Opens libdnnl.so.2 into l, or says in l->version why not. */
void xpu_onednn_open(xpu_lib *l);
int xpu_onednn_type(int64_t t); /* theirs for an sd_dtype; 0: none */
double xpu_onednn_real(int64_t bits);
sd_status xpu_onednn_refused(int e, const char *what); /* their status */
/* The primitive and its operands, from the recipe. */
sd_status xpu_onednn_build(xpu_lib *l, onednn_call *c, onednn_recipe *r,
                           const char *what);
sd_status xpu_onednn_matmul(xpu_lib *l, onednn_call *c, const int64_t *attr);
sd_status xpu_onednn_conv(xpu_lib *l, onednn_call *c, const int64_t *attr);
/* Multiplications of a call: how many threads it is worth. */
double xpu_onednn_matmul_work(const int64_t *attr);
double xpu_onednn_conv_work(const int64_t *attr);

#endif
