/* How often a loop turns, of counters of eight bits against counting, of longer
 * ones at their types' ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "hlo_written.h"

typedef struct {
    const char *type, *dir, *op;
    long long start, limit, step;
    bool swapped; /* "limit dir counter" */
} loop;

/* The counter alone, and a value that it changes. */
static int64_t turns_of(const loop *l, const char *bound)
{
    sd_arena *a = sd_arena_create();
    const char *t = l->type;
    char *text = sd_arena_fmt(
        a,
        "HloModule turns\n"
        "cond { p = (%s[], f32[4]) parameter(0)\n"
        "  i = %s[] get-tuple-element(p), index=0\n"
        "  n = %s[] constant(%lld)\n"
        "  ROOT l = pred[] compare(%s), direction=%s }\n"
        "body { p = (%s[], f32[4]) parameter(0)\n"
        "  i = %s[] get-tuple-element(p), index=0\n"
        "  x = f32[4] get-tuple-element(p), index=1\n"
        "  s = %s[] constant(%lld)\n"
        "  j = %s[] %s(%s, s)\n"
        "  ROOT o = (%s[], f32[4]) tuple(j, x) }\n"
        "ENTRY f { x = f32[4] parameter(0)\n"
        "  z = %s[] constant(%lld)\n"
        "  t = (%s[], f32[4]) tuple(z, x)\n"
        "  ROOT w = (%s[], f32[4]) while(t), condition=cond, body=body }\n",
        t, t, t, l->limit, l->swapped ? "n, i" : "i, n", l->dir, t, t, t,
        l->step, t, l->op, bound, t, t, l->start, t, t);
    hlo_module *m = parse_text(a, text);
    int64_t n = hlo_turns(m->entry->root);

    sd_arena_destroy(a);
    return n;
}

/* ---- eight bits ---- */

static bool holds(const char *dir, int a, int b)
{
    return dir[0] == 'L'   ? dir[1] == 'T' ? a < b : a <= b
           : dir[0] == 'G' ? dir[1] == 'T' ? a > b : a >= b
                           : a != b;
}

static int wrapped(const loop *l, long long v)
{
    return l->type[0] == 's' ? (int8_t)v : (uint8_t)v;
}

/* -1: for ever; *wraps: it went over its type's end. */
static int count(const loop *l, bool *wraps)
{
    int i = (int)l->start, n = 0, by = (int)l->step;

    by = l->op[0] == 's' ? -by : by;
    for (*wraps = false; n <= 300; n++) {
        int a = l->swapped ? (int)l->limit : i,
            b = l->swapped ? i : (int)l->limit;

        if (!holds(l->dir, a, b))
            return n;
        *wraps |= i + by != wrapped(l, i + by);
        i = wrapped(l, i + by);
    }
    return -1;
}

static void every_count_is_right(void **state)
{
    static const char *const dirs[] = {"LT", "LE", "GT", "GE", "NE"};
    unsigned seed = 1;
    int nknown = 0, nturns = 0;

    (void)state;
    for (int k = 0; k < 6000; k++) {
        loop l = {.type = k & 1 ? "s8" : "u8",
                  .op = k & 2 ? "add" : "subtract"};
        bool wraps;
        int64_t got;
        int want;

        seed = seed * 1664525 + 1013904223;
        l.dir = dirs[k % 5];
        l.swapped = seed >> 31;
        l.start = wrapped(&l, seed >> 8);
        l.limit = wrapped(&l, seed >> 16);
        l.step = wrapped(&l, seed >> 24 & (k & 4 ? 7 : 255));
        want = count(&l, &wraps);
        got = turns_of(&l, "i");
        if (got >= 0 ? got != want : want >= 0 && !wraps)
            fail_msg("%s from %lld %s %lld, %s %lld%s: %lld, not %d", l.type,
                     l.start, l.dir, l.limit, l.op, l.step,
                     l.swapped ? " (swapped)" : "", (long long)got, want);
        nknown += got >= 0;
        nturns += got > 0;
    }
    printf("%d of 6000 known, %d turn\n", nknown, nturns);
    assert_true(nknown > 2500 && nturns > 500);
}

/* ---- longer ones ---- */

static void ends_of_types_are_seen(void **state)
{
    static const struct {
        loop l;
        int64_t want;
    } c[] = {
        {{"s32", "LT", "add", 0, 100, 1, 0}, 100},
        {{"s32", "LT", "add", 5, 5, 1, 0}, 0},
        {{"s32", "LT", "add", 9, 5, 0, 0}, 0},
        {{"s32", "GE", "subtract", 99, 0, 1, 0}, 100},
        {{"s32", "GT", "add", 10, 0, -3, 0}, 4},
        {{"s32", "LT", "add", 2147483640, 2147483647, 5, 0}, -1},
        {{"s32", "LT", "add", 2147483640, 2147483646, 3, 0}, 2},
        {{"s32", "LE", "add", 0, 2147483647, 1, 0}, -1},
        {{"u32", "LT", "add", 0, 4294967295, 1, 0}, 4294967295},
        {{"u32", "GT", "subtract", 7, 0, 1, 0}, 7},
        {{"u32", "GE", "subtract", 7, 0, 1, 0}, -1},
        {{"u32", "GT", "add", 7, 0, 4294967295, 0}, 7},
        {{"u32", "NE", "add", 7, 0, 4294967295, 0}, 7},
        {{"u32", "NE", "add", 0, 7, 2, 0}, -1},
        {{"s64", "LT", "add", 0, INT64_MAX, 1, 0}, INT64_MAX},
        {{"s64", "LT", "add", 0, INT64_MAX, 2, 0}, -1},
        {{"s64", "LT", "add", -2, INT64_MAX, 1, 0}, -1}, /* 2^63 + 1 */
        {{"s64", "GT", "subtract", 9, -1, 1, 0}, 10},
        {{"s64", "GE", "add", 0, -INT64_MAX, -1, 0}, -1}, /* 2^63 */
        {{"u64", "LT", "add", 0, 10, 3, 0}, 4},
        {{"s32", "EQ", "add", 0, 0, 1, 0}, -1},
    };

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(c); i++) {
        int64_t got = turns_of(&c[i].l, "i");

        if (got != c[i].want)
            fail_msg("case %zu, %s: %lld, not %lld", i, c[i].l.type,
                     (long long)got, (long long)c[i].want);
    }
}

static void what_the_body_changes_otherwise_is_unknown(void **state)
{
    const loop l = {"s32", "LT", "add", 0, 10, 1, 0};

    (void)state;
    assert_int_equal(turns_of(&l, "i"), 10);
    assert_int_equal(turns_of(&l, "s"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_count_is_right),
        cmocka_unit_test(ends_of_types_are_seen),
        cmocka_unit_test(what_the_body_changes_otherwise_is_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
