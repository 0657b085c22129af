/* An environment for the time in which engines are opened.
 *
 * OpenMP's threads spin for a while after each call, on cores that our kernels
 * want; gcc's runtime reads how long when an engine loads it.  setenv moves and
 * frees the array that another thread's getenv may be reading.  Here readers
 * meet either the old array or a new one, both whole and never freed; another
 * writer meanwhile wins.  All engines are opened under one such array, since
 * each one more stays for the life of the process. */
#include "xpu_engine.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static char **lend(char *entry, size_t *at)
{
    char **old = environ, **all;
    size_t n = 0;

    while (old && old[n])
        n++;
    /* pages of its own: it is nobody's to free, also for a leak checker */
    all = mmap(NULL, (n + 2) * sizeof *all, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    if (n)
        memcpy(all, old, n * sizeof *all);
    all[n] = entry;
    all[n + 1] = NULL;
    *at = n;
    if (__atomic_compare_exchange_n(&environ, &old, all, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return all;
    munmap(all, (n + 2) * sizeof *all);
    return NULL;
}

xpu_engine_env xpu_engine_env_lend(void)
{
    static char spin[] = "GOMP_SPINCOUNT=2000";
    void *loaded = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);
    xpu_engine_env e = {0};

    if (loaded)
        dlclose(loaded);
    else if (!getenv("GOMP_SPINCOUNT") && !getenv("OMP_WAIT_POLICY"))
        e.all = lend(spin, &e.at);
    return e;
}

/* The array stays: somebody may be in it. */
void xpu_engine_env_take_back(xpu_engine_env e)
{
    if (e.all && __atomic_load_n(&environ, __ATOMIC_SEQ_CST) == e.all)
        __atomic_store_n(&e.all[e.at], NULL, __ATOMIC_SEQ_CST);
}
