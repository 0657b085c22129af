/* Linked with --wrap=sd_hash: everything has one hash, and nothing that is
 * found by it may be taken for something else. */
#include <stddef.h>
#include <stdint.h>

uint64_t __wrap_sd_hash(const void *p, size_t n, uint64_t seed);

uint64_t __wrap_sd_hash(const void *p, size_t n, uint64_t seed)
{
    (void)p;
    (void)n;
    (void)seed;
    return 7;
}
