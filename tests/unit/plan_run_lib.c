/* What the libraries' calls of a plan compute, in doubles. */
#include "plan_run.h"

#include <stdlib.h>

static double number(sd_dtype t, const void *p, int64_t i)
{
    const char *q = (const char *)p + (size_t)i * sd_dtype_bytes(t);

    return sd_dtype_kind(t) == SD_K_FLOAT ? sd_scalar_to_f64(t, q)
                                          : (double)sd_scalar_to_s64(t, q);
}

static void put_number(sd_dtype t, void *p, int64_t i, double v)
{
    char *q = (char *)p + (size_t)i * sd_dtype_bytes(t);

    if (sd_dtype_kind(t) == SD_K_FLOAT)
        sd_scalar_of_f64(t, v, q);
    else
        sd_scalar_of_s64(t, (int64_t)v, q);
}

static double activate(int64_t activation, double v)
{
    return activation == LIBCALL_RELU && v < 0 ? 0 : v;
}

static void run_matmul(const libcall_matmul *c, char **ptr)
{
    int64_t m = c->m, n = c->n, k = c->k;
    int at = 2;
    const char *bias = c->bias ? ptr[at++] : NULL;
    const char *add = c->add ? ptr[at++] : NULL;
    char *out = ptr[at];

    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                int64_t o = (b * m + i) * n + j;
                double s = 0;

                for (int64_t l = 0; l < k; l++)
                    s += number(c->lhs, ptr[0],
                                b * m * k + (c->lhs_transposed ? l * m + i
                                                               : i * k + l)) *
                         number(c->rhs, ptr[1],
                                b * k * n + (c->rhs_transposed ? j * k + l
                                                               : l * n + j));
                s *= c->alpha;
                if (bias)
                    s += number(c->result, bias, j);
                if (add)
                    s += c->beta * number(c->result, add, o);
                put_number(c->result, out, o, activate(c->activation, s));
            }
}

/* All three directions are one sum over (n, co, ci, out, kernel). */
static void run_conv(const libcall_conv *c, char **ptr)
{
    sd_dtype t = c->in_type;
    int64_t nb = c->batch, g = c->groups, ci = c->ci, co = c->co;
    const int64_t *in = c->in, *ker = c->kernel, *out = c->out,
                  *str = c->stride, *dil = c->dilation, *low = c->low,
                  *si = c->in_step, *sk = c->kernel_step, *so = c->out_step;
    int64_t dir = c->direction;
    int at = 2;
    const char *bias = c->bias ? ptr[at++] : NULL;
    const char *add = c->add ? ptr[at++] : NULL;
    char *to = ptr[at];
    int64_t count = dir == 0   ? nb * co * out[0] * out[1] * out[2]
                    : dir == 1 ? nb * ci * in[0] * in[1] * in[2]
                               : co * (ci / g) * ker[0] * ker[1] * ker[2];
    double *acc = calloc((size_t)count, sizeof *acc);

    for (int64_t b = 0; b < nb; b++)
        for (int64_t f = 0; f < co; f++)
            for (int64_t e = 0; e < ci / g; e++)
                for (int64_t o = 0; o < out[0] * out[1] * out[2]; o++)
                    for (int64_t q = 0; q < ker[0] * ker[1] * ker[2]; q++) {
                        int64_t op[3] = {o / out[2] / out[1],
                                         o / out[2] % out[1], o % out[2]};
                        int64_t kp[3] = {q / ker[2] / ker[1],
                                         q / ker[2] % ker[1], q % ker[2]};
                        int64_t cc = f / (co / g) * (ci / g) + e;
                        int64_t x = b * si[0] + cc * si[1],
                                w = f * sk[0] + e * sk[1],
                                y = b * so[0] + f * so[1];
                        bool ok = true;

                        for (int d = 0; d < 3; d++) {
                            int64_t p =
                                op[d] * str[d] + kp[d] * dil[d] - low[d];

                            ok &= p >= 0 && p < in[d];
                            x += p * si[2 + d];
                            w += kp[d] * sk[2 + d];
                            y += op[d] * so[2 + d];
                        }
                        if (ok && dir == 0)
                            acc[y] +=
                                number(t, ptr[0], x) * number(t, ptr[1], w);
                        else if (ok && dir == 1)
                            acc[x] +=
                                number(t, ptr[0], y) * number(t, ptr[1], w);
                        else if (ok)
                            acc[w] +=
                                number(t, ptr[0], x) * number(t, ptr[1], y);
                    }
    for (int64_t i = 0; i < count; i++) {
        double s = acc[i];

        if (c->bias == LIBCALL_BIAS_VECTOR) /* over the output's features */
            s += number(t, bias, i / so[1] % co);
        if (add)
            s += number(t, add, i);
        put_number(t, to, i, activate(c->activation, s));
    }
    free(acc);
}

void plan_run_libcall(const thunk *t, char **ptr)
{
    if (t->call->op == LIBCALL_MATMUL)
        run_matmul(&t->call->matmul, ptr);
    else
        run_conv(&t->call->conv, ptr);
}
