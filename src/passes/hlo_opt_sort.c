/* Sorts of lines that lie across memory, on GPUs.  A group reads its line an
 * element at a time, of which each is another sector of memory: the lines are
 * turned, sorted where they lie along it, and turned back. */
#include "passes_priv.h"

enum {
    SECTOR = 32, /* bytes of memory that are read at once */
    LEAST = 1 << 20 /* bytes: what is less takes no longer than a launch */
};

/* What `in` is of these operands, along their last dimension. */
static hlo_inst *sort_last(hlo_at p, const hlo_inst *in, hlo_inst **x)
{
    sd_arena *a = in->parent->module->arena;
    const sd_shape **s = sd_arena_array(a, const sd_shape *, in->narg);
    int64_t last = x[0]->shape->rank - 1;
    hlo_inst *sort;

    for (int i = 0; i < in->narg; i++)
        s[i] = x[i]->shape;
    sort = hlo_inst_create(in->parent, p.before, HLO_SORT,
                           in->narg > 1 ? sd_shape_tuple(a, in->narg, s) : s[0],
                           in->narg, x);
    sort->dims = hlo_dims_copy(a, &last, 1);
    sort->u.sort = in->u.sort;
    sort->op_name = in->op_name;
    hlo_set_comps(sort, 1, in->comp);
    return sort;
}

static bool is_far_apart(const hlo_inst *in)
{
    const sd_shape *s = in->arg[0]->shape;
    int64_t apart = 1, bytes = 0;

    if (in->dims.at[0] == s->rank - 1)
        return false;
    for (int i = 0; i < in->narg; i++)
        bytes += (int64_t)sd_dtype_bytes(in->arg[i]->shape->dtype);
    for (int d = (int)in->dims.at[0] + 1; d < s->rank; d++)
        apart *= s->dim[d];
    return apart * bytes >= SECTOR && sd_shape_count(s) * bytes >= LEAST;
}

static hlo_inst *turn_sort(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    int rank = in->arg[0]->shape->rank;
    int64_t perm[SD_MAX_RANK], axis = in->dims.at[0];
    hlo_inst *sort, **x;

    if (!is_far_apart(in))
        return NULL;
    for (int d = 0; d < rank; d++)
        perm[d] = d == axis ? rank - 1 : d == rank - 1 ? axis : d;
    x = sd_arena_array(in->parent->module->arena, hlo_inst *, in->narg);
    for (int i = 0; i < in->narg; i++)
        x[i] = hlo_make_transpose(p, in->arg[i], perm);
    sort = sort_last(p, in, x);
    for (int i = 0; i < in->narg; i++)
        x[i] = hlo_make_transpose(p, pass_result(p, sort, i), perm);
    return pass_results(p, in->shape, x);
}

bool hlo_opt_sort(hlo_module *m, const device_desc *dev)
{
    return dev->access && pass_rewrite(m, HLO_SORT, turn_sort);
}
