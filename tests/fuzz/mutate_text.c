/* How programs as text are changed: most steps put one token in another's
 * place, of the same kind and from the same text or from a list, so that what
 * comes out is still read and goes down the road; the rest are libFuzzer's own
 * changes of bytes. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
                               unsigned seed);

typedef struct {
    size_t at, len;
    int kind; /* 1 a number, 2 a word, 3 a word after % */
} token;

enum { MOST = 1 << 14 };

static const char *const numbers[] = {
    "0",
    "1",
    "2",
    "3",
    "7",
    "-1",
    "-2",
    "8",
    "31",
    "64",
    "255",
    "2147483647",
    "-2147483648",
    "256",
    "4096",
    "65536",
    "99999",
    "4294967296",
    "9223372036854775807",
};

/* Element types, and every operation, in both dialects' spelling. */
static const char *const words[] = {
    "pred", "s2",  "s4",  "s8",  "s16", "s32",      "s64",        "u2",
    "u4",   "u8",  "u16", "u32", "u64", "f4e2m1fn", "f8e5m2",     "f8e4m3fn",
    "bf16", "f16", "f32", "f64", "c64", "c128",     "token",      "i1",
    "i8",   "i16", "i32", "i64", "ui8", "ui32",     "true",       "false",
    "nan",  "inf", "LT",  "GT",  "EQ",  "NE",       "TOTALORDER",
#define OP(id, name, cls, types, props, ulp, fn, element) name,
#include "hlo_ops.def"
#undef OP
};

static uint32_t next_random(uint32_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 17;
    return *s ^= *s << 5;
}

static int is_word(uint8_t c)
{
    return isalnum(c) || c == '_' || c == '.' || c == '-';
}

static size_t cut(const uint8_t *data, size_t size, token *out)
{
    size_t n = 0;

    for (size_t i = 0; i < size && n < MOST;) {
        size_t from = i;

        if (!is_word(data[i])) {
            i++;
            continue;
        }
        while (i < size && is_word(data[i]))
            i++;
        out[n++] = (token){from, i - from,
                           isdigit(data[from]) || data[from] == '-' ? 1
                           : from && data[from - 1] == '%'          ? 3
                                                                    : 2};
    }
    return n;
}

static size_t put(uint8_t *data, size_t size, size_t max, token old,
                  const void *with, size_t len)
{
    size_t rest = size - old.at - old.len;
    char copy[64];

    if (len > sizeof copy || old.at + len + rest > max)
        return size;
    memcpy(copy, with, len);
    memmove(data + old.at + len, data + old.at + old.len, rest);
    memcpy(data + old.at, copy, len);
    return old.at + len + rest;
}

static size_t swap(uint8_t *data, size_t size, size_t max, uint32_t *s)
{
    static token t[MOST]; /* one thread: libFuzzer's */
    size_t n = cut(data, size, t);

    if (!n)
        return LLVMFuzzerMutate(data, size, max);
    const token old = t[next_random(s) % n];

    if (next_random(s) % 3 == 0 && old.kind < 3) {
        const char *const *list = old.kind == 1 ? numbers : words;
        size_t count = old.kind == 1 ? sizeof numbers / sizeof *numbers
                                     : sizeof words / sizeof *words;
        const char *with = list[next_random(s) % count];

        return put(data, size, max, old, with, strlen(with));
    }
    for (int i = 0; i < 64; i++) {
        const token other = t[next_random(s) % n];

        if (other.kind == old.kind && other.at != old.at)
            return put(data, size, max, old, data + other.at, other.len);
    }
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
                               unsigned seed)
{
    uint32_t s = seed | 1;

    next_random(&s);
    if (next_random(&s) % 8 == 0)
        return LLVMFuzzerMutate(data, size, max);
    for (uint32_t n = next_random(&s) % 4; n < 4; n++)
        size = swap(data, size, max, &s);
    return size;
}
