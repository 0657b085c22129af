/* A module of whole arrays, one for all participants, becomes what each of
 * them runs.
 *
 * Every program is right before it is fast: what stands outside of manual
 * computations is computed whole on each participant.  Parameters that arrive
 * cut are gathered, results that must leave cut are sliced, and the borders of
 * manual computations are slices and gathers along their axes.  Inside of them
 * the program says itself what moves.  Afterwards no mark of the import is
 * left, and m->param_sharding and m->output_sharding say what the entry's
 * arrays are parts of. */
#include "spmd.h"

enum { ALL = -1 }; /* as a mask: every atom */

static bool is_mark(const hlo_inst *in, const char *target)
{
    return in->op == HLO_CUSTOM_CALL &&
           strcmp(in->u.custom->target, target) == 0;
}

static sd_status named(sd_status st, const hlo_inst *in)
{
    return sd_note(st, "%s", hlo_describe(in->parent->module, in));
}

static int nresult(const hlo_inst *in)
{
    return in->shape->dtype == SD_TUPLE ? in->shape->nelem : 1;
}

static const sd_shape *result_shape(const hlo_inst *in, int i)
{
    return in->shape->dtype == SD_TUPLE ? in->shape->elem[i] : in->shape;
}

/* The n shardings that a frontend attribute of in has; false: none. */
static sd_status read_list(const hlo_inst *in, const char *key, int n,
                           const hlo_sharding **out, bool *has)
{
    hlo_module *m = in->parent->module;
    const char *text = hlo_attribute(m->arena, in->frontend_attrs, key);
    int *rank = sd_arena_array(m->arena, int, n + 1);

    *has = text != NULL;
    for (int i = 0; i < n; i++)
        rank[i] = SD_MAX_RANK;
    return text ? named(hlo_shardings_read(m, text, n, rank, out), in) : NULL;
}

/* ---- the borders of manual computations ---- */

static sd_status manual_atoms(const hlo_inst *in, const hlo_sharding *s,
                              uint32_t *mask)
{
    hlo_module *m = in->parent->module;
    const char *text =
        hlo_attribute(m->arena, in->frontend_attrs, "xla.sdy.manual_axes");

    *mask = 0;
    if (!text || !s->mesh || !s->mesh->naxis)
        return NULL;
    return named(hlo_axes_read(s->mesh, text, mask), in);
}

static sd_status cross(hlo_inst *in, bool enter, const hlo_sharding *s, int i,
                       hlo_inst **out)
{
    hlo_module *m = in->parent->module;
    const sd_shape *whole = enter ? in->arg[i]->shape : result_shape(in, i);
    const sd_shape *part = enter ? result_shape(in, i) : in->arg[i]->shape;
    const sd_shape *local;
    uint32_t mask;
    hlo_at p = pass_at(in);
    hlo_inst *x = in->arg[i];
    sd_status st;

    if ((st = manual_atoms(in, s, &mask)) ||
        (st = named(spmd_local_shape(m, whole, s, mask, &local), in)))
        return st;
    if (!sd_shape_equal(local, part))
        return named(sd_error(SD_INVALID,
                              "value %d of a manual computation does not have "
                              "the shape that its sharding gives",
                              i),
                     in);
    *out = enter ? spmd_cut(p, spmd_share(p, x, s, mask), s, mask)
                 : spmd_join(p, spmd_total(p, x, s, mask), s, mask);
    return NULL;
}

static sd_status border(hlo_inst *in, bool enter)
{
    hlo_module *m = in->parent->module;
    int n = in->narg;
    const hlo_sharding **s =
        sd_arena_array(m->arena, const hlo_sharding *, n + 1);
    hlo_inst **x = sd_arena_array(m->arena, hlo_inst *, n + 1);
    sd_status st;
    bool has;

    if (n != nresult(in))
        return named(sd_error(SD_INVALID,
                              "%d operands and %d results of a border", n,
                              nresult(in)),
                     in);
    if ((st = read_list(
             in, enter ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings", n, s,
             &has)))
        return st;
    for (int i = 0; i < n; i++) {
        if (!has)
            s[i] = hlo_sharding_replicated(m, 0);
        if ((st = cross(in, enter, s[i], i, &x[i])))
            return st;
    }
    pass_replace(in, in->shape->dtype == SD_TUPLE
                         ? hlo_make_tuple(pass_at(in), n, x)
                         : x[0]);
    return NULL;
}

/* The same in programs without Shardy: the sharding stands on the operand that
 * goes in, and on the call that comes out. */
static sd_status tiles_border(hlo_inst *in, bool enter)
{
    hlo_module *m = in->parent->module;
    const hlo_inst *from = enter ? in->arg[0] : in;
    const sd_shape *whole = enter ? in->arg[0]->shape : in->shape, *local;
    const hlo_sharding *s;
    hlo_inst *x;
    sd_status st;

    if (!from->sharding || in->narg != 1)
        return named(sd_error(SD_UNIMPLEMENTED,
                              "a manual computation's border without its "
                              "sharding"),
                     in);
    if ((st = named(hlo_sharding_read(m, from->sharding, whole->rank, &s),
                    in)) ||
        (st = named(spmd_local_shape(m, whole, s, (uint32_t)ALL, &local), in)))
        return st;
    if (!sd_shape_equal(local, enter ? in->shape : in->arg[0]->shape))
        return named(sd_error(SD_UNIMPLEMENTED,
                              "a manual computation with automatic axes, in a "
                              "program without Shardy"),
                     in);
    x = enter ? spmd_cut(pass_at(in), in->arg[0], s, (uint32_t)ALL)
              : spmd_join(pass_at(in), in->arg[0], s, (uint32_t)ALL);
    pass_replace(in, x);
    return NULL;
}

/* A call that is one participant's alone (a host callback). */
static sd_status single(hlo_inst *in)
{
    const hlo_sharding *s = NULL;
    bool has;
    sd_status st = read_list(in, "xla.sdy.sharding", 1, &s, &has);

    if (!st && !has && in->sharding &&
        strncmp(in->sharding, "{maximal", 8) == 0)
        st = named(hlo_sharding_read(in->parent->module, in->sharding,
                                     SD_MAX_RANK, &s),
                   in);
    return !st && s && s->single >= 0 ? spmd_single(in, s->single) : st;
}

static sd_status cut_inst(hlo_inst *in)
{
    if (in->op != HLO_CUSTOM_CALL)
        return NULL;
    if (is_mark(in, "xla.sdy.GlobalToLocalShape"))
        return border(in, true);
    if (is_mark(in, "xla.sdy.LocalToGlobalShape"))
        return border(in, false);
    if (is_mark(in, "SPMDFullToShardShape"))
        return tiles_border(in, true);
    if (is_mark(in, "SPMDShardToFullShape"))
        return tiles_border(in, false);
    if (is_mark(in, "Sharding") || is_mark(in, "xla.sdy.FuncResultSharding"))
        return NULL;
    return single(in);
}

/* Constraints do not change values; the last of them are the results'. */
static void drop_constraints(hlo_module *m)
{
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            if (in->op != HLO_PARAMETER)
                in->sharding = NULL;
            if (is_mark(in, "Sharding") && in->narg == 1 &&
                sd_shape_equal(in->shape, in->arg[0]->shape))
                pass_replace(in, in->arg[0]);
        }
}

/* ---- the entry ---- */

static sd_status own_sharding(const hlo_inst *in, const hlo_sharding **out)
{
    hlo_module *m = in->parent->module;
    int rank = in->shape->rank;
    const char *text =
        hlo_attribute(m->arena, in->frontend_attrs, "xla.sdy.sharding");
    sd_status st = NULL;

    *out = hlo_sharding_replicated(m, rank);
    if (!text)
        text = in->sharding;
    if (text)
        st = named(hlo_sharding_read(m, text, rank, out), in);
    if (!st && (*out)->single >= 0)
        st = named(sd_error(SD_UNIMPLEMENTED,
                            "an array of one participant alone among the "
                            "program's arguments or results"),
                   in);
    return st;
}

static const char *tiles_text(sd_arena *a, const hlo_sharding *s)
{
    sd_buf b = {0};
    const char *text;

    hlo_sharding_tiles(&b, s);
    if (b.oom)
        sd_oom(0);
    text = sd_arena_str(a, b.at, b.len);
    sd_buf_finish(&b);
    return text;
}

/* After all parameters, so that they stay in front. */
static hlo_inst *behind_params(const hlo_comp *c)
{
    hlo_inst *in = c->first;

    while (in && in->op == HLO_PARAMETER)
        in = in->next;
    return in;
}

static sd_status cut_param(hlo_module *m, int i)
{
    hlo_comp *c = m->entry;
    hlo_inst *p = c->param[i], *x, *whole;
    const hlo_sharding *s;
    const sd_shape *local;
    hlo_at at = {c, behind_params(c), p};
    sd_status st;

    if ((st = own_sharding(p, &s)) ||
        (st =
             named(spmd_local_shape(m, p->shape, s, (uint32_t)ALL, &local), p)))
        return st;
    m->param_sharding[i] = s;
    p->sharding = tiles_text(m->arena, s);
    if (hlo_sharding_is_whole(s))
        return NULL;
    /* uses move to a stand-in first, so that what gathers may use p itself */
    x = hlo_inst_create(c, at.before, HLO_COPY, p->shape, 1, &p);
    for (int k = 0; k < p->nuse;)
        if (p->user[k] != x)
            hlo_replace_use(p->user[k], p, x);
        else
            k++;
    if (c->root == p)
        hlo_set_root(c, x);
    p->shape = local;
    at.before = x;
    whole =
        spmd_join(at, spmd_total(at, p, s, (uint32_t)ALL), s, (uint32_t)ALL);
    hlo_replace(x, whole);
    hlo_remove(x);
    return NULL;
}

static sd_status cut_result(hlo_module *m, int i, hlo_inst **x)
{
    hlo_inst *in = *x;
    const hlo_sharding *s = hlo_sharding_replicated(m, in->shape->rank);
    const sd_shape *local;
    hlo_at at = {m->entry, m->entry->root == in ? NULL : m->entry->root, in};
    sd_status st;

    if (is_mark(in, "xla.sdy.FuncResultSharding") && in->narg == 1) {
        if ((st = own_sharding(in, &s)))
            return st;
        *x = in->arg[0];
    }
    m->output_sharding[i] = s;
    if ((st = named(spmd_local_shape(m, (*x)->shape, s, (uint32_t)ALL, &local),
                    in)))
        return st;
    *x = spmd_cut(at, spmd_share(at, *x, s, (uint32_t)ALL), s, (uint32_t)ALL);
    return NULL;
}

static sd_status cut_results(hlo_module *m)
{
    hlo_inst *root = m->entry->root, **x, *to;
    bool tuple = root->shape->dtype == SD_TUPLE;
    int n = tuple ? root->shape->nelem : 1;
    hlo_at end = {m->entry, NULL, NULL};
    sd_status st;

    x = sd_arena_array(m->arena, hlo_inst *, n + 1);
    m->output_sharding = sd_arena_array(m->arena, const hlo_sharding *, n + 1);
    for (int i = 0; i < n; i++) {
        x[i] = !tuple                  ? root
               : root->op == HLO_TUPLE ? root->arg[i]
                                       : hlo_make_gte(end, root, i);
        if ((st = cut_result(m, i, &x[i])))
            return st;
    }
    to = tuple ? hlo_make_tuple(end, n, x) : x[0];
    hlo_set_root(m->entry, to);
    hlo_for_each_inst_backward(in, m->entry) /* the marks, and the old tuple */
        if (in->nuse == 0 && in != to &&
            (in == root || is_mark(in, "xla.sdy.FuncResultSharding")))
            hlo_remove(in);
    return NULL;
}

/* A result takes a parameter's memory where both are still of one shape. */
static void keep_aliases(hlo_module *m)
{
    const sd_shape *root = m->entry->root->shape;
    int n = 0;

    for (int i = 0; i < m->nalias; i++) {
        hlo_alias x = m->alias[i];
        const sd_shape *to =
            root->dtype == SD_TUPLE ? root->elem[x.output_index] : root;

        if (sd_shape_bytes(to) ==
            sd_shape_bytes(m->entry->param[x.param]->shape))
            m->alias[n++] = x;
    }
    m->nalias = n;
}

/* ---- all of it ---- */

static sd_status cut_borders(hlo_module *m)
{
    sd_status st;

    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c)
            if ((st = cut_inst(in)))
                return st;
    drop_constraints(m);
    return NULL;
}

static sd_status cut_entry(hlo_module *m)
{
    int n = m->entry->nparam;
    sd_status st;

    m->param_sharding = sd_arena_array(m->arena, const hlo_sharding *, n + 1);
    for (int i = 0; i < n; i++)
        if ((st = cut_param(m, i)))
            return st;
    if ((st = cut_results(m)))
        return st;
    keep_aliases(m);
    return NULL;
}

sd_status hlo_spmd(hlo_module *m, hlo_pass_hook hook, void *ctx)
{
    sd_status st;

    if (hlo_participants(m) == 1 || m->param_sharding)
        return NULL;
    if (!m->mesh && (st = hlo_meshes_read(m)))
        return st;
    spmd_groups(m);
    if (hook)
        hook(ctx, "spmd-groups", m);
    if ((st = cut_borders(m)))
        return st;
    if (hook)
        hook(ctx, "spmd-borders", m);
    if ((st = cut_entry(m)))
        return st;
    if (hook)
        hook(ctx, "spmd-local", m);
    return NULL;
}
