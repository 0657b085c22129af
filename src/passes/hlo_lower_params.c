/* Entry parameters that are tuples become a parameter an array of them, in
 * order: a caller hands over arrays. */
#include "passes_priv.h"

typedef struct {
    hlo_module *m;
    int old;          /* number of the parameter that is looked at */
    sd_vec(int) from; /* of a new one: the old one, or -1: a part of it */
} flattening;

static hlo_inst *flat(flattening *f, const hlo_inst *p, const sd_shape *s)
{
    hlo_comp *c = f->m->entry;
    hlo_inst **part, *in;

    if (s->dtype != SD_TUPLE) {
        in = hlo_make_param(c, s, p->name);
        hlo_take_source(in, p);
        *sd_push(f->m->arena, &f->from) = s == p->shape ? f->old : -1;
        if (s == p->shape) {
            in->sharding = p->sharding;
            in->frontend_attrs = p->frontend_attrs;
        }
        return in;
    }
    part = sd_arena_array(f->m->arena, hlo_inst *, s->nelem + 1);
    for (int i = 0; i < s->nelem; i++)
        part[i] = flat(f, p, s->elem[i]);
    return hlo_make_tuple((hlo_at){c, NULL, p}, s->nelem, part);
}

static int new_of(const flattening *f, int64_t old)
{
    for (int i = 0; i < f->from.n; i++)
        if (f->from.at[i] == old)
            return i;
    return -1;
}

/* What is known of parameters by their number.  Of parts of tuples nothing
 * is: a donor in it, say, might be another part. */
static void renumber(const flattening *f)
{
    hlo_module *m = f->m;
    sd_arena *a = m->arena;
    bool *donor = m->donor;
    const char **memory = m->param_memory;
    hlo_dims *layout = m->param_layout;
    int n = f->from.n, nalias = 0;

    if (donor)
        m->donor = sd_arena_array(a, bool, n + 1);
    if (memory)
        m->param_memory = sd_arena_array(a, const char *, n + 1);
    if (layout)
        m->param_layout = sd_arena_array(a, hlo_dims, n + 1);
    for (int i = 0; i < n; i++) {
        int old = f->from.at[i];

        if (old >= 0 && donor)
            m->donor[i] = donor[old];
        if (old >= 0 && memory)
            m->param_memory[i] = memory[old];
        if (old >= 0 && layout)
            m->param_layout[i] = layout[old];
    }
    for (int i = 0; i < m->nalias; i++) {
        hlo_alias x = m->alias[i];

        if ((x.param = new_of(f, x.param)) >= 0)
            m->alias[nalias++] = x;
    }
    m->nalias = nalias;
}

bool hlo_lower_params(hlo_module *m)
{
    hlo_comp *c = m->entry;
    flattening f = {.m = m};
    int n = c->nparam;
    bool any = false;

    for (int i = 0; i < n; i++)
        any |= c->param[i]->shape->dtype == SD_TUPLE;
    if (!any)
        return false;
    for (f.old = 0; f.old < n; f.old++) {
        hlo_inst *p = c->param[f.old];

        hlo_replace(p, flat(&f, p, p->shape));
    }
    for (int i = n - 1; i >= 0; i--)
        hlo_remove(c->param[i]);
    hlo_comp_sort(c);
    renumber(&f);
    return true;
}
