/* Where all hashes are equal, programs have the plans that they have where
 * hashes differ: what is found by hash is compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "one_hash.h"
#include "plan_made.h"

/* The plan as text, and the program as bytes. */
typedef struct {
    sd_buf text, saved;
} printed;

static printed print_plan(const char *name, const device_desc *dev, bool one)
{
    sd_arena *a = sd_arena_create();
    printed is = {0};
    plan *p;

    one_hash = one;
    p = make(a, name, dev);
    one_hash = false;
    plan_print(&is.text, p);
    want_success(thunk_save(p->program, &is.saved));
    plan_destroy(p);
    sd_arena_destroy(a);
    return is;
}

static bool same(const sd_buf *x, const sd_buf *y)
{
    return x->len == y->len && memcmp(x->at, y->at, x->len) == 0;
}

static void finish(printed *p)
{
    sd_buf_finish(&p->text);
    sd_buf_finish(&p->saved);
}

static void plans_are_those_of_many_hashes(void **state)
{
    static const char *const name[] = {
#define PROGRAM(name, kernel, libcall, gpu_kernel, copy, temp) #name,
#include "test_plan.def"
#undef PROGRAM
    };
    static const char *const device[] = {"host:v4", "cl:pvc"};

    (void)state;
    for (size_t i = 0; i < 2 * SD_COUNTOF(name); i++) {
        device_desc dev = described(device[i % 2]);
        printed many = print_plan(name[i / 2], &dev, false);
        printed one = print_plan(name[i / 2], &dev, true);

        if (!same(&many.text, &one.text))
            fail_msg("%s on %s has another plan:\n%.*s", name[i / 2],
                     device[i % 2], (int)one.text.len, one.text.at);
        if (!same(&many.saved, &one.saved))
            fail_msg("%s on %s: the plan is the same, the program another",
                     name[i / 2], device[i % 2]);
        finish(&many);
        finish(&one);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_those_of_many_hashes)};

    if (argc > 1)
        plan_folder = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
