/* Places.  Parameters, outputs and constants have buffers of their own; other
 * storages are packed, the largest first, into outputs that are not computed
 * yet and into one slab. */
#include "plan_mem.h"

#include <stdlib.h>

enum { BLOCK = 64 };
typedef struct block block;

/* Memory in which temporaries are placed: an output before it is computed, or
 * the slab, which grows. */
typedef struct {
    const storage *output; /* NULL: the slab */
    int buffer;
    uint64_t room, end;
    sd_vec(block *) in; /* by offset */
} place;

static int by_size(const void *a, const void *b)
{
    const storage *x = *(storage *const *)a, *y = *(storage *const *)b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->from < y->from ? -1 : x->from > y->from;
}

static int by_room(const void *a, const void *b)
{
    const place *x = a, *y = b;

    if (x->room != y->room)
        return x->room < y->room ? 1 : -1;
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

/* Lives are in order and apart: plan_share saw to it. */
static bool live_together(const storage *x, const storage *y)
{
    int i = 0, j = 0;

    if (x->from > y->to || y->from > x->to)
        return false;
    while (i < x->all.n && j < y->all.n) {
        const plan_life *a = &x->all.at[i], *b = &y->all.at[j];

        if (a->to < b->from)
            i++;
        else if (b->to < a->from)
            j++;
        else
            return true;
    }
    return false;
}

/* Another memory is the host's, and far from the device. */
static bool is_in_device_memory(const hlo_module *m, int output)
{
    const char *name = m->output_memory ? m->output_memory[output] : NULL;

    return !name || strcmp(name, "device") == 0;
}

/* Some storages of a place, which follow each other by offset: where a program
 * is long, all live at other times than the one that is to be placed. */
struct block {
    storage *at[BLOCK];
    int n, from, to; /* hull of the lives */
};

static void put_at(block *b, int k, storage *s)
{
    memmove(b->at + k + 1, b->at + k, sizeof *b->at * (size_t)(b->n - k));
    b->at[k] = s;
    b->from = b->n ? SD_MIN(b->from, s->from) : s->from;
    b->to = b->n++ ? SD_MAX(b->to, s->to) : s->to;
}

/* The second half of a full block follows it as one of its own. */
static void split(plan_mem *pm, place *p, int i)
{
    block *b, *half = sd_arena_new(pm->a, block), was = *p->in.at[i];

    sd_push(pm->a, &p->in);
    memmove(p->in.at + i + 2, p->in.at + i + 1,
            sizeof *p->in.at * (size_t)(p->in.n - i - 2));
    p->in.at[i + 1] = half;
    b = p->in.at[i];
    b->n = 0;
    for (int k = 0; k < was.n; k++) {
        block *to = k < was.n / 2 ? b : half;

        put_at(to, to->n, was.at[k]);
    }
}

/* After all that begin no later. */
static void insert(plan_mem *pm, place *p, storage *s)
{
    int i = p->in.n - 1, k;

    if (i < 0)
        *sd_push(pm->a, &p->in) = sd_arena_new(pm->a, block), i = 0;
    while (i > 0 && p->in.at[i]->at[0]->slice.offset > s->slice.offset)
        i--;
    if (p->in.at[i]->n == BLOCK) {
        split(pm, p, i);
        i += p->in.at[i + 1]->at[0]->slice.offset <= s->slice.offset;
    }
    for (k = p->in.at[i]->n; k > 0; k--)
        if (p->in.at[i]->at[k - 1]->slice.offset <= s->slice.offset)
            break;
    put_at(p->in.at[i], k, s);
}

/* Moves *at past what of b lives with s, until there is room; true: there is,
 * whatever follows. */
static bool find_room(const block *b, const storage *s, uint64_t *at)
{
    if (b->from > s->to || s->from > b->to)
        return false;
    for (int i = 0; i < b->n; i++) {
        const storage *o = b->at[i];

        if (o->slice.offset + o->bytes <= *at || !live_together(o, s))
            continue;
        if (*at + s->bytes <= o->slice.offset)
            return true;
        *at = plan_whole_lines(o->slice.offset + o->bytes);
    }
    return false;
}

/* The lowest offset at which nothing lies that lives at the same time. */
static bool put_into(plan_mem *pm, place *p, storage *s)
{
    uint64_t at = 0;

    if (s->bytes > p->room || (p->output && live_together(p->output, s)))
        return false;
    for (int i = 0; i < p->in.n && !find_room(p->in.at[i], s, &at); i++)
        ;
    if (at > p->room - s->bytes)
        return false;
    s->slice = (thunk_slice){p->buffer, at, s->bytes};
    p->end = SD_MAX(p->end, plan_whole_lines(at + s->bytes));
    insert(pm, p, s);
    return true;
}

/* Largest first, into the largest place that takes it, so that few are used and
 * stay in the caches; last into the slab.  Returns the slab's bytes. */
static uint64_t pack(plan_mem *pm, storage **list, int n, int slab)
{
    int nout = home_of(pm->m->entry->root)->n, nplace = 0;
    place *p = sd_arena_array(pm->a, place, nout + 1);

    for (int i = 0; i < nout; i++) {
        const storage *o = plan_output_at(pm, i);

        if (is_in_device_memory(pm->m, i))
            p[nplace++] = (place){
                .output = o, .buffer = o->slice.buffer, .room = o->bytes};
    }
    qsort(p, (size_t)nplace, sizeof *p, by_room);
    p[nplace++] = (place){.buffer = slab, .room = UINT64_MAX};
    qsort(list, (size_t)n, sizeof *list, by_size);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < nplace && !put_into(pm, &p[k], list[i]); k++)
            ;
    return p[nplace - 1].end;
}

static void find_hull(storage *s)
{
    s->from = PLAN_FOREVER;
    s->to = -1;
    for (int i = 0; i < s->all.n; i++) {
        s->from = SD_MIN(s->from, s->all.at[i].from);
        s->to = SD_MAX(s->to, s->all.at[i].to);
    }
}

static void place_constant(thunk_program *pr, storage *s)
{
    const hlo_inst *in = s->constant;
    thunk_buffer b = {.kind = THUNK_B_CONST, .alias = -1, .bytes = s->bytes};

    b.at = thunk_add_constant(pr, in->u.literal.data, s->bytes);
    s->slice = (thunk_slice){thunk_add_buffer(pr, b), 0, s->bytes};
}

static bool must_alias(const hlo_module *m, int64_t output)
{
    for (int i = 0; i < m->nalias; i++)
        if (m->alias[i].output_index == output)
            return m->alias[i].must;
    return false;
}

static void place_fixed(plan_mem *pm)
{
    const hlo_comp *c = pm->m->entry;
    thunk_program *pr = pm->p->program;

    for (int i = 0; i < c->nparam; i++) {
        storage *s = storage_of(home_of(c->param[i])->at[0]);
        thunk_buffer b = {
            .kind = THUNK_B_PARAM, .index = i, .alias = -1, .bytes = s->bytes};

        if (s->output < 0)
            s->slice = (thunk_slice){thunk_add_buffer(pr, b), 0, s->bytes};
    }
    for (int i = 0; i < home_of(c->root)->n; i++) {
        storage *s = plan_output_at(pm, i);
        thunk_buffer b = {.kind = THUNK_B_OUTPUT,
                          .index = i,
                          .alias = s->param,
                          .bytes = s->bytes};

        b.alias_must = s->param >= 0 && must_alias(pm->m, i);
        s->slice = (thunk_slice){thunk_add_buffer(pr, b), 0, s->bytes};
    }
}

void plan_pack(plan_mem *pm)
{
    thunk_program *pr = pm->p->program;
    storage **temp = sd_arena_array(pm->a, storage *, pm->all.n + 1);
    int n = 0, slab;

    place_fixed(pm);
    for (int i = 0; i < pm->all.n; i++) {
        storage *s = pm->all.at[i];

        if (s->into)
            continue;
        find_hull(s);
        if (s->param >= 0 || s->output >= 0)
            continue;
        if (s->constant)
            place_constant(pr, s);
        else
            temp[n++] = s;
    }
    slab = pr->nbuffer;
    pr->temp_bytes = pack(pm, temp, n, slab);
    thunk_add_buffer(pr, (thunk_buffer){.kind = THUNK_B_TEMP,
                                        .alias = -1,
                                        .bytes = pr->temp_bytes});
}
