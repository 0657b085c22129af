/* What programs are given, and when what they give is right. */
#include "random.h"

#include <math.h>
#include <stdlib.h>

/* ---- arguments ---- */

static uint64_t next_random(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    return *s ^= *s << 17;
}

static void fill_wild(sd_dtype t, uint64_t r, void *at)
{
    static const double special[] = {0.0,   -0.0,  1,     -1,   0.5,
                                     1e-3,  3.25,  -7.75, 1e30, -1e30,
                                     65504, 1e-40, -300};

    switch (r % 16) {
    case 0:
        sd_scalar_of_f64(t, NAN, at);
        break;
    case 1:
        sd_scalar_of_f64(t, r & 16 ? INFINITY : -INFINITY, at);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        sd_scalar_of_f64(t, special[(r >> 8) % SD_COUNTOF(special)], at);
        break;
    default:
        sd_scalar_of_f64(t, ((double)((r >> 8) % 200001) - 1e5) / 1024, at);
    }
}

void random_fill(hlo_value *v, const char *name, int index)
{
    uint64_t seed = 0x243f6a8885a308d3u + (uint64_t)index * 0x1000003;
    sd_dtype t = sd_dtype_part(v->shape->dtype);
    int64_t n = sd_shape_count(v->shape) * (t == v->shape->dtype ? 1 : 2);
    int64_t most = (int64_t)random_type_of(t).small;
    sd_kind kind = sd_dtype_kind(t);

    for (int64_t i = 0; i < n; i++) {
        uint8_t *at = (uint8_t *)v->data + (size_t)i * sd_dtype_bytes(t);
        uint64_t r = next_random(&seed) >> 8;
        int64_t x = (int64_t)(r % (uint64_t)(2 * most + 1)) - most;

        if (kind == SD_K_UINT || kind == SD_K_PRED)
            x = x < 0 ? -x : x;
        if (!strncmp(name, "wild", 4))
            fill_wild(t, r, at);
        else if (!strncmp(name, "wide", 4))
            sd_scalar_of_s64(t, (int64_t)(r * 0x9e3779b97f4a7c15u), at);
        else if (t == SD_F8E8M0FNU)
            sd_scalar_of_f64(t, x > 0 ? 2 : 1, at);
        else if (kind == SD_K_FLOAT)
            sd_scalar_of_f64(t, (double)x, at);
        else
            sd_scalar_of_s64(t, t == SD_S2 && x > 1 ? 1 : x, at);
    }
}

/* ---- results ---- */

static double part_at(const hlo_value *v, int64_t i)
{
    sd_dtype t = sd_dtype_part(v->shape->dtype);

    return sd_scalar_to_f64(t,
                            (uint8_t *)v->data + (size_t)i * sd_dtype_bytes(t));
}

double random_largest(const hlo_value *v)
{
    sd_dtype t = v->shape->dtype;
    int64_t n = sd_shape_count(v->shape) * (sd_dtype_part(t) == t ? 1 : 2);
    double most = 0;

    for (int64_t i = 0; i < n; i++)
        if (isfinite(part_at(v, i)))
            most = fmax(most, fabs(part_at(v, i)));
    return most;
}

bool random_differs(const char *name, int out, const hlo_value *got,
                    const hlo_value *want, double error, sd_buf *why)
{
    sd_dtype t = sd_dtype_part(want->shape->dtype);
    int64_t n = sd_shape_count(want->shape) * (t == want->shape->dtype ? 1 : 2);
    size_t size = sd_dtype_bytes(t);

    for (int64_t i = 0; i < n; i++) {
        double x, y;

        if (!memcmp((char *)got->data + (size_t)i * size,
                    (char *)want->data + (size_t)i * size, size))
            continue;
        x = part_at(got, i);
        y = part_at(want, i);
        if (sd_dtype_kind(t) == SD_K_FLOAT &&
            (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= error))
            continue;
        sd_buf_fmt(why,
                   "%s: result %d, %s, element %" PRId64
                   ": %.17g, not %.17g (at most %.3g away)",
                   name, out, sd_dtype_name(want->shape->dtype), i, x, y,
                   error);
        return true;
    }
    return false;
}

double *random_errors(sd_arena *a, const char *text, size_t len)
{
    static const char head[] = "// error:";
    double *e = sd_arena_array(a, double, RANDOM_RESULTS);
    const char *s = sd_arena_str(a, text, len);

    if (!(s = strstr(s, head)))
        return e;
    s += sizeof head - 1;
    for (int i = 0; i < RANDOM_RESULTS && *s == ' '; i++) {
        char *end;

        e[i] = strtod(s, &end);
        s = end;
    }
    return e;
}
