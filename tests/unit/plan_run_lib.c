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

static double f64_of(int64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static void run_matmul(const int64_t *a, char **ptr)
{
    sd_dtype tx = (sd_dtype)a[0], ty = (sd_dtype)a[1], tr = (sd_dtype)a[2];
    int64_t m = a[4], n = a[5], k = a[6];
    int at = 2;
    const char *bias = a[9] ? ptr[at++] : NULL, *add = a[10] ? ptr[at++] : NULL;
    char *out = ptr[at];

    for (int64_t b = 0; b < a[3]; b++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                int64_t o = (b * m + i) * n + j;
                double s = 0;

                for (int64_t l = 0; l < k; l++)
                    s += number(tx, ptr[0],
                                b * m * k + (a[7] ? l * m + i : i * k + l)) *
                         number(ty, ptr[1],
                                b * k * n + (a[8] ? j * k + l : l * n + j));
                s *= f64_of(a[12]);
                if (bias)
                    s += number(tr, bias, j);
                if (add)
                    s += number(tr, add, o);
                if (a[11] == 2 && s < 0)
                    s = 0;
                put_number(tr, out, o, s);
            }
}

/* All three directions are one sum over (n, co, ci, out, kernel). */
static void run_conv(const int64_t *a, char **ptr)
{
    sd_dtype t = (sd_dtype)a[0];
    int64_t nb = a[4], g = a[5], ci = a[6], co = a[7];
    const int64_t *in = a + 8, *ker = a + 11, *out = a + 14, *str = a + 17,
                  *dil = a + 20, *low = a + 23, *si = a + 29, *sk = a + 34,
                  *so = a + 39;
    int64_t dir = a[48];
    int at = 2;
    const char *bias = a[44] ? ptr[at++] : NULL;
    const char *add = a[45] ? ptr[at++] : NULL;
    char *to = ptr[at];
    int64_t count = dir == 0   ? nb * co * out[0] * out[1] * out[2]
                    : dir == 1 ? nb * ci * in[0] * in[1] * in[2]
                               : co * (ci / g) * ker[0] * ker[1] * ker[2];
    double *acc = calloc((size_t)count, sizeof *acc);

    for (int64_t b = 0; b < nb; b++)
        for (int64_t f = 0; f < co; f++)
            for (int64_t c = 0; c < ci / g; c++)
                for (int64_t o = 0; o < out[0] * out[1] * out[2]; o++)
                    for (int64_t q = 0; q < ker[0] * ker[1] * ker[2]; q++) {
                        int64_t op[3] = {o / out[2] / out[1],
                                         o / out[2] % out[1], o % out[2]};
                        int64_t kp[3] = {q / ker[2] / ker[1],
                                         q / ker[2] % ker[1], q % ker[2]};
                        int64_t cc = f / (co / g) * (ci / g) + c;
                        int64_t x = b * si[0] + cc * si[1],
                                w = f * sk[0] + c * sk[1],
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
        double s = acc[i] * f64_of(a[47]);

        if (bias) /* over the features of the output */
            s += number(t, bias, i / so[1] % co);
        if (add)
            s += number(t, add, i);
        if (a[46] == 2 && s < 0)
            s = 0;
        put_number(t, to, i, s);
    }
    free(acc);
}

void plan_run_libcall(const thunk *t, char **ptr)
{
    if (t->lib == THUNK_LIB_MATMUL)
        run_matmul(t->attr, ptr);
    else
        run_conv(t->attr, ptr);
}
