/* The iteration space of a fusion: see plan_room.h. */
#include "plan_room.h"

static int64_t product(const int64_t *dim, int from, int to)
{
    int64_t n = 1;

    for (int i = from; i < to; i++)
        n *= dim[i];
    return n;
}

void plan_space_of(const hlo_inst *root, const hlo_inst *red, plan_space *out)
{
    const sd_shape *s = red ? red->shape : root->shape;

    *out = (plan_space){.pre = 1, .row = 1, .post = 1};
    out->outer = sd_shape_result(s, 0);
    if (!red)
        return;
    out->full = red->arg[0]->shape;
    out->row_at = (int)red->dims.at[0];
    out->row = out->full->dim[out->row_at];
    out->pre = product(out->full->dim, 0, out->row_at);
    out->post = product(out->full->dim, out->row_at + 1, out->full->rank);
}

/* Equal up to dimensions of 1, so that axes are the same axes. */
static bool same_axes(const sd_shape *x, const sd_shape *y)
{
    return sd_same_but_ones(x->rank, x->dim, y->rank, y->dim);
}

bool plan_space_equal(const plan_space *x, const plan_space *y)
{
    return !x->full == !y->full && same_axes(x->outer, y->outer) &&
           x->pre == y->pre && x->row == y->row && x->post == y->post;
}

/* Axes are numbered without dimensions of 1. */
static int axis_count(const sd_shape *s)
{
    int n = 0;

    for (int i = 0; i < s->rank; i++)
        n += s->dim[i] != 1;
    return n;
}

static void outer_index(plan_px *px, const plan_space *s, const plan_expr **out)
{
    int axis = 0;

    for (int i = 0; i < s->outer->rank; i++)
        out[i] = s->outer->dim[i] == 1
                     ? plan_px_const(px, 0)
                     : plan_px_axis(px, axis++, s->outer->dim[i]);
}

int plan_space_naxis(const plan_space *s)
{
    return axis_count(s->outer) + (s->full != NULL);
}

const plan_expr *plan_space_row(plan_px *px, const plan_space *s)
{
    return plan_px_axis(px, axis_count(s->outer), s->row);
}

const plan_expr *plan_space_outer(plan_px *px, const plan_space *s)
{
    const plan_expr *index[SD_MAX_RANK];

    outer_index(px, s, index);
    return plan_px_linear(px, s->outer->rank, s->outer->dim, index);
}

bool plan_space_index(plan_px *px, const plan_space *s, const sd_shape *root,
                      const plan_expr **out)
{
    const plan_expr *index[SD_MAX_RANK], *full[SD_MAX_RANK];
    int64_t n = sd_shape_count(root), n_outer = sd_shape_count(s->outer);

    outer_index(px, s, index);
    if (n == n_outer) {
        plan_px_reshape(px, s->outer, index, root, out);
        return true;
    }
    if (!s->full || n != n_outer * s->row)
        return false;
    for (int i = 0, j = 0; i < s->full->rank; i++)
        full[i] = i == s->row_at ? plan_space_row(px, s) : index[j++];
    plan_px_reshape(px, s->full, full, root, out);
    return true;
}
