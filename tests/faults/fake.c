/* What the two fake drivers share. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#include "../unit/xpu_kernels.c"

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_changed = PTHREAD_COND_INITIALIZER;
bool fake_is_held;

void fake_hold(bool on)
{
    pthread_mutex_lock(&fake_lock);
    fake_is_held = on;
    pthread_cond_broadcast(&fake_changed);
    pthread_mutex_unlock(&fake_lock);
}

long fake_word(const char *variable, const char *name, long otherwise)
{
    const char *all = getenv(variable), *at;
    size_t n = strlen(name);

    for (at = all; at && (at = strstr(at, name)); at += n)
        if ((at == all || at[-1] == ',') && at[n] == '=')
            return strtol(at + n + 1, NULL, 10);
    return otherwise;
}

/* ---- kernels ---- */

void fake_nothing(void **slot, long first, long last, void *scratch)
{
    (void)slot, (void)first, (void)last, (void)scratch;
}

fake_kernel *fake_find_kernel(const char *name, fake_kernel *otherwise)
{
    static const struct {
        const char *name;
        fake_kernel *fn;
    } known[] = {{"square", square},   {"accumulate", accumulate},
                 {"add_two", add_two}, {"below", below},
                 {"step", step},       {"slow", slow},
                 {"imports", imports}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name))
            return known[i].fn;
    return otherwise;
}

void fake_run_kernel(const fake_command *c)
{
    float scratch[4096];

    c->fn((void **)c->arg, 0, c->tiles, scratch);
}

/* ---- workers ---- */

static void *work(void *arg)
{
    fake_worker *w = arg;
    fake_command *c;

    pthread_mutex_lock(&fake_lock);
    for (;;) {
        while (!w->head && !w->stop)
            pthread_cond_wait(&w->fed, &fake_lock);
        if (!(c = w->head))
            break;
        if (!(w->head = c->next))
            w->tail = &w->head;
        w->busy = true;
        w->serve(w->owner, c);
        w->busy = false;
        if (!w->head)
            pthread_cond_broadcast(&fake_changed);
    }
    pthread_mutex_unlock(&fake_lock);
    return NULL;
}

void fake_start(fake_worker *w, void (*serve)(void *owner, fake_command *c),
                void *owner)
{
    w->tail = &w->head;
    w->serve = serve;
    w->owner = owner;
    pthread_cond_init(&w->fed, NULL);
}

void fake_stop(fake_worker *w)
{
    pthread_mutex_lock(&fake_lock);
    w->stop = true;
    pthread_cond_signal(&w->fed);
    pthread_mutex_unlock(&fake_lock);
    if (w->runs)
        pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->fed);
}

void fake_append(fake_worker *w, fake_command *c)
{
    if (!w->runs && pthread_create(&w->thread, NULL, work, w))
        abort();
    w->runs = true;
    c->next = NULL;
    *w->tail = c;
    w->tail = &c->next;
    pthread_cond_signal(&w->fed);
}

void fake_wait_idle(fake_worker *w)
{
    while (w->busy || w->head)
        pthread_cond_wait(&fake_changed, &fake_lock);
}
