/* How processes find each other: each says what it is under a key of its own,
 * and reads those of all others.  A process's words are an offer of the wire's
 * and the devices, each as an empty program for it, which brings format,
 * version and checksum along. */
#include "xpu_far.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

enum { MOST = 1 << 12 /* processes, and devices of one */ };

typedef struct { /* of one process */
    sd_buf text; /* which the others point into: */
    sd_bytes version, machine, offer, ccl;
    xpu_place *device; /* malloc'ed */
    int n;
} entry;

/* ---- saying ---- */

static void say(sd_buf *b, const void *at, size_t n)
{
    sd_buf_leb(b, n);
    sd_buf_add(b, at, n);
}

static sd_status say_device(sd_buf *b, const device_desc *d)
{
    thunk_program p = {
        .name = "device", .device = *d, .nreplica = 1, .npartition = 1};
    sd_buf saved = {0};
    sd_status st = thunk_save(&p, &saved);

    if (!st)
        say(b, saved.at, saved.len);
    b->oom |= saved.oom;
    sd_buf_finish(&saved);
    return st;
}

static sd_status say_all(const xpu_client *c, const sd_buf *offer,
                         const sd_buf *ccl, sd_buf *b)
{
    struct utsname u;
    sd_status st = NULL;

    if (uname(&u))
        u.nodename[0] = 0;
    say(b, SD_VERSION, strlen(SD_VERSION));
    say(b, u.nodename, strlen(u.nodename));
    say(b, offer->at, offer->len);
    say(b, ccl->at, ccl->len);
    sd_buf_leb(b, (uint64_t)c->ndev);
    for (int i = 0; i < c->ndev && !st; i++)
        st = say_device(b, &c->dev[i]->desc);
    if (!st && (b->oom || offer->oom || ccl->oom))
        st = sd_no_memory(b->len);
    return st;
}

/* ---- hearing ---- */

static sd_bytes hear(sd_cursor *c)
{
    return sd_read_bytes(c, sd_read_leb(c));
}

static sd_status hear_device(sd_cursor *c, int process, xpu_place *out)
{
    sd_bytes b = hear(c);
    thunk_program *p;
    sd_status st = sd_cursor_status(c, "devices");

    if (st || (st = thunk_load(b, &p)))
        return st;
    *out = (xpu_place){process, p->device};
    thunk_program_release(p);
    return NULL;
}

static sd_status hear_all(entry *e, int process)
{
    sd_cursor c =
        sd_cursor_of((sd_bytes){(const uint8_t *)e->text.at, e->text.len});
    uint64_t n;
    sd_status st;

    e->version = hear(&c);
    e->machine = hear(&c);
    e->offer = hear(&c);
    e->ccl = hear(&c);
    n = sd_read_leb(&c);
    if ((st = sd_cursor_status(&c, "what it says of itself")))
        return st;
    if (e->version.len != strlen(SD_VERSION) ||
        memcmp(e->version.at, SD_VERSION, e->version.len))
        return sd_error(SD_PRECONDITION,
                        "it is sundog %.*s, and this one " SD_VERSION,
                        (int)SD_MIN(e->version.len, (size_t)32),
                        (const char *)e->version.at);
    if (n < 1 || n > MOST)
        return sd_error(SD_INVALID, "%" PRIu64 " devices: 1 to %d are possible",
                        n, MOST);
    if (!(e->device = calloc(n, sizeof *e->device)))
        return sd_no_memory(n * sizeof *e->device);
    for (e->n = 0; e->n < (int)n && !st; e->n++)
        st = hear_device(&c, process, &e->device[e->n]);
    return st;
}

static void key_of(int process, char *out, size_t room)
{
    snprintf(out, room, "sundog/process/%d", process);
}

/* An address that a process has for itself alone is no use to other machines.
 */
static sd_status check_machine(const entry *e, const entry *mine)
{
    static const char local[] = "tcp 127.";

    if ((e->machine.len == mine->machine.len &&
         !memcmp(e->machine.at, mine->machine.at, e->machine.len)) ||
        e->offer.len < sizeof local ||
        memcmp(e->offer.at, local, sizeof local - 1))
        return NULL;
    return sd_error(SD_PRECONDITION,
                    "it is on machine '%.*s', this one on '%.*s': set "
                    "SUNDOG_ADDRESS on each to the address that the others "
                    "reach it by",
                    (int)SD_MIN(e->machine.len, (size_t)64),
                    (const char *)e->machine.at,
                    (int)SD_MIN(mine->machine.len, (size_t)64),
                    (const char *)mine->machine.at);
}

static sd_status exchange(const xpu_store *s, int me, int n, int seconds,
                          entry *e)
{
    char key[64];
    sd_status st;

    key_of(me, key, sizeof key);
    st = s->put(s->ctx, key,
                (sd_bytes){(const uint8_t *)e[me].text.at, e[me].text.len});
    if (st)
        return sd_note(st, "telling the other processes");
    for (int i = 0; i < n && !st; i++) {
        key_of(i, key, sizeof key);
        if (i != me)
            st = s->get(s->ctx, key, seconds * 1000, &e[i].text);
        if (!st && e[i].text.oom)
            st = sd_no_memory(e[i].text.len);
        if (!st)
            st = hear_all(&e[i], i);
        st = sd_note(st, "process %d of %d", i, n);
    }
    for (int i = 0; i < n && !st; i++)
        st = sd_note(check_machine(&e[i], &e[me]), "process %d of %d", i, n);
    return st;
}

/* ---- joining ---- */

static sd_status call_all(xpu_far *f, int n, int seconds, const entry *e)
{
    sd_bytes *offer = malloc((size_t)n * sizeof *offer);
    sd_status st;

    if (!offer)
        return sd_no_memory((size_t)n * sizeof *offer);
    for (int i = 0; i < n; i++)
        offer[i] = e[i].offer;
    st = xpu_far_join(f, offer, seconds);
    free(offer);
    return st;
}

static sd_status list_devices(int n, const entry *e, xpu_place **world,
                              int *nworld)
{
    size_t all = 0;
    xpu_place *at;

    for (int i = 0; i < n; i++)
        all += (size_t)e[i].n;
    if (!(at = *world = malloc(all * sizeof *at)))
        return sd_no_memory(all * sizeof *at);
    for (int i = 0; i < n; at += e[i++].n)
        memcpy(at, e[i].device, (size_t)e[i].n * sizeof *at);
    *nworld = (int)all;
    return NULL;
}

/* What another process has lies in host memory, once it has come. */
static void read_no_peers(xpu_client *c)
{
    for (int i = 0; i < c->ndev; i++)
        if (!c->dev[i]->ops->shared_memory)
            c->dev[i]->desc.features &= ~(uint64_t)DEVICE_HAS_PEERS;
}

static sd_status open_wire(xpu_client *c, const sd_options *opt, sd_buf *offer)
{
    const char *address = sd_opt_str(opt, SD_OPT_ADDRESS);
    sd_status st;

    if (!strcmp(sd_opt_str(opt, SD_OPT_WIRE), "mpi")) {
        st = xpu_far_open(c->far, &xpu_wire_mpi, address, offer);
        if (!st || st->code != SD_NOT_FOUND)
            return st;
        sd_log(SD_LOG_WARN, "SUNDOG_WIRE=mpi: %s: processes go by TCP",
               st->message);
        sd_status_free(st);
    }
    return xpu_far_open(c->far, &xpu_wire_sockets, address, offer);
}

/* ---- what moves blocks beside the wire ---- */

static const char *library(const sd_options *opt)
{
    const char *wire = sd_opt_str(opt, SD_OPT_WIRE);

    return strcmp(wire, "sockets") && strcmp(wire, "mpi") ? wire : NULL;
}

/* Blocks go in messages. */
static void go_without(const char *name, sd_status why)
{
    sd_log(SD_LOG_WARN, "SUNDOG_WIRE=%s: %s: blocks go by TCP", name,
           why->message);
    sd_status_free(why);
}

/* Why it cannot be had is no reason not to join. */
static xpu_ccl *open_library(const xpu_client *c, const sd_options *opt,
                             sd_buf *offer)
{
    const char *name = library(opt);
    xpu_ccl *l = NULL;
    sd_status st;

    if (!name || !(st = xpu_ccl_open(c, opt, offer, &l)))
        return l;
    go_without(name, st);
    sd_buf_finish(offer);
    return NULL;
}

/* l (taken) is what moves blocks from now on, where all can. */
static sd_status agree(xpu_client *c, const sd_options *opt, int n,
                       const entry *e, xpu_ccl *l)
{
    sd_bytes *offer;
    sd_status st;

    if (!l)
        return NULL;
    if (!(offer = malloc((size_t)n * sizeof *offer))) {
        xpu_ccl_close(l);
        return sd_no_memory((size_t)n * sizeof *offer);
    }
    for (int i = 0; i < n; i++)
        offer[i] = e[i].ccl;
    if (!(st = xpu_ccl_agree(offer, n))) {
        xpu_far_take_ccl(c->far, l);
    } else {
        go_without(library(opt), st);
        xpu_ccl_close(l);
    }
    free(offer);
    return NULL;
}

static sd_status join(xpu_client *c, const sd_options *opt, int me, int n,
                      const xpu_store *s, entry *e)
{
    int seconds = (int)sd_opt_int(opt, SD_OPT_PATIENCE);
    sd_buf offer = {0}, ccl = {0};
    xpu_ccl *l;
    sd_status st;

    if ((st = xpu_far_create(me, n, &c->far)))
        return st;
    read_no_peers(c);
    l = open_library(c, opt, &ccl);
    if (!(st = open_wire(c, opt, &offer)) &&
        !(st = say_all(c, &offer, &ccl, &e[me].text)) &&
        !(st = exchange(s, me, n, seconds, e)))
        st = call_all(c->far, n, seconds, e);
    if (!st)
        st = agree(c, opt, n, e, l);
    else
        xpu_ccl_close(l);
    sd_buf_finish(&offer);
    sd_buf_finish(&ccl);
    return st;
}

sd_status xpu_client_join(xpu_client *c, const sd_options *opt, int me, int n,
                          const xpu_store *s, xpu_place **world, int *nworld)
{
    entry *e;
    sd_status st;

    if (n < 1 || n > MOST || me < 0 || me >= n)
        return sd_error(SD_INVALID, "process %d of %d", me, n);
    if (!(e = calloc((size_t)n, sizeof *e)))
        return sd_no_memory((size_t)n * sizeof *e);
    if (!(st = join(c, opt, me, n, s, e)))
        st = list_devices(n, e, world, nworld);
    for (int i = 0; i < n; i++) {
        sd_buf_finish(&e[i].text);
        free(e[i].device);
    }
    free(e);
    return sd_note(st, "process %d joins", me);
}
