/* What the machine gives this process. */
#include "base.h"

#include <stdio.h>
#include <unistd.h>

int sd_cpu_level(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("x86-64-v3"))
        return 2;
    return __builtin_cpu_supports("x86-64-v4") ? 4 : 3;
}

bool sd_cpu_has_vnni(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512vnni");
}

int64_t sd_memory_size(void)
{
    int64_t most = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    static const char *const file[] = {
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    };

    for (size_t i = 0; i < SD_COUNTOF(file); i++) {
        FILE *f = fopen(file[i], "re");
        int64_t n;

        if (!f)
            continue;
        if (fscanf(f, "%" SCNd64, &n) == 1 && n > 0)
            most = SD_MIN(most, n);
        fclose(f);
    }
    return most;
}
