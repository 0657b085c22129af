/* pb: protobuf without a library.  Each message of pb.def becomes a struct
 * (pb_inst) and a table (pb_inst_table), by which pb_read and pb_write go.  A
 * field that the bytes do not have is zero, as protobuf wants it; strings and
 * bytes are borrowed from the bytes that are read. */
#ifndef PB_H
#define PB_H

#include "base.h"

typedef struct { int64_t *at; int n, cap; } pb_ints;
typedef struct { sd_bytes *at; int n, cap; } pb_strs;
typedef struct { uint8_t *at; size_t len, cap; } pb_pack; /* cap 0: borrowed */

#define BEGIN(m) typedef struct pb_##m pb_##m;
#define FIELD(m, f, tag, kind, of)
#define END(m)
#include "pb.def"
#undef BEGIN
#undef FIELD
#undef END

#define PB_MEMBER_INT(f, of) int64_t f;
#define PB_MEMBER_INTS(f, of) pb_ints f;
#define PB_MEMBER_F32(f, of) float f;
#define PB_MEMBER_PACK(f, of) pb_pack f;
#define PB_MEMBER_STR(f, of) sd_bytes f;
#define PB_MEMBER_STRS(f, of) pb_strs f;
#define PB_MEMBER_ONE(f, of) pb_##of *f; /* NULL: not there */
#define PB_MEMBER_MANY(f, of) struct { pb_##of *at; int n, cap; } f;

#define BEGIN(m) struct pb_##m {
#define FIELD(m, f, tag, kind, of) PB_MEMBER_##kind(f, of)
#define END(m) };
#include "pb.def"
#undef BEGIN
#undef FIELD
#undef END

enum { /* PB_TAG_comp_inst: the tag of that field */
#define BEGIN(m)
#define FIELD(m, f, tag, kind, of) PB_TAG_##m##_##f = tag,
#define END(m)
#include "pb.def"
#undef BEGIN
#undef FIELD
#undef END
};

typedef struct pb_message pb_message;
#define BEGIN(m) extern const pb_message pb_##m##_table;
#define FIELD(m, f, tag, kind, of)
#define END(m)
#include "pb.def"
#undef BEGIN
#undef FIELD
#undef END

/* Reads a message into a zeroed struct; arrays go to the arena. */
sd_status pb_read(sd_arena *a, const pb_message *t, sd_bytes b, void *out);
void pb_write(sd_buf *b, const pb_message *t, const void *msg);

/* Writes a field of type bytes in place: all that is added to b between open
 * and close is its content.  at: what open returned. */
size_t pb_open(sd_buf *b, int tag);
void pb_close(sd_buf *b, size_t at);

/* A list that borrows `at`: good for writing, never for pushing. */
static inline pb_ints pb_borrowed(const int64_t *at, int n)
{
    return (pb_ints){(int64_t *)(uintptr_t)at, n, 0};
}
static inline sd_bytes pb_str(const char *s) /* takes NULL */
{
    return (sd_bytes){(const uint8_t *)s, s ? strlen(s) : 0};
}
/* A copy with a NUL behind it; NULL when s is empty. */
char *pb_text(sd_arena *a, sd_bytes s);
/* A copy for messages: at most 64 characters, what is not ASCII as '?'. */
const char *pb_shown(sd_arena *a, sd_bytes s);

#endif
