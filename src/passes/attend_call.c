/* Attention: the calls that take a pattern's place.  See attend.h. */
#include <assert.h>

#include "attend.h"

int attend_own_dim(const attend_pattern *p)
{
    int k = 1 - p->weights;
    const hlo_dot *d = p->last->u.dot;
    int own = -1;

    for (int i = 0; i < p->value->shape->rank; i++) {
        if (hlo_dims_hold(*attend_batch(d, k), i) ||
            hlo_dims_hold(*attend_contract(d, k), i))
            continue;
        if (own >= 0)
            return -1;
        own = i;
    }
    return own;
}

static char letter_of(const attend_pattern *p, int axis)
{
    int at = 0;

    if (axis >= ATTEND_AXES)
        return hlo_attend_letter(axis == ATTEND_D ? HLO_ATTEND_D
                                                  : HLO_ATTEND_E);
    if (axis == p->row || axis == p->key)
        return hlo_attend_letter(axis == p->row ? HLO_ATTEND_Q : HLO_ATTEND_K);
    for (int i = 0; i < axis; i++)
        at += i != p->row && i != p->key;
    return hlo_attend_letter(at);
}

typedef struct {
    hlo_inst *in;
    char name[SD_MAX_RANK + 1];
} operand;

/* x with a dimension for each axis, in the order in which it has them. */
static operand apart(const attend_pattern *p, hlo_at at, hlo_inst *x,
                     const attend_view *v)
{
    int64_t dim[SD_MAX_RANK];
    operand o = {0};
    int n = 0;

    for (int i = 0; i < x->shape->rank; i++)
        for (int j = 0; j < v->n[i]; j++) {
            int axis = v->axis[i][j];

            dim[n] = p->extent[axis];
            o.name[n++] = letter_of(p, axis);
        }
    o.in = pass_reshape(at, x, n, dim);
    return o;
}

/* The same with the axis of that letter last, past transposes. */
static operand last_axis(const attend_pattern *p, hlo_at at, hlo_inst *x,
                         attend_view v, char letter)
{
    int64_t perm[SD_MAX_RANK];
    operand o;
    int n, from;
    attend_view w;

    while (x->op == HLO_TRANSPOSE && attend_moved_view(p, x, &v, &w)) {
        x = x->arg[0];
        v = w;
    }
    o = apart(p, at, x, &v);
    n = (int)strlen(o.name);
    from = (int)(strchr(o.name, letter) - o.name);
    if (from == n - 1)
        return o;
    for (int i = 0; i < n; i++)
        perm[i] = i < from ? i : i + 1 < n ? i + 1 : from;
    o.in = hlo_make_transpose(at, o.in, perm);
    memmove(o.name + from, o.name + from + 1, (size_t)(n - 1 - from));
    o.name[n - 1] = letter;
    return o;
}

/* ---- results ---- */

/* What a result takes the place of: a product, or what transposes, reshapes and
 * converts it, if that is all that uses it and has the own dimension last. */
typedef struct {
    hlo_inst *in;
    attend_view v;
    int own; /* its own axis, or -1: there is none */
    char name[SD_MAX_RANK + 1];
    const sd_shape *shape; /* with a dimension an axis, the own one last */
    int at; /* dimension of these where the own one is in `in` */
    int nshared; /* first dimensions, over which it is to be summed still */
} result;

static bool has_own_last(const result *r)
{
    int last = r->in->shape->rank - 1;

    return last >= 0 && r->v.n[last] == 1 && r->v.axis[last][0] == r->own;
}

static void find_place(const attend_pattern *p, result *r)
{
    result at = *r;

    while (at.in->nuse == 1 && at.in != at.in->parent->root) {
        hlo_inst *u = at.in->user[0];
        attend_view v;

        if ((u->op == HLO_CONVERT && (pass_dtype(at.in) != SD_F32 ||
                                      pass_dtype(u) != pass_dtype(p->value))) ||
            !attend_user_view(p, at.in, &at.v, u, &v))
            return;
        at.in = u;
        at.v = v;
        if (has_own_last(&at))
            *r = at;
    }
}

static void name_result(const attend_pattern *p, result *r)
{
    int64_t dim[SD_MAX_RANK];
    int n = 0;

    for (int i = 0; i < r->in->shape->rank; i++)
        for (int j = 0; j < r->v.n[i]; j++) {
            int axis = r->v.axis[i][j];

            if (axis == r->own) {
                r->at = n;
                continue;
            }
            r->name[n] = letter_of(p, axis);
            dim[n++] = p->extent[axis];
        }
    r->name[n] = letter_of(p, r->own);
    dim[n++] = p->extent[r->own];
    r->shape =
        sd_shape_make(r->in->parent->module->arena, pass_dtype(r->in), n, dim);
}

static result result_of(const attend_pattern *p, hlo_inst *dot,
                        const attend_view *v, int own)
{
    result r = {.in = dot, .v = *v, .own = own};

    find_place(p, &r);
    name_result(p, &r);
    return r;
}

/* Of keys that several heads share each of these has sums, of f32. */
static result result_of_keys(const attend_gradient *g, const attend_product *x,
                             int own)
{
    const attend_pattern *p = g->p;
    result r = result_of(p, x->dot, &x->v, own);
    int64_t dim[SD_MAX_RANK];
    char name[SD_MAX_RANK + 1] = {0};
    int n = 0;

    for (int i = 0; i < p->naxis; i++)
        if (g->shared >> i & 1) {
            name[n] = letter_of(p, i);
            dim[n++] = p->extent[i];
        }
    if (n == 0)
        return r;
    r.nshared = n;
    for (int i = 0; i <= r.shape->rank; i++)
        name[n + i] = r.name[i];
    for (int i = 0; i < r.shape->rank; i++)
        dim[n + i] = r.shape->dim[i];
    memcpy(r.name, name, sizeof name);
    r.shape = sd_shape_make(r.in->parent->module->arena, SD_F32,
                            n + r.shape->rank, dim);
    return r;
}

/* An f32 of each row, whose neighbours lie side by side. */
static result result_of_rows(const attend_pattern *p)
{
    int64_t dim[SD_MAX_RANK];
    result r = {.own = -1};
    int n = 0;

    for (int i = 0; i <= p->naxis; i++) {
        int axis = i < p->naxis ? i : p->row;

        if (axis == p->key || (axis == p->row && i < p->naxis))
            continue;
        r.name[n] = letter_of(p, axis);
        dim[n++] = p->extent[axis];
    }
    r.shape = sd_shape_make(p->last->parent->module->arena, SD_F32, n, dim);
    return r;
}

/* The call's result takes its place, turned and joined as the program has it.
 */
static void put_result(hlo_at at, const result *r, hlo_inst *x)
{
    int64_t back[SD_MAX_RANK];
    int n = r->shape->rank - r->nshared;

    for (int i = 0; i < r->nshared; i++)
        back[i] = i;
    if (r->nshared)
        x = pass_convert(at, pass_dtype(r->in),
                         hlo_make_sum(at, x, back, r->nshared));
    for (int i = 0; i < n; i++)
        back[i] = i < r->at ? i : i == r->at ? n - 1 : i - 1;
    if (r->at != n - 1)
        x = hlo_make_transpose(at, x, back);
    hlo_replace(r->in,
                pass_reshape(at, x, r->in->shape->rank, r->in->shape->dim));
}

/* ---- calls ---- */

static hlo_inst *make_call(hlo_at at, const char *target, int n,
                           const operand *x, int nresult, const result *r)
{
    sd_arena *a = at.c->module->arena;
    hlo_custom *u = sd_arena_new(a, hlo_custom);
    hlo_inst *arg[HLO_ATTEND_ARRAYS], *in;
    const sd_shape *shape[HLO_ATTEND_RESULTS];
    sd_buf b = {.arena = a};

    for (int i = 0; i < n; i++) {
        arg[i] = x[i].in;
        sd_buf_fmt(&b, i ? ",%s" : "%s", x[i].name);
    }
    for (int i = 0; i < nresult; i++) {
        shape[i] = r[i].shape;
        sd_buf_fmt(&b, i ? ",%s" : "->%s", r[i].name);
    }
    u->target = target;
    u->api_version = HLO_TYPED_FFI;
    u->config_len = b.len;
    u->config = sd_buf_take(&b);
    in = hlo_inst_create(
        at.c, at.before, HLO_CUSTOM_CALL,
        nresult == 1 ? shape[0] : sd_shape_tuple(a, nresult, shape), n, arg);
    in->u.custom = u;
    hlo_take_source(in, at.like);
    hlo_rename(in, "attend");
    return in;
}

/* Patterns are of what kernels take. */
static void set_functions(hlo_inst *call, int n, hlo_comp *const *of)
{
    hlo_set_comps(call, n, of);
    assert(hlo_attend_has_kernel(call));
}

/* Of v: keys, what both products are batched over, and its own dimension. */
attend_view attend_value_view(const attend_pattern *p)
{
    int k = p->weights;
    const hlo_dot *d = p->last->u.dot;
    const hlo_dims *own = attend_batch(d, 1 - k), *other = attend_batch(d, k);
    attend_view v = {0};

    attend_add_axis(&v, (int)attend_contract(d, 1 - k)->at[0], p->key);
    attend_add_axis(&v, attend_own_dim(p), ATTEND_E);
    for (int i = 0; i < own->n; i++)
        attend_take_axes(&v, (int)own->at[i], &p->p_view, other->at[i]);
    return v;
}

/* v as kernels want it; turned, it has whole blocks of keys. */
static operand find_value(const attend_pattern *p, hlo_at at)
{
    operand v =
        last_axis(p, at, p->value, attend_value_view(p),
                  hlo_attend_letter(p->turned ? HLO_ATTEND_K : HLO_ATTEND_E));
    int last = v.in->shape->rank - 1;
    int64_t keys = v.in->shape->dim[last] % HLO_ATTEND_KEYS_GATHERED;

    if (p->turned && keys)
        v.in = hlo_make_pad_dim(at, v.in, NULL, last, 0,
                                HLO_ATTEND_KEYS_GATHERED - keys);
    return v;
}

/* q, k and v; behind `nown` operands those that functions of a score read. */
static int find_operands(const attend_pattern *p, hlo_at at, operand *x,
                         int nown)
{
    for (int i = 0; i < 2; i++) {
        int of = i ? 1 - p->q : p->q;

        x[i] =
            last_axis(p, at, p->dot->arg[of],
                      attend_operand_view(p->dot, of, &p->dot_view, ATTEND_D),
                      hlo_attend_letter(HLO_ATTEND_D));
    }
    x[2] = find_value(p, at);
    for (int i = 0; i < p->nleaf; i++)
        x[nown + i] = apart(p, at, p->leaf[i].in, &p->leaf[i].v);
    return nown + p->nleaf;
}

static attend_view last_view(const attend_pattern *p)
{
    const hlo_inst *dot = p->last;
    int k = p->weights;
    attend_view v = {0};

    for (int i = 0; i < dot->arg[k]->shape->rank; i++) {
        int at = attend_result_dim(dot, k, i);

        if (at >= 0)
            attend_take_axes(&v, at, &p->p_view, i);
    }
    attend_add_axis(&v, attend_result_dim(dot, 1 - k, attend_own_dim(p)),
                    ATTEND_E);
    return v;
}

void attend_call(attend_pattern *p)
{
    hlo_at at = pass_at(p->last);
    operand x[HLO_ATTEND_ARRAYS];
    int n = find_operands(p, at, x, 3);
    attend_view v = last_view(p);
    result r = result_of(p, p->last, &v, ATTEND_E);
    hlo_inst *call = make_call(at, HLO_CALL_ATTEND, n, x, 1, &r);

    set_functions(call, 1, &p->comp);
    put_result(at, &r, call);
}

/* ---- a gradient's calls ---- */

/* x with its dimensions in the order of `name`. */
static hlo_inst *ordered(hlo_at at, operand x, const char *name)
{
    int64_t perm[SD_MAX_RANK];
    bool same = true;

    for (int i = 0; name[i]; i++) {
        perm[i] = strchr(x.name, name[i]) - x.name;
        same = same && perm[i] == i;
    }
    return same ? x.in : hlo_make_transpose(at, x.in, perm);
}

/* Of each row the sum over e of the cotangent times the result. */
static operand sum_of_rows(hlo_at at, operand o, const result *r,
                           hlo_inst *value, const result *rows)
{
    int64_t e = r->shape->rank - 1;
    hlo_inst *x = pass_convert(at, SD_F32, ordered(at, o, r->name));
    operand sum = {0};

    x = hlo_make_binary(at, HLO_MULTIPLY, x, pass_convert(at, SD_F32, value));
    sum.in = hlo_make_sum(at, x, &e, 1);
    memcpy(sum.name, r->name, (size_t)e);
    sum.in = ordered(at, sum, rows->name);
    memcpy(sum.name, rows->name, sizeof sum.name);
    return sum;
}

/* A row's sum of the result and its cotangent is what all of the row's
 * cotangents are less by.  Of a result that is rounded to 16 bits it is off by
 * more than all else: where weights are nearly 0 and 1, gradients are the small
 * difference: of numbers of +-3 in bf16 those of q and k have half the error by
 * the f32 result, for a hundredth of the time on an H200. */
static void keep_whole(result *r)
{
    r->shape = sd_shape_with(r->in->parent->module->arena, r->shape, SD_F32);
}

/* The value's call gives what rows of the gradient's ask for, too. */
static void call_value(attend_gradient *g, operand *x)
{
    attend_pattern *p = g->p;
    hlo_at at = pass_at(p->last);
    operand all[HLO_ATTEND_ARRAYS];
    int n = find_operands(p, at, all, 3);
    attend_view v = last_view(p);
    result r[3] = {result_of(p, p->last, &v, ATTEND_E), result_of_rows(p),
                   result_of_rows(p)};
    hlo_inst *call, *value;

    keep_whole(&r[0]);
    call = make_call(at, HLO_CALL_ATTEND, n, all, 3, r);
    set_functions(call, 1, &g->score);
    value = hlo_make_gte(at, call, 0);
    put_result(at, &r[0], pass_convert(at, pass_dtype(r[0].in), value));
    at = pass_at(g->dq.dot);
    find_operands(p, at, x, HLO_ATTEND_OWN);
    x[3] = last_axis(p, at, g->o, g->o_view, hlo_attend_letter(HLO_ATTEND_E));
    for (int i = 1; i < 3; i++) {
        x[3 + i] = (operand){.in = hlo_make_gte(at, call, i)};
        memcpy(x[3 + i].name, r[i].name, sizeof r[i].name);
    }
    x[6] = sum_of_rows(at, x[3], &r[0], value, &r[1]);
}

/* The products may stand in any order, and the calls among them: operands come
 * before their users again in the end. */
void attend_call_gradient(attend_gradient *g)
{
    attend_pattern *p = g->p;
    hlo_at at = pass_at(g->dq.dot);
    operand x[HLO_ATTEND_ARRAYS];
    int n = HLO_ATTEND_OWN + p->nleaf;
    result dq = result_of(p, g->dq.dot, &g->dq.v, ATTEND_D);
    result keys[2] = {result_of_keys(g, &g->dk, ATTEND_D),
                      result_of_keys(g, &g->dv, ATTEND_E)};
    hlo_comp *both[2] = {g->score, g->comp};
    hlo_inst *call;

    call_value(g, x);
    call = make_call(at, HLO_CALL_ATTEND_GRADIENT, n, x, 1, &dq);
    set_functions(call, 2, both);
    put_result(at, &dq, call);
    call = make_call(at, HLO_CALL_ATTEND_GRADIENT, n, x, 2, keys);
    set_functions(call, 2, both);
    for (int i = 0; i < 2; i++)
        put_result(at, &keys[i], hlo_make_gte(at, call, i));
    hlo_comp_sort(at.c);
}
