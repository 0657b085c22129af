/* What an import asks of an operation's attributes: each is there, or is its
 * row's default, and is what the function's name says. */
#include "vhlo_import.h"

/* What text leaves out: false when it may not. */
static bool default_of(vhlo_import *im, const mlir_op *op, const char *name,
                       int64_t *v)
{
    const vhlo_row *row = im->r->name.at[op->name].row;
    vhlo_prop p;

    if (vhlo_prop_index(row, name, strlen(name), &p) < 0)
        return false;
    *v = p.dflt == '1' ? 1 : p.dflt == '-' ? -1 : 0;
    return p.dflt != 0;
}

/* An error that was not there before is one of this attribute. */
static void name_attr(vhlo_import *im, const sd_error *before, const char *name)
{
    if (im->r->st != before && im->error == VHLO_NOT_TOLD)
        im->r->st = sd_note(im->r->st, "%s", name);
}

const mlir_attr *vhlo_need(vhlo_import *im, const mlir_op *op, const char *name)
{
    const mlir_attr *at = vhlo_attr(im, op, name);

    if (at->kind == MLIR_A_NONE)
        vhlo_fail(im, op, SD_INVALID, "no attribute %s", name);
    return at;
}

void vhlo_want(vhlo_import *im, const mlir_op *op, const char *name,
               const mlir_attr *at, const char *what)
{
    vhlo_fail(im, op, SD_INVALID, "%s: %s where %s should be", name,
              mlir_kind_name(at), what);
}

int64_t vhlo_int(vhlo_import *im, mlir_op *op, const char *name)
{
    const sd_error *before = im->r->st;
    int64_t v = 0;

    if (vhlo_attr(im, op, name)->kind == MLIR_A_NONE &&
        default_of(im, op, name, &v))
        return v;
    v = mlir_int(im->r, vhlo_need(im, op, name));
    name_attr(im, before, name);
    return v;
}

int vhlo_choice(vhlo_import *im, mlir_op *op, const char *name, int low,
                int high)
{
    int64_t v = vhlo_int(im, op, name);

    if (v >= low && v <= high)
        return (int)v;
    vhlo_fail(im, op, SD_INVALID, "%s is %" PRId64 ", which should be %d to %d",
              name, v, low, high);
    return low;
}

double vhlo_float(vhlo_import *im, mlir_op *op, const char *name)
{
    const sd_error *before = im->r->st;
    double v = mlir_float(im->r, vhlo_need(im, op, name));

    name_attr(im, before, name);
    return v;
}

const char *vhlo_string(vhlo_import *im, const mlir_op *op, const char *name)
{
    const mlir_attr *at = vhlo_need(im, op, name);
    const char *s = mlir_text(im->r, at);

    if (!s)
        vhlo_want(im, op, name, at, "a string");
    return im->r->st ? NULL : s;
}

hlo_dims vhlo_ints(vhlo_import *im, mlir_op *op, const char *name, int max)
{
    const mlir_attr *at = vhlo_attr(im, op, name);

    const sd_error *before = im->r->st;
    hlo_dims d;

    if (at->kind == MLIR_A_NONE) /* an older form */
        return (hlo_dims){0};
    d = mlir_ints(im->r, at, max);
    name_attr(im, before, name);
    return d;
}

const int64_t *vhlo_ints_of(vhlo_import *im, mlir_op *op, const char *name,
                            int n)
{
    static const int64_t zeros[4 * SD_MAX_RANK];
    hlo_dims d = vhlo_ints(im, op, name, 2 * SD_MAX_RANK);
    int64_t v, *all;

    if (vhlo_attr(im, op, name)->kind == MLIR_A_NONE &&
        default_of(im, op, name, &v)) {
        all = sd_arena_array(im->a, int64_t, n + 1);
        for (int i = 0; i < n; i++)
            all[i] = v;
        return all;
    }
    if (d.n == n && (n == 0 || d.at))
        return d.at ? d.at : zeros;
    vhlo_fail(im, op, SD_INVALID, "%s has %d entries, not %d", name, d.n, n);
    return zeros;
}

hlo_dims vhlo_const_ints(vhlo_import *im, mlir_op *op, int k, int max)
{
    mlir_op *def = op->operand[k]->def;
    const mlir_op_name *n = def ? &im->r->name.at[def->name] : NULL;

    if (!n || !n->row || n->row->op != HLO_CONSTANT ||
        strcmp(n->row->name, "constant_v1") != 0) {
        vhlo_fail(im, op, SD_UNIMPLEMENTED,
                  "operand %d decides a shape and is no constant", k);
        return (hlo_dims){0};
    }
    return mlir_ints(im->r, mlir_inherent(im->r, def, "value"), max);
}
