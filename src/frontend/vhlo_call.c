/* What leaves the program: custom calls, the host, other participants. */
#include "hlo_sharding.h"
#include "vhlo_import.h"

/* ---- custom calls ---- */

/* The typed form has a dictionary, in one of two places; the old a string.
 * With a dictionary the call is typed, whatever version it gives: frameworks
 * write ORIGINAL, since StableHLO's verifier wants a string otherwise. */
static void read_config(vhlo_import *im, mlir_op *op, hlo_custom *u)
{
    const mlir_attr *at = mlir_discardable(im->r, op, "mhlo.backend_config");
    sd_buf b = {.arena = im->a};

    if (at->kind != MLIR_A_DICT)
        at = vhlo_attr(im, op, "backend_config");
    if (at->kind == MLIR_A_DICT) {
        mlir_attr_print(im->r, at, &b);
        u->config_len = b.len;
        u->config = sd_buf_take(&b);
        u->api_version = HLO_TYPED_FFI;
    } else if (at->kind == MLIR_A_STRING) {
        u->config = mlir_cstr(im->r, at->str);
        u->config_len = mlir_str(im->r, at->str).len;
    } else {
        u->config = "";
    }
}

/* One list a value, minor to major; NULL when all are row-major. */
static hlo_dims *read_layouts(vhlo_import *im, mlir_op *op, const char *name,
                              int n, const sd_shape *const *s)
{
    const mlir_attr *at = vhlo_attr(im, op, name);
    hlo_dims *d;
    bool plain = true;

    if (at->kind != MLIR_A_ARRAY || !at->nlist)
        return NULL;
    if (at->nlist != n) {
        vhlo_fail(im, op, SD_INVALID, "%s has %d entries for %d values", name,
                  at->nlist, n);
        return NULL;
    }
    d = sd_arena_array(im->a, hlo_dims, n);
    for (int i = 0; i < n && !im->r->st; i++) {
        d[i] = mlir_ints(im->r, mlir_attr_at(im->r, at->list[i]), SD_MAX_RANK);
        if (!sd_shape_is_array(s[i]) && d[i].n == 0)
            continue;
        if (d[i].n != s[i]->rank || !hlo_dims_fit(d[i], d[i].n))
            vhlo_fail(im, op, SD_INVALID,
                      "%s: entry %d orders %d dimensions, where each of %d "
                      "should be once",
                      name, i, d[i].n, s[i]->rank);
        plain &= hlo_is_row_major(d[i]);
    }
    return plain ? NULL : d;
}

static void layouts(vhlo_import *im, mlir_op *op, hlo_inst **arg,
                    const sd_shape *result, hlo_custom *u)
{
    int n = op->noperand;
    const sd_shape **s = sd_arena_array(im->r->a, const sd_shape *, n + 1);

    for (int i = 0; i < n; i++)
        s[i] = arg[i]->shape;
    u->operand_layout = read_layouts(im, op, "operand_layouts", n, s);
    if (result->dtype == SD_TUPLE) /* of several, or one that is a tuple */
        u->result_layout =
            read_layouts(im, op, "result_layouts", result->nelem, result->elem);
    else
        u->result_layout = read_layouts(im, op, "result_layouts", 1, &result);
}

static void read_aliases(vhlo_import *im, mlir_op *op, hlo_custom *u)
{
    const mlir_attr *list = vhlo_attr(im, op, "output_operand_aliases");

    if (list->kind != MLIR_A_ARRAY || !list->nlist)
        return;
    u->alias = sd_arena_alloc(
        im->a, sd_mul_or_die(sizeof *u->alias, (size_t)list->nlist));
    for (int i = 0; i < list->nlist && !im->r->st; i++) {
        const mlir_attr *at = mlir_attr_at(im->r, list->list[i]);
        int nout;

        if (at->kind != MLIR_A_ALIAS) {
            vhlo_want(im, op, "output_operand_aliases", at, "an alias");
            return;
        }
        nout = (int)at->num[1];
        u->alias[i].operand = at->num[0];
        u->alias[i].out_index = hlo_dims_copy(im->a, at->num + 2, nout);
        u->alias[i].operand_index =
            hlo_dims_copy(im->a, at->num + 2 + nout, at->nnum - 2 - nout);
        if (at->num[0] < 0 || at->num[0] >= op->noperand)
            vhlo_fail(im, op, SD_INVALID,
                      "output_operand_aliases: operand %" PRId64 " of %d",
                      at->num[0], op->noperand);
        u->nalias++;
    }
}

hlo_comp **vhlo_called(vhlo_import *im, mlir_op *op, int *n)
{
    const mlir_attr *list = vhlo_attr(im, op, "called_computations");
    hlo_comp **c;

    *n = list->kind == MLIR_A_ARRAY ? list->nlist : 0;
    c = sd_arena_array(im->r->a, hlo_comp *, *n + 1);
    for (int i = 0; i < *n && !im->r->st; i++) {
        const mlir_attr *at = mlir_attr_at(im->r, list->list[i]);
        const char *name = mlir_text(im->r, at);

        if (!name)
            vhlo_want(im, op, "called_computations", at, "a function's name");
        c[i] = im->r->st ? NULL : vhlo_func_comp(im, op, name);
    }
    return c;
}

void op_custom_call(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_custom *u = sd_arena_new(im->a, hlo_custom);
    const sd_shape *s = vhlo_shape(im, op);
    hlo_comp **called;
    hlo_inst *in;
    int ncalled;

    u->target = vhlo_string(im, op, "call_target_name");
    u->api_version = vhlo_choice(im, op, "api_version", 0, HLO_TYPED_FFI);
    u->has_side_effect = vhlo_int(im, op, "has_side_effect") != 0;
    read_config(im, op, u);
    if (!s || im->r->st)
        return;
    if (vhlo_is_async(u->target)) {
        vhlo_async(im, op, arg, u->target, s);
        return;
    }
    layouts(im, op, arg, s, u);
    read_aliases(im, op, u);
    in = vhlo_emit(im, HLO_CUSTOM_CALL, s, op->noperand, arg);
    in->u.custom = u;
    called = vhlo_called(im, op, &ncalled);
    if (im->r->st)
        return;
    if (ncalled)
        hlo_set_comps(in, ncalled, called);
    vhlo_bind(im, op, in);
}

/* ---- send, receive ---- */

static hlo_collective *channel(vhlo_import *im, mlir_op *op)
{
    hlo_collective *c = sd_arena_new(im->a, hlo_collective);

    c->channel = vhlo_int(im, op, "channel_id");
    c->host_transfer = vhlo_int(im, op, "is_host_transfer") != 0;
    if (!c->host_transfer)
        vhlo_fail(im, op, SD_UNIMPLEMENTED,
                  "between devices: only transfers to and from the host are "
                  "done");
    return c;
}

/* data, a context word and the token: what is on its way */
static const sd_shape *in_flight(vhlo_import *im, const sd_shape *data)
{
    const sd_shape *s[3] = {data, sd_shape_make(im->a, SD_U32, 0, NULL),
                            sd_shape_make(im->a, SD_TOKEN, 0, NULL)};

    return sd_shape_tuple(im->a, 3, s);
}

static hlo_inst *finish(vhlo_import *im, mlir_op *op, hlo_op done,
                        const sd_shape *s, hlo_inst *start)
{
    hlo_inst *in = vhlo_emit(im, done, s, 1, &start);

    if (op->dict >= 0)
        in->frontend_attrs = start->frontend_attrs =
            vhlo_frontend_attrs(im, mlir_attr_at(im->r, (uint64_t)op->dict));
    in->u.coll = start->u.coll;
    return vhlo_check(im, start) && vhlo_check(im, in) ? in : NULL;
}

void op_send(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    int n = op->noperand - 1;
    hlo_collective *c = channel(im, op);
    hlo_inst *two[2], *in, *done;

    if (im->r->st)
        return;
    two[0] = vhlo_one_or_tuple(im, n, arg);
    two[1] = arg[n];
    in = vhlo_emit(im, HLO_SEND, in_flight(im, two[0]->shape), 2, two);
    in->u.coll = c;
    done = finish(im, op, HLO_SEND_DONE,
                  sd_shape_make(im->a, SD_TOKEN, 0, NULL), in);
    if (done)
        op->result[0].inst = done;
}

/* values..., token, where HLO has a pair of the values and the token; NULL
 * after an error. */
static const sd_shape *received(vhlo_import *im, mlir_op *op)
{
    int n = op->nresult;
    const sd_shape *s = vhlo_shape(im, op), *pair[2];
    const sd_shape *const *elem = n == 1 ? &s : s ? s->elem : NULL;

    if (s && (!n || elem[n - 1]->dtype != SD_TOKEN))
        vhlo_fail(im, op, SD_INVALID,
                  "%d results, the last of which should be a token", n);
    if (!s || im->r->st)
        return NULL;
    pair[0] = n == 2 ? elem[0] : sd_shape_tuple(im->a, n - 1, elem);
    pair[1] = elem[n - 1];
    return sd_shape_tuple(im->a, 2, pair);
}

static void bind_received(vhlo_import *im, mlir_op *op, hlo_inst *pair)
{
    int n = op->nresult - 1;
    hlo_inst *x = vhlo_gte(im, pair, 0);

    for (int i = 0; i < n; i++)
        op->result[i].inst = n == 1 ? x : vhlo_gte(im, x, i);
    op->result[n].inst = vhlo_gte(im, pair, 1);
}

void op_recv(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_collective *c = channel(im, op);
    const sd_shape *s = received(im, op);
    hlo_inst *in, *done;

    if (!s || im->r->st)
        return;
    in = vhlo_emit(im, HLO_RECV, in_flight(im, s->elem[0]), 1, arg);
    in->u.coll = c;
    done = finish(im, op, HLO_RECV_DONE, s, in);
    if (done)
        bind_received(im, op, done);
}

/* ---- infeed, outfeed ---- */

/* HLO has no place for what they say to the machine they were written for. */
static bool plain_feed(vhlo_import *im, mlir_op *op, const char *config)
{
    const char *s = mlir_text(im->r, vhlo_attr(im, op, config));

    if (s && *s)
        vhlo_fail(im, op, SD_UNIMPLEMENTED,
                  "%s \"%.40s\" is for another machine: only an empty one is "
                  "done",
                  config, s);
    return !im->r->st;
}

void op_infeed(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = received(im, op);
    hlo_inst *in;

    if (!s || !plain_feed(im, op, "infeed_config"))
        return;
    in = vhlo_emit(im, HLO_INFEED, s, 1, arg);
    if (vhlo_check(im, in))
        bind_received(im, op, in);
}

void op_outfeed(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    int n = op->noperand - 1;
    const sd_shape *s = vhlo_shape(im, op);
    hlo_inst *two[2];

    if (!s || !plain_feed(im, op, "outfeed_config"))
        return;
    two[0] = vhlo_one_or_tuple(im, n, arg);
    two[1] = arg[n];
    vhlo_bind(im, op, vhlo_emit(im, HLO_OUTFEED, s, 2, two));
}

/* ---- collectives ---- */

static void read_groups(vhlo_import *im, mlir_op *op, hlo_collective *c)
{
    const char *name =
        im->r->name.at[op->name].row->op == HLO_COLLECTIVE_PERMUTE
            ? "source_target_pairs"
            : "replica_groups";
    const mlir_attr *at = vhlo_attr(im, op, name);
    const mlir_type *t = NULL;
    hlo_dims d;

    if (at->kind == MLIR_A_MESH_AXES) {
        if (hlo_participants(im->m) != 1 && !im->r->st)
            im->r->st = hlo_mesh_groups(im->m, mlir_cstr(im->r, at->str), c);
        return; /* one participant: one group */
    }
    if (at->kind == MLIR_A_DENSE)
        t = mlir_type_at(im->r, at->type);
    if (!t || t->kind != MLIR_T_TENSOR || t->rank != 2) {
        vhlo_fail(im, op, SD_INVALID,
                  "%s should be a table of participants, such as dense<[[0, "
                  "1]]> : tensor<1x2xi64>",
                  name);
        return;
    }
    d = vhlo_ints(im, op, name, VHLO_GROUP_ENTRIES);
    c->groups = d.at;
    c->ngroup = d.n ? t->dim[0] : 0;
    c->group_size = d.n ? t->dim[1] : 0;
}

static int64_t int_or(vhlo_import *im, mlir_op *op, const char *name)
{
    const mlir_attr *at = vhlo_attr(im, op, name);

    return at->kind == MLIR_A_NONE ? 0 : mlir_int(im->r, at);
}

static void read_collective(vhlo_import *im, mlir_op *op, hlo_op to,
                            hlo_collective *c)
{
    read_groups(im, op, c);
    c->channel = int_or(im, op, "channel_id");
    c->use_global_ids = int_or(im, op, "use_global_device_ids") != 0;
    c->dim = -1;
    if (to == HLO_ALL_GATHER)
        c->dim = vhlo_int(im, op, "all_gather_dim");
    if (to == HLO_REDUCE_SCATTER)
        c->dim = vhlo_int(im, op, "scatter_dimension");
    if (to == HLO_ALL_TO_ALL) {
        c->dim = vhlo_int(im, op, "split_dimension");
        c->split_count = vhlo_int(im, op, "split_count");
    }
    if (to == HLO_COLLECTIVE_BROADCAST && int_or(im, op, "has_dynamic_root"))
        vhlo_fail(im, op, SD_UNIMPLEMENTED,
                  "has_dynamic_root: only roots known when compiling are done");
}

static void all_to_all(vhlo_import *im, mlir_op *op, hlo_inst **arg,
                       hlo_collective *c, int64_t join)
{
    int n = op->noperand;
    const sd_shape **s = sd_arena_array(im->a, const sd_shape *, n + 1);
    hlo_inst *in;

    for (int i = 0; i < n; i++) {
        s[i] = arg[i]->shape;
        if (!sd_shape_is_array(s[i]) || s[i]->rank == SD_MAX_RANK || join < 0 ||
            join >= s[i]->rank || c->dim < 0 || c->dim >= s[i]->rank ||
            c->split_count < 1 || s[i]->dim[c->dim] % c->split_count)
            vhlo_fail(im, op, SD_INVALID,
                      "operand %d cannot be split in %" PRId64
                      " along dimension %" PRId64 " and joined along %" PRId64,
                      i, c->split_count, c->dim, join);
    }
    if (im->r->st)
        return;
    in = vhlo_emit(im, HLO_ALL_TO_ALL,
                   n == 1 ? s[0] : sd_shape_tuple(im->a, n, s), n, arg);
    in->u.coll = c;
    in->dims = hlo_dims_copy(im->a, &c->dim, 1);
    if (!vhlo_check(im, in))
        return;
    for (int i = 0; i < n; i++) {
        hlo_inst *x = n == 1 ? in : vhlo_gte(im, in, i);

        /* HLO's all-to-all joins the dimension that it splits: where another is
         * to be joined, the parts move there afterwards */
        if (c->split_count > 1 && join != c->dim)
            x = hlo_make_parts_along((hlo_at){im->c, NULL, x}, x, c->dim,
                                     c->split_count, join);
        op->result[i].inst = x;
    }
}

void vhlo_collective(vhlo_import *im, mlir_op *op, hlo_op to, hlo_collective *c,
                     int64_t join, const sd_shape *s, hlo_comp *body,
                     hlo_inst **arg)
{
    hlo_inst *in;

    if (to == HLO_ALL_TO_ALL) {
        all_to_all(im, op, arg, c, join);
        return;
    }
    if (body && body->nparam && sd_shape_is_array(body->param[0]->shape))
        for (int i = 0; i < op->noperand; i++)
            arg[i] = vhlo_convert(im, arg[i], body->param[0]->shape->dtype);
    else if (to == HLO_ALL_REDUCE) /* cross-replica-sum has no region */
        body = hlo_scalar_comp(im->m, HLO_ADD, arg[0]->shape->dtype);
    in = vhlo_emit(im, to, s, op->noperand, arg);
    in->u.coll = c;
    if (c->dim >= 0)
        in->dims = hlo_dims_copy(im->a, &c->dim, 1);
    if (body)
        hlo_set_comps(in, 1, &body);
    vhlo_bind(im, op, in);
}

void op_collective(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_op to = im->r->name.at[op->name].row->op;
    hlo_collective *c = sd_arena_new(im->a, hlo_collective);
    const sd_shape *s = vhlo_shape(im, op);
    hlo_comp *body = NULL;
    int64_t join = -1;

    read_collective(im, op, to, c);
    if (to == HLO_ALL_TO_ALL)
        join = vhlo_int(im, op, "concat_dimension");
    if (op->nregion)
        body = vhlo_reducer(im, op, 0, "region");
    if (s && !im->r->st && vhlo_has_operands(im, op))
        vhlo_collective(im, op, to, c, join, s, body, arg);
}

/* A start does all of it, and its future is the values: when to wait is for
 * the plan to say. */
void op_async_start(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    mlir_block *b = vhlo_entry(im, op, 0, op->noperand);
    hlo_inst **out;

    if (!b)
        return;
    for (int i = 0; i < op->noperand; i++)
        b->arg[i].inst = arg[i];
    out = vhlo_block(im, op, 0, -1);
    if (!im->r->st)
        op->result[0].inst = vhlo_one_or_tuple(im, b->last->noperand, out);
}

void op_async_done(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = arg[0]->shape;
    int n = op->nresult;

    if (n != sd_shape_nresult(s)) {
        vhlo_fail(im, op, SD_INVALID, "%d results of a future of others", n);
        return;
    }
    for (int i = 0; i < n; i++)
        op->result[i].inst = n == 1 ? arg[0] : vhlo_gte(im, arg[0], i);
}
