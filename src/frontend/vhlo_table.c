/* The table of operations, and how a name finds its row. */
#include "vhlo_import.h"

#define MIN(n) ~(n)
static const vhlo_row rows[] = {
#define VHLO(name, noperand, nresult, nregion, fn, op, props) \
    {name, noperand, nresult, nregion, fn, HLO_##op, props},
#include "vhlo.def"
#undef VHLO
};

const vhlo_row *vhlo_find(sd_bytes name)
{
    size_t lo = 0, hi = SD_COUNTOF(rows);

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2, len = strlen(rows[mid].name);
        int d = memcmp(name.at, rows[mid].name, SD_MIN(len, name.len));

        if (d == 0 && len == name.len)
            return &rows[mid];
        if (d < 0 || (d == 0 && name.len < len))
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}
