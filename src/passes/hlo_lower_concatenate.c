/* Concatenates of many operands into concatenates of some, and those again:
 * one kernel with an index and a pointer for each of 5,000 would be too large.
 */
#include "passes_priv.h"

enum { MOST_OPERANDS = 256 };

hlo_inst *hlo_lower_concatenate(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst **x;
    int n = in->narg;

    if (n <= MOST_OPERANDS)
        return NULL;
    x = sd_arena_copy(p.c->module->arena, in->arg, sizeof *x * (size_t)n);
    while (n > MOST_OPERANDS) {
        int k = 0;

        for (int i = 0; i < n; i += MOST_OPERANDS)
            x[k++] = hlo_make_concatenate(p, SD_MIN(MOST_OPERANDS, n - i),
                                          x + i, in->dims.at[0]);
        n = k;
    }
    return hlo_make_concatenate(p, n, x, in->dims.at[0]);
}
