/* Clusters: their views, joining, and the search for cycles. */
#include "plan_cluster.h"

cluster *cluster_of(cluster *c)
{
    while (c->into)
        c = c->into;
    return c;
}

/* ---- views ---- */

static bool same_view(const cluster_view *x, const cluster_view *y)
{
    if (x->rank != y->rank)
        return false;
    for (int i = 0; i < x->rank; i++)
        if (x->index[i] != y->index[i])
            return false;
    return plan_guards_same(x->g, y->g);
}

static void add_view(clusters *cs, cluster_member *m,
                     const plan_expr *const *index, int rank, plan_guards g)
{
    cluster_view v = {.rank = rank, .g = g};

    v.index = (const plan_expr **)index;
    for (int i = 0; i < m->view.n; i++)
        if (same_view(&m->view.at[i], &v))
            return;
    if (rank)
        v.index = sd_arena_copy(cs->a, index, (size_t)rank * sizeof *index);
    *sd_push(cs->a, &m->view) = v;
}

static cluster_member *find_member(cluster *c, const hlo_inst *in)
{
    for (int i = 0; i < c->member.n; i++)
        if (c->member.at[i].in == in)
            return &c->member.at[i];
    return NULL;
}

/* The inner axes of u under the space: the row, or its own after the row. */
static void user_axes(clusters *cs, const plan_space *s, const hlo_inst *u,
                      const plan_expr **axis)
{
    int64_t extent[SD_MAX_RANK];
    int n = plan_inner_extents(u, extent), at = plan_space_naxis(s);

    for (int i = 0; i < n; i++)
        axis[i] = u->op == HLO_REDUCE && n == 1
                      ? plan_space_row(cs->viewer.px, s)
                      : plan_px_axis(cs->viewer.px, at + i, extent[i]);
}

static void views_from(clusters *cs, const plan_space *s, cluster_member *user,
                       hlo_inst *in, cluster_member *out)
{
    hlo_inst *u = user->in;
    const plan_expr *axis[SD_MAX_RANK];
    int rank = hlo_result_shape(in, 0)->rank;

    user_axes(cs, s, u, axis);
    cs->viewer.axis = axis;
    for (int k = 0; k < u->narg; k++) {
        if (u->arg[k] != in)
            continue;
        for (int v = 0; v < user->view.n; v++)
            for (int w = 0; w < plan_view_count(u, k); w++) {
                plan_view got;

                const cluster_view *uv = &user->view.at[v];

                if (u->op == HLO_GET_TUPLE_ELEMENT) {
                    add_view(cs, out, uv->index, rank, uv->g);
                    continue;
                }
                plan_view_of(&cs->viewer, u, k, w, uv->index, &got);
                add_view(cs, out, got.index, rank,
                         plan_guards_join(cs->a, uv->g, got.guard, got.nguard));
            }
    }
    cs->viewer.axis = NULL; /* they were this call's */
}

bool cluster_root_index(clusters *cs, const plan_space *s, const hlo_inst *in,
                        cluster_view *out)
{
    const sd_shape *t = hlo_result_shape(in, 0);

    if (in->op == HLO_DYNAMIC_UPDATE_SLICE)
        t = in->arg[1]->shape; /* it runs over its update */
    if (in->op == HLO_SCATTER)
        t = in->arg[2]->shape;
    out->rank = t->rank;
    out->index = sd_arena_array(cs->a, const plan_expr *, t->rank + 1);
    return plan_space_index(cs->viewer.px, s, t, out->index);
}

/* What an update in place needs at a place of the update. */
static void update_views(clusters *cs, cluster *c, const plan_space *s,
                         hlo_inst *in, cluster_member *out)
{
    cluster_view v;
    plan_guards none = {0};
    bool scatter = c->update->op == HLO_SCATTER;

    if (!scatter && in != c->update->arg[1] && in->shape->rank == 0)
        add_view(cs, out, NULL, 0, none);
    if (in == c->update->arg[scatter ? 2 : 1] &&
        cluster_root_index(cs, s, c->update, &v))
        add_view(cs, out, v.index, v.rank, none);
    for (int64_t i = 0, rank = in->shape->rank;
         scatter && in == c->update->arg[1] && i < in->shape->dim[rank - 1];
         i++) {
        const plan_expr *at[3];

        for (int d = 0; d < rank - 1; d++)
            at[d] = d == s->row_at
                        ? plan_space_row(cs->viewer.px, s)
                        : plan_px_axis(cs->viewer.px, d, in->shape->dim[d]);
        at[rank - 1] = plan_px_const(cs->viewer.px, i);
        add_view(cs, out, at, (int)rank, none);
    }
}

void cluster_views(clusters *cs, cluster *c, const plan_space *space,
                   hlo_inst *in, cluster_member *out)
{
    *out = (cluster_member){.in = in};
    for (int i = 0; i < c->root.n; i++) {
        cluster_view v;

        if (c->root.at[i] == in && in != c->update &&
            cluster_root_index(cs, space, in, &v))
            add_view(cs, out, v.index, v.rank, (plan_guards){0});
    }
    for (int i = 0; i < c->member.n; i++) {
        cluster_member *user = &c->member.at[i];

        if (user->in == c->update) {
            for (int k = 0; k < user->in->narg; k++)
                if (user->in->arg[k] == in)
                    update_views(cs, c, space, in, out);
        } else {
            views_from(cs, space, user, in, out);
        }
    }
}

bool cluster_rebuild(clusters *cs, cluster *c, const plan_space *space)
{
    cluster_view v;

    for (int i = 0; i < c->root.n; i++)
        if (!cluster_root_index(cs, space, c->root.at[i], &v))
            return false;
    for (int i = 0; i < c->member.n; i++)
        c->member.at[i].view.n = 0;
    for (int i = 0; i < c->member.n; i++)
        cluster_views(cs, c, space, c->member.at[i].in, &c->member.at[i]);
    return true;
}

/* ---- changing them ---- */

/* A reduction of several results: its get-tuple-elements are the outputs. */
static cluster *create_several(clusters *cs, cluster *c, hlo_inst *red)
{
    cluster_member m;

    hlo_for_each_user(u, red)
        cluster_add_root(cs, c, u);
    if (red->op == HLO_REDUCE && red->dims.n == 1)
        c->red = red;
    else
        c->inner = red;
    plan_space_of(red, c->red, &c->space);
    hlo_for_each_user(u, red) {
        cluster_views(cs, c, &c->space, u, &m);
        cluster_add(cs, c, m);
    }
    cluster_views(cs, c, &c->space, red, &m);
    cluster_add(cs, c, m);
    return c;
}

/* Batch and window are the outer axes of a scatter, the windows' number its
 * row. */
static void scatter_space(clusters *cs, const hlo_inst *in, plan_space *s)
{
    const sd_shape *u = in->arg[2]->shape;
    int at = in->u.gather->operand_batch.n, n = 0;
    int64_t dim[SD_MAX_RANK + 1];

    for (int i = 0; i < u->rank; i++)
        if (i != at)
            dim[n++] = u->dim[i];
    *s = (plan_space){.row = u->dim[at], .row_at = at, .full = u};
    s->outer = sd_shape_make(cs->a, u->dtype, n, dim);
    s->pre = at ? u->dim[0] : 1;
    s->post = sd_shape_count(s->outer) / SD_MAX(s->pre, 1);
}

cluster *cluster_create(clusters *cs, hlo_inst *root)
{
    cluster *c = sd_arena_new(cs->a, cluster);
    cluster_member m;

    c->id = cs->all.n;
    *sd_push(cs->a, &cs->all) = c;
    if (plan_is_reducing(root) && root->shape->dtype == SD_TUPLE)
        return create_several(cs, c, root);
    cluster_add_root(cs, c, root);
    if (root->op == HLO_REDUCE && root->dims.n == 1)
        c->red = root;
    else if (plan_is_reducing(root))
        c->inner = root;
    if (root->op == HLO_DYNAMIC_UPDATE_SLICE) {
        c->update = root;
        plan_space_of(root->arg[1], NULL, &c->space);
    } else if (root->op == HLO_SCATTER && root->narg == 3) {
        c->update = root;
        scatter_space(cs, root, &c->space);
    } else {
        plan_space_of(root, c->red, &c->space);
    }
    cluster_views(cs, c, &c->space, root, &m);
    cluster_add(cs, c, m);
    return c;
}

void cluster_add_root(clusters *cs, cluster *c, hlo_inst *in)
{
    int order = info_of(in)->order;

    *sd_push(cs->a, &c->root) = in;
    info_of(in)->home = c;
    c->lo = c->root.n == 1 ? order : SD_MIN(c->lo, order);
    c->hi = SD_MAX(c->hi, order);
    if (c->root.n > 1 && !c->listed) {
        c->listed = true;
        *sd_push(cs->a, &cs->several) = c;
    }
}

void cluster_add(clusters *cs, cluster *c, cluster_member m)
{
    int i = c->member.n;

    *sd_push(cs->a, &c->member) = m;
    for (;
         i > 0 && info_of(c->member.at[i - 1].in)->order < info_of(m.in)->order;
         i--)
        c->member.at[i] = c->member.at[i - 1];
    c->member.at[i] = m;
    *sd_push(cs->a, &info_of(m.in)->in) = c;
    if (m.in->op == HLO_REDUCE && m.in->dims.n == 1)
        c->red = m.in;
    else if (plan_is_reducing(m.in))
        c->inner = m.in;
}

/* y's members become x's; both have the space of x. */
bool cluster_merge(clusters *cs, cluster *x, cluster *y)
{
    cluster_view v;

    for (int i = 0; i < y->root.n; i++)
        if (!cluster_root_index(cs, &x->space, y->root.at[i], &v))
            return false;
    for (int i = 0; i < y->root.n; i++)
        cluster_add_root(cs, x, y->root.at[i]);
    for (int i = 0; i < y->member.n; i++)
        if (!find_member(x, y->member.at[i].in))
            cluster_add(cs, x, y->member.at[i]);
    x->extra += y->extra;
    y->into = x;
    return cluster_rebuild(cs, x, &x->space);
}

/* ---- cycles ---- */

typedef struct {
    clusters *cs;
    cluster *to;
    int limit; /* from beyond this order no path comes back */
    sd_vec(hlo_inst *) stack;
} search;

/* Orders grow along every use; only through a cluster of several roots can a
 * path go in late and come out early. */
static int find_limit(const clusters *cs, const cluster *to)
{
    int limit = to->hi;
    bool grew = true;

    while (grew) {
        grew = false;
        for (int i = 0; i < cs->several.n; i++) {
            const cluster *c = cs->several.at[i];

            if (!c->into && c->lo <= limit && c->hi > limit) {
                limit = c->hi;
                grew = true;
            }
        }
    }
    return limit;
}

static bool push_cluster(search *s, cluster *c)
{
    if (c == s->to)
        return true;
    if (c->epoch == s->cs->epoch)
        return false;
    c->epoch = s->cs->epoch;
    for (int i = 0; i < c->root.n; i++)
        *sd_push(s->cs->a, &s->stack) = c->root.at[i];
    return false;
}

/* From the users of in onwards; `skip`: do not count that cluster's own. */
static bool push_users(search *s, hlo_inst *in, cluster *skip)
{
    hlo_for_each_user(u, in) {
        cluster_info *f = info_of(u);

        if (!f || f->order > s->limit)
            continue;
        /* in no cluster, or (a renaming) in memory as well */
        if ((!f->in.n || (f->outside && !f->home)) &&
            f->epoch != s->cs->epoch) {
            f->epoch = s->cs->epoch;
            *sd_push(s->cs->a, &s->stack) = u;
        }
        for (int j = 0; j < f->in.n; j++) {
            cluster *c = cluster_of(f->in.at[j]);

            if (c != skip && push_cluster(s, c))
                return true;
        }
    }
    return false;
}

static bool drain(search *s)
{
    while (s->stack.n)
        if (push_users(s, s->stack.at[--s->stack.n], NULL))
            return true;
    return false;
}

bool cluster_reaches(clusters *cs, cluster *from, cluster *to)
{
    search s = {.cs = cs, .to = to, .limit = find_limit(cs, to)};

    cs->epoch++;
    from->epoch = cs->epoch;
    for (int i = 0; i < from->root.n; i++)
        if (push_users(&s, from->root.at[i], from))
            return true;
    return drain(&s);
}

bool cluster_user_reaches(clusters *cs, hlo_inst *in, cluster *to)
{
    search s = {.cs = cs, .to = to, .limit = find_limit(cs, to)};

    cs->epoch++;
    if (push_users(&s, in, to))
        return true;
    return drain(&s);
}

/* ---- how much ---- */

double cluster_points(const cluster *c)
{
    double n = (double)sd_shape_count(c->space.outer) * (double)c->space.row;
    int64_t extent[SD_MAX_RANK];

    if (c->inner)
        for (int i = plan_inner_extents(c->inner, extent) - 1; i >= 0; i--)
            n *= (double)extent[i];
    return n;
}

/* Of the places of a view those that are its turn: a loop of few turns is
 * planned in strands, which compute nothing for the others. */
static double share_of(const cluster *c, const cluster_view *v)
{
    double share = 1;

    for (int i = 0; i < v->g.n && !c->red && !c->inner && !c->update; i++) {
        const plan_guard *g = &v->g.g[i];

        if (g->e->kind == PX_MOD && plan_is_turn(g->e->c))
            share *= (double)(SD_MIN(g->hi, g->e->c) - SD_MAX(g->lo, 0)) /
                     (double)g->e->c;
    }
    return SD_MAX(share, 1.0 / PLAN_MOST_STRANDS);
}

/* A value is computed at the loop of the deepest axis that it varies on. */
double cluster_times(const cluster *c, const cluster_member *m, uint64_t dims)
{
    const plan_space *s = &c->space;
    double upto[64], n = 1, all = 0;
    int axis = 0;

    for (int i = 0; i < s->outer->rank; i++)
        if (s->outer->dim[i] != 1)
            upto[axis++] = n *= (double)s->outer->dim[i];
    if (s->full)
        upto[axis++] = n * (double)s->row;
    n = cluster_points(c); /* the member's own loops are innermost */
    while (axis < 64)
        upto[axis++] = n;
    for (int i = 0; i < m->view.n; i++) {
        const cluster_view *v = &m->view.at[i];
        uint64_t varies = 0;

        for (int d = 0; d < v->rank; d++)
            varies |= dims >> d & 1 ? v->index[d]->varies : 0;
        all += varies ? share_of(c, v) * upto[plan_last_axis(varies)] : 1;
    }
    return all;
}
