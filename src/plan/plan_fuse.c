/* Which instructions share a kernel.  One walk over a computation, users
 * first: an instruction either joins the kernels of all its users, or it is
 * written to memory by a kernel of its own or of one of its users (which then
 * has several outputs).  What decides is where the users need it: the index
 * expressions of plan_view.c under the space of the kernel.
 *
 * Nothing here looks at the device: all devices get the same fusions. */
#include "plan_cluster.h"

enum {
    MOST_MEMBERS = 240,
    MOST_ROOTS = 16,
    MOST_VIEWS = 300,
    MOST_OPERANDS = 44,
    MOST_EXTRA = 8,      /* cheap work done again, ops a kernel */
    MOST_NEIGHBOURS = 8, /* users of one value that are asked to join */
    MOST_COPIES = 4,     /* kernels that compute the same value */
    SMALL = 16384, /* computing this much again costs less than a launch */
    SMALL_HEAVY = 2048
};

static bool is_view_op(const hlo_inst *in)
{
    switch (in->op) {
    case HLO_BROADCAST:
    case HLO_RESHAPE:
    case HLO_BITCAST:
    case HLO_TRANSPOSE:
    case HLO_REVERSE:
    case HLO_SLICE:
    case HLO_DYNAMIC_SLICE:
    case HLO_PAD:
    case HLO_GATHER:
    case HLO_CONCATENATE:
    case HLO_IOTA:
    case HLO_CONSTANT:
        return true;
    default:
        return false;
    }
}

static bool is_fusable(const hlo_inst *in)
{
    if (!sd_shape_is_array(in->shape) && in->op != HLO_REDUCE &&
        in->op != HLO_REDUCE_WINDOW)
        return false;
    if (hlo_is_elementwise(in) || is_view_op(in) || plan_is_reducing(in))
        return in->op != HLO_CONSTANT || in->shape->rank == 0 ||
               hlo_is_splat(in);
    if (in->op == HLO_GET_TUPLE_ELEMENT)
        return in->arg[0]->op == HLO_REDUCE ||
               in->arg[0]->op == HLO_REDUCE_WINDOW;
    return in->op == HLO_BITCAST_CONVERT;
}

/* Kernels of one instruction, into which nothing is fused but what an update
 * in place writes. */
static bool is_alone(const hlo_inst *in)
{
    return in->op == HLO_SORT || in->op == HLO_SCAN || in->op == HLO_SCATTER ||
           in->op == HLO_DYNAMIC_UPDATE_SLICE;
}

static bool is_update(const hlo_inst *in)
{
    return in->op == HLO_DYNAMIC_UPDATE_SLICE ||
           (in->op == HLO_SCATTER && in->narg == 3);
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

static int64_t count_of(const hlo_inst *in)
{
    const sd_shape *s = in->shape;

    return sd_shape_count(s->dtype == SD_TUPLE ? s->elem[0] : s);
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
    return needed_once(cs, &c->space, m);
}

static bool varies_inside(const cluster *c, const cluster_member *m)
{
    uint64_t varies = 0;

    for (int i = 0; i < m->view.n; i++)
        for (int d = 0; d < m->view.at[i].rank; d++)
            varies |= m->view.at[i].index[d]->varies;
    return varies >> (c->space.outer->rank + 1) != 0;
}

/* Six operations an element and more shuffles than loading it takes. */
static bool is_complex_product(const hlo_inst *in)
{
    return in->op == HLO_MULTIPLY &&
           sd_dtype_kind(in->shape->dtype) == SD_K_COMPLEX;
}

/* Is the work of computing it in that cluster in proportion?  *extra: cheap
 * work that is done more often than there are elements. */
static bool is_worth(const cluster *c, const cluster_member *m, int *extra)
{
    double times = cluster_times(c, m), n = (double)count_of(m->in);
    uint8_t props = hlo_info(m->in)->props;
    const hlo_inst *in = m->in;

    *extra = 0;
    if (in->op == HLO_GET_TUPLE_ELEMENT || in->op == HLO_CONSTANT)
        return true;
    if (is_view_op(in))
        return m->view.n <= 16 && (in->op != HLO_CONCATENATE || in->narg <= 8);
    if (times <= n * 1.01)
        return true;
    if (props & HLO_P_HEAVY)
        return times <= SMALL_HEAVY;
    if (times <= SMALL)
        return true;
    if (!(props & HLO_P_CHEAP) || is_complex_product(in))
        return times <= 2 * n;
    if (c->inner && c->inner->op != HLO_REDUCE_WINDOW && varies_inside(c, m))
        return in->op == HLO_CONVERT; /* in the loop of a contraction */
    *extra = times > 2 * n;
    return true;
}

/* Reads what the cluster's update writes in place, at other places. */
static bool reads_updated(const cluster *c, const hlo_inst *in)
{
    const hlo_inst *old = c->update ? c->update->arg[0] : NULL;

    if (!old)
        return false;
    if (old->op == HLO_COPY)
        old = old->arg[0];
    while (old->op == HLO_RESHAPE || old->op == HLO_BITCAST)
        old = old->arg[0];
    for (int i = 0; i < in->narg; i++) {
        const hlo_inst *x = in->arg[i];

        while (x->op == HLO_RESHAPE || x->op == HLO_BITCAST)
            x = x->arg[0];
        if (x == old)
            return true;
    }
    return false;
}

static int views_of(const cluster *c)
{
    int n = 0;

    for (int i = 0; i < c->member.n; i++)
        n += c->member.at[i].view.n;
    return n;
}

static bool can_take(clusters *cs, cluster *c, hlo_inst *in, cluster_member *m,
                     int *extra)
{
    const hlo_inst *red;

    if (c->alone || c->member.n >= MOST_MEMBERS || is_empty(in) ||
        reads_updated(c, in))
        return false;
    *extra = 0;
    red = in->op == HLO_GET_TUPLE_ELEMENT ? in->arg[0] : in;
    if (red->op == HLO_REDUCE && red->dims.n == 1)
        return can_take_reduce(cs, c, in, red, m);
    if (plan_is_reducing(red))
        return can_take_inner(cs, c, in, m);
    cluster_views(cs, c, &c->space, in, m);
    return is_worth(c, m, extra) && views_of(c) + m->view.n <= MOST_VIEWS &&
           c->extra + *extra <= MOST_EXTRA;
}

/* ---- the clusters of an instruction's users ---- */

typedef sd_vec(cluster *) cluster_list;

static void user_clusters(clusters *cs, const hlo_inst *in, cluster_list *out)
{
    for (int i = 0; i < in->nuse; i++) {
        cluster_info *f = info_of(in->user[i]);

        for (int j = 0; f && j < f->in.n; j++) {
            cluster *c = cluster_of(f->in.at[j]);
            bool there = false;

            for (int k = 0; k < out->n; k++)
                there |= out->at[k] == c;
            if (!there)
                *sd_push(cs->a, out) = c;
        }
    }
}

static int operand_count(const cluster *c)
{
    int n = 0;

    for (int i = 0; i < c->member.n; i++)
        for (int k = 0; k < c->member.at[i].in->narg; k++) {
            const cluster_info *f = info_of(c->member.at[i].in->arg[k]);

            n += f == NULL || f->in.n == 0; /* at most, so far */
        }
    return n;
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
    if (x->alone || y->alone || x->update || y->update || x->inner || y->inner)
        return false;
    if (x->member.n + y->member.n > MOST_MEMBERS / 2 ||
        x->root.n + y->root.n > MOST_ROOTS ||
        operand_count(x) + operand_count(y) > MOST_OPERANDS)
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

    if (!sd_shape_is_array(in->shape) && in->op != HLO_REDUCE)
        return;
    user_clusters(cs, in, &users);
    for (int i = 0; i < users.n; i++)
        for (int j = i + 1; j < SD_MIN(users.n, i + MOST_NEIGHBOURS); j++) {
            cluster *x = cluster_of(users.at[i]), *y = cluster_of(users.at[j]);

            if (x != y && (double)count_of(in) * 2 >=
                              SD_MIN(cluster_points(x), cluster_points(y)))
                try_merge(cs, x, y);
        }
}

/* ---- one instruction ---- */

static bool is_alias(const hlo_inst *in)
{
    return in->op == HLO_RESHAPE || in->op == HLO_BITCAST;
}

static bool used_outside(const hlo_inst *in)
{
    if (in == in->parent->root)
        return true;
    for (int i = 0; i < in->nuse; i++) {
        const cluster_info *f = info_of(in->user[i]);

        /* a renaming that is needed in memory is this value in memory */
        if (f->in.n == 0 || (f->outside && is_alias(in->user[i])))
            return true;
    }
    return false;
}

/* Leaves and pure renamings cost nothing in any number of kernels; other cheap
 * values may be computed by a few. */
static bool may_repeat(const hlo_inst *in, int copies)
{
    int64_t read = 0;

    if (copies == 1)
        return true;
    if (in->op == HLO_CONSTANT || in->op == HLO_IOTA ||
        in->op == HLO_BROADCAST || in->op == HLO_RESHAPE ||
        in->op == HLO_BITCAST || in->op == HLO_SLICE)
        return true;
    if (plan_is_reducing(in) || !(hlo_info(in)->props & HLO_P_CHEAP))
        return count_of(in) * copies <= 256 && !plan_is_reducing(in) &&
               !(hlo_info(in)->props & HLO_P_HEAVY);
    if (count_of(in) <= 1024)
        return copies <= 8;
    for (int i = 0; i < in->narg; i++) {
        const hlo_inst *x = in->arg[i];

        while (x->op == HLO_BROADCAST || is_alias(x))
            x = x->arg[0]; /* what memory is read in the end */
        if (plan_is_reducing(x) && x->op != HLO_REDUCE && x->nuse == 1)
            return false; /* better computed where that is */
        read += count_of(x);
    }
    return copies <= MOST_COPIES && read <= count_of(in) * 3 / 2;
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

        if (c->alone || c->update || c->inner || c->root.n >= MOST_ROOTS ||
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
        c->extra += extra + (users->n > 1 && !is_view_op(in));
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
            (users->n > 1 && c->extra >= MOST_EXTRA && !is_view_op(in)))
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
                   in->op == HLO_BROADCAST || is_alias(in);

    merge_users(cs, in);
    user_clusters(cs, in, &users);
    if (users.n && free_op) {
        join_all(cs, in, &users, outside);
    } else if (users.n && !outside && may_repeat(in, users.n) &&
               all_can_take(cs, in, &users)) {
        join_all(cs, in, &users, false);
    } else if (users.n && attach(cs, in, &users)) {
        return;
    } else {
        f->outside = true;
    }
    /* a renaming in memory is no kernel; a constant has its memory */
    if (f->outside && in->op != HLO_CONSTANT && !is_alias(in))
        cluster_create(cs, in);
}

/* ---- a computation ---- */

static const plan_expr *place_of_data(plan_viewer *viewer, const hlo_inst *in,
                                      int k, const plan_expr *const *index,
                                      int64_t hi)
{
    clusters *cs = (clusters *)viewer;
    int rank = in->arg[k]->shape->rank;
    uint64_t h =
        sd_hash(index, (size_t)rank * sizeof *index, sd_key(in) + (uint64_t)k);
    plan_node *n = sd_map_get(cs->places, h);

    if (in->arg[k]->op == HLO_CONSTANT && rank == 0) {
        int64_t v = sd_scalar_to_s64(in->arg[k]->shape->dtype,
                                     in->arg[k]->u.literal.data);

        return plan_px_const(viewer->px, SD_MIN(SD_MAX(v, 0), hi));
    }
    if (!n) {
        n = sd_arena_new(cs->a, plan_node);
        for (int i = 0; i < rank; i++)
            n->varies |= index[i]->varies;
        sd_map_set(cs->places, h, n);
    }
    return plan_px_node(viewer->px, n, 0, hi);
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

static void fuse_comp(hlo_comp *c)
{
    sd_arena *a = sd_arena_create();
    clusters cs = {.viewer = {.dynamic = place_of_data}, .a = a, .c = c};

    cs.viewer.px = plan_px_create(a);
    cs.places = sd_map_create(a);
    prepare(&cs, c);
    hlo_for_each_inst_backward(in, c) {
        if (info_of(in)->fusable && in->op == HLO_GET_TUPLE_ELEMENT)
            place_element(&cs, in);
        else if (info_of(in)->fusable && in->shape->dtype == SD_TUPLE)
            place_several(&cs, in);
        else if (info_of(in)->fusable)
            place(&cs, in);
        else if (is_alone(in) && !is_empty(in))
            cluster_create(&cs, in)->alone = !is_update(in);
        else
            merge_users(&cs, in);
    }
    for (int i = 0; i < cs.all.n; i++)
        if (!cs.all.at[i]->into)
            cluster_build(&cs, cs.all.at[i]);
    for (int i = 0; i < cs.all.n; i++)
        if (!cs.all.at[i]->into)
            cluster_replace(&cs, cs.all.at[i]);
    hlo_comp_sort(c);
    hlo_for_each_inst_backward(in, c)
        if (in->nuse == 0 && in != c->root && !hlo_has_effect(in))
            hlo_remove(in);
    hlo_for_each_inst(in, c)
        in->tag = NULL;
    sd_arena_destroy(a);
}

/* Computations that are run as steps; reducers and the like are not. */
static void fuse_called(hlo_comp *c)
{
    hlo_for_each_inst(in, c)
        if (in->op == HLO_WHILE || in->op == HLO_CONDITIONAL ||
            in->op == HLO_CALL)
            for (int i = 0; i < in->ncomp; i++)
                fuse_called(in->comp[i]);
    if (c->mark != 1) {
        c->mark = 1;
        fuse_comp(c);
    }
}

sd_status plan_fuse(hlo_module *m)
{
    hlo_for_each_comp(c, m)
        c->mark = 0;
    fuse_called(m->entry);
    return NULL;
}
