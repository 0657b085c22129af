/* What our libraries use of glibc and glibc 2.28 lacks: they are linked
 * against its symbols (tools/gen_glibc.py), so that they load there and on all
 * that came after.  LLVM and libstdc++ ask for all of this, we for fstat and
 * stat.  Hidden, like every symbol: nobody else meets them. */
#undef _FILE_OFFSET_BITS /* stat and stat64 are two symbols, of one struct */
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>

#define STAT_VERSION 1 /* of struct stat, on x86-64 */

int __xstat(int version, const char *path, struct stat *out);
int __lxstat(int version, const char *path, struct stat *out);
int __fxstat(int version, int fd, struct stat *out);

/* Until 2.33 the headers made these three of those. */
int stat(const char *restrict path, struct stat *restrict out)
{
    return __xstat(STAT_VERSION, path, out);
}

int lstat(const char *restrict path, struct stat *restrict out)
{
    return __lxstat(STAT_VERSION, path, out);
}

int fstat(int fd, struct stat *out)
{
    return __fxstat(STAT_VERSION, fd, out);
}

int stat64(const char *restrict path, struct stat64 *restrict out)
    __attribute__((alias("stat"), copy(stat)));

/* 2.32: whether libstdc++ may count references without atomics.  Never. */
extern char __libc_single_threaded;
char __libc_single_threaded = 0;

/* 2.36: libstdc++'s random_device, of which LLVM takes seeds for names of
 * temporary files. */
uint32_t arc4random(void)
{
    uint32_t r = 0;

    getentropy(&r, sizeof r);
    return r;
}

/* 2.33: LLVM's own timing reports, which nobody asks for here. */
struct mallinfo2 {
    size_t counts[10];
};

struct mallinfo2 mallinfo2(void)
{
    return (struct mallinfo2){0};
}

/* 2.35: where the unwinder finds a function's frames.  "Not found" ends the
 * process at a throw, and so would an unwinder that looked: LLVM is built
 * without exceptions, and C has none, so that nothing of ours catches. */
int _dl_find_object(void *address, void *out)
{
    (void)address;
    (void)out;
    return -1;
}
