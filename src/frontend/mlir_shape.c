/* What types say once they are decoded: the shape of a value, and whether two
 * types are the same. */
#include "mlir.h"

static const sd_shape *tensor_shape(mlir_reader *r, const mlir_type *t)
{
    const mlir_type *e = mlir_type_at(r, t->elem);
    sd_status st;

    if (e->kind != MLIR_T_ELEM) {
        mlir_fail(r, SD_UNIMPLEMENTED, "tensor of %s is not done",
                  e->what ? e->what : "what is no element type");
        return NULL;
    }
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] == INT64_MIN) {
            mlir_fail(r, SD_UNIMPLEMENTED,
                      "dynamic dimension %d of a tensor of rank %d: only "
                      "sizes that are known when compiling are done",
                      i, t->rank);
            return NULL;
        }
    st = sd_shape_check(e->dtype, t->rank, t->dim);
    if (st) {
        if (r->st)
            sd_status_free(st);
        else
            r->st = st;
        return NULL;
    }
    return sd_shape_make(r->out, e->dtype, t->rank, t->dim);
}

static const sd_shape *tuple_shape(mlir_reader *r, mlir_type *t)
{
    const sd_shape **s = sd_arena_array(r->a, const sd_shape *, t->nlist + 1);

    for (int i = 0; i < t->nlist; i++) {
        if (!(s[i] = mlir_shape(r, t->list[i])))
            return NULL;
        t->nleaf += mlir_type_at(r, t->list[i])->nleaf;
        if (t->nleaf > MLIR_TUPLE_LEAVES) {
            mlir_fail(r, SD_INVALID, "a tuple of more than %d arrays",
                      MLIR_TUPLE_LEAVES);
            return NULL;
        }
    }
    return sd_shape_tuple(r->out, t->nlist, s);
}

const sd_shape *mlir_shape(mlir_reader *r, uint64_t type)
{
    mlir_type *t = (mlir_type *)mlir_type_at(r, type);

    if (r->st || t->shape)
        return r->st ? NULL : t->shape;
    r->depth++;
    switch (t->kind) {
    case MLIR_T_TENSOR:
        t->nleaf = 1;
        t->shape = tensor_shape(r, t);
        break;
    case MLIR_T_TOKEN:
        t->nleaf = 1;
        t->shape = sd_shape_make(r->out, SD_TOKEN, 0, NULL);
        break;
    case MLIR_T_TUPLE:
        t->nleaf = 1;
        t->shape = tuple_shape(r, t);
        break;
    default:
        mlir_fail(r, SD_UNIMPLEMENTED, "a value of %s is not done",
                  t->what ? t->what : "a type that is no tensor");
    }
    r->depth--;
    return t->shape;
}

/* ---- equality ---- */

static bool same_lists(mlir_reader *r, const mlir_type *a, const mlir_type *b)
{
    for (int i = 0; i < a->nlist; i++)
        if (!mlir_type_same(r, a->list[i], b->list[i]))
            return false;
    return true;
}

bool mlir_type_same(mlir_reader *r, uint64_t x, uint64_t y)
{
    const mlir_type *a = mlir_type_at(r, x), *b = mlir_type_at(r, y);
    bool same;

    if (a == b)
        return true;
    if (a->kind != b->kind)
        return false;
    r->depth++;
    switch (a->kind) {
    case MLIR_T_ELEM:
        same = a->dtype == b->dtype && (!a->text == !b->text);
        break;
    case MLIR_T_TENSOR:
        same = a->rank == b->rank &&
               (!a->rank || memcmp(a->dim, b->dim,
                                   sizeof *a->dim * (size_t)a->rank) == 0) &&
               mlir_type_same(r, a->elem, b->elem);
        break;
    case MLIR_T_TUPLE:
    case MLIR_T_FUNCTION:
        same = a->nlist == b->nlist && a->ninput == b->ninput &&
               same_lists(r, a, b);
        break;
    case MLIR_T_OTHER:
        same = a->text && b->text && strcmp(a->text, b->text) == 0;
        break;
    default:
        same = true;
    }
    r->depth--;
    return same;
}
