/* Inference of tuples, calls and control flow, tokens, collectives. */
#include "hlo_infer.h"
#include "hlo_linalg.h"

sd_status hlo_infer_tuple(hlo_module *m, const hlo_inst *in,
                          const sd_shape **out)
{
    const sd_shape **s, *x;
    sd_status st;

    if (in->op == HLO_TUPLE) {
        s = sd_arena_array(m->arena, const sd_shape *, in->narg + 1);
        for (int i = 0; i < in->narg; i++)
            s[i] = in->arg[i]->shape;
        *out = sd_shape_tuple(m->arena, in->narg, s);
        return NULL;
    }
    if ((st = hlo_want_args(m, in, 1)))
        return st;
    x = in->arg[0]->shape;
    if (in->op == HLO_OPT_BARRIER) {
        *out = x;
        return NULL;
    }
    if (x->dtype != SD_TUPLE)
        return hlo_bad(m, in, "operand 0 must be a tuple");
    if (in->u.tuple.index < 0 || in->u.tuple.index >= x->nelem)
        return hlo_bad(m, in, "no element %" PRId64 " of %d", in->u.tuple.index,
                       x->nelem);
    *out = x->elem[in->u.tuple.index];
    return NULL;
}

/* ---- calls ---- */

/* Computation k takes the operands [from, from + n). */
static sd_status want_callee(hlo_module *m, const hlo_inst *in, int k, int from,
                             int n)
{
    const hlo_comp *c = in->comp[k];

    if (c->nparam != n)
        return hlo_bad(m, in, "%s takes %d parameters, not %d", c->name,
                       c->nparam, n);
    for (int i = 0; i < n; i++)
        if (!c->param[i] ||
            !sd_shape_equal(c->param[i]->shape, in->arg[from + i]->shape))
            return hlo_bad(
                m, in, "parameter %d of %s is %s, the operand %s", i, c->name,
                c->param[i] ? hlo_shape_str(m, c->param[i]->shape) : "missing",
                hlo_shape_str(m, in->arg[from + i]->shape));
    return NULL;
}

static sd_status infer_while(hlo_module *m, const hlo_inst *in,
                             const sd_shape **out)
{
    sd_status st;

    if ((st = hlo_want_args(m, in, 1)) || (st = hlo_want_comps(m, in, 2)) ||
        (st = want_callee(m, in, 0, 0, 1)) ||
        (st = want_callee(m, in, 1, 0, 1)))
        return st;
    const sd_shape *cond = in->comp[0]->root->shape;
    const sd_shape *body = in->comp[1]->root->shape;

    if (cond->dtype != SD_PRED || cond->rank != 0)
        return hlo_bad(m, in, "the condition gives %s, not pred[]",
                       hlo_shape_str(m, cond));
    if (!sd_shape_equal(body, in->arg[0]->shape))
        return hlo_bad(m, in, "the body gives %s, the loop carries %s",
                       hlo_shape_str(m, body),
                       hlo_shape_str(m, in->arg[0]->shape));
    *out = in->arg[0]->shape;
    return NULL;
}

static sd_status infer_conditional(hlo_module *m, const hlo_inst *in,
                                   const sd_shape **out)
{
    sd_status st;

    if (in->narg < 2)
        return hlo_bad(m, in, "conditional needs a branch");
    sd_dtype t = in->arg[0]->shape->dtype;

    if (t != SD_PRED && t != SD_S32)
        return hlo_bad(m, in, "the choice must be pred[] or s32[]");
    if ((st = hlo_want_scalar(m, in, 0, t)) ||
        (st = hlo_want_comps(m, in, in->narg - 1)))
        return st;
    if (t == SD_PRED && in->ncomp != 2)
        return hlo_bad(m, in, "a pred chooses of two branches, not %d",
                       in->ncomp);
    for (int i = 0; i < in->ncomp; i++) {
        if ((st = want_callee(m, in, i, 1 + i, 1)))
            return st;
        if (!sd_shape_equal(in->comp[i]->root->shape, in->comp[0]->root->shape))
            return hlo_bad(m, in, "branch %d gives %s, branch 0 %s", i,
                           hlo_shape_str(m, in->comp[i]->root->shape),
                           hlo_shape_str(m, in->comp[0]->root->shape));
    }
    *out = in->comp[0]->root->shape;
    return NULL;
}

sd_status hlo_infer_control(hlo_module *m, const hlo_inst *in,
                            const sd_shape **out)
{
    sd_status st;

    if (in->op == HLO_WHILE)
        return infer_while(m, in, out);
    if (in->op == HLO_CONDITIONAL)
        return infer_conditional(m, in, out);
    if ((st = hlo_want_comps(m, in, 1)) ||
        (st = want_callee(m, in, 0, 0, in->narg)))
        return st;
    *out = in->comp[0]->root->shape;
    return NULL;
}

/* Is there a part of s at that index? */
static bool has_part(const sd_shape *s, hlo_dims index)
{
    for (int i = 0; i < index.n; i++) {
        if (s->dtype != SD_TUPLE || index.at[i] < 0 || index.at[i] >= s->nelem)
            return false;
        s = s->elem[index.at[i]];
    }
    return true;
}

sd_status hlo_infer_custom(hlo_module *m, const hlo_inst *in,
                           const sd_shape **out)
{
    const hlo_custom *u = in->u.custom;
    sd_status st = hlo_want_declared(m, in);

    if (st)
        return st;
    if (!u || !u->target || !*u->target)
        return hlo_bad(m, in, "custom-call without a target");
    if (u->api_version < 0 || u->api_version > HLO_TYPED_FFI)
        return hlo_bad(m, in, "API version %d is not in 0..%d", u->api_version,
                       HLO_TYPED_FFI);
    for (int i = 0; i < u->nalias; i++)
        if (u->alias[i].operand < 0 || u->alias[i].operand >= in->narg ||
            !has_part(in->shape, u->alias[i].out_index) ||
            !has_part(in->arg[u->alias[i].operand]->shape,
                      u->alias[i].operand_index))
            return hlo_bad(m, in, "alias %d is of a part that is not there", i);
    if (hlo_is_linalg_name(u->target))
        return hlo_infer_linalg_call(m, in, out);
    *out = in->shape;
    return NULL;
}

/* ---- tokens ---- */

static sd_status want_token(hlo_module *m, const hlo_inst *in, int arg)
{
    if (arg >= in->narg || in->arg[arg]->shape->dtype != SD_TOKEN)
        return hlo_bad(m, in, "operand %d must be a token", arg);
    return NULL;
}

static const sd_shape *token(hlo_module *m)
{
    return sd_shape_make(m->arena, SD_TOKEN, 0, NULL);
}

/* what is on its way: the data, a context, the token; as in XLA */
static const sd_shape *in_flight(hlo_module *m, const sd_shape *x)
{
    const sd_shape *s[3] = {x, sd_shape_make(m->arena, SD_U32, 0, NULL),
                            token(m)};

    return sd_shape_tuple(m->arena, 3, s);
}

static bool is_tuple(const sd_shape *s, int n)
{
    return s && s->dtype == SD_TUPLE && s->nelem == n &&
           s->elem[n - 1]->dtype == SD_TOKEN;
}

sd_status hlo_infer_tokens(hlo_module *m, const hlo_inst *in,
                           const sd_shape **out)
{
    const sd_shape *x = in->narg ? in->arg[0]->shape : NULL, *pair[2];
    sd_status st = NULL;

    switch (in->op) {
    case HLO_AFTER_ALL:
        for (int i = 0; !st && i < in->narg; i++)
            st = want_token(m, in, i);
        *out = token(m);
        return st;
    case HLO_SEND:
        if ((st = hlo_want_args(m, in, 2)) || (st = want_token(m, in, 1)))
            return st;
        *out = in_flight(m, x);
        return NULL;
    case HLO_OUTFEED:
        if ((st = hlo_want_args(m, in, 2)) || (st = want_token(m, in, 1)))
            return st;
        *out = token(m);
        return NULL;
    case HLO_RECV:
    case HLO_INFEED:
        if ((st = hlo_want_args(m, in, 1)) || (st = want_token(m, in, 0)) ||
            (st = hlo_want_declared(m, in)))
            return st;
        if (!is_tuple(in->shape, in->op == HLO_RECV ? 3 : 2))
            return hlo_bad(m, in, "gives a tuple that ends in a token");
        *out = in->shape;
        return NULL;
    default: /* send-done, recv-done */
        if ((st = hlo_want_args(m, in, 1)))
            return st;
        if (!is_tuple(x, 3))
            return hlo_bad(m, in, "takes what send or recv gave");
        pair[0] = x->elem[0];
        pair[1] = x->elem[2];
        *out = in->op == HLO_SEND_DONE ? token(m)
                                       : sd_shape_tuple(m->arena, 2, pair);
        return NULL;
    }
}

sd_status hlo_infer_dynamic(hlo_module *m, const hlo_inst *in,
                            const sd_shape **out)
{
    bool set = in->op == HLO_SET_DIMENSION_SIZE;
    sd_status st;

    if ((st = hlo_want_args(m, in, set ? 2 : 1)) ||
        (st = hlo_want_array(m, in, 0)) ||
        (set && (st = hlo_want_scalar(m, in, 1, SD_S32))))
        return st;
    if (in->dims.n != 1 || in->dims.at[0] < 0 ||
        in->dims.at[0] >= in->arg[0]->shape->rank)
        return hlo_bad(m, in, "needs one of the operand's dimensions");
    *out = set ? in->arg[0]->shape : sd_shape_make(m->arena, SD_S32, 0, NULL);
    return NULL;
}

/* ---- collectives ---- */

static const hlo_collective *groups_of(const hlo_inst *in)
{
    static const hlo_collective none = {0};

    return in->u.coll ? in->u.coll : &none;
}

/* all-gather, reduce-scatter, all-to-all: one dimension changes by the number
 * of participants; without groups in the program the module's counts say. */
static sd_status infer_regrouped(hlo_module *m, const hlo_inst *in, int arg,
                                 const sd_shape **out)
{
    const sd_shape *x = in->arg[arg]->shape;
    const hlo_collective *c = groups_of(in);
    int64_t n = hlo_group_size(m, in->op, c), dim[SD_MAX_RANK];
    int64_t d = hlo_collective_dim(in);

    if (d < 0 || d >= x->rank)
        return hlo_bad(m, in, "no dimension %" PRId64, d);
    memcpy(dim, x->dim, sizeof *dim * (size_t)x->rank);
    if (n < 1)
        return hlo_bad(m, in, "groups without members");
    for (int64_t i = 0; i < c->ngroup * c->group_size; i++)
        if (c->groups[i] < 0)
            return hlo_bad(m, in, "needs groups of one size");
    if (in->op == HLO_ALL_GATHER) {
        if (!sd_mul_i64(dim[d], n, &dim[d]))
            dim[d] = INT64_MAX; /* which no array has */
    } else {
        if (dim[d] % n)
            return hlo_bad(m, in,
                           "dimension %" PRId64 " is no multiple of "
                           "the group's %" PRId64,
                           d, n);
        if (in->op == HLO_ALL_TO_ALL && c->split_count && c->split_count != n)
            return hlo_bad(m, in,
                           "splits in %" PRId64 " among groups of %" PRId64,
                           c->split_count, n);
        if (in->op == HLO_REDUCE_SCATTER)
            dim[d] /= n;
    }
    return hlo_result(m, in, x->dtype, x->rank, dim, out);
}

/* Members are replicas, partitions or both counted through; -1 fills groups of
 * unequal size.  Nobody is in two groups; a permute's pairs have each source
 * and each target once. */
static sd_status want_groups(hlo_module *m, const hlo_inst *in)
{
    const hlo_collective *c = groups_of(in);
    int64_t n = c->ngroup * c->group_size;
    int64_t most = hlo_group_names(m, in->op, c);
    int step = in->op == HLO_COLLECTIVE_PERMUTE ? 2 : 1;
    sd_map *seen[2] = {NULL, NULL};

    if (step == 2 && n && c->group_size != 2)
        return hlo_bad(m, in,
                       "needs pairs of a source and a target, not lists of "
                       "%" PRId64,
                       c->group_size);
    for (int64_t i = 0; i < n; i++) {
        int64_t v = c->groups[i];
        sd_map **at = &seen[i % step];

        if (v == -1 && step == 1)
            continue;
        if (v < 0 || v >= most)
            return hlo_bad(m, in,
                           "no participant %" PRId64 " among %" PRId64
                           " replicas, partitions or both, as it counts them",
                           v, most);
        if (!*at)
            *at = sd_map_create(m->arena);
        if (sd_map_has(*at, (uint64_t)v))
            return hlo_bad(m, in, "participant %" PRId64 " stands twice", v);
        sd_map_set(*at, (uint64_t)v, (void *)(uintptr_t)1);
    }
    return NULL;
}

/* A region serves all operands, which are of one type. */
static sd_status want_coll_region(hlo_module *m, const hlo_inst *in)
{
    sd_dtype x = in->arg[0]->shape->dtype, t[2] = {x, x};
    sd_status st = hlo_want_comps(m, in, 1);

    for (int i = 1; i < in->narg; i++)
        if (in->arg[i]->shape->dtype != x)
            return hlo_bad(m, in, "operand %d must be of %s", i,
                           sd_dtype_name(x));
    return st ? st : hlo_want_region(m, in, 0, 2, t, 1, t);
}

sd_status hlo_infer_collective(hlo_module *m, const hlo_inst *in,
                               const sd_shape **out)
{
    const sd_shape **s;
    sd_status st;

    if (in->op == HLO_PARTITION_ID || in->op == HLO_REPLICA_ID) {
        *out = sd_shape_make(m->arena, SD_U32, 0, NULL);
        return hlo_want_args(m, in, 0);
    }
    if ((st = hlo_want_array(m, in, 0)) || (st = want_groups(m, in)))
        return st;
    for (int i = 0; i < in->narg; i++)
        if ((st = hlo_want_array(m, in, i)))
            return st;
    if ((hlo_info(in)->props & HLO_P_REGION) && (st = want_coll_region(m, in)))
        return st;
    s = sd_arena_array(m->arena, const sd_shape *, in->narg);
    for (int i = 0; i < in->narg; i++) {
        s[i] = in->arg[i]->shape;
        if (in->op == HLO_ALL_GATHER || in->op == HLO_REDUCE_SCATTER ||
            in->op == HLO_ALL_TO_ALL)
            if ((st = infer_regrouped(m, in, i, &s[i])))
                return st;
    }
    *out = hlo_one_or_tuple(m, in->narg, s);
    return NULL;
}
