/* LLVM's SPIR-V back end numbers blocks in a table that the whole process
 * shares and nobody clears: its key is the address of a machine function, so
 * a later module meets the numbers of an earlier one where memory was reused,
 * and labels come out twice.  It also ends the process on what it cannot do.
 * So its code generation runs in a child process, one a module, which gets
 * the module as bitcode and sends back bytes.
 *
 * The child is this very file, run again: the library by the dynamic linker,
 * at an entry point of its own, or the program that it is linked into, where a
 * constructor sees the variable that we set for it.  It is started without
 * fork(): the host's fork handlers would run in the middle of other threads'
 * work (OpenBLAS's stop its threads), and locks that those hold would stay
 * locked in the child. */
#include "target_child.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/ErrorHandling.h>

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target_room.h"
#include "target_visa.h"

#define FLAG_NAME "SUNDOG_SPIRV_CHILD"
enum { MOST_SECONDS = 300 }; /* then it hangs */

/* What is said first is its kind and how long it is. */
enum { SAYS_BYTES = 'b', SAYS_ERROR = 'e', ASKS_OBJECT = 'o', ASKS_TEXT = 't' };

/* A socket, so that a reader that is gone is no signal. */
static bool write_all(int fd, const void *p, size_t n)
{
    const char *at = p;

    while (n) {
        ssize_t k = send(fd, at, n, MSG_NOSIGNAL);

        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

static bool say(int fd, char kind, const void *p, size_t n)
{
    uint64_t bytes = n;

    return write_all(fd, &kind, 1) && write_all(fd, &bytes, sizeof bytes) &&
           write_all(fd, p, n);
}

static bool read_all(int fd, void *p, size_t n)
{
    char *at = p;

    while (n) {
        ssize_t k = recv(fd, at, n, 0);

        if (k < 0 && errno == EINTR)
            continue;
        if (k == 0)
            errno = EPIPE;
        if (k <= 0)
            return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

/* To free; NULL: the other end is gone, or too slow. */
static char *hear(int fd, char *kind, size_t *n)
{
    uint64_t bytes;
    char *p;

    if (!read_all(fd, kind, 1) || !read_all(fd, &bytes, sizeof bytes) ||
        !(p = malloc((size_t)bytes + 1)))
        return NULL;
    if (!read_all(fd, p, (size_t)bytes)) {
        free(p);
        return NULL;
    }
    *n = (size_t)bytes;
    return p;
}

/* ---- the child ---- */

static _Noreturn void give_up(const char *why)
{
    say(STDIN_FILENO, SAYS_ERROR, why, strlen(why));
    _exit(1);
}

static void on_diagnostic(LLVMDiagnosticInfoRef d, void *ctx)
{
    (void)ctx;
    if (LLVMGetDiagInfoSeverity(d) == LLVMDSError)
        give_up(LLVMGetDiagInfoDescription(d));
}

static void start_llvm(LLVMContextRef cx)
{
    LLVMInstallFatalErrorHandler(give_up);
    LLVMContextSetDiagnosticHandler(cx, on_diagnostic, NULL);
    target_spirv.start();
}

/* What the parent's process had open is none of ours.  Linux before 5.9 has no
 * such call; there it stays open for as long as we live. */
static void close_inherited(void)
{
    syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
}

static _Noreturn void work(void)
{
    LLVMContextRef cx = LLVMContextCreate();
    LLVMMemoryBufferRef in, out = NULL;
    LLVMTargetMachineRef tm;
    LLVMModuleRef m;
    char kind, *message = NULL, *p;
    size_t n;

    close_inherited();
    start_llvm(cx);
    if (!(p = hear(STDIN_FILENO, &kind, &n)))
        _exit(1);
    in = LLVMCreateMemoryBufferWithMemoryRange(p, n, "module", false);
    if (LLVMParseBitcodeInContext2(cx, in, &m))
        give_up("the module does not arrive");
    if (!(tm = target_spirv.machine(NULL, false)))
        give_up("LLVM has no SPIR-V target");
    if (LLVMTargetMachineEmitToMemoryBuffer(
            tm, m, kind == ASKS_TEXT ? LLVMAssemblyFile : LLVMObjectFile,
            &message, &out))
        give_up(message);
    n = LLVMGetBufferSize(out);
    if (!(p = malloc(n)))
        _exit(1);
    memcpy(p, LLVMGetBufferStart(out), n);
    if (kind == ASKS_OBJECT)
        target_widen_assembly(p, n);
    _exit(!say(STDIN_FILENO, SAYS_BYTES, p, n));
}

/* This file's constructors: LLVM's, where LLVM is inside.  The linker calls
 * those of every other file and leaves its program's to the program. */
static void construct(void)
{
    void (**list)(void) = NULL;
    struct link_map *us;
    size_t bytes = 0;
    Dl_info info;

    if (!dladdr1((void *)(uintptr_t)construct, &info, (void **)&us,
                 RTLD_DL_LINKMAP))
        _exit(1);
    for (const ElfW(Dyn) *d = us->l_ld; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_INIT_ARRAY)
            list = (void (**)(void))(us->l_addr + d->d_un.d_ptr);
        else if (d->d_tag == DT_INIT_ARRAYSZ)
            bytes = d->d_un.d_val;
    for (size_t i = 0; i < bytes / sizeof *list; i++)
        list[i]();
}

/* The library's entry point (meson.build).  The stack is as the kernel left
 * it.  The variable goes first: begin() below is a constructor too, and LLVM's
 * come after it. */
_Noreturn void target_child_start(void)
    __attribute__((force_align_arg_pointer));

_Noreturn void target_child_start(void)
{
    unsetenv(FLAG_NAME);
    construct();
    work();
}

__attribute__((constructor)) static void begin(void)
{
    const char *flag = getenv(FLAG_NAME);

    if (flag && !strcmp(flag, "1"))
        work();
}

/* ---- the parent ---- */

/* The file that this code is in; *is_program: it can be run by itself. */
static bool find_us(char path[PATH_MAX], bool *is_program)
{
    struct link_map *map;
    Dl_info info;

    if (!dladdr1((void *)(uintptr_t)find_us, &info, (void **)&map,
                 RTLD_DL_LINKMAP))
        return false;
    *is_program = !*map->l_name;
    return realpath(*is_program ? "/proc/self/exe" : map->l_name, path);
}

/* The linker that this process was started with. */
static const char *dynamic_linker(void)
{
    void *base = (void *)getauxval(AT_BASE);
    Dl_info info;

    return base && dladdr(base, &info) && info.dli_fname && *info.dli_fname
               ? info.dli_fname
               : "/lib64/ld-linux-x86-64.so.2";
}

/* Its input is fd; it closes what else it inherits but the error output, and
 * has of the environment what finds LLVM. */
static int spawn(pid_t *pid, int fd)
{
    const char *where = getenv("LD_LIBRARY_PATH");
    char path[PATH_MAX], libraries[4 * PATH_MAX];
    char *argv[3],
        *env[] = {(char *)FLAG_NAME "=1", where ? libraries : NULL, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    bool is_program;
    int err, n = 0;

    if (!find_us(path, &is_program))
        return ENOENT;
    if (where)
        snprintf(libraries, sizeof libraries, "LD_LIBRARY_PATH=%s", where);
    if (!is_program)
        argv[n++] = (char *)dynamic_linker();
    argv[n++] = path;
    argv[n] = NULL;
    sigemptyset(&none);
    sigaddset(&none, SIGINT); /* a terminal's is for us to judge */
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, fd, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr,
                             POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setsigmask(&attr, &none);
    err = posix_spawn(pid, argv[0], &files, &attr, argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return err;
}

/* -1: somebody else has waited for it. */
static int wait_for(pid_t pid)
{
    int how;

    while (waitpid(pid, &how, 0) < 0)
        if (errno != EINTR)
            return -1;
    return how;
}

static sd_status ended_early(int how, bool too_slow)
{
    if (too_slow)
        return sd_error(SD_DEADLINE,
                        "LLVM's code generation took more than %d s and was "
                        "stopped",
                        MOST_SECONDS);
    if (how < 0)
        return sd_error(SD_INTERNAL,
                        "the process of LLVM's code generation ended early; "
                        "how is not known, as this process waits for all of "
                        "its children (or ignores SIGCHLD)");
    return sd_error(SD_INTERNAL,
                    "the process of LLVM's code generation ended early (%s "
                    "%d)%s",
                    WIFSIGNALED(how) ? "signal" : "status",
                    WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how),
                    WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL
                        ? ": the machine's memory may have run out"
                        : "");
}

/* Until the child has something to say; CANCELLED: nobody wants to hear it. */
static sd_status await_answer(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    sd_status st = NULL;

    for (int i = 0; sd_stop_current() && i < MOST_SECONDS * 10 && !st; i++) {
        if (poll(&p, 1, 100) > 0)
            break;
        st = sd_stopped();
    }
    return st;
}

static sd_status talk(int fd, pid_t pid, LLVMModuleRef m,
                      LLVMCodeGenFileType type, LLVMMemoryBufferRef *out)
{
    LLVMMemoryBufferRef code = LLVMWriteBitcodeToMemoryBuffer(m);
    char kind, *p = NULL;
    sd_status st = NULL;
    bool too_slow;
    size_t n;
    int how, err;

    errno = 0;
    if (say(fd, type == LLVMAssemblyFile ? ASKS_TEXT : ASKS_OBJECT,
            LLVMGetBufferStart(code), LLVMGetBufferSize(code)) &&
        !(st = await_answer(fd)))
        p = hear(fd, &kind, &n);
    err = p ? 0 : errno;
    too_slow = err == EAGAIN || err == EWOULDBLOCK;
    LLVMDisposeMemoryBuffer(code);
    if (st || too_slow || err == ENOMEM) /* it may be writing yet */
        kill(pid, SIGKILL);
    how = wait_for(pid);
    if (st)
        return st;
    if (!p)
        return err == ENOMEM ? sd_no_memory(0) : ended_early(how, too_slow);
    if (kind == SAYS_BYTES)
        *out = LLVMCreateMemoryBufferWithMemoryRangeCopy(p, n, "binary");
    else
        st = sd_error(SD_INTERNAL, "LLVM's code generation: %.*s",
                      (int)SD_MIN(n, (size_t)2000), p);
    free(p);
    return st;
}

sd_status target_code_in_child(LLVMModuleRef m, LLVMCodeGenFileType type,
                               LLVMMemoryBufferRef *out)
{
    struct timeval most = {.tv_sec = MOST_SECONDS};
    sd_status st;
    pid_t pid;
    int fd[2], err;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
        return sd_error(SD_EXHAUSTED,
                        "no socket to the process of LLVM's code generation: "
                        "%s",
                        strerror(errno));
    setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(fd[0], SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    err = spawn(&pid, fd[1]);
    close(fd[1]);
    if (err)
        st = sd_error(SD_EXHAUSTED, "no process for LLVM's code generation: %s",
                      strerror(err));
    else
        st = talk(fd[0], pid, m, type, out);
    close(fd[0]);
    return st;
}
