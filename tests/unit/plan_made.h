/* Plans of programs, which must succeed: of text, and of the files of
 * tests/plan. */
#ifndef PLAN_MADE_H
#define PLAN_MADE_H

#include "hlo_written.h"
#include "passes.h"
#include "plan.h"
#include "want_error.h"

static const char *plan_folder = "tests/plan";
static const char *set_off; /* a setting that is 0; NULL */

static inline device_desc described(const char *device)
{
    device_desc dev;

    assert_true(device_desc_of_name(device, &dev));
    return dev;
}

static inline plan *make_of_module(sd_arena *a, hlo_module *m,
                                   const device_desc *dev)
{
    sd_options opt = {0};
    plan *p;

    if (set_off)
        assert_true(sd_options_set(a, &opt, set_off, strlen(set_off), "0", 1));
    want_success(hlo_optimize(m, dev, &opt, NULL, NULL));
    want_success(plan_make(a, m, dev, &opt, &p));
    want_success(hlo_verify(m));
    want_success(plan_verify(p));
    return p;
}

static inline plan *make_of_text(sd_arena *a, const char *text,
                                 const device_desc *dev)
{
    return make_of_module(a, parse_text(a, text), dev);
}

/* The plan borrows the device, which is in the arena. */
static inline plan *plan_on(sd_arena *a, const char *text, const char *device)
{
    device_desc *dev = sd_arena_new(a, device_desc);

    *dev = described(device);
    return make_of_text(a, text, dev);
}

static inline hlo_module *read_program(sd_arena *a, const char *name)
{
    sd_buf text = {0};
    hlo_module *m;

    want_success(
        sd_file_read(sd_arena_fmt(a, "%s/%s.hlo", plan_folder, name), &text));
    m = parse(a, text.at, text.len);
    sd_buf_finish(&text);
    return m;
}

static inline plan *make(sd_arena *a, const char *name, const device_desc *dev)
{
    return make_of_module(a, read_program(a, name), dev);
}

/* The program of [m, k] by [k, n], and of one operation on the product. */
static inline const char *product_text(sd_arena *a, const char *type,
                                       const char *sum, int m, int k, int n,
                                       const char *then)
{
    return sd_arena_fmt(
        a,
        "HloModule m\nENTRY e {\n  x = %s[%d,%d]{1,0} parameter(0)\n"
        "  y = %s[%d,%d]{1,0} parameter(1)\n"
        "  d = %s[%d,%d]{1,0} dot(x, y), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={0}\n  ROOT r = %s[%d,%d]{1,0} %s(d)\n}\n",
        type, m, k, type, k, n, sum, m, n, sum, m, n, then);
}

#endif
