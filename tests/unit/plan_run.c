/* The steps of a plan, and the memory that they work in. */
#include "plan_run.h"

#include <stdlib.h>

enum { PAST = 64, FILL = 0xCD }; /* what stands behind each buffer */

typedef struct {
    const plan *p;
    char **buffer;
    bool backward;
} machine;

static char *address(const machine *m, thunk_slice s)
{
    return m->buffer[s.buffer] + s.offset;
}

static sd_status run_seq(const machine *m, const thunk_seq *s);

/* The condition has the last word on a count that is known. */
static sd_status run_while(const machine *m, const thunk *t, const char *pred)
{
    sd_status st = NULL;
    int64_t n = 0;

    while (!st && !(st = run_seq(m, &t->seq[0])) && *pred) {
        st = run_seq(m, &t->seq[1]);
        n++;
    }
    if (!st && t->trip >= 0 && n != t->trip)
        return sd_error(SD_INTERNAL, "%s turns %" PRId64 " times, not %" PRId64,
                        t->name, n, t->trip);
    return st;
}

/* Who reads and writes elements holds each against its slot. */
static sd_status hold_slots(const machine *m, const thunk *t)
{
    const plan_kernel *k = m->p->kernel[t->kernel];

    for (int i = 0; i < t->narg; i++) {
        thunk_slice s = t->arg[i];
        size_t bytes =
            (size_t)k->slot[i].count * sd_dtype_bytes(k->slot[i].dtype);

        if (bytes > s.bytes ||
            s.offset + s.bytes > m->p->program->buffer[s.buffer].bytes)
            return sd_error(SD_INTERNAL,
                            "%s: slot %d has %zu bytes, its slice %" PRIu64,
                            k->name, i, bytes, s.bytes);
    }
    return NULL;
}

static sd_status run_step(const machine *m, const thunk *t)
{
    char *ptr[80];
    int32_t which;
    sd_status st;

    for (int i = 0; i < t->narg; i++)
        ptr[i] = address(m, t->arg[i]);
    switch (t->kind) {
    case THUNK_KERNEL:
        if ((st = hold_slots(m, t)))
            return st;
        return plan_run_kernel(m->p->kernel[t->kernel], ptr, m->backward);
    case THUNK_COPY:
        memmove(ptr[1], ptr[0], t->arg[0].bytes);
        return NULL;
    case THUNK_LIBCALL:
        plan_run_libcall(t, ptr);
        return NULL;
    case THUNK_WHILE:
        return run_while(m, t, ptr[0]);
    case THUNK_COND:
        which = t->arg[0].bytes == 1 ? !*ptr[0] : *(int32_t *)(void *)ptr[0];
        if (which < 0 || which >= t->nseq)
            which = t->nseq - 1;
        return run_seq(m, &t->seq[which]);
    default:
        return sd_error(SD_UNIMPLEMENTED, "%s", thunk_kind_name[t->kind]);
    }
}

static sd_status run_seq(const machine *m, const thunk_seq *s)
{
    sd_status st = NULL;

    for (int i = 0; i < s->n && !st; i++)
        st = sd_note(run_step(m, &s->at[i]), "%s", s->at[i].name);
    return st;
}

sd_status plan_run(const plan *p, void *const *arg, void *const *out,
                   bool backward)
{
    const thunk_program *pr = p->program;
    machine m = {p, calloc((size_t)pr->nbuffer + 1, sizeof(char *)), backward};
    sd_status st;

    for (int i = 0; i < pr->nbuffer; i++) {
        const thunk_buffer *b = &pr->buffer[i];
        size_t bytes = (size_t)b->bytes;

        m.buffer[i] = malloc(bytes + PAST);
        memset(m.buffer[i], FILL, bytes + PAST);
        if (bytes == 0)
            continue;
        if (b->kind == THUNK_B_PARAM)
            memcpy(m.buffer[i], arg[b->index], bytes);
        else if (b->kind == THUNK_B_CONST)
            memcpy(m.buffer[i], pr->constants + b->at, bytes);
        else if (b->kind == THUNK_B_OUTPUT && b->alias >= 0)
            memcpy(m.buffer[i], arg[b->alias], bytes);
    }
    st = run_seq(&m, &pr->seq);
    for (int i = 0; i < pr->nbuffer; i++) {
        const thunk_buffer *b = &pr->buffer[i];

        for (int j = 0; !st && j < PAST; j++)
            if ((uint8_t)m.buffer[i][b->bytes + (uint64_t)j] != FILL)
                st = sd_error(SD_INTERNAL, "buffer %d was written past its end",
                              i);
        if (b->kind == THUNK_B_OUTPUT && b->bytes)
            memcpy(out[b->index], m.buffer[i], (size_t)b->bytes);
        if (b->kind == THUNK_B_PARAM && !st && b->bytes &&
            memcmp(m.buffer[i], arg[b->index], (size_t)b->bytes) != 0)
            st = sd_error(SD_INTERNAL, "parameter %d was written", b->index);
        free(m.buffer[i]);
    }
    free(m.buffer);
    return st;
}
