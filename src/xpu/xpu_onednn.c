/* oneDNN on the host.  A call becomes a primitive, which is kept.  Where the
 * library is faster in layouts of its own (convolutions), operands are
 * reordered into a workspace that all calls share; this is why they are
 * serialised.
 *
 * Its threads are OpenMP's.  They do not survive a fork: in a child calls run
 * on one thread. */
#include "xpu_onednn.h"
#include "xpu_subnormal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_CALLS = 1024, SMALL_FLOPS = 1 << 23, HUGE_BYTES = 2 << 20 };

/* ---- opening ---- */

static sd_status open_engine(const xpu_engine_row *row, sd_pool *pool,
                             void **out, char *said)
{
    onednn *l = calloc(1, sizeof *l);

    if (!l)
        return sd_no_memory(sizeof *l);
    l->pool = pool;
    l->nthread = pool ? sd_pool_size(pool) : 1;
    l->owner = getpid();
    if (!onednn_open(l, row, said)) {
        free(l);
        return NULL;
    }
    pthread_mutex_init(&l->lock, NULL);
    *out = l;
    return NULL;
}

/* The call is as if its own primitive had never been made. */
static void drop_primitive(onednn *l, onednn_call *c)
{
    for (int i = 0; i < ONEDNN_OPERANDS; i++) {
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
    *c = (onednn_call){
        .call = c->call, .hash = c->hash, .winograd = c->winograd};
}

static void drop_call(onednn *l, onednn_call *c)
{
    drop_primitive(l, c);
    onednn_winograd_drop(c->winograd);
    memset(c, 0, sizeof *c);
}

static void drop_calls(onednn *l)
{
    for (int i = 0; i < l->n; i++)
        drop_call(l, &l->at[i]);
    l->n = 0;
}

static void close_engine(void *engine)
{
    onednn *l = engine;

    drop_calls(l);
    l->stream_destroy(l->stream);
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

sd_status onednn_refused(int e, const char *what)
{
    return sd_error(e == 1             ? SD_EXHAUSTED
                    : e == 3 || e == 4 ? SD_UNIMPLEMENTED
                                       : SD_INTERNAL,
                    "oneDNN: %s: %s", what, reason(e));
}

int onednn_type(sd_dtype t)
{
    static const int8_t theirs[SD_DTYPE_COUNT] = {[SD_F16] = 1, [SD_BF16] = 2,
                                                  [SD_F32] = 3, [SD_S32] = 4,
                                                  [SD_S8] = 5,  [SD_U8] = 6};

    return theirs[t];
}

/* Product times alpha, plus bias, plus beta times add. */
static int make_attr(onednn *l, const onednn_recipe *r, void **out)
{
    void *attr = NULL, *post = NULL;
    int e;

    if ((e = l->primitive_attr_create(&attr)) ||
        (e = l->post_ops_create(&post)) ||
        (e = l->primitive_attr_set_scratchpad_mode(attr, DNNL_SCRATCH_USER)))
        goto done;
    if (r->alpha != 1 && (e = l->way->append_scale(l, post, (float)r->alpha)))
        goto done;
    if (r->add >= 0 && (e = l->way->append_sum(l, post, (float)r->beta)))
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

/* A reorder from one layout to another. */
static int make_way(onednn *l, void **way, const onednn_md *from,
                    const onednn_md *to)
{
    void *pd = NULL;
    int e = l->reorder_primitive_desc_create(&pd, from, l->engine, to,
                                             l->engine, NULL);

    if (!e) {
        e = l->primitive_create(way, pd);
        l->primitive_desc_destroy(pd);
    }
    return e;
}

/* User memory, and where the primitive wants another layout a place in the
 * workspace and the reorder between the two. */
static int make_operand(onednn *l, onednn_call *c, onednn_operand *o,
                        const onednn_md *user, const onednn_md *own,
                        bool result)
{
    int e;

    if ((e = l->memory_create(&o->user, user, l->engine, NULL)))
        return e;
    if (!own || l->memory_desc_equal(user, own))
        return 0;
    o->bytes = l->desc_size(own);
    o->at = c->work;
    c->work += (o->bytes + 63) & ~(size_t)63;
    if ((e = l->memory_create(&o->own, own, l->engine, NULL)))
        return e;
    if (!result)
        return make_way(l, &o->way, user, own);
    if ((e = make_way(l, &o->way, own, user)) || c->add < 0)
        return e;
    return make_way(l, &o->back, user, own);
}

/* By direction: the operands and the result, as roles of the forward
 * operation, with the library's names for them. */
static const struct {
    int role, arg, query;
} operands[3][3] = {
    {{ROLE_SRC, DNNL_ARG_SRC, DNNL_SRC_MD},
     {ROLE_WEIGHTS, DNNL_ARG_WEIGHTS, DNNL_WEIGHTS_MD},
     {ROLE_DST, DNNL_ARG_DST, DNNL_DST_MD}},
    {{ROLE_DST, DNNL_ARG_DIFF_DST, DNNL_DIFF_DST_MD},
     {ROLE_WEIGHTS, DNNL_ARG_WEIGHTS, DNNL_WEIGHTS_MD},
     {ROLE_SRC, DNNL_ARG_DIFF_SRC, DNNL_DIFF_SRC_MD}},
    {{ROLE_SRC, DNNL_ARG_SRC, DNNL_SRC_MD},
     {ROLE_DST, DNNL_ARG_DIFF_DST, DNNL_DIFF_DST_MD},
     {ROLE_WEIGHTS, DNNL_ARG_DIFF_WEIGHTS, DNNL_DIFF_WEIGHTS_MD}},
};

static int make_operands(onednn *l, onednn_call *c, const onednn_recipe *r,
                         void *pd)
{
    onednn_operand *o;
    int e;

    c->add = r->add;
    if (r->bias >= 0) {
        o = &c->op[c->nop++];
        o->arg = DNNL_ARG_BIAS;
        o->slot = r->bias;
        if ((e = make_operand(l, c, o, r->user[ROLE_BIAS], NULL, false)))
            return e;
    }
    for (int i = 0; i < 3; i++) {
        int role = operands[r->direction][i].role;
        const onednn_md *own =
            r->window ? l->query_md(pd, operands[r->direction][i].query, 0)
                      : NULL;

        o = &c->op[c->nop++];
        o->arg = operands[r->direction][i].arg;
        o->slot = i == 2 ? r->result : i;
        if ((e = make_operand(l, c, o, r->user[role], own, i == 2)))
            return e;
        if (i == 2)
            c->result_bytes = l->desc_size(r->user[role]);
    }
    return 0;
}

static int finish_call(onednn *l, onednn_call *c, const onednn_recipe *r,
                       void *pd)
{
    const onednn_md *scratch = l->query_md(pd, DNNL_SCRATCH_MD, 0);
    int e = make_operands(l, c, r, pd);

    if (e)
        return e;
    if (scratch && l->desc_size(scratch)) {
        if ((e = l->memory_create(&c->scratch, scratch, l->engine, NULL)))
            return e;
        c->scratch_at = c->work;
        c->work += (l->desc_size(scratch) + 63) & ~(size_t)63;
    }
    return l->primitive_create(&c->prim, pd);
}

/* A backward convolution is described with the forward one as a hint. */
static int describe(onednn *l, const onednn_recipe *r, void *attr, void **pd)
{
    const onednn_md *md[ROLES];
    void *hint = NULL;
    int e;

    for (int i = 0; i < ROLES; i++)
        md[i] = r->want[i] ? r->want[i] : r->user[i];
    if (r->bias < 0)
        md[ROLE_BIAS] = NULL;
    if (!r->window)
        return l->way->matmul(l, pd, md, attr);
    if (r->direction == LIBCALL_FORWARD)
        return l->way->forward(l, pd, DNNL_INFERENCE, r, md, attr);
    if ((e = l->way->forward(l, &hint, DNNL_FORWARD, r, md, NULL)))
        return e;
    e = l->way->backward(l, pd, r, md, hint, attr);
    l->primitive_desc_destroy(hint);
    return e;
}

sd_status onednn_build(onednn *l, onednn_call *c, onednn_recipe *r,
                       const char *what)
{
    void *attr = NULL, *pd = NULL;
    int e = make_attr(l, r, &attr);

    if (e)
        return onednn_refused(e, what);
    e = describe(l, r, attr, &pd);
    l->primitive_attr_destroy(attr);
    if (!e)
        e = finish_call(l, c, r, pd);
    if (pd)
        l->primitive_desc_destroy(pd);
    return e ? onednn_refused(e, what) : NULL;
}

void onednn_recipe_finish(onednn *l, onednn_recipe *r)
{
    for (int i = 0; i < ROLES; i++) {
        l->way->md_destroy(l, r->user[i]);
        l->way->md_destroy(l, r->want[i]);
    }
}

/* ---- running ---- */

static sd_status make_call(onednn *l, onednn_call *c, const libcall *call,
                           uint64_t hash)
{
    sd_status st;

    memset(c, 0, sizeof *c);
    c->call = *call;
    c->hash = hash;
    if (call->op == LIBCALL_MATMUL)
        st = onednn_matmul(l, c);
    else if (onednn_winograd_fits(&call->conv))
        st = onednn_winograd_make(l, &call->conv, &c->winograd);
    else
        st = onednn_conv(l, c);
    if (st)
        drop_call(l, c);
    return st;
}

static sd_status find_call(onednn *l, const libcall *call, onednn_call **out)
{
    int64_t word[LIBCALL_WORDS];
    int nword = libcall_words(call, word);
    uint64_t hash =
        sd_hash(word, (size_t)nword * sizeof *word, (uint64_t)call->op);
    sd_status st;

    for (int i = 0; i < l->n; i++)
        if (l->at[i].hash == hash && libcall_equal(&l->at[i].call, call)) {
            *out = &l->at[i];
            return NULL;
        }
    if (l->n == MAX_CALLS) /* starts afresh: programs come back one by one */
        drop_calls(l);
    if (l->n == l->cap) {
        int cap = l->cap ? 2 * l->cap : 16;
        onednn_call *at = realloc(l->at, (size_t)cap * sizeof *at);

        if (!at)
            return sd_no_memory((size_t)cap * sizeof *at);
        l->at = at;
        l->cap = cap;
    }
    if ((st = make_call(l, &l->at[l->n], call, hash)))
        return st;
    *out = &l->at[l->n++];
    return NULL;
}

sd_status onednn_work(onednn *l, size_t bytes)
{
    size_t page = bytes < HUGE_BYTES ? 64 : HUGE_BYTES;
    char *p;

    if (bytes <= l->work_bytes)
        return NULL;
    if (!(p = aligned_alloc(page, (bytes + page - 1) & ~(page - 1))))
        return sd_no_memory(bytes);
    if (page == HUGE_BYTES) /* turned tiles are written to 36 places at once */
        madvise(p, bytes, MADV_HUGEPAGE);
    free(l->work);
    l->work = p;
    l->work_bytes = bytes;
    return NULL;
}

static int reorder(onednn *l, void *way, void *from, void *to)
{
    const onednn_arg a[2] = {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}};

    return l->primitive_execute(way, l->stream, 2, a);
}

/* ptr: the thunk's slices. */
static int execute(onednn *l, onednn_call *c, void *const *ptr)
{
    onednn_operand *res = &c->op[c->nop - 1];
    onednn_arg a[ONEDNN_OPERANDS + 1];
    int n = 0, e;

    if (c->add >= 0 && ptr[c->add] != ptr[res->slot])
        memcpy(ptr[res->slot], ptr[c->add], c->result_bytes);
    for (int i = 0; i < c->nop; i++) {
        onednn_operand *o = &c->op[i];

        if ((e = l->memory_set_data_handle(o->user, ptr[o->slot])))
            return e;
        if (o->own && (e = l->memory_set_data_handle(o->own, l->work + o->at)))
            return e;
        if (o->own && o != res && (e = reorder(l, o->way, o->user, o->own)))
            return e;
        if (o->back && (e = reorder(l, o->back, o->user, o->own)))
            return e;
        a[n++] = (onednn_arg){o->arg, o->own ? o->own : o->user};
    }
    if (c->scratch) {
        if ((e = l->memory_set_data_handle(c->scratch,
                                           l->work + c->scratch_at)))
            return e;
        a[n++] = (onednn_arg){DNNL_ARG_SCRATCH, c->scratch};
    }
    if ((e = l->primitive_execute(c->prim, l->stream, n, a)))
        return e;
    if (res->own && (e = reorder(l, res->way, res->own, res->user)))
        return e;
    return l->stream_wait(l->stream);
}

/* OpenMP's threads are not in a child, and primitives remember how many they
 * were made for. */
static void notice_fork(onednn *l)
{
    if (getpid() == l->owner)
        return;
    l->owner = getpid();
    l->nthread = 1;
    drop_calls(l);
}

/* Small work is done sooner by one thread than others wake; by its shape alone,
 * for the same results in every run. */
static void set_threads(onednn *l, const libcall *c)
{
    bool small = libcall_flops(c) < SMALL_FLOPS;

    if (l->set_threads)
        l->set_threads(small ? 1 : l->nthread);
    if (!small)
        onednn_place_threads(l);
}

/* ---- relu, where the library would make 0 of a NaN ---- */

enum { RELU_PIECE = 64 << 10 }; /* bytes that a thread takes */

typedef struct {
    char *at;
    size_t bytes;
    sd_dtype type;
} relu;

/* As integers with a sign, the numbers below zero are the least, up to that of
 * -infinity, and NaNs with a sign come behind it. */
static void relu_of_words(int32_t *at, size_t n, int32_t infinity)
{
    for (size_t i = 0; i < n; i++)
        at[i] = at[i] <= infinity ? 0 : at[i];
}

static void relu_of_halves(int16_t *at, size_t n, int16_t infinity)
{
    for (size_t i = 0; i < n; i++)
        at[i] = at[i] <= infinity ? 0 : at[i];
}

static void relu_piece(void *ctx, int64_t i, int worker)
{
    const relu *r = ctx;
    size_t from = (size_t)i * RELU_PIECE;
    size_t n = SD_MIN(r->bytes - from, (size_t)RELU_PIECE);
    char *at = r->at + from;

    (void)worker;
    if (r->type == SD_F32)
        relu_of_words((int32_t *)at, n / 4, (int32_t)0xff800000);
    else
        relu_of_halves((int16_t *)at, n / 2,
                       (int16_t)(r->type == SD_BF16 ? 0xff80 : 0xfc00));
}

static void end_with_activation(onednn *l, const onednn_call *c, void *result)
{
    const libcall *k = &c->call;
    bool product = k->op == LIBCALL_MATMUL;
    relu r = {result, c->result_bytes,
              product ? k->matmul.result : k->conv.out_type};
    int64_t pieces = (int64_t)((r.bytes + RELU_PIECE - 1) / RELU_PIECE);

    if ((product ? k->matmul.activation : k->conv.activation) == LIBCALL_RELU)
        sd_pool_run(l->pool, pieces, relu_piece, &r);
}

static sd_status run_direct(onednn *l, onednn_call *c, void *const *ptr)
{
    sd_status st = NULL;
    int e;

    if (!c->prim && (st = onednn_conv(l, c)))
        drop_primitive(l, c);
    if (!st)
        st = onednn_work(l, c->work);
    if (!st && (e = execute(l, c, ptr)))
        st = onednn_refused(e, "execution");
    if (!st)
        end_with_activation(l, c, ptr[c->op[c->nop - 1].slot]);
    return st;
}

static sd_status run_onednn(void *engine, const thunk *t, void *const *ptr)
{
    onednn *l = engine;
    onednn_call *c;
    uint32_t mode = xpu_enter_mode(SD_SUBNORMALS_ARE_0);
    sd_status st;
    bool done = false;

    pthread_mutex_lock(&l->lock);
    notice_fork(l);
    set_threads(l, t->call);
    st = find_call(l, t->call, &c);
    if (!st && c->winograd)
        st = onednn_winograd_run(l, c->winograd, ptr, &done);
    if (!st && !done) {
        set_threads(l, t->call);
        st = run_direct(l, c, ptr);
    }
    pthread_mutex_unlock(&l->lock);
    xpu_leave_mode(mode);
    return st;
}

static uint64_t can(const void *engine)
{
    return ((const onednn *)engine)->sums_bytes ? DEVICE_LIB_BYTES : 0;
}

const xpu_engine_kind xpu_onednn = {open_engine, close_engine, can, run_onednn};
