/* Making programs.  Arrays grow by doubling inside the program's arena; their
 * capacity is never stored, since it follows from the count: eight, then the
 * next power of two. */
#include "thunk.h"

#define FIRST       8
#define CONST_ALIGN 64u /* a cache line, and the widest vector */
#define FIRST_CONST ((size_t)4096)

const char *const thunk_kind_name[THUNK_KIND_COUNT] = {
#define THUNK(id, name) [THUNK_##id] = name,
#include "thunk.def"
#undef THUNK
};

thunk_program *thunk_program_create(const char *name, const device_desc *d)
{
    sd_arena *a = sd_arena_create();
    thunk_program *p = sd_arena_new(a, thunk_program);

    p->arena = a;
    p->refs = 1;
    p->name = sd_arena_str(a, name, strlen(name));
    p->device = *d;
    p->nreplica = 1;
    p->npartition = 1;
    return p;
}

thunk_program *thunk_program_retain(thunk_program *p)
{
    __atomic_fetch_add(&p->refs, 1, __ATOMIC_RELAXED);
    return p;
}

void thunk_program_release(thunk_program *p)
{
    if (p && __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL) == 0)
        sd_arena_destroy(p->arena);
}

static bool is_full(int n)
{
    return n == 0 || (n >= FIRST && (n & (n - 1)) == 0);
}

static void *grow(sd_arena *a, void *at, int n, size_t size)
{
    size_t cap = n ? 2 * (size_t)n : FIRST;
    void *more;

    if (!is_full(n))
        return at;
    more = sd_arena_alloc(a, sd_mul_or_die(cap, size));
    if (n)
        memcpy(more, at, (size_t)n * size);
    return more;
}

int thunk_add_buffer(thunk_program *p, thunk_buffer b)
{
    p->buffer = grow(p->arena, p->buffer, p->nbuffer, sizeof b);
    p->buffer[p->nbuffer] = b;
    return p->nbuffer++;
}

static size_t const_cap(size_t bytes)
{
    size_t cap = FIRST_CONST;

    if (!bytes)
        return 0;
    while (cap < bytes)
        cap = sd_mul_or_die(cap, 2);
    return cap;
}

static uint8_t *aligned(sd_arena *a, size_t bytes)
{
    uint8_t *p = sd_arena_alloc(a, bytes + CONST_ALIGN);

    return p + (-(uintptr_t)p & (CONST_ALIGN - 1));
}

uint64_t thunk_add_constant(thunk_program *p, const void *data, size_t bytes)
{
    size_t at =
        (p->constant_bytes + CONST_ALIGN - 1) & ~(size_t)(CONST_ALIGN - 1);
    size_t end;

    if (!sd_add_size(at, bytes, &end))
        sd_oom(bytes);
    if (const_cap(end) > const_cap(p->constant_bytes)) {
        uint8_t *more = aligned(p->arena, const_cap(end));

        if (p->constant_bytes)
            memcpy(more, p->constants, p->constant_bytes);
        p->constants = more;
    }
    if (bytes)
        memcpy(p->constants + at, data, bytes);
    p->constant_bytes = end;
    return at;
}

int thunk_add_binary(thunk_program *p, thunk_bin_kind k, const void *data,
                     size_t bytes)
{
    uint8_t *copy = aligned(p->arena, bytes);

    if (bytes)
        memcpy(copy, data, bytes);
    p->binary = grow(p->arena, p->binary, p->nbinary, sizeof *p->binary);
    p->binary[p->nbinary] = (thunk_binary){k, copy, bytes};
    return p->nbinary++;
}

/* A section of that name is replaced. */
void thunk_add_section(thunk_program *p, const char *name, const void *data,
                       size_t bytes)
{
    thunk_section s = {name, sd_arena_copy(p->arena, data, bytes), bytes};

    for (int i = 0; i < p->nsection; i++)
        if (!strcmp(p->section[i].name, name)) {
            s.name = p->section[i].name;
            p->section[i] = s;
            return;
        }
    s.name = sd_arena_str(p->arena, name, strlen(name));
    p->section = grow(p->arena, p->section, p->nsection, sizeof s);
    p->section[p->nsection++] = s;
}

const thunk_section *thunk_find_section(const thunk_program *p, const char *n)
{
    for (int i = 0; i < p->nsection; i++)
        if (!strcmp(p->section[i].name, n))
            return &p->section[i];
    return NULL;
}
