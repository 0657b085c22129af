/* NCCL, and whatever has its functions: declared by us, looked for when a
 * process joins.  Communicators do not block: each call is followed by looks at
 * how it goes, and between them at whether it still should, so that a process
 * that is gone or a run that has failed ends whatever waits for it, in the
 * library and on the device, by an abort.
 *
 * A rank is a device.  All ranks of a process are called by one thread, within
 * one group of calls, and what they move lies in the devices' COMPUTE. */
#include "xpu_ccl.h"
#include "xpu_python.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- the library ---- */

typedef void *handle;
typedef struct { /* as it was when communicators learned not to block */
    size_t bytes;
    unsigned magic, version;
    int blocking;
} config;

enum { SUCCESS = 0, IN_PROGRESS = 7, BYTE = 1, SINCE = 21400 };

static const unsigned magic = 0xcafebeef; /* as an enum's it makes SINCE one */

/* The first return what went wrong. */
#define FUNCTIONS(X) \
    X(GetVersion, (int *)) \
    X(GetUniqueId, (xpu_ccl_id *)) \
    X(CommInitRankConfig, (handle *, int, xpu_ccl_id, int, config *)) \
    X(CommGetAsyncError, (handle, int *)) \
    X(CommAbort, (handle)) \
    X(GroupStart, (void)) \
    X(GroupEnd, (void)) \
    X(Send, (const void *, size_t, int, int, handle, void *)) \
    X(Recv, (void *, size_t, int, int, handle, void *))

static const struct library {
    const char *name, *file, *wheel, *prefix;
    device_kind kind;
} library[] = {
    {"nccl", "libnccl.so.2", "nvidia/nccl/lib/libnccl.so.2", "nccl",
     DEVICE_CUDA},
};

typedef struct made made;
struct made {
    made *next;
    uint64_t key, id;
    int n;
    handle comm[]; /* [n]; NULL: another process's */
};

struct xpu_ccl {
    const struct library *is;
#define X(name, args) int(*name) args;
    FUNCTIONS(X)
#undef X
    const char *(*GetErrorString)(int);
    size_t least;
    uint64_t patience_ns; /* that a circle is made in */
    pthread_mutex_t lock;
    made *made;
};

static void *symbol(void *lib, const char *prefix, const char *name)
{
    char text[64];

    snprintf(text, sizeof text, "%s%s", prefix, name);
    return dlsym(lib, text);
}

static bool find(xpu_ccl *l)
{
    void *lib = dlopen(l->is->file, RTLD_NOW | RTLD_LOCAL);

    if (!lib && !(lib = xpu_python_open(true, l->is->wheel)))
        return false;
#define X(name, args) \
    if (!(l->name = \
              (int(*) args)(uintptr_t)symbol(lib, l->is->prefix, #name))) \
        return false;
    FUNCTIONS(X)
#undef X
    l->GetErrorString = (const char *(*)(int))(uintptr_t)symbol(
        lib, l->is->prefix, "GetErrorString");
    return l->GetErrorString;
}

static sd_status said(const xpu_ccl *l, int error, const char *call)
{
    if (error == SUCCESS || error == IN_PROGRESS)
        return NULL;
    return sd_error(SD_UNAVAILABLE, "%s%s: %s", l->is->prefix, call,
                    l->GetErrorString(error));
}

/* ---- who has one ---- */

static const struct library *row(const char *name)
{
    for (size_t i = 0; i < sizeof library / sizeof *library; i++)
        if (!strcmp(library[i].name, name))
            return &library[i];
    return NULL;
}

/* What it is, and in hexadecimal digits the cards that it would serve, where
 * another process could have them too. */
static sd_status say(const xpu_ccl *l, const xpu_client *c, int version,
                     sd_buf *offer)
{
    static const uint8_t none[XPU_CARD];
    uint8_t card[XPU_CARD];
    sd_status st;

    sd_buf_fmt(offer, "%s %d,%zu", l->is->name, version, l->least);
    for (int i = 0; i < c->ndev; i++) {
        if ((st = c->dev[i]->ops->card(c->dev[i], card)))
            return st;
        if (!memcmp(card, none, XPU_CARD))
            continue;
        sd_buf_fmt(offer, " ");
        for (int k = 0; k < XPU_CARD; k++)
            sd_buf_fmt(offer, "%02x", card[k]);
    }
    return NULL;
}

static sd_status begin(xpu_ccl *l, const xpu_client *c, sd_buf *offer)
{
    int version = 0;
    sd_status st;

    for (int i = 0; i < c->ndev; i++)
        if (c->dev[i]->desc.kind != l->is->kind)
            return sd_error(SD_NOT_FOUND, "%s is not for %s devices",
                            l->is->name, c->dev[i]->ops->name);
    if (!find(l))
        return sd_error(SD_NOT_FOUND,
                        "no %s has the functions of NCCL 2.14 or later",
                        l->is->file);
    if ((st = said(l, l->GetVersion(&version), "GetVersion")))
        return st;
    if (version < SINCE)
        return sd_error(SD_NOT_FOUND, "%s is of version %d: %d is wanted",
                        l->is->file, version, SINCE);
    return say(l, c, version, offer);
}

sd_status xpu_ccl_open(const xpu_client *c, const sd_options *opt,
                       sd_buf *offer, xpu_ccl **out)
{
    xpu_ccl *l = calloc(1, sizeof *l);
    sd_status st;

    if (!l)
        return sd_no_memory(sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    l->is = row(sd_opt_str(opt, SD_OPT_WIRE));
    l->least = (size_t)sd_opt_int(opt, SD_OPT_WIRE_BYTES);
    l->patience_ns = (uint64_t)sd_opt_int(opt, SD_OPT_PATIENCE) * 1000000000;
    if ((st = begin(l, c, offer))) {
        xpu_ccl_close(l);
        return st;
    }
    *out = l;
    return NULL;
}

/* Without the cards. */
static sd_bytes library_of(sd_bytes offer)
{
    const uint8_t *end = memchr(offer.at, ' ', offer.len);

    if (end)
        end = memchr(end + 1, ' ', offer.len - (size_t)(end + 1 - offer.at));
    return (sd_bytes){offer.at, end ? (size_t)(end - offer.at) : offer.len};
}

static bool share_a_card(sd_bytes a, sd_bytes b)
{
    enum { TEXT = 2 * XPU_CARD };

    for (size_t at = library_of(a).len + 1; at + TEXT <= a.len; at += TEXT + 1)
        if (memmem(b.at, b.len, a.at + at, TEXT))
            return true;
    return false;
}

sd_status xpu_ccl_agree(const sd_bytes *offer, int n)
{
    sd_bytes all = library_of(offer[0]);

    for (int i = 0; i < n; i++) {
        sd_bytes own = library_of(offer[i]);

        if (own.len != all.len || memcmp(own.at, all.at, all.len))
            return sd_error(
                SD_PRECONDITION,
                "process %d of %d has '%.*s', process 0 '%.*s'", i, n,
                (int)SD_MIN(own.len, (size_t)64), (const char *)own.at,
                (int)SD_MIN(all.len, (size_t)64), (const char *)all.at);
        for (int k = 0; k < i; k++)
            if (share_a_card(offer[i], offer[k]))
                return sd_error(SD_PRECONDITION,
                                "processes %d and %d of %d share a card", k, i,
                                n);
    }
    return NULL;
}

/* ---- circles ---- */

static void break_off(const xpu_ccl *l, made *m)
{
    for (int i = 0; i < m->n; i++)
        if (m->comm[i])
            l->CommAbort(m->comm[i]);
    free(m);
}

static made *take_out(xpu_ccl *l, uint64_t key)
{
    made *m, **at;

    pthread_mutex_lock(&l->lock);
    for (at = &l->made; (m = *at) && m->key != key; at = &m->next)
        ;
    if (m)
        *at = m->next;
    pthread_mutex_unlock(&l->lock);
    return m;
}

static void put_in(xpu_ccl *l, made *m)
{
    pthread_mutex_lock(&l->lock);
    m->next = l->made;
    l->made = m;
    pthread_mutex_unlock(&l->lock);
}

void xpu_circle_drop(xpu_ccl *l, uint64_t key)
{
    made *m = take_out(l, key);

    if (m)
        break_off(l, m);
}

/* Nobody waits for the others, who may be gone. */
void xpu_ccl_close(xpu_ccl *l)
{
    if (!l)
        return;
    for (made *m = l->made, *next; m; m = next) {
        next = m->next;
        break_off(l, m);
    }
    pthread_mutex_destroy(&l->lock);
    free(l);
}

uint64_t xpu_circle_made(xpu_ccl *l, uint64_t key)
{
    uint64_t id = 0;

    pthread_mutex_lock(&l->lock);
    for (const made *m = l->made; m; m = m->next)
        if (m->key == key)
            id = m->id;
    pthread_mutex_unlock(&l->lock);
    return id;
}

size_t xpu_ccl_least(const xpu_ccl *l)
{
    return l->least;
}

sd_status xpu_circle_name(const xpu_ccl *l, xpu_ccl_id *out)
{
    return said(l, l->GetUniqueId(out), "GetUniqueId");
}

/* ---- waiting ---- */

enum { SPIN_NS = 200000, ASK_NS = 1000000, NAP_NS = 20000 };

typedef struct {
    const xpu_ccl *l;
    const xpu_circle *c;
    const made *m;
    uint64_t since, asked, end; /* end: UINT64_MAX where the others decide */
} wait;

static wait begin_wait(const xpu_ccl *l, const xpu_circle *c, const made *m)
{
    uint64_t now = sd_now_ns();

    return (wait){l, c, m, now, now, UINT64_MAX};
}

/* A moment; an error: there is nothing to wait for any more. */
static sd_status nap(wait *w)
{
    uint64_t now = sd_now_ns();

    if (now > w->end)
        return sd_error(SD_DEADLINE,
                        "%s has not brought %d devices together within %" PRIu64
                        " s: SUNDOG_WIRE=sockets does without it",
                        w->l->is->file, w->c->n,
                        w->l->patience_ns / 1000000000);
    if (now - w->asked > ASK_NS) {
        w->asked = now;
        return w->c->stop(w->c->ctx);
    }
    if (now - w->since < SPIN_NS)
        __builtin_ia32_pause();
    else
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    return NULL;
}

/* How a rank gets on; *on: it is still at it. */
static sd_status look(const wait *w, int i, const char *call, bool *on)
{
    int state = SUCCESS;
    int error = w->l->CommGetAsyncError(w->m->comm[i], &state);

    *on = !error && state == IN_PROGRESS;
    return error ? said(w->l, error, "CommGetAsyncError")
                 : said(w->l, state, call);
}

/* What was called has been put in, by all ranks of this process. */
static sd_status settle(wait *w, const char *call)
{
    sd_status st = NULL;

    for (int i = 0; i < w->m->n && !st; i++)
        for (bool on = w->m->comm[i] != NULL; on && !st;)
            if (!(st = look(w, i, call, &on)) && on)
                st = nap(w);
    return st;
}

/* ---- making one ---- */

static sd_status call_ranks(const xpu_ccl *l, const xpu_circle *c, made *m,
                            xpu_ccl_id id)
{
    config how = {sizeof how, magic, SINCE, 0};
    sd_status st = said(l, l->GroupStart(), "GroupStart"), end;

    if (st)
        return st;
    for (int i = 0; i < c->n && !st; i++) {
        void *stream;

        if (!c->dev[i] || (st = c->dev[i]->ops->lend(c->dev[i], &stream)))
            continue;
        st = said(l, l->CommInitRankConfig(&m->comm[i], c->n, id, i, &how),
                  "CommInitRankConfig");
        end = c->dev[i]->ops->reclaim(c->dev[i]);
        st = sd_first(st, end);
    }
    return sd_first(st, said(l, l->GroupEnd(), "GroupEnd"));
}

sd_status xpu_circle_make(xpu_ccl *l, const xpu_circle *c, xpu_ccl_id id)
{
    size_t bytes = sizeof(made) + (size_t)c->n * sizeof(handle);
    made *m = calloc(1, bytes);
    wait w = begin_wait(l, c, m);
    sd_status st;

    if (!m)
        return sd_no_memory(bytes);
    m->key = c->key;
    m->id = sd_hash(id.at, sizeof id.at, 0) | 1;
    m->n = c->n;
    w.end = w.since + l->patience_ns;
    if (!(st = call_ranks(l, c, m, id)))
        st = settle(&w, "CommInitRankConfig");
    if (st)
        break_off(l, m);
    else
        put_in(l, m);
    return st;
}

/* ---- moving ---- */

typedef struct { /* of a rank */
    void *stream;
    bool lent;
    xpu_mark *mark;
} lane;

static sd_status lend_all(const xpu_circle *c, lane *at)
{
    sd_status st = NULL;

    for (int i = 0; i < c->n && !st; i++)
        if (c->dev[i] && !(st = c->dev[i]->ops->lend(c->dev[i], &at[i].stream)))
            at[i].lent = true;
    return st;
}

/* The last one first, as threads keep what they call. */
static sd_status reclaim_all(const xpu_circle *c, lane *at, sd_status st)
{
    for (int i = c->n; i-- > 0;) {
        xpu_mark_release(at[i].mark);
        if (at[i].lent)
            st = sd_first(st, c->dev[i]->ops->reclaim(c->dev[i]));
    }
    return st;
}

static sd_status call_hops(const wait *w, const lane *at, const xpu_hop *hop,
                           int nhop)
{
    const xpu_ccl *l = w->l;
    sd_status st = said(l, l->GroupStart(), "GroupStart");

    if (st)
        return st;
    for (int i = 0; i < nhop && !st; i++) {
        const xpu_hop *h = &hop[i];
        handle comm = w->m->comm[h->at];
        void *stream = at[h->at].stream;

        if (h->sends)
            st = said(l,
                      l->Send(h->block, h->bytes, BYTE, h->peer, comm, stream),
                      "Send");
        else
            st = said(l,
                      l->Recv(h->block, h->bytes, BYTE, h->peer, comm, stream),
                      "Recv");
    }
    return sd_first(st, said(l, l->GroupEnd(), "GroupEnd"));
}

static sd_status mark_all(const xpu_circle *c, lane *at)
{
    sd_status st = NULL;

    for (int i = 0; i < c->n && !st; i++)
        if (at[i].lent && c->dev[i]->ops->record)
            st = c->dev[i]->ops->record(c->dev[i], XPU_COMPUTE, NULL, NULL,
                                        &at[i].mark);
    return st;
}

/* Of a rank that is still at it *left is one more.  A mark that was reached may
 * be one that never will be: who asks for another one is told. */
static sd_status await_one(const wait *w, lane *a, int i, int *left)
{
    xpu_device *d = w->c->dev[i];
    xpu_mark *last = a->mark;
    sd_status st;
    bool on;

    if (!last)
        return NULL;
    if (!d->ops->query(last)) {
        ++*left;
        return look(w, i, "Send", &on);
    }
    a->mark = NULL;
    if (!(st = d->ops->record(d, XPU_COMPUTE, NULL, NULL, &a->mark)))
        xpu_mark_release(a->mark);
    a->mark = NULL;
    xpu_mark_release(last);
    return st;
}

/* One after the other in turns: one device's fault keeps others waiting. */
static sd_status await_all(wait *w, lane *at)
{
    sd_status st = NULL;

    for (int left = 1; left && !st;) {
        left = 0;
        for (int i = 0; i < w->c->n && !st; i++)
            st = await_one(w, &at[i], i, &left);
        if (left && !st)
            st = nap(w);
    }
    return st;
}

sd_status xpu_circle_move(xpu_ccl *l, const xpu_circle *c, const xpu_hop *hop,
                          int nhop)
{
    lane *at = calloc((size_t)c->n, sizeof *at);
    made *m = take_out(l, c->key);
    wait w = begin_wait(l, c, m);
    sd_status st;

    assert(m);
    if (!at) {
        break_off(l, m);
        return sd_no_memory((size_t)c->n * sizeof *at);
    }
    if (!(st = lend_all(c, at)) && !(st = call_hops(&w, at, hop, nhop)) &&
        !(st = settle(&w, "GroupEnd")) && !(st = mark_all(c, at)))
        st = await_all(&w, at);
    if (st)
        break_off(l, m);
    else
        put_in(l, m);
    st = reclaim_all(c, at, st);
    free(at);
    return st;
}
