/* The members of a gang on a CUDA driver that is not one, in a process or two:
 * crew.h. */
#include "crew.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

bool crew_one_by_tcp;

/* ---- a program ---- */

const int64_t everybody[DEVICES] = {2, 0, 3, 1};
static const int64_t pairs[] = {0, 1, 1, 2, 3, 0}; /* nobody sends to 3 */
static const int64_t two_groups[] = {1, 3, 0, 2};

thunk collective(thunk_program *p, thunk_collective c, int from, int to,
                 uint64_t bytes)
{
    uint64_t out =
        c.kind == THUNK_COLL_GATHER ? bytes * (uint64_t)c.size : bytes;
    thunk_slice s[2] = {{from, 0, bytes}, {to, 0, out}};
    thunk t = {.kind = THUNK_COLLECTIVE,
               .name = thunk_collective_name[c.kind],
               .narg = 2,
               .arg = sd_arena_copy(p->arena, s, sizeof s)};

    thunk_set_collective(p, &t, &c);
    return t;
}

thunk_collective by_all(thunk_collective_kind kind, int64_t outer,
                        int64_t block)
{
    return (thunk_collective){.kind = kind,
                              .outer = outer,
                              .block = block,
                              .ngroup = 1,
                              .size = DEVICES,
                              .member = everybody};
}

static thunk add(thunk_program *p, int from, uint64_t at, int to, int num)
{
    thunk t = call(p, 0, from, to, num);

    t.arg[0].offset = at;
    t.arg[0].bytes = N * 4;
    t.arg[1].bytes = N * 4;
    return t;
}

/* y = the sum of both x of a group: read where they lie, or brought to g. */
static int sum_of_two(thunk_program *p, int x, int g, int y, int num, thunk *t)
{
    int two = kernel(p, "add_two", N, 1);
    thunk_slice s[] = {
        {g, 0, N * 4}, {g, N * 4, N * 4}, {y, 0, N * 4}, {num, 0, 4}};

    t[0] = collective(p,
                      (thunk_collective){.kind = THUNK_COLL_GATHER,
                                         .outer = 1,
                                         .block = N * 4,
                                         .ngroup = 2,
                                         .size = 2,
                                         .member = two_groups},
                      x, g, N * 4);
    p->kernel[two].nslot = 4;
    if (p->device.features & DEVICE_HAS_PEERS) {
        s[1] = t[0].arg[0];
        t[0].arg = sd_arena_copy(p->arena, s + 1, 3 * sizeof *s);
        t[0].narg = 3;
        t[0].kernel = two;
        return 1;
    }
    t[1] = (thunk){.kind = THUNK_KERNEL,
                   .name = "add_two",
                   .narg = 4,
                   .arg = sd_arena_copy(p->arena, s, sizeof s),
                   .kernel = two};
    return 2;
}

static thunk beside(thunk_program *p, const thunk *t, int n)
{
    thunk_seq seq = {sd_arena_copy(p->arena, t, (size_t)n * sizeof *t), n};

    return (thunk){.kind = THUNK_BESIDE,
                   .name = t->name,
                   .nseq = 1,
                   .seq = sd_arena_copy(p->arena, &seq, sizeof seq)};
}

static const thunk join_beside = {.kind = THUNK_JOIN, .name = "join"};

/* x = 2 a; g = gathered rows of it; h = g turned round, in two rows; x = what
 * comes of h by pairs; x = that of the second of two groups of two; then TURNS
 * times g = all x, x += the second of these; y = both x of a group; out = y.
 * Some of it is beside what is none of its business. */
thunk_program *work(const device_desc *d)
{
    thunk_program *p = program(d, 1, 1, N);
    int num = number(p, N), x = temp(p, N * 4), y = temp(p, N * 4);
    int g = temp(p, DEVICES * N * 4), h = temp(p, DEVICES * N * 4);
    thunk t[12], turn[3], aside[2];
    int n = 9;
    thunk_seq *seq = sd_arena_array(p->arena, thunk_seq, 2);
    thunk_slice copy[4] = {
        {0, 0, N * 4}, {x, 0, N * 4}, {y, 0, N * 4}, {1, 0, N * 4}};

    p->npartition = DEVICES;
    kernel(p, "accumulate", N, 1);
    t[0] = (thunk){.kind = THUNK_COPY,
                   .name = "copy",
                   .narg = 2,
                   .arg = sd_arena_copy(p->arena, copy, 2 * sizeof *copy)};
    t[1] = add(p, 0, 0, x, num);
    aside[0] = collective(p, by_all(THUNK_COLL_GATHER, 4, N), x, g, N * 4);
    aside[1] = collective(p, by_all(THUNK_COLL_ALL_TO_ALL, 2, N / 2 * 4), g, h,
                          DEVICES * N * 4);
    t[2] = beside(p, aside, 2);
    t[3] = add(p, 0, 0, y, num);
    t[4] = join_beside;
    t[5] = collective(p,
                      (thunk_collective){.kind = THUNK_COLL_PERMUTE,
                                         .outer = 1,
                                         .block = N * 4,
                                         .ngroup = 3,
                                         .size = 2,
                                         .member = pairs},
                      h, y, N * 4);
    t[6] = add(p, y, 0, h, num);
    t[7] = collective(p,
                      (thunk_collective){.kind = THUNK_COLL_BROADCAST,
                                         .outer = 1,
                                         .block = N * 4,
                                         .ngroup = 2,
                                         .size = 2,
                                         .member = two_groups},
                      h, x, N * 4);
    aside[0] = collective(p, by_all(THUNK_COLL_GATHER, 1, N * 4), x, g, N * 4);
    turn[0] = beside(p, aside, 1);
    turn[1] = join_beside;
    turn[2] = add(p, g, N * 4, x, num);
    seq[1] = (thunk_seq){sd_arena_copy(p->arena, turn, sizeof turn), 3};
    t[8] = (thunk){.kind = THUNK_WHILE,
                   .name = "while",
                   .narg = 1,
                   .arg = sd_arena_copy(p->arena, &(thunk_slice){x, 0, 1},
                                        sizeof(thunk_slice)),
                   .nseq = 2,
                   .seq = seq,
                   .trip = TURNS};
    t[n++] = beside(p, aside, sum_of_two(p, x, g, y, num, aside));
    t[n++] = join_beside;
    t[n++] =
        (thunk){.kind = THUNK_COPY,
                .name = "copy",
                .narg = 2,
                .arg = sd_arena_copy(p->arena, copy + 2, 2 * sizeof *copy)};
    steps(p, n, t);
    return p;
}

/* Nothing beside anything: members wait for each other on their devices. */
static thunk_seq in_a_row(thunk_program *p, const thunk_seq *s)
{
    sd_vec(thunk) all = {0};

    for (int i = 0; i < s->n; i++) {
        thunk t = s->at[i];

        if (t.kind == THUNK_JOIN)
            continue;
        if (t.kind == THUNK_BESIDE) {
            for (int k = 0; k < t.seq->n; k++)
                *sd_push(p->arena, &all) = t.seq->at[k];
            continue;
        }
        for (int k = 0; k < t.nseq; k++)
            t.seq[k] = in_a_row(p, &t.seq[k]);
        *sd_push(p->arena, &all) = t;
    }
    return (thunk_seq){all.at, all.n};
}

static thunk_program *work_in_a_row(const device_desc *d)
{
    thunk_program *p = work(d);

    p->seq = in_a_row(p, &p->seq);
    return p;
}

/* ---- what it makes ---- */

static int place(const int64_t *member, int n, int me)
{
    int i = 0;

    while (i < n && member[i] != me)
        i++;
    return i;
}

static void gather(float x[DEVICES][N], float g[DEVICES][DEVICES * N], int rows)
{
    int k = N / rows;

    for (int p = 0; p < DEVICES; p++)
        for (int o = 0; o < rows; o++)
            for (int j = 0; j < DEVICES; j++)
                memcpy(&g[p][(o * DEVICES + j) * k], &x[everybody[j]][o * k],
                       (size_t)k * sizeof(float));
}

static void expected(float a[DEVICES][N], float x[DEVICES][N])
{
    static float g[DEVICES][DEVICES * N], h[DEVICES][DEVICES * N], y[N];

    for (int p = 0; p < DEVICES; p++)
        for (int i = 0; i < N; i++)
            x[p][i] = 2 * a[p][i];
    gather(x, g, 4);
    for (int p = 0; p < DEVICES; p++)
        for (int o = 0; o < 2; o++)
            for (int j = 0; j < DEVICES; j++)
                memcpy(&h[p][(o * DEVICES + j) * N / 2],
                       &g[everybody[j]]
                         [(o * DEVICES + place(everybody, DEVICES, p)) * N / 2],
                       N / 2 * sizeof(float));
    memcpy(g, h, sizeof g);
    for (int p = 0; p < DEVICES; p++) {
        memset(y, 0, sizeof y);
        for (int i = 0; i < 3; i++)
            if (pairs[2 * i + 1] == p)
                memcpy(y, g[pairs[2 * i]], sizeof y);
        for (int i = 0; i < N; i++)
            h[p][i] += y[i];
    }
    for (int p = 0; p < DEVICES; p++)
        memcpy(x[p], h[two_groups[place(two_groups, DEVICES, p) / 2 * 2]],
               N * sizeof(float));
    for (int k = 0; k < TURNS; k++) {
        gather(x, g, 1);
        for (int p = 0; p < DEVICES; p++)
            for (int i = 0; i < N; i++)
                x[p][i] += g[p][N + i];
    }
    memcpy(g, x, sizeof *x * DEVICES);
    for (int p = 0; p < DEVICES; p++) {
        const int64_t *both =
            two_groups + place(two_groups, DEVICES, p) / 2 * 2;

        for (int i = 0; i < N; i++)
            x[p][i] =
                ((float (*)[N])g)[both[0]][i] + ((float (*)[N])g)[both[1]][i];
    }
}

/* ---- a life ---- */

xpu_device *device(const crew *w, int i)
{
    int each = w->n / w->nprocess;

    return xpu_client_device(w->client[i / each], i % each);
}

typedef struct {
    crew *w;
    int me;
    const sd_options *opt;
    sd_status st;
} joining;

static void *join(void *arg)
{
    joining *j = arg;
    xpu_store s = {shelf_get, shelf_put, &j->w->shelf};
    xpu_place *world = NULL;
    int n;

    j->st = xpu_client_join(j->w->client[j->me], j->opt, j->me, PROCESSES, &s,
                            &world, &n);
    free(world);
    return NULL;
}

static sd_status join_all(crew *w, const sd_options *opt)
{
    sd_options tcp = *opt;
    joining j[PROCESSES];
    pthread_t t[PROCESSES];

    tcp.value[SD_OPT_WIRE] = "sockets";
    for (int i = 0; i < PROCESSES; i++) {
        j[i] = (joining){w, i, i && crew_one_by_tcp ? &tcp : opt, NULL};
        assert_int_equal(pthread_create(&t[i], NULL, join, &j[i]), 0);
    }
    for (int i = 0; i < PROCESSES; i++)
        pthread_join(t[i], NULL);
    sd_status_free(j[0].st ? j[1].st : NULL);
    return j[0].st ? j[0].st : j[1].st;
}

static sd_status open_crew_in(crew *w, int nprocess, int n, int64_t count,
                              thunk_program *(*make)(const device_desc *d))
{
    sd_options opt = life_options;
    thunk_program *p;
    sd_status st = NULL;

    opt.value[SD_OPT_DEVICE] = device_name;
    opt.value[SD_OPT_THREADS] = "1";
    opt.value[SD_OPT_LIBRARIES] = "0";
    *w = (crew){.n = n, .nprocess = nprocess, .count = count};
    shelf_init(&w->shelf);
    for (int i = 0; i < nprocess && !st; i++)
        st = xpu_client_create(&opt, &w->client[i]);
    if (st || (nprocess > 1 && (st = join_all(w, &opt))))
        return st;
    p = make(xpu_device_desc(device(w, 0)));
    for (int i = 0; i < n && !st; i++) {
        st = xpu_program_load_as(device(w, i), p, i, &w->x[i]);
        w->outs[i] = &w->out[i];
        w->call[i] = (xpu_call){.arg = &w->arg[i], .narg = 1};
    }
    thunk_program_release(p);
    return st;
}

sd_status open_crew(crew *w, int n, int64_t count,
                    thunk_program *(*make)(const device_desc *d))
{
    return open_crew_in(w, 1, n, count, make);
}

sd_status give(crew *w, int i, const float *data)
{
    xpu_buffer_release(w->arg[i]);
    w->arg[i] = NULL;
    return xpu_buffer_from_host(device(w, i), XPU_MEM_DEVICE, SD_F32, 1,
                                &w->count, data, NULL, true, &w->arg[i], NULL);
}

void drop_results(crew *w)
{
    for (int i = 0; i < w->n; i++) {
        xpu_buffer_release(w->out[i]);
        xpu_event_release(w->done[i]);
        w->out[i] = NULL;
        w->done[i] = NULL;
    }
}

void close_crew(crew *w)
{
    drop_results(w);
    for (int i = 0; i < w->n; i++) {
        xpu_buffer_release(w->arg[i]);
        xpu_program_release(w->x[i]);
    }
    for (int i = 0; i < w->nprocess; i++)
        if (w->client[i])
            xpu_client_destroy(w->client[i]);
    shelf_finish(&w->shelf);
}

sd_status get(xpu_buffer *b, float *to)
{
    xpu_event *e;
    sd_status st = xpu_buffer_to_host(b, 0, to, xpu_buffer_bytes(b), &e);

    if (st)
        return st;
    st = xpu_event_wait(e);
    xpu_event_release(e);
    return st;
}

/* Each process begins its own part, whatever became of the others'. */
static sd_status start(crew *w)
{
    static const int process[] = {0, 0, 1, 1};
    const xpu_places at = {DEVICES, process, 1};
    int each = w->n / w->nprocess;
    sd_status first = NULL;

    if (w->nprocess == 1)
        return xpu_execute_gang(w->n, w->x, w->call, w->outs, w->done);
    for (int i = 0; i < w->n; i += each) {
        sd_status st = xpu_execute_among(&at, each, w->x + i, w->call + i,
                                         w->outs + i, w->done + i);

        sd_status_free(first ? st : NULL);
        first = first ? first : st;
    }
    return first;
}

/* The error of all, which is one, or that of none; of a process, what has ended
 * in another one may be well. */
sd_status await(crew *w)
{
    sd_status first = w->done[0] ? xpu_event_wait(w->done[0]) : NULL;

    for (int i = 1; i < w->n; i++) {
        sd_status st = w->done[i] ? xpu_event_wait(w->done[i]) : NULL;

        if (w->nprocess > 1 && !first) {
            first = st;
            continue;
        }
        if (w->nprocess == 1 && !first != !st)
            fail_msg("participant %d: %s, 0: %s", i,
                     st ? st->message : "no error",
                     first ? first->message : "no error");
        sd_status_free(st);
    }
    return first;
}

sd_status run_once(crew *w, int run)
{
    static float a[DEVICES][N], want[DEVICES][N], got[N];
    sd_status st, other;

    for (int p = 0; p < w->n; p++)
        for (int i = 0; i < N; i++)
            a[p][i] = (float)(100 * p + 3 * i + run);
    expected(a, want);
    for (int p = 0; p < w->n; p++)
        if ((st = give(w, p, a[p])))
            return st;
    drop_results(w);
    st = start(w);
    other = await(w);
    sd_status_free(st ? other : NULL);
    if (st || (st = other))
        return st;
    for (int p = 0; p < w->n; p++) {
        if ((st = get(w->out[p], got)))
            return st;
        for (int i = 0; i < N; i++)
            if (got[i] != want[p][i])
                fail_msg("run %d, participant %d, [%d]: %g, not %g", run, p, i,
                         (double)got[i], (double)want[p][i]);
    }
    return NULL;
}

static sd_status life_of(thunk_program *(*make)(const device_desc *d),
                         int nprocess, const char *words)
{
    char all[128];
    crew w;
    sd_status st;

    snprintf(all, sizeof all, "devices=%d,%s", DEVICES / nprocess, words);
    fake_tell(all);
    st = open_crew_in(&w, nprocess, DEVICES, N, make);
    for (int run = 0; run < RUNS && !st; run++)
        st = run_once(&w, run);
    close_crew(&w);
    return st;
}

sd_status life_in(int nprocess, const char *words)
{
    return life_of(work, nprocess, words);
}

sd_status life_in_a_row(const char *words)
{
    return life_of(work_in_a_row, 1, words);
}

sd_status life_of_gangs(const char *words)
{
    return life_in(1, words);
}

/* Two processes that have the same two cards. */
sd_status life_of_processes(const char *words)
{
    return life_in(PROCESSES, words);
}

static bool is_clear(const sd_error *st)
{
    return strstr(st->message, "CUDA_ERROR_") ||
           strstr(st->message, "out of memory on device") ||
           strstr(st->message, "nccl");
}

/* Each of them, or one of `step`, where another of these has tried the rest. */
void fail_each(sd_status (*live)(const char *words), long (*count)(void),
               const char *word, const char *more, int step)
{
    assert_true(life_each(live, is_clear, count, word, more, step) > 5);
}

bool crew_begin(char **argv)
{
    if (!fake_open("cuda", argv[1]) || !dlopen(argv[3], RTLD_NOW | RTLD_LOCAL))
        return false;
    setenv("FAKE_LINK", "none", 1);
    device_name = "cuda";
    sd_log_init();
    ok(sd_file_read(argv[2], &life_code));
    object = life_code;
    return true;
}
