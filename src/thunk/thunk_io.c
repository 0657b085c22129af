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

/* ---- out ---- */

static void put_i64(sd_buf *b, int64_t v)
{
    sd_buf_u64(b, (uint64_t)v);
}

static void put_int(sd_buf *b, int v)
{
    sd_buf_u32(b, (uint32_t)v);
}

static void put_f64(sd_buf *b, double v)
{
    uint64_t u;

    memcpy(&u, &v, 8);
    sd_buf_u64(b, u);
}

static void put_str(sd_buf *b, const char *s)
{
    if (!s) {
        sd_buf_u32(b, NO_STRING);
        return;
    }
    sd_buf_u32(b, (uint32_t)strlen(s));
    sd_buf_str(b, s);
}

static void put_blob(sd_buf *b, const void *p, size_t n)
{
    sd_buf_u64(b, n);
    sd_buf_add(b, p, n);
}

static void put_device(sd_buf *b, const device_desc *d)
{
    put_int(b, (int)d->kind);
    put_str(b, d->name);
    put_str(b, d->driver);
    put_int(b, d->lanes);
    put_int(b, d->units);
    put_int(b, d->group);
    put_int(b, d->subgroup);
    put_int(b, d->crowd);
    put_int(b, d->access);
    put_int(b, d->registers);
    sd_buf_u64(b, d->local_bytes);
    sd_buf_u64(b, d->local_most);
    sd_buf_u64(b, d->cache_bytes);
    sd_buf_u64(b, d->features);
    sd_buf_u64(b, d->libs);
}

static void put_types(sd_buf *b, const thunk_type *t, int n)
{
    put_int(b, n);
    for (int i = 0; i < n; i++) {
        put_str(b, sd_dtype_name(t[i].dtype));
        put_int(b, t[i].rank);
        for (int k = 0; k < t[i].rank; k++)
            put_i64(b, t[i].dim[k]);
        sd_buf_u64(b, t[i].bytes);
        put_str(b, t[i].memory);
    }
}

/* A library call's words stand where other kinds have their numbers. */
static void put_numbers(sd_buf *b, const thunk *t)
{
    int64_t word[LIBCALL_WORDS];
    const int64_t *at = t->call ? word : t->attr;
    int n = t->call ? libcall_words(t->call, word) : t->nattr;

    put_int(b, t->call ? (int)t->call->op : 0);
    put_int(b, n);
    for (int i = 0; i < n; i++)
        put_i64(b, at[i]);
}

static void put_seq(sd_buf *b, const thunk_seq *s)
{
    put_int(b, s->n);
    for (int i = 0; i < s->n; i++) {
        const thunk *t = &s->at[i];

        put_int(b, (int)t->kind);
        put_str(b, t->name);
        put_str(b, t->op_name);
        put_int(b, t->narg);
        for (int k = 0; k < t->narg; k++) {
            put_int(b, t->arg[k].buffer);
            sd_buf_u64(b, t->arg[k].offset);
            sd_buf_u64(b, t->arg[k].bytes);
        }
        put_int(b, t->kernel);
        put_numbers(b, t);
        put_i64(b, t->trip);
        put_str(b, t->target);
        put_str(b, t->config);
        put_f64(b, t->flops);
        put_f64(b, t->bytes);
        put_int(b, t->nseq);
        for (int k = 0; k < t->nseq; k++)
            put_seq(b, &t->seq[k]);
    }
}

static void put_body(sd_buf *b, const thunk_program *p)
{
    put_str(b, p->name);
    put_device(b, &p->device);
    put_types(b, p->param, p->nparam);
    put_types(b, p->output, p->noutput);
    for (int i = 0; i < p->nparam; i++)
        sd_buf_u8(b, p->donatable && p->donatable[i]);
    put_int(b, p->nreplica);
    put_int(b, p->npartition);
    put_int(b, p->nbuffer);
    for (int i = 0; i < p->nbuffer; i++) {
        const thunk_buffer *u = &p->buffer[i];

        put_int(b, (int)u->kind);
        put_int(b, u->index);
        sd_buf_u64(b, u->bytes);
        put_int(b, u->alias);
        sd_buf_u8(b, u->alias_must);
        sd_buf_u64(b, u->at);
    }
    put_blob(b, p->constants, p->constant_bytes);
    sd_buf_u64(b, p->temp_bytes);
    put_int(b, p->nkernel);
    for (int i = 0; i < p->nkernel; i++) {
        const thunk_kernel *k = &p->kernel[i];

        put_str(b, k->symbol);
        put_int(b, k->binary);
        put_int(b, k->nslot);
        put_i64(b, k->tiles);
        put_int(b, k->group);
        sd_buf_u64(b, k->local_bytes);
        put_f64(b, k->flops);
        put_f64(b, k->bytes);
        sd_buf_u8(b, k->loop);
    }
    put_int(b, p->nbinary);
    for (int i = 0; i < p->nbinary; i++) {
        put_int(b, (int)p->binary[i].kind);
        put_blob(b, p->binary[i].data, p->binary[i].bytes);
    }
    put_int(b, p->nsection);
    for (int i = 0; i < p->nsection; i++) {
        put_str(b, p->section[i].name);
        put_blob(b, p->section[i].data, p->section[i].bytes);
    }
    put_seq(b, &p->seq);
    sd_buf_u64(b, p->fingerprint);
}

sd_status thunk_save(const thunk_program *p, sd_buf *out)
{
    sd_buf body = {0}, b = {0};

    put_body(&body, p);
    sd_buf_add(&b, MAGIC, sizeof MAGIC);
    sd_buf_u32(&b, VERSION);
    sd_buf_u64(&b, body.len);
    sd_buf_u64(&b, sd_hash(body.at, body.len, VERSION));
    sd_buf_add(&b, body.at, body.len);
    if (body.oom || b.oom) {
        size_t bytes = body.len;

        sd_buf_finish(&body);
        sd_buf_finish(&b);
        return sd_no_memory(bytes);
    }
    sd_buf_finish(&body);
    sd_buf_finish(out);
    *out = b;
    return NULL;
}

/* ---- in ---- */

typedef struct {
    sd_cursor c;
    sd_arena *arena;
    bool oom; /* sticky, as the cursor's error is */
    sd_status refused; /* the first library call that is none */
} loader;

static void *get_memory(loader *l, size_t n, size_t size)
{
    void *p = NULL;
    size_t bytes;

    if (!l->oom && sd_mul_size(n, size, &bytes))
        p = sd_arena_try(l->arena, bytes);
    if (!p) {
        l->oom = true;
        l->c.at = l->c.end; /* nothing more is read */
    }
    return p;
}

/* A count of entries that take each bytes at least. */
static int get_count(loader *l, size_t each)
{
    uint32_t n = sd_read_u32(&l->c);

    if (n > INT32_MAX || n > sd_cursor_left(&l->c) / each) {
        sd_cursor_fail(&l->c, "a count that the bytes left can hold");
        return 0;
    }
    return (int)n;
}

/* An array for n entries, n what is then in *count: 0 when memory is gone. */
static void *get_array(loader *l, size_t each, size_t size, int *count)
{
    int n = get_count(l, each);
    void *p = n ? get_memory(l, (size_t)n, size) : NULL;

    *count = p ? n : 0;
    return p;
}

static int get_int(loader *l)
{
    return (int)(int32_t)sd_read_u32(&l->c);
}

static int64_t get_i64(loader *l)
{
    return (int64_t)sd_read_u64(&l->c);
}

static double get_f64(loader *l)
{
    uint64_t u = sd_read_u64(&l->c);
    double v;

    memcpy(&v, &u, 8);
    return v;
}

static char *get_str(loader *l)
{
    uint32_t n = sd_read_u32(&l->c);
    sd_bytes b;
    char *s;

    if (n == NO_STRING)
        return NULL;
    b = sd_read_bytes(&l->c, n);
    if (!(s = get_memory(l, b.len + 1, 1)))
        return NULL;
    memcpy(s, b.at, b.len);
    return s;
}

static char *get_name(loader *l)
{
    char *s = get_str(l);

    if (!s)
        sd_cursor_fail(&l->c, "a name");
    return s;
}

/* Sixty-four aligned, as thunk_add_constant and thunk_add_binary do. */
static uint8_t *get_blob(loader *l, size_t *bytes)
{
    sd_bytes b = sd_read_bytes(&l->c, sd_read_u64(&l->c));
    uint8_t *p = get_memory(l, b.len + 64, 1);

    *bytes = 0;
    if (!p)
        return NULL;
    p += -(uintptr_t)p & 63;
    memcpy(p, b.at, b.len);
    *bytes = b.len;
    return p;
}

static void get_text(loader *l, char *to, size_t room)
{
    const char *s = get_name(l);
    size_t n = s ? strlen(s) : 0;

    if (n >= room)
        sd_cursor_fail(&l->c, "a shorter name");
    else if (n)
        memcpy(to, s, n);
}

static void get_device(loader *l, device_desc *d)
{
    d->kind = (device_kind)get_int(l);
    get_text(l, d->name, sizeof d->name);
    get_text(l, d->driver, sizeof d->driver);
    d->lanes = get_int(l);
    d->units = get_int(l);
    d->group = get_int(l);
    d->subgroup = get_int(l);
    d->crowd = get_int(l);
    d->access = get_int(l);
    d->registers = get_int(l);
    d->local_bytes = (size_t)sd_read_u64(&l->c);
    d->local_most = (size_t)sd_read_u64(&l->c);
    d->cache_bytes = (size_t)sd_read_u64(&l->c);
    d->features = sd_read_u64(&l->c);
    d->libs = sd_read_u64(&l->c);
}

static thunk_type *get_types(loader *l, int *count)
{
    thunk_type *t = get_array(l, 20, sizeof *t, count);

    for (int i = 0; i < *count; i++) {
        const char *name = get_name(l);
        int64_t *dim;

        if (name && !sd_dtype_of_name(name, strlen(name), &t[i].dtype))
            sd_cursor_fail(&l->c, "an element type");
        dim = get_array(l, 8, sizeof *dim, &t[i].rank);
        for (int k = 0; k < t[i].rank; k++)
            dim[k] = get_i64(l);
        t[i].dim = dim;
        t[i].bytes = sd_read_u64(&l->c);
        t[i].memory = get_str(l);
    }
    return t;
}

static void get_numbers(loader *l, thunk *t)
{
    int op = get_int(l);
    int64_t *at = get_array(l, 8, sizeof *at, &t->nattr);
    libcall *c;

    for (int k = 0; k < t->nattr; k++)
        at[k] = get_i64(l);
    t->attr = at;
    if (t->kind != THUNK_LIBCALL || l->c.bad || l->refused ||
        !(c = get_memory(l, 1, sizeof *c)))
        return;
    l->refused = libcall_of_words(op, at, t->nattr, c);
    t->call = c;
    t->attr = NULL;
    t->nattr = 0;
}

static void get_seq(loader *l, thunk_seq *s, int depth);

static void get_step(loader *l, thunk *t, int depth)
{
    t->kind = (thunk_kind)get_int(l);
    t->name = get_str(l);
    t->op_name = get_str(l);
    t->arg = get_array(l, 20, sizeof *t->arg, &t->narg);
    for (int k = 0; k < t->narg; k++) {
        t->arg[k].buffer = get_int(l);
        t->arg[k].offset = sd_read_u64(&l->c);
        t->arg[k].bytes = sd_read_u64(&l->c);
    }
    t->kernel = get_int(l);
    get_numbers(l, t);
    t->trip = get_i64(l);
    t->target = get_str(l);
    t->config = get_str(l);
    t->flops = get_f64(l);
    t->bytes = get_f64(l);
    t->seq = get_array(l, 4, sizeof *t->seq, &t->nseq);
    for (int k = 0; k < t->nseq; k++)
        get_seq(l, &t->seq[k], depth + 1);
}

static void get_seq(loader *l, thunk_seq *s, int depth)
{
    if (depth > MAX_DEPTH) {
        sd_cursor_fail(&l->c, "sequences nested less deeply");
        return;
    }
    s->at = get_array(l, 68, sizeof *s->at, &s->n);
    for (int i = 0; i < s->n; i++)
        get_step(l, &s->at[i], depth);
}

static void get_buffers(loader *l, thunk_program *p)
{
    p->buffer = get_array(l, 29, sizeof *p->buffer, &p->nbuffer);
    for (int i = 0; i < p->nbuffer; i++) {
        thunk_buffer *u = &p->buffer[i];

        u->kind = (thunk_buffer_kind)get_int(l);
        u->index = get_int(l);
        u->bytes = sd_read_u64(&l->c);
        u->alias = get_int(l);
        u->alias_must = sd_read_u8(&l->c) != 0;
        u->at = sd_read_u64(&l->c);
    }
}

static void get_kernels(loader *l, thunk_program *p)
{
    p->kernel = get_array(l, 49, sizeof *p->kernel, &p->nkernel);
    for (int i = 0; i < p->nkernel; i++) {
        thunk_kernel *k = &p->kernel[i];

        k->symbol = get_name(l);
        k->binary = get_int(l);
        k->nslot = get_int(l);
        k->tiles = get_i64(l);
        k->group = get_int(l);
        k->local_bytes = sd_read_u64(&l->c);
        k->flops = get_f64(l);
        k->bytes = get_f64(l);
        k->loop = sd_read_u8(&l->c);
    }
    p->binary = get_array(l, 12, sizeof *p->binary, &p->nbinary);
    for (int i = 0; i < p->nbinary; i++) {
        p->binary[i].kind = (thunk_bin_kind)get_int(l);
        p->binary[i].data = get_blob(l, &p->binary[i].bytes);
    }
}

static void get_body(loader *l, thunk_program *p)
{
    p->name = get_name(l);
    get_device(l, &p->device);
    p->param = get_types(l, &p->nparam);
    p->output = get_types(l, &p->noutput);
    p->donatable = get_memory(l, (size_t)p->nparam, sizeof *p->donatable);
    for (int i = 0; p->donatable && i < p->nparam; i++)
        p->donatable[i] = sd_read_u8(&l->c) != 0;
    p->nreplica = get_int(l);
    p->npartition = get_int(l);
    get_buffers(l, p);
    p->constants = get_blob(l, &p->constant_bytes);
    p->temp_bytes = sd_read_u64(&l->c);
    get_kernels(l, p);
    p->section = get_array(l, 12, sizeof *p->section, &p->nsection);
    for (int i = 0; i < p->nsection; i++) {
        p->section[i].name = get_name(l);
        p->section[i].data = get_blob(l, &p->section[i].bytes);
    }
    get_seq(l, &p->seq, 0);
    p->fingerprint = sd_read_u64(&l->c);
    if (sd_cursor_left(&l->c))
        sd_cursor_fail(&l->c, "the end");
}

static sd_status open_body(sd_bytes b, sd_cursor *out)
{
    sd_cursor c = sd_cursor_of(b);
    sd_bytes magic = sd_read_bytes(&c, sizeof MAGIC), body;
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
    body = sd_read_bytes(&c, bytes);
    if (sd_hash(body.at, body.len, VERSION) != sum)
        return sd_error(SD_DATA_LOSS,
                        "saved program of %" PRIu64 " bytes is "
                        "damaged: checksum",
                        bytes);
    *out = sd_cursor_of(body);
    return NULL;
}

sd_status thunk_load(sd_bytes b, thunk_program **out)
{
    loader l = {0};
    thunk_program *p;
    sd_status st = open_body(b, &l.c);

    if (st)
        return st;
    l.arena = sd_arena_create_try();
    p = l.arena ? sd_arena_try(l.arena, sizeof *p) : NULL;
    if (!p) {
        sd_arena_destroy(l.arena);
        return sd_no_memory(sizeof *p);
    }
    p->arena = l.arena;
    p->refs = 1;
    get_body(&l, p);
    st = l.oom ? sd_no_memory(b.len) : sd_cursor_status(&l.c, "saved program");
    if (st)
        sd_status_free(l.refused);
    else
        st = l.refused;
    if (!st)
        st = thunk_verify(p);
    if (st) {
        thunk_program_release(p);
        return st;
    }
    *out = p;
    return NULL;
}
