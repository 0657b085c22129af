/* The custom-calls of attention, which hlo.h describes: reading what their
 * configurations say, and what has a kernel. */
#include <string.h>

#include "hlo.h"

/* ---- reading ---- */

static const char own_letters[] = "qkde";

char hlo_attend_letter(int axis)
{
    return axis < HLO_ATTEND_BATCH ? (char)('A' + axis)
                                   : own_letters[axis - HLO_ATTEND_BATCH];
}

static int axis_of(char letter)
{
    const char *own = letter ? strchr(own_letters, letter) : NULL;

    if (own)
        return HLO_ATTEND_BATCH + (int)(own - own_letters);
    return letter >= 'A' && letter < 'A' + HLO_ATTEND_BATCH ? letter - 'A' : -1;
}

/* v's last dimension may have more keys than k has, which nobody sees. */
static bool is_extent(const hlo_attend *a, int axis, int64_t n, bool more)
{
    return !a->extent[axis] || a->extent[axis] == n ||
           (more && axis == HLO_ATTEND_K && a->extent[axis] < n);
}

/* Reads what *at says of an array of shape s, and goes on behind it. */
static bool read_array(const char **at, const sd_shape *s, hlo_attend *a,
                       int64_t *stride)
{
    bool v = a->kind == HLO_ATTEND_VALUE && stride == a->stride[2];
    int64_t by = 1;

    if (!sd_shape_is_array(s) ||
        strnlen(*at, (size_t)s->rank) < (size_t)s->rank)
        return false;
    for (int i = s->rank - 1; i >= 0; i--) {
        int axis = axis_of((*at)[i]);

        if (axis < 0 || stride[axis] || s->dim[i] < 1 ||
            !is_extent(a, axis, s->dim[i], v && i == s->rank - 1))
            return false;
        a->extent[axis] = a->extent[axis] ? a->extent[axis] : s->dim[i];
        stride[axis] = by;
        by *= s->dim[i];
    }
    *at += s->rank;
    return true;
}

static bool read_text(const char *at, const hlo_inst *in, hlo_attend *a)
{
    for (int i = 0; i < in->narg; i++) {
        if (i && *at++ != ',')
            return false;
        if (!read_array(&at, in->arg[i]->shape, a, a->stride[i]))
            return false;
    }
    if (strncmp(at, "->", 2) != 0)
        return false;
    at += 2;
    for (int i = 0; i < a->nresult; i++) {
        if (i && *at++ != ',')
            return false;
        if (!read_array(&at, sd_shape_result(in->shape, i), a,
                        a->stride[in->narg + i]))
            return false;
    }
    return !*at;
}

/* Which arrays have which axes: the operands', then the results'. */
typedef struct {
    int nown, nresult;
    const char *axes[HLO_ATTEND_OWN + HLO_ATTEND_RESULTS];
} form;

static const form forms[HLO_ATTEND_KINDS] = {
    [HLO_ATTEND_VALUE] = {3, 1, {"qd", "kd", "ke", "qe", "q", "q"}},
    [HLO_ATTEND_OF_ROWS] = {7,
                            1,
                            {"qd", "kd", "ke", "qe", "q", "q", "q", "qd"}},
    [HLO_ATTEND_OF_KEYS] = {
        7, 2, {"qd", "kd", "ke", "qe", "q", "q", "q", "kd", "ke"}}};

static bool has_axes(const hlo_attend *a)
{
    const form *f = &forms[a->kind];

    for (int i = 0; i < f->nown + a->nresult; i++) {
        const int64_t *s = a->stride[i + (i < f->nown ? 0 : a->nmore)];

        for (int j = 0; own_letters[j]; j++)
            if ((s[HLO_ATTEND_BATCH + j] != 0) !=
                (strchr(f->axes[i], own_letters[j]) != NULL))
                return false;
    }
    for (int i = 0; i < HLO_ATTEND_BATCH; i++)
        if ((a->extent[i] != 0) != (a->stride[hlo_attend_result(a)][i] != 0))
            return false;
    for (int i = f->nown; i < f->nown + a->nmore; i++)
        if (a->stride[i][HLO_ATTEND_D] || a->stride[i][HLO_ATTEND_E])
            return false;
    return true;
}

/* f or h: the sum over d, row and key as s32, and h's ds; an element of each
 * other array. */
static bool fits_function(const hlo_inst *in, const hlo_attend *a,
                          const hlo_comp *c, int nfirst)
{
    if (c->nparam != nfirst + a->nmore || !sd_is_float(c->root->shape->dtype) ||
        c->root->shape->rank || !sd_is_float(c->param[0]->shape->dtype) ||
        c->param[1]->shape->dtype != SD_S32 ||
        c->param[2]->shape->dtype != SD_S32 ||
        (nfirst > HLO_ATTEND_FIRST &&
         !sd_is_float(c->param[HLO_ATTEND_FIRST]->shape->dtype)))
        return false;
    for (int i = 0; i < a->nmore; i++)
        if (c->param[nfirst + i]->shape->dtype !=
            in->arg[a->nown + i]->shape->dtype)
            return false;
    return true;
}

/* m, r and c, as operands or results, are f32. */
static bool fits_rows(const hlo_inst *in, const hlo_attend *a)
{
    bool back = a->kind != HLO_ATTEND_VALUE;

    for (int i = back ? 4 : 1; i < (back ? a->nown : a->nresult); i++)
        if ((back ? in->arg[i]->shape : sd_shape_result(in->shape, i))->dtype !=
            SD_F32)
            return false;
    return true;
}

static bool find_kind(const hlo_inst *in, hlo_attend *a)
{
    const hlo_custom *u = in->op == HLO_CUSTOM_CALL ? in->u.custom : NULL;
    int n = sd_shape_nresult(in->shape);

    if (!u || u->lib || !u->config)
        return false;
    if (strcmp(u->target, HLO_CALL_ATTEND) == 0)
        a->kind = HLO_ATTEND_VALUE;
    else if (strcmp(u->target, HLO_CALL_ATTEND_GRADIENT) == 0)
        a->kind = n == 1 ? HLO_ATTEND_OF_ROWS : HLO_ATTEND_OF_KEYS;
    else
        return false;
    a->nown = forms[a->kind].nown;
    a->nmore = in->narg - a->nown;
    a->nresult = n;
    return (n == forms[a->kind].nresult ||
            (a->kind == HLO_ATTEND_VALUE && n == HLO_ATTEND_RESULTS)) &&
           in->ncomp == (a->kind == HLO_ATTEND_VALUE ? 1 : 2) &&
           a->nmore >= 0 && a->nmore <= HLO_ATTEND_MORE;
}

bool hlo_attend_is_named(const hlo_inst *in)
{
    return in->op == HLO_CUSTOM_CALL &&
           (strcmp(in->u.custom->target, HLO_CALL_ATTEND) == 0 ||
            strcmp(in->u.custom->target, HLO_CALL_ATTEND_GRADIENT) == 0);
}

bool hlo_attend_read(const hlo_inst *in, hlo_attend *out)
{
    *out = (hlo_attend){0};
    if (!find_kind(in, out) || !read_text(in->u.custom->config, in, out))
        return false;
    out->score = in->comp[0];
    out->slope = in->ncomp > 1 ? in->comp[1] : NULL;
    if (!has_axes(out) || !fits_rows(in, out) ||
        !fits_function(in, out, out->score, HLO_ATTEND_FIRST) ||
        (out->slope &&
         !fits_function(in, out, out->slope, HLO_ATTEND_FIRST + 1)))
        return false;
    for (int i = 0; i < HLO_ATTEND_AXES; i++)
        out->extent[i] = out->extent[i] ? out->extent[i] : 1;
    return true;
}

static bool fits_depth(const hlo_attend *a, int64_t n)
{
    return n >= HLO_ATTEND_LEAST &&
           n <= (a->slope ? HLO_ATTEND_MOST_GRADIENT : HLO_ATTEND_MOST) &&
           n % HLO_ATTEND_PART == 0;
}

/* dx goes to the engine as it is, or an f32 in two parts of bf16. */
static bool fits_types(const hlo_inst *in, const hlo_attend *a)
{
    sd_dtype t = in->arg[0]->shape->dtype;

    for (int i = 0; i < a->nresult; i++) {
        sd_dtype out = sd_shape_result(in->shape, i)->dtype;

        if (out != t && out != SD_F32)
            return false;
    }
    if (a->slope) {
        sd_dtype dx = a->slope->root->shape->dtype;

        if (in->arg[3]->shape->dtype != t ||
            (dx != t && (dx != SD_F32 || t != SD_BF16)))
            return false;
    }
    return (t == SD_BF16 || t == SD_F16) && in->arg[1]->shape->dtype == t &&
           in->arg[2]->shape->dtype == t;
}

bool hlo_attend_is_turned(const hlo_attend *a)
{
    const int64_t *v = a->stride[2];

    return a->kind == HLO_ATTEND_VALUE && v[HLO_ATTEND_K] == 1 &&
           v[HLO_ATTEND_E] >= a->extent[HLO_ATTEND_K];
}

/* Lines of d and of e lie along memory, or v is turned. */
static bool fits_lines(const hlo_attend *a)
{
    bool turned = hlo_attend_is_turned(a);

    for (int i = 0; i < hlo_attend_result(a) + a->nresult; i++)
        for (int axis = HLO_ATTEND_D; axis <= HLO_ATTEND_E; axis++)
            if (a->stride[i][axis] > 1 && (i != 2 || !turned))
                return false;
    return true;
}

bool hlo_attend_is_gathered(const hlo_attend *a)
{
    return hlo_attend_is_turned(a) && a->nresult == 1 &&
           a->stride[2][HLO_ATTEND_E] % HLO_ATTEND_KEYS_GATHERED == 0 &&
           a->extent[HLO_ATTEND_E] <= HLO_ATTEND_MOST_READ;
}

bool hlo_attend_fits_blocks(int64_t d, int64_t e)
{
    return d >= HLO_ATTEND_LEAST_READ && e >= HLO_ATTEND_LEAST_READ &&
           e <= HLO_ATTEND_MOST_READ;
}

bool hlo_attend_fits_matrix(int64_t rows, int64_t row)
{
    return rows < HLO_ATTEND_MOST_ROWS &&
           row < HLO_ATTEND_MOST_ROWS / (int64_t)sizeof(uint16_t);
}

static bool is_matrix(const hlo_attend *a, int array, int axis)
{
    const int64_t *s = a->stride[array];
    int64_t row = s[axis], rows = a->extent[axis];

    for (int i = 0; i < HLO_ATTEND_BATCH; i++) {
        if (s[i] > row && s[i] % row)
            return false;
        rows *= s[i] >= row ? a->extent[i] : 1;
    }
    return hlo_attend_fits_matrix(rows, row);
}

bool hlo_attend_is_matrices(const hlo_attend *a)
{
    return hlo_attend_fits_blocks(a->extent[HLO_ATTEND_D],
                                  a->extent[HLO_ATTEND_E]) &&
           is_matrix(a, 0, HLO_ATTEND_Q) && is_matrix(a, 1, HLO_ATTEND_K) &&
           is_matrix(a, 2, HLO_ATTEND_K) &&
           (a->kind == HLO_ATTEND_VALUE || is_matrix(a, 3, HLO_ATTEND_Q));
}

bool hlo_attend_has_kernel(const hlo_inst *in)
{
    hlo_attend a;

    if (!hlo_attend_read(in, &a) || !fits_types(in, &a) || !fits_lines(&a) ||
        !fits_depth(&a, a.extent[HLO_ATTEND_D]) ||
        !fits_depth(&a, a.extent[HLO_ATTEND_E]))
        return false;
    for (int i = 0; i < in->narg; i++)
        if (sd_shape_count(in->arg[i]->shape) > INT32_MAX)
            return false;
    for (int i = 0; i < a.nresult; i++)
        if (sd_shape_count(sd_shape_result(in->shape, i)) > INT32_MAX)
            return false;
    return true;
}
