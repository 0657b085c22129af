/* Processes of one job as tests have them: each is a client of its own in this
 * process, which sees the others by a store (a shelf) and by its sockets alone. */
#ifndef PROCESSES_H
#define PROCESSES_H

#include "gang_programs.h"
#include "shelf.h"

enum { MOST = SHELVES, DEVICES = 8, MOST_OUT = 2 };

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

void process_open(process *p);
void *process_join(void *arg);
void process_leave(process *p);
/* Each has joined, or its `st`, which is the caller's, says why not. */
job *job_try(int n, const char *patience);
job *job_begin(int n);
void job_end(job *j);

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

void gang_load(gang *g, int participant, int k);
gang *gang_begin_at(job *j, int first, const gang_program *p, bool together);
gang *gang_begin(job *j, const gang_program *p, bool together);
void gang_end(gang *g);
sd_status gang_start(gang *g, int p);
void gang_start_all(gang *g);
void gang_drop(gang *g, int p);
void gang_ends_well(gang *g);
void gang_ends_badly(gang *g, int p, sd_code code, const char *text);
void gang_run_well(gang *g);
/* Runs it so many times; how many elements are not what is wanted. */
int job_run(job *j, const gang_program *p, bool together, int times);

#endif
