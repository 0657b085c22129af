/* Programs as HLO text onto a device, for the files of test_target_run. */
#ifndef TEST_TARGET_RUN_H
#define TEST_TARGET_RUN_H

#include "hlo.h"
#include "xpu.h"

typedef struct {
    const char *name;
    double tolerance; /* relative to the largest value; 0: exact */
    const char *text;
} program;

typedef struct {
    xpu_client *client;
    xpu_device *device;
    sd_shelf *shelf; /* as in a client: machines are used again */
} world;

uint64_t run_random(uint64_t *s);
void run_fill(hlo_value *v, uint64_t seed);
double run_part_at(const hlo_value *v, int64_t i); /* as a number */
hlo_module *run_parse(sd_arena *a, const program *p);
/* Does the program give that value on the device? */
bool run_gives(sd_arena *a, const program *p, world *w, const hlo_value *arg,
               int narg, const hlo_value *want);

/* ---- test_target_products.c ---- */

void test_products_are_chains(void **state);
void test_products_of_integers_wrap(void **state);
void test_products_of_whole_numbers_are_exact(void **state);

#endif
