/* Functions of elements, run many times; and scatters, which run one at each
 * place. */
#include "ref_priv.h"

struct ref_region {
    hlo_frame *f;
    hlo_value *val, *in;
    bool simple, nested; /* one op; calls others */
    hlo_op op;
};

ref_region *ref_region_open(hlo_ev *e, const hlo_comp *c)
{
    ref_region *r = sd_arena_new(e->keep, ref_region);

    r->f = hlo_open_frame(e, c);
    r->simple = hlo_comp_is_binary(c, &r->op);
    r->val = sd_arena_array(e->keep, hlo_value, r->f->n + 1);
    r->in = sd_arena_array(e->keep, hlo_value, r->f->most + 1);
    for (int i = 0; i < r->f->n; i++) {
        const hlo_inst *x = r->f->inst[i];

        r->nested |= x->ncomp > 0;
        r->val[i].shape = x->shape;
        if (!hlo_passes_on(x))
            r->val[i] = hlo_value_make(e->keep, x->shape);
    }
    return r;
}

bool ref_region_op(const ref_region *r, hlo_op *op)
{
    *op = r->op;
    return r->simple;
}

static sd_status run_region(hlo_ev *e, ref_region *r, const void *const *arg,
                            void *const *result)
{
    hlo_frame *f = r->f;
    sd_status st;

    for (int i = 0; i < f->n; i++) {
        const hlo_inst *x = f->inst[i];

        if (x->op == HLO_PARAMETER) {
            r->val[i].data = (void *)(uintptr_t)arg[x->u.param.index];
            continue;
        }
        for (int k = 0; k < x->narg; k++)
            r->in[k] = r->val[f->arg[i][k]];
        if ((st = hlo_eval_one(e, x, r->in, &r->val[i])))
            return sd_note(st, "%s", x->name);
    }
    hlo_value *root = &r->val[f->root];
    int n = sd_shape_nresult(root->shape);

    for (int i = 0; i < n; i++) {
        const hlo_value *v = hlo_result_at(root, i);

        memcpy(result[i], v->data, sd_dtype_bytes(v->shape->dtype));
    }
    return NULL;
}

sd_status ref_region_run(hlo_ev *e, ref_region *r, const void *const *arg,
                         void *const *result)
{
    sd_arena *back = e->arena;
    sd_status st;

    if (r->simple) {
        hlo_scalar_op(r->op, r->f->inst[r->f->root]->arg[0]->shape->dtype,
                      arg[0], arg[1], result[0]);
        return NULL;
    }
    if ((st = hlo_spend(e, r->f->n)))
        return st;
    if (!r->nested)
        return run_region(e, r, arg, result);
    e->arena = sd_arena_create(); /* what calls inside make is short-lived */
    st = run_region(e, r, arg, result);
    sd_arena_destroy(e->arena);
    e->arena = back;
    return st;
}

/* ---- scatter ---- */

/* Does the whole window at start lie inside?  XLA drops those that do not. */
static bool window_fits(const hlo_gather *g, const sd_shape *s,
                        const sd_shape *updates, const int64_t *start)
{
    int k = 0;

    for (int d = 0; d < s->rank; d++) {
        bool one = hlo_dims_hold(g->collapsed, d) ||
                   hlo_dims_hold(g->operand_batch, d);
        int64_t size = one ? 1 : updates->dim[g->offset_dims.at[k++]];

        if (start[d] < 0 || start[d] > s->dim[d] - size)
            return false;
    }
    return true;
}

sd_status ref_scatter(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                      hlo_value *out)
{
    const hlo_gather *g = in->u.gather;
    int n = (in->narg - 1) / 2;
    const sd_shape *s = arg[0].shape, *u = arg[n + 1].shape;
    int64_t ix[SD_MAX_RANK] = {0}, stride[SD_MAX_RANK], batch[SD_MAX_RANK];
    int64_t offset[SD_MAX_RANK], start[SD_MAX_RANK], i = 0;
    const void **x = sd_arena_array(e->arena, const void *, 2 * n);
    void **to = sd_arena_array(e->arena, void *, n);
    char (*fresh)[16] = sd_arena_alloc(e->arena, (size_t)n * 16);
    ref_region *r;
    sd_status st;

    for (int k = 0; k < n; k++) {
        memcpy(hlo_result_at(out, k)->data, arg[k].data,
               sd_shape_bytes(arg[k].shape));
        to[k] = fresh[k];
    }
    if (sd_shape_count(u) == 0)
        return NULL;
    r = ref_region_open(e, in->comp[0]);
    sd_shape_strides(s, stride);
    do {
        int64_t at = 0;

        hlo_split_index(g, u->rank, s->rank, ix, batch, offset);
        hlo_window_start(g, &arg[n], batch, s->rank, start);
        if (!window_fits(g, s, u, start)) {
            i++;
            continue;
        }
        for (int d = 0; d < s->rank; d++)
            at += (start[d] + offset[d]) * stride[d];
        for (int k = 0; k < n; k++) {
            x[k] = hlo_at_elem(hlo_result_at(out, k), at);
            x[n + k] = hlo_at_elem(&arg[n + 1 + k], i);
        }
        if ((st = ref_region_run(e, r, x, to)))
            return st;
        for (int k = 0; k < n; k++)
            memcpy(hlo_at_elem(hlo_result_at(out, k), at), fresh[k],
                   sd_dtype_bytes(arg[k].shape->dtype));
        i++;
    } while (hlo_step(u->rank, u->dim, ix));
    return NULL;
}
