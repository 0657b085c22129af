/* VHLO to HLO: functions, values, operations in their order.  What an
 * operation becomes is in vhlo.def and the files of its handlers. */
#include "vhlo_import.h"

#include <assert.h>

enum { MAX_NESTING = 256 }; /* functions and regions within each other */

/* ---- messages ---- */

const char *vhlo_op_name(mlir_reader *r, const mlir_op *op)
{
    const mlir_op_name *n = &r->name.at[op->name];
    sd_buf b = {.arena = r->a};

    if (n->row)
        vhlo_text_name(n->row, false, &b);
    else
        sd_buf_add(&b, n->name.at, n->name.len);
    return sd_buf_take(&b);
}

const char *vhlo_place(mlir_reader *r, const mlir_op *op)
{
    sd_status st = r->st;
    mlir_where w;
    const char *s = "";

    r->st = NULL; /* the place of an error is asked for after it */
    w = mlir_locate(r, op->loc);
    sd_status_free(r->st);
    r->st = st;
    if (w.op_name && w.file)
        s = sd_arena_fmt(r->a, " (%s, %s:%d)", w.op_name, w.file, w.line);
    else if (w.op_name)
        s = sd_arena_fmt(r->a, " (%s)", w.op_name);
    else if (w.file)
        s = sd_arena_fmt(r->a, " (%s:%d)", w.file, w.line);
    return s;
}

void vhlo_fail(vhlo_import *im, const mlir_op *op, sd_code code,
               const char *fmt, ...)
{
    const char *what;
    va_list ap;

    if (im->r->st)
        return;
    va_start(ap, fmt);
    what = sd_arena_vfmt(im->r->a, fmt, ap);
    va_end(ap);
    mlir_fail(im->r, code, "%s%s: %s", vhlo_op_name(im->r, op),
              vhlo_place(im->r, op), what);
    im->error = VHLO_TOLD;
}

/* ---- what is not supported ---- */

void vhlo_refuse(vhlo_import *im, const char *what)
{
    if (im->nrefused++ < VHLO_MAX_REFUSED)
        sd_buf_fmt(&im->refused, "%s%s", im->nrefused > 1 ? "; " : "", what);
}

void vhlo_fail_lost(vhlo_import *im)
{
    mlir_fail(im->r, SD_UNIMPLEMENTED, "it needs what is not supported");
    im->error = VHLO_FOLLOWS;
}

const char *vhlo_odd_type(vhlo_import *im, uint64_t type)
{
    const mlir_type *t = mlir_type_at(im->r, type), *e;

    if (t->kind == MLIR_T_OTHER) /* a future: what async_start's region gives */
        return strcmp(t->what, "future type") == 0 ? NULL : t->what;
    if (t->kind != MLIR_T_TENSOR)
        return NULL;
    e = mlir_type_at(im->r, t->elem);
    return e->kind == MLIR_T_OTHER
               ? sd_arena_fmt(im->r->a, "tensor of %s", e->what)
               : NULL;
}

bool vhlo_is_supported(vhlo_import *im, const mlir_op *op)
{
    const mlir_op_name *n = &im->r->name.at[op->name];

    return n->row && n->row->fn;
}

/* What the look-over has listed, and what depends on something listed. */
static bool is_listed(vhlo_import *im, const mlir_op *op)
{
    for (int i = 0; i < op->noperand; i++)
        if (op->operand[i]->is_lost)
            return true;
    for (int i = 0; i < op->nresult; i++)
        if (vhlo_odd_type(im, op->result[i].type))
            return true;
    return !vhlo_is_supported(im, op);
}

/* c: the computation that the operation stands in. */
static void pass_over(vhlo_import *im, mlir_op *op, hlo_comp *c)
{
    sd_status st = im->r->st;

    if (st && im->error != VHLO_FOLLOWS)
        vhlo_refuse(im, st->message);
    sd_status_free(st);
    im->r->st = NULL;
    im->error = VHLO_NOT_TOLD;
    im->c = c;
    for (int i = 0; i < op->nresult; i++)
        op->result[i].is_lost = true;
}

/* ---- instructions ---- */

hlo_inst *vhlo_emit(vhlo_import *im, hlo_op op, const sd_shape *shape, int n,
                    hlo_inst *const *arg)
{
    hlo_inst *in = hlo_inst_create(im->c, NULL, op, shape, n, arg);

    in->op_name = im->where.op_name;
    in->source_file = im->where.file;
    in->source_line = im->where.line;
    return in;
}

bool vhlo_check(vhlo_import *im, hlo_inst *in)
{
    if (!im->r->st) {
        im->r->st = hlo_admit(im->m, in);
        im->error = im->r->st ? VHLO_TOLD : VHLO_NOT_TOLD;
    }
    return !im->r->st;
}

hlo_inst *vhlo_gte(vhlo_import *im, hlo_inst *in, int64_t i)
{
    hlo_inst *x =
        vhlo_emit(im, HLO_GET_TUPLE_ELEMENT, in->shape->elem[i], 1, &in);

    x->u.tuple.index = i;
    return x;
}

hlo_inst *vhlo_tuple(vhlo_import *im, int n, hlo_inst *const *x)
{
    const sd_shape **s = sd_arena_array(im->r->a, const sd_shape *, n + 1);

    for (int i = 0; i < n; i++)
        s[i] = x[i]->shape;
    return vhlo_emit(im, HLO_TUPLE, sd_shape_tuple(im->a, n, s), n, x);
}

hlo_inst *vhlo_one_or_tuple(vhlo_import *im, int n, hlo_inst *const *x)
{
    return n == 1 ? x[0] : vhlo_tuple(im, n, x);
}

hlo_inst *vhlo_convert(vhlo_import *im, hlo_inst *x, sd_dtype t)
{
    if (x->shape->dtype == t || !sd_shape_is_array(x->shape))
        return x;
    return vhlo_emit(im, HLO_CONVERT, sd_shape_with(im->a, x->shape, t), 1, &x);
}

hlo_inst *vhlo_fill(vhlo_import *im, hlo_inst *scalar, const sd_shape *to)
{
    const sd_shape *s = scalar->shape;

    if (!sd_shape_is_array(s) || s->rank != 0 || to->rank == 0)
        return scalar;
    return vhlo_emit(im, HLO_BROADCAST,
                     sd_shape_make(im->a, s->dtype, to->rank, to->dim), 1,
                     &scalar);
}

const sd_shape *vhlo_shape(vhlo_import *im, const mlir_op *op)
{
    const sd_shape **s;

    if (op->nresult == 1)
        return mlir_shape(im->r, op->result[0].type);
    s = sd_arena_array(im->r->a, const sd_shape *, op->nresult + 1);
    for (int i = 0; i < op->nresult; i++)
        if (!(s[i] = mlir_shape(im->r, op->result[i].type)))
            return NULL;
    return sd_shape_tuple(im->a, op->nresult, s);
}

/* A key as HLO text can hold it: what is no word there becomes _. */
static void put_key(sd_buf *b, const char *k)
{
    for (; *k; k++) {
        bool word = (*k >= 'a' && *k <= 'z') || (*k >= 'A' && *k <= 'Z') ||
                    (*k >= '0' && *k <= '9') || strchr("_.-", *k);

        sd_buf_u8(b, word ? (uint8_t)*k : '_');
    }
}

/* The value as a string: what is none, as MLIR spells it. */
void vhlo_put_frontend_attr(vhlo_import *im, sd_buf *b, const char *key,
                            const mlir_attr *value)
{
    sd_buf v = {.arena = im->a};

    sd_buf_str(b, b->len ? "," : "{");
    put_key(b, key);
    sd_buf_str(b, "=");
    if (value->kind == MLIR_A_STRING) { /* HLO's escapes are not MLIR's */
        sd_bytes s = mlir_str(im->r, value->str);

        hlo_print_quoted(b, (const char *)s.at, s.len);
    } else {
        mlir_attr_print(im->r, value, &v);
        hlo_print_quoted(b, v.at ? v.at : "", v.len);
    }
}

/* {a="b",c="d"}, as XLA prints them; Shardy's by the name that XLA gives it */
const char *vhlo_frontend_attrs(vhlo_import *im, const mlir_attr *dict)
{
    const mlir_attr *d = mlir_dict_get(im->r, dict, "mhlo.frontend_attributes");
    const mlir_attr *sharding = mlir_dict_get(im->r, dict, "sdy.sharding");
    const mlir_attr *rule = mlir_dict_get(im->r, dict, "sdy.sharding_rule");
    sd_buf b = {.arena = im->a};

    for (int i = 0; d->kind == MLIR_A_DICT && i + 1 < d->nlist; i += 2) {
        const char *k = mlir_text(im->r, mlir_attr_at(im->r, d->list[i]));
        const mlir_attr *v = mlir_attr_at(im->r, d->list[i + 1]);

        if (k && v->kind == MLIR_A_STRING)
            vhlo_put_frontend_attr(im, &b, k, v);
    }
    if (sharding->kind == MLIR_A_OPAQUE)
        vhlo_put_frontend_attr(im, &b, "xla.sdy.sharding", sharding);
    if (rule->kind == MLIR_A_OPAQUE)
        vhlo_put_frontend_attr(im, &b, "xla.sdy.sharding_rule", rule);
    if (!b.len)
        return NULL;
    sd_buf_str(&b, "}");
    return sd_buf_take(&b);
}

void vhlo_bind(vhlo_import *im, mlir_op *op, hlo_inst *in)
{
    if (!in || im->r->st)
        return;
    if (op->dict >= 0) {
        const char *fa =
            vhlo_frontend_attrs(im, mlir_attr_at(im->r, (uint64_t)op->dict));
        const char *sh =
            mlir_text(im->r, mlir_discardable(im->r, op, "mhlo.sharding"));

        if (fa)
            in->frontend_attrs = fa;
        if (sh)
            in->sharding = sh;
    }
    if (!vhlo_check(im, in))
        return;
    if (op->nresult == 1) {
        op->result[0].inst = in;
        return;
    }
    for (int i = 0; i < op->nresult; i++)
        op->result[i].inst = vhlo_gte(im, in, i);
}

/* ---- operations ---- */

static bool count_fits(int have, int8_t want)
{
    return want >= 0 ? have == want : have >= ~want;
}

/* "2", or "2 or more" */
static const char *count_text(vhlo_import *im, int8_t want)
{
    return sd_arena_fmt(im->r->a, want >= 0 ? "%d" : "%d or more",
                        want >= 0 ? want : ~want);
}

bool vhlo_check_form(vhlo_import *im, mlir_op *op, const vhlo_row *row)
{
    if (!count_fits(op->noperand, row->noperand) ||
        !count_fits(op->nresult, row->nresult) ||
        !count_fits(op->nregion, row->nregion))
        vhlo_fail(im, op, SD_INVALID,
                  "%d operands, %d results, %d regions, where %s, %s, %s "
                  "should be",
                  op->noperand, op->nresult, op->nregion,
                  count_text(im, row->noperand), count_text(im, row->nresult),
                  count_text(im, row->nregion));
    return !im->r->st;
}

bool vhlo_as_many(vhlo_import *im, mlir_op *op)
{
    if (op->noperand != op->nresult)
        vhlo_fail(im, op, SD_INVALID,
                  "%d operands and %d results: each operand should have its "
                  "result",
                  op->noperand, op->nresult);
    return !im->r->st;
}

static hlo_inst **operands(vhlo_import *im, mlir_op *op)
{
    hlo_inst **arg = sd_arena_array(im->r->a, hlo_inst *, op->noperand + 1);

    for (int i = 0; i < op->noperand; i++) {
        arg[i] = op->operand[i]->inst;
        if (!arg[i] || arg[i]->parent != im->c) {
            vhlo_fail(im, op, SD_INVALID,
                      "operand %d is used where it is not defined", i);
            return NULL;
        }
    }
    return arg;
}

bool vhlo_has_operands(vhlo_import *im, mlir_op *op)
{
    if (!op->noperand)
        vhlo_fail(im, op, SD_INVALID,
                  "no operands, where one at least should be");
    return !im->r->st;
}

/* sdy and builtin: what says nothing of values; on one participant all. */
void op_identity(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    if (op->nregion == 1) { /* a named computation or the like: its body */
        mlir_block *b = vhlo_entry(im, op, 0, op->noperand);

        if (!b)
            return;
        for (int i = 0; i < op->noperand; i++)
            b->arg[i].inst = arg[i];
        arg = vhlo_block(im, op, 0, op->nresult);
    } else if (op->nresult) {
        vhlo_as_many(im, op);
    }
    for (int i = 0; i < op->nresult && !im->r->st; i++)
        op->result[i].inst = arg[i];
}

static void import_op(vhlo_import *im, mlir_op *op)
{
    const mlir_op_name *name = &im->r->name.at[op->name];
    hlo_comp *c = im->c;
    hlo_inst **arg;

    if (is_listed(im, op)) {
        pass_over(im, op, c);
        return;
    }
    arg = operands(im, op);
    if (im->r->st)
        return;
    im->where = mlir_locate(im->r, op->loc);
    if (vhlo_check_form(im, op, name->row))
        name->row->fn(im, op, arg);
    for (int i = 0; i < op->nresult; i++)
        assert(im->r->st || op->result[i].inst);
    if (im->r->st && im->error == VHLO_NOT_TOLD) {
        im->error = VHLO_TOLD;
        im->r->st = sd_note(im->r->st, "%s%s", vhlo_op_name(im->r, op),
                            vhlo_place(im->r, op));
    }
    if (im->r->st && im->r->st->code == SD_UNIMPLEMENTED)
        pass_over(im, op, c);
}

bool vhlo_is_return(const mlir_op_name *n)
{
    return (n->dialect == MLIR_D_VHLO && n->row &&
            strcmp(n->row->name, "return_v1") == 0) ||
           (n->dialect == MLIR_D_SDY && n->name.len == 6 &&
            memcmp(n->name.at, "return", 6) == 0);
}

mlir_block *vhlo_entry(vhlo_import *im, const mlir_op *op, int k, int narg)
{
    const mlir_region *g = op->region[k];
    mlir_block *b = g->nblock == 1 ? g->block[0] : NULL;

    if (!b || !b->last)
        vhlo_fail(im, op, g->nblock > 1 ? SD_UNIMPLEMENTED : SD_INVALID,
                  "region %d has %s, where one that ends in a return should be",
                  k,
                  g->nblock > 1    ? "several blocks"
                  : g->nblock == 1 ? "a block without operations"
                                   : "no block");
    else if (narg >= 0 && b->narg != narg)
        vhlo_fail(im, op, SD_INVALID, "region %d takes %d values, not %d", k,
                  b->narg, narg);
    return im->r->st ? NULL : b;
}

hlo_inst **vhlo_block(vhlo_import *im, mlir_op *op, int k, int nout)
{
    mlir_block *b = op->region[k]->block[0];

    if (im->depth >= MAX_NESTING) {
        vhlo_fail(im, op, SD_UNIMPLEMENTED,
                  "calls and regions are nested deeper than %d", MAX_NESTING);
        return NULL;
    }
    im->depth++;
    for (mlir_op *x = b->first; x != b->last && !im->r->st; x = x->next)
        import_op(im, x);
    im->depth--;
    if (im->r->st)
        return NULL;
    if (!vhlo_is_return(&im->r->name.at[b->last->name])) {
        vhlo_fail(im, b->last, SD_INVALID,
                  "ends a block, where a return should be");
        return NULL;
    }
    if (nout >= 0 && b->last->noperand != nout) {
        vhlo_fail(im, op, SD_INVALID, "region %d gives %d values, not %d", k,
                  b->last->noperand, nout);
        return NULL;
    }
    for (int i = 0; i < b->last->noperand; i++)
        if (b->last->operand[i]->is_lost) {
            vhlo_fail_lost(im);
            return NULL;
        }
    return operands(im, b->last);
}

/* ---- functions ---- */

uint64_t vhlo_func_key(const char *s)
{
    return sd_hash(s, strlen(s), 0);
}

vhlo_func *vhlo_find_func(vhlo_import *im, const char *name)
{
    vhlo_func *f = sd_map_get(im->func, vhlo_func_key(name));

    while (f && strcmp(f->name, name) != 0)
        f = f->chain;
    return f;
}

/* Of a type that is not supported. */
static void lose_argument(vhlo_import *im, vhlo_func *f, int i)
{
    im->r->st = sd_note(im->r->st, "argument %d of %s", i, f->name);
    vhlo_refuse(im, im->r->st->message);
    sd_status_free(im->r->st);
    im->r->st = NULL;
    f->op->region[0]->block[0]->arg[i].is_lost = true;
}

static void import_body(vhlo_import *im, vhlo_func *f)
{
    mlir_op *op = f->op;
    mlir_block *b;
    hlo_inst **out;

    if (!op->region[0]->nblock)
        vhlo_fail(im, op, SD_INVALID,
                  "function %s is declared, and not defined", f->name);
    b = vhlo_entry(im, op, 0, -1);
    for (int i = 0; b && i < b->narg; i++) {
        const sd_shape *s = mlir_shape(im->r, b->arg[i].type);

        if (!s && im->r->st->code == SD_UNIMPLEMENTED) {
            lose_argument(im, f, i);
            continue;
        }
        if (!s) {
            im->r->st = sd_note(im->r->st, "argument %d of %s", i, f->name);
            im->error = VHLO_TOLD;
            return;
        }
        b->arg[i].inst =
            hlo_make_param(im->c, s, sd_arena_fmt(im->a, "Arg_%d", i));
    }
    out = b ? vhlo_block(im, op, 0, -1) : NULL;
    if (im->r->st)
        return;
    im->where = (mlir_where){0};
    hlo_set_root(im->c, vhlo_one_or_tuple(im, b->last->noperand, out));
}

hlo_comp *vhlo_func_comp(vhlo_import *im, mlir_op *caller, const char *name)
{
    vhlo_func *f = im->r->st ? NULL : vhlo_find_func(im, name);
    hlo_comp *saved = im->c;
    mlir_where where = im->where;

    if (im->r->st)
        return NULL;
    if (!f) {
        vhlo_fail(im, caller, SD_INVALID, "there is no function %s", name);
        return NULL;
    }
    if (f->is_lost) {
        vhlo_fail_lost(im);
        return NULL;
    }
    if (f->comp && !f->busy)
        return f->comp;
    if (f->busy) {
        vhlo_fail(im, caller, SD_INVALID, "function %s calls itself", f->name);
        return NULL;
    }
    f->busy = true;
    im->c = f->comp = hlo_comp_create(im->m, f->name);
    import_body(im, f);
    im->c = saved;
    im->where = where;
    f->busy = false;
    f->is_lost = im->r->st != NULL;
    return im->r->st ? NULL : f->comp;
}
