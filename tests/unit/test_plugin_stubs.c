/* A function of the interface that no file implements yet refuses by its name.
 * That is so here: the plugin is an archive to this test, out of which only
 * those files come that others ask for, and none asks for pjrt_async.c. */
#include "pjrt_abi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

const PJRT_Api *GetPjrtApi(void);

static void says(PJRT_Error *e, const char *text)
{
    const PJRT_Error_FunctionTable *t;
    const char *is;
    size_t n;

    assert_non_null(e);
    t = *(void **)e;
    t->message(e, &is, &n);
    assert_string_equal(is, text);
    assert_int_equal(t->get_code(e), PJRT_Error_Code_UNIMPLEMENTED);
    t->destroy(e);
}

#define REFUSED(name, field) \
    says(GetPjrtApi()->PJRT_##name(&(PJRT_##name##_Args){ \
             .struct_size = PJRT_##name##_Args_STRUCT_SIZE, \
             .field = (void *)1}), \
         "PJRT_" #name " is not implemented")

static void what_nobody_implements_refuses(void **state)
{
    (void)state;
    REFUSED(AsyncHostToDeviceTransferManager_Device, transfer_manager);
    REFUSED(AsyncHostToDeviceTransferManager_BufferCount, transfer_manager);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_implements_refuses)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
