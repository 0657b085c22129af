/* Tests of test_xpu that other files have. */
#ifndef TEST_XPU_H
#define TEST_XPU_H

void test_machine_without_memory(void **state);
void test_what_is_held(void **state);
void test_slabs_push_nothing_out(void **state);
void test_strided_transfers(void **state);
void test_empty_transfers(void **state);
void test_large_transfers(void **state);
void test_large_copies(void **state);
void test_views(void **state);

#endif
