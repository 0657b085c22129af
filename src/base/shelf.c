/* What is dear to make and may be used again, by one user at a time.  Few
 * things stand on a shelf, so a list is looked through. */
#include "base.h"

#include <pthread.h>
#include <stdlib.h>

enum { MOST = 16 };

typedef struct {
    const void *kind;
    int64_t variant;
    void *thing;
    void (*destroy)(void *thing);
} place;

struct sd_shelf {
    pthread_mutex_t lock; /* of what follows */
    int n;
    place at[MOST];
};

sd_shelf *sd_shelf_create(void)
{
    sd_shelf *s = calloc(1, sizeof *s);

    if (s)
        pthread_mutex_init(&s->lock, NULL);
    return s;
}

void sd_shelf_destroy(sd_shelf *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n; i++)
        s->at[i].destroy(s->at[i].thing);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void *sd_shelf_take(sd_shelf *s, const void *kind, int64_t variant)
{
    void *thing = NULL;

    if (!s)
        return NULL;
    pthread_mutex_lock(&s->lock);
    for (int i = s->n; i-- > 0 && !thing;)
        if (s->at[i].kind == kind && s->at[i].variant == variant) {
            thing = s->at[i].thing;
            s->at[i] = s->at[--s->n];
        }
    pthread_mutex_unlock(&s->lock);
    return thing;
}

void sd_shelf_put(sd_shelf *s, const void *kind, int64_t variant, void *thing,
                  void (*destroy)(void *thing))
{
    bool kept = false;

    if (s) {
        pthread_mutex_lock(&s->lock);
        kept = s->n < MOST;
        if (kept)
            s->at[s->n++] = (place){kind, variant, thing, destroy};
        pthread_mutex_unlock(&s->lock);
    }
    if (!kept)
        destroy(thing);
}
