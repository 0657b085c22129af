/* Attention: what the dimensions of a value are.  See attend.h. */
#include "attend.h"

bool attend_view_has(const attend_view *v, int rank, int axis)
{
    for (int i = 0; i < rank; i++)
        for (int j = 0; j < v->n[i]; j++)
            if (v->axis[i][j] == axis)
                return true;
    return false;
}

/* All axes in a row, dealt out to the dimensions of s: none is cut. */
static bool reshaped_view(const attend_pattern *p, const attend_view *v,
                          int rank, const sd_shape *s, attend_view *out)
{
    int dim = 0;
    int64_t have = 1;

    *out = (attend_view){0};
    for (int i = 0; i < rank; i++)
        for (int j = 0; j < v->n[i]; j++) {
            while (dim < s->rank && have == s->dim[dim]) {
                dim++;
                have = 1;
            }
            if (dim == s->rank || out->n[dim] == ATTEND_AXES)
                return false;
            attend_add_axis(out, dim, v->axis[i][j]);
            have *= p->extent[(int)v->axis[i][j]];
            if (s->dim[dim] % have)
                return false;
        }
    for (; dim < s->rank; dim++, have = 1)
        if (have != s->dim[dim])
            return false;
    return true;
}

bool attend_moved_view(const attend_pattern *p, const hlo_inst *in,
                       const attend_view *v, attend_view *out)
{
    attend_view o = {0};

    switch (in->op) {
    case HLO_BROADCAST:
    case HLO_TRANSPOSE:
        for (int i = 0; i < in->dims.n; i++) {
            int64_t from = in->op == HLO_BROADCAST ? in->dims.at[i] : i;
            int64_t to = in->op == HLO_BROADCAST ? i : in->dims.at[i];

            attend_take_axes(&o, (int)to, v, from);
        }
        *out = o;
        return true;
    case HLO_RESHAPE:
        return reshaped_view(p, v, in->shape->rank, in->arg[0]->shape, out);
    case HLO_COPY:
        *out = *v;
        return true;
    default:
        return false;
    }
}

bool attend_user_view(const attend_pattern *p, const hlo_inst *in,
                      const attend_view *v, const hlo_inst *user,
                      attend_view *out)
{
    attend_view o = {0};

    switch (user->op) {
    case HLO_TRANSPOSE:
        for (int i = 0; i < user->dims.n; i++)
            attend_take_axes(&o, i, v, user->dims.at[i]);
        *out = o;
        return true;
    case HLO_RESHAPE:
        return reshaped_view(p, v, in->shape->rank, user->shape, out);
    case HLO_COPY:
    case HLO_CONVERT:
        *out = *v;
        return true;
    default:
        return false;
    }
}

/* ---- products ---- */

int attend_result_dim(const hlo_inst *dot, int k, int64_t i)
{
    const hlo_dot *d = dot->u.dot;
    int at = d->lhs_batch.n;

    for (int j = 0; j < attend_batch(d, k)->n; j++)
        if (attend_batch(d, k)->at[j] == i)
            return j;
    for (int s = 0; s < 2; s++)
        for (int j = 0; j < dot->arg[s]->shape->rank; j++) {
            if (hlo_dims_hold(*attend_batch(d, s), j) ||
                hlo_dims_hold(*attend_contract(d, s), j))
                continue;
            if (s == k && j == i)
                return at;
            at++;
        }
    return -1;
}

attend_view attend_operand_view(const hlo_inst *dot, int k,
                                const attend_view *result, int own)
{
    attend_view v = {0};

    for (int i = 0; i < dot->arg[k]->shape->rank; i++) {
        int at = attend_result_dim(dot, k, i);

        if (at < 0) {
            attend_add_axis(&v, i, own);
            continue;
        }
        attend_take_axes(&v, i, result, at);
    }
    return v;
}
