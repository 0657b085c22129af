/* The device library in 8 lanes, built by clang, behind arrays: what the host
 * inlines must have the bits of the scalar build that folds. */
#define SD_LANES 8
#include "dl_convert.c"
#include "dl_exp_f32.c"
#include "dl_exp_f64.c"
#include "dl_log_f32.c"
#include "dl_log_f64.c"
#include "dl_rem.c"
#include "dl_trig_f32.c"
#include "dl_trig_f64.c"
#include "devlib.h"

#define LOAD(t, p) \
    ({ \
        t v_; \
        __builtin_memcpy(&v_, p, sizeof v_); \
        v_; \
    })
#define KEEP(v, p) \
    ({ \
        __auto_type v_ = (v); \
        __builtin_memcpy(p, &v_, sizeof v_); \
    })
#define FN1(f) \
    void lanes_##f##_f32(const float *x, float *r) \
    { \
        KEEP(dl_##f##_f32_x8(LOAD(f32v, x)), r); \
    } \
    void lanes_##f##_f64(const double *x, double *r) \
    { \
        KEEP(dl_##f##_f64_x8(LOAD(f64v, x)), r); \
    }
#define FN2(f)
#include "hlo_functions.def"
#define FN1(f)
#define FN2(f) \
    void lanes_##f##_f32(const float *x, const float *y, float *r) \
    { \
        KEEP(dl_##f##_f32_x8(LOAD(f32v, x), LOAD(f32v, y)), r); \
    } \
    void lanes_##f##_f64(const double *x, const double *y, double *r) \
    { \
        KEEP(dl_##f##_f64_x8(LOAD(f64v, x), LOAD(f64v, y)), r); \
    }
#include "hlo_functions.def"
void lanes_exp_down_f32(const float *x, float *r)
{
    KEEP(dl_exp_down_f32_x8(LOAD(f32v, x)), r);
}
#define NARROW_uint8_t  u8v
#define NARROW_uint16_t u16v
#define X(t, u) \
    void lanes_##t(const float *x, u *r, float *back) \
    { \
        NARROW_##u c = dl_f32_to_##t##_x8(LOAD(f32v, x)); \
        KEEP(c, r); \
        KEEP(dl_##t##_to_f32_x8(c), back); \
    }
DEVLIB_NARROW(X)
