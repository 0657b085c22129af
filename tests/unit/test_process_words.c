/* What a process may meet in another that is damaged, or none of ours: what it
 * says in the store, and what it sends.  The test itself plays it. */
#include "processes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "want_error.h"

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

/* ---- what another may say in the store ---- */

/* Process 1 of 2, where process 0 has said `words`. */
static void hears(const void *words, size_t n, sd_code code, const char *text)
{
    process p = {.me = 1, .n = 2, .patience = "1"};
    shelf s;

    shelf_init(&s);
    p.shelf = &s;
    if (words)
        shelf_put(&s, "/0", (sd_bytes){words, n});
    process_open(&p);
    process_join(&p);
    want_refusal(p.st, code, text);
    process_leave(&p);
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
    process_open(p);
    process_join(p);
    want_refusal(p->st, code, text);
    process_leave(p);
}

static void test_words(void **state)
{
    job *j = job_begin(2);
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
    /* the number of devices stands behind the offer, whose length is before it,
     * and the length of a library's, which is none */
    at = memmem(many, words->len, "tcp ", 4);
    at[at[-1] + 1] = 0;
    hears(many, words->len, SD_INVALID, "0 devices: 1 to 4096 are possible");
    free(many);
    said_by_nobody(&p, NULL, 0, 2, SD_ALREADY_EXISTS,
                   "telling the other processes: sundog/process/0 is there");
    said_by_nobody(&p, "home", 0, 2, SD_INVALID,
                   "SUNDOG_ADDRESS=home: an IPv4 address");
    said_by_nobody(&p, "192.0.2.1", 0, 2, SD_UNAVAILABLE,
                   "listening at SUNDOG_ADDRESS=192.0.2.1: ");
    said_by_nobody(&p, NULL, 2, 2, SD_INVALID, "process 2 of 2");
    job_end(j);
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
    process_open(&v->p);
    assert_int_equal(pthread_create(&v->t, NULL, process_join, &v->p), 0);
    want_success(shelf_get(&v->shelf, "/0", 60000, &words));
    assert_non_null(at = memmem(words.at, words.len, "tcp ", 4));
    assert_int_equal(sscanf(at, "tcp %31s %u ", address, &port), 2);
    v->at = (struct sockaddr_in){.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, address, &v->at.sin_addr);
    at = strchr(strchr(at + 4, ' ') + 1, ' ') + 1;
    for (int i = 0; i < 16; i++)
        sscanf(at + 2 * i, "%2hhx", &v->token[i]);
    shelf_put(&v->shelf, "/1",
              (sd_bytes){(const uint8_t *)words.at, words.len});
    sd_buf_finish(&words);
}

static void end_victim(victim *v)
{
    process_leave(&v->p);
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
    g->t = gang_compile(xpu_client_device(v.p.client, 0), &v.p.opt,
                        gang_programs[0].text);
    for (int i = 0; i < 4; i++)
        g->process[i] = i % 2;
    g->places = (xpu_places){4, g->process, 7};
    gang_load(g, 0, gang_programs[0].k);
    gang_load(g, 2, gang_programs[0].k);
    want_success(gang_start(g, 0));
    read_whole(fd, &h, sizeof h);
    assert_int_equal(h.bytes, 2 * gang_programs[0].k * sizeof(int32_t));
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
    gang_ends_badly(g, 0, code, text);
    if (!ends)
        close(fd);
    gang_end(g);
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

/* MPI that is asked for and not there leaves the processes to TCP. */
static void test_no_mpi(void **state)
{
    job *j;
    gang *g;

    (void)state;
    setenv("SUNDOG_WIRE", "mpi", 1);
    j = job_begin(2);
    g = gang_begin(j, &gang_programs[0], true);
    gang_run_well(g);
    gang_end(g);
    job_end(j);
    unsetenv("SUNDOG_WIRE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),     cmocka_unit_test(test_stranger),
        cmocka_unit_test(test_no_thread), cmocka_unit_test(test_answers),
        cmocka_unit_test(test_no_mpi),
    };

    return cmocka_run_group_tests_name("process words", tests, NULL, NULL);
}
