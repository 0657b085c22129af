/* Functions of complex numbers by their parts, in quads. */
#include "hlo_complex.h"

#include <math.h>

/* glibc has them for any compiler, its headers declare them for gcc alone. */
#if defined(__clang__)
hlo_quad sinf128(hlo_quad), cosf128(hlo_quad), sinhf128(hlo_quad),
    coshf128(hlo_quad), expf128(hlo_quad), expm1f128(hlo_quad),
    logf128(hlo_quad), log1pf128(hlo_quad), sqrtf128(hlo_quad),
    fabsf128(hlo_quad), atan2f128(hlo_quad, hlo_quad),
    hypotf128(hlo_quad, hlo_quad), copysignf128(hlo_quad, hlo_quad),
    fmaf128(hlo_quad, hlo_quad, hlo_quad);
#endif

/* Beyond it e^x is past every double in either direction, squared too, and
 * still a quad: a zero times it stays zero. */
static const hlo_quad far = 5000;

static hlo_quad load_part(sd_dtype t, const void *p)
{
    return (hlo_quad)sd_scalar_to_f64(t, p);
}

hlo_cplx hlo_cplx_load(sd_dtype t, const void *p)
{
    sd_dtype part = sd_dtype_part(t);
    const char *second = (const char *)p + sd_dtype_bytes(part);

    return (hlo_cplx){load_part(part, p), load_part(part, second)};
}

void hlo_quad_store(sd_dtype part, hlo_quad v, void *p)
{
    double d = (double)v;
    float f = (float)v;

    if (part == SD_F64)
        memcpy(p, &d, sizeof d);
    else
        memcpy(p, &f, sizeof f);
}

void hlo_cplx_store(sd_dtype t, hlo_cplx v, void *p)
{
    sd_dtype part = sd_dtype_part(t);

    hlo_quad_store(part, v.re, p);
    hlo_quad_store(part, v.im, (char *)p + sd_dtype_bytes(part));
}

static bool is_finite(hlo_cplx a)
{
    return a.re - a.re == 0 && a.im - a.im == 0;
}

static bool has_nan(hlo_cplx a)
{
    return a.re != a.re || a.im != a.im;
}

static hlo_wide wide(hlo_cplx a)
{
    return CMPLXL(a.re, a.im);
}

static hlo_cplx of_wide(hlo_wide v)
{
    return (hlo_cplx){(hlo_quad)creall(v), (hlo_quad)cimagl(v)};
}

static hlo_quad clamp(hlo_quad x)
{
    return x > far ? far : x < -far ? -far : x;
}

/* ---- parts ---- */

hlo_cplx c_abs(hlo_cplx a)
{
    return (hlo_cplx){hypotf128(a.re, a.im), 0};
}

hlo_cplx c_real(hlo_cplx a)
{
    return (hlo_cplx){a.re, 0};
}

hlo_cplx c_imag(hlo_cplx a)
{
    return (hlo_cplx){a.im, 0};
}

hlo_cplx c_negate(hlo_cplx a)
{
    return (hlo_cplx){-a.re, -a.im};
}

hlo_cplx c_sign(hlo_cplx a)
{
    hlo_quad size = hypotf128(a.re, a.im);

    if (size == 0 || size != size)
        return a;
    return (hlo_cplx){a.re / size, a.im / size};
}

/* ---- arithmetic ---- */

hlo_cplx c_add(hlo_cplx a, hlo_cplx b)
{
    return (hlo_cplx){a.re + b.re, a.im + b.im};
}

hlo_cplx c_subtract(hlo_cplx a, hlo_cplx b)
{
    return (hlo_cplx){a.re - b.re, a.im - b.im};
}

/* the plain formula: no repair of inf * NaN as C's own product makes */
hlo_cplx c_multiply(hlo_cplx a, hlo_cplx b)
{
    return (hlo_cplx){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

hlo_cplx c_divide(hlo_cplx a, hlo_cplx b)
{
    hlo_quad size = b.re * b.re + b.im * b.im;

    if (!is_finite(a) || !is_finite(b) || size == 0)
        return of_wide(wide(a) / wide(b));
    return (hlo_cplx){(a.re * b.re + a.im * b.im) / size,
                      (a.im * b.re - a.re * b.im) / size};
}

static bool is_less(hlo_cplx a, hlo_cplx b)
{
    return a.re != b.re ? a.re < b.re : a.im < b.im;
}

hlo_cplx c_maximum(hlo_cplx a, hlo_cplx b)
{
    if (has_nan(a) || has_nan(b))
        return has_nan(a) ? a : b;
    return is_less(a, b) ? b : a;
}

hlo_cplx c_minimum(hlo_cplx a, hlo_cplx b)
{
    if (has_nan(a) || has_nan(b))
        return has_nan(a) ? a : b;
    return is_less(a, b) ? a : b;
}

/* ---- roots and powers ---- */

hlo_cplx c_sqrt(hlo_cplx a)
{
    hlo_quad size = hypotf128(a.re, a.im);
    hlo_quad t = sqrtf128((size + fabsf128(a.re)) / 2);

    if (!is_finite(a))
        return of_wide(csqrtl(wide(a)));
    if (t == 0)
        return (hlo_cplx){0, a.im};
    if (a.re < 0)
        return (hlo_cplx){fabsf128(a.im) / (2 * t), copysignf128(t, a.im)};
    return (hlo_cplx){t, a.im / (2 * t)};
}

hlo_cplx c_rsqrt(hlo_cplx a)
{
    return c_divide((hlo_cplx){1, 0}, c_sqrt(a));
}

/* the principal one */
hlo_cplx c_cbrt(hlo_cplx a)
{
    hlo_cplx l = c_log(a);

    if (a.re == 0 && a.im == 0)
        return a;
    return c_exp((hlo_cplx){l.re / 3, l.im / 3});
}

hlo_cplx c_power(hlo_cplx a, hlo_cplx b)
{
    if (a.re == 0 && a.im == 0) {
        if (b.re == 0 && b.im == 0)
            return (hlo_cplx){1, 0};
        if (b.re > 0)
            return (hlo_cplx){0, 0};
    }
    if (!is_finite(a) || !is_finite(b) || (a.re == 0 && a.im == 0))
        return of_wide(cpowl(wide(a), wide(b)));
    return c_exp(c_multiply(b, c_log(a)));
}

/* ---- exponentials and logarithms ---- */

hlo_cplx c_exp(hlo_cplx a)
{
    hlo_quad e = expf128(clamp(a.re));

    if (!is_finite(a))
        return of_wide(cexpl(wide(a)));
    return (hlo_cplx){e * cosf128(a.im), e * sinf128(a.im)};
}

/* e^x cos y - 1 = (e^x - 1) cos y - (1 - cos y).  C does not say what an
 * infinite x gives where y has no cosine; NumPy and XLA say NaN. */
hlo_cplx c_expm1(hlo_cplx a)
{
    hlo_quad x = clamp(a.re), s = sinf128(a.im / 2), none = a.im - a.im;

    if (!is_finite(a) && none == 0)
        return of_wide(cexpl(wide(a)) - 1);
    if (!is_finite(a))
        return (hlo_cplx){none, none};
    return (hlo_cplx){expm1f128(x) * cosf128(a.im) - 2 * s * s,
                      expf128(x) * sinf128(a.im)};
}

/* Near |a| = 1 the logarithm of |a|^2 = 1 + (x - 1)(x + 1) + y^2, where fma
 * keeps what the two terms do not cancel. */
hlo_cplx c_log(hlo_cplx a)
{
    hlo_quad x = fabsf128(a.re), y = fabsf128(a.im), big, small, size;
    hlo_quad angle = atan2f128(a.im, a.re);

    if (!is_finite(a) || (x == 0 && y == 0))
        return of_wide(clogl(wide(a)));
    big = x > y ? x : y;
    small = x > y ? y : x;
    size = big > 0.5Q && big < 2
               ? log1pf128(fmaf128(big - 1, big + 1, small * small))
               : logf128(big * big + small * small);
    return (hlo_cplx){size / 2, angle};
}

/* |1 + a|^2 = 1 + 2x + x^2 + y^2, in the order that rounds once where the
 * rest cancels: 2 + x is exact where x is not small, y^2 + 2x where it is. */
hlo_cplx c_log1p(hlo_cplx a)
{
    hlo_quad x = a.re, y = a.im, more;

    if (!is_finite(a))
        return of_wide(clogl(1 + wide(a)));
    more = fabsf128(x) > 0.5Q ? fmaf128(x, 2 + x, y * y)
                              : fmaf128(x, x, fmaf128(y, y, 2 * x));
    if (!(fabsf128(more) < 0.5Q))
        return c_log((hlo_cplx){1 + x, y});
    return (hlo_cplx){log1pf128(more) / 2, atan2f128(y, 1 + x)};
}

hlo_cplx c_logistic(hlo_cplx a)
{
    hlo_quad e = expf128(-clamp(a.re));

    if (!is_finite(a))
        return of_wide(1 / (1 + cexpl(wide(c_negate(a)))));
    return c_divide((hlo_cplx){1, 0},
                    (hlo_cplx){1 + e * cosf128(a.im), -e * sinf128(a.im)});
}

/* ---- trigonometry ---- */

hlo_cplx c_sin(hlo_cplx a)
{
    hlo_quad y = clamp(a.im);

    if (!is_finite(a))
        return of_wide(csinl(wide(a)));
    return (hlo_cplx){sinf128(a.re) * coshf128(y), cosf128(a.re) * sinhf128(y)};
}

hlo_cplx c_cos(hlo_cplx a)
{
    hlo_quad y = clamp(a.im);

    if (!is_finite(a))
        return of_wide(ccosl(wide(a)));
    return (hlo_cplx){cosf128(a.re) * coshf128(y),
                      -sinf128(a.re) * sinhf128(y)};
}

/* (sin x cos x + i sinh y cosh y) / (cos^2 x + sinh^2 y) */
hlo_cplx c_tan(hlo_cplx a)
{
    hlo_quad s = sinf128(a.re), c = cosf128(a.re), y = clamp(a.im);
    hlo_quad sh = sinhf128(y), size = c * c + sh * sh;

    if (!is_finite(a))
        return of_wide(ctanl(wide(a)));
    return (hlo_cplx){s * c / size, sh * coshf128(y) / size};
}

/* -i tan(i a) */
hlo_cplx c_tanh(hlo_cplx a)
{
    hlo_cplx t;

    if (!is_finite(a))
        return of_wide(ctanhl(wide(a)));
    t = c_tan((hlo_cplx){-a.im, a.re});
    return (hlo_cplx){t.im, -t.re};
}

/* log(1 + ia) - log(1 - ia) = 2i atan a, small where a is */
static hlo_cplx atan_of(hlo_cplx a)
{
    hlo_cplx l = c_log1p((hlo_cplx){-a.im, a.re});
    hlo_cplx m = c_log1p((hlo_cplx){a.im, -a.re});

    return (hlo_cplx){(l.im - m.im) / 2, (m.re - l.re) / 2};
}

/* -i log((b + ia) / sqrt(a^2 + b^2)).  With q = a / b that is atan q where
 * b sqrt(1 + q^2) is the root, and half a turn from it where it is not. */
hlo_cplx c_atan2(hlo_cplx a, hlo_cplx b)
{
    const hlo_quad pi = 3.14159265358979323846264338327950288Q;
    hlo_cplx q = c_divide(a, b), r = atan_of(q), root;

    if (a.im == 0 && b.im == 0)
        return (hlo_cplx){atan2f128(a.re, b.re), 0};
    if (!is_finite(q))
        return of_wide(-I *
                       clogl((wide(b) + I * wide(a)) /
                             csqrtl(wide(a) * wide(a) + wide(b) * wide(b))));
    root = c_multiply(b, c_sqrt(c_add((hlo_cplx){1, 0}, c_multiply(q, q))));
    if (root.re < 0)
        r.re += r.re <= 0 ? pi : -pi;
    return r;
}
