#include "fail_alloc.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>

static _Atomic bool armed, goes_on;
static _Atomic long nth, nrequest;

void fail_alloc_arm(long n, bool on)
{
    nth = n;
    goes_on = on;
    nrequest = 0;
    armed = true;
}

long fail_alloc_disarm(void)
{
    armed = false;
    return nrequest;
}

static bool fails(void)
{
    long n;

    if (!armed)
        return false;
    n = ++nrequest;
    return nth && (n == nth || (goes_on && n > nth));
}

#define WRAP(type, none, name, params, args) \
    type __real_##name params; \
    type __wrap_##name params; \
    type __wrap_##name params \
    { \
        if (fails()) { \
            errno = ENOMEM; \
            return none; \
        } \
        return __real_##name args; \
    }

WRAP(void *, NULL, malloc, (size_t n), (n))
WRAP(void *, NULL, calloc, (size_t n, size_t size), (n, size))
WRAP(void *, NULL, realloc, (void *p, size_t n), (p, n))
WRAP(void *, NULL, aligned_alloc, (size_t align, size_t n), (align, n))
WRAP(char *, NULL, strdup, (const char *s), (s))
WRAP(int, -1, vasprintf, (char **out, const char *fmt, va_list ap),
     (out, fmt, ap))
WRAP(int, ENOMEM, posix_memalign, (void **out, size_t align, size_t n),
     (out, align, n))
WRAP(int, -1, mprotect, (void *at, size_t n, int prot), (at, n, prot))
WRAP(void *, MAP_FAILED, mmap64, /* as mmap is called here */
     (void *at, size_t n, int prot, int flags, int fd, off_t offset),
     (at, n, prot, flags, fd, offset))
WRAP(int, EAGAIN, pthread_create,
     (pthread_t * t, const pthread_attr_t *attr, void *(*fn)(void *),
      void *arg),
     (t, attr, fn, arg))

int __wrap_asprintf(char **out, const char *fmt, ...);
int __wrap_asprintf(char **out, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = __wrap_vasprintf(out, fmt, ap);
    va_end(ap);
    return n;
}
