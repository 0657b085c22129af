/* Programs over several processes: each is a client of its own here, which sees
 * the others by a store and by its sockets alone.  What a process may meet in
 * another that is damaged, or none of ours, is played by the test itself. */
#include "gang_programs.h"
#include "hlo.h"
#include "passes.h"
#include "plan.h"
#include "target.h"
#include "xpu.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "want_error.h"

enum { MOST = 4, DEVICES = 8, MOST_OUT = 2 };

/* Threads of that name do not start. */
static const char *_Atomic no_thread = "";
int __real_sd_thread_start(pthread_t *out, const char *name,
                           void *(*fn)(void *), void *arg);
int __wrap_sd_thread_start(pthread_t *out, const char *name,
                           void *(*fn)(void *), void *arg);

int __wrap_sd_thread_start(pthread_t *out, const char *name,
                           void *(*fn)(void *), void *arg)
{
    return strcmp(name, no_thread) ? __real_sd_thread_start(out, name, fn, arg)
                                   : EAGAIN;
}

/* ---- the store ---- */

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t news;
    sd_buf value[MOST];
    bool there[MOST];
} shelf;

static int number_of(const char *key)
{
    return atoi(strrchr(key, '/') + 1);
}

static sd_status get(void *ctx, const char *key, int timeout_ms, sd_buf *out)
{
    int i = number_of(key);
    struct timespec end;
    shelf *s = ctx;
    int late = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += timeout_ms / 1000;
    pthread_mutex_lock(&s->lock);
    while (!s->there[i] && !late)
        late = pthread_cond_timedwait(&s->news, &s->lock, &end);
    if (!late)
        sd_buf_add(out, s->value[i].at, s->value[i].len);
    pthread_mutex_unlock(&s->lock);
    return late ? sd_error(SD_DEADLINE, "nobody put %s", key) : NULL;
}

static sd_status put(void *ctx, const char *key, sd_bytes value)
{
    int i = number_of(key);
    shelf *s = ctx;
    bool was;

    pthread_mutex_lock(&s->lock);
    was = s->there[i];
    if (!was)
        sd_buf_add(&s->value[i], value.at, value.len);
    s->there[i] = true;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
    return was ? sd_error(SD_ALREADY_EXISTS, "%s is there", key) : NULL;
}

static void shelf_init(shelf *s)
{
    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->news, NULL);
}

static void shelf_finish(shelf *s)
{
    for (int i = 0; i < MOST; i++)
        sd_buf_finish(&s->value[i]);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->news);
}

/* ---- a job ---- */

typedef struct {
    shelf *shelf;
    int me, n;
    const char *address, *patience; /* NULL: what they are */
    xpu_client *client;
    xpu_place *world;
    int nworld;
    sd_options opt;
    sd_status st;
} process;

typedef struct {
    shelf shelf;
    process at[MOST];
    int n;
} job;

/* One at a time: clients look for libraries by the process's environment. */
static void open_client(process *p)
{
    sd_options_from_env(&p->opt);
    p->opt.value[SD_OPT_DEVICE] = "host";
    p->opt.value[SD_OPT_HOST_DEVICES] = "8";
    p->opt.value[SD_OPT_THREADS] = "2";
    p->opt.value[SD_OPT_PATIENCE] = p->patience ? p->patience : "60";
    if (p->address)
        p->opt.value[SD_OPT_ADDRESS] = p->address;
    want_success(xpu_client_create(&p->opt, &p->client));
}

static void *join(void *arg)
{
    process *p = arg;
    xpu_store s = {get, put, p->shelf};

    p->st = xpu_client_join(p->client, &p->opt, p->me, p->n, &s, &p->world,
                            &p->nworld);
    return NULL;
}

static void leave(process *p)
{
    xpu_client_destroy(p->client);
    p->client = NULL;
    free(p->world);
    p->world = NULL;
}

static job *begin_job(int n)
{
    job *j = calloc(1, sizeof *j);
    pthread_t t[MOST];

    assert_non_null(j);
    j->n = n;
    shelf_init(&j->shelf);
    for (int i = 0; i < n; i++) {
        j->at[i] = (process){.shelf = &j->shelf, .me = i, .n = n};
        open_client(&j->at[i]);
    }
    for (int i = 0; i < n; i++)
        assert_int_equal(pthread_create(&t[i], NULL, join, &j->at[i]), 0);
    for (int i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < n; i++)
        want_success(j->at[i].st);
    return j;
}

static void end_job(job *j)
{
    for (int i = 0; i < j->n; i++)
        leave(&j->at[i]);
    shelf_finish(&j->shelf);
    free(j);
}

/* ---- a program, and its runs ---- */

typedef struct { /* of one process */
    int n, participant[DEVICES];
    xpu_program *x[DEVICES];
    xpu_buffer *arg[DEVICES], *out[DEVICES][MOST_OUT], **outs[DEVICES];
    xpu_event *done[DEVICES];
    xpu_call call[DEVICES];
} crew;

typedef struct {
    job *job;
    const char *name;
    xpu_places places;
    int process[DEVICES];
    int first; /* of a process's devices */
    thunk_program *t;
    crew of[MOST];
} gang;

static thunk_program *compile(process *w, const char *text)
{
    const device_desc *dev = xpu_device_desc(xpu_client_device(w->client, 0));
    sd_arena *a = sd_arena_create();
    thunk_program *t;
    hlo_module *m;
    plan *pl;

    want_success(hlo_parse(a, text, strlen(text), &m));
    want_success(hlo_optimize(m, dev, &w->opt, NULL, NULL));
    want_success(plan_make(a, m, dev, &w->opt, &pl));
    want_success(target_build(pl, &w->opt, NULL, NULL, NULL, NULL));
    t = thunk_program_retain(pl->program);
    plan_destroy(pl);
    sd_arena_destroy(a);
    return t;
}

static xpu_buffer *argument(process *w, int device, int participant, int k)
{
    int32_t *data = malloc((size_t)k * sizeof *data);
    int64_t dim = k;
    xpu_buffer *b;

    assert_non_null(data);
    for (int i = 0; i < k; i++)
        data[i] = (int32_t)x(participant, i);
    want_success(xpu_buffer_from_host(xpu_client_device(w->client, device),
                                      XPU_MEM_DEVICE, SD_S32, 1, &dim, data,
                                      NULL, true, &b, NULL));
    free(data);
    return b;
}

static void load(gang *g, int participant, int k)
{
    process *w = &g->job->at[g->process[participant]];
    crew *c = &g->of[w->me];
    int i = c->n++;

    c->participant[i] = participant;
    want_success(xpu_program_load_as(xpu_client_device(w->client, g->first + i),
                                     g->t, participant, &c->x[i]));
    c->arg[i] = argument(w, g->first + i, participant, k);
    c->outs[i] = c->out[i];
    c->call[i] = (xpu_call){.arg = &c->arg[i], .narg = 1};
}

/* Each process has those that stand together; or every so many-th. */
static gang *begin_gang_at(job *j, int first, const program *p, bool together)
{
    gang *g = calloc(1, sizeof *g);
    int each = (p->n + j->n - 1) / j->n;

    assert_non_null(g);
    g->job = j;
    g->first = first;
    g->name = p->name;
    g->t = compile(&j->at[0], p->text);
    for (int i = 0; i < p->n; i++) {
        g->process[i] = together ? i / each : i % j->n;
        load(g, i, p->k);
    }
    g->places = (xpu_places){
        p->n, g->process, sd_hash(g->process, (size_t)p->n * sizeof(int), 0)};
    return g;
}

static gang *begin_gang(job *j, const program *p, bool together)
{
    return begin_gang_at(j, 0, p, together);
}

static void end_gang(gang *g)
{
    for (int p = 0; p < g->job->n; p++)
        for (int i = 0; i < g->of[p].n; i++) {
            xpu_buffer_release(g->of[p].arg[i]);
            xpu_program_release(g->of[p].x[i]);
        }
    thunk_program_release(g->t);
    free(g);
}

static sd_status start(gang *g, int p)
{
    crew *c = &g->of[p];

    return c->n ? xpu_execute_among(&g->places, c->n, c->x, c->call, c->outs,
                                    c->done)
                : NULL;
}

static void start_all(gang *g)
{
    for (int p = 0; p < g->job->n; p++)
        want_success(start(g, p));
}

static void drop(gang *g, int p)
{
    for (int i = 0; i < g->of[p].n; i++) {
        for (int o = 0; o < g->t->noutput; o++)
            xpu_buffer_release(g->of[p].out[i][o]);
        xpu_event_release(g->of[p].done[i]);
    }
}

static void ends_well(gang *g)
{
    for (int p = 0; p < g->job->n; p++)
        for (int i = 0; i < g->of[p].n; i++)
            want_success(xpu_event_wait(g->of[p].done[i]));
    for (int p = 0; p < g->job->n; p++)
        drop(g, p);
}

static void ends_badly(gang *g, int p, sd_code code, const char *text)
{
    for (int i = 0; i < g->of[p].n; i++)
        want_error(xpu_event_wait(g->of[p].done[i]), code, text, g->name);
    drop(g, p);
}

static void run_well(gang *g)
{
    start_all(g);
    ends_well(g);
}

/* ---- what programs make ---- */

static int compare(const program *p, const gang *g, int where, int i, int o)
{
    xpu_buffer *b = g->of[where].out[i][o];
    int me = g->of[where].participant[i], bad = 0;
    size_t n = xpu_buffer_bytes(b) / sizeof(int32_t);
    int32_t *got = malloc(n * sizeof *got);
    xpu_event *read;

    assert_non_null(got);
    want_success(xpu_buffer_to_host(b, 0, got, n * sizeof *got, &read));
    want_success(xpu_event_wait(read));
    xpu_event_release(read);
    for (size_t k = 0; k < n; k++)
        if (got[k] != p->want(me, o, (int)k) && !bad++)
            print_message("%s: participant %d, result %d, element %zu is %d, "
                          "not %" PRId64 "\n",
                          p->name, me, o, k, got[k], p->want(me, o, (int)k));
    free(got);
    return bad;
}

static int one_program(job *j, const program *p, bool together)
{
    gang *g = begin_gang(j, p, together);
    int bad = 0;

    for (int times = 0; times < 3; times++) {
        start_all(g);
        for (int k = 0; k < j->n; k++)
            for (int i = 0; i < g->of[k].n; i++)
                want_success(xpu_event_wait(g->of[k].done[i]));
        for (int k = 0; k < j->n; k++)
            for (int i = 0; i < g->of[k].n; i++)
                for (int o = 0; o < g->t->noutput; o++)
                    bad += compare(p, g, k, i, o);
        for (int k = 0; k < j->n; k++)
            drop(g, k);
    }
    end_gang(g);
    return bad;
}

static void test_programs(void **state)
{
    int bad = 0;

    (void)state;
    for (int n = 2; n <= MOST; n++) {
        job *j = begin_job(n);

        assert_int_equal(j->at[n - 1].nworld, n * DEVICES);
        assert_int_equal(j->at[n - 1].world[DEVICES].process, 1);
        for (size_t i = 0; i < SD_COUNTOF(programs); i++)
            if (strcmp(programs[i].name, "nobody meets"))
                for (int together = 0; together < 2; together++)
                    bad += one_program(j, &programs[i], together);
        end_job(j);
    }
    assert_int_equal(bad, 0);
}

/* ---- what goes wrong in one ---- */

static const program *sum = &programs[0];
static const program *gather = &programs[6];

/* An argument of process 1 that comes late, or in error. */
static xpu_event *make_late(gang *g, xpu_buffer **was)
{
    xpu_event *ready = xpu_event_create();
    int64_t dim = sum->k;

    *was = g->of[1].arg[0];
    want_success(xpu_buffer_promise(xpu_client_device(g->job->at[1].client, 0),
                                    XPU_MEM_DEVICE, SD_S32, 1, &dim, ready,
                                    &g->of[1].arg[0]));
    return ready;
}

static void test_poisoned_argument(void **state)
{
    job *j = begin_job(3);
    gang *g = begin_gang(j, sum, false);
    xpu_buffer *was;
    xpu_event *ready = make_late(g, &was);

    (void)state;
    xpu_event_set(ready, sd_error(SD_DATA_LOSS, "it is lost"));
    start_all(g);
    ends_badly(g, 0, SD_DATA_LOSS, "process 1 of 3: participant 1 of 4: it is");
    ends_badly(g, 1, SD_DATA_LOSS, "participant 1 of 4: it is lost");
    ends_badly(g, 2, SD_DATA_LOSS, "process 1 of 3: participant 1 of 4: it is");
    xpu_buffer_release(g->of[1].arg[0]);
    g->of[1].arg[0] = was;
    run_well(g);
    xpu_event_release(ready);
    end_gang(g);
    end_job(j);
}

/* Refused in one process, after the others have begun or before. */
static void test_refused_call(void **state)
{
    job *j = begin_job(2);
    gang *g = begin_gang(j, sum, true);
    xpu_buffer *was = g->of[1].arg[0];

    (void)state;
    for (int first = 0; first < 2; first++) {
        g->of[1].arg[0] = g->of[1].arg[1];
        if (!first)
            want_success(start(g, 0));
        want_refusal(start(g, 1), SD_INVALID, "argument 0 is on device 1");
        if (first)
            want_success(start(g, 0));
        ends_badly(g, 0, SD_INVALID, "process 1 of 2: ");
        g->of[1].arg[0] = was;
        run_well(g);
    }
    g->of[1].n = 1;
    want_refusal(start(g, 1), SD_INVALID, "1 participants of 2");
    g->of[1].n = 2;
    run_well(g);
    end_gang(g);
    end_job(j);
}

/* Two runs of which the first waits in one process for its argument. */
static void test_order(void **state)
{
    job *j = begin_job(2);
    gang *g = begin_gang(j, sum, true), *h = begin_gang(j, gather, true);
    xpu_buffer *was;
    xpu_event *ready = make_late(g, &was);

    (void)state;
    start_all(g);
    start_all(h);
    assert_false(xpu_event_is_ready(h->of[0].done[0]));
    xpu_event_set(ready, NULL);
    ends_well(g);
    ends_well(h);
    xpu_buffer_release(g->of[1].arg[0]);
    g->of[1].arg[0] = was;
    want_success(start(g, 0));
    want_success(start(h, 1));
    want_success(start(h, 0));
    want_success(start(g, 1));
    for (int p = 0; p < 2; p++) {
        ends_badly(g, p, SD_PRECONDITION, "runs another program there");
        ends_badly(h, p, SD_PRECONDITION, "runs another program there");
    }
    run_well(g);
    xpu_event_release(ready);
    end_gang(g);
    end_gang(h);
    end_job(j);
}

static void *run_many(void *arg)
{
    gang *g = arg;

    for (int i = 0; i < 100; i++)
        run_well(g);
    return NULL;
}

/* Programs over other devices each, at once. */
static void test_threads(void **state)
{
    job *j = begin_job(2);
    pthread_t t[2];
    gang *g[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        g[i] = begin_gang_at(j, 4 * i, i ? gather : sum, i);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&t[i], NULL, run_many, g[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < 2; i++)
        end_gang(g[i]);
    end_job(j);
}

/* A process that ends fails what waits for it, and what comes later. */
static void test_gone(void **state)
{
    job *j = begin_job(3);
    gang *g = begin_gang(j, sum, false);

    (void)state;
    run_well(g);
    want_success(start(g, 0));
    leave(&j->at[2]);
    ends_badly(g, 0, SD_UNAVAILABLE, "process 2 of 3 is gone: it has ended");
    want_success(start(g, 0));
    want_success(start(g, 1));
    ends_badly(g, 0, SD_UNAVAILABLE, "process 2 of 3 is gone");
    ends_badly(g, 1, SD_UNAVAILABLE, "process 2 of 3 is gone");
    end_gang(g);
    end_job(j);
}

/* ---- what another may say in the store ---- */

/* Process 1 of 2, where process 0 has said `words`. */
static void hears(const void *words, size_t n, sd_code code, const char *text)
{
    process p = {.me = 1, .n = 2, .patience = "1"};
    shelf s;

    shelf_init(&s);
    p.shelf = &s;
    if (words)
        put(&s, "/0", (sd_bytes){words, n});
    open_client(&p);
    join(&p);
    want_refusal(p.st, code, text);
    leave(&p);
    shelf_finish(&s);
}

/* The same with `from` in process 0's words replaced by `to`, as long. */
static void hears_instead(const sd_buf *words, const char *from, const char *to,
                          sd_code code, const char *text)
{
    uint8_t *copy = malloc(words->len), *at;

    assert_non_null(copy);
    memcpy(copy, words->at, words->len);
    at = memmem(copy, words->len, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    hears(copy, words->len, code, text);
    free(copy);
}

static void said_by_nobody(process *p, const char *address, int me, int n,
                           sd_code code, const char *text)
{
    *p = (process){.shelf = p->shelf,
                   .me = me,
                   .n = n,
                   .address = address,
                   .patience = "1"};
    open_client(p);
    join(p);
    want_refusal(p->st, code, text);
    leave(p);
}

static void test_words(void **state)
{
    job *j = begin_job(2);
    const sd_buf *words = &j->shelf.value[0];
    uint8_t *many = malloc(words->len), *at;
    process p = {.shelf = &j->shelf};
    char host[256];

    (void)state;
    assert_non_null(many);
    hears(NULL, 0, SD_DEADLINE, "process 1 joins: process 0 of 2: nobody put");
    hears("\x7f", 1, SD_INVALID, "what it says of itself");
    hears(words->at, words->len - 9, SD_INVALID, "process 0 of 2: devices");
    hears_instead(words, SD_VERSION, "9.9.9", SD_PRECONDITION,
                  "process 0 of 2: it is sundog 9.9.9, and this one");
    /* its listener is closed by now */
    hears(words->at, words->len, SD_UNAVAILABLE,
          "connecting to process 0 of 2: ");
    hears_instead(words, "tcp 127", "tpc 127", SD_INVALID,
                  "process 0 of 2 is to be reached at 'tpc 127");
    memcpy(many, words->at, words->len);
    assert_int_equal(gethostname(host, sizeof host), 0);
    if (*host) {
        char other[256];

        snprintf(other, sizeof other, "%s", host);
        other[0] = host[0] == 'x' ? 'y' : 'x';
        hears_instead(words, host, other, SD_PRECONDITION,
                      "set SUNDOG_ADDRESS on each");
    }
    /* the number of devices stands behind the offer, whose length is before it
     */
    at = memmem(many, words->len, "tcp ", 4);
    at[at[-1]] = 0;
    hears(many, words->len, SD_INVALID, "0 devices: 1 to 4096 are possible");
    free(many);
    said_by_nobody(&p, NULL, 0, 2, SD_ALREADY_EXISTS,
                   "telling the other processes: sundog/process/0 is there");
    said_by_nobody(&p, "home", 0, 2, SD_INVALID,
                   "SUNDOG_ADDRESS=home: an IPv4 address");
    said_by_nobody(&p, "192.0.2.1", 0, 2, SD_UNAVAILABLE,
                   "listening at SUNDOG_ADDRESS=192.0.2.1: ");
    said_by_nobody(&p, NULL, 2, 2, SD_INVALID, "process 2 of 2");
    end_job(j);
}

/* ---- what another may send ---- */

typedef struct {
    shelf shelf;
    process p; /* process 0 of 2 */
    pthread_t t;
    struct sockaddr_in at; /* where it listens, and for whom: */
    uint8_t token[16];
} victim;

typedef struct {
    uint32_t magic, from, to;
    uint8_t token[16];
} hello;
typedef struct {
    uint32_t magic, kind;
    uint64_t places, run, program;
    int64_t group;
    uint32_t step, none;
    uint64_t bytes;
} head;
enum { MAGIC = 0x31474453 };

/* It is told of a process 1 that says what it itself says. */
static void begin_victim(victim *v, const char *patience)
{
    unsigned port;
    sd_buf words = {0};
    char address[32];
    const char *at;

    memset(v, 0, sizeof *v);
    shelf_init(&v->shelf);
    v->p = (process){.shelf = &v->shelf, .n = 2, .patience = patience};
    open_client(&v->p);
    assert_int_equal(pthread_create(&v->t, NULL, join, &v->p), 0);
    want_success(get(&v->shelf, "/0", 60000, &words));
    assert_non_null(at = memmem(words.at, words.len, "tcp ", 4));
    assert_int_equal(sscanf(at, "tcp %31s %u ", address, &port), 2);
    v->at = (struct sockaddr_in){.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, address, &v->at.sin_addr);
    at = strchr(strchr(at + 4, ' ') + 1, ' ') + 1;
    for (int i = 0; i < 16; i++)
        sscanf(at + 2 * i, "%2hhx", &v->token[i]);
    put(&v->shelf, "/1", (sd_bytes){(const uint8_t *)words.at, words.len});
    sd_buf_finish(&words);
}

static void end_victim(victim *v)
{
    leave(&v->p);
    shelf_finish(&v->shelf);
}

/* A connection that has said `h`. */
static int call_victim(victim *v, const hello *h)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (void *)&v->at, sizeof v->at), 0);
    assert_int_equal(send(fd, h, sizeof *h, MSG_NOSIGNAL), sizeof *h);
    return fd;
}

static int befriend(victim *v)
{
    hello h = {MAGIC, 1, 0, {0}}, stranger = h;
    int fd;

    memcpy(h.token, v->token, sizeof h.token);
    close(call_victim(v, &stranger)); /* is left alone */
    fd = call_victim(v, &h);
    pthread_join(v->t, NULL);
    want_success(v->p.st);
    return fd;
}

static void test_stranger(void **state)
{
    victim v;

    (void)state;
    begin_victim(&v, "1");
    pthread_join(v.t, NULL);
    want_refusal(v.p.st, SD_DEADLINE,
                 "process 1 of 2 has not called process 0 within 1 s");
    end_victim(&v);
}

static void test_no_thread(void **state)
{
    hello h = {MAGIC, 1, 0, {0}};
    victim v;
    int fd;

    (void)state;
    no_thread = "xpu-far";
    begin_victim(&v, "60");
    memcpy(h.token, v.token, sizeof h.token);
    fd = call_victim(&v, &h);
    pthread_join(v.t, NULL);
    no_thread = "";
    want_refusal(v.p.st, SD_EXHAUSTED, "hears the other processes: ");
    close(fd);
    end_victim(&v);
}

/* What process 0 makes of a peer that reads its part of the sum and sends that;
 * copies[...] of what process 0 sends first, so that it is of that run. */
typedef void (*answer)(head *h, uint8_t *data);

static void read_whole(int fd, void *to, size_t n)
{
    assert_int_equal(recv(fd, to, n, MSG_WAITALL), n);
}

static void answered(answer how, size_t bytes, bool ends, sd_code code,
                     const char *text)
{
    static uint8_t data[4096];
    job j = {.n = 1};
    head h;
    victim v;
    gang *g;
    int fd;

    begin_victim(&v, "60");
    fd = befriend(&v);
    j.at[0] = v.p;
    g = calloc(1, sizeof *g);
    assert_non_null(g);
    *g = (gang){.job = &j, .name = "answered"};
    g->t = compile(&j.at[0], sum->text);
    for (int i = 0; i < 4; i++)
        g->process[i] = i % 2;
    g->places = (xpu_places){4, g->process, 7};
    load(g, 0, sum->k);
    load(g, 2, sum->k);
    want_success(start(g, 0));
    read_whole(fd, &h, sizeof h);
    assert_int_equal(h.bytes, 2 * sum->k * sizeof(int32_t));
    read_whole(fd, data, h.bytes);
    how(&h, data);
    if (bytes)
        assert_int_equal(send(fd, &h, SD_MIN(bytes, sizeof h), MSG_NOSIGNAL),
                         SD_MIN(bytes, sizeof h));
    if (bytes > sizeof h)
        assert_int_equal(send(fd, data, bytes - sizeof h, MSG_NOSIGNAL),
                         bytes - sizeof h);
    if (ends)
        close(fd);
    ends_badly(g, 0, code, text);
    if (!ends)
        close(fd);
    end_gang(g);
    end_victim(&v);
}

static void as_it_is(head *h, uint8_t *data)
{
    (void)h;
    (void)data;
}

static void no_magic(head *h, uint8_t *data)
{
    (void)data;
    h->magic = 7;
}

static void no_kind(head *h, uint8_t *data)
{
    (void)data;
    h->kind = 7;
}

static void no_code(head *h, uint8_t *data)
{
    (void)data;
    h->kind = 2;
    h->step = 0;
}

static void endless(head *h, uint8_t *data)
{
    (void)data;
    h->bytes = UINT64_MAX;
}

static void too_short(head *h, uint8_t *data)
{
    (void)data;
    h->bytes = 4;
}

static void another(head *h, uint8_t *data)
{
    (void)data;
    h->program++;
    h->step = 99;
}

static void failure(head *h, uint8_t *data)
{
    h->kind = 2;
    h->step = SD_EXHAUSTED;
    h->bytes = 5;
    memcpy(data, "alas!", 5);
}

static void test_answers(void **state)
{
    (void)state;
    answered(as_it_is, 0, true, SD_UNAVAILABLE,
             "process 1 of 2 is gone: it has ended");
    answered(as_it_is, 10, true, SD_UNAVAILABLE, "it ended within a message");
    answered(as_it_is, sizeof(head) + 3, true, SD_UNAVAILABLE,
             "it ended within a message");
    answered(no_magic, sizeof(head), false, SD_UNAVAILABLE,
             "process 1 of 2 is gone: it sends what is no message");
    answered(no_kind, sizeof(head), false, SD_UNAVAILABLE, "is no message");
    answered(no_code, sizeof(head), false, SD_UNAVAILABLE, "is no message");
    answered(endless, sizeof(head), false, SD_UNAVAILABLE,
             "it sends what is no message");
    answered(too_short, sizeof(head) + 4, false, SD_PRECONDITION,
             "process 1 of 2 sends 4 bytes, not 40");
    answered(another, sizeof(head) + 40, false, SD_PRECONDITION,
             "process 1 of 2 runs another program there, as its run 0 over");
    answered(failure, sizeof(head) + 5, false, SD_EXHAUSTED,
             "process 1 of 2: alas!");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_poisoned_argument),
        cmocka_unit_test(test_refused_call),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_stranger),
        cmocka_unit_test(test_no_thread),
        cmocka_unit_test(test_answers),
    };

    return cmocka_run_group_tests_name("processes", tests, NULL, NULL);
}
