/* The custom-call "sundog.attend", which hlo.h describes: reading what its
 * configuration says, and its value. */
#include <math.h>
#include <string.h>

#include "hlo_eval.h"

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

/* Reads what *at says of an array of shape s, and goes on behind it. */
static bool read_array(const char **at, const sd_shape *s, hlo_attend *a,
                       int64_t *stride)
{
    int64_t by = 1;

    if (!sd_shape_is_array(s) ||
        strnlen(*at, (size_t)s->rank) < (size_t)s->rank)
        return false;
    for (int i = s->rank - 1; i >= 0; i--) {
        int axis = axis_of((*at)[i]);

        if (axis < 0 || stride[axis] || s->dim[i] < 1 ||
            (a->extent[axis] && a->extent[axis] != s->dim[i]))
            return false;
        a->extent[axis] = s->dim[i];
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
    return strncmp(at, "->", 2) == 0 && (at += 2) &&
           read_array(&at, in->shape, a, a->stride[in->narg]) && !*at;
}

/* Which of them have which axes. */
static bool has_axes(const hlo_attend *a)
{
    static const int8_t want[4][4] = {/* q  k  d  e */
                                      {1, 0, 1, 0},
                                      {0, 1, 1, 0},
                                      {0, 1, 0, 1},
                                      {1, 0, 0, 1}};
    const int64_t *array[4] = {a->stride[0], a->stride[1], a->stride[2],
                               hlo_attend_result(a)};

    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if ((array[i][HLO_ATTEND_Q + j] != 0) != want[i][j])
                return false;
    for (int i = 0; i < HLO_ATTEND_BATCH; i++)
        if ((a->extent[i] != 0) != (array[3][i] != 0))
            return false;
    for (int i = 3; i < 3 + a->nmore; i++)
        if (a->stride[i][HLO_ATTEND_D] || a->stride[i][HLO_ATTEND_E])
            return false;
    return true;
}

/* f: the sum over d, row and key as s32, an element of each other array. */
static bool fits_score(const hlo_inst *in, const hlo_attend *a)
{
    const hlo_comp *c = a->score;

    if (c->nparam != HLO_ATTEND_FIRST + a->nmore ||
        !sd_is_float(c->root->shape->dtype) || c->root->shape->rank ||
        !sd_is_float(c->param[0]->shape->dtype) ||
        c->param[1]->shape->dtype != SD_S32 ||
        c->param[2]->shape->dtype != SD_S32)
        return false;
    for (int i = 0; i < a->nmore; i++)
        if (c->param[HLO_ATTEND_FIRST + i]->shape->dtype !=
            in->arg[3 + i]->shape->dtype)
            return false;
    return true;
}

bool hlo_attend_read(const hlo_inst *in, hlo_attend *out)
{
    const hlo_custom *u = in->op == HLO_CUSTOM_CALL ? in->u.custom : NULL;

    if (!u || u->lib || strcmp(u->target, HLO_CALL_ATTEND) != 0)
        return false;
    *out = (hlo_attend){.nmore = in->narg - 3};
    if (in->ncomp != 1 || out->nmore < 0 || out->nmore > HLO_ATTEND_MORE ||
        !u->config || !read_text(u->config, in, out))
        return false;
    out->score = in->comp[0];
    if (!has_axes(out) || !fits_score(in, out))
        return false;
    for (int i = 0; i < HLO_ATTEND_AXES; i++)
        out->extent[i] = out->extent[i] ? out->extent[i] : 1;
    return true;
}

static bool fits_depth(int64_t n)
{
    return n >= HLO_ATTEND_LEAST && n <= HLO_ATTEND_MOST &&
           n % HLO_ATTEND_PART == 0;
}

static bool fits_types(const hlo_inst *in)
{
    sd_dtype t = in->arg[0]->shape->dtype, out = in->shape->dtype;

    return (t == SD_BF16 || t == SD_F16) && in->arg[1]->shape->dtype == t &&
           in->arg[2]->shape->dtype == t && (out == t || out == SD_F32);
}

bool hlo_attend_has_kernel(const hlo_inst *in)
{
    hlo_attend a;

    if (!hlo_attend_read(in, &a) || !fits_types(in) ||
        !fits_depth(a.extent[HLO_ATTEND_D]) ||
        !fits_depth(a.extent[HLO_ATTEND_E]) ||
        sd_shape_count(in->shape) > INT32_MAX)
        return false;
    for (int i = 0; i < in->narg; i++)
        if (sd_shape_count(in->arg[i]->shape) > INT32_MAX)
            return false;
    return a.stride[0][HLO_ATTEND_D] == 1 && a.stride[1][HLO_ATTEND_D] == 1 &&
           a.stride[2][HLO_ATTEND_E] == 1 &&
           hlo_attend_result(&a)[HLO_ATTEND_E] == 1;
}

/* ---- value ---- */

typedef struct {
    hlo_ev *e;
    const hlo_attend *a;
    const hlo_value *arg;
    hlo_value *out;
    hlo_region *score;
    int64_t at[HLO_ATTEND_AXES];
    double *s; /* of all keys */
} evaluation;

static int64_t place(const evaluation *v, int array)
{
    int64_t p = 0;

    for (int i = 0; i < HLO_ATTEND_AXES; i++)
        p += v->at[i] * v->a->stride[array][i];
    return p;
}

static double number(const evaluation *v, int array)
{
    return (double)creall(
        hlo_wide_load(v->arg[array].shape->dtype,
                      hlo_at_elem(&v->arg[array], place(v, array))));
}

static sd_status score_of(evaluation *v, double *out)
{
    const hlo_comp *c = v->a->score;
    int32_t row = (int32_t)v->at[HLO_ATTEND_Q],
            key = (int32_t)v->at[HLO_ATTEND_K];
    const void *x[HLO_ATTEND_FIRST + HLO_ATTEND_MORE];
    char sum[16], s[16];
    void *result[1] = {s};
    double dot = 0;
    sd_status st;

    for (int64_t d = 0; d < v->a->extent[HLO_ATTEND_D]; d++) {
        v->at[HLO_ATTEND_D] = d;
        dot += number(v, 0) * number(v, 1);
    }
    v->at[HLO_ATTEND_D] = 0;
    hlo_wide_store(c->param[0]->shape->dtype, dot, sum);
    x[0] = sum;
    x[1] = &row;
    x[2] = &key;
    for (int i = 0; i < v->a->nmore; i++)
        x[HLO_ATTEND_FIRST + i] = hlo_at_elem(&v->arg[3 + i], place(v, 3 + i));
    if ((st = hlo_region_run(v->e, v->score, x, result)))
        return st;
    *out = (double)creall(hlo_wide_load(c->root->shape->dtype, s));
    return NULL;
}

static sd_status eval_row(evaluation *v)
{
    int64_t keys = v->a->extent[HLO_ATTEND_K];
    double most = -INFINITY, sum = 0;
    sd_status st;

    for (int64_t k = 0; k < keys; k++) {
        v->at[HLO_ATTEND_K] = k;
        if ((st = score_of(v, &v->s[k])))
            return st;
        most = fmax(most, v->s[k]);
    }
    for (int64_t k = 0; k < keys; k++)
        sum += v->s[k] = exp(v->s[k] - most);
    for (int64_t e = 0; e < v->a->extent[HLO_ATTEND_E]; e++) {
        double x = 0;

        v->at[HLO_ATTEND_E] = e;
        for (int64_t k = 0; k < keys; k++) {
            v->at[HLO_ATTEND_K] = k;
            x += v->s[k] / sum * number(v, 2);
        }
        v->at[HLO_ATTEND_K] = 0;
        hlo_wide_store(v->out->shape->dtype, x,
                       hlo_at_elem(v->out, place(v, 3 + v->a->nmore)));
    }
    v->at[HLO_ATTEND_E] = 0;
    return NULL;
}

sd_status hlo_eval_attend(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                          hlo_value *out)
{
    hlo_attend a;
    evaluation v = {.e = e, .a = &a, .arg = arg, .out = out};
    sd_status st;

    if (!hlo_attend_read(in, &a))
        return hlo_misfit(in);
    v.score = hlo_region_open(e, a.score);
    v.s = sd_arena_array(e->arena, double, a.extent[HLO_ATTEND_K]);
    do
        if ((st = eval_row(&v)))
            return st;
    while (hlo_step(HLO_ATTEND_Q + 1, a.extent, v.at));
    return NULL;
}
