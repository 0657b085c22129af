/* LLVM fails, and the process that it works in: each ends in one error.
 * Calls are wrapped by the linker (meson.build): they do as `world` says. */
#include "passes.h"
#include "target.h"

#include <errno.h>
#include <llvm-c/Error.h>
#include <llvm-c/TargetMachine.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cmocka.h>

#include "devlib.h"
#include "want_error.h"

static struct {
    bool no_socket, no_process, no_machine, no_passes, no_devlib;
    const char *child; /* a shell's command instead of the child's work */
    int seconds;       /* that it may take; 0: as many as the source says */
} world;

/* ---- the calls ---- */

int __real_socketpair(int domain, int type, int protocol, int fd[2]);
int __wrap_socketpair(int domain, int type, int protocol, int fd[2]);
int __wrap_socketpair(int domain, int type, int protocol, int fd[2])
{
    if (!world.no_socket)
        return __real_socketpair(domain, type, protocol, fd);
    errno = EMFILE;
    return -1;
}

int __real_setsockopt(int fd, int level, int name, const void *v, socklen_t n);
int __wrap_setsockopt(int fd, int level, int name, const void *v, socklen_t n);
int __wrap_setsockopt(int fd, int level, int name, const void *v, socklen_t n)
{
    struct timeval t = {.tv_sec = world.seconds};

    return __real_setsockopt(fd, level, name, world.seconds ? &t : v, n);
}

typedef posix_spawn_file_actions_t spawn_files;
int __real_posix_spawn(pid_t *pid, const char *path, const spawn_files *files,
                       const posix_spawnattr_t *attr, char *const argv[],
                       char *const env[]);
int __wrap_posix_spawn(pid_t *pid, const char *path, const spawn_files *files,
                       const posix_spawnattr_t *attr, char *const argv[],
                       char *const env[]);
int __wrap_posix_spawn(pid_t *pid, const char *path, const spawn_files *files,
                       const posix_spawnattr_t *attr, char *const argv[],
                       char *const env[])
{
    char *shell[] = {(char *)"sh", (char *)"-c", (char *)world.child, NULL};

    if (world.no_process)
        return EAGAIN;
    if (world.child)
        return __real_posix_spawn(pid, "/bin/sh", files, attr, shell, env);
    return __real_posix_spawn(pid, path, files, attr, argv, env);
}

LLVMTargetMachineRef
__real_LLVMCreateTargetMachineWithOptions(LLVMTargetRef t, const char *triple,
                                          LLVMTargetMachineOptionsRef o);
LLVMTargetMachineRef
__wrap_LLVMCreateTargetMachineWithOptions(LLVMTargetRef t, const char *triple,
                                          LLVMTargetMachineOptionsRef o);
LLVMTargetMachineRef
__wrap_LLVMCreateTargetMachineWithOptions(LLVMTargetRef t, const char *triple,
                                          LLVMTargetMachineOptionsRef o)
{
    return world.no_machine
               ? NULL
               : __real_LLVMCreateTargetMachineWithOptions(t, triple, o);
}

LLVMErrorRef __real_LLVMRunPasses(LLVMModuleRef m, const char *passes,
                                  LLVMTargetMachineRef tm, void *options);
LLVMErrorRef __wrap_LLVMRunPasses(LLVMModuleRef m, const char *passes,
                                  LLVMTargetMachineRef tm, void *options);
LLVMErrorRef __wrap_LLVMRunPasses(LLVMModuleRef m, const char *passes,
                                  LLVMTargetMachineRef tm, void *options)
{
    return world.no_passes ? LLVMCreateStringError("no such pass")
                           : __real_LLVMRunPasses(m, passes, tm, options);
}

const devlib_function *__real_devlib_find(devlib_target t, const char *name);
const devlib_function *__wrap_devlib_find(devlib_target t, const char *name);
const devlib_function *__wrap_devlib_find(devlib_target t, const char *name)
{
    return world.no_devlib ? NULL : __real_devlib_find(t, name);
}

/* ---- from IR ---- */

static const char good[] =
    "define void @f(ptr %p) {\n  store i32 1, ptr %p\n  ret void\n}\n";
static const char spirv[] =
    "define spir_kernel void @f(ptr addrspace(1) %p) {\n"
    "  store i32 1, ptr addrspace(1) %p\n  ret void\n}\n";

static const char ptx[] = "define ptx_kernel void @f(ptr addrspace(1) %p) {\n"
                          "  store i32 1, ptr addrspace(1) %p\n  ret void\n}\n";

static sd_status compile(const char *device, const char *ir)
{
    device_desc dev;
    sd_buf out = {0};
    sd_status st;

    assert_true(device_desc_of_name(device, &dev));
    st = target_compile_ir(&dev, ir, strlen(ir), &out);
    assert_true(st ? out.len == 0 : out.len > 0);
    sd_buf_finish(&out);
    return st;
}

static int reset(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    return 0;
}

static void good_ir_compiles(void **state)
{
    (void)state;
    assert_null(compile("host:v3", good));
    assert_null(compile("cl:pvc", spirv));
    assert_null(compile("cuda:sm_90", ptx));
}

static void bad_ir_is_refused(void **state)
{
    (void)state;
    want_refusal(compile("host:v3", "nonsense"), SD_INVALID, "LLVM IR: ");
    want_refusal(compile("host:v3",
                         "define i32 @f() {\nentry:\n"
                         "  %x = phi i32 [ 0, %entry ]\n  ret i32 %x\n}\n"),
                 SD_INTERNAL, "generated code is wrong: ");
    want_refusal(
        compile("host:v3",
                "define double @f() \"target-features\"=\"-sse,-sse2\" {\n"
                "  ret double 1.0\n}\n"),
        SD_INTERNAL, "LLVM's code generation: ");
    want_refusal(compile("host:v3", "declare double @sin(double)\n"
                                    "define double @f(double %x) {\n"
                                    "  %y = call double @sin(double %x)\n"
                                    "  ret double %y\n}\n"),
                 SD_INTERNAL, "generated code imports sin");
    want_refusal(compile("cuda:sm_90", "declare void @g()\n"
                                       "define ptx_kernel void @f() {\n"
                                       "  call void @g()\n  ret void\n}\n"),
                 SD_INTERNAL, "generated code imports .extern .func g");
    want_refusal(compile("cuda:sm_90", "module asm \"x\\00y\"\n"), SD_INTERNAL,
                 "of generated PTX is 0");
}

static void llvm_without_a_target_or_passes_is_an_error(void **state)
{
    (void)state;
    world.no_machine = true;
    want_refusal(compile("host:v3", good), SD_INTERNAL,
                 "LLVM has no target x86_64-unknown-linux-gnu");
    world.no_machine = false;
    world.no_passes = true;
    want_refusal(compile("host:v3", good), SD_INTERNAL,
                 "LLVM's passes: no such");
}

/* ---- the child ---- */

static void a_child_that_cannot_start_is_an_error(void **state)
{
    (void)state;
    world.no_socket = true;
    want_refusal(compile("cl:pvc", spirv), SD_EXHAUSTED, "Too many open files");
    world.no_socket = false;
    world.no_process = true;
    want_refusal(compile("cl:pvc", spirv), SD_EXHAUSTED,
                 "Resource temporarily unavailable");
}

static void a_child_that_dies_is_an_error(void **state)
{
    (void)state;
    world.child = "exit 3";
    want_refusal(compile("cl:pvc", spirv), SD_INTERNAL, "early (status 3)");
    world.child = "kill -9 $$";
    want_refusal(compile("cl:pvc", spirv), SD_INTERNAL, "early (signal 9)");
    world.child = "exit 3";
    signal(SIGCHLD, SIG_IGN);
    want_refusal(compile("cl:pvc", spirv), SD_INTERNAL, "ended early");
    signal(SIGCHLD, SIG_DFL);
    world.child = NULL;
    assert_null(compile("cl:pvc", spirv));
}

static void a_child_that_hangs_is_ended(void **state)
{
    uint64_t start = sd_now_ns();

    (void)state;
    world.child = "exec sleep 60";
    world.seconds = 1;
    want_refusal(compile("cl:pvc", spirv), SD_DEADLINE, "took more than");
    assert_true(sd_now_ns() - start < UINT64_C(30000000000));
}

/* Atomic sums of floats need an extension of SPIR-V, which we do not ask for.
 */
static void what_spirv_cannot_say_is_the_child_s_error(void **state)
{
    (void)state;
    want_refusal(compile("cl:pvc",
                         "define spir_kernel void @f(ptr addrspace(1) %p) {\n"
                         "  %x = atomicrmw fadd ptr addrspace(1) %p, "
                         "float 1.0 monotonic\n"
                         "  ret void\n}\n"),
                 SD_INTERNAL, "LLVM's code generation: ");
}

/* ---- from plans ---- */

static plan *plan_of(sd_arena *a, const char *device, const char *text)
{
    device_desc *dev = sd_arena_new(a, device_desc);
    sd_options opt = {0};
    hlo_module *m;
    plan *p;

    assert_true(device_desc_of_name(device, dev));
    assert_null(hlo_parse(a, text, strlen(text), &m));
    assert_null(hlo_optimize(m, dev, &opt, NULL, NULL));
    assert_null(plan_make(a, m, dev, &opt, &p));
    return p;
}

static void refuse_sort(const char *device, const char *order, const char *why)
{
    sd_arena *a = sd_arena_create();
    plan *p = plan_of(
        a, device,
        sd_arena_fmt(
            a,
            "HloModule m\nless { a = f32[] parameter(0) b = f32[] "
            "parameter(1) ROOT c = pred[] compare(a, b), direction=LT%s }\n"
            "ENTRY e { x = f32[100] parameter(0) ROOT r = f32[100] sort(x), "
            "dimensions={0}, to_apply=less }",
            order));

    assert_null(target_check(p));
    p->kernel[0]->sort->scratch = 8;
    want_refusal(target_check(p), SD_INTERNAL, why);
    plan_destroy(p);
    sd_arena_destroy(a);
}

static void a_sort_without_work_space_is_refused(void **state)
{
    (void)state;
    refuse_sort("host:v3", "",
                "a sort needs 448 bytes of work space, the plan gives 8");
    refuse_sort("host:v3", ", type=TOTALORDER",
                "a sort needs 50816 bytes of work space, the plan gives 8");
    refuse_sort("cl:pvc", ", type=TOTALORDER",
                "a sort needs 8704 bytes of work space, the plan gives 8");
}

/* The numbers behind a call's pointers are part of its function's type, which
 * bitcode has; machine code has none. */
static void a_call_with_a_number_too_many_is_refused(void **state)
{
    sd_arena *a = sd_arena_create();
    plan *p = plan_of(a, "cl:pvc",
                      "HloModule m\nENTRY e { x = f32[6,4,4] parameter(0) "
                      "ROOT r = f32[6,4,4] cholesky(x), lower=true }");
    int calls = 0;

    (void)state;
    assert_null(target_check(p));
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernel[i]->call) {
            p->kernel[i]->call->nint++;
            calls++;
        }
    assert_int_equal(calls, 1);
    want_refusal(target_check(p), SD_INTERNAL,
                 "takes other arguments than a call hands it");
    plan_destroy(p);
    sd_arena_destroy(a);
}

static void a_library_without_the_function_is_an_error(void **state)
{
    sd_arena *a = sd_arena_create();
    plan *p = plan_of(a, "host:v3",
                      "HloModule m\nENTRY e { x = f32[100] parameter(0) "
                      "ROOT r = f32[100] exponential(x) }");

    (void)state;
    assert_null(target_check(p));
    world.no_devlib = true;
    want_refusal(target_check(p), SD_INTERNAL,
                 "no device function dl_exp_f32 for host:v3");
    plan_destroy(p);
    sd_arena_destroy(a);
}

static void a_device_without_f64_has_no_such_kernels(void **state)
{
    sd_arena *a = sd_arena_create();
    plan *p = plan_of(a, "cl:dg2-g10",
                      "HloModule m\nENTRY e { x = f64[100] parameter(0) "
                      "ROOT r = f64[100] negate(x) }");

    (void)state;
    want_refusal(target_check(p), SD_UNIMPLEMENTED, "f64 on cl:dg2-g10");
    plan_destroy(p);
    sd_arena_destroy(a);
}

/* Places beyond 32 bits; the row is the whole array, a group's. */
static void a_sort_of_a_billion_elements_has_code(void **state)
{
    sd_arena *a = sd_arena_create();
    plan *p = plan_of(
        a, "cl:pvc",
        "HloModule m\nless { a = s8[] parameter(0) b = s8[] parameter(1) "
        "ROOT c = pred[] compare(a, b), direction=LT }\nENTRY e { x = "
        "s8[2000000000] parameter(0) ROOT r = s8[2000000000] sort(x), "
        "dimensions={0}, to_apply=less }");

    (void)state;
    assert_null(target_check(p));
    plan_destroy(p);
    sd_arena_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(good_ir_compiles, reset),
        cmocka_unit_test_setup(bad_ir_is_refused, reset),
        cmocka_unit_test_setup(llvm_without_a_target_or_passes_is_an_error,
                               reset),
        cmocka_unit_test_setup(a_child_that_cannot_start_is_an_error, reset),
        cmocka_unit_test_setup(a_child_that_dies_is_an_error, reset),
        cmocka_unit_test_setup(a_child_that_hangs_is_ended, reset),
        cmocka_unit_test_setup(what_spirv_cannot_say_is_the_child_s_error,
                               reset),
        cmocka_unit_test_setup(a_sort_without_work_space_is_refused, reset),
        cmocka_unit_test_setup(a_device_without_f64_has_no_such_kernels, reset),
        cmocka_unit_test_setup(a_sort_of_a_billion_elements_has_code, reset),
        cmocka_unit_test_setup(a_call_with_a_number_too_many_is_refused, reset),
        cmocka_unit_test_setup(a_library_without_the_function_is_an_error,
                               reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
