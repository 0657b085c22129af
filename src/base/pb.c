/* The wire: tags, varints, lengths.  Tables say where a field goes; a message
 * nests at most 64 deep, and nothing is allocated that the bytes left could
 * not fill. */
#include "pb.h"

#include <limits.h>

typedef enum { INT, INTS, F32, PACK, STR, STRS, ONE, MANY } kind;
enum { VARINT = 0, FIXED64 = 1, LEN = 2, FIXED32 = 5 }; /* wire types */

typedef struct {
    const char *name;
    int tag;
    kind kind;
    size_t at; /* of the member */
    const pb_message *of;
} field;

struct pb_message {
    const char *name;
    size_t bytes;
    const field *field;
    int n;
};

#define PB_OF_INT(of)  NULL
#define PB_OF_INTS(of) NULL
#define PB_OF_F32(of)  NULL
#define PB_OF_PACK(of) NULL
#define PB_OF_STR(of)  NULL
#define PB_OF_STRS(of) NULL
#define PB_OF_ONE(of)  &pb_##of##_table
#define PB_OF_MANY(of) &pb_##of##_table

#define BEGIN(m) static const field m##_fields[] = {
#define FIELD(m, f, tag, kind, of) \
    {#f, tag, kind, offsetof(pb_##m, f), PB_OF_##kind(of)},
#define END(m) \
    } \
    ; \
    const pb_message pb_##m##_table = {#m, sizeof(pb_##m), m##_fields, \
                                       (int)SD_COUNTOF(m##_fields)};
#include "pb.def"
#undef BEGIN
#undef FIELD
#undef END

/* ---- reading ---- */

typedef struct {
    sd_arena *arena;
    sd_cursor c;
    int depth;
} reader;

static void read_message(reader *r, const pb_message *t, void *out);

/* The row of a tag; rows and bytes both go by tag, so the next is near. */
static const field *find(const pb_message *t, uint64_t tag, int *near)
{
    for (int i = 0; i < t->n; i++) {
        int k = (*near + i) % t->n;

        if ((uint64_t)t->field[k].tag == tag) {
            *near = k;
            return &t->field[k];
        }
    }
    return NULL;
}

static void skip(reader *r, unsigned wire)
{
    if (wire == VARINT)
        sd_read_leb(&r->c);
    else if (wire == FIXED64)
        sd_read_u64(&r->c);
    else if (wire == FIXED32)
        sd_read_u32(&r->c);
    else if (wire == LEN)
        sd_read_bytes(&r->c, sd_read_leb(&r->c));
    else
        sd_cursor_fail(&r->c, "a field of a known wire type");
}

/* Repeated numbers come packed or one by one; both may be mixed. */
static void read_ints(reader *r, unsigned wire, pb_ints *v)
{
    const uint8_t *end = r->c.end;

    if (wire == VARINT) {
        *sd_push(r->arena, v) = (int64_t)sd_read_leb(&r->c);
        return;
    }
    sd_bytes b = sd_read_bytes(&r->c, sd_read_leb(&r->c));

    if (r->c.bad)
        return;
    r->c.at = b.at;
    r->c.end = b.at + b.len;
    while (r->c.at < r->c.end)
        *sd_push(r->arena, v) = (int64_t)sd_read_leb(&r->c);
    r->c.end = end;
}

/* The numbers' bytes one after the other: a lone run is borrowed. */
static void read_pack(reader *r, unsigned wire, pb_pack *p)
{
    const uint8_t *from = r->c.at;
    sd_bytes b;

    if (wire == LEN) {
        b = sd_read_bytes(&r->c, sd_read_leb(&r->c));
    } else {
        skip(r, wire);
        b = (sd_bytes){from, (size_t)(r->c.at - from)};
    }
    if (r->c.bad || !b.len)
        return;
    if (!p->len) {
        *p = (pb_pack){(uint8_t *)b.at, b.len, 0};
        return;
    }
    if (p->len + b.len > p->cap) {
        uint8_t *at = sd_arena_alloc(r->arena, 2 * (p->len + b.len));

        memcpy(at, p->at, p->len);
        p->at = at;
        p->cap = 2 * (p->len + b.len);
    }
    memcpy(p->at + p->len, b.at, b.len);
    p->len += b.len;
}

static void read_nested(reader *r, const pb_message *t, void *out)
{
    const uint8_t *end = r->c.end;
    sd_bytes b = sd_read_bytes(&r->c, sd_read_leb(&r->c));

    if (r->depth == 64)
        sd_cursor_fail(&r->c, "messages nested less deep");
    if (r->c.bad)
        return;
    r->depth++;
    r->c.at = b.at;
    r->c.end = b.at + b.len;
    read_message(r, t, out);
    r->c.end = end;
    if (r->c.bad)
        r->c.at = end;
    r->depth--;
}

static void *push_message(reader *r, const pb_message *t, void *member)
{
    struct {
        char *at;
        int n, cap;
    } *v = member; /* as MANY lays it out */

    v->at = sd_vec_grow(r->arena, v->at, v->n, &v->cap, t->bytes);
    return memset(v->at + (size_t)v->n++ * t->bytes, 0, t->bytes);
}

static bool fits(const field *f, unsigned wire)
{
    switch (f->kind) {
    case INT:
        return wire == VARINT;
    case INTS:
        return wire == VARINT || wire == LEN;
    case F32:
        return wire == FIXED32;
    case PACK:
        return wire == VARINT || wire == LEN || wire == FIXED32 ||
               wire == FIXED64;
    default:
        return wire == LEN;
    }
}

static void read_field(reader *r, const field *f, unsigned wire, void *member)
{
    uint32_t bits;

    switch (f->kind) {
    case INT:
        *(int64_t *)member = (int64_t)sd_read_leb(&r->c);
        break;
    case INTS:
        read_ints(r, wire, member);
        break;
    case F32:
        bits = sd_read_u32(&r->c);
        memcpy(member, &bits, sizeof bits);
        break;
    case PACK:
        read_pack(r, wire, member);
        break;
    case STR:
        *(sd_bytes *)member = sd_read_bytes(&r->c, sd_read_leb(&r->c));
        break;
    case STRS:
        *sd_push(r->arena, (pb_strs *)member) =
            sd_read_bytes(&r->c, sd_read_leb(&r->c));
        break;
    case ONE: /* given twice, the second adds to the first */
        if (!*(void **)member)
            *(void **)member = sd_arena_alloc(r->arena, f->of->bytes);
        read_nested(r, f->of, *(void **)member);
        break;
    case MANY:
        read_nested(r, f->of, push_message(r, f->of, member));
        break;
    }
}

static void read_message(reader *r, const pb_message *t, void *out)
{
    int near = 0;

    while (r->c.at < r->c.end && !r->c.bad) {
        uint64_t key = sd_read_leb(&r->c);
        unsigned wire = (unsigned)(key & 7);
        const field *f = find(t, key >> 3, &near);

        if (key >> 3 == 0)
            sd_cursor_fail(&r->c, "a field's tag");
        else if (!f)
            skip(r, wire);
        else if (fits(f, wire))
            read_field(r, f, wire, (char *)out + f->at);
        else
            sd_cursor_fail(&r->c, "a field of its wire type");
    }
}

sd_status pb_read(sd_arena *a, const pb_message *t, sd_bytes b, void *out)
{
    reader r = {.arena = a, .c = sd_cursor_of(b)};

    if (b.len > INT_MAX) /* protobuf's own limit; counts are int below it */
        return sd_error(SD_INVALID, "%zu bytes of protobuf, over 2 GiB", b.len);
    read_message(&r, t, out);
    return sd_cursor_status(&r.c, t->name);
}

/* ---- writing ---- */

static void put_tag(sd_buf *b, int tag, unsigned wire)
{
    sd_buf_leb(b, (uint64_t)tag << 3 | wire);
}

static void put_bytes(sd_buf *b, int tag, const void *p, size_t n)
{
    put_tag(b, tag, LEN);
    sd_buf_leb(b, n);
    sd_buf_add(b, p, n);
}

size_t pb_open(sd_buf *b, int tag)
{
    put_tag(b, tag, LEN);
    sd_buf_u8(b, 0);
    return b->len;
}

/* Most contents are shorter than 128 bytes, and their length has its place;
 * longer ones move up. */
void pb_close(sd_buf *b, size_t at)
{
    size_t n = b->len - at;
    sd_buf len = {.arena = b->arena};

    if (b->oom)
        return;
    if (n < 128) {
        b->at[at - 1] = (char)n;
        return;
    }
    sd_buf_leb(&len, n);
    for (size_t i = 1; i < len.len; i++)
        sd_buf_u8(b, 0);
    if (!b->oom && !len.oom) {
        memmove(b->at + at - 1 + len.len, b->at + at, n);
        memcpy(b->at + at - 1, len.at, len.len);
    }
    b->oom |= len.oom;
    sd_buf_finish(&len);
}

static void put_nested(sd_buf *b, const field *f, const void *msg)
{
    size_t at = pb_open(b, f->tag);

    pb_write(b, f->of, msg);
    pb_close(b, at);
}

static void put_ints(sd_buf *b, int tag, const pb_ints *v)
{
    size_t at;

    if (!v->n)
        return;
    at = pb_open(b, tag);
    for (int i = 0; i < v->n; i++)
        sd_buf_leb(b, (uint64_t)v->at[i]);
    pb_close(b, at);
}

static void put_field(sd_buf *b, const field *f, const void *member)
{
    const struct {
        const char *at;
        int n, cap;
    } *many = member;
    const pb_pack *pack = member;
    const pb_strs *strs = member;
    const sd_bytes *str = member;
    uint32_t bits;

    switch (f->kind) {
    case INT:
        if (*(const int64_t *)member) {
            put_tag(b, f->tag, VARINT);
            sd_buf_leb(b, (uint64_t)*(const int64_t *)member);
        }
        break;
    case INTS:
        put_ints(b, f->tag, member);
        break;
    case F32:
        memcpy(&bits, member, sizeof bits);
        if (bits) {
            put_tag(b, f->tag, FIXED32);
            sd_buf_u32(b, bits);
        }
        break;
    case PACK:
        if (pack->len)
            put_bytes(b, f->tag, pack->at, pack->len);
        break;
    case STR:
        if (str->len)
            put_bytes(b, f->tag, str->at, str->len);
        break;
    case STRS:
        for (int i = 0; i < strs->n; i++)
            put_bytes(b, f->tag, strs->at[i].at, strs->at[i].len);
        break;
    case ONE:
        if (*(void *const *)member)
            put_nested(b, f, *(void *const *)member);
        break;
    case MANY:
        for (int i = 0; i < many->n; i++)
            put_nested(b, f, many->at + (size_t)i * f->of->bytes);
        break;
    }
}

void pb_write(sd_buf *b, const pb_message *t, const void *msg)
{
    for (int i = 0; i < t->n; i++)
        put_field(b, &t->field[i], (const char *)msg + t->field[i].at);
}

char *pb_text(sd_arena *a, sd_bytes s)
{
    return s.len ? sd_arena_str(a, (const char *)s.at, s.len) : NULL;
}

const char *pb_shown(sd_arena *a, sd_bytes s)
{
    char *to = sd_arena_str(a, s.len ? (const char *)s.at : "",
                            SD_MIN(s.len, (size_t)64));

    for (size_t i = 0; i < SD_MIN(s.len, (size_t)64); i++)
        if (to[i] < ' ' || to[i] > '~')
            to[i] = '?';
    return to;
}
