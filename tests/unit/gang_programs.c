/* Programs of several participants, how they are compiled and judged. */
#include "gang_programs.h"

#include "hlo.h"
#include "passes.h"
#include "plan.h"
#include "target.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "want_error.h"

static int64_t x(int p, int i)
{
    return 1000 * p + i;
}

/* ---- what is wanted ---- */

static int64_t sum4(int me, int out, int i)
{
    (void)me;
    (void)out;
    return 6000 + 4 * i;
}

static int64_t sum_and_twice(int me, int out, int i)
{
    return sum4(me, out, i) * (out + 1);
}

static int64_t sum_of_pairs(int me, int out, int i)
{
    (void)out;
    return x(me, i) + x(me ^ 2, i);
}

static int64_t sum_of_uneven(int me, int out, int i)
{
    (void)out;
    return me < 3 ? x(0, i) + x(1, i) + x(2, i) : x(3, i);
}

static int64_t max_and_product(int me, int out, int i)
{
    (void)me;
    return out ? (2 + i) * (1000 + 2 + i) : x(1, i);
}

static int64_t gathered_rows(int me, int out, int i)
{
    (void)me;
    (void)out;
    return x(i / 6, i % 6);
}

/* s32[2,3] each, along dimension 1 */
static int64_t gathered_columns(int me, int out, int i)
{
    int row = i / 12, column = i % 12;

    (void)me;
    (void)out;
    return x(column / 3, row * 3 + column % 3);
}

/* s32[2,8] each: 2 columns for each */
static int64_t scattered(int me, int out, int i)
{
    (void)out;
    return 6000 + 4 * (i / 2 * 8 + me * 2 + i % 2);
}

static int64_t turned(int me, int out, int i)
{
    (void)out;
    return x(i % 4, i / 4 * 4 + me);
}

static int64_t shifted(int me, int out, int i)
{
    (void)out;
    return me == 0 ? 0 : x(me - 1, i);
}

static int64_t from_second(int me, int out, int i)
{
    (void)out;
    return x(me < 2 ? 1 : 3, i);
}

static int64_t numbers(int me, int out, int i)
{
    return out ? x(me, i) + me : me;
}

static int64_t after_turns(int me, int out, int i)
{
    (void)me;
    (void)out;
    return (int64_t)(int32_t)((uint32_t)(6000 + 4 * i) << 18);
}

static int64_t large_sum(int me, int out, int i)
{
    (void)me;
    (void)out;
    return 28000 + 8 * (int64_t)i;
}

const gang_program gang_programs[] = {
    {"all-reduce", 4, 5, sum4,
     HEAD(4) ADD "ENTRY e { p = s32[5] parameter(0) ROOT r = s32[5] "
                 "all-reduce(p), " G "{}, to_apply=add }"},
    {"all-reduce in groups", 4, 5, sum_of_pairs,
     HEAD(4) ADD "ENTRY e { p = s32[5] parameter(0) ROOT r = s32[5] "
                 "all-reduce(p), " G "{{0,2},{1,3}}, to_apply=add }"},
    {"all-reduce in unequal groups", 4, 5, sum_of_uneven,
     HEAD(4) ADD "ENTRY e { p = s32[5] parameter(0) ROOT r = s32[5] "
                 "all-reduce(p), " G "{{0,1,2},{3}}, "
                 "to_apply=add }"},
    {"all-reduce of two", 2, 3, max_and_product,
     HEAD(2) "f { a = s32[] parameter(0) b = s32[] parameter(1) "
             "ROOT c = s32[] maximum(a, b) }\n"
             "g { a = s32[] parameter(0) b = s32[] parameter(1) "
             "c = s32[] multiply(a, b) ROOT d = s32[] maximum(c, c) }\n"
             "ENTRY e { p = s32[3] parameter(0) t = s32[] constant(2) "
             "q = s32[3] broadcast(t), dimensions={} s = s32[3] add(p, q) "
             "m = s32[3] all-reduce(p), " G "{{0,1}}, to_apply=f "
             "n = s32[3] all-reduce(s), " G "{{0,1}}, to_apply=g "
             "ROOT r = (s32[3], s32[3]) tuple(m, n) }"},
    {"variadic all-reduce", 4, 5, sum_and_twice,
     HEAD(4) ADD "ENTRY e { p = s32[5] parameter(0) q = s32[5] add(p, p) "
                 "ROOT r = (s32[5], s32[5]) all-reduce(p, q), "
                 "" G "{}, to_apply=add }"},
    {"all-reduce in shares", 8, 100003, large_sum,
     HEAD(8) ADD "ENTRY e { p = s32[100003] parameter(0) ROOT r = s32[100003] "
                 "all-reduce(p), " G "{}, to_apply=add }"},
    {"all-gather", 4, 6, gathered_rows,
     HEAD(4) "ENTRY e { p = s32[6] parameter(0) ROOT r = s32[24] "
             "all-gather(p), " G "{{0,1,2,3}}, dimensions={0} }"},
    {"all-gather along columns", 4, 6, gathered_columns,
     HEAD(4) "ENTRY e { p = s32[6] parameter(0) q = s32[2,3] reshape(p) "
             "g = s32[2,12] all-gather(q), " G "{{0,1,2,3}}, "
             "dimensions={1} ROOT r = s32[24] reshape(g) }"},
    {"reduce-scatter", 4, 16, scattered,
     HEAD(4) ADD "ENTRY e { p = s32[16] parameter(0) q = s32[2,8] reshape(p) "
                 "g = s32[2,2] reduce-scatter(q), "
                 "" G "{{0,1,2,3}}, dimensions={1}, to_apply=add "
                 "ROOT r = s32[4] reshape(g) }"},
    {"all-to-all", 4, 8, turned,
     HEAD(4) "ENTRY e { p = s32[8] parameter(0) q = s32[2,4] reshape(p) "
             "g = s32[2,4] all-to-all(q), " G "{{0,1,2,3}}, "
             "dimensions={1} ROOT r = s32[8] reshape(g) }"},
    {"collective-permute", 4, 5, shifted,
     HEAD(4) "ENTRY e { p = s32[5] parameter(0) ROOT r = s32[5] "
             "collective-permute(p), " PAIRS "{{0,1},{1,2},{2,3}} "
             "}"},
    {"collective-broadcast", 4, 5, from_second,
     HEAD(4) "ENTRY e { p = s32[5] parameter(0) ROOT r = s32[5] "
             "collective-broadcast(p), " G "{{1,0},{3,2}} }"},
    {"partition-id", 4, 5, numbers,
     HEAD(4) "ENTRY e { p = s32[5] parameter(0) i = u32[] partition-id() "
             "j = s32[] convert(i) k = s32[5] broadcast(j), dimensions={} "
             "s = s32[5] add(p, k) ROOT r = (u32[], s32[5]) tuple(i, s) }"},
    {"all-reduce in a loop", 4, 5, after_turns,
     HEAD(4) ADD
     "cond { t = (s32[], s32[5]) parameter(0) i = s32[] "
     "get-tuple-element(t), index=0 n = s32[] constant(10) "
     "ROOT c = pred[] compare(i, n), direction=LT }\n"
     "body { t = (s32[], s32[5]) parameter(0) i = s32[] "
     "get-tuple-element(t), index=0 x = s32[5] get-tuple-element(t), index=1 "
     "one = s32[] constant(1) j = s32[] add(i, one) y = s32[5] "
     "all-reduce(x), " G "{}, to_apply=add "
     "ROOT r = (s32[], s32[5]) tuple(j, y) }\n"
     "ENTRY e { p = s32[5] parameter(0) z = s32[] constant(0) "
     "t = (s32[], s32[5]) tuple(z, p) w = (s32[], s32[5]) while(t), "
     "condition=cond, body=body ROOT r = s32[5] get-tuple-element(w), "
     "index=1 }"},
    {"nobody meets", 4, 5, numbers,
     HEAD(4) "ENTRY e { p = s32[5] parameter(0) i = u32[] partition-id() "
             "j = s32[] convert(i) k = s32[5] broadcast(j), dimensions={} "
             "s = s32[5] add(p, k) ROOT r = (u32[], s32[5]) tuple(i, s) }"},
};

const int gang_program_count = SD_COUNTOF(gang_programs);

/* ---- how they are compiled and judged ---- */

thunk_program *gang_compile(xpu_device *device, const sd_options *opt,
                            const char *text)
{
    const device_desc *dev = xpu_device_desc(device);
    sd_arena *a = sd_arena_create();
    thunk_program *t;
    hlo_module *m;
    plan *pl;

    want_success(hlo_parse(a, text, strlen(text), &m));
    want_success(hlo_verify(m));
    want_success(hlo_optimize(m, dev, opt, NULL, NULL));
    want_success(plan_make(a, m, dev, opt, &pl));
    want_success(target_build(pl, opt, NULL, NULL, NULL, NULL));
    t = thunk_program_retain(pl->program);
    plan_destroy(pl);
    sd_arena_destroy(a);
    return t;
}

xpu_buffer *gang_argument(xpu_device *device, int p, int k)
{
    int32_t *data = malloc((size_t)k * sizeof *data);
    int64_t dim = k;
    xpu_buffer *b;

    assert_non_null(data);
    for (int i = 0; i < k; i++)
        data[i] = (int32_t)x(p, i);
    want_success(xpu_buffer_from_host(device, XPU_MEM_DEVICE, SD_S32, 1, &dim,
                                      data, NULL, true, &b, NULL));
    free(data);
    return b;
}

int gang_count_wrong(const gang_program *p, xpu_buffer *result, int me, int out)
{
    size_t n = xpu_buffer_bytes(result) / sizeof(int32_t);
    int32_t *got = malloc(xpu_buffer_bytes(result));
    xpu_event *read;
    int wrong = 0;

    assert_non_null(got);
    want_success(xpu_buffer_to_host(result, 0, got, n * sizeof *got, &read));
    want_success(xpu_event_wait(read));
    xpu_event_release(read);
    for (size_t i = 0; i < n; i++)
        if (got[i] != p->want(me, out, (int)i) && !wrong++)
            print_message("%s: participant %d, result %d, element %zu is %d, "
                          "not %" PRId64 "\n",
                          p->name, me, out, i, got[i],
                          p->want(me, out, (int)i));
    free(got);
    return wrong;
}
