/* oneDNN on the host: libdnnl.so.2, opened at run time.  Its C API is declared
 * here, as far as we use it: descriptors are filled by the library through
 * pointers, so opaque storage that is large enough will do.
 *
 * A call becomes a primitive, kept by its attributes.  Where the library is
 * faster in layouts of its own (convolutions), operands are reordered into a
 * workspace that all calls share; this is why they are serialised.
 *
 * Its threads are OpenMP's.  They do not survive a fork: in a child calls run
 * on one thread. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "xpu_lib.h"

enum { MAX_CALLS = 1024, SMALL_WORK = 1 << 24 };
enum {
    OF_ANY = 1,
    IS_CPU = 1,
    STREAM_DEFAULT = 1,
    SCRATCH_USER = 1,
    FORWARD = 64 /* training: what a backward pass takes as its hint */,
    INFERENCE = 96,
    DIRECT = 1
};
enum {
    RELU = 31,
    TANH = 47,
    LINEAR = 127,
    LOGISTIC = 175,
    BINARY_ADD = 131056
};
enum {
    SRC_MD = 129,
    DIFF_SRC_MD = 130,
    WEIGHTS_MD = 131,
    DIFF_WEIGHTS_MD = 132,
    DST_MD = 133,
    DIFF_DST_MD = 134,
    SCRATCH_MD = 136
};
enum {
    ARG_SRC = 1,
    ARG_DST = 17,
    ARG_WEIGHTS = 33,
    ARG_BIAS = 41,
    ARG_SCRATCH = 80,
    ARG_DIFF_SRC = 129,
    ARG_DIFF_DST = 145,
    ARG_DIFF_WEIGHTS = 161,
    ARG_POST_OP = 16384,
    ARG_SRC_1 = 2
};

typedef union {
    char at[1024];
    void *align;
} memory_desc; /* 696 in 2.6 */
typedef union {
    char at[16384];
    void *align;
} op_desc;    /* 5976 */
typedef struct {
    int arg;
    void *memory;
} exec_arg;
typedef struct {
    int major, minor, patch;
} version;

/* Columns: name, parameters.  All but version give a status, 0 for success. */
#define DNNL_FUNCTIONS(X) \
    X(engine_create, (void **e, int kind, size_t index)) \
    X(engine_destroy, (void *e)) \
    X(stream_create, (void **s, void *e, unsigned flags)) \
    X(stream_destroy, (void *s)) \
    X(stream_wait, (void *s)) \
    X(memory_desc_init_by_strides, \
      (memory_desc * d, int n, const int64_t *dim, int type, \
       const int64_t *stride)) \
    X(memory_desc_init_by_tag, \
      (memory_desc * d, int n, const int64_t *dim, int type, int tag)) \
    X(memory_desc_equal, (const void *a, const void *b)) \
    X(memory_create, (void **m, const void *desc, void *e, void *p)) \
    X(memory_set_data_handle, (void *m, void *p)) \
    X(memory_destroy, (void *m)) \
    X(post_ops_create, (void **p)) \
    X(post_ops_destroy, (void *p)) \
    X(post_ops_append_sum, (void *p, float scale)) \
    X(post_ops_append_eltwise, \
      (void *p, float scale, int alg, float alpha, float beta)) \
    X(post_ops_append_binary, (void *p, int alg, const memory_desc *d)) \
    X(primitive_attr_create, (void **a)) \
    X(primitive_attr_destroy, (void *a)) \
    X(primitive_attr_set_post_ops, (void *a, void *p)) \
    X(primitive_attr_set_scratchpad_mode, (void *a, int mode)) \
    X(matmul_desc_init, \
      (op_desc * d, const memory_desc *src, const memory_desc *weights, \
       const memory_desc *bias, const memory_desc *dst)) \
    X(dilated_convolution_forward_desc_init, \
      (op_desc * d, int prop, int alg, const memory_desc *src, \
       const memory_desc *weights, const memory_desc *bias, \
       const memory_desc *dst, const int64_t *stride, const int64_t *dilate, \
       const int64_t *low, const int64_t *high)) \
    X(dilated_convolution_backward_data_desc_init, \
      (op_desc * d, int alg, const memory_desc *src, \
       const memory_desc *weights, const memory_desc *dst, \
       const int64_t *stride, const int64_t *dilate, const int64_t *low, \
       const int64_t *high)) \
    X(dilated_convolution_backward_weights_desc_init, \
      (op_desc * d, int alg, const memory_desc *src, \
       const memory_desc *weights, const memory_desc *bias, \
       const memory_desc *dst, const int64_t *stride, const int64_t *dilate, \
       const int64_t *low, const int64_t *high)) \
    X(primitive_desc_create, \
      (void **p, const op_desc *d, void *attr, void *engine, void *hint)) \
    X(primitive_desc_destroy, (void *p)) \
    X(primitive_create, (void **p, void *desc)) \
    X(primitive_destroy, (void *p)) \
    X(primitive_execute, (void *p, void *stream, int n, const exec_arg *a)) \
    X(reorder_primitive_desc_create, (void **p, const void *from, void *fe, \
                                      const void *to, void *te, void *attr))

/* One operand: in the caller's layout, and in the primitive's where that is
 * another; then `way` reorders (in, or out for the result). */
typedef struct {
    int arg;
    void *user, *own, *way;
    void *back; /* of a result that is added to: in, before */
    size_t at, bytes; /* of own, in the workspace */
} operand;

enum { OPERANDS = 4 }; /* two inputs, bias, result */
typedef struct {
    uint64_t hash;
    int lib, nattr;
    int64_t *attr;
    void *prim, *scratch;
    operand op[OPERANDS];
    int nop;               /* thunk order, but without the add */
    int post_arg;          /* bias that is a post-op; 0: a proper one */
    bool add;              /* summed into the result */
    size_t result_bytes, scratch_at, work;
} call;

struct xpu_lib {
    void *handle, *engine, *stream;
    char version[64];
    int nthread;
    pid_t owner;
    pthread_mutex_t lock;
    void (*set_threads)(int);
    const version *(*get_version)(void);
    size_t (*desc_size)(const void *);
    const void *(*query_md)(void *, int what, int index);
#define X(name, params) int(*name) params;
    DNNL_FUNCTIONS(X)
#undef X
    call *at;
    int n, cap;
    char *work;
    size_t work_bytes;
};

/* ---- opening ---- */

static bool bind(xpu_lib *l)
{
    bool ok = true;

#define X(name, params) \
    *(void **)&l->name = dlsym(l->handle, "dnnl_" #name); \
    ok &= l->name != NULL;
    DNNL_FUNCTIONS(X)
#undef X
    *(void **)&l->get_version = dlsym(l->handle, "dnnl_version");
    *(void **)&l->desc_size = dlsym(l->handle, "dnnl_memory_desc_get_size");
    *(void **)&l->query_md = dlsym(l->handle, "dnnl_primitive_desc_query_md");
    *(void **)&l->set_threads = dlsym(l->handle, "omp_set_num_threads");
    return ok && l->get_version && l->desc_size && l->query_md;
}

/* OpenMP's threads spin for a while after each call, on cores that our kernels
 * want; gcc's runtime reads how long when it is loaded. */
static void *open_library(const char *name)
{
    void *loaded = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD), *h;
    bool ours =
        !loaded && !getenv("GOMP_SPINCOUNT") && !getenv("OMP_WAIT_POLICY");

    if (loaded)
        dlclose(loaded);
    if (ours)
        setenv("GOMP_SPINCOUNT", "2000", 0);
    h = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (ours)
        unsetenv("GOMP_SPINCOUNT");
    return h;
}

static void try_onednn(xpu_lib *l)
{
    const version *v;

    if (!(l->handle = open_library("libdnnl.so.2"))) {
        snprintf(l->version, sizeof l->version, "no libdnnl.so.2");
        return;
    }
    if (bind(l)) {
        v = l->get_version();
        snprintf(l->version, sizeof l->version, "onednn %d.%d.%d", v->major,
                 v->minor, v->patch);
        if (!l->engine_create(&l->engine, IS_CPU, 0) &&
            !l->stream_create(&l->stream, l->engine, STREAM_DEFAULT))
            return;
        if (l->engine)
            l->engine_destroy(l->engine);
        l->engine = NULL;
    }
    snprintf(l->version, sizeof l->version, "a libdnnl.so.2 without its API");
    dlclose(l->handle);
    l->handle = NULL;
}

sd_status xpu_lib_open(int nthread, xpu_lib **out)
{
    xpu_lib *l = calloc(1, sizeof *l);

    if (!l)
        return sd_no_memory(sizeof *l);
    l->nthread = nthread;
    l->owner = getpid();
    pthread_mutex_init(&l->lock, NULL);
    try_onednn(l);
    *out = l;
    return NULL;
}

uint64_t xpu_lib_present(const xpu_lib *l)
{
    return l->handle ? DEVICE_LIB_ONEDNN : 0;
}

const char *xpu_lib_version(const xpu_lib *l)
{
    return l->version;
}

static void drop_call(xpu_lib *l, call *c)
{
    for (int i = 0; i < OPERANDS; i++) {
        if (c->op[i].user)
            l->memory_destroy(c->op[i].user);
        if (c->op[i].own)
            l->memory_destroy(c->op[i].own);
        if (c->op[i].way)
            l->primitive_destroy(c->op[i].way);
        if (c->op[i].back)
            l->primitive_destroy(c->op[i].back);
    }
    if (c->scratch)
        l->memory_destroy(c->scratch);
    if (c->prim)
        l->primitive_destroy(c->prim);
    free(c->attr);
    memset(c, 0, sizeof *c);
}

void xpu_lib_close(xpu_lib *l)
{
    if (!l)
        return;
    for (int i = 0; i < l->n; i++)
        drop_call(l, &l->at[i]);
    if (l->stream)
        l->stream_destroy(l->stream);
    if (l->engine)
        l->engine_destroy(l->engine);
    /* the library stays: its threads may still be in it */
    free(l->at);
    free(l->work);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* ---- making a call ---- */

static const char *reason(int e)
{
    static const char *const text[] = {"success",           "out of memory",
                                       "invalid arguments", "unimplemented",
                                       "no implementation", "runtime error",
                                       "not required"};

    return e >= 0 && e < (int)SD_COUNTOF(text) ? text[e] : "unknown error";
}

static sd_status refused(int e, const char *what)
{
    return sd_error(e == 1             ? SD_EXHAUSTED
                    : e == 3 || e == 4 ? SD_UNIMPLEMENTED
                                       : SD_INTERNAL,
                    "oneDNN: %s: %s", what, reason(e));
}

static int type_of(int64_t t)
{
    switch ((sd_dtype)t) {
    case SD_F16:
        return 1;
    case SD_BF16:
        return 2;
    case SD_F32:
        return 3;
    case SD_S32:
        return 4;
    case SD_S8:
        return 5;
    case SD_U8:
        return 6;
    default:
        return 0;
    }
}

static double real_of(int64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

/* What a call is made of, as either kind fills it in; the arrays hold two
 * inputs, bias, result. */
typedef struct {
    memory_desc user[OPERANDS]; /* in the caller's layout */
    int arg[OPERANDS], query[OPERANDS]; /* no query: the user's layout */
    bool bias, add;
    int64_t activation;
    double alpha, beta;
    op_desc op;
    void *hint; /* a forward primitive_desc */
} recipe;

/* Product times alpha, plus bias, plus beta times add, then the activation. */
static int make_attr(xpu_lib *l, const recipe *r, void **out, int *post_arg)
{
    void *attr = NULL, *post = NULL;
    int n = 0, e, alg = 0;

    *post_arg = 0;
    if ((e = l->primitive_attr_create(&attr)) ||
        (e = l->post_ops_create(&post)) ||
        (e = l->primitive_attr_set_scratchpad_mode(attr, SCRATCH_USER)))
        goto done;
    if (r->alpha != 1) {
        if ((e = l->post_ops_append_eltwise(post, 1, LINEAR, (float)r->alpha,
                                            0)))
            goto done;
        n++;
        if (r->bias) { /* after the factor, so not a bias of theirs */
            if ((e = l->post_ops_append_binary(post, BINARY_ADD, &r->user[2])))
                goto done;
            *post_arg = ARG_POST_OP * (n + 1) | ARG_SRC_1;
            n++;
        }
    }
    if (r->add && (e = l->post_ops_append_sum(post, (float)r->beta)))
        goto done;
    switch (r->activation) {
    case 0:
        break;
    case 1:
        alg = LOGISTIC;
        break;
    case 2:
        alg = RELU;
        break;
    case 5:
        alg = TANH;
        break;
    default:
        e = 3;
        goto done;
    }
    if (alg && (e = l->post_ops_append_eltwise(post, 1, alg, 0, 0)))
        goto done;
    e = l->primitive_attr_set_post_ops(attr, post);
done:
    if (post)
        l->post_ops_destroy(post);
    if (e && attr)
        l->primitive_attr_destroy(attr);
    else
        *out = attr;
    return e;
}

/* User memory, and where the primitive wants another layout a place in the
 * workspace and the reorder between the two. */
static int make_operand(xpu_lib *l, call *c, operand *o, int arg,
                        const memory_desc *user, const void *own, bool result)
{
    void *pd = NULL;
    int e;

    o->arg = arg;
    if ((e = l->memory_create(&o->user, user, l->engine, NULL)))
        return e;
    if (!own || l->memory_desc_equal(user, own))
        return 0;
    o->bytes = l->desc_size(own);
    o->at = c->work;
    c->work += (o->bytes + 63) & ~(size_t)63;
    if ((e = l->memory_create(&o->own, own, l->engine, NULL)))
        return e;
    e = result ? l->reorder_primitive_desc_create(&pd, own, l->engine, user,
                                                  l->engine, NULL)
               : l->reorder_primitive_desc_create(&pd, user, l->engine, own,
                                                  l->engine, NULL);
    if (!e)
        e = l->primitive_create(&o->way, pd);
    if (pd)
        l->primitive_desc_destroy(pd);
    pd = NULL;
    if (!e && result && c->add &&
        !(e = l->reorder_primitive_desc_create(&pd, user, l->engine, own,
                                               l->engine, NULL))) {
        e = l->primitive_create(&o->back, pd);
        l->primitive_desc_destroy(pd);
    }
    return e;
}

static int finish_call(xpu_lib *l, call *c, const recipe *r, void *pd)
{
    const void *scratch = l->query_md(pd, SCRATCH_MD, 0);
    int e;

    c->add = r->add;
    for (int i = 0; i < OPERANDS; i++) {
        const void *own = NULL;

        if (i == 2 && !r->bias)
            continue;
        if (i != 2 && r->query[i])
            own = l->query_md(pd, r->query[i], 0);
        if ((e = make_operand(l, c, &c->op[c->nop++],
                              i == 2 && c->post_arg ? c->post_arg : r->arg[i],
                              &r->user[i], own, i == 3)))
            return e;
    }
    c->result_bytes = l->desc_size(&r->user[3]);
    if (scratch && l->desc_size(scratch)) {
        if ((e = l->memory_create(&c->scratch, scratch, l->engine, NULL)))
            return e;
        c->scratch_at = c->work;
        c->work += (l->desc_size(scratch) + 63) & ~(size_t)63;
    }
    return l->primitive_create(&c->prim, pd);
}

static sd_status build(xpu_lib *l, call *c, recipe *r, const char *what)
{
    void *attr = NULL, *pd = NULL;
    int e;

    if ((e = make_attr(l, r, &attr, &c->post_arg)))
        return refused(e, what);
    e = l->primitive_desc_create(&pd, &r->op, attr, l->engine, r->hint);
    l->primitive_attr_destroy(attr);
    if (!e)
        e = finish_call(l, c, r, pd);
    if (pd)
        l->primitive_desc_destroy(pd);
    return e ? refused(e, what) : NULL;
}

/* ---- matmul ---- */

static sd_status make_matmul(xpu_lib *l, call *c, const int64_t *a)
{
    int64_t b = a[3], m = a[4], n = a[5], k = a[6];
    int skip = b == 1, nd = 3 - skip, e = 0;
    int64_t dim[4][3] = {{b, m, k}, {b, k, n}, {1, 1, n}, {b, m, n}};
    int64_t stride[4][3] = {{m * k, a[7] ? 1 : k, a[7] ? m : 1},
                            {k * n, a[8] ? 1 : n, a[8] ? k : 1},
                            {n, n, 1},
                            {m * n, n, 1}};
    int64_t type[4] = {a[0], a[1], a[2], a[2]};
    recipe r = {.arg = {ARG_SRC, ARG_WEIGHTS, ARG_BIAS, ARG_DST},
                .bias = a[9],
                .add = a[10],
                .activation = a[11],
                .alpha = real_of(a[12]),
                .beta = real_of(a[13])};

    for (int i = 0; i < OPERANDS && !e; i++) {
        if (!type_of(type[i]))
            return sd_error(SD_UNIMPLEMENTED, "oneDNN matmul of %s",
                            sd_dtype_name((sd_dtype)type[i]));
        e = l->memory_desc_init_by_strides(&r.user[i], nd, dim[i] + skip,
                                           type_of(type[i]), stride[i] + skip);
    }
    if (!e)
        e = l->matmul_desc_init(&r.op, &r.user[0], &r.user[1],
                                r.bias && r.alpha == 1 ? &r.user[2] : NULL,
                                &r.user[3]);
    if (e)
        return refused(e, "matmul");
    return build(l, c, &r, "matmul");
}

/* ---- convolution ---- */

enum {
    C_NSPATIAL = 3,
    C_BATCH,
    C_GROUPS,
    C_CI,
    C_CO,
    C_IN = 8,
    C_KERNEL = 11,
    C_OUT = 14,
    C_STRIDE = 17,
    C_DILATION = 20,
    C_LOW = 23,
    C_HIGH = 26,
    C_IN_STEP = 29,
    C_KERNEL_STEP = 34,
    C_OUT_STEP = 39,
    C_BIAS = 44,
    C_ADD,
    C_ACTIVATION,
    C_ALPHA,
    C_DIRECTION
};
enum { X, K, BIAS, Y, ROLES }; /* of the forward convolution */

typedef struct {
    memory_desc user[ROLES], any[ROLES];
    int64_t stride[3], dilate[3], low[3], high[3];
} conv_form;

static int describe(xpu_lib *l, const int64_t *a, conv_form *f)
{
    int n = (int)a[C_NSPATIAL], g = a[C_GROUPS] > 1, e = 0;
    int64_t groups = a[C_GROUPS];
    int64_t ko = a[C_CO] / groups, ki = a[C_CI] / groups;
    int64_t dim[ROLES][6] = {{a[C_BATCH], a[C_CI]},
                             {groups, ko, ki},
                             {a[C_CO]},
                             {a[C_BATCH], a[C_CO]}};
    int64_t step[ROLES][6] = {
        {a[C_IN_STEP], a[C_IN_STEP + 1]},
        {a[C_KERNEL_STEP] * ko, a[C_KERNEL_STEP], a[C_KERNEL_STEP + 1]},
        {1},
        {a[C_OUT_STEP], a[C_OUT_STEP + 1]}};
    int type[ROLES] = {type_of(a[0]), type_of(a[1]), type_of(a[2]),
                       type_of(a[2])};

    for (int i = 0; i < n; i++) {
        dim[X][2 + i] = a[C_IN + i];
        dim[K][3 + i] = a[C_KERNEL + i];
        dim[Y][2 + i] = a[C_OUT + i];
        step[X][2 + i] = a[C_IN_STEP + 2 + i];
        step[K][3 + i] = a[C_KERNEL_STEP + 2 + i];
        step[Y][2 + i] = a[C_OUT_STEP + 2 + i];
        f->stride[i] = a[C_STRIDE + i];
        f->dilate[i] = a[C_DILATION + i] - 1;
        f->low[i] = a[C_LOW + i];
        f->high[i] = a[C_HIGH + i];
    }
    for (int i = 0; i < ROLES && !e; i++) {
        int skip = i == K && !g;
        int nd = i == BIAS ? 1 : i == K ? n + 2 + g : n + 2;

        if (!(e = l->memory_desc_init_by_strides(&f->user[i], nd, dim[i] + skip,
                                                 type[i], step[i] + skip)))
            e = l->memory_desc_init_by_tag(&f->any[i], nd, dim[i] + skip,
                                           type[i], OF_ANY);
    }
    return e;
}

static int forward_desc(xpu_lib *l, const conv_form *f, op_desc *op, int prop,
                        const memory_desc *x, const memory_desc *bias,
                        const memory_desc *y)
{
    return l->dilated_convolution_forward_desc_init(
        op, prop, DIRECT, x, &f->any[K], bias, y, f->stride, f->dilate, f->low,
        f->high);
}

/* The two inputs and the result of a direction, in thunk order. */
static void set_roles(recipe *r, const conv_form *f, int direction)
{
    static const struct {
        int role[3], arg[3], query[3];
    } table[3] = {
        {{X, K, Y},
         {ARG_SRC, ARG_WEIGHTS, ARG_DST},
         {SRC_MD, WEIGHTS_MD, DST_MD}},
        {{Y, K, X},
         {ARG_DIFF_DST, ARG_WEIGHTS, ARG_DIFF_SRC},
         {DIFF_DST_MD, WEIGHTS_MD, DIFF_SRC_MD}},
        {{X, Y, K},
         {ARG_SRC, ARG_DIFF_DST, ARG_DIFF_WEIGHTS},
         {SRC_MD, DIFF_DST_MD, DIFF_WEIGHTS_MD}},
    };

    for (int i = 0; i < 3; i++) {
        int at = i == 2 ? 3 : i;

        r->user[at] = f->user[table[direction].role[i]];
        r->arg[at] = table[direction].arg[i];
        r->query[at] = table[direction].query[i];
    }
    r->user[2] = f->user[BIAS];
    r->arg[2] = ARG_BIAS;
}

static int backward_desc(xpu_lib *l, const conv_form *f, int direction,
                         recipe *r)
{
    op_desc fwd;
    int e = forward_desc(l, f, &fwd, FORWARD, &f->any[X], NULL, &f->any[Y]);

    if (!e)
        e = l->primitive_desc_create(&r->hint, &fwd, NULL, l->engine, NULL);
    if (e)
        return e;
    if (direction == 1)
        return l->dilated_convolution_backward_data_desc_init(
            &r->op, DIRECT, &f->any[X], &f->any[K], &f->any[Y], f->stride,
            f->dilate, f->low, f->high);
    return l->dilated_convolution_backward_weights_desc_init(
        &r->op, DIRECT, &f->any[X], &f->any[K], NULL, &f->any[Y], f->stride,
        f->dilate, f->low, f->high);
}

/* Channels last stays as it is; other layouts the library may choose, and
 * reorders are ours.  Weights are always its choice. */
static sd_status make_conv(xpu_lib *l, call *c, const int64_t *a)
{
    int64_t dir = a[C_DIRECTION];
    recipe r = {.bias = a[C_BIAS],
                .add = a[C_ADD],
                .beta = 1,
                .activation = a[C_ACTIVATION],
                .alpha = real_of(a[C_ALPHA])};
    bool last = a[C_IN_STEP + 1] == 1 && a[C_OUT_STEP + 1] == 1;
    conv_form f = {0};
    sd_status st = NULL;
    int e;

    if (dir < 0 || dir > 2 || a[C_NSPATIAL] < 1 || a[C_NSPATIAL] > 3 ||
        a[C_GROUPS] < 1 || (r.bias && r.alpha != 1) || !type_of(a[0]) ||
        !type_of(a[1]) || !type_of(a[2]))
        return sd_error(SD_UNIMPLEMENTED,
                        "oneDNN convolution of %s, "
                        "direction %" PRId64,
                        sd_dtype_name((sd_dtype)a[0]), dir);
    if (!(e = describe(l, a, &f))) {
        set_roles(&r, &f, (int)dir);
        e = dir ? backward_desc(l, &f, (int)dir, &r)
                : forward_desc(l, &f, &r.op, INFERENCE,
                               last ? &f.user[X] : &f.any[X],
                               r.bias && r.alpha == 1 ? &f.user[BIAS] : NULL,
                               last ? &f.user[Y] : &f.any[Y]);
    }
    st = e ? refused(e, "convolution") : build(l, c, &r, "convolution");
    if (r.hint)
        l->primitive_desc_destroy(r.hint);
    return st;
}

/* ---- running ---- */

static sd_status make_call(xpu_lib *l, call *c, const thunk *t, uint64_t hash)
{
    sd_status st;

    memset(c, 0, sizeof *c);
    c->hash = hash;
    c->lib = t->lib;
    c->nattr = t->nattr;
    if (!(c->attr = malloc((size_t)t->nattr * sizeof *c->attr)))
        return sd_no_memory((size_t)t->nattr * sizeof *c->attr);
    memcpy(c->attr, t->attr, (size_t)t->nattr * sizeof *c->attr);
    st = t->lib == THUNK_LIB_MATMUL ? make_matmul(l, c, t->attr)
                                    : make_conv(l, c, t->attr);
    if (st)
        drop_call(l, c);
    return st;
}

static sd_status find_call(xpu_lib *l, const thunk *t, call **out)
{
    size_t bytes = (size_t)t->nattr * sizeof *t->attr;
    uint64_t hash = sd_hash(t->attr, bytes, (uint64_t)t->lib);
    sd_status st;

    for (int i = 0; i < l->n; i++) {
        call *c = &l->at[i];

        if (c->hash == hash && c->lib == t->lib && c->nattr == t->nattr &&
            !memcmp(c->attr, t->attr, bytes)) {
            *out = c;
            return NULL;
        }
    }
    if (l->n == MAX_CALLS) { /* starts afresh: programs come back one by one */
        for (int i = 0; i < l->n; i++)
            drop_call(l, &l->at[i]);
        l->n = 0;
    }
    if (l->n == l->cap) {
        int cap = l->cap ? 2 * l->cap : 16;
        call *at = realloc(l->at, (size_t)cap * sizeof *at);

        if (!at)
            return sd_no_memory((size_t)cap * sizeof *at);
        l->at = at;
        l->cap = cap;
    }
    if ((st = make_call(l, &l->at[l->n], t, hash)))
        return st;
    *out = &l->at[l->n++];
    return NULL;
}

static sd_status grow_work(xpu_lib *l, size_t bytes)
{
    char *p;

    if (bytes <= l->work_bytes)
        return NULL;
    if (!(p = aligned_alloc(64, (bytes + 63) & ~(size_t)63)))
        return sd_no_memory(bytes);
    free(l->work);
    l->work = p;
    l->work_bytes = bytes;
    return NULL;
}

static int reorder(xpu_lib *l, void *way, void *from, void *to)
{
    const exec_arg a[2] = {{ARG_SRC, from}, {ARG_DST, to}};

    return l->primitive_execute(way, l->stream, 2, a);
}

/* ptr: two inputs, bias, add, result; those that are. */
static int execute(xpu_lib *l, call *c, void *const *ptr, int narg)
{
    operand *res = &c->op[c->nop - 1];
    exec_arg a[OPERANDS + 1];
    void *result = ptr[narg - 1];
    int n = 0, e;

    if (c->add && ptr[narg - 2] != result)
        memcpy(result, ptr[narg - 2], c->result_bytes);
    for (int i = 0; i < c->nop; i++) {
        operand *o = &c->op[i];

        if ((e = l->memory_set_data_handle(o->user,
                                           o == res ? result : ptr[i])))
            return e;
        if (o->own && (e = l->memory_set_data_handle(o->own, l->work + o->at)))
            return e;
        if (o->own && o != res && (e = reorder(l, o->way, o->user, o->own)))
            return e;
        if (o->back && (e = reorder(l, o->back, o->user, o->own)))
            return e;
        a[n++] = (exec_arg){o->arg, o->own ? o->own : o->user};
    }
    if (c->scratch) {
        if ((e = l->memory_set_data_handle(c->scratch,
                                           l->work + c->scratch_at)))
            return e;
        a[n++] = (exec_arg){ARG_SCRATCH, c->scratch};
    }
    if ((e = l->primitive_execute(c->prim, l->stream, n, a)))
        return e;
    if (res->own && (e = reorder(l, res->way, res->own, res->user)))
        return e;
    return l->stream_wait(l->stream);
}

/* Small work is done sooner by one thread than others wake; by its shape
 * alone, for the same results in every run. */
static int threads_for(const xpu_lib *l, const thunk *t)
{
    const int64_t *a = t->attr;
    double work = 1;

    if (t->lib == THUNK_LIB_MATMUL)
        work = (double)a[3] * (double)a[4] * (double)a[5] * (double)a[6];
    else
        for (int i = 0; i < 3; i++)
            work *= (double)a[C_OUT + i] * (double)a[C_KERNEL + i];
    if (t->lib == THUNK_LIB_CONV)
        work *= (double)a[C_BATCH] * (double)a[C_CI] * (double)a[C_CO] /
                (double)SD_MAX(a[C_GROUPS], 1);
    return work < SMALL_WORK ? 1 : l->nthread;
}

/* OpenMP's threads are not in a child, and primitives remember how many they
 * were made for. */
static void notice_fork(xpu_lib *l)
{
    if (getpid() == l->owner)
        return;
    l->owner = getpid();
    l->nthread = 1;
    for (int i = 0; i < l->n; i++)
        drop_call(l, &l->at[i]);
    l->n = 0;
}

sd_status xpu_lib_run(xpu_lib *l, const thunk *t, void *const *ptr)
{
    sd_status st;
    call *c;
    int e;

    if (!l || !l->handle)
        return sd_error(SD_UNIMPLEMENTED, "%s: %s",
                        thunk_lib_table[t->lib].name,
                        l ? l->version : "no libraries");
    if (t->lib < 0 || t->lib >= THUNK_LIB_COUNT ||
        t->nattr != thunk_lib_table[t->lib].nattr)
        return sd_error(SD_INVALID, "%s: %d attributes", t->name, t->nattr);
    pthread_mutex_lock(&l->lock);
    notice_fork(l);
    if (l->set_threads)
        l->set_threads(threads_for(l, t));
    st = find_call(l, t, &c);
    if (!st && t->narg != c->nop + c->add)
        st =
            sd_error(SD_INVALID, "%d slices, not %d", t->narg, c->nop + c->add);
    if (!st)
        st = grow_work(l, c->work);
    if (!st && (e = execute(l, c, ptr, t->narg)))
        st = refused(e, "execution");
    pthread_mutex_unlock(&l->lock);
    return sd_note(st, "%s", t->name);
}
