/* Compile options from nowhere: refused, or a small program is optimised and
 * planned as they ask. */
#include "frontend.h"
#include "passes.h"
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char program[] =
    "HloModule m\n"
    "add { x = f32[] parameter(0) y = f32[] parameter(1)\n"
    "  ROOT z = f32[] add(x, y) }\n"
    "ENTRY e { p = f32[4,8] parameter(0) zero = f32[] constant(0)\n"
    "  q = f32[8,4] transpose(p), dimensions={1,0}\n"
    "  d = f32[4,4] dot(p, q), lhs_contracting_dims={1}, "
    "rhs_contracting_dims={0}\n"
    "  ROOT r = f32[4] reduce(d, zero), dimensions={1}, to_apply=add }\n";

static void must(const char *what, sd_status st)
{
    if (!st)
        return;
    fprintf(stderr, "%s: %s\n", what, st->message);
    abort();
}

static void compile(sd_arena *a, const sd_options *o)
{
    const device_desc *dev = device_desc_at(0);
    hlo_module *m;
    plan *p;

    must("reader", hlo_parse(a, program, sizeof program - 1, &m));
    must("passes", hlo_optimize(m, dev, o, NULL, NULL));
    must("plan", plan_make(a, m, dev, o, &p));
    must("plan's checks", plan_verify(p));
    plan_destroy(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sd_arena *a = sd_arena_create();
    frontend_options fo = {0};
    sd_status st = frontend_read_options(a, (sd_bytes){data, size}, &fo);

    if (!st)
        compile(a, &fo.options);
    sd_status_free(st);
    sd_arena_destroy(a);
    return 0;
}
