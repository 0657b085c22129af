/* What the two fake drivers share: the words of their environment variables,
 * kernels by name, and threads that run commands one after the other, as a
 * queue of OpenCL and a stream of CUDA do. */
#ifndef FAKE_H
#define FAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define API       __attribute__((visibility("default")))
#define MOST_ARGS 136 /* a kernel of ours has two words for each of 64 devices */

typedef void fake_kernel(void **slot, long first, long last, void *scratch);

/* The command of a driver begins with one of these. */
typedef struct fake_command fake_command;
struct fake_command {
    fake_command *next;
    fake_kernel *fn; /* NULL: what it copies, if anything */
    void *arg[MOST_ARGS];
    long tiles;
    void *to;
    const void *from;
    size_t bytes;
};

typedef struct {
    pthread_t thread;
    fake_command *head, **tail;
    bool runs, busy, stop; /* runs: from its first command on */
    /* Runs and frees the command.  The lock is held, but while it runs. */
    void (*serve)(void *owner, fake_command *c);
    void *owner;
    pthread_cond_t fed; /* there is a command, or it is to stop */
} fake_worker;

/* Of workers, of events, and of what a driver's words say. */
extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_changed;
extern bool fake_is_held; /* no kernel begins */
void fake_hold(bool on);

/* The number of `name=` among the words with commas of the variable. */
long fake_word(const char *variable, const char *name, long otherwise);

/* The kernel of xpu_kernels.c; of another name `otherwise`. */
fake_kernel *fake_find_kernel(const char *name, fake_kernel *otherwise);
/* It computes nothing. */
void fake_nothing(void **slot, long first, long last, void *scratch);
void fake_run_kernel(const fake_command *c);

void fake_start(fake_worker *w, void (*serve)(void *owner, fake_command *c),
                void *owner);
/* When all that it has has run. */
void fake_stop(fake_worker *w);
/* Of these two the lock is held. */
void fake_append(fake_worker *w, fake_command *c);
void fake_wait_idle(fake_worker *w);

#endif
