/* Finding a function's bitcode. */
#include <string.h>

#include "devlib_table.h"

const devlib_function *devlib_find(devlib_target t, const char *name)
{
    static const devlib_table *const tables[] = {
#define X(name) &devlib_##name,
        DEVLIB_TARGETS(X)
#undef X
    };
    int lo = 0, hi = tables[t]->n;

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        const devlib_function *f = &tables[t]->at[mid];
        int d = strcmp(name, f->name);

        if (!d)
            return f;
        if (d < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}
