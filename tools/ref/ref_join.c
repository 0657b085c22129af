/* What participants do together, on dense arrays: collectives, and the
 * borders of manual computations, which stand in programs that are not cut
 * yet. */
#include "hlo_sharding.h"
#include "ref_priv.h"

/* ---- parts ---- */

/* n positions of dimension d, from `from` on, to those from `at` on. */
static void copy_part(const hlo_value *x, int64_t from, const hlo_value *to,
                      int64_t at, int64_t d, int64_t n)
{
    size_t inner = sd_dtype_bytes(x->shape->dtype), outer = 1;

    for (int i = 0; i < x->shape->rank; i++)
        if (i < d)
            outer *= (size_t)x->shape->dim[i];
        else if (i > d)
            inner *= (size_t)x->shape->dim[i];
    for (size_t k = 0; k < outer; k++)
        memcpy((char *)to->data +
                   (k * (size_t)to->shape->dim[d] + (size_t)at) * inner,
               (const char *)x->data +
                   (k * (size_t)x->shape->dim[d] + (size_t)from) * inner,
               (size_t)n * inner);
}

/* ---- collectives ---- */

typedef struct {
    hlo_ev *e;
    const hlo_inst *in;
    const hlo_gang *g;
    const int64_t *who; /* of one group */
    int64_t n, dim;
    ref_region *region;
} meeting;

static sd_status add_up(meeting *t, int k, const hlo_value *to)
{
    size_t size = sd_dtype_bytes(to->shape->dtype);
    char *x;
    char sum[16];
    sd_status st;

    memcpy(to->data, t->g->in[t->who[0]][k].data, sd_shape_bytes(to->shape));
    for (int64_t i = 1; i < t->n; i++)
        for (int64_t j = 0; j < sd_shape_count(to->shape); j++) {
            const void *two[2];
            void *out = sum;

            x = hlo_at_elem(to, j);
            two[0] = x;
            two[1] = hlo_at_elem(&t->g->in[t->who[i]][k], j);
            if ((st = ref_region_run(t->e, t->region, two, &out)))
                return st;
            memcpy(x, sum, size);
        }
    return NULL;
}

static sd_status reduce(meeting *t, int k)
{
    const hlo_value *first = &t->g->in[t->who[0]][k];
    hlo_value all = hlo_value_make(t->e->arena, first->shape);
    sd_status st = add_up(t, k, &all);

    for (int64_t i = 0; !st && i < t->n; i++) {
        hlo_value *to = hlo_result_at(&t->g->out[t->who[i]], k);

        if (t->in->op == HLO_ALL_REDUCE)
            memcpy(to->data, all.data, sd_shape_bytes(to->shape));
        else
            copy_part(&all, i * to->shape->dim[t->dim], to, 0, t->dim,
                      to->shape->dim[t->dim]);
    }
    return st;
}

static void exchange(meeting *t, int k)
{
    for (int64_t i = 0; i < t->n; i++)
        for (int64_t j = 0; j < t->n; j++) {
            const hlo_value *x = &t->g->in[t->who[j]][k];
            hlo_value *to = hlo_result_at(&t->g->out[t->who[i]], k);
            int64_t n = x->shape->dim[t->dim];

            if (t->in->op == HLO_ALL_GATHER)
                copy_part(x, 0, to, j * n, t->dim, n);
            else
                copy_part(x, i * (n / t->n), to, j * (n / t->n), t->dim,
                          n / t->n);
        }
}

static sd_status meet(meeting *t)
{
    sd_status st;

    for (int k = 0; k < t->in->narg; k++) {
        switch (t->in->op) {
        case HLO_ALL_REDUCE:
        case HLO_REDUCE_SCATTER:
            if ((st = reduce(t, k)))
                return st;
            break;
        case HLO_COLLECTIVE_BROADCAST:
            for (int64_t i = 0; i < t->n; i++) {
                hlo_value *to = hlo_result_at(&t->g->out[t->who[i]], k);

                memcpy(to->data, t->g->in[t->who[0]][k].data,
                       sd_shape_bytes(to->shape));
            }
            break;
        default:
            exchange(t, k);
        }
    }
    return NULL;
}

/* All of a group's members come, or none of them. */
static sd_status who_comes(const hlo_inst *in, const hlo_gang *g,
                           const int64_t *who, int64_t n, bool *come)
{
    int64_t there = 0, missing = 0;

    for (int64_t i = 0; i < n; i++)
        if (g->here[who[i]])
            there++;
        else
            missing = who[i];
    *come = there > 0;
    return there == 0 || there == n
               ? NULL
               : sd_error(SD_INVALID,
                          "%s: participant %" PRId64
                          " does not come to where others of its group wait",
                          hlo_describe(in->parent->module, in), missing);
}

static sd_status permute(const hlo_inst *in, const hlo_gang *g,
                         const hlo_collective *c)
{
    sd_status st;
    bool come;

    for (int64_t i = 0; i < c->ngroup; i++) {
        const int64_t *pair = c->groups + 2 * i;

        if ((st = who_comes(in, g, pair, 2, &come)))
            return st;
        for (int k = 0; come && k < in->narg; k++) {
            hlo_value *to = hlo_result_at(&g->out[pair[1]], k);

            memcpy(to->data, g->in[pair[0]][k].data, sd_shape_bytes(to->shape));
        }
    }
    return NULL;
}

sd_status ref_join(hlo_ev *e, const hlo_inst *in, const hlo_gang *g)
{
    hlo_collective c = hlo_explicit_groups(e->arena, in);
    meeting t = {
        .e = e, .in = in, .g = g, .dim = in->dims.n ? in->dims.at[0] : c.dim};
    sd_status st;
    bool come;

    if (in->op == HLO_COLLECTIVE_PERMUTE)
        return permute(in, g, &c);
    if (in->ncomp)
        t.region = ref_region_open(e, in->comp[0]);
    for (int64_t i = 0; i < c.ngroup; i++) {
        t.who = c.groups + i * c.group_size;
        for (t.n = c.group_size; t.n > 0 && t.who[t.n - 1] < 0;)
            t.n--;
        if ((st = who_comes(in, g, t.who, t.n, &come)) ||
            (come && (st = meet(&t))))
            return st;
    }
    return NULL;
}

/* ---- borders ---- */

typedef struct {
    const hlo_sharding *s;
    uint32_t manual;
    bool enter;
} crossing;

/* Where participant p's part begins in each dimension; false: not in it. */
static bool part_of(const crossing *t, const sd_shape *whole,
                    const sd_shape *part, int64_t p, int64_t *start)
{
    for (int d = 0; d < part->rank; d++) {
        hlo_atoms a = {0};

        if (d < t->s->rank)
            a = hlo_atoms_in(&t->s->dim[d].cut, t->manual);
        start[d] = hlo_grid_index(t->s->grid, &a, p) * part->dim[d];
        if (start[d] < 0 || start[d] > whole->dim[d] - part->dim[d])
            return false;
    }
    return true;
}

/* The part that begins at start, from or to the whole. */
static void move_part(const hlo_value *whole, const hlo_value *part,
                      const int64_t *start, bool enter)
{
    size_t size = sd_dtype_bytes(part->shape->dtype);
    int64_t ix[SD_MAX_RANK] = {0}, stride[SD_MAX_RANK], i = 0;

    if (!sd_shape_count(part->shape))
        return;
    sd_shape_strides(whole->shape, stride);
    do {
        int64_t at = 0;

        for (int d = 0; d < part->shape->rank; d++)
            at += (start[d] + ix[d]) * stride[d];
        if (enter)
            memcpy(hlo_at_elem(part, i), hlo_at_elem(whole, at), size);
        else
            memcpy(hlo_at_elem(whole, at), hlo_at_elem(part, i), size);
        i++;
    } while (hlo_step(part->shape->rank, part->shape->dim, ix));
}

/* Participants that share their manual place with p, p's own first place:
 * what stands along axes that stay automatic is the same there. */
static bool same_elsewhere(const hlo_grid *g, uint32_t manual, int64_t p,
                           int64_t q)
{
    for (int i = 0; i < g->natom; i++) {
        hlo_atoms one = {.n = 1, .at = {(uint8_t)i}};

        if (!(manual >> i & 1) &&
            hlo_grid_index(g, &one, p) != hlo_grid_index(g, &one, q))
            return false;
    }
    return true;
}

/* Sums (or the like) of unreduced parts are not what a reference does: the
 * tests of those compare with one participant. */
static sd_status cross(hlo_ev *e, const hlo_inst *in, const hlo_gang *g, int i,
                       const crossing *t)
{
    int64_t start[SD_MAX_RANK];

    (void)e;
    if (t->s->unreduced & t->manual)
        return sd_error(SD_UNIMPLEMENTED,
                        "evaluating a manual computation's unreduced result");
    for (int64_t p = 0; p < g->n; p++) {
        hlo_value *mine;

        if (!g->here[p])
            continue;
        mine = hlo_result_at(&g->out[p], i);
        for (int64_t q = 0; q < g->n; q++) {
            const hlo_value *x = &g->in[q][i];
            const hlo_value *whole = t->enter ? x : mine;
            const hlo_value *part = t->enter ? mine : x;

            if (t->enter ? q != p
                         : !g->here[q] ||
                               !same_elsewhere(t->s->grid, t->manual, p, q))
                continue;
            if (!sd_shape_is_array(part->shape) ||
                whole->shape->rank != part->shape->rank ||
                !part_of(t, whole->shape, part->shape, q, start))
                return ref_misfit(in);
            move_part(whole, part, start, t->enter);
        }
    }
    return NULL;
}

static sd_status border(hlo_ev *e, const hlo_inst *in, const hlo_gang *g)
{
    hlo_module *m = in->parent->module;
    bool enter = strstr(in->u.custom->target, "GlobalTo") != NULL;
    const char *text =
        hlo_attribute(m->arena, in->frontend_attrs,
                      enter ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings");
    const char *axes =
        hlo_attribute(m->arena, in->frontend_attrs, "xla.sdy.manual_axes");
    const hlo_sharding **s =
        sd_arena_array(m->arena, const hlo_sharding *, in->narg + 1);
    int *rank = sd_arena_array(m->arena, int, in->narg + 1);
    sd_status st;

    for (int i = 0; i < in->narg; i++)
        rank[i] = SD_MAX_RANK;
    if (!text || !axes)
        return ref_misfit(in);
    if ((!m->mesh && (st = hlo_meshes_read(m))) ||
        (st = hlo_shardings_read(m, text, in->narg, rank, s)))
        return st;
    for (int i = 0; i < in->narg; i++) {
        crossing t = {.s = s[i], .enter = enter};

        if (s[i]->mesh && s[i]->mesh->naxis &&
            (st = hlo_axes_read(s[i]->mesh, axes, &t.manual)))
            return st;
        if ((st = cross(e, in, g, i, &t)))
            return st;
    }
    return NULL;
}

/* ---- rows that members send each other ---- */

static int64_t int_at(const hlo_value *v, int64_t i)
{
    return sd_scalar_to_s64(v->shape->dtype, hlo_at_elem(v, i));
}

/* Rows of member `from` to member `to`, which has place k in the group. */
static sd_status send_rows(const hlo_inst *in, const hlo_gang *g, int64_t from,
                           int64_t to, int64_t k)
{
    const hlo_value *x = g->in[from];
    int64_t at = int_at(&x[2], k), n = int_at(&x[3], k);
    int64_t put = int_at(&x[4], k);

    if (at < 0 || n < 0 || put < 0 || n > x[0].shape->dim[0] - at ||
        n > g->out[to].shape->dim[0] - put)
        return ref_misfit(in);
    copy_part(&x[0], at, &g->out[to], put, 0, n);
    return NULL;
}

static sd_status ragged(const hlo_inst *in, const hlo_gang *g)
{
    hlo_collective c;
    int64_t pieces;
    sd_status st;
    bool come;

    if (!hlo_config_groups(in->parent->module, in->u.custom, &c) ||
        in->narg != 6 || !sd_shape_equal(in->shape, in->arg[1]->shape) ||
        !in->shape->rank)
        return ref_misfit(in);
    for (int i = 2; i < 6; i++)
        if (in->arg[i]->shape->rank != 1 ||
            in->arg[i]->shape->dim[0] != in->arg[2]->shape->dim[0] ||
            in->arg[i]->shape->dim[0] % c.group_size)
            return ref_misfit(in);
    pieces = in->arg[2]->shape->dim[0] / c.group_size;
    for (int64_t q = 0; q < c.ngroup; q++) {
        const int64_t *who = c.groups + q * c.group_size;

        if ((st = who_comes(in, g, who, c.group_size, &come)))
            return st;
        for (int64_t k = 0; come && k < c.group_size; k++) {
            memcpy(g->out[who[k]].data, g->in[who[k]][1].data,
                   sd_shape_bytes(in->shape));
            for (int64_t i = 0; i < c.group_size * pieces; i++)
                if ((st = send_rows(in, g, who[i / pieces], who[k],
                                    k * pieces + i % pieces)))
                    return st;
        }
    }
    return NULL;
}

bool ref_is_joint(const hlo_inst *in)
{
    static const char *const joint[] = {"xla.sdy.GlobalToLocalShape",
                                        "xla.sdy.LocalToGlobalShape",
                                        HLO_RAGGED_TARGET};

    for (size_t i = 0; in->op == HLO_CUSTOM_CALL && i < SD_COUNTOF(joint); i++)
        if (strcmp(in->u.custom->target, joint[i]) == 0)
            return true;
    return false;
}

sd_status ref_joint(hlo_ev *e, const hlo_inst *in, const hlo_gang *g)
{
    return strcmp(in->u.custom->target, HLO_RAGGED_TARGET) == 0
               ? ragged(in, g)
               : border(e, in, g);
}
