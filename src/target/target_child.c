/* LLVM's SPIR-V back end numbers blocks in a table that the whole process
 * shares and nobody clears: its key is the address of a machine function, so
 * a later module meets the numbers of an earlier one where memory was reused,
 * and labels come out twice.  It also ends the process on what it cannot do.
 * So its code generation runs in a forked child, which starts clean each time
 * and sends its bytes through a pipe.
 *
 * No other thread of ours may be inside LLVM when we fork: a lock that it
 * holds would stay locked in the child.  Hence the lock below, which guards
 * LLVM's state and not ours. */
#include "target_child.h"

#include <llvm-c/ErrorHandling.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_rwlock_t in_llvm = PTHREAD_RWLOCK_INITIALIZER;

void target_llvm_enter(void)
{
    pthread_rwlock_rdlock(&in_llvm);
}

void target_llvm_leave(void)
{
    pthread_rwlock_unlock(&in_llvm);
}

/* ---- the child ---- */

enum { SAYS_BYTES = 'b', SAYS_ERROR = 'e' };

static bool write_all(int fd, const void *p, size_t n)
{
    const char *at = p;

    while (n) {
        ssize_t k = write(fd, at, n);

        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

/* What is said first is its kind and how long it is. */
static void say(int fd, char kind, const void *p, size_t n)
{
    uint64_t bytes = n;

    if (write_all(fd, &kind, 1) && write_all(fd, &bytes, sizeof bytes))
        write_all(fd, p, n);
}

enum { PIPE = 3 }; /* the only descriptor a fatal error can know of */

static void on_fatal(const char *reason)
{
    say(PIPE, SAYS_ERROR, reason, strlen(reason));
    _exit(1);
}

static _Noreturn void child(LLVMTargetMachineRef tm, LLVMModuleRef m,
                            LLVMCodeGenFileType type, int fd)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
    LLVMMemoryBufferRef out = NULL;
    char *message = NULL;

    for (size_t i = 0; i < SD_COUNTOF(deadly); i++)
        signal(deadly[i], SIG_DFL); /* the host's handlers would talk */
    if (fd != PIPE && dup2(fd, PIPE) < 0)
        _exit(1);
    LLVMResetFatalErrorHandler();
    LLVMInstallFatalErrorHandler(on_fatal);
    if (LLVMTargetMachineEmitToMemoryBuffer(tm, m, type, &message, &out))
        say(PIPE, SAYS_ERROR, message, strlen(message));
    else
        say(PIPE, SAYS_BYTES, LLVMGetBufferStart(out), LLVMGetBufferSize(out));
    _exit(0);
}

/* ---- the parent ---- */

static void read_all(int fd, sd_buf *out)
{
    char piece[1 << 16];

    for (;;) {
        ssize_t k = read(fd, piece, sizeof piece);

        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return;
        sd_buf_add(out, piece, (size_t)k);
    }
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

static sd_status understand(const sd_buf *said, int how,
                            LLVMMemoryBufferRef *out)
{
    sd_cursor c = sd_cursor_of((sd_bytes){(uint8_t *)said->at, said->len});
    int kind = sd_read_u8(&c);
    uint64_t n = sd_read_u64(&c);
    sd_bytes b = sd_read_bytes(&c, n);

    if (c.bad)
        return sd_error(SD_INTERNAL,
                        "LLVM's code generation ended early"
                        " (%s %d)",
                        how >= 0 && WIFSIGNALED(how) ? "signal" : "status",
                        how >= 0 && WIFSIGNALED(how) ? WTERMSIG(how) : how);
    if (kind != SAYS_BYTES)
        return sd_error(SD_INTERNAL, "LLVM's code generation: %.*s",
                        (int)SD_MIN(b.len, (size_t)2000), (const char *)b.at);
    *out = LLVMCreateMemoryBufferWithMemoryRangeCopy((const char *)b.at, b.len,
                                                     "binary");
    return NULL;
}

sd_status target_code_in_child(LLVMTargetMachineRef tm, LLVMModuleRef m,
                               LLVMCodeGenFileType type,
                               LLVMMemoryBufferRef *out)
{
    sd_buf said = {0};
    int fd[2], how;
    sd_status st;
    pid_t pid;

    if (pipe2(fd, O_CLOEXEC))
        return sd_error(SD_EXHAUSTED, "a pipe: %s", strerror(errno));
    pthread_rwlock_wrlock(&in_llvm);
    pid = fork();
    if (pid == 0)
        child(tm, m, type, fd[1]);
    pthread_rwlock_unlock(&in_llvm);
    close(fd[1]);
    if (pid < 0) {
        close(fd[0]);
        return sd_error(SD_EXHAUSTED, "a process for code generation: %s",
                        strerror(errno));
    }
    read_all(fd[0], &said);
    close(fd[0]);
    how = wait_for(pid);
    st = understand(&said, how, out);
    sd_buf_finish(&said);
    return st;
}
