/* Attention: the call that takes a pattern's place.  See attend.h. */
#include "attend.h"

enum {
    OWN_D = ATTEND_AXES,
    OWN_E
}; /* axes of one operand of a product alone */

int attend_own_dim(const attend_pattern *p)
{
    int k = p->value == p->last->arg[1] && p->value != p->p;
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
        return hlo_attend_letter(axis == OWN_D ? HLO_ATTEND_D : HLO_ATTEND_E);
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

            dim[n] = axis < ATTEND_AXES ? p->extent[axis] : x->shape->dim[i];
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

/* The result's dimensions, e last: in the order of the transpose that is all
 * that uses it, if that has e there. */
typedef struct {
    hlo_inst *in;
    attend_view v;
} result;

static attend_view result_view(const attend_pattern *p, int k)
{
    const hlo_inst *dot = p->last;
    attend_view v = {0};

    for (int i = 0; i < dot->arg[k]->shape->rank; i++) {
        int at = attend_result_dim(dot, k, i);

        if (at >= 0)
            attend_take_axes(&v, at, &p->p_view, i);
    }
    attend_add_axis(&v, attend_result_dim(dot, 1 - k, attend_own_dim(p)),
                    OWN_E);
    return v;
}

static result result_of(const attend_pattern *p, int k)
{
    result r = {.in = p->last, .v = result_view(p, k)};
    hlo_inst *t = p->last->nuse == 1 ? p->last->user[0] : NULL;
    attend_view w = {0};

    if (!t || t->op != HLO_TRANSPOSE)
        return r;
    for (int i = 0; i < t->dims.n; i++)
        attend_take_axes(&w, i, &r.v, t->dims.at[i]);
    return w.n[t->dims.n - 1] == 1 && w.axis[t->dims.n - 1][0] == OWN_E
               ? (result){t, w}
               : r;
}

static hlo_inst *make_call(attend_pattern *p, hlo_at at, int n,
                           const operand *x, const char *name,
                           const sd_shape *s)
{
    sd_arena *a = at.c->module->arena;
    hlo_custom *u = sd_arena_new(a, hlo_custom);
    hlo_inst *arg[HLO_ATTEND_ARRAYS], *in;
    sd_buf b = {0};

    for (int i = 0; i < n; i++) {
        arg[i] = x[i].in;
        sd_buf_fmt(&b, i ? ",%s" : "%s", x[i].name);
    }
    sd_buf_fmt(&b, "->%s", name);
    u->target = HLO_CALL_ATTEND;
    u->api_version = HLO_TYPED_FFI;
    u->config_len = b.len;
    u->config = sd_buf_take(a, &b);
    in = hlo_inst_create(at.c, at.before, HLO_CUSTOM_CALL, s, n, arg);
    in->u.custom = u;
    hlo_set_comps(in, 1, &p->comp);
    hlo_take_source(in, at.like);
    hlo_rename(in, "attend");
    return in;
}

/* The call's result has a dimension an axis, e last; then it is turned and
 * joined as the program has it. */
static void make_result(attend_pattern *p, int k, hlo_at at, int n,
                        const operand *x)
{
    sd_arena *a = at.c->module->arena;
    result r = result_of(p, k);
    const sd_shape *s = r.in->shape;
    int64_t dim[SD_MAX_RANK], depth = 0, back[SD_MAX_RANK];
    char name[SD_MAX_RANK + 1] = {0};
    int rank = 0, own = 0;
    hlo_inst *call;

    for (int i = 0; i < s->rank; i++) {
        if (!r.v.n[i])
            continue;
        if (r.v.axis[i][0] == OWN_E) {
            own = rank;
            depth = s->dim[i];
            continue;
        }
        name[rank] = letter_of(p, r.v.axis[i][0]);
        dim[rank++] = s->dim[i];
    }
    name[rank] = hlo_attend_letter(HLO_ATTEND_E);
    dim[rank++] = depth;
    for (int i = 0; i < rank; i++)
        back[i] = i < own ? i : i == own ? rank - 1 : i - 1;
    call = make_call(p, at, n, x, name, sd_shape_make(a, s->dtype, rank, dim));
    if (own != rank - 1)
        call = hlo_make_transpose(at, call, back);
    call = pass_reshape(at, call, s->rank, s->dim);
    hlo_replace(r.in, call);
}

/* Of v: keys, what both products are batched over, and its own dimension. */
static attend_view value_view(const attend_pattern *p, int k)
{
    const hlo_dot *d = p->last->u.dot;
    const hlo_dims *own = attend_batch(d, 1 - k), *other = attend_batch(d, k);
    attend_view v = {0};

    attend_add_axis(&v, (int)attend_contract(d, 1 - k)->at[0], p->key);
    attend_add_axis(&v, attend_own_dim(p), OWN_E);
    for (int i = 0; i < own->n; i++)
        attend_take_axes(&v, (int)own->at[i], &p->p_view, other->at[i]);
    return v;
}

void attend_call(attend_pattern *p, int k)
{
    hlo_at at = pass_at(p->last);
    operand x[HLO_ATTEND_ARRAYS];

    for (int i = 0; i < 2; i++) {
        int of = i ? 1 - p->q : p->q;

        x[i] = last_axis(p, at, p->dot->arg[of],
                         attend_operand_view(p->dot, of, &p->dot_view, OWN_D),
                         hlo_attend_letter(HLO_ATTEND_D));
    }
    x[2] = last_axis(p, at, p->value, value_view(p, k),
                     hlo_attend_letter(HLO_ATTEND_E));
    for (int i = 0; i < p->nleaf; i++)
        x[3 + i] = apart(p, at, p->leaf[i].in, &p->leaf[i].v);
    make_result(p, k, at, 3 + p->nleaf, x);
}
