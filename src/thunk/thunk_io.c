/* Programs to bytes and back: magic, version, length and checksum of what
 * follows, then the fields in the order of the struct.  Numbers are
 * little-endian; a count is held against the bytes that are left before
 * anything is allocated for it.  Other versions are refused: a program is
 * compiled again in milliseconds. */
#include "thunk.h"

#define MAGIC     "SDTHUNK"
#define VERSION   THUNK_VERSION
#define NO_STRING UINT32_MAX
#define MAX_DEPTH 64

/* Goes over a program, whose fields are named once for both ways.  A program
 * that is saved is not written to: threads share it. */
typedef struct {
    sd_buf *out; /* NULL: it is read from c */
    sd_cursor c;
    sd_arena *arena;
    bool oom; /* sticky, as the cursor's error is */
    sd_status refused; /* the first library call that is none */
} walk;

/* ---- memory ---- */

static void *get_memory(walk *w, size_t n, size_t size)
{
    void *p = NULL;
    size_t bytes;

    if (!w->oom && sd_mul_size(n, size, &bytes))
        p = sd_arena_try(w->arena, bytes);
    if (!p) {
        w->oom = true;
        w->c.at = w->c.end; /* nothing more is read */
    }
    return p;
}

/* A count of entries that take each bytes at least. */
static int get_count(walk *w, size_t each)
{
    uint32_t n = sd_read_u32(&w->c);

    if (n > INT32_MAX || n > sd_cursor_left(&w->c) / each) {
        sd_cursor_fail(&w->c, "a count that the bytes left can hold");
        return 0;
    }
    return (int)n;
}

/* ---- fields ---- */

#define NUMBER(w, field) number(w, &(field), sizeof(field))
#define ARRAY(w, field, count, each) \
    array(w, &(field), sizeof *(field), &(count), each)

/* A bool, or an integer or double of 4 or 8 bytes. */
static void number(walk *w, void *v, size_t size)
{
    uint64_t u = 0;

    if (!w->out) {
        u = size == 1   ? sd_read_u8(&w->c) != 0
            : size == 4 ? sd_read_u32(&w->c)
                        : sd_read_u64(&w->c);
        memcpy(v, &u, size);
        return;
    }
    memcpy(&u, v, size);
    if (size == 1)
        sd_buf_u8(w->out, (uint8_t)u);
    else if (size == 4)
        sd_buf_u32(w->out, (uint32_t)u);
    else
        sd_buf_u64(w->out, u);
}

/* field: the address of a pointer to `count` entries, which are made when they
 * are read: none when memory is gone. */
static void array(walk *w, void *field, size_t size, int *count, size_t each)
{
    int n = w->out ? *count : get_count(w, each);
    void *p;

    if (w->out) {
        NUMBER(w, n);
        return;
    }
    p = n ? get_memory(w, (size_t)n, size) : NULL;
    *count = p ? n : 0;
    memcpy(field, &p, sizeof p);
}

static void numbers(walk *w, const int64_t **at, int *count)
{
    array(w, at, sizeof **at, count, 8);
    for (int i = 0; i < *count; i++)
        number(w, (void *)(uintptr_t)&(*at)[i], sizeof **at);
}

static void string(walk *w, const char **s)
{
    uint32_t n = w->out && *s ? (uint32_t)strlen(*s) : NO_STRING;
    sd_bytes b;
    char *to;

    NUMBER(w, n);
    if (w->out && *s)
        sd_buf_str(w->out, *s);
    if (w->out)
        return;
    *s = NULL;
    if (n == NO_STRING)
        return;
    b = sd_read_bytes(&w->c, n);
    if (!(to = get_memory(w, b.len + 1, 1)))
        return;
    memcpy(to, b.at, b.len);
    *s = to;
}

static void name(walk *w, const char **s)
{
    string(w, s);
    if (!w->out && !*s)
        sd_cursor_fail(&w->c, "a name");
}

static void text(walk *w, char *at, size_t room)
{
    const char *s = at;
    size_t n;

    name(w, &s);
    if (w->out)
        return;
    n = s ? strlen(s) : 0;
    if (n >= room)
        sd_cursor_fail(&w->c, "a shorter name");
    else if (n)
        memcpy(at, s, n);
}

/* field: the address of a pointer to bytes.  Sixty-four aligned, as
 * thunk_add_constant and thunk_add_binary do. */
static void blob(walk *w, void *field, size_t *bytes)
{
    sd_bytes b;
    uint8_t *p;

    NUMBER(w, *bytes);
    if (w->out) {
        memcpy(&p, field, sizeof p);
        sd_buf_add(w->out, p, *bytes);
        return;
    }
    b = sd_read_bytes(&w->c, *bytes);
    *bytes = 0;
    if (!(p = get_memory(w, b.len + 64, 1)))
        return;
    p += -(uintptr_t)p & 63;
    memcpy(p, b.at, b.len);
    *bytes = b.len;
    memcpy(field, &p, sizeof p);
}

/* ---- parts of a program ---- */

static void device(walk *w, device_desc *d)
{
    NUMBER(w, d->kind);
    text(w, d->name, sizeof d->name);
    text(w, d->driver, sizeof d->driver);
    NUMBER(w, d->lanes);
    NUMBER(w, d->units);
    NUMBER(w, d->group);
    NUMBER(w, d->subgroup);
    NUMBER(w, d->crowd);
    NUMBER(w, d->access);
    NUMBER(w, d->registers);
    NUMBER(w, d->local_bytes);
    NUMBER(w, d->local_most);
    NUMBER(w, d->cache_bytes);
    NUMBER(w, d->features);
    NUMBER(w, d->libs);
}

static void types(walk *w, thunk_type **list, int *count)
{
    array(w, list, sizeof **list, count, 20);
    for (int i = 0; i < *count; i++) {
        thunk_type *t = &(*list)[i];
        const char *dtype = w->out ? sd_dtype_name(t->dtype) : NULL;

        name(w, &dtype);
        if (!w->out && dtype &&
            !sd_dtype_of_name(dtype, strlen(dtype), &t->dtype))
            sd_cursor_fail(&w->c, "an element type");
        numbers(w, &t->dim, &t->rank);
        NUMBER(w, t->bytes);
        string(w, &t->memory);
    }
}

/* A library call's words stand where other kinds have their numbers. */
static void attributes(walk *w, thunk *t)
{
    int64_t word[LIBCALL_WORDS];
    const int64_t *at = t->call ? word : t->attr;
    int op = t->call ? (int)t->call->op : 0;
    int n = t->call ? libcall_words(t->call, word) : t->nattr;
    libcall *c;

    NUMBER(w, op);
    numbers(w, &at, &n);
    if (w->out)
        return;
    if (t->kind != THUNK_LIBCALL || w->c.bad || w->refused ||
        !(c = get_memory(w, 1, sizeof *c))) {
        t->attr = at;
        t->nattr = n;
        return;
    }
    w->refused = libcall_of_words(op, at, n, c);
    t->call = c;
}

static void steps(walk *w, thunk_seq *s, int depth);

static void step(walk *w, thunk *t, int depth)
{
    NUMBER(w, t->kind);
    string(w, &t->name);
    string(w, &t->op_name);
    ARRAY(w, t->arg, t->narg, 20);
    for (int k = 0; k < t->narg; k++) {
        NUMBER(w, t->arg[k].buffer);
        NUMBER(w, t->arg[k].offset);
        NUMBER(w, t->arg[k].bytes);
    }
    NUMBER(w, t->kernel);
    attributes(w, t);
    NUMBER(w, t->trip);
    string(w, &t->target);
    string(w, &t->config);
    NUMBER(w, t->flops);
    NUMBER(w, t->bytes);
    ARRAY(w, t->seq, t->nseq, 4);
    for (int k = 0; k < t->nseq; k++)
        steps(w, &t->seq[k], depth + 1);
}

static void steps(walk *w, thunk_seq *s, int depth)
{
    if (!w->out && depth > MAX_DEPTH) {
        sd_cursor_fail(&w->c, "sequences nested less deeply");
        return;
    }
    ARRAY(w, s->at, s->n, 68);
    for (int i = 0; i < s->n; i++)
        step(w, &s->at[i], depth);
}

static void buffers(walk *w, thunk_program *p)
{
    ARRAY(w, p->buffer, p->nbuffer, 29);
    for (int i = 0; i < p->nbuffer; i++) {
        thunk_buffer *u = &p->buffer[i];

        NUMBER(w, u->kind);
        NUMBER(w, u->index);
        NUMBER(w, u->bytes);
        NUMBER(w, u->alias);
        NUMBER(w, u->alias_must);
        NUMBER(w, u->at);
    }
}

static void kernels(walk *w, thunk_program *p)
{
    ARRAY(w, p->kernel, p->nkernel, 49);
    for (int i = 0; i < p->nkernel; i++) {
        thunk_kernel *k = &p->kernel[i];

        name(w, &k->symbol);
        NUMBER(w, k->binary);
        NUMBER(w, k->nslot);
        NUMBER(w, k->tiles);
        NUMBER(w, k->group);
        NUMBER(w, k->local_bytes);
        NUMBER(w, k->flops);
        NUMBER(w, k->bytes);
        NUMBER(w, k->loop);
    }
    ARRAY(w, p->binary, p->nbinary, 12);
    for (int i = 0; i < p->nbinary; i++) {
        NUMBER(w, p->binary[i].kind);
        blob(w, &p->binary[i].data, &p->binary[i].bytes);
    }
}

/* One a parameter; a program that was built without has none. */
static void donatable(walk *w, thunk_program *p)
{
    if (!w->out)
        p->donatable = get_memory(w, (size_t)p->nparam, sizeof *p->donatable);
    for (int i = 0; i < p->nparam; i++)
        if (p->donatable)
            NUMBER(w, p->donatable[i]);
        else if (w->out)
            sd_buf_u8(w->out, false);
}

static void body(walk *w, thunk_program *p)
{
    name(w, &p->name);
    device(w, &p->device);
    types(w, &p->param, &p->nparam);
    types(w, &p->output, &p->noutput);
    donatable(w, p);
    NUMBER(w, p->nreplica);
    NUMBER(w, p->npartition);
    buffers(w, p);
    blob(w, &p->constants, &p->constant_bytes);
    NUMBER(w, p->temp_bytes);
    kernels(w, p);
    ARRAY(w, p->section, p->nsection, 12);
    for (int i = 0; i < p->nsection; i++) {
        name(w, &p->section[i].name);
        blob(w, &p->section[i].data, &p->section[i].bytes);
    }
    steps(w, &p->seq, 0);
    NUMBER(w, p->fingerprint);
}

/* ---- out ---- */

sd_status thunk_save(const thunk_program *p, sd_buf *out)
{
    sd_buf all = {0}, b = {0};
    walk w = {.out = &all};

    body(&w, (thunk_program *)(uintptr_t)p);
    sd_buf_add(&b, MAGIC, sizeof MAGIC);
    sd_buf_u32(&b, VERSION);
    sd_buf_u64(&b, all.len);
    sd_buf_u64(&b, sd_hash(all.at, all.len, VERSION));
    sd_buf_add(&b, all.at, all.len);
    if (all.oom || b.oom) {
        size_t bytes = all.len;

        sd_buf_finish(&all);
        sd_buf_finish(&b);
        return sd_no_memory(bytes);
    }
    sd_buf_finish(&all);
    sd_buf_finish(out);
    *out = b;
    return NULL;
}

/* ---- in ---- */

static sd_status open_body(sd_bytes b, sd_cursor *out)
{
    sd_cursor c = sd_cursor_of(b);
    sd_bytes magic = sd_read_bytes(&c, sizeof MAGIC), all;
    uint32_t version = sd_read_u32(&c);
    uint64_t bytes = sd_read_u64(&c), sum = sd_read_u64(&c);

    if (c.bad || memcmp(magic.at, MAGIC, sizeof MAGIC))
        return sd_error(SD_INVALID, "%zu bytes that are no saved program",
                        b.len);
    if (version != VERSION)
        return sd_error(SD_INVALID,
                        "saved program of version %u, this library reads %u: "
                        "compile it again",
                        version, VERSION);
    if (bytes != sd_cursor_left(&c))
        return sd_error(SD_DATA_LOSS,
                        "saved program of %" PRIu64 " bytes has %zu: it was "
                        "cut, or is still being written",
                        bytes, sd_cursor_left(&c));
    all = sd_read_bytes(&c, bytes);
    if (sd_hash(all.at, all.len, VERSION) != sum)
        return sd_error(SD_DATA_LOSS,
                        "saved program of %" PRIu64 " bytes is "
                        "damaged: checksum",
                        bytes);
    *out = sd_cursor_of(all);
    return NULL;
}

sd_status thunk_load(sd_bytes b, thunk_program **out)
{
    walk w = {0};
    thunk_program *p;
    sd_status st = open_body(b, &w.c);

    if (st)
        return st;
    w.arena = sd_arena_create_try();
    p = w.arena ? sd_arena_try(w.arena, sizeof *p) : NULL;
    if (!p) {
        sd_arena_destroy(w.arena);
        return sd_no_memory(sizeof *p);
    }
    p->arena = w.arena;
    p->refs = 1;
    body(&w, p);
    if (sd_cursor_left(&w.c))
        sd_cursor_fail(&w.c, "the end");
    st = w.oom ? sd_no_memory(b.len) : sd_cursor_status(&w.c, "saved program");
    if (st)
        sd_status_free(w.refused);
    else
        st = w.refused;
    if (!st)
        st = thunk_verify(p);
    if (st) {
        thunk_program_release(p);
        return st;
    }
    *out = p;
    return NULL;
}
