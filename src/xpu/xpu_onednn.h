/* oneDNN's C API as far as we use it, in versions 2 and 3, and what the files
 * that use it share.  What differs between the two is a table of ours
 * (onednn_way); descriptors of memory are ours to destroy in both. */
#ifndef XPU_ONEDNN_H
#define XPU_ONEDNN_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "xpu_engine.h"

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
    DNNL_ARG_DIFF_WEIGHTS = 161
};
enum { DNNL_RUNTIME_OMP = 2 }; /* of a version's cpu_runtime */
enum { DNNL_ISA_VNNI = 0x40 }; /* AVX-512's, of the instructions it uses */

typedef struct onednn_md onednn_md; /* theirs: a descriptor of memory */
typedef struct {
    int arg;
    void *memory;
} onednn_arg;
typedef struct {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime, gpu_runtime;
} onednn_version;

/* Columns: name, parameters.  All but version give a status, 0 for success. */
#define DNNL_FUNCTIONS(X) \
    X(engine_create, (void **e, int kind, size_t index)) \
    X(engine_destroy, (void *e)) \
    X(stream_create, (void **s, void *e, unsigned flags)) \
    X(stream_destroy, (void *s)) \
    X(stream_wait, (void *s)) \
    X(memory_desc_equal, (const onednn_md *a, const onednn_md *b)) \
    X(memory_create, (void **m, const onednn_md *desc, void *e, void *p)) \
    X(memory_set_data_handle, (void *m, void *p)) \
    X(memory_destroy, (void *m)) \
    X(post_ops_create, (void **p)) \
    X(post_ops_destroy, (void *p)) \
    X(primitive_attr_create, (void **a)) \
    X(primitive_attr_destroy, (void *a)) \
    X(primitive_attr_set_post_ops, (void *a, void *p)) \
    X(primitive_attr_set_scratchpad_mode, (void *a, int mode)) \
    X(primitive_desc_destroy, (void *p)) \
    X(primitive_create, (void **p, void *desc)) \
    X(primitive_destroy, (void *p)) \
    X(primitive_execute, (void *p, void *stream, int n, const onednn_arg *a)) \
    X(reorder_primitive_desc_create, \
      (void **p, const onednn_md *from, void *fe, const onednn_md *to, \
       void *te, void *attr))

typedef union {
    char at[1024];
    void *align;
} dnnl2_md; /* 696 bytes in 2.6 */
typedef union {
    char at[16384];
    void *align;
} dnnl2_op; /* 5976 */

/* Version 2 fills descriptors that the caller has room for. */
#define DNNL2_FUNCTIONS(X) \
    X(memory_desc_init_by_strides, \
      (dnnl2_md * d, int n, const int64_t *dim, int type, \
       const int64_t *stride)) \
    X(memory_desc_init_by_tag, \
      (dnnl2_md * d, int n, const int64_t *dim, int type, int tag)) \
    X(post_ops_append_sum, (void *p, float scale)) \
    X(post_ops_append_eltwise, \
      (void *p, float scale, int alg, float alpha, float beta)) \
    X(matmul_desc_init, \
      (dnnl2_op * d, const onednn_md *src, const onednn_md *weights, \
       const onednn_md *bias, const onednn_md *dst)) \
    X(dilated_convolution_forward_desc_init, \
      (dnnl2_op * d, int prop, int alg, const onednn_md *src, \
       const onednn_md *weights, const onednn_md *bias, const onednn_md *dst, \
       const int64_t *stride, const int64_t *dilate, const int64_t *low, \
       const int64_t *high)) \
    X(dilated_convolution_backward_data_desc_init, \
      (dnnl2_op * d, int alg, const onednn_md *src, const onednn_md *weights, \
       const onednn_md *dst, const int64_t *stride, const int64_t *dilate, \
       const int64_t *low, const int64_t *high)) \
    X(dilated_convolution_backward_weights_desc_init, \
      (dnnl2_op * d, int alg, const onednn_md *src, const onednn_md *weights, \
       const onednn_md *bias, const onednn_md *dst, const int64_t *stride, \
       const int64_t *dilate, const int64_t *low, const int64_t *high)) \
    X(primitive_desc_create, \
      (void **p, const dnnl2_op *d, void *attr, void *engine, void *hint))

/* Version 3 makes them, and goes to a primitive in one step. */
#define DNNL3_FUNCTIONS(X) \
    X(memory_desc_create_with_strides, \
      (onednn_md * *d, int n, const int64_t *dim, int type, \
       const int64_t *stride)) \
    X(memory_desc_create_with_tag, \
      (onednn_md * *d, int n, const int64_t *dim, int type, int tag)) \
    X(memory_desc_destroy, (onednn_md * d)) \
    X(post_ops_append_sum, (void *p, float scale, int32_t zero, int type)) \
    X(post_ops_append_eltwise, (void *p, int alg, float alpha, float beta)) \
    X(matmul_primitive_desc_create, \
      (void **p, void *e, const onednn_md *src, const onednn_md *weights, \
       const onednn_md *bias, const onednn_md *dst, void *attr)) \
    X(convolution_forward_primitive_desc_create, \
      (void **p, void *e, int prop, int alg, const onednn_md *src, \
       const onednn_md *weights, const onednn_md *bias, const onednn_md *dst, \
       const int64_t *stride, const int64_t *dilate, const int64_t *low, \
       const int64_t *high, void *attr)) \
    X(convolution_backward_data_primitive_desc_create, \
      (void **p, void *e, int alg, const onednn_md *src, \
       const onednn_md *weights, const onednn_md *dst, const int64_t *stride, \
       const int64_t *dilate, const int64_t *low, const int64_t *high, \
       void *hint, void *attr)) \
    X(convolution_backward_weights_primitive_desc_create, \
      (void **p, void *e, int alg, const onednn_md *src, \
       const onednn_md *weights, const onednn_md *bias, const onednn_md *dst, \
       const int64_t *stride, const int64_t *dilate, const int64_t *low, \
       const int64_t *high, void *hint, void *attr))

/* One operand: in the caller's layout, and in the primitive's where that is
 * another; then `way` reorders (in, or out for the result). */
typedef struct {
    int arg, slot; /* of the thunk's slices */
    void *user, *own, *way;
    void *back; /* of a result that is added to: in, before */
    size_t at, bytes; /* of own, in the workspace */
} onednn_operand;

enum { ONEDNN_OPERANDS = 4 }; /* two inputs, bias, result */
typedef struct onednn_winograd onednn_winograd;
typedef struct {
    libcall call; /* what it is for */
    uint64_t hash; /* of its words */
    void *prim, *scratch;
    onednn_operand op[ONEDNN_OPERANDS];
    int nop;     /* the result last */
    int add;     /* slot of what is added into the result, or -1 */
    size_t result_bytes, scratch_at, work;
    /* Does it instead where this is set and the results turn out finite; prim
     * and its operands are made when they first do not. */
    onednn_winograd *winograd;
} onednn_call;

typedef struct onednn onednn;

enum { ROLE_SRC, ROLE_WEIGHTS, ROLE_BIAS, ROLE_DST, ROLES };

/* What a call is made of, as either kind fills it in. */
typedef struct {
    onednn_md *user[ROLES]; /* in the caller's layout: owned; of the forward
                               operation */
    onednn_md *want[ROLES]; /* owned; what the primitive is asked for where it
                               is to choose a layout, else NULL: user's */
    libcall_direction direction;
    bool window; /* a convolution: */
    int64_t stride[3], dilate[3], low[3], high[3];
    int bias, add; /* slots, or -1 */
    int result;
    double alpha, beta;
} onednn_recipe;

/* What versions 2 and 3 have in other forms: statuses are the library's. */
typedef struct {
    bool (*bind)(onednn *l); /* the functions of that version alone */
    int (*md_of_strides)(onednn *l, onednn_md **out, int n, const int64_t *dim,
                         int type, const int64_t *stride);
    int (*md_of_any)(onednn *l, onednn_md **out, int n, const int64_t *dim,
                     int type);
    void (*md_destroy)(onednn *l, onednn_md *md); /* takes NULL */
    int (*append_scale)(onednn *l, void *post, float alpha);
    int (*append_sum)(onednn *l, void *post, float scale);
    /* md: what each role is described by; hint: a forward primitive_desc */
    int (*matmul)(onednn *l, void **pd, const onednn_md *const *md, void *attr);
    int (*forward)(onednn *l, void **pd, int prop, const onednn_recipe *r,
                   const onednn_md *const *md, void *attr);
    int (*backward)(onednn *l, void **pd, const onednn_recipe *r,
                    const onednn_md *const *md, void *hint, void *attr);
} onednn_way;
extern const onednn_way onednn_v2, onednn_v3;

/* The threads of OpenMP that work for the thread that called last.  Atomic, as
 * they write here themselves, and wait for each other in code of OpenMP's. */
enum { ONEDNN_PLACED = 15 };
typedef struct {
    _Atomic pid_t caller, thread[ONEDNN_PLACED];
    _Atomic int n;
    int barred; /* the processor on which none of them runs, or -1 */
} onednn_place;

struct onednn {
    const onednn_way *way;
    void *handle, *engine, *stream;
    sd_pool *pool; /* or NULL */
    int nthread;
    /* Without VNNI it adds pairs of products of s8 in 16 bits, which saturate
     * (127 * 127 twice is 32,258, -128 * -128 twice is one too many). */
    bool sums_bytes;
    pid_t owner;
    pthread_mutex_t lock;
    void (*set_threads)(int);
    /* OpenMP's, or NULL */
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
    int (*is_bound)(void);
    onednn_place place;
    const onednn_version *(*get_version)(void);
    int (*get_isa)(void); /* a mask */
    size_t (*desc_size)(const onednn_md *);
    const onednn_md *(*query_md)(void *, int what, int index);
#define X(name, params) int(*name) params;
    DNNL_FUNCTIONS(X)
    struct {
        DNNL2_FUNCTIONS(X)
    } v2;
    struct {
        DNNL3_FUNCTIONS(X)
    } v3;
#undef X
    onednn_call *at;
    int n, cap;
    char *work;
    size_t work_bytes;
};

/* Opens the row's library into l; false: `said` says why not. */
bool onednn_open(onednn *l, const xpu_engine_row *row, char *said);
/* Binds `name` of l's library. */
void *onednn_symbol(const onednn *l, const char *name);
int onednn_type(sd_dtype t); /* theirs; 0: none */
sd_status onednn_refused(int e, const char *what); /* their status */
/* The primitive and its operands, from the recipe, whose descriptors it
 * destroys. */
sd_status onednn_build(onednn *l, onednn_call *c, onednn_recipe *r,
                       const char *what);
void onednn_recipe_finish(onednn *l, onednn_recipe *r);
void onednn_place_threads(onednn *l); /* away from the caller's processor */
sd_status onednn_work(onednn *l, size_t bytes); /* at least so much of it */
sd_status onednn_matmul(onednn *l, onednn_call *c);
sd_status onednn_conv(onednn *l, onednn_call *c);

bool onednn_winograd_fits(const libcall_conv *c);
sd_status onednn_winograd_make(const onednn *l, const libcall_conv *c,
                               onednn_winograd **out);
void onednn_winograd_drop(onednn_winograd *w); /* takes NULL */
/* *done false: a result is not finite, and nothing that it reads has changed. */
sd_status onednn_winograd_run(onednn *l, const onednn_winograd *w,
                              void *const *ptr, bool *done);

#endif
