/* The members of a gang on several CUDA devices of a driver that is not one
 * (fake_cuda.c), in one process or two, and their program: every kind of
 * collective between kernels that write over what was read, in a loop too. */
#ifndef CREW_H
#define CREW_H

#include "life.h"
#include "shelf.h"

enum { DEVICES = 4, PROCESSES = 2, N = 64, RUNS = 2, TURNS = 3 };

extern const int64_t everybody[DEVICES]; /* a group of all */

typedef struct {
    int n, nprocess;
    int64_t count; /* of elements of an argument */
    xpu_client *client[PROCESSES]; /* one a process, each of as many devices */
    shelf shelf;
    xpu_program *x[DEVICES];
    xpu_buffer *arg[DEVICES], *out[DEVICES], **outs[DEVICES];
    xpu_event *done[DEVICES];
    xpu_call call[DEVICES];
} crew;

extern bool crew_one_by_tcp; /* the second process, whatever the first goes by */

/* argv: the driver, the kernels' code and a linker, as a test's main has them.
 * False: there is no such file. */
bool crew_begin(char **argv);

thunk collective(thunk_program *p, thunk_collective c, int from, int to,
                 uint64_t bytes);
thunk_collective by_all(thunk_collective_kind kind, int64_t outer,
                        int64_t block);
thunk_program *work(const device_desc *d); /* the program */

/* count: of an argument's elements.  close_crew takes a half-made one, too. */
sd_status open_crew(crew *w, int n, int64_t count,
                    thunk_program *(*make)(const device_desc *d));
void close_crew(crew *w);
xpu_device *device(const crew *w, int i);
sd_status give(crew *w, int i, const float *data); /* member i's argument */
void drop_results(crew *w);
sd_status await(crew *w); /* what was executed: one error, or none */
sd_status get(xpu_buffer *b, float *to);
sd_status run_once(crew *w, int run); /* of `work`; fails where it is wrong */

/* All of it: opened, run RUNS times and closed again, in so many processes that
 * share the devices.  words: for the driver, "fail=3". */
sd_status life_in(int nprocess, const char *words);
sd_status life_of_gangs(const char *words);     /* in one process */
sd_status life_in_a_row(const char *words);     /* nothing beside anything */
sd_status life_of_processes(const char *words); /* in two, on the same cards */

/* Lives in which call 1, 1 + step, ... of those that are counted fails, as
 * `word` and `more` tell the driver: each ends with one error, or well. */
void fail_each(sd_status (*live)(const char *words), long (*count)(void),
               const char *word, const char *more, int step);

#endif
