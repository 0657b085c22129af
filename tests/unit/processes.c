/* Processes of one job, their store, and gangs over them. */
#include "processes.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "want_error.h"

/* ---- a job ---- */

/* One at a time: clients look for libraries by the process's environment. */
void process_open(process *p)
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

void *process_join(void *arg)
{
    process *p = arg;
    xpu_store s = {shelf_get, shelf_put, p->shelf};

    p->st = xpu_client_join(p->client, &p->opt, p->me, p->n, &s, &p->world,
                            &p->nworld);
    return NULL;
}

void process_leave(process *p)
{
    xpu_client_destroy(p->client);
    p->client = NULL;
    free(p->world);
    p->world = NULL;
}

job *job_try(int n, const char *patience)
{
    job *j = calloc(1, sizeof *j);
    pthread_t t[MOST];

    assert_non_null(j);
    j->n = n;
    shelf_init(&j->shelf);
    for (int i = 0; i < n; i++) {
        j->at[i] = (process){
            .shelf = &j->shelf, .me = i, .n = n, .patience = patience};
        process_open(&j->at[i]);
    }
    for (int i = 0; i < n; i++)
        assert_int_equal(pthread_create(&t[i], NULL, process_join, &j->at[i]),
                         0);
    for (int i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    return j;
}

job *job_begin(int n)
{
    job *j = job_try(n, NULL);

    for (int i = 0; i < n; i++)
        want_success(j->at[i].st);
    return j;
}

void job_end(job *j)
{
    for (int i = 0; i < j->n; i++)
        process_leave(&j->at[i]);
    shelf_finish(&j->shelf);
    free(j);
}

/* ---- a program, and its runs ---- */

void gang_load(gang *g, int participant, int k)
{
    process *w = &g->job->at[g->process[participant]];
    crew *c = &g->of[w->me];
    int i = c->n++;

    c->participant[i] = participant;
    want_success(xpu_program_load_as(xpu_client_device(w->client, g->first + i),
                                     g->t, participant, &c->x[i]));
    c->arg[i] = gang_argument(xpu_client_device(w->client, g->first + i),
                              participant, k);
    c->outs[i] = c->out[i];
    c->call[i] = (xpu_call){.arg = &c->arg[i], .narg = 1};
}

/* Each process has those that stand together; or every so many-th. */
gang *gang_begin_at(job *j, int first, const gang_program *p, bool together)
{
    gang *g = calloc(1, sizeof *g);
    int each = (p->n + j->n - 1) / j->n;

    assert_non_null(g);
    g->job = j;
    g->first = first;
    g->name = p->name;
    g->t = gang_compile(xpu_client_device(j->at[0].client, 0), &j->at[0].opt,
                        p->text);
    for (int i = 0; i < p->n; i++) {
        g->process[i] = together ? i / each : i % j->n;
        gang_load(g, i, p->k);
    }
    g->places = (xpu_places){
        p->n, g->process, sd_hash(g->process, (size_t)p->n * sizeof(int), 0)};
    return g;
}

gang *gang_begin(job *j, const gang_program *p, bool together)
{
    return gang_begin_at(j, 0, p, together);
}

void gang_end(gang *g)
{
    for (int p = 0; p < g->job->n; p++)
        for (int i = 0; i < g->of[p].n; i++) {
            xpu_buffer_release(g->of[p].arg[i]);
            xpu_program_release(g->of[p].x[i]);
        }
    thunk_program_release(g->t);
    free(g);
}

sd_status gang_start(gang *g, int p)
{
    crew *c = &g->of[p];

    return c->n ? xpu_execute_among(&g->places, c->n, c->x, c->call, c->outs,
                                    c->done)
                : NULL;
}

void gang_start_all(gang *g)
{
    for (int p = 0; p < g->job->n; p++)
        want_success(gang_start(g, p));
}

void gang_drop(gang *g, int p)
{
    for (int i = 0; i < g->of[p].n; i++) {
        for (int o = 0; o < g->t->noutput; o++)
            xpu_buffer_release(g->of[p].out[i][o]);
        xpu_event_release(g->of[p].done[i]);
    }
}

void gang_ends_well(gang *g)
{
    for (int p = 0; p < g->job->n; p++)
        for (int i = 0; i < g->of[p].n; i++)
            want_success(xpu_event_wait(g->of[p].done[i]));
    for (int p = 0; p < g->job->n; p++)
        gang_drop(g, p);
}

void gang_ends_badly(gang *g, int p, sd_code code, const char *text)
{
    for (int i = 0; i < g->of[p].n; i++)
        want_error(xpu_event_wait(g->of[p].done[i]), code, text, g->name);
    gang_drop(g, p);
}

void gang_run_well(gang *g)
{
    gang_start_all(g);
    gang_ends_well(g);
}

int job_run(job *j, const gang_program *p, bool together, int times)
{
    gang *g = gang_begin(j, p, together);
    int bad = 0;

    while (times-- > 0) {
        gang_start_all(g);
        for (int k = 0; k < j->n; k++)
            for (int i = 0; i < g->of[k].n; i++) {
                want_success(xpu_event_wait(g->of[k].done[i]));
                for (int o = 0; o < g->t->noutput; o++)
                    bad += gang_count_wrong(p, g->of[k].out[i][o],
                                            g->of[k].participant[i], o);
            }
        for (int k = 0; k < j->n; k++)
            gang_drop(g, k);
    }
    gang_end(g);
    return bad;
}
