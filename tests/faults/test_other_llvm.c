/* Another LLVM is in the process, visible to all, before the compiler is
 * opened: it is not called.
 *   test_other_llvm libotherllvm.so libsundog.so */
#include "base.h"
#include "pjrt_abi.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const PJRT_Api *api;

#define DO(v, name, ...) \
    PJRT_##name##_Args v = {.struct_size = PJRT_##name##_Args_STRUCT_SIZE, \
                            __VA_ARGS__}; \
    assert_null(api->PJRT_##name(&v))

static void the_compiler_has_an_llvm_of_its_own(void **state)
{
    char code[] = "HloModule m\nENTRY main { p = f32[4]{0} parameter(0)\n"
                  "ROOT r = f32[4]{0} exponential(p) }\n";
    PJRT_Program p = {.struct_size = PJRT_Program_STRUCT_SIZE,
                      .code = code,
                      .code_size = sizeof code - 1,
                      .format = "hlo_text",
                      .format_size = 8};

    (void)state;
    DO(c, Client_Create, .num_options = 0);
    DO(a, Client_Compile, .client = c.client, .program = &p);
    DO(x, LoadedExecutable_Destroy, .executable = a.executable);
    DO(d, Client_Destroy, .client = c.client);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_compiler_has_an_llvm_of_its_own)};
    const PJRT_Api *(*entry)(void);
    void *lib;

    if (argc < 3 || !dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) ||
        !dlsym(RTLD_DEFAULT, "LLVMContextCreate") ||
        !(lib = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL))) {
        fprintf(stderr, "test_other_llvm LIBOTHERLLVM LIBSUNDOG: %s\n",
                argc < 3 ? "two are wanted" : dlerror());
        return 2;
    }
    *(void **)&entry = dlsym(lib, "GetPjrtApi");
    api = entry();
    setenv("SUNDOG_DEVICE", "host", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
