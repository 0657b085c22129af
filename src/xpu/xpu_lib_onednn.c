/* oneDNN on the host.  A call becomes a primitive, kept by its attributes.
 * Where the library is faster in layouts of its own (convolutions), operands
 * are reordered into a workspace that all calls share; this is why they are
 * serialised.
 *
 * Its threads are OpenMP's.  They do not survive a fork: in a child calls run
 * on one thread. */
#include <stdlib.h>
#include <unistd.h>

#include "xpu_onednn.h"

enum { MAX_CALLS = 1024, SMALL_WORK = 1 << 24 };

/* ---- opening ---- */

sd_status xpu_lib_open(int nthread, xpu_lib **out)
{
    xpu_lib *l = calloc(1, sizeof *l);

    if (!l)
        return sd_no_memory(sizeof *l);
    l->nthread = nthread;
    l->owner = getpid();
    pthread_mutex_init(&l->lock, NULL);
    xpu_onednn_open(l);
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

static void drop_call(xpu_lib *l, onednn_call *c)
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

sd_status xpu_onednn_refused(int e, const char *what)
{
    return sd_error(e == 1             ? SD_EXHAUSTED
                    : e == 3 || e == 4 ? SD_UNIMPLEMENTED
                                       : SD_INTERNAL,
                    "oneDNN: %s: %s", what, reason(e));
}

int xpu_onednn_type(int64_t t)
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

double xpu_onednn_real(int64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Product times alpha, plus bias, plus beta times add, then the activation. */
static int make_attr(xpu_lib *l, const onednn_recipe *r, void **out,
                     int *post_arg)
{
    void *attr = NULL, *post = NULL;
    int n = 0, e, alg = 0;

    *post_arg = 0;
    if ((e = l->primitive_attr_create(&attr)) ||
        (e = l->post_ops_create(&post)) ||
        (e = l->primitive_attr_set_scratchpad_mode(attr, DNNL_SCRATCH_USER)))
        goto done;
    if (r->alpha != 1) {
        if ((e = l->post_ops_append_eltwise(post, 1, DNNL_LINEAR,
                                            (float)r->alpha, 0)))
            goto done;
        n++;
        if (r->bias) { /* after the factor, so not a bias of theirs */
            if ((e = l->post_ops_append_binary(post, DNNL_BINARY_ADD,
                                               &r->user[2])))
                goto done;
            *post_arg = DNNL_ARG_POST_OP * (n + 1) | DNNL_ARG_SRC_1;
            n++;
        }
    }
    if (r->add && (e = l->post_ops_append_sum(post, (float)r->beta)))
        goto done;
    switch (r->activation) {
    case 0:
        break;
    case 1:
        alg = DNNL_LOGISTIC;
        break;
    case 2:
        alg = DNNL_RELU;
        break;
    case 5:
        alg = DNNL_TANH;
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
static int make_operand(xpu_lib *l, onednn_call *c, onednn_operand *o, int arg,
                        const dnnl_md *user, const void *own, bool result)
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

static int finish_call(xpu_lib *l, onednn_call *c, const onednn_recipe *r,
                       void *pd)
{
    const void *scratch = l->query_md(pd, DNNL_SCRATCH_MD, 0);
    int e;

    c->add = r->add;
    for (int i = 0; i < ONEDNN_OPERANDS; i++) {
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

sd_status xpu_onednn_build(xpu_lib *l, onednn_call *c, onednn_recipe *r,
                           const char *what)
{
    void *attr = NULL, *pd = NULL;
    int e;

    if ((e = make_attr(l, r, &attr, &c->post_arg)))
        return xpu_onednn_refused(e, what);
    e = l->primitive_desc_create(&pd, &r->op, attr, l->engine, r->hint);
    l->primitive_attr_destroy(attr);
    if (!e)
        e = finish_call(l, c, r, pd);
    if (pd)
        l->primitive_desc_destroy(pd);
    return e ? xpu_onednn_refused(e, what) : NULL;
}

/* ---- running ---- */

static sd_status make_call(xpu_lib *l, onednn_call *c, const thunk *t,
                           uint64_t hash)
{
    sd_status st;

    memset(c, 0, sizeof *c);
    c->hash = hash;
    c->lib = t->lib;
    c->nattr = t->nattr;
    if (!(c->attr = malloc((size_t)t->nattr * sizeof *c->attr)))
        return sd_no_memory((size_t)t->nattr * sizeof *c->attr);
    memcpy(c->attr, t->attr, (size_t)t->nattr * sizeof *c->attr);
    st = t->lib == THUNK_LIB_MATMUL ? xpu_onednn_matmul(l, c, t->attr)
                                    : xpu_onednn_conv(l, c, t->attr);
    if (st)
        drop_call(l, c);
    return st;
}

static sd_status find_call(xpu_lib *l, const thunk *t, onednn_call **out)
{
    size_t bytes = (size_t)t->nattr * sizeof *t->attr;
    uint64_t hash = sd_hash(t->attr, bytes, (uint64_t)t->lib);
    sd_status st;

    for (int i = 0; i < l->n; i++) {
        onednn_call *c = &l->at[i];

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
        onednn_call *at = realloc(l->at, (size_t)cap * sizeof *at);

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
    const onednn_arg a[2] = {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}};

    return l->primitive_execute(way, l->stream, 2, a);
}

/* ptr: two inputs, bias, add, result; those that are. */
static int execute(xpu_lib *l, onednn_call *c, void *const *ptr, int narg)
{
    onednn_operand *res = &c->op[c->nop - 1];
    onednn_arg a[ONEDNN_OPERANDS + 1];
    void *result = ptr[narg - 1];
    int n = 0, e;

    if (c->add && ptr[narg - 2] != result)
        memcpy(result, ptr[narg - 2], c->result_bytes);
    for (int i = 0; i < c->nop; i++) {
        onednn_operand *o = &c->op[i];

        if ((e = l->memory_set_data_handle(o->user,
                                           o == res ? result : ptr[i])))
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

/* Small work is done sooner by one thread than others wake; by its shape
 * alone, for the same results in every run. */
static int threads_for(const xpu_lib *l, const thunk *t)
{
    double work = t->lib == THUNK_LIB_MATMUL ? xpu_onednn_matmul_work(t->attr)
                                             : xpu_onednn_conv_work(t->attr);

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
    onednn_call *c;
    int e;

    if (t->lib < 0 || t->lib >= THUNK_LIB_COUNT ||
        t->nattr != thunk_lib_table[t->lib].nattr)
        return sd_error(SD_INVALID, "%s: %d attributes", t->name, t->nattr);
    if (!l || !l->handle)
        return sd_error(SD_UNIMPLEMENTED, "%s cannot be called: %s",
                        thunk_lib_table[t->lib].name,
                        l ? l->version : "no libraries");
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
        st = xpu_onednn_refused(e, "execution");
    pthread_mutex_unlock(&l->lock);
    return sd_note(st, "%s", t->name);
}
