/* What the machine gives this process. */
#include "base.h"

#include <stdio.h>
#include <sys/syscall.h>
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

bool sd_cpu_has_bf16(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bf16");
}

/* Linux saves 8 KB of tiles for a thread that uses them only once the process
 * has asked for it: for all its threads, those that are there and those to
 * come. It refuses where one of them has a signal stack that is too short for
 * them. */
bool sd_cpu_has_amx(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };

    __builtin_cpu_init();
    return __builtin_cpu_supports("amx-tile") &&
           __builtin_cpu_supports("amx-int8") &&
           __builtin_cpu_supports("amx-bf16") &&
           syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

/* The file's first number, or the one that follows `word` at the beginning of a
 * line; -1: there is none. */
static int64_t number_in(const char *root, const char *name, const char *word)
{
    char path[512], line[256];
    int64_t n = -1, x;
    FILE *f;

    snprintf(path, sizeof path, "%s%s", root, name);
    f = fopen(path, "re");

    while (f && n < 0 && fgets(line, sizeof line, f)) {
        size_t skip = word ? strlen(word) : 0;

        if (skip && strncmp(line, word, skip) != 0)
            continue;
        if (sscanf(line + skip, "%" SCNd64, &x) == 1)
            n = x;
        else if (!word)
            break;
    }
    if (f)
        fclose(f);
    return n;
}

/* Control groups, versions 2 and 1; `cache` of what is used would be given
 * back. */
static const struct {
    const char *limit, *used, *stat, *cache;
} group[] = {
    {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
     "/sys/fs/cgroup/memory.stat", "file "},
    {"/sys/fs/cgroup/memory/memory.limit_in_bytes",
     "/sys/fs/cgroup/memory/memory.usage_in_bytes",
     "/sys/fs/cgroup/memory/memory.stat", "total_cache "},
};

int64_t sd_memory_size(void)
{
    int64_t most = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);

    for (size_t i = 0; i < SD_COUNTOF(group); i++) {
        int64_t n = number_in("", group[i].limit, NULL);

        if (n > 0)
            most = SD_MIN(most, n);
    }
    return most;
}

int64_t sd_memory_left_at(const char *root)
{
    int64_t free = number_in(root, "/proc/meminfo", "MemAvailable:");
    int64_t left = free >= 0 ? free << 10 : sd_memory_size();

    for (size_t i = 0; i < SD_COUNTOF(group); i++) {
        int64_t limit = number_in(root, group[i].limit, NULL);
        int64_t used = number_in(root, group[i].used, NULL);
        int64_t cache = number_in(root, group[i].stat, group[i].cache);

        if (limit > 0 && used >= 0)
            left = SD_MIN(left, limit - SD_MAX(used - SD_MAX(cache, 0), 0));
    }
    return SD_MAX(left, 0);
}

int64_t sd_memory_left(void)
{
    return sd_memory_left_at("");
}
