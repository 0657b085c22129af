/* The graph's edges: every change to operands, order, roots and calls goes
 * through here, so that use lists and caller counts are always right. */
#include "hlo_priv.h"
#include "hlo_text.h"

#include <assert.h>

/* ---- names ---- */

/* Names that were given, by hash; a chain for the rare equal hash. */
typedef struct name_entry name_entry;
struct name_entry {
    const char *name;
    int next; /* first suffix not tried yet */
    name_entry *chain;
};

enum { INST_NAMES, COMP_NAMES }; /* two name spaces, as in XLA */

static name_entry *find_name(const hlo_module *m, const char *s, size_t len,
                             int space)
{
    name_entry *e = sd_map_get(m->names, sd_hash(s, len, (uint64_t)space));

    while (e && (strncmp(e->name, s, len) != 0 || e->name[len] != '\0'))
        e = e->chain;
    return e;
}

static const char *take_name(hlo_module *m, const char *s, size_t len,
                             int space)
{
    uint64_t key = sd_hash(s, len, (uint64_t)space);
    name_entry *e = sd_arena_new(m->arena, name_entry);

    e->name = sd_arena_str(m->arena, s, len);
    e->next = 1;
    e->chain = sd_map_get(m->names, key);
    sd_map_set(m->names, key, e);
    return e->name;
}

bool hlo_is_name_char(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
           (ch >= '0' && ch <= '9') || ch == '_' || ch == '.' || ch == '-';
}

static char *clean_name(sd_arena *a, const char *base)
{
    size_t len = strlen(base);
    char *s = sd_arena_str(a, len ? base : "_", len ? len : 1);

    for (char *p = s; *p; p++)
        if (!hlo_is_name_char(*p))
            *p = '_';
    if ((s[0] >= '0' && s[0] <= '9') || s[0] == '.' || s[0] == '-')
        s[0] = '_';
    return s;
}

static const char *unique_name(hlo_module *m, const char *base, int space)
{
    char *s = clean_name(m->arena, base);

    if (!find_name(m, s, strlen(s), space))
        return take_name(m, s, strlen(s), space);
    s[sd_stem_length(s, ".")] = '\0';
    if (!find_name(m, s, strlen(s), space))
        return take_name(m, s, strlen(s), space);
    name_entry *e = find_name(m, s, strlen(s), space);

    for (;;) {
        char *t = sd_arena_fmt(m->arena, "%s.%d", s, e->next++);

        if (!find_name(m, t, strlen(t), space))
            return take_name(m, t, strlen(t), space);
    }
}

void hlo_rename(hlo_inst *in, const char *base)
{
    in->name = unique_name(in->parent->module, base, INST_NAMES);
}

void hlo_take_source(hlo_inst *to, const hlo_inst *from)
{
    if (!from)
        return;
    to->op_name = from->op_name;
    to->source_file = from->source_file;
    to->source_line = from->source_line;
}

/* ---- modules and computations ---- */

hlo_module *hlo_module_create(sd_arena *a, const char *name)
{
    hlo_module *m = sd_arena_new(a, hlo_module);

    m->name = clean_name(a, name);
    m->arena = a;
    m->nreplica = m->npartition = 1;
    m->names = sd_map_create(a);
    return m;
}

int64_t hlo_participants(const hlo_module *m)
{
    return (int64_t)m->nreplica * m->npartition;
}

void hlo_comp_append(hlo_module *m, hlo_comp *c)
{
    c->next = NULL;
    c->prev = m->last;
    if (m->last)
        m->last->next = c;
    else
        m->first = c;
    m->last = c;
}

hlo_comp *hlo_comp_create(hlo_module *m, const char *name)
{
    hlo_comp *c = sd_arena_new(m->arena, hlo_comp);

    c->name = unique_name(m, name, COMP_NAMES);
    c->id = m->next_id++;
    c->module = m;
    hlo_comp_append(m, c);
    return c;
}

static void release_comps(hlo_inst *in)
{
    for (int i = 0; i < in->ncomp; i++) {
        in->comp[i]->ncaller--;
        if (in->comp[i]->caller == in)
            in->comp[i]->caller = NULL;
    }
    in->ncomp = 0;
}

static void unlink_comp(hlo_comp *c)
{
    hlo_module *m = c->module;

    if (c->prev)
        c->prev->next = c->next;
    else
        m->first = c->next;
    if (c->next)
        c->next->prev = c->prev;
    else
        m->last = c->prev;
    c->prev = c->next = NULL;
}

void hlo_comp_remove(hlo_comp *c)
{
    assert(c != c->module->entry);
    hlo_for_each_inst(in, c)
        release_comps(in);
    unlink_comp(c);
}

void hlo_comp_move_before(hlo_comp *c, hlo_comp *before)
{
    unlink_comp(c);
    c->next = before;
    c->prev = before->prev;
    before->prev = c;
    if (c->prev)
        c->prev->next = c;
    else
        c->module->first = c;
}

int hlo_comp_count(const hlo_comp *c)
{
    int n = 0;

    for (const hlo_inst *in = c->first; in; in = in->next)
        n++;
    return n;
}

void hlo_set_root(hlo_comp *c, hlo_inst *root)
{
    assert(root->parent == c);
    c->root = root;
}

static int power_of_two(int n)
{
    int p = 1;

    while (p < n)
        p *= 2;
    return p;
}

void hlo_comp_put_param(hlo_comp *c, hlo_inst *in)
{
    int i = (int)in->u.param.index;

    if (i >= c->nparam) {
        int cap = power_of_two(i + 1);

        /* the capacity follows from the count, so it needs no field */
        if (!c->nparam || cap > power_of_two(c->nparam)) {
            hlo_inst **p = sd_arena_array(c->module->arena, hlo_inst *, cap);

            if (c->nparam)
                memcpy(p, c->param, sizeof *p * (size_t)c->nparam);
            c->param = p;
        }
        for (int k = c->nparam; k < i; k++)
            c->param[k] = NULL;
        c->nparam = i + 1;
    }
    c->param[i] = in;
}

static void drop_param(hlo_comp *c, hlo_inst *in)
{
    int i = (int)in->u.param.index;

    if (i >= c->nparam || c->param[i] != in)
        return;
    for (c->nparam--; i < c->nparam; i++) {
        c->param[i] = c->param[i + 1];
        if (c->param[i])
            c->param[i]->u.param.index = i;
    }
}

/* ---- instructions: order ---- */

static void link_before(hlo_comp *c, hlo_inst *in, hlo_inst *before)
{
    in->next = before;
    in->prev = before ? before->prev : c->last;
    if (in->prev)
        in->prev->next = in;
    else
        c->first = in;
    if (before)
        before->prev = in;
    else
        c->last = in;
}

static void unlink_inst(hlo_inst *in)
{
    hlo_comp *c = in->parent;

    if (in->prev)
        in->prev->next = in->next;
    else
        c->first = in->next;
    if (in->next)
        in->next->prev = in->prev;
    else
        c->last = in->prev;
    in->prev = in->next = NULL;
}

/* ---- instructions: edges ---- */

static void add_user(hlo_inst *of, hlo_inst *user)
{
    if (of->nuse == of->user_cap) {
        int cap = of->user_cap ? 2 * of->user_cap : 2;
        sd_arena *a = of->parent->module->arena;
        hlo_inst **p = sd_arena_array(a, hlo_inst *, cap);

        if (of->nuse)
            memcpy(p, of->user, sizeof *p * (size_t)of->nuse);
        of->user = p;
        of->user_cap = cap;
    }
    of->user[of->nuse++] = user;
}

/* From both ends: who goes is nearly always the first or the last, and a
 * parameter may have 100,000 users.  The others stay in order. */
static void drop_user(hlo_inst *of, const hlo_inst *user)
{
    hlo_inst **u = of->user;
    int i = 0, last = of->nuse - 1;

    while (i < last && u[i] != user && u[last] != user) {
        i++;
        last--;
    }
    assert(i <= last && (u[i] == user || u[last] == user));
    if (u[i] == user) {
        memmove(u + 1, u, sizeof *u * (size_t)i);
        of->user++;
        of->user_cap--;
    } else {
        memmove(u + last, u + last + 1,
                sizeof *u * (size_t)(of->nuse - 1 - last));
    }
    of->nuse--;
}

hlo_inst *hlo_inst_create_named(hlo_comp *c, hlo_inst *before, hlo_op op,
                                const char *name, const sd_shape *shape,
                                int narg, hlo_inst *const *arg)
{
    hlo_module *m = c->module;
    hlo_inst *in = sd_arena_new(m->arena, hlo_inst);

    m->made[op] = true;
    in->op = op;
    in->id = m->next_id++;
    in->name = unique_name(m, name, INST_NAMES);
    in->parent = c;
    in->shape = shape;
    in->narg = narg;
    in->arg = sd_arena_array(m->arena, hlo_inst *, narg ? narg : 1);
    for (int i = 0; i < narg; i++) {
        in->arg[i] = arg[i];
        add_user(arg[i], in);
    }
    link_before(c, in, before);
    return in;
}

hlo_inst *hlo_inst_create(hlo_comp *c, hlo_inst *before, hlo_op op,
                          const sd_shape *shape, int narg, hlo_inst *const *arg)
{
    return hlo_inst_create_named(c, before, op, hlo_op_table[op].name, shape,
                                 narg, arg);
}

void hlo_set_arg(hlo_inst *in, int i, hlo_inst *to)
{
    assert(i >= 0 && i < in->narg);
    if (in->arg[i] == to)
        return;
    drop_user(in->arg[i], in);
    in->arg[i] = to;
    add_user(to, in);
}

void hlo_set_comps(hlo_inst *in, int n, hlo_comp *const *c)
{
    hlo_comp **p = NULL;

    if (n) {
        p = sd_arena_array(in->parent->module->arena, hlo_comp *, n);
        memcpy(p, c, sizeof *p * (size_t)n);
    }
    release_comps(in);
    in->comp = p;
    in->ncomp = n;
    for (int i = 0; i < n; i++)
        p[i]->caller = p[i]->ncaller++ ? NULL : in;
}

void hlo_replace(hlo_inst *in, hlo_inst *with)
{
    if (in == with)
        return;
    hlo_inst **user = in->user;
    int n = in->nuse;

    in->user = NULL;
    in->nuse = in->user_cap = 0;
    for (int i = 0; i < n; i++) {
        /* a value made from the old one keeps its operand */
        hlo_inst *to = user[i] == with ? in : with;

        for (int k = 0; k < user[i]->narg; k++)
            if (user[i]->arg[k] == in)
                user[i]->arg[k] = to;
        add_user(to, user[i]);
    }
    if (in->parent->root == in)
        in->parent->root = with;
}

void hlo_replace_use(hlo_inst *user, hlo_inst *from, hlo_inst *to)
{
    for (int i = 0; i < user->narg; i++)
        if (user->arg[i] == from)
            hlo_set_arg(user, i, to);
}

void hlo_remove(hlo_inst *in)
{
    assert(in->nuse == 0 && in->parent->root != in);
    if (in->op == HLO_PARAMETER)
        drop_param(in->parent, in);
    for (int i = 0; i < in->narg; i++)
        drop_user(in->arg[i], in);
    in->narg = 0;
    release_comps(in);
    unlink_inst(in);
}

bool hlo_comp_sweep(hlo_comp *c)
{
    bool any = false;

    hlo_for_each_inst_backward(in, c) /* users come before what they use */
        if (in->nuse == 0 && in != c->root && !hlo_has_effect(in)) {
            hlo_remove(in);
            any = true;
        }
    return any;
}

/* ---- clones ---- */

static hlo_inst *clone_without_comps(hlo_comp *c, hlo_inst *before,
                                     const hlo_inst *in, hlo_inst *const *arg)
{
    hlo_inst *x = hlo_inst_create_named(c, before, in->op, in->name, in->shape,
                                        in->narg, arg);

    x->dims = in->dims;
    x->u = in->u;
    hlo_take_source(x, in);
    x->sharding = in->sharding;
    x->frontend_attrs = in->frontend_attrs;
    if (x->op == HLO_PARAMETER)
        hlo_comp_put_param(c, x);
    return x;
}

hlo_inst *hlo_inst_clone(hlo_comp *c, hlo_inst *before, const hlo_inst *in,
                         hlo_inst *const *arg)
{
    hlo_inst *x = clone_without_comps(c, before, in, arg);

    if (in->ncomp)
        hlo_set_comps(x, in->ncomp, in->comp);
    return x;
}

/* done: old computation -> new one, so that what is called twice is cloned
 * once.  Within one module the called computations are shared. */
static hlo_comp *clone_comp(hlo_module *m, const hlo_comp *c, const char *name,
                            sd_map *done)
{
    sd_map *map = sd_map_create(m->arena);
    hlo_comp *to, **comp;
    hlo_inst **arg;

    if (m != c->module) /* callees first, as in every module */
        hlo_for_each_inst(in, c)
            for (int i = 0; i < in->ncomp; i++)
                if (!sd_map_has(done, sd_key(in->comp[i])))
                    clone_comp(m, in->comp[i], in->comp[i]->name, done);
    to = hlo_comp_create(m, name);
    sd_map_set(done, sd_key(c), to);
    hlo_for_each_inst(in, c) {
        arg = sd_arena_array(m->arena, hlo_inst *, in->narg ? in->narg : 1);
        for (int i = 0; i < in->narg; i++)
            arg[i] = sd_map_get(map, sd_key(in->arg[i]));
        hlo_inst *x = clone_without_comps(to, NULL, in, arg);

        sd_map_set(map, sd_key(in), x);
        if (!in->ncomp)
            continue;
        comp = sd_arena_array(m->arena, hlo_comp *, in->ncomp);
        for (int i = 0; i < in->ncomp; i++)
            comp[i] = m == c->module ? in->comp[i]
                                     : sd_map_get(done, sd_key(in->comp[i]));
        hlo_set_comps(x, in->ncomp, comp);
    }
    if (c->root)
        to->root = sd_map_get(map, sd_key(c->root));
    return to;
}

hlo_comp *hlo_comp_clone(hlo_module *m, const hlo_comp *c, const char *name)
{
    return clone_comp(m, c, name, sd_map_create(m->arena));
}

hlo_module *hlo_module_clone(const hlo_module *m)
{
    hlo_module *to = sd_arena_copy(m->arena, m, sizeof *m);

    to->first = to->last = NULL;
    to->names = sd_map_create(m->arena);
    to->entry = hlo_comp_clone(to, m->entry, m->entry->name);
    return to;
}

hlo_dims hlo_dims_copy(sd_arena *a, const int64_t *at, int n)
{
    hlo_dims d = {NULL, n};

    if (n)
        d.at = sd_arena_copy(a, at, sizeof *at * (size_t)n);
    return d;
}

int64_t hlo_dim_turned(const int64_t *perm, int64_t d)
{
    int64_t to = 0;

    while (perm[to] != d)
        to++;
    return to;
}

hlo_dims hlo_dims_turned(sd_arena *a, const int64_t *perm, hlo_dims d)
{
    int64_t to[SD_MAX_RANK];

    for (int i = 0; i < d.n; i++)
        to[i] = hlo_dim_turned(perm, d.at[i]);
    return hlo_dims_copy(a, to, d.n);
}

bool hlo_is_row_major(hlo_dims order)
{
    for (int i = 0; i < order.n; i++)
        if (order.at[i] != order.n - 1 - i)
            return false;
    return true;
}

/* ---- order ---- */

typedef struct {
    hlo_inst *in;
    int arg;
} sort_frame;

/* Depth first, with a stack of our own: programs are deep. */
void hlo_comp_sort(hlo_comp *c)
{
    sd_arena *a = sd_arena_create();
    sd_map *seen = sd_map_create(a);
    int n = hlo_comp_count(c), k = 0;
    hlo_inst **order = sd_arena_array(a, hlo_inst *, n ? n : 1);
    sd_vec(sort_frame) stack = {0};

    hlo_for_each_inst(in, c) {
        if (sd_map_has(seen, sd_key(in)))
            continue;
        sd_map_set(seen, sd_key(in), in);
        *sd_push(a, &stack) = (sort_frame){in, 0};
        while (stack.n) {
            sort_frame *f = &stack.at[stack.n - 1];

            if (f->arg == f->in->narg) {
                order[k++] = f->in;
                stack.n--;
                continue;
            }
            hlo_inst *x = f->in->arg[f->arg++];

            if (!sd_map_has(seen, sd_key(x))) {
                sd_map_set(seen, sd_key(x), x);
                *sd_push(a, &stack) = (sort_frame){x, 0};
            }
        }
    }
    assert(k == n);
    c->first = c->last = NULL;
    for (int i = 0; i < n; i++)
        link_before(c, order[i], NULL);
    sd_arena_destroy(a);
}
