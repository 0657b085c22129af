/* Which instructions share a kernel.  One walk over a computation, users
 * first: an instruction either joins the kernels of all its users, or it is
 * written to memory by a kernel of its own or of one of its users (which then
 * has several outputs).  What decides is where the users need it: the index
 * expressions of plan_view.c under the space of the kernel.
 *
 * Nothing here looks at the device: all devices get the same fusions. */
#include "plan_cluster.h"

enum { MOST_NEIGHBOURS = 8 /* users of one value that are asked to join */ };

static bool is_fusable(const hlo_inst *in)
{
    if (!sd_shape_is_array(in->shape) && in->op != HLO_REDUCE &&
        in->op != HLO_REDUCE_WINDOW)
        return false;
    if (hlo_is_elementwise(in) || cluster_is_view_op(in) ||
        plan_is_reducing(in))
        return in->op != HLO_CONSTANT || in->shape->rank == 0 ||
               hlo_is_splat(in);
    if (in->op == HLO_GET_TUPLE_ELEMENT)
        return in->arg[0]->op == HLO_REDUCE ||
               in->arg[0]->op == HLO_REDUCE_WINDOW;
    return in->op == HLO_BITCAST_CONVERT;
}

/* Kernels of one instruction, into which nothing is fused but what an update
 * in place writes and what a scan sums. */
static bool is_alone(const hlo_inst *in)
{
    hlo_attend attention;
    hlo_places places;
    hlo_call call;

    return in->op == HLO_SCAN || in->op == HLO_SCATTER ||
           in->op == HLO_DYNAMIC_UPDATE_SLICE || hlo_device_call(in, &call) ||
           hlo_attend_read(in, &attention) || hlo_places_read(in, &places);
}

static bool is_update(const hlo_inst *in)
{
    return in->op == HLO_DYNAMIC_UPDATE_SLICE ||
           (in->op == HLO_SCATTER && in->narg == 3);
}

static bool is_scan(const hlo_inst *in)
{
    return in->op == HLO_SCAN && sd_shape_is_array(in->shape);
}

/* A scan computes what it sums, and reads it where it lies: not across memory,
 * nor at places that depend on data.  Of functions it takes those along rows:
 * down columns there is one vector at a time, which waits for them. */
static bool may_be_scanned(const hlo_inst *scan, const hlo_inst *in)
{
    return !plan_is_reducing(in) && in->op != HLO_GET_TUPLE_ELEMENT &&
           in->op != HLO_TRANSPOSE && in->op != HLO_GATHER &&
           (scan->u.scan.dim == scan->shape->rank - 1 ||
            !(hlo_info(in)->props & HLO_P_HEAVY));
}

/* Dimensions without elements: nothing is computed, nothing fused. */
static bool is_empty(const hlo_inst *in)
{
    const sd_shape *s = in->shape;

    if (s->dtype == SD_TUPLE)
        s = s->nelem ? s->elem[0] : s;
    if (sd_shape_is_array(s) && sd_shape_count(s) == 0)
        return true;
    for (int i = 0; i < in->narg && plan_is_reducing(in); i++)
        if (sd_shape_count(in->arg[i]->shape) == 0)
            return true;
    return false;
}

/* ---- may an instruction join a cluster? ---- */

static const plan_expr *flat(clusters *cs, const hlo_inst *in,
                             const cluster_view *v)
{
    const sd_shape *s = in->shape;

    if (s->dtype == SD_TUPLE)
        s = s->elem[0];
    return plan_px_linear(cs->viewer.px, s->rank, s->dim, v->index);
}

static bool needed_once(clusters *cs, const plan_space *s,
                        const cluster_member *m)
{
    return m->view.n == 1 && flat(cs, m->in, &m->view.at[0]) ==
                                 plan_space_outer(cs->viewer.px, s);
}

static bool single_row_is_short(const plan_space *s)
{
    return s->pre * s->post >= 16 || s->row <= 65536;
}

/* A reduction over one dimension: the cluster takes its space, if the places
 * it needs the result at are the outer ones there. */
static bool can_take_reduce(clusters *cs, cluster *c, hlo_inst *in,
                            const hlo_inst *red, cluster_member *m)
{
    plan_space s, was = c->space;

    if (c->inner || c->update)
        return false;
    plan_space_of(NULL, red, &s);
    if (c->red) {
        if (s.pre != was.pre || s.row != was.row || s.post != was.post)
            return false;
        cluster_views(cs, c, &c->space, in, m);
        return needed_once(cs, &c->space, m);
    }
    if (!single_row_is_short(&s) || !cluster_rebuild(cs, c, &s))
        return false;
    c->space = s;
    cluster_views(cs, c, &s, in, m);
    if (needed_once(cs, &s, m))
        return true;
    c->space = was;
    cluster_rebuild(cs, c, &was);
    return false;
}

static bool can_take_inner(clusters *cs, cluster *c, hlo_inst *in,
                           cluster_member *m)
{
    if (c->inner || c->red || c->update)
        return false;
    cluster_views(cs, c, &c->space, in, m);
    return needed_once(cs, &c->space, m) && !cluster_hides_product(m);
}

static bool can_take(clusters *cs, cluster *c, hlo_inst *in, cluster_member *m,
                     int *extra)
{
    const hlo_inst *red;

    if (c->alone || is_empty(in) || in == c->before ||
        cluster_reads_updated(c, in) ||
        (c->scan && !may_be_scanned(c->root.at[0], in)))
        return false;
    *extra = 0;
    if (!cluster_has_room(cs, c, in))
        return false;
    red = in->op == HLO_GET_TUPLE_ELEMENT ? in->arg[0] : in;
    if (red->op == HLO_REDUCE && red->dims.n == 1)
        return can_take_reduce(cs, c, in, red, m);
    if (plan_is_reducing(red))
        return can_take_inner(cs, c, in, m);
    cluster_views(cs, c, &c->space, in, m);
    return cluster_is_worth(c, m, extra) && cluster_fits(c, m, *extra);
}

/* ---- the clusters of an instruction's users ---- */

typedef sd_vec(cluster *) cluster_list;

static void user_clusters(clusters *cs, const hlo_inst *in, cluster_list *out)
{
    cs->epoch++;
    hlo_for_each_user(u, in) {
        cluster_info *f = info_of(u);

        for (int j = 0; f && j < f->in.n; j++) {
            cluster *c = cluster_of(f->in.at[j]);

            if (c->epoch != cs->epoch)
                *sd_push(cs->a, out) = c;
            c->epoch = cs->epoch;
        }
    }
}

/* The space of a loop over full rows is also that of the rows. */
static bool align_spaces(clusters *cs, cluster *x, cluster *y)
{
    cluster *loop = x->red ? y : x, *row = x->red ? x : y;

    if (plan_space_equal(&x->space, &y->space))
        return true;
    if (loop->red || !row->red || loop->inner ||
        cluster_points(loop) != cluster_points(row))
        return false;
    for (int i = 0; i < loop->root.n; i++) {
        const sd_shape *s = loop->root.at[i]->shape;

        if (s->rank != row->space.full->rank ||
            !sd_shape_same_dims(s, row->space.full))
            return false;
    }
    if (!cluster_rebuild(cs, loop, &row->space))
        return false;
    loop->space = row->space;
    return true;
}

static bool try_merge(clusters *cs, cluster *x, cluster *y)
{
    if (x->alone || y->alone || x->update || y->update || x->inner ||
        y->inner || x->scan || y->scan)
        return false;
    if (!cluster_may_merge(x, y))
        return false;
    if (cluster_points(x) != cluster_points(y) && !(x->red || y->red))
        return false;
    if (cluster_reaches(cs, x, y) || cluster_reaches(cs, y, x) ||
        !align_spaces(cs, x, y))
        return false;
    return cluster_merge(cs, x, y);
}

/* Kernels over the same space that read the same large value become one. */
static void merge_users(clusters *cs, const hlo_inst *in)
{
    cluster_list users = {0};

    if ((!sd_shape_is_array(in->shape) && in->op != HLO_REDUCE) ||
        !cluster_shares_reads(in))
        return;
    user_clusters(cs, in, &users);
    for (int i = 0; i < users.n; i++)
        for (int j = i + 1; j < SD_MIN(users.n, i + MOST_NEIGHBOURS); j++) {
            cluster *x = cluster_of(users.at[i]), *y = cluster_of(users.at[j]);

            if (x != y && (double)cluster_count_of(in) * 2 >=
                              SD_MIN(cluster_points(x), cluster_points(y)))
                try_merge(cs, x, y);
        }
}

/* ---- one instruction ---- */

static bool used_outside(const hlo_inst *in)
{
    if (in == in->parent->root)
        return true;
    hlo_for_each_user(u, in) {
        const cluster_info *f = info_of(u);

        /* a renaming that is needed in memory is this value in memory */
        if (f->in.n == 0 || (f->outside && plan_is_alias(u)))
            return true;
    }
    return false;
}

/* A kernel of a user writes it as well: where it has it anyway. */
static bool attach(clusters *cs, hlo_inst *in, cluster_list *users)
{
    for (int i = 0; i < users->n; i++) {
        cluster *c = cluster_of(users->at[i]);
        cluster_member m;
        cluster_view v;
        int extra;
        bool was_red = c->red != NULL;

        if (c->alone || c->update || c->inner || c->scan ||
            !cluster_has_root(c) ||
            plan_is_reducing(in) != (in->op == HLO_REDUCE && in->dims.n == 1))
            continue;
        if (!was_red && in->op == HLO_REDUCE)
            continue;
        if (cluster_user_reaches(cs, in, c) ||
            !can_take(cs, c, in, &m, &extra) || m.view.n != 1 ||
            !cluster_root_index(cs, &c->space, in, &v) ||
            flat(cs, in, &v) != flat(cs, in, &m.view.at[0]))
            continue;
        cluster_add(cs, c, m);
        cluster_add_root(cs, c, in);
        return true;
    }
    return false;
}

static void join_all(clusters *cs, hlo_inst *in, cluster_list *users,
                     bool outside)
{
    int n = 0;

    for (int i = 0; i < users->n; i++) {
        cluster *c = cluster_of(users->at[i]);
        cluster_member m;
        int extra;

        if (!can_take(cs, c, in, &m, &extra))
            continue;
        cluster_add(cs, c, m);
        c->extra += extra + (users->n > 1 && !cluster_is_view_op(in));
        n++;
    }
    if (n < users->n || outside)
        info_of(in)->outside = true;
}

static bool all_can_take(clusters *cs, hlo_inst *in, cluster_list *users)
{
    for (int i = 0; i < users->n; i++) {
        cluster_member m;
        int extra;
        cluster *c = cluster_of(users->at[i]);

        if (!can_take(cs, c, in, &m, &extra) ||
            (users->n > 1 && !cluster_has_extra(c) && !cluster_is_view_op(in)))
            return false;
    }
    return true;
}

/* A reduction with several results goes with its get-tuple-elements: all into
 * the one kernel that wants one of them, or all outputs of their own. */
static void place_element(clusters *cs, hlo_inst *in)
{
    hlo_inst *red = in->arg[0];
    cluster_list users = {0};
    cluster_member m;
    int extra;
    cluster *c;

    if (cs->apart)
        return;
    merge_users(cs, in);
    user_clusters(cs, in, &users);
    if (red->nuse != 1 || users.n != 1 || used_outside(in))
        return;
    c = cluster_of(users.at[0]);
    if (!can_take(cs, c, in, &m, &extra))
        return;
    cluster_add(cs, c, m);
    cluster_views(cs, c, &c->space, red, &m);
    cluster_add(cs, c, m);
}

static void place_several(clusters *cs, hlo_inst *in)
{
    if (info_of(in)->in.n == 0 && in->nuse)
        cluster_create(cs, in);
}

static void place(clusters *cs, hlo_inst *in)
{
    cluster_list users = {0};
    cluster_info *f = info_of(in);
    bool outside = used_outside(in),
         free_op = in->op == HLO_CONSTANT || in->op == HLO_IOTA ||
                   in->op == HLO_BROADCAST || plan_is_alias(in);

    if (cs->apart && in->op != HLO_CONSTANT) {
        f->outside = true;
        if (!plan_is_alias(in))
            cluster_create(cs, in);
        return;
    }
    merge_users(cs, in);
    user_clusters(cs, in, &users);
    if (users.n && free_op) {
        join_all(cs, in, &users, outside);
    } else if (users.n && !outside && cluster_may_repeat(in, users.n) &&
               all_can_take(cs, in, &users)) {
        join_all(cs, in, &users, false);
    } else if (users.n && attach(cs, in, &users)) {
        return;
    } else {
        f->outside = true;
    }
    /* a renaming in memory is no kernel; a constant has its memory */
    if (f->outside && in->op != HLO_CONSTANT && !plan_is_alias(in))
        cluster_create(cs, in);
}

/* ---- a computation ---- */

/* What depends on data, as a node that only stands for itself: the same one
 * for the same operand of the same instruction at the same place. */
struct cluster_place {
    const hlo_inst *in;
    int k, rank;
    const plan_expr **index;
    plan_node node;
    cluster_place *next;
};

static bool same_place(const cluster_place *p, const hlo_inst *in, int k,
                       const plan_expr *const *index)
{
    if (p->in != in || p->k != k)
        return false;
    for (int i = 0; i < p->rank; i++)
        if (p->index[i] != index[i])
            return false;
    return true;
}

plan_node *cluster_place_node(clusters *cs, uint64_t hash, const hlo_inst *in,
                              int k, const plan_expr *const *index)
{
    cluster_place *first = sd_map_get(cs->places, hash), *p;

    for (p = first; p; p = p->next)
        if (same_place(p, in, k, index))
            return &p->node;
    p = sd_arena_new(cs->a, cluster_place);
    *p = (cluster_place){.in = in, .k = k, .next = first};
    p->rank = in->arg[k]->shape->rank;
    if (p->rank)
        p->index = sd_arena_copy(cs->a, index, (size_t)p->rank * sizeof *index);
    for (int i = 0; i < p->rank; i++)
        p->node.varies |= index[i]->varies;
    sd_map_set(cs->places, hash, p);
    return &p->node;
}

static const plan_expr *place_of_data(plan_viewer *viewer, const hlo_inst *in,
                                      int k, const plan_expr *const *index,
                                      int64_t hi)
{
    const sd_shape *s = in->arg[k]->shape;
    uint64_t h = sd_hash(index, (size_t)s->rank * sizeof *index,
                         sd_key(in) + (uint64_t)k);

    if (in->arg[k]->op == HLO_CONSTANT && s->rank == 0) {
        int64_t v = sd_scalar_to_s64(s->dtype, in->arg[k]->u.literal.data);

        return plan_px_const(viewer->px, SD_MIN(SD_MAX(v, 0), hi));
    }
    return plan_px_node(viewer->px,
                        cluster_place_node((clusters *)viewer, h, in, k, index),
                        0, hi);
}

static void create_whole(clusters *cs, hlo_inst *in)
{
    cluster *c = cluster_create(cs, in);

    c->scan = is_scan(in);
    c->alone = !c->scan && !is_update(in);
    if (c->update)
        c->before = cluster_computed_before(cs, c);
}

static void prepare(clusters *cs, hlo_comp *c)
{
    int order = 0;

    hlo_for_each_inst(in, c) {
        cluster_info *f = sd_arena_new(cs->a, cluster_info);

        f->order = order++;
        f->fusable = is_fusable(in) && !is_empty(in);
        in->tag = f;
    }
}

static void fuse_comp(hlo_comp *c, bool apart)
{
    sd_arena *a = sd_arena_create();
    clusters cs = {
        .viewer = {.dynamic = place_of_data}, .a = a, .c = c, .apart = apart};

    cs.viewer.px = plan_px_create(a);
    cs.places = sd_map_create(a);
    hlo_for_each_inst_backward(in, c)
        if (in->op == HLO_SORT && !is_empty(in))
            plan_fuse_sort(in);
    prepare(&cs, c);
    if (!apart)
        cluster_take_rows(&cs);
    hlo_for_each_inst_backward(in, c) {
        if (info_of(in)->placed)
            continue;
        if (info_of(in)->fusable && in->op == HLO_GET_TUPLE_ELEMENT)
            place_element(&cs, in);
        else if (info_of(in)->fusable && in->shape->dtype == SD_TUPLE)
            place_several(&cs, in);
        else if (info_of(in)->fusable)
            place(&cs, in);
        else if (is_alone(in) && !is_empty(in))
            create_whole(&cs, in);
        else if (!apart)
            merge_users(&cs, in);
    }
    for (int i = 0; i < cs.all.n; i++)
        if (!cs.all.at[i]->into)
            cluster_build(&cs, cs.all.at[i]);
    for (int i = 0; i < cs.all.n; i++)
        if (!cs.all.at[i]->into)
            cluster_replace(&cs, cs.all.at[i]);
    hlo_comp_sort(c);
    hlo_comp_sweep(c);
    hlo_for_each_inst(in, c)
        in->tag = NULL;
    sd_arena_destroy(a);
}

/* Computations that are run as steps; reducers and the like are not. */
static void fuse_called(hlo_comp *c, bool apart)
{
    hlo_for_each_inst(in, c)
        if (in->op == HLO_WHILE || in->op == HLO_CONDITIONAL ||
            in->op == HLO_CALL)
            for (int i = 0; i < in->ncomp; i++)
                fuse_called(in->comp[i], apart);
    if (c->mark != 1) {
        c->mark = 1;
        fuse_comp(c, apart);
    }
}

sd_status plan_fuse(hlo_module *m, const sd_options *opt)
{
    hlo_for_each_comp(c, m)
        c->mark = 0;
    fuse_called(m->entry, opt && !sd_opt_bool(opt, SD_OPT_FUSE));
    return NULL;
}
