/* Names: a map by text, and names that end in numbers.  The text itself is
 * compared: two names of one hash are two names. */
#include "base.h"

typedef struct entry {
    const char *s; /* borrowed */
    size_t n;
    void *value;
    struct entry *next;
} entry;

struct sd_names {
    sd_arena *a;
    sd_map *map; /* hash -> chain */
};

sd_names *sd_names_create(sd_arena *a)
{
    sd_names *m = sd_arena_new(a, sd_names);

    m->a = a;
    m->map = sd_map_create(a);
    return m;
}

static entry *find(const sd_names *m, uint64_t h, const char *s, size_t n)
{
    entry *e = sd_map_get(m->map, h);

    while (e && (e->n != n || memcmp(e->s, s, n) != 0))
        e = e->next;
    return e;
}

void sd_names_set(sd_names *m, const char *s, size_t n, void *value)
{
    uint64_t h = sd_hash(s, n, 0);
    entry *e = find(m, h, s, n);

    if (!e) {
        e = sd_arena_new(m->a, entry);
        *e = (entry){.s = s, .n = n, .next = sd_map_get(m->map, h)};
        sd_map_set(m->map, h, e);
    }
    e->value = value;
}

void *sd_names_get(const sd_names *m, const char *s, size_t n)
{
    entry *e = find(m, sd_hash(s, n, 0), s, n);

    return e ? e->value : NULL;
}

size_t sd_stem_length(const char *name, const char *mark)
{
    size_t len = strlen(name), n = strlen(mark), i = len;

    while (i > 0 && name[i - 1] >= '0' && name[i - 1] <= '9')
        i--;
    return i > n && i < len && memcmp(name + i - n, mark, n) == 0 ? i - n : len;
}
