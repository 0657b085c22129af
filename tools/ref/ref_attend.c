/* Attention and its gradient, one score after the other. */
#include "ref_priv.h"

#include <math.h>

enum { OF_Q, OF_K, OF_V, OF_O, OF_M, OF_R, OF_C }; /* operands */

typedef struct {
    hlo_ev *e;
    const hlo_attend *a;
    const hlo_value *arg;
    hlo_value *out;
    ref_region *score, *slope;
    int64_t at[HLO_ATTEND_AXES];
    double *s;      /* of all keys */
    double *sum[2]; /* of a gradient's results */
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

static void write(const evaluation *v, int result, double x)
{
    hlo_value *out = hlo_result_at(v->out, result);

    hlo_wide_store(
        out->shape->dtype, x,
        hlo_at_elem(out, place(v, hlo_attend_result(v->a) + result)));
}

/* The sum over an axis of x times y. */
static double product_of(evaluation *v, int axis, int x, int y)
{
    double sum = 0;

    for (int64_t i = 0; i < v->a->extent[axis]; i++) {
        v->at[axis] = i;
        sum += number(v, x) * number(v, y);
    }
    v->at[axis] = 0;
    return sum;
}

/* f; or h, with ds. */
static sd_status function_of(evaluation *v, double product, const double *ds,
                             double *out)
{
    const hlo_comp *c = ds ? v->a->slope : v->a->score;
    int n = HLO_ATTEND_FIRST + (ds != NULL);
    int32_t row = (int32_t)v->at[HLO_ATTEND_Q],
            key = (int32_t)v->at[HLO_ATTEND_K];
    const void *x[HLO_ATTEND_FIRST + 1 + HLO_ATTEND_MORE];
    char sum[16], slope[16], s[16];
    void *result[1] = {s};
    sd_status st;

    hlo_wide_store(c->param[0]->shape->dtype, product, sum);
    x[0] = sum;
    x[1] = &row;
    x[2] = &key;
    if (ds) {
        hlo_wide_store(c->param[HLO_ATTEND_FIRST]->shape->dtype, *ds, slope);
        x[HLO_ATTEND_FIRST] = slope;
    }
    for (int i = v->a->nown; i < hlo_attend_result(v->a); i++)
        x[n++] = hlo_at_elem(&v->arg[i], place(v, i));
    if ((st = ref_region_run(v->e, ds ? v->slope : v->score, x, result)))
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
        if ((st = function_of(v, product_of(v, HLO_ATTEND_D, OF_Q, OF_K), NULL,
                              &v->s[k])))
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
            x += v->s[k] / sum * number(v, OF_V);
        }
        v->at[HLO_ATTEND_K] = 0;
        write(v, 0, x);
    }
    v->at[HLO_ATTEND_E] = 0;
    if (v->a->nresult > 1) {
        write(v, 1, most);
        write(v, 2, 1 / sum);
    }
    return NULL;
}

/* The sums of result number i grow by x times the lines of an array. */
static void grow(evaluation *v, int i, int axis, double x, int array)
{
    for (int64_t j = 0; j < v->a->extent[axis]; j++) {
        v->at[axis] = j;
        v->sum[i][place(v, hlo_attend_result(v->a) + i)] +=
            x * number(v, array);
    }
    v->at[axis] = 0;
}

/* What a score adds to the sums. */
static sd_status eval_slope(evaluation *v)
{
    double product = product_of(v, HLO_ATTEND_D, OF_Q, OF_K);
    double s, p, ds, dx;
    sd_status st;

    if ((st = function_of(v, product, NULL, &s)))
        return st;
    p = exp(s - number(v, OF_M)) * number(v, OF_R);
    ds = p * (product_of(v, HLO_ATTEND_E, OF_O, OF_V) - number(v, OF_C));
    if ((st = function_of(v, product, &ds, &dx)))
        return st;
    if (v->a->kind == HLO_ATTEND_OF_ROWS) {
        grow(v, 0, HLO_ATTEND_D, dx, OF_K);
        return NULL;
    }
    grow(v, 0, HLO_ATTEND_D, dx, OF_Q);
    grow(v, 1, HLO_ATTEND_E, p, OF_O);
    return NULL;
}

static sd_status eval_gradient(evaluation *v)
{
    sd_status st;

    v->slope = ref_region_open(v->e, v->a->slope);
    for (int i = 0; i < v->a->nresult; i++)
        v->sum[i] =
            sd_arena_array(v->e->arena, double,
                           sd_shape_count(hlo_result_at(v->out, i)->shape));
    do
        if ((st = eval_slope(v)))
            return st;
    while (hlo_step(HLO_ATTEND_K + 1, v->a->extent, v->at));
    for (int i = 0; i < v->a->nresult; i++) {
        hlo_value *out = hlo_result_at(v->out, i);
        int64_t n = sd_shape_count(out->shape);

        for (int64_t j = 0; j < n; j++)
            hlo_wide_store(out->shape->dtype, v->sum[i][j],
                           hlo_at_elem(out, j));
    }
    return NULL;
}

sd_status ref_attend(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                     hlo_value *out)
{
    hlo_attend a;
    evaluation v = {.e = e, .a = &a, .arg = arg, .out = out};
    sd_status st;

    if (!hlo_attend_read(in, &a))
        return ref_misfit(in);
    v.score = ref_region_open(e, a.score);
    if (a.slope)
        return eval_gradient(&v);
    v.s = sd_arena_array(e->arena, double, a.extent[HLO_ATTEND_K]);
    do
        if ((st = eval_row(&v)))
            return st;
    while (hlo_step(HLO_ATTEND_Q + 1, a.extent, v.at));
    return NULL;
}
