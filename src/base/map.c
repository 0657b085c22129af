/* The hash map: open addressing, linear probing, a power of two of entries at
 * most three quarters full.  Key 0 marks an empty entry, so the value of key
 * 0 itself lies beside the table. */
#include "base.h"

typedef struct {
    uint64_t key;
    void *value;
} entry;

struct sd_map {
    sd_arena *arena; /* borrowed */
    entry *at;
    uint64_t mask; /* entries - 1 */
    uint64_t used;
    void *zero;
    bool has_zero;
};

static uint64_t mix(uint64_t k)
{
    k ^= k >> 32;
    k *= UINT64_C(0x9e3779b97f4a7c15);
    k ^= k >> 29;
    return k;
}

sd_map *sd_map_create(sd_arena *a)
{
    sd_map *m = sd_arena_new(a, sd_map);

    m->arena = a;
    m->mask = 15;
    m->at = sd_arena_array(a, entry, 16);
    return m;
}

static entry *find(const sd_map *m, uint64_t key)
{
    uint64_t i = mix(key) & m->mask;

    while (m->at[i].key && m->at[i].key != key)
        i = (i + 1) & m->mask;
    return &m->at[i];
}

static void grow(sd_map *m)
{
    entry *old = m->at;
    uint64_t n = m->mask + 1;

    m->at = sd_arena_array(m->arena, entry, 2 * n);
    m->mask = 2 * n - 1;
    for (uint64_t i = 0; i < n; i++)
        if (old[i].key)
            *find(m, old[i].key) = old[i];
}

void sd_map_set(sd_map *m, uint64_t key, void *value)
{
    entry *e;

    if (!key) {
        m->has_zero = true;
        m->zero = value;
        return;
    }
    e = find(m, key);
    if (!e->key) {
        if (4 * (m->used + 1) > 3 * (m->mask + 1)) {
            grow(m);
            e = find(m, key);
        }
        e->key = key;
        m->used++;
    }
    e->value = value;
}

void *sd_map_get(const sd_map *m, uint64_t key)
{
    return key ? find(m, key)->value : m->zero;
}

bool sd_map_has(const sd_map *m, uint64_t key)
{
    return key ? find(m, key)->key != 0 : m->has_zero;
}

uint64_t sd_hash(const void *p, size_t n, uint64_t seed)
{
    const uint8_t *at = p;
    uint64_t h = seed ^ (n * UINT64_C(0x9e3779b97f4a7c15)), w;

    for (; n >= 8; n -= 8, at += 8) {
        memcpy(&w, at, 8);
        h = (h ^ mix(w)) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 33;
    }
    w = 0;
    for (size_t i = 0; i < n; i++)
        w |= (uint64_t)at[i] << (8 * i);
    h = (h ^ mix(w)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ (h >> 33);
}
