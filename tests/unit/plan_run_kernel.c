/* A kernel of a plan, element by element: its axes, stages and nodes. */
#include "plan_run.h"

#include "hlo_scalar.h"
#include "ref.h"

#include <math.h>
#include <stdlib.h>

typedef plan_run_value value;

/* What the lanes of a reduction have so far. */
typedef struct {
    value lane[64][8];
    bool set[64];
    int64_t count;
} partial;

typedef struct {
    const plan_kernel *k;
    char **slot;
    sd_arena *a;
    int64_t pos[64];
    int stage;
    bool backward;
    value **reduced;  /* [node][out] */
    uint8_t **parked; /* [node]: extent elements */
    bool **park_set;
    value *memo;
    uint64_t *stamp, now;
    value **running; /* scans */
    partial **sum;   /* reductions */
    bool *wide;      /* several elements at once, a stride apart */
    int lane;
    sd_status st;
} run;

static value eval(run *r, const plan_node *n);

static int64_t int_of(sd_dtype t, const value *v)
{
    return sd_scalar_to_s64(t, v->b);
}

static int64_t expr(run *r, const plan_expr *e)
{
    int64_t v = 0, x;
    value n;

    switch (e->kind) {
    case PX_CONST:
        return e->c;
    case PX_AXIS:
        return r->pos[e->axis];
    case PX_ADD:
        return expr(r, e->a) + expr(r, e->b);
    case PX_MUL:
        return expr(r, e->a) * e->c;
    case PX_DIV:
        x = expr(r, e->a);
        v = x / e->c - (x % e->c < 0);
        break;
    case PX_MOD:
        x = expr(r, e->a) % e->c;
        v = x < 0 ? x + e->c : x;
        break;
    case PX_NODE:
        n = eval(r, e->node);
        v = int_of(e->node->dtype, &n);
        break;
    }
    if ((v < e->lo || v > e->hi) && e->lo >= 0 && !r->st && e->kind == PX_NODE)
        r->st =
            sd_error(SD_INTERNAL, "%s: n%d is %" PRId64 ", outside its bounds",
                     r->k->name, e->node->id, v);
    return v;
}

static bool holds(run *r, const plan_node *n)
{
    for (int i = 0; i < n->nguard; i++) {
        int64_t v = expr(r, n->guard[i].e);

        if (v < n->guard[i].lo || v >= n->guard[i].hi)
            return false;
    }
    return true;
}

/* ---- elements ---- */

static void element(const plan_node *n, value *arg, sd_dtype t, value *out)
{
    value x;

    switch (n->op) {
    case HLO_COMPARE:
        out->b[0] = hlo_scalar_compare(
            n->in->u.compare.dir, n->in->u.compare.type, t, arg[0].b, arg[1].b);
        return;
    case HLO_SELECT:
        *out = arg[0].b[0] ? arg[1] : arg[2];
        return;
    case HLO_CLAMP:
        hlo_scalar_op(HLO_MAXIMUM, n->dtype, arg[1].b, arg[0].b, x.b);
        hlo_scalar_op(HLO_MINIMUM, n->dtype, x.b, arg[2].b, out->b);
        return;
    case HLO_CONVERT:
        hlo_scalar_convert(t, arg[0].b, n->dtype, out->b);
        return;
    case HLO_BITCAST_CONVERT:
        *out = arg[0];
        return;
    case HLO_COMPLEX:
        memcpy(out->b, arg[0].b, sd_dtype_bytes(t));
        memcpy(out->b + sd_dtype_bytes(t), arg[1].b, sd_dtype_bytes(t));
        return;
    default:
        hlo_scalar_op((hlo_op)n->op, t, arg[0].b, arg[1].b, out->b);
    }
}

void plan_run_body(const plan_body *b, const value *param, value *out)
{
    value *v = calloc((size_t)b->nnode, sizeof *v), arg[4];

    for (int i = 0; i < b->nnode; i++) {
        const plan_node *n = b->node[i];

        if (n->kind == PN_PARAM) {
            v[i] = param[n->out];
        } else if (n->kind == PN_CONST) {
            memcpy(v[i].b, n->value, 16);
        } else {
            for (int j = 0; j < n->narg; j++)
                arg[j] = v[n->arg[j]->id];
            element(n, arg, n->arg[0]->dtype, &v[i]);
        }
    }
    for (int i = 0; i < b->nroot; i++)
        out[i] = v[b->root[i]->id];
    free(v);
}

static int lane_of(const plan_kernel *k)
{
    for (int i = 0; i < k->naxis; i++)
        if (k->axis[i].place == PLAN_LANE)
            return i;
    return 0;
}

/* Position `at` is one of `wide` that are read or written at once: as far from
 * the first of them as on LANE, which is as aligned as they are long. */
static void check_wide(run *r, const plan_node *n, int64_t at)
{
    if (r->wide[n->id] && !r->st &&
        (at - r->pos[plan_wide_axis(r->k, n)] % n->wide) % n->wide)
        r->st = sd_error(SD_INTERNAL,
                         "%s: n%d takes %d elements, this one at %" PRId64,
                         r->k->name, n->id, n->wide, at);
}

static value load(run *r, const plan_node *n)
{
    const plan_slot *s = &r->k->slot[n->slot];
    size_t bytes = sd_dtype_bytes(n->dtype);
    value v;
    int64_t at;

    memset(&v, 0xA5, sizeof v); /* unread: whatever */
    if (n->dtype == SD_PRED)
        v.b[0] = 1;
    if (!holds(r, n))
        return n->narg ? eval(r, n->arg[0]) : v;
    at = expr(r, n->off);
    if (at < 0 || at >= s->count) {
        if (!r->st)
            r->st = sd_error(SD_INTERNAL,
                             "%s: n%d reads element %" PRId64 " of %" PRId64,
                             r->k->name, n->id, at, s->count);
        return v;
    }
    check_wide(r, n, at);
    memcpy(v.b, r->slot[n->slot] + (size_t)at * bytes, bytes);
    return v;
}

static value scan(run *r, const plan_node *n, int out)
{
    value arg[16] = {{{0}}}, got[8];
    int k = n->nout;
    int axis = __builtin_ctzll(n->over);
    value *acc = r->running[n->id];

    if (acc[2 * k].b[0] && *(int64_t *)(void *)acc[2 * k + 1].b == r->pos[axis])
        return acc[k + out];
    for (int i = 0; i < k; i++) {
        if (r->pos[axis] == 0)
            acc[i] = eval(r, n->arg[k + i]);
        arg[i] = acc[i];
        arg[k + i] = eval(r, n->arg[i]);
    }
    plan_run_body(n->body, arg, got);
    for (int i = 0; i < k; i++) {
        acc[k + i] = n->exclusive ? arg[i] : got[i];
        acc[i] = got[i];
    }
    acc[2 * k].b[0] = 1;
    memcpy(acc[2 * k + 1].b, &r->pos[axis], 8);
    return acc[k + out];
}

static value compute(run *r, const plan_node *n)
{
    value v = {{0}}, arg[4];

    switch (n->kind) {
    case PN_LOAD:
        return load(r, n);
    case PN_CONST:
        memcpy(v.b, n->value, 16);
        return v;
    case PN_INDEX:
        if (sd_dtype_kind(n->dtype) == SD_K_FLOAT) {
            int64_t i = expr(r, n->off);

            hlo_scalar_convert(SD_S64, &i, n->dtype, v.b);
        } else {
            sd_scalar_of_s64(n->dtype, expr(r, n->off), v.b);
        }
        return v;
    case PN_REDUCE:
    case PN_CONTRACT:
        return r->reduced[n->id][0];
    case PN_SCAN:
        return scan(r, n, 0);
    case PN_PICK:
        if (n->arg[0]->kind == PN_SCAN)
            return scan(r, n->arg[0], n->out);
        return r->reduced[n->arg[0]->id][n->out];
    case PN_ELT:
        for (int i = 0; i < n->narg; i++)
            arg[i] = eval(r, n->arg[i]);
        element(n, arg, n->arg[0]->dtype, &v);
        return v;
    default:
        if (!r->st)
            r->st = sd_error(SD_INTERNAL, "n%d has no value", n->id);
        return v;
    }
}

static value eval(run *r, const plan_node *n)
{
    size_t bytes = sd_dtype_bytes(n->dtype);
    value v;

    if (r->stamp[n->id] == r->now)
        return r->memo[n->id];
    if (n->parked && r->stage > n->stage) {
        int64_t p = r->pos[r->lane];

        if (!r->park_set[n->id][p] && !r->st)
            r->st = sd_error(SD_INTERNAL, "%s: n%d was never parked",
                             r->k->name, n->id);
        memset(&v, 0, sizeof v);
        memcpy(v.b, r->parked[n->id] + (size_t)p * bytes, bytes);
    } else {
        v = compute(r, n);
        if (n->parked) {
            memcpy(r->parked[n->id] + (size_t)r->pos[r->lane] * bytes, v.b,
                   bytes);
            r->park_set[n->id][r->pos[r->lane]] = true;
        }
    }
    r->memo[n->id] = v;
    r->stamp[n->id] = r->now;
    return v;
}

/* ---- stages ---- */

static void take(run *r, const plan_node *n)
{
    partial *p = r->sum[n->id];
    int k = n->nout, lanes = n->order.lanes;
    int l = (int)(p->count++ % lanes);
    value arg[16], x[8];

    for (int i = 0; i < k; i++)
        x[i] = eval(r, n->arg[i]);
    if (!p->set[l]) {
        memcpy(p->lane[l], x, sizeof x);
        p->set[l] = true;
        return;
    }
    for (int i = 0; i < k; i++) {
        arg[i] = p->lane[l][i];
        arg[k + i] = x[i];
    }
    plan_run_body(n->body, arg, p->lane[l]);
}

/* Is this position the first of a chain? */
static bool starts_chain(const run *r, const plan_node *n)
{
    for (int a = n->order.cut + 1; a < r->k->naxis; a++)
        if ((n->over >> a & 1) && r->pos[a])
            return false;
    return n->order.chunk && r->pos[n->order.cut] % n->order.chunk == 0;
}

static void end_chain(run *r, const plan_node *n)
{
    value *acc = r->reduced[n->id];

    hlo_scalar_op(HLO_ADD, n->dtype, acc[1].b, acc[0].b, acc[1].b);
    memset(acc, 0, sizeof *acc);
}

/* One product more; fused where the node's type is a float, unless it is apart.
 */
static void multiply_add(run *r, const plan_node *n)
{
    value x = eval(r, n->arg[0]), y = eval(r, n->arg[1]), p = {{0}};
    value *acc = r->reduced[n->id];
    float f[3];
    double d[3];

    if (starts_chain(r, n))
        end_chain(r, n);
    if (n->dtype == SD_F32 && !n->apart) {
        memcpy(&f[0], x.b, 4);
        memcpy(&f[1], y.b, 4);
        memcpy(&f[2], acc->b, 4);
        f[0] = fmaf(f[0], f[1], f[2]);
        memcpy(acc->b, f, 4);
    } else if (n->dtype == SD_F64 && !n->apart) {
        memcpy(&d[0], x.b, 8);
        memcpy(&d[1], y.b, 8);
        memcpy(&d[2], acc->b, 8);
        d[0] = fma(d[0], d[1], d[2]);
        memcpy(acc->b, d, 8);
    } else {
        hlo_scalar_op(HLO_MULTIPLY, n->dtype, x.b, y.b, p.b);
        hlo_scalar_op(HLO_ADD, n->dtype, acc->b, p.b, acc->b);
    }
}

static void finish(run *r, const plan_node *n)
{
    partial *p = r->sum[n->id];
    int k = n->nout;
    value arg[16];

    for (int h = n->order.lanes / 2; h >= 1; h /= 2)
        for (int l = 0; l < h; l++) {
            if (!p->set[l + h])
                continue;
            for (int i = 0; i < k; i++) {
                arg[i] = p->lane[l][i];
                arg[k + i] = p->lane[l + h][i];
            }
            plan_run_body(n->body, arg, p->lane[l]);
        }
    r->now++;
    for (int i = 0; i < k; i++) {
        arg[i] = eval(r, n->arg[k + i]);
        arg[k + i] = p->lane[0][i];
    }
    plan_run_body(n->body, arg, r->reduced[n->id]);
}

static void sink(run *r, const plan_node *n)
{
    const plan_slot *s = &r->k->slot[n->slot];
    size_t bytes = sd_dtype_bytes(n->dtype);
    value v = eval(r, n->arg[0]), two[2], got[1];
    int64_t at;
    char *to;

    if (!holds(r, n))
        return;
    at = expr(r, n->off);
    if (at < 0 || at >= s->count) {
        if (!r->st)
            r->st = sd_error(SD_INTERNAL,
                             "%s: n%d writes element %" PRId64 " of %" PRId64,
                             r->k->name, n->id, at, s->count);
        return;
    }
    check_wide(r, n, at);
    to = r->slot[n->slot] + (size_t)at * bytes;
    if (n->kind == PN_SCATTER) {
        memset(two, 0, sizeof two);
        memcpy(two[0].b, to, bytes);
        two[1] = v;
        plan_run_body(n->body, two, got);
        v = got[0];
    }
    memcpy(to, v.b, bytes);
}

static void inner(run *r, int axis, uint64_t axes)
{
    const plan_kernel *k = r->k;

    if (axis == k->naxis) {
        r->now++;
        for (int i = 0; i < k->nnode; i++) {
            const plan_node *n = k->node[i];

            if (n->stage != r->stage)
                continue;
            if (n->kind == PN_REDUCE)
                take(r, n);
            else if (n->kind == PN_CONTRACT)
                multiply_add(r, n);
            else if (n->kind == PN_STORE || n->kind == PN_SCATTER)
                sink(r, n);
        }
        return;
    }
    if (!(axes >> axis & 1)) {
        inner(r, axis + 1, axes);
        return;
    }
    for (int64_t i = 0; i < k->axis[axis].extent; i++) {
        r->pos[axis] = i;
        inner(r, axis + 1, axes);
    }
}

static void point(run *r)
{
    const plan_kernel *k = r->k;

    for (int i = 0; i < k->nnode; i++)
        if (r->park_set[i])
            memset(r->park_set[i], 0, (size_t)k->axis[r->lane].extent);
    for (int s = 0; s < k->nstage; s++) {
        r->stage = s;
        for (int i = 0; i < k->nnode; i++) {
            if (k->node[i]->kind == PN_REDUCE && k->node[i]->stage == s) {
                memset(r->sum[i]->set, 0, sizeof r->sum[i]->set);
                r->sum[i]->count = 0;
            }
            if (k->node[i]->kind == PN_CONTRACT && k->node[i]->stage == s)
                memset(r->reduced[i], 0, 2 * sizeof(value));
            if (k->node[i]->kind == PN_SCAN)
                memset(r->running[i], 0, 24 * sizeof(value));
        }
        inner(r, k->nouter, k->stage[s].axes);
        for (int i = 0; i < k->nnode; i++)
            if (k->node[i]->kind == PN_REDUCE && k->node[i]->stage == s)
                finish(r, k->node[i]);
        for (int i = 0; i < k->nnode; i++)
            if (k->node[i]->kind == PN_CONTRACT && k->node[i]->stage == s) {
                end_chain(r, k->node[i]);
                r->reduced[i][0] = r->reduced[i][1];
            }
    }
}

static void outer(run *r, int axis);

static int64_t listed(const run *r, int slot, int64_t i)
{
    sd_dtype t = r->k->slot[slot].dtype;

    return sd_scalar_to_s64(t, r->slot[slot] + (size_t)i * sd_dtype_bytes(t));
}

/* Position i of the list of updates: all of a run that begins there. */
static void take_run(run *r, int64_t i)
{
    const plan_runs *p = r->k->runs;
    int64_t n = r->k->axis[p->axis].extent;
    int64_t base = p->batch < 0 ? 0 : r->pos[p->batch] * n, end = i;
    int64_t key = listed(r, p->key, base + i);
    bool left_out =
        r->k->slot[p->key].dtype == SD_U32 ? key == UINT32_MAX : key == -1;

    if (left_out || (i && listed(r, p->key, base + i - 1) == key))
        return;
    while (end < n && listed(r, p->key, base + end) == key)
        end++;
    for (i = p->last ? end - 1 : i; i < end; i++) {
        r->pos[p->axis] = p->moved ? i : listed(r, p->update, base + i);
        outer(r, p->axis + 1);
    }
}

static void outer(run *r, int axis)
{
    const plan_kernel *k = r->k;

    if (axis == k->nouter) {
        point(r);
        return;
    }
    if (k->runs && axis == k->runs->axis) {
        for (int64_t i = 0; i < k->axis[axis].extent; i++)
            take_run(r, r->backward ? k->axis[axis].extent - 1 - i : i);
        return;
    }
    for (int64_t i = 0; i < k->axis[axis].extent; i++) {
        r->pos[axis] = r->backward ? k->axis[axis].extent - 1 - i : i;
        outer(r, axis + 1);
    }
}

/* ---- a call of a device function: what the instruction says ---- */

static void call_kernel(run *r)
{
    const hlo_inst *in = r->k->call->in;
    hlo_value *arg = sd_arena_array(r->a, hlo_value, in->narg + 1), out;
    bool several = in->shape->dtype == SD_TUPLE;

    for (int i = 0; i < in->narg; i++) {
        arg[i].shape = in->arg[i]->shape;
        arg[i].data = r->slot[i];
    }
    r->st = ref_eval_inst(r->a, in, arg, &out);
    for (int i = 0; !r->st && i < (several ? in->shape->nelem : 1); i++) {
        const hlo_value *v = several ? &out.elem[i] : &out;

        memcpy(r->slot[in->narg + i], v->data, sd_shape_bytes(v->shape));
    }
}

/* What the places of a scatter hold at first. */
static void fill_places(run *r)
{
    const plan_node *n = plan_scatter_of(r->k);
    size_t bytes = n ? sd_dtype_bytes(n->dtype) : 0;

    for (int64_t i = 0; n && n->narg > 1 && i < r->k->slot[n->slot].count; i++)
        memcpy(r->slot[n->slot] + (size_t)i * bytes, n->arg[1]->value, bytes);
}

sd_status plan_run_kernel(const plan_kernel *k, char **slot, bool backward)
{
    run r = {.k = k, .slot = slot, .backward = backward, .lane = lane_of(k)};

    r.a = sd_arena_create();
    r.memo = sd_arena_array(r.a, value, k->nnode + 1);
    r.stamp = sd_arena_array(r.a, uint64_t, k->nnode + 1);
    r.reduced = sd_arena_array(r.a, value *, k->nnode + 1);
    r.running = sd_arena_array(r.a, value *, k->nnode + 1);
    r.parked = sd_arena_array(r.a, uint8_t *, k->nnode + 1);
    r.park_set = sd_arena_array(r.a, bool *, k->nnode + 1);
    r.sum = sd_arena_array(r.a, partial *, k->nnode + 1);
    r.wide = sd_arena_array(r.a, bool, k->nnode + 1);
    for (int i = 0; i < k->nnode; i++) {
        const plan_node *n = k->node[i];
        int64_t s, m;

        r.wide[i] =
            n->wide > 1 &&
            plan_expr_run(n->off, plan_wide_axis(k, n), n->wide, &s, &m) && s;
        if (n->kind == PN_REDUCE)
            r.sum[i] = sd_arena_new(r.a, partial);
        r.reduced[i] = sd_arena_array(r.a, value, 8);
        r.running[i] = sd_arena_array(r.a, value, 24);
        if (n->parked) {
            r.parked[i] =
                sd_arena_alloc(r.a, (size_t)k->axis[r.lane].extent * 16);
            r.park_set[i] = sd_arena_array(r.a, bool, k->axis[r.lane].extent);
        }
    }
    r.now = 1;
    fill_places(&r);
    if (k->sort)
        plan_run_sort(k, slot, r.a);
    else if (k->buckets)
        plan_run_buckets(k, slot);
    else if (k->call)
        call_kernel(&r);
    else
        outer(&r, 0);
    sd_arena_destroy(r.a);
    return r.st;
}
