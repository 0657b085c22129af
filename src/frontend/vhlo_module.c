/* The module: which functions there are, which of them main needs, what the
 * attributes of main say.  Before anything is built the reachable operations
 * are looked over, so that one message names all that we cannot do. */
#include "hlo_sharding.h"
#include "vhlo_import.h"

enum { MOST_PARTICIPANTS = 1 << 20 };

static bool is_op(mlir_reader *r, const mlir_op *op, mlir_dialect_id d,
                  const char *name)
{
    const mlir_op_name *n = &r->name.at[op->name];

    return n->dialect == d && n->name.len == strlen(name) &&
           memcmp(n->name.at, name, n->name.len) == 0;
}

/* {@name = #sdy.mesh<...>, ...}: what the shardings of the module name */
static void keep_meshes(vhlo_import *im, mlir_block *b)
{
    mlir_reader *r = im->r;
    sd_buf all = {.arena = im->a}, attr = {.arena = im->a};
    mlir_attr text = {.kind = MLIR_A_STRING};

    for (mlir_op *op = b->first; op; op = op->next) {
        const char *name;

        if (!is_op(r, op, MLIR_D_SDY, "mesh"))
            continue;
        name = vhlo_string(im, op, "sym_name");
        sd_buf_fmt(&all, "%s%s = ", all.len ? ", " : "{", name ? name : "");
        mlir_attr_print(r, vhlo_need(im, op, "mesh"), &all);
    }
    if (all.len && !r->st) {
        sd_buf_str(&all, "}");
        text.str = mlir_new_str(r, all.at, all.len);
        vhlo_put_frontend_attr(im, &attr, "xla.sdy.meshes", &text);
        sd_buf_str(&attr, "}");
        im->m->frontend_attrs = sd_buf_take(&attr);
    }
    if (!r->st && hlo_participants(im->m) > 1)
        r->st = hlo_meshes_read(im->m);
}

static void collect_funcs(vhlo_import *im, mlir_block *b)
{
    mlir_reader *r = im->r;

    for (mlir_op *op = b->first; op && !r->st; op = op->next) {
        const char *name;
        vhlo_func *f;
        uint64_t key;

        if (is_op(r, op, MLIR_D_SDY, "mesh"))
            continue;
        if (!is_op(r, op, MLIR_D_VHLO, "func_v1")) {
            vhlo_fail(im, op, SD_UNIMPLEMENTED,
                      "it stands in a module beside functions, which is "
                      "not done");
            return;
        }
        if (!vhlo_check_form(im, op, r->name.at[op->name].row))
            return;
        name = vhlo_string(im, op, "sym_name");
        if (name && vhlo_find_func(im, name))
            vhlo_fail(im, op, SD_INVALID, "a second function %s", name);
        if (r->st)
            return;
        key = vhlo_func_key(name);
        f = sd_arena_new(r->a, vhlo_func);
        *f = (vhlo_func){
            .name = name, .op = op, .chain = sd_map_get(im->func, key)};
        sd_map_set(im->func, key, f);
    }
}

/* ---- the look-over ---- */

typedef struct {
    vhlo_import *im;
    sd_vec(vhlo_func *) todo;
    sd_names *seen; /* an operation, or what is wrong: told already */
} survey;

static void queue(survey *s, const char *name)
{
    vhlo_func *f = name ? vhlo_find_func(s->im, name) : NULL;

    if (f && !f->queued) {
        f->queued = true;
        *sd_push(s->im->r->a, &s->todo) = f;
    }
}

static void survey_calls(survey *s, const mlir_op *op, const vhlo_row *row)
{
    mlir_reader *r = s->im->r;

    if (row->fn == op_call) {
        queue(s, mlir_text(r, mlir_inherent(r, op, "callee")));
    } else if (row->fn == op_composite) {
        if (!mlir_is_string(r, mlir_inherent(r, op, "name"), "chlo.erf"))
            queue(s, mlir_text(r, mlir_inherent(r, op, "decomposition")));
    } else if (row->fn == op_custom_call) {
        const mlir_attr *at = mlir_inherent(r, op, "called_computations");

        for (int i = 0; at->kind == MLIR_A_ARRAY && i < at->nlist; i++)
            queue(s, mlir_text(r, mlir_attr_at(r, at->list[i])));
    }
}

/* Each thing once, where it is first: an operation, or what is wrong with it.
 */
static void tell(survey *s, const mlir_op *op, const char *why)
{
    mlir_reader *r = s->im->r;
    const char *what = *why ? why : vhlo_op_name(r, op);

    if (sd_names_get(s->seen, what, strlen(what)))
        return;
    sd_names_set(s->seen, what, strlen(what), s);
    vhlo_refuse(s->im, sd_arena_fmt(r->a, "%s%s%s", vhlo_op_name(r, op),
                                    vhlo_place(r, op), why));
}

static void survey_op(survey *s, const mlir_op *op)
{
    if (!vhlo_is_return(&s->im->r->name.at[op->name]) &&
        !vhlo_is_supported(s->im, op)) {
        tell(s, op, "");
        return;
    }
    for (int i = 0; i < op->nresult; i++) {
        const char *odd = vhlo_odd_type(s->im, op->result[i].type);

        if (odd)
            tell(s, op, sd_arena_fmt(s->im->r->a, ": gives a %s", odd));
    }
}

static void survey_region(survey *s, const mlir_region *g)
{
    mlir_reader *r = s->im->r;

    for (int i = 0; i < g->nblock; i++)
        for (mlir_op *op = g->block[i]->first; op && !r->st; op = op->next) {
            const vhlo_row *row = r->name.at[op->name].row;

            survey_op(s, op);
            if (row)
                survey_calls(s, op, row);
            if (row && row->fn == op_composite)
                continue; /* its regions only describe it */
            for (int k = 0; k < op->nregion; k++)
                survey_region(s, op->region[k]);
        }
}

static void look_over(vhlo_import *im, vhlo_func *entry)
{
    survey s = {.im = im, .seen = sd_names_create(im->r->a)};

    entry->queued = true;
    *sd_push(im->r->a, &s.todo) = entry;
    for (int i = 0; i < s.todo.n && !im->r->st; i++)
        for (int k = 0; k < s.todo.at[i]->op->nregion; k++)
            survey_region(&s, s.todo.at[i]->op->region[k]);
}

/* All that is not supported, instead of what followed from it. */
static void tell_refused(vhlo_import *im)
{
    sd_status st = im->r->st;
    int more = im->nrefused - VHLO_MAX_REFUSED;

    if (im->nrefused && (!st || st->code == SD_UNIMPLEMENTED)) {
        sd_status_free(st);
        im->r->st = NULL;
        mlir_fail(im->r, SD_UNIMPLEMENTED, "not supported: %.*s%s",
                  (int)im->refused.len, im->refused.at ? im->refused.at : "",
                  more > 0 ? sd_arena_fmt(im->r->a, "; and %d more", more)
                           : "");
    }
}

/* ---- the module ---- */

static int64_t module_int(mlir_reader *r, const mlir_op *op, const char *name)
{
    const mlir_attr *at = mlir_discardable(r, op, name);
    int64_t n = at->kind == MLIR_A_INT ? mlir_int(r, at) : 1;

    if (n < 1 || n > MOST_PARTICIPANTS)
        mlir_fail(r, SD_INVALID, "%s is %" PRId64 ", which should be 1 to %d",
                  name, n, MOST_PARTICIPANTS);
    return n;
}

static const char *module_name(mlir_reader *r, const mlir_op *op)
{
    const char *name = mlir_text(r, mlir_inherent(r, op, "sym_name"));

    return name && *name ? name : "main";
}

static const char *dict_text(mlir_reader *r, const mlir_attr *d,
                             const char *key)
{
    return mlir_text(r, mlir_dict_get(r, d, key));
}

/* The dictionary of argument or result i. */
static const mlir_attr *attrs_of(mlir_reader *r, const mlir_attr *list, int i)
{
    if (list->kind != MLIR_A_ARRAY || i >= list->nlist)
        return &mlir_no_attr;
    return mlir_attr_at(r, list->list[i]);
}

static void entry_params(vhlo_import *im, vhlo_func *f, int nout)
{
    mlir_reader *r = im->r;
    hlo_module *m = im->m;
    const mlir_attr *list = vhlo_attr(im, f->op, "arg_attrs");
    int n = f->comp->nparam;
    sd_vec(hlo_alias) alias = {0};

    m->donor = sd_arena_array(im->a, bool, n + 1);
    m->param_memory = sd_arena_array(im->a, const char *, n + 1);
    m->param_layout = sd_arena_array(im->a, hlo_dims, n + 1);
    for (int i = 0; i < n && !r->st; i++) {
        const mlir_attr *d = attrs_of(r, list, i);
        const mlir_attr *to = mlir_dict_get(r, d, "tf.aliasing_output");
        const mlir_attr *donor = mlir_dict_get(r, d, "jax.buffer_donor");

        m->param_memory[i] = dict_text(r, d, "mhlo.memory_kind");
        f->comp->param[i]->sharding = dict_text(r, d, "mhlo.sharding");
        f->comp->param[i]->frontend_attrs = vhlo_frontend_attrs(im, d);
        if (donor->kind == MLIR_A_ENUM || donor->kind == MLIR_A_INT)
            m->donor[i] = donor->bits != 0;
        if (to->kind == MLIR_A_INT) {
            int64_t k = mlir_int(r, to);

            if (k < 0 || k >= nout)
                vhlo_fail(im, f->op, SD_INVALID,
                          "parameter %d aliases output %" PRId64 " of %d", i, k,
                          nout);
            *sd_push(im->a, &alias) = (hlo_alias){k, i, true};
        }
        vhlo_param_layout(im, f, i, dict_text(r, d, "mhlo.layout_mode"));
    }
    m->alias = alias.at;
    m->nalias = alias.n;
}

/* Results that are to come out sharded pass through a mark that says so. */
static void shard_results(vhlo_import *im, vhlo_func *f, const mlir_attr *list,
                          int n)
{
    hlo_inst *root = f->comp->root, **out;

    if (im->r->st || hlo_participants(im->m) == 1)
        return;
    out = sd_arena_array(im->r->a, hlo_inst *, n + 1);
    im->c = f->comp;
    im->where = (mlir_where){0};
    for (int i = 0; i < n; i++) {
        const mlir_attr *d = attrs_of(im->r, list, i);

        out[i] = vhlo_shard_result(im, n == 1 ? root : root->arg[i],
                                   vhlo_frontend_attrs(im, d),
                                   dict_text(im->r, d, "mhlo.sharding"));
    }
    hlo_set_root(f->comp, vhlo_one_or_tuple(im, n, out));
}

static void entry_results(vhlo_import *im, vhlo_func *f, int n)
{
    mlir_reader *r = im->r;
    const mlir_attr *list = vhlo_attr(im, f->op, "res_attrs");

    im->m->output_memory = sd_arena_array(im->a, const char *, n + 1);
    im->m->output_layout = sd_arena_array(im->a, hlo_dims, n + 1);
    for (int i = 0; i < n && !r->st; i++) {
        const mlir_attr *d = attrs_of(r, list, i);

        im->m->output_memory[i] = dict_text(r, d, "mhlo.memory_kind");
        vhlo_result_layout(im, f, i, n, dict_text(r, d, "mhlo.layout_mode"));
    }
    shard_results(im, f, list, n);
    if (!r->st && hlo_participants(im->m) == 1)
        hlo_layouts_apply(im->m);
}

/* Callees first, as in every module; depth is that of calls, bounded. */
static void put_callees_first(hlo_module *m, hlo_comp *c)
{
    if (c->mark)
        return;
    c->mark = 1;
    hlo_for_each_inst(in, c)
        for (int i = 0; i < in->ncomp; i++)
            put_callees_first(m, in->comp[i]);
    c->prev = m->last;
    c->next = NULL;
    if (m->last)
        m->last->next = c;
    else
        m->first = c;
    m->last = c;
}

static void import_entry(vhlo_import *im, vhlo_func *f)
{
    hlo_module *m = im->m;
    mlir_block *b;
    int nout;

    if (!vhlo_func_comp(im, f->op, f->name))
        return;
    b = f->op->region[0]->block[0];
    nout = b->last->noperand;
    m->entry = f->comp;
    entry_params(im, f, nout);
    entry_results(im, f, nout);
    m->first = m->last = NULL;
    put_callees_first(m, m->entry);
    hlo_for_each_comp(c, m)
        c->mark = 0;
}

void vhlo_import_module(mlir_reader *r, const char *entry, hlo_module **out)
{
    vhlo_import im = {.r = r,
                      .a = r->out,
                      .func = sd_map_create(r->a),
                      .refused.arena = r->a};
    mlir_op *op = r->module;
    vhlo_func *f;

    if (r->st)
        return;
    if (!is_op(r, op, MLIR_D_BUILTIN, "module") || op->nregion != 1 ||
        op->region[0]->nblock != 1) {
        mlir_fail(r, SD_INVALID, "%s where a module of one block should be",
                  vhlo_op_name(r, op));
        return;
    }
    im.m = hlo_module_create(r->out, module_name(r, op));
    im.m->nreplica = (int)module_int(r, op, "mhlo.num_replicas");
    im.m->npartition = (int)module_int(r, op, "mhlo.num_partitions");
    if (r->whole) {
        im.m->nreplica = r->whole->nreplica;
        im.m->npartition = r->whole->npartition;
    }
    keep_meshes(&im, op->region[0]->block[0]);
    collect_funcs(&im, op->region[0]->block[0]);
    f = vhlo_find_func(&im, entry ? entry : "main");
    if (!f)
        mlir_fail(r, SD_INVALID, "the program has no function %s",
                  entry ? entry : "main");
    if (!r->st)
        look_over(&im, f);
    if (!r->st)
        import_entry(&im, f);
    tell_refused(&im);
    if (!r->st)
        *out = im.m;
}
