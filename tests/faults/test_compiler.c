/* A libsundog.so whose compiler is not there, is no library, or is of another
 * build: compiling says so, and the client goes on.
 *   test_compiler libsundog.so libotherbuild.so */
#include "base.h"
#include "pjrt_abi.h"

#include <dlfcn.h>
#include <limits.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/sundog-test-XXXXXX";
static char ours[64], compiler[64];
static char other_build[PATH_MAX];
static const PJRT_Api *api;
static PJRT_Client *client;

#define ARGS(name, type, ...) \
    PJRT_##type##_Args name = {.struct_size = PJRT_##type##_Args_STRUCT_SIZE, \
                               __VA_ARGS__}

static void compile_fails(PJRT_Error_Code want, const char *begin,
                          const char *end)
{
    char code[] = "HloModule m", says[1000];
    PJRT_Program p = {.struct_size = PJRT_Program_STRUCT_SIZE,
                      .code = code,
                      .code_size = sizeof code - 1,
                      .format = "hlo_text",
                      .format_size = 8};
    ARGS(a, Client_Compile, .client = client, .program = &p,
         .compile_options = "");
    PJRT_Error *e = api->PJRT_Client_Compile(&a);
    ARGS(text, Error_Message, .error = e);
    ARGS(number, Error_GetCode, .error = e);
    ARGS(d, Error_Destroy, .error = e);

    assert_non_null(e);
    api->PJRT_Error_Message(&text);
    snprintf(says, sizeof says, "%.*s", (int)text.message_size, text.message);
    if (strncmp(says, begin, strlen(begin)) || !strstr(says, end))
        fail_msg("'%s' is not '%s ... %s'", says, begin, end);
    assert_null(api->PJRT_Error_GetCode(&number));
    assert_int_equal(number.code, want);
    api->PJRT_Error_Destroy(&d);
}

static void cannot_be_opened(const char *why)
{
    static const char remedy[] =
        "; libsundog-compiler.so belongs beside libsundog.so; only a "
        "developers' build needs LLVM 22 (Debian's package libllvm22); "
        "programs that are compiled already still run";
    char begin[400];

    snprintf(begin, sizeof begin, "the compiler cannot be opened: %s: %s%s",
             compiler, why, remedy);
    compile_fails(PJRT_Error_Code_NOT_FOUND, begin, remedy);
}

static void each_lack_is_told(void **state)
{
    char begin[200];

    (void)state;
    cannot_be_opened("cannot open shared object file: No such file or "
                     "directory");
    assert_null(sd_file_write(compiler, "no library", 10));
    cannot_be_opened("file too short");
    assert_int_equal(unlink(compiler), 0);
    assert_int_equal(symlink(other_build, compiler), 0);
    snprintf(begin, sizeof begin,
             "%s is of build 0.0.9-000000000000, libsundog.so of build "
             "0.1.0-",
             compiler);
    compile_fails(PJRT_Error_Code_FAILED_PRECONDITION, begin,
                  ": install both from one build");
    assert_int_equal(unlink(compiler), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_lack_is_told)};
    const PJRT_Api *(*entry)(void);
    ARGS(a, Client_Create, .num_options = 0);
    ARGS(d, Client_Destroy, .client = NULL);
    char whole[PATH_MAX];
    void *lib;
    int bad;

    if (argc != 3 || !realpath(argv[1], whole) ||
        !realpath(argv[2], other_build) || !mkdtemp(folder))
        return 2;
    setenv("SUNDOG_DEVICE", "host", 1);
    snprintf(ours, sizeof ours, "%s/libsundog.so", folder);
    snprintf(compiler, sizeof compiler, "%s/libsundog-compiler.so", folder);
    if (symlink(whole, ours) || !(lib = dlopen(ours, RTLD_NOW | RTLD_LOCAL)))
        return 2;
    *(void **)&entry = dlsym(lib, "GetPjrtApi");
    api = entry();
    assert_null(api->PJRT_Client_Create(&a));
    client = d.client = a.client;
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    assert_null(api->PJRT_Client_Destroy(&d));
    unlink(ours);
    rmdir(folder);
    return bad;
}
