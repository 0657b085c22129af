/* Linked with --wrap=sd_hash: everything has one hash, and nothing that is
 * found by it may be taken for something else. */
#include "one_hash.h"

#include <stddef.h>
#include <stdint.h>

bool one_hash = true;

uint64_t __real_sd_hash(const void *p, size_t n, uint64_t seed);
uint64_t __wrap_sd_hash(const void *p, size_t n, uint64_t seed);

uint64_t __wrap_sd_hash(const void *p, size_t n, uint64_t seed)
{
    return one_hash ? 7 : __real_sd_hash(p, n, seed);
}
